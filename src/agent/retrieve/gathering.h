/*
 * What is gathered for the front of a request: excerpts of files within a number of tokens, and lists of who calls or uses
 * something. context.c and callers.c choose; what they chose is told and appended together, so that the wait is known before
 * it begins.
 */
#ifndef KVIST_AGENT_RETRIEVE_GATHERING_H
#define KVIST_AGENT_RETRIEVE_GATHERING_H

#include "agent/session/session_state.h"
#include "agent/words/callers_question.h"
#include "code/code.h"

enum {
    GATHERING_MAX_FILE = 256 << 10,
    GATHERING_MAX_DESCRIBED = 3, /* functions that fit a description whose callers are asked for */
    GATHERING_MAX_LISTS = AGENT_CALLERS_NAMES + GATHERING_MAX_DESCRIBED,
    GATHERING_EXCERPT_TOKENS = 16, /* its first line and what is behind it, at most about */
    GATHERING_LEAST_TOKENS = 40,   /* an excerpt cut below this says nothing */
};

/* An excerpt that was chosen, as it is appended. */
typedef struct gathering_excerpt {
    base_buf text;
    char *path, *name, *why;
    char version[65];
    uint32_t line, line_end, tokens;
    size_t source_from;
} gathering_excerpt;

typedef struct gathering {
    agent *a;
    const char *request;
    uint32_t left;    /* tokens */
    uint32_t n_asked; /* tokens of files named by @, which have a room of their own (room.c) */
    uint32_t n_files; /* whole files that the request named */
    gathering_excerpt *excerpts;
    size_t n, cap;
    base_buf callers;                             /* who calls what the request asks about */
    gathering_excerpt lists[GATHERING_MAX_LISTS]; /* and what the event says of that */
    size_t n_lists;
    char *described; /* the request without its part that asks who calls "it"; NULL: it has none */
} gathering;

/* Lines of a file's present text. */
typedef struct gathering_passage {
    const char *path, *version;
    const char *text;
    size_t n;
    uint32_t line, line_end;
    const char *name; /* the definition that they are; "": a part of the file */
} gathering_passage;

/* One excerpt. Returns without a word when it is shown already or does not fit. */
void gathering_add_passage(gathering *g, const gathering_passage *p, const char *why);
/* Bytes [from, to) of a file that the index named, taken from the file as it is now. */
void gathering_add_range(
    gathering *g, const char *path, uint32_t from, uint32_t to, const char *name, const char *why);
/* Three quarters of these lines are among the excerpts, or in view from before. */
bool gathering_has(const gathering *g, const char *path, uint32_t line, uint32_t line_end);
/* The longest beginning of whole lines that fits into `tokens`. */
size_t gathering_fitting_lines(const agent *a, const char *text, size_t n, uint32_t tokens, uint32_t *lines);
/* What was chosen, told first and then computed; frees it. */
int gathering_append(gathering *g, base_err *err);

/* --- callers.c --- */
/* "Can I delete X", "is X still used": who uses it, by the tree. false: the request asks for no such thing. */
bool gathering_add_asked_uses(gathering *g);
/*
 * "Which functions call X", "where is X used", "which function frees a reply, and who calls it?". "It" alone is what the
 * answer before was about.
 */
void gathering_add_asked_callers(gathering *g);

/* Text without a file, in front of a request. */
int agent__append_plain(agent *a, const char *text, const char *label, base_err *err);
bool agent__speaks_of_change(const char *request);
/* A request that may end in writing some of what it gets once more, which takes all its rows. */
bool agent__may_rewrite(const agent *a, const char *request);
uint32_t agent__count_lines(const char *text, size_t n);

#endif
