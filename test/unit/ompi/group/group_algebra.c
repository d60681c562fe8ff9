/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Group algebra against a naive model: lists of world ranks, random ones and strides, all
 * operations of MPI. */
#include <mpi.h>
#include <stdint.h>
#include <string.h>

#include "ompi/group/group.h"
#include "support/tap.h"

enum { WORLD = 24, ROUNDS = 4000 };

/* An ordered set of world ranks. */
typedef struct model {
    int size, members[WORLD];
} model_t;

static uint64_t state = 88172645463325252ull; /* xorshift: the same tests every time */

static unsigned below(unsigned limit)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned) (state >> 33) % limit;
}

static int place_in(const model_t *model, int member)
{
    for (int i = 0; i < model->size; i++) {
        if (model->members[i] == member) {
            return i;
        }
    }
    return -1;
}

/* Half of them are strides, up or down, as most groups of real programs are. */
static model_t random_model(void)
{
    model_t model = {.size = 0};
    if (below(2)) {
        int first = (int) below(WORLD), stride = (int) below(7) - 3;
        for (int m = first; stride != 0 && m >= 0 && m < WORLD; m += stride) {
            model.members[model.size++] = m;
        }
        model.size = model.size ? (int) below((unsigned) model.size + 1) : 0;
        return model;
    }
    for (int tries = (int) below(WORLD + 1); tries > 0; tries--) {
        int m = (int) below(WORLD);
        if (place_in(&model, m) < 0) {
            model.members[model.size++] = m;
        }
    }
    return model;
}

static ompi_group_t *group_of(const model_t *model)
{
    uint32_t *ranks = malloc(((size_t) model->size + 1) * sizeof *ranks);
    for (int i = 0; i < model->size; i++) {
        ranks[i] = (uint32_t) model->members[i];
    }
    return ompi_group_new_list(ranks, model->size, 0);
}

static bool same(const model_t *model, const ompi_group_t *group)
{
    bool equal = group->size == model->size;
    for (int i = 0; equal && i < model->size; i++) {
        equal = ompi_group_world_rank(group, i) == (uint32_t) model->members[i];
    }
    for (int m = 0; equal && m < WORLD; m++) {
        int place = place_in(model, m);
        equal = ompi_group_rank_of(group, (uint32_t) m) == (place < 0 ? MPI_UNDEFINED : place);
    }
    return equal;
}

static model_t model_filter(const model_t *a, const model_t *b, bool in_b)
{
    model_t out = {.size = 0};
    for (int i = 0; i < a->size; i++) {
        if ((place_in(b, a->members[i]) >= 0) == in_b) {
            out.members[out.size++] = a->members[i];
        }
    }
    return out;
}

static model_t model_union(const model_t *a, const model_t *b)
{
    model_t out = *a, rest = model_filter(b, a, false);
    for (int i = 0; i < rest.size; i++) {
        out.members[out.size++] = rest.members[i];
    }
    return out;
}

static int model_compare(const model_t *a, const model_t *b)
{
    if (a->size == b->size && memcmp(a->members, b->members, (size_t) a->size * sizeof(int)) == 0) {
        return MPI_IDENT;
    }
    model_t common = model_filter(a, b, true);
    return a->size == b->size && common.size == a->size ? MPI_SIMILAR : MPI_UNEQUAL;
}

static bool check_sets(const model_t *a, const model_t *b)
{
    MPI_Group ga = ompi_group_handle(group_of(a)), gb = ompi_group_handle(group_of(b)), out;
    model_t expected = model_union(a, b);
    bool good = MPI_Group_union(ga, gb, &out) == MPI_SUCCESS &&
                same(&expected, ompi_group_from_handle(out));
    MPI_Group_free(&out);
    expected = model_filter(a, b, true);
    good = MPI_Group_intersection(ga, gb, &out) == MPI_SUCCESS &&
           same(&expected, ompi_group_from_handle(out)) && good;
    MPI_Group_free(&out);
    expected = model_filter(a, b, false);
    good = MPI_Group_difference(ga, gb, &out) == MPI_SUCCESS &&
           same(&expected, ompi_group_from_handle(out)) && good;
    MPI_Group_free(&out);
    int result;
    MPI_Group_compare(ga, gb, &result);
    good = result == model_compare(a, b) && good;
    MPI_Group_free(&ga);
    MPI_Group_free(&gb);
    return good;
}

static bool check_translation(const model_t *a, const model_t *b)
{
    MPI_Group ga = ompi_group_handle(group_of(a)), gb = ompi_group_handle(group_of(b));
    int from[WORLD + 1], to[WORLD + 1];
    for (int i = 0; i < a->size; i++) {
        from[i] = a->size - 1 - i;
    }
    from[a->size] = MPI_PROC_NULL;
    bool good = MPI_Group_translate_ranks(ga, a->size + 1, from, gb, to) == MPI_SUCCESS;
    for (int i = 0; good && i < a->size; i++) {
        int place = place_in(b, a->members[from[i]]);
        good = to[i] == (place < 0 ? MPI_UNDEFINED : place);
    }
    good = good && to[a->size] == MPI_PROC_NULL;
    MPI_Group_free(&ga);
    MPI_Group_free(&gb);
    return good;
}

/* A random choice of a group's ranks, listed, and what is left of the group without them. */
static bool check_lists(const model_t *a)
{
    MPI_Group ga = ompi_group_handle(group_of(a)), out;
    model_t chosen = {.size = 0}, incl, excl;
    int ranks[WORLD];
    for (int tries = (int) below(WORLD); a->size > 0 && tries > 0; tries--) {
        int rank = (int) below((unsigned) a->size);
        if (place_in(&chosen, rank) < 0) {
            ranks[chosen.size] = rank;
            chosen.members[chosen.size++] = rank;
        }
    }
    incl.size = chosen.size;
    for (int i = 0; i < chosen.size; i++) {
        incl.members[i] = a->members[ranks[i]];
    }
    excl = model_filter(a, &incl, false);
    bool good = MPI_Group_incl(ga, chosen.size, ranks, &out) == MPI_SUCCESS &&
                same(&incl, ompi_group_from_handle(out));
    MPI_Group_free(&out);
    good = MPI_Group_excl(ga, chosen.size, ranks, &out) == MPI_SUCCESS &&
           same(&excl, ompi_group_from_handle(out)) && good;
    MPI_Group_free(&out);
    MPI_Group_free(&ga);
    return good;
}

static bool check_ranges(const model_t *a)
{
    MPI_Group ga = ompi_group_handle(group_of(a)), out;
    if (a->size == 0) {
        MPI_Group_free(&ga);
        return true;
    }
    int first = (int) below((unsigned) a->size), last = (int) below((unsigned) a->size);
    int stride = (int) (1 + below(4)) * (first <= last ? 1 : -1);
    int ranges[1][3] = {{first, last, stride}};
    model_t incl = {.size = 0}, excl;
    for (int rank = first; stride > 0 ? rank <= last : rank >= last; rank += stride) {
        incl.members[incl.size++] = a->members[rank];
    }
    excl = model_filter(a, &incl, false);
    bool good = MPI_Group_range_incl(ga, 1, ranges, &out) == MPI_SUCCESS &&
                same(&incl, ompi_group_from_handle(out));
    MPI_Group_free(&out);
    good = MPI_Group_range_excl(ga, 1, ranges, &out) == MPI_SUCCESS &&
           same(&excl, ompi_group_from_handle(out)) && good;
    MPI_Group_free(&out);
    MPI_Group_free(&ga);
    return good;
}

/* Wrong arguments: class of the error, and no group. */
static void check_errors(void)
{
    model_t model = {.size = 4, .members = {3, 1, 4, 15}};
    MPI_Group group = ompi_group_handle(group_of(&model)), out;
    int ranks[] = {0, 2, 0}, big[] = {4}, negative[] = {-1}, to[3];
    int zero[1][3] = {{0, 3, 0}}, over[1][3] = {{0, 4, 1}}, twice[2][3] = {{0, 2, 1}, {3, 2, -1}};
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    TAP_OK(MPI_Group_incl(group, 3, ranks, &out) == MPI_ERR_RANK, "a rank named twice is refused");
    TAP_OK(MPI_Group_excl(group, 1, big, &out) == MPI_ERR_RANK,
           "a rank beyond the group is refused");
    TAP_OK(MPI_Group_incl(group, 1, negative, &out) == MPI_ERR_RANK, "a negative rank is refused");
    TAP_OK(MPI_Group_incl(group, -1, ranks, &out) == MPI_ERR_ARG,
           "a negative number of ranks is refused");
    TAP_OK(MPI_Group_range_incl(group, 1, zero, &out) == MPI_ERR_ARG,
           "a stride of zero is refused");
    TAP_OK(MPI_Group_range_incl(group, 1, over, &out) == MPI_ERR_RANK,
           "a range that leaves the group is refused");
    TAP_OK(MPI_Group_range_excl(group, 2, twice, &out) == MPI_ERR_RANK,
           "ranges that overlap are refused");
    TAP_OK(MPI_Group_translate_ranks(group, 1, big, group, to) == MPI_ERR_RANK,
           "a wrong rank is not translated");
    TAP_OK(MPI_Group_size(MPI_GROUP_NULL, to) == MPI_ERR_GROUP, "MPI_GROUP_NULL is refused");
    MPI_Group_free(&group);
    TAP_OK(group == MPI_GROUP_NULL, "the handle is null after the end");
    group = MPI_GROUP_EMPTY;
    TAP_OK(MPI_Group_size(MPI_GROUP_EMPTY, to) == MPI_SUCCESS && to[0] == 0,
           "the empty group is empty");
}

int main(void)
{
    int sets = 0, translations = 0, lists = 0, ranges = 0;
    tap_start(120);
    TAP_REQUIRE(MPI_Init(NULL, NULL) == MPI_SUCCESS, "a world of one");
    for (int i = 0; i < ROUNDS; i++) {
        model_t a = random_model(), b = random_model();
        sets += check_sets(&a, &b);
        translations += check_translation(&a, &b);
        lists += check_lists(&a);
        ranges += check_ranges(&a);
    }
    TAP_OK(sets == ROUNDS, "union, intersection, difference, comparison: %d of %d", sets, ROUNDS);
    TAP_OK(translations == ROUNDS, "translation of ranks: %d of %d", translations, ROUNDS);
    TAP_OK(lists == ROUNDS, "incl and excl: %d of %d", lists, ROUNDS);
    TAP_OK(ranges == ROUNDS, "ranges: %d of %d", ranges, ROUNDS);
    check_errors();
    MPI_Finalize();
    return tap_end();
}
