/* Metadata and tensor shapes of a GGUF file: whatever they say, hyper-parameters are bounded and every tensor fits them. */
#include <stdint.h>
#include <stdlib.h>

#include "model/forward/arch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    gguf_file *file;
    model_hyper h;
    model_tensors t;

    if (gguf_parse(&file, data, n, NULL)) return 0;
    if (model_arch_read(file, &h, NULL) == 0) {
        if (!h.n_layer || !h.n_head_kv || h.n_head % h.n_head_kv || h.n_rot > h.head_dim || !(h.norm_eps > 0))
            abort();
        if (model_arch_bind(file, &h, &t, NULL) == 0) {
            const model_layer_tensors *last = &t.layers[h.n_layer - 1];
            const gguf_tensor *down = h.n_experts ? last->down_exps : last->down;
            if (!t.output || t.token_embd->ne[0] != h.n_embd ||
                down->ne[0] != (h.n_experts ? h.n_ff : model_layer_n_ff(&h, h.n_layer - 1)))
                abort();
            if (h.n_taps && (h.n_rows_layers == 0 || h.n_rows_layers >= h.n_layer ||
                                model_layer_rows(&h, h.n_layer) != h.n_rows_layers))
                abort();
            for (uint32_t l = 0; l < h.n_layer; l++) {
                const bool is_recurrent = model_layer_is_recurrent(&h, l);
                const bool makes_rows = !is_recurrent && !model_layer_is_sharing(&h, l);
                if (!t.layers[l].mix != !is_recurrent || !(t.layers[l].k || t.layers[l].qkv) == makes_rows)
                    abort();
                /* Heads fill lanes: side by side, alone, or copied; who shares rows finds some of its kind. */
                const uint32_t n_kv = model_layer_heads_kv(&h, l), d = model_layer_head_dim(&h, l);
                if (n_kv > h.n_head_kv ? n_kv * d != h.n_head_kv * h.head_dim : h.n_head_kv % n_kv != 0)
                    abort();
                if (h.n_head % n_kv || model_layer_rows(&h, l) >= h.n_rows_layers) abort();
                if (is_recurrent && t.layers[l].taps->ne[1] != model_state_channels(&h)) abort();
            }
            if (h.n_experts && (down->ne[2] != h.n_experts || last->router->ne[1] != h.n_experts)) abort();
            model_arch_unbind(&t);
        }
    }
    gguf_close(file);
    return 0;
}
