/*
 * A request in plain words as concepts: each word's stem, its abbreviations and near synonyms, and names that it is glued
 * into (sdsfree for "free"), each with a weight. What searches the index shares this.
 */
#ifndef KVIST_CODE_REQUEST_H
#define KVIST_CODE_REQUEST_H

#include "code/index_state.h"
#include "code/words.h"

enum { CODE_MAX_CONCEPTS = 24, CODE_MAX_FORMS = 64, CODE_KINDS_ASKED = 4 };

typedef struct code_form {
    uint32_t word; /* id */
    double weight;
} code_form;

typedef struct code_concept {
    char word[CODE_WORD_BYTES]; /* as asked */
    char stem[CODE_WORD_BYTES];
    double weight, idf;
    code_form forms[CODE_MAX_FORMS];
    uint32_t n_forms;
} code_concept;

typedef struct code_request {
    const code_index *x;
    code_concept concepts[CODE_MAX_CONCEPTS];
    uint32_t n;
    const char *kinds[CODE_KINDS_ASKED];
    uint32_t n_kinds;
    double weight; /* of concepts being added */
} code_request;

/* r: zeroed but for x, whose lock is held. keep_all: words that say nothing count too. */
void code_request_read(code_request *r, const char *query, bool keep_all);
/* Each concept also stands for words that are alike (index_state.h, alike), by how much; nothing where nobody knows any. */
void code_request_add_alike(code_request *r);

#endif
