/* See packed.h. The packing itself says it (cpu_packed_bytes), of one matrix of each format. */
#include "model/forward/packed.h"

#include <string.h>

#include "model/file/quant.h"
#include "model/ops/ops.h"

double model_packed_share(const char *format)
{
    enum { WIDTH = 4096, ROWS = 16 };
    gguf_tensor_type type;
    size_t longest = 0;
    double share = 0;
    for (size_t i = 0; quant_type_at(i, &type); i++) {
        const quant_format *f = quant_format_of(type);
        const char *name = gguf_tensor_type_name(type);
        const size_t n = strlen(name);
        if (n <= longest || strncmp(format, name, n) || (format[n] && format[n] != '_')) continue;
        const gguf_tensor one = {
            .type = type, .ne = {WIDTH, ROWS, 1, 1}, .n_bytes = (uint64_t)WIDTH * ROWS / f->n * f->n_bytes};
        longest = n;
        share = (double)cpu_packed_bytes(&one) / (double)one.n_bytes;
    }
    return share;
}
