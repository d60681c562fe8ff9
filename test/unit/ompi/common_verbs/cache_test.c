/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The registration cache over an adapter that counts: reuse, overlap, bounds, unmapped memory, threads. */
#include "ompi/mca/common/verbs/common_verbs_cache.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "test/support/tap.h"

enum { PAGE = 4096, READ = IBV_ACCESS_REMOTE_READ, ALL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ };

/* ---- The adapter ---- */

static _Atomic int registered, made;
static uintptr_t read_only, limit; /* a page that can't be written to; most that can be registered (0: no limit) */
static _Atomic size_t locked;

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *addr, size_t len, int access)
{
    uintptr_t start = (uintptr_t) addr;
    if (((access & IBV_ACCESS_LOCAL_WRITE) && read_only >= start && read_only < start + len) ||
        (limit > 0 && locked + len > limit)) {
        return NULL;
    }
    struct ibv_mr *mr = calloc(1, sizeof(*mr));
    *mr = (struct ibv_mr){.pd = pd, .addr = addr, .length = len, .lkey = (uint32_t) access};
    registered++;
    made++;
    locked += len;
    return mr;
}

static int dereg_mr(struct ibv_mr *mr)
{
    registered--;
    locked -= mr->length;
    free(mr);
    return 0;
}

static struct ibv_pd pd;
static common_verbs_cache_t cache;
static char *memory; /* pages of the test's */

/* Notes of unmapped memory are the test's to make: libucm is not asked. */
static void start(size_t max_bytes, uint32_t max_count)
{
    common_verbs_lib = (common_verbs_lib_t){.reg_mr = reg_mr, .dereg_mr = dereg_mr};
    registered = made = 0;
    read_only = limit = 0;
    common_verbs_cache_init(&cache, &pd, true, 0, 0);
    cache.max_bytes = max_bytes;
    cache.max_count = max_count;
    cache.unmapped.follows = true;
    cache.unmapped.low = UINTPTR_MAX;
}

static void finish(void)
{
    cache.unmapped.follows = false;
    common_verbs_cache_fini(&cache);
    TAP_OK(registered == 0, "nothing stays registered");
}

static unsigned counted(common_verbs_cache_count_t what)
{
    return (unsigned) common_verbs_cache_counted(&cache, what);
}

static unsigned uses;

static void use(size_t from, size_t len, int access)
{
    common_verbs_region_t *r = common_verbs_cache_get(&cache, memory + from, len, access, READ);
    common_verbs_cache_put(&cache, r);
    uses++;
}

static void unmap(size_t from, size_t len)
{
    common_verbs_unmap_note(&cache.unmapped, (uintptr_t) memory + from, (uintptr_t) memory + from + len);
}

/* What was made is in the table, or was given up for a reason. */
static bool balanced(void)
{
    return counted(COMMON_VERBS_CACHE_MISSES) == cache.count + counted(COMMON_VERBS_CACHE_EVICTIONS) +
                                                     counted(COMMON_VERBS_CACHE_REPLACED) +
                                                     counted(COMMON_VERBS_CACHE_UNMAPPED);
}

/* Is the table in order, disjoint, and its count of bytes right? */
static bool sound(void)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < cache.count; i++) {
        bytes += cache.table[i]->end - cache.table[i]->start;
        if (i > 0 && cache.table[i]->start < cache.table[i - 1]->end) {
            return false;
        }
    }
    return bytes == cache.bytes && cache.count <= cache.room && balanced();
}

/* ---- Tests ---- */

static void test_reuse(void)
{
    start(1 << 20, 16);
    for (int i = 0; i < 100; i++) {
        use(100, 5000, READ);
        use(PAGE, 10, READ);
    }
    TAP_OK(made == 1 && counted(COMMON_VERBS_CACHE_HITS) == 199, "the same buffer, or a part of it, is registered once");
    use(3 * PAGE, 10, READ);
    TAP_OK(made == 2 && cache.count == 2, "another page is another registration");
    common_verbs_region_t *r = common_verbs_cache_get(&cache, memory, 10, ALL, ALL);
    TAP_OK(made == 3 && r->mr->lkey == ALL && cache.count == 2, "more access is a registration more, in place of the other");
    use(0, 10, READ);
    TAP_OK(made == 3, "which serves for less access, too");
    common_verbs_cache_put(&cache, r);
    finish();
}

static void test_overlap(void)
{
    start(16 * PAGE, 16);
    use(0, 2 * PAGE, READ);
    use(4 * PAGE, 2 * PAGE, READ);
    common_verbs_region_t *r = common_verbs_cache_get(&cache, memory + PAGE, 4 * PAGE, ALL, ALL);
    TAP_OK(cache.count == 1 && r->end - r->start == 6 * PAGE && sound(), "one that overlaps two takes their place, and covers all");
    common_verbs_region_t *s = common_verbs_cache_get(&cache, memory + 5 * PAGE, 12 * PAGE, READ, READ);
    TAP_OK(s->end - s->start == 12 * PAGE && !r->listed && registered == 2,
           "but not if that is more than may be kept; what is in use stays registered");
    common_verbs_cache_put(&cache, r);
    TAP_OK(registered == 1 && sound(), "until it is given back");
    common_verbs_cache_put(&cache, s);
    finish();
}

static void test_bounds(void)
{
    start(4 * PAGE, 100);
    for (int i = 0; i < 8; i++) {
        use((size_t) i * 2 * PAGE, PAGE, READ);
    }
    TAP_OK(cache.count == 4 && registered == 4 && sound(), "no more bytes are kept than may be");
    use(8 * PAGE, PAGE, READ); /* of the four the one used longest ago */
    use(0, PAGE, READ);
    made = 0;
    use(8 * PAGE, PAGE, READ);
    TAP_OK(made == 0, "what was used lately is kept");
    use(10 * PAGE, PAGE, READ);
    TAP_OK(made == 1, "what was used longest ago is not");
    use(0, 8 * PAGE, READ);
    TAP_OK(cache.bytes <= 4 * PAGE && sound(), "what is too large is registered for its use alone");
    finish();
    start(1 << 20, 3);
    common_verbs_region_t *r[6];
    for (int i = 0; i < 6; i++) {
        r[i] = common_verbs_cache_get(&cache, memory + (size_t) i * 2 * PAGE, 8, READ, READ);
    }
    TAP_OK(registered == 6, "what is in use is never taken away");
    for (int i = 0; i < 6; i++) {
        common_verbs_cache_put(&cache, r[i]);
    }
    TAP_OK(registered == 3 && cache.count == 3, "of what is unused as many are kept as may be");
    finish();
    start(1 << 20, 100);
    limit = 2 * PAGE;
    for (int i = 0; i < 8; i++) {
        use((size_t) i * PAGE, PAGE, READ);
    }
    TAP_OK(made == 8, "where no more can be locked, what is unused makes room");
    finish();
}

static void test_unmapped(void)
{
    start(1 << 20, 100);
    use(0, 4 * PAGE, READ);
    unmap(3 * PAGE, PAGE);
    use(0, PAGE, READ);
    TAP_OK(made == 2 && registered == 1, "what was unmapped in part is registered anew");
    unmap(0, PAGE);
    common_verbs_cache_look(&cache);
    TAP_OK(registered == 0, "a look lets go what was unmapped");
    use(0, PAGE, READ);
    unmap(-(size_t) PAGE, PAGE);
    unmap(PAGE, PAGE);
    use(0, PAGE, READ);
    TAP_OK(made == 3, "what lies beside it does not count");
    common_verbs_region_t *r = common_verbs_cache_get(&cache, memory, 8, READ, READ);
    unmap(0, PAGE);
    common_verbs_cache_look(&cache);
    TAP_OK(registered == 1 && cache.count == 0, "in use it leaves the table, and stays registered");
    common_verbs_cache_put(&cache, r);
    TAP_OK(registered == 0, "until it is given back");
    for (int i = 0; i < 200; i++) {
        use((size_t) i * PAGE, 8, READ);
    }
    for (int i = 0; i < 200; i += 2) {
        unmap((size_t) i * PAGE, PAGE);
    }
    common_verbs_cache_look(&cache);
    made = 0;
    for (int i = 0; i < 200; i += 2) {
        use((size_t) i * PAGE, 8, READ);
    }
    TAP_OK(made == 100, "more notes than there is room for lose none: %d of 100", (int) made);
    atomic_flag_test_and_set(&cache.unmapped.busy); /* by a thread that a fork() has not taken along */
    unmap(0, PAGE);
    atomic_flag_clear(&cache.unmapped.busy);
    common_verbs_cache_look(&cache);
    TAP_OK(registered == 0, "one that can't be written down counts for everything");
    finish();
}

static void test_read_only(void)
{
    start(1 << 20, 100);
    read_only = (uintptr_t) memory + PAGE;
    common_verbs_region_t *r = common_verbs_cache_get(&cache, memory + PAGE, 8, ALL, READ);
    TAP_OK(r && r->mr->lkey == READ, "read-only memory is registered for less");
    common_verbs_cache_put(&cache, r);
    made = 0;
    use(PAGE, 8, ALL);
    TAP_OK(made == 0, "and that found again");
    TAP_OK(common_verbs_cache_get(&cache, memory + PAGE, 8, ALL, ALL) == NULL, "but not where less does not do");
    finish();
}

static void test_not_followed(void)
{
    start(1 << 20, 100);
    cache.unmapped.follows = false;
    common_verbs_region_t *r = common_verbs_cache_get(&cache, memory, 8, READ, READ);
    use(0, 8, READ);
    common_verbs_cache_put(&cache, r);
    TAP_OK(made == 2 && registered == 0, "where nothing tells of unmapped memory nothing is kept");
    finish();
}

static void test_counts(void)
{
    start(4 * PAGE, 100);
    uses = 0;
    use(0, 8, READ);
    use(0, 8, READ);
    use(0, 2 * PAGE, READ);                     /* in place of the first */
    TAP_OK(counted(COMMON_VERBS_CACHE_HITS) == 1 && counted(COMMON_VERBS_CACHE_MISSES) == 2 &&
               counted(COMMON_VERBS_CACHE_BYTES) == 3 * PAGE && counted(COMMON_VERBS_CACHE_REPLACED) == 1,
           "uses, registrations, their bytes, and what larger ones replace are counted");
    use(8 * PAGE, PAGE, READ);
    use(10 * PAGE, PAGE, READ);
    use(12 * PAGE, PAGE, READ);                 /* one more page than there is room for */
    TAP_OK(counted(COMMON_VERBS_CACHE_EVICTIONS) == 1 && sound(), "so is what goes for want of room");
    unmap(12 * PAGE, PAGE);
    use(8 * PAGE, 8, READ);
    TAP_OK(counted(COMMON_VERBS_CACHE_UNMAPPED) == 1 && sound(), "what was unmapped");
    read_only = (uintptr_t) memory + 20 * PAGE;
    TAP_OK(!common_verbs_cache_get(&cache, memory + 20 * PAGE, 8, ALL, ALL) && counted(COMMON_VERBS_CACHE_REFUSED) == 1,
           "and what can't be registered");
    TAP_OK(counted(COMMON_VERBS_CACHE_HITS) + counted(COMMON_VERBS_CACHE_MISSES) == uses, "each use is one or the other");
    finish();
}

static void test_libucm(void)
{
    const char *why;
    start(1 << 20, 100);
    finish();
    why = common_verbs_cache_init(&cache, &pd, true, 1 << 20, 100);
    if (why) {
        TAP_SKIP(why);
        common_verbs_cache_fini(&cache);
        return;
    }
    void *p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 3; i++) {
        common_verbs_cache_put(&cache, common_verbs_cache_get(&cache, p, 2 * PAGE, READ, READ));
    }
    TAP_OK(registered == 1 && counted(COMMON_VERBS_CACHE_MISSES) == 1, "a mapping is registered once");
    munmap((char *) p + PAGE, PAGE);
    common_verbs_cache_look(&cache);
    TAP_OK(registered == 0, "munmap() ends that");
    common_verbs_cache_put(&cache, common_verbs_cache_get(&cache, p, PAGE, READ, READ));
    mmap(p, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    common_verbs_cache_look(&cache);
    TAP_OK(registered == 0, "so does a mapping over it");
    char *block = malloc(8 << 20);
    common_verbs_cache_put(&cache, common_verbs_cache_get(&cache, block, 8 << 10, READ, READ));
    TAP_OK(registered == 1, "a block of malloc()");
    free(block);
    common_verbs_cache_look(&cache);
#if defined(__SANITIZE_ADDRESS__)
    TAP_SKIP("the sanitizer's free() gives nothing back");
#else
    TAP_OK(registered == 0, "and free()");
#endif
    munmap(p, PAGE);
    common_verbs_cache_fini(&cache);
}

/* ---- Threads: some use pages, others say that they are unmapped ---- */

enum { THREADS = 4, ROUNDS = 20000, PAGES = 64 };
static _Atomic int wrong;

static void *work(void *context)
{
    unsigned seed = (unsigned) (uintptr_t) context;
    for (int i = 0; i < ROUNDS; i++) {
        size_t page = (unsigned) rand_r(&seed) % PAGES, len = 1 + (unsigned) rand_r(&seed) % (3 * PAGE);
        if (rand_r(&seed) % 8 == 0) {
            unmap(page * PAGE, PAGE);
            continue;
        }
        const char *addr = memory + page * PAGE;
        common_verbs_region_t *r = common_verbs_cache_get(&cache, addr, len, READ, READ);
        if (!r || (char *) r->mr->addr > addr || (char *) r->mr->addr + r->mr->length < addr + len) {
            wrong++;
        }
        common_verbs_cache_put(&cache, r);
    }
    return NULL;
}

static void test_threads(void)
{
    pthread_t thread[THREADS];
    start(32 * PAGE, 8);
    for (uintptr_t i = 0; i < THREADS; i++) {
        pthread_create(&thread[i], NULL, work, (void *) (i + 1));
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
    }
    TAP_OK(wrong == 0, "what threads are given covers what they asked for");
    TAP_OK(sound() && cache.bytes <= 32 * PAGE && cache.count <= 8 && (uint32_t) registered == cache.count,
           "afterwards the table is sound and within its bounds");
    finish();
}

int main(void)
{
    tap_start(60);
    memory = aligned_alloc(PAGE, 256 * PAGE);
    test_reuse();
    test_overlap();
    test_bounds();
    test_unmapped();
    test_read_only();
    test_not_followed();
    test_counts();
    test_libucm();
    test_threads();
    free(memory);
    return tap_end();
}
