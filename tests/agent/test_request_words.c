/* What a word of a request is: a row a text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "agent/words/name_question.h"
#include "agent/words/request_words.h"
#include "base/buf.h"

typedef bool (*reader)(const char *text, size_t at, agent_word *ret);

/* The pieces with a bar behind each. */
static void check_pieces(reader next, const char *text, const char *should)
{
    base_buf got = {0};
    agent_word w;
    base_buf_puts(&got, "");
    for (size_t at = 0; next(text, at, &w); at = w.to) {
        base_buf_add(&got, text + w.from, w.to - w.from);
        base_buf_putc(&got, '|');
    }
    if (strcmp(got.data ? got.data : "", should) != 0) fail_msg("\"%s\": %s, not %s", text, got.data, should);
    base_buf_free(&got);
}

static void test_request_words__are_runs_of_name_bytes(void **state)
{
    check_pieces(agent__next_word, "", "");
    check_pieces(agent__next_word, " .,; ", "");
    check_pieces(agent__next_word, "Rename read_line to readLine.", "Rename|read_line|to|readLine|");
    check_pieces(agent__next_word, "src/net.c: f(a, $b)", "src|net|c|f|a|$b|");
    check_pieces(agent__next_word, "Größe und naïve", "Größe|und|naïve|");
}

static void test_request_words__leave_typographic_punctuation_out(void **state)
{
    check_pieces(agent__next_word, "Rename “read_line” to ‘b’…", "Rename|read_line|to|b|");
    check_pieces(agent__next_word, "«oom»—gone", "oom|gone|");
    check_pieces(agent__next_mention, "in “src/net.c” and", "in|src/net.c|and|");
    assert_true(agent__has_word("remove “oom”", "oom"));
    assert_true(agent__names_word("‘oom’ is gone", "oom"));
    /* letters that begin with the same byte */
    check_pieces(agent__next_word, "Ⅳ €x", "Ⅳ|€x|");
}

static void test_request_words__mention_paths(void **state)
{
    check_pieces(agent__next_mention, "see src/net.c, a-b and c++.", "see|src/net.c|a-b|and|c||");
    check_pieces(agent__next_mention, "@docs/kv.md (or ./x.py)", "docs/kv.md|or|./x.py|");
    check_pieces(agent__next_mention, "find it ... then - stop", "find|it||then||stop|");
    check_pieces(agent__next_mention, "...", "|");
}

static void test_request_words__look_back_in_a_part_of_a_sentence(void **state)
{
    const char *s = "Drop it. The mode parameter";
    agent_word w;
    assert_true(agent__word_before(s, strlen(s) - strlen(" parameter"), &w));
    assert_true(agent__is_any_word(s, w, (const char *const[]){"x", "MODE", NULL}));
    assert_true(agent__word_before(s, w.from, &w));
    assert_true(agent__is_any_word(s, w, (const char *const[]){"the", NULL}));
    assert_false(agent__word_before(s, w.from, &w));
    assert_false(agent__word_before(s, 0, &w));
}

static void test_request_words__compare_whole_and_in_any_case(void **state)
{
    assert_true(agent__has_word("Add one", "add"));
    assert_false(agent__has_word("add_one", "add"));
    assert_false(agent__has_word("$add", "add"));
    assert_false(agent__has_word("readd", "add"));
    assert_true(agent__has_word("readd, add", "add"));
    assert_true(agent__names_word("where is Ring used", "Ring"));
    assert_false(agent__names_word("where is ring used", "Ring"));
    assert_false(agent__names_word("of x only", "x"));
    assert_int_equal(agent__find_phrase("call it: Call It x", 1, "call it"), 16);
    assert_int_equal(agent__find_phrase("recall it", 0, "call it"), 0);
}

static void test_request_words__look_like_names(void **state)
{
    static const struct {
        const char *word;
        bool is;
    } rows[] = {{"read_line", true}, {"readLine", true}, {"xOf", true}, {"_x1", true}, {"Line", false},
        {"HTTP", false}, {"aB", false}, {"line2", false}, {"", false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (agent__looks_like_name(rows[i].word, (agent_word){0, strlen(rows[i].word)}) != rows[i].is)
            fail_msg("%s", rows[i].word);
}

static void test_request_words__a_module_is_no_method(void **state)
{
    static const struct {
        const char *text;
        bool is_module;
    } cases[] = {
        {"The package's __init__ still has an alias", true},
        {"drop it from `__init__.py`", true},
        {"the __init__ of our library re-exports it", true},
        {"the module `__main__` prints too much", true},
        {"in the __init__ file there's a leftover", true},
        {"Box.__init__ should take a limit", false},
        {"__init__ of Box is too long for this package", false},
        {"call __init__() of the module's Box", false},
        {"Move __init__. The file is too long", false},
        {"the package's init does nothing", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool is = false;
        for (agent_word w = {0}; agent__next_word(cases[i].text, w.to, &w);)
            is |= agent__is_module_word(cases[i].text, w);
        if (is != cases[i].is_module) fail_msg("%s", cases[i].text);
    }
}

static void test_request_words__say_an_old_spelling_and_a_new_one(void **state)
{
    static const struct {
        const char *text, *old, *new;
    } cases[] = {
        {"pytest fails since we compose reST with :return: instead of :returns:. The code is right.",
            ":returns:", ":return:"},
        {"it says `no file` rather than `not found` now, on purpose", "not found", "no file"},
        {"The message went from 'bad value' to \"wrong value\"", "bad value", "wrong value"},
        {"we print item_count, not itemCount.", "itemCount", "item_count"},
        {"`--out` became `--output`", "--out", "--output"},
        {"we indent with tabs instead of spaces", NULL, NULL},
        {"instead of `x` y", NULL, NULL},
        {"`x` instead of", NULL, NULL},
        {"it's used to, not", NULL, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *s = cases[i].text;
        agent_word old = {0}, new = {0};
        const bool is = agent__read_spellings(s, &old, &new);
        if (is != (cases[i].old != NULL)) fail_msg("%s", s);
        if (!is) continue;
        char *was = agent__copy_word(s, old), *now = agent__copy_word(s, new);
        assert_string_equal(was, cases[i].old);
        assert_string_equal(now, cases[i].new);
        free(was);
        free(now);
    }
}

static void test_request_words__say_what_a_request_is_about(void **state)
{
    assert_true(agent__is_content_word("ring", 4));
    assert_false(agent__is_content_word("Please", 6));
    assert_false(agent__is_content_word("ok", 2));
}

static void test_request_words__stand_in_marks(void **state)
{
    static const struct {
        const char *text, *inside;
        size_t to;
    } rows[] = {{"`a b` c", "a b", 5}, {"\"it's\"", "it's", 6}, {"''", "", 2}, {"`open", NULL, 0},
        {"a", NULL, 0}, {"", NULL, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        agent_word w;
        assert_int_equal(agent__read_marked(rows[i].text, 0, &w), rows[i].to);
        if (!rows[i].inside) continue;
        char *inside = agent__copy_word(rows[i].text, w);
        assert_string_equal(inside, rows[i].inside);
        free(inside);
    }
}

static void test_request_words__ask_for_one_name(void **state)
{
    static const struct {
        const char *request;
        bool name, one;
    } cases[] = {
        {"Which function frees a reply?", true, true},
        {"How do I exclude a flag, which method does it?", true, true},
        {"which Class holds an option", true, true},
        {"What function frees a reply?", false, true},
        {"Which functions free a reply?", true, false},
        {"Which classes are there?", true, false},
        {"Which function calls sdsfree?", true, false}, /* there may be more */
        {"Which function frees a reply, and who calls it?", true, false},
        {"Which type of value does it give?", true, false},
        {"Which function of these is the oldest?", true, false},
        {"Which is the function?", true, false},
        {"Where is a reply freed?", true, false},
        {"What frees a reply?", true, false},
        {"a function which frees", true, false},
        {"", false, false},
        {"which", true, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (agent_asks_for_name(cases[i].request) != cases[i].name ||
            agent_asks_for_one_name(cases[i].request) != cases[i].one)
            fail_msg("%s", cases[i].request);
}

static void test_request_words__a_test_shows_what_the_request_says(void **state)
{
    static const struct {
        const char *request, *claim; /* NULL: it says none */
    } cases[] = {
        {"Add a test that f gives None for an empty list.", "f gives None for an empty list"},
        {"Add a test to test/foo.js that a quoted value keeps its semicolon when it is decoded.",
            "a quoted value keeps its semicolon when it is decoded"},
        {"Nothing tests that remove leaves a segment alone. Add a test for that.",
            "remove leaves a segment alone"},
        {"Add a test for parse that checks that a small t is read", "a small t is read"},
        {"Write a test which makes sure that nobody waits", NULL},
        {"Add a test for f that makes sure that nobody waits", "nobody waits"},
        {"The tests say nothing about upper case before the slash: TEXT is text. Add a test for it.",
            "upper case before the slash: TEXT is text"},
        {"Add a writer test to test_csv.c: an empty string is written as two quotes.",
            "an empty string is written as two quotes"},
        {"Please add a unit test for an empty string.", "an empty string"},
        {"Write a test for _plural_s.", NULL},
        {"Add a test for list_len to test.c. It has to run with the others.", NULL},
        {"Add a test for an empty list to test.c.", "an empty list"},
        {"Make f(nil) return nil, and test it in a_test.go.", NULL},
        {"Drop the rows that test nothing.", NULL},
        {"The class that wraps a list is slow. Test it.", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *request = cases[i].request, *claim = cases[i].claim;
        agent_word w = {0};
        const bool is_one = agent__find_test_claim(request, &w);
        if (is_one != (claim != NULL) || (claim && (w.to - w.from != strlen(claim) ||
                                                       memcmp(request + w.from, claim, strlen(claim)) != 0)))
            fail_msg("%s: \"%.*s\", not \"%s\"", request, (int)(w.to - w.from), request + w.from,
                claim ? claim : "nothing");
    }
}

/* A question stays one, and what only sounds like one does not. */
static void test_request_words__a_question_is_known(void **state)
{
    static const struct {
        const char *request;
        bool is_question;
    } cases[] = {{"Is f used anywhere or can I delete it?", true},
        {"why does f take the first two away", true}, {"From which functions is f called?", true},
        {"What would have to change to rename f?", true}, {"tell me what f does", true},
        {"Find the function that deletes rows. Which one calls it?", true},
        {"Could we go with g instead of f?", false}, {"Why not g instead of f?", false},
        {"why don't we call f g", false}, {"what guesses the command is misnamed, g is correct", false},
        {"When f is called it should drop the old ones first", false}, {"f could do without x", false},
        {"f has no doc for an empty list. What does it give then?", true},
        {"decode crashes on an empty file.\nWhy?", true}, {"f was renamed. Is it called g now?", true},
        {"Rename f to g. Is there a test?", false}, {"f is too long. What about g?", false},
        {"f gives None. Is there a way to get a list?", false},
        {"f crashes on None. Can you mend it?", false}, {"where('a').f(1) crashes", false},
        {"f should give a list. Does it?", false},
        {"can I delete a key while I go over the map? just tell me, change nothing", true},
        {"Which function folds a session? one sentence", true}, {"Is f pure? thanks", true},
        {"Is f still used? If not, delete it", false}, {"What is f for? Rename it to g", false},
        {"Can I delete f?", true}, {"Could I have f renamed?", false}, {"Delete f. Just asking!", true},
        {"Delete f, change nothing else", false}, {"Move f, don't change anything in b.c", false},
        {"", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (agent__asks_question(cases[i].request) != cases[i].is_question) fail_msg("%s", cases[i].request);
}

/* That code has no test, and "one" is ordered: a new test, and no change of the code. */
static void test_request_words__a_test_is_wanted_where_none_is(void **state)
{
    static const char *const wanted[] = {
        "has() lowercases the name, but no test asks it for one in another case. Please add one.",
        "There's a test that gets all of them but none that asks for a few. Add one.",
        "Nothing checks f. Write one.", "f and g need more tests, add some to test_b.py",
        "HasPrefix and HasSuffix have no tests, could you add them to runes_test.go?"};
    static const char *const others[] = {"No test fails any more", "f and g have no tests, do they?",
        "f has no check for None. Add one.", "Fix f, since no test asks for it, and add one"};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (!agent_says_test_is_wanted(wanted[i])) fail_msg("%s", wanted[i]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (agent_says_test_is_wanted(others[i])) fail_msg("%s", others[i]);
}

static void test_request_words__a_fault_is_told(void **state)
{
    static const struct {
        const char *request;
        bool complains;
    } cases[] = {{"LastIndex hangs as soon as one of the runes occurs: it should return -1.", true},
        {"read_all returns 1 although the comment promises 0", true},
        {"repr() of an empty Patch raises IndexError.", true}, {"Handle panics for an empty path", true},
        {"The method that panics for no field should go", false},
        {"f raises an error for flags it doesn't need. Drop the parameter.", false},
        {"f crashes, rename it to g", false}, {"Which function raises an error?", true},
        {"f and g say nothing of an error", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (agent__complains(cases[i].request) != cases[i].complains) fail_msg("%s", cases[i].request);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request_words__a_test_shows_what_the_request_says),
        cmocka_unit_test(test_request_words__are_runs_of_name_bytes),
        cmocka_unit_test(test_request_words__leave_typographic_punctuation_out),
        cmocka_unit_test(test_request_words__mention_paths),
        cmocka_unit_test(test_request_words__look_back_in_a_part_of_a_sentence),
        cmocka_unit_test(test_request_words__compare_whole_and_in_any_case),
        cmocka_unit_test(test_request_words__look_like_names),
        cmocka_unit_test(test_request_words__say_an_old_spelling_and_a_new_one),
        cmocka_unit_test(test_request_words__a_module_is_no_method),
        cmocka_unit_test(test_request_words__say_what_a_request_is_about),
        cmocka_unit_test(test_request_words__stand_in_marks),
        cmocka_unit_test(test_request_words__ask_for_one_name),
        cmocka_unit_test(test_request_words__a_fault_is_told),
        cmocka_unit_test(test_request_words__a_question_is_known),
        cmocka_unit_test(test_request_words__a_test_is_wanted_where_none_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
