/* See bench/sessions/tally.h. */
#include "bench/sessions/tally.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kv/lab/lab.h"

enum { LEAST_QUOTE = 3, CALL_MOST = 160 };

static void add_text(const model *m, const char *text, model_ids *out)
{
    model_tokenizer_encode(model_get_tokenizer(m), text, strlen(text), false, out);
}

/* --- what a call quotes --- */

static void mark_quote(
    const model *with, const int32_t *ids, uint32_t n, const char *s, size_t len, bool *quoted)
{
    base_buf text = {0};
    uint32_t *starts = base_xmalloc(((size_t)n + 1) * sizeof *starts);
    for (uint32_t i = 0; i < n; i++) {
        size_t n_piece = 0;
        const char *piece = model_tokenizer_piece(model_get_tokenizer(with), ids[i], &n_piece);
        starts[i] = (uint32_t)text.len;
        if (piece) base_buf_add(&text, piece, n_piece);
    }
    starts[n] = (uint32_t)text.len;
    for (size_t at = 0; len >= LEAST_QUOTE && at + len <= text.len;) {
        const char *hit = memmem(text.data + at, text.len - at, s, len);
        if (!hit) break;
        const size_t from = (size_t)(hit - text.data);
        for (uint32_t t = 0; t < n; t++)
            if (starts[t] < from + len && starts[t + 1] > from) quoted[t] = true;
        at = from + len;
    }
    base_buf_free(&text);
    free(starts);
}

static void mark_quotes(const model *with, const int32_t *ids, uint32_t n, const base_json *v, bool *quoted)
{
    if (v->type == BASE_JSON_STRING) mark_quote(with, ids, n, v->string, v->string_len, quoted);
    for (const base_json *child = v->first; child; child = child->next)
        mark_quotes(with, ids, n, child, quoted);
}

void tally_recall(const model *with, const kv_session *s, const transcript_message *m, tally *t)
{
    kv_stats stats;
    uint32_t n = 0, n_quoted = 0;
    double active = 0;
    const int32_t *ids = kv_session_ids(s, &n);
    kv_session_get_stats(s, &stats);
    bool *quoted = base_xcalloc((size_t)n + 1, sizeof *quoted);
    uint32_t *lanes = base_xcalloc((size_t)n + 1, sizeof *lanes);
    if (m->arguments) mark_quotes(with, ids, n, m->arguments, quoted);
    kv_session_active_lanes(s, lanes);
    for (uint32_t i = 0; i < n; i++) {
        if (!quoted[i]) continue;
        n_quoted++;
        active += (double)lanes[i] / stats.n_lanes;
    }
    if (n_quoted) {
        t->recall += active / n_quoted;
        t->n_quoting++;
    }
    free(quoted);
    free(lanes);
}

/* --- what a session computes, and which call it writes --- */

static uint32_t first_hole(const kv_session *s)
{
    kv_stats stats;
    uint32_t n = 0, i = 0;
    kv_session_ids(s, &n);
    kv_session_get_stats(s, &stats);
    uint32_t *lanes = base_xcalloc((size_t)n + 1, sizeof *lanes);
    kv_session_active_lanes(s, lanes);
    while (i < n && lanes[i] == stats.n_lanes) i++;
    free(lanes);
    return i;
}

int tally_append(kv_session *s, kv_origin origin, uint32_t turn, const model_ids *ids, uint32_t from,
    uint32_t n, float *logits, tally *t, base_err *err)
{
    const kv_segment g = {.origin = origin, .turn = turn};
    kv_stats stats;
    if (!n) return 0;
    int r = kv_session_append(s, &g, ids->ids + from, n, logits, NULL, err);
    kv_session_get_stats(s, &stats);
    if (!r && t->rounded) r = kv_session_round(s, stats.n_tokens - n, err);
    t->computed += n;
    t->raw += (uint64_t)n * stats.n_tokens;
    t->effective += (uint64_t)n * stats.active;
    if (stats.active_max > t->live) t->live = stats.active_max;
    if (stats.n_tokens > t->peak) t->peak = stats.n_tokens;
    return r;
}

/* lead: lowered to what the best token has over the next one, in nats. */
static int32_t best_of(uint32_t n_vocab, const float *logits, double *lead)
{
    uint32_t best = 0;
    float next = -INFINITY;
    for (uint32_t v = 1; v < n_vocab; v++)
        if (logits[v] > logits[best]) {
            next = logits[best];
            best = v;
        } else if (logits[v] > next) {
            next = logits[v];
        }
    if ((double)logits[best] - (double)next < *lead) *lead = (double)logits[best] - (double)next;
    return (int32_t)best;
}

/* Is a call's text a whole one by now? It becomes compact then. */
static bool is_closed(base_buf *text)
{
    base_json_doc *doc = NULL;
    size_t used = 0;
    if (base_json_parse_prefix(text->data, text->len, &used, &doc, NULL)) return false;
    base_buf_clear(text);
    base_json_put(text, base_json_root(doc));
    base_json_free(doc);
    return true;
}

int tally_write_call(model *with, const kv_session *whole, uint32_t turn, bool rounded, base_buf *call,
    double *ret_lead, base_err *err)
{
    static const char opening[] = "<tool_call>\n", name[] = "{\"name\": \"";
    const model_info *info = model_get_info(with);
    float *logits = base_xmalloc(info->n_vocab * sizeof *logits);
    tally aside = {.rounded = rounded};
    model_ids ids = {0};
    kv_session *s = NULL;
    add_text(with, opening, &ids);
    add_text(with, name, &ids);
    base_buf_puts(call, name);
    const size_t n_begin = ids.n;
    int r = kv_session_fork(whole, &s, NULL, err);
    if (!r) r = tally_append(s, KV_ORIGIN_CALL, turn, &ids, 0, (uint32_t)n_begin, logits, &aside, err);
    while (!r && ids.n < n_begin + CALL_MOST) {
        size_t n_piece = 0;
        const int32_t best = best_of(info->n_vocab, logits, ret_lead);
        const char *piece = model_tokenizer_piece(model_get_tokenizer(with), best, &n_piece);
        model_ids_add(&ids, best);
        if (piece) base_buf_add(call, piece, n_piece);
        if (!piece || is_closed(call)) break;
        r = tally_append(s, KV_ORIGIN_CALL, turn, &ids, (uint32_t)ids.n - 1, 1, logits, &aside, err);
    }
    kv_session_free(s);
    model_ids_free(&ids);
    free(logits);
    return r;
}

static bool same_text(const base_buf *a, const base_buf *b, size_t n_a, size_t n_b)
{
    return n_a == n_b && !memcmp(a->data, b->data, n_a);
}

static bool is_same(const base_json *a, const base_json *b)
{
    if (a->type != b->type) return false;
    switch (a->type) {
    case BASE_JSON_BOOL: return a->boolean == b->boolean;
    case BASE_JSON_NUMBER: return a->number == b->number;
    case BASE_JSON_STRING: return !strcmp(a->string, b->string);
    case BASE_JSON_ARRAY: {
        const base_json *y = b->first;
        for (const base_json *x = a->first; x && a->n == b->n; x = x->next, y = y->next)
            if (!is_same(x, y)) return false;
        return a->n == b->n;
    }
    case BASE_JSON_OBJECT:
        for (const base_json *x = a->first; x && a->n == b->n; x = x->next) {
            const base_json *y = base_json_get(b, x->key);
            if (!y || !is_same(x, y)) return false;
        }
        return a->n == b->n;
    default: return true;
    }
}

bool tally_is_recorded(const base_buf *call, const transcript_message *m)
{
    base_json_doc *doc = NULL;
    if (!m->called || !m->arguments || base_json_parse(call->data, call->len, &doc, NULL)) return false;
    const base_json *arguments = base_json_get(base_json_root(doc), "arguments");
    const bool same = !strcmp(base_json_str(base_json_root(doc), "name", ""), m->called) && arguments &&
                      is_same(arguments, m->arguments);
    base_json_free(doc);
    return same;
}

void tally_call(
    const base_buf *call, double lead, const base_buf *expected, const transcript_message *m, tally *t)
{
    const bool equal = same_text(call, expected, call->len, expected->len);
    if (t->n_calls < TALLY_EACH) t->each[t->n_calls] = equal ? '1' : '0';
    t->n_equal += equal;
    t->n_right += tally_is_recorded(call, m);
    t->n_named += same_text(call, expected, strcspn(call->data, ","), strcspn(expected->data, ","));
    base_buf_printf(&t->leads, "%c%.3f", t->n_calls ? ',' : '[', lead);
    base_buf_putc(&t->written, t->n_calls++ ? ',' : '[');
    base_json_put_str(&t->written, call->data, call->len);
}

int tally_compare_call(model *with, const kv_session *s, uint32_t turn, const base_buf *expected,
    const transcript_message *m, tally *t, base_err *err)
{
    base_buf call = {0};
    double lead = INFINITY;
    const int r = tally_write_call(with, s, turn, t->rounded, &call, &lead, err);
    if (!r) tally_call(&call, lead, expected, m, t);
    base_buf_free(&call);
    return r;
}

void tally_compact(const kv_session *s, tally *t)
{
    uint32_t n = 0;
    kv_session_ids(s, &n);
    for (uint64_t i = first_hole(s); i < n; i++) {
        t->compact++;
        t->raw_compact += i + 1;
        if (i + 1 > t->live_compact) t->live_compact = (uint32_t)i + 1;
    }
}
