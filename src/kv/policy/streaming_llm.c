/* streaming-llm: the first rows and the newest stay, whatever anybody attends to (Xiao et al., 2023). */
#include "kv/policy/policy.h"

const kv_policy kv_policy_streaming_llm = {
    .info = {"streaming-llm", "sinks and the newest rows (Xiao et al., 2023)", "low sinks window hard",
        "sinks=4: Xiao et al. 2023; low and window: ours, as in every policy"},
    .score = kv_pass_newest,
    .defaults = {KV_USUAL_DEFAULTS, .sinks = 4},
};
