/*
 * The lenient call parser (contract: call.h). A candidate is a place where a call could begin; each form has
 * its own search for candidates, and the first candidate that reads as a call wins, form by form in the fixed
 * order.
 */
#include "agent/call/call.h"

#include <stdlib.h>
#include <string.h>

#include "agent/call/call_xml.h"
#include "base/mem.h"

enum { MAX_LINES_BEFORE_PAYLOAD = 3 };

const char *const agent_call_marks[] = {"<tools>", "<tool_call>", "<seed:tool_call>", "<function=", NULL};

void agent_call_free(agent_call *c)
{
    free(c->name);
    base_json_free(c->arguments);
    free(c->payload);
    *c = (agent_call){0};
}

/* --- fences --------------------------------------------------------------------------------------------- */

static size_t line_end(const char *text, size_t n, size_t at)
{
    const char *newline = memchr(text + at, '\n', n - at);
    return newline ? (size_t)(newline - text) : n;
}

/* How many backticks (or tildes) open a fence on this line; 0: none. */
static size_t fence_marks(const char *text, size_t from, size_t to)
{
    while (from < to && (text[from] == ' ' || text[from] == '\t')) from++;
    size_t marks = 0;
    while (from + marks < to && text[from + marks] == text[from] && memchr("`~", text[from], 2)) marks++;
    return marks >= 3 ? marks : 0;
}

static bool is_closing(const char *text, size_t from, size_t to, size_t marks)
{
    if (fence_marks(text, from, to) < marks) return false;
    while (from < to && memchr(" \t`~\r", text[from], 5)) from++;
    return from == to;
}

static size_t indent_of(const char *text, size_t from, size_t to)
{
    size_t n = 0;
    while (from + n < to && memchr(" \t", text[from + n], 2)) n++;
    return n;
}

/*
 * A line inside of a block that opens one of its own: an example in a comment ("    ```pycon"), whose end is not the
 * block's. Only further to the right: a model that forgot to close its block begins the next one at the margin.
 */
static bool opens_inner(const char *text, size_t from, size_t to, size_t outer)
{
    return fence_marks(text, from, to) && !is_closing(text, from, to, 3) && indent_of(text, from, to) > outer;
}

bool agent_fence_find(const char *text, size_t n, size_t at, agent_fence *ret)
{
    while (at < n) {
        size_t end = line_end(text, n, at), marks = fence_marks(text, at, end);
        if (!marks) {
            at = end + 1;
            continue;
        }
        agent_fence f = {.open = at, .from = end < n ? end + 1 : n};
        size_t word = at;
        while (word < end && memchr(" \t`~", text[word], 4)) word++;
        f.language.ptr = text + word;
        while (word < end && !memchr(" \t\r", text[word], 3)) word++, f.language.len++;
        size_t line = f.from;
        const size_t outer = indent_of(text, at, end);
        bool is_inner = false;
        while (line < n) {
            size_t stop = line_end(text, n, line);
            if (opens_inner(text, line, stop, outer)) {
                is_inner = true;
            } else if (is_inner && is_closing(text, line, stop, 3) && indent_of(text, line, stop) > outer) {
                is_inner = false;
            } else if (is_closing(text, line, stop, marks)) {
                /* At the text's end one further to the right may go on: it may open an inner one. */
                f.closed = stop < n || indent_of(text, line, stop) <= outer;
                f.to = line;
                f.end = stop < n ? stop + 1 : n;
                break;
            }
            line = stop + 1;
        }
        if (!f.end) f.to = f.end = n;
        *ret = f;
        return true;
    }
    return false;
}

/* --- one JSON object as a call -------------------------------------------------------------------------- */

static char *first_string(const base_json *object, const char *const *keys)
{
    for (; *keys; keys++) {
        const char *s = base_json_str(object, *keys, NULL);
        if (s && *s) return base_xstrdup(s);
    }
    return NULL;
}

/*
 * {"name": .., "arguments": {..}} and its relatives ("function", "tool", "parameters", arguments as a string
 * of JSON).
 */
static bool read_object(const base_json *root, agent_call *call)
{
    static const char *const names[] = {"name", "tool", "tool_name", "function", NULL};
    static const char *const arguments[] = {"arguments", "parameters", "args", "input", "params", NULL};
    if (root && root->type == BASE_JSON_ARRAY) root = base_json_at(root, 0); /* one call at a time */
    if (!root || root->type != BASE_JSON_OBJECT) return false;
    const base_json *inner = base_json_get(root, "function");
    if (inner && inner->type == BASE_JSON_OBJECT) root = inner;
    call->name = first_string(root, names);
    if (!call->name) return false;
    const base_json *value = NULL;
    for (const char *const *key = arguments; *key && !value; key++) value = base_json_get(root, *key);
    base_buf text = {0};
    bool complete;
    if (value && value->type == BASE_JSON_STRING)
        base_json_repair(value->string, value->string_len, &text, &complete);
    else if (value && value->type == BASE_JSON_OBJECT)
        base_json_put(&text, value);
    else if (!value) { /* flat: the members beside the name are the arguments */
        base_buf_putc(&text, '{');
        for (const base_json *m = root->first; m; m = m->next) {
            if (m->type == BASE_JSON_STRING && !strcmp(m->string, call->name)) continue;
            if (text.len > 1) base_buf_putc(&text, ',');
            base_json_put_str(&text, m->key, strlen(m->key));
            base_buf_putc(&text, ':');
            base_json_put(&text, m);
        }
        base_buf_putc(&text, '}');
    }
    if (!text.len || text.data[0] != '{' || base_json_parse(text.data, text.len, &call->arguments, NULL))
        base_json_parse("{}", 2, &call->arguments, NULL);
    base_buf_free(&text);
    return true;
}

/*
 * A value at text: strict first, then repaired. Returns the bytes it took; 0 no value, or (not final) not all
 * of it yet.
 */
static size_t read_json(const char *text, size_t n, bool final, agent_call *call, bool *partial)
{
    base_json_doc *doc = NULL;
    size_t used = 0;
    *partial = false;
    if (base_json_parse_prefix(text, n, &used, &doc, NULL)) {
        base_buf strict = {0};
        bool complete = true;
        used = base_json_repair(text, n, &strict, &complete);
        bool good = used && (complete || final || used < n);
        *partial = used && !good;
        if (!good || base_json_parse(strict.data, strict.len, &doc, NULL)) used = 0;
        base_buf_free(&strict);
    }
    if (used && !read_object(base_json_root(doc), call)) used = 0;
    base_json_free(doc);
    return used;
}

/* --- payload -------------------------------------------------------------------------------------------- */

static void set_payload(agent_call *call, const char *text, size_t from, size_t to)
{
    call->payload = base_xstrndup(text + from, to - from);
    call->payload_n = to - from;
}

/* Models that know no payload write it as an argument. */
static void payload_from_arguments(agent_call *call)
{
    static const char *const keys[] = {
        "body", "content", "code", "text", "new", "definition", "new_text", "new_string", NULL};
    call->payload = first_string(base_json_root(call->arguments), keys);
    if (call->payload) call->payload_n = strlen(call->payload);
}

/*
 * The fenced block behind a call that wants one. PARTIAL while it may still come: it must begin within a few
 * lines.
 */
static agent_call_found find_payload(const char *text, size_t n, bool final, agent_call *call)
{
    agent_fence f;
    bool found = agent_fence_find(text, n, call->to, &f);
    size_t lines = 0, prose_end = found ? f.open : n;
    for (size_t at = call->to; at < prose_end; at = line_end(text, n, at) + 1) {
        size_t end = line_end(text, n, at);
        bool blank = true;
        for (size_t i = at; i < end; i++) blank = blank && memchr(" \t\r", text[i], 3);
        lines += !blank && end < n;
    }
    if (found && lines <= MAX_LINES_BEFORE_PAYLOAD) {
        if (!f.closed && !final) return AGENT_CALL_PARTIAL;
        set_payload(call, text, f.from, f.to);
        call->to = f.end;
        return AGENT_CALL_FOUND;
    }
    if (!final && lines <= MAX_LINES_BEFORE_PAYLOAD && !found) {
        payload_from_arguments(call);
        return call->payload ? AGENT_CALL_FOUND : AGENT_CALL_PARTIAL;
    }
    payload_from_arguments(call);
    agent_fence last = {0};
    for (size_t at = 0; !call->payload && agent_fence_find(text, call->from, at, &f); at = f.end) last = f;
    if (!call->payload && last.to > last.from && final && last.closed)
        set_payload(call, text, last.from, last.to);
    return AGENT_CALL_FOUND;
}

/* --- forms ---------------------------------------------------------------------------------------------- */

static const char *find_text(const char *text, size_t n, size_t at, const char *what)
{
    return at < n ? memmem(text + at, n - at, what, strlen(what)) : NULL;
}

static size_t skip_space(const char *text, size_t n, size_t at)
{
    while (at < n && memchr(" \t\r\n", text[at], 4)) at++;
    return at;
}

/* <function=NAME> at `at`, of a call that begins at `open`. */
static agent_call_found read_function(
    const char *text, size_t n, bool final, size_t open, size_t at, agent_call *call)
{
    bool partial;
    const size_t used = agent_call_xml_read(text + at, n - at, final, call, &partial);
    if (partial) {
        agent_call_free(call);
        return AGENT_CALL_PARTIAL;
    }
    if (!used) return AGENT_CALL_NONE;
    call->from = open;
    call->to = at + used;
    call->is_function = true;
    return AGENT_CALL_FOUND;
}

/* The call behind an opening tag. NONE: there is none at this tag. */
static agent_call_found read_tagged(
    const char *text, size_t n, bool final, size_t open, const char *tag, const char *close, agent_call *call)
{
    size_t at = skip_space(text, n, open + strlen(tag));
    if (at < n && text[at] == '`')
        at = skip_space(text, n, line_end(text, n, at)); /* a fence inside the tag */
    if (at == n) return final ? AGENT_CALL_NONE : AGENT_CALL_PARTIAL;
    if (text[at] == '<') return read_function(text, n, final, open, at, call);
    if (text[at] != '{' && text[at] != '[') return AGENT_CALL_NONE;
    bool partial;
    size_t used = read_json(text + at, n - at, final, call, &partial);
    if (!used) return partial ? AGENT_CALL_PARTIAL : AGENT_CALL_NONE;
    call->from = open;
    call->to = at + used;
    /*
     * The tag's end, unless the model forgot it. An extra brace or the inner fence's end may stand before it.
     */
    size_t behind = call->to;
    while (behind < n && memchr(" \t\r\n}]`,;", text[behind], 9)) behind++;
    size_t left = n - behind, want = strlen(close);
    if (left >= want && !memcmp(text + behind, close, want))
        call->to = behind + want;
    else if (!final && (left == 0 || (left < want && !memcmp(text + behind, close, left))))
        return AGENT_CALL_PARTIAL;
    return AGENT_CALL_FOUND;
}

/* A payload that is a parameter ends where its last line does. */
static bool take_content(agent_call *call)
{
    const char *content = base_json_str(base_json_root(call->arguments), agent_call_xml_payload, NULL);
    if (!content || !call->is_function) return false;
    const size_t n = strlen(content);
    base_buf text = {0};
    base_buf_add(&text, content, n);
    if (n && content[n - 1] != '\n') base_buf_putc(&text, '\n');
    call->payload_n = text.len;
    call->payload = text.len ? base_buf_take(&text) : base_xstrdup("");
    return true;
}

/* What is read: the text so far, whether it ends here, and who knows the tools' names. */
typedef struct reading {
    const char *text;
    size_t n;
    bool final;
    agent_call_known_fn *known;
    const void *user;
} reading;

static agent_call_found finish(const reading *r, agent_call *call)
{
    if (r->known(r->user, call->name) != 1) return AGENT_CALL_FOUND;
    if (take_content(call)) return AGENT_CALL_FOUND;
    return find_payload(r->text, r->n, r->final, call);
}

static bool is_known(const reading *r, const agent_call *call)
{
    return r->known(r->user, call->name) >= 0;
}

/* A call between two tags. */
typedef struct tags {
    const char *open, *close, *form;
} tags;

static agent_call_found parse_tagged(const reading *r, const tags *t, agent_call *call)
{
    for (const char *open; (open = find_text(r->text, r->n, call->to, t->open));) {
        size_t from = (size_t)(open - r->text);
        agent_call_found found = read_tagged(r->text, r->n, r->final, from, t->open, t->close, call);
        if (found == AGENT_CALL_FOUND) {
            call->form = t->form;
            return finish(r, call);
        }
        if (found == AGENT_CALL_PARTIAL) return found;
        agent_call_free(call);
        call->to = from + strlen(t->open);
    }
    return AGENT_CALL_NONE;
}

/* A function at the start of a line whose tag was forgotten, of a known tool. */
static agent_call_found parse_function(const reading *r, agent_call *call)
{
    const char *text = r->text;
    const size_t n = r->n;
    static const char open[] = "<function=";
    for (const char *found; (found = find_text(text, n, call->to, open));) {
        const size_t at = (size_t)(found - text);
        const bool begins_line = at == 0 || text[at - 1] == '\n';
        const agent_call_found is =
            begins_line ? read_function(text, n, r->final, at, at, call) : AGENT_CALL_NONE;
        if (is == AGENT_CALL_PARTIAL) return is;
        if (is == AGENT_CALL_FOUND && is_known(r, call)) {
            call->form = "function";
            return finish(r, call);
        }
        agent_call_free(call);
        call->to = at + 1;
    }
    return AGENT_CALL_NONE;
}

static agent_call_found parse_fenced(const reading *r, agent_call *call)
{
    const char *text = r->text;
    const size_t n = r->n;
    agent_fence f;
    for (size_t at = 0; agent_fence_find(text, n, at, &f); at = f.end) {
        size_t start = skip_space(text, f.to, f.from);
        if (start == f.to || (text[start] != '{' && text[start] != '[')) continue;
        if (!f.closed && !r->final) return AGENT_CALL_PARTIAL;
        bool partial;
        size_t used = read_json(text + start, f.to - start, true, call, &partial);
        if (used && is_known(r, call)) {
            call->from = f.open;
            call->to = f.end;
            call->form = "fence";
            return finish(r, call);
        }
        agent_call_free(call);
    }
    return AGENT_CALL_NONE;
}

/* An object at the start of a line, outside fences, whose name is a known tool's. */
static agent_call_found parse_bare(const reading *r, agent_call *call)
{
    const char *text = r->text;
    const size_t n = r->n;
    for (size_t line = 0; line < n;) {
        size_t end = line_end(text, n, line), at = line;
        while (at < end && memchr(" \t", text[at], 2)) at++;
        if (at < end && fence_marks(text, line, end)) {
            agent_fence f;
            if (!agent_fence_find(text, n, line, &f)) return AGENT_CALL_NONE;
            line = f.end;
            continue;
        }
        if (at < end && text[at] == '{') {
            bool partial;
            size_t used = read_json(text + at, n - at, r->final, call, &partial);
            if (used && is_known(r, call)) {
                call->from = at;
                call->to = at + used;
                call->form = "bare";
                return finish(r, call);
            }
            agent_call_free(call);
            if (partial) return AGENT_CALL_PARTIAL;
            if (used) {
                line = line_end(text, n, at + used) + 1;
                continue;
            }
        }
        line = end + 1;
    }
    return AGENT_CALL_NONE;
}

/* May the text's end be the beginning of a tag or of a fence? Then a bare object is not looked for yet. */
static bool ends_inside_tag(const char *text, size_t n)
{
    for (const char *const *tag = agent_call_marks; *tag; tag++)
        for (size_t len = strlen(*tag); len > 0; len--)
            if (len <= n && !memcmp(text + n - len, *tag, len)) return true;
    return false;
}

agent_call_found agent_call_parse(
    const char *text, size_t n, bool final, agent_call_known_fn *known, const void *user, agent_call *ret)
{
    static const tags pairs[] = {{"<tools>", "</tools>", "tools"},
        {"<tool_call>", "</tool_call>", "tool_call"}, {"<seed:tool_call>", "</seed:tool_call>", "tool_call"}};
    static agent_call_found (*const untagged[])(const reading *r, agent_call *call) = {
        parse_function, parse_fenced, parse_bare};
    const reading r = {text, n, final, known, user};
    agent_call call = {0};
    agent_call_found found = AGENT_CALL_NONE;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs && found == AGENT_CALL_NONE; i++) {
        agent_call_free(&call);
        found = parse_tagged(&r, &pairs[i], &call);
    }
    for (size_t i = 0; i < sizeof untagged / sizeof *untagged && found == AGENT_CALL_NONE; i++) {
        agent_call_free(&call);
        found = untagged[i](&r, &call);
    }
    if (found == AGENT_CALL_NONE && !final && ends_inside_tag(text, n)) found = AGENT_CALL_PARTIAL;
    if (found == AGENT_CALL_FOUND)
        *ret = call;
    else
        agent_call_free(&call);
    return found;
}
