/* What is tested, in front of the test beside it (contract: newtest.h). */
#include "agent/newtest/newtest.h"

enum { MAX_SUBJECT = 1600 };

int agent__append_subject(agent *a, const char *subject, const char *request, base_err *err)
{
    code_place *places = NULL;
    uint32_t n = code_index_define(tool_workspace_index(a->workspace), subject, &places);
    base_buf text = {0};
    int rc = 0;
    const code_place *p = NULL;
    for (uint32_t i = 0; i < n && !p; i++)
        if (agent__is_code_place(&places[i])) p = &places[i];
    if (p && !tool_workspace_read(a->workspace, p->path, NEWTEST_MAX_FILE, &text, NULL) &&
        p->to <= text.len && p->to - p->from <= MAX_SUBJECT) {
        size_t from = p->from;
        while (from && text.data[from - 1] != '\n') from--;
        rc = agent__append_lines(a,
            &(agent_lines){p->path, subject, &text, from, p->to, p->line, p->line_end}, "\n\n", request, err);
    }
    code_places_free(places, n);
    base_buf_free(&text);
    return rc;
}
