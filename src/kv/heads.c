/*
 * Retrieval heads: which query heads a repair listens to. A small text file per model, written by the calibration (kv.md section 7):
 * "kvist heads 1 MODEL_HASH N_LAYER N_HEAD" and one "LAYER HEAD" a line. Missing, damaged or of another model: all heads.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "kv/state.h"

uint8_t *kv__heads_load(const kv_session *s, const char *path)
{
    base_buf file = {0};
    uint8_t *heads = NULL;
    char hash[65] = "";
    unsigned n_layer = 0, n_head = 0, layer = 0, head = 0, n = 0;
    int used = 0;
    if (base_fs_read(path, 1 << 20, &file, NULL) || !file.len) goto out;
    if (sscanf(file.data, "kvist heads 1 %64s %u %u%n", hash, &n_layer, &n_head, &used) != 3) goto out;
    if (strcmp(hash, s->compute.hash) || n_layer != s->compute.shape.n_layer || n_head != s->compute.n_head)
        goto out;
    heads = calloc((size_t)n_layer * n_head, 1);
    for (const char *at = file.data + used; heads && sscanf(at, "%u %u%n", &layer, &head, &used) == 2;
         at += used) {
        if (layer >= n_layer || head >= n_head) {
            n = 0;
            break;
        }
        heads[(size_t)layer * n_head + head] = 1;
        n++;
    }
    if (!n) {
        free(heads);
        heads = NULL;
    }
out:
    base_buf_free(&file);
    return heads;
}
