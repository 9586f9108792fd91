/*
 * A logged session as a residual is trained on it (IntentKV, section 3.5): its tokens in the order in which they were
 * computed, the messages and results at which a pass would choose rows, and which tokens of the history the arguments of
 * the next tool calls quote. Pure.
 */
#ifndef KVIST_LEARN_HISTORY_H
#define KVIST_LEARN_HISTORY_H

#include "base/buf.h"
#include "kv/types.h"

enum { LEARN_AHEAD = 5 }; /* tool calls that a place's labels come from */

/* A decision: tokens [from, to) are the message or result that asks. */
typedef struct learn_place {
    uint32_t turn, from, to;
    size_t n_calls; /* tool calls before it */
} learn_place;

/* Tokens of one origin. */
typedef struct learn_part {
    kv_origin origin;
    uint32_t turn, from, to;
} learn_part;

typedef struct learn_history {
    base_buf text;    /* the bytes of all tokens, one after another */
    uint32_t *starts; /* [n + 1] where each begins */
    int32_t *ids;     /* [n] */
    bool *fixed;      /* [n] template, fixed prompt: never quoted */
    size_t n, cap_starts, cap_ids, cap_fixed;
    learn_part *parts;
    size_t n_parts, cap_parts;
    learn_place *places;
    size_t n_places, cap_places;
    char **calls; /* arguments as JSON */
    size_t n_calls, cap_calls;
} learn_history;

/* A token behind the others; it joins the newest part where origin and turn are the same and `new_part` is false. */
void learn_history_add(learn_history *h, kv_origin origin, uint32_t turn, bool new_part, int32_t id,
    const char *bytes, size_t n);
void learn_history_end_part(learn_history *h); /* the newest part is whole: a message or result is a place */
void learn_history_add_call(learn_history *h, const char *arguments);
/* Only the first n tokens were kept; calls that were made stay in the list. */
void learn_history_cut(learn_history *h, size_t n);
void learn_history_free(learn_history *h);

/*
 * Marks in positive[p->from] the tokens before a place that a string or number of the arguments of the next `ahead`
 * calls touches literally. True: there is one.
 */
bool learn_history_quoted(const learn_history *h, const learn_place *p, uint32_t ahead, bool *positive);

#endif
