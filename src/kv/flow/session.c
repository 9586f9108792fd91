/*
 * A session's life: made, given another policy, truncated, forked, resumed, freed. append.c is how it grows;
 * evict/ and repair/ decide what stays and what comes back.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "kv/core/groups.h"
#include "kv/disk/disk.h"
#include "kv/evict/evict.h"
#include "kv/flow/flow.h"
#include "kv/plan/apply.h"
#include "kv/plan/plan.h"
#include "kv/policy/policy.h"
#include "kv/policy/residual.h"
#include "kv/prune/pivot.h"
#include "kv/prune/prune.h"
#include "kv/read/reading.h"
#include "kv/read/split.h"
#include "kv/read/visit.h"
#include "kv/repair/repair.h"
#include "kv/session.h"
#include "model/text/tokenizer.h"

static const char *const origin_words[KV_N_ORIGINS] = {
    "system", "scaffold", "instructions", "user", "context", "tool", "answer", "call"};

const char *kv_origin_word(kv_origin o)
{
    return (unsigned)o < KV_N_ORIGINS ? origin_words[o] : "";
}

/* Of the parameters that hold now: the file of this model, once, or nothing. */
static int load_residual(kv_session *s, base_err *err)
{
    if (!(s->parameters.residual > 0)) {
        kv_residual_unref(s->residual);
        s->residual = NULL;
        return 0;
    }
    if (!strstr(s->policy->info.parameters, "residual"))
        return base_fail(err, BASE_E_USAGE,
            "residual=on corrects the rule of the policy intentkv, and %s has none: add --kv-policy intentkv",
            s->policy->info.name);
    if (s->residual) return 0;
    char *path = kv_residual_path(s->compute.hash);
    int rc = kv_residual_load(path, s->compute.hash, s->compute.shape.head_dim, &s->residual, err);
    if (rc == BASE_E_NOT_FOUND)
        rc = base_fail(err, BASE_E_USAGE,
            "residual=on needs what `kvist learn` trains on "
            "your own sessions with this model; there is no %s",
            path);
    else if (rc == BASE_E_FORMAT)
        base_err_prefix(err, "%s (`kvist learn` writes it anew)", path);
    free(path);
    return rc;
}

/*
 * Which lanes read everything. Where none does, a budget is all that bounds what is read, so every lane counts as if
 * it did.
 */
static void find_windows(kv_session *s)
{
    const model_rows_shape *shape = &s->compute.shape;
    uint32_t n_layers = 0, widest = 0;
    for (uint32_t layer = 0; layer < shape->n_layer && s->compute.window; layer++) {
        const uint32_t window = s->compute.window(s->compute.user, layer);
        n_layers += window > 0;
        if (window > widest) widest = window;
    }
    if (n_layers == shape->n_layer) n_layers = widest = 0;
    s->n_whole = (shape->n_layer - n_layers) * shape->n_head_kv;
    s->window = widest;
}

int kv__session_allocate(kv_session **ret, const kv_compute *compute, const kv_options *options,
    const kv_observer *observer, base_err *err)
{
    const kv_policy *policy = kv_policy_find(options->policy, err);
    if (!policy) return BASE_E_USAGE;
    kv_session *s = base_xcalloc(1, sizeof *s);
    s->policy = policy;
    s->compute = *compute;
    s->n_lanes = model_rows_lanes(&compute->shape);
    find_windows(s);
    s->asked_ctx = options->n_ctx;
    s->cap = options->n_ctx && options->n_ctx < compute->n_ctx ? options->n_ctx : compute->n_ctx;
    kv__set_limit(s, (kv_limit){policy->score ? options->budget : 0, options->until});
    s->automatic = true;
    s->turn = 0;
    if (observer) s->observer = *observer;
    kv_table_init(&s->prefix.table, &compute->shape);
    s->prefix.table.device = compute->device;
    int rc = kv__groups_init(s, err);
    if (!rc) rc = kv_parameters_parse(&policy->defaults, options->set, &s->parameters, err);
    if (!rc) rc = load_residual(s, err);
    if (rc) goto fail;
    kv__set_end(s);
    s->repair = options->repair >= 0 ? options->repair : policy->repair;
    s->row_path = base_xstrdup(options->row_file);
    s->folded_most = kv__folded_most();
    if (options->prefix_file) kv__prefix_load(s, options->prefix_file);
    kv__heads_load(s, options->heads_file);
    s->pivot_path = base_xstrdup(options->pivot_file);
    if (options->pivot_file)
        s->pivot = kv_pivot_load(options->pivot_file, compute->hash, compute->shape.n_layer);
    *ret = s;
    return 0;
fail:
    kv_session_free(s);
    return rc;
}

int kv_session_new_over(kv_session **ret, const kv_compute *compute, const kv_options *options,
    const kv_observer *observer, base_err *err)
{
    kv_session *s = NULL;
    int rc = kv__session_allocate(&s, compute, options, observer, err);
    if (rc) return rc;
    const uint32_t least = (uint32_t)s->parameters.sinks + (uint32_t)s->parameters.window + KV_BATCH;
    if (s->budget && s->budget < least) {
        rc = base_fail(err, BASE_E_LIMIT,
            "a cache budget of %u rows is too small; give at least %u, and what the fixed prompt takes",
            s->budget, least);
        kv_session_free(s);
        return rc;
    }
    *ret = s;
    return 0;
}

int kv_session_new(
    kv_session **ret, model *m, const kv_options *options, const kv_observer *observer, base_err *err)
{
    const kv_compute compute = kv_compute_model(m);
    return kv_session_new_over(ret, &compute, options, observer, err);
}

void kv_session_free(kv_session *s)
{
    if (!s) return;
    kv__digest_drop_damaged(s);
    kv__groups_free(s);
    kv_table_fini(&s->prefix.table);
    kv_state_drop(&s->states, &s->prefix.state);
    kv_states_free(&s->states);
    kv_rowfile_close(s->file);
    kv__reading_free(s->reading);
    kv__visit_free(s->visit);
    kv_ranker_free(&s->ranker);
    free(s->prefix.ids);
    if (s->tier) close(s->tier);
    free(s->heads);
    free(s->best_heads);
    free(s->pivot);
    free(s->pivot_path);
    free(s->row_path);
    kv_residual_unref(s->residual);
    free(s);
}

int kv_session_evict(kv_session *s, base_err *err)
{
    return kv__evict(s, NULL, NULL, err);
}

int kv_session_set_policy(kv_session *s, const kv_options *options, base_err *err)
{
    kv_parameters parameters;
    const kv_policy *policy = kv_policy_find(options->policy, err);
    if (!policy) return BASE_E_USAGE;
    int rc = kv_parameters_parse(&policy->defaults, options->set, &parameters, err);
    if (!rc && s->pending != KV_NO_ROW) rc = kv__settle(s, NULL, err); /* by the rules it was cut by */
    if (rc) return rc;
    const kv_session before = *s;
    s->policy = policy;
    s->parameters = parameters;
    kv__set_limit(s, (kv_limit){policy->score ? options->budget : 0, options->until});
    kv__set_end(s);
    rc = kv__check_end(s, err);
    if (!rc) rc = load_residual(s, err);
    kv__set_limit(s, (kv_limit){before.budget, before.until});
    if (rc) {
        s->policy = before.policy;
        s->parameters = before.parameters;
        s->n_ctx = before.n_ctx;
        return rc;
    }
    kv__reading_free(s->reading);
    s->reading = NULL;
    kv__crop_request(s);
    s->repair = options->repair >= 0 ? options->repair : policy->repair;
    kv__set_limit(s, (kv_limit){.rows = 0});
    if (policy->score && options->budget) {
        const uint32_t hard = kv__count_hard(s);
        if (options->budget < hard + KV_BATCH && !options->bare)
            return base_fail(err, BASE_E_LIMIT,
                "a budget of %u rows is too small: %u are protected, so at least %u", options->budget, hard,
                hard + KV_BATCH);
        kv__set_limit(s, (kv_limit){options->budget, options->until});
    }
    kv__heads_load(s, options->heads_file);
    return 0;
}

void kv_session_set_turn(kv_session *s, uint32_t turn)
{
    s->turn = turn;
}

void kv_session_set_automatic(kv_session *s, bool on)
{
    s->automatic = on;
}

int kv_session_truncate(kv_session *s, uint32_t n, base_err *err)
{
    if (n > s->n)
        return base_fail(err, BASE_E_USAGE, "cannot cut a session of %u tokens back to %u", s->n, n);
    if (n == s->n) return 0;
    kv__reading_truncate(s, n);
    kv__visit_truncate(s, n);
    kv__groups_truncate(s, n);
    if (s->holed) {
        const uint32_t cut[] = {n, KV_EVENT_TRUNCATED};
        s->schedule = base_hash64(cut, sizeof cut, s->schedule);
    }
    s->epoch++;
    return 0;
}

int kv_session_fork(const kv_session *s, kv_session **ret, const kv_observer *observer, base_err *err)
{
    kv_session *f = NULL;
    const kv_options options = {.budget = s->budget,
        .until = s->until,
        .policy = s->policy->info.name,
        .repair = s->repair,
        .n_ctx = s->asked_ctx};
    int rc = kv__session_allocate(&f, &s->compute, &options, observer, err);
    if (rc) return rc;
    f->parameters = s->parameters;
    f->residual = kv_residual_ref(s->residual);
    f->automatic = s->automatic;
    f->n_ctx = s->n_ctx;
    rc = kv__groups_copy(f, s, err);
    if (!rc) rc = kv__visit_copy(f, s, err);
    if (rc) {
        kv_session_free(f);
        return rc;
    }
    f->reused = s->n;
    const size_t n_heads = (size_t)s->compute.shape.n_layer * s->compute.n_head;
    f->heads = kv__copy_of(s->heads, n_heads, sizeof *s->heads);
    f->best_heads = kv__copy_of(s->best_heads, n_heads, sizeof *s->best_heads);
    f->pivot = kv__copy_of(s->pivot, 1, sizeof *s->pivot);
    f->pivot_path = base_xstrdup(s->pivot_path);
    *ret = f;
    return 0;
}

int kv_session_apply(kv_session *s, const kv_plan *plan, base_err *err)
{
    /* Ranks of a pass break the ties of later ones, and a plan does not hold them. */
    const bool judged = plan->cause == KV_CAUSE_EVICT || plan->cause == KV_CAUSE_PRESSURE;
    const uint64_t before = s->epoch;
    int rc = judged && !s->automatic ? kv__score_again(s, err) : 0;
    if (!rc) rc = kv__apply(s, plan, true, NULL, err);
    return !rc && plan->cause == KV_CAUSE_PRUNE && s->epoch != before ? kv__settled(s, err) : rc;
}

int kv_session_logits(kv_session *s, float *logits, const atomic_bool *cancel, base_err *err)
{
    if (!s->n) return base_fail(err, BASE_E_STATE, "an empty session has no next token");
    if (s->pending != KV_NO_ROW) {
        const int rc = kv__settle(s, cancel, err);
        if (rc) return rc;
    }
    if (s->logits && s->logits_at == s->n) {
        memcpy(logits, s->logits, s->compute.n_vocab * sizeof *logits);
        return 0;
    }
    return kv__recompute(s, s->n - 1, NULL, logits, cancel, err);
}

int kv_session_resume_over(kv_session **ret, const kv_compute *compute, const kv_options *options,
    const kv_observer *observer, base_err *err)
{
    if (!options->row_file) return base_fail(err, BASE_E_USAGE, "there is no row file to resume from");
    kv_session *s = NULL;
    int rc = kv__session_allocate(&s, compute, options, observer, err);
    if (rc) return rc;
    rc = kv__snapshot_read(s, err);
    if (rc) {
        kv_session_free(s);
        return rc;
    }
    s->reused = s->n;
    kv__bring(s);
    *ret = s;
    return 0;
}

int kv_session_resume(
    kv_session **ret, model *m, const kv_options *options, const kv_observer *observer, base_err *err)
{
    const kv_compute compute = kv_compute_model(m);
    return kv_session_resume_over(ret, &compute, options, observer, err);
}
