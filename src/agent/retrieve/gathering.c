/* What is gathered for the front of a request (contract: gathering.h). */
#include "agent/retrieve/gathering.h"

#include <stdlib.h>
#include <string.h>

#include "agent/call/prompt.h"
#include "agent/retrieve/retrieve.h"
#include "agent/sequence/sequence.h"
#include "agent/session/tell.h"
#include "agent/words/request_words.h"
#include "base/hash.h"
#include "base/mem.h"

static void excerpt_free(gathering_excerpt *e)
{
    base_buf_free(&e->text);
    free(e->path);
    free(e->name);
    free(e->why);
}

static bool is_shown(const agent *a, const char *path, uint32_t line, uint32_t line_end)
{
    for (size_t i = 0; i < a->transcript.n_segments; i++) {
        const agent_segment *p = &a->transcript.segments[i];
        if (!p->stale && p->path && !strcmp(p->path, path) && p->line <= line && p->line_end >= line_end &&
            !agent__is_aside(a, p->from, p->to))
            return true;
    }
    return false;
}

bool gathering_has(const gathering *g, const char *path, uint32_t line, uint32_t line_end)
{
    for (size_t i = 0; i < g->n; i++) {
        const gathering_excerpt *e = &g->excerpts[i];
        if (strcmp(e->path, path) || e->line > line_end || e->line_end < line) continue;
        uint32_t from = e->line > line ? e->line : line, to = e->line_end < line_end ? e->line_end : line_end;
        if ((to - from + 1) * 4 >= (line_end - line + 1) * 3) return true; /* the same, with its comment */
    }
    return is_shown(g->a, path, line, line_end);
}

int agent__append_plain(agent *a, const char *text, const char *label, base_err *err)
{
    agent_text t = {.origin = KV_ORIGIN_CONTEXT, .text = text, .n = strlen(text), .label = label};
    return agent__append(a, &t, NULL, err);
}

size_t gathering_fitting_lines(const agent *a, const char *text, size_t n, uint32_t tokens, uint32_t *lines)
{
    size_t fits = 0;
    uint32_t used = 0;
    *lines = 0;
    for (size_t at = 0; at < n;) {
        const char *newline = memchr(text + at, '\n', n - at);
        size_t end = newline ? (size_t)(newline - text) + 1 : n;
        used += agent__count(a, text + at, end - at);
        if (used > tokens) break;
        fits = at = end;
        ++*lines;
    }
    return fits;
}

void gathering_add_passage(gathering *g, const gathering_passage *p, const char *why)
{
    agent *a = g->a;
    const char *text = p->text;
    size_t n = p->n;
    uint32_t line_end = p->line_end;
    if (!n || gathering_has(g, p->path, p->line, line_end)) return;
    uint32_t tokens = agent__count(a, text, n) + GATHERING_EXCERPT_TOKENS;
    if (tokens > g->left) {
        uint32_t lines;
        n = gathering_fitting_lines(a, text, n, g->left > 24 ? g->left - 24 : 0, &lines);
        tokens = g->left;
        if (!lines || agent__count(a, text, n) < GATHERING_LEAST_TOKENS) return;
        line_end = p->line + lines - 1;
    }
    gathering_excerpt e = {.path = base_xstrdup(p->path),
        .name = base_xstrdup(p->name),
        .why = base_xstrdup(why),
        .line = p->line,
        .line_end = line_end,
        .tokens = tokens};
    memcpy(e.version, p->version, sizeof e.version);
    if (!g->n) base_buf_puts(&e.text, agent_prompt_excerpts);
    agent_prompt_excerpt_head(p->path, p->line, line_end, p->name, &e.text);
    e.source_from = e.text.len;
    base_buf_add(&e.text, text, n);
    base_buf_puts(&e.text, text[n - 1] == '\n' ? "\n" : "\n\n");
    base_grow(&g->excerpts, &g->cap, g->n + 1, sizeof *g->excerpts);
    g->excerpts[g->n++] = e;
    g->left -= tokens < g->left ? tokens : g->left;
}

static agent_excerpt_row row_of(const gathering_excerpt *e)
{
    return (agent_excerpt_row){e->path, e->line, e->line_end, e->name, e->why, e->tokens};
}

/*
 * The names of what stands above, in the order of their worth: a small model takes its answer from what it
 * read last, and these put every definition equally near to the question.
 */
static int append_names(gathering *g, base_err *err)
{
    base_buf text = {0};
    uint32_t n = 0;
    for (size_t i = 0; i < g->n; i++) {
        const gathering_excerpt *e = &g->excerpts[i];
        if (!e->name || !*e->name) continue;
        base_buf_printf(&text, "%s`%s` in %s", n++ ? ", " : "Definitions: ", e->name, e->path);
    }
    base_buf_puts(&text, "\n\n");
    int rc = n > 1 ? agent__append_plain(g->a, text.data, "names", err) : 0;
    base_buf_free(&text);
    return rc;
}

bool agent__speaks_of_change(const char *request)
{
    static const char *const words[] = {"add", "change", "convert", "correct", "create", "delete", "edit",
        "fix", "implement", "improve", "insert", "make", "modify", "move", "optimize", "refactor", "remove",
        "rename", "repair", "replace", "rewrite", "simplify", "update", "write", NULL};
    return agent__has_any_word(request, words);
}

bool agent__may_rewrite(const agent *a, const char *request)
{
    if (a->settings.mode == AGENT_MODE_PLAN) return false;
    if (a->fix.wanted || !(strchr(request, '?') || agent__has_word(request, "explain") ||
                             agent__has_word(request, "describe")))
        return true;
    return agent__speaks_of_change(request);
}

int gathering_append(gathering *g, base_err *err)
{
    agent *a = g->a;
    agent_excerpt_row *items = base_xcalloc(g->n_lists + g->n + 1, sizeof *items);
    size_t n_items = 0;
    uint32_t expected = agent__count(a, g->request, strlen(g->request));
    if (g->callers.len) expected += agent__count(a, g->callers.data, g->callers.len);
    for (size_t i = 0; i < g->n_lists; i++) items[n_items++] = row_of(&g->lists[i]);
    for (size_t i = 0; i < g->n; i++) {
        items[n_items++] = row_of(&g->excerpts[i]);
        expected += agent__count(a, g->excerpts[i].text.data, g->excerpts[i].text.len);
    }
    if (n_items)
        agent__emit(a, &(agent_event){.type = AGENT_EVENT_context,
                           .context = {.turn = a->turn, .items = {items, n_items}}});
    free(items);
    a->has_excerpts = g->n > 0;
    agent__expect(a, expected);
    const bool whole = agent__may_rewrite(a, g->request);
    int rc = 0;
    for (size_t i = 0; i < g->n; i++) {
        gathering_excerpt *e = &g->excerpts[i];
        agent_text t = {.origin = KV_ORIGIN_CONTEXT,
            .text = e->text.data,
            .n = e->text.len,
            .label = e->name,
            .path = e->path,
            .version = e->version,
            .line = e->line,
            .line_end = e->line_end,
            .bulk = expected,
            .whole = whole,
            .structure = true,
            .source_from = e->source_from,
            .words = g->request};
        if (!rc) rc = agent__append(a, &t, NULL, err);
        if (!rc) tool_workspace_mark_shown(a->workspace, e->path, e->version);
    }
    if (!rc && g->callers.len) /* the names of the excerpts beside it would be taken for callers too */
        rc = agent__append_plain(a, g->callers.data, "callers", err);
    else if (!rc && !a->fix.wanted)
        rc = append_names(g, err);
    base_buf_free(&g->callers);
    for (size_t i = 0; i < g->n_lists; i++) excerpt_free(&g->lists[i]);
    for (size_t i = 0; i < g->n; i++) excerpt_free(&g->excerpts[i]);
    free(g->excerpts);
    free(g->described);
    return rc;
}

uint32_t agent__count_lines(const char *text, size_t n)
{
    uint32_t lines = 0;
    for (size_t i = 0; i < n; i++) lines += text[i] == '\n';
    return lines + (n && text[n - 1] != '\n');
}

void gathering_add_range(
    gathering *g, const char *path, uint32_t from, uint32_t to, const char *name, const char *why)
{
    if (agent__why_stays(g->a, path)) return;
    base_buf text = {0};
    if (!tool_workspace_read(g->a->workspace, path, GATHERING_MAX_FILE, &text, NULL) && text.len) {
        char version[65];
        base_sha256_hex(text.data, text.len, version);
        if (to > text.len) to = (uint32_t)text.len;
        while (from > 0 && from <= to && text.data[from - 1] != '\n') from--; /* whole lines */
        while (to < text.len && to > from && text.data[to - 1] != '\n') to++;
        uint32_t line = agent__count_lines(text.data, from) + 1;
        if (from < to)
            gathering_add_passage(g,
                &(gathering_passage){.path = path,
                    .version = version,
                    .text = text.data + from,
                    .n = to - from,
                    .line = line,
                    .line_end = line + agent__count_lines(text.data + from, to - from) - 1,
                    .name = name},
                why);
    }
    base_buf_free(&text);
}
