/*
 * What a person uses by /NAME: skills of the tree (.agents/skills/NAME/SKILL.md) and commands of their own
 * (commands/NAME.md in the configuration's folder). Nothing of them is in the session until one is used.
 */
#ifndef KVIST_AGENT_SKILLS_H
#define KVIST_AGENT_SKILLS_H

#include "tools/tool.h"

enum { AGENT_MOST_SKILLS = 200, AGENT_SKILL_MOST_BYTES = 128 << 10 };

typedef struct agent_skill {
    char *name;
    char *about; /* one harmless line */
    char *path;  /* as it is told: below the root, or in the configuration's folder */
    char *file;  /* what is opened: `path` of a skill, an absolute path of a command */
    bool is_of_tree;
    char *wrong; /* a sentence: why it cannot be used; NULL: it can */
} agent_skill;

typedef struct agent_skills {
    agent_skill *all; /* by name; a person's command hides a skill of the same name */
    size_t n, cap;
} agent_skills;

void agent_skills_find(tool_workspace *w, agent_skills *ret);
void agent_skills_free(agent_skills *s);
const agent_skill *agent_skills_get(const agent_skills *s, const char *name, size_t n); /* NULL: none */

/* Its Markdown, without the front matter. */
int agent_skill_read(tool_workspace *w, const agent_skill *s, base_buf *out, base_err *err);

/* A person's command with what was typed behind its name in place of $ARGUMENTS, else at its end. */
void agent_skill_fill(const char *body, const char *arguments, base_buf *out);

#endif
