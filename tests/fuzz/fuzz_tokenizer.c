/* Any bytes as a file with a vocabulary; the same bytes as text. Every id must have a piece. */
#include <stdlib.h>

#include "model/file/gguf.h"
#include "model/text/template.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void encode(const model_tokenizer *t, const uint8_t *bytes, size_t n, bool parse_special)
{
    model_ids ids = {0};
    model_tokenizer_encode(t, (const char *)bytes, n, parse_special, &ids);
    for (size_t i = 0; i < ids.n; i++) {
        size_t n_piece;
        if (!model_tokenizer_piece(t, ids.ids[i], &n_piece)) abort();
        if (!parse_special && model_tokenizer_is_control(t, ids.ids[i]))
            abort(); /* content never makes one */
    }
    model_ids_free(&ids);
}

/* The bytes as what a model wrote, and messages of every role behind it. */
static void converse(const model_template *m, const model_tokenizer *t, const uint8_t *bytes, size_t n)
{
    model_ids ids = {0};
    model_template_start(m, &ids);
    model_tokenizer_encode(t, (const char *)bytes, n, true, &ids);
    for (int role = MODEL_ROLE_SYSTEM; role <= MODEL_ROLE_TOOL; role++) {
        model_template_begin_behind(m, (model_role)role, ids.ids, ids.n, &ids);
        model_template_end_behind(m, (model_role)role, ids.ids, ids.n, &ids);
    }
    for (size_t i = 0; i < ids.n; i++)
        if (model_template_kept_end(m, ids.ids[i]) < 0 && ids.ids[i] >= 0) abort();
    model_ids_free(&ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    gguf_file *f;
    model_tokenizer *t;
    model_template *m;
    if (gguf_parse(&f, bytes, n, NULL) != 0) return 0;
    if (model_tokenizer_load(&t, f, NULL) == 0) {
        encode(t, bytes, n, false);
        encode(t, bytes, n, true);
        for (uint32_t i = 0; i < model_tokenizer_size(t); i++) {
            size_t n_piece;
            const char *piece = model_tokenizer_piece(t, (int32_t)i, &n_piece);
            if (!piece || model_tokenizer_find(t, piece) >= (int32_t)model_tokenizer_size(t)) abort();
        }
        if (model_template_load(&m, f, t, n % 2, NULL) == 0) {
            converse(m, t, bytes, n);
            model_template_free(m);
        }
        model_tokenizer_free(t);
    }
    gguf_close(f);
    return 0;
}
