/*
 * What an answer says of who calls something ("`f` is called by `g` and `h`", "It is called from main"), where the
 * tree shows that one of those named cannot be a caller: its text does not hold the name, and nothing takes the
 * function's address, which could be called under another name. Where the tree leaves a doubt, nothing is claimed false.
 */
#ifndef KVIST_CODE_CALL_CLAIMS_H
#define KVIST_CODE_CALL_CLAIMS_H

#include "code/index.h"

typedef struct code_false_claim {
    uint32_t from, to; /* the bytes of the answer that name the callers */
    char *callee;      /* as the answer writes it */
} code_false_claim;

/* In the order of the answer; code_false_claims_free. The index has to hold all of the tree. */
uint32_t code_find_false_claims(const code_index *x, const char *answer, size_t n, code_false_claim **ret);
void code_false_claims_free(code_false_claim *c, uint32_t n);

#endif
