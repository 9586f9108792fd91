/*
 * What may be a name in which language (contract: naming.h). Data.
 */
#include "tools/edit/naming.h"

#include <ctype.h>
#include <string.h>

#include "base/buf.h"
#include "base/show.h"

/*
 * Words between spaces. Sources: the languages' references (C17 6.4.1, C23's and GNU's further ones, C++20 lex.key, Python's
 * keyword.kwlist, ECMA-262 12.7.2 and what strict mode forbids, the Go specification's Keywords, JLS 3.9, the Rust
 * reference's Keywords). `types`: what may be a name, but not of a type (JLS 3.9's contextual ones, TypeScript's own types).
 */
static const struct {
    const char *language, *keywords, *types;
} languages[] = {
    {"c",
        " auto break case char const continue default do double else enum extern float for "
        "goto if inline int long register restrict return short signed sizeof static "
        "struct switch typedef union unsigned void volatile while _Alignas _Alignof "
        "_Atomic _Bool _Complex _Generic _Imaginary _Noreturn _Static_assert _Thread_local "
        "alignas alignof asm bool constexpr false nullptr static_assert thread_local true typeof "
        "typeof_unqual ",
        ""},
    {"cpp",
        " alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t "
        "char16_t char32_t class compl concept const consteval constexpr constinit const_cast "
        "continue co_await co_return co_yield decltype default delete do double dynamic_cast "
        "else enum explicit export extern false float for friend goto if inline int long mutable "
        "namespace new noexcept not not_eq nullptr operator or or_eq private protected public "
        "register reinterpret_cast requires return short signed sizeof static static_assert "
        "static_cast struct switch template this thread_local throw true try typedef typeid "
        "typename union unsigned using virtual void volatile wchar_t while xor xor_eq ",
        ""},
    {"python",
        " False None True and as assert async await break class continue "
        "def del elif else except finally for from global if import in is "
        "lambda nonlocal not or pass raise return try while with yield __debug__ ",
        ""},
    {"javascript",
        " await break case catch class const continue debugger default delete do "
        "else enum export extends false finally for function if implements import in "
        "instanceof interface let new null package private protected public return "
        "static super switch this throw true try typeof var void while with yield "
        "arguments eval undefined NaN Infinity ",
        " any bigint boolean never number object string symbol unknown void "},
    {"go",
        " break case chan const continue default defer else fallthrough for func go goto "
        "if import interface map package range return select struct switch type var _ init ",
        ""},
    {"java",
        " abstract assert boolean break byte case catch char class const continue default do double "
        "else enum extends final finally float for goto if implements import instanceof int interface "
        "long native new package private protected public return short static strictfp super switch "
        "synchronized this throw throws transient try void volatile while _ true false null yield ",
        " permits record sealed var "},
    {"rust",
        " as break const continue crate else enum extern false fn for if impl in let loop match mod move "
        "mut pub ref return self Self static struct super trait true type unsafe use where while async "
        "await dyn abstract become box do final macro override priv typeof unsized virtual yield try _ ",
        ""},
};

static const struct {
    const char *language, *as;
} alike[] = {{"typescript", "javascript"}, {"tsx", "javascript"}};

static bool has_word(const char *list, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = list; (at = strstr(at, word)) != NULL; at++)
        if (at[-1] == ' ' && at[n] == ' ') return true;
    return false;
}

/* Letters that nobody sees, or that turn the order of others. */
static bool has_hidden(const char *name)
{
    base_buf shown = {0};
    base_show(&shown, name, strlen(name), BASE_SHOW_UTF8);
    const bool is_other = strcmp(shown.data, name) != 0;
    base_buf_free(&shown);
    return is_other;
}

const char *tool__why_no_name(const char *language, const char *name, bool is_type)
{
    const char *as = language ? language : "";
    for (size_t i = 0; i < sizeof alike / sizeof *alike; i++)
        if (!strcmp(alike[i].language, as)) as = alike[i].as;
    const bool takes_dollar = !strcmp(as, "javascript") || !strcmp(as, "java") || !strcmp(as, "php");
    if (!*name) return "it is empty";
    if (strlen(name) > 200) return "it is longer than 200 bytes";
    if (isdigit((unsigned char)*name)) return "a name does not begin with a digit";
    for (const char *p = name; *p; p++) {
        const unsigned char c = (unsigned char)*p;
        if (isalnum(c) || c == '_' || (c == '$' && takes_dollar)) continue;
        if (c >= 0x80 && strcmp(as, "c") != 0 && strcmp(as, "cpp") != 0) continue;
        if (c == '$') return "$ is no part of a name in this language";
        if (c >= 0x80) return "a name of this language has ASCII letters only";
        return "a name has letters, digits and _ only";
    }
    if (has_hidden(name)) return "it has letters that nobody sees";
    for (size_t i = 0; i < sizeof languages / sizeof *languages; i++)
        if (!strcmp(languages[i].language, as)) {
            if (has_word(languages[i].keywords, name))
                return "it is a keyword, or a word that the language keeps";
            if (is_type && has_word(languages[i].types, name)) return "the language has a type of that name";
        }
    return "";
}
