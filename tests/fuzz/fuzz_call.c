/* What a model writes: any bytes are safe in the call parser and the JSON repair, whole and cut short. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/call.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static int known(const void *user, const char *name)
{
    return strcmp(name, "rewrite") == 0                              ? 1
           : strcmp(name, "read") == 0 || strcmp(name, "shell") == 0 ? 0
                                                                     : -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const char *text = (const char *)data;
    for (int final = 0; final < 2; final++)
        for (size_t len = n; len > 0; len = len > 64 ? len / 2 : 0) {
            agent_call c = {0};
            agent_call_found found = agent_call_parse(text, len, final, known, NULL, &c);
            if (final && found == AGENT_CALL_PARTIAL) abort();
            if (found != AGENT_CALL_FOUND) continue;
            if (!c.name || !c.arguments || c.from > c.to || c.to > len) abort();
            agent_call_free(&c);
        }
    base_buf strict = {0};
    bool complete;
    if (base_json_repair(text, n, &strict, &complete)) {
        base_json_doc *doc = NULL;
        if (base_json_parse(strict.data, strict.len, &doc, NULL)) abort();
        base_json_free(doc);
    }
    base_buf_free(&strict);
    return 0;
}
