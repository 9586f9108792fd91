/* The logits that would follow text if it were appended. */
#include <stdlib.h>

#include "kv/core/state.h"
#include "kv/flow/flow.h"
#include "kv/lab/lab.h"

int kv_session_peek(kv_session *s, const kv_segment *segment, const int32_t *ids, uint32_t n,
    const uint32_t *want, uint32_t n_want, float *logits, base_err *err)
{
    kv_session_forget(s); /* its rows are written over */
    if (!n || n > KV_BATCH)
        return base_fail(err, BASE_E_USAGE, "a look ahead takes 1 to %d tokens, not %u", KV_BATCH, n);
    for (uint32_t i = 0; i < n_want; i++)
        if (want[i] >= n || (i && want[i] <= want[i - 1]))
            return base_fail(err, BASE_E_USAGE, "logits behind token %u of %u", want[i], n);
    uint32_t *phases = malloc(n * sizeof *phases);
    if (!phases) return base_fail(err, BASE_E_NOMEM, "no memory for %u tokens", n);
    model_batch batch = {.want = want, .n_want = n_want, .logits = logits};
    const int rc = kv__compute_ahead(s, segment, &batch, ids, n, kv__phase_behind(s), phases, err);
    free(phases);
    return rc;
}
