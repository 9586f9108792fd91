/*
 * kvist-bench: the experiments, a program beside kvist that is built and not installed. A bench is a function
 * in a file bench_NAME.c and a row of the table in bench/main.c; results are JSON lines on stdout (or --out),
 * messages go to stderr, and the exit status is a command's (cmd/cmd.h).
 *
 *     common/     what several use: documents and shared prefills, answers, result files
 *     recall/     niah, callsite: does the cache bring back what the next question asks for (RepairKV's
 *         protocol); clusters: would a level above the sketches find the rows that weigh most
 *     facts/      structkv, decode: questions about facts in made-up documents (RULER's tasks)
 *     structure/  structure: what compression keeps of code's structure (CodeComp)
 *     sessions/   sessions: recorded tool sessions under each policy (IntentKV); learn: its trained
 *                 residual; serve: what a server's prefix cache finds of them
 *     long/       long: whole agent sessions end to end, as the program ships and under other settings;
 *         endless: facts asked for far behind the model's context; faithful: how far a cache's answers are
 *         from the full cache's
 *     words/      readings: what a request may mean, and how likely the model finds that
 *     cost/       repair, resume, growth, offload, grammar, lookup, log, screen: what a part of the program takes
 */
#ifndef KVIST_BENCH_H
#define KVIST_BENCH_H

#include "cmd/cmd.h"
#include "cmd/options.h"

/* What a bench can be told at most: rows of a session, rounds, MiB. */
enum { BENCH_ROWS = 1 << 24, BENCH_ROUNDS = 1000, BENCH_MIB = 1 << 20 };

/* argv[0] is the bench's name. Each handles --help itself by printing its usage text. */
typedef int bench_fn(int argc, char **argv);
bench_fn bench_callsite, bench_clusters, bench_decode, bench_grammar, bench_growth, bench_niah, bench_offload,
    bench_repair, bench_resume, bench_serve, bench_sessions, bench_structkv, bench_structure;
/* Over the agent, its log and the screen: only where they are built. */
bench_fn bench_endless, bench_faithful, bench_learn, bench_log, bench_long, bench_lookup, bench_readings,
    bench_screen;

/*
 * A bench whose only options are a number ("--turns", from 1 to most) and --json: parses them and runs
 * measure. Returns the exit status.
 */
int bench_count(int argc, char **argv, const char *usage, const char *number, int64_t value, int64_t most,
    int (*measure)(uint32_t n, bool json, base_err *err));

#endif
