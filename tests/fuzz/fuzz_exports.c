/*
 * Any text with lists of exports, in each language: what was there stays in its order, each list gets a name once.
 * Input: a byte for the language (its top bit: the package's file), then the text.
 */
#include "tools/edit/exports.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static const char *const languages[] = {"python", "javascript", "typescript", "rust", "go", NULL};
    if (n < 1 || n > 1 << 13) return 0;
    const char *language = languages[(bytes[0] & 0x7f) % (sizeof languages / sizeof *languages)];
    const char *module = bytes[0] & 0x80 ? "m" : NULL;
    bytes++, n--;
    char *was = scratch_part(&bytes, &n);
    base_buf text = {0};
    base_buf_puts(&text, was);
    const bool has_added = tool__export_name(language, &text, module, "a", "new");
    if ((text.len != strlen(was)) != has_added) abort();
    size_t at = 0; /* what was there is there, in its order */
    for (const char *p = was; *p; p++, at++) {
        while (at < text.len && text.data[at] != *p) at++;
        if (at == text.len) abort();
    }
    if (tool__export_name(language, &text, module, "a", "new")) abort();
    base_buf_clear(&text);
    base_buf_puts(&text, was);
    const bool has_line = text.len && tool__export_fresh(language, &text, "m", "new");
    if ((text.len != strlen(was)) != has_line) abort();
    base_buf_free(&text);
    free(was);
    return 0;
}
