/* Names that nothing binds (contract: unbound.h). */
#include "code/unbound.h"

#include <stdlib.h>
#include <string.h>

#include "code/index_state.h"
#include "code/scopes.h"

#ifdef KVIST_HAVE_TREE_SITTER

/* What the language has by itself; of JavaScript also what hosts give: Node, browsers, workers. */
static const char python_names[] =
    " ArithmeticError AssertionError AttributeError BaseException BaseExceptionGroup BlockingIOError "
    "BrokenPipeError BufferError BytesWarning ChildProcessError ConnectionAbortedError ConnectionError "
    "ConnectionRefusedError ConnectionResetError DeprecationWarning EOFError Ellipsis EncodingWarning "
    "EnvironmentError Exception ExceptionGroup False FileExistsError FileNotFoundError FloatingPointError "
    "FutureWarning GeneratorExit IOError ImportError ImportWarning IndentationError IndexError "
    "InterruptedError IsADirectoryError KeyError KeyboardInterrupt LookupError MemoryError "
    "ModuleNotFoundError NameError None NotADirectoryError NotImplemented NotImplementedError OSError "
    "OverflowError PendingDeprecationWarning PermissionError ProcessLookupError RecursionError "
    "ReferenceError ResourceWarning RuntimeError RuntimeWarning StopAsyncIteration StopIteration SyntaxError "
    "SyntaxWarning SystemError SystemExit TabError TimeoutError True TypeError UnboundLocalError "
    "UnicodeDecodeError UnicodeEncodeError UnicodeError UnicodeTranslateError UnicodeWarning UserWarning "
    "ValueError Warning WindowsError ZeroDivisionError abs aiter all anext any ascii bin bool breakpoint "
    "bytearray bytes callable chr classmethod compile complex copyright credits delattr dict dir divmod "
    "enumerate eval exec exit filter float format frozenset getattr globals hasattr hash help hex id input "
    "int isinstance issubclass iter len license list locals map max memoryview min next object oct open ord "
    "pow print property quit range repr reveal_type reversed round set setattr slice sorted staticmethod str "
    "sum super tuple type vars zip _ ";
static const char script_names[] =
    " AbortController AbortSignal AggregateError Array ArrayBuffer Atomics BigInt BigInt64Array "
    "BigUint64Array Blob Boolean BroadcastChannel Buffer Bun CompressionStream Crypto CryptoKey CustomEvent "
    "DOMException DataView Date DecompressionStream Deno Error EvalError Event EventTarget File "
    "FinalizationRegistry Float32Array Float64Array FormData Function Headers Infinity Int16Array Int32Array "
    "Int8Array Intl Iterator JSON Map Math MessageChannel MessageEvent MessagePort NaN Number Object "
    "Promise Proxy RangeError ReadableStream ReferenceError Reflect RegExp Request Response Set "
    "SharedArrayBuffer String SubtleCrypto Symbol SyntaxError TextDecoder TextEncoder TransformStream "
    "TypeError URIError URL URLSearchParams Uint16Array Uint32Array Uint8Array Uint8ClampedArray WeakMap "
    "WeakRef WeakSet WebAssembly WebSocket Worker WritableStream XMLHttpRequest __dirname __filename "
    "addEventListener alert arguments as async atob await btoa caches cancelAnimationFrame clearImmediate "
    "clearInterval clearTimeout confirm console crypto customElements decodeURI decodeURIComponent define "
    "dispatchEvent document encodeURI encodeURIComponent escape eval event exports fetch frames "
    "getComputedStyle global globalThis history importScripts indexedDB isFinite isNaN localStorage location "
    "matchMedia module name navigator of open parent parseFloat parseInt performance postMessage process "
    "prompt queueMicrotask removeEventListener requestAnimationFrame requestIdleCallback require screen "
    "scrollTo self sessionStorage setImmediate setInterval setTimeout structuredClone top undefined unescape "
    "window yield ";

static bool is_own(const char *names, const char *text, size_t n)
{
    const char *at = names;
    while ((at = memmem(at, strlen(at), text, n)) != NULL) {
        if (at[-1] == ' ' && at[n] == ' ') return true;
        at++;
    }
    return n > 4 && memcmp(text, "__", 2) == 0 && memcmp(text + n - 2, "__", 2) == 0;
}

/* C, in a function that parses: what is called may come from any header, so may a type; of `#if defined(x)` and `case x:` nobody can say. */
static bool is_variable_of_c(const code_tree *t, uint32_t i)
{
    static const char *const others[] = {"preproc_def", "preproc_function_def", "preproc_params",
        "preproc_defined", "preproc_ifdef", "preproc_if", "preproc_elif", "enumerator", "case_statement",
        "attribute", "function_declarator", NULL};
    const uint32_t p = t->nodes[i].parent;
    uint32_t function = p;
    if (!code_node_is(t, i, "identifier") || p == UINT32_MAX || code_node_is_one(t, p, others)) return false;
    while (function != UINT32_MAX && !code_node_is(t, function, "function_definition"))
        function = t->nodes[function].parent;
    if (function == UINT32_MAX || t->nodes[function].is_wrong) return false;
    return !code_node_is(t, p, "call_expression") || code_tree_first(t, p, false) != i;
}

/* Not a value's name: a member, a keyword of a call, a part of an import, what `global` and `typeof` are asked about. */
static bool is_used_bare(const code_tree *t, uint32_t i)
{
    static const char *const others[] = {"dotted_name", "aliased_import", "global_statement",
        "nonlocal_statement", "keyword_pattern", "import_specifier", "export_specifier", "namespace_import",
        "namespace_export", "import_clause", "meta_property", "jsx_opening_element", "jsx_closing_element",
        "jsx_self_closing_element", "jsx_attribute", "jsx_namespace_name", "labeled_statement",
        "type_parameter", "type", "decorator", NULL};
    static const char *const members[] = {"attribute", "member_expression", NULL};
    const uint32_t p = t->nodes[i].parent;
    if (!strcmp(t->g->name, "c")) return is_variable_of_c(t, i);
    if (!code_node_is(t, i, "identifier") && !code_node_is(t, i, "shorthand_property_identifier"))
        return false;
    if (p == UINT32_MAX || code_node_is_one(t, p, others)) return false;
    if (code_node_is_one(t, p, members)) return code_tree_first(t, p, false) == i;
    if (code_node_is(t, p, "keyword_argument")) return t->nodes[i].field != FIELD_NAME;
    return !code_node_is(t, p, "unary_expression") || memcmp(t->text + t->nodes[p].from, "typeof", 6) != 0;
}

/* Python: a name in a case's pattern may be bound there, and which of them are scopes.c does not tell. */
static bool is_in_case(const code_tree *t, uint32_t i)
{
    static const char *const cases[] = {"case_pattern", "case_clause", NULL};
    const code_node *name = &t->nodes[i];
    for (uint32_t k = 0; k < t->n; k++) {
        const code_node *node = &t->nodes[k];
        if (node->to - node->from != name->to - name->from || !code_node_is(t, k, "identifier") ||
            memcmp(t->text + node->from, t->text + name->from, node->to - node->from) != 0)
            continue;
        for (uint32_t p = node->parent; p != UINT32_MAX && !code_node_is(t, p, "block");
             p = t->nodes[p].parent)
            if (code_node_is_one(t, p, cases)) return true;
    }
    return false;
}

/* Of the name at node i, used there first: the byte of its first use up to `to` that nothing binds; UINT32_MAX: all are bound. */
static uint32_t find_unbound_use(const code_tree *t, uint32_t i, uint32_t to)
{
    const char *name = t->text + t->nodes[i].from;
    const uint32_t n = t->nodes[i].to - t->nodes[i].from;
    uint32_t found = UINT32_MAX;
    code_scopes scopes = {0};
    code_scopes_find(t, name, n, &scopes);
    const bool is_everywhere = scopes.n_globals || code_scopes_global(&scopes) != NULL;
    for (uint32_t k = i; k < t->n && !is_everywhere && found == UINT32_MAX; k++) {
        const code_node *use = &t->nodes[k];
        if (use->to > to || use->to - use->from != n || memcmp(t->text + use->from, name, n) != 0) continue;
        if (is_used_bare(t, k) && code_scopes_lookup(&scopes, k) == NULL) found = use->from;
    }
    code_scopes_free(&scopes);
    return found != UINT32_MAX && is_in_case(t, i) ? UINT32_MAX : found;
}

/* Python: a module that is taken whole may bind anything; a script that is no module shares its names with others. */
static bool is_told_whole(const code_tree *t, bool is_script)
{
    static const char *const modules[] = {"import_statement", "export_statement", NULL};
    bool is_module = !is_script || memmem(t->text, t->n_bytes, "require(", 8) ||
                     memmem(t->text, t->n_bytes, "module.exports", 14);
    for (uint32_t i = 0; i < t->n; i++) {
        if (code_node_is(t, i, "wildcard_import")) return false;
        is_module |= code_node_is_one(t, i, modules);
    }
    return is_module;
}

/* A name may be bound where it is used first. */
static void put_in_order(uint32_t *all, uint32_t n, uint32_t at)
{
    for (; n && all[n - 1] > at; n--) all[n] = all[n - 1];
    all[n] = at;
}

uint32_t code_unbound(code_grammars *g, const char *path, const char *text, size_t n, uint32_t from,
    uint32_t to, uint32_t ret[CODE_MAX_UNBOUND])
{
    const char *language = n <= 4u << 20 ? code_language(path, text, n) : NULL;
    const bool is_python = language && !strcmp(language, "python"),
               is_script = language && !strcmp(language, "javascript"),
               is_c = language && !strcmp(language, "c");
    const code_grammar *grammar = is_python || is_script || is_c ? code_grammar_get(g, language) : NULL;
    code_tree t;
    uint32_t found = 0;
    if (!grammar || !code_tree_make(grammar, text, n, NULL, &t)) return 0;
    const char *own = is_python ? python_names : is_script ? script_names : " ";
    code_strings seen = {0};                  /* a name is looked for once, however often it is used */
    const bool is_read = is_c || !t.n_errors; /* macros leave most files of C with errors somewhere */
    for (uint32_t i = 0; i < t.n && is_read && found < CODE_MAX_UNBOUND; i++) {
        const code_node *node = &t.nodes[i];
        const size_t length = node->to - node->from;
        if (node->from < from || node->to > to || !is_used_bare(&t, i)) continue;
        if (code_strings_find(&seen, text + node->from, length) != UINT32_MAX) continue;
        code_strings_add(&seen, text + node->from, length);
        const uint32_t at = is_own(own, text + node->from, length) ? UINT32_MAX : find_unbound_use(&t, i, to);
        if (at != UINT32_MAX) put_in_order(ret, found++, at);
    }
    code_strings_free(&seen);
    if (found && !is_told_whole(&t, is_script)) found = 0;
    code_tree_free(&t);
    return found;
}

#else

uint32_t code_unbound(code_grammars *g, const char *path, const char *text, size_t n, uint32_t from,
    uint32_t to, uint32_t ret[CODE_MAX_UNBOUND])
{
    return 0;
}

#endif
