/*
 * Chat templates as a table: for each family what stands before and behind a message of each role.
 *
 * The texts of a row are turned into ids once, at load, with special texts parsed; content never passes here.
 * A family is known by a part of tokenizer.chat_template (no Jinja is run) and by the tokens it needs.
 * Immutable after load.
 */
#include "model/text/template.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "model/file/gguf.h"

enum { N_ROLES = MODEL_ROLE_TOOLS + 1, MAX_TOKENS = 12 };

typedef struct family {
    const char *name;
    const char *sign;               /* stands in tokenizer.chat_template */
    const char *also;               /* and this too; NULL: nothing else */
    const char *tokens[MAX_TOKENS]; /* control tokens that the vocabulary must have */
    const char *start;              /* before the first message, behind BOS; NULL: nothing */
    const char *begin[N_ROLES], *end[N_ROLES];
    /*
     * A chat template with think_sign lets the model think first (Qwen3); no_thought is a thought already
     * had. thought: what the template begins one with; NULL: the model does that itself.
     */
    const char *think_sign, *no_thought, *thought;
    const char *start_thinking; /* `start` of a model that may think longer; NULL: the same */
    /* at the system message's beginning, with thoughts and without; NULL: nothing does */
    const char *ask_to_think, *ask_not_to;
    const char *told_not_to; /* behind the system message where the model is not to think; NULL: nothing */
    /* How it writes calls, where the family says that. mark: a token without which it was not taught calls; NULL: none. */
    struct {
        bool is_known;
        model_tool_style style;
        const char *mark;
    } calls;
} family;

/* clang-format off */
/* The turns of ChatML. A tool's result is a user's turn, as Qwen's template writes it; how its tag ends differs. */
#define CHATML(response_end)                                                                                   \
    .tokens = {"<|im_start|>", "<|im_end|>"},                                                                  \
    .begin = {                                                                                                 \
        [MODEL_ROLE_SYSTEM]    = "<|im_start|>system\n",                                                       \
        [MODEL_ROLE_USER]      = "<|im_start|>user\n",                                                         \
        [MODEL_ROLE_ASSISTANT] = "<|im_start|>assistant\n",                                                    \
        [MODEL_ROLE_TOOL]      = "<|im_start|>user\n<tool_response>\n",                                        \
    },                                                                                                         \
    .end = {                                                                                                   \
        [MODEL_ROLE_SYSTEM] = "<|im_end|>\n", [MODEL_ROLE_USER] = "<|im_end|>\n",                              \
        [MODEL_ROLE_ASSISTANT] = "<|im_end|>\n", [MODEL_ROLE_TOOL] = response_end "<|im_end|>\n",             \
    }

/* The turns of Phi-4 and Phi-4-mini, which were taught none for a tool's result: it is the user's. */
#define PHI4(from, to, stop)                                                                                   \
    .begin = {                                                                                                 \
        [MODEL_ROLE_SYSTEM]    = from "system" to,                                                             \
        [MODEL_ROLE_USER]      = from "user" to,                                                               \
        [MODEL_ROLE_ASSISTANT] = from "assistant" to,                                                          \
        [MODEL_ROLE_TOOL]      = from "user" to "Result:\n",                                                   \
    },                                                                                                         \
    .end = {                                                                                                   \
        [MODEL_ROLE_SYSTEM] = stop, [MODEL_ROLE_USER] = stop,                                                  \
        [MODEL_ROLE_ASSISTANT] = stop, [MODEL_ROLE_TOOL] = stop,                                               \
    }

/* The turns of Granite; how a tool's result begins and ends differs. Only version 3 has a turn for what tools there are. */
#define GRANITE(tool, tool_end)                                                                                \
    .tokens = {"<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>"},                                     \
    .begin = {                                                                                                 \
        [MODEL_ROLE_SYSTEM]    = "<|start_of_role|>system<|end_of_role|>",                                     \
        [MODEL_ROLE_USER]      = "<|start_of_role|>user<|end_of_role|>",                                       \
        [MODEL_ROLE_ASSISTANT] = "<|start_of_role|>assistant<|end_of_role|>",                                  \
        [MODEL_ROLE_TOOL]      = "<|start_of_role|>" tool,                                                     \
        [MODEL_ROLE_TOOLS]     = "<|start_of_role|>available_tools<|end_of_role|>",                            \
    },                                                                                                         \
    .end = {                                                                                                   \
        [MODEL_ROLE_SYSTEM] = "<|end_of_text|>\n", [MODEL_ROLE_USER] = "<|end_of_text|>\n",                    \
        [MODEL_ROLE_ASSISTANT] = "<|end_of_text|>\n", [MODEL_ROLE_TOOL] = tool_end "<|end_of_text|>\n",       \
        [MODEL_ROLE_TOOLS] = "<|end_of_text|>\n",                                                              \
    }

#define HARMONY(effort)                                                                                        \
    "<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\n"                   \
    "Knowledge cutoff: 2024-06\n\nReasoning: " effort "\n\n"                                                  \
    "# Valid channels: analysis, commentary, final. Channel must be included for every message.\n"            \
    "Calls to these tools must go to the commentary channel: 'functions'.<|end|>"

static const family families[] = {
    {
        .name = "llama3", .sign = "<|start_header_id|>", .tokens = {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"},
        .begin = {
            [MODEL_ROLE_SYSTEM]    = "<|start_header_id|>system<|end_header_id|>\n\n",
            [MODEL_ROLE_USER]      = "<|start_header_id|>user<|end_header_id|>\n\n",
            [MODEL_ROLE_ASSISTANT] = "<|start_header_id|>assistant<|end_header_id|>\n\n",
            [MODEL_ROLE_TOOL]      = "<|start_header_id|>ipython<|end_header_id|>\n\n",
        },
        .end = {
            [MODEL_ROLE_SYSTEM] = "<|eot_id|>", [MODEL_ROLE_USER] = "<|eot_id|>",
            [MODEL_ROLE_ASSISTANT] = "<|eot_id|>", [MODEL_ROLE_TOOL] = "<|eot_id|>",
        },
    },
    {   /* Like ChatML, but no line ends anywhere. */
        .name = "phi4", .sign = "<|im_sep|>", .tokens = {"<|im_start|>", "<|im_sep|>", "<|im_end|>"},
        PHI4("<|im_start|>", "<|im_sep|>", "<|im_end|>"),
    },
    {   /* Phi-3's look alike, but have line ends, which its tokens swallow. */
        .name = "phi4-mini", .sign = "<|/tool|>", .also = "<|assistant|>",
        .tokens = {"<|system|>", "<|user|>", "<|assistant|>", "<|end|>"},
        PHI4("<|", "|>", "<|end|>"),
    },
    {   /* Qwen3.5 and later: calls as Qwen3-Coder's, thoughts as Qwen3's, but that the template begins them. */
        .name = "qwen3.5", .sign = "<function=", .also = "enable_thinking",
        CHATML("\n</tool_response>"),
        .think_sign = "enable_thinking", .no_thought = "<think>\n\n</think>\n\n", .thought = "<think>\n",
    },
    {   /* Qwen3-Coder's differs in one line's end. */
        .name = "qwen3-coder", .sign = "<function=",
        CHATML("\n</tool_response>\n"),
    },
    {   /*
         * SmolLM3, whose system message says whether to think. Without the date that its template may put there, and with
         * what it says of tools in the harness's words.
         */
        .name = "smollm3", .sign = "Reasoning Mode: ", .also = "## Custom Instructions",
        .tokens = {"<|im_start|>", "<|im_end|>"},
        .begin = {
            [MODEL_ROLE_SYSTEM]    = "<|im_start|>system\n## Metadata\n\nKnowledge Cutoff Date: June 2025\nReasoning Mode:",
            [MODEL_ROLE_USER]      = "<|im_start|>user\n",
            [MODEL_ROLE_ASSISTANT] = "<|im_start|>assistant\n",
            [MODEL_ROLE_TOOL]      = "<|im_start|>user\n",
        },
        .end = {
            [MODEL_ROLE_SYSTEM] = "\n\n<|im_end|>\n", [MODEL_ROLE_USER] = "<|im_end|>\n",
            [MODEL_ROLE_ASSISTANT] = "<|im_end|>\n", [MODEL_ROLE_TOOL] = "<|im_end|>\n",
        },
        .think_sign = "Reasoning Mode: ", .no_thought = "<think>\n\n</think>\n",
        .ask_to_think = " /think\n\n## Custom Instructions\n\n", .ask_not_to = " /no_think\n\n## Custom Instructions\n\n",
        .calls = {true, MODEL_TOOLS_HERMES, NULL}, /* some of its files' templates leave tools out */
    },
    {   /* Qwen2, Qwen2.5, Qwen2.5-Coder, Qwen3, SmolLM2. */
        .name = "chatml", .sign = "<|im_start|>",
        CHATML("\n</tool_response>"),
        .think_sign = "enable_thinking", .no_thought = "<think>\n\n</think>\n\n",
    },
    {   /*
         * Seed-OSS. Without thoughts its template says so in a system message of its own, and begins the answer behind the
         * thought that nothing is to be thought; with them none is bounded by it.
         */
        .name = "seed", .sign = "<seed:bos>", .tokens = {"<seed:bos>", "<seed:eos>"},
        .begin = {
            [MODEL_ROLE_SYSTEM]    = "<seed:bos>system\n",
            [MODEL_ROLE_USER]      = "<seed:bos>user\n",
            [MODEL_ROLE_ASSISTANT] = "<seed:bos>assistant\n",
            [MODEL_ROLE_TOOL]      = "<seed:bos>tool\n",
        },
        .end = {
            [MODEL_ROLE_SYSTEM] = "<seed:eos>", [MODEL_ROLE_USER] = "<seed:eos>",
            [MODEL_ROLE_ASSISTANT] = "<seed:eos>", [MODEL_ROLE_TOOL] = "<seed:eos>",
        },
        .think_sign = "thinking_budget",
        .no_thought = "<seed:think>\n<seed:cot_budget_reflect>The current thinking budget is 0, so I will directly start "
                      "answering the question.</seed:cot_budget_reflect>\n</seed:think>",
        .told_not_to = "<seed:bos>system\nYou are an intelligent assistant that can answer questions in one step without the "
                       "need for reasoning and thinking, that is, your thinking budget is 0. Next, please skip the thinking "
                       "process and directly start answering the user's questions.\n<seed:eos>",
        .calls = {true, MODEL_TOOLS_SEED, NULL},
    },
    {   /* Granite 4. */
        .name = "granite", .sign = "<|start_of_role|>", .also = "<tool_call>",
        GRANITE("user<|end_of_role|>\n<tool_response>\n", "\n</tool_response>"),
    },
    {   /* Granite 3: a result is a message of its own, and so are the tools. */
        .name = "granite3", .sign = "<|start_of_role|>",
        GRANITE("tool<|end_of_role|>", ""),
        .calls = {true, MODEL_TOOLS_GRANITE, "<|tool_call|>"},
    },
    {   /*
         * gpt-oss. Without the date of its template: what every session begins with is computed once per model. The
         * system message is the harness's developer message. A result is the text itself, as OpenAI's own harmony
         * library renders it, where the template makes a JSON string.
         */
        .name = "harmony", .sign = "<|channel|>", .tokens = {"<|start|>", "<|channel|>", "<|message|>", "<|call|>", "<|end|>"},
        .start = HARMONY("low"), .start_thinking = HARMONY("medium"),
        .begin = {
            [MODEL_ROLE_SYSTEM]    = "<|start|>developer<|message|># Instructions\n\n",
            [MODEL_ROLE_USER]      = "<|start|>user<|message|>",
            [MODEL_ROLE_ASSISTANT] = "<|start|>assistant",
            [MODEL_ROLE_TOOL]      = "<|start|>functions.",
        },
        .end = {
            [MODEL_ROLE_SYSTEM] = "<|end|>", [MODEL_ROLE_USER] = "<|end|>",
            [MODEL_ROLE_ASSISTANT] = "<|end|>", [MODEL_ROLE_TOOL] = "<|end|>",
        },
        .calls = {true, MODEL_TOOLS_HARMONY, "<|call|>"},
    },
    {   /* Gemma knows neither system nor tools: both are turns of the user. */
        .name = "gemma", .sign = "<start_of_turn>", .tokens = {"<start_of_turn>", "<end_of_turn>"},
        .begin = {
            [MODEL_ROLE_SYSTEM]    = "<start_of_turn>user\n",
            [MODEL_ROLE_USER]      = "<start_of_turn>user\n",
            [MODEL_ROLE_ASSISTANT] = "<start_of_turn>model\n",
            [MODEL_ROLE_TOOL]      = "<start_of_turn>user\nResult:\n",
        },
        .end = {
            [MODEL_ROLE_SYSTEM] = "<end_of_turn>\n", [MODEL_ROLE_USER] = "<end_of_turn>\n",
            [MODEL_ROLE_ASSISTANT] = "<end_of_turn>\n", [MODEL_ROLE_TOOL] = "<end_of_turn>\n",
        },
    },
    {   /*
         * Gemma 4. Functions stand in the system turn, results in the model's (model_template_begin_behind). The thought
         * that the larger models' template opens an answer with is already over.
         */
        .name = "gemma4", .sign = "<|turn>",
        .tokens = {"<|turn>", "<turn|>", "<|tool>", "<tool|>", "<|tool_call>", "<tool_call|>", "<|tool_response>",
            "<tool_response|>", "<|\"|>", "<|channel>", "<channel|>", "<|think|>"},
        .begin = {
            [MODEL_ROLE_SYSTEM]    = "<|turn>system\n",
            [MODEL_ROLE_USER]      = "<|turn>user\n",
            [MODEL_ROLE_ASSISTANT] = "<|turn>model\n",
            [MODEL_ROLE_TOOL]      = "<|tool_response>response:",
        },
        .end = {
            [MODEL_ROLE_SYSTEM] = "<turn|>\n", [MODEL_ROLE_USER] = "<turn|>\n",
            [MODEL_ROLE_ASSISTANT] = "<turn|>\n", [MODEL_ROLE_TOOL] = "<|\"|>}<tool_response|>",
        },
        .think_sign = "<|channel>thought\\n<channel|>", .no_thought = "<|channel>thought\n<channel|>",
        .ask_to_think = "<|think|>\n",
        .calls = {true, MODEL_TOOLS_GEMMA, NULL},
    },
    {   /* Mistral's since tekken (version 7 of its tokenizer): Mistral Small 3, Devstral, Ministral 3. */
        .name = "mistral", .sign = "[SYSTEM_PROMPT]",
        .tokens = {"[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[INST]", "[/INST]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "</s>"},
        .begin = {
            [MODEL_ROLE_SYSTEM]    = "[SYSTEM_PROMPT]",
            [MODEL_ROLE_USER]      = "[INST]",
            [MODEL_ROLE_ASSISTANT] = "",
            [MODEL_ROLE_TOOL]      = "[TOOL_RESULTS]",
            [MODEL_ROLE_TOOLS]     = "[AVAILABLE_TOOLS]",
        },
        .end = {
            [MODEL_ROLE_SYSTEM] = "[/SYSTEM_PROMPT]", [MODEL_ROLE_USER] = "[/INST]",
            [MODEL_ROLE_ASSISTANT] = "</s>", [MODEL_ROLE_TOOL] = "[/TOOL_RESULTS]",
            [MODEL_ROLE_TOOLS] = "[/AVAILABLE_TOOLS]",
        },
    },
    {   /*
         * Mistral Nemo (version 3 of the tokenizer, tekken). It has no system message: that text begins a request, the first
         * one here and the newest one in its template, which puts the tools in front of that one as well.
         */
        .name = "nemo", .sign = "\"[INST]\" + system_message", .also = "[TOOL_CALLS][",
        .tokens = {"[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_CALLS]", "[TOOL_RESULTS]",
            "[/TOOL_RESULTS]", "</s>"},
        .begin = {
            [MODEL_ROLE_SYSTEM]    = "[INST]",
            [MODEL_ROLE_USER]      = "[INST]",
            [MODEL_ROLE_ASSISTANT] = "",
            [MODEL_ROLE_TOOL]      = "[TOOL_RESULTS]{\"content\": ",
            [MODEL_ROLE_TOOLS]     = "[AVAILABLE_TOOLS]",
        },
        .end = {
            [MODEL_ROLE_SYSTEM] = "\n\n", [MODEL_ROLE_USER] = "[/INST]",
            [MODEL_ROLE_ASSISTANT] = "</s>", [MODEL_ROLE_TOOL] = "\"}[/TOOL_RESULTS]",
            [MODEL_ROLE_TOOLS] = "[/AVAILABLE_TOOLS]",
        },
        .calls = {true, MODEL_TOOLS_NEMO, NULL},
    },
    {   /* Models without a chat form: only words mark the turns. */
        .name = "plain", .sign = "",
        .begin = {
            [MODEL_ROLE_SYSTEM] = "", [MODEL_ROLE_USER] = "User: ",
            [MODEL_ROLE_ASSISTANT] = "Assistant: ", [MODEL_ROLE_TOOL] = "Result:\n",
        },
        .end = {
            [MODEL_ROLE_SYSTEM] = "\n\n", [MODEL_ROLE_USER] = "\n\n",
            [MODEL_ROLE_ASSISTANT] = "\n\n", [MODEL_ROLE_TOOL] = "\n\n",
        },
    },
};
/* clang-format on */

enum { N_FAMILIES = sizeof families / sizeof *families, CHATML = 6, PLAIN = N_FAMILIES - 1 };

struct model_template {
    const family *family;
    model_tool_style tools;
    const model_tokenizer *tokenizer; /* as long as the template */
    int32_t bos;
    model_ids start, begin[N_ROLES], end[N_ROLES];
    /* Harmony's marks; -1 where the family is another. */
    int32_t start_mark, message_mark, end_mark, call_mark, return_mark;
    int32_t calls_mark, id_mark;  /* of Mistral's forms with ids, and the first of Gemma's; -1: another */
    int32_t asks_mark, asked_end; /* Nemo: [INST] and [/INST]; -1: another */
    int32_t called_mark, asked_mark,
        told_mark;    /* Gemma: behind a call, in front of a result and behind it; -1: another */
    model_ids result; /* beside a call's name or id, with a tool's result: behind it, Nemo: in front */
};

/* Of Mistral's form with ids: in front of a call's id, and behind a result's. */
static const char call_id[] = "[CALL_ID]", tool_content[] = "[TOOL_CONTENT]";

static bool has_tokens(const model_tokenizer *t, const family *f)
{
    for (size_t i = 0; i < MAX_TOKENS && f->tokens[i]; i++)
        if (!model_tokenizer_is_control(t, model_tokenizer_find(t, f->tokens[i]))) return false;
    return true;
}

static bool contains(base_str s, const char *part)
{
    return s.len && memmem(s.ptr, s.len, part, strlen(part));
}

static bool contains_any_case(base_str s, const char *part)
{
    size_t n = strlen(part);
    for (size_t i = 0; i + n <= s.len; i++)
        if (strncasecmp(s.ptr + i, part, n) == 0) return true;
    return false;
}

static const family *choose_family(base_str jinja, const model_tokenizer *t)
{
    for (size_t i = 0; i < N_FAMILIES; i++)
        if (families[i].sign[0] && contains(jinja, families[i].sign) &&
            (!families[i].also || contains(jinja, families[i].also)) && has_tokens(t, &families[i]))
            return &families[i];
    if (has_tokens(t, &families[CHATML])) return &families[CHATML];
    return jinja.len ? NULL : &families[PLAIN];
}

/* An unknown template has no name; the model has one. */
static int refuse(const gguf_file *g, base_err *err)
{
    base_str name = {0};
    base_buf known = {0};
    if (!gguf_get_str(g, "general.name", &name)) gguf_get_str(g, "general.architecture", &name);
    for (size_t i = 0; i < PLAIN; i++) base_buf_printf(&known, "%s%s", i ? ", " : "", families[i].name);
    base_fail(err, BASE_E_UNSUPPORTED, "the chat template of \"%.*s\" is not built; kvist writes those of %s",
        (int)(name.len < 60 ? name.len : 60), name.ptr ? name.ptr : "", known.data);
    base_buf_free(&known);
    return BASE_E_UNSUPPORTED;
}

/*
 * Of Mistral's forms those with [ARGS], whose marks are all there: with ids of calls (mistral-common's InstructTokenizerV11,
 * which Mistral Small 3.2 is of), and without (V13). The list of objects with ids in front of results (V7: Small 3.1) is another,
 * and not built. MODEL_TOOLS_JSON: neither.
 */
static model_tool_style choose_mistral(base_str jinja, const model_tokenizer *t)
{
    static const char *const marks[] = {"[SYSTEM_PROMPT]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]",
        "[TOOL_CALLS]", "[ARGS]", "</s>", call_id, tool_content};
    const bool has_ids = contains(jinja, call_id);
    const size_t n = sizeof marks / sizeof *marks - (has_ids ? 0 : 2);
    if (!contains(jinja, "[SYSTEM_PROMPT]") || !contains(jinja, "[ARGS]")) return MODEL_TOOLS_JSON;
    if (has_ids && !contains(jinja, tool_content)) return MODEL_TOOLS_JSON;
    for (size_t i = 0; i < n; i++)
        if (!model_tokenizer_is_control(t, model_tokenizer_find(t, marks[i]))) return MODEL_TOOLS_JSON;
    return has_ids ? MODEL_TOOLS_MISTRAL_IDS : MODEL_TOOLS_MISTRAL;
}

static bool is_coder_of_qwen2(const gguf_file *g, base_str architecture)
{
    base_str name = {0}, basename = {0};
    gguf_get_str(g, "general.name", &name);
    gguf_get_str(g, "general.basename", &basename);
    return base_str_equal(architecture, "qwen2") &&
           (contains_any_case(name, "coder") || contains_any_case(basename, "coder"));
}

model_tool_style model_tools_by_words(base_str jinja, bool is_qwen)
{
    if (!contains(jinja, "<tool_call>")) return MODEL_TOOLS_JSON;
    if (contains(jinja, "<function=")) return MODEL_TOOLS_XML;
    return is_qwen || contains(jinja, "<|start_of_role|>") ? MODEL_TOOLS_HERMES : MODEL_TOOLS_JSON;
}

static model_tool_style choose_tools(
    const family *f, const gguf_file *g, base_str jinja, const model_tokenizer *t)
{
    base_str architecture = {0};
    gguf_get_str(g, "general.architecture", &architecture);
    if (is_coder_of_qwen2(g, architecture))
        return MODEL_TOOLS_TAG_TOOLS; /* it was hardly trained on <tool_call> and follows <tools> */
    if (f->calls.is_known) {
        const char *mark = f->calls.mark;
        const bool is_taught =
            !mark || (contains(jinja, mark) && model_tokenizer_is_control(t, model_tokenizer_find(t, mark)));
        return is_taught ? f->calls.style : MODEL_TOOLS_JSON;
    }
    const model_tool_style mistral = choose_mistral(jinja, t);
    if (mistral != MODEL_TOOLS_JSON) return mistral;
    return model_tools_by_words(jinja, contains(architecture, "qwen"));
}

/* text: NULL: nothing. */
static void add_text(const model_tokenizer *t, const char *text, model_ids *out)
{
    if (!text) return;
    model_tokenizer_encode(t, text, strlen(text), true, out);
}

static bool is_harmony(const model_template *m)
{
    return m->family->calls.style == MODEL_TOOLS_HARMONY;
}

static void load_harmony(model_template *m, const model_tokenizer *t)
{
    m->start_mark = model_tokenizer_find(t, "<|start|>");
    m->message_mark = model_tokenizer_find(t, "<|message|>");
    m->end_mark = model_tokenizer_find(t, "<|end|>");
    m->call_mark = model_tokenizer_find(t, "<|call|>");
    m->return_mark = model_tokenizer_find(t, "<|return|>");
    add_text(t, " to=assistant<|channel|>commentary<|message|>", &m->result);
}

static void load_ids(model_template *m, const model_tokenizer *t)
{
    m->calls_mark = model_tokenizer_find(t, "[TOOL_CALLS]");
    m->id_mark = model_tokenizer_find(t, call_id);
    add_text(t, tool_content, &m->result);
}

static bool is_gemma(const model_template *m)
{
    return m->tools == MODEL_TOOLS_GEMMA;
}

/* Of a list of objects with ids in them, whose results have the id behind them. */
static bool is_nemo(const model_template *m)
{
    return m->tools == MODEL_TOOLS_NEMO;
}

static void load_gemma(model_template *m, const model_tokenizer *t)
{
    m->calls_mark = model_tokenizer_find(t, "<|tool_call>");
    m->called_mark = model_tokenizer_find(t, "<tool_call|>");
    m->asked_mark = model_tokenizer_find(t, "<|tool_response>");
    m->told_mark = model_tokenizer_find(t, "<tool_response|>");
    m->end_mark = model_tokenizer_find(t, "<turn|>");
    add_text(t, "{value:<|\"|>", &m->result);
}

static void load_nemo(model_template *m, const model_tokenizer *t)
{
    m->calls_mark = model_tokenizer_find(t, "[TOOL_CALLS]");
    m->asks_mark = model_tokenizer_find(t, "[INST]");
    m->asked_end = model_tokenizer_find(t, "[/INST]");
    add_text(t, ", \"call_id\": \"", &m->result);
}

int model_template_load(model_template **ret, const struct gguf_file *gguf, const model_tokenizer *t,
    bool thinking, base_err *err)
{
    base_str jinja = {0};
    gguf_get_str(gguf, "tokenizer.chat_template", &jinja);
    const family *f = choose_family(jinja, t);
    if (!f) return refuse(gguf, err);
    model_template *m = base_xcalloc(1, sizeof *m);
    m->family = f;
    m->tools = choose_tools(f, gguf, jinja, t);
    m->bos = model_tokenizer_bos(t);
    for (int role = 0; role < N_ROLES; role++) {
        add_text(t, f->begin[role], &m->begin[role]);
        add_text(t, f->end[role], &m->end[role]);
    }
    add_text(t, thinking ? f->ask_to_think : f->ask_not_to, &m->begin[MODEL_ROLE_SYSTEM]);
    const char *start = thinking && f->start_thinking ? f->start_thinking : f->start;
    add_text(t, start, &m->start);
    m->tokenizer = t;
    m->start_mark = m->message_mark = m->end_mark = m->call_mark = m->return_mark = -1;
    m->calls_mark = m->id_mark = m->called_mark = m->asked_mark = m->told_mark = -1;
    m->asks_mark = m->asked_end = -1;
    if (is_harmony(m)) load_harmony(m, t);
    if (m->tools == MODEL_TOOLS_MISTRAL_IDS) load_ids(m, t);
    if (is_gemma(m)) load_gemma(m, t);
    if (is_nemo(m)) load_nemo(m, t);
    const bool thinks = f->think_sign && contains(jinja, f->think_sign);
    if (thinks && !thinking) add_text(t, f->told_not_to, &m->end[MODEL_ROLE_SYSTEM]);
    const char *opening = !thinks ? NULL : thinking ? f->thought : f->no_thought;
    add_text(t, opening, &m->begin[MODEL_ROLE_ASSISTANT]);
    *ret = m;
    return 0;
}

void model_template_free(model_template *t)
{
    if (!t) return;
    for (int role = 0; role < N_ROLES; role++) {
        model_ids_free(&t->begin[role]);
        model_ids_free(&t->end[role]);
    }
    model_ids_free(&t->start);
    model_ids_free(&t->result);
    free(t);
}

const char *model_template_name(const model_template *t)
{
    return t->family->name;
}

model_tool_style model_template_tools(const model_template *t)
{
    return t->tools;
}

void model_template_start(const model_template *t, model_ids *out)
{
    if (t->bos >= 0) model_ids_add(out, t->bos);
    model_ids_add_all(out, &t->start);
}

void model_template_begin(const model_template *t, model_role role, model_ids *out)
{
    model_template_begin_behind(t, role, NULL, 0, out);
}

void model_template_end(const model_template *t, model_role role, model_ids *out)
{
    model_template_end_behind(t, role, NULL, 0, out);
}

/* ---- harmony, Mistral's ids, Nemo and Gemma: what hangs on what stands before ---- */

/* The name behind "to=functions." in the newest head of a message that has one; "tool" where none has. */
static void put_newest_call(const model_template *t, const int32_t *ids, size_t n, base_buf *name)
{
    static const char to[] = "to=functions.";
    base_buf head = {0};
    for (size_t i = n; i-- > 0 && !name->len;) {
        if (ids[i] != t->message_mark) continue;
        size_t from = i;
        while (from > 0 && ids[from - 1] != t->start_mark) from--;
        base_buf_clear(&head);
        for (size_t k = from; k < i; k++) {
            size_t n_piece = 0;
            const char *piece = model_tokenizer_piece(t->tokenizer, ids[k], &n_piece);
            if (piece) base_buf_add(&head, piece, n_piece);
        }
        const char *at = head.len ? strstr(head.data, to) : NULL;
        if (at) base_buf_add(name, at + strlen(to), strcspn(at + strlen(to), " <\n"));
        i = from;
    }
    if (!name->len) base_buf_puts(name, "tool");
    base_buf_free(&head);
}

/* Text up to the next mark. */
static void put_until_mark(const model_template *t, const int32_t *ids, size_t n, size_t most, base_buf *out)
{
    for (size_t i = 0; i < n && !model_tokenizer_is_control(t->tokenizer, ids[i]) && out->len < most; i++) {
        size_t n_piece = 0;
        const char *piece = model_tokenizer_piece(t->tokenizer, ids[i], &n_piece);
        if (piece) base_buf_add(out, piece, n_piece);
    }
}

enum { N_ID = 9 };

/*
 * The id that the newest call was given, zeros where it has none: letters and digits, nine as both the models' templates and
 * mistral-common (validator.py, "must be a-z, A-Z, 0-9, with a length of 9") want. Behind a mark, or in Nemo's list the
 * call's last member.
 */
static void put_newest_id(const model_template *t, const int32_t *ids, size_t n, base_buf *id)
{
    static const char characters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
                      member[] = "\"id\": \"";
    size_t i = n;
    while (i > 0 && (t->id_mark < 0 || ids[i - 1] != t->id_mark) && ids[i - 1] != t->calls_mark) i--;
    if (i > 0 && t->id_mark < 0) {
        base_buf list = {0};
        put_until_mark(t, ids + i, n - i, SIZE_MAX, &list);
        const char *newest = NULL;
        for (const char *at = list.data; at && (at = strstr(at, member)); at += sizeof member - 1)
            newest = at + sizeof member - 1;
        if (newest) base_buf_add(id, newest, strcspn(newest, "\""));
        base_buf_free(&list);
    } else if (i > 0 && ids[i - 1] == t->id_mark) {
        put_until_mark(t, ids + i, n - i, N_ID, id);
    }
    if (id->len != N_ID || strspn(id->data, characters) != N_ID) {
        base_buf_clear(id);
        base_buf_puts(id, "000000000");
    }
}

/* NAME of the newest call:NAME{ between Gemma's marks; "tool" where there is none. */
static void put_newest_name(const model_template *t, const int32_t *ids, size_t n, base_buf *name)
{
    static const char call[] = "call:";
    enum { MAX_NAME = 128 };
    base_buf text = {0};
    size_t i = n;
    while (i > 0 && ids[i - 1] != t->calls_mark) i--;
    if (i > 0) put_until_mark(t, ids + i, n - i, MAX_NAME, &text);
    const char *at = text.len ? strstr(text.data, call) : NULL;
    if (at) base_buf_add(name, at + strlen(call), strcspn(at + strlen(call), " {\n"));
    if (!name->len) base_buf_puts(name, "tool");
    base_buf_free(&text);
}

/* The newest [INST] or [/INST]; -1: none. */
static int32_t newest_ask(const model_template *t, const int32_t *ids, size_t n)
{
    while (n > 0 && ids[n - 1] != t->asks_mark && ids[n - 1] != t->asked_end) n--;
    return n > 0 ? ids[n - 1] : -1;
}

/* Nemo's system text stands in front of the first request, in its turn. */
static bool is_turn_open(const model_template *t, const int32_t *ids, size_t n, const model_ids *behind)
{
    if (t->asks_mark < 0) return false;
    int32_t mark = newest_ask(t, behind->ids, behind->n);
    if (mark < 0) mark = newest_ask(t, ids, n);
    return mark == t->asks_mark;
}

void model_template_begin_behind(
    const model_template *t, model_role role, const int32_t *ids, size_t n, model_ids *out)
{
    base_buf name = {0};
    const bool names_call = t->result.n && role == MODEL_ROLE_TOOL && !is_nemo(t);
    const int32_t last = out->n ? out->ids[out->n - 1] : n ? ids[n - 1] : -1;
    if (is_gemma(t) && role == MODEL_ROLE_ASSISTANT && last == t->told_mark) return;
    const bool asks = role == MODEL_ROLE_SYSTEM || role == MODEL_ROLE_USER;
    if (asks && is_turn_open(t, ids, n, out)) return;
    /* First: ids may be what out holds. */
    if (names_call && is_harmony(t)) put_newest_call(t, ids, n, &name);
    if (names_call && is_gemma(t)) put_newest_name(t, ids, n, &name);
    if (names_call && !is_harmony(t) && !is_gemma(t)) put_newest_id(t, ids, n, &name);
    model_ids_add_all(out, &t->begin[role]);
    if (!names_call) return;
    model_tokenizer_encode(t->tokenizer, name.data, name.len, false, out);
    model_ids_add_all(out, &t->result);
    base_buf_free(&name);
}

void model_template_end_behind(
    const model_template *t, model_role role, const int32_t *ids, size_t n, model_ids *out)
{
    const int32_t call = is_harmony(t) ? t->call_mark : t->called_mark;
    if (call >= 0 && role == MODEL_ROLE_ASSISTANT && n && ids[n - 1] == call) return;
    if (is_nemo(t) && role == MODEL_ROLE_TOOL) {
        base_buf id = {0};
        put_newest_id(t, ids, n, &id);
        model_ids_add_all(out, &t->result);
        model_tokenizer_encode(t->tokenizer, id.data, id.len, false, out);
        base_buf_free(&id);
    }
    model_ids_add_all(out, &t->end[role]);
}

int32_t model_template_kept_end(const model_template *t, int32_t id)
{
    const int32_t other = is_harmony(t) ? t->return_mark : t->asked_mark;
    return other >= 0 && id == other && t->end_mark >= 0 ? t->end_mark : id;
}

bool model_template_opens_answer(const model_template *t, const int32_t *ids, size_t n)
{
    const model_ids *o = &t->begin[MODEL_ROLE_ASSISTANT];
    if (n && t->told_mark >= 0 && ids[n - 1] == t->told_mark) return true;
    return n >= o->n && (!o->n || !memcmp(ids + (n - o->n), o->ids, o->n * sizeof *ids));
}
