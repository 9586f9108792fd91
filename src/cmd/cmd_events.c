/* kvist events: what a script may rely on in --json and in `kvist log export`. */
#include <stdio.h>

#include "agent/log/event.h"
#include "cmd/cmd.h"

static const char usage[] = "usage: kvist events --schema\n\n"
                            "The events of --json and `kvist log export` as one JSON Schema.\n";

int cmd_events(int argc, char **argv)
{
    bool schema = false;
    const option_row own[] = {{"--schema", OPTION_FLAG, &schema, NULL, "prints it"}, {0}};
    int status;
    if (!cmd_begin(argc, argv, NULL, own, &(cmd_words){.usage = usage}, &status)) return status;
    if (!schema) {
        fputs(usage, stderr);
        return CMD_USAGE;
    }
    base_buf out = {0};
    agent_event_schema(&out);
    puts(out.data);
    base_buf_free(&out);
    return CMD_OK;
}
