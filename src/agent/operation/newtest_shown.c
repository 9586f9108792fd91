/* What stands in front of a request for a new test: what is tested, and the test beside it (contract: operation.h). */
#include "agent/call/prompt.h"
#include "agent/operation/operation.h"
#include "agent/sequence/sequence.h"
#include "base/hash.h"

enum { MAX_FILE = 1 << 20 };

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

int agent__append_subject(agent *a, const char *subject, const char *request, base_err *err)
{
    enum { MAX_SUBJECT = 1600 };
    code_place *places = NULL;
    uint32_t n = code_index_define(tool_workspace_index(a->workspace), subject, &places);
    base_buf text = {0};
    int rc = 0;
    const code_place *p = NULL;
    for (uint32_t i = 0; i < n && !p; i++)
        if (agent__is_code_place(&places[i])) p = &places[i];
    if (p && !tool_workspace_read(a->workspace, p->path, MAX_FILE, &text, NULL) && p->to <= text.len &&
        p->to - p->from <= MAX_SUBJECT) {
        size_t from = p->from;
        while (from && text.data[from - 1] != '\n') from--;
        rc = agent__append_lines(a,
            &(agent_lines){p->path, subject, &text, from, p->to, p->line, p->line_end}, "\n\n", request, err);
    }
    code_places_free(places, n);
    base_buf_free(&text);
    return rc;
}
