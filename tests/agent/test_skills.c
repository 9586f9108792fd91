/*
 * Skills of the tree and commands of the person: what is read, what is refused and by which sentence, and
 * what a session holds before and after one is used.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "agent/command/skill_text.h"
#include "agent/command/skills.h"
#include "stage.h"

#define SKILL(name, about, body) "---\nname: " name "\ndescription: " about "\n---\n" body

static void put_skill(const char *name, const char *text)
{
    char path[160];
    snprintf(path, sizeof path, "%s/.agents/skills/%s", tree, name);
    assert_int_equal(base_fs_mkdirs(path, NULL), 0);
    snprintf(path, sizeof path, ".agents/skills/%s/SKILL.md", name);
    put_file(path, text);
}

static void put_command(const char *name, const char *text)
{
    base_buf path = {0};
    base_err err = {0};
    base_buf_printf(&path, "%s/config/commands", base_folder);
    assert_int_equal(base_fs_mkdirs(path.data, &err), 0);
    base_buf_printf(&path, "/%s.md", name);
    assert_int_equal(base_fs_write(path.data, text, strlen(text), 0600, &err), 0);
    base_buf_free(&path);
}

/* --- the format ----------------------------------------------------------------------------------------- */

static void check(const char *text, const char *name, const char *description, const char *body)
{
    agent_skill_text t;
    base_err err = {0};
    assert_int_equal(agent_skill_text_parse(text, strlen(text), &t, &err), 0);
    if (name)
        assert_string_equal(t.name, name);
    else
        assert_null(t.name);
    if (description)
        assert_string_equal(t.description, description);
    else
        assert_null(t.description);
    assert_string_equal(text + t.body, body);
    agent_skill_text_free(&t);
}

static void refused(const char *text, size_t n, const char *sentence)
{
    agent_skill_text t;
    base_err err = {0};
    assert_int_equal(agent_skill_text_parse(text, n, &t, &err), BASE_E_FORMAT);
    if (!strstr(err.msg, sentence)) fail_msg("\"%s\" is not in \"%s\"", sentence, err.msg);
}

static void test_skills__front_matter_in_the_forms_that_are_written(void **state)
{
    check("Just text.\n", NULL, NULL, "Just text.\n");
    check("", NULL, NULL, "");
    check(SKILL("a-1", "One line: with a colon", "Do it.\n"), "a-1", "One line: with a colon", "Do it.\n");
    check("---\r\nname: a\r\n---\r\nb\r\n", "a", NULL, "b\r\n");
    check("\xef\xbb\xbf---\nname: a\n---\nb", "a", NULL, "b");
    check("---\ndescription: >-\n  two\n  lines\nname: a\n---\nb", "a", "two lines", "b");
    check("---\ndescription: |\n  two\n\n  lines\n---\n", NULL, "two lines", "");
    check("---\ndescription: plain\n  goes on\n---\n", NULL, "plain goes on", "");
    check("---\ndescription: \"a \\\"b\\\" \\n c\"\n---\n", NULL, "a \"b\"   c", "");
    check("---\ndescription: 'it''s'\n---\n", NULL, "it's", "");
    check(
        "---\n# said\n\nname: a\nmetadata:\n  name: other\n  tags:\n    - x\nallowed-tools:\n- read\n---\nb",
        "a", NULL, "b");
    check("---\n---\nb", NULL, NULL, "b");
}

static void test_skills__what_is_no_front_matter_is_named_with_its_line(void **state)
{
#define REFUSED(text, sentence) refused(text, sizeof(text) - 1, sentence)
    REFUSED("---\nname: a\n", "has no end");
    REFUSED("---\nname a\n---\n", "line 2: \"key: value\" is expected");
    REFUSED("---\n  name: a\n---\n", "line 2: \"key: value\" is expected");
    REFUSED("---\nname:a\n---\n", "line 2");
    REFUSED("---\nname: a\nname: b\n---\n", "line 3: a second name");
    REFUSED("---\nname: A B\n---\n", "line 2: a name has small letters");
    REFUSED("---\nname: ../x\n---\n", "line 2: a name has small letters");
    REFUSED("---\nname: -a\n---\n", "line 2: a name has small letters");
    REFUSED("---\nname:\n---\n", "line 2: name has no value");
    REFUSED("---\ndescription: \"open\n---\n", "line 2: the quotes of description do not close");
    REFUSED("---\ndescription: 'a' b\n---\n", "line 2: the quotes of description do not close");
    REFUSED("---\ndescription: \"a\"\n  b\n---\n", "line 3: the value of description ended with its quotes");
    REFUSED("---\ndescription: [a, b]\n---\n", "line 2: description is text");
    REFUSED(
        "---\ndescription: > a\n---\n", "line 2: behind description: > the text stands on the lines below");
    REFUSED("---\nname: a\0\n---\n", "zero byte");
    REFUSED("---\nname: \xff\n---\n", "not UTF-8");
#undef REFUSED
    base_buf text = {0};
    base_buf_puts(&text, "---\ndescription: ");
    for (int i = 0; i < 1025; i++) base_buf_putc(&text, 'x');
    base_buf_puts(&text, "\n---\n");
    refused(text.data, text.len, "line 2: description is longer than 1024 bytes");
    base_buf_free(&text);
}

static void test_skills__what_was_typed_stands_where_the_command_says(void **state)
{
    static const char *const cases[][3] = {
        {"Explain $ARGUMENTS, then $ARGUMENTS.", "a b", "Explain a b, then a b."},
        {"Explain.", "a", "Explain.\n\na"}, {"Explain.", "", "Explain."},
        {"$ARGUMENTS", "$ARGUMENTS", "$ARGUMENTS"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        base_buf out = {0};
        agent_skill_fill(cases[i][0], cases[i][1], &out);
        assert_string_equal(out.data, cases[i][2]);
        base_buf_free(&out);
    }
}

/* --- in a session --------------------------------------------------------------------------------------- */

static void test_skills__nothing_is_in_the_session_until_one_is_used(void **state)
{
    host h = new_host();
    put_skill("review", SKILL("review", "Read a change", "Look for the WALRUS first.\n"));
    agent_session *s = open_session(&h, "answer a\nanswer b\n", AGENT_MODE_ASK, NULL, true);
    submit(s, &h, "hello");
    assert_false(told(&h, "WALRUS"));
    assert_false(told(&h, "Read a change"));
    assert_int_equal(submit(s, &h, "/help"), 0);
    assert_true(told(&h, "/review [WORDS]\\tRead a change (this tree's skill)"));
    assert_false(told(&h, "WALRUS"));
    assert_int_equal(submit(s, &h, "/review the newest commit"), 0);
    assert_true(told(&h, "/review is this tree's own text, by whoever wrote the tree: "
                         ".agents/skills/review/SKILL.md, 27 bytes"));
    assert_true(told(&h, "Follow the skill review: the newest commit"));
    assert_sent(s, "Look for the WALRUS first.", true);
    if (!stage_chat) assert_true(told(&h, "WALRUS"));
    agent_session_close(s);
    free_host(&h);
}

static void test_skills__a_persons_command_is_the_request(void **state)
{
    host h = new_host();
    put_command("explain", "---\ndescription: Explain something\n---\nExplain $ARGUMENTS to a beginner.\n");
    put_skill("explain", SKILL("explain", "The tree's", "FOREIGN\n"));
    agent_session *s = open_session(&h, "answer a\n", AGENT_MODE_ASK, NULL, true);
    assert_int_equal(submit(s, &h, "/explain add"), 0);
    assert_true(told(&h, "Explain add to a beginner."));
    assert_false(told(&h, "FOREIGN"));
    assert_int_equal(submit(s, &h, "/help"), 0);
    assert_true(told(&h, "/explain [WORDS]\\tExplain something"));
    assert_true(told(&h, "a command of yours has the same name"));
    agent_session_close(s);
    free_host(&h);
}

static void test_skills__what_cannot_be_used_says_why(void **state)
{
    host h = new_host();
    char outside[140], link_[140];
    put_skill("broken", "---\nname: broken\n");
    put_skill("other", SKILL("another", "x", "y\n"));
    put_skill("bare", "No front matter.\n");
    put_skill("empty", SKILL("empty", "x", ""));
    put_skill("undo", SKILL("undo", "x", "y\n"));
    put_skill("tour", SKILL("tour", "x", "y\n"));
    put_skill("Shout", SKILL("Shout", "x", "y\n"));
    put_skill("two words", SKILL("two words", "x", "y\n"));
    put_command("Loud", "y\n");
    put_command("nothing-in-it", "\n");
    put_file(".agents/skills/README.md", "What these are.\n");
    /* A folder and a file that are links to what lies outside of the tree. */
    snprintf(outside, sizeof outside, "%s/outside", base_folder);
    assert_int_equal(mkdir(outside, 0700), 0);
    base_buf file = {0};
    base_buf_printf(&file, "%s/SKILL.md", outside);
    static const char secret[] = SKILL("away", "SECRET", "SECRET\n");
    assert_int_equal(base_fs_write(file.data, secret, sizeof secret - 1, 0600, NULL), 0);
    snprintf(link_, sizeof link_, "%s/.agents/skills/away", tree);
    assert_int_equal(symlink(outside, link_), 0);
    snprintf(link_, sizeof link_, "%s/.agents/skills/aside", tree);
    assert_int_equal(mkdir(link_, 0700), 0);
    snprintf(link_, sizeof link_, "%s/.agents/skills/aside/SKILL.md", tree);
    assert_int_equal(symlink(file.data, link_), 0);
    base_buf_free(&file);
    agent_session *s = open_session(&h, "answer a\n", AGENT_MODE_ASK, NULL, true);
    static const struct {
        const char *line, *sentence;
    } cases[] = {
        {"/broken", "has no end: a line --- is missing"},
        {"/other", "it calls itself \\\"another\\\", and its folder \\\"other\\\""},
        {"/bare", "its front matter has no name"},
        {"/empty", "there is nothing behind its front matter"},
        {"/Shout", "a name has small letters, digits and - between them"},
        {"/Loud", "a name has small letters, digits and - between them"},
        {"/nothing-in-it", "there is nothing behind its front matter"},
        {"/tour", "/tour is a command of kvist: give it another name"},
        {"/away", ".agents/skills/away/SKILL.md"},
        {"/aside", ".agents/skills/aside/SKILL.md"},
        {"/nothing", "there is no command /nothing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        base_buf_clear(&h.json);
        assert_int_not_equal(submit(s, &h, cases[i].line), 0);
        if (!told(&h, cases[i].sentence)) fail_msg("%s: %s", cases[i].line, h.json.data);
        assert_true(told(&h, "\"event\":\"error\""));
        assert_false(told(&h, "SECRET"));
    }
    base_buf_clear(&h.json);
    submit(s, &h, "/help");
    assert_true(told(&h, "cannot be used (.agents/skills/undo/SKILL.md): /undo is a command of kvist"));
    assert_true(told(&h, "cannot be used (.agents/skills/two words/SKILL.md): a name has small letters"));
    assert_true(
        told(&h, "cannot be used (.agents/skills/empty/SKILL.md): there is nothing behind its front matter"));
    assert_true(told(&h, "nothing-in-it.md): there is nothing behind its front matter"));
    assert_false(told(&h, ".agents/skills/README.md")); /* a file that is no skill */
    assert_false(told(&h, "SECRET"));
    agent_session_close(s);
    free_host(&h);
}

static void test_skills__one_that_leaves_no_room_is_refused(void **state)
{
    host h = new_host();
    base_buf text = {0};
    base_buf_puts(&text, SKILL("long", "x", ""));
    for (int i = 0; i < 12000; i++) base_buf_printf(&text, "step %d\n", i);
    put_skill("long", text.data);
    agent_session *s = open_session(&h, "answer a\n", AGENT_MODE_ASK, NULL, true);
    kv_stats now;
    agent_get_stats(agent_session_agent(s), &now);
    const int rc = submit(s, &h, "/long");
    assert_true(now.endless || (rc == BASE_E_LIMIT && told(&h, "half of what the session has left")));
    agent_session_close(s);
    base_buf_free(&text);
    base_buf_clear(&h.json);
    for (int i = 0; i < 30000; i++) base_buf_puts(&text, "step\n");
    put_skill("long", text.data);
    s = open_session(&h, "answer a\n", AGENT_MODE_ASK, NULL, true);
    assert_int_equal(submit(s, &h, "/long"), BASE_E_USAGE);
    assert_true(told(&h, "/long cannot be used"));
    agent_session_close(s);
    base_buf_free(&text);
    free_host(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_CASE(test_skills__front_matter_in_the_forms_that_are_written),
        TEST_CASE(test_skills__what_is_no_front_matter_is_named_with_its_line),
        TEST_CASE(test_skills__what_was_typed_stands_where_the_command_says),
        TEST_CASE(test_skills__nothing_is_in_the_session_until_one_is_used),
        TEST_CASE(test_skills__a_persons_command_is_the_request),
        TEST_CASE(test_skills__what_cannot_be_used_says_why),
        TEST_CASE(test_skills__one_that_leaves_no_room_is_refused),
    };
    return RUN_ON_BOTH(tests);
}
