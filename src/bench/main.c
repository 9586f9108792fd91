/*
 * kvist-bench NAME: argv -> one row of the table of benches.
 */
#include <stdio.h>
#include <string.h>

#include "base/door.h"
#include "bench/bench.h"

static const struct {
    const char *name, *about;
    bench_fn *run;
} benches[] = {
    {"niah", "does the cache bring back what the next question asks for", bench_niah},
    {"callsite",
        "the same over a repository's code: an identifier hidden in a line, the callers of a function",
        bench_callsite},
    {"clusters", "of the best rows' mass, what a level above the sketches would find", bench_clusters},
    {"structkv", "pruned prefill: what it saves and what it loses", bench_structkv},
    {"decode", "choosing the rows of each step: what it saves and what it loses", bench_decode},
    {"structure", "what compression keeps of code's structure, and what that is worth", bench_structure},
    {"sessions", "recorded tool sessions under each policy: quoted rows kept, equal calls, tokens computed",
        bench_sessions},
    {"serve", "what a server's prefix cache finds of recorded sessions, packed and in place", bench_serve},
    {"repair", "what scoring, planning and applying a repair over 32K rows takes", bench_repair},
    {"resume", "from a saved session's files to the next token", bench_resume},
    {"growth", "what a token, opening and a pass cost in saved sessions of different lengths", bench_growth},
    {"offload", "a step where rows do not fit in memory: the full cache, and by sentences", bench_offload},
    {"grammar", "what following a tool call costs a token", bench_grammar},
#ifdef KVIST_SHELL
    {"learn", "what IntentKV's trained residual is worth on recorded tool sessions", bench_learn},
    {"lookup", "prompt lookup on against off, where an answer copies and where it does not", bench_lookup},
    {"endless", "facts asked for far behind the model's context", bench_endless},
    {"long", "whole agent sessions, as it ships and with the full cache: time, rows, right answers",
        bench_long},
    {"faithful", "how far a cache's answers to facts are from the full cache's, token by token",
        bench_faithful},
    {"log", "size of a long session's log, and the times to open and to replay it", bench_log},
    {"readings", "what requests may mean: the signs of each reading, and how likely the model finds it",
        bench_readings},
    {"screen", "the share of a core that the screen takes while an answer streams", bench_screen},
#endif
};

static void help(FILE *out)
{
    fputs("usage: kvist-bench NAME [options]\n\n"
          "The experiments. `kvist bench` measures this machine and model.\n\n",
        out);
    for (size_t i = 0; i < sizeof benches / sizeof *benches; i++)
        fprintf(out, "  %-9s %s\n", benches[i].name, benches[i].about);
    fputs("\nEach explains itself with --help; docs/results.md has what came out.\n", out);
}

int main(int argc, char **argv)
{
    base_door_open();
    int status = cmd_start(argc, argv);
    if (status) return status;
    if (argc > 1 && !strcmp(argv[argc - 1], "--version")) {
        puts("kvist-bench " KVIST_VERSION);
        return cmd_end(CMD_OK);
    }
    for (size_t i = 0; argc > 1 && i < sizeof benches / sizeof *benches; i++)
        if (!strcmp(argv[1], benches[i].name)) return cmd_end(benches[i].run(argc - 1, argv + 1));
    bool asked = argc > 1 && !strcmp(argv[1], "--help");
    if (argc > 1 && !asked) fprintf(stderr, "kvist-bench: there is no bench \"%s\"\n", argv[1]);
    help(asked ? stdout : stderr);
    return cmd_end(asked ? CMD_OK : CMD_USAGE);
}
