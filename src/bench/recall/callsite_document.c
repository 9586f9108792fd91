/* Documents of a repository's files; see bench/recall/callsite.h. */
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/hash.h"
#include "base/mem.h"
#include "bench/recall/callsite.h"

enum { FILE_MOST = 1 << 20, LINE_MOST = 300 };

int callsite_add_source(void *user, const char *path, base_err *err)
{
    callsite *b = user;
    callsite_source one = {.path = base_xstrdup(path + strlen(b->repo) + (path[strlen(b->repo)] == '/'))};
    int r = base_fs_read(path, FILE_MOST, &one.text, err);
    if (r || !one.text.len || memchr(one.text.data, 0, one.text.len)) {
        base_buf_free(&one.text);
        free(one.path);
        return r;
    }
    one.code = code_parse(b->grammars, one.path, one.text.data, one.text.len);
    if (!one.code->language) {
        code_file_free(one.code);
        base_buf_free(&one.text);
        free(one.path);
        return 0;
    }
    base_grow(&b->sources, &b->cap_sources, b->n_sources + 1, sizeof *b->sources);
    b->sources[b->n_sources++] = one;
    return 0;
}

void callsite_free_sources(callsite *b)
{
    for (size_t i = 0; i < b->n_sources; i++) {
        free(b->sources[i].path);
        base_buf_free(&b->sources[i].text);
        code_file_free(b->sources[i].code);
    }
    free(b->sources);
}

void callsite_free_document(callsite_document *d)
{
    model_ids_free(&d->ids);
    free(d->starts);
    free(d->lines);
    *d = (callsite_document){.n_lines = 0};
}

uint32_t callsite_draw(uint64_t seed, uint64_t i)
{
    return (uint32_t)(base_hash64(&i, sizeof i, seed) >> 32);
}

static void begin_line(callsite_document *d)
{
    base_grow(&d->starts, &d->cap_starts, d->n_starts + 1, sizeof *d->starts);
    d->starts[d->n_starts++] = (uint32_t)d->ids.n;
}

static void add_line(callsite *b, uint32_t file, uint32_t number, uint32_t from, uint32_t to)
{
    callsite_document *d = &b->doc;
    base_buf text = {0};
    const uint32_t shown = to - from < LINE_MOST ? to - from : LINE_MOST;
    base_buf_printf(&text, "%u\t%.*s\n", number, (int)shown, b->sources[file].text.data + from);
    begin_line(d);
    base_grow(&d->lines, &d->cap_lines, d->n_lines + 1, sizeof *d->lines);
    callsite_line *l = &d->lines[d->n_lines++];
    *l = (callsite_line){
        .file = file, .number = number, .from = from, .to = from + shown, .token = (uint32_t)d->ids.n};
    recall_add_text(&b->run, text.data, &d->ids);
    l->token_end = (uint32_t)d->ids.n;
    base_buf_free(&text);
}

/* The file with the fewest lines in the document: what turn 1 is about is not asked for later. */
static uint32_t shortest_file(const callsite *b)
{
    uint32_t best = 0, least = UINT32_MAX;
    for (uint32_t file = 0; file < b->n_sources; file++) {
        uint32_t n = 0;
        for (size_t i = 0; i < b->doc.n_lines; i++) n += b->doc.lines[i].file == file;
        if (!n || n >= least) continue;
        least = n;
        best = file;
    }
    return best;
}

void callsite_make_document(callsite *b, uint32_t number)
{
    static const char intro[] = "Here are files of a project, with line numbers.\n";
    const model_template *template = model_get_template(b->run.model);
    callsite_document *d = &b->doc;
    const size_t begin = callsite_draw(11, number) % b->n_sources;
    model_template_start(template, &d->ids);
    model_template_begin(template, MODEL_ROLE_USER, &d->ids);
    recall_add_text(&b->run, intro, &d->ids);
    for (size_t i = 0; i < b->n_sources && d->ids.n < (size_t)b->tokens; i++) {
        const uint32_t file = (uint32_t)((begin + i) % b->n_sources);
        const callsite_source *s = &b->sources[file];
        base_buf heading = {0};
        base_buf_printf(&heading, "\n=== %s ===\n", s->path);
        begin_line(d);
        recall_add_text(&b->run, heading.data, &d->ids);
        base_buf_free(&heading);
        uint32_t from = 0;
        for (uint32_t n = 1; from < s->text.len && d->ids.n < (size_t)b->tokens; n++) {
            const char *end = memchr(s->text.data + from, '\n', s->text.len - from);
            const uint32_t to = end ? (uint32_t)(end - s->text.data) : (uint32_t)s->text.len;
            add_line(b, file, n, from, to);
            from = to + 1;
        }
    }
    d->about = shortest_file(b);
}
