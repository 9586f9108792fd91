/*
 * snapkv (Li et al., 2024, section 3): the rule is kv_pass_asked. Per KV head and with queries, unlike what
 * RepairKV's code calls SnapKV. The request's queries are those kept when it was computed: later tool output
 * is judged by them, not by its own last words.
 */
#include "kv/policy/policy.h"

const kv_policy kv_policy_snapkv = {
    .info = {"snapkv", "mean mass under the request's last queries, pooled, per lane (Li et al., 2024)",
        "low sinks window hard w kernel",
        "w=32 kernel=7, maximum: its LongBench configuration; mean over "
        "a group of heads: KVCache-Factory, docs/gqa_cache_layout.md"},
    .score = kv_pass_asked,
    .defaults = {KV_USUAL_DEFAULTS},
};
