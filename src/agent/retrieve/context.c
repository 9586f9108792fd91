/*
 * What stands in front of a request. A weak model answers truly only from what it sees, so the program looks
 * first: files the request names, definitions it names, and the index's best passages, within a token budget,
 * each with path and lines. They are segments like any tool result: shown, logged, evictable, and marked stale
 * when their file changes.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/call/prompt.h"
#include "agent/retrieve/retrieve.h"
#include "agent/sequence/sequence.h"
#include "agent/session/tell.h"
#include "agent/words/callers_question.h"
#include "agent/words/request_words.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/path.h"

enum {
    MAX_INSTRUCTIONS = 3000, /* bytes of AGENTS.md */
    MAX_FILE = 256 << 10,
    MAX_ASKED_FILE = 4 << 20, /* named by @: beyond any context */
    MAX_MENTIONS = 6,
    MAX_NAMED = 3,          /* definitions of those that a request for a change is about */
    HEAD_LINES = 30,        /* of a long class that is named */
    WHOLE_FILE_LINES = 120, /* a named file up to this size comes whole */
    N_HITS = 8,
    N_HOME_HITS = 256,   /* among which those of one file are looked for */
    N_ASKED_HITS = 16,   /* for a question: those behind SURE_HITS by their heads only */
    HEAD_BODY = 2,       /* lines of a head from the definition's first line on */
    HEAD_COMMENT = 6,    /* lines of a comment that goes with it */
    EXCERPT_TOKENS = 16, /* its first line and what is behind it, at most about */
    LEAST_TOKENS = 40,   /* an excerpt cut below this says nothing */
    MAX_CALLERS = 24,
    MOST_OF_A_NAME = 2, /* definitions that have one name */
    MAX_DESCRIBED = 3,  /* functions that fit a description whose callers are asked for */
    MAX_LISTS = AGENT_CALLERS_NAMES + MAX_DESCRIBED,
    SURE_HITS = 3 /* taken whatever they score against the best one */
};
/* Of the best score, for the hits behind those: docs/diary.md, "Which definitions are in view". */
static const double LEAST_SHARE = 0.7, LEAST_HEAD_SHARE = 0.5;

void agent__read_instructions(agent *a, base_buf *ret)
{
    base_buf text = {0};
    base_err why = {0};
    const int failed = tool_workspace_read(a->workspace, "AGENTS.md", MAX_FILE, &text, &why);
    if (failed && failed != BASE_E_NOT_FOUND)
        agent__notice(a, "the project's instructions are not read: %s", why.msg);
    if (!failed && text.len) {
        bool cut = text.len > MAX_INSTRUCTIONS;
        if (cut) {
            text.len = MAX_INSTRUCTIONS;
            while (text.len && text.data[text.len - 1] != '\n') text.len--;
            base_buf_puts(&text, "(the rest of AGENTS.md is left out)\n");
            agent__notice(a, "AGENTS.md is longer than %d bytes: its beginning is used", MAX_INSTRUCTIONS);
        }
        base_buf_puts(ret, "Instructions of this project (AGENTS.md):\n");
        base_buf_add(ret, text.data, text.len);
    }
    base_buf_free(&text);
}

/* --- what changed --------------------------------------------------------------------------------------- */

void agent__mark_stale(agent *a, const char *path)
{
    for (size_t i = 0; i < a->transcript.n_segments; i++) {
        agent_segment *p = &a->transcript.segments[i];
        if (p->stale || !p->path || strcmp(p->path, path)) continue;
        p->stale = true;
        base_err err = {0};
        if (agent__put_stale(a, p->from, p->to, &err)) agent__error(a, &err);
    }
}

void agent__notice_changes(agent *a, base_buf *told)
{
    char **changed = NULL;
    base_buf news = {0};
    base_err err = {0};
    const int failed = tool_workspace_refresh(a->workspace, &changed, a->cancel, &err);
    tool_workspace_take_news(a->workspace, &news);
    if (news.len) agent__notice(a, "%.*s", (int)news.len - 1, news.data);
    base_buf_free(&news);
    if (failed) {
        if (err.code != BASE_E_CANCELLED) agent__notice(a, "the tree could not be read again: %s", err.msg);
        return;
    }
    for (size_t i = 0; changed && changed[i]; i++) {
        agent__mark_stale(a, changed[i]);
        agent__notice(a, "%s changed on disk since it was shown: the old text is put aside", changed[i]);
        base_buf_printf(told, "%s changed on disk since it was shown.\n", changed[i]);
        a->made.world++;
        free(changed[i]);
    }
    free(changed);
}

/* --- excerpts ------------------------------------------------------------------------------------------- */

/* An excerpt that was chosen; all are appended together, so that the wait is known before it begins. */
typedef struct excerpt {
    base_buf text;
    char *path, *name, *why;
    char version[65];
    uint32_t line, line_end, tokens;
    size_t source_from;
} excerpt;

static void excerpt_free(excerpt *e)
{
    base_buf_free(&e->text);
    free(e->path);
    free(e->name);
    free(e->why);
}

typedef struct gathering {
    agent *a;
    const char *request;
    uint32_t left;    /* tokens */
    uint32_t n_asked; /* tokens of files named by @, which have a room of their own (room.c) */
    uint32_t n_files; /* whole files that the request named */
    excerpt *excerpts;
    size_t n, cap;
    base_buf callers;         /* who calls what the request asks about */
    excerpt lists[MAX_LISTS]; /* and what the event says of that */
    size_t n_lists;
    char *described; /* the request without its part that asks who calls "it"; NULL: it has none */
} gathering;

static bool is_shown(const agent *a, const char *path, uint32_t line, uint32_t line_end)
{
    for (size_t i = 0; i < a->transcript.n_segments; i++) {
        const agent_segment *p = &a->transcript.segments[i];
        if (!p->stale && p->path && !strcmp(p->path, path) && p->line <= line && p->line_end >= line_end &&
            !agent__is_aside(a, p->from, p->to))
            return true;
    }
    return false;
}

static bool is_chosen(const gathering *g, const char *path, uint32_t line, uint32_t line_end)
{
    for (size_t i = 0; i < g->n; i++) {
        const excerpt *e = &g->excerpts[i];
        if (strcmp(e->path, path) || e->line > line_end || e->line_end < line) continue;
        uint32_t from = e->line > line ? e->line : line, to = e->line_end < line_end ? e->line_end : line_end;
        if ((to - from + 1) * 4 >= (line_end - line + 1) * 3) return true; /* the same, with its comment */
    }
    return is_shown(g->a, path, line, line_end);
}

static int append_plain(agent *a, const char *text, const char *label, base_err *err)
{
    agent_text t = {.origin = KV_ORIGIN_CONTEXT, .text = text, .n = strlen(text), .label = label};
    return agent__append(a, &t, NULL, err);
}

/* The longest beginning of whole lines that fits into `tokens`. */
static size_t fitting_lines(const agent *a, const char *text, size_t n, uint32_t tokens, uint32_t *lines)
{
    size_t fits = 0;
    uint32_t used = 0;
    *lines = 0;
    for (size_t at = 0; at < n;) {
        const char *newline = memchr(text + at, '\n', n - at);
        size_t end = newline ? (size_t)(newline - text) + 1 : n;
        used += agent__count(a, text + at, end - at);
        if (used > tokens) break;
        fits = at = end;
        ++*lines;
    }
    return fits;
}

/* Lines of a file's present text. */
typedef struct passage {
    const char *path, *version;
    const char *text;
    size_t n;
    uint32_t line, line_end;
    const char *name; /* the definition that they are; "": a part of the file */
} passage;

/* One excerpt. Returns without a word when it is shown already or does not fit. */
static void add_excerpt(gathering *g, const passage *p, const char *why)
{
    agent *a = g->a;
    const char *text = p->text;
    size_t n = p->n;
    uint32_t line_end = p->line_end;
    if (!n || is_chosen(g, p->path, p->line, line_end)) return;
    uint32_t tokens = agent__count(a, text, n) + EXCERPT_TOKENS;
    if (tokens > g->left) {
        uint32_t lines;
        n = fitting_lines(a, text, n, g->left > 24 ? g->left - 24 : 0, &lines);
        tokens = g->left;
        if (!lines || agent__count(a, text, n) < LEAST_TOKENS) return;
        line_end = p->line + lines - 1;
    }
    excerpt e = {.path = base_xstrdup(p->path),
        .name = base_xstrdup(p->name),
        .why = base_xstrdup(why),
        .line = p->line,
        .line_end = line_end,
        .tokens = tokens};
    memcpy(e.version, p->version, sizeof e.version);
    if (!g->n) base_buf_puts(&e.text, agent_prompt_excerpts);
    agent_prompt_excerpt_head(p->path, p->line, line_end, p->name, &e.text);
    e.source_from = e.text.len;
    base_buf_add(&e.text, text, n);
    base_buf_puts(&e.text, text[n - 1] == '\n' ? "\n" : "\n\n");
    base_grow(&g->excerpts, &g->cap, g->n + 1, sizeof *g->excerpts);
    g->excerpts[g->n++] = e;
    g->left -= tokens < g->left ? tokens : g->left;
}

static agent_excerpt_row row_of(const excerpt *e)
{
    return (agent_excerpt_row){e->path, e->line, e->line_end, e->name, e->why, e->tokens};
}

/*
 * The names of what stands above, in the order of their worth: a small model takes its answer from what it
 * read last, and these put every definition equally near to the question.
 */
static int append_names(gathering *g, base_err *err)
{
    base_buf text = {0};
    uint32_t n = 0;
    for (size_t i = 0; i < g->n; i++) {
        const excerpt *e = &g->excerpts[i];
        if (!e->name || !*e->name) continue;
        base_buf_printf(&text, "%s`%s` in %s", n++ ? ", " : "Definitions: ", e->name, e->path);
    }
    base_buf_puts(&text, "\n\n");
    int rc = n > 1 ? append_plain(g->a, text.data, "names", err) : 0;
    base_buf_free(&text);
    return rc;
}

static bool speaks_of_change(const char *request)
{
    static const char *const words[] = {"add", "change", "convert", "correct", "create", "delete", "edit",
        "fix", "implement", "improve", "insert", "make", "modify", "move", "optimize", "refactor", "remove",
        "rename", "repair", "replace", "rewrite", "simplify", "update", "write", NULL};
    return agent__has_any_word(request, words);
}

/* A request that may end in writing some of what it gets once more, which takes all its rows. */
static bool asks_for_change(const agent *a, const char *request)
{
    if (a->settings.mode == AGENT_MODE_PLAN) return false;
    if (a->fix.wanted || !(strchr(request, '?') || agent__has_word(request, "explain") ||
                             agent__has_word(request, "describe")))
        return true;
    return speaks_of_change(request);
}

/* What was chosen, told first and then computed. */
static int append_chosen(gathering *g, base_err *err)
{
    agent *a = g->a;
    agent_excerpt_row *items = base_xcalloc(g->n_lists + g->n + 1, sizeof *items);
    size_t n_items = 0;
    uint32_t expected = agent__count(a, g->request, strlen(g->request));
    if (g->callers.len) expected += agent__count(a, g->callers.data, g->callers.len);
    for (size_t i = 0; i < g->n_lists; i++) items[n_items++] = row_of(&g->lists[i]);
    for (size_t i = 0; i < g->n; i++) {
        items[n_items++] = row_of(&g->excerpts[i]);
        expected += agent__count(a, g->excerpts[i].text.data, g->excerpts[i].text.len);
    }
    if (n_items)
        agent__emit(a, &(agent_event){.type = AGENT_EVENT_context,
                           .context = {.turn = a->turn, .items = {items, n_items}}});
    free(items);
    a->has_excerpts = g->n > 0;
    agent__expect(a, expected);
    const bool whole = asks_for_change(a, g->request);
    int rc = 0;
    for (size_t i = 0; i < g->n; i++) {
        excerpt *e = &g->excerpts[i];
        agent_text t = {.origin = KV_ORIGIN_CONTEXT,
            .text = e->text.data,
            .n = e->text.len,
            .label = e->name,
            .path = e->path,
            .version = e->version,
            .line = e->line,
            .line_end = e->line_end,
            .bulk = expected,
            .whole = whole,
            .structure = true,
            .source_from = e->source_from,
            .words = g->request};
        if (!rc) rc = agent__append(a, &t, NULL, err);
        if (!rc) tool_workspace_mark_shown(a->workspace, e->path, e->version);
    }
    if (!rc && g->callers.len) /* the names of the excerpts beside it would be taken for callers too */
        rc = append_plain(a, g->callers.data, "callers", err);
    else if (!rc && !a->fix.wanted)
        rc = append_names(g, err);
    base_buf_free(&g->callers);
    for (size_t i = 0; i < g->n_lists; i++) excerpt_free(&g->lists[i]);
    for (size_t i = 0; i < g->n; i++) excerpt_free(&g->excerpts[i]);
    free(g->excerpts);
    free(g->described);
    return rc;
}

static uint32_t count_lines(const char *text, size_t n)
{
    uint32_t lines = 0;
    for (size_t i = 0; i < n; i++) lines += text[i] == '\n';
    return lines + (n && text[n - 1] != '\n');
}

/* Bytes [from, to) of a file that the index named, taken from the file as it is now. */
static void add_range(
    gathering *g, const char *path, uint32_t from, uint32_t to, const char *name, const char *why)
{
    if (agent__why_stays(g->a, path)) return;
    base_buf text = {0};
    if (!tool_workspace_read(g->a->workspace, path, MAX_FILE, &text, NULL) && text.len) {
        char version[65];
        base_sha256_hex(text.data, text.len, version);
        if (to > text.len) to = (uint32_t)text.len;
        while (from > 0 && from <= to && text.data[from - 1] != '\n') from--; /* whole lines */
        while (to < text.len && to > from && text.data[to - 1] != '\n') to++;
        uint32_t line = count_lines(text.data, from) + 1;
        if (from < to)
            add_excerpt(g,
                &(passage){.path = path,
                    .version = version,
                    .text = text.data + from,
                    .n = to - from,
                    .line = line,
                    .line_end = line + count_lines(text.data + from, to - from) - 1,
                    .name = name},
                why);
    }
    base_buf_free(&text);
}

/*
 * Of a long type the head says what its members need: up to its constructor's end, else its first lines. Where that
 * ends in the file.
 */
static uint32_t head_of_type(const agent *a, const code_place *p, const char *name)
{
    static const char *const makers[] = {"constructor", "__init__", "new"};
    base_buf text = {0};
    uint32_t to = p->to;
    if (!tool_workspace_read(a->workspace, p->path, MAX_FILE, &text, NULL) && p->to <= text.len) {
        code_file *f = code_parse(tool_workspace_grammars(a->workspace), p->path, text.data, text.len);
        uint32_t made_to = 0, cut = p->from;
        for (uint32_t i = 0; i < f->n_definitions; i++) {
            const code_definition *d = &f->definitions[i];
            bool makes = !strcmp(d->name, name) && d->from > p->from;
            for (size_t k = 0; k < sizeof makers / sizeof *makers; k++) makes |= !strcmp(d->name, makers[k]);
            if (makes && d->from > p->from && d->to <= p->to && !made_to) made_to = d->to;
        }
        for (uint32_t lines = 0; cut < p->to && lines < HEAD_LINES; cut++) lines += text.data[cut] == '\n';
        to = made_to && count_lines(text.data + p->from, made_to - p->from) <= 2 * HEAD_LINES ? made_to : cut;
        code_file_free(f);
    }
    base_buf_free(&text);
    return to;
}

/* Who asks for a change of a wrapper means what it calls. */
static void add_delegate(gathering *g, const code_place *wrapper, const char *word)
{
    char *called = asks_for_change(g->a, g->request) ? agent__find_delegate(g->a, wrapper, word) : NULL;
    code_place *places = NULL;
    uint32_t n = called ? code_index_define(tool_workspace_index(g->a->workspace), called, &places) : 0;
    base_buf why = {0};
    base_buf_printf(&why, "all that %s does is to call it", word);
    if (n && !places[0].is_declaration)
        add_range(g, places[0].path, places[0].from, places[0].to, called, why.data);
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
            add_range(g, p->path, p->from, is_long ? head_of_type(g->a, p, word) : p->to, word,
                "named in the request");
        if (!p->is_declaration) add_delegate(g, p, word);
    }
    code_places_free(places, n);
}

/* The person asked for it: what retrieval may take is not touched. */
static void add_asked_file(gathering *g, const passage *whole)
{
    const uint32_t lines = whole->line_end;
    if (is_chosen(g, whole->path, 1, lines)) return;
    const uint32_t before = g->left, tokens = agent__count(g->a, whole->text, whole->n) + EXCERPT_TOKENS;
    g->left = agent__file_room(g->a, whole->path, tokens, lines, g->n_asked);
    const uint32_t room = g->left;
    if (room) add_excerpt(g, whole, "@file");
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
        uint32_t lines = count_lines(text.data, text.len);
        char version[65];
        base_sha256_hex(text.data, text.len, version);
        if (asked || lines <= WHOLE_FILE_LINES) g->n_files++;
        const passage whole = {path, version, text.data, text.len, 1, lines, ""};
        if (asked)
            add_asked_file(g, &whole);
        else if (lines <= WHOLE_FILE_LINES)
            add_excerpt(g, &whole, "named in the request");
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
    if (asks_for_change(g->a, g->request) && !g->a->fix.wanted) agent__find_named(g->a, g->request, &named);
    for (uint32_t i = 0; i < named.n && i < MAX_NAMED; i++) add_definitions(g, named.items[i].name);
    agent_named_free(&named);
}

/* --- who calls it --------------------------------------------------------------------------------------- */

/* A function, of which "nobody calls it" says something. */
static bool is_called_by_name(const code_place *places, uint32_t n)
{
    return n && (!strcmp(places[0].what, "function") || !strcmp(places[0].what, "method"));
}

/* A list of callers or uses of the definition p, in front of the request. */
static void add_list(
    gathering *g, const code_place *p, const char *about, const char *why, const base_buf *text)
{
    const uint32_t tokens = agent__count(g->a, text->data, text->len);
    g->lists[g->n_lists++] = (excerpt){.path = base_xstrdup(p->path),
        .name = base_xstrdup(about),
        .why = base_xstrdup(why),
        .line = p->line,
        .line_end = p->line_end,
        .tokens = tokens};
    base_buf_add(&g->callers, text->data, text->len);
    base_buf_putc(&g->callers, '\n');
    g->left -= tokens < g->left ? tokens : g->left;
}

/*
 * The callers of one symbol, a line each, or that there are none: a small model copies a list where it would miss what
 * stands in five excerpts, and names somebody where nobody calls it.
 */
static void add_callers(gathering *g, const char *name)
{
    const agent *a = g->a;
    code_index *index = tool_workspace_index(a->workspace);
    code_place *places;
    code_caller *callers;
    base_buf text = {0}, about = {0};
    base_buf_printf(&text, "Callers of `%s`, ", name);
    const bool is_told = g->callers.len && strstr(g->callers.data, text.data);
    const uint32_t n_places = code_index_define(index, name, &places),
                   n = code_index_callers(index, name, MAX_CALLERS, &callers),
                   kept = n < MAX_CALLERS ? n : MAX_CALLERS;
    const bool is_partial = tool_workspace_is_partial(a->workspace);
    if (n)
        base_buf_printf(&text, "%s %u of the tree:\n", is_partial ? "at least" : "all", n);
    else
        base_buf_printf(&text, "none: `%s` is called by no function of this tree.\n", name);
    for (uint32_t i = 0; i < kept; i++)
        if (*callers[i].name)
            base_buf_printf(&text, "- `%s` in %s:%u\n", callers[i].name, callers[i].path, callers[i].line);
        else
            base_buf_printf(&text, "- %s:%u, outside of all functions\n", callers[i].path, callers[i].line);
    uint32_t n_lines;
    text.len = fitting_lines(a, text.data, text.len, g->left, &n_lines);
    const bool is_listed = n ? n_lines > 1 : n_lines && !is_partial && is_called_by_name(places, n_places);
    if (!is_told && n_places && is_listed) {
        if (n && n_lines - 1 < n) base_buf_printf(&text, "- and %u more\n", n - (n_lines - 1));
        base_buf_printf(&about, "%u caller%s of %s", n, n == 1 ? "" : "s", name);
        add_list(g, &places[0], about.data, "the request asks who calls it", &text);
    }
    base_buf_free(&text);
    base_buf_free(&about);
    code_callers_free(callers, kept);
    code_places_free(places, n_places);
}

/* "Can I delete X", "is X still used": who uses it, by the tree. false: the request asks for no such thing. */
static bool add_asked_uses(gathering *g)
{
    char *names[AGENT_MAX_ASKED_USES];
    const uint32_t n = agent__find_asked_uses(g->a, g->request, names);
    for (uint32_t i = 0; i < n; i++) {
        base_buf text = {0}, about = {0};
        code_place *places = NULL;
        const uint32_t n_places = code_index_define(tool_workspace_index(g->a->workspace), names[i], &places);
        if (!n_places || !agent__put_uses(g->a, names[i], &text)) {
            add_callers(g, names[i]);
        } else {
            base_buf_printf(&about, "uses of %s", names[i]);
            add_list(g, &places[0], about.data, "the request asks who uses it", &text);
        }
        base_buf_free(&text);
        base_buf_free(&about);
        code_places_free(places, n_places);
    }
    agent__asked_uses_free(names, n);
    return n > 0;
}

/* Who calls the functions that a description fits: the model says which of them is meant. */
static void add_callers_of_described(gathering *g)
{
    code_hits hits = {0};
    code_index_search(tool_workspace_index(g->a->workspace), g->described, N_HITS, &hits);
    uint32_t n = 0;
    for (uint32_t i = 0; i < hits.n && n < MAX_DESCRIBED; i++) {
        const code_hit *h = &hits.hits[i];
        if (!h->name || !*h->name || (strcmp(h->what, "function") != 0 && strcmp(h->what, "method") != 0))
            continue;
        if (h->score < hits.hits[0].score * LEAST_SHARE) break;
        add_callers(g, h->name);
        n++;
    }
    code_hits_free(&hits);
}

/*
 * "Which functions call X", "where is X used", "which function frees a reply, and who calls it?". "It" alone is what the
 * answer before was about.
 */
static void add_asked_callers(gathering *g)
{
    agent_callers_question q;
    if (!agent_read_callers_question(g->request, &q)) return;
    for (uint32_t i = 0; i < q.n; i++) add_callers(g, q.names[i]);
    if (q.of_it && !g->n_lists && q.described) {
        g->described = base_xstrndup(g->request, q.described);
        add_callers_of_described(g);
    } else if (q.of_it && !g->n_lists && g->a->answered) {
        add_callers(g, g->a->answered);
    }
    agent_callers_question_free(&q);
}

/* What tells a definition from others: its comment and how it begins. A passage has no such part. */
static void add_head(gathering *g, const code_hit *h, const char *why)
{
    if (!h->name || !*h->name || !strcmp(h->what, "passage") || !strcmp(h->what, "declarations")) return;
    const uint32_t from = h->definition_line > h->line + HEAD_COMMENT ? h->definition_from : h->from;
    uint32_t to = h->definition_from;
    for (uint32_t lines = 0; to < h->to && lines < HEAD_BODY; to++) lines += h->text[to - h->from] == '\n';
    add_range(g, h->path, from, to, h->name, why);
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
    const bool heads = !g->a->fix.wanted && !asks_for_change(g->a, g->request);
    const double share = heads ? LEAST_HEAD_SHARE : LEAST_SHARE;
    char *home = heads ? NULL : agent__home_of_addition(g->a, g->request);
    code_index_search(tool_workspace_index(g->a->workspace), about,
        home    ? N_HOME_HITS
        : heads ? N_ASKED_HITS
                : N_HITS,
        &hits);
    const size_t before = g->n;
    for (uint32_t i = 0; i < hits.n && g->left >= LEAST_TOKENS; i++) {
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
            add_range(g, h->path, h->from, h->to, h->name ? h->name : "", why.data);
        base_buf_free(&why);
    }
    free(home);
    code_hits_free(&hits);
}

/* The function that has to change, alone: beside another one a small model mixes the two. */
static void add_meant(gathering *g)
{
    const agent_meant *m = &g->a->asked.meant[0];
    add_range(g, m->path, m->from, m->to, m->name, "the request seems to be about it");
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
        rc = append_plain(a, a->notes.shell.data, "! line", err);
        base_buf_clear(&a->notes.shell);
    }
    if (!rc && a->notes.map.len) {
        rc = append_plain(a, a->notes.map.data, "/map", err);
        base_buf_clear(&a->notes.map);
    }
    if (!rc && a->notes.skill.len) {
        rc = append_plain(a, a->notes.skill.data, "skill", err);
        base_buf_clear(&a->notes.skill);
    }
    const bool is_of_use = budget && !a->fix.wanted && add_asked_uses(&g);
    if (budget && !a->fix.wanted && !is_of_use && !speaks_of_change(request)) add_asked_callers(&g);
    if (!a->asked.is_operation) add_mentions(&g);
    /* A failing test with its program in view needs nothing else; more only distracts a small model. */
    bool complete = a->fix.wanted && g.n_files >= 2;
    if (budget && !complete && a->asked.n_meant)
        add_meant(&g);
    else if (budget && !complete && !a->asked.is_operation && has_content(request))
        add_hits(&g);
    int appended = append_chosen(&g, err);
    return rc ? rc : appended;
}
