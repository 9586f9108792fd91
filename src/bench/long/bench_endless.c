/*
 * kvist-bench endless: facts asked for far behind the model's context. One session reads real code, a result
 * of about 500 tokens after the other, a fact hidden in each (a comment that gives a name's number). When the
 * session has come to a length, facts from anywhere before are asked for, each in a fork: is the number in the
 * answer, and how probable were its digits (mean log p, teacher-forced)? What is asked changes nothing of the
 * session, which is saved at each length: --resume goes on from there.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "bench/bench.h"
#include "bench/common/corpus.h"
#include "bench/common/result_file.h"
#include "bench/common/write_answer.h"
#include "kv/session.h"
#include "model/text/template.h"

static const char usage[] =
    "usage: kvist-bench endless --model M --corpus FOLDER --rows FILE [--lengths N,...] [--facts N] [--seed "
    "N]\n"
    "                           [--out FILE [--resume]] [cache options]\n"
    "\n"
    "  --corpus FOLDER   real code that the facts lie between\n"
    "  --rows FILE       the session's row file: kept, and gone on with when --resume is given\n"
    "  --lengths N,...   where facts are asked for, ascending (16384,32768,65536)\n"
    "  --facts N         how many at each length (20), from anywhere before it\n"
    "  --seed N          another session (1)\n"
    "  --out FILE        results as JSON lines\n"
    "\n";

enum { TEXT_BYTES = 1400, NEW_TOKENS = 24, MOST_LENGTHS = 16, NAMES = 24, DIGITS = 5, MOST_NAMED = 16 };

typedef struct bench {
    common_options common;
    const char *corpus_folder, *lengths, *rows, *out;
    int64_t facts, seed;
    bool resume;
    uint32_t to[MOST_LENGTHS], n_lengths;
    kv_limit limit;
    model *model;
    const model_info *info;
    base_buf corpus, done;
    FILE *results;
    float *logits;
    uint32_t *fact_at; /* [n_facts] the token at which its result begins */
    size_t n_facts, cap_facts;
} bench;

/* The k-th fact: a name of two words and five digits, functions of the seed and k alone. */
typedef struct fact {
    char name[NAMES], value[DIGITS + 1];
} fact;

static uint64_t draw(uint64_t seed, uint64_t k)
{
    uint64_t z = seed * UINT64_C(0x9e3779b97f4a7c15) + (k + 1) * UINT64_C(0xd1342543de82ef95);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static fact fact_of(const bench *b, uint64_t k)
{
    static const char *const first[] = {"amber", "birch", "cobalt", "delta", "ember", "falcon", "garnet",
        "harbor", "indigo", "jasper", "kestrel", "lotus", "maple", "nectar", "onyx", "pepper", "quartz",
        "raven", "saffron", "topaz", "umber", "violet", "willow", "zephyr"};
    static const char *const second[] = {"bridge", "cellar", "depot", "engine", "forge", "gate", "hall",
        "island", "jetty", "kiosk", "ledger", "mill", "notary", "office", "pier", "quarry", "relay",
        "station", "tower", "vault"};
    enum { N_FIRST = sizeof first / sizeof *first, N_SECOND = sizeof second / sizeof *second };
    fact f;
    const uint64_t place =
        (k * 7 + (uint64_t)b->seed * 13) % (N_FIRST * N_SECOND); /* 7 shares no factor: all differ */
    snprintf(f.name, sizeof f.name, "%s_%s", first[place % N_FIRST], second[place / N_FIRST]);
    snprintf(f.value, sizeof f.value, "%05u", (unsigned)(10000 + draw((uint64_t)b->seed, k) % 90000));
    return f;
}

static void add_text(const bench *b, const char *text, size_t n, model_ids *out)
{
    model_tokenizer_encode(model_get_tokenizer(b->model), text, n, false, out);
}

/* The k-th result: lines of the corpus with the fact's line among them; where its lines begin. */
static void make_result(
    const bench *b, uint64_t k, model_ids *ids, uint32_t *lines, uint32_t *n_lines, uint32_t most)
{
    const model_template *template = model_get_template(b->model);
    const fact f = fact_of(b, k);
    const size_t from = k * TEXT_BYTES % (b->corpus.len - 2 * TEXT_BYTES);
    const char *at = b->corpus.data + from, *end = at + TEXT_BYTES;
    const char *middle = at + draw((uint64_t)b->seed + 1, k) % TEXT_BYTES;
    bool is_told = false;
    model_template_begin(template, MODEL_ROLE_TOOL, ids);
    while (at < end) {
        const char *next = memchr(at, '\n', (size_t)(b->corpus.data + b->corpus.len - at));
        next = next && next - at < 400 ? next + 1 : at + 400;
        if (!is_told && next >= middle) {
            char line[120];
            const int n = snprintf(line, sizeof line, "/* The number of %s is %s. */\n", f.name, f.value);
            if (*n_lines < most) lines[(*n_lines)++] = (uint32_t)ids->n;
            add_text(b, line, (size_t)n, ids);
            is_told = true;
        }
        if (*n_lines < most) lines[(*n_lines)++] = (uint32_t)ids->n;
        add_text(b, at, (size_t)(next - at), ids);
        at = next;
    }
    model_template_end(template, MODEL_ROLE_TOOL, ids);
}

static int append(kv_session *s, const kv_segment *g, const model_ids *ids, float *logits, base_err *err)
{
    return kv_session_append(s, g, ids->ids, (uint32_t)ids->n, logits, NULL, NULL, err);
}

/* The session as far as `to` tokens. Which facts it holds follows from its length alone. */
static int go_on(bench *b, kv_session *s, uint32_t to, base_err *err)
{
    uint32_t have, lines[200];
    int r = 0;
    kv_session_ids(s, &have);
    uint64_t k = 0;
    for (uint32_t at = 0; !r && at < to; k++) {
        model_ids ids = {0};
        uint32_t n_lines = 0;
        if (!k) model_template_start(model_get_template(b->model), &ids);
        make_result(b, k, &ids, lines, &n_lines, 200);
        if (k == b->n_facts) {
            base_grow(&b->fact_at, &b->cap_facts, b->n_facts + 1, sizeof *b->fact_at);
            b->fact_at[b->n_facts++] = at;
        }
        const kv_segment g = {.origin = KV_ORIGIN_TOOL, .turn = 1, .lines = lines, .n_lines = n_lines};
        if (at >= have) r = append(s, &g, &ids, NULL, err);
        at += (uint32_t)ids.n;
        model_ids_free(&ids);
    }
    return r;
}

/* One question in a fork. */
static int ask(bench *b, const kv_session *whole, uint64_t k, bool *ret_right, double *ret_log_p,
    base_buf *answer, base_err *err)
{
    const model_template *template = model_get_template(b->model);
    const fact f = fact_of(b, k);
    kv_session *s = NULL;
    model_ids ids = {0}, tail = {0}, said = {0}, digits = {0};
    uint32_t named[MOST_NAMED], n_named = 0;
    char text[120];
    model_template_begin(template, MODEL_ROLE_USER, &ids);
    add_text(b, "What is the number of ", 22, &ids);
    const uint32_t first = (uint32_t)ids.n;
    add_text(b, f.name, strlen(f.name), &ids);
    for (uint32_t i = first; i < ids.n && n_named < MOST_NAMED; i++) named[n_named++] = i;
    add_text(b, "? Answer with the number.", 25, &ids);
    model_template_end(template, MODEL_ROLE_USER, &tail);
    model_template_begin(template, MODEL_ROLE_ASSISTANT, &tail);
    snprintf(text, sizeof text, "The number of %s is ", f.name);
    add_text(b, text, strlen(text), &tail);
    add_text(b, f.value, strlen(f.value), &digits);

    uint32_t from = 0, to = 0;
    int r = kv_session_fork(whole, &s, NULL, err);
    const kv_segment question = {.origin = KV_ORIGIN_USER, .turn = 2, .queries = named, .n_queries = n_named};
    const kv_segment scaffold = {.origin = KV_ORIGIN_SCAFFOLD, .turn = 2},
                     written = {.origin = KV_ORIGIN_ANSWER, .turn = 2};
    if (!r) kv_session_set_turn(s, 2);
    if (!r) kv_session_ids(s, &from);
    if (!r) r = append(s, &question, &ids, NULL, err);
    if (!r) kv_session_ids(s, &to);
    for (uint32_t i = 0; i < n_named; i++) named[i] += from;
    if (!r) r = kv_session_repair(s, from, to, named, n_named, NULL, err);
    if (!r) r = append(s, &scaffold, &tail, b->logits, err);
    kv_session *free_one = NULL;
    float *logits = base_xmalloc(b->info->n_vocab * sizeof *logits);
    memcpy(logits, b->logits, b->info->n_vocab * sizeof *logits);
    if (!r) r = kv_session_fork(s, &free_one, NULL, err);
    const bench_asking asking = {.model = b->model, .turn = 2, .n_new = NEW_TOKENS};
    if (!r) r = bench_answer(free_one, &asking, logits, &said, err);
    if (!r) bench_answer_text(b->model, &said, answer);
    double sum = 0;
    memcpy(logits, b->logits, b->info->n_vocab * sizeof *logits);
    for (size_t i = 0; i < digits.n && !r; i++) {
        double most = -INFINITY, all = 0;
        for (uint32_t v = 0; v < b->info->n_vocab; v++) most = logits[v] > most ? logits[v] : most;
        for (uint32_t v = 0; v < b->info->n_vocab; v++) all += exp(logits[v] - most);
        sum += logits[digits.ids[i]] - most - log(all);
        if (i + 1 < digits.n) r = kv_session_append(s, &written, &digits.ids[i], 1, logits, NULL, NULL, err);
    }
    *ret_log_p = digits.n ? sum / (double)digits.n : 0;
    *ret_right = answer->data && strstr(answer->data, f.value);
    free(logits);
    kv_session_free(free_one);
    kv_session_free(s);
    model_ids_free(&ids);
    model_ids_free(&tail);
    model_ids_free(&said);
    model_ids_free(&digits);
    return r;
}

typedef struct asked {
    uint32_t length;
    uint64_t fact;
    int64_t seed;
    bool is_there;
} asked;

static void is_asked(void *user, const char *line, size_t n)
{
    asked *a = user;
    base_json_doc *doc = NULL;
    if (base_json_parse(line, n, &doc, NULL)) return;
    const base_json *root = base_json_root(doc);
    a->is_there = a->is_there || (base_json_int(root, "length", 0) == a->length &&
                                     (uint64_t)base_json_int(root, "fact", -1) == a->fact &&
                                     base_json_int(root, "seed", -1) == a->seed);
    base_json_free(doc);
}

/* At a length: `facts` of those that are there, drawn without a second time. */
static int ask_all(bench *b, const kv_session *s, uint32_t length, double compute_s, base_err *err)
{
    kv_stats stats;
    uint32_t n_right = 0, n_asked = 0;
    double sum = 0;
    int r = 0;
    kv_session_get_stats(s, &stats);
    const uint64_t n = b->n_facts, step = n / (uint64_t)b->facts ? n / (uint64_t)b->facts : 1;
    for (uint64_t i = 0; i < (uint64_t)b->facts && i * step < n && !r; i++) {
        const uint64_t k = i * step + draw((uint64_t)b->seed + length, i) % step;
        asked before = {.length = length, .fact = k, .seed = b->seed};
        bench_each_line(&b->done, is_asked, &before);
        if (before.is_there || k >= n) continue;
        bool right = false;
        double log_p = 0;
        base_buf answer = {0};
        const uint64_t start = base_clock_ns();
        r = ask(b, s, k, &right, &log_p, &answer, err);
        if (!r) {
            fprintf(b->results,
                "{\"bench\":\"endless\",\"model\":\"%.12s\",\"seed\":%lld,\"length\":%u,\"tokens\":%u,"
                "\"folded_to\":%u,"
                "\"active\":%u,\"budget\":%u,\"fact\":%llu,\"at\":%u,\"right\":%d,\"log_p\":%.4f,\"ask_s\":%."
                "2f,"
                "\"compute_s\":%.1f}\n",
                b->info->hash, (long long)b->seed, length, stats.n_tokens, stats.folded_to, stats.active,
                stats.budget, (unsigned long long)k, b->fact_at[k], right, log_p,
                (double)(base_clock_ns() - start) / 1e9, compute_s);
            fflush(b->results);
            n_right += right;
            n_asked++;
            sum += log_p;
        }
        base_buf_free(&answer);
    }
    if (!r && n_asked)
        fprintf(stderr, "%u tokens (%u folded, %u of %u rows active): %u of %u right, mean log p %.3f\n",
            stats.n_tokens, stats.folded_to, stats.active, stats.budget, n_right, n_asked, sum / n_asked);
    return r;
}

static int read_lengths(bench *b, base_err *err)
{
    for (const char *at = b->lengths; *at;) {
        char *end;
        const unsigned long n = strtoul(at, &end, 10);
        if (end == at || n < 2048 || n > 1000000 || b->n_lengths == MOST_LENGTHS ||
            (b->n_lengths && n <= b->to[b->n_lengths - 1]))
            return base_fail(err, BASE_E_USAGE,
                "--lengths are numbers from 2048 on, ascending, at most %d of them", MOST_LENGTHS);
        b->to[b->n_lengths++] = (uint32_t)n;
        at = *end == ',' ? end + 1 : end;
    }
    return 0;
}

static int run(bench *b, base_err *err)
{
    kv_session *s = NULL;
    int r = read_lengths(b, err);
    if (!r && (!b->corpus_folder || !b->rows || b->facts < 1))
        r = base_fail(err, BASE_E_USAGE, "--corpus and --rows are needed, and one fact at least");
    if (!r) r = cmd_open_model(&b->common, &b->model, err);
    if (r) return r;
    b->info = model_get_info(b->model);
    b->logits = base_xmalloc(b->info->n_vocab * sizeof *b->logits);
    r = bench_corpus_load(b->corpus_folder, &b->corpus, err);
    if (!r && b->corpus.len < 4 * TEXT_BYTES) r = base_fail(err, BASE_E_USAGE, "the corpus is too small");
    if (!r) r = options_budget(&b->common, b->info->n_ctx, b->info->row_bytes, (kv_limit){0}, &b->limit, err);
    if (!r) r = bench_open_out(&b->results, b->out, b->resume, &b->done, err);
    const kv_options o = {.budget = b->limit.rows,
        .until = b->limit.until,
        .policy = b->common.policy,
        .repair = -1,
        .set = b->common.set,
        .n_ctx = (uint32_t)b->common.ctx,
        .row_file = b->rows};
    base_err why = {0};
    if (!r && b->resume && kv_session_resume(&s, b->model, &o, NULL, &why))
        fprintf(stderr, "a new session: %s\n", why.msg);
    if (!r && !s) r = kv_session_new(&s, b->model, &o, NULL, err);
    for (uint32_t i = 0; i < b->n_lengths && !r; i++) {
        uint32_t have;
        kv_session_ids(s, &have);
        const uint64_t start = base_clock_ns();
        r = go_on(b, s, b->to[i], err);
        const double seconds = (double)(base_clock_ns() - start) / 1e9;
        if (!r && have < b->to[i]) r = kv_session_save(s, err);
        /* A session that was longer when it was saved is not asked about a shorter length. */
        if (!r && have < b->to[i] + TEXT_BYTES) r = ask_all(b, s, b->to[i], seconds, err);
    }
    kv_session_free(s);
    return r;
}

int bench_endless(int argc, char **argv)
{
    bench b = {.common = COMMON_OPTIONS_DEFAULTS, .lengths = "16384,32768,65536", .facts = 20, .seed = 1};
    const option_row own[] = {{"--corpus", OPTION_TEXT, &b.corpus_folder}, {"--rows", OPTION_TEXT, &b.rows},
        {"--lengths", OPTION_TEXT, &b.lengths}, {"--facts", OPTION_INTEGER, &b.facts},
        {"--seed", OPTION_INTEGER, &b.seed}, {"--out", OPTION_TEXT, &b.out},
        {"--resume", OPTION_FLAG, &b.resume}, {.name = NULL}};
    base_err err = {0};
    int r;
    if (!cmd_begin(argc, argv, &b.common, own, &(cmd_words){.usage = usage}, &r)) return r;
    if (!r) r = run(&b, &err);
    if (b.results && b.results != stdout) fclose(b.results);
    free(b.logits);
    free(b.fact_at);
    base_buf_free(&b.corpus);
    base_buf_free(&b.done);
    model_close(b.model);
    return r ? cmd_complain(&err) : CMD_OK;
}
