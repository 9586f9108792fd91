/*
 * An engine as a chat endpoint is one: it holds messages of text, has no ids, rows, scores, branches, doubts
 * or grammar, and every answer is asked for with all the messages that are active. What would go over the
 * wire goes to a script (engine_script.h). It shows that the agent needs no more of an engine than that.
 */
#ifndef KVIST_TESTS_AGENT_ENGINE_CHAT_H
#define KVIST_TESTS_AGENT_ENGINE_CHAT_H

#include "agent/engine/engine.h"

int engine_chat_open(engine **ret, const char *script, size_t n, const engine_options *options, bool *resumed,
    base_err *why_not, base_err *err);
/* The messages of the newest request, a line "[role]" in front of each. */
const char *engine_chat_sent(const engine *e);

/*
 * From now on text cannot be told into tokens, as by an endpoint whose tokenizer does not answer; or it can
 * again.
 */
void engine_chat_lose_tokenizer(engine *e, bool lost);

#endif
