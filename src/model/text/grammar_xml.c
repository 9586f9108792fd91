/*
 * A call as Qwen3-Coder and Qwen3.5 were taught to write it (their chat templates):
 *
 *     <tool_call>
 *     <function=NAME>
 *     <parameter=KEY>
 *     VALUE
 *     </parameter>
 *     </function>
 *     </tool_call>
 *
 * grammar.c takes the lines around the parameters; here are the parameters, in the schema's order like JSON's.
 * A value is raw text between two ends of line; what is listed or a number is held to that, other text ends at
 * the first line that begins with </parameter>. Seed-OSS writes <parameter=KEY>VALUE</parameter>, whose text ends at the
 * first </parameter>.
 */
#include <string.h>

#include "model/text/grammar_state.h"

static const char opening[] = "parameter=", text_end[] = "\n</parameter>";
static const char *const closing = text_end + 1;

/* What a value ends with: its first byte is nowhere else in it. */
static const char *value_end(const model_grammar *g)
{
    return g->is_inline ? closing : text_end;
}

verdict grammar_xml_between(const model_grammar *g, state *s, uint8_t byte)
{
    (void)g;
    if (take_space(s, byte)) return TAKEN;
    return byte == '<' ? go(s, XML_TAG, TAKEN) : REFUSED;
}

/* Another parameter, or the end of the function; the script goes on behind its "</". */
verdict grammar_xml_tag(const model_grammar *g, state *s, uint8_t byte)
{
    if (byte == '/') return may_close(g, s) ? go(s, SCRIPT, TAKEN) : REFUSED;
    if (!next_keys(g, s)) return REFUSED;
    s->at_key = 0;
    return go(s, XML_OPEN, AGAIN);
}

verdict grammar_xml_open(const model_grammar *g, state *s, uint8_t byte)
{
    if (byte != (uint8_t)opening[s->at_key]) return REFUSED;
    if (opening[++s->at_key]) return TAKEN;
    s->keys = next_keys(g, s);
    s->at_key = 0;
    return go(s, XML_KEY, TAKEN);
}

verdict grammar_xml_key(const model_grammar *g, state *s, uint8_t byte)
{
    const tool *t = &g->tools[s->tool];
    uint32_t keys = 0;
    for (uint32_t i = 0; i < t->n_arguments; i++) {
        if (!(s->keys >> i & 1)) continue;
        const argument *a = &t->arguments[i];
        if (a->n_name == s->at_key && byte == '>') {
            s->argument = (uint16_t)i;
            return go(s, XML_VALUE, TAKEN);
        }
        if (a->n_name > s->at_key && (uint8_t)a->name[s->at_key] == byte) keys |= 1u << i;
    }
    s->keys = keys;
    s->at_key++;
    return keys ? TAKEN : REFUSED;
}

/* The list that a value has to be of; NULL: numbers and text. */
static const grammar_list *list_of(const model_grammar *g, const state *s)
{
    const argument *a = current(g, s);
    return a->type == MODEL_ARGUMENT_BOOLEAN ? &g->words : listed(g, a);
}

/* The end of line before it, where there is one. Text may end with the very next line: an empty one. */
verdict grammar_xml_value(const model_grammar *g, state *s, uint8_t byte)
{
    if (byte != '\n' && !g->is_inline) return REFUSED;
    const grammar_list *list = list_of(g, s);
    s->n = 0;
    s->character = 0;
    s->at_key = list || g->is_inline ? 0 : 1;
    if (list) s->range = grammar_list_all(list);
    return go(s,
        list                                            ? XML_LISTED
        : current(g, s)->type == MODEL_ARGUMENT_INTEGER ? XML_INTEGER
                                                        : XML_TEXT,
        g->is_inline ? AGAIN : TAKEN);
}

static verdict close_value(const model_grammar *g, state *s)
{
    s->at_key = 0;
    return go(s, XML_CLOSE, g->is_inline ? AGAIN : TAKEN);
}

/* -?(0|[1-9][0-9]*), bounded. */
verdict grammar_xml_integer(const model_grammar *g, state *s, uint8_t byte)
{
    enum { NOTHING, SIGN, ZERO, DIGITS };
    if (byte == (uint8_t)*value_end(g) && s->character >= ZERO) return close_value(g, s);
    if (byte == '-' && s->character == NOTHING) return s->character = SIGN, TAKEN;
    if (byte < '0' || byte > '9' || s->character == ZERO || s->n >= MAX_DIGITS) return REFUSED;
    s->character = s->character != DIGITS && byte == '0' ? ZERO : DIGITS;
    s->n++;
    return TAKEN;
}

verdict grammar_xml_listed(const model_grammar *g, state *s, uint8_t byte)
{
    const grammar_list *list = list_of(g, s);
    if (byte == (uint8_t)*value_end(g) && grammar_list_is_whole(list, &s->range)) return close_value(g, s);
    return grammar_list_narrow(list, &s->range, byte) ? TAKEN : REFUSED;
}

static verdict end_parameter(state *s)
{
    s->argument++;
    return go(s, XML_BETWEEN, TAKEN);
}

/* at_key: how much of the end stands. Beyond its bound a text may only end. */
verdict grammar_xml_text(const model_grammar *g, state *s, uint8_t byte)
{
    const char *end = value_end(g);
    if (byte < 0x20 && !memchr("\t\n\r", byte, 3)) return REFUSED;
    if (s->n < MAX_TEXT) s->n++;
    const bool goes_on = byte == (uint8_t)end[s->at_key];
    if (!goes_on && s->n >= MAX_TEXT && byte != (uint8_t)*end) return REFUSED;
    s->at_key = goes_on ? s->at_key + 1 : byte == (uint8_t)*end;
    return end[s->at_key] ? TAKEN : end_parameter(s);
}

verdict grammar_xml_close(const model_grammar *g, state *s, uint8_t byte)
{
    (void)g;
    if (byte != (uint8_t)closing[s->at_key]) return REFUSED;
    return closing[++s->at_key] ? TAKEN : end_parameter(s);
}
