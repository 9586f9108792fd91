/* kvist acp: an editor drives kvist on its standard streams (src/acp). */
#include <stdlib.h>
#include <string.h>

#include "acp/acp.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/shell_setup.h"

static const char usage[] =
    "usage: kvist acp [options]\n\n"
    "Speaks the Agent Client Protocol (version 1) on standard input and output, for Zed, JetBrains, Neovim,\n"
    "Emacs and other editors that start agents. The options "
    "are the shell's; the tree is each session's own.\n";

typedef struct command_line {
    int argc;
    char **argv;
    shell_setup setup; /* of the session that is open */
} command_line;

/* The same options with the session's tree, whose own configuration counts. */
static int prepare(void *user, const char *cwd, agent_session_options *ret, base_err *err)
{
    static char dir[] = "--dir";
    command_line *c = user;
    char **words = base_xcalloc((size_t)c->argc + 3, sizeof *words);
    for (int i = 0; i < c->argc; i++) words[i] = c->argv[i];
    words[c->argc] = dir;
    words[c->argc + 1] = (char *)(uintptr_t)cwd;
    int status;
    shell_setup_free(&c->setup);
    const bool is_made = shell_setup_make(&c->setup, c->argc + 2, words, usage, &status);
    free(words);
    if (!is_made)
        return base_fail(err, BASE_E_ENGINE, "no session can be opened on %s: standard error says why", cwd);
    *ret = c->setup.session;
    return BASE_OK;
}

int cmd_acp(int argc, char **argv)
{
    command_line c = {.argc = argc, .argv = argv};
    base_err err = {0};
    int status;
    if (!shell_setup_make(&c.setup, argc, argv, usage, &status)) goto out;
    status = CMD_OK;
    if (c.setup.options.prompt || c.setup.options.resume || c.setup.options.linear)
        status = cmd_complain(&(base_err){
            BASE_E_USAGE, 0, "acp takes no -p, --resume and --linear: the editor says what to do"});
    else if (acp_run(&(acp_options){prepare, &c, KVIST_VERSION}, &err))
        status = cmd_complain(&err);
out:
    shell_setup_free(&c.setup);
    return status;
}
