/* Rows that are read where they lie in the row file (rows/filed.h): what is damaged there is never computed with. */
#include "kv/core/state.h"

/* Tokens before this one are behind the lane's window for all that the list's newest batch reads, by whole tiles. */
static uint32_t first_read(const kv_session *s, const model_lane_list *list, uint32_t lane)
{
    const uint32_t window = kv__window(s, lane), reach = window + KV_BATCH + MODEL_ROWS_TILE,
                   end =
                       list->n_runs ? list->runs[list->n_runs - 1].index + list->runs[list->n_runs - 1].n : 0;
    return window && end > reach ? end - reach : 0;
}

int kv__check_lane(const kv_session *s, const model_rows_view *rows, uint32_t lane, base_err *err)
{
    const model_lane_list *list = &rows->lanes[lane];
    const uint32_t first = first_read(s, list, lane);
    uint32_t tokens[MODEL_ROWS_BLOCK], n = 0; /* runs are short: several of them side by side */
    int rc = 0;
    for (uint32_t i = 0; i < list->n_runs; i++) {
        const model_run *run = &list->runs[i];
        const uint32_t b = run->slot / MODEL_ROWS_BLOCK;
        if (b >= s->table.n || !s->table.filed[b] || run->index + run->n <= first) continue;
        for (uint32_t k = 0; k < run->n && !rc; k++) {
            tokens[n++] = run->slot + k;
            if (n < MODEL_ROWS_BLOCK) continue;
            rc = kv_table_check_some(&s->table, lane, tokens, n, err);
            n = 0;
        }
        if (rc) return rc;
    }
    return kv_table_check_some(&s->table, lane, tokens, n, err);
}

int kv__check_lists(kv_session *s, const model_rows_view *rows, base_err *err)
{
    const bool is_live = rows->lanes == s->lists.view;
    int rc = 0;
    if (is_live && s->checked == s->epoch + 1) return 0;
    for (uint32_t lane = 0; lane < s->n_lanes && !rc; lane++) rc = kv__check_lane(s, rows, lane, err);
    if (!rc && is_live) s->checked = s->epoch + 1;
    return rc;
}

int kv__check_uncut(const kv_session *s, base_err *err)
{
    for (uint32_t b = 0; b < s->table.n; b++) {
        kv_filed *f = s->table.blocks[b]->filed;
        if (!f || !kv_filed_files_are_cut(f->files)) continue;
        f->is_damaged = true;
        return base_fail(err, BASE_E_FORMAT,
            "the session's row file became shorter while it was in use: open the session again, and what is missing is "
            "computed anew");
    }
    return 0;
}

int kv__score(kv_session *s, const model_score *score, base_err *err)
{
    int rc = 0;
    for (uint32_t lane = 0; lane < s->n_lanes && !rc; lane++)
        if (score->mass[lane]) rc = kv__check_lane(s, score->rows, lane, err);
    if (!rc) rc = s->compute.score(s->compute.user, score, err);
    return rc ? rc : kv__check_uncut(s, err);
}
