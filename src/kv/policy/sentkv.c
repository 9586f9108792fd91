/* sentkv (SentKVCompress): evicts nothing; read/ chooses which sentences a decoded token reads. */
#include "kv/policy/policy.h"

const kv_policy kv_policy_sentkv = {
    .info = {"sentkv",
        "evicts nothing; what the model writes reads the sentences "
        "that its queries bound highest (SentKVCompress, 2026)",
        "decode usage least_read dense length reach slack syntax kept ahead sinks",
        "SentKVCompress, sections 4.1, 4.2 and 5.1.2; its weights of endings stand in a figure: docs/kv.md; "
        "the bound is Quest's; least_read and syntax: ours"},
    .defaults = {KV_COMMON_DEFAULTS, KV_STRUCTURE_DEFAULTS, KV_PRUNE_DEFAULTS, .low = .875, .window = 32,
        .kernel = 7, .decode = KV_DECODE_SENTENCE, .slack = 1, .usage = .1, .least_read = 256, .length = 14,
        .reach = 8, .syntax = 1, .page = 16, .kept = 1},
};
