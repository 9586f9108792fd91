/*
 * The instruction-set levels of this build, which of them the machine runs, and so which kernels a backend
 * gets. Compiled without any level's flags. A new level is its own kernels_*.c, a line in `levels`, a bit in
 * ops.h and its flags in meson.build (docs/engine.md).
 */
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <stddef.h>

#include "model/cpu/cpu.h"

#if defined(KVIST_CPU_AVX2)
static bool has_avx2(void)
{
    unsigned a, b, c, d;
    /* F16C has no name that every compiler knows: bit 29 of leaf 1. */
    bool f16c = __get_cpuid(1, &a, &b, &c, &d) && c >> 29 & 1;
    return f16c && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#endif

#if defined(KVIST_CPU_AVX512)
static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vnni");
}
#endif

/* The best first; plain C, which needs nothing, is not listed. */
static const struct {
    const char *name;
    unsigned bit;
    bool (*runs_here)(void);
    void (*fill)(cpu_kernels *k);
} levels[] = {
#if defined(KVIST_CPU_AVX512)
    {"avx512-vnni", OPS_CPU_AVX512_VNNI, has_avx512, cpu_kernels_avx512},
#endif
#if defined(KVIST_CPU_AVX2)
    {"avx2", OPS_CPU_AVX2, has_avx2, cpu_kernels_avx2},
#endif
    {"plain", 0, NULL, NULL},
};

enum { N_LEVELS = sizeof levels / sizeof *levels };

static bool runs_here(size_t level)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
#endif
    return !levels[level].runs_here || levels[level].runs_here();
}

void cpu_kernels_best(cpu_kernels *k, unsigned cpu_mask)
{
    cpu_kernels_ref(k);
    for (size_t i = 0; i < N_LEVELS; i++) {
        if (levels[i].bit & cpu_mask || !runs_here(i)) continue;
        if (levels[i].fill) levels[i].fill(k);
        return;
    }
}

const char *cpu_ops_level(size_t i, unsigned *ret_mask)
{
    for (size_t level = 0; level < N_LEVELS; level++) {
        if (!runs_here(level) || i--) continue;
        *ret_mask = ~levels[level].bit;
        return levels[level].name;
    }
    return NULL;
}
