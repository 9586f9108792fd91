/*
 * "Explain this diff", "review my changes", "what changed since v1.2": what git knows of it goes in front of the request, as many
 * files as have room, and the person is told what has none. Where nothing has changed, or the commit that the request names is none,
 * that is the answer: a small model would tell of changes all the same.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/retrieve/retrieve.h"
#include "agent/sequence/sequence.h"
#include "agent/session/tell.h"
#include "agent/words/request_words.h"
#include "base/mem.h"
#include "base/numbers.h"
#include "base/show.h"
#include "base/utf8.h"
#include "tools/commit.h"

/* --- what a request asks for ------------------------------------------------------------------------------ */

typedef enum look_kind { LOOK_NONE, LOOK_WORKING, LOOK_STAGED, LOOK_SINCE } look_kind;

typedef struct look {
    look_kind kind;
    char *rev;     /* of LOOK_SINCE; owned */
    bool is_alone; /* the request asks for nothing else */
} look;

static const char *const asking[] = {"explain", "review", "summarise", "summarize", "summary", "describe",
    "look", "check", "what", "tell", "show", NULL};
/* Whose changes they are: what stands in front of "diff" and "changes". */
static const char *const ours[] = {"my", "this", "these", "the", "our", "current", "uncommitted", "unstaged",
    "staged", "git", "working", "latest", "whole", NULL};
static const char *const objects[] = {"diff", "diffs", "changes", "changed", NULL};
/* With those above, all that a request may hold that asks for the diff and nothing else. */
static const char *const besides[] = {"a", "please", "can", "could", "you", "me", "to", "for", "in", "at",
    "of", "is", "are", "do", "does", "did", "has", "have", "i", "we", "and", "it", "its", "all", "short",
    "briefly", "words", "plain", "few", "tree", "directory", "copy", "now", "here", "yet", "so", "far",
    "give", "on", "commit", "before", NULL};
/* "The diff function", "the changes table": the word in front says which one. */
static const char *const kinds[] = {"function", "functions", "method", "class", "struct", "type", "module",
    "macro", "command", "option", "file", "tool", "algorithm", "code", "parser", "view", "variable", "field",
    "parameter", "argument", "table", "test", "tests", "library", "package", NULL};

/* What a request calls instead of naming it. The caller frees; NULL: nothing of the kind, or there is no tag. */
static char *called_revision(const agent *a, const char *p)
{
    static const char *const last[] = {
        "the last ", "my last ", "last ", "the latest ", "the previous ", NULL};
    static const char *const releases[] = {"tag", "release", "version"};
    const char *what = NULL;
    for (size_t i = 0; last[i] && !what; i++)
        if (!strncasecmp(p, last[i], strlen(last[i]))) what = p + strlen(last[i]);
    if (!what) return NULL;
    if (!strncasecmp(what, "commit", strlen("commit"))) return base_xstrdup("HEAD");
    for (size_t i = 0; i < sizeof releases / sizeof *releases; i++)
        if (!strncasecmp(what, releases[i], strlen(releases[i]))) return tool_last_tag(a->workspace);
    return NULL;
}

/*
 * What stands behind "since": a word, without what ends a sentence, or "the last release". The caller frees; NULL: there is
 * nothing.
 */
static char *since_of(const agent *a, const char *request)
{
    const size_t at = agent__find_phrase(request, 0, "since");
    if (!at) return NULL;
    const char *p = request + at + strspn(request + at, " \t\n");
    char *called = called_revision(a, p);
    if (called) return called;
    static const char *const fillers[] = {"the tag ", "the commit ", "tag ", "commit ", "the branch ",
        "branch ", "the release ", "release ", "the version ", "version "};
    for (size_t i = 0; i < sizeof fillers / sizeof *fillers; i++)
        if (!strncasecmp(p, fillers[i], strlen(fillers[i]))) {
            p += strlen(fillers[i]);
            break;
        }
    p += strspn(p, "`\"'");
    size_t n = strcspn(p, " \t\n`\"',;:?!");
    while (n && p[n - 1] == '.') n--;
    return n ? base_xstrndup(p, n) : NULL;
}

/* Is this "diff" one that git makes, and nothing that the tree defines by that name? */
static bool is_gits(const agent *a, const char *request, agent_word w)
{
    agent_word next, before;
    const bool has_next = agent__next_word(request, w.to, &next);
    if (has_next && agent__is_any_word(request, next, kinds)) return false;
    if (request[w.to] == '(' || request[w.to] == '_' || (w.from && agent__is_mark(request[w.from - 1])))
        return false;
    if (request[w.to] == '.' && agent__is_in_word(request, w.to + 1)) return false; /* a file's name */
    const bool is_ours =
        agent__word_before(request, w.from, &before) && agent__is_any_word(request, before, ours);
    char *name = agent__copy_word(request, w);
    const bool is_defined = code_index_is_defined(tool_workspace_index(a->workspace), name);
    free(name);
    return is_ours || (!is_defined && w.to - w.from == strlen("diff"));
}

/* "what I changed", "what have I changed", "what changed". */
static bool says_what_changed(const char *request)
{
    static const char *const phrases[] = {"what i changed", "what we changed", "what have i changed",
        "what have we changed", "what has changed", "what changed", "what did i change",
        "what i have changed"};
    bool is_so = false;
    for (size_t i = 0; i < sizeof phrases / sizeof *phrases && !is_so; i++)
        is_so = agent__find_phrase(request, 0, phrases[i]) > 0;
    return is_so;
}

static bool is_alone(const char *request)
{
    agent_word w = {0};
    while (agent__next_word(request, w.to, &w))
        if (!agent__is_any_word(request, w, asking) && !agent__is_any_word(request, w, ours) &&
            !agent__is_any_word(request, w, objects) && !agent__is_any_word(request, w, besides))
            return false;
    return true;
}

static look look_for(const agent *a, const char *request)
{
    look l = {0};
    const bool is_history = agent__find_phrase(request, 0, "changed since") ||
                            agent__find_phrase(request, 0, "changes since") ||
                            agent__find_phrase(request, 0, "diff since");
    l.rev = is_history ? since_of(a, request) : NULL;
    l.is_alone = !agent_asks_for_change(request) && (l.rev || is_alone(request));
    if (l.rev) l.kind = LOOK_SINCE;
    if (l.rev || !agent__has_any_word(request, asking)) return l;
    bool is_named =
        agent__find_phrase(request, 0, "working tree") || (says_what_changed(request) && l.is_alone);
    agent_word w = {0};
    while (!is_named && agent__next_word(request, w.to, &w))
        is_named = agent__is_any_word(request, w, objects) && is_gits(a, request, w);
    const bool is_staged = agent__has_word(request, "staged");
    if (is_named || (is_staged && l.is_alone)) l.kind = is_staged ? LOOK_STAGED : LOOK_WORKING;
    return l;
}

bool agent__asks_about_changes(const agent *a, const char *request)
{
    const look l = look_for(a, request);
    free(l.rev);
    return l.kind != LOOK_NONE;
}

/* --- in front of the request ------------------------------------------------------------------------------ */

enum { MOST_NAMED = 12, LEAST_PART = 400 };

/* A list of names that ends somewhere. */
typedef struct left_out {
    base_buf names;
    uint32_t n;
    size_t n_lines;
} left_out;

static void leave_out(left_out *l, const tool_patch *p, const char *why)
{
    l->n_lines += p->n_added + p->n_removed;
    if (l->n++ >= MOST_NAMED) return;
    base_buf_puts(&l->names, l->n > 1 ? ", " : "");
    base_show(&l->names, p->path, strlen(p->path), BASE_SHOW_UTF8);
    base_buf_printf(&l->names, " (%s)", why);
}

/* As many files as have room, in git's order; of the first that has none its beginning, where nothing else stands. */
static void put_fitting(agent *a, const tool_patches *p, size_t room, base_buf *out, left_out *left)
{
    size_t used = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        const tool_patch *f = &p->items[i];
        const size_t to = i + 1 < p->n ? p->items[i + 1].from : p->text.len, n = to - f->from;
        const char *stays = agent__why_stays(a, f->path), *text = p->text.data + f->from;
        char size[64];
        snprintf(size, sizeof size, "+%zu -%zu", f->n_added, f->n_removed);
        if (stays) {
            leave_out(left, f, stays);
        } else if (!n) {
            leave_out(left, f, p->is_cut ? "not read" : "a folder or empty");
        } else if (used + n <= room) {
            agent__put_headed(a, text, n, out);
            used += n;
        } else if (!used && room > LEAST_PART) {
            const char *cut = memrchr(text, '\n', room);
            used = cut ? (size_t)(cut - text) + 1 : base_utf8_whole(text, room);
            agent__put_headed(a, text, used, out);
            base_buf_puts(out, "\n[the rest of this file is left out]\n");
            snprintf(size, sizeof size, "all but its first %zu of %zu bytes; +%zu -%zu", used, n, f->n_added,
                f->n_removed);
            used = room;
            leave_out(left, f, size);
        } else {
            leave_out(left, f, size);
        }
    }
    if (left->n > MOST_NAMED) base_buf_printf(&left->names, " and %u more", left->n - MOST_NAMED);
}

static void put_what(const look *l, base_buf *out)
{
    static const char *const words[] = {
        [LOOK_WORKING] = "git diff", [LOOK_STAGED] = "git diff --cached", [LOOK_SINCE] = "git diff "};
    base_buf_puts(out, words[l->kind]);
    if (l->rev) base_show(out, l->rev, strlen(l->rev), BASE_SHOW_UTF8);
}

static int append_text(agent *a, base_buf *text, const char *label, base_err *err)
{
    agent_text t = {.origin = KV_ORIGIN_TOOL, .text = text->data, .n = text->len, .label = label};
    const int rc = agent__append(a, &t, NULL, err);
    base_buf_free(text);
    return rc;
}

static int append_patches(agent *a, const look *l, const tool_patches *p, size_t room, base_err *err)
{
    base_buf text = {0}, what = {0};
    left_out left = {0};
    size_t n_lines = 0;
    for (uint32_t i = 0; i < p->n; i++) n_lines += p->items[i].n_added + p->items[i].n_removed;
    put_what(l, &what);
    base_buf_printf(&text, "%s (%u file%s):\n", what.data, p->n, p->n == 1 ? "" : "s");
    put_fitting(a, p, room, &text, &left);
    if (left.n) {
        base_buf_printf(&text, "[left out: %s]\n", left.names.data);
        agent__notice(a,
            "of %s, %u of %u files (%s of %s%s changed lines) are not, or not whole, in front of the model: %s",
            what.data, left.n, p->n, BASE_THOUSANDS(left.n_lines), p->is_cut ? "more than " : "",
            BASE_THOUSANDS(n_lines), left.names.data);
    }
    base_buf_puts(&text, "\n");
    base_buf_free(&what);
    base_buf_free(&left.names);
    return append_text(a, &text, "git diff", err);
}

/* The commits behind rev, as git's tool lists them; the person is told of those that are not listed. */
static int append_log(agent *a, const char *rev, size_t n_commits, size_t *room, base_err *err)
{
    enum { SHOWN = 30 }; /* tool_git.c */
    const tool_entry *git = tool_find("git");
    base_json_doc *arguments = NULL;
    base_buf json = {0}, text = {0}, range = {0};
    tool_preview none = {0};
    tool_result result = {.exit_code = -1};
    base_buf_printf(&range, "%s..HEAD", rev);
    base_buf_puts(&json, "{\"op\":\"log\",\"rev\":");
    base_json_put_str(&json, range.data, range.len);
    base_buf_putc(&json, '}');
    tool_limits limits = {.result_bytes = *room, .cancel = a->cancel};
    int rc = base_json_parse(json.data, json.len, &arguments, err);
    tool_call call = {
        .name = "git", .arguments = arguments ? base_json_root(arguments) : NULL, .request = a->request};
    if (!rc) rc = git->run(a->workspace, &call, &limits, &none, &result, err);
    if (!rc) {
        const size_t most = *room / 2,
                     n = result.text.len > most ? base_utf8_whole(result.text.data, most) : result.text.len;
        base_buf_printf(&text, "git log %s (%s%s commits):\n", range.data,
            n_commits == TOOL_MOST_COUNTED ? "at least " : "", BASE_THOUSANDS(n_commits));
        base_buf_add(&text, result.text.data ? result.text.data : "", n);
        base_buf_puts(&text, "\n\n");
        *room -= n;
        if (n_commits > SHOWN)
            agent__notice(a, "of the %s%s commits since %s the newest %d are in front of the model",
                n_commits == TOOL_MOST_COUNTED ? "at least " : "", BASE_THOUSANDS(n_commits), rev, SHOWN);
        rc = append_text(a, &text, "git log", err);
    }
    base_json_free(arguments);
    base_buf_free(&json);
    base_buf_free(&range);
    tool_result_free(&result);
    return rc;
}

static int take_patches(agent *a, const look *l, tool_patches *ret, base_err *err)
{
    tool_staged staged;
    if (l->kind != LOOK_STAGED) return tool_patches_since(a->workspace, l->rev, a->cancel, ret, err);
    const int rc = tool_commit_look(a->workspace, 0, &staged, err);
    if (rc) return rc;
    *ret = staged.patches;
    staged.patches = (tool_patches){0};
    tool_staged_free(&staged);
    return 0;
}

static void put_nothing(const look *l, base_buf *out)
{
    if (!l->rev) {
        base_buf_puts(out, "Nothing has changed: the working tree is as it was committed last.");
        return;
    }
    base_buf_puts(out, "Nothing has changed since ");
    base_show(out, l->rev, strlen(l->rev), BASE_SHOW_UTF8);
    base_buf_puts(out, ": no commits, and the working tree is the same.");
}

/* A sentence as a person reads it: with a capital and a full stop. */
static void put_sentence(const char *why, base_buf *out)
{
    const size_t n = strlen(why), at = out->len;
    base_buf_add(out, why, n);
    if (n && out->data[at] >= 'a' && out->data[at] <= 'z') out->data[at] = (char)(out->data[at] - 'a' + 'A');
    if (n && why[n - 1] != '.') base_buf_putc(out, '.');
}

int agent__append_changes(agent *a, const char *request, bool *ret_has, base_buf *answer, base_err *err)
{
    const look l = look_for(a, request);
    tool_patches patches = {0};
    base_err why = {0};
    base_buf said = {0};
    int rc = take_patches(a, &l, &patches, &why);
    const size_t n_commits = !rc && l.rev ? tool_commits_since(a->workspace, l.rev, a->cancel) : 0;
    size_t room = agent__room_bytes(a);
    if (rc == BASE_E_CANCELLED) {
        *err = why;
    } else if (rc) {
        rc = 0;
        put_sentence(why.msg, &said);
    } else if (!patches.n && !n_commits) {
        put_nothing(&l, &said);
    } else {
        if (n_commits) rc = append_log(a, l.rev, n_commits, &room, err);
        if (!rc) rc = append_patches(a, &l, &patches, room, err);
    }
    *ret_has = !said.len;
    if (said.len && l.is_alone)
        base_buf_add(answer, said.data, said.len);
    else if (said.len)
        agent__notice(a, "%s", said.data);
    base_buf_free(&said);
    tool_patches_free(&patches);
    free(l.rev);
    return rc;
}
