/*
 * The few lines that most tests of the cache begin with: sessions over a fake or a little model, tokens for
 * them, and what a plan or a row of logits must be. Failures are cmocka's: include its headers first.
 */
#ifndef KVIST_TESTS_KIT_H
#define KVIST_TESTS_KIT_H

#include "fake_compute.h"
#include "kv/session.h"
#include "tiny_gguf.h"

enum { KIT_CTX = 6000 };

/* The plans that a session announced, as far as the tests ask. */
typedef struct kit_seen {
    uint32_t n_plans, promoted, evicted;
    kv_cause last_cause;
    uint32_t by_reason[KV_N_REASONS]; /* tokens in runs of a reason, all plans */
} kit_seen;

/* A session of KIT_CTX tokens whose plans are counted in log (may be NULL). */
kv_session *kit_open(fake_model *m, const kv_options *o, kit_seen *log);
/* No repair's rows but the policy's own; policy NULL: the usual one. */
kv_session *kit_open_session(
    fake_model *m, uint32_t n_ctx, uint32_t budget, const char *policy, const kv_observer *observer);
kv_session *kit_open_as(
    fake_model *m, uint32_t n_ctx, const kv_options *o);    /* as the options say, of n_ctx tokens */
model *kit_open_tiny(const tiny_gguf *spec, int n_threads); /* n_threads 0: the machine's */

/* A test's own folder, and a row file in it: setup and teardown. */
extern char kit_folder[64], kit_row_path[96];
int kit_make_folder(void **state);
int kit_remove_folder(void **state);

void kit_make_ids(int32_t *ids, uint32_t n, uint32_t n_vocab, uint64_t seed);
/* Ids of classes 0..n_classes-1 only: what a query of another class finds is then known. */
void kit_make_classes(int32_t *ids, uint32_t n, uint32_t n_classes, uint64_t seed);
void kit_append_segment(kv_session *s, kv_segment g, const int32_t *ids, uint32_t n);
/* The first 64 tokens are folded from here on, by nothing: no bit that is read changes. */
void kit_fold(kv_session *s);
uint32_t kit_active_in(const kv_session *s, uint32_t from, uint32_t to); /* tokens active in every lane */
/* All n tokens, as a whole segment. logits may be NULL. */
void kit_append(
    kv_session *s, kv_origin origin, uint32_t turn, const int32_t *ids, uint32_t n, float *logits);

void kit_fold_plan(void *user, const kv_plan *p); /* an observer's; user: uint64_t, a hash of all plans */
void kit_assert_same_logits(const float *a, const float *b); /* of the fake model: FAKE_VOCAB */

#endif
