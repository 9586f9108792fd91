/*
 * Whole files: read with a bound, write so that a reader sees the old or the new bytes and never half of
 * them.
 */
#ifndef KVIST_BASE_FS_H
#define KVIST_BASE_FS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * Appends the file's bytes to *out. A file over max_bytes is BASE_E_LIMIT, a missing one BASE_E_NOT_FOUND; a pipe or a device, which
 * somebody could put in a file's place and which would be waited for without an end, is BASE_E_IO.
 */
int base_fs_read(const char *path, size_t max_bytes, base_buf *out, base_err *err);
/* The same of what a person named: a pipe of their shell's (<(...), /dev/stdin) is waited for. */
int base_fs_read_given(const char *path, size_t max_bytes, base_buf *out, base_err *err);

/* Writes a temporary file beside `path`, fsyncs, renames, fsyncs the folder. */
int base_fs_write(const char *path, const void *bytes, size_t n, mode_t mode, base_err *err);
/* The same where nothing is yet, not even a link that leads nowhere: else BASE_E_USAGE, and what is there stays. */
int base_fs_write_new(const char *path, const void *bytes, size_t n, mode_t mode, base_err *err);

/* Copies a file's bytes (shared by the file system where it can) to a new file. BASE_E_IO: `to` is there already. */
int base_fs_copy(const char *from, const char *to, mode_t mode, base_err *err);

/* Makes the folder and its parents (mode 0700). An existing folder is fine. */
int base_fs_mkdirs(const char *path, base_err *err);

/* The same for the folders in which a file is to lie. */
int base_fs_mkdirs_above(const char *file, base_err *err);

/*
 * Removes a file or a whole tree below `path`; symbolic links are removed, never followed. Missing is fine.
 */
int base_fs_remove(const char *path, base_err *err);
/* The same for a name in an open folder. */
int base_fs_remove_at(int folder, const char *name, base_err *err);

bool base_fs_exists(const char *path);

/* "folder/name"; "name" where folder is "". The caller frees. */
char *base_fs_join(const char *folder, const char *name);

typedef enum base_home { BASE_HOME_CONFIG, BASE_HOME_DATA, BASE_HOME_STATE } base_home;

/*
 * "$KVIST_HOME/{config,data,state}", else "$XDG_*_HOME/kvist", else the XDG default below $HOME, or below the
 * home folder of the password database where HOME is unset or no absolute path; with "/name" behind it when
 * name is not NULL. The caller frees. Nothing is made on disk. A user without any home folder gets a path
 * that cannot be made (base_fs_check_homes says so).
 */
char *base_fs_home(base_home which, const char *name);

/*
 * May what lies there be believed, and run? It must be a file or a folder, belong to us or to root, and no
 * other user may write to it; a group that is ours alone is nobody else (OpenSSH's StrictModes asks the
 * same). Links are followed: it is the target that counts. A missing path is fine. BASE_E_STATE with a
 * sentence that says whose it is, or what to change.
 */
int base_fs_check_owner(const char *path, base_err *err);

/*
 * base_fs_check_owner of $KVIST_HOME and the three homes, and that there is a home at all. Asked once, before
 * any of them is used.
 */
int base_fs_check_homes(base_err *err);

#endif
