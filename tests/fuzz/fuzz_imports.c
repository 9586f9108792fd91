/*
 * Any block, file before it and file with it, in each language: lines come to the file and none goes, and each is told.
 * Input: a byte for the language, then the block, a NUL byte, the old text, a NUL byte, the text.
 */
#include "tools/edit/imports.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static const char *const languages[] = {
        "go", "python", "c", "rust", "javascript", "typescript", "java", NULL};
    if (n < 1 || n > 1 << 13) return 0;
    const char *language = languages[bytes[0] % (sizeof languages / sizeof *languages)];
    bytes++, n--;
    char *block = scratch_part(&bytes, &n), *old = scratch_part(&bytes, &n), *now = scratch_part(&bytes, &n);
    base_buf before = {0}, text = {0}, say = {0};
    base_buf_puts(&before, old);
    base_buf_puts(&text, now);
    tool__import_standard(language, (base_str){block, strlen(block)}, &before, &text, &say);
    if ((text.len != strlen(now)) != (say.len > 0)) abort();
    size_t at = 0; /* what was there is there, in its order */
    for (const char *p = now; *p; p++, at++) {
        while (at < text.len && text.data[at] != *p) at++;
        if (at == text.len) abort();
    }
    base_buf_free(&before);
    base_buf_free(&text);
    base_buf_free(&say);
    free(block);
    free(old);
    free(now);
    return 0;
}
