/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Policies that choose a communicator's links by name: the info key hawser_links. */
#include "ompi/mca/pml/base/pml_base_bind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/communicator/communicator.h"
#include "ompi/mca/pml/base/pml_base_request.h"
#include "ompi/mca/pml/base/pml_base_util.h"
#include "opal/util/argv.h"
#include "opal/util/output.h"

mca_pml_comm_peer_t mca_pml_base_nobody = {.from = UINT64_MAX};
mca_pml_peer_t mca_pml_base_nowhere = {.standing = &mca_pml_base_no_standing, .behind = {0, SIZE_MAX, &mca_pml_base_never}, .parts = {SIZE_MAX, 0}};

typedef struct names {
    mca_pml_bind_t super;
    bool exclude;
    char **list; /* NULL-terminated */
} names_t;

static bool is_called(const mca_btl_module_t *module, const char *name)
{
    return strcmp(module->name, name) == 0 || strcmp(module->component->name, name) == 0;
}

static bool names_may_use(const mca_pml_bind_t *bind, const mca_pml_peer_t *peer, const mca_pml_link_t *link)
{
    const names_t *names = OPAL_CONTAINER_OF(bind, const names_t, super);
    (void) peer;
    for (char **name = names->list; *name; name++) {
        if (is_called(link->module, *name)) {
            return !names->exclude;
        }
    }
    return names->exclude;
}

static uint32_t chosen(const mca_pml_bind_t *bind, const mca_pml_peer_t *peer, uint32_t *up)
{
    uint32_t mask = 0;
    *up = 0;
    for (int i = 0; i < peer->link_count; i++) {
        const mca_pml_link_t *link = &peer->links[i];
        *up |= (uint32_t) link->up << i;
        mask |= (uint32_t) (link->up && bind->may_use(bind, peer, link)) << i;
    }
    return mask;
}

uint32_t mca_pml_base_bind_links(const mca_pml_bind_t *bind, const mca_pml_peer_t *peer)
{
    uint32_t up, mask = chosen(bind, peer, &up);
    return mask ? mask : up;
}

uint32_t mca_pml_base_bind_pieces(const mca_pml_bind_t *bind, const mca_pml_peer_t *peer)
{
    uint32_t up, mask = chosen(bind, peer, &up);
    for (int i = 0; !mask && i < peer->bandwidth_count; i++) {
        up = i == 0 ? 0 : up;
        up |= 1u << (peer->bandwidth[i] - peer->links);
    }
    return mask ? mask : up;
}

/* Is there such a link? If not, the user hears of it once, with the names that there are. */
static bool is_known(const char *name)
{
    const mca_btl_base_modules_t *btls = mca_pml_base_modules();
    char known[256] = "";
    for (size_t i = 0; i < btls->count; i++) {
        if (is_called(btls->modules[i], name)) {
            return true;
        }
        size_t len = strlen(known);
        snprintf(known + len, sizeof(known) - len, "%s%s", len ? ", " : "", btls->modules[i]->name);
    }
    opal_show_help("pml:bind-unknown",
                   "The info key " MCA_PML_BIND_KEY " of a communicator names \"%s\", and no link of this process is "
                   "called so; the name is ignored.\nThe links are: %s (or the part before the colon, for all "
                   "links of that kind).", name, known[0] ? known : "none");
    return false;
}

int mca_pml_base_bind_names(const char *text, mca_pml_bind_t **bind)
{
    names_t *names = calloc(1, sizeof(*names));
    *bind = NULL;
    if (!names) {
        return MPI_ERR_NO_MEM;
    }
    names->super.may_use = names_may_use;
    names->exclude = text[0] == '^';
    text += names->exclude;
    names->list = opal_argv_split(text, ',');
    if (!names->list && text[strspn(text, ",")]) {
        mca_pml_base_bind_free(&names->super);
        return MPI_ERR_NO_MEM;
    }
    bool any = false;
    for (char **name = names->list; name && *name; name++) {
        any |= is_known(*name);
    }
    if (any) {
        *bind = &names->super;
    } else {
        mca_pml_base_bind_free(&names->super);
    }
    return MPI_SUCCESS;
}

void mca_pml_base_bind_free(mca_pml_bind_t *bind)
{
    if (bind) {
        names_t *names = OPAL_CONTAINER_OF(bind, names_t, super);
        opal_argv_free(names->list);
        free(names);
    }
}

int mca_pml_base_bind_comm(ompi_communicator_t *comm, const char *text, bool *taken)
{
    mca_pml_bind_t *bind = NULL, *old = comm->bind;
    int rc = text ? mca_pml_base_bind_names(text, &bind) : MPI_SUCCESS;
    *taken = bind != NULL;
    if (rc == MPI_SUCCESS && (bind || old)) {
        mca_pml.bind_comm(comm, bind);
        comm->bind = bind;
        mca_pml_base_bind_free(old);
    }
    return rc;
}
