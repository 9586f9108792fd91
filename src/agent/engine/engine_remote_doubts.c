/* See engine_remote_parts.h: which tokens of a text the model doubts, of engines that tell log-probabilities. */
#include <stdlib.h>

#include "agent/engine/engine_remote_parts.h"
#include "base/mem.h"
#include "remote/score.h"

/* Told once; where the engine cannot tell at all it is not asked again. */
static int give_up(remote *r, base_err *why)
{
    base_buf text = {0};
    base_buf_printf(&text,
        "the endpoint does not say what its model doubts "
        "(%.200s): further attempts at a definition are sampled",
        why->msg);
    remote__notice(r, text.data);
    base_buf_free(&text);
    if (why->code == BASE_E_UNSUPPORTED) r->base.can &= ~(unsigned)ENGINE_DOUBTS;
    return why->code = BASE_E_UNSUPPORTED;
}

/* It may take as long as writing the text does, and nothing of it streams. */
static void show_work(const remote *r, uint32_t done, uint32_t n)
{
    const kv_observer *o = &r->base.observer;
    if (o->prefill) o->prefill(o->user, done, n);
}

/* stream.sent and stream.came become what the request is, so that its report says so. */
static int ask(remote *r, uint32_t n_read, const model_ids *all, remote_score *ret, base_err *err)
{
    const remote_request request = {.model = r->endpoint->model,
        .ids = all->ids,
        .n_ids = (uint32_t)all->n,
        .reuse = remote__reuse(r, r->seq.n_out > 0)};
    remote_scored cost;
    uint32_t most_found;
    const uint32_t n_prompt = remote_score_prompt(r->endpoint->wire, n_read, request.n_ids, &most_found);
    r->stream.sent.n = 0;
    for (uint32_t i = 0; i < n_prompt; i++) model_ids_add(&r->stream.sent, all->ids[i]);
    remote__report_begins(r, most_found);
    show_work(r, 0, request.n_ids - n_read);
    const int rc = remote_score_ask(r->endpoint, &request, n_read, ret, &cost, err);
    if (rc) {
        remote__report_failed(r);
        return rc;
    }
    show_work(r, request.n_ids - n_read, request.n_ids - n_read);
    engine_request *q = remote__report(r);
    q->cached = cost.cached;
    q->computed = cost.computed;
    for (size_t i = n_prompt; i < all->n; i++) model_ids_add(&r->stream.came, all->ids[i]);
    if (n_prompt == all->n) model_ids_add(&r->stream.came, -1); /* it has to write one, whichever */
    remote__report_ends(r);
    r->stream.came.n = 0;
    return 0;
}

/* The bytes of what would have been said instead. */
static int learn_others(remote *r, const engine_doubt *found, uint32_t n, base_err *err)
{
    model_ids others = {0};
    for (uint32_t i = 0; i < n; i++) model_ids_add(&others, found[i].instead);
    const int rc = remote_vocab_learn(r->endpoint->vocab, others.ids, n, err);
    model_ids_free(&others);
    return rc;
}

int remote__doubts(
    engine *e, const int32_t *ids, uint32_t n_read, uint32_t n, engine_doubt *ret, base_err *err)
{
    remote *r = remote_of(e);
    const uint32_t n_active = remote_sequence_n_active(&r->seq);
    model_ids all = {0};
    base_err why = {0};
    if (n <= n_read) return 0;
    if (n_active + n >= r->n_ctx)
        return base_fail(err, BASE_E_LIMIT, "%u more tokens do not fit into the context", n);
    remote__close_stream(r);
    remote_sequence_put_active(&r->seq, NULL, &all);
    for (uint32_t i = 0; i < n; i++) model_ids_add(&all, ids[i]);
    remote_score *scores = base_xcalloc(n - n_read, sizeof *scores);
    int rc = ask(r, n_active + n_read, &all, scores, &why);
    for (uint32_t i = 0; i < n - n_read && !rc; i++)
        ret[i] = (engine_doubt){scores[i].instead, scores[i].behind};
    if (!rc) rc = learn_others(r, ret, n - n_read, &why);
    if (rc && rc != BASE_E_CANCELLED) rc = give_up(r, &why);
    if (rc && err) *err = why;
    free(scores);
    model_ids_free(&all);
    return rc;
}
