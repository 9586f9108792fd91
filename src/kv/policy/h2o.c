/*
 * h2o: what a row was given so far orders, and a share of the kept is for the newest rows whatever they were given (Zhang et al.,
 * 2023: half and half, which is also the grace of a new token). The sums are causal and begin with the session (evict/heavy.c).
 */
#include "kv/policy/policy.h"

const kv_policy kv_policy_h2o = {
    .info = {"h2o", "mass given by all tokens so far, half; the newest rows, half (Zhang et al., 2023)",
        "low recent sinks hard",
        "recent=.5: Zhang et al. 2023, half and half; the recent half is the grace of a new token"},
    .score = kv_pass_heaviest,
    .defaults = {KV_USUAL_DEFAULTS, .recent = .5},
    .heavy = KV_HEAVY_SUM,
};
