/* Files go in and out, questions find definitions, symbols find places; grammars are not needed (NULL: lexical). */
#include "support.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"
#include "code/describe.h"
#include "code/map.h"
#include "code/rank.h"
#include "code/words.h"

static void put(code_index *x, const char *path, const char *text)
{
    code_index_update(x, path, text, text != NULL ? strlen(text) : 0);
}

static code_index *small_tree(void)
{
    code_index *x = code_index_new(NULL);
    put(x, "src/reply.c",
        "#include \"reply.h\"\n\n"
        "/* Releases a reply and what hangs below it. */\n"
        "void freeReplyObject(void *reply)\n"
        "{\n"
        "    sdsfree(reply);\n"
        "}\n\n"
        "static int count(int n)\n{\n    return n + 1;\n}\n");
    put(x, "src/reply.h",
        "struct reply {\n    char errstr[8];\n    int type;\n};\nvoid freeReplyObject(void *reply);\n");
    put(x, "src/sds.c",
        "/* Enlarges the string. */\n"
        "int sdsMakeRoomFor(int s)\n"
        "{\n"
        "    return s;\n"
        "}\n\n"
        "void sdsfree(int s)\n"
        "{\n"
        "    s = 0;\n"
        "}\n");
    put(x, "tests/test_reply.c", "void freeReplyObject(void *reply)\n{\n    abort();\n}\n");
    put(x, "README.md", "# Replies\n\nCall freeReplyObject() when done with the reply.\n");
    return x;
}

static const char *first(const code_index *x, const char *query, char out[64])
{
    code_hits h;
    code_index_search(x, query, 3, &h);
    snprintf(out, 64, "%s", h.n != 0 ? h.hits[0].name : "");
    code_hits_free(&h);
    return out;
}

static const char *described(const code_index *x, const char *description, char out[64])
{
    code_described *all = NULL;
    const uint32_t n = code_index_describe(x, description, description, 3, &all);
    snprintf(out, 64, "%s", n ? all[0].name : "");
    if (n) assert_true(all[0].share == 1.);
    code_described_free(all, n);
    return out;
}

/* Of what kind it is counts, what its comment says, and that tests are seldom meant. */
static void test_index__descriptions_find_definitions(void **state)
{
    code_index *x = code_index_new(NULL);
    char name[64];
    put(x, "src/read.c",
        "/* How deep a value may be nested. */\n#define READ_DEEPEST 40\n\n"
        "/* Reads a nested value, no deeper than that. */\n"
        "static int readNested(int depth)\n{\n    return depth < READ_DEEPEST;\n}\n\n"
        "/* Lets the buffer go. */\nvoid dropAll(char *buffer)\n{\n    free(buffer);\n}\n");
    put(x, "tests/test_read.c", "static int checkNestedValue(int depth)\n{\n    return depth;\n}\n");
    assert_string_equal(described(x, "the macro for how deep values are nested", name), "READ_DEEPEST");
    assert_string_equal(described(x, "the function which reads a nested value", name), "readNested");
    assert_string_equal(described(x, "the test helper for a nested value", name), "checkNestedValue");
    assert_string_equal(described(x, "what lets the buffer go", name), "dropAll");
    assert_string_equal(described(x, "zebra", name), "");
    put(x, "src/match.c",
        "int match(char c)\n{\n    return c;\n}\n\nint matchstar(char c)\n{\n    return match(c);\n}\n\n"
        "int matchquestion(char c)\n{\n    return match(c);\n}\n");
    assert_string_equal(described(x, "the function that handles the ? quantifier", name), "matchquestion");
    assert_string_equal(described(x, "what handles '*'", name), "matchstar");
    code_index_free(x);
}

/* What a description states of the code goes before its words, as far as something has it. */
static void test_index__descriptions_state_what_code_shows(void **state)
{
    code_grammars *g = grammars_or_skip("c");
    code_index *x = code_index_new(g);
    char name[64];
    put(x, "src/walk.c",
        "int graph_walk(int n)\n{\n    return graph_step(n) + graph_each(n);\n}\n\n"
        "static int graph_each(int n)\n{\n    return n ? graph_each(n - 1) : 0;\n}\n\n"
        "int graph_step(int n)\n{\n    return n;\n}\n\n"
        "int graph_all_of_it(int n, ...)\n{\n    return n;\n}\n");
    put(x, "src/other/draw.c", "int drawGraph(int n)\n{\n    return graph_walk(n);\n}\n");
    put(x, "tests/test_walk.c", "int main(void)\n{\n    return graph_all_of_it(1) + drawGraph(2);\n}\n");
    assert_string_equal(described(x, "the recursive helper for the graph", name), "graph_each");
    assert_string_equal(described(x, "the static function for the graph", name), "graph_each");
    assert_string_equal(described(x, "the variadic function for a graph", name), "graph_all_of_it");
    assert_string_equal(
        described(x, "what nobody calls of the graph functions in walk", name), "graph_all_of_it");
    assert_string_equal(described(x, "the graph function in other", name), "drawGraph");
    assert_string_equal(described(x, "the one in camel case for the graph", name), "drawGraph");
    code_index_free(x);
    code_grammars_close(g);
}

/* "The private method of X": a member of it. */
static void test_index__descriptions_name_the_owner(void **state)
{
    code_grammars *g = grammars_or_skip("python");
    code_index *x = code_index_new(g);
    char name[64];
    put(x, "lines.py",
        "class Reader:\n    def parse_line(self, line):\n        return self._line(line)\n\n"
        "    def _line(self, line):\n        return line\n\n\n"
        "class Writer:\n    def put_line(self, line):\n        return line\n\n"
        "    def _keep_line(self, line):\n        return line\n\n    @staticmethod\n"
        "    def end(line):\n        return line\n");
    assert_string_equal(described(x, "the private method of Writer for a line", name), "Writer._keep_line");
    assert_string_equal(described(x, "Reader's private method for a line", name), "Reader._line");
    assert_string_equal(described(x, "the static helper that takes a line", name), "Writer.end");
    code_index_free(x);
    code_grammars_close(g);
}

static void test_index__questions_find_definitions(void **state)
{
    code_index *x = small_tree();
    char name[64];
    assert_string_equal(
        first(x, "Which function frees a reply, and where is it defined?", name), "freeReplyObject");
    assert_string_equal(first(x, "freeReplyObject", name), "freeReplyObject");
    assert_string_equal(first(x, "Where is an sds string enlarged?", name), "sdsMakeRoomFor");
    assert_string_equal(first(x, "how is an sds freed", name), "sdsfree");
    code_hits h;
    code_index_search(x, "frees a reply", 5, &h);
    assert_string_equal(h.hits[0].path, "src/reply.c");
    assert_int_equal(h.hits[0].definition_line, 4);
    assert_int_equal(h.hits[0].line, 3); /* the comment belongs to it */
    assert_int_equal(h.hits[0].n, h.hits[0].to - h.hits[0].from);
    assert_non_null(strstr(h.hits[0].why, "frees"));
    assert_non_null(strstr(h.hits[0].text, "Releases"));
    for (uint32_t i = 1; i < h.n; i++) assert_true(h.hits[i].score <= h.hits[i - 1].score);
    code_hits_free(&h);
    static const char *const nothing[] = {"", "???", "xylophone", "\xff\xfe"};
    for (size_t i = 0; i < 4; i++) {
        code_index_search(x, nothing[i], 5, &h);
        assert_int_equal(h.n, 0);
        code_hits_free(&h);
    }
    code_index_free(x);
}

/* Somebody who knows one thing: that a colour is a hue. */
static void find_hue(void *user, const base_alike_query *q)
{
    bool *const was_wanted = user;
    assert_false(q->is_wanted(q->asker, "tint")); /* it stands nowhere in the tree */
    *was_wanted = q->is_wanted(q->asker, "hue");
    for (uint32_t i = 0; i < q->n && *was_wanted; i++)
        if (strcmp(q->words[i], "colour") == 0) q->add(q->asker, i, "hue", q->least + .1F);
}

static void test_index__words_that_are_alike_lead_to_definitions(void **state)
{
    code_index *x = code_index_new(NULL);
    bool was_wanted = false;
    const base_alike alike = {&was_wanted, find_hue};
    char name[64];
    put(x, "a.c", "void turn_hue(int a)\n{\n    a = 1;\n}\n\nvoid turn_page(int a)\n{\n    a = 2;\n}\n");
    code_hits h;
    code_index_search(x, "the colour", 5, &h);
    assert_int_equal(h.n, 0);
    code_hits_free(&h);
    code_index_set_alike(x, &alike);
    assert_string_equal(first(x, "the colour", name), "turn_hue");
    assert_true(was_wanted);
    assert_string_equal(first(x, "turns the page", name), "turn_page"); /* a word that is there counts more */
    code_index_set_alike(x, NULL);
    code_index_search(x, "the colour", 5, &h);
    assert_int_equal(h.n, 0);
    code_hits_free(&h);
    code_index_free(x);
}

static void test_index__a_failing_test_leads_to_what_it_tests(void **state)
{
    code_index *x = code_index_new(NULL);
    put(x, "tests/test_shortest_path.py",
        "def test_one():\n"
        "    assert shortest_path(1) == 2\n\n"
        "def test_two():\n"
        "    assert shortest_path(2) == 2\n");
    put(x, "programs/shortest_paths.py", "def shortest_paths(a):\n    return a\n");
    put(x, "programs/shortest_path.py", "def shortest_path(a):\n    return a\n");
    put(x, "programs/other.py", "def fails(tests):\n    return tests\n");
    char name[64];
    assert_string_equal(first(x, "tests/test_shortest_path.py fails; fix it", name), "shortest_path");
    code_index_free(x);
}

static void test_index__callers_and_manuals_lead_to_what_they_name(void **state)
{
    code_index *x = code_index_new(NULL);
    put(x, "manual.md", "# Exclusive things\n\nTwo zebras that must never meet: use keepApart().\n");
    put(x, "a.c", "void keepApart(int a)\n{\n    a = 1;\n}\n\nvoid unrelated(int a)\n{\n    a = 2;\n}\n");
    code_hits h;
    code_index_search(x, "zebras that never meet", 9, &h);
    bool found = false;
    for (uint32_t i = 0; i < h.n; i++) {
        found = found || strcmp(h.hits[i].name, "keepApart") == 0;
        assert_string_not_equal(h.hits[i].name, "unrelated");
    }
    assert_true(found);
    code_hits_free(&h);
    code_index_free(x);
}

static void test_index__hits_fit_a_budget(void **state)
{
    code_index *x = code_index_new(NULL);
    base_buf text = {0};
    for (int f = 0; f < 10; f++) {
        base_buf_printf(&text, "/* Paints part %d.\n", f);
        for (int i = 0; i < 20; i++) base_buf_puts(&text, " * more words about painting\n");
        base_buf_printf(&text, " */\nvoid paint_part_%d(void)\n{\n", f);
        for (int i = 0; i < 40; i++) base_buf_puts(&text, "    paint(color);\n");
        base_buf_puts(&text, "}\n\n");
    }
    put(x, "paint.c", text.data);
    for (size_t budget = 0; budget < 9000; budget += 611) {
        code_hits h;
        code_index_search(x, "paint part", 10, &h);
        assert_int_equal(h.n, 10);
        code_hits_fit(&h, budget, 6);
        size_t bytes = 0;
        for (uint32_t i = 0; i < h.n; i++) {
            const code_hit *hit = &h.hits[i];
            bytes += hit->n;
            assert_memory_equal(hit->text, text.data + hit->from, hit->n);
            assert_int_equal(hit->n, hit->to - hit->from);
            uint32_t line = 1, lines = 0;
            for (uint32_t at = 0; at < hit->from; at++) line += text.data[at] == '\n';
            for (size_t at = 0; at < hit->n; at++) lines += hit->text[at] == '\n';
            assert_int_equal(hit->line, line);
            assert_int_equal(hit->line_end, line + lines);
            if (budget > 3000) assert_non_null(strstr(hit->text, "void paint_part_"));
        }
        assert_true(bytes <= budget);
        if (budget > 3000) assert_true(h.n >= 6);
        code_hits_free(&h);
    }
    base_buf_free(&text);
    code_index_free(x);
}

static void test_index__symbols(void **state)
{
    code_index *x = small_tree();
    code_place *p;
    uint32_t n = code_index_define(x, "freeReplyObject()", &p);
    assert_int_equal(n, 3);
    assert_string_equal(p[0].path, "src/reply.c");
    assert_int_equal(p[0].line, 4);
    assert_true(p[1].is_declaration);
    assert_string_equal(p[2].path, "tests/test_reply.c"); /* tests come last */
    code_places_free(p, n);
    assert_int_equal(code_index_define(x, "nothing", &p), 0);
    assert_int_equal(code_index_define(x, "", &p), 0);
    assert_true(code_index_mentions(x, "abort"));
    assert_false(code_index_mentions(x, "abor"));
    char *path = code_index_path(x, "reply.c");
    assert_string_equal(path, "src/reply.c");
    free(path);
    path = code_index_path(x, "./src/reply.h");
    assert_string_equal(path, "src/reply.h");
    free(path);
    assert_null(code_index_path(x, "eply.c"));
    assert_null(code_index_path(x, "none.c"));
    put(x, "lib/reply.c", "int x;\n");
    assert_null(code_index_path(x, "reply.c")); /* two of them now */
    char **paths = code_index_paths(x);
    assert_string_equal(paths[0], "README.md");
    assert_null(paths[6]);
    code_index_paths_free(paths);
    code_index_free(x);
}

static void test_index__callers(void **state)
{
    code_index *x = small_tree();
    put(x, "src/use.c",
        "void one(void *r)\n"
        "{\n"
        "    freeReplyObject(r);\n"
        "    freeReplyObject(r);\n"
        "}\n\n"
        "void two(void *r)\n"
        "{\n"
        "    one(r);\n"
        "    freeReplyObject(r);\n}\n");
    put(x, "tests/test_use.c", "void test_one(void)\n{\n    freeReplyObject(0);\n}\n");
    code_caller *c;
    assert_int_equal(code_index_callers(x, "freeReplyObject()", 9, &c), 3);
    assert_string_equal(c[0].name, "one"); /* once, by its first call */
    assert_string_equal(c[0].path, "src/use.c");
    assert_int_equal(c[0].line, 3);
    assert_string_equal(c[1].name, "two");
    assert_int_equal(c[1].line, 10);
    assert_string_equal(c[2].name, "test_one"); /* tests come last */
    code_callers_free(c, 3);
    assert_int_equal(code_index_callers(x, "Reply::one", 0, &c), 1); /* counted, and none is wanted */
    code_callers_free(c, 0);
    put(x, "src/use.c", NULL);
    put(x, "tests/test_use.c", NULL);
    static const char *const nobody[] = {
        "freeReplyObject", "freeReply", "freeReplyObjects", "nothing", "", "()", "."};
    for (size_t i = 0; i < sizeof nobody / sizeof *nobody; i++) {
        assert_int_equal(code_index_callers(x, nobody[i], 9, &c), 0);
        code_callers_free(c, 0);
    }
    code_index_free(x);
}

static void test_index__updates_replace_and_remove(void **state)
{
    code_index *x = small_tree();
    char name[64];
    const uint32_t chunks = code_index_chunks(x);
    put(x, "src/sds.c", "void zebra(void)\n{\n    stripes();\n}\n");
    assert_string_equal(first(x, "zebra stripes", name), "zebra");
    assert_string_equal(first(x, "enlarge", name), "");
    code_place *p;
    assert_int_equal(code_index_define(x, "sdsMakeRoomFor", &p), 0);
    assert_false(code_index_mentions(x, "sdsMakeRoomFor"));
    assert_true(code_index_mentions(x, "sdsfree")); /* reply.c calls it */
    put(x, "src/sds.c", NULL);
    put(x, "never/was.c", NULL);
    assert_int_equal(code_index_files(x), 4);
    assert_false(code_index_mentions(x, "zebra"));
    assert_true(code_index_chunks(x) < chunks);
    /* Many rewrites: the dead are swept and the answers stay right. */
    for (int i = 0; i < 6000; i++) {
        char text[128];
        snprintf(text, sizeof text, "int f%d(void)\n{\n    return walrus_%d;\n}\n", i, i);
        put(x, "churn.c", text);
    }
    assert_string_equal(first(x, "walrus", name), "f5999");
    assert_string_equal(first(x, "frees a reply", name), "freeReplyObject");
    assert_false(code_index_mentions(x, "walrus_1"));
    code_index_free(x);
}

static void test_index__binary_and_odd_files_are_paths_only(void **state)
{
    code_index *x = code_index_new(NULL);
    code_index_update(x, "a.bin", "\0\1\2function walrus() {}", 24);
    put(x, "package-lock.json", "{\"walrus\": 1}\n");
    put(x, "empty.c", "");
    put(x, "bad\nname\xff.c", "int walrus(void)\n{\n    return 0;\n}\n");
    assert_int_equal(code_index_files(x), 4);
    code_hits h;
    code_index_search(x, "walrus", 9, &h);
    assert_int_equal(h.n, 1);
    assert_string_equal(h.hits[0].path, "bad\nname\xff.c");
    code_hits_free(&h);
    code_index_free(x);
}

/* A place for a store, removed by the test. */
static void store_path(char out[64])
{
    strcpy(out, "/tmp/kvist-store-XXXXXX");
    const int fd = mkstemp(out);
    assert_true(fd >= 0);
    close(fd);
    unlink(out);
}

static void fill(code_index *x, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        char path[32], text[256];
        snprintf(path, sizeof path, "src/f%u.c", i);
        snprintf(text, sizeof text, "/* Part %u. */\nint part_%u(int a)\n{\n    return helper_%u(a);\n}\n", i,
            i, i / 2);
        put(x, path, text);
    }
}

static void check_same(const code_index *x, uint32_t n)
{
    assert_int_equal(code_index_files(x), n);
    code_place *p;
    for (uint32_t i = 0; i < n; i++) {
        char name[32];
        snprintf(name, sizeof name, "part_%u", i);
        assert_int_equal(code_index_define(x, name, &p), 1);
        assert_int_equal(p[0].line, 2);
        assert_int_equal(p[0].line_end, 5);
        code_places_free(p, 1);
    }
}

static void test_index__a_second_start_parses_nothing(void **state)
{
    enum { N = 40 };
    char path[64], out[64];
    store_path(path);
    code_index *x = code_index_new(NULL);
    base_buf word = {0};
    code_index_load(x, path, &word); /* there is none yet */
    fill(x, N);
    assert_int_equal(code_index_parsed(x), N);
    assert_int_equal(code_index_save(x, path, NULL), 0);
    code_index_free(x);
    x = code_index_new(NULL);
    code_index_load(x, path, &word);
    fill(x, N);
    assert_int_equal(code_index_parsed(x), 0);
    check_same(x, N);
    assert_true(code_index_mentions(x, "helper_3"));
    assert_string_not_equal(first(x, "part", out), "");
    put(x, "src/f3.c", "int part_3(int b)\n{\n    return b;\n}\n"); /* changed: never the old */
    assert_int_equal(code_index_parsed(x), 1);
    code_place *p;
    assert_int_equal(code_index_define(x, "part_3", &p), 1);
    assert_int_equal(p[0].line, 1);
    code_places_free(p, 1);
    code_index_free(x);
    assert_int_equal(word.len, 0);
    unlink(path);
}

/* Whatever became of the file: what is whole is used, the rest is read anew, and a cut is told. */
static void test_index__a_damaged_store_is_told_and_rebuilt(void **state)
{
    enum { N = 12 };
    char path[64];
    store_path(path);
    code_index *x = code_index_new(NULL);
    fill(x, N);
    assert_int_equal(code_index_save(x, path, NULL), 0);
    code_index_free(x);
    base_buf whole = {0};
    assert_int_equal(base_fs_read(path, 1 << 20, &whole, NULL), 0);
    for (size_t at = 0; at <= whole.len; at += at < 80 ? 1 : 37) {
        for (int flips = 0; flips < 2; flips++) { /* cut there, or one byte of it wrong */
            base_buf bad = {0}, word = {0};
            base_buf_add(&bad, whole.data, flips ? whole.len : at);
            if (flips && at < whole.len) bad.data[at] ^= 0x41;
            assert_int_equal(base_fs_write(path, bad.data ? bad.data : "", bad.len, 0600, NULL), 0);
            x = code_index_new(NULL);
            code_index_load(x, path, &word);
            fill(x, N);
            check_same(x, N);
            const bool damaged = at < whole.len;
            if (flips && damaged) assert_true(word.len != 0);
            if (!flips && code_index_parsed(x) == N && at > 8) assert_true(word.len != 0);
            if (!damaged) assert_int_equal(code_index_parsed(x), 0);
            code_index_free(x);
            base_buf_free(&bad);
            base_buf_free(&word);
        }
    }
    base_buf_free(&whole);
    unlink(path);
}

static void test_index__an_edit_gives_what_a_fresh_parse_gives(void **state)
{
    code_grammars *g = grammars_or_skip("python");
    static const char *const pieces[] = {"def f(a):\n    return g(a)\n", "class C:\n    x = 1\n",
        "    y = 2\n", "\n", "if a:\n    b()\n", "# note\n", "é = 'ü'\n", "@d\n", "return\n"};
    code_index *x = code_index_new(g);
    base_buf text = {0};
    base_buf_puts(&text, "def first(a):\n    return a\n\n\ndef last(b):\n    return b\n");
    uint64_t random = 88172645463325252u;
    for (int step = 0; step < 300; step++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        const char *piece = pieces[random % 9];
        const size_t at = random / 16 % (text.len + 1), n = strlen(piece), cut = random / 64 % 40;
        const size_t gone = step % 3 == 0 ? (cut < text.len - at ? cut : text.len - at) : 0;
        base_buf next = {0};
        base_buf_add(&next, text.data, at);
        base_buf_add(&next, piece, n);
        base_buf_add(&next, text.data + at + gone, text.len - at - gone);
        base_buf_free(&text);
        text = next;
        code_index_update(x, "a.py", text.data, text.len);
        code_file *f = code_parse(g, "a.py", text.data, text.len);
        if (f->n_errors == 0)
            for (uint32_t i = 0; i < f->n_definitions; i++) {
                code_place *p;
                const uint32_t n_places = code_index_define(x, f->definitions[i].name, &p);
                bool found = false;
                for (uint32_t k = 0; k < n_places; k++)
                    found = found || (p[k].from == f->definitions[i].from && p[k].to == f->definitions[i].to);
                assert_true(found);
                code_places_free(p, n_places);
            }
        code_file_free(f);
    }
    base_buf_free(&text);
    code_index_free(x);
    code_grammars_close(g);
}

static void test_index__a_broken_moment_keeps_what_was_known(void **state)
{
    code_grammars *g = grammars_or_skip("python");
    code_index *x = code_index_new(g);
    base_buf text = {0};
    for (int i = 0; i < 20; i++) base_buf_printf(&text, "def f%d(a):\n    return a + %d\n\n\n", i, i);
    code_index_update(x, "a.py", text.data, text.len);
    base_buf broken = {0};
    base_buf_puts(&broken, "s = \"\"\"\n");
    base_buf_add(&broken, text.data, text.len);
    code_index_update(x, "a.py", broken.data, broken.len);
    code_place *p;
    assert_int_equal(code_index_define(x, "f19", &p), 1);
    assert_int_equal(p[0].line, 78); /* one line further down */
    assert_memory_equal(broken.data + p[0].from, "def f19", 7);
    code_places_free(p, 1);
    base_buf_clear(&broken);
    base_buf_puts(
        &broken, "s = \"\"\"\"\"\"\ndef f0():\n    pass\n"); /* sane again: the rest is really gone */
    code_index_update(x, "a.py", broken.data, broken.len);
    assert_int_equal(code_index_define(x, "f19", &p), 0);
    assert_int_equal(code_index_define(x, "f0", &p), 1);
    code_places_free(p, 1);
    base_buf_free(&text);
    base_buf_free(&broken);
    code_index_free(x);
    code_grammars_close(g);
}

/* A message that a request quotes leads to the only function that writes it, whatever else shares its words. */
static void test_rank__a_quoted_message_finds_its_function(void **state)
{
    static const char quoted[] =
        "When it does not fit, the error only says \"value too large\". Say how large.",
                      plain[] = "When it does not fit, the error should say how large the value is.";
    code_index *x = code_index_new(NULL);
    code_ranked *ranked = NULL;
    put(x, "error.py", "def error_of_large_value(value):\n    # value too large\n    return value.error\n");
    put(x, "cache.py", "def put(cache, x):\n    if x > 9:\n        raise ValueError(\"value too large\")\n");
    put(x, "check.py", "def test_large_value():\n    assert error_of(\"value too large\")\n");
    uint32_t n = code_index_rank(x, NULL, quoted, 3, &ranked);
    assert_int_equal(n, 2); /* a test is none of what is to change */
    assert_string_equal(ranked[0].name, "put");
    code_ranked_free(ranked, n);
    n = code_index_rank(x, NULL, plain, 3, &ranked);
    assert_string_equal(ranked[0].name, "error_of_large_value");
    code_ranked_free(ranked, n);
    code_index_free(x);
}

static void test_rank__two_words_may_be_one_in_a_name(void **state)
{
    code_index *x = code_index_new(NULL);
    code_ranked *ranked = NULL;
    put(x, "one.py", "def parse_date(text):\n    return text\n");
    put(x, "both.py", "def parse_datetime(text):\n    return text.split(\"T\")\n");
    put(x, "other.py", "def other(text):\n    return text\n");
    const uint32_t n = code_index_rank(x, NULL, "Date times with a small t are refused", 3, &ranked);
    assert_string_equal(ranked[0].name, "parse_datetime");
    code_ranked_free(ranked, n);
    code_index_free(x);
}

/* A type that is short enough to be one chunk has methods all the same. */
static void test_rank__methods_of_a_small_type_are_ranked(void **state)
{
    static const struct {
        const char *request, *first;
    } cases[] = {{"The lifespan of a ring should be optional", "Ring.__init__"},
        {"Dropping an item that is not there should do nothing", "Ring.drop"},
        {"Ring.put should refuse None", "Ring.put"}};
    code_grammars *g = grammars_or_skip("python");
    code_index *x = code_index_new(g);
    put(x, "ring.py",
        "class Ring:\n    def __init__(self, lifespan):\n        self.items = []\n        self.lifespan = lifespan\n\n"
        "    def put(self, item):\n        self.items.append(item)\n\n"
        "    def drop(self, item):\n        self.items.remove(item)\n");
    put(x, "other.py", "def other(item):\n    return item\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        code_ranked *ranked = NULL;
        const uint32_t n = code_index_rank(x, NULL, cases[i].request, 3, &ranked);
        if (!n || strcmp(ranked[0].name, cases[i].first) != 0)
            fail_msg("%s: %s", cases[i].request, n ? ranked[0].name : "nothing");
        code_ranked_free(ranked, n);
    }
    code_index_free(x);
    code_grammars_close(g);
}

/* Of two functions that fit alike the one comes first whose file was changed for such words; the tree's own words still count. */
static void test_rank__earlier_changes_speak_for_a_file(void **state)
{
    static const char *const first[] = {"one.py"}, *const second[] = {"two.py", "other.py"};
    code_index *x = code_index_new(NULL);
    code_history *h = code_history_new();
    code_ranked *ranked = NULL;
    put(x, "one.py", "def read(text):\n    return text\n");
    put(x, "two.py", "def read(text):\n    return text\n");
    put(x, "other.py", "def leap(year):\n    return not year % 4\n");
    code_history_add(h, "Read text with a byte order mark", first, 1);
    code_history_add(h, "Read empty durations", second, 2);
    uint32_t n = code_index_rank(x, h, "Reading durations is slow", 3, &ranked);
    assert_true(n >= 2);
    assert_string_equal(ranked[0].path, "two.py");
    assert_true(ranked[1].score < ranked[0].score);
    code_ranked_free(ranked, n);
    n = code_index_rank(x, h, "Reading text with byte order marks is slow", 3, &ranked);
    assert_string_equal(ranked[0].path, "one.py");
    code_ranked_free(ranked, n);
    n = code_index_rank(x, h, "The leap year of durations is wrong", 3, &ranked);
    assert_string_equal(ranked[0].name, "leap");
    code_ranked_free(ranked, n);
    code_history_free(h);
    code_index_free(x);
}

static void test_map__callers_lift_what_they_call(void **state)
{
    code_index *x = code_index_new(NULL);
    put(x, "a.c", "void core(int a)\n{\n    a = 1;\n}\n\nvoid lonely(int a)\n{\n    a = 2;\n}\n");
    put(x, "b.c", "void first(int a)\n{\n    core(a);\n}\n\nvoid second(int a)\n{\n    core(a);\n}\n");
    base_buf out = {0};
    assert_int_equal(code_index_map(x, &(code_map_options){.budget_bytes = 30}, &out), 1);
    assert_string_equal(out.data, "a.c:\n  1: void core(int a)\n");
    base_buf_clear(&out);
    assert_int_equal(code_index_map(x, &(code_map_options){.budget_bytes = 4000}, &out), 4);
    assert_non_null(strstr(out.data, "lonely"));
    base_buf_clear(&out);
    code_index_map(x, &(code_map_options){.words = "what does lonely do", .budget_bytes = 35}, &out);
    assert_string_equal(out.data, "a.c:\n  6: void lonely(int a)\n");
    base_buf_clear(&out);
    assert_int_equal(code_index_map(x, &(code_map_options){.budget_bytes = 0}, &out), 0);
    char **symbols = code_index_symbols(x, 2);
    assert_non_null(symbols[1]);
    assert_null(symbols[2]);
    code_index_paths_free(symbols);
    base_buf_free(&out);
    code_index_free(x);
}

static void test_outline__fits_its_budget(void **state)
{
    base_buf text = {0}, out = {0};
    for (int i = 0; i < 60; i++)
        base_buf_printf(&text,
            "int function_%d(int first_argument, int second_argument)\n{\n    return %d;\n}\n\n", i, i);
    code_file *f = code_parse(NULL, "a.c", text.data, text.len);
    code_outline(f, text.data, text.len, text.len, &out);
    assert_non_null(
        strstr(out.data, "    1-4     int function_0(int first_argument, int second_argument)\n"));
    base_buf_clear(&out);
    code_outline(f, text.data, text.len, 60 * 30, &out);
    assert_true(out.len <= 60 * 30);
    assert_non_null(strstr(out.data, "function_59\n"));
    code_file_free(f);
    base_buf_free(&text);
    base_buf_free(&out);
}

static void test_words__forms_of_a_word_share_a_stem(void **state)
{
    static const char *const groups[][5] = {{"free", "frees", "freeing", "freed"}, {"reply", "replies"},
        {"validate", "validates", "validation", "validating"},
        {"complete", "completion", "completing", "completions"}, {"wrap", "wrapping", "wrapped", "wraps"},
        {"class", "classes"}, {"subscribe", "subscription", "subscribing"}, {"describe", "description"},
        {"parse", "parser", "parsing"}, {"status", "status"}};
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
        for (size_t i = 1; i < 5 && groups[g][i] != NULL; i++) {
            char a[CODE_WORD_BYTES], b[CODE_WORD_BYTES];
            code_stem(groups[g][0], strlen(groups[g][0]), a);
            code_stem(groups[g][i], strlen(groups[g][i]), b);
            assert_string_equal(a, b);
        }
    double weight;
    bool found = false;
    const char *word;
    for (size_t i = 0; (word = code_related_word("config", i, &weight)) != NULL; i++)
        found = found || strcmp(word, "cfg") == 0;
    assert_true(found);
}

static void test_path__says_whether_it_is_a_test(void **state)
{
    static const char *const tests[] = {"test_a.py", "ring-test.c", "ring_tests.c", "a.spec.ts", "tests/a.c",
        "test-ring.c", "a_test.go", "src/test/A.java"};
    static const char *const none[] = {"src/cmd/sample.rs", "contest.c", "latest-news.c", "attest.py"};
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) assert_true(code_path_is_test(tests[i]));
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) assert_false(code_path_is_test(none[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_index__descriptions_find_definitions),
        cmocka_unit_test(test_index__descriptions_state_what_code_shows),
        cmocka_unit_test(test_index__descriptions_name_the_owner),
        cmocka_unit_test(test_index__questions_find_definitions),
        cmocka_unit_test(test_index__words_that_are_alike_lead_to_definitions),
        cmocka_unit_test(test_index__a_failing_test_leads_to_what_it_tests),
        cmocka_unit_test(test_index__callers_and_manuals_lead_to_what_they_name),
        cmocka_unit_test(test_index__hits_fit_a_budget),
        cmocka_unit_test(test_index__symbols),
        cmocka_unit_test(test_index__callers),
        cmocka_unit_test(test_index__updates_replace_and_remove),
        cmocka_unit_test(test_index__binary_and_odd_files_are_paths_only),
        cmocka_unit_test(test_index__a_second_start_parses_nothing),
        cmocka_unit_test(test_index__a_damaged_store_is_told_and_rebuilt),
        cmocka_unit_test(test_index__an_edit_gives_what_a_fresh_parse_gives),
        cmocka_unit_test(test_index__a_broken_moment_keeps_what_was_known),
        cmocka_unit_test(test_rank__a_quoted_message_finds_its_function),
        cmocka_unit_test(test_rank__earlier_changes_speak_for_a_file),
        cmocka_unit_test(test_rank__two_words_may_be_one_in_a_name),
        cmocka_unit_test(test_rank__methods_of_a_small_type_are_ranked),
        cmocka_unit_test(test_map__callers_lift_what_they_call),
        cmocka_unit_test(test_outline__fits_its_budget),
        cmocka_unit_test(test_path__says_whether_it_is_a_test),
        cmocka_unit_test(test_words__forms_of_a_word_share_a_stem),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
