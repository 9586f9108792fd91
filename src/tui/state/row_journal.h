/*
 * What the cache holds, as events told it: for each token of the sequence its text, where it comes from, in
 * how many lanes it is active, and why it last changed. Kept as a journal of changes; the table is the
 * journal folded, so the table as it stood at the end of any turn can be had again (h/l in the inspector,
 * replay).
 */
#ifndef KVIST_TUI_ROWS_H
#define KVIST_TUI_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "tui/terminal/style.h"

enum {
    TUI_ROW_FIXED = 1,   /* the fixed prompt and the tree's instructions: always kept */
    TUI_ROW_PINNED = 2,  /* by a person */
    TUI_ROW_REQUEST = 4, /* of a user's request: kept in its own turn */
    TUI_ROW_SPAN = 8,    /* a span of program structure that no pass has looked at yet */
    TUI_ROW_PASSED = 16, /* the last eviction pass kept it by a rule */
    TUI_ROW_BARRED = 32, /* barred: only a person brings it back */
};

typedef enum tui_change {
    TUI_KEPT,
    TUI_EVICTED_ROW,
    TUI_PROMOTED_ROW,
    TUI_PROTECTED_ROW,
    TUI_BARRED_ROW,
    TUI_DEFERRED_ROW
} tui_change;

typedef struct tui_row {
    uint32_t text_at;
    uint16_t text_n;
    uint16_t lanes, back;             /* active in so many; of them, promoted in turn `promoted` */
    uint16_t source;                  /* index of tui_rows.sources */
    uint16_t deferred;                /* lanes, the last ones, that are not computed */
    uint8_t flags, reason, change;    /* reason: a word of the journal; change: the last, tui_change */
    uint8_t protected_by;             /* a word: what a rule last kept it for; "": none did */
    uint32_t born, changed, promoted; /* turns; 0: never */
} tui_row;

/* A stretch of the sequence that came from one place. */
typedef struct tui_source {
    uint32_t from, to, turn;
    char *origin, *label; /* "tool", "src/a.c:1-80"; label may be "" */
    uint32_t line;
} tui_source;

typedef struct tui_journal tui_journal;
tui_journal *tui_journal_new(void);
void tui_journal_free(tui_journal *j);
/* Tokens [from, from + n) that came from one place. */
typedef struct tui_appended {
    uint32_t turn, from, n;
    const char *origin, *label; /* as in tui_source; NULL: "" */
    uint32_t line;              /* 0: none */
    base_str text;              /* the tokens' bytes in a row */
    const uint16_t *lens;       /* [n] bytes of each token; NULL: all at the first */
} tui_appended;
void tui_journal_append(tui_journal *j, const tui_appended *a);
/*
 * Plans speak of n_lanes lanes; those of layers whose letter is 'w' (a letter a layer, as in the session's event; NULL or
 * no such number of layers: none) read the newest tokens whatever is decided, and are left out of all that is counted
 * here. Before anything else. Returns how many lanes are counted.
 */
uint32_t tui_journal_windows(tui_journal *j, uint32_t n_lanes, const char *letters);
/* Of what was just appended only the first `lanes` of a plan's are computed (fresh bulk below the pivot). */
void tui_journal_lanes(tui_journal *j, uint32_t lanes);
void tui_journal_span(tui_journal *j, uint32_t turn, uint32_t from, uint32_t to, const char *reason);
/*
 * A plan's exact changes (the packed kv_plan beside the event), before its runs: those then only say why.
 * Without it (events from JSON) the runs' counts of lanes are all there is; they are rounded. Bytes that are
 * no plan are ignored: false.
 */
bool tui_journal_plan(tui_journal *j, uint32_t turn, const void *blob, size_t n);
/* An eviction pass begins: which rows a rule keeps is told anew by its runs. */
void tui_journal_pass(tui_journal *j, uint32_t turn);
/* exact: a tui_journal_plan of the same event said which lanes. */
void tui_journal_run(tui_journal *j, uint32_t turn, uint32_t from, uint32_t to, const char *action,
    const char *reason, uint32_t lanes, bool exact);
void tui_journal_truncate(tui_journal *j, uint32_t turn, uint32_t n);
/*
 * Back to the end of `turn` with n tokens: what later turns did to the rows that stay is from now on part of
 * that turn.
 */
void tui_journal_rewind(tui_journal *j, uint32_t turn, uint32_t n);

/* Rows after a change: n tokens, so many active per lane (mean); change: what made it. */
typedef struct tui_sample {
    uint32_t turn, n, active;
    tui_change change;
} tui_sample;

/*
 * Every change of one token up to the end of `turn`, oldest first. change: TUI_KEPT with an empty reason is
 * its arrival.
 */
typedef void tui_touch_fn(void *user, uint32_t turn, tui_change change, const char *reason, uint32_t lanes);
void tui_journal_touches(const tui_journal *j, uint32_t index, uint32_t turn, tui_touch_fn *fn, void *user);

/* Tokens, and row-lanes, of the rows so far. */
typedef struct tui_sum {
    uint32_t host, protected_, promoted, barred, deferred;
    uint64_t lanes, protected_lanes, promoted_lanes, deferred_lanes;
} tui_sum;

typedef struct tui_rows {
    const tui_journal *journal;
    uint64_t serial; /* the journal's serial when it was folded; with another serial the table starts again */
    size_t done;     /* operations folded in */
    uint32_t turn;   /* of the last one */
    uint32_t n_lanes; /* that are counted */
    tui_row *row;
    size_t n, cap;
    uint64_t *bits;      /* [n][(n_lanes + 63) / 64]: the lanes in which a row is active */
    uint64_t *back_bits; /* the same: of them, brought back in the row's turn `promoted` */
    size_t cap_bits, cap_back_bits;
    tui_source *sources;
    size_t n_sources, cap_sources;
    uint64_t lanes_sum; /* active row-lanes of all rows; right between two operations too */
    /* [n + 1] sums over the rows before each row, so that a frame counts any range without walking it */
    tui_sum *sums;
    size_t cap_sums;
    tui_sample *samples; /* active rows over time, for the history view */
    size_t n_samples, cap_samples;
} tui_rows;

/*
 * Folds in what is new, up to the end of `turn` (UINT32_MAX: everything). A table that is already further
 * starts again.
 */
void tui_rows_update(tui_rows *r, const tui_journal *j, uint32_t n_lanes, uint32_t turn);
void tui_rows_free(tui_rows *r);

const char *tui_rows_word(const tui_rows *r, const tui_row *row); /* the reason; "" when none */
const char *tui_rows_protected_by(const tui_rows *r, const tui_row *row);
/* The bytes of tokens [from, to), made harmless for one line (line ends become the mark). */
void tui_rows_text(const tui_rows *r, uint32_t from, uint32_t to, base_buf *out);
/* Is the row active in this lane? */
bool tui_row_in_lane(const tui_rows *r, uint32_t index, uint32_t lane);
bool tui_row_protected(const tui_rows *r, const tui_row *row);

/* Sums over tokens [from, to). */
typedef struct tui_count {
    uint32_t n, protected_, host, promoted, barred, deferred; /* tokens; host: in no lane */
    double protected_rows, promoted_rows, deferred_rows;      /* rows per lane, mean */
    double active, share;                                     /* rows per lane, mean; and their share of n */
} tui_count;
tui_count tui_rows_count(const tui_rows *r, uint32_t from, uint32_t to);
/* The fewest and the most lanes in which a token of [from, to) is active; 0 and 0 of none. */
void tui_rows_lanes(const tui_rows *r, uint32_t from, uint32_t to, uint32_t *min, uint32_t *max);
/* "in all 56 lanes", "in 14 to 31 of 56 lanes" */
void tui_lanes_in_words(uint32_t fewest, uint32_t most, uint32_t n_lanes, char out[static 64]);
tui_look tui_count_look(const tui_count *c);

#endif
