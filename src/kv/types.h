/*
 * What a session is told and what it tells: options, segments of text, states, counts. Data only, for the
 * engine, the agent, the screen and every file of the cache.
 */
#ifndef KVIST_KV_TYPES_H
#define KVIST_KV_TYPES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

typedef struct kv_plan kv_plan;
typedef struct kv_session kv_session;

/* How many rows of a lane stay active, as core/budget.h finds them. */
typedef struct kv_limit {
    uint32_t rows;  /* after an eviction pass; 0: no limit (full) */
    uint32_t until; /* nothing leaves before a lane has more, the first time; at most `rows`: no such grace */
} kv_limit;

typedef struct kv_options {
    uint32_t budget;        /* kv_limit.rows */
    uint32_t until;         /* kv_limit.until */
    const char *policy;     /* a name of kv_policy_list; NULL: "kvist" */
    int repair;             /* rows a repair may bring back per lane; 0: off; -1: the policy's default */
    const char *const *set; /* "NAME=VALUE" pairs for the policy, NULL-terminated; may be NULL */
    uint32_t n_ctx;         /* the session's end; 0: none with a budget (core/fold.h), else the model's */
    /* a budget that leaves less than a forward pass beside hard rows is taken too: a fork of a comparison */
    bool bare;
    /* where rows are kept for resume; NULL: memory only. Manifest: "ROW_FILE.manifest" */
    const char *row_file;
    /*
     * What kv_session_save_prefix left, of an earlier session of this model: appended ids that equal it from
     * the sequence's start on cost no forward pass (kv_stats.reused counts them). A missing, damaged or
     * foreign file is no error: it is not used. Only SYSTEM, SCAFFOLD and INSTRUCTIONS segments are looked up
     * (others carry a signal that must be computed). NULL: none.
     */
    const char *prefix_file;
    /* retrieval heads of this model; missing or foreign: all heads. NULL: all heads */
    const char *heads_file;
    /* where prefill is cut (pivot.h); written when it is detected. NULL: detected anew each session */
    const char *pivot_file;
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

/* clang-format off */
/* Why a row stayed, left or came back. X(identifier, "word") */
#define KV_REASONS(X) \
    X(PIN, "pin") X(SYSTEM, "system") X(SINK, "sink") X(WINDOW, "window") X(REQUEST, "request") \
    X(SIGNATURE, "signature") X(CALL, "call") X(CONTROL, "control") X(RETURN, "return") \
    X(ASSIGN, "assign") X(DEFUSE, "defuse") X(SYMBOL, "symbol") X(NEIGHBOUR, "neighbour") \
    X(ATTENTION, "attention") X(MEMORY, "memory") X(CENTRALITY, "centrality") X(RESIDUAL, "residual") \
    X(SENTENCE, "sentence") X(REPAIR_ANCHOR, "repair-anchor") X(REPAIR_BURST, "repair-burst") \
    X(BUDGET, "budget") X(PRESSURE, "pressure") X(STALE, "stale") X(FAILED, "failed") \
    X(MANUAL, "manual") X(THOUGHT, "thought")
/* clang-format on */
#define KV_REASON_ENUM(id, word) KV_REASON_##id,
typedef enum kv_reason { KV_REASONS(KV_REASON_ENUM) KV_N_REASONS } kv_reason;

/* A span inside a segment that structure protects softly (token offsets from the segment's start). */
typedef struct kv_span {
    uint32_t from, to;
    uint8_t reason; /* KV_REASON_SIGNATURE, KV_REASON_CALL, ... */
    float weight;   /* order within the soft share; higher stays longer */
    /* KV_MARK_* (structure.h): its rows' mass or codecomp's own weights order it then; 0: weight does */
    uint16_t marks;
    uint16_t n_flow, n_dependence; /* edges of control flow and of def-use that begin here */
} kv_span;

/* kv_span.marks: what a span is. 0: whoever made it gave it a weight. */
enum {
    KV_MARK_CALL = 1,
    KV_MARK_CONTROL = 2,
    KV_MARK_RETURN = 4,
    KV_MARK_ASSIGN = 8,
    KV_MARK_DEFUSE = 16,
    KV_MARK_SYMBOL = 32, /* holds a symbol that the request names */
    KV_MARK_SIGNATURE = 64,
    KV_MARK_CORE = 128, /* the essential part of a span that is there too, as a whole */
};

/*
 * Executing a log again: what was decided while a segment was appended. Behind each of `stops` (token
 * offsets, ascending) `decide` applies the logged plans that were made there. of: the tokens it was to have,
 * where a cancel ended it sooner; 0: those given.
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
    /* token offsets where a line starts, ascending (repair grows to lines); copied; or NULL */
    const uint32_t *lines;
    uint32_t n_lines;
    /*
     * Token offsets whose queries say what the segment asks for (identifiers, content words), ascending;
     * copied. They are kept while the segment is computed, so that kv_session_repair costs no second pass:
     * name here what you will name there. NULL: the last 32 of a USER segment and an even choice of a TOOL
     * segment.
     */
    const uint32_t *queries;
    uint32_t n_queries;
    /*
     * Tokens of all the fresh text (CONTEXT or TOOL) that comes with this segment, which decides whether its
     * prefill is pruned; 0: its own. A request that follows excerpts asks for all of them.
     */
    uint32_t bulk;
    bool whole; /* will be written again, not only read: prune=excerpts computes it in full */
    /*
     * Re-executing a log: the lanes that were computed when the segment was appended (kv_session_lanes); 0:
     * all. The plan that chose among what was left is applied as it was logged.
     */
    uint32_t lanes;
    const kv_logged *logged; /* NULL: nothing was decided meanwhile */
    /*
     * Bits of the vocabulary: the logits behind the segment will be read there only, and are -INFINITY
     * elsewhere. Such logits are not kept for kv_session_logits. NULL: all are computed.
     */
    const uint64_t *only;
} kv_segment;

/* A line that answers a request clearly: tokens [from, to), and how many times the sinks' mass its best row draws (repair/choose.h). */
typedef struct kv_quote {
    uint32_t from, to;
    float times;
} kv_quote;
enum {
    KV_MOST_QUOTES = 4,
    KV_QUOTE_NEAR = 1024, /* newest tokens: what stands among them is in view, and is not quoted */
};
typedef struct kv_quotes {
    kv_quote lines[KV_MOST_QUOTES];
    uint32_t n;
} kv_quotes;

/* Which message or result asks in a repair, and what it may ask for. */
typedef struct kv_ask {
    uint32_t from, to; /* its tokens, [from, to): appended already, without the template's tail */
    const uint32_t
        *queries; /* [n_queries] ascending: which of them count (content words, identifiers); 8 at most do */
    uint32_t n_queries; /* 0: chosen evenly */
    /* out: lines that are to be said again behind it (parameter `quote`); NULL: nobody wants to know */
    kv_quotes *quotes;
    /* What only experiments say; NULL: as it is for a user. */
    const struct kv_signal *signal; /* asks instead of [from, to): the last question's, another session's */
    const uint64_t *among; /* [bits of n] evicted rows beside these are not scored and do not come back */
    uint32_t *rank;        /* out, [n]: evicted rows that are asked for more; UINT32_MAX: nobody asked */
} kv_ask;

/* What decoded tokens read (decode=sentence or page, reading.h), sums since this session object was made. */
typedef struct kv_reads {
    uint64_t steps;        /* tokens; those that were computed ahead too */
    uint64_t live, read;   /* row-lanes that were active, and that were read */
    uint64_t chosen, kept; /* of sections: row-lanes read, and of them those that the step before read too */
    uint64_t ns, profile_ns; /* to choose; to make profiles of what was appended */
    uint64_t profile_bytes;  /* now */
    /* Where active rows lie on disk: sections of a lane that were in memory, and that were read from disk; read
     * ahead, and of these chosen later. */
    uint64_t found, fetched, ahead, ahead_used, fetched_bytes, wait_ns, copies_bytes;
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

/* Everything below is per lane where it says rows (mean over lanes): over those that read everything. */
typedef struct kv_stats {
    uint32_t n_tokens, n_ctx, budget, until; /* until: 0 where it is no more than the budget */
    uint32_t n_lanes, n_all_lanes;           /* all: those of layers with a window too, as in plans */
    bool endless;       /* it goes on behind the model's context: n_ctx is where nothing ends any more */
    uint32_t folded_to; /* tokens below this are read from nearer than they were written (core/fold.h) */
    uint32_t lost;      /* tokens whose rows were given up */
    uint32_t outshone;  /* tokens that visit calls alone since the newest repair (repair/choose.h) */
    uint32_t active, host, barred, protected_; /* rows, mean over lanes; protected_: hard */
    uint32_t deferred;                         /* rows that were not computed, mean over lanes */
    uint32_t deferred_tokens;                  /* tokens that have such rows */
    uint32_t computed_above;         /* tokens left below a cut that a repair or a person had computed */
    uint32_t active_min, active_max; /* over lanes */
    uint64_t active_bytes, host_bytes, file_bytes;
    uint64_t file_waste; /* rows in the file that no token has */
    uint32_t in_8_bits;  /* tokens whose rows are in 8 bits now (tier=8bit) */
    /* Of all rows packed so far: root of rounding's square over theirs (keys: about their mean). */
    double key_error, value_error;
    uint64_t epoch;
    uint32_t reused;          /* tokens found computed: resumed, or taken from the prefix file */
    uint32_t computed;        /* tokens that cost a forward pass since this session object was made */
    double score_ms, plan_ms; /* spent in passes and repairs so far */
    /*
     * Of a model that keeps a state beside its rows (core/states.h): bytes of one (0: it keeps none), how many
     * are kept and may be, all bytes of states in memory; tokens computed again to make one since this object
     * was made, and those that the next token would begin with.
     */
    uint64_t state_bytes, states_bytes;
    uint32_t states, states_most, walked, to_walk;
    kv_reads reads;
} kv_stats;

/* A section as the last decoded token chose it: lanes that read it, rows read in these, on average. */
typedef struct kv_section {
    uint32_t from, to, lanes;
    float rows;
} kv_section;

/* A person's hand, and facts about text: tokens [from, to). All through plans. */
typedef enum kv_manual {
    KV_MANUAL_PIN,
    KV_MANUAL_UNPIN,
    KV_MANUAL_DROP,
    KV_MANUAL_EVICT,
    KV_MANUAL_PROMOTE
} kv_manual;

/* Why a token is where it is: score parts of the last pass that looked at it. */
typedef struct kv_why {
    bool pinned, barred, stale, outshone;
    uint32_t lanes_active;
    uint32_t pivot; /* kv_session_cut */
    /* kv_action, kv_reason of the last plan run that touched it; action 255: none did */
    uint8_t last_action, last_reason;
    uint32_t last_turn;
    /*
     * Means over lanes, NAN where no pass computed it. attention, memory: mass. rank: place in the order of
     * its lane as a share (0 stays longest, 1 goes first); threshold: the share that stayed, so rank < threshold
     * was kept.
     */
    float attention, memory, rank, threshold;
} kv_why;

/* Scores of the last pass by segment and span, means over tokens and lanes; NAN: there was none. */
typedef struct kv_score {
    uint32_t from, to, turn;
    /* reason: the span's; KV_N_REASONS for the whole segment, which comes before its spans */
    uint8_t origin, reason;
    float attention, memory, rank, threshold;
    float active; /* share of its rows that are active */
} kv_score;

typedef struct kv_policy_info {
    const char *name, *summary;
    /* "w kernel": those that matter to it; kv_policy_defaults says what they begin with */
    const char *parameters;
    const char *source; /* where that comes from */
} kv_policy_info;

typedef struct kv_parameter_info {
    const char *name, *words; /* words: of a parameter that has names for its values; NULL: a number */
    const char *about;        /* what it does */
    double least, most;
} kv_parameter_info;

/*
 * The structure score (docs/kv.md, Structure) over all segments that have marked spans: the share of their
 * marked tokens that is active, mean over lanes and segments. chance: the active share of all their tokens,
 * what a choice blind to structure gets. ceiling: what as many rows could hold at most. core: of the spans'
 * essential parts, else of their whole extents. NAN where there is nothing.
 */
enum { KV_STRUCTURE_KINDS = 6 };
typedef struct kv_structure {
    uint32_t n_tokens, n_segments; /* marked tokens, segments that have some */
    double share, chance, ceiling;
    double of[KV_STRUCTURE_KINDS]; /* share, by kind: kv_structure_word */
} kv_structure;

enum { KV_DRAFT_MAX = 16 }; /* tokens computed ahead at once */

#endif
