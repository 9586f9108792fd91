/* full: keeps everything. */
#include "kv/policy/policy.h"

const kv_policy kv_policy_full = {
    .info = {"full", "keeps everything", "", "-"},
    .defaults = {KV_USUAL_DEFAULTS},
};
