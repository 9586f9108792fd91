/* Requests (issues that somebody pastes) into values and the programs made of them: no value holds a line's end, no program ends its here-document early. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/words/values.h"
#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char *const paths[] = {"a/b.py", "b.js", "b.go", "b.c", "src/b.rs", "a/B.java"};
    char *request = base_xstrndup((const char *)data, n);
    agent_value values[AGENT_MAX_VALUES];
    const uint32_t n_values = agent_values_find(request, values);
    assert(n_values <= AGENT_MAX_VALUES);
    for (uint32_t i = 0; i < n_values; i++) {
        assert(*values[i].left && !strchr(values[i].left, '\n') && !strchr(values[i].wanted, '\n'));
        assert(values[i].raises || *values[i].wanted);
    }
    for (size_t i = 0; n_values && i < sizeof paths / sizeof *paths; i++) {
        const agent_values_place place = {
            .path = paths[i], .package = "p", .function = "f", .imports = "\"math/big\"\n"};
        base_buf out = {0};
        if (agent_values_program(values, n_values, &place, &out)) {
            uint32_t marks = 0;
            for (const char *at = out.data; (at = strstr(at, "\nKVIST_VALUES\n")); at++) marks++;
            assert(marks == 1);
        }
        base_buf_free(&out);
    }
    uint32_t hold, of;
    agent_values_count(request, &hold, &of);
    agent_values_free(values, n_values);
    free(request);
    return 0;
}
