/*
 * See engine_remote_parts.h: what a request should find in the engine's cache, what the engine says that it found, and where
 * the blocks of the sequence are.
 */
#include <string.h>

#include "agent/engine/engine_remote_parts.h"
#include "base/clock.h"
#include "base/mem.h"

/* tokens of a stretch that llama-server is to move behind a cut; shorter ones may stand there twice */
enum { REUSE = 32 };

uint32_t remote__reuse(const remote *r, bool has_cut)
{
    return has_cut && r->endpoint->wire == &remote_wire_llama && r->cost.moves != MOVES_NOT ? REUSE : 0;
}

/* --- foretelling --------------------------------------------------------------------------------------------- */

/* What the engine published so far. */
static const remote_blocks *heard_blocks(const remote *r)
{
    const remote_blocks *blocks = r->endpoint->events ? remote_events_blocks(r->endpoint->events) : NULL;
    return blocks && remote_blocks_has_any(blocks) ? blocks : NULL;
}

/* held: what it should find by what it was sent; what it published says more, or that this is gone. */
static uint32_t found_by_blocks(const remote_blocks *blocks, const int32_t *ids, uint32_t n, uint32_t held)
{
    remote_block_counts counts;
    if (!blocks) return held;
    remote_blocks_count(blocks, ids, n, 0, &counts, NULL);
    return counts.found > held || counts.ends_in_gone ? counts.found : held;
}

uint32_t remote__to_compute(const engine *e, const bool *left_out, bool *ret_at_most)
{
    const remote *r = remote_of(e);
    const remote_cost *c = &r->cost;
    model_ids ids = {0};
    bool has_cut = r->seq.n_out > 0;
    for (size_t i = 0; i < r->seq.ids.n && !has_cut && left_out; i++) has_cut = left_out[i];
    remote_sequence_put_active(&r->seq, left_out, &ids);
    const uint32_t n = (uint32_t)ids.n, reuse = remote__reuse(r, has_cut);
    const uint32_t held = remote_held_find(&c->held, ids.ids, n, c->moves == MOVES ? reuse : 0);
    const uint32_t found = found_by_blocks(heard_blocks(r), ids.ids, n, held);
    *ret_at_most =
        reuse && c->moves == MOVES_UNKNOWN && remote_held_find(&c->held, ids.ids, n, reuse) > found;
    model_ids_free(&ids);
    return n - found;
}

void remote__notice(remote *r, const char *text)
{
    base_grow(&r->notices, &r->cap_notices, r->n_notices + 1, sizeof *r->notices);
    r->notices[r->n_notices++] = base_xstrdup(text);
}

/* Reads what the engine published; a message that cannot be read is told of once. */
static const remote_blocks *hear_blocks(remote *r, int wait_ms)
{
    base_err why = {0};
    if (!r->endpoint->events) return NULL;
    if (remote_events_take(r->endpoint->events, wait_ms, &why)) {
        base_buf text = {0};
        base_buf_printf(&text, "what the engine publishes of its cache cannot be read: %.200s", why.msg);
        remote__notice(r, text.data);
        base_buf_free(&text);
    }
    return heard_blocks(r);
}

/* --- a request ----------------------------------------------------------------------------------------------- */

engine_request *remote__report(remote *r)
{
    return r->cost.n_reports ? &r->cost.reports[r->cost.n_reports - 1] : NULL;
}

void remote__probe_moving(remote *r)
{
    remote_cost *c = &r->cost;
    remote_reuse reuse;
    model_ids held = {0};
    bool works;
    if (c->has_probed) return;
    c->has_probed = true;
    if (remote_reuse_load(r->endpoint, c->folder, &works)) {
        c->moves = works ? MOVES : MOVES_NOT;
    } else if (!remote_reuse_probe(r->endpoint, &reuse, &held, NULL)) {
        c->moves = reuse.works ? MOVES : MOVES_NOT;
        remote_reuse_save(r->endpoint, c->folder, reuse.works);
        remote_held_set(&c->held, held.ids, (uint32_t)held.n, NULL, 0);
    }
    model_ids_free(&held);
}

void remote__report_begins(remote *r, uint32_t most)
{
    remote_cost *c = &r->cost;
    const model_ids *sent = &r->stream.sent;
    if (c->n_reports == REMOTE_MOST_REPORTS)
        memmove(c->reports, c->reports + 1, --c->n_reports * sizeof *c->reports);
    const uint32_t n = (uint32_t)sent->n, reuse = remote__reuse(r, r->seq.n_out > 0);
    c->found_moved = remote_held_find(&c->held, sent->ids, n, reuse);
    c->found_unmoved = remote_held_find(&c->held, sent->ids, n, 0);
    const uint32_t held = remote_held_ask(&c->held, sent->ids, n, c->moves == MOVES ? reuse : 0),
                   predicted = found_by_blocks(hear_blocks(r, 0), sent->ids, n, held);
    c->reports[c->n_reports++] = (engine_request){
        .sent = n, .predicted = predicted < most ? predicted : most, .cached = -1, .computed = -1};
}

/*
 * Of a server that the probe learned nothing of: where a cut stands in a request, what was found of it says so. One that was
 * started again in another way may move nothing any more: then it is asked again by the next session.
 */
static void learn_moving(remote *r, const engine_request *q)
{
    remote_cost *c = &r->cost;
    if (!q || q->cached < 0 || c->found_moved == c->found_unmoved) return;
    if (c->moves == MOVES && q->cached <= c->found_unmoved) {
        remote_reuse_forget(r->endpoint, c->folder);
        c->moves = MOVES_UNKNOWN; /* a second client makes it look so too: the next cut says which */
        return;
    }
    if (c->moves != MOVES_UNKNOWN) return;
    if (q->cached >= c->found_moved)
        c->moves = MOVES;
    else if (q->cached <= c->found_unmoved)
        c->moves = MOVES_NOT;
}

/* Told once a session; what the engine holds now is not what was sent. */
static void tell_truncated(remote *r)
{
    remote_held_forget(&r->cost.held);
    if (r->stream.told_truncated) return;
    r->stream.told_truncated = true;
    remote__notice(r,
        "the endpoint left a part of what it was sent out of its context, for lack of room: the "
        "answer does not know all of this session. A server with a larger context, or /compact, helps");
}

void remote__report_failed(remote *r)
{
    r->cost.n_reports--;
}

void remote__report_ends(remote *r)
{
    const engine_request *q = remote__report(r);
    const model_ids *sent = &r->stream.sent, *came = &r->stream.came;
    learn_moving(r, q);
    if (r->stream.is_truncated)
        tell_truncated(r);
    else if (came->n)
        remote_held_set(&r->cost.held, sent->ids, (uint32_t)sent->n, came->ids, (uint32_t)came->n);
    if (q && q->computed > 0) r->cost.n_computed += (uint64_t)q->computed;
    r->cost.n_computed += came->n;
}

/* --- telling it ---------------------------------------------------------------------------------------------- */

/* Did it publish what the newest request made it compute: all but the last token of the answer? */
static bool is_told(const remote *r, const remote_blocks *blocks, uint32_t n_found)
{
    remote_block_counts counts = {0};
    model_ids ids = {0};
    model_ids_add_all(&ids, &r->stream.sent);
    model_ids_add_all(&ids, &r->stream.came);
    if (blocks && ids.n) remote_blocks_count(blocks, ids.ids, (uint32_t)ids.n - 1, n_found, &counts, NULL);
    model_ids_free(&ids);
    return counts.is_told;
}

/*
 * A step's blocks are published behind its tokens, on another connection, so a short answer is here before them. An engine
 * that publishes nothing of a request is not waited for again until it does.
 */
static const remote_blocks *await_blocks(remote *r, uint32_t n_found)
{
    enum { STEP_MS = 20, MOST_MS = 2000 };
    const uint64_t until = base_clock_ns() + MOST_MS * (uint64_t)1000000;
    const remote_blocks *blocks = hear_blocks(r, STEP_MS);
    bool told = is_told(r, blocks, n_found);
    while (!told && !r->cost.is_silent && r->endpoint->events && base_clock_ns() < until &&
           !(r->cancel && atomic_load(r->cancel))) {
        blocks = hear_blocks(r, STEP_MS);
        told = is_told(r, blocks, n_found);
    }
    r->cost.is_silent = !told;
    return blocks;
}

/* Where the blocks of the sequence are now. */
static void put_blocks(remote *r, engine_request *ret)
{
    const uint32_t n_found = ret->cached > 0 ? (uint32_t)ret->cached : 0;
    const remote_blocks *blocks = await_blocks(r, n_found);
    if (!blocks) return;
    remote_block_counts counts;
    model_ids ids = {0};
    remote_sequence_put_active(&r->seq, NULL, &ids);
    base_grow(&r->cost.places, &r->cost.cap_places, r->seq.ids.n + 1, sizeof *r->cost.places);
    remote_blocks_count(blocks, ids.ids, (uint32_t)ids.n, n_found, &counts, r->cost.places);
    for (size_t i = r->seq.ids.n, k = ids.n; i-- > 0;) /* from what is sent to what is there */
        r->cost.places[i] = r->seq.out[i] ? ENGINE_NOWHERE : r->cost.places[--k];
    model_ids_free(&ids);
    ret->places = r->cost.places;
    ret->n_places = (uint32_t)r->seq.ids.n;
}

bool remote__take_request(engine *e, engine_request *ret)
{
    remote *r = remote_of(e);
    remote_cost *c = &r->cost;
    if (!c->n_reports) return false;
    *ret = c->reports[0];
    if (c->n_reports == 1) put_blocks(r, ret);
    memmove(c->reports, c->reports + 1, --c->n_reports * sizeof *c->reports);
    return true;
}
