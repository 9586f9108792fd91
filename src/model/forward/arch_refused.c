/*
 * Architectures that occur in GGUF files and are not computed here: what each would need, and what to use
 * instead. What they need is read in llama.cpp's sources (docs/models.md).
 */
#include "model/forward/arch.h"

static const char coder[] = "Qwen3-Coder-30B-A3B", dense[] = "Qwen3.8-27B or Devstral Small 2",
                  little[] = "Qwen3.5-4B or Qwen2.5-Coder-7B", writer[] = "a model that writes text";

/* clang-format off */
static const model_arch_refused refused[] = {
    {"gemma2",         "Gemma 2",                        "soft caps on scores and logits",                           "Gemma 3"},
    {"gemma3n",        "Gemma 3n",                       "several streams beside each other",                        little},
    {"muse-glimmer",   "Muse Glimmer 30B",               "gates on attention, layers without RoPE, scaled logits",   dense},
    {"glm4",           "GLM-4 9B, 32B",                  "norms behind both branches, fused matrices",               dense},
    {"glm4moe",        "GLM-4.5-Air, 4.6",               "a sigmoid router, dense first layers",                     "Qwen3-Coder-Next"},
    {"deepseek2",      "GLM-4.7-Flash, DeepSeek-V2, Coder-V2-Lite, Kimi-K2", "latent attention",                     coder},
    {"cohere2moe",     "North-Mini-Code 30B",            "attention and feed-forward from one norm, a sigmoid router", coder},
    {"granitemoe",     "Granite 3 mixtures",             "scaled embeddings, residuals and logits",                  coder},
    {"granitehybrid",  "Granite 4",                      "layers with a Mamba-2 state",                              "Qwen3.6-35B-A3B"},
    {"nemotron_h",     "Nemotron-H",                     "layers with a Mamba-2 state",                              dense},
    {"nemotron_h_moe", "Nemotron 3 30B",                 "layers with a Mamba-2 state, layers of experts alone",     "Qwen3.6-35B-A3B"},
    {"laguna",         "Laguna XS",                      "gates on heads, heads that differ by layer",               coder},
    {"mellum",         "Mellum 2",                       "a mixture with windows",                                   coder},
    {"lfm2",           "LFM2",                           "layers of short convolutions",                             little},
    {"lfm2moe",        "LFM2 8B-A1B, 24B-A2B",           "layers of short convolutions, a mixture",                  coder},
    {"olmo2",          "OLMo 2 and 3",                   "norms over whole rows of heads, and behind branches",      dense},
    {"starcoder2",     "StarCoder2",                     "layer norms with means, an ungated feed-forward",          "Qwen2.5-Coder-7B"},
    {"ernie4_5-moe",   "ERNIE 4.5 21B-A3B",              "dense layers among those with experts",                    coder},
    {"qwen2moe",       "Qwen1.5 and Qwen2 mixtures",     "a mixture with biases",                                    coder},
    {"qwen3vl",        "Qwen3-VL",                       "pictures",                                                 "Qwen3.5"},
    {"qwen3vlmoe",     "Qwen3-VL mixtures",              "pictures",                                                 "Qwen3.6-35B-A3B"},
    {"minimax-m2",     "MiniMax M2",                     "a sigmoid router; 230 billion parameters",                 "Qwen3-Coder-Next"},
    {"llama4",         "Llama 4",                        "layers with chunks, a mixture of its own",                 coder},
    {"bert",           "embedding models",               "a way to write text: it only makes embeddings",                               writer},
    {"nomic-bert",     "embedding models",               "a way to write text: it only makes embeddings",                               writer},
};
/* clang-format on */

const model_arch_refused *model_arch_refused_at(size_t i)
{
    return i < sizeof refused / sizeof *refused ? &refused[i] : NULL;
}
