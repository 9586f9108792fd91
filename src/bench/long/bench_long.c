/*
 * kvist-bench long: whole agent sessions end to end, as the program ships and under other settings, by turns.
 * A session of a set (tests/session_sets, made by scripts/make-long-sets) is a tree and a list of requests. Each is
 * submitted to an agent as a person's line is; behind it comes the idle time that a person reading would leave.
 * A line a turn says where the time went, what was computed and read, and whether the answer is right.
 *
 * An agent's session is saved behind every turn, so a run that ended goes on at the next turn of that session.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/start.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "bench/bench.h"
#include "bench/common/peak_memory.h"
#include "bench/common/result_file.h"
#include "bench/long/long_result.h"
#include "bench/long/long_set.h"
#include "bench/long/long_tree.h"
#include "bench/long/long_turn.h"
#include "kv/core/compute.h"

static const char usage[] =
    "usage: kvist-bench long --set FILE --work DIR --data "
    "DIR [--arms ARM,...] [--sessions ID,...] [--steps N]\n"
    "                        [--seconds N] [--out FILE [--resume]]\n"
    "       kvist-bench long --summary FILE\n"
    "\n"
    "  --set FILE          sessions, a JSON object a line (tests/session_sets)\n"
    "  --work DIR          for trees, logs and rows, made "
    "if it is not there; the next call goes on with them\n"
    "  --data DIR          repositories and programs (repos/NAME.bundle, quixbugs)\n"
    "  --arms ARM,...      POLICY[@BUDGET][:NAME=VALUE...] (full,kvist): kvist alone is what ships\n"
    "  --sessions ID,...   those that begin so (all)\n"
    "  --steps N           no turn behind the first N of a "
    "session (all); such a session is not in the summary\n"
    "  --seconds N         begin no turn after so long (no limit)\n"
    "  --out FILE          a line a turn; --resume: FILE may exist, what it has is not run again\n"
    "  --summary FILE      no model: the tables of such a file\n"
    "\n";

enum { ARMS_MOST = 8, SETS_MOST = 8, TEXT_MOST = 96, SET_MOST = 16 << 20 };

/* A setting of the cache under which every session is run. */
typedef struct arm {
    char name[TEXT_MOST];  /* as it was written */
    char parts[TEXT_MOST]; /* what the options point into: an arm is not copied */
    common_options options;
} arm;

typedef struct bench {
    common_options common;
    const char *set, *work, *data, *arms_text, *sessions, *out_path, *summary, *fake_script;
    int64_t steps, seconds;
    bool resume;
    arm arms[ARMS_MOST];
    uint32_t n_arms;
    char *model_path, model_hash[13];
    FILE *out;
    base_buf done; /* whole lines of --out as it was */
    uint64_t start;
} bench;

/* One session under one arm. */
typedef struct run {
    bench *b;
    const arm *arm;
    const base_json *session;
    const char *id;
    char *tree, *resume; /* resume: the agent's session; NULL: it begins */
    uint32_t n_steps, next;
    agent_session *opened;
    agent *agent;
    atomic_bool cancel;
    long_turn turn;
} run;

/* --- arms ----------------------------------------------------------------------------------------------- */

static int set_arm(bench *b, const char *text, base_err *err)
{
    if (b->n_arms == ARMS_MOST)
        return base_fail(err, BASE_E_USAGE, "at most %d arms are compared", ARMS_MOST);
    arm *a = &b->arms[b->n_arms++];
    if (strlen(text) >= sizeof a->name) return base_fail(err, BASE_E_USAGE, "--arms: %s is too long", text);
    strcpy(a->name, text);
    strcpy(a->parts, text);
    a->options = b->common;
    char *left = a->parts, *policy = strsep(&left, ":"), *budget = strchr(policy, '@');
    if (budget) {
        *budget++ = 0;
        a->options.budget = budget;
    }
    a->options.policy = policy;
    for (char *word; (word = strsep(&left, ":"));) {
        if (a->options.n_set + 1 >= sizeof a->options.set / sizeof *a->options.set)
            return base_fail(err, BASE_E_USAGE, "--arms: %s sets too much", text);
        a->options.set[a->options.n_set++] = word;
    }
    kv_limit limit;
    return options_budget(
        &a->options, 32768, 1 << 15, (kv_limit){0}, &limit, err); /* a typo is told before a model loads */
}

static int set_arms(bench *b, base_err *err)
{
    char *text = base_xstrdup(b->arms_text), *left = text;
    int rc = 0;
    for (char *word; !rc && (word = strsep(&left, ","));)
        if (*word) rc = set_arm(b, word, err);
    free(text);
    if (!rc && !b->n_arms) rc = base_fail(err, BASE_E_USAGE, "--arms names none");
    return rc;
}

static int budget_of(
    const void *user, uint32_t n_ctx, uint32_t row_bytes, kv_limit measured, kv_limit *ret, base_err *err)
{
    return options_budget(user, n_ctx, row_bytes, measured, ret, err);
}

/* --- a session ------------------------------------------------------------------------------------------ */

static void on_event(void *user, const agent_event *e)
{
    run *r = user;
    long_turn_event(&r->turn, e, base_clock_ns());
}

/* Whatever is asked, a person would say yes to: the bench's own tree, its own requests. */
static agent_decision on_approve(void *user, const agent_event *request)
{
    (void)user;
    (void)request;
    return (agent_decision){.answer = AGENT_YES};
}

static int open_agent(run *r, base_err *err)
{
    const bench *b = r->b;
    const common_options *o = &r->arm->options;
    agent_session_options options = {.dir = r->tree,
        .model_path = b->model_path,
        .fake_script = b->fake_script,
        .resume = r->resume,
        .mode = AGENT_MODE_PLAN,
        .model = options_to_model(o),
        .kv = {.policy = o->policy, .set = o->n_set ? o->set : NULL, .n_ctx = (uint32_t)o->ctx},
        .sampling = o->sampling,
        .budget = budget_of,
        .budget_user = o,
        .keep_budget = !o->budget,
        .context_tokens = base_json_bool(r->session, "retrieval", false) ? 0 : UINT32_MAX,
        .tries = AGENT_TRIES_BY_MODE};
    const char *mode = base_json_str(r->session, "mode", "plan");
    if (!agent_mode_parse(mode, &options.mode))
        return base_fail(err, BASE_E_FORMAT, "%s: no such mode: %s", r->id, mode);
    options.lookup = options_lookup(o);
    options.kv.repair = options_repair(o);
    int rc = agent_session_open(&r->opened, &options,
        &(agent_host){.user = r, .event = on_event, .approve = on_approve}, &r->cancel, err);
    if (!rc) r->agent = agent_session_agent(r->opened);
    return rc;
}

static void print_line(
    const run *r, const base_json *step, bool asked, bool right, const kv_stats *before, double rows)
{
    const long_turn *t = &r->turn;
    kv_stats s;
    base_buf line = {0};
    agent_get_stats(r->agent, &s);
    base_buf_printf(&line,
        "{\"bench\":\"long\",\"model\":\"%s\",\"kind\":\"%s\",\"session\":\"%s\",\"arm\":\"%s\","
        "\"id\":\"%s\",\"step\":%u,\"of\":%u,\"fact\":\"%s\",\"asked\":%s,\"right\":%s,\"failed\":%s,",
        r->b->model_hash, base_json_str(r->session, "kind", ""), r->id, r->arm->name,
        agent_session_id(r->agent), r->next, r->n_steps, base_json_str(step, "fact", ""),
        asked ? "true" : "false", right ? "true" : "false", t->failed ? "true" : "false");
    base_buf_puts(&line, "\"seconds\":{");
    for (int p = 0; p < LONG_N_PARTS; p++)
        base_buf_printf(&line, "%s\"%s\":%.3f", p ? "," : "", long_part_words[p], (double)t->ns[p] / 1e9);
    base_buf_printf(&line,
        "},\"new\":%lld,\"generated\":%lld,\"computed\":%u,\"rows\":%.0f,\"n\":%u,\"active\":%u,"
        "\"host\":%u,\"budget\":%u,\"evicted\":%lld,\"promoted\":%lld,\"calls\":%u,\"peak_mb\":%.0f,"
        "\"answer\":",
        (long long)t->added, (long long)t->generated, s.computed - before->computed, rows, s.n_tokens,
        s.active, s.host, s.budget, (long long)t->evicted, (long long)t->promoted, t->n_calls,
        bench_peak_mb());
    base_json_put_str(&line, t->answer.data ? t->answer.data : "", t->answer.len);
    fprintf(r->b->out, "%s}\n", line.data);
    fflush(r->b->out);
    base_buf_free(&line);
}

static int run_step(run *r, const base_json *step, base_err *err)
{
    const char *say = base_json_str(step, "say", ""), *command = base_json_str(step, "run", NULL);
    kv_stats before;
    agent_get_stats(r->agent, &before);
    const uint64_t rows = kv_rows_read();
    long_turn_begin(&r->turn, base_clock_ns());
    base_err told = {0};
    if (agent_submit(r->agent, say, &told)) fprintf(stderr, "%s, %s: %s\n", r->id, r->arm->name, told.msg);
    long_turn_end(&r->turn, base_clock_ns());
    const uint64_t start = base_clock_ns();
    agent_settle(r->agent);
    agent_idle(r->agent, NULL, NULL);
    r->turn.ns[LONG_IDLE] = base_clock_ns() - start;
    const double read = (double)(kv_rows_read() - rows) / (before.n_lanes ? before.n_lanes : 1);
    const bool asked = command || base_json_get(step, "all") || base_json_get(step, "any");
    int status = 1, rc = command ? long_tree_run(r->tree, command, &status, err) : 0;
    const bool right =
        command ? status == 0 : long_is_right(step, r->turn.answer.data ? r->turn.answer.data : "");
    if (!rc) print_line(r, step, asked, asked && right, &before, read);
    fprintf(stderr, "%s, %s: turn %u of %u, %s\n", r->id, r->arm->name, r->next + 1, r->n_steps,
        !asked  ? "read"
        : right ? "right"
                : "wrong");
    long_turn_free(&r->turn);
    return rc;
}

static bool is_late(const bench *b)
{
    return b->seconds && base_clock_ns() - b->start > (uint64_t)b->seconds * 1000000000u;
}

static int run_steps(run *r, base_err *err)
{
    const base_json *steps = base_json_get(r->session, "steps");
    const uint32_t end = r->b->steps && r->b->steps < r->n_steps ? (uint32_t)r->b->steps : r->n_steps;
    if (r->next >= end || is_late(r->b)) return 0;
    int rc = 0;
    if (!r->next)
        rc = long_tree_make(r->b->data, base_json_str(r->session, "repo", ""),
            base_json_str(r->session, "commit", NULL), r->tree, err);
    bench_forget_peak();
    if (!rc) rc = open_agent(r, err);
    for (; !rc && r->next < end && !is_late(r->b); r->next++)
        rc = run_step(r, base_json_at(steps, r->next), err);
    agent_session_close(r->opened);
    return rc;
}

static int run_arm(bench *b, const base_json *session, const arm *a, base_err *err)
{
    run r = {.b = b, .arm = a, .session = session, .id = base_json_str(session, "id", "")};
    base_buf tree = {0};
    const base_json *steps = base_json_get(session, "steps");
    r.n_steps = steps ? (uint32_t)steps->n : 0;
    r.next = long_result_next(&b->done, b->model_hash, r.id, a->name, &r.resume);
    base_buf_printf(&tree, "%s/trees/%s %s", b->work, r.id, a->name);
    r.tree = tree.data;
    const int rc = run_steps(&r, err);
    base_buf_free(&tree);
    free(r.resume);
    return rc ? base_err_prefix(err, r.id) : 0;
}

/* --- all of them ---------------------------------------------------------------------------------------- */

/* The arm that begins takes turns too: what the machine does meanwhile falls on all alike. */
static int run_arms(void *user, const base_json *session, uint32_t number, base_err *err)
{
    bench *b = user;
    int rc = 0;
    for (uint32_t i = 0; !rc && i < b->n_arms; i++)
        rc = run_arm(b, session, &b->arms[(number + i) % b->n_arms], err);
    return rc;
}

/* Logs, rows and calibrated heads of the bench are its own; the grammars stay where they are. */
static int move_home(const bench *b, base_err *err)
{
    base_buf home = {0};
    char *grammars = base_fs_home(BASE_HOME_DATA, "grammars"), *folder = NULL;
    int rc = base_fs_mkdirs(b->work, err);
    if (!rc && !(folder = realpath(b->work, NULL))) rc = base_fail_sys(err, "cannot find %s", b->work);
    base_buf_printf(&home, "%s/home", folder ? folder : "");
    if (!rc && (setenv("KVIST_GRAMMAR_PATH", grammars, 0) || setenv("KVIST_HOME", home.data, 1)))
        rc = base_fail_sys(err, "cannot set the environment");
    base_buf_free(&home);
    free(folder);
    free(grammars);
    return rc;
}

static int take_hash(bench *b, base_err *err)
{
    if (b->fake_script) {
        strcpy(b->model_hash, "fake");
        return 0;
    }
    model_options options = options_to_model(&b->common);
    model *m = NULL;
    options.notice = cmd_notice;
    const int rc = model_open(&m, b->model_path, &options, err);
    if (!rc) memcpy(b->model_hash, model_get_info(m)->hash, sizeof b->model_hash - 1);
    if (!rc) model_close(m);
    return rc;
}

static int measure(bench *b, base_err *err)
{
    base_buf set = {0};
    b->start = base_clock_ns();
    int rc = set_arms(b, err);
    if (!rc) rc = base_fs_read(b->set, SET_MOST, &set, err);
    if (!rc && !b->fake_script) rc = options_model_path(&b->common, &b->model_path, err);
    if (!rc) rc = move_home(b, err);
    if (!rc) rc = take_hash(b, err);
    if (!rc) rc = bench_open_out(&b->out, b->out_path, b->resume, &b->done, err);
    if (!rc) rc = long_set_each(b->set, &set, b->sessions, run_arms, b, err);
    if (b->out && b->out != stdout) fclose(b->out);
    base_buf_free(&set);
    base_buf_free(&b->done);
    free(b->model_path);
    return rc;
}

static int summarise(const char *path, base_err *err)
{
    base_buf lines = {0};
    const int rc = base_fs_read(path, SET_MOST, &lines, err);
    if (!rc) long_summarise(&lines, stdout);
    base_buf_free(&lines);
    return rc;
}

int bench_long(int argc, char **argv)
{
    bench b = {.common = COMMON_OPTIONS_DEFAULTS, .arms_text = "full,kvist"};
    const option_row own[] = {{"--set", OPTION_TEXT, &b.set}, {"--work", OPTION_TEXT, &b.work},
        {"--data", OPTION_TEXT, &b.data}, {"--arms", OPTION_TEXT, &b.arms_text},
        {"--sessions", OPTION_TEXT, &b.sessions}, {"--steps", OPTION_INTEGER, &b.steps},
        {"--seconds", OPTION_INTEGER, &b.seconds}, {"--out", OPTION_TEXT, &b.out_path},
        {"--resume", OPTION_FLAG, &b.resume}, {"--summary", OPTION_TEXT, &b.summary},
        {"--fake-script", OPTION_TEXT, &b.fake_script}, {0}};
    base_err err = {0};
    int code;
    if (!cmd_begin(argc, argv, &b.common, own, &(cmd_words){.usage = usage}, &code)) return code;
    if (!code && !b.summary && !(b.set && b.work && b.data))
        code = base_fail(&err, BASE_E_USAGE, "--set, --work and --data belong together (or --summary FILE)");
    if (!code && (b.steps < 0 || b.seconds < 0))
        code = base_fail(&err, BASE_E_USAGE, "--steps and --seconds are not negative");
    if (!code) code = b.summary ? summarise(b.summary, &err) : measure(&b, &err);
    return code ? cmd_complain(&err) : CMD_OK;
}
