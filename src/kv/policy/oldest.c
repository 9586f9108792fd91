/* oldest: a control, the oldest rows go first, sinks too. */
#include "kv/policy/policy.h"

const kv_policy kv_policy_oldest = {
    .info = {"oldest", "a control: the oldest rows go first, sinks too", "low window hard", "-"},
    .score = kv_pass_newest,
    .defaults = {KV_USUAL_DEFAULTS},
};
