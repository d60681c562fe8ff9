/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The parameters pml_dr_*. */
#include "ompi/mca/pml/dr/pml_dr_params.h"

dr_params_t dr_params;

static struct {
    int64_t checksum, ack_delay_us, rto_initial_ms, rto_min_us, rto_reliable_ms, rto_max_ms;
    int64_t suspect_after, down_after, probe_first_ms, probe_max_ms, path_timeout_s, tick_us;
    uint64_t window;
    bool bare;
} raw;

static const mca_base_var_enum_t checksums[] = {{"none", OPAL_CHECKSUM_NONE},
                                                {"additive32", OPAL_CHECKSUM_ADDITIVE32},
                                                {"crc32c", OPAL_CHECKSUM_CRC32C},
                                                {NULL, 0}};

static const struct {
    const char *name, *unit, *help;
    int64_t def, min, max;
    mca_base_var_level_t level;
    int64_t *storage;
} numbers[] = {
    {"priority", NULL, "How gladly dr is taken when no pml is named", 10, 0, 100, MCA_VAR_LEVEL_DEVELOPER,
     &dr_params.priority},
    {"ack_delay", "us", "How long an acknowledgment waits for a message to ride on", 1000, 0, 1000000,
     MCA_VAR_LEVEL_TUNER, &raw.ack_delay_us},
    {"rto_initial", "ms", "Time without an acknowledgment after which a fragment is sent again, until round trips have "
                          "been measured",
     200, 1, 60000, MCA_VAR_LEVEL_TUNER, &raw.rto_initial_ms},
    {"rto_min", "us", "The same time, at least, once they have been measured", 2000, 1, 60000000, MCA_VAR_LEVEL_TUNER,
     &raw.rto_min_us},
    {"rto_reliable", "ms", "The same time, at least, on a link that loses nothing while it is up", 500, 1, 60000,
     MCA_VAR_LEVEL_TUNER, &raw.rto_reliable_ms},
    {"rto_max", "ms", "The same time at most; it doubles with every vain attempt", 4000, 1, 600000, MCA_VAR_LEVEL_TUNER,
     &raw.rto_max_ms},
    {"suspect_after", NULL, "Vain attempts in a row after which other links are preferred", 2, 1, 200,
     MCA_VAR_LEVEL_TUNER, &raw.suspect_after},
    {"down_after", NULL, "Vain attempts in a row after which a link is taken out, if another one works", 5, 1, 200,
     MCA_VAR_LEVEL_TUNER, &raw.down_after},
    {"probe_first", "ms", "When a link that was taken out is first tried again; then after ever longer times", 100, 1,
     60000, MCA_VAR_LEVEL_TUNER, &raw.probe_first_ms},
    {"probe_max", "ms", "Longest time between two tries of a link that was taken out", 10000, 1, 3600000,
     MCA_VAR_LEVEL_TUNER, &raw.probe_max_ms},
    {"path_timeout", "s", "How long a process may be silent over all links, while it has something to acknowledge, "
                          "before what is for it fails",
     300, 1, 86400, MCA_VAR_LEVEL_USER, &raw.path_timeout_s},
    {"tick", "us", "How often timers are looked at while something is unacknowledged", 1000, 100, 100000,
     MCA_VAR_LEVEL_DEVELOPER, &raw.tick_us},
};

enum { NUMBERS = sizeof(numbers) / sizeof(numbers[0]) };

int dr_params_register(const mca_base_services_t *services)
{
    static mca_base_var_desc_t descs[NUMBERS];
    static const mca_base_var_desc_t checksum = {
        .framework = "pml", .component = "dr", .name = "checksum", .type = MCA_VAR_ENUM,
        .help = "How headers and data are checked from memory to memory: crc32c, additive32 (weaker), or none (loss is "
                "still made good, damage is not noticed); alike for all processes",
        .def.i = OPAL_CHECKSUM_CRC32C, .enums = checksums, .level = MCA_VAR_LEVEL_USER, .scope = MCA_VAR_SCOPE_STARTUP};
    static const mca_base_var_desc_t bare = {
        .framework = "pml", .component = "dr", .name = "bare", .type = MCA_VAR_BOOL,
        .help = "Without checksums, nothing is numbered, kept or acknowledged over links that lose nothing and can't fail while the other "
                "process lives, as shared memory",
        .def.b = true, .level = MCA_VAR_LEVEL_TUNER, .scope = MCA_VAR_SCOPE_STARTUP};
    static const mca_base_var_desc_t window = {
        .framework = "pml", .component = "dr", .name = "window", .type = MCA_VAR_SIZE, .unit = "bytes",
        .help = "Memory for fragments to one process that are kept until it acknowledges them; beyond it sends wait",
        .def.size = 4u << 20, .min = 65536, .max = 1 << 30, .level = MCA_VAR_LEVEL_TUNER,
        .scope = MCA_VAR_SCOPE_STARTUP};
    static const mca_base_var_desc_t lend_min = {
        .framework = "pml", .component = "dr", .name = "lend_min", .type = MCA_VAR_SIZE, .unit = "bytes",
        .help = "Shortest message of a stream of MPI_Isend that stays in the user's memory until it is acknowledged, or somebody waits "
                "for it, instead of being copied at once",
        .def.size = 4u << 10, .min = 1 << 10, .max = UINT64_MAX, .level = MCA_VAR_LEVEL_TUNER, .scope = MCA_VAR_SCOPE_STARTUP};
    static const mca_base_var_desc_t pieces_max = {
        .framework = "pml", .component = "dr", .name = "pieces_max", .type = MCA_VAR_SIZE, .unit = "bytes",
        .help = "Longest message that goes at once in several pieces, before its receiver has answered; within pml_base_whole_max and halves of "
                "pml_dr_window and of the link's, where one link leads there which takes no fragment so long, and in no stream of messages (0: none)",
        .def.size = 256u << 10, .max = 1 << 30, .level = MCA_VAR_LEVEL_TUNER, .scope = MCA_VAR_SCOPE_STARTUP};
    static const mca_base_var_desc_t piece = {
        .framework = "pml", .component = "dr", .name = "piece", .type = MCA_VAR_SIZE, .unit = "bytes",
        .help = "About the length of these pieces over links that take them from memory, as datagrams are: much shorter ones take longer to hand over "
                "than they save", .def.size = 48u << 10,
        .min = 1 << 10, .max = 1 << 30, .level = MCA_VAR_LEVEL_TUNER, .scope = MCA_VAR_SCOPE_STARTUP};
    static const mca_base_var_desc_t wide_max = {
        .framework = "pml", .component = "dr", .name = "wide_max", .type = MCA_VAR_SIZE, .unit = "bytes",
        .help = "Longest piece of such a message over a link whose receiver reads it while it is written, as through shared memory, and longest such "
                "message there, if that is more than pml_dr_pieces_max (0: pieces are fragments)",
        .def.size = 512u << 10, .max = 1 << 30, .level = MCA_VAR_LEVEL_TUNER, .scope = MCA_VAR_SCOPE_STARTUP};
    int rc = services->var_register(&checksum, &raw.checksum);
    rc = rc ? rc : services->var_register(&bare, &raw.bare);
    rc = rc ? rc : services->var_register(&window, &raw.window);
    rc = rc ? rc : services->var_register(&lend_min, &dr_params.lend_min);
    rc = rc ? rc : services->var_register(&pieces_max, &dr_params.pieces_max);
    rc = rc ? rc : services->var_register(&piece, &dr_params.piece);
    rc = rc ? rc : services->var_register(&wide_max, &dr_params.wide_max);
    for (int i = 0; i < NUMBERS && rc == MCA_SUCCESS; i++) {
        descs[i] = (mca_base_var_desc_t){
            .framework = "pml", .component = "dr", .name = numbers[i].name, .unit = numbers[i].unit,
            .help = numbers[i].help, .type = MCA_VAR_INT, .def.i = numbers[i].def, .min = numbers[i].min,
            .max = numbers[i].max, .level = numbers[i].level, .scope = MCA_VAR_SCOPE_STARTUP};
        rc = services->var_register(&descs[i], numbers[i].storage);
    }
    return rc;
}

void dr_params_derive(void)
{
    const uint64_t us = 1000, ms = 1000000, s = 1000000000;
    dr_params.checksum = (opal_checksum_kind_t) raw.checksum;
    dr_params.bare = raw.bare && dr_params.checksum == OPAL_CHECKSUM_NONE;
    dr_params.tick = (uint64_t) raw.tick_us * us;
    dr_params.stream = (dr_stream_params_t){
        .rto_initial = (uint64_t) raw.rto_initial_ms * ms,
        .rto_max = (uint64_t) raw.rto_max_ms * ms,
        .rto_min = (uint64_t) raw.rto_min_us * us,
        .rto_reliable = (uint64_t) raw.rto_reliable_ms * ms,
        .ack_delay = (uint64_t) raw.ack_delay_us * us,
        .ack_bytes = raw.window / 16,
        .tick = dr_params.tick,
        .window = raw.window,
        .probe_first = (uint64_t) raw.probe_first_ms * ms,
        .probe_max = (uint64_t) raw.probe_max_ms * ms,
        .silence_max = (uint64_t) raw.path_timeout_s * s,
        .suspect_after = (unsigned) raw.suspect_after,
        .down_after = (unsigned) raw.down_after,
    };
}

const char *dr_params_name(void)
{
    static const char *const names[] = {
        [OPAL_CHECKSUM_NONE] = "dr (checksum none)",
        [OPAL_CHECKSUM_ADDITIVE32] = "dr (checksum additive32)",
        [OPAL_CHECKSUM_CRC32C] = "dr (checksum crc32c)",
    };
    return names[dr_params.checksum];
}
