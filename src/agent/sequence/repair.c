/*
 * A pause: the newest message asks for evicted rows, and the lines that answer it clearly are said again at its end. Their
 * rows came back already, but the model reads what stands beside the question better than one row among thousands alike
 * (docs/kv.md, Repair). A line may be anybody's text: it is appended as a result is, and holds no control token.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/sequence/sequence.h"
#include "agent/session/tell.h"
#include "agent/words/quote.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/show.h"

/* The newest text that shows tokens [from, to), of a file where it is one's; NULL: none does. */
static const agent_segment *find_source(const agent *a, uint32_t from, uint32_t to)
{
    const agent_segment *found = NULL;
    for (size_t i = 0; i < a->transcript.n_segments; i++) {
        const agent_segment *p = &a->transcript.segments[i];
        if (p->from <= from && p->to >= to && (!found || p->path)) found = p;
    }
    return found;
}

static void tell_quote(agent *a, const kv_quote *q, const base_buf *line)
{
    const agent_segment *source = find_source(a, q->from, q->to);
    base_buf words = {0}, name = {0};
    size_t n = line->len;
    while (n && line->data[n - 1] == '\n') n--;
    base_show(&words, line->data, n, BASE_SHOW_UTF8);
    if (source) agent__put_segment_name(source, &name);
    agent__notice(a,
        "said again, since the request asks for it %.1f times as much as for the first tokens: %s%s%s%s",
        (double)q->times, words.data ? words.data : "", name.len ? " (" : "", name.len ? name.data : "",
        name.len ? ")" : "");
    base_buf_free(&words);
    base_buf_free(&name);
}

static int append_quote(agent *a, const kv_quote *q, const base_buf *line, bool is_first, base_err *err)
{
    base_buf text = {0};
    const agent_segment *source = find_source(a, q->from, q->to);
    char *path = base_xstrdup(source ? source->path : NULL), version[sizeof source->version] = "";
    if (source) memcpy(version, source->version, sizeof version);
    agent__put_quote(line, is_first, &text);
    const agent_text t = {.origin = KV_ORIGIN_CONTEXT,
        .text = text.data,
        .n = text.len,
        .label = "quoted",
        .path = path,
        .version = path ? version : NULL};
    const int rc = agent__append(a, &t, NULL, err);
    if (!rc) tell_quote(a, q, line);
    free(path);
    base_buf_free(&text);
    return rc;
}

static int append_quotes(agent *a, const char *request, const kv_quotes *quotes, base_err *err)
{
    const uint32_t n = agent__n_tokens(a);
    base_buf recent = {0}, lines[KV_MOST_QUOTES] = {{0}};
    bool said[KV_MOST_QUOTES], is_first = true;
    int rc = 0;
    for (uint32_t i = 0; i < quotes->n; i++)
        agent__put_words(a, quotes->lines[i].from, quotes->lines[i].to, &lines[i]);
    agent__put_words(a, n > KV_QUOTE_NEAR ? n - KV_QUOTE_NEAR : 0, n, &recent);
    agent__choose_quotes(request, &recent, lines, quotes->n, said);
    for (uint32_t i = 0; i < quotes->n && !rc; i++) {
        if (!said[i]) continue;
        rc = append_quote(a, &quotes->lines[i], &lines[i], is_first, err);
        is_first = false;
    }
    for (uint32_t i = 0; i < quotes->n; i++) base_buf_free(&lines[i]);
    base_buf_free(&recent);
    return rc;
}

int agent__repair(agent *a, uint32_t from, uint32_t to, base_err *err)
{
    if (from >= to || (!a->engine->session && !agent__is_priced(a))) return 0;
    uint32_t n;
    const int32_t *ids = a->engine->ops->ids(a->engine, &n);
    if (to > n) return 0;
    base_buf text = {0};
    agent__put_text(a, ids + from, to - from, &text);
    if (!a->engine->session) {
        const int rc = agent__hold_budget(a, text.data ? text.data : "", err);
        base_buf_free(&text);
        return rc;
    }
    agent_token_map m = agent__map_tokens(a, ids + from, to - from);
    uint32_t ends[AGENT_MAX_QUERIES], queries[AGENT_MAX_QUERIES], n_queries = 0;
    uint32_t n_ends = agent__pick_queries(text.data ? text.data : "", text.len, ends);
    for (uint32_t i = 0; i < n_ends; i++) {
        uint32_t token = from + agent__token_at(&m, ends[i] - 1);
        if (!n_queries || queries[n_queries - 1] < token) queries[n_queries++] = token;
    }
    const uint64_t start = base_clock_ns();
    kv_quotes quotes = {.n = 0};
    const kv_ask ask = {.from = from,
        .to = to,
        .queries = queries,
        .n_queries = n_queries,
        .quotes = to == n ? &quotes : NULL};
    int rc = kv_session_repair(a->engine->session, &ask, a->cancel, err);
    a->ledger.sums.prefill_ns +=
        base_clock_ns() - start; /* it may compute rows, and who asked waits for that too */
    agent__tell_visits(a);
    free(m.end);
    if (!rc && quotes.n) rc = append_quotes(a, text.data ? text.data : "", &quotes, err);
    base_buf_free(&text);
    return rc;
}
