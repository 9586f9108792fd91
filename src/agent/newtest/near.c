/*
 * The test that a new one is written like: one that calls the subject, else one that calls what is near to it, since that
 * one makes such an object. Of Python the new test begins as that one does, up to where the subject is called: a small
 * model that begins it without its subject copies the example.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/newtest/newtest.h"
#include "agent/words/request_words.h"
#include "base/mem.h"
#include "code/code.h"

enum { MAX_OPENING = 1200 };

/* What is tested, and the file that it stands in. */
typedef struct subject {
    base_buf text;
    code_file *file;
    const code_definition *d; /* NULL: not found there */
} subject;

static void read_subject(const agent *a, const char *path, const char *name, subject *ret)
{
    uint32_t at;
    *ret = (subject){.d = NULL};
    if (tool_workspace_read(a->workspace, path, NEWTEST_MAX_FILE, &ret->text, NULL) || !ret->text.data)
        base_buf_puts(&ret->text, "");
    ret->file = code_parse(tool_workspace_grammars(a->workspace), path, ret->text.data, ret->text.len);
    if (code_find_definition(ret->file, name, &at, 1) >= 1) ret->d = &ret->file->definitions[at];
}

static void subject_free(subject *s)
{
    code_file_free(s->file);
    base_buf_free(&s->text);
}

/* Does text[from, to) call the name? */
static bool calls(const base_buf *text, size_t from, size_t to, const char *name, size_t n)
{
    bool is_so = false;
    for (const char *at = text->data + from, *end = text->data + to;
         !is_so && (at = memmem(at, (size_t)(end - at), name, n)) != NULL; at += n)
        is_so = (at == text->data || !code_is_name_byte(at[-1])) && at + n < end && at[n] == '(';
    return is_so;
}

/* How much of what the subject calls, and of the other methods of its type, text[from, to) calls: the former counts twice. */
static unsigned nearness(const subject *s, const base_buf *text, size_t from, size_t to)
{
    unsigned sum = 0;
    size_t at = s->d->body_from, name, end;
    while (code_next_identifier(s->text.data, s->d->body_to, &at, &name, &end))
        if (s->text.data[end] == '(' && !code_is_keyword(s->text.data + name, end - name))
            sum += 2 * calls(text, from, to, s->text.data + name, end - name);
    for (uint32_t i = 0; i < s->file->n_definitions && *s->d->parent; i++) {
        const code_definition *d = &s->file->definitions[i];
        if (d != s->d && !strcmp(d->parent, s->d->parent))
            sum += calls(text, from, to, d->name, strlen(d->name));
    }
    return sum;
}

/* "assert signer" of the line "    assert signer.unsign(...)" that calls what is near; 0: it is no such line. */
static size_t assertion_length(const subject *s, const base_buf *text, size_t from, size_t to)
{
    static const char *const forms[] = {
        "assert ", "self.assertEqual(", "self.assertTrue(", "self.assertFalse("};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        size_t n = strlen(forms[i]), dot = 0, end = from + n;
        if (to - from <= n || memcmp(text->data + from, forms[i], n) != 0) continue;
        for (; end < to && (code_is_name_byte(text->data[end]) || text->data[end] == '.'); end++)
            if (text->data[end] == '.') dot = end;
        if (dot > from + n && end < to && text->data[end] == '(' && nearness(s, text, dot + 1, end + 1))
            return dot - from;
    }
    return 0;
}

/* Does a decorator stand in front of it, or end on the line above it? */
static bool is_decorated(const base_buf *text, const code_definition *d)
{
    size_t line = d->from;
    while (line && text->data[line - 1] != '\n') line--;
    size_t above = line ? line - 1 : 0;
    while (above && text->data[above - 1] != '\n') above--;
    const size_t end = line ? line - 1 : 0, word = above + strspn(text->data + above, " \t");
    return memchr(text->data + d->from, '@', d->name_from - d->from) ||
           (end > word && (text->data[word] == '@' || text->data[end - 1] == ')'));
}

/*
 * "self, signer):\n    signed = signer.sign('x')\n    assert signer.is_expired(": the test's own lines behind its name up to the
 * first that asserts something of such an object, where the subject is called. NULL: it has none, or branches before it.
 */
static char *opening_like(
    const subject *s, const base_buf *text, const code_definition *test, const char *request)
{
    const size_t to = test->to < text->len ? test->to : text->len;
    size_t at = test->name_from + strlen(test->name), indent = SIZE_MAX;
    base_buf out = {0};
    bool is_whole = false;
    if (is_decorated(text, test)) return NULL; /* what that gives it, the new test does not have */
    if (at < to && text->data[at] == '(') {
        const char *end = memmem(text->data + at, to - at, ":\n", 2);
        const size_t head = end ? (size_t)(end - text->data) + 1 : to;
        base_buf_add(&out, text->data + at + 1, head - at - 1);
        at = head + 1;
    }
    while (out.len && at < to && !is_whole && out.len < MAX_OPENING) {
        const char *newline = memchr(text->data + at, '\n', to - at);
        const size_t end = newline ? (size_t)(newline - text->data) : to;
        size_t word = at;
        while (word < end && text->data[word] == ' ') word++;
        if (word < end && indent == SIZE_MAX) indent = word - at;
        const bool is_top = word < end && word - at == indent;
        const size_t n = is_top ? assertion_length(s, text, word, end) : 0;
        if (is_top && !n && (text->data[end - 1] == ':' || !memcmp(text->data + word, "assert", 6))) break;
        if (word < end)
            base_buf_printf(&out, "\n    %.*s", (int)(end - at - indent), text->data + at + indent);
        if (n) {
            size_t object = word + n;
            while (code_is_name_byte(text->data[object - 1]) || text->data[object - 1] == '.') object--;
            const base_str lines = {text->data + test->from, to - test->from};
            out.len -= end - word;
            if (!agent__put_raises(request, lines, &out))
                base_buf_add(&out, text->data + word, object - word);
            base_buf_add(&out, text->data + object, word + n - object);
            base_buf_printf(&out, ".%s(", s->d->name);
            is_whole = true;
        }
        at = end + 1;
    }
    if (is_whole) return base_buf_take(&out);
    base_buf_free(&out);
    return NULL;
}

/* Does text[from, to) write a name that is no keyword argument's: a variable of its test, which the new one does not have? */
static bool uses_names(const base_buf *text, size_t from, size_t to)
{
    static const char *const plain[] = {"True", "False", "None"};
    size_t word, end;
    for (size_t at = from; at < to;) {
        const size_t quote = at + strcspn(text->data + at, "'\"");
        const size_t part = quote < to ? quote : to;
        while (code_next_identifier(text->data, part, &at, &word, &end)) {
            bool is_plain = text->data[end] == '=' && text->data[end + 1] != '=';
            for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
                is_plain |=
                    strlen(plain[i]) == end - word && !memcmp(plain[i], text->data + word, end - word);
            if (!is_plain) return true;
        }
        if (part >= to) break;
        const char *close = memchr(text->data + part + 1, text->data[part], to - part - 1);
        at = close ? (size_t)(close - text->data) + 1 : to;
    }
    return false;
}

/*
 * "    a = NGram(2)" of text[from, to) makes an object of the type out of plain values: that statement, without white space around it.
 * *ret_name: what is set. false: no line does.
 */
static bool find_maker(
    const base_buf *text, size_t from, size_t to, const char *type, base_str *ret, base_str *ret_name)
{
    base_buf call = {0};
    bool found = false;
    base_buf_printf(&call, "%s(", type);
    for (size_t at = from, end; at < to && !found; at = end + 1) {
        const char *newline = memchr(text->data + at, '\n', to - at);
        end = newline ? (size_t)(newline - text->data) : to;
        size_t word = at + strspn(text->data + at, " "), name = word;
        while (name < end && (code_is_name_byte(text->data[name]) || text->data[name] == '.')) name++;
        const char *open = memmem(text->data + word, end > word ? end - word : 0, call.data, call.len);
        found = name > word && name + 3 < end && !memcmp(text->data + name, " = ", 3) && open &&
                text->data[end - 1] == ')' && !code_is_name_byte(open[-1]) &&
                !uses_names(text, (size_t)(open - text->data) + call.len, end - 1);
        *ret = (base_str){text->data + word, end - word};
        *ret_name = (base_str){text->data + word, name - word};
    }
    base_buf_free(&call);
    return found;
}

/* Does text[from, to) call a method of the subject's type on what is called `name`? */
static bool calls_on(const subject *s, const base_buf *text, size_t from, size_t to, base_str name)
{
    bool is_so = false;
    for (uint32_t i = 0; i < s->file->n_definitions && !is_so; i++) {
        const code_definition *d = &s->file->definitions[i];
        base_buf call = {0};
        if (strcmp(d->parent, s->d->parent) != 0) continue;
        base_buf_printf(&call, "%.*s.%s(", (int)name.len, name.ptr, d->name);
        const char *at = memmem(text->data + from, to - from, call.data, call.len);
        is_so = at && !code_is_name_byte(at[-1]) && at[-1] != '.';
        base_buf_free(&call);
    }
    return is_so;
}

/* "pastel):\n    assert pastel.escape(": pytest hands the test such an object, as it does the tests that are there. NULL: no such one. */
static char *opening_given(
    const subject *s, const code_file *f, const base_buf *text, const code_definition *beside)
{
    for (uint32_t i = 0; i <= f->n_definitions; i++) {
        const code_definition *d = i ? &f->definitions[i - 1] : beside; /* the one beside it first */
        size_t at = d->name_from + strlen(d->name), word, end;
        const char *close =
            at < text->len && d->to <= text->len ? memchr(text->data + at, ')', d->to - at) : NULL;
        if (!close || strcmp(d->parent, beside->parent) != 0 || strncmp(d->name, "test", 4) != 0 ||
            is_decorated(text, d))
            continue;
        while (code_next_identifier(text->data, (size_t)(close - text->data), &at, &word, &end)) {
            const base_str name = {text->data + word, end - word};
            if (!calls_on(s, text, (size_t)(close - text->data), d->to, name)) continue;
            base_buf out = {0};
            base_buf_printf(&out, "%s%.*s):\n    assert %.*s.%s(%s", *beside->parent ? "self, " : "",
                (int)name.len, name.ptr, (int)name.len, name.ptr, s->d->name,
                agent__usual_argument(text, s->d->name));
            return base_buf_take(&out);
        }
    }
    return NULL;
}

/* A test of Python of a method: an object as a test of the same class makes it, and an assertion of the call. NULL: none makes one. */
static char *opening_made(const subject *s, const code_file *f, const base_buf *text,
    const code_definition *beside, const char *request)
{
    base_str line = {0}, name = {0};
    const code_definition *maker = NULL;
    for (uint32_t i = 0; i < f->n_definitions && !maker; i++) {
        const code_definition *d = i ? &f->definitions[i - 1] : beside; /* the one beside it first */
        const bool is_near =
            !strcmp(d->parent, beside->parent) && d->to <= text->len && d->body_to > d->body_from;
        if (!is_near || !find_maker(text, d->body_from, d->body_to, s->d->parent, &line, &name)) continue;
        const bool is_own = name.len > 5 && !memcmp(name.ptr, "self.", 5);
        if (is_own == !strcmp(d->name, "setUp")) maker = d; /* "self.x" is there where setUp makes it */
    }
    if (!maker) return NULL;
    base_buf out = {0};
    base_buf_puts(&out, *beside->parent ? "self):\n" : "):\n");
    if (strcmp(maker->name, "setUp") != 0) base_buf_printf(&out, "    %.*s\n", (int)line.len, line.ptr);
    base_buf_printf(&out, "    %s%.*s.%s(",
        memmem(text->data, text->len, "self.assertEqual(", 17) ? "self.assertEqual(" : "assert ",
        (int)name.len, name.ptr, s->d->name);
    static const char *const strings[] = {"string", "strings", NULL};
    const char *opens = agent__usual_argument(text, s->d->name);
    base_buf_puts(&out, !*opens && agent__has_any_word(request, strings) ? "'" : opens);
    return base_buf_take(&out);
}

const code_definition *agent__nearest_test(const agent *a, const code_file *f, const char *path,
    const base_buf *text, const char *name, const char *subject_name, const char *subject_path,
    char **ret_opening, char **ret_setup, char **ret_end)
{
    const code_definition *best = NULL;
    unsigned most = 0;
    subject s;
    read_subject(a, subject_path, subject_name, &s);
    *ret_opening = NULL;
    for (uint32_t i = 0; i < f->n_definitions; i++) {
        const code_definition *d = &f->definitions[i];
        if (d->is_declaration || (d->body_to <= d->body_from && !base_ends_with(path, ".rs"))) continue;
        if (name && !strcmp(d->name, name) && agent__is_test_definition(d, path, text)) {
            best = d;
            free(*ret_opening); /* it calls the subject itself: the new one is to be another */
            *ret_opening = NULL;
            break;
        }
        if (!agent__is_test_definition(d, path, text)) continue;
        const bool is_method = s.d && *s.d->parent && base_ends_with(path, ".py");
        char *opening = is_method ? opening_like(&s, text, d, a->request) : NULL;
        const size_t to = d->to < text->len ? d->to : text->len;
        const unsigned near = (s.d ? 2 * nearness(&s, text, d->from, to) : 0) + (opening != NULL);
        if (!best || near >= most) {
            best = d;
            free(*ret_opening);
            *ret_opening = opening;
            opening = NULL;
        }
        most = near > most ? near : most;
        free(opening);
    }
    if (best && !*ret_opening && s.d && *s.d->parent && base_ends_with(path, ".py") &&
        !is_decorated(text, best) && strcmp(s.d->name, "__init__") != 0)
        *ret_opening = opening_made(&s, f, text, best, a->request);
    if (best && !*ret_opening && s.d && *s.d->parent && base_ends_with(path, ".py"))
        *ret_opening = opening_given(&s, f, text, best);
    *ret_setup = agent__find_setup(&s.text, s.d, path, f, text, best, ret_end);
    subject_free(&s);
    return best;
}
