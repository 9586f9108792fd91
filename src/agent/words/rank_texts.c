#include "agent/words/rank_texts.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "agent/words/request_words.h"
#include "base/mem.h"
#include "code/words.h"

enum { MOST_WORDS = 32 };
static const double k1 = 1.2, b = .75; /* saturation, and how much length counts: the usual ones */

typedef struct question {
    char words[MOST_WORDS][CODE_WORD_BYTES];
    uint32_t n;
} question;

/* The next word's stem; *at moves behind it. false: there is none. An empty stem: a word that says nothing. */
static bool next_stem(const char *text, size_t *at, char stem[CODE_WORD_BYTES])
{
    agent_word w;
    const bool has = agent__next_word(text, *at, &w);
    const size_t n = has ? w.to - w.from : 0;
    *at = w.to;
    stem[0] = '\0';
    if (n && n < CODE_WORD_BYTES && agent__is_content_word(text + w.from, n))
        stem[code_stem(text + w.from, n, stem)] = '\0';
    return has;
}

static uint32_t find(const question *q, const char *stem)
{
    uint32_t i = 0;
    while (i < q->n && strcmp(q->words[i], stem)) i++;
    return i;
}

static void read_question(const char *message, question *q)
{
    char stem[CODE_WORD_BYTES];
    size_t at = 0;
    q->n = 0;
    while (q->n < MOST_WORDS && next_stem(message, &at, stem))
        if (stem[0] && find(q, stem) == q->n) memcpy(q->words[q->n++], stem, sizeof stem);
}

void agent_rank_texts(const char *message, const char *const *texts, uint32_t n, agent_rank *ret)
{
    question *q = base_xcalloc(1, sizeof *q);
    read_question(message, q);
    uint32_t *times = base_xcalloc((size_t)n * MOST_WORDS + 1, sizeof *times), have[MOST_WORDS] = {0};
    uint64_t *length = base_xcalloc(n + 1, sizeof *length), all = 0;
    for (uint32_t i = 0; i < n; i++) {
        char stem[CODE_WORD_BYTES];
        uint32_t *mine = times + (size_t)i * MOST_WORDS;
        for (size_t at = 0; next_stem(texts[i], &at, stem); length[i]++) {
            const uint32_t word = stem[0] ? find(q, stem) : q->n;
            if (word < q->n) have[word] += !mine[word]++;
        }
        all += length[i];
    }
    const double mean = all ? (double)all / n : 1;
    for (uint32_t i = 0; i < n; i++) {
        double score = 0, cover = 0, most = 0;
        for (uint32_t w = 0; w < q->n; w++) {
            const double idf = log(1 + (n - have[w] + .5) / (have[w] + .5)),
                         tf = times[(size_t)i * MOST_WORDS + w];
            score += idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * (double)length[i] / mean));
            cover += tf > 0 ? idf : 0;
            most += idf;
        }
        ret[i] = (agent_rank){most > 0 ? score / (most * (k1 + 1)) : 0, most > 0 ? cover / most : 0};
    }
    free(times);
    free(length);
    free(q);
}
