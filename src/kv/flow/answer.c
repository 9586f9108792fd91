/*
 * What the model wrote, computed again. While an answer is written, its tokens read their live lists alone:
 * weighing all rows for each token would cost what the budget saves. But later messages and calls read those
 * rows, and a row that was computed over few others stays wrong. So before anything else follows, the newest
 * answer's rows are computed once more, in batches, each token choosing which evicted rows it reads as well
 * (read/visit.h). The same rows come of it whether that happens in idle time or when the next message is
 * appended.
 */
#include "kv/core/state.h"
#include "kv/flow/flow.h"
#include "kv/plan/apply.h"
#include "kv/plan/plan.h"
#include "kv/read/visit.h"
#include "kv/session.h"

/*
 * Where the newest answer begins that was not computed again yet. Like a message's, its tokens read each
 * other while they are computed, also those that were evicted meanwhile, and so many more than the budget as
 * a pass has tokens: an older part stays as it is. n: no answer.
 */
static uint32_t find_first(const kv_session *s)
{
    const kv_stored_segment *last = s->n_segments ? &s->segments[s->n_segments - 1] : NULL;
    if (!last || last->origin != KV_ORIGIN_ANSWER || s->read_to >= s->n) return s->n;
    uint32_t from = last->from > s->read_to ? last->from : s->read_to;
    if (s->n - from > KV_BATCH) from = s->n - KV_BATCH;
    for (uint32_t t = from; t < s->n; t++) /* those must not be read, or are not written any more */
        if (kv_bits_get(s->barred, t) || kv_bits_get(s->stale, t) || kv_bits_get(s->lost, t) ||
            s->table.packed[t / MODEL_ROWS_BLOCK])
            from = t + 1;
    return from;
}

static bool anybody_out(const kv_session *s)
{
    for (uint32_t lane = 0; lane < s->n_lanes; lane++)
        if (s->lists.view[lane].n_rows < s->n) return true;
    return false;
}

uint32_t kv_session_to_reread(const kv_session *s)
{
    if (s->parameters.visited != KV_VISITED_AGAIN || !kv__visitors(s) || s->pending != KV_NO_ROW ||
        !anybody_out(s))
        return 0;
    return s->n - find_first(s);
}

int kv_session_reread(kv_session *s, const atomic_bool *cancel, base_err *err)
{
    const uint32_t n = kv_session_to_reread(s);
    if (!n) return 0;
    kv_plan *p = kv_plan_new(s->epoch, KV_CAUSE_ANSWER, s->n, s->n_lanes);
    if (!p) return base_fail(err, BASE_E_NOMEM, "no memory for a plan over %u rows", s->n);
    p->replay_from = s->n - n;
    const int rc = kv__apply(s, p, false, cancel, err);
    kv_plan_free(p);
    return rc;
}

int kv__end_answer(kv_session *s, kv_origin next, const atomic_bool *cancel, base_err *err)
{
    return s->automatic && next != KV_ORIGIN_ANSWER ? kv_session_reread(s, cancel, err) : 0;
}
