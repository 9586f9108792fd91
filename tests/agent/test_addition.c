/* The call that the program begins for what is new: an addition, an export, a test. */
#include <sys/stat.h>
#include <unistd.h>

#include "stage.h"

/* Where the request names the new function and its place, its call is begun, and where a language says how, its text. */
static void test_addition__an_addition_is_begun(void **state)
{
    NEEDS_GRAMMAR;
    static const char stack[] = "class Stack:\n"
                                "    def push(self, x):\n"
                                "        return x\n\n\n"
                                "class Empty:\n"
                                "    pass\n\n\n"
                                "def top(s):\n"
                                "    return s\n";
    static const struct {
        const char *request, *answer, *file, *has;
    } cases[] = {
        {"Add a method pop_all to class Stack that empties it", "):\n    return []", "stack.py",
            "        return x\n\n    def pop_all(self):\n        return []\n"},
        {"Add a method pop_all(n) to Stack", ":\n    return n", "stack.py",
            "        return x\n\n    def pop_all(self, n):\n        return n\n"},
        {"Add is_top(s, t): whether they are the same. Test it in tests/test_stack.py.",
            ":\n    return s == t", "stack.py", "def is_top(s, t):\n    return s == t\n"},
        {"Write a function is_top(s, t) in stack.py", ":\n    return s == t", "stack.py",
            "def is_top(s, t):\n    return s == t\n"},
        {"Add a function is_top to the stack module", "s):\n    return s", "stack.py",
            "def is_top(s):\n    return s\n"},
        {"Add a static method pop_all to Stack", "):\n    return []", "stack.py",
            "        return x\n\n    @staticmethod\n    def pop_all():\n        return []\n"},
        {"Add a function twice_more and declare it in twice.h",
            "static int twice_more(int a)\n{\n    return a;\n}", "twice.h",
            "int twice(int a);\nint twice_more(int a);\n"},
        /* A header that is called otherwise than its source: the text goes where the neighbour stands. */
        {"Add map_size(m) next to map_clear, with its prototype in map.h.",
            "int map_size(struct map *m)\n{\n    return 1;\n}", "libmap.c",
            "}\n\nint map_size(struct map *m)\n{\n    return 1;\n}\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        host h = new_host();
        base_buf script = {0};
        put_file("stack.py", stack);
        put_file("twice.h", "int twice(int a);\n");
        put_file("map.h", "struct map;\nvoid map_clear(struct map *m);\n");
        put_file("libmap.c", "#include \"map.h\"\n\nvoid map_clear(struct map *m)\n{\n    m = 0;\n}\n");
        put_file("twice.c", "#include \"twice.h\"\n\n"
                            "int twice(int a)\n"
                            "{\n"
                            "    return 2 * a;\n"
                            "}\n\n"
                            "static int more(int a)\n"
                            "{\n"
                            "    return twice(a);\n"
                            "}\n");
        base_buf_printf(&script, "answer <<X\n%s\n```\nX\nanswer Added.\nanswer Added.\nanswer Added.\n",
            cases[i].answer);
        agent_session *s = open_session(&h, script.data, AGENT_MODE_EDITS, NULL, false);
        submit(s, &h, cases[i].request);
        char *text = get_file(cases[i].file);
        if (!strstr(text, cases[i].has)) fail_msg("%s\n%s\n%s", cases[i].request, text, h.json.data);
        free(text);
        agent_session_close(s);
        free_host(&h);
        base_buf_free(&script);
    }
    /* What is there already is not added, and a question of many places is the model's. */
    static const char *const others[] = {"Add a method push to class Stack that calls print",
        "Add a function is_top that compares", "Add a test for the function top in stack.py"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        host h = new_host();
        put_file("stack.py", stack);
        agent_session *s = open_session(&h, "answer (no call)\n" NO NO NO NO, AGENT_MODE_EDITS, NULL, false);
        submit(s, &h, others[i]);
        if (told(&h, "pop_all") || told(&h, "(self(no call)")) fail_msg("%s", h.json.data);
        assert_file("stack.py", stack);
        agent_session_close(s);
        free_host(&h);
    }
}

/* However a request says that something is to come, the one new name that it writes is that. */
static void test_addition__a_new_name_is_to_come_in_any_wording(void **state)
{
    NEEDS_GRAMMAR;
    static const struct {
        const char *request, *name; /* NULL: none is begun */
    } cases[] = {{"Add pop_all() to empty a stack", "pop_all"},
        {"There should be a function is_top(s, t)", "is_top"},
        {"I need is_top, which is like top but gives True", "is_top"},
        {"Besides the top one should be able to ask whether it is one: is_top(s, t).", "is_top"},
        {"Next to top there should be is_top(s, t)", "is_top"},
        {"Extend the module by is_top(s, t)", "is_top"},
        {"Expose whether that is the top (is_top)", "is_top"},
        {"Stack needs a way to be emptied: pop_all()", "pop_all"},
        {"A stack cannot be emptied. Add pop_all for that and describe it in README.md.", "pop_all"},
        {"Add an option pop_all to top, off by default", NULL}, {"top should use os_fspath() instead", NULL},
        {"Stack needs a field n_items", NULL},
        {"The function top is missing a docstring, see the_docs()", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        host h = new_host();
        base_buf call = {0};
        put_file("README.md", "# Stack\n");
        put_file("stack.py",
            "class Stack:\n    def push(self, x):\n        return x\n\n\ndef top(s):\n    return s\n");
        agent_session *s =
            open_session(&h, "answer (no call)\n" NO NO NO NO NO, AGENT_MODE_EDITS, NULL, false);
        submit(s, &h, cases[i].request);
        base_buf_puts(&call, "\"arguments\":{\"path\":\"stack.py\",\"name\":\"");
        const char *begun = strstr(h.json.data, call.data), *said = begun ? begun + call.len : "";
        const char *name = strncmp(said, "Stack.", 6) ? said : said + 6;
        const bool is_new = strncmp(name, "top\"", 4) && strncmp(name, "push\"", 5) && *name;
        if (cases[i].name ? strncmp(name, cases[i].name, strlen(cases[i].name)) != 0 : is_new)
            fail_msg("%s: %.120s", cases[i].request, begun ? begun : "no call");
        agent_session_close(s);
        free_host(&h);
        base_buf_free(&call);
    }
}

/* "shop.html" is a module of Python here, and no page. */
static void test_addition__a_module_is_named_with_dots(void **state)
{
    NEEDS_GRAMMAR;
    char folder[200];
    snprintf(folder, sizeof folder, "%s/shop", tree);
    mkdir(folder, 0700);
    put_file("shop/html.py", "def has_tags(s):\n    return s\n");
    host h = new_host();
    agent_session *s = open_session(&h, "answer <<X\ns):\n    return 1\n```\nX\nanswer Done.\nanswer Done.\n",
        AGENT_MODE_EDITS, NULL, false);
    submit(s, &h, "Add has_links to shop.html, the same as has_tags but for links.");
    char *now = get_file("shop/html.py");
    if (!strstr(now, "def has_links(")) fail_msg("%s\n%s", now, h.json.data);
    free(now);
    agent_session_close(s);
    free_host(&h);
}

/* What other files say in the same words is copied from by a small model. */
static void test_addition__an_addition_to_a_file_sees_that_file(void **state)
{
    static const char body[] = "\n\n"
                               "def is_%s_number(n):\n"
                               "    \"\"\"Whether a number is %s and divides by two.\"\"\"\n"
                               "    return n\n";
    base_buf numbers = {0}, others = {0};
    base_buf_printf(&numbers, "import os\n");
    base_buf_printf(&others, "import os\n");
    base_buf_printf(&numbers, body, "prime", "prime");
    base_buf_printf(&others, body, "even", "even");
    put_file("numbers.py", numbers.data);
    put_file("others.py", others.data);
    put_file("numbers.rst", "Numbers\n=======\n\nAll about them.\n");
    static const struct {
        const char *request;
        bool sees_others;
    } cases[] = {{"Add a function halved(n) to numbers that divides an even number by two", false},
        {"Write a function halved(n) in the module numbers: an even number by two", false},
        {"Add a function halved(n) that divides an even number by two", true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        host h = new_host();
        agent_session *s = open_session(&h, "answer Added.\n" NO NO NO NO, AGENT_MODE_ALL, NULL, false);
        submit(s, &h, cases[i].request);
        assert_true(told(&h, "\"path\":\"numbers.py\"") || cases[i].sees_others);
        if (told(&h, "\"path\":\"others.py\"") != cases[i].sees_others) fail_msg("%s", cases[i].request);
        agent_session_close(s);
        free_host(&h);
    }
    base_buf_free(&numbers);
    base_buf_free(&others);
}

/* What the type has stands in front: methods, attributes, and the last one, which shows how they are used. */
static void test_addition__a_new_method_sees_what_its_type_has(void **state)
{
    base_buf text = {0};
    base_buf_puts(&text,
        "class Store:\n    def __init__(self):\n        self.rows = {}\n        self.n_read = 0\n\n"
        "    def read(\n        self, key\n    ):\n        return self.rows[key]\n\n");
    for (int i = 0; i < 12; i++)
        base_buf_printf(&text, "    def part_%d(self):\n        return other(%d)\n\n", i, i);
    for (int i = 0; i < 40; i++) base_buf_printf(&text, "    # more %d\n", i);
    base_buf_puts(
        &text, "\n    def zap(self):\n        del self.rows\n\n\ndef other(path):\n    return path\n");
    put_file("store.py", text.data);
    host h = new_host();
    agent_session *s = open_session(&h, "answer No.\n", AGENT_MODE_ALL, NULL, false);
    submit(s, &h, "Add a method count() to Store that says how many rows it has.");
    assert_true(
        told(&h, "What Store has:\\ndef __init__(self)\\ndef read( self, key )\\ndef part_0(self)\\n"));
    assert_true(told(&h, "def zap(self)\\nattributes: rows n_read\\n"));
    assert_true(told(&h, " (Store.zap)\\n    def zap(self):\\n        del self.rows\\n"));
    agent_session_close(s);
    free_host(&h);
    base_buf_free(&text);
}

/* "Export X": what is there goes into its package's file, by the program's text alone. */
static void test_addition__what_is_there_is_exported(void **state)
{
    NEEDS_GRAMMAR;
    static const char package[] =
        "\"\"\"Marks.\"\"\"\nfrom .ends import last_end\n\n__all__ = [\n    \"last_end\",\n]\n";
    static const struct {
        const char *request;
        const char *after; /* of the package's file */
    } cases[] = {
        {"Export FirstMark from the package.",
            "\"\"\"Marks.\"\"\"\nfrom .ends import last_end\nfrom .marks import FirstMark\n\n__all__ = [\n    "
            "\"last_end\",\n    \"FirstMark\",\n]\n"},
        {"FirstMark should be importable from the package: export it in __init__.py.",
            "\"\"\"Marks.\"\"\"\nfrom .ends import last_end\nfrom .marks import FirstMark\n\n__all__ = [\n    "
            "\"last_end\",\n    \"FirstMark\",\n]\n"},
        {"Export last_end from the package.", package}, /* it is */
        {"Export NoMark from the package.", package},   /* nobody has it */
    };
    base_buf path = {0};
    base_buf_printf(&path, "%s/marks", tree);
    assert_int_equal(base_fs_mkdirs(path.data, NULL), 0);
    base_buf_free(&path);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_file("marks/__init__.py", package);
        put_file("marks/ends.py", "def last_end():\n    return 1\n");
        put_file("marks/marks.py", "class FirstMark:\n    def at(self):\n        return 0\n");
        host h = new_host();
        agent_session *s = open_session(&h, "answer ```\n" NO NO NO NO, AGENT_MODE_ALL, NULL, false);
        agent_session_agent(s)->settings.tries = 0;
        submit(s, &h, cases[i].request);
        char *text = get_file("marks/__init__.py");
        if (strcmp(text, cases[i].after) != 0) fail_msg("%s\n%s\n%s", cases[i].request, text, h.json.data);
        free(text);
        agent_session_close(s);
        free_host(&h);
    }
}

/* A document that was to change too is begun at its place once the code is there, and ends with its line. */
static void test_addition__a_document_tells_of_it(void **state)
{
    NEEDS_GRAMMAR;
    static const struct {
        const char *path, *text, *answer, *after;
    } cases[] = {
        {"README.md", "# Twice\n\n```\ntwice  # doubles\nother  # does not\n```\n", " triples it",
            "# Twice\n\n```\ntwice  # doubles\nthrice # triples it\nother  # does not\n```\n"},
        {"CHANGES", "1.1\n---\n- no changes yet\n\n1.0\n---\n- add `twice`\n", ".\n\n",
            "1.1\n---\n- add `thrice`.\n\n1.0\n---\n- add `twice`\n"},
        {"ChangeLog", "1.0\n  * Added twice\n", " of a number\nand more that is not asked for",
            "  * Added thrice of a number\n\n1.0\n  * Added twice\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        base_buf script = {0}, request = {0};
        put_file("twice.py", "def twice(a):\n    return 2 * a\n");
        put_file(cases[i].path, cases[i].text);
        base_buf_printf(&script,
            "answer <<X\n:\n    return 3 * a\n```\nX\n" NO "answer <<X\n%s\nX\nanswer Done.\n" NO,
            cases[i].answer);
        base_buf_printf(
            &request, "Add a function thrice(a) to twice.py, and note it at the top of %s.", cases[i].path);
        host h = new_host();
        agent_session *s = open_session(&h, script.data, AGENT_MODE_ALL, NULL, false);
        agent_session_agent(s)->settings.tries = 0;
        submit(s, &h, request.data);
        assert_file("twice.py", "def twice(a):\n    return 2 * a\n\n\ndef thrice(a):\n    return 3 * a\n");
        char *text = get_file(cases[i].path);
        if (strcmp(text, cases[i].after) != 0) fail_msg("%s\n%s\n%s", cases[i].path, text, h.json.data);
        free(text);
        agent_session_close(s);
        free_host(&h);
        base_buf_free(&script);
        base_buf_free(&request);
        put_file(cases[i].path, "");
    }
}

/* A new function of a named type: its call is begun, with the receiver and in the place of the type's others. */
static void test_addition__a_function_of_a_type_is_begun(void **state)
{
    NEEDS_GRAMMAR;
    static const struct {
        const char *path, *text, *request, *begins, *answer, *after; /* begins NULL: nothing is begun */
    } cases[] = {
        {"queue.go", "package q\n\ntype Queue struct{ n int }\n\nfunc (q *Queue) Pop() {\n\tq.n--\n}\n",
            "Add a method Reset to Queue that sets n to 0", "func (q *Queue) Reset",
            "() {\n\tq.n = 0\n}\n```",
            "package q\n\n"
            "type Queue struct{ n int }\n\n"
            "func (q *Queue) Pop() {\n"
            "\tq.n--\n"
            "}\n\n"
            "func (q *Queue) Reset() {\n"
            "\tq.n = 0\n"
            "}\n"},
        {"queue.rs", "pub struct Queue;\n\nimpl Queue {\n    pub fn pop(&self) {}\n}\n",
            "Queue needs a method `reset`", "pub fn reset", "(&self) {}\n```",
            "pub struct Queue;\n\nimpl Queue {\n    pub fn pop(&self) {}\n\n    pub fn reset(&self) {}\n}\n"},
        {"queue.js", "export class Queue {\n  pop() {\n    return 1;\n  }\n}\n",
            "Add a reset() method to Queue", "\nreset", "() {\n  return 0;\n}\n```",
            "export class Queue {\n  pop() {\n    return 1;\n  }\n\n  reset() {\n    return 0;\n  }\n}\n"},
        {"queue.js", "export function pop() {\n  return 1;\n}\n", "Add a function reset to queue.js",
            "export function reset", "() {\n  return 0;\n}\n```",
            "export function pop() {\n  return 1;\n}\n\nexport function reset() {\n  return 0;\n}\n"},
        {"queue.py", "class Queue:\n    def pop(self):\n        return 1\n", "Add a method reset to Queue",
            "def reset(self", "):\n    return 0\n```",
            "class Queue:\n    def pop(self):\n        return 1\n\n    def reset(self):\n        return 0\n"},
        {"queue.py", "class Queue:\n    def pop(self):\n        return 1\n",
            "Ask a queue whether it is empty: add is_empty, which returns a bool", "def is_empty(self",
            "):\n    return 0\n```",
            "class Queue:\n"
            "    def pop(self):\n"
            "        return 1\n\n"
            "    def is_empty(self):\n"
            "        return 0\n"},
        {"index.js", "exports.parse = parse\n\nfunction parse (s) {\n  return s\n}\n",
            "Add and export isValid(s), which returns true if it can be parsed, and describe it in README.md",
            "function isValid", " (s) {\n  return true\n}\n```",
            "exports.parse = parse\nexports.isValid = isValid\n\nfunction parse (s) {\n  return s\n}\n\n"
            "function isValid (s) {\n  return true\n}\n"},
        {"cache.go", "package q\n\ntype LRU struct{ n int }\n\ntype Cache struct{ n int }\n",
            "Add method Reset to LRU Cache: it sets n to 0", "func (c *Cache) Reset",
            "() {\n\tc.n = 0\n}\n```",
            "package q\n\ntype LRU struct{ n int }\n\ntype Cache struct{ n int }\n\nfunc (c *Cache) Reset() {\n\tc.n = "
            "0\n}\n"},
        /* Another type's method of that name is another thing. */
        {"queue.go",
            "package q\n\ntype Queue struct{ n int }\n\nfunc (q *Queue) Pop() {\n\tq.n--\n}\n\ntype Stack struct{ n "
            "int }\n",
            "q: add the missing Pop() to Stack", "func (s *Stack) Pop", "() {\n\ts.n--\n}\n```",
            "package q\n\n"
            "type Queue struct{ n int }\n\n"
            "func (q *Queue) Pop() {\n"
            "\tq.n--\n"
            "}\n\n"
            "type Stack struct{ n int }\n\n"
            "func (s *Stack) Pop() {\n"
            "\ts.n--\n"
            "}\n"},
        {"queue.py",
            "from contextlib import contextmanager\n\n\nclass Queue:\n    @contextmanager\n    def held(self):\n     "
            "   yield\n",
            "Add a `muted` context manager to Queue", "@contextmanager\ndef muted(self",
            "):\n    yield 1\n```",
            "from contextlib import contextmanager\n\n\nclass Queue:\n    @contextmanager\n    def held(self):\n     "
            "   yield\n\n    @contextmanager\n    def muted(self):\n        yield 1\n"},
        /* Where nothing says the place: beside the function that it is compared with. */
        {"split.go", "package q\n\nfunc Split(s string) []string {\n\treturn nil\n}\n",
            "Add a function MustSplit(s string) that splits like Split and panics on an error",
            "func MustSplit(s string)", " []string {\n\treturn Split(s)\n}\n```",
            "package q\n\nfunc Split(s string) []string {\n\treturn nil\n}\n\n"
            "func MustSplit(s string) []string {\n\treturn Split(s)\n}\n"},
        /* Python: a file that says what it hands out hands the new function out too, whatever its name is like. */
        {"seqs.py",
            "__all__ = ('first', 'peek')\n\n\ndef first(s):\n    return s[0]\n\n\ndef peek(s):\n    return s\n",
            "Add a function third(s) to seqs.py that gives the third element", "def third(s)",
            ":\n    return s[2]\n```",
            "__all__ = ('first', 'peek', 'third')\n\n\ndef first(s):\n    return s[0]\n\n\n"
            "def peek(s):\n    return s\n\n\ndef third(s):\n    return s[2]\n"},
        /* JavaScript before it had classes: methods stand on the prototype. */
        {"accepts.js",
            "function Accepts(r) {\n  this.r = r\n}\n\nAccepts.prototype.types = function types(x) {\n  return this.r\n}\n",
            "Add a method first(x) to Accepts that returns the first of the types",
            "Accepts.prototype.first = function first", "(x) {\n  return this.types(x)[0]\n}\n```",
            "function Accepts(r) {\n  this.r = r\n}\n\nAccepts.prototype.first = function first(x) {\n"
            "  return this.types(x)[0]\n}\n\nAccepts.prototype.types = function types(x) {\n  return this.r\n}\n"},
        /* Go: names alone get the types that the file's other functions give them; where one is unknown the model writes the list. */
        {"sum.go", "package q\n\nfunc Sum(in Data, window, most int) (int, error) {\n\treturn 0, nil\n}\n",
            "Add a function Range(in, window) to sum.go that gives the widest window",
            "func Range(in Data, window int)", " int {\n\treturn 1\n}\n```",
            "package q\n\nfunc Sum(in Data, window, most int) (int, error) {\n\treturn 0, nil\n}\n\n"
            "func Range(in Data, window int) int {\n\treturn 1\n}\n"},
        {"sum.go", "package q\n\nfunc Sum(in Data) int {\n\treturn 0\n}\n",
            "Add a function Range(in, window) to sum.go that gives the widest window", "func Range",
            "(in Data, window int) int {\n\treturn 1\n}\n```",
            "package q\n\nfunc Sum(in Data) int {\n\treturn 0\n}\n\n"
            "func Range(in Data, window int) int {\n\treturn 1\n}\n"},
        {"sum.c", "static int twice(int a)\n{\n    return 2 * a;\n}\n",
            "Add a function int half(int a) to sum.c", "int half(int a)", "\n{\n    return a / 2;\n}\n```",
            "static int twice(int a)\n{\n    return 2 * a;\n}\n\nint half(int a)\n{\n    return a / 2;\n}\n"},
        /* A file that is not there yet is the place, whatever the request's words fit elsewhere. */
        {"lists.py", "", "Add joined(items) in a new file lists.py: it joins the items of a queue",
            "def joined(items)", ":\n    return 1\n```", "def joined(items):\n    return 1\n"},
        {"queue.py", "class Queue:\n    def pop(self):\n        return 1\n",
            "Add a method pop to Queue, if it has none", NULL, "None is needed.", NULL}, /* it has one */
        {"queue.py", "class Queue:\n    def pop(self):\n        return 1\n", "Add a method reset to Stack",
            NULL, "There is no Stack.", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (*cases[i].text)
            put_file(cases[i].path, cases[i].text);
        else
            put_file("queue.py", "def pop(queue, items):\n    return items\n");
        host h = new_host();
        base_buf script = {0};
        base_buf_printf(&script, "answer <<X\n%s\nX\n" NO NO NO NO, cases[i].answer);
        agent_session *s = open_session(&h, script.data, AGENT_MODE_ALL, NULL, false);
        agent_session_agent(s)->settings.tries = 0;
        submit(s, &h, cases[i].request);
        if (cases[i].after) {
            assert_file(cases[i].path, cases[i].after);
            base_buf begins = {0};
            base_json_put_str(&begins, cases[i].begins, strlen(cases[i].begins));
            begins.data[begins.len - 1] = '\0'; /* without its quotes */
            if (!told(&h, begins.data + 1)) fail_msg("%s: %s", cases[i].request, h.json.data);
            base_buf_free(&begins);
        } else if (told(&h, "\"label\":\"opening\"")) {
            fail_msg("%s: %s", cases[i].request, h.json.data);
        }
        agent_session_close(s);
        free_host(&h);
        base_buf_free(&script);
        drop_folders(state);
        make_folders(state);
    }
}

/* Rust's tests stand in the file itself, in a module; JavaScript's are calls, so a new one gets a file. */
static void test_addition__a_new_test_finds_its_place(void **state)
{
    NEEDS_GRAMMAR;
    static const char rust[] =
        "pub fn twice(x: i32) -> i32 {\n    x + x\n}\n\npub fn half(x: i32) -> i32 {\n    x / 2\n}\n\n"
        "#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn twice_of_two() {\n"
        "        assert_eq!(twice(2), 4);\n    }\n}\n";
    static const char *const folders[] = {"src", "lib", "tests"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        base_buf path = {0};
        base_err err = {0};
        base_buf_printf(&path, "%s/%s", tree, folders[i]);
        assert_int_equal(base_fs_mkdirs(path.data, &err), 0);
        base_buf_free(&path);
    }
    put_file("src/lib.rs", rust);
    put_file("lib/shape.js", "export class Shape {\n"
                             "  area(n) {\n"
                             "    return n * n;\n"
                             "  }\n\n"
                             "  edgeLength(n) {\n"
                             "    return 4 * n;\n"
                             "  }\n"
                             "}\n");
    put_file("tests/shape.test.js", "import { test } from 'node:test';\n"
                                    "import assert from 'node:assert';\n"
                                    "import { Shape } from '../lib/shape.js';\n\n"
                                    "test('area', () => {\n  assert.equal(new Shape().area(2), 4);\n});\n");
    put_file("third.go", "package third\n\nfunc third(a int) int {\n\treturn a / 3\n}\n");
    put_file("third_test.go", "package third\n\n"
                              "import \"testing\"\n\n"
                              "func TestThird(t *testing.T) {\n"
                              "\tfor _, c := range []struct{ a, b int }{\n"
                              "\t\t{0, 0},\n"
                              "\t\t{3, 1},\n"
                              "\t\t{6, 2},\n"
                              "\t} {\n"
                              "\t\tcheck(t, third(c.a), c.b)\n"
                              "\t}\n"
                              "}\n");
    put_file("Halves.java", "class Halves {\n    int halve(int n) {\n        return n / 2;\n    }\n}\n");
    put_file("tests/HalvesTest.java", "class HalvesTest {\n"
                                      "    @Test\n"
                                      "    public void halvesAreWhole() {\n"
                                      "        assertEquals(2, new Halves().halve(4));\n"
                                      "    }\n"
                                      "}\n");
    /* An example calls it too, in a folder of its own, and is no test. */
    put_file("lib/example_test.go", "package lib\n\nfunc Example_fourth() {\n\tfourth(4)\n}\n");
    put_file("fourth.go", "package third\n\nfunc fourth(a int) int {\n\treturn a / 4\n}\n");
    put_file("some_test.go",
        "package third\n\nimport \"testing\"\n\nfunc TestQuarters(t *testing.T) {\n\tif fourth(4) != 1 "
        "{\n\t\tt.Fail()\n\t}\n}\n");
    static const struct {
        const char *request, *answer, *file, *has;
    } cases[] = {
        {"Cover Halves.halve with a test.", "    assertEquals(0, new Halves().halve(0));\n}",
            "tests/HalvesTest.java",
            "    }\n\n"
            "    @Test\n"
            "    public void testHalve() {\n"
            "        assertEquals(0, new Halves().halve(0));\n"
            "    }\n"
            "}\n"},
        {"fourth should be tested with 8.", "8); got != 2 {\n\t\tt.Fail()\n\t}\n}", "some_test.go",
            "}\n\nfunc TestFourth(t *testing.T) {\n\tif got := fourth(8); got != 2 {\n"},
        {"Add a test for half", "8), 4);\n}", "src/lib.rs",
            "4);\n"
            "    }\n\n"
            "    #[test]\n"
            "    fn test_half() {\n"
            "        assert_eq!(half(8), 4);\n"
            "    }\n"
            "}\n"},
        {"Add a test for edgeLength", "new Shape().edgeLength(2), 8);\n});", "tests/edgeLength.test.js",
            "import { Shape } from '../lib/shape.js';\n\n"
            "test('edgeLength', () => {\n"
            "  assert.equal(new Shape().edgeLength(2), 8);\n"
            "});\n"},
        {"Add a test for edgeLength which fails", "  assert.throws(() => new Shape().edgeLength());\n});",
            "tests/edgeLength.test.js",
            "});\n\ntest('edgeLength which fails', () => {\n  assert.throws(() => new Shape().edgeLength());\n});\n"},
        /* A table's rows are its tests. */
        {"Add tests for third with 9 and 12",
            "9, 3},\n\t\t{12, 4},\n\t} {\n\t\tcheck(t, third(c.a), c.b)\n\t}\n}", "third_test.go",
            "\t\t{3, 1},\n"
            "\t\t{6, 2},\n"
            "\t\t{9, 3},\n"
            "\t\t{12, 4},\n"
            "\t} {\n"
            "\t\tcheck(t, third(c.a), c.b)\n"
            "\t}\n"
            "}\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        host h = new_host();
        base_buf script = {0};
        base_buf_printf(&script, "answer <<X\n%s\n```\nX\nanswer Added.\nanswer Added.\nanswer Added.\n",
            cases[i].answer);
        agent_session *s = open_session(&h, script.data, AGENT_MODE_EDITS, NULL, false);
        submit(s, &h, cases[i].request);
        char *text = get_file(cases[i].file);
        if (!strstr(text, cases[i].has)) fail_msg("%s\n%s", text, h.json.data);
        assert_false(told(&h, "No test was added"));
        free(text);
        agent_session_close(s);
        free_host(&h);
        base_buf_free(&script);
    }
}

/* Where tests stand in a "describe", a new one stands behind its nearest; one that a block of its own surrounds needs another. */
static void test_addition__a_new_test_stands_in_its_describe(void **state)
{
    NEEDS_GRAMMAR;
    static const struct {
        const char *request, *tests, *answers, *after;
    } cases[] = {
        {"Nothing tests that nothing is ended by nothing: halfOf(0) is 0. Add a test for halfOf.",
            "describe('halves', function () {\n"
            "  it('should halve', function () {\n"
            "    assert(m.halfOf(4) === 2)\n"
            "  })\n\n"
            "  it('should double', function () {\n"
            "    assert(m.twice(4) === 8)\n"
            "  })\n"
            "})\n",
            "answer <<X\n0) === 0)\n  })\n```\nX\n",
            "  })\n\n"
            "  it('nothing is ended by nothing', function () {\n"
            "    assert(m.halfOf(0) === 0)\n"
            "  })\n\n"
            "  it('should double', function () {\n"},
        /* The second attempt takes the place of the first. */
        {"Add a test that the half of zero is zero: halfOf(0) is 0.",
            "it('should halve', () => {\n"
            "  assert(m.halfOf(4) === 2)\n"
            "})\n",
            "answer <<X\n0) === 1)\n})\n```\nX\nanswer <<X\n0) === 0)\n})\n```\nX\n",
            "it('should halve', () => {\n"
            "  assert(m.halfOf(4) === 2)\n"
            "})\n\n"
            "it('the half of zero is zero', () => {\n"
            "  assert(m.halfOf(0) === 0)\n"
            "})\n"},
        {"Add a test for halfOf of zero",
            "describe('halves', () => {\n"
            "  given(4, () => {\n"
            "    it('is 2', () => {\n"
            "      assert(m.halfOf(value) === 2)\n"
            "    })\n"
            "  })\n"
            "})\n",
            "answer <<X\n0, () => {\n    it('is 0', () => {\n      assert(m.halfOf(value) === 0)\n    })\n  })\n```\nX\n",
            "  })\n\n"
            "  given(0, () => {\n"
            "    it('is 0', () => {\n"},
        /* What stands behind it begins alike, and stays. */
        {"Add a test for halfOf of zero",
            "describe('halves', () => {\n"
            "  given(4, () => {\n"
            "    it('is 2', () => {\n"
            "      assert(m.halfOf(value) === 2)\n"
            "    })\n"
            "  })\n\n"
            "  given(8, () => {\n"
            "    it('is 8', () => {\n"
            "      assert(value === 8)\n"
            "    })\n"
            "  })\n"
            "})\n",
            "answer <<X\n0, () => {\n    it('is 0', () => {\n      assert(m.halfOf(value) === 0)\n    })\n  })\n```\nX\n",
            "      assert(m.halfOf(value) === 0)\n"
            "    })\n"
            "  })\n\n"
            "  given(8, () => {\n"
            "    it('is 8', () => {\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        base_buf path = {0}, tests = {0}, script = {0};
        base_buf_printf(&path, "%s/test", tree);
        assert_int_equal(base_fs_mkdirs(path.data, NULL), 0);
        base_buf_printf(&tests,
            "const assert = require('assert')\nconst m = require('../half')\n"
            "const it = (name, f) => f(), describe = it\nlet value = 0\n"
            "function given(n, f) {\n  value = n\n  f()\n}\n\n%s",
            cases[i].tests);
        put_file("half.js", "exports.halfOf = halfOf\n\nfunction halfOf(n) {\n  return n / 2\n}\n");
        put_file("test/half.js", tests.data);
        put_file("package.json", "{\"name\": \"half\", \"scripts\": {\"test\": \"node test/half.js\"}}\n");
        base_buf_printf(&script, "%s" NO NO NO NO, cases[i].answers);
        host h = new_host();
        agent_session *s = open_session(&h, script.data, AGENT_MODE_ALL, NULL, false);
        agent_session_agent(s)->settings.tries = 0;
        submit(s, &h, cases[i].request);
        char *text = get_file("test/half.js");
        if (!strstr(text, cases[i].after)) fail_msg("%s\n%s\n%s", cases[i].request, text, h.json.data);
        free(text);
        agent_session_close(s);
        free_host(&h);
        base_buf_free(&path);
        base_buf_free(&tests);
        base_buf_free(&script);
    }
}

/* A test of JavaScript is a file of its own: once it is there, the attempt behind a failure writes its lines, not a second file. */
static void test_addition__a_scripts_new_test_is_written_again_by_its_lines(void **state)
{
    NEEDS_GRAMMAR;
    static const char imports[] = "import { test } from 'node:test';\n"
                                  "import assert from 'node:assert';\n"
                                  "import { Shape } from '../lib/shape.js';\n\n";
    static const char *const folders[] = {"lib", "tests"};
    /* The first candidate begins as it likes, the others with a line of their own. */
    static const char *const tries[][3] = {{"0", "", ""}, {"3", "answer Hm.\n", "Eight.\n"}};
    base_buf old = {0}, after = {0};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        base_buf path = {0};
        base_buf_printf(&path, "%s/%s", tree, folders[i]);
        assert_int_equal(base_fs_mkdirs(path.data, NULL), 0);
        base_buf_free(&path);
    }
    base_buf_printf(&old, "%stest('area', () => {\n  assert.equal(new Shape().area(2), 4);\n});\n", imports);
    base_buf_printf(&after,
        "%stest('edgeLength', () => {\n  assert.equal(new Shape().edgeLength(2), 8);\n});\n", imports);
    put_file("lib/shape.js", "export class Shape {\n"
                             "  area(n) {\n"
                             "    return n * n;\n"
                             "  }\n\n"
                             "  edgeLength(n) {\n"
                             "    return 4 * n;\n"
                             "  }\n"
                             "}\n");
    put_file("tests/shape.test.js", old.data);
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        host h = new_host();
        base_buf command = {0}, path = {0}, script = {0};
        stage_configured[AGENT_CONFIGURED_TEST] = (agent_configured_command){
            "cd tests; ! test -s edgeLength.test.js || grep -q 'edgeLength(2), 8)' edgeLength.test.js",
            "the command line", true};
        base_buf_printf(&script,
            "answer <<X\n"
            "new Shape().edgeLength(2), 9);\n"
            "});\n"
            "```\n"
            "X\n"
            "%sanswer <<X\n"
            "%snew Shape().edgeLength(2), 8);\n"
            "});\n"
            "```\n"
            "X\n"
            "answer Added.\n"
            "answer Added.\n",
            tries[i][1], tries[i][2]);
        agent_session *s = open_session(&h, script.data, AGENT_MODE_ALL, NULL, false);
        base_buf_printf(&command, "/tries %s", tries[i][0]);
        assert_int_equal(submit(s, &h, command.data), 0);
        submit(s, &h, "Add a test for edgeLength");
        char *text = get_file("tests/edgeLength.test.js");
        if (strcmp(text, after.data) != 0) fail_msg("%s\n%s", text, h.json.data);
        assert_true(told(&h, "\"status\":\"failed\""));
        if (!told(&h, "\"from\":1,\"to\":7")) fail_msg("tries %s: %s", tries[i][0], h.json.data);
        assert_file("tests/edgeLength2.test.js", "(missing)");
        assert_file("tests/shape.test.js", old.data);
        free(text);
        agent_session_close(s);
        free_host(&h);
        base_buf_free(&command);
        base_buf_free(&script);
        base_buf_printf(&path, "%s/tests/edgeLength.test.js", tree);
        assert_int_equal(unlink(path.data), 0);
        base_buf_free(&path);
    }
    base_buf_free(&old);
    base_buf_free(&after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_CASE(test_addition__an_addition_is_begun),
        TEST_CASE(test_addition__a_new_name_is_to_come_in_any_wording),
        TEST_CASE(test_addition__a_module_is_named_with_dots),
        TEST_CASE(test_addition__an_addition_to_a_file_sees_that_file),
        TEST_CASE(test_addition__a_new_method_sees_what_its_type_has),
        TEST_CASE(test_addition__what_is_there_is_exported),
        TEST_CASE(test_addition__a_document_tells_of_it),
        TEST_CASE(test_addition__a_function_of_a_type_is_begun),
        TEST_CASE(test_addition__a_new_test_finds_its_place),
        TEST_CASE(test_addition__a_new_test_stands_in_its_describe),
        TEST_CASE(test_addition__a_scripts_new_test_is_written_again_by_its_lines),
    };
    find_grammars();
    return RUN_ON_BOTH(tests);
}
