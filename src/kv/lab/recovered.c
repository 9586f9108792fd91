/* The share of a decoded token's attention that falls on what it read, by a second, full pass. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kv/lab/lab.h"
#include "kv/plan/walk.h"
#include "kv/read/reading.h"
#include "kv/read/sections.h"

/* Mass of a list's rows that the choice has too; both ascend. */
static double shared_mass(const model_lane_list *list, const float *mass, const model_lane_list *chosen)
{
    double sum = 0;
    uint32_t c = 0;
    for (uint32_t i = 0, o = 0; i < list->n_runs; i++)
        for (uint32_t k = 0; k < list->runs[i].n; k++, o++) {
            const uint32_t index = list->runs[i].index + k;
            while (c < chosen->n_runs && chosen->runs[c].index + chosen->runs[c].n <= index) c++;
            if (c < chosen->n_runs && chosen->runs[c].index <= index) sum += (double)mass[o];
        }
    return sum;
}

/* A reader that keeps each layer's choice, which the next layer's writes over. */
typedef struct keeper {
    const model_reader *reader; /* of the choice */
    uint32_t per_layer;         /* lanes */
    model_lane_list *lists;     /* [n_lanes]; runs are copies; NULL: the layer is read in full */
} keeper;

static int keep_sections(void *user, uint32_t layer, model_sections *ret, base_err *err)
{
    keeper *k = user;
    return k->reader->sections(k->reader->user, layer, ret, err);
}

static int keep_choice(void *user, uint32_t layer, uint32_t token, const model_rows_view **ret, base_err *err)
{
    keeper *k = user;
    int rc = k->reader->choose(k->reader->user, layer, token, ret, err);
    for (uint32_t lane = layer * k->per_layer; lane < (layer + 1) * k->per_layer && !rc; lane++) {
        const model_lane_list *from = &(*ret)->lanes[lane];
        model_run *runs = base_xmalloc((from->n_runs + 1) * sizeof *runs);
        memcpy(runs, from->runs, from->n_runs * sizeof *runs);
        k->lists[lane] = *from;
        k->lists[lane].runs = runs;
    }
    return rc;
}

/* Scores the token's queries over all that it could have read, and adds up what fell on its choice. */
static int weigh(kv_session *s, const model_rows_view *rows, const float *queries,
    const model_lane_list *chosen, double *ret, base_err *err)
{
    float **mass = base_xcalloc(s->n_lanes, sizeof *mass);
    double sum = 0;
    uint32_t n = 0;
    for (uint32_t lane = 0; lane < s->n_lanes; lane++)
        if (chosen[lane].runs) mass[lane] = base_xmalloc((rows->lanes[lane].n_rows + 1) * sizeof **mass);
    const model_score score = {.queries = queries, .n_queries = 1, .rows = rows, .mass = mass};
    int rc = kv__score(s, &score, err);
    for (uint32_t lane = 0; lane < s->n_lanes; lane++) {
        if (!rc && mass[lane]) {
            sum += shared_mass(&rows->lanes[lane], mass[lane], &chosen[lane]);
            n++;
        }
        free(mass[lane]);
    }
    free(mass);
    *ret = n ? sum / n : 1;
    return rc;
}

int kv_session_recovered(kv_session *s, double *ret, base_err *err)
{
    const model_reader *reader = NULL;
    const kv_stored_segment *part = s->n ? kv__segment_at(s, s->n - 1) : NULL;
    if (!part || part->origin != KV_ORIGIN_ANSWER || !(s->parameters.decode > 0))
        return base_fail(err, BASE_E_STATE, "the last token read everything");
    model_run *runs = NULL;
    model_lane_list *lanes = kv__lists_before(s, s->n - 1, s->n - 1, 1, &runs);
    float *queries = malloc(kv__memory_floats(s) * sizeof *queries);
    keeper k = {.per_layer = s->compute.shape.n_head_kv, .lists = base_xcalloc(s->n_lanes, sizeof *k.lists)};
    int rc = lanes && queries ? 0 : base_fail(err, BASE_E_NOMEM, "no memory to look at a token again");
    if (!rc) rc = kv__stand_at(s, s->n - 1, NULL, err);
    model_rows_view rows = kv__view_of(s, lanes);
    if (!rc) rc = kv__reading_begin(s, &rows, &s->ids[s->n - 1], s->n - 1, 1, &reader, err);
    if (!rc) {
        k.reader = reader;
        const kv_reads before = s->reading->reads;
        const uint32_t zero = 0;
        const model_capture capture = {.tokens = &zero, .n = 1, .queries = queries};
        const model_reader keep = {.user = &k, .sections = keep_sections, .choose = keep_choice};
        /* The row is written once more, with the same bits. */
        model_batch batch = {.ids = &s->ids[s->n - 1],
            .phases = &s->phases[s->n - 1],
            .n = 1,
            .rows = &rows,
            .capture = &capture,
            .reader = &keep};
        rc = kv_table_make_writable(&s->table, s->n - 1, s->n, err);
        rows = kv__view_of(s, lanes);
        if (!rc) rc = kv__forward(s, &batch, s->n - 1, KV_TO_LOOK, err);
        s->reading->reads = before;
    }
    if (!rc) rc = weigh(s, &rows, queries, k.lists, ret, err);
    for (uint32_t lane = 0; lane < s->n_lanes; lane++) free((model_run *)(uintptr_t)k.lists[lane].runs);
    free(k.lists);
    free(queries);
    free(lanes);
    free(runs);
    return rc;
}
