/* Files to options (contract: config.h). */
#include "cmd/config.h"

#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/show.h"
#include "cmd/config_text.h"

typedef struct reading {
    config *config;
    int argc;
    char **argv;
    common_options *common;
    const option_row *own;
    bool all;
    option_source source;
    const char *file;
} reading;

static const char *model_of_environment(void)
{
    const char *name = getenv("KVIST_MODEL");
    return name && *name ? name : NULL;
}

/* Has the command line, or the environment, said it already? */
static bool is_overruled(const reading *r, const char *key)
{
    base_buf name = {0};
    base_buf_printf(&name, "--%s", key);
    const bool is_given = options_are_given(r->argc, r->argv, name.data);
    base_buf_free(&name);
    return is_given || (!strcmp(key, "model") && model_of_environment());
}

/* "~/x" of a path in the user's own file. */
static char *expand(const char *value)
{
    const char *home = getenv("HOME");
    base_buf out = {0};
    if (strncmp(value, "~/", 2) || !home) return base_xstrdup(value);
    base_buf_printf(&out, "%s%s", home, value + 1);
    return out.data;
}

static void remember(reading *r, const char *key, char *value, uint32_t line)
{
    config *c = r->config;
    base_buf source = {0};
    base_buf_printf(&source, "%s:%u", r->file, line);
    if (c->n == c->cap) base_grow(&c->settings, &c->cap, c->n + 1, sizeof *c->settings);
    c->settings[c->n++] = (config_setting){base_xstrdup(key), value, source.data};
}

static int put(void *user, const char *key, const char *value, uint32_t line, base_err *err)
{
    reading *r = user;
    if (is_overruled(r, key)) return 0;
    char *kept = r->source == OPTION_OF_USER ? expand(value) : base_xstrdup(value);
    base_err why = {0};
    int rc = options_put_setting(r->common, r->own, r->all, r->source, key, kept, &why);
    if (!rc) {
        if (!strcmp(key, "model")) r->common->is_model_configured = true;
        remember(r, key, kept, line);
        return 0;
    }
    free(kept);
    if (r->source == OPTION_OF_USER) return base_fail(err, rc, "%s", why.msg);
    base_buf_printf(&r->config->notes, "%s:%u: ", r->file, line);
    base_show(&r->config->notes, why.msg, strlen(why.msg), BASE_SHOW_UTF8);
    base_buf_putc(&r->config->notes, '\n');
    return 0;
}

int config_read_user(
    config *c, int argc, char **argv, common_options *common, const option_row *own, bool all, base_err *err)
{
    char *path = base_fs_home(BASE_HOME_CONFIG, "config");
    base_buf text = {0};
    uint32_t line = 0;
    int rc = 0;
    if (base_fs_exists(path)) {
        reading r = {c, argc, argv, common, own, all, OPTION_OF_USER, path};
        rc = base_fs_check_owner(
            path, err); /* it may name an endpoint, and the mode in which nothing is asked */
        if (!rc) rc = base_fs_read(path, CONFIG_MOST_BYTES, &text, err);
        if (!rc) {
            rc = config_text_read(text.data ? text.data : "", text.len, put, &r, &line, err);
            if (rc) {
                base_err_prefix(err, "%s:%u", path, line);
                rc = err->code = BASE_E_USAGE;
            }
        }
    }
    base_buf_free(&text);
    free(path);
    return rc;
}

void config_read_project(config *c, int argc, char **argv, common_options *common, const option_row *own,
    const char *shown, const char *text, size_t n)
{
    reading r = {c, argc, argv, common, own, true, OPTION_OF_PROJECT, shown};
    base_err err = {0};
    uint32_t line = 0;
    if (config_text_read(text, n, put, &r, &line, &err))
        base_buf_printf(&c->notes, "%s:%u: %s; the rest of the file is not read\n", shown, line, err.msg);
}

void config_free(config *c)
{
    for (size_t i = 0; i < c->n; i++) {
        free(c->settings[i].key);
        free(c->settings[i].value);
        free(c->settings[i].source);
    }
    free(c->settings);
    base_buf_free(&c->notes);
    *c = (config){0};
}

/* The project's settings come last, and the last one counts. */
static const config_setting *find(const config *c, const char *key)
{
    for (size_t i = c->n; i > 0; i--)
        if (!strcmp(c->settings[i - 1].key, key)) return &c->settings[i - 1];
    return NULL;
}

const char *config_source(const config *c, const char *key)
{
    const config_setting *s = find(c, key);
    return s ? s->source : NULL;
}

typedef struct listing {
    const config *config;
    int argc;
    char **argv;
    base_buf *out;
} listing;

/* The word behind an option of the command line: "--name VALUE" or "--name=VALUE"; a flag is on. */
static const char *given_value(int argc, char **argv, const char *name)
{
    const size_t n = strlen(name);
    for (int i = 1; i < argc && strcmp(argv[i], "--"); i++) {
        if (strncmp(argv[i], name, n)) continue;
        if (argv[i][n] == '=') return argv[i] + n + 1;
        if (!argv[i][n]) return i + 1 < argc && argv[i + 1][0] != '-' ? argv[i + 1] : "on";
    }
    return NULL;
}

static void list_one(void *user, const char *name, const char *unset)
{
    const listing *l = user;
    const char *value = given_value(l->argc, l->argv, name), *source = "command line";
    const config_setting *s = value ? NULL : find(l->config, name + 2);
    if (s) value = s->value, source = s->source;
    if (!value && !strcmp(name, "--model") && model_of_environment())
        value = model_of_environment(), source = "KVIST_MODEL";
    base_buf_printf(l->out, "%s%s\t", l->out->len ? "\n" : "", name + 2);
    if (!value) value = unset ? unset : "", source = unset ? "default" : "not set";
    base_show(l->out, value, strlen(value), BASE_SHOW_UTF8);
    base_buf_printf(l->out, "\t%s", source);
}

void config_list(const config *c, int argc, char **argv, const option_row *own, base_buf *out)
{
    options_each_setting(own, list_one, &(listing){c, argc, argv, out});
}
