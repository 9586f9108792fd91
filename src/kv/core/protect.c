/*
 * Hard protection: pins, sinks, the fixed prompt and instructions, the newest rows, the current request
 * (docs/kv.md, Words). Each token gets the first class that fits; a barred token has none unless it is
 * pinned.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kv/core/state.h"

kv_reason kv__hard_reason(kv_hard h)
{
    static const kv_reason reasons[KV_N_HARD] = {
        [KV_HARD_PIN] = KV_REASON_PIN,
        [KV_HARD_SINK] = KV_REASON_SINK,
        [KV_HARD_SYSTEM] = KV_REASON_SYSTEM,
        [KV_HARD_WINDOW] = KV_REASON_WINDOW,
        [KV_HARD_KEPT] = KV_REASON_MANUAL,
        [KV_HARD_REQUEST] = KV_REASON_REQUEST,
    };
    return reasons[h];
}

uint32_t kv__protect(const kv_session *s, uint8_t *hard)
{
    const kv_parameters *p = &s->parameters;
    memset(hard, KV_HARD_NO, s->n);
    size_t newest = s->n_segments; /* the message or result that asked last */
    while (newest && s->segments[newest - 1].origin != KV_ORIGIN_USER &&
           s->segments[newest - 1].origin != KV_ORIGIN_TOOL)
        newest--;
    if (p->hard > 0)
        for (size_t i = 0; i < s->n_segments; i++) {
            const kv_stored_segment *part = &s->segments[i];
            kv_hard class = KV_HARD_NO;
            if (part->origin == KV_ORIGIN_SYSTEM || part->origin == KV_ORIGIN_INSTRUCTIONS)
                class = KV_HARD_SYSTEM;
            if (part->origin == KV_ORIGIN_USER && part->turn == s->turn) class = KV_HARD_REQUEST;
            if (p->hard > 1 && i + 1 == newest) class = KV_HARD_REQUEST;
            memset(hard + part->from, class, part->to - part->from);
        }
    const uint32_t window = (uint32_t)p->window, sinks = (uint32_t)p->sinks;
    for (uint32_t i = s->n > window ? s->n - window : 0; i < s->n; i++)
        if (hard[i] != KV_HARD_SYSTEM) hard[i] = KV_HARD_WINDOW;
    for (uint32_t i = 0; i < sinks && i < s->n; i++) hard[i] = KV_HARD_SINK;
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        if (kv_bits_get(s->barred, i)) hard[i] = KV_HARD_NO;
        if (kv_bits_get(s->pinned, i)) hard[i] = KV_HARD_PIN;
        n += hard[i] != KV_HARD_NO;
    }
    return n;
}

uint32_t kv__count_hard(const kv_session *s)
{
    uint8_t *hard = base_xmalloc(s->n + 1);
    const uint32_t n = kv__protect(s, hard);
    free(hard);
    return n;
}
