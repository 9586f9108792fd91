/*
 * kvist-bench learn: what IntentKV's trained residual is worth on recorded tool sessions (tau-bench's trajectories, or
 * the sessions of the log). Of the rows that the next call quotes the share that stays when 10, 20 or 30% of the
 * candidates do (every row but the fixed prompt and the message that asks), by the rule alone and corrected. Every third
 * task is held out, whole, so that no trial of it was trained on; each seed is a network of its own.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "bench/bench.h"
#include "bench/common/result_file.h"
#include "bench/common/statistics.h"
#include "bench/sessions/called_functions.h"
#include "bench/sessions/transcript.h"
#include "cmd/log_history.h"
#include "learn/gather.h"

static const char usage[] =
    "usage: kvist-bench learn --model M --file FILE.json [--untouched SET.json] [--sessions N] [--seeds N]\n"
    "                         [--most TOKENS] [--epochs N] [--keep] [--networks FOLDER] [--out FILE]\n"
    "       kvist-bench learn --model M --logged [the same, but --untouched]\n"
    "       kvist-bench learn --summary FILE\n"
    "\n"
    "  --file FILE        trajectories: an array of {\"task_id\", \"traj\":[{role, content, tool_calls}]}\n"
    "  --logged           instead: the sessions of that model in the data folder's log, each a task of its own\n"
    "  --untouched FILE   an array of {\"tau\": N}: sessions that are left out\n"
    "  --sessions N       the first N of the others (all)\n"
    "  --seeds N          networks, from seed 42 on (3)\n"
    "  --most TOKENS      longer sessions are left out (8000)\n"
    "  --epochs N         over the training sessions (2)\n"
    "  --keep             the first network becomes the model's, for --kv-set residual=on\n"
    "  --networks FOLDER  every network goes there, as SEED.residual\n"
    "  --out FILE         results as JSON lines, one a session, seed and share\n"
    "  --summary FILE     no model: the table of such a file\n"
    "\n";

enum { FILE_MOST = 256 << 20, HELD_OUT = 3, N_SHARES = 3, FIRST_SEED = 42 };
static const double shares[N_SHARES] = {.1, .2, .3};

typedef struct bench {
    common_options common;
    const char *file, *untouched, *networks, *out_path, *summary;
    int64_t sessions, seeds, most, epochs;
    bool is_logged, keep;
    FILE *out;
    model *model;
    learn_set set;
    uint32_t *numbers; /* of the sessions in the file */
} bench;

/* --- sessions ------------------------------------------------------------------------------------------- */

static void add_tokens(learn_history *h, const model_tokenizer *with, kv_origin origin, uint32_t turn,
    const model_ids *ids, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        size_t n = 0;
        const char *piece = model_tokenizer_piece(with, ids->ids[i], &n);
        learn_history_add(h, origin, turn, i == from, ids->ids[i], piece ? piece : "", piece ? n : 0);
    }
    if (from < to) learn_history_end_part(h);
}

static void make_history(const transcript *t, const model *m, learn_history *h)
{
    const model_tokenizer *with = model_get_tokenizer(m);
    uint32_t turn = 0;
    for (size_t i = 0; i < t->n; i++) {
        const transcript_message *one = &t->messages[i];
        turn += one->origin == KV_ORIGIN_USER;
        add_tokens(h, with, KV_ORIGIN_SCAFFOLD, turn, &one->begin, 0, (uint32_t)one->begin.n);
        add_tokens(h, with, one->origin, turn, &one->text, 0, one->call_from);
        add_tokens(h, with, KV_ORIGIN_CALL, turn, &one->text, one->call_from, (uint32_t)one->text.n);
        add_tokens(h, with, KV_ORIGIN_SCAFFOLD, turn, &one->end, 0, (uint32_t)one->end.n);
        if (one->arguments) {
            base_buf arguments = {0};
            base_json_put(&arguments, one->arguments);
            learn_history_add_call(h, arguments.data);
            base_buf_free(&arguments);
        }
    }
}

static bool is_listed(const base_json *list, int64_t number)
{
    for (const base_json *one = list ? list->first : NULL; one; one = one->next)
        if (base_json_int(one, "tau", -1) == number) return true;
    return false;
}

static int gather(bench *b, const base_json *root, const base_json *untouched, base_err *err)
{
    const kv_compute compute = kv_compute_model(b->model);
    learn_gatherer g = {.compute = &compute};
    base_buf functions = {0};
    int64_t n = 0;
    int rc = 0;
    functions_add(root, &functions);
    b->numbers = base_xcalloc(root->n + 1, sizeof *b->numbers);
    for (size_t i = 0; i < root->n && n < b->sessions && !rc; i++) {
        const base_json *one = base_json_at(root, i), *messages = base_json_get(one, "traj");
        transcript t = {0};
        learn_history h = {0};
        bool added = false;
        if (is_listed(untouched, (int64_t)i)) continue;
        n++;
        transcript_add_functions(&t, b->model, functions.data);
        for (const base_json *m = messages ? messages->first : NULL; m; m = m->next)
            transcript_add(&t, b->model, m);
        if (t.n_tokens > b->most) {
            fprintf(stderr, "session %zu: %u tokens, left out\n", i, t.n_tokens);
        } else {
            b->numbers[b->set.n_sessions] = (uint32_t)i;
            make_history(&t, b->model, &h);
            rc = learn_gather(&g, &b->set, (uint32_t)base_json_int(one, "task_id", 0), &h, &added, err);
            fprintf(stderr, "session %zu: %u tokens%s\n", i, t.n_tokens, added ? "" : ", nothing quoted");
        }
        learn_history_free(&h);
        transcript_free(&t);
    }
    learn_gatherer_close(&g);
    base_buf_free(&functions);
    return rc;
}

typedef struct id_list {
    char **ids;
    size_t n, cap;
} id_list;

static void take_row(void *user, const agent_log_row *r)
{
    id_list *l = user;
    if (r->is_what_if || (r->parent && *r->parent)) return; /* another session's text once more */
    base_grow(&l->ids, &l->cap, l->n + 1, sizeof *l->ids);
    l->ids[l->n++] = base_xstrdup(r->id);
}

/* The sessions as the log lists them, newest first, each a group. */
static int gather_logged(bench *b, base_err *err)
{
    const kv_compute compute = kv_compute_model(b->model);
    learn_gatherer g = {.compute = &compute};
    agent_log *log = NULL;
    id_list list = {.n = 0};
    int rc = agent_log_open(&log, NULL, true, err);
    if (!rc) rc = agent_log_list(log, NULL, take_row, &list, err);
    b->numbers = base_xcalloc(list.n + 1, sizeof *b->numbers);
    for (size_t i = 0; i < list.n && (int64_t)i < b->sessions && !rc; i++) {
        log_history l;
        bool added = false;
        rc = log_history_read(log, list.ids[i], &l, err);
        if (!rc && !strcmp(l.model_hash, compute.hash)) {
            b->numbers[b->set.n_sessions] = (uint32_t)i;
            if ((int64_t)l.history.n <= b->most)
                rc = learn_gather(&g, &b->set, (uint32_t)i, &l.history, &added, err);
            fprintf(stderr, "session %zu, %s: %zu tokens, %zu calls%s\n", i, list.ids[i], l.history.n,
                l.history.n_calls, added ? "" : ", left out or nothing quoted");
        }
        log_history_free(&l);
    }
    learn_gatherer_close(&g);
    for (size_t i = 0; i < list.n; i++) free(list.ids[i]);
    free(list.ids);
    agent_log_close(log);
    return rc;
}

/* --- networks ------------------------------------------------------------------------------------------- */

static void print_share(const bench *b, uint64_t seed, double share, const bool *is_used, const double *rule,
    const double *learned, const double *newest)
{
    for (size_t i = 0; i < b->set.n_sessions; i++)
        if (!is_used[i] && rule[i] == rule[i])
            fprintf(b->out,
                "{\"bench\":\"learn\",\"model\":\"%.12s\",\"session\":%u,\"task\":%u,\"seed\":%llu,\"share\":"
                "%.1f,"
                "\"rule\":%.4f,\"learned\":%.4f,\"newest\":%.4f}\n",
                model_get_info(b->model)->hash, b->numbers[i], b->set.sessions[i].group,
                (unsigned long long)seed, share, rule[i], learned[i], newest[i]);
}

/* Where --networks and --keep want it. */
static int keep_network(const bench *b, const kv_residual *r, uint64_t seed, const char *hash, base_err *err)
{
    int rc = 0;
    if (b->networks) {
        base_buf path = {0};
        base_buf_printf(&path, "%s/%llu.residual", b->networks, (unsigned long long)seed);
        rc = base_fs_mkdirs(b->networks, err);
        if (!rc) rc = kv_residual_save(r, path.data, err);
        base_buf_free(&path);
    }
    if (!rc && b->keep && seed == FIRST_SEED) {
        char *path = kv_residual_path(hash);
        rc = kv_residual_save(r, path, err);
        free(path);
    }
    return rc;
}

static int run_seed(bench *b, uint64_t seed, const bool *is_used, base_pool *pool, base_err *err)
{
    const char *hash = model_get_info(b->model)->hash;
    double *rule = base_xcalloc(3 * b->set.n_sessions + 1, sizeof *rule), *learned = rule + b->set.n_sessions,
           *newest = learned + b->set.n_sessions;
    learn_options o = LEARN_DEFAULTS;
    kv_residual *r = NULL;
    o.seed = seed;
    o.epochs = (uint32_t)b->epochs;
    o.pool = pool;
    int rc = learn_train(&b->set, is_used, hash, &o, &r, err);
    for (int i = 0; i < N_SHARES && !rc; i++) {
        rc = learn_recall(&b->set, LEARN_RULE, NULL, shares[i], rule, err);
        if (!rc) rc = learn_recall(&b->set, LEARN_NEWEST, NULL, shares[i], newest, err);
        if (!rc) rc = learn_recall(&b->set, LEARN_CORRECTED, r, shares[i], learned, err);
        if (!rc) print_share(b, seed, shares[i], is_used, rule, learned, newest);
    }
    if (!rc)
        fprintf(stderr, "seed %llu: %u sessions, %u places\n", (unsigned long long)seed, r->n_sessions,
            r->n_places);
    if (!rc) rc = keep_network(b, r, seed, hash, err);
    kv_residual_unref(r);
    free(rule);
    return rc;
}

static int read_json(const char *path, base_json_doc **ret, base_err *err)
{
    base_buf file = {0};
    int rc = base_fs_read(path, FILE_MOST, &file, err);
    if (!rc) rc = base_json_parse(file.data ? file.data : "", file.len, ret, err);
    base_buf_free(&file);
    return rc;
}

static int run(bench *b, base_err *err)
{
    base_json_doc *doc = NULL, *untouched = NULL;
    base_pool *pool = NULL;
    int rc = bench_open_out(&b->out, b->out_path, false, NULL, err);
    if (!rc && b->file) rc = read_json(b->file, &doc, err);
    if (!rc && b->untouched) rc = read_json(b->untouched, &untouched, err);
    if (!rc) rc = cmd_open_model(&b->common, &b->model, err);
    if (!rc)
        rc = doc ? gather(b, base_json_root(doc), untouched ? base_json_root(untouched) : NULL, err)
                 : gather_logged(b, err);
    if (!rc) rc = base_pool_new(&pool, b->common.threads > 0 ? (int)b->common.threads : 2, err);
    bool *is_used = base_xcalloc(b->set.n_sessions + 1, sizeof *is_used);
    for (size_t i = 0; i < b->set.n_sessions; i++) is_used[i] = b->set.sessions[i].group % HELD_OUT != 0;
    for (int64_t i = 0; i < b->seeds && !rc; i++)
        rc = run_seed(b, FIRST_SEED + (uint64_t)i, is_used, pool, err);
    free(is_used);
    base_pool_free(pool);
    if (b->out && b->out != stdout) fclose(b->out);
    base_json_free(doc);
    base_json_free(untouched);
    return rc;
}

/* --- the table ------------------------------------------------------------------------------------------ */

typedef struct result {
    uint32_t session, seed;
    double share, rule, learned, newest;
} result;

typedef struct results {
    result *items;
    size_t n, cap;
} results;

static void take_line(void *user, const base_json *v)
{
    results *all = user;
    base_grow(&all->items, &all->cap, all->n + 1, sizeof *all->items);
    all->items[all->n++] = (result){.session = (uint32_t)base_json_int(v, "session", 0),
        .seed = (uint32_t)base_json_int(v, "seed", 0),
        .share = base_json_num(v, "share", 0),
        .rule = base_json_num(v, "rule", 0),
        .learned = base_json_num(v, "learned", 0),
        .newest = base_json_num(v, "newest", 0)};
}

/* Mean difference over sessions, each the mean over its seeds (seed 0: all of them), with its 95% interval. */
static void print_row(const results *all, double share, uint32_t seed)
{
    double *sums = base_xcalloc(all->n + 1, sizeof *sums), rule = 0, learned = 0, newest = 0, mean, low, high;
    uint32_t *counts = base_xcalloc(all->n + 1, sizeof *counts), *ids = base_xcalloc(all->n + 1, sizeof *ids),
             n = 0, n_lines = 0, better = 0, worse = 0;
    for (size_t i = 0; i < all->n; i++) {
        const result *r = &all->items[i];
        uint32_t at = 0;
        if (fabs(r->share - share) > .01 || (seed && r->seed != seed)) continue;
        while (at < n && ids[at] != r->session) at++;
        ids[at] = r->session;
        if (at == n) n++;
        sums[at] += r->learned - r->rule;
        counts[at]++;
        rule += r->rule;
        learned += r->learned;
        newest += r->newest;
        n_lines++;
    }
    for (uint32_t i = 0; i < n; i++) {
        sums[i] /= counts[i];
        better += sums[i] > 1e-9;
        worse += sums[i] < -1e-9;
    }
    bench_bootstrap(sums, n, 1, &mean, &low, &high);
    char name[16] = "all seeds";
    if (seed) snprintf(name, sizeof name, "%u", seed);
    if (n)
        printf("%3.0f%%  %-9s %3u  %.3f   %.3f  %.3f    %+.3f [%+.3f, %+.3f]  %u, %u\n", share * 100, name, n,
            newest / n_lines, rule / n_lines, learned / n_lines, (learned - rule) / n_lines, low, high,
            better, worse);
    free(sums);
    free(counts);
    free(ids);
}

static int summarise(const char *path, base_err *err)
{
    results all = {0};
    const int rc = bench_read_results(path, take_line, &all, err);
    if (!rc)
        puts("rows  seed        n  newest rule   learned  learned less rule, 95% by session  better, worse");
    for (int i = 0; i < N_SHARES && !rc; i++)
        for (uint32_t seed = 0; seed < 4; seed++)
            print_row(&all, shares[i], seed < 3 ? FIRST_SEED + seed : 0);
    free(all.items);
    return rc;
}

int bench_learn(int argc, char **argv)
{
    bench b = {
        .common = COMMON_OPTIONS_DEFAULTS, .sessions = INT32_MAX, .seeds = 3, .most = 8000, .epochs = 2};
    const option_row own[] = {
        {"--file", OPTION_TEXT, &b.file},
        {"--logged", OPTION_FLAG, &b.is_logged},
        {"--untouched", OPTION_TEXT, &b.untouched},
        {"--sessions", OPTION_INTEGER, &b.sessions},
        {"--seeds", OPTION_INTEGER, &b.seeds},
        {"--most", OPTION_INTEGER, &b.most},
        {"--epochs", OPTION_INTEGER, &b.epochs},
        {"--keep", OPTION_FLAG, &b.keep},
        {"--networks", OPTION_TEXT, &b.networks},
        {"--out", OPTION_TEXT, &b.out_path},
        {"--summary", OPTION_TEXT, &b.summary},
        {.name = NULL},
    };
    base_err err = {0};
    int rc;
    if (!cmd_begin(argc, argv, &b.common, own, &(cmd_words){.usage = usage}, &rc)) return rc;
    if (!rc && !b.summary &&
        (!b.file == !b.is_logged || b.sessions < 1 || b.seeds < 1 || b.seeds > 3 || b.most < 1 ||
            b.epochs < 1 || b.epochs > 100))
        rc = base_fail(&err, BASE_E_USAGE,
            "--file or --logged names the sessions; --seeds is 1 to 3, --epochs 1 to 100");
    if (!rc) rc = b.summary ? summarise(b.summary, &err) : run(&b, &err);
    learn_set_free(&b.set);
    free(b.numbers);
    model_close(b.model);
    return rc ? cmd_complain(&err) : CMD_OK;
}
