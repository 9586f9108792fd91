/*
 * kvist learn: trains IntentKV's residual (kv/policy/residual.h) on this user's logged sessions of a model, and keeps it
 * only where somebody asks for it: --kv-set residual=on. Sessions are computed once more with everything active; what
 * it learned is told on sessions that it did not see.
 */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/door.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/log_history.h"
#include "learn/gather.h"

static const char usage[] =
    "usage: kvist learn [--model M] [--seed N]\n\n"
    "Trains a small network that corrects which rows "
    "--kv-policy intentkv keeps, on your own logged sessions\n"
    "with a model: 20 at least whose tool calls quote what "
    "was read before. The newest 100 are computed once\n"
    "more, up to 8,192 tokens of each. Its file stays on this machine; --kv-set residual=on uses it.\n";

enum { SESSIONS_LEAST = 20, SESSIONS_MOST = 100, HELD_OUT = 5 };

static atomic_bool cancelled;

static void on_signal(int number)
{
    atomic_store(&cancelled, true);
}

/* Ids of the newest sessions that are nobody's copy. */
typedef struct id_list {
    char *ids[SESSIONS_MOST];
    size_t n;
} id_list;

static void take_row(void *user, const agent_log_row *r)
{
    id_list *l = user;
    if (l->n < SESSIONS_MOST && !r->is_what_if && !(r->parent && *r->parent))
        l->ids[l->n++] = base_xstrdup(r->id);
}

static void say_progress(void *user, double share, double loss)
{
    char line[64];
    snprintf(line, sizeof line, "kvist: training %3.0f%%, loss %.3f", share * 100, loss);
    base_door_progress(line);
}

/* Every session of this model, one group each. */
static int gather(
    agent_log *log, const id_list *ids, const kv_compute *compute, learn_set *set, base_err *err)
{
    learn_gatherer g = {.compute = compute, .cancel = &cancelled};
    int rc = 0;
    for (size_t i = 0; i < ids->n && !rc; i++) {
        log_history l;
        bool added = false;
        rc = log_history_read(log, ids->ids[i], &l, err);
        if (!rc && !strcmp(l.model_hash, compute->hash))
            rc = learn_gather(&g, set, (uint32_t)i, &l.history, &added, err);
        log_history_free(&l);
        char line[64];
        snprintf(line, sizeof line, "kvist: session %zu of %zu", i + 1, ids->n);
        base_door_progress(line);
    }
    learn_gatherer_close(&g);
    return rc;
}

/* The mean over sessions that were held out. */
static int held_out(
    const learn_set *set, const kv_residual *r, const bool *is_used, double share, double *ret, base_err *err)
{
    double *recall = base_xcalloc(set->n_sessions + 1, sizeof *recall), sum = 0;
    uint32_t n = 0;
    const int rc = learn_recall(set, r ? LEARN_CORRECTED : LEARN_RULE, r, share, recall, err);
    for (size_t i = 0; i < set->n_sessions; i++)
        if (!is_used[i] && recall[i] == recall[i]) {
            sum += recall[i];
            n++;
        }
    *ret = n ? sum / n : NAN;
    free(recall);
    return rc;
}

static int train(const learn_set *set, const char *hash, learn_options *o, base_err *err)
{
    static const double shares[] = {.1, .2, .3};
    bool *is_used = base_xcalloc(set->n_sessions + 1, sizeof *is_used);
    kv_residual *r = NULL;
    char *path = kv_residual_path(hash);
    for (size_t i = 0; i < set->n_sessions; i++) is_used[i] = i % HELD_OUT != 0;
    int rc = learn_train(set, is_used, hash, o, &r, err);
    base_door_progress("");
    for (size_t i = 0; i < sizeof shares / sizeof *shares && !rc; i++) {
        double rule, learned;
        rc = held_out(set, NULL, is_used, shares[i], &rule, err);
        if (!rc) rc = held_out(set, r, is_used, shares[i], &learned, err);
        if (!rc)
            printf("%.0f%% of the rows, sessions not trained on: %.3f of "
                   "what the next call quotes by the rule, %.3f corrected\n",
                shares[i] * 100, rule, learned);
    }
    if (!rc) rc = kv_residual_save(r, path, err);
    if (!rc) printf("%u sessions, %u places\n%s\n", r->n_sessions, r->n_places, path);
    kv_residual_unref(r);
    free(path);
    free(is_used);
    return rc;
}

static int learn(const common_options *common, int64_t seed, base_err *err)
{
    agent_log *log = NULL;
    model *m = NULL;
    id_list ids = {.n = 0};
    learn_set set = {0};
    learn_options o = LEARN_DEFAULTS;
    int rc = agent_log_open(&log, NULL, true, err);
    if (!rc) rc = agent_log_list(log, NULL, take_row, &ids, err);
    if (!rc && ids.n < SESSIONS_LEAST)
        rc = base_fail(err, BASE_E_STATE,
            "there %s %zu logged session%s; a network that is trained on fewer than %d learns them by heart",
            ids.n == 1 ? "is" : "are", ids.n, ids.n == 1 ? "" : "s", SESSIONS_LEAST);
    if (!rc) rc = cmd_open_model(common, &m, err);
    if (!rc) {
        const kv_compute compute = kv_compute_model(m);
        rc = gather(log, &ids, &compute, &set, err);
        if (!rc && set.n_sessions < SESSIONS_LEAST)
            rc = base_fail(err, BASE_E_STATE,
                "%zu logged sessions of this model have tool calls that "
                "quote what was read before; at least %d are needed",
                set.n_sessions, SESSIONS_LEAST);
        o.seed = (uint64_t)seed;
        o.progress = say_progress;
        o.cancel = &cancelled;
        if (!rc) rc = base_pool_new(&o.pool, common->threads > 0 ? (int)common->threads : 2, err);
        if (!rc) rc = train(&set, compute.hash, &o, err);
    }
    base_pool_free(o.pool);
    learn_set_free(&set);
    model_close(m);
    for (size_t i = 0; i < ids.n; i++) free(ids.ids[i]);
    agent_log_close(log);
    return rc;
}

int cmd_learn(int argc, char **argv)
{
    common_options common = COMMON_OPTIONS_DEFAULTS;
    int64_t seed = 42;
    const option_row own[] = {
        {"--seed", OPTION_INTEGER, &seed, "N", "the draw of its beginning and order", "42"}, {0}};
    base_err err = {0};
    int status, rc = 0;
    const cmd_words words = {.usage = usage, .is_configured = true};
    if (cmd_begin(argc, argv, &common, own, &words, &status)) {
        struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART | SA_RESETHAND}, before;
        sigaction(SIGINT, &action, &before); /* a second Ctrl+C ends the program */
        rc = learn(&common, seed, &err);
        sigaction(SIGINT, &before, NULL);
    }
    return rc ? cmd_complain(&err) : status;
}
