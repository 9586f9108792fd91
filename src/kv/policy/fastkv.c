/* fastkv (Jo et al., 2025): prune/ cuts a prefill at one layer, by its attention alone; evicts as snapkv. */
#include "kv/policy/policy.h"

const kv_policy kv_policy_fastkv = {
    .info = {"fastkv", "prefill pruned at a fixed layer by that layer's attention alone (Jo et al., 2025)",
        "prune pivot keep stored asked kernel window low sinks hard",
        "layer 15 of 32, 20% and 10%, w=8: StructKV, sections "
        "4.1 and 4.3; average of 7 neighbours: as SnapKV's kernel"},
    .score = kv_pass_asked,
    .defaults = {KV_SKIP_DEFAULTS, .prune = KV_PRUNE_LAYER, .pivot = .47, .keep = .2, .stored = .1,
        .asked = 8},
};
