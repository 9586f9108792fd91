/* A recorded session as tokens, message by message. */
#ifndef KVIST_BENCH_TRANSCRIPT_H
#define KVIST_BENCH_TRANSCRIPT_H

#include "base/json.h"
#include "kv/session.h"
#include "model/forward/model.h"
#include "model/text/tokenizer.h"

/* A message as tokens: role markers before, what it says, the end. */
typedef struct transcript_message {
    kv_origin origin;
    model_ids begin, text, end;
    uint32_t call_from; /* of an assistant's text: where its tool call begins; text.n: there is none */
    const char *called; /* its function; lives as long as the trajectory; NULL: there is no call */
    const base_json *arguments;
    base_json_doc *doc;
} transcript_message;

typedef struct transcript {
    transcript_message *messages;
    size_t n, cap;
    uint32_t n_tokens;
} transcript;

/* What may be called is the fixed prompt, as an agent's is. */
void transcript_add_functions(transcript *to, const model *with, const char *functions);
/*
 * One message of a trajectory: {role, content, tool_calls}. m lives as long as it takes; the call's arguments
 * are parsed anew.
 */
void transcript_add(transcript *all, const model *with, const base_json *m);
void transcript_free(transcript *t);

#endif
