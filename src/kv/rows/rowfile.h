/*
 * The row file: every row of a session once, token-major, append-only, behind a header that says whose they
 * are. A manifest beside it (snapshot.c) says which file row is which token; rows it does not name are waste,
 * so a crash between the two writes loses nothing that was committed.
 */
#ifndef KVIST_KV_ROWFILE_H
#define KVIST_KV_ROWFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "model/ops/rows.h"

typedef struct kv_rowfile kv_rowfile;

/* Whose rows: compared byte by byte. */
typedef struct kv_rows_identity {
    char hash[65];
    uint32_t kernel_version;
    model_rows_shape shape;
} kv_rows_identity;

/*
 * Opens and locks (another process: BASE_E_STATE). With create a fresh file with a new id replaces what was
 * there; without, a missing file is BASE_E_NOT_FOUND and a damaged or foreign one BASE_E_FORMAT.
 */
int kv_rowfile_open(
    kv_rowfile **ret, const char *path, const kv_rows_identity *identity, bool create, base_err *err);
void kv_rowfile_close(kv_rowfile *f); /* NULL is fine */
uint64_t kv_rowfile_id(const kv_rowfile *f);
uint64_t kv_rowfile_rows(const kv_rowfile *f); /* whole rows in it */
uint64_t kv_rowfile_bytes(const kv_rowfile *f);
/* the next append writes at row n: those behind are waste */
void kv_rowfile_set_rows(kv_rowfile *f, uint64_t n);

/* One row behind the others, through a buffer; nothing is sure before kv_rowfile_sync. */
int kv_rowfile_append(kv_rowfile *f, const uint16_t *row, base_err *err);
/* One row at place `at`, written at once: for compaction, into a place that no manifest names. */
int kv_rowfile_put(kv_rowfile *f, uint64_t at, const uint16_t *row, base_err *err);
int kv_rowfile_sync(kv_rowfile *f, base_err *err);
/*
 * Keeps row files at and two levels below folder within max_bytes: the longest unused go first with their
 * manifests, those that a process has open never. *ret_bytes (may be NULL): what is left. A folder that is
 * not there holds nothing.
 */
int kv_rowfile_trim(const char *folder, uint64_t max_bytes, uint64_t *ret_bytes, base_err *err);

/* For a map of rows: its descriptor, and where row n begins in it. */
int kv_rowfile_descriptor(const kv_rowfile *f);
uint64_t kv_rowfile_place(const kv_rowfile *f, uint64_t n);
/* n rows from row `from` on into rows. */
int kv_rowfile_read(kv_rowfile *f, uint64_t from, uint32_t n, uint16_t *rows, base_err *err);

#endif
