/*
 * kvist-bench clusters: would a level above the sketches do? Opens a session that another bench has saved (or
 * reads text into a new one and saves it), asks it some things, each in a fork, and prints for pages and for
 * clusters of several sizes what share of the best rows' mass is found when a share of the rows is opened.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/bench.h"
#include "bench/common/corpus.h"
#include "bench/common/result_file.h"
#include "kv/core/compute.h"
#include "kv/lab/lab.h"
#include "model/text/template.h"

static const char usage[] =
    "usage: kvist-bench clusters --model M --session FILE "
    "[--corpus FOLDER --tokens N] [--lanes N] [--out FILE]\n"
    "                            [cache options]\n"
    "\n"
    "  --session FILE    a row file with its manifest; made of the corpus where there is none\n"
    "  --corpus FOLDER   real code that a new session reads\n"
    "  --tokens N        how much of it (16384)\n"
    "  --asks N          how many of the four things that are asked (4)\n"
    "  --lanes N         every N-th lane is looked at (4)\n"
    "  --out FILE        results as JSON lines, added to those that are there\n"
    "\n";

/* A question, another about what was read, a call, a line of code. */
static const char *const asks[] = {
    "What is the number of amber_bridge? Answer with the number.",
    "Which function frees a reply, and what does it do with nested elements?",
    "{\"name\": \"read\", \"arguments\": {\"path\": \"hiredis.c\", \"line\": 120}}",
    "static int redisBufferWrite(redisContext *c, int *done) { if (c->err) return REDIS_ERR;",
};
static const char *const kinds[KV_CLUSTER_KINDS] = {"pages", "clusters", "halves"};
static const kv_cluster_way ways[] = {
    {KV_CLUSTER_PAGES, 16, 256, .spread = false},
    {KV_CLUSTER_PAGES, 16, 256, .spread = true},
    {KV_CLUSTER_LIKE, 16, 256, .stretched = false},
    {KV_CLUSTER_LIKE, 16, 256, .stretched = true},
    {KV_CLUSTER_HALVES, 16, 256, .stretched = true},
    {KV_CLUSTER_HALVES, 8, 256, .stretched = true},
    {KV_CLUSTER_LIKE, 16, 4096, .stretched = false},
    {KV_CLUSTER_LIKE, 16, 4096, .stretched = true},
    {KV_CLUSTER_LIKE, 16, 4096, .stretched = true, .spread = true},
    {KV_CLUSTER_LIKE, 64, 4096, .stretched = true},
};
static const double shares[] = {.02, .05, .1, .25};
enum {
    N_ASKS = sizeof asks / sizeof *asks,
    N_WAYS = sizeof ways / sizeof *ways,
    N_SHARES = sizeof shares / sizeof *shares,
    PART = 512,
    MOST_ASK = 16
};

typedef struct bench {
    common_options common;
    const char *session, *corpus_folder, *out;
    int64_t tokens, lanes, asks;
    kv_limit limit;
    model *model;
    FILE *results;
} bench;

static int read_corpus(bench *b, kv_session *s, base_err *err)
{
    base_buf corpus = {0};
    model_ids ids = {0};
    int r = b->corpus_folder ? bench_corpus_load(b->corpus_folder, &corpus, err)
                             : base_fail(err, BASE_E_USAGE, "there is no %s; --corpus makes it", b->session);
    if (!r) model_tokenizer_encode(model_get_tokenizer(b->model), corpus.data, corpus.len, false, &ids);
    if (!r && ids.n < (size_t)b->tokens) r = base_fail(err, BASE_E_USAGE, "the corpus is too small");
    const kv_segment g = {.origin = KV_ORIGIN_TOOL, .turn = 1};
    for (uint32_t at = 0; at < b->tokens && !r; at += PART)
        r = kv_session_append(s, &g, ids.ids + at, PART, NULL, NULL, err);
    if (!r) r = kv_session_save(s, err);
    model_ids_free(&ids);
    base_buf_free(&corpus);
    return r;
}

static int ask(bench *b, const kv_session *whole, uint32_t k, base_err *err)
{
    const model_template *template = model_get_template(b->model);
    const model_info *info = model_get_info(b->model);
    const uint64_t start = base_clock_ns();
    model_ids ids = {0};
    kv_session *s = NULL;
    kv_signal signal = {.n = 0};
    uint32_t from = 0, to = 0;
    double mean[N_WAYS * N_SHARES], worst[N_WAYS * N_SHARES];
    model_template_begin(template, MODEL_ROLE_USER, &ids);
    model_tokenizer_encode(model_get_tokenizer(b->model), asks[k], strlen(asks[k]), false, &ids);
    int r = kv_session_fork(whole, &s, NULL, err);
    const kv_segment g = {.origin = KV_ORIGIN_USER, .turn = 2};
    if (!r) kv_session_set_turn(s, 2);
    if (!r) kv_session_ids(s, &from);
    if (!r) r = kv_session_append(s, &g, ids.ids, (uint32_t)ids.n, NULL, NULL, err);
    if (!r) kv_session_ids(s, &to);
    if (!r) r = kv_session_signal(s, &(kv_ask){from, to}, MOST_ASK, &signal, err);
    if (!r)
        r = kv_session_clusters(s, &signal,
            &(kv_cluster_trial){.ways = ways,
                .shares = shares,
                .n_ways = N_WAYS,
                .n_shares = N_SHARES,
                .step = (uint32_t)b->lanes,
                .mean = mean,
                .worst = worst},
            err);
    for (uint32_t w = 0; w < N_WAYS && !r; w++) {
        fprintf(b->results,
            "{\"bench\":\"clusters\",\"model\":\"%.12s\",\"tokens\":%u,\"ask\":%u,\"queries\":%u,\"kind\":\"%"
            "s\","
            "\"rows\":%u,\"chunk\":%u,\"spread\":%d,\"stretched\":%d,\"lane_step\":%lld",
            info->hash, from, k, signal.n, kinds[ways[w].kind], ways[w].rows, ways[w].chunk, ways[w].spread,
            ways[w].stretched, (long long)b->lanes);
        for (uint32_t i = 0; i < N_SHARES; i++)
            fprintf(b->results, ",\"at_%.2f\":%.4f,\"worst_%.2f\":%.4f", shares[i], mean[w * N_SHARES + i],
                shares[i], worst[w * N_SHARES + i]);
        fprintf(b->results, "}\n");
    }
    fflush(b->results);
    fprintf(stderr, "ask %u: %.1f s\n", k, (double)(base_clock_ns() - start) / 1e9);
    kv_signal_fini(&signal);
    kv_session_free(s);
    model_ids_free(&ids);
    return r;
}

static int run(bench *b, base_err *err)
{
    kv_session *s = NULL;
    base_err why = {0};
    int r = cmd_open_model(&b->common, &b->model, err);
    if (r) return r;
    const model_info *info = model_get_info(b->model);
    r = options_budget(&b->common, info->n_ctx, info->row_bytes, (kv_limit){0}, &b->limit, err);
    if (!r) r = bench_open_out(&b->results, b->out, true, NULL, err);
    const kv_options o = {.budget = b->limit.rows,
        .until = b->limit.until,
        .policy = b->common.policy,
        .repair = -1,
        .set = b->common.set,
        .row_file = b->session};
    if (!r && kv_session_resume(&s, b->model, &o, NULL, &why)) {
        fprintf(stderr, "a new session: %s\n", why.msg);
        r = kv_session_new(&s, b->model, &o, NULL, err);
        if (!r) r = read_corpus(b, s, err);
    }
    for (uint32_t k = 0; k < (uint32_t)b->asks && !r; k++) r = ask(b, s, k, err);
    kv_session_free(s);
    return r;
}

int bench_clusters(int argc, char **argv)
{
    bench b = {.common = COMMON_OPTIONS_DEFAULTS, .tokens = 16384, .lanes = 4, .asks = N_ASKS};
    const option_row own[] = {{"--session", OPTION_TEXT, &b.session},
        {"--corpus", OPTION_TEXT, &b.corpus_folder},
        {"--asks", OPTION_INTEGER, &b.asks, .bounds = {1, N_ASKS}},
        {"--tokens", OPTION_INTEGER, &b.tokens, .bounds = {2048, 1000000}},
        {"--lanes", OPTION_INTEGER, &b.lanes, .bounds = {1, 64}}, {"--out", OPTION_TEXT, &b.out},
        {.name = NULL}};
    base_err err = {0};
    int r;
    if (!cmd_begin(argc, argv, &b.common, own, &(cmd_words){.usage = usage}, &r)) return r;
    if (!b.session) r = base_fail(&err, BASE_E_USAGE, "--session is needed");
    if (!r) r = run(&b, &err);
    if (b.results && b.results != stdout) fclose(b.results);
    model_close(b.model);
    return r ? cmd_complain(&err) : CMD_OK;
}
