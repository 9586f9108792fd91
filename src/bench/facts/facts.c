/* See bench/facts/facts.h. */
#include "bench/facts/facts.h"

#include "bench/common/corpus.h"
#include "bench/common/result_file.h"
#include "bench/facts/ruler.h"

static int run(facts *f, const facts_bench *bench, void *user, base_err *err)
{
    int r = bench->check(user, err);
    if (!r && !f->corpus_folder)
        r = base_fail(err, BASE_E_USAGE, "--corpus names a folder of code and prose that the facts hide in");
    if (!r) r = bench_corpus_load(f->corpus_folder, &f->corpus, err);
    if (!r) r = bench_scores_open(&f->results, f->out, f->resume, err);
    if (!r) r = cmd_open_model(&f->common, &f->model, err);
    if (r) return r;
    f->info = model_get_info(f->model);
    r = bench->begin(user, err);
    for (int64_t i = 0; i < f->items && !r; i++)
        for (size_t t = 0; ruler_tasks[t] && !r; t++)
            if (bench_is_wanted(f->tasks, ',', ruler_tasks[t]))
                r = bench->item(user, ruler_tasks[t], (uint32_t)(f->first + i), err);
    return r;
}

int facts_run(facts *f, int argc, char **argv, const option_row *own, const char *usage,
    const facts_bench *bench, void *user)
{
    base_err err = {0};
    int r;
    if (!cmd_begin(argc, argv, &f->common, own, &(cmd_words){.usage = usage}, &r)) return r;
    r = f->summary ? bench_scores_read(&f->results, f->summary, &err) : run(f, bench, user, &err);
    if (!r && (f->summary || f->out)) bench_scores_print(&f->results, f->against, stdout);
    return r ? cmd_complain(&err) : CMD_OK;
}

void facts_close(facts *f)
{
    bench_scores_close(&f->results);
    base_buf_free(&f->corpus);
    model_close(f->model);
}
