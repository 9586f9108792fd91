/* How much of the text's structure is active (docs/kv.md, Structure). Changes nothing. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kv/core/state.h"
#include "kv/session.h"

static const uint16_t kind_marks[KV_STRUCTURE_KINDS] = {
    KV_MARK_CALL, KV_MARK_CONTROL, KV_MARK_RETURN, KV_MARK_ASSIGN, KV_MARK_SIGNATURE, KV_MARK_SYMBOL};
static const char *const kind_words[KV_STRUCTURE_KINDS] = {
    "call", "control", "return", "assign", "signature", "symbol"};

const char *kv_structure_word(uint32_t kind)
{
    return kind < KV_STRUCTURE_KINDS ? kind_words[kind] : "";
}

/* The kind of anchor that a span is of; its marks may hold those of anchors inside, too. */
static uint16_t own_marks(const kv_span *s)
{
    static const struct {
        uint8_t reason;
        uint16_t mark;
    } of[] = {{KV_REASON_CALL, KV_MARK_CALL}, {KV_REASON_CONTROL, KV_MARK_CONTROL},
        {KV_REASON_RETURN, KV_MARK_RETURN}, {KV_REASON_ASSIGN, KV_MARK_ASSIGN},
        {KV_REASON_SIGNATURE, KV_MARK_SIGNATURE}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (s->reason == of[i].reason) return (uint16_t)(of[i].mark | (s->marks & KV_MARK_SYMBOL));
    return 0; /* a whole definition that the request names is no anchor */
}

/* Marks of each token of the segment; how many have any. */
static uint32_t mark_tokens(const kv_stored_segment *part, bool core, uint16_t *marks)
{
    const uint32_t length = part->to - part->from;
    uint32_t n = 0;
    memset(marks, 0, length * sizeof *marks);
    for (uint32_t i = 0; i < part->n_spans; i++) {
        const kv_span *s = &part->spans[i];
        if (!s->marks || (core && !(s->marks & KV_MARK_CORE))) continue;
        for (uint32_t t = s->from; t < s->to && t < length; t++) marks[t] |= own_marks(s);
    }
    for (uint32_t t = 0; t < length; t++) n += marks[t] != 0;
    return n;
}

typedef struct sum {
    double share;
    uint32_t n;
} sum;

static void add(sum *s, uint32_t kept, uint32_t all)
{
    if (!all) return;
    s->share += (double)kept / all;
    s->n++;
}

static double mean_of(const sum *s)
{
    return s->n ? s->share / s->n : NAN;
}

static void count_lane(const kv_session *s, const kv_stored_segment *part, const uint16_t *marks,
    uint32_t n_marked, const uint64_t *bits, sum *share, sum *chance, sum *ceiling, sum *of)
{
    const uint32_t length = part->to - part->from;
    uint32_t kept = 0, kept_marked = 0, kind[KV_STRUCTURE_KINDS] = {0}, kept_kind[KV_STRUCTURE_KINDS] = {0};
    for (uint32_t t = 0; t < length; t++) {
        const bool is_kept = kv_bits_get(bits, part->from + t);
        kept += is_kept;
        kept_marked += is_kept && marks[t];
        for (uint32_t k = 0; k < KV_STRUCTURE_KINDS && marks[t]; k++)
            if (marks[t] & kind_marks[k]) {
                kind[k]++;
                kept_kind[k] += is_kept;
            }
    }
    add(share, kept_marked, n_marked);
    add(chance, kept, length);
    add(ceiling, kept < n_marked ? kept : n_marked, n_marked);
    for (uint32_t k = 0; k < KV_STRUCTURE_KINDS; k++) add(&of[k], kept_kind[k], kind[k]);
}

void kv_session_structure(const kv_session *s, bool core, kv_structure *ret)
{
    sum share = {0}, chance = {0}, ceiling = {0}, of[KV_STRUCTURE_KINDS] = {{0}};
    *ret = (kv_structure){.share = NAN, .chance = NAN, .ceiling = NAN};
    uint16_t *marks = malloc(((size_t)s->n + 1) * sizeof *marks);
    for (size_t i = 0; marks && i < s->n_segments; i++) {
        const kv_stored_segment *part = &s->segments[i];
        const uint32_t n_marked = part->n_spans ? mark_tokens(part, core, marks) : 0;
        if (!n_marked) continue;
        ret->n_tokens += n_marked;
        ret->n_segments++;
        /* Lanes that agree share a list: what one holds, all of them do. */
        for (uint32_t lane = 0; lane < s->n_lanes; lane++)
            if (!kv__window(s, lane))
                count_lane(
                    s, part, marks, n_marked, s->lists.lane[lane]->bits, &share, &chance, &ceiling, of);
    }
    free(marks);
    ret->share = mean_of(&share);
    ret->chance = mean_of(&chance);
    ret->ceiling = mean_of(&ceiling);
    for (uint32_t k = 0; k < KV_STRUCTURE_KINDS; k++) ret->of[k] = mean_of(&of[k]);
}
