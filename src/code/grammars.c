/*
 * Finds tree-sitter grammars at run time: shared objects in $KVIST_GRAMMAR_PATH, the data folder, the
 * system's data folders, then whatever the loader knows as libtree-sitter-LANG.so. Never from a relative path
 * and never from the tree being edited: a grammar is code that runs in this process. Its ABI is checked
 * before the parser sees it.
 *
 * One mutex; a grammar is loaded at its first use and stays until close. Without tree-sitter at build time
 * nothing is found, and everything is lexical.
 */
#include "code/trees.h"
#include "code/shared_object.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/path.h"

#ifdef KVIST_HAVE_TREE_SITTER
#include <dlfcn.h>

enum { MAX_GRAMMARS = 64, MAX_BUNDLES = 8, MAX_FOLDERS = 32 };

typedef struct entry {
    char language[32];
    code_grammar grammar; /* language NULL: looked for and not found */
    char *path, *unresolved;
    char *why;    /* why what was found is not loaded; NULL */
    void *handle; /* NULL for a grammar of a bundle */
    uint32_t abi;
} entry;

struct code_grammars {
    pthread_mutex_t lock;
    char *folders[MAX_FOLDERS];
    uint32_t n_folders;
    struct {
        char *path;
        void *handle;
    } bundles[MAX_BUNDLES];
    uint32_t n_bundles;
    bool bundles_opened;
    char *broken_bundle, *broken_why; /* one that does not load; NULL */
    entry entries[MAX_GRAMMARS];
    uint32_t n_entries;
    code_grammar_info list[MAX_GRAMMARS];
    code_trees *trees;
};

/* clang-format off */
static const char *const field_names[FIELD_N] = {
    [FIELD_NAME] = "name", [FIELD_DECLARATOR] = "declarator", [FIELD_BODY] = "body", [FIELD_TYPE] = "type",
    [FIELD_RECEIVER] = "receiver", [FIELD_LEFT] = "left", [FIELD_RIGHT] = "right", [FIELD_CONDITION] = "condition",
    [FIELD_VALUE] = "value", [FIELD_ARGUMENTS] = "arguments", [FIELD_CONSEQUENCE] = "consequence", [FIELD_KEY] = "key",
    [FIELD_PROPERTY] = "property", [FIELD_ALTERNATIVE] = "alternative", [FIELD_FUNCTION] = "function",
    [FIELD_METHOD] = "method", [FIELD_ATTRIBUTE] = "attribute", [FIELD_FIELD] = "field",
    [FIELD_PARAMETERS] = "parameters", [FIELD_PARAMETER] = "parameter", [FIELD_PATTERN] = "pattern",
    [FIELD_ALIAS] = "alias", [FIELD_ARGUMENT] = "argument", [FIELD_INITIALIZER] = "initializer", [FIELD_UPDATE] = "update",
    [FIELD_VARIABLE] = "variable", [FIELD_LABEL] = "label", [FIELD_COMMUNICATION] = "communication",
};
/* Other names for the same. */
static const struct { const char *name; uint8_t field; } field_aliases[] = {
    {"init", FIELD_INITIALIZER}, {"increment", FIELD_UPDATE},
};
/* clang-format on */

static void add_folder(code_grammars *g, const char *path, size_t n)
{
    if (n == 0 || path[0] != '/' || g->n_folders == MAX_FOLDERS) return;
    g->folders[g->n_folders++] = base_xstrndup(path, n);
}

static void add_folders(code_grammars *g, const char *list, const char *below)
{
    while (list != NULL && *list != '\0') {
        const char *colon = strchr(list, ':');
        const size_t n = colon != NULL ? (size_t)(colon - list) : strlen(list);
        if (n != 0) {
            base_buf path = {0};
            base_buf_add(&path, list, n);
            base_buf_puts(&path, below);
            add_folder(g, path.data, path.len);
            base_buf_free(&path);
        }
        list = colon != NULL ? colon + 1 : NULL;
    }
}

code_grammars *code_grammars_open(void)
{
    code_grammars *g = base_xcalloc(1, sizeof *g);
    pthread_mutex_init(&g->lock, NULL);
    g->trees = code_trees_new();
    add_folders(g, getenv("KVIST_GRAMMAR_PATH"), "");
    char *own = base_fs_home(BASE_HOME_DATA, "grammars");
    if (own != NULL) add_folder(g, own, strlen(own));
    free(own);
    const char *system = getenv("XDG_DATA_DIRS");
    add_folders(
        g, system != NULL && *system != '\0' ? system : "/usr/local/share:/usr/share", "/kvist/grammars");
    return g;
}

void code_grammars_close(code_grammars *g)
{
    if (g == NULL) return;
    code_trees_free(g->trees);
    for (uint32_t i = 0; i < g->n_entries; i++) {
        entry *e = &g->entries[i];
        free(e->grammar.row_of);
        free(e->grammar.field_of);
        free(e->grammar.is_name);
        free(e->grammar.flow_of);
        free(e->grammar.rows);
        free(e->path);
        free(e->unresolved);
        free(e->why);
        if (e->handle != NULL) dlclose(e->handle);
    }
    for (uint32_t i = 0; i < g->n_bundles; i++) {
        dlclose(g->bundles[i].handle);
        free(g->bundles[i].path);
    }
    free(g->broken_bundle);
    free(g->broken_why);
    for (uint32_t i = 0; i < g->n_folders; i++) free(g->folders[i]);
    pthread_mutex_destroy(&g->lock);
    free(g);
}

static bool contains(const char *s, const char *part)
{
    return strstr(s, part) != NULL;
}

/*
 * Leaf types that are names: identifier, type_identifier, property_identifier, constant (Ruby), name (PHP),
 * word (Bash).
 */
static bool is_name_node(const char *node)
{
    static const char *const others[] = {"constant", "name", "word", "field_expression_name", "variable_name",
        "operator_name", "destructor_name", "identifier_name", "simple_identifier", "setter"};
    if (contains(node, "identifier") && !contains(node, "qualified") && !contains(node, "scoped"))
        return true;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(node, others[i]) == 0) return true;
    return false;
}

static uint8_t name_kind_of(const char *node)
{
    static const char *const variables[] = {"identifier", "simple_identifier", "variable_name", "constant",
        "shorthand_property_identifier", "shorthand_property_identifier_pattern",
        "shorthand_field_identifier", "instance_variable", "class_variable", "global_variable"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        if (strcmp(node, variables[i]) == 0) return CODE_NAME_VARIABLE;
    if (strcmp(node, "name") == 0) return CODE_NAME_OF_VARIABLE;
    return is_name_node(node) ? CODE_NAME_ONLY : 0;
}

enum { MAX_ROWS = 255 }; /* row_of holds one more than a row's place in a byte */

/*
 * What each symbol means, by the language's table, or where it has none by the names of its node types. Several symbol ids
 * may share a name, so every symbol is looked at. seen: [MAX_ROWS] which rows of the table a symbol has.
 */
static uint32_t resolve_symbols(code_grammar *gr, const code_table *table, bool *seen)
{
    uint32_t n_rows = 0;
    for (; table != NULL && table->rows[n_rows].node != NULL && n_rows < MAX_ROWS; n_rows++)
        gr->rows[n_rows] = table->rows[n_rows];
    for (uint32_t symbol = 0; symbol < gr->n_symbols; symbol++) {
        if (ts_language_symbol_type(gr->language, (TSSymbol)symbol) != TSSymbolTypeRegular) continue;
        const char *name = ts_language_symbol_name(gr->language, (TSSymbol)symbol);
        if (name == NULL) continue;
        gr->is_name[symbol] = name_kind_of(name);
        gr->flow_of[symbol] = code_flow_of(gr->name, name);
        for (uint32_t r = 0; table != NULL && r < n_rows; r++) {
            if (strcmp(gr->rows[r].node, name) != 0) continue;
            gr->row_of[symbol] = (uint8_t)(r + 1);
            seen[r] = true;
        }
        if (table != NULL || n_rows == MAX_ROWS) continue;
        const code_node_row guess = code_row_by_name(name);
        if (guess.node == NULL) continue;
        gr->rows[n_rows++] = guess;
        gr->row_of[symbol] = (uint8_t)n_rows;
    }
    return n_rows;
}

static void resolve_fields(code_grammar *gr)
{
    for (uint32_t f = 1; f <= gr->n_fields; f++) {
        const char *name = ts_language_field_name_for_id(gr->language, (TSFieldId)f);
        if (name == NULL) continue;
        for (uint8_t i = 1; i < FIELD_N; i++)
            if (strcmp(field_names[i], name) == 0) gr->field_of[f] = i;
        for (size_t i = 0; i < sizeof field_aliases / sizeof *field_aliases; i++)
            if (strcmp(field_aliases[i].name, name) == 0) gr->field_of[f] = field_aliases[i].field;
    }
}

/* A number of all that parsing depends on: what was kept of a file by another one is parsed anew. */
static uint64_t tag_of(const code_grammar *gr, uint32_t abi)
{
    uint64_t tag = base_hash64(gr->name, strlen(gr->name), abi);
    for (uint32_t symbol = 0; symbol < gr->n_symbols; symbol++) {
        const char *name = ts_language_symbol_name(gr->language, (TSSymbol)symbol);
        tag = base_hash64(name != NULL ? name : "", name != NULL ? strlen(name) : 0, tag);
        if (gr->row_of[symbol] == 0) continue;
        const code_node_row *row = &gr->rows[gr->row_of[symbol] - 1];
        const char *what = row->what != NULL ? row->what : "";
        tag = base_hash64(what, strlen(what), tag + (uint64_t)row->kind * 31 + row->flags);
    }
    return tag;
}

static void resolve(entry *e)
{
    code_grammar *gr = &e->grammar;
    const code_table *table = code_table_of(e->language);
    bool seen[MAX_ROWS] = {false};
    gr->name = e->language;
    gr->n_symbols = ts_language_symbol_count(gr->language);
    gr->n_fields = ts_language_field_count(gr->language);
    gr->row_of = base_xcalloc(gr->n_symbols + 1, 1);
    gr->is_name = base_xcalloc(gr->n_symbols + 1, 1);
    gr->flow_of = base_xcalloc(gr->n_symbols + 1, sizeof *gr->flow_of);
    gr->field_of = base_xcalloc(gr->n_fields + 1, 1);
    gr->rows = base_xcalloc(MAX_ROWS + 1, sizeof *gr->rows);
    const uint32_t n_rows = resolve_symbols(gr, table, seen);
    resolve_fields(gr);
    gr->tag = tag_of(gr, e->abi);
    base_buf missing = {0};
    for (uint32_t r = 0; table != NULL && r < n_rows; r++)
        if (!seen[r]) base_buf_printf(&missing, "%s%s", missing.len != 0 ? " " : "", gr->rows[r].node);
    e->unresolved = base_buf_take(&missing);
}

/* Takes the symbol when it is there and its ABI is one that this tree-sitter reads. */
static bool try_handle(entry *e, void *handle, const char *path)
{
    char symbol[64];
    snprintf(symbol, sizeof symbol, "tree_sitter_%s", e->language);
    const TSLanguage *(*get)(void) = NULL;
    *(void **)&get = dlsym(handle, symbol);
    if (get == NULL) return false;
    const TSLanguage *language = get();
    if (language == NULL) return false;
    const uint32_t abi = ts_language_version(language);
    free(e->path);
    e->path = base_xstrdup(path);
    e->abi = abi;
    if (abi < TREE_SITTER_MIN_COMPATIBLE_LANGUAGE_VERSION || abi > TREE_SITTER_LANGUAGE_VERSION) return false;
    e->grammar.language = language;
    return true;
}

/*
 * Remembers a file that should be a grammar and is none, with ABI 0, so that a person is told of it when no
 * other file gives the language.
 */
static void remember_broken(entry *e, const char *path, const char *why)
{
    if (e->path != NULL || !base_fs_exists(path)) return;
    e->path = base_xstrdup(path);
    e->why = why != NULL && *why != '\0' ? base_xstrdup(why) : NULL;
}

/* path: a file's, or a bare name that the loader searches for. */
static bool try_file(entry *e, const char *path)
{
    base_err err = {0};
    const bool may_load = path[0] != '/' || code_shared_object_check(path, &err) == 0;
    void *handle = may_load ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (handle != NULL && try_handle(e, handle, path)) {
        e->handle = handle;
        return true;
    }
    if (handle != NULL) dlclose(handle);
    remember_broken(e, path, err.msg);
    return false;
}

static void open_bundles(code_grammars *g)
{
    if (g->bundles_opened) return;
    g->bundles_opened = true;
    for (uint32_t i = 0; i < g->n_folders && g->n_bundles < MAX_BUNDLES; i++) {
        base_buf path = {0};
        base_buf_printf(&path, "%s/languages.so", g->folders[i]);
        const bool is_there = base_fs_exists(path.data);
        base_err err = {0};
        void *handle = is_there && code_shared_object_check(path.data, &err) == 0
                           ? dlopen(path.data, RTLD_LAZY | RTLD_LOCAL)
                           : NULL;
        if (handle == NULL) {
            if (is_there && g->broken_bundle == NULL) {
                g->broken_bundle = base_buf_take(&path);
                g->broken_why = base_xstrdup(err.msg);
            }
            base_buf_free(&path);
            continue;
        }
        g->bundles[g->n_bundles].handle = handle;
        g->bundles[g->n_bundles++].path = base_buf_take(&path);
    }
}

static void find(code_grammars *g, entry *e)
{
    static const char *const prefixes[] = {"libtree-sitter-", ""};
    char path[4096];
    for (uint32_t i = 0; i < g->n_folders; i++)
        for (size_t p = 0; p < sizeof prefixes / sizeof *prefixes; p++) {
            const int n = snprintf(path, sizeof path, "%s/%s%s.so", g->folders[i], prefixes[p], e->language);
            if (n > 0 && (size_t)n < sizeof path && base_fs_exists(path) && try_file(e, path)) return;
        }
    open_bundles(g);
    for (uint32_t i = 0; i < g->n_bundles; i++)
        if (try_handle(e, g->bundles[i].handle, g->bundles[i].path)) return;
    snprintf(path, sizeof path, "libtree-sitter-%s.so", e->language);
    if (!try_file(e, path) && g->broken_bundle != NULL) remember_broken(e, g->broken_bundle, g->broken_why);
}

/* With the lock held. NULL: a name that no grammar can have, or too many. */
static entry *entry_of(code_grammars *g, const char *language)
{
    for (uint32_t i = 0; i < g->n_entries; i++)
        if (strcmp(g->entries[i].language, language) == 0) return &g->entries[i];
    const size_t n = strlen(language);
    if (n == 0 || n >= sizeof g->entries[0].language || g->n_entries == MAX_GRAMMARS) return NULL;
    if (strspn(language, "abcdefghijklmnopqrstuvwxyz0123456789_") != n) return NULL;
    entry *e = &g->entries[g->n_entries++];
    memcpy(e->language, language, n + 1);
    find(g, e);
    if (e->grammar.language != NULL) resolve(e);
    return e;
}

const code_grammar *code_grammar_get(code_grammars *g, const char *language)
{
    if (g == NULL || language == NULL) return NULL;
    pthread_mutex_lock(&g->lock);
    const entry *e = entry_of(g, language);
    pthread_mutex_unlock(&g->lock);
    return e != NULL && e->grammar.language != NULL ? &e->grammar : NULL;
}

code_trees *code_grammars_trees(code_grammars *g)
{
    return g->trees;
}

uint32_t code_grammars_list(code_grammars *g, const code_grammar_info **ret)
{
    uint32_t n = 0;
    pthread_mutex_lock(&g->lock);
    for (const code_table *table = code_tables; table->language != NULL; table++) {
        const entry *e = entry_of(g, table->language);
        if (e == NULL) continue;
        g->list[n++] = (code_grammar_info){.language = e->language,
            .path = e->path,
            .abi = e->abi,
            .usable = e->grammar.language != NULL,
            .why = e->grammar.language != NULL ? NULL : e->why,
            .unresolved = e->unresolved != NULL ? e->unresolved : ""};
    }
    pthread_mutex_unlock(&g->lock);
    *ret = g->list;
    return n;
}

/* "libtree-sitter-c_sharp.so" and "c_sharp.so" are c_sharp; false for another kind of name. */
static bool language_of_file(const char *path, char language[32])
{
    const char *base = base_path_name(path);
    if (strncmp(base, "libtree-sitter-", 15) == 0) base += 15;
    const size_t n = strspn(base, "abcdefghijklmnopqrstuvwxyz0123456789_");
    if (n == 0 || n >= 32 || strcmp(base + n, ".so") != 0) return false;
    memcpy(language, base, n);
    language[n] = '\0';
    return true;
}

int code_grammar_inspect(const char *path, char **ret_languages, base_err *err)
{
    char one[32], *full = realpath(path, NULL);
    if (full == NULL) return base_fail_sys(err, "%s", path);
    if (!language_of_file(path, one)) {
        free(full);
        return base_fail(
            err, BASE_E_USAGE, "%s is not named libtree-sitter-LANG.so, LANG.so or languages.so", path);
    }
    const int rc = code_shared_object_check(full, err);
    void *handle = rc == 0 ? dlopen(full, RTLD_LAZY | RTLD_LOCAL) : NULL;
    free(full);
    if (rc != 0) return rc;
    if (handle == NULL) return base_fail(err, BASE_E_FORMAT, "%s does not load: %s", path, dlerror());
    const bool bundle = strcmp(one, "languages") == 0;
    base_buf names = {0};
    uint32_t abi = 0;
    const code_table alone[] = {{one, NULL}, {NULL, NULL}};
    for (const code_table *table = bundle ? code_tables : alone; table->language != NULL; table++) {
        entry e = {0};
        snprintf(e.language, sizeof e.language, "%s", table->language);
        if (try_handle(&e, handle, path))
            base_buf_printf(&names, "%s%s", names.len != 0 ? " " : "", e.language);
        if (e.abi != 0) abi = e.abi;
        free(e.path);
    }
    dlclose(handle);
    const bool any = names.len != 0;
    char *found = base_buf_take(&names);
    if (any) {
        *ret_languages = found;
        return 0;
    }
    free(found);
    if (abi != 0)
        return base_fail(err, BASE_E_UNSUPPORTED, "%s has grammar ABI %u; this program reads %u to %u", path,
            abi, TREE_SITTER_MIN_COMPATIBLE_LANGUAGE_VERSION, TREE_SITTER_LANGUAGE_VERSION);
    return base_fail(err, BASE_E_FORMAT, "%s has no symbol tree_sitter_%s", path,
        bundle ? "LANG of a known language" : one);
}

#else

int code_grammar_inspect(const char *path, char **ret_languages, base_err *err)
{
    (void)ret_languages;
    return base_fail(err, BASE_E_UNSUPPORTED, "%s: this program was built without tree-sitter", path);
}

struct code_grammars {
    code_grammar_info list[32];
};

code_grammars *code_grammars_open(void)
{
    return base_xcalloc(1, sizeof(code_grammars));
}

void code_grammars_close(code_grammars *g)
{
    free(g);
}

uint32_t code_grammars_list(code_grammars *g, const code_grammar_info **ret)
{
    uint32_t n = 0;
    for (; code_tables[n].language != NULL && n < 32; n++)
        g->list[n] = (code_grammar_info){.language = code_tables[n].language, .unresolved = ""};
    *ret = g->list;
    return n;
}

#endif
