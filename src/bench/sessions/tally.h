/*
 * What is counted of a session while it is replayed: rows that calls quote, tokens and row reads, the calls
 * it would write.
 */
#ifndef KVIST_BENCH_TALLY_H
#define KVIST_BENCH_TALLY_H

#include "base/buf.h"
#include "bench/sessions/transcript.h"

enum { TALLY_EACH = 64 };

/* What a policy did in one session. */
typedef struct tally {
    uint32_t n_calls, n_equal, n_quoting;
    uint32_t n_right; /* calls that are the recorded one: its function, its arguments */
    uint32_t n_named; /* calls of the full cache's function, whatever their arguments */
    /* the calls, as elements of a list, and how little the best token of each led by (nats) */
    base_buf written, leads;
    char each[TALLY_EACH + 1];  /* '1' a call that is equal, '0' one that is not */
    double recall;              /* sum over the calls that quote something */
    uint64_t computed, compact; /* tokens: rows in place, and with everything behind the first hole again */
    uint64_t raw, effective;    /* row reads per lane */
    uint64_t raw_compact;       /* of the tokens computed again, which read all that stands before them */
    uint32_t peak, live, live_compact;
    double seconds;
    bool rounded; /* the session's rows are, in 8 bits */
} tally;

/* Of the history's rows that the call quotes, the share that is active. */
void tally_recall(const model *with, const kv_session *s, const transcript_message *m, tally *t);
/* Appends n ids from `from` on, and counts what that computes and reads. logits may be NULL. */
int tally_append(kv_session *s, kv_origin origin, uint32_t turn, const model_ids *ids, uint32_t from,
    uint32_t n, float *logits, tally *t, base_err *err);
/*
 * A request is about to come: a cache that compacted has renumbered, nothing behind its first hole is a
 * prefix of the request, and all of it is read anew.
 */
void tally_compact(const kv_session *s, tally *t);
/*
 * The call that a session would write, in a fork of it: the most probable token each time, until it is closed
 * or too long. *ret_lead: lowered to what the best token had over the next one, in nats.
 */
int tally_write_call(model *with, const kv_session *whole, uint32_t turn, bool rounded, base_buf *call,
    double *ret_lead, base_err *err);
/*
 * Counts a call against the one that is expected, and against m, the recorded one. The name stands first, up to
 * a comma.
 */
void tally_call(
    const base_buf *call, double lead, const base_buf *expected, const transcript_message *m, tally *t);
/* Both. */
int tally_compare_call(model *with, const kv_session *s, uint32_t turn, const base_buf *expected,
    const transcript_message *m, tally *t, base_err *err);
/* Is it the recorded call? The order of members and how a number is written do not count. */
bool tally_is_recorded(const base_buf *call, const transcript_message *m);

#endif
