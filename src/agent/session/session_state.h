/*
 * A session's state, in groups that say what they are for: struct agent is these groups and what they work on. One
 * thread (the engine thread), no locks.
 */
#ifndef KVIST_AGENT_SESSION_STATE_H
#define KVIST_AGENT_SESSION_STATE_H

#include "agent/agent.h"
#include "agent/call/channels.h"
#include "agent/log/moved.h"

/* As the person set it. */
typedef struct agent_settings {
    agent_mode mode;
    uint32_t context_tokens, max_steps, max_tokens, max_thought;
    const char *const *stop;   /* strings that end an answer, NULL-terminated; NULL: none */
    const base_schema *schema; /* of answers; NULL: they are words */
    const char *schema_text;
    uint32_t tries;   /* as agent_options says; agent__tries knows the mode */
    const char *told; /* what /settings shows of the start; NULL: nothing is known */
    agent_configured_command configured[AGENT_N_CONFIGURED];
} agent_settings;

/* The stream of events: whose they are, and what waits to be told. */
typedef struct agent_telling {
    char *id, *parent; /* the session's */
    uint64_t seq;      /* of the newest event */
    bool log_failed;
    bool replaying; /* plans come from the log and are no news */
    bool holding;   /* during an append: plan events are held until its `append` event is out */
    agent_event **held;
    size_t n_held, cap_held;
    const char *engine_notice; /* that was said */
} agent_telling;

/* A stretch of the sequence that came from one place. */
typedef struct agent_segment {
    uint32_t from, to, turn;
    kv_origin origin;
    char *label, *path; /* path: it shows lines of this file; else NULL */
    char version[65];
    uint32_t line, line_end;
    bool stale;
    uint64_t seq; /* of its append event */
} agent_segment;

/* What the sequence is made of. */
typedef struct agent_transcript {
    agent_segment *segments;
    size_t n_segments, cap_segments;
    int open_role;         /* the message that was begun and not ended; -1: none */
    uint32_t *turn_starts; /* token index where turn t began, [turn] */
    size_t cap_turn_starts;
} agent_transcript;

/* A call that was made, for the loop guard and for "unchanged since". */
typedef struct agent_made_call {
    uint64_t key;
    uint32_t world, turn, times;
    uint32_t from, to; /* tokens of its result */
    bool this_turn;    /* a command, or a call that was denied: the next turn may ask for it again */
} agent_made_call;

/* Calls that were made and commands that were allowed. */
typedef struct agent_made {
    agent_made_call *calls;
    size_t n_calls, cap_calls;
    uint32_t world;      /* grows with every change of the tree */
    uint64_t last_shell; /* key of the last command: another one may change what tests see */
    char **allowed;      /* commands that were answered "always" */
    size_t n_allowed, cap_allowed;
    /* A turn's number and one: that its person said yes, or no, to a configured command; 0: not asked. */
    uint32_t configured_yes[AGENT_N_CONFIGURED], configured_no[AGENT_N_CONFIGURED];
    bool told_box;   /* that a person's own commands are confined, too */
    bool asked_once; /* tool_preview.asks_once was asked, or told where nobody can be asked */
} agent_made;

/* How a judge's verdict begins. */
typedef struct agent_verdict_words {
    const char *passes, *fails;
} agent_verdict_words;

/* The test that judges. */
typedef struct agent_test {
    char *command; /* named by a request, run before, or found for a changed file; NULL: none */
    /* command without the values of the request in front of it; NULL: it has none, or is them alone */
    char *plain;
    bool has_values; /* command checks values of the request first (valued.c) */
    /* of this turn: these values, or the tests that were found, cannot judge */
    bool drops_values, drops_plain;
    uint32_t hold, of; /* of the values, as its last run said; of 0: it did not say */
    char *miss;        /* the first of them that did not hold, as it was told; NULL: none */
    char **unfit;      /* commands that were found in this turn and cannot judge here */
    size_t n_unfit;
    char *
        why_none; /* what the first one of this turn that cannot judge lacks, for its last line; NULL: none */
    bool is_found;                    /* by the program, for this turn's change (judge.c) */
    bool in_copy;                     /* it builds: in the session's copy of the tree (tools/run/scratch.h) */
    bool lacks_pytest;                /* it was called, and is not installed */
    const agent_verdict_words *words; /* of one that runs no test: a compiler, a linter; NULL: it is a test */
    char *approved; /* its run after an approved change asks no second time in approved_turn; NULL: none */
    uint32_t approved_turn;
} agent_test;

/* A change whose test has not passed yet. */
typedef struct agent_attempt {
    uint32_t from, to; /* tokens of what the model wrote */
    bool open;
} agent_attempt;

typedef struct agent_doubts agent_doubts;

/*
 * This turn's request, when it names a failing test: the harness runs it, takes failed attempts back and asks
 * again (attempt.c).
 */
enum { AGENT_MAX_KEPT = 4 };
typedef struct agent_fix {
    bool wanted, passed;
    bool no_test; /* the person would not have it run, or what runs it is not installed */
    uint32_t attempts, asked_again;
    uint32_t repeated;   /* calls that write which were made a second time, word for word */
    uint32_t writes;     /* of this turn that stand */
    bool open_call;      /* a change came to nothing: the harness begins the next one */
    bool failing;        /* the last run of the test in this turn failed */
    bool was_whole;      /* and without this turn's changes it does not */
    bool tried;          /* candidates were sampled in this turn */
    bool copied;         /* the model wrote the old text again */
    char *path, *name;   /* of the definition that was written last; NULL: none */
    bool returned_early; /* an attempt was begun with a condition in front of the body */
    char *field;         /* that this definition, a type, lacks; NULL: none is known */
    agent_attempt attempt;
    /* Answers to this request that were not chosen, the next best first (heap): they are tried before others are sampled. */
    char *kept[AGENT_MAX_KEPT];
    uint32_t n_kept, next_kept;
    agent_doubts *doubts; /* of the definition that is being repaired; NULL: not looked for yet */
} agent_fix;

/* What a request wants of a name: to be in the tree, out of it, or to have another text than now; of a file: a change. */
typedef enum agent_wish_kind {
    AGENT_WISH_STANDS,
    AGENT_WISH_GOES,
    AGENT_WISH_CHANGES,
    AGENT_WISH_FILE
} agent_wish_kind;
typedef struct agent_wish {
    /*
     * name: of AGENT_WISH_FILE the file's path. path: of the one file that is meant; NULL: wherever it is
     * defined
     */
    char *name, *path;
    char *says; /* AGENT_WISH_FILE: what its new text has to name; NULL: anything */
    agent_wish_kind kind;
    uint64_t before; /* AGENT_WISH_CHANGES: hash of its definitions' texts when it was asked for */
} agent_wish;
enum { AGENT_MAX_WISHES = 8 };

/* A test that is to be written (src/agent/newtest/newtest.h); path NULL: none, or no place for it is known. */
typedef struct agent_new_test {
    char *path, *name;
    char *example, *holder; /* the test that it stands beside, and the type around that (NULL: none) */
    char *subject;          /* what is tested */
    char *assertion; /* how the example's first assertion begins, up to the subject's arguments; NULL */
    char *begins;    /* the example's lines behind its name, up to the subject's arguments; NULL: none fit */
    char *own_name;  /* where `name` is the example's, which gets rows: of a test of its own; NULL */
    char *rows;      /* the example's text up to a further row of its table; NULL: it has none */
    char *head;      /* C, Java: the example's head under the new name, up to its body; NULL: neither */
    char *setup;     /* C, Go: lines of a test beside it that make what the subject is given; NULL: none do */
    bool has_value;  /* the assertion goes on into a string or a list */
    bool
        is_file; /* JavaScript, a row: no definition; `assertion` is how its file begins, or its first lines */
    bool is_row;          /* C: a call behind others, no block */
    uint32_t line;        /* of its file, behind which it is put; 0: it gets a file of its own */
    bool begun;           /* the harness has begun its call */
    bool is_refused;      /* once: it did not test its subject */
    bool is_blind;        /* it passes where its subject is broken */
    char *fault;          /* of its subject, that was tried in a copy before it was written; NULL: none was */
    bool notices;         /* that one, or another */
    bool misses_aim;      /* another one, and not that one, of which the request speaks */
    uint32_t n_put_right; /* literals in it that are what the code gave, not what the model wrote */
    uint32_t n_probed;    /* how often its calls were made to see what they give */
    bool is_recorded;     /* all that it expects was seen by that */
} agent_new_test;

/* An operation that the tool refused, and its words (act.c); why NULL: none. */
typedef struct agent_refusal {
    char *operation, *name, *to, *why;
    bool is_final; /* the same call with something more would be refused too */
} agent_refusal;

/* One operation of several that a request orders. to: the new name, where the request says it; NULL. */
typedef struct agent_listed {
    const char *operation; /* static */
    char *name, *to;
    char *path; /* its file, where the request says it; NULL */
    bool is_done;
} agent_listed;

/* A function that a request in plain words may mean. */
enum { AGENT_MAX_MEANT = 3 };
typedef struct agent_meant {
    char *path, *name;
    uint32_t from, to; /* bytes of the file when it was looked for */
} agent_meant;

/* What this turn's request asks to be changed, and what came of it (outcome.c). */
typedef struct agent_asked {
    bool change;     /* it asks for a change */
    bool test;       /* for a new test, among others */
    bool test_waits; /* a new test comes behind what it tests: "add f, with a test"; then `test` */
    char *test_of;   /* what that is; NULL: whatever the turn changes */
    bool tests_too;  /* for a change of the tests as well */
    char *said;      /* the last answer's words */
    char *went;      /* the definition that was renamed or deleted last */
    bool test_alone; /* a test is asked for, and no code is to change */
    agent_new_test new_test;
    bool has_chosen;                    /* the answer was chosen among several (choose.c) */
    bool has_begun_addition;            /* the call for a new function was begun */
    char *document;                     /* that was to change too, once its place was shown; NULL */
    bool has_begun_document;            /* the call that writes its line */
    uint32_t n_respelled;               /* files of tests whose calls were begun (spelling.c) */
    uint32_t n_bumped;                  /* files whose version was begun (version.c) */
    char *old_version;                  /* heap; which one they gave; NULL: none was begun */
    bool has_begun_export;              /* the call that hands out one that is there */
    agent_meant meant[AGENT_MAX_MEANT]; /* best first; empty: it names one, or asks for something else */
    uint32_t n_meant, n_aimed;          /* n_aimed: those whose call was begun */
    bool is_meant_sure;                 /* the first of them is it */
    /* "move a and b to c", "rename a to b and c to d"; n_begun: those whose call was begun */
    agent_listed listed[AGENT_MAX_WISHES];
    uint32_t n_listed, n_begun;
    bool is_operation;     /* it asks for a rename, a move or a deletion and for nothing else */
    uint32_t n_operations; /* refactor calls that changed something */
    base_buf done;         /* what those said, a line each */
    uint32_t again; /* how often it was asked again, since nothing or not all of it stood in the tree */
    bool has_asked_reader; /* a field is read by nothing: what reads it was asked for */
    agent_refusal refusal;
    /* A function and its parameter, which was to go and which it still uses; NULL: none. The next call asks what stands in its place. */
    char *still_used_in, *still_used;
    bool asks_instead;
    bool is_told; /* what the tools said of it is the answer */
    bool is_open; /* which definition is meant: the answer asks that */
    bool refused; /* the person said no to something: that is an answer, and nothing is asked again */
    agent_wish wishes[AGENT_MAX_WISHES];
    uint32_t n_wishes;
    char **changed; /* files written in this turn that stand */
    size_t n_changed;
} agent_asked;

/* For the next request. */
typedef struct agent_notes {
    base_buf shell; /* what "!" lines printed */
    base_buf map;   /* what /map found */
    base_buf skill; /* the text of the tree's skill that it uses */
} agent_notes;

/* Tokens [from, to) that the harness or a person would have in another place. */
typedef struct agent_loose {
    uint32_t from, to;
    kv_reason reason;
} agent_loose;

/* A price that was shown and is paid with the next request. */
typedef struct agent_price {
    bool is_open, at_most;
    uint32_t shown;
    uint32_t before, n_active; /* tokens to compute without a cut, and those that it left to send */
} agent_price;

/* What is put aside of what an engine elsewhere is sent (aside.c). */
typedef struct agent_aside {
    agent_loose *loose; /* failed attempts and thoughts: they leave with the next cut */
    size_t n_loose, cap_loose;
    agent_loose *wanted; /* comes back in front of the next request */
    size_t n_wanted, cap_wanted;
    base_buf list; /* what the model was not told of yet */
    agent_price waiting;
    bool always;         /* cuts are not asked for any more */
    uint32_t small_told; /* the budget of which it was told that it is too small; 0: of none */
    /* tokens that were sent when the person would not have a cut; 0: they did not say so */
    uint32_t refused_at;
} agent_aside;

/* Sums since the turn began, for its ledger. */
typedef struct agent_sums {
    uint32_t n_before, generated;
    /* of generated, the first of each request to an engine elsewhere: their time is prefill's */
    uint32_t n_awaited;
    agent_moved moved;
    uint32_t computed; /* tokens left below a cut whose upper layers a plan had computed */
    uint64_t prefill_ns, decode_ns;
    uint64_t drafted, accepted; /* tokens of prompt lookup */
    uint32_t expected, waited;  /* tokens that this wait will compute (0: not known), and how many it has */
} agent_sums;

typedef struct agent_account {
    agent_sums sums;
    kv_reads reads;          /* as the last ledger told them */
    uint32_t computed_above; /* kv_stats', as then */
    uint64_t token_ns;       /* what a token of the last long text took to compute; 0: there was none */
    agent_sums *turns;       /* as each turn's last ledger told them, [turn] */
    size_t n_turns, cap_turns;
} agent_account;

/* What the model took a request for (turn/reading.c), against what its words seem to say. */
typedef enum agent_read_as {
    AGENT_READ_AS_SAID,
    AGENT_READ_AS_CHANGE, /* of another kind than rename, move, delete, signature */
    AGENT_READ_AS_ANSWER  /* no change */
} agent_read_as;

/* Definitions of which a turn asked which one is meant (turn/which.c), and what is done with each: "Rename f to g." */
enum { AGENT_MOST_WHICH = 3 };
typedef struct agent_which {
    char *names[AGENT_MOST_WHICH], *meanings[AGENT_MOST_WHICH];
    uint32_t n, turn;
} agent_which;

struct agent {
    engine *engine;
    engine_info info;
    tool_workspace *workspace;
    agent_log *log;
    agent_recall *recall;
    mcp *servers; /* of tools of other programs; NULL: none */
    agent_host host;
    atomic_bool *cancel;

    agent_settings settings;
    /* Of the turn, in order: what leaves with its answer (channels.h). */
    struct {
        agent_thought *all;
        size_t n, cap;
        bool told_long; /* that one was ended, in this session */
    } thoughts;
    agent_telling telling;
    agent_transcript transcript;
    agent_made made;
    agent_test test;
    agent_fix fix;
    agent_asked asked;
    agent_notes notes;
    agent_aside aside;
    agent_account ledger;

    uint32_t turn;
    agent_read_as read_as; /* the turn's request */
    bool denied, ended;
    bool at_limit;     /* the turn ended where --max-steps or the context did */
    agent_which which; /* of the last turn */
    char *request;     /* the last one's words; NULL: none yet */
    char *answered;    /* the first definition that the last answer named: "it" of the next request; NULL */
    bool has_excerpts; /* the last request had some in front */
    bool unsaved;      /* a turn ended since the last snapshot */
    uint32_t offered;  /* passages of the index when the grammar was made */
};

#endif
