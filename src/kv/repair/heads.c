/*
 * The file of retrieval heads: "kvist heads 1 MODEL_HASH N_LAYER N_HEAD", then one "LAYER HEAD" a line, the
 * best first, then one line "all" with every "LAYER.HEAD" in order. calibrate/ writes it.
 */
#include "kv/repair/heads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/mem.h"
#include "kv/core/model_file.h"
#include "kv/core/state.h"
#include "kv/repair/repair.h"
#include "kv/session.h"

enum { FILE_MOST = 1 << 20 };

/* The next whole number below `bound`, behind blanks. */
static bool take_number(const char **at, const char *end, uint32_t bound, uint32_t *ret)
{
    const char *p = *at;
    uint64_t x = 0;
    while (p < end && (*p == ' ' || *p == '\n')) p++;
    const char *first = p;
    for (; p < end && *p >= '0' && *p <= '9' && x < bound; p++) x = 10 * x + (uint64_t)(*p - '0');
    if (p == first || x >= bound) return false;
    *at = p;
    *ret = (uint32_t)x;
    return true;
}

/* "LAYER HEAD" or, with the best of all in one line, "LAYER.HEAD". */
static bool take_head(
    const char **at, const char *end, char between, uint32_t n_layer, uint32_t n_head, uint32_t *ret)
{
    const char *p = *at;
    uint32_t layer, head;
    if (!take_number(&p, end, n_layer, &layer) || p == end || *p++ != between ||
        !take_number(&p, end, n_head, &head))
        return false;
    *at = p;
    *ret = layer * n_head + head;
    return true;
}

static bool take_word(const char **at, const char *end, const char *word)
{
    const size_t n = strlen(word);
    if ((size_t)(end - *at) < n || memcmp(*at, word, n)) return false;
    *at += n;
    return true;
}

bool kv_heads_parse(const char *text, size_t n, const char *hash, uint32_t n_layer, uint32_t n_head,
    uint8_t **ret_flags, uint16_t **ret_order)
{
    const char *at = text, *end = text + n;
    const uint32_t n_heads = n_layer * n_head;
    uint32_t a, b, i, n_kept = 0, n_ordered = 0;
    *ret_flags = NULL;
    *ret_order = NULL;
    if (!take_word(&at, end, "kvist heads 1 ") || !take_word(&at, end, hash) ||
        !take_number(&at, end, UINT32_MAX, &a) || !take_number(&at, end, UINT32_MAX, &b) || a != n_layer ||
        b != n_head || !n_heads || n_heads > UINT16_MAX || at == end || *at != '\n')
        return false;
    uint8_t *flags = base_xcalloc(n_heads, 1), *seen = base_xcalloc(n_heads, 1);
    uint16_t *order = base_xcalloc(n_heads, sizeof *order);
    for (; take_head(&at, end, ' ', n_layer, n_head, &i); n_kept++) flags[i] = 1;
    if (take_word(&at, end, "\nall"))
        for (; n_ordered < n_heads && take_head(&at, end, '.', n_layer, n_head, &i) && !seen[i]; seen[i] = 1)
            order[n_ordered++] = (uint16_t)i;
    free(seen);
    if (n_ordered == n_heads) {
        *ret_order = order;
    } else {
        free(order);
    }
    if (n_kept) {
        *ret_flags = flags;
        return true;
    }
    free(flags);
    free(*ret_order);
    *ret_order = NULL;
    return false;
}

void kv__heads_load(kv_session *s, const char *path)
{
    base_buf file = {0};
    free(s->heads);
    free(s->best_heads);
    s->heads = NULL;
    s->best_heads = NULL;
    if (path && !base_fs_read(path, FILE_MOST, &file, NULL) && file.len)
        kv_heads_parse(file.data, file.len, s->compute.hash, s->compute.shape.n_layer, s->compute.n_head,
            &s->heads, &s->best_heads);
    base_buf_free(&file);
}

bool kv_session_wants_heads(const kv_session *s)
{
    return s->budget && !s->heads && !s->holed && s->parameters.prune <= 0;
}

void kv_session_set_heads(kv_session *s, const char *heads_file)
{
    if (kv_session_wants_heads(s)) kv__heads_load(s, heads_file);
}

void kv__heads_below(const kv_session *s, uint32_t layer, uint32_t n, uint8_t *flags)
{
    const uint32_t n_below = layer * s->compute.n_head, n_all = s->compute.shape.n_layer * s->compute.n_head;
    memset(flags, 0, n_all);
    if (!s->best_heads) memset(flags, 1, n_below);
    for (uint32_t i = 0; s->best_heads && i < n_all && n; i++)
        if (s->best_heads[i] < n_below) {
            flags[s->best_heads[i]] = 1;
            n--;
        }
}

char *kv_heads_path(const char *model_hash)
{
    return kv_model_file(model_hash, "heads");
}
