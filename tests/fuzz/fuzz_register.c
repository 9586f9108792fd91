/* Any text of tests of C: what was there stays in its order, one line comes of each kind, and a second time nothing does. */
#include "tools/edit/register.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static size_t count_lines(const char *text)
{
    size_t lines = 0;
    for (; *text; text++) lines += *text == '\n';
    return lines;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    if (n > 1 << 13) return 0;
    char *was = scratch_part(&bytes, &n);
    base_buf text = {0};
    base_buf_puts(&text, was);
    const bool is_declared = tool__declare_test(&text, "test_a", "test_new");
    if (is_declared && tool__declare_test(&text, "test_a", "test_new")) abort();
    const bool is_done = tool__register_test(&text, "test_a", "test_new");
    const char *now = text.data ? text.data : "";
    if (count_lines(now) != count_lines(was) + is_done + is_declared ||
        (text.len != strlen(was)) != (is_done || is_declared))
        abort();
    size_t at = 0;
    for (const char *p = was; *p; p++, at++) {
        while (now[at] && now[at] != *p) at++;
        if (!now[at]) abort();
    }
    if (is_done && tool__register_test(&text, "test_a", "test_new")) abort();
    base_buf_free(&text);
    free(was);
    return 0;
}
