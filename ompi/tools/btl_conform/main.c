/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Options; the processes of each test, their meeting points, and the verdict in TAP. */
#include "ompi/tools/btl_conform/conform.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

conform_options_t conform_options = {
    .seed = 1, .processes = 4, .asymmetric_fence = true, .timeout = 600, .pin = true};
conform_process_t self;
unsigned char conform_cards[CONFORM_MAX_PROCESSES][CONFORM_CARD_MAX];
size_t conform_card_len[CONFORM_MAX_PROCESSES];

/* ---- In the processes ---- */

/* What a process says to its parent, and hears back. */
typedef struct message {
    char what; /* B: barrier; C: card; F: failed, with text; K: kill `value`; S: skip, with text */
    int32_t value;
    uint32_t len;
} message_t;

static void put(int fd, const void *data, size_t len)
{
    const char *p = data;
    while (len > 0) {
        ssize_t n = send(fd, p, len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            _exit(CONFORM_FAILED); /* the kit's parent is gone */
        }
        p += n;
        len -= (size_t)n;
    }
}

static bool take(int fd, void *data, size_t len)
{
    char *p = data;
    while (len > 0) {
        ssize_t n = recv(fd, p, len, 0);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return false;
        }
        p += n;
        len -= (size_t)n;
    }
    return true;
}

static void say(char what, int32_t value, const void *data, size_t len)
{
    static pthread_mutex_t whole = PTHREAD_MUTEX_INITIALIZER; /* any thread may fail */
    message_t m = {what, value, (uint32_t)len};
    pthread_mutex_lock(&whole);
    put(self.control, &m, sizeof(m));
    if (len > 0) {
        put(self.control, data, len);
    }
    pthread_mutex_unlock(&whole);
}

static void hear(void *data, size_t len)
{
    if (!take(self.control, data, len)) {
        _exit(CONFORM_FAILED);
    }
}

void conform_waits(const char *format, ...)
{
    conform_note_t *note = &self.shared->notes[self.rank];
    va_list args;
    va_start(args, format);
    vsnprintf(note->what, sizeof(note->what), format, args);
    va_end(args);
    atomic_store(&note->since_ns, conform_now());
}

void conform_goes_on(void)
{
    atomic_store(&self.shared->notes[self.rank].since_ns, 0);
}

void conform_barrier(void)
{
    char go;
    conform_waits("a barrier, without progress");
    say('B', 0, NULL, 0);
    hear(&go, 1);
    conform_goes_on();
}

/* Naps between looks: the parent may need this processor. */
static bool control_readable(int ms)
{
    struct pollfd p = {.fd = self.control, .events = POLLIN};
    return poll(&p, 1, ms) > 0;
}

void conform_progress_barrier(void)
{
    char go;
    conform_waits("a barrier, with progress");
    say('B', 0, NULL, 0);
    for (int nap = 0; !control_readable(nap);) {
        nap = conform_progress() == 0;
    }
    hear(&go, 1);
    conform_goes_on();
}

void conform_exchange(const void *card, size_t len)
{
    say('C', 0, card, len);
    for (int i = 0; i < self.size; i++) {
        uint32_t n;
        hear(&n, sizeof(n));
        REQUIRE(n <= CONFORM_CARD_MAX, "card of %u bytes", n);
        conform_card_len[i] = n;
        hear(conform_cards[i], n);
    }
}

void conform_kill(int rank)
{
    char done;
    say('K', rank, NULL, 0);
    hear(&done, 1);
}

uint64_t conform_random(uint64_t n)
{
    static _Thread_local uint64_t extra; /* threads: each its own sequence */
    if (extra == 0) {
        static _Atomic uint64_t threads;
        extra = self.random + 0x9e3779b97f4a7c15ull * ++threads;
    }
    uint64_t x = extra += 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return (x ^ x >> 31) % n;
}

void conform_fail(const char *file, int line, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    const char *base = strrchr(file, '/');
    char where[1200];
    int len = snprintf(where, sizeof(where), "%s:%d: %s", base ? base + 1 : file, line, text);
    say('F', 0, where, (size_t)len);
    _exit(CONFORM_FAILED);
}

void conform_skip(const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    say('S', 0, text, strlen(text));
    _exit(CONFORM_SKIPPED);
}

/* process_vm_readv and process_vm_writev fail with EPERM, as in many containers. */
static void forbid_cma(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};
    REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0,
            "seccomp: %s", strerror(errno));
}

static void pin_to(int cpu)
{
    cpu_set_t mine, one;
    if (sched_getaffinity(0, sizeof(mine), &mine) != 0) {
        return;
    }
    int wanted = cpu % CPU_COUNT(&mine);
    for (int i = 0; i < CPU_SETSIZE; i++) {
        if (CPU_ISSET(i, &mine) && wanted-- == 0) {
            CPU_ZERO(&one);
            CPU_SET(i, &one);
            sched_setaffinity(0, sizeof(one), &one);
            return;
        }
    }
}

__attribute__((noreturn)) static void run_process(const conform_test_t *test)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(conform_options.timeout + 60); /* the parent is to end it before, and to say why */
    if (conform_options.forbid_cma) {
        forbid_cma();
    }
    if (conform_options.bench && conform_options.pin) {
        pin_to(self.rank);
    }
    test->run();
    fflush(NULL);
    _exit(0);
}

/* ---- In the parent ---- */

typedef struct child {
    pid_t pid;
    int fd;
    bool at_barrier, has_card, ended, excused;
    bool explained;            /* why it failed has been told */
    uint32_t card_len;
    unsigned char card[CONFORM_CARD_MAX];
} child_t;

static child_t children[CONFORM_MAX_PROCESSES];
static int child_count;
static char skip_reason[512];

static void start_processes(const conform_test_t *test, int n, conform_shared_t *shared)
{
    static int serial;
    serial++;
    child_count = n;
    memset(children, 0, sizeof(children));
    for (int i = 0; i < n; i++) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
            perror("hawser-btl-conform: socketpair");
            exit(CONFORM_FAILED);
        }
        fflush(NULL);
        pid_t pid = fork();
        if (pid < 0) {
            perror("hawser-btl-conform: fork");
            exit(CONFORM_FAILED);
        }
        if (pid == 0) {
            for (int k = 0; k < i; k++) {
                close(children[k].fd);
            }
            close(pair[0]);
            self = (conform_process_t){.rank = i, .size = n, .control = pair[1], .shared = shared,
                                       .random = conform_options.seed * 1000003u + (uint64_t)i};
            snprintf(self.job_id, sizeof(self.job_id), "conform-%d-%d", (int)getppid(), serial);
            memset(self.secret, 0x5a ^ serial, sizeof(self.secret));
            run_process(test);
        }
        close(pair[1]);
        children[i] = (child_t){.pid = pid, .fd = pair[0]};
    }
}

static void release_barrier(void)
{
    for (int i = 0; i < child_count; i++) {
        if (!children[i].ended && !children[i].at_barrier) {
            return;
        }
    }
    for (int i = 0; i < child_count; i++) {
        if (children[i].at_barrier) {
            children[i].at_barrier = false;
            (void)!send(children[i].fd, "G", 1, MSG_NOSIGNAL);
        }
    }
}

static void release_cards(void)
{
    for (int i = 0; i < child_count; i++) {
        if (!children[i].has_card) {
            return;
        }
    }
    for (int i = 0; i < child_count; i++) {
        for (int k = 0; k < child_count; k++) {
            (void)!send(children[i].fd, &children[k].card_len, sizeof(uint32_t), MSG_NOSIGNAL);
            (void)!send(children[i].fd, children[k].card, children[k].card_len, MSG_NOSIGNAL);
        }
    }
    for (int i = 0; i < child_count; i++) {
        children[i].has_card = false;
    }
}

static void kill_child(int rank)
{
    children[rank].excused = true;
    kill(children[rank].pid, SIGKILL);
    waitpid(children[rank].pid, NULL, 0);
    children[rank].pid = -1;
    children[rank].ended = true;
}

/* Why a child says it has failed. */
static bool serve_failure(child_t *c, size_t len)
{
    char text[1200] = "";
    if (len >= sizeof(text) || !take(c->fd, text, len)) {
        return false;
    }
    fprintf(stderr, "# [%d] %s\n", (int)(c - children), text);
    c->explained = true;
    return true;
}

/* A message of a child; false: it has closed its end. */
static bool serve(child_t *c)
{
    message_t m;
    if (!take(c->fd, &m, sizeof(m))) {
        return false;
    }
    switch (m.what) {
    case 'F':
        return serve_failure(c, m.len);
    case 'B':
        c->at_barrier = true;
        release_barrier();
        return true;
    case 'C':
        c->card_len = m.len;
        c->has_card = true;
        if (m.len > CONFORM_CARD_MAX || !take(c->fd, c->card, m.len)) {
            return false;
        }
        release_cards();
        return true;
    case 'K':
        kill_child(m.value);
        return send(c->fd, "D", 1, MSG_NOSIGNAL) == 1;
    case 'S':
        memset(skip_reason, 0, sizeof(skip_reason));
        return m.len < sizeof(skip_reason) && take(c->fd, skip_reason, m.len);
    default:
        return false;
    }
}

static void kill_all(void)
{
    for (int i = 0; i < child_count; i++) {
        if (children[i].pid > 0 && !children[i].ended) {
            children[i].excused = true;
            kill(children[i].pid, SIGKILL);
        }
    }
}

/* What the processes that have not ended wait for. */
static void tell_waiting(const conform_shared_t *shared)
{
    for (int i = 0; i < child_count; i++) {
        uint64_t since = shared ? atomic_load(&shared->notes[i].since_ns) : 0;
        if (children[i].ended) {
            continue;
        }
        if (since) {
            fprintf(stderr, "# [%d] waits since %.3f s for: %.*s\n", i, (double)(conform_now() - since) / 1e9,
                    (int)sizeof(shared->notes[i].what), shared->notes[i].what);
        } else {
            fprintf(stderr, "# [%d] is busy\n", i);
        }
    }
}

/* Its exit code; a failure never goes without a word. */
static int child_ended(child_t *c)
{
    int status, code = 0, rank = (int)(c - children);
    close(c->fd);
    c->fd = -1;
    c->ended = true;
    if (c->pid > 0 && waitpid(c->pid, &status, 0) == c->pid) {
        code = WIFEXITED(status) ? WEXITSTATUS(status) : CONFORM_FAILED;
        if (WIFSIGNALED(status) && !c->excused) {
            fprintf(stderr, "# [%d] ended by signal %d: %s\n", rank, WTERMSIG(status),
                    strsignal(WTERMSIG(status)));
        } else if (code != 0 && code != CONFORM_SKIPPED && !c->excused && !c->explained) {
            fprintf(stderr, "# [%d] ended with exit code %d\n", rank, code);
        }
    }
    release_barrier();
    return c->excused ? 0 : code;
}

static int watch_processes(const conform_shared_t *shared)
{
    int left = child_count, worst = 0;
    uint64_t end = conform_now() + (uint64_t)conform_options.timeout * 1000000000u;
    bool over = false;
    while (left > 0) {
        struct pollfd fds[CONFORM_MAX_PROCESSES];
        for (int i = 0; i < child_count; i++) {
            fds[i] = (struct pollfd){.fd = children[i].fd, .events = POLLIN};
        }
        uint64_t now = conform_now();
        int ms = over ? -1 : now < end ? (int)((end - now) / 1000000 + 1) : 0;
        int ready = poll(fds, (nfds_t)child_count, ms);
        if (ready < 0) {
            if (errno != EINTR) {
                perror("hawser-btl-conform: poll");
                exit(CONFORM_FAILED);
            }
            continue;
        }
        if (ready == 0) {
            fprintf(stderr, "# no end after %u s\n", conform_options.timeout);
            tell_waiting(shared);
            worst = CONFORM_FAILED;
            kill_all();
            over = true;
            continue;
        }
        for (int i = 0; i < child_count; i++) {
            if (fds[i].revents && !serve(&children[i])) {
                int code = child_ended(&children[i]);
                left--;
                if (code != 0 && worst != CONFORM_FAILED) {
                    worst = code == CONFORM_SKIPPED ? CONFORM_SKIPPED : CONFORM_FAILED;
                    if (worst == CONFORM_FAILED) {
                        tell_waiting(shared);
                    }
                    kill_all(); /* the others would wait for it */
                }
            }
        }
    }
    return worst;
}

static int run_test(const conform_test_t *test, int n)
{
    conform_shared_t *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        perror("hawser-btl-conform: mmap");
        exit(CONFORM_FAILED);
    }
    skip_reason[0] = '\0';
    start_processes(test, n, shared);
    int code = watch_processes(shared);
    munmap(shared, sizeof(*shared));
    return code;
}

/* ---- Does the link reach its own process only? Asked in a process of its own. ---- */

static void probe(void)
{
    conform_link_start();
    const char *unknown = conform_unknown_param();
    REQUIRE(!unknown, "there is no parameter %.*s", (int)strcspn(unknown, "="), unknown);
    bool is_self = conform_module->limits.caps & MCA_BTL_CAP_SELF;
    conform_link_end();
    _exit(is_self ? 2 : 0);
}

static bool plugin_is_self(void)
{
    static const conform_test_t test = {"probe", "", 1, probe};
    bool quiet = conform_options.verbose;
    start_processes(&test, 1, NULL);
    int status = 0, left = 1;
    while (left > 0) {
        if (!serve(&children[0])) {
            waitpid(children[0].pid, &status, 0);
            close(children[0].fd);
            left = 0;
        }
    }
    conform_options.verbose = quiet;
    if (!WIFEXITED(status) || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 2)) {
        fprintf(stderr, "hawser-btl-conform: %s can't be used%s%s\n", conform_options.plugin,
                *skip_reason ? ": " : "", skip_reason);
        exit(CONFORM_FAILED);
    }
    return WEXITSTATUS(status) == 2;
}

/* ---- Options ---- */

static void usage(FILE *to)
{
    fprintf(to,
            "usage: hawser-btl-conform [options] mca_btl_NAME.so\n"
            "Checks that a byte transfer layer keeps the contract of hawser/btl.h; prints TAP.\n"
            "  --bench            measure instead: half round trip, rate, bandwidth\n"
            "  --list             name the tests\n"
            "  --test NAME        run this one only\n"
            "  --skip NAME=WHY    leave this one out, and say why\n"
            "  --module NAME      use this of the plug-in's modules (default: its first)\n"
            "  --param [R:]N=V    set the parameter N; with R, in process R only\n"
            "  --component FILE   another plug-in, which the one tested may stand over\n"
            "  --processes N      of the tests among many (default 4)\n"
            "  --seed N           of everything random (default 1)\n"
            "  --threads          tell the BTL in all tests that there are threads\n"
            "  --lanes            the same, and that lanes are wanted; --module chooses one\n"
            "  --forbid-cma       process_vm_readv and process_vm_writev fail\n"
            "  --short-writes     TCP sockets often take only a part, then nothing for a while\n"
            "  --forked           the peer that dies in test death leaves a child behind, with all descriptors\n"
            "  --keepalive        the link notices a peer's death though nothing is sent: test death asks for it\n"
            "  --no-membarrier    the sleeper does not fence for senders\n"
            "  --no-pin           leave benchmark processes where the kernel puts them\n"
            "  --timeout S        for one test (default 600)\n"
            "  --verbose          show what the plug-in logs\n"
            "  --help             this text\n");
}

/* The exit code, if what was said could be written. */
static int said(int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) {
        return code;
    }
    perror("hawser-btl-conform: standard output");
    return CONFORM_FAILED;
}

/* A whole number from `least` to `most`, or the end. */
static uint64_t number(const char *option, const char *text, uint64_t least, uint64_t most)
{
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 0);
    if (*text < '0' || *text > '9' || *end || errno || value < least || value > most) {
        fprintf(stderr, "hawser-btl-conform: --%s %s: expected a whole number from %" PRIu64 " to %" PRIu64 "\n", option, text,
                least, most);
        exit(2);
    }
    return value;
}

/* NAME=SOMETHING, or the end. */
static const char *assignment(const char *option, const char *text)
{
    if (!strchr(text, '=')) {
        fprintf(stderr, "hawser-btl-conform: --%s %s: there is no '=' in it\n", option, text);
        exit(2);
    }
    return text;
}

static void parse_options(int argc, char **argv)
{
    enum { OPT_LIST = 256, OPT_COMPONENT, OPT_CMA, OPT_FENCE, OPT_SHORT, OPT_PIN, OPT_KEEPALIVE, OPT_LANES, OPT_FORKED };
    static const struct option longs[] = {
        {"bench", no_argument, NULL, 'b'}, {"list", no_argument, NULL, OPT_LIST},
        {"test", required_argument, NULL, 't'}, {"skip", required_argument, NULL, 'k'}, {"module", required_argument, NULL, 'm'},
        {"param", required_argument, NULL, 'p'}, {"component", required_argument, NULL, OPT_COMPONENT},
        {"processes", required_argument, NULL, 'n'},
        {"seed", required_argument, NULL, 's'}, {"threads", no_argument, NULL, 'T'}, {"lanes", no_argument, NULL, OPT_LANES},
        {"forbid-cma", no_argument, NULL, OPT_CMA}, {"no-membarrier", no_argument, NULL, OPT_FENCE},
        {"forked", no_argument, NULL, OPT_FORKED}, {"keepalive", no_argument, NULL, OPT_KEEPALIVE}, {"short-writes", no_argument, NULL, OPT_SHORT}, {"no-pin", no_argument, NULL, OPT_PIN}, {"timeout", required_argument, NULL, 'o'},
        {"verbose", no_argument, NULL, 'v'}, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
    conform_options_t *o = &conform_options;
    for (int c; (c = getopt_long(argc, argv, "bt:k:m:p:n:s:To:vh", longs, NULL)) != -1;) {
        switch (c) {
        case 'b': o->bench = true; break;
        case 't': o->only = optarg; break;
        case 'k': o->skip = assignment("skip", optarg); break;
        case 'm': o->module = optarg; break;
        case 'n': o->processes = (int)number("processes", optarg, 2, CONFORM_MAX_PROCESSES); break;
        case 's': o->seed = number("seed", optarg, 0, UINT64_MAX); break;
        case 'T': o->threads = true; break;
        case OPT_LANES: o->threads = o->lanes = true; break;
        case OPT_CMA: o->forbid_cma = true; break;
        case OPT_SHORT: o->short_writes = true; break;
        case OPT_FORKED: o->forked = true; break;
        case OPT_KEEPALIVE: o->keepalive = true; break;
        case OPT_FENCE: o->asymmetric_fence = false; break;
        case OPT_PIN: o->pin = false; break;
        case 'o': o->timeout = (unsigned)number("timeout", optarg, 1, 1000000); break;
        case 'v': o->verbose = true; break;
        case 'p':
            if (o->param_count < CONFORM_MAX_PARAMS) {
                o->params[o->param_count++] = assignment("param", optarg);
            }
            break;
        case OPT_COMPONENT:
            if (o->other_count < (int)(sizeof(o->others) / sizeof(o->others[0]))) {
                o->others[o->other_count++] = optarg;
            }
            break;
        case OPT_LIST:
            for (const conform_test_t *t = conform_tests; t->name; t++) {
                printf("%-14s %s\n", t->name, t->what);
            }
            exit(said(0));
        case 'h': usage(stdout); exit(said(0));
        default: usage(stderr); exit(2);
        }
    }
    if (optind + 1 != argc) {
        usage(stderr);
        exit(2);
    }
    o->plugin = argv[optind];
}

/* Why the user leaves a test out; NULL: he does not. */
static const char *left_out(const conform_test_t *test)
{
    const char *skip = conform_options.skip;
    size_t len = strlen(test->name);
    return skip && strncmp(skip, test->name, len) == 0 && skip[len] == '=' ? skip + len + 1 : NULL;
}

int main(int argc, char **argv)
{
    static const conform_test_t bench = {"bench", "measurement", 2, conform_bench};
    int count = 0, failed = 0;
    parse_options(argc, argv);
    setvbuf(stdout, NULL, _IOLBF, 0);
    bool alone = plugin_is_self();
    if (conform_options.bench) {
        conform_options.timeout = 600;
        return run_test(&bench, alone ? 1 : 2);
    }
    for (const conform_test_t *t = conform_tests; t->name; t++) {
        if (conform_options.only && strcmp(conform_options.only, t->name) != 0) {
            continue;
        }
        if (left_out(t)) {
            printf("ok %d - %s # SKIP %s\n", ++count, t->name, left_out(t));
            continue;
        }
        int code = run_test(t, alone ? 1 : t->processes ? t->processes : conform_options.processes);
        count++;
        if (code == CONFORM_SKIPPED) {
            printf("ok %d - %s # SKIP %s\n", count, t->name, skip_reason);
        } else {
            failed += code != 0;
            printf("%s %d - %s: %s\n", code == 0 ? "ok" : "not ok", count, t->name, t->what);
        }
    }
    printf("1..%d\n", count);
    if (count == 0) {
        fprintf(stderr, "hawser-btl-conform: no test of that name\n");
        return 2;
    }
    return said(failed ? CONFORM_FAILED : 0);
}
