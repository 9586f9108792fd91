/*
 * kvist eval: the engine's truth for scripts and checks. JSON lines in on stdin, one JSON line out for each.
 *
 *   tokens    {"text":...,"parse_special":bool} -> [id,...]              (loads no weights)
 *   logprobs  {"ids":[...]} -> {"top":[[[id,logprob],...],...],"nll":x}  (top: behind every position; nll:
 *       mean of -log p)
 *
 * With cache options logprobs runs through a session, one token at a time as decoding does, so that what
 * eviction costs is seen; without them it is one plain forward pass.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "kv/session.h"
#include "model/forward/dense.h"
#include "model/file/gguf.h"
#include "model/forward/model.h"
#include "model/text/tokenizer.h"
#include "cmd/options.h"

enum { AT_ONCE = 64, MAX_TOP = 1000 };

static const char usage[] =
    "usage: kvist eval tokens --model M               {\"text\":...,\"parse_special\":bool} a line\n"
    "       kvist eval logprobs --model M [--top K]   {\"ids\":[...]} a line; K: 32\n"
    "\n"
    "Reads JSON lines from standard input and writes one JSON line for each.\n";

typedef struct eval {
    common_options common;
    int64_t top;
    model *model;
    const model_info *info;
    float *logits;      /* [AT_ONCE][n_vocab] */
    struct rank *ranks; /* [top] */
    base_buf out;
} eval;

typedef struct rank {
    float logit;
    int32_t id;
} rank;

/* Calls fn for every line of stdin; a line that is no JSON object is an error that names its number. */
static int each_line(int (*fn)(void *user, const base_json *line, base_err *err), void *user, base_err *err)
{
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    uint64_t number = 0;
    int rc = 0;

    while (!rc && (n = getline(&line, &cap, stdin)) >= 0) {
        base_json_doc *doc;
        number++;
        if (strspn(line, " \t\r\n") == (size_t)n) continue;
        rc = base_json_parse(line, (size_t)n, &doc, err);
        if (!rc) {
            rc = base_json_root(doc)->type == BASE_JSON_OBJECT
                     ? fn(user, base_json_root(doc), err)
                     : base_fail(err, BASE_E_FORMAT, "not a JSON object");
            base_json_free(doc);
        }
        if (rc) base_err_prefix(err, "line %llu", (unsigned long long)number);
    }
    if (!rc && ferror(stdin)) rc = base_fail_sys(err, "cannot read standard input");
    free(line);
    return rc;
}

static int flush_line(base_buf *out, base_err *err)
{
    base_buf_putc(out, '\n');
    if (fwrite(out->data, 1, out->len, stdout) != out->len || fflush(stdout) != 0)
        return base_fail_sys(err, "cannot write to standard output");
    base_buf_clear(out);
    return 0;
}

/* tokens */

typedef struct tokens {
    model_tokenizer *tokenizer;
    model_ids ids;
    base_buf out;
} tokens;

static int tokens_line(void *user, const base_json *line, base_err *err)
{
    tokens *t = user;
    const base_json *text = base_json_get(line, "text");
    if (!text || text->type != BASE_JSON_STRING) return base_fail(err, BASE_E_FORMAT, "no string \"text\"");
    t->ids.n = 0;
    model_tokenizer_encode(
        t->tokenizer, text->string, text->string_len, base_json_bool(line, "parse_special", false), &t->ids);
    base_buf_putc(&t->out, '[');
    for (size_t i = 0; i < t->ids.n; i++) base_buf_printf(&t->out, i ? ",%d" : "%d", t->ids.ids[i]);
    base_buf_putc(&t->out, ']');
    return flush_line(&t->out, err);
}

static int eval_tokens(const char *path, base_err *err)
{
    tokens t = {0};
    gguf_file *file = NULL;
    int rc = gguf_open(&file, path, err);
    if (!rc) rc = model_tokenizer_load(&t.tokenizer, file, err);
    if (!rc) rc = each_line(tokens_line, &t, err);
    model_tokenizer_free(t.tokenizer);
    gguf_close(file);
    model_ids_free(&t.ids);
    base_buf_free(&t.out);
    return rc;
}

/* logprobs */

static double log_sum(const float *logits, uint32_t n)
{
    double max = -INFINITY, sum = 0;
    for (uint32_t i = 0; i < n; i++)
        if (logits[i] > max) max = logits[i];
    for (uint32_t i = 0; i < n; i++) sum += exp(logits[i] - max);
    return max + log(sum);
}

/* The k best in order; ties by id. */
static uint32_t rank_best(const float *logits, uint32_t n, rank *best, uint32_t k)
{
    uint32_t have = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (have == k && !(logits[i] > best[k - 1].logit)) continue;
        uint32_t at = have < k ? have++ : k - 1;
        for (; at > 0 && logits[i] > best[at - 1].logit; at--) best[at] = best[at - 1];
        best[at] = (rank){logits[i], (int32_t)i};
    }
    return have;
}

/* One position: its best ids behind the last, and -log p of the id that follows (NAN: none follows). */
static double put_position(eval *e, const float *logits, int32_t next)
{
    double all = log_sum(logits, e->info->n_vocab);
    uint32_t n = rank_best(logits, e->info->n_vocab, e->ranks, (uint32_t)e->top);
    base_buf_putc(&e->out, '[');
    for (uint32_t i = 0; i < n; i++)
        base_buf_printf(&e->out, i ? ",[%d,%.5f]" : "[%d,%.5f]", e->ranks[i].id, e->ranks[i].logit - all);
    base_buf_putc(&e->out, ']');
    return next < 0 ? NAN : all - logits[next];
}

/* Puts positions [at, at + n) whose logits lie in e->logits; adds their -log p to *sum. */
static void put_positions(eval *e, const int32_t *ids, uint32_t n_ids, uint32_t at, uint32_t n, double *sum)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t p = at + i;
        if (p) base_buf_putc(&e->out, ',');
        double x = put_position(e, e->logits + (size_t)i * e->info->n_vocab, p + 1 < n_ids ? ids[p + 1] : -1);
        if (p + 1 < n_ids) *sum += x;
    }
}

static int run_plain(eval *e, const int32_t *ids, uint32_t n, double *sum, base_err *err)
{
    model_rows_shape shape = model_get_rows_shape(e->model);
    model_dense *rows;
    int rc = model_dense_new(&rows, &shape, n, err);
    if (rc) return rc;
    for (uint32_t at = 0; at < n && !rc; at += AT_ONCE) {
        uint32_t now = n - at < AT_ONCE ? n - at : AT_ONCE;
        rc = model_dense_compute(rows, e->model, ids + at, now, now, e->logits, NULL, err);
        if (!rc) put_positions(e, ids, n, at, now, sum);
    }
    model_dense_free(rows);
    return rc;
}

static int run_session(eval *e, const int32_t *ids, uint32_t n, double *sum, base_err *err)
{
    kv_options options = {.policy = e->common.policy, .set = e->common.set, .n_ctx = (uint32_t)e->common.ctx};
    kv_segment segment = {.origin = KV_ORIGIN_ANSWER, .turn = 1};
    kv_session *session = NULL;
    kv_limit limit = {0};
    int rc = options_budget(&e->common, e->info->n_ctx, e->info->row_bytes, (kv_limit){0}, &limit, err);
    options.budget = limit.rows;
    options.until = limit.until;
    options.repair = options_repair(&e->common);
    if (!rc) rc = kv_session_new(&session, e->model, &options, NULL, err);
    for (uint32_t i = 0; i < n && !rc; i++) {
        rc = kv_session_append(session, &segment, &ids[i], 1, e->logits, NULL, err);
        if (!rc) put_positions(e, ids, n, i, 1, sum);
    }
    kv_session_free(session);
    return rc;
}

static int read_ids(const eval *e, const base_json *list, int32_t **ret, base_err *err)
{
    int32_t *ids = base_xcalloc(list->n ? list->n : 1, sizeof *ids);
    uint32_t i = 0;
    for (const base_json *id = list->first; id; id = id->next) {
        if (!id->is_integer || id->integer < 0 || id->integer >= e->info->n_vocab) {
            free(ids);
            return base_fail(
                err, BASE_E_FORMAT, "ids[%u] is no id of this vocabulary (0 to %u)", i, e->info->n_vocab - 1);
        }
        ids[i++] = (int32_t)id->integer;
    }
    *ret = ids;
    return 0;
}

static int logprobs_line(void *user, const base_json *line, base_err *err)
{
    eval *e = user;
    const base_json *list = base_json_get(line, "ids");
    int32_t *ids = NULL;
    double sum = 0;

    if (!list || list->type != BASE_JSON_ARRAY) return base_fail(err, BASE_E_FORMAT, "no array \"ids\"");
    if (list->n > e->info->n_ctx)
        return base_fail(err, BASE_E_LIMIT, "%zu ids; the model's context is %u", list->n, e->info->n_ctx);
    int rc = read_ids(e, list, &ids, err);
    if (rc) return rc;
    uint32_t n = (uint32_t)list->n;
    bool cached = e->common.budget || e->common.policy || e->common.repair || e->common.n_set;
    base_buf_puts(&e->out, "{\"top\":[");
    rc = cached ? run_session(e, ids, n, &sum, err) : run_plain(e, ids, n, &sum, err);
    free(ids);
    if (rc) return rc;
    base_buf_puts(&e->out, "],\"nll\":");
    if (n > 1)
        base_json_put_num(&e->out, sum / (n - 1));
    else
        base_buf_puts(&e->out, "null");
    base_buf_putc(&e->out, '}');
    return flush_line(&e->out, err);
}

static int eval_logprobs(eval *e, const char *path, base_err *err)
{
    model_options options = options_to_model(&e->common);
    options.notice = cmd_notice;
    int rc = cmd_open_model_file(path, &options, &e->model, err);
    if (rc) return rc;
    e->info = model_get_info(e->model);
    rc = model_check_room(e->model, (uint32_t)e->common.ctx, 0, false, err);
    e->logits = base_xcalloc((size_t)AT_ONCE * e->info->n_vocab, sizeof *e->logits);
    e->ranks = base_xcalloc((size_t)e->top + 1, sizeof *e->ranks);
    if (!rc) rc = each_line(logprobs_line, e, err);
    model_close(e->model);
    free(e->logits);
    free(e->ranks);
    base_buf_free(&e->out);
    return rc;
}

static int run_tokens(void *user, const char *word, base_err *err)
{
    const eval *e = user;
    char *path = NULL;
    int rc = options_model_path(&e->common, &path, err);
    if (!rc) rc = eval_tokens(path, err);
    free(path);
    return rc;
}

static int run_logprobs(void *user, const char *word, base_err *err)
{
    eval *e = user;
    char *path = NULL;
    int rc = options_model_path(&e->common, &path, err);
    if (!rc) rc = eval_logprobs(e, path, err);
    free(path);
    return rc;
}

static const cmd_verb verbs[] = {{"tokens", NULL, run_tokens}, {"logprobs", NULL, run_logprobs}, {NULL}};

int cmd_eval(int argc, char **argv)
{
    eval e = {.common = COMMON_OPTIONS_DEFAULTS, .top = 32};
    base_err err = {0};
    const option_row own[] = {
        {"--top", OPTION_INTEGER, &e.top, "K", "logprobs: the likeliest tokens that are told", "32",
            .bounds = {1, MAX_TOP, NULL}},
        {0}};
    const char **rest = base_xcalloc((size_t)argc + 1, sizeof *rest);
    uint32_t n_rest = 0;
    int status;
    const cmd_words words = {.usage = usage, .rest = rest, .n_rest = &n_rest, .is_configured = true};
    if (cmd_begin(argc, argv, &e.common, own, &words, &status) &&
        cmd_run_verb("kvist eval", verbs, rest, n_rest, &e, &err))
        status = cmd_complain(&err);
    free(rest);
    return status;
}
