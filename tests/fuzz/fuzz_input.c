/* A line of --input jsonl: it is a request with a text, or a sentence says why not and nothing is left. */
#include "agent/input.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    agent_input in;
    base_err err = {0};
    const int rc = agent_input_parse((const char *)bytes, n, &in, &err);
    if (rc ? !*err.msg || in.text || in.id : !in.text || !*in.text) abort();
    agent_input_free(&in);
    return 0;
}
