/*
 * What is staged and how messages read here is looked at by libgit2, which runs nothing. The commit itself is git's: it
 * runs the person's hooks, signs with their key and takes their identity, none of which the sandbox would let it
 * reach, so this is the one program that kvist runs outside of it (docs/confinement.md).
 */
#include "tools/commit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/show.h"
#include "base/utf8.h"
#include "tools/guard/git_since.h"
#include "tools/tree/git_bound.h"
#include "tools/tree/listing.h"
#include "tools/tree/workspace.h"

enum { MAX_OUTPUT = 64 << 10, N_MESSAGES = 20, MAX_BODY = 600 };

void tool_staged_free(tool_staged *s)
{
    tool_patches_free(&s->patches);
    base_buf_free(&s->style);
    free(s->prepared);
    tool__git_since_free(s->told);
    *s = (tool_staged){0};
}

static int fail_git(base_err *err, const char *what)
{
    const git_error *e = git_error_last();
    return base_fail(err, BASE_E_IO, "%s: %s", what, e && e->message ? e->message : "git gives no reason");
}

static int open_index(tool_workspace *w, git_index **ret, base_err *err)
{
    *ret = NULL;
    if (!w->repo || w->root.is_bare)
        return base_fail(
            err, BASE_E_STATE, "there is no repository with files here: nothing can be committed");
    if (git_repository_index(ret, w->repo)) return fail_git(err, "the index cannot be read");
    if (git_index_read(*ret, true)) {
        git_index_free(*ret);
        *ret = NULL;
        return fail_git(err, "the index cannot be read");
    }
    return 0;
}

/* ---- the identity of what is staged ---- */

static int put_merged(const git_oid *id, void *user)
{
    char hex[GIT_OID_HEXSZ + 1];
    base_buf_printf(user, "merged %s\n", git_oid_tostr(hex, sizeof hex, id));
    return 0;
}

static void put_id(tool_workspace *w, git_index *index, char ret[65])
{
    base_buf all = {0};
    git_oid head = {0};
    char hex[GIT_OID_HEXSZ + 1];
    git_reference_name_to_id(&head, w->repo, "HEAD"); /* no commit yet: zeros */
    base_buf_printf(&all, "%s\n", git_oid_tostr(hex, sizeof hex, &head));
    git_repository_mergehead_foreach(w->repo, put_merged, &all);
    for (size_t i = 0, n = git_index_entrycount(index); i < n; i++) {
        const git_index_entry *e = git_index_get_byindex(index, i);
        base_buf_printf(&all, "%o %s %d %s", (unsigned)e->mode, git_oid_tostr(hex, sizeof hex, &e->id),
            git_index_entry_stage(e), e->path);
        base_buf_putc(&all, '\0');
    }
    base_sha256_hex(all.data, all.len, ret);
    base_buf_free(&all);
}

int tool_commit_id(tool_workspace *w, char ret[65], base_err *err)
{
    git_index *index;
    int rc = open_index(w, &index, err);
    if (rc) return rc;
    put_id(w, index, ret);
    git_index_free(index);
    return 0;
}

/* ---- what is staged ---- */

static int put_staged(tool_workspace *w, git_index *index, tool_staged *ret, base_err *err)
{
    git_object *tree = NULL;
    git_diff *diff = NULL;
    git_diff_options options = GIT_DIFF_OPTIONS_INIT;
    options.flags = GIT_DIFF_INDENT_HEURISTIC;
    options.max_size = (git_off_t)TOOL_MAX_FILE;
    tool_git_bound bound = {0}, *before = tool__git_bound_begin(&bound);
    tool__git_bound(&bound, &options);
    const bool is_first = git_repository_head_unborn(w->repo) == 1;
    int failed = is_first ? 0 : git_revparse_single(&tree, w->repo, "HEAD^{tree}");
    if (!failed) failed = git_diff_tree_to_index(&diff, w->repo, (git_tree *)tree, index, &options);
    if (!failed) failed = git_diff_find_similar(diff, NULL);
    if (!failed) tool_patches_take(diff, &ret->patches);
    tool__git_bound_end(before);
    git_diff_free(diff);
    git_object_free(tree);
    if (bound.is_large)
        return base_fail(err, BASE_E_LIMIT,
            "what is staged, or the last commit, has an object of which more than %zu MiB would be unpacked",
            TOOL_GIT_MOST_BYTES >> 20);
    if (bound.is_over)
        return base_fail(err, BASE_E_LIMIT, "more than %d files differ from the last commit", TOOL_MAX_FILES);
    return failed ? fail_git(err, "what is staged cannot be read") : 0;
}

/* ---- how messages read here ---- */

static size_t without_end(const char *text)
{
    size_t n = strlen(text);
    while (n && strchr(" \t\r\n", text[n - 1])) n--;
    return n;
}

/* Lines of people and tools ("Signed-off-by: ...") are of that commit, not of the style. */
static size_t without_trailers(const char *body, size_t n)
{
    for (size_t to = n; to;) {
        size_t from = to;
        while (from && body[from - 1] != '\n') from--;
        const char *colon = memchr(body + from, ':', to - from), *blank = memchr(body + from, ' ', to - from);
        const bool is_trailer =
            colon && blank == colon + 1 && memchr(body + from, '-', (size_t)(colon - body) - from);
        if (!is_trailer) return to;
        to = from;
        while (to && strchr(" \t\r\n", body[to - 1])) to--;
        n = to;
    }
    return n;
}

/* Subjects first, newest on top; then whole messages while there is room. */
static void put_style(tool_workspace *w, size_t most, base_buf *out)
{
    git_revwalk *walk = NULL;
    git_oid id;
    char *messages[N_MESSAGES];
    uint32_t n = 0, n_messages = 0;
    base_buf text = {0};
    if (git_revwalk_new(&walk, w->repo)) return;
    bool has = !git_revwalk_push_head(walk);
    while (has && n < N_MESSAGES && !git_revwalk_next(&id, walk)) {
        git_commit *c = NULL;
        if (git_commit_lookup(&c, w->repo, &id)) break; /* a shallow clone ends here */
        const char *subject = git_commit_summary(c), *body = git_commit_body(c);
        if (subject && git_commit_parentcount(c) < 2) { /* git words a merge itself */
            base_buf_printf(&text, "%s\n", subject);
            const size_t len = body ? without_trailers(body, without_end(body)) : 0;
            base_buf whole = {0};
            base_buf_printf(&whole, "\n%s\n\n%.*s\n", subject, (int)len, body ? body : "");
            if (len && len <= MAX_BODY)
                messages[n_messages++] = base_buf_take(&whole);
            else
                base_buf_free(&whole);
            n++;
        }
        git_commit_free(c);
    }
    git_revwalk_free(walk);
    bool first = true;
    for (uint32_t i = 0; i < n_messages; i++) {
        if (text.len + strlen(messages[i]) <= most) {
            if (first) base_buf_puts(&text, "\nWhole messages of some of them:\n");
            base_buf_puts(&text, messages[i]);
            first = false;
        }
        free(messages[i]);
    }
    base_utf8_sanitise(out, text.data ? text.data : "", text.len, true);
    base_buf_free(&text);
}

/* ---- the middle of a merge ---- */

/* git commits nothing while a file has two sides; it would say so behind a draft that took a while. */
static int check_conflicts(git_index *index, base_err *err)
{
    enum { MAX_NAMED = 5 };
    git_index_conflict_iterator *all = NULL;
    const git_index_entry *base, *ours, *theirs;
    base_buf names = {0};
    uint32_t n = 0;
    if (!git_index_has_conflicts(index) || git_index_conflict_iterator_new(&all, index)) return BASE_OK;
    while (!git_index_conflict_next(&base, &ours, &theirs, all)) {
        const git_index_entry *e = ours ? ours : theirs ? theirs : base;
        if (n++ >= MAX_NAMED) continue;
        base_buf_puts(&names, n > 1 ? ", " : "");
        base_show(&names, e->path, strnlen(e->path, 60), BASE_SHOW_UTF8);
    }
    git_index_conflict_iterator_free(all);
    if (n > MAX_NAMED) base_buf_printf(&names, " and %u more", n - MAX_NAMED);
    const int rc =
        !n ? BASE_OK
           : base_fail(err, BASE_E_STATE,
                 "%u file%s in conflict: %s. `git add` takes a file as it stands, once it is put right", n,
                 n == 1 ? " is" : "s are", names.data);
    base_buf_free(&names);
    return rc;
}

/* What git has worded for a merge, a pick or a revert, without its comments. The caller frees; NULL: nothing. */
static char *prepared_message(tool_workspace *w)
{
    git_buf raw = {0};
    base_buf text = {0}, shown = {0};
    if (git_repository_message(&raw, w->repo)) return NULL;
    for (const char *line = raw.ptr; *line;) {
        const size_t n = strcspn(line, "\n");
        if (*line != '#') base_buf_printf(&text, "%.*s\n", (int)n, line);
        line += n + (line[n] == '\n');
    }
    git_buf_dispose(&raw);
    const size_t n = text.len ? without_end(text.data) : 0;
    if (n) base_utf8_sanitise(&shown, text.data, n, true);
    if (n) base_buf_putc(&shown, '\n');
    base_buf_free(&text);
    return shown.len ? base_buf_take(&shown) : NULL;
}

int tool_commit_look(tool_workspace *w, size_t style_bytes, tool_staged *ret, base_err *err)
{
    git_index *index;
    *ret = (tool_staged){0};
    int rc = open_index(w, &index, err);
    if (rc) return rc;
    put_id(w, index, ret->id);
    rc = check_conflicts(index, err);
    if (!rc) rc = put_staged(w, index, ret, err);
    git_index_free(index);
    if (!rc && git_repository_state(w->repo) != GIT_REPOSITORY_STATE_NONE)
        ret->prepared = prepared_message(w);
    const bool is_merge = git_repository_state(w->repo) == GIT_REPOSITORY_STATE_MERGE;
    if (!rc && !ret->patches.n && !is_merge)
        rc = base_fail(err, BASE_E_STATE,
            "nothing is staged: `git add FILE` (or `git add -p` "
            "for parts of files) chooses what the commit holds");
    if (!rc) {
        tool_git_bound bound = {0}, *before = tool__git_bound_begin(&bound);
        put_style(w, style_bytes, &ret->style); /* what is too large is left out */
        tool__git_bound_end(before);
    }
    if (rc) tool_staged_free(ret);
    return rc;
}

void tool_commit_list_changed(tool_workspace *w, tool_staged *s, base_buf *out)
{
    tool__git_since_free(s->told);
    s->told = tool__git_since_take(w); /* first: what changes from here on is in one of the two lists */
    tool__git_since_list(w, w->git_since, out);
}

void tool_commit_list_since_told(tool_workspace *w, const tool_staged *s, base_buf *out)
{
    tool__git_since_list(w, s->told, out);
}

/* ---- git's own commit ---- */

/*
 * Of git's own variables these are the person's: who they are, which configuration and which git. All others choose what is
 * committed (GIT_DIR, GIT_INDEX_FILE, GIT_WORK_TREE, GIT_OBJECT_DIRECTORY, ...), and that is what was drafted for: libgit2, which
 * looked at it, reads none of them.
 */
static bool is_persons(const char *variable)
{
    static const char *const persons[] = {"GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_CONFIG_",
        "GIT_EXEC_PATH=", "GIT_SSH=", "GIT_SSH_", "GIT_ASKPASS=", "GIT_TRACE"};
    for (size_t i = 0; i < sizeof persons / sizeof *persons; i++)
        if (!strncmp(variable, persons[i], strlen(persons[i]))) return true;
    return strncmp(variable, "GIT_", 4) != 0;
}

/* The environment without what would draw on the terminal that the screen has: a question for a passphrase. */
static char **environment(void)
{
    static const char terminal[] = "GPG_TTY=";
    extern char **environ;
    size_t n = 0, kept = 0;
    while (environ[n]) n++;
    char **all = base_xcalloc(n + 2, sizeof *all);
    for (size_t i = 0; i < n; i++)
        if (is_persons(environ[i]) && strncmp(environ[i], terminal, strlen(terminal)) != 0)
            all[kept++] = environ[i];
    all[kept] = (char *)(uintptr_t) "GIT_TERMINAL_PROMPT=0";
    return all;
}

static int start(tool_workspace *w, const char *path, int output, pid_t *ret)
{
    const char *const argv[] = {"git", "-C", w->root.path, "commit", "-F", path, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&how);
    int failed = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    if (!failed) failed = posix_spawn_file_actions_adddup2(&files, output, 1);
    if (!failed) failed = posix_spawn_file_actions_adddup2(&files, output, 2);
    /* A session of its own: no terminal to read from, and one group to end. */
    if (!failed)
        failed = posix_spawnattr_setflags(
            &how, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (!failed) failed = posix_spawnattr_setsigmask(&how, &none);
    if (!failed) failed = posix_spawnattr_setsigdefault(&how, &all);
    char **env = environment();
    if (!failed) failed = posix_spawnp(ret, "git", &files, &how, (char *const *)(uintptr_t)argv, env);
    free(env);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&how);
    return failed;
}

/* What is there now; false: the other end is closed. */
static bool take_output(int fd, base_buf *out)
{
    char bytes[4096];
    for (;;) {
        const ssize_t n = read(fd, bytes, sizeof bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return n < 0 && errno == EAGAIN;
        base_buf_add(out, bytes, (size_t)n);
        if (out->len > 2 * MAX_OUTPUT) {
            memmove(out->data, out->data + out->len - MAX_OUTPUT, MAX_OUTPUT);
            out->data[out->len = MAX_OUTPUT] = '\0';
        }
    }
}

int tool_commit_run(tool_workspace *w, const char *path, const atomic_bool *cancel, base_buf *out,
    int *ret_status, base_err *err)
{
    enum { LOOK_MS = 50, PATIENCE = 60 /* looks until what was asked to end is killed */ };
    int ends[2], status = 0;
    pid_t child = -1;
    if (pipe2(ends, O_CLOEXEC)) return base_fail_sys(err, "git commit");
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    const int failed = start(w, path, ends[1], &child);
    close(ends[1]);
    if (failed) {
        close(ends[0]);
        errno = failed;
        return failed == ENOENT
                   ? base_fail(err, BASE_E_NOT_FOUND, "git is not installed: nothing was committed")
                   : base_fail_sys(err, "git commit");
    }
    /* A program that a hook left running may hold the pipe: git's own end is what counts. */
    bool is_open = true, is_cancelled = false;
    for (int looks = 0;;) {
        struct pollfd p = {.fd = is_open ? ends[0] : -1, .events = POLLIN};
        poll(&p, 1, LOOK_MS);
        if (is_open) is_open = take_output(ends[0], out);
        const pid_t over = waitpid(child, &status, WNOHANG);
        if (over == child || (over < 0 && errno != EINTR)) break;
        if (cancel && atomic_load(cancel)) {
            if (!is_cancelled) kill(-child, SIGTERM); /* git removes its lock files */
            if (is_cancelled && ++looks == PATIENCE) kill(-child, SIGKILL);
            is_cancelled = true;
        }
    }
    if (is_open) take_output(ends[0], out);
    close(ends[0]);
    *ret_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (is_cancelled && *ret_status)
        return base_fail(err, BASE_E_CANCELLED, "git commit was interrupted: nothing was committed");
    return 0;
}
