/* structkv (StructKV): prune/ cuts a prefill where centrality says; evicts as snapkv. */
#include "kv/policy/policy.h"

const kv_policy kv_policy_structkv = {
    .info = {"structkv",
        "prefill pruned at the model's own pivot by centrality over the layers below it (StructKV, 2026)",
        "prune pivot keep stored asked window low sinks hard",
        "StructKV, sections 3.2 to 3.4 and 4.1; the floor: ours (docs/kv.md); evicts as snapkv"},
    .score = kv_pass_asked,
    .defaults = {KV_SKIP_DEFAULTS, .prune = KV_PRUNE_CENTRALITY, .keep = .2, .stored = .1, .asked = 8},
};
