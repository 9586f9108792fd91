/* What a person's line that begins with a slash does: the table of commands, and turns by a text that stands in a file. */
#ifndef KVIST_AGENT_COMMAND_H
#define KVIST_AGENT_COMMAND_H

#include "agent/session/session_state.h"

/* --- commands.c --- */
int agent__command(agent *a, const char *line, base_err *err);

/* --- use_skill.c --- */
/* /NAME where no command of ours has that name. BASE_E_NOT_FOUND, and nothing is told: there is none. */
int agent__use_skill(agent *a, const char *name, size_t n, const char *arguments, base_err *err);
void agent__list_skills(agent *a, base_buf *out); /* for /help: "/name\tabout" a line */

/* --- commit.c --- */
int agent__git_commit(agent *a, base_err *err); /* /commit */
/* A model's answer as a message: without fences and labels around it, lines without blanks at their ends. */
void agent_commit_clean(const char *answer, base_buf *ret);

#endif
