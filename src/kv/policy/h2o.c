/*
 * h2o (Zhang et al., 2023): rows with the largest mass so far stay (evict/heavy.c adds it up), and a share
 * of the kept rows is for the newest, which had no time to collect any.
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
