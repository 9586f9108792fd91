/*
 * The few lines that most tests of the cache begin with: sessions over a fake or a little model, tokens for them, and what a plan or
 * a row of logits must be. Failures are cmocka's: include its headers first.
 */
#ifndef KVIST_TESTS_KIT_H
#define KVIST_TESTS_KIT_H

#include "fake_compute.h"
#include "kv/session.h"
#include "tiny_gguf.h"

/* No repair's rows but the policy's own; policy NULL: the usual one. */
kv_session *kit_open_session(
    fake_model *m, uint32_t n_ctx, uint32_t budget, const char *policy, const kv_observer *observer);
model *kit_open_tiny(const tiny_gguf *spec, int n_threads); /* n_threads 0: the machine's */

void kit_make_ids(int32_t *ids, uint32_t n, uint32_t n_vocab, uint64_t seed);
/* All n tokens, as a whole segment. logits may be NULL. */
void kit_append(
    kv_session *s, kv_origin origin, uint32_t turn, const int32_t *ids, uint32_t n, float *logits);

void kit_fold_plan(void *user, const kv_plan *p); /* an observer's; user: uint64_t, a hash of all plans */
void kit_assert_same_logits(const float *a, const float *b); /* of the fake model: FAKE_VOCAB */

#endif
