/*
 * Preloaded into kvist by test_killed.py: ends the process, as a power cut would, at the N-th call that changes what
 * stands on disk below one of some folders. KILL_BELOW: folders, ":" between them. KILL_AT: N, counted from 1; 0 ends
 * nothing. KILL_LOG: a file that gets a line a call, before it is made. Only the first process counts, no child.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static pid_t first;
static long n_calls;

__attribute__((constructor)) static void begin(void)
{
    char pid[32];
    if (!getenv("KILL_FIRST")) {
        snprintf(pid, sizeof pid, "%ld", (long)getpid());
        setenv("KILL_FIRST", pid, 1);
    }
    first = (pid_t)atol(getenv("KILL_FIRST"));
}

static bool is_below(const char *path)
{
    const char *folder = getenv("KILL_BELOW");
    while (folder && *folder) {
        const size_t n = strcspn(folder, ":");
        if (!strncmp(path, folder, n)) return true;
        folder += n + (folder[n] == ':');
    }
    return false;
}

static void count(const char *call, int folder, const char *path)
{
    char link[64], at[PATH_MAX] = "", whole[2 * PATH_MAX + 2];
    if (getpid() != first || !getenv("KILL_AT")) return;
    if (folder == AT_FDCWD && path && *path == '/') {
        snprintf(whole, sizeof whole, "%s", path);
    } else {
        snprintf(link, sizeof link, folder == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", folder);
        const ssize_t n = readlink(link, at, sizeof at - 1);
        if (n < 0) return;
        at[n] = '\0';
        snprintf(whole, sizeof whole, "%s%s%s", at, path ? "/" : "", path ? path : "");
    }
    if (!is_below(whole)) return;
    n_calls++;
    const int log =
        getenv("KILL_LOG") ? open(getenv("KILL_LOG"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    if (log >= 0) {
        dprintf(log, "%s %s\n", call, whole);
        close(log);
    }
    if (n_calls == atol(getenv("KILL_AT"))) kill(getpid(), SIGKILL);
}

#define REAL(name, ...) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))(__VA_ARGS__)

ssize_t write(int fd, const void *p, size_t n)
{
    count("write", fd, NULL);
    return REAL(write, fd, p, n);
}

ssize_t pwrite64(int fd, const void *p, size_t n, off64_t at)
{
    count("pwrite", fd, NULL);
    return REAL(pwrite64, fd, p, n, at);
}

int rename(const char *from, const char *to)
{
    count("rename", AT_FDCWD, to);
    return REAL(rename, from, to);
}

int renameat(int a, const char *from, int b, const char *to)
{
    count("rename", b, to);
    return REAL(renameat, a, from, b, to);
}

int renameat2(int a, const char *from, int b, const char *to, unsigned flags)
{
    count("rename", b, to);
    return REAL(renameat2, a, from, b, to, flags);
}

int linkat(int a, const char *from, int b, const char *to, int flags)
{
    count("link", b, to);
    return REAL(linkat, a, from, b, to, flags);
}

int unlink(const char *path)
{
    count("unlink", AT_FDCWD, path);
    return REAL(unlink, path);
}

int unlinkat(int folder, const char *path, int flags)
{
    count("unlink", folder, path);
    return REAL(unlinkat, folder, path, flags);
}

int mkdirat(int folder, const char *path, mode_t mode)
{
    count("mkdir", folder, path);
    return REAL(mkdirat, folder, path, mode);
}

int fsync(int fd)
{
    count("fsync", fd, NULL);
    return REAL(fsync, fd);
}

int fdatasync(int fd)
{
    count("fsync", fd, NULL);
    return REAL(fdatasync, fd);
}

int ftruncate64(int fd, off64_t n)
{
    count("truncate", fd, NULL);
    return REAL(ftruncate64, fd, n);
}

int fchmod(int fd, mode_t mode)
{
    count("chmod", fd, NULL);
    return REAL(fchmod, fd, mode);
}
