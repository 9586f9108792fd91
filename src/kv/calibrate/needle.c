/* Code with hidden constants; see needle.h. */
#include "kv/calibrate/needle.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"

static const char *const names[KV_NEEDLES] = {
    "HARBOR", "VIOLET", "TIMBER", "CANYON", "PEPPER", "GLACIER", "LANTERN", "MARBLE"};
static const char *const verbs[] = {"scale", "merge", "clamp", "shift", "probe", "blend", "count", "split"};
static const char *const nouns[] = {
    "window", "packet", "cursor", "bucket", "signal", "buffer", "record", "column"};

static uint64_t draw(uint64_t seed, uint64_t what, uint64_t i)
{
    const uint64_t key[] = {what, i};
    return base_hash64(key, sizeof key, seed);
}

static unsigned value_of(uint64_t seed, uint32_t needle)
{
    return 1000000u + (unsigned)(draw(seed, 1, needle) % 9000000u);
}

static void add_text(const model_tokenizer *t, const char *text, model_ids *out)
{
    model_tokenizer_encode(t, text, strlen(text), false, out);
}

/* A line of code that has nothing to do with any question. */
static void filler(uint64_t seed, uint32_t line, base_buf *out)
{
    const uint64_t r = draw(seed, 2, line);
    const char *verb = verbs[r % 8], *noun = nouns[r / 8 % 8];
    base_buf_clear(out);
    switch (r / 64 % 4) {
    case 0:
        base_buf_printf(out, "static int %s_%s(int a, int b) { return a * %u + b; }\n", verb, noun,
            (unsigned)(r / 256 % 97));
        break;
    case 1: base_buf_printf(out, "    if (%s > limit) %s_%s(%s, limit);\n", noun, verb, noun, noun); break;
    case 2:
        base_buf_printf(out, "    %s = %s_%s(%s, %u); /* keep the %s in range */\n", noun, verb, noun, noun,
            (unsigned)(r / 256 % 31), noun);
        break;
    default:
        base_buf_printf(out, "    for (int i = 0; i < %u; i++) total += %s[i] - %s_offset;\n",
            (unsigned)(r / 256 % 63), noun, verb);
        break;
    }
}

static void add_needle(kv_needle_text *n, const model_tokenizer *t, uint64_t seed, uint32_t k)
{
    base_buf line = {0};
    kv_needle *needle = &n->needles[k];
    needle->from = (uint32_t)n->text.n;
    base_buf_printf(&line, "static const int LIMIT_%s =", names[k]);
    add_text(t, line.data, &n->text);
    base_buf_clear(&line);
    base_buf_printf(&line, " %u", value_of(seed, k));
    add_text(t, line.data, &n->text);
    add_text(t, ";\n", &n->text);
    needle->to = (uint32_t)n->text.n;
    base_buf_free(&line);
}

void kv_needle_text_make(kv_needle_text *ret, const model_tokenizer *t, const model_template *template,
    uint64_t seed, uint32_t n_tokens)
{
    *ret = (kv_needle_text){.n_lines = 0};
    base_buf line = {0};
    size_t cap = 0;
    uint32_t next = 0;
    model_template_start(template, &ret->text);
    model_template_begin(template, MODEL_ROLE_USER, &ret->text);
    for (uint32_t i = 0; ret->text.n < n_tokens || next < KV_NEEDLES; i++) {
        base_grow(&ret->lines, &cap, ret->n_lines + 1, sizeof *ret->lines);
        ret->lines[ret->n_lines++] = (uint32_t)ret->text.n;
        /* Evenly over the text, none at its very ends, in an order that the seed turns. */
        if (next < KV_NEEDLES && ret->text.n >= (uint64_t)n_tokens * (2 * next + 1) / (2 * KV_NEEDLES)) {
            add_needle(ret, t, seed, (uint32_t)((next * 3 + seed) % KV_NEEDLES));
            next++;
        } else {
            filler(seed, i, &line);
            add_text(t, line.data, &ret->text);
        }
    }
    base_buf_free(&line);
}

void kv_needle_text_free(kv_needle_text *n)
{
    model_ids_free(&n->text);
    free(n->lines);
}

void kv_needle_question_make(kv_needle_question *ret, const model_tokenizer *t,
    const model_template *template, uint64_t seed, const uint32_t asked[KV_NEEDLES_ASKED], bool later)
{
    *ret = (kv_needle_question){.n_queries = 0};
    base_buf word = {0};
    if (later) {
        model_template_end(template, MODEL_ROLE_ASSISTANT, &ret->ids);
        model_template_begin(template, MODEL_ROLE_USER, &ret->ids);
    }
    add_text(t, "\nWhat are the values of", &ret->ids);
    for (uint32_t k = 0; k < KV_NEEDLES_ASKED; k++) {
        base_buf_clear(&word);
        base_buf_printf(&word, "%s LIMIT", k == 0 ? "" : k + 1 < KV_NEEDLES_ASKED ? "," : " and");
        add_text(t, word.data, &ret->ids);
        base_buf_clear(&word);
        base_buf_printf(&word, "_%s", names[asked[k]]);
        const uint32_t from = (uint32_t)ret->ids.n;
        add_text(t, word.data, &ret->ids);
        /* The two last tokens of a name tell it from the others. */
        const uint32_t to = (uint32_t)ret->ids.n;
        for (uint32_t i = to - from > 2 ? to - 2 : from; i < to; i++) ret->queries[ret->n_queries++] = i;
    }
    add_text(t, "? Answer with the names and numbers only.", &ret->ids);
    model_template_end(template, MODEL_ROLE_USER, &ret->tail);
    model_template_begin(template, MODEL_ROLE_ASSISTANT, &ret->tail);
    for (uint32_t k = 0; k < KV_NEEDLES_ASKED; k++) {
        base_buf_clear(&word);
        base_buf_printf(&word, "%sLIMIT_%s =", k ? "\n" : "", names[asked[k]]);
        add_text(t, word.data, &ret->answer);
        ret->asked[k].needle = asked[k];
        ret->asked[k].from = (uint32_t)ret->answer.n;
        base_buf_clear(&word);
        base_buf_printf(&word, " %u", value_of(seed, asked[k]));
        add_text(t, word.data, &ret->answer);
        ret->asked[k].to = (uint32_t)ret->answer.n;
    }
    base_buf_free(&word);
}

void kv_needle_question_free(kv_needle_question *q)
{
    model_ids_free(&q->ids);
    model_ids_free(&q->tail);
    model_ids_free(&q->answer);
}
