/*
 * What the tests of the sandbox share. A command runs first without any wall and must do there what the test is about, else what
 * happens behind one would prove nothing (such a case says "skipped" and why). Then it runs behind the walls a machine without
 * namespaces has, behind namespaces without Landlock, and behind all.
 *
 * Each program runs twice where it is started by root: as root and as an ordinary user. HOME is a made one.
 */
#ifndef KVIST_TESTS_HOSTILE_SANDBOX_KIT_H
#define KVIST_TESTS_HOSTILE_SANDBOX_KIT_H

#include "tree.h"

enum { SANDBOX_NOBODY = 65534 }; /* the ordinary user */

/* Puts the program of attack.c into the tree, as ./attack. */
void sandbox_put_attack(tree *t);
/* What a command says, without kvist, by the same user; behind "without kvist\n". To be freed. */
char *sandbox_run_bare(const tree *t, const char *command);
/* The same as a call of the shell tool; the command stands in JSON as it is. To be freed. */
char *sandbox_run_confined(tree *t, const char *command);
/* The same machine with fewer walls: what each of two kinds of machine has, and both. How many there are. */
int sandbox_walls(const tool_sandbox *real, tool_sandbox ret[3], const char *names[3]);
/* HOME as the program was started. */
const char *sandbox_persons_home(void);

/* main() of a program: ATTACK_PROGRAM [PATTERN]; run gets the name of the group of tests and says how many failed. */
int sandbox_main(int argc, char **argv, int (*run)(const char *who));

#endif
