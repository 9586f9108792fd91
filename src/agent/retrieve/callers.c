/* Lists of who calls or uses what a request asks about (contract: gathering.h). */
#include <stdlib.h>
#include <string.h>

#include "agent/retrieve/gathering.h"
#include "agent/retrieve/retrieve.h"
#include "agent/sequence/sequence.h"
#include "agent/words/callers_question.h"
#include "base/mem.h"

enum { MAX_CALLERS = 24, N_HITS = 8 };
/* Of the best score: what fits a description hardly less is meant as much. */
static const double LEAST_SHARE = 0.7;

/* A function, of which "nobody calls it" says something. */
static bool is_called_by_name(const code_place *places, uint32_t n)
{
    return n && (!strcmp(places[0].what, "function") || !strcmp(places[0].what, "method"));
}

/* A list of callers or uses of the definition p, in front of the request. */
static void add_list(
    gathering *g, const code_place *p, const char *about, const char *why, const base_buf *text)
{
    const uint32_t tokens = agent__count(g->a, text->data, text->len);
    g->lists[g->n_lists++] = (gathering_excerpt){.path = base_xstrdup(p->path),
        .name = base_xstrdup(about),
        .why = base_xstrdup(why),
        .line = p->line,
        .line_end = p->line_end,
        .tokens = tokens};
    base_buf_add(&g->callers, text->data, text->len);
    base_buf_putc(&g->callers, '\n');
    g->left -= tokens < g->left ? tokens : g->left;
}

/*
 * The callers of one symbol, a line each, or that there are none: a small model copies a list where it would miss what
 * stands in five excerpts, and names somebody where nobody calls it.
 */
static void add_callers(gathering *g, const char *name)
{
    const agent *a = g->a;
    code_index *index = tool_workspace_index(a->workspace);
    code_place *places;
    code_caller *callers;
    base_buf text = {0}, about = {0};
    base_buf_printf(&text, "Callers of `%s`, ", name);
    const bool is_told = g->callers.len && strstr(g->callers.data, text.data);
    const uint32_t n_places = code_index_define(index, name, &places),
                   n = code_index_callers(index, name, MAX_CALLERS, &callers),
                   kept = n < MAX_CALLERS ? n : MAX_CALLERS;
    const bool is_partial = tool_workspace_is_partial(a->workspace);
    if (n)
        base_buf_printf(&text, "%s %u of the tree:\n", is_partial ? "at least" : "all", n);
    else
        base_buf_printf(&text, "none: `%s` is called by no function of this tree.\n", name);
    for (uint32_t i = 0; i < kept; i++)
        if (*callers[i].name)
            base_buf_printf(&text, "- `%s` in %s:%u\n", callers[i].name, callers[i].path, callers[i].line);
        else
            base_buf_printf(&text, "- %s:%u, outside of all functions\n", callers[i].path, callers[i].line);
    uint32_t n_lines;
    text.len = gathering_fitting_lines(a, text.data, text.len, g->left, &n_lines);
    const bool is_listed = n ? n_lines > 1 : n_lines && !is_partial && is_called_by_name(places, n_places);
    if (!is_told && n_places && is_listed) {
        if (n && n_lines - 1 < n) base_buf_printf(&text, "- and %u more\n", n - (n_lines - 1));
        base_buf_printf(&about, "%u caller%s of %s", n, n == 1 ? "" : "s", name);
        add_list(g, &places[0], about.data, "the request asks who calls it", &text);
    }
    base_buf_free(&text);
    base_buf_free(&about);
    code_callers_free(callers, kept);
    code_places_free(places, n_places);
}

bool gathering_add_asked_uses(gathering *g)
{
    char *names[AGENT_MAX_ASKED_USES];
    const uint32_t n = agent__find_asked_uses(g->a, g->request, names);
    for (uint32_t i = 0; i < n; i++) {
        base_buf text = {0}, about = {0};
        code_place *places = NULL;
        const uint32_t n_places = code_index_define(tool_workspace_index(g->a->workspace), names[i], &places);
        if (!n_places || !agent__put_uses(g->a, names[i], &text)) {
            add_callers(g, names[i]);
        } else {
            base_buf_printf(&about, "uses of %s", names[i]);
            add_list(g, &places[0], about.data, "the request asks who uses it", &text);
        }
        base_buf_free(&text);
        base_buf_free(&about);
        code_places_free(places, n_places);
    }
    agent__asked_uses_free(names, n);
    return n > 0;
}

/* Who calls the functions that a description fits: the model says which of them is meant. */
static void add_callers_of_described(gathering *g)
{
    code_hits hits = {0};
    code_index_search(tool_workspace_index(g->a->workspace), g->described, N_HITS, &hits);
    uint32_t n = 0;
    for (uint32_t i = 0; i < hits.n && n < GATHERING_MAX_DESCRIBED; i++) {
        const code_hit *h = &hits.hits[i];
        if (!h->name || !*h->name || (strcmp(h->what, "function") != 0 && strcmp(h->what, "method") != 0))
            continue;
        if (h->score < hits.hits[0].score * LEAST_SHARE) break;
        add_callers(g, h->name);
        n++;
    }
    code_hits_free(&hits);
}

void gathering_add_asked_callers(gathering *g)
{
    agent_callers_question q;
    if (!agent_read_callers_question(g->request, &q)) return;
    for (uint32_t i = 0; i < q.n; i++) add_callers(g, q.names[i]);
    if (q.of_it && !g->n_lists && q.described) {
        g->described = base_xstrndup(g->request, q.described);
        add_callers_of_described(g);
    } else if (q.of_it && !g->n_lists && g->a->answered) {
        add_callers(g, g->a->answered);
    }
    agent_callers_question_free(&q);
}
