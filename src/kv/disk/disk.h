/* What is on disk: a session's manifest and rows, and the fixed prompt's. */
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

/*
 * states.c: the states that a manifest is to name, written where no earlier one is; what the manifest named is
 * there now; and what it names, read.
 */
int kv__states_save(kv_session *s, base_err *err);
void kv__states_saved(kv_session *s);
int kv__states_load(kv_session *s, base_err *err);

/* prefix.c: reads kv_options.prefix_file; whatever is wrong with it, there is no prefix then. */
void kv__prefix_load(kv_session *s, const char *path);

#endif
