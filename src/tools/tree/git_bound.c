#include "tools/tree/git_bound.h"

#include <git2/sys/alloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tree/listing.h"

enum { MOST_LOOKED = 2000000, MOST_DIFFER = TOOL_MAX_FILES };

static bool is_cancelled(const tool_git_bound *b)
{
    return b->cancel && atomic_load_explicit(b->cancel, memory_order_relaxed);
}

/* ---- what is compared ---- */

/* Before each entry, the same on both sides or not. */
static int on_entry(const git_diff *diff, const char *before, const char *after, void *user)
{
    tool_git_bound *b = user;
    b->is_over = b->is_over || ++b->n_looked > MOST_LOOKED;
    return b->is_over || is_cancelled(b) ? -1 : 0;
}

static int on_difference(const git_diff *diff, const git_diff_delta *delta, const char *pathspec, void *user)
{
    tool_git_bound *b = user;
    b->is_over = b->is_over || ++b->n_differ > MOST_DIFFER;
    return b->is_over ? -1 : 0;
}

void tool__git_bound(tool_git_bound *b, git_diff_options *options)
{
    options->progress_cb = on_entry;
    options->notify_cb = on_difference;
    options->payload = b;
}

/* ---- what is read ---- */

/*
 * By its memory, since nothing else tells: git_odb_read_header knows the size of an object, but a small one may be
 * a delta of one that has gigabytes, and libgit2 unpacks that first. Each is unpacked into one piece of memory.
 */
#define HELD     ((size_t)1 << 30) /* bound or not; comparing two files of lines without end takes half of it */
#define COUNTED  ((size_t)1 << 20)  /* smaller ones are what any history has thousands of */
#define TOGETHER ((size_t)1 << 30)  /* for one bound: some seconds */
#define HEARD    ((size_t)64 << 10) /* a cancellation is, from this size on */

static _Thread_local tool_git_bound *bound;

static bool is_allowed(size_t n)
{
    if (!bound) return n <= HELD;
    if (n < HEARD) return true;
    if (n >= COUNTED) {
        bound->n_bytes += n < TOGETHER ? n : TOGETHER;
        if (n > TOOL_GIT_MOST_BYTES || bound->n_bytes > TOGETHER) return !(bound->is_large = true);
    }
    return !is_cancelled(bound);
}

static void *give_again(void *old, size_t n, const char *file, int line)
{
    void *p = is_allowed(n) ? realloc(old, n + !n) : NULL;
#if LIBGIT2_VER_MAJOR == 1 && LIBGIT2_VER_MINOR < 7
    if (!p) git_error_set_oom(); /* later ones do that themselves */
#endif
    return p;
}

static void *give(size_t n, const char *file, int line)
{
    return give_again(NULL, n, file, line);
}

#if LIBGIT2_VER_MAJOR == 1 && LIBGIT2_VER_MINOR < 7
static void *give_array_again(void *old, size_t n, size_t each, const char *file, int line)
{
    return each && n > SIZE_MAX / each ? give(SIZE_MAX, file, line) : give_again(old, n * each, file, line);
}

static void *give_array(size_t n, size_t each, const char *file, int line)
{
    return give_array_again(NULL, n, each, file, line);
}

static void *give_zeros(size_t n, size_t each, const char *file, int line)
{
    void *p = give_array(n, each, file, line);
    return p ? memset(p, 0, n * each) : NULL;
}

static char *copy_part(const char *text, size_t n, const char *file, int line)
{
    char *p = n < SIZE_MAX ? give(n + 1, file, line) : NULL;
    if (!p) return NULL;
    memcpy(p, text, n);
    p[n] = '\0';
    return p;
}

static char *copy_most(const char *text, size_t n, const char *file, int line)
{
    return copy_part(text, strnlen(text, n), file, line);
}

static char *copy(const char *text, const char *file, int line)
{
    return copy_part(text, strlen(text), file, line);
}
#endif

static void start(void)
{
    git_allocator a = {
        .gmalloc = give,
        .grealloc = give_again,
        .gfree = free,
#if LIBGIT2_VER_MAJOR == 1 && LIBGIT2_VER_MINOR < 7
        .gcalloc = give_zeros,
        .gstrdup = copy,
        .gstrndup = copy_most,
        .gsubstrdup = copy_part,
        .greallocarray = give_array_again,
        .gmallocarray = give_array,
#endif
    };
    git_libgit2_init();
    git_libgit2_opts(GIT_OPT_SET_ALLOCATOR, &a);
}

/* Never shut down: libgit2 counts, and its per-thread state is lost each time the count reaches zero. */
void tool__git_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start);
}

tool_git_bound *tool__git_bound_begin(tool_git_bound *b)
{
    tool_git_bound *before = bound;
    bound = b;
    return before;
}

void tool__git_bound_end(tool_git_bound *before)
{
    bound = before;
}
