/* Texts -> tokens of another vocabulary, aligned by bytes (contract: translate.h). */
#include "whatif/translate.h"

#include <stdlib.h>
#include <string.h>

#include "agent/words/token_map.h"
#include "base/mem.h"

/* A text whose tokens stand at `from` in the record and at `at` here. */
typedef struct stretch {
    uint32_t from, n, at;
    agent_token_map recorded, here; /* bytes behind each token */
} stretch;

typedef struct translating {
    const whatif_schedule *s;
    const whatif_engine *engine;
    whatif_schedule *to;
    stretch *stretches;
    size_t n_stretches, cap_stretches;
    uint32_t n; /* tokens here, up to here */
    base_err *err;
} translating;

static void forget_stretch(translating *t)
{
    stretch *last = &t->stretches[--t->n_stretches];
    free(last->recorded.end);
    free(last->here.end);
}

static agent_token_map map_here(const whatif_engine *e, const agent_logged_run *r)
{
    agent_token_map map = {base_xcalloc(r->n + 1, sizeof *map.end), r->n};
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        size_t n = 0;
        if (!e->piece(e->user, r->ids[i], &n)) n = 0;
        map.end[i] = bytes += (uint32_t)n;
    }
    return map;
}

/* The text of a step and the bytes behind each of its tokens; false: the log does not have it. */
static bool read_text(const whatif_step *step, base_buf *text, agent_token_map *map)
{
    agent_event e;
    agent_event_doc *doc = NULL;
    uint32_t bytes = 0;
    *map = (agent_token_map){base_xcalloc(step->text.n + 1, sizeof *map->end), step->text.n};
    if (step->kind == WHATIF_ANSWER) {
        base_buf_add(text, step->said.data ? step->said.data : "", step->said.len);
        memcpy(map->end, step->said_ends, step->text.n * sizeof *map->end);
        return true;
    }
    if (!step->json || agent_event_read(step->json, strlen(step->json), &e, &doc, NULL)) return false;
    const bool has_text = e.append.text && e.append.lens.n == step->text.n;
    if (has_text) base_buf_puts(text, e.append.text);
    for (uint32_t i = 0; has_text && i < step->text.n; i++)
        map->end[i] = bytes += e.append.lens.rows[i].n > 0 ? (uint32_t)e.append.lens.rows[i].n : 0;
    agent_event_doc_free(doc);
    return has_text;
}

static uint32_t byte_at(const agent_token_map *m, uint32_t token)
{
    if (!token || !m->n) return 0;
    return m->end[(token < m->n ? token : m->n) - 1];
}

/* Tokens [from, to) of a text in the record as tokens here; false: nothing of them is left. */
static bool find_tokens(const stretch *s, uint32_t from, uint32_t to, uint32_t *ret_from, uint32_t *ret_to)
{
    const uint32_t a = byte_at(&s->recorded, from), b = byte_at(&s->recorded, to);
    if (from >= to || a >= b || !s->here.n) return false;
    *ret_from = agent__token_at(&s->here, a);
    *ret_to = agent__token_at(&s->here, b - 1) + 1;
    return true;
}

static void add_places(const agent_logged_run *from, const stretch *where, agent_logged_run *to)
{
    uint32_t a, b;
    for (size_t i = 0; i < from->n_queries; i++) {
        if (!find_tokens(where, from->queries[i], from->queries[i] + 1, &a, &b)) continue;
        if (to->n_queries && to->queries[to->n_queries - 1] >= b - 1) continue;
        base_grow(&to->queries, &to->cap_queries, to->n_queries + 1, sizeof *to->queries);
        to->queries[to->n_queries++] = b - 1;
    }
    for (size_t i = 0; i < from->n_spans; i++) {
        if (!find_tokens(where, from->spans[i].from, from->spans[i].to, &a, &b)) continue;
        base_grow(&to->spans, &to->cap_spans, to->n_spans + 1, sizeof *to->spans);
        to->spans[to->n_spans] = from->spans[i];
        to->spans[to->n_spans].from = a;
        to->spans[to->n_spans++].to = b;
    }
}

/* "-user+assistant": the roles that end and begin. */
static bool read_label(const char *label, int *ret_end, int *ret_begin)
{
    static const char *const words[] = {"system", "user", "assistant", "tool", "tools"};
    *ret_end = WHATIF_NO_MESSAGE;
    *ret_begin = WHATIF_NO_MESSAGE;
    if (!label || (*label != '-' && *label != '+')) return false;
    for (const char *at = label; *at; at += 1 + strcspn(at + 1, "-+"))
        for (int role = 0; role <= MODEL_ROLE_TOOLS; role++)
            if (strcspn(at + 1, "-+") == strlen(words[role]) &&
                !strncmp(at + 1, words[role], strlen(words[role])))
                *(*at == '-' ? ret_end : ret_begin) = role;
    return *ret_end >= 0 || *ret_begin >= 0;
}

static int encode(translating *t, const whatif_step *from, const base_buf *text, model_ids *ids)
{
    int end, begin;
    if (from->text.origin != KV_ORIGIN_SCAFFOLD) {
        t->engine->encode(t->engine->user, text->data ? text->data : "", text->len, ids);
        return 0;
    }
    if (!read_label(from->label, &end, &begin))
        return base_fail(t->err, BASE_E_FORMAT,
            "the log of session %s does not say which messages "
            "begin and end: another vocabulary cannot read it",
            t->s->id);
    t->engine->scaffold(t->engine->user, !t->n && end < 0 ? WHATIF_START : end, begin, ids);
    return 0;
}

static int translate_text(translating *t, const whatif_step *from, whatif_step *to)
{
    base_buf text = {0};
    model_ids ids = {0};
    agent_token_map recorded;
    int rc = read_text(from, &text, &recorded)
                 ? encode(t, from, &text, &ids)
                 : base_fail(t->err, BASE_E_FORMAT,
                       "the log of session %s has no texts: another vocabulary cannot read it", t->s->id);
    to->text = (agent_logged_run){.origin = from->text.origin, .turn = from->text.turn, .from = t->n};
    to->label = from->label ? base_xstrdup(from->label) : NULL;
    for (size_t i = 0; i < ids.n && !rc; i++) agent_logged_add_id(&to->text, ids.ids[i]);
    base_grow(&t->stretches, &t->cap_stretches, t->n_stretches + 1, sizeof *t->stretches);
    stretch *where = &t->stretches[t->n_stretches++];
    *where = (stretch){from->text.from, from->text.n, t->n, recorded, map_here(t->engine, &to->text)};
    add_places(&from->text, where, &to->text);
    if (from->kind == WHATIF_ANSWER) {
        to->seqs = base_xcalloc(ids.n + 1, sizeof *to->seqs);
        for (size_t i = 0; i < ids.n; i++) to->seqs[i] = from->seq;
    }
    t->n += to->text.n;
    t->to->n_tokens += to->text.n;
    base_buf_free(&text);
    model_ids_free(&ids);
    return rc;
}

static const stretch *find_stretch(const translating *t, uint32_t token)
{
    for (size_t i = t->n_stretches; i-- > 0;)
        if (token >= t->stretches[i].from && token - t->stretches[i].from < t->stretches[i].n)
            return &t->stretches[i];
    return NULL;
}

static void translate_range(translating *t, whatif_step *to)
{
    const uint32_t from = to->from, last = to->to ? to->to - 1 : 0;
    const stretch *a = find_stretch(t, from), *b = find_stretch(t, last);
    uint32_t x = 0, y = 0, unused;
    to->from = to->to = 0;
    if (!a || !b || !find_tokens(a, from - a->from, a->n, &x, &unused) ||
        !find_tokens(b, 0, last - b->from + 1, &unused, &y))
        return;
    to->from = a->at + x;
    to->to = b->at + y;
}

static void translate_rewind(translating *t, whatif_step *to)
{
    while (t->n_stretches && t->stretches[t->n_stretches - 1].from >= to->from) {
        t->n = t->stretches[t->n_stretches - 1].at;
        forget_stretch(t);
    }
    stretch *last = t->n_stretches ? &t->stretches[t->n_stretches - 1] : NULL;
    if (last &&
        last->from + last->n > to->from) { /* into a text, whose last token here may go over that place */
        const uint32_t bytes = byte_at(&last->recorded, to->from - last->from);
        uint32_t n = 0;
        while (n < last->here.n && last->here.end[n] <= bytes) n++;
        last->n = last->recorded.n = to->from - last->from;
        last->here.n = n;
        t->n = last->at + n;
    }
    to->from = t->n;
}

static int translate_step(translating *t, const whatif_step *from)
{
    whatif_schedule *s = t->to;
    base_grow(&s->steps, &s->cap_steps, s->n_steps + 1, sizeof *s->steps);
    whatif_step *to = &s->steps[s->n_steps++];
    *to = (whatif_step){.kind = from->kind,
        .turn = from->turn,
        .seq = from->seq,
        .world = from->world,
        .from = from->from,
        .to = from->to,
        .cause = from->cause,
        .action = from->action,
        .limit = from->limit};
    if (from->kind == WHATIF_TEXT || from->kind == WHATIF_ANSWER) return translate_text(t, from, to);
    if (from->kind == WHATIF_REPAIR || from->kind == WHATIF_ORDER) translate_range(t, to);
    if (from->kind == WHATIF_REWIND) translate_rewind(t, to);
    return 0;
}

int whatif_schedule_translate(
    whatif_schedule **ret, const whatif_schedule *s, const whatif_engine *e, base_err *err)
{
    translating t = {.s = s, .engine = e, .to = base_xcalloc(1, sizeof *t.to), .err = err};
    int rc = 0;
    t.to->id = base_xstrdup(s->id);
    t.to->n_turns = s->n_turns;
    t.to->max_tokens = s->max_tokens;
    for (size_t i = 0; i < s->n_steps && !rc; i++) rc = translate_step(&t, &s->steps[i]);
    while (t.n_stretches) forget_stretch(&t);
    free(t.stretches);
    if (rc)
        whatif_schedule_free(t.to);
    else
        *ret = t.to;
    return rc;
}
