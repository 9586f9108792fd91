/*
 * What a model writes whose calls and thoughts stand between control tokens, so that no text can be taken for one: in
 * channels, message by message (gpt-oss: the harmony form, OpenAI 2025), in Mistral's form, in Gemma 4's, or in a JSON list.
 *
 *     <|channel|>analysis<|message|>..<|end|>              a thought
 *     <|channel|>commentary<|message|>..<|end|>            words for the person before a call
 *     <|channel|>commentary to=functions.NAME ..<|message|>{..}<|call|>
 *     <|channel|>final<|message|>..<|return|>              the answer
 *
 *     <think>..</think>words, calls too                    Qwen3 and others whose calls are text; <seed:think> in Seed-OSS
 *     [THINK]..[/THINK]words[TOOL_CALLS]NAME[ARGS]{..}</s>      with [CALL_ID]ID behind the name in Mistral Small 3.2
 *     <|channel>thought\n..<channel|>words<|tool_call>call:NAME{key:<|"|>text<|"|>,key:3}<tool_call|>      Gemma 4
 *     words<|tool_call|>[{"name": NAME, "arguments": {..}}, ..]      Granite 3; behind [TOOL_CALLS] in Mistral Nemo
 *
 * Words become the answer's text; a call becomes the JSON object on a line of its own that agent/call/call.h reads; a thought
 * is told apart, and where it stands in the sequence is kept, because harmony's template leaves it out once the answer is
 * there, and so do Qwen's and Gemma's; Mistral's leaves it in. <think> is a token too, and begins a thought in front of words only:
 * an answer may speak of it. In harmony what stands behind <|start|>assistant is a head, and so is the beginning of an answer.
 */
#ifndef KVIST_AGENT_CALL_CHANNELS_H
#define KVIST_AGENT_CALL_CHANNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "model/text/template.h"

typedef struct agent_thought {
    uint32_t from, to; /* tokens: from the head's first to before the next one's */
} agent_thought;

typedef struct agent_channels {
    enum { AGENT_IN_HEAD, AGENT_IN_WORDS, AGENT_IN_THOUGHT, AGENT_IN_CALL } at;
    enum { AGENT_OF_HARMONY, AGENT_OF_MISTRAL, AGENT_OF_GEMMA, AGENT_OF_LISTS, AGENT_OF_WORDS } form;
    base_buf head;      /* in a call of Gemma, outside of text: what began there */
    uint32_t head_from; /* of the message at hand: its first token behind <|start|>assistant */
    bool is_thought;    /* the message at hand, also where its text is over */
    bool is_empty;      /* a call whose arguments have not begun; Gemma: a thought whose title is not over */
    bool in_text;       /* Gemma: between two marks of text in a call; in a list: in a string */
    bool is_escaped;    /* in a list: behind a backslash of a string */
    bool owes_brace;    /* in a list: an object is over, and its last brace comes when its call is */
    uint32_t depth;     /* in a list: objects that are open */
    uint32_t n_calls;   /* that were begun */
    agent_thought *thoughts;
    uint32_t n_thoughts;
    size_t cap_thoughts;
} agent_channels;

/* In front of an answer: how calls of its model are written. */
void agent_channels_begin(agent_channels *c, model_tool_style style);
/* The template has begun a thought: its <think> is token `index`. */
void agent_channels_open_thought(agent_channels *c, uint32_t index);
bool agent_channels_is_think(const char *piece, size_t n);     /* <think>, <seed:think> */
bool agent_channels_is_think_end(const char *piece, size_t n); /* their ends */
/* The next token of an answer: its place in the sequence, its bytes, and whether it is a control token. */
void agent_channels_take(agent_channels *c, uint32_t index, const char *piece, size_t n, bool is_control,
    base_buf *words, base_buf *thought);
/* A further message begins at token `index`, behind what opened it: in harmony, its head. */
void agent_channels_next_message(agent_channels *c, uint32_t index);
void agent_channels_end(agent_channels *c, uint32_t n_tokens); /* the answer is over: so is its thought */
void agent_channels_free(agent_channels *c);

#endif
