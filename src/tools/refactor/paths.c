/* Paths of the tree beside each other, and what a file of Go says of its package. Pure. */
#include "tools/refactor/refactor.h"
#include "base/path.h"

#include <stddef.h>
#include <string.h>

bool refactor__ends_with_path(const char *path, const char *end)
{
    const size_t n = strlen(path), m = strlen(end);
    return n >= m && !strcmp(path + n - m, end) && (n == m || path[n - m - 1] == '/');
}

char *refactor__join_path(const char *from, const char *relative)
{
    base_buf all = {0};
    base_buf_add(&all, from, base_path_folder_length(from));
    if (!all.data) base_buf_puts(&all, "");
    for (const char *p = relative; *p;) {
        const size_t n = strcspn(p, "/");
        if (n == 2 && !strncmp(p, "..", 2)) {
            if (!all.len) {
                base_buf_free(&all);
                return NULL;
            }
            all.len = base_path_folder_length(all.data);
            all.data[all.len] = '\0';
        } else if (n && !(n == 1 && *p == '.')) {
            if (all.len) base_buf_putc(&all, '/');
            base_buf_add(&all, p, n);
        }
        p += n;
        p += *p == '/';
    }
    return base_buf_take(&all);
}

const char *refactor__package(const refactor_file *f, size_t *ret_n)
{
    static const char word[] = "package ";
    const char *at = f->file.text.data;
    /* At the begin of a line: a comment above may say the word. */
    while (at && (at = strstr(at, word)) != NULL && at != f->file.text.data && at[-1] != '\n') at++;
    if (at) at += sizeof word - 1;
    *ret_n = at ? strcspn(at, " \t\r\n;/") : 0;
    return at;
}

bool refactor__is_same_package(const refactor_file *a, const refactor_file *b)
{
    size_t n, m;
    const char *x = refactor__package(a, &n), *y = refactor__package(b, &m);
    return n == m && (n == 0 || memcmp(x, y, n) == 0);
}

bool refactor__includes(const refactor_file *f, const char *path)
{
    static const char word[] = "#include \"";
    const char *name = base_path_name(path), *at = f->file.text.data;
    const size_t n = strlen(name);
    bool is = false;
    for (; at && !is && (at = strstr(at, word)) != NULL; at++) {
        const char *from = at + sizeof word - 1, *end = from + strcspn(from, "\"\n");
        is = *end == '"' && (size_t)(end - from) >= n && !memcmp(end - n, name, n) &&
             ((size_t)(end - from) == n || end[-(ptrdiff_t)n - 1] == '/');
    }
    return is;
}

bool refactor__is_external_test(const refactor_file *f)
{
    static const char end[] = "_test";
    size_t n;
    const char *package = refactor__package(f, &n);
    return package && n > sizeof end - 1 && !strncmp(package + n - (sizeof end - 1), end, sizeof end - 1);
}

bool refactor__is_built_alone(const refactor_file *f)
{
    const base_buf *text = &f->file.text;
    const char *package = text->data ? strstr(text->data, "package ") : NULL;
    static const char *const says[] = {"//go:build ignore", "// +build ignore"};
    for (size_t i = 0; package && i < sizeof says / sizeof *says; i++)
        if (memmem(text->data, (size_t)(package - text->data), says[i], strlen(says[i]))) return true;
    return false;
}
