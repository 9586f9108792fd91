/* The parts of the built-in engine: answers (engine_local.c), branches (engine_local_branch.c). Engine thread only. */
#ifndef KVIST_AGENT_ENGINE_ENGINE_LOCAL_PARTS_H
#define KVIST_AGENT_ENGINE_ENGINE_LOCAL_PARTS_H

#include "agent/engine/engine.h"
#include "model/forward/alike.h"
#include "model/text/answer.h"
#include "model/text/lookup.h"

typedef struct local {
    engine base;
    model *model;
    kv_session *trunk; /* the session while the engine's is a branch of it; else NULL */
    const model_info *info;
    const model_tokenizer *tokenizer;
    const model_template *template;
    kv_options kv;
    char *policy, *row_file, *prefix_file, *heads_file, *pivot_file, *pace_file, **set;
    char *cache;       /* the folder of the last four; NULL: nothing is kept */
    kv_limit measured; /* by pace_file; {0}: nothing */
    char *windows;     /* engine_info's, and the next two */
    uint32_t window, row_bytes;
    const atomic_bool *cancel;
    model_sampler *sampler;
    model_sampling sampling;
    model_grammar *grammar;
    bool grammar_off;     /* this answer left it */
    model_answer *answer; /* of hold->schema; NULL: no answer was held yet */
    const base_schema *answer_schema;
    engine_hold *hold;    /* this answer's; NULL: it is free */
    model_lookup *lookup; /* NULL: off */
    float *logits;        /* [KV_DRAFT_MAX][n_vocab]; behind the last token: at row */
    uint32_t row;
    bool have_logits;
    bool gave_up_heads, gave_up_pace; /* it failed: not again in this process */
    bool few;                         /* of them only what the grammar allows was computed */
    /*
     * The batch that kv_session_draft computed: its n_known first tokens are certain, the others are looked
     * up.
     */
    uint32_t n_known, n_drafted, n_taken;
    kv_origin origin; /* of what was written last */
    base_alike alike;
    model_alike *words; /* made when they are first asked for; NULL: not yet */
    bool has_no_words;
} local;

static inline local *as_local(const engine *e)
{
    return (local *)(uintptr_t)e;
}

/* --- engine_local_branch.c --- */
/*
 * The draft is over: at a token that the pick did not say (wrong), at its end, or since the sequence went
 * another way.
 */
void local_end_draft(local *l, bool wrong);
/* FOLDER/HASH.ENDING, which the caller frees. */
char *local_cache_file(const char *folder, const char *hash, const char *ending);
/* engine_ops */
int local_fork(engine *e, base_err *err);
int local_fork_fixed(engine *e, const char *name, const int32_t *ids, uint32_t n, base_err *err);
void local_unfork(engine *e);
int local_doubts(
    engine *e, const int32_t *ids, uint32_t n_read, uint32_t n, engine_doubt *ret, base_err *err);
int local_weigh(engine *e, const int32_t *ids, uint32_t n, double *ret, base_err *err);

#endif
