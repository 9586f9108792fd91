/* What a confined command finds in its home in the place of the person's. */
#ifndef KVIST_TOOLS_CONFINE_SANDBOX_HOME_H
#define KVIST_TOOLS_CONFINE_SANDBOX_HOME_H

/*
 * A git configuration with what commits need (name, address) and settings that change how git reads and shows a tree: a list of
 * allowed keys, because the rest may hold passwords or name programs. `home` may be NULL; "" when there is nothing. The caller frees.
 */
char *tool__home_git_config(const char *home);

#endif
