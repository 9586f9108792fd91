/* The call parser on what models really write; every fixture is also fed byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "agent/call/call.h"

static int known(const void *user, const char *name)
{
    static const char *const plain[] = {"list", "search", "read", "shell", "git", "recall"};
    if (!strcmp(name, "rewrite") || !strcmp(name, "write")) return 1;
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (!strcmp(name, plain[i])) return 0;
    return -1;
}

typedef struct fixture {
    const char *text, *name, *arguments, *payload, *form; /* name NULL: no call */
} fixture;

static const fixture fixtures[] = {
    {"<tools>{\"name\": \"read\", \"arguments\": {\"path\": \"a.c\"}}</tools>", "read", "{\"path\":\"a.c\"}",
        NULL, "tools"},
    {"I look.\n<tools>\n{\"name\": \"list\", \"arguments\": {}}\n</tools>\nDone", "list", "{}", NULL,
        "tools"},
    {"<tool_call>{\"name\":\"shell\",\"arguments\":{\"command\":\"ls\"}}</tool_call>", "shell",
        "{\"command\":\"ls\"}", NULL, "tool_call"},
    {"```json\n{\"name\": \"read\", \"arguments\": {\"path\": \"a.c\"}}\n```\n", "read", "{\"path\":\"a.c\"}",
        NULL, "fence"},
    {"{\"name\": \"search\", \"arguments\": {\"text\": \"foo\"}}", "search", "{\"text\":\"foo\"}", NULL,
        "bare"},
    {"<tools>{\"name\":\"rewrite\",\"arguments\":{\"path\":\"g.py\",\"name\":\"gcd\"}}</tools>\n"
     "```python\n"
     "def gcd(a, b):\n"
     "    return a\n"
     "```\n"
     "extra",
        "rewrite", "{\"path\":\"g.py\",\"name\":\"gcd\"}", "def gcd(a, b):\n    return a\n", "tools"},
    /* An example in a comment has a block of its own; one that was not closed is not the next one's. */
    {"<tools>{\"name\":\"rewrite\",\"arguments\":{\"path\":\"g.py\",\"name\":\"f\"}}</tools>\n"
     "```python\n"
     "def f():\n"
     "    \"\"\"\n"
     "    ```pycon\n"
     "    >>> f()\n"
     "    ```\n"
     "    \"\"\"\n"
     "    return 1\n"
     "```\n"
     "extra",
        "rewrite", "{\"path\":\"g.py\",\"name\":\"f\"}",
        "def f():\n    \"\"\"\n    ```pycon\n    >>> f()\n    ```\n    \"\"\"\n    return 1\n", "tools"},
    {"<tools>{\"name\":\"rewrite\",\"arguments\":{\"path\":\"g.py\",\"name\":\"f\"}}</tools>\n"
     "```python\n"
     "    x = 1\n"
     "    ```\n"
     "extra",
        "rewrite", "{\"path\":\"g.py\",\"name\":\"f\"}", "    x = 1\n", "tools"},
    /* repairs */
    {"<tools>{\"name\": \"shell\", \"arguments\": {\"command\": \"echo a\necho b\"}}</tools>", "shell",
        "{\"command\":\"echo a\\necho b\"}", NULL, "tools"},
    {"<tools>{'name': 'read', 'arguments': {'path': 'a.c',},}</tools>", "read", "{\"path\":\"a.c\"}", NULL,
        "tools"},
    {"<tools>{\"name\": \"shell\", \"arguments\": {\"command\": \"grep \"x y\" a\"}}</tools>", "shell",
        "{\"command\":\"grep \\\"x y\\\" a\"}", NULL, "tools"},
    {"<tools>{\"name\": \"read\", \"arguments\": {\"path\": \"a.c\"}</tools>", "read", "{\"path\":\"a.c\"}",
        NULL, "tools"},
    {"<tools>{\"name\": \"read\", \"arguments\": {\"path\": \"a.c\", \"whole\": True", "read",
        "{\"path\":\"a.c\",\"whole\":true}", NULL, "tools"},
    {"<tools>{name: read, arguments: {path: src/a.c, from: 12}}</tools>", "read",
        "{\"path\":\"src/a.c\",\"from\":12}", NULL, "tools"},
    {"<tools>{\"name\":\"search\",\"arguments\":{\"text\":\"\\d+\\u00e9\"}}</tools>", "search",
        "{\"text\":\"\\\\d+\xc3\xa9\"}", NULL, "tools"},
    /* relatives */
    {"<tools>[{\"name\":\"read\",\"arguments\":{\"path\":\"a\"}},{\"name\":\"list\"}]</tools>", "read",
        "{\"path\":\"a\"}", NULL, "tools"},
    {"<tools>{\"function\":{\"name\":\"read\",\"arguments\":\"{\\\"path\\\":\\\"a\\\"}\"}}</tools>", "read",
        "{\"path\":\"a\"}", NULL, "tools"},
    {"{\"tool\": \"read\", \"path\": \"a.c\"}", "read", "{\"path\":\"a.c\"}", NULL, "bare"},
    {"```xml\n<tools>{\"name\":\"list\",\"arguments\":{}}</tools>\n```", "list", "{}", NULL, "tools"},
    {"<tools>\n```json\n{\"name\":\"list\",\"arguments\":{}}\n```\n</tools>", "list", "{}", NULL, "tools"},
    {"<tools>{\"name\":\"rewrite\",\"arguments\":{\"path\":\"a\",\"name\":\"f\",\"body\":\"def "
     "f():\\n  pass\"}}</tools>",
        "rewrite", NULL, "def f():\n  pass", "tools"},
    {"Fix:\n"
     "```python\n"
     "def f(): pass\n"
     "```\n"
     "<tools>{\"name\":\"rewrite\",\"arguments\":{\"path\":\"a\",\"name\":\"f\"}}</tools>",
        "rewrite", "{\"path\":\"a\",\"name\":\"f\"}", "def f(): pass\n", "tools"},
    {"<tools>{\"name\":\"frobnicate\",\"arguments\":{}}</tools>", "frobnicate", "{}", NULL, "tools"},
    {"<tools> explains\n<tools>{\"name\":\"list\",\"arguments\":{}}</tools>", "list", "{}", NULL, "tools"},
    /* functions */
    {"I look.\n\n<tool_call>\n<function=read>\n<parameter=path>\na.c\n</parameter>\n<parameter=from>\n12\n"
     "</parameter>\n</function>\n</tool_call>",
        "read", "{\"path\":\"a.c\",\"from\":\"12\"}", NULL, "tool_call"},
    {"<function=shell>\n<parameter=command>\necho '</function>'\nls \"$x\" <y\n</parameter>\n</function>\n"
     "</tool_call>\n",
        "shell", "{\"command\":\"echo '</function>'\\nls \\\"$x\\\" <y\"}", NULL, "function"},
    {"<tool_call>\n"
     "<function=write>\n"
     "<parameter=path>\n"
     "a.py\n"
     "</parameter>\n"
     "<parameter=content>\n"
     "def f():\n"
     "    return \"</parameter>\"\n"
     "</parameter>\n"
     "</function>\n"
     "</tool_call>",
        "write", NULL, "def f():\n    return \"</parameter>\"\n", "tool_call"},
    {"<tool_call>\n"
     "<function=rewrite>\n"
     "<parameter=path>\n"
     "g.py\n"
     "</parameter>\n"
     "<parameter=name>\n"
     "gcd\n"
     "</parameter>\n"
     "</function>\n</tool_call>\n```python\ndef gcd(a, b):\n    return a\n```\n",
        "rewrite", "{\"path\":\"g.py\",\"name\":\"gcd\"}", "def gcd(a, b):\n    return a\n", "tool_call"},
    {"<tool_call><function=list></function></tool_call>", "list", "{}", NULL, "tool_call"},
    {"I do.\n<seed:tool_call>\n<function=write>\n<parameter=path>a.c</parameter>\n<parameter=content>if (a < b)\n    c;\n"
     "</parameter>\n</function>\n</seed:tool_call>",
        "write", NULL, "if (a < b)\n    c;\n", "tool_call"},
    {"<tool_call>\n<function=read>\n<parameter=path>a.c</parameter>\n</function>", "read",
        "{\"path\":\"a.c\"}", NULL, "tool_call"},
    {"<tool_call>\n<function=read>\n<parameter=path>\na.c", "read", "{\"path\":\"a.c\"}", NULL, "tool_call"},
    {"<tool_call>\n<function=search>\n<parameter=text>\n\n</parameter>\n</function>\n</tool_call>", "search",
        "{\"text\":\"\"}", NULL, "tool_call"},
    {"Write <function=name> for a call.\n<function=frobnicate>\n</function>", NULL, NULL, NULL, NULL},
    /* no calls */
    {"The answer is 42.", NULL, NULL, NULL, NULL},
    {"{\"name\": \"frobnicate\", \"arguments\": {}}", NULL, NULL, NULL, NULL},
    {"```json\n{\"name\": \"kvist\", \"version\": 1}\n```", NULL, NULL, NULL, NULL},
    {"```c\nint main(void) { return 0; }\n```\n{ not json", NULL, NULL, NULL, NULL},
    {"The <tools> tag holds calls.", NULL, NULL, NULL, NULL},
    {"use {\"name\": \"read\"} like this", NULL, NULL, NULL, NULL},
    {"", NULL, NULL, NULL, NULL},
};
enum { N_FIXTURES = sizeof fixtures / sizeof *fixtures };

static void write_arguments(const agent_call *c, base_buf *out)
{
    base_json_put(out, base_json_root(c->arguments));
}

static void test_call__reads_what_models_write(void **state)
{
    for (size_t i = 0; i < N_FIXTURES; i++) {
        const fixture *f = &fixtures[i];
        agent_call c = {0};
        agent_call_found found = agent_call_parse(f->text, strlen(f->text), true, known, NULL, &c);
        if (found != (f->name ? AGENT_CALL_FOUND : AGENT_CALL_NONE)) fail_msg("fixture %zu: %s", i, f->text);
        if (!f->name) continue;
        assert_string_equal(c.name, f->name);
        assert_string_equal(c.form, f->form);
        base_buf arguments = {0};
        write_arguments(&c, &arguments);
        if (f->arguments) assert_string_equal(arguments.data, f->arguments);
        if (f->payload)
            assert_string_equal(c.payload, f->payload);
        else
            assert_null(c.payload);
        assert_true(c.from <= c.to && c.to <= strlen(f->text));
        base_buf_free(&arguments);
        agent_call_free(&c);
    }
}

/*
 * Once a growing text has a call, more text never changes it; and it is found before anything that follows
 * it.
 */
static void test_call__found_once_stays_found(void **state)
{
    for (size_t i = 0; i < N_FIXTURES; i++) {
        const fixture *f = &fixtures[i];
        base_buf first = {0};
        for (size_t n = 0; n <= strlen(f->text); n++) {
            agent_call c = {0};
            agent_call_found found = agent_call_parse(f->text, n, false, known, NULL, &c);
            assert_true(found != AGENT_CALL_FOUND || f->name);
            if (first.len) assert_int_equal(found, AGENT_CALL_FOUND);
            if (found != AGENT_CALL_FOUND) continue;
            base_buf now = {0};
            base_buf_printf(&now, "%s %s ", c.name, c.payload ? c.payload : "-");
            write_arguments(&c, &now);
            if (first.len) assert_string_equal(now.data, first.data);
            base_buf_clear(&first);
            base_buf_puts(&first, now.data);
            base_buf_free(&now);
            agent_call_free(&c);
        }
        base_buf_free(&first);
    }
}

static void test_call__stops_early_enough(void **state)
{
    static const char text[] = "<tools>{\"name\":\"list\",\"arguments\":{}}</tools>";
    agent_call c = {0};
    assert_int_equal(agent_call_parse(text, sizeof text - 2, false, known, NULL, &c), AGENT_CALL_PARTIAL);
    assert_int_equal(agent_call_parse(text, sizeof text - 1, false, known, NULL, &c), AGENT_CALL_FOUND);
    agent_call_free(&c);
    static const char body[] =
        "<tools>{\"name\":\"write\",\"arguments\":{\"path\":\"a\"}}</tools>\n```\nx\n```\n";
    assert_int_equal(agent_call_parse(body, sizeof body - 5, false, known, NULL, &c), AGENT_CALL_PARTIAL);
    assert_int_equal(agent_call_parse(body, sizeof body - 1, false, known, NULL, &c), AGENT_CALL_FOUND);
    assert_string_equal(c.payload, "x\n");
    agent_call_free(&c);
}

static void test_call__a_payload_that_never_comes_is_left_out(void **state)
{
    static const char text[] =
        "<tools>{\"name\":\"write\",\"arguments\":{\"path\":\"a\"}}</tools>\none\ntwo\nthree\nfour\nfive\n";
    agent_call c = {0};
    assert_int_equal(agent_call_parse(text, sizeof text - 1, false, known, NULL, &c), AGENT_CALL_FOUND);
    assert_null(c.payload);
    agent_call_free(&c);
}

static void test_call__deep_nesting_is_bounded(void **state)
{
    char text[4000] = "<tools>";
    memset(text + 7, '[', sizeof text - 8);
    agent_call c = {0};
    assert_int_equal(agent_call_parse(text, sizeof text - 1, true, known, NULL, &c), AGENT_CALL_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_call__reads_what_models_write),
        cmocka_unit_test(test_call__found_once_stays_found),
        cmocka_unit_test(test_call__stops_early_enough),
        cmocka_unit_test(test_call__a_payload_that_never_comes_is_left_out),
        cmocka_unit_test(test_call__deep_nesting_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
