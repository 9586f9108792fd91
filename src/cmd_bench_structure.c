/*
 * kvist bench structure: what compression keeps of code's structure, and what that is worth (kv.md section 5; CodeComp, seed 000).
 *
 * Three tasks over real functions, each a chunk of its own: `score` (how much structure stays), `bug` (which function holds a wrong
 * line, and how it reads now), `complete` (a line that calls another function). A sample's rows are computed once, by policies that read
 * ordinary text in one session, by codecomp in another, chunk by chunk; each condition is a fork that is cut to the same rows,
 * hard ones included, by what the question looked at; then the question is computed again over what is left, so that no answer
 * has seen more than its cache. One JSON line a sample, cap and condition; a file of them is gone on with and summed up.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/marks.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "bench_bugs.h"
#include "bench_result.h"
#include "cmd.h"
#include "kv/session.h"
#include "model/template.h"
#include "model/tokenizer.h"
#include "options.h"

static const char usage[] =
    "usage: kvist bench structure --model M [--task score|bug|complete] [options] [FOLDER]...\n"
    "\n"
    "  --task NAME     score: share of structure kept; bug: find a wrong line; complete: write a line "
    "(score)\n"
    "  FOLDER          source text, at most 8 of them\n"
    "  --quixbugs DIR  the programs of QuixBugs, for bug\n"
    "  --samples N     how many of each source (8)\n"
    "  --chunks N      functions in a prompt, for bug and complete (5)\n"
    "  --tokens N      length of a prompt, for score (2000)\n"
    "  --caps LIST     shares of the prompt's rows that stay (.4,.6)\n"
    "  --conditions W  main, all, or names with commas between them (main)\n"
    "  --seconds N     begin no sample after so long (no limit)\n"
    "  --seed N        another draw (1)\n"
    "  --out FILE      append result lines to a file, and leave out what it has\n"
    "  --report FILE   only sum up a file\n"
    "  --list          name the conditions\n"
    "\n";

typedef enum task { TASK_SCORE, TASK_BUG, TASK_COMPLETE } task;
static const char *const task_words[] = {"score", "bug", "complete"};

/* One row a condition. Hard rows are the same for all: prompt and question. */
static const struct condition {
    const char *name, *policy, *set;
    bool is_main;
} conditions[] = {
    {.name = "full", .policy = "full", .is_main = true},
    {.name = "snapkv", .policy = "snapkv", .is_main = true},
    {.name = "streaming-llm", .policy = "streaming-llm", .is_main = true},
    {.name = "random", .policy = "random", .is_main = true},
    {.name = "kvist", .policy = "kvist", .set = "soft=1", .is_main = true},
    {.name = "kvist half", .policy = "kvist", .set = "soft=.5", .is_main = true},
    {.name = "codecomp full", .policy = "codecomp", .is_main = true},
    {.name = "codecomp", .policy = "codecomp", .is_main = true},
    {.name = "codecomp attention only", .policy = "codecomp", .set = "span=0 alloc=0", .is_main = true},
    {.name = "codecomp spans only", .policy = "codecomp", .set = "alloc=0"},
    {.name = "codecomp allocation only", .policy = "codecomp", .set = "span=0"},
    {.name = "codecomp nearest", .policy = "codecomp", .set = "fill=nearest"},
    {.name = "codecomp span 1", .policy = "codecomp", .set = "span=1"},
    {.name = "codecomp no cores", .policy = "codecomp", .set = "cores=0"},
    {.name = "codecomp .9/1.1", .policy = "codecomp", .set = "alloc=.1"},
    {.name = "codecomp .75/1.25", .policy = "codecomp", .set = "alloc=.25"},
    {.name = "codecomp .25/1.75", .policy = "codecomp", .set = "alloc=.75"},
    {.name = "codecomp .1/1.9", .policy = "codecomp", .set = "alloc=.9"},
    {.name = "codecomp - call", .policy = "codecomp", .set = "call=0"},
    {.name = "codecomp - control", .policy = "codecomp", .set = "control=0"},
    {.name = "codecomp - return", .policy = "codecomp", .set = "return=0"},
    {.name = "codecomp - assign", .policy = "codecomp", .set = "assign=0"},
    {.name = "codecomp - query", .policy = "codecomp", .set = "query=0"},
    {.name = "codecomp - defuse", .policy = "codecomp", .set = "defuse=0"},
    {.name = "codecomp - attention", .policy = "codecomp", .set = "attention=0"},
};
enum { N_CONDITIONS = sizeof conditions / sizeof *conditions, MOST_CAPS = 8, MOST_SOURCES = 8, MOST_SET = 8 };

typedef struct bench {
    common_options common;
    const char *task_word, *sources[MOST_SOURCES + 1], *quixbugs, *caps_text, *wanted, *out_path, *report;
    int64_t samples, chunks, tokens, seconds, seed;
    bool list, help;
    task task;
    double caps[MOST_CAPS];
    uint32_t n_caps, n_sources;
    model *model;
    const model_info *info;
    code_grammars *grammars;
    FILE *out;
    base_buf done; /* the lines of --out when it was opened */
    float *logits; /* [KV_DRAFT_MAX][n_vocab] */
} bench;

/* A prompt in tokens. */
typedef struct prompt {
    model_ids head, chunks[BENCH_CHUNKS], question, tail, choices, target;
    kv_span *spans[BENCH_CHUNKS];
    uint32_t n_spans[BENCH_CHUNKS];
    uint32_t n_chunks, right; /* right: of choices */
    uint32_t line_from;       /* of target: where the line begins that is counted */
    uint32_t n_context;
    double spans_ms,
        prefill_ms; /* to find all spans; to compute the rows of ordinary text, question included */
} prompt;

typedef struct outcome {
    double score[2], chance[2], ceiling[2], of[KV_STRUCTURE_KINDS]; /* extents, cores; of: extents */
    double active;
    int function; /* 1 right, 0 wrong, -1 not asked */
    uint32_t n_line, right_line;
    bool mistake; /* the line's first token behind what the question says of it */
    double ms;
} outcome;

/* --- prompts ------------------------------------------------------------------------------------------------------------ */

static void encode(const bench *b, const char *text, size_t n, model_ids *out)
{
    model_tokenizer_encode(model_get_tokenizer(b->model), text, n, false, out);
}

static void puts_ids(const bench *b, model_ids *out, const char *text)
{
    encode(b, text, strlen(text), out);
}

/* The token that holds a byte; ends: [n] bytes behind each. */
static uint32_t token_at(const uint32_t *ends, uint32_t n, uint32_t byte)
{
    uint32_t low = 0, high = n;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (ends[middle] > byte)
            high = middle;
        else
            low = middle + 1;
    }
    return low < n ? low : n - 1;
}

/* A chunk's ids and spans. Its text begins `from` bytes into what is encoded. */
static void add_chunk(bench *b, prompt *p, const bench_function *f, const char *request)
{
    const char *dot = strrchr(f->path, '.');
    base_buf text = {0};
    base_buf_printf(&text, "```%s\n", dot ? dot + 1 : "");
    const uint32_t from = (uint32_t)text.len;
    base_buf_puts(&text, f->text);
    const uint32_t to = (uint32_t)text.len;
    base_buf_puts(&text, "\n```\n");
    const uint32_t c = p->n_chunks++;
    encode(b, text.data, text.len, &p->chunks[c]);
    const uint32_t n = (uint32_t)p->chunks[c].n;
    uint32_t *ends = base_xcalloc((size_t)n + 1, sizeof *ends), at = 0;
    for (uint32_t i = 0; i < n; i++) {
        size_t length = 0;
        model_tokenizer_piece(model_get_tokenizer(b->model), p->chunks[c].ids[i], &length);
        ends[i] = at += (uint32_t)length;
    }
    const uint64_t start = base_clock_ns();
    code_graph *graph = NULL;
    code_piece *pieces = NULL;
    code_file *file = code_parse_graph(b->grammars, f->path, f->text, to - from, &graph);
    const uint32_t n_pieces = code_structure(file, graph, f->text, to - from, 0, to - from, request, &pieces);
    p->spans[c] = base_xcalloc((size_t)n_pieces + 1, sizeof *p->spans[c]);
    for (uint32_t i = 0; i < n_pieces; i++)
        if (pieces[i].to > pieces[i].from)
            p->spans[c][p->n_spans[c]++] = (kv_span){.from = token_at(ends, n, from + pieces[i].from),
                .to = token_at(ends, n, from + pieces[i].to - 1) + 1,
                .reason = agent_reason_of[pieces[i].kind],
                .marks = pieces[i].marks,
                .n_flow = pieces[i].n_flow,
                .n_dependence = pieces[i].n_dependence};
    p->spans_ms += (double)(base_clock_ns() - start) / 1e6;
    p->n_context += n;
    free(pieces);
    code_graph_free(graph);
    code_file_free(file);
    free(ends);
    base_buf_free(&text);
}

/* What a traceback says: how the line begins. Which function it is in is a choice by the first token of the names. */
static void ask_bug(bench *b, prompt *p, const bench_sample *s)
{
    base_buf text = {0};
    base_buf_printf(&text,
        "\nA test fails because of a mistake in the line that begins with\n`%.*s`\nWhich function is that "
        "line in, "
        "and how does it read in full, mistake included?",
        (int)s->n_same, s->wrong);
    puts_ids(b, &p->question, text.data);
    puts_ids(b, &p->tail, "It is in the function `");
    for (uint32_t i = 0; i < s->n_chunks; i++) {
        model_ids name = {0};
        puts_ids(b, &name, s->chunks[i].name);
        model_ids_add(&p->choices, name.ids[0]);
        model_ids_free(&name);
    }
    p->right = s->target;
    base_buf_clear(&text);
    base_buf_printf(
        &text, "%s`. The line reads:\n`%.*s", s->chunks[s->target].name, (int)s->n_same, s->wrong);
    puts_ids(b, &p->target, text.data);
    p->line_from = (uint32_t)p->target.n;
    puts_ids(b, &p->target, s->wrong + s->n_same);
    base_buf_free(&text);
}

/* First tokens of two names that are equal would make the choice a draw. */
static bool has_equal_choices(const prompt *p)
{
    for (size_t i = 0; i < p->choices.n; i++)
        for (size_t k = 0; k < i; k++)
            if (p->choices.ids[i] == p->choices.ids[k]) return true;
    return false;
}

static void prompt_free(prompt *p)
{
    model_ids_free(&p->head);
    model_ids_free(&p->question);
    model_ids_free(&p->tail);
    model_ids_free(&p->choices);
    model_ids_free(&p->target);
    for (uint32_t i = 0; i < p->n_chunks; i++) {
        model_ids_free(&p->chunks[i]);
        free(p->spans[i]);
    }
    *p = (prompt){.n_chunks = 0};
}

static void prompt_make(bench *b, prompt *p, const bench_sample *s)
{
    const model_template *template = model_get_template(b->model);
    base_buf request = {0};
    *p = (prompt){.n_chunks = 0};
    model_template_start(template, &p->head);
    model_template_begin(template, MODEL_ROLE_USER, &p->head);
    puts_ids(b, &p->head, "This is code of a project:\n");
    if (b->task == TASK_SCORE) base_buf_printf(&request, "\nWhat does `%s` do?", s->chunks[s->target].name);
    if (b->task == TASK_BUG) base_buf_printf(&request, "`%.*s`", (int)s->n_same, s->wrong);
    if (b->task == TASK_COMPLETE) base_buf_printf(&request, "`%s`", s->right);
    for (uint32_t i = 0; i < s->n_chunks; i++) add_chunk(b, p, &s->chunks[i], request.data);
    if (b->task == TASK_SCORE) puts_ids(b, &p->question, request.data);
    if (b->task == TASK_COMPLETE) {
        const char *dot = strrchr(s->chunks[s->target].path, '.');
        base_buf head = {0};
        base_buf_printf(&head, "```%s\n%s", dot ? dot + 1 : "", s->right);
        size_t n = head.len;
        while (n && head.data[n - 1] == '\n') n--; /* the line end belongs to the line to write */
        encode(b, head.data, n, &p->question);
        base_buf_clear(&head);
        base_buf_printf(&head, "\n%s", s->wrong);
        puts_ids(b, &p->target, head.data);
        base_buf_free(&head);
    }
    if (b->task != TASK_COMPLETE) {
        model_template_end(template, MODEL_ROLE_USER, &p->tail);
        model_template_begin(template, MODEL_ROLE_ASSISTANT, &p->tail);
    }
    if (b->task == TASK_BUG) ask_bug(b, p, s);
    base_buf_free(&request);
}

/* --- conditions --------------------------------------------------------------------------------------------------------- */

static int append(kv_session *s, kv_origin origin, const model_ids *ids, const kv_span *spans,
    uint32_t n_spans, float *logits, base_err *err)
{
    const kv_segment g = {.origin = origin, .turn = 1, .spans = spans, .n_spans = n_spans};
    return kv_session_append(s, &g, ids->ids, (uint32_t)ids->n, logits, NULL, NULL, err);
}

/* The prompt's rows and, behind them, the question as the signal. at: where the question begins. */
static int compute_base(bench *b, prompt *p, bool is_local, kv_session **ret, uint32_t *ret_at, base_err *err)
{
    static const char *const alone[] = {"local=1", NULL};
    kv_session *s = NULL;
    uint32_t at = 0, n = 0;
    int r = kv_session_new(&s, b->model,
        &(kv_options){.policy = is_local ? "codecomp" : "full", .set = is_local ? alone : NULL}, NULL, err);
    if (r) return r;
    const uint64_t start = base_clock_ns();
    r = append(s, KV_ORIGIN_SYSTEM, &p->head, NULL, 0, NULL, err);
    for (uint32_t i = 0; i < p->n_chunks && !r; i++) {
        kv_session_ids(s, &at);
        r = append(s, KV_ORIGIN_CONTEXT, &p->chunks[i], p->spans[i], p->n_spans[i], NULL, err);
        if (!r && is_local)
            r = kv_session_probe(s, at, p->question.ids, (uint32_t)p->question.n, NULL, NULL, err);
    }
    kv_session_ids(s, &n);
    if (!r) r = append(s, KV_ORIGIN_USER, &p->question, NULL, 0, NULL, err);
    if (r) {
        kv_session_free(s);
        return r;
    }
    if (!is_local) p->prefill_ms = (double)(base_clock_ns() - start) / 1e6;
    *ret = s;
    *ret_at = n;
    return 0;
}

static uint32_t most_probable(const float *logits, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

/* Feeds the target and counts its tokens from `first` on that were the most probable ones. logits: behind the last token. */
static int read_target(
    bench *b, kv_session *s, const model_ids *target, uint32_t first, outcome *o, base_err *err)
{
    const kv_segment g = {.origin = KV_ORIGIN_ANSWER, .turn = 1};
    const uint32_t n = (uint32_t)target->n, n_vocab = b->info->n_vocab;
    int r = 0;
    o->n_line = n - first;
    o->mistake = first == 0 && most_probable(b->logits, n_vocab) == (uint32_t)target->ids[0];
    o->right_line = o->mistake;
    for (uint32_t at = 0; at < n && !r;) {
        const uint32_t some = n - at < KV_DRAFT_MAX ? n - at : KV_DRAFT_MAX;
        r = kv_session_draft(s, &g, target->ids + at, some, 0, b->logits, NULL, err);
        for (uint32_t i = 0; i < some && !r; i++) {
            const uint32_t next = at + i + 1;
            if (next >= first && next < n) {
                const bool is_right =
                    most_probable(b->logits + (size_t)i * n_vocab, n_vocab) == (uint32_t)target->ids[next];
                o->right_line += is_right;
                if (next == first) o->mistake = is_right;
            }
            if (next < n) r = kv_session_accept(s, &g, NULL, NULL, err);
        }
        at += some;
    }
    return r;
}

static int answer(bench *b, kv_session *s, const prompt *p, outcome *o, base_err *err)
{
    int r = append(s, KV_ORIGIN_USER, &p->question, NULL, 0, p->tail.n ? NULL : b->logits, err);
    if (!r && p->tail.n) r = append(s, KV_ORIGIN_SCAFFOLD, &p->tail, NULL, 0, b->logits, err);
    if (r || !p->target.n) return r;
    o->function = -1;
    if (p->choices.n) {
        size_t best = 0;
        for (size_t i = 1; i < p->choices.n; i++)
            if (b->logits[p->choices.ids[i]] > b->logits[p->choices.ids[best]]) best = i;
        o->function = best == p->right;
    }
    return read_target(b, s, &p->target, p->line_from, o, err);
}

static bool is_full(const struct condition *c)
{
    return strstr(c->name, "full") != NULL;
}

static int run_condition(bench *b, const prompt *p, const kv_session *base, uint32_t at,
    const struct condition *c, double cap, outcome *o, base_err *err)
{
    char words[128];
    const char *set[MOST_SET + 1] = {"low=1", "hard=1"};
    uint32_t n_set = 2;
    *o = (outcome){.function = -1};
    snprintf(words, sizeof words, "%s", c->set ? c->set : "");
    for (char *word = strtok(words, " "); word && n_set < MOST_SET; word = strtok(NULL, " "))
        set[n_set++] = word;
    kv_session *s = NULL;
    int r = kv_session_fork(base, &s, NULL, err);
    if (r) return r;
    const uint64_t start = base_clock_ns();
    const uint32_t kept = (uint32_t)lround(cap * p->n_context),
                   hard = at - p->n_context + (uint32_t)p->question.n;
    r = kv_session_set_policy(s,
        &(kv_options){.policy = c->policy, .set = set, .budget = is_full(c) ? 0 : hard + kept, .bare = true},
        err);
    if (!r) r = kv_session_evict(s, NULL, err);
    o->ms = (double)(base_clock_ns() - start) / 1e6;
    if (!r) {
        kv_stats stats;
        kv_session_set_automatic(s, false);
        r = kv_session_truncate(s, at, err);
        kv_session_get_stats(s, &stats);
        o->active = stats.active;
        for (int core = 0; core < 2; core++) {
            kv_structure score;
            kv_session_structure(s, core, &score);
            o->score[core] = score.share;
            o->chance[core] = score.chance;
            o->ceiling[core] = score.ceiling;
            if (!core) memcpy(o->of, score.of, sizeof o->of);
        }
    }
    if (!r && b->task != TASK_SCORE) r = answer(b, s, p, o, err);
    kv_session_free(s);
    return r;
}

/* --- results ------------------------------------------------------------------------------------------------------------ */

enum { ASKED_FUNCTION, ASKED_MISTAKE, ASKED_LINE, N_ASKED };
static const char *const asked_words[N_ASKED] = {"function", "mistake", "line"};

typedef struct result {
    char task[12], model[40], id[64], condition[40];
    double cap, share[2], chance[2], ceiling[2], of[KV_STRUCTURE_KINDS];
    int right[N_ASKED]; /* 1 right, 0 wrong, -1 not asked: as asked_words */
    uint32_t n_line, right_line;
} result;

static void put_result(
    bench *b, const bench_sample *s, const struct condition *c, double cap, const prompt *p, const outcome *o)
{
    static const char *const extents[] = {"extents", "cores"};
    base_buf out = {0};
    base_buf_printf(&out, "{\"task\":\"%s\",\"model\":", task_words[b->task]);
    base_json_put_str(&out, b->info->name ? b->info->name : "", strlen(b->info->name ? b->info->name : ""));
    base_buf_puts(&out, ",\"id\":");
    base_json_put_str(&out, s->id, strlen(s->id));
    base_buf_printf(
        &out, ",\"seed\":%lld,\"cap\":%g,\"condition\":", (long long)b->seed, is_full(c) ? 1 : cap);
    base_json_put_str(&out, c->name, strlen(c->name));
    base_buf_printf(
        &out, ",\"tokens\":%u,\"chunks\":%u,\"active\":%.0f", p->n_context, p->n_chunks, o->active);
    for (int core = 0; core < 2; core++)
        base_buf_printf(&out, ",\"%s\":[%.4f,%.4f,%.4f]", extents[core], o->score[core], o->chance[core],
            o->ceiling[core]);
    base_buf_puts(&out, ",\"kinds\":[");
    for (uint32_t k = 0; k < KV_STRUCTURE_KINDS; k++)
        base_buf_printf(&out, o->of[k] == o->of[k] ? "%s%.4f" : "%snull", k ? "," : "", o->of[k]);
    base_buf_puts(&out, "]");
    if (o->function >= 0) base_buf_printf(&out, ",\"function\":%d", o->function);
    if (o->n_line)
        base_buf_printf(&out, ",\"mistake\":%d,\"line\":%d,\"line_tokens\":[%u,%u]", o->mistake,
            o->right_line == o->n_line, o->right_line, o->n_line);
    base_buf_printf(&out, ",\"spans_ms\":%.2f,\"prefill_ms\":%.0f,\"plan_ms\":%.2f}\n", p->spans_ms,
        p->prefill_ms, o->ms);
    fputs(out.data, b->out);
    fflush(b->out);
    base_buf_free(&out);
}

static void read_triple(const base_json *o, const char *key, int i, result *one)
{
    const base_json *a = base_json_get(o, key);
    double *to[] = {&one->share[i], &one->chance[i], &one->ceiling[i]};
    for (size_t k = 0; k < 3; k++) {
        const base_json *x = base_json_at(a, k);
        *to[k] = x && x->type == BASE_JSON_NUMBER ? x->number : NAN;
    }
}

static size_t read_results(const base_buf *lines, result **ret)
{
    size_t n = 0, cap = 0;
    *ret = NULL;
    for (size_t at = 0; at < lines->len;) {
        const char *end = memchr(lines->data + at, '\n', lines->len - at);
        base_json_doc *doc = NULL;
        if (!end) break; /* a cut last line */
        const size_t length = (size_t)(end - lines->data) - at;
        if (!base_json_parse(lines->data + at, length, &doc, NULL)) {
            const base_json *o = base_json_root(doc), *kinds = base_json_get(o, "kinds"),
                            *tokens = base_json_get(o, "line_tokens");
            result one = {.cap = base_json_num(o, "cap", 0),
                .right_line = tokens ? (uint32_t)base_json_at(tokens, 0)->integer : 0,
                .n_line = tokens && tokens->n == 2 ? (uint32_t)base_json_at(tokens, 1)->integer : 0};
            snprintf(one.task, sizeof one.task, "%s", base_json_str(o, "task", ""));
            snprintf(one.model, sizeof one.model, "%s", base_json_str(o, "model", ""));
            snprintf(one.id, sizeof one.id, "%s", base_json_str(o, "id", ""));
            snprintf(one.condition, sizeof one.condition, "%s", base_json_str(o, "condition", ""));
            for (size_t k = 0; k < N_ASKED; k++) one.right[k] = (int)base_json_int(o, asked_words[k], -1);
            read_triple(o, "extents", 0, &one);
            read_triple(o, "cores", 1, &one);
            for (size_t k = 0; k < KV_STRUCTURE_KINDS; k++) {
                const base_json *x = base_json_at(kinds, k);
                one.of[k] = x && x->type == BASE_JSON_NUMBER ? x->number : NAN;
            }
            base_grow(ret, &cap, n + 1, sizeof **ret);
            (*ret)[n++] = one;
            base_json_free(doc);
        }
        at += length + 1;
    }
    return n;
}

static bool is_same_cell(const result *a, const result *b)
{
    return a->cap == b->cap && !strcmp(a->condition, b->condition) && !strcmp(a->task, b->task) &&
           !strcmp(a->model, b->model);
}

typedef struct mean {
    double sum;
    uint32_t n;
} mean;

static void add(mean *m, double x)
{
    if (x != x) return;
    m->sum += x;
    m->n++;
}

static double get(const mean *m)
{
    return m->n ? m->sum / m->n : NAN;
}

static const result *find_pair(const result *all, size_t n, const result *one, const char *condition)
{
    for (size_t i = 0; i < n; i++)
        if ((all[i].cap == one->cap || !strcmp(condition, "full")) && !strcmp(all[i].condition, condition) &&
            !strcmp(all[i].id, one->id) && !strcmp(all[i].task, one->task) &&
            !strcmp(all[i].model, one->model))
            return &all[i];
    return NULL;
}

/* Right answers of a kind, with their interval, and against snapkv on the same samples. */
static void print_right(const result *all, size_t n, const result *first, int asked_of, FILE *out)
{
    uint32_t asked = 0, right = 0, better = 0, worse = 0;
    double low, high;
    for (size_t i = 0; i < n; i++) {
        if (!is_same_cell(&all[i], first)) continue;
        const result *pair = find_pair(all, n, &all[i], "snapkv");
        if (all[i].right[asked_of] < 0) continue;
        const bool mine = all[i].right[asked_of] == 1, theirs = pair && pair->right[asked_of] == 1;
        asked++;
        right += mine;
        better += pair && mine && !theirs;
        worse += pair && !mine && theirs;
    }
    if (!asked) {
        fprintf(out, " - | - |");
        return;
    }
    bench_wilson(right, asked, &low, &high);
    fprintf(out, " %u/%u %.3f [%.2f, %.2f] | +%u -%u p %.2g |", right, asked, (double)right / asked, low,
        high, better, worse, bench_mcnemar(better, worse));
}

static void print_cell(const result *all, size_t n, const result *first, FILE *out)
{
    mean share[2] = {{0}}, chance = {0}, ceiling[2] = {{0}}, of[KV_STRUCTURE_KINDS] = {{0}}, tokens = {0};
    uint32_t samples = 0;
    for (size_t i = 0; i < n; i++) {
        if (!is_same_cell(&all[i], first)) continue;
        samples++;
        add(&chance, all[i].chance[0]);
        for (int core = 0; core < 2; core++) {
            add(&share[core], all[i].share[core]);
            add(&ceiling[core], all[i].ceiling[core]);
        }
        for (uint32_t k = 0; k < KV_STRUCTURE_KINDS; k++) add(&of[k], all[i].of[k]);
        if (all[i].n_line) add(&tokens, (double)all[i].right_line / all[i].n_line);
    }
    fprintf(out, "| %.1f | %s | %u | %.3f | %.3f | %.3f | %.3f | %.3f |", first->cap, first->condition,
        samples, get(&share[0]), get(&chance), get(&ceiling[0]), get(&share[1]), get(&ceiling[1]));
    if (!strcmp(first->task, "score")) {
        for (uint32_t k = 0; k < KV_STRUCTURE_KINDS; k++) fprintf(out, " %.2f |", get(&of[k]));
    } else {
        for (int asked = 0; asked < N_ASKED; asked++) print_right(all, n, first, asked, out);
        fprintf(out, " %.3f |", get(&tokens));
    }
    fputc('\n', out);
}

static void print_results(const base_buf *lines, FILE *out)
{
    result *all;
    const size_t n = read_results(lines, &all);
    for (size_t i = 0; i < n; i++) {
        bool is_new = true;
        for (size_t k = 0; k < i && is_new; k++)
            is_new = strcmp(all[k].task, all[i].task) || strcmp(all[k].model, all[i].model);
        if (!is_new) continue;
        fprintf(out,
            "\n%s, %s\n\n| cap | condition | n | extents kept | chance | ceiling | cores kept | ceiling |",
            all[i].task, all[i].model);
        if (!strcmp(all[i].task, "score")) {
            for (uint32_t k = 0; k < KV_STRUCTURE_KINDS; k++) fprintf(out, " %s |", kv_structure_word(k));
            fprintf(out, "\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
        } else
            fprintf(out,
                " function | over snapkv | mistake | over snapkv | line | over snapkv | line's tokens |\n"
                "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
        for (double cap = 1; cap > 0; cap -= .05) /* high caps first */
            for (size_t k = i; k < n; k++) {
                if (strcmp(all[k].task, all[i].task) || strcmp(all[k].model, all[i].model) ||
                    fabs(all[k].cap - cap) > .02)
                    continue;
                bool is_first = true;
                for (size_t j = i; j < k && is_first; j++) is_first = !is_same_cell(&all[j], &all[k]);
                if (is_first) print_cell(all, n, &all[k], out);
            }
    }
    free(all);
}

/* --- the run ------------------------------------------------------------------------------------------------------------ */

static bool is_wanted(const bench *b, const struct condition *c)
{
    if (!strcmp(b->wanted, "all")) return true;
    if (!strcmp(b->wanted, "main")) return c->is_main;
    const size_t n = strlen(c->name);
    for (const char *at = b->wanted; (at = strstr(at, c->name)); at++)
        if ((at == b->wanted || at[-1] == ',') && (!at[n] || at[n] == ',')) return true;
    return false;
}

static bool is_done(
    const result *done, size_t n, const bench *b, const char *id, const struct condition *c, double cap)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(done[i].id, id) && !strcmp(done[i].condition, c->name) &&
            fabs(done[i].cap - cap) < 1e-6 && !strcmp(done[i].task, task_words[b->task]) &&
            !strcmp(done[i].model, b->info->name))
            return true;
    return false;
}

static int run_sample(bench *b, const bench_sample *s, const result *done, size_t n_done, base_err *err)
{
    prompt p;
    prompt_make(b, &p, s);
    kv_session *bases[2] = {NULL, NULL};
    uint32_t at[2] = {0, 0};
    int r = 0;
    for (size_t i = 0; i < N_CONDITIONS && !r && !has_equal_choices(&p); i++) {
        const struct condition *c = &conditions[i];
        const int local = !strcmp(c->policy, "codecomp");
        if (!is_wanted(b, c)) continue;
        for (uint32_t k = 0; k < (is_full(c) ? 1 : b->n_caps) && !r; k++) {
            outcome o;
            if (is_done(done, n_done, b, s->id, c, is_full(c) ? 1 : b->caps[k])) continue;
            if (!bases[local]) r = compute_base(b, &p, local, &bases[local], &at[local], err);
            if (!r) r = run_condition(b, &p, bases[local], at[local], c, b->caps[k], &o, err);
            if (!r) put_result(b, s, c, b->caps[k], &p, &o);
        }
    }
    for (int i = 0; i < 2; i++) kv_session_free(bases[i]);
    prompt_free(&p);
    return r;
}

static bool make_sample(bench *b, const bench_pool *pools, uint32_t source, uint32_t number, bench_sample *s)
{
    const uint64_t seed = (uint64_t)b->seed;
    if (source == b->n_sources)
        return b->quixbugs && bench_sample_quixbugs(s, b->quixbugs, seed, number, (uint32_t)b->chunks);
    switch (b->task) {
    case TASK_BUG: return bench_sample_mutate(s, &pools[source], seed, number, (uint32_t)b->chunks);
    case TASK_COMPLETE: return bench_sample_complete(s, &pools[source], seed, number, (uint32_t)b->chunks);
    default: return bench_sample_read(s, &pools[source], seed, number, (size_t)b->tokens * 3);
    }
}

/* Samples of all sources in turn, so that a run that is cut short has some of each. */
static int run_samples(bench *b, const bench_pool *pools, base_err *err)
{
    result *done;
    const size_t n_done = read_results(&b->done, &done);
    const uint64_t start = base_clock_ns();
    uint32_t made[MOST_SOURCES + 1] = {0}, next[MOST_SOURCES + 1] = {0};
    int r = 0;
    for (bool more = true; more && !r;) {
        more = false;
        for (uint32_t source = 0; source <= b->n_sources && !r; source++) {
            bench_sample s = {.n_chunks = 0};
            bool found = false;
            if (made[source] == b->samples || (source == b->n_sources && b->task != TASK_BUG)) continue;
            for (uint32_t tries = 0; tries < 400 && !found; tries++)
                found = make_sample(b, pools, source, next[source]++, &s);
            if (!found) continue;
            if (b->seconds && (double)(base_clock_ns() - start) / 1e9 > (double)b->seconds) {
                bench_sample_free(&s);
                break;
            }
            made[source]++;
            more = true;
            r = run_sample(b, &s, done, n_done, err);
            bench_sample_free(&s);
        }
    }
    free(done);
    return r;
}

static int run(bench *b, base_err *err)
{
    bench_pool pools[MOST_SOURCES] = {{.n = 0}};
    b->grammars = code_grammars_open();
    b->logits = malloc((size_t)KV_DRAFT_MAX * b->info->n_vocab * sizeof *b->logits);
    int r = b->logits ? 0 : base_fail(err, BASE_E_NOMEM, "no memory for logits");
    if (!r && b->out_path && base_fs_exists(b->out_path))
        r = base_fs_read(b->out_path, 256u << 20, &b->done, err);
    b->out = b->out_path ? fopen(b->out_path, "ae") : stdout;
    if (!r && !b->out) r = base_fail_sys(err, "cannot write %s", b->out_path);
    for (uint32_t i = 0; i < b->n_sources && !r; i++)
        r = bench_pool_load(&pools[i], b->grammars, b->sources[i], err);
    if (!r) r = run_samples(b, pools, err);
    for (uint32_t i = 0; i < b->n_sources; i++) bench_pool_free(&pools[i]);
    if (b->out && b->out_path) {
        fclose(b->out);
        base_buf_clear(&b->done);
        if (!r) r = base_fs_read(b->out_path, 256u << 20, &b->done, err);
        if (!r) print_results(&b->done, stdout);
    }
    base_buf_free(&b->done);
    free(b->logits);
    code_grammars_close(b->grammars);
    return r;
}

static int check(bench *b, base_err *err)
{
    b->task = TASK_SCORE;
    for (size_t i = 0; i < 3; i++)
        if (!strcmp(b->task_word, task_words[i])) b->task = (task)i;
    if (strcmp(b->task_word, task_words[b->task]))
        return base_fail(err, BASE_E_USAGE, "--task is score, bug or complete, not '%s'", b->task_word);
    for (const char *at = b->caps_text; *at && b->n_caps < MOST_CAPS;) {
        char *end;
        const double cap = strtod(at, &end);
        if (end == at || !(cap > 0 && cap <= 1) || (*end && *end != ','))
            return base_fail(err, BASE_E_USAGE, "--caps takes shares such as .2,.4, not '%s'", b->caps_text);
        b->caps[b->n_caps++] = cap;
        at = *end ? end + 1 : end;
    }
    while (b->sources[b->n_sources]) b->n_sources++;
    if (b->samples < 1 || b->samples > 100000 || b->chunks < 2 || b->chunks > BENCH_CHUNKS ||
        b->tokens < 300 || b->tokens > 6000 || b->seconds < 0)
        return base_fail(err, BASE_E_USAGE,
            "--samples is 1 to 100000, --chunks 2 to %d, --tokens 300 to 6000", BENCH_CHUNKS);
    if (!b->n_sources && !b->quixbugs)
        return base_fail(
            err, BASE_E_USAGE, "bench structure needs folders of source text or, for bug, --quixbugs DIR");
    return 0;
}

int cmd_bench_structure(int argc, char **argv)
{
    bench b = {.common = COMMON_OPTIONS_DEFAULTS,
        .task_word = "score",
        .caps_text = ".4,.6",
        .wanted = "main",
        .samples = 8,
        .chunks = 5,
        .tokens = 2000,
        .seed = 1};
    const option_row own[] = {
        {"--task", OPTION_TEXT, &b.task_word},
        {"--quixbugs", OPTION_TEXT, &b.quixbugs},
        {"--samples", OPTION_INTEGER, &b.samples},
        {"--chunks", OPTION_INTEGER, &b.chunks},
        {"--tokens", OPTION_INTEGER, &b.tokens},
        {"--caps", OPTION_TEXT, &b.caps_text},
        {"--conditions", OPTION_TEXT, &b.wanted},
        {"--seconds", OPTION_INTEGER, &b.seconds},
        {"--seed", OPTION_INTEGER, &b.seed},
        {"--out", OPTION_TEXT, &b.out_path},
        {"--report", OPTION_TEXT, &b.report},
        {"--list", OPTION_FLAG, &b.list},
        {"--help", OPTION_FLAG, &b.help},
        {.name = NULL},
    };
    const char **rest = calloc((size_t)argc, sizeof *rest);
    uint32_t n_rest = 0;
    base_err err = {0};
    int r = rest ? options_parse(argc, argv, &b.common, own, rest, &n_rest, &err) : BASE_E_NOMEM;
    for (uint32_t i = 0; i < n_rest && i < MOST_SOURCES; i++) b.sources[i] = rest[i];
    free(rest);
    if (!r && b.help) {
        fputs(usage, stdout);
        options_print_help(stdout);
        return CMD_OK;
    }
    for (size_t i = 0; !r && b.list && i < N_CONDITIONS; i++)
        printf("%-26s %s %s\n", conditions[i].name, conditions[i].policy,
            conditions[i].set ? conditions[i].set : "");
    if (!r && b.list) return CMD_OK;
    if (!r && b.report) {
        r = base_fs_read(b.report, 256u << 20, &b.done, &err);
        if (!r) print_results(&b.done, stdout);
        base_buf_free(&b.done);
        return r ? cmd_complain(&err) : CMD_OK;
    }
    if (!r) r = check(&b, &err);
    if (!r) r = cmd_open_model(&b.common, &b.model, &err);
    if (r) return cmd_complain(&err);
    b.info = model_get_info(b.model);
    r = run(&b, &err);
    model_close(b.model);
    return r ? cmd_complain(&err) : CMD_OK;
}
