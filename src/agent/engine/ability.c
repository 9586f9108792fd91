/* See ability.h. */
#include "agent/engine/ability.h"

#include <stddef.h>
#include <string.h>

enum { ANY_TOOLS = -1 };

/*
 * The first row whose conditions all hold makes a model strong; none: it is small. From about 7B parameters on
 * models edit reliably (aider's leaderboard of edit formats); a 1.5B model got 0 of 5 edits right and 5 of 7
 * rewrites (docs/diary.md). Below two billion at work a mixture is a small model with a large memory. The row of
 * models taught as agents is our judgement, not measured.
 */
static const struct {
    int tools;             /* a model_tool_style, or ANY_TOOLS */
    double params, active; /* at least, in billions; what nobody says counts as enough */
} strong_from[] = {
    {MODEL_TOOLS_XML, 3.5, 2},         /* Qwen3.5-4B and up, Qwen3-Coder-30B-A3B, Coder-Next */
    {MODEL_TOOLS_HARMONY, 3.5, 2},     /* gpt-oss */
    {MODEL_TOOLS_MISTRAL, 3.5, 2},     /* Devstral, Ministral 3 from 8B on */
    {MODEL_TOOLS_MISTRAL_IDS, 3.5, 2}, /* Mistral Small 3.2 */
    {ANY_TOOLS, 6.5, 2},               /* Qwen2.5-Coder-7B, Qwen3-30B-A3B, Devstral */
};

static bool is_enough(uint64_t n, double least)
{
    return n == 0 || (double)n >= least * 1e9;
}

bool agent_ability_is_strong(const agent_ability *a)
{
    for (size_t i = 0; i < sizeof strong_from / sizeof *strong_from; i++)
        if ((strong_from[i].tools == ANY_TOOLS || strong_from[i].tools == (int)a->tools) &&
            is_enough(a->n_params, strong_from[i].params) && is_enough(a->n_active, strong_from[i].active))
            return true;
    return false;
}

bool agent_ability_read(const char *word, bool *ret)
{
    if (!word || !strcmp(word, "auto")) return true;
    const bool is_strong = !strcmp(word, "strong");
    if (!is_strong && strcmp(word, "small") != 0) return false;
    *ret = is_strong;
    return true;
}
