/* The list of what is seen: tables of folders and secrets, and the environment (contract: sandbox_view.h). */
#include "tools/confine/sandbox_view.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/mem.h"
#include "tools/confine/sandbox_home.h"

/* Programs, libraries and their settings. /var's logs, mails and jobs are no business of a command's. */
static const char *const system_folders[] = {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr",
    "/etc", "/opt", "/nix", "/gnu", "/snap", "/var/lib", "/var/cache", "/sys", "/run/current-system",
    "/run/opengl-driver"};

/* What of these only an administrator reads; a command of root's would. */
static const char *const system_secrets[] = {"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-",
    "/etc/sudoers", "/etc/sudoers.d", "/etc/ssh", "/etc/ssl/private", "/etc/krb5.keytab", "/etc/wireguard",
    "/etc/openvpn", "/etc/ipsec.secrets", "/etc/letsencrypt", "/etc/NetworkManager/system-connections",
    "/etc/docker", "/etc/kubernetes", "/etc/netplan", "/etc/ppp", "/etc/security/opasswd", "/var/lib/docker",
    "/var/lib/containerd", "/var/lib/systemd", "/var/lib/NetworkManager", "/var/lib/iwd",
    "/var/lib/bluetooth", "/var/lib/cloud", "/var/lib/kubelet", "/var/lib/private", "/var/lib/postgresql",
    "/var/lib/mysql", "/var/lib/redis", "/var/lib/mongodb", "/var/lib/libvirt"};

/* Below home. They matter where home is seen: it is the tree, or --allow-read names it. */
static const char *const home_secrets[] = {".ssh", ".aws", ".azure", ".gnupg", ".kube", ".docker", ".netrc",
    ".npmrc", ".yarnrc", ".yarnrc.yml", ".pypirc", ".git-credentials", ".pgpass", ".my.cnf", ".s3cfg",
    ".boto", ".password-store", ".mozilla", ".thunderbird", ".pki", ".config/gcloud", ".config/gh",
    ".config/glab-cli", ".config/git/credentials", ".config/hub", ".config/op", ".config/rclone",
    ".config/doctl", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware",
    ".config/microsoft-edge", ".config/keepassxc", ".config/sops", ".config/age",
    ".config/containers/auth.json", ".local/share/keyrings", ".local/share/kwalletd", ".huggingface/token",
    ".cache/huggingface/token", ".terraform.d", ".vault-token", ".bash_history", ".zsh_history",
    ".python_history", ".psql_history", ".lesshst", ".claude", ".codex"};

/*
 * Toolchains: below home, or where the variable says. Written ones are package caches that builds add to. At most four files
 * in each are credentials.
 */
static const struct {
    const char *folder, *variable;
    bool is_written;
    const char *secrets[5];
} toolchains[] = {
    {".cargo", "CARGO_HOME", true, {"credentials.toml", "credentials"}},
    {".rustup", "RUSTUP_HOME", false, {NULL}},
    {"go", "GOPATH", true, {NULL}},
    {".config/go", NULL, false, {NULL}},
    {".nvm", "NVM_DIR", false, {".npmrc"}},
    {".npm", NULL, true, {"_logs"}},
    {".volta", "VOLTA_HOME", false, {NULL}},
    {".fnm", NULL, false, {NULL}},
    {".local/share/fnm", NULL, false, {NULL}},
    {".local/share/pnpm", "PNPM_HOME", false, {NULL}},
    {".bun", "BUN_INSTALL", false, {NULL}},
    {".deno", NULL, false, {NULL}},
    {".pyenv", "PYENV_ROOT", false, {NULL}},
    {".local/share/uv", NULL, false, {"credentials"}},
    {".local/share/pipx", NULL, false, {NULL}},
    {".local/share/virtualenvs", NULL, false, {NULL}},
    {".local/share/pypoetry", NULL, false, {NULL}},
    {".virtualenvs", "WORKON_HOME", false, {NULL}},
    {".conda", NULL, false, {NULL}},
    {"miniconda3", NULL, false, {NULL}},
    {"anaconda3", NULL, false, {NULL}},
    {"miniforge3", NULL, false, {NULL}},
    {".pixi", NULL, false, {NULL}},
    {".local/bin", NULL, false, {NULL}},
    {".local/lib", NULL, false, {NULL}},
    {".asdf", NULL, false, {NULL}},
    {".local/share/mise", NULL, false, {NULL}},
    {".m2", NULL, true, {"settings.xml", "settings-security.xml", "settings-security4.xml"}},
    {".gradle", "GRADLE_USER_HOME", true, {"gradle.properties", "init.gradle", "init.d"}},
    {".ivy2", NULL, true, {".credentials", "credentials"}},
    {".sbt", NULL, true, {".credentials", "credentials", "1.0/credentials.sbt", "repositories"}},
    {".sdkman", NULL, false, {NULL}},
    {".jdks", NULL, false, {NULL}},
    {".rbenv", "RBENV_ROOT", false, {NULL}},
    {".rvm", NULL, false, {NULL}},
    {".gem", NULL, false, {"credentials"}},
    {".dotnet", NULL, false, {NULL}},
    {".nuget", NULL, true, {"NuGet/NuGet.Config"}},
    {".composer", NULL, true, {"auth.json"}},
    {".pub-cache", NULL, true, {"credentials.json"}},
    {".ghcup", NULL, false, {NULL}},
    {".cabal", NULL, true, {"config"}},
    {".stack", NULL, true, {"config.yaml", "upload"}},
    {".opam", NULL, false, {NULL}},
    {".julia", NULL, true, {"servers", "logs"}},
    {".juliaup", NULL, false, {NULL}},
    {".hex", NULL, true, {"hex.config"}},
    {".mix", NULL, false, {NULL}},
    {".elan", NULL, false, {NULL}},
};

/* Lists of folders that a person's environment names. */
static const char *const path_variables[] = {"PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "GOROOT", "GOMODCACHE",
    "JAVA_HOME", "CUDA_HOME", "PYTHONPATH", "NODE_PATH", "LD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH",
    "PKG_CONFIG_PATH"};

#define N_OF(table) (sizeof table / sizeof *table)

static bool is_within(const char *path, const char *folder)
{
    size_t n = strlen(folder);
    return !strcmp(folder, "/") || (!strncmp(path, folder, n) && (!path[n] || path[n] == '/'));
}

static char *join(const char *folder, const char *name)
{
    base_buf path = {0};
    base_buf_printf(&path, "%s/%s", folder, name);
    return base_buf_take(&path);
}

/* What is being gathered, and from where. */
typedef struct gathering {
    const tool_view_needs *needs;
    tool_views *v;
    char *home; /* the person's, without links; NULL: none */
    bool is_home_in_tree;
    char *nothing[2]; /* an empty file, an empty folder */
    base_err *err;
} gathering;

static void add(gathering *g, tool_view_kind kind, const char *path, const char *from)
{
    struct stat st;
    bool is_folder = kind == TOOL_VIEW_LINK || stat(from, &st) || S_ISDIR(st.st_mode);
    if (kind == TOOL_VIEW_HIDDEN) {
        if (lstat(path, &st) || S_ISLNK(st.st_mode)) return; /* a link's target is hidden where it is */
        is_folder = S_ISDIR(st.st_mode);
        from = g->nothing[is_folder];
    }
    tool_view *view = NULL;
    for (size_t i = 0; i < g->v->n && !view; i++)
        if (!strcmp(g->v->all[i].path, path)) view = &g->v->all[i];
    if (view && view->kind >= kind) return;
    if (!view) {
        base_grow(&g->v->all, &g->v->cap, g->v->n + 1, sizeof *g->v->all);
        view = &g->v->all[g->v->n++];
        *view = (tool_view){.path = base_xstrdup(path)};
    }
    free(view->from);
    view->from = base_xstrdup(from);
    view->kind = kind;
    view->is_folder = is_folder;
}

/* The view that decides what is seen at `path`; NULL: nothing is. */
static const tool_view *covering(const tool_views *v, const char *path, bool counts_itself)
{
    const tool_view *best = NULL;
    for (size_t i = 0; i < v->n; i++)
        if (is_within(path, v->all[i].path) && (counts_itself || strcmp(path, v->all[i].path)) &&
            (!best || strlen(v->all[i].path) > strlen(best->path)))
            best = &v->all[i];
    return best;
}

/* Is it a view of what really lies there? */
static bool shows(const tool_view *view)
{
    return view && view->kind >= TOOL_VIEW_READ && !strcmp(view->path, view->from);
}

/* NULL: a path with characters that mount options give a meaning. */
static char *layer_options(const gathering *g, const char *path)
{
    if (strpbrk(path, ":,\\\"") || strpbrk(g->needs->session, ":,\\\"")) return NULL;
    base_buf folder = {0}, options = {0};
    base_buf_printf(&folder, "%s/layers/", g->needs->session);
    for (const char *p = path; *p; p++) base_buf_putc(&folder, *p == '/' ? '%' : *p);
    char *upper = join(folder.data, "upper"), *work = join(folder.data, "work");
    if (!base_fs_mkdirs(upper, NULL) && !base_fs_mkdirs(work, NULL))
        base_buf_printf(&options, "lowerdir=%s,upperdir=%s,workdir=%s,userxattr", path, upper, work);
    base_buf_free(&folder);
    free(upper);
    free(work);
    return options.len ? base_buf_take(&options) : NULL;
}

/* In a folder that commands write, at this run or one before. */
static bool is_in_tree(const gathering *g, const char *real)
{
    return is_within(real, g->needs->root) || (g->needs->tree && is_within(real, g->needs->tree));
}

/*
 * Does the way to an absolute path lead through the tree, by whatever links? There a command has put, or may put, a link of its own,
 * so where it ends says nothing of what the person meant. A way that cannot be gone to its end counts as one.
 */
static bool leads_through_tree(const gathering *g, const char *path)
{
    enum { MOST_LINKS = 40 };
    char *rest = base_xstrdup(path);
    base_buf at = {0};
    bool is_so = false;
    int links = 0;
    for (const char *p = rest; *p && !is_so;) {
        char target[PATH_MAX];
        const size_t n = strcspn(p, "/"), before = at.len;
        const bool is_up = n == 2 && !memcmp(p, "..", 2);
        if (is_up)
            while (at.len && at.data[--at.len] != '/') {
            }
        else if (n && !(n == 1 && *p == '.'))
            base_buf_printf(&at, "/%.*s", (int)n, p);
        base_buf_reserve(&at, 1);
        at.data[at.len] = '\0';
        p += n + (p[n] == '/');
        const ssize_t k = at.len > before ? readlink(at.data, target, sizeof target - 1) : -1;
        if (k < 0) {
            is_so = at.len && is_in_tree(g, at.data);
            continue;
        }
        base_buf next = {0};
        base_buf_add(&next, target, (size_t)k);
        base_buf_printf(&next, "/%s", p);
        at.len = *target == '/' ? 0 : before;
        at.data[at.len] = '\0';
        free(rest);
        p = rest = base_buf_take(&next);
        is_so = ++links > MOST_LINKS;
    }
    free(rest);
    base_buf_free(&at);
    return is_so;
}

/* Home as a whole, or what holds it, is never meant by a variable; and the tree's own links decide nothing. */
static char *outside_of_tree(const gathering *g, const char *path)
{
    if (*path != '/' || leads_through_tree(g, path)) return NULL;
    char *real = realpath(path, NULL);
    bool is_wide = real && (!strchr(real + 1, '/') || (g->home && is_within(g->home, real)));
    if (is_wide) {
        free(real);
        real = NULL;
    }
    return real;
}

/* At its real path, and as a link where the person has one. */
static void add_with_link(gathering *g, tool_view_kind kind, const char *path, const char *real)
{
    const tool_view *over = covering(g->v, real, true);
    if (!shows(over) || kind > over->kind) add(g, kind, real, real);
    over = covering(g->v, path, false); /* where its folder is not, a link is of no use; a shown one has it */
    if (strcmp(path, real) && over && !shows(over)) add(g, TOOL_VIEW_LINK, path, real);
}

/* ---- the parts ---- */

static void add_system(gathering *g)
{
    for (size_t i = 0; i < N_OF(system_folders); i++) {
        struct stat st;
        char target[PATH_MAX];
        if (lstat(system_folders[i], &st)) continue;
        ssize_t n = S_ISLNK(st.st_mode) ? readlink(system_folders[i], target, sizeof target - 1) : 0;
        if (n > 0) target[n] = '\0';
        if (n > 0)
            add(g, TOOL_VIEW_LINK, system_folders[i], target);
        else if (S_ISDIR(st.st_mode))
            add(g, TOOL_VIEW_READ, system_folders[i], system_folders[i]);
    }
    for (size_t i = 0; i < N_OF(system_secrets); i++)
        add(g, TOOL_VIEW_HIDDEN, system_secrets[i], system_secrets[i]);
}

static char *find_home(void)
{
    const char *home = getenv("HOME");
    const struct passwd *user = home && *home == '/' ? NULL : getpwuid(geteuid());
    if (user) home = user->pw_dir;
    char *real = home && *home == '/' ? realpath(home, NULL) : NULL;
    if (real && real[1]) return real;
    free(real);
    return NULL;
}

/* Landlock's home is at a path of its own: there links lead to the toolchains. */
static void link_into(const char *home, const char *name, const char *real)
{
    char *link = join(home, name), *slash = strrchr(link, '/');
    *slash = '\0';
    int failed = base_fs_mkdirs(link, NULL);
    *slash = '/';
    if (!failed && symlink(real, link)) {
    } /* two toolchains of one name: the first */
    free(link);
}

static int fill_home(gathering *g, const char *home)
{
    char *path = join(home, ".gitconfig");
    const char *text = g->v->git_config;
    int code = base_fs_write(path, text, strlen(text), 0600, g->err);
    free(path);
    for (size_t i = 0; !code && g->home && i < N_OF(toolchains); i++) {
        path = join(g->home, toolchains[i].folder);
        char *real = outside_of_tree(g, path);
        if (real) link_into(home, toolchains[i].folder, real);
        free(real);
        free(path);
    }
    return code;
}

/*
 * In the place of the person's: nothing but a few settings of git's. Where the tree holds home, the tree is what was asked for.
 * The folder that stays for the whole session is filled before any command has seen it; afterwards it is the commands', and what
 * lies in it is no path of ours to follow.
 */
static int add_home(gathering *g)
{
    int code = BASE_OK;
    if (g->is_home_in_tree) {
        g->v->home = base_xstrdup(g->home);
        return BASE_OK;
    }
    if (g->needs->shows_home && g->home) {
        const char *named = getenv("HOME");
        add(g, g->needs->has_mounts ? TOOL_VIEW_LAYER : TOOL_VIEW_READ, g->home, g->home);
        if (g->needs->has_mounts && named && *named == '/' && strcmp(named, g->home))
            add(g, TOOL_VIEW_LINK, named, g->home);
        g->v->home = base_xstrdup(g->home);
        return BASE_OK;
    }
    g->v->git_config = tool__home_git_config(g->home);
    if (g->needs->has_mounts && g->home) {
        const char *named = getenv("HOME");
        add(g, TOOL_VIEW_EMPTY, g->home, "");
        if (named && *named == '/' && strcmp(named, g->home)) add(g, TOOL_VIEW_LINK, named, g->home);
        g->v->home = base_xstrdup(g->home);
        return BASE_OK;
    }
    g->v->home = join(g->needs->session, "home");
    if (!mkdir(g->v->home, 0700))
        code = fill_home(g, g->v->home);
    else if (errno != EEXIST)
        code = base_fail_sys(g->err, "%s", g->v->home);
    add(g, TOOL_VIEW_WRITE, g->v->home, g->v->home);
    if (g->home) add(g, TOOL_VIEW_HIDDEN, g->home, g->home);
    return code;
}

static void hide_below(gathering *g, const char *folder, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n && names[i]; i++) {
        char *path = join(folder, names[i]), *real = realpath(path, NULL);
        add(g, TOOL_VIEW_HIDDEN, path, path);
        if (real) add(g, TOOL_VIEW_HIDDEN, real, real);
        free(path);
        free(real);
    }
}

static void add_toolchains(gathering *g)
{
    for (size_t i = 0; i < N_OF(toolchains); i++) {
        const char *set = toolchains[i].variable ? getenv(toolchains[i].variable) : NULL;
        bool is_set = set && *set == '/';
        if (!is_set && !g->home) continue;
        char *path = is_set ? base_xstrdup(set) : join(g->home, toolchains[i].folder);
        char *real = outside_of_tree(g, path);
        bool is_layered = toolchains[i].is_written && g->needs->has_mounts;
        if (real) add_with_link(g, is_layered ? TOOL_VIEW_LAYER : TOOL_VIEW_READ, path, real);
        hide_below(g, path, toolchains[i].secrets, N_OF(toolchains[i].secrets));
        free(path);
        free(real);
    }
}

/* A "bin" among what is installed with it shows its folder: interpreters look for their libraries beside themselves. */
static char *prefix_of(const gathering *g, const char *real)
{
    const char *slash = strrchr(real, '/');
    if (!slash || slash == real || (strcmp(slash, "/bin") && strcmp(slash, "/sbin"))) return NULL;
    char *prefix = base_xstrndup(real, (size_t)(slash - real)), *lib = join(prefix, "lib"), *good = NULL;
    bool is_local = g->home && is_within(prefix, g->home) && !strcmp(strrchr(prefix, '/'), "/.local");
    if (!is_local && base_fs_exists(lib)) good = outside_of_tree(g, prefix);
    free(lib);
    free(prefix);
    return good;
}

static void add_named(gathering *g, const char *path)
{
    char *real = outside_of_tree(g, path);
    if (real && (is_within(g->needs->root, real) || (g->needs->tree && is_within(g->needs->tree, real))))
        real[0] = '\0'; /* it would show the tree's neighbours */
    char *prefix = real && *real ? prefix_of(g, real) : NULL;
    if (real && *real) add_with_link(g, TOOL_VIEW_READ, path, real);
    if (prefix) add_with_link(g, TOOL_VIEW_READ, prefix, prefix);
    free(prefix);
    free(real);
}

/* Programs on PATH that are links out of their folder (pipx, nvm, alternatives in home): what they lead to. */
static void add_targets(gathering *g, const char *folder)
{
    char *real = outside_of_tree(g, folder);
    DIR *dir = real && g->home && is_within(real, g->home) ? opendir(real) : NULL;
    for (const struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
        if (e->d_type != DT_LNK) continue;
        char *path = join(real, e->d_name),
             *target = leads_through_tree(g, path) ? NULL : realpath(path, NULL),
             *slash = target ? strrchr(target, '/') : NULL;
        bool is_seen = target && shows(covering(g->v, target, true));
        if (slash && slash > target && !is_seen && !is_within(target, g->needs->root)) {
            char *file = base_xstrdup(target);
            *slash = '\0';
            char *prefix = prefix_of(g, target);
            if (prefix)
                add_with_link(g, TOOL_VIEW_READ, prefix, prefix);
            else
                add(g, TOOL_VIEW_READ, file, file);
            free(prefix);
            free(file);
        }
        free(path);
        free(target);
    }
    if (dir) closedir(dir);
    free(real);
}

static void for_each_named(gathering *g, void (*one)(gathering *g, const char *path))
{
    for (size_t i = 0; i < N_OF(path_variables); i++) {
        const char *list = getenv(path_variables[i]);
        for (const char *at = list; at && *at;) {
            size_t n = strcspn(at, ":");
            char *path = base_xstrndup(at, n);
            one(g, path);
            free(path);
            at += n + (at[n] == ':');
        }
    }
}

static void add_secrets(gathering *g)
{
    if (g->home) hide_below(g, g->home, home_secrets, N_OF(home_secrets));
    for (int which = 0; which < 3; which++) {
        char *own = base_fs_home((base_home)which, NULL), *real = own ? realpath(own, NULL) : NULL;
        if (real) add(g, TOOL_VIEW_HIDDEN, real, real);
        free(own);
        free(real);
    }
}

/* ---- putting it in order ---- */

static int by_path(const void *a, const void *b)
{
    return strcmp(((const tool_view *)a)->path, ((const tool_view *)b)->path);
}

/* What is hidden is kept where its folder is shown. */
static void drop_needless(tool_views *v)
{
    for (size_t i = 0; i < v->n; i++) {
        if (v->all[i].kind != TOOL_VIEW_HIDDEN || shows(covering(v, v->all[i].path, false))) continue;
        free(v->all[i].from);
        v->all[i].from = NULL;
    }
    size_t n = 0;
    for (size_t i = 0; i < v->n; i++) {
        if (v->all[i].from)
            v->all[n++] = v->all[i];
        else
            free(v->all[i].path);
    }
    v->n = n;
}

static void add_rule(tool_views *v, const char *path, tool_view_rule rule)
{
    base_grow(&v->rules, &v->cap_rules, v->n_rules + 1, sizeof *v->rules);
    rule.path = base_xstrdup(path);
    v->rules[v->n_rules++] = rule;
}

static bool hides(const tool_views *v, const char *path, bool below)
{
    for (size_t i = 0; i < v->n; i++) {
        if (v->all[i].kind != TOOL_VIEW_HIDDEN) continue;
        bool is_it = !strcmp(v->all[i].path, path);
        if (below ? !is_it && is_within(v->all[i].path, path) : is_it) return true;
    }
    return false;
}

/* Landlock gives folders and takes nothing back, so a folder with something hidden in it is given entry by entry. */
static void allow(tool_views *v, const char *path, tool_view_rule rule)
{
    if (!rule.is_folder || !hides(v, path, true)) {
        add_rule(v, path, rule);
        return;
    }
    add_rule(v, path, (tool_view_rule){.is_folder = true, .lists_only = true});
    if (rule.writes) add_rule(v, path, (tool_view_rule){.is_folder = true, .writes_only = true});
    DIR *dir = opendir(path);
    for (const struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
        struct stat st;
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        char *child = join(strcmp(path, "/") ? path : "", e->d_name);
        if (!hides(v, child, false) && !lstat(child, &st) && (S_ISDIR(st.st_mode) || S_ISREG(st.st_mode)))
            allow(v, child, (tool_view_rule){.is_folder = S_ISDIR(st.st_mode), .writes = rule.writes});
        free(child);
    }
    if (dir) closedir(dir);
}

static void make_rules(tool_views *v)
{
    for (size_t i = 0; i < v->n; i++) {
        const tool_view *view = &v->all[i];
        if (view->kind >= TOOL_VIEW_READ)
            allow(v, view->path,
                (tool_view_rule){.is_folder = view->is_folder, .writes = view->kind == TOOL_VIEW_WRITE});
    }
}

static int make_nothing(gathering *g)
{
    g->nothing[0] = join(g->needs->session, "nothing-file");
    g->nothing[1] = join(g->needs->session, "nothing");
    int code = base_fs_mkdirs(g->nothing[1], g->err);
    int fd = code ? -1 : open(g->nothing[0], O_WRONLY | O_CREAT | O_CLOEXEC, 0400);
    if (!code && fd < 0 && errno != EACCES) code = base_fail_sys(g->err, "%s", g->nothing[0]);
    if (fd >= 0) close(fd);
    return code;
}

int tool__view_make(const tool_view_needs *needs, tool_views *ret, base_err *err)
{
    gathering g = {.needs = needs, .v = ret, .home = find_home(), .err = err};
    *ret = (tool_views){0};
    char *tmp = join(needs->session, "tmp");
    g.is_home_in_tree = g.home && is_within(g.home, needs->root);
    int code = make_nothing(&g);
    if (!code) code = base_fs_mkdirs(tmp, err);
    if (!code) {
        add_system(&g);
        add(&g, needs->root_is_writable ? TOOL_VIEW_WRITE : TOOL_VIEW_READ, needs->root, needs->root);
        if (needs->tree) add(&g, TOOL_VIEW_READ, needs->tree, needs->tree);
        add(&g, TOOL_VIEW_WRITE, tmp, tmp);
        code = add_home(&g);
    }
    if (!code) {
        for (const char *const *path = needs->readable; path && *path; path++) {
            char *real = leads_through_tree(&g, *path) ? NULL : realpath(*path, NULL);
            if (real) add(&g, TOOL_VIEW_READ, real, real);
            free(real);
        }
        add_toolchains(&g);
        for_each_named(&g, add_named);
        for_each_named(&g, add_targets);
        add_secrets(&g);
        qsort(ret->all, ret->n, sizeof *ret->all, by_path);
        drop_needless(ret);
        for (size_t i = 0; i < ret->n; i++)
            if (ret->all[i].kind == TOOL_VIEW_LAYER) ret->all[i].layer = layer_options(&g, ret->all[i].path);
        if (!needs->has_mounts) make_rules(ret);
    }
    free(tmp);
    free(g.home);
    for (int i = 0; i < 2; i++) free(g.nothing[i]);
    if (code) tool__view_free(ret);
    return code;
}

void tool__view_free(tool_views *v)
{
    for (size_t i = 0; i < v->n; i++) {
        free(v->all[i].path);
        free(v->all[i].from);
        free(v->all[i].layer);
    }
    for (size_t i = 0; i < v->n_rules; i++) free(v->rules[i].path);
    free(v->all);
    free(v->rules);
    free(v->home);
    free(v->git_config);
    *v = (tool_views){0};
}
