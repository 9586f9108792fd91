/*
 * A call as gpt-oss was taught to write it (the harmony form, OpenAI 2025): a message whose head
 * names a function, and whose text is the arguments.
 *
 *     <|start|>assistant<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{...}<|call|>
 *
 * The name may stand before the channel as well. An answer begins inside a head: what opened it stands in the
 * template. Heads and texts are free until a head says to=functions.; from there on grammar.c goes on with the name,
 * and behind the rest of the head with the arguments.
 */
#include <string.h>

#include "model/text/grammar_state.h"

static const char recipient[] = "to=functions.";

static bool is(uint8_t byte, const char *mark)
{
    return byte == (uint8_t)mark[0];
}

void grammar_harmony_fill_heads(model_grammar *g)
{
    static const char *const heads[] = {" " HARMONY_CONSTRAIN "json" HARMONY_MESSAGE,
        HARMONY_CONSTRAIN "json" HARMONY_MESSAGE, " json" HARMONY_MESSAGE, HARMONY_MESSAGE,
        HARMONY_CHANNEL "commentary " HARMONY_CONSTRAIN "json" HARMONY_MESSAGE,
        HARMONY_CHANNEL "commentary" HARMONY_CONSTRAIN "json" HARMONY_MESSAGE,
        HARMONY_CHANNEL "commentary json" HARMONY_MESSAGE, HARMONY_CHANNEL "commentary" HARMONY_MESSAGE,
        NULL};
    grammar_list_fill_lines(&g->heads, heads);
}

/* at: how much of "to=functions." stands. No part of it begins anew inside it but its first letter. */
verdict grammar_harmony_head(const model_grammar *g, state *s, uint8_t byte)
{
    if (is(byte, HARMONY_MESSAGE)) return go(s, HARMONY_BODY, TAKEN);
    if (byte != (uint8_t)recipient[s->at]) {
        s->at = byte == (uint8_t)recipient[0];
        return TAKEN;
    }
    s->at++;
    if (recipient[s->at] || g->names.n == 0) {
        if (!recipient[s->at]) s->at = 0;
        return TAKEN;
    }
    s->at = 0;
    return go(s, SCRIPT, TAKEN);
}

verdict grammar_harmony_body(const model_grammar *g, state *s, uint8_t byte)
{
    (void)g;
    if (!is(byte, HARMONY_START) && !is(byte, HARMONY_CHANNEL)) return TAKEN;
    s->at = 0;
    return go(s, HARMONY_HEAD, TAKEN);
}

/* Behind the name: one of the ways in which a head ends. */
verdict grammar_harmony_rest(const model_grammar *g, state *s, uint8_t byte)
{
    if (!grammar_list_narrow(&g->heads, &s->range, byte)) return REFUSED;
    return grammar_list_is_whole(&g->heads, &s->range) ? go(s, SCRIPT, TAKEN) : TAKEN;
}
