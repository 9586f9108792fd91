/* What a trained residual would be shown of a session now, for its training (src/learn). Changes nothing. */
#include <stdlib.h>

#include "base/mem.h"
#include "kv/core/state.h"
#include "kv/evict/evict.h"

int kv_session_shown(const kv_session *s, const atomic_bool *cancel, kv_shown *ret, base_err *err)
{
    *ret = (kv_shown){0};
    if (!s->memory) return base_fail(err, BASE_E_STATE, "nobody asked anything yet");
    kv_work memory = {NULL};
    kv_lists lists;
    int rc = kv__whole_lists(s, &memory, &lists, err);
    uint8_t *hard = base_xcalloc((size_t)s->n + 1, 1);
    kv__protect(s, hard);
    const model_rows_view rows = kv__view_of(s, lists.view);
    const kv_pass pass = {.compute = &s->compute,
        .lists = &lists,
        .rows = &rows,
        .parameters = &s->parameters,
        .segments = s->segments,
        .n_segments = s->n_segments,
        .hard = hard,
        .cancel = cancel};
    if (!rc) rc = kv_shown_make(&pass, s->memory->sum, ret, err);
    kv_work_free(&memory);
    free(hard);
    return rc;
}
