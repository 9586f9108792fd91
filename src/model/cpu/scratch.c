/*
 * What a running operation asks of the backend: working space, and whether it is still wanted.
 */
#include "base/mem.h"
#include "model/cpu/cpu.h"

enum { PAGE = 2 << 20 }; /* working space grows by these: a longer context needs more only now and then */

int cpu_scratch_reserve(cpu_ops *cpu, size_t per_thread, size_t shared, base_err *err)
{
    for (int i = -1; i < cpu->n_threads; i++) {
        size_t wanted = ((i < 0 ? shared : per_thread) + PAGE - 1) / PAGE * PAGE;
        void **data = i < 0 ? &cpu->shared.data : &cpu->scratch[i].data;
        size_t *n_bytes = i < 0 ? &cpu->shared.n_bytes : &cpu->scratch[i].n_bytes;
        if (wanted <= *n_bytes) continue;
        base_huge_free(*data, *n_bytes);
        *n_bytes = 0;
        *data = base_huge_alloc(wanted);
        if (!*data) return base_fail(err, BASE_E_NOMEM, "no memory for %zu bytes of working space", wanted);
        *n_bytes = wanted;
    }
    return 0;
}

bool cpu_is_cancelled(const cpu_ops *cpu)
{
    return cpu->ops.cancel && atomic_load_explicit(cpu->ops.cancel, memory_order_relaxed);
}

int cpu_cancelled(base_err *err)
{
    return base_fail(err, BASE_E_CANCELLED, "cancelled");
}
