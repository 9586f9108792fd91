/*
 * What the screen knows, reduced from events and nothing else: the transcript, the cache's rows, a ledger a
 * turn and the footer's facts. Live and replayed sessions are the same calls of tui_state_apply, so they show
 * the same.
 */
#ifndef KVIST_TUI_STATE_H
#define KVIST_TUI_STATE_H

#include "agent/log/event.h"
#include "tui/state/row_journal.h"
#include "tui/state/told.h"
#include "tui/terminal/styled_text.h"

typedef enum tui_item_kind {
    TUI_ITEM_USER,
    TUI_ITEM_ANSWER,
    TUI_ITEM_THOUGHT, /* what the model writes before its answer, dimmed */
    TUI_ITEM_TOOL,
    TUI_ITEM_CONTEXT, /* excerpts put in front of the request */
    TUI_ITEM_PLACES,  /* checked places of what the answer names */
    TUI_ITEM_CACHE,   /* what a plan did */
    TUI_ITEM_NOTICE,
    TUI_ITEM_ERROR,
} tui_item_kind;

/* One thing of the transcript. All texts are harmless to print. */
typedef struct tui_item {
    tui_item_kind kind;
    uint32_t turn;
    base_buf head, body,
        diff; /* TOOL: headline, output, diff; CACHE: why evicted, why promoted, what visited; others: body */
    char *status;  /* TOOL: "ok", "failed", ...; NULL while it runs */
    char *name;    /* TOOL: the tool; CACHE: the plan's cause */
    char *summary; /* TOOL: one line */
    int64_t ms, exit_code;
    uint32_t evicted, promoted, deferred, again,
        answer_again; /* CACHE; tokens of the message, of an answer, that were computed a second time */
    bool streaming;
    bool unsettled; /* ANSWER: tokens came, neither its final text nor a call yet */
    size_t call_at; /* ANSWER: so many bytes are in front of the first token of a call; SIZE_MAX: none came */
    bool open;      /* unfolded by the person */
    bool explains;  /* CACHE: the first of the session that set something aside */
    bool diff_is_whole; /* TOOL: of the diff, nothing was left out of the lines below */
    uint32_t version;   /* changes with the content */
    /* The chat view's lines, kept per width. */
    tui_text lines;
    int lines_width;
    uint32_t lines_version;
} tui_item;

/* What requests to an engine across HTTP sent and cost in a turn; all 0: there were none. */
typedef struct tui_asked {
    uint32_t turn, n;                        /* requests */
    int64_t sent, expected, found, computed; /* of those whose numbers were told */
    uint32_t n_told;
    /* where the engine keeps the blocks of all that was sent and said, behind the newest: */
    bool tells_blocks;
    int64_t gpu, host, disk, gone, unknown;
    char why[240]; /* of the newest that found less than expected */
} tui_asked;

typedef struct tui_ledger {
    uint32_t turn;
    tui_asked asked;
    int64_t new, reused, generated, evicted, promoted, protected_, active, host, budget, n, ctx, active_bytes,
        host_bytes;
    double prefill_s, decode_tps;
    /*
     * rows of code: the share of marked structure that is active; the share of all rows that is; the most
     * that as many rows could hold. 0: there is no code
     */
    double structure, chance, ceiling;
    /*
     * read: the share of the active rows that a step of decoding read; kept: of its choice, the share that
     * the step before had chosen too. 0: it read everything
     */
    double read, kept;
    int64_t deferred; /* rows per lane that are not computed */
    double spared;    /* share of the turn's prefill that was not computed */
    int64_t computed; /* tokens left below a cut that something brought back */
    int64_t skipped;  /* rows of a lane that a step did not read */
    char *why;
} tui_ledger;

typedef struct tui_approval {
    bool waiting;
    size_t item;             /* of the transcript: the call that asks */
    char *name, *power;      /* harmless */
    char *headline, *detail; /* raw: to be painted by base_show; detail is the exact command, or the diff */
    /* what a person may change before it happens: the command, or new text of a file, raw; NULL: nothing */
    char *text;
} tui_approval;

/* A token that the grammar chose against the model's wish. */
typedef struct tui_mask {
    uint32_t turn, index;
    char *wanted, *took;
} tui_mask;

/* What the last scoring pass of a turn thought of a span; NAN where it computed nothing. */
typedef struct tui_score {
    uint32_t turn, from, to;
    double attention, memory, rank, threshold;
} tui_score;

/* A sentence that the last token of a turn read rows of, in `lanes` lanes (decode=sentence). */
typedef struct tui_section {
    uint32_t turn, from, to, lanes;
} tui_section;

typedef struct tui_state {
    tui_item *items;
    size_t n_items, cap_items;
    tui_ledger *ledgers;
    size_t n_ledgers, cap_ledgers;
    tui_mask *masks;
    size_t n_masks, cap_masks;
    tui_score *scores;
    size_t n_scores, cap_scores;
    tui_section *sections; /* ascending within a turn; an entry without tokens begins a turn's */
    size_t n_sections, cap_sections;
    tui_told_list told;
    tui_journal *journal;
    tui_approval approval;
    char *payload; /* of the call under way, raw; NULL: it has none */
    char *session, *parent, *model, *policy, *mode, *root, *branch;
    char *what_if_original, *what_if_changed; /* the settings of a what-if's two sides; NULL: it is none */
    tui_asked asked;                          /* of the turn that goes on */
    bool is_elsewhere; /* the engine is across HTTP: no rows, lanes or scores are visible */
    uint32_t turn, n_lanes, n_tokens, budget; /* n_lanes: that read everything */
    uint32_t n_windowed, window; /* lanes of layers that read the newest `window` tokens, not counted */
    uint32_t n_ctx;              /* 0: the session has no end */
    uint32_t folded_to;          /* tokens below it are read from nearer than they were written */
    int64_t row_bytes;
    bool ended, in_turn;
    bool explained; /* what it means that rows are evicted */
    /* Progress: clock values are given by the caller and are 0 in replay. */
    int64_t prefill_done, prefill_total, prefill_from, prefill_ms, prefill_told_ms; /* begun; last told of */
    char *prefill_server; /* that said nothing of it yet; NULL: it did, or none is asked */
    int64_t tokens_since, tokens_ms, last_token_ms;
    double decode_tps;
} tui_state;

void tui_state_init(tui_state *s);
void tui_state_free(tui_state *s);
/* now_ms: a clock for rates and times left, 0 without one. */
void tui_state_apply(tui_state *s, const agent_event *e, int64_t now_ms);

bool tui_approval_rewinds(const tui_approval *a); /* no: the conversation alone; Esc: neither */
bool tui_approval_runs(const tui_approval *a);    /* it asks for a command, not for a change of files */

/*
 * Where a raw tool call begins in an answer's streamed text (its length: nowhere); it is folded to one line. Of a call
 * that kvist began for the model only the rest is streamed, which has no mark in front.
 */
size_t tui_call_start(const tui_item *answer);

const tui_ledger *tui_state_ledger(const tui_state *s, uint32_t turn);               /* NULL: none yet */
const tui_score *tui_state_score(const tui_state *s, uint32_t index, uint32_t turn); /* NULL: none */
/*
 * What the last token of this turn read around a row, or the newest token before it that chose what it read.
 * false: it read everything. An empty section: it skipped the sentence of the row.
 */
bool tui_state_section(const tui_state *s, uint32_t index, uint32_t turn, tui_section *ret);
/* A sentence of the screen itself (loading failed, copied, ...). */
void tui_state_note(tui_state *s, tui_item_kind kind, const char *text);
/* Nothing runs any more: what the last event left open is over (a resumed session that was killed). */
void tui_state_settle(tui_state *s);
/* What the panel counts: rows of the cache here, tokens of a request to an engine elsewhere. */
const char *tui_state_unit(const tui_state *s);
/* Where what is evicted is: in memory here; elsewhere it is no longer sent. */
const char *tui_state_evicted(const tui_state *s);
const tui_item *tui_state_last_answer(const tui_state *s);

/* What an event changes: a row of state.c's table each. now: milliseconds, as of tui_state_apply. */
typedef void tui_apply_fn(tui_state *s, const agent_event *e, int64_t now);

#endif
