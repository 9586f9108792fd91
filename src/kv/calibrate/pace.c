/*
 * Measuring when few rows are faster than all of them; see pace.h. A session is filled with drawn rows to a
 * depth. A fork of it shares them and is held to the smaller budget, so that its first pass evicts the rest.
 * Then both compute the same message and the same tokens of an answer, by turns, so that what else the machine
 * does falls on both.
 */
#include "kv/calibrate/pace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "kv/calibrate/drawn_rows.h"
#include "kv/core/budget.h"
#include "kv/core/model_file.h"
#include "kv/session.h"

enum { ROUND = 1024, MESSAGE = 32, ANSWER = 8, REPEATS = 5, SIDES = 2, FILE_MOST = 1 << 16 };
static const double SPREAD_MOST = .25; /* of the three middle repeats, of their median */

/* --- the number ----------------------------------------------------------------------------------------- */

/*
 * What a token costs grows with the rows that are there, all of them or their sketches; so the difference does
 * too. Where it is nothing, by the line through both depths; INFINITY: nowhere.
 */
static double even_at(const kv_pace *p, kv_pace_kind kind)
{
    const double x0 = p->depths[0], x1 = p->depths[1], y0 = p->full[0][kind] - p->few[0][kind],
                 y1 = p->full[1][kind] - p->few[1][kind];
    if (y1 < 0) return INFINITY;
    if (y0 >= y1) return y0 >= 0 ? x0 : INFINITY;
    return x0 - y0 * (x1 - x0) / (y1 - y0);
}

kv_limit kv_pace_limit(const kv_pace *p)
{
    double until = KV_PACE_UNTIL;
    for (int kind = 0; kind < KV_PACE_KINDS; kind++) {
        const double even = even_at(p, (kv_pace_kind)kind);
        if (even > until) until = even;
    }
    if (until > p->depths[1]) return (kv_limit){.rows = 0};
    return (kv_limit){.rows = p->rows, .until = ((uint32_t)ceil(until) + ROUND - 1) / ROUND * ROUND};
}

/* --- measuring ------------------------------------------------------------------------------------------ */

typedef struct run {
    kv_drawn_rows drawer;
    int32_t ids[MESSAGE];
    float *logits;
    const atomic_bool *cancel;
    void (*progress)(void *user, double share);
    void *user;
    uint32_t done;
} run;

static int append(run *r, kv_session *s, kv_origin origin, uint32_t n, float *logits, base_err *err)
{
    const kv_segment segment = {.origin = origin, .turn = 1};
    return kv_session_append(s, &segment, r->ids, n, logits, r->cancel, err);
}

/*
 * Milliseconds a token; the session is as long as before. The token in front of an answer is not counted: what
 * is evicted is found out behind each change of the lists, which is in front of a message.
 */
static int time_once(run *r, kv_session *s, kv_pace_kind kind, double *ret, base_err *err)
{
    uint32_t before;
    int rc = 0;
    kv_session_ids(s, &before);
    if (kind == KV_PACE_ANSWER) rc = append(r, s, KV_ORIGIN_ANSWER, 1, r->logits, err);
    const uint64_t start = base_clock_ns();
    if (kind == KV_PACE_MESSAGE) rc = append(r, s, KV_ORIGIN_TOOL, MESSAGE, r->logits, err);
    for (int i = 0; i < ANSWER && kind == KV_PACE_ANSWER && !rc; i++)
        rc = append(r, s, KV_ORIGIN_ANSWER, 1, r->logits, err);
    *ret = (double)(base_clock_ns() - start) / 1e6 / (kind == KV_PACE_MESSAGE ? MESSAGE : ANSWER);
    return rc ? rc : kv_session_truncate(s, before, err);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int take_median(double *ms, double *ret, base_err *err)
{
    qsort(ms, REPEATS, sizeof *ms, compare);
    *ret = ms[REPEATS / 2];
    const double least = ms[REPEATS / 2 - 1], most = ms[REPEATS / 2 + 1];
    if ((most - least) / *ret <= SPREAD_MOST) return 0;
    return base_fail(err, BASE_E_STATE,
        "the machine is too busy to measure on: the same tokens took %.1f to %.1f ms each", least, most);
}

/* Both sides by turns, the first of each not counted: pages and sketches are made by it. */
static int time_depth(run *r, kv_session *const *sides, kv_pace *p, int depth, base_err *err)
{
    for (int kind = 0; kind < KV_PACE_KINDS; kind++) {
        double ms[SIDES][REPEATS], first;
        for (int i = -1; i < REPEATS; i++)
            for (int side = 0; side < SIDES; side++) {
                const int rc =
                    time_once(r, sides[side], (kv_pace_kind)kind, i < 0 ? &first : &ms[side][i], err);
                if (rc) return rc;
            }
        int rc = take_median(ms[0], &p->full[depth][kind], err);
        if (!rc) rc = take_median(ms[1], &p->few[depth][kind], err);
        if (rc) return rc;
        r->done++;
        if (r->progress) r->progress(r->user, (double)r->done / (KV_PACE_DEPTHS * KV_PACE_KINDS));
    }
    return 0;
}

static int measure_depth(run *r, kv_session *s, kv_pace *p, int depth, base_err *err)
{
    uint32_t have;
    int rc = 0;
    r->drawer.computes = false;
    for (kv_session_ids(s, &have); have < p->depths[depth] && !rc; kv_session_ids(s, &have)) {
        const uint32_t left = p->depths[depth] - have;
        rc = append(r, s, KV_ORIGIN_CONTEXT, left < MESSAGE ? left : MESSAGE, NULL, err);
    }
    r->drawer.computes = true;
    kv_session *few = NULL;
    if (!rc) rc = kv_session_fork(s, &few, NULL, err);
    if (!rc) rc = kv_session_set_budget(few, (kv_limit){.rows = p->rows}, err);
    if (!rc) rc = time_depth(r, (kv_session *const[SIDES]){s, few}, p, depth, err);
    kv_session_free(few);
    return rc;
}

int kv_pace_measure(model *m, kv_pace *ret, void (*progress)(void *user, double share), void *user,
    const atomic_bool *cancel, base_err *err)
{
    const model_info *info = model_get_info(m);
    const uint32_t half = info->n_ctx / 2,
                   deep = half < KV_BUDGET_AUTO_MOST ? half : (uint32_t)KV_BUDGET_AUTO_MOST;
    *ret = (kv_pace){.n_threads = info->n_threads,
        .rows = KV_PACE_ROWS,
        .depths = {deep / 2 > KV_BUDGET_AUTO_LEAST ? deep / 2 : KV_BUDGET_AUTO_LEAST + ROUND, deep}};
    snprintf(ret->hash, sizeof ret->hash, "%s", info->hash);
    snprintf(ret->isa, sizeof ret->isa, "%s", info->isa);
    if (ret->depths[0] >= deep)
        return base_fail(err, BASE_E_UNSUPPORTED, "a context of %u tokens is too short to compare %u rows in",
            info->n_ctx, ret->rows);
    if ((uint64_t)deep * info->row_bytes > model_memory_available() / 4)
        return base_fail(err, BASE_E_UNSUPPORTED,
            "%u rows take %llu MiB, more than a quarter of the free memory", deep,
            (unsigned long long)deep * info->row_bytes >> 20);
    run r = {.cancel = cancel, .progress = progress, .user = user};
    for (uint32_t i = 0; i < MESSAGE; i++)
        r.ids[i] = (int32_t)((uint64_t)(i + 1) * 2654435761u % (info->n_vocab * 3 / 4));
    r.logits = base_xcalloc(info->n_vocab, sizeof *r.logits);
    kv_compute compute = kv_drawn_compute(&r.drawer, m);
    compute.turn = NULL; /* nothing is folded up to the depths that are measured */
    kv_session *s = NULL;
    int rc = kv_session_new_over(&s, &compute, &(kv_options){.repair = 0}, NULL, err);
    for (int depth = 0; depth < KV_PACE_DEPTHS && !rc; depth++) rc = measure_depth(&r, s, ret, depth, err);
    kv_session_free(s);
    free(r.logits);
    return rc;
}

/* --- the file: "kvist pace 1 HASH ISA THREADS ROWS", then a line a depth: DEPTH and four times ------------ */

char *kv_pace_path(const char *model_hash)
{
    return kv_model_file(model_hash, "pace");
}

int kv_pace_save(const kv_pace *p, const char *path, base_err *err)
{
    base_buf out = {0};
    base_buf_printf(&out, "kvist pace 1 %s %s %u %u\n", p->hash, p->isa, p->n_threads, p->rows);
    for (int d = 0; d < KV_PACE_DEPTHS; d++)
        base_buf_printf(&out, "%u %.6g %.6g %.6g %.6g\n", p->depths[d], p->full[d][KV_PACE_MESSAGE],
            p->few[d][KV_PACE_MESSAGE], p->full[d][KV_PACE_ANSWER], p->few[d][KV_PACE_ANSWER]);
    int rc = base_fs_mkdirs_above(path, err);
    if (!rc) rc = base_fs_write(path, out.data, out.len, 0600, err);
    base_buf_free(&out);
    return rc;
}

/* Not NaN, and no token takes an hour. */
static bool is_time(double ms)
{
    return ms > 0 && ms < 3.6e6;
}

bool kv_pace_parse(const char *text, size_t n, kv_pace *ret)
{
    char *copy = base_xstrndup(text, n);
    int used = 0;
    *ret = (kv_pace){.n_threads = 0};
    bool fine = sscanf(copy, "kvist pace 1 %64s %31s %u %u%n", ret->hash, ret->isa, &ret->n_threads,
                    &ret->rows, &used) == 4 &&
                ret->rows >= ROUND && ret->rows <= 1u << 20;
    const char *at = copy + used;
    for (int d = 0; d < KV_PACE_DEPTHS && fine; d++, at += used) {
        double *full = ret->full[d], *few = ret->few[d];
        used = 0;
        fine = sscanf(at, "%u %lf %lf %lf %lf%n", &ret->depths[d], &full[KV_PACE_MESSAGE],
                   &few[KV_PACE_MESSAGE], &full[KV_PACE_ANSWER], &few[KV_PACE_ANSWER], &used) == 5 &&
               ret->depths[d] <= 1u << 24 && ret->depths[d] > (d ? ret->depths[d - 1] : ret->rows);
        for (int kind = 0; kind < KV_PACE_KINDS && fine; kind++)
            fine = is_time(full[kind]) && is_time(few[kind]);
    }
    free(copy);
    return fine;
}

bool kv_pace_load(const char *path, const model_info *info, kv_pace *ret)
{
    base_buf file = {0};
    const bool fine = path && !base_fs_read(path, FILE_MOST, &file, NULL) && file.len &&
                      kv_pace_parse(file.data, file.len, ret) && !strcmp(ret->hash, info->hash) &&
                      !strcmp(ret->isa, info->isa) && ret->n_threads == info->n_threads;
    base_buf_free(&file);
    return fine;
}
