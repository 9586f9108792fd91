/* The conditions that a sample's questions are answered under; see bench/structure/sample.h. */
#include <string.h>

#include "bench/structure/sample_parts.h"

const structure_condition structure_conditions[] = {
    {.name = "full", .policy = "full", .is_main = true},
    {.name = "snapkv", .policy = "snapkv", .is_main = true},
    {.name = "snapkv w=8", .policy = "snapkv", .set = "w=8"},
    {.name = "snapkv w=64", .policy = "snapkv", .set = "w=64"},
    {.name = "streaming-llm", .policy = "streaming-llm", .is_main = true},
    {.name = "random", .policy = "random"},
    {.name = "kvist", .policy = "kvist", .is_main = true},
    {.name = "kvist soft=1", .policy = "kvist", .set = "soft=1"},
    {.name = "kvist and repair", .policy = "kvist", .set = "signal=reuse", .repairs = true},
    {.name = "kvist soft=.5", .policy = "kvist", .set = "soft=.5"},
    {.name = "kvist soft=.25", .policy = "kvist", .set = "soft=.25"},
    {.name = "kvist soft=.75", .policy = "kvist", .set = "soft=.75"},
    {.name = "codecomp full", .policy = "codecomp", .is_main = true},
    {.name = "codecomp", .policy = "codecomp", .is_main = true},
    {.name = "chunk-local attention", .policy = "codecomp", .set = "span=0 alloc=0", .is_main = true},
    {.name = "codecomp spans only", .policy = "codecomp", .set = "alloc=0"},
    {.name = "codecomp allocation only", .policy = "codecomp", .set = "span=0"},
    {.name = "codecomp nearest", .policy = "codecomp", .set = "fill=nearest"},
    {.name = "codecomp span 1", .policy = "codecomp", .set = "span=1"},
    {.name = "codecomp merged", .policy = "codecomp", .set = "merge=1"},
    {.name = "codecomp no cores", .policy = "codecomp", .set = "cores=0"},
    {.name = "codecomp .9/1.1", .policy = "codecomp", .set = "alloc=.1"},
    {.name = "codecomp .75/1.25", .policy = "codecomp", .set = "alloc=.25"},
    {.name = "codecomp .25/1.75", .policy = "codecomp", .set = "alloc=.75"},
    {.name = "codecomp .1/1.9", .policy = "codecomp", .set = "alloc=.9"},
    {.name = "codecomp - call", .policy = "codecomp", .set = "call=0"},
    {.name = "codecomp - control", .policy = "codecomp", .set = "control=0"},
    {.name = "codecomp - return", .policy = "codecomp", .set = "return=0"},
    {.name = "codecomp - assign", .policy = "codecomp", .set = "assign=0"},
    {.name = "codecomp - query", .policy = "codecomp", .set = "query=0"},
    {.name = "codecomp - defuse", .policy = "codecomp", .set = "defuse=0"},
    {.name = "codecomp - attention", .policy = "codecomp", .set = "attention=0"},
    {.name = "structkv", .policy = "structkv", .prunes = true},
    {.name = "half depth", .policy = "structkv-half", .prunes = true},
    {.name = "fastkv", .policy = "fastkv", .prunes = true},
    {.name = "heads .25 10%", .policy = "kvist", .set = "prune=heads pivot=.25 keep=.1", .prunes = true},
    {.name = "heads .25 20%", .policy = "kvist", .set = "prune=heads pivot=.25 keep=.2", .prunes = true},
    {.name = "heads .36 10%", .policy = "kvist", .set = "prune=heads pivot=.36 keep=.1", .prunes = true},
    {.name = "heads .36 20%", .policy = "kvist", .set = "prune=heads pivot=.36 keep=.2", .prunes = true},
    {.name = "heads .46 10%", .policy = "kvist", .set = "prune=heads pivot=.46 keep=.1", .prunes = true},
    {.name = "heads .46 20%", .policy = "kvist", .set = "prune=heads pivot=.46 keep=.2", .prunes = true},
    {.name = "heads .25 10% frame=0",
        .policy = "kvist",
        .set = "prune=heads pivot=.25 keep=.1 frame=none",
        .prunes = true},
    {.name = "heads .46 20% frame=0",
        .policy = "kvist",
        .set = "prune=heads pivot=.46 keep=.2 frame=none",
        .prunes = true},
    {.name = NULL},
};

bool structure_is_full(const structure_condition *c)
{
    return strstr(c->name, "full") != NULL;
}

bool structure_has_caps(const structure_condition *c)
{
    return !structure_is_full(c) && !c->prunes;
}

bool structure_is_local(const structure_condition *c)
{
    return strcmp(c->policy, "codecomp") == 0;
}

bool structure_is_wanted(const structure_run *b, const structure_condition *c)
{
    if (!strcmp(b->wanted, "all")) return true;
    if (!strcmp(b->wanted, "main")) return c->is_main;
    const size_t n = strlen(c->name);
    for (const char *at = b->wanted; (at = strstr(at, c->name)); at++)
        if ((at == b->wanted || at[-1] == ',') && (!at[n] || at[n] == ',')) return true;
    return false;
}
