/*
 * The commands of kvist: argv -> one row of the table in main.c. A command prints results on stdout and
 * messages on stderr and returns the exit status: 0 fine, 1 the work failed, 2 wrong usage.
 */
#ifndef KVIST_CMD_H
#define KVIST_CMD_H

#include "base/err.h"
#include "cmd/options.h"

enum { CMD_OK = 0, CMD_FAILED = 1, CMD_USAGE = 2 };

/* argv[0] is the command's name. Each handles --help itself by printing its usage text. */
int cmd_bench(int argc, char **argv);
int cmd_bench_cancel(int argc, char **argv);
int cmd_bench_speed(int argc, char **argv);
int cmd_code(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_eval(int argc, char **argv);
int cmd_grammar(int argc, char **argv);
int cmd_kv(int argc, char **argv);
int cmd_log(int argc, char **argv);
int cmd_model(int argc, char **argv);
int cmd_replay(int argc, char **argv);
int cmd_shell(int argc, char **argv); /* the shell, and -p */

/*
 * What main does first: locale, signals, and whether our folders are our own. Not 0: the status to end with,
 * and it is said why. Whoever asks for help gets it all the same.
 */
int cmd_start(int argc, char **argv);
/* And last: output that did not arrive (a full disk) is no success; a reader that went away had enough. */
int cmd_end(int status);
/*
 * What a command without words of its own does first: reads its options. False: it is over, with *ret_status,
 * after --help (usage, more, and the options of model and cache on stdout) or a complaint. *help is what
 * own's "--help" sets; more may be NULL.
 */
bool cmd_begin(int argc, char **argv, common_options *common, const option_row *own, const bool *help,
    const char *usage, const char *more, int *ret_status);
/* The model that the options name, computed as they say; what it has to tell goes to stderr. */
int cmd_open_model(const common_options *o, model **ret, base_err *err);
/* "kvist: sentence" on stderr: a model_options.notice. */
void cmd_notice(void *user, const char *sentence);
/* "kvist: sentence" on stderr; returns CMD_FAILED or, for BASE_E_USAGE, CMD_USAGE. */
int cmd_complain(const base_err *err);

#endif
