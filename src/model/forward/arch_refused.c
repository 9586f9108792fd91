/*
 * Architectures that occur in GGUF files and are not computed here: what each would need, and what to use
 * instead. What they need is read in llama.cpp's sources (docs/models.md).
 */
#include "model/forward/arch.h"

static const char coder[] = "Qwen3-Coder-30B-A3B", dense[] = "Qwen3.8-27B or Devstral Small 2",
                  little[] = "Qwen3.5-4B or Qwen2.5-Coder-7B", writer[] = "a model that writes text";

/* clang-format off */
static const model_arch_refused refused[] = {
    {"gemma2",         "Gemma 2",                                            "soft caps on scores and logits",                                   "Gemma 3"},
    {"gemma3n",        "Gemma 3n",                                           "several streams beside each other",                                little},
    {"muse-glimmer",   "Muse Glimmer 30B",                                   "gates on attention, scaled logits",                                dense},
    {"glm4",           "GLM-4 9B, 32B",                                      "norms behind both branches, half of a head turned",                dense},
    {"glm4moe",        "GLM-4.5-Air, 4.6",                                   "a sigmoid router, dense first layers",                             "Qwen3-Coder-Next"},
    {"deepseek2",      "GLM-4.7-Flash, DeepSeek-V2, Coder-V2-Lite, Kimi-K2", "latent attention",                                                 coder},
    {"cohere2moe",     "North-Mini-Code 30B",                                "attention and feed-forward from one norm, a sigmoid router",       coder},
    {"granitemoe",     "Granite 3 mixtures",                                 "a mixture whose branches are scaled",                              coder},
    {"granitehybrid",  "Granite 4",                                          "layers with a Mamba-2 state",                                      "Qwen3.6-35B-A3B"},
    {"nemotron_h",     "Nemotron-H",                                         "layers with a Mamba-2 state",                                      dense},
    {"nemotron_h_moe", "Nemotron 3 30B",                                     "layers with a Mamba-2 state, layers of experts alone",             "Qwen3.6-35B-A3B"},
    {"laguna",         "Laguna XS",                                          "gates on heads, heads that differ by layer",                       coder},
    {"mellum",         "Mellum 2",                                           "RoPE that is stretched in some layers only",                       coder},
    {"lfm2",           "LFM2",                                               "layers of short convolutions",                                     little},
    {"lfm2moe",        "LFM2 8B-A1B, 24B-A2B",                               "layers of short convolutions, a mixture",                          coder},
    {"olmo2",          "OLMo 2 and 3",                                       "norms over whole rows of heads, and behind branches",              dense},
    {"starcoder2",     "StarCoder2",                                         "layer norms with means, an ungated feed-forward",                  "Qwen2.5-Coder-7B"},
    {"ernie4_5-moe",   "ERNIE 4.5 21B-A3B",                                  "dense layers among those with experts",                            coder},
    {"qwen2moe",       "Qwen1.5 and Qwen2 mixtures",                         "a mixture with biases",                                            coder},
    {"qwen3vl",        "Qwen3-VL",                                           "pictures",                                                         "Qwen3.5"},
    {"qwen3vlmoe",     "Qwen3-VL mixtures",                                  "pictures",                                                         "Qwen3.6-35B-A3B"},
    {"minimax-m2",     "MiniMax M2",                                         "a sigmoid router; 230 billion parameters",                         "Qwen3-Coder-Next"},
    {"llama4",         "Llama 4",                                            "layers with chunks, a mixture of its own",                         coder},
    {"phimoe",         "Phi-3.5-MoE",                                        "biases of its norms, a mixture",                                   coder},
    {"command-r",      "Command R",                                          "layer norms with means, attention and feed-forward from one norm", dense},
    {"cohere2",        "Command R7B, Command A",                             "layer norms with means, attention and feed-forward from one norm", dense},
    {"mamba",          "Mamba",                                              "layers with a Mamba state, none with rows",                        little},
    {"mamba2",         "Mamba 2, Codestral Mamba",                           "layers with a Mamba-2 state, none with rows",                      little},
    {"jamba",          "Jamba",                                              "layers with a Mamba state, a mixture",                             "Qwen3.6-35B-A3B"},
    {"falcon-h1",      "Falcon-H1",                                          "a Mamba-2 state beside attention in every layer",                  little},
    {"rwkv7",          "RWKV 7",                                             "layers with a state, none with rows",                              little},
    {"kimi-linear",    "Kimi Linear 48B-A3B",                                "latent attention, layers with a state of their own",               "Qwen3.6-35B-A3B"},
    {"kimi-k3",        "Kimi K3",                                            "latent attention, layers with a state of their own",               "Qwen3-Coder-Next"},
    {"minimax-01",     "MiniMax-01, M1",                                     "layers of lightning attention; 456 billion parameters",            "Qwen3-Coder-Next"},
    {"mistral4",       "Mistral Small 4 119B",                               "latent attention",                                                 "Devstral Small 2"},
    {"deepseek32",     "DeepSeek-V3.2",                                      "latent attention that chooses its rows",                           "Qwen3-Coder-Next"},
    {"glm-dsa",        "GLM-5",                                              "latent attention",                                                 "Qwen3-Coder-Next"},
    {"step35",         "Step 3.5 Flash",                                     "gates on heads, a sigmoid router",                                 "Qwen3-Coder-Next"},
    {"afmoe",          "Trinity",                                            "gates on attention, a sigmoid router",                             coder},
    {"qwen2vl",        "Qwen2-VL, Qwen2.5-VL",                               "pictures",                                                         "Qwen3.5"},
    {"bert",           "embedding models",                                   "a way to write text: it only makes embeddings",                    writer},
    {"nomic-bert",     "embedding models",                                   "a way to write text: it only makes embeddings",                    writer},
};
/* clang-format on */

const model_arch_refused *model_arch_refused_at(size_t i)
{
    return i < sizeof refused / sizeof *refused ? &refused[i] : NULL;
}
