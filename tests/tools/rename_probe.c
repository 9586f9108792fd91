/*
 * For scripts/bench-rename: what rename would change, as JSON lines, to be held against another program's answer.
 *   rename_probe DIR             the definitions of a tree, a line each
 *   rename_probe DIR rename      reads "FILE:LINE:NAME" a line and says which places are sure and which are not
 *   rename_probe DIR back        reads the same, renames there and back in the files of DIR, and says whether all bytes are as before
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/json.h"
#include "tools/edit/change.h"
#include "tools/refactor/refactor.h"

static void put_string(base_buf *out, const char *s)
{
    base_json_put_str(out, s, strlen(s));
}

/* Locals and parameters of one name in eight: to find those of all names takes a look at the file for each. */
static void list_locals(tool_workspace *w, const char *path, const tool_file *f, const code_file *c)
{
    const char *text = f->text.data ? f->text.data : "";
    size_t pos = 0, from, to;
    char seen[4096][32];
    uint32_t n_seen = 0;
    while (code_next_identifier(text, f->text.len, &pos, &from, &to)) {
        char name[32];
        uint32_t hash = 2166136261u;
        if (to - from >= sizeof name) continue;
        memcpy(name, text + from, to - from);
        name[to - from] = '\0';
        for (size_t i = 0; name[i]; i++) hash = (hash ^ (unsigned char)name[i]) * 16777619u;
        bool again = (hash >> 16) % 8 != 0 || n_seen == 4096;
        for (uint32_t i = 0; i < n_seen && !again; i++) again = !strcmp(seen[i], name);
        if (again) continue;
        memcpy(seen[n_seen++], name, sizeof name);
        code_uses *u = code_uses_find(w->grammars, path, text, f->text.len, name);
        for (uint32_t i = 0; u && i < u->n_uses; i++) {
            const code_use *x = &u->uses[i];
            if (x->binding != x->from || x->definition != UINT32_MAX || x->import != UINT32_MAX) continue;
            base_buf out = {0};
            base_buf_puts(&out, "{\"path\":");
            put_string(&out, path);
            base_buf_puts(&out, ",\"name\":");
            put_string(&out, name);
            base_buf_puts(&out, ",\"parent\":");
            put_string(&out, x->inside == UINT32_MAX ? "" : c->definitions[x->inside].name);
            base_buf_printf(&out,
                ",\"what\":\"local\",\"line\":%u,\"from\":%u,\"declaration\":false,\"language\":\"%s\"}",
                x->line, x->from, c->language);
            puts(out.data);
            base_buf_free(&out);
        }
        code_uses_free(u);
    }
}

static void list(tool_workspace *w)
{
    for (size_t i = 0; i < w->listing.n; i++) {
        const char *path = w->listing.files[i].path;
        tool_file f = {0};
        if (!code_language(path, "", 0) || tool__file_read(&w->root, path, TOOL_MAX_INDEXED, &f, NULL))
            continue;
        code_file *c = code_parse(w->grammars, path, f.text.data ? f.text.data : "", f.text.len);
        for (uint32_t d = 0; c->language && d < c->n_definitions; d++) {
            base_buf out = {0};
            const code_definition *x = &c->definitions[d];
            if (!strcmp(x->name, x->parent) && !strcmp(x->what, "method"))
                continue; /* a constructor is its class */
            uint32_t line = 1;
            for (uint32_t k = 0; k < x->name_from; k++) line += f.text.data[k] == '\n';
            base_buf_puts(&out, "{\"path\":");
            put_string(&out, path);
            base_buf_puts(&out, ",\"name\":");
            put_string(&out, x->name);
            base_buf_puts(&out, ",\"parent\":");
            put_string(&out, x->parent);
            base_buf_printf(&out,
                ",\"what\":\"%s\",\"line\":%u,\"from\":%u,\"declaration\":%s,\"language\":\"%s\"}", x->what,
                line, x->name_from, x->is_declaration ? "true" : "false", c->language);
            puts(out.data);
            base_buf_free(&out);
        }
        if (c->language) list_locals(w, path, &f, c);
        code_file_free(c);
        tool__file_free(&f);
    }
}

static void put_places(base_buf *out, const refactor *x, refactor_verdict v)
{
    bool any = false;
    for (size_t i = 0; i < x->n_places; i++) {
        if (x->places[i].verdict != v) continue;
        base_buf_puts(out, any ? ",[" : "[");
        put_string(out, x->files[x->places[i].file].path);
        base_buf_printf(
            out, ",%u,%u,%d]", x->places[i].use->from, x->places[i].use->line, x->places[i].use->role);
        any = true;
    }
}

static void rename_one(tool_workspace *w, char *line)
{
    tool_result r = {0};
    refactor x = {.w = w, .result = &r};
    base_buf out = {0}, given = {0};
    char *name = strrchr(line, ':');
    *name++ = '\0';
    base_buf_printf(&given, "%s", line);
    char *colon = strrchr(given.data, ':');
    base_buf ask = {0};
    base_buf_printf(&ask, "%s:%s", name, colon + 1);
    *colon = '\0';
    bool is_good = refactor__find_target(&x, ask.data, given.data) && refactor__resolve(&x);
    base_buf_puts(&out, "{\"ask\":");
    put_string(&out, line);
    base_buf_puts(&out, ",\"name\":");
    put_string(&out, name);
    if (is_good) {
        base_buf_puts(&out, ",\"sure\":[");
        put_places(&out, &x, REFACTOR_SURE);
        base_buf_puts(&out, "],\"unsure\":[");
        put_places(&out, &x, REFACTOR_UNSURE);
        base_buf_puts(&out, "]}");
    } else {
        base_buf_puts(&out, ",\"refused\":");
        put_string(&out, r.text.data ? r.text.data : "");
        base_buf_puts(&out, "}");
    }
    puts(out.data);
    fflush(stdout);
    base_buf_free(&out);
    base_buf_free(&given);
    base_buf_free(&ask);
    refactor__free(&x);
    tool_result_free(&r);
}

/* Renames what has this name on a line, in the files; what they held is put into *ret_before. false: *r says why not. */
static bool rename_files(tool_workspace *w, const char *path, const char *ask, const char *to,
    tool_changes *ret_before, tool_result *r)
{
    refactor x = {.w = w, .result = r, .to = to};
    tool_changes changes = {0};
    base_buf headline = {0};
    base_err err = {0};
    const bool is_good = !tool_workspace_refresh(w, NULL, NULL, &err) &&
                         refactor__find_target(&x, ask, path) &&
                         refactor__rename(&x, &(refactor_request){.to = to}, &changes, &headline) &&
                         tool__changes_hold(w, &changes, r);
    for (size_t i = 0; is_good && i < changes.n; i++) {
        const tool_change *one = changes.all[i];
        base_buf whole = {0}, before = {0};
        tool_file now = {0};
        if (!tool__file_read(&w->root, one->path, TOOL_MAX_FILE, &now, NULL))
            tool__changes_add(ret_before, one->path, &now, &before);
        const mode_t mode = now.st.st_mode & 07777;
        tool__file_free(&now);
        base_buf_printf(&whole, "%s/%s", w->root.path, one->path);
        base_fs_write(whole.data, one->new_text.data, one->new_text.len, mode, &err);
        base_buf_free(&whole);
    }
    base_buf_free(&headline);
    for (size_t i = 0; i < changes.n; i++) tool__change_free(changes.all[i]);
    free(changes.all);
    free(changes.say);
    free(changes.notice);
    refactor__free(&x);
    return is_good;
}

/* {"back":"same"}, {"back":"refused", ...} where one of both is, {"back":"differs"}. The files are as before afterwards. */
static void rename_back(tool_workspace *w, char *line)
{
    tool_result r = {0};
    tool_changes before = {0}, after = {0};
    base_buf there = {0}, back = {0}, to = {0}, out = {0};
    base_err err = {0};
    char *name = strrchr(line, ':');
    *name++ = '\0';
    char *number = strrchr(line, ':');
    *number++ = '\0';
    base_buf_printf(&to, "%sZz9", name);
    base_buf_printf(&there, "%s:%s", name, number);
    base_buf_printf(&back, "%s:%s", to.data, number);
    const bool is_there = rename_files(w, line, there.data, to.data, &before, &r);
    const bool is_back = is_there && rename_files(w, line, back.data, name, &after, &r);
    bool is_same = is_back;
    for (size_t i = 0; i < before.n; i++) {
        const base_buf *old = &before.all[i]->old_text;
        tool_file now = {0};
        base_buf whole = {0};
        if (tool__file_read(&w->root, before.all[i]->path, TOOL_MAX_FILE, &now, NULL) ||
            now.text.len != old->len || memcmp(now.text.data, old->data, old->len) != 0)
            is_same = false;
        const mode_t mode = now.st.st_mode & 07777;
        tool__file_free(&now);
        base_buf_printf(&whole, "%s/%s", w->root.path, before.all[i]->path);
        base_fs_write(whole.data, old->data, old->len, mode, &err);
        base_buf_free(&whole);
    }
    base_buf_printf(&out, "{\"back\":\"%s\",\"there\":%s,\"files\":%zu,\"said\":",
        is_same    ? "same"
        : !is_back ? "refused"
                   : "differs",
        is_there ? "true" : "false", before.n);
    put_string(&out, r.text.data ? r.text.data : "");
    base_buf_putc(&out, '}');
    puts(out.data);
    fflush(stdout);
    for (size_t i = 0; i < before.n; i++) tool__change_free(before.all[i]);
    for (size_t i = 0; i < after.n; i++) tool__change_free(after.all[i]);
    free(before.all);
    free(after.all);
    base_buf_free(&there);
    base_buf_free(&back);
    base_buf_free(&to);
    base_buf_free(&out);
    tool_result_free(&r);
}

int main(int argc, char **argv)
{
    tool_workspace *w;
    base_err err = {0};
    tool_workspace_options options = {.dir = argc > 1 ? argv[1] : "."};
    if (tool_workspace_open(&w, &options, &err) || tool_workspace_refresh(w, NULL, NULL, &err)) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    char line[4096];
    if (argc < 3) list(w);
    while (argc > 2 && fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        if (strchr(line, ':')) (strcmp(argv[2], "back") ? rename_one : rename_back)(w, line);
    }
    tool_workspace_close(w);
    return 0;
}
