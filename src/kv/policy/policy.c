/* The table of policies and the reading of --kv-set. */
#include "kv/policy/policy.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "kv/session.h"

/* clang-format off */
#define COMMON KV_READING_DEFAULTS, .low = .875, .window = 32, .w = 32, .kernel = 7, .seed = 1, .queries = 8, .hysteresis = .05, .heads = 1, KV_STRUCTURE_DEFAULTS, KV_PRUNE_DEFAULTS
#define STRUCTKV KV_READING_DEFAULTS, .low = .875, .window = 8, .w = 32, .kernel = 7, .seed = 1, .queries = 8, .hysteresis = .05, .heads = 1, .sinks = 4, .hard = 1, \
    KV_STRUCTURE_DEFAULTS, .floor = .25, .decay = .9, .block = 1, .frame = 1, .bulk = 512, .computed = 128
static const kv_policy policies[] = {
    {.info = {"kvist", "hard, then program structure, then request and session memory by rank; repairs at every pause",
              "low=.875 sinks=4 window=32 hard=1 soft=.5 w=32 kernel=7 memory=1 queries=8 hysteresis=.05 order=mass grow=line pick=rank lanes=one heads=calibrated signal=replay again=256 visit=.2 visited=again rest=mean",
              "design: docs/kv.md; w, kernel as snapkv; memory: IntentKV; soft, low: ours; heads, lines, replay and visit: measured, docs/benchmarks.md"},
     .score = kv_policy_kvist_score, .defaults = {COMMON, .sinks = 4, .hard = 1, .soft = .5, .memory = 1, .signal = 1, .again = 256, .visit = .2, .visited = KV_VISITED_AGAIN, .rest = 1}, .repair = -1},
    {.info = {"full", "keeps everything", "",
              "-"}, .defaults = {COMMON}},
    {.info = {"sentkv", "evicts nothing; what the model writes reads the sentences that its queries bound highest (SentKVCompress, 2026)",
              "decode=sentence usage=.1 least_read=256 dense=0 length=14 reach=8 slack=1 even=0 syntax=1 sinks=0",
              "SentKVCompress, sections 4.1, 4.2 and 5.1.2; its weights of endings stand in a figure: docs/kv.md; the bound is Quest's; least_read and syntax: ours"},
     .defaults = {.decode = KV_DECODE_SENTENCE, .slack = 1, .usage = .1, .least_read = 256, .length = 14, .reach = 8, .syntax = 1, .page = 16,
         .low = .875, .window = 32, .w = 32, .kernel = 7, .seed = 1, .queries = 8, .hysteresis = .05, .heads = 1, KV_STRUCTURE_DEFAULTS, KV_PRUNE_DEFAULTS}},
    {.info = {"quest", "evicts nothing; what the model writes reads the pages that its queries bound highest (Tang et al., 2024)",
              "decode=page usage=.1 least_read=48 dense=2 page=16 slack=1 even=0 sinks=0",
              "pages of 16, at least 3 of them, the first two layers in full: Quest's evaluation/quest_attention.py; usage: SentKVCompress's Table 2; the page being written is always read: ours"},
     .defaults = {.decode = KV_DECODE_PAGE, .usage = .1, .least_read = 48, .dense = 2, .length = 14, .reach = 8, .slack = 1, .page = 16, .low = .875, .window = 32, .w = 32,
         .kernel = 7, .seed = 1, .queries = 8, .hysteresis = .05, .heads = 1, KV_STRUCTURE_DEFAULTS, KV_PRUNE_DEFAULTS}},
    {.info = {"streaming-llm", "sinks and the newest rows (Xiao et al., 2023)", "low=.875 sinks=4 window=32 hard=0",
              "sinks=4: Xiao et al. 2023; low and window: ours, as in every policy"},
     .score = kv_policy_streaming_score, .defaults = {COMMON, .sinks = 4}},
    {.info = {"snapkv", "mean mass under the request's last queries, pooled, per lane (Li et al., 2024)", "low=.875 sinks=0 window=32 hard=0 w=32 kernel=7",
              "w=32 kernel=7, maximum: its LongBench configuration; mean over a group of heads: KVCache-Factory, docs/gqa_cache_layout.md"},
     .score = kv_policy_snapkv_score, .defaults = {COMMON}},
    {.info = {"codecomp", "excerpts computed each by itself; budgets and spans by program structure, the rest by mass, a set a layer (CodeComp, 2026)",
              "low=.875 sinks=4 window=32 hard=1 w=32 kernel=5 span=.5 least_span=16 alloc=.5 fill=attention local=1",
              "CodeComp, sections 4.2 to 4.5; what the paper does not give: docs/kv.md"},
     .score = kv_policy_codecomp_score, .defaults = {KV_READING_DEFAULTS, .low = .875, .window = 32, .w = 32, .kernel = 5, .seed = 1, .queries = 8,
         .hysteresis = .05, .heads = 1, .sinks = 4, .hard = 1, .local = 1, KV_STRUCTURE_DEFAULTS, KV_PRUNE_DEFAULTS}},
    {.info = {"snapkv-seed", "RepairKV's own selector: keys against the last answer's keys, one set for all lanes", "low=.875 sinks=0 window=128 hard=0",
              "window=128, keys only: RepairKV's code"},
     .score = kv_policy_seed_score, .defaults = {KV_READING_DEFAULTS, .low = .875, .window = 128, .w = 32, .kernel = 7, .seed = 1, .queries = 8, .hysteresis = .05, .heads = 1, KV_PRUNE_DEFAULTS}},
    {.info = {"h2o", "mass given by all tokens so far, half; the newest rows, half (Zhang et al., 2023)", "low=.875 recent=.5 sinks=0 hard=0",
              "recent=.5: Zhang et al. 2023, half and half; the recent half is the grace of a new token"},
     .score = kv_policy_heavy_score, .defaults = {COMMON, .recent = .5}, .heavy = KV_HEAVY_SUM},
    {.info = {"scissorhands", "how often a row was given more than the average, and the newest rows (Liu et al., 2023)", "low=.875 recent=.1 sinks=0 hard=0",
              "counting masses above the average: Liu et al. 2023, their pivotal tokens; recent=.1: ours"},
     .score = kv_policy_heavy_score, .defaults = {COMMON, .recent = .1}, .heavy = KV_HEAVY_COUNT},
    {.info = {"tova", "mass of the newest token's query, mean over heads, a set a layer (Oren et al., 2024)", "low=.875 sinks=0 window=1 hard=0",
              "no parameters: Oren et al. 2024"},
     .score = kv_policy_last_score, .defaults = {KV_READING_DEFAULTS, .low = .875, .window = 1, .w = 32, .kernel = 7, .seed = 1, .queries = 8, .hysteresis = .05, .heads = 1, KV_STRUCTURE_DEFAULTS, KV_PRUNE_DEFAULTS},
     .heavy = KV_HEAVY_LAST},
    {.info = {"knorm", "rows with short keys (Devoto et al., 2024)", "low=.875 sinks=4 window=32 hard=0",
              "no parameters: Devoto et al. 2024; sinks and window: ours"},
     .score = kv_policy_knorm_score, .defaults = {COMMON, .sinks = 4}},
    {.info = {"intentkv", "the rule of IntentKV (2026): mass under the session's memory of requests, one set, once a message",
              "low=1 mode=memory sinks=0 window=1 hard=2",
              "low=1, forced rows hard=2, decay exp(-.5), unit norm: IntentKV, sections 3.1, 3.2 and appendix A"},
     .score = kv_policy_intentkv_score, .whole = true, .defaults = {KV_READING_DEFAULTS, .low = 1, .window = 1, .hard = 2, .mode = 1, .w = 32, .kernel = 7, .seed = 1,
         .queries = 8, .hysteresis = .05, .heads = 1, KV_STRUCTURE_DEFAULTS, KV_PRUNE_DEFAULTS}},
    {.info = {"random", "a control: rows by a seeded hash, per lane", "low=.875 sinks=4 window=32 hard=0 seed=1",
              "-"},
     .score = kv_policy_random_score, .defaults = {COMMON, .sinks = 4}},
    {.info = {"oldest", "a control: the oldest rows go first, sinks too", "low=.875 window=32 hard=0",
              "-"},
     .score = kv_policy_streaming_score, .defaults = {COMMON}},
    {.info = {"structkv", "prefill pruned at the model's own pivot by centrality over the layers below it (StructKV, 2026)",
              "prune=centrality pivot=0 floor=.25 keep=.2 stored=.1 asked=8 decay=.9 window=8 low=.875 sinks=4 hard=1",
              "StructKV, sections 3.2 to 3.4 and 4.1; the floor: ours (docs/kv.md); evicts as snapkv"},
     .score = kv_policy_snapkv_score, .defaults = {STRUCTKV, .prune = KV_PRUNE_CENTRALITY, .keep = .2, .stored = .1, .asked = 8}},
    {.info = {"structkv-half", "the same with the cut at half the depth, whatever the model", "as structkv, pivot=.5",
              "StructKV's ablation: a fixed pivot"},
     .score = kv_policy_snapkv_score, .defaults = {STRUCTKV, .prune = KV_PRUNE_CENTRALITY, .pivot = .5, .keep = .2, .stored = .1, .asked = 8}},
    {.info = {"fastkv", "prefill pruned at a fixed layer by that layer's attention alone (Jo et al., 2025)",
              "prune=layer pivot=.47 keep=.2 stored=.1 asked=8 kernel=7 window=8 low=.875 sinks=4 hard=1",
              "layer 15 of 32, 20% and 10%, w=8: StructKV, sections 4.1 and 4.3; average of 7 neighbours: as SnapKV's kernel"},
     .score = kv_policy_snapkv_score, .defaults = {STRUCTKV, .prune = KV_PRUNE_LAYER, .pivot = .47, .keep = .2, .stored = .1, .asked = 8}},
    {.info = {"gemfilter-like", "rows by the last query at one layer; all others leave every layer (after Shi et al., 2024)",
              "prune=last pivot=.41 keep=.1 asked=1 window=8 low=.875 sinks=4 hard=1",
              "layer 13 of 32: its setting for Llama-3.1-8B; ours keeps the rows where they are, GemFilter computes them again, renumbered"},
     .score = kv_policy_snapkv_score, .defaults = {STRUCTKV, .prune = KV_PRUNE_LAST, .pivot = .41, .keep = .1, .stored = 1, .asked = 1}},
};
static const struct parameter {
    const char *name;
    size_t offset;
    double least, most;
    const char *words; /* names of the values 0, 1, ...; NULL: a number */
    const char *about;
} parameters[] = {
#define PARAMETER_ROW(field, name, least, most, words, about) {name, offsetof(kv_parameters, field), least, most, words, about},
    KV_PARAMETERS(PARAMETER_ROW)
};
/* clang-format on */
enum {
    N_POLICIES = sizeof policies / sizeof *policies,
    N_PARAMETERS = sizeof parameters / sizeof *parameters
};

const kv_policy_info *kv_policy_list(uint32_t *ret_n)
{
    static kv_policy_info infos[N_POLICIES];
    for (size_t i = 0; i < N_POLICIES; i++) infos[i] = policies[i].info;
    *ret_n = N_POLICIES;
    return infos;
}

const kv_parameter_info *kv_parameter_list(uint32_t *ret_n)
{
    static kv_parameter_info infos[N_PARAMETERS];
    for (size_t i = 0; i < N_PARAMETERS; i++)
        infos[i] = (kv_parameter_info){.name = parameters[i].name,
            .words = parameters[i].words,
            .least = parameters[i].least,
            .most = parameters[i].most};
    *ret_n = N_PARAMETERS;
    return infos;
}

void kv_policy_describe(base_buf *out)
{
    base_buf_puts(out, "--kv-policy, and what each begins with:\n");
    for (size_t i = 0; i < N_POLICIES; i++)
        base_buf_printf(out, "  %-18s %s\n%s%s%s", policies[i].info.name, policies[i].info.summary,
            *policies[i].info.parameters ? "                     " : "", policies[i].info.parameters,
            *policies[i].info.parameters ? "\n" : "");
    base_buf_puts(out, "\n--kv-set NAME=VALUE:\n");
    for (size_t i = 0; i < N_PARAMETERS; i++) {
        const struct parameter *p = &parameters[i];
        base_buf range = {0};
        if (p->words)
            base_buf_puts(&range, p->words);
        else
            base_buf_printf(&range, "%.10g to %.10g", p->least, p->most);
        base_buf_printf(out, "  %-14s %-18s %s\n", p->name, range.data, p->about);
        base_buf_free(&range);
    }
}

const kv_policy *kv_policy_find(const char *name, base_err *err)
{
    base_buf known = {0};
    for (size_t i = 0; i < N_POLICIES; i++) {
        if (!name || !strcmp(policies[i].info.name, name)) {
            base_buf_free(&known);
            return &policies[i];
        }
        base_buf_printf(&known, "%s%s", i ? ", " : "", policies[i].info.name);
    }
    base_fail(err, BASE_E_USAGE, "no cache policy is called '%s'; there are %s", name, known.data);
    base_buf_free(&known);
    return NULL;
}

/* The place of a word in "a b c"; -1: it is not there. */
static int word_place(const char *words, const char *word)
{
    const size_t n = strlen(word);
    for (int place = 0; *words; place++) {
        const size_t len = strcspn(words, " ");
        if (len == n && !memcmp(words, word, n)) return place;
        words += len + (words[len] == ' ');
    }
    return -1;
}

static int parse_one(const char *pair, kv_parameters *ret, base_err *err)
{
    const char *equals = strchr(pair, '=');
    const size_t n = equals ? (size_t)(equals - pair) : strlen(pair);
    base_buf known = {0};
    for (size_t i = 0; i < N_PARAMETERS; i++) {
        const struct parameter *p = &parameters[i];
        if (strlen(p->name) != n || memcmp(p->name, pair, n)) {
            base_buf_printf(&known, "%s%s", i ? ", " : "", p->name);
            continue;
        }
        base_buf_free(&known);
        const int place = p->words && equals ? word_place(p->words, equals + 1) : -1;
        if (p->words && place < 0)
            return base_fail(err, BASE_E_USAGE, "--kv-set %s: %s is one of: %s", pair, p->name, p->words);
        if (p->words) {
            const double word = place;
            memcpy((char *)ret + p->offset, &word, sizeof word);
            return 0;
        }
        char *end = NULL;
        const double value = equals ? strtod(equals + 1, &end) : 0;
        if (!equals || end == equals + 1 || *end || !(value >= p->least && value <= p->most))
            return base_fail(err, BASE_E_USAGE, "--kv-set %s: %s is a number from %.10g to %.10g", pair,
                p->name, p->least, p->most);
        memcpy((char *)ret + p->offset, &value, sizeof value);
        return 0;
    }
    base_fail(err, BASE_E_USAGE, "--kv-set %s: no such parameter; there are %s", pair, known.data);
    base_buf_free(&known);
    return BASE_E_USAGE;
}

int kv_parameters_parse(const kv_policy *policy, const char *const *set, kv_parameters *ret, base_err *err)
{
    *ret = policy->defaults;
    for (; set && *set; set++) {
        int r = parse_one(*set, ret, err);
        if (r) return r;
    }
    return 0;
}
