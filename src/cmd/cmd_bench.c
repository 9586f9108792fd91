/*
 * kvist bench: what a person measures about his own machine and model. The experiments are another program,
 * kvist-bench (src/bench).
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/edits.h"
#include "cmd/cmd.h"

static const struct {
    const char *name, *about;
    int (*run)(int argc, char **argv);
} benches[] = {
    {"speed", "prefill and decode, beside the memory bandwidth read in the same run", cmd_bench_speed},
    {"cancel", "milliseconds from Esc until the engine has stopped", cmd_bench_cancel},
};

/* Were here until the experiments had a program of their own. */
static const char *const moved[] = {"niah", "callsite", "structkv", "decode", "structure", "sessions",
    "repair", "resume", "grammar", "lookup", "log", "screen"};

void cmd_bench_describe(void)
{
    for (size_t i = 0; i < sizeof benches / sizeof *benches; i++)
        printf("%s{\"name\":\"bench %s\",\"about\":\"%s\"}", i ? "," : "", benches[i].name, benches[i].about);
}

int cmd_bench(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof benches / sizeof *benches; i++)
        if (!strcmp(argv[1], benches[i].name)) return benches[i].run(argc - 1, argv + 1);
    for (size_t i = 0; argc > 1 && i < sizeof moved / sizeof *moved; i++)
        if (!strcmp(argv[1], moved[i])) {
            fprintf(stderr,
                "kvist: this experiment is now `kvist-bench %s`: a program that is built beside kvist "
                "(src/bench/kvist-bench in "
                "the build folder) and not installed\n",
                moved[i]);
            return CMD_USAGE;
        }
    bool help = argc > 1 && !strcmp(argv[1], "--help");
    FILE *out = help ? stdout : stderr;
    if (argc > 1 && !help) {
        base_guess guess = base_guess_begin(argv[1]);
        for (size_t i = 0; i < sizeof benches / sizeof *benches; i++)
            base_guess_offer(&guess, benches[i].name);
        fprintf(out, "kvist: there is no bench \"%s\"%s\n", argv[1], base_guess_tell(&guess, ""));
    }
    fputs("usage: kvist bench NAME [options]\n\n", out);
    for (size_t i = 0; i < sizeof benches / sizeof *benches; i++)
        fprintf(out, "  %-9s %s\n", benches[i].name, benches[i].about);
    return help ? CMD_OK : CMD_USAGE;
}
