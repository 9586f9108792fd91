/* Branches of the built-in engine's session, and what is asked in them (contract: engine.h). */
#include <math.h>
#include <stdlib.h>

#include "agent/engine/engine_local_parts.h"
#include "base/buf.h"

void local_end_draft(local *l, bool wrong)
{
    uint32_t n = l->n_drafted, right = l->n_taken > l->n_known ? l->n_taken - l->n_known : 0;
    l->n_known = l->n_drafted = l->n_taken = 0;
    if (!n) return;
    if (wrong || right == n)
        model_lookup_learn(l->lookup, right);
    else
        model_lookup_leave(l->lookup, right);
}

char *local_cache_file(const char *folder, const char *hash, const char *ending)
{
    base_buf path = {0};
    base_buf_printf(&path, "%s/%.24s.%s", folder, hash, ending);
    return base_buf_take(&path);
}

static void enter_branch(local *l, kv_session *branch)
{
    local_end_draft(l, false);
    l->trunk = l->base.session;
    l->base.session = branch;
    l->have_logits = false;
}

int local_fork(engine *e, base_err *err)
{
    local *l = as_local(e);
    kv_session *branch = NULL;
    int rc = kv_session_fork(l->base.session, &branch, NULL, err);
    if (rc) return rc;
    kv_session_set_automatic(branch, false);
    enter_branch(l, branch);
    return 0;
}

int local_fork_fixed(engine *e, const char *name, const int32_t *ids, uint32_t n, base_err *err)
{
    local *l = as_local(e);
    char *file = l->cache ? local_cache_file(l->cache, l->info->hash, name) : NULL;
    const kv_options options = {.policy = "full", .prefix_file = file};
    const kv_segment fixed = {.origin = KV_ORIGIN_SCAFFOLD};
    kv_session *branch = NULL;
    kv_stats s;
    int rc = kv_session_new(&branch, l->model, &options, NULL, err);
    if (!rc) rc = kv_session_append(branch, &fixed, ids, n, NULL, l->cancel, err);
    if (rc) {
        kv_session_free(branch);
    } else {
        kv_session_get_stats(branch, &s);
        /* A convenience, as the fixed prompt's file is: a failure costs only the next session's time. */
        if (file && s.reused < n) kv_session_save_prefix(branch, file, n, NULL);
        enter_branch(l, branch);
    }
    free(file);
    return rc;
}

void local_unfork(engine *e)
{
    local *l = as_local(e);
    if (!l->trunk) return;
    local_end_draft(l, false);
    kv_session_free(l->base.session);
    l->base.session = l->trunk;
    l->trunk = NULL;
    l->have_logits = false;
}

static engine_doubt doubt_of(const float *logits, uint32_t n_vocab, int32_t id)
{
    int32_t best = id ? 0 : 1;
    for (int32_t i = 0; i < (int32_t)n_vocab; i++)
        if (i != id && logits[i] > logits[best]) best = i;
    return (engine_doubt){best, logits[id] - logits[best]};
}

static double log_probability(const float *logits, uint32_t n_vocab, int32_t id)
{
    float most = logits[0];
    double sum = 0;
    for (uint32_t i = 1; i < n_vocab; i++)
        if (logits[i] > most) most = logits[i];
    for (uint32_t i = 0; i < n_vocab; i++) sum += exp(logits[i] - most);
    return logits[id] - most - log(sum);
}

/* What is asked of the logits in front of each token of a text. */
typedef struct asked_of_logits {
    engine_doubt *doubts; /* [n - n_read]; NULL: not asked */
    double *weight;       /* NULL: the same */
} asked_of_logits;

static void ask_logits(
    const local *l, const asked_of_logits *asked, uint32_t at, const float *logits, int32_t id)
{
    if (asked->doubts) asked->doubts[at] = doubt_of(logits, l->info->n_vocab, id);
    if (asked->weight) *asked->weight += log_probability(logits, l->info->n_vocab, id);
}

/* In batches of a draft, since these give the logits behind every token. */
static int ask_in_branch(local *l, kv_session *branch, const int32_t *ids, uint32_t n_read, uint32_t n,
    const asked_of_logits *asked, base_err *err)
{
    const uint32_t n_vocab = l->info->n_vocab;
    const kv_segment segment = {.origin = KV_ORIGIN_CALL};
    int rc = kv_session_logits(branch, l->logits, l->cancel, err);
    if (!rc && !n_read) ask_logits(l, asked, 0, l->logits, ids[0]);
    for (uint32_t at = 0; !rc && at + 1 < n;) {
        uint32_t m = n - 1 - at < KV_DRAFT_MAX ? n - 1 - at : KV_DRAFT_MAX;
        rc = kv_session_draft(branch, &segment, ids + at, m, 0, l->logits, l->cancel, err);
        for (uint32_t i = 0; !rc && i < m; i++) {
            const uint32_t next = at + i + 1;
            if (!rc && next >= n_read)
                ask_logits(l, asked, next - n_read, l->logits + (size_t)i * n_vocab, ids[next]);
            rc = kv_session_accept(branch, &segment, NULL, l->cancel, err);
        }
        at += m;
    }
    return rc;
}

/* In a branch of the sequence, or of its branch. */
static int ask_behind(
    local *l, const int32_t *ids, uint32_t n_read, uint32_t n, const asked_of_logits *asked, base_err *err)
{
    kv_session *branch = NULL;
    if (n <= n_read) return 0;
    if (kv_session_room(l->base.session) <= n)
        return base_fail(err, BASE_E_LIMIT, "%u more tokens do not fit into the context", n);
    int rc = kv_session_fork(l->base.session, &branch, NULL, err);
    if (rc) return rc;
    kv_session_set_automatic(branch, false);
    rc = ask_in_branch(l, branch, ids, n_read, n, asked, err);
    kv_session_free(branch);
    l->have_logits = false; /* their place was used */
    return rc;
}

int local_doubts(engine *e, const int32_t *ids, uint32_t n_read, uint32_t n, engine_doubt *ret, base_err *err)
{
    return ask_behind(as_local(e), ids, n_read, n, &(asked_of_logits){.doubts = ret}, err);
}

int local_weigh(engine *e, const int32_t *ids, uint32_t n, double *ret, base_err *err)
{
    *ret = 0;
    return ask_behind(as_local(e), ids, 0, n, &(asked_of_logits){.weight = ret}, err);
}
