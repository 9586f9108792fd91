/*
 * Three files of lines (contract: approvals.h). A change is written whole while the file's folder is locked, so
 * that two programs lose nothing of each other.
 */
#include "agent/approve/approvals.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/show.h"
#include "tools/guard/runs.h"

enum { MOST_BYTES = 1 << 20 };

static const struct {
    const char *word;
    base_home home;
    const char *file;
} kinds[] = {
    [AGENT_APPROVAL_COMMAND] = {"command", BASE_HOME_CONFIG, "approvals"},
    [AGENT_APPROVAL_READ] = {"read", BASE_HOME_DATA, "allow-read"},
    [AGENT_APPROVAL_ENDPOINT] = {"endpoint", BASE_HOME_DATA, "endpoints"},
};

const char *agent_approval_word(agent_approval_kind kind)
{
    return kinds[kind].word;
}

/* In base_show's form neither holds a tab or a newline. */
static void put_line(base_buf *out, const char *tree, const char *what)
{
    base_show(out, tree, strlen(tree), BASE_SHOW_UTF8);
    base_buf_putc(out, '\t');
    base_show(out, what, strlen(what), BASE_SHOW_UTF8);
    base_buf_putc(out, '\n');
}

static int read_file(agent_approval_kind kind, char **ret_path, base_buf *ret, base_err *err)
{
    *ret_path = base_fs_home(kinds[kind].home, kinds[kind].file);
    if (!base_fs_exists(*ret_path)) return BASE_OK;
    int rc = base_fs_check_owner(*ret_path, err);
    return rc ? rc : base_fs_read(*ret_path, MOST_BYTES, ret, err);
}

/* Where the line stands in the file; NULL: it does not. A hand may have put a NUL byte into the file. */
static char *find_line(const base_buf *text, const base_buf *line)
{
    const char *end = text->data ? text->data + text->len : NULL;
    for (char *at = text->data; at && (at = memmem(at, (size_t)(end - at), line->data, line->len)); at++)
        if (at == text->data || at[-1] == '\n') return at;
    return NULL;
}

/* Each of them: a hand may have written it twice. */
static void remove_line(base_buf *text, const base_buf *line)
{
    for (char *at; (at = find_line(text, line));) {
        text->len -= line->len;
        memmove(at, at + line->len, text->len - (size_t)(at - text->data));
        text->data[text->len] = '\0';
    }
}

static void append(agent_approvals *a, agent_approval_kind kind, const char *tree, const char *what, size_t n)
{
    base_buf shown = {0};
    base_show_parse(&shown, what, n);
    base_grow(&a->rows, &a->cap, a->n + 1, sizeof *a->rows);
    a->rows[a->n++] = (agent_approval){kind, base_xstrdup(tree), base_xstrdup(shown.data ? shown.data : "")};
    base_buf_free(&shown);
}

void agent_approvals_parse(
    agent_approval_kind kind, const char *text, size_t n, const char *tree, agent_approvals *ret)
{
    for (size_t at = 0; at < n;) {
        const char *line = text + at, *end = memchr(line, '\n', n - at);
        const size_t length = end ? (size_t)(end - line) : n - at;
        const char *tab = memchr(line, '\t', length);
        at += length + 1;
        if (!tab || !end) continue;
        base_buf of = {0};
        base_show_parse(&of, line, (size_t)(tab - line));
        if (of.data && (!tree || !strcmp(of.data, tree)))
            append(ret, kind, of.data, tab + 1, (size_t)(end - tab) - 1);
        base_buf_free(&of);
    }
}

int agent_approvals_read(const char *tree, agent_approvals *ret, base_err *err)
{
    *ret = (agent_approvals){0};
    for (int kind = 0; kind < AGENT_N_APPROVAL_KINDS; kind++) {
        base_buf text = {0};
        char *path = NULL;
        int rc = read_file((agent_approval_kind)kind, &path, &text, err);
        if (!rc && text.len) agent_approvals_parse((agent_approval_kind)kind, text.data, text.len, tree, ret);
        base_buf_free(&text);
        free(path);
        if (!rc) continue;
        agent_approvals_free(ret);
        return rc;
    }
    return BASE_OK;
}

void agent_approvals_free(agent_approvals *a)
{
    for (size_t i = 0; i < a->n; i++) {
        free(a->rows[i].tree);
        free(a->rows[i].what);
    }
    free(a->rows);
    *a = (agent_approvals){0};
}

bool agent_approvals_has(agent_approval_kind kind, const char *tree, const char *what, base_err *err)
{
    base_buf text = {0}, line = {0};
    char *path = NULL;
    put_line(&line, tree, what);
    const bool found = !read_file(kind, &path, &text, err) && find_line(&text, &line);
    base_buf_free(&text);
    base_buf_free(&line);
    free(path);
    return found;
}

/* The folder, made if it must be, and locked until the descriptor is closed; < 0: *ret says why not. */
static int lock_folder(base_home home, int *ret, base_err *err)
{
    char *folder = base_fs_home(home, NULL);
    *ret = base_fs_mkdirs(folder, err);
    int fd = *ret ? -1 : open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (!*ret && (fd < 0 || flock(fd, LOCK_EX))) *ret = base_fail_sys(err, "%s", folder);
    if (*ret && fd >= 0) {
        close(fd);
        fd = -1;
    }
    free(folder);
    return fd;
}

/* Adds the line, or takes it away. */
static int change(
    agent_approval_kind kind, const char *tree, const char *what, bool is_allowed, base_err *err)
{
    base_buf text = {0}, line = {0};
    char *path = NULL;
    int rc;
    const int fd = lock_folder(kinds[kind].home, &rc, err);
    put_line(&line, tree, what);
    if (!rc) rc = read_file(kind, &path, &text, err);
    const bool found = !rc && find_line(&text, &line);
    if (!rc && !is_allowed && !found) rc = base_fail(err, BASE_E_NOT_FOUND, "this is not allowed (any more)");
    if (!rc && is_allowed != found) {
        if (is_allowed && text.len && text.data[text.len - 1] != '\n') base_buf_putc(&text, '\n');
        if (is_allowed)
            base_buf_add(&text, line.data, line.len);
        else
            remove_line(&text, &line);
        rc = text.len > MOST_BYTES
                 ? base_fail(err, BASE_E_LIMIT, "%s is full: take something back first", path)
                 : base_fs_write(path, text.data, text.len, 0600, err);
    }
    if (fd >= 0) close(fd);
    base_buf_free(&text);
    base_buf_free(&line);
    free(path);
    return rc;
}

int agent_approvals_add(agent_approval_kind kind, const char *tree, const char *what, base_err *err)
{
    return change(kind, tree, what, true, err);
}

int agent_approvals_remove(const agent_approval *which, base_err *err)
{
    return change(which->kind, which->tree, which->what, false, err);
}

static const char as_of[] = "as of ", of_copy[] = "in a copy: ";

char *agent_allowance(const char *tree, const char *command, bool in_copy)
{
    base_buf text = {0};
    char *sum = tool_runs_sum(tree, command);
    base_buf_puts(&text, in_copy ? of_copy : "");
    if (sum) base_buf_printf(&text, "%s%s: ", as_of, sum);
    base_buf_puts(&text, command);
    free(sum);
    return base_buf_take(&text);
}

bool agent_allowance_is_of(const char *allowance, const char *command)
{
    if (!strncmp(allowance, of_copy, sizeof of_copy - 1)) allowance += sizeof of_copy - 1;
    const size_t n = strlen(allowance), m = strlen(command);
    return !strncmp(allowance, as_of, sizeof as_of - 1) && n > m + 3 && !strcmp(allowance + n - m, command) &&
           !strncmp(allowance + n - m - 3, "): ", 3);
}
