/*
 * The first pass of a repair (first=SHARE). Bounds of each section under the asking queries say how much
 * mass its rows can have at most. Only rows of the best sections are scored exactly; the others count in the
 * denominators by their bounds. A row may be left out that would have been wanted, so it is off by default
 * (kv_session_first_recall counts how often).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kv/read/reading.h"
#include "kv/core/work.h"
#include "kv/read/sections.h"

/* What a first pass works on. */
typedef struct pass {
    float *bound, *kept; /* [n_head][n_queries][n] of a layer; [heads that count][n_queries][n] */
    uint32_t *n_rows;    /* [n] tokens of each section that are asked about */
    double *share;       /* [n] a row's largest share of a head's mass, summed over heads */
    float *score;
    uint32_t *order;
    uint8_t *exact; /* [n] the section's rows are scored */
} pass;

static bool counts_in(const uint8_t *heads, uint32_t n_head, uint32_t layer, uint32_t head)
{
    return !heads || heads[(size_t)layer * n_head + head];
}

/*
 * Adds what one head's bounds say: of each section, the largest share over the queries that one of its rows
 * may have.
 */
static void add_shares(pass *p, const float *bound, uint32_t n_queries, uint32_t n)
{
    double *best = base_xcalloc(n, sizeof *best);
    for (uint32_t q = 0; q < n_queries; q++, bound += n) {
        double sum = 0;
        float most = -INFINITY;
        for (uint32_t k = 0; k < n; k++)
            if (p->n_rows[k] && bound[k] > most) most = bound[k];
        for (uint32_t k = 0; k < n; k++) sum += p->n_rows[k] * (double)expf(bound[k] - most);
        for (uint32_t k = 0; k < n; k++) {
            const double share = p->n_rows[k] ? (double)expf(bound[k] - most) / sum : 0;
            if (share > best[k]) best[k] = share;
        }
    }
    for (uint32_t k = 0; k < n; k++) p->share[k] += best[k];
    free(best);
}

/* log of the sum over rows that are not scored of exp(their section's bound). */
static float rest_of(const pass *p, const float *bound, uint32_t n)
{
    float most = -INFINITY;
    double sum = 0;
    for (uint32_t k = 0; k < n; k++)
        if (p->n_rows[k] && !p->exact[k] && bound[k] > most) most = bound[k];
    for (uint32_t k = 0; k < n; k++)
        if (!p->exact[k]) sum += p->n_rows[k] * (double)expf(bound[k] - most);
    return sum > 0 ? most + (float)log(sum) : -INFINITY;
}

/* Bounds of all heads that count, kept behind one another, and the sections' shares. */
static int bound_heads(kv_reading *r, pass *p, const kv_signal *queries, const uint8_t *heads,
    const atomic_bool *cancel, base_err *err)
{
    const kv_compute *c = &r->session->compute;
    const size_t n_of_head = (size_t)queries->n * r->n;
    float *kept = p->kept;
    for (uint32_t layer = 0; layer < c->shape.n_layer; layer++) {
        uint32_t n_counted = 0;
        for (uint32_t head = 0; head < c->n_head; head++)
            n_counted += counts_in(heads, c->n_head, layer, head);
        if (!n_counted) continue;
        kv__reading_profiles(r, layer);
        int rc = c->bound(c->user,
            &(model_bound){.profiles = &r->profile_view,
                .layer = layer,
                .n_sections = r->n,
                .n_queries = queries->n,
                .queries = queries->queries,
                .bound = p->bound,
                .cancel = cancel},
            err);
        if (rc) return rc;
        for (uint32_t head = 0; head < c->n_head; head++) {
            if (!counts_in(heads, c->n_head, layer, head)) continue;
            memcpy(kept, p->bound + head * n_of_head, n_of_head * sizeof *kept);
            add_shares(p, kept, queries->n, r->n);
            kept += n_of_head;
        }
    }
    return 0;
}

/*
 * Sections by their shares until so many tokens are scored; those with a row that their profile does not know
 * always are.
 */
static void choose_exact(kv_reading *r, pass *p, uint32_t n_exact)
{
    const kv_session *s = r->session;
    uint32_t n = 0;
    for (uint32_t k = 0; k < r->n; k++) {
        bool unknown = false;
        for (uint32_t t = kv__section_from(r, k); t < r->to[k] && p->n_rows[k]; t++)
            unknown = unknown || !s->table.rows[t / MODEL_ROWS_BLOCK] || s->cut[t];
        p->exact[k] = unknown;
        if (unknown) n += p->n_rows[k];
        p->score[k] = (float)p->share[k];
    }
    kv_rank(&r->session->ranker, p->score, NULL, r->n, p->order);
    for (uint32_t i = 0; i < r->n && n < n_exact; i++) {
        const uint32_t k = p->order[i];
        if (p->exact[k]) continue;
        p->exact[k] = 1;
        n += p->n_rows[k];
    }
}

int kv__first_pass(kv_session *s, const kv_signal *queries, const uint8_t *heads, double share,
    uint64_t *tokens, float *rest, const atomic_bool *cancel, base_err *err)
{
    const uint32_t n_head = s->compute.n_head, n_all = s->compute.shape.n_layer * n_head;
    int rc = s->reading ? 0 : kv__reading_make(s, err);
    if (!rc) rc = kv__reading_update(s->reading, NULL, s->n, 0, err);
    if (rc) return rc;
    kv_reading *r = s->reading;
    for (size_t i = 0; i < (size_t)n_all * queries->n; i++) rest[i] = -INFINITY;
    if (!r->n) return 0;
    uint32_t n_counted = 0;
    for (uint32_t i = 0; i < n_all; i++) n_counted += !heads || heads[i];
    const size_t n_of_head = (size_t)queries->n * r->n;
    kv_work memory = {NULL};
    pass p = {.bound = kv_work_take(&memory, n_head * n_of_head, sizeof(float)),
        .kept = kv_work_take(&memory, n_counted * n_of_head, sizeof(float)),
        .n_rows = kv_work_zero(&memory, r->n, sizeof(uint32_t)),
        .share = kv_work_zero(&memory, r->n, sizeof(double)),
        .score = kv_work_zero(&memory, r->n, sizeof(float)),
        .order = kv_work_zero(&memory, r->n, sizeof(uint32_t)),
        .exact = kv_work_zero(&memory, r->n, 1)};
    if (memory.failed || kv_ranker_reserve(&s->ranker, r->n))
        rc = base_fail(err, BASE_E_NOMEM, "no memory for the bounds of %u sections", r->n);
    for (uint32_t k = 0; k < r->n && !rc; k++)
        p.n_rows[k] = kv_bits_count_range(tokens, kv__section_from(r, k), r->to[k]);
    if (!rc) rc = bound_heads(r, &p, queries, heads, cancel, err);
    if (!rc) {
        const uint32_t n = kv_bits_count(tokens, kv_bits_words(s->n));
        choose_exact(r, &p, (uint32_t)(share * n) + 1);
        const float *kept = p.kept;
        for (uint32_t i = 0; i < n_all; i++)
            for (uint32_t q = 0; q < queries->n && (!heads || heads[i]); q++, kept += r->n)
                rest[(size_t)i * queries->n + q] = rest_of(&p, kept, r->n);
        for (uint32_t k = 0; k < r->n; k++)
            if (!p.exact[k]) kv_bits_clear_range(tokens, kv__section_from(r, k), r->to[k]);
    }
    kv_work_free(&memory);
    return rc;
}
