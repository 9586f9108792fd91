/*
 * A test whose values the code gives: its calls are made once in a copy of the tree, by a test that prints what comes (the probe), and
 * what was printed is what the test expects. How both are written, a language each. Pure.
 */
#ifndef KVIST_AGENT_NEWTEST_PROBE_H
#define KVIST_AGENT_NEWTEST_PROBE_H

#include "agent/newtest/calls.h"

/* How the file writes its tests. */
typedef struct agent_probe_style {
    const char *path;
    const base_buf *file; /* of the tests, as it is */
    const char *gives;    /* the subject's head, for the type that it gives; "" */
    bool is_method;       /* Python: in a class */
    bool wants_error;     /* the request is about errors */
} agent_probe_style;

/* False: no probe is known for the language. */
bool agent__can_probe(const char *path);
/* The lines of the probe's body, or of the test's, a step each, with the indent of a body. */
void agent__put_probe(const agent_probe_style *style, const agent_steps *s, base_buf *out);
void agent__put_recorded(const agent_probe_style *style, const agent_steps *s, base_buf *out);
/* What the probe printed becomes the steps' values; how many calls gave something. `output` may be NULL. */
uint32_t agent__read_probe(const agent_probe_style *style, const char *output, agent_steps *s);

#endif
