/*
 * A definition and another one that leaves parts of it out. Each line of what comes of them is a line of one of the two, and what the
 * block wrote is all there, in its order. Input: the old text, a NUL byte, the block.
 */
#include "tools/edit/elide.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static bool is_space(char c)
{
    return c && strchr(" \t\r\n\v\f", c);
}

/* The next line without the blanks around it; false: there is none. */
static bool next_line(const char **text, const char **ret, size_t *ret_n)
{
    if (!**text) return false;
    const char *line = *text, *end = line + strcspn(line, "\n");
    *text = *end ? end + 1 : end;
    while (line < end && is_space(*line)) line++;
    while (end > line && is_space(end[-1])) end--;
    *ret = line;
    *ret_n = (size_t)(end - line);
    return true;
}

static bool has_line(const char *text, const char *line, size_t n)
{
    const char *other;
    size_t n_other;
    while (next_line(&text, &other, &n_other))
        if (n_other == n && !memcmp(other, line, n)) return true;
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    if (n > 1 << 13) return 0;
    char *old = scratch_part(&bytes, &n), *block = scratch_part(&bytes, &n);
    base_buf out = {0};
    if (tool__fill_elision(old, strlen(old), block, strlen(block), &out)) {
        const char *at = out.data ? out.data : "", *line, *other;
        size_t n_line, n_other;
        for (const char *p = at; next_line(&p, &line, &n_line);)
            if (n_line && !has_line(old, line, n_line) && !has_line(block, line, n_line)) abort();
        for (const char *p = block; next_line(&p, &line, &n_line);) {
            if (n_line && strchr("/#-.", *line)) continue; /* it may stand for others */
            bool is_there = !n_line;
            while (!is_there && next_line(&at, &other, &n_other))
                is_there = n_other == n_line && !memcmp(other, line, n_line);
            if (!is_there) abort();
        }
    }
    base_buf_free(&out);
    free(old);
    free(block);
    return 0;
}
