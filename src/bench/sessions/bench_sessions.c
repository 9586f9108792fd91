/*
 * kvist-bench sessions: recorded tool sessions (tau-bench's trajectories) replayed under each policy at a
 * share of their peak. What was said is given, word for word. Where the recorded agent calls a tool the full
 * cache writes a call of its own, token by token what is most probable, so does a policy's session, and it is
 * asked whether they are equal (as JSON, spaces do not count); and how many of the history's rows that the
 * recorded call's arguments quote are active. The session goes on with the recorded call. Messages as tokens:
 * bench/sessions/transcript.h; what is counted: bench/sessions/tally.h; here are the policies, the replay and
 * the command.
 *
 * Beside it what each layout costs (IntentKV, section 4.1 and appendix E), in place as it ran, and compact as
 * it follows from the same evictions: a cache that moves the rows it keeps has no prefix in common with the
 * next request behind its first hole, so at each message everything from there on is computed again, over all
 * of it, before the rows are chosen anew. raw: rows in the sequence, effective: rows read, both added up over
 * computed tokens; peak: of the sequence; live: of a lane's rows, at their most.
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
#include "bench/common/document.h"
#include "bench/common/result_file.h"
#include "bench/common/statistics.h"
#include "bench/sessions/called_functions.h"
#include "bench/sessions/sessions_result.h"
#include "bench/sessions/tally.h"
#include "kv/repair/heads.h"

static const char usage[] =
    "usage: kvist-bench sessions --model M --file FILE.json [--sessions N] [--first N] [--budget PERCENT]\n"
    "                            [--policies NAME[:SET=VALUE...],...] "
    "[--most TOKENS] [--out FILE [--resume]]\n"
    "       kvist-bench sessions --summary FILE\n"
    "\n"
    "  --file FILE          trajectories: an array of {\"traj\":[{role, content, tool_calls}]}\n"
    "  --sessions N         how many (3); --first N: from which on (0)\n"
    "  --quotes             only which rows a call quotes are active; every policy is a late one\n"
    "  --budget PERCENT,... rows per lane, of the session's length (25)\n"
    "  --policies NAME,...  (streaming-llm,snapkv,h2o,intentkv:mode=query,intentkv,kvist); "
    "the full cache comes first\n"
    "                       NAME:repair=off: without repairs\n"
    "                       late NAME: rows are computed "
    "once, with everything active, and cut before each call\n"
    "                       rounded NAME: rows are rounded to 8 bits as soon as 256 of them are there\n"
    "  --most TOKENS        longer sessions are left out (8000)\n"
    "  --out FILE           results as JSON lines; --resume: FILE may exist, what it has is not run again\n"
    "  --seconds N          begin no session after so long (no limit)\n"
    "  --summary FILE       no model: tables of such a file, "
    "every policy against every other where it matters\n"
    "\n";

enum { FILE_MOST = 256 << 20, LEAST_BUDGET = 768 };

typedef struct bench {
    common_options common;
    const char *file, *policies, *budgets, *out_path, *summary;
    int64_t sessions, first, most, seconds;
    bool resume, quotes;
    FILE *out;
    base_buf done; /* whole lines of --out as it was */
    uint64_t start;
    model *model;
    const model_info *info;
    char *heads;
    transcript session; /* the one at hand */
    base_buf functions; /* what may be called, behind the first message */
    /* What the full cache wrote, call by call, as compact JSON where it is some. */
    base_buf *calls;
    size_t n_calls, cap_calls;
} bench;

static void free_session(bench *b)
{
    transcript_free(&b->session);
    for (size_t i = 0; i < b->n_calls; i++) base_buf_free(&b->calls[i]);
    b->n_calls = 0;
}

/* ---- policies ------------------------------------------------------------------------------------------ */

enum { SETS_MOST = 8, CONDITIONS_MOST = 32 };

/*
 * "NAME", "NAME:SET=VALUE:SET=VALUE...", or either behind "late " or "rounded ". name and set point into
 * parts: it is not copied.
 */
typedef struct choice {
    char text[128]; /* as it was written */
    char parts[128];
    const char *name, *set[SETS_MOST + 1];
    bool late, rounded, repairs;
} choice;

/* A policy at a share of the session's rows, and what came of it. */
typedef struct condition {
    choice policy;
    uint32_t percent;
    tally t;
} condition;

static void choose(choice *ret, const char *text)
{
    static const char late[] = "late ", rounded[] = "rounded ";
    *ret = (choice){.late = !strncmp(text, late, sizeof late - 1),
        .rounded = !strncmp(text, rounded, sizeof rounded - 1),
        .repairs = true};
    const size_t before = ret->late ? sizeof late - 1 : ret->rounded ? sizeof rounded - 1 : 0;
    snprintf(ret->text, sizeof ret->text, "%s", text);
    snprintf(ret->parts, sizeof ret->parts, "%s", text + before);
    char *left = ret->parts;
    ret->name = strsep(&left, ":");
    for (int i = 0; left && i < SETS_MOST;) {
        ret->set[i] = strsep(&left, ":");
        if (strcmp(ret->set[i], "repair=off") != 0)
            i++;
        else {
            ret->set[i] = NULL;
            ret->repairs = false;
        }
    }
}

/* percent 0: no limit. */
static kv_options options_of(const bench *b, const condition *c)
{
    return (kv_options){.policy = c->policy.name,
        .set = c->policy.set,
        .budget = (uint32_t)((uint64_t)b->session.n_tokens * c->percent / 100),
        .repair = c->policy.repairs ? -1 : 0,
        .heads_file = b->heads};
}

/*
 * What a policy leaves of rows that were all computed with everything active, in a fork. So much of a
 * policy's differences is its choice alone; the rest is in rows made over few. from: of the newest message or
 * result.
 */
static int cut_fork(const kv_session *whole, kv_options o, uint32_t from, kv_session **ret, base_err *err)
{
    uint32_t n = 0;
    o.bare = true;
    int r = kv_session_fork(whole, ret, NULL, err);
    if (!r) r = kv_session_set_policy(*ret, &o, err);
    if (!r) r = kv_session_evict(*ret, err);
    if (!r) kv_session_ids(*ret, &n);
    if (!r && from < n) r = kv_session_repair(*ret, &(kv_ask){from, n}, NULL, err);
    return r;
}

/* ---- replay -------------------------------------------------------------------------------------------- */

/* What late conditions make of a call in front of which the message or result [from, ...) stands last. */
static int count_late(bench *b, const kv_session *whole, condition *late, uint32_t n_late, uint32_t from,
    uint32_t turn, const transcript_message *m, const base_buf *call, base_err *err)
{
    int r = 0;
    for (uint32_t i = 0; i < n_late && !r; i++) {
        const uint64_t start = base_clock_ns();
        kv_session *s = NULL;
        r = cut_fork(whole, options_of(b, &late[i]), from, &s, err);
        if (!r) tally_recall(b->model, s, m, &late[i].t);
        if (!r && !b->quotes) r = tally_compare_call(b->model, s, turn, call, m, &late[i].t, err);
        kv_session_free(s);
        late[i].t.seconds += (double)(base_clock_ns() - start) / 1e9;
    }
    return r;
}

/* Where the recorded agent calls: the full cache's call is kept (c NULL), another's is compared with it. */
static int count_call(bench *b, const kv_session *s, const condition *c, uint32_t at, uint32_t turn,
    const transcript_message *m, tally *t, base_err *err)
{
    tally_recall(b->model, s, m, t);
    if (c) return tally_compare_call(b->model, s, turn, &b->calls[at], m, t, err);
    base_grow(&b->calls, &b->cap_calls, b->n_calls + 1, sizeof *b->calls);
    b->calls[b->n_calls++] = (base_buf){0};
    double lead = INFINITY;
    const int r = tally_write_call(b->model, s, turn, false, &b->calls[at], &lead, err);
    if (!r) tally_call(&b->calls[at], lead, &b->calls[at], m, t);
    return r;
}

/*
 * The session under a condition, or with everything active (c NULL), when late conditions look at every call
 * too.
 */
static int replay(bench *b, const condition *c, tally *t, condition *late, uint32_t n_late, base_err *err)
{
    const uint64_t start = base_clock_ns();
    condition full = {.policy = {.name = "full", .repairs = true}};
    int r = 0;
    for (uint32_t i = 0; i < n_late && !r; i++)
        r = bench_whole_policy(&full.policy.name, late[i].policy.name, err);
    if (r) return r;
    const kv_options o = options_of(b, c ? c : &full);
    t->rounded = c && c->policy.rounded;
    kv_session *s = NULL;
    uint32_t turn = 0, from = 0, at = 0; /* from: of the newest message or result; at: of the calls */
    r = kv_session_new(&s, b->model, &o, NULL, err);
    for (size_t i = 0; i < b->session.n && !r; i++) {
        const transcript_message *m = &b->session.messages[i];
        const bool asks = m->origin == KV_ORIGIN_USER || m->origin == KV_ORIGIN_TOOL,
                   calls = m->call_from < m->text.n;
        uint32_t n = 0;
        if (m->origin == KV_ORIGIN_USER) kv_session_set_turn(s, ++turn);
        if (asks) tally_compact(s, t);
        r = tally_append(s, KV_ORIGIN_SCAFFOLD, turn, &m->begin, 0, (uint32_t)m->begin.n, NULL, t, err);
        if (asks) kv_session_ids(s, &from);
        if (!r) r = tally_append(s, m->origin, turn, &m->text, 0, m->call_from, NULL, t, err);
        kv_session_ids(s, &n);
        if (!r && asks && n > from) r = kv_session_repair(s, &(kv_ask){from, n}, NULL, err);
        if (!r && calls && !b->quotes) r = count_call(b, s, c, at, turn, m, t, err);
        if (!r && calls)
            r = count_late(b, s, late, n_late, from, turn, m, b->quotes ? NULL : &b->calls[at], err);
        at += calls;
        if (!r)
            r = tally_append(s, KV_ORIGIN_CALL, turn, &m->text, m->call_from,
                (uint32_t)m->text.n - m->call_from, NULL, t, err);
        if (!r) r = tally_append(s, KV_ORIGIN_SCAFFOLD, turn, &m->end, 0, (uint32_t)m->end.n, NULL, t, err);
    }
    t->compact += t->computed;
    t->raw_compact += t->raw;
    if (t->live_compact < t->live) t->live_compact = t->live;
    t->seconds = (double)(base_clock_ns() - start) / 1e9;
    kv_session_free(s);
    return r;
}

static void print_line(const bench *b, int64_t session, const condition *c)
{
    double low, high;
    const tally *t = &c->t;
    const bool is_full = !strcmp(c->policy.text, "full");
    bench_wilson(t->n_equal, t->n_calls, &low, &high);
    fprintf(b->out,
        "{\"bench\":\"sessions\",\"model\":\"%.12s\",\"session\":%lld,\"tokens\":%u,\"policy\":\"%s\","
        "\"percent\":%u,\"budget\":%u,\"calls\":%u,\"equal\":%u,\"wilson\":[%.3f,%.3f],\"each\":\"%s\","
        "\"recorded\":%u,\"named\":%u,\"written\":%s],\"leads\":%s],\"quoting\":%u,"
        "\"recall\":%.4f,\"seconds\":%.1f,\"peak\":%u,\"live\":%u,\"live_compact\":%u,\"computed\":%llu,"
        "\"computed_compact\":%llu,\"raw_reads\":%llu,\"raw_reads_compact\":%llu,\"effective_reads\":%llu,"
        "\"effective_reads_compact\":%llu}\n",
        b->info->hash, (long long)session, b->session.n_tokens, c->policy.text, c->percent,
        is_full ? 0 : (unsigned)((uint64_t)b->session.n_tokens * c->percent / 100), t->n_calls, t->n_equal,
        low, high, t->each, t->n_right, t->n_named, t->written.len ? t->written.data : "[",
        t->leads.len ? t->leads.data : "[", t->n_quoting, t->n_quoting ? t->recall / t->n_quoting : 0,
        t->seconds, t->peak, t->live, t->live_compact, (unsigned long long)t->computed,
        (unsigned long long)t->compact, (unsigned long long)t->raw, (unsigned long long)t->raw_compact,
        (unsigned long long)t->effective, (unsigned long long)(t->effective + t->raw_compact - t->raw));
    fflush(b->out);
}

/* Is this session under this policy and budget in --out already? */
static bool is_done(const bench *b, int64_t session, const char *policy, uint32_t percent)
{
    char key[128], budget[160];
    snprintf(key, sizeof key, "\"model\":\"%.12s\",\"session\":%lld,", b->info->hash, (long long)session);
    snprintf(budget, sizeof budget, "\"policy\":\"%.100s\",\"percent\":%u,", policy, percent);
    for (size_t at = 0; at < b->done.len;) {
        const char *line = b->done.data + at, *end = memchr(line, '\n', b->done.len - at);
        const size_t n = end ? (size_t)(end - line) : b->done.len - at;
        if (memmem(line, n, key, strlen(key)) && memmem(line, n, budget, strlen(budget))) return true;
        at += n + 1;
    }
    return false;
}

/* Adds what is left to do of the policies of --policies at a share, the late ones or the others. */
static int add_conditions(
    const bench *b, int64_t number, uint32_t percent, bool late, condition *all, uint32_t *n, base_err *err)
{
    char list[512], *left = list;
    snprintf(list, sizeof list, "%s", b->policies);
    for (const char *policy; (policy = strsep(&left, ","));) {
        if (*n == CONDITIONS_MOST)
            return base_fail(err, BASE_E_USAGE,
                "fewer than %d policies times shares are compared; name fewer of --policies or --budget",
                CONDITIONS_MOST);
        condition *c = &all[*n];
        *c = (condition){.percent = percent};
        choose(&c->policy, policy);
        if (*policy && strcmp(policy, "full") && (c->policy.late || b->quotes) == late &&
            !is_done(b, number, policy, percent))
            (*n)++;
    }
    return 0;
}

/*
 * Everything active first, and the late conditions beside it; then every other condition, over rows of its
 * own.
 */
static int run_conditions(bench *b, int64_t number, base_err *err)
{
    condition all[CONDITIONS_MOST], full = {.policy = {.text = "full", .name = "full", .repairs = true}};
    char budgets[64];
    uint32_t n = 0, n_late = 0;
    int r = 0;
    for (int late = 1; late >= 0; late--) {
        snprintf(budgets, sizeof budgets, "%s", b->budgets);
        for (char *next = budgets, *word; !r && (word = strsep(&next, ","));) {
            const uint32_t percent = (uint32_t)strtoul(word, NULL, 10), before = n;
            r = add_conditions(b, number, percent, late, all, &n, err);
            if (late || n == before || (uint64_t)b->session.n_tokens * percent / 100 >= LEAST_BUDGET)
                continue;
            n = before;
            fprintf(stderr,
                "session %lld: %u%% of its %u tokens are fewer than %d rows, left out for policies %s\n",
                (long long)number, percent, b->session.n_tokens, LEAST_BUDGET,
                n_late ? "other than late ones" : "of --policies");
        }
        if (late) n_late = n;
    }
    if (r || !n) return r;
    r = replay(b, NULL, &full.t, all, n_late, err);
    if (!r && !b->quotes && !is_done(b, number, "full", 0)) print_line(b, number, &full);
    for (uint32_t i = 0; i < n; i++) {
        if (!r && i >= n_late) r = replay(b, &all[i], &all[i].t, NULL, 0, err);
        if (!r) print_line(b, number, &all[i]);
        base_buf_free(&all[i].t.written);
        base_buf_free(&all[i].t.leads);
    }
    base_buf_free(&full.t.written);
    base_buf_free(&full.t.leads);
    return r;
}

static int run_session(bench *b, int64_t number, const base_json *one, base_err *err)
{
    const base_json *messages = base_json_get(one, "traj");
    int r = 0;
    transcript_add_functions(&b->session, b->model, b->functions.data);
    for (const base_json *m = messages ? messages->first : NULL; m; m = m->next)
        transcript_add(&b->session, b->model, m);
    if (b->session.n_tokens > b->most)
        fprintf(stderr, "session %lld: %u tokens, left out\n", (long long)number, b->session.n_tokens);
    else
        r = run_conditions(b, number, err);
    free_session(b);
    return r;
}

static int run(bench *b, base_err *err)
{
    base_buf file = {0};
    base_json_doc *doc = NULL;
    b->start = base_clock_ns();
    int r = bench_open_out(&b->out, b->out_path, b->resume, &b->done, err);
    if (!r) r = base_fs_read(b->file, FILE_MOST, &file, err);
    if (!r) r = base_json_parse(file.data ? file.data : "", file.len, &doc, err);
    if (!r) r = cmd_open_model(&b->common, &b->model, err);
    if (!r) {
        b->info = model_get_info(b->model);
        b->heads = kv_heads_path(b->info->hash);
    }
    const base_json *root = doc ? base_json_root(doc) : NULL;
    if (!r) functions_add(root, &b->functions);
    for (int64_t i = b->first; i < b->first + b->sessions && !r; i++) {
        const base_json *one = base_json_at(root, (size_t)i);
        if (!one || (b->seconds && (double)(base_clock_ns() - b->start) / 1e9 > (double)b->seconds)) break;
        r = run_session(b, i, one, err);
    }
    if (b->out && b->out != stdout) fclose(b->out);
    base_json_free(doc);
    base_buf_free(&file);
    return r;
}

/* Numbers from 1 to 100 with commas. */
static bool are_percents(const char *text)
{
    for (const char *at = text; *at;) {
        char *end = NULL;
        const unsigned long percent = strtoul(at, &end, 10);
        if (end == at || percent < 1 || percent > 100 || (*end && *end != ',')) return false;
        at = end + (*end == ',');
    }
    return *text && strlen(text) < 60;
}

int bench_sessions(int argc, char **argv)
{
    bench b = {.common = COMMON_OPTIONS_DEFAULTS,
        .sessions = 3,
        .budgets = "25",
        .most = 8000,
        .policies = "streaming-llm,snapkv,h2o,intentkv:mode=query,intentkv,kvist"};
    const option_row own[] = {
        {"--file", OPTION_TEXT, &b.file},
        {"--policies", OPTION_TEXT, &b.policies},
        {"--sessions", OPTION_INTEGER, &b.sessions},
        {"--first", OPTION_INTEGER, &b.first},
        {"--budget", OPTION_TEXT, &b.budgets},
        {"--most", OPTION_INTEGER, &b.most},
        {"--out", OPTION_TEXT, &b.out_path},
        {"--resume", OPTION_FLAG, &b.resume},
        {"--quotes", OPTION_FLAG, &b.quotes},
        {"--seconds", OPTION_INTEGER, &b.seconds},
        {"--summary", OPTION_TEXT, &b.summary},
        {.name = NULL},
    };
    base_err err = {0};
    int r;
    if (!cmd_begin(argc, argv, &b.common, own, &(cmd_words){.usage = usage}, &r)) return r;
    if (!r && !b.summary &&
        (!b.file || b.sessions < 1 || b.first < 0 || !are_percents(b.budgets) || b.most < 1 ||
            strlen(b.policies) > 500))
        r = base_fail(&err, BASE_E_USAGE, "--file names the sessions, --budget is 1 to 100 percent");
    if (!r) r = b.summary ? sessions_summarise(b.summary, &err) : run(&b, &err);
    base_buf_free(&b.done);
    free(b.calls);
    base_buf_free(&b.functions);
    free(b.heads);
    model_close(b.model);
    return r ? cmd_complain(&err) : CMD_OK;
}
