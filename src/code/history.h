/*
 * What was said of earlier changes, and which files they touched: a request in plain words is about files whose changes were told in
 * such words. src/code knows no commits; whoever does hands over their subjects (src/tools/tree/history.c). Built once, then read by
 * any thread.
 */
#ifndef KVIST_CODE_HISTORY_H
#define KVIST_CODE_HISTORY_H

#include <stdint.h>

typedef struct code_history code_history;

code_history *code_history_new(void);
void code_history_free(code_history *h);
/* One change: its subject, and the paths that it touched. */
void code_history_add(code_history *h, const char *subject, const char *const *paths, uint32_t n_paths);
uint32_t code_history_n(const code_history *h); /* changes */

/* How a file's changes were told, by the words of a request. */
typedef struct code_told {
    double best; /* 0 to 1: how much of the request the likest subject says, rare words counting more */
    double sum;  /* of all its subjects, each over the root of the files that its change touched */
} code_told;

/* By path: code_history_path. The caller frees; NULL: no word of the request was ever said. */
code_told *code_history_recall(const code_history *h, const char *request);
uint32_t code_history_path(const code_history *h, const char *path); /* UINT32_MAX: nothing touched it */

#endif
