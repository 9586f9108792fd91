/*
 * Stand-ins for token ids: pieces of text whose id is their bytes. For engines that have no ids of their own
 * (chat over HTTP, a script): what the agent counts, places and logs are then stand-ins, and an engine turns
 * them back into the text that it sends.
 *
 * A stand-in is up to four ASCII letters, digits or underscores (a blank in front may belong to it), or one
 * byte of anything else; its id is its bytes, so that ids mean the same in every run. Pure; any thread.
 */
#ifndef KVIST_AGENT_ENGINE_STANDIN_H
#define KVIST_AGENT_ENGINE_STANDIN_H

#include "agent/engine/engine.h"

enum {
    STANDIN_WORD = 4,                    /* letters a stand-in */
    STANDIN_CONTROL = 1 << 30,           /* + role: a message of it begins */
    STANDIN_MARK = STANDIN_CONTROL + 32, /* + place: a mark of harmony's, of a script with channels */
    STANDIN_END = STANDIN_CONTROL + 64,
    STANDIN_BYTE = STANDIN_CONTROL + 256, /* + byte: one above ASCII */
    STANDIN_N = STANDIN_BYTE + 256        /* ids are below */
};

int standin_encode(engine *e, const char *text, size_t n, model_ids *out, base_err *err);
/* The bytes live until the eighth call from now on this thread. */
const char *standin_piece(const engine *e, int32_t id, size_t *ret_n);
bool standin_is_control(const engine *e, int32_t id);
int standin_scaffold(engine *e, engine_scaffold what, model_role role, model_ids *out, base_err *err);
/* The mark that begins this text, of *ret_n bytes; STANDIN_END: none does. */
int32_t standin_mark(const char *text, size_t n, size_t *ret_n);
/* The stand-in that is this text as a whole; STANDIN_END: none is. */
int32_t standin_only(const char *text, size_t n);

#endif
