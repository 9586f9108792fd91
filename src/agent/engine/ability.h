/*
 * What a model is offered: tools and few-shots for strong models (edits by line or exact text, calls begun by themselves) or for small ones
 * (whole definitions, with the harness writing the beginning of a call). One table decides by what the model is,
 * not by how much memory it takes: a mixture counts by all of its parameters, as long as enough of them work on a
 * token, and a family that was taught to call tools in a form of its own counts as strong at a smaller size.
 *
 * A person who knows better says so: --agent small|strong.
 */
#ifndef KVIST_AGENT_ENGINE_ABILITY_H
#define KVIST_AGENT_ENGINE_ABILITY_H

#include <stdbool.h>
#include <stdint.h>

#include "model/text/template.h"

typedef struct agent_ability {
    model_tool_style tools;
    uint64_t n_params, n_active; /* 0: nobody says */
} agent_ability;

/* By the table in ability.c. */
bool agent_ability_is_strong(const agent_ability *a);

/* "small" or "strong" of a setting; false: another word. NULL or "auto": *ret stays as it is. */
bool agent_ability_read(const char *word, bool *ret);

#endif
