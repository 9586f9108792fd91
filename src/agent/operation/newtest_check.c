/*
 * Is what was written for "add a test for X" a test of X? One that does not write X, or is its neighbour's text under
 * another name, is refused once. One that passes must fail when its subject is broken: one operator is turned in a copy of
 * the tree and the test runs there; where it does not notice, the person is told.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "agent/judge/judge.h"
#include "agent/operation/operation.h"
#include "agent/session/tell.h"
#include "agent/words/request_words.h"
#include "base/mem.h"
#include "code/code.h"
#include "tools/run/scratch.h"

enum { TEST_MS = 60000, TEST_BYTES = 2400, MAX_FILE = 1 << 20 };

/* --- before it is written ------------------------------------------------------------------------------- */

/* Outside of comments. */
static bool has_name(const char *path, const char *text, size_t n, const char *name)
{
    char *plain = code_blank_comments(code_language(path, "", 0), text, n);
    const bool is_there = code_has_identifier(plain, n, name);
    free(plain);
    return is_there;
}

/* What stands behind the definition's name, without white space. The caller frees; NULL: it is not there. */
static char *text_behind_name(const agent *a, const char *path, const char *text, size_t n, const char *name)
{
    code_file *f = code_parse(tool_workspace_grammars(a->workspace), path, text, n);
    base_buf out = {0};
    uint32_t at;
    if (code_find_definition(f, name, &at, 1) == 1) {
        const code_definition *d = &f->definitions[at];
        for (size_t i = d->name_from + strlen(d->name); i < d->to && i < n; i++)
            if (!isspace((unsigned char)text[i])) base_buf_putc(&out, text[i]);
    }
    code_file_free(f);
    return out.len ? base_buf_take(&out) : NULL;
}

static bool is_copy(const agent *a, const agent_new_test *t, base_str text)
{
    base_buf file = {0};
    char *old = NULL, *new = text_behind_name(a, t->path, text.ptr, text.len, t->name);
    if (new && t->example && !tool_workspace_read(a->workspace, t->path, MAX_FILE, &file, NULL) && file.data)
        old = text_behind_name(a, t->path, file.data, file.len, t->example);
    const bool is_so = old && new && !strcmp(old, new);
    base_buf_free(&file);
    free(old);
    free(new);
    return is_so;
}

char *agent__why_no_test(const agent *a, const base_json *arguments, base_str text)
{
    const agent_new_test *t = &a->asked.new_test;
    const char *name = base_json_str(arguments, "name", NULL);
    base_buf why = {0};
    if (!t->subject || !t->name || t->rows || t->is_file || t->is_refused || !text.ptr || !name ||
        strcmp(code_last_name(name), t->name) != 0)
        return NULL;
    const char *subject = code_last_name(t->subject);
    const bool is_sure = agent__names_word(a->request, subject) && *subject != '_';
    if (is_sure && !has_name(t->path, text.ptr, text.len, subject))
        base_buf_printf(&why, "%s does not call %s, which it is to test", t->name, subject);
    else if (is_copy(a, t, text))
        base_buf_printf(&why, "%s is the text of %s once more", t->name, t->example);
    return why.len ? base_buf_take(&why) : NULL;
}

/* --- behind it ------------------------------------------------------------------------------------------ */

/* One operator of the body turned into another, in no comment; false: it has none that is known. */
static bool break_body(const char *language, base_buf *text, size_t from, size_t to, base_buf *what)
{
    static const char *const turns[][2] = {{" == ", " != "}, {" != ", " == "}, {" >= ", " < "},
        {" <= ", " > "}, {" > ", " <= "}, {" < ", " >= "}, {" + ", " - "}, {" - ", " + "}, {" and ", " or "},
        {" && ", " || "}, {" || ", " && "}, {" % ", " + "}, {" * ", " + "}, {" is None", " is not None"},
        {" not in ", " in "}, {"return True", "return False"}, {"return False", "return True"},
        {"return true", "return false"}, {"return false", "return true"}};
    char *plain = code_blank_comments(language, text->data, text->len);
    bool is_broken = false;
    for (size_t i = 0; !is_broken && i < sizeof turns / sizeof *turns; i++) {
        size_t n = strlen(turns[i][0]);
        const char *at = memmem(plain + from, to - from, turns[i][0], n);
        if (!at) continue;
        size_t byte = (size_t)(at - plain);
        base_buf out = {0};
        base_buf_add(&out, text->data, byte);
        base_buf_puts(&out, turns[i][1]);
        base_buf_add(&out, text->data + byte + n, text->len - byte - n);
        base_buf_free(text);
        *text = out;
        base_buf_printf(what, "\"%s\" for \"%s\"", turns[i][1], turns[i][0]);
        is_broken = true;
    }
    free(plain);
    return is_broken;
}

typedef struct {
    bool fails; /* the file of the new test fails */
    bool names; /* and what it prints names the new test */
} copy_verdict;

/* Runs the new test's file in a copy of the tree in which its subject is broken (text; NULL: as it is). */
static int run_in_copy(
    agent *a, const char *path, const base_buf *text, const char *name, copy_verdict *verdict, base_err *err)
{
    tool_scratch *scratch = NULL;
    tool_result result = {.exit_code = -1};
    tool_limits limits = {.result_bytes = TEST_BYTES, .shell_ms = TEST_MS, .cancel = a->cancel};
    int rc = tool_scratch_make(a->workspace, a->test.in_copy, &scratch, a->cancel, err);
    if (!rc && text) rc = tool_scratch_put(scratch, path, text->data, text->len, err);
    if (!rc) rc = tool_scratch_run(scratch, a->test.command, &limits, &result, err);
    verdict->fails = !rc && result.status != TOOL_OK;
    verdict->names = !rc && result.text.data && strstr(result.text.data, name);
    tool_result_free(&result);
    tool_scratch_free(scratch);
    return rc;
}

/* Does the new test, as it stands in its file, write the subject's name? True where it is not found. */
static bool mentions_subject(const agent *a, const agent_new_test *t)
{
    const char *name = code_last_name(t->subject);
    base_buf text = {0};
    bool is_so = true;
    uint32_t at;
    if (t->is_file || t->rows || tool_workspace_read(a->workspace, t->path, MAX_FILE, &text, NULL) ||
        !text.data)
        return true;
    code_file *f = code_parse(tool_workspace_grammars(a->workspace), t->path, text.data, text.len);
    if (code_find_definition(f, t->name, &at, 1) == 1) {
        const code_definition *d = &f->definitions[at];
        is_so = d->body_to <= d->body_from || d->body_to > text.len ||
                has_name(t->path, text.data + d->body_from, d->body_to - d->body_from, name);
    }
    code_file_free(f);
    base_buf_free(&text);
    return is_so;
}

void agent__try_new_test(agent *a)
{
    agent_new_test *t = &a->asked.new_test;
    code_place *places = NULL;
    base_buf text = {0}, what = {0};
    base_err why = {0};
    if (!t->subject || !a->test.command || !a->fix.passed || a->denied) return;
    uint32_t n = code_index_define(tool_workspace_index(a->workspace), t->subject, &places);
    const code_place *p = NULL;
    for (uint32_t i = 0; i < n && !p; i++)
        if (agent__is_code_place(&places[i])) p = &places[i];
    copy_verdict broken = {0}, whole = {0};
    if (!mentions_subject(a, t)) {
        t->is_blind = true;
        agent__notice(a, "the new test does not write %s: it tests something else", t->subject);
    } else if (p && !tool_workspace_read(a->workspace, p->path, MAX_FILE, &text, NULL) && p->to <= text.len &&
               break_body(code_language(p->path, text.data, text.len), &text, p->from, p->to, &what)) {
        int rc = run_in_copy(a, p->path, &text, t->name, &broken, &why);
        /* Something else may fail in a copy, which says nothing: then it fails there unbroken too. */
        if (!rc && broken.fails && !broken.names) rc = run_in_copy(a, p->path, NULL, t->name, &whole, &why);
        if (!rc && whole.fails)
            rc = base_fail(&why, BASE_E_STATE, "its test file fails in a copy of the tree as it is");
        if (rc)
            agent__notice(
                a, "whether the new test notices a broken %s could not be tried: %s", t->subject, why.msg);
        else if (broken.fails)
            agent__notice(a, "with %s in %s the test file fails, as it should", what.data, t->subject);
        else {
            t->is_blind = true;
            agent__notice(
                a, "the new test does not notice %s in %s: it may test nothing", what.data, t->subject);
        }
    }
    code_places_free(places, n);
    base_buf_free(&text);
    base_buf_free(&what);
}
