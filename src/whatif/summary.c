/* Turns -> one sentence (contract: summary.h). */
#include "whatif/summary.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

/* From here on a difference is one that sampling would show too. */
static const double much = .1;

static void take_answer(whatif_summary *s, const agent_event *e)
{
    const bool is_stopped = e->what_if_answer.stopped != NULL, is_other = e->what_if_answer.diff != NULL;
    struct whatif_turn_summary *t = s->n_turns ? &s->turns[s->n_turns - 1] : NULL;
    if (!s->free_from) s->free_from = (uint32_t)e->what_if_answer.turn;
    if (t && t->turn == (uint32_t)e->what_if_answer.turn) {
        t->answers_otherwise = is_other;
        t->answers_same = !is_other && !is_stopped;
    }
    if (!is_stopped) return;
    free(s->stopped);
    s->stopped = base_xstrdup(e->what_if_answer.stopped);
}

void whatif_summary_take(whatif_summary *s, const agent_event *e)
{
    if (e->type == AGENT_EVENT_what_if_answer) {
        take_answer(s, e);
        return;
    }
    base_grow(&s->turns, &s->cap, s->n_turns + 1, sizeof *s->turns);
    s->turns[s->n_turns++] = (struct whatif_turn_summary){.turn = (uint32_t)e->what_if_turn.turn,
        .differs = e->what_if_turn.differ > 0,
        .is_checked = !e->what_if_turn.check,
        .nats = e->what_if_turn.nats};
    s->n_tokens += (uint32_t)e->what_if_turn.tokens;
    s->kl += e->what_if_turn.kl * (double)e->what_if_turn.tokens;
    s->n_bytes += (uint64_t)e->what_if_turn.bytes;
    s->n_sides = (uint32_t)e->what_if_turn.sides.n;
    for (size_t i = 0; i < e->what_if_turn.sides.n && i < 2; i++) {
        s->ms[i] += e->what_if_turn.sides.rows[i].ms;
        s->nll[i] += e->what_if_turn.sides.rows[i].nll * (double)e->what_if_turn.bytes;
    }
}

typedef bool is_meant_fn(const struct whatif_turn_summary *t);

static bool differs(const struct whatif_turn_summary *t)
{
    return t->differs;
}

static bool differs_much(const struct whatif_turn_summary *t)
{
    return t->differs && t->nats > much;
}

static bool is_unlike_record(const struct whatif_turn_summary *t)
{
    return !t->is_checked;
}

/* "turn 3", "turns 3, 5 and 7"; 0: none is meant */
static uint32_t put_turns(const whatif_summary *s, is_meant_fn *is_meant, base_buf *out)
{
    uint32_t n = 0, at = 0;
    for (uint32_t i = 0; i < s->n_turns; i++) n += is_meant(&s->turns[i]);
    for (uint32_t i = 0; i < s->n_turns; i++) {
        if (!is_meant(&s->turns[i])) continue;
        const char *before = at == 0 ? (n > 1 ? "turns " : "turn ") : at + 1 == n ? " and " : ", ";
        base_buf_printf(out, "%s%u", before, s->turns[i].turn);
        at++;
    }
    return n;
}

static void put_time(const whatif_summary *s, base_buf *out)
{
    if (!(s->ms[0] > 0) || !(s->ms[1] > 0)) return;
    const double share = s->ms[1] / s->ms[0] - 1;
    if (fabs(share) < .03)
        base_buf_puts(out, "; as much time");
    else
        base_buf_printf(out, "; %.0f%% %s time", fabs(share) * 100, share < 0 ? "less" : "more");
}

static bool answers_same(const struct whatif_turn_summary *t)
{
    return t->answers_same;
}

static bool answers_otherwise(const struct whatif_turn_summary *t)
{
    return t->answers_otherwise;
}

static void put_free(const whatif_summary *s, base_buf *out)
{
    base_buf turns = {0};
    if (!s->free_from) return;
    base_buf_printf(out, "; by itself from turn %u on it would have answered ", s->free_from);
    const uint32_t n_same = put_turns(s, answers_same, &turns);
    if (n_same) base_buf_printf(out, "%s as recorded", turns.data);
    base_buf_clear(&turns);
    const uint32_t n_other = put_turns(s, answers_otherwise, &turns);
    if (n_other) base_buf_printf(out, "%s%s otherwise", n_same ? " and " : "", turns.data);
    if (!n_same && !n_other) base_buf_puts(out, "nothing that can be compared");
    if (s->stopped) base_buf_printf(out, ", and is not followed to the end (%s)", s->stopped);
    base_buf_free(&turns);
}

void whatif_summary_put(const whatif_summary *s, const char *phrase, base_buf *out)
{
    base_buf turns = {0};
    base_buf_printf(out, "%s ", phrase);
    if (s->n_bytes) {
        const double n = (double)s->n_bytes;
        base_buf_printf(
            out, "the %llu bytes of the answers are expected with ", (unsigned long long)s->n_bytes);
        if (s->n_sides > 1)
            base_buf_printf(out, "%.4f nats a byte instead of %.4f", s->nll[1] / n, s->nll[0] / n);
        else
            base_buf_printf(out, "%.4f nats a byte", s->nll[0] / n);
    } else if (!s->n_tokens) {
        base_buf_puts(out, "nothing can differ: the model wrote nothing");
    } else if (!put_turns(s, differs, &turns)) {
        base_buf_printf(out, "no token would have been another one, of %u", s->n_tokens);
    } else {
        base_buf_printf(out, "some token of %s would have been another one", turns.data);
        base_buf_clear(&turns);
        if (put_turns(s, differs_much, &turns))
            base_buf_printf(out, " (the first of %s by more than .1 nats)", turns.data);
    }
    if (s->n_tokens && !s->n_bytes) base_buf_printf(out, "; mean KL %.4f nats", s->kl / s->n_tokens);
    put_free(s, out);
    put_time(s, out);
    base_buf_clear(&turns);
    if (put_turns(s, is_unlike_record, &turns))
        base_buf_printf(out, "; %s not computed as recorded", turns.data);
    base_buf_free(&turns);
}

void whatif_summary_free(whatif_summary *s)
{
    free(s->turns);
    free(s->stopped);
    *s = (whatif_summary){.n_turns = 0};
}
