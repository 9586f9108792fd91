/*
 * Is the tokenizer of an engine elsewhere that of a GGUF file on this machine? Ids that are kept for a whole session
 * and sent again have to mean on both sides what the model learned: an engine that was started with another
 * tokenizer than its model's answers badly and says nothing.
 */
#ifndef KVIST_REMOTE_VOCAB_COMPARE_H
#define KVIST_REMOTE_VOCAB_COMPARE_H

#include "model/text/tokenizer.h"
#include "remote/vocab.h"

typedef struct remote_vocab_likeness {
    uint32_t n_compared; /* tokens */
    char *differs; /* the first place where the two differ, as a half sentence, on the heap; NULL: nowhere */
} remote_vocab_likeness;

/*
 * Texts as content: a probe with what tokenizers disagree on (blanks, digits, code, letters of many alphabets), and a sample of the file's own pieces. `marks` are ids that its template writes around
 * messages. An error is the endpoint's.
 */
int remote_vocab_compare(remote_vocab *v, const model_tokenizer *local, const model_ids *marks,
    remote_vocab_likeness *ret, base_err *err);

#endif
