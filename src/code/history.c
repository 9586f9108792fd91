/* Words of earlier changes (contract: history.h). */
#include "code/history.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "code/code.h"
#include "code/index_state.h"
#include "code/words.h"

/* Numbers of words and of paths; each lies in its history's list. */
typedef struct history_change {
    uint32_t first_word, n_words, first_path, n_paths;
} history_change;

struct code_history {
    code_strings words, paths;
    history_change *changes;
    uint32_t n_changes;
    uint32_t *of_changes; /* words and paths of all changes */
    uint32_t n_of_changes;
    uint32_t *n_subjects; /* [words.n] how many subjects say it */
    size_t cap_changes, cap_of_changes, cap_subjects;
};

code_history *code_history_new(void)
{
    return base_xcalloc(1, sizeof(code_history));
}

void code_history_free(code_history *h)
{
    if (!h) return;
    code_strings_free(&h->words);
    code_strings_free(&h->paths);
    free(h->changes);
    free(h->of_changes);
    free(h->n_subjects);
    free(h);
}

uint32_t code_history_n(const code_history *h)
{
    return h->n_changes;
}

static void put_number(code_history *h, uint32_t number)
{
    base_grow(&h->of_changes, &h->cap_of_changes, (size_t)h->n_of_changes + 1, sizeof *h->of_changes);
    h->of_changes[h->n_of_changes++] = number;
}

/* Hands over each term of the text that says something, some of them twice. */
static void each_term(const char *text, void (*hand)(void *user, const char *word, size_t n_word), void *user)
{
    enum { MAX_WORD = 63 };
    const size_t n = strlen(text);
    for (size_t pos = 0, from, to; code_next_identifier(text, n, &pos, &from, &to);) {
        char lower[MAX_WORD + 1];
        if (to - from > MAX_WORD) continue;
        for (size_t i = from; i < to; i++) lower[i - from] = (char)tolower((unsigned char)text[i]);
        if (!code_is_stop_word(lower, to - from)) code_index_terms(text + from, to - from, hand, user);
    }
}

static void add_term(void *user, const char *word, size_t n_word)
{
    code_history *h = user;
    history_change *c = &h->changes[h->n_changes];
    const uint32_t n_before = h->words.n, id = code_strings_add(&h->words, word, n_word);
    if (h->words.n > n_before) {
        base_grow(&h->n_subjects, &h->cap_subjects, h->words.n, sizeof *h->n_subjects);
        h->n_subjects[id] = 0;
    }
    for (uint32_t i = 0; i < c->n_words; i++)
        if (h->of_changes[c->first_word + i] == id) return;
    put_number(h, id);
    c->n_words++;
    h->n_subjects[id]++;
}

void code_history_add(code_history *h, const char *subject, const char *const *paths, uint32_t n_paths)
{
    base_grow(&h->changes, &h->cap_changes, (size_t)h->n_changes + 1, sizeof *h->changes);
    history_change *c = &h->changes[h->n_changes];
    *c = (history_change){.first_word = h->n_of_changes};
    each_term(subject, add_term, h);
    c->first_path = h->n_of_changes;
    for (uint32_t i = 0; i < n_paths; i++)
        put_number(h, code_strings_add(&h->paths, paths[i], strlen(paths[i])));
    c->n_paths = n_paths;
    h->n_changes++;
}

uint32_t code_history_path(const code_history *h, const char *path)
{
    return code_strings_find(&h->paths, path, strlen(path));
}

/* The rarity of each word of the request, by its number, and of all of them together. */
typedef struct asked_words {
    const code_history *h;
    double *rarity;    /* [words.n] 0: not asked for */
    code_strings seen; /* counted */
    double all;
} asked_words;

static void ask_term(void *user, const char *word, size_t n_word)
{
    asked_words *a = user;
    const uint32_t n_before = a->seen.n, id = code_strings_find(&a->h->words, word, n_word);
    code_strings_add(&a->seen, word, n_word);
    if (a->seen.n == n_before) return;
    const double df = id == UINT32_MAX ? 0 : a->h->n_subjects[id];
    const double rarity = log(1 + (a->h->n_changes - df + .5) / (df + .5));
    if (id != UINT32_MAX) a->rarity[id] = rarity;
    a->all += rarity;
}

code_told *code_history_recall(const code_history *h, const char *request)
{
    asked_words a = {.h = h, .rarity = base_xcalloc((size_t)h->words.n + 1, sizeof(double))};
    code_told *told = base_xcalloc((size_t)h->paths.n + 1, sizeof *told);
    bool has_any = false;
    each_term(request, ask_term, &a);
    for (uint32_t i = 0; i < h->n_changes; i++) {
        const history_change *c = &h->changes[i];
        double share = 0;
        for (uint32_t k = 0; k < c->n_words; k++) share += a.rarity[h->of_changes[c->first_word + k]];
        if (share <= 0) continue;
        share /= a.all;
        has_any = true;
        for (uint32_t k = 0; k < c->n_paths; k++) {
            code_told *t = &told[h->of_changes[c->first_path + k]];
            t->best = fmax(t->best, share);
            t->sum += share / sqrt(c->n_paths);
        }
    }
    code_strings_free(&a.seen);
    free(a.rarity);
    if (has_any) return told;
    free(told);
    return NULL;
}
