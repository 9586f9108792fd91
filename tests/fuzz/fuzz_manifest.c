/*
 * Manifests of saved sessions: whatever the bytes, a session comes of them or a sentence. The hash at the end is made right
 * first, since nothing random would get past it.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "kv/core/state.h"
#include "kv/disk/disk.h"
#include "kv/flow/flow.h"
#include "kv/lab/lab.h"
#include "kv/session.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static int never(void *user, const model_batch *batch, base_err *err)
{
    return base_fail(err, BASE_E_UNSUPPORTED, "no model here");
}

static int never_score(void *user, const model_score *score, base_err *err)
{
    return base_fail(err, BASE_E_UNSUPPORTED, "no model here");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    const kv_compute compute = {
        .forward = never,
        .score = never_score,
        .shape = {.n_layer = 2, .n_head_kv = 2, .head_dim = 2},
        .n_head = 4,
        .n_vocab = 32,
        .n_ctx = 200,
        .kernel_version = 1,
    };
    kv_session *s = NULL;
    base_err err;
    uint8_t *copy = malloc(n + 1);
    memcpy(copy, bytes, n);
    if (n >= 8) {
        const uint64_t hash = base_hash64(copy, n - 8, 0);
        memcpy(copy + n - 8, &hash, sizeof hash);
    }
    if (kv__session_allocate(&s, &compute, &(kv_options){.repair = -1}, NULL, &err)) abort();
    kv_manifest_file file;
    if (!kv__manifest_read(s, copy, n, &file, &err) && !kv_table_make_writable(&s->table, 0, s->n, &err)) {
        /* What was accepted must be usable, and stay itself. */
        base_buf out = {0};
        kv__manifest_write(s, &file, &out);
        base_buf_free(&out);
        uint8_t states[200];
        kv_session_token_flags(s, states);
        kv_session_scores(s, NULL, 0);
        kv_score scores[50];
        kv_session_scores(s, scores, 50);
        kv_stats stats;
        kv_session_get_stats(s, &stats);
        while (kv_session_undo_plan(s, &err) == 0) continue;
        if (s->n) {
            kv_session_manual(s, KV_MANUAL_EVICT, 0, s->n, &err);
            kv_session_truncate(s, s->n / 2, &err);
        }
    }
    kv_session_free(s);
    free(copy);
    return 0;
}
