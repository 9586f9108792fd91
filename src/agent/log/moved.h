/*
 * Rows that plans evict and promote, by reason. A plan's runs are for people (joined over lanes that nearly agree);
 * its flips are exact. So rows are counted from the flips against the lanes as they are just before the plan is
 * applied, the runs only say the reason, and the mean over lanes is rounded once, when it is told.
 */
#ifndef KVIST_AGENT_LOG_MOVED_H
#define KVIST_AGENT_LOG_MOVED_H

#include "base/buf.h"
#include "kv/plan/plan.h"

enum { AGENT_EVICTED, AGENT_PROMOTED, AGENT_N_SIDES };
extern const char *const agent_side_words[AGENT_N_SIDES]; /* "evicted", "promoted" */

typedef struct agent_moved {
    uint64_t rows[AGENT_N_SIDES][KV_N_REASONS]; /* of all lanes, exact */
} agent_moved;

/* Adds what the plan does; before it is applied. s NULL: an engine of one lane whose plan's runs are exact. */
void agent_moved_count(agent_moved *m, const kv_session *s, const kv_plan *p);
/*
 * Appends "evicted 512 budget, 40 stale": rows per lane by the plans' own reasons, behind "; " where something
 * stands already. Returns their sum, the rounded mean of all.
 */
uint32_t agent_moved_put(const agent_moved *m, int side, uint32_t n_lanes, base_buf *out);

#endif
