/* Questions about what a deletion would break, and answers that say otherwise than the tree. */
#include "agent/words/use_question.h"
#include "stage.h"

static void test_uses__are_asked_for(void **state)
{
    static const struct {
        const char *request;
        const char *names; /* NULL: it asks for no uses */
    } cases[] = {
        {"Can I delete wrap?", "wrap"},
        {"can we safely remove the function `wrap`?", "wrap"},
        {"Is it safe to delete Shop.wrap?", "Shop.wrap"},
        {"Is wrap still used?", "wrap"},
        {"is wrap() called anywhere", "wrap"},
        {"Does anything call wrap?", "wrap"},
        {"does anyone use escape_all any more?", "escape_all"},
        {"What breaks if I remove wrap?", "wrap"},
        {"What would break without wrap?", "wrap"},
        {"Is wrap dead code?", "wrap"},
        {"Is the wrap helper unused?", "wrap"},
        {"What depends on wrap?", "wrap"},
        {"Can wrap be removed?", "wrap"},
        {"Can you delete wrap?", NULL},
        {"Delete wrap, it is dead code.", NULL},
        {"Remove the unused function wrap.", NULL},
        {"Could you remove wrap please?", NULL},
        {"What does wrap do?", NULL},
        {"Who wrote wrap?", NULL},
        {"Can I have wrap deleted?", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        agent_word w;
        base_buf names = {0};
        if (agent_asks_for_uses(cases[i].request) != (cases[i].names != NULL))
            fail_msg("%s", cases[i].request);
        for (size_t at = 0; cases[i].names && agent_next_asked_use(cases[i].request, &at, &w);)
            base_buf_printf(
                &names, "%s%.*s", names.len ? " " : "", (int)(w.to - w.from), cases[i].request + w.from);
        if (cases[i].names && (!names.data || !strstr(names.data, cases[i].names)))
            fail_msg("%s: %s", cases[i].request, names.data ? names.data : "");
        base_buf_free(&names);
    }
}

static void test_uses__what_an_answer_says(void **state)
{
    static const struct {
        const char *request, *answer;
        agent_said_use says;
    } cases[] = {
        {"Can I delete wrap?", "Yes, you can delete it.", AGENT_SAYS_UNUSED},
        {"Can I delete wrap?", "No, `encode` calls it.", AGENT_SAYS_USED},
        {"Can I delete wrap?", "It is not used in the tree.", AGENT_SAYS_UNUSED},
        {"Is wrap still used?", "Yes.", AGENT_SAYS_USED},
        {"Is wrap still used?", "No, it is unused.", AGENT_SAYS_UNUSED},
        {"Is wrap dead code?", "Yes, it's dead code.", AGENT_SAYS_UNUSED},
        {"Is wrap dead code?", "`wrap` is called by `encode`.", AGENT_SAYS_USED},
        {"What breaks if I remove wrap?", "Nothing would break.", AGENT_SAYS_UNUSED},
        {"What breaks if I remove wrap?", "Note that it is in shop.py.", AGENT_SAYS_NOTHING},
        {"What breaks if I remove wrap?", "", AGENT_SAYS_NOTHING},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (agent_read_said_use(cases[i].request, cases[i].answer) != cases[i].says)
            fail_msg("%s %s", cases[i].request, cases[i].answer);
}

/* Nothing is changed, the uses stand in front, and the line below contradicts what is not so. */
static void test_uses__are_told(void **state)
{
    static const struct {
        const char *request, *answer, *list, *line;
    } cases[] = {
        {"Can I delete wrap?", "Yes, you can delete `wrap`.",
            "Uses of `wrap` (function, shop.py:1): 3 places, 1 of them in tests of the tree.\\n- imported other.py:1\\n"
            "- called in `encode`, shop.py:6\\n- called in `test_wrap`, test_shop.py:5 (a test)\\n"
            "So these would break without it.",
            "wrap is used in 3 places, 1 of them in tests, whatever the answer says: other.py:1, encode (shop.py:6)"},
        {"Can I delete wrap?", "No, `encode` calls it.", "Uses of `wrap`",
            "wrap is used in 3 places, 1 of them in tests: other.py:1, encode (shop.py:6)"},
        {"Is alone still used?", "Yes, it is used in encode.",
            "Uses of `alone` (function, shop.py:9): none. No code of the tree calls, imports or names it.",
            "alone: no use of it stands in the tree, whatever the answer says."},
        {"Is alone dead code?", "Yes.", "Uses of `alone`", "alone: no use of it stands in the tree."},
        {"What breaks if I remove tested?", "Nothing.", "So no code would break without it.",
            "tested is used in 1 place, in tests alone: test_tested (test_shop.py:8)."},
        /* of several definitions only who calls the name is known */
        {"Can I delete twice?", "Yes.", "Callers of `twice`, all 1 of the tree",
            "twice is called by use (b.py:5)"},
    };
    put_file("shop.py", "def wrap(x):\n    return [x]\n\n\ndef encode(x):\n    return wrap(x)\n\n\n"
                        "def alone(x):\n    return alone(x)\n\n\ndef tested(x):\n    return x\n");
    put_file("other.py", "from shop import wrap\n");
    put_file("test_shop.py", "import shop\n\n\ndef test_wrap():\n    assert shop.wrap(1)\n\n\n"
                             "def test_tested(): assert shop.tested(1)\n");
    put_file("a.py", "def twice(x):\n    return x\n");
    put_file("b.py", "def twice(x):\n    return 2 * x\n\n\ndef use(): return twice(1)\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        base_buf script = {0};
        host h = new_host();
        base_buf_printf(&script, "answer %s\nanswer Well.\n", cases[i].answer);
        agent_session *s = open_session(&h, script.data, AGENT_MODE_ALL, NULL, true);
        submit(s, &h, cases[i].request);
        if (!told(&h, cases[i].list) || !told(&h, cases[i].line) || told(&h, "\"event\":\"outcome\""))
            fail_msg("%s %s\n%s", cases[i].request, cases[i].answer, h.json.data);
        agent_session_close(s);
        free_host(&h);
        base_buf_free(&script);
    }
}

/* As seen on thefuzz: the answer was a call that writes the function again. */
static void test_uses__a_question_changes_nothing(void **state)
{
    static const struct {
        const char *request;
        bool is_changed;
    } cases[] = {{"Can I delete wrap?", false}, {"wrap should give a tuple.", true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_file("shop.py", "def wrap(x):\n    return [x]\n");
        host h = new_host();
        agent_session *s = open_session(&h,
            "answer <<X\n<tools>{\"name\": \"rewrite\", \"arguments\": {\"path\": \"shop.py\", \"name\": \"wrap\"}}</tools>\n"
            "```python\ndef wrap(x):\n    return (x,)\n```\nX\nanswer Yes.\nanswer Yes.\nanswer Yes.\n",
            AGENT_MODE_ALL, NULL, false);
        agent_session_agent(s)->settings.tries = 0;
        submit(s, &h, cases[i].request);
        char *text = get_file("shop.py");
        assert_int_equal(strstr(text, "(x,)") != NULL, cases[i].is_changed);
        assert_int_equal(told(&h, "a question changes nothing"), !cases[i].is_changed);
        free(text);
        agent_session_close(s);
        free_host(&h);
    }
}

int main(int argc, char **argv)
{
    if (argc == 2) cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_uses__are_asked_for),
        cmocka_unit_test(test_uses__what_an_answer_says),
        TEST_CASE(test_uses__are_told),
        TEST_CASE(test_uses__a_question_changes_nothing),
    };
    find_grammars();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
