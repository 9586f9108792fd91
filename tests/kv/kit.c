/* See kit.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/hash.h"
#include "kit.h"
#include "kv/core/state.h"

static void see(void *user, const kv_plan *p)
{
    kit_seen *s = user;
    s->n_plans++;
    s->last_cause = p->cause;
    s->promoted += p->promoted;
    s->evicted += p->evicted;
    for (uint32_t i = 0; i < p->n_runs; i++)
        s->by_reason[p->runs[i].reason] += p->runs[i].to - p->runs[i].from;
}

char kit_folder[64], kit_row_path[96];

int kit_make_folder(void **state)
{
    snprintf(kit_folder, sizeof kit_folder, "/tmp/kvist-test-XXXXXX");
    if (!mkdtemp(kit_folder)) return -1;
    snprintf(kit_row_path, sizeof kit_row_path, "%s/s.rows", kit_folder);
    return 0;
}

int kit_remove_folder(void **state)
{
    return base_fs_remove(kit_folder, NULL);
}

kv_session *kit_open_as(fake_model *m, uint32_t n_ctx, const kv_options *o)
{
    const kv_compute c = fake_compute(m, n_ctx);
    kv_session *s = NULL;
    base_err err = {0};
    if (kv_session_new_over(&s, &c, o, NULL, &err)) fail_msg("%s", err.msg);
    return s;
}

kv_session *kit_open(fake_model *m, const kv_options *o, kit_seen *log)
{
    const kv_compute c = fake_compute(m, KIT_CTX);
    const kv_observer observer = {.user = log, .plan = see};
    kv_session *s = NULL;
    base_err err = {0};
    if (kv_session_new_over(&s, &c, o, log ? &observer : NULL, &err)) fail_msg("%s", err.msg);
    return s;
}

kv_session *kit_open_session(
    fake_model *m, uint32_t n_ctx, uint32_t budget, const char *policy, const kv_observer *observer)
{
    const kv_compute c = fake_compute(m, n_ctx);
    const kv_options o = {.budget = budget, .policy = policy, .repair = -1};
    kv_session *s = NULL;
    base_err err = {0};
    if (kv_session_new_over(&s, &c, &o, observer, &err)) fail_msg("%s", err.msg);
    return s;
}

model *kit_open_tiny(const tiny_gguf *spec, int n_threads)
{
    char *path = tiny_gguf_temp(spec);
    assert_non_null(path);
    model *m = NULL;
    base_err err = {0};
    if (model_open(&m, path, &(model_options){.n_threads = n_threads, .backend = "cpu"}, &err))
        fail_msg("%s", err.msg);
    unlink(path);
    free(path);
    return m;
}

void kit_make_ids(int32_t *ids, uint32_t n, uint32_t n_vocab, uint64_t seed)
{
    for (uint32_t i = 0; i < n; i++) ids[i] = (int32_t)test_below(&seed, n_vocab);
}

void kit_make_classes(int32_t *ids, uint32_t n, uint32_t n_classes, uint64_t seed)
{
    for (uint32_t i = 0; i < n; i++)
        ids[i] = (int32_t)(test_below(&seed, n_classes) + FAKE_CLASSES * test_below(&seed, 5));
}

void kit_append_segment(kv_session *s, kv_segment g, const int32_t *ids, uint32_t n)
{
    base_err err = {0};
    if (kv_session_append(s, &g, ids, n, NULL, NULL, &err)) fail_msg("%s", err.msg);
}

void kit_fold(kv_session *s)
{
    s->fold.gaps = calloc(1, sizeof *s->fold.gaps);
    assert_non_null(s->fold.gaps);
    s->fold.n = s->fold.cap = 1;
}

uint32_t kit_active_in(const kv_session *s, uint32_t from, uint32_t to)
{
    static uint32_t lanes[KIT_CTX];
    kv_session_active_lanes(s, lanes);
    uint32_t n = 0;
    for (uint32_t i = from; i < to; i++) n += lanes[i] == FAKE_LANES;
    return n;
}

void kit_append(kv_session *s, kv_origin origin, uint32_t turn, const int32_t *ids, uint32_t n, float *logits)
{
    const kv_segment g = {.origin = origin, .turn = turn};
    base_err err = {0};
    kv_stats before, after;
    kv_session_get_stats(s, &before);
    if (kv_session_append(s, &g, ids, n, logits, NULL, &err)) fail_msg("%s", err.msg);
    kv_session_get_stats(s, &after);
    assert_int_equal(after.n_tokens, before.n_tokens + n);
}

void kit_fold_plan(void *user, const kv_plan *p)
{
    base_buf blob = {0};
    kv_plan_pack(p, &blob);
    uint64_t *hash = user;
    *hash = base_hash64(blob.data, blob.len, *hash);
    base_buf_free(&blob);
}

void kit_assert_same_logits(const float *a, const float *b)
{
    assert_memory_equal(a, b, FAKE_VOCAB * sizeof *a);
}
