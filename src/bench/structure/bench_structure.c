/*
 * kvist-bench structure: what compression keeps of code's structure, and what that is worth (docs/kv.md,
 * "Structure"; docs/papers.md, CodeComp).
 *
 * Tasks over real functions, each a chunk of its own: `score` (how much structure stays), `bug` (which
 * function holds a wrong line, and how it reads now), `complete` (a line that calls another function),
 * `select` (is what it calls among the chosen ones). Here are the options and the drawing of samples;
 * bench/structure/sample.h says how one is measured. One JSON line a question, cap and condition.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "bench/bench.h"
#include "bench/common/result_file.h"
#include "bench/structure/programs.h"
#include "bench/structure/sample.h"
#include "kv/repair/heads.h"
#include "kv/prune/pivot.h"

static const char usage[] =
    "usage: kvist-bench structure --model M [--task score|bug|complete|select] [options] [FOLDER]...\n"
    "\n"
    "  --task NAME     score: share of structure kept; bug: find a wrong line; complete: write a line;\n"
    "                  select: which functions go into the prompt of complete (score)\n"
    "  FOLDER          source text, at most 8 of them\n"
    "  --quixbugs DIR  the programs of QuixBugs, for bug\n"
    "  --debugbench DIR\n"
    "                  those of DebugBench with one mistake, "
    "for bug: the folder benchmark of its repository\n"
    "  --samples N     how many questions of each source (8)\n"
    "  --chunks N      functions in a prompt, for bug and complete: as many questions share it (4)\n"
    "  --among N       ... and about as many tokens of other files between them, for bug (0)\n"
    "  --tokens N      length of a prompt, for score (2000)\n"
    "  --caps LIST     shares of the prompt's rows that stay (.4,.6)\n"
    "  --conditions W  main, all, or names with commas between them (main)\n"
    "  --seconds N     begin no sample after so long (no limit)\n"
    "  --seed N        another draw (1)\n"
    "  --out FILE      result lines go to a file; its sums are printed at the end\n"
    "  --resume        ... which holds some already: they are left out\n"
    "  --summary FILE  only sum up a file\n"
    "  --list          name the conditions\n"
    "\n";

enum { MOST_SOURCES = 8, MOST_POOLS = MOST_SOURCES + 2, MOST_LINES = 256 << 20, BYTES_A_TOKEN = 3 };

typedef struct bench {
    common_options common;
    structure_run run;
    const char *task_word, *sources[MOST_SOURCES + 1], *quixbugs, *debugbench, *caps_text, *out_path,
        *summary;
    int64_t samples, chunks, among, tokens, seconds;
    bool list, resume;
    uint32_t n_sources;
    structure_results done; /* the lines of --out when it was opened */
} bench;

/* Functions with mistakes (their own, or planted), other text among them, and what is asked. files: whose other text. */
static bool make_bugs(bench *b, bench_pool *pool, bool has_mistakes, const bench_pool *files, bench_sample *s)
{
    const bench_accept accept = {structure_accept_name, b->run.model};
    const uint64_t seed = (uint64_t)b->run.seed;
    const uint32_t n_chunks = (uint32_t)b->chunks;
    if (!(has_mistakes ? bench_sample_programs : bench_sample_mutate)(s, pool, seed, n_chunks, &accept))
        return false;
    if (b->among) bench_sample_surround(s, files, seed, (size_t)b->among * BYTES_A_TOKEN);
    bench_sample_ask(s);
    return true;
}

static bool make_sample(
    bench *b, bench_pool *pool, bool has_mistakes, const bench_pool *files, bench_sample *s)
{
    const uint64_t seed = (uint64_t)b->run.seed;
    const uint32_t n_chunks = (uint32_t)b->chunks;
    switch (b->run.task) {
    case STRUCTURE_BUG: return make_bugs(b, pool, has_mistakes, files, s);
    case STRUCTURE_COMPLETE:
    case STRUCTURE_SELECT: return bench_sample_complete(s, pool, seed, n_chunks);
    default: return bench_sample_read(s, pool, seed, (size_t)b->tokens * BYTES_A_TOKEN);
    }
}

/* Samples of all sources in turn, so that a run that is cut short has some of each. */
static int run_samples(bench *b, bench_pool *pools, uint32_t n_pools, base_err *err)
{
    const uint64_t start = base_clock_ns();
    uint32_t asked[MOST_POOLS] = {0}, number[MOST_POOLS] = {0};
    int r = 0;
    for (bool more = true; more && !r;) {
        more = false;
        for (uint32_t i = 0; i < n_pools && !r; i++) {
            bench_sample s;
            if (asked[i] >= b->samples ||
                !make_sample(b, &pools[i], i >= b->n_sources, &pools[i < b->n_sources ? i : 0], &s))
                continue;
            more = true;
            snprintf(s.id, sizeof s.id, "%.40s-%u", pools[i].source, number[i]++);
            if (b->samples - asked[i] < s.n_questions) s.n_questions = (uint32_t)(b->samples - asked[i]);
            asked[i] += s.n_questions;
            const bool is_late = b->seconds && (double)(base_clock_ns() - start) / 1e9 > (double)b->seconds;
            if (!is_late) r = structure_run_sample(&b->run, &s, err);
            bench_sample_free(&s);
            if (is_late) return 0;
        }
    }
    for (uint32_t i = 0; i < n_pools && !r; i++)
        fprintf(stderr, "%s: %u questions in %u prompts\n", pools[i].source, asked[i], number[i]);
    return r;
}

static int print_summary(const char *path, base_err *err)
{
    base_buf lines = {0};
    structure_results all = {.n = 0};
    const int r = base_fs_read(path, MOST_LINES, &lines, err);
    if (!r) structure_results_read(&all, &lines);
    structure_results_print(&all, stdout);
    structure_results_free(&all);
    base_buf_free(&lines);
    return r;
}

static int run(bench *b, base_err *err)
{
    bench_pool pools[MOST_POOLS] = {{.n = 0}};
    uint32_t n_pools = 0;
    base_buf old = {0};
    b->run.grammars = code_grammars_open();
    b->run.heads = kv_heads_path(b->run.info->hash);
    b->run.pivot = kv_pivot_path(b->run.info->hash);
    int r = bench_open_out(&b->run.out, b->out_path, b->resume, &old, err);
    structure_results_read(&b->done, &old);
    b->run.done = &b->done;
    for (uint32_t i = 0; i < b->n_sources && !r; i++, n_pools += !r)
        r = bench_pool_load(&pools[i], b->run.grammars, b->sources[i], err);
    if (!r && b->among && !b->n_sources)
        r = base_fail(err, BASE_E_USAGE, "--among takes its text from a FOLDER, and none is named");
    if (!r && b->quixbugs && b->run.task == STRUCTURE_BUG) {
        r = bench_quixbugs_load(&pools[n_pools], b->quixbugs, err);
        n_pools += !r;
    }
    if (!r && b->debugbench && b->run.task == STRUCTURE_BUG) {
        r = bench_debugbench_load(&pools[n_pools], b->run.grammars, b->debugbench, err);
        n_pools += !r;
    }
    if (!r) r = run_samples(b, pools, n_pools, err);
    for (uint32_t i = 0; i < n_pools; i++) bench_pool_free(&pools[i]);
    if (b->out_path && b->run.out) {
        fclose(b->run.out);
        if (!r) r = print_summary(b->out_path, err);
    }
    structure_results_free(&b->done);
    base_buf_free(&old);
    code_grammars_close(b->run.grammars);
    free(b->run.heads);
    free(b->run.pivot);
    return r;
}

static int check(bench *b, base_err *err)
{
    structure_run *run = &b->run;
    run->task = N_STRUCTURE_TASKS;
    for (size_t i = 0; i < N_STRUCTURE_TASKS; i++)
        if (!strcmp(b->task_word, structure_tasks[i])) run->task = (structure_task)i;
    if (run->task == N_STRUCTURE_TASKS)
        return base_fail(
            err, BASE_E_USAGE, "--task is score, bug, complete or select, not '%s'", b->task_word);
    for (const char *at = b->caps_text; *at && run->n_caps < STRUCTURE_CAPS;) {
        char *end;
        const double cap = strtod(at, &end);
        if (end == at || !(cap > 0 && cap <= 1) || (*end && *end != ','))
            return base_fail(err, BASE_E_USAGE, "--caps takes shares such as .2,.4, not '%s'", b->caps_text);
        run->caps[run->n_caps++] = cap;
        at = *end ? end + 1 : end;
    }
    while (b->sources[b->n_sources]) b->n_sources++;
    if (b->samples < 1 || b->samples > 100000 || b->chunks < 2 || b->chunks > BENCH_CHUNKS ||
        b->tokens < 300 || b->tokens > 6000 || b->among < 0 || b->among > 16000 || b->seconds < 0)
        return base_fail(err, BASE_E_USAGE,
            "--samples is 1 to 100000, --chunks 2 to %d, --tokens 300 to 6000, --among at most 16000",
            BENCH_CHUNKS);
    if (!b->n_sources && !b->quixbugs && !b->debugbench)
        return base_fail(err, BASE_E_USAGE,
            "bench structure needs folders of source text or, for bug, --quixbugs DIR or --debugbench DIR");
    return 0;
}

static void list_conditions(void)
{
    for (const structure_condition *c = structure_conditions; c->name; c++)
        printf("%-26s %s %s\n", c->name, c->policy, c->set ? c->set : "");
}

int bench_structure(int argc, char **argv)
{
    bench b = {.common = COMMON_OPTIONS_DEFAULTS,
        .run = {.wanted = "main", .seed = 1},
        .task_word = "score",
        .caps_text = ".4,.6",
        .samples = 8,
        .chunks = 4,
        .tokens = 2000};
    const option_row own[] = {
        {"--task", OPTION_TEXT, &b.task_word},
        {"--quixbugs", OPTION_TEXT, &b.quixbugs},
        {"--debugbench", OPTION_TEXT, &b.debugbench},
        {"--samples", OPTION_INTEGER, &b.samples},
        {"--chunks", OPTION_INTEGER, &b.chunks},
        {"--among", OPTION_INTEGER, &b.among},
        {"--tokens", OPTION_INTEGER, &b.tokens},
        {"--caps", OPTION_TEXT, &b.caps_text},
        {"--conditions", OPTION_TEXT, &b.run.wanted},
        {"--seconds", OPTION_INTEGER, &b.seconds},
        {"--seed", OPTION_INTEGER, &b.run.seed},
        {"--out", OPTION_TEXT, &b.out_path},
        {"--resume", OPTION_FLAG, &b.resume},
        {"--summary", OPTION_TEXT, &b.summary},
        {"--list", OPTION_FLAG, &b.list},
        {.name = NULL},
    };
    const char **rest = base_xcalloc((size_t)argc, sizeof *rest);
    uint32_t n_rest = 0;
    base_err err = {0};
    int r;
    bool goes_on = cmd_begin(
        argc, argv, &b.common, own, &(cmd_words){.usage = usage, .rest = rest, .n_rest = &n_rest}, &r);
    for (uint32_t i = 0; i < n_rest && i < MOST_SOURCES; i++) b.sources[i] = rest[i];
    free(rest);
    if (!goes_on) return r;
    if (b.list) {
        list_conditions();
        return CMD_OK;
    }
    if (!r && b.summary) return print_summary(b.summary, &err) ? cmd_complain(&err) : CMD_OK;
    if (!r) r = check(&b, &err);
    if (!r) r = cmd_open_model(&b.common, &b.run.model, &err);
    if (r) return cmd_complain(&err);
    b.run.info = model_get_info(b.run.model);
    r = run(&b, &err);
    model_close(b.run.model);
    return r ? cmd_complain(&err) : CMD_OK;
}
