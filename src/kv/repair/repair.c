/*
 * Repair at a pause: the newest message or result asks, evicted rows come back (docs/kv.md, Repair;
 * RepairKV, section 3.3).
 *
 * Active and evicted rows are ordered together by a_i, the mean over the heads that count of the largest
 * mass that any of the asking queries gives row i. choose.c takes rows in that order until K rows a lane are
 * spent. Where a lane would then exceed its budget, rows leave that neither this signal nor the last pass
 * wanted. The set is one for all lanes, or one for each. Lanes of layers with a window are in none.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "kv/core/keys.h"
#include "kv/core/work.h"
#include "kv/core/parameters.h"
#include "kv/plan/apply.h"
#include "kv/plan/plan.h"
#include "kv/read/reading.h"
#include "kv/read/visit.h"
#include "kv/repair/choose.h"
#include "kv/repair/repair.h"
#include "kv/rows/bits.h"
#include "kv/session.h"

/* The choice at hand, and the masses that it is made from. */
typedef struct work {
    const kv_ask *ask;
    const atomic_bool *cancel;
    kv_work memory;
    kv_repair_work choice;
    bool each; /* lanes choose for themselves */
    kv_signal signal;
    model_run *runs; /* of the eligible rows */
    uint32_t n_runs, n_rows;
    float *mass, *keys;   /* [n_lanes][n_rows] by the signal's queries, by its keys; NULL: not asked for */
    uint32_t *weight;     /* [n_lanes] heads that count */
    float *sum;           /* [n] scratch */
    const uint8_t *heads; /* [n_layer * n_head] whose mass counts; NULL: all */
} work;

/* Queries that ask, with their tokens; keys may stand in for them. */
typedef struct asking {
    const float *queries; /* [n][n_layer][n_head][head_dim] */
    const uint32_t *tokens;
    uint32_t n;
} asking;

static void work_free(work *w)
{
    free(w->runs);
    kv_work_free(&w->memory);
    kv_signal_fini(&w->signal);
}

static bool is_active(const kv_session *s, uint32_t t)
{
    for (uint32_t lane = 0; lane < s->n_lanes; lane++)
        if (!kv__window(s, lane) && kv_bits_get(s->lists.lane[lane]->bits, t)) return true;
    return false;
}

/* Was it left below a cut by what [from, to) asked? Then the same has no more to say about it. */
static bool is_judged(const kv_session *s, uint32_t t, const kv_ask *ask)
{
    return s->cut[t] && t >= s->judged_from && t < s->judged_to && s->judged_to > ask->from &&
           s->judged_to <= ask->to;
}

static bool is_request(const kv_session *s, const kv_ask *ask)
{
    for (uint32_t t = ask->from; t < ask->to; t = kv__segment_at(s, t)->to)
        if (kv__segment_at(s, t)->origin == KV_ORIGIN_USER) return true;
    return false;
}

static int work_init(
    work *w, const kv_session *s, const kv_ask *ask, const atomic_bool *cancel, base_err *err)
{
    const size_t n = (size_t)s->n + 1, n_words = kv_bits_words(n);
    kv_work memory = {NULL};
    *w = (work){
        .ask = ask,
        .cancel = cancel,
        .each = s->parameters.lanes > 0,
        .choice =
            {
                .eligible = kv_work_zero(&memory, n_words, sizeof(uint64_t)),
                .hard = kv_work_take(&memory, n, 1),
                .previous = kv_work_take(&memory, n, sizeof(float)),
                .reasons = kv_work_take(&memory, n, 1),
                .outshone = kv_work_zero(&memory, n_words, sizeof(uint64_t)),
                .named = kv_work_zero(&memory, n_words, sizeof(uint64_t)),
                .among = ask->among,
                .quotes = ask->quotes,
                .is_request = is_request(s, ask),
                .set =
                    {
                        .missing = kv_work_zero(&memory, n, sizeof(uint32_t)),
                        .a = kv_work_take(&memory, n, sizeof(float)),
                        .mass = kv_work_take(&memory, n, sizeof(float)),
                        .order = kv_work_take(&memory, n, sizeof(uint32_t)),
                        .chosen = kv_work_zero(&memory, n_words, sizeof(uint64_t)),
                    },
            },
        .weight = kv_work_zero(&memory, s->n_lanes + 1, sizeof(uint32_t)),
        .sum = kv_work_take(&memory, n, sizeof(float)),
    };
    w->memory = memory;
    if (ask->quotes) ask->quotes->n = 0;
    for (uint32_t t = 0; ask->rank && t < s->n; t++) ask->rank[t] = UINT32_MAX;
    kv_signal_init(&w->signal, s->recent.n_layer, s->recent.n_head, s->recent.head_dim);
    kv_repair_work *c = &w->choice;
    if (memory.failed)
        return base_fail(err, BASE_E_NOMEM, "no memory to repair a session of %u tokens", s->n);
    memset(c->reasons, KV_N_REASONS, n);
    kv__protect(s, c->hard);
    for (uint32_t t = 0; t < s->n; t++) {
        c->previous[t] = s->tokens[t].previous;
        /* A lane that chooses for itself cannot ask for what has no key in it. */
        const bool askable = (!s->cut[t] || !w->each) && !is_judged(s, t, ask);
        if (t < ask->from && askable && !kv_bits_get(s->barred, t) && !kv_bits_get(s->stale, t) &&
            !kv_bits_get(s->lost, t) && (!ask->among || kv_bits_get(ask->among, t) || is_active(s, t)))
            kv_bits_set(c->eligible, t);
    }
    w->runs = kv_runs_of_bits(c->eligible, s->n, &w->n_runs, &w->n_rows);
    if (!w->runs) return base_fail(err, BASE_E_NOMEM, "no memory to repair a session of %u tokens", s->n);
    return 0;
}

/* Queries that were not kept are computed again, one pass each. */
static int recompute_signal(kv_session *s, work *w, uint32_t most, base_err *err)
{
    const kv_ask *ask = w->ask;
    const uint32_t n_named = ask->n_queries, have = n_named ? n_named : ask->to - ask->from;
    const uint32_t take = have < most ? have : most;
    float *query = malloc(kv__memory_floats(s) * sizeof *query);
    int rc = query ? 0 : base_fail(err, BASE_E_NOMEM, "no memory for the queries of a repair");
    for (uint32_t i = 0; i < take && !rc; i++) {
        const uint32_t place = (uint32_t)((uint64_t)have * (2 * i + 1) / (2 * take));
        const uint32_t token = n_named ? ask->queries[place] : ask->from + place;
        if (token < ask->from || token >= ask->to) continue;
        rc = kv__recompute(s, token, query, NULL, w->cancel, err);
        if (!rc) rc = kv_signal_add(&w->signal, &token, query, 1, most, err);
    }
    free(query);
    return rc;
}

static int find_signal(kv_session *s, work *w, base_err *err)
{
    uint32_t most = (uint32_t)s->parameters.queries;
    if (most > KV_RECENT_QUERIES) most = KV_RECENT_QUERIES;
    const int rc = kv__kept_signal(s, w->ask, most, &w->signal, err);
    return rc || w->signal.n ? rc : recompute_signal(s, w, most, err);
}

/*
 * Mass of every eligible row in the lanes that count, all lanes' softmaxes over active and host together. *ret is written
 * again where it is there.
 */
static int score_rows(kv_session *s, work *w, const asking *by, float **ret, base_err *err)
{
    const uint32_t n_lanes = s->n_lanes;
    model_lane_list *lists = kv_work_zero(&w->memory, n_lanes, sizeof *lists);
    float **mass = kv_work_zero(&w->memory, n_lanes, sizeof *mass);
    float *rows = *ret ? *ret : kv_work_take(&w->memory, (size_t)w->n_rows * n_lanes, sizeof *rows);
    if (w->memory.failed) return kv_fail_to_score(err, w->n_rows);
    for (uint32_t lane = 0; lane < n_lanes; lane++) {
        lists[lane] = (model_lane_list){.runs = w->runs, .n_runs = w->n_runs, .n_rows = w->n_rows};
        if (w->weight[lane]) mass[lane] = rows + (size_t)lane * w->n_rows;
    }
    const model_rows_view view = kv__view_of(s, lists);
    const model_score score = {
        .queries = by->queries,
        .n_queries = by->n,
        .tokens = by->tokens,
        .rows = &view,
        .pool = MODEL_POOL_MAX,
        .heads = w->heads,
        .end = s->n,
        .mass = mass,
        .cancel = w->cancel,
    };
    *ret = rows;
    return kv__score(s, &score, err);
}

/*
 * The lowest layer that some eligible row, or (where keys ask) the signal itself, is not computed in; n_layer
 * when all are. Masses are compared among rows that have them all, so no layer from there on counts.
 */
static uint32_t lowest_cut(const kv_session *s, const work *w, bool by_keys)
{
    uint32_t cut = s->compute.shape.n_layer;
    for (uint32_t t = 0; t < s->n; t++)
        if (s->cut[t] && s->cut[t] < cut && kv_bits_get(w->choice.eligible, t)) cut = s->cut[t];
    for (uint32_t i = 0; i < w->signal.n && by_keys; i++)
        if (s->cut[w->signal.tokens[i]] && s->cut[w->signal.tokens[i]] < cut)
            cut = s->cut[w->signal.tokens[i]];
    return cut;
}

/* What `order` needs: mass under the signal's queries, under its keys, or nothing. */
static int score_signal(kv_session *s, work *w, base_err *err)
{
    const uint32_t group = s->compute.n_head / s->compute.shape.n_head_kv;
    const int order = (int)s->parameters.order;
    /* Lanes that choose for themselves are all needed, whichever heads a model's calibration names. */
    w->heads = s->parameters.heads > 0 && !w->each ? s->heads : NULL;
    const uint32_t cut = lowest_cut(s, w, order == KV_ORDER_KEYS || order == KV_ORDER_FUSED);
    if (cut < s->compute.shape.n_layer) {
        const uint32_t n_heads = s->compute.shape.n_layer * s->compute.n_head;
        uint8_t *below = kv_work_take(&w->memory, n_heads, 1);
        if (!below) return kv_fail_to_score(err, w->n_rows);
        kv__heads_below(s, cut, w->heads ? KV_HEADS_BELOW : n_heads, below);
        w->heads = below;
    }
    int rc = 0;
    for (uint32_t lane = 0; lane < s->n_lanes; lane++)
        for (uint32_t g = 0; g < group && !kv__window(s, lane); g++)
            w->weight[lane] += w->heads ? w->heads[(size_t)lane * group + g] : 1;
    if (order == KV_ORDER_MASS || order == KV_ORDER_FUSED)
        rc = score_rows(s, w, &(asking){w->signal.queries, w->signal.tokens, w->signal.n}, &w->mass, err);
    if (!rc && (order == KV_ORDER_KEYS || order == KV_ORDER_FUSED)) {
        uint32_t tokens[KV_RECENT_QUERIES], n = 0;
        for (uint32_t i = 0; i < w->signal.n && n < KV_RECENT_QUERIES; i++) {
            const uint32_t t = w->signal.tokens[i];
            if (t >= w->ask->from && t < w->ask->to && !kv_bits_get(s->lost, t))
                tokens[n++] = t; /* its key may be given up */
        }
        if (!n) return base_fail(err, BASE_E_STATE, "the signal's own keys are not in this session");
        const model_rows_view view = kv__view(s);
        for (uint32_t lane = 0; lane < s->n_lanes && !rc; lane++)
            rc = kv_table_check_some(&s->table, lane, tokens, n, err);
        if (rc) return rc;
        float *keys = kv__keys_as_queries(&s->compute, &view, tokens, n);
        rc = keys ? score_rows(s, w, &(asking){keys, tokens, n}, &w->keys, err)
                  : base_fail(err, BASE_E_NOMEM, "no memory for the keys of a repair");
        free(keys);
    }
    return rc;
}

/* The set's mean over the heads that count of one kind of mass, by token; NAN where it is not eligible. */
static void mean_mass(const kv_session *s, const work *w, const float *mass, float *ret)
{
    const kv_repair_set *set = &w->choice.set;
    uint32_t total = 0;
    for (uint32_t lane = set->lane; lane < set->lane + set->n_lanes; lane++) total += w->weight[lane];
    for (uint32_t t = 0; t < s->n; t++)
        ret[t] = kv_bits_get(w->choice.eligible, t) ? 0 : NAN; /* 0: not scored */
    for (uint32_t run = 0, o = 0; run < w->n_runs; run++)
        for (uint32_t i = 0; i < w->runs[run].n; i++, o++) {
            double sum = 0;
            for (uint32_t lane = set->lane; lane < set->lane + set->n_lanes; lane++)
                if (w->weight[lane]) sum += (double)mass[(size_t)lane * w->n_rows + o] * w->weight[lane];
            ret[w->runs[run].index + i] = total ? (float)(sum / total) : NAN;
        }
}

/* Adds the rank of every token under `score` to sum, the best 0. */
static void add_ranks(kv_session *s, work *w, const float *score)
{
    kv_rank(&s->ranker, score, w->choice.previous, s->n, w->choice.set.order);
    for (uint32_t rank = 0; rank < s->n; rank++) w->sum[w->choice.set.order[rank]] += (float)rank;
}

/* Orders the eligible tokens of the set at hand. */
static void order_set(kv_session *s, work *w)
{
    kv_repair_set *set = &w->choice.set;
    const int order = (int)s->parameters.order;
    for (uint32_t t = 0; t < s->n; t++) {
        set->a[t] = NAN;
        w->sum[t] = 0;
    }
    if (order == KV_ORDER_RANDOM || order == KV_ORDER_OLDEST) {
        for (uint32_t t = 0; t < s->n; t++) {
            const uint32_t key[] = {set->lane, t};
            if (!kv_bits_get(w->choice.eligible, t)) continue;
            set->a[t] = order == KV_ORDER_OLDEST ? -(float)t : (float)(base_hash64(key, sizeof key, 1) >> 40);
        }
        memcpy(set->mass, set->a, s->n * sizeof *set->a);
    } else {
        mean_mass(s, w, order == KV_ORDER_KEYS ? w->keys : w->mass, set->mass);
        memcpy(set->a, set->mass, s->n * sizeof *set->a);
    }
    if (order == KV_ORDER_FUSED) {
        add_ranks(s, w, set->mass);
        mean_mass(s, w, w->keys, set->a);
        add_ranks(s, w, set->a);
        for (uint32_t t = 0; t < s->n; t++) set->a[t] = kv_bits_get(w->choice.eligible, t) ? -w->sum[t] : NAN;
    }
    /* What is not eligible is NAN, so it comes last. */
    kv_rank(&s->ranker, set->a, w->choice.previous, s->n, set->order);
    set->n_order = kv_bits_count(w->choice.eligible, kv_bits_words(s->n));
}

/* The best row by one name's queries, the signal's [from, to), where it answers that name clearly; comes: it comes back for that. */
static int find_named_row(
    kv_session *s, work *w, uint32_t from, uint32_t to, bool comes, float **mass, base_err *err)
{
    const kv_repair_set *set = &w->choice.set;
    uint32_t places[KV_RECENT_QUERIES];
    kv_signal name;
    for (uint32_t i = from; i < to; i++) places[i - from] = i;
    int rc = kv_signal_pick(&w->signal, places, to - from, &name, err);
    if (!rc) rc = score_rows(s, w, &(asking){name.queries, name.tokens, name.n}, mass, err);
    if (!rc) {
        uint32_t best = set->order[0];
        mean_mass(s, w, *mass, w->sum);
        for (uint32_t i = 0; i < set->n_order; i++)
            if (w->sum[set->order[i]] > w->sum[best]) best = set->order[i];
        if (kv__repair_is_clear(s, &w->choice, w->sum, best)) {
            if (comes) kv_bits_set(w->choice.named, best);
            kv__note_quote(s, &w->choice, w->sum, best);
        }
    }
    kv_signal_fini(&name);
    return rc;
}

/*
 * Where a request names several words (each a run of its tokens): what each asks for by itself. Where the whole is clear that
 * comes back; where it is not, since words beside a name look at the sinks, it is only quoted.
 */
static int find_named(kv_session *s, work *w, base_err *err)
{
    const kv_repair_work *c = &w->choice;
    const kv_signal *by = &w->signal;
    float *mass = NULL;
    int rc = 0;
    const bool is_clear = kv__repair_is_clear(s, c, c->set.mass, c->set.order[0]);
    if (w->each || !s->parameters.focus || (!is_clear && !kv__may_quote(s, c))) return 0;
    for (uint32_t from = 0, to; from < by->n && !rc; from = to) {
        uint32_t end = by->tokens[from]; /* of the word */
        for (uint32_t q = 0; q < w->ask->n_queries; q++) end += w->ask->queries[q] == end;
        for (to = from + 1; to < by->n && by->tokens[to] < end;) to++;
        if (to - from < by->n) rc = find_named_row(s, w, from, to, is_clear, &mass, err);
    }
    if (!rc && is_clear) kv__note_quotes(s, c);
    return rc;
}

/* Where a lane would exceed its budget: rows that this signal and the last pass want least leave it. */
static int make_room(kv_session *s, work *w, kv_plan *p, base_err *err)
{
    const kv_repair_set *set = &w->choice.set;
    const uint32_t n_words = kv_plan_words(p);
    /* Room for the answer that begins now: a repair that fills its lanes would call the next pass at once. */
    const uint32_t most = s->budget - kv__visitors(s),
                   limit = most - (uint32_t)(most * (1 - s->parameters.low) / 2);
    uint32_t *order = malloc(((size_t)s->n + 1) * sizeof *order);
    if (!order) return base_fail(err, BASE_E_NOMEM, "no memory to rank %u rows", s->n);
    for (uint32_t t = 0; t < s->n; t++) w->sum[t] = -INFINITY;
    for (uint32_t rank = 0; rank < set->n_order; rank++)
        w->sum[set->order[rank]] = -(float)rank / (float)set->n_order + w->choice.previous[set->order[rank]];
    kv_rank(&s->ranker, w->sum, NULL, s->n, order);
    for (uint32_t lane = set->lane; lane < set->lane + set->n_lanes; lane++) {
        if (kv__window(s, lane)) continue;
        uint64_t *flips = p->flips + (size_t)lane * n_words;
        const uint64_t *active = s->lists.lane[lane]->bits;
        const uint32_t n_up = kv_bits_count(flips, n_words), after = s->lists.view[lane].n_rows + n_up;
        uint32_t excess = n_up && after > limit ? after - limit : 0;
        for (uint32_t i = s->n; i-- > 0 && excess;) {
            const uint32_t t = order[i];
            if (t >= w->ask->from || w->choice.hard[t] || !kv_bits_get(active, t) ||
                kv_bits_get(set->chosen, t))
                continue;
            kv_bits_set(flips, t);
            excess--;
        }
        /* Where nothing more may leave, what exceeds the budget is not promoted, the last anchors first. */
        const uint32_t spare = most - limit;
        excess = excess > spare ? excess - spare : 0;
        for (uint32_t i = s->n; i-- > 0 && excess;)
            if (!kv_bits_get(active, order[i]) && kv_bits_get(flips, order[i])) {
                kv_bits_clear(flips, order[i]);
                excess--;
            }
    }
    free(order);
    return 0;
}

/*
 * In how many of the set's lanes each token is not active; a refresh chooses all of its rows anew. Lanes are
 * counted for 64 tokens at once: bit i of digits[d] is digit d of token i's count.
 */
static uint64_t count_missing(const kv_session *s, kv_repair_work *w)
{
    enum { DIGITS = 32 };
    const bool anew = s->parameters.pick == KV_PICK_REFRESH;
    uint64_t active = 0;
    for (uint32_t first = 0; first < s->n; first += 64) {
        const size_t word = first / 64;
        const uint32_t n = s->n - first < 64 ? s->n - first : 64;
        const uint64_t may_come = kv_bits_mask(word, 0, s->n) & (w->among ? w->among[word] : ~UINT64_C(0));
        uint64_t digits[DIGITS] = {0}, soft = 0;
        int n_digits = 0;
        for (uint32_t i = 0; i < n; i++) soft |= (uint64_t)!w->hard[first + i] << i;
        for (uint32_t lane = w->set.lane; lane < w->set.lane + w->set.n_lanes; lane++) {
            if (kv__window(s, lane)) continue;
            const uint64_t reads = s->lists.lane[lane]->bits[word];
            uint64_t carry = (~reads & may_come) | (anew ? reads & soft : 0);
            for (int d = 0; carry; d++) {
                const uint64_t next = digits[d] & carry;
                digits[d] ^= carry;
                carry = next;
                if (d >= n_digits) n_digits = d + 1;
            }
            active += kv_bits_count_word(reads & soft & w->eligible[word]);
        }
        for (uint32_t i = 0; i < n; i++) {
            w->set.missing[first + i] = 0;
            for (int d = 0; d < n_digits; d++)
                w->set.missing[first + i] += (uint32_t)(digits[d] >> i & 1) << d;
        }
    }
    return active;
}

/* How many evicted rows come before each; of several sets' orders the best. */
static void note_ranks(const kv_session *s, work *w)
{
    const kv_repair_set *set = &w->choice.set;
    for (uint32_t i = 0, n = 0; i < set->n_order; i++) {
        const uint32_t t = set->order[i];
        if (n < w->ask->rank[t]) w->ask->rank[t] = n;
        for (uint32_t lane = set->lane; lane < set->lane + set->n_lanes; lane++)
            if (!kv__window(s, lane) && !kv_bits_get(s->lists.lane[lane]->bits, t)) {
                n++;
                break;
            }
    }
}

/* How many rows of a lane may come back. */
static uint32_t rows_of(const kv_session *s)
{
    if (s->repair >= 0) return (uint32_t)s->repair;
    return s->budget ? (s->budget + 3) / 4 : 256;
}

static int plan_set(kv_session *s, work *w, kv_plan *p, base_err *err)
{
    kv_repair_set *set = &w->choice.set;
    const uint32_t n_words = kv_plan_words(p);
    const bool anew = s->parameters.pick == KV_PICK_REFRESH;
    const uint64_t active = count_missing(s, &w->choice);
    uint64_t room = (uint64_t)rows_of(s) * (w->each ? 1 : s->n_whole);
    if (anew) room += active;
    memset(set->chosen, 0, n_words * sizeof *set->chosen);
    order_set(s, w);
    if (w->ask->rank) note_ranks(s, w);
    const int rc = find_named(s, w, err);
    if (rc) return rc;
    kv__repair_choose(s, &w->choice, room);
    for (uint32_t lane = set->lane; lane < set->lane + set->n_lanes; lane++)
        for (uint32_t word = 0; word < n_words && !kv__window(s, lane); word++) {
            const uint64_t active_bits = s->lists.lane[lane]->bits[word];
            uint64_t *flips = &p->flips[(size_t)lane * n_words + word];
            *flips = set->chosen[word] & ~active_bits;
            if (anew)
                for (uint64_t gone = active_bits & w->choice.eligible[word] & ~set->chosen[word]; gone;
                     gone &= gone - 1) {
                    const uint32_t t = word * 64 + (uint32_t)__builtin_ctzll(gone);
                    if (!w->choice.hard[t]) *flips |= UINT64_C(1) << t % 64;
                }
        }
    return s->budget && !anew ? make_room(s, w, p, err) : 0;
}

/* Are all rows of [from, n) readable, so that they can be computed again? */
static bool all_active(const kv_session *s, uint32_t from)
{
    for (uint32_t lane = 0; lane < s->n_lanes; lane++)
        if (kv_bits_next(s->lists.lane[lane]->bits, from, s->n, false) < s->n) return false;
    return true;
}

/* Does something come back that the message's tokens could not read as visitors while they were computed? */
static bool brings_unvisited(const kv_session *s, const kv_plan *p)
{
    if (!kv__visitors(s)) return true;
    for (uint32_t k = 0; k < p->n_runs; k++)
        for (uint32_t t = p->runs[k].from; t < p->runs[k].to && p->runs[k].action == KV_PROMOTE; t++)
            if (s->cut[t] || s->table.packed[t / MODEL_ROWS_BLOCK]) return true;
    return false;
}

/*
 * Whether the message is computed again over what comes back: its own rows were made without, and an answer that needs
 * several facts is wrong then. Tokens that visited it lose nothing in a single answer, but over a row of questions
 * (docs/diary.md, "A message is computed once").
 */
static bool may_replay(const kv_session *s, const kv_plan *p, const kv_ask *ask)
{
    const kv_parameters *set = &s->parameters;
    const int signal = (int)set->signal;
    return signal != KV_SIGNAL_REUSE && ask->to == s->n &&
           (set->again <= 0 || ask->to - ask->from <= set->again) && !kv_plan_is_empty(p) &&
           all_active(s, ask->from) && (signal == KV_SIGNAL_REPLAY || brings_unvisited(s, p));
}

/* A plan of its own behind one that computes rows: a cancel between them leaves what the log says. */
static int replay_alone(kv_session *s, uint32_t from, const atomic_bool *cancel, base_err *err)
{
    kv_plan *p = kv_plan_new(s->epoch, KV_CAUSE_REPAIR, s->n, s->n_lanes);
    if (!p) return base_fail(err, BASE_E_NOMEM, "no memory for a plan over %u rows", s->n);
    p->replay_from = from;
    const int rc = kv__apply(s, p, false, cancel, err);
    kv_plan_free(p);
    return rc;
}

/* What this repair outshone takes the place of what the last one did. */
static int flip_outshone(const kv_session *s, const work *w, kv_plan *p, base_err *err)
{
    const size_t n_words = kv_plan_words(p);
    if (!memcmp(s->outshone, w->choice.outshone, n_words * sizeof *s->outshone)) return 0;
    p->outshone = calloc(n_words, sizeof *p->outshone);
    if (!p->outshone) return base_fail(err, BASE_E_NOMEM, "no memory for a plan over %u rows", s->n);
    for (size_t i = 0; i < n_words; i++) p->outshone[i] = s->outshone[i] ^ w->choice.outshone[i];
    return 0;
}

static int plan_repair(kv_session *s, work *w, double score_ms, base_err *err)
{
    const uint64_t start = base_clock_ns();
    const uint32_t each = w->each ? 1 : s->n_lanes;
    if (kv_ranker_reserve(&s->ranker, s->n))
        return base_fail(err, BASE_E_NOMEM, "no memory to rank %u rows", s->n);
    kv_plan *p = kv_plan_new(s->epoch, KV_CAUSE_REPAIR, s->n, s->n_lanes);
    if (!p) return base_fail(err, BASE_E_NOMEM, "no memory for a plan over %u rows", s->n);
    int rc = 0;
    for (uint32_t lane = 0; lane < s->n_lanes && !rc; lane += each) {
        if (w->each && kv__window(s, lane)) continue;
        w->choice.set.lane = lane;
        w->choice.set.n_lanes = each;
        rc = plan_set(s, w, p, err);
    }
    if (!rc) rc = flip_outshone(s, w, p, err);
    if (!rc) {
        kv__describe_flips(s, p, w->choice.reasons, KV_REASON_BUDGET, KV_REASON_REPAIR_BURST);
        const bool again = may_replay(s, p, w->ask), alone = again && kv__plan_computes(s, p);
        if (again && !alone) p->replay_from = w->ask->from;
        p->score_ms = score_ms;
        p->plan_ms = (double)(base_clock_ns() - start) / 1e6;
        s->score_ms += p->score_ms;
        s->plan_ms += p->plan_ms;
        rc = kv__apply(s, p, true, w->cancel, err);
        if (!rc && alone) rc = replay_alone(s, w->ask->from, w->cancel, err);
    }
    kv_plan_free(p);
    return rc;
}

static bool anything_missing(const kv_session *s, const uint64_t *eligible)
{
    for (uint32_t lane = 0; lane < s->n_lanes; lane++)
        for (size_t word = 0; word < kv_bits_words(s->n) && !kv__window(s, lane); word++)
            if (eligible[word] & ~s->lists.lane[lane]->bits[word]) return true;
    return false;
}

int kv_session_repair(kv_session *s, const kv_ask *ask, const atomic_bool *cancel, base_err *err)
{
    if (ask->from >= ask->to || ask->to > s->n)
        return base_fail(
            err, BASE_E_USAGE, "tokens %u to %u are not in this session of %u", ask->from, ask->to, s->n);
    if (!s->repair || !ask->from || s->lists.n_tokens == 0) return 0;
    work w;
    int rc = work_init(&w, s, ask, cancel, err);
    if (!rc && anything_missing(s, w.choice.eligible)) {
        const uint64_t start = base_clock_ns();
        rc = ask->signal ? kv_signal_copy(&w.signal, ask->signal, err) : find_signal(s, &w, err);
        if (!rc && w.signal.n) {
            rc = score_signal(s, &w, err);
            const double ms = (double)(base_clock_ns() - start) / 1e6;
            if (!rc) rc = plan_repair(s, &w, ms, err);
        }
    }
    work_free(&w);
    return rc;
}
