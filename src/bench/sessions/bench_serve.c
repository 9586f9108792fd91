/*
 * kvist-bench serve: recorded tool sessions as requests to a server, several sessions by turns, each request with its
 * session's whole history as the prompt (IntentKV's serving experiment). What the prefix cache (block_cache.h) knows of
 * it is not computed again. Three layouts of rows over one engine:
 *
 *     full      nothing is evicted
 *     packed    what an eviction leaves is moved together and renumbered: rows that later prompts cannot use, so from
 *               its first eviction on a session finds only what all sessions share
 *     in place  rows stay where they are, with holes, and so does what the cache knows of them
 *
 * Every token that is not found goes through the model, so that times are measured and not derived.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "bench/bench.h"
#include "bench/common/result_file.h"
#include "bench/sessions/block_cache.h"
#include "bench/sessions/called_functions.h"
#include "bench/sessions/transcript.h"
#include "kv/repair/heads.h"

static const char usage[] =
    "usage: kvist-bench serve --model M --file FILE.json [--sessions N] [--first N] [--together N]\n"
    "                         [--policies NAME,...] [--budget "
    "ROWS] [--blocks N] [--most TOKENS] [--out FILE]\n"
    "\n"
    "  --file FILE       trajectories: an array of {\"traj\":[{role, content, tool_calls}]}\n"
    "  --sessions N      how many (4); --first N: from which on (0)\n"
    "  --together N      so many take turns on one server (2)\n"
    "  --policies W,...  what evicts (intentkv,snapkv), each packed and in place, beside full\n"
    "  --budget ROWS     rows that stay (1536)\n"
    "  --blocks N        blocks of 16 tokens that the prefix cache holds; 0: all (0)\n"
    "  --most TOKENS     longer sessions are left out (8000)\n"
    "  --out FILE        results as JSON lines, one a group of sessions and layout\n"
    "\n";

enum { FILE_MOST = 256 << 20, MOST_TOGETHER = 8 };

typedef struct layout {
    const char *name, *policy; /* policy: full where nothing is evicted */
    bool packs;
} layout;

/* One session on the server. */
typedef struct guest {
    transcript session;
    model_ids history; /* of what was computed so far */
    size_t next;       /* message */
    uint32_t turn;
    kv_session *rows; /* NULL: none that a prompt can use */
    bool is_packed;   /* something of it was evicted, and moved */
} guest;

typedef struct sums {
    uint64_t prompt, found, computed, evicted;
    uint32_t requests;
    double wall, processor; /* of prompts, to where the answer begins */
} sums;

typedef struct bench {
    common_options common;
    const char *file, *policies, *out_path;
    int64_t sessions, first, together, budget, n_blocks, most;
    FILE *out;
    model *model;
    char *heads;
    guest guests[MOST_TOGETHER];
    uint32_t n_guests, n_shared; /* tokens that all of them begin with: whole messages */
    size_t n_shared_messages;
    kv_session *shared; /* their rows */
    block_cache cache;
} bench;

static double processor_seconds(void)
{
    struct timespec t = {0};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static kv_options options_of(const bench *b, const layout *l)
{
    const bool evicts = strcmp(l->policy, "full") != 0;
    return (kv_options){.policy = l->policy,
        .budget = evicts ? (uint32_t)b->budget : 0,
        .repair = evicts ? -1 : 0,
        .heads_file = b->heads};
}

/* A part of a message, of which the first `found` tokens of the history need not be computed. */
static int append(guest *g, kv_origin origin, const model_ids *ids, uint32_t from, uint32_t to,
    uint32_t *found, base_err *err)
{
    const uint32_t n = to - from, skip = *found < n ? *found : n;
    const kv_segment segment = {.origin = origin, .turn = g->turn};
    *found -= skip;
    if (skip == n) return 0;
    return kv_session_append(g->rows, &segment, ids->ids + from + skip, n - skip, NULL, NULL, err);
}

/* One message; asks: a repair may follow, where it was computed whole. */
static int append_message(guest *g, const transcript_message *m, bool repairs, uint32_t *found, base_err *err)
{
    const bool asks = m->origin == KV_ORIGIN_USER || m->origin == KV_ORIGIN_TOOL;
    uint32_t from = 0, to = 0;
    g->turn += m->origin == KV_ORIGIN_USER;
    if (m->origin == KV_ORIGIN_USER && !*found) kv_session_set_turn(g->rows, g->turn);
    int r = append(g, KV_ORIGIN_SCAFFOLD, &m->begin, 0, (uint32_t)m->begin.n, found, err);
    const bool is_whole = !*found;
    kv_session_ids(g->rows, &from);
    if (!r) r = append(g, m->origin, &m->text, 0, m->call_from, found, err);
    kv_session_ids(g->rows, &to);
    if (!r && repairs && asks && is_whole && to > from)
        r = kv_session_repair(g->rows, &(kv_ask){from, to}, NULL, err);
    if (!r) r = append(g, KV_ORIGIN_CALL, &m->text, m->call_from, (uint32_t)m->text.n, found, err);
    if (!r) r = append(g, KV_ORIGIN_SCAFFOLD, &m->end, 0, (uint32_t)m->end.n, found, err);
    return r;
}

static void add_ids(model_ids *to, const transcript_message *m)
{
    const model_ids *parts[] = {&m->begin, &m->text, &m->end};
    for (size_t p = 0; p < 3; p++)
        for (size_t i = 0; i < parts[p]->n; i++) model_ids_add(to, parts[p]->ids[i]);
}

/* Rows of the prompt's first tokens, as many as the cache knows and somebody holds; how many. */
static int begin_prompt(
    bench *b, guest *g, const layout *l, const model_ids *prompt, uint32_t *found, base_err *err)
{
    uint32_t known = block_cache_find(&b->cache, prompt->ids, (uint32_t)prompt->n), mine = 0;
    int r = 0;
    if (g->rows) kv_session_ids(g->rows, &mine);
    if (mine > b->n_shared && known > b->n_shared) {
        if (known > mine) known = mine;
        *found = known;
        return known < mine ? kv_session_truncate(g->rows, known, err) : 0;
    }
    kv_session_free(g->rows);
    g->rows = NULL;
    g->turn = 0;
    if (known > b->n_shared) known = b->n_shared;
    const kv_options o = options_of(b, l);
    r = kv_session_fork(b->shared, &g->rows, NULL, err);
    if (!r && known < b->n_shared) r = kv_session_truncate(g->rows, known, err);
    if (!r) r = kv_session_set_policy(g->rows, &o, err);
    *found = known;
    return r;
}

/* The next request of a session, and its recorded answer. False: there is none. */
static bool serve(bench *b, guest *g, const layout *l, sums *sum, int *r, base_err *err)
{
    const bool repairs = strcmp(l->policy, "full") != 0;
    size_t end = g->next;
    while (end < g->session.n && g->session.messages[end].origin != KV_ORIGIN_ANSWER) end++;
    if (end == g->session.n) return false;
    for (size_t i = g->next; i < end; i++) add_ids(&g->history, &g->session.messages[i]);
    const uint64_t start = base_clock_ns();
    const double processor = processor_seconds();
    uint32_t found = 0, left;
    kv_stats before, stats;
    *r = begin_prompt(b, g, l, &g->history, &found, err);
    if (*r) return false;
    kv_session_get_stats(g->rows, &before);
    left = found;
    g->turn = 0;
    for (size_t i = 0; i < end && !*r; i++)
        *r = append_message(g, &g->session.messages[i], repairs && i + 1 == end, &left, err);
    sum->wall += (double)(base_clock_ns() - start) / 1e9;
    sum->processor += processor_seconds() - processor;
    if (*r) return false;
    kv_session_get_stats(g->rows, &stats);
    sum->requests++;
    sum->prompt += g->history.n;
    sum->found += found;
    sum->computed += stats.computed - before.computed;
    add_ids(&g->history, &g->session.messages[end]);
    left = 0;
    *r = append_message(g, &g->session.messages[end], false, &left, err);
    g->next = end + 1;
    if (*r) return false;
    kv_session_get_stats(g->rows, &stats);
    sum->evicted += stats.host;
    const bool was_packed = g->is_packed;
    g->is_packed = l->packs && (g->is_packed || stats.host > 0);
    if (!g->is_packed)
        block_cache_keep(&b->cache, g->history.ids, (uint32_t)g->history.n);
    else {
        if (!was_packed) block_cache_drop(&b->cache, g->history.ids, b->n_shared, (uint32_t)g->history.n);
        kv_session_free(g->rows);
        g->rows = NULL;
    }
    return true;
}

/* --- a group of sessions -------------------------------------------------------------------------------- */

static bool are_equal(const model_ids *a, const model_ids *b)
{
    return a->n == b->n && !memcmp(a->ids, b->ids, a->n * sizeof *a->ids);
}

/* Messages that all sessions of the group begin with, computed once. */
static int share_beginning(bench *b, base_err *err)
{
    guest shared = {.turn = 0};
    const kv_options o = {.policy = "full"};
    model_ids ids = {0};
    uint32_t none = 0;
    b->n_shared_messages = 0;
    for (bool same = true; same;) {
        const size_t i = b->n_shared_messages;
        for (uint32_t k = 0; k < b->n_guests && same; k++) {
            const transcript *t = &b->guests[k].session, *first = &b->guests[0].session;
            same = i + 1 < t->n && i + 1 < first->n && t->messages[i].origin != KV_ORIGIN_USER &&
                   t->messages[i].origin != KV_ORIGIN_ANSWER &&
                   are_equal(&t->messages[i].text, &first->messages[i].text);
        }
        b->n_shared_messages += same;
    }
    int r = kv_session_new(&b->shared, b->model, &o, NULL, err);
    shared.rows = b->shared;
    for (size_t i = 0; i < b->n_shared_messages && !r; i++) {
        add_ids(&ids, &b->guests[0].session.messages[i]);
        r = append_message(&shared, &b->guests[0].session.messages[i], false, &none, err);
    }
    b->n_shared = (uint32_t)ids.n;
    model_ids_free(&ids);
    return r;
}

static void print_line(const bench *b, int64_t first, const layout *l, const sums *s)
{
    fprintf(b->out,
        "{\"bench\":\"serve\",\"model\":\"%.12s\",\"first\":%lld,\"sessions\":%u,\"layout\":\"%s\","
        "\"policy\":\"%s\","
        "\"budget\":%lld,\"blocks\":%lld,\"shared\":%u,\"requests\":%u,\"prompt\":%llu,\"found\":%llu,"
        "\"computed\":%llu,"
        "\"evicted\":%llu,\"wall_s\":%.2f,\"processor_s\":%.2f}\n",
        model_get_info(b->model)->hash, (long long)first, b->n_guests, l->name, l->policy,
        (long long)b->budget, (long long)b->n_blocks, b->n_shared, s->requests, (unsigned long long)s->prompt,
        (unsigned long long)s->found, (unsigned long long)s->computed, (unsigned long long)s->evicted,
        s->wall, s->processor);
    fflush(b->out);
}

static int run_layout(bench *b, int64_t first, const layout *l, base_err *err)
{
    sums sum = {.requests = 0};
    int r = 0;
    b->cache.most = (uint32_t)b->n_blocks;
    if (b->n_guests) { /* the beginning that all share was served before */
        const guest *g = &b->guests[0];
        model_ids ids = {0};
        for (size_t i = 0; i < b->n_shared_messages; i++) add_ids(&ids, &g->session.messages[i]);
        block_cache_keep(&b->cache, ids.ids, (uint32_t)ids.n);
        model_ids_free(&ids);
    }
    for (bool more = true; more && !r;) {
        more = false;
        for (uint32_t k = 0; k < b->n_guests && !r; k++)
            more = serve(b, &b->guests[k], l, &sum, &r, err) || more;
    }
    if (!r) print_line(b, first, l, &sum);
    for (uint32_t k = 0; k < b->n_guests; k++) {
        guest *g = &b->guests[k];
        kv_session_free(g->rows);
        model_ids_free(&g->history);
        *g = (guest){.session = g->session};
    }
    block_cache_free(&b->cache);
    return r;
}

static int run_group(bench *b, int64_t first, base_err *err)
{
    int r = share_beginning(b, err);
    const layout full = {"full", "full", false};
    if (!r) r = run_layout(b, first, &full, err);
    char words[256];
    snprintf(words, sizeof words, "%s", b->policies);
    for (char *next = words, *word; !r && (word = strsep(&next, ","));) {
        const layout packed = {"packed", word, true}, in_place = {"in place", word, false};
        r = run_layout(b, first, &packed, err);
        if (!r) r = run_layout(b, first, &in_place, err);
    }
    kv_session_free(b->shared);
    b->shared = NULL;
    for (uint32_t k = 0; k < b->n_guests; k++) transcript_free(&b->guests[k].session);
    b->n_guests = 0;
    return r;
}

static int run_sessions(bench *b, const base_json *root, base_err *err)
{
    base_buf functions = {0};
    int64_t left = b->sessions;
    int r = 0;
    functions_add(root, &functions);
    for (size_t i = (size_t)b->first; i < root->n && left && !r; i++) {
        const base_json *messages = base_json_get(base_json_at(root, i), "traj");
        guest *g = &b->guests[b->n_guests];
        *g = (guest){.next = 0};
        transcript_add_functions(&g->session, b->model, functions.data);
        for (const base_json *m = messages ? messages->first : NULL; m; m = m->next)
            transcript_add(&g->session, b->model, m);
        if (g->session.n_tokens > b->most) {
            transcript_free(&g->session);
            continue;
        }
        left--;
        b->n_guests++;
        if (b->n_guests == b->together || !left) r = run_group(b, (int64_t)i, err);
    }
    base_buf_free(&functions);
    return r;
}

static int run(bench *b, base_err *err)
{
    base_buf file = {0};
    base_json_doc *doc = NULL;
    int r = bench_open_out(&b->out, b->out_path, false, NULL, err);
    if (!r) r = base_fs_read(b->file, FILE_MOST, &file, err);
    if (!r) r = base_json_parse(file.data ? file.data : "", file.len, &doc, err);
    if (!r) r = cmd_open_model(&b->common, &b->model, err);
    if (!r) b->heads = kv_heads_path(model_get_info(b->model)->hash);
    if (!r) r = run_sessions(b, base_json_root(doc), err);
    if (b->out && b->out != stdout) fclose(b->out);
    base_json_free(doc);
    base_buf_free(&file);
    return r;
}

int bench_serve(int argc, char **argv)
{
    bench b = {.common = COMMON_OPTIONS_DEFAULTS,
        .policies = "intentkv,snapkv",
        .sessions = 4,
        .together = 2,
        .budget = 1536,
        .most = 8000};
    const option_row own[] = {
        {"--file", OPTION_TEXT, &b.file},
        {"--policies", OPTION_TEXT, &b.policies},
        {"--sessions", OPTION_INTEGER, &b.sessions},
        {"--first", OPTION_INTEGER, &b.first},
        {"--together", OPTION_INTEGER, &b.together},
        {"--budget", OPTION_INTEGER, &b.budget},
        {"--blocks", OPTION_INTEGER, &b.n_blocks},
        {"--most", OPTION_INTEGER, &b.most},
        {"--out", OPTION_TEXT, &b.out_path},
        {.name = NULL},
    };
    base_err err = {0};
    int r;
    if (!cmd_begin(argc, argv, &b.common, own, &(cmd_words){.usage = usage}, &r)) return r;
    if (!b.file || b.sessions < 1 || b.first < 0 || b.together < 1 || b.together > MOST_TOGETHER ||
        b.budget < 600 || b.n_blocks < 0 || b.n_blocks > 1000000 || b.most < 1 || strlen(b.policies) > 200)
        r = base_fail(&err, BASE_E_USAGE,
            "--file names the sessions, --together is 1 to %d, --budget 600 at least", MOST_TOGETHER);
    else
        r = run(&b, &err);
    free(b.heads);
    model_close(b.model);
    return r ? cmd_complain(&err) : CMD_OK;
}
