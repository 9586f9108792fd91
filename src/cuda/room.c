/* Memory that operations keep their own numbers in, from launch to launch; it grows and never shrinks. */
#include "cuda/backend.h"

int cuda_room_reserve(
    cuda_backend *c, cuda_room *room, size_t n_bytes, size_t more, const char *what, base_err *err)
{
    if (n_bytes <= room->n_bytes) return 0;
    int rc = cuda_finish(c, err);
    if (rc) return rc;
    cuda_room_free(c, room);
    rc = cuda_alloc(c, &room->data, more, what, err);
    if (rc) return rc;
    room->n_bytes = more;
    return cuda_check(c, cudaMemsetAsync(room->data, 0, more, c->stream), err);
}

void cuda_room_free(cuda_backend *c, cuda_room *room)
{
    cuda_free(c, room->data, room->n_bytes);
    *room = (cuda_room){0};
}
