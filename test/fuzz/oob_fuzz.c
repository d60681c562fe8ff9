/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzing of what mpirun and its daemons read from each other and from strangers: greetings,
 * frames, contents of messages, contact texts; the whole of a stranger's bytes at the door; frames
 * and collectives' messages of one who knows the key. The first byte of the input chooses.
 * Built with -fsanitize=fuzzer -DHAWSER_LIBFUZZER it is a libFuzzer target; otherwise it runs the
 * corpus found in the source tree and a fixed number of mutations of it, always the same ones.
 */
#include "orte/oob/internal.h"

#include "opal/mca/base/var.h"
#include "opal/util/argv.h"
#include "orte/mca/grpcomm/grpcomm.h"
#include "test/support/fuzz_targets.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { COUNT = 9, RADIX = 2, TAG = ORTE_OOB_TAG_FIRST };

static void fuzz_greeting(const uint8_t *data, size_t size)
{
    oob_greeting_type_t type;
    oob_speaker_t speaker;
    oob_hello_t hello;
    oob_challenge_t challenge;
    oob_verdict_t verdict;
    size_t len;

    if (size < OOB_HEAD_BYTES ||
        oob_head_read(data, "1.0", &type, &len, &speaker) != OPAL_SUCCESS) {
        return;
    }
    must(len <= OOB_GREETING_MAX && strlen(speaker.host) < OOB_HOST_BYTES);
    if (len > size) {
        return;
    }
    if (type == OOB_HELLO && oob_hello_read(data, &hello) == OPAL_SUCCESS) {
        must(hello.radix > 0);
    } else if (type == OOB_CHALLENGE) {
        oob_challenge_read(data, &challenge);
    } else if (type == OOB_VERDICT && oob_verdict_read(data, &verdict) == OPAL_SUCCESS) {
        must(oob_verdict_text(verdict) != NULL);
    }
}

static void fuzz_frame(const uint8_t *data, size_t size)
{
    oob_frame_t frame;
    uint8_t again[OOB_FRAME_HEADER];

    if (size >= OOB_FRAME_HEADER && oob_frame_read(data, COUNT, 1 << 20, &frame)) {
        must(frame.len <= OOB_FRAME_LEN_MAX && frame.from < COUNT);
        oob_frame_write(again, &frame);
        must(memcmp(again, data, sizeof(again)) == 0);
    }
}

/* The bytes say in which order which types are read. */
static void fuzz_pack(const uint8_t *data, size_t size)
{
    orte_unpack_t unpack;
    size_t piece, left = size;

    orte_unpack_init(&unpack, data, size);
    for (size_t i = 0; i < size; i++) {
        char *text = NULL, **texts = NULL;
        const uint8_t *bytes;
        switch (data[i] % 7) {
        case 0: orte_unpack_u8(&unpack); break;
        case 1: orte_unpack_u32(&unpack); break;
        case 2: orte_unpack_bool(&unpack); break;
        case 3: text = orte_unpack_string(&unpack); break;
        case 4: texts = orte_unpack_strings(&unpack); break;
        case 5:
            bytes = orte_unpack_bytes(&unpack, &piece);
            must((bytes == NULL) == (unpack.rc != OPAL_SUCCESS) && piece <= size);
            break;
        default: orte_unpack_i64(&unpack); break;
        }
        must(unpack.left <= left && (unpack.rc == OPAL_SUCCESS || (!text && !texts)));
        left = unpack.left;
        free(text);
        opal_argv_free(texts);
    }
}

/* ---- With a daemon ---- */

static struct event_base *base;
static orte_oob_config_t config = {.count = COUNT, .radix = RADIX, .hostname = "fuzz"};
static const char *contact;
static orte_oob_t *listening;

static unsigned delivered;

static void ignore(void *arg, orte_oob_message_t *message)
{
    delivered++;
    if (message->cls == ORTE_OOB_STREAM) {
        orte_oob_consumed(arg, message->from, message->size);
    }
}

static void setup(void)
{
    char why[ORTE_OOB_SENTENCE];

    if (base != NULL) {
        return;
    }
    setenv("OMPI_MCA_net_include", "127.0.0.0/8", 1);
    setenv("OMPI_MCA_oob_message_max", "1m", 1);
    base = event_base_new();
    must(base != NULL && mca_base_var_init() == OPAL_SUCCESS &&
         orte_oob_register_params() == OPAL_SUCCESS);
    listening = orte_oob_create(base, &config);
    must(listening != NULL && orte_oob_listen(listening, &contact, why) == OPAL_SUCCESS);
}

static void turn(int times)
{
    while (times-- > 0) {
        event_base_loop(base, EVLOOP_NONBLOCK);
    }
}

static void fuzz_contact(const uint8_t *data, size_t size)
{
    orte_oob_config_t child = config;
    char text[256];

    size = size < sizeof(text) - 1 ? size : sizeof(text) - 1;
    memcpy(text, data, size);
    text[size] = '\0';
    setup();
    child.index = 1;
    orte_oob_t *oob = orte_oob_create(base, &child);
    must(oob != NULL);
    if (orte_oob_connect(oob, text) == OPAL_SUCCESS) { /* but not turned: no packet leaves */
        must(oob->connector.count > 0 && oob->connector.addresses[0].port > 0);
    }
    orte_oob_destroy(oob);
}

/* A stranger's bytes, in one piece and cut in two. */
static void fuzz_door(const uint8_t *data, size_t size)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct linger reset = {.l_onoff = 1}; /* no connections in TIME_WAIT */

    setup();
    to.sin_port = htons((uint16_t)atoi(strrchr(contact, ':') + 1));
    for (size_t cut = 0; cut <= size / 2; cut += size / 2 + 1) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        must(fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0);
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        if (cut > 0 && send(fd, data, cut, MSG_NOSIGNAL) > 0) {
            turn(2);
        }
        if (send(fd, data + cut, size - cut, MSG_NOSIGNAL) >= 0) {
            turn(3);
        }
        close(fd);
        turn(2);
    }
    must(listening->listener.guest_count == 0 && oob_link_at(listening, 1) == NULL);
}

/* Frames of the daemon below, with right codes: headers as they come, bytes as they follow. */
static void send_frames(int fd, const uint8_t *data, size_t size)
{
    static const uint8_t key[OPAL_SHA256_BYTES];
    static uint8_t out[OOB_FRAME_MAX];
    opal_hmac_sha256_t hmac;
    uint64_t position = 0;
    uint32_t len;

    opal_hmac_sha256_init(&hmac, key, sizeof(key));
    while (size >= OOB_FRAME_HEADER && oob_frame_len(data, &len)) {
        uint8_t *body = out + OOB_FRAME_HEADER;
        memset(out, 0, sizeof(out));
        memcpy(out, data, OOB_FRAME_HEADER);
        data += OOB_FRAME_HEADER;
        size -= OOB_FRAME_HEADER;
        size_t have = len < size ? len : size;
        memcpy(body, data, have);
        data += have;
        size -= have;
        oob_frame_code(&hmac, position++, out, body, len, body + len);
        if (send(fd, out, OOB_FRAME_HEADER + len + OOB_FRAME_CODE,
                 MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
            return;
        }
        turn(1);
    }
}

static void fuzz_insider(const uint8_t *data, size_t size)
{
    static const uint8_t key[OPAL_SHA256_BYTES];
    oob_speaker_t speaker;
    int fds[2];

    setup();
    orte_oob_t *oob = orte_oob_create(base, &config);
    orte_grpcomm_t *grpcomm = oob == NULL ? NULL : orte_grpcomm_create(oob);
    must(grpcomm != NULL && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    orte_oob_handle(oob, TAG, ignore, oob);
    orte_oob_send(oob, 1, TAG, ORTE_OOB_STREAM, calloc(1, 100), 100);
    oob_speaker_set(&speaker, "1.0", "inside");
    must(oob_link_up(oob, 1, fds[0], &speaker, key, key) == OPAL_SUCCESS);
    send_frames(fds[1], data, size);
    turn(3);
    close(fds[1]);
    turn(2);
    must(orte_oob_is_lost(oob, 1));
    orte_grpcomm_destroy(grpcomm);
    orte_oob_destroy(oob);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const fuzz_target_t targets[] = {
        fuzz_greeting, fuzz_frame, fuzz_pack, fuzz_contact, fuzz_door, fuzz_insider};
    return fuzz_one_of(targets, sizeof(targets) / sizeof(targets[0]), data, size);
}

#ifndef HAWSER_LIBFUZZER
#include "test/support/fuzz.h"
#include "test/support/tap.h"

enum { MUTATIONS = 10000, SLOW_MUTATIONS = 400, INPUT_MAX = 4096 };

static unsigned seed = 20261120;

static unsigned random_below(unsigned n)
{
    return (unsigned)rand_r(&seed) % n;
}

/* Inputs for a daemon are slow: fewer of them. */
static void mutate(const uint8_t *data, size_t size)
{
    static uint8_t input[INPUT_MAX];
    int count = (data[0] % 6 < 3 ? MUTATIONS : SLOW_MUTATIONS) * fuzz_times();

    for (int i = 0; i < count; i++) {
        memcpy(input, data, size);
        size_t len = random_below(8) == 0 ? 1 + random_below((unsigned)size) : size;
        for (unsigned k = 0, n = random_below(5); k < n && len > 1; k++) {
            size_t at = 1 + random_below((unsigned)len - 1);
            input[at] = random_below(2) ? (uint8_t)random_below(256)
                                        : (uint8_t)(input[at] ^ 1 << random_below(8));
        }
        LLVMFuzzerTestOneInput(input, len);
    }
}

static bool run_file(const char *path)
{
    static uint8_t data[INPUT_MAX];
    FILE *file = fopen(path, "re");
    size_t size = file == NULL ? 0 : fread(data, 1, sizeof(data), file);

    if (file != NULL) {
        fclose(file);
    }
    if (size > 0) {
        LLVMFuzzerTestOneInput(data, size);
        mutate(data, size);
    }
    return size > 0;
}

int main(void)
{
    char path[4096];
    const char *top = getenv("top_srcdir");
    int count = 0;

    tap_start(180 * (unsigned)fuzz_times());
    seed = fuzz_seed(seed);
    if (freopen("/dev/null", "w", stderr) == NULL) { /* damaged messages are reported */
        return 99;
    }
    snprintf(path, sizeof(path), "%s/test/fuzz/oob", top ? top : ".");
    DIR *dir = opendir(path);
    TAP_REQUIRE(dir != NULL, "the corpus is there");
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] != '.') {
            snprintf(path, sizeof(path), "%s/test/fuzz/oob/%.255s", top ? top : ".",
                     entry->d_name);
            TAP_OK(run_file(path), "%s and its mutations", entry->d_name);
            count++;
        }
    }
    closedir(dir);
    TAP_OK(count >= 12, "%d inputs", count);
    TAP_OK(delivered > 100, "%u of their messages were delivered", delivered);
    orte_oob_destroy(listening);
    event_base_free(base);
    libevent_global_shutdown();
    return tap_end();
}
#endif
