/*
 * Is what was written for "add a test for X" a test of X? One that does not write X, or is its neighbour's text under
 * another name, is refused once. One that passes must fail when its subject is broken: in a copy of the
 * tree small faults are put into it (mutants.c), and the test runs there; where it notices none, the person is told.
 * Where the turn changed the subject, the fault is its text before that: the test has to tell the one from the other.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/asked/asked.h"
#include "agent/judge/judge.h"
#include "agent/newtest/newtest.h"
#include "agent/session/tell.h"
#include "agent/words/request_words.h"
#include "base/mem.h"
#include "base/path.h"
#include "code/code.h"
#include "tools/run/scratch.h"

enum { TEST_MS = 60000, TEST_BYTES = 2400 };

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
    if (new && t->example && !tool_workspace_read(a->workspace, t->path, NEWTEST_MAX_FILE, &file, NULL) &&
        file.data)
        old = text_behind_name(a, t->path, file.data, file.len, t->example);
    const bool is_so = old && new && !strcmp(old, new);
    base_buf_free(&file);
    free(old);
    free(new);
    return is_so;
}

static void put_squeezed(const char *text, size_t n, base_buf *out)
{
    for (size_t i = 0; i < n; i++)
        if (!isspace((unsigned char)text[i])) base_buf_putc(out, text[i]);
}

/* Script: are the lines behind the first, which stands there already, in their file once? Its tests have no names that differ. */
static bool is_script_copy(const agent *a, const agent_new_test *t, base_str text)
{
    enum { LEAST = 40 }; /* "it('works', () => {" may come again */
    const char *line = memchr(text.ptr, '\n', text.len);
    base_buf file = {0}, there = {0}, fresh = {0};
    if (!t->line || t->is_row || !line || !agent__is_script(t->path)) return false;
    put_squeezed(line, text.len - (size_t)(line - text.ptr), &fresh);
    if (!tool_workspace_read(a->workspace, t->path, NEWTEST_MAX_FILE, &file, NULL) && file.data)
        put_squeezed(file.data, file.len, &there);
    const bool is_so =
        fresh.len >= LEAST && there.len && memmem(there.data, there.len, fresh.data, fresh.len);
    base_buf_free(&file);
    base_buf_free(&there);
    base_buf_free(&fresh);
    return is_so;
}

/* Would the call write over a test that stands there, where a new one is asked for? */
static bool is_over_another(const agent *a, const char *name)
{
    const agent_new_test *t = &a->asked.new_test;
    return a->asked.test_alone && !agent__is_changed(a, t->path) && !strncasecmp(name, "test", 4) &&
           !agent__names_word(a->request, name) &&
           code_index_is_defined(tool_workspace_index(a->workspace), name);
}

/* A test of the file that the new text of all of it leaves out. The caller frees; NULL: none. */
static char *lost_test(const agent *a, const char *path, base_str text)
{
    base_buf old = {0};
    char *lost = NULL;
    uint32_t at;
    if (!path || !code_path_is_test(path) ||
        tool_workspace_read(a->workspace, path, NEWTEST_MAX_FILE, &old, NULL) || !old.data) {
        base_buf_free(&old);
        return NULL;
    }
    code_grammars *g = tool_workspace_grammars(a->workspace);
    code_file *before = code_parse(g, path, old.data, old.len),
              *after = code_parse(g, path, text.ptr, text.len);
    for (uint32_t i = 0; i < before->n_definitions && !lost; i++) {
        const code_definition *d = &before->definitions[i];
        if (agent__is_test_definition(d, path, &old) && !code_find_definition(after, d->name, &at, 1))
            lost = base_xstrdup(d->name);
    }
    code_file_free(before);
    code_file_free(after);
    base_buf_free(&old);
    return lost;
}

char *agent__why_no_test(const agent *a, const base_json *arguments, base_str text)
{
    const agent_new_test *t = &a->asked.new_test;
    const char *name = base_json_str(arguments, "name", NULL);
    base_buf why = {0};
    if (!t->path || !t->subject || !t->name || t->rows || t->is_refused || !text.ptr) return NULL;
    if (t->is_file) {
        if (is_script_copy(a, t, text))
            base_buf_puts(&why, "it is the text of a test that stands there once more");
        return why.len ? base_buf_take(&why) : NULL;
    }
    if (!name) {
        char *lost = a->asked.test_alone ? lost_test(a, base_json_str(arguments, "path", NULL), text) : NULL;
        if (lost) base_buf_printf(&why, "%s stands there, and this text leaves it out", lost);
        free(lost);
        return why.len ? base_buf_take(&why) : NULL;
    }
    if (strcmp(code_last_name(name), t->name) != 0) {
        if (is_over_another(a, code_last_name(name)))
            base_buf_printf(&why, "%s stands there and tests something else", code_last_name(name));
        return why.len ? base_buf_take(&why) : NULL;
    }
    const char *subject = code_last_name(t->subject);
    const bool is_sure = agent__names_word(a->request, subject) && *subject != '_';
    if (is_sure && !has_name(t->path, text.ptr, text.len, subject))
        base_buf_printf(&why, "%s does not call %s, which it is to test", t->name, subject);
    else if (is_copy(a, t, text))
        base_buf_printf(&why, "%s is the text of %s once more", t->name, t->example);
    return why.len ? base_buf_take(&why) : NULL;
}

/* --- behind it ------------------------------------------------------------------------------------------ */

/* What a new test is of, in the text of its file: bytes [from, to). */
typedef struct subject {
    char *path;
    base_buf text;
    size_t from, to;
} subject;

static void subject_free(subject *s)
{
    free(s->path);
    base_buf_free(&s->text);
}

/* with: the text of the new test's file, where the subject may stand too; NULL: as it is in the tree. false: not found. */
static bool read_subject(const agent *a, const base_buf *with, subject *ret)
{
    const agent_new_test *t = &a->asked.new_test;
    enum { MOST = 8 };
    code_place *places = NULL;
    uint32_t at[MOST];
    *ret = (subject){0};
    const uint32_t n = code_index_define(tool_workspace_index(a->workspace), t->subject, &places);
    for (uint32_t i = 0; i < n && !ret->path; i++)
        if (agent__is_code_place(&places[i])) ret->path = base_xstrdup(places[i].path);
    code_places_free(places, n);
    if (!ret->path) return false;
    if (with && !strcmp(ret->path, t->path))
        base_buf_add(&ret->text, with->data, with->len);
    else if (tool_workspace_read(a->workspace, ret->path, NEWTEST_MAX_FILE, &ret->text, NULL))
        return false;
    if (!ret->text.data) return false;
    code_file *f =
        code_parse(tool_workspace_grammars(a->workspace), ret->path, ret->text.data, ret->text.len);
    const uint32_t n_found = code_find_definition(f, t->subject, at, MOST);
    const bool found = n_found >= 1;
    if (found) { /* Python: behind its overloads stands what is done */
        const uint32_t last = n_found < MOST ? n_found - 1 : MOST - 1;
        const code_definition *d = &f->definitions[at[base_ends_with(ret->path, ".py") ? last : 0]];
        ret->from = d->body_to > d->body_from ? d->body_from : d->from;
        ret->to = d->to;
    }
    code_file_free(f);
    return found && ret->to <= ret->text.len;
}

typedef struct {
    bool fails;    /* the file of the new test fails */
    bool names;    /* and what it prints names the new test, or it does not end */
    bool is_alone; /* no other test ran */
} copy_verdict;

/*
 * Runs the new test in the copy, alone where that can be: others of its file notice what it does not. A file has this text there.
 * test: the text of its own file (NULL: as the tree has it).
 */
static int run_with(agent *a, tool_scratch *s, const base_buf *test, const char *path, const base_buf *text,
    const char *name, copy_verdict *verdict, base_err *err)
{
    tool_result result = {.exit_code = -1};
    const tool_limits limits = {.result_bytes = TEST_BYTES, .shell_ms = TEST_MS, .cancel = a->cancel};
    int rc = tool_scratch_put(s, path, text->data, text->len, err);
    base_buf command = {0};
    agent__put_test_alone(a->test.command, name, &command);
    if (!rc) rc = tool_scratch_run(s, command.data, &limits, &result, err);
    verdict->is_alone = strcmp(command.data, a->test.command) != 0;
    base_buf_free(&command);
    char *printed = rc ? NULL : agent__find_printed_failure(a, test, result.text.data);
    verdict->fails = !rc && (result.status != TOOL_OK || printed);
    verdict->names = !rc && ((result.text.data && strstr(result.text.data, name)) ||
                                result.status == TOOL_TIMEOUT || printed);
    free(printed);
    tool_result_free(&result);
    return rc;
}

/* Did this turn change the subject, which stood in the tree before and in another file than the test? */
static bool has_changed_subject(const agent *a, const subject *sub)
{
    const agent_asked *x = &a->asked;
    if (!agent__is_changed(a, sub->path) || !strcmp(sub->path, x->new_test.path)) return false;
    for (uint32_t i = 0; i < x->n_wishes; i++)
        if (x->wishes[i].kind == AGENT_WISH_STANDS &&
            !strcmp(code_last_name(x->wishes[i].name), code_last_name(x->new_test.subject)))
            return false;
    return true;
}

/* The files that this turn changed, as the tree has them: the copy had them as they were before. */
static int put_changes(agent *a, tool_scratch *s, base_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < a->asked.n_changed && !rc; i++) {
        const char *path = a->asked.changed[i];
        base_buf text = {0};
        rc = tool_workspace_read(a->workspace, path, NEWTEST_MAX_FILE, &text, err);
        if (!rc) rc = tool_scratch_put(s, path, text.data ? text.data : "", text.len, err);
        base_buf_free(&text);
    }
    return rc;
}

/* The new test, `test` being its file's text, against the tree as it was before this turn. */
static int notice_old_text(agent *a, tool_scratch *s, const base_buf *test, agent_noticed *ret, base_err *err)
{
    const agent_new_test *t = &a->asked.new_test;
    copy_verdict old = {0}, whole = {0};
    int rc = tool_scratch_put_before(s, a->workspace, err);
    if (!rc) rc = run_with(a, s, test, t->path, test, t->name, &old, err);
    if (!rc) rc = put_changes(a, s, err);
    if (!rc && old.fails && !old.names) rc = run_with(a, s, test, t->path, test, t->name, &whole, err);
    if (!rc && whole.fails)
        rc = base_fail(err, BASE_E_STATE, "its test file fails in a copy of the tree as it is");
    *ret = (agent_noticed){.n = old.fails, .of = 1, .told = base_xstrdup("the text before the change")};
    return rc;
}

static int notice_mutants(
    agent *a, tool_scratch *s, const base_buf *test, const subject *sub, agent_noticed *ret, base_err *err)
{
    enum { MOST = 3 };
    agent_mutant all[MOST];
    bool has_aimed = false, hits_aimed = false;
    int rc = 0;
    const char *language = code_language(sub->path, sub->text.data, sub->text.len);
    agent_word claim = {0, strlen(a->request)};
    agent__find_test_claim(a->request, &claim);
    char *about = agent__copy_word(a->request, claim);
    const size_t n = agent__mutants(language, &sub->text, sub->from, sub->to, about, all, MOST);
    free(about);
    for (size_t i = 0; i < n && !rc; i++) {
        base_buf text = {0}, told = {0};
        copy_verdict broken = {0}, whole = {0};
        agent__put_mutant(&sub->text, &all[i], &text);
        agent__tell_mutant(&sub->text, &all[i], &told);
        rc = run_with(a, s, test, sub->path, &text, a->asked.new_test.name, &broken, err);
        /* Something else may fail in a copy, which says nothing: then it fails there unbroken too. */
        if (!rc && broken.fails && !broken.names && !ret->n)
            rc = run_with(a, s, test, sub->path, &sub->text, a->asked.new_test.name, &whole, err);
        if (!rc && whole.fails)
            rc = base_fail(err, BASE_E_STATE, "its test file fails in a copy of the tree as it is");
        /* Where it runs alone and fails without being named, the fault does not compile, which says nothing. */
        const bool is_fault = !broken.fails || broken.names || !broken.is_alone;
        const bool is_noticed = is_fault && broken.fails;
        ret->of += is_fault;
        has_aimed |= is_fault && all[i].is_aimed;
        hits_aimed |= is_noticed && all[i].is_aimed;
        if (is_fault && (!ret->told || (is_noticed && !ret->n && !(has_aimed && !hits_aimed)))) {
            free(ret->told);
            ret->told = base_xstrdup(told.data);
        }
        ret->n += is_noticed;
        base_buf_free(&text);
        base_buf_free(&told);
    }
    ret->misses_aim = has_aimed && !hits_aimed;
    agent__mutants_free(all, n);
    return rc;
}

int agent__notice_faults(agent *a, tool_scratch *s, const base_buf *with, agent_noticed *ret, base_err *err)
{
    const agent_new_test *t = &a->asked.new_test;
    base_buf test = {0};
    subject sub;
    int rc = 0;
    *ret = (agent_noticed){0};
    const bool found = read_subject(a, with, &sub);
    if (found && has_changed_subject(a, &sub)) {
        if (with)
            base_buf_add(&test, with->data, with->len);
        else
            rc = tool_workspace_read(a->workspace, t->path, NEWTEST_MAX_FILE, &test, err);
        if (!rc) rc = notice_old_text(a, s, &test, ret, err);
    } else if (found) {
        rc = notice_mutants(a, s, with, &sub, ret, err);
    }
    base_buf_free(&test);
    subject_free(&sub);
    return rc;
}

/* "__add__" of Python: an operator or a built-in function calls it, and nobody writes its name. */
static bool is_called_unnamed(const char *name)
{
    return !strncmp(name, "__", 2) && base_ends_with(name, "__");
}

/* Does the new test, as it stands in its file, write the subject's name? True where it is not found. */
static bool mentions_subject(const agent *a, const agent_new_test *t)
{
    const char *name = code_last_name(t->subject);
    base_buf text = {0};
    bool is_so = true;
    uint32_t at;
    if (t->is_file || t->rows || is_called_unnamed(name) ||
        tool_workspace_read(a->workspace, t->path, NEWTEST_MAX_FILE, &text, NULL) || !text.data)
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
    agent_noticed noticed = {0};
    tool_scratch *scratch = NULL;
    base_err why = {0};
    /* A compiler notices no fault. */
    if (!t->subject || !a->test.command || a->test.words || !a->fix.passed || a->denied) return;
    if (!mentions_subject(a, t)) {
        t->is_blind = true;
        agent__notice(a, "the new test does not write %s: it tests something else", t->subject);
        return;
    }
    int rc = 0;
    if (t->fault && !t->n_put_right) /* it stands as the candidate did */
        noticed = (agent_noticed){.n = t->notices || t->misses_aim,
            .of = 1,
            .misses_aim = t->misses_aim,
            .told = base_xstrdup(t->fault)};
    else
        rc = tool_scratch_make(a->workspace, a->test.in_copy, &scratch, a->cancel, &why);
    if (!rc && !noticed.of) rc = agent__notice_faults(a, scratch, NULL, &noticed, &why);
    tool_scratch_free(scratch);
    if (rc)
        agent__notice(
            a, "whether the new test notices a broken %s could not be tried: %s", t->subject, why.msg);
    else if (noticed.n && !noticed.misses_aim)
        agent__notice(a, "with %s in %s the test file fails, as it should", noticed.told, t->subject);
    else if (noticed.of) {
        t->is_blind = true;
        agent__notice(a, "the new test does not notice %s in %s: it may test %s", noticed.told, t->subject,
            noticed.n ? "something else than was asked for" : "nothing");
    }
    free(noticed.told);
}
