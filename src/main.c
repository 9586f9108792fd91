/*
 * argv -> one row of the command table. What is no command's name is the shell: a folder, or options of its own.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/door.h"
#include "base/edits.h"
#include "cmd/cmd.h"
#ifdef KVIST_SHELL
#include "tui/tui.h"
#endif

static const struct {
    const char *name, *about;
    int (*run)(int argc, char **argv);
} commands[] = {
#ifdef KVIST_SHELL
    {"acp", "for editors: the Agent Client Protocol on standard streams", cmd_acp},
    {"approvals", "commands that you allowed for good: list, allow, remove", cmd_approvals},
    {"learn", "experiment: trains, on your sessions, which rows intentkv keeps", cmd_learn},
    {"log", "your sessions: list, show, search, export, delete", cmd_log},
    {"events", "the JSON Schema of what --json and log export print", cmd_events},
    {"replay", "shows a session's screens again, without a model", cmd_replay},
    {"what-if", "computes a session again with other settings and compares", cmd_what_if},
#endif
    {"model", "models: list them, fetch one, look into a file, check it", cmd_model},
    {"eval", "token ids and log-probabilities of a text, as JSON lines", cmd_eval},
    {"kv", "the cache's policies and parameters", cmd_kv},
    {"bench", "speed on this machine, and how soon Esc stops it", cmd_bench},
    {"code", "what kvist sees in a source file: definitions and structure", cmd_code},
    {"grammar", "the syntax grammars that were found", cmd_grammar},
    {"doctor", "what this machine has and what is in force", cmd_doctor},
};

static int version(void)
{
    fputs("kvist " KVIST_VERSION "\ncompiler: " __VERSION__ "\nshell: "
#ifdef KVIST_SHELL
          "yes"
#else
          "no (-Dshell=disabled)"
#endif
          "\ncuda: "
#ifdef KVIST_CUDA
          "yes"
#else
          "no (-Dcuda=disabled)"
#endif
          "\n",
        stdout);
    return CMD_OK;
}

static int help(void)
{
    fputs("kvist: a terminal coding agent whose memory you can see and correct\n\n", stdout);
#ifdef KVIST_SHELL
    fputs("  kvist [DIR] [--resume [ID]]   the shell on the git tree DIR (default: here)\n"
          "  kvist -p TEXT [--json]        one request without a screen\n",
        stdout);
#else
    fputs("This build has the engine only (-Dshell=disabled).\n\n", stdout);
#endif
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        printf("  kvist %-9s %s\n", commands[i].name, commands[i].about);
    fputs("\nEvery command explains itself with --help, or kvist help COMMAND.\n", stdout);
    return CMD_OK;
}

/* The tables of commands and exit statuses as one JSON object, for what is made from them (scripts/make-manual). */
static int describe(void)
{
#define STATUS(id, status, meaning) "{\"status\":" #status ",\"means\":\"" meaning "\"},"
    static const char statuses[] = CMD_STATUSES(STATUS);
#undef STATUS
    printf("{\"version\":\"" KVIST_VERSION "\",\"statuses\":[%.*s],\"commands\":[", (int)sizeof statuses - 2,
        statuses);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (commands[i].run == cmd_bench)
            cmd_bench_describe();
        else
            printf("{\"name\":\"%s\",\"about\":\"%s\"}", commands[i].name, commands[i].about);
        if (i + 1 < sizeof commands / sizeof *commands) putchar(',');
    }
    putchar(']');
#ifdef KVIST_SHELL
    base_buf shell = {0};
    tui_describe(&shell);
    printf(",%s", shell.data);
    base_buf_free(&shell);
#endif
    puts("}");
    return CMD_OK;
}

static int unknown_command(const char *word, const char *before, const char *behind)
{
    base_guess guess = base_guess_begin(word);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        base_guess_offer(&guess, commands[i].name);
    base_guess_offer(&guess, "help");
    fprintf(stderr, "kvist: %s%s%s%s\n", before, word, behind,
        base_guess_tell(&guess, " (kvist help lists the commands)"));
    return CMD_USAGE;
}

#ifdef KVIST_SHELL
/* What is neither a command, an option nor a folder is most likely a mistyped command. */
static bool is_mistyped(const char *word)
{
    struct stat st;
    return word[0] != '-' && !strchr(word, '/') && (stat(word, &st) || !S_ISDIR(st.st_mode));
}
#endif

/* `kvist help bench speed` is `kvist bench speed --help`. */
static int help_of(int argc, char **argv)
{
    static char long_help[] = "--help";
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(argv[0], commands[i].name)) continue;
        char *words[4] = {0};
        int n = 0;
        for (; n < argc && n < 2; n++) words[n] = argv[n];
        words[n++] = long_help;
        return commands[i].run(n, words);
    }
    return unknown_command(argv[0], "there is no command ", "");
}

int main(int argc, char **argv)
{
    base_door_open();
    int status = cmd_start(argc, argv);
    if (status) return status;
    if (argc > 1) {
        for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
            static char long_help[] = "--help";
            if (strcmp(argv[1], commands[i].name)) continue;
            if (!strcmp(argv[argc - 1], "--version")) return version();
            if (!strcmp(argv[argc - 1], "-h")) argv[argc - 1] = long_help;
            return cmd_end(commands[i].run(argc - 1, argv + 1));
        }
        if (!strcmp(argv[1], "--version")) return version();
        if (!strcmp(argv[1], "help") && argc > 2 && !strcmp(argv[2], "--describe"))
            return cmd_end(describe());
        if (!strcmp(argv[1], "help") && argc > 2) return cmd_end(help_of(argc - 2, argv + 2));
        if (!strcmp(argv[1], "help") || !strcmp(argv[1], "-h")) return help();
    }
#ifdef KVIST_SHELL
    if (argc == 2 && !strcmp(argv[1], "--help")) help();
    if (argc > 1 && is_mistyped(argv[1])) return unknown_command(argv[1], "", " is no command and no folder");
    return cmd_end(cmd_shell(argc, argv));
#else
    if (argc > 1 && !strcmp(argv[1], "--help")) return help();
    if (argc > 1) return unknown_command(argv[1], "this build, the engine alone, has no command ", "");
    fputs("kvist: this build has the engine only (-Dshell=disabled); `kvist help` lists its commands\n",
        stderr);
    return CMD_USAGE;
#endif
}
