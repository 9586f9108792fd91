/* A model as what both sides compute by (contract: arm.h). */
#include "agent/call/tool_grammar.h"
#include "model/text/tokenizer.h"
#include "whatif/arm.h"

static int open_on_model(void *user, const kv_options *kv, bool resume, const kv_observer *observer,
    kv_session **ret, base_err *err)
{
    return (resume ? kv_session_resume : kv_session_new)(ret, user, kv, observer, err);
}

static const char *piece_of_model(const void *user, int32_t id, size_t *ret_n)
{
    return model_tokenizer_piece(model_get_tokenizer(user), id, ret_n);
}

static bool is_end_of_model(const void *user, int32_t id)
{
    return model_tokenizer_is_end(model_get_tokenizer(user), id);
}

static void encode_by_model(const void *user, const char *text, size_t n, model_ids *out)
{
    model_tokenizer_encode(model_get_tokenizer(user), text, n, false, out);
}

static void scaffold_of_model(const void *user, int end, int begin, model_ids *out)
{
    const model_template *t = model_get_template(user);
    if (end == WHATIF_START) model_template_start(t, out);
    if (end >= 0) model_template_end(t, (model_role)end, out);
    if (begin >= 0) model_template_begin(t, (model_role)begin, out);
}

whatif_engine whatif_model_engine(model *m)
{
    return (whatif_engine){.user = m,
        .open = open_on_model,
        .piece = piece_of_model,
        .n_vocab = model_get_info(m)->n_vocab,
        .is_end = is_end_of_model,
        .encode = encode_by_model,
        .scaffold = scaffold_of_model};
}

model_grammar *whatif_model_grammar(model *m)
{
    agent_tool_grammar grammar;
    model_grammar *ret = NULL;
    const model_tool_style style = model_template_tools(model_get_template(m));
    agent_tool_grammar_make(&grammar, &(agent_grammar_options){.style = style});
    return model_grammar_new(&ret, model_get_tokenizer(m), style, grammar.tools, grammar.n, NULL, NULL) ? NULL
                                                                                                        : ret;
}
