/*
 * Rows that are not computed above a cut (docs/kv.md, Pruned prefill): layers [cut, n_layer) of a token are
 * deferred. They can be computed later from the token's hidden state at the cut. That state is kept in the
 * token's own slot, in the unused place of the upper layers' keys and values: it costs no memory of its own,
 * is shared by forks, goes to disk, and is saved as rows are. It is kept in F32, so a row that is computed
 * later has the same bits as one that is computed at once over the same lists, and a cut that keeps every
 * row gives the bits of a full prefill.
 *
 * A row is computed when a plan makes it active (apply.c), over the rows below it that are active then.
 */
#include <stdlib.h>
#include <string.h>

#include "kv/core/state.h"
#include "kv/core/work.h"
#include "kv/plan/apply.h"

/* Moves a state from or to its slot above the cut: head_dim floats a lane, half as key, half as value. */
static void move_state(kv_session *s, uint32_t t, uint32_t cut, float *state, bool to_slot)
{
    const uint32_t d = s->compute.shape.head_dim, n = s->compute.n_embd, half = d / 2;
    const model_rows_view view = kv__view(s);
    uint32_t at = 0;
    for (uint32_t lane = cut * s->compute.shape.n_head_kv; at < n; lane++)
        for (int value = 0; value < 2 && at < n; value++) {
            const uint32_t take = n - at < half ? n - at : half;
            uint16_t *place = value ? model_rows_value(&view, lane, t) : model_rows_key(&view, lane, t);
            if (to_slot)
                memcpy(place, state + at, take * sizeof *state);
            else
                memcpy(state + at, place, take * sizeof *state);
            at += take;
        }
}

void kv__put_states(kv_session *s, uint32_t from, uint32_t n, uint32_t cut, float *states)
{
    for (uint32_t i = 0; i < n; i++)
        move_state(s, from + i, cut, states + (size_t)i * s->compute.n_embd, true);
}

int kv__hide_staged(kv_session *s, uint32_t from, uint32_t cut, base_err *err)
{
    const uint32_t n_tokens = s->lists.n_tokens;
    const size_t n_words = kv_bits_words(n_tokens);
    uint64_t *flips = calloc(n_words * s->n_lanes + 1, sizeof *flips);
    if (!flips) return base_fail(err, BASE_E_NOMEM, "no memory for the lists of the cache's rows");
    for (uint32_t lane = cut * s->compute.shape.n_head_kv; lane < s->n_lanes; lane++)
        kv_bits_set_range(flips + lane * n_words, from, n_tokens);
    const int rc = kv_lists_flip(&s->lists, flips, err);
    free(flips);
    return rc;
}

uint32_t kv__deferred_tokens(const kv_session *s)
{
    uint32_t n = 0;
    for (uint32_t t = 0; t < s->n; t++) n += s->cut[t] && !kv_bits_get(s->lost, t);
    return n;
}

uint64_t kv__deferred_rows(const kv_session *s)
{
    uint64_t n = 0;
    for (uint32_t t = 0; t < s->n; t++)
        if (s->cut[t] && !kv_bits_get(s->lost, t)) n += kv__whole_from(s, s->cut[t]);
    return n;
}

/* --- computing ------------------------------------------------------------------------------------------ */

/* The tokens to compute, and what that takes. */
typedef struct work {
    kv_work memory;
    uint32_t *tokens, n;
    float *states;    /* [n][n_embd] as they were: what is put back when anything fails */
    uint64_t *others; /* rows that are active in some layer above a cut and not among the tokens */
    model_lane_list *lanes;
    model_run *runs;
    uint32_t *phases;
    int32_t *ids;
    float *hidden, *queries;
} work;

static int work_init(work *w, kv_session *s, const kv_lists *lists, const uint64_t *tokens, base_err *err)
{
    const size_t n = kv_bits_count(tokens, kv_bits_words(s->n)), n_embd = s->compute.n_embd;
    size_t n_runs = 0;
    uint32_t lowest = s->compute.shape.n_layer;
    for (uint32_t lane = 0; lane < s->n_lanes; lane++) n_runs += lists->view[lane].n_runs;
    kv_work memory = {NULL};
    *w = (work){
        .tokens = kv_work_take(&memory, n + 1, sizeof(uint32_t)),
        .states = kv_work_take(&memory, n * n_embd + 1, sizeof(float)),
        .others = kv_work_zero(&memory, kv_bits_words(s->n) + 1, sizeof(uint64_t)),
        .lanes = kv_work_zero(&memory, s->n_lanes, sizeof(model_lane_list)),
        .runs = kv_work_take(&memory, n_runs + 1, sizeof(model_run)),
        .phases = kv_work_take(&memory, KV_BATCH, sizeof(uint32_t)),
        .ids = kv_work_take(&memory, KV_BATCH, sizeof(int32_t)),
        .hidden = kv_work_take(&memory, (size_t)KV_BATCH * n_embd, sizeof(float)),
        .queries = kv_work_take(&memory, kv__memory_floats(s) * s->waiting.kept.n, sizeof(float)),
    };
    w->memory = memory;
    if (memory.failed) return base_fail(err, BASE_E_NOMEM, "no memory to compute %zu rows above the cut", n);
    for (size_t t = kv_bits_next(tokens, 0, s->n, true); t < s->n;
         t = kv_bits_next(tokens, t + 1, s->n, true)) {
        w->tokens[w->n] = (uint32_t)t;
        move_state(s, (uint32_t)t, s->cut[t], w->states + w->n++ * n_embd, false);
        if (s->cut[t] < lowest) lowest = s->cut[t];
    }
    const size_t n_words = kv_bits_words(s->n);
    for (uint32_t lane = lowest * s->compute.shape.n_head_kv; lane < s->n_lanes; lane++)
        for (size_t word = 0; word < n_words; word++)
            w->others[word] |= lists->lane[lane]->bits[word] & ~tokens[word];
    return 0;
}

/* How many tokens from `first` on go together: same cut, no row between them that an upper layer reads. */
static uint32_t group_size(const kv_session *s, const work *w, uint32_t first)
{
    uint32_t n = 1;
    while (first + n < w->n && n < KV_BATCH) {
        const uint32_t last = w->tokens[first + n - 1], next = w->tokens[first + n];
        if (s->cut[next] != s->cut[last] || kv_bits_next(w->others, last + 1, next, true) < next) break;
        n++;
    }
    return n;
}

/* Lists of the layers above the cut, up to and with token `last`. */
static void cut_lists(const kv_session *s, work *w, const kv_lists *lists, uint32_t first_lane, uint32_t last)
{
    model_run *to = w->runs;
    for (uint32_t lane = 0; lane < s->n_lanes; lane++) {
        const model_lane_list *from = &lists->view[lane];
        if (lane < first_lane) continue;
        if (lane > first_lane && lists->lane[lane] == lists->lane[lane - 1]) {
            w->lanes[lane] = w->lanes[lane - 1];
            continue;
        }
        w->lanes[lane] = (model_lane_list){.runs = to};
        for (uint32_t r = 0; r < from->n_runs && from->runs[r].index <= last; r++) {
            *to = from->runs[r];
            if (to->index + to->n > last + 1) to->n = last + 1 - to->index;
            w->lanes[lane].n_rows += to->n;
            w->lanes[lane].n_runs++;
            to++;
        }
    }
}

/* Queries of the message that waits for its upper layers: those of its kept tokens that are in the group. */
static uint32_t find_captured(const kv_session *s, const uint32_t *tokens, uint32_t n, uint32_t *places)
{
    uint32_t found = 0;
    for (uint32_t i = 0, k = 0; i < n && k < s->waiting.kept.n; i++) {
        while (k < s->waiting.kept.n && s->waiting.kept.tokens[k] < tokens[i]) k++;
        if (k < s->waiting.kept.n && s->waiting.kept.tokens[k] == tokens[i]) places[found++] = i;
    }
    return found;
}

static void fill_captured(kv_session *s, const uint32_t *tokens, const model_capture *c, uint32_t first_layer)
{
    kv_signal *kept = &s->waiting.kept;
    const size_t d = kept->head_dim;
    for (uint32_t i = 0; i < c->n; i++) {
        uint32_t k = 0;
        while (kept->tokens[k] != tokens[c->tokens[i]]) k++;
        for (size_t lh = (size_t)first_layer * kept->n_head; lh < (size_t)kept->n_layer * kept->n_head; lh++)
            memcpy(kept->queries + (lh * kept->n + k) * d, c->queries + (lh * c->n + i) * d,
                d * sizeof *c->queries);
    }
}

static int compute_group(kv_session *s, work *w, const kv_lists *lists, uint32_t first, uint32_t n,
    const atomic_bool *cancel, base_err *err)
{
    const uint32_t *tokens = w->tokens + first;
    const uint32_t cut = s->cut[tokens[0]], n_embd = s->compute.n_embd;
    uint32_t places[2 * KV_RECENT_QUERIES];
    const uint32_t n_places = find_captured(s, tokens, n, places);
    for (uint32_t i = 0; i < n; i++) {
        w->ids[i] = s->ids[tokens[i]];
        w->phases[i] = s->phases[tokens[i]];
    }
    memcpy(w->hidden, w->states + (size_t)first * n_embd, (size_t)n * n_embd * sizeof *w->hidden);
    cut_lists(s, w, lists, cut * s->compute.shape.n_head_kv, tokens[n - 1]);
    const model_rows_view rows = kv__view_of(s, w->lanes);
    const model_capture capture = {.tokens = places, .n = n_places, .queries = w->queries};
    const model_batch batch = {
        .ids = w->ids,
        .phases = w->phases,
        .n = n,
        .rows = &rows,
        .layer_first = cut,
        .layer_last = s->compute.shape.n_layer,
        .hidden = w->hidden,
        .capture = n_places ? &capture : NULL,
        .cancel = cancel,
    };
    int rc = kv__check_lists(s, &rows, err);
    if (!rc) rc = s->compute.forward(s->compute.user, &batch, err);
    if (!rc) rc = kv__check_uncut(s, err);
    if (!rc && n_places) fill_captured(s, tokens, &capture, cut);
    return rc;
}

int kv__compute_deferred(
    kv_session *s, const kv_lists *lists, const uint64_t *tokens, const atomic_bool *cancel, base_err *err)
{
    work w;
    int rc = work_init(&w, s, lists, tokens, err);
    uint32_t done = 0;
    for (uint32_t i = 0; i < w.n && !rc; i++)
        rc = kv_table_make_writable(&s->table, w.tokens[i], w.tokens[i] + 1, err);
    s->draft.n = 0;
    while (!rc && done < w.n) {
        const uint32_t n = group_size(s, &w, done);
        rc = compute_group(s, &w, lists, done, n, cancel, err);
        done += n;
    }
    for (uint32_t i = 0; i < w.n; i++) {
        const uint32_t t = w.tokens[i];
        if (rc && i < done) {
            move_state(s, t, s->cut[t], w.states + (size_t)i * s->compute.n_embd, true);
        } else if (!rc) {
            s->cut[t] = 0;
            s->file_row[t] = KV_NO_ROW; /* other bytes than those on disk */
        }
    }
    kv_work_free(&w.memory);
    return rc;
}
