/*
 * kvist-bench resume: from a saved session's files to the next token, beside a further decode step and beside
 * what computing the rows anew would take. Rows are drawn (kv/calibrate/drawn_rows.h) and saved once; resuming and
 * decoding are the program's own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fs.h"
#include "bench/bench.h"
#include "bench/common/statistics.h"
#include "kv/calibrate/drawn_rows.h"

static const char usage[] = "usage: kvist-bench resume --model M [--rows N] [--active N] [--repeat N]\n"
                            "\n"
                            "  --rows N      tokens of the session (16384, at most the context)\n"
                            "  --active N    active rows a lane, each lane its own (4096)\n"
                            "  --repeat N    how often; the median counts (3). The files "
                            "are read by the first resume, so the page cache is warm\n"
                            "\n";

enum { MOST_REPEAT = 101, PREFILL = 512 };

typedef struct bench {
    common_options common;
    int64_t rows, active, repeat;
    model *model;
    const model_info *info;
    base_buf file;
    float *logits;
} bench;

static double ms_since(uint64_t start)
{
    return (double)(base_clock_ns() - start) / 1e6;
}

/* The session on disk; *ret_ms: writing it. */
static int save(bench *b, double *ret_ms, base_err *err)
{
    kv_drawn_rows drawn;
    kv_session *s = NULL;
    const kv_compute compute = kv_drawn_compute(&drawn, b->model);
    static const char *const set[] = {"hard=0", "low=1", NULL};
    int32_t *ids = calloc((size_t)b->rows + 1, sizeof *ids);
    const kv_segment text = {.origin = KV_ORIGIN_CONTEXT, .turn = 1};
    const kv_options o = {.policy = "full", .row_file = b->file.data};
    int r = ids ? kv_session_new_over(&s, &compute, &o, NULL, err)
                : base_fail(err, BASE_E_NOMEM, "no memory for %lld rows", (long long)b->rows);
    if (!r) r = kv_session_append(s, &text, ids, (uint32_t)b->rows, NULL, NULL, err);
    if (!r)
        r = kv_session_set_policy(
            s, &(kv_options){.budget = (uint32_t)b->active, .policy = "random", .set = set}, err);
    if (!r) r = kv_session_evict(s, err);
    const uint64_t start = base_clock_ns();
    if (!r) r = kv_session_save(s, err);
    *ret_ms = ms_since(start);
    kv_session_free(s);
    free(ids);
    return r;
}

static int step(bench *b, kv_session *s, uint32_t n, double *ret_ms, base_err *err)
{
    static const int32_t ids[PREFILL];
    const kv_segment answer = {.origin = KV_ORIGIN_ANSWER, .turn = 1};
    const uint64_t start = base_clock_ns();
    const int r = kv_session_append(s, &answer, ids, n, b->logits, NULL, err);
    *ret_ms = ms_since(start);
    return r;
}

/* Opened, one token, another: milliseconds each. */
static int resume(bench *b, double *ret_resume, double *ret_first, double *ret_step, base_err *err)
{
    kv_session *s = NULL;
    const kv_options o = {.policy = "random", .budget = (uint32_t)b->active, .row_file = b->file.data};
    const uint64_t start = base_clock_ns();
    int r = kv_session_resume(&s, b->model, &o, NULL, err);
    *ret_resume = ms_since(start);
    if (!r) kv_session_set_automatic(s, false);
    if (!r) r = step(b, s, 1, ret_first, err);
    if (!r) r = step(b, s, 1, ret_step, err);
    kv_session_free(s);
    return r;
}

static int prefill(bench *b, double *ret_ms, base_err *err)
{
    kv_session *s = NULL;
    int r = kv_session_new(&s, b->model, &(kv_options){.policy = "full"}, NULL, err);
    if (!r) r = step(b, s, PREFILL, ret_ms, err);
    kv_session_free(s);
    return r;
}

static int measure(bench *b, base_err *err)
{
    double resumes[MOST_REPEAT], firsts[MOST_REPEAT], steps[MOST_REPEAT], save_ms = 0, prefill_ms = 0;
    const size_t n = (size_t)b->repeat, middle = n / 2;
    int r = save(b, &save_ms, err);
    if (!r) r = resume(b, &resumes[0], &firsts[0], &steps[0], err); /* what is not in memory is read now */
    for (size_t i = 0; i < n && !r; i++) r = resume(b, &resumes[i], &firsts[i], &steps[i], err);
    if (!r) r = prefill(b, &prefill_ms, err);
    if (r) return r;
    qsort(resumes, n, sizeof *resumes, bench_compare_doubles);
    qsort(firsts, n, sizeof *firsts, bench_compare_doubles);
    qsort(steps, n, sizeof *steps, bench_compare_doubles);
    const double beyond = resumes[middle] + firsts[middle] - steps[middle],
                 computing = prefill_ms * (double)b->rows / PREFILL;
    printf("{\"bench\":\"resume\",\"model\":\"%.12s\",\"rows\":%lld,\"active\":%lld,\"file_bytes\":%.0f,"
           "\"save_ms\":%.1f,\"resume_ms\":%.1f,\"first_ms\":%.1f,\"step_ms\":%.1f,\"beyond_step_ms\":%.1f,"
           "\"prefill_512_ms\":%.1f,\"computing_at_least_ms\":%.0f,\"times_faster\":%.1f}\n",
        b->info->hash, (long long)b->rows, (long long)b->active, (double)b->rows * b->info->row_bytes,
        save_ms, resumes[middle], firsts[middle], steps[middle], beyond, prefill_ms, computing,
        computing / (resumes[middle] + firsts[middle]));
    return 0;
}

static int run(bench *b, base_err *err)
{
    char folder[] = "/var/tmp/kvist-resume-XXXXXX";
    int r = cmd_open_model(&b->common, &b->model, err);
    if (r) return r;
    b->info = model_get_info(b->model);
    if (b->rows > (int64_t)b->info->n_ctx - PREFILL) b->rows = (int64_t)b->info->n_ctx - PREFILL;
    b->logits = malloc(b->info->n_vocab * sizeof *b->logits);
    if (!b->logits) return base_fail(err, BASE_E_NOMEM, "no memory for logits");
    if (!mkdtemp(folder)) return base_fail_sys(err, "cannot make a folder for the session's rows");
    base_buf_printf(&b->file, "%s/rows", folder);
    r = measure(b, err);
    base_err ignored = {0};
    base_fs_remove(folder, &ignored);
    return r;
}

int bench_resume(int argc, char **argv)
{
    bench b = {.common = COMMON_OPTIONS_DEFAULTS, .rows = 16384, .active = 4096, .repeat = 3};
    const option_row own[] = {
        {"--rows", OPTION_INTEGER, &b.rows, .bounds = {2000, BENCH_ROWS}},
        {"--active", OPTION_INTEGER, &b.active, .bounds = {600, BENCH_ROWS}},
        {"--repeat", OPTION_INTEGER, &b.repeat, .bounds = {1, MOST_REPEAT}},
        {.name = NULL},
    };
    base_err err = {0};
    int r;
    if (!cmd_begin(argc, argv, &b.common, own, &(cmd_words){.usage = usage}, &r)) return r;
    if (b.active > b.rows) r = base_fail(&err, BASE_E_USAGE, "--active is at most --rows");
    if (!r) r = run(&b, &err);
    free(b.logits);
    base_buf_free(&b.file);
    model_close(b.model);
    return r ? cmd_complain(&err) : CMD_OK;
}
