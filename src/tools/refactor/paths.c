/* Paths of the tree beside each other, and what a file of Go says of its package. Pure. */
#include "tools/refactor/refactor.h"

#include <string.h>

bool refactor__same_folder(const char *a, const char *b)
{
    const char *x = strrchr(a, '/'), *y = strrchr(b, '/');
    const size_t n = x ? (size_t)(x - a) : 0, m = y ? (size_t)(y - b) : 0;
    return n == m && !strncmp(a, b, n);
}

bool refactor__ends_with_path(const char *path, const char *end)
{
    const size_t n = strlen(path), m = strlen(end);
    return n >= m && !strcmp(path + n - m, end) && (n == m || path[n - m - 1] == '/');
}

char *refactor__join_path(const char *from, const char *relative)
{
    const char *slash = strrchr(from, '/');
    base_buf all = {0};
    base_buf_add(&all, from, slash ? (size_t)(slash - from) : 0);
    if (!all.data) base_buf_puts(&all, "");
    for (const char *p = relative; *p;) {
        const size_t n = strcspn(p, "/");
        if (n == 2 && !strncmp(p, "..", 2)) {
            if (!all.len) {
                base_buf_free(&all);
                return NULL;
            }
            const char *last = strrchr(all.data, '/');
            all.len = last ? (size_t)(last - all.data) : 0;
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

const char *refactor__go_package(const refactor_file *f, size_t *ret_n)
{
    static const char word[] = "package ";
    const char *at = f->file.text.data;
    /* At the begin of a line: a comment above may say the word. */
    while (at && (at = strstr(at, word)) != NULL && at != f->file.text.data && at[-1] != '\n') at++;
    if (at) at += sizeof word - 1;
    *ret_n = at ? strcspn(at, " \t\r\n;/") : 0;
    return at;
}

bool refactor__is_external_test(const refactor_file *f)
{
    static const char end[] = "_test";
    size_t n;
    const char *package = refactor__go_package(f, &n);
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
