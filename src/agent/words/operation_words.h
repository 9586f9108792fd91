/*
 * What a request in plain words says of an operation's arguments: "add a parameter limit to find, default 10, callers
 * pass -1". Pure; any thread. What it does not say the model writes.
 */
#ifndef KVIST_AGENT_WORDS_OPERATION_WORDS_H
#define KVIST_AGENT_WORDS_OPERATION_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/words/request_words.h"

typedef enum agent_parameter_change {
    AGENT_PARAMETER_STAYS,
    AGENT_PARAMETER_COMES,
    AGENT_PARAMETER_GOES
} agent_parameter_change;

/* Each text NULL where the request does not say it. agent_parameter_words_free. */
typedef struct agent_parameter_words {
    agent_parameter_change change;
    char *declared;            /* in backticks, as the language writes it: "int flags", "limit=10" */
    char *name, *type, *value; /* value: its default */
    char *callers;             /* what they pass */
    int at;                    /* 1-based place; 0: not said */
    size_t from,
        to; /* bytes of the request around all that names the parameter; from: where it is `is_assigned` */
    bool is_optional; /* "c?: number" */
    bool is_assigned; /* "encoding='utf-8'": nothing calls it a parameter */
} agent_parameter_words;
/* false: the request is not about a parameter that comes or goes. */
bool agent_read_parameter_words(const char *request, agent_parameter_words *ret);
void agent_parameter_words_free(agent_parameter_words *w);

/* A type by itself, as code writes it: "int", "bool", "u16", "int64". */
bool agent__is_type(const char *text, agent_word w);

/* "make list the first argument", "b should come before a", "swap a and b". */
enum { AGENT_MAX_PARAMETERS = 64 };
typedef struct agent_order_words {
    size_t order[AGENT_MAX_PARAMETERS], n; /* the old places in their new order */
    size_t moved,
        to; /* the one that goes to place `to` (0-based); moved is n where two are exchanged, or several go there */
} agent_order_words;
/* names: the function's parameters, as callers see them. false: the request says nothing of their order. */
bool agent_read_order_words(const char *request, const char *const *names, size_t n, agent_order_words *ret);
/* "0 by default", "default it to false": as the request writes it; the caller frees; NULL. */
char *agent_read_default_words(const char *request);

/* "let its callers use most with -1 instead": the function, and what it gets; agent_instead_words_free. */
typedef struct agent_instead_words {
    char *call; /* "most(n, -1)" where it is written as a call; else NULL */
    char *name; /* "most"; "node.value"; ".value", "->value": a member of what the function that goes gets */
    char *with; /* "-1"; NULL */
} agent_instead_words;
bool agent_read_instead_words(const char *request, agent_instead_words *ret);
void agent_instead_words_free(agent_instead_words *w);

/* "Add a method pop(self) to class Stack", "write a helper `is_odd` in numbers.py"; agent_addition_words_free. */
typedef struct agent_addition_words {
    char *name;       /* of the new function */
    char *parameters; /* what stands between its brackets; NULL: the request writes none */
    char *returns;    /* "-> bool" behind them; NULL: the same */
    /* "double total(const Cart *c)", with words of its type in front; NULL: the name stands alone */
    char *declared;
    char *holder;  /* "Stack" of `Stack.pop`; NULL: the same */
    bool is_plain; /* nothing is said of a decorator: static, a property, async */
    const char
        *decorator; /* "property", where that is all that is said of one and Python has it; static, NULL */
    bool is_bare;   /* "add pop() to ...": no kind and no parameters are said */
    bool is_method; /* it belongs into a type, whether the request names that or not */
} agent_addition_words;
/* false: no new function is asked for, or its name is not said. */
bool agent_read_addition_words(const char *request, agent_addition_words *ret);
/*
 * The same of a name that the request writes and the tree has not: in any wording that says that something is to come. false:
 * nothing says so, or what comes is no function.
 */
bool agent_read_new_name(const char *request, const char *name, agent_addition_words *ret);
void agent_addition_words_free(agent_addition_words *w);
/* "to class C", "in C": is this word in a place where what the new function belongs to is said? */
bool agent_is_addition_place(const char *request, size_t from);

/* What the tree writes: how many definitions of a name, and whether a word stands anywhere. */
typedef struct agent_names {
    const void *ctx;
    uint32_t (*count)(const void *ctx, const char *name);
    bool (*mentions)(const void *ctx, const char *name);
} agent_names;

/* "X is a bad name; make it Y", "get rid of X", "X belongs into FILE"; agent_operation_words_free. */
typedef struct agent_operation_words {
    const char *operation; /* "rename", "move", "delete"; static */
    char *name;            /* the only definition of its name */
    char *to;              /* the new name, the file; NULL */
} agent_operation_words;
/* false: no wording of the table (operation_wording.c). The operations' own verbs are read elsewhere (operation.c). */
bool agent_read_operation_words(const char *request, const agent_names *names, agent_operation_words *ret);
/*
 * The same by what the request names and cues, in any order (operation_gist.c): "There's a typo: the class is called X but I want
 * Y". name may be one of several definitions, and qualified ("Range.contains").
 */
bool agent_read_operation_gist(const char *request, const agent_names *names, agent_operation_words *ret);
void agent_operation_words_free(agent_operation_words *w);

#endif
