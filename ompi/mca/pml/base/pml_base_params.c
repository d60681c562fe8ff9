/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The engine's parameters. */
#include "ompi/mca/pml/base/pml_base_events.h"
#include "ompi/mca/pml/base/pml_base_past.h"
#include "ompi/mca/pml/base/pml_base_peer.h"
#include "ompi/mca/pml/base/pml_base_report.h"

mca_pml_base_params_t mca_pml_base_params;

int mca_pml_base_register_params(void)
{
    static const mca_base_var_enum_t stripes[] = {
        {"auto", MCA_PML_STRIPE_AUTO}, {"all", MCA_PML_STRIPE_ALL}, {"best", MCA_PML_STRIPE_BEST}, {NULL, 0}};
    static const mca_base_var_desc_t window = {
        .framework = "pml", .component = "base", .name = "eager_window", .type = MCA_VAR_SIZE, .unit = "bytes",
        .help = "Eager messages of one sender, with 64 bytes for each, that may wait in a receiver's memory; beyond "
                "it sends wait for their receive",
        .def.size = 8u << 20, .min = 4096, .max = 1 << 30, .level = MCA_VAR_LEVEL_TUNER, .scope = MCA_VAR_SCOPE_STARTUP};
    static const mca_base_var_desc_t unexpected = {
        .framework = "pml", .component = "base", .name = "unexpected_max", .type = MCA_VAR_SIZE, .unit = "bytes",
        .help = "Messages of one sender that may wait in a receiver's memory for their receive or their turn beyond "
                "pml_base_eager_window, counted alike; announcements of long messages, of which there may be any number, are 64 "
                "bytes each. Who sends more does not keep to the window, and is given up",
        .def.size = 256u << 20, .min = 4096, .max = INT64_MAX, .level = MCA_VAR_LEVEL_TUNER,
        .scope = MCA_VAR_SCOPE_STARTUP};
    static const mca_base_var_desc_t first = {
        .framework = "pml", .component = "base", .name = "first_frag", .type = MCA_VAR_SIZE, .unit = "bytes",
        .help = "Most payload that a long message sends before its receive is known; one that is hardly longer than what a link takes "
                "without asking sends as much as that (0: none does)",
        .def.size = 16u << 10, .min = 0, .max = 1 << 30, .level = MCA_VAR_LEVEL_TUNER, .scope = MCA_VAR_SCOPE_STARTUP};
    static const mca_base_var_desc_t whole = {
        .framework = "pml", .component = "base", .name = "whole_max", .type = MCA_VAR_SIZE, .unit = "bytes",
        .help = "A message up to this size that one link alone carries, and takes in one fragment or in parts, is sent from the "
                "user's memory without waiting for its receive, as far as pml_base_eager_window allows, unless it is found that its "
                "receiver had better fetch it (0: none)",
        .def.size = 2u << 20, .min = 0, .max = 1 << 30, .level = MCA_VAR_LEVEL_TUNER, .scope = MCA_VAR_SCOPE_STARTUP};
    static const mca_base_var_desc_t stripe = {
        .framework = "pml", .component = "base", .name = "stripe", .type = MCA_VAR_ENUM,
        .help = "Links that carry a long message together: auto (all whose share is worth it; on one node, shared "
                "memory only), all, or best (the fastest alone)",
        .def.i = MCA_PML_STRIPE_AUTO, .enums = stripes, .level = MCA_VAR_LEVEL_USER, .scope = MCA_VAR_SCOPE_STARTUP};
    static const mca_base_var_desc_t stripe_min = {
        .framework = "pml", .component = "base", .name = "stripe_min", .type = MCA_VAR_DOUBLE,
        .help = "Least part of the total bandwidth with which a link takes part in pml_base_stripe=auto",
        .def.d = 0.05, .level = MCA_VAR_LEVEL_TUNER, .scope = MCA_VAR_SCOPE_STARTUP};
    int rc = mca_base_var_register(&window, &mca_pml_base_params.eager_window);
    rc = rc ? rc : mca_base_var_register(&unexpected, &mca_pml_base_params.unexpected_max);
    rc = rc ? rc : mca_base_var_register(&first, &mca_pml_base_params.first_frag);
    rc = rc ? rc : mca_base_var_register(&whole, &mca_pml_base_params.whole_max);
    rc = rc ? rc : mca_base_var_register(&stripe, &mca_pml_base_params.stripe);
    rc = rc ? rc : mca_base_var_register(&stripe_min, &mca_pml_base_params.stripe_min);
    static const mca_base_var_desc_t adapt = {
        .framework = "pml", .component = "base", .name = "adapt", .type = MCA_VAR_BOOL,
        .help = "Shares of links in long messages follow what the links are seen to deliver (0: stay "
                "what their reported speeds say)",
        .def.b = true, .level = MCA_VAR_LEVEL_USER, .scope = MCA_VAR_SCOPE_STARTUP};
    rc = rc ? rc : mca_base_var_register(&adapt, &mca_pml_base_params.adapt);
    static const mca_base_var_desc_t timeout = {
        .framework = "pml", .component = "base", .name = "path_timeout", .type = MCA_VAR_INT, .unit = "s",
        .help = "How long sends wait for a link to come back when none leads to a peer", .def.i = 10, .min = 0,
        .max = 86400, .level = MCA_VAR_LEVEL_USER, .scope = MCA_VAR_SCOPE_STARTUP};
    rc = rc ? rc : mca_base_var_register(&timeout, &mca_pml_base_params.path_timeout);
    rc = rc ? rc : mca_pml_base_past_register();
    rc = rc ? rc : mca_pml_base_events_register();
    rc = rc ? rc : mca_pml_base_report_register_params();
    return rc ? rc : mca_pml_base_trace_register_params();
}
