/*
 * What stands of a call when its answer goes on: any bytes are safe, in each form of calls, and the grammar of the rest is one
 * line whose brackets and quotes are closed. The first byte says the form.
 */
#include <stdint.h>
#include <stdlib.h>

#include "remote/gbnf_rest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Outside of literals and of [..]: brackets that are open, or SIZE_MAX. */
static size_t open_brackets(const base_buf *text)
{
    size_t depth = 0;
    char in = 0;
    for (size_t i = 0; i + 1 < text->len; i++) {
        const char c = text->data[i];
        if (c == '\n') return SIZE_MAX;
        if (in && c == '\\')
            i++;
        else if (in)
            in = c == in ? 0 : in;
        else if (c == '"' || c == '[')
            in = c == '"' ? '"' : ']';
        else
            depth += (c == '(') - (c == ')');
    }
    return in ? SIZE_MAX : depth;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char *const names[] = {
        "put", "ring", "ring_put", "d\xc3\xa9j\xc3\xa0", "d\xc3\xa8s", "a\"b", "\xff", NULL};
    static const model_grammar_argument arguments[] = {{"name", MODEL_ARGUMENT_CHOICE, true, names},
        {"to", MODEL_ARGUMENT_STRING, false, NULL}, {"path", MODEL_ARGUMENT_PATH, false, NULL},
        {"at", MODEL_ARGUMENT_INTEGER, false, NULL}};
    static const model_grammar_tool tools[] = {{"refactor", arguments, 4}, {"now", NULL, 0}};
    remote_gbnf_tools k = {0};
    base_buf root = {0};
    if (!n) return 0;
    remote_gbnf_tools_keep(&k, tools, 2);
    const bool has = remote_gbnf_put_rest(
        &k, (model_tool_style)(*data % (MODEL_TOOLS_JSON + 1)), (const char *)data + 1, n - 1, &root);
    if (has != (root.len > 0) || (has && open_brackets(&root))) abort();
    remote_gbnf_tools_free(&k);
    base_buf_free(&root);
    return 0;
}
