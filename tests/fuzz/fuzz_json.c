/* Any bytes: the reader ends, stays inside them, and what it took can be written. */
#include <stdint.h>

#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    base_json_doc *doc;
    if (base_json_parse((const char *)bytes, n, &doc, NULL)) return 0;
    base_buf out = {0};
    base_json_put(&out, base_json_root(doc));
    base_buf_free(&out);
    base_json_free(doc);
    return 0;
}
