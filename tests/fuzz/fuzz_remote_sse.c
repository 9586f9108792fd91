/* Any bytes, cut anywhere: the same events as in one piece. The first byte says how large the pieces are. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "remote/sse.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static int put_event(void *user, const char *data, size_t n, base_err *err)
{
    base_buf_add(user, data, n);
    base_buf_putc(user, '\0');
    return 0;
}

static void read_all(const char *bytes, size_t n, size_t piece, base_buf *ret)
{
    remote_sse s = {0};
    base_buf_puts(ret, "");
    for (size_t at = 0; at < n; at += piece)
        if (remote_sse_feed(&s, bytes + at, n - at < piece ? n - at : piece, put_event, ret, NULL)) abort();
    if (remote_sse_end(&s, put_event, ret, NULL)) abort();
    remote_sse_free(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    base_buf whole = {0}, cut = {0};
    if (!n) return 0;
    read_all((const char *)bytes + 1, n - 1, n, &whole);
    read_all((const char *)bytes + 1, n - 1, bytes[0] % 16 + 1u, &cut);
    if (whole.len != cut.len || memcmp(whole.data, cut.data, cut.len)) abort();
    base_buf_free(&whole);
    base_buf_free(&cut);
    return 0;
}
