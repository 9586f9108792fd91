/* See walk.h. */
#include "kv/plan/walk.h"

#include <stdlib.h>

#include "base/hash.h"
#include "kv/read/reading.h"
#include "kv/read/visit.h"

/* What is read ahead for the batch ends with it. */
static int compute(kv_session *s, model_batch *batch, base_err *err)
{
    int rc = kv__check_lists(s, batch->rows, err);
    if (rc) return rc;
    rc = s->compute.forward(s->compute.user, batch, err);
    kv__reading_rest(s);
    return rc ? rc : kv__check_uncut(s, err);
}

static int call(kv_session *s, model_batch *batch, kv_state *in, kv_state **ret, base_err *err)
{
    kv_state *out = kv_state_new(&s->states, s->compute.state_bytes, err);
    if (!out) return BASE_E_NOMEM;
    batch->state_in = in ? in->numbers : NULL;
    batch->state_out = out->numbers;
    const int rc = compute(s, batch, err);
    if (rc) {
        kv_state_drop(&s->states, &out);
        return rc;
    }
    out->at = (in ? in->at : 0) + batch->n;
    *ret = out;
    return 0;
}

/*
 * Tokens [from, from + n) of one segment and at most a block, over what is active before them. Their rows go
 * to the table's spare place.
 */
static int walk_piece(
    kv_session *s, kv_state *in, uint32_t n, kv_state **ret, const atomic_bool *cancel, base_err *err)
{
    const uint32_t from = in ? in->at : 0;
    model_run *runs = NULL;
    kv_block *hidden = kv_block_new(&s->compute.shape, NULL);
    model_lane_list *lanes = kv__lists_before(s, from, s->table.n * MODEL_ROWS_BLOCK, n, &runs);
    const model_reader *reader = NULL;
    int rc = hidden && lanes ? 0 : base_fail(err, BASE_E_NOMEM, "no memory to compute %u tokens again", n);
    if (!rc) {
        const model_rows_view rows = kv__view_with(s, lanes, hidden);
        const kv_stored_segment *part = kv__segment_at(s, from);
        if (part) rc = kv__reader_begin(s, &rows, part->origin, s->ids + from, from, n, &reader, err);
        model_batch batch = {.ids = s->ids + from,
            .phases = s->phases + from,
            .n = n,
            .rows = &rows,
            .reader = reader,
            .cancel = cancel};
        if (!rc) rc = call(s, &batch, in, ret, err);
        if (!rc) s->states.walked += n;
        if (!rc) s->computed += n;
    }
    free(lanes);
    free(runs);
    kv_block_unref(hidden);
    return rc;
}

int kv__walk_to(kv_session *s, uint32_t to, kv_state **ret, const atomic_bool *cancel, base_err *err)
{
    kv_state *at = kv_state_ref(kv_states_newest(&s->states, to));
    int rc = 0;
    for (uint32_t from = at ? at->at : 0; from < to && !rc; from = at ? at->at : 0) {
        const kv_stored_segment *part = kv__segment_at(s, from);
        uint32_t end = part && part->to < to ? part->to : to;
        if (end - from > MODEL_ROWS_BLOCK) end = from + MODEL_ROWS_BLOCK;
        kv_state *next = NULL;
        rc = walk_piece(s, at, end - from, &next, cancel, err);
        if (rc) break;
        kv_state_drop(&s->states, &at);
        at = next;
    }
    if (rc) kv_state_drop(&s->states, &at);
    *ret = at;
    return rc;
}

static bool has_ahead(const kv_session *s)
{
    return s->states.ahead && s->states.ahead->at == s->n;
}

uint32_t kv__to_walk(const kv_session *s)
{
    if (!s->compute.state_bytes || has_ahead(s)) return 0;
    const kv_state *at = kv_states_newest(&s->states, s->n);
    return s->n - (at ? at->at : 0);
}

int kv__bring_state(kv_session *s, const atomic_bool *cancel, base_err *err)
{
    kv_states *st = &s->states;
    if (!s->compute.state_bytes) return 0;
    if ((st->live ? st->live->at : 0) == s->n) return 0;
    kv_state *found = has_ahead(s) ? kv_state_ref(st->ahead) : NULL;
    const uint32_t from = s->n - kv__to_walk(s);
    const int rc = found ? 0 : kv__walk_to(s, s->n, &found, cancel, err);
    if (rc) return rc;
    if (st->is_cut && s->holed && from < s->n) { /* over other rows than when these tokens came */
        const uint32_t schedule[] = {from, s->n, KV_EVENT_WALKED};
        s->schedule = base_hash64(schedule, sizeof schedule, s->schedule);
    }
    kv_state_drop(st, &st->before);
    st->before = st->live && st->live->at < s->n ? st->live : NULL;
    if (!st->before) kv_state_drop(st, &st->live);
    st->live = found;
    st->is_cut = false;
    kv_state_drop(st, &st->ahead);
    return 0;
}

int kv__stand_at(kv_session *s, uint32_t t, const atomic_bool *cancel, base_err *err)
{
    kv_state *found = NULL;
    if (!s->compute.state_bytes) return 0;
    if (t == s->n) return kv__bring_state(s, cancel, err);
    const int rc = kv__walk_to(s, t, &found, cancel, err);
    if (rc) return rc;
    kv_state_drop(&s->states, &s->states.look);
    s->states.look = found;
    return 0;
}

int kv__forward(kv_session *s, model_batch *batch, uint32_t from, kv_purpose purpose, base_err *err)
{
    kv_states *st = &s->states;
    kv_state *out = NULL;
    if (!s->compute.state_bytes) return compute(s, batch, err);
    if (purpose == KV_TO_APPEND || purpose == KV_TO_DRAFT) { /* their memory is the next state's */
        kv_state_drop(st, &st->ahead);
        kv_state_drop(st, &st->look);
        if (purpose == KV_TO_APPEND) kv_state_drop(st, &st->before);
    }
    const bool goes_on = purpose == KV_TO_REPLACE && st->again && st->again->at == from;
    kv_state *in = goes_on ? st->again : kv_states_newest(st, from);
    if ((in ? in->at : 0) != from)
        return base_fail(err, BASE_E_STATE, "no state is kept in front of token %u", from);
    const int rc = call(s, batch, in, &out, err);
    if (rc) return rc;
    if (purpose == KV_TO_APPEND) {
        st->before = st->live;
        st->live = out;
    } else if (purpose == KV_TO_DRAFT) {
        st->ahead = out;
    } else if (purpose == KV_TO_REPLACE) {
        kv_state_drop(st, &st->again);
        st->again = out;
    } else {
        kv_state_drop(st, &out);
    }
    return 0;
}

void kv__end_again(kv_session *s, uint32_t from, bool done)
{
    kv_states *st = &s->states;
    kv_state *made = st->again;
    if (!s->compute.state_bytes) return;
    st->again = NULL;
    if (!done || !made || made->at != s->n) {
        kv_state_drop(st, &made);
        return;
    }
    kv_states_truncate(st, from); /* those behind were made of other rows */
    kv_state_drop(st, &st->before);
    kv_state_drop(st, &st->live);
    st->live = made;
    st->is_cut = false;
}
