/*
 * Operations on definitions, and rewrites of what may not be there, in a tree of two files of any bytes: what is prepared
 * begins with the files as they are. Input: a byte for the language, one for the operation, then, with NUL bytes between
 * them, the name, what it becomes, a parameter, a value, one file, the other.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "scratch.h"
#include "tools/refactor/changes.h"
#include "tools/refactor/refactor.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

#define require(holds) ((holds) ? (void)0 : abort())

static void put_member(base_buf *out, const char *key, const char *value)
{
    if (!*value) return;
    base_buf_printf(out, "%s\"%s\":", out->len > 1 ? "," : "", key);
    base_json_put_str(out, value, strlen(value));
}

static void check_changes(const tool_changes *c, const base_buf *texts, char *const *paths)
{
    for (size_t i = 0; i < c->n; i++)
        for (int k = 0; k < 2; k++)
            if (!strcmp(c->all[i]->path, paths[k]))
                require(c->all[i]->old_text.len == texts[k].len &&
                        (!texts[k].len || !memcmp(c->all[i]->old_text.data, texts[k].data, texts[k].len)));
}

static void call(tool_workspace *w, const char *tool, const base_buf *arguments, const char *payload,
    const char *request, const base_buf *texts, char *const *paths)
{
    static const tool_limits limits = {.result_bytes = 4000};
    base_json_doc *doc = NULL;
    tool_preview preview = {0};
    tool_result result = {.exit_code = -1};
    if (base_json_parse(arguments->data, arguments->len, &doc, NULL)) return; /* bytes that are no text */
    const tool_call c = {
        .name = tool, .arguments = base_json_root(doc), .payload = base_str_of(payload), .request = request};
    require(!tool_find(tool)->prepare(w, &c, &limits, &preview, &result, NULL));
    if (preview.plan) {
        require(preview.headline && *preview.headline);
        if (!strcmp(tool, "refactor")) check_changes(preview.plan, texts, paths);
    } else {
        require(result.status != TOOL_OK && result.text.len); /* a refusal says why */
    }
    tool_preview_free(&preview);
    tool_result_free(&result);
    base_json_free(doc);
}

/* Opened once: its grammars are loaded then. */
static void open_tree(tool_workspace **ret)
{
    base_buf path = {0};
    scratch_put("tree/README", "", 0);
    base_buf_printf(&path, "%s/tree", scratch_folder());
    tool_workspace_options options = {.dir = path.data};
    if (tool_workspace_open(ret, &options, NULL)) abort();
    base_buf_free(&path);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static const char *const endings[] = {"c", "h", "py", "js", "ts", "go", "rs", "java"};
    static const char *const operations[] = {"rename", "move", "delete", "signature"};
    static tool_workspace *w;
    if (n < 2 || n > 1 << 15) return 0;
    const char *ending = endings[bytes[0] & 7];
    const uint8_t how = bytes[1];
    bytes += 2;
    n -= 2;
    char *part[5], *paths[2];
    for (int i = 0; i < 5; i++) part[i] = scratch_part(&bytes, &n);
    base_buf texts[2] = {{0}, {0}}, arguments = {0};
    base_buf_puts(&texts[0], part[4]);
    base_buf_add(&texts[1], bytes, n);
    if (!w) open_tree(&w);
    for (int k = 0; k < 2; k++) {
        base_buf path = {0};
        base_buf_printf(&path, "tree/%s.%s", k ? "lib/two" : "one", ending);
        scratch_put(path.data, texts[k].data, texts[k].len);
        paths[k] = base_xstrdup(path.data + 5);
        base_buf_free(&path);
    }
    if (tool_workspace_refresh(w, NULL, NULL, NULL)) abort();
    base_buf_putc(&arguments, '{');
    put_member(&arguments, "name", part[0]);
    if (how & 128) {
        put_member(&arguments, "path", how & 1 ? paths[0] : part[1]);
        base_buf_putc(&arguments, '}');
        call(w, "rewrite", &arguments, part[2], how & 2 ? part[3] : NULL, texts, paths);
    } else {
        const bool is_private = (how & 3) == 3 && !*part[2]; /* a signature without a parameter */
        put_member(&arguments, "operation", is_private ? "private" : operations[how & 3]);
        put_member(&arguments, "to", how & 64 ? paths[1] : part[1]);
        put_member(&arguments, "parameter", part[2]);
        put_member(&arguments, "value", part[3]);
        if (how & 4) base_buf_puts(&arguments, ",\"unsure\":true");
        if (how & 8) base_buf_puts(&arguments, ",\"text\":true");
        if (how & 16) put_member(&arguments, "path", paths[0]);
        if (how & 32) base_buf_puts(&arguments, ",\"at\":1");
        base_buf_putc(&arguments, '}');
        call(w, "refactor", &arguments, "", NULL, texts, paths);
    }
    for (int i = 0; i < 5; i++) free(part[i]);
    for (int k = 0; k < 2; k++) {
        base_buf path = {0};
        base_buf_printf(&path, "tree/%s", paths[k]);
        scratch_clear(path.data);
        base_buf_free(&path);
        free(paths[k]);
        base_buf_free(&texts[k]);
    }
    base_buf_free(&arguments);
    return 0;
}
