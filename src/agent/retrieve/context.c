/*
 * What stands in front of a request. A weak model answers truly only from what it sees, so the program looks
 * first: files the request names, definitions it names, and the index's best passages, within a token budget,
 * each with path and lines. They are segments like any tool result: shown, logged, evictable, and marked stale
 * when their file changes.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/retrieve/gathering.h"
#include "agent/retrieve/retrieve.h"
#include "agent/sequence/sequence.h"
#include "agent/session/tell.h"
#include "agent/words/request_words.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/path.h"

enum {
    MAX_ASKED_FILE = 4 << 20, /* named by @: beyond any context */
    MAX_MENTIONS = 6,
    MAX_NAMED = 3,          /* definitions of those that a request for a change is about */
    HEAD_LINES = 30,        /* of a long class that is named */
    WHOLE_FILE_LINES = 120, /* a named file up to this size comes whole */
    N_HITS = 8,
    N_HOME_HITS = 256,  /* among which those of one file are looked for */
    N_ASKED_HITS = 16,  /* for a question: those behind SURE_HITS by their heads only */
    HEAD_BODY = 2,      /* lines of a head from the definition's first line on */
    HEAD_COMMENT = 6,   /* lines of a comment that goes with it */
    MOST_OF_A_NAME = 2, /* definitions that have one name */
    SURE_HITS = 3       /* taken whatever they score against the best one */
};
/* Of the best score, for the hits behind those: docs/diary.md, "Which definitions are in view". */
static const double LEAST_SHARE = 0.7, LEAST_HEAD_SHARE = 0.5;

/*
 * Of a long type the head says what its members need: up to its constructor's end, else its first lines. Where that
 * ends in the file.
 */
static uint32_t head_of_type(const agent *a, const code_place *p, const char *name)
{
    static const char *const makers[] = {"constructor", "__init__", "new"};
    base_buf text = {0};
    uint32_t to = p->to;
    if (!tool_workspace_read(a->workspace, p->path, GATHERING_MAX_FILE, &text, NULL) && p->to <= text.len) {
        code_file *f = code_parse(tool_workspace_grammars(a->workspace), p->path, text.data, text.len);
        uint32_t made_to = 0, cut = p->from;
        for (uint32_t i = 0; i < f->n_definitions; i++) {
            const code_definition *d = &f->definitions[i];
            bool makes = !strcmp(d->name, name) && d->from > p->from;
            for (size_t k = 0; k < sizeof makers / sizeof *makers; k++) makes |= !strcmp(d->name, makers[k]);
            if (makes && d->from > p->from && d->to <= p->to && !made_to) made_to = d->to;
        }
        for (uint32_t lines = 0; cut < p->to && lines < HEAD_LINES; cut++) lines += text.data[cut] == '\n';
        to = made_to && agent__count_lines(text.data + p->from, made_to - p->from) <= 2 * HEAD_LINES ? made_to
                                                                                                     : cut;
        code_file_free(f);
    }
    base_buf_free(&text);
    return to;
}

/* Who asks for a change of a wrapper means what it calls. */
static void add_delegate(gathering *g, const code_place *wrapper, const char *word)
{
    char *called = agent__may_rewrite(g->a, g->request) ? agent__find_delegate(g->a, wrapper, word) : NULL;
    code_place *places = NULL;
    uint32_t n = called ? code_index_define(tool_workspace_index(g->a->workspace), called, &places) : 0;
    base_buf why = {0};
    base_buf_printf(&why, "all that %s does is to call it", word);
    if (n && !places[0].is_declaration)
        gathering_add_range(g, places[0].path, places[0].from, places[0].to, called, why.data);
    base_buf_free(&why);
    code_places_free(places, n);
    free(called);
}

static void add_definitions(gathering *g, const char *word)
{
    code_place *places = NULL;
    uint32_t n = code_index_define(tool_workspace_index(g->a->workspace), word, &places);
    for (uint32_t i = 0; i < n && i < MOST_OF_A_NAME; i++) {
        const code_place *p = &places[i];
        const bool is_long = !strcmp(p->what, "class") && p->line_end - p->line > 2 * HEAD_LINES;
        if (!p->is_declaration)
            gathering_add_range(g, p->path, p->from, is_long ? head_of_type(g->a, p, word) : p->to, word,
                "named in the request");
        if (!p->is_declaration) add_delegate(g, p, word);
    }
    code_places_free(places, n);
}

/* The person asked for it: what retrieval may take is not touched. */
static void add_asked_file(gathering *g, const gathering_passage *whole)
{
    const uint32_t lines = whole->line_end;
    if (gathering_has(g, whole->path, 1, lines)) return;
    const uint32_t before = g->left,
                   tokens = agent__count(g->a, whole->text, whole->n) + GATHERING_EXCERPT_TOKENS;
    g->left = agent__file_room(g->a, whole->path, tokens, lines, g->n_asked);
    const uint32_t room = g->left;
    if (room) gathering_add_passage(g, whole, "@file");
    if (room && room == g->left)
        agent__notice(g->a, "@%s: no line of it fits into that: nothing of it is put in front", whole->path);
    g->n_asked += room - g->left;
    g->left = before;
}

/* A file that the request names: whole when short, else what retrieval finds in it. */
static void add_file(gathering *g, const char *path, bool asked)
{
    const char *stays = agent__why_stays(g->a, path);
    if (stays) {
        if (asked)
            agent__notice(
                g->a, "@%s stays on this machine (%s); paste what the model is to know of it", path, stays);
        return;
    }
    base_buf text = {0};
    base_err why = {0};
    uint32_t cap = asked ? MAX_ASKED_FILE : 64 << 10;
    if (tool_workspace_read(g->a->workspace, path, cap, &text, &why)) {
        if (asked) agent__notice(g->a, "@%s: %s", path, why.msg);
    } else if (!text.len || memchr(text.data, 0, text.len)) {
        if (asked)
            agent__notice(
                g->a, "@%s is %s: nothing of it is put in front", path, text.len ? "binary" : "empty");
    } else {
        uint32_t lines = agent__count_lines(text.data, text.len);
        char version[65];
        base_sha256_hex(text.data, text.len, version);
        if (asked || lines <= WHOLE_FILE_LINES) g->n_files++;
        const gathering_passage whole = {path, version, text.data, text.len, 1, lines, ""};
        if (asked)
            add_asked_file(g, &whole);
        else if (lines <= WHOLE_FILE_LINES)
            gathering_add_passage(g, &whole, "named in the request");
    }
    base_buf_free(&text);
}

/* "look at @src/main.c", and not "write to me@example.com". */
static bool is_asked(const char *request, agent_word w)
{
    if (!w.from || request[w.from - 1] != '@') return false;
    return w.from == 1 || strchr(" \n(", request[w.from - 2]);
}

/* What the person named by @ behind the last name that was looked at: not there without a word. */
static void tell_left_out(const gathering *g, size_t at)
{
    base_buf names = {0};
    agent_word w;
    uint32_t n = 0;
    for (; agent__next_mention(g->request, at, &w); at = w.to) {
        if (!is_asked(g->request, w)) continue;
        base_buf_puts(&names, n++ ? ", @" : "@");
        base_buf_add(&names, g->request + w.from, w.to - w.from);
    }
    if (n)
        agent__notice(g->a,
            "%s %s not looked at: a request brings at most %d files and names; ask for %s in the next",
            names.data, n == 1 ? "was" : "were", MAX_MENTIONS, n == 1 ? "it" : "them");
    base_buf_free(&names);
}

static void add_mentions(gathering *g)
{
    agent_word w = {0};
    uint32_t n = 0;
    code_index *index = tool_workspace_index(g->a->workspace);
    while (n < MAX_MENTIONS && agent__next_mention(g->request, w.to, &w)) {
        const bool asked = is_asked(g->request, w);
        char *word = agent__copy_word(g->request, w);
        char *path = asked || strpbrk(word, "./") ? code_index_path(index, word) : NULL;
        if (asked && !path && code_index_is_defined(index, word)) { /* @name */
            add_definitions(g, word);
            n++;
        } else if (path || asked) {
            add_file(g, path ? path : word, asked);
            n++;
        }
        free(path);
        free(word);
    }
    tell_left_out(g, w.to);
    for (w.to = 0; n < MAX_MENTIONS && agent__next_mention(g->request, w.to, &w);) {
        if (!agent__looks_like_name(g->request, w) || memchr(g->request + w.from, '/', w.to - w.from))
            continue;
        char *word = agent__copy_word(g->request, w);
        add_definitions(g, word);
        n++;
        free(word);
    }
    agent_named named = {0};
    if (agent__may_rewrite(g->a, g->request) && !g->a->fix.wanted)
        agent__find_named(g->a, g->request, &named);
    for (uint32_t i = 0; i < named.n && i < MAX_NAMED; i++) add_definitions(g, named.items[i].name);
    agent_named_free(&named);
}

/* What tells a definition from others: its comment and how it begins. A passage has no such part. */
static void add_head(gathering *g, const code_hit *h, const char *why)
{
    if (!h->name || !*h->name || !strcmp(h->what, "passage") || !strcmp(h->what, "declarations")) return;
    const uint32_t from = h->definition_line > h->line + HEAD_COMMENT ? h->definition_from : h->from;
    uint32_t to = h->definition_from;
    for (uint32_t lines = 0; to < h->to && lines < HEAD_BODY; to++) lines += h->text[to - h->from] == '\n';
    gathering_add_range(g, h->path, from, to, h->name, why);
}

/* Is the path the code that the word stands for: "strutils" for boltons/strutils.py, and no header of it? */
static bool is_file_of(const char *path, const char *word, size_t n)
{
    const char *file = base_path_name(path);
    const char *language = code_language(path, "", 0);
    return language && !code_language_is_document(language) && !base_ends_with(path, ".h") &&
           strcspn(file, ".") == n && !memcmp(file, word, n) && !code_path_is_test(path);
}

char *agent__home_of_addition(const agent *a, const char *request)
{
    static const char *const verbs[] = {"add", "create", "implement", "introduce", "write", NULL};
    static const char *const in_front[] = {"to", "in", "into", NULL};
    static const char *const fillers[] = {"the", "module", "file", NULL};
    if (!agent__has_any_word(request, verbs)) return NULL;
    char **paths = code_index_paths(tool_workspace_index(a->workspace)), *home = NULL;
    bool expects = false;
    for (agent_word w = {0}; !home && agent__next_word(request, w.to, &w);) {
        if (agent__is_any_word(request, w, in_front))
            expects = true;
        else if (!agent__is_any_word(request, w, fillers)) {
            uint32_t n = 0;
            for (size_t i = 0; expects && paths && paths[i]; i++) {
                if (!is_file_of(paths[i], request + w.from, w.to - w.from)) continue;
                if (!n++) home = base_xstrdup(paths[i]);
            }
            if (n > 1) {
                free(home);
                home = NULL;
            }
            expects = false;
        }
    }
    code_index_paths_free(paths);
    return home;
}

/*
 * The best hits whole. What asks for a change gets all of them so: it may have to write them. For a question the
 * names of more help as much as the text of a few, and cost less.
 */
static void add_hits(gathering *g)
{
    code_hits hits = {0};
    const char *about = g->described ? g->described : g->request;
    const bool heads = !g->a->fix.wanted && !agent__may_rewrite(g->a, g->request);
    const double share = heads ? LEAST_HEAD_SHARE : LEAST_SHARE;
    char *home = heads ? NULL : agent__home_of_addition(g->a, g->request);
    code_index_search(tool_workspace_index(g->a->workspace), about,
        home    ? N_HOME_HITS
        : heads ? N_ASKED_HITS
                : N_HITS,
        &hits);
    const size_t before = g->n;
    for (uint32_t i = 0; i < hits.n && g->left >= GATHERING_LEAST_TOKENS; i++) {
        const code_hit *h = &hits.hits[i];
        if (home && strcmp(h->path, home) != 0) continue;
        if (home && g->n - before >= SURE_HITS) break;
        if (!home && i >= SURE_HITS && h->score < hits.hits[0].score * share)
            break; /* each token costs the person time */
        base_buf why = {0};
        base_buf_printf(&why, "%s (%.1f)", h->why ? h->why : "", h->score);
        if (heads && g->n - before >= SURE_HITS)
            add_head(g, h, why.data);
        else
            gathering_add_range(g, h->path, h->from, h->to, h->name ? h->name : "", why.data);
        base_buf_free(&why);
    }
    free(home);
    code_hits_free(&hits);
}

/* The function that has to change, alone: beside another one a small model mixes the two. */
static void add_meant(gathering *g)
{
    const agent_meant *m = &g->a->asked.meant[0];
    gathering_add_range(g, m->path, m->from, m->to, m->name, "the request seems to be about it");
}

/* "thanks" and "go on" ask for nothing that the tree could answer. */
static bool has_content(const char *request)
{
    agent_word w = {0};
    bool found = false;
    while (!found && agent__next_mention(request, w.to, &w))
        found = agent__is_content_word(request + w.from, w.to - w.from);
    return found;
}

int agent__append_context(agent *a, const char *request, base_err *err)
{
    kv_stats s;
    a->engine->ops->stats(a->engine, &s);
    uint32_t budget = a->settings.context_tokens == UINT32_MAX ? 0 : a->settings.context_tokens;
    uint32_t room = s.n_ctx > s.n_tokens ? (s.n_ctx - s.n_tokens) / 2 : 0;
    gathering g = {.a = a, .request = request, .left = budget < room ? budget : room};
    int rc = 0;
    if (a->notes.shell.len) {
        rc = agent__append_plain(a, a->notes.shell.data, "! line", err);
        base_buf_clear(&a->notes.shell);
    }
    if (!rc && a->notes.map.len) {
        rc = agent__append_plain(a, a->notes.map.data, "/map", err);
        base_buf_clear(&a->notes.map);
    }
    if (!rc && a->notes.skill.len) {
        rc = agent__append_plain(a, a->notes.skill.data, "skill", err);
        base_buf_clear(&a->notes.skill);
    }
    const bool is_of_use = budget && !a->fix.wanted && gathering_add_asked_uses(&g);
    if (budget && !a->fix.wanted && !is_of_use && !agent__speaks_of_change(request))
        gathering_add_asked_callers(&g);
    if (!a->asked.is_operation) add_mentions(&g);
    /* A failing test with its program in view needs nothing else; more only distracts a small model. */
    bool complete = a->fix.wanted && g.n_files >= 2;
    if (budget && !complete && a->asked.n_meant)
        add_meant(&g);
    else if (budget && !complete && !a->asked.is_operation && has_content(request))
        add_hits(&g);
    int appended = gathering_append(&g, err);
    return rc ? rc : appended;
}
