/*
 * Model files in the data folder's models/: where they are, which hash is remembered of each, and how one is
 * fetched. Part of `kvist model`. A model in parts (gguf_parts.h) is so many files, each with its own hash.
 */
#ifndef KVIST_CMD_MODEL_FILES_H
#define KVIST_CMD_MODEL_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* Bytes for a person: "1.5 GiB". */
void model_files_put_bytes(base_buf *out, uint64_t bytes);

/* DATA/models/FILE; the caller frees. */
char *model_files_path(const char *file);

/* The hash that is remembered of `path`, beside it as sha256sum writes it; false: none is. */
bool model_files_hash(const char *path, char ret[65]);

/* A file of the folder, or a model in parts: how many of them are here. */
typedef struct model_files_entry {
    char *file; /* its name; of a model in parts the first's */
    uint32_t n_here, n_parts;
    uint64_t bytes; /* of those that are here */
} model_files_entry;

/* All .gguf files of the folder, by name. The caller frees with model_files_free. */
model_files_entry *model_files_list(size_t *ret_n);
void model_files_free(model_files_entry *entries, size_t n);

/*
 * Fetches the file of a URL, and all parts when it is one part of a model. sha256: NULL, or what each has to
 * be, in order, commas between. `check` reads the whole model when it is here; what it refuses is moved aside.
 * An interrupted one goes on when it is asked for again.
 */
int model_files_get(
    const char *url, const char *sha256, int (*check)(const char *path, base_err *err), base_err *err);

#endif
