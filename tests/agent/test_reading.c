/* What a request means where its words fit no wording: the likeliest of the operations that its names allow. */
#include <sys/stat.h>

#include "stage.h"

static const char before[] =
    "static int clamp(int x, int step)\n{\n    return x + 1;\n}\n\nint total(void)\n{\n    return clamp(1, 2);\n}\n";

/* The call that is likeliest is what the turn does. "likely" says which that is. */
static void test_reading__the_likeliest_operation_is_done(void **state)
{
    NEEDS_GRAMMAR;
    static const struct {
        const char *request, *likely, *read, *after;
    } cases[] = {
        {"clamp -> clamp_low everywhere", "rename(clamp, clamp_low)", "read as: rename(clamp, clamp_low)",
            "static int clamp_low(int x, int step)\n{\n    return x + 1;\n}\n\nint total(void)\n{\n    return clamp_low(1, 2);\n}\n"},
        {"clamp and total become clamp_low and sum_all", "rename(clamp, clamp_low); rename(total, sum_all)",
            "read as: rename(clamp, clamp_low); ",
            "static int clamp_low(int x, int step)\n{\n    return x + 1;\n}\n\nint sum_all(void)\n{\n    return clamp_low(1, 2);\n}\n"},
        {"nobody would miss total", "delete(total)", "read as: delete(total)",
            "static int clamp(int x, int step)\n{\n    return x + 1;\n}\n"},
        /* whose name is the reason stays, whatever is likely: only total can be meant */
        {"nobody would miss total, clamp does the same", "delete(total)", "read as: delete(total) ",
            "static int clamp(int x, int step)\n{\n    return x + 1;\n}\n"},
        {"nobody would miss total, clamp does the same", "delete(total); delete(clamp)\nlikely delete(total)",
            "read as: delete(total) ", "static int clamp(int x, int step)\n{\n    return x + 1;\n}\n"},
        {"clamp could do without its step", "drop_parameter(clamp, step)",
            "read as: drop_parameter(clamp, step)",
            "static int clamp(int x)\n{\n    return x + 1;\n}\n\nint total(void)\n{\n    return clamp(1);\n}\n"},
        {"x, step of clamp -> low_end, stride_by",
            "rename_parameter(clamp, x, low_end); rename_parameter(clamp, step",
            "read as: rename_parameter(clamp, x, low_end); ",
            "static int clamp(int low_end, int stride_by)\n{\n    return low_end + 1;\n}\n\nint total(void)\n{\n    return clamp(1, 2);\n}\n"},
        {"for clamp i'd like lowest, stride instead of x, step",
            "rename_parameter(clamp, x, lowest); rename_parameter(clamp, step",
            "read as: rename_parameter(clamp, x, lowest); ",
            "static int clamp(int lowest, int stride)\n{\n    return lowest + 1;\n}\n\nint total(void)\n{\n    return clamp(1, 2);\n}\n"},
        {"The order of clamp is odd, step in front of x reads better", "reorder_parameters(clamp, step, x)",
            "read as: reorder_parameters(clamp, step, x)",
            "static int clamp(int step, int x)\n{\n    return x + 1;\n}\n\nint total(void)\n{\n    return clamp(2, 1);\n}\n"},
        /* as a list says it, or the end of one */
        {"clamp(step, x) reads nicer", "reorder_parameters(clamp, step, x)",
            "read as: reorder_parameters(clamp, step, x)",
            "static int clamp(int step, int x)\n{\n    return x + 1;\n}\n\nint total(void)\n{\n    return clamp(2, 1);\n}\n"},
        {"of clamp's parameters x belongs to the end", "reorder_parameters(clamp, step, x)",
            "read as: reorder_parameters(clamp, step, x)",
            "static int clamp(int step, int x)\n{\n    return x + 1;\n}\n\nint total(void)\n{\n    return clamp(2, 1);\n}\n"},
        {"step is not what clamp calls it at home, stride is the better term",
            "rename_parameter(clamp, step, stride)", "read as: rename_parameter(clamp, step, stride)",
            "static int clamp(int x, int stride)\n{\n    return x + 1;\n}\n\nint total(void)\n{\n    return clamp(1, 2);\n}\n"},
        {"give clamp the lib_ prefix that the others have", "rename(clamp, lib_clamp)",
            "read as: rename(clamp, lib_clamp)",
            "static int lib_clamp(int x, int step)\n{\n    return x + 1;\n}\n\nint total(void)\n{\n    return lib_clamp(1, 2);\n}\n"},
        {"what clamps a number in a.c is misnamed, limit_to is correct", "rename(clamp, limit_to)",
            "read as: rename(clamp, limit_to)",
            "static int limit_to(int x, int step)\n{\n    return x + 1;\n}\n\nint total(void)\n{\n    return limit_to(1, 2);\n}\n"},
        /* The words are taken for a rename, and the model knows better. */
        {"There is no lower bound beside clamp, it should be called clampLower", "add(clampLower)",
            "read as: add(clampLower)", before},
        {"the step of clamp -> stride_by please", "rename_parameter(clamp, step, stride_by)",
            "read as: rename_parameter(clamp, step, ",
            "static int clamp(int x, int stride_by)\n{\n    return x + 1;\n}\n\nint total(void)\n{\n    return clamp(1, 2);\n}\n"},
        /* "Then" orders no parameters. */
        {"force clamp arguments as number, from our routes we get step and x as strings and then none is found",
            "reorder_parameters(clamp, step, x)\nlikely change(clamp)", "read as: change(clamp)", before},
        {"clamp(step, x) and not clamp(x, step)", "reorder_parameters(clamp, step, x)",
            "read as: reorder_parameters(clamp, step, x)",
            "static int clamp(int step, int x)\n{\n    return x + 1;\n}\n\nint total(void)\n{\n    return clamp(2, 1);\n}\n"},
        /* What the program does not do stays a request like any other. */
        {"nobody would miss total", "change(total)", "read as: change(total)", before},
        {"is total used anywhere or can I delete it?", "delete(total)", NULL, before},
        {"total can't be needed when clamp is", "delete(total)", NULL, before}, /* not always */
        /* "int(x)" is what clamp does, and names no parameter that is to go */
        {"all that clamp does is int(x) in disguise, nobody would miss it",
            "delete(clamp)\nlikely drop_parameter(clamp, x)", "read as: delete(clamp)", NULL},
        {"why does clamp take its step away", "drop_parameter(clamp, step)", NULL, before},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_file("a.c", before);
        host h = new_host();
        base_buf script = {0};
        base_buf_printf(&script,
            "opens 1\nlikely %s\nanswer }}</tools>\n%sanswer Done.\nanswer Done.\nanswer Done.\n",
            cases[i].likely, strchr(cases[i].likely, ';') ? "answer }}</tools>\n" : "");
        agent_session *s = open_session(&h, script.data, AGENT_MODE_ALL, NULL, false);
        submit(s, &h, cases[i].request);
        if (cases[i].read && !told(&h, cases[i].read)) {
            const char *read = strstr(h.json.data, "read as: ");
            fail_msg("%zu: not %s but %.80s", i, cases[i].read, read ? read : "nothing");
        }
        if (!cases[i].read) {
            assert_false(told(&h, "read as: delete"));
            assert_false(told(&h, "read as: drop"));
        }
        if (cases[i].after) assert_file("a.c", cases[i].after);
        assert_true(told(&h, cases[i].request)); /* as it was written */
        agent_session_close(s);
        free_host(&h);
        base_buf_free(&script);
    }
}

/* What is said besides of the old place, or of comments, is done where the operation was read from other words. */
static void test_reading__what_is_said_besides_stays(void **state)
{
    NEEDS_GRAMMAR;
    static const struct {
        const char *request, *likely, *file, *has;
    } cases[] = {
        {"strip would be better off in words.py. Importing it from page has to go on working.",
            "move(strip, words.py)", "page.py", "from words import strip  # noqa: F401\n"},
        {"strip -> trim everywhere, in the comments too", "rename(strip, trim)", "page.py",
            "# trim, or not\n"},
        {"strip -> trim everywhere", "rename(strip, trim)", "page.py", "# strip, or not\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_file("page.py", "# strip, or not\nx = 1\n\n\ndef strip(s):\n    return s\n");
        put_file("words.py", "y = 1\n");
        host h = new_host();
        base_buf script = {0};
        base_buf_printf(&script,
            "opens 1\nlikely %s\nanswer }}</tools>\nanswer Done.\nanswer Done.\nanswer Done.\n",
            cases[i].likely);
        agent_session *s = open_session(&h, script.data, AGENT_MODE_ALL, NULL, false);
        submit(s, &h, cases[i].request);
        char *now = get_file(cases[i].file);
        if (!strstr(now, cases[i].has)) fail_msg("%s\n%s\n%s", cases[i].request, now, h.json.data);
        free(now);
        agent_session_close(s);
        free_host(&h);
        base_buf_free(&script);
    }
}

/* "B.c has its own total": it stands there, and does not go there. */
static void test_reading__what_a_file_has_does_not_go_there(void **state)
{
    NEEDS_GRAMMAR;
    put_file("a.c", before);
    put_file("b.c", "int z;\n");
    host h = new_host();
    agent_session *s = open_session(&h,
        "opens 1\nlikely move(total, b.c)\nlikely delete(total)\nanswer }}</tools>\nanswer Done.\nanswer Done.\nanswer Done.\n",
        AGENT_MODE_ALL, NULL, false);
    submit(s, &h, "b.c has its own total, drop it");
    assert_true(told(&h, "read as: delete(total)"));
    agent_session_close(s);
    free_host(&h);
    remove("b.c");
}

/* A parameter that is called as a word of such requests ("default") is the one that goes. */
static void test_reading__a_parameter_may_be_called_default(void **state)
{
    NEEDS_GRAMMAR;
    put_file("page.py", "def pick(all, at, default=None):\n    return all[at] if all else default\n");
    host h = new_host();
    agent_session *s = open_session(&h,
        "opens 1\nlikely drop_parameter(pick, default)\nanswer }}</tools>\nanswer Done.\nanswer Done.\nanswer Done.\n",
        AGENT_MODE_ALL, NULL, false);
    submit(s, &h, "pick could do without its default, nobody passes it");
    assert_file("page.py", "def pick(all, at):\n    return all[at] if all else None\n");
    agent_session_close(s);
    free_host(&h);
}

/* An operation that leads other work by little, or another one, or that fits badly, is left: the model works on the request. */
static void test_reading__an_operation_has_to_lead(void **state)
{
    NEEDS_GRAMMAR;
    static const struct {
        const char *request, *likely, *read;
    } cases[] = {{"nobody would miss total", "change(total)\nlikely delete(total)", "read as: delete(total)"},
        {"nobody would miss total, tested or not, without an argument and with nothing new that it returns",
            "change(total)\nlikely delete(total)", "not clear enough to be read as: delete(total)"},
        {"clamp, total: sum_all says it better", "rename(clamp, sum_all)\nlikely rename(total, sum_all)",
            "not clear enough"},
        /* far likelier than anything else, and badly fitting */
        {"total: what a test of README.md returns isn't needed", "delete(total)",
            "not clear enough to be read as: delete(total)"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_file("a.c", before);
        host h = new_host();
        base_buf script = {0};
        base_buf_printf(&script,
            "opens 1\nlikely %s\nanswer }}</tools>\nanswer Done.\nanswer Done.\nanswer Done.\n",
            cases[i].likely);
        agent_session *s = open_session(&h, script.data, AGENT_MODE_ALL, NULL, false);
        submit(s, &h, cases[i].request);
        const char *read = strstr(h.json.data, "read as: ");
        if (!told(&h, cases[i].read)) fail_msg("%zu: %.120s", i, read ? read : "nothing");
        if (i) assert_file("a.c", before);
        agent_session_close(s);
        free_host(&h);
        base_buf_free(&script);
    }
}

/* Clearly a rename, and two functions fit: the program asks which one, writes nothing, and the name alone is the answer. */
static void test_reading__which_one_is_meant_is_asked(void **state)
{
    NEEDS_GRAMMAR;
    static const char walk[] =
        "static int walk_graph(int x)\n{\n    return x + 1;\n}\n\nint walk_nodes(int x)\n{\n    return walk_graph(x);\n}\n\n"
        "int main(void)\n{\n    return walk_nodes(1);\n}\n";
    static const struct {
        const char *request, *reply, *asked, *after;
    } cases[] = {
        {"The function that walks should be called visitAll", "walk_nodes", "to be renamed to `visitAll`",
            "static int walk_graph(int x)\n{\n    return x + 1;\n}\n\nint visitAll(int x)\n{\n    return walk_graph(x);\n}\n\n"
            "int main(void)\n{\n    return visitAll(1);\n}\n"},
        {"The function that walks should be called visitAll", "walk_graph please",
            "to be renamed to `visitAll`",
            "static int visitAll(int x)\n{\n    return x + 1;\n}\n\nint walk_nodes(int x)\n{\n    return visitAll(x);\n}\n\n"
            "int main(void)\n{\n    return walk_nodes(1);\n}\n"},
        {"The function that walks should be called visitAll", "neither, leave it",
            "to be renamed to `visitAll`", walk},
        {"Delete the function that walks", "the first one", "is to be deleted", walk},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const bool renames = strstr(cases[i].request, "called") != NULL;
        put_file("a.c", walk);
        host h = new_host();
        base_buf script = {0};
        /* that something new is likelier than each of them does not matter: a word orders the rename */
        base_buf_printf(&script, "opens 1\n%slikely %s\nlikely %s\nanswer }}</tools>\nanswer Done.\n",
            i == 2 ? "likely add(visitAll)\n" : "",
            renames ? "rename(walk_graph, visitAll)" : "delete(walk_graph)",
            renames ? "rename(walk_nodes, visitAll)" : "delete(walk_nodes)");
        agent_session *s = open_session(&h, script.data, AGENT_MODE_ALL, NULL, false);
        submit(s, &h, cases[i].request);
        if (!told(&h, cases[i].asked)) fail_msg("%zu: %s", i, strstr(h.json.data, "\"notice\""));
        assert_true(told(&h, "`walk_graph` (a.c:1)") && told(&h, "`walk_nodes` (a.c:6)"));
        assert_true(told(&h, "Nothing was changed: say which one is meant"));
        assert_file("a.c", walk);
        submit(s, &h, cases[i].reply);
        assert_file("a.c", cases[i].after);
        agent_session_close(s);
        free_host(&h);
        base_buf_free(&script);
    }
}

/* "The two functions that ...": no single one of them is what is meant; and "XML" there is no new name. */
static void test_reading__two_that_are_described_go_together(void **state)
{
    NEEDS_GRAMMAR;
    put_file("a.py", "def walk_graph(x):\n    return x + 1\n\n\ndef walk_nodes(x):\n    return x + 2\n\n\n"
                     "def draw(x):\n    return x\n");
    host h = new_host();
    agent_session *s = open_session(&h,
        "opens 1\nlikely move(walk_graph, walk.py); move(walk_nodes, walk.py)\nlikely move(walk_graph, walk.py)\n"
        "answer }}</tools>\nanswer }}</tools>\nanswer Done.\n",
        AGENT_MODE_ALL, NULL, false);
    submit(s, &h, "Put the two functions that walk XML data into walk.py please");
    assert_true(told(&h, "read as: move(walk_graph, walk.py); move(walk_nodes, walk.py)"));
    assert_file("a.py", "def draw(x):\n    return x\n");
    assert_file(
        "walk.py", "def walk_graph(x):\n    return x + 1\n\n\ndef walk_nodes(x):\n    return x + 2\n");
    agent_session_close(s);
    free_host(&h);
}

/* What words say, questions of the modes, and what names nothing are not weighed. */
static void test_reading__what_is_said_is_not_weighed(void **state)
{
    NEEDS_GRAMMAR;
    static const struct {
        const char *request;
        agent_mode mode;
    } cases[] = {{"Delete total.", AGENT_MODE_ALL}, {"nobody would miss total", AGENT_MODE_PLAN},
        {"it should be faster", AGENT_MODE_ALL},
        {"Write a test that the first step of clamp wins over x", AGENT_MODE_ALL},
        /* a value that holds a blank is no text */
        {"Add a parameter fill to clamp with the default ' '.", AGENT_MODE_ALL},
        /* one name, and what it shall do: seen read as rename(dedupe, contains_dupes) */
        {"clamp: skip what is empty in steps_of.", AGENT_MODE_ALL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_file("a.c", before);
        host h = new_host();
        agent_session *s = open_session(&h,
            "opens 1\nlikely rename(\nanswer }}</tools>\nanswer Done.\nanswer Done.\nanswer Done.\n",
            cases[i].mode, NULL, false);
        submit(s, &h, cases[i].request);
        assert_false(told(&h, "read as: "));
        agent_session_close(s);
        free_host(&h);
    }
}

/* Words that order an operation, of what is no definition: a part of a document, what the function itself is to do. */
static void test_reading__a_definition_is_not_what_is_meant(void **state)
{
    NEEDS_GRAMMAR;
    static const char *const requests[] = {"drop the total example from the README",
        "total must also remove its step", "move the check of total above the one of clamp",
        "rename the test 'total should add up' to 'total should sum up'"};
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        put_file("a.c", before);
        host h = new_host();
        agent_session *s = open_session(&h,
            "opens 1\nlikely change(total)\nanswer }}</tools>\nanswer Done.\nanswer Done.\nanswer Done.\n",
            AGENT_MODE_ALL, NULL, false);
        submit(s, &h, requests[i]);
        assert_false(told(&h, "\"name\":\"refactor\""));
        assert_file("a.c", before);
        agent_session_close(s);
        free_host(&h);
    }
}

/* Whatever the model finds likely: an addition moves nothing, "call it" adds nothing, and text that is to go is no definition. */
static void test_reading__what_cannot_be_meant_is_not_read(void **state)
{
    NEEDS_GRAMMAR;
    static const struct {
        const char *request, *likely, *never, *read;
    } cases[] = {
        {"The table has no row for clamp. Add one to b.c.", "move(clamp, b.c)", "read as: move", NULL},
        {"What clamps a number in a.c has too vague a name. Call it limit_to.", "add(limit_to)",
            "read as: add", "read as: rename(clamp, limit_to)"},
        {"Take everything out of a.c that is left of the clamped numbers.", "delete(clamp)",
            "read as: delete", NULL},
        {"What tells the wrong value readably in w.py has too vague a name. Call it tell_value.",
            "rename(WrongValue, tell_value)", "read as: rename(WrongValue", NULL},
        {"The helper in w.py that tells the wrong value's message has too vague a name. Call it tell_value.",
            "rename(WrongValue.message, tell_value)", "read as: rename(WrongValue", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_file("w.py", "class WrongValue(Exception):\n    \"\"\"Tells the wrong value readably.\"\"\"\n\n"
                         "    def __init__(self, value):\n        self.message = value\n");
        put_file("a.c", before);
        put_file("b.c", "int rows[] = {1};\n");
        host h = new_host();
        base_buf script = {0};
        base_buf_printf(&script,
            "opens 1\nlikely %s\nanswer }}</tools>\nanswer Done.\nanswer Done.\nanswer Done.\n",
            cases[i].likely);
        agent_session *s = open_session(&h, script.data, AGENT_MODE_ALL, NULL, false);
        submit(s, &h, cases[i].request);
        const char *read = strstr(h.json.data, "read as: ");
        if (told(&h, cases[i].never) || (cases[i].read && !told(&h, cases[i].read)))
            fail_msg("%s: %.80s", cases[i].request, read ? read : "nothing");
        agent_session_close(s);
        free_host(&h);
        base_buf_free(&script);
    }
}

/* "f has no tests, could you put them into test_b.c?": code does not go among tests, and what stands there may move within. */
static void test_reading__code_moves_to_no_file_of_tests(void **state)
{
    NEEDS_GRAMMAR;
    static const struct {
        const char *request, *likely;
        bool is_move;
    } cases[] = {
        {"clamp and total in a.c have no tests, could you put them into test_b.c?",
            "move(clamp, test_b.c); move(total, test_b.c)", false},
        {"make_rows would be at home in test_b.c", "move(make_rows, test_b.c)", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_file("a.c", before);
        put_file("test_a.c", "static int make_rows(void)\n{\n    return 1;\n}\n");
        put_file("test_b.c", "int test_rows[] = {1};\n");
        host h = new_host();
        base_buf script = {0};
        base_buf_printf(&script,
            "opens 1\nlikely %s\nanswer }}</tools>\nanswer Done.\nanswer Done.\nanswer Done.\n",
            cases[i].likely);
        agent_session *s = open_session(&h, script.data, AGENT_MODE_ALL, NULL, false);
        submit(s, &h, cases[i].request);
        if (told(&h, "read as: move") != cases[i].is_move) fail_msg("%s\n%s", cases[i].request, h.json.data);
        agent_session_close(s);
        free_host(&h);
        base_buf_free(&script);
    }
    remove("test_a.c");
    remove("test_b.c");
}

/* A variable inside of a function, and a second name in a list with brackets. */
static void test_reading__what_is_inside_of_a_function_is_renamed(void **state)
{
    NEEDS_GRAMMAR;
    put_file("a.c", "int total(void)\n{\n    int sum = 1;\n    return sum;\n}\n");
    host h = new_host();
    agent_session *s = open_session(&h,
        "opens 1\nlikely rename_parameter(total, sum, running_sum)\nanswer }}</tools>\nanswer Done.\n",
        AGENT_MODE_ALL, NULL, false);
    submit(s, &h, "in total the variable sum deserves another name: running_sum");
    assert_file("a.c", "int total(void)\n{\n    int running_sum = 1;\n    return running_sum;\n}\n");
    agent_session_close(s);
    free_host(&h);
}

/* What only tells of something that is wrong is to be changed, if the model thinks so. */
static void test_reading__a_statement_is_a_change(void **state)
{
    NEEDS_GRAMMAR;
    static const struct {
        const char *request;
        bool is_change;
    } cases[] = {{"A negative step of clamp ends in nonsense", true},
        {"Why does a negative step of clamp end in nonsense?", false},
        {"tell me what clamp does with a negative step", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_file("a.c", before);
        host h = new_host();
        agent_session *s =
            open_session(&h, "likely change(clamp)\nanswer I see.\nanswer I see.\nanswer I see.\n",
                AGENT_MODE_ALL, NULL, false);
        submit(s, &h, cases[i].request);
        assert_int_equal(told(&h, "Nothing was changed in the tree"), cases[i].is_change);
        agent_session_close(s);
        free_host(&h);
    }
}

/* A name that is misspelt is that of the one definition that is nearest, and the correction is said; what is to come is not corrected. */
static void test_reading__a_misspelt_name_is_the_nearest_one(void **state)
{
    NEEDS_GRAMMAR;
    static const struct {
        const char *request, *told, *after;
    } cases[] = {
        {"Delete totall().", "the tree has no totall: read as total, the nearest name that it has",
            "static int clamp(int x, int step)\n{\n    return x + 1;\n}\n"},
        {"Rename `totla` to sum_all.", "the tree has no totla: read as total, the nearest name that it has",
            "static int clamp(int x, int step)\n{\n    return x + 1;\n}\n\nint sum_all(void)\n{\n    return clamp(1, 2);\n}\n"},
        {"Rename total to totals.", NULL,
            "static int clamp(int x, int step)\n{\n    return x + 1;\n}\n\nint totals(void)\n{\n    return clamp(1, 2);\n}\n"},
        {"Add totals(), which counts.", NULL, before},
        {"Delete tutti().", NULL, before},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_file("a.c", before);
        host h = new_host();
        agent_session *s =
            open_session(&h, "opens 1\nanswer }}</tools>\nanswer Done.\nanswer Done.\nanswer Done.\n",
                AGENT_MODE_ALL, NULL, false);
        submit(s, &h, cases[i].request);
        if (told(&h, cases[i].told ? cases[i].told : "read as total") != (cases[i].told != NULL))
            fail_msg("%s", cases[i].request);
        assert_file("a.c", cases[i].after);
        agent_session_close(s);
        free_host(&h);
    }
}

/* Two clauses, each an operation in words of its own, are done one after the other. */
static void test_reading__two_clauses_are_both_done(void **state)
{
    NEEDS_GRAMMAR;
    static const char *const requests[] = {"rename clamp to clamp_low, and total can go",
        "Rename clamp to clamp_low and get rid of total, please.",
        "nobody uses total anymore; rename clamp to clamp_low"};
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        put_file("a.c", before);
        host h = new_host();
        agent_session *s =
            open_session(&h, "opens 1\nanswer }}</tools>\nanswer }}</tools>\nanswer Done.\nanswer Done.\n",
                AGENT_MODE_ALL, NULL, false);
        submit(s, &h, requests[i]);
        assert_file("a.c", "static int clamp_low(int x, int step)\n{\n    return x + 1;\n}\n");
        assert_false(told(&h, "Not done"));
        agent_session_close(s);
        free_host(&h);
    }
}

/* "It" is the member that a type is said to need no longer, and "has" in a sentence is no function of that name. */
static void test_reading__a_member_goes_and_its_type_stays(void **state)
{
    NEEDS_GRAMMAR;
    static const char cache[] =
        "class LRUCache:\n    def length(self):\n        return 1\n\n    def has(self):\n        return 2\n";
    static const struct {
        const char *request, *after;
    } cases[] = {{"LRUCache doesn't need a length method when there's len(). Remove it.",
                     "class LRUCache:\n    def has(self):\n        return 2\n"},
        {"The helper that says how long it is has just one caller. Inline it there and remove it.", cache}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_file("a.py", cache);
        host h = new_host();
        agent_session *s = open_session(&h,
            "opens 1\nlikely change(length)\nanswer }}</tools>\nanswer Done.\nanswer Done.\nanswer Done.\n",
            AGENT_MODE_ALL, NULL, false);
        submit(s, &h, cases[i].request);
        if (told(&h, "\"operation\":\"inline\"")) fail_msg("%s", cases[i].request);
        assert_file("a.py", cases[i].after);
        agent_session_close(s);
        free_host(&h);
    }
}

/* What "would be clearer" is the new name of what is there, and nothing that is to come, however likely the model finds that. */
static void test_reading__a_name_that_is_praised_is_the_new_one(void **state)
{
    NEEDS_GRAMMAR;
    static const char after[] =
        "static int clampLower(int x, int step)\n{\n    return x + 1;\n}\n\nint total(void)\n{\n    return clampLower(1, 2);\n}\n";
    static const struct {
        const char *request, *after;
    } cases[] = {
        {"clamp is named as if it knew both ends. clampLower would be clearer", after},
        {"clamp is misnamed, clampLower says more", after},
        {"clamp suggests an upper bound too; clampLower would be a lot more honest", after},
        {"clamp reads as if there were two bounds. A better name would be clampLower", after},
        {"clamp sounds like both bounds, clampLower fits better", after},
        {"clamp is called with any bound. A check clampLower in a new function would be nicer", before},
        {"There is no lower bound beside clamp, clampLower would be", before},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_file("a.c", before);
        host h = new_host();
        agent_session *s = open_session(&h,
            "opens 1\nlikely add(clampLower)\nanswer }}</tools>\nanswer Done.\nanswer Done.\nanswer Done.\n",
            AGENT_MODE_ALL, NULL, false);
        submit(s, &h, cases[i].request);
        const bool is_rename = cases[i].after == after;
        if (told(&h, "read as: add(clampLower)") == is_rename) fail_msg("%s", cases[i].request);
        char *now = get_file("a.c");
        if (strcmp(now, cases[i].after) != 0)
            fail_msg("%s\n%s", cases[i].request, strstr(h.json.data, "read as"));
        free(now);
        agent_session_close(s);
        free_host(&h);
    }
}

/* Of "the package's __init__" no method of that name is meant; of a class that is named one is. */
static void test_reading__a_package_file_is_no_method(void **state)
{
    NEEDS_GRAMMAR;
    static const char boxes[] =
        "class Box:\n    def __init__(self):\n        pass\n\n\nclass Bag:\n    def __init__(self):\n        self.n = 1\n";
    static const struct {
        const char *request, *likely, *read, *boxes, *init;
    } cases[] = {
        {"The package's __init__ still has an alias for the old name of Box. Take it out please.",
            "delete(__init__)\nlikely delete(Case)", "read as: delete(Case)", boxes,
            "from .boxes import Box\n"},
        {"the alias in __init__ that keeps an old name alive isn't needed by anybody any more",
            "delete(__init__)\nlikely delete(Case)", "read as: delete(Case)", boxes,
            "from .boxes import Box\n"},
        {"nobody would miss Box.__init__ in the package", "delete(Box.__init__)",
            "read as: delete(Box.__init__)", NULL, NULL},
    };
    char folder[200];
    snprintf(folder, sizeof folder, "%s/kit", tree);
    mkdir(folder, 0700);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_file("kit/boxes.py", boxes);
        put_file("kit/__init__.py", "from .boxes import Box\n\nCase = Box  # alias for the old name\n");
        host h = new_host();
        base_buf script = {0};
        base_buf_printf(&script,
            "opens 1\nlikely %s\nanswer }}</tools>\nanswer Done.\nanswer Done.\nanswer Done.\n",
            cases[i].likely);
        agent_session *s = open_session(&h, script.data, AGENT_MODE_ALL, NULL, false);
        submit(s, &h, cases[i].request);
        if (!told(&h, cases[i].read)) {
            const char *read = strstr(h.json.data, "read as: ");
            fail_msg("%zu: not %s but %.80s", i, cases[i].read, read ? read : "nothing");
        }
        if (cases[i].boxes) assert_file("kit/boxes.py", cases[i].boxes);
        if (cases[i].init) assert_file("kit/__init__.py", cases[i].init);
        agent_session_close(s);
        free_host(&h);
        base_buf_free(&script);
    }
    base_fs_remove(folder, NULL);
}

/* An order that begins with the verb and its object is a deletion, whatever reason is given; what bounds it is weighed. */
static void test_reading__an_order_to_delete_is_one(void **state)
{
    NEEDS_GRAMMAR;
    static const char gone[] = "static int clamp(int x, int step)\n{\n    return x + 1;\n}\n";
    static const struct {
        const char *request, *after;
    } cases[] = {
        {"get rid of total, since the old values are gone it's just a line", gone},
        {"Please get rid of `total()`. It only checks a value.", gone},
        {"take the function total out, that value was for the old output", gone},
        {"Throw the function total away because it raises an error on every value", gone},
        {"ditch total() - no output depends on it", gone},
        {"get rid of total's default value", before},
        {"get rid of total when no value is given", before},
        {"get rid of total, and add a check of the value to clamp", before},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_file("a.c", before);
        host h = new_host();
        agent_session *s = open_session(&h,
            "opens 1\nlikely change(total)\nanswer }}</tools>\nanswer Done.\nanswer Done.\nanswer Done.\n",
            AGENT_MODE_ALL, NULL, false);
        submit(s, &h, cases[i].request);
        char *now = get_file("a.c");
        if (strcmp(now, cases[i].after) != 0) fail_msg("%s", cases[i].request);
        free(now);
        agent_session_close(s);
        free_host(&h);
    }
}

int main(void)
{
    find_grammars();
    const struct CMUnitTest tests[] = {
        TEST_CASE(test_reading__the_likeliest_operation_is_done),
        TEST_CASE(test_reading__what_is_said_besides_stays),
        TEST_CASE(test_reading__an_operation_has_to_lead),
        TEST_CASE(test_reading__which_one_is_meant_is_asked),
        TEST_CASE(test_reading__two_that_are_described_go_together),
        TEST_CASE(test_reading__what_is_said_is_not_weighed),
        TEST_CASE(test_reading__a_definition_is_not_what_is_meant),
        TEST_CASE(test_reading__what_cannot_be_meant_is_not_read),
        TEST_CASE(test_reading__code_moves_to_no_file_of_tests),
        TEST_CASE(test_reading__what_is_inside_of_a_function_is_renamed),
        TEST_CASE(test_reading__a_statement_is_a_change),
        TEST_CASE(test_reading__a_misspelt_name_is_the_nearest_one),
        TEST_CASE(test_reading__two_clauses_are_both_done),
        TEST_CASE(test_reading__a_member_goes_and_its_type_stays),
        TEST_CASE(test_reading__a_name_that_is_praised_is_the_new_one),
        TEST_CASE(test_reading__a_package_file_is_no_method),
        TEST_CASE(test_reading__a_parameter_may_be_called_default),
        TEST_CASE(test_reading__what_a_file_has_does_not_go_there),
        TEST_CASE(test_reading__an_order_to_delete_is_one),
    };
    return RUN_ON_BOTH(tests);
}
