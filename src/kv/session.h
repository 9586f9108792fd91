/*
 * A session's memory: the token sequence, its rows, and what of them the model may read.
 *
 * The sequence only grows (truncation serves cancel, rewind and prompt lookup). Tokens are appended with what they are
 * (kv_segment); the chunk loop computes them in batches of 512 and evicts between batches when the policy says so; at a
 * pause, kv_session_repair asks the newest signal which evicted rows come back. Every change of the live lists is a kv_plan,
 * handed to the observer before it is applied.
 *
 * Thread: the engine thread only.
 */
#ifndef KVIST_KV_SESSION_H
#define KVIST_KV_SESSION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "kv/plan.h"
#include "kv/signal.h"
#include "model/forward/model.h"

typedef struct kv_session kv_session;

typedef struct kv_options {
    uint32_t budget;        /* active rows per lane after an eviction pass; 0: no limit (full) */
    const char *policy;     /* a name of kv_policy_list; NULL: "kvist" */
    int repair;             /* rows a repair may bring back per lane; 0: off; -1: the policy's default */
    const char *const *set; /* "NAME=VALUE" pairs for the policy, NULL-terminated; may be NULL */
    uint32_t n_ctx;         /* the session's end; 0: the model's */
    bool
        bare; /* a budget that leaves less than a forward pass beside hard rows is taken too: a fork of a comparison */
    const char
        *row_file; /* where rows are kept for resume; NULL: memory only. Manifest: "ROW_FILE.manifest" */
    /*
     * What kv_session_save_prefix left, of an earlier session of this model: appended ids that equal it from the
     * sequence's start on cost no forward pass (kv_stats.reused counts them). A missing, damaged or foreign file is no
     * error: it is not used. Only SYSTEM, SCAFFOLD and INSTRUCTIONS segments are looked up (others carry a signal that
     * must be computed). NULL: none.
     */
    const char *prefix_file;
    const char
        *heads_file; /* retrieval heads of this model; missing or foreign: all heads. NULL: all heads */
    const char *
        pivot_file; /* where prefill is cut (pivot.h); written when it is detected. NULL: detected anew each session */
} kv_options;

/* Where tokens come from, for hard protection and for the person who looks. */
typedef enum kv_origin {
    KV_ORIGIN_SYSTEM,       /* fixed prompt: hard */
    KV_ORIGIN_SCAFFOLD,     /* role markers */
    KV_ORIGIN_INSTRUCTIONS, /* AGENTS.md: hard */
    KV_ORIGIN_USER,         /* the request: hard while current */
    KV_ORIGIN_CONTEXT,      /* retrieved excerpts */
    KV_ORIGIN_TOOL,         /* a tool's result */
    KV_ORIGIN_ANSWER,       /* what the model wrote */
    KV_ORIGIN_CALL,         /* ... of it, a tool call */
    KV_N_ORIGINS
} kv_origin;
const char *kv_origin_word(kv_origin o);
static inline bool kv_origin_is_written(kv_origin o)
{
    return o == KV_ORIGIN_ANSWER || o == KV_ORIGIN_CALL;
}

/* A span inside a segment that structure protects softly (token offsets from the segment's start). */
typedef struct kv_span {
    uint32_t from, to;
    uint8_t reason; /* KV_REASON_SIGNATURE, KV_REASON_CALL, ... */
    float weight;   /* order within the soft share; higher stays longer */
    uint16_t marks; /* KV_MARK_* (structure.h): the policy's own weights order it then; 0: weight does */
    uint16_t n_flow, n_dependence; /* edges of control flow and of def-use that begin here */
} kv_span;

/*
 * Executing a log again: what was decided while a segment was appended. Behind each of `stops` (token offsets, ascending) `decide` applies
 * the logged plans that were made there. of: the tokens it was to have, where a cancel ended it sooner; 0: those given.
 */
typedef struct kv_logged {
    const uint32_t *stops;
    uint32_t n_stops, of;
    int (*decide)(void *user, uint32_t n_tokens, base_err *err);
    void *user;
} kv_logged;

typedef struct kv_segment {
    kv_origin origin;
    uint32_t turn;
    const kv_span *spans; /* copied */
    uint32_t n_spans;
    const uint32_t
        *lines; /* token offsets where a line starts, ascending (repair grows to lines); copied; or NULL */
    uint32_t n_lines;
    /*
     * Token offsets whose queries say what the segment asks for (identifiers, content words), ascending; copied. They are
     * kept while the segment is computed, so that kv_session_repair costs no second pass: name here what you will name
     * there. NULL: the last 32 of a USER segment and an even choice of a TOOL segment.
     */
    const uint32_t *queries;
    uint32_t n_queries;
    /*
     * Tokens of all the fresh text (CONTEXT or TOOL) that comes with this segment, which decides whether its prefill is pruned; 0: its
     * own. A request that follows excerpts asks for all of them.
     */
    uint32_t bulk;
    bool whole; /* will be written again, not only read: prune=excerpts computes it in full */
    /*
     * Re-executing a log: the lanes that were computed when the segment was appended (kv_session_lanes); 0: all. The plan that
     * chose among what was left is applied as it was logged.
     */
    uint32_t lanes;
    const kv_logged *logged; /* NULL: nothing was decided meanwhile */
    /*
     * Bits of the vocabulary: the logits behind the segment will be read there only, and are -INFINITY elsewhere. Such logits
     * are not kept for kv_session_logits. NULL: all are computed.
     */
    const uint64_t *only;
} kv_segment;

/* What decoded tokens read (decode=sentence or page, reading.h), sums since this session object was made. */
typedef struct kv_reads {
    uint64_t steps;        /* tokens; those that were computed ahead too */
    uint64_t live, read;   /* row-lanes that were active, and that were read */
    uint64_t chosen, kept; /* of sections: row-lanes read, and of them those that the step before read too */
    uint64_t ns, profile_ns; /* to choose; to make profiles of what was appended */
    uint64_t profile_bytes;  /* now */
} kv_reads;

/* Evicted rows that tokens read without bringing them back (visit.h). */
typedef struct kv_visits {
    uint64_t tokens; /* whose lanes had rows out */
    uint64_t rows;   /* row-lanes that visited them */
} kv_visits;

typedef struct kv_observer {
    void *user;
    void (*prefill)(void *user, uint32_t done, uint32_t total); /* may be NULL */
    void (*plan)(void *user, const kv_plan *plan);              /* before it is applied; may be NULL */
} kv_observer;

/* Everything below is per lane where it says rows (mean over lanes). */
typedef struct kv_stats {
    uint32_t n_tokens, n_ctx, budget, n_lanes;
    uint32_t dead;                             /* tokens whose rows were given up */
    uint32_t active, host, barred, protected_; /* rows, mean over lanes; protected_: hard */
    uint32_t deferred;                         /* rows that were not computed, mean over lanes */
    uint32_t deferred_tokens;                  /* tokens that have such rows */
    uint32_t computed_above;         /* tokens left below a cut that a repair or a person had computed */
    uint32_t active_min, active_max; /* over lanes */
    uint64_t active_bytes, host_bytes, file_bytes;
    uint64_t file_waste; /* rows in the file that no token has */
    uint32_t in_8_bits;  /* tokens whose rows are in 8 bits now (tier=8bit) */
    /* Of all rows that were packed: root of rounding's square over theirs (keys: about their channel's mean). 0 before. */
    double key_error, value_error;
    uint64_t epoch;
    uint32_t reused;          /* tokens found computed: resumed, or taken from the prefix file */
    uint32_t computed;        /* tokens that cost a forward pass since this session object was made */
    double score_ms, plan_ms; /* spent in passes and repairs so far */
    kv_reads reads;
} kv_stats;

int kv_session_new(
    kv_session **ret, model *m, const kv_options *options, const kv_observer *observer, base_err *err);
void kv_session_free(kv_session *s);
void kv_session_get_stats(
    const kv_session *s, kv_stats *ret); /* looks at every token: not for each of them */
const int32_t *kv_session_ids(const kv_session *s, uint32_t *ret_n);
uint32_t kv_session_room(const kv_session *s); /* tokens until n_ctx */
const char *kv_session_policy(const kv_session *s);

/*
 * Appends and computes n tokens; evicts between chunks. last_logits ([n_vocab], may be NULL) receives the logits behind the
 * last token. On cancel nothing of the unfinished chunk stays; what was finished stays, and *ret_done says how much.
 */
int kv_session_append(kv_session *s, const kv_segment *segment, const int32_t *ids, uint32_t n,
    float *last_logits, uint32_t *ret_done, const atomic_bool *cancel, base_err *err);

/*
 * Prompt lookup. kv_session_draft computes n tokens (1..KV_DRAFT_MAX) behind the last one without adding them; logits
 * ([n - first][n_vocab]) receives what follows each of them but the `first`. kv_session_accept then adds the next of them, one a
 * call, exactly as kv_session_append of that one token would (epoch, eviction, everything), last_logits being its own or NULL
 * as there. What is not accepted never was: any other change of the sequence forgets it, and so do an error and an eviction on the
 * way, since what was computed ahead read other rows. kv_session_drafted says how many are left, and their ids.
 */
enum { KV_DRAFT_MAX = 16 };
int kv_session_draft(kv_session *s, const kv_segment *segment, const int32_t *ids, uint32_t n, uint32_t first,
    float *logits, const atomic_bool *cancel, base_err *err);
uint32_t kv_session_drafted(const kv_session *s, const int32_t **ret_ids);
int kv_session_accept(kv_session *s, const kv_segment *segment, const float *last_logits,
    const atomic_bool *cancel, base_err *err);
void kv_session_forget(kv_session *s); /* what was computed ahead */
/*
 * Experiments: the logits that would follow tokens `want` ([n_want], ascending) of n (at most 512) if they were appended; nothing is.
 * logits: [n_want][n_vocab].
 */
int kv_session_peek(kv_session *s, const kv_segment *segment, const int32_t *ids, uint32_t n,
    const uint32_t *want, uint32_t n_want, float *logits, const atomic_bool *cancel, base_err *err);

/*
 * Writes the first n tokens' ids and rows where kv_options.prefix_file finds them: the fixed prompt, computed once per model
 * ever. Only a sequence that never had a hole may be shared: after the first eviction this is BASE_E_STATE.
 */
int kv_session_save_prefix(kv_session *s, const char *path, uint32_t n, base_err *err);

/*
 * At a pause: tokens [from, to) (the newest message or tool result, already appended without the template's tail) say what
 * they need; evicted rows that they ask for come back, at their index and phase. Which tokens count (content words and
 * identifiers, at most 8) is given as `queries` (token indices, ascending; NULL: chosen evenly). Nothing to do is fine.
 */
int kv_session_repair(kv_session *s, uint32_t from, uint32_t to, const uint32_t *queries, uint32_t n_queries,
    const atomic_bool *cancel, base_err *err);

/*
 * Computes again what the model wrote last, where its tokens could not choose whom to read (visited=again). An append of anything else, a
 * call too, does it first; in idle time nobody waits for it, and the rows are the same. Nothing to do is fine; a cancel leaves them as they were.
 */
int kv_session_read_again(kv_session *s, const atomic_bool *cancel, base_err *err);
uint32_t kv_session_unread(const kv_session *s); /* how many tokens that would be now */

/* Who visited since this was asked last; counts ([n_tokens], may be NULL): row-lanes by token. */
void kv_session_take_visits(kv_session *s, kv_visits *ret, uint32_t *counts);

/* The same as kv_session_repair as an experiment wants it. What is NULL is as there. */
typedef struct kv_ask {
    const kv_signal *signal; /* asks instead of [from, to): the last question's, another session's */
    const uint64_t *among;   /* [bits of n] evicted rows beside these are not scored and do not come back */
    uint32_t *rank;          /* out, [n]: evicted rows that are asked for more; UINT32_MAX: nobody asked */
} kv_ask;
int kv_session_repair_by(kv_session *s, uint32_t from, uint32_t to, const uint32_t *queries,
    uint32_t n_queries, const kv_ask *ask, const atomic_bool *cancel, base_err *err);
/*
 * Experiments: evicted rows below `to` by summaries of their chunks (RepairKV's PageSummary, after Quest): chunks of `chunk` tokens in the
 * order of the inner product of the signal's mean query and the chunk's largest keys, mean over heads, until `n` evicted rows are
 * there. Their bits are set in ret ([bits of n_tokens]).
 */
int kv_session_chunks(kv_session *s, uint32_t to, const kv_signal *signal, uint32_t chunk, uint32_t n,
    uint64_t *ret, base_err *err);
/* The signal of [from, to): at most `most` of its kept queries, of those named in `queries` when some are. */
int kv_session_signal(kv_session *s, uint32_t from, uint32_t to, const uint32_t *queries, uint32_t n_queries,
    uint32_t most, kv_signal *ret, base_err *err);
/*
 * Experiments: of the k rows that a message asks for most by exact scores, the share that is among the k of a first pass at `share`
 * (first=, reading.h). ret_ms: what scoring and ordering took without it and with it.
 */
int kv_session_first_recall(kv_session *s, uint32_t from, uint32_t to, const uint32_t *queries,
    uint32_t n_queries, double share, uint32_t k, double *ret_recall, double ret_ms[2],
    const atomic_bool *cancel, base_err *err);

/*
 * Asks the excerpt whose segment begins at token `at` a question by itself: *ret_surprise (may be NULL) is the mean of -log p of its ids
 * behind the first (exp of it: CodeComp's perplexity), and how its last 128 queries look at the excerpt's rows is kept for
 * policies. The sequence is as before. n: 2 to 1,024.
 */
int kv_session_probe(kv_session *s, uint32_t at, const int32_t *ids, uint32_t n, double *ret_surprise,
    const atomic_bool *cancel, base_err *err);

/*
 * Other spans for the segment that begins at token `at`, copied: what a request names is marked in text that was there before it. They
 * count from the next pass on.
 */
int kv_session_set_spans(kv_session *s, uint32_t at, const kv_span *spans, uint32_t n_spans, base_err *err);

/*
 * Acts on a plan, all or nothing: the observer sees it first, then live lists change. A plan of another epoch, length or
 * number of lanes is BASE_E_STATE. Re-executing a log: set `epoch` to kv_stats.epoch when n_tokens is reached.
 */
int kv_session_apply(kv_session *s, const kv_plan *plan, base_err *err);
/*
 * Experiments: rows of tokens at and behind `from` become what the 8-bit tier would give back, in blocks of 256 tokens that are whole and
 * shared with nobody.
 */
int kv_session_round(kv_session *s, uint32_t from, base_err *err);
/* Whether append evicts by itself (it does, unless a log is being re-executed). */
void kv_session_set_automatic(kv_session *s, bool on);

/* One eviction pass now, if the policy wants one (over budget); done by append itself between chunks. */
int kv_session_evict(kv_session *s, const atomic_bool *cancel, base_err *err);

/* A person's hand, and facts about text: tokens [from, to). All through plans. */
typedef enum kv_manual {
    KV_MANUAL_PIN,
    KV_MANUAL_UNPIN,
    KV_MANUAL_DROP,
    KV_MANUAL_EVICT,
    KV_MANUAL_PROMOTE
} kv_manual;
int kv_session_manual(kv_session *s, kv_manual what, uint32_t from, uint32_t to,
    base_err *err); /* DROP bars: only PROMOTE by a person brings it back */
int kv_session_mark_stale(kv_session *s, uint32_t from, uint32_t to,
    base_err *err); /* text of a replaced file version: evicted now */
int kv_session_mark_failed(
    kv_session *s, uint32_t from, uint32_t to, base_err *err); /* an attempt that did not work: barred now */
int kv_session_undo_plan(
    kv_session *s, base_err *err); /* takes the last plan back; BASE_E_NOT_FOUND when there is none */
int kv_session_set_budget(
    kv_session *s, uint32_t rows, base_err *err); /* refused below hard + 512, with the number */
void kv_session_set_turn(
    kv_session *s, uint32_t turn); /* the current turn: its USER segment is the request, hard */

/* Cuts the sequence back to n tokens (cancel, rewind): their rows are gone, evicted rows below n stay as they are. */
int kv_session_truncate(kv_session *s, uint32_t n, base_err *err);

/* How many of the lanes have token i active ([n_tokens] into ret). For strips; O(runs). */
void kv_session_active_lanes(const kv_session *s, uint32_t *ret);
/*
 * Finds where this model's prefill is cut from what the newest request's queries attend to, and writes kv_options.pivot_file. A session
 * under a policy that asks for it does so by itself at the first bulk of a model, which is computed in full. BASE_E_STATE when
 * nothing was asked, or rows are missing. kv_session_pivot: NULL when there is none yet.
 */
int kv_session_detect_pivot(kv_session *s, const atomic_bool *cancel, base_err *err);
const struct kv_pivot *kv_session_pivot(const kv_session *s);
/*
 * Of the attention that the newest request's last queries pay in the layers from layer_from on of `full`, the share that goes to rows which
 * are active in `pruned`, a session over the same tokens; mean over lanes.
 */
int kv_session_attention_kept(kv_session *full, const kv_session *pruned, uint32_t layer_from, double *ret,
    const atomic_bool *cancel, base_err *err);
/*
 * Layers from here on are not computed for this token: its rows there are `deferred`, and a plan that makes them active computes
 * them; 0: all are computed.
 */
uint32_t kv_session_cut(const kv_session *s, uint32_t token);
uint32_t kv_session_next_cut(
    const kv_session *s); /* the layer before which fresh bulk would be cut now; 0: it would not */
/* Is a cut asked for that this model has no room for? Its layers above must hold the states that wait there. */
bool kv_session_cannot_cut(const kv_session *s);
/* The lanes that were computed when the token's segment was appended, whatever was computed since; 0: all. For the log. */
uint32_t kv_session_lanes(const kv_session *s, uint32_t token);
/* Bit per token: active in this lane. [(n_tokens+63)/64] */
void kv_session_lane_bits(const kv_session *s, uint32_t lane, uint64_t *ret);

/* Why a token is where it is: score parts of the last pass that looked at it. */
typedef struct kv_why {
    bool active_anywhere, pinned, barred, stale;
    uint32_t lanes_active;
    uint32_t pivot;                   /* kv_session_cut */
    uint8_t last_action, last_reason; /* of the last plan run that touched it; last_action 255: none */
    uint32_t last_turn;
    /*
     * Means over lanes, NAN where no pass computed it. attention, memory: mass. rank: place in the order of its lane as a
     * share (0 stays longest, 1 goes first); cut: the share that stayed, so rank < cut was kept.
     */
    float attention, memory, rank, cut;
} kv_why;
void kv_session_why(const kv_session *s, uint32_t index, kv_why *ret);

/* What a token is, beside active or host: bits per token, [n_tokens]. */
enum {
    KV_STATE_PINNED = 1,
    KV_STATE_BARRED = 2,
    KV_STATE_STALE = 4,
    KV_STATE_HARD = 8,
    KV_STATE_SOFT = 16,
    KV_STATE_DEFERRED = 32
};
void kv_session_states(const kv_session *s, uint8_t *ret);

/* Score parts per segment and per span of the last pass that looked at them, means over tokens and lanes; NAN where none did. */
typedef struct kv_score {
    uint32_t from, to, turn;
    uint8_t origin,
        reason; /* reason: the span's; KV_N_REASONS for the whole segment, which comes before its spans */
    float attention, memory, rank, cut;
    float active; /* share of its rows that are active */
} kv_score;
/* Fills up to cap entries, segments in the order of the sequence, and returns how many there are. ret may be NULL with cap 0. */
uint32_t kv_session_scores(const kv_session *s, kv_score *ret, uint32_t cap);

/*
 * The structure score (kv.md 5.8) over all segments that have marked spans: the share of their marked tokens that is active, mean
 * over lanes and segments. chance: the active share of all their tokens, what a choice blind to structure gets. ceiling: what as many
 * rows could hold at most. core: of the spans' essential parts, else of their whole extents. NAN where there is nothing.
 */
enum { KV_STRUCTURE_KINDS = 6 };
typedef struct kv_structure {
    uint32_t n_tokens, n_segments; /* marked tokens, segments that have some */
    double share, chance, ceiling;
    double of[KV_STRUCTURE_KINDS]; /* share, by kind: kv_structure_word */
} kv_structure;
void kv_session_structure(const kv_session *s, bool core, kv_structure *ret);
const char *kv_structure_word(
    uint32_t kind); /* "call", "control", "return", "assign", "signature", "symbol" */

/*
 * Writes rows that are not in the file yet and the manifest (live lists, reasons, pins, memory, schedule) beside it, by rename.
 * Cheap when little changed. ENOSPC and the like are errors; the session itself is unharmed.
 */
int kv_session_save(kv_session *s, base_err *err);

/*
 * Gives back the places of rows that no token has any more (cut off, computed again): saves, then moves the last rows into
 * them. Changes no result. For idle time; kv_stats.file_waste says whether it is worth it. A crash at any point leaves a
 * snapshot that is whole.
 */
int kv_session_compact(kv_session *s, base_err *err);

/*
 * Opens what kv_session_save left. BASE_E_NOT_FOUND: no snapshot; BASE_E_FORMAT: damaged or of another model, kernel or
 * schedule, the sentence says which. Afterwards the next logits equal those of the saved session, with 0 tokens computed.
 */
int kv_session_resume(
    kv_session **ret, model *m, const kv_options *options, const kv_observer *observer, base_err *err);

/*
 * Logits behind the last token, [n_vocab]: those that the last append returned when it was asked for them (they survive
 * save and resume), else computed again from the rows without adding one.
 */
int kv_session_logits(kv_session *s, float *logits, const atomic_bool *cancel, base_err *err);

/* One section as the last decoded token chose: in how many lanes it was read, and how many of its rows, mean over those lanes. */
typedef struct kv_section {
    uint32_t from, to, lanes;
    float rows;
} kv_section;
/* Fills up to cap, ascending, and returns how many sections there are; 0 when everything is read. */
uint32_t kv_session_sections(const kv_session *s, kv_section *ret, uint32_t cap);
/*
 * The share of the last token's attention that falls on what it read, mean over the lanes whose rows it chose among, by a second
 * pass over everything (experiments). BASE_E_STATE when nothing was chosen.
 */
int kv_session_recovered(kv_session *s, double *ret, const atomic_bool *cancel, base_err *err);

/* A copy that shares every row (candidates, rewind); costs its own new rows only. It has no row file. */
int kv_session_fork(const kv_session *s, kv_session **ret, const kv_observer *observer, base_err *err);

/*
 * Goes on under another policy, budget, repair, parameters and heads (those fields of options): what a comparison over the
 * same rows does with a fork. Evicts nothing by itself.
 */
int kv_session_set_policy(kv_session *s, const kv_options *options, base_err *err);

/* The schedule so far: computed ranges and applied plans, in order; its hash is part of the cache state's identity. */
uint64_t kv_session_schedule_hash(const kv_session *s);

typedef struct kv_policy_info {
    const char *name, *summary, *parameters; /* "w=32 kernel=7": defaults */
    const char *source;                      /* where those come from */
} kv_policy_info;
const kv_policy_info *kv_policy_list(uint32_t *ret_n);
/* For --help: every policy with its defaults, every parameter with its bounds. */
void kv_policy_describe(base_buf *out);

typedef struct kv_parameter_info {
    const char *name, *words; /* words: of a parameter that has names for its values; NULL: a number */
    double least, most;
} kv_parameter_info;
const kv_parameter_info *kv_parameter_list(uint32_t *ret_n);

#endif
