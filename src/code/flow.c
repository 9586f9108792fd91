/*
 * How control passes through node types, and where names are defined: one table by node name for all
 * languages, because grammars agree on most names; the few that do not have rows of their own. Data only;
 * resolved once per grammar (grammars.c).
 */
#include "code/internal.h"

#include <string.h>

typedef struct flow_row {
    const char *node;
    code_flow flow;
    const char *language; /* NULL: any other */
} flow_row;

#define B FLOW_BINDS
/* clang-format off */
static const flow_row rows[] = {
    /* Rows of one language stand in front of those for all. */
    {"case_statement", FLOW_SWITCH, "bash"}, {"case", FLOW_SWITCH, "ruby"}, {"switch_statement", FLOW_SWITCH, "go"},
    {"for", FLOW_LOOP | B, "ruby"}, {"if", FLOW_IF, "ruby"}, {"while", FLOW_LOOP, "ruby"}, {"return", FLOW_RETURN, "ruby"},
    {"body_statement", FLOW_SEQUENCE, "ruby"}, {"then", FLOW_SEQUENCE, "ruby"}, {"else", FLOW_ELSE, "ruby"}, {"do", FLOW_SEQUENCE, "ruby"},
    {"program", FLOW_SEQUENCE, NULL}, {"module", FLOW_SEQUENCE, "python"},
    {"call", FLOW_REACHES | FLOW_MEMBER, "ruby"},

    {"block", FLOW_SEQUENCE}, {"compound_statement", FLOW_SEQUENCE}, {"statement_block", FLOW_SEQUENCE},
    {"constructor_body", FLOW_SEQUENCE}, {"do_block", FLOW_SEQUENCE}, {"do_group", FLOW_SEQUENCE}, {"block_statement", FLOW_SEQUENCE},
    {"colon_block", FLOW_SEQUENCE}, {"unsafe_block", FLOW_SEQUENCE}, {"statement_list", FLOW_SEQUENCE},

    {"if_statement", FLOW_IF}, {"if_expression", FLOW_IF}, {"elif_clause", FLOW_IF}, {"else_if_clause", FLOW_IF},
    {"if_let_expression", FLOW_IF | B}, {"elsif", FLOW_IF}, {"unless", FLOW_IF}, {"if_modifier", FLOW_IF}, {"unless_modifier", FLOW_IF},
    {"else_clause", FLOW_ELSE},

    {"while_statement", FLOW_LOOP}, {"while_expression", FLOW_LOOP}, {"until", FLOW_LOOP}, {"until_statement", FLOW_LOOP},
    {"while_modifier", FLOW_LOOP}, {"until_modifier", FLOW_LOOP}, {"while_let_expression", FLOW_LOOP | B},
    {"for_statement", FLOW_LOOP | B}, {"for_in_statement", FLOW_LOOP | B}, {"enhanced_for_statement", FLOW_LOOP | B},
    {"for_expression", FLOW_LOOP | B}, {"foreach_statement", FLOW_LOOP | B}, {"for_each_statement", FLOW_LOOP | B},
    {"for_range_loop", FLOW_LOOP | B}, {"c_style_for_statement", FLOW_LOOP},
    {"do_statement", FLOW_DO}, {"loop_expression", FLOW_FOREVER},

    {"switch_statement", FLOW_FALL}, {"switch_expression", FLOW_FALL}, {"expression_switch_statement", FLOW_SWITCH},
    {"type_switch_statement", FLOW_SWITCH}, {"select_statement", FLOW_SWITCH}, {"match_statement", FLOW_SWITCH},
    {"match_expression", FLOW_SWITCH},
    {"case_statement", FLOW_CASE}, {"default_statement", FLOW_CASE}, {"switch_case", FLOW_CASE}, {"switch_default", FLOW_CASE},
    {"switch_section", FLOW_CASE}, {"switch_block_statement_group", FLOW_CASE}, {"switch_rule", FLOW_CASE},
    {"expression_case", FLOW_CASE}, {"default_case", FLOW_CASE}, {"type_case", FLOW_CASE}, {"communication_case", FLOW_CASE},
    {"case_clause", FLOW_CASE | B}, {"match_arm", FLOW_CASE | B}, {"when", FLOW_CASE}, {"in_clause", FLOW_CASE | B},
    {"case_item", FLOW_CASE}, {"match_conditional_expression", FLOW_CASE}, {"match_default_expression", FLOW_CASE},

    {"return_statement", FLOW_RETURN}, {"return_expression", FLOW_RETURN}, {"raise_statement", FLOW_RETURN},
    {"throw_statement", FLOW_RETURN}, {"throw_expression", FLOW_RETURN}, {"co_return_statement", FLOW_RETURN},
    {"break_statement", FLOW_BREAK}, {"break_expression", FLOW_BREAK}, {"break", FLOW_BREAK},
    {"continue_statement", FLOW_CONTINUE}, {"continue_expression", FLOW_CONTINUE}, {"next", FLOW_CONTINUE},
    {"goto_statement", FLOW_GOTO}, {"labeled_statement", FLOW_LABEL},

    {"try_statement", FLOW_TRY}, {"try_with_resources_statement", FLOW_TRY | B}, {"begin", FLOW_TRY},
    {"except_clause", FLOW_HANDLER | B}, {"except_group_clause", FLOW_HANDLER | B}, {"catch_clause", FLOW_HANDLER | B},
    {"rescue", FLOW_HANDLER | B}, {"finally_clause", FLOW_FINALLY}, {"ensure", FLOW_FINALLY},
    {"with_statement", FLOW_WITH}, {"synchronized_statement", FLOW_WITH}, {"using_statement", FLOW_WITH},
    {"lock_statement", FLOW_WITH}, {"fixed_statement", FLOW_WITH}, {"checked_statement", FLOW_WITH},

    /* Names: beside the rows of tables.c that are assignments. */
    {"as_pattern", B}, {"with_item", B}, {"let_condition", B}, {"range_clause", B}, {"for_clause", B}, {"for_in_clause", B},
    {"receive_statement", B}, {"catch_declaration", B}, {"catch_formal_parameter", B}, {"resource", B}, {"exception_variable", B},
    {"for_range_declaration", B}, {"declaration_pattern", B},

    {"attribute", FLOW_REACHES}, {"subscript", FLOW_REACHES}, {"member_expression", FLOW_REACHES},
    {"subscript_expression", FLOW_REACHES}, {"field_expression", FLOW_REACHES}, {"field_access", FLOW_REACHES | FLOW_MEMBER},
    {"array_access", FLOW_REACHES}, {"selector_expression", FLOW_REACHES}, {"index_expression", FLOW_REACHES},
    {"slice_expression", FLOW_REACHES}, {"element_reference", FLOW_REACHES}, {"member_access_expression", FLOW_REACHES | FLOW_MEMBER},
    {"element_access_expression", FLOW_REACHES}, {"conditional_access_expression", FLOW_REACHES},
    {"scoped_property_access_expression", FLOW_REACHES | FLOW_MEMBER}, {"nullsafe_member_access_expression", FLOW_REACHES | FLOW_MEMBER},
    {"pointer_expression", FLOW_REACHES}, {"unary_expression", FLOW_REACHES}, {"parenthesized_expression", FLOW_NONE},
    {"call_expression", FLOW_REACHES}, {"call", FLOW_REACHES}, {"method_invocation", FLOW_REACHES | FLOW_MEMBER},
    {"invocation_expression", FLOW_REACHES}, {"member_call_expression", FLOW_REACHES | FLOW_MEMBER},
    {"scoped_call_expression", FLOW_REACHES | FLOW_MEMBER}, {"nullsafe_member_call_expression", FLOW_REACHES | FLOW_MEMBER},
    {"function_call_expression", FLOW_REACHES}, {"macro_invocation", FLOW_REACHES}, {"keyword_argument", FLOW_MEMBER},
};
/* clang-format on */
#undef B

code_flow code_flow_of(const char *language, const char *node)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].node, node) == 0 &&
            (rows[i].language == NULL || strcmp(rows[i].language, language) == 0))
            return rows[i].flow;
    return FLOW_NONE;
}
