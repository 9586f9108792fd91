/*
 * kvist grammar: the languages, where their grammars were found, and putting one into the data folder.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/path.h"
#include "cmd/cmd.h"
#include "code/code.h"

enum { MAX_GRAMMAR_BYTES = 256 << 20 };

static const char usage[] =
    "usage: kvist grammar list           the languages and where their grammars were found\n"
    "       kvist grammar check          the same with ABI and node names that a grammar lacks\n"
    "       kvist grammar install FILE   copies libtree-sitter-LANG.so, "
    "LANG.so or languages.so to the data folder\n";

static void list(bool check)
{
    code_grammars *g = code_grammars_open();
    const code_grammar_info *info;
    const uint32_t n = code_grammars_list(g, &info);
    for (uint32_t i = 0; i < n; i++) {
        const bool usable = info[i].path != NULL && info[i].usable;
        printf("%-12s %s", info[i].language,
            info[i].path != NULL ? info[i].path : "not found: read without a grammar");
        if (info[i].path != NULL && !usable && info[i].why != NULL)
            printf("  (%s)", info[i].why);
        else if (info[i].path != NULL && !usable && info[i].abi == 0)
            printf("  (is no grammar of it that loads: read without one)");
        else if (info[i].path != NULL && !usable)
            printf("  (ABI %u: not usable)", info[i].abi);
        else if (check && usable)
            printf("  ABI %u", info[i].abi);
        if (check && info[i].unresolved[0] != '\0') printf("  lacks: %s", info[i].unresolved);
        printf("\n");
    }
    code_grammars_close(g);
}

static int install(void *user, const char *from, base_err *err)
{
    char *languages = NULL, *folder = NULL;
    base_buf bytes = {0}, to = {0};
    int rc = code_grammar_inspect(from, &languages, err);
    if (rc == 0) rc = base_fs_read_given(from, MAX_GRAMMAR_BYTES, &bytes, err);
    if (rc == 0) {
        folder = base_fs_home(BASE_HOME_DATA, "grammars");
        base_buf_printf(&to, "%s/%s", folder, base_path_name(from));
        rc = base_fs_mkdirs(folder, err);
    }
    if (rc == 0) rc = base_fs_write(to.data, bytes.data, bytes.len, 0644, err);
    if (rc == 0) printf("%s: %s\n", to.data, languages);
    free(languages);
    free(folder);
    base_buf_free(&bytes);
    base_buf_free(&to);
    return rc;
}

static int do_list(void *user, const char *word, base_err *err)
{
    list(false);
    return 0;
}

static int do_check(void *user, const char *word, base_err *err)
{
    list(true);
    return 0;
}

static const cmd_verb verbs[] = {
    {"list", NULL, do_list, .is_default = true},
    {"check", NULL, do_check},
    {"install", "one file", install},
    {NULL},
};

int cmd_grammar(int argc, char **argv)
{
    const char **rest = base_xcalloc((size_t)argc + 1, sizeof *rest);
    uint32_t n = 0;
    base_err err = {0};
    int status, r = 0;
    const cmd_words words = {.usage = usage, .rest = rest, .n_rest = &n};
    if (cmd_begin(argc, argv, NULL, NULL, &words, &status))
        r = cmd_run_verb("kvist grammar", verbs, rest, n, NULL, &err);
    free(rest);
    return r ? cmd_complain(&err) : status;
}
