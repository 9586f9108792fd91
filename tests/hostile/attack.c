/*
 * What a hostile command tries, one attempt a word: attack WORD [ARGUMENT]... It prints "reached" when the attempt worked, else
 * the call that failed and why. Only system calls decide; nothing is inferred.
 */
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static int failed(const char *step)
{
    printf("%s: %s\n", step, strerror(errno));
    return 1;
}

static int reached(void)
{
    puts("reached");
    return 0;
}

static int number(const char *text)
{
    return (int)strtol(text, NULL, 10);
}

static struct sockaddr_un unix_name(const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    strncpy(name.sun_path, path, sizeof name.sun_path - 1);
    return name;
}

/* ---- sockets ---- */

static int try_datagram(char **argv)
{
    int pair[2];
    struct sockaddr_un name = unix_name(argv[0]);
    struct iovec text = {(char *)"stolen", 6};
    struct msghdr message = {
        .msg_name = &name, .msg_namelen = sizeof name, .msg_iov = &text, .msg_iovlen = 1};
    if (socketpair(AF_UNIX, number(argv[1]), 0, pair)) return failed("socketpair");
    if (sendmsg(pair[0], &message, 0) < 0) return failed("sendmsg");
    return reached();
}

static int try_abstract(char **argv)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    size_t n = strlen(argv[0]);
    memcpy(name.sun_path + 1, argv[0], n);
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    if (s < 0) return failed("socket");
    if (connect(s, (struct sockaddr *)&name, (socklen_t)(sizeof(sa_family_t) + 1 + n)))
        return failed("connect");
    return reached();
}

static int try_stream(char **argv)
{
    struct sockaddr_un name = unix_name(argv[0]);
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    if (s < 0) return failed("socket");
    if (connect(s, (struct sockaddr *)&name, sizeof name)) return failed("connect");
    return reached();
}

static int try_tcp(char **argv)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)number(argv[0]))};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int s = socket(AF_INET, SOCK_STREAM, 0);
    if (s < 0) return failed("socket");
    if (connect(s, (struct sockaddr *)&to, sizeof to)) return failed("connect");
    return reached();
}

/* ---- shared memory and queues ---- */

static int try_shm(char **argv)
{
    int id = shmget(number(argv[0]), 0, 0);
    if (id < 0) return failed("shmget");
    const char *memory = shmat(id, NULL, 0);
    if (memory == (void *)-1) return failed("shmat");
    printf("%.6s\n", memory);
    return reached();
}

static int try_sem(char **argv)
{
    int id = semget(number(argv[0]), 0, 0);
    if (id < 0) return failed("semget");
    if (semctl(id, 0, GETVAL) < 0) return failed("semctl");
    return reached();
}

static int try_msg(char **argv)
{
    struct {
        long type;
        char text[8];
    } message = {1, "forged"};
    int id = msgget(number(argv[0]), 0);
    if (id < 0) return failed("msgget");
    if (msgsnd(id, &message, sizeof message.text, IPC_NOWAIT)) return failed("msgsnd");
    return reached();
}

static int try_mq(char **argv)
{
    mqd_t queue = mq_open(argv[0], O_WRONLY | O_NONBLOCK);
    if (queue == (mqd_t)-1) return failed("mq_open");
    return reached();
}

/* ---- other processes ---- */

static int try_prlimit(char **argv)
{
    struct rlimit now;
    if (prlimit(number(argv[0]), RLIMIT_CORE, NULL, &now)) return failed("prlimit");
    if (prlimit(number(argv[0]), RLIMIT_CORE, &now, NULL)) return failed("prlimit");
    return reached();
}

static int try_affinity(char **argv)
{
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    if (sched_getaffinity(0, sizeof cpus, &cpus)) return failed("sched_getaffinity");
    return sched_setaffinity(number(argv[0]), sizeof cpus, &cpus) ? failed("sched_setaffinity") : reached();
}

static int try_scheduler(char **argv)
{
    struct sched_param none = {0};
    return sched_setscheduler(number(argv[0]), SCHED_OTHER, &none) ? failed("sched_setscheduler") : reached();
}

static int try_priority(char **argv)
{
    return setpriority(PRIO_PROCESS, (id_t)number(argv[0]), 0) ? failed("setpriority") : reached();
}

static int try_user_priority(char **argv)
{
    return setpriority(PRIO_USER, (id_t)number(argv[0]), 0) ? failed("setpriority") : reached();
}

/* The kernel reads 32 bits of "which", a filter may compare 64. */
static int try_wide_priority(char **argv)
{
    return syscall(SYS_setpriority, (1ull << 32) | PRIO_USER, (long)number(argv[0]), 0)
               ? failed("setpriority")
               : reached();
}

static int try_ioprio(char **argv)
{
    enum { WHO_PROCESS = 1, BEST_EFFORT_4 = 2 << 13 | 4 };
    return syscall(SYS_ioprio_set, WHO_PROCESS, number(argv[0]), BEST_EFFORT_4) ? failed("ioprio_set")
                                                                                : reached();
}

static int try_kill(char **argv)
{
    return kill(number(argv[0]), 0) ? failed("kill") : reached();
}

static int try_pidfd(char **argv)
{
    int fd = (int)syscall(SYS_pidfd_open, number(argv[0]), 0);
    if (fd < 0) return failed("pidfd_open");
    return syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0) ? failed("pidfd_send_signal") : reached();
}

static int try_vm_read(char **argv)
{
    char bytes[8];
    struct iovec here = {bytes, sizeof bytes}, there = {(void *)strtoul(argv[1], NULL, 16), sizeof bytes};
    if (process_vm_readv(number(argv[0]), &here, 1, &there, 1, 0) < 0) return failed("process_vm_readv");
    return reached();
}

static int try_ptrace(char **argv)
{
    if (ptrace(PTRACE_SEIZE, number(argv[0]), NULL, NULL)) return failed("ptrace");
    return reached();
}

static int try_keyctl(char **argv)
{
    (void)argv;
    long id = syscall(SYS_add_key, "user", "kvist-attack", "x", 1, -3 /* the session's keyring */);
    return id < 0 ? failed("add_key") : reached();
}

/* ---- the kernel's surface ---- */

static int try_io_uring(char **argv)
{
    (void)argv;
    char parameters[120] = {0};
    return syscall(SYS_io_uring_setup, 1, parameters) < 0 ? failed("io_uring_setup") : reached();
}

static int try_unshare(char **argv)
{
    (void)argv;
    return unshare(CLONE_NEWUSER) ? failed("unshare") : reached();
}

/* A new namespace first, where that is what an ordinary user needs. */
static int try_mount(char **argv)
{
    if (unshare(CLONE_NEWNS) && unshare(CLONE_NEWUSER | CLONE_NEWNS)) return failed("unshare");
    return mount("none", argv[0], "tmpfs", 0, NULL) ? failed("mount") : reached();
}

/* A program that runs as its owner whoever starts it, made in each way. */
static int try_setuid(char **words)
{
    static const char name[] = "setuid-program";
    const char *how = words[0];
    struct {
        unsigned long long flags, mode, resolve;
    } wide = {O_CREAT | O_WRONLY, 04755, 0};
    struct stat st;
    int fd = -1;
    unlink(name);
    if (!strcmp(how, "open"))
        fd = (int)syscall(SYS_openat, AT_FDCWD, name, O_CREAT | O_WRONLY, 04755);
    else if (!strcmp(how, "openat2"))
        fd = (int)syscall(SYS_openat2, AT_FDCWD, name, &wide, sizeof wide);
    else if (!strcmp(how, "unnamed"))
        fd = openat(AT_FDCWD, ".", O_TMPFILE | O_WRONLY, 04755);
    else
        fd = open(name, O_CREAT | O_WRONLY, 0755);
    if (fd < 0) return failed("open");
    if (!strcmp(how, "chmod") && syscall(SYS_fchmodat, AT_FDCWD, name, 04755)) return failed("fchmodat");
    if (!strcmp(how, "fchmod") && fchmod(fd, 04755)) return failed("fchmod");
    if (!strcmp(how, "fchmodat2") && syscall(452, AT_FDCWD, name, 04755, 0)) return failed("fchmodat2");
    const int rc = fstat(fd, &st) || !(st.st_mode & S_ISUID) ? failed("no such bit") : reached();
    unlink(name);
    return rc;
}

static int try_chroot(char **argv)
{
    return chroot(argv[0]) ? failed("chroot") : reached();
}

/* ---- files and terminals ---- */

static int try_read(char **argv)
{
    char bytes[64];
    int fd = open(argv[0], O_RDONLY | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) return failed("open");
    ssize_t n = read(fd, bytes, sizeof bytes);
    if (n < 0) return failed("read");
    return n ? reached() : (puts("read: nothing"), 1);
}

static int try_write(char **argv)
{
    int fd = open(argv[0], O_WRONLY | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) return failed("open");
    if (write(fd, "x", 1) != 1) return failed("write");
    return reached();
}

static int try_attribute(char **argv)
{
    return setxattr(argv[0], "user.kvist", "x", 1, 0) ? failed("setxattr") : reached();
}

static int try_list(char **argv)
{
    int fd = open(argv[0], O_RDONLY | O_DIRECTORY);
    char entries[4096];
    if (fd < 0) return failed("open");
    long n = syscall(SYS_getdents64, fd, entries, sizeof entries);
    if (n < 0) return failed("getdents64");
    return n > 48 ? reached() : (puts("getdents64: nothing"), 1); /* more than "." and ".." */
}

/* TIOCSTI types into a terminal; a session of one's own must not have it as its own first. */
static int try_type(char **argv)
{
    setsid();
    int fd = open(argv[0], O_RDWR);
    if (fd < 0) return failed("open");
    ioctl(fd, TIOCSCTTY, 1);
    return ioctl(fd, TIOCSTI, "x") ? failed("TIOCSTI") : reached();
}

/* A process that leaves its session and its parents, and goes on: it writes ARGUMENT a second later. */
static int try_outlive(char **argv)
{
    if (fork()) return 0;
    setsid();
    if (fork()) return 0;
    for (int fd = 0; fd < 3; fd++) close(fd);
    sleep(1);
    int fd = open(argv[0], O_WRONLY | O_CREAT, 0600);
    return fd < 0;
}

/* ---- limits ---- */

static int try_memory(char **argv)
{
    size_t n = (size_t)number(argv[0]) << 20;
    char *memory = malloc(n);
    if (!memory) return failed("malloc");
    for (size_t i = 0; i < n; i += 4096) memory[i] = 1;
    const unsigned seconds = (unsigned)number(argv[2]);
    if (argv[1][0] != '0' && fork() == 0) sleep(seconds); /* shared with the child: the same pages */
    sleep(seconds);
    return memory[n / 2] ? reached() : 1;
}

static int try_processes(char **argv)
{
    for (int i = 0; i < number(argv[0]); i++) {
        pid_t child = fork();
        if (child < 0) return failed("fork");
        if (!child) {
            sleep((unsigned)number(argv[1]) + 2);
            _exit(0);
        }
    }
    sleep((unsigned)number(argv[1]));
    return reached();
}

static int try_flood(char **argv)
{
    static char line[1 << 16];
    memset(line, 'x', sizeof line);
    line[sizeof line - 1] = '\n';
    for (int mb = number(argv[0]) * 16; mb > 0; mb--)
        if (write(1, line, sizeof line) < 0) return failed("write");
    puts("");
    return reached();
}

static const struct {
    const char *word;
    int n_arguments;
    int (*attempt)(char **argv);
} attempts[] = {
    {"datagram", 2, try_datagram},
    {"abstract", 1, try_abstract},
    {"stream", 1, try_stream},
    {"tcp", 1, try_tcp},
    {"attribute", 1, try_attribute},
    {"shm", 1, try_shm},
    {"sem", 1, try_sem},
    {"msg", 1, try_msg},
    {"mq", 1, try_mq},
    {"prlimit", 1, try_prlimit},
    {"affinity", 1, try_affinity},
    {"scheduler", 1, try_scheduler},
    {"priority", 1, try_priority},
    {"user-priority", 1, try_user_priority},
    {"wide-priority", 1, try_wide_priority},
    {"ioprio", 1, try_ioprio},
    {"kill", 1, try_kill},
    {"pidfd", 1, try_pidfd},
    {"vm-read", 2, try_vm_read},
    {"ptrace", 1, try_ptrace},
    {"keyctl", 0, try_keyctl},
    {"io-uring", 0, try_io_uring},
    {"unshare", 0, try_unshare},
    {"mount", 1, try_mount},
    {"setuid", 1, try_setuid},
    {"chroot", 1, try_chroot},
    {"read", 1, try_read},
    {"write", 1, try_write},
    {"list", 1, try_list},
    {"type", 1, try_type},
    {"outlive", 1, try_outlive},
    {"memory", 3, try_memory},
    {"processes", 2, try_processes},
    {"flood", 1, try_flood},
};

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t i = 0; argc > 1 && i < sizeof attempts / sizeof *attempts; i++)
        if (!strcmp(attempts[i].word, argv[1]) && argc - 2 == attempts[i].n_arguments)
            return attempts[i].attempt(argv + 2);
    fputs("usage: attack WORD [ARGUMENT]...\n", stderr);
    return 2;
}
