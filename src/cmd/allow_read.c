/* Resolves, asks, remembers (contract: allow_read.h). */
#include "cmd/allow_read.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cmd/grants.h"

static int ask(const char *tree, const char *path, base_err *err)
{
    base_buf question = {0};
    base_buf_puts(&question, "Commands of the model in ");
    grants_show(&question, tree);
    base_buf_puts(&question, " will be able to read\n  ");
    grants_show(&question, path);
    base_buf_puts(&question, "\nand all that is in it. Allow that, now and later? [y/N] ");
    int rc = grants_ask(AGENT_APPROVAL_READ, tree, path, question.data, err);
    if (rc == BASE_E_DENIED)
        rc = base_fail(err, BASE_E_DENIED, "--allow-read %s: not allowed; nothing was started", path);
    base_buf_free(&question);
    return rc;
}

/* The real path, or an error that says what to name instead. */
static int resolve(const char *given, char **ret, base_err *err)
{
    const char *home = getenv("HOME");
    char *real = realpath(given, NULL);
    if (!real) return base_fail_sys(err, "--allow-read %s", given);
    char *real_home = home ? realpath(home, NULL) : NULL;
    int code = BASE_OK;
    if (!real[1] || (real_home && !strcmp(real, real_home)))
        code = base_fail(err, BASE_E_USAGE,
            "--allow-read %s: that is %s; name the folders in it that commands need", given,
            real[1] ? "your home folder" : "the whole file system");
    free(real_home);
    if (code)
        free(real);
    else
        *ret = real;
    return code;
}

int allow_read_resolve(const char *dir, const char *const *given, size_t n, char ***ret, base_err *err)
{
    char **paths = base_xcalloc(n + 1, sizeof *paths), *tree = n ? grants_tree(dir) : NULL;
    int code = BASE_OK;
    for (size_t i = 0; i < n && !code; i++) {
        code = resolve(given[i], &paths[i], err);
        if (!code && grants_can_ask()) code = ask(tree, paths[i], err);
    }
    free(tree);
    if (code) {
        for (size_t i = 0; i < n; i++) free(paths[i]);
        free(paths);
    } else {
        *ret = paths;
    }
    return code;
}
