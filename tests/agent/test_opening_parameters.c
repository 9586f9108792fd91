/* The call that the program begins for the model where a request is about parameters. */
#include "stage.h"

static void test_opening_parameters__parameters_are_turned_round_with_their_calls(void **state)
{
    NEEDS_GRAMMAR;
    put_file("a.c", "static int less(int a, int b)\n"
                    "{\n"
                    "    return a - b;\n"
                    "}\n\n"
                    "int main(void)\n"
                    "{\n"
                    "    return less(3, 2);\n"
                    "}\n");
    host h = new_host();
    agent_session *s =
        open_session(&h, "opens 1\nanswer }}</tools>\nanswer Turned.\n", AGENT_MODE_ALL, NULL, false);
    assert_int_equal(submit(s, &h, "Turn the parameters of less round, in everything that calls it too."), 0);
    assert_file("a.c", "static int less(int b, int a)\n"
                       "{\n"
                       "    return a - b;\n"
                       "}\n\n"
                       "int main(void)\n"
                       "{\n"
                       "    return less(2, 3);\n"
                       "}\n");
    agent_session_close(s);
    free_host(&h);
}

/* What is still used is asked for once, as the end of a call that the program begins; both files follow at once. */
static void test_opening_parameters__what_stands_instead_is_asked(void **state)
{
    NEEDS_GRAMMAR;
    put_file("a.c", "static int scale(int a, int factor)\n"
                    "{\n"
                    "    return a * factor;\n"
                    "}\n\n"
                    "int main(void)\n"
                    "{\n"
                    "    return scale(3, 2) + scale(1, 4);\n"
                    "}\n");
    host h = new_host();
    agent_session *s = open_session(&h,
        "opens 1\nanswer }}</tools>\nanswer a + 1\"}}</tools>\nanswer Done.\n", AGENT_MODE_ALL, NULL, false);
    assert_int_equal(submit(s, &h, "Drop the factor parameter of scale, it can use a + 1 instead."), 0);
    assert_true(told(&h, "a.c:3 still uses factor"));
    assert_file("a.c", "static int scale(int a)\n"
                       "{\n"
                       "    return a * (a + 1);\n"
                       "}\n\n"
                       "int main(void)\n"
                       "{\n"
                       "    return scale(3) + scale(1);\n"
                       "}\n");
    agent_session_close(s);
    free_host(&h);
}

/* The model ends the call; which function, parameter and value is the request's. */
static void test_opening_parameters__a_parameter_comes_and_goes_by_words(void **state)
{
    NEEDS_GRAMMAR;
    static const char before[] =
        "static int edit_distance(int a, int b)\n{\n    return a - b;\n}\n\nint main(void)\n{\n"
        "    return edit_distance(3, 2);\n}\n";
    static const struct {
        const char *before, *request, *answer, *after;
    } cases[] = {
        {before, "Add an int parameter `flags` to edit_distance; its callers pass 0.", "}}</tools>",
            "static int edit_distance(int a, int b, int flags)\n"
            "{\n"
            "    return a - b;\n"
            "}\n\n"
            "int main(void)\n"
            "{\n"
            "    return edit_distance(3, 2, 0);\n"
            "}\n"},
        {before,
            "The function that computes the edit distance should "
            "take a second parameter flags; callers pass 1.",
            "}}</tools>",
            "static int edit_distance(int a, int flags, int b)\n"
            "{\n"
            "    return a - b;\n"
            "}\n\n"
            "int main(void)\n"
            "{\n"
            "    return edit_distance(3, 1, 2);\n"
            "}\n"},
        {before, "Give edit_distance an int flags behind a; callers pass 0", "}}</tools>",
            "static int edit_distance(int a, int flags, int b)\n"
            "{\n"
            "    return a - b;\n"
            "}\n\n"
            "int main(void)\n"
            "{\n"
            "    return edit_distance(3, 0, 2);\n"
            "}\n"},
        /* What callers pass is not said: the model says it. */
        {before, "Add a parameter flags to edit_distance.", "7\"}}</tools>",
            "static int edit_distance(int a, int b, int flags)\n"
            "{\n"
            "    return a - b;\n"
            "}\n\n"
            "int main(void)\n"
            "{\n"
            "    return edit_distance(3, 2, 7);\n"
            "}\n"},
        {"static int one(int unused)\n{\n    return 1;\n}\n\nint main(void)\n{\n    return one(3);\n}\n",
            "Drop the parameter of the function one.", "}}</tools>",
            "static int one(void)\n{\n    return 1;\n}\n\nint main(void)\n{\n    return one();\n}\n"},
        {"static int most(int n, int limit)\n"
         "{\n"
         "    return n < limit;\n"
         "}\n\n"
         "static int more(int n)\n"
         "{\n"
         "    return most(n, -1);\n"
         "}\n\n"
         "int main(void)\n"
         "{\n"
         "    return more(3 + 1);\n"
         "}\n",
            "Remove more and let its caller use most with -1 instead.", "}}</tools>",
            "static int most(int n, int limit)\n"
            "{\n"
            "    return n < limit;\n"
            "}\n\n"
            "int main(void)\n"
            "{\n"
            "    return most(3 + 1, -1);\n"
            "}\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_file("a.c", cases[i].before);
        host h = new_host();
        base_buf script = {0};
        base_buf_printf(&script, "opens 1\nanswer %s\nanswer Done.\n", cases[i].answer);
        agent_session *s = open_session(&h, script.data, AGENT_MODE_ALL, NULL, false);
        assert_int_equal(submit(s, &h, cases[i].request), 0);
        char *text = get_file("a.c");
        if (strcmp(text, cases[i].after) != 0) fail_msg("%s\n%s\n%s", cases[i].request, text, h.json.data);
        free(text);
        agent_session_close(s);
        free_host(&h);
        base_buf_free(&script);
    }
}

/* A request about parameters is a call in whole where it names the function and one of its parameters. */
static void test_opening_parameters__a_request_about_parameters_is_a_call(void **state)
{
    NEEDS_GRAMMAR;
    static const struct {
        const char *request, *has;
    } cases[] = {
        {"make sep the first argument of join", "def join(sep, words, quote):"},
        {"join should take the quote after the words", "def join(words, quote, sep):"},
        {"Make words the last argument of join and default it to none", "def join(sep, quote, words=None):"},
        {"swap sep and quote in join", "def join(words, quote, sep):"},
        {"could you rename the parameter `sep` of join to glue?", "def join(words, glue, quote):"},
        {"the quote argument of join should be called tail", "def join(words, sep, tail):"},
        {"drop the unused quote parameter of join", "def join(words, sep):"},
        {"add a parameter quiet to join, default false", "def join(words, sep, quote, quiet=False):"},
        {"Give join an optional fourth parameter limit: how many it takes.",
            "def join(words, sep, quote, limit=None):"},
        {"Give join an encoding=\"utf-8\"", "def join(words, sep, quote, encoding=\"utf-8\"):"},
        {"Add `limit=None` to join", "def join(words, sep, quote, limit=None):"},
        {"join should take end='\\n' too", "def join(words, sep, quote, end='\\n'):"},
        {"Add a parameter n: int = 3 to join, behind quote", "def join(words, sep, quote, n: int = 3):"},
        /* that is no parameter of join */
        {"Add end='' to the call of print in use.py, as join does", "def join(words, sep, quote):"},
        {"sep and quote should come before words in join", "def join(sep, quote, words):"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        host h = new_host();
        put_file("words.py", "def join(words, sep, quote):\n    return sep.join(words)\n");
        put_file("use.py", "from words import join\n\nprint(join(['a'], '-', 'b'))\n");
        agent_session *s =
            open_session(&h, "opens 1\nanswer }}</tools>\nanswer Done.\nanswer Done.\nanswer Done.\n",
                AGENT_MODE_EDITS, NULL, false);
        submit(s, &h, cases[i].request);
        char *text = get_file("words.py");
        if (!strstr(text, cases[i].has)) fail_msg("%s\n%s\n%s", cases[i].request, text, h.json.data);
        free(text);
        agent_session_close(s);
        free_host(&h);
    }
}

/* "Rename sep to glue", where sep is a parameter of two functions: of both, and nothing else is renamed. */
static void test_opening_parameters__a_parameter_of_several_functions_is_renamed_in_each(void **state)
{
    NEEDS_GRAMMAR;
    host h = new_host();
    put_file("words.py", "def join(words, sep):\n    return sep.join(words)\n\n\n"
                         "def split(text, *, sep=','):\n    return text.split(sep)\n\n\n"
                         "def count(words):\n    return len(words)\n");
    put_file("use.py", "from words import join, split\n\nprint(split('a-b', sep='-'))\n");
    agent_session *s = open_session(&h,
        "opens 1\nanswer }}</tools>\nopens 1\nanswer }}</tools>\nanswer Done.\nanswer Done.\n",
        AGENT_MODE_EDITS, NULL, false);
    submit(s, &h, "Rename sep to glue");
    assert_file("words.py", "def join(words, glue):\n    return glue.join(words)\n\n\n"
                            "def split(text, *, glue=','):\n    return text.split(glue)\n\n\n"
                            "def count(words):\n    return len(words)\n");
    assert_file("use.py", "from words import join, split\n\nprint(split('a-b', glue='-'))\n");
    agent_session_close(s);
    free_host(&h);
}

/* A parameter of more functions than a request can list: of none of them, and of nothing else. */
static void test_opening_parameters__a_parameter_of_too_many_functions_stays(void **state)
{
    NEEDS_GRAMMAR;
    base_buf text = {0};
    for (int i = 0; i <= AGENT_MAX_WISHES; i++)
        base_buf_printf(&text, "def join%d(words, sep):\n    return sep.join(words)\n\n\n", i);
    host h = new_host();
    put_file("words.py", text.data);
    agent_session *s = open_session(&h,
        "answer <tools>{\"name\": \"refactor\", \"arguments\": {\"operation\": \"rename\", \"name\": "
        "\"join1\", \"to\": \"glue\"}}</tools>\nanswer No.\nanswer No.\nanswer No.\n",
        AGENT_MODE_EDITS, NULL, false);
    submit(s, &h, "Rename sep to glue");
    assert_file("words.py", text.data);
    assert_true(told(&h, "the request renames sep, not join1"));
    agent_session_close(s);
    free_host(&h);
    base_buf_free(&text);
}

/* What a request says of a new parameter besides its callers is the body's, which a small model leaves as it was. */
static void test_opening_parameters__a_new_parameter_is_to_be_used(void **state)
{
    NEEDS_GRAMMAR;
    put_file(
        "a.c", "struct item {\n    unsigned mode;\n};\n\nvoid put(struct item *i)\n{\n    i->mode = 0;\n}\n");
    host h = new_host();
    agent_session *s =
        open_session(&h, "opens 1\nanswer 0\"}}</tools>\n" NO NO NO, AGENT_MODE_ALL, NULL, false);
    agent_session_agent(s)->settings.tries = 0;
    submit(s, &h, "Add a parameter unsigned mode to put. The item gets it instead of 0.");
    assert_file("a.c", "struct item {\n"
                       "    unsigned mode;\n"
                       "};\n\n"
                       "void put(struct item *i, unsigned mode)\n"
                       "{\n"
                       "    i->mode = 0;\n"
                       "}\n");
    assert_true(told(&h, "As it was: put in a.c."));
    assert_true(told(&h, "put is now:"));
    agent_session_close(s);
    free_host(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_CASE(test_opening_parameters__what_stands_instead_is_asked),
        TEST_CASE(test_opening_parameters__parameters_are_turned_round_with_their_calls),
        TEST_CASE(test_opening_parameters__a_parameter_comes_and_goes_by_words),
        TEST_CASE(test_opening_parameters__a_request_about_parameters_is_a_call),
        TEST_CASE(test_opening_parameters__a_parameter_of_several_functions_is_renamed_in_each),
        TEST_CASE(test_opening_parameters__a_parameter_of_too_many_functions_stays),
        TEST_CASE(test_opening_parameters__a_new_parameter_is_to_be_used),
    };
    find_grammars();
    return RUN_ON_BOTH(tests);
}
