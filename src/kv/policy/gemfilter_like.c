/*
 * gemfilter-like (after Shi et al., 2024): the last query at one layer chooses; all others leave every layer.
 */
#include "kv/policy/policy.h"

const kv_policy kv_policy_gemfilter_like = {
    .info = {"gemfilter-like",
        "rows by the last query at one layer; all others leave every layer (after Shi et al., 2024)",
        "prune pivot keep asked window low sinks hard",
        "layer 13 of 32: its setting for Llama-3.1-8B; ours keeps the rows where they are, GemFilter "
        "computes them again, renumbered"},
    .score = kv_pass_asked,
    .defaults = {KV_SKIP_DEFAULTS, .prune = KV_PRUNE_LAST, .pivot = .41, .keep = .1, .stored = 1, .asked = 1},
};
