/*
 * kvist as an agent of the Agent Client Protocol, version 1: an editor starts it and talks on its standard
 * streams. One session is open at a time, since each needs the model's memory; a request for another one
 * closes it and resumes that, with nothing computed again. A session is told to the editor as soon as it has
 * its id; its model loads behind that, and the first request waits for it.
 */
#ifndef KVIST_ACP_ACP_H
#define KVIST_ACP_ACP_H

#include "agent/start.h"

typedef struct acp_options {
    /*
     * Fills *ret for a session on the tree `cwd`; what it points to lives until the next call or the end.
     * dir, resume and show_log are set behind it.
     */
    int (*prepare)(void *user, const char *cwd, agent_session_options *ret, base_err *err);
    void *user;
    const char *version; /* of kvist */
} acp_options;

/*
 * Until the standard input ends; then a request that runs is cancelled, and each that waits gets its answer, unless nobody reads
 * any more. BASE_E_IO: it cannot be read.
 */
int acp_run(const acp_options *options, base_err *err);

#endif
