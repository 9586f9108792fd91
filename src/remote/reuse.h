/*
 * Does a llama-server move what stood behind a cut (n_cache_reuse), instead of computing it again? It is asked by two short
 * requests, and the answer is kept for that server: its address, model and build.
 */
#ifndef KVIST_REMOTE_REUSE_H
#define KVIST_REMOTE_REUSE_H

#include "remote/endpoint.h"

typedef struct remote_reuse {
    uint32_t n_kept, n_behind; /* tokens in front of the cut, and behind it */
    uint32_t found;            /* of the second request */
    bool works;
} remote_reuse;

/*
 * Two requests of some thirty tokens, the second without the middle of the first. A server with one slot gives up what that
 * slot held, or keeps it among its former prompts (--cache-ram); ret_held (may be NULL; caller frees): the ids that its slot
 * holds then. BASE_E_UNSUPPORTED: no such engine, or it does not tell; no room for it is that too.
 */
int remote_reuse_probe(remote_endpoint *e, remote_reuse *ret, model_ids *ret_held, base_err *err);

/*
 * What a probe of this server said before, in `folder` (NULL: nothing is kept): a file named by a hash of the server, with one
 * word in it. False: none did, or its address, model or build is another one now.
 */
bool remote_reuse_load(const remote_endpoint *e, const char *folder, bool *ret_works);
void remote_reuse_save(
    const remote_endpoint *e, const char *folder, bool works); /* where it fails the next session asks */
void remote_reuse_forget(const remote_endpoint *e, const char *folder);

#endif
