/* The allowed part of the person's git configuration (contract: sandbox_home.h). */
#include "tools/confine/sandbox_home.h"

#include <git2.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "tools/file/git_includes.h"

static const char *const allowed_keys[] = {"user.name", "user.email", "init.defaultbranch", "core.autocrlf",
    "core.eol", "core.safecrlf", "core.quotepath", "core.precomposeunicode", "core.abbrev", "safe.directory",
    "merge.conflictstyle", "merge.ff", "diff.algorithm", "diff.renames", "diff.colormoved", "pull.rebase",
    "pull.ff", "push.default", "rebase.autosquash", "rebase.autostash", "commit.cleanup", "log.date",
    "status.showuntrackedfiles", "rerere.enabled", "column.ui"};

/* "section.key" and its value as git reads them back: in quotes, with escapes. */
static void put_entry(const char *name, const char *value, base_buf *out)
{
    const char *dot = strchr(name, '.');
    base_buf_printf(out, "[%.*s]\n\t%s = \"", (int)(dot - name), name, dot + 1);
    for (const char *p = value; *p; p++) {
        if (*p == '\n')
            base_buf_puts(out, "\\n");
        else if (*p == '"' || *p == '\\')
            base_buf_printf(out, "\\%c", *p);
        else
            base_buf_putc(out, *p);
    }
    base_buf_puts(out, "\"\n");
}

static void add_file(const char *path, base_buf *out)
{
    git_config *config = NULL;
    git_config_iterator *all = NULL;
    git_config_entry *entry;
    char *obstacle = tool__git_includes(path, NULL, NULL); /* a pipe would be waited for */
    const bool is_open = !obstacle && !git_config_open_ondisk(&config, path);
    free(obstacle);
    if (!is_open || git_config_iterator_new(&all, config)) {
        git_config_free(config);
        return;
    }
    while (!git_config_next(&entry, all)) {
        for (size_t i = 0; i < sizeof allowed_keys / sizeof *allowed_keys; i++)
            if (!strcmp(entry->name, allowed_keys[i]) && entry->value)
                put_entry(entry->name, entry->value, out);
    }
    git_config_iterator_free(all);
    git_config_free(config);
}

char *tool__home_git_config(const char *home)
{
    static const char *const files[] = {
        ".config/git/config", ".gitconfig"}; /* git reads them in this order */
    base_buf text = {0};
    base_buf_puts(&text, "");
    for (int i = 0; home && i < 2; i++) {
        base_buf path = {0};
        base_buf_printf(&path, "%s/%s", home, files[i]);
        add_file(path.data, &text);
        base_buf_free(&path);
    }
    return text.data ? base_buf_take(&text) : base_xstrdup("");
}
