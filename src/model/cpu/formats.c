/*
 * The packed formats of formats.def as a table.
 */
#include "model/cpu/cpu.h"

const cpu_format_info cpu_formats[CPU_N_FORMATS] = {
#define CPU_FORMAT(name, bits, scales, blocks, head, shift)                                                  \
    [CPU_##name] = {bits, CPU_SCALES_##scales, blocks, head, 64 * bits, shift},
#include "model/cpu/formats.def"
#undef CPU_FORMAT
};

const uint8_t cpu_fp4[16] = {16, 17, 18, 19, 20, 22, 24, 28, 16, 15, 14, 13, 12, 10, 8, 4};
