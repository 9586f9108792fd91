/*
 * The CPU backend: opens, owns memory, and fills the table of model/ops/ops.h. An operation stands in
 * the file of its kind (activations.c has norms and quantisation, small_ops.c what is short), its arithmetic in
 * kernels_*.c.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "model/cpu/cpu.h"

static int cpu_sync(model_ops *ops, base_err *err)
{
    (void)ops;
    (void)err;
    return 0;
}

static int cpu_buffer_new(model_ops *ops, ops_buffer **ret, size_t n_bytes, base_err *err)
{
    (void)ops;
    ops_buffer *b = malloc(sizeof *b);
    if (!n_bytes) n_bytes = 1;
    void *data = b ? base_huge_alloc(n_bytes) : NULL;
    if (!data) {
        free(b);
        return base_fail(err, BASE_E_NOMEM, "no memory for a buffer of %zu bytes", n_bytes);
    }
    *b = (ops_buffer){data, n_bytes};
    *ret = b;
    return 0;
}

static void cpu_buffer_free(model_ops *ops, ops_buffer *b)
{
    (void)ops;
    if (!b) return;
    base_huge_free(b->data, b->n_bytes);
    free(b);
}

static size_t cpu_buffer_bytes(const ops_buffer *b)
{
    return b->n_bytes;
}

static void cpu_upload(model_ops *ops, ops_buffer *to, size_t at_bytes, const void *from, size_t n_bytes)
{
    (void)ops;
    memcpy((uint8_t *)to->data + at_bytes, from, n_bytes);
}

static void cpu_download(model_ops *ops, void *to, const ops_buffer *from, size_t at_bytes, size_t n_bytes)
{
    (void)ops;
    memcpy(to, (const uint8_t *)from->data + at_bytes, n_bytes);
}

/* ---- what the multipliers give ---- */

typedef struct peak_job {
    void (*fn)(uint64_t n);
    uint64_t n;
} peak_job;

static void peak_run(void *arg, int thread, int n_threads)
{
    const peak_job *j = arg;
    (void)thread;
    (void)n_threads;
    j->fn(j->n);
}

static double measure_peak(model_ops *ops, ops_peak kind)
{
    enum { ROUNDS = 2 << 20, PASSES = 4 };
    cpu_ops *cpu = (cpu_ops *)ops;
    peak_job j = {cpu->kernels.peak[kind], ROUNDS};
    double best = 0;
    if (!j.fn) return 0;
    for (int pass = 0; pass < PASSES; pass++) {
        uint64_t from = base_clock_ns();
        base_pool_run(cpu->pool, peak_run, &j);
        double seconds = (double)(base_clock_ns() - from) / 1e9;
        double macs = (double)ROUNDS * CPU_PEAK_STEPS * cpu->kernels.peak_macs[kind] * cpu->n_threads;
        if (macs / seconds > best) best = macs / seconds;
    }
    return best;
}

static void cpu_turn_keys(model_ops *ops, const ops_turns *turns, uint32_t index, uint32_t step, uint32_t n,
    uint32_t head_dim, uint16_t *keys)
{
    const cpu_kernels *k = &((cpu_ops *)ops)->kernels;
    for (uint32_t i = 0; i < n; i++, keys += head_dim) {
        const uint32_t group = (index + i * step) / MODEL_ROWS_GROUP;
        if (cpu_gap_of(turns, group)) cpu_turn_key(k, turns, group, keys, head_dim, keys);
    }
}

static void cpu_close(model_ops *ops)
{
    if (!ops) return;
    cpu_ops *cpu = (cpu_ops *)ops;
    base_pool_free(cpu->pool);
    for (int i = 0; i < cpu->n_threads; i++) base_huge_free(cpu->scratch[i].data, cpu->scratch[i].n_bytes);
    base_huge_free(cpu->shared.data, cpu->shared.n_bytes);
    cpu_arena_free(cpu);
    free(cpu);
}

int cpu_ops_open(model_ops **ret, int n_threads, unsigned cpu_mask, base_err *err)
{
    cpu_ops *cpu = calloc(1, sizeof *cpu);
    if (!cpu) return base_fail(err, BASE_E_NOMEM, "no memory for the CPU backend");
    int rc = base_pool_new(&cpu->pool, n_threads, err);
    if (rc < 0) {
        free(cpu);
        return rc;
    }
    cpu->n_threads = n_threads;
    cpu_kernels_best(&cpu->kernels, cpu_mask);
    cpu->ops = (model_ops){
        .backend = "cpu",
        .isa = cpu->kernels.isa,
        .kernel_version = 3,
        .turns = true,
        .close = cpu_close,
        .sync = cpu_sync,
        .buffer_new = cpu_buffer_new,
        .buffer_free = cpu_buffer_free,
        .buffer_bytes = cpu_buffer_bytes,
        .upload = cpu_upload,
        .download = cpu_download,
        .activations_new = cpu_activations_new,
        .activations_free = cpu_activations_free,
        .pack = cpu_pack,
        .weight_free = cpu_weight_free,
        .weight_bytes = cpu_weight_bytes,
        .weight_outputs = cpu_weight_outputs,
        .peak = measure_peak,
        .turn_keys = cpu_turn_keys,
#define MODEL_OP(op) .op = cpu_op_##op,
#include "model/ops/ops.def"
#undef MODEL_OP
    };
    *ret = &cpu->ops;
    return 0;
}
