/* What a command needs works behind each wall: a home, toolchains, its repository, what the person allowed to be read. */
#include "sandbox_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "tools/confine/shell.h"
#include "tools/result/result.h"

/* One command that must work behind each wall, and does without kvist; false: it does not here, and that was said. */
static bool works_behind(tree *t, const char *command, const char *said_when_good, bool needs_mounts)
{
    char *said = sandbox_run_bare(t, command);
    const tool_sandbox real = t->w->sandbox;
    const char *names[3];
    tool_sandbox walls[3];
    bool works = strstr(said, said_when_good) != NULL;
    if (!works) print_message("skipped: %s does not work without kvist: %.300s\n", command, said);
    free(said);
    for (int i = 0, n = works ? sandbox_walls(&real, walls, names) : 0; i < n; i++) {
        t->w->sandbox = walls[i];
        if (needs_mounts && !walls[i].has_mounts) continue;
        said = sandbox_run_confined(t, command);
        if (!strstr(said, said_when_good)) fail_msg("%s behind %s: %s", command, names[i], said);
        free(said);
    }
    t->w->sandbox = real;
    return works;
}

static bool works_everywhere(tree *t, const char *command, const char *said_when_good)
{
    return works_behind(t, command, said_when_good, false);
}

static void test_home__toolchains_are_read_and_layered(void **state)
{
    tree t;
    char real[400];
    tree_make(&t, true);
    tree_open(&t);
    assert_true(works_everywhere(&t, "sh -c 'cat ~/.cargo/config.toml'", "[build]"));
    assert_true(works_everywhere(&t, "sh -c 'cat ~/.m2/repository/artifact'", "jar"));
    assert_true(works_everywhere(&t, "sh -c 'ls -d ~/.rustup'", ".rustup"));
    /* What is written into a cache is there for the session's next command and never in the person's home. */
    snprintf(real, sizeof real, "%s/.cargo/registry", getenv("HOME"));
    if (t.w->sandbox.has_mounts) {
        char *said = sandbox_run_confined(
            &t, "mkdir -p ~/.cargo/registry && echo made > ~/.cargo/registry/x; cat ~/.cargo/registry/x");
        bool is_layered = strstr(said, "made") != NULL;
        if (!is_layered) print_message("skipped: no overlays here: %s\n", said);
        free(said);
        said = sandbox_run_confined(&t, "cat ~/.cargo/registry/x");
        if (is_layered) assert_contains(said, "made");
        free(said);
    }
    assert_false(base_fs_exists(real));
    tree_remove(&t);
}

static void test_home__is_writable_and_empty(void **state)
{
    tree t;
    char real[400];
    tree_make(&t, true);
    tree_open(&t);
    snprintf(real, sizeof real, "%s/new", getenv("HOME"));
    assert_true(works_everywhere(&t, "sh -c 'echo x > ~/new && cat ~/new && rm ~/new'", "x"));
    assert_false(base_fs_exists(real));
    assert_true(works_everywhere(&t, "git config user.name", "A Person"));
    char *said = sandbox_run_confined(&t, "git config github.token; git config credential.helper; echo end");
    assert_lacks(said, "t0ken");
    free(said);
    tree_remove(&t);
}

/* "!ls ~": the person's own words. */
static void test_home__is_the_persons_for_a_command_of_the_persons(void **state)
{
    static const char command[] =
        "cat ~/projects/other/secret.c ~/.bashrc; cat ~/.ssh/id_ed25519 ~/.aws/credentials ~/.netrc "
        "~/.cargo/credentials.toml ~/.local/share/kvist/log.db; echo planted >> ~/.bashrc; echo $HOME";
    tree t;
    tree_make(&t, true);
    tree_open(&t);
    const tool_sandbox real = t.w->sandbox;
    const char *names[3];
    tool_sandbox walls[3];
    char bashrc[400];
    base_buf before = {0};
    snprintf(bashrc, sizeof bashrc, "%s/.bashrc", getenv("HOME"));
    assert_int_equal(base_fs_read(bashrc, 1000, &before, NULL), 0);
    for (int i = 0, n = sandbox_walls(&real, walls, names); i < n; i++) {
        t.w->sandbox = walls[i];
        for (int is_persons = 0; is_persons < 2; is_persons++) {
            base_buf text = {0}, arguments = {0};
            base_json_doc *doc = NULL;
            base_err err = {0};
            tool_result r = {0};
            base_buf_puts(&arguments, "{\"command\":");
            tool__quote(&arguments, command);
            base_buf_puts(&arguments, "}");
            assert_int_equal(base_json_parse(arguments.data, arguments.len, &doc, &err), 0);
            const tool_call call = {
                .name = "shell", .arguments = base_json_root(doc), .is_persons = is_persons};
            assert_int_equal(tool_find("shell")->run(t.w, &call, &t.limits, &(tool_preview){0}, &r, &err), 0);
            if (!strstr(r.text.data, is_persons ? " mine\n" : "No such file") &&
                !strstr(r.text.data, is_persons ? " mine\n" : "Permission denied"))
                fail_msg("%s, %s: %s", names[i], is_persons ? "the person's" : "the model's", r.text.data);
            const char *first = strstr(r.text.data, "SECRET");
            if (first && (!is_persons || strstr(first + 1, "SECRET")))
                fail_msg("%s: a secret: %s", names[i], r.text.data);
            assert_int_equal(base_fs_read(bashrc, 1000, &text, &err), 0);
            assert_string_equal(text.data, before.data);
            base_buf_free(&text);
            base_buf_free(&arguments);
            tool_result_free(&r);
            base_json_free(doc);
        }
    }
    base_buf_free(&before);
    tree_remove(&t);
}

static void test_home__the_tree_may_lie_in_it(void **state)
{
    tree t, in_home;
    base_err err = {0};
    tree_make(&t, true);
    in_home = t;
    snprintf(in_home.dir, sizeof in_home.dir, "%s/projects/mine", getenv("HOME"));
    assert_int_equal(base_fs_mkdirs(in_home.dir, &err), 0);
    tree_put(&in_home, "file", "inside\n");
    tree_open(&in_home);
    assert_true(works_everywhere(&in_home, "cat file", "inside"));
    assert_true(works_everywhere(&in_home, "sh -c 'pwd; echo y > made; cat made'", "y\n"));
    char *said = sandbox_run_confined(&in_home, "cat ../other/secret.c ~/.ssh/id_ed25519; ls ..");
    assert_lacks(said, "SECRET");
    free(said);
    tool_workspace_close(in_home.w);
    t.w = NULL;
    base_fs_remove(in_home.dir, NULL);
    tree_remove(&t);
}

/* There the names of secrets are all that guards them; without namespaces they can still be written over. */
static void test_home__as_the_tree_it_hides_keys(void **state)
{
    tree t, home;
    tree_make(&t, false);
    home = t;
    snprintf(home.dir, sizeof home.dir, "%s", getenv("HOME"));
    tree_open(&home);
    const tool_sandbox real = home.w->sandbox;
    const char *names[3];
    tool_sandbox walls[3];
    assert_true(works_everywhere(&home, "cat .bashrc .cargo/config.toml", " mine\n[build]"));
    char *said = sandbox_run_bare(&home, "cat .ssh/id_ed25519");
    assert_contains(said, "SECRET");
    free(said);
    for (int i = 0, n = sandbox_walls(&real, walls, names); i < n; i++) {
        home.w->sandbox = walls[i];
        said = sandbox_run_confined(&home,
            "cat .ssh/id_ed25519 .aws/credentials .npmrc .netrc .cargo/credentials.toml "
            ".cargo/link .m2/settings.xml .local/share/kvist/log.db; mv .ssh s; cat s/id_ed25519");
        if (strstr(said, "SECRET")) fail_msg("behind %s: %s", names[i], said);
        free(said);
        said = sandbox_run_bare(&home, "sh -c 'test -d s && mv s .ssh; ls .ssh'"); /* as it was */
        assert_contains(said, "id_ed25519");
        free(said);
    }
    home.w->sandbox = real;
    tool_workspace_close(home.w);
    tree_remove(&t);
}

/* A worktree's repository lies elsewhere; a ".git" file that names somebody else's repository opens nothing. */
static void test_git__a_worktrees_repository_is_readable(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "a.c", "int a;\n");
    tree_commit(&t, "first");
    tree work = t;
    snprintf(work.dir, sizeof work.dir, "%s/work", t.base);
    char *said = sandbox_run_bare(&t, "git worktree add -q ../work -b other");
    print_message("%s", said);
    free(said);
    tree_open(&work);
    assert_true(works_everywhere(&work, "git log --format=%s", "first"));
    tool_workspace_close(work.w);
    char line[400];
    tree liar = t;
    snprintf(liar.dir, sizeof liar.dir, "%s/liar", t.base);
    mkdir(liar.dir, 0755);
    snprintf(line, sizeof line, "gitdir: %s/.git\n", t.dir);
    tree_put(&liar, ".git", line);
    liar.w = NULL;
    tree_open(&liar);
    said = sandbox_run_bare(&liar, "git log --format=%s");
    assert_contains(said, "first");
    free(said);
    said = sandbox_run_confined(&liar, "git log --format=%s");
    assert_lacks(said, "first");
    free(said);
    tool_workspace_close(liar.w);
    tree_remove(&t);
}

static void test_reading__what_is_allowed_is_read_and_not_written(void **state)
{
    tree t;
    tree_make(&t, true);
    tree_put(&t, "../data/table", "rows\n");
    char data[300], command[400];
    snprintf(data, sizeof data, "%s/data", t.base);
    const char *const allowed[] = {data, NULL};
    base_err err = {0};
    tool_workspace_options options = {.dir = t.dir, .store = t.store, .allow_read = allowed};
    if (tool_workspace_open(&t.w, &options, &err)) fail_msg("%s", err.msg);
    snprintf(command, sizeof command, "cat %s/table", data);
    assert_true(works_everywhere(&t, command, "rows"));
    snprintf(command, sizeof command, "echo x >> %s/table", data);
    char *said = sandbox_run_confined(&t, command);
    free(said);
    said = tree_get(&t, "../data/table");
    assert_string_equal(said, "rows\n");
    free(said);
    tree_remove(&t);
}

/* The test runners of four languages, each on a small tree, with the toolchains of whoever runs this. */
static void test_toolchains__run_their_tests(void **state)
{
    static const struct {
        const char *command, *good, *files[3][2];
        bool needs_mounts;
    } trees[] = {
        {"python3 -m pytest -q -p no:cacheprovider", "1 passed",
            {{"test_small.py", "def test_adds():\n    assert 1 + 1 == 2\n"}}},
        /* Semaphores are files of /dev/shm: without a mount namespace that folder is the machine's, and nothing of it is given. */
        {"python3 pool.py", "[2]",
            {{"pool.py",
                "from multiprocessing import Pool\n\n\ndef double(x):\n    return 2 * x\n\n\n"
                "if __name__ == '__main__':\n    with Pool(2) as p:\n        print(p.map(double, [1]))\n"}},
            .needs_mounts = true},
        {"cargo test --offline", "1 passed",
            {{"Cargo.toml", "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"},
                {"src/lib.rs", "#[test]\nfn adds() {\n    assert_eq!(1 + 1, 2);\n}\n"}}},
        /* Without vet, which reads the facts of the whole standard library anew behind each wall. */
        {"go test -vet=off ./...", "ok",
            {{"go.mod", "module small\n\ngo 1.19\n"}, {"small_test.go", "package small\n\n"
                                                                        "import \"testing\"\n\n"
                                                                        "func TestAdds(t *testing.T) {\n"
                                                                        "\tif 1+1 != 2 {\n"
                                                                        "\t\tt.Fatal()\n"
                                                                        "\t}\n"
                                                                        "}\n"}}},
        {"npm test", "pass 1",
            {{"package.json",
                 "{\"name\":\"small\",\"version\":\"1.0.0\",\"scripts\":{\"test\":\"node --test\"}}\n"},
                {"small.test.js", "const test = require('node:test'), assert = require('node:assert');\n"
                                  "test('adds', () => assert.equal(1 + 1, 2));\n"}}},
    };
    char *fake = strdup(getenv("HOME"));
    const char *home = sandbox_persons_home();
    if (!access(home, R_OK | W_OK | X_OK)) setenv("HOME", home, 1); /* nobody has none */
    for (size_t i = 0; i < sizeof trees / sizeof *trees; i++) {
        tree t;
        tree_make(&t, false);
        for (int f = 0; f < 3 && trees[i].files[f][0]; f++)
            tree_put(&t, trees[i].files[f][0], trees[i].files[f][1]);
        tree_open(&t);
        if (works_behind(&t, trees[i].command, trees[i].good, trees[i].needs_mounts))
            print_message("%s works\n", trees[i].command);
        tree_remove(&t);
    }
    setenv("HOME", fake, 1);
    free(fake);
}

static int run(const char *who)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_home__toolchains_are_read_and_layered),
        cmocka_unit_test(test_home__is_writable_and_empty),
        cmocka_unit_test(test_home__is_the_persons_for_a_command_of_the_persons),
        cmocka_unit_test(test_home__the_tree_may_lie_in_it),
        cmocka_unit_test(test_home__as_the_tree_it_hides_keys),
        cmocka_unit_test(test_git__a_worktrees_repository_is_readable),
        cmocka_unit_test(test_reading__what_is_allowed_is_read_and_not_written),
        cmocka_unit_test(test_toolchains__run_their_tests),
    };
    return cmocka_run_group_tests_name(who, tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    return sandbox_main(argc, argv, run);
}
