/*
 * New text of one file: prepared, shown as a diff (diff.c), checked again and written (change.c).
 */
#ifndef KVIST_TOOLS_EDIT_CHANGE_H
#define KVIST_TOOLS_EDIT_CHANGE_H

#include "tools/tree/workspace.h"
#include "tools/tree/write.h"

/* One file's new text, prepared; what the person approves is exactly what is written. */
typedef struct tool_change {
    char *path;
    bool creates, removes; /* removes: new_text is empty */
    mode_t mode;           /* of a file that is created; 0: as the umask has it */
    size_t made;           /* removes: the folders made for it, which go too (tool_undo_record.made) */
    char before[65];       /* version that was prepared against; "" when it creates */
    base_buf old_text, new_text;
    char *say;                /* what the model reads when it worked; "\n" ends it */
    struct tool_change *also; /* a second file of the same change (a prototype's header); NULL: none */
} tool_change;
void tool__change_free(void *change);
/* headline "verb path (+a -b)", detail the diff, the plan itself. Takes the change. */
void tool__change_preview(
    const tool_root *root, tool_change *change, const char *headline, tool_preview *ret);
/* Has the text no marks of a merge? false: *r says that they are to be resolved first. */
bool tool__is_unmerged(const char *path, const base_buf *text, tool_result *r);
/* What a prepared change would write (its first file); false: the preview is of no change. Pointers into the preview. */
bool tool_preview_text(const tool_preview *p, const char **ret_path, base_str *ret_text);
/* The file, if it may be changed: exists, text, one link. false: *r says why. */
bool tool__open_for_change(
    tool_workspace *w, const char *path, const char *tool, tool_file *f, tool_result *r);
/* Takes f's text, new_text and say; where f's mark was parted both texts begin with it again. */
tool_change *tool__change_new(const char *path, tool_file *f, base_buf *new_text, base_buf *say);
/*
 * The `run` of every tool that prepares a tool_change: checks again, records for undo, writes. A refusal is in
 * *ret. call and limits are not looked at.
 */
int tool__change_run(tool_workspace *w, const tool_call *call, const tool_limits *limits,
    tool_preview *prepared, tool_result *ret, base_err *err);
/* The first folder of the path that does not exist yet, as the number of bytes that name it; 0: all do. */
size_t tool__change_missing_folder(const tool_workspace *w, const char *path);
/*
 * Was the file shown as it is now? false: *r refuses the change, shows bytes [from, to) of the file, which begin at a line,
 * and says the next call.
 */
bool tool__change_is_shown(tool_workspace *w, const char *path, const tool_file *f, size_t from, size_t to,
    const char *next_call, tool_result *r);
/* ---- diff.c ---- */

/* Unified diff with "--- a/path" lines; appends nothing when equal. NULL old or new: created or removed. */
void tool__diff(base_buf *out, const char *path, const base_buf *old_text, const base_buf *new_text,
    size_t *ret_added, size_t *ret_removed);

#endif
