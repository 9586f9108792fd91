/* What an answer says was done: read from its words, and held against what the turn has changed. */
#include "agent/asked/asked.h"
#include "agent/words/claim_words.h"
#include "stage.h"
#include "tools/edit/undo.h"

/* "used g by f; added ?test" */
static char *claims_of(const char *answer)
{
    static const char *const kinds[] = {"used", "added", "removed", "renamed", "changed"};
    agent_claim *claims;
    base_buf out = {0};
    const uint32_t n = agent_read_claims(answer, &claims);
    for (uint32_t i = 0; i < n; i++) {
        base_buf_printf(&out, "%s%s", i ? "; " : "", kinds[claims[i].kind]);
        for (uint32_t k = 0; k < claims[i].n; k++) base_buf_printf(&out, " %s", claims[i].names[k]);
        if (claims[i].of) base_buf_printf(&out, " of %s", claims[i].of);
        if (claims[i].of_tests) base_buf_puts(&out, " (test)");
    }
    agent_claims_free(claims, n);
    return out.data ? base_buf_take(&out) : base_xstrdup("");
}

static void test_claims__are_read_from_sentences(void **state)
{
    static const struct {
        const char *answer, *claims;
    } cases[] = {
        {"Fixed: `encode` now uses `escape_all`.", "used escape_all of encode"},
        {"Fixed `encode` to use `escape_all()`.", "changed encode; used escape_all of encode"},
        {"I updated `encode` so that it calls the new helper `escape_all(text)`.",
            "changed encode; used escape_all of encode"},
        {"`encode` in shop.py now calls `shop.escape_all`.", "used shop.escape_all of encode"},
        {"The helper `wrap` is now used in `encode`.", "used wrap of encode"},
        {"`wrap` is called by the function `encode`.", "used wrap of encode"},
        {"It uses `wrap`.", ""}, /* of what stood there before, perhaps */
        {"It now uses `wrap`.", "used wrap"},
        {"Added a helper called `wrap_all` and used it.", "added wrap_all"},
        {"Added `wrap` and `fold`, and removed `old_one` from `encode`.", "added wrap fold; removed old_one"},
        {"A parameter `strict` was added to `encode`.", "added strict"},
        {"`wrap` and `fold` have been removed.", "removed wrap fold"},
        {"Renamed `wrap` to `fold` in a.py.", "renamed wrap of fold"},
        {"`wrap` has been renamed to `fold`.", "renamed wrap of fold"},
        {"Updated formatCharset, formatEncoding and formatLanguage.",
            "changed formatCharset formatEncoding formatLanguage"},
        {"Updated the docstring of `wrap`.", ""},
        {"Updated the `Result` annotation.", ""}, /* something of it */
        {"Changed `a == b` to `a is b`.", ""},    /* no names */
        {"Updated `a.py` and README.md.", ""},    /* files are read by themselves */
        {"Added a test for `wrap`.", "added (test)"},
        {"Tests were added.", "added (test)"},
        {"Added a unit test `test_wrap`.", "added test_wrap (test)"},
        {"The tests of `wrap` were updated.", ""},
        {"I did not add `wrap`, and nothing uses it now.", ""},
        {"You could use `wrap` now.", ""},
        {"```\nAdded `wrap`.\n```\n", ""},
        {"Replaced the call of `wrap`.", ""},
        {"", ""},
        {"`", ""},
        {"Added `", ""},
        {"`now` uses", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *claims = claims_of(cases[i].answer);
        if (strcmp(claims, cases[i].claims) != 0) fail_msg("%s\nread as: %s", cases[i].answer, claims);
        free(claims);
    }
}

#define ENCODE  "def encode(name):\n    return name\n"
#define WRAP    "def wrap(name):\n    return [name]\n"
#define ESCAPE  "def escape_all(name):\n    return name.strip()\n"
#define ENCODES "def encode(name):\n    return escape_all(name)\n"

/* What the last line says of an answer where a turn has written `now` over `before` of shop.py. The caller frees. */
static char *outcome_of(const char *request, const char *now, const char *answer)
{
    static const char before[] = ENCODE "\n\n" WRAP;
    base_buf old = {0}, new = {0};
    host h = new_host();
    put_file("shop.py", before);
    put_file("other.py", "def other():\n    return 1\n");
    put_file("README.md", "# Shop\n");
    agent_session *s = open_session(&h, "answer Hello.\n", AGENT_MODE_ALL, NULL, false);
    submit(s, &h, "hello");
    agent *a = agent_session_agent(s);
    base_buf_puts(&old, before);
    base_buf_puts(&new, now);
    put_file("shop.py", now);
    assert_int_equal(tool__undo_record(a->workspace, "shop.py", &old, &new, 0600, 0, NULL), 0);
    assert_int_equal(tool_workspace_refresh(a->workspace, NULL, NULL, NULL), 0);
    agent__changed(a, "shop.py");
    a->asked.change = true;
    free(a->request);
    a->request = base_xstrdup(request);
    free(a->asked.said);
    a->asked.said = base_xstrdup(answer);
    base_buf_clear(&h.json);
    agent__tell_outcome(a);
    agent_session_close(s);
    base_buf_free(&old);
    base_buf_free(&new);
    char *line = base_xstrdup(h.json.data);
    free_host(&h);
    return line;
}

static void test_claims__what_the_tree_does_not_bear_out_is_told(void **state)
{
    static const char changed[] = "def encode(name):\n    return name.lower()\n\n\n" WRAP;
    static const struct {
        const char *request, *now, *answer, *says; /* NULL: none of it is contradicted */
    } cases[] = {
        /* the helper that nothing calls */
        {"encode should escape names.", ENCODE "\n\n" WRAP "\n\n" ESCAPE, "Fixed.",
            "Nothing in the tree uses what is new: escape_all."},
        {"encode should escape names.", ENCODE "\n\n" WRAP "\n\n" ESCAPE,
            "Fixed: `encode` now uses `escape_all`.",
            "Whatever the answer says: encode does not use escape_all."},
        {"Add escape_all and use it in encode.", ENCODE "\n\n" WRAP "\n\n" ESCAPE, "Done.",
            "Nothing in the tree uses what is new: escape_all."},
        {"Add a function escape_all.", ENCODE "\n\n" WRAP "\n\n" ESCAPE, "Added `escape_all`.", NULL},
        {"encode should escape names.", ENCODES "\n\n" WRAP "\n\n" ESCAPE,
            "Fixed: `encode` now uses `escape_all`.", NULL},
        /* names */
        {"encode should be lower.", changed, "Changed `encode`. It now uses `casefold`.",
            "Not in what was changed, whatever the answer says: casefold."},
        {"encode should be lower.", changed, "Updated `encode` and `wrap`.",
            "Not changed, whatever the answer says: wrap."},
        {"encode should be lower.", changed, "Updated `encode`, which now uses `lower()`.", NULL},
        {"encode should be lower.", changed, "Removed `wrap`.",
            "Still there, whatever the answer says: wrap."},
        {"encode should be lower.", ENCODE, "Removed `wrap`.", NULL},
        {"encode should be lower.", changed, "Added a parameter `strict` to `encode`.",
            "Not in what was changed, whatever the answer says: strict."},
        /* files and tests */
        {"encode should be lower.", changed, "Changed `encode` and documented it in the README.",
            "Not changed, whatever the answer says: README.md."},
        {"encode should be lower.", changed, "Changed `encode` and added a test.",
            "No test was added, whatever the answer says."},
        {"encode should be lower.", changed, "Changed `encode` in shop.py.", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *line = outcome_of(cases[i].request, cases[i].now, cases[i].answer);
        const char *says = cases[i].says;
        const bool is_told = says ? strstr(line, says) != NULL
                                  : !strstr(line, "hatever the answer says") && !strstr(line, "Nothing in");
        if (!is_told || (says && !strstr(line, "\"state\":\"partial\"")))
            fail_msg("%s\n%s\n%s", cases[i].answer, says ? says : "(nothing)", line);
        free(line);
    }
}

int main(int argc, char **argv)
{
    if (argc == 2) cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        TEST_CASE(test_claims__are_read_from_sentences),
        TEST_CASE(test_claims__what_the_tree_does_not_bear_out_is_told),
    };
    find_grammars();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
