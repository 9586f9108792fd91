/*
 * What git runs: hooks, filters, steps of a rebase, and what it looks for in PATH and the environment.
 */
#include "git_kit.h"

#define HOOKS_IN_TREE                                                                                        \
    "mkdir h; printf '#!/bin/sh\\n' > h/pre-commit; chmod +x h/pre-commit; git add -A; git commit -qm h; "   \
    "git "                                                                                                   \
    "config core.hooksPath h; "

#define COMMIT_ARGUMENTS "-c user.name=A -c user.email=a@b commit -q --allow-empty -m x"

static const git_attack attacks[] = {
    {"a module's hooks", FIRST MODULE, HOOK(".git/modules/sub/hooks/pre-commit"), "cd sub && " COMMIT},
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
        "GIT_SEQUENCE_EDITOR='sed -i s/^pick/edit/' git rebase -q -i HEAD~1 "
        "--keep-empty; echo 'exec touch $CANARY' >> .git/rebase-merge/git-rebase-todo",
        "git rebase --continue"},
    {"hooks in the tree (husky)",
        FIRST "git config core.hooksPath .husky/_; mkdir -p .husky/_; printf "
              "'#!/bin/sh\\nsh .husky/pre-commit\\n' > .husky/_/pre-commit; "
              "chmod +x .husky/_/pre-commit; echo true > .husky/pre-commit",
        "echo 'touch $CANARY' > .husky/pre-commit", COMMIT},
    {"a new hook in the tree", FIRST "git config core.hooksPath .githooks", HOOK(".githooks/pre-commit"),
        COMMIT},
    {"a hook in a large folder of the tree",
        FIRST "git config core.hooksPath tools; mkdir tools; for i in $(seq 300); do echo > tools/n$i; done",
        HOOK("tools/pre-commit"), COMMIT},
    {"a filter's program in the tree",
        "mkdir tools; echo cat > tools/clean.sh; echo '*.txt filter=x' > .gitattributes; " FIRST
        "git config filter.x.clean 'sh tools/clean.sh'",
        "echo 'touch $CANARY; cat' > tools/clean.sh", "echo b > b.txt; git add b.txt"},
    {"a program named by its place in the home folder",
        FIRST "git config alias.mine \"!~/$(realpath --relative-to=\"$HOME\" .)/tool.sh\"",
        "printf '#!/bin/sh\\ntouch $CANARY\\n' > tool.sh; chmod +x tool.sh", "git mine"},
    {"a program named by the variable of the home folder",
        FIRST "git config alias.mine \"!\\\"\\$HOME\\\"/$(realpath --relative-to=\"$HOME\" .)/tool.sh\"",
        "printf '#!/bin/sh\\ntouch $CANARY\\n' > tool.sh; chmod +x tool.sh", "git mine"},
    {"a hook linked by a crowd that is being ended", FIRST "mkdir -p .git/hooks",
        HOOK("x") "python3 -c \"\n"
                  "import os, time\n"
                  "end, canary = time.time() + 3, os.environ.get('CANARY', '')\n"
                  "for i in range(60):\n    if not os.fork():\n"
                  "        while time.time() < end and not os.path.exists(canary):\n"
                  "            for _ in range(100):\n"
                  "                try: os.link('x', '.git/hooks/pre-commit')\n"
                  "                except OSError: pass\n        os._exit(0)\ntime.sleep(0.3)\"",
        COMMIT},
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
    {"a filter of texts to compare, in the tree",
        "mkdir tools; echo cat > tools/conv.sh; echo 'f diff=x' > .gitattributes; " FIRST
        "git config diff.x.textconv 'sh tools/conv.sh'",
        "echo 'touch $CANARY; cat' > tools/conv.sh", "echo b > f; git diff"},
    {"a driver of merges, in the tree",
        FIRST "mkdir tools; echo false > tools/merge.sh; git config merge.x.driver 'sh tools/merge.sh'; "
              "mkdir -p .git/info; echo 'f merge=x' > .git/info/attributes; "
              "git checkout -q -b t; echo b > f; git commit -qam b; git checkout -q main; echo c > f; git "
              "commit -qam c",
        "echo 'touch $CANARY; false' > tools/merge.sh", "git merge t; git merge --abort"},
    {"a helper of passwords, in the tree",
        FIRST "mkdir tools; echo > tools/pw; git config credential.helper '!sh ./tools/pw'",
        "echo 'touch $CANARY' > tools/pw", "printf 'protocol=https\\nhost=x\\n\\n' | git credential fill"},
    {"a way to servers, in the tree",
        FIRST "mkdir tools; echo > tools/ssh; git config core.sshCommand 'sh tools/ssh'; git config "
              "remote.o.url ssh://nowhere/x",
        "echo 'touch $CANARY; false' > tools/ssh", "git fetch o"},
    {"a pager, in the tree",
        FIRST "mkdir tools; echo cat > tools/page; git config core.pager 'sh tools/page'",
        "echo 'touch $CANARY; cat' > tools/page", "script -qec 'git log' /dev/null"},
    {"a pager of one command that is not there yet", FIRST "git config pager.log ./build/page",
        "mkdir build; printf '#!/bin/sh\\ntouch $CANARY\\ncat\\n' > build/page; chmod +x build/page",
        "script -qec 'git log' /dev/null"},
    {"what updates a module", FIRST MODULE,
        "git -C sub " COMMIT_ARGUMENTS "; git config submodule.sub.update '!touch $CANARY; :'",
        "git -C sub " COMMIT_ARGUMENTS "; git submodule update"},
    {"what updates a module, in the tree",
        FIRST MODULE "mkdir tools; echo > tools/up; git config submodule.sub.update '!sh ../tools/up'",
        "echo 'touch $CANARY' > tools/up", "git -C sub " COMMIT_ARGUMENTS "; git submodule update"},
    {"a program that signs",
        FIRST "git config gpg.format ssh; git config gpg.ssh.defaultKeyCommand ./tools/key",
        "mkdir -p tools; printf '#!/bin/sh\ntouch $CANARY\n' > tools/key; chmod +x tools/key", COMMIT " -S"},
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
        FIRST "echo 'f filter=c' > .gitattributes; mkdir t; printf '#!/bin/sh\n"
              "cat\n"
              "' > t/c; chmod +x t/c; git add -A; git commit -qm c; "
              "git config filter.c.clean t/c; git worktree add -q w",
        "printf '#!/bin/sh\ntouch $CANARY\ncat\n' > w/t/c", "cd w && echo b > f && git add f"},
    {"a hook of another repository, by the person's configuration",
        "git config --global core.hooksPath h; mkdir sub; (cd sub; " FIRST "); " FIRST,
        HOOK("sub/h/pre-commit"), "cd sub && " COMMIT},
    {"a git of an active environment", FIRST "mkdir -p .venv/bin", HOOK(".venv/bin/git"), "git status"},
    {"a git of an environment that is not there yet", FIRST, HOOK(".venv/bin/git"), "git status"},
    {"a filter's program of an active environment",
        FIRST "echo 'f filter=c' > .gitattributes; git config filter.c.clean 'expand -t 4'",
        "mkdir -p .venv/bin; printf '#!/bin/sh\n"
        "touch $CANARY\n"
        "cat\n"
        "' > .venv/bin/expand; chmod +x .venv/bin/expand",
        "echo b > f && git add f"},
    {"a hook by the environment's configuration",
        FIRST "mkdir envhooks; printf '#!/bin/sh\\n' > envhooks/pre-commit; chmod +x envhooks/pre-commit",
        HOOK("envhooks/pre-commit"), COMMIT,
        .variables = {"GIT_CONFIG_COUNT", "1", "GIT_CONFIG_KEY_0", "core.hooksPath", "GIT_CONFIG_VALUE_0",
            "envhooks"}},
    {"an editor by the environment", FIRST "mkdir t; printf '#!/bin/sh\\n' > t/ed; chmod +x t/ed",
        HOOK("t/ed"), "git commit -q --allow-empty", .variables = {"GIT_EDITOR", "t/ed"}},
    {"a sed of an active environment, for git's scripts", FIRST MODULE "mkdir -p .venv/bin",
        "printf '#!/bin/sh\ntouch $CANARY\nexec /bin/sed \"$@\"\n' > .venv/bin/sed; chmod +x .venv/bin/sed",
        "git submodule status"},
    {"a strategy of an active environment",
        FIRST "mkdir -p .venv/bin; echo b > f; git commit -qam b; git checkout -q -b t "
              "HEAD~1; echo c > f; git commit -qam c; echo d > g; git add g; git commit -qm d",
        HOOK(".venv/bin/git-merge-evil") "git rebase -q main; echo x > f; git add f; echo evil > "
                                         ".git/rebase-merge/strategy",
        "GIT_EDITOR=true git rebase --continue", .holds = "true"},
    {"a git in the folder itself, by PATH", FIRST, HOOK("git"), "git status",
        .variables = {"PATH", ".:/usr/bin:/bin"}},
    {"a git in the folder itself, by an empty PATH", FIRST, HOOK("git"), "git status",
        .variables = {"PATH", ":/usr/bin:/bin"}},
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

int main(int argc, char **argv)
{
    return git_attack_tests(argc, argv, "git: programs", attacks, sizeof attacks / sizeof *attacks);
}
