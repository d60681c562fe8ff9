/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The parts of ompi_info: its command line, and what it prints. */
#ifndef OMPI_TOOLS_OMPI_INFO_H
#define OMPI_TOOLS_OMPI_INFO_H

#include <stdbool.h>

typedef struct info_options {
    bool help, version, all, config, failed, links, selected_only, parsable;
    const char *path;                       /* --path: "all", "prefix", ...; NULL: not asked for */
    const char *framework, *component;      /* --param; NULL: not asked for */
    int level;                              /* 1 to 9 */
} info_options_t;

/* False: a message has been printed. */
bool info_parse(int argc, char **argv, info_options_t *options);
void info_usage(void);

/* ---- Printing: a labelled line for people, or a key and a value for programs ---- */

/* "                   Label: text", or "key:text". */
void info_line(const info_options_t *options, const char *label, const char *key,
               const char *format, ...)
    __attribute__((format(printf, 4, 5)));

void info_print_header(const info_options_t *options);
void info_print_config(const info_options_t *options);
/* False: there is no such kind of folder. */
bool info_print_path(const info_options_t *options);
void info_print_components(const info_options_t *options);
void info_print_failed(const info_options_t *options);
/* Starts the byte transfer layers, which are not open otherwise, for that long. False: MPI could not start with these settings. */
bool info_print_links(const info_options_t *options);
/* False: there is no such framework or component. */
bool info_print_params(const info_options_t *options);

#endif
