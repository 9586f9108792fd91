/*
 * "Can I delete wrap?", "is f still used?", "what breaks if I remove g?", "is h dead code?": questions whose answer is who uses
 * something, and what an answer to one says. Pure; any thread.
 */
#ifndef KVIST_AGENT_USE_QUESTION_H
#define KVIST_AGENT_USE_QUESTION_H

#include <stdbool.h>

#include "agent/words/request_words.h"

bool agent_asks_for_uses(const char *request);
/*
 * The next word at or behind *at that may be what such a question is about, and goes behind it: the caller holds it against the
 * tree. false: there is none.
 */
bool agent_next_asked_use(const char *request, size_t *at, agent_word *ret);

typedef enum agent_said_use { AGENT_SAYS_NOTHING, AGENT_SAYS_USED, AGENT_SAYS_UNUSED } agent_said_use;
/* What the answer to such a question says of it. */
agent_said_use agent_read_said_use(const char *request, const char *answer);

#endif
