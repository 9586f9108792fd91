#include "tools/file/git_rules.h"

#include <string.h>

const char *const tool__git_rules_names[] = {".gitignore", ".gitattributes", ".gitmodules", ".mailmap", NULL};

bool tool__git_rules_is_name(const char *name)
{
    const char *const *known = tool__git_rules_names;
    while (*known && strcmp(name, *known)) known++;
    return *known != NULL;
}

enum { A_STEP = 16 }; /* bytes of a pattern */

void tool__git_rules_weigh(const char *text, size_t n, tool_git_rules *ret)
{
    *ret = (tool_git_rules){0};
    for (const char *line = text, *end = text + n; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        const size_t length = (size_t)((stop ? stop : end) - line);
        size_t stars = 0;
        for (size_t i = 0; i + 1 < length && stars < TOOL_GIT_MOST_STARS; i++) {
            if (line[i] != '*' || line[i + 1] != '*') continue;
            stars++;
            i++;
        }
        if (length && *line != '#') ret->weights[stars] += 1 + length / A_STEP;
        line += length + 1;
    }
}

static uint64_t multiply(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t add(uint64_t a, uint64_t b)
{
    return a + b < a ? UINT64_MAX : a + b;
}

uint64_t tool__git_rules_steps(const tool_git_rules *r, unsigned folders)
{
    uint64_t ways = 1, steps = 0; /* ways to share out `folders` among `stars` of them and the rest */
    for (unsigned stars = 0; stars <= TOOL_GIT_MOST_STARS; stars++) {
        if (stars) ways = ways == UINT64_MAX ? ways : multiply(ways, folders + stars) / stars;
        if (r->weights[stars]) steps = add(steps, multiply(ways, r->weights[stars]));
    }
    return steps;
}
