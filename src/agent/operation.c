/*
 * A request that asks for an operation on a definition ("rename X to Y"): the harness begins the call, the model
 * ends it, and the grammar takes only names that the index has. A small model that is told of a tool in a line
 * of the prompt does not think of it; one that stands in the middle of its call fills it in.
 */
#include <ctype.h>
#include <stdlib.h>
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

static bool is_filler(const char *word)
{
    static const char *const fillers[] = {"the", "both", "function", "functions", "method", "methods",
        "class", "classes", "helper", "helpers", "macro", "macros", "type", "types", "struct", "unused",
        "static", "definition", "definitions", "of", NULL};
    for (size_t i = 0; fillers[i]; i++)
        if (!strcasecmp(word, fillers[i])) return true;
    return false;
}

/* "A and B", "the functions A, B and C": the names of the tree in the list behind the verb; returns how many. */
static uint32_t list_names(const agent *a, const char *behind, char **ret, uint32_t most)
{
    base_buf word = {0};
    uint32_t n = 0;
    const char *at = behind;
    while (n < most && next_word(&at, &word)) {
        if (is_filler(word.data) || !strcasecmp(word.data, "and")) continue;
        const bool is_name = word.len >= 3 && (*at != '.' || !isalnum((unsigned char)at[1])) &&
                             code_index_is_defined(tool_workspace_index(a->workspace), word.data);
        if (!is_name) break;
        ret[n++] = base_xstrdup(word.data);
        const char *next = at + strspn(at, "`\"' ");
        if (*next != ',' && strncasecmp(next, "and ", 4) != 0) break;
    }
    base_buf_free(&word);
    return n;
}

/* "Turn the parameters round", "swap the arguments of f". */
static bool asks_for_order(const char *request)
{
    static const char *const things[] = {"parameters", "arguments", "params"};
    static const char *const verbs[] = {
        "swap", "exchange", "reverse", "turn", "other way round", "change the order"};
    bool has_thing = false, has_verb = false;
    for (size_t i = 0; i < sizeof things / sizeof *things; i++)
        has_thing |= behind_verb(request, things[i]) != NULL;
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        has_verb |= behind_verb(request, verbs[i]) != NULL;
    return has_thing && has_verb;
}

/* The operation that the request asks for, and what stands behind its verb; NULL: none. */
static const struct operation *asked_operation(const agent *a, const char *request, const char **ret_behind)
{
    if (a->settings.mode == AGENT_MODE_PLAN || a->fix.wanted || !a->asked.change) return NULL;
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        for (const char *const *verb = operations[i].verbs; *verb; verb++) {
            const char *behind = behind_verb(request, *verb);
            if (!behind || is_other_thing(behind)) continue;
            *ret_behind = behind;
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
    const char *behind;
    const struct operation *o = can_open(a) ? NULL : asked_operation(a, request, &behind);
    if (o)
        base_buf_printf(out,
            "A tool for this request, for all files at once: refactor {\"operation\": \"%s\", \"name\": "
            "definition, "
            "\"to\": %s}\n",
            o->name, o->to);
}

/* The call of the order of two parameters is known in whole but for the tags behind it. */
static bool open_order(const agent *a, const char *request, base_buf *json)
{
    agent_named named;
    agent__find_named(a, request, &named);
    const bool is_sure = named.n && named.items[0].score >= AGENT_NAMED_SURE;
    if (is_sure)
        base_buf_printf(json,
            "{\"name\": \"refactor\", \"arguments\": {\"operation\": \"signature\", \"name\": \"%s\", "
            "\"parameter\": "
            "\"2,1\"",
            named.items[0].name);
    agent_named_free(&named);
    return is_sure;
}

bool agent__open_operation(agent *a, const char *request, agent_opening *opening)
{
    const char *behind = NULL;
    base_buf json = {0};
    if (!can_open(a) || !a->asked.change || a->asked.refused) return false;
    const uint32_t done = a->asked.n_operations;
    const struct operation *o = asked_operation(a, request, &behind);
    if (!done && !o && !a->fix.wanted && a->settings.mode != AGENT_MODE_PLAN && asks_for_order(request)) {
        open_order(a, request, &json);
    } else if (o) {
        agent_asked *x = &a->asked; /* what is deleted stands in the list still */
        if (!done && !x->n_listed) x->n_listed = list_names(a, behind, x->listed, AGENT_MAX_WISHES);
        const uint32_t n = x->n_listed;
        if (n > 1 && done < n)
            base_buf_printf(&json,
                "{\"name\": \"refactor\", \"arguments\": {\"operation\": \"%s\", \"name\": \"%s\"%s", o->name,
                x->listed[done], strcmp(o->name, "delete") ? ", \"to\": \"" : "");
        else if (!done)
            base_buf_printf(&json,
                "{\"name\": \"refactor\", \"arguments\": {\"operation\": \"%s\", \"name\": \"", o->name);
    }
    if (json.len) {
        agent_opening_free(opening);
        agent_prompt_open_call(a->info.tools, json.data, &opening->call);
    }
    const bool is_open = json.len > 0;
    base_buf_free(&json);
    return is_open;
}
