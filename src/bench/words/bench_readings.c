/*
 * kvist-bench readings: what requests may mean, each reading with its signs and what the model says of it (src/agent/turn/readings.h).
 * Requests come on standard input, a JSON object a line; a line of JSON comes out for each. scripts/fit-readings makes the lines and
 * fits the weights of src/agent/turn/readings_weight.c to them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/start.h"
#include "agent/turn/readings.h"
#include "agent/turn/turn.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "bench/bench.h"

static const char usage[] =
    "usage: kvist-bench readings --model M --dir TREE\n"
    "\n"
    "  --dir TREE        what the requests are about\n"
    "\n"
    "Standard input: {\"text\": REQUEST, \"known\": {CALL: LOG_P, ...}} a line; what is known is not asked of the model.\n"
    "\n";

/* Nats: what lies so far behind the likeliest has no say in the fit. */
enum { MARGIN = 2 };

typedef struct bench {
    common_options common;
    const char *dir, *fake_script;
    atomic_bool cancel;
    agent *agent;
} bench;

static void on_event(void *user, const agent_event *e)
{
    (void)user;
    (void)e;
}

static agent_decision on_approve(void *user, const agent_event *request)
{
    (void)user;
    (void)request;
    return (agent_decision){.answer = AGENT_NO};
}

static void put_reading(base_buf *out, const agent_reading *one)
{
    base_buf_puts(out, "{\"kind\":");
    const char *word = agent__reading_word(one->kind);
    base_json_put_str(out, word, strlen(word));
    base_json_put_member_str(out, "call", one->call);
    base_buf_puts(out, ",\"signs\":[");
    for (int i = 0; i < AGENT_N_SIGNS; i++) base_buf_printf(out, "%s%u", i ? "," : "", one->signs[i]);
    base_buf_printf(out, "],\"is_weighed\":%s,\"log_p\":%.4f,\"weight\":%.4f}",
        one->is_weighed ? "true" : "false", one->log_p, one->weight);
}

static int read_request(bench *b, const base_json *line, base_err *err)
{
    const char *text = base_json_str(line, "text", "");
    const base_json *known = base_json_get(line, "known");
    agent *a = b->agent;
    agent_readings r;
    base_buf said = {0}, out = {0};
    char *mended = agent__mend_spelling(a, text);
    if (mended) text = mended;
    free(a->request);
    a->request = base_xstrdup(text);
    const uint64_t start = base_clock_ns();
    const bool is_other = agent__read_signs(a, text, &r, &said);
    const uint64_t found = base_clock_ns();
    for (uint32_t i = 0; i < r.n; i++) {
        const base_json *log_p = base_json_get(known, r.all[i].call);
        r.all[i].is_weighed = log_p != NULL;
        if (r.all[i].is_weighed) r.all[i].log_p = log_p->number;
    }
    const int rc = r.n ? agent__weigh_readings(a, text, MARGIN, &r, err) : 0;
    base_buf_printf(&out,
        "{\"ms_found\":%.1f,\"ms_weighed\":%.1f,\"is_other\":%s,\"said\":", (double)(found - start) / 1e6,
        (double)(base_clock_ns() - found) / 1e6, is_other ? "true" : "false");
    base_json_put_str(&out, said.data ? said.data : "", said.len);
    base_json_put_member_str(&out, "mended", mended ? mended : "");
    base_buf_puts(&out, ",\"readings\":[");
    for (uint32_t i = 0; i < r.n; i++) {
        if (i) base_buf_putc(&out, ',');
        put_reading(&out, &r.all[i]);
    }
    if (!rc) printf("%s]}\n", out.data);
    fflush(stdout);
    agent__readings_free(&r);
    base_buf_free(&said);
    base_buf_free(&out);
    free(mended);
    return rc;
}

static int read_requests(bench *b, base_err *err)
{
    char *line = NULL;
    size_t cap = 0;
    int rc = 0;
    for (ssize_t n; !rc && (n = getline(&line, &cap, stdin)) > 0;) {
        base_json_doc *doc = NULL;
        rc = base_json_parse(line, (size_t)n, &doc, err);
        if (!rc) rc = read_request(b, base_json_root(doc), err);
        base_json_free(doc);
    }
    free(line);
    return rc;
}

static int budget_of(
    const void *user, uint32_t n_ctx, uint32_t row_bytes, kv_limit measured, kv_limit *ret, base_err *err)
{
    return options_budget(user, n_ctx, row_bytes, measured, ret, err);
}

static int measure(bench *b, base_err *err)
{
    const common_options *o = &b->common;
    char *model_path = NULL;
    agent_session *opened = NULL;
    int rc = b->fake_script ? 0 : options_model_path(o, &model_path, err);
    agent_session_options options = {.dir = b->dir,
        .model_path = model_path,
        .fake_script = b->fake_script,
        .ephemeral = true,
        .mode = AGENT_MODE_ALL,
        .model = options_to_model(o),
        .kv = {.policy = o->policy, .n_ctx = (uint32_t)o->ctx, .repair = options_repair(o)},
        .sampling = o->sampling,
        .budget = budget_of,
        .budget_user = o,
        .keep_budget = !o->budget};
    if (!rc)
        rc = agent_session_open(&opened, &options,
            &(agent_host){.user = b, .event = on_event, .approve = on_approve}, &b->cancel, err);
    if (!rc) {
        b->agent = agent_session_agent(opened);
        rc = read_requests(b, err);
    }
    agent_session_close(opened);
    free(model_path);
    return rc;
}

int bench_readings(int argc, char **argv)
{
    bench b = {.common = COMMON_OPTIONS_DEFAULTS};
    const option_row own[] = {
        {"--dir", OPTION_TEXT, &b.dir}, {"--fake-script", OPTION_TEXT, &b.fake_script}, {0}};
    base_err err = {0};
    int code;
    if (!cmd_begin(argc, argv, &b.common, own, &(cmd_words){.usage = usage}, &code)) return code;
    if (!code && !b.dir) code = base_fail(&err, BASE_E_USAGE, "--dir names the tree");
    if (!code) code = measure(&b, &err);
    return code ? cmd_complain(&err) : CMD_OK;
}
