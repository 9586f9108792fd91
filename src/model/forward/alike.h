/*
 * Words that a model takes for alike: "colour" and "color", "duplicate" and "dup", "empty" and "blank". A model has learned
 * a vector for each word (a row of its embedding table), and vectors of words that stand for one another point the same way.
 * Nothing is computed with the model for this: rows are read and compared.
 *
 * A word is a run of ASCII letters that the vocabulary has as one token, as "word", " word", "Word" or " Word"; its vector is
 * the sum of theirs, less what all words have in common (Mu and Viswanath, All-but-the-Top, 2018, without the directions).
 * The same bits on every machine. Immutable after open; any thread may use it, as long as the model lives.
 */
#ifndef KVIST_MODEL_ALIKE_H
#define KVIST_MODEL_ALIKE_H

#include "base/alike.h"
#include "model/forward/model.h"

typedef struct model_alike model_alike;

/* BASE_E_NOT_FOUND: the vocabulary has no words. Takes some 40 ms for 150,000 tokens. */
int model_alike_open(model_alike **ret, const model *m, base_err *err);
void model_alike_free(model_alike *a);

/*
 * Every wanted word whose vector has at least the cosine q->least with an asked one's, in the order of the alphabet; words
 * drawn by chance have 0 +- .05. Words that the vocabulary has not have none alike. A wanted word takes some 5 us.
 */
void model_alike_find(const model_alike *a, const base_alike_query *q);

#endif
