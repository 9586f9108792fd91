/*
 * kvist code: what the program sees in source files, for people and scripts. It only prints what src/code
 * gives; byte offsets, end exclusive.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "code/graph.h"
#include "code/joern.h"
#include "cmd/options.h"

enum { MAX_SOURCE_BYTES = 64 << 20, MAX_EXPORT_BYTES = 1 << 30, MIN_SYMBOL = 3 };

static const char usage[] =
    "usage: kvist code FILE... [--function NAME] [--joern EXPORT] [--json|--dot]\n"
    "\n"
    "Definitions, anchors (call, control, return, assign, signature) and graphs of source files.\n";

/* One file, and the bytes of it that are asked for. */
typedef struct source {
    const char *path, *text;
    code_file *file;
    code_graph *graph;
    const code_joern_report *joern; /* NULL: the graph is our own */
    uint32_t from, to;
    bool is_part; /* of the file: --function */
} source;

static bool is_inside(const source *s, uint32_t from, uint32_t to)
{
    return from >= s->from && to <= s->to;
}

static bool is_callable(const code_definition *d)
{
    return strcmp(d->what, "function") == 0 || strcmp(d->what, "method") == 0;
}

/* Edges of definition i, the functions without a name in it included; UINT32_MAX: of the whole file. */
static void count_edges(const code_graph *x, uint32_t i, uint32_t ret[CODE_N_EDGE_KINDS])
{
    for (int k = 0; k < CODE_N_EDGE_KINDS; k++) ret[k] = 0;
    for (uint32_t f = 0; f < x->n_functions; f++)
        for (int k = 0; k < CODE_N_EDGE_KINDS && (i == UINT32_MAX || x->functions[f].definition == i); k++)
            ret[k] += x->functions[f].edges[k];
}

/* ---- --json ---- */

static void put_name(base_buf *out, const code_definition *d)
{
    base_buf name = {0};
    base_buf_printf(&name, "%s%s%s", d->parent, d->parent[0] != '\0' ? "." : "", d->name);
    base_json_put_str(out, name.data, name.len);
    base_buf_free(&name);
}

/* The distinct names inside an anchor; short ones and keywords say nothing. */
static void put_symbols(base_buf *out, const char *text, uint32_t from, uint32_t to)
{
    size_t pos = from, a, b;
    const size_t begin = out->len;
    while (code_next_identifier(text, to, &pos, &a, &b)) {
        if (b - a < MIN_SYMBOL || b - a > 128 || code_is_keyword(text + a, b - a)) continue;
        base_buf quoted = {0};
        base_json_put_str(&quoted, text + a, b - a);
        if (out->len == begin || memmem(out->data + begin, out->len - begin, quoted.data, quoted.len) == NULL)
            base_buf_printf(out, "%s%s", out->len != begin ? "," : "", quoted.data);
        base_buf_free(&quoted);
    }
}

/* What an export gave: places of each kind, how many are anchors, calls with what they call. */
static void put_joern(base_buf *out, const source *s)
{
    const code_joern_report *r = s->joern;
    base_buf_puts(out, ",\"joern\":{");
    for (int k = 0; k < CODE_N_KINDS; k++)
        base_buf_printf(out, "\"%s\":[%u,%u],", code_kind_word((code_kind)k), r->found[k], r->points[k]);
    base_buf_printf(out, "\"lost\":%u,\"calls\":[", r->lost);
    const char *comma = "";
    for (uint32_t i = 0; i < r->n_calls; i++) {
        if (!is_inside(s, r->calls[i].at, r->calls[i].at)) continue;
        base_buf_printf(out, "%s{\"at\":%u,\"name\":", comma, r->calls[i].at);
        base_json_put_str(out, r->calls[i].name, strlen(r->calls[i].name));
        base_buf_puts(out, ",\"path\":");
        base_json_put_str(out, r->calls[i].path, strlen(r->calls[i].path));
        base_buf_puts(out, "}");
        comma = ",";
    }
    base_buf_puts(out, "]}");
}

/* What can be called, each with how many edges of its graph there are. */
static void put_functions(base_buf *out, const source *s)
{
    const char *comma = "";
    for (uint32_t i = 0; i < s->file->n_definitions; i++) {
        const code_definition *d = &s->file->definitions[i];
        if (!is_callable(d) || d->is_declaration || !is_inside(s, d->from, d->to)) continue;
        base_buf_printf(out, "%s{\"name\":", comma);
        put_name(out, d);
        uint32_t edges[CODE_N_EDGE_KINDS];
        count_edges(s->graph, i, edges);
        base_buf_printf(out,
            ",\"start\":%u,\"end\":%u,\"line\":%u,\"cfg_edges\":%u,\"pdg_edges\":%u,\"def_use\":%u,"
            "\"control\":%u}",
            d->from, d->to, d->line, edges[CODE_EDGE_FLOW], edges[CODE_EDGE_DATA] + edges[CODE_EDGE_CONTROL],
            edges[CODE_EDGE_DATA], edges[CODE_EDGE_CONTROL]);
        comma = ",";
    }
}

static void put_definitions(base_buf *out, const source *s)
{
    const char *comma = "";
    for (uint32_t i = 0; i < s->file->n_definitions; i++) {
        const code_definition *d = &s->file->definitions[i];
        if (!is_inside(s, d->from, d->to)) continue;
        base_buf_printf(out, "%s{\"name\":", comma);
        put_name(out, d);
        base_buf_printf(out,
            ",\"what\":\"%s\",\"start\":%u,\"end\":%u,\"name_from\":%u,\"line\":%u,\"declaration\":%s}",
            d->what, d->from, d->to, d->name_from, d->line, d->is_declaration ? "true" : "false");
        comma = ",";
    }
}

static void put_anchors(base_buf *out, const source *s)
{
    const code_file *f = s->file;
    const char *comma = "";
    for (uint32_t i = 0; i < f->n_anchors; i++) {
        const code_anchor *a = &f->anchors[i];
        if (!is_inside(s, a->full_from, a->full_to)) continue;
        base_buf_printf(out, "%s{\"kind\":\"%s\",\"function\":", comma, code_kind_word(a->kind));
        if (a->definition < f->n_definitions)
            put_name(out, &f->definitions[a->definition]);
        else
            base_buf_puts(out, "null");
        base_buf_printf(out, ",\"core\":[%u,%u],\"full\":[%u,%u],\"symbols\":[", a->core_from, a->core_to,
            a->full_from, a->full_to);
        put_symbols(out, s->text, a->full_from, a->full_to);
        base_buf_puts(out, "]}");
        comma = ",";
    }
}

static void print_json(const source *s)
{
    const code_file *f = s->file;
    base_buf out = {0};
    base_buf_puts(&out, "{\"path\":");
    base_json_put_str(&out, s->path, strlen(s->path));
    base_buf_puts(&out, ",\"language\":");
    if (f->language != NULL)
        base_json_put_str(&out, f->language, strlen(f->language));
    else
        base_buf_puts(&out, "null");
    base_buf_printf(&out, ",\"errors\":%u,\"error_line\":%u,\"functions\":[", f->n_errors, f->error_line);
    put_functions(&out, s);
    base_buf_puts(&out, "],\"definitions\":[");
    put_definitions(&out, s);
    base_buf_puts(&out, "],\"anchors\":[");
    put_anchors(&out, s);
    base_buf_puts(&out, "]");
    if (s->joern != NULL) put_joern(&out, s);
    base_buf_puts(&out, "}");
    puts(out.data);
    base_buf_free(&out);
}

/* ---- --dot and plain ---- */

/* A statement's first line as a label. */
static void put_label(base_buf *out, const source *s, const code_statement *at)
{
    enum { LABEL_BYTES = 60 };
    if (at->kind == CODE_STATEMENT_EXIT) {
        base_buf_puts(out, "\"exit\"");
        return;
    }
    const size_t n = at->to - at->from;
    const char *text = s->text + at->from, *end = memchr(text, '\n', n);
    size_t shown = end != NULL ? (size_t)(end - text) : n;
    if (shown > LABEL_BYTES) shown = LABEL_BYTES;
    base_json_put_str(out, text, shown);
}

static void print_statements(const source *s)
{
    static const char *const styles[CODE_N_EDGE_KINDS] = {"solid", "dashed", "dotted"};
    const code_graph *x = s->graph;
    printf("digraph code {\n  node [shape=box];\n");
    for (uint32_t i = 0; i < x->n_statements; i++) {
        const code_statement *at = &x->statements[i];
        const code_function *f = &x->functions[at->function];
        if (!is_inside(s, f->from, f->to)) continue;
        base_buf label = {0};
        put_label(&label, s, at);
        printf("  s%u [label=%s];\n", i, label.data);
        base_buf_free(&label);
    }
    for (uint32_t e = 0; e < x->n_edges; e++) {
        const code_edge *edge = &x->edges[e];
        const code_function *f = &x->functions[x->statements[edge->from].function];
        if (!is_inside(s, f->from, f->to)) continue;
        printf("  s%u -> s%u [style=%s", edge->from, edge->to, styles[edge->kind]);
        size_t pos = edge->name, from, to;
        if (edge->kind == CODE_EDGE_DATA && code_next_identifier(s->text, s->to, &pos, &from, &to))
            printf(",label=\"%.*s\"", (int)(to - from), s->text + from);
        printf("];\n");
    }
    printf("}\n");
}

static void print_calls(const source *s)
{
    const code_file *f = s->file;
    printf("digraph calls {\n");
    for (uint32_t i = 0; i < f->n_anchors; i++) {
        const code_anchor *a = &f->anchors[i];
        if (a->kind != CODE_CALL || a->definition >= f->n_definitions ||
            !is_inside(s, a->full_from, a->full_to))
            continue;
        uint32_t from, to;
        if (!code_call_name(a, s->text, &from, &to)) continue;
        base_buf caller = {0}, callee = {0};
        put_name(&caller, &f->definitions[a->definition]);
        base_json_put_str(&callee, s->text + from, to - from);
        printf("  %s -> %s;\n", caller.data, callee.data);
        base_buf_free(&caller);
        base_buf_free(&callee);
    }
    printf("}\n");
}

static void print_dot(const source *s)
{
    if (s->is_part)
        print_statements(s);
    else
        print_calls(s);
}

static void print_joern(const code_joern_report *r)
{
    printf("  of Joern's export:");
    for (int k = 0; k < CODE_N_KINDS; k++)
        printf(" %u of %u %s,", r->found[k], r->points[k], code_kind_word((code_kind)k));
    printf(" %u calls with a target", r->n_calls);
    if (r->lost != 0) printf(", %u edges end outside of statements", r->lost);
    printf("\n");
}

static void print_plain(const source *s)
{
    const code_file *f = s->file;
    uint32_t n[CODE_N_KINDS] = {0};
    for (uint32_t i = 0; i < f->n_anchors; i++)
        if (is_inside(s, f->anchors[i].full_from, f->anchors[i].full_to)) n[f->anchors[i].kind]++;
    if (f->language != NULL)
        printf("%s: %s, %u definitions", s->path, f->language, f->n_definitions);
    else
        printf("%s: read without a grammar (%s), %u definitions", s->path, f->why_lexical, f->n_definitions);
    for (int k = 0; k < CODE_N_KINDS; k++) printf(", %u %s", n[k], code_kind_word((code_kind)k));
    if (f->n_errors != 0)
        printf(", %u syntax error%s (the first in line %u)", f->n_errors, f->n_errors == 1 ? "" : "s",
            f->error_line);
    printf("\n");
    if (s->joern != NULL) print_joern(s->joern);
    for (uint32_t i = 0; i < f->n_definitions; i++) {
        const code_definition *d = &f->definitions[i];
        if (!is_inside(s, d->from, d->to)) continue;
        printf("%6u-%-6u %-10s %s%s%s%s", d->line, d->line_end, d->what, d->parent,
            d->parent[0] != '\0' ? "." : "", d->name, d->is_declaration ? " (declared)" : "");
        uint32_t edges[CODE_N_EDGE_KINDS];
        count_edges(s->graph, i, edges);
        if (edges[CODE_EDGE_FLOW] != 0)
            printf("  %u flow, %u def-use, %u control", edges[CODE_EDGE_FLOW], edges[CODE_EDGE_DATA],
                edges[CODE_EDGE_CONTROL]);
        printf("\n");
    }
}

/* What all files of a call share. */
typedef struct view {
    code_grammars *grammars;
    code_joern *joern; /* NULL: no export */
    const char *function;
    void (*print)(const source *);
} view;

static int show(const view *v, const char *path, base_err *err)
{
    base_buf text = {0};
    const int rc = base_fs_read_given(path, MAX_SOURCE_BYTES, &text, err);
    if (rc != 0) return rc;
    const char *bytes = text.data != NULL ? text.data : "";
    source s = {.path = path, .text = bytes, .to = (uint32_t)text.len};
    s.file = code_parse_graph(v->grammars, path, bytes, text.len, &s.graph);
    code_joern_report report = {.calls = NULL};
    int failed = 0;
    if (v->joern != NULL) {
        failed = code_joern_apply(v->joern, path, bytes, text.len, s.file, s.graph, &report, err);
        s.joern = &report;
    }
    if (failed == 0 && v->function != NULL) {
        uint32_t i;
        if (code_find_definition(s.file, v->function, &i, 1) == 0) {
            failed = base_fail(err, BASE_E_NOT_FOUND, "%s has no definition of %s", path, v->function);
        } else {
            s.from = s.file->definitions[i].from;
            s.to = s.file->definitions[i].to;
            s.is_part = true;
        }
    }
    if (failed == 0) v->print(&s);
    free(report.calls);
    code_graph_free(s.graph);
    code_file_free(s.file);
    base_buf_free(&text);
    return failed;
}

static int read_export(const char *path, code_joern **ret, base_err *err)
{
    base_buf text = {0};
    int rc = base_fs_read_given(path, MAX_EXPORT_BYTES, &text, err);
    if (rc == 0) rc = code_joern_read(ret, text.data != NULL ? text.data : "", text.len, err);
    base_buf_free(&text);
    return rc;
}

/* Each file, in its order; one that cannot be shown is told and the others are shown. An exit status. */
static int show_all(view *v, const char *const *files, uint32_t n, const char *joern)
{
    base_err err = {0};
    int status = CMD_OK;
    v->grammars = code_grammars_open();
    if (joern != NULL && read_export(joern, &v->joern, &err) != 0)
        status = cmd_complain(&err);
    else
        for (uint32_t i = 0; i < n; i++)
            if (show(v, files[i], &err) != 0) status = cmd_complain(&err);
    code_joern_free(v->joern);
    code_grammars_close(v->grammars);
    return status;
}

int cmd_code(int argc, char **argv)
{
    bool json = false, dot = false;
    const char *joern = NULL;
    view v = {.print = print_plain};
    const option_row own[] = {
        {"--function", OPTION_TEXT, &v.function, "NAME",
            "only what lies in this definition (Cls.method works)"},
        {"--json", OPTION_FLAG, &json, NULL, "one object a file"},
        {"--dot", OPTION_FLAG, &dot, NULL,
            "for dot(1): the calls, or with --function its statements with control flow (solid), def-use "
            "(dashed) and control dependence (dotted)"},
        {"--joern", OPTION_TEXT, &joern, "EXPORT",
            "edges and targets of calls from what joern-export "
            "--repr all --format graphson wrote, laid over the files"},
        {0},
    };
    const char **files = base_xcalloc((size_t)argc + 1, sizeof *files);
    uint32_t n = 0;
    base_err err = {0};
    int status;
    const cmd_words words = {.usage = usage, .rest = files, .n_rest = &n};
    if (cmd_begin(argc, argv, NULL, own, &words, &status)) {
        v.print = json ? print_json : dot ? print_dot : print_plain;
        if (n == 0)
            base_fail(&err, BASE_E_USAGE, "kvist code takes the names of source files");
        else if (json && dot)
            base_fail(&err, BASE_E_USAGE, "give --json or --dot, not both");
        status = err.code ? cmd_complain(&err) : show_all(&v, files, n, joern);
    }
    free(files);
    return status;
}
