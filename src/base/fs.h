/*
 * Whole files: read with a bound, write so that a reader sees the old or the new bytes and never half of them.
 */
#ifndef KVIST_BASE_FS_H
#define KVIST_BASE_FS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

/* Appends the file's bytes to *out. A file over max_bytes is BASE_E_LIMIT, a missing one BASE_E_NOT_FOUND. */
int base_fs_read(const char *path, size_t max_bytes, base_buf *out, base_err *err);

/* Writes a temporary file beside `path`, fsyncs, renames, fsyncs the folder. */
int base_fs_write(const char *path, const void *bytes, size_t n, mode_t mode, base_err *err);

/* Makes the folder and its parents (mode 0700). An existing folder is fine. */
int base_fs_mkdirs(const char *path, base_err *err);

/* Removes a file or a whole tree below `path`; symbolic links are removed, never followed. Missing is fine. */
int base_fs_remove(const char *path, base_err *err);

bool base_fs_exists(const char *path);

typedef enum base_home { BASE_HOME_CONFIG, BASE_HOME_DATA, BASE_HOME_STATE } base_home;

/*
 * "$KVIST_HOME/{config,data,state}", else "$XDG_*_HOME/kvist", else the XDG default below $HOME; with "/name" behind it
 * when name is not NULL. The caller frees. Nothing is made on disk.
 */
char *base_fs_home(base_home which, const char *name);

#endif
