/*
 * What a command could leave behind for the person's own git, which runs outside of the box. Every attack first runs without a
 * defence and must work there. The defences are tried one by one: the comparison alone, Landlock without mounts, everything; and all
 * of it once more as an ordinary user when this runs as root.
 */
#include "tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "tools/guard/kept.h"
#include "tools/result/result.h"

static tool_result run(tree *t, const char *command)
{
    base_buf arguments = {0};
    base_buf_puts(&arguments, "{\"command\":");
    tool__quote(&arguments, command);
    base_buf_puts(&arguments, "}");
    tool_result r = tree_call(t, "shell", arguments.data, NULL);
    base_buf_free(&arguments);
    return r;
}

/* As the person would, in the tree, outside of any box. */
static int outside(tree *t, const char *command)
{
    base_buf line = {0};
    base_buf_printf(&line, "cd '%s' && { %s\n} >/dev/null 2>&1", t->dir, command);
    int status = system(line.data);
    base_buf_free(&line);
    return status;
}

/* The defences of this machine, weakest first; false: there is no such one. */
static bool defend(tree *t, int which)
{
    const tool_sandbox real = t->w->sandbox;
    switch (which) {
    case 0: t->w->sandbox = (tool_sandbox){0}; return true; /* the comparison alone */
    case 1: t->w->sandbox.has_mounts = t->w->sandbox.has_pids = false; return real.landlock_abi > 0;
    default: return real.has_mounts;
    }
}
enum { N_DEFENCES = 3 };

/* ---- nothing that was there is lost ---- */

static void put_big(tree *t, const char *path, size_t n)
{
    char *bytes = malloc(n);
    assert_non_null(bytes);
    memset(bytes, '#', n);
    bytes[n - 1] = '\n';
    tree_put_bytes(t, path, bytes, n);
    free(bytes);
}

static const char *const odd_files[] = {".git/config", ".git/hooks", ".git/hooks/pre-commit",
    ".git/hooks/dangling", ".git/hooks/large", ".git/hooks/larger", ".git/hooks/empty", ".git/hooks/closed",
    ".git/hooks/pipe", ".git/info/attributes", ".git/hooks/commit-msg", "shared-config", "scripts/hook"};
enum { N_ODD = sizeof odd_files / sizeof *odd_files };

static void make_odd_files(tree *t)
{
    tree_make(t, true);
    tree_put(t, "scripts/hook", "#!/bin/sh\n");
    tree_put(t, "attributes", "*.c diff=c\n");
    assert_int_equal(
        outside(t, "mv .git/config shared-config && ln -s ../shared-config .git/config && "
                   "mkdir -p .git/hooks .git/info && cd .git/hooks && "
                   "ln -s ../../scripts/hook pre-commit && ln -s nowhere dangling && mkdir empty "
                   "&& mkfifo pipe && echo secret > closed && chmod 000 closed && "
                   "ln -s ../../attributes ../info/attributes"),
        0);
    put_big(t, ".git/hooks/large", (size_t)2 << 20);
    put_big(t, ".git/hooks/larger", (size_t)20 << 20);
    tree_put(t, ".git/hooks/commit-msg", "#!/bin/sh\nexit 0\n");
    chmod(tree_path(t, ".git/hooks/commit-msg"), 0755);
    tree_open(t);
}

static void stat_all(tree *t, struct stat *st)
{
    for (int i = 0; i < N_ODD; i++)
        if (lstat(tree_path(t, odd_files[i]), &st[i])) fail_msg("%s is gone", odd_files[i]);
}

static size_t count_aside(tree *t)
{
    size_t n = 0;
    DIR *dir = opendir(tree_path(t, "../aside"));
    for (const struct dirent *e; dir && (e = readdir(dir));) n += e->d_name[0] != '.';
    if (dir) closedir(dir);
    return n;
}

static void test_git__a_command_that_does_nothing_changes_nothing(void **state)
{
    for (int which = 0; which < N_DEFENCES; which++) {
        tree t;
        struct stat before[N_ODD], after[N_ODD];
        make_odd_files(&t);
        if (defend(&t, which)) {
            stat_all(&t, before);
            for (int i = 0; i < 3; i++) {
                tool_result r = run(&t, "true");
                assert_int_equal(r.status, TOOL_OK);
                assert_string_equal(r.text.data, "exit code 0, no output\n");
                tool_result_free(&r);
            }
            stat_all(&t, after);
            for (int i = 0; i < N_ODD; i++) {
                assert_int_equal(before[i].st_ino, after[i].st_ino);
                assert_int_equal(before[i].st_mode, after[i].st_mode);
                assert_int_equal(before[i].st_size, after[i].st_size);
                assert_int_equal(before[i].st_ctim.tv_nsec, after[i].st_ctim.tv_nsec);
            }
            assert_int_equal(count_aside(&t), 0);
        }
        tree_remove(&t);
    }
}

/* What is overwritten comes back where it could be held, and what the command left is kept in any case. */
static void test_git__what_a_command_changed_comes_back_and_its_version_is_kept(void **state)
{
    tree t;
    make_odd_files(&t);
    defend(&t, 0);
    tool_result r = run(&t, "cd .git/hooks; rm pre-commit; echo evil > pre-commit; echo evil > commit-msg; "
                            "rm -rf empty dangling; rm ../config; echo evil > ../config; echo evil > large; "
                            "echo evil > larger; echo more > post-merge; rm ../info/attributes");
    char target[200] = "";
    assert_true(readlink(tree_path(&t, ".git/hooks/pre-commit"), target, sizeof target) > 0);
    assert_string_equal(target, "../../scripts/hook");
    memset(target, 0, sizeof target);
    assert_true(readlink(tree_path(&t, ".git/config"), target, sizeof target) > 0);
    assert_string_equal(target, "../shared-config");
    assert_true(tree_has(&t, ".git/info/attributes"));
    assert_true(tree_has(&t, ".git/hooks/dangling"));
    assert_true(tree_has(&t, ".git/hooks/empty"));
    char *text = tree_get(&t, ".git/hooks/commit-msg");
    assert_string_equal(text, "#!/bin/sh\nexit 0\n");
    free(text);
    struct stat st;
    assert_int_equal(stat(tree_path(&t, ".git/hooks/commit-msg"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0755);
    assert_int_equal(stat(tree_path(&t, ".git/hooks/large"), &st), 0);
    assert_int_equal(st.st_size, 2 << 20);
    assert_false(tree_has(&t, ".git/hooks/post-merge"));
    assert_false(tree_has(&t, ".git/hooks/larger")); /* too large to be held: told, and not run */
    assert_contains(r.text.data, "changed .git/hooks/larger, which git would run or obey later, and it could "
                                 "not be put back");
    assert_contains(r.text.data, "made .git/hooks/post-merge");
    assert_int_equal(count_aside(&t), 6); /* pre-commit, commit-msg, config, large, larger, post-merge */
    assert_int_equal(outside(&t, "grep -rq evil ../aside && grep -rq more ../aside"), 0);
    tool_result_free(&r);
    r = run(&t, "true");
    assert_string_equal(r.text.data, "exit code 0, no output\n");
    tool_result_free(&r);
    tree_remove(&t);
}

/* A file that cannot be read is not one that was not there. */
static void test_git__an_unreadable_configuration_is_left_alone(void **state)
{
    tree t;
    tree_make(&t, true);
    assert_int_equal(outside(&t, "chmod 000 .git/config"), 0);
    tree_open(&t);
    for (int which = 0; which < N_DEFENCES; which++) {
        if (!defend(&t, which)) continue;
        tool_result r = run(&t, "true");
        assert_string_equal(r.text.data, "exit code 0, no output\n");
        tool_result_free(&r);
        assert_int_equal(outside(&t, "test -f .git/config"), 0);
    }
    tree_remove(&t);
}

/* ---- what a command plants does not run later ---- */

#define MAKE_FIRST                                                                                           \
    "git init -q; git config user.name Ada; git config user.email ada@example.org; echo a > f; git add f; "  \
    "git commit -qm first; "
/* The same, made once in the home folder: outside of the box only. */
#define FIRST "cp -a ~/first/. .; "
/* What runs when git looks at files; $CANARY is known outside of the box only. */
#define EVIL(config) "git config -f " config " core.fsmonitor 'touch $CANARY; false'; "
#define HOOK(path)                                                                                           \
    "mkdir -p $(dirname " path "); printf '#!/bin/sh\\ntouch $CANARY\\n' > " path "; chmod +x " path "; "
#define HOOKS_IN_TREE                                                                                        \
    "mkdir h; printf '#!/bin/sh\\n' > h/pre-commit; chmod +x h/pre-commit; git add -A; git commit -qm h; "   \
    "git "                                                                                                   \
    "config core.hooksPath h; "
#define MODULE                                                                                               \
    "mkdir ../origin; (cd ../origin; " FIRST "); git -c protocol.file.allow=always submodule -q add "        \
    "\"$PWD/../origin\" sub; git commit -qm module; "
/* Puts one name in the place of another of its length, sorts, and signs the whole as git would. */
#define INDEX_AT(path, from, to)                                                                             \
    "python3 -c \"\n"                                                                                        \
    "import hashlib, struct\n"                                                                               \
    "d, at, all = open('" path "', 'rb').read(), 12, []\n"                                                   \
    "for i in range(struct.unpack('>I', d[8:12])[0]):\n"                                                     \
    "    n = d.index(0, at + 62) - at\n"                                                                     \
    "    name = d[at + 62:at + n].replace(b'" from "', b'" to "', 1)\n"                                      \
    "    head = d[at:at + 60] + struct.pack('>H', struct.unpack('>H', d[at + 60:at + 62])[0] & 0xf000 | "    \
    "len(name))\n"                                                                                           \
    "    all.append((name, head + name + bytes(8 - (62 + len(name)) % 8)))\n"                                \
    "    at += (n + 8) // 8 * 8\n"                                                                           \
    "d = d[:12] + b''.join(e for _, e in sorted(all))\n"                                                     \
    "open('" path "', 'wb').write(d + hashlib.sha1(d).digest())\"; "
/* git's list of conflicts with one file in it, which it copies where commands can read. */
#define HASH           "0123456789012345678901234567890123456789"
#define CONFLICT(path) "mkdir -p .git/rr-cache/" HASH "; printf '" HASH "\\t" path "\\0' > .git/MERGE_RR"
#define LEAKS          "; grep -q key .git/rr-cache/*/postimage && touch $CANARY"
/* Where $d, in the box at `place`, lies outside of it: mountinfo says so. */
#define IN_HOST(place)                                                                                       \
    "sleep .5; p=$(awk '$5 == \"" place "\" {print $4}' /proc/self/mountinfo); "                             \
    "case $p in */kvist-tmp-*) d=/tmp/kvist${p#*/kvist}/r;; esac; "
#define INDEX(from, to) INDEX_AT(".git/index", from, to)
#define COMMIT          "git -c user.name=A -c user.email=a@b commit --allow-empty -m x"

static const struct attack {
    const char *name, *setup, *command, *later;
    const char *holds; /* must succeed outside afterwards; NULL: git log -1 */
    bool is_silent;    /* nothing has to be told: what it left leads nowhere */
    bool needs_walls;  /* what it uses is closed by Landlock or a mount, and open where nothing confines */
    const char *variables[8]; /* of the person's environment: names and values */
} attacks[] = {
    {"configuration", FIRST, EVIL(".git/config"), "git status"},
    {"a nested repository that is added", FIRST,
        "mkdir sub; (cd sub; " MAKE_FIRST "); " EVIL("sub/.git/config") "git add sub", "git status"},
    {"a nested repository somebody steps into", FIRST,
        "mkdir -p a/b; git init -q a/b; " EVIL("a/b/.git/config"), "cd a/b && git status"},
    {"a nested repository in an ignored folder", "echo node_modules > .gitignore; " FIRST,
        "mkdir -p node_modules/x; git init -q node_modules/x; " EVIL("node_modules/x/.git/config"),
        "cd node_modules/x && git status"},
    {"a module's configuration", FIRST MODULE, EVIL(".git/modules/sub/config"), "git status"},
    {"a module's hooks", FIRST MODULE, HOOK(".git/modules/sub/hooks/pre-commit"), "cd sub && " COMMIT},
    {"a module's .git led elsewhere", FIRST MODULE,
        "cp -r .git/modules/sub evil; git config -f evil/config core.worktree ../sub; " EVIL(
            "evil/config") "rm -f sub/.git; echo 'gitdir: ../evil' > sub/.git",
        "cd sub && git status"},
    {"a new module", FIRST,
        "mkdir -p .git/modules; cp -r .git ../m 2>/dev/null; git init -q --bare .git/modules/new; "
        "git config -f .git/modules/new/config core.bare false; git config -f .git/modules/new/config "
        "core.worktree "
        "../../../new; mkdir new; echo 'gitdir: ../.git/modules/new' > new/.git; " EVIL(
            ".git/modules/new/config"),
        "cd new && git status"},
    {"the repository renamed, a file in its place", FIRST,
        "mv .git evil && echo 'gitdir: evil' > .git; " EVIL("evil/config"), "git status"},
    {"the repository renamed, a link in its place", FIRST,
        "mv .git evil && ln -s evil .git; " EVIL("evil/config"), "git status"},
    {"the repository renamed, a copy in its place", FIRST,
        "cp -r .git evil; mv .git x && mv evil .git; " EVIL(".git/config"), "git status"},
    {"the repository renamed, a link to a copy in its place", FIRST,
        "cp -r .git evil; " EVIL("evil/config") "mv .git x && ln -s evil .git", "git status"},
    {"a repository where there was none", "echo a > f", "git init -q; " EVIL(".git/config"), "git status",
        .holds = "test -f f"},
    {"a bare repository where there was none", "echo a > f",
        "git init -q --bare x; mv x/* .; git config -f config core.bare false; git config -f config "
        "core.worktree .; " EVIL("config"),
        "git status", .holds = "test -f f"},
    {"a worktree's commondir", FIRST "git worktree add -q w",
        "cp -r .git evil; " EVIL("evil/config") "echo \"$PWD/evil\" > .git/worktrees/w/commondir",
        "cd w && git status"},
    {"a worktree's own configuration",
        FIRST "git config extensions.worktreeConfig true; git worktree add -q w",
        EVIL(".git/worktrees/w/config.worktree"), "cd w && git status"},
    {"a new worktree with a configuration", FIRST "git config extensions.worktreeConfig true",
        "git worktree add -q w; " EVIL(".git/worktrees/w/config.worktree"), "cd w && git status"},
    {"the repository's own commondir", FIRST,
        "cp -r .git evil; " EVIL("evil/config") "echo ../evil > .git/commondir", "git status"},
    {"hooks where no folder was", FIRST "rm -rf .git/hooks", HOOK(".git/hooks/pre-commit"), COMMIT},
    {"a hook among many", FIRST "mkdir -p .git/hooks; for i in $(seq 300); do echo > .git/hooks/n$i; done",
        "for i in $(seq 300); do echo > .git/hooks/m$i; done; " HOOK(".git/hooks/pre-commit"), COMMIT},
    {"the folder of hooks exchanged", FIRST "mkdir -p .git/hooks",
        "mv .git/hooks .git/h; " HOOK(".git/hooks/pre-commit"), COMMIT},
    {"the folder of hooks led into the tree", FIRST "rm -rf .git/hooks",
        HOOK("h/pre-commit") "ln -s ../h .git/hooks", COMMIT},
    {"a hook switched on",
        FIRST "mkdir -p .git/hooks; printf '#!/bin/sh\\ntouch $CANARY\\n' > .git/hooks/pre-commit",
        "chmod +x .git/hooks/pre-commit", COMMIT},
    {"a hook that is a link into the tree",
        FIRST HOOK("scripts/p") "echo '#!/bin/sh' > scripts/p; mkdir -p .git/hooks; ln -s "
                                "../../scripts/p .git/hooks/pre-commit",
        HOOK("scripts/p"), COMMIT},
    {"a step added to a rebase",
        FIRST "git commit -q --allow-empty -m second; GIT_SEQUENCE_EDITOR='sed -i "
              "s/^pick/edit/' git rebase -q -i HEAD~1 --keep-empty",
        "echo 'exec touch $CANARY' >> .git/rebase-merge/git-rebase-todo", "git rebase --continue"},
    {"a rebase that waits for its next step", FIRST "git commit -q --allow-empty -m second",
        "GIT_SEQUENCE_EDITOR='sed -i s/^pick/edit/' git rebase -q -i HEAD~1 --keep-empty; echo 'exec touch "
        "$CANARY' >> "
        ".git/rebase-merge/git-rebase-todo",
        "git rebase --continue"},
    {"a bare repository somebody steps into", FIRST,
        "git init -q --bare evil; git config -f evil/config core.bare false; git config -f evil/config "
        "core.worktree ..; " EVIL("evil/config"),
        "cd evil && git status"},
    {"a bare repository with its parts elsewhere", FIRST,
        "git init -q --bare c; mkdir e; mv c/HEAD e; echo ../c > e/commondir; git config -f c/config "
        "remote.origin.url "
        "/nowhere; git config -f c/config remote.origin.uploadpack 'touch $CANARY; false'",
        "cd e && git fetch origin"},
    {"a file that the configuration includes",
        FIRST "git config include.path ../shared.inc; echo > shared.inc", EVIL("shared.inc"), "git status"},
    {"a file that the configuration would include", FIRST "git config include.path ../shared.inc",
        EVIL("shared.inc"), "git status"},
    {"hooks in the tree (husky)",
        FIRST "git config core.hooksPath .husky/_; mkdir -p .husky/_; printf '#!/bin/sh\\nsh "
              ".husky/pre-commit\\n' > .husky/_/pre-commit; chmod +x .husky/_/pre-commit; echo true > "
              ".husky/pre-commit",
        "echo 'touch $CANARY' > .husky/pre-commit", COMMIT},
    {"a new hook in the tree", FIRST "git config core.hooksPath .githooks", HOOK(".githooks/pre-commit"),
        COMMIT},
    {"a hook in a large folder of the tree",
        FIRST "git config core.hooksPath tools; mkdir tools; for i in $(seq 300); do "
              "echo > tools/n$i; done",
        HOOK("tools/pre-commit"), COMMIT},
    {"a filter's program in the tree",
        "mkdir tools; echo cat > tools/clean.sh; echo '*.txt filter=x' > .gitattributes; " FIRST
        "git config filter.x.clean 'sh tools/clean.sh'",
        "echo 'touch $CANARY; cat' > tools/clean.sh", "echo b > b.txt; git add b.txt"},
    {"a way to a repository under another name", FIRST,
        "cp -r .git evil; " EVIL("evil/config") "mkdir src; echo 'gitdir: ../evil' > src/.git",
        "cd src && git status"},
    {"a link to a repository under another name", FIRST,
        "cp -r .git evil; " EVIL("evil/config") "mkdir src; ln -s ../evil src/.git", "cd src && git status"},
    {"a repository in a folder that cannot be read", FIRST,
        "mkdir -p d; git init -q d/r; " EVIL("d/r/.git/config") "chmod 311 d; chmod 555 d/r",
        "cd d/r && git status"},
    {"a repository inside of .git", FIRST, "git init -q .git/x; " EVIL(".git/x/.git/config"),
        "cd .git/x && git status"},
    {"a repository whose parts lie inside of .git", FIRST,
        "git init -q --separate-git-dir=.git/other sub; " EVIL(".git/other/config"), "cd sub && git status"},
    {"a bare repository inside of .git", FIRST,
        "git init -q --bare .git/y; git config -f .git/y/config core.bare false; git config -f .git/y/config "
        "core.worktree ..; " EVIL(".git/y/config"),
        "cd .git/y && git status"},
    {"a program named by its place in the home folder",
        FIRST "git config alias.mine \"!~/$(realpath --relative-to=\"$HOME\" .)/tool.sh\"",
        "printf '#!/bin/sh\\ntouch $CANARY\\n' > tool.sh; chmod +x tool.sh", "git mine"},
    {"a program named by the variable of the home folder",
        FIRST "git config alias.mine \"!\\\"\\$HOME\\\"/$(realpath --relative-to=\"$HOME\" .)/tool.sh\"",
        "printf '#!/bin/sh\\ntouch $CANARY\\n' > tool.sh; chmod +x tool.sh", "git mine"},
    {"a repository far down", FIRST,
        "p=$PWD; for i in $(seq 300); do mkdir d; cd -P d; done; git init -q; " EVIL(".git/config"),
        "for i in $(seq 300); do cd -P d; done; git status"},
    {"a repository behind what looks like one", "mkdir src; echo > src/f; " FIRST,
        "mkdir -p src/objects src/refs src/x; echo 'ref: refs/heads/m' > src/HEAD; git init -q src/x; " EVIL(
            "src/x/.git/config"),
        "cd src/x && git status"},
    {"a hook linked by a crowd that is being ended", FIRST "mkdir -p .git/hooks",
        HOOK("x") "python3 -c \"\nimport os, time\nend, canary = time.time() + 3, os.environ.get('CANARY', "
                  "'')\n"
                  "for i in range(60):\n    if not os.fork():\n"
                  "        while time.time() < end and not os.path.exists(canary):\n"
                  "            for _ in range(100):\n"
                  "                try: os.link('x', '.git/hooks/pre-commit')\n"
                  "                except OSError: pass\n        os._exit(0)\ntime.sleep(0.3)\"",
        COMMIT},
    {"an index that names a hook", FIRST,
        HOOK("Xgit/hooks/post-checkout") "git add Xgit; rm -r Xgit; " INDEX("Xgit/hooks", ".git/hooks"),
        "git checkout -- .; git checkout -q HEAD", .holds = "git reset -q && git status"},
    {"an index that names what lies beside the tree", FIRST,
        "echo > XX-canary; git add XX-canary; rm XX-canary; " INDEX("XX-canary", "../canary"),
        "git checkout -- .", .holds = "git reset -q && git status"},
    {"a split index that names a hook", FIRST,
        HOOK("Xgit/hooks/post-checkout") "git add Xgit; rm -r Xgit; git update-index --split-index; mv "
                                         ".git/sharedindex.* s; " INDEX_AT("s", "Xgit/hooks",
                                             ".git/hooks") "python3 -c \"\nimport hashlib\nnew = open('s', "
                                                           "'rb').read()[-20:]\nd = open('.git/index', "
                                                           "'rb').read()\n"
                                                           "at = d.index(b'link') + 8\nd = d[:at] + new + "
                                                           "d[at + 20:-20]\n"
                                                           "open('.git/index', 'wb').write(d + "
                                                           "hashlib.sha1(d).digest())\nprint(new.hex())\" > "
                                                           "n; "
                                                           "mv s .git/sharedindex.$(cat n); rm n",
        "git checkout -- .; git checkout -q HEAD", .holds = "rm -f .git/index; git reset -q && git status"},
    {"a new worktree's index", FIRST,
        "git worktree add -q w; cd w; " HOOK(
            "Xgit/hooks/post-checkout") "git add Xgit; rm -r Xgit; " INDEX_AT("../.git/worktrees/w/index",
            "Xgit/hooks/post-checkout", "../.git/hooks/post-checkout"),
        "cd w; git checkout -- .; git checkout -q HEAD"},
    {"hooks that a file names which is included on a condition",
        FIRST "printf '[core]\nhooksPath = .githooks\n' > inc; git config includeIf.gitdir:/.path ../inc",
        HOOK(".githooks/pre-commit"), COMMIT},
    {"a program of the configuration that is not there yet", FIRST "git config core.fsmonitor ./build/watch",
        HOOK("build/watch"), "git status"},
    {"a module's program in the tree",
        FIRST MODULE "git -C sub config core.fsmonitor ./watch; echo > sub/watch; chmod +x sub/watch",
        "printf '#!/bin/sh\ntouch $CANARY\n' > sub/watch", "cd sub && git status"},
    {"a hook in a folder that is no longer to be listed", FIRST "mkdir -p .git/hooks",
        HOOK(".git/hooks/pre-commit") "chmod 311 .git/hooks", COMMIT},
    {"a hook in a folder that nobody may enter, until somebody mends that", FIRST "mkdir -p .git/hooks",
        HOOK(".git/hooks/pre-commit") "chmod 000 .git/hooks", "chmod 755 .git/hooks; " COMMIT},
    {"a hook of the tree in a folder that is no longer to be listed",
        FIRST "git config core.hooksPath .githooks; mkdir .githooks; echo > .githooks/x",
        HOOK(".githooks/pre-commit") "chmod 311 .githooks", COMMIT},
    {"a worktree with a configuration that is not to be listed",
        FIRST "git config extensions.worktreeConfig true",
        "git worktree add -q w; " EVIL(".git/worktrees/w/config.worktree") "chmod 311 .git/worktrees/w",
        "cd w && git status"},
    {"a split index in a repository that is not to be listed", FIRST,
        HOOK("Xgit/hooks/post-checkout") "git add Xgit; rm -r Xgit; git update-index --split-index; mv "
                                         ".git/sharedindex.* s; " INDEX_AT("s", "Xgit/hooks",
                                             ".git/hooks") "python3 -c \"\nimport hashlib\nnew = open('s', "
                                                           "'rb').read()[-20:]\nd = open('.git/index', "
                                                           "'rb').read()\n"
                                                           "at = d.index(b'link') + 8\nd = d[:at] + new + "
                                                           "d[at + 20:-20]\n"
                                                           "open('.git/index', 'wb').write(d + "
                                                           "hashlib.sha1(d).digest())\nprint(new.hex())\" > "
                                                           "n; "
                                                           "mv s .git/sharedindex.$(cat n); rm n; chmod 311 "
                                                           ".git",
        "git checkout -- .; git checkout -q HEAD",
        .holds = "chmod 755 .git; rm -f .git/index; git reset -q && git status"},
    {"hooks behind a linked folder",
        FIRST "mkdir -p real/hooks; ln -s real link; git config core.hooksPath link/hooks",
        HOOK("real/hooks/pre-commit"), COMMIT},
    {"the link to hooks led elsewhere",
        FIRST "mkdir -p real/hooks; ln -s real link; git config core.hooksPath link/hooks",
        HOOK("evil/hooks/pre-commit") "rm link; ln -s evil link", COMMIT},
    {"a program behind a linked folder",
        "mkdir tools; echo cat > tools/clean.sh; ln -s tools t; echo '*.txt filter=x' > "
        ".gitattributes; " FIRST "git config filter.x.clean 'sh t/clean.sh'",
        "echo 'touch $CANARY; cat' > tools/clean.sh", "echo b > b.txt; git add b.txt"},
    {"a program's folder exchanged for a link",
        "mkdir tools; echo cat > tools/clean.sh; echo '*.txt filter=x' > .gitattributes; " FIRST
        "git config filter.x.clean 'sh tools/clean.sh'",
        "mkdir evil; echo 'touch $CANARY; cat' > evil/clean.sh; mv tools t; ln -s evil tools",
        "echo b > b.txt; git add b.txt"},
    {"a program that signs",
        FIRST "git config gpg.format ssh; git config gpg.ssh.defaultKeyCommand ./tools/key",
        "mkdir -p tools; printf '#!/bin/sh\ntouch $CANARY\n' > tools/key; chmod +x tools/key", COMMIT " -S"},
    {"a message led out of the tree", FIRST,
        "rm -f .git/COMMIT_EDITMSG; ln -s ../../canary .git/COMMIT_EDITMSG", COMMIT},
    {"a log of refs led out of the tree", FIRST, "rm -f .git/logs/HEAD; ln -s ../../../canary .git/logs/HEAD",
        COMMIT},
    {"a branch's log led out of the tree", FIRST,
        "rm -f .git/logs/refs/heads/main; ln -s ../../../../../canary .git/logs/refs/heads/main", COMMIT},
    {"all logs led out of the tree", FIRST, "rm -rf .git/logs; ln -s ../.. .git/logs",
        COMMIT "; test -e ../HEAD && touch $CANARY"},
    {"all refs led out of the tree", FIRST, "rm -rf .git/refs; ln -s ../.. .git/refs",
        COMMIT "; test -e ../heads && touch $CANARY", .holds = "true"},
    {"objects led out of the tree", FIRST,
        "cp -a .git/objects/. ../; mv .git/objects .git/o; ln -s ../.. .git/objects",
        "echo c > c; rm -rf ../[0-9a-f][0-9a-f]; git add c; ls -d ../[0-9a-f][0-9a-f] && touch $CANARY",
        .holds = "true"},
    {"an index led out of the tree", FIRST, "rm -f .git/index; ln -s ../../canary .git/index", "git add f"},
    {"packed refs led out of the tree", FIRST, "ln -s ../../canary .git/packed-refs", "git pack-refs --all"},
    {"what was fetched led out of the tree", FIRST, "ln -s ../../canary .git/FETCH_HEAD", "git fetch -q ."},
    {"a worktree's message led out of the tree", FIRST,
        "git worktree add -q w; ln -s ../../../../canary .git/worktrees/w/COMMIT_EDITMSG", "cd w && " COMMIT},
    {"a second name of a hook",
        FIRST "mkdir -p .git/hooks; printf '#!/bin/sh\ntrue\n' > .git/hooks/post-commit; chmod +x "
              ".git/hooks/post-commit",
        "ln -f .git/hooks/post-commit .git/COMMIT_EDITMSG",
        "git commit -q --allow-empty -m \"$(printf '#!/bin/sh\ntouch $CANARY')\""},
    {"a repository of sha256",
        "git init -q --object-format=sha256; git config user.name A; git config user.email a@b; git commit "
        "-q --allow-empty -m x",
        EVIL(".git/config"), "git status"},
    {"an option of patches that writes a file",
        FIRST
        "echo b > f; git commit -qam b; echo c > g; git add g; git commit -qm c; mkdir p; git format-patch "
        "-q "
        "-2 -o p; git reset -q --hard HEAD~2; echo z > f; git commit -qam z; git add p; git commit -qm p",
        "git am -q p/*; echo \"'--build-fake-ancestor=../canary'\" > .git/rebase-apply/apply-opt",
        "git am --skip"},
    {"a conflict to remember in somebody's file", FIRST "echo key > ../key", CONFLICT("../key"),
        COMMIT LEAKS},
    {"a conflict to remember behind a link", FIRST "echo key > ../key", "ln -s ../key g; " CONFLICT("g"),
        COMMIT LEAKS},
    {"a conflict to remember behind a linked folder", FIRST "mkdir ../keys; echo key > ../keys/k",
        "ln -s ../keys d; " CONFLICT("d/k"), COMMIT LEAKS},
    {"a repository in the commands' tmp, behind a link", FIRST,
        "d=${TMPDIR:-$HOME}/r; git init -q $d; " EVIL("$d/.git/config") IN_HOST("/tmp") "ln -s $d sub",
        "cd sub && git status", .is_silent = true},
    {"a repository in the commands' shared memory, behind a link", FIRST,
        "d=/dev/shm/r; [ -w /dev/shm ] || d=$HOME/r; git init -q $d; " EVIL("$d/.git/config")
            IN_HOST("/dev/shm") "ln -s $d sub",
        "cd sub && git status; rm -rf /dev/shm/r", .is_silent = true, .needs_walls = true},
    {"a repository among the refs, behind a link", FIRST "ln -s .git/refs/r docs",
        "git init -q --bare .git/refs/r; git config -f .git/refs/r/config core.bare false; git config -f "
        ".git/refs/r/config core.worktree /tmp; " EVIL(".git/refs/r/config"),
        "cd docs && git status"},
    {"a repository among the logs, behind a link", FIRST "ln -s .git/logs/a/r docs",
        "git init -q --bare .git/logs/a/r; git config -f .git/logs/a/r/config core.bare false; git config -f "
        ".git/logs/a/r/config core.worktree /tmp; " EVIL(".git/logs/a/r/config"),
        "cd docs && git status"},
    {"a repository among the objects, behind a link", FIRST "ln -s .git/objects/aa/r docs",
        "git init -q --bare .git/objects/aa/r; git config -f .git/objects/aa/r/config core.bare false; git "
        "config -f .git/objects/aa/r/config core.worktree /tmp; " EVIL(".git/objects/aa/r/config"),
        "cd docs && git status"},
    {"the graph of commits led out of the tree", FIRST "echo precious > ../kept",
        "mkdir -p .git/objects/info; ln -sf ../../../../kept .git/objects/info/commit-graph",
        "git gc -q; grep -q precious ../kept || touch $CANARY"},
    {"the list of graphs led out of the tree", FIRST "echo precious > ../kept",
        "mkdir -p .git/objects/info/commit-graphs; ln -sf ../../../../../kept "
        ".git/objects/info/commit-graphs/commit-graph-chain",
        "git commit-graph write --split --reachable; grep -q precious ../kept || touch $CANARY"},
    {"a module's configuration led to the person's",
        FIRST MODULE "git submodule -q deinit -f sub; rm -rf .git/modules/sub; printf '[a]\n' > ../mine",
        "mkdir -p .git/modules/sub; ln -s ../../../../mine .git/modules/sub/config",
        "git submodule -q update --init; grep -q worktree ../mine && touch $CANARY"},
    {"a hook of a worktree", FIRST HOOKS_IN_TREE "git worktree add -q w", HOOK("w/h/pre-commit"),
        "cd w && " COMMIT},
    {"a hook of a worktree whose repository lies elsewhere",
        "mkdir ../main; (cd ../main; " FIRST HOOKS_IN_TREE "git worktree add -q \"$OLDPWD\")",
        HOOK("h/pre-commit"), COMMIT},
    {"a hook of a worktree that the command made", FIRST HOOKS_IN_TREE,
        "git worktree add -q w; " HOOK("w/h/pre-commit"), "cd w && " COMMIT},
    {"a hook where a worktree that the command made has none", FIRST "git config core.hooksPath h",
        "git worktree add -q w; " HOOK("w/h/pre-commit"), "cd w && " COMMIT},
    {"a hook of a worktree that the command made, by a link", FIRST HOOKS_IN_TREE,
        "git worktree add -q w; rm -r w/h; mkdir w/k; ln -s k w/h; " HOOK("w/k/pre-commit"),
        "cd w && " COMMIT},
    {"a filter's program in a worktree",
        FIRST "echo 'f filter=c' > .gitattributes; mkdir t; printf '#!/bin/sh\ncat\n' > t/c; chmod +x t/c; "
              "git add -A; git "
              "commit -qm c; git config filter.c.clean t/c; git worktree add -q w",
        "printf '#!/bin/sh\ntouch $CANARY\ncat\n' > w/t/c", "cd w && echo b > f && git add f"},
    {"a hook of another repository, by the person's configuration",
        "git config --global core.hooksPath h; mkdir sub; (cd sub; " FIRST "); " FIRST,
        HOOK("sub/h/pre-commit"), "cd sub && " COMMIT},
    {"a git of an active environment", FIRST "mkdir -p .venv/bin", HOOK(".venv/bin/git"), "git status"},
    {"a git of an environment that is not there yet", FIRST, HOOK(".venv/bin/git"), "git status"},
    {"a filter's program of an active environment",
        FIRST "echo 'f filter=c' > .gitattributes; git config filter.c.clean 'expand -t 4'",
        "mkdir -p .venv/bin; printf '#!/bin/sh\ntouch $CANARY\ncat\n' > .venv/bin/expand; chmod +x "
        ".venv/bin/expand",
        "echo b > f && git add f"},
    {"a hook by the environment's configuration",
        FIRST "mkdir envhooks; printf '#!/bin/sh\\n' > envhooks/pre-commit; chmod +x envhooks/pre-commit",
        HOOK("envhooks/pre-commit"), COMMIT,
        .variables = {"GIT_CONFIG_COUNT", "1", "GIT_CONFIG_KEY_0", "core.hooksPath", "GIT_CONFIG_VALUE_0",
            "envhooks"}},
    {"an editor by the environment", FIRST "mkdir t; printf '#!/bin/sh\\n' > t/ed; chmod +x t/ed",
        HOOK("t/ed"), "git commit -q --allow-empty", .variables = {"GIT_EDITOR", "t/ed"}},
    {"a configuration by the environment",
        FIRST "mkdir t; printf '[user]\\nname = A\\nemail = a@b\\n' > t/config",
        "printf '[core]\\nfsmonitor = touch $CANARY; false\\n' > t/config", "git status",
        .variables = {"GIT_CONFIG_GLOBAL", "t/config"}},
    {"a sed of an active environment, for git's scripts", FIRST MODULE "mkdir -p .venv/bin",
        "printf '#!/bin/sh\ntouch $CANARY\nexec /bin/sed \"$@\"\n' > .venv/bin/sed; chmod +x .venv/bin/sed",
        "git submodule status"},
    {"a strategy of an active environment",
        FIRST "mkdir -p .venv/bin; echo b > f; git commit -qam b; git checkout -q -b t HEAD~1; echo c > f; "
              "git commit -qam c; "
              "echo d > g; git add g; git commit -qm d",
        HOOK(".venv/bin/git-merge-evil") "git rebase -q main; echo x > f; git add f; echo evil > "
                                         ".git/rebase-merge/strategy",
        "GIT_EDITOR=true git rebase --continue", .holds = "true"},
    {"a git in the folder itself, by PATH", FIRST, HOOK("git"), "git status",
        .variables = {"PATH", ".:/usr/bin:/bin"}},
    {"a git in the folder itself, by an empty PATH", FIRST, HOOK("git"), "git status",
        .variables = {"PATH", ":/usr/bin:/bin"}},
    {"signers", FIRST "git config gpg.ssh.allowedSignersFile signers; echo a > signers",
        "echo evil > signers", "grep -q evil signers && touch $CANARY"},
    {"a configuration in the tree by XDG", FIRST "mkdir -p xdg/git; echo > xdg/git/config",
        "printf '[core]\nfsmonitor = touch $CANARY; false\n' > xdg/git/config", "git status",
        .variables = {"XDG_CONFIG_HOME", "@/xdg"}},
    {"a configuration in the tree by XDG, new", FIRST,
        "mkdir -p xdg/git; printf '[core]\nfsmonitor = touch $CANARY; false\n' > xdg/git/config",
        "git status", .variables = {"XDG_CONFIG_HOME", "@/xdg"}},
    {"a configuration in the tree by HOME", FIRST "cp ~/.gitconfig .gitconfig; ",
        "printf '[core]\nfsmonitor = touch $CANARY; false\n' >> .gitconfig", "git status",
        .variables = {"HOME", "@"}},
    {"a configuration in the tree by HOME, new", FIRST,
        "printf '[core]\nfsmonitor = touch $CANARY; false\n' >> .gitconfig", "git status",
        .variables = {"HOME", "@"}},
    {"a worktree to be mended elsewhere", FIRST "mkdir ../precious",
        "git worktree add -q w; echo $(dirname \"$PWD\")/precious/.git > .git/worktrees/w/gitdir",
        "git worktree repair; test -e ../precious/.git && touch $CANARY", .holds = "true"},
    {"a worktree made by hand to be mended elsewhere", FIRST "mkdir ../precious",
        "mkdir -p .git/worktrees/x; echo ../.. > .git/worktrees/x/commondir; cp .git/HEAD .git/worktrees/x; "
        "echo $(dirname \"$PWD\")/precious/.git > .git/worktrees/x/gitdir",
        "git worktree repair; test -e ../precious/.git && touch $CANARY", .holds = "true"},
    {"strategies of picks",
        FIRST
        "mkdir -p .venv/bin; echo b > f; git commit -qam b; git checkout -q -b t HEAD~1; echo c > f; git "
        "commit -qam c; git checkout -q main; echo d > g; git add g; git commit -qm d; git checkout -q t",
        HOOK(".venv/bin/git-merge-evil") "git cherry-pick main~1 main; echo x > f; git add f; git config -f "
                                         ".git/sequencer/opts options.strategy evil",
        "GIT_EDITOR=true git cherry-pick --continue", .holds = "true"},
    {"a hook among folders that are too deep", FIRST "git config core.hooksPath h; mkdir h; echo > h/x",
        "for i in a b c d e f g h; do mkdir -p h/$i/$(seq -s/ 40); done; " HOOK("h/pre-commit"), COMMIT},
};
enum { N_ATTACKS = sizeof attacks / sizeof *attacks };

static const char *only; /* attacks with this in their name; NULL: all */
static bool is_root;
static bool is_second; /* root was the first */

static bool fired(tree *t)
{
    return tree_has(t, "../canary");
}

static char *former[4]; /* values of an attack's variables */

static void set_variable(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

static void end(tree *t, const struct attack *a)
{
    for (size_t i = 0; i < 8 && a->variables[i]; i += 2) {
        set_variable(a->variables[i], former[i / 2]);
        free(former[i / 2]);
    }
    outside(t,
        "chmod -R u+rwx .; git config --global --unset core.hooksPath"); /* the home folder is all tests' */
    tree_remove(t);
}

/* As behind `. .venv/bin/activate`. */
static const char *path_with_environment(const tree *t)
{
    static char *usual;
    static char all[8192];
    if (!usual) usual = base_xstrdup(getenv("PATH"));
    snprintf(all, sizeof all, "%s/.venv/bin:%s", t->dir, usual);
    return all;
}

static void begin(tree *t, const struct attack *a)
{
    char canary[300];
    tree_make(t, false);
    snprintf(canary, sizeof canary, "%s/canary", t->base);
    setenv("CANARY", canary, 1);
    setenv("PATH", path_with_environment(t), 1);
    outside(t, a->setup);
    for (size_t i = 0; i + 1 < 8 && a->variables[i]; i += 2) {
        const char *value = a->variables[i + 1], *now = getenv(a->variables[i]);
        former[i / 2] = base_xstrdup(now);
        set_variable(a->variables[i], *value == '@' ? tree_path(t, value + 1) : value);
    }
    assert_false(fired(t));
}

/* How it is without kvist: else a failure below would prove nothing. */
static void test_git__every_attack_works_without_a_defence(void **state)
{
    for (int i = 0; i < N_ATTACKS && !is_root; i++) {
        tree t;
        if (only && !strstr(attacks[i].name, only)) continue;
        begin(&t, &attacks[i]);
        outside(&t, attacks[i].command);
        if (fired(&t)) fail_msg("%s: fires too early", attacks[i].name);
        outside(&t, attacks[i].later);
        if (!fired(&t)) fail_msg("%s: does not work", attacks[i].name);
        end(&t, &attacks[i]);
    }
}

static void try_attack(const struct attack *a, int which)
{
    tree t;
    begin(&t, a);
    tree_open(&t);
    if (defend(&t, which) && !(a->needs_walls && !which)) {
        tool_result r = run(&t, a->command);
        /* Where nothing kept the command from it, the person is told. */
        if (which < 2 && !r.notice && !a->is_silent)
            fail_msg("%s, defence %d: nothing was told", a->name, which);
        if (r.notice) assert_contains(r.text.data, r.notice);
        for (const char *line = r.notice; line && *line;
             line += strcspn(line, "\n") + (line[strcspn(line, "\n")] != 0))
            assert_true(strcspn(line, "\n") < 700);
        outside(&t, a->later);
        if (fired(&t))
            fail_msg("%s, defence %d: it runs; told: %s", a->name, which, r.notice ? r.notice : "nothing");
        if (outside(&t, a->holds ? a->holds : "git log -1"))
            fail_msg(
                "%s, defence %d: git is broken; told: %s", a->name, which, r.notice ? r.notice : "nothing");
        tool_result_free(&r);
        outside(&t, "[ ! -d .git/rebase-merge ] || git rebase --abort");
        r = run(&t, "true"); /* and it is done with */
        if (r.notice) fail_msg("%s, defence %d: told again: %s", a->name, which, r.notice);
        tool_result_free(&r);
    }
    end(&t, a);
}

static void test_git__no_attack_works(void **state)
{
    /* The comparison is the same for root, who needs no user namespace for his mounts: that is what differs. */
    for (int i = 0; i < N_ATTACKS; i++)
        for (int which = is_root ? 2 : 0; which < N_DEFENCES; which++)
            if (!only || strstr(attacks[i].name, only)) try_attack(&attacks[i], which);
}

/* ---- what kvist itself obeys, in a tree of dotfiles ---- */

static const struct {
    const char *name, *home, *setup, *command;
} own_attacks[] = {
    {"a line more", "tree/dot", FIRST "mkdir -p dot/config && echo mine > dot/config/approvals",
        "echo evil >> dot/config/approvals"},
    {"another file", "tree/dot", FIRST "mkdir -p dot/config && echo mine > dot/config/approvals",
        "rm dot/config/approvals; echo evil > dot/config/approvals"},
    {"another folder", "tree/dot", FIRST "mkdir -p dot/config && echo mine > dot/config/approvals",
        "mv dot dot2; mkdir -p dot/config; echo evil > dot/config/approvals"},
    {"a link", "tree/dot", FIRST "mkdir -p dot/config more && echo mine > dot/config/approvals",
        "mv dot/config dot/old; echo evil > more/approvals; ln -s ../more dot/config; cat "
        "dot/config/approvals"},
    {"a server", "tree/dot", FIRST "mkdir -p dot/config && echo mine > dot/config/approvals",
        "echo evil > dot/config/mcp.json"},
    {"a command of the person's", "tree/dot",
        FIRST "mkdir -p dot/config/commands && echo mine > dot/config/approvals",
        "echo evil > dot/config/commands/fix.md"},
    {"code", "tree/dot", FIRST "mkdir -p dot/config dot/data && echo mine > dot/config/approvals",
        "mkdir -p dot/data/grammars && echo evil > dot/data/grammars/libtree-sitter-c.so"},
    {"what may be read", "tree/dot", FIRST "mkdir -p dot/config dot/data && echo mine > dot/config/approvals",
        "echo evil > dot/data/allow-read"},
    {"nothing there yet", "tree/dot", FIRST, "mkdir -p dot/config && echo evil > dot/config/approvals"},
    {"by a link from outside", "link",
        FIRST "mkdir -p dot/config && echo mine > dot/config/approvals && ln -s tree/dot ../link",
        "echo evil >> dot/config/approvals"},
};

/* Returns whether the person's kvist would find it. */
static bool try_own(size_t i, int which, bool is_control)
{
    tree t;
    bool is_there = false;
    begin(&t, &(struct attack){.setup = own_attacks[i].setup});
    base_buf home = {0};
    base_buf_printf(&home, "%s/%s", t.base, own_attacks[i].home);
    setenv("KVIST_HOME", home.data, 1);
    tree_open(&t);
    if (is_control) {
        outside(&t, own_attacks[i].command);
    } else if (defend(&t, which)) {
        tool_result r = run(&t, own_attacks[i].command);
        if (which < 2 && (!r.notice || !strstr(r.notice, "kvist itself obeys")))
            fail_msg("%s, defence %d: told: %s", own_attacks[i].name, which, r.notice ? r.notice : "nothing");
        tool_result_free(&r);
        if (strstr(own_attacks[i].setup, "mine") && outside(&t, "grep -q mine $KVIST_HOME/config/approvals"))
            fail_msg("%s, defence %d: what was there is lost", own_attacks[i].name, which);
    }
    is_there = !outside(
        &t, "grep -rq evil $KVIST_HOME/config $KVIST_HOME/data/grammars $KVIST_HOME/data/allow-read");
    unsetenv("KVIST_HOME");
    base_buf_free(&home);
    tree_remove(&t);
    return is_there;
}

static void test_git__what_kvist_itself_obeys_stays_as_it_was(void **state)
{
    for (size_t i = 0; i < sizeof own_attacks / sizeof *own_attacks; i++) {
        if (only && !strstr(own_attacks[i].name, only)) continue;
        if (!is_second && !try_own(i, 0, true)) fail_msg("%s: does not work", own_attacks[i].name);
        for (int which = is_root ? 2 : 0; which < N_DEFENCES; which++)
            if (try_own(i, which, false))
                fail_msg("%s, defence %d: it is obeyed", own_attacks[i].name, which);
    }
}

/* ---- what ordinary work needs ---- */

static void test_git__ordinary_work_goes_on(void **state)
{
    static const struct {
        const char *command, *later;
        bool
            may_be_refused; /* by git, where .git is a mount of its own: then the model is told whom to ask */
    } steps[] = {
        {"echo b > g; git add g; git commit -qm second", "git log --oneline | grep -q second", false},
        {"git checkout -q -b topic; echo c > f; git commit -qam topic; git checkout -q -; echo d > f; git "
         "commit "
         "-qam other; git checkout -q topic",
            "git log --oneline | grep -q topic", false},
        {"! git rebase -q -", "test -d .git/rebase-merge", false},
        {"echo merged > f; git add f; GIT_EDITOR=true git rebase --continue",
            "git log --oneline | grep -q other", false},
        {"git worktree add -q w -b side; cd w; echo x > h; git add h; git commit -qm h", "cd w && git status",
            false},
        {"git tag v1; echo z >> g; git stash -q; git stash pop -q", "git rev-parse v1", false},
        {"git update-index --split-index; echo s > s; git add s; git commit -qm split",
            "git ls-files --error-unmatch f s && git log -1 --format=%s | grep -qx split", false},
        {"git update-index --no-split-index --index-version 4; echo s > st; git add st; git commit -qm "
         "packed",
            "git ls-files --error-unmatch f st && git log -1 --format=%s | grep -qx packed", false},
        {"git config a.b c", "! git config a.b", true},
    };
    for (int which = 0; which < N_DEFENCES; which++) {
        tree t;
        begin(&t, &(struct attack){.setup = FIRST});
        tree_open(&t);
        for (size_t i = 0; defend(&t, which) && i < sizeof steps / sizeof *steps; i++) {
            tool_result r = run(&t, steps[i].command);
            if (!steps[i].may_be_refused && r.notice) fail_msg("%s: %s", steps[i].command, r.notice);
            if (steps[i].may_be_refused && r.status != TOOL_OK)
                assert_contains(r.text.data, "ask the person");
            if (outside(&t, steps[i].later))
                fail_msg("%s, defence %d: %s", steps[i].command, which, r.text.data);
            tool_result_free(&r);
        }
        tree_remove(&t);
    }
}

/* A command without a PID namespace knows kvist's pid, and every inode by lstat. */
static void test_git__no_name_that_can_be_guessed_is_in_the_way(void **state)
{
    tree t;
    tool_kept_list list = {0};
    base_err err = {0};
    char guess[80];
    tree_make(&t, true);
    tree_put(&t, "kept.txt", "as it was\n");
    tree_open(&t);
    tool__kept_add(&t.w->root, "kept.txt", NULL, NULL, &list);
    assert_int_equal(list.n, 1);
    snprintf(
        guess, sizeof guess, ".kvist-restore-%d-%llx", getpid(), (unsigned long long)list.items[0].st.st_ino);
    tree_put(&t, guess, "in the way\n");
    assert_int_equal(unlink(tree_path(&t, "kept.txt")), 0);
    if (tool__kept_put_back(&t.w->root, &list.items[0], NULL, &err)) fail_msg("%s", err.msg);
    char *now = tree_get(&t, "kept.txt");
    assert_string_equal(now, "as it was\n");
    free(now);
    tool__kept_free(&list);
    tree_remove(&t);
}

/* npm's husky writes its scripts again, byte for byte. */
static void test_git__hooks_written_again_as_they_were_are_no_change(void **state)
{
    for (int which = 0; which < N_DEFENCES; which++) {
        tree t;
        begin(&t,
            &(struct attack){.setup = FIRST
                             "git config core.hooksPath .husky/_; mkdir -p .husky/_; echo sh > .husky/_/h"});
        tree_open(&t);
        if (defend(&t, which)) {
            tool_result r = run(&t, "rm .husky/_/h; mkdir -p .husky/_ && echo sh > .husky/_/h");
            assert_int_equal(r.status, TOOL_OK);
            if (r.notice) fail_msg("defence %d: %s", which, r.notice);
            tool_result_free(&r);
        }
        tree_remove(&t);
    }
}

/* Looking at a folder costs as many steps as its path has parts: 3,000 below 1,800 levels are more than are looked at. */
static void test_git__a_tree_that_is_too_deep_is_told_every_time(void **state)
{
    tree t;
    if ((only && !strstr("deep", only)) || is_second) return; /* the walk is the same for every user */
    begin(&t, &(struct attack){.setup = FIRST});
    tree_open(&t);
    for (int i = 0; i < 3; i++) {
        if (i == 1)
            assert_int_equal(
                outside(&t, "for i in $(seq 1800); do mkdir d; cd -P d; done; mkdir $(seq 3000)"), 0);
        tool_result r = run(&t, "true");
        assert_int_equal(r.status, TOOL_OK);
        if (i == 0) assert_null(r.notice); /* the control */
        if (i > 0) {
            assert_non_null(r.notice);
            assert_contains(r.notice, "more folders");
        }
        tool_result_free(&r);
    }
    outside(&t, "rm -rf d");
    tree_remove(&t);
}

typedef int group_fn(void);

/* With a home of its own, in a process of its own. */
static int run_as(group_fn *group, bool ordinary)
{
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        char home[] = "/tmp/kvist-home-XXXXXX";
        if (ordinary &&
            (setgroups(0, NULL) || setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534)))
            _exit(2);
        if (!mkdtemp(home)) _exit(3);
        setenv("HOME", home, 1);
        setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
        unsetenv("XDG_CONFIG_HOME");
        unsetenv("XDG_DATA_HOME");
        unsetenv("KVIST_HOME");
        is_root = !geteuid();
        is_second = ordinary;
        char config[64];
        snprintf(config, sizeof config, "%s/.gitconfig", home);
        static const char quick[] = "[core]\n\tfsync = none\n[init]\n\ttemplateDir =\n\tdefaultBranch = "
                                    "main\n[maintenance]\n\tauto = false\n";
        FILE *f = fopen(config, "w");
        if (!f || fputs(quick, f) < 0 || fclose(f)) _exit(4);
        if (system("mkdir ~/first && cd ~/first && { " MAKE_FIRST "}")) _exit(5);
        int failed = group();
        base_fs_remove(home, NULL);
        _exit(failed != 0);
    }
    int status = 0;
    return waitpid(child, &status, 0) != child || status;
}

static int all_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_git__a_command_that_does_nothing_changes_nothing),
        cmocka_unit_test(test_git__what_a_command_changed_comes_back_and_its_version_is_kept),
        cmocka_unit_test(test_git__an_unreadable_configuration_is_left_alone),
        cmocka_unit_test(test_git__every_attack_works_without_a_defence),
        cmocka_unit_test(test_git__no_attack_works),
        cmocka_unit_test(test_git__what_kvist_itself_obeys_stays_as_it_was),
        cmocka_unit_test(test_git__ordinary_work_goes_on),
        cmocka_unit_test(test_git__no_name_that_can_be_guessed_is_in_the_way),
        cmocka_unit_test(test_git__hooks_written_again_as_they_were_are_no_change),
        cmocka_unit_test(test_git__a_tree_that_is_too_deep_is_told_every_time),
    };
    return cmocka_run_group_tests_name(geteuid() ? "git, an ordinary user" : "git, root", tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    if (argc > 1) only = argv[1];
    int failed = run_as(all_tests, false);
    return (geteuid() ? 0 : run_as(all_tests, true)) || failed;
}
