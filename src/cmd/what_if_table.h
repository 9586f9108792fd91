/* What kvist what-if prints of a comparison: the settings of both sides, a turn's numbers, what would have been answered. */
#ifndef KVIST_CMD_WHAT_IF_TABLE_H
#define KVIST_CMD_WHAT_IF_TABLE_H

#include "agent/log/event.h"

/* One event of the comparison (AGENT_EVENT_what_if and its kin; nothing of others), to standard output. */
void what_if_print(const agent_event *e);

#endif
