/* See map.h. */
#include "base/map.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* Linux 5.14; headers may be older */
#endif

enum { MAX_GUARDED = 64 }; /* a model may come in parts; later ones are mapped without a guard */

/* What the handler may look at. */
static struct guard {
    atomic_bool taken, lost;
    _Atomic(uintptr_t) from, to; /* to 0: nothing is guarded */
} guards[MAX_GUARDED];
static uintptr_t page_bytes;

struct base_map {
    uint8_t *bytes;
    size_t n;
    int fd;
    struct guard *guard; /* NULL: the table was full */
    off_t size;
    struct timespec changed;
};

/* The pages from the missing one to the mapping's end become zeros. Only system calls, as a handler must. */
static void on_bus(int number, siginfo_t *info, void *context)
{
    uintptr_t at = (uintptr_t)info->si_addr;
    int kept = errno;
    (void)context;
    for (struct guard *g = guards; g < guards + MAX_GUARDED; g++) {
        uintptr_t to = atomic_load(&g->to), from = atomic_load(&g->from);
        if (at < from || at >= to) continue;
        uintptr_t page = at & ~(page_bytes - 1);
        void *zeros =
            mmap((void *)page, to - page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        if (zeros == MAP_FAILED) break;
        atomic_store(&g->lost, true);
        errno = kept;
        return;
    }
    signal(number, SIG_DFL); /* not ours: the same access ends the program */
}

/* For every mapping: test frameworks and libraries put their own handler in place now and then. */
static void install(void)
{
    struct sigaction act = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO};
    page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    sigemptyset(&act.sa_mask);
    sigaction(SIGBUS, &act, NULL);
}

static struct guard *take_guard(const uint8_t *bytes, size_t n)
{
    install();
    for (struct guard *g = guards; g < guards + MAX_GUARDED; g++) {
        bool free = false;
        if (!atomic_compare_exchange_strong(&g->taken, &free, true)) continue;
        atomic_store(&g->lost, false);
        atomic_store(&g->from, (uintptr_t)bytes);
        atomic_store(&g->to, (uintptr_t)bytes + n);
        return g;
    }
    return NULL;
}

int base_map_new(base_map **ret, int fd, size_t n, base_err *err)
{
    struct stat st;
    base_map *m = base_xcalloc(1, sizeof *m);
    int rc = 0;
    *m = (base_map){.bytes = MAP_FAILED, .n = n, .fd = fcntl(fd, F_DUPFD_CLOEXEC, 0)};
    if (m->fd < 0 || fstat(m->fd, &st) != 0) {
        rc = base_fail_sys(err, "it cannot be examined");
    } else {
        m->size = st.st_size;
        m->changed = st.st_mtim;
        m->bytes = mmap(NULL, n, PROT_READ, MAP_PRIVATE, m->fd, 0);
        if (m->bytes == MAP_FAILED && errno == ENOMEM)
            rc = base_fail(err, BASE_E_NOMEM,
                "it needs %.2f GB of address space and this process may not have them (ulimit -v)",
                (double)n / 1e9);
        else if (m->bytes == MAP_FAILED)
            rc = base_fail_sys(err, "it cannot be mapped");
    }
    if (rc) {
        base_map_free(m);
        return rc;
    }
    m->guard = take_guard(m->bytes, n);
    *ret = m;
    return 0;
}

void base_map_free(base_map *m)
{
    if (!m) return;
    if (m->guard) atomic_store(&m->guard->to, 0);
    if (m->bytes != MAP_FAILED) munmap(m->bytes, m->n);
    if (m->guard) atomic_store(&m->guard->taken, false);
    if (m->fd >= 0) close(m->fd);
    free(m);
}

const uint8_t *base_map_bytes(const base_map *m)
{
    return m->bytes;
}

void base_map_read_apart(base_map *m)
{
    madvise(m->bytes, m->n, MADV_RANDOM); /* an advice: nothing is wrong without it */
}

void base_map_read_all(const void *bytes, size_t n)
{
    const uintptr_t from = (uintptr_t)bytes & ~(page_bytes - 1);
    /* Fails on old systems and behind a cut file's end: then they are found as they are read. */
    madvise((void *)from, (uintptr_t)bytes + n - from, MADV_POPULATE_READ);
}

bool base_map_is_cut(const base_map *m)
{
    return m->guard && atomic_load(&m->guard->lost);
}

int base_map_check(const base_map *m, const char *path, base_err *err)
{
    struct stat st;
    if (fstat(m->fd, &st) != 0) return base_fail_sys(err, "%s cannot be examined", path);
    if (base_map_is_cut(m))
        return base_fail(err, BASE_E_STATE,
            "%s became shorter while it was in use; start again with the whole file", path);
    if (st.st_size != m->size || st.st_mtim.tv_sec != m->changed.tv_sec ||
        st.st_mtim.tv_nsec != m->changed.tv_nsec)
        return base_fail(err, BASE_E_STATE, "%s was changed while it was in use; start again with it", path);
    return 0;
}
