/*
 * Finding and reading skills and commands (contract: skills.h). A tree's files are opened as the read tool
 * opens them, so no link leads out of the tree; a person's must be theirs, as the configuration must.
 */
#include "agent/command/skills.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/command/skill_text.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/utf8.h"

static const char of_tree[] = ".agents/skills", of_person[] = "commands", ending[] = ".md";

static void free_skill(agent_skill *s)
{
    free(s->name);
    free(s->about);
    free(s->path);
    free(s->file);
    free(s->wrong);
}

void agent_skills_free(agent_skills *s)
{
    for (size_t i = 0; i < s->n; i++) free_skill(&s->all[i]);
    free(s->all);
    *s = (agent_skills){0};
}

const agent_skill *agent_skills_get(const agent_skills *s, const char *name, size_t n)
{
    for (size_t i = 0; i < s->n; i++)
        if (strlen(s->all[i].name) == n && !memcmp(s->all[i].name, name, n)) return &s->all[i];
    return NULL;
}

static int read_text(tool_workspace *w, const agent_skill *s, base_buf *out, base_err *err)
{
    if (s->is_of_tree) return tool_workspace_read(w, s->file, AGENT_SKILL_MOST_BYTES, out, err);
    const int rc = base_fs_check_owner(s->file, err);
    return rc ? rc : base_fs_read(s->file, AGENT_SKILL_MOST_BYTES, out, err);
}

static int check_names(const agent_skill *s, const agent_skill_text *t, base_err *err)
{
    if (!s->is_of_tree) return 0;
    if (!t->name || !t->description)
        return base_fail(err, BASE_E_FORMAT, "its front matter has no %s", t->name ? "description" : "name");
    if (strcmp(t->name, s->name))
        return base_fail(
            err, BASE_E_FORMAT, "it calls itself \"%s\", and its folder \"%s\"", t->name, s->name);
    return 0;
}

/* ret->body is the first byte that is to be seen. */
static int read_parsed(
    tool_workspace *w, const agent_skill *s, base_buf *text, agent_skill_text *ret, base_err *err)
{
    int rc = read_text(w, s, text, err);
    if (!rc) rc = agent_skill_text_parse(text->data ? text->data : "", text->len, ret, err);
    if (rc) return rc;
    while (ret->body < text->len && strchr(" \t\r\n", text->data[ret->body])) ret->body++;
    rc = check_names(s, ret, err);
    if (!rc && ret->body == text->len)
        rc = base_fail(err, BASE_E_FORMAT, "there is nothing behind its front matter");
    if (rc) agent_skill_text_free(ret);
    return rc;
}

int agent_skill_read(tool_workspace *w, const agent_skill *s, base_buf *out, base_err *err)
{
    base_buf text = {0};
    agent_skill_text parsed = {0};
    const int rc = read_parsed(w, s, &text, &parsed, err);
    if (rc)
        base_err_prefix(err, "%s", s->path);
    else
        base_buf_add(out, text.data + parsed.body, text.len - parsed.body);
    agent_skill_text_free(&parsed);
    base_buf_free(&text);
    return rc;
}

void agent_skill_fill(const char *body, const char *arguments, base_buf *out)
{
    static const char mark[] = "$ARGUMENTS";
    const char *at = body, *hit;
    for (; (hit = strstr(at, mark)); at = hit + sizeof mark - 1) {
        base_buf_add(out, at, (size_t)(hit - at));
        base_buf_puts(out, arguments);
    }
    base_buf_puts(out, at);
    if (at == body && *arguments) base_buf_printf(out, "\n\n%s", arguments);
}

/* --- finding -------------------------------------------------------------------------------------------- */

static bool is_built_in(const char *name)
{
    static const char *const of_screen[] = {"copy", "exit", "tour"};
    for (size_t i = 0; i < sizeof of_screen / sizeof *of_screen; i++)
        if (!strcmp(of_screen[i], name)) return true;
    uint32_t n;
    const agent_command *table = agent_commands(&n);
    for (uint32_t i = 0; i < n; i++)
        if (!strcmp(table[i].name, name)) return true;
    return false;
}

static char *harmless(const char *s)
{
    base_buf clean = {0};
    base_utf8_sanitise(&clean, s, strlen(s), false);
    return base_buf_take(&clean);
}

static void append(agent_skills *all, agent_skill s)
{
    base_grow(&all->all, &all->cap, all->n + 1, sizeof *all->all);
    all->all[all->n++] = s;
}

/* Takes what is in `s` over. What is there under a name that cannot be typed is told; what is no skill is not. */
static void add_misnamed(tool_workspace *w, agent_skills *all, agent_skill s)
{
    base_buf text = {0};
    const bool is_there = read_text(w, &s, &text, NULL) != BASE_E_NOT_FOUND;
    base_buf_free(&text);
    if (!is_there) {
        free_skill(&s);
        return;
    }
    char *name = s.name, *path = s.path;
    s.name = harmless(name);
    s.path = harmless(path);
    free(name);
    free(path);
    s.about = base_xstrdup("");
    s.wrong = base_xstrdup("a name has small letters, digits and - between them, as in \"code-review\"");
    append(all, s);
}

/* Takes what is in `s` over. */
static void add(tool_workspace *w, agent_skills *all, agent_skill s)
{
    base_buf text = {0};
    agent_skill_text parsed = {0};
    base_err err = {0};
    if (read_parsed(w, &s, &text, &parsed, &err)) {
        s.wrong = harmless(err.msg);
    } else if (is_built_in(s.name)) {
        base_buf why = {0};
        base_buf_printf(&why, "/%s is a command of kvist: give it another name", s.name);
        s.wrong = base_buf_take(&why);
    } else if (agent_skills_get(all, s.name, strlen(s.name))) {
        s.wrong = base_xstrdup("a command of yours has the same name, and is the one that is used");
    }
    if (s.wrong)
        s.about = base_xstrdup("");
    else
        s.about = harmless(parsed.description ? parsed.description : "your command");
    agent_skill_text_free(&parsed);
    base_buf_free(&text);
    append(all, s);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names in a person's folder that end in .md, sorted; the caller frees each and the array. */
static char **names_of_person(const char *folder)
{
    char **names = base_xcalloc(1, sizeof *names);
    size_t n = 0, cap = 1;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        const size_t len = strlen(e->d_name), end = sizeof ending - 1;
        if (len <= end || strcmp(e->d_name + len - end, ending)) continue;
        base_grow(&names, &cap, n + 2, sizeof *names);
        names[n++] = base_xstrndup(e->d_name, len - end);
        names[n] = NULL;
    }
    if (d) closedir(d);
    qsort(names, n, sizeof *names, by_name);
    return names;
}

static void free_names(char **names)
{
    for (char **p = names; p && *p; p++) free(*p);
    free(names);
}

static char *join(const char *a, const char *b, const char *c)
{
    base_buf out = {0};
    base_buf_printf(&out, "%s/%s%s", a, b, c);
    return base_buf_take(&out);
}

void agent_skills_find(tool_workspace *w, agent_skills *ret)
{
    *ret = (agent_skills){0};
    char *folder = base_fs_home(BASE_HOME_CONFIG, of_person);
    char **names = names_of_person(folder);
    for (char **name = names; *name && ret->n < AGENT_MOST_SKILLS; name++) {
        char *file = join(folder, *name, ending);
        (agent_skill_is_name(*name, strlen(*name)) ? add : add_misnamed)(
            w, ret, (agent_skill){.name = base_xstrdup(*name), .path = base_xstrdup(file), .file = file});
    }
    free_names(names);
    free(folder);
    names = NULL;
    if (tool_workspace_folder(w, of_tree, &names, NULL)) return;
    for (char **name = names; *name && ret->n < AGENT_MOST_SKILLS; name++) {
        char *file = join(of_tree, *name, "/SKILL.md");
        (agent_skill_is_name(*name, strlen(*name)) ? add : add_misnamed)(w, ret,
            (agent_skill){
                .name = base_xstrdup(*name), .path = base_xstrdup(file), .file = file, .is_of_tree = true});
    }
    free_names(names);
}
