/* Probes, and the tests that are written from what they print, a language each (contract: probe.h). */
#include "agent/newtest/probe.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "agent/words/values.h"
#include "base/mem.h"
#include "base/path.h"

/*
 * What a probe prints, a line each: "kvist-value 0 0 'a'" is result 0 of the call that is step 0, "kvist-list" the same of an
 * iterator, "kvist-error 0 0 ValueError" what it raised.
 */
#define VALUE "kvist-value "
#define LIST  "kvist-list "
#define ERROR "kvist-error "

typedef const agent_probe_style style;

static bool has(style *y, const char *text)
{
    return y->file->len && memmem(y->file->data, y->file->len, text, strlen(text)) != NULL;
}

static uint32_t count(style *y, const char *text)
{
    uint32_t n = 0;
    const size_t len = strlen(text);
    const char *end = y->file->data + y->file->len;
    for (const char *at = y->file->data; at && (at = memmem(at, (size_t)(end - at), text, len)); at += len)
        n++;
    return n;
}

/* Inside of a string literal of C's family; is_format: of printf's, too. */
static void put_quoted(const char *text, bool is_format, base_buf *out)
{
    for (; *text; text++) {
        if (strchr("\"\\", *text)) base_buf_putc(out, '\\');
        if (is_format && *text == '%') base_buf_putc(out, '%');
        base_buf_putc(out, *text);
    }
}

/* --- Python ---------------------------------------------------------------------------------------------- */

static void probe_python(style *y, const agent_steps *s, base_buf *out)
{
    base_buf_puts(out, "    import ast\n    found = []\n");
    for (uint32_t i = 0; i < s->n; i++) {
        const agent_step *step = &s->steps[i];
        base_buf_puts(out, "    try:\n");
        if (step->kind == AGENT_STEP_LINE)
            base_buf_printf(out, "        %s\n    except Exception:\n        pass\n", step->text);
        else
            base_buf_printf(out,
                "        value = %s\n"
                "        kind = 'list' if hasattr(value, '__next__') else 'value'\n"
                "        value = list(value) if kind == 'list' else value\n"
                "        value = tuple(value) if isinstance(value, tuple) else value\n"
                "        if ast.literal_eval(repr(value)) == value:\n"
                "            found.append('kvist-%%s %u 0 %%s' %% (kind, repr(value)))\n"
                "    except Exception as error:\n"
                "        found.append('kvist-error %u 0 ' + type(error).__name__)\n",
                step->text, i, i);
    }
    base_buf_puts(out, "    raise AssertionError('\\n'.join(found))\n");
}

static void record_python(style *y, const agent_step *step, base_buf *out)
{
    const bool is_unittest = y->is_method && has(y, "self.assert");
    const char *value = step->values[0];
    base_buf call = {0};
    base_buf_printf(&call, step->given == AGENT_GIVES_LIST ? "list(%s)" : "%s", step->text);
    if (step->given == AGENT_GIVES_ERROR)
        base_buf_printf(out, "    with %s(%s):\n        %s\n",
            is_unittest ? "self.assertRaises" : "pytest.raises", value, step->text);
    else if (!strcmp(value, "True") || !strcmp(value, "False") || !strcmp(value, "None"))
        base_buf_printf(
            out, is_unittest ? "    self.assertIs(%s, %s)\n" : "    assert %s is %s\n", call.data, value);
    else
        base_buf_printf(
            out, is_unittest ? "    self.assertEqual(%s, %s)\n" : "    assert %s == %s\n", call.data, value);
    base_buf_free(&call);
}

/* --- Go --------------------------------------------------------------------------------------------------- */

static void probe_go(style *y, const agent_steps *s, base_buf *out)
{
    for (uint32_t i = 0; i < s->n; i++) {
        const agent_step *step = &s->steps[i];
        if (step->kind == AGENT_STEP_LINE)
            base_buf_printf(out, "\t%s\n", step->text);
        else
            base_buf_printf(out,
                "\tfunc(values ...interface{}) {\n"
                "\t\tfor i, v := range values {\n"
                "\t\t\tif e, ok := v.(error); ok {\n"
                "\t\t\t\tt.Errorf(\"\\n" ERROR "%u %%d %%q\\n\", i, e.Error())\n"
                "\t\t\t} else {\n"
                "\t\t\t\tt.Errorf(\"\\n" VALUE "%u %%d %%#v\\n\", i, v)\n"
                "\t\t\t}\n"
                "\t\t}\n"
                "\t}(%s)\n",
                i, i, step->text);
    }
}

/* A literal of one of Go's own types. */
static bool is_plain_go(const char *v)
{
    return strchr("\"`-0123456789", *v) || !strcmp(v, "true") || !strcmp(v, "false") || !strcmp(v, "<nil>");
}

static bool takes_go(style *y, const agent_step *step)
{
    uint32_t n_deep = 0;
    for (uint32_t i = 0; i < step->n_values; i++) {
        const char *v = step->values[i], *brace = strchr(v, '{');
        if (step->given == AGENT_GIVES_ERROR || is_plain_go(v)) continue;
        /* "[]string{...}", and nothing of a type with a package, nor a pointer. */
        if (!brace || *v == '&' || *v == '(' || memchr(v, '.', (size_t)(brace - v)) || strstr(v, "(*") ||
            strstr(v, "(nil)") || strstr(v, "interface {}"))
            return false;
        n_deep += 1;
    }
    return !n_deep || step->n_values == 1;
}

static void put_differs_go(const char *name, const char *value, base_buf *out)
{
    if (!strcmp(value, "true") || !strcmp(value, "false"))
        base_buf_printf(out, "%s%s", *value == 't' ? "!" : "", name);
    else
        base_buf_printf(out, "%s != %s", name, strcmp(value, "<nil>") ? value : "nil");
}

static void put_told_go(const char *call, const char *rest, base_buf *out)
{
    base_buf_puts(out, "\t\tt.Errorf(\"");
    put_quoted(call, true, out);
    base_buf_puts(out, rest);
}

static void record_several_go(const agent_step *step, base_buf *out)
{
    static const char *const usual[] = {"got", "got2", "got3", "got4"};
    const char *names[AGENT_MAX_RESULTS];
    const bool is_error = step->given == AGENT_GIVES_ERROR;
    const uint32_t last = step->n_values - 1;
    for (uint32_t i = 0; i <= last; i++) names[i] = is_error && i != last ? "_" : usual[i];
    if (is_error || !strcmp(step->values[last], "<nil>")) names[last] = "err";
    base_buf_puts(out, "\tif ");
    for (uint32_t i = 0; i <= last; i++) base_buf_printf(out, "%s%s", i ? ", " : "", names[i]);
    base_buf_printf(out, " := %s; ", step->text);
    for (uint32_t i = is_error ? last : 0; i <= last; i++) {
        if (i && !is_error) base_buf_puts(out, " || ");
        if (is_error)
            base_buf_puts(out, "err == nil");
        else
            put_differs_go(names[i], step->values[i], out);
    }
    base_buf_puts(out, " {\n");
    if (is_error) {
        put_told_go(step->text, " gave no error\")\n\t}\n", out);
        return;
    }
    put_told_go(step->text, " =", out);
    for (uint32_t i = 0; i <= last; i++) base_buf_printf(out, "%s %%v", i ? "," : "");
    base_buf_puts(out, "\"");
    for (uint32_t i = 0; i <= last; i++) base_buf_printf(out, ", %s", names[i]);
    base_buf_puts(out, ")\n\t}\n");
}

static void record_go(style *y, const agent_step *step, base_buf *out)
{
    const char *value = step->values[0];
    const bool is_one = step->n_values == 1 && step->given == AGENT_GIVES_VALUES;
    const bool is_bool = is_one && (!strcmp(value, "true") || !strcmp(value, "false"));
    base_buf want = {0};
    if (is_one && !is_bool && has(y, "assert.Equal(t, ")) {
        base_buf_printf(out, "\tassert.Equal(t, %s, %s)\n", value, step->text);
    } else if (!is_one) {
        record_several_go(step, out);
    } else if (is_bool) {
        base_buf_puts(out, "\tif ");
        put_differs_go(step->text, value, out);
        base_buf_puts(out, " {\n");
        base_buf_printf(&want, " = %s, want %s\")\n\t}\n", *value == 't' ? "false" : "true", value);
        put_told_go(step->text, want.data, out);
    } else {
        const bool is_text = strchr("\"`", *value) != NULL;
        if (is_plain_go(value))
            base_buf_printf(out, "\tif got := %s; got != %s {\n", step->text, value);
        else
            base_buf_printf(out, "\tif got := %s; !reflect.DeepEqual(got, %s) {\n", step->text, value);
        base_buf_printf(
            &want, " = %%%s, want %%%s\", got, %s)\n\t}\n", is_text ? "q" : "v", is_text ? "q" : "v", value);
        put_told_go(step->text, want.data, out);
    }
    base_buf_free(&want);
}

/* --- JavaScript -------------------------------------------------------------------------------------------- */

static void probe_script(style *y, const agent_steps *s, base_buf *out)
{
    base_buf_puts(out,
        "    const show = (v) => v === undefined || v === null || typeof v === 'boolean' ? String(v)\n"
        "      : typeof v === 'number' ? (Object.is(v, -0) ? '-0' : String(v))\n"
        "      : typeof v === 'bigint' ? v + 'n'\n"
        "      : typeof v === 'string' ? \"'\" + JSON.stringify(v).slice(1, -1).replace(/\\\\\"/g, '\"').replace(/'/g, \"\\\\'\") + \"'\"\n"
        "      : Array.isArray(v) ? '[' + v.map(show).join(', ') + ']'\n"
        "      : typeof v === 'object' && Object.getPrototypeOf(v) === Object.prototype\n"
        "        ? '{' + Object.keys(v).map((k) => (/^[a-z_$]\\w*$/i.test(k) ? k : show(k)) + ': ' + show(v[k])).join(', ') + '}'\n"
        "      : '<object>'\n"
        "    const found = []\n");
    for (uint32_t i = 0; i < s->n; i++) {
        const agent_step *step = &s->steps[i];
        if (step->kind == AGENT_STEP_LINE)
            base_buf_printf(out, "    %s\n", step->text);
        else
            base_buf_printf(out,
                "    try {\n      found.push('" VALUE "%u 0 ' + show(%s))\n"
                "    } catch (error) {\n      found.push('" ERROR "%u 0 ' + error.name)\n    }\n",
                i, step->text, i);
    }
    base_buf_puts(out, "    throw new Error('\\n' + found.join('\\n') + '\\n')\n");
}

/* How files of tests compare: the one that this file has most often. object: what compares objects, which that one needs. */
static const struct script_form {
    const char *mark, *plain, *object, *throws, *end;
} script_forms[] = {
    {"t.assert.", "t.assert.strictEqual(", "t.assert.deepStrictEqual(", "t.assert.throws(() => ", ")"},
    {"assert.strictEqual(", "assert.strictEqual(", "assert.deepStrictEqual(", "assert.throws(() => ", ")"},
    {"assert.equal(", "assert.equal(", "assert.deepEqual(", "assert.throws(() => ", ")"},
    {"assert.is(", "assert.is(", "assert.equal(", "assert.throws(() => ", ")"},
    {"t.is(", "t.is(", "t.deepEqual(", "t.throws(() => ", ")"},
    {"t.equal(", "t.equal(", "t.deepEqual(", "t.throws(() => ", ")"},
    {"t.strictEqual(", "t.strictEqual(", "t.deepEqual(", "t.throws(() => ", ")"},
    {"expect(", "toBe(", "toEqual(", ").toThrow()", ""},
};

static const struct script_form *script_form(style *y)
{
    const struct script_form *best = NULL;
    uint32_t most = 0;
    for (size_t i = 0; i < sizeof script_forms / sizeof *script_forms; i++) {
        const uint32_t n = count(y, script_forms[i].mark);
        if (n <= most || (best && best == script_forms && n < 2 * most)) continue;
        best = &script_forms[i];
        most = n;
    }
    return best ? best : &script_forms[2];
}

static void record_script(style *y, const agent_step *step, base_buf *out)
{
    const struct script_form *f = script_form(y);
    const char *value = step->values[0], *semicolon = count(y, ";\n") > count(y, ")\n") ? ";" : "";
    const bool is_object = strchr("[{", *value) != NULL, is_error = step->given == AGENT_GIVES_ERROR;
    if (!*f->end && is_error)
        base_buf_printf(out, "    expect(() => %s).toThrow()%s\n", step->text, semicolon);
    else if (!*f->end)
        base_buf_printf(
            out, "    expect(%s).%s%s)%s\n", step->text, is_object ? f->object : f->plain, value, semicolon);
    else if (is_error)
        base_buf_printf(out, "    %s%s)%s\n", f->throws, step->text, semicolon);
    else
        base_buf_printf(
            out, "    %s%s, %s)%s\n", is_object ? f->object : f->plain, step->text, value, semicolon);
}

static bool takes_script(style *y, const agent_step *step)
{
    return !strstr(step->values[0], "<object>") && strcmp(step->values[0], "NaN") != 0;
}

/* --- C ------------------------------------------------------------------------------------------------------ */

static bool has_type(const char *head, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = head; (at = strstr(at, word)); at += n)
        if ((at == head || !isalnum((unsigned char)at[-1])) && !isalnum((unsigned char)at[n]) && at[n] != '_')
            return true;
    return false;
}

/* 's' a string, 'f' a floating number, 'i' an integer, 0: nothing that is compared as it is. */
static char kind_of_c(const char *head)
{
    static const char *const integers[] = {"int", "long", "short", "unsigned", "size_t", "ssize_t", "bool",
        "_Bool", "uint8_t", "uint16_t", "uint32_t", "uint64_t", "int8_t", "int16_t", "int32_t", "int64_t"};
    const char *star = strchr(head, '*');
    if (star)
        return has_type(head, "char") && !strchr(star + 1, '*') && !has_type(head, "unsigned") ? 's' : 0;
    if (has_type(head, "float") || has_type(head, "double")) return 'f';
    bool is_integer = false;
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) is_integer |= has_type(head, integers[i]);
    return is_integer ? 'i' : 0;
}

static void probe_c(style *y, const agent_steps *s, base_buf *out)
{
    const char kind = kind_of_c(y->gives);
    for (uint32_t i = 0; i < s->n; i++) {
        const agent_step *step = &s->steps[i];
        if (step->kind == AGENT_STEP_LINE)
            base_buf_printf(out, "    %s;\n", step->text);
        else if (kind == 's')
            base_buf_printf(out,
                "    {\n        const char *kvist = %s;\n        printf(\"\\n" VALUE "%u 0 \");\n"
                "        if (!kvist) printf(\"NULL\");\n        else putchar('\"');\n"
                "        for (; kvist && *kvist; kvist++)\n"
                "            printf(*kvist == '\"' || *kvist == '\\\\' ? \"\\\\%%c\" : *kvist >= 32 && *kvist < 127 ? \"%%c\" : "
                "\"\\\\%%03o\", *kvist & 255);\n"
                "        if (kvist) putchar('\"');\n        printf(\"\\n\");\n        fflush(stdout);\n    }\n",
                step->text, i);
        else
            base_buf_printf(out, "    printf(\"\\n" VALUE "%u 0 %s\\n\", (%s)(%s));\n    fflush(stdout);\n",
                i, kind == 'f' ? "%.17g" : "%ld", kind == 'f' ? "double" : "long", step->text);
    }
}

static void record_c(style *y, const agent_step *step, base_buf *out)
{
    static const char *const macros[] = {"assert(", "ASSERT(", "CHECK(", "TEST(", "REQUIRE(", "TEST_ASSERT(",
        "cr_assert(", "g_assert(", "ck_assert(", "assert_true(", "ok(", "check(", "EXPECT("};
    const char *macro = macros[0];
    uint32_t most = 0;
    for (size_t i = 0; i < sizeof macros / sizeof *macros; i++) {
        base_buf line = {0}; /* a statement, and no part of a longer name */
        for (size_t tab = 0; tab < 2; tab++) {
            base_buf_clear(&line);
            base_buf_printf(&line, "%s%s", tab ? "\t" : " ", macros[i]);
            const uint32_t n = count(y, line.data);
            if (n > most) {
                most = n;
                macro = macros[i];
            }
        }
        base_buf_free(&line);
    }
    const char *value = step->values[0];
    const bool is_string = *value == '"';
    base_buf_printf(
        out, is_string ? "    %sstrcmp(%s, %s) == 0);\n" : "    %s%s == %s);\n", macro, step->text, value);
}

/* --- Rust ---------------------------------------------------------------------------------------------------- */

static void probe_rust(style *y, const agent_steps *s, base_buf *out)
{
    base_buf given = {0};
    for (uint32_t i = 0; i < s->n; i++)
        if (s->steps[i].kind == AGENT_STEP_LINE) base_buf_printf(out, "    %s;\n", s->steps[i].text);
    base_buf_puts(out, "    panic!(\"");
    for (uint32_t i = 0; i < s->n; i++)
        if (s->steps[i].kind == AGENT_STEP_CALL) {
            base_buf_printf(out, "\\n" VALUE "%u 0 {:?}", i);
            base_buf_printf(&given, ", %s", s->steps[i].text);
        }
    base_buf_printf(out, "\\n\"%s);\n", given.data ? given.data : "");
    base_buf_free(&given);
}

static bool takes_rust(style *y, const agent_step *step)
{
    static const char *const words[] = {
        "Some", "None", "Ok", "Err", "Less", "Equal", "Greater", "true", "false", "inf", NULL};
    const char *v = step->values[0];
    if (strchr(v, '{') && *v != '"') return false;
    for (const char *p = v; *p && *v != '"'; p++) {
        if (!isalpha((unsigned char)*p) ||
            (p > v && (isalnum((unsigned char)p[-1]) || strchr("\"'_\\", p[-1]))))
            continue;
        bool is_word = false;
        for (const char *const *w = words; *w; w++) is_word |= !strncmp(p, *w, strlen(*w));
        if (!is_word) return strchr(v, '"') != NULL && strchr(v, '"') < p;
    }
    return true;
}

static void record_rust(style *y, const agent_step *step, base_buf *out)
{
    const char *v = step->values[0];
    const bool is_text = strstr(y->gives, "Option<String>") != NULL;
    if (!strcmp(v, "true") || !strcmp(v, "false"))
        base_buf_printf(out, "    assert!(%s%s);\n", *v == 't' ? "" : "!", step->text);
    else if (!strncmp(v, "Err(", 4))
        base_buf_printf(out, "    assert!(%s.is_err());\n", step->text);
    else if (!strncmp(v, "Ok(", 3))
        base_buf_printf(out, "    assert_eq!(%s.unwrap(), %.*s);\n", step->text, (int)strlen(v) - 4, v + 3);
    else if (!strcmp(v, "[]"))
        base_buf_printf(out, "    assert!(%s.is_empty());\n", step->text);
    else if (!strcmp(v, "None"))
        base_buf_printf(out, "    assert!(%s.is_none());\n", step->text);
    else
        base_buf_printf(out, "    assert_eq!(%s%s, %s%s);\n", step->text, is_text ? ".as_deref()" : "",
            !strcmp(v, "Less") || !strcmp(v, "Equal") || !strcmp(v, "Greater") ? "std::cmp::Ordering::" : "",
            v);
}

/* --- all ------------------------------------------------------------------------------------------------------ */

static const struct language {
    const char *ending, *indent, *end; /* end: of a statement */
    void (*probe)(style *y, const agent_steps *s, base_buf *out);
    void (*record)(style *y, const agent_step *step, base_buf *out);
    bool (*takes)(style *y, const agent_step *step); /* what it gave can stand in a test; NULL: any */
} languages[] = {
    {".py", "    ", "", probe_python, record_python, NULL},
    {".go", "\t", "", probe_go, record_go, takes_go},
    {".js", "    ", "", probe_script, record_script, takes_script},
    {".mjs", "    ", "", probe_script, record_script, takes_script},
    {".cjs", "    ", "", probe_script, record_script, takes_script},
    {".ts", "    ", "", probe_script, record_script, takes_script},
    {".c", "    ", ";", probe_c, record_c, NULL},
    {".rs", "    ", ";", probe_rust, record_rust, takes_rust},
};

static const struct language *language_of(const char *path)
{
    for (size_t i = 0; i < sizeof languages / sizeof *languages; i++)
        if (base_ends_with(path, languages[i].ending)) return &languages[i];
    return NULL;
}

bool agent__can_probe(const char *path)
{
    return language_of(path) != NULL;
}

void agent__put_probe(style *y, const agent_steps *s, base_buf *out)
{
    language_of(y->path)->probe(y, s, out);
}

void agent__put_recorded(style *y, const agent_steps *s, base_buf *out)
{
    const struct language *l = language_of(y->path);
    for (uint32_t i = 0; i < s->n; i++)
        if (s->steps[i].kind == AGENT_STEP_LINE)
            base_buf_printf(out, "%s%s%s\n", l->indent, s->steps[i].text, l->end);
        else
            l->record(y, &s->steps[i], out);
}

/* An error that says that the call is wrong, and not what it is given. */
static bool is_of_call(const char *error)
{
    static const char *const names[] = {"NameError", "ImportError", "ModuleNotFoundError", "AttributeError",
        "TypeError", "UnboundLocalError", "SyntaxError", "ReferenceError"};
    bool is = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) is |= !strcmp(error, names[i]);
    return is;
}

/* One line of what the probe printed, behind its mark. */
static void read_line(style *y, const char *line, agent_given given, agent_steps *s)
{
    enum { MOST_VALUE = 300 };
    char *end;
    const unsigned long step = strtoul(line, &end, 10), result = *end == ' ' ? strtoul(end, &end, 10) : 1;
    const char *value = *end == ' ' ? end + 1 : end;
    size_t n = strcspn(value, "\r\n");
    while (n && value[n - 1] == ' ') n--;
    agent_step *c = step < s->n ? &s->steps[step] : NULL;
    if (!c || c->kind != AGENT_STEP_CALL || result != c->n_values || result >= AGENT_MAX_RESULTS || !n ||
        n > MOST_VALUE)
        return;
    c->values[c->n_values++] = base_xstrndup(value, n);
    if (given == AGENT_GIVES_ERROR || !c->given) c->given = given;
    if (given == AGENT_GIVES_ERROR && is_of_call(c->values[result]) && !y->wants_error)
        c->given = AGENT_GIVES_NOTHING;
}

uint32_t agent__read_probe(style *y, const char *output, agent_steps *s)
{
    static const struct {
        const char *mark;
        agent_given given;
    } marks[] = {{VALUE, AGENT_GIVES_VALUES}, {LIST, AGENT_GIVES_LIST}, {ERROR, AGENT_GIVES_ERROR}};
    const struct language *l = language_of(y->path);
    uint32_t n = 0;
    for (const char *line = output; line && *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const size_t len = strcspn(line, "\n");
        for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
            const char *at = memmem(line, len, marks[i].mark, strlen(marks[i].mark));
            if (at) read_line(y, at + strlen(marks[i].mark), marks[i].given, s);
        }
    }
    for (uint32_t i = 0; i < s->n; i++) {
        agent_step *c = &s->steps[i];
        if (c->is_varied && c->given == AGENT_GIVES_ERROR) c->given = AGENT_GIVES_NOTHING;
        if (c->given && l->takes && !l->takes(y, c)) c->given = AGENT_GIVES_NOTHING;
        n += c->given != AGENT_GIVES_NOTHING;
    }
    return n;
}
