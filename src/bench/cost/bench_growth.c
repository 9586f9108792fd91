/*
 * kvist-bench growth: what grows with a session. Saved sessions of one model and different lengths are opened by turns,
 * round by round; of each the same is measured: opening it, its first token, the tokens of a result, of a call and of an
 * answer, and an eviction pass behind them. Nothing is saved, so every round finds what the first one found. Tokens and
 * passes are given in processor time of the engine's thread, so give --threads 1; opening and first token as they took,
 * and in such time too. With --found, tokens of an answer are looked at again before they are timed: of the 256 evicted
 * rows that fit each of them best by their exact keys, which did it visit?
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fs.h"
#include "bench/bench.h"
#include "bench/common/peak_memory.h"
#include "bench/common/result_file.h"
#include "kv/lab/lab.h"
#include "kv/repair/heads.h"
#include "kv/session.h"

static const char usage[] =
    "usage: kvist-bench growth --model M --rows FILE,FILE,... [--rounds N] [--out FILE] [cache options]\n"
    "\n"
    "  --rows FILE,...   row files of saved sessions, as kvist-bench endless leaves them\n"
    "  --rounds N        how often each is opened and measured (5)\n"
    "  --out FILE        results as JSON lines, one a session and round\n"
    "  --found N         N tokens (up to 256) are looked at again: which of the best rows did they visit? (0)\n"
    "  --idle            between opening and first token the shell's idle work is done (\"ready_ms\")\n"
    "\n";

enum { MESSAGE = 256, WRITTEN = 24, FROM = 1024, MOST_FILES = 16 };

typedef struct bench {
    common_options common;
    const char *rows, *out;
    bool idles;
    int64_t rounds, found;
    kv_limit limit;
    model *model;
    const model_info *info;
    char *heads, *files; /* files: `rows`, cut at its commas */
    const char *file[MOST_FILES];
    uint32_t n_files;
    FILE *results;
    float *logits;
} bench;

/* Milliseconds of one session. */
typedef struct measured {
    double resume, resume_cpu, ready, first, first_cpu, message, call, prose, pass;
    kv_found found; /* means over tokens; the worst lane of any */
} measured;

static double ms_since(uint64_t start)
{
    return (double)(base_clock_ns() - start) / 1e6;
}

static double cpu_ms_since(uint64_t start)
{
    return (double)(base_clock_cpu_ns() - start) / 1e6;
}

/* Tokens one by one; *ret_ms: of processor time, each. */
static int say(
    bench *b, kv_session *s, kv_origin origin, const int32_t *ids, uint32_t n, double *ret_ms, base_err *err)
{
    const kv_segment g = {.origin = origin, .turn = 2};
    const uint64_t start = base_clock_cpu_ns();
    int r = 0;
    for (uint32_t i = 0; i < n && !r; i++) r = kv_session_append(s, &g, &ids[i], 1, b->logits, NULL, err);
    *ret_ms = cpu_ms_since(start) / n;
    return r;
}

/* Tokens one by one, each looked at again behind it. */
static int find(bench *b, kv_session *s, const int32_t *ids, kv_found *ret, base_err *err)
{
    const kv_segment g = {.origin = KV_ORIGIN_ANSWER, .turn = 2};
    const double n = (double)b->found;
    int r = 0;
    *ret = (kv_found){.worst = 1};
    for (int64_t i = 0; i < b->found && !r; i++) {
        kv_found one = {0};
        r = kv_session_append(s, &g, &ids[i], 1, NULL, NULL, err);
        if (!r) r = kv_session_found(s, &one, err);
        ret->rows += one.rows / n;
        ret->mass += one.mass / n;
        ret->worst = one.worst < ret->worst ? one.worst : ret->worst;
        ret->n_lanes = one.n_lanes;
    }
    return r;
}

/* Passes wait until they are asked for, so that tokens cost what tokens cost. */
static int measure(bench *b, kv_session *s, measured *ret, base_err *err)
{
    int32_t ids[MESSAGE];
    uint32_t n;
    const int32_t *all = kv_session_ids(s, &n);
    const kv_segment result = {.origin = KV_ORIGIN_TOOL, .turn = 2};
    if (n < FROM + MESSAGE) return base_fail(err, BASE_E_USAGE, "a session of %u tokens is too short", n);
    memcpy(ids, all + FROM, sizeof ids); /* its own words, from where all of them begin */
    kv_session_set_automatic(s, false);
    kv_session_set_turn(s, 2);
    uint64_t wall = base_clock_ns();
    if (b->idles) kv_session_make_ready(s, NULL);
    ret->ready = ms_since(wall);
    wall = base_clock_ns();
    int r = say(b, s, KV_ORIGIN_ANSWER, ids, 1, &ret->first_cpu, err);
    ret->first = ms_since(wall);
    if (!r && b->found) r = find(b, s, ids, &ret->found, err);
    if (!r) r = say(b, s, KV_ORIGIN_ANSWER, ids, WRITTEN, &ret->prose, err);
    if (!r) r = say(b, s, KV_ORIGIN_CALL, ids, WRITTEN, &ret->call, err);
    uint64_t start = base_clock_cpu_ns();
    if (!r) r = kv_session_append(s, &result, ids, MESSAGE, NULL, NULL, err);
    ret->message = cpu_ms_since(start) / MESSAGE;
    start = base_clock_cpu_ns();
    if (!r) r = kv_session_evict(s, err);
    ret->pass = cpu_ms_since(start);
    return r;
}

static int open_and_measure(bench *b, const char *path, int64_t round, base_err *err)
{
    kv_session *s = NULL;
    kv_stats stats;
    measured m = {0};
    const kv_options o = {.budget = b->limit.rows,
        .until = b->limit.until,
        .policy = b->common.policy,
        .repair = options_repair(&b->common),
        .set = b->common.set,
        .row_file = path,
        .heads_file = b->heads};
    const uint64_t start = base_clock_ns(), start_cpu = base_clock_cpu_ns();
    int r = kv_session_resume(&s, b->model, &o, NULL, err);
    m.resume = ms_since(start);
    m.resume_cpu = cpu_ms_since(start_cpu);
    if (!r) {
        kv_session_get_stats(s, &stats);
        r = measure(b, s, &m, err);
    }
    kv_session_free(s);
    if (r) return r;
    const kv_found *f = &m.found;
    fprintf(b->results,
        "{\"bench\":\"growth\",\"model\":\"%.12s\",\"round\":%lld,\"tokens\":%u,\"folded_to\":%u,\"active\":%u,"
        "\"resume_ms\":%.1f,\"resume_cpu_ms\":%.1f,\"ready_ms\":%.1f,\"first_ms\":%.1f,\"first_cpu_ms\":%.1f,"
        "\"message_ms\":%.2f,\"call_ms\":%.2f,\"prose_ms\":%.2f,"
        "\"pass_ms\":%.1f,\"peak_mb\":%.0f",
        b->info->hash, (long long)round, stats.n_tokens, stats.folded_to, stats.active, m.resume,
        m.resume_cpu, m.ready, m.first, m.first_cpu, m.message, m.call, m.prose, m.pass, bench_peak_mb());
    if (b->found)
        fprintf(b->results,
            ",\"found_tokens\":%lld,\"found_lanes\":%u,\"found_rows\":%.4f,\"found_mass\":%.4f,\"found_worst\":%.4f",
            (long long)b->found, f->n_lanes, f->rows, f->mass, f->worst);
    fprintf(b->results, "}\n");
    fflush(b->results);
    return 0;
}

static int read_files(bench *b, base_err *err)
{
    if (b->found < 0 || b->found > MESSAGE)
        return base_fail(err, BASE_E_USAGE, "--found is from 0 to %d", MESSAGE);
    if (!b->rows || b->rounds < 1)
        return base_fail(err, BASE_E_USAGE, "--rows is needed, and one round at least");
    b->files = strdup(b->rows);
    char *left = b->files;
    for (char *one; left && (one = strsep(&left, ","));) {
        if (b->n_files == MOST_FILES)
            return base_fail(err, BASE_E_USAGE, "--rows are at most %d files", MOST_FILES);
        b->file[b->n_files++] = one;
    }
    return b->files ? 0 : base_fail(err, BASE_E_NOMEM, "no memory for a list of files");
}

static int run(bench *b, base_err *err)
{
    int r = read_files(b, err);
    if (!r) r = cmd_open_model(&b->common, &b->model, err);
    if (r) return r;
    b->info = model_get_info(b->model);
    b->heads = kv_heads_path(b->info->hash);
    b->logits = malloc(b->info->n_vocab * sizeof *b->logits);
    if (!b->logits) return base_fail(err, BASE_E_NOMEM, "no memory for logits");
    r = options_budget(&b->common, b->info->n_ctx, b->info->row_bytes, (kv_limit){0}, &b->limit, err);
    if (!r) r = bench_open_out(&b->results, b->out, true, NULL, err);
    for (int64_t round = 0; round < b->rounds && !r; round++)
        for (uint32_t i = 0; i < b->n_files && !r; i++) r = open_and_measure(b, b->file[i], round, err);
    return r;
}

int bench_growth(int argc, char **argv)
{
    bench b = {.common = COMMON_OPTIONS_DEFAULTS, .rounds = 5};
    const option_row own[] = {{"--idle", OPTION_FLAG, &b.idles}, {"--found", OPTION_INTEGER, &b.found},
        {"--rows", OPTION_TEXT, &b.rows}, {"--rounds", OPTION_INTEGER, &b.rounds},
        {"--out", OPTION_TEXT, &b.out}, {.name = NULL}};
    base_err err = {0};
    int r;
    if (!cmd_begin(argc, argv, &b.common, own, &(cmd_words){.usage = usage}, &r)) return r;
    if (!r) r = run(&b, &err);
    if (b.results && b.results != stdout) fclose(b.results);
    free(b.logits);
    free(b.heads);
    free(b.files);
    model_close(b.model);
    return r ? cmd_complain(&err) : CMD_OK;
}
