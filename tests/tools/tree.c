#include "tree.h"

#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"

void tree_make(tree *t, bool is_git)
{
    memset(t, 0, sizeof *t);
    snprintf(t->base, sizeof t->base, "/tmp/kvist-test-XXXXXX");
    assert_non_null(mkdtemp(t->base));
    snprintf(t->dir, sizeof t->dir, "%s/tree", t->base);
    snprintf(t->store, sizeof t->store, "%s/store", t->base);
    assert_int_equal(mkdir(t->dir, 0755), 0);
    if (!is_git) return;
    git_repository *repo = NULL;
    git_libgit2_init();
    if (git_repository_init(&repo, t->dir, 0)) fail_msg("%s", git_error_last()->message);
    git_repository_free(repo);
}

void tree_open(tree *t)
{
    base_err err = {0};
    tool_workspace_close(t->w);
    t->w = NULL;
    tool_workspace_options options = {.dir = t->dir, .store = t->store};
    if (tool_workspace_open(&t->w, &options, &err)) fail_msg("%s", err.msg);
    base_buf aside = {0};
    base_buf_printf(&aside, "%s/aside", t->base);
    t->w->aside = base_buf_take(&aside);
}

void tree_remove(tree *t)
{
    tool_workspace_close(t->w);
    base_fs_remove(t->base, NULL);
}

const char *tree_path(tree *t, const char *path)
{
    static char full[1024];
    snprintf(full, sizeof full, "%s/%s", t->dir, path);
    return full;
}

void tree_put_bytes(tree *t, const char *path, const void *bytes, size_t n)
{
    char full[1024];
    snprintf(full, sizeof full, "%s", tree_path(t, path));
    for (char *p = full + strlen(t->dir) + 1; (p = strchr(p, '/')); p++) {
        *p = '\0';
        mkdir(full, 0755);
        *p = '/';
    }
    int fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), (ssize_t)n);
    close(fd);
}

void tree_put(tree *t, const char *path, const char *text)
{
    tree_put_bytes(t, path, text, strlen(text));
}

char *tree_get(tree *t, const char *path)
{
    base_buf text = {0};
    if (base_fs_read(tree_path(t, path), 64 << 20, &text, NULL)) return NULL;
    return base_buf_take(&text);
}

const char *tree_version(tree *t, const char *path)
{
    static char version[65];
    char *text = tree_get(t, path);
    base_sha256_hex(text, strlen(text), version);
    free(text);
    return version;
}

bool tree_has(tree *t, const char *path)
{
    struct stat st;
    return !lstat(tree_path(t, path), &st);
}

void tree_commit(tree *t, const char *message)
{
    git_repository *repo;
    git_index *index;
    git_oid tree_id, id;
    git_tree *root;
    git_signature *me;
    git_commit *parent = NULL;
    git_strarray all = {.strings = (char *[]){(char *)"*"}, .count = 1};
    git_libgit2_init();
    assert_int_equal(git_repository_open(&repo, t->dir), 0);
    assert_int_equal(git_repository_index(&index, repo), 0);
    assert_int_equal(git_index_add_all(index, &all, 0, NULL, NULL), 0);
    assert_int_equal(git_index_write(index), 0);
    assert_int_equal(git_index_write_tree(&tree_id, index), 0);
    assert_int_equal(git_tree_lookup(&root, repo, &tree_id), 0);
    assert_int_equal(git_signature_new(&me, "Ada", "ada@example.org", 1700000000, 0), 0);
    git_reference *head = NULL;
    if (!git_repository_head(&head, repo)) git_commit_lookup(&parent, repo, git_reference_target(head));
    const git_commit *parents[1] = {parent};
    assert_int_equal(
        git_commit_create(&id, repo, "HEAD", me, me, NULL, message, root, parent ? 1 : 0, parents), 0);
    git_reference_free(head);
    git_commit_free(parent);
    git_signature_free(me);
    git_tree_free(root);
    git_index_free(index);
    git_repository_free(repo);
}

tool_result tree_prepare(
    tree *t, const char *tool, const char *arguments, const char *payload, tool_preview *ret)
{
    base_json_doc *doc = NULL;
    base_err err = {0};
    tool_result r = {0};
    const tool_entry *entry = tool_find(tool);
    assert_non_null(entry);
    if (base_json_parse(arguments, strlen(arguments), &doc, &err)) fail_msg("%s", err.msg);
    tool_call call = {.name = tool,
        .arguments = base_json_root(doc),
        .payload = base_str_of(payload),
        .request = t->request};
    if (entry->prepare && entry->prepare(t->w, &call, &t->limits, ret, &r, &err)) fail_msg("%s", err.msg);
    base_json_free(doc);
    return r;
}

tool_result tree_call(tree *t, const char *tool, const char *arguments, const char *payload)
{
    base_json_doc *doc = NULL;
    base_err err = {0};
    tool_preview preview = {0};
    tool_result r = tree_prepare(t, tool, arguments, payload, &preview);
    const tool_entry *entry = tool_find(tool);
    if (r.status != TOOL_OK) return r;
    tool_result_free(&r);
    assert_int_equal(base_json_parse(arguments, strlen(arguments), &doc, &err), 0);
    tool_call call = {.name = tool,
        .arguments = base_json_root(doc),
        .payload = base_str_of(payload),
        .request = t->request};
    if (entry->run(t->w, &call, &t->limits, &preview, &r, &err)) fail_msg("%s", err.msg);
    tool_preview_free(&preview);
    base_json_free(doc);
    if (!r.text.data) base_buf_puts(&r.text, "");
    return r;
}

unsigned tree_patience(void)
{
    const char *patience = getenv("KVIST_TEST_PATIENCE");
    return patience && atoi(patience) > 0 ? (unsigned)atoi(patience) : 1;
}

void assert_contains(const char *text, const char *part)
{
    if (!text || !strstr(text, part)) fail_msg("\"%s\" is not in: %s", part, text ? text : "(nothing)");
}

void assert_lacks(const char *text, const char *part)
{
    if (text && strstr(text, part)) fail_msg("\"%s\" is in: %s", part, text);
}
