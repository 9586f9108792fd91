/*
 * The fixed prompt's rows, computed once per model: one file with ids and rows (and the state behind them, of
 * a model that keeps one) of a sequence that never had a hole, written by rename. Whoever starts a session over the same prompt shares these blocks instead of
 * computing them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/hash.h"
#include "base/mem.h"
#include "kv/core/state.h"
#include "kv/disk/disk.h"
#include "kv/plan/walk.h"
#include "kv/session.h"

enum { PREFIX_VERSION = 1, PREFIX_MOST = 1 << 30 };
static const char magic[8] = "KVPREF\n";

/* Before the ids; all little-endian. A hash64 of everything before it ends the file. */
typedef struct header {
    char magic[8];
    uint32_t version, kernel_version, n_layer, n_head_kv, head_dim, n;
    char model[64];
} header;

static header header_of(const kv_session *s, uint32_t n)
{
    header h = {
        .version = PREFIX_VERSION,
        .kernel_version = s->compute.kernel_version,
        .n_layer = s->compute.shape.n_layer,
        .n_head_kv = s->compute.shape.n_head_kv,
        .head_dim = s->compute.shape.head_dim,
        .n = n,
    };
    memcpy(h.magic, magic, sizeof magic);
    memcpy(h.model, s->compute.hash, sizeof h.model);
    return h;
}

int kv_session_save_prefix(kv_session *s, const char *path, uint32_t n, base_err *err)
{
    if (s->holed)
        return base_fail(err, BASE_E_STATE,
            "rows of this session were evicted; only a prompt computed without holes can be shared");
    if (!n || n > s->n) return base_fail(err, BASE_E_USAGE, "the session has %u tokens, not %u", s->n, n);
    const size_t row_bytes = kv_row_bytes(&s->compute.shape), state_bytes = s->compute.state_bytes,
                 n_bytes = sizeof(header) + n * (sizeof *s->ids + row_bytes) + state_bytes + sizeof(uint64_t);
    kv_state *state = NULL;
    if (state_bytes) {
        const int rc = kv__walk_to(s, n, &state, NULL, err);
        if (rc) return rc;
    }
    uint8_t *bytes = malloc(n_bytes), *at = bytes;
    if (!bytes) {
        kv_state_drop(&s->states, &state);
        return base_fail(err, BASE_E_NOMEM, "no memory to write %u rows", n);
    }
    const header h = header_of(s, n);
    memcpy(at, &h, sizeof h);
    at += sizeof h;
    memcpy(at, s->ids, n * sizeof *s->ids);
    at += n * sizeof *s->ids;
    for (uint32_t i = 0; i < n; i++, at += row_bytes) kv_table_get_row(&s->table, i, (uint16_t *)(void *)at);
    if (state_bytes) at = (uint8_t *)memcpy(at, state->numbers, state_bytes) + state_bytes;
    kv_state_drop(&s->states, &state);
    const uint64_t hash = base_hash64(bytes, (size_t)(at - bytes), 0);
    memcpy(at, &hash, sizeof hash);
    int rc = base_fs_write(path, bytes, n_bytes, 0600, err);
    free(bytes);
    return rc;
}

void kv__prefix_load(kv_session *s, const char *path)
{
    base_buf file = {0};
    const size_t row_bytes = kv_row_bytes(&s->compute.shape);
    uint64_t hash = 0;
    header h = {.n = 0};
    if (base_fs_read(path, PREFIX_MOST, &file, NULL) || file.len < sizeof h + sizeof hash) goto out;
    memcpy(&h, file.data, sizeof h);
    memcpy(&hash, file.data + file.len - sizeof hash, sizeof hash);
    const header want = header_of(s, h.n);
    const size_t state_bytes = s->compute.state_bytes, each = sizeof *s->ids + row_bytes;
    if (file.len - sizeof h - sizeof hash < state_bytes) goto out;
    const size_t room = file.len - sizeof h - sizeof hash - state_bytes;
    if (memcmp(&h, &want, sizeof h) || !h.n || h.n > s->n_ctx || room / each != h.n || room % each ||
        hash != base_hash64(file.data, file.len - sizeof hash, 0))
        goto out;
    int32_t *ids = malloc(h.n * sizeof *ids);
    if (!ids || kv_table_make_writable(&s->prefix.table, 0, h.n, NULL)) {
        free(ids);
        goto out;
    }
    memcpy(ids, file.data + sizeof h, h.n * sizeof *ids);
    for (uint32_t i = 0; i < h.n; i++)
        kv_table_put_row(&s->prefix.table, i,
            (const uint16_t *)(const void *)(file.data + sizeof h + h.n * sizeof *ids + i * row_bytes));
    if (state_bytes) {
        s->prefix.state = kv_state_new(&s->states, state_bytes, NULL);
        if (!s->prefix.state) {
            free(ids);
            goto out;
        }
        s->prefix.state->at = h.n;
        memcpy(s->prefix.state->numbers, file.data + sizeof h + room, state_bytes);
    }
    s->prefix.ids = ids;
    s->prefix.n = h.n;
out:
    base_buf_free(&file);
}
