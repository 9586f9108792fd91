/*
 * Which member names say nothing about their object, and which types a language has itself. Data.
 */
#include "tools/refactor/refactor.h"

#include <string.h>

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

static bool has_word(const char *list, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = list; (at = strstr(at, word)) != NULL; at++)
        if (at[-1] == ' ' && at[n] == ' ') return true;
    return false;
}

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
