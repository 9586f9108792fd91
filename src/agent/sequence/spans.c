/*
 * Bytes of a text to tokens of it: where its lines start, and which tokens are structure (signatures, calls,
 * what the request names).
 */
#include <stdlib.h>
#include <string.h>

#include "agent/sequence/marks.h"
#include "agent/sequence/sequence.h"
#include "agent/words/request_words.h"
#include "base/hash.h"
#include "base/mem.h"

/* --- bytes to tokens ------------------------------------------------------------------------------------ */

agent_token_map agent__map_tokens(const agent *a, const int32_t *ids, uint32_t n)
{
    agent_token_map m = {base_xcalloc(n ? n : 1, sizeof *m.end), n};
    uint32_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        size_t len = 0;
        if (!a->engine->ops->piece(a->engine, ids[i], &len)) len = 0;
        m.end[i] = at += (uint32_t)len;
    }
    return m;
}

uint32_t agent__token_at(const agent_token_map *m, uint32_t byte)
{
    uint32_t low = 0, high = m->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (m->end[middle] > byte)
            high = middle;
        else
            low = middle + 1;
    }
    return low < m->n ? low : m->n ? m->n - 1 : 0;
}

uint32_t *agent__line_starts(const agent_token_map *m, const char *text, size_t n, uint32_t *ret_n)
{
    uint32_t *lines = NULL;
    size_t cap = 0, count = 0;
    for (size_t at = 0; at < n && m->n;) {
        uint32_t token = agent__token_at(m, (uint32_t)at);
        if (!count || lines[count - 1] < token) {
            base_grow(&lines, &cap, count + 1, sizeof *lines);
            lines[count++] = token;
        }
        const char *newline = memchr(text + at, '\n', n - at);
        at = newline ? (size_t)(newline - text) + 1 : n;
    }
    *ret_n = (uint32_t)count;
    return lines;
}

/* --- structure ------------------------------------------------------------------------------------------ */

/* The spans of a segment's tokens, as they are found. */
typedef struct found_spans {
    const agent_token_map *map;
    kv_span *spans; /* [AGENT_MAX_SPANS] */
    uint32_t n;
} found_spans;

/* A file's text (of which the segment shows a part), parsed. */
typedef struct parsed {
    const char *text;
    size_t n;
    code_file *file;
    code_graph *graph;
} parsed;

static parsed parse(agent *a, const char *path, const char *text, size_t n)
{
    parsed p = {.text = text, .n = n};
    p.file = code_parse_graph(tool_workspace_grammars(a->workspace), path, text, n, &p.graph);
    return p;
}

static void parsed_free(parsed *p)
{
    code_graph_free(p->graph);
    code_file_free(p->file);
}

/* The part of a file's bytes [from, to) that the segment shows, as a span like `one`. */
static void add_span(found_spans *found, const tool_source *s, uint32_t from, uint32_t to, kv_span one)
{
    const agent_token_map *m = found->map;
    const uint32_t shown_to = s->file_from + (s->to - s->from);
    if (from < s->file_from) from = s->file_from;
    if (to > shown_to) to = shown_to;
    if (found->n == AGENT_MAX_SPANS || from >= to || !m->n) return;
    one.from = agent__token_at(m, s->from + (from - s->file_from));
    one.to = agent__token_at(m, s->from + (to - s->file_from) - 1) + 1;
    found->spans[found->n++] = one;
}

/*
 * What the segment shows of a parsed file: definitions that the request names, and anchors with their marks.
 */
static void add_structure(const agent_text *t, const tool_source *s, const parsed *p, found_spans *found)
{
    const code_file *f = p->file;
    code_piece *pieces = NULL;
    for (uint32_t i = 0; t->words && i < f->n_definitions; i++)
        if (agent__names_word(t->words, f->definitions[i].name))
            add_span(found, s, f->definitions[i].from, f->definitions[i].to,
                (kv_span){.reason = KV_REASON_SYMBOL, .marks = KV_MARK_SYMBOL});
    const uint32_t n = code_structure(
        f, p->graph, p->text, p->n, s->file_from, s->file_from + (s->to - s->from), t->words, &pieces);
    for (uint32_t i = 0; i < n; i++)
        add_span(found, s, pieces[i].from, pieces[i].to,
            (kv_span){.reason = agent_reason_of[pieces[i].kind],
                .marks = pieces[i].marks,
                .n_flow = pieces[i].n_flow,
                .n_dependence = pieces[i].n_dependence});
    free(pieces);
}

/* The structure of what one file shows in this text, from the whole file: an excerpt alone parses worse. */
static void add_file_spans(agent *a, const agent_text *t, uint32_t first, size_t n, found_spans *found)
{
    enum { MAX_SHOWN = 1 << 20 };
    const tool_source *s = &t->sources[first];
    base_buf file = {0};
    char version[65] = "";
    if (!tool_workspace_read(a->workspace, s->path, MAX_SHOWN, &file, NULL) && file.len)
        base_sha256_hex(file.data, file.len, version);
    if (!strcmp(version, s->version)) { /* else it changed meanwhile: its offsets would lie */
        parsed p = parse(a, s->path, file.data, file.len);
        for (uint32_t k = first; k < t->n_sources; k++) {
            s = &t->sources[k];
            if (strcmp(s->path, t->sources[first].path) || s->to > n || s->from >= s->to) continue;
            add_structure(t, s, &p, found);
        }
        parsed_free(&p);
    }
    base_buf_free(&file);
}

static void find_source_spans(agent *a, const agent_text *t, size_t n, found_spans *found)
{
    for (uint32_t i = 0; i < t->n_sources; i++) {
        bool again = false;
        for (uint32_t k = 0; k < i && !again; k++) again = !strcmp(t->sources[k].path, t->sources[i].path);
        if (!again) add_file_spans(a, t, i, n, found);
    }
}

uint32_t agent__find_spans(
    agent *a, const agent_text *t, const char *text, size_t n, const agent_token_map *m, kv_span *spans)
{
    found_spans found = {.map = m, .spans = spans};
    uint32_t base = (uint32_t)t->source_from;
    if (t->n_sources && n == t->n) find_source_spans(a, t, n, &found);
    if (found.n) return found.n;
    if (!t->structure || !t->path || t->source_from > n) return 0;
    parsed p = parse(a, t->path, text + base, n - base);
    const tool_source whole = {.from = base, .to = (uint32_t)n};
    add_structure(t, &whole, &p, &found);
    parsed_free(&p);
    return found.n;
}
