/* See patches.h. libgit2 reads objects and files and runs nothing; each comparison has an end (tree/git_bound.h). */
#include "tools/patches.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "tools/tree/git_bound.h"
#include "tools/tree/listing.h"
#include "tools/tree/revisions.h"
#include "tools/tree/workspace.h"

enum { MAX_TEXT = 1 << 20 };

void tool_patches_free(tool_patches *p)
{
    base_buf_free(&p->text);
    for (uint32_t i = 0; i < p->n; i++) free(p->items[i].path);
    free(p->items);
    *p = (tool_patches){0};
}

static const char *path_of(const git_diff_delta *d)
{
    return d->new_file.path ? d->new_file.path : d->old_file.path;
}

static int put_line(
    const git_diff_delta *delta, const git_diff_hunk *hunk, const git_diff_line *line, void *user)
{
    tool_patches *p = user;
    if (p->text.len > MAX_TEXT) {
        p->is_cut = true;
        return 1;
    }
    if (line->origin == GIT_DIFF_LINE_FILE_HDR) {
        uint32_t i = p->n_begun;
        while (i < p->n && strcmp(p->items[i].path, path_of(delta))) i++;
        for (; i < p->n && p->n_begun <= i; p->n_begun++) p->items[p->n_begun].from = p->text.len;
    }
    tool_patch *now = p->n_begun ? &p->items[p->n_begun - 1] : NULL;
    if (now) now->n_added += line->origin == GIT_DIFF_LINE_ADDITION;
    if (now) now->n_removed += line->origin == GIT_DIFF_LINE_DELETION;
    if (line->origin == GIT_DIFF_LINE_CONTEXT || line->origin == GIT_DIFF_LINE_ADDITION ||
        line->origin == GIT_DIFF_LINE_DELETION)
        base_buf_putc(&p->text, line->origin);
    /* One line may be longer than all that is kept. */
    const size_t room = p->text.len < MAX_TEXT ? MAX_TEXT - p->text.len : 0;
    p->is_cut = p->is_cut || line->content_len > room;
    base_buf_add(&p->text, line->content,
        line->content_len > room ? base_utf8_whole(line->content, room) : line->content_len);
    if (line->content_len > room) base_buf_putc(&p->text, '\n');
    return 0;
}

void tool_patches_take(git_diff *diff, tool_patches *ret)
{
    ret->n = (uint32_t)git_diff_num_deltas(diff);
    ret->items = base_xcalloc(ret->n + 1, sizeof *ret->items);
    for (uint32_t i = 0; i < ret->n; i++) {
        const git_diff_delta *d = git_diff_get_delta(diff, i);
        ret->items[i] =
            (tool_patch){.path = base_xstrdup(path_of(d)), .how = git_diff_status_char(d->status)};
    }
    git_diff_print(diff, GIT_DIFF_FORMAT_PATCH, put_line, ret);
    for (uint32_t i = ret->n_begun; i < ret->n; i++) ret->items[i].from = ret->text.len;
}

/* In the middle of a merge the index has three sides of a file, of which libgit2 makes no patch. */
static bool is_in_conflict(git_repository *repo)
{
    git_index *index = NULL;
    const bool is = !git_repository_index(&index, repo) && git_index_has_conflicts(index);
    git_index_free(index);
    return is;
}

/* Compares the tree (NULL: an empty one) with the files. Without the new ones where those alone are too many. */
static int compare(git_repository *repo, git_tree *tree, tool_git_bound *bound, git_diff **ret)
{
    static const uint32_t news[] = {
        GIT_DIFF_INCLUDE_UNTRACKED | GIT_DIFF_RECURSE_UNTRACKED_DIRS | GIT_DIFF_SHOW_UNTRACKED_CONTENT, 0};
    const bool has_index = !is_in_conflict(repo);
    int failed = -1;
    for (size_t i = 0; failed && i < sizeof news / sizeof *news; i++) {
        git_diff_options options = GIT_DIFF_OPTIONS_INIT;
        options.flags = GIT_DIFF_INDENT_HEURISTIC | news[i];
        options.ignore_submodules = GIT_SUBMODULE_IGNORE_ALL;
        options.max_size = (git_off_t)TOOL_MAX_FILE;
        if (i && !bound->is_over) break;
        bound->is_over = false;
        bound->n_looked = bound->n_differ = 0;
        tool__git_bound(bound, &options);
        failed = has_index ? git_diff_tree_to_workdir_with_index(ret, repo, tree, &options)
                           : git_diff_tree_to_workdir(ret, repo, tree, &options);
    }
    return failed;
}

int tool_patches_since(
    tool_workspace *w, const char *rev, const atomic_bool *cancel, tool_patches *ret, base_err *err)
{
    git_diff *diff = NULL;
    git_tree *tree = NULL;
    *ret = (tool_patches){0};
    if (!w->repo || w->root.is_bare)
        return base_fail(err, BASE_E_STATE, "this folder is not a git repository with files");
    tool_git_bound bound = {.cancel = cancel}, *before = tool__git_bound_begin(&bound);
    const bool is_first = !rev && git_repository_head_unborn(w->repo) == 1;
    git_commit *c = is_first ? NULL : tool__revision_find(w->repo, rev ? rev : "HEAD");
    const bool is_none = !is_first && !c;
    int failed = c ? git_commit_tree(&tree, c) : 0;
    if (!failed && !is_none) failed = compare(w->repo, tree, &bound, &diff);
    if (diff && !failed) failed = git_diff_find_similar(diff, NULL);
    if (diff) tool_patches_take(diff, ret);
    tool__git_bound_end(before);
    git_diff_free(diff);
    git_tree_free(tree);
    git_commit_free(c);
    if (cancel && atomic_load(cancel)) return base_fail(err, BASE_E_CANCELLED, "interrupted");
    if (bound.is_large)
        return base_fail(err, BASE_E_LIMIT,
            "an object that is compared takes more than %zu MiB when it is unpacked",
            TOOL_GIT_MOST_BYTES >> 20);
    if (bound.is_over)
        return base_fail(
            err, BASE_E_LIMIT, "more than %d files differ, which are not compared", TOOL_MAX_FILES);
    if (is_none) {
        base_buf why = {0};
        tool__revision_tell_none(w->repo, rev ? rev : "HEAD", &why);
        base_fail(err, BASE_E_NOT_FOUND, "%s", why.data);
        base_buf_free(&why);
        return BASE_E_NOT_FOUND;
    }
    if (!failed && is_first && !ret->n)
        return base_fail(err, BASE_E_STATE, "there is no commit here yet, and no file that one could hold");
    const git_error *e = failed ? git_error_last() : NULL;
    if (failed)
        return base_fail(err, BASE_E_IO, "the changes cannot be read: %s",
            e && e->message ? e->message : "git gives no reason");
    return BASE_OK;
}

size_t tool_commits_since(tool_workspace *w, const char *rev, const atomic_bool *cancel)
{
    if (!w->repo) return 0;
    tool_git_bound bound = {.cancel = cancel}, *before = tool__git_bound_begin(&bound);
    const size_t n = tool__revision_count(w->repo, rev, TOOL_MOST_COUNTED, cancel);
    tool__git_bound_end(before);
    return n;
}

char *tool_last_tag(tool_workspace *w)
{
    git_describe_options options = GIT_DESCRIBE_OPTIONS_INIT;
    git_describe_format_options form = GIT_DESCRIBE_FORMAT_OPTIONS_INIT;
    git_describe_result *found = NULL;
    git_object *head = NULL;
    git_buf name = {0};
    char *ret = NULL;
    options.describe_strategy = GIT_DESCRIBE_TAGS;
    form.abbreviated_size = 0;
    if (!w->repo) return NULL;
    tool_git_bound bound = {0}, *before = tool__git_bound_begin(&bound);
    if (!git_revparse_single(&head, w->repo, "HEAD") && !git_describe_commit(&found, head, &options) &&
        !git_describe_format(&name, found, &form))
        ret = base_xstrdup(name.ptr);
    tool__git_bound_end(before);
    git_buf_dispose(&name);
    git_describe_result_free(found);
    git_object_free(head);
    return ret;
}
