/*
 * The script of the fake engine: what engine_fake.c acts and engine_script.c reads. The format stands in engine_fake.c.
 */
#ifndef KVIST_AGENT_ENGINE_SCRIPT_H
#define KVIST_AGENT_ENGINE_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

#include "kv/plan/plan.h"

enum { SCRIPT_MAX_TOKENS = 1 << 20, SCRIPT_MAX_LANES = 32 };

typedef enum script_step_kind {
    STEP_ANSWER,
    STEP_EVICT,
    STEP_PROMOTE,
    STEP_PROTECT,
    STEP_BAR,
    STEP_WANTED,
    STEP_FAIL,
    STEP_DOUBT,
    N_STEPS
} script_step_kind;

typedef struct script_step {
    script_step_kind kind;
    char *text;
    uint32_t from, to, lanes;
    kv_reason reason;
    bool done;
} script_step;

typedef struct engine_script {
    char *model;
    uint32_t n_ctx, n_lanes, budget, repair, chunk, learns;
    script_step *steps;
    size_t n_steps, cap_steps;
} engine_script;

/* What a planning step does; word NULL: the step is no plan. */
typedef struct script_plan_kind {
    const char *word;
    kv_action action;
    kv_cause cause;
} script_plan_kind;
extern const script_plan_kind script_plans[N_STEPS];

/* Settings keep their values in *s unless the text names them. script_fini also after a failure. */
int script_parse(engine_script *s, const char *text, size_t n, base_err *err);
void script_fini(engine_script *s);

#endif
