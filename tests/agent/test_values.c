/*
 * Values that a request gives: which are found (and which must not be), and that the programs made of them tell
 * right from wrong in each language whose tools are here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/words/values.h"
#include "base/fs.h"
#include "base/mem.h"

/* "left|wanted" each, with "!" for an error and "~" for what is no literal; NULL ends the list. */
static const struct {
    const char *request;
    const char *values[6];
} cases[] = {
    {"for example Percent(1, 8) is \"12.5%\" and Percent(1, 2) is \"50%\"; a whole of 0 gives \"0%\".",
        {"Percent(1, 8)|\"12.5%\"", "Percent(1, 2)|\"50%\""}},
    {"-1 gives -1st, -12 gives -12th, -23 gives -23rd.", {"-1|~-1st", "-12|~-12th", "-23|~-23rd"}},
    {"`parse('1h')` should return `3600`.", {"parse('1h')|3600"}},
    {"parse('1h') returns 60 instead of 3600.", {"parse('1h')|3600"}},
    {"parse('1h') should return 3600 instead of 60.", {"parse('1h')|3600"}},
    {"parse('1h') gives 60, but it should give 3600.", {"parse('1h')|3600"}},
    {"Currently parse('1h') returns 60.", {NULL}},
    {"parse('1h') is 60, not 3600.", {NULL}},
    {"is_url('x') returns True. Without the :// it isn't a URL.", {NULL}},
    {"parse('1h') gives 60, which is wrong.", {NULL}},
    {"split should return [] for an empty string", {"\"\"|[]"}},
    {"split_words should return [] for an empty string", {"split_words(\"\")|[]"}},
    {"`clamp()` should return 0 for -1 and -2", {"clamp(-1)|0", "clamp(-2)|0"}},
    {"For an empty list, it should return None.", {"[]|None"}},
    {"`say()` should return 'ok' for 0, 'no file' for -1 and -2, 'memory' for -3 and 'fault' for anything else.",
        {"say(0)|'ok'", "say(-1)|'no file'", "say(-2)|'no file'", "say(-3)|'memory'"}},
    {"Add f.\n>>> f(3, 'a')\n6\n>>> f([1, 2])\n[2, 1]\n", {"f(3, 'a')|6", "f([1, 2])|[2, 1]"}},
    {"f(2) == 4 and f(3) -> 9, f(4) => 16", {"f(2)|4", "f(3)|9", "f(4)|16"}},
    {"f('ab')\xe2\x86\x92'AB'", {"f('ab')|'AB'"}},
    {"parse('') should raise ValueError, get('x') throws an Error",
        {"parse('')|!ValueError", "get('x')|!Error"}},
    {"new Option('--no-colour').attributeName() should be 'colour'",
        {"new Option('--no-colour').attributeName()|'colour'"}},
    {"humanize.naturalsize(1024, binary=True) should be \"1.0 KiB\"",
        {"humanize.naturalsize(1024, binary=True)|\"1.0 KiB\""}},
    {"BigCommaf(big.NewFloat(834142.3256)) is 834,142.3256",
        {"BigCommaf(big.NewFloat(834142.3256))|~834,142.3256"}},
    {"Parsing '1,024kb' gives 1. Commas between digits should be ignored, so that it gives 1048576.",
        {"'1,024kb'|1048576"}},
    {"snake(\"a/b\") gives a/b. A slash should part words, so "
     "that it gives \"a_b\" (and kebab(\"a/b\") gives \"a-b\").",
        {"snake(\"a/b\")|\"a_b\"", "kebab(\"a/b\")|\"a-b\""}},
    {"A negative number has two signs: mixed(-1.3) gives \"-1 -3/10\". It should be \"-1 3/10\".",
        {"mixed(-1.3)|\"-1 3/10\""}},
    {"half(4) gives 3. It should give 2. twice(2) gives 4.", {"half(4)|2", "twice(2)|4"}},
    {"half(4) gives 2. twice(2) should be 4.", {"half(4)|2", "twice(2)|4"}},
    {"half(4) gives 3. It should raise a ValueError.", {NULL}},
    {"half(4) gives 3. That must not be so.", {NULL}},
    /* None of these gives a value. */
    {"Beginning 3 gives nothing away, so that it gives up.", {NULL}},
    {"Add UNDERLINE = 4 to AnsiStyle, and check it in testStyleAttributes.", {NULL}},
    {"parse(s) returns the number of seconds.", {NULL}},
    {"f(2) is 5 less than f(3).", {NULL}},
    {"It doesn't work: the user's name isn't 'shown' where it is 3 lines long", {NULL}},
    {"A quantity of -1 should be singular too.", {NULL}},
    {"sdsll2str should return 0 and write nothing when the buffer s is NULL.", {NULL}},
    {"0 has 0 digits, 7 has 1, 1234 has 4.", {NULL}},
    {"Version 1.2 is 3 times faster; see issue #12 -> 14 comments", {NULL}},
};

static void test_values__found_by_pattern(void **state)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        agent_value values[AGENT_MAX_VALUES];
        const uint32_t n = agent_values_find(cases[i].request, values);
        base_buf got = {0}, wanted = {0};
        for (uint32_t k = 0; k < n; k++)
            base_buf_printf(&got, "%s|%s%s\n", values[k].left,
                values[k].raises     ? "!"
                : values[k].is_plain ? "~"
                                     : "",
                values[k].wanted);
        for (size_t k = 0; k < 6 && cases[i].values[k]; k++)
            base_buf_printf(&wanted, "%s\n", cases[i].values[k]);
        if (strcmp(got.data ? got.data : "", wanted.data ? wanted.data : "") != 0)
            fail_msg("\"%s\" gave\n%s and not\n%s", cases[i].request, got.data, wanted.data);
        agent_values_free(values, n);
        base_buf_free(&got);
        base_buf_free(&wanted);
    }
}

/* --- the programs --------------------------------------------------------------------------------------- */

static char folder[64];

static void put_file(const char *name, const char *text)
{
    base_buf path = {0};
    base_err err = {0};
    base_buf_printf(&path, "%s/%s", folder, name);
    *strrchr(path.data, '/') = '\0';
    assert_int_equal(base_fs_mkdirs(path.data, &err), 0);
    path.data[strlen(path.data)] = '/';
    FILE *f = fopen(path.data, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    base_buf_free(&path);
}

/* Runs the command at the tree's root; its output and its status. */
static int run(const char *command, base_buf *output)
{
    base_buf line = {0};
    char bytes[4096];
    put_file("tmp/command.sh", command);
    base_buf_printf(&line, "cd %s && TMPDIR=%s/tmp sh tmp/command.sh 2>&1", folder, folder);
    FILE *p = popen(line.data, "r");
    assert_non_null(p);
    for (size_t n; (n = fread(bytes, 1, sizeof bytes, p)) > 0;) base_buf_add(output, bytes, n);
    base_buf_free(&line);
    return pclose(p);
}

static const struct {
    const char *tool; /* a command that ends with 0 where it can be tried */
    agent_values_place place;
    const char *right, *wrong, *request, *more, *more_text;
    const char *said; /* of the wrong text */
} programs[] = {
    {"python3 --version", {.path = "src/pkg/double.py", .in_package = true},
        "def twice(x):\n    if x is None:\n        raise ValueError('no')\n    return 2 * x\n",
        "def twice(x):\n    return x\n",
        "twice(3) should be 6, `twice('a')` gives 'aa'. twice(None) "
        "should raise ValueError and twice([1]) is [1, 1]",
        "src/pkg/__init__.py", "", "twice(3) gives 3, and should give 6"},
    {"node --version", {.path = "lib/twice.js"},
        "export function twice(x) { if (!x) throw new Error('no'); return [x, x]; }\n"
        "export class Box { size() { return 2; } }\n",
        "export function twice(x) { return [x]; }\nexport class Box { size() { return 2; } }\n",
        "twice(3) should be [3, 3]; twice(0) throws an Error, new Box().size() is 2", "package.json",
        "{\"type\": \"module\"}\n", "twice(3) gives [3], and should give [3, 3]"},
    {"node --version", {.path = "lib/twice.js"}, "module.exports = { twice: (x) => 2 * x };\n",
        "module.exports = { twice: (x) => x };\n", "twice(3) is 6", "package.json", "{}\n",
        "twice(3) gives 3, and should give 6"},
    {"cc --version", {.path = "twice.c", .function = "twice"},
        "#include \"other.h\"\n"
        "static int twice(int x) { return other(x); }\n"
        "const char *name(int x) { return x ? \"b\" : 0; }\n"
        "int main(void) { return twice(1); }\n",
        "#include \"other.h\"\n"
        "static int twice(int x) { return other(x) + 1; }\n"
        "const char *name(int x) { return x ? \"b\" : 0; }\n",
        "twice(3) should be 6 and name(1) is \"b\". name(0) is NULL. 4 gives 8.", "other.h",
        "static inline int other(int x) { return 2 * x; }\n", "twice(3) gives 7, and should give 6"},
    {"go version", {.path = "a/twice.go", .package = "a", .function = "Name"},
        "package a\n\n"
        "func twice(x float64) float64 { return 2 * x }\n"
        "func Name(x int) (string, error) { return \"2nd\", nil }\n",
        "package a\n\n"
        "func twice(x float64) float64 { return x }\n"
        "func Name(x int) (string, error) { return \"2nd\", nil }\n",
        "twice(3) should be 6, 2 gives 2nd", "go.mod", "module example.org/m\n\ngo 1.18\n",
        "twice(3) gives 3, and should give 6"},
    {"cargo --version && cargo --offline version", {.path = "src/lib.rs"},
        "fn twice(s: &str) -> String { s.repeat(2) }\npub fn half(x: i32) -> Option<i32> { Some(x / 2) }\n",
        "fn twice(s: &str) -> String { s.to_string() }\npub fn half(x: i32) -> Option<i32> { Some(x / 2) }\n",
        "twice(\"ab\") should be \"abab\", half(4) is Some(2)", "Cargo.toml",
        "[package]\nname = \"m\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
        "twice(\"ab\") gives \"ab\", and should give \"abab\""},
    {"javac -version", {.path = "src/a/Twice.java", .package = "a"},
        "package a;\npublic class Twice { static int twice(int x) { return 2 * x; } }\n",
        "package a;\npublic class Twice { static int twice(int x) { return x; } }\n",
        "twice(3) should be 6, Twice.twice(1) is 2", "src/a/Other.java", "package a;\nclass Other {}\n",
        "twice(3) gives 3, and should give 6"},
};

static void test_values__programs_tell_right_from_wrong(void **state)
{
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        base_buf tool = {0}, command = {0}, right = {0}, wrong = {0}, control = {0};
        agent_value values[AGENT_MAX_VALUES];
        uint32_t hold = 0, of = 0;
        base_buf_printf(&tool, "(%s) >/dev/null 2>&1", programs[i].tool);
        const bool is_here = system(tool.data) == 0;
        base_buf_free(&tool);
        if (!is_here) {
            print_message("not without %s\n", programs[i].tool);
            continue;
        }
        strcpy(folder, "/tmp/kvist-values-XXXXXX");
        assert_non_null(mkdtemp(folder));
        put_file("tmp/x", "");
        put_file(programs[i].more, programs[i].more_text);
        const uint32_t n = agent_values_find(programs[i].request, values);
        assert_true(n > 0);
        put_file(programs[i].place.path, programs[i].right);
        assert_true(agent_values_program(values, n, &programs[i].place, &command));
        if (run(command.data, &right))
            fail_msg("the right text of %s is refused: %s", programs[i].place.path, right.data);
        if (!agent_values_count(right.data, &hold, &of) || hold != n || of != n)
            fail_msg("%u of %u, not %u: %s", hold, of, n, right.data);
        put_file(programs[i].place.path, programs[i].wrong);
        assert_int_not_equal(run(command.data, &wrong), 0);
        if (!agent_values_count(wrong.data, &hold, &of) || hold >= of ||
            !strstr(wrong.data, programs[i].said))
            fail_msg("not \"%s\" in %s", programs[i].said, wrong.data);
        base_buf_clear(&command);
        assert_true(agent_values_program(NULL, 0, &programs[i].place, &command));
        if (run(command.data, &control) || !agent_values_count(control.data, &hold, &of))
            fail_msg("a program without values fails: %s", control.data);
        agent_values_free(values, n);
        base_fs_remove(folder, NULL);
        base_buf_free(&command);
        base_buf_free(&right);
        base_buf_free(&wrong);
        base_buf_free(&control);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values__found_by_pattern),
        cmocka_unit_test(test_values__programs_tell_right_from_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
