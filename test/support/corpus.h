/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Runs a fuzz target without libFuzzer: its corpus, and a fixed number of mutations of each input,
 * the same ones unless told otherwise (support/fuzz.h). */
#ifndef TEST_SUPPORT_CORPUS_H
#define TEST_SUPPORT_CORPUS_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "test/support/fuzz.h"
#include "test/support/tap.h"

enum { CORPUS_MUTATIONS = 20000, CORPUS_INPUT_MAX = 4096 };

static unsigned corpus_seed = 20261120;

static unsigned corpus_below(unsigned n)
{
    return (unsigned) rand_r(&corpus_seed) % n;
}

/* The first byte, which chooses what is fuzzed, stays. */
static void corpus_mutate(const uint8_t *data, size_t size)
{
    static uint8_t input[CORPUS_INPUT_MAX];
    for (int i = 0; i < CORPUS_MUTATIONS * fuzz_times(); i++) {
        memcpy(input, data, size);
        size_t len = corpus_below(8) == 0 ? corpus_below((unsigned) size + 1) : size;
        for (unsigned k = 0, n = corpus_below(5); k < n && len > 1; k++) {
            size_t at = 1 + corpus_below((unsigned) len - 1);
            input[at] = corpus_below(2) ? (uint8_t) corpus_below(256)
                                      : (uint8_t) (input[at] ^ 1 << corpus_below(8));
        }
        LLVMFuzzerTestOneInput(input, len);
    }
}

static bool corpus_file(const char *path)
{
    static uint8_t data[CORPUS_INPUT_MAX];
    FILE *file = fopen(path, "re");
    size_t size = file ? fread(data, 1, sizeof(data), file) : 0;
    if (file) {
        fclose(file);
    }
    if (size > 0) {
        LLVMFuzzerTestOneInput(data, size);
        corpus_mutate(data, size);
    }
    return size > 0;
}

/* All inputs in test/fuzz/<corpus>, of which there are at least `least`. */
static int corpus_run(const char *corpus, int least)
{
    char path[4096];
    const char *top = getenv("top_srcdir");
    int count = 0;
    tap_start(120 * (unsigned) fuzz_times());
    corpus_seed = fuzz_seed(corpus_seed);
    snprintf(path, sizeof(path), "%s/test/fuzz/%s", top ? top : ".", corpus);
    DIR *dir = opendir(path);
    TAP_REQUIRE(dir != NULL, "the corpus is there");
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] != '.') {
            snprintf(path, sizeof(path), "%s/test/fuzz/%s/%.255s", top ? top : ".", corpus,
                     entry->d_name);
            TAP_OK(corpus_file(path), "%s and %d mutations", entry->d_name, CORPUS_MUTATIONS);
            count++;
        }
    }
    closedir(dir);
    TAP_OK(count >= least, "%d inputs", count);
    return tap_end();
}

#endif
