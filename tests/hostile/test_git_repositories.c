/*
 * What git obeys: configurations and what they include, repositories in and behind the tree, modules and worktrees.
 */
#include "git_kit.h"

/* Where $d, in the box at `place`, lies outside of it: mountinfo says so. */
#define IN_HOST(place)                                                                                       \
    "sleep .5; p=$(awk '$5 == \"" place "\" {print $4}' /proc/self/mountinfo); "                             \
    "case $p in */kvist-tmp-*) d=/tmp/kvist${p#*/kvist}/r;; esac; "

static const git_attack attacks[] = {
    {"configuration", FIRST, EVIL(".git/config"), "git status"},
    {"a nested repository that is added", FIRST,
        "mkdir sub; (cd sub; " MAKE_FIRST "); " EVIL("sub/.git/config") "git add sub", "git status"},
    {"a nested repository somebody steps into", FIRST,
        "mkdir -p a/b; git init -q a/b; " EVIL("a/b/.git/config"), "cd a/b && git status"},
    {"a nested repository in an ignored folder", "echo node_modules > .gitignore; " FIRST,
        "mkdir -p node_modules/x; git init -q node_modules/x; " EVIL("node_modules/x/.git/config"),
        "cd node_modules/x && git status"},
    {"a module's configuration", FIRST MODULE, EVIL(".git/modules/sub/config"), "git status"},
    {"a module's .git led elsewhere", FIRST MODULE,
        "cp -r .git/modules/sub evil; git config -f evil/config core.worktree ../sub; " EVIL(
            "evil/config") "rm -f sub/.git; echo 'gitdir: ../evil' > sub/.git",
        "cd sub && git status"},
    {"a new module", FIRST,
        "mkdir -p .git/modules; cp -r .git ../m 2>/dev/null; git init -q "
        "--bare .git/modules/new; git config -f .git/modules/new/config "
        "core.bare false; git config -f .git/modules/new/config core.worktree "
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
    {"a bare repository somebody steps into", FIRST,
        "git init -q --bare evil; git config -f evil/config core.bare false; git config -f evil/config "
        "core.worktree ..; " EVIL("evil/config"),
        "cd evil && git status"},
    {"a bare repository with its parts elsewhere", FIRST,
        "git init -q --bare c; mkdir e; mv c/HEAD e; echo ../c > e/commondir; git config -f c/config "
        "remote.origin.url /nowhere; git config -f c/config remote.origin.uploadpack 'touch $CANARY; false'",
        "cd e && git fetch origin"},
    {"a file that the configuration includes",
        FIRST "git config include.path ../shared.inc; echo > shared.inc", EVIL("shared.inc"), "git status"},
    {"a file that the configuration would include", FIRST "git config include.path ../shared.inc",
        EVIL("shared.inc"), "git status"},
    {"a file at the end of a chain of includes",
        FIRST "git config include.path ../a1; for i in 1 2 3 4 5 6 7; do "
              "printf '[include]\\npath = a%s\\n' $((i + 1)) > a$i; done; echo > a8",
        EVIL("a8"), "git status"},
    {"a file that a chain of includes would lead to",
        FIRST "git config include.path ../a1; printf '[include]\\npath = deep/a2\\n' > a1",
        "mkdir deep; " EVIL("deep/a2"), "git status"},
    {"a file at the end of a chain of conditions",
        FIRST
        "git config remote.o.url x; printf '[includeIf \"hasconfig:remote.*.url:x\"]\\npath = ../c1\\n' >> "
        ".git/config; for i in 1 2 3 4 5 6 7; do printf '[includeIf "
        "\"hasconfig:remote.*.url:x\"]\\npath = c%s\\n' $((i + 1)) > c$i; done; echo > c8",
        EVIL("c8"), "git status"},
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
    {"a repository far down", FIRST,
        "p=$PWD; for i in $(seq 300); do mkdir d; cd -P d; done; git init -q; " EVIL(".git/config"),
        "for i in $(seq 300); do cd -P d; done; git status"},
    {"a repository behind what looks like one", "mkdir src; echo > src/f; " FIRST,
        "mkdir -p src/objects src/refs src/x; echo 'ref: refs/heads/m' > src/HEAD; git init -q src/x; " EVIL(
            "src/x/.git/config"),
        "cd src/x && git status"},
    {"a worktree with a configuration that is not to be listed",
        FIRST "git config extensions.worktreeConfig true",
        "git worktree add -q w; " EVIL(".git/worktrees/w/config.worktree") "chmod 311 .git/worktrees/w",
        "cd w && git status"},
    {"a repository of sha256",
        "git init -q --object-format=sha256; git config user.name A; "
        "git config user.email a@b; git commit -q --allow-empty -m x",
        EVIL(".git/config"), "git status"},
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
    {"a configuration by the environment",
        FIRST "mkdir t; printf '[user]\\nname = A\\nemail = a@b\\n' > t/config",
        "printf '[core]\\nfsmonitor = touch $CANARY; false\\n' > t/config", "git status",
        .variables = {"GIT_CONFIG_GLOBAL", "t/config"}},
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
};

int main(int argc, char **argv)
{
    return git_attack_tests(argc, argv, "git: repositories", attacks, sizeof attacks / sizeof *attacks);
}
