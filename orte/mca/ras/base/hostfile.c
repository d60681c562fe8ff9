/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Reading host files: ours, and the plain lists of names that resource managers write. */
#include "orte/mca/ras/base/base.h"

#include "opal/constants.h"
#include "orte/util/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#define SPACE " \t\r\n"
#define BYTE_ORDER_MARK "\xef\xbb\xbf" /* what some editors put before UTF-8 */

/* "a = b" becomes "a=b", in place. */
static void close_assignments(char *line)
{
    char *to = line;

    for (char *from = line; *from != '\0'; from++) {
        size_t blanks = strspn(from, SPACE);
        if (blanks > 0 && from[blanks] == '=') {
            from += blanks;
        }
        *to++ = *from;
        if (*from == '=') {
            from += strspn(from + 1, SPACE);
        }
    }
    *to = '\0';
}

typedef struct {
    int slots, max_slots, port;
    char *user; /* in the line */
} words_t;

/* One NAME=VALUE; false: not understood. */
static bool take_word(char *word, words_t *words)
{
    static const struct {
        const char *name;
        size_t field;
    } numbers[] = {
        {"slots", offsetof(words_t, slots)},         {"count", offsetof(words_t, slots)},
        {"cpu", offsetof(words_t, slots)},           {"max_slots", offsetof(words_t, max_slots)},
        {"max-slots", offsetof(words_t, max_slots)}, {"port", offsetof(words_t, port)},
    };
    static const char *const users[] = {"user", "username", "user_name", "user-name"};
    char *value = strchr(word, '=');

    if (value == NULL) {
        return false;
    }
    *value++ = '\0';
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (strcasecmp(word, numbers[i].name) == 0) {
            return orte_ras_base_number(value, (int *)((char *)words + numbers[i].field));
        }
    }
    for (size_t i = 0; i < sizeof(users) / sizeof(users[0]); i++) {
        if (strcasecmp(word, users[i]) == 0) {
            words->user = value;
            return *value != '\0' && *value != '-';
        }
    }
    return false;
}

static int take_words(const char *where, char *text, words_t *words)
{
    char *save;

    for (char *word = strtok_r(text, SPACE, &save); word != NULL;
         word = strtok_r(NULL, SPACE, &save)) {
        char *shown = strdup(word);
        bool ok = shown != NULL && take_word(word, words);
        if (!ok) {
            orte_report("%s: '%s' is not understood (known after the name: slots=N, max_slots=N, "
                        "user=NAME, port=N; N at least 1)", where, shown == NULL ? word : shown);
        }
        free(shown);
        if (!ok) {
            return OPAL_ERR_PARSE;
        }
    }
    if (words->max_slots > 0 && words->slots > words->max_slots) {
        orte_report("%s: slots=%d is more than max_slots=%d", where, words->slots,
                    words->max_slots);
        return OPAL_ERR_PARSE;
    }
    return words->port <= 65535 ? OPAL_SUCCESS
                                : (orte_report("%s: port=%d: a port is at most 65535", where,
                                               words->port), OPAL_ERR_PARSE);
}

/* Give what the words say to the hosts that the line named. */
static int apply_words(orte_ras_hosts_t *hosts, int first, const words_t *words)
{
    for (int i = first; i < hosts->count; i++) {
        orte_ras_host_t *host = &hosts->at[i];
        if (words->slots > 0) {
            host->slots = words->slots;
        }
        host->max_slots = words->max_slots;
        host->port = words->port;
        if (words->user != NULL) {
            free(host->user);
            host->user = strdup(words->user);
            if (host->user == NULL) {
                return OPAL_ERR_OUT_OF_RESOURCE;
            }
        }
    }
    return OPAL_SUCCESS;
}

static int take_line(orte_ras_hosts_t *hosts, const char *where, char *line)
{
    words_t words = {0};
    int first = hosts->count;

    line[strcspn(line, "#")] = '\0';
    close_assignments(line);
    line += strspn(line, SPACE);
    size_t length = strcspn(line, SPACE);
    if (length == 0) {
        return OPAL_SUCCESS;
    }
    char *rest = line + length + (line[length] != '\0');
    line[length] = '\0';
    if (strcasecmp(line, "rank") == 0 && strchr(rest, '=') != NULL) {
        orte_report("%s: this is the line of a rank file: name the file with --rankfile", where);
        return OPAL_ERR_PARSE;
    }
    int rc = orte_ras_parse_hosts(hosts, line, where);
    if (rc == OPAL_SUCCESS) {
        rc = take_words(where, rest, &words);
    }
    return rc == OPAL_SUCCESS ? apply_words(hosts, first, &words) : rc;
}

/* Files that can be read but once (a shell's <(...), /dev/stdin): what they said, since host files are
 * asked for several times. */
typedef struct kept {
    struct kept *next;
    char *path, *text;
    size_t size;
} kept_t;

static kept_t *kept_files;

/* NULL: errno says why. */
static kept_t *keep(FILE *file, const char *path)
{
    kept_t *kept = calloc(1, sizeof(*kept));
    FILE *out = kept == NULL ? NULL : open_memstream(&kept->text, &kept->size);
    bool ok = out != NULL && (kept->path = strdup(path)) != NULL;
    char piece[4096];

    for (size_t got; ok && (got = fread(piece, 1, sizeof(piece), file)) > 0;) {
        ok = fwrite(piece, 1, got, out) == got;
    }
    ok = ok && !ferror(file) && fputc('\n', out) != EOF; /* fmemopen() wants at least a byte */
    int why = errno;
    ok = out != NULL && fclose(out) == 0 && ok;
    if (!ok) {
        if (kept != NULL) {
            free(kept->path);
            free(kept->text);
        }
        free(kept);
        errno = why;
        return NULL;
    }
    kept->next = kept_files;
    return kept_files = kept;
}

static FILE *open_lines(const char *path)
{
    kept_t *kept = kept_files;
    struct stat st;

    while (kept != NULL && strcmp(kept->path, path) != 0) {
        kept = kept->next;
    }
    if (kept == NULL) {
        FILE *file = fopen(path, "re");
        if (file == NULL || (fstat(fileno(file), &st) == 0 && S_ISREG(st.st_mode))) {
            return file;
        }
        kept = keep(file, path);
        int why = errno;
        fclose(file);
        errno = why;
    }
    return kept == NULL ? NULL : fmemopen(kept->text, kept->size, "r");
}

/* Call take() for every line, with "PATH:LINE". `what` names the file in messages. */
static int for_each_line(orte_ras_hosts_t *hosts, const char *what, const char *path,
                         int (*take)(orte_ras_hosts_t *, const char *, char *))
{
    FILE *file = open_lines(path);
    char *line = NULL, *where;
    size_t room = 0;
    int number = 0, rc = OPAL_SUCCESS;

    if (file == NULL) {
        orte_report("can't read %s %s: %s", what, path, strerror(errno));
        return OPAL_ERR_IN_ERRNO;
    }
    while (rc == OPAL_SUCCESS && getline(&line, &room, file) >= 0) {
        if (asprintf(&where, "%s:%d", path, ++number) < 0) {
            rc = OPAL_ERR_OUT_OF_RESOURCE;
            break;
        }
        bool marked = number == 1 && strncmp(line, BYTE_ORDER_MARK, strlen(BYTE_ORDER_MARK)) == 0;
        rc = take(hosts, where, marked ? line + strlen(BYTE_ORDER_MARK) : line);
        free(where);
    }
    if (rc == OPAL_SUCCESS && ferror(file)) {
        orte_report("can't read %s %s: %s", what, path, strerror(errno));
        rc = OPAL_ERR_IN_ERRNO;
    }
    free(line);
    fclose(file);
    return rc;
}

int orte_ras_read_hostfile(orte_ras_hosts_t *hosts, const char *path)
{
    int before = hosts->count;
    int rc = for_each_line(hosts, "host file", path, take_line);

    if (rc == OPAL_SUCCESS && hosts->count == before) {
        orte_report("host file %s names no host: write one a line, like 'node1 slots=4'", path);
        rc = OPAL_ERR_PARSE;
    }
    return rc;
}

static int take_name(orte_ras_hosts_t *hosts, const char *where, char *line)
{
    line += strspn(line, SPACE);
    line[strcspn(line, SPACE)] = '\0';
    return line[0] == '\0' ? OPAL_SUCCESS : orte_ras_add(hosts, line, 1, where);
}

int orte_ras_read_names(orte_ras_hosts_t *hosts, const char *path, const char *variable)
{
    char what[128];

    snprintf(what, sizeof(what), "the file that %s names,", variable);
    return for_each_line(hosts, what, path, take_name);
}
