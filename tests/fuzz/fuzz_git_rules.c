/* Any bytes as rules of git: lines weigh what they weigh alone, and more folders or another line make them no cheaper. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/file/git_rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    const char *text = (const char *)bytes;
    tool_git_rules all, sum = {0};
    tool__git_rules_weigh(text, n, &all);
    for (size_t at = 0; at < n;) {
        const char *end = memchr(text + at, '\n', n - at);
        const size_t len = end ? (size_t)(end - text) - at : n - at;
        tool_git_rules line;
        tool__git_rules_weigh(text + at, len, &line);
        for (unsigned i = 0; i <= TOOL_GIT_MOST_STARS; i++) sum.weights[i] += line.weights[i];
        if (tool__git_rules_steps(&line, 9) > tool__git_rules_steps(&all, 9)) abort();
        at += len + 1;
    }
    if (memcmp(&all, &sum, sizeof all)) abort();
    for (unsigned folders = 0; folders < 130; folders++)
        if (tool__git_rules_steps(&all, folders) > tool__git_rules_steps(&all, folders + 1)) abort();
    return 0;
}
