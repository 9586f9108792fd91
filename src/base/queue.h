/*
 * A bounded queue of pointers between threads, with an eventfd that is readable while it holds something, so
 * that a thread can poll() it beside a terminal. Items belong to the queue while inside.
 */
#ifndef KVIST_BASE_QUEUE_H
#define KVIST_BASE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

typedef struct base_queue base_queue;

int base_queue_new(base_queue **ret, size_t capacity, base_err *err);
void base_queue_free(base_queue *q, void (*free_item)(void *)); /* frees what is left; NULL fn leaves it */
int base_queue_fd(const base_queue *q);

/* Waits while full; false when the queue was closed (the caller keeps the item). */
bool base_queue_put(base_queue *q, void *item);
void *base_queue_try_take(base_queue *q); /* NULL when empty */
void base_queue_close(base_queue *q);     /* wakes everybody */

#endif
