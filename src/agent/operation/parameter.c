/*
 * A request about a function's parameters: one comes, goes, gets another name, or they get another order. The function is the one
 * of the tree that the request names and whose parameters fit what it says.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/asked/asked.h"
#include "agent/call/prompt.h"
#include "agent/operation/operation.h"
#include "agent/retrieve/retrieve.h"
#include "base/mem.h"
#include "code/code.h"

void agent__function_free(agent_function *f)
{
    free(f->name);
    free(f->path);
    free(f->parameters);
    *f = (agent_function){0};
}

/* The definition of that place; false: it has no list of parameters. */
static bool read_function(const agent *a, const char *name, const code_place *p, agent_function *ret)
{
    *ret = (agent_function){0};
    if (p->is_declaration) return false;
    ret->parameters = base_xcalloc(REFACTOR_MAX_ITEMS, REFACTOR_NAME_BYTES);
    ret->n =
        refactor_parameters(a->workspace, p->path, code_last_name(name), p->from, p->to, ret->parameters);
    ret->path = base_xstrdup(p->path);
    ret->name = base_xstrdup(name);
    if (ret->n != SIZE_MAX) return true;
    agent__function_free(ret);
    return false;
}

/* Does the request speak of this one? */
typedef bool meets(const agent_function *f, const void *ctx);

/* Of the tree's functions of that name the one that meets it; one of the tests where there is no other. false: none does. */
static bool look_up(const agent *a, const char *name, meets *is_it, const void *ctx, agent_function *ret)
{
    code_place *places = NULL;
    const uint32_t n = code_index_define(tool_workspace_index(a->workspace), name, &places);
    uint32_t n_found = 0, n_met = 0;
    bool is_in_tests = true; /* all of them */
    *ret = (agent_function){0};
    for (uint32_t i = 0; i < n; i++)
        is_in_tests &= places[i].is_declaration || code_path_is_test(places[i].path);
    for (uint32_t i = 0; i < n; i++) {
        agent_function f;
        if (!is_in_tests && code_path_is_test(places[i].path)) continue;
        n_found += !places[i].is_declaration;
        if (!read_function(a, name, &places[i], &f)) continue;
        const bool is_met = !is_it || is_it(&f, ctx);
        n_met += is_met;
        if (is_met && n_met == 1)
            *ret = f;
        else
            agent__function_free(&f);
    }
    ret->is_one_of_many = n_found > 1;
    code_places_free(places, n);
    return n_met > 0;
}

bool agent__look_up_function(const agent *a, const char *name, agent_function *ret)
{
    return look_up(a, name, NULL, NULL, ret);
}

/* The function that the request is about: where one is expected ("to f", "f should take"), else any it names. */
static bool find_function(
    const agent *a, const char *request, meets *is_it, const void *ctx, agent_function *ret)
{
    static const char *const in_front[] = {
        "to", "of", "in", "from", "let", "give", "function", "method", NULL};
    agent_word last = {0}, word;
    bool found = false;
    static const char *const articles[] = {"the", NULL};
    for (size_t at = 0; !found && agent__next_word(request, at, &word); at = word.to) {
        if (agent__is_any_word(request, word, articles)) continue; /* "of the delay function" */
        const bool is_expected = agent__is_any_word(request, last, in_front);
        last = word;
        if (!is_expected) continue;
        char *name = agent__with_its_type(a, request, agent__copy_word(request, word));
        found = look_up(a, name, is_it, ctx, ret);
        free(name);
    }
    agent_named named;
    agent__find_named(a, request, &named);
    for (uint32_t i = 0; i < named.n && !found && named.items[i].score >= AGENT_NAMED_SURE; i++) {
        char *name = agent__with_its_type(a, request, base_xstrdup(named.items[i].name));
        found = look_up(a, name, is_it, ctx, ret);
        free(name);
    }
    agent_named_free(&named);
    return found;
}

static bool has_parameter(const agent_function *f, const char *name)
{
    for (size_t i = 0; i < f->n; i++)
        if (!strcmp(f->parameters[i], name)) return true;
    return false;
}

static void begin_signature(const agent_function *f, base_buf *json)
{
    agent__begin_refactor(json, "signature", f->name);
}

static void end_signature(const agent_function *f, base_buf *json)
{
    if (f->is_one_of_many && json->data[json->len - 1] != '"') agent__put_member(json, "path", f->path);
}

/* --- one comes or goes ---------------------------------------------------------------------------------- */

static bool gets_or_loses(const agent_function *f, const void *ctx)
{
    const agent_parameter_words *w = ctx;
    if (w->name && !strcmp(f->name, w->name)) return false;
    if (w->change == AGENT_PARAMETER_COMES) return !w->name || !has_parameter(f, w->name);
    return w->name ? has_parameter(f, w->name) : w->at ? f->n >= (size_t)w->at : f->n == 1;
}

/* "... that makes it strict", "The header gets this mode": is more said than what comes and what callers give? */
static bool says_what_for(const char *request, const agent_parameter_words *w)
{
    static const char *const links[] = {
        "that", "which", "so", "instead", "when", "if", "whether", "unless", NULL};
    static const char *const known[] = {"caller", "callers", "call", "calls", "called", "pass", "passes",
        "default", "defaults", "defaulting", "everywhere", NULL};
    for (const char *at = request + w->to; *at;) {
        agent_word first;
        size_t n = 0;
        while (at[n] && !(strchr(".;!?\n", at[n]) && (!at[n + 1] || isspace((unsigned char)at[n + 1])))) n++;
        char *part = base_xstrndup(at, n);
        const bool is_new = at > request + w->to && agent__next_word(part, 0, &first);
        const bool says = is_new ? !agent__has_any_word(part, known) : agent__has_any_word(part, links);
        free(part);
        if (says) return true;
        at += n + (at[n] != '\0');
    }
    return false;
}

void agent__wish_use_of_parameter(agent *a, const base_json *arguments)
{
    const char *operation = base_json_str(arguments, "operation", NULL),
               *name = base_json_str(arguments, "name", NULL),
               *declared = base_json_str(arguments, "parameter", NULL);
    agent_parameter_words w;
    code_place *places = NULL;
    const code_place *only = NULL;
    uint32_t n_found = 0;
    if (!operation || strcmp(operation, "signature") != 0 || !name || !declared ||
        !agent_read_parameter_words(a->request, &w))
        return;
    const uint32_t n = code_index_define(tool_workspace_index(a->workspace), name, &places);
    for (uint32_t i = 0; i < n; i++) {
        if (places[i].is_declaration || code_path_is_test(places[i].path)) continue;
        only = &places[i];
        n_found++;
    }
    if (n_found == 1 && w.change == AGENT_PARAMETER_COMES && w.name && strstr(declared, w.name) &&
        says_what_for(a->request, &w) && agent__count_inside(a, only, w.name) < 2) /* the first declares it */
        agent__wish_changed(a, only->path, name);
    code_places_free(places, n);
    agent_parameter_words_free(&w);
}

/* "false" as the language writes it: "False". */
static const char *literal_of(const char *language, const char *value)
{
    static const struct {
        const char *language, *words[4]; /* true, false, nothing */
    } rows[] = {
        {"python", {"True", "False", "None"}},
        {"c", {"true", "false", "NULL"}},
        {"cpp", {"true", "false", "nullptr"}},
        {"go", {"true", "false", "nil"}},
        {"rust", {"true", "false", "None"}},
        {"java", {"true", "false", "null"}},
        {"ruby", {"true", "false", "nil"}},
    };
    static const char *const said[][4] = {{"true", NULL}, {"false", NULL}, {"none", "null", "nil", NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t k = 0; k < 3 && value && !strcmp(rows[i].language, language); k++)
            if (agent__is_any_word(value, (agent_word){0, strlen(value)}, said[k])) return rows[i].words[k];
    return value;
}

/* TypeScript: callers need not give it. */
static bool is_left_out(const agent_parameter_words *w, const char *language)
{
    return w->is_optional && w->name && w->type &&
           (!strcmp(language, "typescript") || !strcmp(language, "tsx"));
}

/* As the function's language declares it, without a default; empty: the request does not say enough. */
static void put_declared(const agent_parameter_words *w, const char *language, base_buf *out)
{
    const bool is_first = !strcmp(language, "c") || !strcmp(language, "cpp") || !strcmp(language, "java");
    if (w->declared || !w->name)
        base_buf_puts(out, w->declared ? w->declared : "");
    else if (!w->type || !strcmp(language, "javascript"))
        base_buf_puts(out, w->name);
    else if (is_first)
        base_buf_printf(out, "%s%s%s", w->type, w->type[strlen(w->type) - 1] == '*' ? "" : " ", w->name);
    else
        base_buf_printf(out, strcmp(language, "go") ? "%s%s: %s" : "%s%s %s", w->name,
            is_left_out(w, language) ? "?" : "", w->type);
}

/* "Behind text", "in front of the mode": the 1-based place of one that comes; 0: the request does not say it of a parameter that there is. */
static size_t place_beside(const char *request, const agent_function *f)
{
    enum { NEAR = 2 }; /* "behind the text" */
    static const struct {
        const char *words;
        size_t behind;
    } places[] = {{"behind", 1}, {"after", 1}, {"before", 0}, {"in front of", 0}, {"ahead of", 0}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        agent_word w;
        size_t at = agent__find_phrase(request, 0, places[i].words);
        for (int n = 0; at && n < NEAR && agent__next_word(request, at, &w); n++, at = w.to)
            for (size_t k = 0; k < f->n; k++)
                if (strlen(f->parameters[k]) == w.to - w.from &&
                    !memcmp(f->parameters[k], request + w.from, w.to - w.from))
                    return k + 1 + places[i].behind;
    }
    return 0;
}

/* "Give f encoding='utf-8'", "add x=1 to f", where Python or JavaScript declares one so: is it said of this function? */
static bool is_assigned_to(const char *request, const agent_parameter_words *w, const agent_function *f)
{
    static const char *const languages[] = {"python", "javascript", "typescript", "tsx"};
    static const char *const to[] = {"to", NULL}, *const fillers[] = {"the", "function", "method",
                                                      "parameters", "of", "signature", "arguments", NULL};
    const char *language = code_language(f->path, "", 0), *name = code_last_name(f->name);
    agent_word link, word;
    bool has_such = false;
    for (size_t i = 0; i < sizeof languages / sizeof *languages; i++)
        has_such |= language && !strcmp(language, languages[i]);
    const bool is_behind = agent__next_word(request, w->to, &link) && agent__is_any_word(request, link, to);
    for (word = link; is_behind && agent__next_word(request, word.to, &word) &&
                      agent__is_any_word(request, word, fillers);)
        ;
    char *said = is_behind ? agent__copy_word(request, word) : NULL,
         *before = base_xstrndup(request, w->from);
    const bool is_it = has_such && (is_behind ? !strcmp(said, name) : agent__names_word(before, name));
    free(said);
    free(before);
    return is_it;
}

static const char *const optional[] = {"optional", "optionally", NULL};

/* Python: "an optional second parameter", where the request names no default: callers stay as they are. */
static bool is_optional(const char *request, const char *language)
{
    return language && !strcmp(language, "python") && agent__has_any_word(request, optional);
}

/* "Add a parameter limit to find, default 10": what the request says of it; what it does not say the model writes. */
bool agent__open_parameter(const agent *a, const char *request, base_buf *json)
{
    agent_parameter_words w;
    agent_function f = {0};
    bool is_open = !a->asked.test && agent_read_parameter_words(request, &w);
    if (!is_open) return false;
    is_open = find_function(a, request, gets_or_loses, &w, &f) &&
              (!w.is_assigned || is_assigned_to(request, &w, &f));
    if (is_open) begin_signature(&f, json);
    if (is_open && w.change == AGENT_PARAMETER_GOES) {
        agent__put_member(json, "parameter", w.name ? w.name : f.parameters[w.at ? w.at - 1 : 0]);
    } else if (is_open) {
        const char *language = code_language(f.path, "", 0);
        const size_t at = w.at ? (size_t)w.at : place_beside(request, &f);
        base_buf declared = {0};
        w.is_optional |= !w.value && !w.callers && agent__has_any_word(request, optional);
        put_declared(&w, language ? language : "", &declared);
        const bool is_free = is_left_out(&w, language ? language : "");
        if (declared.len && w.value && !strchr(declared.data, '='))
            base_buf_printf(&declared, strchr(declared.data, ':') ? " = %s" : "=%s",
                literal_of(language ? language : "", w.value));
        else if (declared.len && !w.callers && !strchr(declared.data, '=') && is_optional(request, language))
            base_buf_puts(&declared, "=None");
        if (!declared.len) {
            base_buf_puts(json, ", \"parameter\": \"");
        } else {
            agent__put_member(json, "parameter", declared.data);
            if (w.callers)
                agent__put_member(json, "value", literal_of(language ? language : "", w.callers));
            else if (!is_free && !strchr(declared.data, '='))
                base_buf_puts(json, ", \"value\": \"");
            if (at && (w.callers || is_free || strchr(declared.data, '=')))
                base_buf_printf(json, ", \"at\": %zu", at);
        }
        base_buf_free(&declared);
    }
    if (is_open) end_signature(&f, json);
    agent__function_free(&f);
    agent_parameter_words_free(&w);
    return is_open;
}

/* --- another order -------------------------------------------------------------------------------------- */

static bool gets_order(const agent_function *f, const void *request)
{
    const char *names[AGENT_MAX_PARAMETERS];
    agent_order_words w;
    for (size_t i = 0; i < f->n && i < AGENT_MAX_PARAMETERS; i++) names[i] = f->parameters[i];
    return f->n <= AGENT_MAX_PARAMETERS && agent_read_order_words(request, names, f->n, &w);
}

/* "Turn the parameters round", "swap the arguments of f": none of them is named. */
static bool asks_for_reverse(const char *request)
{
    static const char *const things[] = {"parameters", "arguments", "params", "args", NULL};
    static const char *const verbs[] = {
        "swap", "exchange", "reverse", "turn", "flip", "other way round", "change the order", NULL};
    return agent__has_any_word(request, things) && agent__has_any_word(request, verbs);
}

static bool can_reverse(const agent_function *f, const void *request)
{
    const bool has_several = f->n > 2 && f->n <= AGENT_MAX_PARAMETERS;
    return f->n == 2 || (has_several && agent__has_word(request, "reverse"));
}

bool agent__open_order(const agent *a, const char *request, base_buf *json)
{
    agent_function f = {0};
    agent_order_words w = {0};
    const char *names[AGENT_MAX_PARAMETERS];
    const bool is_said = find_function(a, request, gets_order, request, &f);
    bool is_open =
        is_said || (asks_for_reverse(request) && find_function(a, request, can_reverse, request, &f));
    for (size_t i = 0; is_open && i < f.n; i++) {
        names[i] = f.parameters[i];
        w.order[i] = f.n - 1 - i;
    }
    if (is_said) agent_read_order_words(request, names, f.n, &w);
    bool is_other = false; /* than it is: else the words mean something that they do not say */
    for (size_t i = 0; is_open && i < f.n; i++) is_other |= w.order[i] != i;
    const char *language = is_open ? code_language(f.path, "", 0) : NULL;
    char *said = is_said && w.moved < f.n ? agent_read_default_words(request) : NULL;
    const char *value = literal_of(language ? language : "", said);
    is_open &= is_other || value;
    base_buf order = {0};
    if (value) base_buf_printf(&order, "%s=%s", names[w.moved], value);
    for (size_t i = 0; is_open && !value && i < f.n; i++)
        base_buf_printf(&order, "%s%zu", i ? "," : "", w.order[i] + 1);
    if (is_open) begin_signature(&f, json);
    if (is_open) agent__put_member(json, "parameter", order.data);
    if (value) base_buf_printf(json, ", \"at\": %zu", w.to + 1);
    if (is_open) end_signature(&f, json);
    base_buf_free(&order);
    free(said);
    agent__function_free(&f);
    return is_open;
}

/* --- given by name only ---------------------------------------------------------------------------------- */

/* The first of the function's parameters that the request names; n: it names none. */
static size_t find_said(const agent_function *f, const char *request)
{
    size_t i = 0;
    while (i < f->n && (!*f->parameters[i] || !agent__has_word(request, f->parameters[i]))) i++;
    return i;
}

static bool has_said(const agent_function *f, const void *request)
{
    return find_said(f, request) < f->n;
}

bool agent__open_keyword_only(const agent *a, const char *request, base_buf *json)
{
    static const char *const phrases[] = {"keyword-only", "keyword only", "kwarg-only", "only by keyword",
        "by keyword only", "only as a keyword", "as a keyword only", NULL};
    agent_function f = {0};
    size_t said = 0;
    for (const char *const *p = phrases; *p && !said; p++) said = agent__find_phrase(request, 0, *p);
    const bool is_open =
        said && find_function(a, request, has_said, request, &f) && base_ends_with(f.path, ".py");
    if (is_open) {
        base_buf parameter = {0};
        base_buf_printf(&parameter, "*, %s", f.parameters[find_said(&f, request)]);
        begin_signature(&f, json);
        agent__put_member(json, "parameter", parameter.data);
        end_signature(&f, json);
        base_buf_free(&parameter);
    }
    agent__function_free(&f);
    return is_open;
}

/* --- another name --------------------------------------------------------------------------------------- */

/* "rename the parameter sep of join to glue", "sep in join should be called glue": the words of both names. */
static bool read_renamed(const char *request, const agent_function *f, agent_word *ret, char **ret_to)
{
    static const char *const links[] = {"to", "into", "as", "called", "named", NULL};
    static const char *const things[] = {
        "parameter", "argument", "param", "arg", "parameters", "arguments", NULL};
    static const char *const verbs[] = {"rename", "renamed", "called", "named", NULL};
    agent_word w = {0}, to;
    if (!agent__has_any_word(request, verbs)) return false;
    while (agent__next_word(request, w.to, &w)) {
        char *name = agent__copy_word(request, w);
        const bool is_one = has_parameter(f, name) && strcmp(name, f->name) != 0;
        free(name);
        /* "the format parameter", or a place where its function follows */
        agent_word of;
        const bool is_placed =
            agent__next_word(request, w.to, &of) &&
            (agent__is_any_word(request, of, (const char *const[]){"of", "in", "from", NULL}));
        if (!is_one || !(is_placed || agent__has_any_word(request, things))) continue;
        for (to = w; agent__next_word(request, to.to, &to);) {
            if (!agent__is_any_word(request, to, links)) continue;
            char *next = agent__read_destination(request, to.to, false);
            if (next && !has_parameter(f, next) && strcmp(next, f->name) != 0) {
                *ret = w;
                *ret_to = next;
                return true;
            }
            free(next);
        }
    }
    return false;
}

static bool gets_name(const agent_function *f, const void *request)
{
    agent_word w;
    char *to = NULL;
    const bool is_it = read_renamed(request, f, &w, &to);
    free(to);
    return is_it;
}

bool agent__open_parameter_name(const agent *a, const char *request, base_buf *json)
{
    agent_function f = {0};
    agent_word w;
    char *to = NULL;
    const bool is_open =
        find_function(a, request, gets_name, request, &f) && read_renamed(request, &f, &w, &to);
    if (is_open) {
        base_buf name = {0};
        base_buf_printf(&name, "%s.%.*s", code_last_name(f.name), (int)(w.to - w.from), request + w.from);
        agent__begin_refactor(json, "rename", name.data);
        base_buf_free(&name);
        agent__put_member(json, "to", to);
        agent__put_member(json, "path", f.path);
        agent__put_text_words(request, json);
    }
    free(to);
    agent__function_free(&f);
    return is_open;
}

bool agent__open_instead(agent *a, agent_opening *opening)
{
    agent_asked *x = &a->asked;
    if (!x->asks_instead) return false;
    base_buf json = {0};
    x->asks_instead = false;
    agent__begin_refactor(&json, "signature", x->still_used_in);
    agent__put_member(&json, "parameter", x->still_used);
    base_buf_puts(&json, ", \"to\": \"");
    agent_opening_free(opening);
    agent_prompt_open_call(a->info.tools, json.data, &opening->call);
    base_buf_free(&json);
    return true;
}
