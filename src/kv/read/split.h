/*
 * Where a sentence ends (SentKVCompress, section 4.1.1), for the sections that a decoded token chooses among
 * (reading.h). Pure functions of what each token is; any thread.
 *
 * From a sentence's beginning the ideal end lies `length` tokens on. Within `reach` of it the end with the
 * largest .7 S + .3 (1 - distance / reach) is taken, ties to the earlier; without any the ideal one. S is by
 * what stands before the end.
 */
#ifndef KVIST_KV_SPLIT_H
#define KVIST_KV_SPLIT_H

#include <stddef.h>
#include <stdint.h>

/*
 * How good an end behind a token is. The paper's weights stand in a figure that our text of it lacks; these
 * are ours (docs/kv.md, Reading at decode).
 */
typedef enum kv_ending {
    KV_ENDING_NONE,
    KV_ENDING_OTHER,    /* S = .4: a comma, a closing bracket */
    KV_ENDING_BLOCK,    /* .7: a semicolon, a closing brace */
    KV_ENDING_LINE,     /* .8: a newline */
    KV_ENDING_SENTENCE, /* 1: . ? ! and their like, and the end of a statement that a parser saw */
    KV_N_ENDINGS
} kv_ending;

/* By a token's bytes: the last one that is no blank, and whether a newline is in it. */
kv_ending kv_ending_of_text(const char *text, size_t n);

/*
 * The end (behind its last token) of the sentence that begins at `from`; endings [n] of the tokens that there
 * are. 0: not before from + length + reach of them are there. length >= 1.
 */
uint32_t kv_sentence_end(const uint8_t *endings, uint32_t n, uint32_t from, uint32_t length, uint32_t reach);

#endif
