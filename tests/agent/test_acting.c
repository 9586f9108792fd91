/* Which function is to behave otherwise: by a name that several have, that reads as an order, or that stands for several. */
#include "agent/asked/asked.h"
#include "stage.h"

/* "path:name sure; f, g": what is meant, and what has to change. The caller frees. */
static char *meant_by(const char *request)
{
    host h = new_host();
    agent_session *s =
        open_session(&h, "answer Well.\nanswer Well.\nanswer Well.\n", AGENT_MODE_ALL, NULL, false);
    agent *a = agent_session_agent(s);
    base_buf out = {0};
    a->settings.tries = 0;
    submit(s, &h, request);
    for (uint32_t i = 0; i < a->asked.n_meant && a->asked.n_meant == 1; i++)
        base_buf_printf(&out, "%s%s:%s", i ? " " : "", a->asked.meant[i].path, a->asked.meant[i].name);
    for (uint32_t i = 0; i < a->asked.n_wishes; i++)
        base_buf_printf(&out, "%s%s", i ? ", " : "; ", a->asked.wishes[i].name);
    agent_session_close(s);
    free_host(&h);
    return out.data ? base_buf_take(&out) : base_xstrdup("");
}

static void test_acting__is_found(void **state)
{
    static const struct {
        const char *request, *meant;
    } cases[] = {
        {"Add in lru.py should keep a list.", "lru.py:Lru.Add; Lru.Add"},
        {"Add of Lru should keep a list.", "lru.py:Lru.Add; Lru.Add"},
        {"In arc.py, Add should keep a list.", "arc.py:Arc.Add; Arc.Add"},
        {"In lru, Resize should treat 0 as 1.", "lru.py:Lru.Resize; Lru.Resize"},
        {"The error of `Resize` in arc should say the size.", "arc.py:Arc.Resize; Arc.Resize"},
        {"dedupe in arc should skip empty names.", "arc.py:dedupe; dedupe"},
        {"dedupe should skip empty names.", ""}, /* the model finds it */
        {"Resize should treat 0 as 1.", ""},     /* which of them? */
        {"format_* should give an upper name.", "; format_a, format_b"},
        {"All *_name functions should trim.", "; first_name, last_name"},
        {"f should give 2*x or a*b.", ""},
        {"dedupe should give a list, and first_name should give None for an empty x.",
            "; dedupe, first_name"},
        {"Let dedupe give a list and make `first_name` give None.", "; dedupe, first_name"},
        {"dedupe should give a list, as first_name does.", ""},
        {"repr() of an empty Lru raises an IndexError.", "lru.py:Lru.__repr__; Lru.__repr__"},
        {"The str of a Lru should say its size.", "lru.py:Lru.__str__; Lru.__str__"},
        {"repr(Arc()) should say the size.", ""}, /* it has none */
        {"Comparing a Lru with None ends in an AttributeError.", "lru.py:Lru.__eq__; Lru.__eq__"},
        {"With --version the program should print TOOL_VERSION.", "tool.py:main; main"},
        {"The command line tool should fail for --zoom 0.", "tool.py:main; main"},
        {"An argument that is unknown should end in a message. Say so in the README and add an example.",
            "tool.py:main"},
        {"An argument that is unknown should end in a message, and say so in the README.", "tool.py:main"},
        {"The command line tool ends in a traceback for an unknown argument. It should print a message.",
            "tool.py:main"},
    };
    put_file("lru.py", "class Lru:\n    def Add(self, key):\n        self.items[key] = key\n\n"
                       "    def Resize(self, size):\n        self.size = size\n\n"
                       "    def __repr__(self):\n        return str(self.items[0])\n\n"
                       "    def __eq__(self, other):\n        return self.items == other.items\n\n"
                       "    def __str__(self):\n        return repr(self)\n");
    put_file("tool.py",
        "import sys\n\nTOOL_VERSION = 1\n\n\ndef main():\n    \"\"\"Prints the arguments, each unknown one too.\"\"\"\n"
        "    print(sys.argv[1:], '--zoom' in sys.argv)\n");
    put_file("arc.py",
        "class Arc:\n    def Add(self, key):\n        self.t1 = key\n\n"
        "    def Resize(self, size):\n        if size < 0:\n            raise ValueError('no')\n\n\n"
        "def dedupe(rows):\n    return set(rows)\n\n\n"
        "def format_a(name):\n    return name\n\n\ndef format_b(name):\n    return name\n\n\n"
        "def first_name(x):\n    return x[0]\n\n\ndef last_name(x):\n    return x[1]\n\n\n"
        "def f(x):\n    return x\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *meant = meant_by(cases[i].request);
        if (strcmp(meant, cases[i].meant) != 0) fail_msg("%s\n%s", cases[i].request, meant);
        free(meant);
    }
}

/* The call for it is begun, though a small model reads the name as an order. */
static void test_acting__is_begun(void **state)
{
    put_file("lru.py", "class Lru:\n    def Add(self, key):\n        self.items[key] = key\n");
    put_file("arc.py", "class Arc:\n    def Add(self, key):\n        self.t1 = key\n");
    host h = new_host();
    base_buf script = {0};
    base_buf_printf(&script,
        "answer <<X\n%s    def Add(self, key):\n        self.items[key] = [key]\n```\nX\nanswer Done.\n",
        stage_chat ? "items` here.\n" : "");
    agent_session *s = open_session(&h, script.data, AGENT_MODE_ALL, NULL, false);
    agent_session_agent(s)->settings.tries = 0;
    submit(s, &h, "Add in lru.py should keep a list.");
    char *text = get_file("lru.py");
    if (!strstr(text, "[key] = [key]")) fail_msg("%s\n%s", text, h.json.data);
    free(text);
    base_buf_free(&script);
    agent_session_close(s);
    free_host(&h);
}

/* A small model counts no lines: what it writes as "from" and "to" of a short function is not looked at. */
static void test_acting__lines_that_nobody_counted(void **state)
{
    put_file("a.py", "def twice(n):\n    m = n\n    return m\n");
    host h = new_host();
    agent_session *s = open_session(&h,
        "answer <<X\n<tools>{\"name\": \"rewrite\", \"arguments\": {\"path\": \"a.py\", \"name\": \"twice\", \"from\": 2, "
        "\"to\": 2}}</tools>\n```python\ndef twice(n):\n    m = n\n    return m + m\n```\nX\nanswer Done.\nanswer Done.\n",
        AGENT_MODE_ALL, NULL, false);
    agent_session_agent(s)->settings.tries = 0;
    submit(s, &h, "Look at twice in a.py. Then correct it");
    char *now = get_file("a.py");
    if (strcmp(now, "def twice(n):\n    m = n\n    return m + m\n") != 0)
        fail_msg("%s\n%s", now, h.json.data);
    free(now);
    agent_session_close(s);
    free_host(&h);
}

/* Of a function that is too long to be written again only the lines are written that the request speaks of. */
static void test_acting__lines_of_a_long_function(void **state)
{
    base_buf text = {0}, wanted = {0};
    base_buf_puts(&text, "def draw(sum, colour):\n");
    for (int i = 0; i < 80; i++) base_buf_printf(&text, "    sum += step_%d(sum)\n", i);
    base_buf_puts(&text, "    if is_title(sum):\n        paint(sum, None)\n    return sum\n");
    put_file("draw.py", text.data);
    host h = new_host();
    agent_session *s = open_session(&h,
        "answer <<X\n    if is_title(sum):\n        paint(sum, colour)\n    return sum\n```\nX\nanswer Done.\nanswer Done.\n",
        AGENT_MODE_ALL, NULL, false);
    agent_session_agent(s)->settings.tries = 0;
    submit(s, &h, "draw() should paint a title in its colour");
    char *now = get_file("draw.py");
    text.len = (size_t)(strstr(text.data, "    if is_title") - text.data);
    base_buf_add(&wanted, text.data, text.len);
    base_buf_puts(&wanted, "    if is_title(sum):\n        paint(sum, colour)\n    return sum\n");
    if (strcmp(now, wanted.data) != 0) fail_msg("%s\n%s", now, h.json.data);
    free(now);
    base_buf_free(&text);
    base_buf_free(&wanted);
    agent_session_close(s);
    free_host(&h);
}

/* "in all styles": what has the same name and nearly the same text in other types has to change too. */
static void test_acting__all_of_one_name(void **state)
{
#define STYLE(name, more)                                                                                    \
    "class " name                                                                                            \
    ":\n    def rule(self, n):\n        a = n + 1\n        b = a * 2\n        return a, b" more "\n"
    put_file("a.py", STYLE("A", "") "\n\n" STYLE("B", "") "\n\n" STYLE("C", ""));
    host h = new_host();
    agent_session *s = open_session(&h,
        "answer <<X\n<tools>{\"name\": \"rewrite\", \"arguments\": {\"path\": \"a.py\", \"name\": \"A.rule\"}}</tools>\n"
        "```python\n    def rule(self, n):\n        a = n + 1\n        b = a * 2\n        return a, b, 1\n```\nX\n"
        "answer Done.\nanswer Done.\nanswer Done.\nanswer Done.\nanswer Done.\n",
        AGENT_MODE_ALL, NULL, false);
    agent_session_agent(s)->settings.tries = 0;
    submit(s, &h, "rule should give a 1 as well in all styles.");
    assert_true(told(&h, "As it was: B.rule in a.py, C.rule in a.py."));
    agent_session_close(s);
    free_host(&h);
#undef STYLE
}

int main(int argc, char **argv)
{
    if (argc == 2) cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        TEST_CASE(test_acting__is_found),
        TEST_CASE(test_acting__is_begun),
        TEST_CASE(test_acting__lines_that_nobody_counted),
        TEST_CASE(test_acting__lines_of_a_long_function),
        TEST_CASE(test_acting__all_of_one_name),
    };
    find_grammars();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
