/* Who asks: the newest message or result becomes the signal, and the session remembers what it asked. */
#include "kv/core/state.h"

void kv__crop_request(kv_session *s)
{
    const uint32_t most = (uint32_t)s->parameters.w;
    if (s->request.n > most) kv_signal_crop(&s->request, s->request.tokens[s->request.n - most], UINT32_MAX);
}

/* The newest queries are the request's as soon as they are there: the next eviction goes by them. */
static int update_request(
    kv_session *s, kv_origin origin, uint32_t turn, const kv_signal *kept, base_err *err)
{
    if (!kept->n) return 0;
    const bool asks = origin == KV_ORIGIN_USER;
    if (!asks && s->has_request) return 0;
    int rc = kv_signal_copy(&s->request, kept, err);
    if (rc) return rc;
    kv__crop_request(s);
    if (asks) {
        s->has_request = true;
        s->request_turn = turn;
    }
    return 0;
}

/*
 * A whole message or result is there: it is the newest signal, and the session remembers what it asked for.
 */
static int finish_segment(kv_session *s, kv_origin origin, kv_signal *kept, base_err *err)
{
    if (!kept->n || (origin != KV_ORIGIN_USER && origin != KV_ORIGIN_TOOL)) return 0;
    int rc = kv_signal_add(&s->recent, kept->tokens, kept->queries, kept->n, KV_RECENT_QUERIES, err);
    if (rc) return rc;
    kv_memory *memory = kv_memory_add(s->memory, kept, s->n);
    if (!memory) return base_fail(err, BASE_E_NOMEM, "no memory for the session's memory of requests");
    kv_memory_unref(s->memory);
    s->memory = memory;
    return 0;
}

int kv__take_signal(
    kv_session *s, kv_origin origin, uint32_t turn, bool is_whole, kv_signal *kept, base_err *err)
{
    int rc = is_whole ? finish_segment(s, origin, kept, err) : 0;
    return rc ? rc : update_request(s, origin, turn, kept, err);
}

/* What a request names; else nothing is known of it but its end. */
int kv__keep_asked(kv_session *s, const kv_segment *g, uint32_t first, const kv_signal *kept, base_err *err)
{
    uint32_t places[KV_RECENT_QUERIES], n = 0;
    kv_signal named;
    if (g->origin != KV_ORIGIN_USER || !kept->n) return 0;
    for (uint32_t i = 0, q = 0; i < kept->n && n < KV_RECENT_QUERIES; i++) {
        while (q < g->n_queries && first + g->queries[q] < kept->tokens[i]) q++;
        if (q < g->n_queries && first + g->queries[q] == kept->tokens[i]) places[n++] = i;
    }
    for (uint32_t i = kept->n > 8 ? kept->n - 8 : 0; i < kept->n && !g->n_queries; i++) places[n++] = i;
    int rc = kv_signal_pick(kept, places, n, &named, err);
    if (rc) return rc;
    kv_signal_fini(&s->asked);
    s->asked = named;
    return 0;
}

/* At most `most` places of kept queries of what asks: of those named, else an even choice. */
static uint32_t choose_places(const kv_session *s, const kv_ask *ask, uint32_t most, uint32_t *places)
{
    uint32_t n = 0, first = 0, last = s->recent.n;
    while (first < last && s->recent.tokens[first] < ask->from) first++;
    while (last > first && s->recent.tokens[last - 1] >= ask->to) last--;
    uint32_t found[KV_RECENT_QUERIES];
    for (uint32_t i = first, q = 0; i < last; i++) {
        while (q < ask->n_queries && ask->queries[q] < s->recent.tokens[i]) q++;
        if (q < ask->n_queries && ask->queries[q] == s->recent.tokens[i]) found[n++] = i;
    }
    for (uint32_t i = first; i < last && !ask->n_queries; i++) found[n++] = i;
    if (!n)
        for (uint32_t i = first; i < last; i++) found[n++] = i; /* none of those named was kept */
    const uint32_t take = n < most ? n : most;
    for (uint32_t i = 0; i < take; i++) places[i] = found[(uint32_t)((uint64_t)n * (2 * i + 1) / (2 * take))];
    return take;
}

int kv__kept_signal(const kv_session *s, const kv_ask *ask, uint32_t most, kv_signal *ret, base_err *err)
{
    uint32_t places[KV_RECENT_QUERIES];
    const uint32_t n = choose_places(s, ask, most, places);
    kv_signal_init(ret, s->recent.n_layer, s->recent.n_head, s->recent.head_dim);
    return n ? kv_signal_pick(&s->recent, places, n, ret, err) : 0;
}
