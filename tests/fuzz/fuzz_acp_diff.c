/* Two texts with a NUL between them: the diff that an approval shows leads from the one to the other, and back. */
#include "acp/diff.h"

#include <stdlib.h>
#include <string.h>

#include "tools/edit/change.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

typedef struct pair {
    base_buf old_text, new_text;
} pair;

static bool is_same(const base_buf *a, const base_buf *b)
{
    return a->len == b->len && (!a->len || !memcmp(a->data, b->data, a->len));
}

static void check(void *user, const char *path, const char *diff, size_t n, bool is_new, bool is_gone)
{
    const pair *p = user;
    base_buf forward = {0}, back = {0};
    if (strcmp(path, "a.c") || is_new || is_gone) abort();
    if (!acp_diff_apply(diff, n, p->old_text.data, p->old_text.len, true, &forward) ||
        !is_same(&forward, &p->new_text))
        abort();
    if (!acp_diff_apply(diff, n, p->new_text.data, p->new_text.len, false, &back) ||
        !is_same(&back, &p->old_text))
        abort();
    base_buf_free(&forward);
    base_buf_free(&back);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    const uint8_t *middle = n ? memchr(bytes, 0, n) : NULL;
    pair p = {0};
    base_buf diff = {0};
    base_buf_puts(&p.old_text, "");
    base_buf_puts(&p.new_text, "");
    base_buf_add(&p.old_text, bytes, middle ? (size_t)(middle - bytes) : n);
    for (const uint8_t *c = middle ? middle + 1 : bytes + n; c < bytes + n; c++)
        if (*c) base_buf_putc(&p.new_text, (char)*c); /* a NUL is written another way in a diff */
    tool__diff(&diff, "a.c", &p.old_text, &p.new_text, NULL, NULL);
    if (diff.len) acp_diff_each(diff.data, check, &p);
    base_buf_free(&diff);
    base_buf_free(&p.old_text);
    base_buf_free(&p.new_text);
    return 0;
}
