/*
 * File names, words and identifiers: which language a path is, what a keyword is, how an identifier splits
 * into words. No grammar is needed for any of it. Pure functions, any thread.
 */
#include "code/code.h"

#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/path.h"

typedef struct language_row {
    const char *ending, *language;
} language_row;

/* clang-format off */
static const language_row by_extension[] = {
    {".c", "c"}, {".h", "c"}, {".cc", "cpp"}, {".cpp", "cpp"}, {".cxx", "cpp"}, {".C", "cpp"}, {".hh", "cpp"},
    {".hpp", "cpp"}, {".hxx", "cpp"}, {".ipp", "cpp"}, {".cu", "cpp"}, {".cuh", "cpp"}, {".ino", "cpp"},
    {".py", "python"}, {".pyi", "python"}, {".pyw", "python"},
    {".js", "javascript"}, {".jsx", "javascript"}, {".mjs", "javascript"}, {".cjs", "javascript"},
    {".ts", "typescript"}, {".mts", "typescript"}, {".cts", "typescript"}, {".tsx", "tsx"},
    {".go", "go"}, {".rs", "rust"}, {".java", "java"}, {".rb", "ruby"}, {".rake", "ruby"}, {".gemspec", "ruby"},
    {".php", "php"}, {".cs", "c_sharp"}, {".sh", "bash"}, {".bash", "bash"},
    {".kt", "kotlin"}, {".kts", "kotlin"}, {".scala", "scala"}, {".lua", "lua"}, {".pl", "perl"}, {".pm", "perl"},
    {".hs", "haskell"}, {".ml", "ocaml"}, {".ex", "elixir"}, {".exs", "elixir"}, {".erl", "erlang"}, {".jl", "julia"},
    {".r", "r"}, {".R", "r"}, {".el", "elisp"}, {".lisp", "commonlisp"}, {".m", "objc"}, {".f90", "fortran"},
    {".sql", "sql"}, {".swift", "swift"}, {".zig", "zig"},
    {".md", "markdown"}, {".markdown", "markdown"}, {".rst", "rst"}, {".txt", "text"}, {".adoc", "text"},
    {".json", "json"}, {".yml", "yaml"}, {".yaml", "yaml"}, {".toml", "toml"}, {".html", "html"}, {".css", "css"},
    {".cmake", "cmake"}, {".mk", "make"},
};
static const language_row by_name[] = {
    {"Makefile", "make"}, {"GNUmakefile", "make"}, {"CMakeLists.txt", "cmake"}, {"Dockerfile", "dockerfile"},
    {"Rakefile", "ruby"}, {"Gemfile", "ruby"}, {"meson.build", "meson"}, {"meson_options.txt", "meson"}, {"README", "text"},
};
static const language_row by_interpreter[] = {
    {"python", "python"}, {"node", "javascript"}, {"ruby", "ruby"}, {"bash", "bash"}, {"php", "php"}, {"perl", "perl"},
    {"lua", "lua"}, {"/sh", "bash"}, {" sh", "bash"},
};
static const char *const kind_words[CODE_N_KINDS] = {"call", "control", "return", "assign", "signature"};

/* Sorted: looked up by bisection. Words that are names in no common language. */
static const char *const keywords[] = {
    "EOF", "False", "NULL", "None", "True", "and", "as", "assert", "async", "await", "bool", "break", "case", "catch", "char", "class", "const", "constexpr", "continue",
    "def", "default", "defer", "del", "delete", "do", "double", "elif", "else", "elsif", "end", "enum", "except", "export", "extends",
    "extern", "false", "final", "finally", "float", "fn", "for", "foreach", "from", "func", "function", "goto", "if", "impl",
    "implements", "import", "in", "inline", "instanceof", "int", "interface", "is", "lambda", "let", "long", "loop", "match", "mod",
    "module", "mut", "namespace", "new", "nil", "none", "not", "null", "nullptr", "operator", "or", "package", "pass", "private",
    "protected", "pub", "public", "raise", "register", "require", "return", "self", "short", "signed", "sizeof", "static",
    "struct", "super", "switch", "template", "then", "this", "throw", "throws", "trait", "true", "try", "typedef", "typename",
    "typeof", "undefined", "union", "unless", "unsigned", "until", "use", "using", "var", "virtual", "void", "volatile", "when", "where",
    "while", "with", "yield",
};
/* clang-format on */

#define N_OF(a) (sizeof(a) / sizeof *(a))

const char *code_kind_word(code_kind k)
{
    return (unsigned)k < CODE_N_KINDS ? kind_words[k] : "";
}

/* A bit each: a file's bytes all pass here at every edit. */
const char *code_last_name(const char *name)
{
    const char *dot = strrchr(name, '.'), *colon = strrchr(name, ':');
    const char *last = !dot || (colon && colon > dot) ? colon : dot;
    return last ? last + 1 : name;
}

bool code_is_name_byte(char c)
{
    static const uint32_t bits[8] = {
        0, 0x03ff0010, 0x87fffffe, 0x07fffffe, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff};
    const unsigned char byte = (unsigned char)c;
    return bits[byte >> 5] >> (byte & 31) & 1;
}

bool code_is_keyword(const char *word, size_t n)
{
    size_t low = 0, high = N_OF(keywords);
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        int order = strncmp(keywords[mid], word, n);
        if (order == 0 && keywords[mid][n] != '\0') order = 1;
        if (order == 0) return true;
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return false;
}

bool code_next_identifier(const char *text, size_t n, size_t *pos, size_t *from, size_t *to)
{
    size_t i = *pos;
    while (i < n) {
        if (!code_is_name_byte(text[i])) {
            i++;
            continue;
        }
        const size_t start = i;
        while (i < n && code_is_name_byte(text[i])) i++;
        if (text[start] >= '0' && text[start] <= '9') continue;
        *from = start;
        *to = *pos = i;
        return true;
    }
    *pos = n;
    return false;
}

bool code_has_identifier(const char *text, size_t n, const char *name)
{
    const size_t length = strlen(name);
    for (size_t pos = 0, from, to; code_next_identifier(text, n, &pos, &from, &to);)
        if (to - from == length && memcmp(text + from, name, length) == 0) return true;
    return false;
}

/* A C header that is C++ says so at the start of a line. */
static bool looks_like_cpp(const char *text, size_t n)
{
    static const char *const signs[] = {
        "class ", "template", "namespace ", "using namespace", "public:", "private:"};
    if (n > 65536) n = 65536;
    for (size_t i = 0; i < n; i++) {
        if (i != 0 && text[i - 1] != '\n') continue;
        size_t at = i;
        while (at < n && (text[at] == ' ' || text[at] == '\t')) at++;
        for (size_t s = 0; s < N_OF(signs); s++) {
            const size_t len = strlen(signs[s]);
            if (n - at >= len && memcmp(text + at, signs[s], len) == 0) return true;
        }
        const char *end = memchr(text + i, '\n', n - i);
        if (end == NULL) break;
        i = (size_t)(end - text);
    }
    return false;
}

static const char *language_of_shebang(const char *text, size_t n)
{
    if (n < 3 || text[0] != '#' || text[1] != '!') return NULL;
    char line[128];
    size_t len = 0;
    while (len < n && len + 1 < sizeof line && text[len] != '\n' && text[len] != '\0') {
        line[len] = text[len];
        len++;
    }
    line[len] = '\0';
    for (size_t i = 0; i < N_OF(by_interpreter); i++)
        if (strstr(line, by_interpreter[i].ending) != NULL) return by_interpreter[i].language;
    return NULL;
}

bool code_language_is_document(const char *language)
{
    static const char *const documents[] = {"markdown", "rst", "text"};
    bool is = false;
    for (size_t i = 0; language != NULL && i < N_OF(documents); i++)
        is |= strcmp(language, documents[i]) == 0;
    return is;
}

const char *code_language(const char *path, const char *text, size_t n)
{
    const char *name = path != NULL ? base_path_name(path) : "";
    for (size_t i = 0; i < N_OF(by_name); i++)
        if (strcmp(name, by_name[i].ending) == 0) return by_name[i].language;
    const char *dot = strrchr(name, '.');
    if (dot != NULL && dot != name) {
        for (size_t i = 0; i < N_OF(by_extension); i++) {
            if (strcmp(dot, by_extension[i].ending) != 0) continue;
            if (strcmp(dot, ".h") == 0 && text != NULL && looks_like_cpp(text, n)) return "cpp";
            return by_extension[i].language;
        }
        return NULL;
    }
    return text != NULL ? language_of_shebang(text, n) : NULL;
}

typedef enum letter { LETTER_LOWER, LETTER_UPPER, LETTER_DIGIT, LETTER_NONE } letter;

static letter letter_of(unsigned char c)
{
    if ((c >= 'a' && c <= 'z') || c >= 0x80) return LETTER_LOWER;
    if (c >= 'A' && c <= 'Z') return LETTER_UPPER;
    if (c >= '0' && c <= '9') return LETTER_DIGIT;
    return LETTER_NONE;
}

void code_split_identifier(const char *s, size_t n, base_buf *out)
{
    letter before = LETTER_NONE;
    bool in_word = false;
    for (size_t i = 0; i < n; i++) {
        const letter now = letter_of((unsigned char)s[i]);
        if (now == LETTER_NONE) {
            in_word = false;
            before = now;
            continue;
        }
        bool starts = !in_word;
        if (in_word && now == LETTER_UPPER && before != LETTER_UPPER) starts = true;
        if (in_word && (now == LETTER_DIGIT) != (before == LETTER_DIGIT)) starts = true;
        /* "HTTPServer": the last capital before a small letter begins the next word. */
        if (in_word && now == LETTER_UPPER && before == LETTER_UPPER && i + 1 < n &&
            letter_of((unsigned char)s[i + 1]) == LETTER_LOWER)
            starts = true;
        if (starts && out->len != 0 && out->data[out->len - 1] != ' ') base_buf_putc(out, ' ');
        base_buf_putc(out, now == LETTER_UPPER ? (char)(s[i] - 'A' + 'a') : s[i]);
        in_word = true;
        before = now;
    }
}
