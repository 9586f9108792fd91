/*
 * A tokenizer elsewhere that answers with anything: the parts behind the first are its answers, in turn. Ids stay within bounds, a
 * request that failed leaves nothing behind, and an id's bytes never change once they were told.
 */
#include "remote/vocab.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static const uint8_t *answers;
static size_t n_answers;

/* In the place of the library's (http.c stays out of the program): no server, and no time that passes. */
int remote_http_ask(
    remote_http *h, const char *path, const char *body, long *ret_status, base_buf *ret, base_err *err)
{
    base_json_doc *doc = NULL;
    if (base_json_parse(body, strlen(body), &doc, NULL)) abort(); /* what we ask is JSON */
    base_json_free(doc);
    if (!n_answers) return base_fail(err, BASE_E_IO, "nothing answers");
    char *answer = scratch_part(&answers, &n_answers);
    base_buf_puts(ret, answer);
    free(answer);
    return 0;
}

static void check_ids(const model_ids *ids, size_t n_before, int rc)
{
    if (rc && ids->n != n_before) abort();
    for (size_t i = 0; i < ids->n; i++)
        if (ids->ids[i] < 0 || ids->ids[i] >= 1 << 22) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    enum { MOST_STEPS = 32, MOST_TEXT = 64 };
    if (n < 2 || n > 1 << 14) return 0;
    const remote_wire *const wire = bytes[0] & 4   ? &remote_wire_sglang
                                    : bytes[0] & 1 ? &remote_wire_vllm
                                                   : &remote_wire_llama;
    const bool begins_known = bytes[0] & 2;
    n_answers = n - 1;
    answers = bytes + 1;
    char *text = scratch_part(&answers, &n_answers);
    const size_t n_text = strlen(text) < MOST_TEXT ? strlen(text) : MOST_TEXT;
    remote_vocab *v = remote_vocab_new(NULL, wire, "model");
    model_ids ids = {0};
    if (begins_known) {
        remote_vocab_set(v, 7, "<|end|>", 7);
        remote_vocab_set_control(v, 7);
    }
    for (int i = 0; i < MOST_STEPS && n_answers; i++) {
        const size_t before = ids.n;
        base_buf out = {0};
        size_t n_piece;
        const char *piece = ids.n ? remote_vocab_piece(v, ids.ids[0], &n_piece) : NULL;
        check_ids(&ids, before, remote_vocab_encode(v, text, n_text, i & 1, &ids, NULL));
        if (ids.n > 4096) ids.n = 4096;
        remote_vocab_fit fit = {0};
        if (!remote_vocab_learn_text(v, ids.ids, ids.n, (base_str){text, n_text}, i & 2, &fit, NULL) &&
            (fit.n > ids.n || fit.n_bytes > n_text || ((i & 2) && fit.n < ids.n)))
            abort();
        remote_vocab_learn(v, ids.ids, (uint32_t)ids.n, NULL);
        if (ids.n) remote_vocab_judge(v, ids.ids[ids.n - 1], NULL);
        remote_vocab_decode(v, ids.ids, (uint32_t)ids.n, &out, NULL);
        if (piece && piece != remote_vocab_piece(v, ids.ids[0], &n_piece)) abort();
        if (!remote_vocab_guess(v, n_text)) abort();
        base_buf_free(&out);
    }
    model_ids_free(&ids);
    remote_vocab_free(v);
    free(text);
    return 0;
}
