/*
 * kvist bench: a row an experiment. bench/cmd_speed.c is the speed of the engine; what else is measured has its own file.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cmd/cmd.h"

static const struct {
    const char *name, *about;
    int (*run)(int argc, char **argv);
} benches[] = {
    {"speed", "prefill and decode, beside the memory bandwidth read in the same run", cmd_bench_speed},
    {"cancel", "milliseconds from Esc until the engine has stopped", cmd_bench_cancel},
    {"structure", "what compression keeps of code's structure, and what that is worth", cmd_bench_structure},
    {"niah", "does the cache bring back what the next question asks for", cmd_bench_niah},
    {"structkv", "pruned prefill: what it saves and what it loses", cmd_bench_structkv},
    {"callsite",
        "the same over a repository's code: an identifier hidden in a line, the callers of a function",
        cmd_bench_callsite},
    {"decode", "choosing the rows of each step: what it saves and what it loses", cmd_bench_decode},
    {"sessions", "recorded tool sessions under each policy: quoted rows kept, equal calls, tokens computed",
        cmd_bench_sessions},
    {"repair", "what scoring, planning and applying a repair over 32K rows takes", cmd_bench_repair},
    {"resume", "from a saved session's files to the next token", cmd_bench_resume},
    {"grammar", "what following a tool call costs a token", cmd_bench_grammar},
#ifdef KVIST_SHELL
    {"lookup", "prompt lookup on against off, where an answer copies and where it does not",
        cmd_bench_lookup},
    {"log", "size of a long session's log, and the times to open and to replay it", cmd_bench_log},
    {"screen", "the share of a core that the screen takes while an answer streams", cmd_bench_screen},
#endif
};

int cmd_bench(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof benches / sizeof *benches; i++)
        if (!strcmp(argv[1], benches[i].name)) return benches[i].run(argc - 1, argv + 1);
    bool help = argc > 1 && !strcmp(argv[1], "--help");
    FILE *out = help ? stdout : stderr;
    if (argc > 1 && !help) fprintf(out, "kvist: there is no bench \"%s\"\n", argv[1]);
    fputs("usage: kvist bench NAME [options]\n\n", out);
    for (size_t i = 0; i < sizeof benches / sizeof *benches; i++)
        fprintf(out, "  %-9s %s\n", benches[i].name, benches[i].about);
    return help ? CMD_OK : CMD_USAGE;
}
