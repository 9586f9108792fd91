/*
 * Text into the session. A text becomes tokens; where its lines start, which of its bytes are signatures or
 * calls, and which words say what it asks for are mapped from bytes to tokens and handed to the engine with
 * it. Everything that entered is remembered as a segment and told as `append` and `span` events. Content never
 * becomes a control token.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "agent/call/prompt.h"
#include "agent/sequence/marks.h"
#include "agent/sequence/sequence.h"
#include "agent/session/tell.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/utf8.h"

enum { LONG_TEXT = 128 }; /* tokens from which on what one of them takes is no accident */

/* --- into the session ----------------------------------------------------------------------------------- */

/* What the engine was told with the tokens: whoever executes the log again has to tell it the same. */
static char *describe_segment(const kv_segment *g, uint32_t of)
{
    base_buf out = {0};
    if (!g->n_queries && !g->bulk && !g->whole && !of) return NULL;
    base_buf_puts(&out, "{\"queries\":[");
    for (uint32_t i = 0; i < g->n_queries; i++) base_buf_printf(&out, "%s%u", i ? "," : "", g->queries[i]);
    base_buf_puts(&out, "]");
    if (g->bulk) base_buf_printf(&out, ",\"bulk\":%u", g->bulk);
    if (g->whole) base_buf_puts(&out, ",\"whole\":true");
    if (of) base_buf_printf(&out, ",\"of\":%u", of);
    base_buf_puts(&out, "}");
    return base_buf_take(&out);
}

/* n of the segment's n_all ids: fewer where a cancel ended it. */
static void emit_append(agent *a, const agent_text *t, const kv_segment *g, uint32_t from, const int32_t *ids,
    uint32_t n, uint32_t n_all)
{
    base_buf text = {0};
    agent_id_row *id_rows = base_xcalloc(n + 1, sizeof *id_rows);
    agent_length_row *lens = base_xcalloc(n + 1, sizeof *lens);
    char *segment = describe_segment(g, n < n_all ? n_all : 0);
    const uint32_t computed = a->engine->session ? kv_session_lanes(a->engine->session, from + n - 1) : 0;
    for (uint32_t i = 0; i < n; i++) {
        size_t len = 0;
        const char *piece = a->engine->ops->piece(a->engine, ids[i], &len);
        id_rows[i].id = ids[i];
        lens[i].n = piece ? (int64_t)len : 0;
        if (piece) base_buf_add(&text, piece, len);
    }
    agent__emit(a, &(agent_event){.type = AGENT_EVENT_append,
                       .append = {.turn = a->turn,
                           .from = from,
                           .n = n,
                           .origin = kv_origin_word(t->origin),
                           .label = t->label,
                           .path = t->path,
                           .line = t->line,
                           .line_end = t->line_end,
                           .version = t->version,
                           .text = text.data ? text.data : "",
                           .ids = {id_rows, n},
                           .lens = {lens, n},
                           .lanes = computed,
                           .segment = segment}});
    free(segment);
    free(id_rows);
    free(lens);
    base_buf_free(&text);
}

void agent__add_shown(agent *a, size_t index, const tool_source *part, uint32_t line_end)
{
    uint32_t n, first = a->transcript.segments[index].from, count = a->transcript.segments[index].to - first;
    const int32_t *ids = a->engine->ops->ids(a->engine, &n);
    if (part->from >= part->to || first + count > n || !count) return;
    agent_token_map m = agent__map_tokens(a, ids + first, count);
    agent_text t = {.origin = a->transcript.segments[index].origin,
        .path = part->path,
        .version = part->version,
        .line = part->line,
        .line_end = line_end};
    agent__add_segment(
        a, &t, first + agent__token_at(&m, part->from), first + agent__token_at(&m, part->to - 1) + 1);
    free(m.end);
}

static void tell_what(void *user, const char *what)
{
    agent__notice(user, "%s, before the first rows leave the cache (some seconds)", what);
}

/* Hands ids to the engine; on cancel what was finished stays and is told. */
static int append_ids(agent *a, const agent_text *t, const kv_segment *segment, const int32_t *ids,
    uint32_t n, size_t *ret_index, base_err *err)
{
    uint32_t from = agent__n_tokens(a);
    if (a->engine->ops->prepare) a->engine->ops->prepare(a->engine, n, tell_what, a);
    a->telling.holding = true;
    uint64_t start = base_clock_ns();
    int rc = a->engine->ops->append(a->engine, segment, ids, n, err);
    const uint64_t ns = base_clock_ns() - start;
    a->ledger.sums.prefill_ns += ns;
    uint32_t done = agent__n_tokens(a) - from;
    if (done > n) done = n;
    /* The fixed prompt may have been found computed. */
    if (done >= LONG_TEXT && t->origin != KV_ORIGIN_SYSTEM) a->ledger.token_ns = ns / done;
    if (a->ledger.sums.expected) a->ledger.sums.waited += done;
    if (done) {
        emit_append(a, t, segment, from, ids, done, n);
        size_t index = agent__add_segment(a, t, from, from + done);
        if (ret_index) *ret_index = index;
    }
    for (uint32_t i = 0; i < segment->n_spans; i++) {
        const kv_span *s = &segment->spans[i];
        if (s->to > done) continue;
        agent__emit(a, &(agent_event){.type = AGENT_EVENT_span,
                           .span = {.from = from + s->from,
                               .to = from + s->to,
                               .reason = kv_reason_word((kv_reason)s->reason),
                               .weight = (double)s->weight,
                               .marks = s->marks,
                               .flow = s->n_flow,
                               .dependence = s->n_dependence}});
    }
    agent__release_held(a);
    return rc;
}

/* Does a text come back as it is wherever it is shown? Behind a NUL byte nothing would be. */
static bool is_showable(const char *text, size_t n)
{
    return base_utf8_valid(text, n) && !(n && memchr(text, 0, n));
}

static char *valid_text(const char *text, size_t n, size_t *ret_n)
{
    base_buf out = {0};
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        size_t used = base_utf8_decode(text + i, n - i, &cp);
        char bytes[4];
        base_buf_add(&out, bytes, base_utf8_encode(cp ? cp : AGENT_FOR_NUL, bytes));
        i += used;
    }
    *ret_n = out.len;
    return base_buf_take(&out);
}

int agent__append_answer(agent *a, const int32_t *ids, uint32_t n, base_err *err)
{
    uint32_t from = agent__n_tokens(a);
    a->telling.holding = true;
    int rc = a->engine->ops->append(
        a->engine, &(kv_segment){.origin = KV_ORIGIN_CALL, .turn = a->turn}, ids, n, err);
    uint32_t done = agent__n_tokens(a) - from;
    base_buf text = {0};
    size_t told = 0;
    for (uint32_t i = 0; i < done && i < n; i++) {
        size_t len = 0;
        const char *piece = agent__piece(a, ids[i], &len);
        if (piece) base_buf_add(&text, piece, len);
        size_t whole = text.data ? base_utf8_whole(text.data + told, text.len - told) : 0;
        char *now = base_xstrndup(text.data ? text.data + told : "", whole);
        told += whole;
        agent__emit(a,
            &(agent_event){.type = AGENT_EVENT_token,
                .token = {
                    .id = ids[i], .index = from + i, .text = now, .origin = kv_origin_word(KV_ORIGIN_CALL)}});
        free(now);
    }
    base_buf_free(&text);
    agent__release_held(a);
    return rc;
}

static int add_mark(const agent *a, const char *name, size_t n, model_ids *ids, base_err *err)
{
    char *mark = base_xstrndup(name, n);
    const int32_t id = a->engine->ops->mark ? a->engine->ops->mark(a->engine, mark) : -1;
    int rc = 0;
    if (id >= 0)
        model_ids_add(ids, id);
    else
        rc = base_fail(
            err, BASE_E_FORMAT, "the model has no token %s, which its calls are written with", mark);
    free(mark);
    return rc;
}

int agent__encode_marked(
    const agent *a, const char *text, size_t n, model_ids *ids, base_buf *ret, base_err *err)
{
    int rc = 0;
    bool is_mark = false;
    for (size_t at = 0; !rc && at < n; is_mark = !is_mark) {
        const char *end = memchr(text + at, AGENT_PROMPT_MARK, n - at);
        const size_t len = end ? (size_t)(end - text) - at : n - at;
        if (is_mark)
            rc = add_mark(a, text + at, len, ids, err);
        else if (len)
            rc = a->engine->ops->encode(a->engine, text + at, len, ids, err);
        if (!is_mark && ret) base_buf_add(ret, text + at, len);
        at += len + 1;
    }
    return rc;
}

int agent__append(agent *a, const agent_text *t, size_t *ret_index, base_err *err)
{
    size_t n = t->n;
    char *clean = is_showable(t->text, t->n) ? NULL : valid_text(t->text, t->n, &n);
    const char *text = clean ? clean : t->text;
    model_ids ids = {0};
    base_buf words = {0};
    int rc = t->has_marks ? agent__encode_marked(a, text, n, &ids, &words, err)
                          : a->engine->ops->encode(a->engine, text, n, &ids, err);
    if (t->has_marks) { /* what follows is about its words */
        free(clean);
        n = words.len;
        text = clean = base_buf_take(&words);
    }
    if (rc || !ids.n) {
        free(clean);
        model_ids_free(&ids);
        return rc;
    }
    agent_token_map m = agent__map_tokens(a, ids.ids, (uint32_t)ids.n);
    kv_span *spans = base_xcalloc(AGENT_MAX_SPANS, sizeof *spans);
    uint32_t ends[AGENT_MAX_QUERIES], queries[AGENT_MAX_QUERIES], n_lines;
    /* The fixed prompt asks for nothing, and a segment with queries is never taken from the prefix file. */
    bool asks = t->origin != KV_ORIGIN_SYSTEM && t->origin != KV_ORIGIN_INSTRUCTIONS;
    uint32_t n_ends = asks ? agent__pick_queries(text, n, ends) : 0, n_queries = 0;
    for (uint32_t i = 0; i < n_ends; i++) {
        uint32_t token = agent__token_at(&m, ends[i] - 1);
        if (!n_queries || queries[n_queries - 1] < token) queries[n_queries++] = token;
    }
    uint32_t *lines = agent__line_starts(&m, text, n, &n_lines);
    kv_segment segment = {.origin = t->origin,
        .turn = a->turn,
        .bulk = t->bulk,
        .whole = t->whole,
        .spans = spans,
        .n_spans = agent__find_spans(a, t, text, n, &m, spans),
        .lines = lines,
        .n_lines = n_lines,
        .queries = n_queries ? queries : NULL,
        .n_queries = n_queries};
    rc = append_ids(a, t, &segment, ids.ids, (uint32_t)ids.n, ret_index, err);
    free(m.end);
    free(spans);
    free(lines);
    free(clean);
    model_ids_free(&ids);
    return rc;
}

static int append_scaffold(agent *a, const model_ids *ids, const char *label, base_err *err)
{
    if (!ids->n) return 0;
    agent_text t = {.origin = KV_ORIGIN_SCAFFOLD, .label = label};
    kv_segment segment = {.origin = KV_ORIGIN_SCAFFOLD, .turn = a->turn};
    return append_ids(a, &t, &segment, ids->ids, (uint32_t)ids->n, NULL, err);
}

static int scaffold(agent *a, engine_scaffold what, int role, model_ids *out, base_err *err)
{
    return a->engine->ops->scaffold(a->engine, what, (model_role)role, out, err);
}

int agent__open_message(agent *a, int role, base_err *err)
{
    model_ids ids = {0};
    base_buf label = {0};
    uint32_t n = 0;
    const int32_t *all = a->engine->ops->ids(a->engine, &n);
    int rc = 0;
    if (a->transcript.open_role >= 0) {
        rc = scaffold(a, ENGINE_END, a->transcript.open_role, &ids, err);
        /* The model ends its own answer: only what the template writes behind that is missing. */
        if (a->transcript.open_role == MODEL_ROLE_ASSISTANT && ids.n && n && all[n - 1] == ids.ids[0]) {
            memmove(ids.ids, ids.ids + 1, (ids.n - 1) * sizeof *ids.ids);
            ids.n--;
        }
        base_buf_printf(&label, "-%s", agent__role_words[a->transcript.open_role]);
    } else if (n == 0) {
        rc = scaffold(a, ENGINE_START, 0, &ids, err);
    }
    if (role >= 0) {
        if (!rc) rc = scaffold(a, ENGINE_BEGIN, role, &ids, err);
        base_buf_printf(&label, "+%s", agent__role_words[role]);
    }
    if (!rc) rc = append_scaffold(a, &ids, label.data, err);
    if (!rc) a->transcript.open_role = role;
    base_buf_free(&label);
    model_ids_free(&ids);
    return rc;
}

void agent__put_text(const agent *a, const int32_t *ids, uint32_t n, base_buf *out)
{
    for (uint32_t i = 0; i < n; i++) {
        size_t len = 0;
        const char *piece = a->engine->ops->piece(a->engine, ids[i], &len);
        if (piece) base_buf_add(out, piece, len);
    }
}

int agent__append_logged(agent *a, const kv_segment *logged, const int32_t *ids, uint32_t n, base_err *err)
{
    kv_segment segment = *logged;
    uint32_t *lines = NULL;
    /* Only what came as text was told where its lines start. */
    if (segment.origin != KV_ORIGIN_SCAFFOLD && !kv_origin_is_written(segment.origin)) {
        base_buf text = {0};
        agent__put_text(a, ids, n, &text);
        agent_token_map m = agent__map_tokens(a, ids, n);
        segment.lines = lines =
            agent__line_starts(&m, text.data ? text.data : "", text.len, &segment.n_lines);
        free(m.end);
        base_buf_free(&text);
    }
    int rc = a->engine->ops->append(a->engine, &segment, ids, n, err);
    free(lines);
    return rc;
}
