/* structkv-half: StructKV's ablation, the cut at half the depth of any model. */
#include "kv/policy/policy.h"

const kv_policy kv_policy_structkv_half = {
    .info = {"structkv-half", "the same with the cut at half the depth, whatever the model",
        "prune pivot keep stored asked window low sinks hard", "StructKV's ablation: a fixed pivot"},
    .score = kv_pass_asked,
    .defaults = {KV_SKIP_DEFAULTS, .prune = KV_PRUNE_CENTRALITY, .pivot = .5, .keep = .2, .stored = .1,
        .asked = 8},
};
