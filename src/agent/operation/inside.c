/* What a function of the tree writes as a name of its own: its parameters, its locals (contract: operation.h). */
#include <string.h>

#include "agent/operation/operation.h"
#include "code/code.h"

uint32_t agent__count_inside(const agent *a, const code_place *p, const char *word)
{
    enum { MAX_FILE = 4 << 20 };
    base_buf text = {0};
    size_t at = 0, from, to;
    const bool is_read =
        !tool_workspace_read(a->workspace, p->path, MAX_FILE, &text, NULL) && p->to <= text.len;
    uint32_t n = is_read ? 0 : UINT32_MAX;
    while (is_read && code_next_identifier(text.data + p->from, p->to - p->from, &at, &from, &to)) {
        const char *found = text.data + p->from + from;
        const bool is_member = from > 0 && (found[-1] == '.' || found[-1] == '>'); /* another thing's */
        n += !is_member && to - from == strlen(word) && !memcmp(found, word, to - from);
    }
    base_buf_free(&text);
    return n;
}

bool agent__stands_inside(const agent *a, const char *name, const char *word)
{
    code_place *places = NULL;
    const uint32_t n = code_index_define(tool_workspace_index(a->workspace), name, &places);
    bool is_so = false;
    for (uint32_t i = 0; i < n && !is_so; i++) {
        const bool is_function = !strcmp(places[i].what, "function") || !strcmp(places[i].what, "method");
        const uint32_t n_times =
            is_function && !places[i].is_declaration ? agent__count_inside(a, &places[i], word) : 0;
        is_so = n_times && n_times != UINT32_MAX;
    }
    code_places_free(places, n);
    return is_so;
}
