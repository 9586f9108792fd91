/*
 * The calls of a subject that a model wrote into a test, each with the lines that make what it is given. What a small model expects of
 * them is often wrong; which of them to make it knows. Pure.
 */
#ifndef KVIST_AGENT_NEWTEST_CALLS_H
#define KVIST_AGENT_NEWTEST_CALLS_H

#include <stdint.h>

#include "base/buf.h"

enum { AGENT_MAX_STEPS = 24, AGENT_MAX_CALLS = 4 };

typedef enum agent_step_kind {
    AGENT_STEP_LINE, /* a statement that makes what a later call is given, or uses it */
    AGENT_STEP_CALL
} agent_step_kind;

typedef enum agent_given {
    AGENT_GIVES_NOTHING, /* nothing that can be compared, or nothing is known yet */
    AGENT_GIVES_VALUES,
    AGENT_GIVES_LIST, /* an iterator: values[0] is the list of what it gives */
    AGENT_GIVES_ERROR /* values[0]: its class where the language has those, else its words */
} agent_given;

enum { AGENT_MAX_RESULTS = 4 };

/* A step of a test, in the order of its text. Strings are heap. */
typedef struct agent_step {
    agent_step_kind kind;
    char *text; /* on one line, without what stands around a statement */
    agent_given given;
    char *values[AGENT_MAX_RESULTS]; /* of a call: as the language writes them */
    uint32_t n_values;
    bool is_varied; /* by the program: an error that it gives is not what was asked for */
    uint32_t needs; /* of a call: bit i: step i in front of it */
} agent_step;

typedef struct agent_steps {
    agent_step steps[AGENT_MAX_STEPS];
    uint32_t n;
} agent_steps;

/*
 * Up to AGENT_MAX_CALLS different calls of `subject` ("f", its last name) in text[0, n), lines of a body in the language of `path`, with
 * what they need; given: names that every such test is handed ("pastel" of pytest's fixtures). false: there is none that could stand alone. agent_steps_free.
 */
bool agent__find_calls(
    const char *path, const char *text, size_t n, const char *subject, const char *given, agent_steps *ret);
/* vary.c: further calls behind them, as the first ones with other literals, up to `want` in all. */
void agent__vary_calls(const char *path, const char *subject, uint32_t want, agent_steps *s);
/* Calls that give nothing go, and lines that no call needs. */
void agent__drop_useless(agent_steps *s);
void agent_steps_free(agent_steps *s);

#endif
