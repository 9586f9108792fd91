/* What a request says of an operation's arguments: a row a request. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/words/operation_words.h"

static void same(const char *request, const char *what, const char *is, const char *should)
{
    if ((!is != !should) || (is && strcmp(is, should) != 0))
        fail_msg("%s: %s is %s, not %s", request, what, is ? is : "nothing", should ? should : "nothing");
}

static void test_operation_words__say_a_parameter(void **state)
{
    const agent_parameter_change NO = AGENT_PARAMETER_STAYS, COMES = AGENT_PARAMETER_COMES,
                                 GOES = AGENT_PARAMETER_GOES;
    const struct {
        const char *request;
        agent_parameter_change change;
        const char *declared, *name, *type, *value, *callers;
        int at;
    } cases[] = {
        {"Add a parameter limit to find with default 10.", COMES, NULL, "limit", NULL, "10", NULL, 0},
        {"add an optional argument `name=\"x y\"` to open", COMES, "name=\"x y\"", NULL, NULL, NULL, NULL, 0},
        {"Add a parameter int quiet to save; callers pass 0.", COMES, NULL, "quiet", "int", NULL, "0", 0},
        {"Add a parameter unsigned long n to save", COMES, NULL, "n", "unsigned long", NULL, NULL, 0},
        {"Add a parameter const char *sep to join", COMES, NULL, "sep", "const char *", NULL, NULL, 0},
        {"Add a parameter unsigned mode to save, behind the name.", COMES, NULL, "mode", "unsigned", NULL,
            NULL, 0},
        {"add a parameter uint8_t *out to pack", COMES, NULL, "out", "uint8_t *", NULL, NULL, 0},
        {"Add a parameter timeout time.Duration to Dial", COMES, NULL, "timeout", "time.Duration", NULL, NULL,
            0},
        {"Add a parameter depth: int to walk with default 3", COMES, NULL, "depth", "int", "3", NULL, 0},
        {"Add a parameter String prefix before the others to join", COMES, NULL, "prefix", "String", NULL,
            NULL, 0},
        {"Give f a parameter limit. f could use a `limit: int | None = None`", COMES,
            "limit: int | None = None", "limit", NULL, NULL, NULL, 0},
        {"Give f a parameter pivot. f with a pivot: u16 after s, please", COMES, NULL, "pivot", "u16", NULL,
            NULL, 0},
        {"Give f a parameter nk. f needs to know that: unsigned nk, and no more", COMES, NULL, "nk",
            "unsigned", NULL, NULL, 0},
        {"Give f a parameter n. I want f to get the length as size_t n; pass 3 where it is called", COMES,
            NULL, "n", "size_t", NULL, "3", 0},
        {"Give f a parameter out. f prints to its FILE *out", COMES, NULL, "out", "FILE *", NULL, NULL, 0},
        {"Give f a parameter id. f takes an id too (id: Option<&'a [u8]>)", COMES, NULL, "id",
            "Option<&'a [u8]>", NULL, NULL, 0},
        {"Give f a parameter limit. Let limit be the most", COMES, NULL, "limit", NULL, NULL, NULL, 0},
        {"Add a parameter limit everywhere", COMES, NULL, "limit", NULL, NULL, NULL, 0},
        {"Add a parameter string to join", COMES, NULL, "string", NULL, NULL, NULL, 0},
        {"Add an int parameter flags to sdsnew; callers pass 0.", COMES, NULL, "flags", "int", NULL, "0", 0},
        {"Give sdsnew a second parameter `int flags`, and let every caller pass FLAG_NONE", COMES,
            "int flags", NULL, NULL, NULL, "FLAG_NONE", 2},
        {"sdsnew should take a new parameter called size of type size_t and its callers give -1", COMES, NULL,
            "size", "size_t", NULL, "-1", 0},
        {"The function that computes the edit distance should take the greatest distance as a third "
         "parameter instead of reading the constant of the module; pass maxDistance where it is called.",
            COMES, NULL, "maxDistance", NULL, NULL, "maxDistance", 3},
        {"Add a keyword argument `strict` to parse which defaults to False", COMES, NULL, "strict", NULL,
            "False", NULL, 0},
        {"Add a parameter sep (string) defaulting to ', ' to join_all.", COMES, NULL, "sep", "string", "', '",
            NULL, 0},
        {"Give read_all a second parameter limit, \"T\" by default, that says how much.", COMES, NULL,
            "limit", NULL, "\"T\"", NULL, 2},
        {"Add a parameter depth to walk (3 by default)", COMES, NULL, "depth", NULL, "3", NULL, 0},
        {"Add a parameter depth to walk that is not set by default", COMES, NULL, "depth", NULL, NULL, NULL,
            0},
        {"Drop the parameter of that function; it always clears everything.", GOES, NULL, NULL, NULL, NULL,
            NULL, 0},
        {"Remove the unused parameter mode from clear_screen", GOES, NULL, "mode", NULL, NULL, NULL, 0},
        {"drop the `mode` argument of clear_screen", GOES, NULL, "mode", NULL, NULL, NULL, 0},
        {"Get rid of clear's mode parameter", GOES, NULL, "mode", NULL, NULL, NULL, 0},
        {"clear doesn't need its mode argument any more, lose it.", GOES, NULL, "mode", NULL, NULL, NULL, 0},
        {"Remove the second parameter of the clear function, callers too.", GOES, NULL, NULL, NULL, NULL,
            NULL, 2},
        {"clear gets a bool named strict, true for all existing callers.", COMES, NULL, "strict", "bool",
            NULL, "true", 0},
        {"Give clear another parameter \"final int limit\"; for now everyone passes 4.", COMES, NULL, "limit",
            "final int", NULL, "4", 0},
        {"Give clear a size_t order behind mode; callers pass 3", COMES, NULL, "order", "size_t", NULL, "3",
            0},
        {"clear gets an unsigned int order, 3 for all callers", COMES, NULL, "order", "unsigned int", NULL,
            "3", 0},
        {"add a parameter step: number = 1 to count", COMES, NULL, "step", "number", "1", NULL, 0},
        {"clear should take encoding=\"utf-8\" too", COMES, "encoding=\"utf-8\"", "encoding", NULL, NULL,
            NULL, 0},
        {"Give clear a new `limit=None`, please.", COMES, "limit=None", "limit", NULL, NULL, NULL, 0},
        {"clear should be called with encoding=\"utf-8\"", NO, NULL, NULL, NULL, NULL, NULL, 0},
        {"add a test of clear(mode=3)", NO, NULL, NULL, NULL, NULL, NULL, 0},
        {"Give struct screen an int field order; callers pass 3", NO, NULL, NULL, NULL, NULL, NULL, 0},
        {"clear gets an int result", NO, NULL, NULL, NULL, NULL, NULL, 0},
        {"clear needs a bool that is named well", NO, NULL, NULL, NULL, NULL, NULL, 0},
        {"Add a check that the argument is not empty", NO, NULL, NULL, NULL, NULL, NULL, 0},
        {"Add a method twice that takes a parameter n", NO, NULL, NULL, NULL, NULL, NULL, 0},
        {"Add a method takesValue() to Option which returns true when it takes an argument", NO, NULL, NULL,
            NULL, NULL, NULL, 0},
        {"An empty list makes no sense. Refuse it for options and for arguments alike.", NO, NULL, NULL, NULL,
            NULL, NULL, 0},
        {"Add a test for the argument parser", NO, NULL, NULL, NULL, NULL, NULL, 0},
        {"Remove the check that the argument is a string", NO, NULL, NULL, NULL, NULL, NULL, 0},
        {"", NO, NULL, NULL, NULL, NULL, NULL, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        agent_parameter_words w;
        const char *r = cases[i].request;
        agent_read_parameter_words(r, &w);
        if (w.change != cases[i].change) fail_msg("%s: %d", r, (int)w.change);
        same(r, "declared", w.declared, cases[i].declared);
        same(r, "name", w.name, cases[i].name);
        same(r, "type", w.type, cases[i].type);
        same(r, "default", w.value, cases[i].value);
        same(r, "what callers pass", w.callers, cases[i].callers);
        if (w.at != cases[i].at) fail_msg("%s: place %d", r, w.at);
        agent_parameter_words_free(&w);
    }
}

/* Of f(text, sep, lower, ascii): the old places in their new order. */
static void test_operation_words__say_an_order(void **state)
{
    static const char *const of_f[] = {"text", "sep", "lower", "ascii"};
    static const struct {
        const char *request, *order, *value;
    } cases[] = {
        {"make ascii the first argument of f", "4123", NULL},
        {"make ascii the first argument of f after text", "1423", NULL},
        {"Make text the last parameter of f and default it to None", "2341", "None"},
        {"f should take the sep first", "2134", NULL},
        {"ascii should come before lower in f", "1243", NULL},
        {"please move sep behind lower in f", "1324", NULL},
        {"put lower in front of the sep of f", "1324", NULL},
        {"The last argument of f should be sep", "1342", NULL},
        {"swap the arguments sep and ascii of f", "1432", NULL},
        {"move `text` to the end of f's parameters", "2341", NULL},
        {"lower and sep should come before text in f", "3214", NULL},
        {"In f, sep, lower should stand in front of text", "2314", NULL},
        {"put text and `lower` behind sep in f", "2134", NULL},
        {"make text, lower the last arguments of f", "2413", NULL},
        {"in f(text, lower, sep, ascii), lower should come first", "3124", NULL},
        {"f takes text, sep, lower. Lower should come first", "3124", NULL},
        {"f should return the first text", "", NULL},
        {"Add a parameter first to f behind text", "", NULL},
        {"rename sep to last in f", "", NULL},
        {"f should be called first", "", NULL},
        {"make f faster", "", NULL},
        {"", "", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        agent_order_words w;
        const char *r = cases[i].request;
        char order[8] = "";
        if (agent_read_order_words(r, of_f, 4, &w))
            for (size_t k = 0; k < w.n; k++) order[k] = (char)('1' + w.order[k]);
        same(r, "order", order, cases[i].order);
        char *value = *order ? agent_read_default_words(r) : NULL;
        same(r, "default", value, cases[i].value);
        free(value);
    }
}

static void test_operation_words__say_what_stands_instead(void **state)
{
    static const struct {
        const char *request, *name, *call, *with;
    } cases[] = {
        {"oom does the same as oomm without an upper limit. "
         "Remove oom and let its caller use oomm with -1 instead.",
            "oomm", NULL, "-1"},
        {"Delete note; callers should use `log.write(text, 1)`.", "log.write", "log.write(text, 1)", NULL},
        {"Delete note, in favour of log_it(...)", "log_it", NULL, NULL},
        {"Remove more() and replace its calls with most(n, -1)", "most", "most(n, -1)", NULL},
        {"Remove sdsfromlonglong from the library, nothing calls it.", NULL, NULL, NULL},
        {"Remove the unused function f. It is of no use.", NULL, NULL, NULL},
        {"Delete f; its callers become g(1", "g", NULL, NULL},
        {"Get rid of note. Use .value directly where it was called", ".value", NULL, NULL},
        {"Drop note, its callers can use `.value.text` instead", ".value.text", NULL, NULL},
        {"Drop note and put node.value in its place", "node.value", NULL, NULL},
        {"Remove note. Write .strip(1) where it's called.", ".strip", ".strip(1)", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        agent_instead_words w;
        const char *r = cases[i].request;
        assert_int_equal(agent_read_instead_words(r, &w), cases[i].name != NULL);
        same(r, "name", w.name, cases[i].name);
        same(r, "call", w.call, cases[i].call);
        same(r, "with", w.with, cases[i].with);
        agent_instead_words_free(&w);
    }
}

/* A tree: foo, bar, parse_line and Box.put stand once, many twice; it calls snprintf. */
static uint32_t count(const void *ctx, const char *name)
{
    static const char *const once[] = {"foo", "bar", "parse_line", "Box.put"};
    for (size_t i = 0; i < sizeof once / sizeof *once; i++)
        if (!strcmp(name, once[i])) return 1;
    return !strcmp(name, "many") ? 2 : 0;
}

static bool mentions(const void *ctx, const char *name)
{
    return count(ctx, name) || !strcmp(name, "snprintf");
}

static const agent_names names = {NULL, count, mentions};

static void test_operation_words__say_an_operation_without_its_verb(void **state)
{
    static const struct {
        const char *request, *operation, *name, *to;
    } cases[] = {
        {"foo is a bad name; make it add_up", "rename", "foo", "add_up"},
        {"`foo` is not a good name. Make it total.", "rename", "foo", "total"},
        {"foo is badly called, make it `total`", "rename", "foo", "total"},
        {"The name of foo is misleading; make it total", "rename", "foo", "total"},
        {"Call foo total from now on.", "rename", "foo", "total"},
        {"Please call parse_line read_line.", "rename", "parse_line", "read_line"},
        {"I'd like read_line instead of parse_line everywhere", "rename", "parse_line", "read_line"},
        {"Say total instead of foo everywhere, please.", "rename", "foo", "total"},
        {"The function foo should be called add_up.", "rename", "foo", "add_up"},
        {"foo() should be called `total`", "rename", "foo", "total"},
        {"I think foo should be named total", "rename", "foo", "total"},
        {"I want foo to be called total.", "rename", "foo", "total"},
        {"I'd like foo of the Box.put to be called total", "rename", "foo", "total"},
        {"Change the name of foo to total", "rename", "foo", "total"},
        {"Could you change the name of Box.put to store?", "rename", "Box.put", "store"},
        {"Export parse_line as ParseLine", "rename", "parse_line", "ParseLine"},
        {"Pull foo out of a.py into src/b.py.", "move", "foo", "src/b.py"},
        {"pull the helper foo out into b.py", "move", "foo", "b.py"},
        {"Put foo into `b.py`", "move", "foo", "b.py"},
        {"can you put foo in the file lib/b.c?", "move", "foo", "lib/b.c"},
        {"foo belongs into b.c", "move", "foo", "b.c"},
        {"foo belongs in ../b.c, please", "move", "foo", "../b.c"},
        {"foo is a cryptic name. Call it total, also in the README.", "rename", "foo", "total"},
        {"foo is a poor name. Rename it to total.", "rename", "foo", "total"},
        {"foo is a terrible name, pls call it add_up. It's in a.c", "rename", "foo", "add_up"},
        {"foo is an odd name, could you please rename it to total", "rename", "foo", "total"},
        {"i dont like the name foo, total would be better", "rename", "foo", "total"},
        {"I don't like the name foo. Let's call it total", "rename", "foo", "total"},
        {"total is a much better name for foo", "rename", "foo", "total"},
        {"A better name for foo would be total.", "rename", "foo", "total"},
        {"foo must be renamed to total", "rename", "foo", "total"},
        {"foo ought to be named total, thanks", "rename", "foo", "total"},
        {"foo should be moved into src/b.py", "move", "foo", "src/b.py"},
        {"get rid of the deprecated alias foo", "delete", "foo", NULL},
        {"the foo isnt needed anymore, use bar directly where its called", "delete", "foo", NULL},
        {"the foo function isnt needed anymore, use bar directly", "delete", "foo", NULL},
        {"foo isn't used any longer", "delete", "foo", NULL},
        {"nobody uses the old helper foo any more", "delete", "foo", NULL},
        {"I think foo can go", "delete", "foo", NULL},
        {"Get rid of foo.", "delete", "foo", NULL},
        {"I want to get rid of the function foo and use bar instead", "delete", "foo", NULL},
        {"foo is not needed any more.", "delete", "foo", NULL},
        {"The helper foo is no longer used; its callers use bar.", "delete", "foo", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        agent_operation_words w;
        const char *r = cases[i].request;
        agent_read_operation_words(r, &names, &w);
        same(r, "operation", w.operation, cases[i].operation);
        same(r, "name", w.name, cases[i].name);
        same(r, "to", w.to, cases[i].to);
        agent_operation_words_free(&w);
    }
}

static void test_operation_words__open_nothing_for_other_sentences(void **state)
{
    static const char *const others[] = {"foo is slow; make it fast",
        "foo is a good name; make it clear in the docs", "Call foo first.", "Call foo twice from now on",
        "call foo before parse_line", "Call foo bar", "call foo many", "foo should be called once",
        "foo should be called after bar", "foo should be called by parse_line",
        "I want foo to be called lazily", "I'd like foo to be called synchronously",
        "I want foo to be called bar", "I want foo of nix to be called total", "Should foo be called add_up?",
        "foo should be called add_up?", "The tests say foo should be called add_up",
        "Use strlcpy instead of foo everywhere", "Use snprintf instead of foo",
        "snprintf instead of foo everywhere", "use bar instead of foo everywhere",
        "many is a bad name; make it total", "nix is a bad name; make it nax", "Put a test of foo into b.py",
        "put foo into the log", "Put a call of foo into b.py", "Put foo into b.py's list",
        "why is foo in b.py", "The comment of foo belongs into b.c", "foo belongs into the documentation",
        "Do not put foo into b.py", "Don't get rid of foo", "never get rid of foo",
        "How do I get rid of foo?", "Get rid of foo's mode parameter", "get rid of foo warnings",
        "Get rid of the lock in foo", "get rid of many", "get rid of nix",
        "The check in foo is not needed any more", "If bar is fast, foo is not needed any more",
        "foo is not needed any more?", "foo is not needed any more in the tests", "foo is needed",
        "Change the name of the file foo writes to out.txt", "Pull the latest version into b.py",
        "Pull foo out of the loop", "foo can go wrong", "I don't like the name foo",
        "this is a better name for foo", "I don't like foo, total would be better",
        "nobody uses foo correctly", "", "`", "call foo `total"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        agent_operation_words w;
        if (agent_read_operation_words(others[i], &names, &w))
            fail_msg("%s: %s %s %s", others[i], w.operation, w.name, w.to ? w.to : "");
        agent_operation_words_free(&w);
    }
}

/* By what is named and cued, in any order: requests in developers' words that no row of the table has. */
static void test_operation_words__say_an_operation_in_any_words(void **state)
{
    static const struct {
        const char *request, *operation, *name, *to;
    } cases[] = {
        {"The private name parse_line says nothing. I'd like it to be _read everywhere.", "rename",
            "parse_line", "_read"},
        {"parse_line is misleading since it reads more than that; could you give it the name readAll?",
            "rename", "parse_line", "readAll"},
        {"Please use the name read_line instead of parse_line.", "rename", "parse_line", "read_line"},
        {"foo in application.js ought to be called sendResponse", "rename", "foo", "sendResponse"},
        {"In Lexer, parse_line should read char_or_disabled.", "rename", "parse_line", "char_or_disabled"},
        {"Let's have parse_line renamed: read_line is enough.", "rename", "parse_line", "read_line"},
        {"There's a typo somewhere: the function is called parse_line but I want parseOneLine.", "rename",
            "parse_line", "parseOneLine"},
        {"Relocate parse_line from src/a.rs to src/b.rs.", "move", "parse_line", "src/b.rs"},
        {"parse_line would be better off in lib/text.py.", "move", "parse_line", "lib/text.py"},
        {"Box.put should live in its own file, box_put.c.", "move", "Box.put", "box_put.c"},
        {"Could you shift the foo struct into src/impl.rs?", "move", "foo", "src/impl.rs"},
        {"Put foo next to parse_line in b.go", "move", "foo", "b.go"},
        {"The function foo belongs in lib/only.js, move it over.", "move", "foo", "lib/only.js"},
        {"Nobody calls Box.put; get rid of it.", "delete", "Box.put", NULL},
        {"parse_line is dead code, kill it.", "delete", "parse_line", NULL},
        {"We don't need parse_line any more, throw it out together with its calls.", "delete", "parse_line",
            NULL},
        {"Can you strip out the foo method of the application?", "delete", "foo", NULL},
        {"The method Box::put isn't wanted any longer. Take it out.", "delete", "Box.put", NULL},
        {"Remove everything about parse_line.", "delete", "parse_line", NULL},
        {"Throw `foo` away, it's useless", "delete", "foo", NULL},
        {"Make parse_line private.", "private", "parse_line", NULL},
        {"Box.put should not be exported.", "private", "Box.put", NULL},
        {"parse_line is only used in a.c, make it static.", "private", "parse_line", NULL},
        {"parse_line does not have to be public.", "private", "parse_line", NULL},
    };
    static const char *const others[] = {"Add a field called max_len to parse_line",
        "parse_line needs a method called doIt", "Remove the check in parse_line",
        "Remove parse_line's second check", "Strip trailing blanks in parse_line",
        "Drop parse_line from the list of exports", "Kill the calls of parse_line", "Don't remove parse_line",
        "Why is parse_line named so and not readLine?", "When parse_line is called with NULL, set last_error",
        "parse_line should print the name of file_name", "Put a call of parse_line into b.py",
        "Copy parse_line to b.py", "Take parse_line as an example", "parse_line in a.py is slow",
        "Where should parse_line live, in a.py or in b.py?", "parse_line should store its name in last_name",
        "Remove duplicates in foo", "Move on to parse_line in b.py and explain it",
        "Write a test for parse_line named test_parse_line",
        "Rename the parameter n of parse_line to n_bytes", "Replace parse_line by readLine",
        "Make parse_line a static method", "Add a private method to Box.put", "parse_line should be public",
        "Make the static buffer of parse_line larger"};
    agent_operation_words w;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *r = cases[i].request;
        agent_read_operation_gist(r, &names, &w);
        same(r, "operation", w.operation, cases[i].operation);
        same(r, "name", w.name, cases[i].name);
        same(r, "to", w.to, cases[i].to);
        agent_operation_words_free(&w);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (agent_read_operation_gist(others[i], &names, &w))
            fail_msg("%s: %s %s %s", others[i], w.operation, w.name, w.to ? w.to : "");
        agent_operation_words_free(&w);
    }
}

static void test_operation_words__say_a_new_function(void **state)
{
    const struct {
        const char *request, *name, *parameters, *holder;
        bool is_plain;
        const char *declared, *returns, *decorator;
    } cases[] = {
        {"Add a function double sum(const int *v, int n) to sum.c", "sum", "const int *v, int n", NULL, true,
            "double sum(const int *v, int n)"},
        {"Add a method public List head(int n) to Lists", "head", "int n", NULL, true,
            "public List head(int n)"},
        {"Add direct access: bucket_item(map, i) returns the item there", "bucket_item", "map, i", NULL,
            true},
        {"It is wrong: parse(s) returns None", NULL, NULL, NULL, false},
        {"Add a function that calls sum(a, b)", NULL, NULL, NULL, false},
        {"Add a function is_odd(n: u32) -> bool which tells", "is_odd", "n: u32", NULL, true, NULL,
            "-> bool"},
        {"Add at_most(a: &str, n: usize) -> Option<(usize, bool)>: the distance", "at_most",
            "a: &str, n: usize", NULL, true, NULL, "-> Option<(usize, bool)>"},
        {"Add a function is_odd(n: u32) -> bool.", "is_odd", "n: u32", NULL, true, NULL, "-> bool"},
        {"Add a `muted` context manager to Signal for tests", "muted", NULL, NULL, false, NULL, NULL,
            "contextmanager"},
        {"Add a property is_empty to Queue", "is_empty", NULL, NULL, false, NULL, NULL, "property"},
        {"Add a cached property size to Queue", "size", NULL, NULL, false},
        {"Add a class method of(x) to Queue", "of", "x", NULL, false, NULL, NULL, "classmethod"},
        {"Add a context manager to Signal", NULL, NULL, NULL, false},
        {"Add a manager `pool` to Signal", NULL, NULL, NULL, false},
        {"Add a property to Queue which is empty", NULL, NULL, NULL, false},
        {"Add a decorator to the function parse", NULL, NULL, NULL, false},
        {"Add a method add_key to class Signer", "add_key", NULL, NULL, true},
        {"Add a function is_slug(text, sep='-') to slugify.py that ...", "is_slug", "text, sep='-'", NULL,
            true},
        {"write a helper called odd in numbers.py", "odd", NULL, NULL, true},
        {"Please create a static method `Stack.pop()`", "pop", NULL, "Stack", false, NULL, NULL,
            "staticmethod"},
        {"Implement a method INIReader::GetFloat(const char *s)", "GetFloat", "const char *s", "INIReader",
            true},
        {"Add a GetFloat method to INIReader", "GetFloat", NULL, NULL, true},
        {"Add an async function load_all() to io.py", "load_all", NULL, NULL, false},
        {"Give Stack a method `peek`", "peek", NULL, NULL, true},
        {"Add a method Reset to Parser that sets Position back to 0", "Reset", NULL, NULL, true},
        {"TinyQueue needs a toArray method that returns the items", "toArray", NULL, NULL, true},
        {"Write a fn gcd.", "gcd", NULL, NULL, true},
        {"Add a Keys method to Tree that returns all of them", "Keys", NULL, NULL, true},
        {"Add the clear method to Queue", "clear", NULL, NULL, true},
        {"Add and export isValid(string), which returns true", "isValid", "string", NULL, true},
        {"Ask a prefix: add is_binary, which returns a bool.", "is_binary", NULL, NULL, true},
        {"Add list_clear(list_t *self): it frees all nodes", "list_clear", "list_t *self", NULL, true},
        {"It would be handy to have Router.Count(), the number of routes.", "Count", NULL, "Router", true},
        {"We need a way to see how many there are: a function count() at module level.", "count", NULL, NULL,
            true},
        {"Provide a recipe last_index(iterable, value), the last one's index", "last_index",
            "iterable, value", NULL, true},
        {"Add arg_count to arg.c and arg.h: how many there are.", "arg_count", NULL, NULL, true},
        {"Implement ToRune, which turns a string into a rune, in caste.go", "ToRune", NULL, NULL, true},
        {"Add JsonArray.first() returning the first element.", "first", NULL, "JsonArray", true},
        {"Add MAX_COUNT to arg.c.", NULL, NULL, NULL, false},
        {"Add verbose_name to README.md.", NULL, NULL, NULL, false},
        {"They have sum(a, b) in b.py.", NULL, NULL, NULL, false},
        {"There is a bug: a function f() loops", NULL, NULL, NULL, false},
        {"Add a static method to Queue", NULL, NULL, NULL, false},
        {"Add a sorting function to list.c", NULL, NULL, NULL, false},
        {"Add a field max_size, which is a number", NULL, NULL, NULL, false},
        {"Add verbose_name to Meta", NULL, NULL, NULL, false},
        {"Let it call f(x), which returns 1", NULL, NULL, NULL, false},
        {"Add a method to Parser that sets Position back", NULL, NULL, NULL, false},
        {"Add a small function to a.py which halves", NULL, NULL, NULL, false},
        {"Add a method that clears Queue", NULL, NULL, NULL, false},
        /* No function, none with a name, or another thing is asked for. */
        {"Add a function that counts words", NULL, NULL, NULL, false},
        {"Add a parameter limit to the function find_all", NULL, NULL, NULL, false},
        {"Add a test for the function find_all", NULL, NULL, NULL, false},
        {"Rename the function find_all to find", NULL, NULL, NULL, false},
        {"Add a call of the method find_all to b.py", NULL, NULL, NULL, false},
        {"", NULL, NULL, NULL, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        agent_addition_words w;
        if (agent_read_addition_words(cases[i].request, &w) != (cases[i].name != NULL))
            fail_msg("%s: %s", cases[i].request, w.name ? w.name : "nothing");
        same(cases[i].request, "the name", w.name, cases[i].name);
        same(cases[i].request, "the parameters", w.parameters, cases[i].parameters);
        same(cases[i].request, "the holder", w.holder, cases[i].holder);
        same(cases[i].request, "the declaration", w.declared, cases[i].declared);
        same(cases[i].request, "what it returns", w.returns, cases[i].returns);
        same(cases[i].request, "the decorator", w.decorator, cases[i].decorator);
        if (cases[i].name && w.is_plain != cases[i].is_plain) fail_msg("%s: plain", cases[i].request);
        agent_addition_words_free(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operation_words__say_a_parameter),
        cmocka_unit_test(test_operation_words__say_an_order),
        cmocka_unit_test(test_operation_words__say_what_stands_instead),
        cmocka_unit_test(test_operation_words__say_an_operation_without_its_verb),
        cmocka_unit_test(test_operation_words__open_nothing_for_other_sentences),
        cmocka_unit_test(test_operation_words__say_an_operation_in_any_words),
        cmocka_unit_test(test_operation_words__say_a_new_function),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
