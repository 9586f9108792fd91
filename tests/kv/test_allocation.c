/*
 * Nothing is allocated while tokens are decoded: a warm session appends one token after another over a real
 * forward pass, with lookup, drafts, sampler and grammar as agent/engine/engine_local.c drives them, and every
 * allocation of the process is counted (the linker puts the functions below in front of the library's).
 *
 * Excepted: a block of MODEL_ROWS_BLOCK rows when the last one is full, and what doubles with the sequence
 * (lookup's index).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fs.h"
#include "kv/session.h"
#include "model/ops/rows.h"
#include "model/text/grammar.h"
#include "model/text/lookup.h"
#include "model/text/sampler.h"
#include "tiny_gguf.h"

static _Atomic unsigned n_counted;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_aligned_alloc(size_t alignment, size_t n);
void *__real_mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_aligned_alloc(size_t alignment, size_t n);
void *__wrap_mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset);

void *__wrap_malloc(size_t n)
{
    n_counted++;
    return __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    n_counted++;
    return __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
    n_counted++;
    return __real_realloc(p, n);
}

void *__wrap_aligned_alloc(size_t alignment, size_t n)
{
    n_counted++;
    return __real_aligned_alloc(alignment, n);
}

void *__wrap_mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset)
{
    n_counted++;
    return __real_mmap(at, n, protection, flags, fd, offset);
}

/* ---- decoding ---- */

typedef struct decoder {
    model *m;
    kv_session *s;
    model_sampler *sampler;
    model_lookup *lookup;
    model_grammar *grammar;
    float *logits; /* [KV_DRAFT_MAX][n_vocab] */
    uint32_t n_vocab;
} decoder;

static decoder decoder_open(const char *path, float temperature, uint32_t n_prompt)
{
    static const model_grammar_argument arguments[] = {
        {"line", MODEL_ARGUMENT_INTEGER, true, NULL}, {"text", MODEL_ARGUMENT_STRING, false, NULL}};
    static const model_grammar_tool tool = {"note", arguments, 2};
    decoder d = {0};
    base_err err = {0};
    if (model_open(&d.m, path, &(model_options){.n_threads = 2, .backend = "cpu"}, &err))
        fail_msg("%s", err.msg);
    const model_tokenizer *t = model_get_tokenizer(d.m);
    d.n_vocab = model_get_info(d.m)->n_vocab;
    if (kv_session_new(&d.s, d.m, &(kv_options){.n_ctx = 2048}, NULL, &err)) fail_msg("%s", err.msg);
    d.sampler = model_sampler_new(&(model_sampling){.temperature = temperature,
                                      .top_p = .9f,
                                      .top_k = 40,
                                      .repeat_penalty = 1.1f,
                                      .repeat_last = 64,
                                      .seed = 1},
        d.n_vocab);
    d.lookup = model_lookup_new();
    if (model_grammar_new(&d.grammar, t, MODEL_TOOLS_TAG_TOOLS, &tool, 1, NULL, &err))
        fail_msg("%s", err.msg);
    d.logits = malloc((size_t)KV_DRAFT_MAX * d.n_vocab * sizeof *d.logits);
    int32_t *ids = malloc(n_prompt * sizeof *ids);
    for (uint32_t i = 0; i < n_prompt; i++) ids[i] = (int32_t)(i * i % 37 + 40); /* repeats itself */
    const kv_segment g = {.origin = KV_ORIGIN_USER, .turn = 1};
    if (kv_session_append(d.s, &g, ids, n_prompt, d.logits, NULL, &err)) fail_msg("%s", err.msg);
    free(ids);
    return d;
}

static void decoder_close(decoder *d)
{
    free(d->logits);
    model_grammar_free(d->grammar);
    model_lookup_free(d->lookup);
    model_sampler_free(d->sampler);
    kv_session_free(d->s);
    model_close(d->m);
}

/* n tokens of an answer, of which every third comes with two others that are computed ahead. */
static void decode(decoder *d, uint32_t n)
{
    const kv_segment g = {.origin = KV_ORIGIN_ANSWER, .turn = 1};
    base_err err = {0};
    for (uint32_t done = 0; done < n; done++) {
        uint32_t n_tokens;
        int32_t ids[KV_DRAFT_MAX], found[MODEL_LOOKUP_MAX];
        const int32_t *all = kv_session_ids(d->s, &n_tokens);
        assert_true(kv_session_room(d->s) >= KV_DRAFT_MAX);
        const uint64_t *allowed = model_grammar_few(d->grammar, NULL, 0);
        ids[0] = model_sampler_pick(d->sampler, d->logits, allowed, all, n_tokens, NULL);
        if (model_grammar_accepts(d->grammar, ids[0])) model_grammar_advance(d->grammar, ids[0]);
        model_lookup_sync(d->lookup, all, n_tokens);
        const uint32_t n_found = model_lookup_draft(d->lookup, ids[0], 3, found);
        model_lookup_learn(d->lookup, n_found / 2);
        for (uint32_t i = 1; i < 3; i++) ids[i] = i <= n_found ? found[i - 1] : 41;
        int r;
        if (done % 3) {
            r = kv_session_append(d->s, &g, ids, 1, d->logits, NULL, &err);
        } else {
            r = kv_session_draft(d->s, &g, ids, 3, 0, d->logits, NULL, &err);
            if (!r) r = kv_session_accept(d->s, &g, d->logits, NULL, &err);
        }
        if (r) fail_msg("%s", err.msg);
    }
}

/* Decodes 64 tokens without a new block, then over the end of one. */
static void check_model(const char *path, float temperature)
{
    decoder d = decoder_open(path, temperature, MODEL_ROWS_BLOCK + 10);
    decode(&d, 30);
    unsigned before = n_counted;
    decode(&d, 64);
    if (n_counted != before) fail_msg("%u allocations in 64 tokens", n_counted - before);
    decode(&d, MODEL_ROWS_BLOCK);
    if (n_counted > before + 8) fail_msg("%u allocations for a new block", n_counted - before);
    decoder_close(&d);
}

static void test_allocation__decoding_does_none(void **state)
{
    char *path = tiny_gguf_temp(&TINY_GGUF_QWEN2);
    assert_non_null(path);
    check_model(path, 0);
    check_model(path, 1);
    unlink(path);
    free(path);
}

static void test_allocation__decoding_with_a_window_does_none(void **state)
{
    char *path = tiny_gguf_temp(&TINY_GGUF_GEMMA3);
    assert_non_null(path);
    check_model(path, 0);
    unlink(path);
    free(path);
}

static void test_allocation__decoding_with_smollm2_does_none(void **state)
{
    char *path = tiny_gguf_small_model();
    if (!base_fs_exists(path)) {
        print_message("%s is not there; kvist model get fetches it\n", path);
        free(path);
        skip();
    }
    check_model(path, 1);
    free(path);
}

static void test_allocation__masks_of_a_call_do_none(void **state)
{
    static const char call[] =
        "<tools>{\"name\": \"note\", \"arguments\": {\"line\": 12, \"text\": \"a b\"}}</tools>";
    char *path = tiny_gguf_temp(&TINY_GGUF_QWEN2);
    assert_non_null(path);
    decoder d = decoder_open(path, 0, 10);
    model_ids ids = {0};
    model_tokenizer_encode(model_get_tokenizer(d.m), call, sizeof call - 1, false, &ids);
    for (int pass = 0; pass < 2; pass++) {
        const unsigned before = n_counted;
        model_grammar_reset(d.grammar);
        for (size_t i = 0; i < ids.n; i++) {
            model_grammar_few(d.grammar, NULL, 0);
            model_grammar_mask(d.grammar);
            assert_true(model_grammar_accepts(d.grammar, ids.ids[i]));
            model_grammar_advance(d.grammar, ids.ids[i]);
        }
        if (pass && n_counted != before) fail_msg("%u allocations in a call", n_counted - before);
        model_grammar_reset(d.grammar);
        if (!pass) model_grammar_mask(d.grammar); /* the first mask makes room for all */
    }
    model_ids_free(&ids);
    decoder_close(&d);
    unlink(path);
    free(path);
}

static void test_allocation__counts(void **state)
{
    const unsigned before = n_counted;
    char *path = tiny_gguf_temp(&TINY_GGUF_QWEN2);
    assert_true(n_counted > before);
    unlink(path);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_allocation__counts),
        cmocka_unit_test(test_allocation__decoding_does_none),
        cmocka_unit_test(test_allocation__decoding_with_a_window_does_none),
        cmocka_unit_test(test_allocation__decoding_with_smollm2_does_none),
        cmocka_unit_test(test_allocation__masks_of_a_call_do_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
