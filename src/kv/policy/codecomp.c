/*
 * codecomp (docs/kv.md, Structure; CodeComp, sections 4.2 to 4.5). The rows that hard protection leaves are
 * shared among chunks by their program structure. Inside a chunk first protected spans choose, then spans by
 * score, then mass or nearness, with one set for all lanes of a layer. A segment (an excerpt, a tool's
 * result, an answer) is a chunk, split before signatures when it is long; one without marks has a plain
 * share.
 *
 * Mass is that of the chunk's own pass where there was one (lab/probe.c), else of the request's queries over
 * all live rows. The choice is written as scores (chosen rows above all others), so that targets and plans
 * stay evict/select.c's.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kv/core/state.h"
#include "kv/core/work.h"
#include "kv/policy/policy.h"
#include "kv/policy/structure.h"

enum { LEAST_CHUNK = 128, GOOD_CHUNK = 512, MOST_CHUNK = 4096 };

typedef struct chunk {
    uint32_t from, to; /* tokens */
    const kv_stored_segment *part;
    double sigma; /* NAN: nothing in it is marked */
} chunk;

/* Everything that one pass needs. [n]: tokens. */
typedef struct work {
    kv_work memory;
    chunk *chunks;
    uint32_t n_chunks;
    size_t cap_chunks;
    kv_chunk_span *spans;
    kv_span *merged;    /* [spans of a segment] with `merge`: the chunk's, grown together */
    float *mass;        /* [n] of one layer, mean over its lanes */
    float *live;        /* [n] of the rows to choose among */
    float *scratch;     /* [n] */
    uint32_t *place;    /* [n + 1] how many rows to choose among lie before a token */
    uint32_t *ordinals; /* [n] of the rows to choose among */
    uint32_t *n_rows, *budgets;
    double *sigma;
    uint8_t *chosen, *why;
} work;

static double score_chunk(const kv_parameters *p, const kv_stored_segment *part, uint32_t from, uint32_t to)
{
    kv_chunk_counts c = {.n_tokens = to - from};
    bool is_marked = false;
    for (uint32_t i = 0; i < part->n_spans; i++) {
        const kv_span *s = &part->spans[i];
        if (part->from + s->from < from || part->from + s->from >= to || !s->marks) continue;
        is_marked = true;
        c.n_flow += s->n_flow;
        c.n_dependence += s->n_dependence;
        if (!(s->marks & KV_MARK_CORE)) continue; /* each anchor has one */
        c.n_calls += (s->marks & KV_MARK_CALL) != 0;
        c.n_controls += (s->marks & KV_MARK_CONTROL) != 0;
        c.n_returns += (s->marks & KV_MARK_RETURN) != 0;
        c.n_assigns += (s->marks & KV_MARK_ASSIGN) != 0;
    }
    return is_marked ? kv_chunk_score(p, &c) : NAN;
}

static int add_chunk(
    work *w, const kv_parameters *p, const kv_stored_segment *part, uint32_t from, uint32_t to)
{
    if (w->n_chunks == w->cap_chunks) {
        const size_t cap = w->cap_chunks ? 2 * w->cap_chunks : 64;
        chunk *chunks = realloc(w->chunks, cap * sizeof *chunks);
        if (!chunks) return BASE_E_NOMEM;
        w->chunks = chunks;
        w->cap_chunks = cap;
    }
    w->chunks[w->n_chunks++] =
        (chunk){.from = from, .to = to, .part = part, .sigma = score_chunk(p, part, from, to)};
    return 0;
}

/*
 * Where the chunk that begins at `from` ends: before the signature behind which it would be longer than good.
 */
static uint32_t end_of_chunk(const kv_stored_segment *part, uint32_t from)
{
    uint32_t end = part->to - from > MOST_CHUNK ? from + MOST_CHUNK : part->to, best = end;
    if (end - from <= GOOD_CHUNK) return end;
    for (uint32_t i = 0; i < part->n_spans; i++) {
        const kv_span *s = &part->spans[i];
        const uint32_t at = part->from + s->from;
        if (!(s->marks & KV_MARK_SIGNATURE) || at < from + LEAST_CHUNK || at >= end) continue;
        if (at - from <= GOOD_CHUNK || best == end) best = at;
        if (at - from > GOOD_CHUNK) break;
    }
    return part->to - best < LEAST_CHUNK ? end : best;
}

static int find_chunks(work *w, const kv_pass *pass)
{
    int rc = 0;
    for (size_t i = 0; i < pass->n_segments && !rc; i++) {
        const kv_stored_segment *part = &pass->segments[i];
        for (uint32_t at = part->from; at < part->to && !rc;) {
            const uint32_t end = end_of_chunk(part, at);
            rc = add_chunk(w, pass->parameters, part, at, end);
            at = end;
        }
    }
    return rc;
}

static int work_init(work *w, const kv_pass *pass)
{
    const size_t n = (size_t)pass->lists->n_tokens + 1;
    size_t n_spans = 0;
    *w = (work){.n_chunks = 0};
    for (size_t i = 0; i < pass->n_segments; i++) n_spans += pass->segments[i].n_spans;
    if (find_chunks(w, pass)) return BASE_E_NOMEM;
    w->spans = kv_work_take(&w->memory, n_spans + 1, sizeof *w->spans);
    w->merged = kv_work_take(&w->memory, n_spans + 1, sizeof *w->merged);
    w->mass = kv_work_take(&w->memory, n, sizeof *w->mass);
    w->live = kv_work_take(&w->memory, n, sizeof *w->live);
    w->scratch = kv_work_take(&w->memory, n, sizeof *w->scratch);
    w->place = kv_work_take(&w->memory, n, sizeof *w->place);
    w->ordinals = kv_work_take(&w->memory, n, sizeof *w->ordinals);
    w->n_rows = kv_work_take(&w->memory, w->n_chunks + 1, sizeof *w->n_rows);
    w->budgets = kv_work_take(&w->memory, w->n_chunks + 1, sizeof *w->budgets);
    w->sigma = kv_work_take(&w->memory, w->n_chunks + 1, sizeof *w->sigma);
    w->chosen = kv_work_take(&w->memory, n, 1);
    w->why = kv_work_take(&w->memory, n, 1);
    return w->memory.failed ? BASE_E_NOMEM : 0;
}

/* The layer's mass by token: of the chunk's own pass if there was one, else the mean of its lanes. */
static void merge_mass(work *w, const kv_pass *pass, uint32_t layer)
{
    const uint32_t n_lanes = pass->compute->shape.n_head_kv, n = pass->lists->n_tokens;
    for (uint32_t t = 0; t < n; t++) w->mass[t] = 0;
    for (uint32_t lane = layer * n_lanes; lane < (layer + 1) * n_lanes; lane++) {
        const model_lane_list *list = &pass->lists->view[lane];
        for (uint32_t r = 0, o = 0; r < list->n_runs; r++)
            for (uint32_t i = 0; i < list->runs[r].n; i++, o++) {
                const float mass = pass->score[lane][o];
                if (mass == mass) w->mass[list->runs[r].index + i] += mass / (float)n_lanes;
            }
    }
    for (size_t i = 0; i < pass->n_segments; i++) {
        const kv_stored_segment *part = &pass->segments[i];
        const uint32_t length = part->to - part->from;
        if (part->mass && length <= part->n_mass)
            memcpy(w->mass + part->from, part->mass + (size_t)layer * part->n_mass, length * sizeof *w->mass);
    }
}

/* out[i] = mean of in[i - half .. i + half], clipped at the ends. */
static void pool_mean(const float *in, float *out, uint32_t n, uint32_t half)
{
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t from = i > half ? i - half : 0, to = n - i > half + 1 ? i + half + 1 : n;
        double sum = 0;
        for (uint32_t k = from; k < to; k++) sum += in[k];
        out[i] = (float)(sum / (to - from));
    }
}

/* The chunk's anchors, grown together; into w->merged. */
static uint32_t merge_spans(work *w, const chunk *c, uint32_t gap)
{
    const kv_stored_segment *part = c->part;
    uint32_t n = 0;
    for (uint32_t i = 0; i < part->n_spans; i++) {
        const kv_span *s = &part->spans[i];
        if (s->marks && part->from + s->from >= c->from && part->from + s->from < c->to) w->merged[n++] = *s;
    }
    return kv_spans_merge(
        w->merged, n, part->lines, part->n_lines, gap, c->from - part->from, c->to - part->from);
}

/* The chunk's spans as ordinals of the rows to choose among that are its own. */
static uint32_t find_spans(work *w, const kv_pass *pass, const chunk *c, const float *mass)
{
    const kv_parameters *p = pass->parameters;
    const uint32_t first = w->place[c->from], last = w->place[c->to];
    const float median = kv_median(mass, last - first, w->scratch);
    const bool merges = p->merge > 0 && c->part->n_lines;
    const uint32_t n_spans = merges ? merge_spans(w, c, (uint32_t)p->merge) : c->part->n_spans;
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_spans; i++) {
        const kv_span *s = merges ? &w->merged[i] : &c->part->spans[i];
        uint32_t from = c->part->from + s->from, to = c->part->from + s->to;
        if (from < c->from || from >= c->to || !s->marks) continue;
        if (to > c->to) to = c->to;
        from = w->place[from] - first;
        to = w->place[to] - first;
        if (from >= to) continue;
        double sum = 0;
        for (uint32_t k = from; k < to; k++) sum += mass[k];
        w->spans[n++] = (kv_chunk_span){.from = from,
            .to = to,
            .score = kv_span_score(p, s, sum / (to - from) > (double)median),
            .is_protected = kv_span_is_protected(p, s),
            .reason = kv_span_reason(p, s)};
    }
    return n;
}

static int choose_lane(work *w, kv_pass *pass, uint32_t lane)
{
    const kv_parameters *p = pass->parameters;
    const model_lane_list *list = &pass->lists->view[lane];
    uint32_t n = 0, n_hard = 0, t = 0;
    float *score = pass->score[lane];
    for (uint32_t r = 0, o = 0; r < list->n_runs; r++)
        for (uint32_t i = 0; i < list->runs[r].n; i++, o++) {
            const uint32_t token = list->runs[r].index + i;
            for (; t <= token; t++) w->place[t] = n;
            if (pass->hard[token])
                n_hard++;
            else {
                w->live[n] = w->mass[token];
                w->ordinals[n++] = o;
            }
        }
    for (; t <= pass->lists->n_tokens; t++) w->place[t] = n;
    const uint32_t target = kv_pass_target(p, pass->budget, n_hard);
    for (uint32_t c = 0; c < w->n_chunks; c++) {
        w->n_rows[c] = w->place[w->chunks[c].to] - w->place[w->chunks[c].from];
        w->sigma[c] = w->n_rows[c] ? w->chunks[c].sigma : NAN;
    }
    kv_chunk_budgets(p, w->sigma, w->n_rows, w->n_chunks, target > n_hard ? target - n_hard : 0, w->budgets);
    for (uint32_t o = 0; o < list->n_rows; o++) score[o] = 0;
    for (uint32_t c = 0; c < w->n_chunks; c++) {
        const uint32_t first = w->place[w->chunks[c].from], n_rows = w->n_rows[c];
        if (!n_rows) continue;
        float *mass = w->live + first;
        memcpy(w->scratch, mass, n_rows * sizeof *mass);
        pool_mean(w->scratch, mass, n_rows, (uint32_t)p->kernel / 2);
        const uint32_t n_spans = find_spans(w, pass, &w->chunks[c], mass);
        int r = kv_chunk_choose(p, w->spans, n_spans, mass, n_rows, w->budgets[c], w->chosen, w->why);
        if (r) return r;
        for (uint32_t i = 0; i < n_rows; i++) {
            const uint32_t o = w->ordinals[first + i];
            score[o] = (w->chosen[i] ? 1.0f : 0.0f) + mass[i] / (1 + mass[i]);
            w->chosen[i] = w->chosen[i] && w->why[i] != KV_NO_SPAN;
        }
        for (uint32_t i = 0, token = w->chunks[c].from; i < n_rows; token++)
            if (w->place[token] == first + i && w->place[token + 1] > first + i) {
                if (w->chosen[i]) {
                    pass->kept[token]++;
                    pass->kept_reason[token] = w->why[i];
                }
                i++;
            }
    }
    return 0;
}

static int score(kv_pass *pass, base_err *err)
{
    const uint32_t n_lanes = pass->compute->shape.n_head_kv;
    int rc = pass->request->n ? kv_pass_mass(pass, pass->request->queries, pass->request->tokens,
                                    pass->request->n, pass->score, err)
                              : kv_pass_newest(pass, err); /* nobody asked anything yet */
    if (rc) return rc;
    work w;
    rc = work_init(&w, pass);
    for (uint32_t layer = 0; layer < pass->compute->shape.n_layer && !rc; layer++) {
        merge_mass(&w, pass, layer);
        for (uint32_t t = 0; t < pass->lists->n_tokens; t++) {
            float *sum = &pass->attention[t];
            *sum = (*sum == *sum ? *sum : 0) + w.mass[t] * (float)n_lanes;
        }
        for (uint32_t i = 0; i < n_lanes && !rc; i++) rc = choose_lane(&w, pass, layer * n_lanes + i);
    }
    free(w.chunks);
    kv_work_free(&w.memory);
    return rc ? base_fail(err, BASE_E_NOMEM, "no memory to choose among %u rows", pass->lists->n_tokens) : 0;
}

const kv_policy kv_policy_codecomp = {
    .info = {"codecomp",
        "excerpts computed each by itself; budgets and spans by program "
        "structure, the rest by mass, a set a layer (CodeComp, 2026)",
        "low sinks window hard w kernel span merge alloc fill local",
        "CodeComp, sections 4.2 to 4.5; what the paper does not give: docs/kv.md"},
    .score = score,
    .defaults = {KV_COMMON_DEFAULTS, KV_READING_DEFAULTS, KV_STRUCTURE_DEFAULTS, KV_PRUNE_DEFAULTS,
        .low = .875, .window = 32, .kernel = 5, .sinks = 4, .hard = 1, .local = 1},
};
