/*
 * "Explain this diff", "review my changes", "what changed since v1.2": what git knows of it goes in front of
 * the request, by libgit2 (tool_git.c), as much as a result may have; the model has to see what it speaks of.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/retrieve/retrieve.h"
#include "agent/sequence/sequence.h"
#include "agent/session/tell.h"
#include "base/mem.h"

/* The word behind "since", without what ends a sentence; the caller frees; NULL: there is none. */
static char *since_of(const char *request)
{
    const char *p = strcasestr(request, "since ");
    if (!p) return NULL;
    p += strlen("since ");
    static const char *const fillers[] = {"the tag ", "tag ", "commit ", "the ", "release "};
    for (size_t i = 0; i < sizeof fillers / sizeof *fillers; i++)
        if (!strncasecmp(p, fillers[i], strlen(fillers[i]))) p += strlen(fillers[i]);
    if (*p == '`') p++;
    size_t n = strcspn(p, " \t\n`,;:?!");
    while (n && p[n - 1] == '.') n--;
    return n ? base_xstrndup(p, n) : NULL;
}

/* Which looks at git a request asks for. */
typedef struct look {
    const char *op;
    char *rev; /* owned; NULL: none */
} look;

static uint32_t looks_for(const char *request, look ret[2])
{
    static const char *const verbs[] = {"explain", "review", "summari", "describe", "what changed",
        "what has changed", "what is in", "look at", "check"};
    static const char *const objects[] = {"diff", "my changes", "the changes", "these changes",
        "what i changed", "uncommitted", "working tree"};
    bool asks = false, names = false;
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) asks |= strcasestr(request, verbs[i]) != NULL;
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++)
        names |= strcasestr(request, objects[i]) != NULL;
    bool is_history = strcasestr(request, "changed since") || strcasestr(request, "changes since");
    char *since = is_history ? since_of(request) : NULL;
    if (since) {
        base_buf range = {0};
        base_buf_printf(&range, "%s..HEAD", since);
        ret[0] = (look){"log", base_buf_take(&range)};
        ret[1] = (look){"diff", since};
        return 2;
    }
    if (!asks || !names) return 0;
    ret[0] = (look){"diff", NULL};
    return 1;
}

bool agent__asks_about_changes(const char *request)
{
    look looks[2];
    uint32_t n = looks_for(request, looks);
    for (uint32_t i = 0; i < n; i++) free(looks[i].rev);
    return n > 0;
}

/* What git shows, as one segment in front of the request; what git cannot is told the person. */
static int append_look(agent *a, const look *l, base_err *err)
{
    const tool_entry *git = tool_find("git");
    base_json_doc *arguments = NULL;
    base_buf json = {0}, text = {0};
    tool_preview none = {0};
    tool_result result = {.exit_code = -1};
    base_buf_printf(&json, "{\"op\":\"%s\"", l->op);
    if (l->rev) {
        base_buf_puts(&json, ",\"rev\":");
        base_json_put_str(&json, l->rev, strlen(l->rev));
    }
    base_buf_putc(&json, '}');
    tool_limits limits = {.result_bytes = agent__room_bytes(a), .cancel = a->cancel};
    int rc = base_json_parse(json.data, json.len, &arguments, err);
    tool_call call = {
        .name = "git", .arguments = arguments ? base_json_root(arguments) : NULL, .request = a->request};
    if (!rc) rc = git->run(a->workspace, &call, &limits, &none, &result, err);
    if (!rc && result.status != TOOL_OK) {
        agent__notice(a, "git %s%s%s: %s", l->op, l->rev ? " " : "", l->rev ? l->rev : "",
            result.text.data ? result.text.data : "nothing");
    } else if (!rc) {
        base_buf_printf(&text, "git %s%s%s:\n", l->op, l->rev ? " " : "", l->rev ? l->rev : "");
        agent__put_headed(a, result.text.data ? result.text.data : "", result.text.len, &text);
        base_buf_puts(&text, "\n\n");
        base_buf label = {0};
        base_buf_printf(&label, "git %s", l->op);
        agent_text t = {.origin = KV_ORIGIN_TOOL, .text = text.data, .n = text.len, .label = label.data};
        rc = agent__append(a, &t, NULL, err);
        base_buf_free(&label);
    }
    base_json_free(arguments);
    base_buf_free(&json);
    base_buf_free(&text);
    tool_result_free(&result);
    return rc;
}

int agent__append_changes(agent *a, const char *request, base_err *err)
{
    look looks[2];
    uint32_t n = looks_for(request, looks);
    int rc = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!rc) rc = append_look(a, &looks[i], err);
        free(looks[i].rev);
    }
    return rc;
}
