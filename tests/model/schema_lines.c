/*
 * What test_schema.py asks of the schema reader, a JSON object a line on the standard input and one back:
 *   {"schema": S, "walks": N, "tokens": L, "seed": K}   N answers of at most L tokens (the end counted), each token
 *                                                       drawn from the mask: {"documents": [text, ...]}
 *   {"schema": S, "check": [TEXT, ...]}                 is each valid: {"verdicts": [true, ...]}
 * or {"refused": sentence}. S is a text. A mask that allows nothing, that says another thing than `accepts`, or an
 * answer that does not end ends the program.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/file/gguf.h"
#include "model/text/answer.h"
#include "tiny_gguf.h"

static uint64_t random_state;

static uint32_t draw(uint32_t below)
{
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)((random_state >> 33) % below);
}

static const model_tokenizer *vocabulary(void)
{
    static base_buf file;
    static gguf_file *g;
    static model_tokenizer *t;
    base_err err = {0};
    if (t) return t;
    tiny_gguf_write(&TINY_GGUF_QWEN2, &file);
    if (gguf_parse(&g, file.data, file.len, &err) || model_tokenizer_load(&t, g, &err)) {
        fprintf(stderr, "%s\n", err.msg);
        exit(1);
    }
    return t;
}

static void give_up(const char *why, const base_buf *text)
{
    fprintf(stderr, "%s behind: %s\n", why, text->data ? text->data : "");
    exit(1);
}

/* A bit that is set; one that fewer bytes begin with is as likely as any other. */
static int32_t pick(const uint64_t *mask, uint32_t n_vocab)
{
    uint32_t n = 0;
    for (uint32_t id = 0; id < n_vocab; id++) n += mask[id / 64] >> (id % 64) & 1;
    if (!n) return -1;
    uint32_t wanted = draw(n);
    for (uint32_t id = 0; id < n_vocab; id++)
        if (mask[id / 64] >> (id % 64) & 1 && !wanted--) return (int32_t)id;
    return -1;
}

/* One answer into `text`. Now and then what must come is taken ahead, as the engine does. */
static void walk(model_answer *a, uint32_t most, base_buf *text)
{
    const model_tokenizer *t = vocabulary();
    const uint32_t n_vocab = model_tokenizer_size(t);
    base_err err = {0};
    if (model_answer_begin(a, NULL, most, &err)) return; /* none is that short: "" */
    for (uint32_t n = 0; n < most; n++) {
        int32_t ahead[16];
        const uint32_t n_ahead = draw(2) ? model_answer_forced(a, ahead, 16) : 0;
        for (uint32_t i = 0; i < n_ahead; i++, n++) {
            size_t len;
            const char *piece = model_tokenizer_piece(t, ahead[i], &len);
            if (!model_answer_accepts(a, ahead[i])) give_up("a token that must come is refused", text);
            model_answer_advance(a, ahead[i]);
            base_buf_add(text, piece, len);
        }
        const uint64_t *mask = model_answer_mask(a);
        if (!mask) give_up("nothing is allowed", text);
        const int32_t other = (int32_t)draw(n_vocab), id = pick(mask, n_vocab);
        if (model_answer_accepts(a, other) != (mask[other / 64] >> (other % 64) & 1))
            give_up("mask and accepts differ", text);
        if (model_tokenizer_is_end(t, id)) return;
        size_t len;
        const char *piece = model_tokenizer_piece(t, id, &len);
        model_answer_advance(a, id);
        base_buf_add(text, piece, len);
        if (draw(400) == 0) model_answer_close(a);
    }
    give_up("the answer does not end", text);
}

static void put_walks(const base_schema *s, const base_json *line, base_buf *out)
{
    model_answer *a = NULL;
    base_err err = {0};
    if (model_answer_new(&a, vocabulary(), s, &err)) {
        base_buf_puts(out, "\"refused\":");
        base_json_put_str(out, err.msg, strlen(err.msg));
        return;
    }
    random_state = (uint64_t)base_json_int(line, "seed", 1);
    base_buf_puts(out, "\"documents\":[");
    for (int64_t i = 0; i < base_json_int(line, "walks", 1); i++) {
        base_buf text = {0};
        base_buf_puts(&text, "");
        walk(a, (uint32_t)base_json_int(line, "tokens", 200), &text);
        if (text.len && base_schema_check(s, text.data, text.len, &err)) give_up(err.msg, &text);
        if (i) base_buf_putc(out, ',');
        base_json_put_str(out, text.data, text.len);
        base_buf_free(&text);
    }
    base_buf_putc(out, ']');
    model_answer_free(a);
}

static void put_verdicts(const base_schema *s, const base_json *list, base_buf *out)
{
    base_buf_puts(out, "\"verdicts\":[");
    for (const base_json *d = list->first; d; d = d->next)
        base_buf_printf(out, "%s%s", d == list->first ? "" : ",",
            base_schema_check(s, d->string, d->string_len, NULL) ? "false" : "true");
    base_buf_putc(out, ']');
}

int main(void)
{
    char *line = NULL;
    size_t cap = 0;
    for (ssize_t n; (n = getline(&line, &cap, stdin)) > 0;) {
        base_json_doc *doc = NULL;
        base_schema *s = NULL;
        base_err err = {0};
        base_buf out = {0};
        if (base_json_parse(line, (size_t)n, &doc, &err)) give_up(err.msg, &out);
        const base_json *root = base_json_root(doc), *check = base_json_get(root, "check");
        const char *text = base_json_str(root, "schema", "");
        base_buf_putc(&out, '{');
        if (base_schema_parse(text, strlen(text), &s, &err)) {
            base_buf_puts(&out, "\"refused\":");
            base_json_put_str(&out, err.msg, strlen(err.msg));
        } else if (check) {
            put_verdicts(s, check, &out);
        } else {
            put_walks(s, root, &out);
        }
        printf("%s}\n", out.data);
        fflush(stdout);
        base_schema_free(s);
        base_json_free(doc);
        base_buf_free(&out);
    }
    free(line);
    return 0;
}
