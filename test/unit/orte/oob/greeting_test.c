/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Who gets in and who does not: keys, roles, replays, strangers, versions, addresses that lead
 * astray, ports; and what a daemon that is in can't do. All in one process and one event loop. */
#include "orte/oob/internal.h"

#include "opal/mca/base/var.h"
#include "test/support/tap.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { COUNT = 7, RADIX = 2, TAG = ORTE_OOB_TAG_FIRST };

static struct event_base *base;
static uint8_t key[ORTE_OOB_KEY_BYTES];

/* What happened to a daemon. */
typedef struct {
    orte_oob_t *oob;
    const char *contact;
    unsigned connected, failed, lost, refused, messages;
    int rc;
    orte_oob_loss_t why;
    uint32_t index;
    char sentence[ORTE_OOB_SENTENCE];
} end_t;

static void on_connected(void *arg, uint32_t index, const char *hostname)
{
    end_t *end = arg;

    (void)hostname;
    end->connected++;
    end->index = index;
}

static void on_failed(void *arg, int rc, const char *sentence)
{
    end_t *end = arg;

    end->failed++;
    end->rc = rc;
    snprintf(end->sentence, sizeof(end->sentence), "%s", sentence);
}

static void on_lost(void *arg, uint32_t index, orte_oob_loss_t why, const char *sentence)
{
    end_t *end = arg;

    end->lost++;
    end->index = index;
    end->why = why;
    snprintf(end->sentence, sizeof(end->sentence), "%s", sentence);
}

static void on_refused(void *arg, uint32_t index, int rc, const char *sentence)
{
    end_t *end = arg;

    end->refused++;
    end->index = index;
    end->rc = rc;
    snprintf(end->sentence, sizeof(end->sentence), "%s", sentence);
}

static void on_message(void *arg, orte_oob_message_t *message)
{
    (void)message;
    ((end_t *)arg)->messages++;
}

static void end_create(end_t *end, uint32_t index, uint32_t radix, const uint8_t *its_key)
{
    orte_oob_config_t config = {
        .index = index, .count = COUNT, .radix = radix, .hostname = index == 0 ? "head" : "node",
        .arg = end, .on_connected = on_connected, .on_connect_failed = on_failed,
        .on_lost = on_lost, .on_refused = on_refused,
    };

    memset(end, 0, sizeof(*end));
    memcpy(config.key, its_key, sizeof(config.key));
    end->oob = orte_oob_create(base, &config);
    if (end->oob == NULL) {
        abort();
    }
    orte_oob_handle(end->oob, TAG, on_message, end);
}

static void parent_create(end_t *end)
{
    char why[ORTE_OOB_SENTENCE];

    end_create(end, 0, RADIX, key);
    TAP_REQUIRE(orte_oob_listen(end->oob, &end->contact, why) == OPAL_SUCCESS, "a parent");
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Turn the loop until the counter has this value; false after some seconds. */
static bool until(const unsigned *counter, unsigned value)
{
    for (double end = now() + 20; now() < end && *counter < value; usleep(200)) {
        event_base_loop(base, EVLOOP_NONBLOCK);
    }
    return *counter >= value;
}

/* ---- Between daemons ---- */

/* A child tries; true if it says `text` when it fails. */
static bool child_fails(const char *contact, uint32_t index, uint32_t radix, const uint8_t *its_key,
                        const char *text)
{
    end_t child;

    end_create(&child, index, radix, its_key);
    bool ok = orte_oob_connect(child.oob, contact) == OPAL_SUCCESS && until(&child.failed, 1) &&
              child.connected == 0 && strstr(child.sentence, text) != NULL;
    if (!ok) {
        printf("# rc %d: %s\n", child.rc, child.sentence);
    }
    orte_oob_destroy(child.oob);
    return ok;
}

static void test_daemons(void)
{
    uint8_t other[ORTE_OOB_KEY_BYTES];
    end_t parent, child;

    parent_create(&parent);
    memcpy(other, key, sizeof(other));
    other[31] ^= 1;
    TAP_OK(child_fails(parent.contact, 1, RADIX, other, "does not know the job's key"),
           "a key that differs in one bit");
    TAP_OK(child_fails(parent.contact, 3, RADIX, key, "it is another daemon"),
           "the child of another daemon");
    TAP_OK(child_fails(parent.contact, 1, 3, key, "it is another daemon"),
           "a child of a tree of another shape");
    end_create(&child, 1, RADIX, key);
    TAP_OK(orte_oob_connect(child.oob, parent.contact) == OPAL_SUCCESS &&
               until(&child.connected, 1) && until(&parent.connected, 1) && child.index == 0 &&
               parent.index == 1,
           "the right one");
    TAP_OK(orte_oob_connect(child.oob, parent.contact) == OPAL_ERR_EXISTS, "connecting twice");
    TAP_OK(child_fails(parent.contact, 1, RADIX, key, "connected there already"),
           "another one of its number");
    TAP_OK(parent.lost == 0 && child.lost == 0, "the right one stays");
    orte_oob_destroy(child.oob);
    TAP_OK(until(&parent.lost, 1) && parent.why == ORTE_OOB_DIED && parent.index == 1,
           "it ends: %s", parent.sentence);
    TAP_OK(child_fails(parent.contact, 1, RADIX, key, "connected there already"),
           "it does not come back");
    orte_oob_destroy(parent.oob);
}

static void test_addresses(void)
{
    static const char *const wrong[] = {
        "", ":", "1.2.3.4", "1.2.3.4:", "1.2.3.4:0", "1.2.3.4:65536", "1.2.3.4:12x", ",1.2.3.4:1",
        "1.2.3.4,:1", "[::1:5", "::1:5", "host:5", "[1.2.3.4]:5", "1.2.3.4,5.6.7.8:", NULL};
    char contact[256];
    end_t parent, child;
    unsigned bad = 0;

    parent_create(&parent);
    end_create(&child, 1, RADIX, key);
    for (int i = 0; wrong[i] != NULL; i++) {
        bad += orte_oob_connect(child.oob, wrong[i]) != OPAL_ERR_PARSE;
    }
    TAP_OK(bad == 0, "contact texts that are none");
    /* The first leads nowhere, the second to a door that is not meant, as docker0's may. */
    snprintf(contact, sizeof(contact), "192.0.2.1,127.0.0.2,%s", parent.contact);
    TAP_OK(orte_oob_connect(child.oob, contact) == OPAL_SUCCESS && until(&child.connected, 1),
           "wrong addresses before the right one");
    orte_oob_destroy(child.oob);
    orte_oob_destroy(parent.oob);
    snprintf(contact, sizeof(contact), "127.0.0.1:%d", 1);
    TAP_OK(child_fails(contact, 1, RADIX, key, "node can't connect to mpirun (127.0.0.1 port 1: "
                                               "Connection refused)"),
           "nobody there");
    TAP_OK(child_fails(contact, 3, RADIX, key, "can't connect to daemon 1 ("), "who is not there");
}

static void test_ports(void)
{
    char port[8], range[32], why[ORTE_OOB_SENTENCE];
    const char *contact;
    end_t first, second;

    parent_create(&first);
    snprintf(port, sizeof(port), "%s", strrchr(first.contact, ':') + 1);
    snprintf(range, sizeof(range), "%s-%s", port, port);
    char *saved = orte_oob_params.port_range;
    orte_oob_params.port_range = range;
    end_create(&second, 0, RADIX, key);
    int rc = orte_oob_listen(second.oob, &contact, why);
    TAP_OK(rc == OPAL_ERR_NOT_AVAILABLE && strstr(why, "host head") && strstr(why, port) &&
               strstr(why, "oob_port_range"),
           "no free port: %s", why);
    orte_oob_destroy(first.oob);
    TAP_OK(orte_oob_listen(second.oob, &contact, why) == OPAL_SUCCESS &&
               strcmp(strrchr(contact, ':') + 1, port) == 0,
           "the port of the range, when it is free");
    orte_oob_params.port_range = saved;
    orte_oob_destroy(second.oob);
}

/* ---- Strangers ---- */

static int door(const char *contact)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)atoi(strrchr(contact, ':') + 1)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0) {
        abort();
    }
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

/* Read while the loop turns; fewer than `len` at the end of the connection. */
static size_t hear(int fd, uint8_t *data, size_t len)
{
    size_t have = 0;

    for (double end = now() + 20; have < len && now() < end;) {
        event_base_loop(base, EVLOOP_NONBLOCK);
        ssize_t got = recv(fd, data + have, len - have, 0);
        if (got == 0 || (got < 0 && errno != EAGAIN)) {
            break;
        }
        have += got > 0 ? (size_t)got : 0;
    }
    return have;
}

static bool is_shut(int fd)
{
    uint8_t bytes[OOB_GREETING_MAX];

    while (hear(fd, bytes, 1) == 1) {
    }
    return recv(fd, bytes, 1, 0) == 0 || errno != EAGAIN;
}

static bool say(int fd, const void *data, size_t size)
{
    return send(fd, data, size, MSG_NOSIGNAL) == (ssize_t)size;
}

/* A child made by hand. */
typedef struct {
    int fd;
    uint8_t hello[OOB_HELLO_BYTES], challenge[OOB_CHALLENGE_BYTES], proof[OOB_PROOF_BYTES];
    opal_hmac_sha256_t tx;
    uint64_t count;
} hand_t;

static void hand_hello(hand_t *hand, const char *contact, const char *release)
{
    oob_speaker_t speaker;
    oob_hello_t hello = {.from = 1, .to = 0, .radix = RADIX, .nonce = "once"};

    oob_speaker_set(&speaker, release, "stranger");
    oob_hello_write(hand->hello, &speaker, &hello);
    hand->count = 0;
    hand->fd = door(contact);
    say(hand->fd, hand->hello, sizeof(hand->hello));
}

/* The verdict on a proof with this key, or -1. */
static int hand_prove(hand_t *hand, const uint8_t *its_key)
{
    uint8_t mac[OPAL_SHA256_BYTES], verdict[OOB_VERDICT_BYTES];
    oob_speaker_t speaker;
    oob_verdict_t result;

    if (hear(hand->fd, hand->challenge, sizeof(hand->challenge)) != sizeof(hand->challenge)) {
        return -1;
    }
    oob_speaker_set(&speaker, PACKAGE_VERSION, "stranger");
    oob_mac(its_key, 'I', hand->hello, hand->challenge, OOB_ACCEPTED, mac);
    oob_proof_write(hand->proof, &speaker, mac);
    say(hand->fd, hand->proof, sizeof(hand->proof));
    oob_mac(its_key, 'i', hand->hello, hand->challenge, OOB_ACCEPTED, mac);
    opal_hmac_sha256_init(&hand->tx, mac, sizeof(mac));
    return hear(hand->fd, verdict, sizeof(verdict)) == sizeof(verdict) &&
                   oob_verdict_read(verdict, &result) == OPAL_SUCCESS
               ? (int)result
               : -1;
}

static void test_strangers(void)
{
    uint8_t other[ORTE_OOB_KEY_BYTES] = {0}, verdict[OOB_VERDICT_BYTES] = {0};
    end_t parent, child;
    hand_t hand, replay;

    parent_create(&parent);
    hand_hello(&hand, parent.contact, PACKAGE_VERSION);
    TAP_OK(hand_prove(&hand, other) == OOB_REFUSED_PROOF && is_shut(hand.fd) &&
               parent.rc == OPAL_ERR_PERMISSION && parent.index == 1,
           "a proof with another key: %s", parent.sentence);
    close(hand.fd);

    hand_hello(&hand, parent.contact, "9.9.9");
    TAP_OK(hear(hand.fd, verdict, sizeof(verdict)) == sizeof(verdict) && is_shut(hand.fd) &&
               parent.rc == OPAL_ERR_NOT_SUPPORTED && strstr(parent.sentence, "9.9.9 ") == NULL &&
               strstr(parent.sentence, "host stranger has Hawser 9.9.9") &&
               strstr(parent.sentence, "host head has Hawser " PACKAGE_VERSION),
           "another version: %s", parent.sentence);
    close(hand.fd);

    unsigned refused = parent.refused;
    int fd = door(parent.contact);
    static const char request[] = "GET / HTTP/1.1\r\nHost: head\r\n"
                                  "Accept: text/html,application/xhtml+xml\r\n"
                                  "User-Agent: none of ours, and long enough\r\n\r\n";
    say(fd, request, sizeof(request) - 1);
    TAP_OK(is_shut(fd) && parent.refused == refused + 1 && parent.rc == OPAL_ERR_PERMISSION,
           "a web browser: %s", parent.sentence);
    close(fd);

    fd = door(parent.contact);
    say(fd, hand.hello, 20);
    double start = now();
    TAP_OK(is_shut(fd) && now() - start < 5 && parent.rc == OPAL_ERR_TIMEOUT,
           "one who says little: %s", parent.sentence);
    close(fd);

    fd = door(parent.contact);
    oob_speaker_t speaker;
    oob_speaker_set(&speaker, PACKAGE_VERSION, "stranger");
    oob_proof_write(hand.proof, &speaker, other);
    say(fd, hand.proof, sizeof(hand.proof));
    TAP_OK(is_shut(fd), "a proof without a hello");
    close(fd);

    hand_hello(&hand, parent.contact, PACKAGE_VERSION);
    TAP_OK(hand_prove(&hand, key) == OOB_ACCEPTED && until(&parent.connected, 1),
           "one who knows the key");
    close(hand.fd);
    until(&parent.lost, 1);
    orte_oob_destroy(parent.oob);

    /* The same words again, to a daemon that has not seen them. */
    parent_create(&parent);
    replay = hand;
    replay.fd = door(parent.contact);
    say(replay.fd, replay.hello, sizeof(replay.hello));
    say(replay.fd, replay.proof, sizeof(replay.proof));
    TAP_OK(is_shut(replay.fd) && parent.connected == 0 && parent.rc == OPAL_ERR_PERMISSION,
           "a replay: %s", parent.sentence);
    close(replay.fd);

    int crowd[200];
    for (int i = 0; i < 200; i++) {
        crowd[i] = door(parent.contact);
        event_base_loop(base, EVLOOP_NONBLOCK);
    }
    end_create(&child, 1, RADIX, key);
    TAP_OK(orte_oob_connect(child.oob, parent.contact) == OPAL_SUCCESS &&
               until(&child.connected, 1) &&
               parent.oob->listener.guest_count <= 64 + parent.oob->nchildren,
           "a child gets through a crowd of strangers, of whom %u are kept",
           parent.oob->listener.guest_count);
    for (int i = 0; i < 200; i++) {
        close(crowd[i]);
    }
    orte_oob_destroy(child.oob);
    orte_oob_destroy(parent.oob);
}

/* ---- A child before somebody who is not its parent ---- */

/* What he answers to the hello. */
static bool false_parent(const uint8_t *answer, size_t size, bool echo, int rc, const char *text)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    uint8_t hello[OOB_HELLO_BYTES];
    char contact[64];
    end_t child;
    int door_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;

    if (bind(door_fd, (struct sockaddr *)&at, sizeof(at)) != 0 || listen(door_fd, 1) != 0 ||
        getsockname(door_fd, (struct sockaddr *)&at, &len) != 0) {
        abort();
    }
    fcntl(door_fd, F_SETFL, O_NONBLOCK);
    snprintf(contact, sizeof(contact), "127.0.0.1:%u", ntohs(at.sin_port));
    end_create(&child, 1, RADIX, key);
    orte_oob_connect(child.oob, contact);
    while ((fd = accept(door_fd, NULL, NULL)) < 0) {
        event_base_loop(base, EVLOOP_NONBLOCK);
    }
    fcntl(fd, F_SETFL, O_NONBLOCK);
    bool ok = hear(fd, hello, sizeof(hello)) == sizeof(hello) &&
              say(fd, echo ? hello : answer, echo ? sizeof(hello) : size) &&
              until(&child.failed, 1) && child.rc == rc && strstr(child.sentence, text) != NULL;
    printf("# %s\n", child.sentence);
    close(fd);
    close(door_fd);
    orte_oob_destroy(child.oob);
    return ok;
}

static void test_false_parents(void)
{
    uint8_t out[OOB_CHALLENGE_BYTES];
    oob_challenge_t challenge = {.from = 0, .to = 1};
    oob_speaker_t speaker;

    TAP_OK(false_parent(NULL, 0, true, OPAL_ERR_UNREACHABLE, "out of turn"), "an echo");
    oob_speaker_set(&speaker, PACKAGE_VERSION, "elsewhere");
    oob_challenge_write(out, &speaker, &challenge);
    TAP_OK(false_parent(out, sizeof(out), false, OPAL_ERR_UNREACHABLE, "the job's key"),
           "one without the key");
    oob_verdict_write(out, &speaker, OOB_ACCEPTED, NULL);
    TAP_OK(false_parent(out, OOB_VERDICT_BYTES, false, OPAL_ERR_UNREACHABLE, "the job's key"),
           "one who accepts all");
    oob_speaker_set(&speaker, "9.9.9", "elsewhere");
    oob_verdict_write(out, &speaker, OOB_REFUSED_VERSION, NULL);
    TAP_OK(false_parent(out, OOB_VERDICT_BYTES, false, OPAL_ERR_NOT_SUPPORTED,
                        "host elsewhere has Hawser 9.9.9"),
           "one of another version");
    memset(out, 'x', sizeof(out));
    TAP_OK(false_parent(out, sizeof(out), false, OPAL_ERR_UNREACHABLE, "another language"),
           "another program");
}

/* ---- One who is in ---- */

static size_t hand_frame(hand_t *hand, uint8_t *out, const oob_frame_t *frame)
{
    memset(out, 'f', OOB_FRAME_MAX);
    oob_frame_write(out, frame);
    oob_frame_code(&hand->tx, hand->count++, out, out + OOB_FRAME_HEADER, frame->len,
                   out + OOB_FRAME_HEADER + frame->len);
    return OOB_FRAME_HEADER + frame->len + OOB_FRAME_CODE;
}

typedef enum { AS_IT_IS, TWICE, BIT, TOO_LONG } change_t;

/* A new child sends this; does the parent give it up? */
static bool breaks(const oob_frame_t *frame, change_t change, unsigned messages)
{
    static uint8_t out[OOB_FRAME_MAX];
    end_t parent;
    hand_t hand;

    parent_create(&parent);
    hand_hello(&hand, parent.contact, PACKAGE_VERSION);
    bool ok = hand_prove(&hand, key) == OOB_ACCEPTED;
    size_t size = hand_frame(&hand, out, frame);
    if (change == BIT) {
        out[OOB_FRAME_HEADER] ^= 1;
    } else if (change == TOO_LONG) {
        out[2] = 0xff; /* of the length */
    }
    ok = ok && say(hand.fd, out, size) && (change != TWICE || say(hand.fd, out, size));
    ok = ok && until(&parent.lost, 1) && parent.why == ORTE_OOB_BROKEN &&
         parent.messages == messages;
    close(hand.fd);
    orte_oob_destroy(parent.oob);
    return ok;
}

static void test_frames(void)
{
    const uint8_t whole = OOB_FLAG_FIRST | OOB_FLAG_LAST;
    const oob_frame_t good = {.type = OOB_DATA, .flags = whole, .tag = TAG, .from = 1, .to = 0,
                              .len = 10, .number = 10};
    oob_frame_t f = good;

    TAP_OK(breaks(&f, TWICE, 1), "a message comes once; repeated it breaks the connection");
    TAP_OK(breaks(&f, BIT, 0), "a bit turned over");
    f.from = 3;
    TAP_OK(breaks(&f, TWICE, 1), "messages of those below it are its to bring");
    f.from = 2;
    TAP_OK(breaks(&f, AS_IT_IS, 0), "a message in the name of another branch");
    f.from = 0;
    TAP_OK(breaks(&f, AS_IT_IS, 0), "a message in our own name");
    f = good, f.to = 1;
    TAP_OK(breaks(&f, AS_IT_IS, 0), "a message that would turn back");
    f = good, f.to = ORTE_OOB_EVERYBODY;
    TAP_OK(breaks(&f, AS_IT_IS, 0), "a broadcast from below");
    f = good, f.flags = OOB_FLAG_LAST, f.number = 100;
    TAP_OK(breaks(&f, AS_IT_IS, 0), "an end without a beginning");
    f = good;
    TAP_OK(breaks(&f, TOO_LONG, 0), "a frame of 16 MB is not waited for");
    f.type = 9;
    TAP_OK(breaks(&f, AS_IT_IS, 0), "an unknown kind of frame");
    f = (oob_frame_t){.type = OOB_CREDIT, .from = 1, .to = 0, .number = 1};
    TAP_OK(breaks(&f, AS_IT_IS, 0), "a credit for what was never sent");
    f = (oob_frame_t){.type = OOB_LOST, .from = 1, .to = ORTE_OOB_EVERYBODY};
    TAP_OK(breaks(&f, AS_IT_IS, 0), "its own death");
    f = (oob_frame_t){.type = OOB_GOODBYE, .from = 3, .to = 0};
    TAP_OK(breaks(&f, AS_IT_IS, 0), "a goodbye for somebody else");
}

int main(void)
{
    tap_start(180);
    setenv("OMPI_MCA_net_include", "127.0.0.1/32", 1);
    setenv("OMPI_MCA_oob_greeting_timeout", "400", 1);
    setenv("OMPI_MCA_oob_connect_timeout", "5000", 1);
    TAP_REQUIRE(mca_base_var_init() == OPAL_SUCCESS && orte_oob_register_params() == OPAL_SUCCESS &&
                    orte_oob_key_create(key) == OPAL_SUCCESS,
                "parameters");
    base = event_base_new();
    test_daemons();
    test_addresses();
    test_ports();
    test_strangers();
    test_false_parents();
    test_frames();
    event_base_free(base);
    libevent_global_shutdown();
    return tap_end();
}
