/*
 * Chat templates as appended pieces: a message is scaffold ids + content + scaffold ids, so a session only
 * ever grows and the tail (the turn's end and the opening of the answer) can wait until after a repair
 * (docs/kv.md, "Repair").
 */
#ifndef KVIST_MODEL_TEMPLATE_H
#define KVIST_MODEL_TEMPLATE_H

#include "base/buf.h"
#include "model/text/tokenizer.h"

typedef enum model_role {
    MODEL_ROLE_SYSTEM,
    MODEL_ROLE_USER,
    MODEL_ROLE_ASSISTANT,
    MODEL_ROLE_TOOL,
    MODEL_ROLE_TOOLS, /* which tools there are: families with a place for them only, Mistral's and Granite 3 */
} model_role;

/* How this family wants tool calls written. */
typedef enum model_tool_style {
    MODEL_TOOLS_TAG_TOOLS, /* <tools>{json}</tools>: Qwen2.5-Coder follows this form in few-shots */
    MODEL_TOOLS_HERMES,    /* <tool_call>{json}</tool_call>: Qwen2.5, Qwen3, Granite 4, SmolLM3 */
    MODEL_TOOLS_XML,       /* <tool_call><function=NAME><parameter=..>: Qwen3-Coder, Qwen3.5 and later */
    MODEL_TOOLS_SEED,      /* the same in <seed:tool_call>, values directly between their tags: Seed-OSS */
    /* <|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{arguments}<|call|>: gpt-oss */
    MODEL_TOOLS_HARMONY,
    MODEL_TOOLS_MISTRAL, /* [TOOL_CALLS]NAME[ARGS]{arguments}: Devstral, Ministral 3, Magistral 1.1 and later */
    MODEL_TOOLS_MISTRAL_IDS, /* [TOOL_CALLS]NAME[CALL_ID]ID[ARGS]{arguments}: Mistral Small 3.2 */
    MODEL_TOOLS_GEMMA,       /* <|tool_call>call:NAME{key:<|"|>text<|"|>,key:3}<tool_call|>: Gemma 4 */
    MODEL_TOOLS_GRANITE,     /* <|tool_call|>[{"name":..,"arguments":..}]: Granite 3 */
    MODEL_TOOLS_NEMO,        /* [TOOL_CALLS][{"name":..,"arguments":..,"id":ID}]: Mistral Nemo */
    MODEL_TOOLS_JSON,        /* bare {"name":..,"arguments":..}: Llama 3.x, SmolLM2 */
} model_tool_style;

/* The form that the words of a chat template show, where nothing else is known of the model: of "qwen", or of another. */
model_tool_style model_tools_by_words(base_str jinja, bool is_qwen);

static inline bool model_tools_are_mistral(model_tool_style style)
{
    return style == MODEL_TOOLS_MISTRAL || style == MODEL_TOOLS_MISTRAL_IDS;
}

/* A call is a function with a parameter for each argument, between tags. */
static inline bool model_tools_are_xml(model_tool_style style)
{
    return style == MODEL_TOOLS_XML || style == MODEL_TOOLS_SEED;
}

/* A call is an object in a JSON list behind a mark. */
static inline bool model_tools_are_lists(model_tool_style style)
{
    return style == MODEL_TOOLS_GRANITE || style == MODEL_TOOLS_NEMO;
}

/* Calls are told apart by control tokens, and so are thoughts: no text of the answer can be taken for one. */
static inline bool model_tools_are_marked(model_tool_style style)
{
    return style == MODEL_TOOLS_HARMONY || style == MODEL_TOOLS_GEMMA || model_tools_are_mistral(style) ||
           model_tools_are_lists(style);
}

typedef struct model_template model_template;

/*
 * Chosen by parts of tokenizer.chat_template: an unknown one is ChatML when the vocabulary has its tokens,
 * else refused; a model without one (a base model) gets ChatML or plain words ("User: "). `thinking`: an
 * answer may begin with a thought between <think> and </think>, for models that do so; else the template
 * tells them not to. gpt-oss always thinks; with `thinking` it is asked for medium effort, else for low. Gemma 4 and SmolLM3
 * are asked to think in the system message, and SmolLM3 not to; Seed-OSS is told not to behind it.
 */
int model_template_load(model_template **ret, const struct gguf_file *gguf, const model_tokenizer *t,
    bool thinking, base_err *err);
void model_template_free(model_template *t);
const char *model_template_name(const model_template *t); /* "chatml", "llama3", ... */
model_tool_style model_template_tools(const model_template *t);

/* What stands before the first message (BOS, or nothing). */
void model_template_start(const model_template *t, model_ids *out);
/*
 * What stands before and behind a message's content. begin of ASSISTANT is the generation prompt. An answer
 * that the model ended itself already holds the first id of end(ASSISTANT): the caller leaves that one out. Where a result
 * names its call, here it names one that nobody knows.
 */
void model_template_begin(const model_template *t, model_role role, model_ids *out);
void model_template_end(const model_template *t, model_role role, model_ids *out);
/*
 * The same behind the n ids of a sequence, and behind what is in `out`. In harmony, in Gemma's form, in Mistral's with
 * ids and in Nemo's, a tool's result names the call that it answers, the newest there; in harmony a call ends a message as
 * well as its usual end does. In Gemma's form a result stands in the message that called, which then goes on: neither has an
 * end or a beginning there. Nemo's system text is the beginning of the first request.
 */
void model_template_begin_behind(
    const model_template *t, model_role role, const int32_t *ids, size_t n, model_ids *out);
void model_template_end_behind(
    const model_template *t, model_role role, const int32_t *ids, size_t n, model_ids *out);
/*
 * What stands in a sequence for an end that the model wrote: <|end|> for harmony's <|return|>, <turn|> for the
 * <|tool_response> that Gemma waits for a result with, else `id` itself.
 */
int32_t model_template_kept_end(const model_template *t, int32_t id);
/* Do these ids end in what an answer begins behind? */
bool model_template_opens_answer(const model_template *t, const int32_t *ids, size_t n);

#endif
