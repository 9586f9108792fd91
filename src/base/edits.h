/* How different two words are, for "did you mean". */
#ifndef KVIST_BASE_EDITS_H
#define KVIST_BASE_EDITS_H

/*
 * Letters that have to be put in, taken out or exchanged to make one word the other, two neighbours that changed
 * places counted once, letter case free; more than `most`, or a word above 64 bytes, is most + 1.
 */
unsigned base_edits(const char *a, const char *b, unsigned most);

/*
 * What a mistyped word was meant to be. One rule for every name that a person types: offer each known one, then
 * ask. A word is meant where one edit makes it the typed one, or one for each four letters more, three at most;
 * and where it begins with three or more typed letters and nothing is nearer.
 */
typedef struct base_guess {
    const char *typed; /* both have to outlive the guess */
    const char *meant; /* the nearest word so far; NULL: none */
    unsigned edits;    /* to it; without one, more than are allowed */
    char sentence[96];
} base_guess;

base_guess base_guess_begin(const char *typed);
void base_guess_offer(base_guess *g, const char *known);
/*
 * The end of a sentence that says what there is not: "; did you mean WORD?", kept in the guess, or `otherwise` as it
 * is where nothing was near.
 */
const char *base_guess_tell(base_guess *g, const char *otherwise);

#endif
