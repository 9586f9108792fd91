/* Words that a model takes for alike (contract: alike.h). */
#include "model/forward/alike.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/file/quant.h"
#include "model/forward/forward.h"
#include "model/text/tokenizer.h"

enum {
    LEAST_LETTERS = 2,
    MOST_LETTERS = 20,
    MOST_FORMS = 4,    /* "word", " word", "Word", " Word" */
    MEAN_WORDS = 2048, /* the mean of so many words is the mean of all for what it is needed for */
    SAMPLE_WORDS = 256,
};

typedef struct alike_word {
    char word[MOST_LETTERS + 1]; /* lower case */
    int32_t ids[MOST_FORMS];
    uint32_t n;
} alike_word;

/*
 * A word is alike another one where the cosine is so many times what chance makes of it, which differs from word to word: small
 * models have common words all point one way ("free" and "number": .4 in SmolLM2-135M, .1 in Qwen2.5-Coder-1.5B).
 */
static const float least_deviations = 6;

struct model_alike {
    const gguf_tensor *table; /* [n_vocab][n_embd] */
    uint32_t n_embd;
    alike_word *words; /* in the order of the alphabet */
    size_t n, cap;
    float *mean;   /* [n_embd], of a token's row */
    float *sample; /* [n_sample][n_embd], vectors of words from all over the alphabet */
    uint32_t n_sample;
};

/* A token as a word in lower case; false: it is none. */
static bool read_word(const char *piece, size_t n, char ret[MOST_LETTERS + 1])
{
    if (n && *piece == ' ') {
        piece++;
        n--;
    }
    if (n < LEAST_LETTERS || n > MOST_LETTERS) return false;
    for (size_t i = 0; i < n; i++) {
        const bool is_upper = piece[i] >= 'A' && piece[i] <= 'Z';
        if (!(piece[i] >= 'a' && piece[i] <= 'z') && (!is_upper || i)) return false;
        ret[i] = is_upper ? (char)(piece[i] - 'A' + 'a') : piece[i];
    }
    ret[n] = '\0';
    return true;
}

static int by_word(const void *p, const void *q)
{
    const alike_word *a = p, *b = q;
    const int order = strcmp(a->word, b->word);
    return order ? order : a->ids[0] - b->ids[0];
}

/* The forms of one word, which stand side by side, become one entry. */
static void merge_forms(model_alike *a)
{
    size_t n = 0;
    for (size_t i = 0; i < a->n; i++) {
        const alike_word *const w = &a->words[i];
        alike_word *const last = n ? &a->words[n - 1] : NULL;
        if (!last || strcmp(last->word, w->word) != 0)
            a->words[n++] = *w;
        else if (last->n < MOST_FORMS)
            last->ids[last->n++] = w->ids[0];
    }
    a->n = n;
}

static void gather_words(model_alike *a, const model_tokenizer *t)
{
    const uint32_t n_vocab = model_tokenizer_size(t);
    for (uint32_t id = 0; id < n_vocab && id < a->table->ne[1]; id++) {
        alike_word w = {.ids = {(int32_t)id}, .n = 1};
        size_t n = 0;
        const char *piece = model_tokenizer_piece(t, (int32_t)id, &n);
        if (!piece || model_tokenizer_is_control(t, (int32_t)id) || !read_word(piece, n, w.word)) continue;
        base_grow(&a->words, &a->cap, a->n + 1, sizeof *a->words);
        a->words[a->n++] = w;
    }
    if (a->n) qsort(a->words, a->n, sizeof *a->words, by_word);
    merge_forms(a);
}

/* The sum of a word's rows. row: [n_embd], for one of them. */
static void sum_rows(const model_alike *a, const alike_word *w, float *row, float *ret)
{
    const size_t bytes = a->table->n_bytes / a->table->ne[1];
    memset(ret, 0, a->n_embd * sizeof *ret);
    for (uint32_t k = 0; k < w->n; k++) {
        quant_to_f32(a->table->type, a->table->data + (size_t)w->ids[k] * bytes, a->n_embd, row);
        for (uint32_t i = 0; i < a->n_embd; i++) ret[i] += row[i];
    }
}

/* Sums of products in a fixed order, eight at a time, so that a compiler may use vectors and the bits are the same. */
static float dot(const float *x, const float *y, uint32_t n)
{
    enum { LANES = 8 };
    float sums[LANES] = {0}, all = 0;
    uint32_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (uint32_t k = 0; k < LANES; k++) sums[k] += x[i + k] * y[i + k];
    for (; i < n; i++) all += x[i] * y[i];
    for (uint32_t k = 0; k < LANES; k++) all += sums[k];
    return all;
}

/* A word's direction: of length 1, or 0 where its rows are the mean. */
static void make_vector(const model_alike *a, const alike_word *w, float *row, float *ret)
{
    sum_rows(a, w, row, ret);
    for (uint32_t i = 0; i < a->n_embd; i++) ret[i] -= (float)w->n * a->mean[i];
    const float length = sqrtf(dot(ret, ret, a->n_embd));
    const float scale = length > 0 ? 1 / length : 0;
    for (uint32_t i = 0; i < a->n_embd; i++) ret[i] *= scale;
}

static void make_mean(model_alike *a)
{
    float *row = base_xmalloc(a->n_embd * sizeof *row), *sum = base_xmalloc(a->n_embd * sizeof *sum);
    const size_t step = (a->n + MEAN_WORDS - 1) / MEAN_WORDS;
    size_t n_rows = 0;
    a->mean = base_xcalloc(a->n_embd, sizeof *a->mean);
    for (size_t w = 0; w < a->n; w += step) {
        sum_rows(a, &a->words[w], row, sum);
        for (uint32_t i = 0; i < a->n_embd; i++) a->mean[i] += sum[i];
        n_rows += a->words[w].n;
    }
    for (uint32_t i = 0; i < a->n_embd; i++) a->mean[i] /= (float)n_rows;
    free(row);
    free(sum);
}

static void make_sample(model_alike *a)
{
    float *row = base_xmalloc(a->n_embd * sizeof *row);
    const size_t step = (a->n + SAMPLE_WORDS - 1) / SAMPLE_WORDS;
    a->sample = base_xmalloc((a->n + step - 1) / step * a->n_embd * sizeof *a->sample);
    for (size_t w = 0; w < a->n; w += step)
        make_vector(a, &a->words[w], row, a->sample + (size_t)a->n_sample++ * a->n_embd);
    free(row);
}

/* How far the cosines of a word with words drawn by chance lie from 0: their root mean square. */
static float deviation(const model_alike *a, const float *vector)
{
    float sum = 0;
    for (uint32_t i = 0; i < a->n_sample; i++) {
        const float cosine = dot(a->sample + (size_t)i * a->n_embd, vector, a->n_embd);
        sum += cosine * cosine;
    }
    return sqrtf(sum / (float)a->n_sample);
}

int model_alike_open(model_alike **ret, const model *m, base_err *err)
{
    model_alike *a = base_xcalloc(1, sizeof *a);
    a->table = m->tensors.token_embd;
    a->n_embd = m->hyper.n_embd;
    gather_words(a, m->tokenizer);
    if (!a->n) {
        model_alike_free(a);
        return base_fail(err, BASE_E_NOT_FOUND, "the vocabulary of %s has no words", m->info.name);
    }
    make_mean(a);
    make_sample(a);
    *ret = a;
    return 0;
}

void model_alike_free(model_alike *a)
{
    if (!a) return;
    free(a->words);
    free(a->mean);
    free(a->sample);
    free(a);
}

static const alike_word *find_word(const model_alike *a, const char *word)
{
    alike_word key = {.ids = {-1}};
    if (strlen(word) > MOST_LETTERS) return NULL;
    strcpy(key.word, word);
    size_t low = 0, high = a->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (strcmp(a->words[middle].word, key.word) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < a->n && !strcmp(a->words[low].word, word) ? &a->words[low] : NULL;
}

/* The asked words as vectors; those that the vocabulary has not can be alike nothing. Returns how many it has. */
static uint32_t make_asked(
    const model_alike *a, const base_alike_query *q, float *row, float *vectors, float *least)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < q->n; i++) {
        const alike_word *w = find_word(a, q->words[i]);
        float *const vector = vectors + (size_t)i * a->n_embd;
        least[i] = INFINITY;
        if (!w) continue;
        make_vector(a, w, row, vector);
        least[i] = fmaxf(q->least, least_deviations * deviation(a, vector));
        n++;
    }
    return n;
}

void model_alike_find(const model_alike *a, const base_alike_query *q)
{
    float *row = base_xmalloc(a->n_embd * sizeof *row), *vector = base_xmalloc(a->n_embd * sizeof *vector);
    float *asked = base_xcalloc((size_t)q->n * a->n_embd, sizeof *asked);
    float *least = base_xcalloc(q->n, sizeof *least);
    const uint32_t n_asked = make_asked(a, q, row, asked, least);
    for (size_t k = 0; n_asked && k < a->n; k++) {
        const alike_word *const w = &a->words[k];
        if (!q->is_wanted(q->asker, w->word)) continue;
        make_vector(a, w, row, vector);
        for (uint32_t i = 0; i < q->n; i++) {
            const float cosine = dot(asked + (size_t)i * a->n_embd, vector, a->n_embd);
            if (cosine >= least[i] && strcmp(q->words[i], w->word) != 0) q->add(q->asker, i, w->word, cosine);
        }
    }
    free(row);
    free(vector);
    free(asked);
    free(least);
}
