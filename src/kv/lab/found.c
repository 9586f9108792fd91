/* Which of the rows that fit the last token best it visited, by a second pass and the exact keys of all rows. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kv/lab/lab.h"
#include "kv/plan/walk.h"
#include "kv/read/visit.h"

/* A reader that keeps what each lane could choose from and what it chose; the next layer writes over both. */
typedef struct keeper {
    const model_reader *reader;
    uint32_t layer, per_layer; /* per_layer: lanes */
    size_t n_words;
    uint64_t *evicted, *chosen; /* [n_lanes][n_words] bits */
} keeper;

static int keep_visit(void *user, uint32_t layer, model_visit *ret, base_err *err)
{
    keeper *k = user;
    k->layer = layer;
    return k->reader->visit(k->reader->user, layer, ret, err);
}

static int keep_visited(void *user, const model_visit *of, base_err *err)
{
    keeper *k = user;
    for (uint32_t h = 0; h < k->per_layer; h++) {
        const size_t at = (k->layer * k->per_layer + h) * k->n_words;
        memset(k->evicted + at, 0, k->n_words * sizeof *k->evicted);
        memset(k->chosen + at, 0, k->n_words * sizeof *k->chosen);
        if (!of->evicted[h]) continue;
        memcpy(k->evicted + at, of->evicted[h], kv_bits_words(of->n_slots) * sizeof *k->evicted);
        for (uint32_t i = 0; i < of->n_chosen[h]; i++)
            kv_bits_set(k->chosen + at, of->chosen[h * of->most + i]);
    }
    return k->reader->visited(k->reader->user, of, err);
}

/* The last token once more, over what is active now; its row goes to the table's spare place. queries: kv__memory_floats. */
static int look_again(kv_session *s, keeper *k, float *queries, base_err *err)
{
    const uint32_t last = s->n - 1, zero = 0;
    model_run *runs = NULL;
    int rc = kv__stand_at(s, last, NULL, err);
    kv_block *hidden = kv_block_new(&s->compute.shape, NULL);
    model_lane_list *lanes = kv__lists_before(s, last, s->table.n * MODEL_ROWS_BLOCK, 1, &runs);
    if (!rc && !(hidden && lanes)) rc = base_fail(err, BASE_E_NOMEM, "no memory to look at a token again");
    if (rc) goto out;
    const model_rows_view rows = kv__view_with(s, lanes, hidden);
    rc = kv__reader_begin(s, &rows, kv__segment_at(s, last)->origin, s->ids + last, last, 1, &k->reader, err);
    if (!rc && (!k->reader || !k->reader->visit))
        rc = base_fail(err, BASE_E_STATE, "the last token visited nobody");
    if (rc) goto out;
    const model_capture capture = {.tokens = &zero, .n = 1, .queries = queries};
    const model_reader keep = {.user = k, .visit = keep_visit, .visited = keep_visited};
    model_batch batch = {.ids = &s->ids[last],
        .phases = &s->phases[last],
        .n = 1,
        .rows = &rows,
        .capture = &capture,
        .reader = &keep};
    rc = kv__forward(s, &batch, last, KV_TO_LOOK, err);
out:
    free(lanes);
    free(runs);
    kv_block_unref(hidden);
    return rc;
}

static int heavier_first(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

/* Of the n heaviest evicted rows of a list: how many, and how much of their mass, were chosen. masses: [n_rows] */
static void compare(const model_lane_list *list, const float *masses, const uint64_t *evicted,
    const uint64_t *chosen, uint32_t n, float *best, double *ret_rows, double *ret_mass)
{
    uint32_t n_best = 0, n_there = 0;
    double all = 0, there = 0;
    for (int is_second = 0; is_second < 2; is_second++) {
        const float least = is_second ? best[n - 1] : 0;
        for (uint32_t i = 0, o = 0; i < list->n_runs; i++)
            for (uint32_t r = 0; r < list->runs[i].n; r++, o++) {
                const uint32_t index = list->runs[i].index + r;
                if (!kv_bits_get(evicted, index)) continue;
                if (!is_second) best[n_best++] = masses[o];
                if (!is_second || masses[o] < least) continue;
                const bool is_there = kv_bits_get(chosen, index);
                all += (double)masses[o];
                there += is_there ? (double)masses[o] : 0;
                n_there += is_there;
            }
        if (!is_second) qsort(best, n_best, sizeof *best, heavier_first);
    }
    *ret_rows = (double)n_there / n;
    *ret_mass = all > 0 ? there / all : 1;
}

/* Every row that is listed or may be chosen, lane by lane, weighed by its key. */
static int weigh(kv_session *s, const keeper *k, const float *queries, kv_found *ret, base_err *err)
{
    const uint32_t n = s->n, most = kv__visitors(s);
    float *masses = malloc(n * sizeof *masses), *best = malloc(n * sizeof *best);
    uint64_t *bits = malloc(k->n_words * sizeof *bits);
    float **mass = calloc(s->n_lanes, sizeof *mass);
    model_lane_list *lanes = malloc(s->n_lanes * sizeof *lanes);
    int rc = masses && best && bits && mass && lanes
                 ? 0
                 : base_fail(err, BASE_E_NOMEM, "no memory to weigh %u rows", n);
    *ret = (kv_found){.worst = 1};
    for (uint32_t lane = 0; lane < s->n_lanes && !rc; lane++) {
        const uint64_t *evicted = k->evicted + lane * k->n_words;
        double rows, of_mass;
        if (kv_bits_count(evicted, k->n_words) <= most) continue;
        for (uint32_t other = 0; other < s->n_lanes; other++)
            lanes[other] = kv__view(s).lanes[other], mass[other] = NULL;
        for (size_t w = 0; w < k->n_words; w++) bits[w] = evicted[w] | s->lists.lane[lane]->bits[w];
        uint32_t n_runs, n_rows;
        model_run *runs = kv_runs_of_bits(bits, n, &n_runs, &n_rows);
        if (!runs) rc = base_fail(err, BASE_E_NOMEM, "no memory to weigh %u rows", n);
        lanes[lane] = (model_lane_list){runs, n_runs, n_rows};
        mass[lane] = masses;
        const model_rows_view view = kv__view_of(s, lanes);
        const model_score score = {.queries = queries, .n_queries = 1, .rows = &view, .mass = mass};
        if (!rc) rc = kv__check_lane(s, &view, lane, err);
        if (!rc) rc = kv__score(s, &score, err);
        if (!rc) {
            compare(
                &lanes[lane], masses, evicted, k->chosen + lane * k->n_words, most, best, &rows, &of_mass);
            ret->rows += rows;
            ret->mass += of_mass;
            ret->worst = of_mass < ret->worst ? of_mass : ret->worst;
            ret->n_lanes++;
        }
        free(runs);
    }
    if (!rc && !ret->n_lanes) rc = base_fail(err, BASE_E_STATE, "the last token had nobody to choose from");
    if (!rc) ret->rows /= ret->n_lanes;
    if (!rc) ret->mass /= ret->n_lanes;
    free(masses);
    free(best);
    free(bits);
    free(mass);
    free(lanes);
    return rc;
}

int kv_session_found(kv_session *s, kv_found *ret, base_err *err)
{
    if (!s->n || !kv__visitors(s)) return base_fail(err, BASE_E_STATE, "the last token visited nobody");
    keeper k = {.per_layer = s->compute.shape.n_head_kv, .n_words = kv_bits_words(s->cap + 1)};
    float *queries = malloc(kv__memory_floats(s) * sizeof *queries);
    k.evicted = calloc(s->n_lanes * k.n_words, sizeof *k.evicted);
    k.chosen = calloc(s->n_lanes * k.n_words, sizeof *k.chosen);
    int rc = queries && k.evicted && k.chosen
                 ? 0
                 : base_fail(err, BASE_E_NOMEM, "no memory to look at a token again");
    if (!rc) rc = look_again(s, &k, queries, err);
    if (!rc) rc = weigh(s, &k, queries, ret, err);
    free(queries);
    free(k.evicted);
    free(k.chosen);
    return rc;
}
