/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Error classes, codes and texts: routines that may be called before MPI_Init. */
#include <string.h>

#include "mpi.h"
#include "test/support/tap.h"

static bool text_starts(int code, const char *start)
{
    char text[MPI_MAX_ERROR_STRING];
    int length = -1;

    return MPI_Error_string(code, text, &length) == MPI_SUCCESS && (int) strlen(text) == length &&
           strncmp(text, start, strlen(start)) == 0;
}

static void test_standard(void)
{
    bool texts = true, classes = true;
    int error_class;

    for (int code = MPI_SUCCESS; code <= MPI_ERR_ABI; code++) {
        texts = texts && text_starts(code, code == MPI_SUCCESS ? "MPI_SUCCESS: " : "MPI_ERR_");
        classes = classes && MPI_Error_class(code, &error_class) == 0 && error_class == code;
    }
    for (int code = MPI_T_ERR_CANNOT_INIT; code <= MPI_T_ERR_PVAR_NO_ATOMIC; code++) {
        texts = texts && text_starts(code, "MPI_T_ERR_");
        classes = classes && MPI_Error_class(code, &error_class) == 0 && error_class == code;
    }
    TAP_OK(texts, "every class of the standard has its text");
    TAP_OK(classes, "every class of the standard is its own class");
    TAP_OK(text_starts(MPI_ERR_TRUNCATE, "MPI_ERR_TRUNCATE: "), "the text names the class");
}

static void test_added(void)
{
    int first = 0, second = 0, code = 0, other = 0, error_class = 0;

    TAP_OK(MPI_Add_error_class(&first) == 0 && first > MPI_ERR_LASTCODE, "a new class");
    TAP_OK(MPI_Add_error_class(&second) == 0 && second != first, "another one");
    TAP_OK(MPI_Add_error_code(first, &code) == 0 && code != first && code != second, "a new code");
    TAP_OK(MPI_Add_error_code(MPI_ERR_IO, &other) == 0, "a code of a standard class");
    TAP_OK(MPI_Error_class(code, &error_class) == 0 && error_class == first, "the code's class");
    TAP_OK(MPI_Error_class(other, &error_class) == 0 && error_class == MPI_ERR_IO, "and the other's");
    TAP_OK(MPI_Error_class(first, &error_class) == 0 && error_class == first, "the class's class");
    TAP_OK(text_starts(code, ""), "no text yet");
    TAP_OK(MPI_Add_error_string(code, "the hold is flooded") == 0, "a text for the code");
    TAP_OK(text_starts(code, "the hold is flooded"), "is what is told");
    TAP_OK(MPI_Add_error_string(code, "pumps running") == 0 && text_starts(code, "pumps running"),
           "may be replaced");
    TAP_OK(MPI_Remove_error_string(code) == 0 && MPI_Remove_error_code(code) == 0 &&
           MPI_Remove_error_class(first) == 0, "all removed, text first");
    TAP_OK(MPI_Remove_error_code(other) == 0 && MPI_Remove_error_class(second) == 0, "the rest too");
}

int main(void)
{
    tap_start(20);
    test_standard();
    test_added();
    return tap_end();
}
