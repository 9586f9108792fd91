/* Which rows may visit a token; see visit.h. */
#include "kv/read/visit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "kv/core/state.h"
#include "kv/core/work.h"
#include "kv/read/gather.h"
#include "kv/read/reading.h"
#include "kv/read/rest.h"
#include "kv/session.h"

enum {
    VISITORS_MOST = KV_BATCH / 2, /* so that even the smallest budget keeps as many for ordinary rows */
    FEW = 8,                      /* tokens of a batch that wait for rows to be read */
    ROOM_SHARE = 8,               /* of the free memory copies take no more than this part */
    COLUMN = 16,                  /* pages */
    /* in the schedule: chosen by sketches (bit 30), closed ones summed by themselves (29), their values by chapters (28) */
    PAGES = 7 << 28,
};

/* What a lane's tokens read beside its list. */
typedef struct lane_visit {
    uint64_t *evicted; /* [bits of cap] rows below `known_to` that may be read and are not on the list */
    uint32_t n;
    bool everything; /* so few that all of them visit */
    /* Below `known_to`, instead of the list's runs: with all that visit, or gathered; then the list's. Or NULL. */
    model_run *runs;
    uint32_t n_runs, n_rows; /* below `known_to` */
} lane_visit;

struct kv_visit {
    kv_session *session;
    uint32_t cap; /* tokens that what follows has room for */
    kv_work memory;
    model_reader reader;

    /* Of some lists, those below token known_to; between two plans nothing more is evicted. */
    bool is_known;                /* of the session's live lists */
    bool outshines, outshone_too; /* something is outshone; it was let in all the same, for a call */
    uint32_t known_to;
    lane_visit *lanes;        /* [n_lanes] */
    uint64_t *readable;       /* [bits of cap] */
    const uint8_t **sketches; /* [blocks of cap] of the lanes in `whole`; NULL: weighed by keys */
    const uint8_t **none; /* [blocks of cap] NULL each: those of layers with a window, where nobody visits */
    uint32_t *whole;      /* [session's n_whole] lanes without a window */
    kv_rest *rest;
    const uint16_t **means;     /* [n_lanes] of evicted rows' values, by page */
    uint32_t open;              /* pages that a token looks into; 0: all */
    model_pages *pages;         /* [n_lanes] */
    uint16_t *some;             /* [n_lanes][columns of cap's pages] what `pages` name */
    float *sizes;               /* [n_lanes][columns][COLUMN] the same */
    kv_gather *gather;          /* NULL: nothing was gathered so far */
    bool is_tried, is_gathered; /* since lists changed; they name its copies */

    /* The batch at hand. */
    uint32_t n;
    model_lane_list *lists; /* [n_lanes] */
    model_rows_view view;
    const uint64_t **evicted; /* [n_lanes] NULL: nothing to choose */
    uint32_t *chosen;         /* [n_head_kv][KV_BATCH][VISITORS_MOST] of a layer */
    uint32_t *n_chosen;       /* [n_head_kv][KV_BATCH] */
    uint64_t *opened;         /* [n_head_kv][bits of blocks of cap] */
    uint32_t n_opened;        /* words of a lane's */

    uint32_t *counts; /* [cap] row-lanes that visited, by token */
    kv_visits sums;
};

static void free_runs(kv_visit *v)
{
    for (uint32_t lane = 0; lane < v->session->n_lanes; lane++) {
        free(v->lanes[lane].runs);
        v->lanes[lane].runs = NULL;
        v->lanes[lane].everything = false;
    }
}

void kv__visit_free(kv_visit *v)
{
    if (!v) return;
    if (v->lanes) free_runs(v);
    kv_rest_free(v->rest);
    kv_gather_free(v->gather);
    kv_work_free(&v->memory);
    free(v);
}

/* Of 16 pages, with room for so many tokens. */
static size_t count_columns(uint32_t n_tokens)
{
    return n_tokens / (COLUMN * KV_REST_PAGE) + 1;
}

static int make(kv_session *s, base_err *err)
{
    const size_t n = (size_t)s->cap + 1, n_kv = s->compute.shape.n_head_kv, n_lanes = s->n_lanes;
    kv_visit *v = calloc(1, sizeof *v);
    if (!v) return base_fail(err, BASE_E_NOMEM, "no memory for the rows that visit a token");
    v->session = s;
    v->cap = s->cap;
    v->lanes = kv_work_zero(&v->memory, n_lanes, sizeof *v->lanes);
    v->readable = kv_work_zero(&v->memory, kv_bits_words(n), sizeof *v->readable);
    v->sketches = kv_work_zero(&v->memory, n / MODEL_ROWS_BLOCK + 1, sizeof *v->sketches);
    v->none = kv_work_zero(&v->memory, n / MODEL_ROWS_BLOCK + 1, sizeof *v->none);
    v->whole = kv_work_zero(&v->memory, n_lanes, sizeof *v->whole);
    v->means = kv_work_zero(&v->memory, n_lanes, sizeof *v->means);
    v->pages = kv_work_zero(&v->memory, n_lanes, sizeof *v->pages);
    v->some = kv_work_take(&v->memory, n_lanes * count_columns(s->cap), sizeof *v->some);
    v->sizes = kv_work_take(&v->memory, n_lanes * count_columns(s->cap) * COLUMN, sizeof *v->sizes);
    v->lists = kv_work_zero(&v->memory, n_lanes, sizeof *v->lists);
    v->evicted = kv_work_zero(&v->memory, n_lanes, sizeof *v->evicted);
    v->chosen = kv_work_take(&v->memory, n_kv * KV_BATCH * VISITORS_MOST, sizeof *v->chosen);
    v->n_chosen = kv_work_zero(&v->memory, n_kv * KV_BATCH, sizeof *v->n_chosen);
    v->n_opened = (uint32_t)kv_bits_words(n / MODEL_ROWS_BLOCK + 1);
    v->opened = kv_work_zero(&v->memory, n_kv * v->n_opened, sizeof *v->opened);
    v->counts = kv_work_zero(&v->memory, n, sizeof *v->counts);
    v->rest = kv_rest_new(&s->compute.shape, s->cap);
    uint64_t *bits = kv_work_take(&v->memory, n_lanes * kv_bits_words(n), sizeof *bits);
    if (v->memory.failed || !v->rest) {
        kv__visit_free(v);
        return base_fail(err, BASE_E_NOMEM, "no memory for the rows that visit a token");
    }
    for (uint32_t lane = 0, n_whole = 0; lane < n_lanes; lane++) {
        v->lanes[lane].evicted = bits + lane * kv_bits_words(n);
        if (!kv__window(s, lane)) v->whole[n_whole++] = lane;
    }
    s->visit = v;
    return 0;
}

/* Room for as many tokens as the session has room for; what was counted stays. */
static int grow(kv_session *s, base_err *err)
{
    kv_visit *old = s->visit;
    const int rc = make(s, err);
    if (rc || !old) return rc;
    kv_rest_copy(s->visit->rest, old->rest, old->known_to / KV_REST_PAGE + 1);
    memcpy(s->visit->counts, old->counts, old->cap * sizeof *old->counts);
    s->visit->sums = old->sums;
    kv__visit_free(old);
    return 0;
}

int kv__visit_copy(kv_session *f, const kv_session *s, base_err *err)
{
    const int rc = s->visit ? make(f, err) : 0;
    if (!rc && s->visit) kv_rest_copy(f->visit->rest, s->visit->rest, f->n / KV_REST_PAGE + 1);
    return rc;
}

uint32_t kv__visitors(const kv_session *s)
{
    const uint32_t n = (uint32_t)ceil(s->parameters.visit * s->budget);
    return n < VISITORS_MOST ? n : VISITORS_MOST;
}

/*
 * Pages that a token looks into at most; 0: all. Fewer where a repair found what was asked for so clearly that it outshone
 * other lines: what else is like the request is what the answer is mistaken for.
 */
static uint32_t open_pages(const kv_session *s)
{
    const kv_visit *v = s->visit;
    const double most = s->parameters.open, asked = s->parameters.open_asked;
    const bool is_clear = v && v->outshines && !v->outshone_too && s->sketched_to > most;
    return (uint32_t)ceil((is_clear && asked > 0 && asked < most ? asked : most) / KV_REST_PAGE);
}

/* --- what may visit ------------------------------------------------------------------------------------- */

/* Rows before `first` that a token may read, with what is outshone. Blocks in 8 bits are scored only. */
static void find_readable(kv_visit *v, uint32_t first)
{
    const kv_session *s = v->session;
    const size_t n_words = kv_bits_words(v->cap);
    v->outshines = kv_bits_next(s->outshone, 0, first, true) < first;
    for (size_t w = 0; w < n_words; w++)
        v->readable[w] = kv_bits_mask(w, 0, first) & ~(s->barred[w] | s->stale[w] | s->lost[w]);
    for (uint32_t t = 0; t < first; t++)
        if (s->cut[t]) kv_bits_clear(v->readable, t);
    for (uint32_t b = 0; b * MODEL_ROWS_BLOCK < first; b++)
        if (s->table.packed[b])
            kv_bits_clear_range(v->readable, b * MODEL_ROWS_BLOCK, (b + 1) * MODEL_ROWS_BLOCK);
}

/* Of the readable rows those that a lane's list has not. */
static void find_evicted(const kv_visit *v, const model_lane_list *list, uint32_t first, lane_visit *ret)
{
    const size_t n_words = kv_bits_words(v->cap);
    memcpy(ret->evicted, v->readable, n_words * sizeof *ret->evicted);
    for (uint32_t i = 0; i < list->n_runs && list->runs[i].index < first; i++)
        kv_bits_clear_range(ret->evicted, list->runs[i].index, list->runs[i].index + list->runs[i].n);
    ret->n = kv_bits_count(ret->evicted, n_words);
}

/* What is outshone visits nobody, unless it is let in. */
static void leave_out_outshone(const kv_visit *v, lane_visit *l)
{
    const size_t n_words = kv_bits_words(v->cap);
    if (!v->outshines || v->outshone_too) return;
    for (size_t w = 0; w < n_words; w++) l->evicted[w] &= ~v->session->outshone[w];
    l->n = kv_bits_count(l->evicted, n_words);
}

/* So few are evicted that all of them visit: one list with them. */
static int list_everything(
    const kv_visit *v, const model_lane_list *list, uint32_t first, lane_visit *lane, base_err *err)
{
    const size_t n_words = kv_bits_words(v->cap);
    uint64_t *bits = malloc(n_words * sizeof *bits);
    if (!bits) return base_fail(err, BASE_E_NOMEM, "no memory for the rows that visit a token");
    memcpy(bits, lane->evicted, n_words * sizeof *bits);
    for (uint32_t i = 0; i < list->n_runs && list->runs[i].index < first; i++) {
        const uint32_t end = list->runs[i].index + list->runs[i].n;
        kv_bits_set_range(bits, list->runs[i].index, end < first ? end : first);
    }
    lane->runs = kv_runs_of_bits(bits, first, &lane->n_runs, &lane->n_rows);
    lane->everything = true;
    free(bits);
    return lane->runs ? 0 : base_fail(err, BASE_E_NOMEM, "no memory for the rows that visit a token");
}

/* Sketches of the blocks that have them and are asked: full when the newest plan was made, and computed. */
static int find_sketches(kv_visit *v, uint32_t first, base_err *err)
{
    kv_session *s = v->session;
    const uint32_t most = kv__visitors(s),
                   full = (s->sketched_to < first ? s->sketched_to : first) / MODEL_ROWS_BLOCK;
    memset(v->sketches, 0, (v->cap / MODEL_ROWS_BLOCK + 1) * sizeof *v->sketches);
    for (uint32_t b = 0; b < full; b++) {
        const uint32_t from = b * MODEL_ROWS_BLOCK, to = from + MODEL_ROWS_BLOCK;
        bool is_asked = false, is_computed = true;
        for (uint32_t i = 0; i < s->n_whole && !is_asked; i++) {
            const lane_visit *lane = &v->lanes[v->whole[i]];
            is_asked = lane->n > most && kv_bits_next(lane->evicted, from, to, true) < to;
        }
        for (uint32_t t = from; t < to && is_asked; t++) is_computed &= !s->cut[t];
        if (!is_asked || !is_computed) continue;
        v->sketches[b] = kv_table_sketch(&s->table, b, v->whole, s->n_whole);
        if (!v->sketches[b]) return base_fail(err, BASE_E_NOMEM, "no memory for the sketch of 256 rows");
    }
    int rc = 0; /* what is weighed by its keys is read before anybody says so */
    for (uint32_t i = 0; i < s->n_whole && full * MODEL_ROWS_BLOCK < first && !rc; i++)
        if (v->evicted[v->whole[i]])
            rc = kv_table_check(&s->table, v->whole[i], full * MODEL_ROWS_BLOCK, first, err);
    return rc;
}

/* How many rows each of a lane's pages has. Returns how many pages have some. */
static uint32_t count_rows(kv_visit *v, uint32_t lane, uint32_t n_pages)
{
    const size_t n_columns = count_columns(v->cap);
    uint16_t *some = v->some + lane * n_columns;
    float *counts = v->sizes + lane * n_columns * COLUMN;
    uint32_t n = 0;
    memset(some, 0, n_columns * sizeof *some);
    memset(counts, 0, n_columns * COLUMN * sizeof *counts);
    for (uint32_t page = 0; page < n_pages && v->evicted[lane]; page++) {
        const bool any = v->evicted[lane][page] != 0;
        counts[page] = (float)kv_bits_count_word(v->evicted[lane][page]);
        some[page / COLUMN] |= (uint16_t)(any << page % COLUMN);
        n += any;
    }
    v->pages[lane] = (model_pages){.some = some, .counts = counts};
    return n;
}

/* Sketches of the pages of lanes that have more of them than a token opens. */
static int sketch_pages(kv_visit *v, const model_rows_view *rows, uint32_t n_pages, base_err *err)
{
    const kv_session *s = v->session;
    int rc = 0;
    v->open = open_pages(s);
    if (v->open) kv_rest_fold(v->rest, rows, n_pages);
    for (uint32_t lane = 0; lane < s->n_lanes && !rc; lane++) {
        const uint32_t n = count_rows(v, lane, n_pages);
        if (!v->open || n <= v->open) continue;
        rc = kv_rest_sketch(v->rest, &s->compute, rows, lane, n_pages, &v->pages[lane].sketches, err);
        if (!rc) v->pages[lane].chapters = kv_rest_chapters(v->rest, lane);
    }
    return rc;
}

/*
 * What is evicted below `first` under these lists. The means of pages are those of all evicted rows, outshone ones too:
 * they stay as they are (and as they are saved), whatever a repair outshines.
 */
static int learn(kv_visit *v, const model_rows_view *rows, uint32_t first, base_err *err)
{
    const kv_session *s = v->session;
    const uint32_t most = kv__visitors(s), n_pages = (uint32_t)kv_bits_words(first);
    int rc = 0;
    v->is_known = false;
    v->known_to = first;
    v->is_tried = v->is_gathered = false;
    free_runs(v);
    find_readable(v, first);
    for (uint32_t lane = 0; lane < s->n_lanes; lane++) {
        lane_visit *l = &v->lanes[lane];
        find_evicted(v, &rows->lanes[lane], first, l);
        v->evicted[lane] = l->n > most ? l->evicted : NULL;
        v->means[lane] = kv_rest_values(v->rest, lane);
    }
    if (s->parameters.rest > 0 || s->parameters.open > 0)
        rc = kv_rest_find(v->rest, &s->table, rows, v->evicted, n_pages, err);
    for (uint32_t lane = 0; lane < s->n_lanes && !rc; lane++) {
        lane_visit *l = &v->lanes[lane];
        leave_out_outshone(v, l);
        v->evicted[lane] = l->n > most ? l->evicted : NULL;
        if (l->n && l->n <= most) rc = list_everything(v, &rows->lanes[lane], first, l, err);
    }
    if (!rc) rc = sketch_pages(v, rows, n_pages, err);
    if (!rc) rc = find_sketches(v, first, err);
    v->is_known = !rc && rows->lanes == s->lists.view;
    return rc;
}

/* --- rows that lie apart -------------------------------------------------------------------------------- */

/* Lanes with rows to choose from, in layers that read all of them. */
static void find_scattered(const kv_visit *v, bool *which)
{
    const kv_session *s = v->session;
    for (uint32_t lane = 0; lane < s->n_lanes; lane++) which[lane] = v->evicted[lane] && !kv__window(s, lane);
}

/*
 * Copies take memory (at most a row's for every row that stays), so there are none where that is short or the
 * person has bounded it: then rows are read where they lie, with the same bits. Where rows are folded they pay all the same:
 * what they are copies of may lie on disk.
 */
static bool has_room(const kv_visit *v, uint32_t n_blocks)
{
    const kv_session *s = v->session;
    const size_t n_bytes = n_blocks * model_rows_block_bytes(&s->compute.shape);
    return (s->parameters.host <= 0 || s->fold.n) && n_bytes <= model_memory_available() / ROOM_SHARE;
}

/*
 * The rows of the live lists below known_to, for the tokens of an answer, and where some are folded for all; no error
 * where there is no room for it, or *cancel (may be NULL) is set. BASE_E_FORMAT as kv_table_check.
 */
static int gather(kv_visit *v, const model_rows_view *rows, const atomic_bool *cancel, base_err *err)
{
    const kv_session *s = v->session;
    bool *which = calloc(s->n_lanes, sizeof *which);
    int rc = 0;
    v->is_tried = true;
    if (!which) return 0;
    kv_table_read_apart(&s->table, model_memory_available()); /* before anything of it is read */
    find_scattered(v, which);
    const uint32_t n_blocks = kv_gather_blocks(rows, which, v->known_to);
    if (!v->gather) v->gather = kv_gather_new(&s->compute, v->cap / MODEL_ROWS_BLOCK + 2);
    v->is_gathered = n_blocks && v->gather && has_room(v, n_blocks) && kv_gather_reserve(v->gather, n_blocks);
    for (uint32_t lane = 0; lane < s->n_lanes && v->is_gathered; lane++) {
        lane_visit *l = &v->lanes[lane];
        if (!which[lane]) continue;
        if (cancel && atomic_load(cancel)) v->is_tried = v->is_gathered = false;
        if (!v->is_gathered) break;
        rc = kv__check_lane(s, rows, lane, err);
        if (!rc) l->runs = kv_gather_lane(v->gather, rows, lane, v->known_to, &l->n_runs, &l->n_rows);
        v->is_gathered = !rc && l->runs != NULL;
    }
    for (uint32_t lane = 0; lane < s->n_lanes && n_blocks && !v->is_gathered; lane++) {
        if (!which[lane]) continue;
        free(v->lanes[lane].runs);
        v->lanes[lane].runs = NULL;
    }
    free(which);
    return rc;
}

/* --- the batch ------------------------------------------------------------------------------------------ */

/* A lane's list, or what is read instead of it below known_to and what it has behind that. */
static int list_lane(kv_visit *v, const model_rows_view *rows, uint32_t lane, base_err *err)
{
    const model_lane_list *list = &rows->lanes[lane];
    lane_visit *below = &v->lanes[lane];
    uint32_t at = list->n_runs;
    v->lists[lane] = *list;
    if (!below->runs) return 0;
    while (at > 0 && list->runs[at - 1].index + list->runs[at - 1].n > v->known_to) at--;
    model_run *runs = realloc(below->runs, (below->n_runs + list->n_runs - at + 1) * sizeof *runs);
    if (!runs) return base_fail(err, BASE_E_NOMEM, "no memory for the rows that visit a token");
    below->runs = runs;
    v->lists[lane] = (model_lane_list){runs, below->n_runs, below->n_rows};
    for (; at < list->n_runs; at++) {
        model_run run = list->runs[at];
        const uint32_t before = run.index < v->known_to ? v->known_to - run.index : 0;
        run = (model_run){run.slot + before, run.index + before, run.n - before};
        runs[v->lists[lane].n_runs++] = run;
        v->lists[lane].n_rows += run.n;
    }
    return 0;
}

static int visit(void *user, uint32_t layer, model_visit *ret, base_err *err)
{
    kv_visit *v = user;
    const kv_session *s = v->session;
    const uint32_t n_kv = s->compute.shape.n_head_kv, first = layer * n_kv;
    const uint32_t n_whole = s->n_whole - kv__whole_from(s, layer); /* lanes in front */
    (void)err;
    for (uint32_t lane = first; lane < first + n_kv; lane++) {
        const lane_visit *l = &v->lanes[lane];
        if (!l->everything) continue;
        for (size_t t = kv_bits_next(l->evicted, 0, v->known_to, true); t < v->known_to;
             t = kv_bits_next(l->evicted, t + 1, v->known_to, true))
            v->counts[t] += v->n;
        v->sums.rows += (uint64_t)l->n * v->n;
    }
    *ret = (model_visit){.rows = &v->view,
        .evicted = v->evicted + first,
        .sketches = kv__window(s, first) ? v->none : v->sketches,
        .n_unsketched = first - n_whole,
        .means = s->parameters.rest > 0 ? v->means + first : NULL,
        .pages = v->pages + first,
        .open = v->open,
        .n_slots = v->known_to,
        .most = kv__visitors(s),
        .chosen = v->chosen,
        .n_chosen = v->n_chosen,
        .opened = v->opened,
        .n_opened = v->n_opened};
    memset(v->opened, 0, (size_t)n_kv * v->n_opened * sizeof *v->opened);
    return 0;
}

/* The sketches that tokens looked into are what was written; 1: one was not, and is made of its block's rows now. */
static int check_sketches(kv_visit *v, uint32_t part, const uint64_t *opened, base_err *err)
{
    kv_session *s = v->session;
    if (kv_table_check_sketches(&s->table, part, opened)) return 0;
    for (uint32_t b = 0; b < s->table.n && b < v->cap / MODEL_ROWS_BLOCK; b++) {
        if (!v->sketches[b]) continue;
        v->sketches[b] = kv_table_sketch(&s->table, b, v->whole, s->n_whole);
        if (!v->sketches[b]) return base_fail(err, BASE_E_NOMEM, "no memory for the sketch of 256 rows");
    }
    return 1;
}

/* What was read is looked at before anything follows from it: rows that a file holds may be damaged. */
static int visited(void *user, const model_visit *of, base_err *err)
{
    kv_visit *v = user;
    const kv_session *s = v->session;
    const uint32_t n_kv = s->compute.shape.n_head_kv, first = (uint32_t)(of->evicted - v->evicted);
    int rc = 0;
    for (uint32_t h = 0; h < n_kv && !rc && s->table.files; h++)
        rc = check_sketches(v, first + h - of->n_unsketched, v->opened + (size_t)h * v->n_opened, err);
    if (rc > 0) memset(v->opened, 0, (size_t)n_kv * v->n_opened * sizeof *v->opened);
    for (uint32_t i = 0; i < n_kv * v->n && !rc; i++) {
        const uint32_t lane = first + i / v->n, *chosen = of->chosen + (size_t)i * of->most;
        for (uint32_t k = 0; k < of->n_chosen[i]; k++) v->counts[chosen[k]]++;
        v->sums.rows += of->n_chosen[i];
        rc = kv_table_check_some(&s->table, lane, chosen, of->n_chosen[i], err);
    }
    return rc;
}

static bool anybody_out(const kv_visit *v)
{
    for (uint32_t lane = 0; lane < v->session->n_lanes; lane++)
        if (v->lanes[lane].n) return true;
    return false;
}

/* What a repair outshone looks like the answer; a call quotes from anywhere. */
static bool lets_in_outshone(kv_origin origin)
{
    return origin == KV_ORIGIN_CALL;
}

/* What is evicted before `first` under these lists is known, for tokens of that origin. */
static int know(kv_session *s, const model_rows_view *rows, kv_origin origin, uint32_t first, base_err *err)
{
    const int rc = s->visit && s->visit->cap >= s->cap ? 0 : grow(s, err);
    if (rc) return rc;
    kv_visit *v = s->visit;
    const bool other = v->outshines && v->outshone_too != lets_in_outshone(origin);
    v->outshone_too = lets_in_outshone(origin);
    const bool is_known = !other && v->is_known && rows->lanes == s->lists.view && first >= v->known_to;
    return is_known ? 0 : learn(v, rows, first, err);
}

static bool may_gather(const kv_visit *v)
{
    return v->is_known && !v->is_tried && v->session->compute.gathers;
}

static int begin(kv_session *s, const model_rows_view *rows, kv_origin origin, uint32_t first, uint32_t n,
    const model_reader **ret, base_err *err)
{
    int rc = know(s, rows, origin, first, err);
    kv_visit *v = s->visit;
    if (rc || !anybody_out(v)) return rc;
    v->n = n;
    if (may_gather(v) && (n <= FEW || s->fold.n)) rc = gather(v, rows, NULL, err);
    for (uint32_t lane = 0; lane < s->n_lanes && !rc; lane++) rc = list_lane(v, rows, lane, err);
    if (rc) return rc;
    v->view = *rows;
    if (v->is_gathered && !kv_gather_show(v->gather, &v->view))
        return base_fail(err, BASE_E_LIMIT, "a view of %u blocks of rows where %u tokens have room",
            rows->n_blocks, v->cap);
    v->view.lanes = v->lists;
    v->reader = (model_reader){.user = v, .visit = visit, .visited = visited};
    v->sums.tokens += n;
    *ret = &v->reader;
    return 0;
}

/* What reads its list by sections (decode) does not look beside it. */
static bool is_visited(const kv_session *s, kv_origin origin)
{
    return kv__visitors(s) && !(s->parameters.decode > 0 && kv_origin_is_written(origin));
}

int kv__reader_begin(kv_session *s, const model_rows_view *rows, kv_origin origin, const int32_t *ids,
    uint32_t first, uint32_t n, const model_reader **ret, base_err *err)
{
    *ret = NULL;
    int rc = 0;
    if (is_visited(s, origin))
        rc = begin(s, rows, origin, first, n, ret, err);
    else if (kv_origin_is_written(origin))
        rc = kv__reading_begin(s, rows, ids, first, n, ret, err);
    return rc;
}

void kv__visit_publish(kv_session *s, uint32_t n)
{
    if (!s->holed || !is_visited(s, s->segments[s->n_segments - 1].origin)) return;
    const bool lets_in = s->visit && s->visit->outshines && s->visit->outshone_too;
    const uint32_t how = (s->parameters.rest > 0) | open_pages(s) << 1 | (uint32_t)lets_in << 31;
    for (uint32_t t = s->n - n; t < s->n; t++) {
        const bool may_choose = s->parameters.open > 0 && t > s->parameters.open; /* among pages */
        const uint32_t schedule[] = {t, kv__visitors(s), how | (may_choose ? PAGES : 0), KV_EVENT_VISITED};
        s->schedule = base_hash64(schedule, sizeof schedule, s->schedule);
    }
}

void kv__visit_truncate(kv_session *s, uint32_t n)
{
    if (!s->visit) return;
    kv_rest_forget(s->visit->rest, n);
    s->visit->is_known = false;
}

void kv__visit_replanned(kv_session *s)
{
    if (s->visit) s->visit->is_known = false;
}

bool kv__visit_copies(const kv_session *s, uint32_t b)
{
    return s->compute.gathers && kv__visitors(s) && !(s->parameters.decode > 0) &&
           (b + 1) * (MODEL_ROWS_BLOCK / MODEL_ROWS_GROUP) <= s->fold.n;
}

/* Where layers have windows, which read the newest rows where they lie: only what is folded. */
bool kv__visit_may_be_filed(const kv_session *s, uint32_t b)
{
    return s->window ? kv__visit_copies(s, b)
                     : kv__visit_copies(s, 0) && (b + 1) * MODEL_ROWS_BLOCK <= s->sketched_to;
}

const uint8_t *kv__visit_sketch(kv_session *s, uint32_t b)
{
    const kv_visit *v = s->visit;
    return v ? kv_table_sketch(&s->table, b, v->whole, s->n_whole) : NULL;
}

void kv__visit_find_means(kv_session *s)
{
    kv_visit *v = s->visit;
    base_err err;
    if (!v || v->is_known || v->cap < s->cap || !is_visited(s, KV_ORIGIN_USER)) return;
    const model_rows_view rows = kv__view(s);
    learn(v, &rows, s->n, &err);
}

void kv_session_make_ready(kv_session *s, const atomic_bool *cancel)
{
    base_err err;
    if (!s->fold.n || !is_visited(s, KV_ORIGIN_USER)) return;
    const model_rows_view rows = kv__view(s);
    int rc = know(s, &rows, KV_ORIGIN_USER, s->n, &err);
    if (!rc && anybody_out(s->visit) && may_gather(s->visit)) rc = gather(s->visit, &rows, cancel, &err);
    if (rc && s->visit) s->visit->is_known = false; /* the next token tells of it */
}

uint64_t kv__visit_mean(
    const kv_session *s, uint32_t lane, uint32_t page, const uint16_t **ret_key, const uint16_t **ret_value)
{
    return s->visit ? kv_rest_get(s->visit->rest, lane, page, ret_key, ret_value) : 0;
}

uint64_t kv__visit_bytes(const kv_session *s)
{
    return s->visit ? kv_gather_bytes(s->visit->gather) : 0;
}

void kv_session_take_visits(kv_session *s, kv_visits *ret, uint32_t *counts)
{
    *ret = (kv_visits){.tokens = 0};
    for (uint32_t t = 0; t < s->n && counts; t++)
        counts[t] = s->visit && t < s->visit->cap ? s->visit->counts[t] : 0;
    if (!s->visit) return;
    *ret = s->visit->sums;
    s->visit->sums = (kv_visits){.tokens = 0};
    memset(s->visit->counts, 0, s->visit->cap * sizeof *s->visit->counts);
}
