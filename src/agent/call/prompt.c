/*
 * The fixed prompt (contract: prompt.h): a system text with the tools as one line each, then two worked
 * examples in the family's own way of writing calls. What they show was measured on Qwen2.5-Coder-1.5B: it
 * follows examples, hardly rules; it answers from excerpts when they stand in front of the question; and it
 * repairs code by rewriting one whole definition, not by editing lines.
 */
#include "agent/call/prompt.h"

#include <stdlib.h>
#include <string.h>

#include "agent/call/call_gemma.h"
#include "agent/call/call_xml.h"
#include "base/hash.h"
#include "base/mem.h"

const char agent_prompt_excerpts[] = "Excerpts from the tree:\n\n";
const char agent_prompt_request[] = "Request: ";
const char agent_prompt_one[] = " Name the one.";

void agent_prompt_excerpt_head(
    const char *path, uint32_t line, uint32_t line_end, const char *name, base_buf *out)
{
    base_buf_printf(out, "--- %s:%u-%u", path, line, line_end);
    if (name && *name) base_buf_printf(out, " (%s)", name);
    base_buf_putc(out, '\n');
}

/* What stands around a call that is JSON. */
static const char *const around[][2] = {
    [MODEL_TOOLS_TAG_TOOLS] = {"<tools>", "</tools>"},
    [MODEL_TOOLS_HERMES] = {"<tool_call>\n", "\n</tool_call>"},
    [MODEL_TOOLS_XML] = {NULL, NULL},
    [MODEL_TOOLS_SEED] = {NULL, NULL},
    [MODEL_TOOLS_HARMONY] = {NULL, NULL}, /* what stands around it is no text: control tokens */
    [MODEL_TOOLS_MISTRAL] = {NULL, NULL}, /* the same */
    [MODEL_TOOLS_MISTRAL_IDS] = {NULL, NULL},
    [MODEL_TOOLS_GEMMA] = {NULL, NULL},
    [MODEL_TOOLS_GRANITE] = {NULL, NULL},
    [MODEL_TOOLS_NEMO] = {NULL, NULL},
    [MODEL_TOOLS_JSON] = {"", ""},
};

/*
 * What stands around the name and behind the arguments of a call between control tokens: text and marks. id: the mark that
 * a call's id stands behind; last: what it stands behind that is the last of a call; NULL: it has none.
 */
static const struct {
    const char *before[2], *id, *between[4], *last, *behind;
} marked[] = {
    [MODEL_TOOLS_HARMONY] = {{"<|channel|>", "commentary to=functions."}, NULL,
        {" ", "<|constrain|>", "json", "<|message|>"}, NULL, "<|call|>"},
    [MODEL_TOOLS_MISTRAL] = {{"[TOOL_CALLS]"}, NULL, {"[ARGS]"}, NULL, ""},
    [MODEL_TOOLS_MISTRAL_IDS] = {{"[TOOL_CALLS]"}, "[CALL_ID]", {"[ARGS]"}, NULL, ""},
    [MODEL_TOOLS_GRANITE] = {{"<|tool_call|>", "[{\"name\": \""}, NULL, {"\", \"arguments\": "}, NULL, "}]"},
    [MODEL_TOOLS_NEMO] = {{"[TOOL_CALLS]", "[{\"name\": \""}, NULL, {"\", \"arguments\": "}, ", \"id\": \"",
        "\"}]"},
};

static void put_mark(const char *mark, bool is_token, base_buf *out)
{
    if (!mark) return;
    const char last = *mark ? mark[strlen(mark) - 1] : '\0';
    const bool is_mark = is_token && ((*mark == '<' && last == '>') || (*mark == '[' && last == ']'));
    if (is_mark) base_buf_putc(out, AGENT_PROMPT_MARK);
    base_buf_puts(out, mark);
    if (is_mark) base_buf_putc(out, AGENT_PROMPT_MARK);
}

/* No byte of it begins a mark. */
static void put_content(const char *text, size_t n, base_buf *out)
{
    for (size_t i = 0; i < n; i++)
        if (text[i] != AGENT_PROMPT_MARK) base_buf_putc(out, text[i]);
}

/* Nine letters or digits, as a model gives its own calls: of what is called, so that the same session has the same ids. */
static void put_id(const char *json, base_buf *out)
{
    static const char characters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    uint64_t hash = base_hash64(json, strlen(json), 0);
    for (int i = 0; i < 9; i++, hash /= sizeof characters - 1)
        base_buf_putc(out, characters[hash % (sizeof characters - 1)]);
}

/* json: {"name": "NAME", "arguments": ARGUMENTS, and its last } where it is whole. */
static void put_marked_call(model_tool_style style, const char *json, bool is_open, base_buf *out)
{
    static const char head[] = "{\"name\": \"", middle[] = "\", \"arguments\": ";
    const char *name = json + sizeof head - 1, *end = strstr(name, middle);
    if (!end) return;
    const char *arguments = end + sizeof middle - 1;
    for (size_t i = 0; i < sizeof marked[0].before / sizeof *marked[0].before; i++)
        put_mark(marked[style].before[i], is_open, out);
    put_content(name, (size_t)(end - name), out);
    put_mark(marked[style].id, is_open, out);
    if (marked[style].id) put_id(json, out);
    for (size_t i = 0; i < sizeof marked[0].between / sizeof *marked[0].between; i++)
        put_mark(marked[style].between[i], is_open, out);
    put_content(arguments, strlen(arguments) - !is_open, out);
    if (is_open) return;
    if (marked[style].last) {
        base_buf_puts(out, marked[style].last);
        put_id(json, out);
    }
    base_buf_puts(out, marked[style].behind);
}

void agent_prompt_call(model_tool_style style, const char *json, base_buf *out)
{
    if (style == MODEL_TOOLS_GEMMA)
        agent_call_gemma_put(json, NULL, false, out);
    else if (model_tools_are_marked(style))
        put_marked_call(style, json, false, out);
    else if (model_tools_are_xml(style))
        agent_call_xml_put(style, json, NULL, false, out);
    else
        base_buf_printf(out, "%s%s%s", around[style][0], json, around[style][1]);
}

void agent_prompt_open_call(model_tool_style style, const char *json, base_buf *out)
{
    if (style == MODEL_TOOLS_GEMMA)
        agent_call_gemma_put(json, NULL, true, out);
    else if (model_tools_are_marked(style))
        put_marked_call(style, json, true, out);
    else if (model_tools_are_xml(style))
        agent_call_xml_put(style, json, NULL, true, out);
    else
        base_buf_printf(out, "%s%s", around[style][0], json);
}

void agent_prompt_open_payload(model_tool_style style, const char *json, const char *language, base_buf *out)
{
    if (model_tools_are_xml(style)) {
        agent_call_xml_put(style, json, "", true, out);
        return;
    }
    if (style == MODEL_TOOLS_GEMMA) {
        agent_call_gemma_put(json, agent_call_xml_payload, true, out);
        return;
    }
    if (model_tools_are_marked(
            style)) { /* the payload is the last argument: in place of the last two braces */
        put_marked_call(style, json, true, out);
        while (out->len && out->data[out->len - 1] == '}') out->data[--out->len] = '\0';
        base_buf_printf(out, ", \"%s\": \"", agent_call_xml_payload);
        return;
    }
    agent_prompt_call(style, json, out);
    base_buf_printf(out, "\n```%s\n", language);
}

void agent_prompt_put_payload(model_tool_style style, const char *text, size_t n, base_buf *out)
{
    base_buf quoted = {0};
    if (style == MODEL_TOOLS_GEMMA) {
        put_content(text, n, out);
        return;
    }
    if (!model_tools_are_marked(style)) {
        base_buf_add(out, text, n);
        return;
    }
    base_json_put_str(&quoted, text, n);
    base_buf_add(out, quoted.data + 1, quoted.len - 2);
    base_buf_free(&quoted);
}

void agent_prompt_open_thought(model_tool_style style, base_buf *out)
{
    if (style != MODEL_TOOLS_HARMONY) return;
    put_mark("<|channel|>", true, out);
    base_buf_puts(out, "analysis");
    put_mark("<|message|>", true, out);
}

void agent_prompt_end_thought(model_tool_style style, bool is_ended, base_buf *out)
{
    if (style != MODEL_TOOLS_HARMONY) return;
    if (!is_ended) put_mark("<|end|>", true, out);
    put_mark("<|start|>", true, out);
    base_buf_puts(out, "assistant");
}

void agent_prompt_close_thought(model_tool_style style, bool again, base_buf *out)
{
    if (style == MODEL_TOOLS_HARMONY) {
        agent_prompt_end_thought(style, false, out);
        if (!again) return;
        put_mark("<|channel|>", true, out);
        base_buf_puts(out, "final");
        put_mark("<|message|>", true, out);
    } else if (model_tools_are_mistral(style)) {
        put_mark("[/THINK]", true, out);
    } else if (style == MODEL_TOOLS_GEMMA) {
        base_buf_putc(out, '\n');
        put_mark("<channel|>", true, out);
    } else if (style == MODEL_TOOLS_SEED) {
        put_mark("</seed:think>", true, out);
        base_buf_putc(out, '\n');
    } else {
        put_mark("</think>", true, out);
        base_buf_puts(out, "\n\n");
    }
}

/* A call with its payload; NULL: it has none. */
static void put_whole_call(
    model_tool_style style, const char *json, const char *payload, const char *language, base_buf *out)
{
    if (payload && model_tools_are_xml(style)) {
        agent_call_xml_put(style, json, payload, false, out);
        return;
    }
    agent_prompt_call(style, json, out);
    if (payload) base_buf_printf(out, "\n```%s\n%s```", language, payload);
}

static bool is_told(tool_models models, bool strong)
{
    return models == TOOL_FOR_ALL || models == (strong ? TOOL_FOR_STRONG : TOOL_FOR_SMALL);
}

bool agent_prompt_offers(const tool_entry *t, bool strong)
{
    return is_told(t->models, strong);
}

/* name {"path": file, "from"?: first line}: what it does. */
static void put_tool(const tool_entry *t, bool strong, base_buf *out)
{
    base_buf_printf(out, "%s {", t->name);
    for (const tool_argument *a = t->arguments; a && a->name; a++) {
        if (!is_told(a->models, strong)) continue;
        base_buf_printf(out, "%s\"%s\"%s: ", a == t->arguments ? "" : ", ", a->name, a->required ? "" : "?");
        for (const char *const *c = a->choices; c && *c; c++)
            base_buf_printf(out, "%s%s", c == a->choices ? "" : "|", *c);
        if (!a->choices) base_buf_puts(out, a->about);
    }
    base_buf_printf(out, "}: %s\n", t->about);
}

/* TypeScript, as gpt-oss's template writes the schema of an argument. */
static void put_type(const tool_argument *a, base_buf *out)
{
    const bool is_number = a->type == TOOL_ARGUMENT_INTEGER;
    for (const char *const *c = a->choices; c && *c; c++)
        base_buf_printf(out, "%s\"%s\"", c == a->choices ? "" : " | ", *c);
    if (!a->choices)
        base_buf_puts(out, is_number ? "number" : a->type == TOOL_ARGUMENT_BOOLEAN ? "boolean" : "string");
}

static void put_typed_tool(const tool_entry *t, bool strong, base_buf *out)
{
    base_buf_printf(out, "// %s\ntype %s = ", t->about, t->name);
    bool any = false;
    for (const tool_argument *a = t->arguments; a && a->name; a++) {
        if (!is_told(a->models, strong)) continue;
        base_buf_printf(
            out, "%s// %s\n%s%s: ", any ? "" : "(_: {\n", a->about, a->name, a->required ? "" : "?");
        put_type(a, out);
        base_buf_puts(out, ",\n");
        any = true;
    }
    if (t->takes_payload)
        base_buf_printf(
            out, "%s// the new text\n%s: string,\n", any ? "" : "(_: {\n", agent_call_xml_payload);
    base_buf_puts(out, any || t->takes_payload ? "}) => any;\n\n" : "() => any;\n\n");
}

/* What a model is told that was taught its own form of calls. */
static void put_native_rules(bool strong, bool several, base_buf *out)
{
    base_buf_printf(out,
        "You are kvist, a coding agent. You work on the user's source tree with tools. "
        "Excerpts of the tree stand in front of a request: they are real. Answer from excerpts "
        "and tool results only, in a few sentences; name functions and their files. %s\n\n"
        "To change code: have its text in front of you (else read it), call %s, then "
        "test with shell. A call that failed is not repeated: do what its message says.",
        several ? "Calls that do not need each other's results may stand in one message: they are made in "
                  "their order, and their results come back."
                : "One call at a time: its result comes back.",
        strong ? "edit" : "rewrite with the whole new definition as its content");
}

/* The developer message of gpt-oss: what the model is told, then the functions that it may call. */
static char *developer_text(bool strong)
{
    base_buf out = {0};
    put_native_rules(strong, false, &out); /* its <|call|> ends the message */
    base_buf_puts(&out, "\n\n# Tools\n\n## functions\n\nnamespace functions {\n\n");
    uint32_t n;
    const tool_entry *const *table = tool_table(&n);
    for (uint32_t i = 0; i < n; i++)
        if (agent_prompt_offers(table[i], strong)) put_typed_tool(table[i], strong, &out);
    base_buf_puts(&out, "} // namespace functions");
    return base_buf_take(&out);
}

static void put_schema(const tool_argument *a, base_buf *out)
{
    static const char *const types[] = {[TOOL_ARGUMENT_STRING] = "string",
        [TOOL_ARGUMENT_INTEGER] = "integer",
        [TOOL_ARGUMENT_BOOLEAN] = "boolean",
        [TOOL_ARGUMENT_CHOICE] = "string",
        [TOOL_ARGUMENT_PATH] = "string",
        [TOOL_ARGUMENT_SYMBOL] = "string"};
    base_json_put_str(out, a->name, strlen(a->name));
    base_buf_printf(out, ": {\"type\": \"%s\"", types[a->type]);
    for (const char *const *c = a->choices; c && *c; c++) {
        base_buf_puts(out, c == a->choices ? ", \"enum\": [" : ", ");
        base_json_put_str(out, *c, strlen(*c));
    }
    if (a->choices) base_buf_putc(out, ']');
    if (a->about) {
        base_buf_puts(out, ", \"description\": ");
        base_json_put_str(out, a->about, strlen(a->about));
    }
    base_buf_putc(out, '}');
}

enum { MAX_TOLD = 32 };

/* The arguments that a model is told of, new text as the last one. Returns how many. */
static size_t told_arguments(const tool_entry *t, bool strong, const tool_argument *ret[MAX_TOLD])
{
    static const tool_argument payload = {.name = agent_call_xml_payload,
        .about = "the new text",
        .required = true,
        .type = TOOL_ARGUMENT_STRING};
    size_t n = 0;
    for (const tool_argument *a = t->arguments; a && a->name && n < MAX_TOLD - 1; a++)
        if (is_told(a->models, strong)) ret[n++] = a;
    if (t->takes_payload) ret[n++] = &payload;
    return n;
}

/* A function as OpenAI's API describes one, written as Python's json.dumps does: what templates make of tojson. */
static void put_function(const tool_entry *t, bool strong, base_buf *out)
{
    const tool_argument *told[MAX_TOLD];
    const size_t n = told_arguments(t, strong, told);
    base_buf required = {0};
    base_buf_puts(out, "{\"type\": \"function\", \"function\": {\"name\": ");
    base_json_put_str(out, t->name, strlen(t->name));
    base_buf_puts(out, ", \"description\": ");
    base_json_put_str(out, t->about, strlen(t->about));
    base_buf_puts(out, ", \"parameters\": {\"type\": \"object\", \"properties\": {");
    for (size_t i = 0; i < n; i++) {
        if (i) base_buf_puts(out, ", ");
        put_schema(told[i], out);
        if (!told[i]->required) continue;
        if (required.len) base_buf_puts(&required, ", ");
        base_json_put_str(&required, told[i]->name, strlen(told[i]->name));
    }
    base_buf_printf(out, "}, \"required\": [%s]}}}", required.data ? required.data : "");
    base_buf_free(&required);
}

/* JSON on one line as json.dumps writes it with indent=4. */
static char *indented(const char *json)
{
    base_buf out = {0};
    int depth = 0;
    bool in_text = false;
    for (const char *p = json; *p; p++) {
        const bool is_empty = (*p == '[' && p[1] == ']') || (*p == '{' && p[1] == '}');
        const bool opens = !in_text && strchr("[{", *p) && !is_empty;
        const bool closes = !in_text && strchr("]}", *p) && !(p > json && strchr("[{", p[-1]));
        const bool divides = !in_text && *p == ',';
        depth += opens - closes;
        if (closes) base_buf_printf(&out, "\n%*s", 4 * depth, "");
        base_buf_putc(&out, *p);
        if (opens || divides) base_buf_printf(&out, "\n%*s", 4 * depth, "");
        if (divides && p[1] == ' ') p++;
        if (in_text && *p == '\\' && p[1])
            base_buf_putc(&out, *++p);
        else if (*p == '"')
            in_text = !in_text;
    }
    return base_buf_take(&out);
}

static char *functions_text(model_tool_style style, bool strong)
{
    base_buf out = {0};
    uint32_t n;
    const tool_entry *const *table = tool_table(&n);
    for (uint32_t i = 0; i < n; i++) {
        if (!agent_prompt_offers(table[i], strong)) continue;
        base_buf_puts(&out, out.len ? ", " : "[");
        put_function(table[i], strong, &out);
    }
    base_buf_putc(&out, ']');
    if (style != MODEL_TOOLS_GRANITE) return base_buf_take(&out);
    char *lines = indented(out.data);
    base_buf_free(&out);
    return lines;
}

static void put_declarations(bool strong, base_buf *out)
{
    const tool_argument *told[MAX_TOLD];
    uint32_t n;
    const tool_entry *const *table = tool_table(&n);
    for (uint32_t i = 0; i < n; i++) {
        if (!agent_prompt_offers(table[i], strong)) continue;
        const size_t n_told = told_arguments(table[i], strong, told);
        agent_call_gemma_declare(table[i], told, n_told, out);
    }
}

static char *system_text(model_tool_style style, bool strong)
{
    base_buf out = {0};
    if (style == MODEL_TOOLS_HARMONY) return developer_text(strong);
    if (model_tools_are_marked(style)) {
        put_native_rules(strong, strong && !model_tools_are_lists(style), &out);
        if (style == MODEL_TOOLS_GRANITE) { /* its template's words */
            base_buf_puts(&out, " When a tool is required to answer the user's query, respond only with ");
            put_mark("<|tool_call|>", true, &out);
            base_buf_puts(&out, " followed by a JSON list of tools used.");
        }
        if (style == MODEL_TOOLS_GEMMA) put_declarations(strong, &out);
        return base_buf_take(&out);
    }
    base_buf_printf(&out,
        "You are kvist, a coding agent. You work on the user's source tree with tools. "
        "Excerpts of the tree stand in front of a request: they are real. Answer from excerpts "
        "and tool results only, in a few sentences; name functions and their files.\n\n"
        "To use a tool, write one call on a line of its own%s and stop; %s:\n",
        strong ? ", or several, if none needs another's result," : "",
        strong ? "they are made in their order, and their results come back" : "its result comes back");
    agent_prompt_call(style, "{\"name\": \"read\", \"arguments\": {\"path\": \"src/main.c\"}}", &out);
    base_buf_puts(&out, "\n\nTools (? marks what may be left out):\n");
    uint32_t n;
    const tool_entry *const *table = tool_table(&n);
    for (uint32_t i = 0; i < n; i++)
        if (agent_prompt_offers(table[i], strong)) put_tool(table[i], strong, &out);
    base_buf_printf(&out,
        "\nTo change code: have its text in front of you (else read it), call %s, then "
        "test with shell. A call that failed is not repeated: do what its message says.",
        strong ? "edit"
        : model_tools_are_xml(style)
            ? "rewrite with the whole new definition as its content"
            : "rewrite with the whole new definition in a fenced block behind the call");
    return base_buf_take(&out);
}

/* A message of an example: text, then a call, then what the call is about to write. */
typedef struct example {
    model_role role;
    const char *text, *call, *payload;
} example;

static const example small_examples[] = {
    {MODEL_ROLE_USER,
        "Excerpts from the tree:\n\n"
        "--- src/ring.c:41-47 (ring_drop)\n"
        "void ring_drop(struct ring *r)\n{\n    if (!r) return;\n    free(r->slots);\n    free(r);\n}\n\n"
        "--- src/ring.c:12-16 (ring_put)\n"
        "bool ring_put(struct ring *r, void *item)\n"
        "{\n"
        "    if (r->n == r->cap) return false;\n"
        "    r->slots[r->n++] = item;\n"
        "    return true;\n}\n\n"
        "Request: Which function frees a ring, and where is it defined?",
        NULL, NULL},
    {MODEL_ROLE_ASSISTANT,
        "`ring_drop` frees a ring: first its slots, then the ring itself. It is defined in src/ring.c.", NULL,
        NULL},
    {MODEL_ROLE_USER,
        "Excerpts from the tree:\n\n"
        "--- shop/total.py:8-13 (add_up)\n"
        "def add_up(prices):\n"
        "    total = 0\n"
        "    for price in prices[1:]:\n"
        "        total += price\n"
        "    return total\n\n"
        "--- tests/test_total.py:3-4 (test_add_up)\n"
        "def test_add_up():\n    assert add_up([2, 3]) == 5\n\n"
        "$ python3 -m pytest -q -x --tb=short tests/test_total.py\n"
        "exit code 1\n"
        "tests/test_total.py:4: in test_add_up\n"
        "    assert add_up([2, 3]) == 5\n"
        "E   assert 3 == 5\n\n"
        "Request: tests/test_total.py fails; fix it.",
        NULL, NULL},
    {MODEL_ROLE_ASSISTANT,
        "add_up([2, 3]) gives 3: it skips the first price. The loop must run over all prices.\n",
        "{\"name\": \"rewrite\", \"arguments\": {\"path\": \"shop/total.py\", \"name\": \"add_up\"}}",
        "def add_up(prices):\n"
        "    total = 0\n"
        "    for price in prices:\n"
        "        total += price\n"
        "    return total\n"},
    {MODEL_ROLE_TOOL,
        "rewrote add_up in shop/total.py, now lines 8-13.\n"
        "$ python3 -m pytest -q -x --tb=short tests/test_total.py\n"
        "exit code 0\n1 passed",
        NULL, NULL},
    {MODEL_ROLE_ASSISTANT, "Fixed: `add_up` in shop/total.py left out the first price. The test passes now.",
        NULL, NULL},
    {MODEL_ROLE_USER, "Request: How many tests are there? Run them.", NULL, NULL},
    {MODEL_ROLE_ASSISTANT, "",
        "{\"name\": \"shell\", \"arguments\": {\"command\": \"python3 -m pytest -q\"}}", NULL},
    {MODEL_ROLE_TOOL, "exit code 0\n7 passed", NULL, NULL},
    {MODEL_ROLE_ASSISTANT, "There are 7 tests, and all of them pass.", NULL, NULL},
};

bool agent_prompt_defines(const char *name)
{
    base_buf head = {0}; /* of an excerpt: "--- shop/total.py:8-13 (add_up)" */
    bool is = false;
    base_buf_printf(&head, " (%s)\n", name);
    for (size_t i = 0; i < sizeof small_examples / sizeof *small_examples && !is; i++)
        is = strstr(small_examples[i].text, head.data) != NULL;
    base_buf_free(&head);
    return is;
}

/* Stronger models edit; they need the format shown once and nothing else. */
static const example strong_examples[] = {
    {MODEL_ROLE_USER, "Request: tests/test_total.py fails; fix it.", NULL, NULL},
    {MODEL_ROLE_ASSISTANT, "", "{\"name\": \"read\", \"arguments\": {\"path\": \"shop/total.py\"}}", NULL},
    {MODEL_ROLE_TOOL,
        "shop/total.py lines 1-5 of 5\n"
        "def add_up(prices):\n"
        "    total = 0\n"
        "    for price in prices[1:]:\n"
        "        total += price\n"
        "    return total",
        NULL, NULL},
    {MODEL_ROLE_ASSISTANT, "The loop skips the first price.\n",
        "{\"name\": \"edit\", \"arguments\": {\"path\": \"shop/total.py\", \"from\": 3, \"to\": 3}}",
        "    for price in prices:\n"},
    {MODEL_ROLE_TOOL, "edited shop/total.py (+1 -1)", NULL, NULL},
    {MODEL_ROLE_ASSISTANT, "",
        "{\"name\": \"shell\", \"arguments\": {\"command\": \"python3 -m pytest -q tests/test_total.py\"}}",
        NULL},
    {MODEL_ROLE_TOOL, "exit code 0\n1 passed", NULL, NULL},
    {MODEL_ROLE_ASSISTANT, "Fixed: `add_up` in shop/total.py left out the first price. The test passes now.",
        NULL, NULL},
};

static void add_part(agent_prompt *p, model_role role, char *text)
{
    base_grow(&p->parts, &p->cap, p->n + 1, sizeof *p->parts);
    p->parts[p->n++] = (agent_prompt_part){role, text};
}

void agent_prompt_build(model_tool_style style, bool strong, agent_prompt *ret)
{
    *ret = (agent_prompt){0};
    /* Nemo's tools stand in front of the request that its system text begins. */
    if (style == MODEL_TOOLS_NEMO) add_part(ret, MODEL_ROLE_TOOLS, functions_text(style, strong));
    add_part(ret, MODEL_ROLE_SYSTEM, system_text(style, strong));
    if (model_tools_are_mistral(style) || style == MODEL_TOOLS_GRANITE)
        add_part(ret, MODEL_ROLE_TOOLS, functions_text(style, strong));
    if (model_tools_are_marked(style)) return; /* it was taught its form, and needs no examples of ours */
    const example *examples = strong ? strong_examples : small_examples;
    size_t n = strong ? sizeof strong_examples / sizeof *examples : sizeof small_examples / sizeof *examples;
    for (size_t i = 0; i < n; i++) {
        base_buf text = {0};
        base_buf_puts(&text, examples[i].text);
        if (examples[i].call) put_whole_call(style, examples[i].call, examples[i].payload, "python", &text);
        add_part(ret, examples[i].role, base_buf_take(&text));
    }
}

void agent_prompt_free(agent_prompt *p)
{
    for (uint32_t i = 0; i < p->n; i++) free(p->parts[i].text);
    free(p->parts);
    *p = (agent_prompt){0};
}
