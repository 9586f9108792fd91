/*
 * kvist-bench faithful: how far is a cache from the full cache, where both say the same? The files of a
 * facts session (tests/session_sets) are read once, or a session that somebody saved is taken; then
 * questions are asked in copies of it, one an arm. In the first question's pass the rows leave that an arm
 * does not keep. Each further question is asked behind the first one, in a fork, so a run goes on with the
 * question at which it was stopped. Every arm is given the full cache's answer to read, so all have the
 * same tokens: at each of them the distance of its distribution from the full cache's is taken. Where the
 * most probable token is another one somewhere, the arm writes an answer of its own as well, and that is
 * judged.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/words/token_map.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "bench/bench.h"
#include "bench/common/result_file.h"
#include "bench/common/write_answer.h"
#include "bench/long/long_set.h"
#include "bench/long/long_tree.h"
#include "bench/long/long_turn.h"
#include "kv/lab/lab.h"
#include "kv/repair/heads.h"
#include "model/text/template.h"

static const char usage[] =
    "usage: kvist-bench faithful --model M --set FILE --work "
    "DIR --data DIR [--arms ARM,...] [--sessions ID,...]\n"
    "                            [--tokens N | --rows FILE] [--out FILE [--resume]]\n"
    "\n"
    "  --set FILE          sessions, a JSON object a line (tests/session_sets/facts.jsonl)\n"
    "  --work DIR          for trees and the rows of what was read, made if it is not there\n"
    "  --data DIR          repositories (repos/NAME.bundle)\n"
    "  --arms ARM,...      POLICY@BUDGET[:NAME=VALUE...] (kvist@4096); `repair=ROWS` is --repair\n"
    "  --sessions ID,...   those that begin so (all)\n"
    "  --tokens N          files are read as long as they fit (16000); asked is for what was read\n"
    "  --rows FILE         no files are read: a copy of a "
    "saved session's rows, all of them made active again\n"
    "  --out FILE          a line a question and arm; --resume: "
    "FILE may exist, questions in it are not asked again\n"
    "\n";

enum {
    ARMS_MOST = 8,
    NAME_MOST = 96,
    SETS_MOST = 8,
    NEW_TOKENS = 32,
    SET_MOST = 16 << 20,
    FILE_MOST = 1 << 20,
    MARKS_MOST = 64 /* tokens of a turn beside its file */
};

typedef struct arm {
    char name[NAME_MOST], parts[NAME_MOST]; /* parts: what set points into */
    const char *set[SETS_MOST + 1];
    kv_options options;
} arm;

/* One copy of the session while questions are asked. */
typedef struct copy {
    const arm *arm; /* NULL: the full cache */
    kv_session *s;
} copy;

typedef struct bench {
    common_options common;
    const char *set, *work, *data, *arms_text, *sessions, *rows, *out;
    int64_t tokens;
    bool resume;
    arm arms[ARMS_MOST];
    uint32_t n_arms;
    model *model;
    const model_info *info;
    char *heads;
    FILE *results;
    base_buf done;
    const base_json *session; /* at hand */
    base_buf lines; /* of it: written when all of it was asked, so that --resume finds whole sessions */
    uint32_t turn, question;
    int open_role; /* of the message that is not closed yet; -1: none was begun */
} bench;

/* What one question gave in one copy. */
typedef struct asked {
    float *logits; /* [said + 1][n_vocab] where each token of the answer, and its end, is chosen */
    double message_s, repair_s, open_s;
    uint32_t computed, promoted;
} asked;

/* --- arms ----------------------------------------------------------------------------------------------- */

static int set_arm(bench *b, const char *text, base_err *err)
{
    if (b->n_arms == ARMS_MOST || strlen(text) >= NAME_MOST)
        return base_fail(err, BASE_E_USAGE, "--arms: at most %d, of %d bytes", ARMS_MOST, NAME_MOST - 1);
    arm *a = &b->arms[b->n_arms++];
    uint32_t n_set = 0;
    strcpy(a->name, text);
    strcpy(a->parts, text);
    char *left = a->parts, *policy = strsep(&left, ":"), *budget = strchr(policy, '@');
    if (!budget) return base_fail(err, BASE_E_USAGE, "--arms %s: POLICY@ROWS is missing its rows", text);
    *budget++ = 0;
    a->options = (kv_options){
        .policy = policy, .budget = (uint32_t)strtoul(budget, NULL, 10), .repair = -1, .set = a->set};
    for (char *word; (word = strsep(&left, ":"));) {
        if (!strncmp(word, "repair=", 7))
            a->options.repair = (int)strtol(word + 7, NULL, 10);
        else if (n_set < SETS_MOST)
            a->set[n_set++] = word;
    }
    int rc = kv_policy_check(policy, err);
    for (uint32_t i = 0; i < n_set && !rc; i++) rc = kv_parameter_check(a->set[i], err);
    return rc;
}

/* --- one session ---------------------------------------------------------------------------------------- */

static int append(kv_session *s, const kv_segment *g, const model_ids *ids, float *logits, base_err *err)
{
    return ids->n ? kv_session_append(s, g, ids->ids, (uint32_t)ids->n, logits, NULL, err) : 0;
}

/* The marks that end the message that is open and begin the next one. */
static int open_message(bench *b, kv_session *s, int role, float *logits, base_err *err)
{
    const model_template *template = model_get_template(b->model);
    const kv_segment scaffold = {.origin = KV_ORIGIN_SCAFFOLD, .turn = b->turn};
    model_ids ids = {0};
    uint32_t n;
    kv_session_ids(s, &n);
    if (b->open_role >= 0)
        model_template_end(template, (model_role)b->open_role, &ids);
    else
        model_template_start(template, &ids);
    model_template_begin(template, (model_role)role, &ids);
    const int rc = append(s, &scaffold, &ids, logits, err);
    model_ids_free(&ids);
    return rc;
}

static agent_token_map map_tokens(const bench *b, const model_ids *ids)
{
    agent_token_map m = {.end = base_xcalloc(ids->n + 1, sizeof *m.end), .n = (uint32_t)ids->n};
    uint32_t at = 0;
    for (size_t i = 0; i < ids->n; i++) {
        size_t n = 0;
        model_tokenizer_piece(model_get_tokenizer(b->model), ids->ids[i], &n);
        m.end[i] = at += (uint32_t)n;
    }
    return m;
}

/* Text as the agent appends it: with its lines, and of a request the words that ask (offsets in queries). */
static int append_text(bench *b, kv_session *s, kv_origin origin, const char *text, size_t n,
    uint32_t *queries, uint32_t *ret_n, base_err *err)
{
    model_ids ids = {0};
    uint32_t ends[AGENT_MAX_QUERIES], n_queries = 0, n_lines = 0;
    model_tokenizer_encode(model_get_tokenizer(b->model), text, n, false, &ids);
    agent_token_map m = map_tokens(b, &ids);
    uint32_t *lines = agent__line_starts(&m, text, n, &n_lines);
    const uint32_t n_ends = queries ? agent__pick_queries(text, n, ends) : 0;
    for (uint32_t i = 0; i < n_ends; i++) {
        const uint32_t token = agent__token_at(&m, ends[i] - 1);
        if (!n_queries || queries[n_queries - 1] < token) queries[n_queries++] = token;
    }
    const kv_segment g = {.origin = origin,
        .turn = b->turn,
        .lines = lines,
        .n_lines = n_lines,
        .queries = queries,
        .n_queries = n_queries};
    const int rc = append(s, &g, &ids, NULL, err);
    if (ret_n) *ret_n = n_queries;
    free(lines);
    free(m.end);
    model_ids_free(&ids);
    return rc;
}

/* A turn that names a file, and the short answer to it. */
static int read_file(bench *b, kv_session *s, const char *say, const base_buf *file, base_err *err)
{
    const kv_segment written = {.origin = KV_ORIGIN_ANSWER, .turn = b->turn};
    uint32_t queries[AGENT_MAX_QUERIES];
    model_ids ok = {0};
    kv_session_set_turn(s, b->turn);
    int rc = open_message(b, s, MODEL_ROLE_USER, NULL, err);
    if (!rc) rc = append_text(b, s, KV_ORIGIN_CONTEXT, file->data, file->len, NULL, NULL, err);
    if (!rc) rc = append_text(b, s, KV_ORIGIN_USER, say, strlen(say), queries, NULL, err);
    b->open_role = MODEL_ROLE_USER;
    if (!rc) rc = open_message(b, s, MODEL_ROLE_ASSISTANT, NULL, err);
    model_tokenizer_encode(model_get_tokenizer(b->model), "OK", 2, false, &ok);
    if (!rc) rc = append(s, &written, &ok, NULL, err);
    b->open_role = MODEL_ROLE_ASSISTANT;
    model_ids_free(&ok);
    return rc;
}

/* "@path" of a request; the caller frees. */
static char *named_file(const char *say)
{
    const char *at = strchr(say, '@');
    return at ? base_xstrndup(at + 1, strcspn(at + 1, " ")) : NULL;
}

/* The turn that a session was saved behind. */
static uint32_t last_turn(const kv_session *s)
{
    const uint32_t n = kv_session_scores(s, NULL, 0);
    kv_score *scores = base_xcalloc(n + 1, sizeof *scores);
    uint32_t turn = 0;
    kv_session_scores(s, scores, n);
    for (uint32_t i = 0; i < n; i++) turn = scores[i].turn > turn ? scores[i].turn : turn;
    free(scores);
    return turn;
}

/*
 * Reads the session's files while they fit, and saves behind each; paths of what was read go to `read`, a
 * line each. What a row file has already is not read again.
 */
static int read_files(
    bench *b, kv_session **ret, const char *tree, const char *rows, base_buf *read, base_err *err)
{
    const kv_options o = {.budget = (uint32_t)b->tokens + 1024,
        .policy = "kvist",
        .repair = -1,
        .n_ctx = b->info->n_ctx,
        .row_file = rows,
        .heads_file = b->heads};
    const base_json *steps = base_json_get(b->session, "steps");
    size_t n_tokens = 0;
    uint32_t n_read = 0;
    int rc = 0;
    if (!kv_session_resume(ret, b->model, &o, NULL, NULL))
        n_read = last_turn(*ret);
    else
        rc = kv_session_new(ret, b->model, &o, NULL, err);
    if (n_read) b->open_role = MODEL_ROLE_ASSISTANT;
    for (const base_json *step = steps->first; step && !rc; step = step->next) {
        const char *say = base_json_str(step, "say", "");
        char *path = base_json_get(step, "fact") ? NULL : named_file(say);
        if (!path) break;
        base_buf file = {0}, full = {0};
        model_ids ids = {0};
        base_buf_printf(&full, "%s/%s", tree, path);
        rc = base_fs_read(full.data, FILE_MOST, &file, err);
        if (!rc) model_tokenizer_encode(model_get_tokenizer(b->model), file.data, file.len, false, &ids);
        if (!rc && n_tokens + ids.n + MARKS_MOST <= (size_t)b->tokens) {
            n_tokens += ids.n + MARKS_MOST;
            base_buf_printf(read, "%s\n", path);
            b->turn++;
            if (b->turn > n_read) rc = read_file(b, *ret, say, &file, err);
            if (!rc && b->turn > n_read) rc = kv_session_save(*ret, err);
        }
        model_ids_free(&ids);
        base_buf_free(&file);
        base_buf_free(&full);
        free(path);
    }
    return rc;
}

/* A session that somebody saved, with nothing evicted any more. */
static int take_saved(bench *b, kv_session **ret, base_err *err)
{
    const kv_options o = {.policy = "full", .repair = -1, .n_ctx = b->info->n_ctx, .row_file = b->rows};
    uint32_t n;
    int rc = kv_session_resume(ret, b->model, &o, NULL, err);
    if (rc) return rc;
    kv_session_ids(*ret, &n);
    b->turn = last_turn(*ret);
    b->open_role = MODEL_ROLE_ASSISTANT;
    rc = kv_session_set_policy(*ret, &o, err);
    return rc ? rc : kv_session_manual(*ret, KV_MANUAL_PROMOTE, 0, n, err);
}

/* --- a question ----------------------------------------------------------------------------------------- */

static double seconds_since(uint64_t *at)
{
    const uint64_t now = base_clock_ns(), before = *at;
    *at = now;
    return (double)(now - before) / 1e9;
}

/* The question, its repair and the opening of an answer: logits of its first token. */
static int ask(bench *b, kv_session *s, const char *say, asked *ret, base_err *err)
{
    uint32_t queries[AGENT_MAX_QUERIES], n_queries = 0, from = 0, to = 0;
    kv_stats before, after;
    kv_session_get_stats(s, &before);
    kv_session_set_turn(s, b->turn);
    uint64_t at = base_clock_ns();
    int rc = open_message(b, s, MODEL_ROLE_USER, NULL, err);
    kv_session_ids(s, &from);
    if (!rc) rc = append_text(b, s, KV_ORIGIN_USER, say, strlen(say), queries, &n_queries, err);
    kv_session_ids(s, &to);
    ret->message_s = seconds_since(&at);
    for (uint32_t i = 0; i < n_queries; i++) queries[i] += from;
    if (!rc) rc = kv_session_repair(s, &(kv_ask){from, to, queries, n_queries}, NULL, err);
    ret->repair_s = seconds_since(&at);
    b->open_role = MODEL_ROLE_USER;
    if (!rc) rc = open_message(b, s, MODEL_ROLE_ASSISTANT, ret->logits, err);
    ret->open_s = seconds_since(&at);
    b->open_role = MODEL_ROLE_ASSISTANT;
    kv_session_get_stats(s, &after);
    ret->computed = after.computed - before.computed;
    return rc;
}

/* The most probable answer, in a fork: the session stays as it is. */
static int answer(
    bench *b, const kv_session *s, const float *logits, const model_ids *guess, model_ids *ret, base_err *err)
{
    const bench_asking asking = {.model = b->model, .turn = b->turn, .n_new = NEW_TOKENS, .guess = guess};
    const size_t n_bytes = b->info->n_vocab * sizeof(float);
    float *mine = base_xmalloc(n_bytes);
    kv_session *f = NULL;
    memcpy(mine, logits, n_bytes);
    int rc = kv_session_fork(s, &f, NULL, err);
    if (!rc) rc = bench_answer(f, &asking, mine, ret, err);
    kv_session_free(f);
    free(mine);
    return rc;
}

/* Reads the answer along: what is chosen behind each of its tokens. It is the session's from here on. */
static int read_answer(bench *b, kv_session *s, const model_ids *said, asked *ret, base_err *err)
{
    const kv_segment g = {.origin = KV_ORIGIN_ANSWER, .turn = b->turn};
    uint32_t want[NEW_TOKENS];
    for (uint32_t i = 0; i < said->n; i++) want[i] = i;
    if (!said->n) return 0;
    const int rc = kv_session_peek(
        s, &g, said->ids, (uint32_t)said->n, want, (uint32_t)said->n, ret->logits + b->info->n_vocab, err);
    return rc ? rc : append(s, &g, said, NULL, err);
}

/* Nats that `other` is away from `full`. */
static double divergence(const float *full, const float *other, uint32_t n)
{
    double most[2] = {-INFINITY, -INFINITY}, all[2] = {0, 0}, sum = 0;
    for (uint32_t v = 0; v < n; v++) {
        most[0] = fmax(most[0], full[v]);
        most[1] = fmax(most[1], other[v]);
    }
    for (uint32_t v = 0; v < n; v++) {
        all[0] += exp(full[v] - most[0]);
        all[1] += exp(other[v] - most[1]);
    }
    const double shift = most[0] + log(all[0]) - most[1] - log(all[1]);
    for (uint32_t v = 0; v < n; v++)
        sum += exp(full[v] - most[0]) / all[0] * ((double)full[v] - other[v] - shift);
    return sum;
}

static int tell(bench *b, const copy *c, const base_json *step, const asked *mine, const asked *full,
    const model_ids *said, base_err *err)
{
    const uint32_t n_vocab = b->info->n_vocab, n = (uint32_t)said->n + (said->n < NEW_TOKENS);
    uint32_t n_same = 0;
    double sum = 0, most = 0, first = 0;
    for (uint32_t i = 0; i < n; i++) {
        const float *x = full->logits + (size_t)i * n_vocab, *y = mine->logits + (size_t)i * n_vocab;
        const double d = divergence(x, y, n_vocab);
        n_same += bench_best(x, n_vocab) == bench_best(y, n_vocab);
        sum += d;
        most = fmax(most, d);
        if (!i) first = d;
    }
    model_ids own = {0};
    base_buf text = {0}, *line = &b->lines;
    int rc = 0;
    /* The answer has been read in this copy: its own is written in a copy that has not. */
    if (n_same < n) {
        kv_session *f = NULL;
        uint32_t end;
        kv_session_ids(c->s, &end);
        rc = kv_session_fork(c->s, &f, NULL, err);
        if (!rc) rc = kv_session_truncate(f, end - (uint32_t)said->n, err);
        if (!rc) rc = answer(b, f, mine->logits, said, &own, err);
        kv_session_free(f);
    }
    bench_answer_text(b->model, n_same < n ? &own : said, &text);
    base_buf_printf(line, "{\"bench\":\"faithful\",\"model\":\"%.12s\",\"session\":\"%s\"", b->info->hash,
        base_json_str(b->session, "id", ""));
    base_buf_printf(line, ",\"question\":%u,\"arm\":\"%s\"", b->question, c->arm ? c->arm->name : "full");
    base_buf_printf(line,
        ",\"places\":%u,\"same\":%u,\"kl\":%.6f,\"kl_first\":%.6f,\"kl_most\":%.6f,\"right\":%s,\"s\":{"
        "\"message\":%.3f,\"repair\":%.3f,\"open\":%.3f},\"computed\":%u,\"answer\":",
        n, n_same, sum / n, first, most, long_is_right(step, text.data ? text.data : "") ? "true" : "false",
        mine->message_s, mine->repair_s, mine->open_s, mine->computed);
    base_json_put_str(line, text.data ? text.data : "", text.len);
    base_buf_puts(line, "}\n");
    model_ids_free(&own);
    base_buf_free(&text);
    return rc;
}

/*
 * All copies, behind the same tokens; the full cache's says what they read. The next begins with another
 * arm.
 */
static int ask_all(bench *b, copy *copies, const base_json *step, base_err *err)
{
    const size_t n_bytes = (size_t)(NEW_TOKENS + 1) * b->info->n_vocab * sizeof(float);
    asked full = {.logits = base_xmalloc(n_bytes)}, mine = {.logits = base_xmalloc(n_bytes)};
    const char *say = base_json_str(step, "say", "");
    model_ids said = {0};
    int rc = ask(b, copies[0].s, say, &full, err);
    if (!rc) rc = answer(b, copies[0].s, full.logits, NULL, &said, err);
    if (!rc) rc = read_answer(b, copies[0].s, &said, &full, err);
    if (!rc) rc = tell(b, &copies[0], step, &full, &full, &said, err);
    for (uint32_t i = 0; i < b->n_arms && !rc; i++) {
        copy *c = &copies[1 + (i + b->question) % b->n_arms];
        b->open_role = MODEL_ROLE_ASSISTANT;
        rc = ask(b, c->s, say, &mine, err);
        if (!rc) rc = read_answer(b, c->s, &said, &mine, err);
        if (!rc) rc = tell(b, c, step, &mine, &full, &said, err);
    }
    model_ids_free(&said);
    free(full.logits);
    free(mine.logits);
    return rc;
}

/* Is the question about a file that was read? "In PATH, ..." */
static bool was_read(const char *say, const base_buf *read)
{
    char *path = !strncmp(say, "In ", 3) ? base_xstrndup(say + 3, strcspn(say + 3, ",")) : NULL;
    base_buf line = {0};
    base_buf_printf(&line, "%s\n", path ? path : "");
    const char *at = path && read->data ? strstr(read->data, line.data) : NULL;
    const bool is = at && (at == read->data || at[-1] == '\n');
    base_buf_free(&line);
    free(path);
    return is;
}

/* Is there a line of this question? */
static bool is_done(const bench *b, uint32_t question)
{
    base_buf key = {0};
    base_buf_printf(&key, "\"model\":\"%.12s\",\"session\":\"%s\",\"question\":%u,", b->info->hash,
        base_json_str(b->session, "id", ""), question);
    const bool is = b->done.data && strstr(b->done.data, key.data);
    base_buf_free(&key);
    return is;
}

static void write_lines(bench *b)
{
    fwrite(b->lines.data ? b->lines.data : "", 1, b->lines.len, b->results);
    fflush(b->results);
}

/* A question behind the first one, in forks. */
static int ask_further(bench *b, const copy *copies, const base_json *step, base_err *err)
{
    copy forks[ARMS_MOST + 1] = {{.arm = NULL}};
    int rc = 0;
    for (uint32_t i = 0; i <= b->n_arms && !rc; i++) {
        forks[i].arm = copies[i].arm;
        rc = kv_session_fork(copies[i].s, &forks[i].s, NULL, err);
    }
    if (!rc) rc = ask_all(b, forks, step, err);
    for (uint32_t i = 0; i <= b->n_arms; i++) kv_session_free(forks[i].s);
    return rc;
}

/* Every arm's copy behind the first question, and what the others give. */
static int ask_session(bench *b, copy *copies, const base_buf *read, base_err *err)
{
    const uint32_t turn = b->turn + 1;
    int rc = 0;
    b->question = 0;
    for (const base_json *step = base_json_get(b->session, "steps")->first; step && !rc; step = step->next) {
        if (!base_json_get(step, "fact") || (!b->rows && !was_read(base_json_str(step, "say", ""), read)))
            continue;
        const bool is_old = is_done(b, b->question);
        base_buf_clear(&b->lines);
        b->turn = b->question ? turn + 1 : turn;
        b->open_role = MODEL_ROLE_ASSISTANT;
        if (!b->question)
            rc = ask_all(b, copies, step, err);
        else if (!is_old)
            rc = ask_further(b, copies, step, err);
        if (!rc && !is_old) write_lines(b);
        b->question++;
    }
    return rc;
}

static int run_session(bench *b, base_err *err)
{
    const char *id = base_json_str(b->session, "id", "");
    base_buf tree = {0}, rows = {0}, read = {0};
    copy copies[ARMS_MOST + 1] = {{.arm = NULL}};
    kv_session *s = NULL;
    if (!base_json_get(b->session, "steps"))
        return base_fail(err, BASE_E_FORMAT, "%s: a session without steps", id);
    b->turn = 0;
    b->open_role = -1;
    base_buf_printf(&tree, "%s/%s", b->work, id);
    base_buf_printf(&rows, "%s/%s-%.12s.rows", b->work, id, b->info->hash);
    int rc = 0;
    if (b->rows)
        rc = take_saved(b, &s, err);
    else if (!base_fs_exists(tree.data))
        rc = long_tree_make(b->data, base_json_str(b->session, "repo", ""),
            base_json_str(b->session, "commit", NULL), tree.data, err);
    if (!rc && !b->rows) rc = read_files(b, &s, tree.data, rows.data, &read, err);
    for (uint32_t i = 0; i <= b->n_arms && !rc; i++) {
        kv_options o = i ? b->arms[i - 1].options : (kv_options){.policy = "full"};
        o.heads_file = b->heads;
        o.n_ctx = b->info->n_ctx;
        copies[i].arm = i ? &b->arms[i - 1] : NULL;
        rc = kv_session_fork(s, &copies[i].s, NULL, err);
        if (!rc) rc = kv_session_set_policy(copies[i].s, &o, err);
    }
    if (!rc) rc = ask_session(b, copies, &read, err);
    for (uint32_t i = 0; i <= b->n_arms; i++) kv_session_free(copies[i].s);
    kv_session_free(s);
    base_buf_free(&tree);
    base_buf_free(&rows);
    base_buf_free(&read);
    return rc ? base_err_prefix(err, id) : 0;
}

/* --- all of them ---------------------------------------------------------------------------------------- */

static int run_one(void *user, const base_json *session, uint32_t number, base_err *err)
{
    bench *b = user;
    b->session = session;
    return run_session(b, err);
}

static int run(bench *b, base_err *err)
{
    base_buf set = {0};
    char *arms = base_xstrdup(b->arms_text), *left = arms;
    int rc = b->set && b->work && b->data
                 ? 0
                 : base_fail(err, BASE_E_USAGE, "--set is needed, and --work and --data, or --rows");
    for (char *word; !rc && (word = strsep(&left, ","));) rc = set_arm(b, word, err);
    if (!rc) rc = base_fs_read(b->set, SET_MOST, &set, err);
    if (!rc && b->work) rc = base_fs_mkdirs(b->work, err);
    if (!rc) rc = cmd_open_model(&b->common, &b->model, err);
    if (!rc) b->info = model_get_info(b->model);
    if (!rc && b->tokens + 1024 > b->info->n_ctx)
        rc = base_fail(err, BASE_E_USAGE, "--tokens: at most %u with this model", b->info->n_ctx - 1024);
    if (!rc) b->heads = kv_heads_path(b->info->hash);
    if (!rc) rc = bench_open_out(&b->results, b->out, b->resume, &b->done, err);
    if (!rc) rc = long_set_each(b->set, &set, b->sessions, run_one, b, err);
    base_buf_free(&set);
    free(arms);
    return rc;
}

int bench_faithful(int argc, char **argv)
{
    bench b = {.common = COMMON_OPTIONS_DEFAULTS, .arms_text = "kvist@4096", .tokens = 16000};
    const option_row own[] = {{"--set", OPTION_TEXT, &b.set}, {"--work", OPTION_TEXT, &b.work},
        {"--data", OPTION_TEXT, &b.data}, {"--arms", OPTION_TEXT, &b.arms_text},
        {"--sessions", OPTION_TEXT, &b.sessions}, {"--tokens", OPTION_INTEGER, &b.tokens},
        {"--rows", OPTION_TEXT, &b.rows}, {"--out", OPTION_TEXT, &b.out},
        {"--resume", OPTION_FLAG, &b.resume}, {.name = NULL}};
    base_err err = {0};
    int r;
    if (!cmd_begin(argc, argv, &b.common, own, &(cmd_words){.usage = usage}, &r)) return r;
    if (!r) r = run(&b, &err);
    if (b.results && b.results != stdout) fclose(b.results);
    base_buf_free(&b.done);
    base_buf_free(&b.lines);
    free(b.heads);
    model_close(b.model);
    return r ? cmd_complain(&err) : CMD_OK;
}
