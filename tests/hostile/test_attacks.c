/* Hostile commands against the sandbox, one case an attack of attack.c: each works without any wall, and behind none. */
#include "sandbox_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fs.h"

/* What an attack aims at: things of the "person" beside the tree. */
typedef struct world {
    tree t;
    int terminal, terminal_user;                /* the master; the side that programs hold */
    char datagram[240], stream[240], other[80]; /* socket paths; an abstract name */
    int sockets[4], tcp_port;
    int key, shm, sem, msg;
    char queue[40], terminal_name[60], shared_file[60];
    mqd_t mq;
} world;

static void make_sockets(world *w)
{
    const int types[] = {SOCK_DGRAM, SOCK_STREAM, SOCK_STREAM};
    snprintf(w->datagram, sizeof w->datagram, "%s/datagram", w->t.base);
    snprintf(w->stream, sizeof w->stream, "%s/stream", w->t.base);
    snprintf(w->other, sizeof w->other, "kvist-hostile-%d", getpid());
    const char *names[] = {w->datagram, w->stream, w->other};
    for (int i = 0; i < 3; i++) {
        struct sockaddr_un name = {.sun_family = AF_UNIX};
        bool is_abstract = names[i] == w->other;
        assert_true(strlen(names[i]) < sizeof name.sun_path - 1);
        memcpy(name.sun_path + is_abstract, names[i], strlen(names[i]));
        socklen_t n = is_abstract ? (socklen_t)(sizeof(sa_family_t) + 1 + strlen(names[i])) : sizeof name;
        w->sockets[i] = socket(AF_UNIX, types[i] | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(w->sockets[i], (struct sockaddr *)&name, n), 0);
        if (types[i] == SOCK_STREAM) assert_int_equal(listen(w->sockets[i], 50), 0);
    }
    struct sockaddr_in here = {.sin_family = AF_INET};
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t n = sizeof here;
    w->sockets[3] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(w->sockets[3], (struct sockaddr *)&here, n), 0);
    assert_int_equal(listen(w->sockets[3], 50), 0);
    assert_int_equal(getsockname(w->sockets[3], (struct sockaddr *)&here, &n), 0);
    w->tcp_port = ntohs(here.sin_port);
}

static void make_shared(world *w)
{
    w->key = 0x6b000000 + getpid();
    w->shm = shmget(w->key, 4096, IPC_CREAT | 0600);
    w->sem = semget(w->key, 1, IPC_CREAT | 0600);
    w->msg = msgget(w->key, IPC_CREAT | 0600);
    snprintf(w->queue, sizeof w->queue, "/kvist-hostile-%d", getpid());
    snprintf(w->shared_file, sizeof w->shared_file, "/dev/shm/kvist-hostile-%d", getpid());
    base_fs_write(w->shared_file, "SECRET\n", 7, 0600, NULL);
    w->mq = mq_open(w->queue, O_CREAT | O_RDWR | O_CLOEXEC, 0600, NULL);
}

static void world_make(world *w)
{
    memset(w, 0, sizeof *w);
    tree_make(&w->t, true);
    sandbox_put_attack(&w->t);
    make_sockets(w);
    make_shared(w);
    assert_int_equal(openpty(&w->terminal, &w->terminal_user, w->terminal_name, NULL, NULL), 0);
    tree_put(&w->t, "../beside", "secret");
    tree_open(&w->t);
}

static void world_remove(world *w)
{
    for (int i = 0; i < 4; i++) close(w->sockets[i]);
    if (w->shm >= 0) shmctl(w->shm, IPC_RMID, NULL);
    if (w->sem >= 0) semctl(w->sem, 0, IPC_RMID);
    if (w->msg >= 0) msgctl(w->msg, IPC_RMID, NULL);
    if (w->mq != (mqd_t)-1) mq_close(w->mq);
    mq_unlink(w->queue);
    unlink(w->shared_file);
    close(w->terminal);
    close(w->terminal_user);
    tree_remove(&w->t);
}

/* ---- the attacks ---- */

/* One row: the number where it has one, attack.c's words, and what of them is filled in here. */
typedef struct attack {
    const char *name, *words;
    enum {
        AIM_NOTHING,
        AIM_DATAGRAM,
        AIM_STREAM,
        AIM_ABSTRACT,
        AIM_TCP,
        AIM_KEY,
        AIM_QUEUE,
        AIM_US,
        AIM_USER,
        AIM_MEMORY,
        AIM_SHARED_FILE,
        AIM_TERMINAL,
        AIM_BASE,
        AIM_HOME
    } aim;
    /* Walls that this one needs: the kernel scopes signals by Landlock's ABI 6 or hides processes by a PID namespace. */
    bool needs_scope;
    bool needs_pids; /* /proc is one mount: Landlock cannot show some processes and others not */
} attack;

static const attack attacks[] = {
    {"row 9: a datagram of a socket pair", "datagram %s 2", AIM_DATAGRAM},
    {"row 9: a raw one, which is a datagram too", "datagram %s 3", AIM_DATAGRAM},
    {"row 10: System V shared memory", "shm %s", AIM_KEY},
    {"row 10: System V semaphores", "sem %s", AIM_KEY},
    {"row 10: System V messages", "msg %s", AIM_KEY},
    {"row 10: a POSIX queue", "mq %s", AIM_QUEUE},
    {"row 11: limits of kvist", "prlimit %s", AIM_US},
    {"row 11: kvist's processors", "affinity %s", AIM_US},
    {"row 11: kvist's scheduler", "scheduler %s", AIM_US},
    {"row 11: kvist's priority", "priority %s", AIM_US},
    {"row 11: all priorities of the user", "user-priority %s", AIM_USER},
    {"row 11: the same, hidden in the upper half", "wide-priority %s", AIM_USER},
    {"row 11: kvist's disk priority", "ioprio %s", AIM_US},
    {"row 11: kvist's memory", "vm-read %s", AIM_MEMORY},
    {"row 11: kvist by a pidfd", "pidfd %s", AIM_US},
    {"a file of shared memory, to be read", "read /dev/shm/%s", AIM_SHARED_FILE},
    {"a file of shared memory, to be written", "write /dev/shm/%s", AIM_SHARED_FILE},
    {"the list of shared memory", "list /dev/shm", AIM_SHARED_FILE},
    {"a signal to kvist", "kill %s", AIM_US, .needs_scope = true},
    {"ptrace of kvist", "ptrace %s", AIM_US},
    {"the session's keyring", "keyctl", AIM_NOTHING},
    {"io_uring", "io-uring", AIM_NOTHING},
    {"a new user namespace", "unshare", AIM_NOTHING},
    {"a mount", "mount %s", AIM_BASE},
    {"another root", "chroot %s", AIM_BASE},
    {"a program that runs as the person: by chmod", "setuid chmod", AIM_NOTHING},
    {"a program that runs as the person: by fchmod", "setuid fchmod", AIM_NOTHING},
    {"a program that runs as the person: by fchmodat2", "setuid fchmodat2", AIM_NOTHING},
    {"a program that runs as the person: by open", "setuid open", AIM_NOTHING},
    {"a program that runs as the person: by openat2", "setuid openat2", AIM_NOTHING},
    {"a program that runs as the person: without a name", "setuid unnamed", AIM_NOTHING},
    {"a listening socket", "stream %s", AIM_STREAM},
    {"an abstract socket", "abstract %s", AIM_ABSTRACT},
    {"TCP", "tcp %s", AIM_TCP},
    {"typing into a terminal", "type %s", AIM_TERMINAL},
    {"row 7: what the person types", "read %s", AIM_TERMINAL},
    {"row 7: the person's screen", "write %s", AIM_TERMINAL},
    {"row 8: a key", "read %s/.ssh/id_ed25519", AIM_HOME},
    {"row 8: the folder of keys", "list %s/.ssh", AIM_HOME},
    {"row 8: home", "list %s/projects", AIM_HOME},
    {"row 8: a cloud's credentials", "read %s/.aws/credentials", AIM_HOME},
    {"row 8: kvist's log of every project", "read %s/.local/share/kvist/log.db", AIM_HOME},
    {"row 8: another project", "read %s/projects/other/secret.c", AIM_HOME},
    {"row 8: cargo's credentials", "read %s/.cargo/credentials.toml", AIM_HOME},
    {"row 8: cargo's credentials by a link", "read %s/.cargo/link", AIM_HOME},
    {"row 8: npm's credentials", "read %s/.npmrc", AIM_HOME},
    {"row 8: Maven's credentials", "read %s/.m2/settings.xml", AIM_HOME},
    {"row 8: .netrc", "read %s/.netrc", AIM_HOME},
    {"row 8: a start-up file, to be written", "write %s/.bashrc", AIM_HOME},
    {"row 8: a toolchain's program, to be written", "write %s/.rustup/toolchain", AIM_HOME},
    {"an attribute of a file beside the tree", "attribute %s/beside", AIM_BASE},
    {"row 8: a file beside the tree", "read %s/beside", AIM_BASE},
    {"row 8: the same through /proc", "read /proc/%s/root/etc/hostname", AIM_US},
    {"row 8: kvist's environment", "read /proc/%s/environ", AIM_US},
    {"row 8: kvist's command line", "read /proc/%s/cmdline", AIM_US, .needs_pids = true},
};

static void aim(const world *w, const attack *a, char *ret, size_t cap)
{
    char target[260] = "", words[400];
    switch (a->aim) {
    case AIM_NOTHING: break;
    case AIM_DATAGRAM: snprintf(target, sizeof target, "%s", w->datagram); break;
    case AIM_STREAM: snprintf(target, sizeof target, "%s", w->stream); break;
    case AIM_ABSTRACT: snprintf(target, sizeof target, "%s", w->other); break;
    case AIM_TCP: snprintf(target, sizeof target, "%d", w->tcp_port); break;
    case AIM_KEY: snprintf(target, sizeof target, "%d", w->key); break;
    case AIM_QUEUE: snprintf(target, sizeof target, "%s", w->queue); break;
    case AIM_US: snprintf(target, sizeof target, "%d", getpid()); break;
    case AIM_USER:
        snprintf(target, sizeof target, "%d", SANDBOX_NOBODY);
        break; /* never all of root's processes */
    case AIM_MEMORY: snprintf(target, sizeof target, "%d %p", getpid(), (const void *)w); break;
    case AIM_HOME: break;
    case AIM_SHARED_FILE: snprintf(target, sizeof target, "%s", w->shared_file + strlen("/dev/shm/")); break;
    case AIM_TERMINAL: snprintf(target, sizeof target, "%s", w->terminal_name); break;
    case AIM_BASE: snprintf(target, sizeof target, "%s", w->t.base); break;
    }
    if (a->aim == AIM_HOME) snprintf(target, sizeof target, "%s", getenv("HOME"));
    snprintf(words, sizeof words, a->words, target); /* one %s or none */
    snprintf(ret, cap, "./attack %s", words);
}

/* Whether it worked; what it said in *ret_said, to be freed. */
static bool attempt(world *w, const attack *a, bool is_confined, char **ret_said)
{
    char command[500];
    aim(w, a, command, sizeof command);
    assert_int_equal(write(w->terminal, "typed\n", 6), 6);
    *ret_said = is_confined ? sandbox_run_confined(&w->t, command) : sandbox_run_bare(&w->t, command);
    return strstr(*ret_said, "\nreached\n") != NULL;
}

static void test_attack(void **state)
{
    const attack *a = *state;
    world w;
    char *said;
    const char *names[3];
    tool_sandbox walls[3];
    world_make(&w);
    const tool_sandbox real = w.t.w->sandbox;
    int n = sandbox_walls(&real, walls, names);
    bool works = attempt(&w, a, false, &said), is_skipped = !works || !n;
    if (is_skipped)
        print_message("skipped: %s: %s: %s\n", a->name,
            n ? "it fails without the defence too" : "this machine confines nothing", works ? "" : said);
    free(said);
    if (is_skipped) n = 0;
    for (int i = 0; i < n; i++) {
        if (a->needs_scope && walls[i].landlock_abi < 6 && !walls[i].has_pids) continue;
        if (a->needs_pids && !walls[i].has_pids) continue;
        w.t.w->sandbox = walls[i];
        works = attempt(&w, a, true, &said);
        if (works) fail_msg("%s: it works behind %s: %s", a->name, names[i], said);
        /* Not refused because nothing ran. */
        if (!strchr(said, ':')) fail_msg("%s, %s: nothing was tried: %s", a->name, names[i], said);
        free(said);
    }
    world_remove(&w);
    if (is_skipped) skip();
}

static int run(const char *who)
{
    enum { N = sizeof attacks / sizeof *attacks };
    struct CMUnitTest tests[N];
    for (size_t i = 0; i < N; i++)
        tests[i] = (struct CMUnitTest){attacks[i].name, test_attack, NULL, NULL, (void *)&attacks[i]};
    return cmocka_run_group_tests_name(who, tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    return sandbox_main(argc, argv, run);
}
