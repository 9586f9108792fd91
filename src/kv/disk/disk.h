/*
 * What is on disk: a session's manifest (everything but its rows) and rows, and those of the fixed prompt, so that
 * a session is resumed with nothing computed again (docs/kv.md, Files).
 */
#ifndef KVIST_KV_DISK_H
#define KVIST_KV_DISK_H

#include "kv/core/state.h"

/* manifest.c: its bytes, and a fresh session's state from such bytes (any are safe), all but the rows. */
typedef struct kv_manifest_file {
    uint64_t id, n_rows; /* of the row file that it belongs to */
} kv_manifest_file;
void kv__manifest_write(const kv_session *s, const kv_manifest_file *file, base_buf *out);
int kv__manifest_read(kv_session *s, const void *bytes, size_t n, kv_manifest_file *ret_file, base_err *err);

/* snapshot.c: what kv_session_save left, into a fresh session. */
int kv__snapshot_read(kv_session *s, base_err *err);

/* ---- states.c: states of a model that keeps one, in a file beside the manifest ---- */

/* Writes those that the next manifest names, where no earlier one lies. */
int kv__states_save(kv_session *s, base_err *err);
/* That manifest is on disk now: what only the one before named may be overwritten. */
void kv__states_saved(kv_session *s);
/* Reads what the manifest names. */
int kv__states_load(kv_session *s, base_err *err);

/* ---- digest.c: what is known of blocks without reading their rows ---- */

/*
 * Makes the blocks of a session that has its manifest and row file: those that the file has a digest of are there then,
 * the others have room for their rows.
 */
int kv__digest_find(kv_session *s, base_err *err);
/* Writes what is not there yet, behind the rows; whatever goes wrong costs time only. */
void kv__digest_save(kv_session *s);
/* Takes the file away if a row was found damaged, so that the next resume looks at all of them. */
void kv__digest_drop_damaged(const kv_session *s);

/* prefix.c: reads kv_options.prefix_file; whatever is wrong with it, there is no prefix then. */
void kv__prefix_load(kv_session *s, const char *path);

#endif
