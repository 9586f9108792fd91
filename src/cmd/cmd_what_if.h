/* What kvist replay needs of kvist what-if. */
#ifndef KVIST_CMD_WHAT_IF_H
#define KVIST_CMD_WHAT_IF_H

/*
 * Computes as kvist what-if does and prints no table. Returns the command's exit status; *ret_id: the session that holds both
 * sides, the caller frees; NULL: nothing was computed (--help, or it failed and said why).
 */
int cmd_what_if_silent(int argc, char **argv, char **ret_id);

#endif
