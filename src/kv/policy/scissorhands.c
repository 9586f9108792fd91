/* scissorhands: as h2o, by how often a row was given more than the average (Liu et al., 2023). */
#include "kv/policy/policy.h"

const kv_policy kv_policy_scissorhands = {
    .info = {"scissorhands",
        "how often a row was given more than the average, and the newest rows (Liu et al., 2023)",
        "low recent sinks hard",
        "counting masses above the average: Liu et al. 2023, their pivotal tokens; recent=.1: ours"},
    .score = kv_pass_heaviest,
    .defaults = {KV_USUAL_DEFAULTS, .recent = .1},
    .heavy = KV_HEAVY_COUNT,
};
