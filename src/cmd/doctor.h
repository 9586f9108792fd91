/* The report of `kvist doctor`: facts in their order, as lines for a person and as one object for a script. */
#ifndef KVIST_CMD_DOCTOR_H
#define KVIST_CMD_DOCTOR_H

#include "base/buf.h"
#ifdef KVIST_SHELL
#include "cmd/endpoint.h"
#endif

typedef struct doctor_report {
    base_buf text, json; /* json is an object that is not ended yet */
} doctor_report;

/* One fact: a line, a member. */
void doctor_tell(doctor_report *r, const char *key, const char *value);
/* The same, without the value's last line ends; frees it. An empty one is "none". */
void doctor_tell_buf(doctor_report *r, const char *key, base_buf *value);

#ifdef KVIST_SHELL
/*
 * Asks the engine, sends nothing of any tree. Where nothing listens that is said at once, unless a person says how
 * long to ask (is_wait_given); one that is there and does not answer yet (it loads its model, or computes on a CPU)
 * is waited for. served: the model that is asked for, NULL: the one that it has. Returns an exit status.
 */
int doctor_tell_endpoint(
    doctor_report *r, const endpoint_words *words, bool is_wait_given, const char *served);
#endif

#endif
