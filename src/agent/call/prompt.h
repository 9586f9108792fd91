/*
 * The fixed prompt: what stands in front of every session of a model, byte for byte the same, so that it is
 * computed once per model ever. No date, no listing, no counter. And the words in which the harness speaks to
 * the model.
 */
#ifndef KVIST_AGENT_CALL_PROMPT_H
#define KVIST_AGENT_CALL_PROMPT_H

#include "model/text/template.h"
#include "tools/tool.h"

typedef struct agent_prompt_part {
    model_role role;
    char *text;
} agent_prompt_part;

typedef struct agent_prompt {
    agent_prompt_part *parts;
    uint32_t n;
    size_t cap;
} agent_prompt;

/*
 * The parts in their order, for a small or a strong model (ability.h); agent_prompt_free. Of marked forms: with marks, to be
 * appended so.
 */
void agent_prompt_build(model_tool_style style, bool strong, agent_prompt *ret);
void agent_prompt_free(agent_prompt *p);

/*
 * A control token in text of the harness that is appended with agent_text.has_marks: its name between two of these
 * bytes. What comes from files or from the person is put there without them.
 */
enum { AGENT_PROMPT_MARK = 0x1e };

/* A call as this family writes it, to be shown: what is a control token there is its name here. */
void agent_prompt_call(model_tool_style style, const char *json, base_buf *out);
/* The same up to the end of `json`, which is the beginning of a call. To be appended: with marks. */
void agent_prompt_open_call(model_tool_style style, const char *json, base_buf *out);
/* A call of a tool that takes a payload, up to where the payload begins. */
void agent_prompt_open_payload(model_tool_style style, const char *json, const char *language, base_buf *out);
/* The payload's first bytes behind it. */
void agent_prompt_put_payload(model_tool_style style, const char *text, size_t n, base_buf *out);
/* What stands in front of a thought that the harness begins, and between that and the call (harmony). */
void agent_prompt_open_thought(model_tool_style style, base_buf *out);
void agent_prompt_end_thought(model_tool_style style, bool is_ended, base_buf *out);
/* What ends a thought for a model that goes on with it; again: it began another one, and is to answer. With marks. */
void agent_prompt_close_thought(model_tool_style style, bool again, base_buf *out);

/* Is this tool offered to such a model? */
bool agent_prompt_offers(const tool_entry *t, bool strong);
/* Does an example of the prompt define it? What a small model does not know it writes down from there. */
bool agent_prompt_defines(const char *name);

/* Headers around excerpts and the request, the same in few-shots and in turns. */
extern const char agent_prompt_excerpts[]; /* before the first excerpt */
void agent_prompt_excerpt_head(
    const char *path, uint32_t line, uint32_t line_end, const char *name, base_buf *out);
extern const char agent_prompt_request[]; /* before the request */
/* Behind a question for one name: a small model goes on with the names of the excerpts, all of them, where it is short. */
extern const char agent_prompt_one[];

#endif
