/*
 * A definition in a fenced block without a call, as a call to rewrite it.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/turn/turn.h"
#include "base/mem.h"
#include "code/places.h"

static bool is_shown_file(const agent *a, const char *path)
{
    for (size_t i = 0; i < a->transcript.n_segments; i++)
        if (a->transcript.segments[i].path && !strcmp(a->transcript.segments[i].path, path)) return true;
    return false;
}

/* The one file shown this session that defines `name`; NULL: none or several. */
static char *only_shown_place(const agent *a, const char *name)
{
    code_place *places = NULL;
    uint32_t n = code_index_define(tool_workspace_index(a->workspace), name, &places);
    char *path = NULL;
    bool one = true;
    for (uint32_t i = 0; i < n; i++) {
        if (places[i].is_declaration || !is_shown_file(a, places[i].path)) continue;
        one = one && !path;
        if (!path) path = base_xstrdup(places[i].path);
    }
    code_places_free(places, n);
    if (!one) {
        free(path);
        path = NULL;
    }
    return path;
}

/* Where a definition that the tree lacks is to stand: a file that the request names, else the first shown. */
static char *place_for_new(const agent *a, const char *name)
{
    static const char between[] = " \t\n\"'`(),;:";
    if (code_index_is_defined(tool_workspace_index(a->workspace), name)) return NULL;
    for (const char *p = a->request; p && *p;) {
        p += strspn(p, between);
        size_t n = strcspn(p, between);
        while (n && strchr(".?!", p[n - 1])) n--;
        char *word = base_xstrndup(p, n), *path = NULL;
        if (strchr(word, '.')) path = code_index_path(tool_workspace_index(a->workspace), word);
        free(word);
        if (path) return path;
        p += n + strspn(p + n, ".?!");
    }
    for (size_t i = 0; i < a->transcript.n_segments; i++) {
        const agent_segment *segment = &a->transcript.segments[i];
        if (segment->turn != a->turn || !segment->path || segment->stale) continue;
        if (code_path_is_test(segment->path) == a->asked.test) return base_xstrdup(segment->path);
    }
    return NULL;
}

/*
 * Small models often answer with the corrected definition in a fenced block and no call. When exactly one
 * file shown this session defines it, and its text differs from what the block says, that is offered as a
 * rewrite (and approved like one).
 */
bool agent__offer_rewrite(agent *a, const base_buf *text, agent_call *call)
{
    agent_fence f;
    bool offered = false;
    if (a->info.strong || !(a->test.command || (a->asked.change && !a->asked.n_changed)))
        return false; /* a question's answer quotes code */
    for (size_t at = 0; !offered && text->len && agent_fence_find(text->data, text->len, at, &f);
         at = f.end) {
        char *language = base_xstrndup(f.language.ptr, f.language.len);
        base_buf name = {0};
        base_buf_printf(&name, "answer.%s", !strcmp(language, "python") ? "py" : *language ? language : "py");
        code_file *file =
            code_parse(tool_workspace_grammars(a->workspace), name.data, text->data + f.from, f.to - f.from);
        const code_definition *d = file->n_definitions && !file->n_errors ? &file->definitions[0] : NULL;
        char *path = d && f.closed && d->body_to > d->body_from ? only_shown_place(a, d->name) : NULL;
        if (d && f.closed && !path && a->asked.change && d->body_to > d->body_from)
            path = place_for_new(a, d->name);
        if (path) {
            base_buf json = {0};
            base_buf_puts(&json, "{\"path\":");
            base_json_put_str(&json, path, strlen(path));
            base_buf_puts(&json, ",\"name\":");
            base_json_put_str(&json, d->name, strlen(d->name));
            base_buf_putc(&json, '}');
            *call =
                (agent_call){.name = base_xstrdup("rewrite"), .form = "fence", .from = f.open, .to = f.end};
            offered = base_json_parse(json.data, json.len, &call->arguments, NULL) == 0;
            call->payload = base_xstrndup(text->data + f.from, f.to - f.from);
            call->payload_n = f.to - f.from;
            base_buf_free(&json);
        }
        free(path);
        code_file_free(file);
        base_buf_free(&name);
        free(language);
    }
    return offered;
}
