/*
 * The files below a folder, for @ completion, when nobody gives a better list. UI thread; bounded, so that a
 * huge tree costs some tens of milliseconds and not more.
 */
#ifndef KVIST_TUI_PATHS_H
#define KVIST_TUI_PATHS_H

/* Relative paths, the shallow first, NULL-terminated; the caller frees each and the array. */
char **tui_paths_below(const char *root);
/* One list behind the other; both are taken over and may be NULL. */
char **tui_paths_join(char **paths, char **more);

#endif
