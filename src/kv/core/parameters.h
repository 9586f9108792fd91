/*
 * What --kv-set may say: every parameter of every policy, once, with its bounds. A policy's row (policy/)
 * holds the values that it begins with; the files that use a parameter say what it does there.
 */
#ifndef KVIST_KV_PARAMETERS_H
#define KVIST_KV_PARAMETERS_H

#include "base/buf.h"
#include "base/err.h"

/* The values of parameters that have words, in the order of their words. */
enum { KV_DECODE_ALL, KV_DECODE_SENTENCE, KV_DECODE_PAGE };
enum { KV_ORDER_MASS, KV_ORDER_KEYS, KV_ORDER_FUSED, KV_ORDER_RANDOM, KV_ORDER_OLDEST };
enum { KV_GROW_LINE, KV_GROW_BURST, KV_GROW_NONE };
enum { KV_PICK_RANK, KV_PICK_COVERAGE, KV_PICK_REFRESH };
enum { KV_SIGNAL_REUSE, KV_SIGNAL_REPLAY, KV_SIGNAL_UNVISITED };
/* Who chooses the rows of a bulk that go above the cut. */
enum {
    KV_PRUNE_OFF,
    KV_PRUNE_HEADS,      /* ours: calibrated heads below the cut, grown to lines and statements */
    KV_PRUNE_CENTRALITY, /* StructKV: saliency added up over the layers below the cut */
    KV_PRUNE_LAYER,      /* FastKV: the saliency of the last layer below the cut */
    KV_PRUNE_LAST, /* after GemFilter: the same by the last query, and the chosen alone stay in any layer */
    KV_PRUNE_EXCERPTS, /* ours, of what is put in front of a request to be read, and where the model's heads are calibrated */
};

/* clang-format off */
#define KV_READING_PARAMETERS(X) \
    X(decode, "decode", 0, 2, "all sentence page", "what a decoded token reads: all active rows, or the sentences or pages that matter to it") \
    X(usage, "usage", .001, 1, NULL, "decode: share of a lane's active rows that it reads") \
    X(least_read, "least_read", 0, 1048576, NULL, "decode: rows that it reads at least") \
    X(dense, "dense", 0, 1024, NULL, "decode: first layers that read everything") \
    X(length, "length", 1, 64, NULL, "decode: tokens of a sentence") \
    X(reach, "reach", 0, 32, NULL, "decode: how far from there it may end") \
    X(slack, "slack", 0, 1, NULL, "decode: share of a section's range of keys that its bound allows for; 1: a bound of all its rows") \
    X(syntax, "syntax", 0, 1, NULL, "decode: statements that a parser saw end sentences") \
    X(page, "page", 1, 256, NULL, "decode: tokens of a page") \
    X(kept, "kept", 1, 16, NULL, "decode with `host`: sections kept in memory, as often as a step reads; 1: those of the step before") \
    X(ahead, "ahead", 0, 1, NULL, "decode with `host`: rows read from disk ahead of the next step, as a share of what a step reads")
#define KV_READING_DEFAULTS .usage = .1, .least_read = 256, .length = 14, .reach = 8, .slack = .25, .syntax = 1, .page = 16, .kept = 1
/*
 * X(field, "name", least, most, words, about). CodeComp gives span, alloc and the weights of spans; chunks are
 * weighted by the same ones, and by what policy/structure.c holds.
 */
#define KV_STRUCTURE_PARAMETERS(X) \
    X(span, "span", 0, 1, NULL, "codecomp: share of a chunk's rows for spans; 0: attention alone chooses") \
    X(protect, "protect", 0, 1, NULL, "signatures and symbols that the request names go before other spans") \
    X(cores, "cores", 0, 1, NULL, "the essential part of a span (callee, left side) goes before its extent") \
    X(merge, "merge", 0, 64, NULL, "codecomp: spans with at most so many lines from one to the next are one, of 16 tokens at least; 0: none are") \
    X(alloc, "alloc", 0, .95, NULL, "codecomp: a chunk's share is r * (1 - alloc .. 1 + alloc) by its structure") \
    X(fill, "fill", 0, 1, "attention nearest", "codecomp: the rest of a chunk goes by mass, or to what is next to its spans") \
    X(local, "local", 0, 1, NULL, "codecomp: excerpts are computed each by itself, at overlapping phases") \
    X(call, "call", 0, 1, NULL, "weight of a call") \
    X(control, "control", 0, 1, NULL, "weight of the predicate of an if, a loop, a switch") \
    X(query, "query", 0, 1, NULL, "weight of a symbol that the request names") \
    X(ret, "return", 0, 1, NULL, "weight of a return") \
    X(assign, "assign", 0, 1, NULL, "weight of an assignment") \
    X(defuse, "defuse", 0, 1, NULL, "weight of an end of a def-use pair") \
    X(attention, "attention", 0, 1, NULL, "weight of a mean mass above the chunk's median")
/* In a row of the table of policies. */
#define KV_STRUCTURE_DEFAULTS \
    .span = .5, .protect = 1, .cores = 1, .alloc = .5, .call = .20, .control = .18, .query = .18, .ret = .14, \
    .assign = .14, .defuse = .10, .attention = .06
/* X(field, "name", least, most, words, about) */
#define KV_PRUNE_PARAMETERS(X) \
    X(prune, "prune", 0, 5, "off heads centrality layer last excerpts", "prefill of fresh bulk: who chooses the rows that go above the cut") \
    X(pivot, "pivot", 0, 1024, NULL, "prune: layers below the cut; below 1: that share of them; 0: as detected for the model") \
    X(keep, "keep", .01, 1, NULL, "prune: share of the bulk's rows that go above the cut") \
    X(stored, "stored", .01, 1, NULL, "prune: share of the bulk's rows that stay in each layer; 1: all that were computed") \
    X(asked, "asked", 1, 64, NULL, "prune: query vectors that ask") \
    X(frame, "frame", 0, 1, "none chosen", "prune by heads: signatures that go up beside chosen lines: those that they stand behind") \
    X(bulk, "bulk", 1, 1048576, NULL, "prune: less fresh text than so many tokens is computed in full") \
    X(computed, "computed", 0, 1048576, NULL, "repair: rows left below a cut that it computes at most")
/* In a row of the table of policies: off, and what it begins with where somebody turns it on (ours). */
#define KV_PRUNE_DEFAULTS .pivot = .46, .keep = .2, .stored = 1, .asked = 8, .frame = 1, .bulk = 512, .computed = 128

/*
 * --kv-set NAME=VALUE. X(field, "name", least, most, words, about): words is NULL for a number, else the names of the values 0, 1, ...
 */
#define KV_PARAMETERS(X) \
    X(low, "low", .1, 1, NULL, "an eviction pass goes down to this share of the budget") \
    X(sinks, "sinks", 0, 256, NULL, "first rows of the sequence, hard") \
    X(window, "window", 1, 4096, NULL, "newest rows, hard") \
    X(hard, "hard", 0, 2, NULL, "fixed prompt, instructions and current request are hard too; 2: a newest result too") \
    X(soft, "soft", 0, 1, NULL, "share of a segment's rows that structure chooses, behind attention's own best") \
    X(w, "w", 1, 64, NULL, "query vectors of the request") \
    X(kernel, "kernel", 1, 63, NULL, "rows of the max pooling, odd") \
    X(memory, "memory", 0, 1, NULL, "weight of the session memory's rank beside the request's") \
    X(queries, "queries", 1, 64, NULL, "query vectors of a repair") \
    X(recent, "recent", 0, 1, NULL, "share of what an eviction leaves that is for the newest rows") \
    X(mode, "mode", 0, 1, "query memory", "intentkv: the newest message asks, or the session's memory") \
    X(residual, "residual", 0, 1, "off on", "intentkv: what `kvist learn` trained on this user's sessions corrects the rule") \
    X(host, "host", 0, 1048576, NULL, "MiB of rows kept in memory, evicted rows beyond it on disk only; 0: no limit but that of a folded session") \
    X(states, "states", 0, 1048576, NULL, "MiB of kept states in memory, of models that keep one beside rows; two at least") \
    X(states_disk, "states_disk", 0, 1048576, NULL, "MiB of them on disk; the newest at least") \
    X(disk, "disk", 0, 1048576, NULL, "MiB of rows on disk, the oldest evicted ones beyond it given up; 0: no limit") \
    X(tier, "tier", 0, 1, "exact 8bit", "evicted rows beyond `host` MiB: on disk, or in 8 bits while that suffices") \
    X(order, "order", 0, 4, "mass keys fused random oldest", "repair: who asks first (repair.h)") \
    X(grow, "grow", 0, 2, "line burst none", "repair: what comes with an anchor") \
    X(pick, "pick", 0, 2, "rank coverage refresh", "repair: how anchors are taken") \
    X(focus, "focus", 0, 1, NULL, "repair by mass, once rows are folded and where one line answers a request clearly: only lines come back whose best row has this share of the most at least, and one; the others visit no token but a call; 0: all that there is room for") \
    X(outshone, "outshone", 0, .5, NULL, "repair with focus: lines behind those that come back visit no token but a call until they are this share of the session; 0: as many as there would be room for") \
    X(quote, "quote", 0, 4, NULL, "repair with focus: so many lines that answer a request clearly are quoted behind it; 0: none") \
    X(lanes, "lanes", 0, 1, "one each", "repair: one set for all lanes, or a set for each") \
    X(heads, "heads", 0, 1, "all calibrated", "repair: whose mass counts, where heads are calibrated") \
    X(signal, "signal", 0, 2, "reuse replay unvisited", "repair: the signal's own rows stay; are computed again; are where what comes back could not visit them") \
    X(again, "again", 0, 1048576, NULL, "repair: a longer message is not computed again; 0: no limit") \
    X(message, "message", 0, 1, NULL, "share of the context that lists may grow to until a message's question is complete; 0: a pass behind every batch") \
    X(visit, "visit", 0, .5, NULL, "share of the budget kept for evicted rows that a token chooses for itself and nobody brings back; 0: none") \
    X(rest, "rest", 0, 1, "none mean", "visit: rows that are weighed and not read: left out, or the means of their values stand in for them") \
    X(open, "open", 0, 16777216, NULL, "visit: evicted rows that a token weighs one by one, in the pages that it seems to need; 0: all, however many there are") \
    X(open_asked, "open_asked", 0, 16777216, NULL, "visit: the same behind a repair that outshone other lines (focus), but for calls; 0, or more than `open`: as `open`") \
    KV_READING_PARAMETERS(X) \
    KV_STRUCTURE_PARAMETERS(X) \
    KV_PRUNE_PARAMETERS(X)
/* clang-format on */
#define KV_PARAMETER_FIELD(field, name, least, most, words, about) double field;
typedef struct kv_parameters {
    KV_PARAMETERS(KV_PARAMETER_FIELD)
} kv_parameters;

/* Applies "NAME=VALUE" pairs (NULL-terminated, may be NULL) over a policy's defaults. */
int kv_parameters_parse(
    const kv_parameters *defaults, const char *const *set, kv_parameters *ret, base_err *err);
/* "NAME=VALUE NAME=VALUE" of the parameters named, as --kv-set takes them. names: between blanks. */
void kv_parameters_print(const kv_parameters *values, const char *names, base_buf *out);

#endif
