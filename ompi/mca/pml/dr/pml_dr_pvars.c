/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Performance variables of dr. */
#include "ompi/mca/pml/dr/pml_dr_pvars.h"

#include "ompi/mca/pml/dr/pml_dr_control.h"

static void read_total(void *context, const ompi_proc_t *proc, void *values, size_t count)
{
    (void) proc;
    if (count > 0) {
        *(uint64_t *) values = atomic_load_explicit((_Atomic uint64_t *) context, memory_order_relaxed);
    }
}

/* ---- Paths ---- */

/* NULL: nothing has been sent lately. */
static const dr_path_t *path_of(const mca_pml_peer_t *peer, const mca_pml_link_t *link)
{
    const dr_peer_t *d = peer->policy;
    return d && d->stream.paths ? &d->stream.paths[dr_path_of(d, link)] : NULL;
}

static uint64_t damaged(const mca_pml_peer_t *peer, const mca_pml_link_t *link)
{
    (void) peer;
    return atomic_load_explicit(&link->damaged, memory_order_relaxed);
}

/* A peer at rest keeps one time for all its paths. */
static uint64_t round_trip(const mca_pml_peer_t *peer, const mca_pml_link_t *link)
{
    const dr_path_t *p = path_of(peer, link);
    const dr_peer_t *d = peer->policy;
    return p ? p->srtt : d ? d->stream.rtt_was : 0;
}

static uint64_t patience(const mca_pml_peer_t *peer, const mca_pml_link_t *link)
{
    const dr_path_t *p = path_of(peer, link);
    const dr_peer_t *d = peer->policy;
    return p ? dr_stream_rto(&d->stream, p) : 0;
}

static uint64_t unacknowledged(const mca_pml_peer_t *peer, const mca_pml_link_t *link)
{
    const dr_path_t *p = path_of(peer, link);
    return p ? p->flight_bytes : 0;
}

static uint64_t window(const mca_pml_peer_t *peer, const mca_pml_link_t *link)
{
    return path_of(peer, link) ? dr_window_of(peer->policy, link) : 0;
}

static uint64_t spread(const mca_pml_peer_t *peer, const mca_pml_link_t *link)
{
    const dr_path_t *p = path_of(peer, link);
    return p && p->spread;
}

static const mca_pml_path_pvar_t paths[] = {
    {"dr", "path_damaged", "Fragments that came damaged from a process over each link", MPI_T_PVAR_CLASS_COUNTER, NULL,
     damaged},
    {"dr", "path_round_trip", "Smoothed round trip to a process over each link, in ns; 0: not measured yet",
     MPI_T_PVAR_CLASS_LEVEL, NULL, round_trip},
    {"dr", "path_patience", "How long an acknowledgment of a process is waited for at present before something is sent again "
     "over each link, in ns; 0: nothing was sent lately", MPI_T_PVAR_CLASS_LEVEL, NULL, patience},
    {"dr", "path_unacknowledged", "Bytes that each link has and a process has not acknowledged", MPI_T_PVAR_CLASS_LEVEL,
     NULL, unacknowledged},
    {"dr", "path_window", "Bytes that each link may have at once which a process has not acknowledged: fewer for a while after losses; 0: nothing "
     "was sent lately", MPI_T_PVAR_CLASS_LEVEL, NULL, window},
    {"dr", "path_spread", "1: each link lately carried fragments to a process in another order without losing them, so that being overtaken is no "
     "loss there", MPI_T_PVAR_CLASS_LEVEL, NULL, spread},
};

/* ---- Start and end ---- */

int dr_pvars_open(void)
{
    static const struct {
        const char *name, *help;
        _Atomic uint64_t *value;
    } totals[] = {
        {"damaged", "Fragments that came damaged", &dr_damaged},
        {"lent", "Messages of MPI_Isend that stayed in the user's memory instead of being copied (pml_dr_lend_min)", &dr_lending.lent},
        {"lent_copied", "Messages of those that were copied because somebody waited for them before they were acknowledged",
         &dr_lending.copied},
        {"pieces", "Messages that went in pieces before their receiver had answered (pml_dr_pieces_max)", &dr_lending.pieces},
    };
    int rc = OPAL_SUCCESS;
    for (size_t i = 0; i < sizeof(totals) / sizeof(totals[0]) && rc == OPAL_SUCCESS; i++) {
        const ompi_pvar_desc_t total = {
            .framework = "pml", .component = "dr", .name = totals[i].name, .level = MCA_VAR_LEVEL_USER, .help = totals[i].help,
            .var_class = MPI_T_PVAR_CLASS_COUNTER, .read = read_total, .context = totals[i].value};
        atomic_store(totals[i].value, 0);
        rc = ompi_pvar_register(&total);
    }
    return rc == OPAL_SUCCESS ? mca_pml_base_path_pvars(paths, sizeof(paths) / sizeof(paths[0])) : rc;
}

void dr_pvars_close(void)
{
    ompi_pvar_unregister("pml", "dr");
}
