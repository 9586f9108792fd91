#include "tools/refactor/language.h"

#include <stddef.h>
#include <string.h>

/* clang-format off */
static const refactor_language languages[] = {
    {"c", REFACTOR_C, REFACTOR_HIDES_BY_STATIC,
        .declares_apart = true, .has_tags = true, .has_type_first = true, .has_semicolons = true,
        .types = {"int ", "double ", "bool ", "const char *"}},
    {"cpp", REFACTOR_C, .declares_apart = true, .has_paths = true, .has_bare_members = true, .has_named_constructors = true,
        .has_type_first = true, .has_defaults = true, .has_semicolons = true,
        .types = {"int ", "double ", "bool ", "const char *"}},
    {"python", REFACTOR_PYTHON, REFACTOR_HIDES_BY_NAME, .is_untyped = true, .renames_imports = true, .has_defaults = true, .has_keywords = true,
        .hints = {": int", ": float", ": bool", ": str"}},
    {"javascript", REFACTOR_JS, REFACTOR_HIDES_BY_WORD,
        .is_untyped = true, .has_free_objects = true, .renames_imports = true, .has_defaults = true, .has_semicolons = true},
    {"typescript", REFACTOR_JS, REFACTOR_HIDES_BY_WORD, .is_untyped = true, .has_free_objects = true, .is_structural = true,
        .renames_imports = true, .has_constant_members = true, .has_defaults = true, .has_optionals = true, .has_semicolons = true,
        .types = {": number", ": number", ": boolean", ": string"}},
    {"tsx", REFACTOR_JS, REFACTOR_HIDES_BY_WORD, .is_untyped = true, .has_free_objects = true, .is_structural = true,
        .renames_imports = true, .has_constant_members = true, .has_defaults = true, .has_optionals = true, .has_semicolons = true,
        .types = {": number", ": number", ": boolean", ": string"}},
    {"go", REFACTOR_GO, REFACTOR_HIDES_BY_NAME,
        .types = {" int", " float64", " bool", " string"}},
    {"java", REFACTOR_JAVA, REFACTOR_HIDES_BY_WORD, .has_bare_members = true, .has_constant_members = true,
        .has_named_constructors = true, .has_type_first = true, .has_semicolons = true,
        .types = {"int ", "double ", "boolean ", "String "}},
    {"rust", REFACTOR_RUST, REFACTOR_HIDES_BY_WORD, .has_paths = true, .has_constant_members = true, .has_semicolons = true,
        .types = {": i32", ": f64", ": bool", ": &str"}},
    {"ruby", REFACTOR_RUBY, .has_defaults = true, .has_semicolons = true},
    {"php", REFACTOR_PHP, .has_constant_members = true, .has_defaults = true, .has_semicolons = true},
    {"c_sharp", REFACTOR_C_SHARP, .has_bare_members = true, .has_constant_members = true, .has_named_constructors = true,
        .has_defaults = true, .has_semicolons = true},
    {"bash", REFACTOR_BASH, .has_defaults = true, .has_semicolons = true},
};
/* clang-format on */

const refactor_language *refactor__language(const char *name)
{
    static const refactor_language other = {"", .has_defaults = true, .has_semicolons = true};
    for (size_t i = 0; name && i < sizeof languages / sizeof *languages; i++)
        if (!strcmp(languages[i].name, name)) return &languages[i];
    return &other;
}
