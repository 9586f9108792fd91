/*
 * Where a definition stands that the file lacks (contract: add.h). A small model knows the definition that it
 * was asked for and seldom the right call for it; the place, the column, the blank lines and the imports are
 * the program's part. Kin is told by words of names: sdscatlen stands behind sdscat, takesValue behind
 * isBoolean, test_get_key behind the other tests of keys.
 */
#include "tools/edit/add.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/path.h"
#include "tools/edit/choose.h"
#include "tools/edit/prototype.h"
#include "tools/edit/replace.h"
#include "tools/file/text.h"
#include "code/code.h"

void tool__addition_free(tool_addition *a)
{
    base_buf_free(&a->text);
    base_buf_free(&a->note);
    free(a->behind);
    free(a->signature);
    *a = (tool_addition){0};
}

char *tool__name_holder(const char *name)
{
    const char *last = code_last_name(name);
    size_t n = (size_t)(last - name);
    while (n && strchr(".:", name[n - 1])) n--;
    if (!n) return NULL;
    char *whole = base_xstrndup(name, n), *holder = base_xstrdup(code_last_name(whole));
    free(whole);
    return holder;
}

static bool is_language(const char *language, const char *name)
{
    return language && !strcmp(language, name);
}

bool tool__is_holder(const char *language, const code_definition *d)
{
    static const char *const kinds[] = {"class", "interface", "struct", "enum", "trait", "object", "union"};
    /* In these, functions stand outside of types. */
    if (is_language(language, "go") || is_language(language, "c")) return false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(d->what, kinds[i])) return true;
    return false;
}

/* ---- what the block brings ---- */

/* A definition of a block, apart from the parsed file. */
typedef struct newcomer {
    char *name, *what;
    char *holder;    /* the type around it in the block, or in front of its name (C++); NULL: none */
    char *receiver;  /* Go: the type that it is a method of; NULL: none */
    bool is_member;  /* it can only stand in a type */
    bool is_outside; /* C++: it says its type in front of its name */
} newcomer;

static void newcomer_free(newcomer *n)
{
    free(n->name);
    free(n->what);
    free(n->holder);
    free(n->receiver);
    *n = (newcomer){0};
}

static bool begins_with_self(const char *text, size_t n, size_t at)
{
    static const char *const firsts[] = {"self", "cls", "&self", "&mut self", "mut self"};
    while (at < n && text[at] != '(' && text[at] != '\n') at++;
    if (at == n || text[at] != '(') return false;
    for (at++; at < n && tool__is_space(text[at]); at++) {
    }
    for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++) {
        size_t m = strlen(firsts[i]);
        if (n - at > m && !memcmp(text + at, firsts[i], m) && strchr(",:) \n", text[at + m])) return true;
    }
    return false;
}

static bool is_top(const code_definition *d)
{
    return !d->parent || !*d->parent;
}

/* What a definition of the parsed block is, as a newcomer. */
static newcomer describe(const code_file *f, uint32_t at, const char *text, size_t n, bool is_wrapped)
{
    const code_definition *d = &f->definitions[at];
    newcomer ret = {.name = base_xstrdup(d->name), .what = base_xstrdup(d->what)};
    bool is_in_type = false;
    for (uint32_t i = 0; i < f->n_definitions && !is_wrapped; i++) {
        const code_definition *x = &f->definitions[i];
        is_in_type |= i != at && tool__is_holder(f->language, x) && x->from < d->from && x->to >= d->to;
    }
    ret.is_outside = is_language(f->language, "cpp") && !is_in_type && !is_wrapped && !is_top(d);
    if ((is_in_type || ret.is_outside) && !is_top(d)) ret.holder = base_xstrdup(code_last_name(d->parent));
    if (is_language(f->language, "go") && !strcmp(d->what, "method") && !is_top(d))
        ret.receiver = base_xstrdup(d->parent);
    bool is_python_or_rust = is_language(f->language, "python") || is_language(f->language, "rust");
    ret.is_member =
        is_wrapped || is_in_type || (is_python_or_rust && begins_with_self(text, n, d->name_from));
    return ret;
}

/* The block's definition of that name, else its first whole one; false: there is none. */
static bool find_newcomer(
    code_grammars *g, const char *path, base_str block, const char *language, const char *name, newcomer *ret)
{
    base_buf clean = {0}, flat = {0};
    tool__normalise_block(&clean, block.ptr, block.len);
    tool__indent_block(&flat, clean.data ? clean.data : "", clean.len, "", 0, TOOL_INDENT_KEEP, 4);
    if (!flat.data) base_buf_puts(&flat, "");
    bool found = false;
    for (int turn = 0; !found && turn < 2; turn++) {
        base_buf wrapped = {0};
        bool is_wrapped = false;
        uint32_t at = UINT32_MAX;
        code_file *f = tool__read_block(
            g, path, &flat, language, turn ? NULL : code_last_name(name), &at, &wrapped, &is_wrapped);
        const base_buf *parsed = is_wrapped ? &wrapped : &flat;
        found = at != UINT32_MAX;
        if (found) *ret = describe(f, at, parsed->data, parsed->len, is_wrapped);
        code_file_free(f);
        base_buf_free(&wrapped);
    }
    base_buf_free(&clean);
    base_buf_free(&flat);
    return found;
}

char *tool__block_name(
    code_grammars *g, const char *path, base_str block, const char *name, bool *ret_is_member)
{
    newcomer n = {0};
    if (!block.ptr || !find_newcomer(g, path, block, code_language(path, "", 0), name, &n)) return NULL;
    char *ret = base_xstrdup(n.name);
    if (ret_is_member) *ret_is_member = n.is_member;
    newcomer_free(&n);
    return ret;
}

/* ---- kin ---- */

static bool names_word(const char *words, const char *name)
{
    size_t n = strlen(name), pos = 0, from, to, all = words ? strlen(words) : 0;
    while (n && code_next_identifier(words, all, &pos, &from, &to))
        if (to - from == n && !memcmp(words + from, name, n)) return true;
    return false;
}

static uint32_t shared_words(const char *a, const char *b)
{
    base_buf x = {0}, y = {0};
    code_split_identifier(a, strlen(a), &x);
    code_split_identifier(b, strlen(b), &y);
    uint32_t shared = 0;
    for (const char *p = x.data; p && *p;) {
        size_t n = strcspn(p, " ");
        for (const char *q = y.data; n && q && *q;) {
            size_t m = strcspn(q, " ");
            shared += n == m && !memcmp(p, q, n);
            q += m + strspn(q + m, " ");
        }
        p += n + strspn(p + n, " ");
    }
    base_buf_free(&x);
    base_buf_free(&y);
    return shared;
}

static double kinship(const newcomer *who, const code_definition *d, const char *request)
{
    size_t prefix = 0, suffix = 0, n = strlen(who->name), m = strlen(d->name);
    while (prefix < n && prefix < m && who->name[prefix] == d->name[prefix]) prefix++;
    while (suffix < n && suffix < m && who->name[n - 1 - suffix] == d->name[m - 1 - suffix]) suffix++;
    double score = 3.0 * shared_words(who->name, d->name);
    if (prefix >= 3) score += 0.5 * (double)prefix;
    if (suffix >= 4) score += 0.3 * (double)suffix;
    if (strcmp(d->name, who->name) != 0 && names_word(request, d->name)) score += 8;
    return score;
}

/* A function beside functions, a value beside values. */
static bool is_same_sort(const newcomer *who, const code_definition *d)
{
    static const char *const values[] = {"variable", "field", "constant"};
    bool is_value[2] = {false, false};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        is_value[0] |= !strcmp(who->what, values[i]);
        is_value[1] |= !strcmp(d->what, values[i]);
    }
    return is_value[0] == is_value[1];
}

/* How many #if stand open in front of a byte. */
static int open_conditions(const char *text, size_t at)
{
    int depth = 0;
    for (size_t line = 0; line < at; line = tool__line_end(text, at, line) + 1) {
        size_t i = line;
        while (i < at && (text[i] == ' ' || text[i] == '\t')) i++;
        if (i >= at || text[i] != '#') continue;
        for (i++; i < at && (text[i] == ' ' || text[i] == '\t'); i++) {
        }
        if (at - i >= 2 && !memcmp(text + i, "if", 2)) depth++;
        if (at - i >= 5 && !memcmp(text + i, "endif", 5)) depth--;
    }
    return depth;
}

/* Rust: does d stand in an "impl Trait for Type"? Only what the trait names may stand there. */
static bool is_of_trait(const base_buf *text, const code_definition *d)
{
    const char *impl = NULL;
    for (size_t line = tool__line_begin(text->data, d->from); line > 0 && !impl;) {
        line = tool__line_begin(text->data, line - 1);
        const char *word = text->data + line + strspn(text->data + line, " \t");
        if (!strncmp(word, "impl", 4) || !strncmp(word, "unsafe impl", 11)) impl = word;
    }
    const char *brace = impl ? memchr(impl, '{', (size_t)(text->data + d->from - impl)) : NULL;
    return brace && memmem(impl, (size_t)(brace - impl), " for ", 5);
}

/* Go: a method stands behind the other methods of its type, the first one behind the type. */
static double receiver_score(const newcomer *who, const code_definition *d)
{
    if (!who->receiver) return 0;
    return !strcmp(d->what, "method") && !strcmp(d->parent, who->receiver) ? 40
           : is_top(d) && !strcmp(d->name, who->receiver)                  ? 20
                                                                           : 0;
}

/* Does d stand directly in the holder (UINT32_MAX: in none)? */
static bool is_sibling(const code_file *f, const base_buf *text, const code_definition *d, uint32_t holder,
    const char *holder_name)
{
    if (holder == UINT32_MAX && !holder_name)
        return is_top(d) || (is_language(f->language, "go") && strcmp(d->what, "field") != 0);
    if (is_top(d) || (is_language(f->language, "rust") && is_of_trait(text, d))) return false;
    const char *name = holder == UINT32_MAX ? holder_name : f->definitions[holder].name;
    return !strcmp(code_last_name(d->parent), name);
}

static bool is_function(const char *what)
{
    return !strcmp(what, "function") || !strcmp(what, "method");
}

/* The definition to stand behind; UINT32_MAX: there is none of its sort. */
static uint32_t find_relative(const code_file *f, const base_buf *text, const newcomer *who, uint32_t holder,
    const char *holder_name, const char *request)
{
    bool has_conditions = is_language(f->language, "c") || is_language(f->language, "cpp");
    int least = 1 << 20;
    for (uint32_t i = 0; has_conditions && i < f->n_definitions; i++) {
        int depth = open_conditions(text->data, f->definitions[i].from);
        if (depth < least) least = depth;
    }
    uint32_t best = UINT32_MAX;
    double best_score = -1;
    for (uint32_t i = 0; i < f->n_definitions; i++) {
        const code_definition *d = &f->definitions[i];
        if (!is_sibling(f, text, d, holder, holder_name) || !is_same_sort(who, d)) continue;
        if (has_conditions && open_conditions(text->data, d->from) > least) continue;
        if (has_conditions && !strcmp(d->name, "main")) continue;
        if (has_conditions && is_function(who->what) && !is_function(d->what)) continue;
        double score = kinship(who, d, request) + receiver_score(who, d);
        if (!strcmp(d->what, who->what)) score += 0.4;
        if (score >= best_score) {
            best = i;
            best_score = score;
        }
    }
    return best;
}

/*
 * C knows nothing of what stands further down: the last thing behind `relative` that the new text needs, where nothing in
 * front declares it; else `relative`.
 */
static uint32_t behind_needs(
    const code_file *f, const base_buf *text, const base_buf *fresh, const char *name, uint32_t relative)
{
    const code_definition *place = &f->definitions[relative];
    uint32_t last = relative;
    for (uint32_t i = 0; i < f->n_definitions; i++) {
        const code_definition *d = &f->definitions[i];
        const bool is_own = !is_function(d->what) || !strncmp(text->data + d->from, "static", 6);
        if (d->from <= place->from || d->is_declaration || !is_top(d) || !is_own || !strcmp(d->name, name) ||
            open_conditions(text->data, d->from) > open_conditions(text->data, place->from))
            continue;
        bool is_known = !names_word(fresh->data, d->name);
        for (uint32_t k = 0; k < f->n_definitions && !is_known; k++)
            is_known = f->definitions[k].from < place->from && !strcmp(f->definitions[k].name, d->name);
        if (!is_known && d->from > f->definitions[last].from) last = i;
    }
    return last;
}

static uint32_t find_holder(const code_file *f, const base_buf *text, const char *holder_name,
    const newcomer *who, const char *request)
{
    uint32_t best = UINT32_MAX, only = UINT32_MAX, n = 0;
    double best_score = 0;
    for (uint32_t i = 0; i < f->n_definitions; i++) {
        const code_definition *d = &f->definitions[i];
        if (!tool__is_holder(f->language, d)) continue;
        if (holder_name) {
            if (!strcmp(d->name, holder_name)) return i;
            continue;
        }
        only = i;
        n++;
        double score = names_word(request, d->name) ? 20 : 0;
        for (uint32_t k = 0; k < f->n_definitions; k++) {
            const code_definition *m = &f->definitions[k];
            if (!is_sibling(f, text, m, i, NULL) || !is_same_sort(who, m)) continue;
            double kin = kinship(who, m, request);
            if (score < 20 && kin > score) score = kin;
        }
        if (score > best_score) {
            best = i;
            best_score = score;
        }
    }
    return n == 1 ? only : best;
}

/* ---- blank lines and columns ---- */

static size_t blank_lines_at(const char *text, size_t n, size_t at)
{
    size_t lines = 0;
    while (at < n) {
        size_t end = tool__line_end(text, n, at);
        if (!tool__is_blank(text, at, end)) return lines;
        lines++;
        at = end + 1;
    }
    return 0; /* the end of the text is no distance */
}

static size_t behind_line(const base_buf *text, size_t to)
{
    size_t end = tool__line_end(text->data, text->len, to ? to - 1 : 0);
    return end < text->len ? end + 1 : end;
}

/* How many blank lines stand between definitions of this sort: those behind the relative, else usual ones. */
static size_t usual_gap(const code_file *f, const base_buf *text, const newcomer *who, uint32_t relative,
    uint32_t holder, const char *holder_name)
{
    size_t counts[4] = {0}, n = 0;
    for (uint32_t i = 0; i < f->n_definitions; i++) {
        const code_definition *d = &f->definitions[i];
        if (!is_sibling(f, text, d, holder, holder_name) || !is_same_sort(who, d)) continue;
        uint32_t next = i + 1;
        while (next < f->n_definitions && (f->definitions[next].from < d->to)) next++;
        if (next == f->n_definitions || !is_sibling(f, text, &f->definitions[next], holder, holder_name))
            continue;
        size_t gap = blank_lines_at(text->data, text->len, behind_line(text, d->to));
        if (i == relative) return gap;
        counts[gap < 3 ? gap : 3]++;
        n++;
    }
    if (n) {
        size_t most = 0;
        for (size_t i = 1; i < 4; i++)
            if (counts[i] > counts[most]) most = i;
        return most;
    }
    newcomer value = {.what = (char *)"variable"};
    code_definition like = {.what = who->what};
    if (is_same_sort(&value, &like)) return 0;
    return is_language(f->language, "python") && holder == UINT32_MAX ? 2 : 1;
}

/* The white space that the line of a byte begins with. */
static base_str indent_of(const base_buf *text, size_t at)
{
    size_t line = tool__line_begin(text->data, at), to = line;
    while (to < text->len && (text->data[to] == ' ' || text->data[to] == '\t')) to++;
    return (base_str){text->data + line, to - line};
}

/* ---- imports ---- */

static bool begins(const char *line, size_t n, const char *with)
{
    size_t m = strlen(with);
    return n >= m && !memcmp(line, with, m);
}

static bool is_import(const char *language, const char *line, size_t n)
{
    static const struct {
        const char *language, *with;
    } marks[] = {{"python", "import "}, {"python", "from "}, {"javascript", "import "},
        {"typescript", "import "}, {"tsx", "import "}, {"c", "#include"}, {"cpp", "#include"},
        {"rust", "use "}, {"java", "import "}, {"kotlin", "import "}, {"c_sharp", "using "}, {"php", "use "},
        {"go", "import "}, {"go", "\t\""}, {"ruby", "require"}};
    for (size_t i = 0; language && i < sizeof marks / sizeof *marks; i++)
        if (!strcmp(marks[i].language, language) && begins(line, n, marks[i].with)) return true;
    return language && !strcmp(language, "javascript") && begins(line, n, "const ") &&
           memmem(line, n, "require(", 8) != NULL;
}

/* The byte behind the file's last import at column 0; 0: it has none. */
static size_t behind_imports(const char *language, const base_buf *text)
{
    size_t ret = 0;
    int depth = 0;
    for (size_t at = 0; at < text->len;) {
        size_t end = tool__line_end(text->data, text->len, at);
        bool is_part = depth > 0 || is_import(language, text->data + at, end - at);
        for (size_t i = at; is_part && i < end; i++) {
            if (strchr("({", text->data[i])) depth++;
            if (strchr(")}", text->data[i])) depth--;
        }
        if (depth < 0) depth = 0;
        if (is_part && is_language(language, "go") && text->data[at] == ')') {
            at = end + 1;
            continue; /* a new one stands in front of the group's end */
        }
        if (is_part) ret = end < text->len ? end + 1 : end;
        at = end + 1;
    }
    return ret;
}

/* Takes the import lines that the block begins with out of `text`, into `imports`. */
static void split_imports(const char *language, base_buf *text, base_buf *imports)
{
    base_buf rest = {0};
    bool in_front = true;
    for (size_t at = 0; at < text->len;) {
        size_t end = tool__line_end(text->data, text->len, at), next = end < text->len ? end + 1 : end;
        size_t word = at;
        while (word < end && (text->data[word] == ' ' || text->data[word] == '\t')) word++;
        /* A line of Go's group of imports, whose brackets the file has already. */
        bool is_quoted = is_language(language, "go") && word < end && text->data[word] == '"';
        bool is_one = in_front && (is_quoted || is_import(language, text->data + at, end - at));
        if (in_front && !is_one && !tool__is_blank(text->data, at, end)) in_front = false;
        if (is_quoted && is_one) {
            base_buf_putc(imports, '\t');
            base_buf_add(imports, text->data + word, next - word);
        } else if (is_one)
            base_buf_add(imports, text->data + at, next - at);
        else if (!in_front || rest.len)
            base_buf_add(&rest, text->data + at, next - at);
        at = next;
    }
    base_buf_free(text);
    *text = rest;
    if (!text->data) base_buf_puts(text, "");
    if (imports->len && imports->data[imports->len - 1] != '\n') base_buf_putc(imports, '\n');
}

/* ---- the new text ---- */

static char *signature_of(code_grammars *g, const char *path, const base_buf *added, const char *name)
{
    code_file *f = code_parse(g, path, added->data, added->len);
    base_buf out = {0};
    for (uint32_t i = 0; i < f->n_definitions && !out.len; i++) {
        const code_definition *d = &f->definitions[i];
        if (!strcmp(d->name, name)) tool__put_signature(added->data, d, &out);
    }
    code_file_free(f);
    return out.len ? base_buf_take(&out) : NULL;
}

/* A place without a relative: the type's end, or the file's. */
static size_t place_without_relative(const code_file *f, const base_buf *text, uint32_t holder)
{
    if (holder == UINT32_MAX) return text->len;
    const code_definition *h = &f->definitions[holder];
    if (is_language(f->language, "python")) return behind_line(text, h->to);
    size_t brace = h->to < text->len ? h->to : text->len;
    while (brace > h->from && text->data[brace - 1] != '}') brace--;
    return brace > h->from ? tool__line_begin(text->data, brace - 1) : behind_line(text, h->to);
}

bool tool__add_definition(code_grammars *g, const char *path, const base_buf *text, const char *name,
    base_str block, const char *request, tool_addition *ret, base_buf *why)
{
    static const char empty[] = "";
    base_buf whole = {.data = text->data ? text->data : (char *)empty, .len = text->len};
    code_file *f = code_parse(g, path, whole.data, whole.len);
    const char *language = code_language(path, whole.data, whole.len);
    newcomer who = {0};
    tool_chosen c = {0};
    base_buf imports = {0}, placed = {0}, ends = {0};
    char *holder_name = tool__name_holder(name);
    bool is_good = find_newcomer(g, path, block, language, name, &who);
    if (!is_good) {
        base_buf_printf(why,
            "The block defines nothing, so nothing was added. Next: the same call with the whole definition "
            "of "
            "%.100s in the fenced block.\n",
            name);
        goto out;
    }
    if (is_language(language, "go") || is_language(language, "c")) {
        free(holder_name);
        holder_name = NULL;
    } else if (!holder_name && who.holder) {
        holder_name = base_xstrdup(who.holder);
    }
    uint32_t holder =
        holder_name || who.is_member ? find_holder(f, &whole, holder_name, &who, request) : UINT32_MAX;
    /*
     * A module of the file ("tests.works") holds functions as a type does, and methods of C++ stand outside of theirs;
     * another name in front is invented.
     */
    const bool has_outside = is_language(language, "cpp") || is_language(language, "rust");
    const bool is_around = holder_name && has_outside &&
                           find_relative(f, &whole, &who, UINT32_MAX, holder_name, request) != UINT32_MAX;
    if (holder == UINT32_MAX && holder_name && !who.is_member && !is_around) {
        free(holder_name);
        holder_name = NULL;
    }
    /* The members of a Rust type stand outside of it. */
    bool has_place = !who.is_member || holder != UINT32_MAX ||
                     (holder_name && is_language(language, "rust") &&
                         find_relative(f, &whole, &who, holder, holder_name, request) != UINT32_MAX);
    if (!has_place) {
        base_buf_printf(why,
            "%.100s can only stand in a type, and this file has none that the call or the request names. "
            "Nothing "
            "was changed. Next: the same call with \"name\": \"Type.%.100s\" and the file of that type.\n",
            who.name, who.name);
        is_good = false;
        goto out;
    }
    code_definition like = {.name = who.name,
        .parent = holder != UINT32_MAX ? f->definitions[holder].name
                  : who.is_member      ? "?"
                                       : "",
        .what = who.what};
    is_good = tool__choose(g, path, &whole, f, &like, block, &c, why);
    if (!is_good) goto out;
    split_imports(language, &c.text, &imports);
    if (is_language(language, "c") && tool__asks_for_prototype(request))
        tool__drop_static(g, path, &c.text, who.name);
    if (is_language(language, "cpp") && holder == UINT32_MAX && is_around && !who.is_outside)
        tool__qualify(g, path, &c.text, who.name, holder_name);
    uint32_t relative = find_relative(f, &whole, &who, holder, holder_name, request);
    if (relative != UINT32_MAX && (is_language(language, "c") || is_language(language, "cpp")))
        relative = behind_needs(f, &whole, &c.text, who.name, relative);
    size_t at = relative != UINT32_MAX ? behind_line(&whole, f->definitions[relative].to)
                                       : place_without_relative(f, &whole, holder);
    size_t gap = usual_gap(f, &whole, &who, relative, holder, holder_name);
    base_str indent = {"", 0};
    base_buf deeper = {0};
    if (relative != UINT32_MAX) {
        indent = indent_of(&whole, f->definitions[relative].from);
    } else if (holder != UINT32_MAX) {
        base_str outer = indent_of(&whole, f->definitions[holder].from);
        base_buf_add(&deeper, outer.ptr, outer.len);
        base_buf_puts(&deeper, tool__indent_char(whole.data, whole.len) == '\t' ? "\t" : "    ");
        indent = (base_str){deeper.data, deeper.len};
    }
    size_t unit;
    tool_indentation how = tool__indentation_for(whole.data, whole.len, c.text.data, c.text.len, &unit);
    while (c.text.len && tool__is_space(c.text.data[c.text.len - 1])) c.text.len--;
    tool__indent_block(&placed, c.text.data, c.text.len, indent.ptr, indent.len, how, unit);
    base_buf_putc(&placed, '\n');
    tool_text_style style = tool__text_style(whole.data, whole.len);
    /* The file up to the place, its last line ended; the distance; the new text; the rest. */
    size_t import_at = imports.len ? behind_imports(language, &whole) : 0;
    if (import_at > at) import_at = 0;
    const char *newline = style.crlf ? "\r\n" : "\n";
    base_buf_add(&ret->text, whole.data, import_at);
    tool__line_ends(&ret->text, imports.data ? imports.data : "", imports.len, style.crlf);
    if (imports.len && !import_at) base_buf_puts(&ret->text, newline);
    base_buf_add(&ret->text, whole.data + import_at, at - import_at);
    if (ret->text.len && ret->text.data[ret->text.len - 1] != '\n') base_buf_puts(&ret->text, newline);
    bool is_behind = relative != UINT32_MAX || holder == UINT32_MAX || at > f->definitions[holder].from;
    size_t had = 0; /* blank lines in front of the place already */
    for (size_t i = ret->text.len; i > 1 && ret->text.data[i - 1] == '\n';) {
        size_t line = tool__line_begin(ret->text.data, i - 1);
        if (!tool__is_blank(ret->text.data, line, i - 1)) break;
        had++;
        i = line;
    }
    for (size_t i = had; is_behind && ret->text.len && i < gap; i++) base_buf_puts(&ret->text, newline);
    size_t from = ret->text.len;
    tool__line_ends(&ends, placed.data, placed.len, style.crlf);
    base_buf_add(&ret->text, ends.data, ends.len);
    /* What follows keeps the distance that it had, at least the usual one where no bracket closes. */
    size_t next = at;
    while (next < whole.len && (whole.data[next] == ' ' || whole.data[next] == '\t')) next++;
    bool is_followed = next < whole.len && !strchr("})]#", whole.data[next]) && whole.data[next] != '\r' &&
                       whole.data[next] != '\n';
    for (size_t i = 0; relative != UINT32_MAX && is_followed && i < gap; i++)
        base_buf_puts(&ret->text, newline);
    base_buf_add(&ret->text, whole.data + at, whole.len - at);
    is_good = tool__syntax_holds(g, path, &whole, &ret->text, why);
    if (!is_good) goto out_deeper;
    ret->line = (uint32_t)tool__line_of(ret->text.data, from);
    ret->line_end = (uint32_t)tool__line_of(ret->text.data, from + (ends.len ? ends.len - 1 : 0));
    if (relative != UINT32_MAX) {
        ret->behind = base_xstrdup(f->definitions[relative].name);
        ret->is_kin = kinship(&who, &f->definitions[relative], request) > 0;
    }
    if (c.note.len) base_buf_add(&ret->note, c.note.data, c.note.len);
    ret->signature = signature_of(g, path, &c.text, who.name);
out_deeper:
    base_buf_free(&deeper);
out:
    newcomer_free(&who);
    free(holder_name);
    base_buf_free(&c.text);
    base_buf_free(&c.note);
    base_buf_free(&imports);
    base_buf_free(&placed);
    base_buf_free(&ends);
    code_file_free(f);
    return is_good;
}

/* Another name of the statement text[at, to), "from x import a, b" or the same in brackets, on lines as its names stand. */
static void append_name(base_buf *text, size_t at, size_t to, const char *name)
{
    size_t last = to;
    while (last > at && tool__is_space(text->data[last - 1])) last--;
    const bool ends_in_comma = text->data[last - 1] == ',';
    const size_t line = tool__line_begin(text->data, last);
    base_buf out = {0};
    base_buf_add(&out, text->data, last);
    if (!ends_in_comma) base_buf_putc(&out, ',');
    if (line > at) { /* each on a line of its own */
        size_t word = line;
        while (word < last && tool__is_space(text->data[word])) word++;
        base_buf_puts(&out, tool__text_style(text->data, text->len).crlf ? "\r\n" : "\n");
        base_buf_add(&out, text->data + line, word - line);
    } else {
        base_buf_putc(&out, ' ');
    }
    base_buf_puts(&out, name);
    if (ends_in_comma && line > at) base_buf_putc(&out, ',');
    base_buf_add(&out, text->data + last, text->len - last);
    base_buf_free(text);
    *text = out;
}

bool tool__import_name(base_buf *text, const char *module, const char *name)
{
    size_t m = strlen(module);
    for (size_t at = 0; at < text->len;) {
        size_t end = tool__line_end(text->data, text->len, at);
        const char *import = memmem(text->data + at, end - at, " import ", 8);
        size_t word = import ? (size_t)(import - text->data) : 0;
        const char *open = import ? memchr(import, '(', end - word) : NULL;
        const char *close = open ? memchr(open, ')', text->len - (size_t)(open - text->data)) : NULL;
        const size_t to = close ? (size_t)(close - text->data) : end;
        bool is_it = import && !open == !close && begins(text->data + at, end - at, "from ") &&
                     word - at > m && !memcmp(text->data + word - m, module, m) &&
                     strchr(". ", text->data[word - m - 1]) && !memchr(text->data + at, '#', to - at) &&
                     !memchr(text->data + at, '\\', to - at) && !memchr(text->data + at, '*', to - at);
        if (is_it) {
            size_t pos = 0, from, to_name; /* used twice, it is imported once */
            while (code_next_identifier(text->data + at, to - at, &pos, &from, &to_name))
                if (to_name - from == strlen(name) && !memcmp(text->data + at + from, name, to_name - from))
                    return false;
            append_name(text, at, to, name);
            return true;
        }
        at = end + 1;
    }
    return false;
}

char *tool__module_name(const char *path)
{
    const bool is_package = !strcmp(base_path_name(path), "__init__.py");
    char *folder = base_path_folder(path);
    const char *name = base_path_name(is_package ? folder : path);
    char *module = base_xstrndup(name, strcspn(name, "."));
    free(folder);
    return module;
}
