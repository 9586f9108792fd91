/*
 * Tasks in the manner of RULER (Hsieh et al., 2024) for `kvist-bench structkv`: multi-key needles 2 (lines of
 * other keys all around) and 3 (keys and values of random letters), variable tracking, and several needles at
 * once in real text. Same corpus and seed, same item, for every tokenizer.
 */
#ifndef KVIST_BENCH_RULER_H
#define KVIST_BENCH_RULER_H

#include "base/buf.h"
#include "model/text/template.h"
#include "model/text/tokenizer.h"

enum { RULER_WANTED = 8, RULER_QUERIES = 32 };

typedef struct ruler_question {
    model_ids ids;                              /* its text */
    model_ids tail;                             /* the message's end and the answer's first words */
    uint32_t queries[RULER_QUERIES], n_queries; /* places in ids of what is asked for */
    char wanted[RULER_WANTED][40];              /* texts that a right answer holds */
    struct {
        uint32_t from, to;
    } line[RULER_WANTED]; /* where each stands: tokens of the item's ids */
    uint32_t n_wanted;
    uint32_t n_new; /* tokens that an answer may take */
} ruler_question;

typedef struct ruler_item {
    model_ids ids; /* the document, without the message's scaffold */
    uint32_t *lines, n_lines;
    ruler_question first, later; /* later: a further turn's, about something else in the document */
} ruler_item;

/*
 * How the question ends, which is all that some prefills let ask. OURS: in how to answer, and the answer's first words
 * name nothing. RULER'S: as its own prompts do, and the answer's first words, which repeat what is asked for, are part
 * of the question but for their last token.
 */
typedef enum ruler_prompting { RULER_PROMPT_OURS, RULER_PROMPT_RULER } ruler_prompting;

/* "mk2", "mk3", "vt", "mq": NULL behind the last. */
extern const char *const ruler_tasks[];
void ruler_item_make(ruler_item *ret, const model_tokenizer *t, const model_template *template,
    const base_buf *corpus, const char *task, ruler_prompting prompting, uint64_t seed, uint32_t n_tokens);
void ruler_item_free(ruler_item *i);
/* How many of the wanted texts the answer has; found ([n_wanted], may be NULL) says which. */
uint32_t ruler_found(const ruler_question *q, const char *answer, bool *found);

#endif
