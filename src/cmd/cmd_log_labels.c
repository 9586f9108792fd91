/*
 * kvist log export --labels ID: what a learned eviction policy would be trained on (IntentKV, section 3.5;
 * docs/papers.md): at every message and tool result, which tokens of the history the arguments of the next
 * five tool calls quote. One JSON line a place; places without a match are left out. The asking message
 * itself and the template's tokens are never positives.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/log.h"
#include "base/mem.h"
#include "cmd/cmd_log.h"

enum { AHEAD = 5, LEAST = 3, MOST = 400 }; /* tool calls; bytes of a quoted string */

/* A decision: the history's length then, and the message or result that it goes by. */
typedef struct place {
    uint32_t turn, from, to; /* tokens [from, to) ask */
    size_t n_calls;          /* tool calls before it */
} place;

typedef struct labels {
    const char *session;
    base_buf text;    /* the bytes of all tokens, one after another */
    uint32_t *starts; /* [n_tokens + 1] where each begins */
    bool *fixed;      /* [n_tokens] template */
    size_t n_tokens, cap_starts, cap_fixed;
    place *places;
    size_t n_places, cap_places;
    char **calls; /* arguments as JSON */
    size_t n_calls, cap_calls;
} labels;

static void add_token(labels *l, const char *bytes, size_t n, bool fixed)
{
    base_grow(&l->starts, &l->cap_starts, l->n_tokens + 2, sizeof *l->starts);
    base_grow(&l->fixed, &l->cap_fixed, l->n_tokens + 1, sizeof *l->fixed);
    l->starts[l->n_tokens] = (uint32_t)l->text.len;
    l->fixed[l->n_tokens++] = fixed;
    if (n) base_buf_add(&l->text, bytes, n);
    l->starts[l->n_tokens] = (uint32_t)l->text.len;
}

static void on_append(labels *l, const agent_event *e)
{
    const char *text = e->append.text ? e->append.text : "",
               *origin = e->append.origin ? e->append.origin : "";
    const size_t n_text = strlen(text);
    const bool fixed = !strcmp(origin, "scaffold") || !strcmp(origin, "system");
    size_t at = 0;
    if (e->append.from != (int64_t)l->n_tokens || e->append.n < 0 || e->append.n > 1 << 24) return;
    for (int64_t i = 0; i < e->append.n; i++) {
        const int64_t length = (size_t)i < e->append.lens.n ? e->append.lens.rows[i].n : 0;
        size_t n = length > 0 ? (size_t)length : 0;
        if (n > n_text - at) n = n_text - at;
        add_token(l, text + at, n, fixed);
        at += n;
    }
    if (strcmp(origin, "user") && strcmp(origin, "tool")) return;
    base_grow(&l->places, &l->cap_places, l->n_places + 1, sizeof *l->places);
    l->places[l->n_places++] = (place){.turn = (uint32_t)e->append.turn,
        .from = (uint32_t)e->append.from,
        .to = (uint32_t)l->n_tokens,
        .n_calls = l->n_calls};
}

/* A rewind takes tokens out of the history; decisions and calls that were made before it stay in the list. */
static void on_rewind(labels *l, int64_t n)
{
    if (n < 0 || n > (int64_t)l->n_tokens) return;
    l->n_tokens = (size_t)n;
    l->text.len = n ? l->starts[n] : 0;
    while (l->n_places && l->places[l->n_places - 1].to > n) l->n_places--;
}

static bool read_event(
    void *user, uint64_t seq, uint32_t turn, const char *json, size_t n, const void *blob, size_t blob_n)
{
    labels *l = user;
    agent_event e;
    agent_event_doc *doc = NULL;
    (void)seq;
    (void)turn;
    (void)blob;
    (void)blob_n;
    if (agent_event_read(json, n, &e, &doc, NULL)) return true;
    if (e.type == AGENT_EVENT_append) on_append(l, &e);
    if (e.type == AGENT_EVENT_token && e.token.index == (int64_t)l->n_tokens)
        add_token(l, e.token.text ? e.token.text : "", e.token.text ? strlen(e.token.text) : 0, false);
    if (e.type == AGENT_EVENT_rewind) on_rewind(l, e.rewind.n);
    if (e.type == AGENT_EVENT_tool_call) {
        base_grow(&l->calls, &l->cap_calls, l->n_calls + 1, sizeof *l->calls);
        l->calls[l->n_calls++] = base_xstrdup(e.tool_call.arguments ? e.tool_call.arguments : "{}");
    }
    agent_event_doc_free(doc);
    return true;
}

/* Marks the tokens below `end` whose bytes a literal occurrence of the string touches. */
static void mark_string(const labels *l, const char *s, size_t n, const place *p, bool *positive)
{
    const size_t end = l->starts[p->from];
    for (size_t at = 0; n >= LEAST && n <= MOST && at + n <= end;) {
        const char *hit = memmem(l->text.data + at, end - at, s, n);
        if (!hit) return;
        const size_t from = (size_t)(hit - l->text.data);
        size_t low = 0, high = p->from; /* the token that byte `from` lies in */
        while (low + 1 < high) {
            const size_t middle = (low + high) / 2;
            *(l->starts[middle] <= from ? &low : &high) = middle;
        }
        for (size_t t = low; t < p->from && l->starts[t] < from + n; t++)
            if (!l->fixed[t] && l->starts[t + 1] > from) positive[t] = true;
        at = from + 1;
    }
}

static void mark_strings(const labels *l, const base_json *v, const place *p, bool *positive)
{
    if (v->type == BASE_JSON_STRING) mark_string(l, v->string, v->string_len, p, positive);
    if (v->type == BASE_JSON_NUMBER) {
        base_buf number = {0};
        base_json_put_num(&number, v->number);
        mark_string(l, number.data, number.len, p, positive);
        base_buf_free(&number);
    }
    for (const base_json *child = v->first; child; child = child->next) mark_strings(l, child, p, positive);
}

static void print_place(const labels *l, const place *p)
{
    bool *positive = base_xcalloc((size_t)p->from + 1, sizeof *positive), any = false;
    base_buf out = {0};
    for (size_t c = p->n_calls; c < l->n_calls && c < p->n_calls + AHEAD; c++) {
        base_json_doc *doc = NULL;
        if (base_json_parse(l->calls[c], strlen(l->calls[c]), &doc, NULL)) continue;
        mark_strings(l, base_json_root(doc), p, positive);
        base_json_free(doc);
    }
    base_buf_puts(&out, "{\"session\":");
    base_json_put_str(&out, l->session, strlen(l->session));
    base_buf_printf(
        &out, ",\"turn\":%u,\"n\":%u,\"query\":[%u,%u],\"positives\":[", p->turn, p->to, p->from, p->to);
    for (uint32_t t = 0; t < p->from; t++) {
        if (!positive[t]) continue;
        uint32_t end = t;
        while (end < p->from && positive[end]) end++;
        base_buf_printf(&out, "%s[%u,%u]", any ? "," : "", t, end);
        any = true;
        t = end;
    }
    base_buf_puts(&out, "]}");
    if (any) puts(out.data);
    base_buf_free(&out);
    free(positive);
}

int cmd_log_labels(agent_log *log, const char *id, base_err *err)
{
    labels l = {.session = id};
    const int r = agent_log_events(log, id, read_event, &l, err);
    for (size_t i = 0; i < l.n_places && !r; i++) print_place(&l, &l.places[i]);
    for (size_t i = 0; i < l.n_calls; i++) free(l.calls[i]);
    base_buf_free(&l.text);
    free(l.starts);
    free(l.fixed);
    free(l.places);
    free(l.calls);
    return r;
}
