/* kvist replay and kvist what-if have each other's other half. */
#ifndef KVIST_CMD_WHAT_IF_H
#define KVIST_CMD_WHAT_IF_H

#include "base/err.h"

/* kvist replay ID --what-if OPTIONS: computed as kvist what-if does, then shown. */
int cmd_what_if_shown(int argc, char **argv);
/* The screen of a session or what-if; needs a terminal. */
int cmd_replay_show(const char *id, base_err *err);

#endif
