/* Trees made, and commands run in them; see long_tree.h. */
#include "bench/long/long_tree.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* $1 the data folder, $2 repository, $3 commit or nothing, $4 the tree. */
static const char make_script[] =
    "set -e\n"
    "rm -rf \"$4\"; mkdir -p \"$4\"\n"
    "git='git -c user.name=bench -c user.email=bench@localhost -c init.defaultBranch=main'\n"
    "case $2 in\n"
    "quixbugs)\n"
    "    for part in python_programs python_testcases json_testcases "
    "conftest.py; do cp -r \"$1/quixbugs/$part\" \"$4\"; done\n"
    "    chmod -R u+w \"$4\"; find \"$4\" -name __pycache__ -prune -exec rm -rf {} +\n"
    "    printf '__pycache__/\\n.pytest_cache/\\n' >\"$4/.gitignore\"\n"
    "    cd \"$4\"; $git init -q; git add -A; $git commit -q -m 'Programs with one wrong line each' ;;\n"
    "all)\n"
    "    for one in hiredis cobra commander.js xsv; do git -c advice.detachedHead=false clone -q "
    "\"$1/repos/$one.bundle\" \"$4/$one\"; "
    "rm -rf \"$4/$one/.git\"; done\n"
    "    cd \"$4\"; $git init -q; git add -A; $git commit -q -m 'Four projects' ;;\n"
    "*) git -c advice.detachedHead=false clone -q \"$1/repos/$2.bundle\" \"$4\"; [ -z \"$3\" ] || git -C "
    "\"$4\" -c advice.detachedHead=false checkout -q \"$3\" ;;\n"
    "esac\n";

static int run(const char *folder, const char *const *words, int *ret_status, base_err *err)
{
    const pid_t child = fork();
    if (child < 0) return base_fail_sys(err, "cannot start %s", words[0]);
    if (!child) {
        const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (nowhere < 0 || dup2(nowhere, 0) < 0 || dup2(nowhere, 1) < 0 || (folder && chdir(folder)))
            _exit(127);
        execvp(words[0], (char *const *)(uintptr_t)words);
        _exit(127);
    }
    int status = 0;
    if (waitpid(child, &status, 0) < 0) return base_fail_sys(err, "cannot wait for %s", words[0]);
    *ret_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return 0;
}

int long_tree_make(const char *data, const char *repo, const char *commit, const char *tree, base_err *err)
{
    const char *const words[] = {"sh", "-c", make_script, "sh", data, repo, commit ? commit : "", tree, NULL};
    int status = 0;
    const int rc = run(NULL, words, &status, err);
    if (!rc && status)
        return base_fail(err, BASE_E_IO,
            "the tree of %s could not be made from %s: sh and git say status %d (--data names the folder)",
            repo, data, status);
    return rc;
}

int long_tree_run(const char *tree, const char *line, int *ret_status, base_err *err)
{
    const char *const words[] = {"sh", "-c", line, NULL};
    return run(tree, words, ret_status, err);
}
