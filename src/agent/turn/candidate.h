/*
 * Candidates: answers that are sampled in branches of the session, of which one becomes the answer. tries.c has them judged by
 * a test, choose.c by what the model says of their changes. Engine thread.
 */
#ifndef KVIST_AGENT_CANDIDATE_H
#define KVIST_AGENT_CANDIDATE_H

#include "agent/turn/turn.h"

typedef struct agent_candidate {
    uint32_t number;
    bool
        begins_with_call; /* where the opening has no thought: set in front; else the model's line comes first */
    model_ids ids;        /* its answer */
    agent_reader read;
    bool is_cut;          /* it is not whole: it reached its limit of tokens */
    char *headline;       /* of the change, NULL: it is none */
    char *detail;         /* its diff */
    char *path, *name;    /* of what its call writes or would (NULL: no such call); name "": it says none */
    base_buf text;        /* of the file behind the change */
    uint64_t change;      /* hash of path and new text: two candidates may say the same */
    const char *word;     /* why it is no change; NULL: it is one */
    char *why;            /* a new test: the same in a sentence; NULL: none was said */
    uint32_t shared, own; /* rows: of the session, and computed for it */
    uint64_t started_ns;
} agent_candidate;
void agent__candidate_free(agent_candidate *c);

/* Asked between tokens: is no further one needed? */
typedef struct agent_enough {
    bool (*is_so)(const void *user);
    const void *user;
} agent_enough;
/* In a branch of its own, which is dropped: only the ids stay. enough may be NULL. */
int agent__candidate_sample(agent *a, agent_candidate *c, const agent_opening *opening,
    const model_sampling *s, const agent_enough *enough, base_err *err);
/* What its call would write: headline to change, or why it is no change in word. */
int agent__candidate_preview(agent *a, agent_candidate *c, base_err *err);

#endif
