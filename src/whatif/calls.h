/* The calls that a session's record has, so that one that is made again can be answered from it. Pure. */
#ifndef KVIST_WHATIF_CALLS_H
#define KVIST_WHATIF_CALLS_H

#include "agent/call/call.h"
#include "whatif/arm.h"

typedef struct whatif_call {
    uint64_t key;        /* equal for calls that would do the same */
    uint32_t turn;       /* in which it was made */
    uint32_t world;      /* steps' world when it was made */
    size_t behind, next; /* steps [behind, next): what came of it, up to the next answer or the turn's end */
} whatif_call;

typedef struct whatif_calls {
    whatif_call *items;
    size_t n, cap;
} whatif_calls;

/* e says which words the tokens are. */
void whatif_calls_find(whatif_calls *ret, const whatif_schedule *s, const whatif_engine *e);
void whatif_calls_free(whatif_calls *c);

/* The call at the end of what was written, as the agent reads it; final: no more text will come. */
agent_call_found whatif_call_read(const base_buf *text, bool final, agent_call *ret);
uint64_t whatif_call_key(const agent_call *c);
/* read {"path":"a.c"} */
void whatif_call_put(const agent_call *c, base_buf *out);

/* Did the model, or the harness for it, write this step? */
static inline bool whatif_step_is_written(const whatif_step *t)
{
    return t->kind == WHATIF_ANSWER || (t->kind == WHATIF_TEXT && kv_origin_is_written(t->text.origin));
}

/*
 * Of a conversation what the model wrote, and a line for each result that it read: the same words for what was recorded
 * and for what is written now, so that they can be compared.
 */
void whatif_put_piece(const whatif_engine *e, int32_t id, base_buf *out);
void whatif_put_step(const whatif_engine *e, const whatif_step *t, base_buf *out);

#endif
