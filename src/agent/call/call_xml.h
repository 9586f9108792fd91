/*
 * A call as Qwen3-Coder and Qwen3.5 were taught to write it, read and written (the grammar that holds a model to
 * it is model/text/grammar_xml.c):
 *
 *     <tool_call>
 *     <function=NAME>
 *     <parameter=KEY>
 *     VALUE
 *     </parameter>
 *     </function>
 *     </tool_call>
 *
 * A value is text between two ends of line, whatever it holds but that end. Seed-OSS writes <seed:tool_call>, and
 * <parameter=KEY>VALUE</parameter>. Pure; any thread.
 */
#ifndef KVIST_AGENT_CALL_CALL_XML_H
#define KVIST_AGENT_CALL_CALL_XML_H

#include "agent/call/call.h"
#include "model/text/template.h"

/*
 * The function at the text's beginning ("<function="), all values strings. Returns the bytes it took; 0: it is
 * none, or (*partial, never when final) not all of it is there yet. Forgotten ends are forgiven.
 */
size_t agent_call_xml_read(const char *text, size_t n, bool final, agent_call *call, bool *partial);

/*
 * Writes `json` ({"name": .., "arguments": {..}}, or the beginning of one that ends inside a string: then its
 * last value stays open) as such a call. payload: one more parameter, whose end is left out when it is open;
 * NULL: there is none.
 */
void agent_call_xml_put(
    model_tool_style style, const char *json, const char *payload, bool is_open, base_buf *out);

/* The parameter that holds a payload, which other forms write in a fenced block behind the call. */
extern const char agent_call_xml_payload[];

#endif
