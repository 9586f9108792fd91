/* Plan blobs from the log: any bytes are refused or give a plan that packs to exactly these bytes again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kv/plan/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    kv_plan *p = NULL;
    base_err err;
    if (kv_plan_unpack(bytes, n, &p, &err)) return 0;
    kv_plan *q = NULL;
    base_buf out = {0}, again = {0};
    kv_plan_pack(p, &out);
    /* Another writer may have spelt it longer (a repeated lane in full); what we write must be stable. */
    if (kv_plan_unpack(out.data, out.len, &q, &err)) abort();
    kv_plan_pack(q, &again);
    if (again.len != out.len || memcmp(again.data, out.data, out.len)) abort();
    kv_plan_free(p);
    kv_plan_free(q);
    base_buf_free(&out);
    base_buf_free(&again);
    return 0;
}
