/*
 * Where any document speaks of something new: input is the document, a NUL byte, the new name, a NUL byte, a neighbour's, a NUL byte,
 * the request. The place is a line's beginning or the text's end, and the line begun there holds the name.
 */
#include "tools/edit/mention.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void find(const char *path, const base_buf *text, const char *const *words)
{
    const char *const neighbours[] = {words[1], NULL};
    tool_mention m;
    tool__find_mention(path, text, words[0], neighbours, words[2], &m);
    if (m.from > m.at || m.at > m.to || m.to > m.behind || m.behind > text->len) abort();
    if (m.at && m.at < text->len && text->data[m.at - 1] != '\n') abort();
    if (!m.begins.data || !strstr(m.begins.data, words[0])) abort();
    tool_mention_free(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    const char *words[3] = {"", "", ""};
    char *all = base_xstrndup((const char *)bytes, n);
    const size_t n_text = strlen(all);
    size_t at = n_text;
    for (int i = 0; i < 3 && at < n; i++) {
        words[i] = all + at + 1;
        at += 1 + strlen(all + at + 1);
    }
    base_buf text = {0};
    base_buf_add(&text, all, n_text);
    /* The program asks of no empty text, and of no empty name or one that ends in a blank. */
    const bool may = n_text && *words[0] && words[0][strlen(words[0]) - 1] != ' ';
    if (may) find("CHANGES.md", &text, words);
    if (may) find("README.rst", &text, words);
    base_buf_free(&text);
    free(all);
    return 0;
}
