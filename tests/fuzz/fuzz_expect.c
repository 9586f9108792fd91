/* What a runner printed, a NUL, the test that it ran: one literal is exchanged and nothing else, in whole lines of the test. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/newtest/newtest.h"
#include "agent/operation/operation.h"
#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const uint8_t *end = n ? memchr(data, 0, n) : NULL;
    if (!end) return 0;
    char *output = base_xstrndup((const char *)data, (size_t)(end - data));
    base_buf text = {0};
    base_buf_add(&text, (const char *)end + 1, n - (size_t)(end - data) - 1);
    agent_expectation found;
    if (text.len && agent__read_expectation(&text, 0, text.len, "a.py", "it returns 12", output, &found)) {
        uint32_t n_lines = 1;
        for (size_t i = 0; i < text.len; i++) n_lines += text.data[i] == '\n';
        assert(found.line >= 1 && found.line <= found.line_end && found.line_end <= n_lines);
        assert(found.text.data[found.text.len - 1] == '\n' && found.told.len);
        agent_expectation_free(&found);
    }
    base_buf_free(&text);
    free(output);
    return 0;
}
