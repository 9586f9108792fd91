/*
 * What the shell, -p and acp are started with: options and configuration files to a session that can be
 * opened.
 */
#ifndef KVIST_CMD_SHELL_SETUP_H
#define KVIST_CMD_SHELL_SETUP_H

#include "agent/start.h"
#include "cmd/config.h"
#include "cmd/endpoint.h"
#include "cmd/options.h"

typedef struct shell_options {
    common_options common;
    const char *prompt, *dir, *mode, *resume, *context, *fake_script, *input, *fork, *notify, *test, *lint,
        *agent, *schema;
    bool json, version, ephemeral, linear;
    int64_t max_tokens, max_thought, max_steps, max_turns, tries, notify_after;
    option_list allow_read, ignore;
    config config;     /* what files said; keeps the values */
    base_buf settings; /* what /settings shows */
    base_buf schema_text;
    base_schema *parsed_schema;
    endpoint_words endpoint;
} shell_options;

typedef struct shell_setup {
    shell_options options;
    agent_session_options session; /* ready to be opened; points into the rest */
    char **words, **allowed, *model_path;
    endpoint_choice endpoint;
} shell_setup;

/*
 * argv as a command gets it; usage as cmd_words has it. False: it is over, with *ret_status, after help or a
 * complaint. Free it either way.
 */
bool shell_setup_make(shell_setup *s, int argc, char **argv, const char *usage, int *ret_status);
void shell_setup_free(shell_setup *s);

#endif
