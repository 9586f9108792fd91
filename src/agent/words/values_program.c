/*
 * The program that checks values of a request, one for each language (contract: values.h). It is a here-document of
 * a shell command: what is run stands in full where the person is asked, and no file of the tree is made for it.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/words/values.h"
#include "base/mem.h"
#include "base/path.h"
#include "code/code.h"

static const char END[] = "KVIST_VALUES";

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

/* --- Python --------------------------------------------------------------------------------------------- */

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
    base_buf root = {0}, module = {0};
    uint32_t n_put = 0;
    put_module(place, &root, &module);
    base_buf_printf(out,
        "python3 - <<'%s'\n"
        "import importlib, sys\n"
        "sys.dont_write_bytecode = True\n"
        "sys.path.insert(0, \"%s\")\n"
        "names = vars(importlib.import_module(\"%s\"))\nvalues = [\n",
        END, root.data, module.data);
    for (uint32_t i = 0; i < n; i++) {
        const agent_value *v = &values[i];
        base_buf call = {0}, wanted = {0};
        if (put_call(&call, v, place, PYTHON)) {
            base_buf_puts(out, "    (");
            put_quoted(out, call.data);
            base_buf_puts(out, ", ");
            put_wanted(&wanted, v, PYTHON);
            if (v->raises)
                put_quoted(out, v->wanted);
            else
                put_quoted(out, wanted.data);
            base_buf_printf(out, ", %s),\n", v->raises ? "\"raises\"" : v->is_plain ? "\"plain\"" : "\"is\"");
            n_put++;
        }
        base_buf_free(&call);
        base_buf_free(&wanted);
    }
    base_buf_printf(out,
        "]\n"
        "hold = 0\n"
        "for call, wanted, how in values:\n"
        "    error = None\n"
        "    try:\n"
        "        got = eval(call, names)\n"
        "    except Exception as raised:\n        got, error = raised, type(raised)\n"
        "    if how == \"raises\":\n"
        "        good = error is not None and wanted in (\"\", \"Error\", "
        "\"Exception\", *(c.__name__ for c in error.__mro__))\n"
        "        good = good and not (error is NameError and wanted != \"NameError\")\n"
        "        wanted = \"raise \" + (wanted or \"an error\")\n"
        "    elif how == \"plain\":\n        good = error is None and str(got) == eval(wanted)\n"
        "    else:\n"
        "        value = eval(wanted, names)\n"
        "        good = error is None and (got == value or (isinstance(value, float) and isinstance(got, "
        "(int, float)) and abs(got - value) < 1e-9))\n"
        "    hold += good\n    if not good:\n"
        "        said = \"raises %%s: %%s\" %% (error.__name__, got) if error else \"gives %%r\" %% (got,)\n"
        "        print(call, said + \", and should\", wanted if how == \"raises\" else \"give \" + wanted)\n"
        "print(hold, \"of\", len(values), \"values of the request hold\")\n"
        "sys.exit(hold != len(values))\n"
        "%s\n",
        END);
    base_buf_free(&root);
    base_buf_free(&module);
    return n_put;
}

/* --- JavaScript ----------------------------------------------------------------------------------------- */

static uint32_t put_script(
    const agent_value *values, uint32_t n, const agent_values_place *place, base_buf *out)
{
    uint32_t n_put = 0;
    base_buf_printf(out,
        "node --input-type=module - <<'%s'\n"
        "import assert from \"node:assert\";\n"
        "import { pathToFileURL } from \"node:url\";\n"
        "const module = await import(pathToFileURL(\"%s\"));\n"
        "const names = { ...module, ...(module.default && typeof module.default !== \"string\" ? "
        "module.default : {}) };\n"
        "if (typeof module.default === \"function\" && module.default.name) "
        "names[module.default.name] = module.default;\n"
        "for (const name of Object.keys(names)) if (name === \"default\" || "
        "!/^[A-Za-z_$][\\w$]*$/.test(name)) delete names[name];\n"
        "const evaluate = (text) => new Function(...Object.keys(names), \"return (\" + text + "
        "\");\")(...Object.values(names));\n"
        "const values = [\n",
        END, place->path);
    for (uint32_t i = 0; i < n; i++) {
        const agent_value *v = &values[i];
        base_buf call = {0}, wanted = {0};
        if (put_call(&call, v, place, SCRIPT)) {
            base_buf_puts(out, "  [");
            put_quoted(out, call.data);
            base_buf_puts(out, ", ");
            put_wanted(&wanted, v, SCRIPT);
            put_quoted(out, v->raises ? v->wanted : wanted.data);
            base_buf_printf(out, ", %s],\n", v->raises ? "\"raises\"" : v->is_plain ? "\"plain\"" : "\"is\"");
            n_put++;
        }
        base_buf_free(&call);
        base_buf_free(&wanted);
    }
    base_buf_printf(out,
        "];\n"
        "let hold = 0;\n"
        "for (const [call, wanted, how] of values) {\n"
        "  let got, error, good = true, should = \"give \" + wanted;\n"
        "  try { got = evaluate(call); if (got instanceof Promise) "
        "got = await got; } catch (raised) { error = raised; }\n"
        "  if (how === \"raises\") {\n"
        "    const kinds = [\"\", \"Error\", error?.name, error?.constructor?.name];\n"
        "    good = error !== undefined && kinds.includes(wanted) && !(error instanceof ReferenceError && "
        "wanted !== \"ReferenceError\");\n"
        "    should = \"throw \" + (wanted || \"an error\");\n"
        "  } else if (how === \"plain\") good = !error && String(got) === evaluate(wanted);\n"
        "  else try { if (error) throw error; assert.deepStrictEqual(got, "
        "evaluate(wanted)); } catch { good = false; }\n"
        "  hold += good;\n"
        "  if (!good) console.log(`${call} ${error ? \"throws \" + error : \"gives \" + (JSON.stringify(got) "
        "?? String(got))}, and should ${should}`);\n"
        "}\n"
        "console.log(`${hold} of ${values.length} values of the request hold`);\n"
        "process.exit(hold === values.length ? 0 : 1);\n"
        "%s\n",
        END);
    return n_put;
}

/* --- Go ------------------------------------------------------------------------------------------------- */

/* A test of the package that lies beside its files for the compiler only (-overlay). */
static uint32_t put_go(const agent_value *values, uint32_t n, const agent_values_place *place, base_buf *out)
{
    uint32_t n_put = 0;
    base_buf body = {0}, imports = {0};
    if (!place->package) return 0;
    char *folder = base_path_folder(place->path);
    for (uint32_t i = 0; i < n; i++) {
        const agent_value *v = &values[i];
        base_buf call = {0};
        if (!is_composite(v->wanted) && put_call(&call, v, place, GO)) {
            base_buf_puts(&body, "\tkvistValue(t, ");
            put_name(&body, v, place);
            base_buf_puts(&body, ", ");
            if (v->raises)
                base_buf_puts(&body, "\"error\"");
            else if (v->is_plain)
                put_quoted(&body, v->wanted);
            else {
                base_buf_puts(&body, "fmt.Sprint(");
                put_operand(&body, v->wanted, GO);
                base_buf_putc(&body, ')');
            }
            base_buf_printf(&body, ", func() string { return kvistSays(%s) })\n", call.data);
            n_put++;
        }
        base_buf_free(&call);
    }
    /* Packages that the values name and the file has: "big." of "math/big". */
    for (const char *line = place->imports; line && *line;) {
        const size_t len = strcspn(line, "\n");
        char *import = base_xstrndup(line, len);
        char *quote = strrchr(import, '"');
        base_buf word = {0};
        if (quote) {
            const char *from = quote;
            while (from > import && from[-1] != '/' && from[-1] != '"') from--;
            base_buf_printf(&word, "%.*s.", (int)(quote - from), from);
        }
        if (word.len > 1 && body.len && strstr(body.data, word.data) && strcmp(word.data, "fmt.") &&
            strcmp(word.data, "testing."))
            base_buf_printf(&imports, "\t%s\n", import);
        base_buf_free(&word);
        free(import);
        line += len + (line[len] == '\n');
    }
    base_buf_printf(out,
        "cat >\"$TMPDIR/kvist_values_test.go\" <<'%s'\n"
        "package %s\n\n"
        "import (\n"
        "\t\"fmt\"\n"
        "\t\"testing\"\n"
        "%s)\n\n"
        "var kvistHold, kvistOf int\n\n"
        "func kvistSays(all ...interface{}) string {\n"
        "\tif n := len(all); n > 1 {\n"
        "\t\tif err, is := all[n-1].(error); is && err != nil {\n"
        "\t\t\treturn \"error\"\n"
        "\t\t} else if all[n-1] == nil {\n"
        "\t\t\tall = all[:n-1]\n"
        "\t\t}\n"
        "\t} else if n == 1 {\n"
        "\t\tif err, is := all[0].(error); is && err != nil {\n"
        "\t\t\treturn \"error\"\n"
        "\t\t}\n"
        "\t}\n"
        "\treturn fmt.Sprint(all...)\n}\n\n"
        "func kvistValue(t *testing.T, call, wanted string, says func() string) {\n"
        "\tgot := func() (got string) {\n"
        "\t\tdefer func() {\n"
        "\t\t\tif r := recover(); r != nil {\n"
        "\t\t\t\tgot = fmt.Sprint(\"panic: \", r)\n"
        "\t\t\t}\n"
        "\t\t}()\n"
        "\t\treturn says()\n"
        "\t}()\n"
        "\tkvistOf++\n"
        "\tif got == wanted {\n"
        "\t\tkvistHold++\n"
        "\t} else {\n"
        "\t\tfmt.Printf(\"%%s gives %%s, and should give %%s\\n\", call, got, wanted)\n"
        "\t\tt.Fail()\n"
        "\t}\n"
        "}\n\n"
        "func TestKvistValues(t *testing.T) {\n"
        "%s\tfmt.Printf(\"%%d of %%d values of the request hold\\n\", kvistHold, kvistOf)\n"
        "}\n"
        "%s\n",
        END, place->package, imports.data ? imports.data : "", body.data ? body.data : "", END);
    base_buf_printf(out,
        "printf '{\"Replace\": {\"%%s\": \"%%s\"}}' \"$PWD/%s%skvist_values_test.go\" "
        "\"$TMPDIR/kvist_values_test.go\" "
        ">\"$TMPDIR/kvist_values.json\"\n"
        "go test -v -vet=off -count=1 -overlay \"$TMPDIR/kvist_values.json\" -run '^TestKvistValues$' ./%s\n",
        strcmp(folder, ".") ? folder : "", strcmp(folder, ".") ? "/" : "", strcmp(folder, ".") ? folder : "");
    free(folder);
    base_buf_free(&body);
    base_buf_free(&imports);
    return n_put;
}

/* --- C -------------------------------------------------------------------------------------------------- */

/* The file is included, so that static functions are there; what it calls comes from the files beside it. */
static uint32_t put_c(const agent_value *values, uint32_t n, const agent_values_place *place, base_buf *out)
{
    uint32_t n_put = 0;
    base_buf body = {0};
    char *folder = base_path_folder(place->path);
    for (uint32_t i = 0; i < n; i++) {
        const agent_value *v = &values[i];
        base_buf call = {0};
        if (!v->raises && !is_composite(v->wanted) && put_call(&call, v, place, C)) {
            base_buf_puts(&body, "    kvist_value(");
            put_name(&body, v, place);
            base_buf_printf(&body, ", KVIST_SAYS(%s), ", call.data);
            if (is_string(v->wanted) || v->is_plain) {
                put_wanted(&body, v, C);
            } else {
                base_buf_puts(&body, "KVIST_SAYS(");
                put_operand(&body, v->wanted, C);
                base_buf_putc(&body, ')');
            }
            base_buf_puts(&body, ");\n");
            n_put++;
        }
        base_buf_free(&call);
    }
    base_buf_printf(out,
        "cat >\"$TMPDIR/kvist_values.c\" <<'%s'\n"
        "#define main kvist_main_of_the_file\n"
        "#include \"%s\"\n"
        "#undef main\n"
        "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
        "static int kvist_hold, kvist_of;\n"
        "static char *kvist_text(const char *s) { char *r = malloc((s ? strlen(s) : 8) + 1); return "
        "strcpy(r, s ? s : \"NULL\"); }\n"
        "static char *kvist_number(double d) { char s[64]; snprintf(s, "
        "sizeof s, \"%%.15g\", d); return kvist_text(s); }\n"
        "static char *kvist_integer(long long i) { char s[64]; "
        "snprintf(s, sizeof s, \"%%lld\", i); return kvist_text(s); }\n"
        "static char *kvist_pointer(const void *p) { return kvist_text(p ? \"a pointer\" : \"NULL\"); }\n"
        "#define KVIST_SAYS(x) _Generic((x), char *: kvist_text, const char *: kvist_text, float: "
        "kvist_number, double: kvist_number, "
        "void *: kvist_pointer, default: kvist_integer)(x)\n"
        "static void kvist_value(const char *call, const char *got, const char *wanted)\n{\n    kvist_of++;\n"
        "    if (!strcmp(got, wanted)) kvist_hold++;\n"
        "    else printf(\"%%s gives %%s, and should give %%s\\n\", call, got, wanted);\n"
        "    fflush(stdout);\n"
        "}\n"
        "int main(void)\n"
        "{\n"
        "%s    printf(\"%%d of %%d values of the request hold\\n\", kvist_hold, kvist_of);\n"
        "    return kvist_hold != kvist_of;\n"
        "}\n"
        "%s\n",
        END, place->path, body.data ? body.data : "", END);
    base_buf_printf(out,
        "flags=\"-std=gnu11 -D_GNU_SOURCE -I. -I%s -Iinclude -Isrc\"\nn=0\n"
        "for f in %s/*.c; do\n    [ \"$f\" -ef %s ] && continue\n    n=$((n + 1)); [ $n -gt 40 ] && break\n"
        "    cc -w $flags -Dmain=kvist_other_main -c -o \"$TMPDIR/kvist_$n.o\" "
        "\"$f\" 2>/dev/null && set -- \"$@\" \"$TMPDIR/kvist_$n.o\"\n"
        "done\n"
        "rm -f \"$TMPDIR/kvist_values.a\"; [ $# = 0 ] || ar rc \"$TMPDIR/kvist_values.a\" \"$@\"; [ $# = 0 ] "
        "|| set -- \"$TMPDIR/kvist_values.a\"\n"
        "cc $flags -Werror=implicit-function-declaration -Wno-unused -o \"$TMPDIR/kvist_values\" "
        "\"$TMPDIR/kvist_values.c\" \"$@\" -lm "
        "-Wl,--unresolved-symbols=ignore-all && \"$TMPDIR/kvist_values\"\n",
        folder, folder, place->path);
    free(folder);
    base_buf_free(&body);
    return n_put;
}

/* --- Rust ----------------------------------------------------------------------------------------------- */

/* A test module behind the file's text, in a copy of the crate: cargo has no overlay. */
static uint32_t put_rust(
    const agent_value *values, uint32_t n, const agent_values_place *place, base_buf *out)
{
    uint32_t n_put = 0;
    base_buf body = {0};
    for (uint32_t i = 0; i < n; i++) {
        const agent_value *v = &values[i];
        base_buf call = {0};
        if (!v->raises && *v->wanted != '{' && put_call(&call, v, place, RUST)) {
            base_buf_puts(&body, "        kvist_value(&mut hold, &mut of, ");
            put_name(&body, v, place);
            base_buf_printf(&body, ", format!(\"{:?}\", %s), format!(\"{:?}\", ", call.data);
            put_wanted(&body, v, RUST);
            base_buf_puts(&body, "));\n");
            n_put++;
        }
        base_buf_free(&call);
    }
    base_buf_printf(out,
        "copy=\"$TMPDIR/kvist_values\"; rm -rf \"$copy\"; mkdir \"$copy\"\n"
        "tar --exclude=./target --exclude=./.git -cf - . | tar -xf - -C \"$copy\"\n"
        "cat >>\"$copy/%s\" <<'%s'\n\n"
        "#[cfg(test)]\n#[allow(warnings)]\nmod kvist_values {\n    use super::*;\n"
        "    fn kvist_value(hold: &mut u32, of: &mut u32, call: &str, got: String, wanted: String) {\n"
        "        *of += 1;\n"
        "        if got == wanted { *hold += 1; } else { println!(\"{} "
        "gives {}, and should give {}\", call, got, wanted); }\n"
        "    }\n"
        "    #[test]\n"
        "    fn kvist_values() {\n"
        "        let (mut hold, mut of) = (0u32, 0u32);\n"
        "%s        println!(\"{} of {} values of the request hold\", hold, of);\n"
        "        assert_eq!(hold, of);\n"
        "    }\n"
        "}\n"
        "%s\n"
        "cd \"$copy\" && CARGO_TARGET_DIR=\"$TMPDIR/target\" cargo test --offline -q --lib "
        "kvist_values -- --nocapture 2>&1 | grep -v '^ *$' | tee \"$TMPDIR/kvist_values.txt\"; "
        "grep -q 'test result: ok. [1-9]' \"$TMPDIR/kvist_values.txt\"\n",
        place->path, END, body.data ? body.data : "", END);
    base_buf_free(&body);
    return n_put;
}

/* --- Java ----------------------------------------------------------------------------------------------- */

/* Static methods of the file's class, and what can be made with new. */
static uint32_t put_java(
    const agent_value *values, uint32_t n, const agent_values_place *place, base_buf *out)
{
    uint32_t n_put = 0;
    if (!place->package) return 0;
    char *folder = base_path_folder(place->path), *stem = stem_of(place->path);
    base_buf body = {0}, path = {0};
    for (const char *p = place->package; *p; p++) base_buf_putc(&path, *p == '.' ? '/' : *p);
    /* "src/main/java" where the package a.b lies in it */
    size_t root = strlen(folder);
    const bool fits = !path.len || (root >= path.len && !strcmp(folder + root - path.len, path.data));
    if (path.len && fits) root -= path.len;
    while (root && folder[root - 1] == '/') root--;
    for (uint32_t i = 0; fits && i < n; i++) {
        const agent_value *v = &values[i];
        base_buf call = {0};
        const bool is_bare =
            v->is_call && strncmp(v->left, "new ", 4) != 0 && strcspn(v->left, ".") > strcspn(v->left, "(");
        if (!v->raises && !is_composite(v->wanted) && put_call(&call, v, place, JAVA)) {
            base_buf_puts(&body, "        value(");
            put_name(&body, v, place);
            base_buf_printf(&body, ", String.valueOf((Object) %s%s%s), String.valueOf((Object) ",
                is_bare || !v->is_call ? stem : "", is_bare || !v->is_call ? "." : "", call.data);
            put_wanted(&body, v, JAVA);
            base_buf_puts(&body, "));\n");
            n_put++;
        }
        base_buf_free(&call);
    }
    base_buf_printf(out,
        "mkdir -p \"$TMPDIR/kvist_values\"; cat >\"$TMPDIR/kvist_values/KvistValues.java\" <<'%s'\n"
        "%s%s%spublic class KvistValues {\n"
        "    static int hold, of;\n"
        "    static void value(String call, String got, String wanted) {\n        of++;\n"
        "        if (got.equals(wanted)) hold++;\n"
        "        else System.out.println(call + \" gives \" + got + \", and should give \" + wanted);\n"
        "    }\n"
        "    public static void main(String[] arguments) {\n"
        "%s        System.out.println(hold + \" of \" + of + \" values of the request hold\");\n"
        "        System.exit(hold == of ? 0 : 1);\n"
        "    }\n"
        "}\n"
        "%s\n"
        "javac -nowarn -sourcepath \"%.*s\" -d \"$TMPDIR/kvist_values/out\" \"%s\" "
        "\"$TMPDIR/kvist_values/KvistValues.java\" && "
        "java -cp \"$TMPDIR/kvist_values/out\" %s%sKvistValues\n",
        END, *place->package ? "package " : "", place->package, *place->package ? ";\n" : "",
        body.data ? body.data : "", END, root ? (int)root : 1, root ? folder : ".", place->path,
        place->package, *place->package ? "." : "");
    base_buf_free(&body);
    base_buf_free(&path);
    free(folder);
    free(stem);
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
