/* Documents of the experiments; see bench/common/document.h. */
#include "bench/common/document.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/hash.h"
#include "kv/policy/policy.h"

/* FOLDER/HASH of the model and of all that the rows and their marks follow from. */
char *bench_document_path(const char *folder, model *m, const bench_piece *pieces, size_t n)
{
    base_buf path = {0};
    const char *model_hash = model_get_info(m)->hash;
    uint64_t hash = base_hash64(model_hash, strlen(model_hash), 1);
    for (size_t i = 0; i < n; i++) {
        const kv_segment *g = &pieces[i].segment;
        const uint32_t key[] = {g->origin, g->turn, (uint32_t)pieces[i].ids->n, g->n_lines, g->n_queries};
        hash = base_hash64(key, sizeof key, hash);
        hash = base_hash64(pieces[i].ids->ids, pieces[i].ids->n * sizeof *pieces[i].ids->ids, hash);
        if (g->n_lines) hash = base_hash64(g->lines, g->n_lines * sizeof *g->lines, hash);
        if (g->n_queries) hash = base_hash64(g->queries, g->n_queries * sizeof *g->queries, hash);
    }
    base_buf_printf(&path, "%s/%016llx.rows", folder, (unsigned long long)hash);
    return base_buf_take(&path);
}

static int compute(
    kv_session **ret, model *m, const kv_options *options, const bench_piece *pieces, size_t n, base_err *err)
{
    int r = kv_session_new(ret, m, options, NULL, err);
    for (size_t i = 0; i < n && !r; i++)
        r = kv_session_append(
            *ret, &pieces[i].segment, pieces[i].ids->ids, (uint32_t)pieces[i].ids->n, NULL, NULL, err);
    if (!r && options->row_file) r = kv_session_save(*ret, err);
    if (r) {
        kv_session_free(*ret);
        *ret = NULL;
    }
    return r;
}

int bench_whole_policy(const char **policy, const char *wanted, base_err *err)
{
    const kv_policy *p = kv_policy_find(wanted, err);
    if (!p) return BASE_E_USAGE;
    if (p->heavy && strcmp(*policy, "full") && strcmp(*policy, wanted))
        return base_fail(err, BASE_E_USAGE,
            "%s and %s both add up attention while rows are computed: ask for them in two runs", *policy,
            wanted);
    if (p->heavy) *policy = wanted;
    return 0;
}

int bench_document_open(kv_session **ret, model *m, const bench_piece *pieces, size_t n, const char *policy,
    const char *folder, base_err *err)
{
    const uint64_t start = base_clock_ns();
    char *file = NULL;
    kv_options o = {.policy = policy};
    base_err why = {0};
    int r = 0;
    *ret = NULL;
    if (folder) {
        r = base_fs_mkdirs(folder, err);
        file = bench_document_path(folder, m, pieces, n);
        o.row_file = file;
    }
    const bool opened = !r && folder && kv_session_resume(ret, m, &o, NULL, &why) == 0;
    if (!r && !opened) r = compute(ret, m, &o, pieces, n, err);
    if (!r) {
        uint32_t n_ids = 0;
        kv_session_ids(*ret, &n_ids);
        fprintf(stderr, "document of %u tokens %s in %.1f s\n", n_ids, opened ? "opened" : "computed",
            (double)(base_clock_ns() - start) / 1e9);
    }
    free(file);
    return r;
}
