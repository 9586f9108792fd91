/* Any bytes as the steps of a rebase, before and after a command: two texts with a NUL between. */
#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "scratch.h"
#include "tools/guard/git_rebase.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    base_buf before = {0}, now = {0};
    char *first = scratch_part(&bytes, &n);
    base_buf_puts(&before, first);
    base_buf_add(&now, bytes, n);
    const char *why = tool__git_todo_refused(&now, &before);
    if (why && !tool__git_todo_refused(&now, NULL)) abort(); /* what stood there before forbids nothing */
    if (tool__git_todo_refused(&now, &now)) abort();
    if (tool__git_todo_refused(&before, &before)) abort();
    base_buf_free(&before);
    base_buf_free(&now);
    free(first);
    return 0;
}
