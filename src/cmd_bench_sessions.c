/*
 * kvist bench sessions: recorded tool sessions (tau-bench's trajectories) replayed under each policy at a share of their peak. What
 * was said is given, word for word; at each recorded tool call it is asked how many of the history's rows that its arguments
 * quote are active, and whether every token of the call that the full cache finds most probable is so here too. Beside it what each
 * layout costs: tokens computed when rows stay where they are, and when a cache that compacts computes everything behind
 * the first hole again; rows in the sequence (raw) and rows read (effective), over all computed tokens.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "bench_result.h"
#include "cmd.h"
#include "kv/heads.h"
#include "kv/session.h"
#include "model/template.h"
#include "model/tokenizer.h"
#include "options.h"

static const char usage[] =
    "usage: kvist bench sessions --model M --file FILE.json [--sessions N] [--first N] [--budget PERCENT]\n"
    "                            [--policies NAME,...] [--most TOKENS]\n"
    "\n"
    "  --file FILE          trajectories: an array of {\"traj\":[{role, content, tool_calls}]}\n"
    "  --sessions N         how many (3); --first N: from which on (0)\n"
    "  --budget PERCENT     rows per lane, of the session's length (25)\n"
    "  --policies NAME,...  (streaming-llm,snapkv,h2o,intentkv,kvist; \"full\" always runs first)\n"
    "  --most TOKENS        longer sessions are left out (8000)\n"
    "\n";

enum { FILE_MOST = 256 << 20, LEAST_QUOTE = 3 };

/* A message as tokens: role markers before, what it says, the end. */
typedef struct message {
    kv_origin origin;
    model_ids begin, text, end;
    uint32_t call_from; /* of an assistant's text: where its tool call begins; text.n: there is none */
    const base_json *arguments;
    base_json_doc *doc;
} message;

/* What a policy did in one session. */
typedef struct tally {
    uint32_t n_calls, n_equal, n_quoting;
    double recall;              /* sum over the calls that quote something */
    uint64_t computed, compact; /* tokens: rows in place, and with everything behind the first hole again */
    uint64_t raw, effective;    /* row reads per lane */
    uint32_t peak;
} tally;

typedef struct bench {
    common_options common;
    const char *file, *policies;
    int64_t sessions, first, budget, most;
    bool help;
    model *model;
    const model_info *info;
    char *heads;
    message *messages;
    size_t n_messages, cap_messages;
    uint32_t n_tokens;
    /* What the full cache found most probable, call token by call token. */
    int32_t *expected;
    size_t n_expected, cap_expected;
} bench;

static void free_messages(bench *b)
{
    for (size_t i = 0; i < b->n_messages; i++) {
        model_ids_free(&b->messages[i].begin);
        model_ids_free(&b->messages[i].text);
        model_ids_free(&b->messages[i].end);
        base_json_free(b->messages[i].doc);
    }
    b->n_messages = 0;
}

static void add_text(const bench *b, const char *text, model_ids *out)
{
    model_tokenizer_encode(model_get_tokenizer(b->model), text, strlen(text), false, out);
}

static void add_message(bench *b, const base_json *m)
{
    const char *role = base_json_str(m, "role", "");
    const bool is_answer = !strcmp(role, "assistant");
    const model_template *t = model_get_template(b->model);
    const model_role as = is_answer ? MODEL_ROLE_ASSISTANT : MODEL_ROLE_USER;
    base_grow(&b->messages, &b->cap_messages, b->n_messages + 1, sizeof *b->messages);
    message *to = &b->messages[b->n_messages++];
    /* The policy text counts as context: as a fixed prompt it alone would fill a quarter of the session. */
    *to = (message){.origin = is_answer               ? KV_ORIGIN_ANSWER
                              : !strcmp(role, "user") ? KV_ORIGIN_USER
                              : !strcmp(role, "tool") ? KV_ORIGIN_TOOL
                                                      : KV_ORIGIN_CONTEXT};
    model_template_begin(t, as, &to->begin);
    add_text(b, base_json_str(m, "content", ""), &to->text);
    to->call_from = (uint32_t)to->text.n;
    const base_json *call = base_json_get(base_json_at(base_json_get(m, "tool_calls"), 0), "function");
    if (is_answer && call) {
        const char *arguments = base_json_str(call, "arguments", "{}");
        base_buf text = {0};
        base_buf_printf(&text, "<tool_call>\n{\"name\": \"%s\", \"arguments\": %s}\n</tool_call>",
            base_json_str(call, "name", ""), arguments);
        add_text(b, text.data, &to->text);
        base_buf_free(&text);
        if (!base_json_parse(arguments, strlen(arguments), &to->doc, NULL))
            to->arguments = base_json_root(to->doc);
    }
    model_template_end(t, as, &to->end);
    b->n_tokens += (uint32_t)(to->begin.n + to->text.n + to->end.n);
}

/* --- what a call quotes ------------------------------------------------------------------------------------------------------------ */

static void mark_quote(
    const bench *b, const int32_t *ids, uint32_t n, const char *s, size_t len, bool *quoted)
{
    base_buf text = {0};
    uint32_t *starts = base_xmalloc(((size_t)n + 1) * sizeof *starts);
    for (uint32_t i = 0; i < n; i++) {
        size_t n_piece = 0;
        const char *piece = model_tokenizer_piece(model_get_tokenizer(b->model), ids[i], &n_piece);
        starts[i] = (uint32_t)text.len;
        if (piece) base_buf_add(&text, piece, n_piece);
    }
    starts[n] = (uint32_t)text.len;
    for (size_t at = 0; len >= LEAST_QUOTE && at + len <= text.len;) {
        const char *hit = memmem(text.data + at, text.len - at, s, len);
        if (!hit) break;
        const size_t from = (size_t)(hit - text.data);
        for (uint32_t t = 0; t < n; t++)
            if (starts[t] < from + len && starts[t + 1] > from) quoted[t] = true;
        at = from + len;
    }
    base_buf_free(&text);
    free(starts);
}

static void mark_quotes(const bench *b, const int32_t *ids, uint32_t n, const base_json *v, bool *quoted)
{
    if (v->type == BASE_JSON_STRING) mark_quote(b, ids, n, v->string, v->string_len, quoted);
    for (const base_json *child = v->first; child; child = child->next) mark_quotes(b, ids, n, child, quoted);
}

/* Of the history's rows that the call quotes, the share that is active. */
static void count_recall(const bench *b, const kv_session *s, const message *m, tally *t)
{
    kv_stats stats;
    uint32_t n = 0, n_quoted = 0;
    double active = 0;
    const int32_t *ids = kv_session_ids(s, &n);
    kv_session_get_stats(s, &stats);
    bool *quoted = base_xcalloc((size_t)n + 1, sizeof *quoted);
    uint32_t *lanes = base_xcalloc((size_t)n + 1, sizeof *lanes);
    if (m->arguments) mark_quotes(b, ids, n, m->arguments, quoted);
    kv_session_active_lanes(s, lanes);
    for (uint32_t i = 0; i < n; i++) {
        if (!quoted[i]) continue;
        n_quoted++;
        active += (double)lanes[i] / stats.n_lanes;
    }
    if (n_quoted) {
        t->recall += active / n_quoted;
        t->n_quoting++;
    }
    free(quoted);
    free(lanes);
}

/* --- replay ------------------------------------------------------------------------------------------------------------------------ */

static uint32_t first_hole(const kv_session *s)
{
    kv_stats stats;
    uint32_t n = 0, i = 0;
    kv_session_ids(s, &n);
    kv_session_get_stats(s, &stats);
    uint32_t *lanes = base_xcalloc((size_t)n + 1, sizeof *lanes);
    kv_session_active_lanes(s, lanes);
    while (i < n && lanes[i] == stats.n_lanes) i++;
    free(lanes);
    return i;
}

static int append(kv_session *s, kv_origin origin, uint32_t turn, const model_ids *ids, uint32_t from,
    uint32_t n, float *logits, tally *t, base_err *err)
{
    const kv_segment g = {.origin = origin, .turn = turn};
    kv_stats stats;
    if (!n) return 0;
    int r = kv_session_append(s, &g, ids->ids + from, n, logits, NULL, NULL, err);
    kv_session_get_stats(s, &stats);
    t->computed += n;
    t->raw += (uint64_t)n * stats.n_tokens;
    t->effective += (uint64_t)n * stats.active;
    if (stats.active_max > t->peak) t->peak = stats.active_max;
    return r;
}

/* Reads a call token by token and compares what is most probable with what the full cache said. */
static int read_call(bench *b, kv_session *s, uint32_t turn, const message *m, float *logits, bool is_full,
    size_t *at, tally *t, base_err *err)
{
    bool equal = true;
    int r = 0;
    for (uint32_t i = m->call_from; i < m->text.n && !r; i++) {
        int32_t best = 0;
        for (uint32_t v = 1; v < b->info->n_vocab; v++)
            if (logits[v] > logits[best]) best = (int32_t)v;
        if (is_full) {
            base_grow(&b->expected, &b->cap_expected, b->n_expected + 1, sizeof *b->expected);
            b->expected[b->n_expected++] = best;
        } else {
            equal = equal && *at < b->n_expected && b->expected[*at] == best;
        }
        (*at)++;
        r = append(s, KV_ORIGIN_ANSWER, turn, &m->text, i, 1, logits, t, err);
    }
    t->n_calls++;
    t->n_equal += equal;
    return r;
}

static int replay(bench *b, const char *policy, tally *t, base_err *err)
{
    const bool is_full = !strcmp(policy, "full");
    const kv_options o = {.policy = policy,
        .budget = is_full ? 0 : (uint32_t)(b->n_tokens * b->budget / 100),
        .repair = -1,
        .heads_file = b->heads};
    float *logits = malloc(b->info->n_vocab * sizeof *logits);
    kv_session *s = NULL;
    uint32_t turn = 0;
    size_t at = 0;
    int r = logits ? kv_session_new(&s, b->model, &o, NULL, err)
                   : base_fail(err, BASE_E_NOMEM, "no memory for logits");
    for (size_t i = 0; i < b->n_messages && !r; i++) {
        const message *m = &b->messages[i];
        const bool asks = m->origin == KV_ORIGIN_USER || m->origin == KV_ORIGIN_TOOL;
        uint32_t from = 0, n = 0;
        if (m->origin == KV_ORIGIN_USER) kv_session_set_turn(s, ++turn);
        /* A cache that compacted has renumbered: nothing behind the first hole is a prefix of this request. */
        kv_session_ids(s, &n);
        if (asks) t->compact += n - first_hole(s);
        r = append(s, KV_ORIGIN_SCAFFOLD, turn, &m->begin, 0, (uint32_t)m->begin.n, logits, t, err);
        kv_session_ids(s, &from);
        if (!r) r = append(s, m->origin, turn, &m->text, 0, m->call_from, logits, t, err);
        kv_session_ids(s, &n);
        if (!r && asks && n > from) r = kv_session_repair(s, from, n, NULL, 0, NULL, err);
        if (!r && m->call_from < m->text.n) {
            count_recall(b, s, m, t);
            r = read_call(b, s, turn, m, logits, is_full, &at, t, err);
        }
        if (!r) r = append(s, KV_ORIGIN_SCAFFOLD, turn, &m->end, 0, (uint32_t)m->end.n, NULL, t, err);
    }
    t->compact += t->computed;
    kv_session_free(s);
    free(logits);
    return r;
}

static void print_line(const bench *b, int64_t session, const char *policy, const tally *t)
{
    double low, high;
    bench_wilson(t->n_equal, t->n_calls, &low, &high);
    printf("{\"bench\":\"sessions\",\"model\":\"%.12s\",\"session\":%lld,\"tokens\":%u,\"policy\":\"%s\","
           "\"budget\":%lld,\"calls\":%u,"
           "\"equal\":%u,\"wilson\":[%.3f,%.3f],\"quoting\":%u,\"recall\":%.4f,\"computed\":%llu,\"computed_"
           "compact\":%llu,"
           "\"peak\":%u,\"raw_reads\":%llu,\"effective_reads\":%llu}\n",
        b->info->hash, (long long)session, b->n_tokens, policy,
        strcmp(policy, "full") ? (long long)(b->n_tokens * b->budget / 100) : 0LL, t->n_calls, t->n_equal,
        low, high, t->n_quoting, t->n_quoting ? t->recall / t->n_quoting : 0, (unsigned long long)t->computed,
        (unsigned long long)t->compact, t->peak, (unsigned long long)t->raw,
        (unsigned long long)t->effective);
    fflush(stdout);
}

static int run_session(bench *b, int64_t number, const base_json *one, base_err *err)
{
    const base_json *messages = base_json_get(one, "traj");
    b->n_tokens = 0;
    b->n_expected = 0;
    for (const base_json *m = messages ? messages->first : NULL; m; m = m->next) add_message(b, m);
    int r = 0;
    if (b->n_tokens > b->most || b->n_tokens * b->budget / 100 < 600) {
        fprintf(stderr, "session %lld: %u tokens, left out\n", (long long)number, b->n_tokens);
        free_messages(b);
        return 0;
    }
    char list[256];
    snprintf(list, sizeof list, "full,%s", b->policies);
    for (char *next = list, *policy; !r && (policy = strsep(&next, ","));) {
        tally t = {.n_calls = 0};
        if (!*policy) continue;
        r = replay(b, policy, &t, err);
        if (!r) print_line(b, number, policy, &t);
    }
    free_messages(b);
    return r;
}

static int run(bench *b, base_err *err)
{
    char *path = NULL;
    base_buf file = {0};
    base_json_doc *doc = NULL;
    int r = base_fs_read(b->file, FILE_MOST, &file, err);
    if (!r) r = base_json_parse(file.data ? file.data : "", file.len, &doc, err);
    if (!r) r = options_model_path(&b->common, &path, err);
    if (!r)
        r = model_open(&b->model, path,
            &(model_options){.n_threads = (int)b->common.threads, .backend = b->common.backend}, err);
    if (!r) {
        b->info = model_get_info(b->model);
        b->heads = kv_heads_path(b->info->hash);
    }
    const base_json *root = doc ? base_json_root(doc) : NULL;
    for (int64_t i = b->first; i < b->first + b->sessions && !r; i++) {
        const base_json *one = base_json_at(root, (size_t)i);
        if (!one) break;
        r = run_session(b, i, one, err);
    }
    base_json_free(doc);
    base_buf_free(&file);
    free(path);
    return r;
}

int cmd_bench_sessions(int argc, char **argv)
{
    bench b = {.common = COMMON_OPTIONS_DEFAULTS,
        .sessions = 3,
        .budget = 25,
        .most = 8000,
        .policies = "streaming-llm,snapkv,h2o,intentkv,kvist"};
    const option_row own[] = {
        {"--file", OPTION_TEXT, &b.file},
        {"--policies", OPTION_TEXT, &b.policies},
        {"--sessions", OPTION_INTEGER, &b.sessions},
        {"--first", OPTION_INTEGER, &b.first},
        {"--budget", OPTION_INTEGER, &b.budget},
        {"--most", OPTION_INTEGER, &b.most},
        {"--help", OPTION_FLAG, &b.help},
        {.name = NULL},
    };
    base_err err = {0};
    int r = options_parse(argc, argv, &b.common, own, NULL, NULL, &err);
    if (!r && b.help) {
        fputs(usage, stdout);
        fputs(options_help, stdout);
        return CMD_OK;
    }
    if (!r && (!b.file || b.sessions < 1 || b.first < 0 || b.budget < 1 || b.budget > 100 || b.most < 1 ||
                  strlen(b.policies) > 200))
        r = base_fail(&err, BASE_E_USAGE, "--file names the sessions, --budget is 1 to 100 percent");
    if (!r) r = run(&b, &err);
    free(b.messages);
    free(b.expected);
    free(b.heads);
    model_close(b.model);
    return r ? cmd_complain(&err) : CMD_OK;
}
