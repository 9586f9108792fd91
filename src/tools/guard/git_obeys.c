/*
 * Configuration that points into the tree: include.path, core.hooksPath (husky), core.attributesFile, and every program that is named
 * by a path of the tree (filter.x.clean = python3 tools/clean.py). What stands there is run or obeyed by git as much as what
 * stands in .git. So does a program that git finds by its name alone, where PATH has a folder of the tree.
 */
#include "tools/guard/git_obeys.h"

#include <ctype.h>
#include <dirent.h>
#include <git2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/fs.h"
#include "base/mem.h"
#include "tools/file/git_includes.h"
#include "tools/file/git_pointers.h"
#include "tools/file/safe_path.h"
#include "base/path.h"
#include "tools/tree/workspace.h"

typedef struct finder {
    const tool_root *root;
    char **folders; /* absolute: where a relative path may begin */
    size_t n, cap;
    char **included; /* absolute: files of conditions that were read */
    size_t n_included, cap_included;
    char **searched; /* below the root: folders of PATH, as it is spelled and without links */
    size_t n_searched, cap_searched;
    tool_git_obeyed_fn *fn;
    void *user;
} finder;

/* Joins and takes "." and ".." out, as text. NULL: above "/". */
static char *join(const char *folder, const char *path)
{
    base_buf all = {0}, out = {0};
    base_buf_printf(&all, "%s/%s", *path == '/' ? "" : folder, path);
    for (const char *p = all.data; *p;) {
        while (*p == '/') p++;
        size_t n = strcspn(p, "/");
        if (n == 2 && p[0] == '.' && p[1] == '.') {
            while (out.len && out.data[out.len - 1] != '/') out.len--;
            if (out.len) out.len--;
        } else if (n && !(n == 1 && *p == '.')) {
            base_buf_putc(&out, '/');
            base_buf_add(&out, p, n);
        }
        if (out.data) out.data[out.len] = '\0';
        p += n;
    }
    base_buf_free(&all);
    return base_buf_take(&out);
}

/* Below the root: the rest; NULL: elsewhere, or the root itself. */
static const char *below(const tool_root *root, const char *path)
{
    size_t n = root->path[1] ? strlen(root->path) : 0;
    return !strncmp(path, root->path, n) && path[n] == '/' && path[n + 1] ? path + n + 1 : NULL;
}

char *tool__git_path_below(const tool_root *root, const char *folder, const char *path)
{
    char *whole = join(folder, path);
    const char *inner = below(root, whole);
    char *ret = base_xstrdup(inner);
    free(whole);
    return ret;
}

static void offer(finder *f, const char *folder, const char *path, bool is_hooks)
{
    char *inner = tool__git_path_below(f->root, folder, path);
    if (inner) f->fn(f->user, inner, is_hooks);
    free(inner);
}

/* A path as git expands it: "~/" is the home folder; ":(prefix)" and "~user/" are left out. */
static void offer_path(finder *f, const char *value, bool is_hooks)
{
    const char *home = getenv("HOME");
    if (!strncmp(value, "~/", 2)) {
        if (home) offer(f, home, value + 2, is_hooks);
        return;
    }
    if (*value == '~') return;
    for (size_t i = 0; i < f->n; i++) {
        offer(f, f->folders[i], value, is_hooks);
        if (*value == '/') return;
    }
}

/* The home folder that a shell expands at the beginning of a word, NULL: none. *p goes to the slash behind it. */
static const char *take_home(const char **p)
{
    static const char *const spellings[] = {"~", "$HOME", "${HOME}"};
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        size_t n = strlen(spellings[i]);
        if (strncmp(*p, spellings[i], n)) continue;
        n += strspn(*p + n, "\"'");
        if ((*p)[n] != '/' || !getenv("HOME")) continue;
        *p += n;
        return getenv("HOME");
    }
    return NULL;
}

/*
 * An active environment of the tree (.venv/bin, node_modules/.bin) comes first in PATH: what stands there is run in a program's place.
 * An empty entry and "." are the folder that somebody stands in; here it is looked at as the root.
 */
static void find_searched(finder *f)
{
    const char *list = getenv("PATH");
    for (const char *at = list; at; at = strchr(at, ':') ? strchr(at, ':') + 1 : NULL) {
        char *entry = base_xstrndup(at, strcspn(at, ":")), *spelled = join(f->root->path, entry),
             *real = realpath(spelled, NULL), *both[] = {spelled, real};
        for (size_t i = 0; i < 2; i++) {
            if (!both[i] || (i && !strcmp(spelled, real))) continue;
            const char *inner = strcmp(both[i], f->root->path) ? below(f->root, both[i]) : "";
            if (!inner) continue;
            base_grow(&f->searched, &f->cap_searched, f->n_searched + 1, sizeof *f->searched);
            f->searched[f->n_searched++] = base_xstrdup(inner);
        }
        free(entry);
        free(spelled);
        free(real);
    }
}

static void offer_program(finder *f, const char *prefix, const char *name)
{
    for (size_t i = 0; i < f->n_searched; i++) {
        base_buf path = {0};
        const char *folder = f->searched[i];
        base_buf_printf(&path, "%s%s%s%s", folder, *folder ? "/" : "", prefix, name);
        f->fn(f->user, path.data, false);
        base_buf_free(&path);
    }
}

/* `git lfs` is a program of its own, by that name. */
static void offer_extensions(finder *f, const char *folder)
{
    DIR *dir = opendir(folder);
    for (const struct dirent *e; dir && (e = readdir(dir));)
        if (!strncmp(e->d_name, "git-", 4)) offer_program(f, "", e->d_name);
    if (dir) closedir(dir);
}

/* What the person types, git starts unasked, and its scripts call (git submodule, git bisect, git mergetool). */
static void offer_usual_programs(finder *f)
{
    static const char *const names[] = {"git", "git-lfs", "gpg", "gpg2", "gpgsm", "ssh", "ssh-keygen",
        "ssh-askpass", "sh", "bash", "env", "less", "more", "pager", "editor", "vi", "vim", "nano", "awk",
        "basename", "cat", "chmod", "cmp", "cp", "cut", "date", "diff", "dirname", "echo", "egrep", "expr",
        "find", "gettext", "envsubst", "grep", "head", "hostname", "id", "ln", "ls", "mkdir", "mktemp", "mv",
        "od", "patch", "perl", "printf", "ps", "pwd", "rm", "rmdir", "sed", "sleep", "sort", "stty", "tail",
        "tar", "test", "touch", "tput", "tr", "uname", "uniq", "wc", "which", "xargs"};
    if (!f->n_searched) return;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) offer_program(f, "", names[i]);
    for (const char *at = getenv("PATH"); at; at = strchr(at, ':') ? strchr(at, ':') + 1 : NULL) {
        char *folder = base_xstrndup(at, strcspn(at, ":"));
        if (*folder == '/') offer_extensions(f, folder);
        free(folder);
    }
}

/* Every word of a command that names something in the tree: a file that is there, or a path that may come to be one. */
static void offer_words(finder *f, const char *value, bool may_come)
{
    static const char between[] = "$ \t\n\"'`;&|()<>=!";
    for (const char *p = value; *p;) {
        p += strspn(p, between + 1);
        const char *home = take_home(&p);
        if (!home) p += strspn(p, between);
        size_t n = strcspn(p, between);
        char *rest = base_xstrndup(p, n), *word = home ? join(home, rest + 1) : base_xstrdup(rest);
        free(rest);
        if (n && may_come && !strchr(word, '/')) {
            offer_program(f, "", word);
            offer_program(f, "git-credential-", word);
        }
        for (size_t i = 0; n && i < f->n; i++) {
            char *whole = join(f->folders[i], word);
            const char *inner = below(f->root, whole);
            struct stat st;
            /* A word without a slash is a program of PATH, unless git's shell would find it here. */
            bool is_there = inner && !lstat(whole, &st);
            if (is_there ? !S_ISDIR(st.st_mode) : inner && may_come && strchr(word, '/'))
                f->fn(f->user, inner, false);
            free(whole);
        }
        free(word);
        p += n;
    }
}

/* Names (behind the last dot, or whole) whose value git runs, in lower case as libgit2 gives them. */
static const char *const program_names[] = {"core.fsmonitor", "core.editor", "core.pager", "core.sshcommand",
    "core.askpass", "core.gitproxy", "core.alternaterefscommand", "sequence.editor", "diff.external",
    "credential.helper", "gpg.program", "interactive.difffilter", "uploadpack.packobjectshook", ".command",
    ".textconv", ".driver", ".clean", ".smudge", ".process", ".cmd", ".helper", ".program", ".receivepack",
    ".uploadpack", ".proxy", ".vcs"};
/* Ends of names: gpg.ssh.defaultKeyCommand, sendemail.toCmd, gc.recentObjectsHook, svn.authorsProg, imap.tunnel. */
static const char *const program_ends[] = {
    "command", "cmd", "hook", "prog", "program", "tunnel", "browser", "smtpserver", "httpd"};

/* Words of git's own, unless they begin with "!". */
static bool may_be_text(const char *name)
{
    return !strncmp(name, "alias.", 6) || !strncmp(name, "submodule.", 10);
}

static bool is_program(const char *name)
{
    size_t n = strlen(name);
    if (!strncmp(name, "alias.", 6) || !strncmp(name, "pager.", 6) || !strncmp(name, "submodule.", 10))
        return true;
    /* difftool.x.path and the like name the tool's program. */
    if (n > 5 && !strcmp(name + n - 5, ".path") && strncmp(name, "include", 7) && !may_be_text(name))
        return true;
    for (size_t i = 0; i < sizeof program_names / sizeof *program_names; i++) {
        size_t m = strlen(program_names[i]);
        if (*program_names[i] == '.' ? n > m && !strcmp(name + n - m, program_names[i])
                                     : !strcmp(name, program_names[i]))
            return true;
    }
    for (size_t i = 0; i < sizeof program_ends / sizeof *program_ends; i++) {
        size_t m = strlen(program_ends[i]);
        if (n > m && !strcmp(name + n - m, program_ends[i])) return true;
    }
    return false;
}

/* Files whose text git takes for true: attributes, who may sign, whose certificates are good, what a server is told. */
static bool is_believed(const char *name)
{
    static const char *const ends[] = {"core.attributesfile", "ssh.allowedsignersfile", "ssh.revocationfile",
        ".sslcainfo", ".sslcapath", ".sslcert", ".sslkey", ".proxysslcainfo", ".proxysslcert", ".proxysslkey",
        ".cookiefile"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (base_ends_with(name, ends[i])) return true;
    return false;
}

/* Once each: they are tried one by one for every relative path. */
static void add_folder(finder *f, const char *path, size_t n)
{
    for (size_t i = 0; i < f->n; i++)
        if (!strncmp(f->folders[i], path, n) && !f->folders[i][n]) return;
    base_grow(&f->folders, &f->cap, f->n + 1, sizeof *f->folders);
    f->folders[f->n++] = base_xstrndup(path, n);
}

/* Whether it was read already: a file that includes itself, or one that several name, is read once. */
static bool was_included(finder *f, const char *path)
{
    for (size_t i = 0; i < f->n_included; i++)
        if (!strcmp(f->included[i], path)) return true;
    base_grow(&f->included, &f->cap_included, f->n_included + 1, sizeof *f->included);
    f->included[f->n_included++] = base_xstrdup(path);
    return false;
}

static void read_entries(finder *f, git_config *config, int depth);

/* What a condition includes (includeIf), whether or not it holds now: a branch or a folder's name can make it hold. */
static void read_included(finder *f, const char *value, int depth)
{
    enum { MOST_DEPTH = 10 /* git's own */, MOST_INCLUDED = 1000 };
    const char *home = getenv("HOME");
    bool is_home = !strncmp(value, "~/", 2);
    if (depth >= MOST_DEPTH || (*value == '~' && (!is_home || !home))) return;
    for (size_t i = 0, n = is_home || *value == '/' ? 1 : f->n; i < n; i++) {
        char *path = is_home ? join(home, value + 2) : join(f->n ? f->folders[i] : "", value);
        git_config *config = NULL;
        struct stat st;
        const bool is_new = path && !stat(path, &st) && S_ISREG(st.st_mode) &&
                            f->n_included < MOST_INCLUDED && !was_included(f, path);
        char *obstacle = is_new ? tool__git_includes(path, NULL, NULL) : NULL;
        if (is_new && !obstacle && !git_config_open_ondisk(&config, path)) {
            add_folder(f, path, base_path_folder_length(path)); /* paths in it begin there */
            read_entries(f, config, depth + 1);
        }
        git_config_free(config);
        free(obstacle);
        free(path);
    }
}

static void read_value(finder *f, const char *key, const char *value, int depth)
{
    char *name = base_xstrdup(key);
    for (char *p = name; *p; p++)
        *p = (char)tolower((unsigned char)*p); /* but for the middle, which no table here has */
    const size_t n = strlen(name);
    const bool is_condition = !strncmp(name, "includeif.", 10) && n > 5 && !strcmp(name + n - 5, ".path");
    const bool is_include = is_condition || !strcmp(name, "include.path");
    if (is_condition) read_included(f, value, depth);
    if (!strcmp(name, "core.hookspath") || !strcmp(name, "init.templatedir"))
        offer_path(f, value, true);
    else if (is_include || is_believed(name))
        offer_path(f, value, false);
    else if (is_program(name))
        offer_words(f, value, !may_be_text(name) || *value == '!');
    free(name);
}

static void read_entries(finder *f, git_config *config, int depth)
{
    git_config_iterator *i = NULL;
    git_config_entry *e;
    if (git_config_iterator_new(&i, config)) return;
    while (!git_config_next(&e, i)) {
        if (!e->value || !*e->value) continue;
        read_value(f, e->name, e->value, depth);
    }
    git_config_iterator_free(i);
}

/* Included files begin at the file that names them, folders of hooks at the top of the working tree. */
static void add_folders_of(finder *f, const char *file, git_config *config)
{
    git_config_entry *worktree = NULL;
    add_folder(f, file, base_path_folder_length(file));
    add_folder(f, f->folders[0], base_path_folder_length(f->folders[0]));
    if (!git_config_get_entry(&worktree, config, "core.worktree") && worktree->value) {
        char *whole = join(f->folders[0], worktree->value);
        add_folder(f, whole, strlen(whole));
        free(whole);
    }
    git_config_entry_free(worktree);
}

/* The person's own configuration, where the tree is their home folder or holds it. */
static void offer_own_configuration(finder *f)
{
    static const char *const names[] = {"git/config", "git/attributes"};
    const char *home = getenv("HOME"), *xdg = getenv("XDG_CONFIG_HOME");
    if (home) offer(f, home, ".gitconfig", false);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *inner = xdg && *xdg ? base_xstrdup(names[i]) : base_fs_join(".config", names[i]);
        if (xdg && *xdg)
            offer(f, xdg, inner, false);
        else if (home)
            offer(f, home, inner, false);
        free(inner);
    }
}

/*
 * What the person's environment says to git beside the configuration (direnv sets it from an .envrc that they allowed): programs,
 * folders of hooks, files of configuration and single values of it.
 */
static void offer_environment(finder *f)
{
    static const char *const programs[] = {"GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "VISUAL", "EDITOR",
        "GIT_PAGER", "PAGER", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_PROXY_COMMAND", "GIT_EXTERNAL_DIFF",
        "GIT_ASKPASS", "SSH_ASKPASS"};
    static const char *const folders[] = {"GIT_EXEC_PATH", "GIT_TEMPLATE_DIR"};
    static const char *const files[] = {"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"};
    enum { MOST_VALUES = 1000 };
    const char *value, *count = getenv("GIT_CONFIG_COUNT");
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        if ((value = getenv(programs[i]))) offer_words(f, value, true);
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if ((value = getenv(folders[i])) && *value) offer_path(f, value, true);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (!(value = getenv(files[i])) || !*value) continue;
        offer_path(f, value, false);
        read_included(f, value, 0);
    }
    for (int i = 0, n = count ? atoi(count) : 0; i < n && i < MOST_VALUES; i++) {
        char key[40], name[40];
        snprintf(key, sizeof key, "GIT_CONFIG_KEY_%d", i);
        snprintf(name, sizeof name, "GIT_CONFIG_VALUE_%d", i);
        if (!getenv(key) || !(value = getenv(name))) continue;
        read_value(f, getenv(key), value, 0);
        if (!strcasecmp(getenv(key), "include.path")) read_included(f, value, 0);
    }
}

/* Where libgit2 may not look, since it would wait for ever: the files that are included at least. */
static void on_include(void *user, const char *path)
{
    offer(user, "", path, false);
}

static char *look_at_includes(const char *config, tool_git_include_fn *fn, void *user)
{
    return config ? tool__git_includes(config, fn, user) : tool__git_includes_of_person(fn, user);
}

void tool__git_obeyed(
    const tool_root *root, const char *config, const char *const *tops, tool_git_obeyed_fn *fn, void *user)
{
    finder f = {.root = root, .fn = fn, .user = user};
    git_config *entries = NULL;
    struct stat st;
    char *path = config ? join(root->path, config) : NULL;
    const bool is_file = !path || (!stat(path, &st) && S_ISREG(st.st_mode));
    char *obstacle = look_at_includes(path, NULL, NULL);
    if (obstacle) free(look_at_includes(path, on_include, &f));
    if (is_file && !obstacle &&
        !(path ? git_config_open_ondisk(&entries, path) : git_config_open_default(&entries))) {
        if (path) add_folders_of(&f, path, entries);
        add_folder(&f, root->path, strlen(root->path));
        for (; tops && *tops; tops++) add_folder(&f, *tops, strlen(*tops));
        find_searched(&f);
        if (!path) {
            offer_usual_programs(&f);
            offer_own_configuration(&f);
            offer_environment(&f);
        }
        read_entries(&f, entries, 0);
    }
    git_config_free(entries);
    free(obstacle);
    free(path);
    for (size_t i = 0; i < f.n_searched; i++) free(f.searched[i]);
    free(f.searched);
    for (size_t i = 0; i < f.n; i++) free(f.folders[i]);
    free(f.folders);
    for (size_t i = 0; i < f.n_included; i++) free(f.included[i]);
    free(f.included);
}

void tool__git_obeyed_by_pointer(
    const tool_root *root, const char *folder, tool_git_obeyed_fn *fn, void *user)
{
    struct stat st;
    char *top = base_fs_join(root->path, folder), *to = tool__git_pointed_to(top);
    if (!to) {
        char *link = base_fs_join(top, ".git");
        if (!lstat(link, &st) && S_ISLNK(st.st_mode))
            to = link;
        else
            free(link);
    }
    char *shared = to ? tool__git_shared_by(to) : NULL,
         *inner = to ? tool__git_path_below(root, "", to) : NULL;
    if (to && (shared || !inner)) {
        char *files[] = {base_fs_join(shared ? shared : to, "config"), base_fs_join(to, "config.worktree")};
        for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
            tool__git_obeyed(root, files[i], (const char *const[]){top, NULL}, fn, user);
            free(files[i]);
        }
    }
    free(top);
    free(to);
    free(shared);
    free(inner);
}
