/*
 * A list of tokens, by their numbers in the vocabulary. Zeroed it is empty; the caller frees it.
 */
#ifndef KVIST_MODEL_IDS_H
#define KVIST_MODEL_IDS_H

#include <stddef.h>
#include <stdint.h>

typedef struct model_ids {
    int32_t *ids;
    size_t n, cap;
} model_ids;

void model_ids_add(model_ids *list, int32_t id);
void model_ids_add_all(model_ids *list, const model_ids *more);
void model_ids_free(model_ids *list);

#endif
