/* Recorded sessions as tokens; see bench/sessions/transcript.h. */
#include "bench/sessions/transcript.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "model/text/template.h"

static void add_text(const model *m, const char *text, model_ids *out)
{
    model_tokenizer_encode(model_get_tokenizer(m), text, strlen(text), false, out);
}

void transcript_free(transcript *t)
{
    for (size_t i = 0; i < t->n; i++) {
        model_ids_free(&t->messages[i].begin);
        model_ids_free(&t->messages[i].text);
        model_ids_free(&t->messages[i].end);
        base_json_free(t->messages[i].doc);
    }
    free(t->messages);
    *t = (transcript){.n = 0};
}

static transcript_message *add(transcript *to, kv_origin origin)
{
    base_grow(&to->messages, &to->cap, to->n + 1, sizeof *to->messages);
    transcript_message *m = &to->messages[to->n++];
    *m = (transcript_message){.origin = origin};
    return m;
}

void transcript_add_functions(transcript *to, const model *with, const char *functions)
{
    const model_template *t = model_get_template(with);
    transcript_message *m = add(to, KV_ORIGIN_SYSTEM);
    model_template_begin(t, MODEL_ROLE_SYSTEM, &m->begin);
    add_text(with, functions, &m->text);
    m->call_from = (uint32_t)m->text.n;
    model_template_end(t, MODEL_ROLE_SYSTEM, &m->end);
    to->n_tokens += (uint32_t)(m->begin.n + m->text.n + m->end.n);
}

void transcript_add(transcript *all, const model *with, const base_json *m)
{
    const char *role = base_json_str(m, "role", "");
    const bool is_answer = !strcmp(role, "assistant");
    const model_template *t = model_get_template(with);
    const model_role as = is_answer ? MODEL_ROLE_ASSISTANT : MODEL_ROLE_USER;
    /* The policy text counts as context: as a fixed prompt it alone would fill a quarter of the session. */
    transcript_message *to = add(all, is_answer               ? KV_ORIGIN_ANSWER
                                      : !strcmp(role, "user") ? KV_ORIGIN_USER
                                      : !strcmp(role, "tool") ? KV_ORIGIN_TOOL
                                                              : KV_ORIGIN_CONTEXT);
    model_template_begin(t, as, &to->begin);
    add_text(with, base_json_str(m, "content", ""), &to->text);
    to->call_from = (uint32_t)to->text.n;
    const base_json *call = base_json_get(base_json_at(base_json_get(m, "tool_calls"), 0), "function");
    if (is_answer && call) {
        const char *arguments = base_json_str(call, "arguments", "{}");
        to->called = base_json_str(call, "name", "");
        base_buf text = {0};
        base_buf_printf(&text, "<tool_call>\n{\"name\": \"%s\", \"arguments\": %s}\n</tool_call>",
            base_json_str(call, "name", ""), arguments);
        add_text(with, text.data, &to->text);
        base_buf_free(&text);
        if (!base_json_parse(arguments, strlen(arguments), &to->doc, NULL))
            to->arguments = base_json_root(to->doc);
    }
    model_template_end(t, as, &to->end);
    all->n_tokens += (uint32_t)(to->begin.n + to->text.n + to->end.n);
}
