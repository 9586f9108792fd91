/*
 * What a session is made of, and what every file of the cache may ask of it; for the files of src/kv only.
 * Nothing here decides what stays: that is evict/, repair/ and prune/.
 */
#ifndef KVIST_KV_STATE_H
#define KVIST_KV_STATE_H

#include "base/buf.h"
#include "kv/core/compute.h"
#include "kv/core/fold.h"
#include "kv/core/memory.h"
#include "kv/core/parameters.h"
#include "kv/core/rank.h"
#include "kv/core/signal.h"
#include "kv/core/states.h"
#include "kv/core/work.h"
#include "kv/rows/bits.h"
#include "kv/rows/list.h"
#include "kv/rows/rowfile.h"
#include "kv/rows/store.h"
#include "kv/types.h"

enum {
    KV_BATCH = 512,          /* tokens a forward pass, and the least that a budget leaves beside hard rows */
    KV_REQUEST_QUERIES = 32, /* of a request that names some, of a result an even choice; its last ones: w */
    KV_RECENT_QUERIES = 64,  /* of the newest message or result, for repair */
    KV_JOURNAL = 64,         /* plans that can be undone */
    KV_ACTION_NONE = 255,
    KV_FOLD_NEAR = 1024,              /* the newest tokens, which are never folded */
    KV_FOLD_BLOCK = MODEL_ROWS_BLOCK, /* tokens that share a gap in a plan: they share a turned query */
    KV_NO_END = 1 << 24,              /* tokens of a session without an end: what a plan can speak of */
};
#define KV_NO_ROW UINT32_MAX

/* In the schedule's hash, behind the numbers of one event: which event it was. */
#define KV_EVENT_TRUNCATED      UINT32_MAX
#define KV_EVENT_COMPUTED_AGAIN (UINT32_MAX - 1)
#define KV_EVENT_CUT            (UINT32_MAX - 2)
#define KV_EVENT_WALKED         (UINT32_MAX - 3)
#define KV_EVENT_VISITED        (UINT32_MAX - 4) /* one less: weighed by keys, one token at a time */

/* Why a row is hard. When hard rows alone exceed the budget, the last class gives way first. */
typedef enum kv_hard {
    KV_HARD_NO,
    KV_HARD_PIN,
    KV_HARD_SINK,
    KV_HARD_SYSTEM,
    KV_HARD_WINDOW,
    KV_HARD_REQUEST,
    KV_HARD_KEPT, /* what a person just brought back, for the pass that makes room for it */
    KV_N_HARD
} kv_hard;

/* A segment as it lies in the sequence: offsets of spans and lines count from `from`. */
typedef struct kv_stored_segment {
    uint32_t from, to, turn;
    kv_origin origin;
    kv_span *spans;
    uint32_t *lines;
    uint32_t n_spans, n_lines;
    /* [n_layer][n_mass] under a question asked of it alone (lab/probe.c); NULL: there was none */
    float *mass;
    uint32_t n_mass;
    uint16_t cut; /* where it was cut when it was appended; for whoever logs it */
    bool is_bulk; /* rows of it may stay below the cut; until that is chosen */
} kv_stored_segment;

/* A plan that can be undone: its blob, and how much of the sequence it still speaks of. */
typedef struct kv_entry {
    base_buf blob;
    uint32_t n_valid; /* tokens at and behind this were truncated since */
} kv_entry;

/* Computed ahead (draft.c): the next n of ids, rows behind the sequence; valid in this epoch only. */
typedef struct kv_draft {
    int32_t ids[KV_DRAFT_MAX];
    uint32_t at, n; /* ids[at .. n) are left */
    uint64_t epoch;
} kv_draft;

/* What is known of a token beside its rows; in a manifest as it lies here. */
typedef struct kv_token {
    uint8_t last_action, last_reason;
    uint16_t zero;
    uint32_t last_turn;
    float attention, memory, rank, threshold; /* as kv_why */
    float previous; /* score of the last pass: minus the mean rank share; 0 where structure protects */
} kv_token;

/* A message that waits for its upper layers (prune/): it becomes the newest signal when they are there. */
typedef struct kv_waiting {
    kv_signal kept;
    kv_origin origin;
    uint32_t turn;
    bool is_whole; /* its last token was appended */
} kv_waiting;

/* The fixed prompt of an earlier session. */
typedef struct kv_prefix {
    uint32_t n;
    int32_t *ids;
    kv_table table;
    kv_state *state; /* behind it, of a model that keeps one */
} kv_prefix;

struct kv_session {
    kv_compute compute;
    struct kv_visit *visit;     /* evicted rows that a token reads (visit.h); NULL: none so far */
    struct kv_reading *reading; /* what a decoded token reads (reading.h); NULL: everything so far */
    uint32_t n_lanes;
    /* lanes of layers that read everything: budgets, passes, repairs and counts are theirs */
    uint32_t n_whole;
    uint32_t window; /* tokens that the widest of the other layers reads; 0: there is none */
    uint32_t n_ctx;  /* the session ends there; KV_NO_END: it goes on behind the model's context (fold.h) */
    uint32_t asked_ctx;     /* kv_options.n_ctx */
    uint32_t budget, until; /* kv_limit; until: 0 where it is no more than the budget */
    const struct kv_policy *policy;
    kv_parameters parameters;
    int repair;
    kv_observer observer;
    bool automatic;

    /* The sequence. Arrays have room for `cap` tokens (kv__reserve). */
    uint32_t n, cap;
    int32_t *ids;
    uint32_t *phases;
    kv_token *tokens;
    uint64_t *pinned, *barred, *stale, *lost; /* [bits of cap] */
    /* [bits of cap] what the newest repair's best line outshone (repair/choose.h): it visits no token; moved by plans only */
    uint64_t *outshone;
    uint16_t *cut; /* [n] layers from here on are not computed (deferred.c); 0: all are */
    kv_stored_segment *segments;
    size_t n_segments, cap_segments;
    kv_table table;
    kv_lists lists;
    kv_fold fold;

    uint32_t turn;
    uint64_t epoch, schedule;
    /*
     * Rows of full blocks below this token are weighed by sketch, others by their keys (read/visit.h). Moved
     * by plans only, so that it is the same for every token between two.
     */
    uint32_t sketched_to;
    bool holed; /* some row was computed, or may now be computed, over a hole */

    /* of the current request, or of the newest tokens while nothing was asked (request_turn 0 then) */
    kv_signal request;
    bool has_request;
    uint32_t request_turn;
    kv_signal recent;
    kv_memory *memory;    /* NULL before the first question */
    uint8_t *heads;       /* [n_layer * n_head] 1: counts in a repair; NULL: all */
    uint16_t *best_heads; /* [n_layer * n_head] all heads, the best first; NULL: not calibrated */

    /*
     * tokens from here on are computed up to the cut only, and nobody chose among them yet; KV_NO_ROW: none
     */
    uint32_t pending;
    uint32_t judged_from, judged_to; /* the newest choice: what was pending, up to and with who asked */
    kv_signal asked;                 /* of the newest request, the queries that name what it asks for */
    kv_waiting waiting;
    struct kv_residual *residual; /* trained, shared with forks; NULL: parameters.residual is off */
    struct kv_pivot *pivot;       /* where this model's prefill is cut; NULL: not detected yet */
    char *pivot_path;

    /* [n_lanes][cap] mass a row was given so far, for policies that add it up (heavy.c); NULL: none does */
    float *heavy;

    float *logits; /* [n_vocab] behind token logits_at - 1; NULL: nobody asked */
    uint32_t logits_at;

    kv_draft draft;
    kv_states states; /* of a model that keeps one (plan/walk.h); else empty */

    kv_entry journal[KV_JOURNAL]; /* oldest first */
    uint32_t n_journal;

    char *row_path;       /* NULL: memory only */
    kv_rowfile *file;     /* NULL until the first save */
    uint64_t checked;     /* the epoch, and 1, whose live lists were looked at (check.c) */
    int tier;             /* file of blocks that are on disk only; 0: none yet */
    uint32_t tier_blocks; /* places in it that were written */
    bool keeps_windows;   /* rows behind windows stay in memory: the disk has no room for them */
    uint64_t folded_most; /* bytes of rows in memory once some are folded, unless `host` says */
    bool keeps_folded;    /* the disk has no room for the others */
    uint32_t *file_row;   /* [n] place in the row file; KV_NO_ROW: not written yet */
    uint64_t *row_hash;   /* [n] of those that are */
    kv_prefix prefix;

    kv_ranker ranker;
    uint32_t reused, computed, computed_above; /* above: as in kv_stats */
    double score_ms, plan_ms;
};

/* ---- sequence.c: its rows as a forward pass reads them ---- */

/* The rows of the live lists. Borrowed: valid until a list, the table or the fold changes. */
model_rows_view kv__view(const kv_session *s);
/* The same rows under other lists: lanes[n_lanes], which must outlive the view. */
model_rows_view kv__view_of(const kv_session *s, const model_lane_list *lanes);
/* The same with a block behind them in the table's spare place, for rows that nobody else sees; it must outlive the view, too. */
model_rows_view kv__view_with(kv_session *s, const model_lane_list *lanes, const kv_block *hidden);
/*
 * The live lists truncated before token i, with n more rows from `slot` on: [n_lanes]. The caller frees the lists and
 * *ret_runs; NULL: no memory.
 */
model_lane_list *kv__lists_before(
    const kv_session *s, uint32_t i, uint32_t slot, uint32_t n, model_run **ret_runs);
/* Lists and rows begin to go to the device, if there is one, while nobody waits. */
void kv__bring(const kv_session *s);

/* ---- check.c: rows that lie in the row file are looked at before anything is read of them ---- */

/* Of a lane of the view those that its list has. BASE_E_FORMAT with a sentence. */
int kv__check_lane(const kv_session *s, const model_rows_view *rows, uint32_t lane, base_err *err);
/* Of all lanes. Of the live lists nothing is looked at twice between two changes of them. */
int kv__check_lists(kv_session *s, const model_rows_view *rows, base_err *err);
/* Nothing of what was read since was missing in the files by then. BASE_E_FORMAT with a sentence: it is not to be believed. */
int kv__check_uncut(const kv_session *s, base_err *err);
/* compute.score, of rows that were looked at. */
int kv__score(kv_session *s, const model_score *score, base_err *err);

/* ---- sequence.c: lanes of layers with a window ---- */

/*
 * Tokens that the lane's layer reads; 0: all of them. In lanes with a window no pass, repair or order of a person
 * chooses: their layers leave old rows unread by themselves (docs/kv.md, Rows behind a window).
 */
static inline uint32_t kv__window(const kv_session *s, uint32_t lane)
{
    return s->window ? s->compute.window(s->compute.user, lane / s->compute.shape.n_head_kv) : 0;
}
uint32_t kv__whole_from(const kv_session *s, uint32_t layer); /* lanes without one, from this layer on */
/*
 * *ret: the live lists, those of lanes with a window empty: what a policy sees. Borrowed like kv__view; arrays and the
 * empty list are *work's. BASE_E_NOMEM.
 */
int kv__whole_lists(const kv_session *s, kv_work *work, kv_lists *ret, base_err *err);

/* ---- sequence.c: where it ends ---- */

/* n_ctx out of the options, the policy and the budget. */
void kv__set_end(kv_session *s);
void kv__set_limit(kv_session *s, kv_limit limit);     /* kv__set_end follows */
bool kv__is_endless(const kv_session *s);              /* it goes on behind the model's context */
int kv__check_end(const kv_session *s, base_err *err); /* the sequence there is must be within it */
/* Phases that the next token reads across: from the first token's folded phase to its own. */
uint32_t kv__extent(const kv_session *s);

/* ---- sequence.c: segments, memory ---- */

/* The session's memory of requests as if all of it were asked now: sum and message [kv__memory_floats]. */
void kv__memory_now(const kv_session *s, float *sum, float *message);
size_t kv__memory_floats(const kv_session *s);                          /* n_layer * n_head * head_dim */
kv_stored_segment *kv__segment_at(const kv_session *s, uint32_t token); /* NULL beyond the end */
void kv__segment_add(kv_session *s, const kv_stored_segment *p);        /* copies spans and lines */
void kv__segment_fini(kv_stored_segment *p);
void kv__bury(kv_session *s, const uint64_t *lost); /* their rows are gone from memory and disk */
/* Does the hidden state at a cut fit into what the layers above it leave empty? */
bool kv__cut_fits(const kv_compute *c, uint32_t cut);
static inline bool kv__is_deferred(const kv_session *s, uint32_t lane, uint32_t t)
{
    return s->cut[t] && lane >= (uint32_t)s->cut[t] * s->compute.shape.n_head_kv;
}

/* ---- protect.c: hard rows, which no policy may evict ---- */

/* The class of every token, hard[n] of kv_hard; returns how many are hard. */
uint32_t kv__protect(const kv_session *s, uint8_t *hard);
uint32_t kv__count_hard(const kv_session *s);
kv_reason kv__hard_reason(kv_hard h); /* what a plan calls it */

/* request.c: a complete message or result is the newest signal, remembered, and the request when it asks. */
void kv__crop_request(kv_session *s); /* to the policy's own last w queries */
int kv__take_signal(
    kv_session *s, kv_origin origin, uint32_t turn, bool is_whole, kv_signal *kept, base_err *err);
/* What a request that begins at `first` names; else nothing is known of it but its end. */
int kv__keep_asked(kv_session *s, const kv_segment *g, uint32_t first, const kv_signal *kept, base_err *err);
/* At most `most` kept queries of what asks, of those named if any are; *ret empty: none was kept. */
int kv__kept_signal(const kv_session *s, const kv_ask *ask, uint32_t most, kv_signal *ret, base_err *err);

/* ---- excerpt.c: excerpts that read only what stands before them all, and themselves ---- */

typedef struct kv_local {
    model_lane_list *lists; /* [n_lanes]; neighbours share their runs */
    uint32_t n_lanes;
} kv_local;
/* Of the next token of the segment that was opened last. */
uint32_t kv__next_phase(const kv_session *s);
/* The first token of the group of excerpts that ends right before token `to`; `to` itself when none does. */
uint32_t kv__group_from(const kv_session *s, uint32_t to);
uint32_t kv__phase_behind(const kv_session *s);           /* of a segment that begins now and is no excerpt */
bool kv__is_local(const kv_session *s, kv_origin origin); /* is a segment of that origin such an excerpt? */
/*
 * What the excerpt at [from, to) reads, whatever is staged behind the sequence included. *ret owns the lists of
 * *view; kv__local_free. BASE_E_NOMEM.
 */
int kv__local_view(
    const kv_session *s, uint32_t from, uint32_t to, model_rows_view *view, kv_local *ret, base_err *err);
void kv__local_free(kv_local *l);

#endif
