/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Collectives among daemons: of all and of some, one after the other and all at once, with and
 * without data, and with a daemon that dies. */
#include "test/unit/orte/oob/world.h"

#include "orte/mca/grpcomm/grpcomm.h"

static orte_grpcomm_t *grpcomm;
static world_t *self;
static unsigned pending; /* callbacks that are to come */

/* One collective: who takes part, and what each contributes. */
typedef struct {
    uint32_t list[WORLD_MAX];
    size_t count;
    uint8_t name;
    size_t size;   /* of the lowest participant's piece; one more for each further one */
    unsigned round; /* of this name */
} group_t;

static uint8_t byte_of(const group_t *group, uint32_t from, size_t at)
{
    return (uint8_t)(from * 13 + group->name * 7 + group->round * 3 + at);
}

static bool piece_ok(const group_t *group, size_t i, const orte_grpcomm_piece_t *piece)
{
    bool ok = piece->from == group->list[i] && piece->size == group->size + i;

    for (size_t at = 0; ok && at < piece->size; at += 1 + at / 16) {
        ok = piece->data[at] == byte_of(group, piece->from, at);
    }
    return ok;
}

static void all_done(void)
{
    if (self->arg == NULL) { /* nobody dies: all leave when all have finished */
        orte_oob_send(self->oob, 0, TAG_TEST, ORTE_OOB_CONTROL, NULL, 0);
    } else {
        world_board->slot[self->index] = 1;
    }
}

static void group_done(void *arg, int rc, uint32_t failed, const orte_grpcomm_piece_t *pieces,
                       size_t count)
{
    group_t *group = arg;
    bool ok = rc == OPAL_SUCCESS && count == group->count;

    (void)failed;
    for (size_t i = 0; ok && i < count; i++) {
        ok = piece_ok(group, i, &pieces[i]);
    }
    if (!ok) {
        printf("# daemon %u, name %u round %u: rc %d, %zu pieces\n", self->index, group->name,
               group->round, rc, count);
        world_end(self, 1);
    }
    free(group);
    if (--pending == 0) {
        all_done();
    }
}

/* Does the daemon take part, and as which one? */
static bool find(const group_t *group, size_t *position)
{
    for (*position = 0; *position < group->count; ++*position) {
        if (group->list[*position] == self->index) {
            return true;
        }
    }
    return false;
}

static void begin(const group_t *model, bool all, orte_grpcomm_done_t done)
{
    group_t *group = malloc(sizeof(*group));
    uint8_t name[OPAL_SHA256_BYTES] = {model->name};
    size_t position;

    *group = *model;
    if (!find(group, &position)) {
        free(group);
        return;
    }
    size_t size = group->size + position;
    uint8_t *data = malloc(size + 1);
    for (size_t at = 0; at < size; at++) {
        data[at] = byte_of(group, self->index, at);
    }
    pending++;
    if (orte_grpcomm_allgather(grpcomm, name, all ? NULL : group->list, group->count, data, size,
                               done, group) != OPAL_SUCCESS) {
        exit(2);
    }
    free(data);
}

static void collect(void *arg, orte_oob_message_t *message)
{
    static uint32_t finished;
    world_t *w = arg;

    (void)message;
    if (++finished == w->count) {
        world_dismiss(w);
    }
}

/* All daemons; every third one; pairs; single ones: several rounds of each, all begun at once. */
static void many_scenario(world_t *w)
{
    self = w;
    grpcomm = orte_grpcomm_create(w->oob);
    orte_oob_handle(w->oob, TAG_TEST, collect, w);
    pending = 1; /* this function */
    for (unsigned round = 0; round < 5; round++) {
        for (uint8_t name = 0; name < 6; name++) {
            group_t group = {.name = name, .round = round};
            uint32_t step = name == 2 ? 3 : 1, start = name == 3 ? w->count / 2 : 0;
            group.size = name == 0 ? 0 : name == 4 ? 30000 : 100;
            for (uint32_t i = start; i < w->count; i += step) {
                group.list[group.count++] = i;
            }
            if (name == 5) { /* alone */
                group.count = 1;
                group.list[0] = w->index;
            }
            begin(&group, name < 2, group_done);
        }
    }
    if (--pending == 0) {
        all_done();
    }
}

/* One after the other, each begun in the callback of the one before. */
static void chain_done(void *arg, int rc, uint32_t failed, const orte_grpcomm_piece_t *pieces,
                       size_t count)
{
    group_t *group = arg;
    bool ok = rc == OPAL_SUCCESS && count == group->count;

    (void)failed;
    for (size_t i = 0; ok && i < count; i++) {
        ok = piece_ok(group, i, &pieces[i]);
    }
    pending--;
    if (!ok) {
        world_end(self, 1);
    } else if (++group->round < 100) {
        begin(group, true, chain_done);
    } else {
        all_done();
    }
    free(group);
}

static void chain_scenario(world_t *w)
{
    group_t group = {.count = w->count, .size = 8};

    self = w;
    grpcomm = orte_grpcomm_create(w->oob);
    orte_oob_handle(w->oob, TAG_TEST, collect, w);
    for (uint32_t i = 0; i < w->count; i++) {
        group.list[i] = i;
    }
    begin(&group, true, chain_done);
}

/* ---- A death ---- */

static uint32_t victim;

/* The victim's collectives fail; those of others are none of its business, if it is a leaf. */
static void death_done(void *arg, int rc, uint32_t failed, const orte_grpcomm_piece_t *pieces,
                       size_t count)
{
    group_t *group = arg;

    (void)pieces;
    (void)count;
    if (group->name == 2) {
        if (rc != OPAL_SUCCESS) {
            world_end(self, 3);
        }
    } else if (rc == OPAL_SUCCESS) {
        group->round++;
        begin(group, true, death_done); /* again, until the victim is dead */
    } else if (rc != OPAL_ERR_PEER_FAILED || !orte_oob_is_lost(self->oob, failed)) {
        world_end(self, 4);
    }
    if (--pending == 0) {
        all_done();
    }
    free(group);
}

static void death_lost(world_t *w, uint32_t index)
{
    (void)w;
    orte_grpcomm_lost(grpcomm, index);
}

static void death_poll(evutil_socket_t fd, short what, void *arg)
{
    world_t *w = arg;
    bool all = true;

    (void)fd;
    (void)what;
    for (uint32_t i = 0; i < w->count; i++) {
        all = all && (i == victim || world_board->slot[i] != 0);
    }
    if (all) {
        world_end(w, WORLD_OK);
    } else {
        world_later(w, 20, death_poll);
    }
}

static void death_scenario(world_t *w)
{
    group_t group = {.size = 1000, .name = 1}, rest = {.size = 100, .name = 2};

    self = w;
    victim = *(uint32_t *)w->arg;
    grpcomm = orte_grpcomm_create(w->oob);
    w->on_lost = death_lost;
    for (uint32_t i = 0; i < w->count; i++) {
        group.list[group.count++] = i;
        if (i != victim) {
            rest.list[rest.count++] = i;
        }
    }
    begin(&group, true, death_done);
    uint32_t first;
    if (orte_oob_tree_children(victim, w->count, w->radix, &first) == 0) {
        begin(&rest, false, death_done);
    }
    world_later(w, 20, death_poll);
}

static void test_deaths(void)
{
    unsigned seed = 7;

    for (int i = 0; i < 6; i++) {
        uint32_t count = i < 3 ? 7 : 20, radix = 2 + (uint32_t)i % 3;
        uint32_t dies = (uint32_t)rand_r(&seed) % count;
        unsigned delay = (unsigned)rand_r(&seed) % 200000;
        if (!world_start(count, radix, seed, &dies, death_scenario)) {
            TAP_OK(false, "a world of %u", count);
            continue;
        }
        usleep(50000 + delay); /* a random point, not synchronisation */
        world_kill(dies, SIGKILL);
        TAP_OK(world_wait(count, SIGKILL) == 0, "daemon %u of %u (radix %u) dies: all end", dies,
               count, radix);
    }
}

int main(void)
{
    static const char *const params[] = {"net_include=127.0.0.0/8", NULL};
    static const struct {
        uint32_t count, radix;
    } worlds[] = {{1, 2}, {2, 64}, {7, 2}, {7, 1}, {40, 3}};

    tap_start(240);
    world_setup(params);
    for (size_t i = 0; i < sizeof(worlds) / sizeof(worlds[0]); i++) {
        TAP_OK(world_run(worlds[i].count, worlds[i].radix, 1, NULL, many_scenario) == 0,
               "many at once, %u daemons, radix %u", worlds[i].count, worlds[i].radix);
    }
    TAP_OK(world_run(7, 2, 1, NULL, chain_scenario) == 0, "100 one after the other");
    test_deaths();
    return tap_end();
}
