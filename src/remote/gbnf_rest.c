/* See gbnf_rest.h. */
#include "remote/gbnf_rest.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "remote/gbnf.h"

enum { MOST_NAME_BYTES = 64 << 10 }; /* of names that a value may be: more are any string */

/* --- the tools ------------------------------------------------------------------------------------------- */

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static const char *const *copy_choices(const char *const *choices)
{
    size_t n = 0;
    while (choices[n]) n++;
    char **copy = base_xcalloc(n + 1, sizeof *copy);
    for (size_t i = 0; i < n; i++) copy[i] = base_xstrdup(choices[i]);
    qsort(copy, n, sizeof *copy, by_bytes);
    return (const char *const *)copy;
}

void remote_gbnf_tools_keep(remote_gbnf_tools *k, const model_grammar_tool *tools, uint32_t n)
{
    remote_gbnf_tools_free(k);
    k->tools = base_xcalloc(n ? n : 1, sizeof *k->tools);
    k->n = n;
    for (uint32_t i = 0; i < n; i++) {
        model_grammar_argument *arguments = base_xcalloc(tools[i].n_arguments + 1, sizeof *arguments);
        for (uint32_t a = 0; a < tools[i].n_arguments; a++) {
            const model_grammar_argument *from = &tools[i].arguments[a];
            arguments[a] = (model_grammar_argument){base_xstrdup(from->name), from->type, from->required,
                from->type == MODEL_ARGUMENT_CHOICE ? copy_choices(from->choices) : NULL};
        }
        k->tools[i] = (model_grammar_tool){base_xstrdup(tools[i].name), arguments, tools[i].n_arguments};
    }
}

void remote_gbnf_tools_free(remote_gbnf_tools *k)
{
    for (uint32_t i = 0; i < k->n; i++) {
        for (uint32_t a = 0; a < k->tools[i].n_arguments; a++) {
            const model_grammar_argument *argument = &k->tools[i].arguments[a];
            for (size_t c = 0; argument->choices && argument->choices[c]; c++)
                free((char *)(uintptr_t)argument->choices[c]);
            free((void *)(uintptr_t)argument->choices);
            free((char *)(uintptr_t)argument->name);
        }
        free((void *)(uintptr_t)k->tools[i].arguments);
        free((char *)(uintptr_t)k->tools[i].name);
    }
    free(k->tools);
    *k = (remote_gbnf_tools){0};
}

static const model_grammar_tool *find_tool(const remote_gbnf_tools *k, const char *name, size_t n)
{
    for (uint32_t i = 0; i < k->n; i++)
        if (strlen(k->tools[i].name) == n && !memcmp(k->tools[i].name, name, n)) return &k->tools[i];
    return NULL;
}

/* From argument `from` on: they come in their order. n_arguments: there is none of that name. */
static uint32_t find_argument(const model_grammar_tool *t, uint32_t from, const char *name, size_t n)
{
    while (from < t->n_arguments &&
           (strlen(t->arguments[from].name) != n || memcmp(t->arguments[from].name, name, n)))
        from++;
    return from;
}

/* --- how far the call is --------------------------------------------------------------------------------- */

/* In the value of argument `at`, of which value[0, n_value) stands; or, in none, in front of argument `at`. */
typedef struct begun {
    const model_grammar_tool *tool;
    uint32_t at;
    bool in_value, is_first; /* is_first: no argument stands */
    const char *value;
    size_t n_value;
} begun;

static const char *skip_blank(const char *p, const char *end)
{
    while (p < end && *p && strchr(" \t\r\n", *p)) p++;
    return p;
}

static bool take(const char **p, const char *end, const char *text)
{
    const size_t n = strlen(text);
    const char *at = skip_blank(*p, end);
    if ((size_t)(end - at) < n || memcmp(at, text, n) != 0) return false;
    *p = at + n;
    return true;
}

/* Behind a string's first quote: its end, or `end` where it goes on; NULL: it stops inside of an escape. */
static const char *string_end(const char *p, const char *end)
{
    for (; p < end && *p != '"'; p++)
        if (*p == '\\') {
            if (end - p < 2 || (p[1] == 'u' && end - p < 6)) return NULL;
            p++;
        }
    return p;
}

/* "key": value, ... behind the arguments' brace. */
static bool read_json(const char *p, const char *end, begun *b)
{
    for (b->is_first = true; skip_blank(p, end) < end; b->is_first = false) {
        if (!b->is_first && !take(&p, end, ",")) return false; /* the brace's end too */
        if (!take(&p, end, "\"")) return false;
        const char *key = p, *key_end = string_end(p, end);
        if (!key_end || key_end == end) return false;
        b->at = find_argument(b->tool, b->at, key, (size_t)(key_end - key));
        p = key_end + 1;
        if (b->at == b->tool->n_arguments || !take(&p, end, ":")) return false;
        b->value = p = skip_blank(p, end);
        if (p < end && *p == '"') {
            b->value = p + 1;
            p = string_end(p + 1, end);
            if (!p) return false;
            b->in_value = p == end;
            b->n_value = (size_t)(p - b->value);
            if (b->in_value) return true;
            p++;
        } else { /* a number or a word, which is whole */
            while (p < end && (!*p || !strchr(" \t\r\n,}", *p))) p++;
            if (p == b->value) return false;
        }
        b->at++;
    }
    return true;
}

/* <parameter=KEY>, its value and its end, behind the function's name. */
static bool read_xml(const char *p, const char *end, begun *b)
{
    static const char closed[] = "\n</parameter>";
    for (b->is_first = true; skip_blank(p, end) < end; b->is_first = false) {
        if (!take(&p, end, "<parameter=")) return false;
        const char *key = p, *key_end = memchr(p, '>', (size_t)(end - p));
        if (!key_end || key_end + 1 == end || key_end[1] != '\n') return false;
        b->at = find_argument(b->tool, b->at, key, (size_t)(key_end - key));
        if (b->at == b->tool->n_arguments) return false;
        b->value = key_end + 2;
        p = memmem(key_end + 1, (size_t)(end - key_end - 1), closed, sizeof closed - 1);
        b->in_value = !p;
        if (!p) {
            b->n_value = (size_t)(end - b->value);
            return true;
        }
        p += sizeof closed - 1;
        b->at++;
    }
    return true;
}

static bool read_begun(const remote_gbnf_tools *k, bool is_xml, const char *said, size_t n, begun *b)
{
    const char *end = said + n, *opening = is_xml ? "<function=" : "{\"name\"";
    const char *p = memmem(said, n, opening, strlen(opening));
    if (!p) return false;
    p += strlen(opening);
    if (!is_xml && (!take(&p, end, ":") || !take(&p, end, "\""))) return false;
    const char *name = p, *name_end = memchr(p, is_xml ? '>' : '"', (size_t)(end - p));
    if (!name_end) return false;
    *b = (begun){.tool = find_tool(k, name, (size_t)(name_end - name))};
    p = name_end + 1;
    if (!b->tool) return false;
    if (is_xml) return read_xml(p, end, b);
    return take(&p, end, ",") && take(&p, end, "\"arguments\"") && take(&p, end, ":") && take(&p, end, "{") &&
           read_json(p, end, b);
}

/* --- what may follow ------------------------------------------------------------------------------------- */

/* Of names [from, to), which agree in their first `depth` bytes, what is behind these: what they share first. */
static void put_names(base_buf *out, const char *const *names, size_t from, size_t to, size_t depth)
{
    size_t same = depth;
    const char *first = names[from], *last = names[to - 1];
    while (first[same] && first[same] == last[same]) same++;
    while (same > depth && ((unsigned char)first[same] & 0xC0) == 0x80) same--; /* a letter stays whole */
    base_buf shared = {0};
    base_buf_add(&shared, first + depth, same - depth);
    if (shared.len) remote_gbnf_put_literal(out, shared.data);
    base_buf_free(&shared);
    if (to - from == 1) return;
    base_buf_puts(out, " (");
    for (size_t at = from, next; at < to; at = next) {
        uint32_t letter;
        const size_t n =
            names[at][same] ? base_utf8_decode(names[at] + same, strlen(names[at] + same), &letter) : 1;
        for (next = at + 1; next < to && !strncmp(names[next] + same, names[at] + same, n); next++)
            ;
        if (at > from) base_buf_puts(out, " | ");
        if (!names[at][same])
            base_buf_puts(out, "\"\"");
        else
            put_names(out, names, at, next, same);
    }
    base_buf_putc(out, ')');
}

static bool can_list(const char *name, const char *said, size_t n)
{
    const size_t n_name = strlen(name);
    return n <= n_name && !memcmp(name, said, n) && remote_gbnf_is_plain(name) &&
           base_utf8_valid(name + n, n_name - n);
}

/* What is left of one of these, sorted; false: none begins so, or they are too many. */
static bool put_choice(base_buf *out, const char *const *choices, const char *said, size_t n)
{
    size_t n_all = 0, n_fitting = 0, bytes = 0;
    while (choices[n_all]) n_all++;
    const char **fitting = base_xcalloc(n_all + 1, sizeof *fitting);
    for (size_t i = 0; i < n_all; i++) {
        const bool is_twice = n_fitting && !strcmp(fitting[n_fitting - 1], choices[i]);
        if (is_twice || !can_list(choices[i], said, n)) continue;
        fitting[n_fitting++] = choices[i];
        bytes += strlen(choices[i]) - n;
    }
    const bool may = n_fitting && bytes <= MOST_NAME_BYTES;
    if (may) put_names(out, fitting, 0, n_fitting, n);
    free(fitting);
    return may;
}

/* The value up to where its end stands, and that. */
static void put_value(base_buf *out, bool is_xml, const begun *b)
{
    const model_grammar_argument *a = &b->tool->arguments[b->at];
    const bool is_listed =
        a->type == MODEL_ARGUMENT_CHOICE && put_choice(out, a->choices, b->value, b->n_value);
    if (!is_listed) base_buf_puts(out, is_xml ? "[^\\n]* (\"\\n\" xline)*" : "character*");
    base_buf_puts(out, is_xml ? " \"\\n</parameter>\" ws " : " \"\\\"\" ws ");
}

bool remote_gbnf_put_rest(
    const remote_gbnf_tools *k, model_tool_style style, const char *said, size_t n, base_buf *out)
{
    const bool is_xml = style == MODEL_TOOLS_XML;
    begun b;
    if (!read_begun(k, is_xml, said, n, &b)) return false;
    const uint32_t number = (uint32_t)(b.tool - k->tools), next = b.at + b.in_value;
    base_buf_puts(out, "root ::= ");
    if (b.in_value) put_value(out, is_xml, &b);
    if (!b.in_value) base_buf_puts(out, "ws ");
    if (is_xml)
        base_buf_printf(out, "t%u-%u \"</function>\"", number, next);
    else
        base_buf_printf(
            out, "t%u-%s-%u \"}\" ws \"}\"", number, b.is_first && !b.in_value ? "first" : "more", next);
    base_buf_printf(out, "%s rest\n", remote_gbnf_ending(style));
    return true;
}
