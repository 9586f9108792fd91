/* The calls in a test that a model wrote, what they gave, and the test that expects just that, a language each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/newtest/newtest.h"
#include "agent/newtest/probe.h"

typedef struct written {
    const char *path, *file, *gives, *text; /* the text: the model's */
    const char *probe;                      /* a piece of the probe; NULL: not looked at */
    const char *output, *recorded;          /* NULL: nothing can be expected */
} written;

static void check(const written *w)
{
    base_buf file = {0}, probe = {0}, out = {0};
    agent_steps s;
    base_buf_puts(&file, w->file);
    const agent_probe_style style = {
        .path = w->path, .file = &file, .gives = w->gives, .is_method = strstr(w->file, "self")};
    assert_true(agent__find_calls(w->path, w->text, strlen(w->text), "f", "", &s));
    agent__put_probe(&style, &s, &probe);
    if (w->probe && !strstr(probe.data, w->probe)) fail_msg("%s not in %s", w->probe, probe.data);
    const uint32_t n = agent__read_probe(&style, w->output, &s);
    agent__drop_useless(&s);
    assert_int_equal(n > 0, w->recorded != NULL);
    if (n) agent__put_recorded(&style, &s, &out);
    if (w->recorded) assert_string_equal(out.data, w->recorded);
    agent_steps_free(&s);
    base_buf_free(&file);
    base_buf_free(&probe);
    base_buf_free(&out);
}

static void test_probe__what_is_printed_is_expected(void **state)
{
    static const written all[] = {
        {"t.py", "assert g()\n", "",
            "def test_f():\n    a = A(2)\n    b = 3\n    assert a.f('x', (1,\n        2)) == 7\n    assert f(1) == f(1)\n",
            "    try:\n        a = A(2)\n",
            "E   AssertionError: kvist-value 1 0 'y'\nE   kvist-value 2 0 None\n",
            "    a = A(2)\n    assert a.f('x', (1, 2)) == 'y'\n    assert f(1) is None\n"},
        {"t.py", "class T:\n    def test(self):\n        self.assertEqual(1, 1)\n", "",
            "def test_f(self):\n    self.assertEqual(f('x'), 1)\n    self.assertEqual(f([]), 1)\n    self.assertEqual(f(()), 1)",
            NULL, "kvist-error 0 0 ValueError\nkvist-list 1 0 [1, 2]\nkvist-error 2 0 TypeError\n",
            "    with self.assertRaises(ValueError):\n        f('x')\n    self.assertEqual(list(f([])), [1, 2])\n"},
        {"a_test.go", "package a\n", "",
            "\tif got := f(\"a%\", 1); got != 2 {\n\t\tt.Error(got)\n\t}\n\tif f(\"b\", 2) != 1 {\n\t}\n",
            "}(f(\"a%\", 1))\n", "kvist-value 0 0 \"x\"\nkvist-value 1 0 true\n",
            "\tif got := f(\"a%\", 1); got != \"x\" {\n\t\tt.Errorf(\"f(\\\"a%%\\\", 1) = %q, want %q\", got, \"x\")\n\t}\n"
            "\tif !f(\"b\", 2) {\n\t\tt.Errorf(\"f(\\\"b\\\", 2) = false, want true\")\n\t}\n"},
        {"a_test.go", "package a\n", "", "\tx, err := f(1)\n\ty, err := f(2)\n\tz := f(3)\n", NULL,
            "kvist-value 0 0 5\nkvist-value 0 1 <nil>\nkvist-value 1 0 0\nkvist-error 1 1 \"bad\"\nkvist-value 2 0 []string{\"a\"}\n",
            "\tif got, err := f(1); got != 5 || err != nil {\n\t\tt.Errorf(\"f(1) = %v, %v\", got, err)\n\t}\n"
            "\tif _, err := f(2); err == nil {\n\t\tt.Errorf(\"f(2) gave no error\")\n\t}\n"
            "\tif got := f(3); !reflect.DeepEqual(got, []string{\"a\"}) {\n"
            "\t\tt.Errorf(\"f(3) = %v, want %v\", got, []string{\"a\"})\n\t}\n"},
        {"a.test.js", "  t.assert.equal(1, 1)\n", "",
            "  const o = {a: 1}\n  t.assert.equal(f(o, {b: [2]}), 1)\n  t.assert.equal(f(''), 1)\n})\n",
            "    const o = {a: 1}\n", "kvist-value 1 0 {c: 'x'}\nkvist-error 2 0 RangeError\n",
            "    const o = {a: 1}\n    t.assert.deepStrictEqual(f(o, {b: [2]}), {c: 'x'})\n    t.assert.throws(() => f(''))\n"},
        {"a.test.ts", "  expect(1).toBe(1)\n", "",
            "it('x', () => {\n  expect(f(1)).toBe(2)\n  expect(f(2)).toBe(2)\n})\n", NULL,
            "kvist-value 0 0 [1]\nkvist-value 1 0 <object>\n", "    expect(f(1)).toEqual([1])\n"},
        {"t.c", "  assert(1);\n", "static const char *",
            "    char a[] = \"x\";\n    assert(strcmp(f(a, 1), \"y\") == 0);\n",
            "const char *kvist = f(a, 1);", "kvist-value 1 0 \"z\\\"\"\n",
            "    char a[] = \"x\";\n    assert(strcmp(f(a, 1), \"z\\\"\") == 0);\n"},
        {"t.c", "  TEST(1);\n", "size_t ", "    TEST(f(1) == 2);\n",
            "\"\\nkvist-value 0 0 %ld\\n\", (long)(f(1))", "kvist-value 0 0 3\n", "    TEST(f(1) == 3);\n"},
        {"l.rs", "", "fn f(a: &str) -> Ordering ",
            "    assert_eq!(super::f(\"a\", \"b\"), 1);\n    assert!(f(\"a\").is_some());\n", NULL,
            "kvist-value 0 0 Less\nkvist-value 1 0 true\n",
            "    assert_eq!(super::f(\"a\", \"b\"), std::cmp::Ordering::Less);\n    assert!(f(\"a\").is_some());\n"},
        {"l.rs", "", "fn f(a: &str) -> T ", "    assert_eq!(f(\"a\"), 1);\n", NULL,
            "kvist-value 0 0 T { a: 1 }\n", NULL},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) check(&all[i]);
}

/* Names that a block binds, or that a function is given, stand for nothing alone. */
static void test_probe__calls_that_cannot_stand_alone_are_none(void **state)
{
    static const char *const all[][2] = {{"t.py", "    for k, v in cases:\n        assert f(k) == v\n"},
        {"t.py", "def test_f(app):\n    assert f(app) == 1\n"}, {"t.py", "    # f(1)\n    assert 'f(2)'\n"},
        {"t.py", "    assert g.ff(1) == 2\n"}, {"t.py", "    assert f(1, 2\n"},
        {"a_test.go", "\tfor _, tt := range tests {\n\t\tif got := f(tt.in); got != tt.want {\n"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        agent_steps s;
        if (agent__find_calls(all[i][0], all[i][1], strlen(all[i][1]), "f", "", &s))
            fail_msg("%s", all[i][1]);
    }
}

/* Further calls have other literals in the place of what the subject is given. */
static void test_probe__calls_are_varied(void **state)
{
    static const struct {
        const char *path, *text, *calls[4];
    } all[] = {
        {"t.py", "    assert A('x').f('aB', 3) == 1\n",
            {"A('x').f('aB', 3)", "A('x').f('Ab', 4)", "A('x').f('aB-aB', 16)", "A('x').f('', 0)"}},
        {"a_test.go", "\tif f('a') != 1 {\n", {"f('a')", "f('Z')", "f('0')", "f(' ')"}},
        {"t.py", "    assert f(1) == 1\n    assert f(2) == 1\n", {"f(1)", "f(2)", "f(12)", "f(0)"}},
        {"t.py", "    x = g()\n    assert f(x, 1.5) == 1\n", {"f(x, 1.5)"}},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        agent_steps s;
        uint32_t n = 0;
        assert_true(agent__find_calls(all[i].path, all[i].text, strlen(all[i].text), "f", "", &s));
        agent__vary_calls(all[i].path, "f", 4, &s);
        for (uint32_t k = 0; k < s.n; k++)
            if (s.steps[k].kind == AGENT_STEP_CALL) assert_string_equal(s.steps[k].text, all[i].calls[n++]);
        assert_true(n == 4 || !all[i].calls[n]);
        agent_steps_free(&s);
    }
}

/* A call whose lines are more than a test has room for is left out; one that needs none of them stays. */
static void test_probe__lines_without_room(void **state)
{
    enum { LINES = 40 };
    base_buf text = {0};
    agent_steps s;
    base_buf_puts(&text, "    assert f(7) == 1\n    x0 = 1\n");
    for (int i = 1; i < LINES; i++) base_buf_printf(&text, "    x%d = x%d + 1\n", i, i - 1);
    base_buf_printf(&text, "    assert f(x%d) == 40\n", LINES - 1);
    assert_true(agent__find_calls("t.py", text.data, text.len, "f", "", &s));
    assert_true(s.n <= AGENT_MAX_STEPS);
    uint32_t n_calls = 0;
    for (uint32_t i = 0; i < s.n; i++) n_calls += s.steps[i].kind == AGENT_STEP_CALL;
    assert_int_equal(n_calls, 1);
    assert_string_equal(s.steps[0].text, "f(7)");
    agent_steps_free(&s);
    base_buf_free(&text);
}

/* What the calls of a file are given says what a further one is given. */
static void test_probe__calls_of_a_file_say_what_is_given(void **state)
{
    static const char *const all[][2] = {{"g(1)\nf('x', 1)\n", "'"}, {"s = \"x\"\na.f(s, 1)\n", "\""},
        {"f(1)\nf([2])\n", "["}, {"s, t = 'a', 'b'\nf(s, t)\n", "'"}, {"f(s + 1)\n", ""}, {"ff('a')\n", ""},
        {"f(s)\n", ""}, {"", ""}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        base_buf text = {0};
        base_buf_puts(&text, all[i][0]);
        assert_string_equal(agent__usual_argument(&text, "f"), all[i][1]);
        base_buf_free(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_probe__what_is_printed_is_expected),
        cmocka_unit_test(test_probe__calls_are_varied),
        cmocka_unit_test(test_probe__lines_without_room),
        cmocka_unit_test(test_probe__calls_of_a_file_say_what_is_given),
        cmocka_unit_test(test_probe__calls_that_cannot_stand_alone_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
