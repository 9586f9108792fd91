/* What the tree tells a session beside its requests: the project's instructions, and what changed since it was shown. */
#include <stdlib.h>
#include <string.h>

#include "agent/retrieve/retrieve.h"
#include "agent/sequence/sequence.h"
#include "agent/session/tell.h"
#include "base/mem.h"

enum {
    MAX_INSTRUCTIONS = 3000, /* bytes of AGENTS.md */
    MAX_FILE = 256 << 10,
};

void agent__read_instructions(agent *a, base_buf *ret)
{
    base_buf text = {0};
    base_err why = {0};
    const int failed = tool_workspace_read(a->workspace, "AGENTS.md", MAX_FILE, &text, &why);
    if (failed && failed != BASE_E_NOT_FOUND)
        agent__notice(a, "the project's instructions are not read: %s", why.msg);
    if (!failed && text.len) {
        bool cut = text.len > MAX_INSTRUCTIONS;
        if (cut) {
            text.len = MAX_INSTRUCTIONS;
            while (text.len && text.data[text.len - 1] != '\n') text.len--;
            base_buf_puts(&text, "(the rest of AGENTS.md is left out)\n");
            agent__notice(a, "AGENTS.md is longer than %d bytes: its beginning is used", MAX_INSTRUCTIONS);
        }
        base_buf_puts(ret, "Instructions of this project (AGENTS.md):\n");
        base_buf_add(ret, text.data, text.len);
    }
    base_buf_free(&text);
}

void agent__mark_stale(agent *a, const char *path)
{
    for (size_t i = 0; i < a->transcript.n_segments; i++) {
        agent_segment *p = &a->transcript.segments[i];
        if (p->stale || !p->path || strcmp(p->path, path)) continue;
        p->stale = true;
        base_err err = {0};
        if (agent__put_stale(a, p->from, p->to, &err)) agent__error(a, &err);
    }
}

void agent__notice_changes(agent *a, base_buf *told)
{
    char **changed = NULL;
    base_buf news = {0};
    base_err err = {0};
    const int failed = tool_workspace_refresh(a->workspace, &changed, a->cancel, &err);
    tool_workspace_take_news(a->workspace, &news);
    if (news.len) agent__notice(a, "%.*s", (int)news.len - 1, news.data);
    base_buf_free(&news);
    if (failed) {
        if (err.code != BASE_E_CANCELLED) agent__notice(a, "the tree could not be read again: %s", err.msg);
        return;
    }
    for (size_t i = 0; changed && changed[i]; i++) {
        agent__mark_stale(a, changed[i]);
        agent__notice(a, "%s changed on disk since it was shown: the old text is put aside", changed[i]);
        base_buf_printf(told, "%s changed on disk since it was shown.\n", changed[i]);
        a->made.world++;
        free(changed[i]);
    }
    free(changed);
}
