/*
 * Retrieval heads: the few query heads whose attention goes where the answer is. A repair that listens to
 * them alone costs a fraction of all heads and finds more (docs/kv.md, Repair). Found once per model
 * (calibrate/); a small text file.
 */
#ifndef KVIST_KV_HEADS_H
#define KVIST_KV_HEADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where a model's heads are kept: "DATA/rows/HASH.heads". The caller frees. For kv_options.heads_file. */
char *kv_heads_path(const char *model_hash);

/*
 * Such a file's bytes; any are safe. *ret_flags ([n_layer * n_head], 1: kept) and *ret_order (all heads, the
 * best first; NULL where the file does not hold each once) are the caller's. False, and both NULL: damaged,
 * of another model, or without heads.
 */
bool kv_heads_parse(const char *text, size_t n, const char *hash, uint32_t n_layer, uint32_t n_head,
    uint8_t **ret_flags, uint16_t **ret_order);

#endif
