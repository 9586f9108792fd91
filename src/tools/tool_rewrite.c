/*
 * rewrite {path, name} + block: one whole definition becomes another (replace.c). What was never shown is not
 * rewritten: the refusal carries the definition's current text, so that the next call can be right.
 */
#include "tools/edit/change.h"
#include "tools/edit/replace.h"
#include "tools/result/result.h"
#include "tools/tree/safe_path.h"
#include "tools/tree/workspace.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Without a name: what the block defines, when that is one thing. */
static char *name_from_block(tool_workspace *w, const char *path, base_str block)
{
    if (!block.ptr) return NULL;
    code_file *b = code_parse(w->grammars, path, block.ptr, block.len);
    char *name = NULL;
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->n_definitions; i++) {
        const code_definition *d = &b->definitions[i];
        if (d->is_declaration || !d->body_to || (d->parent && *d->parent)) continue;
        if (!n++) name = base_xstrdup(d->name);
    }
    code_file_free(b);
    if (n == 1) return name;
    free(name);
    return NULL;
}

static bool is_shown(
    tool_workspace *w, const char *path, const char *name, const tool_file *f, tool_result *r)
{
    base_buf why = {0}, next = {0};
    uint32_t at;
    bool shown = false;
    code_file *c = tool__parse_for(w->grammars, path, f->text.data, f->text.len, name);
    if (!tool__find_definition(c, path, &f->text, name, &at, &why)) {
        tool__say(r, TOOL_FAILED, "%s", why.data);
    } else {
        const code_definition *d = &c->definitions[at];
        size_t from = d->from, to = d->to < f->text.len ? d->to : f->text.len;
        while (from && f->text.data[from - 1] != '\n') from--;
        if (to - from > 6000) to = from + 6000;
        base_buf_puts(&next, "rewrite {\"path\": ");
        tool__quote(&next, path);
        base_buf_puts(&next, ", \"name\": ");
        tool__quote(&next, name);
        base_buf_puts(&next, "} with this text corrected, whole, in the fenced block");
        shown =
            tool__change_is_shown(w, path, f, r, f->text.data + from, to - from, from, d->line, next.data);
    }
    code_file_free(c);
    base_buf_free(&why);
    base_buf_free(&next);
    return shown;
}

static int prepare(tool_workspace *w, const tool_call *call, const tool_limits *limits, tool_preview *ret,
    tool_result *result, base_err *err)
{
    char *path = NULL, *name = NULL;
    tool_file f = {0};
    base_buf new_text = {0}, note = {0}, why = {0}, head = {0}, say = {0};
    uint32_t line, line_end;
    result->exit_code = -1;
    if (!tool__open_for_change(w, call, "rewrite", &path, &f, result)) goto out;
    name = base_xstrdup(tool__string(call, "name"));
    if (!name) name = name_from_block(w, path, call->payload);
    if (!name) {
        base_buf_puts(&result->text, "rewrite needs the name of the definition. Next: rewrite {\"path\": ");
        tool__quote(&result->text, path);
        tool__say(result, TOOL_FAILED, ", \"name\": \"...\"}\n");
        goto out;
    }
    if (!is_shown(w, path, name, &f, result)) goto out;
    if (!call->payload.ptr) {
        tool__say(result, TOOL_FAILED,
            "The fenced block with the new text of %s is missing. Nothing was changed. Next: the same call, "
            "then the whole new definition between ``` lines.\n",
            name);
        goto out;
    }
    if (!tool__replace_definition(
            w->grammars, path, &f.text, name, call->payload, &new_text, &line, &line_end, &note, &why)) {
        tool__say(result, TOOL_FAILED, "%s", why.data);
        goto out;
    }
    base_buf_printf(&head, "rewrite %s in ", name);
    tool__path_show(&head, path);
    base_buf_printf(&say, "rewrote %s in ", name);
    tool__path_show(&say, path);
    base_buf_printf(
        &say, ", now lines %u-%u.%s%s\n", line, line_end, note.len ? " " : "", note.len ? note.data : "");
    tool__change_preview(&w->root, tool__change_new(path, &f, &new_text, &say), head.data, ret);
    new_text = (base_buf){0};
out:
    tool__file_free(&f);
    base_buf_free(&new_text);
    base_buf_free(&note);
    base_buf_free(&why);
    base_buf_free(&head);
    free(path);
    free(name);
    return BASE_OK;
}

static int run(tool_workspace *w, const tool_call *call, const tool_limits *limits, tool_preview *prepared,
    tool_result *ret, base_err *err)
{
    return tool__change_run(w, prepared, ret, err);
}

static const tool_argument arguments[] = {
    {"path", TOOL_ARGUMENT_PATH, true, "file", NULL, TOOL_FOR_ALL},
    {"name", TOOL_ARGUMENT_STRING, true, "function, Class.method or type", NULL, TOOL_FOR_ALL},
    {0},
};

const tool_entry tool__rewrite = {
    .name = "rewrite",
    .power = TOOL_WRITES,
    .models = TOOL_FOR_SMALL,
    .about = "Replace one whole definition of a file; the whole new definition follows in a fenced block.",
    .arguments = arguments,
    .takes_payload = true,
    .prepare = prepare,
    .run = run,
};
