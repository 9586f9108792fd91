/* The call that writes a new test, begun as far as the program knows it (contract: newtest.h). */
#include <string.h>

#include "agent/asked/asked.h"
#include "agent/call/prompt.h"
#include "agent/newtest/newtest.h"
#include "base/mem.h"
#include "base/path.h"
#include "code/code.h"

/* What came of it before did not test its subject: its name stands in front of the lines that are to. */
static bool names_subject(const agent_new_test *t, const char *claim)
{
    return t->is_refused && !t->begins && !*claim;
}

static void begin_python(const agent_new_test *t, const char *claim, base_buf *body, base_buf *behind)
{
    const char *self = t->holder ? "self" : "";
    if (t->begins) {
        const size_t head = strcspn(t->begins, "\n"); /* of what stands behind the name */
        base_buf_printf(body, "def %s(%.*s\n%s%s", t->name, (int)head, t->begins, claim,
            t->begins[head] ? t->begins + head + 1 : "");
    } else if (t->assertion) {
        base_buf_printf(body, "def %s(%s):\n%s    %s", t->name, self, claim, t->assertion);
    } else {
        base_buf_printf(body, "def %s(%s", t->name, self);
        /* A method of a class of tests is given nothing but itself; a function may be given fixtures, which the model names. */
        if (t->holder && *claim) base_buf_printf(body, "):\n%s", claim);
        if (!t->holder) base_buf_puts(behind, claim);
        if (names_subject(t, claim)) base_buf_printf(body, "):\n    # %s", code_last_name(t->subject));
    }
}

static void begin_go(const agent_new_test *t, const char *claim, base_buf *body, base_buf *behind)
{
    base_buf_printf(body, "func %s(t *testing.T) {\n%s%s", t->name, t->setup ? t->setup : "", claim);
    if (t->assertion) base_buf_printf(body, "\t%s", t->assertion);
    if (!t->assertion && names_subject(t, claim))
        base_buf_printf(body, "\t// %s", code_last_name(t->subject));
}

static void begin_rust(const agent_new_test *t, const char *claim, base_buf *body, base_buf *behind)
{
    base_buf_printf(
        body, "#[test]\nfn %s() {\n%s    %s", t->name, claim, t->assertion ? t->assertion : "assert");
}

/* C, Java: what is in front of a test's name is too different from tree to tree; the example's was taken. */
static void begin_head(const agent_new_test *t, const char *claim, base_buf *body, base_buf *behind)
{
    base_buf_printf(body, "%s%s%s", t->head, t->setup ? t->setup : "", claim);
}

/* How the languages write a test; claim: a line of comment, or "". */
static const struct form {
    const char *ending, *language;
    const char *indent, *comment, *comment_end;
    bool needs_head, has_holders; /* has_holders: "Type.test" is how a test in a type is named */
    void (*begin)(const agent_new_test *t, const char *claim, base_buf *body, base_buf *behind);
} forms[] = {
    {".py", "python", "    ", "#", "", false, true, begin_python},
    {".go", "go", "\t", "//", "", false, false, begin_go},
    {".rs", "rust", "    ", "//", "", false, true, begin_rust},
    {".java", "java", "    ", "//", "", true, true, begin_head},
    {".c", "c", "    ", "/*", " */", true, false, begin_head},
};

static const struct form *form_of(const agent_new_test *t)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (base_ends_with(t->path, forms[i].ending) && (t->head || !forms[i].needs_head)) return &forms[i];
    return NULL;
}

/* A line of comment that says what the new test is to show; nothing where the request does not say it. */
static void put_comment(const struct form *f, const char *request, base_buf *out)
{
    base_buf claim = {0};
    agent__put_claim(request, &claim);
    if (claim.len) base_buf_printf(out, "%s%s %s%s\n", f->indent, f->comment, claim.data, f->comment_end);
    base_buf_free(&claim);
}

/* The call up to its text. */
static void put_call(const agent *a, const struct form *f, base_buf *out)
{
    const agent_new_test *t = &a->asked.new_test;
    const bool in_holder = t->holder && f->has_holders;
    base_buf name = {0};
    base_buf_printf(&name, "%s%s%s", in_holder ? t->holder : "", in_holder ? "." : "", t->name);
    const agent_definition like = {.path = t->path, .name = name.data, .language = (char *)f->language};
    agent__put_call(a, &like, out);
    base_buf_free(&name);
}

bool agent__open_new_test(agent *a, agent_opening *opening)
{
    agent_new_test *t = &a->asked.new_test;
    if (!t->path || t->begun || a->info.strong) return false;
    const struct form *f = t->is_file ? NULL : form_of(t);
    if (!f && !t->is_file) return false;
    t->begun = true;
    if (t->is_file) return agent__open_script_test(a, opening);
    base_buf claim = {0}, body = {0};
    agent_opening_free(opening);
    put_call(a, f, &opening->call);
    if (!t->rows) put_comment(f, a->request, &claim);
    if (t->rows)
        base_buf_puts(&body, t->rows);
    else
        f->begin(t, claim.len ? claim.data : "", &body, &opening->behind);
    agent_prompt_put_payload(a->info.tools, body.data, body.len, &opening->call);
    base_buf_free(&claim);
    base_buf_free(&body);
    return true;
}

bool agent__put_whole_new_test(agent *a, const char *body, base_buf *ret)
{
    const agent_new_test *t = &a->asked.new_test;
    const struct form *f = t->is_file ? NULL : form_of(t);
    base_buf text = {0};
    if (model_tools_are_marked(a->info.tools) || t->rows || (!f && !t->is_file)) return false;
    if (t->is_file) {
        if (!agent__put_whole_script_test(a, body, ret)) return false;
    } else {
        put_call(a, f, ret);
        if (f->begin == begin_python && t->begins) /* with the fixtures of the one beside it */
            base_buf_printf(
                &text, "def %s(%.*s\n%s", t->name, (int)strcspn(t->begins, "\n"), t->begins, body);
        else if (f->begin == begin_python)
            base_buf_printf(&text, "def %s(%s):\n%s", t->name, t->holder ? "self" : "", body);
        else if (f->begin == begin_go)
            base_buf_printf(&text, "func %s(t *testing.T) {\n%s}\n", t->name, body);
        else if (f->begin == begin_rust)
            base_buf_printf(&text, "#[test]\nfn %s() {\n%s}\n", t->name, body);
        else
            base_buf_printf(&text, "%s%s}\n", t->head, body);
        base_buf_add(ret, text.data, text.len);
        base_buf_free(&text);
    }
    base_buf_puts(ret, "```\n");
    return !memchr(ret->data, AGENT_PROMPT_MARK, ret->len);
}

int agent__open_further(agent *a, bool further, agent_opening *opening, base_err *err)
{
    a->asked.new_test.begun = false;
    if (agent__open_new_test(a, opening)) return 0;
    return agent__open_call(a, further, opening, err);
}
