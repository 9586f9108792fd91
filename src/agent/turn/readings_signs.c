/* What speaks for and against a reading (contract: readings_parts.h). */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/asked/asked.h"
#include "agent/turn/readings_parts.h"
#include "agent/words/request_words.h"
#include "base/mem.h"
#include "code/code.h"

/* --- what the words speak of ------------------------------------------------------------------------------ */

static const char *const *const topics[READ_N_TOPICS] = {
    [READ_GOING] = (const char *const[]){"delete", "deleted", "deleting", "remove", "removed", "removing",
        "removal", "drop", "dropped", "gone", "go", "goes", "rid", "need", "needs", "needed", "require",
        "required", "superfluous", "obsolete", "miss", "misses", "unused", "uses", "used", "dead", "exist",
        "disappear", "lose", "away", "out", "useless", "without", "left", "kill", "purge", "redundant",
        "deprecated", "calls", "longer", "more", "stop", "strip", "never", "nobody", "throw", "scrap",
        "vanish", "leave", "leaves", "eliminate", "retire", "unnecessary", "pointless", "always", "trash",
        "ditch", "axe", "nuke", "cut", "erase", "erased", "erasing", "dispose", "discard", "discarded", "bin",
        "dump", "dumped", "toss", "tossed", "chuck", "jettison", "wipe", "wiped", "zap", "prune", "pruned",
        "clean", "cleanup", "expunge", "excise", "evict", "eject", "oust", "withdraw", "withdrawn", "abolish",
        "abandon", "abandoned", "cease", "perish", "die", "depart", "banish", "sunset", "survive", "survives",
        "spare", "spared", "unneeded", "unwanted", "unreachable", "leftover", "leftovers", "relic", "cruft",
        "clutter", "bloat", "retired", "retires", "outlived", "farewell", "goodbye", "bye", "worthless",
        "anymore", "bury", "burn", "shed", "extraneous", "excess", "surplus", "needless", "needn",
        "duplicate", "duplicates", "rm", "del", "omit", "omitted", "lost", "loses", "losing", "dropping",
        "killing", "eliminating", "deprecate", "phase", "phased", "stale", "vestigial", "moot", "dispense",
        "nothing", NULL},
    [READ_NAMING] = (const char *const[]){"name", "names", "named", "naming", "rename", "renamed", "renaming",
        "call", "called", "misnamed", "misnomer", "typo", "misspelled", "misspelt", "spelling", "spelled",
        "prefix", "suffix", "become", "becomes", "instead", "rather", "better", "say", "says", "read",
        "reads", "clearer", "consistency", "consistent", "correct", "deserves", "confusing", "generic",
        "make", "title", "titled", "term", "termed", "label", "dub", "dubbed", "christen", "rechristen",
        "known", "spell", "spelt", "abbreviation", "abbreviated", "abbreviate", "cryptic", "misleading",
        "ambiguous", "vague", "unclear", "obscure", "descriptive", "meaningful", "readable", "telling",
        "convention", "prefer", "prefers", "preferred", "favour", "favor", "identifier", "misspelling",
        "typos", "nicer", "suits", "shorten", "lengthen", "means", "style", "lie", "lies", NULL},
    [READ_CARRYING] = (const char *const[]){"move", "moved", "moving", "live", "lives", "belong", "belongs",
        "relocate", "put", "place", "into", "home", "better", "over", "business", "out", "with", "own",
        "extract", "bring", "pull", "split", "shift", "transfer", "go", "goes", "wants", "new", "relocated",
        "relocating", "migrate", "migrated", "migrating", "transferred", "shifted", "shove", "stick", "stuff",
        "drag", "carry", "carried", "hoist", "lift", "lifted", "rehome", "reside", "resides", "sit", "sits",
        "dwell", "house", "housed", "stay", "stays", "separate", "module", "factor", "isolate", "isolated",
        "misplaced", "elsewhere", "part", "next", "beside", "alongside", "outgrown", "join", NULL},
    [READ_TAKING] = (const char *const[]){"take", "takes", "accept", "accepts", "parameter", "argument",
        "param", "arg", "get", "gets", "want", "wants", "need", "needs", "pass", "passes", "default",
        "defaults", "optional", "missing", "extend", "given", "give", "told", "hand", "handed", "know",
        "callers", "caller", "calls", "use", "option", "flag", "switch", "knob", "extra", "additional",
        "another", "allow", "allows", "configurable", "extended", "receive", "receives", "supply", "supplied",
        "provide", "provided", "introduce", "add", "adds", "adding", "tell", "learn", "support", NULL},
    [READ_ORDER] = (const char *const[]){"before", "after", "behind", "first", "last", "front", "order",
        "swap", "swapped", "reorder", "second", "leading", "begin", "beginning", "end", "precede", "follow",
        "latter", "former", "than", "above", "below", "ahead", "round", "reverse", "exchange", "flip",
        "other", "reordering", "reversed", "swapping", "switch", "switched", "interchange", "interchanged",
        "transpose", "transposed", "permute", "sequence", "rearrange", "rearranged", "shuffle", "precedes",
        "preceding", "followed", "following", "lead", "leads", "earlier", "prior", "middle", "next",
        "position", "positions", NULL},
    [READ_PARAMETER] = (const char *const[]){"parameter", "parameters", "argument", "arguments", "param",
        "params", "arg", "args", "signature", NULL},
    [READ_MAKING] = (const char *const[]){"add", "write", "create", "implement", "lack", "lacks", "introduce",
        "new", "missing", "define", "adding", "provide", "supply", "offer", "build", NULL},
    [READ_PART] = (const char *const[]){"check", "checks", "line", "lines", "comment", "comments", "entry",
        "newline", "case", "cases", "branch", "message", "error", "value", "values", "result", "header",
        "heading", "import", "imports", "docstring", "key", "warning", "whitespace", "text", "output",
        "option", "flag", "limit", NULL},
    [READ_BEHAVIOUR] =
        (const char *const[]){"return", "returns", "raise", "raises", "throw", "throws", "write", "writes",
            "print", "prints", "skip", "skips", "ignore", "ignores", "refuse", "refuses", "export", "exports",
            "handle", "handles", "support", "supports", "allow", "allows", "report", "reports", NULL},
    [READ_TEST] = (const char *const[]){"test", "tests", "tested", "cover", "covers", "covered", "coverage",
        "untested", NULL},
    [READ_TO_DELETE] = (const char *const[]){"delete", "deleted", "remove", "removed", "drop", "dropped",
        "kill", "rid", "scrap", "eliminate", "purge", "dead", "unused", "obsolete", "erase", "erased",
        "discard", "dispose", "bin", "scrapped", "ditch", "axe", "nuke", "trash", "dump", "rm", "retire",
        "dispense", "wipe", "zap", "prune", "expunge", "excise", "jettison", "toss", "removing", "deleting",
        "dropping", NULL},
    [READ_TO_RENAME] =
        (const char *const[]){"rename", "renamed", "renaming", "name", "named", "called", "call", NULL},
    [READ_TO_MOVE] = (const char *const[]){"move", "moved", "moving", "relocate", "belongs", "belong", "live",
        "lives", "relocated", "relocating", "migrate", "migrated", "transfer", "reside", NULL},
};

/*
 * As far as the request says what is to be done: "delete f when g is there" has a condition, "delete what is called when g is there"
 * describes f.
 */
static bool has_before_description(const char *s, const char *const *words)
{
    static const char *const describing[] = {"that", "which", "who", "what", "whose", NULL};
    for (agent_word w = {0}; agent__next_word(s, w.to, &w);) {
        if (w.from && agent__is_any_word(s, w, describing)) return false;
        if (agent__is_any_word(s, w, words)) return true;
    }
    return false;
}

/* "Could f get a method that ...", "we need another helper". */
static bool wants_one_more(const char *s)
{
    static const char *const articles[] = {"a", "an", "another", "new", NULL};
    static const char *const kinds[] = {"function", "method", "helper", "class", "struct", "type",
        "constructor", "getter", "setter", "option", "flag", NULL};
    agent_word before;
    for (agent_word w = {0}; agent__next_word(s, w.to, &w);)
        if (agent__is_any_word(s, w, kinds) && agent__word_before(s, w.from, &before) &&
            agent__is_any_word(s, before, articles))
            return true;
    return false;
}

/* "f should skip blanks": what stands behind a definition's name says what it has to do, and nothing that is done to it. */
static bool acts(const char *s, const read_names *n)
{
    static const char *const musts[] = {"should", "must", "shall", "ought", "has", "have", "needs", "could",
        "can", "does", "doesn", "shouldn", "may", "will", NULL};
    static const char *const fillers[] = {"to", "also", "not", "t", "never", "always", "only", "rather",
        "still", "just", "no", "longer", "therefore", NULL};
    static const char *const passive[] = {"be", "been", "take", "accept", "get", "have", "go", "become",
        "live", "stand", "disappear", "lose", "ask", "need", "want", "come", "move", "belong", "read", "do",
        "expect", "receive", "die", "leave", "a", "an", "the", "another", "its", "any", "some", "one", "two",
        "better", "say", "know", NULL};
    for (agent_word w = {0}; agent__next_word(s, w.to, &w);) {
        agent_word next;
        bool is_known = false;
        char *text = agent__copy_word(s, w);
        for (size_t i = 0; i < n->n_known && !is_known; i++)
            is_known = n->known[i].rank < 0 && !strcmp(code_last_name(n->known[i].text), text);
        free(text);
        if (!is_known || !agent__next_word(s, w.to, &next) || !agent__is_any_word(s, next, musts)) continue;
        while (agent__next_word(s, next.to, &next) && agent__is_any_word(s, next, fillers))
            ;
        return !agent__is_any_word(s, next, passive) && !agent__is_any_word(s, next, fillers);
    }
    return false;
}

/* "The method of Matches that gives the index": the member is meant, not Matches. */
static bool describes_member(const char *s)
{
    static const char *const members[] = {"method", "methods", "property", "field", "member", "attribute",
        "function", "constant", "setter", "getter", "constructor", NULL};
    static const char *const owning[] = {"of", "in", "on", NULL}, *const telling[] = {"that", "which",
                                                                      "whose", "with", "for", NULL};
    agent_word owns, tells;
    for (agent_word w = {0}; agent__next_word(s, w.to, &w);) {
        if (!agent__is_any_word(s, w, members) || !agent__next_word(s, w.to, &owns) ||
            !agent__is_any_word(s, owns, owning))
            continue;
        tells = owns;
        for (int i = 0; i < 3 && agent__next_word(s, tells.to, &tells); i++)
            if (agent__is_any_word(s, tells, telling)) return true;
    }
    return false;
}

/* "should parse numbers", not " " and ", ", which are values. */
static bool has_two_words(const char *s, agent_word w)
{
    agent_word first, second;
    return agent__next_word(s, w.from, &first) && agent__next_word(s, first.to, &second) &&
           second.to <= w.to && memchr(s + first.to, ' ', second.from - first.to);
}

/* "Rename the test 'should parse numbers'": a text with blanks in it is no name. */
static bool quotes_text(const char *s)
{
    agent_word held;
    for (size_t at = 0; s[at]; at++)
        if (agent__is_mark(s[at]) && (!at || s[at - 1] == ' ') && agent__read_marked(s, at, &held) &&
            has_two_words(s, held))
            return true;
    return false;
}

/* Does a sentence begin with one of the words, politely or not? *ret_from: where. */
static bool begins_sentence(const char *s, const char *const *words, size_t *ret_from)
{
    static const char *const fillers[] = {
        "please", "then", "also", "and", "so", "just", "now", "better", "rather", "let's", "i'd", NULL};
    bool is_begin = true;
    size_t last = 0;
    for (agent_word w = {0}; agent__next_word(s, w.to, &w); last = w.to) {
        for (size_t i = last; i < w.from; i++)
            is_begin |= strchr("!?\n;", s[i]) || (s[i] == '.' && strchr(" \n", s[i + 1]));
        if (is_begin && agent__is_any_word(s, w, words)) {
            *ret_from = w.from;
            return true;
        }
        is_begin &= agent__is_any_word(s, w, fillers);
    }
    return false;
}

/* "Add one to test1.c": where it goes is no place to move anything to. */
static bool adds(const char *s)
{
    static const char *const add[] = {"add", "write", "create", "append", NULL};
    static const char *const carrying[] = {"put", "pull", "bring", "shift", "extract", "take", "carry",
        "split", "factor", "hoist", "drag", NULL};
    size_t at;
    return begins_sentence(s, add, &at) && !agent__has_any_word(s, topics[READ_TO_MOVE]) &&
           !agent__has_any_word(s, carrying);
}

/* A name was complained about, and "it" gets another one. */
static bool names_it(const char *s)
{
    static const char *const call[] = {"call", "name", "make", NULL}, *const it[] = {"it", NULL},
                             *const names[] = {"name", "named", "called", NULL};
    static const char *const poor[] = {"vague", "poor", "bad", "misleading", "cryptic", "unclear",
        "confusing", "wrong", "ugly", "odd", "strange", "generic", "nothing", "long", "short", "general",
        "meaningless", "terrible", "awful", "unfortunate", "clumsy", "silly", "ambiguous", "opaque", "weak",
        NULL};
    agent_word next;
    size_t at = 0;
    if (!begins_sentence(s, call, &at) || !agent__next_word(s, at, &next) ||
        !agent__next_word(s, next.to, &next) || !agent__is_any_word(s, next, it))
        return false;
    char *before = base_xstrndup(s, at);
    const bool is = agent__has_any_word(before, names) && agent__has_any_word(before, poor);
    free(before);
    return is;
}

/* Up to five words that only link stand between byte `at` and one of `words`, in front of it or behind it. */
static bool is_linked_to(const char *s, size_t at, bool in_front, const char *const *words)
{
    enum { MOST = 5 };
    static const char *const linking[] = {"would", "could", "might", "will", "ll", "is", "be", "sounds",
        "reads", "seems", "feels", "looks", "much", "far", "way", "lot", "bit", "a", "the", "more", "also",
        "name", "one", "certainly", "probably", NULL};
    agent_word w = {at, at};
    for (int i = 0; i <= MOST; i++) {
        if (in_front ? !agent__word_before(s, w.from, &w) : !agent__next_word(s, w.to, &w)) return false;
        if (!in_front && strcspn(s + at, ",.;!?\n") < w.from - at) return false;
        if (agent__is_any_word(s, w, words)) return true;
        if (!agent__is_any_word(s, w, linking)) return false;
    }
    return false;
}

/* "f is named as if it counted. Total would be clearer", "a better name is total": what is praised is the new name of what is there. */
static bool praises_name(const char *s, const read_names *n)
{
    static const char *const naming[] = {"name", "named", "names", "naming", "called", "call", "misnamed",
        "misnomer", "sounds", "suggests", "says", "reads", NULL};
    static const char *const good[] = {"clearer", "better", "nicer", "plainer", "simpler", "shorter",
        "honest", "telling", "readable", "descriptive", "precise", "accurate", "fitting", "right", "correct",
        "proper", NULL};
    static const char *const saying[] = {
        "says", "say", "tells", "tell", "fits", "fit", "suits", "suit", NULL};
    if (!agent__has_any_word(s, naming) || wants_one_more(s)) return false;
    for (agent_word w = {0}; agent__next_word(s, w.to, &w);)
        for (size_t i = 0; i < n->n_fresh; i++) {
            const char *const fresh[] = {n->fresh[i].text, NULL};
            if (agent__is_any_word(s, w, fresh) &&
                (is_linked_to(s, w.to, false, good) || is_linked_to(s, w.to, false, saying) ||
                    is_linked_to(s, w.from, true, good)))
                return true;
        }
    return false;
}

/* "What counts rows should be countRows". */
static bool is_to_be(const char *s, const read_names *n)
{
    static const char *const be[] = {"be", "become", NULL};
    agent_word before;
    for (agent_word w = {0}; agent__next_word(s, w.to, &w);)
        for (size_t i = 0; i < n->n_fresh; i++) {
            const char *const fresh[] = {n->fresh[i].text, NULL};
            if (n->fresh[i].is_coded && agent__is_any_word(s, w, fresh) &&
                agent__word_before(s, w.from, &before) && before.to + 3 > w.from &&
                agent__is_any_word(s, before, be))
                return true;
        }
    return false;
}

/* What is to go is text, all of a kind or the rest of something. */
static bool takes_text(const char *s)
{
    static const char *const all[] = {"everything", "anything", "whatever", "lines", "remains", "remnants",
        "leftovers", "traces", "rest", NULL};
    static const char *const take[] = {
        "take", "remove", "delete", "drop", "throw", "clean", "strip", "purge", "erase", "rip", NULL};
    static const char *const fillers[] = {"out", "away", "all", "the", "of", "up", NULL};
    bool is_verb = false;
    for (agent_word w = {0}; agent__next_word(s, w.to, &w);) {
        if (is_verb && agent__is_any_word(s, w, all)) return true;
        is_verb = agent__is_any_word(s, w, take) || (is_verb && agent__is_any_word(s, w, fillers));
    }
    return false;
}

bool agent__is_doubtful_wording(const agent *a, const char *request)
{
    read_names n;
    read_words w;
    if (agent__deletes_files(a, request)) return false;
    agent__find_names(a, request, &n);
    agent__read_topics(request, &n, &w);
    const bool is_order =
        w.has[READ_TO_MOVE] && w.has[READ_ORDER] && !n.n_files; /* "move the check in front of" */
    agent__names_free(&n);
    static const char *const others[] = {
        "npm", "script", "workflow", "branch", "job", "section", "heading", "badge", NULL};
    return w.acts || n.has_document || is_order || agent__has_any_word(request, others) ||
           describes_member(request) || quotes_text(request);
}

void agent__read_topics(const char *request, const read_names *n, read_words *ret)
{
    static const char *const conditions[] = {"when", "whenever", "if", "unless", "once", "while", NULL};
    static const char *const asking[] = {
        "what", "why", "how", "where", "who", "which", "tell", "explain", "show", NULL};
    const bool is_arrow = strstr(request, "->") || strstr(request, "=>");
    agent_word first;
    *ret = (read_words){.condition = has_before_description(request, conditions),
        .acts = !is_arrow && acts(request, n),
        .adds = adds(request),
        .names_it = names_it(request) || praises_name(request, n),
        .is_to_be = is_to_be(request, n),
        .takes_text = takes_text(request),
        .question = strchr(request, '?') ||
                    (agent__next_word(request, 0, &first) && agent__is_any_word(request, first, asking))};
    for (int i = 0; i < READ_N_TOPICS; i++) ret->has[i] = agent__has_any_word(request, topics[i]);
    ret->has[READ_PART] = has_before_description(request, topics[READ_PART]);
    ret->has[READ_MAKING] |= wants_one_more(request);
    ret->has[READ_NAMING] |= is_arrow;
    ret->has[READ_TAKING] |= is_arrow;
    for (size_t i = 0; i < n->n_fresh; i++) ret->has[READ_TAKING] |= n->fresh[i].is_typed;
    ret->has[READ_PART] |= strchr(request, '"') != NULL;
}

/* --- signs ------------------------------------------------------------------------------------------------ */

/* How many of the names stand nowhere in the call? */
static uint8_t count_left(const read_name *all, size_t n, const char *call)
{
    uint8_t n_left = 0;
    for (size_t i = 0; i < n; i++)
        n_left += all[i].rank < 0 && all[i].is_coded && !all[i].is_place && !all[i].is_owner &&
                  !strstr(call, all[i].text);
    return n_left;
}

/* Files that are neither where it goes nor where it is. */
static uint8_t count_files_left(const agent *a, const read_names *n, const read_name *about, const char *call)
{
    uint8_t n_left = 0;
    for (size_t i = 0; i < n->n_files; i++)
        n_left +=
            !strstr(call, n->files[i].text) && !(about && agent__stands_in(a, about->text, n->files[i].text));
    return n_left;
}

/* "Out of lib.rs" says where it is, not where it goes. */
static bool goes_from(const read_names *n, const char *call)
{
    bool is_so = false;
    for (size_t i = 0; i < n->n_files; i++) is_so |= n->files[i].is_place && strstr(call, n->files[i].text);
    return is_so;
}

/* What a kind's request speaks of, at least one of; its verb. READ_N_TOPICS: nothing. */
static const struct {
    read_topic topic, verb;
    bool is_parameter;
} kinds[AGENT_N_READINGS] = {
    [AGENT_READ_RENAME] = {READ_NAMING, READ_TO_RENAME, false},
    [AGENT_READ_RENAME_BOTH] = {READ_NAMING, READ_TO_RENAME, false},
    [AGENT_READ_RENAME_PARAMETER] = {READ_NAMING, READ_TO_RENAME, true},
    [AGENT_READ_RENAME_PARAMETERS] = {READ_NAMING, READ_TO_RENAME, true},
    [AGENT_READ_MOVE] = {READ_CARRYING, READ_TO_MOVE, false},
    [AGENT_READ_MOVE_BOTH] = {READ_CARRYING, READ_TO_MOVE, false},
    [AGENT_READ_DELETE] = {READ_GOING, READ_TO_DELETE, false},
    [AGENT_READ_DELETE_BOTH] = {READ_GOING, READ_TO_DELETE, false},
    [AGENT_READ_DROP] = {READ_GOING, READ_TO_DELETE, true},
    [AGENT_READ_INSERT] = {READ_TAKING, READ_N_TOPICS, true},
    [AGENT_READ_REORDER] = {READ_ORDER, READ_N_TOPICS, true},
    [AGENT_READ_ADD] = {READ_MAKING, READ_MAKING, false},
    [AGENT_READ_CHANGE] = {READ_N_TOPICS, READ_N_TOPICS, false},
    [AGENT_READ_TEST] = {READ_TEST, READ_N_TOPICS, false},
    [AGENT_READ_ANSWER] = {READ_N_TOPICS, READ_N_TOPICS, false},
};

/* --- names against names ---------------------------------------------------------------------------------- */

/* Four letters in a row, or all but one of the shorter one. */
static bool are_alike(const char *x, const char *y)
{
    const size_t n = strlen(x), m = strlen(y), shorter = n < m ? n : m;
    const size_t least = shorter > 4 ? 4 : shorter > 2 ? shorter - 1 : 2;
    for (size_t i = 0; i + least <= n; i++)
        for (size_t k = 0; k + least <= m; k++)
            if (!strncasecmp(x + i, y + k, least)) return true;
    return false;
}

typedef enum style { STYLE_WORD, STYLE_CAMEL, STYLE_TYPE, STYLE_SNAKE, STYLE_CONSTANT } style;

static style style_of(const char *s)
{
    bool has_small = false, has_capital = false, has_line = false;
    s += strspn(s, "_");
    for (const char *p = s; *p; p++) {
        has_small |= islower((unsigned char)*p) != 0;
        has_capital |= isupper((unsigned char)*p) != 0;
        has_line |= *p == '_';
    }
    return has_capital && !has_small    ? STYLE_CONSTANT
           : isupper((unsigned char)*s) ? STYLE_TYPE
           : has_line                   ? STYLE_SNAKE
           : has_capital                ? STYLE_CAMEL
                                        : STYLE_WORD;
}

/* A single small word is written in the style of camels and of snakes. */
static bool are_unlike(const char *x, const char *y)
{
    const style a = style_of(x), b = style_of(y);
    if (a == STYLE_WORD || b == STYLE_WORD)
        return (a == STYLE_WORD ? b : a) == STYLE_CONSTANT || (a == STYLE_WORD ? b : a) == STYLE_TYPE;
    return a != b;
}

/* Of "rename(x, y)", x is the definition's. */
static void compare_names(const char *call, const char *old, uint8_t *signs)
{
    const char *from = strstr(call, ", ");
    if (!from) return;
    char *to = base_xstrndup(from + 2, strcspn(from + 2, ",)"));
    signs[AGENT_SIGN_ALIKE] = are_alike(old, to);
    signs[AGENT_SIGN_UNLIKE] = are_unlike(old, to);
    free(to);
}

/* --- what a verb is said of ------------------------------------------------------------------------------- */

/* "Drop the header in f": the verb, and then words that are neither the name nor a word for what it may be. */
static bool has_other_object(const char *s, read_topic verb, const read_slots *x)
{
    enum { MOST = 7 };
    static const char *const ends[] = {"in", "of", "from", "to", "into", "that", "which", "with", "for",
        "out", "on", "at", "by", "when", "if", "because", "as", "since", "inside", "please", "before",
        "after", "too", "but", NULL};
    static const char *const may_be[] = {"function", "functions", "method", "methods", "class", "classes",
        "struct", "type", "macro", "macros", "constant", "constants", "variable", "enum", "trait",
        "interface", "helper", "helpers", "test", "tests", "parameter", "parameters", "argument", "arguments",
        "arg", "param", "it", "them", "this", "these", "those", "both", "one", "ones", "all", "thing",
        "things", "field", "member", "attribute", "property", "local", "alias", "what", "whatever", "him",
        "that", "name", "getter", "setter", "constructor", "overload", "benchmark", "regexp", "regex",
        "wrapper", "two", "three", "either", "exception", "error", "table", "decorator", "routine", "fn",
        "func", "callback", "code", "off", "away", "him", "me", NULL};
    const char *const names[] = {code_last_name(x->about->text), x->parameter, x->other, NULL};
    agent_word w = {0};
    while (agent__next_word(s, w.to, &w) && !agent__is_any_word(s, w, topics[verb]))
        ;
    if (w.to == w.from) return false;
    size_t last = w.to;
    for (int i = 0; i < MOST && agent__next_word(s, last, &w); i++, last = w.to) {
        if (memchr(s + last, '.', w.from - last) || memchr(s + last, ',', w.from - last)) return i > 0;
        if (agent__is_any_word(s, w, ends)) return i > 0 && !agent__is_any_word(s, w, may_be);
        if (agent__is_any_word(s, w, names) || agent__is_any_word(s, w, may_be)) return false;
    }
    return last > 0 && w.to > w.from;
}

/* --- signs ------------------------------------------------------------------------------------------------ */

static bool has_other_verb(const read_words *w, read_topic verb)
{
    bool has = false;
    for (int i = READ_TO_DELETE; i < READ_N_TOPICS; i++) has |= i != (int)verb && w->has[i];
    return has;
}

/* Of the names that the request writes as any word: is this one of them? */
static bool is_plain_word(const char *request, const char *name)
{
    agent_word w = {0};
    while (agent__next_word(request, w.to, &w)) {
        const char *const only[] = {name, NULL};
        if (!agent__is_any_word(request, w, only)) continue;
        if (w.from && (agent__is_mark(request[w.from - 1]) || request[w.from - 1] == '(')) return false;
    }
    return strspn(name, "abcdefghijklmnopqrstuvwxyz") == strlen(name);
}

static bool is_there(const agent *a, const char *file)
{
    char *path = code_index_path(tool_workspace_index(a->workspace), file);
    free(path);
    return path != NULL;
}

static void sign_slots(const agent *a, const read_names *n, const read_slots *x, agent_reading *one)
{
    uint8_t *s = one->signs;
    s[AGENT_SIGN_UNNAMED] = x->unnamed > 0;
    s[AGENT_SIGN_UNSAID] = x->unnamed > 1 ? (uint8_t)(x->unnamed - 1) : 0;
    s[AGENT_SIGN_TO_FILE] = x->file && x->file->is_goal;
    s[AGENT_SIGN_NEW_FILE] = x->file && !is_there(a, x->file->text);
    s[AGENT_SIGN_PLAIN_PARAMETER] = x->parameter && !x->unnamed && is_plain_word(n->request, x->parameter);
    s[AGENT_SIGN_PARAMETER_LEFT] = (uint8_t)x->left;
    s[AGENT_SIGN_WRITTEN] = x->function && agent__is_written(n->request, one->kind, x);
    s[AGENT_SIGN_NEW_TYPED] = x->fresh && x->fresh->is_typed && one->kind == AGENT_READ_INSERT;
    s[AGENT_SIGN_NEW_CALLED] = x->fresh && x->fresh->is_called;
    s[AGENT_SIGN_NEW_PLAIN] = x->fresh && !x->fresh->is_coded;
    s[AGENT_SIGN_NEW_MENTIONED] =
        x->fresh && code_index_mentions(tool_workspace_index(a->workspace), x->fresh->text);
}

static bool is_plain(const read_name *x)
{
    return x->rank < 0 && !x->is_coded;
}

void agent__sign_reading(
    const agent *a, const read_names *n, const read_words *w, const read_slots *slots, agent_reading *one)
{
    static const agent_reading_sign no_topic[READ_N_TOPICS + 1] = {[READ_GOING] = AGENT_SIGN_NO_GOING,
        [READ_NAMING] = AGENT_SIGN_NO_NAMING,
        [READ_CARRYING] = AGENT_SIGN_NO_CARRYING,
        [READ_TAKING] = AGENT_SIGN_NO_TAKING,
        [READ_ORDER] = AGENT_SIGN_NO_ORDER,
        [READ_MAKING] = AGENT_SIGN_NO_MAKING,
        [READ_TEST] = AGENT_SIGN_NO_TEST};
    const agent_reading_kind k = one->kind;
    const read_topic topic = kinds[k].topic, verb = kinds[k].verb;
    const bool is_operation = one->meaning != NULL, is_parameter = kinds[k].is_parameter;
    const read_name *about = slots->about;
    uint8_t *s = one->signs;
    if (topic < READ_N_TOPICS) s[no_topic[topic]] = !w->has[topic];
    s[AGENT_SIGN_NO_QUESTION] = k == AGENT_READ_ANSWER && !w->question;
    s[AGENT_SIGN_VERB] = is_operation && verb < READ_N_TOPICS && w->has[verb];
    s[AGENT_SIGN_OTHER_OBJECT] =
        s[AGENT_SIGN_VERB] && slots->about->rank < 0 && has_other_object(n->request, verb, slots);
    s[AGENT_SIGN_OTHER_VERB] = is_operation && has_other_verb(w, verb);
    s[AGENT_SIGN_FRESH_LEFT] = is_operation ? count_left(n->fresh, n->n_fresh, one->call) : 0;
    s[AGENT_SIGN_KNOWN_LEFT] = is_operation ? count_left(n->known, n->n_known, one->call) : 0;
    s[AGENT_SIGN_FILE_LEFT] = is_operation ? count_files_left(a, n, about, one->call) : 0;
    const bool has_verb = w->has[READ_TO_DELETE] || w->has[READ_TO_RENAME] || w->has[READ_TO_MOVE];
    s[AGENT_SIGN_ADD_VERB] = k == AGENT_READ_ADD && has_verb;
    s[AGENT_SIGN_WORK_VERB] = (k == AGENT_READ_CHANGE || k == AGENT_READ_TEST) && has_verb;
    if (!is_operation) return;
    s[AGENT_SIGN_DESCRIBED] = about->rank >= 0;
    s[AGENT_SIGN_FITS_WORSE] = about->rank >= 0 ? (uint8_t)(20 * (1 - about->share)) : 0;
    s[AGENT_SIGN_INSIDE] = about->is_inside;
    s[AGENT_SIGN_PLAIN] = (uint8_t)(is_plain(about) + (slots->also && is_plain(slots->also)));
    if (k == AGENT_READ_RENAME) compare_names(one->call, code_last_name(about->text), s);
    s[AGENT_SIGN_PLACE] =
        (about->is_place && !is_parameter) || (topic == READ_CARRYING && goes_from(n, one->call));
    s[AGENT_SIGN_OWNER] = about->is_owner && !is_parameter;
    sign_slots(a, n, slots, one);
    s[AGENT_SIGN_PARAMETER] = !is_parameter && w->has[READ_PARAMETER];
    s[AGENT_SIGN_MAKING] = w->has[READ_MAKING] && (k != AGENT_READ_INSERT || !w->has[READ_PARAMETER]);
    s[AGENT_SIGN_BEHAVIOUR] = w->has[READ_BEHAVIOUR];
    s[AGENT_SIGN_PART] = (topic == READ_GOING || topic == READ_CARRYING) && w->has[READ_PART];
    s[AGENT_SIGN_DOCUMENT] = n->has_document;
    s[AGENT_SIGN_TEST] = w->has[READ_TEST];
    s[AGENT_SIGN_CONDITION] = w->condition;
    s[AGENT_SIGN_ACTS] = w->acts;
}
