/*
 * A side that answers by itself. Up to some token it reads the record's text as the other side does; from the first
 * one that it would have said otherwise it writes on alone, to the end of the turn, and the next requests follow what it
 * wrote.
 *
 * No tool runs. A call is answered from the record, where an equal one was made while the tree was the same; a file may
 * be read where the log says which text it had, and it has that text still; else it is not known what the call would
 * have given, and the side stops there, with a sentence. It stops, too, in front of a request that was asked over a tree
 * which it did not change as the record did.
 *
 * Thread: that of its arm.
 */
#ifndef KVIST_WHATIF_FREE_H
#define KVIST_WHATIF_FREE_H

#include "whatif/calls.h"

/*
 * What a file had to show: the text of a call of `read`, of the version that the log names. BASE_E_NOT_FOUND: it is
 * another one now, or not there; the sentence says so.
 */
typedef int whatif_read_fn(
    void *user, const base_json *arguments, const char *version, base_buf *out, base_err *err);

typedef struct whatif_free_options {
    whatif_arm *arm;
    const whatif_schedule *schedule;
    whatif_read_fn *read; /* NULL: no file can be read */
    void *read_user;
    void (*emit)(void *user, agent_event *e); /* its own events; the arm's plans are the arm's to tell */
    void *user;
} whatif_free_options;

typedef struct whatif_free whatif_free;
whatif_free *whatif_free_new(const whatif_free_options *o);
void whatif_free_close(whatif_free *f); /* NULL is fine */

/* The sentence why it does not go on; NULL: it does. */
const char *whatif_free_stopped(const whatif_free *f);

/* A turn begins; it may stop here. */
int whatif_free_turn(whatif_free *f, const whatif_step *turn, base_err *err);
/* A step of the record that is no answer's tokens. Sentences about what cannot be followed are the arm's notes. */
int whatif_free_do(whatif_free *f, const whatif_step *step, base_err *err);
/*
 * Would it say what the record has at token `at` of an answer? original: the other side's expectation there, which
 * decides where the record does not say what the model preferred: a grammar, or a draw, did. *changed: its own.
 */
int whatif_free_agrees(whatif_free *f, const whatif_step *step, uint32_t at, const float *original,
    const float **changed, bool *ret, base_err *err);
/* ... and takes that token. */
int whatif_free_follow(whatif_free *f, const whatif_step *step, uint32_t at, base_err *err);
/* Writes on in this answer (a step of the schedule) by itself, to the turn's end or where it stops. */
int whatif_free_go_on(whatif_free *f, const whatif_step *step, base_err *err);

void whatif_free_end(whatif_free *f, const whatif_step *end); /* the turn is over */

/* Of this turn: what it wrote, and where its calls' results came from. */
const base_buf *whatif_free_written(const whatif_free *f);
agent_followed_list whatif_free_calls(const whatif_free *f);

#endif
