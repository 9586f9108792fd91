/*
 * The tools, one row each: what the model is told, what a call may do, who does it. The order is the order in the prompt.
 * rewrite is for small models and edit for stronger ones (measured: a 1.5B model gets 0 of 5 edits right and 5 of 7
 * rewrites), so that at most eight are offered.
 */
#include "tools/internal.h"

#include <string.h>

static const char *const git_ops[] = {"status", "diff", "log", "show", "blame", NULL};

static const tool_argument list_arguments[] = {
    {"path", TOOL_ARGUMENT_STRING, false, "folder; the whole tree without it", NULL, TOOL_FOR_ALL},
    {0},
};
static const tool_argument search_arguments[] = {
    {"query", TOOL_ARGUMENT_STRING, true, "text or name to find", NULL, TOOL_FOR_ALL},
    {"path", TOOL_ARGUMENT_STRING, false, "file or folder to look in", NULL, TOOL_FOR_ALL},
    {"regex", TOOL_ARGUMENT_BOOLEAN, false, "query is a POSIX extended regex", NULL, TOOL_FOR_ALL},
    {0},
};
static const tool_argument read_arguments[] = {
    {"path", TOOL_ARGUMENT_PATH, true, "file", NULL, TOOL_FOR_ALL},
    {"from", TOOL_ARGUMENT_INTEGER, false, "first line", NULL, TOOL_FOR_ALL},
    {"count", TOOL_ARGUMENT_INTEGER, false, "lines", NULL, TOOL_FOR_ALL},
    {"symbols", TOOL_ARGUMENT_BOOLEAN, false, "true: only its definitions with their lines", NULL,
        TOOL_FOR_STRONG}, /* a small model never asks for it, and each line of the prompt turns its answers */
    {0},
};
static const tool_argument write_arguments[] = {
    {"path", TOOL_ARGUMENT_STRING, true, "new file", NULL, TOOL_FOR_ALL},
    {0},
};
static const tool_argument rewrite_arguments[] = {
    {"path", TOOL_ARGUMENT_PATH, true, "file", NULL, TOOL_FOR_ALL},
    {"name", TOOL_ARGUMENT_STRING, true, "function, Class.method or type", NULL, TOOL_FOR_ALL},
    {0},
};
static const tool_argument edit_arguments[] = {
    {"path", TOOL_ARGUMENT_PATH, true, "file", NULL, TOOL_FOR_ALL},
    {"from", TOOL_ARGUMENT_INTEGER, false, "first line to replace", NULL, TOOL_FOR_ALL},
    {"to", TOOL_ARGUMENT_INTEGER, false, "last line to replace", NULL, TOOL_FOR_ALL},
    {0},
};
static const tool_argument shell_arguments[] = {
    {"command", TOOL_ARGUMENT_STRING, true, "one shell command", NULL, TOOL_FOR_ALL},
    {"seconds", TOOL_ARGUMENT_INTEGER, false, "time limit", NULL, TOOL_FOR_ALL},
    {0},
};
static const tool_argument git_arguments[] = {
    {"op", TOOL_ARGUMENT_CHOICE, true, "what to show", git_ops, TOOL_FOR_ALL},
    {"path", TOOL_ARGUMENT_STRING, false, "file or folder", NULL, TOOL_FOR_ALL},
    {"rev", TOOL_ARGUMENT_STRING, false, "commit, branch or a..b", NULL, TOOL_FOR_ALL},
    {"from", TOOL_ARGUMENT_INTEGER, false, "first line of a blame", NULL, TOOL_FOR_ALL},
    {0},
};
static const tool_argument recall_arguments[] = {
    {"query", TOOL_ARGUMENT_STRING, true, "words", NULL, TOOL_FOR_ALL},
    {0},
};

/* clang-format off */
static const tool_entry table[] = {
    {.name = "list", .power = TOOL_READS, .about = "List the files of the tree or of one folder.",
     .arguments = list_arguments, .run = tool__list_run},
    {.name = "search", .power = TOOL_READS, .about = "Find text in the tree: definitions of a name first, then lines.",
     .arguments = search_arguments, .run = tool__search_run},
    {.name = "read", .power = TOOL_READS, .about = "Read a file or some of its lines.",
     .arguments = read_arguments, .run = tool__read_run},
    {.name = "write", .power = TOOL_WRITES, .about = "Create a new file; its text follows in a fenced block.",
     .arguments = write_arguments, .takes_payload = true, .prepare = tool__write_prepare, .run = tool__write_run},
    {.name = "rewrite", .power = TOOL_WRITES, .models = TOOL_FOR_SMALL,
     .about = "Replace one whole definition of a file; the whole new definition follows in a fenced block.",
     .arguments = rewrite_arguments, .takes_payload = true, .prepare = tool__rewrite_prepare, .run = tool__rewrite_run},
    {.name = "edit", .power = TOOL_WRITES, .models = TOOL_FOR_STRONG,
     .about = "Change a file. A fenced block follows: the new text of lines from..to, or parts "
              "\"<<<<<<< OLD\", old lines, \"=======\", new lines, \">>>>>>> NEW\".",
     .arguments = edit_arguments, .takes_payload = true, .prepare = tool__edit_prepare, .run = tool__edit_run},
    {.name = "shell", .power = TOOL_RUNS, .about = "Run a command in the tree's folder, without network. Use it for tests.",
     .arguments = shell_arguments, .prepare = tool__shell_prepare, .run = tool__shell_run},
    {.name = "git", .power = TOOL_READS, .about = "Look at the repository's state and history.",
     .arguments = git_arguments, .run = tool__git_run},
    {.name = "recall", .power = TOOL_READS, .about = "Find something said or shown earlier in this session.",
     .arguments = recall_arguments, .run = tool__recall_run},
};
/* clang-format on */

const tool_entry *tool_table(uint32_t *ret_n)
{
    *ret_n = sizeof table / sizeof *table;
    return table;
}

const tool_entry *tool_find(const char *name)
{
    for (size_t i = 0; name && i < sizeof table / sizeof *table; i++)
        if (!strcmp(table[i].name, name)) return &table[i];
    return NULL;
}
