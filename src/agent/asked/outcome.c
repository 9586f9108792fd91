/*
 * What came of a request for a change. A small model says "Renamed it" with nothing written; the tree knows better. So
 * the last line of a turn that was asked for a change is the program's: which files were changed, which of the names asked
 * for stand in the tree now, which that should be gone still do.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/asked/asked.h"
#include "agent/judge/judge.h"
#include "agent/session/tell.h"
#include "agent/words/request_words.h"
#include "base/mem.h"
#include "code/places.h"
#include "code/code.h"

void agent__refusal_free(agent_refusal *x)
{
    free(x->operation);
    free(x->name);
    free(x->to);
    free(x->why);
    *x = (agent_refusal){0};
}

void agent__put_operation(const agent_refusal *x, base_buf *out)
{
    const bool has_to = x->to && (!strcmp(x->operation, "rename") || !strcmp(x->operation, "move"));
    base_buf_printf(out, "%s of %s%s%s", x->operation, x->name, has_to ? " to " : "", has_to ? x->to : "");
}

void agent__put_refusal(const agent_refusal *x, base_buf *out)
{
    base_buf_puts(out, "The ");
    agent__put_operation(x, out);
    base_buf_printf(out, " was refused: %s", x->why);
}

void agent__changed(agent *a, const char *path)
{
    agent_asked *x = &a->asked;
    if (agent__is_changed(a, path)) return;
    x->changed = base_xrealloc(x->changed, (x->n_changed + 1) * sizeof *x->changed);
    x->changed[x->n_changed++] = base_xstrdup(path);
}

void agent__taken_back(agent *a, const char *path)
{
    agent_asked *x = &a->asked;
    for (size_t i = 0; i < x->n_changed; i++) {
        if (strcmp(x->changed[i], path) != 0) continue;
        free(x->changed[i]);
        x->changed[i] = x->changed[--x->n_changed];
    }
}

bool agent__is_missing(const agent *a, base_buf *out)
{
    base_buf missing = {0}, left = {0}, same = {0}, files = {0};
    if (agent__list_wishes(a, AGENT_WISH_STANDS, &missing))
        base_buf_printf(out, "%s is not in the tree yet. ", missing.data);
    if (agent__list_wishes(a, AGENT_WISH_GOES, &left))
        base_buf_printf(out, "%s is still in the tree. ", left.data);
    if (agent__list_wishes(a, AGENT_WISH_CHANGES, &same))
        base_buf_printf(out, "%s is as it was: it was to be changed too. ", same.data);
    if (a->asked.n_changed && agent__list_wishes(a, AGENT_WISH_FILE, &files))
        base_buf_printf(out, "The file %s is as it was: it was to be changed too. ", files.data);
    if (agent__lacks_code(a)) base_buf_puts(out, "No code was changed yet. ");
    if (a->asked.n_changed && agent__lacks_test(a))
        base_buf_puts(out, a->asked.tests_too ? "Its test is as it was. " : "No test was added yet. ");
    base_buf_free(&missing);
    base_buf_free(&left);
    base_buf_free(&same);
    base_buf_free(&files);
    return out->len > 0;
}

bool agent__awaits_code(const agent *a)
{
    const agent_asked *x = &a->asked;
    base_buf part = {0};
    bool is = agent__list_wishes(a, AGENT_WISH_STANDS, &part) ||
              agent__list_wishes(a, AGENT_WISH_GOES, &part) ||
              agent__list_wishes(a, AGENT_WISH_CHANGES, &part) || (x->n_changed && agent__lacks_test(a)) ||
              agent__lacks_code(a);
    for (uint32_t i = 0; i < x->n_wishes && !is; i++) {
        const agent_wish *w = &x->wishes[i];
        const char *language = w->kind == AGENT_WISH_FILE ? code_language(w->name, "", 0) : NULL;
        is = language && !code_language_is_document(language) && !agent__is_changed(a, w->name);
    }
    base_buf_free(&part);
    return is;
}

void agent__aim_at(agent *a, const char *path, const char *name)
{
    char *path_copy = base_xstrdup(path), *name_copy = base_xstrdup(name);
    free(a->fix.path);
    free(a->fix.name);
    free(a->fix.field);
    a->fix.field = NULL;
    a->fix.path = path_copy;
    a->fix.name = name_copy;
    a->fix.open_call = true;
}

/* The test that calls what was written last. */
static void aim_at_test(agent *a)
{
    code_caller *callers = NULL;
    const char *name = a->fix.name ? code_last_name(a->fix.name) : NULL;
    uint32_t n = name ? code_index_callers(tool_workspace_index(a->workspace), name, 32, &callers) : 0;
    for (uint32_t i = 0; i < n && i < 32 && !a->fix.open_call; i++)
        if (code_path_is_test(callers[i].path) && *callers[i].name)
            agent__aim_at(a, callers[i].path, callers[i].name);
    code_callers_free(callers, n < 32 ? n : 32);
}

/* Of several places of a name one in a file that this turn changed, where there is one; no test's. */
static const code_place *place_near(const agent_asked *x, const code_place *places, uint32_t n)
{
    const code_place *near = NULL, *first = NULL;
    for (uint32_t i = 0; i < n; i++) {
        if (places[i].is_declaration || code_path_is_test(places[i].path)) continue;
        if (!first) first = &places[i];
        for (size_t k = 0; k < x->n_changed && !near; k++)
            if (!strcmp(x->changed[k], places[i].path)) near = &places[i];
    }
    return near ? near : first ? first : places;
}

/* What the file that was to change too has to hold: the new name that the request asks for, else what was written last. */
static void aim_at_file(agent *a, const char *path)
{
    const char *language = code_language(path, "", 0), *name = a->fix.name;
    for (uint32_t i = 0; i < a->asked.n_wishes; i++)
        if (a->asked.wishes[i].kind == AGENT_WISH_STANDS) name = a->asked.wishes[i].name;
    if (name && language && !code_language_is_document(language) && a->asked.n_changed)
        agent__aim_at(a, path, name);
}

/* The place of the one definition outside of tests that has this name; of several the one whose file the text names. */
static const code_place *place_meant(const code_place *places, uint32_t n, const char *text)
{
    const code_place *only = NULL, *said = NULL;
    uint32_t n_only = 0, n_said = 0;
    for (uint32_t i = 0; i < n; i++) {
        const code_place *p = &places[i];
        if (p->is_declaration || code_path_is_test(p->path) ||
            (strcmp(p->what, "function") != 0 && strcmp(p->what, "method") != 0))
            continue;
        only = p;
        n_only++;
        if (!strstr(text, p->path)) continue;
        said = p;
        n_said++;
    }
    return n_only == 1 ? only : n_said == 1 ? said : NULL;
}

/* The functions and methods that a text names, as far as the tree has one place for each: the first, and how many. */
typedef struct named_places {
    char *path, *name; /* owned; NULL: it names none */
    uint32_t n;
    bool is_one_file; /* all of them, and none has several places */
} named_places;

static named_places find_named(const agent *a, const char *text)
{
    enum { MAX_SAID = 8 };
    code_index *index = tool_workspace_index(a->workspace);
    code_checked *checked = NULL;
    named_places ret = {.is_one_file = true};
    const uint32_t n = code_places_check(index, text, strlen(text), MAX_SAID, &checked);
    for (uint32_t i = 0; i < n; i++) {
        code_place *places = NULL;
        if (checked[i].state != CODE_PLACE_DEFINED) continue;
        const uint32_t n_places = code_index_define(index, checked[i].name, &places);
        const code_place *p = place_meant(places, n_places, text);
        ret.is_one_file &= p && (!ret.path || !strcmp(ret.path, p->path));
        if (p && !ret.n++) {
            base_buf whole = {0};
            const bool is_bare = *p->parent && !strpbrk(checked[i].name, ".:");
            base_buf_printf(&whole, "%s%s%s", is_bare ? p->parent : "", is_bare ? "." : "", checked[i].name);
            ret.path = base_xstrdup(p->path);
            ret.name = base_buf_take(&whole);
        }
        code_places_free(places, n_places);
    }
    code_places_checked_free(checked, n);
    return ret;
}

static void named_free(named_places *s)
{
    free(s->path);
    free(s->name);
}

/* Nothing was changed yet: what is to come stands in the file of what the request names, where that is one file. */
static void aim_beside_named(agent *a, const char *name)
{
    named_places s = find_named(a, a->request);
    if (s.n && s.is_one_file) agent__aim_at(a, s.path, name);
    named_free(&s);
}

bool agent__aim_at_missing(agent *a)
{
    const agent_asked *x = &a->asked;
    code_index *index = tool_workspace_index(a->workspace);
    if (a->info.strong) return false;
    for (uint32_t i = 0; i < a->asked.n_wishes && !a->fix.open_call; i++) {
        const agent_wish *w = &a->asked.wishes[i];
        code_place *places = NULL;
        if (w->kind == AGENT_WISH_GOES || agent__is_met(a, w)) continue;
        if (w->kind == AGENT_WISH_FILE) aim_at_file(a, w->name);
        if (w->kind == AGENT_WISH_FILE) continue;
        uint32_t n = w->kind == AGENT_WISH_CHANGES ? code_index_define(index, w->name, &places) : 0;
        if (n)
            agent__aim_at(a, w->path ? w->path : place_near(x, places, n)->path, w->name);
        else if (w->kind == AGENT_WISH_STANDS && a->asked.n_changed)
            agent__aim_at(a, a->asked.changed[0], w->name);
        else if (w->kind == AGENT_WISH_STANDS)
            aim_beside_named(a, w->name);
        code_places_free(places, n);
    }
    if (!a->fix.open_call && a->asked.tests_too && agent__lacks_test(a)) aim_at_test(a);
    return a->fix.open_call;
}

bool agent__asks_for_behaviour(const agent *a)
{
    static const char *const others[] = {
        "add", "write", "create", "new", "rename", "call it", "move", "delete", "remove", "drop", NULL};
    for (uint32_t i = 0; i < a->asked.n_wishes; i++)
        if (a->asked.wishes[i].kind < AGENT_WISH_CHANGES) return false;
    return !a->asked.test && !agent__has_any_word(a->request, others);
}

bool agent__aim_at_said(agent *a, const char *text)
{
    if (a->info.strong || a->asked.n_changed || !agent__asks_for_behaviour(a)) return false;
    named_places s = find_named(a, text);
    const bool is_one = s.n == 1;
    if (is_one) agent__aim_at(a, s.path, s.name);
    named_free(&s);
    return is_one;
}

/* What the test that ran said: the values of the request, then `says` of the tests that stood there before. */
static void tell_judge(const agent *a, const char *says, base_buf *out)
{
    const bool by_values = a->test.has_values && a->test.of;
    const char *command = a->test.has_values ? a->test.plain : a->test.command;
    if (by_values && a->test.hold < a->test.of)
        base_buf_printf(out, " Of the values that your request gives %u of %u hold%s%s.", a->test.hold,
            a->test.of, a->test.miss ? ": " : "", a->test.miss ? a->test.miss : "");
    else if (by_values)
        base_buf_printf(out, " Checked by values of your request: %u of %u.", a->test.hold, a->test.of);
    else if (a->test.has_values && a->fix.failing)
        base_buf_puts(out,
            " The values of your request could not be tried on it: a program that calls it does not build or run.");
    if (by_values && a->test.drops_plain) base_buf_puts(out, " The tree's own tests could not judge it.");
    if (command && !(a->test.has_values && a->fix.failing && !(by_values && a->test.hold == a->test.of)))
        base_buf_printf(out, " %s: %s.", says, command);
}

static void tell_refusal(const agent_asked *x, base_buf *out)
{
    if (!x->refusal.why || x->is_told) return;
    base_buf_putc(out, ' ');
    agent__put_refusal(&x->refusal, out);
}

/* Does a test call it? */
static bool is_tested(const agent *a, const char *name)
{
    enum { MOST = 64 };
    code_caller *callers = NULL;
    const uint32_t n =
        code_index_callers(tool_workspace_index(a->workspace), code_last_name(name), MOST, &callers);
    bool is_so = false;
    for (uint32_t i = 0; i < n && i < MOST; i++) is_so |= code_path_is_test(callers[i].path);
    code_callers_free(callers, n < MOST ? n : MOST);
    return is_so;
}

/* Tests that pass say nothing of what is new and what none of them calls. */
static void tell_untested(const agent *a, base_buf *out)
{
    base_buf names = {0};
    for (uint32_t i = 0; i < a->asked.n_wishes; i++) {
        const agent_wish *w = &a->asked.wishes[i];
        if (w->kind == AGENT_WISH_STANDS &&
            code_index_is_defined(tool_workspace_index(a->workspace), w->name) && !is_tested(a, w->name))
            base_buf_printf(&names, "%s%s", names.len ? ", " : "", w->name);
    }
    if (names.len && !a->test.has_values) base_buf_printf(out, " None of them calls %s.", names.data);
    base_buf_free(&names);
}

/* What has the name of what was renamed or deleted, and is another thing. */
static void tell_other(const agent *a, base_buf *out)
{
    const char *name = a->asked.went ? code_last_name(a->asked.went) : "";
    code_place *places = NULL;
    const uint32_t n = *name ? code_index_define(tool_workspace_index(a->workspace), name, &places) : 0;
    for (uint32_t i = 0, said = 0; i < n && !said; i++) {
        if (places[i].is_declaration) continue;
        base_buf_printf(out, " Another %s stays: %s:%u.", name, places[i].path, places[i].line);
        said = 1;
    }
    code_places_free(places, n);
}

/* Of several operations those that were not done; false: none was left out. */
static bool tell_listed(const agent_asked *x, base_buf *out)
{
    bool is_told = false;
    for (uint32_t i = 0; i < x->n_listed && x->n_listed > 1; i++) {
        const agent_listed *l = &x->listed[i];
        if (l->is_done) continue;
        base_buf_printf(out, "%s%s of %s%s%s", is_told ? ", " : " Not done: ", l->operation, l->name,
            l->to ? " to " : "", l->to ? l->to : "");
        is_told = true;
    }
    if (is_told) base_buf_putc(out, '.');
    return is_told;
}

/* What was changed, and what of the request is not in the tree as it was asked for; true: some of it is not. */
static bool tell_changed(agent *a, base_buf *out)
{
    const agent_asked *x = &a->asked;
    base_buf missing = {0}, left = {0}, same = {0}, files = {0};
    base_buf_puts(out, "Changed: ");
    for (size_t i = 0; i < x->n_changed; i++) base_buf_printf(out, "%s%s", i ? ", " : "", x->changed[i]);
    base_buf_putc(out, '.');
    if (agent__list_wishes(a, AGENT_WISH_STANDS, &missing))
        base_buf_printf(out, " Asked for and not in the tree: %s.", missing.data);
    if (agent__list_wishes(a, AGENT_WISH_GOES, &left))
        base_buf_printf(out, " Still in the tree: %s.", left.data);
    agent__list_wishes(a, AGENT_WISH_CHANGES, &same);
    agent__list_wishes(a, AGENT_WISH_FILE, &files);
    if (same.len || files.len)
        base_buf_printf(out, " As it was: %s%s%s.", same.len ? same.data : "",
            same.len && files.len ? ", " : "", files.len ? files.data : "");
    const bool lacks_code = agent__lacks_code(a), lacks_test = agent__lacks_test(a);
    if (lacks_code) base_buf_puts(out, " No code was changed.");
    if (lacks_test) base_buf_puts(out, x->tests_too ? " No test was changed." : " No test was added.");
    const bool is_left_out = tell_listed(x, out);
    tell_refusal(x, out);
    tell_other(a, out);
    const bool is_partial =
        is_left_out || missing.len || left.len || same.len || files.len || lacks_code || lacks_test;
    base_buf_free(&missing);
    base_buf_free(&left);
    base_buf_free(&same);
    base_buf_free(&files);
    return is_partial;
}

/* "Fixed", says the model, and the tests pass as they did before: a person is not to take that for a proof. */
static void tell_old_tests(const agent *a, base_buf *out)
{
    bool is_old = !a->asked.new_test.path && !a->test.has_values && agent__asks_for_behaviour(a);
    for (size_t i = 0; i < a->asked.n_changed && is_old; i++)
        is_old = !code_path_is_test(a->asked.changed[i]);
    if (is_old) base_buf_puts(out, " They were there before: that nothing broke is all that they say.");
}

/* What tests say of the change: the outcome's state where all of the request is in the tree. */
static const char *tell_judged(const agent *a, base_buf *out)
{
    const agent_verdict_words *words = a->test.words;
    if (a->test.command && a->fix.failing) {
        tell_judge(a, words ? words->fails : "Its test fails", out);
        /* What fails may be the new test itself. */
        if (a->fix.was_whole && !a->asked.new_test.path)
            base_buf_puts(out, " That was not so before this turn: /undo takes its changes back.");
        if (a->asked.test_alone && a->asked.new_test.path)
            base_buf_printf(out, " The new test stays in %s: /undo takes it back.", a->asked.new_test.path);
        return "failing";
    }
    if (!a->test.command || !a->fix.passed) {
        base_buf_printf(out, " No test has judged it%s%s.", a->test.why_none ? ": " : "",
            a->test.why_none ? a->test.why_none : "");
        return "changed";
    }
    const char *passes = a->test.is_found ? "The tests of it pass" : "Its test passes";
    tell_judge(a, words ? words->passes : passes, out);
    if (a->test.is_found && !words) tell_untested(a, out);
    if (a->test.is_found && !words) tell_old_tests(a, out);
    const bool is_recorded = a->asked.new_test.n_put_right || a->asked.new_test.is_recorded;
    if (is_recorded) base_buf_puts(out, " It expects what the code gives now: see whether that is right.");
    if (a->asked.new_test.is_blind) base_buf_puts(out, " The new test does not notice a fault.");
    /* Tests that stood there before say that nothing broke, not that what was asked for is right. */
    return a->test.is_found || a->asked.new_test.is_blind || is_recorded ? "changed" : "done";
}

/* Says whether something is missing by that. */
static bool tell_unread(const agent *a, base_buf *out)
{
    base_buf names = {0};
    const uint32_t n = agent__list_unread(a, &names);
    if (n) base_buf_printf(out, " Nothing in the tree reads %s.", names.data);
    base_buf_free(&names);
    return n && agent__should_be_read(a);
}

/* Says whether a function that was written for this change is used by nothing. */
static bool tell_unused(const agent *a, base_buf *out)
{
    base_buf names = {0};
    const uint32_t n = agent__list_unused(a, &names);
    if (n) base_buf_printf(out, " Nothing in the tree uses what is new: %s.", names.data);
    base_buf_free(&names);
    return n > 0;
}

void agent__tell_outcome(agent *a)
{
    const agent_asked *x = &a->asked;
    if (!x->change) return;
    base_buf text = {0};
    const char *state = "nothing";
    if (!x->n_changed) {
        base_buf_puts(&text, a->denied || x->refused ? "Nothing was changed: the change was not approved."
                             : x->is_open ? "Nothing was changed: say which one is meant, and it is done."
                             : x->is_told ? "Nothing was changed in the tree."
                                          : "Nothing was changed in the tree, whatever the answer says.");
        tell_refusal(x, &text);
    } else {
        bool is_partial = tell_changed(a, &text);
        state = tell_judged(a, &text);
        is_partial |= tell_unread(a, &text);
        is_partial |= tell_unused(a, &text);
        const size_t plain = text.len;
        agent__put_unfounded(a, &text);
        is_partial |= text.len > plain;
        if (is_partial && strcmp(state, "failing") != 0) state = "partial";
    }
    agent__emit(a, &(agent_event){.type = AGENT_EVENT_outcome,
                       .outcome = {.turn = a->turn, .state = state, .text = text.data}});
    base_buf_free(&text);
}
