/* Documents with needles; see bench/recall/haystack.h. */
#include "bench/recall/haystack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

enum { LINE_MOST = 400 };

static uint32_t draw(uint64_t seed, uint64_t what, uint64_t i)
{
    const uint64_t key[] = {what, i};
    return (uint32_t)(base_hash64(key, sizeof key, seed) >> 32);
}

static void add_text(const model_tokenizer *t, const char *text, size_t n, model_ids *out)
{
    model_tokenizer_encode(t, text, n, false, out);
}

static void add_needle(bench_haystack *h, const model_tokenizer *t, uint64_t seed, uint32_t k)
{
    bench_needle *needle = &h->needles[k];
    base_buf line = {0};
    snprintf(needle->key, sizeof needle->key, "artifact-%05u", 10000 + draw(seed, 1, k) % 90000);
    snprintf(needle->value, sizeof needle->value, "%05u", 10000 + draw(seed, 2, k) % 90000);
    base_buf_printf(&line, "One of the special magic values for %s is: %s.\n", needle->key, needle->value);
    needle->from = (uint32_t)h->ids.n;
    add_text(t, line.data, line.len, &h->ids);
    needle->to = (uint32_t)h->ids.n;
    base_buf_free(&line);
}

/* The token behind which needle k of n lies: evenly over the document, the last one near its end. */
static uint32_t depth_of(uint32_t n_tokens, uint32_t k, uint32_t n)
{
    return k + 1 == n ? (uint32_t)((uint64_t)n_tokens * 95 / 100)
                      : (uint32_t)((uint64_t)n_tokens * (2 * k + 1) / (2 * n));
}

void bench_haystack_make(bench_haystack *ret, const model_tokenizer *t, const model_template *template,
    const base_buf *corpus, uint64_t seed, uint32_t n_tokens, uint32_t n_needles)
{
    static const char intro[] =
        "Here are files of some projects. Some special magic values are hidden in them. Memorize them.\n\n";
    *ret = (bench_haystack){.n_needles = n_needles};
    size_t cap = 0, at = draw(seed, 3, 0) % corpus->len;
    uint32_t next = 0;
    model_template_start(template, &ret->ids);
    model_template_begin(template, MODEL_ROLE_USER, &ret->ids);
    add_text(t, intro, strlen(intro), &ret->ids);
    while (at < corpus->len && corpus->data[at] != '\n') at++;
    while (ret->ids.n < n_tokens || next < n_needles) {
        base_grow(&ret->lines, &cap, ret->n_lines + 1, sizeof *ret->lines);
        ret->lines[ret->n_lines++] = (uint32_t)ret->ids.n;
        if (next < n_needles && ret->ids.n >= depth_of(n_tokens, next, n_needles)) {
            add_needle(ret, t, seed, next++);
            continue;
        }
        at = at + 1 < corpus->len ? at + 1 : 0;
        size_t end = at;
        while (end < corpus->len && corpus->data[end] != '\n') end++;
        const size_t n = end - at < LINE_MOST ? end - at : LINE_MOST;
        add_text(t, corpus->data + at, n, &ret->ids);
        add_text(t, "\n", 1, &ret->ids);
        at = end;
    }
}

void bench_haystack_free(bench_haystack *h)
{
    model_ids_free(&h->ids);
    free(h->lines);
}

static void add_keys(recall_turn *q, const model_tokenizer *t, const bench_haystack *h, const uint32_t *asked)
{
    for (uint32_t k = 0; k < q->n_targets; k++) {
        const char *joint = k == 0 ? " " : k + 1 < q->n_targets ? ", " : " and ";
        const bench_needle *needle = &h->needles[asked[k]];
        add_text(t, joint, strlen(joint), &q->ids);
        const uint32_t from = (uint32_t)q->ids.n;
        add_text(t, needle->key, strlen(needle->key), &q->ids);
        /*
         * Its digits tell a key from the others: the last five tokens, or fewer where a token holds several
         * digits.
         */
        const uint32_t to = (uint32_t)q->ids.n;
        for (uint32_t i = to - from > 5 ? to - 5 : from + 1; i < to && q->n_queries < RECALL_QUERIES; i++)
            q->queries[q->n_queries++] = i;
        snprintf(q->targets[k], sizeof q->targets[k], "%s", needle->value);
        q->rows[k].from = needle->from;
        q->rows[k].to = needle->to;
    }
    q->n_rows = q->n_targets;
}

void bench_question_make(recall_turn *ret, const model_tokenizer *t, const model_template *template,
    const bench_haystack *h, const char *asked, bool later)
{
    static const char begin[] = "\nWhat are the special magic values for",
                      end[] =
                          " that the files above mention? Answer with the values only, separated by commas.",
                      prefix[] = "The special magic values are:",
                      other[] = "\nWhat are the files above for? Answer in one sentence.";
    uint32_t numbers[BENCH_NEEDLES];
    *ret = (recall_turn){.match = RECALL_IN_TEXT};
    for (; *asked && ret->n_targets < BENCH_NEEDLES; asked++)
        if (*asked > '0' && (uint32_t)(*asked - '1') < h->n_needles)
            numbers[ret->n_targets++] = (uint32_t)(*asked - '1');
    if (later) {
        model_template_end(template, MODEL_ROLE_ASSISTANT, &ret->ids);
        model_template_begin(template, MODEL_ROLE_USER, &ret->ids);
    }
    if (ret->n_targets) {
        add_text(t, begin, strlen(begin), &ret->ids);
        add_keys(ret, t, h, numbers);
        add_text(t, end, strlen(end), &ret->ids);
    } else {
        add_text(t, other, strlen(other), &ret->ids);
    }
    model_template_end(template, MODEL_ROLE_USER, &ret->tail);
    model_template_begin(template, MODEL_ROLE_ASSISTANT, &ret->tail);
    if (ret->n_targets) add_text(t, prefix, strlen(prefix), &ret->tail);
}
