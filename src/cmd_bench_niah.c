/*
 * kvist bench niah: does the cache bring back what the next question asks for?
 *
 * Eight constants hide in C code. The first question asks for four of them; then the session is cut to its budget by what that
 * question looked at; the second question asks for the other four. A condition is a policy with its repair; all conditions of
 * a text share its rows (a fork each) and the same budget of active rows per lane, repaired rows included. One JSON line a
 * condition and text: the share of the asked rows that are active before and after the repair, how many of the four values come
 * out whole and how many digit tokens are the most probable ones (teacher-forced), and what it cost.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/json.h"
#include "cmd.h"
#include "kv/heads.h"
#include "kv/needle.h"
#include "kv/session.h"
#include "options.h"

static const char usage[] =
    "usage: kvist bench niah --model M [--tokens N] [--texts N] [--rows N] [--restore K] [--calibrate]\n"
    "\n"
    "  --tokens N    length of each text (2000)\n"
    "  --texts N     how many texts (3)\n"
    "  --rows N      active rows per lane after the first answer (a third of the text, at least 700)\n"
    "  --restore K   rows per lane that a repair may bring back (96)\n"
    "  --calibrate   find the model's retrieval heads first, and keep them for its sessions\n"
    "\n";

/* One row a condition. */
static const struct condition {
    const char *name, *policy;
    bool limited; /* the budget holds */
    bool repairs, heads;
    const char *set;
} conditions[] = {
    {.name = "full", .policy = "full"},
    {.name = "streaming-llm", .policy = "streaming-llm", .limited = true},
    {.name = "snapkv", .policy = "snapkv", .limited = true},
    {.name = "snapkv, repair as in the paper",
        .policy = "snapkv",
        .limited = true,
        .repairs = true,
        .set = "paper=1"},
    {.name = "snapkv, repair to the line", .policy = "snapkv", .limited = true, .repairs = true},
    {.name = "snapkv, repair by retrieval heads",
        .policy = "snapkv",
        .limited = true,
        .repairs = true,
        .heads = true},
    {.name = "snapkv-seed", .policy = "snapkv-seed", .limited = true},
    {.name = "snapkv-seed, repair as in the paper",
        .policy = "snapkv-seed",
        .limited = true,
        .repairs = true,
        .set = "paper=1"},
    {.name = "kvist without repair", .policy = "kvist", .limited = true},
    {.name = "kvist", .policy = "kvist", .limited = true, .repairs = true, .heads = true},
};

typedef struct bench {
    common_options common;
    int64_t tokens, texts, rows, restore;
    bool calibrate, help;
    model *model;
    const model_info *info;
    char *heads;
    kv_needle_text text;
    kv_needle_question first, second;
} bench;

static const uint32_t first_asked[] = {0, 2, 4, 6}, second_asked[] = {7, 1, 5, 3};

static int append(kv_session *s, kv_origin origin, uint32_t turn, const model_ids *ids,
    const kv_needle_question *q, const kv_needle_text *text, float *logits, base_err *err)
{
    const kv_segment g = {
        .origin = origin,
        .turn = turn,
        .queries = q ? q->queries : NULL,
        .n_queries = q ? q->n_queries : 0,
        .lines = text ? text->lines : NULL,
        .n_lines = text ? text->n_lines : 0,
    };
    return kv_session_append(s, &g, ids->ids, (uint32_t)ids->n, logits, NULL, NULL, err);
}

/* Share of the asked lines' rows that are active, mean over lanes. */
static double asked_active(const bench *b, const kv_session *s, const kv_needle_question *q)
{
    kv_stats stats;
    kv_session_get_stats(s, &stats);
    uint32_t *lanes = calloc(stats.n_tokens + 1, sizeof *lanes);
    double active = 0, all = 0;
    if (!lanes) return 0;
    kv_session_active_lanes(s, lanes);
    for (uint32_t k = 0; k < KV_NEEDLES_ASKED; k++) {
        const kv_needle *needle = &b->text.needles[q->asked[k].needle];
        for (uint32_t t = needle->from; t < needle->to; t++, all++)
            active += (double)lanes[t] / stats.n_lanes;
    }
    free(lanes);
    return active / all;
}

static uint32_t most_probable(const float *logits, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

/* Feeds the answer token by token and counts digits that were expected. */
static int read_answer(const bench *b, kv_session *s, const kv_needle_question *q, float *logits,
    uint32_t *digits, uint32_t *right, uint32_t *values, base_err *err)
{
    int r = 0;
    *digits = *right = *values = 0;
    bool whole = true;
    for (uint32_t i = 0, k = 0; i < q->answer.n && k < KV_NEEDLES_ASKED && !r; i++) {
        if (i >= q->asked[k].from) {
            const bool expected = most_probable(logits, b->info->n_vocab) == (uint32_t)q->answer.ids[i];
            (*digits)++;
            *right += expected;
            whole = whole && expected;
        }
        const model_ids one = {.ids = &q->answer.ids[i], .n = 1};
        r = append(s, KV_ORIGIN_ANSWER, 2, &one, NULL, NULL, logits, err);
        if (i + 1 == q->asked[k].to) {
            *values += whole;
            whole = true;
            k++;
        }
    }
    return r;
}

static int run_condition(
    bench *b, const kv_session *base, const struct condition *c, int64_t text, float *logits, base_err *err)
{
    const char *const set[] = {c->set, NULL};
    kv_session *s = NULL;
    uint32_t from = 0, digits = 0, right = 0, values = 0;
    double before = 0, after = 0;
    kv_stats stats = {0};
    int r = kv_session_fork(base, &s, NULL, err);
    if (r) return r;
    const kv_options o = {.budget = c->limited ? (uint32_t)b->rows : 0,
        .policy = c->policy,
        .repair = c->repairs ? (int)b->restore : 0,
        .set = c->set ? set : NULL,
        .heads_file = c->heads ? b->heads : NULL};
    r = kv_session_set_policy(s, &o, err);
    kv_session_set_automatic(s, true);
    if (!r) r = kv_session_evict(s, NULL, err);
    if (!r) {
        kv_session_ids(s, &from);
        kv_session_set_turn(s, 2);
        r = append(s, KV_ORIGIN_USER, 2, &b->second.ids, &b->second, NULL, NULL, err);
    }
    if (!r) {
        before = asked_active(b, s, &b->second);
        uint32_t queries[16];
        for (uint32_t i = 0; i < b->second.n_queries; i++) queries[i] = from + b->second.queries[i];
        r = kv_session_repair(
            s, from, from + (uint32_t)b->second.ids.n, queries, b->second.n_queries, NULL, err);
    }
    if (!r) {
        after = asked_active(b, s, &b->second);
        kv_session_get_stats(s, &stats);
        r = append(s, KV_ORIGIN_SCAFFOLD, 2, &b->second.tail, NULL, NULL, logits, err);
    }
    if (!r) r = read_answer(b, s, &b->second, logits, &digits, &right, &values, err);
    if (!r) {
        base_buf out = {0};
        base_buf_puts(&out, "{\"condition\":");
        base_json_put_str(&out, c->name, strlen(c->name));
        base_buf_printf(&out,
            ",\"text\":%lld,\"tokens\":%u,\"active\":%u,\"active_max\":%u,\"asked_before\":%.3f,\"asked_"
            "after\":%.3f,\"values\":%u,\"of\":%u,\"digits\":%.3f,\"score_ms\":%.1f,"
            "\"plan_ms\":%.1f}\n",
            (long long)text, stats.n_tokens, stats.active, stats.active_max, before, after, values,
            (unsigned)KV_NEEDLES_ASKED, (double)right / digits, stats.score_ms, stats.plan_ms);
        fputs(out.data, stdout);
        fflush(stdout);
        base_buf_free(&out);
    }
    kv_session_free(s);
    return r;
}

static int run_text(bench *b, int64_t text, base_err *err)
{
    const model_tokenizer *t = model_get_tokenizer(b->model);
    const model_template *template = model_get_template(b->model);
    const uint64_t seed = (uint64_t)text + 1;
    kv_needle_text_make(&b->text, t, template, seed, (uint32_t)b->tokens);
    kv_needle_question_make(&b->first, t, template, seed, first_asked, false);
    kv_needle_question_make(&b->second, t, template, seed, second_asked, true);
    float *logits = malloc(b->info->n_vocab * sizeof *logits);
    kv_session *s = NULL;
    int r = logits ? kv_session_new(&s, b->model, &(kv_options){.policy = "full"}, NULL, err)
                   : base_fail(err, BASE_E_NOMEM, "no memory for logits");
    if (!r) r = append(s, KV_ORIGIN_CONTEXT, 1, &b->text.text, NULL, &b->text, NULL, err);
    if (!r) r = append(s, KV_ORIGIN_USER, 1, &b->first.ids, &b->first, NULL, NULL, err);
    if (!r) r = append(s, KV_ORIGIN_SCAFFOLD, 1, &b->first.tail, NULL, NULL, NULL, err);
    if (!r) r = append(s, KV_ORIGIN_ANSWER, 1, &b->first.answer, NULL, NULL, NULL, err);
    for (size_t i = 0; i < sizeof conditions / sizeof *conditions && !r; i++)
        r = run_condition(b, s, &conditions[i], text, logits, err);
    kv_session_free(s);
    free(logits);
    kv_needle_text_free(&b->text);
    kv_needle_question_free(&b->first);
    kv_needle_question_free(&b->second);
    return r;
}

static void say_progress(void *user, double share)
{
    fprintf(stderr, "calibrating: %.0f%%\n", share * 100);
}

int cmd_bench_niah(int argc, char **argv)
{
    bench b = {.common = COMMON_OPTIONS_DEFAULTS, .tokens = 2000, .texts = 3, .restore = 96};
    const option_row own[] = {
        {"--tokens", OPTION_INTEGER, &b.tokens},
        {"--texts", OPTION_INTEGER, &b.texts},
        {"--rows", OPTION_INTEGER, &b.rows},
        {"--restore", OPTION_INTEGER, &b.restore},
        {"--calibrate", OPTION_FLAG, &b.calibrate},
        {"--help", OPTION_FLAG, &b.help},
        {.name = NULL},
    };
    const char **rest = calloc((size_t)argc, sizeof *rest);
    uint32_t n_rest = 0;
    base_err err = {0};
    char *path = NULL;
    int r = rest ? options_parse(argc, argv, &b.common, own, rest, &n_rest, &err) : BASE_E_NOMEM;
    if (!r && n_rest) r = base_fail(&err, BASE_E_USAGE, "bench niah takes options only, not '%s'", rest[0]);
    free(rest);
    if (!r && b.help) {
        fputs(usage, stdout);
        fputs(options_help, stdout);
        return CMD_OK;
    }
    if (!r && (b.tokens < 500 || b.tokens > 100000 || b.texts < 1 || b.texts > 1000 || b.restore < 1 ||
                  b.restore > 100000 || b.rows < 0))
        r = base_fail(
            &err, BASE_E_USAGE, "--tokens is 500 to 100000, --texts 1 to 1000, --restore at least 1");
    if (!r) r = options_model_path(&b.common, &path, &err);
    if (!r)
        r = model_open(&b.model, path,
            &(model_options){.n_threads = (int)b.common.threads, .backend = b.common.backend}, &err);
    free(path);
    if (r) return cmd_complain(&err);
    b.info = model_get_info(b.model);
    b.heads = kv_heads_path(b.info->hash);
    if (!b.rows) b.rows = b.tokens / 3 > 700 ? b.tokens / 3 : 700;
    if (b.calibrate) r = kv_heads_calibrate(b.model, 20, b.heads, say_progress, NULL, NULL, &err);
    if (!r && !base_fs_exists(b.heads))
        fputs("kvist: this model's retrieval heads are not calibrated (--calibrate); all heads count\n",
            stderr);
    for (int64_t text = 0; text < b.texts && !r; text++) r = run_text(&b, text, &err);
    free(b.heads);
    model_close(b.model);
    return r ? cmd_complain(&err) : CMD_OK;
}
