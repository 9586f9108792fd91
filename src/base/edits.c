/* Levenshtein's distance with exchanged neighbours, a row at a time, and the guess over it (contract: edits.h). */
#include "base/edits.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { MOST_LETTERS = 64, MOST_EDITS = 3, LETTERS_AN_EDIT = 4, LEAST_BEGINNING = 3 };

static bool is_same(char a, char b)
{
    return !strncasecmp(&a, &b, 1);
}

unsigned base_edits(const char *a, const char *b, unsigned most)
{
    size_t na = strlen(a), nb = strlen(b);
    if (na > MOST_LETTERS || nb > MOST_LETTERS || na > nb + most || nb > na + most) return most + 1;
    unsigned rows[3][MOST_LETTERS + 1]; /* this one, the last one, the one before */
    for (size_t j = 0; j <= nb; j++) rows[0][j] = (unsigned)j;
    for (size_t i = 1; i <= na; i++) {
        unsigned *now = rows[i % 3], *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        unsigned least = now[0] = (unsigned)i;
        for (size_t j = 1; j <= nb; j++) {
            unsigned best = last[j - 1] + !is_same(a[i - 1], b[j - 1]);
            if (last[j] + 1 < best) best = last[j] + 1;
            if (now[j - 1] + 1 < best) best = now[j - 1] + 1;
            const bool is_swapped =
                i > 1 && j > 1 && is_same(a[i - 1], b[j - 2]) && is_same(a[i - 2], b[j - 1]);
            if (is_swapped && before[j - 2] + 1 < best) best = before[j - 2] + 1;
            now[j] = best;
            if (best < least) least = best;
        }
        /* An exchange reaches back over a row, but from no less than one below this row's least. */
        if (least > most + 1) return most + 1;
    }
    const unsigned n = rows[na % 3][nb];
    return n > most ? most + 1 : n;
}

/* Edits beyond which a word of so many letters is another word. */
static unsigned allowed(const char *typed)
{
    const unsigned n = 1 + (unsigned)(strlen(typed) / LETTERS_AN_EDIT);
    return n < MOST_EDITS ? n : MOST_EDITS;
}

base_guess base_guess_begin(const char *typed)
{
    return (base_guess){.typed = typed, .edits = allowed(typed) + 1};
}

/* Typed letters that the known word has not: each counted once, wherever it stands. */
static int letters_lost(const char *typed, const char *known)
{
    int counts[256] = {0}, lost = 0;
    for (; *known; known++) counts[(unsigned char)*known]++;
    for (; *typed; typed++) lost += --counts[(unsigned char)*typed] < 0;
    return lost;
}

void base_guess_offer(base_guess *g, const char *known)
{
    const size_t length = strlen(g->typed);
    const unsigned most = allowed(g->typed);
    unsigned n = base_edits(g->typed, known, most);
    if (n > most && length >= LEAST_BEGINNING && !strncasecmp(g->typed, known, length)) n = most;
    if (n > most || n > g->edits) return;
    /* "modl" and "modle" are as far from mode as from model, which has all their letters. */
    if (n == g->edits && letters_lost(g->typed, known) >= letters_lost(g->typed, g->meant)) return;
    g->meant = known;
    g->edits = n;
}

const char *base_guess_tell(base_guess *g, const char *otherwise)
{
    if (!g->meant) return otherwise;
    snprintf(g->sentence, sizeof g->sentence, "; did you mean %.70s?", g->meant);
    return g->sentence;
}
