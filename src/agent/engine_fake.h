/*
 * What the two files of the scripted engine share: engine_fake.c reads the script and speaks, engine_fake_rows.c keeps the rows.
 */
#ifndef KVIST_AGENT_ENGINE_FAKE_H
#define KVIST_AGENT_ENGINE_FAKE_H

#include "agent/engine.h"
#include "agent/engine_script.h"

enum {
    FAKE_SINKS = 4,
    FAKE_WINDOW = 32,
    FAKE_WORD = 4, /* letters a token */
    FAKE_CONTROL = 1 << 30,
    FAKE_BYTE = FAKE_CONTROL + 256, /* one byte above ASCII */
    FAKE_END = FAKE_CONTROL + 64
};

/* One token of the sequence. */
typedef struct token_state {
    int32_t id;
    uint32_t active; /* bit per lane */
    uint32_t turn;
    uint8_t origin, flags; /* KV_STATE_* */
    uint8_t soft_reason, last_action, last_reason;
    uint8_t line_start;
    uint32_t last_turn;
} token_state;

/* What undo takes back: the masks before a plan. */
typedef struct undo_entry {
    uint32_t *active;
    uint8_t *flags;
    uint32_t n;
} undo_entry;

typedef struct fake {
    engine base;
    engine_ops ops;       /* what base points to */
    engine_script script; /* n_ctx, budget, ... are read from here too */
    char *row_file;
    size_t cursor; /* cursor: the next answer is at or behind it */
    token_state *tokens;
    uint32_t n;
    size_t cap_tokens;
    int32_t *ids; /* a flat copy for ids() */
    size_t cap_ids;
    undo_entry *undo;
    size_t n_undo, cap_undo;
    kv_observer observer;
    const atomic_bool *cancel;
    uint64_t epoch;
    uint32_t turn, reused, computed;
    bool automatic;
    bool is_branch; /* of which the first branch_n tokens are the session's */
    uint32_t branch_n;
    uint64_t branch_epoch;
    model_ids answer; /* the current answer's tokens, the end token last */
    size_t answer_at;
    int32_t wanted;
    char piece[8][8]; /* piece() hands out these in turn */
    uint32_t piece_at;
} fake;

static inline fake *as_fake(engine *e)
{
    return (fake *)e;
}

static inline const fake *as_const(const engine *e)
{
    return (const fake *)e;
}

/* --- engine_fake_rows.c --- */
extern const engine_ops fake_row_ops; /* memory and looking; the rest is NULL */
void fake_add_token(fake *f, int32_t id, kv_origin origin, uint32_t turn);
int fake_evict(fake *f, base_err *err); /* down to the budget */
bool fake_is_cancelled(const fake *f);

#endif
