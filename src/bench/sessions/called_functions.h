/* The functions that recorded sessions call, as a prompt that says what may be called. */
#ifndef KVIST_BENCH_FUNCTIONS_H
#define KVIST_BENCH_FUNCTIONS_H

#include "base/buf.h"
#include "base/json.h"

/*
 * Appends how a call is written and a line for each function with the arguments that any session gives it, in
 * the order of their first use. sessions: an array of {"traj":[{tool_calls}]}, as `kvist-bench sessions`
 * reads them; what is none is passed over.
 */
void functions_add(const base_json *sessions, base_buf *out);

#endif
