/*
 * What the tests of git's files share. An attack is a command of the model that leaves something behind for the person's own git, which
 * runs outside of the box. Each first runs without a defence and must work there. The defences are tried one by one: the comparison
 * alone, Landlock without mounts, everything; and all of it once more as an ordinary user when this runs as root.
 */
#ifndef KVIST_TESTS_HOSTILE_GIT_KIT_H
#define KVIST_TESTS_HOSTILE_GIT_KIT_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/result/result.h"
#include "tree.h"

#define MAKE_FIRST                                                                                           \
    "git init -q; git config user.name Ada; git config user.email ada@example.org; echo a > f; git add f; "  \
    "git commit -qm first; "
/* The same, made once in the home folder: outside of the box only. */
#define FIRST "cp -a ~/first/. .; "
/* What runs when git looks at files; $CANARY is known outside of the box only. */
#define EVIL(config) "git config -f " config " core.fsmonitor 'touch $CANARY; false'; "
#define HOOK(path)                                                                                           \
    "mkdir -p $(dirname " path "); printf '#!/bin/sh\\ntouch $CANARY\\n' > " path "; chmod +x " path "; "
#define COMMIT "git -c user.name=A -c user.email=a@b commit --allow-empty -m x"
#define MODULE                                                                                               \
    "mkdir ../origin; (cd ../origin; " FIRST "); git -c protocol.file.allow=always submodule -q add "        \
    "\"$PWD/../origin\" sub; git commit -qm module; "

typedef struct git_attack {
    const char *name, *setup, *command, *later;
    const char *holds; /* must succeed outside afterwards; NULL: git log -1 */
    bool is_silent;    /* nothing has to be told: what it left leads nowhere */
    bool needs_walls;  /* what it uses is closed by Landlock or a mount, and open where nothing confines */
    const char *variables[8]; /* of the person's environment: names and values */
} git_attack;

enum { GIT_N_DEFENCES = 3 };

/* The defences of this machine, weakest first; false: there is no such one. */
bool git_defend(tree *t, int which);
/* The command as a call of the model. The caller frees the result. */
tool_result git_run(tree *t, const char *command);
/* As the person would, in the tree, outside of any box; the shell's status. */
int git_outside(tree *t, const char *command);
/* A tree after the attack's setup, no workspace yet. */
void git_begin(tree *t, const git_attack *a);

extern bool git_is_root;
extern bool git_is_second; /* after root: what does not depend on the user was tried */
/* Whether the program was asked for other tests only (its first argument: a part of their names). */
bool git_left_out(const char *name);
/* main(): runs the tests, each time in a process and a home of its own, and as an ordinary user too. */
int git_tests(int argc, char **argv, int (*group)(void));
/*
 * main() of a list of attacks: each without a defence, where it must work; then behind each defence, where it must not, and where the
 * person is told.
 */
int git_attack_tests(int argc, char **argv, const char *name, const git_attack *attacks, size_t n);

#endif
