/* Lines of a file, shown in front of a request (contract: operation.h). */
#include "agent/call/prompt.h"
#include "agent/operation/operation.h"
#include "agent/sequence/sequence.h"
#include "base/hash.h"

int agent__append_lines(
    agent *a, const agent_lines *l, const char *behind, const char *request, base_err *err)
{
    base_buf excerpt = {0};
    char version[65];
    agent_prompt_excerpt_head(l->path, l->line, l->line_end, l->label, &excerpt);
    const size_t source_from = excerpt.len;
    base_buf_add(&excerpt, l->text->data + l->from, l->to - l->from);
    base_buf_puts(&excerpt, behind);
    base_sha256_hex(l->text->data, l->text->len, version);
    const agent_text shown = {.origin = KV_ORIGIN_CONTEXT,
        .text = excerpt.data,
        .n = excerpt.len,
        .label = l->label,
        .path = l->path,
        .version = version,
        .line = l->line,
        .line_end = l->line_end,
        .whole = true,
        .source_from = source_from,
        .words = request};
    const int rc = agent__append(a, &shown, NULL, err);
    base_buf_free(&excerpt);
    return rc;
}
