/* Any bytes as git's index of either kind of hash: what follows behind its entries changes nothing of the verdict. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tools/guard/git_index.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static const char tail[] = "TREE\0\0\0\0and a checksum that stands where it likes";
    for (int is_sha256 = 0; is_sha256 < 2; is_sha256++) {
        const char *why = tool__git_index_bytes_refused((const char *)bytes, n, is_sha256);
        char *longer = base_xcalloc(1, n + sizeof tail);
        if (n) memcpy(longer, bytes, n);
        memcpy(longer + n, tail, sizeof tail);
        const char *again = tool__git_index_bytes_refused(longer, n + sizeof tail, is_sha256);
        /* One that ended too early may be whole now; what was read to its end stays what it was. */
        if (!why && again) abort();
        free(longer);
    }
    return 0;
}
