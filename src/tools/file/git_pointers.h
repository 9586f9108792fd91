/* The lines by which a working tree says where its repository lies, and a repository what it shares. */
#ifndef KVIST_TOOLS_FILE_GIT_POINTERS_H
#define KVIST_TOOLS_FILE_GIT_POINTERS_H

/* The folder that the ".git" file in this one names; NULL: it is none. The caller frees. */
char *tool__git_pointed_to(const char *at);
/* The folder that a worktree's own shares with others; NULL: it shares none. The caller frees. */
char *tool__git_shared_by(const char *git_folder);

#endif
