/*
 * The steps of a rebase that has not ended (rebase-merge/git-rebase-todo, sequencer/todo): `exec` and whatever we do not know may run
 * a program when somebody goes on with it.
 */
#include "tools/guard/git_guard.h"

#include <string.h>

static const char *const harmless[] = {"pick", "p", "reword", "r", "edit", "e", "squash", "s", "fixup", "f",
    "break", "b", "drop", "d", "label", "l", "reset", "t", "merge", "m", "noop", "update-ref", "u", "revert"};

static bool is_harmless(const char *line, size_t n)
{
    while (n && (*line == ' ' || *line == '\t' || *line == '\r')) line++, n--;
    if (!n || *line == '#') return true;
    size_t word = 0;
    while (word < n && line[word] != ' ' && line[word] != '\t' && line[word] != '\r') word++;
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        if (strlen(harmless[i]) == word && !memcmp(line, harmless[i], word)) return true;
    return false;
}

static bool stood_in(const base_buf *before, const char *line, size_t n)
{
    const char *end = before && before->data ? before->data + before->len : NULL;
    for (const char *p = before ? before->data : NULL; p && p < end;) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        size_t m = (size_t)((stop ? stop : end) - p);
        if (m == n && !memcmp(p, line, n)) return true;
        p += m + 1;
    }
    return false;
}

const char *tool__git_todo_refused(const base_buf *now, const base_buf *before)
{
    const char *end = now->data ? now->data + now->len : NULL;
    for (const char *p = now->data; p && p < end;) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        size_t n = (size_t)((stop ? stop : end) - p);
        if (!is_harmless(p, n) && !stood_in(before, p, n)) return "it holds a step that runs a program";
        p += n + 1;
    }
    return NULL;
}
