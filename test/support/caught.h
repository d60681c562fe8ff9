/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What a function reports, as text: its standard error goes into a file meanwhile. */
#ifndef TEST_SUPPORT_CAUGHT_H
#define TEST_SUPPORT_CAUGHT_H

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* run(arg), with the beginning of its standard error in text[size]; `dir` has room for a file. */
static inline int caught(int (*run)(void *), void *arg, const char *dir, char *text, size_t size)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/stderr", dir);
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600), saved = dup(STDERR_FILENO);
    dup2(file, STDERR_FILENO);
    int rc = run(arg);
    dup2(saved, STDERR_FILENO);
    close(saved);
    ssize_t got = pread(file, text, size - 1, 0);
    text[got > 0 ? got : 0] = '\0';
    close(file);
    return rc;
}

#endif
