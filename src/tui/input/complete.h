/*
 * Completion of the word before the cursor: slash commands at the start of the line, paths behind an @
 * (fuzzy). A list that is shown above the input while it fits what was typed.
 */
#ifndef KVIST_TUI_COMPLETE_H
#define KVIST_TUI_COMPLETE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum { TUI_MAX_CANDIDATES = 8 };

typedef struct tui_candidate {
    const char *text, *about; /* about may be NULL */
    int score;
} tui_candidate;

typedef struct tui_complete {
    tui_candidate candidate[TUI_MAX_CANDIDATES]; /* best first */
    size_t n;
    size_t at;
    bool moved;  /* the person chose */
    bool closed; /* by Esc, until the word changes */
    char prefix; /* '/' or '@' */
    char **paths;
    bool have_paths;
} tui_complete;

/*
 * word: "@src/ma" or "/co". at_start: the word begins the line. skills: name, what it is, name, ...,
 * NULL-terminated; they outlive the candidates. paths is called at the first @ and after forget.
 */
void tui_complete_update(tui_complete *c, base_str word, bool at_start, char *const *skills,
    char **(*paths)(void *user), void *user);
void tui_complete_forget(tui_complete *c); /* the tree may have changed */
void tui_complete_free(tui_complete *c);
/*
 * How well `pattern` fits `text` as a subsequence, ignoring case; below 0: not at all. Runs, word starts and
 * the file's name count more.
 */
int tui_fuzzy(const char *pattern, size_t n, const char *text);

/* Commands of the screen itself, beside those of the agent. */
typedef struct tui_own_command {
    const char *name, *about;
} tui_own_command;
extern const tui_own_command tui_own_commands[]; /* ends with a NULL name */
bool tui_is_agent_command(const char *name);     /* then the agent's own words describe it */

#endif
