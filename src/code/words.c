/*
 * A light stemmer and two small word lists. The stemmer only has to send the forms of one word to one string,
 * not to a real word: plural and third person, -ing, -ed, -er, -ion, -ly, a final e. Lists hold one group a
 * row; rows are data, found by a linear search because a question has a dozen words.
 */
#include "code/words.h"

#include <string.h>

/* clang-format off */
static const char *const stop_words[] = {
    "a", "about", "all", "also", "an", "and", "any", "are", "as", "at", "be", "been", "being", "bug", "but", "by", "can", "code", "could",
    "decide", "decided", "decides", "defined", "definition", "determine", "determined", "determines", "did", "do", "does", "done", "each", "else", "explain", "fix", "for", "from", "give", "given", "gives", "had",
    "has", "have", "how", "i", "if", "implemented", "in", "into", "is", "it", "its", "just", "let", "located", "may", "me", "might",
    "my", "no", "none", "not", "notice", "noticed", "notices", "of", "on", "one", "only", "or", "our", "out", "place", "please", "really", "responsible", "shall",
    "should", "show", "so", "some", "such", "tell", "than", "that", "the", "their", "them", "then", "there", "these", "they",
    "this", "those", "to", "too", "was", "we", "were", "what", "when", "where", "whether", "which", "while", "who", "why", "will", "with", "worked",
    "would", "you", "your",
};

static const struct { const char *word, *kind; } kinds[] = {
    {"function", "function"}, {"functions", "function"}, {"method", "function"}, {"methods", "function"},
    {"class", "class"}, {"classes", "class"}, {"struct", "struct"}, {"structure", "struct"}, {"structs", "struct"},
    {"type", "type"}, {"types", "type"}, {"field", "field"}, {"fields", "field"}, {"member", "field"}, {"macro", "macro"},
    {"macros", "macro"}, {"constant", "constant"}, {"constants", "constant"}, {"enum", "enum"}, {"interface", "interface"},
    {"trait", "interface"}, {"variable", "variable"},
};

/* Written out, then what programs abbreviate it to. */
static const char *const abbreviations[][6] = {
    {"address", "addr"}, {"allocate", "alloc", "malloc"}, {"argument", "arg", "argv", "args"}, {"array", "arr"}, {"asynchronous", "async"},
    {"attribute", "attr"}, {"authenticate", "auth"}, {"average", "avg"}, {"boolean", "bool"}, {"buffer", "buf"}, {"calculate", "calc"},
    {"callback", "cb"}, {"character", "char", "chr"}, {"command", "cmd"}, {"compare", "cmp"}, {"completion", "comp"},
    {"configuration", "config", "conf", "cfg"}, {"connection", "conn"}, {"context", "ctx"}, {"count", "cnt"}, {"current", "cur", "curr"},
    {"database", "db"}, {"declaration", "decl"}, {"definition", "def"}, {"delete", "del"}, {"description", "desc"},
    {"destination", "dest", "dst"}, {"directory", "dir"}, {"document", "doc"}, {"duplicate", "dup"}, {"element", "elem"},
    {"environment", "env"}, {"error", "err"}, {"execute", "exec"}, {"expression", "expr"}, {"extension", "ext"},
    {"file descriptor", "fd"}, {"format", "fmt"}, {"function", "fn", "func"}, {"generate", "gen"}, {"header", "hdr"},
    {"identifier", "id", "ident"}, {"image", "img"}, {"increment", "incr", "inc"}, {"index", "idx"}, {"information", "info"},
    {"initialize", "init"}, {"initialise", "init"}, {"integer", "int", "ll", "long"}, {"iterator", "iter"}, {"language", "lang"}, {"length", "len"},
    {"library", "lib"}, {"maximum", "max"}, {"memory", "mem"}, {"message", "msg"}, {"minimum", "min"}, {"number", "num"},
    {"object", "obj"}, {"operation", "op"}, {"option", "opt"}, {"package", "pkg"}, {"parameter", "param"}, {"password", "passwd"},
    {"pointer", "ptr"}, {"position", "pos"}, {"previous", "prev"}, {"process", "proc"}, {"property", "prop"}, {"receive", "recv"},
    {"reference", "ref"}, {"register", "reg"}, {"regular expression", "regex"}, {"remove", "rm"}, {"repository", "repo"}, {"request", "req"},
    {"response", "resp", "res"}, {"result", "res", "ret"}, {"sequence", "seq"}, {"session", "sess"}, {"source", "src"},
    {"statistics", "stat"}, {"status", "stat"}, {"string", "str"}, {"synchronize", "sync"}, {"system", "sys"}, {"table", "tbl"},
    {"temporary", "tmp", "temp"}, {"utility", "util"}, {"value", "val"}, {"variable", "var"}, {"vector", "vec"}, {"version", "ver"},
    {"window", "win"}, {"write", "wr"}, {"distance", "dist"}, {"milliseconds", "ms", "msec"}, {"subscribe", "sub"}, {"header", "head"},
};

/* Words that programmers use for one another. */
static const char *const synonyms[][9] = {
    {"free", "release", "destroy", "dispose", "deallocate", "clean", "drop"},
    {"create", "make", "new", "build", "construct", "init"},
    {"delete", "remove", "erase", "drop", "clear"},
    {"find", "search", "lookup", "locate", "get"},
    {"check", "verify", "validate", "ensure", "test"},
    {"start", "launch", "spawn", "begin", "run", "execute"},
    {"stop", "end", "quit", "exit", "finish", "terminate"},
    {"grow", "enlarge", "expand", "extend", "resize", "increase"},
    {"shrink", "reduce", "trim", "truncate"},
    {"show", "display", "print", "render", "output"},
    {"write", "print", "emit", "generate", "gen", "output"},
    {"read", "load", "parse", "fetch", "get"},
    {"parse", "decode", "scan", "process"},
    {"turn", "convert", "transform", "to"},
    {"compute", "calculate", "measure", "count"},
    {"answer", "reply", "response", "result"},
    {"send", "write", "transmit", "emit"},
    {"connect", "open", "attach"},
    {"close", "disconnect", "shutdown"},
    {"suggest", "propose", "recommend"},
    {"need", "require", "mandatory"},
    {"random", "sample", "shuffle"},
    {"join", "merge", "combine", "concat", "cat", "append"},
    {"split", "separate", "divide", "partition"},
    {"order", "sort", "rank"},
    {"choose", "select", "pick"},
    {"guess", "infer", "detect", "deduce", "from"},
    {"exclude", "conflict", "exclusive"},
    {"change", "modify", "update", "edit", "set"},
    {"copy", "clone", "duplicate"},
    {"store", "save", "persist", "cache"},
    {"handle", "process", "dispatch"},
    {"happen", "event", "hook", "callback"},
    {"word", "token", "term", "string"},
    {"text", "string", "message", "content"},
    {"wrap", "fold", "break"},
    {"similar", "close", "like"},
    {"name", "title", "label", "identifier"},
    {"default", "fallback"},
    {"wait", "block", "poll"},
    {"retry", "again", "reconnect"},
    {"mistype", "unknown", "typo", "misspell"},
    {"executable", "program", "binary", "command"},
    {"folder", "directory", "path"},
    {"row", "line", "record"},
    {"column", "field", "cell"},
    {"missing", "absent", "lack"},
    {"nest", "recursive", "depth"},
    {"width", "column", "size"},
};
/* clang-format on */

#define N_OF(a) (sizeof(a) / sizeof *(a))

static bool is_vowel(char c)
{
    return c != '\0' && strchr("aeiouy", c) != NULL;
}

static bool has_vowel(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (is_vowel(s[i])) return true;
    return false;
}

static bool ends(const char *s, size_t n, const char *tail)
{
    const size_t t = strlen(tail);
    return n > t && memcmp(s + n - t, tail, t) == 0;
}

/* "wrapp" -> "wrap", but "call" and "pass" keep theirs. */
static size_t undouble(const char *s, size_t n)
{
    if (n > 3 && s[n - 1] == s[n - 2] && !is_vowel(s[n - 1]) && strchr("lsz", s[n - 1]) == NULL) return n - 1;
    return n;
}

size_t code_stem(const char *s, size_t n, char out[CODE_WORD_BYTES])
{
    if (n == 0 || n >= CODE_WORD_BYTES) return 0;
    for (size_t i = 0; i < n; i++) out[i] = s[i] >= 'A' && s[i] <= 'Z' ? (char)(s[i] - 'A' + 'a') : s[i];
    if (n > 4 && ends(out, n, "ies")) {
        n -= 2;
        out[n - 1] = 'y';
    } else if (n > 4 && (ends(out, n, "sses") || ends(out, n, "shes") || ends(out, n, "ches") ||
                            ends(out, n, "xes"))) {
        n -= 2;
    } else if (n > 3 && out[n - 1] == 's' && strchr("sui", out[n - 2]) == NULL) {
        n--;
    }
    bool was_ate = false;
    if (n > 5 && ends(out, n, "ing") && has_vowel(out, n - 3)) {
        const size_t m = undouble(out, n - 3);
        was_ate = m == n - 3;
        n = m;
    } else if (n > 4 && ends(out, n, "ed") && has_vowel(out, n - 2)) {
        const size_t m = undouble(out, n - 2);
        was_ate = m == n - 2;
        n = m;
    } else if (n > 6 && ends(out, n, "ly")) {
        n -= 2;
    } else if (n > 5 && (ends(out, n, "tion") || ends(out, n, "sion"))) {
        n -= 3;
        was_ate = true;
        if (n > 6 && ends(out, n, "script")) { /* subscription, description: subscribe, describe */
            out[n - 2] = 'b';
            n--;
        }
    } else if (n > 5 && (ends(out, n, "er") || ends(out, n, "or"))) {
        n = undouble(out, n - 2);
    }
    if (n > 3 && out[n - 1] == 'e') {
        n--;
        was_ate = true;
    }
    if (was_ate && n > 6 && ends(out, n, "at")) n -= 2; /* validate, validation, validating: valid */
    if (n > 3 && out[n - 1] == 'y') out[n - 1] = 'i';
    out[n] = '\0';
    return n;
}

bool code_is_stop_word(const char *s, size_t n)
{
    for (size_t i = 0; i < N_OF(stop_words); i++)
        if (strncmp(stop_words[i], s, n) == 0 && stop_words[i][n] == '\0') return true;
    return false;
}

const char *code_kind_asked(const char *s, size_t n)
{
    for (size_t i = 0; i < N_OF(kinds); i++)
        if (strncmp(kinds[i].word, s, n) == 0 && kinds[i].word[n] == '\0') return kinds[i].kind;
    return NULL;
}

/* Rows of a list in which the stem stands: gives the other words of them, one after another. */
static const char *other_word(
    const char *const *rows, size_t n_rows, size_t n_columns, const char *stem, size_t *i)
{
    static _Thread_local char word[CODE_WORD_BYTES];
    for (size_t r = 0; r < n_rows; r++) {
        const char *const *row = rows + r * n_columns;
        bool here = false;
        for (size_t c = 0; c < n_columns && row[c] != NULL; c++)
            here = here || (code_stem(row[c], strlen(row[c]), word) != 0 && strcmp(word, stem) == 0);
        for (size_t c = 0; here && c < n_columns && row[c] != NULL; c++) {
            if (code_stem(row[c], strlen(row[c]), word) == 0 || strcmp(word, stem) == 0) continue;
            if ((*i)-- == 0) return word;
        }
    }
    return NULL;
}

const char *code_related_word(const char *stem, size_t i, double *weight)
{
    *weight = .8;
    const char *w = other_word(&abbreviations[0][0], N_OF(abbreviations), N_OF(abbreviations[0]), stem, &i);
    if (w != NULL) return w;
    *weight = .5;
    return other_word(&synonyms[0][0], N_OF(synonyms), N_OF(synonyms[0]), stem, &i);
}
