/*
 * The sequence: making a session, its policy, cutting back, forking. See session.h; append.c is how it grows, what is kept and what
 * comes back is decided in select.c and repair.c.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "kv/core/state.h"
#include "kv/disk/disk.h"
#include "kv/evict/evict.h"
#include "kv/flow/flow.h"
#include "kv/plan/apply.h"
#include "kv/plan/plan.h"
#include "kv/policy/policy.h"
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

int kv__session_allocate(kv_session **ret, const kv_compute *compute, const kv_options *options,
    const kv_observer *observer, base_err *err)
{
    const kv_policy *policy = kv_policy_find(options->policy, err);
    if (!policy) return BASE_E_USAGE;
    kv_session *s = base_xcalloc(1, sizeof *s);
    s->policy = policy;
    s->compute = *compute;
    s->n_lanes = model_rows_lanes(&compute->shape);
    s->n_ctx = options->n_ctx && options->n_ctx < compute->n_ctx ? options->n_ctx : compute->n_ctx;
    s->budget = policy->score ? options->budget : 0;
    s->automatic = true;
    s->turn = 0;
    if (observer) s->observer = *observer;
    kv_table_init(&s->table, &compute->shape);
    kv_table_init(&s->prefix.table, &compute->shape);
    s->table.device = s->prefix.table.device = compute->device;
    kv_signal_init(&s->request, compute->shape.n_layer, compute->n_head, compute->shape.head_dim);
    kv_signal_init(&s->recent, compute->shape.n_layer, compute->n_head, compute->shape.head_dim);
    kv_signal_init(&s->asked, compute->shape.n_layer, compute->n_head, compute->shape.head_dim);
    kv_signal_init(&s->waiting.kept, compute->shape.n_layer, compute->n_head, compute->shape.head_dim);
    int r = kv_parameters_parse(&policy->defaults, options->set, &s->parameters, err);
    if (r) goto fail;
    s->repair = options->repair >= 0 ? options->repair : policy->repair;
    const size_t n = (size_t)s->n_ctx + 1;
    s->ids = calloc(n, sizeof *s->ids);
    s->phases = calloc(n, sizeof *s->phases);
    s->tokens = calloc(n, sizeof *s->tokens);
    s->file_row = calloc(n, sizeof *s->file_row);
    s->row_hash = calloc(n, sizeof *s->row_hash);
    s->cut = calloc(n, sizeof *s->cut);
    s->pending = KV_NO_ROW;
    s->pinned = calloc(kv_bits_words(n), sizeof *s->pinned);
    s->barred = calloc(kv_bits_words(n), sizeof *s->barred);
    s->stale = calloc(kv_bits_words(n), sizeof *s->stale);
    s->dead = calloc(kv_bits_words(n), sizeof *s->dead);
    if (!s->ids || !s->phases || !s->tokens || !s->file_row || !s->row_hash || !s->cut || !s->pinned ||
        !s->barred || !s->stale || !s->dead) {
        r = base_fail(
            err, BASE_E_NOMEM, "no memory for a session of %u tokens; choose a smaller --ctx", s->n_ctx);
        goto fail;
    }
    r = kv_lists_init(&s->lists, s->n_lanes, s->n_ctx, err);
    if (r) goto fail;
    s->row_path = base_xstrdup(options->row_file);
    if (options->prefix_file) kv__prefix_load(s, options->prefix_file);
    kv__heads_load(s, options->heads_file);
    s->pivot_path = base_xstrdup(options->pivot_file);
    if (options->pivot_file)
        s->pivot = kv_pivot_load(options->pivot_file, compute->hash, compute->shape.n_layer);
    *ret = s;
    return 0;
fail:
    kv_session_free(s);
    return r;
}

int kv_session_new_over(kv_session **ret, const kv_compute *compute, const kv_options *options,
    const kv_observer *observer, base_err *err)
{
    kv_session *s = NULL;
    int r = kv__session_allocate(&s, compute, options, observer, err);
    if (r) return r;
    const uint32_t least = (uint32_t)s->parameters.sinks + (uint32_t)s->parameters.window + KV_CHUNK;
    if (s->budget && s->budget < least) {
        r = base_fail(err, BASE_E_LIMIT,
            "a cache budget of %u rows is too small; give at least %u, and what the fixed prompt takes",
            s->budget, least);
        kv_session_free(s);
        return r;
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
    for (size_t i = 0; i < s->n_parts; i++) kv__part_fini(&s->parts[i]);
    for (uint32_t i = 0; i < s->n_journal; i++) base_buf_free(&s->journal[i].blob);
    kv_table_fini(&s->table);
    kv_table_fini(&s->prefix.table);
    kv_lists_fini(&s->lists);
    kv_signal_fini(&s->request);
    kv_signal_fini(&s->recent);
    kv_signal_fini(&s->asked);
    kv_signal_fini(&s->waiting.kept);
    kv_rowfile_close(s->file);
    kv__reading_free(s->reading);
    kv__visit_free(s->visit);
    kv_ranker_free(&s->ranker);
    free(s->prefix.ids);
    free(s->parts);
    free(s->ids);
    free(s->phases);
    free(s->tokens);
    free(s->file_row);
    free(s->row_hash);
    free(s->cut);
    free(s->pinned);
    free(s->barred);
    free(s->stale);
    free(s->dead);
    if (s->tier) close(s->tier);
    kv_memory_unref(s->memory);
    free(s->heavy);
    free(s->heads);
    free(s->best_heads);
    free(s->pivot);
    free(s->pivot_path);
    free(s->logits);
    free(s->row_path);
    free(s);
}

int kv_session_evict(kv_session *s, const atomic_bool *cancel, base_err *err)
{
    return kv__evict(s, NULL, cancel, err);
}

int kv_session_set_policy(kv_session *s, const kv_options *options, base_err *err)
{
    kv_parameters parameters;
    const kv_policy *policy = kv_policy_find(options->policy, err);
    if (!policy) return BASE_E_USAGE;
    int r = kv_parameters_parse(&policy->defaults, options->set, &parameters, err);
    if (!r && s->pending != KV_NO_ROW) r = kv__settle(s, NULL, err); /* by the rules it was cut by */
    if (r) return r;
    s->policy = policy;
    s->parameters = parameters;
    kv__reading_free(s->reading);
    s->reading = NULL;
    s->repair = options->repair >= 0 ? options->repair : policy->repair;
    s->budget = 0;
    if (policy->score && options->budget) {
        const uint32_t hard = kv__count_hard(s);
        if (options->budget < hard + KV_CHUNK && !options->bare)
            return base_fail(err, BASE_E_LIMIT,
                "a budget of %u rows is too small: %u are protected, so at least %u", options->budget, hard,
                hard + KV_CHUNK);
        s->budget = options->budget;
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

/* The request that was cut off is no longer it. An older one's queries are gone, but it was asked: nobody else stands in. */
static void find_older_request(kv_session *s)
{
    s->has_request = false;
    for (size_t i = s->n_parts; i-- > 0 && !s->has_request;)
        if (s->parts[i].origin == KV_ORIGIN_USER) {
            s->has_request = true;
            s->request_turn = s->parts[i].turn;
        }
}

int kv_session_truncate(kv_session *s, uint32_t n, base_err *err)
{
    if (n > s->n)
        return base_fail(err, BASE_E_USAGE, "cannot cut a session of %u tokens back to %u", s->n, n);
    if (n == s->n) return 0;
    kv_lists_truncate(&s->lists, n);
    kv_table_truncate(&s->table, n);
    kv__reading_cut(s, n);
    kv__visit_cut(s, n);
    kv_bits_clear_range(s->pinned, n, s->n);
    kv_bits_clear_range(s->barred, n, s->n);
    kv_bits_clear_range(s->stale, n, s->n);
    kv_bits_clear_range(s->dead, n, s->n);
    while (s->n_parts && s->parts[s->n_parts - 1].from >= n) kv__part_fini(&s->parts[--s->n_parts]);
    if (s->n_parts && s->parts[s->n_parts - 1].to > n) s->parts[s->n_parts - 1].to = n;
    for (uint32_t i = 0; i < s->n_journal; i++)
        if (s->journal[i].n_valid > n) s->journal[i].n_valid = n;
    s->memory = kv_memory_rewind(s->memory, n);
    kv_signal_crop(&s->recent, 0, n);
    kv_signal_crop(&s->asked, 0, n);
    if (s->waiting.kept.n && s->waiting.kept.tokens[s->waiting.kept.n - 1] >= n)
        kv_signal_fini(&s->waiting.kept);
    if (s->pending != KV_NO_ROW && s->pending >= n) s->pending = KV_NO_ROW;
    if (s->judged_to > n) s->judged_to = 0;
    if (s->read_to > n) s->read_to = n;
    if (s->request.n && s->request.tokens[s->request.n - 1] >= n) {
        kv_signal_crop(&s->request, 0, n);
        if (!s->request.n) find_older_request(s);
    }
    if (s->holed) {
        const uint32_t cut[] = {n, UINT32_MAX};
        s->schedule = base_hash64(cut, sizeof cut, s->schedule);
    }
    s->n = n;
    s->logits_at = 0;
    s->epoch++;
    return 0;
}

int kv_session_fork(const kv_session *s, kv_session **ret, const kv_observer *observer, base_err *err)
{
    kv_session *f = NULL;
    const kv_options options = {
        .budget = s->budget, .policy = s->policy->info.name, .repair = s->repair, .n_ctx = s->n_ctx};
    int r = kv__session_allocate(&f, &s->compute, &options, observer, err);
    if (r) return r;
    f->parameters = s->parameters;
    f->automatic = s->automatic;
    kv_lists_fini(&f->lists);
    r = kv_lists_copy(&f->lists, &s->lists, err);
    if (!r) r = kv_table_share(&f->table, &s->table, err);
    if (!r) r = kv_signal_copy(&f->request, &s->request, err);
    if (!r) r = kv_signal_copy(&f->recent, &s->recent, err);
    if (!r) r = kv_signal_copy(&f->asked, &s->asked, err);
    if (!r) r = kv_signal_copy(&f->waiting.kept, &s->waiting.kept, err);
    if (r) {
        kv_session_free(f);
        return r;
    }
    f->n = s->n;
    memcpy(f->ids, s->ids, s->n * sizeof *s->ids);
    memcpy(f->phases, s->phases, s->n * sizeof *s->phases);
    memcpy(f->tokens, s->tokens, s->n * sizeof *s->tokens);
    memset(f->file_row, 0xff, s->n * sizeof *f->file_row); /* KV_NO_ROW */
    memcpy(f->cut, s->cut, s->n * sizeof *s->cut);
    f->pending = s->pending;
    f->judged_from = s->judged_from;
    f->judged_to = s->judged_to;
    f->read_to = s->read_to;
    f->waiting.origin = s->waiting.origin;
    f->waiting.turn = s->waiting.turn;
    f->waiting.is_whole = s->waiting.is_whole;
    memcpy(f->pinned, s->pinned, kv_bits_words(s->n) * sizeof *s->pinned);
    memcpy(f->barred, s->barred, kv_bits_words(s->n) * sizeof *s->barred);
    memcpy(f->stale, s->stale, kv_bits_words(s->n) * sizeof *s->stale);
    memcpy(f->dead, s->dead, kv_bits_words(s->n) * sizeof *s->dead);
    for (size_t i = 0; i < s->n_parts; i++) kv__part_add(f, &s->parts[i]);
    f->turn = s->turn;
    f->epoch = s->epoch;
    f->schedule = s->schedule;
    f->holed = s->holed;
    f->has_request = s->has_request;
    f->request_turn = s->request_turn;
    f->reused = s->n;
    f->memory = kv_memory_ref(s->memory);
    if (s->heavy) {
        const size_t n = (size_t)s->n_lanes * s->n_ctx;
        f->heavy = base_xmalloc((n + 1) * sizeof *f->heavy);
        memcpy(f->heavy, s->heavy, n * sizeof *f->heavy);
    }
    f->pivot_path = base_xstrdup(s->pivot_path);
    if (s->pivot) {
        f->pivot = base_xmalloc(sizeof *f->pivot);
        *f->pivot = *s->pivot;
    }
    if (s->best_heads) {
        const size_t n = (size_t)s->compute.shape.n_layer * s->compute.n_head;
        f->best_heads = base_xmalloc(n * sizeof *f->best_heads);
        memcpy(f->best_heads, s->best_heads, n * sizeof *f->best_heads);
    }
    if (s->heads) {
        const size_t n = (size_t)s->compute.shape.n_layer * s->compute.n_head;
        f->heads = base_xmalloc(n);
        memcpy(f->heads, s->heads, n);
    }
    if (s->logits && s->logits_at == s->n) {
        f->logits = base_xmalloc(s->compute.n_vocab * sizeof *f->logits);
        memcpy(f->logits, s->logits, s->compute.n_vocab * sizeof *f->logits);
        f->logits_at = s->n;
    }
    for (uint32_t i = 0; i < s->n_journal; i++) {
        f->journal[i] = (kv_entry){.n_valid = s->journal[i].n_valid};
        base_buf_add(&f->journal[i].blob, s->journal[i].blob.data, s->journal[i].blob.len);
    }
    f->n_journal = s->n_journal;
    *ret = f;
    return 0;
}

int kv_session_apply(kv_session *s, const kv_plan *plan, base_err *err)
{
    /* Ranks of a pass break the ties of later ones, and a plan does not hold them. */
    const bool judged = plan->cause == KV_CAUSE_EVICT || plan->cause == KV_CAUSE_PRESSURE;
    const uint64_t before = s->epoch;
    int r = judged && !s->automatic ? kv__look_again(s, err) : 0;
    if (!r) r = kv__apply(s, plan, true, NULL, err);
    return !r && plan->cause == KV_CAUSE_PRUNE && s->epoch != before ? kv__settled(s, err) : r;
}

int kv_session_logits(kv_session *s, float *logits, const atomic_bool *cancel, base_err *err)
{
    if (!s->n) return base_fail(err, BASE_E_STATE, "an empty session has no next token");
    if (s->pending != KV_NO_ROW) {
        const int r = kv__settle(s, cancel, err);
        if (r) return r;
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
    int r = kv__session_allocate(&s, compute, options, observer, err);
    if (r) return r;
    r = kv__snapshot_read(s, err);
    if (r) {
        kv_session_free(s);
        return r;
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
