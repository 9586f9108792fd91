/* Verbs of kvist log that have their own file. */
#ifndef KVIST_CMD_LOG_H
#define KVIST_CMD_LOG_H

#include "agent/log/log.h"

/* One JSON line a decision: the history tokens that the next tool calls quote (cmd_log_labels.c). */
int cmd_log_labels(agent_log *log, const char *id, base_err *err);

#endif
