/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* teg: the fast policy. Fragments go straight to links and are believed as the links deliver them. */
#include "ompi/mca/pml/base/pml_base_policy_plain.h"

enum { POLICY_STANDING = 1, POLICY_PASS_SELF = 1 };

static inline int policy_short(mca_pml_peer_t *peer, mca_pml_link_t *link, const void *hdr, size_t hdr_len,
                               const void *data, size_t len)
{
    (void) peer;
    return link->send_short(link->endpoint, hdr, hdr_len, data, len);
}

static inline int policy_reserve(mca_pml_peer_t *peer, mca_pml_link_t *link, size_t min, size_t want,
                                 mca_btl_room_t *room)
{
    (void) peer;
    return link->module->ops->reserve(link->endpoint, min, want, room);
}

static inline void policy_commit(mca_pml_peer_t *peer, mca_pml_link_t *link, mca_btl_room_t *room, size_t len)
{
    (void) peer;
    link->module->ops->commit(link->endpoint, room, len);
}

static inline int policy_send(mca_pml_peer_t *peer, mca_pml_link_t *link, mca_btl_descriptor_t *desc)
{
    (void) peer;
    return link->module->ops->send(link->endpoint, desc);
}

static inline int policy_recall(mca_pml_peer_t *peer, mca_pml_link_t *link, mca_btl_descriptor_t *desc)
{
    (void) peer;
    return link->module->ops->recall(link->endpoint, desc);
}

static inline bool policy_arrive(mca_pml_peer_t *peer, mca_btl_arrival_t *arrival)
{
    (void) peer;
    (void) arrival;
    return true;
}

static inline bool policy_is_idle(void)
{
    return true;
}

#include "ompi/mca/pml/base/pml_base_engine.h"

static int64_t priority;

static int teg_register(const mca_base_services_t *services)
{
    static const mca_base_var_desc_t desc = {
        .framework = "pml", .component = "teg", .name = "priority", .type = MCA_VAR_INT,
        .help = "How gladly teg is taken when no pml is named", .def.i = 20, .min = 0, .max = 100,
        .level = MCA_VAR_LEVEL_DEVELOPER, .scope = MCA_VAR_SCOPE_STARTUP};
    return services->var_register(&desc, &priority);
}

static int teg_query(int *out)
{
    *out = (int) priority;
    return MCA_SUCCESS;
}

static int teg_init(mca_pml_t *pml)
{
    return engine_init("teg", pml);
}

static const mca_pml_component_ops_t teg_ops = {
    .struct_size = sizeof(mca_pml_component_ops_t),
    .query = teg_query,
    .init = teg_init,
    .finalize = mca_pml_base_peers_fini,
};

MCA_EXPORT extern const mca_base_component_t mca_pml_teg_component;
const mca_base_component_t mca_pml_teg_component = {
    .magic = MCA_BASE_COMPONENT_MAGIC,
    .struct_size = sizeof(mca_base_component_t),
    .framework = "pml",
    .contract_major = MCA_PML_CONTRACT_MAJOR,
    .contract_minor = MCA_PML_CONTRACT_MINOR,
    .name = "teg",
    .version = {1, 0, 0},
    .register_params = teg_register,
    .ops = &teg_ops,
};
