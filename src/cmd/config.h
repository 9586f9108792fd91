/*
 * What configuration files give: the user's ($XDG_CONFIG_HOME/kvist/config) and the project's (.kvist/config
 * in the tree, which may only tighten). The command line comes first, then the environment, the project, the
 * user. Keys are the options' names; a wrong line of the user's file is an error with file and line, one of
 * the project's is told and passed by: nobody's tree keeps kvist from starting.
 */
#ifndef KVIST_CMD_CONFIG_H
#define KVIST_CMD_CONFIG_H

#include "base/buf.h"
#include "cmd/options.h"

typedef struct config_setting {
    char *key, *value;
    char *source; /* "FILE:LINE" as a person would write it */
} config_setting;

/* Keeps the values that the options point to. All zero: nothing is configured. */
typedef struct config {
    config_setting *settings; /* in the order in which they were put */
    size_t n, cap;
    base_buf notes; /* sentences about the project's file, a line each */
} config;

/*
 * Puts the user's settings that argv does not give. all: as options_put_setting takes it. A file that is not
 * there is none.
 */
int config_read_user(
    config *c, int argc, char **argv, common_options *common, const option_row *own, bool all, base_err *err);
/* The project's, from its file's text; shown: what the file is called where it is told of. */
void config_read_project(config *c, int argc, char **argv, common_options *common, const option_row *own,
    const char *shown, const char *text, size_t n);
void config_free(config *c); /* frees the contents; the options that point to them are void then */

/* Where the setting that counts is written ("FILE:LINE"); NULL: in no file. Lives as long as the configuration. */
const char *config_source(const config *c, const char *key);

/* "name\tvalue\tsource" a line, for every setting that can be given. */
void config_list(const config *c, int argc, char **argv, const option_row *own, base_buf *out);

#endif
