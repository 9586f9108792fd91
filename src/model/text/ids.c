/*
 * A list of tokens.
 */
#include "model/text/ids.h"

#include <stdlib.h>

#include "base/mem.h"

void model_ids_add(model_ids *list, int32_t id)
{
    if (list->n == list->cap) base_grow(&list->ids, &list->cap, list->n + 1, sizeof *list->ids);
    list->ids[list->n++] = id;
}

void model_ids_add_all(model_ids *list, const model_ids *more)
{
    for (size_t i = 0; i < more->n; i++) model_ids_add(list, more->ids[i]);
}

void model_ids_free(model_ids *list)
{
    free(list->ids);
    *list = (model_ids){0};
}
