/*
 * write {path} + block: a new file. An existing one is refused with the call that would change it:
 * overwriting whole files is how weak models lose code.
 */
#include "tools/edit/change.h"
#include "tools/file/text.h"
#include "tools/result/result.h"
#include "tools/file/safe_path.h"
#include "tools/tree/workspace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

static void refuse_existing(tool_workspace *w, tool_result *r, const char *path)
{
    base_buf shown = {0};
    tool_file f = {0};
    tool__path_show(&shown, path);
    tool__say(r, TOOL_REFUSED, "%s exists; write only makes new files. Do not write it again. ", shown.data);
    const char *name = NULL;
    code_file *c = NULL;
    bool is_read = !tool__file_read(&w->root, path, TOOL_MAX_FILE, &f, NULL);
    if (is_read && tool__is_binary(f.text.data, f.text.len)) {
        base_buf_puts(&r->text, "It is binary. Next: write another name\n");
        tool__file_free(&f);
        base_buf_free(&shown);
        return;
    }
    if (is_read) {
        c = code_parse(w->grammars, path, f.text.data, f.text.len);
        for (uint32_t i = 0; i < c->n_definitions && !name; i++)
            if (!c->definitions[i].is_declaration && c->definitions[i].body_to) name = c->definitions[i].name;
    }
    base_buf_puts(&r->text, name ? "Next: rewrite {\"path\": " : "Next: read {\"path\": ");
    tool__quote(&r->text, path);
    if (name) {
        base_buf_puts(&r->text, ", \"name\": ");
        tool__quote(&r->text, name);
    }
    base_buf_puts(&r->text, name ? "} with the whole new definition in the fenced block\n" : "}\n");
    if (c) code_file_free(c);
    tool__file_free(&f);
    base_buf_free(&shown);
}

/* "Write a.c (top folder)" is no folder of that name: the path without it, where the tree has none. */
static void leave_out_top(tool_workspace *w, const char *request, char *path)
{
    static const char *const tops[] = {"top", "root", "toplevel", "top-level", "top_level"};
    static const char *const said[] = {"top folder", "top directory", "top level", "top-level", "toplevel",
        "root folder", "root directory", "root of the", "folder's root"};
    const size_t n = strcspn(path, "/");
    bool is_top = false, is_said = false;
    for (size_t i = 0; i < sizeof tops / sizeof *tops; i++)
        is_top |= strlen(tops[i]) == n && !strncmp(path, tops[i], n);
    for (size_t i = 0; request && i < sizeof said / sizeof *said; i++)
        is_said |= strcasestr(request, said[i]) != NULL;
    if (!is_top || !is_said || !path[n] || !path[n + 1]) return;
    path[n] = '\0';
    const int fd = tool__path_open(&w->root, path, O_PATH);
    path[n] = '/';
    if (fd >= 0)
        close(fd);
    else
        memmove(path, path + n + 1, strlen(path + n + 1) + 1);
}

static int prepare(tool_workspace *w, const tool_call *call, const tool_limits *limits, tool_preview *ret,
    tool_result *result, base_err *err)
{
    char *path = NULL;
    struct stat st;
    result->exit_code = -1;
    if (!tool__want_path(w, call, "write", &path, result)) return BASE_OK;
    leave_out_top(w, call->request, path);
    int fd = tool__path_open(&w->root, path, O_PATH);
    int sys = errno;
    bool is_folder = fd >= 0 && !fstat(fd, &st) && S_ISDIR(st.st_mode);
    if (fd >= 0) close(fd);
    if (!call->payload.ptr) {
        tool__say(result, TOOL_FAILED,
            "write needs the file's text in a fenced block behind the call. Nothing was written.\n");
    } else if (is_folder || !*path) {
        tool__say(result, TOOL_REFUSED, "%s is a folder. Next: write with the name of a file in it.\n",
            *path ? path : "This");
    } else if (fd >= 0) {
        refuse_existing(w, result, path);
    } else if (sys != ENOENT) {
        tool__say(result, TOOL_REFUSED, "%s cannot be made: %s. Nothing was written.\n", path,
            sys == ELOOP || sys == EXDEV ? "a symbolic link lies on the way" : strerror(sys));
    } else if (call->payload.len > TOOL_MAX_FILE) {
        tool__say(result, TOOL_REFUSED, "This text is larger than %zu MB. Nothing was written.\n",
            TOOL_MAX_FILE >> 20);
    } else {
        tool_change *c = base_xcalloc(1, sizeof *c);
        base_buf head = {0}, say = {0};
        c->path = base_xstrdup(path);
        c->creates = true;
        base_buf_add(&c->new_text, call->payload.ptr, call->payload.len);
        if (c->new_text.len && c->new_text.data[c->new_text.len - 1] != '\n')
            base_buf_putc(&c->new_text, '\n');
        base_buf_puts(&head, "write ");
        tool__path_show(&head, path);
        base_buf_puts(&say, "made ");
        tool__path_show(&say, path);
        base_buf_printf(&say, " (%zu lines).", tool__count_lines(c->new_text.data, c->new_text.len));
        code_file *f = code_parse(w->grammars, path, c->new_text.data, c->new_text.len);
        if (f->language && f->n_errors)
            base_buf_printf(&say, " It does not parse as %s near line %u.", f->language, f->error_line);
        code_file_free(f);
        base_buf_putc(&say, '\n');
        c->say = base_buf_take(&say);
        tool__change_preview(&w->root, c, head.data, ret);
        base_buf_free(&head);
    }
    free(path);
    return BASE_OK;
}

static const tool_argument arguments[] = {
    {"path", TOOL_ARGUMENT_STRING, true, "new file", NULL, TOOL_FOR_ALL},
    {0},
};

const tool_entry tool__write = {
    .name = "write",
    .power = TOOL_WRITES,
    .about = "Create a new file; its text follows in a fenced block.",
    .arguments = arguments,
    .takes_payload = true,
    .prepare = prepare,
    .run = tool__change_run,
};
