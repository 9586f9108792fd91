/* One sample under all conditions; see bench/structure/sample.h. */
#include "bench/structure/sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/marks.h"
#include "base/clock.h"
#include "base/mem.h"
#include "bench/common/share.h"
#include "code/index.h"
#include "kv/lab/lab.h"
#include "model/text/template.h"

enum { MOST_SET = 8, MOST_WANT = 128, MOST_QUERIES = 8 };

const structure_condition structure_conditions[] = {
    {.name = "full", .policy = "full", .is_main = true},
    {.name = "snapkv", .policy = "snapkv", .is_main = true},
    {.name = "streaming-llm", .policy = "streaming-llm", .is_main = true},
    {.name = "random", .policy = "random"},
    {.name = "kvist", .policy = "kvist", .is_main = true},
    {.name = "kvist soft=1", .policy = "kvist", .set = "soft=1"},
    {.name = "kvist and repair", .policy = "kvist", .set = "signal=reuse", .repairs = true},
    {.name = "kvist soft=.25", .policy = "kvist", .set = "soft=.25"},
    {.name = "codecomp full", .policy = "codecomp", .is_main = true},
    {.name = "codecomp", .policy = "codecomp", .is_main = true},
    {.name = "chunk-local attention", .policy = "codecomp", .set = "span=0 alloc=0", .is_main = true},
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
    {.name = "structkv", .policy = "structkv", .prunes = true},
    {.name = "half depth", .policy = "structkv-half", .prunes = true},
    {.name = "fastkv", .policy = "fastkv", .prunes = true},
    {.name = "heads .25 10%", .policy = "kvist", .set = "prune=heads pivot=.25 keep=.1", .prunes = true},
    {.name = "heads .25 20%", .policy = "kvist", .set = "prune=heads pivot=.25 keep=.2", .prunes = true},
    {.name = "heads .36 10%", .policy = "kvist", .set = "prune=heads pivot=.36 keep=.1", .prunes = true},
    {.name = "heads .36 20%", .policy = "kvist", .set = "prune=heads pivot=.36 keep=.2", .prunes = true},
    {.name = "heads .46 10%", .policy = "kvist", .set = "prune=heads pivot=.46 keep=.1", .prunes = true},
    {.name = "heads .46 20%", .policy = "kvist", .set = "prune=heads pivot=.46 keep=.2", .prunes = true},
    {.name = "heads .25 10% frame=0",
        .policy = "kvist",
        .set = "prune=heads pivot=.25 keep=.1 frame=none",
        .prunes = true},
    {.name = "heads .46 20% frame=0",
        .policy = "kvist",
        .set = "prune=heads pivot=.46 keep=.2 frame=none",
        .prunes = true},
    {.name = NULL},
};
enum { N_CONDITIONS = sizeof structure_conditions / sizeof *structure_conditions - 1 };

static bool is_full(const structure_condition *c)
{
    return strstr(c->name, "full") != NULL;
}

bool structure_has_caps(const structure_condition *c)
{
    return !is_full(c) && !c->prunes;
}

static bool is_local(const structure_condition *c)
{
    return strcmp(c->policy, "codecomp") == 0;
}

static bool is_wanted(const structure_run *b, const structure_condition *c)
{
    if (!strcmp(b->wanted, "all")) return true;
    if (!strcmp(b->wanted, "main")) return c->is_main;
    const size_t n = strlen(c->name);
    for (const char *at = b->wanted; (at = strstr(at, c->name)); at++)
        if ((at == b->wanted || at[-1] == ',') && (!at[n] || at[n] == ',')) return true;
    return false;
}

/* A chunk in tokens, and what its text says. */
typedef struct excerpt {
    const bench_function *f;
    model_ids ids;
    uint32_t *ends;           /* [ids.n] bytes behind each token */
    uint32_t *lines, n_lines; /* tokens that begin a line */
    uint32_t text_from;       /* where f->text begins in what was encoded */
    code_file *file;
    code_graph *graph;
} excerpt;

/* What all questions of a sample share. */
typedef struct context {
    const structure_run *b;
    model_ids head;
    excerpt chunks[BENCH_CHUNKS];
    uint32_t n_chunks, n_tokens; /* tokens: of the chunks */
    kv_session *sessions[2];     /* ordinary text; chunk by chunk. NULL: not computed */
    bench_share *share;          /* of the first, with those that prune; NULL: none does */
    kv_compute compute;
    uint32_t at[BENCH_CHUNKS]; /* token where a chunk begins */
    double seconds;
} context;

/* A question, and the answer that is read along. */
typedef struct question {
    model_ids ids, all; /* ids: what is asked; all: and the answer behind it */
    uint32_t want[MOST_WANT],
        n_want; /* tokens of `all` whose logits are read: before the choice, before each of the line's */
    uint32_t n_choices, right, choices[BENCH_CHUNKS];
    uint32_t n_line;
    uint32_t queries[MOST_QUERIES], n_queries; /* tokens of `ids` that name what is asked for */
    kv_span *spans[BENCH_CHUNKS];
    uint32_t n_spans[BENCH_CHUNKS];
    double spans_ms;
    kv_session *sessions[2]; /* the context and, behind it, the question as the signal */
    double seconds;
} question;

static void encode(const structure_run *b, const char *text, size_t n, model_ids *out)
{
    model_tokenizer_encode(model_get_tokenizer(b->model), text, n, false, out);
}

static void puts_ids(const structure_run *b, model_ids *out, const char *text)
{
    encode(b, text, strlen(text), out);
}

static uint32_t n_bytes_of(const structure_run *b, int32_t id)
{
    size_t length = 0;
    model_tokenizer_piece(model_get_tokenizer(b->model), id, &length);
    return (uint32_t)length;
}

static int32_t first_token(const model *m, const char *name)
{
    model_ids ids = {0};
    model_tokenizer_encode(model_get_tokenizer(m), name, strlen(name), false, &ids);
    const int32_t id = ids.n ? ids.ids[0] : -1;
    model_ids_free(&ids);
    return id;
}

/* First tokens of two names that are equal would make the choice a draw. */
bool structure_accept_name(void *user, const bench_sample *s, const char *name)
{
    const int32_t id = first_token(user, name);
    for (uint32_t i = 0; i < s->n_chunks; i++)
        if (first_token(user, s->chunks[i].name) == id) return false;
    return true;
}

/* --- the context ---------------------------------------------------------------------------------------------------------- */

static void excerpt_make(const structure_run *b, excerpt *ret, const bench_function *f)
{
    const char *dot = strrchr(f->path, '.');
    const size_t n_text = strlen(f->text);
    base_buf text = {0};
    *ret = (excerpt){.f = f};
    base_buf_printf(&text, "```%s\n", dot ? dot + 1 : "");
    ret->text_from = (uint32_t)text.len;
    base_buf_puts(&text, f->text);
    base_buf_puts(&text, "\n```\n");
    encode(b, text.data, text.len, &ret->ids);
    ret->ends = base_xcalloc(ret->ids.n + 1, sizeof *ret->ends);
    ret->lines = base_xcalloc(ret->ids.n + 1, sizeof *ret->lines);
    for (uint32_t i = 0, at = 0; i < ret->ids.n; i++) {
        if (!at || text.data[at - 1] == '\n') ret->lines[ret->n_lines++] = i;
        ret->ends[i] = at += n_bytes_of(b, ret->ids.ids[i]);
    }
    ret->file = code_parse_graph(b->grammars, f->path, f->text, n_text, &ret->graph);
    base_buf_free(&text);
}

static void context_free(context *c)
{
    for (uint32_t i = 0; i < c->n_chunks; i++) {
        model_ids_free(&c->chunks[i].ids);
        free(c->chunks[i].ends);
        free(c->chunks[i].lines);
        code_graph_free(c->chunks[i].graph);
        code_file_free(c->chunks[i].file);
    }
    for (int i = 0; i < 2; i++) kv_session_free(c->sessions[i]);
    bench_share_free(c->share);
    model_ids_free(&c->head);
}

static void context_make(context *c, const structure_run *b, const bench_sample *s)
{
    const model_template *template = model_get_template(b->model);
    *c = (context){.b = b};
    model_template_start(template, &c->head);
    model_template_begin(template, MODEL_ROLE_USER, &c->head);
    puts_ids(b, &c->head, "This is code of a project:\n");
    for (uint32_t i = 0; i < s->n_chunks; i++) {
        excerpt_make(b, &c->chunks[c->n_chunks++], &s->chunks[i]);
        c->at[i] = (uint32_t)c->head.n + c->n_tokens;
        c->n_tokens += (uint32_t)c->chunks[i].ids.n;
    }
}

static int append(kv_session *s, kv_origin origin, const model_ids *ids, base_err *err)
{
    const kv_segment g = {.origin = origin, .turn = 1};
    return kv_session_append(s, &g, ids->ids, (uint32_t)ids->n, NULL, NULL, NULL, err);
}

/* A condition's words as parameters behind those that all have; `words` holds them. */
enum { MOST_WORDS = 128 };
static void split_set(const structure_condition *c, char words[MOST_WORDS], const char *set[MOST_SET + 1])
{
    uint32_t n = 0;
    while (set[n]) n++;
    snprintf(words, MOST_WORDS, "%s", c->set ? c->set : "");
    for (char *word = strtok(words, " "); word && n < MOST_SET; word = strtok(NULL, " ")) set[n++] = word;
}

static int open_pruned(
    const context *c, const structure_condition *condition, kv_session **ret, base_err *err)
{
    char words[MOST_WORDS];
    const char *set[MOST_SET + 1] = {NULL};
    split_set(condition, words, set);
    const kv_options o = {
        .policy = condition->policy, .set = set, .heads_file = c->b->heads, .pivot_file = c->b->pivot};
    return kv_session_new_over(ret, &c->compute, &o, NULL, err);
}

/* What the conditions that prune compute alike, they compute once. */
static int context_share(context *c, base_err *err)
{
    uint32_t cuts[N_CONDITIONS] = {0};
    bool any = false;
    int r = 0;
    c->compute = kv_compute_model(c->b->model);
    for (uint32_t i = 0; i < N_CONDITIONS && !r; i++) {
        kv_session *s = NULL;
        if (!structure_conditions[i].prunes || !is_wanted(c->b, &structure_conditions[i])) continue;
        r = open_pruned(c, &structure_conditions[i], &s, err);
        if (!r) cuts[i] = kv_session_next_cut(s);
        kv_session_free(s);
        any = true;
    }
    if (r || !any) return r;
    c->share = bench_share_new(c->b->model, cuts, N_CONDITIONS);
    c->compute = bench_share_compute(c->share);
    return 0;
}

/* Head and chunks; shared: what is computed for one session is there for the next. */
static int append_context(const context *c, kv_session *s, bool shared, base_err *err)
{
    if (c->share) bench_share_keep(c->share, shared);
    int r = append(s, KV_ORIGIN_SYSTEM, &c->head, err);
    for (uint32_t i = 0; i < c->n_chunks && !r; i++) {
        const excerpt *x = &c->chunks[i];
        const kv_segment g = {.origin = KV_ORIGIN_CONTEXT,
            .turn = 1,
            .lines = x->lines,
            .n_lines = x->n_lines,
            .bulk = c->n_tokens};
        r = kv_session_append(s, &g, x->ids.ids, (uint32_t)x->ids.n, NULL, NULL, NULL, err);
    }
    if (c->share) bench_share_keep(c->share, false);
    return r;
}

/* The context, and of it what the question leaves: a session that ends behind the context. */
static int compute_pruned(const context *c, const question *q, const structure_condition *condition,
    kv_session **ret, base_err *err)
{
    const kv_segment g = {
        .origin = KV_ORIGIN_USER, .turn = 1, .queries = q->queries, .n_queries = q->n_queries};
    int r = open_pruned(c, condition, ret, err);
    if (!r) r = append_context(c, *ret, true, err);
    for (uint32_t i = 0; i < c->n_chunks && !r; i++)
        r = kv_session_set_spans(*ret, c->at[i], q->spans[i], q->n_spans[i], err);
    if (!r) r = kv_session_append(*ret, &g, q->ids.ids, (uint32_t)q->ids.n, NULL, NULL, NULL, err);
    return r;
}

static int context_compute(context *c, bool local, base_err *err)
{
    static const char *const alone[] = {"local=1", NULL};
    const uint64_t start = base_clock_ns();
    kv_session *s = NULL;
    int r = kv_session_new_over(&s, &c->compute,
        &(kv_options){.policy = local ? "codecomp" : "full", .set = local ? alone : NULL}, NULL, err);
    if (r) return r;
    r = append_context(c, s, !local, err);
    if (r) {
        kv_session_free(s);
        return r;
    }
    c->sessions[local] = s;
    c->seconds += (double)(base_clock_ns() - start) / 1e9;
    return 0;
}

/* --- a question --------------------------------------------------------------------------------------------------------------- */

/* The token that holds a byte. */
static uint32_t token_at(const excerpt *x, uint32_t byte)
{
    uint32_t low = 0, high = (uint32_t)x->ids.n;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (x->ends[middle] > byte)
            high = middle;
        else
            low = middle + 1;
    }
    return low < x->ids.n ? low : (uint32_t)x->ids.n - 1;
}

static void find_spans(question *q, uint32_t chunk, const excerpt *x, const char *request)
{
    const uint64_t start = base_clock_ns();
    const uint32_t n = (uint32_t)strlen(x->f->text);
    code_piece *pieces = NULL;
    const uint32_t n_pieces = code_structure(x->file, x->graph, x->f->text, n, 0, n, request, &pieces);
    q->spans[chunk] = base_xcalloc((size_t)n_pieces + 1, sizeof *q->spans[chunk]);
    for (uint32_t i = 0; i < n_pieces; i++)
        if (pieces[i].to > pieces[i].from)
            q->spans[chunk][q->n_spans[chunk]++] =
                (kv_span){.from = token_at(x, x->text_from + pieces[i].from),
                    .to = token_at(x, x->text_from + pieces[i].to - 1) + 1,
                    .reason = agent_reason_of[pieces[i].kind],
                    .marks = pieces[i].marks,
                    .n_flow = pieces[i].n_flow,
                    .n_dependence = pieces[i].n_dependence};
    q->spans_ms += (double)(base_clock_ns() - start) / 1e6;
    free(pieces);
}

static void add_all(model_ids *to, const model_ids *from)
{
    for (size_t i = 0; i < from->n; i++) model_ids_add(to, from->ids[i]);
}

/* The line's tokens are those of `all` from its token `first` on. */
static void want_line(question *q, size_t first)
{
    for (size_t i = first; i < q->all.n && q->n_want < MOST_WANT; i++, q->n_line++)
        q->want[q->n_want++] = (uint32_t)i - 1;
}

/* The last tokens of what the question quotes. */
static void name_queries(question *q, const structure_run *b, const char *text, size_t n)
{
    const uint32_t to = (uint32_t)(strchr(text, '`') + 1 - text + n);
    uint32_t last = 0;
    for (uint32_t i = 0, at = 0; i < q->ids.n && at < to; i++, last++) at += n_bytes_of(b, q->ids.ids[i]);
    for (uint32_t i = last > MOST_QUERIES ? last - MOST_QUERIES : 0; i < last; i++)
        q->queries[q->n_queries++] = i;
}

/* What a traceback says: how the line begins. Which function it is in is a choice by the first token of the names. */
static void ask_bug(question *q, const context *c, const bench_sample *s, const bench_question *about)
{
    const structure_run *b = c->b;
    const model_template *template = model_get_template(b->model);
    base_buf text = {0};
    base_buf_printf(&text,
        "\nA test fails because of a mistake in the line that begins with `%.*s`. Which function is it in, "
        "and how does it "
        "read as it stands?",
        (int)about->n_same, about->line);
    puts_ids(b, &q->ids, text.data);
    name_queries(q, b, text.data, about->n_same);
    add_all(&q->all, &q->ids);
    model_template_end(template, MODEL_ROLE_USER, &q->all);
    model_template_begin(template, MODEL_ROLE_ASSISTANT, &q->all);
    puts_ids(b, &q->all, "It is in the function `");
    q->want[q->n_want++] = (uint32_t)q->all.n - 1;
    for (uint32_t i = 0; i < s->n_chunks; i++)
        q->choices[q->n_choices++] = (uint32_t)first_token(b->model, s->chunks[i].name);
    q->right = about->target;
    base_buf_clear(&text);
    base_buf_printf(&text, "%s`:\n`%.*s", s->chunks[about->target].name, (int)about->n_same, about->line);
    puts_ids(b, &q->all, text.data);
    const size_t line = q->all.n;
    puts_ids(b, &q->all, about->line + about->n_same);
    want_line(q, line);
    base_buf_free(&text);
}

/*
 * Text, line and its end are encoded together, since tokens join what stands before a line end with it: the line's are those that
 * begin in it, what is asked ends before them.
 */
static void ask_completion(question *q, const context *c, const bench_sample *s, const bench_question *about)
{
    const char *dot = strrchr(s->chunks[about->target].path, '.');
    base_buf text = {0};
    base_buf_printf(&text, "```%s\n%s", dot ? dot + 1 : "", about->before);
    const size_t line_at = text.len;
    base_buf_printf(&text, "%s\n", about->line);
    encode(c->b, text.data, text.len, &q->all);
    size_t n = 0, at = 0;
    while (n < q->all.n && at < line_at) {
        size_t length = 0;
        model_tokenizer_piece(model_get_tokenizer(c->b->model), q->all.ids[n], &length);
        at += length;
        model_ids_add(&q->ids, q->all.ids[n++]);
    }
    want_line(q, n);
    base_buf_free(&text);
}

static void question_make(question *q, const context *c, const bench_sample *s, const bench_question *about)
{
    base_buf request = {0};
    *q = (question){.n_want = 0};
    switch (c->b->task) {
    case STRUCTURE_BUG:
        base_buf_printf(&request, "`%.*s`", (int)about->n_same, about->line);
        ask_bug(q, c, s, about);
        break;
    case STRUCTURE_COMPLETE:
    case STRUCTURE_SELECT:
        base_buf_printf(&request, "`%s`", about->before);
        ask_completion(q, c, s, about);
        break;
    default:
        base_buf_printf(&request, "\nWhat does `%s` do?", s->chunks[about->target].name);
        puts_ids(c->b, &q->ids, request.data);
    }
    for (uint32_t i = 0; i < c->n_chunks; i++) find_spans(q, i, &c->chunks[i], request.data);
    base_buf_free(&request);
}

static void question_free(question *q)
{
    for (int i = 0; i < 2; i++) kv_session_free(q->sessions[i]);
    for (uint32_t i = 0; i < BENCH_CHUNKS; i++) free(q->spans[i]);
    model_ids_free(&q->ids);
    model_ids_free(&q->all);
}

static int question_compute(question *q, context *c, bool local, base_err *err)
{
    int r = c->sessions[local] ? 0 : context_compute(c, local, err);
    const uint64_t start = base_clock_ns();
    kv_session *s = NULL;
    if (!r) r = kv_session_fork(c->sessions[local], &s, NULL, err);
    for (uint32_t i = 0; i < c->n_chunks && !r; i++) {
        r = kv_session_set_spans(s, c->at[i], q->spans[i], q->n_spans[i], err);
        if (!r && local) r = kv_session_probe(s, c->at[i], q->ids.ids, (uint32_t)q->ids.n, NULL, NULL, err);
    }
    if (!r) r = append(s, KV_ORIGIN_USER, &q->ids, err);
    if (r) {
        kv_session_free(s);
        return r;
    }
    q->sessions[local] = s;
    q->seconds += (double)(base_clock_ns() - start) / 1e9;
    return 0;
}

/* --- a condition -------------------------------------------------------------------------------------------------------------- */

static uint32_t most_probable(const float *logits, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

/* Question and answer in one pass over what is left: each token of the answer is compared with what the model would have written. */
static int answer(
    const structure_run *b, kv_session *s, const question *q, structure_result *o, base_err *err)
{
    const uint32_t n_vocab = b->info->n_vocab;
    const kv_segment g = {.origin = KV_ORIGIN_USER, .turn = 1};
    float *logits = malloc((size_t)q->n_want * n_vocab * sizeof *logits);
    int r = logits ? 0 : base_fail(err, BASE_E_NOMEM, "no memory for logits");
    if (!r) r = kv_session_peek(s, &g, q->all.ids, (uint32_t)q->all.n, q->want, q->n_want, logits, NULL, err);
    if (!r && q->n_choices) {
        uint32_t best = 0;
        for (uint32_t i = 1; i < q->n_choices; i++)
            if (logits[q->choices[i]] > logits[q->choices[best]]) best = i;
        o->right[0] = best == q->right;
    }
    for (uint32_t i = q->n_want - q->n_line; i < q->n_want && !r; i++) {
        const bool is_right =
            most_probable(logits + (size_t)i * n_vocab, n_vocab) == (uint32_t)q->all.ids[q->want[i] + 1];
        if (!o->n_line++) o->right[1] = is_right;
        o->right_line += is_right;
    }
    if (!r && o->n_line) o->right[2] = o->right_line == o->n_line;
    free(logits);
    return r;
}

/* The context's rows as the condition leaves them: a session that ends behind the context. */
static int compress(const context *x, const question *q, const structure_condition *c, double cap,
    kv_session **ret, base_err *err)
{
    char words[MOST_WORDS];
    const char *set[MOST_SET + 1] = {"low=1", "hard=1"};
    const uint32_t hard = (uint32_t)(x->head.n + q->ids.n), kept = (uint32_t)lround(cap * x->n_tokens);
    if (c->prunes) return compute_pruned(x, q, c, ret, err);
    split_set(c, words, set);
    int r = kv_session_fork(q->sessions[is_local(c)], ret, NULL, err);
    if (!r)
        r = kv_session_set_policy(*ret,
            &(kv_options){.policy = c->policy,
                .set = set,
                .repair = c->repairs ? -1 : 0,
                .heads_file = x->b->heads,
                .budget = is_full(c) ? 0 : hard + kept,
                .bare = true},
            err);
    if (!r) r = kv_session_evict(*ret, NULL, err);
    if (!r && c->repairs) {
        uint32_t n = 0;
        kv_session_ids(*ret, &n);
        r = kv_session_repair(*ret, (uint32_t)x->head.n + x->n_tokens, n, NULL, 0, NULL, err);
    }
    return r;
}

static int run_condition(const context *x, const question *q, const structure_condition *c, double cap,
    structure_result *o, base_err *err)
{
    const uint64_t start = base_clock_ns();
    kv_session *s = NULL;
    int r = compress(x, q, c, cap, &s, err);
    if (!r) {
        kv_stats stats;
        kv_session_set_automatic(s, false);
        r = kv_session_truncate(s, (uint32_t)x->head.n + x->n_tokens, err);
        kv_session_get_stats(s, &stats);
        o->active = stats.active;
        for (int core = 0; core < 2; core++) {
            kv_structure score;
            kv_session_structure(s, core, &score);
            o->share[core] = score.share;
            o->chance[core] = score.chance;
            o->ceiling[core] = score.ceiling;
            if (!core) memcpy(o->of, score.of, sizeof o->of);
        }
    }
    if (!r && q->n_want) r = answer(x->b, s, q, o, err);
    kv_session_free(s);
    o->condition_s = (double)(base_clock_ns() - start) / 1e9;
    return r;
}

/* --- a selection ---------------------------------------------------------------------------------------------------------- */

/* CodeComp's choice of chunks: the target's place when those come first that make the question most probable. */
static int rank_by_perplexity(
    context *x, const question *q, uint32_t target, structure_result *o, base_err *err)
{
    double surprise[BENCH_CHUNKS];
    int r = x->sessions[1] ? 0 : context_compute(x, true, err);
    const uint64_t start = base_clock_ns();
    for (uint32_t i = 0; i < x->n_chunks && !r; i++)
        r = kv_session_probe(
            x->sessions[1], x->at[i], q->ids.ids, (uint32_t)q->ids.n, &surprise[i], NULL, err);
    o->rank = 1;
    for (uint32_t i = 0; i < x->n_chunks && !r; i++) o->rank += surprise[i] < surprise[target];
    o->condition_s = (double)(base_clock_ns() - start) / 1e9;
    return r;
}

/* What retrieval does without a model: its index over the chunks, each a file. A chunk without a hit comes last. */
static void rank_by_words(const context *x, const char *words, uint32_t target, structure_result *o)
{
    const uint64_t start = base_clock_ns();
    code_index *index = code_index_new(x->b->grammars);
    char path[BENCH_CHUNKS][32];
    code_hits hits;
    for (uint32_t i = 0; i < x->n_chunks; i++) {
        const bench_function *f = x->chunks[i].f;
        const char *dot = strrchr(f->path, '.');
        snprintf(path[i], sizeof path[i], "chunk%u%.16s", i, dot ? dot : "");
        code_index_update(index, path[i], f->text, strlen(f->text));
    }
    code_index_search(index, words, 4 * BENCH_CHUNKS, &hits);
    bool seen[BENCH_CHUNKS] = {false};
    o->rank = 0;
    for (uint32_t h = 0, place = 0; h < hits.n && !o->rank; h++)
        for (uint32_t i = 0; i < x->n_chunks; i++) {
            if (strcmp(hits.hits[h].path, path[i]) || seen[i]) continue;
            seen[i] = true;
            place++;
            if (i == target) o->rank = place;
        }
    if (!o->rank) o->rank = x->n_chunks;
    code_hits_free(&hits);
    code_index_free(index);
    o->condition_s = (double)(base_clock_ns() - start) / 1e9;
}

/* --- a sample ----------------------------------------------------------------------------------------------------------------- */

/* The key of a line; false: it is done. */
static bool is_due(const structure_run *b, const bench_sample *s, uint32_t number, const char *condition,
    double cap, structure_result *ret)
{
    *ret = (structure_result){.cap = cap, .right = {-1, -1, -1}};
    for (uint32_t k = 0; k < KV_STRUCTURE_KINDS; k++) ret->of[k] = NAN;
    snprintf(ret->task, sizeof ret->task, "%s", structure_tasks[b->task]);
    snprintf(ret->model, sizeof ret->model, "%s", b->info->name ? b->info->name : "");
    snprintf(ret->id, sizeof ret->id, "%.59s/%u", s->id, number);
    snprintf(ret->condition, sizeof ret->condition, "%s", condition);
    return !structure_results_have(b->done, ret);
}

static void put_result(const context *x, const bench_sample *s, const question *q, structure_result *o)
{
    o->n_tokens = x->n_tokens;
    o->n_chunks = x->n_chunks;
    o->n_questions = s->n_questions;
    o->prefill_s = x->seconds / s->n_questions;
    o->question_s = q->seconds;
    o->spans_ms = q->spans_ms;
    structure_result_write(o, x->b->seed, x->b->out);
}

static int run_selection(context *x, const bench_sample *s, uint32_t number, const question *q, base_err *err)
{
    const bench_question *about = &s->questions[number];
    structure_result o;
    int r = 0;
    if (is_due(x->b, s, number, "perplexity", 1, &o)) {
        r = rank_by_perplexity(x, q, about->target, &o, err);
        if (!r) put_result(x, s, q, &o);
    }
    if (!r && is_due(x->b, s, number, "BM25", 1, &o)) {
        rank_by_words(x, about->before, about->target, &o);
        put_result(x, s, q, &o);
    }
    return r;
}

static int run_conditions(context *x, const bench_sample *s, uint32_t number, question *q, base_err *err)
{
    const structure_run *b = x->b;
    int r = 0;
    for (const structure_condition *c = structure_conditions; c->name && !r; c++)
        for (uint32_t k = 0; is_wanted(b, c) && k < (structure_has_caps(c) ? b->n_caps : 1) && !r; k++) {
            structure_result o;
            if (!is_due(b, s, number, c->name, structure_has_caps(c) ? b->caps[k] : 1, &o)) continue;
            if (!c->prunes && !q->sessions[is_local(c)]) r = question_compute(q, x, is_local(c), err);
            if (!r) r = run_condition(x, q, c, b->caps[k], &o, err);
            if (!r) put_result(x, s, q, &o);
        }
    return r;
}

static int run_question(context *x, const bench_sample *s, uint32_t number, base_err *err)
{
    question q;
    question_make(&q, x, s, &s->questions[number]);
    const int r = x->b->task == STRUCTURE_SELECT ? run_selection(x, s, number, &q, err)
                                                 : run_conditions(x, s, number, &q, err);
    question_free(&q);
    return r;
}

int structure_run_sample(const structure_run *b, const bench_sample *s, base_err *err)
{
    context x;
    context_make(&x, b, s);
    int r = context_share(&x, err);
    for (uint32_t i = 0; i < s->n_questions && !r; i++) r = run_question(&x, s, i, err);
    context_free(&x);
    return r;
}
