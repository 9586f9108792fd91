/* What an answer names is found by its shape; plain English never is. */
#include "support.h"

#include "base/buf.h"
#include "code/corrections.h"
#include "code/places.h"

static code_index *tree(code_grammars *g)
{
    code_index *x = code_index_new(g);
    static const char source[] = "#include <stdlib.h>\n\n"
                                 "void freeReplyObject(void *reply)\n"
                                 "{\n"
                                 "    free(reply);\n"
                                 "}\n\n"
                                 "int count(redisContext *c)\n"
                                 "{\n"
                                 "    return GitHub;\n"
                                 "}\n";
    static const char header[] =
        "struct redisContext {\n    char errstr[3];\n};\nvoid freeReplyObject(void *reply);\n";
    static const char async[] =
        "/* waits */\nstruct redisAsyncContext {\n    char *errstr;\n    int show;\n};\n";
    static const char rust[] =
        "pub struct Config {\n    quote: u8,\n}\n\nimpl Config {\n    pub fn new() -> Config {\n"
        "        Vec::new()\n    }\n}\n\npub fn load() {\n}\n";
    code_index_update(x, "src/async.h", async, sizeof async - 1);
    code_index_update(x, "src/hiredis.c", source, sizeof source - 1);
    code_index_update(x, "src/hiredis.h", header, sizeof header - 1);
    code_index_update(x, "src/config.rs", rust, sizeof rust - 1);
    return x;
}

static void check_in(code_index *x, const char *answer, const char *expected)
{
    code_checked *c;
    const uint32_t n = code_places_check(x, answer, strlen(answer), 0, &c);
    base_buf out = {0};
    for (uint32_t i = 0; i < n; i++) {
        if (i != 0) base_buf_putc(&out, '\n');
        code_places_line(&c[i], &out);
    }
    assert_string_equal(out.data != NULL ? out.data : "", expected);
    base_buf_free(&out);
    code_places_checked_free(c, n);
}

/* All lines, joined by newlines. */
static void check(const char *answer, const char *expected)
{
    code_index *x = tree(NULL);
    check_in(x, answer, expected);
    code_index_free(x);
}

static void test_places__a_field_in_backticks_counts(void **state)
{
    code_grammars *g = grammars_or_skip("c");
    code_index *x = tree(g);
    check_in(x, "The field `errstr` in the connection context says why.",
        "errstr: src/hiredis.h:2 (field of redisContext), and 1 more");
    check_in(x, "The field `errstr` of the redisAsyncContext says why.",
        "errstr: src/async.h:3 (field of redisAsyncContext), and 1 more\n"
        "redisAsyncContext: src/async.h:2 (struct)");
    check_in(x, "`redisAsyncContext.errstr` and `ac->errstr`",
        "redisAsyncContext.errstr: src/async.h:3 (field of redisAsyncContext)\n"
        "ac->errstr: src/async.h:3 (field of redisAsyncContext), and 1 more");
    check_in(x, "`quote` and `show`",
        "quote: src/config.rs:2 (field of Config)\nshow: src/async.h:4 (field of redisAsyncContext)");
    check_in(x, "The field `errstr` of an asynchronous, async context.",
        "errstr: src/async.h:3 (field of redisAsyncContext), and 1 more");
    check_in(x, "The errstr and the quote show what a \"quote\" is.", "");
    code_index_free(x);
    code_grammars_close(g);
}

static void test_places__a_package_is_no_method_of_its_name(void **state)
{
    static const char python[] = "class Shell:\n    def quote(self, text):\n        return text\n";
    code_grammars *g = grammars_or_skip("python");
    code_index *x = code_index_new(g);
    code_index_update(x, "src/other/shell.py", python, sizeof python - 1);
    check_in(x, "`quote` writes it.", "quote: src/other/shell.py:2 (method of Shell)");
    code_index_update(x, "src/quote/shell.py", python, sizeof python - 1);
    check_in(x, "`quote` writes it.", "");
    check_in(x, "`quote()` writes it.", "quote: src/other/shell.py:2 (method of Shell), and 1 more");
    code_index_free(x);
    code_grammars_close(g);
}

static void test_places__paths_of_types_and_modules(void **state)
{
    code_grammars *g = grammars_or_skip("rust");
    code_index *x = tree(g);
    check_in(x, "Config::new makes one.", "Config::new: src/config.rs:6 (method of Config)");
    check_in(x, "`Config::new()`, crate::config::Config::new(a, b).",
        "Config::new: src/config.rs:6 (method of Config)\n"
        "crate::config::Config::new: src/config.rs:6 (method of Config)");
    check_in(x, "`crate::config::load` and config::Config, `Self::new`",
        "crate::config::load: src/config.rs:11 (function)\nconfig::Config: src/config.rs:1 (struct)\n"
        "Self::new: src/config.rs:6 (method of Config)");
    check_in(x, "Vec::new, std::env::args and `Vec::new` are Rust's.", "");
    check_in(x, "`other::load`", "");
    check_in(x, "Config::open does not exist.", "no Config::open in this tree");
    code_index_free(x);
    code_grammars_close(g);
    check("Config::new makes one.", "Config::new: src/config.rs:6 (function)");
}

static void test_places__names_are_found(void **state)
{
    check("`freeReplyObject` frees it.", "freeReplyObject: src/hiredis.c:3 (function)");
    check("freeReplyObject(reply) frees it, freeReplyObject() does.",
        "freeReplyObject: src/hiredis.c:3 (function)");
    check("`void freeReplyObject(void *reply)`", "freeReplyObject: src/hiredis.c:3 (function)");
    check("The struct `redisContext`.", "redisContext: src/hiredis.h:1 (struct)");
    check("It calls `count`.", "count: src/hiredis.c:8 (function)");
    check("It calls free() on it.", "free: used in this tree, defined elsewhere");
}

static void test_places__of_several_the_one_in_the_named_file(void **state)
{
    static const char first[] = "int load(void)\n{\n    return 1;\n}\n",
                      second[] = "\n\nint load(void)\n{\n    return 2;\n}\n";
    code_index *x = tree(NULL);
    code_index_update(x, "src/first.c", first, sizeof first - 1);
    code_index_update(x, "src/second.c", second, sizeof second - 1);
    check_in(x, "It is `load` in src/second.c.", "load: src/second.c:3 (function), and 2 more\nsrc/second.c");
    check_in(x, "It is `load` in src/first.c.", "load: src/first.c:1 (function), and 2 more\nsrc/first.c");
    check_in(x, "It is `load` in src/hiredis.c.",
        "load: src/config.rs:11 (function), and 2 more, not where the answer says\nsrc/hiredis.c");
    code_index_free(x);
}

static void test_places__what_does_not_exist_is_marked(void **state)
{
    check("See `reply_free` and sdsFoo().", "no reply_free in this tree\nno sdsFoo in this tree");
    check("It is in src/reply.py:12.", "no src/reply.py:12 in this tree");
    check("hiredis.c:3 and hiredis.c:99", "src/hiredis.c:3\nhiredis.c:99: src/hiredis.c has only 11 lines");
}

static void test_places__a_wrong_place_is_noticed(void **state)
{
    check("`freeReplyObject` (src/hiredis.h:1)",
        "freeReplyObject: src/hiredis.c:3 (function), not where the answer says\nsrc/hiredis.h:1");
    check("`freeReplyObject` is in src/hiredis.c:3.",
        "freeReplyObject: src/hiredis.c:3 (function)\nsrc/hiredis.c:3");
    check("`freeReplyObject` is called in src/hiredis.h:1 and called.",
        "freeReplyObject: src/hiredis.c:3 (function)\nsrc/hiredis.h:1");
    check("`freeReplyObject` caller src/hiredis.h:1.",
        "freeReplyObject: src/hiredis.c:3 (function)\nsrc/hiredis.h:1");
    check("`freeReplyObject` recalls src/hiredis.h:1.",
        "freeReplyObject: src/hiredis.c:3 (function), not where the answer says\nsrc/hiredis.h:1");
    check("`freeReplyObject` frees. See src/hiredis.h:1.",
        "freeReplyObject: src/hiredis.c:3 (function)\nsrc/hiredis.h:1");
}

static void correct(const char *answer, const char *expected, const char *said)
{
    code_index *x = tree(NULL);
    base_buf out = {0}, what = {0};
    const uint32_t n = code_correct_answer(x, answer, strlen(answer), NULL, 0, true, &out, &what);
    assert_int_equal(n != 0, expected != NULL);
    assert_string_equal(out.data != NULL ? out.data : "", expected != NULL ? expected : "");
    if (said != NULL) assert_string_equal(what.data, said);
    base_buf_free(&out);
    base_buf_free(&what);
    code_index_free(x);
}

static void test_places__a_wrong_place_is_put_right_and_marked(void **state)
{
    correct("`count` is defined in src/hiredis.h:89. So it is.",
        "`count` is defined in src/hiredis.c:8 [corrected from src/hiredis.h:89]. So it is.",
        "count: src/hiredis.c:8, not src/hiredis.h:89");
    correct("`count()` is in `src/reply.py`.",
        "`count()` is in `src/hiredis.c:8 [corrected from src/reply.py]`.", NULL);
    correct("`count` is in src/hiredis.c:9.", NULL, NULL);
    correct("`count` is called in src/hiredis.h:2.", NULL, NULL); /* of its use, not of its place */
    correct("`nothing_of_it` is in src/hiredis.h:2.", NULL, NULL);
    correct("", NULL, NULL);
}

/* "A test for count in tests/test_count.c": the answer says where something of this turn stands. */
static void test_places__files_of_this_turn_are_left_alone(void **state)
{
    static const char answer[] =
        "Added a test for `count` in src/reply.py:2. `count` is in src/hiredis.h:89.";
    char file[] = "src/reply.py", *changed[] = {file};
    code_index *x = tree(NULL);
    base_buf out = {0}, what = {0};
    assert_int_equal(code_correct_answer(x, answer, strlen(answer), changed, 1, true, &out, &what), 0);
    base_buf_clear(&out);
    assert_int_equal(code_correct_answer(x, answer, strlen(answer), NULL, 0, true, &out, &what), 1);
    base_buf_free(&out);
    base_buf_free(&what);
    code_index_free(x);
}

static void test_places__english_is_left_alone(void **state)
{
    check("The count of the reply is free. GitHub, Node.js and the JavaScript word(s), e.g. this and/or "
          "that, i.e. 3.14 at 10:30.",
        "");
    check("http://redis.io/a.html, -p, `--flag`, `make test`, `true`, `NULL`, `reply`, don't, x86_64-linux?",
        "");
    check("```c\nfooBarBaz();\n```\n", "");
    check("", "");
    check("`", "");
    check("```", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places__names_are_found),
        cmocka_unit_test(test_places__of_several_the_one_in_the_named_file),
        cmocka_unit_test(test_places__what_does_not_exist_is_marked),
        cmocka_unit_test(test_places__a_wrong_place_is_noticed),
        cmocka_unit_test(test_places__a_field_in_backticks_counts),
        cmocka_unit_test(test_places__a_package_is_no_method_of_its_name),
        cmocka_unit_test(test_places__paths_of_types_and_modules),
        cmocka_unit_test(test_places__a_wrong_place_is_put_right_and_marked),
        cmocka_unit_test(test_places__files_of_this_turn_are_left_alone),
        cmocka_unit_test(test_places__english_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
