/*
 * Runs a script of events and keys against the shell without a terminal, and compares its screens with
 * committed text files.
 *
 *   screen_test SCRIPT [--update]      files are beside the script; --update writes the screens instead of
 *       comparing
 *
 *   size 80 24          letters | ascii         (glyphs; before anything else)
 *   clock MS            the shell's clock
 *   editor leaves|changes   what the external editor does with the text (changes)
 *   events FILE [N]     feeds the file's events from where it stopped, all or the next N
 *   until EVENT         feeds up to and with the next event of that name
 *   event {...}         one event
 *   worker loading SHARE TEXT | ready | idle | failed TEXT
 *   key NAME...         type TEXT     paste TEXT (\n is a line end)     bigpaste LINES
 *   screen NAME         compares with NAME.screen
 *   explain-all         asks ? at every unit of every view (the panel has the focus): each is told in words, and
 *       all of them can be read on a screen of this size
 *   explains TEXT       one of these said so
 *   sent TEXT           the next thing the shell asked of its host ("submit ...", "decide yes", "interrupt",
 *       "quit", ...)
 *                       line ends in it are written \n
 *   silent              it asked for nothing more
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/mem.h"
#include "key_names.h"
#include "tui/dispatch.h"
#include "tui/frame.h"
#include "tui/record.h"
#include "tui/views/view.h"

typedef struct run {
    char *dir;
    bool update;
    int failures, line;
    tui_ui ui;
    tui_grid grid;
    int width, height;
    char *sent[256];
    size_t n_sent, n_checked;
    tui_record record;
    size_t fed;
    char *record_name;
    bool leaves_text;   /* the external editor */
    base_buf explained; /* all that ? said so far */
} run;

static void note(run *r, const char *what, const char *text)
{
    base_buf b = {0};
    base_buf_puts(&b, what);
    if (text) {
        base_buf_putc(&b, ' ');
        for (; *text; text++) {
            if (*text == '\n')
                base_buf_puts(&b, "\\n");
            else
                base_buf_putc(&b, *text);
        }
    }
    if (r->n_sent < 256) r->sent[r->n_sent++] = base_buf_take(&b);
    base_buf_free(&b);
}

static void on_submit(void *user, const char *text)
{
    note(user, "submit", strlen(text) > 4000 ? "(long)" : text);
}

static void on_decide(void *user, agent_answer answer, const char *text)
{
    static const char *const names[] = {[AGENT_YES] = "decide yes",
        [AGENT_ALWAYS] = "decide always",
        [AGENT_ALWAYS_HERE] = "decide always here",
        [AGENT_NO] = "decide no",
        [AGENT_EDIT] = "decide edit"};
    note(user, names[answer], text && *text ? text : NULL);
}

static void on_mode(void *user, agent_mode mode)
{
    note(user, "mode", agent_mode_word(mode));
}

static void on_interrupt(void *user)
{
    note(user, "interrupt", NULL);
}

static void on_quit(void *user)
{
    note(user, "quit", NULL);
}

static void on_copy(void *user, const char *text, size_t n)
{
    char *copy = base_xstrndup(text, n);
    note(user, "copy", copy);
    free(copy);
}

static char *on_edit(void *user, const char *text)
{
    const run *r = user;
    note(user, "edit", text);
    return base_xstrdup(r->leaves_text ? text : "from the editor\n");
}

static char **on_paths(void *user)
{
    static const char *const paths[] = {"Makefile", "src/agent/log/log.c", "src/agent/log/log.h",
        "src/kv/plan.c", "tests/log_test.c", "tests/plan_test.c"};
    size_t n = sizeof paths / sizeof *paths;
    char **out = base_xcalloc(n + 1, sizeof *out);
    for (size_t i = 0; i < n; i++) out[i] = base_xstrdup(paths[i]);
    return out;
}

static char **on_skills(void *user)
{
    static const char *const skills[] = {"review", "read a change as its reviewer would"};
    char **out = base_xcalloc(3, sizeof *out);
    for (size_t i = 0; i < 2; i++) out[i] = base_xstrdup(skills[i]);
    return out;
}

static char *beside(const run *r, const char *name)
{
    base_buf b = {0};
    base_buf_printf(&b, "%s/%s", r->dir, name);
    return base_buf_take(&b);
}

static void fail(run *r, const char *format, const char *a, const char *b)
{
    fprintf(stderr, "line %d: ", r->line);
    fprintf(stderr, format, a, b);
    fputc('\n', stderr);
    r->failures++;
}

/*
 * A frame that reached the terminal: what views know of the screen, and which question was on it, they know
 * from the last one.
 */
static void draw(run *r)
{
    tui_grid_resize(&r->grid, r->width, r->height);
    tui_ui_draw(&r->ui, &r->grid);
    tui_ui_painted(&r->ui);
}

static void compare(run *r, const char *name)
{
    base_buf now = {0}, then = {0};
    draw(r);
    tui_grid_text(&r->grid, &now);
    base_buf file = {0};
    base_buf_printf(&file, "%s/%s.screen", r->dir, name);
    if (r->update) {
        base_err err;
        if (base_fs_write(file.data, now.data, now.len, 0644, &err)) fail(r, "%s: %s", file.data, err.msg);
    } else if (base_fs_read(file.data, 1 << 20, &then, NULL)) {
        fail(r, "%s is missing; --update writes it%s", file.data, "");
    } else if (then.len != now.len || memcmp(then.data, now.data, now.len)) {
        fail(r, "the screen differs from %s.screen; it is:\n%s", name, now.data);
    }
    base_buf_free(&now);
    base_buf_free(&then);
    base_buf_free(&file);
}

static void feed(run *r, const char *name, size_t n)
{
    if (!r->record_name || strcmp(r->record_name, name)) {
        tui_record_free(&r->record);
        r->fed = 0;
        free(r->record_name);
        r->record_name = base_xstrdup(name);
        char *path = beside(r, name);
        base_buf b = {0};
        base_err err = {0};
        if (base_fs_read(path, 16 << 20, &b, &err)) fail(r, "%s: %s", path, err.msg);
        for (size_t at = 0; at < b.len;) {
            const char *s = b.data + at, *end = memchr(s, '\n', b.len - at);
            size_t length = end ? (size_t)(end - s) : b.len - at;
            if (length && tui_record_add(&r->record, s, length, NULL, 0, &err))
                fail(r, "%s: %s", name, err.msg);
            at += length + 1;
        }
        base_buf_free(&b);
        free(path);
    }
    for (; n > 0 && r->fed < r->record.n; n--) tui_ui_event(&r->ui, r->record.events + r->fed++);
    draw(r);
}

/* Events up to and with the next one of that name. */
static void feed_until(run *r, const char *event)
{
    bool found = false;
    while (!found && r->fed < r->record.n) {
        found = !strcmp(agent_event_name(r->record.events[r->fed].type), event);
        tui_ui_event(&r->ui, r->record.events + r->fed++);
    }
    if (!found) fail(r, "no event %s follows%s", event, "");
    draw(r);
}

static void worker(run *r, char *rest)
{
    char what[32] = "", text[200] = "";
    double share = 0;
    if (sscanf(rest, "loading %lf %199[^\n]", &share, text) == 2)
        tui_ui_loading(&r->ui, share, text);
    else if (sscanf(rest, "doing %199[^\n]", text) == 1)
        tui_ui_doing(&r->ui, text);
    else if (sscanf(rest, "failed %199[^\n]", text) == 1)
        tui_ui_failed(&r->ui, text);
    else if (sscanf(rest, "%31s", what) == 1 && !strcmp(what, "ready"))
        tui_ui_ready(&r->ui);
    else if (!strcmp(what, "done"))
        tui_ui_doing(&r->ui, NULL);
    else if (!strcmp(what, "idle"))
        tui_ui_idle(&r->ui);
    else
        fail(r, "worker %s%s", rest, "?");
}

static void press(run *r, const char *name)
{
    draw(r);
    tui_ui_key(&r->ui, key_named(name));
}

/* What a popup shows from its first screen to its last, without the frame's breaks between words. */
static void read_popup(run *r, base_buf *ret)
{
    for (int page = 0; page < 20 && r->ui.popup != TUI_POPUP_NONE; page++) {
        base_buf now = {0};
        draw(r);
        tui_grid_text(&r->grid, &now);
        base_buf_puts(ret, now.data);
        base_buf_free(&now);
        const int before = r->ui.popup_scroll;
        press(r, "Space");
        draw(r);
        if (r->ui.popup_scroll == before) break;
    }
}

static void explain_at_cursor(run *r, const char *view)
{
    enum { LEAST = 40 }; /* bytes: a sentence */
    base_buf shown = {0};
    press(r, "?");
    if (r->ui.popup != TUI_POPUP_TEXT || r->ui.popup_text.len < LEAST) {
        fail(r, "%s: ? says nothing at the cursor%s", view, "");
        return;
    }
    base_buf text = {0};
    base_buf_puts(&text, r->ui.popup_text.data);
    base_buf_puts(&r->explained, text.data);
    read_popup(r, &shown);
    for (char *word = strtok(text.data, " \n"); word; word = strtok(NULL, " \n"))
        if (!strstr(shown.data, word)) fail(r, "%s: \"%s\" of what ? says is not on the screen", view, word);
    if (r->ui.popup != TUI_POPUP_NONE) press(r, "Esc");
    if (r->ui.popup != TUI_POPUP_NONE) fail(r, "%s: the explanation does not close%s", view, "");
    base_buf_free(&text);
    base_buf_free(&shown);
}

/* Every view, every unit of it from the first on: the cursor stands still at the last. */
static void explain_all(run *r)
{
    enum { MOST_UNITS = 400 };
    for (int v = 0; v < TUI_N_VIEWS; v++) {
        const char digit[2] = {(char)('1' + v), 0};
        press(r, digit);
        press(r, "g");
        uint32_t at, turn;
        int unit = 0;
        do { /* the ledger's units are turns, all others' tokens */
            explain_at_cursor(r, tui_views[v]->name);
            at = r->ui.at;
            turn = tui_ui_turn(&r->ui);
            press(r, "j");
            draw(r);
        } while ((r->ui.at != at || tui_ui_turn(&r->ui) != turn) && ++unit < MOST_UNITS);
        press(r, "G");
        explain_at_cursor(r, tui_views[v]->name);
    }
}

static void step(run *r, char *line)
{
    char *rest = line + strcspn(line, " ");
    if (*rest) *rest++ = 0;
    base_err err = {0};
    if (!strcmp(line, "size")) {
        if (sscanf(rest, "%d %d", &r->width, &r->height) != 2) fail(r, "size %s%s", rest, "?");
    } else if (!strcmp(line, "letters") || !strcmp(line, "ascii")) {
        r->ui.glyphs = tui_glyphs_for(strcmp(line, "ascii") != 0, true);
    } else if (!strcmp(line, "editor")) {
        r->leaves_text = !strcmp(rest, "leaves");
    } else if (!strcmp(line, "clock")) {
        r->ui.now_ms = atoll(rest);
    } else if (!strcmp(line, "events")) {
        char name[100];
        size_t n = SIZE_MAX;
        if (sscanf(rest, "%99s %zu", name, &n) < 1) fail(r, "events %s%s", rest, "?");
        feed(r, name, n);
    } else if (!strcmp(line, "until")) {
        feed_until(r, rest);
    } else if (!strcmp(line, "event")) {
        agent_event e;
        agent_event_doc *doc;
        if (agent_event_read(rest, strlen(rest), &e, &doc, &err))
            fail(r, "%s: %s", rest, err.msg);
        else {
            tui_ui_event(&r->ui, &e);
            agent_event_doc_free(doc);
            draw(r);
        }
    } else if (!strcmp(line, "worker")) {
        worker(r, rest);
    } else if (!strcmp(line, "key")) {
        for (char *name = strtok(rest, " "); name; name = strtok(NULL, " ")) {
            uint32_t key = key_named(name);
            if (!key) fail(r, "no key %s%s", name, "");
            draw(r);
            tui_ui_key(&r->ui, key);
        }
    } else if (!strcmp(line, "type")) {
        for (char *s = rest; *s;) {
            int width;
            size_t n = tui_next_glyph(s, strlen(s), &width);
            char one[16] = "";
            memcpy(one, s, n < 15 ? n : 15);
            draw(r);
            tui_ui_key(&r->ui, key_named(one));
            s += n;
        }
    } else if (!strcmp(line, "paste")) {
        base_buf b = {0};
        for (char *s = rest; *s; s++) base_buf_putc(&b, s[0] == '\\' && s[1] == 'n' ? (s++, '\n') : *s);
        tui_ui_paste(&r->ui, b.data, b.len);
        base_buf_free(&b);
    } else if (!strcmp(line, "bigpaste")) {
        base_buf b = {0};
        for (long i = 0; i < atol(rest); i++) base_buf_printf(&b, "line %ld of something long\r", i);
        tui_ui_paste(&r->ui, b.data, b.len);
        base_buf_free(&b);
    } else if (!strcmp(line, "screen")) {
        compare(r, rest);
    } else if (!strcmp(line, "explain-all")) {
        explain_all(r);
    } else if (!strcmp(line, "explains")) {
        if (!r->explained.data || !strstr(r->explained.data, rest))
            fail(r, "? never said \"%s\"%s", rest, "");
    } else if (!strcmp(line, "sent")) {
        const char *got = r->n_checked < r->n_sent ? r->sent[r->n_checked] : "(nothing)";
        if (strcmp(got, rest)) fail(r, "expected \"%s\", got \"%s\"", rest, got);
        r->n_checked++;
    } else if (!strcmp(line, "silent")) {
        if (r->n_checked < r->n_sent) fail(r, "unexpected \"%s\"%s", r->sent[r->n_checked], "");
    } else {
        fail(r, "no such step: %s%s", line, "");
    }
}

int main(int argc, char **argv)
{
    if (argc < 2) return 2;
    run r = {.width = 80, .height = 24, .update = argc > 2 && !strcmp(argv[2], "--update")};
    const char *slash = strrchr(argv[1], '/');
    r.dir = slash ? base_xstrndup(argv[1], (size_t)(slash - argv[1])) : base_xstrdup(".");
    tui_host host = {.user = &r,
        .submit = on_submit,
        .decide = on_decide,
        .set_mode = on_mode,
        .interrupt = on_interrupt,
        .quit = on_quit,
        .copy = on_copy,
        .edit = on_edit,
        .paths = on_paths,
        .skills = on_skills};
    tui_ui_init(&r.ui, &host, true, false);
    base_buf script = {0};
    base_err err = {0};
    if (base_fs_read(argv[1], 1 << 20, &script, &err)) {
        fprintf(stderr, "%s\n", err.msg);
        return 2;
    }
    for (char *line = script.data; line && *line;) {
        char *end = strchr(line, '\n');
        if (end) *end = 0;
        r.line++;
        if (*line && *line != '#') step(&r, line);
        line = end ? end + 1 : NULL;
    }
    tui_ui_free(&r.ui);
    tui_grid_free(&r.grid);
    tui_record_free(&r.record);
    base_buf_free(&script);
    for (size_t i = 0; i < r.n_sent; i++) free(r.sent[i]);
    base_buf_free(&r.explained);
    free(r.record_name);
    free(r.dir);
    if (r.failures) fprintf(stderr, "%d failures\n", r.failures);
    return r.failures ? 1 : 0;
}
