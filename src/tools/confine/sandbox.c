#include "tools/confine/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/mount.h>
#include <linux/seccomp.h>
#include <pthread.h>
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

#include "base/fs.h"
#include "base/mem.h"
#include "tools/confine/meter.h"
#include "tools/confine/sandbox_filter.h"

/* ---- Landlock (landlock(7)); the installed header may be older than the kernel, so the numbers are ours  */

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

/* System calls only. What is gone since the rules were made is no failure: nothing can be reached there. */
static bool add_rule(int ruleset, const char *path, uint64_t allowed, bool is_folder)
{
    const uint64_t of_files = FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV;
    int fd = open(path, O_PATH | O_CLOEXEC | (is_folder ? O_DIRECTORY : 0));
    if (fd < 0) return true;
    struct path_beneath rule = {.allowed = is_folder ? allowed : allowed & of_files, .fd = fd};
    int failed = (int)syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &rule, 0);
    close(fd);
    return !failed;
}

static const char *const devices[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"};
enum { N_DEVICES = sizeof devices / sizeof *devices };

static int make_ruleset(int abi, bool has_network, int *ret, base_err *err)
{
    struct ruleset_attributes attributes = {
        .fs = fs_rights(abi),
        .net = abi >= 4 && !has_network ? NET_BIND_TCP | NET_CONNECT_TCP : 0,
        .scoped = abi >= 6 ? SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL : 0,
    };
    size_t size = abi >= 6 ? sizeof attributes : abi >= 4 ? 16 : 8; /* an older kernel refuses a longer one */
    *ret = (int)syscall(SYS_landlock_create_ruleset, &attributes, size, 0);
    if (*ret < 0) return base_fail_sys(err, "Landlock");
    fcntl(*ret, F_SETFD, FD_CLOEXEC);
    return BASE_OK;
}

/*
 * Behind the mounts, because rules are about the folders that then stand at these paths. System calls only.
 */
static bool add_rules(const tool_sandbox_plan *p)
{
    uint64_t all = fs_rights(p->landlock_abi), look = FS_EXECUTE | FS_READ_FILE | FS_READ_DIR;
    uint64_t device = FS_READ_FILE | FS_WRITE_FILE | (all & (FS_TRUNCATE | FS_IOCTL_DEV));
    bool good = true;
    for (size_t i = 0; good && i < N_DEVICES; i++) good = add_rule(p->ruleset, devices[i], device, false);
    if (!p->use_mounts) {
        good = good && add_rule(p->ruleset, "/proc", look, true);
        for (size_t i = 0; good && i < p->views.n_rules; i++) {
            const tool_view_rule *r = &p->views.rules[i];
            uint64_t rights = r->writes        ? all
                              : r->writes_only ? all & ~look
                              : r->lists_only  ? (uint64_t)FS_READ_DIR
                                               : look;
            good = add_rule(p->ruleset, r->path, rights, r->is_folder);
        }
        return good;
    }
    good = good && add_rule(p->ruleset, "/", look, true) && add_rule(p->ruleset, "/dev/shm", all, true) &&
           add_rule(p->ruleset, "/tmp", all, true) &&
           add_rule(p->ruleset, "/dev/pts", device | FS_READ_DIR, true);
    for (size_t i = 0; good && i < p->views.n; i++)
        if (p->views.all[i].kind >= TOOL_VIEW_LAYER)
            good = add_rule(p->ruleset, p->views.all[i].path, all, p->views.all[i].is_folder);
    return good;
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

/* The root of the namespace becomes what is mounted at `place`, and what was there before is gone from it. */
static int change_root(const char *place)
{
    if (chdir(place)) return -1;
    if (!syscall(SYS_pivot_root, ".", ".")) return umount2(".", MNT_DETACH);
    /*
     * The first root of all (an initial RAM disk) cannot be pivoted away: it is covered, and nobody may
     * change root again.
     */
    return mount(".", "/", NULL, MS_MOVE, NULL) || chroot(".") || chdir("/") ? -1 : 0;
}

static int mount_memory(const char *place, const char *options)
{
    return mount("kvist", place, "tmpfs", MS_NOSUID | MS_NODEV, options);
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
        works = works && !mount_memory("/tmp", "size=1m") && !change_root("/tmp");
        _exit(works && !set_read_only("/", true, AT_RECURSIVE) ? 0 : 1);
    }
    int status;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ---- asking and describing ---- */

static tool_sandbox try_all(void)
{
    uint32_t action = SECCOMP_RET_ERRNO;
    tool_sandbox ret = {
        .landlock_abi = landlock_abi(),
        .has_seccomp = syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0,
        .has_mounts = try_namespace(false, false),
    };
    if (!ret.has_mounts) ret.has_mounts = ret.needs_user = try_namespace(true, false);
    ret.has_pids = ret.has_mounts && try_namespace(ret.needs_user, true);
    ret.is_confining = (ret.landlock_abi > 0 || ret.has_mounts) && ret.has_seccomp;
    return ret;
}

void tool_sandbox_probe(tool_sandbox *ret)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct {
        bool is_known;
        uid_t uid;
        gid_t gid;
        tool_sandbox sandbox;
    } last;
    pthread_mutex_lock(&lock);
    /* What a process may do changes with its user and nothing else that kvist does. */
    if (!last.is_known || last.uid != geteuid() || last.gid != getegid()) {
        last.sandbox = try_all();
        last.uid = geteuid();
        last.gid = getegid();
        last.is_known = true;
    }
    *ret = last.sandbox;
    pthread_mutex_unlock(&lock);
}

void tool_sandbox_describe_one(const tool_sandbox *s, base_buf *out)
{
    if (s->landlock_abi) {
        base_buf_printf(out,
            "Landlock: ABI %d; commands see the tree, the system and "
            "toolchains, and write to the tree and a private tmp only%s%s\n",
            s->landlock_abi, s->landlock_abi >= 4 ? ", no TCP" : "",
            s->landlock_abi >= 6 ? ", signal only each other" : "");
        if (s->landlock_abi < 2)
            base_buf_puts(out, "Landlock ABI 1: renaming between folders fails in commands\n");
    } else {
        base_buf_puts(out, "Landlock: not in this kernel\n");
    }
    if (!s->has_mounts)
        base_buf_puts(out,
            "mount namespace: not allowed here; .git's configuration and hooks are checked and "
            "restored after each command instead\n");
    else
        base_buf_printf(out,
            "mount namespace: %sa root, home, /dev and terminals of a command's own; read-only but for the "
            "tree, and .git's configuration and hooks too\n",
            s->needs_user ? "by a user namespace; " : "");
    base_buf_puts(out,
        s->has_pids ? "PID namespace: a command and all it starts end together, also when kvist is killed\n"
                      "IPC namespace: shared memory, semaphores and queues of its own\n"
        : s->has_seccomp
            ? "PID namespace: not allowed here; a command's group is ended together instead, and calls that "
              "change other processes are refused\n"
              "IPC namespace: not allowed here; System V and POSIX shared memory and queues are refused\n"
            : "PID namespace: not allowed here; a command's group is ended together instead\n");
    if (!s->has_mounts && s->landlock_abi)
        base_buf_puts(out,
            "not covered: chmod, chown and times of files outside of the tree that this user owns; names in "
            "folders that hold something hidden; other processes' command lines; Python's multiprocessing "
            "(it needs /dev/shm) fails\n");
    base_buf_puts(out, s->has_seccomp ? "seccomp: no network, ptrace, mounts, namespaces, io_uring, keys\n"
                                      : "seccomp: not in this kernel; commands can reach the network\n");
    tool_meter_limits limits = tool__meter_defaults();
    tool__meter_describe(&limits, out);
    if (!s->is_confining) base_buf_puts(out, "commands are NOT confined on this machine\n");
}

/* ---- one child ---- */

/* Root keeps what files of other owners need; an ordinary user has none of these. */
static const int kept_capabilities[] = {CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID};

static char *join(const char *folder, const char *path)
{
    base_buf joined = {0};
    base_buf_printf(&joined, "%s%s", folder, path);
    return base_buf_take(&joined);
}

/* Where each view is mounted before the root changes: all that needs memory is done here. */
static int prepare_mounts(tool_sandbox_plan *p, const char *session, base_err *err)
{
    p->stage = join(session, "/root");
    p->places = base_xcalloc(p->views.n + 1, sizeof *p->places);
    for (size_t i = 0; i < p->views.n; i++)
        p->places[i] = join(p->stage, strcmp(p->views.all[i].path, "/") ? p->views.all[i].path : "");
    return base_fs_mkdirs(p->stage, err);
}

static int open_dens(tool_sandbox_plan *p, const tool_sandbox_wishes *wishes, base_err *err)
{
    tool_den *const dens[] = {wishes->session, wishes->copy};
    for (size_t i = 0; i < sizeof dens / sizeof *dens; i++) {
        const int code = dens[i] ? tool__den_open(dens[i], err) : BASE_OK;
        if (code) return code;
        p->dens[i] = dens[i];
    }
    return BASE_OK;
}

static void close_dens(tool_sandbox_plan *p)
{
    for (size_t i = 0; i < sizeof p->dens / sizeof *p->dens; i++) {
        if (p->dens[i] && p->has_entered)
            tool__den_move(p->dens[i]);
        else if (p->dens[i])
            tool__den_close(p->dens[i]);
    }
}

void tool_sandbox_has_entered(tool_sandbox_plan *p)
{
    if (!p->use_mounts || p->has_entered) return;
    close_dens(p);
    p->has_entered = true;
}

int tool_sandbox_prepare(
    const tool_sandbox *s, const tool_sandbox_wishes *wishes, tool_sandbox_plan *ret, base_err *err)
{
    const char *session = tool__den_path(wishes->session);
    tool_sandbox_plan p = {.ruleset = -1,
        .landlock_abi = s->landlock_abi,
        .use_landlock = s->landlock_abi > 0,
        .use_mounts = s->has_mounts,
        .needs_user = s->needs_user,
        .use_pids = s->has_mounts && s->has_pids};
    const tool_view_needs view = {.root = wishes->root,
        .tree = wishes->tree,
        .root_is_writable = wishes->root_is_writable,
        .shows_home = wishes->shows_home,
        .session = session,
        .readable = wishes->readable,
        .has_mounts = s->has_mounts};
    int code = BASE_OK;
    p.shm = join(session, "/shm");
    p.tmp = join(session, "/tmp");
    p.root = base_xstrdup(wishes->root);
    code = open_dens(&p, wishes, err);
    if (!code) code = base_fs_mkdirs(p.shm, err);
    if (!code) code = base_fs_mkdirs(p.tmp, err);
    if (!code && (p.use_landlock || p.use_mounts)) code = tool__view_make(&view, &p.views, err);
    if (!code && p.use_landlock) code = make_ruleset(s->landlock_abi, wishes->has_network, &p.ruleset, err);
    if (!code && p.use_mounts) code = prepare_mounts(&p, session, err);
    if (!code && s->has_seccomp) {
        const tool_filter_needs needs = {.denies_truncate = s->landlock_abi < 3 && !s->has_mounts,
            .opens_network = wishes->has_network,
            .denies_attributes = !s->has_mounts,
            .guards_others = !p.use_pids,
            .guards_ipc = !p.use_pids};
        code = tool__filter_make(&needs, &p.filter, &p.filter_bytes, err);
        p.use_seccomp = !code;
    }
    size_t n = 0;
    while (wishes->read_only && wishes->read_only[n]) n++;
    p.read_only = base_xcalloc(n + 1, sizeof *p.read_only);
    for (size_t i = 0; i < n; i++) p.read_only[i] = base_xstrdup(wishes->read_only[i]);
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
    for (char **place = p->places; place && *place; place++) free(*place);
    free(p->read_only);
    free(p->places);
    for (char **path = p->own; path && *path; path++) free(*path);
    free(p->own);
    free(p->filter);
    free(p->root);
    free(p->tmp);
    free(p->shm);
    free(p->stage);
    tool__view_free(&p->views);
    close_dens(p);
    memset(p, 0, sizeof *p);
    p->ruleset = -1;
}

/* ---- the mounts, by system calls only ---- */

/*
 * The folders above a place, and the folder or file itself, where they are not there yet. Writes to `place`
 * and puts it back.
 */
static void make_place(char *place, size_t n_stage, bool is_folder, bool makes_itself)
{
    for (char *p = place + n_stage + 1; (p = strchr(p, '/')); p++) {
        *p = '\0';
        mkdir(place, 0755);
        *p = '/';
    }
    if (!makes_itself || !place[n_stage]) return;
    if (is_folder)
        mkdir(place, 0755);
    else
        close(open(place, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
}

/* Below the current folder, which is the stage. */
static bool mount_devices(const tool_sandbox_plan *p)
{
    static const char *const links[][2] = {{"/proc/self/fd", "dev/fd"}, {"/proc/self/fd/0", "dev/stdin"},
        {"/proc/self/fd/1", "dev/stdout"}, {"/proc/self/fd/2", "dev/stderr"}, {"pts/ptmx", "dev/ptmx"}};
    static const char *const folders[] = {"dev", "dev/pts", "dev/shm", "proc", "run", "var", "var/tmp"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) mkdir(folders[i], 0755);
    for (size_t i = 0; i < N_DEVICES; i++) {
        close(open(devices[i] + 1, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
        if (mount(devices[i], devices[i] + 1, NULL, MS_BIND, NULL) && errno != ENOENT) return false;
    }
    for (size_t i = 0; i < sizeof links / sizeof *links; i++)
        if (symlink(links[i][0], links[i][1]) && errno != EEXIST) return false;
    /* Terminals of its own; without any it works too, and nobody else's are there. */
    mount("devpts", "dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620");
    /* Semaphores and shared memory of one's own (Python's multiprocessing needs them). */
    return !mount(p->shm, "dev/shm", NULL, MS_BIND, NULL) &&
           !mount("/proc", "proc", NULL, MS_BIND | MS_REC, NULL);
}

static bool write_git_config(const tool_sandbox_plan *p, const char *home)
{
    if (chdir(home)) return false;
    int fd = open(".gitconfig", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) return false;
    size_t n = strlen(p->views.git_config);
    bool good = write(fd, p->views.git_config, n) == (ssize_t)n;
    close(fd);
    return good;
}

static bool mount_layer(tool_view *view, const char *place, bool needs_user)
{
    if (!view->layer) return false;
    if (needs_user) return !mount("kvist", place, "overlay", MS_NOSUID | MS_NODEV, view->layer);
    char *end =
        strrchr(view->layer, ','); /* ",userxattr" is for users without privilege; others have it better */
    *end = '\0';
    bool good = !mount("kvist", place, "overlay", MS_NOSUID | MS_NODEV, view->layer);
    *end = ',';
    return good;
}

/* The process is a copy of kvist's: what is written to the plan here stays here. */
static const char *mount_view(const tool_sandbox_plan *p, tool_view *view, char *place)
{
    bool is_bound = true;
    make_place(place, strlen(p->stage), view->is_folder,
        view->kind != TOOL_VIEW_LINK && view->kind != TOOL_VIEW_HIDDEN);
    switch (view->kind) {
    case TOOL_VIEW_LINK:
        if (symlink(view->from, place)) {
        } /* the person has one there */
        return NULL;
    case TOOL_VIEW_HIDDEN:
        is_bound = !mount(view->from, place, NULL, MS_BIND, NULL) || errno == ENOENT || errno == ENOTDIR;
        return is_bound ? NULL : "hiding what is private";
    case TOOL_VIEW_EMPTY:
        is_bound = !mount_memory(place, "mode=0700,size=512m") && write_git_config(p, place);
        return is_bound ? NULL : "a home of its own";
    case TOOL_VIEW_WRITE:
        return mount(view->from, place, NULL, MS_BIND | MS_REC, NULL) ? "binding the tree" : NULL;
    case TOOL_VIEW_LAYER:
        if (mount_layer(view, place, p->needs_user)) return NULL;
        view->kind = TOOL_VIEW_READ; /* no overlay here: it can be read */
        break;
    case TOOL_VIEW_READ: break;
    }
    /* What is gone since, or may not be bound, is not seen. */
    mount(view->from, place, NULL, MS_BIND | MS_REC, NULL);
    return NULL;
}

static const char *enter_mounts(const tool_sandbox_plan *p)
{
    const char *step = NULL;
    if (enter_namespace(p->needs_user && !p->use_pids, p->uid_map, p->gid_map)) return "mount namespace";
    if (mount_memory(p->stage, "mode=0755,size=16m") || chdir(p->stage)) return "a root of its own";
    /* tmpfile() and many tests know no TMPDIR. What of the tree's way lies below it is put on top. */
    if (mkdir("tmp", 0755) || mount_memory("tmp", "mode=1777,size=256m")) return "a /tmp of its own";
    for (size_t i = 0; i < p->views.n && !step; i++) step = mount_view(p, &p->views.all[i], p->places[i]);
    if (step) return step;
    if (chdir(p->stage) || !mount_devices(p)) return "a /dev of its own";
    if (change_root(p->stage)) return "changing the root";
    if (p->use_pids && mount_proc()) return "a /proc of its own";
    if (set_read_only("/", true, AT_RECURSIVE)) return "mounting everything read-only";
    for (size_t i = 0; i < p->views.n; i++)
        if (p->views.all[i].kind >= TOOL_VIEW_LAYER && set_read_only(p->views.all[i].path, false, 0))
            return "the tree's mount";
    if (set_read_only("/dev/shm", false, 0) || set_read_only("/tmp", false, 0)) return "tmp's mount";
    for (char **path = p->own; path && *path; path++)
        if (mount(*path, *path, NULL, MS_BIND | MS_REC, NULL)) return "protecting .git";
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
    if (p->use_landlock && (!add_rules(p) || syscall(SYS_landlock_restrict_self, p->ruleset, 0)))
        return "Landlock";
    if (p->use_seccomp) {
        struct sock_fprog program = {
            .len = (unsigned short)(p->filter_bytes / sizeof(struct sock_filter)), .filter = p->filter};
        if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)) return "seccomp";
    }
    return NULL;
}
