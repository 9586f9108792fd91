/*
 * Where git writes, and what it copies from: links and second names in .git, the index, lists of conflicts and worktrees.
 */
#include "git_kit.h"

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
#define HASH            "0123456789012345678901234567890123456789"
#define CONFLICT(path)  "mkdir -p .git/rr-cache/" HASH "; printf '" HASH "\\t" path "\\0' > .git/MERGE_RR"
#define LEAKS           "; grep -q key .git/rr-cache/*/postimage && touch $CANARY"
#define INDEX(from, to) INDEX_AT(".git/index", from, to)
/* An index in two parts: the shared one names a hook, and the other is signed for what the first is now. */
#define SPLIT_INDEX                                                                                          \
    HOOK("Xgit/hooks/post-checkout")                                                                         \
    "git add Xgit; rm -r Xgit; git update-index --split-index; mv .git/sharedindex.* s; " INDEX_AT(          \
        "s", "Xgit/hooks", ".git/hooks") "python3 -c \"\n"                                                   \
                                         "import hashlib\n"                                                  \
                                         "new = open('s', 'rb').read()[-20:]\n"                              \
                                         "d = open('.git/index', 'rb').read()\n"                             \
                                         "at = d.index(b'link') + 8\n"                                       \
                                         "d = d[:at] + new + d[at + 20:-20]\n"                               \
                                         "open('.git/index', 'wb').write(d + hashlib.sha1(d).digest())\n"    \
                                         "print(new.hex())\" > n; mv s .git/sharedindex.$(cat n); rm n"

static const git_attack attacks[] = {
    {"an index that names a hook", FIRST,
        HOOK("Xgit/hooks/post-checkout") "git add Xgit; rm -r Xgit; " INDEX("Xgit/hooks", ".git/hooks"),
        "git checkout -- .; git checkout -q HEAD", .holds = "git reset -q && git status"},
    {"an index that names what lies beside the tree", FIRST,
        "echo > XX-canary; git add XX-canary; rm XX-canary; " INDEX("XX-canary", "../canary"),
        "git checkout -- .", .holds = "git reset -q && git status"},
    {"a split index that names a hook", FIRST, SPLIT_INDEX, "git checkout -- .; git checkout -q HEAD",
        .holds = "rm -f .git/index; git reset -q && git status"},
    {"a new worktree's index", FIRST,
        "git worktree add -q w; cd w; " HOOK(
            "Xgit/hooks/post-checkout") "git add Xgit; rm -r Xgit; " INDEX_AT("../.git/worktrees/w/index",
            "Xgit/hooks/post-checkout", "../.git/hooks/post-checkout"),
        "cd w; git checkout -- .; git checkout -q HEAD"},
    {"a split index in a repository that is not to be listed", FIRST, SPLIT_INDEX "; chmod 311 .git",
        "git checkout -- .; git checkout -q HEAD",
        .holds = "chmod 755 .git; rm -f .git/index; git reset -q && git status"},
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
        FIRST "mkdir -p .git/hooks; printf '#!/bin/sh\n"
              "true\n"
              "' > .git/hooks/post-commit; chmod +x .git/hooks/post-commit",
        "ln -f .git/hooks/post-commit .git/COMMIT_EDITMSG",
        "git commit -q --allow-empty -m \"$(printf '#!/bin/sh\ntouch $CANARY')\""},
    {"an option of patches that writes a file",
        FIRST
        "echo b > f; git commit -qam b; echo c > g; git add g; git commit -qm c; mkdir p; git format-patch "
        "-q -2 -o p; git reset -q --hard HEAD~2; echo z > f; git commit -qam z; git add p; git commit -qm p",
        "git am -q p/*; echo \"'--build-fake-ancestor=../canary'\" > .git/rebase-apply/apply-opt",
        "git am --skip"},
    {"a conflict to remember in somebody's file", FIRST "echo key > ../key", CONFLICT("../key"),
        COMMIT LEAKS},
    {"a conflict to remember behind a link", FIRST "echo key > ../key", "ln -s ../key g; " CONFLICT("g"),
        COMMIT LEAKS},
    {"a conflict to remember behind a linked folder", FIRST "mkdir ../keys; echo key > ../keys/k",
        "ln -s ../keys d; " CONFLICT("d/k"), COMMIT LEAKS},
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
    {"a worktree to be mended elsewhere", FIRST "mkdir ../precious",
        "git worktree add -q w; echo $(dirname \"$PWD\")/precious/.git > .git/worktrees/w/gitdir",
        "git worktree repair; test -e ../precious/.git && touch $CANARY", .holds = "true"},
    {"a worktree made by hand to be mended elsewhere", FIRST "mkdir ../precious",
        "mkdir -p .git/worktrees/x; echo ../.. > .git/worktrees/x/commondir; cp .git/HEAD .git/worktrees/x; "
        "echo $(dirname \"$PWD\")/precious/.git > .git/worktrees/x/gitdir",
        "git worktree repair; test -e ../precious/.git && touch $CANARY", .holds = "true"},
};

int main(int argc, char **argv)
{
    return git_attack_tests(argc, argv, "git: writes", attacks, sizeof attacks / sizeof *attacks);
}
