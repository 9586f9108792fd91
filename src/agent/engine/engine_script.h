/*
 * The script of an engine without a model. A line a directive, '#' a comment:
 *
 *     model NAME | ctx N | lanes N (1..32) | budget ROWS | repair ROWS      settings, before the first answer
 *     opens 1                     answers can be begun by the harness up to the middle of a call
 *     channels 1                  answers are gpt-oss's: <|channel|> and its like in their text are control tokens
 *     channels 2                  answers are Mistral's: so are [TOOL_CALLS] and its like
 *     channels 3                  answers are Qwen3's: so are <think> and its end
 *     channels 4                  answers are Mistral's with ids of calls: so is [CALL_ID]
 *     channels 5                  answers are Gemma's: so are <|channel>, <|tool_call> and its like
 *     channels 6                  answers are Granite 3's: so is <|tool_call|>
 *     channels 7                  answers are Nemo's: so is [TOOL_CALLS]
 *     learns 1                    in idle time there is no end of learning, until it is cancelled
 *     answer TEXT                 the next answer; \n \t \\ are unescaped
 *     answer <<WORD               ... or the lines up to one that is WORD alone
 *     wanted TEXT                 the following answer's first token overruled this one (a mask event)
 *     doubt TOKEN INSTEAD         where a text says this token, the model doubts it: it would rather have
 *         said the other one; from
 *                                 the first such line (the strongest doubt) to the last
 *     likely TEXT                 what has this text, or follows on it, is likelier than what has that of an earlier
 *                                 such line, or none; without such lines nothing is weighed
 *     fail TEXT                   the first append before the following answer fails with this sentence
 */
#ifndef KVIST_AGENT_ENGINE_ENGINE_SCRIPT_H
#define KVIST_AGENT_ENGINE_ENGINE_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { SCRIPT_MAX_TOKENS = 1 << 20, SCRIPT_MAX_LANES = 32 };

typedef enum script_step_kind {
    STEP_ANSWER,
    STEP_WANTED,
    STEP_FAIL,
    STEP_DOUBT,
    STEP_LIKELY
} script_step_kind;

typedef struct script_step {
    script_step_kind kind;
    char *text;
    bool done;
} script_step;

typedef struct engine_script {
    char *model;
    uint32_t n_ctx, n_lanes, budget, repair, learns, opens, channels;
    script_step *steps;
    size_t n_steps, cap_steps;
    size_t cursor; /* the next answer is at or behind it */
} engine_script;

/* Settings keep their values in *s unless the text names them. script_fini also after a failure. */
int script_parse(engine_script *s, const char *text, size_t n, base_err *err);
/* The first such step before the next answer that was not due yet; NULL: none. */
script_step *script_due(engine_script *s, script_step_kind kind);
const char *script_answer(engine_script *s); /* the next one; NULL: there is no further */
void script_fini(engine_script *s);

#endif
