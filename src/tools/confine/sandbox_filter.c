/*
 * The tables of refused system calls and the program made of them by libseccomp (contract: sandbox_filter.h).
 */
#include "tools/confine/sandbox_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

/*
 * Names, because numbers differ by machine. EPERM: what reaches out of the box or widens the kernel's
 * surface.
 */
static const char *const denied_calls[] = {"ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd",
    "kcmp", "mount", "umount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "fsopen",
    "fsconfig", "fsmount", "fspick", "mount_setattr", "unshare", "setns", "bpf", "perf_event_open",
    "userfaultfd", "keyctl", "add_key", "request_key", "init_module", "finit_module", "delete_module",
    "kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff", "acct", "quotactl", "quotactl_fd",
    "open_by_handle_at", "fanotify_init", "iopl", "ioperm", "settimeofday", "clock_settime", "clock_adjtime",
    "adjtimex", "stime", "sethostname", "setdomainname", "vhangup", "syslog", "lookup_dcookie", "nfsservctl",
    "modify_ldt", "mknod", "mknodat"};
/* ENOSYS, so that programs take their older way; openat2 has its mode behind a pointer (add_setuid). */
static const char *const absent_calls[] = {
    "io_uring_setup", "io_uring_enter", "io_uring_register", "clone3", "openat2"};
/* Answered with success and not done: every descendant stays in the group that is killed as one. */
static const char *const pretended_calls[] = {"setsid", "setpgid"};

/* System V's and POSIX's objects belong to the machine, not to a folder. */
static const char *const ipc_calls[] = {"shmget", "shmat", "shmctl", "semget", "semop", "semtimedop",
    "semctl", "msgget", "msgsnd", "msgrcv", "msgctl", "ipc", "mq_open", "mq_unlink"};
/* They name another process by its number; 0 is oneself, and that is what programs use. */
static const char *const self_first[] = {"prlimit64", "sched_setaffinity", "sched_setscheduler",
    "sched_setparam", "sched_setattr", "migrate_pages", "move_pages", "get_robust_list"};
static const char *const self_second[] = {"setpriority", "ioprio_set"};
static const char *const pidfd_calls[] = {
    "pidfd_open", "pidfd_send_signal", "process_madvise", "process_mrelease"};

/* ENOTSUP, as of a file system without them: programs that copy attributes go on. */
static const char *const attribute_calls[] = {"setxattr", "lsetxattr", "fsetxattr", "removexattr",
    "lremovexattr", "fremovexattr", "setxattrat", "removexattrat"};

static int checked(int code)
{
    return code == -EDOM || code == -EINVAL ? 0 : code; /* not on this machine's architecture */
}

static int add_name(scmp_filter_ctx filter, uint32_t action, const char *name)
{
    int call = seccomp_syscall_resolve_name(name);
    if (call == __NR_SCMP_ERROR) return 0; /* libseccomp does not know it: then neither do most programs */
    return checked(seccomp_rule_add(filter, action, call, 0));
}

static int add_all(scmp_filter_ctx filter, uint32_t action, const char *const *names, size_t n)
{
    int code = 0;
    for (size_t i = 0; i < n && !code; i++) code = add_name(filter, action, names[i]);
    return code;
}

/* Refuses each call unless its argument is 0. */
static int add_unless_self(scmp_filter_ctx filter, const char *const *names, size_t n, unsigned argument)
{
    int code = 0;
    for (size_t i = 0; i < n && !code; i++) {
        int call = seccomp_syscall_resolve_name(names[i]);
        struct scmp_arg_cmp is_other = {.arg = argument, .op = SCMP_CMP_NE, .datum_a = 0};
        if (call != __NR_SCMP_ERROR)
            code = checked(seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(EPERM), call, 1, &is_other));
    }
    return code;
}

#define NAMES(table) table, sizeof table / sizeof *table

/*
 * AF_UNIX streams only. A datagram socket, one of a pair too, reaches any name of the machine by sendto or
 * sendmsg, without connect; the names lie behind pointers. SOCK_RAW is the kernel's other word for such a
 * socket.
 */
static int add_sockets(scmp_filter_ctx f)
{
    const int calls[] = {SCMP_SYS(socket), SCMP_SYS(socketpair)};
    const unsigned long nameless[] = {SOCK_DGRAM, SOCK_RAW};
    uint32_t deny = SCMP_ACT_ERRNO(EPERM);
    int code = 0;
    for (int i = 0; i < 2 && !code; i++) {
        code = seccomp_rule_add(f, deny, calls[i], 1, SCMP_A0(SCMP_CMP_NE, AF_UNIX));
        for (int type = 0; type < 2 && !code; type++)
            code = seccomp_rule_add(f, deny, calls[i], 2, SCMP_A0(SCMP_CMP_EQ, AF_UNIX),
                SCMP_A1(SCMP_CMP_MASKED_EQ, 0xf, nameless[type]));
    }
    return code ? code : seccomp_rule_add(f, deny, SCMP_SYS(sendto), 1, SCMP_A4(SCMP_CMP_NE, 0));
}

static int add_others(scmp_filter_ctx f)
{
    int code = add_unless_self(f, NAMES(self_first), 0);
    if (!code) code = add_unless_self(f, NAMES(self_second), 1);
    if (!code) code = add_all(f, SCMP_ACT_ERRNO(ENOSYS), NAMES(pidfd_calls));
    return code;
}

/*
 * A program with this bit runs as its owner whoever starts it: any neighbour would become the person by one that a command made.
 * (The group's bit is left: folders of shared repositories have it, and the numbers tell no folder from a program.)
 */
static int add_setuid(scmp_filter_ctx f)
{
    enum { FCHMODAT2 = 452 }; /* everywhere; younger than libseccomp may be */
    const struct {
        int call;
        unsigned mode, flags; /* which argument; flags 0: none says whether the mode counts */
    } calls[] = {{SCMP_SYS(chmod), 1, 0}, {SCMP_SYS(fchmod), 1, 0}, {SCMP_SYS(fchmodat), 2, 0},
        {FCHMODAT2, 2, 0}, {SCMP_SYS(creat), 1, 0}, {SCMP_SYS(open), 2, 1}, {SCMP_SYS(openat), 3, 2}};
    const unsigned long makes[] = {O_CREAT, O_TMPFILE & ~O_DIRECTORY};
    int code = 0;
    for (size_t i = 0; i < sizeof calls / sizeof *calls && !code; i++)
        for (size_t k = 0; k < (calls[i].flags ? 2 : 1) && !code; k++) {
            const struct scmp_arg_cmp are[] = {
                {.arg = calls[i].mode, .op = SCMP_CMP_MASKED_EQ, .datum_a = S_ISUID, .datum_b = S_ISUID},
                {.arg = calls[i].flags, .op = SCMP_CMP_MASKED_EQ, .datum_a = makes[k], .datum_b = makes[k]}};
            code = checked(
                seccomp_rule_add_array(f, SCMP_ACT_ERRNO(EPERM), calls[i].call, calls[i].flags ? 2 : 1, are));
        }
    return code;
}

static int add_rules(scmp_filter_ctx f, const tool_filter_needs *needs)
{
    uint32_t deny = SCMP_ACT_ERRNO(EPERM), absent = SCMP_ACT_ERRNO(ENOSYS), pretend = SCMP_ACT_ERRNO(0);
    int code = add_all(f, deny, NAMES(denied_calls));
    if (!code) code = add_all(f, absent, NAMES(absent_calls));
    if (!code) code = add_all(f, pretend, NAMES(pretended_calls));
    if (!code && !needs->opens_network) code = add_name(f, deny, "connect");
    if (!code && !needs->opens_network) code = add_sockets(f);
    if (!code) code = add_setuid(f);
    /* New namespaces by clone; unshare is denied above, clone3 is absent. */
    const unsigned long spaces[] = {
        CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWIPC, CLONE_NEWUTS, CLONE_NEWCGROUP};
    for (size_t i = 0; !code && i < sizeof spaces / sizeof *spaces; i++)
        code =
            seccomp_rule_add(f, deny, SCMP_SYS(clone), 1, SCMP_A0(SCMP_CMP_MASKED_EQ, spaces[i], spaces[i]));
    /* Typing into a terminal. */
    const unsigned long controls[] = {TIOCSTI, TIOCLINUX};
    for (size_t i = 0; !code && i < sizeof controls / sizeof *controls; i++)
        code = seccomp_rule_add(
            f, deny, SCMP_SYS(ioctl), 1, SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffff, controls[i]));
    /*
     * "All of this user's processes": never oneself alone, and the number is 0 too. ioprio_set counts from 1.
     */
    enum { IOPRIO_WHO_USER = 3 };
    if (!code)
        code = seccomp_rule_add(
            f, deny, SCMP_SYS(setpriority), 1, SCMP_A0(SCMP_CMP_MASKED_EQ, 0xffffffff, PRIO_USER));
    if (!code)
        code = seccomp_rule_add(
            f, deny, SCMP_SYS(ioprio_set), 1, SCMP_A0(SCMP_CMP_MASKED_EQ, 0xffffffff, IOPRIO_WHO_USER));
    if (!code && needs->guards_others) code = add_others(f);
    if (!code && needs->denies_attributes) code = add_all(f, SCMP_ACT_ERRNO(ENOTSUP), NAMES(attribute_calls));
    if (!code && needs->guards_ipc) code = add_all(f, deny, NAMES(ipc_calls));
    /* ftruncate needs a writable descriptor anyway. */
    if (!code && needs->denies_truncate) code = add_name(f, deny, "truncate");
    return code;
}

int tool__filter_make(const tool_filter_needs *needs, void **ret, size_t *ret_bytes, base_err *err)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    int memory = memfd_create("filter", MFD_CLOEXEC), code = filter && memory >= 0 ? 0 : -ENOMEM;
    struct stat st;
    if (!code) code = add_rules(filter, needs);
    if (!code) code = seccomp_export_bpf(filter, memory);
    if (!code && fstat(memory, &st)) code = -errno;
    void *bytes = NULL;
    if (!code) {
        bytes = base_xmalloc((size_t)st.st_size);
        if (pread(memory, bytes, (size_t)st.st_size, 0) != st.st_size) code = -EIO;
    }
    if (filter) seccomp_release(filter);
    if (memory >= 0) close(memory);
    if (code) {
        free(bytes);
        errno = -code;
        return base_fail_sys(err, "seccomp filter");
    }
    *ret = bytes;
    *ret_bytes = (size_t)st.st_size;
    return BASE_OK;
}
