/* What of a conversation may leave together, with why and what it is called: the units of a cut (cut.h). */
#ifndef KVIST_AGENT_CUT_PARTS_H
#define KVIST_AGENT_CUT_PARTS_H

#include "agent/sequence/cut.h"
#include "agent/session/segments.h"

typedef struct agent_cut_part {
    agent_cut_unit unit;
    kv_reason reason;
    char *name; /* for people and for the model */
} agent_cut_part;

typedef struct agent_cut_parts {
    agent_cut_part *all;
    size_t n, cap;
} agent_cut_parts;

/*
 * All of them in the order of their places, an outer one before what it holds, with the chance that each is asked for
 * again: by what the message asks for, and how long ago it came. agent_cut_parts_free.
 */
void agent__find_cut_parts(const agent *a, const char *message, agent_cut_parts *ret);
/* Tokens [from, to) behind the others; takes the name's text. */
void agent_cut_parts_add(agent_cut_parts *c, uint32_t from, uint32_t to, kv_reason reason, base_buf *name);
/* The smallest one that holds a token says why it leaves; NULL: none does. */
const agent_cut_part *agent_cut_parts_holding(const agent_cut_parts *c, uint32_t token);
void agent_cut_parts_free(agent_cut_parts *c);

#endif
