/* See bench/long/endless_questions.h. */
#include "bench/long/endless_questions.h"

#include <stdlib.h>
#include <string.h>

#include "agent/words/token_map.h"
#include "base/json.h"
#include "base/mem.h"
#include "bench/common/result_file.h"
#include "bench/common/write_answer.h"
#include "bench/long/endless_quote.h"
#include "kv/plan/plan.h"
#include "kv/rows/bits.h"
#include "model/text/template.h"

enum { TURN = 2, NEW_TOKENS = 64 };

/* One question, and what came of it. */
typedef struct question {
    const endless_questions *all;
    const base_json *line; /* of the file */
    kv_session *s;         /* the fork that is asked */
    float *logits;
    model_ids said;
    base_buf text; /* of said */
    bool is_right, is_foremost;
    double log_p;                /* of the given answer, mean over its tokens */
    uint32_t promoted, outshone; /* by the repair: rows a lane; tokens */
    endless_said again;
} question;

static const char *text_of(const question *q, const char *name)
{
    return base_json_str(q->line, name, "");
}

static int append(question *q, const kv_segment *g, const model_ids *ids, float *logits, base_err *err)
{
    return kv_session_append(q->s, g, ids->ids, (uint32_t)ids->n, logits, NULL, err);
}

static void count_repair(void *user, const kv_plan *plan)
{
    question *q = user;
    if (plan->cause != KV_CAUSE_REPAIR) return;
    q->promoted += plan->promoted;
    if (plan->outshone) q->outshone += kv_bits_count(plan->outshone, kv_plan_words(plan));
}

/* The tokens whose words ask, as the agent picks them; text begins at the token `first` of ids. */
static uint32_t pick_queries(
    const question *q, const char *text, const model_ids *ids, size_t first, uint32_t *ret)
{
    uint32_t ends[AGENT_MAX_QUERIES], n = 0, bytes = 0;
    const uint32_t n_ends = agent__pick_queries(text, strlen(text), ends);
    for (size_t i = first, k = 0; i < ids->n && k < n_ends; i++) {
        size_t piece = 0;
        model_tokenizer_piece(model_get_tokenizer(q->all->model), ids->ids[i], &piece);
        bytes += (uint32_t)piece;
        if (ends[k] > bytes) continue;
        ret[n++] = (uint32_t)i;
        while (k < n_ends && ends[k] <= bytes) k++;
    }
    return n;
}

/* The question, its repair, and what opens the answer. */
static int put(question *q, base_err *err)
{
    const model_template *template = model_get_template(q->all->model);
    const model_tokenizer *tokenizer = model_get_tokenizer(q->all->model);
    const char *ask = text_of(q, "ask"), *lead = text_of(q, "lead");
    model_ids ids = {0}, tail = {0};
    uint32_t queries[AGENT_MAX_QUERIES], from, to;
    model_template_begin(template, MODEL_ROLE_USER, &ids);
    const size_t first = ids.n;
    model_tokenizer_encode(tokenizer, ask, strlen(ask), false, &ids);
    const uint32_t n_queries = pick_queries(q, ask, &ids, first, queries);
    model_template_end(template, MODEL_ROLE_USER, &tail);
    model_template_begin(template, MODEL_ROLE_ASSISTANT, &tail);
    model_tokenizer_encode(tokenizer, lead, strlen(lead), false, &tail);

    const kv_segment asks = {.origin = KV_ORIGIN_USER,
                         .turn = TURN,
                         .queries = queries,
                         .n_queries = n_queries},
                     opens = {.origin = KV_ORIGIN_SCAFFOLD, .turn = TURN};
    kv_session_set_turn(q->s, TURN);
    kv_session_ids(q->s, &from);
    int r = append(q, &asks, &ids, NULL, err);
    kv_session_ids(q->s, &to);
    for (uint32_t i = 0; i < n_queries; i++) queries[i] += from;
    if (!r)
        r = endless_repair(q->all->model, q->s, TURN, (kv_ask){from, to, queries, n_queries}, &q->again, err);
    if (!r) r = append(q, &opens, &tail, q->logits, err);
    model_ids_free(&ids);
    model_ids_free(&tail);
    return r;
}

/* How many of the words a text has. */
static size_t count_words(const base_json *words, const char *text)
{
    size_t n = 0;
    for (const base_json *word = words ? words->first : NULL; word; word = word->next)
        n += word->type == BASE_JSON_STRING && strstr(text, word->string);
    return n;
}

static bool judge(const question *q, const char *text)
{
    const base_json *words = base_json_get(q->line, "words");
    char *line = base_xstrndup(text, strcspn(text, "\n"));
    const bool is_right =
        words && count_words(words, text) == words->n && !count_words(base_json_get(q->line, "not"), line);
    free(line);
    return is_right;
}

/* What is written behind the question, in a fork; then the given answer, as if it had been written. */
static int answer(question *q, base_err *err)
{
    const model *m = q->all->model;
    const size_t size = model_get_info(m)->n_vocab * sizeof(float);
    const bench_asking asking = {.model = q->all->model, .turn = TURN, .n_new = NEW_TOKENS};
    const char *given = text_of(q, "answer");
    model_ids ids = {0};
    kv_session *fork = NULL;
    float *logits = base_xmalloc(size);
    memcpy(logits, q->logits, size);
    int r = kv_session_fork(q->s, &fork, NULL, err);
    if (!r) r = bench_answer(fork, &asking, logits, &q->said, err);
    if (!r) {
        bench_answer_text(m, &q->said, &q->text);
        q->is_right = judge(q, q->text.data ? q->text.data : "");
        model_tokenizer_encode(model_get_tokenizer(m), given, strlen(given), false, &ids);
        r = bench_weigh(q->s, &asking, q->logits, &ids, &q->log_p, &q->is_foremost, err);
    }
    kv_session_free(fork);
    model_ids_free(&ids);
    free(logits);
    return r;
}

static void write_line(const question *q, const kv_stats *stats)
{
    base_buf said = {0};
    base_json_put_str(&said, q->text.data ? q->text.data : "", q->text.len);
    fprintf(q->all->out,
        "{\"bench\":\"endless-questions\",\"model\":\"%.12s\",\"seed\":%lld,\"length\":%u,\"tokens\":%u,\"folded_to\":%u,"
        "\"id\":\"%s\",\"kind\":\"%s\",\"right\":%d,\"log_p\":%.4f,\"foremost\":%d,\"promoted\":%u,\"outshone\":%u,\"again\":%u,"
        "\"said\":%s}\n",
        model_get_info(q->all->model)->hash, (long long)q->all->seed, q->all->length, stats->n_tokens,
        stats->folded_to, text_of(q, "id"), text_of(q, "kind"), q->is_right, q->log_p, q->is_foremost,
        q->promoted, q->outshone, q->again.n_lines, said.data);
    fflush(q->all->out);
    base_buf_free(&said);
}

typedef struct asked {
    const endless_questions *all;
    const char *id;
    bool is_there;
} asked;

static void is_asked(void *user, const base_json *root)
{
    asked *a = user;
    a->is_there = a->is_there || (!strcmp(base_json_str(root, "id", ""), a->id) &&
                                     base_json_int(root, "length", 0) == a->all->length &&
                                     base_json_int(root, "seed", -1) == a->all->seed);
}

static int ask(const endless_questions *all, const kv_session *whole, const base_json *line, base_err *err)
{
    question q = {.all = all, .line = line};
    asked before = {.all = all, .id = base_json_str(line, "id", "")};
    const kv_observer observer = {.user = &q, .plan = count_repair};
    kv_stats stats;
    bench_each_result(all->done, is_asked, &before);
    if (before.is_there) return 0;
    kv_session_get_stats(whole, &stats);
    q.logits = base_xmalloc(model_get_info(all->model)->n_vocab * sizeof *q.logits);
    int r = kv_session_fork(whole, &q.s, &observer, err);
    if (!r) r = put(&q, err);
    if (!r) r = answer(&q, err);
    if (!r) write_line(&q, &stats);
    kv_session_free(q.s);
    model_ids_free(&q.said);
    base_buf_free(&q.text);
    free(q.logits);
    return r;
}

typedef struct asking_all {
    const endless_questions *all;
    const kv_session *whole;
    base_err *err;
    int r;
} asking_all;

static void ask_line(void *user, const char *line, size_t n)
{
    asking_all *a = user;
    base_json_doc *doc = NULL;
    if (a->r || !n) return;
    a->r = base_json_parse(line, n, &doc, a->err);
    if (!a->r) a->r = ask(a->all, a->whole, base_json_root(doc), a->err);
    base_json_free(doc);
}

int endless_ask_questions(const endless_questions *q, const kv_session *whole, base_err *err)
{
    asking_all a = {.all = q, .whole = whole, .err = err};
    const int r = bench_read_lines(q->path, ask_line, &a, err);
    return r ? r : a.r;
}
