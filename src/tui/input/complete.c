/*
 * Candidates are scored against every path on each key; at a hundred thousand paths that is some
 * milliseconds, and only while an @ word is typed.
 */
#include "tui/input/complete.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "base/path.h"

const tui_own_command tui_own_commands[] = {
    {"copy", "send the last answer to the terminal's clipboard"},
    {"help", "keys and commands"},
    {"quit", "end the session"},
    {"tour", "six screens that show how this works, over your own session"},
    {0},
};

bool tui_is_agent_command(const char *name)
{
    uint32_t n;
    const agent_command *commands = agent_commands(&n);
    for (uint32_t i = 0; i < n; i++)
        if (!strcmp(commands[i].name, name)) return true;
    return false;
}

int tui_fuzzy(const char *pattern, size_t n, const char *text)
{
    if (n == 0) return 0;
    size_t name = (size_t)(base_path_name(text) - text), length = strlen(text);
    int best = -1;
    /* Two tries: from the start, and from the file's name on, where most people aim. */
    for (int attempt = 0; attempt < (name > 0 ? 2 : 1); attempt++) {
        size_t at = attempt ? name : 0, matched = 0, last = SIZE_MAX;
        int score = attempt ? 20 : 0;
        for (; at < length && matched < n; at++) {
            if (tolower((unsigned char)text[at]) != tolower((unsigned char)pattern[matched])) continue;
            bool starts = at == 0 || !isalnum((unsigned char)text[at - 1]);
            score += last + 1 == at && matched > 0 ? 8 : starts ? 6 : 1;
            last = at;
            matched++;
        }
        if (matched < n) continue;
        score = score * 4 - (int)(length > 200 ? 50 : length / 4);
        if (score < 0) score = 0;
        if (score > best) best = score;
    }
    return best;
}

static void offer(tui_complete *c, const char *text, const char *about, int score)
{
    size_t at = c->n;
    while (at > 0 && c->candidate[at - 1].score < score) at--;
    if (at >= TUI_MAX_CANDIDATES) return;
    size_t n = c->n < TUI_MAX_CANDIDATES ? c->n : TUI_MAX_CANDIDATES - 1;
    memmove(c->candidate + at + 1, c->candidate + at, (n - at) * sizeof *c->candidate);
    c->candidate[at] = (tui_candidate){.text = text, .about = about, .score = score};
    c->n = n + 1;
}

static void offer_command(tui_complete *c, const char *name, const char *about, const char *typed, size_t n)
{
    if (n > strlen(name) || strncmp(name, typed, n)) return;
    offer(c, name, about, 1000 - (int)strlen(name));
}

void tui_complete_update(tui_complete *c, base_str word, bool at_start, char *const *skills,
    char **(*paths)(void *user), void *user)
{
    c->n = 0;
    c->at = 0;
    c->moved = c->closed = false;
    c->prefix = 0;
    if (word.len == 0) return;
    if (word.ptr[0] == '/' && at_start) {
        c->prefix = '/';
        uint32_t n;
        const agent_command *commands = agent_commands(&n);
        for (uint32_t i = 0; i < n; i++)
            offer_command(c, commands[i].name, commands[i].about, word.ptr + 1, word.len - 1);
        for (const tui_own_command *o = tui_own_commands; o->name; o++)
            if (!tui_is_agent_command(o->name))
                offer_command(c, o->name, o->about, word.ptr + 1, word.len - 1);
        for (; *skills; skills += 2) offer_command(c, skills[0], skills[1], word.ptr + 1, word.len - 1);
    } else if (word.ptr[0] == '@' && paths) {
        c->prefix = '@';
        if (!c->have_paths) c->paths = paths(user);
        c->have_paths = true;
        for (char **p = c->paths; p && *p; p++) {
            int score = tui_fuzzy(word.ptr + 1, word.len - 1, *p);
            if (score >= 0) offer(c, *p, NULL, score);
        }
    }
}

void tui_complete_forget(tui_complete *c)
{
    for (char **p = c->paths; p && *p; p++) free(*p);
    free(c->paths);
    *c = (tui_complete){0};
}

void tui_complete_free(tui_complete *c)
{
    tui_complete_forget(c);
}
