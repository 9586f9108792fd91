/*
 * A request that names a failing test ("test_gcd.py fails; fix it"). What was measured (data/models.md): a small model repairs
 * best when it sees the program, the test and its output at once; a failed attempt left in view is repeated; a second try needs
 * the old text and a warmer sampler. So the harness runs the test first, bars a failed attempt's rows (act.c), puts the file back,
 * brings the old text's rows back at no cost, and asks again; the last attempt stays in the tree for the person to judge or /undo.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/internal.h"
#include "base/hash.h"
#include "base/mem.h"

enum { MAX_ATTEMPTS = 3, MAX_ASKING = 4 };

/* --- which test --------------------------------------------------------------------------------------------------------- */

bool agent__runs_tests(const char *command)
{
    static const char *const marks[] = {"test", "check", "tox", "spec"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (strstr(command, marks[i])) return true;
    return false;
}

void agent__set_test(agent *a, const char *command)
{
    char *copy = base_xstrdup(command);
    free(a->test_command);
    a->test_command = copy;
}

/* How a test file is run alone, by its name's ending. */
static const struct {
    const char *ending, *before;
} test_runners[] = {{".py", "python3 -m pytest -q -x --tb=short "}, {".test.js", "node --test "},
    {".test.mjs", "node --test "}, {".sh", "sh "}};

static bool ends_with(const char *s, const char *ending)
{
    size_t n = strlen(s), m = strlen(ending);
    return n >= m && !strcmp(s + n - m, ending);
}

/* A word of the request that is a test file of the tree: its command becomes the test. */
static bool take_test_file(agent *a, const char *word, size_t n)
{
    char *name = base_xstrndup(word, n);
    bool taken = false;
    char *path = n > 3 && strstr(name, "test") && strchr(name, '.')
                     ? code_index_path(tool_workspace_index(a->workspace), *name == '@' ? name + 1 : name)
                     : NULL;
    for (size_t i = 0; path && !taken && i < sizeof test_runners / sizeof *test_runners; i++) {
        if (!ends_with(path, test_runners[i].ending) || strpbrk(path, " '\"$`\\;&|<>*?")) continue;
        base_buf command = {0};
        base_buf_printf(&command, "%s%s", test_runners[i].before, path);
        agent__set_test(a, command.data);
        base_buf_free(&command);
        taken = true;
    }
    free(path);
    free(name);
    return taken;
}

static bool asks_for_repair(const char *request)
{
    static const char *const words[] = {"fail", "fix", "repair", "broken", "bug", "pass"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasestr(request, words[i])) return true;
    return false;
}

void agent__find_test(agent *a, const char *request)
{
    bool named = false;
    const char *open = strchr(request, '`'), *close = open ? strchr(open + 1, '`') : NULL;
    if (close) {
        char *command = base_xstrndup(open + 1, (size_t)(close - open - 1));
        named = strchr(command, ' ') && agent__runs_tests(command);
        if (named) agent__set_test(a, command);
        free(command);
    }
    static const char between[] = " \t\n\"'`(),;:";
    for (const char *p = request; *p && !named; p += strspn(p, between)) {
        size_t n = strcspn(p, between), word = n;
        while (word && strchr(".?!", p[word - 1])) word--;
        named = take_test_file(a, p, word);
        p += n;
    }
    a->fix.wanted = named && asks_for_repair(request) && a->mode != AGENT_MODE_PLAN;
}

/* --- after a failed attempt --------------------------------------------------------------------------------------------- */

/* Rows that show exactly this text of the file are true again: they come back as they were computed. */
static void restore_rows(agent *a, const char *path)
{
    base_buf text = {0};
    char version[65];
    if (tool_workspace_read(a->workspace, path, 4 << 20, &text, NULL)) return;
    base_sha256_hex(text.data ? text.data : "", text.len, version);
    for (size_t i = 0; i < a->n_pieces; i++) {
        agent_piece *p = &a->pieces[i];
        if (!p->stale || !p->path || strcmp(p->path, path) || strcmp(p->version, version)) continue;
        base_err err = {0};
        if (a->engine->ops->manual(a->engine, KV_MANUAL_PROMOTE, p->from, p->to, &err))
            agent__notice(a, "the text of %s could not be brought back: %s", path, err.msg);
        p->stale = false;
    }
    tool_workspace_mark_shown(a->workspace, path, version);
    base_buf_free(&text);
}

static bool undo_attempt(agent *a, const char *path)
{
    char *summary = NULL;
    base_err err = {0};
    if (tool_undo_apply(a->workspace, &summary, &err)) {
        agent__notice(a, "the failed attempt stays in the tree: %s", err.msg);
        return false;
    }
    agent__emit(a, &(agent_event){.type = AGENT_EVENT_undo, .undo = {.turn = a->turn, .summary = summary}});
    tool_workspace_turn(a->workspace, a->turn); /* the next attempt is an undo of its own */
    a->fix.writes = 0;
    a->world++;
    free(summary);
    char *full = code_index_path(tool_workspace_index(a->workspace), path);
    restore_rows(a, full ? full : path);
    free(full);
    return true;
}

/* The definition as it is now, for a model that can see neither its barred attempt nor the stale text. */
static void put_present_text(agent *a, const char *path, const char *name, base_buf *out)
{
    code_place *places = NULL;
    uint32_t n = code_index_define(tool_workspace_index(a->workspace), name, &places);
    bool done = false;
    for (uint32_t i = 0; i < n && !done; i++) {
        base_buf text = {0};
        if (ends_with(places[i].path, path) &&
            !tool_workspace_read(a->workspace, places[i].path, 4 << 20, &text, NULL) &&
            places[i].to <= text.len && places[i].from < places[i].to) {
            base_buf_printf(out, "%s in %s is now:\n", name, places[i].path);
            base_buf_add(out, text.data + places[i].from, places[i].to - places[i].from);
            base_buf_putc(out, '\n');
            done = true;
        }
        base_buf_free(&text);
    }
    code_places_free(places, n);
}

void agent__came_to_nothing(agent *a, uint32_t from, uint32_t to)
{
    if (!a->fix.wanted || a->fix.passed || a->fix.attempts >= MAX_ATTEMPTS ||
        a->fix.asked_again >= MAX_ASKING)
        return;
    a->fix.asked_again++;
    a->fix.open_call = true;
    base_err err = {0};
    if (a->engine->ops->mark_failed(a->engine, from, to, &err))
        agent__notice(a, "the attempt could not be put aside: %s", err.msg);
}

void agent__take_back(agent *a, const char *path, const char *name, base_buf *out)
{
    base_buf_puts(out, "The test still fails. ");
    a->fix.open_call = a->fix.wanted && a->fix.attempts < MAX_ATTEMPTS;
    if (a->fix.wanted && a->fix.attempts < MAX_ATTEMPTS && a->fix.writes == 1 && undo_attempt(a, path)) {
        base_buf_printf(out,
            "This change was taken back: %s is as it was before. The fault is somewhere else in it: find it "
            "and rewrite %s differently.\n",
            path, *name ? name : "it");
        return;
    }
    put_present_text(a, path, name, out);
    if (a->fix.attempts < MAX_ATTEMPTS) base_buf_puts(out, "Find what is still wrong and rewrite it.\n");
}

/* --- asking again ------------------------------------------------------------------------------------------------------- */

/* The definition that this turn's excerpts show of a file that is no test: a call that rewrites it, and its language. */
static bool guess_target(const agent *a, base_buf *json, base_buf *ret_name, const char **ret_language)
{
    for (size_t i = 0; i < a->n_pieces; i++) {
        const agent_piece *p = &a->pieces[i];
        if (p->turn != a->turn || !p->path || p->stale || strstr(p->path, "test")) continue;
        base_buf text = {0};
        if (tool_workspace_read(a->workspace, p->path, 1 << 20, &text, NULL)) continue;
        code_file *f =
            code_parse(tool_workspace_grammars(a->workspace), p->path, text.data ? text.data : "", text.len);
        const char *name = p->label && *p->label ? p->label : NULL;
        for (uint32_t d = 0; d < f->n_definitions && !name; d++)
            if (f->definitions[d].body_to > f->definitions[d].body_from) name = f->definitions[d].name;
        if (name) {
            base_buf_puts(json, "{\"name\": \"rewrite\", \"arguments\": {\"path\": ");
            base_json_put_str(json, p->path, strlen(p->path));
            base_buf_puts(json, ", \"name\": ");
            base_json_put_str(json, name, strlen(name));
            base_buf_puts(json, "}}");
            base_buf_puts(ret_name, name);
            *ret_language = f->language ? f->language : "";
        }
        code_file_free(f);
        base_buf_free(&text);
        if (json->len) return true;
    }
    return false;
}

void agent_opening_free(agent_opening *o)
{
    base_buf_free(&o->thought);
    base_buf_free(&o->call);
}

void agent__open_call(const agent *a, agent_opening *opening)
{
    base_buf json = {0}, name = {0};
    const char *language = "";
    agent_opening_free(opening);
    if (guess_target(a, &json, &name, &language)) {
        /* Without a thought of its own a small model copies the old text. */
        base_buf_printf(&opening->thought, "The wrong line in the definition of `%s` is `", name.data);
        agent_prompt_call(a->info.tools, json.data, &opening->call);
        base_buf_printf(&opening->call, "\n```%s\n", language);
    }
    base_buf_free(&name);
    base_buf_free(&json);
}

bool agent__ask_again(
    agent *a, uint32_t from, uint32_t to, bool is_useless, base_buf *out, agent_opening *opening)
{
    const agent_fix *x = &a->fix;
    if (!x->wanted || x->passed || x->no_test || a->denied || a->info.strong || x->attempts >= MAX_ATTEMPTS ||
        x->asked_again >= MAX_ASKING)
        return false;
    a->fix.asked_again++;
    agent__notice(a, x->attempts ? "the test still fails: asking for another attempt"
                                 : "nothing was changed: asking for the change");
    base_err err = {0};
    if ((x->attempts || is_useless) && from < to && a->engine->ops->mark_failed(a->engine, from, to, &err))
        agent__notice(a, "the answer could not be put aside: %s", err.msg);
    agent__open_call(a, opening);
    base_buf_puts(out, x->attempts ? "The test still fails. Rewrite the definition again, differently"
                                   : "No file was changed yet. Make the change now");
    base_buf_puts(out, ": the call on one line, then the whole corrected definition in a fenced block.");
    return true;
}
