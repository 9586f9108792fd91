/*
 * kvist-bench endless: facts asked for far behind the model's context. One session reads real code, a result
 * of about 500 tokens after the other, a fact hidden in each (a comment that gives a name's number). When the
 * session has come to a length, facts from anywhere before are asked for, each in a fork: is the number in the
 * answer, and how probable were its digits (mean log p, teacher-forced)? Beside it stands where the fact was
 * lost, if it was: in how many lanes its row was active before the question and behind its repair, and how many
 * lanes read it as visits. Times are processor time of the engine's thread, so give --threads 1. What is asked
 * changes nothing of the session, which is saved now and then: --resume goes on from there.
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
#include "bench/common/peak_memory.h"
#include "bench/common/result_file.h"
#include "bench/common/write_answer.h"
#include "bench/long/endless_questions.h"
#include "bench/long/endless_quote.h"
#include "kv/repair/heads.h"
#include "kv/session.h"
#include "model/text/template.h"

static const char usage[] =
    "usage: kvist-bench endless --model M --corpus FOLDER "
    "--rows FILE [--lengths N,...] [--facts N] [--seed N]\n"
    "                           [--forced [--together N]] [--questions FILE]\n"
    "                           [--out FILE [--resume]] [cache options]\n"
    "\n"
    "  --corpus FOLDER   real code that the facts lie between\n"
    "  --rows FILE       the session's row file: kept, and gone on with when --resume is given\n"
    "  --lengths N,...   where facts are asked for, ascending (16384,32768,65536)\n"
    "  --facts N         how many at each length (20), from anywhere before it\n"
    "  --seed N          another session (1)\n"
    "  --forced          no answer is written: a number is right where each digit, given the ones before it, is\n"
    "                    the most probable; a question takes half of the time\n"
    "  --together N      a question asks for so many facts (1), which lie far from one another; it is right where all are\n"
    "  --questions FILE  asks what the lines of FILE say instead of facts (tests/questions/endless.jsonl)\n"
    "  --out FILE        results as JSON lines\n"
    "\n";

enum {
    TEXT_BYTES = 1400,
    NEW_TOKENS = 24,
    MOST_LENGTHS = 16,
    NAMES = 24,
    DIGITS = 5,
    MOST_NAMED = 48,
    MOST_TOGETHER = 8,
    SAVE_EVERY = 16, /* results */
    TIMED = 4096,    /* the newest tokens below a length whose results are timed */
};

/* Where a fact's line stands in the session. */
typedef struct fact_place {
    uint32_t from, to;
} fact_place;

/* Tokens computed, and processor time for them. */
typedef struct timed {
    uint32_t n;
    uint64_t ns;
} timed;

typedef struct bench {
    common_options common;
    const char *corpus_folder, *lengths, *rows, *questions, *out;
    int64_t facts, seed, together;
    bool resume, forced;
    uint32_t to[MOST_LENGTHS], n_lengths;
    kv_limit limit;
    model *model;
    const model_info *info;
    base_buf corpus, done;
    FILE *results;
    float *logits;
    char *heads;
    fact_place *places; /* [n_facts] */
    size_t n_facts, cap_facts;
    timed results_read; /* the newest TIMED tokens' results */
} bench;

/* The k-th fact: a name of two words that no other fact has and five digits, functions of the seed and k alone. */
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

/*
 * A made-up word of three letters and two. Words of a language would come again in other names soon, and a model
 * confuses names that share a word: with all rows of 33,000 tokens to read it then gave every second number wrong.
 */
static void make_word(uint64_t drawn, char *ret)
{
    static const char open[] = "bdfgklmnprstvz", vowel[] = "aeiou", close[] = "lmnrskt";
    enum { N_OPEN = sizeof open - 1, N_VOWEL = sizeof vowel - 1, N_CLOSE = sizeof close - 1 };
    const char word[] = {open[drawn % N_OPEN], vowel[(drawn >> 8) % N_VOWEL], close[(drawn >> 16) % N_CLOSE],
        open[(drawn >> 24) % N_OPEN], vowel[(drawn >> 32) % N_VOWEL], '\0'};
    memcpy(ret, word, sizeof word);
}

static fact fact_of(const bench *b, uint64_t k)
{
    fact f;
    char first[8], second[8];
    make_word(draw((uint64_t)b->seed + 1000, 2 * k), first);
    make_word(draw((uint64_t)b->seed + 1000, 2 * k + 1), second);
    snprintf(f.name, sizeof f.name, "%s_%s", first, second);
    snprintf(f.value, sizeof f.value, "%05u", (unsigned)(10000 + draw((uint64_t)b->seed, k) % 90000));
    return f;
}

static void add_text(const bench *b, const char *text, size_t n, model_ids *out)
{
    model_tokenizer_encode(model_get_tokenizer(b->model), text, n, false, out);
}

/* The k-th result: lines of the corpus with the fact's line among them; where its lines begin. */
static fact_place make_result(
    const bench *b, uint64_t k, model_ids *ids, uint32_t *lines, uint32_t *n_lines, uint32_t most)
{
    fact_place told = {0};
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
            told.from = (uint32_t)ids->n;
            add_text(b, line, (size_t)n, ids);
            told.to = (uint32_t)ids->n;
            is_told = true;
        }
        if (*n_lines < most) lines[(*n_lines)++] = (uint32_t)ids->n;
        add_text(b, at, (size_t)(next - at), ids);
        at = next;
    }
    model_template_end(template, MODEL_ROLE_TOOL, ids);
    return told;
}

static int append(kv_session *s, const kv_segment *g, const model_ids *ids, float *logits, base_err *err)
{
    return kv_session_append(s, g, ids->ids, (uint32_t)ids->n, logits, NULL, err);
}

/* The session as far as `to` tokens. Which facts it holds follows from its length alone. */
static int go_on(bench *b, kv_session *s, uint32_t to, base_err *err)
{
    uint32_t have, lines[200];
    int r = 0;
    kv_session_ids(s, &have);
    uint64_t k = 0;
    b->results_read = (timed){0};
    for (uint32_t at = 0; !r && at < to; k++) {
        model_ids ids = {0};
        uint32_t n_lines = 0;
        if (!k) model_template_start(model_get_template(b->model), &ids);
        const fact_place told = make_result(b, k, &ids, lines, &n_lines, 200);
        if (k == b->n_facts) {
            base_grow(&b->places, &b->cap_facts, b->n_facts + 1, sizeof *b->places);
            b->places[b->n_facts++] = (fact_place){at + told.from, at + told.to};
        }
        const kv_segment g = {.origin = KV_ORIGIN_TOOL, .turn = 1, .lines = lines, .n_lines = n_lines};
        if (at >= have) {
            const uint64_t start = base_clock_cpu_ns();
            r = append(s, &g, &ids, NULL, err);
            if (at + TIMED >= to) {
                b->results_read.n += (uint32_t)ids.n;
                b->results_read.ns += base_clock_cpu_ns() - start;
            }
            if (!r && k % SAVE_EVERY == SAVE_EVERY - 1) r = kv_session_save(s, err);
        }
        at += (uint32_t)ids.n;
        model_ids_free(&ids);
    }
    return r;
}

/* The share of the lanes that have a row, mean over a place's rows. */
static double active_share(const kv_session *s, fact_place at)
{
    kv_stats stats;
    uint64_t sum = 0;
    kv_session_get_stats(s, &stats);
    uint32_t *lanes = base_xmalloc(stats.n_tokens * sizeof *lanes);
    kv_session_active_lanes(s, lanes);
    for (uint32_t i = at.from; i < at.to; i++) sum += lanes[i];
    free(lanes);
    return (double)sum / ((double)(at.to - at.from) * stats.n_lanes);
}

/* Lanes that read a place's rows as visits, for each row and token since this was asked last. */
static double visited(kv_session *s, fact_place at)
{
    kv_visits all;
    uint32_t n;
    uint64_t sum = 0;
    kv_session_ids(s, &n);
    uint32_t *counts = base_xcalloc(n, sizeof *counts);
    kv_session_take_visits(s, &all, counts);
    for (uint32_t i = at.from; i < at.to; i++) sum += counts[i];
    free(counts);
    return all.tokens ? (double)sum / ((double)(at.to - at.from) * (double)all.tokens) : 0;
}

/* What a question found: of the fact's rows, the share of lanes before it and behind its repair. */
typedef struct found {
    base_buf said;
    bool is_right;
    double log_p, kept, repaired, visited;
    uint32_t promoted;    /* rows a lane */
    uint32_t n_said;      /* lines that are said again behind the question */
    bool is_said;         /* the fact's is one of them */
    timed message, prose; /* the question with its repair and what opens the answer; the answer */
} found;

/* The part-th fact of the question for fact k. */
static uint64_t fact_beside(const bench *b, uint64_t k, uint32_t part)
{
    return (k + part * b->n_facts / (uint64_t)b->together) % b->n_facts;
}

static void note_said(const bench *b, uint64_t k, const endless_said *said, found *ret)
{
    ret->n_said = said->n_lines;
    for (uint32_t i = 0; i < said->n_lines; i++)
        ret->is_said |= said->from[i] >= b->places[k].from && said->from[i] < b->places[k].to;
}

/* The question, its repair, and what opens the answer, up to the place where the number is due. */
static int put_question(bench *b, kv_session *s, uint64_t k, found *ret, base_err *err)
{
    const model_template *template = model_get_template(b->model);
    model_ids ids = {0}, tail = {0};
    uint32_t named[MOST_NAMED], n_named = 0, from, to;
    char text[120];
    model_template_begin(template, MODEL_ROLE_USER, &ids);
    for (uint32_t part = 0; part < b->together; part++) {
        const char *const before = part ? " and of " : "What is the number of ";
        const fact f = fact_of(b, fact_beside(b, k, part));
        add_text(b, before, strlen(before), &ids);
        const uint32_t first = (uint32_t)ids.n;
        add_text(b, f.name, strlen(f.name), &ids);
        for (uint32_t i = first; i < ids.n && n_named < MOST_NAMED; i++) named[n_named++] = i;
    }
    add_text(b, "? Answer with the number.", 25, &ids);
    model_template_end(template, MODEL_ROLE_USER, &tail);
    model_template_begin(template, MODEL_ROLE_ASSISTANT, &tail);
    snprintf(text, sizeof text, "The number of %s is ", fact_of(b, k).name);
    add_text(b, text, strlen(text), &tail);

    const kv_segment question = {.origin = KV_ORIGIN_USER, .turn = 2, .queries = named, .n_queries = n_named},
                     scaffold = {.origin = KV_ORIGIN_SCAFFOLD, .turn = 2};
    kv_session_set_turn(s, 2);
    kv_session_ids(s, &from);
    ret->kept = active_share(s, b->places[k]);
    const uint64_t start = base_clock_cpu_ns();
    int r = append(s, &question, &ids, NULL, err);
    kv_session_ids(s, &to);
    for (uint32_t i = 0; i < n_named; i++) named[i] += from;
    endless_said said;
    if (!r) r = endless_repair(b->model, s, 2, (kv_ask){from, to, named, n_named}, &said, err);
    ret->repaired = active_share(s, b->places[k]);
    if (!r) r = append(s, &scaffold, &tail, b->logits, err);
    if (!r) note_said(b, k, &said, ret);
    ret->message = (timed){(uint32_t)(ids.n + tail.n) + (r ? 0 : said.n_tokens), base_clock_cpu_ns() - start};
    model_ids_free(&ids);
    model_ids_free(&tail);
    return r;
}

static void count_promoted(void *user, const kv_plan *plan)
{
    found *f = user;
    if (plan->cause == KV_CAUSE_REPAIR) f->promoted += plan->promoted;
}

/* What is written behind the question, in a fork. */
static int write_answer(bench *b, const kv_session *s, uint64_t k, found *ret, base_err *err)
{
    const bench_asking asking = {.model = b->model, .turn = 2, .n_new = NEW_TOKENS};
    kv_session *fork = NULL;
    model_ids said = {0};
    float *logits = base_xmalloc(b->info->n_vocab * sizeof *logits);
    int r = kv_session_fork(s, &fork, NULL, err);
    if (!r) {
        memcpy(logits, b->logits, b->info->n_vocab * sizeof *logits);
        visited(fork, b->places[k]);
        const uint64_t start = base_clock_cpu_ns();
        r = bench_answer(fork, &asking, logits, &said, err);
        ret->prose = (timed){(uint32_t)said.n, base_clock_cpu_ns() - start};
        ret->visited = visited(fork, b->places[k]);
    }
    if (!r) bench_answer_text(b->model, &said, &ret->said);
    free(logits);
    kv_session_free(fork);
    model_ids_free(&said);
    return r;
}

/* The numbers that are asked for, in the order of the question, as if they had been written. */
static int weigh_all(bench *b, kv_session *s, uint64_t k, found *ret, bool *ret_foremost, base_err *err)
{
    const kv_segment written = {.origin = KV_ORIGIN_ANSWER, .turn = 2};
    const bench_asking asking = {.model = b->model, .turn = 2};
    int r = 0;
    *ret_foremost = true;
    for (uint32_t part = 0; part < b->together && !r; part++) {
        const fact f = fact_of(b, fact_beside(b, k, part));
        model_ids digits = {0}, next = {0};
        char text[120];
        double log_p = 0;
        bool is_foremost = false;
        add_text(b, f.value, strlen(f.value), &digits);
        r = bench_weigh(s, &asking, b->logits, &digits, &log_p, &is_foremost, err);
        ret->log_p += log_p / (double)b->together;
        *ret_foremost = *ret_foremost && is_foremost;
        if (!r && part + 1 < b->together) {
            model_ids_add(&next, digits.ids[digits.n - 1]); /* what bench_weigh leaves unread */
            snprintf(
                text, sizeof text, ".\nThe number of %s is ", fact_of(b, fact_beside(b, k, part + 1)).name);
            add_text(b, text, strlen(text), &next);
            r = append(s, &written, &next, b->logits, err);
        }
        model_ids_free(&digits);
        model_ids_free(&next);
    }
    return r;
}

/* One question in a fork. */
static int ask(bench *b, const kv_session *whole, uint64_t k, found *ret, base_err *err)
{
    const fact f = fact_of(b, k);
    kv_session *s = NULL;
    bool is_foremost = false;
    const kv_observer observer = {.user = ret, .plan = count_promoted};
    int r = kv_session_fork(whole, &s, &observer, err);
    if (!r) r = put_question(b, s, k, ret, err);
    if (!r && !b->forced) r = write_answer(b, s, k, ret, err);
    if (!r) r = weigh_all(b, s, k, ret, &is_foremost, err);
    ret->is_right = b->forced ? is_foremost : ret->said.data && strstr(ret->said.data, f.value);
    kv_session_free(s);
    return r;
}

typedef struct asked {
    uint32_t length;
    uint64_t fact;
    int64_t seed;
    bool is_there;
} asked;

static void is_asked(void *user, const base_json *root)
{
    asked *a = user;
    a->is_there = a->is_there || (base_json_int(root, "length", 0) == a->length &&
                                     (uint64_t)base_json_int(root, "fact", -1) == a->fact &&
                                     base_json_int(root, "seed", -1) == a->seed);
}

static double ms_a_token(timed t)
{
    return t.n ? (double)t.ns / 1e6 / t.n : 0;
}

static void write_line(bench *b, const kv_stats *stats, uint32_t length, uint64_t k, const found *f)
{
    base_buf said = {0};
    base_json_put_str(&said, f->said.data ? f->said.data : "", f->said.len);
    fprintf(b->results,
        "{\"bench\":\"endless\",\"model\":\"%.12s\",\"seed\":%lld,\"length\":%u,\"tokens\":%u,"
        "\"folded_to\":%u,\"active\":%u,\"until\":%u,\"budget\":%u,\"fact\":%llu,\"at\":%u,\"right\":%d,"
        "\"log_p\":%.4f,\"kept\":%.3f,\"repaired\":%.3f,\"visited\":%.2f,\"promoted\":%u,\"result_ms\":%.2f,"
        "\"again\":%u,\"said_again\":%d,\"message_ms\":%.2f,\"prose_ms\":%.2f,\"peak_mb\":%.0f,\"said\":%s}\n",
        b->info->hash, (long long)b->seed, length, stats->n_tokens, stats->folded_to, stats->active,
        stats->until, stats->budget, (unsigned long long)k, b->places[k].from, f->is_right, f->log_p, f->kept,
        f->repaired, f->visited, f->promoted, ms_a_token(b->results_read), f->n_said, f->is_said,
        ms_a_token(f->message), ms_a_token(f->prose), bench_peak_mb(), said.data);
    fflush(b->results);
    base_buf_free(&said);
}

/* At a length: `facts` of those that are there, drawn without a second time. */
static int ask_all(bench *b, const kv_session *s, uint32_t length, base_err *err)
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
        bench_each_result(&b->done, is_asked, &before);
        if (before.is_there || k >= n) continue;
        found f = {0};
        r = ask(b, s, k, &f, err);
        if (!r) {
            write_line(b, &stats, length, k, &f);
            n_right += f.is_right;
            n_asked++;
            sum += f.log_p;
        }
        base_buf_free(&f.said);
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

/* A session that cannot be gone on with is an error where one was saved: a new one would write over its rows. */
static int begin_anew(const bench *b, const base_err *why, base_err *err)
{
    base_buf manifest = {0};
    base_buf_printf(&manifest, "%s.manifest", b->rows);
    const bool is_there = base_fs_exists(manifest.data);
    base_buf_free(&manifest);
    if (is_there) return base_fail(err, BASE_E_STATE, "%s", why->msg);
    fprintf(stderr, "a new session: %s\n", why->msg);
    return 0;
}

static int run(bench *b, base_err *err)
{
    kv_session *s = NULL;
    int r = read_lengths(b, err);
    if (!r && (!b->corpus_folder || !b->rows || b->facts < 1))
        r = base_fail(err, BASE_E_USAGE, "--corpus and --rows are needed, and one fact at least");
    if (!r && (b->together < 1 || b->together > MOST_TOGETHER || (b->together > 1 && !b->forced)))
        r = base_fail(
            err, BASE_E_USAGE, "--together is 1 to %d, and more than 1 only with --forced", MOST_TOGETHER);
    if (!r) r = cmd_open_model(&b->common, &b->model, err);
    if (r) return r;
    b->info = model_get_info(b->model);
    b->logits = base_xmalloc(b->info->n_vocab * sizeof *b->logits);
    r = bench_corpus_load(b->corpus_folder, &b->corpus, err);
    if (!r && b->corpus.len < 4 * TEXT_BYTES) r = base_fail(err, BASE_E_USAGE, "the corpus is too small");
    if (!r) r = options_budget(&b->common, b->info->n_ctx, b->info->row_bytes, (kv_limit){0}, &b->limit, err);
    b->heads = kv_heads_path(b->info->hash);
    if (!r && !base_fs_exists(b->heads))
        r = base_fail(err, BASE_E_NOT_FOUND, "the model's heads are not known yet: kvist kv calibrate");
    if (!r) r = bench_open_out(&b->results, b->out, b->resume, &b->done, err);
    const kv_options o = {.budget = b->limit.rows,
        .until = b->limit.until,
        .policy = b->common.policy,
        .repair = options_repair(&b->common),
        .set = b->common.set,
        .n_ctx = (uint32_t)b->common.ctx,
        .row_file = b->rows,
        .heads_file = b->heads};
    base_err why = {0};
    if (!r && b->resume && kv_session_resume(&s, b->model, &o, NULL, &why)) r = begin_anew(b, &why, err);
    if (!r && !s) r = kv_session_new(&s, b->model, &o, NULL, err);
    for (uint32_t i = 0; i < b->n_lengths && !r; i++) {
        uint32_t have;
        kv_session_ids(s, &have);
        r = go_on(b, s, b->to[i], err);
        if (!r && have < b->to[i]) r = kv_session_save(s, err);
        /* A session that was longer when it was saved is not asked about a shorter length. */
        if (r || have >= b->to[i] + TEXT_BYTES) continue;
        const endless_questions questions = {.model = b->model,
            .path = b->questions,
            .seed = b->seed,
            .length = b->to[i],
            .done = &b->done,
            .out = b->results};
        r = b->questions ? endless_ask_questions(&questions, s, err) : ask_all(b, s, b->to[i], err);
    }
    kv_session_free(s);
    return r;
}

int bench_endless(int argc, char **argv)
{
    bench b = {.common = COMMON_OPTIONS_DEFAULTS,
        .lengths = "16384,32768,65536",
        .facts = 20,
        .seed = 1,
        .together = 1};
    const option_row own[] = {{"--corpus", OPTION_TEXT, &b.corpus_folder}, {"--rows", OPTION_TEXT, &b.rows},
        {"--lengths", OPTION_TEXT, &b.lengths}, {"--facts", OPTION_INTEGER, &b.facts},
        {"--seed", OPTION_INTEGER, &b.seed}, {"--out", OPTION_TEXT, &b.out},
        {"--forced", OPTION_FLAG, &b.forced}, {"--together", OPTION_INTEGER, &b.together},
        {"--questions", OPTION_TEXT, &b.questions}, {"--resume", OPTION_FLAG, &b.resume}, {.name = NULL}};
    base_err err = {0};
    int r;
    if (!cmd_begin(argc, argv, &b.common, own, &(cmd_words){.usage = usage}, &r)) return r;
    if (!r) r = run(&b, &err);
    if (b.results && b.results != stdout) fclose(b.results);
    free(b.logits);
    free(b.heads);
    free(b.places);
    base_buf_free(&b.corpus);
    base_buf_free(&b.done);
    model_close(b.model);
    return r ? cmd_complain(&err) : CMD_OK;
}
