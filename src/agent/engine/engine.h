/*
 * What the agent needs of an engine: text, a sequence that spans are appended to, the next token, and what a
 * turn cost. Any engine can give that, one across HTTP too. What only some can give is declared (`can`,
 * `session`), and the agent has a way without each.
 *
 * Implementations: engine_local.c over model/ and kv/; engine_remote.c (with its parts) and engine_remote_chat.c across HTTP;
 * engine_fake.c over kv/ with a script in place of a model; and, in the agent's tests, an engine that holds
 * messages as a chat endpoint does.
 *
 * Thread: the engine thread. An operation that returns an int may fail with a sentence for a person, take
 * seconds, and be cancelled (the agent's atomic, given at open): then it returns BASE_E_CANCELLED and the
 * sequence is as after the last finished part.
 */
#ifndef KVIST_AGENT_ENGINE_ENGINE_H
#define KVIST_AGENT_ENGINE_ENGINE_H

#include "base/alike.h"
#include "base/schema.h"
#include "kv/session.h"
#include "model/text/grammar.h"
#include "model/text/sampler.h"
#include "model/text/template.h"

typedef struct engine engine;

/* What an engine can beside what any can. Without it: */
enum {
    /*
     * ... ids are stand-ins of the agent's (standin.h): what is counted, placed and logged in tokens is an
     * estimate, the text is not.
     */
    ENGINE_IDS = 1,
    /* ... no candidates are sampled (/tries): attempts follow each other. fork, unfork. */
    ENGINE_BRANCH = 2,
    /* ... a further attempt at a definition is sampled warmer, in place of at the next doubt. doubts. */
    ENGINE_DOUBTS = 4,
    /* ... the first answer is taken as it comes, where other behaviour is asked for. weigh. */
    ENGINE_WEIGHS = 128,
    /* ... calls are free text, which the lenient parser reads as it reads any answer (call.h). set_tools. */
    ENGINE_GRAMMAR = 8,
    /* ... nothing is drafted, and the ledger says so. lookup, set_lookup. */
    ENGINE_LOOKUP = 16,
    /*
     * An engine without a session that leaves out spans of what it sends. Without this, and without a
     * session, text that went stale or failed stays in view, and the words that tell the model so have to do.
     * set_active, is_active. Where leaving out has a price (to_compute), the agent gathers what may go and
     * cuts at pauses (aside.c), by plans that the log keeps. Where it has none, everything is rendered anew for
     * each request: text leaves at once, and a resumed session is asked with all of it, but for text of files that changed.
     */
    ENGINE_SPANS = 32,
    /* ... an operation's call is begun only where answer_opened holds its rest to the grammar; else the model is told of the tool. */
    ENGINE_BEGINS = 64,
};

typedef struct engine_info {
    const char *model, *model_hash, *quantisation, *policy, *backend;
    const char *isa; /* which kernels compute; NULL: not told */
    /* what is not as it was asked for: another backend computes, nothing is pruned; NULL: all is */
    const char *notice;
    model_tool_style tools;
    bool is_elsewhere;  /* what it reads leaves this machine */
    const char *server; /* across HTTP: "http://127.0.0.1:8080"; NULL: it computes here */
    bool strong;        /* offered what strong models are (ability.h) */
    uint32_t n_ctx;     /* where the session ends; the model's for one without an end (kv_stats.endless) */
    uint32_t n_layer, n_lanes, row_bytes,
        n_vocab; /* layers with rows; without a session one layer and lane */
    /*
     * With the lanes of layers with a window, which n_lanes and row_bytes leave out; which layers these are (a letter each:
     * 'w', or '.' for one that reads everything; NULL: all do), and the widest window, in tokens.
     */
    uint32_t n_all_lanes, window;
    const char *windows;
    /* what `auto` takes where memory allows, found out on this machine (pace.h); {0}: not yet */
    kv_limit measured;
    uint32_t model_n_ctx;    /* what the model was made for; n_ctx may be less (--ctx) */
    model_sampling sampling; /* as opened */
    int repair;              /* as kv_options; -1: the policy's own */
    const char *const *set;  /* the cache's parameters as opened, NULL-terminated; NULL: none were given */
} engine_info;

typedef struct engine_doubt {
    int32_t instead;
    float behind;
} engine_doubt;

/*
 * What a request to an engine across HTTP cost. Of the tokens sent: how many it should have found in its
 * cache (what it held last and this have in common), how many it says it found, and how many it says it
 * computed; -1: it does not say.
 */
enum { ENGINE_NOWHERE = UINT8_MAX };
typedef struct engine_request {
    uint32_t sent, predicted;
    int64_t cached, computed;
    uint64_t wait_ns; /* until the first token came */
    /*
     * [n_places] of each token of the sequence behind the answer, where its block is (remote_block_place), or
     * ENGINE_NOWHERE: it is left out of what is sent. The engine's, until it is called again; NULL: not told.
     */
    const uint8_t *places;
    uint32_t n_places;
} engine_request;

/* What a chat template writes: before the first message (role is not looked at), around one. */
typedef enum engine_scaffold { ENGINE_START, ENGINE_BEGIN, ENGINE_END } engine_scaffold;

/*
 * An answer that has to be JSON of a schema. Where `calls` is set it may be a tool call instead. was_cut comes back: it
 * ends where it does because of n_tokens.
 */
typedef struct engine_hold {
    const base_schema *schema;
    const char *text; /* the schema as it stands in its file */
    bool calls;
    uint32_t n_tokens; /* that the answer may have, its end counted */
    bool was_cut;
} engine_hold;

typedef struct engine_ops {
    void (*close)(engine *e);
    void (*info)(const engine *e, engine_info *ret);
    /*
     * What is there and what it cost; without a session n_tokens, n_ctx (where the sequence ends, what is left out
     * counted), n_lanes 1, active, host (left out), budget, reused (sent, not computed), computed.
     */
    void (*stats)(const engine *e, kv_stats *ret);

    /* Text. encode is content: special texts stay text. */
    int (*encode)(engine *e, const char *text, size_t n, model_ids *out, base_err *err);
    /* About how many tokens; NULL: encode tells it as fast. */
    uint32_t (*count)(const engine *e, const char *text, size_t n);
    int (*scaffold)(engine *e, engine_scaffold what, model_role role, model_ids *out, base_err *err);
    const char *(*piece)(const engine *e, int32_t id, size_t *ret_n); /* bytes; NULL outside the vocabulary */
    bool (*is_control)(const engine *e, int32_t id);
    /* The control token of this name, -1: there is none. NULL: the engine writes none into an answer. */
    int32_t (*mark)(const engine *e, const char *name);

    /* The sequence. A segment says what the tokens are; what an engine cannot use of that it leaves. */
    const int32_t *(*ids)(const engine *e, uint32_t *ret_n);
    int (*append)(engine *e, const kv_segment *segment, const int32_t *ids, uint32_t n, base_err *err);
    int (*truncate)(engine *e, uint32_t n, base_err *err);
    int (*restart)(
        engine *e, const char *row_file, base_err *err); /* an empty session (row_file may be NULL) */
    /*
     * For a resume that computes nothing, and for other sessions' first n tokens, the fixed prompt; NULL:
     * nothing is kept.
     */
    int (*save)(engine *e, base_err *err);
    int (*save_prefix)(engine *e, uint32_t n, base_err *err);

    /* The next token. Sampling may change between answers. */
    void (*set_sampling)(engine *e, const model_sampling *s);
    void (*answer_begins)(engine *e); /* grammar and sampler start afresh */
    void (*answer_over)(engine *e);   /* nobody asks for more of it now; NULL: that changes nothing */
    /* Did the answer that ended last end at somebody else's limit, in the middle of what the model wrote? NULL: none does. */
    bool (*answer_cut)(const engine *e);
    /* These tokens of the answer stand already, written by the harness: the grammar goes on behind them. NULL: cannot. */
    void (*answer_opened)(engine *e, const int32_t *ids, uint32_t n);
    /*
     * Behind answer_begins: this answer is held to a schema, as far as the engine can; who asks checks what came. The
     * hold lives until answer_over. NULL: cannot. BASE_E_LIMIT: no value fits into n_tokens.
     */
    int (*answer_held)(engine *e, engine_hold *hold, base_err *err);
    void (*answer_close)(engine *e); /* one that is held goes the shortest way to its end; NULL: cannot */
    /*
     * Picks what follows the last token, appends it to the sequence (origin ANSWER or CALL) and computes it.
     * *ret_end: an end token was picked (it is appended as well). mask_wanted (may be NULL) receives the id
     * the grammar overruled, or -1: none, or where a call leaves so few ids that the others were not looked
     * at.
     */
    int (*next)(engine *e, kv_origin origin, uint32_t turn, int32_t *ret_id, bool *ret_end,
        int32_t *mask_wanted, base_err *err);

    /* The oldest request that was not taken yet; false: there is none. NULL: none are made. */
    bool (*take_request)(engine *e, engine_request *ret);

    /* In idle time; NULL: nothing. What the next token reads is looked for, so that it need not wait for that. */
    void (*make_ready)(engine *e);
    /* In idle time; NULL: nothing. What has to be found out once per model; it tells (may be NULL) before it begins. */
    void (*learn)(engine *e, void (*tell)(void *user, const char *what), void *user);
    /*
     * In front of n tokens; NULL: nothing. What the first eviction needs to know of the model, found out where
     * these tokens may bring that on and nobody was idle before; it tells as learn does.
     */
    void (*prepare)(engine *e, uint32_t n, void (*tell)(void *user, const char *what), void *user);

    /* Who knows which words stand for one another, as long as the engine lives; NULL: this engine does not. */
    const base_alike *(*alike)(engine *e);

    /* ENGINE_GRAMMAR: which calls there are. */
    int (*set_tools)(
        engine *e, const model_grammar_tool *tools, uint32_t n, const char *const *paths, base_err *err);
    /*
     * ENGINE_BRANCH: until unfork everything works on a copy of the sequence that shares every row and
     * computes only its own; it evicts nothing and no observer hears of it. unfork drops it, and the sequence
     * is as it was. One branch at a time.
     */
    int (*fork)(engine *e, base_err *err);
    /*
     * ENGINE_WEIGHS: as fork, but of a sequence that begins anew with these n ids. They are the same in every session: their rows are kept
     * under the name, as the fixed prompt's are, and computed once per model.
     */
    int (*fork_fixed)(engine *e, const char *name, const int32_t *ids, uint32_t n, base_err *err);
    void (*unfork)(engine *e);
    /*
     * ENGINE_DOUBTS: if the text went on with these n ids, where would the model rather have said something
     * else? For each of those behind the first n_read ([n - n_read] ret) what it would have said best instead, and how
     * far that lies behind (in nats; negative: ahead). The sequence stays as it is. BASE_E_UNSUPPORTED: it could not be
     * found out; the engine has said why by a notice.
     */
    int (*doubts)(
        engine *e, const int32_t *ids, uint32_t n_read, uint32_t n, engine_doubt *ret, base_err *err);
    /*
     * ENGINE_WEIGHS: the log-probability, in nats, that the sequence goes on with these n ids. It stays as it is.
     */
    int (*weigh)(engine *e, const int32_t *ids, uint32_t n, double *ret, base_err *err);
    /*
     * ENGINE_LOOKUP: on, with nothing learned yet, or off; tokens computed ahead since, and of these what the
     * model said.
     */
    void (*set_lookup)(engine *e, bool on);
    void (*lookup)(const engine *e, uint64_t *ret_drafted, uint64_t *ret_accepted);
    /* ENGINE_SPANS: what of the sequence the next answer is asked with. All is at first. */
    int (*set_active)(engine *e, uint32_t from, uint32_t to, bool active, base_err *err);
    bool (*is_active)(const engine *e, uint32_t index);
    /*
     * ENGINE_SPANS: of the sequence without these tokens ([n_tokens] left_out, beside those that are left out
     * already), how many a request would have to compute, by what is known of the engine's cache. *ret_at_most: it
     * may be fewer. NULL: there is no such thing.
     */
    uint32_t (*to_compute)(const engine *e, const bool *left_out, bool *ret_at_most);
    /* With to_compute: tokens of a request from which on the agent cuts, 0: none. Only kept and told (kv_stats.budget). */
    void (*set_budget)(engine *e, uint32_t n_tokens);
} engine_ops;

struct engine {
    const engine_ops *ops;
    unsigned can; /* ENGINE_* */
    /*
     * The local session, or the branch of it that `fork` made: rows, plans, scores, logits, reasons are asked
     * of it (kv/session.h), and changed through it; only what adds or removes tokens goes through the engine.
     * NULL: this engine shows no rows, so nothing of it is evicted or brought back row by row, the ledger has
     * no reasons, and the panel no lanes.
     */
    kv_session *session;
    kv_observer observer; /* the agent's, set by it */
    /* Why an answer is waited for, while it is: a sentence. The agent's, with observer.user; may be NULL. */
    void (*waits)(void *user, const char *sentence);
};

/*
 * What an engine with a session gives it to observe with: plans, and progress of more than one token, go to
 * e->observer.
 */
kv_observer engine_observer(engine *e);
/* stats and ids of an engine with a session. */
void engine_session_stats(const engine *e, kv_stats *ret);
const int32_t *engine_session_ids(const engine *e, uint32_t *ret_n);

typedef struct engine_options {
    model_options model;
    kv_options kv;
    model_sampling sampling;
    bool lookup;         /* prompt lookup: the same text, sooner */
    uint32_t max_answer; /* tokens that anybody will ask an answer for; 0: not told */
    const atomic_bool *cancel;
    bool resume; /* try kv.row_file's snapshot first */
    /* For a fixed prompt that is computed once per model, ever: a folder for its snapshot; NULL: off. */
    const char *prompt_cache;
    /*
     * Called once the model is loaded, with its context, because a budget may be a share of that; NULL:
     * kv.budget as it is. row_bytes 0: an engine elsewhere, whose rows are tokens. measured: what kv_pace_limit
     * says, for `auto`; {0}: nothing.
     */
    int (*budget)(const void *user, uint32_t n_ctx, uint32_t row_bytes, kv_limit measured, kv_limit *ret,
        base_err *err);
    const void *budget_user;
} engine_options;

/*
 * Opens model and session. resumed (may be NULL): whether the snapshot served; when not, *why_not (BASE_OK
 * code: none) says why.
 */
int engine_local_open(engine **ret, const char *model_path, const engine_options *options, bool *resumed,
    base_err *why_not, base_err *err);

/* From a script file's text (format: agent/engine/engine_script.h). resumed and why_not as above. */
typedef int engine_open_fn(engine **ret, const char *script, size_t n, const engine_options *options,
    bool *resumed, base_err *why_not, base_err *err);
engine_open_fn engine_fake_open;

#endif
