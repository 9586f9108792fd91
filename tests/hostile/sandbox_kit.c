#include "sandbox_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "tools/result/result.h"

static const char *attack_program; /* the built attack.c */
static char *persons_home;

const char *sandbox_persons_home(void)
{
    return persons_home;
}

void sandbox_put_attack(tree *t)
{
    base_buf program = {0};
    base_err err = {0};
    if (base_fs_read(attack_program, 64 << 20, &program, &err)) fail_msg("%s", err.msg);
    tree_put_bytes(t, "attack", program.data, program.len);
    chmod(tree_path(t, "attack"), 0755);
    base_buf_free(&program);
}

char *sandbox_run_bare(const tree *t, const char *command)
{
    char line[900], bytes[4096];
    base_buf said = {0};
    snprintf(line, sizeof line, "cd %s && exec %s 2>&1", t->dir, command);
    base_buf_puts(&said, "without kvist\n");
    FILE *out = popen(line, "r");
    assert_non_null(out);
    for (size_t n; (n = fread(bytes, 1, sizeof bytes, out));) base_buf_add(&said, bytes, n);
    pclose(out);
    return base_buf_take(&said);
}

char *sandbox_run_confined(tree *t, const char *command)
{
    char arguments[600];
    t->limits.shell_ms = 120000 * tree_patience();
    snprintf(arguments, sizeof arguments, "{\"command\":\"%s\"}", command);
    tool_result r = tree_call(t, "shell", arguments, NULL);
    char *said = base_buf_take(&r.text);
    tool_result_free(&r);
    return said;
}

int sandbox_walls(const tool_sandbox *real, tool_sandbox ret[3], const char *names[3])
{
    int n = 0;
    if (real->landlock_abi && real->has_seccomp) {
        names[n] = "without namespaces";
        ret[n] = *real;
        ret[n].has_mounts = ret[n].has_pids = ret[n].needs_user = false;
        n++;
    }
    if (real->has_mounts && real->has_seccomp) {
        names[n] = "namespaces without Landlock";
        ret[n] = *real;
        ret[n++].landlock_abi = 0;
    }
    if (n == 2) {
        names[n] = "all walls";
        ret[n++] = *real;
    }
    return n;
}

/* A person's home: what must not be seen, and toolchains that must. */
static void fill_home(const char *home)
{
    static const char *const files[][2] = {{".ssh/id_ed25519", "SECRET"}, {".aws/credentials", "SECRET"},
        {".netrc", "SECRET"}, {".npmrc", "SECRET"}, {".bashrc", "# mine\n"},
        {".local/share/kvist/log.db", "SECRET"}, {"projects/other/secret.c", "SECRET"},
        {".cargo/credentials.toml", "SECRET"}, {".cargo/config.toml", "[build]\n"},
        {".m2/settings.xml", "SECRET"}, {".m2/repository/artifact", "jar\n"}, {".rustup/toolchain", "x\n"},
        {".gitconfig",
            "[user]\n\tname = A Person\n[github]\n\ttoken = t0ken\n[credential]\n\thelper = t0ken\n"}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[400];
        snprintf(path, sizeof path, "%s/%s", home, files[i][0]);
        char *slash = strrchr(path, '/');
        *slash = '\0';
        base_fs_mkdirs(path, NULL);
        *slash = '/';
        base_fs_write(path, files[i][1], strlen(files[i][1]), 0600, NULL);
    }
    char link[400];
    snprintf(link, sizeof link, "%s/.cargo/link", home);
    if (symlink("credentials.toml", link)) perror(link);
}

static int run_with_home(int (*run)(const char *who))
{
    char home[] = "/tmp/kvist-home-XXXXXX";
    if (!mkdtemp(home)) return 1;
    persons_home = strdup(getenv("HOME") ? getenv("HOME") : "/");
    setenv("HOME", home, 1);
    fill_home(home);
    int failed = run(geteuid() ? "as an ordinary user" : "as root");
    base_fs_remove(home, NULL);
    setenv("HOME", persons_home, 1);
    free(persons_home);
    return failed;
}

/* A copy that any user may read: the build folder may lie where only its owner looks. */
static int copy_program(const char *from, char *to)
{
    base_buf bytes = {0};
    int fd = mkstemp(to), rc = fd < 0 || base_fs_read(from, 64 << 20, &bytes, NULL);
    if (!rc) rc = write(fd, bytes.data, bytes.len) != (ssize_t)bytes.len || fchmod(fd, 0644);
    if (fd >= 0) close(fd);
    base_buf_free(&bytes);
    return rc;
}

int sandbox_main(int argc, char **argv, int (*run)(const char *who))
{
    static char copy[] = "/tmp/kvist-attack-XXXXXX";
    if (argc == 3) cmocka_set_test_filter(argv[2]); /* by hand: "row 8*" */
    if (argc < 2 || argc > 3 || copy_program(argv[1], copy)) {
        fprintf(stderr, "usage: %s ATTACK_PROGRAM [PATTERN]\n", argv[0]);
        return 2;
    }
    attack_program = copy;
    int status = 0;
    if (!geteuid()) { /* first, and in a process that has used nothing yet: libgit2 reads HOME once */
        pid_t child = fork();
        if (!child) {
            if (setgroups(0, NULL) || setresgid(SANDBOX_NOBODY, SANDBOX_NOBODY, SANDBOX_NOBODY) ||
                setresuid(SANDBOX_NOBODY, SANDBOX_NOBODY, SANDBOX_NOBODY))
                _exit(99);
            prctl(PR_SET_DUMPABLE, 1); /* else nobody of this user could look into us anyway */
            int n = run_with_home(run);
            fflush(NULL);
            _exit(n ? 1 : 0);
        }
        waitpid(child, &status, 0);
    }
    int failed = run_with_home(run);
    unlink(copy);
    return failed || status;
}
