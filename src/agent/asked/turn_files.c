/* Files of a turn (contract: turn_files.h). */
#include "agent/asked/turn_files.h"

#include <stdlib.h>
#include <string.h>

#include "agent/asked/asked.h"
#include "base/mem.h"
#include "tools/edit/undo.h"

enum { MAX_FILE = 1 << 20 };

typedef struct gathering {
    const agent *a;
    agent_turn_files *files;
} gathering;

static int add_file(void *user, const char *path, const base_buf *before, base_err *err)
{
    gathering *g = user;
    agent_turn_files *t = g->files;
    const size_t n_before = before && before->data ? before->len : 0;
    base_buf now = {0};
    if (!agent__is_changed(g->a, path) || n_before > MAX_FILE) return 0;
    if (tool_workspace_read(g->a->workspace, path, MAX_FILE, &now, NULL)) base_buf_clear(&now);
    agent_turn_file f = {.path = base_xstrdup(path),
        .language = code_language(path, "", 0),
        .before = base_xstrndup(n_before ? before->data : "", n_before),
        .n_before = n_before,
        .now = base_xstrndup(now.data ? now.data : "", now.len),
        .n_now = now.len};
    f.code_before = code_blank_comments(f.language, f.before, f.n_before);
    f.code_now = code_blank_comments(f.language, f.now, f.n_now);
    t->files = base_xrealloc(t->files, (t->n + 1) * sizeof *t->files);
    t->files[t->n++] = f;
    base_buf_free(&now);
    return 0;
}

void agent__turn_files(const agent *a, agent_turn_files *ret)
{
    gathering g = {.a = a, .files = ret};
    *ret = (agent_turn_files){0};
    if (a->asked.n_changed) tool__undo_each(a->workspace, add_file, &g, NULL);
}

void agent__turn_files_free(agent_turn_files *t)
{
    for (size_t i = 0; i < t->n; i++) {
        agent_turn_file *f = &t->files[i];
        free(f->path);
        free(f->before);
        free(f->now);
        free(f->code_before);
        free(f->code_now);
    }
    free(t->files);
    *t = (agent_turn_files){0};
}

bool agent__is_turn_code(const agent_turn_file *f)
{
    return f->language && !code_language_is_document(f->language) && !code_path_is_test(f->path);
}

uint32_t agent__count_name(const char *text, size_t n, const char *name)
{
    uint32_t count = 0;
    for (size_t pos = 0, from, to; code_next_identifier(text, n, &pos, &from, &to);)
        count += to - from == strlen(name) && !memcmp(text + from, name, to - from);
    return count;
}
