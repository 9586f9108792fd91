/*
 * What the agent's files share: the session's state, in groups that say what they are for, and the steps of a
 * turn. One thread (the engine thread), no locks. From the top down, each file using only those below it
 * (scripts/show-circles):
 *
 *     start.c    from options to a session that can take requests
 *     agent.c    opening and closing, one line from the person, idle time, the engine's observer
 *     commands.c slash commands
 *     use_skill.c a skill of the tree, or a command of the person's own, as a turn
 *     resume.c   catching up with the log
 *     turn.c     a turn: request, decode, call or answer
 *     act.c      what a call means: repetitions, its result into the session, tests behind a change, failed attempts
 *     tries.c    candidates: sampled in branches, tried in a copy of the tree, the first that passes is
 *         offered
 *     fence.c    a definition without a call, as a call
 *     newtest.c  a test that is to be written: its place, its example, whether it notices a broken subject
 *     newtest_form.c  how one is begun: a further row of a table, the usual assertion, a string
 *     expect.c   what a new test expects, put right by what the code gives
 *     named.c    which definitions a request is about
 *     judge.c    which command judges a change where none was named
 *     valued.c   values that the request gives, as a judge in front of that command
 *     test_command.c  the command that judges: which it is, and how a test file is run alone
 *     attempt.c  a request that names a failing test: running it, taking failed attempts back, asking again
 *     doubt.c    where the model doubts the text that it is to repair: what a further attempt changes
 *     early_return.c  a further attempt that begins with a condition in front of the body
 *     guard.c    repeated calls and repeating text
 *     configured.c the commands that a configuration names: test, lint
 *     running.c  one call from its arguments to its result: preview, permission, run, events
 *     asking.c   asking the person, and what they allowed for longer than once
 *     begin.c    a session's fixed prompt, its snapshot and its end
 *     context.c  what stands in front of a request: AGENTS.md, @files, retrieved excerpts; staleness
 *     outside.c  tools of other programs: told of in front of a request
 *     room.c     how much of it one message may bring
 *     back.c     what comes back, of what an engine elsewhere is not sent any more
 *     insert.c   text -> tokens -> engine, `append` and `span` events; messages; asking for evicted rows
 *     spans.c    bytes of a text to tokens: line starts and structure
 *     words.c    which words say what a text asks for
 *     active.c   what of the sequence the model reads: plans of the session, else spans
 *     aside.c    the budget in spans of an engine elsewhere: what is put aside, and its price
 *     visits.c   which evicted rows tokens read
 *     leaving.c  which files do not leave this machine unasked
 *     requests.c what requests across HTTP cost, and where the engine's cache parted from ours
 *     ledger.c   a turn's sums: what was computed, evicted and promoted, and why
 *     reader.c   an answer, token by token: words, calls, thoughts
 *     segments.c which stretch of the sequence came from where
 *     lacking.c  a type's field that the request names and the compiler misses
 *     twins.c    the same definition in another place that a request means, too
 *     mode.c     what runs without asking
 *     tell.c     events: numbered, handed to the host and the log
 */
#ifndef KVIST_AGENT_PARTS_H
#define KVIST_AGENT_PARTS_H

#include "agent/agent.h"
#include "agent/call/call.h"
#include "agent/call/channels.h"
#include "agent/guard.h"
#include "agent/log/log.h"
#include "agent/log/moved.h"
#include "agent/words/operation_words.h"
#include "agent/call/prompt.h"
#include "agent/words/token_map.h"
#include "agent/words/request_words.h"
#include "kv/core/budget.h"
#include "mcp/mcp.h"

/* --- the session's state -------------------------------------------------------------------------------- */

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
    char *
        plain; /* command without the values of the request in front of it; NULL: it has none, or is them alone */
    bool has_values; /* command checks values of the request first (valued.c) */
    bool drops_values,
        drops_plain;   /* of this turn: these values, or the tests that were found, cannot judge */
    uint32_t hold, of; /* of the values, as its last run said; of 0: it did not say */
    char *miss;        /* the first of them that did not hold, as it was told; NULL: none */
    char **unfit;      /* commands that were found in this turn and cannot judge here */
    size_t n_unfit;
    bool is_found;                    /* by the program, for this turn's change (judge.c) */
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
typedef struct agent_fix {
    bool wanted, passed;
    bool no_test; /* the person would not have it run, or what runs it is not installed */
    uint32_t attempts, asked_again;
    uint32_t writes;     /* of this turn that stand */
    bool open_call;      /* a change came to nothing: the harness begins the next one */
    bool failing;        /* the last run of the test in this turn failed */
    bool tried;          /* candidates were sampled in this turn */
    bool copied;         /* the model wrote the old text again */
    char *path, *name;   /* of the definition that was written last; NULL: none */
    bool returned_early; /* an attempt was begun with a condition in front of the body */
    char *field;         /* that this definition, a type, lacks; NULL: none is known */
    agent_attempt attempt;
    agent_doubts *doubts; /* of the definition that is being repaired; NULL: not looked for yet */
} agent_fix;

/* What a request wants of a name: to be in the tree, out of it, or to have another text than now. */
typedef enum agent_wish_kind { AGENT_WISH_STANDS, AGENT_WISH_GOES, AGENT_WISH_CHANGES } agent_wish_kind;
typedef struct agent_wish {
    char *name, *path; /* path: of the one file that is meant; NULL: wherever it is defined */
    agent_wish_kind kind;
    uint64_t before; /* AGENT_WISH_CHANGES: hash of its definitions' texts when it was asked for */
} agent_wish;
enum { AGENT_MAX_WISHES = 8 };

/* A test that is to be written (newtest.c); path NULL: none, or no place for it is known. */
typedef struct agent_new_test {
    char *path, *name;
    char *example, *holder; /* the test that it stands beside, and the type around that (NULL: none) */
    char *subject;          /* what is tested */
    char *assertion;      /* how the example's first assertion begins, up to the subject's arguments; NULL */
    char *rows;           /* the example's text up to a further row of its table; NULL: it has none */
    bool is_string;       /* the assertion goes on into a string */
    bool is_file;         /* it gets a file of its own (JavaScript); assertion is how that begins */
    bool begun;           /* the harness has begun its call */
    bool is_blind;        /* it passes where its subject is broken */
    uint32_t n_put_right; /* literals in it that are what the code gave, not what the model wrote */
} agent_new_test;

/* An operation that the tool refused, and its words (act.c); why NULL: none. */
typedef struct agent_refusal {
    char *operation, *name, *to, *why;
} agent_refusal;
void agent__refusal_free(agent_refusal *x);

/* What this turn's request asks to be changed, and what came of it (outcome.c). */
typedef struct agent_asked {
    bool change;    /* it asks for a change */
    bool test;      /* for a new test, among others */
    bool tests_too; /* for a change of the tests as well */
    agent_new_test new_test;
    char *listed[AGENT_MAX_WISHES]; /* definitions of one operation ("move a and b to c") */
    uint32_t n_listed;
    uint32_t n_operations; /* refactor calls that changed something */
    uint32_t again; /* how often it was asked again, since nothing or not all of it stood in the tree */
    agent_refusal refusal;
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
    uint32_t before, n_active; /* tokens to compute without the cut, and those sent behind it */
} agent_price;

/* What is put aside of what an engine elsewhere is sent (aside.c). */
typedef struct agent_aside {
    agent_loose *loose; /* failed attempts and thoughts: they leave with the next cut */
    size_t n_loose, cap_loose;
    agent_loose *wanted; /* comes back in front of the next request */
    size_t n_wanted, cap_wanted;
    base_buf list; /* what the model was not told of yet */
    agent_price waiting;
    bool always; /* cuts are not asked for any more */
    uint32_t
        refused_at; /* tokens that were sent when the person would not have a cut; 0: they did not say so */
} agent_aside;

/* Sums since the turn began, for its ledger. */
typedef struct agent_sums {
    uint32_t n_before, generated;
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
    bool denied, ended;
    bool at_limit;     /* the turn ended where --max-steps or the context did */
    char *request;     /* the last one's words; NULL: none yet */
    char *answered;    /* the first definition that the last answer named: "it" of the next request; NULL */
    bool has_excerpts; /* the last request had some in front */
    bool unsaved;      /* a turn ended since the last snapshot */
    uint32_t offered;  /* passages of the index when the grammar was made */
};

/* --- tell.c --- */
void agent__emit(agent *a, agent_event *e); /* numbers it, hands it to the host, buffers it in the log */
void agent__commit(agent *a);               /* the log's commit; a failure is told once */
void agent__notice(agent *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
void agent__error(agent *a, const base_err *err);
/*
 * Now, or while `holding` is set when agent__release_held is called: behind the event of the tokens that it
 * speaks of.
 */
void agent__emit_behind(agent *a, agent_event *e);
void agent__release_held(agent *a); /* emits what was held back, in its order */
/*
 * A wait for n tokens begins: progress counts over all of them. 0: it is over, what follows counts piece by
 * piece.
 */
void agent__expect(agent *a, uint32_t n_tokens);
void agent__progress(agent *a, uint32_t done, uint32_t total); /* of what the engine computes now */

/* --- schema.c --- */
/* Behind a request: that its answer is JSON, and of which schema. */
void agent__put_schema(const agent *a, base_buf *request);
/* What the next answer is held to. calls: it may be one where the family's calls do not look like JSON. */
engine_hold agent__hold(const agent *a, bool calls);
/* Can this text, as far as it came, be JSON only? Then no call is looked for in it. */
bool agent__is_json(const char *text, size_t n);
/* The answer's JSON, on one line; BASE_E_FORMAT: it does not fit, and where. A fence or a thought around it is dropped. */
int agent__take_json(const agent *a, const char *text, size_t n, base_buf *ret, base_err *err);
void agent__put_schema_again(
    const agent *a, const base_err *why, base_buf *asking); /* what it is asked then */

/* --- outside.c --- */
/* Tools of other programs that the model was not told of yet, in front of a request. */
int agent__append_outside(agent *a, base_err *err);
int agent__describe_outside(agent *a, const char *name, base_err *err); /* /mcp [NAME] */

/* --- use_skill.c --- */
/* /NAME where no command of ours has that name. BASE_E_NOT_FOUND, and nothing is told: there is none. */
int agent__use_skill(agent *a, const char *name, size_t n, const char *arguments, base_err *err);
void agent__list_skills(agent *a, base_buf *out); /* for /help: "/name\tabout" a line */

/* --- begin.c --- */
/* Fixed prompt and AGENTS.md into an empty engine, `session` event. */
int agent__begin_session(agent *a, base_err *err);
int agent__operate(agent *a, const char *json, base_err *err); /* the refactor tool, for a command */
int agent__offer_tools(agent *a, base_err *err); /* makes the grammar of the calls that can be made now */
void agent__save(agent *a);                      /* a snapshot of the engine's session; a failure is told */
void agent__end_session(agent *a, const char *status); /* its last event */
void agent__clear_session(agent *a);                   /* what a session remembers of its sequence */
int agent__restart(agent *a, const char *parent, base_err *err); /* a new session in place of this one */

/* --- ledger.c --- */
void agent__count_plan(agent *a, const kv_plan *p); /* into the turn's sums; before the plan is applied */
void agent__ledger(agent *a);
void agent__forget_counts(
    agent *a); /* what the engine has counted so far is no turn's: a log was executed again */
void agent__restore_sums(agent *a, const agent_event *ledger); /* as they were when this was logged */
void agent__rewind_sums(agent *a);                             /* those of a->turn, again the last one */

/* Text that is to become part of the sequence, and where it comes from. */
typedef struct agent_text {
    kv_origin origin;
    const char *text;
    size_t n;
    const char *label, *path, *version; /* NULL: none */
    uint32_t line, line_end;
    uint32_t bulk;      /* tokens of all the excerpts that it comes with; 0: it comes alone */
    bool has_marks;     /* text of the harness with control tokens in it: AGENT_PROMPT_MARK */
    bool whole;         /* the request is about changing it: computed in full (kv_segment.whole) */
    bool structure;     /* parse it as source text of `path` and protect signatures, calls, ... */
    size_t source_from; /* with structure: where in text the source begins (a header stands before it) */
    const char *words;  /* with structure: the request, whose symbols protect too */
    const tool_source
        *sources; /* bytes of text that are bytes of files: their structure is the whole file's */
    uint32_t n_sources;
} agent_text;

/* --- segments.c --- */
uint32_t agent__n_tokens(const agent *a);
uint32_t agent__count(const agent *a, const char *text, size_t n); /* tokens */
/* Remembers tokens [from, to) as a segment; returns its index. */
size_t agent__add_segment(agent *a, const agent_text *t, uint32_t from, uint32_t to);
/*
 * The role of the message that is open at the end of the segments, by their scaffold's labels (a resume, a
 * rewind); -1: none.
 */
int agent__find_open(const agent *a);
/* Forgets the segments from token n on, and so which message is open. */
void agent__truncate_segments(agent *a, uint32_t n);
/*
 * "system", "user", ...: a scaffold's label says which message it leaves open: "+role" begins, "-role" ends,
 * "-role+role" both.
 */
extern const char *const agent__role_words[];

/* Its bytes; NULL for a control token. */
const char *agent__piece(const agent *a, int32_t id, size_t *ret_n);
/* The text of tokens [from, to), control tokens apart. */
void agent__put_words(const agent *a, uint32_t from, uint32_t to, base_buf *out);

/* --- active.c --- */
/* The engine's session; an engine without one is a sentence. */
int agent__get_session(const agent *a, kv_session **ret, base_err *err);
int agent__set_budget(agent *a, const kv_budget *wish, base_err *err);
int agent__manual(agent *a, kv_manual what, uint32_t from, uint32_t to, base_err *err); /* a person's hand */
/* The harness's, which does without where an engine cannot. */
int agent__bring_back(agent *a, uint32_t from, uint32_t to, base_err *err);
int agent__put_stale(agent *a, uint32_t from, uint32_t to, base_err *err); /* they show an older text */
/* A thought whose answer is there: its rows leave. */
int agent__put_thought(agent *a, uint32_t from, uint32_t to, base_err *err);
int agent__put_failed(
    agent *a, uint32_t from, uint32_t to, base_err *err); /* an attempt that came to nothing */
void agent__active_lanes(const agent *a, uint32_t *ret);  /* how many lanes hold each token, [n_tokens] */
void agent__set_turn(agent *a, uint32_t turn);

/* --- aside.c --- */
/* Of this engine spans may leave, and that has a price. */
bool agent__is_priced(const agent *a);
/* Is some of it put aside? Never where the engine is not priced. */
bool agent__is_aside(const agent *a, uint32_t from, uint32_t to);
/* Above the budget: one cut, by what the message asks for. */
int agent__hold_budget(agent *a, const char *message, base_err *err);
void agent__put_segment_name(const agent_segment *p, base_buf *out); /* "src/a.c:1-20", "test of turn 3" */
void agent__leave_later(agent *a, uint32_t from, uint32_t to, kv_reason reason); /* with the next cut */
void agent__want_back(
    agent *a, uint32_t from, uint32_t to); /* where it is put aside, in front of the next request */
int agent__put_aside(agent *a, uint32_t from, uint32_t to, base_err *err); /* now, by a person */
int agent__apply_aside(agent *a, const kv_plan *p, base_err *err);         /* a logged one */
void agent__tell_span_budget(agent *a);
/* Behind the price that was shown: what was paid, once. */
void agent__put_paid(agent *a, const engine_request *r, base_buf *out);
void agent__truncate_aside(agent *a, uint32_t n); /* forgets what is behind token n */

/* --- back.c --- */
/* In front of a request, in its message: a cut where one is due, what was put aside, what the request asks for of it. */
int agent__append_aside(agent *a, const char *request, base_err *err);

/* --- leaving.c --- */
/* Why this file is not sent to an engine elsewhere unasked; NULL: it may be. */
const char *agent__why_stays(const agent *a, const char *path);

/* --- requests.c --- */
/* What requests to an engine across HTTP cost, as events, since this was told last; into the turn's sums. */
void agent__tell_requests(agent *a);

/* --- visits.c --- */
/* Which evicted rows tokens read since this was told last. */
void agent__tell_visits(agent *a);

/* --- spans.c --- */
enum { AGENT_MAX_SPANS = 1024 };
agent_token_map agent__map_tokens(const agent *a, const int32_t *ids, uint32_t n); /* the caller frees .end */
/* What the text shows of files as spans of its tokens, [AGENT_MAX_SPANS]; returns how many. */
uint32_t agent__find_spans(
    agent *a, const agent_text *t, const char *text, size_t n, const agent_token_map *m, kv_span *spans);

/* --- reader.c --- */
/* An answer as it is read token by token: what of it is words and calls, and what the model thinks (channels.h). */
typedef struct agent_reader {
    base_buf text, thought;
    agent_channels channels;
    size_t line_text, line_thought; /* agent__reader_line_begins */
    bool line_in_head;
    uint32_t n_thought, n_closed; /* tokens of thoughts; thoughts that were ended for it */
} agent_reader;
void agent__reader_begin(agent *a, agent_reader *r); /* the next token is the answer's first */
void agent__reader_take(const agent *a, agent_reader *r, int32_t id, uint32_t index);
void agent__reader_free(agent_reader *r);
/* The model goes on with a line that the harness began; it has come to its end, or begins something else. */
enum { AGENT_OPENING_TOKENS = 64 }; /* of the model's, at most */
void agent__reader_line_begins(agent_reader *r);
bool agent__reader_has_line(const agent_reader *r);
/* The call that the harness begins behind such a line; is_ended: the model ended its message there. */
void agent__put_call_behind(
    const agent *a, const agent_reader *r, bool is_ended, const base_buf *call, base_buf *out);
/*
 * The model has thought for settings.max_thought tokens: what ends its thought, as it would have ended it, is to be
 * appended. false: go on.
 */
bool agent__ends_thought(agent *a, agent_reader *r, model_ids *ret);
/* The grammar goes on behind what the harness wrote into the answer from token `from` on. */
void agent__tell_grammar(agent *a, uint32_t from);
/* Can the harness write the beginning of a call as this model writes calls? */
bool agent__can_begin_calls(const agent *a);

/* --- insert.c --- */
/* Tokens of a text of the harness; ret (may be NULL): the same without its marks. */
int agent__encode_marked(
    const agent *a, const char *text, size_t n, model_ids *ids, base_buf *ret, base_err *err);
/* Appends content. ret_index (may be NULL): its index in a->transcript.segments. */
int agent__append(agent *a, const agent_text *t, size_t *ret_index, base_err *err);
/* Tokens of a call that were chosen elsewhere (tries.c), with their `token` events. */
int agent__append_answer(agent *a, const int32_t *ids, uint32_t n, base_err *err);
/*
 * Logged ids again, without an event (resume.c). The segment is what was logged of it; its lines are found
 * here.
 */
int agent__append_logged(agent *a, const kv_segment *logged, const int32_t *ids, uint32_t n, base_err *err);
/* Ends the open message and begins one of `role` (-1: only ends), as scaffold. */
int agent__open_message(agent *a, int role, base_err *err);
/* Asks for evicted rows with the content words of tokens [from, to). */
int agent__repair(agent *a, uint32_t from, uint32_t to, base_err *err);
/* Bytes [from, to) of a segment's text are lines of a file: remembered for staleness and "shown already". */
void agent__add_shown(agent *a, size_t index, size_t from, size_t to, const char *path, const char *version,
    uint32_t line, uint32_t line_end);
/* --- rewind.c --- */
int agent__rewind(
    agent *a, uint32_t turn, base_err *err); /* to before `turn` (1 to a->turn); asks about files */
/* --- context.c --- */
int agent__append_instructions(agent *a, base_err *err); /* AGENTS.md, when there is one */
int agent__append_context(agent *a, const char *request, base_err *err);
void agent__mark_stale(agent *a, const char *path);   /* rows that show an older text of it */
void agent__notice_changes(agent *a, base_buf *told); /* what the person changed since it was shown */

/* --- changes.c --- */
bool agent__asks_about_changes(const char *request); /* a diff, what changed since a commit */
int agent__append_changes(agent *a, const char *request, base_err *err); /* and puts that in front */

/* --- asking.c --- */
/* The host has to have somebody to ask. Free the decision's text. */
agent_decision agent__ask_person(agent *a, const agent_event *request);
bool agent__is_always_allowed(
    const agent *a, const char *command); /* for the session, or for good in this tree */
void agent__allow_always(agent *a, const char *command, bool is_lasting);

/* --- configured.c --- */
/*
 * The command that the configuration names for this, where it counts: a tree's command has to be approved, and
 * that is asked here (y: this turn, a: the session, A: until it changes). NULL: none is named, it was not
 * approved (said once a turn), or nothing runs in this mode. What it returns runs without a further question.
 */
const char *agent__configured(agent *a, agent_configured which);
const char *agent__configured_word(agent_configured which); /* "test" */
bool agent__is_configured_yes(
    const agent *a, const char *command); /* typed, or a yes of this turn covers it */
void agent__describe_configured(
    const agent *a, base_buf *out); /* a line each, with what is still to be asked */

/* --- room.c --- */
uint32_t agent__room_bytes(const agent *a); /* cap of one tool result */
/*
 * How many of a file's n_tokens (in n_lines) are put in front of a request that names it by @, where n_taken
 * tokens of such files are chosen already. Says what does not fit; asks where that is the person's to decide.
 */
uint32_t agent__file_room(agent *a, const char *path, uint32_t n_tokens, uint32_t n_lines, uint32_t n_taken);

/* --- fence.c --- */
/* A definition in a fence without a call, as a call to rewrite it; false: none, or no single place for it. */
bool agent__offer_rewrite(agent *a, const base_buf *text, agent_call *call);

/* --- turn.c --- */
int agent__turn(agent *a, const char *request, base_err *err);
/* Below an answer in words: its places as the index has them, and who calls what it was asked for. */
enum { AGENT_MAX_PLACES = 8 };
void agent__tell_places(agent *a, const char *text, size_t n);
/* The places of an answer, for the request behind it that says "it". */
void agent__note_answered(agent *a, const agent_place_row *places, size_t n);
/* A turn of one answer in words: nothing is looked for, no call of it is made. */
typedef struct agent_draft {
    const char *request;          /* what the turn is called in the chat and in the log: the command */
    const char *label, *material; /* what the model reads in front, and what that is */
    const char *asking;
} agent_draft;
/* The answer's text behind *ret. BASE_E_STATE: it was cut, went in circles or was a call. The caller tells errors. */
int agent__draft(agent *a, const agent_draft *d, base_buf *ret, base_err *err);

/* --- commit.c --- */
int agent__git_commit(agent *a, base_err *err); /* /commit */
/* A model's answer as a message: without fences and labels around it, lines without blanks at their ends. */
void agent_commit_clean(const char *answer, base_buf *ret);

/* --- act.c --- */
/* One call from the model's answer (whose tokens are [from, to)). *ret_stop: the turn ends here. */
int agent__act(agent *a, const agent_call *call, uint32_t from, uint32_t to, bool *ret_stop, base_err *err);
int agent__run_test_first(agent *a, base_err *err);    /* and appends what it printed */
int agent__known(const void *agent, const char *name); /* agent_call_known_fn */
int agent__shell_line(agent *a, const char *command, bool is_typed,
    base_err *err); /* "!command"; is_typed: by the person, whose home it then sees */

/* --- outcome.c --- */
/* Does a request in plain words ask for a change of the tree, or for words? */
bool agent_asks_for_change(const char *request);
void agent__ask(agent *a, const char *request); /* when the index is there, before anything is changed */
void agent__asked_free(agent *a);
void agent__changed(agent *a, const char *path);    /* a call wrote this file */
void agent__taken_back(agent *a, const char *path); /* and that was undone */
/* What was asked for and is not in the tree, as sentences; false: nothing is known to be missing. */
bool agent__is_missing(const agent *a, base_buf *out);
/* The next answer begins with the call that writes what is missing; false: where that is, is not known. */
bool agent__aim_at_missing(agent *a);
/*
 * The same for an answer in words, where other behaviour was asked for: it names just one function or method of the
 * tree. false: nothing was aimed at, since it names none, several, or one of several files and no file.
 */
bool agent__aim_at_said(agent *a, const char *text);
/* The next answer begins with the call that writes this definition. */
void agent__aim_at(agent *a, const char *path, const char *name);
/* From now on this definition has to change as well. */
void agent__wish_changed(agent *a, const char *path, const char *name);
/* It asks for other behaviour of what stands there: nothing comes, goes or is called otherwise. */
bool agent__asks_for_behaviour(const agent *a);
/* The last line of a turn that was asked for a change. */
void agent__tell_outcome(agent *a);

/* --- lacking.c --- */
typedef struct agent_lacking {
    char *path, *type; /* of the tree */
    char *field;       /* that it has not */
} agent_lacking;
/* What a compiler printed says that a type of the tree lacks a field that the request names; agent__lacking_free. */
bool agent__find_lacking(const agent *a, const char *output, agent_lacking *ret);
void agent__lacking_free(agent_lacking *l);

/* --- twins.c --- */
typedef struct agent_standing {
    char *path, *name, *parent; /* path NULL: it is no definition of the tree */
    base_buf text;
} agent_standing;
/* The definition that `name` of `path` is now, before it is written; agent__standing_free. */
void agent__find_standing(const agent *a, const char *path, const char *name, agent_standing *ret);
void agent__standing_free(agent_standing *s);
/* `old` was rewritten: what stands in another place that the request means as well has to change too. */
void agent__wish_twins(agent *a, const agent_standing *old);

/* --- newtest.c --- */
/* The test that the new one stands beside, in front of the request; its file becomes the test that judges. */
int agent__append_new_test(agent *a, const char *request, base_err *err);
/* A new test that passes has to fail where its subject is broken: tells whether it does. */
void agent__try_new_test(agent *a);

/* The runner said that the subject wants a string: the next attempt gives it one. */
void agent__sharpen_new_test(agent *a, const char *output);

/* --- newtest_form.c --- */
/*
 * Behind the last row (but for its comma) of the last table in text[0, n), rows of which stand on lines of their own;
 * *ret_next: the comma where it has none, and a further line up to its bracket. 0: there is no table.
 */
size_t agent__rows_end(const char *text, size_t n, base_buf *ret_next);
/* How most assertions of a script of node's begin ("assert.equal("); "assert." where the request is about errors. */
void agent__put_usual_assertion(const base_buf *text, const char *request, base_buf *out);
/* Did the call fail since what it was given is no string? `output` may be NULL. */
bool agent__wants_string(const char *output);

/* --- expect.c --- */
typedef struct agent_expectation {
    base_buf text;           /* of the lines, as they should be; empty: nothing to put right */
    uint32_t line, line_end; /* of the new test's file */
    base_buf told;
} agent_expectation;
/*
 * A test's runner said `output` of the test in text[from, to): where it fails since a literal in it is not what the code
 * gives, and `request` (may be NULL) does not say that value, its line put right. agent_expectation_free.
 */
bool agent__read_expectation(const base_buf *text, size_t from, size_t to, const char *request,
    const char *output, agent_expectation *ret);
/* The same for the new test in `text`, its file as it would be; and in that file as this turn wrote it. */
bool agent__find_expectation_in(
    const agent *a, const base_buf *text, const char *output, agent_expectation *ret);
bool agent__find_expectation(agent *a, const char *output, agent_expectation *ret);
void agent_expectation_free(agent_expectation *e);

/* --- named.c --- */
enum { AGENT_MAX_NAMED = 6, AGENT_NAMED_SURE = 8 }; /* sure: a score from which it is no mere word */
typedef struct agent_named {
    struct {
        char *name;
        uint32_t score;
    } items[AGENT_MAX_NAMED + 1]; /* best first */
    uint32_t n;
} agent_named;
/* What the request names or describes, of what the tree defines outside of tests; agent_named_free. */
void agent__find_named(const agent *a, const char *request, agent_named *ret);
void agent_named_free(agent_named *n);

/* --- judge.c --- */
/* The test file of that name and language ("main_test.go" for "main.go"); the caller frees; NULL: none. */
char *agent__test_file_of(const agent *a, const char *path);
/* The command that judges a change of this file becomes the test, unless a person named one. */
void agent__find_judge(agent *a, const char *path);
/* What the command is called in a sentence: without what puts it into a copy of the tree. */
const char *agent__judge_words(const char *command);
/* The one that was found cannot judge in this tree: the next that is known for the file. false: there is none. */
bool agent__find_next_judge(agent *a, const char *path);

/* --- untouched.c --- */
/* Does the command fail without this turn's changes as well? Then it says nothing of them. output may be NULL. */
bool agent__fails_without(agent *a, const char *command, base_buf *output);

/* --- valued.c --- */
/* Values that the request gives stand in front of the command that was found for this file; without one, alone. */
void agent__add_values(agent *a, const char *path);
/* The command failed, and values stand in front of it: true where they are what failed. Drops what cannot judge. */
bool agent__values_judge(agent *a, const tool_result *run);
/* The tests behind the values cannot judge: the values stay alone. */
void agent__drop_plain(agent *a);
/* They hold: notes and tells it, or that they did without the change. */
void agent__values_hold(agent *a, const tool_result *run);
/* A turn begins, or a session ends. */
void agent__forget_values(agent *a);

/* --- test_command.c --- */
/* A test file's command becomes the test; false: how to run it alone is not known. */
bool agent__set_test_file(agent *a, const char *path);
bool agent__path_is_plain(const char *path);          /* it can stand in a command line as it is */
void agent__find_test(agent *a, const char *request); /* sets test_command and fix.wanted */
void agent__set_test(agent *a, const char *command);  /* the command that judges; copied */
bool agent__runs_tests(const char *command);          /* a test runner by its words */

/* --- attempt.c --- */
void agent__fix_free(agent *a); /* what a turn knows of its attempts, the doubts too */
/* A change was refused or changed nothing: its tokens are put aside, the next answer begins with the call. */
void agent__came_to_nothing(agent *a, uint32_t from, uint32_t to);
/*
 * After a failed test: undoes the change unless it was the last attempt, and writes what the model is told.
 */
void agent__take_back(agent *a, const char *path, const char *name, const char *output, base_buf *out);
/*
 * What the harness writes of the next answer where a model would not make the call: the beginning of a line
 * that it ends (what is wrong), then the call up to the new definition's first line.
 */
typedef struct agent_opening {
    base_buf thought, call; /* control tokens in it: AGENT_PROMPT_MARK */
    base_buf behind; /* of the definition: follows the first line that the model writes behind the call */
    base_buf old;    /* the definition as it is: none of its own conditions is followed by `behind` */
    bool is_doubt;   /* the call goes on into the definition: up to a doubt of doubt.c, or early_return.c's */
} agent_opening;
void agent_opening_free(agent_opening *o);
/* How the answer that writes the new test begins; once a turn. */
bool agent__open_new_test(agent *a, agent_opening *opening);
/* How a further attempt begins: at the new test, or at the definition (agent__open_call). */
int agent__open_further(agent *a, bool further, agent_opening *opening, base_err *err);
/*
 * Empty when no definition is in view. further: not the first attempt at it, so the next doubt is tried while
 * there is one.
 */
int agent__open_call(agent *a, bool further, agent_opening *opening, base_err *err);
/*
 * operation.c: the call of an operation that the request asks for, up to the definition's name, which the model
 * writes; false: it asks for none.
 */
bool agent__open_operation(agent *a, const char *request, agent_opening *opening);
/* wording.c: a request for an operation without its verb, read with the tree's names; agent_operation_words_free. */
bool agent__read_wording(const agent *a, const char *request, agent_operation_words *ret);
/* Where no call can be begun, the tool is told of in front of the request. */
void agent__tell_operation(const agent *a, const char *request, base_buf *out);
/*
 * An answer (tokens [from, to)) came without a change that makes the test pass: what the model is asked in out. A
 * useless answer (it went in circles) is put aside. false: the answer is final.
 */
bool agent__ask_again(agent *a, uint32_t from, uint32_t to, bool is_useless, base_buf *out);
/* Why a call may not change this file (the test that judges stays as it is); NULL: it may. */
const char *agent__forbids_change(const agent *a, const char *path);

/* --- doubt.c --- */
typedef struct agent_definition {
    char *path, *name, *language;
    base_buf text; /* as it is now */
    size_t body;   /* byte of text where its body begins */
} agent_definition;
/* --- early_return.c --- */
/* A further attempt at t, whose call stands in the opening already: a condition in front of its body. Once a turn. */
bool agent__open_early_return(agent *a, const agent_definition *t, agent_opening *opening);
/*
 * The model has written text[0, n) behind the call: once its first line is over (*ret_is_over), what follows that is
 * put to out. true: something does; false: nothing yet, it left the function on that line by itself, or the line
 * is a condition that stands in the old definition (o->old).
 */
bool agent__put_behind_line(
    const agent_opening *o, const char *text, size_t n, bool *ret_is_over, base_buf *out);
/* The call that rewrites it, up to the first line of its new text. */
void agent__put_call(const agent *a, const agent_definition *t, base_buf *out);
/*
 * The next attempt at a definition: what stands before the next doubted token, and the other token, into out;
 * nothing when none is left. head: what stands in front of the definition in the answer.
 */
int agent__doubt_next(agent *a, const char *head, const agent_definition *old, base_buf *out, base_err *err);
void agent__doubts_free(agent *a);

/* --- tries.c --- */
bool agent__tries_are_due(const agent *a); /* a test has failed, and candidates were not sampled yet */
uint32_t agent__tries(const agent *a);     /* how many candidates there are in the mode that holds */
/*
 * Where a test can judge and has failed: up to a->tries rewrites. *ret_ids: the tokens of the first whose
 * test passed, to be appended as the answer; empty when there was none or nothing to try. BASE_E_CANCELLED
 * like any other wait.
 */
int agent__try(agent *a, model_ids *ret_ids, base_err *err);

/* --- guard.c: calls that were made before --- */
agent_made_call *agent__find_made(agent *a, uint64_t key); /* NULL: not made since the tree last changed */

/* --- resume.c --- */
/* *ret_empty: nothing of a sequence is logged. */
int agent__catch_up(agent *a, const agent_options *options, bool *ret_empty, base_err *err);

/* --- commands.c --- */
int agent__command(agent *a, const char *line, base_err *err);

#endif
