/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Reading host files. */
#include "orte/mca/ras/ras.h"

#include "opal/constants.h"
#include "opal/util/argv.h"
#include "orte/util/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SPACE " \t\r\n"

/* The words after the name: slots=N counts, max_slots= and max-slots= are accepted. */
static int parse_words(const char *path, int line, char *words, const char **slots)
{
    char *save;

    for (char *word = strtok_r(words, SPACE, &save); word != NULL;
         word = strtok_r(NULL, SPACE, &save)) {
        if (strncasecmp(word, "slots=", 6) == 0) {
            *slots = word + 6;
        } else if (strncasecmp(word, "max_slots=", 10) != 0 &&
                   strncasecmp(word, "max-slots=", 10) != 0) {
            orte_report("%s:%d: '%s' is not understood (known: slots=N, max_slots=N)", path, line,
                        word);
            return OPAL_ERR_PARSE;
        }
    }
    return OPAL_SUCCESS;
}

static int parse_line(const char *path, int number, char *line, char ***hosts)
{
    const char *slots = NULL;
    char *entry;

    line[strcspn(line, "#")] = '\0';
    line += strspn(line, SPACE);
    size_t length = strcspn(line, SPACE);
    if (length == 0) {
        return OPAL_SUCCESS;
    }
    char *words = line + length + (line[length] != '\0');
    line[length] = '\0';
    int rc = parse_words(path, number, words, &slots);
    if (rc != OPAL_SUCCESS) {
        return rc;
    }
    const char *colon = slots == NULL ? "" : ":";
    if (asprintf(&entry, "%s%s%s", line, colon, slots == NULL ? "" : slots) < 0) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    rc = opal_argv_append(hosts, entry);
    free(entry);
    return rc;
}

int orte_ras_read_hostfile(const char *path, char ***hosts)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t room = 0;
    int number = 0;
    int rc = OPAL_SUCCESS;

    if (file == NULL) {
        orte_report("can't read host file %s: %s", path, strerror(errno));
        return OPAL_ERR_IN_ERRNO;
    }
    while (rc == OPAL_SUCCESS && getline(&line, &room, file) >= 0) {
        rc = parse_line(path, ++number, line, hosts);
    }
    free(line);
    fclose(file);
    return rc;
}
