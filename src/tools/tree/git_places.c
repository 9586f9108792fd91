/* The places, by their real paths (contract: git_places.h). */
#include "tools/tree/git_places.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/mem.h"
#include "tools/tree/git_obstacles.h"

enum {
    MOST_DEPTH = 5,     /* of alternates of alternates; libgit2 goes as deep */
    MOST_FOLDERS = 1000 /* of objects, in all: each can name the same ones again */
};

typedef struct search {
    const char *const *in;
    size_t left; /* folders of objects that are still looked at */
} search;

static bool is_in(const char *path, const char *const *in)
{
    for (; *in; in++) {
        const size_t n = strlen(*in);
        if (!strcmp(*in, "/") || (!strncmp(path, *in, n) && (path[n] == '/' || !path[n]))) return true;
    }
    return false;
}

/* Takes path. NULL: it lies in one of them, or is not there. */
static char *find_one(const search *s, char *path)
{
    char *real = realpath(path, NULL);
    free(path);
    if (real && !is_in(real, s->in)) return real;
    free(real);
    return NULL;
}

static char *find_objects(search *s, const char *objects, int depth);

/* Each line of objects/info/alternates is another folder of objects. */
static char *find_alternate(search *s, const char *objects, int depth)
{
    char *path = base_fs_join(objects, "info/alternates"), *found = NULL;
    struct stat st;
    base_buf text = {0};
    if (!stat(path, &st) && S_ISREG(st.st_mode)) base_fs_read(path, TOOL_GIT_MOST_TEXT, &text, NULL);
    for (char *line = text.data; !found && line && *line;) {
        char *end = line + strcspn(line, "\r\n");
        const bool is_last = !*end;
        *end = '\0';
        if (*line && *line != '#') {
            char *other = *line == '/' ? base_xstrdup(line) : base_fs_join(objects, line);
            found = s->left ? find_objects(s, other, depth + 1) : base_xstrdup(other);
            free(other);
        }
        line = is_last ? NULL : end + 1;
    }
    base_buf_free(&text);
    free(path);
    return found;
}

static char *find_objects(search *s, const char *objects, int depth)
{
    static const char *const names[] = {"info", "info/alternates", "pack", NULL};
    s->left--;
    char *found = find_one(s, base_xstrdup(objects));
    for (size_t i = 0; names[i] && !found; i++) found = find_one(s, base_fs_join(objects, names[i]));
    DIR *dir = found ? NULL : opendir(objects);
    for (const struct dirent *e; dir && !found && (e = readdir(dir));)
        if (e->d_type != DT_DIR && e->d_type != DT_REG) found = find_one(s, base_fs_join(objects, e->d_name));
    if (dir) closedir(dir);
    return found || depth > MOST_DEPTH ? found : find_alternate(s, objects, depth);
}

char *tool__git_find_outside(const char *own, const char *common, const char *const *in)
{
    /* Whose contents are shown, or say what is; of hooks and configuration nothing is. */
    static const char *const names[] = {".", "HEAD", "index", "packed-refs", "refs", "refs/heads",
        "refs/remotes", "refs/tags", "logs", "shallow", NULL};
    search s = {in, MOST_FOLDERS};
    char *found = NULL;
    for (size_t i = 0; names[i] && !found; i++) {
        found = find_one(&s, base_fs_join(own, names[i]));
        if (!found) found = find_one(&s, base_fs_join(common, names[i]));
    }
    char *objects = base_fs_join(common, "objects");
    if (!found) found = find_objects(&s, objects, 0);
    free(objects);
    return found;
}
