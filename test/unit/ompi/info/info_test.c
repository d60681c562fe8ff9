/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Info objects, also before MPI is initialised and after it is finalised. */
#include <mpi.h>
#include <string.h>

#include "support/tap.h"

static void check_values(const char *when)
{
    MPI_Info info, copy;
    char value[MPI_MAX_INFO_VAL], key[MPI_MAX_INFO_KEY];
    int flag, n, length;
    MPI_Info_create(&info);
    MPI_Info_set(info, "one", "1");
    MPI_Info_set(info, "two", "zwei");
    MPI_Info_set(info, "three", "a longer value");
    MPI_Info_set(info, "two", "2");
    MPI_Info_get_nkeys(info, &n);
    TAP_OK(n == 3, "%s: setting a key again replaces it", when);
    MPI_Info_get_nthkey(info, 1, key);
    TAP_OK(strcmp(key, "two") == 0, "%s: keys stay in order", when);
    MPI_Info_get(info, "three", 4, value, &flag);
    TAP_OK(flag && strcmp(value, "a lo") == 0, "%s: a value is cut off at valuelen", when);
    MPI_Info_get_valuelen(info, "three", &length, &flag);
    TAP_OK(flag && length == 14, "%s: length without the zero", when);
    length = 5;
    MPI_Info_get_string(info, "three", &length, value, &flag);
    TAP_OK(flag && length == 15 && strcmp(value, "a lo") == 0,
           "%s: get_string tells the room it needs", when);
    length = 0;
    strcpy(value, "untouched");
    MPI_Info_get_string(info, "three", &length, value, &flag);
    TAP_OK(flag && length == 15 && strcmp(value, "untouched") == 0,
           "%s: a buffer of 0 is not written", when);
    length = sizeof value;
    MPI_Info_get_string(info, "four", &length, value, &flag);
    TAP_OK(!flag && length == (int) sizeof value && strcmp(value, "untouched") == 0,
           "%s: a key that is not there", when);
    MPI_Info_dup(info, &copy);
    MPI_Info_delete(info, "one");
    MPI_Info_get_nkeys(info, &n);
    TAP_OK(n == 2, "%s: delete", when);
    MPI_Info_get_nthkey(info, 0, key);
    TAP_OK(strcmp(key, "two") == 0, "%s: the next key moves up", when);
    MPI_Info_get(copy, "one", sizeof value - 1, value, &flag);
    TAP_OK(flag && strcmp(value, "1") == 0, "%s: a copy is independent", when);
    MPI_Info_free(&info);
    MPI_Info_free(&copy);
    TAP_OK(info == MPI_INFO_NULL && copy == MPI_INFO_NULL, "%s: handles are null after the end",
           when);
}

static void check_many(void)
{
    MPI_Info info;
    char key[32], value[32];
    int flag, good = 0;
    MPI_Info_create(&info);
    for (int i = 0; i < 1000; i++) {
        snprintf(key, sizeof key, "key %d", i);
        snprintf(value, sizeof value, "%d", 7 * i);
        MPI_Info_set(info, key, value);
    }
    for (int i = 999; i >= 0; i--) {
        snprintf(key, sizeof key, "key %d", i);
        MPI_Info_get(info, key, sizeof value - 1, value, &flag);
        good += flag && atoi(value) == 7 * i;
    }
    TAP_OK(good == 1000, "a thousand keys");
    MPI_Info_free(&info);
}

static void check_limits(void)
{
    MPI_Info info;
    char key[MPI_MAX_INFO_KEY + 1], value[MPI_MAX_INFO_VAL + 1];
    int flag, length;
    memset(key, 'k', sizeof key);
    memset(value, 'v', sizeof value);
    key[MPI_MAX_INFO_KEY] = value[MPI_MAX_INFO_VAL] = '\0';
    MPI_Info_create(&info);
    TAP_OK(MPI_Info_set(info, key, "x") == MPI_ERR_INFO_KEY, "a key that is too long");
    TAP_OK(MPI_Info_set(info, "", "x") == MPI_ERR_INFO_KEY, "an empty key");
    TAP_OK(MPI_Info_set(info, "k", value) == MPI_ERR_INFO_VALUE, "a value that is too long");
    TAP_OK(MPI_Info_delete(info, "k") == MPI_ERR_INFO_NOKEY, "deleting what is not there");
    key[MPI_MAX_INFO_KEY - 1] = value[MPI_MAX_INFO_VAL - 1] = '\0';
    TAP_OK(MPI_Info_set(info, key, value) == MPI_SUCCESS, "the longest key and value");
    MPI_Info_get_valuelen(info, key, &length, &flag);
    TAP_OK(flag && length == MPI_MAX_INFO_VAL - 1, "are kept");
    TAP_OK(MPI_Info_get_nthkey(info, 1, key) == MPI_ERR_ARG, "a key number that is too high");
    TAP_OK(MPI_Info_get_nthkey(info, -1, key) == MPI_ERR_ARG, "a negative key number");
    MPI_Info_free(&info);
    TAP_OK(MPI_Info_set(info, "k", "v") == MPI_ERR_INFO, "MPI_INFO_NULL is refused");
}

static void check_env(void)
{
    char value[MPI_MAX_INFO_VAL];
    int flag, length = sizeof value, n;
    MPI_Info env = MPI_INFO_ENV, own;
    MPI_Info_get_string(MPI_INFO_ENV, "maxprocs", &length, value, &flag);
    TAP_OK(flag && strcmp(value, "1") == 0, "MPI_INFO_ENV tells the number of processes");
    length = sizeof value;
    MPI_Info_get_string(MPI_INFO_ENV, "command", &length, value, &flag);
    TAP_OK(flag && strstr(value, "info_test"), "and the command: %s", value);
    TAP_OK(MPI_Info_set(MPI_INFO_ENV, "a", "b") == MPI_ERR_INFO, "it can't be changed");
    TAP_OK(MPI_Info_free(&env) == MPI_ERR_INFO && env == MPI_INFO_ENV, "or freed");
    MPI_Info_dup(MPI_INFO_ENV, &own);
    TAP_OK(MPI_Info_set(own, "a", "b") == MPI_SUCCESS, "a copy can");
    MPI_Info_free(&own);
    char *argv[] = {(char *) "prog", (char *) "-x", (char *) "7", NULL};
    MPI_Info_create_env(3, argv, &own);
    length = sizeof value;
    MPI_Info_get_string(own, "argv", &length, value, &flag);
    TAP_OK(flag && strcmp(value, "-x 7") == 0, "MPI_Info_create_env takes the arguments of main");
    MPI_Info_get_nkeys(own, &n);
    TAP_OK(n >= 5, "and adds what is known of the job");
    MPI_Info_free(&own);
}

int main(void)
{
    tap_start(60);
    check_values("before MPI_Init");
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    check_values("while MPI is up");
    check_many();
    check_limits();
    check_env();
    MPI_Finalize();
    check_values("after MPI_Finalize");
    return tap_end();
}
