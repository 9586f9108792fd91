/*
 * What a request may mean (readings.c), and how well each of that fits its words (readings_weight.c): the parts of reading.c. Engine
 * thread.
 */
#ifndef KVIST_AGENT_TURN_READINGS_H
#define KVIST_AGENT_TURN_READINGS_H

#include "agent/session/session_state.h"

enum { AGENT_MAX_READINGS = 128 };

typedef enum agent_reading_kind {
    AGENT_READ_RENAME,
    AGENT_READ_RENAME_BOTH,
    AGENT_READ_RENAME_PARAMETER,
    AGENT_READ_RENAME_PARAMETERS,
    AGENT_READ_MOVE,
    AGENT_READ_MOVE_BOTH,
    AGENT_READ_DELETE,
    AGENT_READ_DELETE_BOTH,
    AGENT_READ_DROP,
    AGENT_READ_INSERT,
    AGENT_READ_REORDER,
    AGENT_READ_ADD,
    AGENT_READ_CHANGE,
    AGENT_READ_TEST,
    AGENT_READ_ANSWER,
    AGENT_N_READINGS
} agent_reading_kind;

/* What is known of a reading besides the model's opinion. Counts. */
typedef enum agent_reading_sign {
    AGENT_SIGN_WORDS,      /* the program's own wordings say the same */
    AGENT_SIGN_FRESH_LEFT, /* new names of the request that it does not use */
    AGENT_SIGN_KNOWN_LEFT, /* definitions, the same */
    AGENT_SIGN_FILE_LEFT,  /* files, the same */
    AGENT_SIGN_DESCRIBED,  /* its definition is described, not named */
    AGENT_SIGN_FITS_WORSE, /* ... and fits worse than the best one: twentieths of that one's score */
    AGENT_SIGN_INSIDE,     /* ... and is a member of one that is named */
    AGENT_SIGN_PLAIN,      /* its name is written as any word of a sentence is */
    AGENT_SIGN_ALIKE,      /* its new name has a part of the old one */
    AGENT_SIGN_UNLIKE,     /* its new name is written in another style: capitals, _ */
    AGENT_SIGN_PLACE, /* its definition, or the file where it goes, stands where a place does: "in X", "out of X" */
    AGENT_SIGN_OWNER,           /* its definition holds another one that is named: "the field n of X" */
    AGENT_SIGN_UNNAMED,         /* its parameter is not named */
    AGENT_SIGN_UNSAID,          /* ... and not all words of its name are: 1, some; 2, none */
    AGENT_SIGN_PLAIN_PARAMETER, /* ... is named, as any word of a sentence is written */
    AGENT_SIGN_PARAMETER_LEFT,  /* parameters of the function that the request names and it does not use */
    AGENT_SIGN_WRITTEN,         /* what comes of the parameters stands in a list that the request writes */
    AGENT_SIGN_NEW_TYPED,       /* a new parameter, and the request gives its type */
    AGENT_SIGN_NEW_CALLED,      /* its new name is written as a function with parameters */
    AGENT_SIGN_NEW_PLAIN,       /* its new name is written as any word of a sentence is */
    AGENT_SIGN_NEW_MENTIONED,   /* ... and the tree writes it already */
    AGENT_SIGN_NO_GOING,        /* something is to go, and no word says so */
    AGENT_SIGN_NO_NAMING,       /* a new name, and no word says so */
    AGENT_SIGN_NO_CARRYING,     /* another file, and no word says so */
    AGENT_SIGN_NO_TAKING,       /* a new parameter, and no word says so */
    AGENT_SIGN_NO_ORDER,        /* another order, and no word says so */
    AGENT_SIGN_NO_MAKING,       /* something new, the same */
    AGENT_SIGN_NO_TEST,         /* a test, the same */
    AGENT_SIGN_NO_QUESTION,     /* an answer, and nothing is asked */
    AGENT_SIGN_TO_FILE,         /* a move, and the file stands as where something goes: "to X", "into X" */
    AGENT_SIGN_NEW_FILE,        /* a move, and the file is not there yet */
    AGENT_SIGN_ADD_VERB,        /* something new, and the request has an operation's verb */
    AGENT_SIGN_WORK_VERB,       /* a change or a test, the same */
    AGENT_SIGN_VERB,            /* an operation, and the request has its verb */
    AGENT_SIGN_OTHER_VERB,      /* an operation, and the request has another one's */
    AGENT_SIGN_OTHER_OBJECT, /* an operation, and its verb is said of another thing: "drop the header in X" */
    AGENT_SIGN_PARAMETER,    /* no operation on a parameter, and the request speaks of one */
    AGENT_SIGN_MAKING,       /* an operation, and the request speaks of something new */
    AGENT_SIGN_PART,         /* a definition, and the request speaks of a part of one: "the check in X" */
    AGENT_SIGN_BEHAVIOUR,    /* an operation, and the request speaks of what code does: "returns", "raises" */
    AGENT_SIGN_DOCUMENT,     /* an operation, and the request names a file that is no code */
    AGENT_SIGN_TEST,         /* an operation, and the request speaks of a test */
    AGENT_SIGN_CONDITION,    /* an operation, and the request has a condition */
    AGENT_SIGN_ACTS,         /* an operation, and what is named is to do something: "f should skip blanks" */
    AGENT_N_SIGNS
} agent_reading_sign;

typedef struct agent_reading {
    agent_reading_kind kind;
    char *call, *meaning; /* meaning NULL: nothing that the program does */
    uint8_t signs[AGENT_N_SIGNS];
    bool is_weighed; /* by the model: log_p is the whole call's, else no more than that of its first token */
    double log_p, weight;
} agent_reading;

typedef struct agent_readings {
    agent_reading all[AGENT_MAX_READINGS];
    uint32_t n;
    bool has_operation; /* one at least that the program would do */
    /* What has the new name is there: a renaming need not be clearly likelier than other work. */
    bool names_it;
    /* "... should be countRows": a new name stands where what is there gets it. */
    bool is_to_be;
} agent_readings;

/* How its call begins: "rename(". */
const char *agent__reading_word(agent_reading_kind kind);

/* What the names of the request allow, with their signs but for AGENT_SIGN_WORDS. agent__readings_free. */
void agent__find_readings(const agent *a, const char *request, agent_readings *ret);
void agent__readings_free(agent_readings *r);

/* Do the request's words that order an operation mean another thing than the definition that stands behind them? */
bool agent__is_doubtful_wording(const agent *a, const char *request);

/* --- reading.c --- */
/*
 * What is weighed of a request, with all signs; nothing: it is no request to be weighed, or its words are sure. *ret_said: how the
 * call begins that the program's own wordings read in it. Returns whether these mean another thing, none of the program's operations.
 */
bool agent__read_signs(agent *a, const char *request, agent_readings *ret, base_buf *ret_said);
/*
 * Their log_p and weight, as far as it takes to know the likeliest and all within a margin (nats) of it. Those that are weighed already are not
 * asked of the model.
 */
int agent__weigh_readings(agent *a, const char *request, double margin, agent_readings *r, base_err *err);

/* --- which.c --- */
/* The same operation, of two definitions that are described. */
bool agent__are_twins(const agent_reading *x, const agent_reading *y);
/*
 * Is an operation asked for, clearly, and what of is not? Then *ret has the question that the program asks in place of doing anything, and
 * a->which what an answer to it means.
 */
bool agent__ask_which(agent *a, const char *request, const agent_readings *r, base_buf *ret);
/* What the request means as an answer to the last turn's question, as agent__read_meaning says it; the caller frees. NULL: it is none. */
char *agent__read_which(agent *a, const char *request);

/* --- readings_weight.c --- */
/* Its signs in nats, beside what the model says. */
double agent__weigh_signs(const agent_reading *r);
/* How much a nat of the model's counts. */
double agent__weight_of_model(const agent_reading *r);
/* What an operation has to weigh at least, and by how many nats it has to be likelier than anything else. */
double agent__least_weight(void);
double agent__least_lead(void);
/* ... than the same of another definition, where both are only described (which.c). */
double agent__least_lead_of_twins(void);

#endif
