/*
 * The program that checks values of a request (contract: values.h). programs/ has a shell command for each language,
 * with @holes@ that are filled in here. The program is a here-document of its command: what is run stands in full
 * where the person is asked, and no file of the tree is made for it.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/words/values.h"
#include "agent/values_programs.h" /* of programs/, by scripts/embed */
#include "base/mem.h"
#include "base/path.h"
#include "code/code.h"

/* The text as a literal of Python, JavaScript, Go, C, Rust and Java alike. */
static void put_quoted(base_buf *out, const char *s)
{
    base_buf_putc(out, '"');
    for (; *s; s++) {
        if (*s == '"' || *s == '\\') base_buf_putc(out, '\\');
        if ((unsigned char)*s >= ' ') base_buf_putc(out, *s);
    }
    base_buf_putc(out, '"');
}

/* --- a value's texts in the language -------------------------------------------------------------------- */

/* How languages write the same constants; NULL: the language has none. */
typedef enum language { PYTHON, SCRIPT, GO, C, RUST, JAVA, N_LANGUAGES } language;
static const struct {
    const char *words[4];
    const char *by[N_LANGUAGES];
} constants[] = {
    {{"true", "True"}, {"True", "true", "true", "1", "true", "true"}},
    {{"false", "False"}, {"False", "false", "false", "0", "false", "false"}},
    {{"None", "null", "nil", "NULL"}, {"None", "null", "nil", "NULL", "None", "null"}},
};

static const char *constant_in(language to, const char *word, size_t n)
{
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        for (size_t k = 0; k < 4 && constants[i].words[k]; k++)
            if (strlen(constants[i].words[k]) == n && !memcmp(constants[i].words[k], word, n))
                return constants[i].by[to];
    return NULL;
}

/* Where strings are in double quotes only: 'ab' becomes "ab". */
static const char *put_string(base_buf *out, const char *p, language to)
{
    const char quote = *p;
    const bool turns = quote == '\'' && to != PYTHON && to != SCRIPT;
    base_buf_putc(out, turns ? '"' : quote);
    for (p++; *p && *p != quote; p++) {
        if (turns && *p == '"') base_buf_putc(out, '\\');
        if (*p == '\\' && p[1]) base_buf_putc(out, *p++);
        base_buf_putc(out, *p);
    }
    base_buf_putc(out, turns ? '"' : quote);
    return *p ? p + 1 : p;
}

/* An operand as the language writes it. */
static void put_operand(base_buf *out, const char *p, language to)
{
    while (*p) {
        const size_t n = isalpha((unsigned char)*p) || *p == '_'
                             ? strspn(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789")
                             : 0;
        const char *constant = n ? constant_in(to, p, n) : NULL;
        if (*p == '"' || *p == '\'') {
            p = put_string(out, p, to);
        } else if (n) {
            base_buf_add(out, constant ? constant : p, constant ? strlen(constant) : n);
            p += n;
        } else if (isdigit((unsigned char)*p)) {
            while (code_is_name_byte(*p)) base_buf_putc(out, *p++);
        } else {
            base_buf_putc(out, *p++);
        }
    }
}

/* The call of a value; false: it is an argument alone, and what takes it is not known. */
static bool put_call(base_buf *out, const agent_value *v, const agent_values_place *place, language to)
{
    if (!v->is_call && !place->function) return false;
    if (!v->is_call) base_buf_printf(out, "%s(", place->function);
    put_operand(out, v->left, to);
    if (!v->is_call) base_buf_putc(out, ')');
    return true;
}

static bool is_string(const char *s)
{
    return *s == '"' || *s == '\'';
}

static bool is_composite(const char *s)
{
    return *s == '[' || *s == '{' || *s == '(';
}

/* What is wanted, as an expression; plain text as a string. */
static void put_wanted(base_buf *out, const agent_value *v, language to)
{
    if (v->is_plain)
        put_quoted(out, v->wanted);
    else
        put_operand(out, v->wanted, to);
}

/* How a value reads in a sentence: "Percent(1, 8)". */
static void put_name(base_buf *out, const agent_value *v, const agent_values_place *place)
{
    base_buf text = {0};
    if (!v->is_call) base_buf_printf(&text, "%s(%s)", place->function, v->left);
    put_quoted(out, text.len ? text.data : v->left);
    base_buf_free(&text);
}

/* --- paths ---------------------------------------------------------------------------------------------- */

static char *stem_of(const char *path)
{
    const char *name = base_path_name(path), *dot = strrchr(name, '.');
    return base_xstrndup(name, dot ? (size_t)(dot - name) : strlen(name));
}

/* --- filling in ----------------------------------------------------------------------------------------- */

typedef struct hole {
    const char *name, *text;
} hole;

/* The text of programs/, each "@name@" replaced; ends at a hole without a name. */
static void put_filled(base_buf *out, const char *text, const hole *holes)
{
    for (const char *at; (at = strchr(text, '@'));) {
        const size_t n = strspn(at + 1, "abcdefghijklmnopqrstuvwxyz_");
        const hole *h = holes;
        while (h->name && (strlen(h->name) != n || strncmp(h->name, at + 1, n) != 0)) h++;
        const bool is_hole = h->name && at[1 + n] == '@';
        base_buf_add(out, text, (size_t)(at - text) + !is_hole);
        if (is_hole && h->text) base_buf_puts(out, h->text);
        text = is_hole ? at + n + 2 : at + 1;
    }
    base_buf_puts(out, text);
}

/* A value as an element of a list in Python and JavaScript, which evaluate the texts themselves. */
static bool put_element(base_buf *out, const agent_value *v, const agent_values_place *place, language to,
    const char *open, const char *close)
{
    base_buf call = {0}, wanted = {0};
    const bool is_put = put_call(&call, v, place, to);
    if (is_put) {
        base_buf_puts(out, open);
        put_quoted(out, call.data);
        base_buf_puts(out, ", ");
        put_wanted(&wanted, v, to);
        put_quoted(out, v->raises ? v->wanted : wanted.data);
        base_buf_printf(out, ", %s%s",
            v->raises     ? "\"raises\""
            : v->is_plain ? "\"plain\""
                          : "\"is\"",
            close);
    }
    base_buf_free(&call);
    base_buf_free(&wanted);
    return is_put;
}

/* --- Python and JavaScript ------------------------------------------------------------------------------ */

/* "colorama.ansi" of colorama/ansi.py, found from `root` ("src"). */
static void put_module(const agent_values_place *place, base_buf *root, base_buf *module)
{
    char *folder = base_path_folder(place->path), *stem = stem_of(place->path);
    const char *from = place->path;
    if (!place->in_package) {
        base_buf_puts(root, folder);
        base_buf_puts(module, stem);
    } else {
        if (!strncmp(from, "src/", 4)) from += 4;
        base_buf_puts(root, from == place->path ? "." : "src");
        for (; *from && strcmp(from, ".py") != 0; from++) base_buf_putc(module, *from == '/' ? '.' : *from);
        static const char init[] = ".__init__";
        if (module->len > sizeof init && !strcmp(module->data + module->len - (sizeof init - 1), init))
            module->data[module->len -= sizeof init - 1] = '\0';
    }
    free(folder);
    free(stem);
}

static uint32_t put_python(
    const agent_value *values, uint32_t n, const agent_values_place *place, base_buf *out)
{
    base_buf root = {0}, module = {0}, list = {0};
    uint32_t n_put = 0;
    put_module(place, &root, &module);
    for (uint32_t i = 0; i < n; i++) n_put += put_element(&list, &values[i], place, PYTHON, "    (", "),\n");
    put_filled(out, program_python,
        (hole[]){{"root", root.data}, {"module", module.data}, {"values", list.data}, {0}});
    base_buf_free(&root);
    base_buf_free(&module);
    base_buf_free(&list);
    return n_put;
}

static uint32_t put_script(
    const agent_value *values, uint32_t n, const agent_values_place *place, base_buf *out)
{
    base_buf list = {0};
    uint32_t n_put = 0;
    for (uint32_t i = 0; i < n; i++) n_put += put_element(&list, &values[i], place, SCRIPT, "  [", "],\n");
    put_filled(out, program_javascript, (hole[]){{"path", place->path}, {"values", list.data}, {0}});
    base_buf_free(&list);
    return n_put;
}

/* --- Go ------------------------------------------------------------------------------------------------- */

/* The name that a package is used by, with its dot: "big." of the line `"math/big"`. */
static void put_package_word(base_buf *word, const char *import)
{
    const char *end = strrchr(import, '"'), *from = end;
    while (from && from > import && from[-1] != '/' && from[-1] != '"') from--;
    if (end) base_buf_printf(word, "%.*s.", (int)(end - from), from);
}

/* The file's imports that the calls name, but for the two that the program has anyway. */
static void put_go_imports(base_buf *out, const char *lines, const char *calls)
{
    for (const char *line = lines; line && *line;) {
        const size_t len = strcspn(line, "\n");
        char *import = base_xstrndup(line, len);
        base_buf word = {0};
        put_package_word(&word, import);
        if (word.len > 1 && strstr(calls, word.data) && strcmp(word.data, "fmt.") &&
            strcmp(word.data, "testing."))
            base_buf_printf(out, "\t%s\n", import);
        base_buf_free(&word);
        free(import);
        line += len + (line[len] == '\n');
    }
}

static bool put_go_call(base_buf *out, const agent_value *v, const agent_values_place *place)
{
    base_buf call = {0};
    const bool is_put = !is_composite(v->wanted) && put_call(&call, v, place, GO);
    if (is_put) {
        base_buf_puts(out, "\tkvistValue(t, ");
        put_name(out, v, place);
        base_buf_puts(out, ", ");
        if (v->raises)
            base_buf_puts(out, "\"error\"");
        else if (v->is_plain)
            put_quoted(out, v->wanted);
        else {
            base_buf_puts(out, "fmt.Sprint(");
            put_operand(out, v->wanted, GO);
            base_buf_putc(out, ')');
        }
        base_buf_printf(out, ", func() string { return kvistSays(%s) })\n", call.data);
    }
    base_buf_free(&call);
    return is_put;
}

/* A test of the package that lies beside its files for the compiler only (-overlay). */
static uint32_t put_go(const agent_value *values, uint32_t n, const agent_values_place *place, base_buf *out)
{
    uint32_t n_put = 0;
    base_buf calls = {0}, imports = {0}, in_folder = {0};
    if (!place->package) return 0;
    char *folder = base_path_folder(place->path);
    if (strcmp(folder, ".") != 0) base_buf_printf(&in_folder, "%s/", folder);
    for (uint32_t i = 0; i < n; i++) n_put += put_go_call(&calls, &values[i], place);
    if (calls.len) put_go_imports(&imports, place->imports, calls.data);
    put_filled(out, program_go,
        (hole[]){{"package", place->package}, {"imports", imports.data}, {"values", calls.data},
            {"folder", in_folder.data}, {0}});
    free(folder);
    base_buf_free(&in_folder);
    base_buf_free(&calls);
    base_buf_free(&imports);
    return n_put;
}

/* --- C -------------------------------------------------------------------------------------------------- */

static bool put_c_call(base_buf *out, const agent_value *v, const agent_values_place *place)
{
    base_buf call = {0};
    const bool is_put = !v->raises && !is_composite(v->wanted) && put_call(&call, v, place, C);
    if (is_put) {
        base_buf_puts(out, "    kvist_value(");
        put_name(out, v, place);
        base_buf_printf(out, ", KVIST_SAYS(%s), ", call.data);
        if (is_string(v->wanted) || v->is_plain) {
            put_wanted(out, v, C);
        } else {
            base_buf_puts(out, "KVIST_SAYS(");
            put_operand(out, v->wanted, C);
            base_buf_putc(out, ')');
        }
        base_buf_puts(out, ");\n");
    }
    base_buf_free(&call);
    return is_put;
}

/* The file is included, so that static functions are there; what it calls comes from the files beside it. */
static uint32_t put_c(const agent_value *values, uint32_t n, const agent_values_place *place, base_buf *out)
{
    uint32_t n_put = 0;
    base_buf calls = {0};
    char *folder = base_path_folder(place->path);
    for (uint32_t i = 0; i < n; i++) n_put += put_c_call(&calls, &values[i], place);
    put_filled(
        out, program_c, (hole[]){{"path", place->path}, {"folder", folder}, {"values", calls.data}, {0}});
    free(folder);
    base_buf_free(&calls);
    return n_put;
}

/* --- Rust ----------------------------------------------------------------------------------------------- */

static bool put_rust_call(base_buf *out, const agent_value *v, const agent_values_place *place)
{
    base_buf call = {0};
    const bool is_put = !v->raises && *v->wanted != '{' && put_call(&call, v, place, RUST);
    if (is_put) {
        base_buf_puts(out, "        kvist_value(&mut hold, &mut of, ");
        put_name(out, v, place);
        base_buf_printf(out, ", format!(\"{:?}\", %s), format!(\"{:?}\", ", call.data);
        put_wanted(out, v, RUST);
        base_buf_puts(out, "));\n");
    }
    base_buf_free(&call);
    return is_put;
}

/* A test module behind the file's text, in a copy of the crate: cargo has no overlay. */
static uint32_t put_rust(
    const agent_value *values, uint32_t n, const agent_values_place *place, base_buf *out)
{
    uint32_t n_put = 0;
    base_buf calls = {0};
    for (uint32_t i = 0; i < n; i++) n_put += put_rust_call(&calls, &values[i], place);
    put_filled(out, program_rust, (hole[]){{"path", place->path}, {"values", calls.data}, {0}});
    base_buf_free(&calls);
    return n_put;
}

/* --- Java ----------------------------------------------------------------------------------------------- */

/* The folder that packages begin in: "src/main/java" where the package a.b lies in a/b below it. */
static char *java_root(const char *folder, const char *package)
{
    base_buf path = {0};
    for (const char *p = package; *p; p++) base_buf_putc(&path, *p == '.' ? '/' : *p);
    size_t root = strlen(folder);
    if (path.len && root >= path.len && !strcmp(folder + root - path.len, path.data))
        root -= path.len;
    else if (path.len)
        root = SIZE_MAX;
    base_buf_free(&path);
    if (root == SIZE_MAX) return NULL;
    while (root && folder[root - 1] == '/') root--;
    return root ? base_xstrndup(folder, root) : base_xstrdup(".");
}

static bool put_java_call(
    base_buf *out, const agent_value *v, const agent_values_place *place, const char *class_name)
{
    base_buf call = {0};
    const bool is_bare =
        v->is_call && strncmp(v->left, "new ", 4) != 0 && strcspn(v->left, ".") > strcspn(v->left, "(");
    const bool is_put = !v->raises && !is_composite(v->wanted) && put_call(&call, v, place, JAVA);
    if (is_put) {
        base_buf_puts(out, "        value(");
        put_name(out, v, place);
        base_buf_printf(out, ", String.valueOf((Object) %s%s%s), String.valueOf((Object) ",
            is_bare || !v->is_call ? class_name : "", is_bare || !v->is_call ? "." : "", call.data);
        put_wanted(out, v, JAVA);
        base_buf_puts(out, "));\n");
    }
    base_buf_free(&call);
    return is_put;
}

/* Static methods of the file's class, and what can be made with new. */
static uint32_t put_java(
    const agent_value *values, uint32_t n, const agent_values_place *place, base_buf *out)
{
    uint32_t n_put = 0;
    if (!place->package) return 0;
    char *folder = base_path_folder(place->path), *class_name = stem_of(place->path);
    char *root = java_root(folder, place->package);
    base_buf calls = {0}, line = {0}, prefix = {0};
    if (*place->package) {
        base_buf_printf(&line, "package %s;\n", place->package);
        base_buf_printf(&prefix, "%s.", place->package);
    }
    for (uint32_t i = 0; root && i < n; i++) n_put += put_java_call(&calls, &values[i], place, class_name);
    put_filled(out, program_java,
        (hole[]){{"package_line", line.data}, {"package_prefix", prefix.data}, {"root", root ? root : "."},
            {"path", place->path}, {"values", calls.data}, {0}});
    base_buf_free(&calls);
    base_buf_free(&line);
    base_buf_free(&prefix);
    free(root);
    free(folder);
    free(class_name);
    return n_put;
}

/* --- which ---------------------------------------------------------------------------------------------- */

static const struct {
    const char *ending;
    uint32_t (*put)(const agent_value *values, uint32_t n, const agent_values_place *place, base_buf *out);
} programs[] = {{".py", put_python}, {".js", put_script}, {".mjs", put_script}, {".cjs", put_script},
    {".go", put_go}, {".c", put_c}, {".rs", put_rust}, {".java", put_java}};

bool agent_values_program(
    const agent_value *values, uint32_t n, const agent_values_place *place, base_buf *out)
{
    const char *dot = strrchr(place->path, '.');
    if (!dot || strpbrk(place->path, " \t\n'\"$`\\;&|<>()*?[]{}!#~") || *place->path == '-') return false;
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        if (strcmp(dot, programs[i].ending) != 0) continue;
        base_buf_clear(out);
        const uint32_t n_put = programs[i].put(values, n, place, out);
        return out->len && (n_put || !n);
    }
    return false;
}

bool agent_values_count(const char *output, uint32_t *ret_hold, uint32_t *ret_of)
{
    static const char words[] = " values of the request hold";
    const char *at = output ? strstr(output, words) : NULL, *from = at;
    while (from && from > output && from[-1] != '\n') from--;
    unsigned hold = 0, of = 0;
    if (!at || sscanf(from, "%u of %u values", &hold, &of) != 2) return false;
    *ret_hold = hold;
    *ret_of = of;
    return true;
}
