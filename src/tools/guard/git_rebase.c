/*
 * The steps of a rebase that has not ended (rebase-merge/git-rebase-todo, sequencer/todo): `exec` and whatever we do not know may run
 * a program when somebody goes on with it (contract: git_rebase.h).
 */
#include "tools/guard/git_rebase.h"

#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/mem.h"
#include "tools/guard/below.h"

const char *const tool__git_state_names[] = {"rebase-merge", "rebase-apply", "sequencer", NULL};
static const struct {
    /* lists of steps; strategies, which git takes for programs' names; options, one of which writes a file */
    const char *state, *name;
} step_files[] = {{"rebase-merge", "git-rebase-todo"}, {"sequencer", "todo"}, {"rebase-merge", "strategy"},
    {"rebase-merge", "strategy_opts"}, {"sequencer", "opts"}, {"rebase-apply", "apply-opt"}};

bool tool__git_states_have(const tool_git_states *list, const struct stat *st)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->all[i].dev == st->st_dev && list->all[i].ino == st->st_ino) return true;
    return false;
}

void tool__git_states_add(
    const tool_root *root, const tool_git_walk *walk, const tool_git_states *known, tool_git_states *list)
{
    struct stat st;
    for (size_t i = 0; i < walk->n_repos; i++)
        for (const char *const *name = tool__git_state_names;
             walk->repos[i].kind != TOOL_REPO_POINTER && *name; name++) {
            char *path = base_fs_join(walk->repos[i].path, *name);
            if (tool__look(root, path, &st) && !tool__git_states_have(known, &st) &&
                !tool__git_states_have(list, &st)) {
                base_grow(&list->all, &list->cap, list->n + 1, sizeof *list->all);
                list->all[list->n++] = (tool_git_state){st.st_dev, st.st_ino};
            }
            free(path);
        }
}

void tool__git_states_free(tool_git_states *list)
{
    free(list->all);
    *list = (tool_git_states){0};
}

void tool__git_steps_keep(
    const tool_root *root, const tool_git_walk *walk, const tool_kept_list *earlier, tool_kept_list *ret)
{
    struct stat st;
    for (size_t i = 0; i < walk->n_repos; i++) {
        if (walk->repos[i].kind == TOOL_REPO_POINTER) continue;
        for (size_t k = 0; k < sizeof step_files / sizeof *step_files; k++) {
            char *path = base_fs_join(walk->repos[i].path, step_files[k].state), *file = NULL;
            if (tool__look(root, path, &st)) file = base_fs_join(path, step_files[k].name);
            if (file) tool__kept_add(root, file, NULL, earlier, ret);
            free(file);
            free(path);
        }
    }
    tool__kept_sort(ret);
}

static const char *const harmless[] = {"pick", "p", "reword", "r", "edit", "e", "squash", "s", "fixup", "f",
    "break", "b", "drop", "d", "label", "l", "reset", "t", "merge", "m", "noop", "update-ref", "u", "revert"};

static bool is_harmless(const char *line, size_t n)
{
    while (n && (*line == ' ' || *line == '\t' || *line == '\r')) line++, n--;
    if (!n || *line == '#') return true;
    size_t word = 0;
    while (word < n && line[word] != ' ' && line[word] != '\t' && line[word] != '\r') word++;
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        if (strlen(harmless[i]) == word && !memcmp(line, harmless[i], word)) return true;
    return false;
}

static bool stood_in(const base_buf *before, const char *line, size_t n)
{
    const char *end = before && before->data ? before->data + before->len : NULL;
    for (const char *p = before ? before->data : NULL; p && p < end;) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        size_t m = (size_t)((stop ? stop : end) - p);
        if (m == n && !memcmp(p, line, n)) return true;
        p += m + 1;
    }
    return false;
}

const char *tool__git_todo_refused(const base_buf *now, const base_buf *before)
{
    const char *end = now->data ? now->data + now->len : NULL;
    for (const char *p = now->data; p && p < end;) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        size_t n = (size_t)((stop ? stop : end) - p);
        if (!is_harmless(p, n) && !stood_in(before, p, n)) return "it holds a step that runs a program";
        p += n + 1;
    }
    return NULL;
}

/*
 * A strategy is a program's name, `git-merge-NAME`, which git looks for in PATH. In sequencer/opts it stands as a value, beside the
 * options of one ("strategy-option").
 */
static bool names_strange_strategy(const char *text, bool is_value)
{
    static const char *const known[] = {"ort", "recursive", "resolve", "octopus", "ours", "subtree"};
    static const char blanks[] = " \t\r\n";
    for (const char *p = is_value ? text : strcasestr(text, "strategy"); p; p = strcasestr(p, "strategy")) {
        if (!is_value) {
            p += strlen("strategy");
            if (!strncasecmp(p, "-option", 7)) continue;
            p += strspn(p, blanks);
            p += *p == '=';
        }
        p += strspn(p, blanks);
        const size_t n = strcspn(p, blanks);
        bool is_known = is_value && !n;
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            is_known |= strlen(known[i]) == n && !strncmp(p, known[i], n);
        if (!is_known) return true;
        p += n;
    }
    return false;
}

bool tool__git_steps_refused(const tool_kept *now, const tool_kept *before)
{
    if (!now->is_held || !S_ISREG(now->st.st_mode)) return true;
    if (base_ends_with(now->path, "todo"))
        return tool__git_todo_refused(&now->bytes, before && before->is_held ? &before->bytes : NULL) != NULL;
    if (!now->bytes.data) return false;
    if (base_ends_with(now->path, "/strategy") && names_strange_strategy(now->bytes.data, true)) return true;
    if (base_ends_with(now->path, "/opts") && names_strange_strategy(now->bytes.data, false)) return true;
    return strlen(now->bytes.data) != now->bytes.len || strchr(now->bytes.data, '/');
}
