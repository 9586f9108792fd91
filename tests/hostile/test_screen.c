/*
 * What a hostile tree or model would like a person not to see. Each case is an attack that worked once; its
 * control shows that the bytes are there, and what they do where nothing is done about them.
 */
#include <errno.h>
#include <pty.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/door.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/show.h"
#include "base/utf8.h"
#include "cmd/options.h"
#include "tools/edit/change.h"
#include "tools/result/result.h"
#include "tools/file/safe_path.h"
#include "tui/dispatch.h"
#include "tui/frame.h"
#include "tui/linear_text.h"
#include "tui/record.h"

/* --- a screen with a question on it --------------------------------------------------------------------- */

typedef struct stage {
    tui_ui ui;
    tui_grid grid;
    int width, height;
    int decided; /* answers that reached the agent */
    int allowed; /* of them those that are no no */
    base_buf text;
} stage;

static void on_decide(void *user, agent_answer answer, const char *text)
{
    stage *s = user;
    s->decided++;
    s->allowed += answer != AGENT_NO;
}

/* The screen as text, in s->text. */
static const char *draw(stage *s)
{
    tui_grid_resize(&s->grid, s->width, s->height);
    tui_ui_draw(&s->ui, &s->grid);
    tui_ui_painted(&s->ui);
    base_buf_clear(&s->text);
    tui_grid_text(&s->grid, &s->text);
    return s->text.data;
}

static void stage_open(stage *s, int width, int height)
{
    *s = (stage){.width = width, .height = height};
    tui_host host = {.user = s, .decide = on_decide};
    tui_ui_init(&s->ui, &host, true, false);
    tui_ui_event(&s->ui, &(agent_event){.type = AGENT_EVENT_user, .user = {.turn = 1, .text = "go"}});
}

static void stage_close(stage *s)
{
    tui_ui_free(&s->ui);
    tui_grid_free(&s->grid);
    base_buf_free(&s->text);
}

static void ask(stage *s, const char *name, const char *headline, const char *detail, const char *power)
{
    tui_ui_event(&s->ui, &(agent_event){.type = AGENT_EVENT_tool_call,
                             .tool_call = {.turn = 1, .name = name, .headline = headline}});
    tui_ui_event(
        &s->ui, &(agent_event){.type = AGENT_EVENT_approval_request,
                    .approval_request = {
                        .turn = 1, .name = name, .headline = headline, .detail = detail, .power = power}});
}

static void ask_command(stage *s, const char *command)
{
    base_buf headline = {0};
    base_buf_printf(&headline, "$ %s", command);
    ask(s, "shell", headline.data, command, "runs");
    base_buf_free(&headline);
}

static void assert_has(const char *screen, const char *part)
{
    if (strstr(screen, part)) return;
    print_error("\"%s\" is not in:\n%s", part, screen);
    fail();
}

/* --- 3: the model --------------------------------------------------------------------------------------- */

static void remove_tree(const char *path)
{
    base_buf command = {0};
    base_buf_printf(&command, "rm -rf -- %s", path);
    assert_int_equal(system(command.data), 0);
    base_buf_free(&command);
}

static void test_names__a_folder_called_default_is_no_model(void **state)
{
    char tree[] = "/tmp/kvist-hostile-XXXXXX", data[] = "/tmp/kvist-hostile-XXXXXX", here[4096];
    static const char *const planted[] = {
        "default", "small", "smollm2-135m", "SmolLM2-135M-Instruct.Q4_1.gguf"};
    assert_non_null(mkdtemp(tree));
    assert_non_null(mkdtemp(data));
    assert_non_null(getcwd(here, sizeof here));
    setenv("KVIST_HOME", data, 1);
    assert_int_equal(chdir(tree), 0);
    for (size_t i = 0; i < sizeof planted / sizeof *planted; i++) {
        assert_int_equal(i ? base_fs_write(planted[i], "evil", 4, 0644, NULL) : mkdir(planted[i], 0755), 0);
        assert_true(base_fs_exists(planted[i])); /* control: a look into this folder finds it */
        common_options o = COMMON_OPTIONS_DEFAULTS;
        char *path = NULL;
        base_err err = {0};
        for (int from_environment = 0; from_environment < 2; from_environment++) {
            o.model = from_environment ? NULL : planted[i];
            setenv("KVIST_MODEL", planted[i], 1);
            assert_int_equal(options_model_path(&o, &path, &err), BASE_E_ENGINE);
            assert_has(err.msg, data);
        }
        unsetenv("KVIST_MODEL");
        if (i == 0) { /* said by nobody, and still the default's name */
            o.model = NULL;
            assert_int_equal(options_model_path(&o, &path, &err), BASE_E_ENGINE);
        }
    }
    /* Who means the file can say so. */
    common_options o = COMMON_OPTIONS_DEFAULTS;
    char *path = NULL;
    o.model = "./default";
    assert_int_equal(options_model_path(&o, &path, NULL), BASE_OK);
    assert_string_equal(path, "./default");
    free(path);
    assert_int_equal(base_fs_write("own.gguf", "x", 1, 0644, NULL), 0);
    o.model = "own.gguf";
    assert_int_equal(options_model_path(&o, &path, NULL), BASE_OK);
    free(path);
    setenv("KVIST_MODEL", "own.gguf", 1); /* not typed for this folder */
    o.model = NULL;
    assert_int_equal(options_model_path(&o, &path, NULL), BASE_E_ENGINE);
    unsetenv("KVIST_MODEL");
    assert_int_equal(chdir(here), 0);
    remove_tree(tree);
    remove_tree(data);
}

/* --- 4: hidden lines ------------------------------------------------------------------------------------ */

static void test_approval__a_removed_comment_of_sql_is_shown(void **state)
{
    static const char diff[] =
        "--- a/q.sql\n+++ b/q.sql\n@@ -1,3 +1,2 @@\n--- only for admins\n-+++ check\n select 1;\n"
        "+++ everybody\n";
    assert_non_null(strstr(diff, "\n--- only")); /* control: it begins as a file's header does */
    stage s;
    stage_open(&s, 80, 24);
    ask(&s, "edit", "edit q.sql (+1 -2)", diff, "writes");
    assert_has(draw(&s), "--- only for admins");
    assert_has(s.text.data, "-+++ check");
    assert_has(s.text.data, "+++ everybody");
    assert_null(strstr(s.text.data, "a/q.sql")); /* the real header is named above */
    tui_ui_key(&s.ui, 'd');
    assert_has(draw(&s), "\xe2\x94\x82 --- only for admins"); /* in the popup too */
    assert_has(s.text.data, "\xe2\x94\x82 +++ everybody");
    stage_close(&s);
}

static void test_approval__a_command_is_never_a_diff(void **state)
{
    static const char command[] =
        "cat <<'X' >/dev/null\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-x\n+y\nX\n--- ;rm -rf src";
    stage s;
    stage_open(&s, 80, 24);
    assert_non_null(strstr(command, "\n@@ ")); /* control: what made it a diff */
    ask_command(&s, command);
    for (int popup = 0; popup < 2; popup++) {
        draw(&s);
        assert_has(s.text.data, "--- a/x<LF>");
        assert_has(s.text.data, "+++ b/x<LF>");
        assert_has(s.text.data, "--- ;rm -rf src");
        tui_ui_key(&s.ui, 'd');
    }
    assert_int_equal(s.ui.state.items[1].diff.len, 0);
    stage_close(&s);
}

static void test_approval__an_undo_names_its_file(void **state)
{
    stage s;
    stage_open(&s, 80, 24);
    ask(&s, "undo", "undo the last changes of files", "--- a/.bashrc\n+++ b/.bashrc\n@@ -1 +1 @@\n-a\n+b\n",
        "writes");
    assert_has(draw(&s), "--- a/.bashrc");
    stage_close(&s);
}

static void test_approval__a_hunk_that_lies_about_its_lines_hides_none(void **state)
{
    static const char *const diffs[] = {
        "--- a/x\n+++ b/x\n@@ -1,99 +1,99 @@\n-one\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-two\n",
        "@@ -0,0 +0,0 @@\n--- kept\n+++ kept too\n", "@@ -1 +1 @@\n--- a\n+++ b\n--- c\n+++ d\n--- e\n",
        "--- a/x\n", "@@ -99999999999999999999 +1 @@\n+x\n--- z\n"};
    for (size_t i = 0; i < sizeof diffs / sizeof *diffs; i++) {
        stage s;
        stage_open(&s, 80, 24);
        ask(&s, "edit", "edit", diffs[i], "writes");
        draw(&s);
        for (const char *p = diffs[i]; *p;) {
            char line[64] = "";
            size_t n = strcspn(p, "\n");
            memcpy(line, p, n);
            assert_has(s.text.data, line);
            p += n + 1;
        }
        stage_close(&s);
    }
}

static void test_approval__a_nul_cuts_no_diff_off(void **state)
{
    static const char before[] = "a\n", after[] = "a\n\0\nrm -rf src\n";
    base_buf old_text = {0}, new_text = {0}, diff = {0};
    base_buf_add(&old_text, before, sizeof before - 1);
    base_buf_add(&new_text, after, sizeof after - 1);
    assert_true(strlen(after) < sizeof after - 1 && tool__is_binary(after, sizeof after - 1)); /* control */
    size_t added, removed;
    git_libgit2_init(); /* for good: its shutdown leaks (docs/pitfalls.md) */
    tool__diff(&diff, "x", &old_text, &new_text, &added, &removed);
    assert_int_equal(added, 2);
    stage s;
    stage_open(&s, 80, 24);
    ask(&s, "edit", "edit x", diff.data, "writes");
    assert_has(draw(&s), "+<0xC0><0x80>");
    assert_has(s.text.data, "+rm -rf src");
    stage_close(&s);
    base_buf_free(&old_text);
    base_buf_free(&new_text);
    base_buf_free(&diff);
}

/* --- 5: bytes that are not seen ------------------------------------------------------------------------- */

static void test_approval__a_line_end_is_no_blank(void **state)
{
    static const char command[] = "true # list files:\nrm -rf src";
    stage s;
    stage_open(&s, 80, 24);
    ask_command(&s, command);
    base_buf blanked = {0}; /* control: one comment, as it was */
    base_utf8_sanitise(&blanked, command, strlen(command), false);
    assert_string_equal(blanked.data, "true # list files: rm -rf src");
    base_buf_free(&blanked);
    assert_has(draw(&s), "allow? $ true # list files:<LF>\n       rm -rf src\n");
    assert_null(strstr(s.text.data, "files: rm"));
    stage_close(&s);
    tui_linear_text t = {0};
    base_buf out = {0};
    tui_linear_event(&(agent_event){.type = AGENT_EVENT_approval_request,
                         .approval_request = {.headline = command, .detail = command, .power = "runs"}},
        &t, &out);
    assert_has(out.data, "question: true # list files:<LF>\n  rm -rf src\n");
    base_buf_free(&out);
}

static void test_approval__floods_tags_and_invisible_letters_are_seen(void **state)
{
    static const struct {
        const char *bytes, *shown;
    } cases[] = {{"a\xe2\x80\x8b", "a<U+200B>"}, {"\xf3\xa0\x81\xb2\xf3\xa0\x81\xad", "<U+E0072><U+E006D>"},
        {"\xe2\x80\xaegpj.", "<U+202E>gpj."}, {"\033]0;title\a", "<ESC>]0;title<U+0007>"},
        {"\xc2\x9b\x33J", "<U+009B>3J"}, {"\xc0\xae", "<0xC0><0xAE>"}, {"\033P+q\033\\", "<ESC>P+q<ESC>\\"},
        {"\xe3\x85\xa4=1", "<U+3164>=1"}, {"x\rls", "x<CR>ls"}, {"x\b\b", "x<U+0008><U+0008>"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stage s;
        stage_open(&s, 80, 24);
        ask_command(&s, cases[i].bytes);
        draw(&s);
        assert_has(strstr(s.text.data, "allow?"), cases[i].shown);
        tui_ui_key(&s.ui, 'd');
        assert_has(draw(&s), cases[i].shown);
        stage_close(&s);
        stage_open(&s, 80, 24);
        base_buf diff = {0};
        base_buf_printf(&diff, "--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+%s\n", cases[i].bytes);
        ask(&s, "edit", "edit x", diff.data, "writes");
        assert_has(draw(&s), cases[i].shown);
        stage_close(&s);
        base_buf_free(&diff);
    }
    base_buf flood = {0};
    base_buf_puts(&flood, "ls e");
    for (int i = 0; i < 300; i++) base_buf_puts(&flood, "\xcc\x81");
    base_buf_puts(&flood, "; rm x");
    int width;
    assert_true(
        tui_next_glyph(flood.data + 3, flood.len - 3, &width) > 600 && width == 1); /* control: one cell */
    stage s;
    stage_open(&s, 200, 60);
    ask_command(&s, flood.data);
    tui_ui_key(&s.ui, 'd');
    assert_has(draw(&s), "e<U+0301><U+0301>");
    stage_close(&s);
    base_buf_free(&flood);
}

/*
 * Everything of a long command is in the question and its popup, whatever its bytes: read off the screen,
 * they come back.
 */
static void test_approval__the_screen_gives_the_bytes_back(void **state)
{
    uint64_t x = 88172645463325252u;
    for (int round = 0; round < 60; round++) {
        base_buf command = {0}, seen = {0}, back = {0};
        base_buf_puts(&command, "x");
        for (int i = 0; i < 40; i++) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            base_buf_putc(&command, (char)(x % 255 + 1));
        }
        stage s;
        stage_open(&s, 60, 50);
        ask_command(&s, command.data);
        const char *at = strstr(draw(&s), "allow? $ ") + strlen("allow? $ ");
        for (const char *end; strncmp(at, "y once", 6) != 0;
             at = end + 1) { /* a line, without what stands in front of it */
            end = strchr(at, '\n');
            base_buf_add(&seen, at, (size_t)(end - at));
            if (!strncmp(end + 1, "     > ", 7) || !strncmp(end + 1, "       ", 7)) end += 7;
        }
        base_show_parse(&back, seen.data, seen.len);
        assert_int_equal(back.len, command.len);
        assert_memory_equal(back.data, command.data, command.len);
        stage_close(&s);
        base_buf_free(&command);
        base_buf_free(&seen);
        base_buf_free(&back);
    }
}

static void test_approval__no_yes_before_its_end_was_on_the_screen(void **state)
{
    base_buf command = {0};
    for (int i = 0; i < 60; i++) base_buf_printf(&command, "echo %d\n", i);
    base_buf_puts(&command, "rm -rf src");
    stage s;
    stage_open(&s, 80, 24);
    ask_command(&s, command.data);
    assert_null(strstr(strstr(draw(&s), "allow?"), "rm -rf src")); /* control: its end is not there */
    assert_has(s.text.data, "more lines of it");
    tui_ui_key(&s.ui, 'y');
    tui_ui_key(&s.ui, 'a');
    tui_ui_key(&s.ui, 'e');
    assert_has(draw(&s), "y works at its end");
    tui_ui_key(&s.ui, 'd');
    assert_has(draw(&s), "more below");
    tui_ui_key(&s.ui, 'y');
    tui_ui_key(&s.ui, ' ');
    draw(&s);
    tui_ui_key(&s.ui, 'y');
    assert_int_equal(s.decided, 0);
    assert_has(draw(&s), "it goes on below");
    tui_ui_key(&s.ui, 'G');
    assert_has(draw(&s), "rm -rf src");
    assert_null(strstr(s.text.data, "more below"));
    tui_ui_key(&s.ui, 'y');
    assert_int_equal(s.decided, 1);
    /* The next question starts again. */
    ask_command(&s, command.data);
    draw(&s);
    tui_ui_key(&s.ui, 'y');
    assert_int_equal(s.decided, 1);
    stage_close(&s);
    base_buf_free(&command);
}

static void test_approval__a_long_diff_is_read_first(void **state)
{
    base_buf diff = {0};
    base_buf_puts(&diff, "--- a/x\n+++ b/x\n@@ -0,0 +1,40 @@\n");
    for (int i = 0; i < 40; i++) base_buf_printf(&diff, "+line %d\n", i);
    for (int height = 12; height <= 60; height += 24) {
        stage s;
        stage_open(&s, 80, height);
        ask(&s, "edit", "edit x (+40 -0)", diff.data, "writes");
        draw(&s);
        tui_ui_key(&s.ui, 'y');
        assert_int_equal(s.decided, 0);
        tui_ui_key(&s.ui, 'd');
        draw(&s);
        tui_ui_key(&s.ui, 'G');
        assert_has(draw(&s), "+line 39");
        tui_ui_key(&s.ui, 'y');
        assert_int_equal(s.decided, 1);
        stage_close(&s);
    }
    base_buf_free(&diff);
}

static void test_approval__keys_typed_before_it_do_not_answer_it(void **state)
{
    stage s;
    stage_open(&s, 80, 24);
    s.ui.now_ms = 1000;
    ask_command(&s, "make");
    tui_ui_key(&s.ui, 'y'); /* read behind the event, before any frame showed it */
    assert_int_equal(s.decided, 0);
    s.ui.now_ms = 9000; /* a slow frame: what was typed meanwhile comes now */
    draw(&s);
    s.ui.now_ms = 9100;
    tui_ui_key(&s.ui, 'y');
    assert_int_equal(s.decided, 0);
    s.ui.now_ms = 9500; /* control: it is not deaf */
    tui_ui_key(&s.ui, 'y');
    assert_int_equal(s.decided, 1);
    stage_close(&s);
}

/* What a terminal answers when something asks it comes among the keys. It begins with Esc, which is a no. */
static void test_approval__an_answer_of_the_terminal_is_no_yes(void **state)
{
    static const char *const answers[] = {"\033]52;c;y\a", "\033]11;rgb:yyyy/y\033\\", "\033P1+r79=y\033\\",
        "\033[24;80Ry", "\033[?62;22cy", "\033_Gi=1;y\033\\", "\033[Iy", "\033^y\033\\", "\033Xy\033\\",
        "\033]0;A a y\a"};
    for (size_t i = 0; i <= sizeof answers / sizeof *answers; i++) {
        const bool is_control = i == sizeof answers / sizeof *answers;
        stage s;
        stage_open(&s, 80, 24);
        s.ui.now_ms = 1000;
        ask_command(&s, "make");
        draw(&s);
        s.ui.now_ms = 9000;
        for (const char *p = is_control ? "y" : answers[i]; *p; p++) {
            tui_ui_key(&s.ui, (unsigned char)*p);
            draw(&s);
            s.ui.now_ms += 1000;
        }
        assert_int_equal(s.allowed, is_control);
        stage_close(&s);
    }
}

static void test_approval__a_window_too_small_to_read_takes_no_yes(void **state)
{
    stage s;
    stage_open(&s, 20, 5);
    ask_command(&s, "make");
    assert_null(strstr(draw(&s), "make")); /* control */
    tui_ui_key(&s.ui, 'y');
    assert_int_equal(s.decided, 0);
    s.width = 80, s.height = 24;
    draw(&s);
    tui_ui_key(&s.ui, 'y');
    assert_int_equal(s.decided, 1);
    /* Every size, in the middle of a question. */
    ask_command(&s, "printf '\xe6\x97\xa5\xe6\x9c\xac%s' a\nb\nc\nd");
    tui_ui_key(&s.ui, 'd');
    for (s.width = 1; s.width < 130; s.width += 3)
        for (s.height = 1; s.height < 40; s.height += 2) draw(&s);
    stage_close(&s);
}

/* --- 6: the door to the terminal ------------------------------------------------------------------------ */

/*
 * What arrives at a terminal, or in a pipe, when a child prints `bytes` on both streams, with or without the
 * door.
 */
static void print_through(bool is_terminal, bool has_door, const char *bytes, base_buf *out)
{
    int ends[2];
    if (is_terminal)
        assert_int_equal(openpty(&ends[0], &ends[1], NULL, NULL, NULL), 0);
    else
        assert_int_equal(pipe(ends), 0);
    if (is_terminal) {
        struct termios modes;
        tcgetattr(ends[1], &modes);
        cfmakeraw(&modes);
        tcsetattr(ends[1], TCSANOW, &modes);
    }
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        if (has_door) base_door_open();
        printf("%s\n", bytes);
        puts(bytes);
        fwrite(bytes, 1, strlen(bytes), stdout);
        for (const char *p = bytes; *p; p++) putchar(*p); /* a character in pieces */
        fflush(stdout);
        fprintf(stderr, "kvist: %s\n", bytes);
        errno = ENOENT;
        perror(bytes);
        fputs("END", stderr);
        exit(0);
    }
    while (!memmem(out->data ? out->data : "", out->len, "END", 3)) {
        char some[1024];
        ssize_t n = read(ends[0], some, sizeof some);
        assert_true(n > 0);
        base_buf_add(out, some, (size_t)n);
    }
    close(ends[0]);
    close(ends[1]);
    waitpid(child, NULL, 0);
}

static void test_door__no_escape_reaches_a_terminal(void **state)
{
    static const char *const attacks[] = {"\033[2J", "\033]0;title\a", "\033]52;c;ZXZpbA==\a",
        "\033P+q\033\\", "\xc2\x9b\x33J", "\x9b\x33J", "\rkvist: all is well", "\b\b\b", "\xe2\x80\xaegpj",
        "\xf3\xa0\x81\xb2", "\x0e", "\x7f", "\xc0\x9b", "\xe0\x80\x9b[2J", "\xf0\x80\x80\x9b[2J",
        "\033\xe2\x80"};
    for (size_t i = 0; i < sizeof attacks / sizeof *attacks; i++) {
        base_buf bare = {0}, clean = {0}, piped = {0};
        print_through(true, false, attacks[i], &bare);
        print_through(true, true, attacks[i], &clean);
        print_through(false, true, attacks[i], &piped);
        assert_non_null(memmem(bare.data, bare.len, attacks[i], strlen(attacks[i]))); /* control */
        assert_null(memmem(clean.data, clean.len, attacks[i], strlen(attacks[i])));
        assert_true(base_utf8_valid(clean.data, clean.len));
        for (size_t k = 0; k < clean.len;) {
            uint32_t cp;
            k += base_utf8_decode(clean.data + k, clean.len - k, &cp);
            assert_true(cp == '\n' || (cp >= 0x20 && cp != 0x7f && !(cp >= 0x80 && cp < 0xa0)));
        }
        assert_non_null(
            memmem(piped.data, piped.len, attacks[i], strlen(attacks[i]))); /* scripts get the bytes */
        base_buf_free(&bare);
        base_buf_free(&clean);
        base_buf_free(&piped);
    }
    base_buf whole = {0}; /* what is harmless is untouched, in pieces too */
    print_through(true, true, "\tna\xc3\xafve \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x98\x80", &whole);
    assert_non_null(
        strstr(whole.data, "\tna\xc3\xafve \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x98\x80\tna\xc3\xafve "
                           "\xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x98\x80"));
    base_buf_free(&whole);
}

/* --- 17: a word of the shell ---------------------------------------------------------------------------- */

static void assert_echoed(const char *quoted, const char *expected, bool same)
{
    base_buf command = {0}, got = {0};
    base_buf_printf(&command, "printf %%s %s", quoted);
    FILE *shell = popen(command.data, "r");
    char some[512];
    for (size_t n; (n = fread(some, 1, sizeof some, shell)) > 0;) base_buf_add(&got, some, n);
    pclose(shell);
    assert_int_equal(got.len == strlen(expected) && !memcmp(got.data, expected, got.len), same);
    base_buf_free(&command);
    base_buf_free(&got);
}

static void test_shell_word__a_quote_in_a_name_ends_nothing(void **state)
{
    static const char *const names[] = {"a'; echo pwned; '.txt", "'", "''", "a'b'c", "$(echo pwned)",
        "`echo pwned`", "a\\'b", "-n", " a \n b ", "*", "\xff\xc0\x80", "\\", "\"", "!x", "~"};
    assert_echoed(
        "'a'; echo pwned; '.txt' 2>/dev/null", "a'; echo pwned; '.txt", false); /* control: as it was */
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        base_buf quoted = {0};
        tool__quote_shell(&quoted, names[i]);
        assert_echoed(quoted.data, names[i], true);
        base_buf_free(&quoted);
    }
    uint64_t x = 88172645463325252u;
    for (int round = 0; round < 30; round++) {
        char name[200] = "";
        for (int i = 0; i < 199; i++) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            name[i] = x & 256 ? '\'' : (char)(x % 255 + 1);
        }
        base_buf quoted = {0};
        tool__quote_shell(&quoted, name);
        assert_echoed(quoted.data, name, true);
        base_buf_free(&quoted);
    }
}

/* --- 18: JSON ------------------------------------------------------------------------------------------- */

static void test_json__what_a_terminal_would_obey_is_escaped(void **state)
{
    static const char text[] = "a\xc2\x9b\x33J\xe2\x80\xaeg\xe2\x80\xa8\xf3\xa0\x81\xb2\x7f\xe2\x80\x8b "
                               "\xe6\x97\xa5 \xf0\x9f\x98\x80";
    base_buf piped = {0}, json = {0}, raw = {0};
    print_through(true, false, text, &piped);
    assert_non_null(
        strstr(piped.data, "\xc2\x9b\x33J")); /* control: a terminal gets such bytes as they are */
    base_buf_free(&piped);
    base_json_put_str(&json, text, strlen(text));
    assert_string_equal(
        json.data, "\"a\\u009b3J\\u202eg\\u2028\\udb40\\udc72\\u007f\\u200b \xe6\x97\xa5 \xf0\x9f\x98\x80\"");
    base_json_doc *doc = NULL;
    assert_int_equal(base_json_parse(json.data, json.len, &doc, NULL), 0);
    assert_string_equal(base_json_root(doc)->string, text); /* the same bytes */
    base_json_free(doc);
    /* And what a model wrote as JSON itself. */
    base_buf_printf(&raw, "{\"path\":\n\t\"%s\"}", text);
    base_buf event = {0};
    agent_event_write(
        &(agent_event){.type = AGENT_EVENT_tool_call, .tool_call = {.name = "read", .arguments = raw.data}},
        &event);
    for (size_t i = 0; i < event.len;) {
        uint32_t cp;
        i += base_utf8_decode(event.data + i, event.len - i, &cp);
        assert_false(base_utf8_is_harmful(cp));
    }
    agent_event back;
    agent_event_doc *held = NULL;
    assert_int_equal(agent_event_read(event.data, event.len, &back, &held, NULL), 0);
    assert_int_equal(
        base_json_parse(back.tool_call.arguments, strlen(back.tool_call.arguments), &doc, NULL), 0);
    assert_string_equal(base_json_str(base_json_root(doc), "path", ""), text);
    base_json_free(doc);
    agent_event_doc_free(held);
    base_buf_free(&event);
    base_buf_free(&raw);
    base_buf_free(&json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names__a_folder_called_default_is_no_model),
        cmocka_unit_test(test_approval__a_removed_comment_of_sql_is_shown),
        cmocka_unit_test(test_approval__a_command_is_never_a_diff),
        cmocka_unit_test(test_approval__an_undo_names_its_file),
        cmocka_unit_test(test_approval__a_hunk_that_lies_about_its_lines_hides_none),
        cmocka_unit_test(test_approval__a_nul_cuts_no_diff_off),
        cmocka_unit_test(test_approval__a_line_end_is_no_blank),
        cmocka_unit_test(test_approval__floods_tags_and_invisible_letters_are_seen),
        cmocka_unit_test(test_approval__the_screen_gives_the_bytes_back),
        cmocka_unit_test(test_approval__no_yes_before_its_end_was_on_the_screen),
        cmocka_unit_test(test_approval__a_long_diff_is_read_first),
        cmocka_unit_test(test_approval__keys_typed_before_it_do_not_answer_it),
        cmocka_unit_test(test_approval__an_answer_of_the_terminal_is_no_yes),
        cmocka_unit_test(test_approval__a_window_too_small_to_read_takes_no_yes),
        cmocka_unit_test(test_door__no_escape_reaches_a_terminal),
        cmocka_unit_test(test_shell_word__a_quote_in_a_name_ends_nothing),
        cmocka_unit_test(test_json__what_a_terminal_would_obey_is_escaped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
