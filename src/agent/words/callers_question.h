/*
 * Whose callers a request asks for: "who calls f and g?", "which function frees a reply, and who calls it?". Pure; any
 * thread. Whether such names are there, the caller finds out.
 */
#ifndef KVIST_AGENT_WORDS_CALLERS_QUESTION_H
#define KVIST_AGENT_WORDS_CALLERS_QUESTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { AGENT_CALLERS_NAMES = 6 };

/* agent_callers_question_free. */
typedef struct agent_callers_question {
    char *names
        [AGENT_CALLERS_NAMES]; /* as written, in order; words beside the verb are among them, names or not */
    uint32_t n;
    bool of_it;       /* it asks who calls "it" */
    size_t described; /* bytes of the request that say what "it" is; 0: the request before does */
} agent_callers_question;
/* false: it asks for no callers. */
bool agent_read_callers_question(const char *request, agent_callers_question *ret);
void agent_callers_question_free(agent_callers_question *q);

#endif
