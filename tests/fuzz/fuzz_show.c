/* Any bytes, in every form: what a person is shown is UTF-8 on one line, and the bytes come back from it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/show.h"
#include "base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    const char *s = (const char *)bytes;
    for (base_show_form form = BASE_SHOW_UTF8; form <= BASE_SHOW_ASCII; form++) {
        base_buf shown = {0}, back = {0};
        base_show(&shown, s, n, form);
        if (n && (!base_utf8_valid(shown.data, shown.len) || memchr(shown.data, '\n', shown.len))) abort();
        base_show_parse(&back, shown.data ? shown.data : "", shown.len);
        if (back.len != n || (n && memcmp(back.data, s, n) != 0)) abort();
        base_buf_free(&shown);
        base_buf_free(&back);
        base_show_parse(&back, s, n); /* what base_show did not make */
        base_buf_free(&back);
    }
    return 0;
}
