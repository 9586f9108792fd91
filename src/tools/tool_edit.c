/*
 * edit {path, from?, to?} + block: OLD/NEW parts, or the new text of a range of lines (blocks.c). For models
 * that copy text faithfully; the others get rewrite.
 */
#include "tools/edit/change.h"
#include "tools/edit/replace.h"
#include "tools/file/text.h"
#include "tools/result/result.h"
#include "tools/file/safe_path.h"
#include "tools/tree/workspace.h"

#include <stdlib.h>
#include <string.h>

/* A document's list goes on behind the lines: blank ones at their end, where the old ones had none, are the model's slip. */
static base_str without_blank_end(const char *path, const base_buf *text, size_t to, base_str block)
{
    const char *language = code_language(path, "", 0);
    const size_t from = tool__line_start(text->data, text->len, to);
    const bool may = block.ptr && (!language || code_language_is_document(language)) && from < text->len &&
                     text->data[from] != '\n';
    while (may && block.len > 1 && block.ptr[block.len - 1] == '\n' && block.ptr[block.len - 2] == '\n')
        block.len--;
    return block;
}

static int prepare(tool_workspace *w, const tool_call *call, const tool_limits *limits, tool_preview *ret,
    tool_result *result, base_err *err)
{
    char *path = NULL;
    tool_file f = {0};
    base_buf new_text = {0}, note = {0}, why = {0}, head = {0}, say = {0}, next = {0};
    result->exit_code = -1;
    if (!tool__want_path(w, call, "edit", &path, result) ||
        !tool__open_for_change(w, path, "edit", &f, result))
        goto out;
    size_t from = (size_t)tool__integer(call, "from", 0, 0, UINT32_MAX),
           to = (size_t)tool__integer(call, "to", (int64_t)from, 0, UINT32_MAX);
    size_t first = from > 20 ? from - 20 : 1;
    size_t begin = tool__line_start(f.text.data, f.text.len, first),
           end = tool__line_start(f.text.data, f.text.len, first + 120);
    if (end - begin > 6000) end = begin + 6000;
    base_buf_puts(&next, "the same call with the old lines as they are here");
    if (!tool__change_is_shown(w, path, &f, begin, end, next.data, result)) goto out;
    tool__file_part_mark(&f);
    if (!call->payload.ptr) {
        tool__say(result, TOOL_FAILED, "The fenced block behind the call is missing. Nothing was changed.\n");
        goto out;
    }
    const base_str block = without_blank_end(path, &f.text, to, call->payload);
    bool is_good = from ? tool__replace_lines(path, &f.text, from, to, block, &new_text, &why)
                        : tool__replace_blocks(path, &f.text, call->payload, &new_text, &note, &why);
    if (!is_good || !tool__syntax_holds(w->grammars, path, &f.text, &new_text, &why)) {
        tool__say(result, TOOL_FAILED, "%s", why.data);
        goto out;
    }
    base_buf_puts(&head, "edit ");
    tool__path_show(&head, path);
    base_buf_puts(&say, "changed ");
    tool__path_show(&say, path);
    base_buf_printf(&say, ".%s%s\n", note.len ? " " : "", note.len ? note.data : "");
    tool__change_preview(&w->root, tool__change_new(path, &f, &new_text, &say), head.data, ret);
    new_text = (base_buf){0};
out:
    tool__file_free(&f);
    base_buf_free(&new_text);
    base_buf_free(&note);
    base_buf_free(&why);
    base_buf_free(&head);
    base_buf_free(&next);
    free(path);
    return BASE_OK;
}

static const tool_argument arguments[] = {
    {"path", TOOL_ARGUMENT_PATH, true, "file", NULL, TOOL_FOR_ALL},
    {"from", TOOL_ARGUMENT_INTEGER, false, "first line to replace", NULL, TOOL_FOR_ALL},
    {"to", TOOL_ARGUMENT_INTEGER, false, "last line to replace", NULL, TOOL_FOR_ALL},
    {0},
};

const tool_entry tool__edit = {
    .name = "edit",
    .power = TOOL_WRITES,
    .models = TOOL_FOR_STRONG,
    .about = "Change a file. A fenced block follows: the new text of lines from..to, or parts "
             "\"<<<<<<< OLD\", old lines, \"=======\", new lines, \">>>>>>> NEW\".",
    .arguments = arguments,
    .takes_payload = true,
    .prepare = prepare,
    .run = tool__change_run,
};
