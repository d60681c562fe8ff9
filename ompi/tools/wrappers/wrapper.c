/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* mpicc and mpicxx: run the compiler with what an MPI program needs besides. Built twice, for C and
 * (WRAPPER_CXX) for C++, with the compiler and flags that configure found (WRAPPER_COMPILER,
 * WRAPPER_LDFLAGS); the directories are those of the installation, wherever it was moved. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "opal/util/installdirs.h"

#ifdef WRAPPER_CXX
#define WRAPPER_NAME "mpicxx"
#define WRAPPER_LANGUAGE "C++"
#define WRAPPER_ENV "OMPI_CXX", "MPICH_CXX"
#define WRAPPER_ENV_FIRST "OMPI_CXX"
#define WRAPPER_ENV_LIST "OMPI_CXX or MPICH_CXX"
#define WRAPPER_ENV_FLAGS "OMPI_CXXFLAGS"
#else
#define WRAPPER_NAME "mpicc"
#define WRAPPER_LANGUAGE "C"
#define WRAPPER_ENV "OMPI_CC", "MPICH_CC"
#define WRAPPER_ENV_FIRST "OMPI_CC"
#define WRAPPER_ENV_LIST "OMPI_CC or MPICH_CC"
#define WRAPPER_ENV_FLAGS "OMPI_CFLAGS"
#endif

static const char usage[] =
    "Usage: " WRAPPER_NAME " [OPTION] COMPILER-ARGUMENTS...\n"
    "Runs " WRAPPER_COMPILER " to compile and link an MPI program; another compiler if the\n"
    "environment variable " WRAPPER_ENV_LIST " names one. Options:\n"
    "  -show, -showme      print the command, do not run it\n"
    "  -compile-info, -compile_info\n"
    "                      print the command that compiles\n"
    "  -link-info, -link_info\n"
    "                      print the command that links\n"
    "  --showme:compile    print the flags for compiling\n"
    "  --showme:link       print the flags for linking\n"
    "  --showme:incdirs    print the directories of header files\n"
    "  --showme:libdirs    print the directories of libraries\n"
    "  --showme:libs       print the names of libraries\n"
    "  --showme:command    print the compiler's name\n"
    "  --showme:version    print the version of " PACKAGE_NAME "\n"
    "  --showme:help       print this text\n"
    "All else, --help and --version too, goes to the compiler.\n";

/* ---- A list of words: a command in the making ---- */

typedef struct words {
    char **word; /* NULL-terminated */
    size_t count, room;
} words_t;

static void *must(void *memory)
{
    if (memory == NULL) {
        fprintf(stderr, WRAPPER_NAME ": out of memory\n");
        exit(1);
    }
    return memory;
}

static void add_owned(words_t *words, char *word)
{
    if (words->count + 1 >= words->room) {
        words->room = words->room == 0 ? 32 : words->room * 2;
        words->word = must(realloc(words->word, words->room * sizeof *words->word));
    }
    words->word[words->count++] = word;
    words->word[words->count] = NULL;
}

static void add(words_t *words, const char *word)
{
    add_owned(words, must(strdup(word)));
}

static void add_joined(words_t *words, const char *head, const char *tail)
{
    char *word = must(malloc(strlen(head) + strlen(tail) + 1));

    strcpy(word, head);
    strcat(word, tail);
    add_owned(words, word);
}

/* Adds the words of a text that blanks separate. */
static void add_split(words_t *words, const char *text)
{
    char *copy = must(strdup(text)), *rest = copy, *word;

    while ((word = strtok_r(rest, " \t\n", &rest)) != NULL) {
        add(words, word);
    }
    free(copy);
}

static void add_environment(words_t *words, const char *name)
{
    const char *value = getenv(name);

    if (value != NULL) {
        add_split(words, value);
    }
}

static void add_all(words_t *words, char **more)
{
    for (; *more != NULL; more++) {
        add(words, *more);
    }
}

/* For a shell: a word with anything special in it is quoted. */
static void print_word(const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "-_=+,./:@%^";

    if (*word != '\0' && strspn(word, plain) == strlen(word)) {
        fputs(word, stdout);
        return;
    }
    putchar('\'');
    for (; *word != '\0'; word++) {
        if (*word == '\'') {
            fputs("'\\''", stdout);
        } else {
            putchar(*word);
        }
    }
    putchar('\'');
}

/* The exit code of what only prints. */
static int printed(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) {
        return 0;
    }
    perror(WRAPPER_NAME ": standard output");
    return 1;
}

static int print(const words_t *words)
{
    for (size_t i = 0; i < words->count; i++) {
        if (i > 0) {
            putchar(' ');
        }
        print_word(words->word[i]);
    }
    putchar('\n');
    return printed();
}

/* ---- What an MPI program needs ---- */

static void add_compiler(words_t *words)
{
    static const char *const names[] = { WRAPPER_ENV };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && value[strspn(value, " \t\n")] != '\0') {
            add_split(words, value);
            return;
        }
    }
    add_split(words, WRAPPER_COMPILER);
}

static void add_compile_flags(words_t *words)
{
    add_environment(words, "OMPI_CPPFLAGS");
    add_joined(words, "-I", opal_installdirs()->includedir);
    add_environment(words, WRAPPER_ENV_FLAGS);
}

/* The program finds the library by its RUNPATH; LD_LIBRARY_PATH, looked at first, may name another
 * library of the same ABI. */
static void add_link_flags(words_t *words)
{
    add_environment(words, "OMPI_LDFLAGS");
    add_joined(words, "-L", opal_installdirs()->libdir);
    add_joined(words, "-Wl,-rpath,", opal_installdirs()->libdir);
    add(words, "-Wl,--enable-new-dtags");
    add_split(words, WRAPPER_LDFLAGS);
    add(words, "-lmpi_abi");
    add_environment(words, "OMPI_LIBS");
}

/* ---- Command line ---- */

static bool is_one_of(const char *word, const char *const *list)
{
    for (; *list != NULL; list++) {
        if (strcmp(word, *list) == 0) {
            return true;
        }
    }
    return false;
}

/* Options after which the compiler does not link. */
static bool stops_before_link(const char *word)
{
    static const char *const options[] = { "-c", "-S", "-E", "-M", "-MM", "-fsyntax-only", NULL };

    return is_one_of(word, options);
}

/* Options whose next word is a file, or another program's, whatever it looks like: "-Xlinker -E". */
static bool takes_next(const char *word)
{
    static const char *const options[] = { "-o", "-Xlinker", "-Xassembler", "-Xpreprocessor", "-Xclang", NULL };

    return is_one_of(word, options);
}

/* Whether there is anything to compile or link: without it ("mpicc --version") the compiler gets just
 * the user's words, which may be a question about itself. */
static bool has_input(char **arguments)
{
    for (; *arguments != NULL; arguments++) {
        if (strcmp(*arguments, "-o") == 0 && arguments[1] != NULL) {
            arguments++;
        } else if ((*arguments)[0] != '-' || (*arguments)[1] == '\0' ||
                   strncmp(*arguments, "-l", 2) == 0) {
            return true;
        }
    }
    return false;
}

static bool wants_link(char **arguments)
{
    for (; *arguments != NULL; arguments++) {
        if (takes_next(*arguments) && arguments[1] != NULL) {
            arguments++;
        } else if (stops_before_link(*arguments)) {
            return false;
        }
    }
    return true;
}

/* The whole command. For -show without files: all flags, as if there were some. */
static void make_command(words_t *command, char **arguments, bool show)
{
    bool flags = show || has_input(arguments);

    add_compiler(command);
    if (flags) {
        add_compile_flags(command);
    }
    add_all(command, arguments);
    if (flags && wants_link(arguments)) {
        add_link_flags(command);
    }
}

/* Answers the question behind "--showme:". */
static int show_item(const char *item)
{
    words_t words = { 0 };

    if (strcmp(item, "compile") == 0) {
        add_compile_flags(&words);
    } else if (strcmp(item, "link") == 0) {
        add_link_flags(&words);
    } else if (strcmp(item, "incdirs") == 0) {
        add(&words, opal_installdirs()->includedir);
    } else if (strcmp(item, "libdirs") == 0) {
        add(&words, opal_installdirs()->libdir);
    } else if (strcmp(item, "libs") == 0) {
        add(&words, "mpi_abi");
    } else if (strcmp(item, "command") == 0) {
        add_compiler(&words);
    } else if (strcmp(item, "version") == 0) {
        printf(WRAPPER_NAME ": " PACKAGE_NAME " " PACKAGE_VERSION " (Language: " WRAPPER_LANGUAGE
               ")\n");
        return printed();
    } else if (strcmp(item, "help") == 0) {
        fputs(usage, stdout);
        return printed();
    } else {
        fprintf(stderr, WRAPPER_NAME ": no such item: --showme:%s\n"
                "Try --showme:help.\n", item);
        return 1;
    }
    return print(&words);
}

/* MPICH's questions: one whole command for each step. */
static int show_step(bool link)
{
    words_t words = { 0 };

    add_compiler(&words);
    if (link) {
        add_link_flags(&words);
    } else {
        add_compile_flags(&words);
    }
    return print(&words);
}

/* The item of "-showme:ITEM" or "--showme:ITEM", or NULL. */
static const char *showme_item(const char *word)
{
    static const char option[] = "-showme:";

    word += word[0] == '-' && word[1] == '-';
    return strncmp(word, option, sizeof option - 1) == 0 ? word + sizeof option - 1 : NULL;
}

static int run(words_t *command)
{
    execvp(command->word[0], command->word);
    fprintf(stderr, WRAPPER_NAME ": cannot run the compiler %s: %s\n"
            "Install it, or name another one in the environment variable %s.\n",
            command->word[0], strerror(errno), WRAPPER_ENV_FIRST);
    return errno == ENOENT ? 127 : 126;
}

int main(int argc, char **argv)
{
    static const char *const step_options[] = { "-compile-info", "-compile_info", "-link-info",
                                                "-link_info", NULL };
    static const char *const show_options[] = { "-show", "--show", "-showme", "--showme", NULL };
    words_t command = { 0 };
    bool show = false;
    int kept = 1;

    for (int i = 1; i < argc; i++) {
        if (showme_item(argv[i]) != NULL) {
            return show_item(showme_item(argv[i]));
        }
        if (is_one_of(argv[i], step_options)) {
            return show_step(argv[i][1] == 'l');
        }
        if (is_one_of(argv[i], show_options)) {
            show = true;
        } else {
            argv[kept++] = argv[i];
        }
    }
    argv[kept] = NULL;
    if (kept == 1 && !show) {
        fputs(usage, stderr);
        return 1;
    }
    make_command(&command, argv + 1, show);
    return show ? print(&command) : run(&command);
}
