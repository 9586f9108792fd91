/*
 * What of a conversation may leave (contract: cut_parts.h): files in front of old requests, exchanges of a call and its
 * result, whole turns, and what failed or was only thought.
 */
#include "agent/sequence/cut_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/words/rank_texts.h"
#include "base/mem.h"

enum { KEPT_EXCHANGES = 2 }; /* the newest of this turn */
/* Chosen by hand, not measured: how likely an old text is asked for again. */
static const double least_value = .05, asked_value = .5, recent_value = 1;

void agent_cut_parts_add(agent_cut_parts *c, uint32_t from, uint32_t to, kv_reason reason, base_buf *name)
{
    base_grow(&c->all, &c->cap, c->n + 1, sizeof *c->all);
    c->all[c->n++] = (agent_cut_part){{from, to, 0}, reason, base_buf_take(name)};
}

static bool opens_answer(const agent_segment *p)
{
    const char *plus = p->origin == KV_ORIGIN_SCAFFOLD && p->label ? strrchr(p->label, '+') : NULL;
    return plus && !strcmp(plus + 1, agent__role_words[MODEL_ROLE_ASSISTANT]);
}

/* An answer that calls, and the result behind it, up to where the next answer begins. */
static void add_exchange(const agent *a, size_t first, size_t last, agent_cut_parts *c)
{
    base_buf name = {0};
    bool stale = true, named = false;
    for (size_t i = first + 1; i < last; i++) {
        const agent_segment *p = &a->transcript.segments[i];
        if (p->origin != KV_ORIGIN_TOOL || named) continue;
        agent__put_segment_name(p, &name);
        stale = p->stale;
        named = true;
    }
    if (!named) base_buf_printf(&name, "an answer of turn %u", a->transcript.segments[first].turn);
    agent_cut_parts_add(c, a->transcript.segments[first].to, a->transcript.segments[last].to,
        named && stale ? KV_REASON_STALE : KV_REASON_BUDGET, &name);
}

/* Files and output in front of the request, and exchanges; of the present turn the old ones of these alone. */
static void add_parts(const agent *a, uint32_t turn, agent_cut_parts *c)
{
    size_t opened[64], n_opened = 0; /* segments that open an answer: the newest of them */
    uint32_t done = 0;
    for (size_t i = 0; i < a->transcript.n_segments; i++) {
        const agent_segment *p = &a->transcript.segments[i];
        if (p->turn != turn || p->from < done || p->to <= p->from)
            continue; /* a part of one that was there */
        done = p->to;
        if (opens_answer(p)) {
            if (n_opened == sizeof opened / sizeof *opened) {
                add_exchange(a, opened[0], opened[1], c);
                memmove(opened, opened + 1, --n_opened * sizeof *opened);
            }
            opened[n_opened++] = i;
        } else if (!n_opened && turn < a->turn &&
                   (p->origin == KV_ORIGIN_CONTEXT || p->origin == KV_ORIGIN_TOOL)) {
            base_buf name = {0};
            agent__put_segment_name(p, &name);
            agent_cut_parts_add(c, p->from, p->to, p->stale ? KV_REASON_STALE : KV_REASON_BUDGET, &name);
        }
    }
    const size_t kept = turn == a->turn ? KEPT_EXCHANGES : 0;
    for (size_t i = 0; i + 1 + kept < n_opened; i++) add_exchange(a, opened[i], opened[i + 1], c);
}

/* Is no message open in front of this token? */
static bool is_between_messages(const agent *a, uint32_t token)
{
    if (token == agent__n_tokens(a)) return a->transcript.open_role < 0;
    for (size_t i = 0; i < a->transcript.n_segments; i++) {
        const agent_segment *p = &a->transcript.segments[i];
        if (p->from == token) return p->origin == KV_ORIGIN_SCAFFOLD && p->label && p->label[0] == '+';
    }
    return false;
}

/* "turn 3 (src/a.c:1-20)" */
static void put_turn(const agent *a, uint32_t turn, base_buf *out)
{
    base_buf_printf(out, "turn %u", turn);
    for (size_t i = 0; i < a->transcript.n_segments; i++) {
        const agent_segment *p = &a->transcript.segments[i];
        if (p->turn != turn || !p->path) continue;
        base_buf_puts(out, " (");
        agent__put_segment_name(p, out);
        base_buf_putc(out, ')');
        return;
    }
}

static void add_turns(const agent *a, agent_cut_parts *c)
{
    for (uint32_t turn = 1; turn <= a->turn; turn++) {
        const uint32_t from = a->transcript.turn_starts[turn],
                       to = turn < a->turn ? a->transcript.turn_starts[turn + 1] : from;
        if (from < to && is_between_messages(a, from) && is_between_messages(a, to)) {
            base_buf name = {0};
            put_turn(a, turn, &name);
            agent_cut_parts_add(c, from, to, KV_REASON_BUDGET, &name);
        }
        add_parts(a, turn, c);
    }
    for (size_t i = 0; i < a->aside.n_loose; i++) {
        const agent_loose *l = &a->aside.loose[i];
        base_buf name = {0};
        base_buf_puts(&name, l->reason == KV_REASON_THOUGHT ? "a thought" : "a failed attempt");
        agent_cut_parts_add(c, l->from, l->to, l->reason, &name);
    }
}

static int by_place(const void *a, const void *b)
{
    const agent_cut_part *x = a, *y = b;
    if (x->unit.from != y->unit.from) return x->unit.from < y->unit.from ? -1 : 1;
    return x->unit.to < y->unit.to ? 1 : x->unit.to > y->unit.to ? -1 : 0; /* the outer one first */
}

static uint32_t turn_of(const agent *a, uint32_t token)
{
    uint32_t turn = a->turn;
    while (turn > 1 && a->transcript.turn_starts[turn] > token) turn--;
    return turn;
}

/* The chance that a text is asked for again: by what the newest message asks for, and how long ago it came. */
static void value(const agent *a, const char *message, agent_cut_parts *c)
{
    const char **texts = base_xcalloc(c->n + 1, sizeof *texts);
    base_buf *kept = base_xcalloc(c->n + 1, sizeof *kept);
    agent_rank *ranks = base_xcalloc(c->n + 1, sizeof *ranks);
    for (size_t i = 0; i < c->n; i++) {
        agent__put_words(a, c->all[i].unit.from, c->all[i].unit.to, &kept[i]);
        texts[i] = kept[i].data ? kept[i].data : "";
    }
    agent_rank_texts(message, texts, (uint32_t)c->n, ranks);
    for (size_t i = 0; i < c->n; i++) {
        agent_cut_part *one = &c->all[i];
        const uint32_t age = a->turn - turn_of(a, one->unit.from);
        one->unit.value = one->reason != KV_REASON_BUDGET ? 0
                                                          : least_value + asked_value * ranks[i].score +
                                                                recent_value * exp2(-(double)age);
    }
    /* What holds others goes behind them. */
    for (size_t i = c->n; i-- > 0;)
        for (size_t k = i + 1; k < c->n && c->all[k].unit.from < c->all[i].unit.to; k++)
            if (c->all[k].unit.to <= c->all[i].unit.to && c->all[k].unit.value >= c->all[i].unit.value)
                c->all[i].unit.value = c->all[k].unit.value + .001;
    for (size_t i = 0; i < c->n; i++) base_buf_free(&kept[i]);
    free(kept);
    free(texts);
    free(ranks);
}

void agent__find_cut_parts(const agent *a, const char *message, agent_cut_parts *c)
{
    add_turns(a, c);
    if (c->n) qsort(c->all, c->n, sizeof *c->all, by_place);
    value(a, message, c);
}

const agent_cut_part *agent_cut_parts_holding(const agent_cut_parts *c, uint32_t token)
{
    const agent_cut_part *best = NULL;
    for (size_t i = 0; i < c->n; i++) {
        const agent_cut_unit *u = &c->all[i].unit;
        if (u->from > token || u->to <= token) continue;
        if (!best || u->to - u->from <= best->unit.to - best->unit.from) best = &c->all[i];
    }
    return best;
}

void agent_cut_parts_free(agent_cut_parts *c)
{
    for (size_t i = 0; i < c->n; i++) free(c->all[i].name);
    free(c->all);
}
