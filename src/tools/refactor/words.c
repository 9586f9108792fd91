/*
 * What may be a name in which language, and which member names say nothing about their object. Data.
 */
#include "tools/refactor/refactor.h"

#include <ctype.h>
#include <string.h>

/* Words between spaces. Sources: the languages' references (C17 6.4.1, C++20 lex.key, Python's keyword.kwlist, */
/* ECMA-262 12.7.2, the Go specification's Keywords, JLS 3.9, the Rust reference's Keywords). */
static const struct {
    const char *language, *keywords;
} languages[] = {
    {"c", " auto break case char const continue default do double else enum extern float for "
          "goto if inline int long register restrict return short signed sizeof static "
          "struct switch typedef union unsigned void volatile while _Alignas _Alignof "
          "_Atomic _Bool _Complex _Generic _Imaginary _Noreturn _Static_assert _Thread_local "},
    {"cpp", " alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t "
            "char16_t char32_t class compl concept const consteval constexpr constinit const_cast "
            "continue co_await co_return co_yield decltype default delete do double dynamic_cast "
            "else enum explicit export extern false float for friend goto if inline int long mutable "
            "namespace new noexcept not not_eq nullptr operator or or_eq private protected public "
            "register reinterpret_cast requires return short signed sizeof static static_assert "
            "static_cast struct switch template this thread_local throw true try typedef typeid "
            "typename union unsigned using virtual void volatile wchar_t while xor xor_eq "},
    {"python", " False None True and as assert async await break class continue "
               "def del elif else except finally for from global if import in is "
               "lambda nonlocal not or pass raise return try while with yield "},
    {"javascript", " await break case catch class const continue debugger default delete do "
                   "else enum export extends false finally for function if implements import in "
                   "instanceof interface let new null package private protected public return "
                   "static super switch this throw true try typeof var void while with yield "},
    {"go", " break case chan const continue default defer else fallthrough for func go goto "
           "if import interface map package range return select struct switch type var "},
    {"java", " abstract assert boolean break byte case catch char class const continue default do double "
             "else enum extends final finally float for goto if implements import instanceof int interface "
             "long native new package private protected public return short static strictfp super switch "
             "synchronized this throw throws transient try void volatile while _ true false null "},
    {"rust",
        " as break const continue crate else enum extern false fn for if impl in let loop match mod move "
        "mut pub ref return self Self static struct super trait true type unsafe use where while async "
        "await dyn abstract become box do final macro override priv typeof unsized virtual yield try "},
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

const char *refactor__why_no_name(const char *language, const char *name)
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
    for (size_t i = 0; i < sizeof languages / sizeof *languages; i++)
        if (!strcmp(languages[i].language, as) && has_word(languages[i].keywords, name))
            return "it is a keyword";
    return "";
}

/*
 * Members that the standard types of Python, JavaScript, Go, Java, Rust and C++ have: an object of unknown type
 * that has one may be one of those.
 */
static const char common[] = " Add Close Contains Copy Delete Do Done Equal Err Error Exec Exists Fatal "
                             "Find Flush Format Get Has Init Insert Len Less Lock Log Marshal Name Next "
                             "Open Parse Path Pop Print Printf Push Put Query Read Remove Replace Reset "
                             "Run Scan Seek Send Set Size Sort Split Start Stat Stop String Swap Sync Type "
                             "Unlock Unmarshal Unwrap Update Value Values Wait Write abs accept add addAll "
                             "all any append appendChild apply args as_ref as_str assert at back begin "
                             "bind body bytes call cancel capitalize catch charAt clear clone close code "
                             "collect columns compare compareTo concat cols connect contains containsKey "
                             "content copy count create cwd data date decode default delete description "
                             "detach difference discard done dump dumps empty emit encode end endsWith "
                             "ends_with endswith entries entrySet equal equals err error errors every exec "
                             "execute exists exit expand extend fetch file fileno files filter finally "
                             "find findall first flag flags flat flatMap flush fn forEach format from "
                             "front function get getName getType get_name getattr getvalue group groups "
                             "handle handler has hasNext hash hashCode head headers hex host id ident "
                             "indexOf index info init insert into into_iter invoke is_empty is_none "
                             "is_some isdigit isEmpty isPresent items iter iterator join json key keySet "
                             "keys kind label last lastIndexOf len length level limit line lines list "
                             "listen load loads lock log lower lstrip map mark match matches max merge "
                             "message method min mode month move name names new next node notify now nodes "
                             "ok on once open option options or_else orElse owner pad params parent parse "
                             "parts path paths peek pid pop popitem port pos position post prefix prev "
                             "print println process properties props ptr push put query raw read readline "
                             "readlines ready reduce ref release remove removeAll rename repeat replace "
                             "request reserve reset resize resolve response result results reverse root "
                             "round row rows rpartition rsplit rstrip run save scan search second seek "
                             "select self send set setName setdefault shape shift shutdown signal size "
                             "skip sleep slice some sort source span splice split splitlines stack start "
                             "startsWith starts_with startswith stat state status stderr stdin stdout step "
                             "stop store stream strip style sub submit subscribe substring suffix sum swap "
                             "symbol sync tail take tag target task tell test text then throw time timeout "
                             "title toArray toList toLowerCase toString toUpperCase to_owned to_string "
                             "to_vec token tokens total translate trim truncate type types union unlock "
                             "unwrap update upper uri url user utcnow value valueOf values version view "
                             "visit wait walk warn warning width write writelines year height x y z ";

bool refactor__is_common(const char *name)
{
    return has_word(common, name);
}

bool refactor__is_of_language(const char *type)
{
    static const char *const types[] = {"string", "number", "boolean", "bigint", "symbol", "String", "Number",
        "Boolean", "Array", "ReadonlyArray", "Map", "ReadonlyMap", "WeakMap", "Set", "ReadonlySet", "WeakSet",
        "Promise", "Date", "RegExp", "Error", "Function", "Symbol", "ArrayBuffer", "Uint8Array", "DataView",
        "Iterator", "Generator", "Intl", "JSON", "Math", "Reflect", "Proxy"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i], type)) return true;
    return false;
}
