/* Hunks by their counts (contract: diff.h). */
#include "acp/diff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t line_length(const char *at, const char *end)
{
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    return newline ? (size_t)(newline - at) + 1 : (size_t)(end - at);
}

static bool begins(const char *at, const char *end, const char *word)
{
    const size_t n = strlen(word);
    return (size_t)(end - at) >= n && !memcmp(at, word, n);
}

/* Lines of old and new text that a hunk's head promises; a count that is left out is 1. False: it is no head. */
static bool read_head(const char *at, const char *end, unsigned long *old_line, unsigned long *old_n,
    unsigned long *new_line, unsigned long *new_n)
{
    char line[120];
    const size_t n = line_length(at, end) < sizeof line - 1 ? line_length(at, end) : sizeof line - 1;
    memcpy(line, at, n);
    line[n] = 0;
    *old_n = *new_n = 1;
    if (sscanf(line, "@@ -%lu,%lu +%lu,%lu @@", old_line, old_n, new_line, new_n) == 4) return true;
    *old_n = *new_n = 1;
    if (sscanf(line, "@@ -%lu +%lu,%lu @@", old_line, new_line, new_n) == 3) return true;
    *new_n = 1;
    if (sscanf(line, "@@ -%lu,%lu +%lu @@", old_line, old_n, new_line) == 3) return true;
    *old_n = 1;
    return sscanf(line, "@@ -%lu +%lu @@", old_line, new_line) == 2;
}

/* Where the hunk that begins at `at` ends, by its counts: a line of it may look like a head. */
static const char *skip_hunk(const char *at, const char *end)
{
    unsigned long a, old_n, b, new_n;
    if (!read_head(at, end, &a, &old_n, &b, &new_n)) return end;
    at += line_length(at, end);
    while (at < end && (old_n || new_n || *at == '\\')) {
        if (*at != '+' && *at != '\\' && old_n) old_n--;
        if (*at != '-' && *at != '\\' && new_n) new_n--;
        at += line_length(at, end);
    }
    return at;
}

/* "a/PATH" or "b/PATH" of a head's line; NULL: /dev/null. The caller frees. */
static char *read_path(const char *at, const char *end)
{
    size_t n = line_length(at, end);
    while (n && (at[n - 1] == '\n' || at[n - 1] == '\r')) n--;
    if (n == 9 && !memcmp(at, "/dev/null", 9)) return NULL;
    if (n > 2 && at[1] == '/') at += 2, n -= 2;
    base_buf path = {0};
    base_buf_add(&path, at, n);
    return path.data;
}

void acp_diff_each(const char *diff, acp_diff_fn *fn, void *user)
{
    const char *at = diff, *end = diff + strlen(diff);
    while (at < end) {
        if (!begins(at, end, "--- ")) {
            at += line_length(at, end);
            continue;
        }
        char *old_path = read_path(at + 4, end);
        at += line_length(at, end);
        if (!begins(at, end, "+++ ")) {
            free(old_path);
            continue;
        }
        char *new_path = read_path(at + 4, end);
        at += line_length(at, end);
        const char *from = at;
        while (at < end && begins(at, end, "@@ ")) at = skip_hunk(at, end);
        if (old_path || new_path)
            fn(user, new_path ? new_path : old_path, from, (size_t)(at - from), !old_path, !new_path);
        free(old_path);
        free(new_path);
    }
}

/* Text that is walked line by line. */
typedef struct walk {
    const char *at, *end;
    unsigned long line; /* 1-based, of `at` */
} walk;

static void copy_lines(walk *w, unsigned long up_to, base_buf *ret)
{
    while (w->at < w->end && w->line < up_to) {
        const size_t n = line_length(w->at, w->end);
        base_buf_add(ret, w->at, n);
        w->at += n;
        w->line++;
    }
}

/* The line of the diff without its first letter, and without the newline where "\ No newline" follows it. */
static size_t said_length(const char *at, const char *end)
{
    const size_t n = line_length(at, end);
    const bool is_open = begins(at + n, end, "\\ ");
    return n - 1 - (is_open && at[n - 1] == '\n');
}

static bool apply_hunk(const char **at, const char *end, walk *w, bool forward, base_buf *ret)
{
    unsigned long old_line, old_n, new_line, new_n;
    const char *stop = skip_hunk(*at, end);
    if (!read_head(*at, end, &old_line, &old_n, &new_line, &new_n)) return false;
    const unsigned long line = forward ? old_line : new_line, n = forward ? old_n : new_n;
    copy_lines(w, n ? line : line + 1, ret); /* of no lines the one in front is named */
    for (const char *p = *at + line_length(*at, end); p < stop; p += line_length(p, end)) {
        const char ours = forward ? '-' : '+', theirs = forward ? '+' : '-';
        if (*p == '\\') continue;
        const size_t length = said_length(p, end);
        if (*p == theirs) {
            base_buf_add(ret, p + 1, length);
            continue;
        }
        if ((*p != ours && *p != ' ') || (size_t)(w->end - w->at) < length || memcmp(w->at, p + 1, length))
            return false;
        if (*p == ' ') base_buf_add(ret, p + 1, length);
        w->at += length;
        w->line++;
    }
    *at = stop;
    return true;
}

bool acp_diff_apply(const char *diff, size_t n_diff, const char *text, size_t n, bool forward, base_buf *ret)
{
    const char *at = diff, *end = diff + n_diff;
    walk w = {text, text + n, 1};
    while (at < end)
        if (!begins(at, end, "@@ ") || !apply_hunk(&at, end, &w, forward, ret)) return false;
    base_buf_add(ret, w.at, (size_t)(w.end - w.at));
    return true;
}
