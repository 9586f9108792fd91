/*
 * One entry a line, with \n and \\ escaped. The file only grows; when it is opened its newest entries are
 * read, and a file that has grown past twice that is rewritten.
 */
#include "tui/input/former_lines.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"

enum { MAX_LINES = 2000, MAX_FILE = 8 << 20, MAX_LINE = 64 << 10 };

static void push(tui_lines *l, char *text)
{
    if (l->n > 0 && !strcmp(l->line[l->n - 1], text)) {
        free(text);
        return;
    }
    if (l->n >= MAX_LINES) {
        free(l->line[0]);
        memmove(l->line, l->line + 1, --l->n * sizeof *l->line);
    }
    base_grow(&l->line, &l->cap, l->n + 1, sizeof *l->line);
    l->line[l->n++] = text;
}

static void escape(base_buf *out, const char *s)
{
    for (; *s; s++) {
        if (*s == '\n')
            base_buf_puts(out, "\\n");
        else if (*s == '\\')
            base_buf_puts(out, "\\\\");
        else
            base_buf_putc(out, *s);
    }
    base_buf_putc(out, '\n');
}

static char *unescape(const char *s, size_t n)
{
    base_buf b = {0};
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '\\' && i + 1 < n)
            base_buf_putc(&b, s[++i] == 'n' ? '\n' : s[i]);
        else
            base_buf_putc(&b, s[i]);
    }
    return base_buf_take(&b);
}

void tui_lines_open(tui_lines *l, const char *path)
{
    l->path = base_xstrdup(path);
    if (path) base_fs_mkdirs_above(path, NULL);
    base_buf b = {0};
    size_t read = 0;
    if (path && base_fs_read(path, MAX_FILE, &b, NULL) == 0 && b.data) {
        for (size_t at = 0; at < b.len;) {
            const char *s = b.data + at, *end = memchr(s, '\n', b.len - at);
            size_t n = end ? (size_t)(end - s) : b.len - at;
            if (n > 0) push(l, unescape(s, n));
            read++;
            at += n + 1;
        }
    }
    base_buf_free(&b);
    if (read > 2 * MAX_LINES) {
        for (size_t i = 0; i < l->n; i++) escape(&b, l->line[i]);
        base_fs_write(path, b.data, b.len, 0600, NULL);
        base_buf_free(&b);
    }
    l->at = l->n;
}

void tui_lines_add(tui_lines *l, const char *text)
{
    if (!*text) return;
    base_buf b = {0};
    if (strlen(text) <= MAX_LINE) {
        bool again = l->n > 0 && !strcmp(l->line[l->n - 1], text);
        push(l, base_xstrdup(text));
        if (l->path && !again) {
            escape(&b, text);
            int fd = open(l->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0600);
            if (fd >= 0) {
                /* A history that cannot be written is no reason to stop a person. */
                if (write(fd, b.data, b.len) < 0) l->path[0] = 0;
                close(fd);
            }
        }
    }
    base_buf_free(&b);
    free(l->draft);
    l->draft = NULL;
    l->at = l->n;
}

void tui_lines_free(tui_lines *l)
{
    for (size_t i = 0; i < l->n; i++) free(l->line[i]);
    free(l->line);
    free(l->draft);
    free(l->path);
    *l = (tui_lines){0};
}

const char *tui_lines_walk(tui_lines *l, int step, const char *now)
{
    if (l->at >= l->n && step < 0) {
        free(l->draft);
        l->draft = base_xstrdup(now);
    }
    if ((step < 0 && l->at == 0) || (step > 0 && l->at >= l->n)) return NULL;
    l->at += (size_t)(ptrdiff_t)step;
    return l->at < l->n ? l->line[l->at] : l->draft ? l->draft : "";
}

size_t tui_lines_find(const tui_lines *l, const char *words, size_t before)
{
    for (size_t i = before < l->n ? before : l->n; i > 0; i--)
        if (strcasestr(l->line[i - 1], words)) return i - 1;
    return l->n;
}
