/*
 * A skill or a command as its file has it: front matter between two lines "---" (name, description; the Agent
 * Skills format, https://agentskills.io/specification), then Markdown. Strict: what is no front matter is an
 * error with its line, and nothing of it is guessed.
 *
 * Pure; any thread.
 */
#ifndef KVIST_AGENT_SKILL_TEXT_H
#define KVIST_AGENT_SKILL_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum { AGENT_SKILL_MOST_NAME = 64, AGENT_SKILL_MOST_ABOUT = 1024 };

typedef struct agent_skill_text {
    char *name, *description; /* NULL: not given; without control characters, valid UTF-8 */
    size_t body;              /* the byte at which the Markdown begins */
} agent_skill_text;
void agent_skill_text_free(agent_skill_text *t); /* frees the contents */

/*
 * Other keys are passed by with their indented lines; a description may be plain, quoted, or a block (> and
 * |), and becomes one line. Errors: BASE_E_FORMAT with the line.
 */
int agent_skill_text_parse(const char *text, size_t n, agent_skill_text *ret, base_err *err);

/* Small letters, digits, - and _ between: what may stand behind the slash. */
bool agent_skill_is_name(const char *name, size_t n);

#endif
