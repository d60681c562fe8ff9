/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Copies of few bytes without a call and without a loop, and hints to the caches, for the way of short messages. */
#ifndef OPAL_UTIL_COPY_H
#define OPAL_UTIL_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "opal/include/opal/declspec.h"

enum { OPAL_COPY_SHORT = 32 };

/* Up to OPAL_COPY_SHORT bytes, by two overlapping moves; a word, the most usual, by one. */
static OPAL_ALWAYS_INLINE void opal_copy_short(void *to, const void *from, size_t len)
{
    unsigned char *t = (unsigned char *) to;
    const unsigned char *f = (const unsigned char *) from;
    if (len == 8) {
        memcpy(t, f, 8);
    } else if (len >= 16) {
        memcpy(t, f, 16);
        memcpy(t + len - 16, f + len - 16, 16);
    } else if (len >= 8) {
        memcpy(t, f, 8);
        memcpy(t + len - 8, f + len - 8, 8);
    } else if (len >= 4) {
        memcpy(t, f, 4);
        memcpy(t + len - 4, f + len - 4, 4);
    } else if (len > 0) {
        t[0] = f[0];
        t[len / 2] = f[len / 2];
        t[len - 1] = f[len - 1];
    }
}

/* Any number of bytes. */
static OPAL_ALWAYS_INLINE void opal_copy(void *to, const void *from, size_t len)
{
    if (OPAL_LIKELY(len <= OPAL_COPY_SHORT)) {
        opal_copy_short(to, from, len);
    } else {
        memcpy(to, from, len);
    }
}

/* A header: any number of bytes, mostly no more than a cache line. */
static OPAL_ALWAYS_INLINE void opal_copy_head(void *to, const void *from, size_t len)
{
    enum { HALF = OPAL_COPY_SHORT };
    if (len <= HALF) {
        opal_copy_short(to, from, len);
    } else if (OPAL_LIKELY(len <= 2 * HALF)) {
        memcpy(to, from, HALF);
        memcpy((unsigned char *) to + len - HALF, (const unsigned char *) from + len - HALF, HALF);
    } else {
        memcpy(to, from, len);
    }
}

enum {
    OPAL_COPY_LINE = 64,
    OPAL_COPY_REP_MIN = 512,
    OPAL_COPY_REP_MAX = 3 << 10,     /* longer ones the C library does that way itself */
    OPAL_COPY_VECTOR_MAX = 16 << 10, /* both ends of so much fit a first-level cache */
};

/*
 * How what passes between processors through memory is copied, into it and out of it. Which is quickest depends on where its lines are,
 * and on how far the processors are from each other: whoever chooses measures.
 */
typedef enum opal_copy_how {
    OPAL_COPY_ANY,   /* its lines are in the other processor's caches: by the instruction that fetches nothing that it overwrites */
    OPAL_COPY_LINES, /* ... in a cache that both share: by plain loads and stores, asked for ahead */
    OPAL_COPY_PAST,  /* far away: past the caches, to memory */
    OPAL_COPY_REP,   /* as OPAL_COPY_ANY, and any length of it by that instruction */
    OPAL_COPY_PLAIN, /* ... or by plain loads and stores, nothing asked for ahead */
    OPAL_COPY_AWAY,  /* out of it only: past the caches to what they would not hold anyway, wherever its lines are */
} opal_copy_how_t;

typedef void (*opal_copy_fn_t)(void *to, const void *from, size_t len);

/* Has the processor a quick instruction for copies of hundreds of bytes? One that moves a line to the common cache? Set by opal_copy_init(),
 * as are functions for copies that do without the first: by loads and stores of vectors, asking ahead for what is read; by these, asking as
 * well for what is behind its end; by these alone; and by stores past the caches, which are over when it returns. Any length; NULL: there is
 * none. */
OPAL_DECLSPEC extern bool opal_copy_has_rep, opal_cache_has_demote;
OPAL_DECLSPEC extern opal_copy_fn_t opal_copy_vectors, opal_copy_onward, opal_copy_plain, opal_copy_past;
OPAL_DECLSPEC void opal_copy_init(void);

/* Any number of bytes in one of the special ways; memcpy() where the processor has none. */
OPAL_DECLSPEC void opal_copy_special(void *to, const void *from, size_t len, opal_copy_how_t how);

/* Any number of bytes by the processor's instruction for copies; memcpy() where it is not known to be quick. */
static OPAL_ALWAYS_INLINE void opal_copy_rep(void *to, const void *from, size_t len)
{
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they see no assembly */
    if (opal_copy_has_rep) {
        __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(len) : : "memory");
        return;
    }
#endif
    opal_copy(to, from, len);
}

/*
 * Any number of bytes to or from memory that another processor reads, or has written: `shared`, which is one of the other two. Where that
 * begins with a cache line, whole lines go over by the instruction for copies, which does not fetch what it overwrites. Not for what
 * somebody waits for: the first bytes come later that way.
 */
static OPAL_ALWAYS_INLINE void opal_copy_between(void *to, const void *from, size_t len, const void *shared)
{
    if (len >= OPAL_COPY_REP_MIN && len <= OPAL_COPY_REP_MAX && (uintptr_t) shared % OPAL_COPY_LINE == 0) {
        opal_copy_rep(to, from, len);
    } else {
        opal_copy(to, from, len);
    }
}

/* Into memory that another processor will read. */
static OPAL_ALWAYS_INLINE void opal_copy_into(void *to, const void *from, size_t len, opal_copy_how_t how)
{
    if (OPAL_UNLIKELY(how != OPAL_COPY_ANY)) {
        opal_copy_special(to, from, len, how);
    } else {
        opal_copy_between(to, from, len, to);
    }
}

/* Out of memory that another processor has written. What fits the first-level cache is quicker there by plain loads and stores. What was
 * written past the caches comes from memory, which the C library is good at. */
static OPAL_ALWAYS_INLINE void opal_copy_out(void *to, const void *from, size_t len, opal_copy_how_t how)
{
    if (OPAL_UNLIKELY(how != OPAL_COPY_ANY && how != OPAL_COPY_PAST)) {
        opal_copy_special(to, from, len, how);
    } else if (len > OPAL_COPY_REP_MAX && len <= OPAL_COPY_VECTOR_MAX && opal_copy_vectors && how == OPAL_COPY_ANY) {
        opal_copy_vectors(to, from, len);
    } else {
        opal_copy_between(to, from, len, from);
    }
}

/* As opal_copy_out(), of a part of what goes on behind it, which is read next if it is there yet. */
static OPAL_ALWAYS_INLINE void opal_copy_out_part(void *to, const void *from, size_t len, opal_copy_how_t how)
{
    if (how == OPAL_COPY_ANY && opal_copy_onward) {
        opal_copy_onward(to, from, len);
    } else {
        opal_copy_out(to, from, len, how);
    }
}

/*
 * Three words that were just written one by one, e.g. a header on the stack. A compiler would read two of them with one
 * load, which then waits until both stores have left the store buffer; read one by one they are forwarded.
 */
static OPAL_ALWAYS_INLINE void opal_copy_words3(void *to, const void *from)
{
    uint64_t w[3];
    memcpy(&w[0], from, 8);
    memcpy(&w[1], (const char *) from + 8, 8);
    memcpy(&w[2], (const char *) from + 16, 8);
    __asm__("" : "+r"(w[0]), "+r"(w[1]), "+r"(w[2]));
    memcpy(to, &w[0], 8);
    memcpy((char *) to + 8, &w[1], 8);
    memcpy((char *) to + 16, &w[2], 8);
}

/* Fetch lines that will be read soon. Any addresses will do. */
static OPAL_ALWAYS_INLINE void opal_prefetch_lines(const void *lines, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        __builtin_prefetch((const char *) lines + i * OPAL_COPY_LINE);
    }
}

/* Fetch a line that will be written soon, so that the stores don't wait for it. Any address will do. */
static OPAL_ALWAYS_INLINE void opal_prefetch_write(const void *line)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw (%0)" : : "r"(line)); /* the compiler's builtin asks for it only if told the processor */
#else
    __builtin_prefetch(line, 1);
#endif
}

/* A line was written for another core: move it to the cache that both share. No operation on processors that don't
 * know it (Intel SDM, CLDEMOTE: its code is one of the hint NOPs). */
static OPAL_ALWAYS_INLINE void opal_cache_demote(const void *line)
{
#if defined(__x86_64__)
    __asm__ volatile("cldemote (%0)" : : "r"(line));
#else
    (void) line;
#endif
}

/* The same of all its lines: no operation either, but not for nothing. */
static inline void opal_cache_demote_lines(const void *lines, size_t len)
{
    for (size_t at = 0; at < len; at += OPAL_COPY_LINE) {
        opal_cache_demote((const char *) lines + at);
    }
}

#endif
