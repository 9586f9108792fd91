/*
 * Finding a model's retrieval heads. Two made-up texts hide facts and ask for some; a head's score is the
 * share of its mass on the asked lines, with sinks and the newest rows left out of the softmax. Heads of layers
 * with a window are not looked at: they never read what is far away, and a softmax over rows that they do not see
 * would say they do.
 */
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/mem.h"
#include "kv/calibrate/calibrate.h"
#include "kv/calibrate/needle.h"
#include "kv/core/state.h"
#include "kv/repair/heads.h"
#include "kv/session.h"

enum { N_TEXTS = 2, TEXT_TOKENS = 700, SINKS = 4, WINDOW = 32 };

/* Adds, per head, the share of mass on the asked lines, among rows [SINKS, end). */
static int add_shares(kv_session *s, const kv_needle_text *text, const kv_needle_question *q, float *shares,
    const atomic_bool *cancel, base_err *err)
{
    const uint32_t n_lanes = s->n_lanes, n_head = s->compute.n_head,
                   group = n_head / s->compute.shape.n_head_kv;
    const uint32_t end = (uint32_t)text->text.n - WINDOW, n_heads = s->compute.shape.n_layer * n_head;
    uint64_t *bits = base_xcalloc(kv_bits_words(s->n) + 1, sizeof *bits);
    uint32_t n_runs = 0, n_rows = 0;
    kv_bits_set_range(bits, SINKS, end);
    model_run *runs = kv_runs_of_bits(bits, s->n, &n_runs, &n_rows);
    model_lane_list *lists = base_xcalloc(n_lanes, sizeof *lists);
    float **mass = base_xcalloc(n_lanes, sizeof *mass),
          *rows = malloc(((size_t)n_rows * n_lanes + 1) * sizeof *rows);
    uint8_t *heads = base_xcalloc(n_heads, 1);
    int rc = runs && rows ? 0 : kv_fail_to_score(err, n_rows);
    for (uint32_t lane = 0; lane < n_lanes && !rc; lane++) {
        lists[lane] = (model_lane_list){.runs = runs, .n_runs = n_runs, .n_rows = n_rows};
        mass[lane] = rows + (size_t)lane * n_rows;
    }
    const model_rows_view view = kv__view_of(s, lists);
    /* One head of every lane at a time: its lane's mass is then its own. */
    for (uint32_t g = 0; g < group && !rc; g++) {
        for (uint32_t h = 0; h < n_heads; h++) heads[h] = h % group == g;
        const model_score score = {.queries = s->recent.queries,
            .n_queries = s->recent.n,
            .tokens = s->recent.tokens,
            .rows = &view,
            .pool = MODEL_POOL_MEAN,
            .heads = heads,
            .end = s->n,
            .mass = mass,
            .cancel = cancel};
        rc = kv__score(s, &score, err);
        for (uint32_t lane = 0; lane < n_lanes && !rc; lane++)
            for (uint32_t k = 0; k < KV_NEEDLES_ASKED; k++) {
                const kv_needle *needle = &text->needles[q->asked[k].needle];
                for (uint32_t t = needle->from; t < needle->to && t < end; t++)
                    shares[lane * group + g] += mass[lane][t - SINKS];
            }
    }
    free(bits);
    free(runs);
    free(lists);
    free(mass);
    free(rows);
    free(heads);
    return rc;
}

static int score_text(model *m, uint32_t which, float *shares, const atomic_bool *cancel, base_err *err)
{
    static const uint32_t asked[N_TEXTS][KV_NEEDLES_ASKED] = {{0, 3, 5, 6}, {1, 2, 4, 7}};
    const model_tokenizer *t = model_get_tokenizer(m);
    kv_needle_text text;
    kv_needle_question q;
    kv_needle_text_make(&text, t, model_get_template(m), 100 + which, TEXT_TOKENS);
    kv_needle_question_make(&q, t, model_get_template(m), 100 + which, asked[which], false);
    kv_session *s = NULL;
    int rc = kv_session_new(&s, m, &(kv_options){.policy = "full"}, NULL, err);
    const kv_segment context = {.origin = KV_ORIGIN_CONTEXT, .turn = 1};
    const kv_segment question = {
        .origin = KV_ORIGIN_USER, .turn = 1, .queries = q.queries, .n_queries = q.n_queries};
    if (!rc) rc = kv_session_append(s, &context, text.text.ids, (uint32_t)text.text.n, NULL, cancel, err);
    if (!rc) rc = kv_session_append(s, &question, q.ids.ids, (uint32_t)q.ids.n, NULL, cancel, err);
    if (!rc) {
        /* Of the kept queries those of the names. */
        uint32_t places[64], n = 0;
        for (uint32_t i = 0, k = 0; i < s->recent.n && k < q.n_queries; i++) {
            while (k < q.n_queries && text.text.n + q.queries[k] < s->recent.tokens[i]) k++;
            if (k < q.n_queries && text.text.n + q.queries[k] == s->recent.tokens[i]) places[n++] = i;
        }
        kv_signal named;
        rc = kv_signal_pick(&s->recent, places, n, &named, err);
        if (!rc) {
            kv_signal_fini(&s->recent);
            s->recent = named;
            rc = add_shares(s, &text, &q, shares, cancel, err);
        }
    }
    kv_session_free(s);
    kv_needle_text_free(&text);
    kv_needle_question_free(&q);
    return rc;
}

/* Those of layers with a window come last, and how many others there are; where all have one, they all count. */
static uint32_t leave_out_windows(const model *m, float *shares)
{
    const model_info *info = model_get_info(m);
    uint32_t n = 0;
    for (uint32_t layer = 0; layer < info->n_layer; layer++) n += model_window(m, layer) ? 0 : info->n_head;
    if (!n) return info->n_layer * info->n_head;
    for (uint32_t i = 0; i < info->n_layer * info->n_head; i++)
        if (model_window(m, i / info->n_head)) shares[i] = -1;
    return n;
}

int kv_heads_calibrate(model *m, uint32_t n_heads, const char *path,
    void (*progress)(void *user, double share), void *user, const atomic_bool *cancel, base_err *err)
{
    const model_info *info = model_get_info(m);
    const uint32_t n = info->n_layer * info->n_head;
    if (info->n_ctx < 2 * TEXT_TOKENS)
        return base_fail(
            err, BASE_E_UNSUPPORTED, "the model's context of %u is too short to calibrate in", info->n_ctx);
    float *shares = base_xcalloc(n, sizeof *shares);
    uint32_t *order = base_xcalloc(n, sizeof *order);
    kv_ranker ranker = {0};
    int rc = kv_ranker_reserve(&ranker, n);
    for (uint32_t k = 0; k < N_TEXTS && !rc; k++) {
        rc = score_text(m, k, shares, cancel, err);
        if (progress) progress(user, (double)(k + 1) / N_TEXTS);
    }
    if (!rc) {
        const uint32_t n_read = leave_out_windows(m, shares), n_kept = n_heads < n_read ? n_heads : n_read;
        kv_rank(&ranker, shares, NULL, n, order);
        base_buf out = {0};
        base_buf_printf(&out, "kvist heads 1 %s %u %u\n", info->hash, info->n_layer, info->n_head);
        for (uint32_t i = 0; i < n_kept; i++)
            base_buf_printf(&out, "%u %u\n", order[i] / info->n_head, order[i] % info->n_head);
        base_buf_puts(&out, "all"); /* in their order: a cut asks for the best below it */
        for (uint32_t i = 0; i < n; i++)
            base_buf_printf(&out, " %u.%u", order[i] / info->n_head, order[i] % info->n_head);
        base_buf_putc(&out, '\n');
        rc = base_fs_mkdirs_above(path, err);
        if (!rc) rc = base_fs_write(path, out.data, out.len, 0600, err);
        base_buf_free(&out);
    }
    kv_ranker_free(&ranker);
    free(shares);
    free(order);
    return rc;
}
