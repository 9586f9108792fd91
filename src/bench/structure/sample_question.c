/* A sample's questions as tokens, with what they mark in the chunks; see bench/structure/sample.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sequence/marks.h"
#include "base/clock.h"
#include "base/mem.h"
#include "bench/structure/sample_parts.h"
#include "kv/lab/lab.h"
#include "model/text/template.h"

static int32_t first_token(const model *m, const char *name)
{
    model_ids ids = {0};
    model_tokenizer_encode(model_get_tokenizer(m), name, strlen(name), false, &ids);
    const int32_t id = ids.n ? ids.ids[0] : -1;
    model_ids_free(&ids);
    return id;
}

/* First tokens of two names that are equal would make the choice a draw. */
bool structure_accept_name(void *user, const bench_sample *s, const char *name)
{
    const int32_t id = first_token(user, name);
    for (uint32_t i = 0; i < s->n_chunks; i++)
        if (first_token(user, s->chunks[i].name) == id) return false;
    return true;
}

/* The token that holds a byte. */
static uint32_t token_at(const sample_excerpt *x, uint32_t byte)
{
    uint32_t low = 0, high = (uint32_t)x->ids.n;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (x->ends[middle] > byte)
            high = middle;
        else
            low = middle + 1;
    }
    return low < x->ids.n ? low : (uint32_t)x->ids.n - 1;
}

static void find_spans(sample_question *q, uint32_t chunk, const sample_excerpt *x, const char *request)
{
    const uint64_t start = base_clock_ns();
    const uint32_t n = (uint32_t)strlen(x->f->text);
    code_piece *pieces = NULL;
    const uint32_t n_pieces = code_structure(x->file, x->graph, x->f->text, n, 0, n, request, &pieces);
    q->spans[chunk] = base_xcalloc((size_t)n_pieces + 1, sizeof *q->spans[chunk]);
    for (uint32_t i = 0; i < n_pieces; i++)
        if (pieces[i].to > pieces[i].from)
            q->spans[chunk][q->n_spans[chunk]++] =
                (kv_span){.from = token_at(x, x->text_from + pieces[i].from),
                    .to = token_at(x, x->text_from + pieces[i].to - 1) + 1,
                    .reason = agent_reason_of[pieces[i].kind],
                    .marks = pieces[i].marks,
                    .n_flow = pieces[i].n_flow,
                    .n_dependence = pieces[i].n_dependence};
    q->spans_ms += (double)(base_clock_ns() - start) / 1e6;
    free(pieces);
}

/* The line's tokens are those of `all` from its token `first` on. */
static void want_line(sample_question *q, size_t first)
{
    for (size_t i = first; i < q->all.n && q->n_want < MOST_WANT; i++, q->n_line++)
        q->want[q->n_want++] = (uint32_t)i - 1;
}

/* The last tokens of what the question quotes. */
static void name_queries(sample_question *q, const structure_run *b, const char *text, size_t n)
{
    const uint32_t to = (uint32_t)(strchr(text, '`') + 1 - text + n);
    uint32_t last = 0;
    for (uint32_t i = 0, at = 0; i < q->ids.n && at < to; i++, last++) at += sample_n_bytes(b, q->ids.ids[i]);
    for (uint32_t i = last > MOST_QUERIES ? last - MOST_QUERIES : 0; i < last; i++)
        q->queries[q->n_queries++] = i;
}

/*
 * What a traceback says: how the line begins. Which function it is in is a choice by the first token of the
 * names.
 */
static void ask_bug(
    sample_question *q, const sample_context *c, const bench_sample *s, const bench_question *about)
{
    const structure_run *b = c->b;
    const model_template *template = model_get_template(b->model);
    base_buf text = {0};
    base_buf_printf(&text,
        "\nA test fails because of a mistake in the line that begins with "
        "`%.*s`. Which function is it in, and how does it read as it stands?",
        (int)about->n_same, about->line);
    sample_puts(b, &q->ids, text.data);
    name_queries(q, b, text.data, about->n_same);
    model_ids_add_all(&q->all, &q->ids);
    model_template_end(template, MODEL_ROLE_USER, &q->all);
    model_template_begin(template, MODEL_ROLE_ASSISTANT, &q->all);
    sample_puts(b, &q->all, "It is in the function `");
    q->want[q->n_want++] = (uint32_t)q->all.n - 1;
    for (uint32_t i = 0; i < s->n_chunks; i++) {
        if (!s->chunks[i].wrong) continue;
        if (i == about->target) q->right = q->n_choices;
        q->choices[q->n_choices++] = (uint32_t)first_token(b->model, s->chunks[i].name);
    }
    base_buf_clear(&text);
    base_buf_printf(&text, "%s`:\n`%.*s", s->chunks[about->target].name, (int)about->n_same, about->line);
    sample_puts(b, &q->all, text.data);
    const size_t line = q->all.n;
    sample_puts(b, &q->all, about->line + about->n_same);
    want_line(q, line);
    base_buf_free(&text);
}

/*
 * Text, line and its end are encoded together, since tokens join what stands before a line end with it: the
 * line's are those that begin in it, what is asked ends before them.
 */
static void ask_completion(
    sample_question *q, const sample_context *c, const bench_sample *s, const bench_question *about)
{
    const char *dot = strrchr(s->chunks[about->target].path, '.');
    base_buf text = {0};
    base_buf_printf(&text, "```%s\n%s", dot ? dot + 1 : "", about->before);
    const size_t line_at = text.len;
    base_buf_printf(&text, "%s\n", about->line);
    sample_encode(c->b, text.data, text.len, &q->all);
    size_t n = 0, at = 0;
    while (n < q->all.n && at < line_at) {
        size_t length = 0;
        model_tokenizer_piece(model_get_tokenizer(c->b->model), q->all.ids[n], &length);
        at += length;
        model_ids_add(&q->ids, q->all.ids[n++]);
    }
    want_line(q, n);
    base_buf_free(&text);
}

void sample_question_make(
    sample_question *q, const sample_context *c, const bench_sample *s, const bench_question *about)
{
    base_buf request = {0};
    *q = (sample_question){.n_want = 0};
    switch (c->b->task) {
    case STRUCTURE_BUG:
        base_buf_printf(&request, "`%.*s`", (int)about->n_same, about->line);
        ask_bug(q, c, s, about);
        break;
    case STRUCTURE_COMPLETE:
    case STRUCTURE_SELECT:
        base_buf_printf(&request, "`%s`", about->before);
        ask_completion(q, c, s, about);
        break;
    default:
        base_buf_printf(&request, "\nWhat does `%s` do?", s->chunks[about->target].name);
        sample_puts(c->b, &q->ids, request.data);
    }
    for (uint32_t i = 0; i < c->n_chunks; i++) find_spans(q, i, &c->chunks[i], request.data);
    base_buf_free(&request);
}

void sample_question_free(sample_question *q)
{
    for (int i = 0; i < 2; i++) kv_session_free(q->sessions[i]);
    for (uint32_t i = 0; i < BENCH_CHUNKS; i++) free(q->spans[i]);
    model_ids_free(&q->ids);
    model_ids_free(&q->all);
}

int sample_question_compute(sample_question *q, sample_context *c, bool local, base_err *err)
{
    int r = c->sessions[local] ? 0 : sample_context_compute(c, local, err);
    const uint64_t start = base_clock_ns();
    kv_session *s = NULL;
    if (!r) r = kv_session_fork(c->sessions[local], &s, NULL, err);
    for (uint32_t i = 0; i < c->n_chunks && !r; i++) {
        r = kv_session_set_spans(s, c->at[i], q->spans[i], q->n_spans[i], err);
        if (!r && local) r = kv_session_probe(s, c->at[i], q->ids.ids, (uint32_t)q->ids.n, NULL, err);
    }
    if (!r) r = sample_append(s, KV_ORIGIN_USER, &q->ids, err);
    if (r) {
        kv_session_free(s);
        return r;
    }
    q->sessions[local] = s;
    q->seconds += (double)(base_clock_ns() - start) / 1e9;
    return 0;
}
