/*
 * "Add a method SetStrict that ...": a small model writes the method, which sets a field, and nothing that heeds it. So fields that
 * are new in this turn's text, are set there and are read nowhere in the tree are told, and asked for once.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/asked/asked.h"
#include "agent/asked/turn_files.h"
#include "agent/words/request_words.h"
#include "base/mem.h"
#include "code/code.h"

enum { MOST_FIELDS = 8, MOST_FILES = 4000, MAX_FILE = 1 << 20 };

/* Languages in which a field is read behind its object's name and nowhere else: what stands alone is another name. */
static bool is_dotted_language(const char *language)
{
    static const char *const all[] = {"python", "go", "rust", "c", "javascript", "typescript"};
    bool is = false;
    for (size_t i = 0; language && i < sizeof all / sizeof *all; i++) is |= !strcmp(language, all[i]);
    return is;
}

/* Does the name at text[from] stand behind an object's: "x.name", "x->name"? */
static bool is_dotted(const char *text, size_t from)
{
    return from > 1 && (text[from - 1] == '.' || (text[from - 1] == '>' && text[from - 2] == '-'));
}

/* Is what ends at text[to] given a value there, and not asked for its own? "a.b = c", "a.b += c" */
static bool is_set(const char *text, size_t n, size_t to)
{
    while (to < n && text[to] == ' ') to++;
    if (to + 1 < n && strchr("+-*/|&^%", text[to]) && text[to + 1] == '=') to++;
    return to + 1 < n && text[to] == '=' && text[to + 1] != '=' && text[to + 1] != '>';
}

/* Is it given a function, or a class? Then it is a member that is called. */
static bool is_given_function(const char *text, size_t n, size_t to)
{
    static const char *const begins[] = {"function", "async", "(", "class", "lambda"};
    const char *equals = memchr(text + to, '=', n - to);
    if (!equals) return false;
    equals++;
    while (equals < text + n && *equals == ' ') equals++;
    bool is = false;
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        is |=
            (size_t)(text + n - equals) > strlen(begins[i]) && !strncmp(equals, begins[i], strlen(begins[i]));
    return is;
}

/* The first name of "d.cache.tag", where the last begins at text[from). */
static size_t begin_of_chain(const char *text, size_t from)
{
    size_t at = from;
    while (at && (code_is_name_byte(text[at - 1]) || text[at - 1] == '.')) at--;
    return at;
}

static bool begins_word(const char *text, const char *word)
{
    return !strncmp(text, word, strlen(word)) && !code_is_name_byte(text[strlen(word)]);
}

/* Is a name of the class's head no definition of the tree? What sets a field of that class may be read by its base. */
static bool has_foreign_base(
    const agent *a, const agent_turn_file *f, const code_file *parsed, const char *type)
{
    static const char *const plain[] = {
        "object", "ABC", "Generic", "Protocol", "extends", "implements", NULL};
    uint32_t at;
    bool is = false;
    if (!*type || code_find_definition(parsed, type, &at, 1) < 1) return false;
    const code_definition *d = &parsed->definitions[at];
    size_t pos = d->name_from + strlen(d->name), from, to;
    const size_t end = d->body_from < f->n_now ? d->body_from : f->n_now;
    while (!is && code_next_identifier(f->code_now, end, &pos, &from, &to)) {
        char *base = base_xstrndup(f->code_now + from, to - from);
        bool is_known = code_index_is_defined(tool_workspace_index(a->workspace), base);
        for (size_t i = 0; plain[i]; i++) is_known |= !strcmp(plain[i], base);
        is = !is_known;
        free(base);
    }
    return is;
}

/* Is the name declared by itself in the text, "int name;"? */
static bool is_declared(const char *text, size_t n, const char *name)
{
    size_t pos = 0, from, to;
    bool is = false;
    while (!is && code_next_identifier(text, n, &pos, &from, &to))
        is = to - from == strlen(name) && !memcmp(text + from, name, to - from) && !is_dotted(text, from) &&
             to < n && strchr(";[:", text[to]);
    return is;
}

/* Is text[from, to), the last of a chain of names, a field of an object of the tree's own type? */
static bool is_own_field(
    const agent *a, const agent_turn_file *f, const code_file *parsed, size_t from, const char *name)
{
    const uint32_t k = code_definition_at(parsed, (uint32_t)from);
    const code_definition *d = k < parsed->n_definitions ? &parsed->definitions[k] : NULL;
    const char *first = f->code_now + begin_of_chain(f->code_now, from);
    if (!d) return false;
    if (!strcmp(f->language, "c")) return is_declared(f->code_now, f->n_now, name);
    if (!strcmp(f->language, "go")) {
        static const char head[] = "func (";
        const char *receiver = f->code_now + d->from + sizeof head - 1;
        const size_t n = strncmp(f->code_now + d->from, head, sizeof head - 1) ? 0 : strcspn(receiver, " )");
        return n && !strncmp(first, receiver, n) && first[n] == '.';
    }
    const bool is_script = strcmp(f->language, "python") != 0 && strcmp(f->language, "rust") != 0;
    const bool is_own = begins_word(first, is_script ? "this" : "self") ||
                        (!strcmp(f->language, "python") && begins_word(first, "cls"));
    return is_own && !has_foreign_base(a, f, parsed, d->parent);
}

/*
 * What stands alone is another name, but for one in quotes ("getattr(self, 'name')"), one that takes an object apart ("{name} = this")
 * and a field of Go with a tag, which is for what looks at all of them.
 */
static bool is_read_alone(const char *text, size_t n, size_t from, size_t to)
{
    size_t before = from, line = to;
    while (before && text[before - 1] == ' ') before--;
    while (line < n && text[line] != '\n' && text[line] != '`') line++;
    while (to < n && text[to] == ' ') to++;
    return (before && strchr("\"'`{", text[before - 1])) || (to < n && text[to] == '}') ||
           (line < n && text[line] == '`');
}

/* Does the text read it? */
static bool reads(const char *text, size_t n, const char *name)
{
    size_t pos = 0, from, to;
    bool is = false;
    while (!is && code_next_identifier(text, n, &pos, &from, &to)) {
        if (to - from != strlen(name) || memcmp(text + from, name, to - from) != 0) continue;
        is = is_dotted(text, from) ? !is_set(text, n, to) : is_read_alone(text, n, from, to);
    }
    return is;
}

/* Is it in a file of code that the turn did not change? Then it is no new field. */
static bool is_elsewhere(const agent *a, const char *name)
{
    char **paths = code_index_paths(tool_workspace_index(a->workspace));
    bool is = false;
    for (size_t i = 0; paths && paths[i] && i < MOST_FILES && !is; i++) {
        const char *language = code_language(paths[i], "", 0);
        base_buf text = {0};
        if (!language || code_language_is_document(language) || agent__is_changed(a, paths[i])) continue;
        if (!tool_workspace_read(a->workspace, paths[i], MAX_FILE, &text, NULL) && text.data)
            is = code_has_identifier(text.data, text.len, name);
        base_buf_free(&text);
    }
    code_index_paths_free(paths);
    return is;
}

/* What looks at all of an object's fields reads each. */
static bool is_reflected(const agent_turn_file *f)
{
    static const char *const words[] = {"__dict__", "vars", "asdict", "serde"};
    bool is = false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        is |= code_has_identifier(f->code_now, f->n_now, words[i]);
    return is;
}

static bool is_new_and_unread(const agent *a, const agent_turn_files *all, const char *name)
{
    bool is = true;
    for (size_t i = 0; i < all->n && is; i++) {
        const agent_turn_file *f = &all->files[i];
        is = !is_dotted_language(f->language) || (!code_has_identifier(f->code_before, f->n_before, name) &&
                                                     !reads(f->code_now, f->n_now, name) && !is_reflected(f));
    }
    return is && !is_elsewhere(a, name);
}

/* Those of one file, up to MOST_FIELDS of all. */
static void list_file(
    const agent *a, const agent_turn_files *all, const agent_turn_file *f, uint32_t *n, base_buf *out)
{
    size_t pos = 0, from, to;
    code_file *parsed = code_parse(tool_workspace_grammars(a->workspace), f->path, f->code_now, f->n_now);
    while (*n < MOST_FIELDS && code_next_identifier(f->code_now, f->n_now, &pos, &from, &to)) {
        if (!is_dotted(f->code_now, from) || !is_set(f->code_now, f->n_now, to) ||
            is_given_function(f->code_now, f->n_now, to))
            continue;
        char *name = base_xstrndup(f->code_now + from, to - from);
        const bool is_listed = out->data && code_has_identifier(out->data, out->len, name);
        if (!is_listed && is_own_field(a, f, parsed, from, name) && is_new_and_unread(a, all, name)) {
            base_buf_printf(out, "%s%s", out->len ? ", " : "", name);
            ++*n;
        }
        free(name);
    }
    code_file_free(parsed);
}

uint32_t agent__list_unread(const agent *a, base_buf *out)
{
    agent_turn_files all;
    uint32_t n = 0;
    if (!a->asked.change || !a->asked.n_changed || a->asked.is_operation) return 0;
    agent__turn_files(a, &all);
    for (size_t i = 0; i < all.n; i++)
        if (is_dotted_language(all.files[i].language) && !code_path_is_test(all.files[i].path))
            list_file(a, &all, &all.files[i], &n, out);
    agent__turn_files_free(&all);
    return n;
}

bool agent__should_be_read(const agent *a)
{
    static const char *const kept[] = {"attribute", "attributes", "property", "properties", "field", "fields",
        "member", "members", "store", "stores", "stored", "remember", "remembers", "keep", "keeps", "record",
        "records", "expose", "exposes", NULL};
    return !agent__has_any_word(a->request, kept);
}
