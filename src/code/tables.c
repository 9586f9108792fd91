/*
 * What the node types of a grammar mean: one table a language, one row a node type. A row that a grammar
 * version lacks is ignored and reported by `kvist grammar check`; old and new names of a node stand side by
 * side for that reason. A grammar without a table is read by the names of its node types.
 *
 * Source of the names: the node-types.json of the grammars around 0.20 to 0.23 (see docs of each grammar).
 * Data only.
 */
#include "code/internal.h"

#include <string.h>

enum { NONE = -1, CALL = CODE_CALL, CONTROL = CODE_CONTROL, RETURN = CODE_RETURN, ASSIGN = CODE_ASSIGN };

/* clang-format off */
#define C_ROWS \
    {"call_expression", CALL}, \
    {"if_statement", CONTROL}, {"while_statement", CONTROL}, {"do_statement", CONTROL}, {"for_statement", CONTROL}, \
    {"switch_statement", CONTROL}, {"case_statement", CONTROL}, {"conditional_expression", CONTROL}, \
    {"return_statement", RETURN}, {"goto_statement", RETURN}, {"break_statement", RETURN}, {"continue_statement", RETURN}, \
    {"assignment_expression", ASSIGN}, {"init_declarator", ASSIGN}, {"update_expression", ASSIGN}, \
    {"function_definition", NONE, "function", 0}, \
    {"struct_specifier", NONE, "struct", NODE_NEEDS_BODY}, {"union_specifier", NONE, "union", NODE_NEEDS_BODY}, \
    {"enum_specifier", NONE, "enum", NODE_NEEDS_BODY}, {"type_definition", NONE, "typedef", NODE_DECLARES}, \
    {"preproc_function_def", NONE, "macro", 0}, {"preproc_def", NONE, "macro", 0}, {"enumerator", NONE, "constant", 0}, \
    {"declaration", NONE, "variable", NODE_DECLARES}, {"field_declaration", NONE, "field", NODE_DECLARES}, \
    {"compound_statement", NONE, NULL, NODE_BLOCK}, {"field_declaration_list", NONE, NULL, NODE_BLOCK}, \
    {"enumerator_list", NONE, NULL, NODE_BLOCK}, {"comment", NONE, NULL, NODE_COMMENT}

static const code_node_row c_rows[] = {C_ROWS, {NULL}};

static const code_node_row cpp_rows[] = {
    C_ROWS,
    {"for_range_loop", CONTROL}, {"catch_clause", CONTROL}, {"try_statement", CONTROL}, {"new_expression", CALL},
    {"throw_statement", RETURN}, {"co_return_statement", RETURN}, {"co_yield_statement", RETURN},
    {"class_specifier", NONE, "class", NODE_NEEDS_BODY}, {"alias_declaration", NONE, "type", 0},
    {"namespace_definition", NONE, NULL, NODE_SCOPE}, {"lambda_expression", NONE, NULL, NODE_LITERAL},
    {"template_declaration", NONE, NULL, NODE_WRAPS}, {"declaration_list", NONE, NULL, NODE_BLOCK},
    {NULL},
};

static const code_node_row python_rows[] = {
    {"call", CALL},
    {"if_statement", CONTROL}, {"elif_clause", CONTROL}, {"while_statement", CONTROL}, {"for_statement", CONTROL},
    {"match_statement", CONTROL}, {"case_clause", CONTROL}, {"except_clause", CONTROL}, {"except_group_clause", CONTROL}, {"with_statement", CONTROL},
    {"assert_statement", CONTROL}, {"conditional_expression", CONTROL}, {"if_clause", CONTROL}, {"for_in_clause", CONTROL},
    {"return_statement", RETURN}, {"yield", RETURN}, {"raise_statement", RETURN}, {"break_statement", RETURN},
    {"continue_statement", RETURN},
    {"assignment", ASSIGN, "variable", NODE_VARIABLE}, {"augmented_assignment", ASSIGN}, {"named_expression", ASSIGN},
    {"function_definition", NONE, "function", 0}, {"class_definition", NONE, "class", 0},
    {"decorated_definition", NONE, NULL, NODE_WRAPS}, {"lambda", NONE, NULL, NODE_LITERAL}, {"block", NONE, NULL, NODE_BLOCK},
    {"comment", NONE, NULL, NODE_COMMENT},
    {NULL},
};

#define JS_ROWS \
    {"call_expression", CALL}, {"new_expression", CALL}, \
    {"if_statement", CONTROL}, {"while_statement", CONTROL}, {"do_statement", CONTROL}, {"for_statement", CONTROL}, \
    {"for_in_statement", CONTROL}, {"switch_statement", CONTROL}, {"switch_case", CONTROL}, {"ternary_expression", CONTROL}, \
    {"catch_clause", CONTROL}, {"try_statement", CONTROL}, \
    {"return_statement", RETURN}, {"throw_statement", RETURN}, {"yield_expression", RETURN}, {"break_statement", RETURN}, \
    {"continue_statement", RETURN}, \
    {"assignment_expression", ASSIGN, "function", NODE_IF_FUNCTION}, {"augmented_assignment_expression", ASSIGN}, \
    {"variable_declarator", ASSIGN, "variable", NODE_VARIABLE}, {"update_expression", ASSIGN}, \
    {"function_declaration", NONE, "function", 0}, {"generator_function_declaration", NONE, "function", 0}, \
    {"method_definition", NONE, "method", 0}, {"class_declaration", NONE, "class", 0}, \
    {"pair", NONE, "method", NODE_IF_FUNCTION}, \
    {"arrow_function", NONE, NULL, NODE_LITERAL}, {"function_expression", NONE, NULL, NODE_LITERAL}, \
    {"function", NONE, NULL, NODE_LITERAL}, {"generator_function", NONE, NULL, NODE_LITERAL}, \
    {"lexical_declaration", NONE, NULL, NODE_WRAPS_ONE}, {"variable_declaration", NONE, NULL, NODE_WRAPS_ONE}, \
    {"export_statement", NONE, NULL, NODE_WRAPS}, {"expression_statement", NONE, NULL, NODE_WRAPS_ONE}, \
    {"statement_block", NONE, NULL, NODE_BLOCK}, {"class_body", NONE, NULL, NODE_BLOCK}, {"decorator", NONE, NULL, NODE_ATTRIBUTE}, \
    {"comment", NONE, NULL, NODE_COMMENT}

static const code_node_row javascript_rows[] = {JS_ROWS, {"field_definition", ASSIGN, "field", NODE_VARIABLE}, {NULL}};

static const code_node_row typescript_rows[] = {
    JS_ROWS,
    {"function_signature", NONE, "function", NODE_DECLARATION}, {"method_signature", NONE, "method", NODE_DECLARATION},
    {"abstract_method_signature", NONE, "method", NODE_DECLARATION}, {"interface_declaration", NONE, "interface", 0},
    {"abstract_class_declaration", NONE, "class", 0}, {"enum_declaration", NONE, "enum", 0},
    {"type_alias_declaration", NONE, "type", 0}, {"public_field_definition", ASSIGN, "field", NODE_VARIABLE},
    {"property_signature", NONE, "field", 0}, {"enum_assignment", ASSIGN, "constant", NODE_VARIABLE}, {"internal_module", NONE, NULL, NODE_SCOPE}, {"module", NONE, NULL, NODE_SCOPE},
    {"interface_body", NONE, NULL, NODE_BLOCK}, {"object_type", NONE, NULL, NODE_BLOCK}, {"enum_body", NONE, NULL, NODE_BLOCK},
    {NULL},
};

static const code_node_row go_rows[] = {
    {"call_expression", CALL},
    {"if_statement", CONTROL}, {"for_statement", CONTROL}, {"expression_switch_statement", CONTROL}, {"expression_case", CONTROL},
    {"type_switch_statement", CONTROL}, {"type_case", CONTROL}, {"select_statement", CONTROL}, {"communication_case", CONTROL},
    {"return_statement", RETURN}, {"defer_statement", RETURN}, {"go_statement", RETURN}, {"break_statement", RETURN},
    {"continue_statement", RETURN}, {"goto_statement", RETURN},
    {"short_var_declaration", ASSIGN}, {"assignment_statement", ASSIGN}, {"var_spec", ASSIGN, "variable", NODE_VARIABLE},
    {"inc_statement", ASSIGN}, {"dec_statement", ASSIGN},
    {"function_declaration", NONE, "function", 0}, {"method_declaration", NONE, "method", 0}, {"type_spec", NONE, "type", 0},
    {"type_alias", NONE, "type", 0}, {"const_spec", ASSIGN, "constant", NODE_VARIABLE}, {"receive_statement", ASSIGN}, {"field_declaration", NONE, "field", 0},
    {"method_spec", NONE, "method", NODE_DECLARATION}, {"method_elem", NONE, "method", NODE_DECLARATION},
    {"func_literal", NONE, NULL, NODE_LITERAL}, {"type_declaration", NONE, NULL, NODE_WRAPS_ONE},
    {"const_declaration", NONE, NULL, NODE_WRAPS_ONE}, {"var_declaration", NONE, NULL, NODE_WRAPS_ONE},
    {"block", NONE, NULL, NODE_BLOCK}, {"field_declaration_list", NONE, NULL, NODE_BLOCK}, {"comment", NONE, NULL, NODE_COMMENT},
    {NULL},
};

static const code_node_row rust_rows[] = {
    {"call_expression", CALL}, {"macro_invocation", CALL},
    {"if_expression", CONTROL}, {"while_expression", CONTROL}, {"match_expression", CONTROL}, {"match_arm", CONTROL},
    {"for_expression", CONTROL}, {"loop_expression", CONTROL}, {"try_expression", CONTROL},
    {"return_expression", RETURN}, {"break_expression", RETURN}, {"continue_expression", RETURN},
    {"let_declaration", ASSIGN}, {"assignment_expression", ASSIGN}, {"compound_assignment_expr", ASSIGN},
    {"function_item", NONE, "function", NODE_TAIL_RETURNS}, {"function_signature_item", NONE, "function", NODE_DECLARATION},
    {"struct_item", NONE, "struct", 0}, {"enum_item", NONE, "enum", 0}, {"union_item", NONE, "union", 0},
    {"trait_item", NONE, "interface", 0}, {"type_item", NONE, "type", 0}, {"const_item", ASSIGN, "constant", NODE_VARIABLE},
    {"static_item", ASSIGN, "variable", NODE_VARIABLE}, {"macro_definition", NONE, "macro", 0},
    {"enum_variant", NONE, "constant", 0}, {"field_declaration", NONE, "field", 0},
    {"impl_item", NONE, NULL, NODE_SCOPE}, {"mod_item", NONE, NULL, NODE_SCOPE}, {"closure_expression", NONE, NULL, NODE_LITERAL},
    {"attribute_item", NONE, NULL, NODE_ATTRIBUTE}, {"block", NONE, NULL, NODE_BLOCK}, {"declaration_list", NONE, NULL, NODE_BLOCK},
    {"field_declaration_list", NONE, NULL, NODE_BLOCK}, {"enum_variant_list", NONE, NULL, NODE_BLOCK},
    {"match_block", NONE, NULL, NODE_BLOCK}, {"line_comment", NONE, NULL, NODE_COMMENT},
    {"block_comment", NONE, NULL, NODE_COMMENT},
    {NULL},
};

static const code_node_row java_rows[] = {
    {"method_invocation", CALL}, {"object_creation_expression", CALL}, {"explicit_constructor_invocation", CALL},
    {"if_statement", CONTROL}, {"while_statement", CONTROL}, {"do_statement", CONTROL}, {"for_statement", CONTROL},
    {"enhanced_for_statement", CONTROL}, {"switch_expression", CONTROL}, {"switch_statement", CONTROL}, {"switch_label", CONTROL},
    {"ternary_expression", CONTROL}, {"catch_clause", CONTROL}, {"try_statement", CONTROL},
    {"try_with_resources_statement", CONTROL}, {"synchronized_statement", CONTROL}, {"assert_statement", CONTROL}, {"resource", ASSIGN},
    {"return_statement", RETURN}, {"throw_statement", RETURN}, {"yield_statement", RETURN}, {"break_statement", RETURN},
    {"continue_statement", RETURN},
    {"assignment_expression", ASSIGN}, {"variable_declarator", ASSIGN, "variable", NODE_VARIABLE}, {"update_expression", ASSIGN},
    {"method_declaration", NONE, "method", NODE_MAY_DECLARE}, {"constructor_declaration", NONE, "method", 0},
    {"compact_constructor_declaration", NONE, "method", 0}, {"class_declaration", NONE, "class", 0},
    {"interface_declaration", NONE, "interface", 0}, {"enum_declaration", NONE, "enum", 0},
    {"record_declaration", NONE, "class", 0}, {"annotation_type_declaration", NONE, "interface", 0},
    {"enum_constant", NONE, "constant", 0}, {"lambda_expression", NONE, NULL, NODE_LITERAL}, {"block", NONE, NULL, NODE_BLOCK},
    {"constructor_body", NONE, NULL, NODE_BLOCK}, {"class_body", NONE, NULL, NODE_BLOCK}, {"interface_body", NONE, NULL, NODE_BLOCK},
    {"switch_block", NONE, NULL, NODE_BLOCK}, {"field_declaration", NONE, NULL, NODE_WRAPS_ONE},
    {"line_comment", NONE, NULL, NODE_COMMENT}, {"block_comment", NONE, NULL, NODE_COMMENT},
    {NULL},
};

static const code_node_row ruby_rows[] = {
    {"call", CALL, NULL, NODE_NAMED_JUMP}, {"method_call", CALL, NULL, NODE_NAMED_JUMP},
    {"if", CONTROL}, {"unless", CONTROL}, {"elsif", CONTROL}, {"while", CONTROL}, {"until", CONTROL}, {"for", CONTROL}, {"case", CONTROL},
    {"when", CONTROL}, {"rescue", CONTROL}, {"if_modifier", CONTROL}, {"unless_modifier", CONTROL}, {"conditional", CONTROL},
    {"while_modifier", CONTROL}, {"until_modifier", CONTROL}, {"rescue_modifier", CONTROL}, {"case_match", CONTROL}, {"in_clause", CONTROL},
    {"return", RETURN}, {"next", RETURN}, {"break", RETURN}, {"yield", RETURN},
    {"assignment", ASSIGN, "variable", NODE_VARIABLE}, {"operator_assignment", ASSIGN},
    {"method", NONE, "function", NODE_TAIL_RETURNS}, {"singleton_method", NONE, "function", NODE_TAIL_RETURNS},
    {"class", NONE, "class", 0},
    {"module", NONE, "module", 0}, {"lambda", NONE, NULL, NODE_LITERAL}, {"block", NONE, NULL, NODE_BLOCK},
    {"do_block", NONE, NULL, NODE_BLOCK}, {"comment", NONE, NULL, NODE_COMMENT},
    {NULL},
};

static const code_node_row php_rows[] = {
    {"function_call_expression", CALL}, {"member_call_expression", CALL}, {"nullsafe_member_call_expression", CALL},
    {"scoped_call_expression", CALL}, {"object_creation_expression", CALL},
    {"if_statement", CONTROL}, {"else_if_clause", CONTROL}, {"while_statement", CONTROL}, {"for_statement", CONTROL},
    {"foreach_statement", CONTROL}, {"switch_statement", CONTROL}, {"case_statement", CONTROL}, {"match_expression", CONTROL},
    {"catch_clause", CONTROL}, {"do_statement", CONTROL}, {"conditional_expression", CONTROL}, {"default_statement", CONTROL},
    {"match_conditional_expression", CONTROL}, {"try_statement", CONTROL},
    {"return_statement", RETURN}, {"throw_expression", RETURN}, {"throw_statement", RETURN}, {"yield_expression", RETURN},
    {"break_statement", RETURN}, {"continue_statement", RETURN}, {"update_expression", ASSIGN},
    {"property_element", ASSIGN, "field", NODE_VARIABLE}, {"const_element", ASSIGN, "constant", NODE_VARIABLE}, {"enum_case", NONE, "constant", 0},
    {"assignment_expression", ASSIGN}, {"augmented_assignment_expression", ASSIGN}, {"reference_assignment_expression", ASSIGN},
    {"function_definition", NONE, "function", 0}, {"method_declaration", NONE, "method", NODE_MAY_DECLARE},
    {"class_declaration", NONE, "class", 0}, {"interface_declaration", NONE, "interface", 0}, {"trait_declaration", NONE, "class", 0}, {"enum_declaration", NONE, "enum", 0},
    {"anonymous_function", NONE, NULL, NODE_LITERAL}, {"anonymous_function_creation_expression", NONE, NULL, NODE_LITERAL},
    {"arrow_function", NONE, NULL, NODE_LITERAL}, {"compound_statement", NONE, NULL, NODE_BLOCK},
    {"declaration_list", NONE, NULL, NODE_BLOCK}, {"comment", NONE, NULL, NODE_COMMENT},
    {NULL},
};

static const code_node_row c_sharp_rows[] = {
    {"invocation_expression", CALL}, {"object_creation_expression", CALL}, {"implicit_object_creation_expression", CALL},
    {"if_statement", CONTROL}, {"while_statement", CONTROL}, {"for_statement", CONTROL}, {"foreach_statement", CONTROL},
    {"for_each_statement", CONTROL}, {"switch_statement", CONTROL}, {"switch_section", CONTROL}, {"switch_expression", CONTROL},
    {"conditional_expression", CONTROL}, {"catch_clause", CONTROL},
    {"do_statement", CONTROL}, {"try_statement", CONTROL}, {"using_statement", CONTROL}, {"lock_statement", CONTROL},
    {"return_statement", RETURN}, {"throw_statement", RETURN}, {"throw_expression", RETURN}, {"yield_statement", RETURN},
    {"break_statement", RETURN}, {"continue_statement", RETURN}, {"goto_statement", RETURN},
    {"postfix_unary_expression", ASSIGN, NULL, NODE_STEP}, {"prefix_unary_expression", ASSIGN, NULL, NODE_STEP},
    {"assignment_expression", ASSIGN}, {"variable_declarator", ASSIGN, "variable", NODE_VARIABLE},
    {"method_declaration", NONE, "method", NODE_MAY_DECLARE}, {"constructor_declaration", NONE, "method", 0},
    {"destructor_declaration", NONE, "method", 0}, {"delegate_declaration", NONE, "type", 0}, {"event_declaration", NONE, "field", 0},
    {"local_function_statement", NONE, "function", 0}, {"property_declaration", NONE, "field", 0},
    {"class_declaration", NONE, "class", 0}, {"struct_declaration", NONE, "struct", 0}, {"interface_declaration", NONE, "interface", 0},
    {"enum_declaration", NONE, "enum", 0}, {"enum_member_declaration", NONE, "constant", 0},
    {"record_declaration", NONE, "class", 0}, {"namespace_declaration", NONE, NULL, NODE_SCOPE},
    {"lambda_expression", NONE, NULL, NODE_LITERAL}, {"block", NONE, NULL, NODE_BLOCK}, {"declaration_list", NONE, NULL, NODE_BLOCK},
    {"comment", NONE, NULL, NODE_COMMENT},
    {NULL},
};

static const code_node_row bash_rows[] = {
    {"command", CALL, NULL, NODE_NAMED_JUMP},
    {"if_statement", CONTROL}, {"elif_clause", CONTROL}, {"while_statement", CONTROL}, {"for_statement", CONTROL},
    {"c_style_for_statement", CONTROL}, {"case_statement", CONTROL}, {"case_item", CONTROL}, {"test_command", CONTROL},
    {"variable_assignment", ASSIGN, "variable", NODE_VARIABLE}, {"function_definition", NONE, "function", 0},
    {"compound_statement", NONE, NULL, NODE_BLOCK}, {"do_group", NONE, NULL, NODE_BLOCK}, {"comment", NONE, NULL, NODE_COMMENT},
    {NULL},
};

const code_table code_tables[] = {
    {"c", c_rows}, {"cpp", cpp_rows}, {"python", python_rows}, {"javascript", javascript_rows}, {"typescript", typescript_rows},
    {"tsx", typescript_rows}, {"go", go_rows}, {"rust", rust_rows}, {"java", java_rows}, {"ruby", ruby_rows}, {"php", php_rows},
    {"c_sharp", c_sharp_rows}, {"bash", bash_rows}, {NULL},
};

/* In order: the first row whose parts all occur in the node's name decides. */
static const struct { const char *parts[2]; code_node_row row; } by_name[] = {
    {{"comment", ""}, {"", NONE, NULL, NODE_COMMENT}},
    {{"argument", ""}, {NULL}}, {{"parameter", ""}, {NULL}}, {{"modifier", ""}, {NULL}}, {{"_type", ""}, {NULL}},
    {{"call", ""}, {"", CALL}}, {{"invocation", ""}, {"", CALL}},
    {{"function", "def"}, {"", NONE, "function", 0}}, {{"function", "decl"}, {"", NONE, "function", 0}},
    {{"function", "item"}, {"", NONE, "function", 0}}, {{"method", "def"}, {"", NONE, "method", 0}},
    {{"method", "decl"}, {"", NONE, "method", 0}}, {{"class", "def"}, {"", NONE, "class", 0}}, {{"class", "decl"}, {"", NONE, "class", 0}},
    {{"object", "def"}, {"", NONE, "class", 0}}, {{"trait", "def"}, {"", NONE, "interface", 0}}, {{"interface", "decl"}, {"", NONE, "interface", 0}},
    {{"struct", "decl"}, {"", NONE, "struct", 0}}, {{"enum", "decl"}, {"", NONE, "enum", 0}}, {{"module", "def"}, {"", NONE, "module", 0}},
    {{"lambda", ""}, {"", NONE, NULL, NODE_LITERAL}},
    {{"return", ""}, {"", RETURN}}, {{"throw", ""}, {"", RETURN}}, {{"raise", ""}, {"", RETURN}}, {{"yield", ""}, {"", RETURN}},
    {{"if_", ""}, {"", CONTROL}}, {{"while_", ""}, {"", CONTROL}}, {{"for_", ""}, {"", CONTROL}}, {{"switch_", ""}, {"", CONTROL}},
    {{"match_", ""}, {"", CONTROL}}, {{"case_", ""}, {"", CONTROL}}, {{"catch_", ""}, {"", CONTROL}},
    {{"assign", ""}, {"", ASSIGN}},
    {{"block", ""}, {"", NONE, NULL, NODE_BLOCK}}, {{"body", ""}, {"", NONE, NULL, NODE_BLOCK}},
};
/* clang-format on */

const code_table *code_table_of(const char *language)
{
    for (const code_table *table = code_tables; table->language != NULL; table++)
        if (strcmp(table->language, language) == 0) return table;
    return NULL;
}

code_node_row code_row_by_name(const char *node)
{
    for (size_t i = 0; i < sizeof by_name / sizeof *by_name; i++)
        if (strstr(node, by_name[i].parts[0]) != NULL && strstr(node, by_name[i].parts[1]) != NULL)
            return by_name[i].row;
    return (code_node_row){0};
}
