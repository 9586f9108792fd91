/*
 * Pruned prefill: the parameters that any policy may set (kv.md section 6; StructKV, seed 001). Fresh bulk goes through the layers
 * below a cut in full; only chosen rows of it go through those above. prune.c chooses, deferred.c computes.
 */
#ifndef KVIST_KV_PRUNE_H
#define KVIST_KV_PRUNE_H

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
/* X(field, "name", least, most, words, about) */
#define KV_PRUNE_PARAMETERS(X) \
    X(prune, "prune", 0, 5, "off heads centrality layer last excerpts", "prefill of fresh bulk: who chooses the rows that go above the cut") \
    X(pivot, "pivot", 0, 1024, NULL, "prune: layers below the cut; below 1: that share of them; 0: as detected for the model") \
    X(floor, "floor", 0, .75, NULL, "prune: share of the layers that is below a detected cut at least") \
    X(keep, "keep", .01, 1, NULL, "prune: share of the bulk's rows that go above the cut") \
    X(stored, "stored", .01, 1, NULL, "prune: share of the bulk's rows that stay in each layer; 1: all that were computed") \
    X(decay, "decay", 0, 1, NULL, "prune: what a layer's saliency still counts in the next") \
    X(asked, "asked", 1, 64, NULL, "prune: query vectors that ask") \
    X(block, "block", 1, 256, NULL, "prune: rows chosen together, by the sum of their scores") \
    X(frame, "frame", 0, 1, "none chosen", "prune by heads: signatures that go up beside chosen lines: those that they stand behind") \
    X(bulk, "bulk", 1, 1048576, NULL, "prune: less fresh text than so many tokens is computed in full") \
    X(computed, "computed", 0, 1048576, NULL, "repair: rows left below a cut that it computes at most")
/* In a row of the table of policies: off, and what it begins with where somebody turns it on (ours). */
#define KV_PRUNE_DEFAULTS .pivot = .46, .floor = .25, .keep = .2, .stored = 1, .decay = .9, .asked = 8, .block = 1, .frame = 1, .bulk = 512, .computed = 128
/* clang-format on */

#endif
