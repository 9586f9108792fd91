/*
 * The commands of kvist: argv -> one row of the table in main.c. A command prints results on stdout and
 * messages on stderr and returns an exit status.
 */
#ifndef KVIST_CMD_H
#define KVIST_CMD_H

#include "base/err.h"
#include "cmd/options.h"

/* Exit statuses, as README and the man page list them; X(identifier, status, what it means) */
#define CMD_STATUSES(X)                                                                                      \
    X(OK, 0, "done")                                                                                         \
    X(FAILED, 1, "the work failed")                                                                          \
    X(USAGE, 2, "wrong usage")                                                                               \
    X(DENIED, 3, "something was not approved")                                                               \
    X(LIMIT, 4, "the context or another limit is reached")                                                   \
    X(NO_ENGINE, 5, "no model or engine")                                                                    \
    X(INTERRUPTED, 130, "interrupted")
#define CMD_STATUS_ENUM(id, status, meaning) CMD_##id = status,
enum { CMD_STATUSES(CMD_STATUS_ENUM) };

/* argv[0] is the command's name. Each handles --help itself by printing its usage text. */
int cmd_acp(int argc, char **argv); /* an editor drives it */
int cmd_approvals(int argc, char **argv);
int cmd_bench(int argc, char **argv);
void cmd_bench_describe(void); /* its benches as JSON objects of main's table, commas between */
int cmd_bench_cancel(int argc, char **argv);
int cmd_bench_speed(int argc, char **argv);
int cmd_code(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_eval(int argc, char **argv);
int cmd_events(int argc, char **argv);
int cmd_grammar(int argc, char **argv);
int cmd_kv(int argc, char **argv);
int cmd_learn(int argc, char **argv);
int cmd_log(int argc, char **argv);
int cmd_model(int argc, char **argv);
int cmd_replay(int argc, char **argv);
int cmd_shell(int argc, char **argv); /* the shell, and -p */
int cmd_what_if(int argc, char **argv);

/*
 * What main does first: locale, signals, and whether our folders are our own. Not 0: the status to end with,
 * and it is said why. Whoever asks for help gets it all the same.
 */
int cmd_start(int argc, char **argv);
/* And last: output that did not arrive (a full disk) is no success; a reader that went away had enough. */
int cmd_end(int status);
/* What a command takes beside its options. */
typedef struct cmd_words {
    const char *usage; /* "usage: ..." and what a person should know before the options */
    const char *more;  /* behind the options; NULL: nothing */
    const char **rest; /* [argc], gets the words that are no options; NULL: none are taken */
    uint32_t *n_rest;
    /* what the user's configuration says of the model counts where argv does not say it */
    bool is_configured;
} cmd_words;
/*
 * What a command does first: reads its options. False: it is over, with *ret_status, after --help, after
 * --describe (the same as one JSON object, for what is made from it) or after a complaint. common NULL: model
 * and cache options are unknown ones.
 */
bool cmd_begin(int argc, char **argv, common_options *common, const option_row *own, const cmd_words *words,
    int *ret_status);
/* A word behind a command's name, as `get` in `kvist model get NAME`. Tables of them end with an empty row. */
typedef struct cmd_verb {
    const char *name;
    const char
        *takes; /* what its one word is, as a person says it ("one file or name"); NULL: it takes none */
    /* word: what stands behind the verb, NULL where it takes none; user: what the command keeps */
    int (*run)(void *user, const char *word, base_err *err);
    bool is_default; /* what the command does without a word */
} cmd_verb;
/*
 * The row that words[0] names, where the words behind it are as many as it takes; NULL and a sentence in err
 * (BASE_E_USAGE) otherwise. command: "kvist model".
 */
const cmd_verb *cmd_find_verb(
    const char *command, const cmd_verb *verbs, const char *const *words, uint32_t n_words, base_err *err);
/* Finds it, and runs it. */
int cmd_run_verb(const char *command, const cmd_verb *verbs, const char *const *words, uint32_t n_words,
    void *user, base_err *err);
/* The model that the options name, computed as they say; what it has to tell goes to stderr. */
int cmd_open_model(const common_options *o, model **ret, base_err *err);
/* The same of a file: whatever is wrong with it is BASE_E_ENGINE. */
int cmd_open_model_file(const char *path, const model_options *options, model **ret, base_err *err);
/* "kvist: sentence" on stderr: a model_options.notice. */
void cmd_notice(void *user, const char *sentence);
/* "kvist: sentence" on stderr; returns the status that the code stands for. */
int cmd_complain(const base_err *err);

#endif
