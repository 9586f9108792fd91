#include "tools/file/git_includes.h"

#include <ctype.h>
#include <git2.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/path.h"

/* libgit2 reads a configuration some fifteen times before a request: 4 MiB of short lines are seven seconds of it. */
enum { MOST_DEPTH = 10 /* libgit2's own */, MOST_FILES = 1000, MOST_BYTES = 4 << 20 };

typedef struct search {
    tool_git_include_fn *fn;
    void *user;
    size_t n_files, n_bytes; /* that were read */
    char *found;
} search;

/* A value as git writes it: quotes, escapes, lines that go on behind a backslash, comments. Returns where it ends. */
static const char *read_value(const char *p, const char *end, base_buf *ret)
{
    bool is_quoted = false;
    size_t n_kept = 0; /* blanks at the end are none of it */
    base_buf_clear(ret);
    while (p < end && (*p == ' ' || *p == '\t')) p++;
    for (; p < end && *p != '\n' && (is_quoted || (*p != '#' && *p != ';')); p++) {
        char c = *p;
        if (c == '"') {
            is_quoted = !is_quoted;
            n_kept = ret->len;
            continue;
        }
        if (c == '\\' && p + 1 < end) {
            p++;
            if (*p == '\r' && p + 1 < end && p[1] == '\n') p++;
            if (*p == '\n') continue;
            c = *p == 'n' ? '\n' : *p == 't' ? '\t' : *p == 'b' ? '\b' : *p;
            base_buf_putc(ret, c);
            n_kept = ret->len;
            continue;
        }
        base_buf_putc(ret, c);
        if (is_quoted || !isspace((unsigned char)c)) n_kept = ret->len;
    }
    if (ret->data) ret->data[ret->len = n_kept] = '\0';
    return p;
}

typedef struct reader {
    const char *p, *end;
    bool is_include; /* the section */
} reader;

/* "[include]", "[includeIf "gitdir:x"]": more than git takes for one, never less. */
static void read_header(reader *r)
{
    static const char word[] = "include";
    bool is_quoted = false;
    r->p++;
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\t')) r->p++;
    r->is_include = (size_t)(r->end - r->p) >= sizeof word - 1 && !strncasecmp(r->p, word, sizeof word - 1);
    for (; r->p < r->end && *r->p != '\n' && (is_quoted || *r->p != ']'); r->p++) {
        if (*r->p == '\\' && r->p + 1 < r->end) r->p++;
        if (*r->p == '"') is_quoted = !is_quoted;
    }
    if (r->p < r->end) r->p++;
}

static void skip_line(reader *r)
{
    while (r->p < r->end && *r->p != '\n') r->p++;
}

/* The next file that is included. */
static bool next_include(reader *r, base_buf *ret)
{
    while (r->p < r->end) {
        const char *key = r->p;
        while (r->p < r->end && (isalnum((unsigned char)*r->p) || *r->p == '-')) r->p++;
        const bool is_path = r->p - key == 4 && !strncasecmp(key, "path", 4);
        if (r->p > key) {
            while (r->p < r->end && isspace((unsigned char)*r->p) && *r->p != '\n') r->p++;
            if (r->p < r->end && *r->p == '=') {
                r->p = read_value(r->p + 1, r->end, ret);
                skip_line(r);
                if (is_path && r->is_include && ret->len && *ret->data) return true;
            } else {
                skip_line(r);
            }
        } else if (*r->p == '[') {
            read_header(r);
        } else if (*r->p == '#' || *r->p == ';') {
            skip_line(r);
        } else {
            r->p++; /* a blank, a byte order mark, what git would complain of */
        }
    }
    return false;
}

static char *path_of(const char *from, const char *value)
{
    const char *home = getenv("HOME");
    base_buf path = {0};
    if (value[0] == '~' && value[1] == '/')
        base_buf_printf(&path, "%s%s", home ? home : "", value + 1);
    else if (*value == '/')
        base_buf_puts(&path, value);
    else
        base_buf_printf(&path, "%.*s/%s", (int)base_path_folder_length(from), from, value);
    return base_buf_take(&path);
}

static void look_at(search *s, const char *file, int depth)
{
    struct stat st;
    if (s->found || depth > MOST_DEPTH || stat(file, &st) || S_ISDIR(st.st_mode)) return;
    if (S_ISREG(st.st_mode) && st.st_size <= MOST_BYTES) s->n_bytes += (size_t)st.st_size;
    if (!S_ISREG(st.st_mode) || st.st_size > MOST_BYTES || s->n_bytes > MOST_BYTES ||
        ++s->n_files > MOST_FILES) {
        s->found = base_xstrdup(file);
        return;
    }
    base_buf text = {0}, value = {0};
    if (!base_fs_read(file, MOST_BYTES, &text, NULL) && text.len) {
        for (reader r = {.p = text.data, .end = text.data + text.len};
             !s->found && next_include(&r, &value);) {
            char *path = path_of(file, value.data);
            if (s->fn) s->fn(s->user, path);
            look_at(s, path, depth + 1);
            free(path);
        }
    }
    base_buf_free(&text);
    base_buf_free(&value);
}

char *tool__git_includes(const char *config, tool_git_include_fn *fn, void *user)
{
    search s = {.fn = fn, .user = user};
    look_at(&s, config, 0);
    return s.found;
}

char *tool__git_includes_of_person(tool_git_include_fn *fn, void *user)
{
    static int (*const find[])(git_buf *) = {
        git_config_find_system, git_config_find_xdg, git_config_find_global, git_config_find_programdata};
    char *found = NULL;
    for (size_t i = 0; i < sizeof find / sizeof *find && !found; i++) {
        git_buf path = GIT_BUF_INIT;
        if (!find[i](&path)) found = tool__git_includes(path.ptr, fn, user);
        git_buf_dispose(&path);
    }
    return found;
}
