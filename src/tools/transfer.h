/*
 * Downloads: a URL becomes a file, whole and checked, or nothing. Used by `kvist model get`; any thread,
 * blocks.
 */
#ifndef KVIST_TOOLS_TRANSFER_H
#define KVIST_TOOLS_TRANSFER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

typedef struct tool_transfer_options {
    const char *url; /* https, http or file; a redirect may lead to https or http only, from https to https */
    const char *path;   /* what it becomes; its folder is made */
    const char *sha256; /* 64 hex digits; NULL: not checked */
    char *ret_sha256;   /* 65 bytes: what came; NULL: not asked */
    uint64_t max_bytes; /* 0: 64 GiB */
    /* Called a few times a second; total 0: unknown. false ends the transfer (it can be resumed). */
    bool (*progress)(void *user, uint64_t done, uint64_t total);
    void *user;
    const atomic_bool *cancel; /* may be NULL */
} tool_transfer_options;

/*
 * Writes "PATH.part" and renames it when it is whole and its sha256 is right. An interrupted transfer goes on
 * where it stopped, also in another process: with a sha256 always, without one when the server's ETag or
 * Last-Modified (kept in "PATH.part.from") is still the same. What does not fit on the disk is refused before
 * it comes (BASE_E_NOMEM). BASE_E_FORMAT: the wrong bytes came (they are removed). BASE_E_CANCELLED leaves
 * the part.
 */
int tool_transfer_get(const tool_transfer_options *options, base_err *err);

#endif
