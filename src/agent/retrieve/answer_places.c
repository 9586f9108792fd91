/*
 * What the index says of an answer's names and places: each in a row below it, a wrong file or line put right, and who
 * calls a function where that was asked for, since a small model names callers that are none.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/retrieve/retrieve.h"
#include "agent/session/tell.h"
#include "agent/words/callers_question.h"
#include "agent/words/request_words.h"
#include "base/mem.h"
#include "code/corrections.h"
#include "code/places.h"

enum { MAX_TOLD_CALLERS = 8 };

void agent__note_answered(agent *a, const agent_place_row *places, size_t n)
{
    free(a->answered);
    a->answered = NULL;
    for (size_t i = 0; i < n && !a->answered; i++)
        if (places[i].name && *places[i].name && !strcmp(places[i].status, "defined"))
            a->answered = base_xstrdup(places[i].name);
}

/* "sdsfree is called by main (main.c:3), test (test.c:8) and 4 more": of a symbol that the tree defines. */
static void put_callers(const agent *a, const char *symbol, base_buf *ret)
{
    const code_index *x = tool_workspace_index(a->workspace);
    if (!code_index_is_defined(x, symbol)) return;
    code_caller *callers;
    const uint32_t n = code_index_callers(x, symbol, MAX_TOLD_CALLERS, &callers);
    const uint32_t told = n < MAX_TOLD_CALLERS ? n : MAX_TOLD_CALLERS;
    const char *where =
        tool_workspace_is_partial(a->workspace) ? "the part of the tree that is indexed" : "the tree";
    if (!n)
        base_buf_printf(ret, "%s: no call of it stands in %s", symbol, where);
    else
        base_buf_printf(ret, "%s is called by ", symbol);
    for (uint32_t i = 0; i < told; i++)
        base_buf_printf(ret, "%s%s (%s:%u)",
            !i           ? ""
            : i + 1 == n ? " and "
                         : ", ",
            *callers[i].name ? callers[i].name : "a line outside of all functions", callers[i].path,
            callers[i].line);
    if (n > told) base_buf_printf(ret, " and %u more", n - told);
    code_callers_free(callers, told);
}

/*
 * The function whose callers the request asks for: by its name, else "it": the first that this answer named, or the one
 * before where the request itself does not say what "it" is. NULL: none.
 */
static char *asked_about(const agent *a, const char *named_before)
{
    agent_callers_question q;
    if (!a->request || !agent_read_callers_question(a->request, &q)) return NULL;
    const char *name = NULL;
    for (uint32_t i = 0; i < q.n && !name; i++)
        if (code_index_is_defined(tool_workspace_index(a->workspace), q.names[i])) name = q.names[i];
    if (!name && q.of_it) name = q.described ? a->answered : named_before;
    char *ret = name ? base_xstrdup(name) : NULL;
    agent_callers_question_free(&q);
    return ret;
}

/* The definition of which the request asks whether something uses it, as it is in the tree; NULL: none. */
static char *asked_of_use(const agent *a)
{
    char *names[AGENT_MAX_ASKED_USES];
    const uint32_t n = a->request ? agent__find_asked_uses(a, a->request, names) : 0;
    char *ret = n ? base_xstrdup(names[0]) : NULL;
    agent__asked_uses_free(names, n);
    return ret;
}

/* Was it renamed or deleted in this turn? What is left of it in the tree is the text of documents and strings. */
static bool went(const agent *a, const char *name)
{
    const agent_asked *x = &a->asked;
    bool is_so = x->went && !strcmp(code_last_name(x->went), code_last_name(name));
    for (uint32_t i = 0; i < x->n_wishes && !is_so; i++)
        is_so = x->wishes[i].kind == AGENT_WISH_GOES &&
                !strcmp(code_last_name(x->wishes[i].name), code_last_name(name));
    for (uint32_t i = 0; i < x->n_listed && !is_so; i++)
        is_so = x->listed[i].is_done && !strcmp(code_last_name(x->listed[i].name), code_last_name(name));
    return is_so;
}

/* A change of this turn made it so: the answer speaks of what was, and nothing about it is wrong. */
static bool speaks_of_before(const agent *a, const code_checked *c)
{
    if (c->state == CODE_PLACE_MENTIONED && a->asked.n_changed && went(a, c->name)) return true;
    return a->asked.n_operations && c->state == CODE_PLACE_MISSING && agent__names_word(a->request, c->name);
}

/* A file that the index does not read, for want of a grammar or for its size, is there all the same. */
static bool is_unread_file(const agent *a, const code_checked *c)
{
    const char **paths = NULL;
    size_t n = 0;
    bool is = false;
    if (c->state != CODE_PLACE_MISSING || strcmp(c->what, "file") != 0) return false;
    if (tool_workspace_files(a->workspace, &paths, &n)) return false;
    for (size_t i = 0; i < n && !is; i++) is = !strcmp(paths[i], c->name);
    free(paths);
    return is;
}

static void check_places(agent *a, const char *text, size_t n)
{
    static const char *const words[] = {[CODE_PLACE_DEFINED] = "defined",
        [CODE_PLACE_FILE] = "file",
        [CODE_PLACE_MENTIONED] = "mentioned",
        [CODE_PLACE_MISSING] = "missing",
        [CODE_PLACE_BAD_LINE] = "bad-line"};
    code_checked *checked = NULL;
    agent_place_row items[AGENT_MAX_PLACES + 1];
    base_buf texts[AGENT_MAX_PLACES + 1] = {{0}};
    const uint32_t n_checked =
        code_places_check(tool_workspace_index(a->workspace), text, n, AGENT_MAX_PLACES, &checked);
    const bool is_partial = n_checked && tool_workspace_is_partial(a->workspace);
    uint32_t count = 0;
    for (uint32_t i = 0; i < n_checked; i++) {
        code_checked *c = &checked[i];
        if (speaks_of_before(a, c) || is_unread_file(a, c)) continue;
        if (a->asked.n_operations) c->was_cited_elsewhere = false; /* "moved f from a.py to b.py" */
        base_buf *line = &texts[count];
        code_places_line(c, line);
        if (is_partial && c->state == CODE_PLACE_MISSING)
            base_buf_puts(line, " as far as it is indexed (not all of it is)");
        const bool is_slip = c->meant && !is_partial;
        items[count++] =
            (agent_place_row){is_slip ? c->meant : c->name, words[is_slip ? CODE_PLACE_DEFINED : c->state],
                c->path, c->line, c->line ? c->line_end : 0, line->data ? line->data : ""};
    }
    char *before = a->answered;
    a->answered = NULL;
    agent__note_answered(a, items, count);
    char *asked = asked_of_use(a), *said = base_xstrndup(text, n);
    const bool is_of_use = asked && agent__tell_uses(a, asked, said, &texts[count]);
    if (!asked) asked = asked_about(a, before);
    if (asked && !is_of_use) put_callers(a, asked, &texts[count]);
    if (texts[count].len) {
        items[count] = (agent_place_row){.name = asked, .status = "callers", .text = texts[count].data};
        count++;
    }
    if (count)
        agent__emit(a,
            &(agent_event){.type = AGENT_EVENT_places, .places = {.turn = a->turn, .items = {items, count}}});
    for (uint32_t i = 0; i < count; i++) base_buf_free(&texts[i]);
    free(before);
    free(asked);
    free(said);
    code_places_checked_free(checked, n_checked);
}

/* The answer's event keeps what the model said; what is put right in it is told by itself. */
static void correct_answer(agent *a, const char *text, size_t n)
{
    base_buf corrected = {0}, what = {0};
    const agent_asked *asked = &a->asked;
    if (code_correct_answer(tool_workspace_index(a->workspace), text, n, asked->changed, asked->n_changed,
            !tool_workspace_is_partial(a->workspace), &corrected, &what))
        agent__emit(a, &(agent_event){.type = AGENT_EVENT_correction,
                           .correction = {.turn = a->turn, .text = corrected.data, .what = what.data}});
    base_buf_free(&corrected);
    base_buf_free(&what);
}

void agent__tell_places(agent *a, const char *text, size_t n)
{
    if (!a->asked.n_operations) correct_answer(a, text, n);
    check_places(a, text, n);
}
