/*
 * A request that asks for an operation on a definition ("rename X to Y"): the harness begins the call, the model
 * ends it, and the grammar takes only names that the index has. A small model that is told of a tool in a line
 * of the prompt does not think of it; one that stands in the middle of its call fills it in.
 */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "agent/parts.h"
#include "base/mem.h"

/* Verbs, and what may stand behind them in place of a definition: then it is no operation of ours. */
static const struct operation {
    const char *name;
    const char *const verbs[6];
    const char *to;    /* what its second argument is */
    bool needs_symbol; /* the verb alone is too common: a name of the tree has to follow */
} operations[] = {
    {"rename", {"rename", "call it", "name it", NULL}, "new name", false},
    {"move", {"move", NULL}, "file", true},
    {"delete", {"delete", "remove", "drop", NULL}, "what stands in place of its calls", true},
};

static const char *const other_things[] = {
    "file", "files", "folder", "directory", "branch", "tag", "repository", "repo", "column", "table", NULL};

static bool is_word_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

/* The verb as whole words; behind it, or NULL. */
static const char *behind_verb(const char *request, const char *verb)
{
    const size_t n = strlen(verb);
    for (const char *at = request; *at; at++) {
        if (at > request && is_word_char(at[-1])) continue;
        if (!strncasecmp(at, verb, n) && !is_word_char(at[n])) return at + n;
    }
    return NULL;
}

/* The next word at or behind *at; false at the end. */
static bool next_word(const char **at, base_buf *word)
{
    const char *p = *at;
    base_buf_clear(word);
    while (*p && !is_word_char(*p)) p++;
    while (is_word_char(*p)) base_buf_putc(word, *p++);
    *at = p;
    return word->len > 0;
}

static bool is_other_thing(const char *behind)
{
    base_buf word = {0};
    bool found = false;
    for (int n = 0; n < 2 && next_word(&behind, &word); n++)
        for (size_t i = 0; other_things[i]; i++) found = found || !strcasecmp(word.data, other_things[i]);
    base_buf_free(&word);
    return found;
}

/* A word among the next few that the tree defines, in the form of a name. */
static bool names_symbol(const agent *a, const char *behind)
{
    enum { NEAR = 6 };
    base_buf word = {0};
    bool found = false;
    for (int n = 0; n < NEAR && !found && next_word(&behind, &word); n++)
        found = word.len >= 3 && code_index_is_defined(tool_workspace_index(a->workspace), word.data);
    base_buf_free(&word);
    return found;
}

static bool asks(const char *request)
{
    static const char *const questions[] = {
        "how", "what", "which", "where", "why", "who", "when", "does", "is", "are", "should", NULL};
    base_buf word = {0};
    bool found = strchr(request, '?') != NULL;
    const char *at = request;
    if (next_word(&at, &word))
        for (size_t i = 0; questions[i]; i++) found = found || !strcasecmp(word.data, questions[i]);
    base_buf_free(&word);
    return found;
}

/* The operation that the request asks for; NULL: none. */
static const struct operation *asked_operation(const agent *a, const char *request)
{
    if (a->settings.mode == AGENT_MODE_PLAN || a->fix.wanted || asks(request)) return NULL;
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        for (const char *const *verb = operations[i].verbs; *verb; verb++) {
            const char *behind = behind_verb(request, *verb);
            if (!behind || is_other_thing(behind)) continue;
            if (!operations[i].needs_symbol || names_symbol(a, behind)) return &operations[i];
        }
    return NULL;
}

static bool can_open(const agent *a)
{
    return (a->engine->can & ENGINE_GRAMMAR) && a->engine->ops->answer_opened;
}

void agent__tell_operation(const agent *a, const char *request, base_buf *out)
{
    const struct operation *o = can_open(a) ? NULL : asked_operation(a, request);
    if (o)
        base_buf_printf(out,
            "A tool for this request, for all files at once: refactor {\"operation\": \"%s\", \"name\": "
            "definition, "
            "\"to\": %s}\n",
            o->name, o->to);
}

bool agent__open_operation(agent *a, const char *request, agent_opening *opening)
{
    const struct operation *o = can_open(a) ? asked_operation(a, request) : NULL;
    if (!o) return false;
    base_buf json = {0};
    agent_opening_free(opening);
    base_buf_printf(
        &json, "{\"name\": \"refactor\", \"arguments\": {\"operation\": \"%s\", \"name\": \"", o->name);
    agent_prompt_open_call(a->info.tools, json.data, &opening->call);
    base_buf_free(&json);
    return true;
}
