/* A field that is set and read by nothing: asked for once, and told. */
#include "agent/asked/asked.h"
#include "stage.h"
#include "tools/edit/undo.h"

#define SIGNAL                                                                                               \
    "class Signal:\n    def __init__(self):\n        self.all = []\n\n    def send(self):\n"                 \
    "        return [f() for f in self.all]\n"
#define MUTE "\n    def mute(self, is_mute):\n        self.is_mute = is_mute\n"

/* What is unread where a turn has written `now` over `before`. The caller frees. */
static char *unread_in(const char *path, const char *before, const char *now)
{
    base_buf old = {0}, new = {0}, unread = {0};
    host h = new_host();
    put_file(path, before);
    agent_session *s = open_session(&h, "answer Hello.\n", AGENT_MODE_ALL, NULL, false);
    submit(s, &h, "hello");
    agent *a = agent_session_agent(s);
    base_buf_puts(&old, before);
    base_buf_puts(&new, now);
    put_file(path, now);
    assert_int_equal(tool__undo_record(a->workspace, path, &old, &new, 0600, 0, NULL), 0);
    agent__changed(a, path);
    a->asked.change = true;
    agent__list_unread(a, &unread);
    agent_session_close(s);
    base_buf_free(&old);
    base_buf_free(&new);
    free_host(&h);
    return unread.data ? base_buf_take(&unread) : base_xstrdup("");
}

static void test_unread__fields_that_nothing_reads(void **state)
{
    static const struct {
        const char *path, *before, *now, *unread;
    } cases[] = {
        {"a.py", SIGNAL, SIGNAL MUTE, "is_mute"},
        {"a.py", SIGNAL, SIGNAL MUTE "\n    def is_on(self):\n        return not self.is_mute\n", ""},
        {"a.py", SIGNAL, SIGNAL MUTE "\n    def is_on(self):\n        return getattr(self, 'is_mute')\n", ""},
        {"a.py", SIGNAL MUTE, SIGNAL MUTE "\n    def loud(self):\n        self.is_mute = False\n", ""},
        {"a.py", SIGNAL, SIGNAL "\n    def mute(self):\n        self.n = 0\n        self.n += 1\n", "n"},
        {"a.py", SIGNAL, SIGNAL "\n    def mute(self):\n        self.f = lambda: 1\n", ""},
        {"a.py", SIGNAL, SIGNAL "\n    def mute(self, other):\n        other.wide = 1\n", ""},
        {"a.py", SIGNAL, SIGNAL "\n\nclass T(Thread):\n    def __init__(self):\n        self.daemon = True\n",
            ""},
        {"a.py", SIGNAL, SIGNAL "\n\nclass T(Signal):\n    def __init__(self):\n        self.wide = True\n",
            "wide"},
        {"a.go", "package a\n\ntype T struct {\n}\n",
            "package a\n\ntype T struct {\n\tc struct {\n\t\tmax int\n\t}\n}\n\n"
            "func (t *T) Max(n int) {\n\tt.c.max = n\n}\n",
            "max"},
        {"a.go", "package a\n\ntype T struct {\n}\n",
            "package a\n\ntype T struct {\n\tMax int `json:\"max\"`\n}\n\n"
            "func (t *T) SetMax(n int) {\n\tt.Max = n\n}\n",
            ""},
        {"a.go", "package a\n", "package a\n\nfunc f(c *http.Client) {\n\tc.Timeout = 3\n}\n", ""},
        {"a.js", "class A {\n}\n", "class A {\n  strict(on) {\n    this.isStrict = on;\n  }\n}\n",
            "isStrict"},
        {"a.js", "class A {\n}\n",
            "class A {\n  strict(on) {\n    this.isStrict = on;\n  }\n  f() {\n    const {isStrict} = this;\n"
            "    return isStrict;\n  }\n}\n",
            ""},
        {"a.c", "struct a {\n    int n;\n};\n",
            "struct a {\n    int n;\n    int max;\n};\n\nvoid a_limit(struct a *a, int max)\n{\n    a->max = max;\n}\n",
            "max"},
        {"a.c", "struct a {\n    int n;\n};\n",
            "struct a {\n    int n;\n};\n\nvoid a_open(struct addrinfo *a)\n{\n    a->ai_family = 1;\n}\n",
            ""},
    };
    NEEDS_GRAMMAR;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *unread = unread_in(cases[i].path, cases[i].before, cases[i].now);
        if (strcmp(unread, cases[i].unread) != 0)
            fail_msg("%zu: \"%s\" and not \"%s\"", i, unread, cases[i].unread);
        free(unread);
        drop_folders(state);
        make_folders(state);
    }
}

/* A file that the turn does not change has the name: it may be read there. */
static void test_unread__what_another_file_names_is_read(void **state)
{
    NEEDS_GRAMMAR;
    put_file("b.py", "def f(signal):\n    return signal.is_mute\n");
    char *unread = unread_in("a.py", SIGNAL, SIGNAL MUTE);
    assert_string_equal(unread, "");
    free(unread);
}

#define ADD_MUTE                                                                                             \
    "answer <<X\n<tools>{\"name\": \"rewrite\", \"arguments\": {\"path\": \"a.py\", \"name\": "              \
    "\"Signal.mute\"}}</tools>\n```python\ndef mute(self, is_mute):\n    self.is_mute = is_mute\n```\nX\n"

/* The function that the request names beside it is begun, and written it reads the field. */
static void test_unread__what_reads_it_is_asked_for(void **state)
{
    NEEDS_GRAMMAR;
    put_file("a.py", SIGNAL);
    host h = new_host();
    agent_session *s = open_session(&h,
        ADD_MUTE "answer Changed.\n"
                 "answer <<X\ndef send(self):\n    if self.is_mute:\n        return []\n"
                 "    return [f() for f in self.all]\n```\nX\nanswer Changed.\nanswer Changed.\n",
        AGENT_MODE_ALL, NULL, false);
    agent_session_agent(s)->settings.tries = 0;
    submit(s, &h, "Signals should fall silent by mute(True), so that send() gives an empty list");
    if (getenv("DUMP")) fputs(h.json.data, stderr);
    assert_true(told(&h, "Nothing in the tree reads is_mute yet, so it has no effect"));
    assert_false(told(&h, "Nothing in the tree reads is_mute."));
    char *text = get_file("a.py");
    assert_non_null(strstr(text, "    def send(self):\n        if self.is_mute:\n"));
    free(text);
    agent_session_close(s);
    free_host(&h);
}

/* Asked for once, and told; of a request for a field it is only told. */
static void test_unread__is_told(void **state)
{
    static const struct {
        const char *request;
        bool is_asked;
    } cases[] = {{"Add a method mute(is_mute) to Signal for silence", true},
        {"Add a method mute(is_mute) to Signal that stores it", false}};
    NEEDS_GRAMMAR;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        host h = new_host();
        put_file("a.py", SIGNAL);
        agent_session *s = open_session(&h,
            "answer <<X\n:\n    self.is_mute = is_mute\n```\nX\n"
            "answer Changed.\nanswer It is so.\nanswer It is so.\n",
            AGENT_MODE_ALL, NULL, false);
        agent_session_agent(s)->settings.tries = 0;
        submit(s, &h, cases[i].request);
        if (getenv("DUMP")) fputs(h.json.data, stderr);
        assert_true(told(&h, "Nothing in the tree reads is_mute."));
        assert_int_equal(told(&h, "\"state\":\"partial\""), cases[i].is_asked);
        assert_int_equal(told(&h, "asking for the rest"), cases[i].is_asked);
        agent_session_close(s);
        free_host(&h);
        drop_folders(state);
        make_folders(state);
    }
}

int main(int argc, char **argv)
{
    if (argc == 2) cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        TEST_CASE(test_unread__fields_that_nothing_reads),
        TEST_CASE(test_unread__what_another_file_names_is_read),
        TEST_CASE(test_unread__what_reads_it_is_asked_for),
        TEST_CASE(test_unread__is_told),
    };
    find_grammars();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
