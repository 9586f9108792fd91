/* Verbs of kvist log that have their own file. */
#ifndef KVIST_CMD_LOG_H
#define KVIST_CMD_LOG_H

#include "agent/log/log.h"

/* One JSON line a decision: the history tokens that the next tool calls quote (cmd_log_labels.c). */
int cmd_log_labels(agent_log *log, const char *id, base_err *err);
/* Prints the rows that each lane held at the end of a turn; 0: of the last one (cmd_log_kv.c). */
int cmd_log_kv(agent_log *log, const char *id, uint32_t turn, bool json, base_err *err);

#endif
