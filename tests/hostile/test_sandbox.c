/*
 * Hostile commands against the sandbox: one case an attack of attack.c. Each runs first without any wall and must succeed there,
 * else its failure behind one would prove nothing (such a case says "skipped" and why). Then behind the walls a machine without
 * namespaces has, behind namespaces without Landlock, and behind all.
 *
 * The whole suite runs twice where it is started by root: as root and as an ordinary user.
 */
#include "tools/confine/meter.h"
#include "tools/confine/shell.h"
#include "tools/result/result.h"
#include "tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"

enum { NOBODY = 65534 };
static const char *attack_program; /* the built attack.c */

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
    base_buf program = {0};
    base_err err = {0};
    if (base_fs_read(attack_program, 64 << 20, &program, &err)) fail_msg("%s", err.msg);
    tree_put_bytes(&w->t, "attack", program.data, program.len);
    chmod(tree_path(&w->t, "attack"), 0755);
    base_buf_free(&program);
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
    case AIM_USER: snprintf(target, sizeof target, "%d", NOBODY); break; /* never all of root's processes */
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

/* Without kvist, by the same user. */
static char *run_bare(const tree *t, const char *command)
{
    char line[900], bytes[4096];
    base_buf said = {0};
    snprintf(line, sizeof line, "cd %s && exec %s 2>&1", t->dir, command);
    base_buf_puts(&said, "without kvist\n");
    FILE *out = popen(line, "r");
    assert_non_null(out);
    for (size_t n; (n = fread(bytes, 1, sizeof bytes, out));) base_buf_add(&said, bytes, n);
    pclose(out);
    return base_buf_take(&said);
}

static char *run_confined(tree *t, const char *command)
{
    char arguments[600];
    t->limits.shell_ms = 120000 * tree_patience();
    snprintf(arguments, sizeof arguments, "{\"command\":\"%s\"}", command);
    tool_result r = tree_call(t, "shell", arguments, NULL);
    char *said = base_buf_take(&r.text);
    tool_result_free(&r);
    return said;
}

/* Whether it worked; what it said in *ret_said, to be freed. */
static bool attempt(world *w, const attack *a, bool is_confined, char **ret_said)
{
    char command[500];
    aim(w, a, command, sizeof command);
    assert_int_equal(write(w->terminal, "typed\n", 6), 6);
    *ret_said = is_confined ? run_confined(&w->t, command) : run_bare(&w->t, command);
    return strstr(*ret_said, "\nreached\n") != NULL;
}

/* The same machine with fewer walls: what each of two kinds of machine has, and both. */
static int walls_of(const tool_sandbox *real, tool_sandbox ret[3], const char *names[3])
{
    int n = 0;
    if (real->landlock_abi && real->has_seccomp) {
        names[n] = "without namespaces";
        ret[n] = *real;
        ret[n].has_mounts = ret[n].has_pids = ret[n].needs_user = false;
        n++;
    }
    if (real->has_mounts && real->has_seccomp) {
        names[n] = "namespaces without Landlock";
        ret[n] = *real;
        ret[n++].landlock_abi = 0;
    }
    if (n == 2) {
        names[n] = "all walls";
        ret[n++] = *real;
    }
    return n;
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
    int n = walls_of(&real, walls, names);
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

/* ---- row 21: limits ---- */

/* The command with a number in the place of each "$stay". */
static char *with_stay(const char *command, const char *seconds)
{
    static const char word[] = "$stay";
    base_buf out = {0};
    for (const char *at; (at = strstr(command, word)); command = at + sizeof word - 1)
        base_buf_printf(&out, "%.*s%s", (int)(at - command), command, seconds);
    base_buf_puts(&out, command);
    return base_buf_take(&out);
}

/*
 * Without kvist it runs through; behind every wall it is ended and the result says why. What is to be ended stays for $stay seconds, so
 * that a busy machine finds the time to look.
 */
static void check_limit(const char *command, const tool_meter_limits *limits, const char *sentence)
{
    world w;
    const char *names[3];
    tool_sandbox walls[3];
    world_make(&w);
    const tool_sandbox real = w.t.w->sandbox;
    char *bare = with_stay(command, "1"), *confined = with_stay(command, sentence ? "100" : "1");
    char *said = run_bare(&w.t, bare);
    bool works = strstr(said, "\nreached\n") != NULL;
    if (!works) print_message("skipped: %s fails without kvist: %.300s\n", command, said);
    free(said);
    w.t.limits.shell_limits = limits;
    for (int i = 0, n = works ? walls_of(&real, walls, names) : 0; i < n; i++) {
        w.t.w->sandbox = walls[i];
        said = run_confined(&w.t, confined);
        if (sentence && !strstr(said, sentence)) fail_msg("%s behind %s: %.500s", command, names[i], said);
        if (!sentence && !strstr(said, "\nreached\n"))
            fail_msg("%s behind %s: %.500s", command, names[i], said);
        free(said);
    }
    free(bare);
    free(confined);
    world_remove(&w);
    if (!works) skip();
}

static const tool_meter_limits small = {.memory = 64 << 20, .processes = 40, .output = 8 << 20};

static void test_limit__memory(void **state)
{
    check_limit("./attack memory 100 0 $stay", &small, "ended: it used more than 0.1 GiB of memory");
}

static void test_limit__memory_that_processes_share_counts_once(void **state)
{
    check_limit("./attack memory 40 1 $stay", &small, NULL);
}

static void test_limit__memory_of_many_processes_is_added_up(void **state)
{
    check_limit("sh -c './attack memory 30 0 $0 & ./attack memory 30 0 $0 & ./attack memory 30 0 $0' $stay",
        &small, "ended: it used more than 0.1 GiB of memory");
}

static void test_limit__processes(void **state)
{
    check_limit("./attack processes 60 $stay", &small, "ended: it had more than 40 processes");
}

/* The kernel lists a process's children a page at a time: about 700 in one. */
static void test_limit__processes_beyond_a_page_of_them(void **state)
{
    check_limit("./attack processes 1200 $stay",
        &(tool_meter_limits){.memory = (uint64_t)4 << 30, .processes = 1000, .output = 8 << 20},
        "ended: it had more than 1000 processes");
}

static void test_limit__output(void **state)
{
    check_limit("./attack flood 40", &small, "ended: it printed more than 8 MiB");
}

static void test_limit__address_space_is_no_memory(void **state)
{
    check_limit("node -e 'console.log(`\\nreached`)'",
        &(tool_meter_limits){.memory = 400 << 20, .processes = 100, .output = 8 << 20}, NULL);
}

/* ---- what commands need, behind every wall ---- */

/* One command that must work behind each wall, and does without kvist; false: it does not here, and that was said. */
static bool works_behind(tree *t, const char *command, const char *said_when_good, bool needs_mounts)
{
    char *said = run_bare(t, command);
    const tool_sandbox real = t->w->sandbox;
    const char *names[3];
    tool_sandbox walls[3];
    bool works = strstr(said, said_when_good) != NULL;
    if (!works) print_message("skipped: %s does not work without kvist: %.300s\n", command, said);
    free(said);
    for (int i = 0, n = works ? walls_of(&real, walls, names) : 0; i < n; i++) {
        t->w->sandbox = walls[i];
        if (needs_mounts && !walls[i].has_mounts) continue;
        said = run_confined(t, command);
        if (!strstr(said, said_when_good)) fail_msg("%s behind %s: %s", command, names[i], said);
        free(said);
    }
    t->w->sandbox = real;
    return works;
}

static bool works_everywhere(tree *t, const char *command, const char *said_when_good)
{
    return works_behind(t, command, said_when_good, false);
}

static void test_home__toolchains_are_read_and_layered(void **state)
{
    tree t;
    char real[400];
    tree_make(&t, true);
    tree_open(&t);
    assert_true(works_everywhere(&t, "sh -c 'cat ~/.cargo/config.toml'", "[build]"));
    assert_true(works_everywhere(&t, "sh -c 'cat ~/.m2/repository/artifact'", "jar"));
    assert_true(works_everywhere(&t, "sh -c 'ls -d ~/.rustup'", ".rustup"));
    /* What is written into a cache is there for the session's next command and never in the person's home. */
    snprintf(real, sizeof real, "%s/.cargo/registry", getenv("HOME"));
    if (t.w->sandbox.has_mounts) {
        char *said = run_confined(
            &t, "mkdir -p ~/.cargo/registry && echo made > ~/.cargo/registry/x; cat ~/.cargo/registry/x");
        bool is_layered = strstr(said, "made") != NULL;
        if (!is_layered) print_message("skipped: no overlays here: %s\n", said);
        free(said);
        said = run_confined(&t, "cat ~/.cargo/registry/x");
        if (is_layered) assert_contains(said, "made");
        free(said);
    }
    assert_false(base_fs_exists(real));
    tree_remove(&t);
}

static void test_home__is_writable_and_empty(void **state)
{
    tree t;
    char real[400];
    tree_make(&t, true);
    tree_open(&t);
    snprintf(real, sizeof real, "%s/new", getenv("HOME"));
    assert_true(works_everywhere(&t, "sh -c 'echo x > ~/new && cat ~/new && rm ~/new'", "x"));
    assert_false(base_fs_exists(real));
    assert_true(works_everywhere(&t, "git config user.name", "A Person"));
    char *said = run_confined(&t, "git config github.token; git config credential.helper; echo end");
    assert_lacks(said, "t0ken");
    free(said);
    tree_remove(&t);
}

/* "!ls ~": the person's own words. */
static void test_home__is_the_persons_for_a_command_of_the_persons(void **state)
{
    static const char command[] =
        "cat ~/projects/other/secret.c ~/.bashrc; cat ~/.ssh/id_ed25519 ~/.aws/credentials ~/.netrc "
        "~/.cargo/credentials.toml ~/.local/share/kvist/log.db; echo planted >> ~/.bashrc; echo $HOME";
    tree t;
    tree_make(&t, true);
    tree_open(&t);
    const tool_sandbox real = t.w->sandbox;
    const char *names[3];
    tool_sandbox walls[3];
    char bashrc[400];
    base_buf before = {0};
    snprintf(bashrc, sizeof bashrc, "%s/.bashrc", getenv("HOME"));
    assert_int_equal(base_fs_read(bashrc, 1000, &before, NULL), 0);
    for (int i = 0, n = walls_of(&real, walls, names); i < n; i++) {
        t.w->sandbox = walls[i];
        for (int is_persons = 0; is_persons < 2; is_persons++) {
            base_buf text = {0}, arguments = {0};
            base_json_doc *doc = NULL;
            base_err err = {0};
            tool_result r = {0};
            base_buf_puts(&arguments, "{\"command\":");
            tool__quote(&arguments, command);
            base_buf_puts(&arguments, "}");
            assert_int_equal(base_json_parse(arguments.data, arguments.len, &doc, &err), 0);
            const tool_call call = {
                .name = "shell", .arguments = base_json_root(doc), .is_persons = is_persons};
            assert_int_equal(tool_find("shell")->run(t.w, &call, &t.limits, &(tool_preview){0}, &r, &err), 0);
            if (!strstr(r.text.data, is_persons ? " mine\n" : "No such file") &&
                !strstr(r.text.data, is_persons ? " mine\n" : "Permission denied"))
                fail_msg("%s, %s: %s", names[i], is_persons ? "the person's" : "the model's", r.text.data);
            const char *first = strstr(r.text.data, "SECRET");
            if (first && (!is_persons || strstr(first + 1, "SECRET")))
                fail_msg("%s: a secret: %s", names[i], r.text.data);
            assert_int_equal(base_fs_read(bashrc, 1000, &text, &err), 0);
            assert_string_equal(text.data, before.data);
            base_buf_free(&text);
            base_buf_free(&arguments);
            tool_result_free(&r);
            base_json_free(doc);
        }
    }
    base_buf_free(&before);
    tree_remove(&t);
}

static void test_home__the_tree_may_lie_in_it(void **state)
{
    tree t, in_home;
    base_err err = {0};
    tree_make(&t, true);
    in_home = t;
    snprintf(in_home.dir, sizeof in_home.dir, "%s/projects/mine", getenv("HOME"));
    assert_int_equal(base_fs_mkdirs(in_home.dir, &err), 0);
    tree_put(&in_home, "file", "inside\n");
    tree_open(&in_home);
    assert_true(works_everywhere(&in_home, "cat file", "inside"));
    assert_true(works_everywhere(&in_home, "sh -c 'pwd; echo y > made; cat made'", "y\n"));
    char *said = run_confined(&in_home, "cat ../other/secret.c ~/.ssh/id_ed25519; ls ..");
    assert_lacks(said, "SECRET");
    free(said);
    tool_workspace_close(in_home.w);
    t.w = NULL;
    base_fs_remove(in_home.dir, NULL);
    tree_remove(&t);
}

/* There the names of secrets are all that guards them; without namespaces they can still be written over. */
static void test_home__as_the_tree_it_hides_keys(void **state)
{
    tree t, home;
    tree_make(&t, false);
    home = t;
    snprintf(home.dir, sizeof home.dir, "%s", getenv("HOME"));
    tree_open(&home);
    const tool_sandbox real = home.w->sandbox;
    const char *names[3];
    tool_sandbox walls[3];
    assert_true(works_everywhere(&home, "cat .bashrc .cargo/config.toml", " mine\n[build]"));
    char *said = run_bare(&home, "cat .ssh/id_ed25519");
    assert_contains(said, "SECRET");
    free(said);
    for (int i = 0, n = walls_of(&real, walls, names); i < n; i++) {
        home.w->sandbox = walls[i];
        said = run_confined(&home,
            "cat .ssh/id_ed25519 .aws/credentials .npmrc .netrc .cargo/credentials.toml "
            ".cargo/link .m2/settings.xml .local/share/kvist/log.db; mv .ssh s; cat s/id_ed25519");
        if (strstr(said, "SECRET")) fail_msg("behind %s: %s", names[i], said);
        free(said);
        said = run_bare(&home, "sh -c 'test -d s && mv s .ssh; ls .ssh'"); /* as it was */
        assert_contains(said, "id_ed25519");
        free(said);
    }
    home.w->sandbox = real;
    tool_workspace_close(home.w);
    tree_remove(&t);
}

/* A worktree's repository lies elsewhere; a ".git" file that names somebody else's repository opens nothing. */
static void test_git__a_worktrees_repository_is_readable(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "a.c", "int a;\n");
    tree_commit(&t, "first");
    tree work = t;
    snprintf(work.dir, sizeof work.dir, "%s/work", t.base);
    char *said = run_bare(&t, "git worktree add -q ../work -b other");
    print_message("%s", said);
    free(said);
    tree_open(&work);
    assert_true(works_everywhere(&work, "git log --format=%s", "first"));
    tool_workspace_close(work.w);
    char line[400];
    tree liar = t;
    snprintf(liar.dir, sizeof liar.dir, "%s/liar", t.base);
    mkdir(liar.dir, 0755);
    snprintf(line, sizeof line, "gitdir: %s/.git\n", t.dir);
    tree_put(&liar, ".git", line);
    liar.w = NULL;
    tree_open(&liar);
    said = run_bare(&liar, "git log --format=%s");
    assert_contains(said, "first");
    free(said);
    said = run_confined(&liar, "git log --format=%s");
    assert_lacks(said, "first");
    free(said);
    tool_workspace_close(liar.w);
    tree_remove(&t);
}

static void test_reading__what_is_allowed_is_read_and_not_written(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "../data/table", "rows\n");
    char data[300], command[400];
    snprintf(data, sizeof data, "%s/data", t.base);
    const char *const allowed[] = {data, NULL};
    base_err err = {0};
    tool_workspace_options options = {.dir = t.dir, .store = t.store, .allow_read = allowed};
    if (tool_workspace_open(&t.w, &options, &err)) fail_msg("%s", err.msg);
    snprintf(command, sizeof command, "cat %s/table", data);
    assert_true(works_everywhere(&t, command, "rows"));
    snprintf(command, sizeof command, "echo x >> %s/table", data);
    char *said = run_confined(&t, command);
    free(said);
    said = tree_get(&t, "../data/table");
    assert_string_equal(said, "rows\n");
    free(said);
    tree_remove(&t);
}

static char *persons_home; /* HOME as the suite was started */

/* The test runners of four languages, each on a small tree, with the toolchains of whoever runs this. */
static void test_toolchains__run_their_tests(void **state)
{
    static const struct {
        const char *command, *good, *files[3][2];
        bool needs_mounts;
    } trees[] = {
        {"python3 -m pytest -q -p no:cacheprovider", "1 passed",
            {{"test_small.py", "def test_adds():\n    assert 1 + 1 == 2\n"}}},
        /* Semaphores are files of /dev/shm: without a mount namespace that folder is the machine's, and nothing of it is given. */
        {"python3 pool.py", "[2]",
            {{"pool.py",
                "from multiprocessing import Pool\n\n\ndef double(x):\n    return 2 * x\n\n\n"
                "if __name__ == '__main__':\n    with Pool(2) as p:\n        print(p.map(double, [1]))\n"}},
            .needs_mounts = true},
        {"cargo test --offline", "1 passed",
            {{"Cargo.toml", "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"},
                {"src/lib.rs", "#[test]\nfn adds() {\n    assert_eq!(1 + 1, 2);\n}\n"}}},
        /* Without vet, which reads the facts of the whole standard library anew behind each wall. */
        {"go test -vet=off ./...", "ok",
            {{"go.mod", "module small\n\ngo 1.19\n"}, {"small_test.go", "package small\n\n"
                                                                        "import \"testing\"\n\n"
                                                                        "func TestAdds(t *testing.T) {\n"
                                                                        "\tif 1+1 != 2 {\n"
                                                                        "\t\tt.Fatal()\n"
                                                                        "\t}\n"
                                                                        "}\n"}}},
        {"npm test", "pass 1",
            {{"package.json",
                 "{\"name\":\"small\",\"version\":\"1.0.0\",\"scripts\":{\"test\":\"node --test\"}}\n"},
                {"small.test.js", "const test = require('node:test'), assert = require('node:assert');\n"
                                  "test('adds', () => assert.equal(1 + 1, 2));\n"}}},
    };
    char *fake = strdup(getenv("HOME"));
    if (!access(persons_home, R_OK | W_OK | X_OK)) setenv("HOME", persons_home, 1); /* nobody has none */
    for (size_t i = 0; i < sizeof trees / sizeof *trees; i++) {
        tree t;
        tree_make(&t, false);
        for (int f = 0; f < 3 && trees[i].files[f][0]; f++)
            tree_put(&t, trees[i].files[f][0], trees[i].files[f][1]);
        tree_open(&t);
        if (works_behind(&t, trees[i].command, trees[i].good, trees[i].needs_mounts))
            print_message("%s works\n", trees[i].command);
        tree_remove(&t);
    }
    setenv("HOME", fake, 1);
    free(fake);
}

/* ---- running ---- */

/* A person's home: what must not be seen, and toolchains that must. */
static void fill_home(const char *home)
{
    static const char *const files[][2] = {{".ssh/id_ed25519", "SECRET"}, {".aws/credentials", "SECRET"},
        {".netrc", "SECRET"}, {".npmrc", "SECRET"}, {".bashrc", "# mine\n"},
        {".local/share/kvist/log.db", "SECRET"}, {"projects/other/secret.c", "SECRET"},
        {".cargo/credentials.toml", "SECRET"}, {".cargo/config.toml", "[build]\n"},
        {".m2/settings.xml", "SECRET"}, {".m2/repository/artifact", "jar\n"}, {".rustup/toolchain", "x\n"},
        {".gitconfig",
            "[user]\n\tname = A Person\n[github]\n\ttoken = t0ken\n[credential]\n\thelper = t0ken\n"}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[400];
        snprintf(path, sizeof path, "%s/%s", home, files[i][0]);
        char *slash = strrchr(path, '/');
        *slash = '\0';
        base_fs_mkdirs(path, NULL);
        *slash = '/';
        base_fs_write(path, files[i][1], strlen(files[i][1]), 0600, NULL);
    }
    char link[400];
    snprintf(link, sizeof link, "%s/.cargo/link", home);
    if (symlink("credentials.toml", link)) perror(link);
}

static int run_all(void)
{
    static const struct CMUnitTest needs[] = {
        cmocka_unit_test(test_limit__memory),
        cmocka_unit_test(test_limit__memory_that_processes_share_counts_once),
        cmocka_unit_test(test_limit__memory_of_many_processes_is_added_up),
        cmocka_unit_test(test_limit__processes),
        cmocka_unit_test(test_limit__processes_beyond_a_page_of_them),
        cmocka_unit_test(test_limit__output),
        cmocka_unit_test(test_limit__address_space_is_no_memory),
        cmocka_unit_test(test_home__toolchains_are_read_and_layered),
        cmocka_unit_test(test_home__is_writable_and_empty),
        cmocka_unit_test(test_home__is_the_persons_for_a_command_of_the_persons),
        cmocka_unit_test(test_home__the_tree_may_lie_in_it),
        cmocka_unit_test(test_home__as_the_tree_it_hides_keys),
        cmocka_unit_test(test_git__a_worktrees_repository_is_readable),
        cmocka_unit_test(test_reading__what_is_allowed_is_read_and_not_written),
        cmocka_unit_test(test_toolchains__run_their_tests),
    };
    enum { N = sizeof attacks / sizeof *attacks, N_NEEDS = sizeof needs / sizeof *needs };
    struct CMUnitTest tests[N + N_NEEDS];
    char home[] = "/tmp/kvist-home-XXXXXX";
    if (!mkdtemp(home)) return 1;
    persons_home = strdup(getenv("HOME") ? getenv("HOME") : "/");
    setenv("HOME", home, 1);
    fill_home(home);
    for (size_t i = 0; i < N; i++)
        tests[i] = (struct CMUnitTest){attacks[i].name, test_attack, NULL, NULL, (void *)&attacks[i]};
    memcpy(tests + N, needs, sizeof needs);
    int failed =
        cmocka_run_group_tests_name(geteuid() ? "as an ordinary user" : "as root", tests, NULL, NULL);
    base_fs_remove(home, NULL);
    setenv("HOME", persons_home, 1);
    free(persons_home);
    return failed;
}

/* A copy that any user may read: the build folder may lie where only its owner looks. */
static int copy_program(const char *from, char *to)
{
    base_buf bytes = {0};
    int fd = mkstemp(to), rc = fd < 0 || base_fs_read(from, 64 << 20, &bytes, NULL);
    if (!rc) rc = write(fd, bytes.data, bytes.len) != (ssize_t)bytes.len || fchmod(fd, 0644);
    if (fd >= 0) close(fd);
    base_buf_free(&bytes);
    return rc;
}

int main(int argc, char **argv)
{
    static char copy[] = "/tmp/kvist-attack-XXXXXX";
    if (argc == 3) cmocka_set_test_filter(argv[2]); /* by hand: "test_limit*" */
    if (argc < 2 || argc > 3 || copy_program(argv[1], copy)) {
        fputs("usage: test_sandbox ATTACK_PROGRAM [PATTERN]\n", stderr);
        return 2;
    }
    attack_program = copy;
    int status = 0;
    if (!geteuid()) { /* first, and in a process that has used nothing yet: libgit2 reads HOME once */
        pid_t child = fork();
        if (!child) {
            if (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY))
                _exit(99);
            prctl(PR_SET_DUMPABLE, 1); /* else nobody of this user could look into us anyway */
            int n = run_all();
            fflush(NULL);
            _exit(n ? 1 : 0);
        }
        waitpid(child, &status, 0);
    }
    int failed = run_all();
    unlink(copy);
    return failed || status;
}
