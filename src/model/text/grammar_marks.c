/*
 * Forms of calls whose marks are control tokens. To the steps of the grammar each mark is a byte that no text of a call
 * holds (grammar_state.h); here are the tokens behind these bytes, and the one free phase of all but harmony:
 *
 *     words[TOOL_CALLS]NAME[ARGS]{...}</s>
 *     words[TOOL_CALLS]NAME[CALL_ID]ID[ARGS]{...}</s>        Mistral Small 3.2; nine letters or digits
 *     words<|tool_call>call:NAME{key:<|"|>text<|"|>,key:3}<tool_call|>      Gemma 4
 *     words<|tool_call|>[{"name":NAME,"arguments":{...}}]<|end_of_text|>    Granite 3
 *     words[TOOL_CALLS][{"name":NAME,"arguments":{...},"id":ID}]</s>        Mistral Nemo
 *
 * Words are free until the mark; from there on grammar.c goes on with the name. A call ends the answer, as the
 * templates of Devstral and Ministral 3 end a message behind its calls; behind Gemma's its result is waited for.
 */
#include "model/text/grammar_state.h"

void grammar_marks_find(model_grammar *g, model_tool_style style)
{
    /* In order of the bytes. */
    static const char *const names[][GRAMMAR_MOST_MARKS] = {
        [MODEL_TOOLS_HARMONY] = {"<|channel|>", "<|constrain|>", "<|message|>", "<|call|>", "<|start|>",
            "<|end|>"},
        [MODEL_TOOLS_MISTRAL] = {"[TOOL_CALLS]", "[ARGS]", "</s>"},
        [MODEL_TOOLS_MISTRAL_IDS] = {"[TOOL_CALLS]", "[ARGS]", "</s>", "[CALL_ID]"},
        [MODEL_TOOLS_GEMMA] = {"<|tool_call>", "<|\"|>", "<tool_call|>"},
        [MODEL_TOOLS_GRANITE] = {"<|tool_call|>", "<|end_of_text|>"},
        [MODEL_TOOLS_NEMO] = {"[TOOL_CALLS]", "</s>"},
        [MODEL_TOOLS_JSON] = {NULL},
    };
    for (g->n_marks = 0; g->n_marks < GRAMMAR_MOST_MARKS && names[style][g->n_marks]; g->n_marks++)
        g->marks[g->n_marks] = model_tokenizer_find(g->tokenizer, names[style][g->n_marks]);
}

uint8_t grammar_marks_byte(const model_grammar *g, int32_t id)
{
    for (uint8_t i = 0; i < g->n_marks; i++)
        if (id == g->marks[i]) return (uint8_t)(GRAMMAR_FIRST_MARK + i);
    return 0;
}

bool grammar_marks_has(const model_grammar *g, uint8_t byte)
{
    return byte >= GRAMMAR_FIRST_MARK && byte < GRAMMAR_FIRST_MARK + g->n_marks;
}

/* One call an answer: a second mark that begins one is refused. */
verdict grammar_marks_text(const model_grammar *g, state *s, uint8_t byte)
{
    if (byte != (uint8_t)MISTRAL_CALLS[0] || g->names.n == 0) return TAKEN;
    return s->called ? REFUSED : go(s, SCRIPT, TAKEN);
}
