/* Looking before libgit2 does (contract: git_obstacles.h). */
#include "tools/tree/git_obstacles.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/path.h"
#include "tools/file/git_includes.h"
#include "tools/file/git_pointers.h"
#include "tools/file/git_rules.h"
#include "tools/file/safe_path.h"
#include "tools/tree/workspace.h"

enum { MOST_DEPTH = 128 }; /* more than libgit2 goes down */

static bool is_waited_for(const struct stat *st)
{
    return S_ISFIFO(st->st_mode) || S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode);
}

/* ---- in a repository's folder ---- */

typedef struct git_search {
    size_t left;     /* entries that are still looked at */
    bool skips_refs; /* thousands of refs cost as many calls: their sizes are looked at once */
    char *found;     /* NULL: none */
} git_search;

enum { MOST_IN_GIT = 200000 };

static bool is_object_folder(const char *name)
{
    return strlen(name) == 2 && strspn(name, "0123456789abcdef") == 2;
}

/* A text that libgit2 reads whole, where it is a ref or has one of these names. */
static bool is_text(const char *name, bool in_refs)
{
    static const char *const names[] = {"commondir", "gitdir", "exclude", "attributes", "alternates"};
    if (in_refs || base_ends_with(name, "HEAD")) return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i])) return true;
    return false;
}

static void search_git(git_search *s, const char *folder, int depth, bool in_refs)
{
    DIR *dir = depth < MOST_DEPTH ? opendir(folder) : NULL;
    for (const struct dirent *e; dir && !s->found && s->left && (e = readdir(dir));) {
        struct stat st;
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        s->left--;
        bool is_folder = e->d_type == DT_DIR;
        if (e->d_type == DT_REG) {
            if (!is_text(e->d_name, in_refs) || fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
                st.st_size <= TOOL_GIT_MOST_TEXT)
                continue;
        } else if (!is_folder) {
            if (e->d_type == DT_UNKNOWN && !fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW))
                is_folder = S_ISDIR(st.st_mode);
            if (fstatat(dirfd(dir), e->d_name, &st, 0) || (!is_waited_for(&st) && !is_folder)) continue;
        }
        char *path = base_fs_join(folder, e->d_name);
        if (!is_folder)
            s->found = base_xstrdup(path);
        else if (!is_object_folder(e->d_name))
            search_git(
                s, path, depth + 1, in_refs || (!depth && !s->skips_refs && !strcmp(e->d_name, "refs")));
        free(path);
    }
    if (dir) closedir(dir);
}

char *tool__git_find_pipe(const char *git_folder)
{
    git_search s = {.left = MOST_IN_GIT, .skips_refs = true};
    search_git(&s, git_folder, 0, false);
    return s.found;
}

/* ---- among the rules of a working tree ---- */

typedef struct rules_file {
    char *path;
    tool_git_rules rules;
    int depth;      /* of its folder */
    uint64_t steps; /* for all paths so far */
} rules_file;

typedef struct tree_search {
    size_t left; /* entries that are still looked at */
    rules_file *files;
    size_t n, cap;
    size_t active[4 * MOST_DEPTH]; /* of the folder that is looked at and of those above it */
    size_t n_active;
    uint64_t steps;
    char *found;
} tree_search;

enum { MOST_IN_TREE = 200000 };
#define MOST_STEPS                                                                                           \
    (UINT64_C(1) << 29) /* some ten seconds; 200,000 files and 1,000 lines are less than half of it */

static void add_rules(tree_search *s, const char *folder, const char *name, int depth)
{
    struct stat st;
    base_buf text = {0};
    char *path = base_fs_join(folder, name);
    if (s->n_active < sizeof s->active / sizeof *s->active && !stat(path, &st) && S_ISREG(st.st_mode) &&
        st.st_size <= TOOL_GIT_MOST_TEXT && !base_fs_read(path, TOOL_GIT_MOST_TEXT, &text, NULL) &&
        text.len) {
        base_grow(&s->files, &s->cap, s->n + 1, sizeof *s->files);
        rules_file *f = &s->files[s->n];
        *f = (rules_file){.path = path, .depth = depth};
        tool__git_rules_weigh(text.data, text.len, &f->rules);
        s->active[s->n_active++] = s->n++;
        path = NULL;
    }
    base_buf_free(&text);
    free(path);
}

/* The paths of a folder's entries are matched against what stands in it and above it. */
static void count_steps(tree_search *s, int depth, size_t n_entries)
{
    const rules_file *most = NULL;
    for (size_t i = 0; i < s->n_active; i++) {
        rules_file *f = &s->files[s->active[i]];
        uint64_t steps = tool__git_rules_steps(&f->rules, (unsigned)(depth - f->depth));
        steps = steps > MOST_STEPS ? MOST_STEPS : steps * n_entries;
        f->steps += steps;
        s->steps += steps;
    }
    if (s->steps < MOST_STEPS) return;
    for (size_t i = 0; i < s->n; i++)
        if (!most || s->files[i].steps > most->steps) most = &s->files[i];
    s->found = base_xstrdup(most->path);
}

/* Something that libgit2 would wait for, or read whole. */
static bool is_odd(int folder, const struct dirent *e)
{
    struct stat st;
    return tool__git_rules_is_name(e->d_name) && !fstatat(folder, e->d_name, &st, 0) &&
           (is_waited_for(&st) || (S_ISREG(st.st_mode) && st.st_size > TOOL_GIT_MOST_TEXT));
}

static void search_tree(tree_search *s, const char *folder, int depth)
{
    const size_t n_active = s->n_active;
    size_t n_entries = 0;
    base_buf folders = {0}; /* names, each with its NUL */
    DIR *dir = depth < MOST_DEPTH ? opendir(folder) : NULL;
    for (const struct dirent *e; dir && !s->found && s->left && (e = readdir(dir));) {
        struct stat st;
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        s->left--;
        n_entries++;
        bool is_folder = e->d_type == DT_DIR;
        if (e->d_type == DT_UNKNOWN)
            is_folder = !fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) && S_ISDIR(st.st_mode);
        if (is_folder && strcmp(e->d_name, ".git"))
            base_buf_add(&folders, e->d_name, strlen(e->d_name) + 1);
        else if (!is_folder && is_odd(dirfd(dir), e))
            s->found = base_fs_join(folder, e->d_name);
    }
    if (dir) closedir(dir);
    if (!s->found && n_entries) {
        for (size_t i = 0; i < 2; i++) add_rules(s, folder, tool__git_rules_names[i], depth);
        count_steps(s, depth, n_entries);
    }
    for (const char *name = folders.data; !s->found && name && name < folders.data + folders.len;
         name += strlen(name) + 1) {
        char *inner = base_fs_join(folder, name);
        search_tree(s, inner, depth + 1);
        free(inner);
    }
    s->n_active = n_active;
    base_buf_free(&folders);
}

char *tool__git_find_in_tree(const char *top, const char *git_folder)
{
    tree_search s = {.left = MOST_IN_TREE};
    add_rules(&s, git_folder, "info/exclude", 0);
    add_rules(&s, git_folder, "info/attributes", 0);
    search_tree(&s, top, 0);
    for (size_t i = 0; i < s.n; i++) free(s.files[i].path);
    free(s.files);
    return s.found;
}

/* ---- all of it ---- */

/* What one of these files of configuration leads to. */
static char *find_included(const char *folder, const char *const names[])
{
    char *found = NULL;
    for (size_t i = 0; names[i] && !found; i++) {
        char *path = base_fs_join(folder, names[i]);
        found = tool__git_includes(path, NULL, NULL);
        free(path);
    }
    return found;
}

/* What stands in a repository's folder, or is named by its configuration. */
static char *find_in_git(const char *folder)
{
    static const char *const names[] = {"config", "config.worktree", NULL};
    git_search s = {.left = MOST_IN_GIT};
    search_git(&s, folder, 0, false);
    return s.found ? s.found : find_included(folder, names);
}

/* A .git that is neither a folder nor the line that leads to one. */
static bool is_no_pointer(const char *path)
{
    enum { MOST_POINTER = 1 << 16 };
    struct stat st;
    return !stat(path, &st) && !S_ISDIR(st.st_mode) && (!S_ISREG(st.st_mode) || st.st_size > MOST_POINTER);
}

char *tool__git_find_obstacle(const char *at, bool is_bare)
{
    static const char *const modules[] = {".gitmodules", NULL};
    char *own = is_bare ? base_xstrdup(at) : base_fs_join(at, ".git"), *to = tool__git_pointed_to(at),
         *shared = NULL, *found = is_no_pointer(own) ? base_xstrdup(own) : NULL;
    const char *folder = to ? to : own;
    if (!found) found = tool__git_includes_of_person(NULL, NULL);
    if (!found) found = find_in_git(folder);
    if (!found) shared = tool__git_shared_by(folder);
    if (shared) found = find_in_git(shared);
    if (!found) found = find_included(at, modules);
    if (!found && !is_bare) found = tool__git_find_in_tree(at, shared ? shared : folder);
    free(own);
    free(to);
    free(shared);
    return found;
}

void tool__git_obstacle_say(base_buf *out, const char *path)
{
    tool__path_show(out, path);
    base_buf_puts(out, " is a pipe or a device, no file that git makes, or has patterns that never end");
}
