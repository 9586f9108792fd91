#include "tools/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/mount.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "tools/sandbox_filter.h"

/* ---- Landlock (landlock(7)); the installed header may be older than the kernel, so the numbers are ours ---- */

enum {
    FS_EXECUTE = 1 << 0,
    FS_WRITE_FILE = 1 << 1,
    FS_READ_FILE = 1 << 2,
    FS_READ_DIR = 1 << 3,
    FS_REFER = 1 << 13,     /* ABI 2 */
    FS_TRUNCATE = 1 << 14,  /* ABI 3 */
    FS_IOCTL_DEV = 1 << 15, /* ABI 5 */
    FS_FIRST = (1 << 13) - 1,
    NET_BIND_TCP = 1 << 0, /* ABI 4 */
    NET_CONNECT_TCP = 1 << 1,
    SCOPE_ABSTRACT_UNIX = 1 << 0, /* ABI 6 */
    SCOPE_SIGNAL = 1 << 1,
    RULE_PATH_BENEATH = 1,
    QUERY_VERSION = 1,
};
struct ruleset_attributes {
    uint64_t fs, net, scoped;
};
struct path_beneath {
    uint64_t allowed;
    int32_t fd;
} __attribute__((packed));

static uint64_t fs_rights(int abi)
{
    return FS_FIRST | (abi >= 2 ? FS_REFER : 0) | (abi >= 3 ? FS_TRUNCATE : 0) |
           (abi >= 5 ? FS_IOCTL_DEV : 0);
}

static int landlock_abi(void)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, QUERY_VERSION);
    return abi > 0 ? (int)abi : 0;
}

static int add_rule(int ruleset, const char *path, uint64_t allowed, bool is_folder, base_err *err)
{
    int fd = open(path, O_PATH | O_CLOEXEC | (is_folder ? O_DIRECTORY : 0));
    if (fd < 0) return is_folder ? base_fail_sys(err, "%s", path) : BASE_OK; /* a device this machine lacks */
    struct path_beneath rule = {.allowed = allowed, .fd = fd};
    int failed = (int)syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &rule, 0);
    int code = failed ? base_fail_sys(err, "Landlock rule for %s", path) : BASE_OK;
    close(fd);
    return code;
}

static const char *const writable_devices[] = {
    "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"};

static int make_ruleset(int abi, const char *root, bool root_is_writable, const char *tmp, const char *shm,
    int *ret, base_err *err)
{
    uint64_t all = fs_rights(abi), look = FS_EXECUTE | FS_READ_FILE | FS_READ_DIR;
    struct ruleset_attributes attributes = {
        .fs = all,
        .net = abi >= 4 ? NET_BIND_TCP | NET_CONNECT_TCP : 0,
        .scoped = abi >= 6 ? SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL : 0,
    };
    size_t size = abi >= 6 ? sizeof attributes : abi >= 4 ? 16 : 8; /* an older kernel refuses a longer one */
    int ruleset = (int)syscall(SYS_landlock_create_ruleset, &attributes, size, 0);
    if (ruleset < 0) return base_fail_sys(err, "Landlock");
    fcntl(ruleset, F_SETFD, FD_CLOEXEC);
    int code = add_rule(ruleset, "/", look, true, err);
    if (!code && root_is_writable) code = add_rule(ruleset, root, all, true, err);
    if (!code) code = add_rule(ruleset, tmp, all, true, err);
    if (!code)
        code = add_rule(ruleset, shm, all, true, err); /* it is reached as /dev/shm, which is not below tmp */
    uint64_t device = FS_READ_FILE | FS_WRITE_FILE | (all & (FS_TRUNCATE | FS_IOCTL_DEV));
    for (size_t i = 0; !code && i < sizeof writable_devices / sizeof *writable_devices; i++)
        code = add_rule(ruleset, writable_devices[i], device, false, err);
    if (code)
        close(ruleset);
    else
        *ret = ruleset;
    return code;
}

/* ---- the mount namespace ---- */

static int set_read_only(const char *path, bool read_only, unsigned flags)
{
    struct mount_attr change = {0};
    if (read_only)
        change.attr_set = MOUNT_ATTR_RDONLY;
    else
        change.attr_clr = MOUNT_ATTR_RDONLY;
    return (int)syscall(SYS_mount_setattr, AT_FDCWD, path, flags, &change, sizeof change);
}

static int put_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    size_t n = strlen(text);
    int failed = write(fd, text, n) != (ssize_t)n;
    close(fd);
    return failed ? -1 : 0;
}

/* This user is itself in the user namespace that it is in. */
static int map_user(const char *uid_map, const char *gid_map)
{
    return put_text("/proc/self/setgroups", "deny") || put_text("/proc/self/uid_map", uid_map) ||
                   put_text("/proc/self/gid_map", gid_map)
               ? -1
               : 0;
}

/* A mount namespace of our own; without privilege behind a user namespace (unless it is entered already). */
static int enter_namespace(bool needs_user, const char *uid_map, const char *gid_map)
{
    if (unshare(CLONE_NEWNS | (needs_user ? CLONE_NEWUSER : 0))) return -1;
    if (needs_user && map_user(uid_map, gid_map)) return -1;
    return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

/* The first process of a PID namespace sees its own in /proc, and nobody else's. */
static int mount_proc(void)
{
    return mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
}

/* Processes of its own, and shared memory, semaphores and queues of its own. */
static unsigned long pid_namespaces(bool needs_user)
{
    return CLONE_NEWPID | CLONE_NEWIPC | (needs_user ? CLONE_NEWUSER : 0);
}

/* A short-lived child tries it. */
static bool try_namespace(bool needs_user, bool with_pids)
{
    char uid_map[64], gid_map[64];
    snprintf(uid_map, sizeof uid_map, "%u %u 1", geteuid(), geteuid());
    snprintf(gid_map, sizeof gid_map, "%u %u 1", getegid(), getegid());
    pid_t child =
        (pid_t)syscall(SYS_clone, (with_pids ? pid_namespaces(needs_user) : 0) | SIGCHLD, 0, 0, 0, 0);
    if (child < 0) return false;
    if (!child) {
        bool works = !with_pids || !needs_user || !map_user(uid_map, gid_map);
        works = works && !enter_namespace(needs_user && !with_pids, uid_map, gid_map);
        works = works && (!with_pids || !mount_proc());
        _exit(works && !set_read_only("/", true, AT_RECURSIVE) ? 0 : 1);
    }
    int status;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ---- asking and describing ---- */

void tool_sandbox_probe(tool_sandbox *ret)
{
    uint32_t action = SECCOMP_RET_ERRNO;
    *ret = (tool_sandbox){
        .landlock_abi = landlock_abi(),
        .has_seccomp = syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0,
        .has_mounts = try_namespace(false, false),
    };
    if (!ret->has_mounts) ret->has_mounts = ret->needs_user = try_namespace(true, false);
    ret->has_pids = ret->has_mounts && try_namespace(ret->needs_user, true);
    ret->is_confining = (ret->landlock_abi > 0 || ret->has_mounts) && ret->has_seccomp;
}

void tool_sandbox_describe_one(const tool_sandbox *s, base_buf *out)
{
    if (s->landlock_abi) {
        base_buf_printf(out, "Landlock: ABI %d; commands write to the tree and a private tmp only%s%s\n",
            s->landlock_abi, s->landlock_abi >= 4 ? ", no TCP" : "",
            s->landlock_abi >= 6 ? ", signal only each other" : "");
        if (s->landlock_abi < 2)
            base_buf_puts(out, "Landlock ABI 1: renaming between folders fails in commands\n");
    } else {
        base_buf_puts(out, "Landlock: not in this kernel\n");
    }
    base_buf_puts(out,
        !s->has_mounts ? "mount namespace: not allowed here; .git's configuration and hooks are checked and "
                         "restored after each "
                         "command instead\n"
        : s->needs_user
            ? "mount namespace: by a user namespace; everything but the tree is mounted read-only, .git's "
              "configuration and hooks too\n"
            : "mount namespace: everything but the tree is mounted read-only, .git's configuration and hooks "
              "too\n");
    base_buf_puts(out,
        s->has_pids ? "PID namespace: a command and all it starts end together, also when kvist is killed\n"
                      "IPC namespace: shared memory, semaphores and queues of its own\n"
        : s->has_seccomp
            ? "PID namespace: not allowed here; a command's group is ended together instead, and calls that "
              "change other processes are refused\n"
              "IPC namespace: not allowed here; System V and POSIX shared memory and queues are refused\n"
            : "PID namespace: not allowed here; a command's group is ended together instead\n");
    if (!s->has_mounts && s->landlock_abi)
        base_buf_puts(
            out, "not covered: chmod, chown and times of files outside of the tree that this user owns\n");
    base_buf_puts(out, s->has_seccomp ? "seccomp: no network, ptrace, mounts, namespaces, io_uring, keys\n"
                                      : "seccomp: not in this kernel; commands can reach the network\n");
    if (!s->is_confining) base_buf_puts(out, "commands are NOT confined on this machine\n");
}

/* ---- one child ---- */

/* Root keeps what files of other owners need; an ordinary user has none of these. */
static const int kept_capabilities[] = {CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID};

int tool_sandbox_prepare(const tool_sandbox *s, const char *root, bool root_is_writable, const char *tmp,
    const char *const *read_only, tool_sandbox_plan *ret, base_err *err)
{
    tool_sandbox_plan p = {.ruleset = -1,
        .use_landlock = s->landlock_abi > 0,
        .use_mounts = s->has_mounts,
        .needs_user = s->needs_user,
        .use_pids = s->has_mounts && s->has_pids,
        .root_is_writable = root_is_writable};
    int code = BASE_OK;
    base_buf shm = {0};
    base_buf_printf(&shm, "%s/shm", tmp);
    p.shm = base_buf_take(&shm);
    if (mkdir(p.shm, 0700) && errno != EEXIST) code = base_fail_sys(err, "%s", p.shm);
    if (!code && p.use_landlock)
        code = make_ruleset(s->landlock_abi, root, root_is_writable, tmp, p.shm, &p.ruleset, err);
    if (!code && s->has_seccomp) {
        const tool_filter_needs needs = {.denies_truncate = s->landlock_abi < 3 && !s->has_mounts,
            .guards_others = !p.use_pids,
            .guards_ipc = !p.use_pids};
        code = tool__filter_make(&needs, &p.filter, &p.filter_bytes, err);
        p.use_seccomp = !code;
    }
    p.root = base_xstrdup(root);
    p.tmp = base_xstrdup(tmp);
    size_t n = 0;
    while (read_only && read_only[n]) n++;
    p.read_only = base_xcalloc(n + 1, sizeof *p.read_only);
    for (size_t i = 0; i < n; i++) p.read_only[i] = base_xstrdup(read_only[i]);
    for (size_t i = 0; i < sizeof kept_capabilities / sizeof *kept_capabilities; i++)
        p.keep_capabilities |= 1ull << kept_capabilities[i];
    snprintf(p.uid_map, sizeof p.uid_map, "%u %u 1", geteuid(), geteuid());
    snprintf(p.gid_map, sizeof p.gid_map, "%u %u 1", getegid(), getegid());
    if (code)
        tool_sandbox_plan_free(&p);
    else
        *ret = p;
    return code;
}

void tool_sandbox_plan_free(tool_sandbox_plan *p)
{
    if (p->ruleset >= 0) close(p->ruleset);
    for (char **path = p->read_only; path && *path; path++) free(*path);
    free(p->read_only);
    free(p->filter);
    free(p->root);
    free(p->tmp);
    free(p->shm);
    memset(p, 0, sizeof *p);
    p->ruleset = -1;
}

static const char *enter_mounts(const tool_sandbox_plan *p)
{
    if (enter_namespace(p->needs_user && !p->use_pids, p->uid_map, p->gid_map)) return "mount namespace";
    if (p->use_pids && mount_proc()) return "a /proc of its own";
    /* Places of their own first, so that they can stay writable when the rest is not. */
    if (p->root_is_writable && mount(p->root, p->root, NULL, MS_BIND | MS_REC, NULL))
        return "binding the tree";
    if (mount(p->tmp, p->tmp, NULL, MS_BIND | MS_REC, NULL)) return "binding tmp";
    /* Semaphores and shared memory of one's own (Python's multiprocessing needs them); missing is no fault. */
    bool has_shm = !mount(p->shm, "/dev/shm", NULL, MS_BIND, NULL);
    if (set_read_only("/", true, AT_RECURSIVE)) return "mounting everything read-only";
    if (p->root_is_writable && set_read_only(p->root, false, 0)) return "the tree's mount";
    if (set_read_only(p->tmp, false, 0) || (has_shm && set_read_only("/dev/shm", false, 0)))
        return "tmp's mount";
    for (char **path = p->read_only; *path; path++)
        if (mount(*path, *path, NULL, MS_BIND | MS_REC, NULL) || set_read_only(*path, true, AT_RECURSIVE))
            return "protecting .git";
    return NULL;
}

static const char *drop_capabilities(unsigned long long keep)
{
    for (int cap = 0; cap < 64; cap++) {
        if (keep >> cap & 1) continue;
        /* EINVAL: beyond the last one. EPERM: no privilege at all, then there is nothing to drop. */
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) && errno != EINVAL && errno != EPERM) return "capabilities";
    }
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{0}};
    if (syscall(SYS_capget, &header, data)) return "capabilities";
    for (int i = 0; i < 2; i++) {
        uint32_t mask = (uint32_t)(keep >> (32 * i));
        data[i].permitted &= mask;
        data[i].effective = data[i].permitted;
        data[i].inheritable = 0;
    }
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return syscall(SYS_capset, &header, data) ? "capabilities" : NULL;
}

unsigned long tool_sandbox_namespaces(const tool_sandbox_plan *p)
{
    return p->use_pids ? pid_namespaces(p->needs_user) : 0;
}

const char *tool_sandbox_enter_user(const tool_sandbox_plan *p)
{
    return p->use_pids && p->needs_user && map_user(p->uid_map, p->gid_map) ? "user namespace" : NULL;
}

const char *tool_sandbox_enter(const tool_sandbox_plan *p)
{
    const char *step = NULL;
    if (p->use_mounts && (step = enter_mounts(p))) return step;
    /* By name and now: a descriptor opened before would still lead into the writable mounts. */
    if (chdir(p->root)) return "entering the tree";
    if ((step = drop_capabilities(p->keep_capabilities))) return step;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return "no_new_privs";
    if (p->use_landlock && syscall(SYS_landlock_restrict_self, p->ruleset, 0)) return "Landlock";
    if (p->use_seccomp) {
        struct sock_fprog program = {
            .len = (unsigned short)(p->filter_bytes / sizeof(struct sock_filter)), .filter = p->filter};
        if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)) return "seccomp";
    }
    return NULL;
}
