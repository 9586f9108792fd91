/*
 * The packed formats of formats.def as a table.
 */
#include "model/cpu/cpu.h"
#include "model/file/quant.h"

const cpu_format_info cpu_formats[CPU_N_FORMATS] = {
#define CPU_FORMAT(name, bits, scales, blocks, head, shift, codes)                                           \
    [CPU_##name] = {bits, CPU_SCALES_##scales, blocks, head, 64 * bits, shift, codes},
#include "model/cpu/formats.def"
#undef CPU_FORMAT
};
