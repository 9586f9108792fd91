/*
 * A sample's chunks as tokens, and their rows computed once for all its questions; see
 * bench/structure/sample.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "bench/structure/sample_parts.h"
#include "kv/lab/lab.h"
#include "model/text/template.h"

enum { SAMPLE_CUTS = 64 };

void sample_encode(const structure_run *b, const char *text, size_t n, model_ids *out)
{
    model_tokenizer_encode(model_get_tokenizer(b->model), text, n, false, out);
}

void sample_puts(const structure_run *b, model_ids *out, const char *text)
{
    sample_encode(b, text, strlen(text), out);
}

uint32_t sample_n_bytes(const structure_run *b, int32_t id)
{
    size_t length = 0;
    model_tokenizer_piece(model_get_tokenizer(b->model), id, &length);
    return (uint32_t)length;
}

static void excerpt_make(const structure_run *b, sample_excerpt *ret, const bench_function *f)
{
    const char *dot = strrchr(f->path, '.');
    const size_t n_text = strlen(f->text);
    base_buf text = {0};
    *ret = (sample_excerpt){.f = f};
    base_buf_printf(&text, "```%s\n", dot ? dot + 1 : "");
    ret->text_from = (uint32_t)text.len;
    base_buf_puts(&text, f->text);
    base_buf_puts(&text, "\n```\n");
    sample_encode(b, text.data, text.len, &ret->ids);
    ret->ends = base_xcalloc(ret->ids.n + 1, sizeof *ret->ends);
    ret->lines = base_xcalloc(ret->ids.n + 1, sizeof *ret->lines);
    for (uint32_t i = 0, at = 0; i < ret->ids.n; i++) {
        if (!at || text.data[at - 1] == '\n') ret->lines[ret->n_lines++] = i;
        ret->ends[i] = at += sample_n_bytes(b, ret->ids.ids[i]);
    }
    ret->file = code_parse_graph(b->grammars, f->path, f->text, n_text, &ret->graph);
    base_buf_free(&text);
}

void sample_context_free(sample_context *c)
{
    for (uint32_t i = 0; i < c->n_chunks; i++) {
        model_ids_free(&c->chunks[i].ids);
        free(c->chunks[i].ends);
        free(c->chunks[i].lines);
        code_graph_free(c->chunks[i].graph);
        code_file_free(c->chunks[i].file);
    }
    for (int i = 0; i < 2; i++) kv_session_free(c->sessions[i]);
    bench_share_free(c->share);
    model_ids_free(&c->head);
}

void sample_context_make(sample_context *c, const structure_run *b, const bench_sample *s)
{
    const model_template *template = model_get_template(b->model);
    *c = (sample_context){.b = b};
    model_template_start(template, &c->head);
    model_template_begin(template, MODEL_ROLE_USER, &c->head);
    sample_puts(b, &c->head, "This is code of a project:\n");
    for (uint32_t i = 0; i < s->n_chunks; i++) {
        excerpt_make(b, &c->chunks[c->n_chunks++], &s->chunks[i]);
        c->at[i] = (uint32_t)c->head.n + c->n_tokens;
        c->n_tokens += (uint32_t)c->chunks[i].ids.n;
    }
}

int sample_append(kv_session *s, kv_origin origin, const model_ids *ids, base_err *err)
{
    const kv_segment g = {.origin = origin, .turn = 1};
    return kv_session_append(s, &g, ids->ids, (uint32_t)ids->n, NULL, NULL, err);
}

void sample_split_set(const structure_condition *c, char words[SAMPLE_WORDS], const char *set[SAMPLE_SET + 1])
{
    uint32_t n = 0;
    while (set[n]) n++;
    snprintf(words, SAMPLE_WORDS, "%s", c->set ? c->set : "");
    for (char *word = strtok(words, " "); word && n < SAMPLE_SET; word = strtok(NULL, " ")) set[n++] = word;
}

int sample_open_pruned(
    const sample_context *c, const structure_condition *condition, kv_session **ret, base_err *err)
{
    char words[SAMPLE_WORDS];
    const char *set[SAMPLE_SET + 1] = {NULL};
    sample_split_set(condition, words, set);
    const kv_options o = {
        .policy = condition->policy, .set = set, .heads_file = c->b->heads, .pivot_file = c->b->pivot};
    return kv_session_new_over(ret, &c->compute, &o, NULL, err);
}

int sample_context_share(sample_context *c, base_err *err)
{
    uint32_t cuts[SAMPLE_CUTS] = {0}, n_cuts = 0;
    int r = 0;
    c->compute = kv_compute_model(c->b->model);
    for (const structure_condition *one = structure_conditions; one->name && !r && n_cuts < SAMPLE_CUTS;
         one++) {
        kv_session *s = NULL;
        if (!one->prunes || !structure_is_wanted(c->b, one)) continue;
        r = sample_open_pruned(c, one, &s, err);
        if (!r) cuts[n_cuts++] = kv_session_next_cut(s);
        kv_session_free(s);
    }
    if (r || !n_cuts) return r;
    c->share = bench_share_new(c->b->model, cuts, n_cuts);
    c->compute = bench_share_compute(c->share);
    return 0;
}

int sample_context_append(const sample_context *c, kv_session *s, bool shared, base_err *err)
{
    if (c->share) bench_share_keep(c->share, shared);
    int r = sample_append(s, KV_ORIGIN_SYSTEM, &c->head, err);
    for (uint32_t i = 0; i < c->n_chunks && !r; i++) {
        const sample_excerpt *x = &c->chunks[i];
        const kv_segment g = {.origin = KV_ORIGIN_CONTEXT,
            .turn = 1,
            .lines = x->lines,
            .n_lines = x->n_lines,
            .bulk = c->n_tokens};
        r = kv_session_append(s, &g, x->ids.ids, (uint32_t)x->ids.n, NULL, NULL, err);
    }
    if (c->share) bench_share_keep(c->share, false);
    return r;
}

/*
 * A session keeps the last w of a question's queries, and a condition asks by its own last w of them. NULL: no
 * condition wants more than all policies begin with.
 */
static const char *sample_window(const structure_run *b)
{
    for (const structure_condition *c = structure_conditions; c->name; c++)
        if (c->set && !strcmp(c->set, "w=64") && structure_is_wanted(b, c)) return c->set;
    return NULL;
}

int sample_context_compute(sample_context *c, bool local, base_err *err)
{
    const char *set[3] = {NULL}, *window = sample_window(c->b);
    uint32_t n = 0;
    if (local) set[n++] = "local=1";
    if (window) set[n++] = window;
    const uint64_t start = base_clock_ns();
    kv_session *s = NULL;
    int r = kv_session_new_over(
        &s, &c->compute, &(kv_options){.policy = local ? "codecomp" : "full", .set = set}, NULL, err);
    if (r) return r;
    r = sample_context_append(c, s, !local, err);
    if (r) {
        kv_session_free(s);
        return r;
    }
    c->sessions[local] = s;
    c->seconds += (double)(base_clock_ns() - start) / 1e9;
    return 0;
}
