#include "base/queue.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct base_queue {
    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t changed;
    size_t first, n, capacity;
    bool closed;
    int fd; /* a counter: readable while n > 0 or closed */
    void *items[];
};

int base_queue_new(base_queue **ret, size_t capacity, base_err *err)
{
    if (!capacity || capacity > 1u << 20)
        return base_fail(err, BASE_E_LIMIT, "a queue of %zu items", capacity);
    base_queue *q = calloc(1, sizeof *q + capacity * sizeof *q->items);
    if (!q) return base_fail(err, BASE_E_NOMEM, "no memory for a queue of %zu items", capacity);
    q->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (q->fd < 0) {
        free(q);
        return base_fail_sys(err, "eventfd");
    }
    q->capacity = capacity;
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->changed, NULL);
    *ret = q;
    return BASE_OK;
}

void base_queue_free(base_queue *q, void (*free_item)(void *))
{
    if (!q) return;
    for (size_t i = 0; free_item && i < q->n; i++) free_item(q->items[(q->first + i) % q->capacity]);
    close(q->fd);
    pthread_cond_destroy(&q->changed);
    pthread_mutex_destroy(&q->lock);
    free(q);
}

int base_queue_fd(const base_queue *q)
{
    return q->fd;
}

/* Under the lock: the descriptor is readable exactly while there is something to find. */
static void show(base_queue *q)
{
    uint64_t count;
    if (q->n || q->closed) {
        count = 1;
        if (write(q->fd, &count, sizeof count) < 0) return; /* EAGAIN: readable already */
    } else if (read(q->fd, &count, sizeof count) < 0) {
        return; /* EAGAIN: not readable already */
    }
}

bool base_queue_put(base_queue *q, void *item)
{
    pthread_mutex_lock(&q->lock);
    while (q->n == q->capacity && !q->closed) pthread_cond_wait(&q->changed, &q->lock);
    bool open = !q->closed;
    if (open) {
        q->items[(q->first + q->n++) % q->capacity] = item;
        if (q->n == 1) show(q);
        pthread_cond_broadcast(&q->changed);
    }
    pthread_mutex_unlock(&q->lock);
    return open;
}

static void *take_locked(base_queue *q)
{
    if (!q->n) return NULL;
    void *item = q->items[q->first];
    q->first = (q->first + 1) % q->capacity;
    if (!--q->n) show(q);
    pthread_cond_broadcast(&q->changed);
    return item;
}

void *base_queue_try_take(base_queue *q)
{
    pthread_mutex_lock(&q->lock);
    void *item = take_locked(q);
    pthread_mutex_unlock(&q->lock);
    return item;
}

void base_queue_close(base_queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->closed = true;
    show(q);
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
}
