/*
 * kvist-bench lookup: what prompt lookup gains where an answer copies, and what it costs where it does not.
 * Each request is read once and answered with lookup and without, in turn, from the same rows; every answer
 * starts with nothing learned. The texts must be the same token for token, or the bench fails.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/engine/engine.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "bench/bench.h"

enum { MAX_ANSWER = 1024, MAX_REPEAT = 20 };

static const char usage[] =
    "usage: kvist-bench lookup [--workload NAME | --file FILE --request TEXT] [--repeat N] [--max-tokens N]\n"
    "                          [--json]\n"
    "\n"
    "Decodes answers with prompt lookup and without, in "
    "turn: the rewrite of a function of 60 lines with one\n"
    "change, and ordinary questions; or TEXT about the contents of FILE.\n"
    "\n"
    "  --workload NAME  only rewrite, explain, question or write\n"
    "  --repeat N       pairs of answers (3)\n"
    "  --max-tokens N   longest answer (640)\n"
    "\n";

static const char function_text[] = "int table_read(table *t, const char *text, size_t n)\n"
                                    "{\n"
                                    "    size_t at = 0, line = 1;\n"
                                    "    t->n_rows = 0;\n"
                                    "    t->n_columns = 0;\n"
                                    "    while (at < n) {\n"
                                    "        size_t end = at;\n"
                                    "        while (end < n && text[end] != '\\n')\n"
                                    "            end++;\n"
                                    "        if (end == at || text[at] == '#') {\n"
                                    "            at = end + 1;\n"
                                    "            line++;\n"
                                    "            continue;\n"
                                    "        }\n"
                                    "        uint32_t column = 0;\n"
                                    "        size_t from = at;\n"
                                    "        bool quoted = false;\n"
                                    "        for (size_t i = at; i <= end; i++) {\n"
                                    "            char c = i < end ? text[i] : ',';\n"
                                    "            if (c == '\"') {\n"
                                    "                quoted = !quoted;\n"
                                    "                continue;\n"
                                    "            }\n"
                                    "            if (c != ',' || quoted)\n"
                                    "                continue;\n"
                                    "            if (column == 16) {\n"
                                    "                table_error(t, line, \"too many columns\");\n"
                                    "                return -1;\n"
                                    "            }\n"
                                    "            size_t first = from, last = i;\n"
                                    "            while (first < last && text[first] == ' ')\n"
                                    "                first++;\n"
                                    "            while (last > first && text[last - 1] == ' ')\n"
                                    "                last--;\n"
                                    "            cell *to = table_cell(t, t->n_rows, column);\n"
                                    "            if (!to) {\n"
                                    "                table_error(t, line, \"no memory\");\n"
                                    "                return -1;\n"
                                    "            }\n"
                                    "            to->text = text + first;\n"
                                    "            to->length = last - first;\n"
                                    "            to->line = line;\n"
                                    "            column++;\n"
                                    "            from = i + 1;\n"
                                    "        }\n"
                                    "        if (quoted) {\n"
                                    "            table_error(t, line, \"a quote is not closed\");\n"
                                    "            return -1;\n"
                                    "        }\n"
                                    "        if (t->n_rows && column != t->n_columns) {\n"
                                    "            table_error(t, line, \"another number of columns\");\n"
                                    "            return -1;\n"
                                    "        }\n"
                                    "        t->n_columns = column;\n"
                                    "        t->n_rows++;\n"
                                    "        at = end + 1;\n"
                                    "        line++;\n"
                                    "    }\n"
                                    "    return 0;\n"
                                    "}\n";

static const struct workload {
    const char *name, *request;
    bool has_function;
} workloads[] = {
    {"rewrite",
        "Rewrite the function with one change: it allows 32 columns, not 16. Answer with the whole function "
        "in one fenced block and nothing else.",
        true},
    {"explain", "Explain what this function does with quotes, in a few sentences.", true},
    {"question", "What is a hash map, and when is a balanced tree the better choice?", false},
    {"write", "Write a Python function that merges two sorted lists, and say how it works.", false},
};

typedef struct bench {
    common_options common;
    int64_t repeat, max_tokens;
    const char *file, *request, *workload;
    bool json;
    engine *engine;
    int32_t *answers[2]; /* [max_tokens] */
} bench;

typedef struct run {
    uint32_t n; /* tokens */
    double seconds[MAX_REPEAT];
    uint64_t drafted, accepted;
} run;

static int append(bench *b, kv_origin origin, model_ids *ids, base_err *err)
{
    int rc = b->engine->ops->append(
        b->engine, &(kv_segment){.origin = origin, .turn = 1}, ids->ids, (uint32_t)ids->n, err);
    ids->n = 0;
    return rc;
}

static int append_request(bench *b, const char *text, const char *request, base_err *err)
{
    const engine_ops *o = b->engine->ops;
    model_ids ids = {0};
    base_buf message = {0};
    if (text) base_buf_printf(&message, "```\n%s```\n\n", text);
    base_buf_puts(&message, request);
    int rc = o->scaffold(b->engine, ENGINE_START, MODEL_ROLE_USER, &ids, err);
    if (!rc) rc = o->scaffold(b->engine, ENGINE_BEGIN, MODEL_ROLE_USER, &ids, err);
    if (!rc) rc = append(b, KV_ORIGIN_SCAFFOLD, &ids, err);
    if (!rc) rc = o->encode(b->engine, message.data, message.len, &ids, err);
    if (!rc) rc = append(b, KV_ORIGIN_USER, &ids, err);
    if (!rc) rc = o->scaffold(b->engine, ENGINE_END, MODEL_ROLE_USER, &ids, err);
    if (!rc) rc = o->scaffold(b->engine, ENGINE_BEGIN, MODEL_ROLE_ASSISTANT, &ids, err);
    if (!rc) rc = append(b, KV_ORIGIN_SCAFFOLD, &ids, err);
    base_buf_free(&message);
    model_ids_free(&ids);
    return rc;
}

static int answer(bench *b, bool lookup, run *r, uint32_t repeat, base_err *err)
{
    const engine_ops *o = b->engine->ops;
    int32_t *ids = b->answers[lookup];
    bool end = false;
    uint32_t n = 0;
    int rc = 0;
    o->set_lookup(b->engine, lookup);
    o->answer_begins(b->engine);
    uint64_t start = base_clock_ns();
    for (; !rc && !end && n < b->max_tokens; n++)
        rc = o->next(b->engine, KV_ORIGIN_ANSWER, 1, &ids[n], &end, NULL, err);
    r->seconds[repeat] = (double)(base_clock_ns() - start) / 1e9;
    if (lookup) o->lookup(b->engine, &r->drafted, &r->accepted);
    r->n = n;
    return rc;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_speed(run *r, size_t n)
{
    qsort(r->seconds, n, sizeof *r->seconds, compare);
    return r->n / (n % 2 ? r->seconds[n / 2] : (r->seconds[n / 2 - 1] + r->seconds[n / 2]) / 2);
}

static int run_workload(bench *b, const char *name, const char *text, const char *request, base_err *err)
{
    run runs[2] = {0};
    uint32_t n_prompt;
    int rc = b->engine->ops->restart(b->engine, NULL, err);
    if (!rc) rc = append_request(b, text, request, err);
    b->engine->ops->ids(b->engine, &n_prompt);
    bool same = true;
    for (uint32_t i = 0; !rc && i < b->repeat; i++)
        for (int lookup = 0; lookup < 2 && !rc; lookup++) {
            rc = answer(b, lookup, &runs[lookup], i, err);
            if (!rc) rc = b->engine->ops->truncate(b->engine, n_prompt, err);
        }
    if (rc) return rc;
    same = runs[0].n == runs[1].n && !memcmp(b->answers[0], b->answers[1], runs[0].n * sizeof(int32_t));
    double off = median_speed(&runs[0], (size_t)b->repeat), on = median_speed(&runs[1], (size_t)b->repeat);
    printf(b->json ? "{\"workload\":\"%s\",\"prompt\":%u,\"tokens\":%u,\"off_tps\":%.2f,\"on_tps\":%.2f,"
                     "\"ratio\":%.3f,\"drafted\":%llu,\"accepted\":%llu,\"same\":%s}\n"
                   : "%-9s prompt %4u  answer %4u  off %6.2f tokens/s  on %6.2f  ratio %.2f  drafted %llu, "
                     "accepted %llu  same text: %s\n",
        name, n_prompt, runs[0].n, off, on, on / off, (unsigned long long)runs[1].drafted,
        (unsigned long long)runs[1].accepted,
        b->json ? same ? "true" : "false"
        : same  ? "yes"
                : "NO");
    fflush(stdout);
    return same ? 0 : base_fail(err, BASE_E_STATE, "%s: the text with lookup is another one", name);
}

static int budget_of(
    const void *user, uint32_t n_ctx, uint32_t row_bytes, kv_limit measured, kv_limit *ret, base_err *err)
{
    return options_budget(user, n_ctx, row_bytes, measured, ret, err);
}

static int measure(bench *b, base_err *err)
{
    char *path = NULL;
    base_buf text = {0};
    engine_options options = {
        .model = options_to_model(&b->common),
        .kv = {.policy = b->common.policy, .set = b->common.n_set ? b->common.set : NULL},
        .sampling = b->common.sampling,
        .budget = budget_of,
        .budget_user = &b->common,
    };
    options.model.notice = cmd_notice;
    options.kv.repair = options_repair(&b->common);
    int rc = options_model_path(&b->common, &path, err);
    if (!rc && b->file) rc = base_fs_read(b->file, 1 << 20, &text, err);
    if (!rc) rc = engine_local_open(&b->engine, path, &options, NULL, NULL, err);
    for (int i = 0; i < 2; i++) b->answers[i] = base_xcalloc((size_t)b->max_tokens + 1, sizeof(int32_t));
    if (!rc && b->file) rc = run_workload(b, "file", text.data ? text.data : "", b->request, err);
    for (size_t i = 0; !rc && !b->file && i < sizeof workloads / sizeof *workloads; i++) {
        if (b->workload && strcmp(b->workload, workloads[i].name)) continue;
        rc = run_workload(b, workloads[i].name, workloads[i].has_function ? function_text : NULL,
            workloads[i].request, err);
    }
    if (b->engine) b->engine->ops->close(b->engine);
    for (int i = 0; i < 2; i++) free(b->answers[i]);
    base_buf_free(&text);
    free(path);
    return rc;
}

int bench_lookup(int argc, char **argv)
{
    bench b = {.common = COMMON_OPTIONS_DEFAULTS, .repeat = 3, .max_tokens = 640};
    const option_row own[] = {{"--file", OPTION_TEXT, &b.file}, {"--request", OPTION_TEXT, &b.request},
        {"--workload", OPTION_TEXT, &b.workload},
        {"--repeat", OPTION_INTEGER, &b.repeat, .bounds = {1, MAX_REPEAT}},
        {"--max-tokens", OPTION_INTEGER, &b.max_tokens, .bounds = {1, MAX_ANSWER}},
        {"--json", OPTION_FLAG, &b.json}, {0}};
    base_err err = {0};
    int code;
    if (!cmd_begin(argc, argv, &b.common, own, &(cmd_words){.usage = usage}, &code)) return code;
    if (!code && !b.file != !b.request)
        code = base_fail(&err, BASE_E_USAGE, "--file and --request belong together");
    if (!code && (b.common.threads < 0 || b.common.threads > 64))
        code = base_fail(&err, BASE_E_USAGE, "--threads is 1 to 64");
    if (!code) code = measure(&b, &err);
    return code ? cmd_complain(&err) : CMD_OK;
}
