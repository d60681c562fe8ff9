/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The parser of setting files: every form, every error with its line, and random bytes. */
#include "opal/util/keyval.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include <stdint.h>

#include "support/tap.h"

/* What the parser reported, one line each: "12:name=value" or "12!error". */
typedef struct trace {
    char text[4096];
    size_t entries, errors;
    bool bad;           /* something that must not be */
    int last_line;
} trace_t;

static void add(trace_t *t, int line, const char *a, const char *mark, const char *b)
{
    const size_t used = strlen(t->text);
    snprintf(t->text + used, sizeof(t->text) - used, "%d%s%s%s;", line, a, mark, b);
    t->bad = t->bad || line < t->last_line;
    t->last_line = line;
}

static void entry(void *context, const char *file, int line, const char *name, const char *value)
{
    trace_t *t = context;
    char start[256];
    snprintf(start, sizeof(start), ":%s", name);
    t->entries++;
    t->bad = t->bad || NULL == file || '\0' == *name || NULL != strpbrk(name, " =#\n\t");
    add(t, line, start, "=", value);
}

static void error(void *context, const char *file, int line, const char *what)
{
    trace_t *t = context;
    t->errors++;
    t->bad = t->bad || NULL == file || '\0' == *what;
    add(t, line, "", "!", what);
}

static const opal_keyval_sink_t sink = {.entry = entry, .error = error};

static void expect(const char *text, const char *trace)
{
    trace_t t = {0};
    const int rc = opal_keyval_parse("f", text, strlen(text), &sink, &t);
    const int want = strchr(trace, '!') ? OPAL_ERR_PARSE : OPAL_SUCCESS;
    TAP_OK(0 == strcmp(t.text, trace) && rc == want && !t.bad, "%s", trace);
    if (0 != strcmp(t.text, trace)) {
        printf("# got %s\n", t.text);
    }
}

static void forms(void)
{
    expect("", "");
    expect("a=1", "1:a=1;");
    expect("a=1\nb = 2 \n\n  c\t=\t3", "1:a=1;2:b=2;4:c=3;");
    expect("# c\n  # d\na = 1 # e\nb = x#y\nc = # nothing\n", "3:a=1;4:b=x#y;5:c=;");
    expect("a = two words  \r\nb=2\r\n", "1:a=two words;2:b=2;");
    expect("a = \" x # y \" # z\nb='it\\'\n", "1:a= x # y ;2:b=it\\;");
    expect("a = \"\\\"q\\\" \\\\ \\n\"", "1:a=\"q\" \\ \\n;");
    expect("a = 1,\\\n2,\\\n3\nb=4", "1:a=1,2,3;4:b=4;");
    expect("# no continuation \\\na=1", "2:a=1;");
    expect("?x_y-z.0 = 1", "1:?x_y-z.0=1;");
    expect("a=b=c", "1:a=b=c;");
    expect("a=1\\", "1:a=1;");
    expect("a=\"\"", "1:a=;");
}

static void errors(void)
{
    expect("a=1\nnonsense\nb=2", "1:a=1;2!there is no '=' behind the parameter's name;3:b=2;");
    expect("= 5", "1!a parameter's name was expected at its start;");
    expect("a b = 5", "1!there is no '=' behind the parameter's name;");
    expect("\n\na = \"x\nb=1", "3!the quote is not closed;4:b=1;");
    expect("a = 'x' y", "1!there is text behind the closing quote;");
    expect("? = 1", "1!a parameter's name was expected at its start;");
    expect("a = 1,\\\n2\nb", "1:a=1,2;3!there is no '=' behind the parameter's name;");

    trace_t t = {0};
    const char nul[] = "a=1\nb\0=2\nc=3\n";
    const int rc = opal_keyval_parse("f", nul, sizeof(nul) - 1, &sink, &t);
    TAP_OK(OPAL_ERR_PARSE == rc && 0 == strcmp(t.text, "1:a=1;2!there is a NUL byte in it;3:c=3;"),
           "NUL byte");
}

static void files(void)
{
    trace_t t = {0};
    TAP_OK(OPAL_ERR_NOT_FOUND == opal_keyval_parse_file("/nonexistent/file", &sink, &t)
           && 0 == t.errors,
           "a missing file is not an error by itself");
    errno = 0;
    TAP_OK(OPAL_ERR_IN_ERRNO == opal_keyval_parse_file("/", &sink, &t) && EISDIR == errno
           && 1 == t.errors,
           "a directory is no file");

    char path[] = "/tmp/hawser-keyval-XXXXXX";
    const int fd = mkstemp(path);
    TAP_REQUIRE(fd >= 0, "temporary file");
    FILE *f = fdopen(fd, "w");
    for (int i = 0; i < 10000; i++) {
        fprintf(f, "name%d = value %d\n", i, i);
    }
    fclose(f);
    trace_t large = {0};
    TAP_OK(OPAL_SUCCESS == opal_keyval_parse_file(path, &sink, &large) && 10000 == large.entries
               && 10000 == large.last_line, "a file of 10000 lines");
    chmod(path, 0);
    if (0 == geteuid()) {
        TAP_SKIP("root reads everything");
    } else {
        TAP_OK(OPAL_ERR_IN_ERRNO == opal_keyval_parse_file(path, &sink, &t) && EACCES == errno,
               "an unreadable file is reported");
    }
    unlink(path);
}

/* Any bytes: no crash, lines in order, names clean, and an error reported exactly when the result
 * says so. */
static void random_bytes(void)
{
    static const char alphabet[] = "ab=#\"'\\\n\r \t?_\0x";
    uint64_t seed = 20260;
    unsigned wrong = 0;
    for (int round = 0; round < 20000; round++) {
        char text[200];
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        const size_t len = (size_t) (seed >> 33) % sizeof(text);
        for (size_t i = 0; i < len; i++) {
            seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            text[i] = 0 == round % 4 ? (char) (seed >> 40)
                : alphabet[(seed >> 40) % (sizeof(alphabet) - 1)];
        }
        char *exact = malloc(len + 1); /* so that a sanitizer sees a read behind the end */
        memcpy(exact, text, len);
        trace_t t = {0};
        const int rc = opal_keyval_parse("f", exact, len, &sink, &t);
        wrong += t.bad || (t.errors > 0) != (OPAL_ERR_PARSE == rc)
            || (rc != OPAL_SUCCESS && rc != OPAL_ERR_PARSE);
        free(exact);
    }
    TAP_OK(0 == wrong, "20000 random texts");
}

int main(void)
{
    tap_start(60);
    forms();
    errors();
    files();
    random_bytes();
    return tap_end();
}
