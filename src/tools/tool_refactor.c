/*
 * refactor {operation, name, ...}: a definition is renamed, moved, deleted, or given another parameter, with all
 * that uses it, in all files at once (refactor/); a file is deleted. The model names the definition; the texts are the program's.
 */
#include "tools/refactor/refactor.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tools/result/result.h"

static const struct {
    const char *name;
    refactor_operation *prepare;
} operations[] = {
#define OPERATION(name) {#name, refactor__##name},
#include "tools/operations.def"
#undef OPERATION
};
static const char *const choices[] = {
#define OPERATION(name) #name,
#include "tools/operations.def"
#undef OPERATION
    NULL,
};

static void say_needs(tool_result *result)
{
    base_buf_puts(&result->text, "refactor needs \"operation\" (");
    for (size_t i = 0; choices[i]; i++) base_buf_printf(&result->text, i ? ", %s" : "%s", choices[i]);
    tool__say(result, TOOL_FAILED, ") and \"name\", a definition of this tree. Nothing was changed.\n");
}

static int prepare(tool_workspace *w, const tool_call *call, const tool_limits *limits, tool_preview *ret,
    tool_result *result, base_err *err)
{
    const char *operation = tool__string(call, "operation");
    const refactor_request q = {.name = tool__string(call, "name"),
        .to = tool__string(call, "to"),
        .path = tool__string(call, "path"),
        .with = tool__string(call, "with"),
        .parameter = tool__string(call, "parameter"),
        .value = tool__string(call, "value"),
        .at = tool__integer(call, "at", 0, 0, 64),
        .unsure = tool__boolean(call, "unsure"),
        .keep = tool__boolean(call, "keep"),
        .text = tool__boolean(call, "text"),
        .no_text = base_json_get(call->arguments, "text") && !tool__boolean(call, "text")};
    refactor_operation *fn = NULL;
    result->exit_code = -1;
    for (size_t i = 0; operation && i < sizeof operations / sizeof *operations; i++)
        if (!strcmp(operations[i].name, operation)) fn = operations[i].prepare;
    if (!fn || !q.name) {
        say_needs(result);
        return BASE_OK;
    }
    refactor x = {.w = w,
        .limits = limits,
        .result = result,
        .to = !strcmp(operation, "rename") ? q.to : NULL,
        .takes_twins = !strcmp(operation, "move") && !q.path,
        .takes_unsure = q.unsure,
        .takes_text = q.text,
        .leaves_text = q.no_text};
    tool_changes *changes = base_xcalloc(1, sizeof *changes);
    base_buf headline = {0};
    const bool is_file = !strcmp(operation, "delete") && !q.to && refactor__is_file(w, q.name);
    const bool is_good = is_file
                             ? refactor__delete_file(w, q.name, changes, &headline, result)
                             : refactor__find_target(&x, q.name, q.path) && fn(&x, &q, changes, &headline);
    if (is_good && tool__changes_hold(w, changes, result)) {
        changes->prepare = prepare;
        tool__changes_preview(w, changes, headline.data, ret);
        changes = NULL;
    }
    tool__changes_free(changes);
    base_buf_free(&headline);
    refactor__free(&x);
    return BASE_OK;
}

static const tool_argument arguments[] = {
    {"operation", TOOL_ARGUMENT_CHOICE, true, "", choices, TOOL_FOR_ALL},
    {"name", TOOL_ARGUMENT_SYMBOL, true, "definition", NULL, TOOL_FOR_ALL},
    {"to", TOOL_ARGUMENT_STRING, false, "new name, or file, or what replaces calls", NULL, TOOL_FOR_ALL},
    {"parameter", TOOL_ARGUMENT_STRING, false, "to add, to remove, or their order", NULL, TOOL_FOR_ALL},
    {"value", TOOL_ARGUMENT_STRING, false, "what callers give", NULL, TOOL_FOR_ALL},
    {"at", TOOL_ARGUMENT_INTEGER, false, "place of the parameter", NULL, TOOL_FOR_ALL},
    {"path", TOOL_ARGUMENT_PATH, false, "file of the definition", NULL, TOOL_FOR_ALL},
    {"with", TOOL_ARGUMENT_STRING, false, "others that move along", NULL, TOOL_FOR_ALL},
    {"keep", TOOL_ARGUMENT_BOOLEAN, false, "old place gives it still", NULL, TOOL_FOR_ALL},
    {"unsure", TOOL_ARGUMENT_BOOLEAN, false, "places that are not sure too", NULL, TOOL_FOR_ALL},
    {"text", TOOL_ARGUMENT_BOOLEAN, false, "comments, strings, documents too", NULL, TOOL_FOR_ALL},
    {0},
};

const tool_entry tool__refactor = {
    .name = "refactor",
    .power = TOOL_WRITES,
    .models = TOOL_ON_REQUEST,
    .about = "Rename, move or delete a definition, or change its parameters, everywhere.",
    .arguments = arguments,
    .prepare = prepare,
    .run = tool__changes_run,
};
