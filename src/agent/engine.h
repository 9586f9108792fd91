/*
 * What the agent needs of an engine: a tokenizer, a chat template, one session's memory, and the next token. Two
 * implementations: engine_local.c over model/ and kv/, engine_fake.c over a script (tests of agent, tools, log and screen).
 *
 * Thread: the engine thread. Cancel is the agent's atomic, given at open; a cancelled call returns BASE_E_CANCELLED and the
 * session is as after the last finished chunk.
 */
#ifndef KVIST_AGENT_ENGINE_H
#define KVIST_AGENT_ENGINE_H

#include "kv/session.h"
#include "model/text/grammar.h"
#include "model/text/sampler.h"
#include "model/text/template.h"

typedef struct engine engine;

typedef struct engine_info {
    const char *model, *model_hash, *quantisation, *policy, *backend;
    const char *
        notice; /* what is not as it was asked for: another backend computes, nothing is pruned; NULL: all is */
    model_tool_style tools;
    bool strong; /* a model large enough for edit instead of rewrite */
    uint32_t n_ctx, n_lanes, row_bytes, n_vocab;
    uint32_t model_n_ctx;    /* what the model was made for; n_ctx may be less (--ctx) */
    model_sampling sampling; /* as opened */
} engine_info;

typedef struct engine_doubt {
    int32_t instead;
    float behind;
} engine_doubt;

typedef struct engine_ops {
    void (*close)(engine *e);
    void (*info)(const engine *e, engine_info *ret);
    void (*stats)(const engine *e, kv_stats *ret);
    void (*observe)(engine *e, const kv_observer *observer); /* replaces the observer */

    /* Text. encode is content: special texts stay text. */
    void (*encode)(const engine *e, const char *text, size_t n, model_ids *out);
    const char *(*piece)(const engine *e, int32_t id, size_t *ret_n); /* bytes; NULL outside the vocabulary */
    bool (*is_control)(const engine *e, int32_t id);
    void (*start)(const engine *e, model_ids *out); /* template: before the first message */
    void (*begin)(const engine *e, model_role role, model_ids *out);
    void (*end)(const engine *e, model_role role, model_ids *out);

    /* Memory, as kv/session.h. append keeps the last logits for generate. */
    int (*append)(engine *e, const kv_segment *segment, const int32_t *ids, uint32_t n, base_err *err);
    int (*repair)(
        engine *e, uint32_t from, uint32_t to, const uint32_t *queries, uint32_t n_queries, base_err *err);
    int (*manual)(engine *e, kv_manual what, uint32_t from, uint32_t to, base_err *err);
    int (*mark_stale)(engine *e, uint32_t from, uint32_t to, base_err *err);
    int (*mark_failed)(engine *e, uint32_t from, uint32_t to, base_err *err);
    int (*undo_plan)(engine *e, base_err *err);
    int (*set_budget)(engine *e, uint32_t rows, base_err *err);
    void (*set_turn)(engine *e, uint32_t turn);
    int (*truncate)(engine *e, uint32_t n, base_err *err);
    /* Re-executing a log: automatic off, append the logged ids, apply the logged plans where they were made. */
    int (*apply)(engine *e, kv_plan *plan, base_err *err); /* sets the plan's epoch */
    void (*set_automatic)(engine *e, bool on);
    /* Looking: ids of the sequence; lanes that hold each token ([n_tokens]); one lane's bits; score parts. */
    const int32_t *(*ids)(const engine *e, uint32_t *ret_n);
    void (*active_lanes)(const engine *e, uint32_t *ret);
    void (*lane_bits)(const engine *e, uint32_t lane, uint64_t *ret);
    /* Lanes in which the token's segment was computed when it was appended, 0: all; lanes that are not computed now. NULL: all are. */
    uint32_t (*lanes)(const engine *e, uint32_t index);
    uint32_t (*deferred)(const engine *e, uint32_t index);
    /* Behind the last token, [n_vocab]: what `next` would pick from. NULL: an engine that computes none (fake). */
    int (*logits)(engine *e, float *ret, base_err *err);
    uint32_t (*scores)(const engine *e, kv_score *ret, uint32_t cap);
    uint32_t (*sections)(
        const engine *e, kv_section *ret, uint32_t cap); /* NULL: all rows are always read (fake) */
    void (*why)(const engine *e, uint32_t index, kv_why *ret);
    void (*structure)(
        const engine *e, bool core, kv_structure *ret); /* NULL: an engine without marked spans (fake) */
    int (*save)(engine *e, base_err *err);
    int (*save_prefix)(engine *e, uint32_t n, base_err *err); /* the first n tokens are the fixed prompt */
    int (*restart)(
        engine *e, const char *row_file, base_err *err); /* an empty session (row_file may be NULL) */
    /* What has to be found out once per model, in idle time, until cancel is set; for the sessions after this one. NULL: nothing. */
    void (*learn)(engine *e);
    /* What was written last, computed again while nobody waits (kv_session_read_again). NULL: an engine without. */
    int (*read_again)(engine *e, base_err *err);
    uint32_t (*unread)(const engine *e); /* tokens that this would be; NULL with read_again */

    /* The next token. set_grammar takes ownership (NULL: none); sampling may change between answers. */
    int (*set_tools)(
        engine *e, const model_grammar_tool *tools, uint32_t n, const char *const *paths, base_err *err);
    void (*set_sampling)(engine *e, const model_sampling *s);
    void (*answer_begins)(engine *e); /* grammar and sampler start afresh */
    /*
     * Picks from the logits behind the last token, appends it to the sequence (origin ANSWER or CALL) and computes it. *ret_end: an
     * end token was picked (it is appended as well). mask_wanted (may be NULL) receives the id the grammar overruled, or -1:
     * none, or where a call leaves so few ids that the others were not looked at.
     */
    int (*next)(engine *e, kv_origin origin, uint32_t turn, int32_t *ret_id, bool *ret_end,
        int32_t *mask_wanted, base_err *err);
    /* Evicted rows that tokens read since this was asked last (kv_session_take_visits). NULL: an engine without. */
    void (*visits)(engine *e, kv_visits *ret, uint32_t *counts);
    /*
     * A branch: until unfork everything works on a copy of the session that shares every row and computes only its own; it
     * evicts nothing and no observer hears of it. unfork drops it, and the session is as it was. One branch at a time.
     */
    int (*fork)(engine *e, base_err *err);
    void (*unfork)(engine *e);
    /* Prompt lookup, with nothing learned yet, or none. NULL: an engine without. */
    void (*set_lookup)(engine *e, bool on);
    /*
     * If the text went on with these n ids, where would the model rather have said something else? For each of them what it would
     * have said best instead, and how far that lies behind (in nats; negative: ahead). In a branch of its own. NULL: an engine
     * without.
     */
    int (*doubts)(engine *e, const int32_t *ids, uint32_t n, engine_doubt *ret, base_err *err);
    /* Its tokens since it was set: computed ahead, and of these what the model said. NULL: none. */
    void (*lookup)(const engine *e, uint64_t *ret_drafted, uint64_t *ret_accepted);
} engine_ops;

struct engine {
    const engine_ops *ops;
};

typedef struct engine_options {
    model_options model;
    kv_options kv;
    model_sampling sampling;
    bool lookup; /* prompt lookup: the same text, sooner */
    const atomic_bool *cancel;
    bool resume; /* try kv.row_file's snapshot first */
    /* For a fixed prompt that is computed once per model, ever: a folder for its snapshot; NULL: off. */
    const char *prompt_cache;
    /* Called once the model is loaded, with its context, because a budget may be a share of that; NULL: kv.budget as it is. */
    int (*budget)(const void *user, uint32_t n_ctx, uint32_t row_bytes, uint32_t *ret, base_err *err);
    const void *budget_user;
} engine_options;

/* Opens model and session. resumed (may be NULL): whether the snapshot served; when not, *why_not (BASE_OK code: none) says why. */
int engine_local_open(engine **ret, const char *model_path, const engine_options *options, bool *resumed,
    base_err *why_not, base_err *err);

/* From a script file's text (format: agent/engine_fake.c). resumed and why_not as above. */
int engine_fake_open(engine **ret, const char *script, size_t n, const engine_options *options, bool *resumed,
    base_err *why_not, base_err *err);

#endif
