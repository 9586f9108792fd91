/*
 * See the header. The models are the most fetched for coding in 2026 (docs/models.md says by which counts); their
 * files' sizes are the publishers', what a token and a state take follows from the architecture (of gemma-4-12B,
 * whose metadata we have not seen, by the layers and heads of Gemma 3's).
 */
#include "cmd/model_known.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "model/file/gguf.h"
#include "model/forward/arch.h"
#include "model/forward/model.h"
#include "model/forward/packed.h"

/*
 * Of one file: bytes in GB (0: not known to us), K and V of a token in all lanes in KiB, one state in MiB; of the KiB
 * those of layers that read the newest `window` tokens.
 */
typedef struct known_model {
    const char *name, *architecture, *format;
    double gb, row_kib, state_mib, window_kib;
    uint32_t window;
} known_model;

/* clang-format off */
static const known_model models[] = {
    {"Qwen3.8-27B",          "qwen35",       "Q4_K_M",  16.8,  64, 149.6},
    {"Qwen3.6-35B-A3B",      "qwen35moe",    "Q4_K_M",  21.5,  20,  62.8},
    {"Qwen3.6-27B",          "qwen35",       "Q4_K_M",  16.8,  64, 149.6},
    {"Qwen3-Coder-30B-A3B",  "qwen3moe",     "Q4_K_M",  18.6,  96,   0},
    {"Qwen3.5-9B",           "qwen35",       "Q4_K_M",   5.7,  32,  50.3},
    {"Muse-Glimmer-30B",     "muse-glimmer", "Q4_K_M",  18,     0,   0},
    {"gemma-4-31B QAT",      "gemma4",       "Q4_0",    17.5, 960,   0, 800, 1024},
    {"gpt-oss-20b",          "gpt-oss",      "MXFP4",   12.1,  48,   0, 24, 128},
    {"gemma-4-E4B",          "gemma4",       "Q4_K_M",   5,    96,   0, 80, 512},
    {"gemma-4-12B QAT",      "gemma4",       "Q4_0",     7,   384,   0, 320, 1024},
    {"gemma-4-26B-A4B QAT",  "gemma4",       "Q4_0",    14.2, 240,   0, 200, 1024},
    {"North-Mini-Code-30B",  "cohere2moe",   "Q4_K_M",   0,     0,   0},
    {"Qwen3-Coder-Next-80B", "qwen3next",    "Q4_K_M",  48.5,  24,  75.4},
    {"granite-4.2-30b",      "granite",      "Q4_K_M",   0,     0,   0},
    {"Qwen2.5-Coder-7B",     "qwen2",        "Q4_K_M",   4.7,  56,   0},
    {"Qwen2.5-Coder-32B",    "qwen2",        "Q4_K_M",  19.9, 256,   0},
    {"Devstral-Small-2-24B", "mistral3",     "Q4_K_M",  14.3, 160,   0},
    {"Nemotron-3-30B-A3B",   "nemotron_h_moe", "Q4_K_M", 0,     0,   0},
    {"Coder-V2-Lite-16B",    "deepseek2",    "Q4_K_M",  10.4,   0,   0},
    {"GLM-4.7-Flash",        "deepseek2",    "Q4_K_M",  18,     0,   0},
};
/* clang-format on */

static const uint32_t contexts[] = {8192, 32768};
enum { N_CONTEXTS = sizeof contexts / sizeof *contexts, N_STATES = 4 };

/* As a model that is opened asks for it: weights packed, rows, the newest states, and work space. */
static double need_gb(const known_model *m, uint32_t n_rows)
{
    const uint64_t row = (uint64_t)(m->row_kib * 1024), windows = (uint64_t)(m->window_kib * 1024);
    return m->gb * model_packed_share(m->format) +
           ((double)model_rows_memory(row, windows, m->window, n_rows) + N_STATES * m->state_mib * 0x1p20) /
               1e9 +
           .4;
}

static bool is_built(const char *architecture)
{
    const model_arch *a;
    for (size_t i = 0; (a = model_arch_at(i)); i++)
        if (!strcmp(a->name, architecture)) return true;
    return false;
}

static const char *why_not(const char *architecture)
{
    const model_arch_refused *r;
    for (size_t i = 0; (r = model_arch_refused_at(i)); i++)
        if (!strcmp(r->name, architecture)) return r->lacks;
    return "its architecture is not built";
}

static void put_families(base_buf *out)
{
    const model_arch *a;
    const model_arch_refused *r;
    const char *format;
    base_buf_puts(out, "\nArchitectures that run:\n");
    for (size_t i = 0; (a = model_arch_at(i)); i++)
        base_buf_printf(out, "  %-14s %s%s\n", a->name, a->families, a->apart ? " (on the CPU only)" : "");
    base_buf_puts(out, "\nFormats:");
    for (size_t i = 0; (format = gguf_tensor_type_at(i)); i++)
        base_buf_printf(out, "%s %s", i ? "," : "", format);
    base_buf_puts(out, "\n\nArchitectures that do not, and what they need:\n");
    for (size_t i = 0; (r = model_arch_refused_at(i)); i++)
        base_buf_printf(out, "  %-14s %s: %s\n", r->name, r->families, r->lacks);
}

static void put_model(const known_model *m, double free_gb, base_buf *out)
{
    char size[16] = "";
    if (m->gb > 0) snprintf(size, sizeof size, "%.1f", m->gb);
    base_buf_printf(out, "  %-21s %-7s %5s", m->name, m->format, size);
    if (!is_built(m->architecture)) {
        base_buf_printf(out, "%*s  no: %s\n", 8 * N_CONTEXTS, "", why_not(m->architecture));
        return;
    }
    if (m->gb == 0) {
        base_buf_printf(out, "%*s  runs; how large its file is was not seen\n", 8 * N_CONTEXTS, "");
        return;
    }
    for (size_t i = 0; i < N_CONTEXTS; i++) base_buf_printf(out, " %7.1f", need_gb(m, contexts[i]));
    const bool fits_some = need_gb(m, contexts[0]) <= free_gb, fits = need_gb(m, contexts[1]) <= free_gb;
    base_buf_puts(out, fits        ? "  yes\n"
                       : fits_some ? "  yes, at the smaller context\n"
                                   : "  no: too little memory\n");
}

void model_known_print(void)
{
    base_buf out = {0};
    const double free_gb = (double)model_memory_available() / 1e9;
    put_families(&out);
    base_buf_printf(&out,
        "\nWell-known files, GB: the file, and memory with %" PRIu32 " and %" PRIu32
        " rows of cache; on this machine, where %.1f are free:\n",
        contexts[0], contexts[1], free_gb);
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) put_model(&models[i], free_gb, &out);
    base_buf_puts(&out,
        "A budget (--kv-budget) holds fewer rows than the context has tokens. Rows behind a window "
        "(gpt-oss, Gemma) lie on disk.\n");
    fputs(out.data, stdout);
    base_buf_free(&out);
}
