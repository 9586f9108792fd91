/*
 * What an answer says it has done, read sentence by sentence: "`f` now uses `g`", "Added `g` and a test", "`h` was removed".
 * Only names that are written as such are read (in backticks, called, or with a _ or a capital inside), no sentence that
 * denies or only proposes, no code in fences. Pure; any thread.
 */
#ifndef KVIST_AGENT_CLAIM_WORDS_H
#define KVIST_AGENT_CLAIM_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum agent_claim_kind {
    AGENT_CLAIM_USED,    /* by `of`, where that is said */
    AGENT_CLAIM_ADDED,   /* names may be empty where a test was */
    AGENT_CLAIM_REMOVED, /* from somewhere */
    AGENT_CLAIM_RENAMED, /* to `of`, where that is said */
    AGENT_CLAIM_CHANGED
} agent_claim_kind;

enum { AGENT_CLAIM_NAMES = 8 };
typedef struct agent_claim {
    agent_claim_kind kind;
    char *names[AGENT_CLAIM_NAMES]; /* as written: "f", "Cls.f", "ns::f" */
    uint32_t n;
    char *of;      /* NULL: not said */
    bool of_tests; /* what is said to be added is a test */
} agent_claim;

/* All claims of an answer, in its order; how many: agent_claims_free. */
uint32_t agent_read_claims(const char *answer, agent_claim **ret);
void agent_claims_free(agent_claim *claims, uint32_t n);

/* Byte behind the sentence that begins at `at`; a point in a name ends none. */
size_t agent__sentence_end(const char *s, size_t at);
/* Does the sentence deny what it speaks of, or only propose it? */
bool agent__is_denied(const char *sentence);

#endif
