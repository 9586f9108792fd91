/*
 * git {op, path?, rev?}: status, diff, log, show, blame as text, by libgit2. Nothing is run and nothing is
 * written; each op stops at a bound, because a history may be longer than any context.
 */
#include "tools/file/text.h"
#include "tools/result/result.h"
#include "tools/file/safe_path.h"
#include "tools/tree/workspace.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "tools/tree/git_bound.h"
#include "tools/tree/listing.h"
#include "tools/tree/revisions.h"

#define MAX_ENTRIES 200
#define MAX_COMMITS 30
#define MAX_WALK    20000 /* commits looked at for a path's log */
#define MAX_DIFF    ((size_t)1 << 20)
#define BLAME_LINES 120
#define MAX_BLAMED  ((size_t)2 << 20)

typedef struct view {
    tool_workspace *w;
    git_repository *repo;
    const char *path; /* clean; "" none */
    const char *rev;  /* NULL: none */
    const tool_call *call;
    const tool_limits *limits;
    tool_git_bound bound; /* of the comparison that is made */
    tool_result *r;
} view;

static int fail_git(view *v, const char *what)
{
    const git_error *e = git_error_last();
    if (v->bound.is_over) {
        tool__say(v->r, TOOL_FAILED, "%s: more files differ than are compared (%d). Give \"path\".\n", what,
            TOOL_MAX_FILES);
        return -1;
    }
    tool__say(v->r, TOOL_FAILED, "%s: %s.\n", what, e && e->message ? e->message : "git gives no reason");
    return -1;
}

/* ---- small parts ---- */

static void put_date(base_buf *out, const git_signature *s)
{
    time_t t = (time_t)s->when.time + s->when.offset * 60;
    struct tm day;
    char text[32] = "?";
    if (gmtime_r(&t, &day)) strftime(text, sizeof text, "%Y-%m-%d", &day);
    base_buf_puts(out, text);
}

static void put_commit(base_buf *out, git_commit *c)
{
    char id[GIT_OID_HEXSZ + 1];
    git_oid_tostr(id, sizeof id, git_commit_id(c));
    const git_signature *author = git_commit_author(c);
    const char *summary = git_commit_summary(c);
    base_buf_printf(out, "%.8s ", id);
    if (author) put_date(out, author);
    base_buf_printf(
        out, " %.40s: %.200s\n", author && author->name ? author->name : "?", summary ? summary : "");
}

/* One line of a diff into the result; stops (1) at the bound. */
static int put_line(
    const git_diff_delta *delta, const git_diff_hunk *hunk, const git_diff_line *line, void *user)
{
    view *v = user;
    if (v->r->text.len > MAX_DIFF || tool__cancelled(v->limits)) return 1;
    if (line->origin == GIT_DIFF_LINE_CONTEXT || line->origin == GIT_DIFF_LINE_ADDITION ||
        line->origin == GIT_DIFF_LINE_DELETION)
        base_buf_putc(&v->r->text, line->origin);
    base_buf_add(&v->r->text, line->content, line->content_len);
    return 0;
}

static void put_diff(view *v, git_diff *diff)
{
    size_t before = v->r->text.len;
    git_diff_print(diff, GIT_DIFF_FORMAT_PATCH, put_line, v);
    v->r->status = TOOL_OK;
    if (v->r->text.len == before && !v->bound.is_large) base_buf_puts(&v->r->text, "No differences.\n");
    if (v->r->text.len > MAX_DIFF) base_buf_puts(&v->r->text, "\n[the rest is left out; give \"path\"]\n");
}

static void diff_options(view *v, git_diff_options *options, char **paths)
{
    options->flags = GIT_DIFF_INDENT_HEURISTIC | GIT_DIFF_DISABLE_PATHSPEC_MATCH;
    options->ignore_submodules = GIT_SUBMODULE_IGNORE_ALL;
    options->max_size = (git_off_t)TOOL_MAX_FILE;
    tool__git_bound(&v->bound, options);
    if (!*v->path) return;
    paths[0] = (char *)v->path;
    options->pathspec = (git_strarray){.strings = paths, .count = 1};
}

static git_commit *commit_of(view *v, const char *rev)
{
    git_commit *c = tool__revision_find(v->repo, rev);
    if (c) return c;
    if (!strcmp(rev, "HEAD") && git_repository_head_unborn(v->repo) == 1) {
        tool__say(v->r, TOOL_FAILED, "There is no commit here yet.\n");
        return NULL;
    }
    base_buf why = {0};
    tool__revision_tell_none(v->repo, rev, &why);
    tool__say(v->r, TOOL_FAILED, "%s Next: git {\"op\": \"log\"}\n", why.data);
    base_buf_free(&why);
    return NULL;
}

static git_tree *tree_of(view *v, const char *rev)
{
    git_commit *c = commit_of(v, rev);
    git_tree *t = NULL;
    if (c && git_commit_tree(&t, c)) fail_git(v, "git");
    git_commit_free(c);
    return t;
}

/* ---- the ops ---- */

/* libgit2's status takes no bound, so what of it has no end by itself is compared before. */
static bool has_end(view *v)
{
    git_object *tree = NULL;
    git_index *index = NULL;
    git_diff *diff = NULL;
    git_diff_options options = GIT_DIFF_OPTIONS_INIT;
    char *paths[1];
    diff_options(v, &options, paths);
    if (!git_revparse_single(&tree, v->repo, "HEAD^{tree}") && !git_repository_index(&index, v->repo))
        git_diff_tree_to_index(&diff, v->repo, (git_tree *)tree, index, &options);
    git_diff_free(diff);
    git_index_free(index);
    git_object_free(tree);
    return !v->bound.is_over;
}

static void op_status(view *v)
{
    git_status_list *list = NULL;
    git_status_options options = GIT_STATUS_OPTIONS_INIT;
    options.flags = GIT_STATUS_OPT_INCLUDE_UNTRACKED | GIT_STATUS_OPT_EXCLUDE_SUBMODULES |
                    GIT_STATUS_OPT_NO_REFRESH | GIT_STATUS_OPT_DISABLE_PATHSPEC_MATCH;
    char *paths[1] = {(char *)v->path};
    if (*v->path) options.pathspec = (git_strarray){.strings = paths, .count = 1};
    base_buf_puts(&v->r->text, "On ");
    tool_workspace_branch(v->w, &v->r->text);
    base_buf_putc(&v->r->text, '\n');
    if (!has_end(v) || git_status_list_new(&list, v->repo, &options)) {
        fail_git(v, "git status");
        return;
    }
    size_t n = git_status_list_entrycount(list);
    for (size_t i = 0; i < n && i < MAX_ENTRIES; i++) {
        const git_status_entry *e = git_status_byindex(list, i);
        const git_diff_delta *d = e->index_to_workdir ? e->index_to_workdir : e->head_to_index;
        if (!d) continue;
        unsigned s = e->status;
        char staged = s & GIT_STATUS_INDEX_NEW          ? 'A'
                      : s & GIT_STATUS_INDEX_MODIFIED   ? 'M'
                      : s & GIT_STATUS_INDEX_DELETED    ? 'D'
                      : s & GIT_STATUS_INDEX_RENAMED    ? 'R'
                      : s & GIT_STATUS_INDEX_TYPECHANGE ? 'T'
                                                        : ' ';
        char here = s & GIT_STATUS_CONFLICTED      ? 'U'
                    : s & GIT_STATUS_WT_NEW        ? '?'
                    : s & GIT_STATUS_WT_MODIFIED   ? 'M'
                    : s & GIT_STATUS_WT_DELETED    ? 'D'
                    : s & GIT_STATUS_WT_TYPECHANGE ? 'T'
                                                   : ' ';
        base_buf_printf(&v->r->text, "%c%c ", here == '?' ? '?' : staged, here);
        tool__path_show(&v->r->text, d->new_file.path ? d->new_file.path : d->old_file.path);
        base_buf_putc(&v->r->text, '\n');
    }
    if (n > MAX_ENTRIES) base_buf_printf(&v->r->text, "[%zu more]\n", n - MAX_ENTRIES);
    if (!n) base_buf_puts(&v->r->text, "Nothing changed since the last commit.\n");
    v->r->status = TOOL_OK;
    git_status_list_free(list);
}

/* A diff has no text of files that git does not follow: they are named, or the model would take them for none. */
static void put_untracked(view *v, const git_diff *diff)
{
    size_t n = 0;
    for (size_t i = 0; i < git_diff_num_deltas(diff); i++) {
        const git_diff_delta *d = git_diff_get_delta(diff, i);
        if (d->status != GIT_DELTA_UNTRACKED || n++ >= MAX_ENTRIES) continue;
        base_buf_puts(&v->r->text, n == 1 ? "New files that git does not follow yet: " : ", ");
        tool__path_show(&v->r->text, d->new_file.path);
    }
    if (n > MAX_ENTRIES) base_buf_printf(&v->r->text, " and %zu more", n - MAX_ENTRIES);
    if (n) base_buf_putc(&v->r->text, '\n');
}

static void op_diff(view *v)
{
    git_diff *diff = NULL;
    git_diff_options options = GIT_DIFF_OPTIONS_INIT;
    char *paths[1];
    diff_options(v, &options, paths);
    const char *dots = v->rev ? strstr(v->rev, "..") : NULL;
    if (!dots) options.flags |= GIT_DIFF_INCLUDE_UNTRACKED;
    int failed = 0;
    git_tree *a = NULL, *b = NULL;
    if (dots) {
        char *from = base_xstrndup(v->rev, (size_t)(dots - v->rev));
        const char *to = dots[2] == '.' ? dots + 3 : dots + 2;
        a = tree_of(v, *from ? from : "HEAD");
        b = a ? tree_of(v, *to ? to : "HEAD") : NULL;
        free(from);
        failed = b ? git_diff_tree_to_tree(&diff, v->repo, a, b, &options) : -1;
    } else if (git_repository_head_unborn(v->repo) == 1 && !v->rev) {
        failed = git_diff_index_to_workdir(&diff, v->repo, NULL, &options);
    } else {
        a = tree_of(v, v->rev ? v->rev : "HEAD");
        failed = a ? git_diff_tree_to_workdir_with_index(&diff, v->repo, a, &options) : -1;
    }
    if (!failed)
        put_diff(v, diff);
    else if (!v->r->text.len)
        fail_git(v, "git diff");
    if (!failed) put_untracked(v, diff);
    git_diff_free(diff);
    git_tree_free(a);
    git_tree_free(b);
}

/* Did this commit change the path against its first parent? */
static bool touches(view *v, git_commit *c)
{
    git_tree *now = NULL, *before = NULL;
    git_tree_entry *a = NULL, *b = NULL;
    git_commit *parent = NULL;
    bool has = !git_commit_tree(&now, c) && !git_tree_entry_bypath(&a, now, v->path), had = false;
    if (git_commit_parentcount(c) && !git_commit_parent(&parent, c, 0) && !git_commit_tree(&before, parent))
        had = !git_tree_entry_bypath(&b, before, v->path);
    bool is_touched =
        has != had || (has && had && git_oid_cmp(git_tree_entry_id(a), git_tree_entry_id(b)) != 0);
    git_tree_entry_free(a);
    git_tree_entry_free(b);
    git_tree_free(now);
    git_tree_free(before);
    git_commit_free(parent);
    return is_touched;
}

/* "a..b" without a side means HEAD on it. Says which of the two names no commit. */
static int push_range(view *v, git_revwalk *walk)
{
    const char *dots = strstr(v->rev, ".."), *to = dots + (dots[2] == '.' ? 3 : 2);
    char *from = base_xstrndup(v->rev, (size_t)(dots - v->rev));
    git_commit *a = commit_of(v, *from ? from : "HEAD"), *b = a ? commit_of(v, *to ? to : "HEAD") : NULL;
    int failed = b ? git_revwalk_push(walk, git_commit_id(b)) : -1;
    if (!failed) failed = git_revwalk_hide(walk, git_commit_id(a));
    git_commit_free(a);
    git_commit_free(b);
    free(from);
    return failed;
}

/* Which commits the walk did not show, by their number where it is known. */
static void put_older(view *v, git_revwalk *walk)
{
    git_oid id;
    size_t n = 1;                      /* the one that had no room */
    const bool is_counted = !*v->path; /* which of them touch a path is not looked at */
    while (is_counted && n < MAX_WALK && !tool__cancelled(v->limits) && !git_revwalk_next(&id, walk)) n++;
    if (is_counted)
        base_buf_printf(&v->r->text, "[%s%zu older commit%s left out; give \"rev\"]\n",
            n == MAX_WALK ? "at least " : "", n, n == 1 ? "" : "s");
    else
        base_buf_puts(&v->r->text, "[older commits left out; give \"rev\"]\n");
}

static void op_log(view *v)
{
    git_revwalk *walk = NULL;
    git_oid id;
    if (git_revwalk_new(&walk, v->repo)) {
        fail_git(v, "git log");
        return;
    }
    git_revwalk_sorting(walk, GIT_SORT_TIME);
    int failed = !v->rev ? git_revwalk_push_head(walk) : 0;
    if (v->rev && strstr(v->rev, "..")) {
        failed = push_range(v, walk);
    } else if (v->rev) {
        git_commit *c = commit_of(v, v->rev);
        failed = c ? git_revwalk_push(walk, git_commit_id(c)) : -1;
        git_commit_free(c);
    }
    int shown = 0;
    bool more = false;
    for (int looked = 0; !failed && !more && looked < MAX_WALK && !git_revwalk_next(&id, walk); looked++) {
        git_commit *c = NULL;
        if (tool__cancelled(v->limits)) break;
        if (git_commit_lookup(&c, v->repo, &id)) continue;
        if (!*v->path || touches(v, c)) {
            more = shown == MAX_COMMITS;
            if (!more) put_commit(&v->r->text, c);
            shown++;
        }
        git_commit_free(c);
    }
    if (failed) {
        if (!v->r->text.len) tool__say(v->r, TOOL_FAILED, "There is no commit here yet.\n");
    } else {
        if (more) put_older(v, walk);
        if (!shown && !v->bound.is_large) base_buf_puts(&v->r->text, "No commits.\n");
        v->r->status = TOOL_OK;
    }
    git_revwalk_free(walk);
}

/* "rev:path" or rev with path: the file as it was then. */
static bool show_blob(view *v)
{
    base_buf spec = {0};
    git_object *o = NULL;
    if (v->rev && strchr(v->rev, ':'))
        base_buf_puts(&spec, v->rev);
    else
        base_buf_printf(&spec, "%s:%s", v->rev ? v->rev : "HEAD", v->path);
    bool found = !git_revparse_single(&o, v->repo, spec.data) && git_object_type(o) == GIT_OBJECT_BLOB;
    if (found) {
        git_blob *blob = (git_blob *)o;
        size_t n = (size_t)git_blob_rawsize(blob);
        if (git_blob_is_binary(blob))
            base_buf_printf(&v->r->text, "%s is binary (%zu bytes).\n", spec.data, n);
        else
            base_buf_add(&v->r->text, git_blob_rawcontent(blob), n < MAX_DIFF ? n : MAX_DIFF);
        v->r->status = TOOL_OK;
    }
    git_object_free(o);
    base_buf_free(&spec);
    return found;
}

static void op_show(view *v)
{
    if ((*v->path || (v->rev && strchr(v->rev, ':'))) && show_blob(v)) return;
    git_commit *c = commit_of(v, v->rev ? v->rev : "HEAD"), *parent = NULL;
    git_tree *now = NULL, *before = NULL;
    git_diff *diff = NULL;
    if (!c) return;
    put_commit(&v->r->text, c);
    const char *body = git_commit_body(c);
    if (body) base_buf_printf(&v->r->text, "\n%.4000s\n", body);
    base_buf_putc(&v->r->text, '\n');
    if (git_commit_parentcount(c) && !git_commit_parent(&parent, c, 0)) git_commit_tree(&before, parent);
    git_diff_options options = GIT_DIFF_OPTIONS_INIT;
    char *paths[1];
    diff_options(v, &options, paths);
    if (git_commit_tree(&now, c) || git_diff_tree_to_tree(&diff, v->repo, before, now, &options))
        fail_git(v, "git show");
    else
        put_diff(v, diff);
    git_diff_free(diff);
    git_tree_free(now);
    git_tree_free(before);
    git_commit_free(parent);
    git_commit_free(c);
}

static void op_blame(view *v)
{
    git_blame *blame = NULL;
    git_blame_options options = GIT_BLAME_OPTIONS_INIT;
    tool_file f = {0};
    base_err why = {0};
    if (!*v->path) {
        tool__say(
            v->r, TOOL_FAILED, "blame needs a file. Next: git {\"op\": \"blame\", \"path\": \"...\"}\n");
        return;
    }
    if (tool__file_read(&v->w->root, v->path, MAX_BLAMED, &f, &why)) {
        tool__say_path_error(v->w, v->r, "read", v->path, &why);
        return;
    }
    size_t lines = tool__count_lines(f.text.data, f.text.len),
           from = (size_t)tool__integer(v->call, "from", 1, 1, UINT32_MAX);
    size_t last = from + BLAME_LINES - 1 < lines ? from + BLAME_LINES - 1 : lines;
    if (git_blame_file(&blame, v->repo, v->path, &options)) {
        fail_git(v, "git blame");
    } else {
        for (size_t line = from; line <= last; line++) {
            const git_blame_hunk *h = git_blame_get_hunk_byline(blame, line);
            size_t at = tool__line_start(f.text.data, f.text.len, line);
            const char *end = at < f.text.len ? memchr(f.text.data + at, '\n', f.text.len - at) : NULL;
            size_t n = (end ? (size_t)(end - f.text.data) : f.text.len) - at;
            char id[GIT_OID_HEXSZ + 1] = "????????";
            if (h) git_oid_tostr(id, sizeof id, &h->final_commit_id);
            base_buf_printf(&v->r->text, "%.8s ", id);
            if (h && h->final_signature) put_date(&v->r->text, h->final_signature);
            base_buf_printf(&v->r->text, " %zu: %.*s\n", line, (int)(n < 160 ? n : 160), f.text.data + at);
        }
        if (last < lines)
            base_buf_printf(&v->r->text, "[%zu more lines; \"from\": %zu goes on]\n", lines - last, last + 1);
        v->r->status = TOOL_OK;
    }
    git_blame_free(blame);
    tool__file_free(&f);
}

static const struct {
    const char *name;
    void (*run)(view *v);
    bool needs_files;
} ops[] = {
    {"status", op_status, true},
    {"diff", op_diff, true},
    {"log", op_log, false},
    {"show", op_show, false},
    {"blame", op_blame, true},
};

/* Whatever an op made of it: behind what is shown something is missing, or it is why there is nothing. */
static void say_large(tool_result *r)
{
    static const char words[] =
        "An object is not read: unpacking it (or what it is made from) takes more than %zu MiB, or all of "
        "them together more than kvist unpacks at once. The person's own git can show it.\n";
    if (r->status != TOOL_OK) base_buf_clear(&r->text);
    base_buf_printf(&r->text, words, TOOL_GIT_MOST_BYTES >> 20);
}

static int run(tool_workspace *w, const tool_call *call, const tool_limits *limits, tool_preview *prepared,
    tool_result *ret, base_err *err)
{
    const char *op = tool__string(call, "op"), *given = tool__string(call, "path");
    char *path = NULL;
    base_err why = {0};
    size_t at = 0, n_ops = sizeof ops / sizeof *ops;
    ret->exit_code = -1;
    if (!op) op = "status";
    while (at < n_ops && strcmp(ops[at].name, op)) at++;
    if (!w->repo) {
        tool__say(
            ret, TOOL_REFUSED, "This folder is not a git tree (or git cannot read it). Next: list {}\n");
        return BASE_OK;
    }
    if (at == n_ops) {
        tool__say(ret, TOOL_FAILED,
            "git has no op \"%.40s\" here: status, diff, log, show, "
            "blame. For the rest: shell {\"command\": \"git ...\"}\n",
            op);
        return BASE_OK;
    }
    if (w->root.is_bare && ops[at].needs_files && !tool__string(call, "rev")) {
        tool__say(ret, TOOL_REFUSED, "A bare repository has no working files. Next: git {\"op\": \"log\"}\n");
        return BASE_OK;
    }
    if (given && w->root.is_bare)
        path = base_xstrdup(given);
    else if (given && tool__path_clean(&w->root, given, &path, &why)) {
        tool__say_path_error(w, ret, "git", given, &why);
        return BASE_OK;
    }
    view v = {.w = w,
        .repo = w->repo,
        .path = path ? path : "",
        .rev = tool__string(call, "rev"),
        .call = call,
        .limits = limits,
        .bound = {.cancel = limits->cancel},
        .r = ret};
    tool_git_bound *before = tool__git_bound_begin(&v.bound);
    ops[at].run(&v);
    tool__git_bound_end(before);
    if (v.bound.is_large) say_large(ret);
    tool__cap(w, ret, limits, 6);
    if (ret->status == TOOL_OK) tool__trace_output(w, ret, NULL, 0);
    free(path);
    return BASE_OK;
}

static const char *const operations[] = {"status", "diff", "log", "show", "blame", NULL};
static const tool_argument arguments[] = {
    {"op", TOOL_ARGUMENT_CHOICE, true, "what to show", operations, TOOL_FOR_ALL},
    {"path", TOOL_ARGUMENT_STRING, false, "file or folder", NULL, TOOL_FOR_ALL},
    {"rev", TOOL_ARGUMENT_STRING, false, "commit, branch or a..b", NULL, TOOL_FOR_ALL},
    {"from", TOOL_ARGUMENT_INTEGER, false, "first line of a blame", NULL, TOOL_FOR_ALL},
    {0},
};

const tool_entry tool__git = {
    .name = "git",
    .power = TOOL_READS,
    .about = "Look at the repository's state and history.",
    .arguments = arguments,
    .run = run,
};
