/* quest (Tang et al., 2024): evicts nothing; read/ chooses which pages a decoded token reads. */
#include "kv/policy/policy.h"

const kv_policy kv_policy_quest = {
    .info = {"quest",
        "evicts nothing; what the model writes reads the pages "
        "that its queries bound highest (Tang et al., 2024)",
        "decode usage least_read dense page slack kept ahead sinks",
        "pages of 16, at least 3 of them, the first two layers in full: "
        "Quest's evaluation/quest_attention.py; usage: SentKVCompress's "
        "Table 2; the page being written is always read: ours"},
    .defaults = {KV_COMMON_DEFAULTS, KV_STRUCTURE_DEFAULTS, KV_PRUNE_DEFAULTS, .low = .875, .window = 32,
        .kernel = 7, .decode = KV_DECODE_PAGE, .usage = .1, .least_read = 48, .dense = 2, .length = 14,
        .reach = 8, .slack = 1, .page = 16, .kept = 1},
};
