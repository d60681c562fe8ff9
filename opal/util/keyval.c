/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Parser of setting files. Logical lines are joined first, then taken apart in place. */
#include "opal/util/keyval.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file of settings is small; whatever is larger than this (bytes) is something else. */
enum { FILE_SIZE_MAX = 16 << 20 };

typedef struct parser {
    const char *file;
    const char *next, *end; /* text not read yet */
    int line;               /* number of the physical line that was read last */
    char *buffer;           /* the logical line, at most as long as the text */
} parser_t;

static bool is_blank(char c)
{
    return ' ' == c || '\t' == c || '\r' == c || '\f' == c || '\v' == c;
}

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || '_' == c
           || '-' == c || '.' == c;
}

static char *skip_blanks(char *at)
{
    while (is_blank(*at)) {
        at++;
    }
    return at;
}

/* Comments don't go on in the next line. */
static bool is_comment(const char *line, size_t len)
{
    size_t i = 0;
    while (i < len && is_blank(line[i])) {
        i++;
    }
    return i < len && '#' == line[i];
}

/* Put the next logical line into the buffer; its first physical line's number, or 0 at the end. The
 * length differs from the string's where a NUL byte stands in the line. */
static int next_line(parser_t *p, size_t *len)
{
    if (p->next == p->end) {
        return 0;
    }
    const int first = p->line + 1;
    size_t used = 0;
    bool more = true;
    while (more && p->next < p->end) {
        const char *newline = memchr(p->next, '\n', (size_t) (p->end - p->next));
        size_t n = (size_t) ((newline ? newline : p->end) - p->next);
        memcpy(p->buffer + used, p->next, n);
        p->next += n + (newline ? 1 : 0);
        p->line++;
        used += n;
        if (used > 0 && '\r' == p->buffer[used - 1]) {
            used--;
        }
        more = used > 0 && '\\' == p->buffer[used - 1] && !is_comment(p->buffer, used);
        if (more) {
            used--;
        }
    }
    p->buffer[used] = '\0';
    *len = used;
    return first;
}

/* A quoted value starting at its quote: unescaped in place. */
static const char *take_quoted(char *at, char **value)
{
    const char quote = *at++;
    char *out = at;
    *value = out;
    while (*at != quote) {
        if ('\0' == *at) {
            return "the quote is not closed";
        }
        if ('"' == quote && '\\' == *at && ('"' == at[1] || '\\' == at[1])) {
            at++;
        }
        *out++ = *at++;
    }
    at = skip_blanks(at + 1);
    *out = '\0';
    return '\0' == *at || '#' == *at ? NULL : "there is text behind the closing quote";
}

/* Everything up to a comment, without blanks at its end. */
static void take_plain(char *at, char **value)
{
    char *end = at;
    *value = at;
    for (char *c = at; *c != '\0' && !('#' == *c && (c == at || is_blank(c[-1]))); c++) {
        if (!is_blank(*c)) {
            end = c + 1;
        }
    }
    *end = '\0';
}

/* Take a logical line apart. NULL, or what is wrong; *name is NULL if the line holds no setting. */
static const char *take_line(char *at, char **name, char **value)
{
    *name = NULL;
    at = skip_blanks(at);
    if ('\0' == *at || '#' == *at) {
        return NULL;
    }
    char *start = at;
    if ('?' == *at) {
        at++;
    }
    const char *first = at;
    while (is_name_char(*at)) {
        at++;
    }
    if (at == first) {
        return "a parameter's name was expected at its start";
    }
    char *name_end = at;
    at = skip_blanks(at);
    if (*at != '=') {
        return "there is no '=' behind the parameter's name";
    }
    at = skip_blanks(at + 1);
    *name_end = '\0';
    const char *wrong = NULL;
    if ('"' == *at || '\'' == *at) {
        wrong = take_quoted(at, value);
    } else {
        take_plain(at, value);
    }
    *name = start;
    return wrong;
}

int opal_keyval_parse(const char *file, const char *text, size_t len,
                      const opal_keyval_sink_t *sink,
                      void *context)
{
    parser_t p = {.file = file, .next = text, .end = text + len, .buffer = malloc(len + 1)};
    int rc = OPAL_SUCCESS;
    int line;
    size_t line_len;
    if (NULL == p.buffer) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    while (0 != (line = next_line(&p, &line_len))) {
        char *name = NULL;
        char *value = NULL;
        const char *wrong = strlen(p.buffer) != line_len ? "there is a NUL byte in it"
                                                         : take_line(p.buffer, &name, &value);
        if (wrong) {
            sink->error(context, file, line, wrong);
            rc = OPAL_ERR_PARSE;
        } else if (name) {
            sink->entry(context, file, line, name, value);
        }
    }
    free(p.buffer);
    return rc;
}

/* The whole of an open file; NULL with errno set. */
static char *read_all(int fd, size_t *len)
{
    struct stat st;
    if (0 != fstat(fd, &st)) {
        return NULL;
    }
    if (S_ISDIR(st.st_mode)) {
        errno = EISDIR;
        return NULL;
    }
    size_t room = 4096;
    char *text = NULL;
    *len = 0;
    for (;;) {
        char *larger = realloc(text, room);
        if (NULL == larger || room > FILE_SIZE_MAX) {
            free(larger ? larger : text);
            errno = larger ? EFBIG : ENOMEM;
            return NULL;
        }
        text = larger;
        const ssize_t n = read(fd, text + *len, room - *len);
        if (0 == n) {
            return text;
        }
        if (n < 0 && errno != EINTR) {
            const int why = errno;
            free(text);
            errno = why;
            return NULL;
        }
        *len += n > 0 ? (size_t) n : 0;
        if (*len == room) {
            room *= 2;
        }
    }
}

int opal_keyval_parse_file(const char *file, const opal_keyval_sink_t *sink, void *context)
{
    /* Non-blocking: a FIFO somebody put there must not hang the job. */
    const int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && (ENOENT == errno || ENOTDIR == errno)) {
        return OPAL_ERR_NOT_FOUND;
    }
    size_t len = 0;
    char *text = fd < 0 ? NULL : read_all(fd, &len);
    const int why = errno;
    if (fd >= 0) {
        close(fd);
    }
    if (NULL == text) {
        sink->error(context, file, 0, strerror(why));
        errno = why;
        return OPAL_ERR_IN_ERRNO;
    }
    const int rc = opal_keyval_parse(file, text, len, sink, context);
    free(text);
    return rc;
}
