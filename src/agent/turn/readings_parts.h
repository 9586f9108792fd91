/*
 * The parts of readings.c: what a request names (readings_names.c), and what speaks for and against a reading of it
 * (readings_signs.c). Engine thread.
 */
#ifndef KVIST_AGENT_TURN_READINGS_PARTS_H
#define KVIST_AGENT_TURN_READINGS_PARTS_H

#include "agent/operation/operation.h"
#include "agent/turn/readings.h"

enum { READ_MOST_NAMES = 6, READ_MOST_FRESH = 4, READ_MOST_FILES = 3, READ_MOST_DESCRIBED = 9 };

/* A name and where it stands. text: heap. */
typedef struct read_name {
    char *text;
    bool is_place;  /* it stands nowhere but as one does: "in X" */
    bool is_weak;   /* a plain word, where a new name may stand: it counts where no other new name does */
    bool is_goal;   /* a file: it stands where one does that something goes to: "to X" */
    bool is_coded;  /* written as nobody writes a word of a sentence */
    bool is_called; /* as a function with parameters: "count(word)" */
    bool is_typed;  /* a type stands beside it: "pivot: u16" */
    bool is_owner;  /* another one that is named is a member of it */
    int rank;       /* how many definitions fit the description better; -1: it is named */
    bool is_inside; /* described, and a member of one that is named */
    double share;   /* of how well the best one fits */
} read_name;

/* What the request names: definitions of the tree, those that it describes, names that the tree does not write, files of code. */
typedef struct read_names {
    read_name known[READ_MOST_NAMES + READ_MOST_DESCRIBED], fresh[READ_MOST_FRESH], files[READ_MOST_FILES];
    size_t n_known, n_fresh, n_files;
    bool has_document; /* a file that is no code */
    const char *request;
} read_names;

/* agent__names_free. */
void agent__find_names(const agent *a, const char *request, read_names *ret);
void agent__names_free(read_names *n);

/* --- readings_signs.c --- */
/* What words of a request speak of, wherever they stand. */
typedef enum read_topic {
    READ_GOING,
    READ_NAMING,
    READ_CARRYING,
    READ_TAKING,
    READ_ORDER,
    READ_PARAMETER,
    READ_MAKING,
    READ_PART,
    READ_BEHAVIOUR,
    READ_TEST,
    READ_TO_DELETE, /* the verbs themselves */
    READ_TO_RENAME,
    READ_TO_MOVE,
    READ_N_TOPICS
} read_topic;
typedef struct read_words {
    bool has[READ_N_TOPICS];
    bool condition; /* "when g is there" */
    bool acts;      /* a definition that it names is to do something: "f should skip blanks" */
    bool question;
    bool adds;     /* a sentence begins with "add", and nothing is to be moved */
    bool names_it; /* "... too vague a name. Call it g", "g would be clearer": what has that name is there */
    bool is_to_be; /* "should be countRows": a new name, written as code has it */
    /* "Take everything out that ...", "remove the lines that ...": no definition as a whole. */
    bool takes_text;
} read_words;
void agent__read_topics(const char *request, const read_names *n, read_words *ret);

/* What a reading puts where; NULL: it has none. */
typedef struct read_slots {
    const read_name *about, *also;  /* whose reading it is; of two the other one */
    const read_name *fresh, *file;  /* the new name; where it goes */
    const agent_function *function; /* whose parameters it changes */
    const char *parameter, *other;
    unsigned
        unnamed;   /* the parameter is named (0), by all words of its name (1), by some (2), not at all (3) */
    unsigned left; /* parameters that the request names and the reading does not have */
} read_slots;
void agent__sign_reading(
    const agent *a, const read_names *n, const read_words *w, const read_slots *slots, agent_reading *one);

/* --- readings_written.c --- */
/* Does a list that the request writes, "f(a, c, b)" or "c, b", say of the parameters what the reading would make of them? */
bool agent__is_written(const char *request, agent_reading_kind kind, const read_slots *slots);
/* The same in the brackets of the function's name alone: "f(a, c, b)". */
bool agent__is_written_whole(const char *request, agent_reading_kind kind, const read_slots *slots);

#endif
