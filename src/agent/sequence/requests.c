/*
 * What a request to an engine across HTTP cost. Before it is sent the hit is predicted (the longest common
 * prefix with what the engine held last); where the engine found less, the first token that it had to compute
 * again is named, and whose it is. Of each stretch of the session it is told whether it was found or computed, and where
 * the engine keeps it, as far as the engine says.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/sequence/sequence.h"
#include "agent/session/tell.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "remote/blocks.h"

/* The origin of token `index`, and the file or label that it came from. */
static void put_place(const agent *a, uint32_t index, base_buf *out)
{
    for (size_t i = a->transcript.n_segments; i-- > 0;) {
        const agent_segment *p = &a->transcript.segments[i];
        if (p->from > index || p->to <= index) continue;
        base_buf_printf(out, ", %s", kv_origin_word(p->origin));
        if (p->path)
            base_buf_printf(out, " %s", p->path);
        else if (p->label)
            base_buf_printf(out, " %s", p->label);
        return;
    }
}

/* The token of the sequence that is sent as number `sent`; the sequence's length: none is. */
static uint32_t index_of(const agent *a, uint32_t sent, uint32_t n)
{
    uint32_t i = 0;
    const bool has_spans = a->engine->can & ENGINE_SPANS;
    for (; i < n; i++)
        if ((!has_spans || a->engine->ops->is_active(a->engine, i)) && !sent--) break;
    return i;
}

/* Why the engine found less than it held; nothing where it did not. */
static void put_why(const agent *a, const engine_request *r, base_buf *out)
{
    uint32_t n;
    const int32_t *ids = a->engine->ops->ids(a->engine, &n);
    if (r->cached < 0 || r->cached >= r->predicted || r->cached >= n) return;
    const uint32_t first = index_of(a, (uint32_t)r->cached, n);
    if (first == n) return;
    size_t len = 0;
    const char *piece = a->engine->ops->piece(a->engine, ids[first], &len);
    base_buf_printf(out, "computed again from token %u on (\"", first);
    base_utf8_sanitise(out, piece ? piece : "", piece ? len : 0, false);
    base_buf_putc(out, '"');
    put_place(a, first, out);
    base_buf_puts(out, "): the engine no longer held it");
}

/* --- by stretches of the session ------------------------------------------------------------------------ */

typedef struct stretches {
    agent_stretch_row *rows;
    size_t n, cap;
} stretches;

static void add_token(stretches *s, uint32_t index, const char *what)
{
    agent_stretch_row *last = s->n ? &s->rows[s->n - 1] : NULL;
    if (last && last->to == index && last->what == what) {
        last->to++;
        return;
    }
    base_grow(&s->rows, &s->cap, s->n + 1, sizeof *s->rows);
    s->rows[s->n++] = (agent_stretch_row){.from = index, .to = (int64_t)index + 1, .what = what};
}

/* What an engine finds is always the beginning of what it is sent, also where it moved rows behind a cut. */
static void put_parts(const agent *a, const engine_request *r, stretches *out)
{
    static const char found[] = "found", computed[] = "computed", sent[] = "sent";
    const uint32_t n = agent__n_tokens(a);
    const bool has_spans = a->engine->can & ENGINE_SPANS;
    if (!(a->engine->can & ENGINE_IDS)) return; /* its tokens are not the session's */
    for (uint32_t i = 0, k = 0; i < n && k < r->sent; i++) {
        if (has_spans && !a->engine->ops->is_active(a->engine, i)) continue;
        add_token(out, i, r->cached < 0 ? sent : k < r->cached ? found : computed);
        k++;
    }
}

/* Returns the tokens in each place. */
static void put_blocks(
    const engine_request *r, stretches *out, int64_t ret_counts[static REMOTE_N_BLOCK_PLACES])
{
    for (uint32_t i = 0; i < r->n_places; i++) {
        if (r->places[i] >= REMOTE_N_BLOCK_PLACES) continue;
        ret_counts[r->places[i]]++;
        add_token(out, i, remote_block_words[r->places[i]]);
    }
}

void agent__tell_requests(agent *a)
{
    engine_request r;
    if (!a->engine->ops->take_request) return;
    while (a->engine->ops->take_request(a->engine, &r)) {
        base_buf why = {0};
        put_why(a, &r, &why);
        agent__put_paid(a, &r, &why);
        stretches parts = {0}, blocks = {0};
        int64_t in[REMOTE_N_BLOCK_PLACES] = {0};
        put_parts(a, &r, &parts);
        put_blocks(&r, &blocks, in);
        agent__emit(a, &(agent_event){.type = AGENT_EVENT_request,
                           .request = {.turn = a->turn,
                               .sent = r.sent,
                               .predicted = r.predicted,
                               .cached = r.cached,
                               .computed = r.computed,
                               .ms = (int64_t)(r.wait_ns / 1000000),
                               .why = why.len ? why.data : NULL,
                               .gpu = in[REMOTE_BLOCK_GPU],
                               .host = in[REMOTE_BLOCK_HOST],
                               .disk = in[REMOTE_BLOCK_DISK],
                               .gone = in[REMOTE_BLOCK_GONE],
                               .unknown = in[REMOTE_BLOCK_UNKNOWN],
                               .parts = {parts.rows, parts.n},
                               .blocks = {blocks.rows, blocks.n}}});
        free(parts.rows);
        free(blocks.rows);
        /* Until the first token came the engine computed what was new to it. */
        if (r.wait_ns < a->ledger.sums.decode_ns) {
            a->ledger.sums.decode_ns -= r.wait_ns;
            a->ledger.sums.prefill_ns += r.wait_ns;
            a->ledger.sums.n_awaited++;
        }
        base_buf_free(&why);
    }
}
