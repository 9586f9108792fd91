/* See revisions.h. A repository may have a hundred thousand tags, of which a sentence holds a few: the nearest by edits. */
#include "tools/tree/revisions.h"

#include <string.h>

#include "base/edits.h"
#include "base/mem.h"
#include "base/show.h"

enum { MAX_NEAR = 4, MOST_EDITS = 3 };

git_commit *tool__revision_find(git_repository *repo, const char *rev)
{
    git_object *o = NULL;
    git_commit *c = NULL;
    if (!git_revparse_single(&o, repo, rev)) git_object_peel((git_object **)&c, o, GIT_OBJECT_COMMIT);
    git_object_free(o);
    return c;
}

/* The nearest names so far, the best first. */
typedef struct near_names {
    const char *wanted;
    char *names[MAX_NEAR];
    unsigned edits[MAX_NEAR];
    size_t n;
} near_names;

/* A name that holds the wanted one ("1.2" of "release-1.2") is as near as one edit. */
static void offer(near_names *near, const char *name)
{
    unsigned edits = base_edits(near->wanted, name, MOST_EDITS);
    if (edits > 1 && strcasestr(name, near->wanted)) edits = 1;
    if (edits > MOST_EDITS || edits >= strlen(near->wanted)) return;
    size_t at = near->n;
    while (at && near->edits[at - 1] > edits) at--;
    if (at == MAX_NEAR) return;
    if (near->n == MAX_NEAR)
        free(near->names[MAX_NEAR - 1]);
    else
        near->n++;
    for (size_t i = near->n - 1; i > at; i--) {
        near->names[i] = near->names[i - 1];
        near->edits[i] = near->edits[i - 1];
    }
    near->names[at] = base_xstrdup(name);
    near->edits[at] = edits;
}

static int offer_tag(const char *ref, git_oid *id, void *user)
{
    static const char folder[] = "refs/tags/";
    offer(user, strncmp(ref, folder, strlen(folder)) ? ref : ref + strlen(folder));
    return 0;
}

static void offer_branches(git_repository *repo, near_names *near)
{
    git_branch_iterator *all = NULL;
    git_reference *ref = NULL;
    git_branch_t kind;
    if (git_branch_iterator_new(&all, repo, GIT_BRANCH_ALL)) return;
    while (!git_branch_next(&ref, &kind, all)) {
        const char *name = NULL;
        if (!git_branch_name(&name, ref)) offer(near, name);
        git_reference_free(ref);
    }
    git_branch_iterator_free(all);
}

/* Where no name is near: the last ones by their letters, which mostly are the newest versions. */
static void put_some_tags(git_repository *repo, base_buf *out)
{
    git_strarray tags = {0};
    if (git_tag_list(&tags, repo)) return;
    if (tags.count) base_buf_puts(out, tags.count > MAX_NEAR ? "; some of the tags: " : "; the tags here: ");
    const size_t from = tags.count > MAX_NEAR ? tags.count - MAX_NEAR : 0;
    for (size_t i = from; i < tags.count; i++) {
        if (i > from) base_buf_puts(out, ", ");
        base_show(out, tags.strings[i], strlen(tags.strings[i]), BASE_SHOW_UTF8);
    }
    git_strarray_dispose(&tags);
}

void tool__revision_tell_none(git_repository *repo, const char *rev, base_buf *out)
{
    near_names near = {.wanted = rev};
    base_buf_putc(out, '"');
    base_show(out, rev, strnlen(rev, 100), BASE_SHOW_UTF8);
    base_buf_puts(out, "\" is no tag, branch or commit of this repository");
    git_tag_foreach(repo, offer_tag, &near);
    offer_branches(repo, &near);
    if (near.n) base_buf_puts(out, "; near it: ");
    for (size_t i = 0; i < near.n; i++) {
        if (i) base_buf_puts(out, ", ");
        base_show(out, near.names[i], strlen(near.names[i]), BASE_SHOW_UTF8);
        free(near.names[i]);
    }
    if (!near.n) put_some_tags(repo, out);
    base_buf_putc(out, '.');
}

size_t tool__revision_count(git_repository *repo, const char *rev, size_t most, const atomic_bool *cancel)
{
    git_revwalk *walk = NULL;
    git_commit *from = tool__revision_find(repo, rev);
    git_oid id;
    size_t n = 0;
    if (from && !git_revwalk_new(&walk, repo) && !git_revwalk_push_head(walk) &&
        !git_revwalk_hide(walk, git_commit_id(from)))
        while (n < most && !(cancel && atomic_load(cancel)) && !git_revwalk_next(&id, walk)) n++;
    git_revwalk_free(walk);
    git_commit_free(from);
    return n;
}
