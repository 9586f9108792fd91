/*
 * A request that asks for an operation on a definition ("rename X to Y"): the harness begins the call, the model
 * ends it, and the grammar takes only names that the index has. A small model that is told of a tool in a line
 * of the prompt does not think of it; one that stands in the middle of its call fills it in.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/asked/asked.h"
#include "agent/call/prompt.h"
#include "agent/operation/operation.h"
#include "agent/retrieve/retrieve.h"
#include "agent/words/request_words.h"
#include "base/mem.h"
#include "code/code.h"

/* Verbs, and what may stand behind them in place of a definition: then it is no operation of ours. */
static const struct operation {
    const char *name;
    const char *const verbs[6];
    const char *to; /* what its second argument is */
    /* What has to follow, since the verb alone is too common: a name of the tree, or a name that might be a new one. */
    enum { NOTHING, A_SYMBOL, A_NAME, A_WRITTEN_NAME, A_WRITTEN_NAME_OF_WHAT_IS_TOLD } needs;
} operations[] = {
    {"rename", {"rename", NULL}, "new name", NOTHING},
    {"rename", {"call it", "name it", "call them", "name them", NULL}, "new name", A_NAME},
    /* "it should be called once" names nothing */
    {"rename", {"it should be called", "it should be named", "it must be called", NULL}, "new name",
        A_WRITTEN_NAME},
    {"rename", {"should be called", "should be named", "should have the name", "must be called", NULL},
        "new name", A_WRITTEN_NAME_OF_WHAT_IS_TOLD},
    {"move", {"move", NULL}, "file", A_SYMBOL},
    {"delete", {"delete", "remove", "drop", NULL}, "what stands in place of its calls", A_SYMBOL},
    {"private", {NULL}, "not needed", A_SYMBOL}, /* its wordings alone */
};

static const char *const other_things[] = {
    "file", "files", "folder", "directory", "branch", "tag", "repository", "repo", "column", "table", NULL};

static bool is_other_thing(const char *behind)
{
    agent_word w = {0};
    bool found = false;
    for (int n = 0; n < 2 && agent__next_word(behind, w.to, &w); n++)
        found |= agent__is_any_word(behind, w, other_things);
    return found;
}

/* A word among the next few that the tree defines, in the form of a name. */
static bool names_symbol(const agent *a, const char *behind)
{
    enum { NEAR = 6 };
    agent_word w = {0};
    bool found = false;
    for (int n = 0; n < NEAR && !found && agent__next_word(behind, w.to, &w); n++)
        found = agent__is_defined_word(a, behind, w);
    return found;
}

/*
 * "Rename X to Y", where X is a word of the code and neither a definition nor a parameter: a variable, a field, a key. A renaming
 * that is begun for it would be of another name, since one of the tree's definitions has to follow there. The caller frees X;
 * NULL: it is none of these.
 */
static char *find_undefined(const agent *a, const char *behind)
{
    static const char *const links[] = {"to", "into", "as", NULL};
    agent_listed functions[AGENT_MAX_WISHES];
    agent_word w, link;
    if (!agent__next_word(behind, 0, &w) || agent__is_defined_word(a, behind, w) ||
        !agent__next_word(behind, w.to + strspn(behind + w.to, "`\"'"), &link) ||
        !agent__is_any_word(behind, link, links))
        return NULL;
    char *name = agent__copy_word(behind, w);
    const uint32_t n = agent__list_parameter_everywhere(a, behind, functions, AGENT_MAX_WISHES);
    for (uint32_t i = 0; i < n; i++) agent__listed_free(&functions[i]);
    const bool is_it = !n && code_index_mentions(tool_workspace_index(a->workspace), name);
    if (is_it) return name;
    free(name);
    return NULL;
}

/* "X. Rename it": the word behind the verb that stands for what is in front of it; false: it is none. */
static bool read_pronoun(const char *behind, agent_word *ret)
{
    static const char *const pronouns[] = {"it", "this", "that", NULL};
    return agent__next_word(behind, 0, ret) && agent__is_any_word(behind, *ret, pronouns);
}

/* Does the sentence speak of the word itself: no parameter of it, no check in it? */
static bool is_spoken_of(const char *request, agent_word w)
{
    static const char *const owning[] = {"of", "in", "from", NULL};
    static const char *const own[] = {
        "name", "form", "spelling", "case", "prefix", NULL}; /* "the name of X" */
    static const char *const using[] = {"call", "calls", "called", "use", "uses", "needs", "function",
        "method", "class", "helper", "macro", "type", "struct", NULL};
    agent_word before = {0}, owned;
    const bool has_before = agent__word_before(request, w.from, &before);
    if (has_before && agent__is_any_word(request, before, owning))
        return agent__word_before(request, before.from, &owned) && agent__is_any_word(request, owned, own);
    const bool is_written =
        agent__looks_like_name(request, w) || (w.from && agent__is_mark(request[w.from - 1]));
    return is_written || !has_before || agent__is_any_word(request, before, using);
}

/*
 * What "it" at the verb is: the first definition that the last sentence in front speaks of ("f does what g does. Remove it"),
 * where it speaks of one. The caller frees; NULL: none does.
 */
static char *find_meant_by_it(const agent *a, const char *request, const char *behind)
{
    agent_word w = {0}, best = {0};
    bool is_new_sentence = true;
    for (size_t last = 0; agent__next_word(request, w.to, &w) && request + w.to < behind; last = w.to) {
        for (size_t i = last; i < w.from; i++)
            is_new_sentence |= strchr(".;!?\n", request[i]) && isspace((unsigned char)request[i + 1]);
        if (!is_new_sentence || !agent__is_defined_word(a, request, w) || !is_spoken_of(request, w)) continue;
        best = w;
        is_new_sentence = false;
    }
    return best.to ? agent__copy_word(request, best) : NULL;
}

/*
 * "A and B", "the functions A, B and C": the names of the tree in the list behind the verb, or the one that "it" is there;
 * returns how many.
 */
static uint32_t list_names(const agent *a, const struct operation *o, const char *request, const char *behind,
    agent_listed *ret, uint32_t most)
{
    agent_word w = {0};
    uint32_t n = 0;
    const bool is_it = o->needs == A_NAME || o->needs == A_WRITTEN_NAME || read_pronoun(behind, &w);
    char *it = most && is_it ? find_meant_by_it(a, request, behind) : NULL;
    if (it) ret[0] = (agent_listed){.operation = o->name, .name = it};
    if (it) return 1;
    w = (agent_word){0};
    while (n < most && agent__next_listed(a, behind, &w)) {
        const char *after = behind + w.to;
        ret[n++] = (agent_listed){.operation = o->name, .name = agent__copy_word(behind, w)};
        after += strspn(after, "`\"'() ");
        if (!strchr(",&", *after) && strncasecmp(after, "and ", 4) != 0) break;
    }
    return n;
}

/* Does the verb's list, or its "it", name something of the tree? */
static bool lists_names(const agent *a, const struct operation *o, const char *request, const char *behind)
{
    agent_listed first = {0};
    const bool is_so = list_names(a, o, request, behind, &first, 1) > 0;
    free(first.name);
    return is_so;
}

/* "Call it total" does, "call it in b.sh" and "call it there" do not. */
static bool gives_name(const char *behind)
{
    char *name = agent__read_destination(behind, 0, false);
    const bool is_so = name && agent__is_content_word(name, strlen(name));
    free(name);
    return is_so;
}

/* The same where it is written as names of code are. */
static bool gives_written_name(const char *behind)
{
    agent_word w;
    const size_t at = strspn(behind, " ");
    return agent__next_word(behind, 0, &w) && gives_name(behind) &&
           (agent__looks_like_name(behind, w) || agent__is_mark(behind[at]));
}

/*
 * "X to Y", "X from a.py to b.py": does the request say that it is X by what stands behind it? *ret_to: Y or the file, as
 * far as it says it; *ret_from: the file where X stands. Both may stay NULL, the caller frees them.
 */
static bool read_way(const char *behind, const char *name, bool is_move, char **ret_to, char **ret_from)
{
    static const char *const leads[] = {"to", "into", "from", "in", "out", "of", NULL};
    static const char *const to[] = {"to", "into", NULL};
    static const char *const from[] = {"from", "in", "of", NULL};
    agent_word w = {0}, next;
    const size_t n = strlen(name);
    do
        if (!agent__next_word(behind, w.to, &w)) return false;
    while (w.to - w.from != n || memcmp(behind + w.from, name, n) != 0);
    size_t at = w.to + strspn(behind + w.to, "`\"'()");
    if (!agent__next_word(behind, at, &next) || strspn(behind + at, " ") != next.from - at ||
        !agent__is_any_word(behind, next, leads))
        return false;
    for (w = next; !*ret_to && w.to > w.from; w = next) {
        if (agent__is_any_word(behind, w, to)) *ret_to = agent__read_destination(behind, w.to, is_move);
        if (!*ret_from && agent__is_any_word(behind, w, from))
            *ret_from = agent__read_destination(behind, w.to, true);
        if (!behind[w.to]) break;
        if (strchr(".;!?", behind[w.to]) && !agent__is_in_word(behind, w.to + 1)) break;
        if (!agent__next_word(behind, w.to, &next)) break;
    }
    return true;
}

/* Behind the verb where it orders something: "Cache.Remove", "`remove`" and "remove()" are names. 0: nowhere. */
static size_t find_verb(const char *request, const char *verb)
{
    size_t to = 0;
    while ((to = agent__find_phrase(request, to, verb)) != 0) {
        const size_t from = to - strlen(verb);
        const bool is_name =
            request[to] == '(' ||
            (from > 0 && (strchr(".:#", request[from - 1]) || agent__is_mark(request[from - 1])));
        if (!is_name) return to;
    }
    return 0;
}

/* "The helper in humanize.py that looks a value up should be called ...": a sentence about a definition that it does not name. */
static bool is_told(const agent *a, const char *request, const char *behind)
{
    static const char *const kinds[] = {"function", "method", "helper", "class", "struct", "type", "macro",
        "constant", "variable", "enum", "trait", "interface", "field", NULL};
    static const char *const telling[] = {"that", "which", "with", "for", NULL};
    agent_word w = {0}, first = {0};
    size_t begin = 0;
    bool is_telling = false;
    for (const char *p = request; p < behind; p++)
        if (strchr(".;!?\n", *p) && isspace((unsigned char)p[1])) begin = (size_t)(p - request) + 1;
    for (int n = 0; agent__next_word(request, n ? w.to : begin, &w) && request + w.to < behind; n++) {
        if (n < 3 && !first.to && agent__is_any_word(request, w, kinds)) first = w;
        is_telling |= first.to && agent__is_any_word(request, w, telling);
        if (agent__is_defined_word(a, request, w) && agent__looks_like_name(request, w)) return false;
    }
    return is_telling;
}

/* The operation that the request asks for, and what stands behind its verb; NULL: none. A test alone is none. */
static const struct operation *asked_operation(const agent *a, const char *request, const char **ret_behind)
{
    if (a->settings.mode == AGENT_MODE_PLAN || a->fix.wanted || !a->asked.change || a->asked.test_alone ||
        a->read_as || agent__deletes_files(a, request))
        return NULL;
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        for (const char *const *verb = operations[i].verbs; *verb; verb++) {
            const size_t to = find_verb(request, *verb);
            const char *behind = request + to;
            if (!to || is_other_thing(behind)) continue;
            *ret_behind = behind;
            if (operations[i].needs == A_SYMBOL && !names_symbol(a, behind)) continue;
            if (operations[i].needs == A_NAME && !gives_name(behind)) continue;
            if (operations[i].needs >= A_WRITTEN_NAME && !gives_written_name(behind)) continue;
            if (operations[i].needs == A_WRITTEN_NAME_OF_WHAT_IS_TOLD && !is_told(a, request, behind))
                continue;
            return &operations[i];
        }
    return NULL;
}

char *agent__renames_undefined(const agent *a, const char *request)
{
    const char *behind = NULL;
    const struct operation *o = asked_operation(a, request, &behind);
    return o && !strcmp(o->name, "rename") && o->needs == NOTHING ? find_undefined(a, behind) : NULL;
}

static const struct operation *find_operation(const char *name)
{
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        if (!strcmp(operations[i].name, name)) return &operations[i];
    return NULL;
}

/* Where no grammar holds the rest, the tool refuses what names nothing. */
static bool can_open(const agent *a)
{
    const unsigned can = a->engine->can;
    return (can & ENGINE_BEGINS) || ((can & ENGINE_GRAMMAR) && a->engine->ops->answer_opened);
}

/* A second verb, a question, tests or documents: something is asked for besides. */
static bool asks_for_more(const char *request, const char *operation)
{
    static const char *const verbs[] = {"add", "adapt", "change", "convert", "correct", "create", "delete",
        "drop", "edit", "extend", "fix", "implement", "improve", "insert", "make", "modify", "move",
        "refactor", "remove", "rename", "repair", "replace", "rewrite", "simplify", "split", "update",
        "write", NULL};
    static const char *const texts[] = {"doc", "docs", "documentation", "comment", "comments", NULL};
    static const char *const tests[] = {"test", "tests", NULL};
    static const char *const deleting[] = {"delete", "drop", "remove", NULL};
    static const char *const others[] = {
        "why", "who", "what", "which", "how", "explain", "describe", "list", "show", "say", "tell", NULL};
    const bool is_delete = !strcmp(operation, "delete"),
               has_text = !strcmp(operation, "rename") && agent__asks_for_text(request);
    uint32_t n_verbs = is_delete && agent__has_any_word(request, deleting);
    for (const char *const *verb = verbs; *verb; verb++)
        n_verbs += agent__has_word(request, *verb) &&
                   !(is_delete && agent__is_any_word(*verb, (agent_word){0, strlen(*verb)}, deleting));
    const bool is_polite =
        agent__first_word(request) > request + strspn(request, " \t\n"); /* "Could you ...?" */
    return n_verbs > 1 || (strchr(request, '?') && !is_polite) || agent__has_any_word(request, others) ||
           (agent__has_any_word(request, tests) && !is_delete) ||
           (agent__has_any_word(request, texts) && !has_text);
}

/* Does it order a deletion of several definitions by what they have in common? */
static bool names_group(const agent *a, const char *request)
{
    agent_listed all[AGENT_MAX_WISHES];
    const uint32_t n = agent__list_group(a, request, all, AGENT_MAX_WISHES);
    for (uint32_t i = 0; i < n; i++) agent__listed_free(&all[i]);
    return n > 0;
}

bool agent__is_operation_alone(const agent *a, const char *request)
{
    const char *behind;
    if (!can_open(a) || !a->asked.change || a->asked.test || a->asked.tests_too) return false;
    const struct operation *o = asked_operation(a, request, &behind);
    agent_operation_words w = {0};
    if (!o && agent__read_wording(a, request, &w)) o = find_operation(w.operation);
    agent_operation_words_free(&w);
    char *undefined = o ? agent__renames_undefined(a, request) : NULL;
    const bool is_undefined = undefined != NULL;
    free(undefined);
    base_buf whole = {0};
    const bool is_whole = agent__open_whole(a, request, &whole);
    base_buf_free(&whole);
    return is_whole || (o && !is_undefined && !asks_for_more(request, o->name)) ||
           (!o && names_group(a, request) && !asks_for_more(request, "delete"));
}

static bool has_two_clauses(const agent *a, const char *request)
{
    agent_listed all[AGENT_MAX_WISHES];
    const uint32_t n = agent__read_clauses(a, request, all, AGENT_MAX_WISHES);
    for (uint32_t i = 0; i < n; i++) agent__listed_free(&all[i]);
    return n > 0;
}

/*
 * Does what stands behind a deletion's object end its clause, or say why: "..., since nothing calls it", but not "f's check",
 * "f when g is there", "f, g and h"?
 */
static bool ends_object(const agent *a, const char *behind)
{
    static const char *const goes_on[] = {"since", "because", "as", "please", "now", "entirely", "completely",
        "altogether", "everywhere", "again", "too", "out", "away", NULL};
    static const char *const bounds[] = {
        "if", "when", "whenever", "unless", "once", "but", "and", "or", "except", NULL};
    agent_word w;
    behind += strspn(behind, "`\"'()");
    const size_t blank = strspn(behind, " ");
    if (!behind[blank]) return true;
    if (strchr(".!?;:\n-", behind[blank])) return !agent__is_in_word(behind, blank + 1);
    if (!agent__next_word(behind, 0, &w)) return true;
    if (*behind == ',')
        return !agent__is_any_word(behind, w, bounds) && !agent__is_defined_word(a, behind, w);
    return blank && w.from == blank && agent__is_any_word(behind, w, goes_on);
}

/* "Get rid of f, since ...", "take f out": an order that begins with the verb and its object, whatever reason follows. */
static bool orders_deletion(const agent *a, const char *request)
{
    static const struct {
        const char *verb, *behind;
    } verbs[] = {{"get rid of", ""}, {"kill", ""}, {"ditch", ""}, {"scrap", ""}, {"take out", ""},
        {"throw out", ""}, {"throw away", ""}, {"take", " out"}, {"throw", " out"}, {"throw", " away"}};
    static const char *const more[] = {"add", "create", "write", "implement", "replace", "split", "extract",
        "inline", "move", "keep", "rename", NULL};
    const char *from = agent__first_word(request);
    agent_operation_words words = {0};
    bool is = false;
    if (agent__has_any_word(request, more) || !agent__read_wording(a, request, &words)) return false;
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs && !is && !strcmp(words.operation, "delete"); i++) {
        const size_t n = strlen(verbs[i].verb), n_behind = strlen(verbs[i].behind);
        agent_word w = {0, n};
        if (agent__find_phrase(from, 0, verbs[i].verb) != n || !agent__next_listed(a, from, &w)) continue;
        const char *behind = from + w.to + strspn(from + w.to, "`\"'()");
        char *said = agent__copy_word(from, w);
        is = !strcmp(code_last_name(said), code_last_name(words.name)) &&
             !strncasecmp(behind, verbs[i].behind, n_behind) && ends_object(a, behind + n_behind);
        free(said);
    }
    agent_operation_words_free(&words);
    return is;
}

bool agent__is_sure_operation(const agent *a, const char *request)
{
    const char *behind = NULL;
    base_buf json = {0};
    const struct operation *o = asked_operation(a, request, &behind);
    const bool has_symbol = o && names_symbol(a, behind);
    const bool is_sure = (has_symbol && lists_names(a, o, request, behind)) ||
                         agent__open_parameter(a, request, &json) ||
                         agent__open_parameter_name(a, request, &json) ||
                         (!has_symbol && agent__open_order(a, request, &json));
    base_buf_free(&json);
    return is_sure || orders_deletion(a, request) || names_group(a, request) || has_two_clauses(a, request);
}

static bool is_operation_done(const agent *a)
{
    const agent_asked *x = &a->asked;
    base_buf missing = {0};
    const bool is_done = x->n_operations && x->n_operations >= x->n_listed && x->done.len &&
                         !x->refusal.why && !a->fix.failing && !agent__is_missing(a, &missing);
    base_buf_free(&missing);
    return is_done;
}

bool agent__put_operation_answer(const agent *a, base_buf *out)
{
    const agent_asked *x = &a->asked;
    const bool is_refused = x->refusal.why && x->refusal.is_final;
    if (agent__has_operation_left(a)) return false;
    if (!x->is_operation || (!is_refused && !is_operation_done(a))) return false;
    base_buf_add(out, x->done.data ? x->done.data : "", x->done.len);
    if (is_refused) agent__put_refusal(&x->refusal, out);
    return true;
}

void agent__tell_operation(const agent *a, const char *request, base_buf *out)
{
    const char *behind;
    const struct operation *o = can_open(a) ? NULL : asked_operation(a, request, &behind);
    agent_operation_words w = {0};
    if (!o && !can_open(a) && a->asked.change && agent__read_wording(a, request, &w))
        o = find_operation(w.operation);
    agent_operation_words_free(&w);
    if (o)
        base_buf_printf(out,
            "A tool for this request, for all files at once: refactor {\"operation\": \"%s\", \"name\": "
            "definition, \"to\": %s}\n",
            o->name, o->to);
}

/* --- the call ------------------------------------------------------------------------------------------- */

/*
 * "Use .value where it was called", "use node->value ...": text of the only parameter, or of one that it names; empty: neither.
 */
static void put_member_of_parameter(const agent_function *old, const agent_instead_words *w, base_buf *to)
{
    const char *text = w->call ? w->call : w->name;
    const size_t n = strcspn(text, ".-");
    if (!n && old->n == 1) base_buf_printf(to, "%s%s", old->parameters[0], text);
    for (size_t i = 0; i < old->n && n && text[n] && !to->len; i++)
        if (strlen(old->parameters[i]) == n && !memcmp(old->parameters[i], text, n)) base_buf_puts(to, text);
}

/* "Delete OLD_MAX and use MAX instead": both are values of the same kind that nothing calls. */
static bool is_value_instead(const agent *a, const char *gone, const agent_instead_words *w)
{
    static const char *const kinds[] = {"constant", "variable", "macro", NULL};
    code_index *index = tool_workspace_index(a->workspace);
    code_place *old = NULL, *next = NULL;
    code_caller *callers = NULL;
    const uint32_t n_old = code_index_define(index, gone, &old),
                   n_next = code_index_define(index, w->name, &next);
    const uint32_t n_callers = code_index_callers(index, gone, 1, &callers);
    const bool is_it = !w->call && !w->with && n_old && n_next && !n_callers &&
                       !strcmp(old[0].what, next[0].what) &&
                       agent__is_any_word(old[0].what, (agent_word){0, strlen(old[0].what)}, kinds);
    code_callers_free(callers, n_callers ? 1 : 0);
    code_places_free(old, n_old);
    code_places_free(next, n_next);
    return is_it;
}

/* "Remove oom and let its caller use oomm with -1": the text in place of a call, as far as the request says it. */
static void put_instead(const agent *a, const char *request, const char *gone, base_buf *json)
{
    agent_instead_words w;
    agent_function old = {0}, next = {0};
    const bool is_said = agent_read_instead_words(request, &w) && strcmp(w.name, gone) != 0;
    const bool is_value = is_said && is_value_instead(a, gone, &w);
    const bool has_old = is_said && !is_value && agent__look_up_function(a, gone, &old);
    base_buf to = {0};
    if (is_value) base_buf_puts(&to, w.name);
    if (has_old) put_member_of_parameter(&old, &w, &to);
    const bool is_whole = to.len || (is_said && strchr(".-", *w.name));
    const bool is_known = has_old && !is_whole && agent__look_up_function(a, code_last_name(w.name), &next);
    const size_t n_given = old.n + (w.with != NULL);
    if (is_said && !is_whole && w.call)
        base_buf_puts(&to, w.call);
    else if (is_known && (next.n == 0 || next.n == n_given)) {
        base_buf_printf(&to, "%s(", w.name);
        for (size_t i = 0; i < old.n && next.n; i++)
            base_buf_printf(&to, "%s%s", i ? ", " : "", old.parameters[i]);
        if (w.with) base_buf_printf(&to, "%s%s", old.n ? ", " : "", w.with);
        base_buf_putc(&to, ')');
    }
    if (to.len)
        agent__put_member(json, "to", to.data);
    else if (is_known) /* with which arguments the model says */
        base_buf_printf(json, ", \"to\": \"%s(", w.name);
    base_buf_free(&to);
    agent__function_free(&old);
    agent__function_free(&next);
    agent_instead_words_free(&w);
}

/* What the request says of comments or of the old place. */
static void put_besides(const char *operation, const char *request, base_buf *json)
{
    if (!strcmp(operation, "rename")) agent__put_text_words(request, json);
    if (!strcmp(operation, "move")) agent__put_keep_words(request, json);
}

/* The call of a renaming or a move of one definition, as far as the request says it; false: not even which. */
static bool put_way(const agent *a, const struct operation *o, const char *name, const char *behind,
    const char *request, base_buf *json)
{
    char *to = NULL, *from = NULL;
    agent_word it;
    char *said =
        read_pronoun(behind, &it) ? agent__copy_word(behind, it) : base_xstrdup(code_last_name(name));
    bool is_known = o->needs >= A_NAME; /* "call it Y" */
    if (is_known)
        to = agent__read_destination(behind, 0, false);
    else
        is_known = read_way(behind, said, !strcmp(o->name, "move"), &to, &from);
    free(said);
    char *path = from ? code_index_path(tool_workspace_index(a->workspace), from) : NULL;
    if (is_known) agent__begin_refactor(json, o->name, name);
    if (is_known && to)
        agent__put_member(json, "to", to);
    else if (is_known)
        base_buf_puts(json, ", \"to\": \"");
    if (is_known && to && path) agent__put_member(json, "path", path);
    if (is_known && to) put_besides(o->name, request, json);
    free(to);
    free(from);
    free(path);
    return is_known;
}

/* "X is a bad name; make it Y": all of the call is in the request. */
static bool open_wording(const agent *a, const char *request, base_buf *json)
{
    agent_operation_words w;
    const bool is_open = agent__read_wording(a, request, &w);
    if (is_open) agent__begin_refactor(json, w.operation, w.name);
    if (is_open && w.to) agent__put_member(json, "to", w.to);
    if (is_open && w.to) put_besides(w.operation, request, json);
    if (is_open && !strcmp(w.operation, "delete")) put_instead(a, request, w.name, json);
    agent_operation_words_free(&w);
    return is_open;
}

/* Of several operations the next one, as far as the request says it. */
static void put_next_listed(agent *a, const char *request, base_buf *json)
{
    agent_asked *x = &a->asked;
    if (x->n_begun >= x->n_listed) return;
    const agent_listed *l = &x->listed[x->n_begun++];
    agent__begin_refactor(json, l->operation, l->name);
    if (l->to)
        agent__put_member(json, "to", l->to);
    else if (strcmp(l->operation, "delete") != 0)
        base_buf_puts(json, ", \"to\": \"");
    if ((l->to || !strcmp(l->operation, "delete")) && l->path) agent__put_member(json, "path", l->path);
    if (l->to) put_besides(l->operation, request, json);
}

/* "Rename Get to Find everywhere", where the function Get only calls the method Get: both. */
static void rename_delegate_too(agent *a, const char *request, const char *behind)
{
    agent_asked *x = &a->asked;
    agent_listed both[2];
    char *to = NULL, *from = NULL;
    const bool is_said = agent__asks_for_everywhere(request) &&
                         read_way(behind, code_last_name(x->listed[0].name), false, &to, &from) && to;
    if (is_said && agent__list_with_delegate(a, x->listed[0].name, to, both, 2)) {
        agent__listed_free(&x->listed[0]);
        for (x->n_listed = 0; x->n_listed < 2; x->n_listed++) x->listed[x->n_listed] = both[x->n_listed];
    }
    free(to);
    free(from);
}

bool agent__has_operation_left(const agent *a)
{
    return a->asked.n_listed > 1 && a->asked.n_begun < a->asked.n_listed;
}

bool agent__open_operation(agent *a, const char *request, agent_opening *opening)
{
    const char *behind = NULL;
    base_buf json = {0};
    if (!can_open(a) || !a->asked.change || a->asked.refused || a->read_as) return false;
    const uint32_t done = a->asked.n_operations;
    const struct operation *o = asked_operation(a, request, &behind);
    bool is_parameter = false;
    const bool may = !done && !a->fix.wanted && a->settings.mode != AGENT_MODE_PLAN;
    const bool is_whole = may && agent__open_whole(a, request, &json);
    const bool is_signature =
        is_whole ||
        (may && (agent__open_parameter(a, request, &json) || agent__open_parameter_name(a, request, &json) ||
                    ((!o || !names_symbol(a, behind)) && agent__open_order(a, request, &json))));
    const bool has_list = o && names_symbol(a, behind) && lists_names(a, o, request, behind);
    if (may && !is_signature && !a->asked.n_listed)
        a->asked.n_listed = agent__read_clauses(a, request, a->asked.listed, AGENT_MAX_WISHES);
    const bool is_wording = may && !is_signature && !a->asked.n_listed && !has_list &&
                            !names_group(a, request) && open_wording(a, request, &json);
    agent_asked *x = &a->asked; /* what is deleted stands in the list still */
    if (may && !is_signature && !has_list && !x->n_listed)
        x->n_listed = agent__list_group(a, request, x->listed, AGENT_MAX_WISHES);
    const bool is_group = x->n_listed && !has_list && (!o || x->listed[0].path);
    if (is_group) {
        put_next_listed(a, request, &json);
    } else if (!is_signature && !is_wording && o) {
        if (!done && !x->n_listed) x->n_listed = agent__read_several(a, request, x->listed, AGENT_MAX_WISHES);
        if (!done && !x->n_listed) {
            x->n_listed = list_names(a, o, request, behind, x->listed, AGENT_MAX_WISHES);
            if (x->n_listed == 1) x->listed[0].name = agent__with_its_type(a, request, x->listed[0].name);
        }
        const bool is_rename = !strcmp(o->name, "rename");
        if (!done && !x->n_listed && is_rename) {
            x->n_listed = agent__list_parameter_everywhere(a, behind, x->listed, AGENT_MAX_WISHES);
            is_parameter = x->n_listed > 0;
        }
        char *undefined = !done && !x->n_listed && is_rename ? find_undefined(a, behind) : NULL;
        const bool is_undefined = undefined != NULL;
        free(undefined);
        if (!done && x->n_listed == 1 && is_rename) rename_delegate_too(a, request, behind);
        const uint32_t n = x->n_listed;
        const bool is_delete = !strcmp(o->name, "delete");
        const bool is_one = !done && n == 1;
        const bool go_together = !done && n > 1 && agent__open_moved_together(a, request, &json);
        if (!go_together && (n > 1 || is_parameter)) {
            put_next_listed(a, request, &json);
        } else if (is_one && is_delete) {
            agent__begin_refactor(&json, o->name, x->listed[0].name);
            put_instead(a, request, x->listed[0].name, &json);
        } else if (is_one) {
            put_way(a, o, x->listed[0].name, behind, request, &json);
        }
        if (!done && !json.len && !is_undefined) /* the model writes the name */
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
