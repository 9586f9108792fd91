#include "remote/gbnf.h"

#include <stdio.h>
#include <string.h>

enum {
    MOST_PATH_BYTES = 16 << 10,
    MOST_CHOICES =
        64 /* more are names of the tree's definitions: of use in a call that is begun only (gbnf_rest.c) */
};

/* clang-format off */
static const struct {
    const char *begin, *what, *ending; /* of a call: `what` is a JSON object or a function of XML */
    const char *opening; /* at the begin of a line it is a call, in free text */
    const char *triggers[2];
} styles[] = {
#define BARE {"", "object", "", "{\"name\"", {"(?:^|\\n)(\\{\"name\")"}}
    [MODEL_TOOLS_TAG_TOOLS] = {"\"<tools>\" ws ", "object", " ws \"</tools>\"", "<tools>", {"(?:^|\\n)(<tools>)"}},
    [MODEL_TOOLS_HERMES]    = {"\"<tool_call>\" ws ", "object", " ws \"</tool_call>\"", "<tool_call>", {"(?:^|\\n)(<tool_call>)"}},
    [MODEL_TOOLS_XML]       = {"\"<tool_call>\" ws ", "\"<function=\" call \"</function>\"", " ws \"</tool_call>\"", "<tool_call>", {"(?:^|\\n)(<tool_call>)"}},
    [MODEL_TOOLS_HARMONY]   = BARE, /* no endpoint is of it */
    [MODEL_TOOLS_SEED]      = BARE, /* nor of these six */
    [MODEL_TOOLS_MISTRAL]   = BARE,
    [MODEL_TOOLS_MISTRAL_IDS] = BARE,
    [MODEL_TOOLS_GEMMA]     = BARE,
    [MODEL_TOOLS_GRANITE]   = BARE,
    [MODEL_TOOLS_NEMO]      = BARE,
    [MODEL_TOOLS_JSON]      = BARE,
#undef BARE
};
/* clang-format on */

static const char fixed_rules[] =
    "object ::= \"{\" ws \"\\\"name\\\"\" ws \":\" ws call ws \"}\"\n"
    "rest ::= [^\\x00]*\n"
    "ws ::= [ \\t\\n\\r]{0,12}\n"
    "string ::= \"\\\"\" character* \"\\\"\"\n"
    "character ::= [^\"\\\\\\x00-\\x1F] | \"\\\\\" ([\"\\\\/bfnrt] | \"u\" [0-9a-fA-F]{4})\n"
    "integer ::= \"-\"? (\"0\" | [1-9] [0-9]{0,17})\n"
    "number ::= \"-\"? (\"0\" | [1-9] [0-9]{0,14}) (\".\" [0-9]{1,15})? ([eE] [-+]? [0-9]{1,2})?\n"
    "boolean ::= \"true\" | \"false\"\n";

const char *const *remote_gbnf_triggers(model_tool_style style)
{
    return styles[style].triggers;
}

const char *remote_gbnf_ending(model_tool_style style)
{
    return styles[style].ending;
}

void remote_gbnf_put_literal(base_buf *out, const char *text)
{
    base_buf_putc(out, '"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') base_buf_putc(out, '\\');
        base_buf_putc(out, *text);
    }
    base_buf_putc(out, '"');
}

/* A JSON string as a literal of GBNF. */
static void put_quoted(base_buf *out, const char *text)
{
    base_buf_puts(out, "\"\\\"");
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') base_buf_puts(out, "\\\\\\");
        base_buf_putc(out, *text);
    }
    base_buf_puts(out, "\\\"\"");
}

typedef void put_text_fn(base_buf *out, const char *text);

static void put_choices(base_buf *out, const char *const *choices, put_text_fn *put)
{
    base_buf_putc(out, '(');
    for (size_t i = 0; choices[i]; i++) {
        if (i) base_buf_puts(out, " | ");
        put(out, choices[i]);
    }
    base_buf_putc(out, ')');
}

static bool is_many(const char *const *choices)
{
    size_t n = 0;
    while (choices[n] && n <= MOST_CHOICES) n++;
    return n > MOST_CHOICES;
}

static void put_value(base_buf *out, const model_grammar_argument *a, put_text_fn *put)
{
    switch (a->type) {
    case MODEL_ARGUMENT_INTEGER: base_buf_puts(out, "integer"); break;
    case MODEL_ARGUMENT_BOOLEAN: base_buf_puts(out, "boolean"); break;
    case MODEL_ARGUMENT_CHOICE:
        if (is_many(a->choices))
            base_buf_puts(out, put == put_quoted ? "string" : "xtext");
        else
            put_choices(out, a->choices, put);
        break;
    case MODEL_ARGUMENT_PATH: base_buf_puts(out, "path"); break;
    case MODEL_ARGUMENT_STRING: base_buf_puts(out, "string"); break;
    }
}

/*
 * Arguments from i on, where none (first) or some stand already: what is not required may be left out. A rule
 * each, since an optional one leads to two.
 */
static void put_arguments(base_buf *out, const model_grammar_tool *tool, uint32_t number)
{
    for (int later = 0; later < 2; later++)
        for (uint32_t i = 0; i <= tool->n_arguments; i++) {
            base_buf_printf(out, "t%u-%s-%u ::= ", number, later ? "more" : "first", i);
            if (i == tool->n_arguments) {
                base_buf_puts(out, "\"\"\n");
                continue;
            }
            const model_grammar_argument *a = &tool->arguments[i];
            if (later) base_buf_puts(out, "\",\" ws ");
            put_quoted(out, a->name);
            base_buf_puts(out, " ws \":\" ws ");
            put_value(out, a, put_quoted);
            base_buf_printf(out, " ws t%u-more-%u", number, i + 1);
            if (!a->required) base_buf_printf(out, " | t%u-%s-%u", number, later ? "more" : "first", i + 1);
            base_buf_putc(out, '\n');
        }
}

bool remote_gbnf_is_plain(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == '"' || *text == '\\') return false;
    return true;
}

static void put_paths(base_buf *out, const char *const *paths, put_text_fn *put, const char *any)
{
    size_t bytes = 0, n = 0;
    for (size_t i = 0; paths && paths[i]; i++)
        bytes += strlen(paths[i]) + 8, n += remote_gbnf_is_plain(paths[i]);
    base_buf_puts(out, "path ::= ");
    if (!n || bytes > MOST_PATH_BYTES) {
        base_buf_printf(out, "%s\n", any);
        return;
    }
    bool some = false;
    for (size_t i = 0; paths[i]; i++) {
        if (!remote_gbnf_is_plain(paths[i])) continue;
        if (some) base_buf_puts(out, " | ");
        put(out, paths[i]);
        some = true;
    }
    base_buf_putc(out, '\n');
}

static void put_json_tool(base_buf *out, const model_grammar_tool *tool, uint32_t number)
{
    put_quoted(out, tool->name);
    base_buf_printf(
        out, " ws \",\" ws \"\\\"arguments\\\"\" ws \":\" ws \"{\" ws t%u-first-0 \"}\"\n", number);
    put_arguments(out, tool, number);
}

/*
 * A line that begins with none of these words, which differ in their first bytes: of its first bytes so many are
 * a word's, then another comes.
 */
static void put_line_without(base_buf *out, const char *name, const char *const *words)
{
    base_buf_printf(out, "%s ::= ([^", name);
    for (size_t k = 0; words[k]; k++) base_buf_putc(out, words[k][0]);
    base_buf_puts(out, "\\n] [^\\n]*)?");
    for (size_t k = 0; words[k]; k++)
        for (int i = 1; words[k][i]; i++) {
            char begun[32];
            snprintf(begun, sizeof begun, "%.*s", i, words[k]);
            base_buf_puts(out, " | ");
            remote_gbnf_put_literal(out, begun);
            base_buf_printf(out, " ([^%c\\n] [^\\n]*)?", words[k][i]);
        }
    base_buf_putc(out, '\n');
}

/* Text without triggers, as kvist's own grammar reads it: what a fenced block holds is no call. */
static void put_free(model_tool_style style, base_buf *out)
{
    put_line_without(out, "line", (const char *const[]){styles[style].opening, "```", NULL});
    put_line_without(out, "inside", (const char *const[]){"```", NULL});
    base_buf_puts(out, "text ::= [^\\n]*\n"
                       "opened ::= \"```\" text (\"\\n\" inside)*\n"
                       "fence ::= opened \"\\n```\" text\n"
                       "free ::= ((line | fence) \"\\n\")* (line | fence | opened | called)\n");
}

/* As grammar_xml.c holds a local model to it. */
static void put_xml_tool(base_buf *out, const model_grammar_tool *tool, uint32_t number)
{
    base_buf_printf(out, "\"%s>\" ws t%u-0\n", tool->name, number);
    for (uint32_t i = 0; i <= tool->n_arguments; i++) {
        base_buf_printf(out, "t%u-%u ::= ", number, i);
        if (i == tool->n_arguments) {
            base_buf_puts(out, "\"\"\n");
            continue;
        }
        const model_grammar_argument *a = &tool->arguments[i];
        base_buf_printf(out, "\"<parameter=%s>\\n\" ", a->name);
        if (a->type == MODEL_ARGUMENT_STRING)
            base_buf_puts(out, "xtext");
        else
            put_value(out, a, remote_gbnf_put_literal);
        base_buf_printf(out, " \"\\n</parameter>\" ws t%u-%u", number, i + 1);
        if (!a->required) base_buf_printf(out, " | t%u-%u", number, i + 1);
        base_buf_putc(out, '\n');
    }
}

void remote_gbnf_put(model_tool_style style, const model_grammar_tool *tools, uint32_t n_tools,
    const char *const *paths, base_buf *out)
{
    const bool is_xml = style == MODEL_TOOLS_XML;
    base_buf_printf(out, "called ::= %s%s%s rest\n%scall ::= ", styles[style].begin, styles[style].what,
        styles[style].ending, fixed_rules);
    for (uint32_t i = 0; i < n_tools; i++) base_buf_printf(out, i ? " | t%u" : "t%u", i);
    base_buf_putc(out, '\n');
    for (uint32_t i = 0; i < n_tools; i++) {
        base_buf_printf(out, "t%u ::= ", i);
        (is_xml ? put_xml_tool : put_json_tool)(out, &tools[i], i);
    }
    if (is_xml) {
        put_line_without(out, "xline", (const char *const[]){"</parameter>", NULL});
        base_buf_puts(out, "xtext ::= xline (\"\\n\" xline)*\n");
    }
    put_paths(out, paths, is_xml ? remote_gbnf_put_literal : put_quoted, is_xml ? "xtext" : "string");
}

/* --- JSON of a schema ----------------------------------------------------------------------------------- */

static void put_values(base_buf *out, const base_schema_node *n)
{
    for (uint32_t i = 0; i < n->n_values; i++) {
        base_buf json = {0};
        base_json_put(&json, n->values[i]);
        base_buf_puts(out, i ? " | " : "");
        remote_gbnf_put_literal(out, json.data);
        base_buf_free(&json);
    }
}

static void put_count(base_buf *out, int64_t least, int64_t most)
{
    enum { MOST_REPEATS = 2000 }; /* the engines refuse more; kvist's own check holds the rest */
    if (least > MOST_REPEATS) least = MOST_REPEATS;
    base_buf_printf(out, "{%lld,", (long long)least);
    if (most >= 0 && most <= MOST_REPEATS) base_buf_printf(out, "%lld", (long long)most);
    base_buf_putc(out, '}');
}

/* Members from i on, where none (first) or some stand already. */
static void put_members(base_buf *out, uint32_t at, const base_schema_node *n)
{
    for (int later = 0; later < 2; later++)
        for (uint32_t i = 0; i <= n->n_properties; i++) {
            base_buf_printf(out, "s%u-%s-%u ::= ", at, later ? "more" : "first", i);
            if (i == n->n_properties) {
                if (n->additional == BASE_SCHEMA_NONE)
                    base_buf_puts(out, "\"\"\n");
                else if (later)
                    base_buf_printf(out, "(\",\" ws s%u-other)*\n", at);
                else
                    base_buf_printf(out, "(s%u-other (\",\" ws s%u-other)*)?\n", at, at);
                continue;
            }
            const base_schema_property *p = &n->properties[i];
            const bool may = p->node != BASE_SCHEMA_NONE;
            base_buf name = {0};
            base_json_put_str(&name, p->name, strlen(p->name));
            if (may && later) base_buf_puts(out, "\",\" ws ");
            if (may) remote_gbnf_put_literal(out, name.data);
            if (may) base_buf_printf(out, " ws \":\" ws s%u ws s%u-more-%u", p->node, at, i + 1);
            if (!may || !p->required)
                base_buf_printf(out, "%ss%u-%s-%u", may ? " | " : "", at, later ? "more" : "first", i + 1);
            base_buf_putc(out, '\n');
            base_buf_free(&name);
        }
    if (n->additional != BASE_SCHEMA_NONE)
        base_buf_printf(out, "s%u-other ::= string ws \":\" ws s%u ws\n", at, n->additional);
}

/* Items from i on; behind those with a schema of their own all are alike. */
static void put_items(base_buf *out, uint32_t at, const base_schema_node *n)
{
    for (uint32_t i = 0; i <= n->n_prefix; i++) {
        const bool may_end = (int64_t)i >= n->min_items,
                   may_go_on = n->max_items < 0 || (int64_t)i < n->max_items;
        const uint32_t item = i < n->n_prefix ? n->prefix[i] : n->items;
        base_buf_printf(out, "s%u-item-%u ::= ", at, i);
        if (!may_go_on || item == BASE_SCHEMA_NONE) {
            base_buf_puts(out, "\"\"\n");
            continue;
        }
        if (may_end) base_buf_puts(out, "\"\" | ");
        if (i) base_buf_puts(out, "\",\" ws ");
        if (i < n->n_prefix) {
            base_buf_printf(out, "s%u ws s%u-item-%u\n", item, at, i + 1);
            continue;
        }
        base_buf_printf(out, "s%u ws (\",\" ws s%u ws)", item, item);
        put_count(out, n->min_items > (int64_t)i + 1 ? n->min_items - i - 1 : 0,
            n->max_items < 0 ? -1 : n->max_items - (int64_t)i - 1);
        base_buf_putc(out, '\n');
    }
}

static void put_kind(base_buf *out, bool *some, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void put_kind(base_buf *out, bool *some, const char *format, ...)
{
    va_list args;
    if (*some) base_buf_puts(out, " | ");
    *some = true;
    va_start(args, format);
    base_buf_vprintf(out, format, args);
    va_end(args);
}

static void put_types(base_buf *out, uint32_t at, const base_schema_node *n)
{
    bool some = false;
    if (n->types & BASE_SCHEMA_NULL) put_kind(out, &some, "\"null\"");
    if (n->types & BASE_SCHEMA_BOOLEAN) put_kind(out, &some, "boolean");
    if (n->types & BASE_SCHEMA_NUMBER)
        put_kind(out, &some, "number");
    else if (n->types & BASE_SCHEMA_INTEGER)
        put_kind(out, &some, "integer");
    if (n->types & BASE_SCHEMA_STRING) {
        put_kind(out, &some, "\"\\\"\" character");
        if (n->min_length || n->max_length >= 0)
            put_count(out, n->min_length, n->max_length);
        else
            base_buf_putc(out, '*');
        base_buf_puts(out, " \"\\\"\"");
    }
    if (n->types & BASE_SCHEMA_ARRAY) put_kind(out, &some, "\"[\" ws s%u-item-0 \"]\"", at);
    if (n->types & BASE_SCHEMA_OBJECT) put_kind(out, &some, "\"{\" ws s%u-first-0 \"}\"", at);
    base_buf_putc(out, '\n');
    if (n->types & BASE_SCHEMA_ARRAY) put_items(out, at, n);
    if (n->types & BASE_SCHEMA_OBJECT) put_members(out, at, n);
}

/* The rule `answer`. */
static void put_schema(const base_schema *schema, base_buf *out)
{
    base_buf_puts(out, "answer ::= s0\n");
    for (uint32_t at = 0; at < base_schema_size(schema); at++) {
        const base_schema_node *n = base_schema_at(schema, at);
        bool some = false;
        base_buf_printf(out, "s%u ::= ", at);
        for (uint32_t i = 0; i < n->n_alternatives; i++)
            if (n->alternatives[i] != BASE_SCHEMA_NONE) put_kind(out, &some, "s%u", n->alternatives[i]);
        if (!n->n_alternatives && !n->n_values) {
            put_types(out, at, n);
            continue;
        }
        if (!n->n_alternatives) put_values(out, n);
        base_buf_putc(out, '\n');
    }
}

/* --- one answer ------------------------------------------------------------------------------------------ */

void remote_gbnf_put_answer(const remote_gbnf_answer *a, base_buf *out)
{
    const bool is_free = !a->schema && !a->is_lazy && !a->root;
    if (a->root) base_buf_puts(out, a->root);
    if (!a->root)
        base_buf_printf(out, "root ::= %s\n",
            is_free      ? "free"
            : !a->schema ? "called"
            : a->calls   ? "answer | called"
                         : "answer");
    base_buf_add(out, a->rules->data, a->rules->len);
    if (is_free) put_free(a->style, out);
    if (a->schema) put_schema(a->schema, out);
}
