/* A logged session's events as what a residual is trained on (src/learn). */
#ifndef KVIST_LOG_HISTORY_H
#define KVIST_LOG_HISTORY_H

#include "agent/log/log.h"
#include "learn/history.h"

typedef struct log_history {
    learn_history history;
    char model_hash[65]; /* "" where the log says none */
} log_history;

int log_history_read(agent_log *log, const char *id, log_history *ret, base_err *err); /* free in any case */
void log_history_free(log_history *h);

#endif
