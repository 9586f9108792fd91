/*
 * A device with memory of its own that reads rows (a GPU). It can be told where rows lie, so that it fetches
 * them by itself, and which lists it will need next. All NULL: there is none. It outlives every block that
 * was made for it.
 */
#ifndef KVIST_KV_DEVICE_H
#define KVIST_KV_DEVICE_H

#include <stddef.h>

#include "model/ops/rows.h"

typedef struct kv_device {
    void *user;
    void (*pin)(void *user, void *memory, size_t n_bytes); /* as model_rows_pin and its kin */
    void (*unpin)(void *user, void *memory);
    void (*bring)(void *user, const model_rows_view *rows);
} kv_device;

#endif
