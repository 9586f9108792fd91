/*
 * Engines across HTTP (remote/endpoint.h): by token ids where an engine takes them, else by messages.
 */
#ifndef KVIST_AGENT_ENGINE_ENGINE_REMOTE_H
#define KVIST_AGENT_ENGINE_ENGINE_REMOTE_H

#include "agent/engine/engine.h"
#include "remote/endpoint.h"

/*
 * Asks what is there and opens the engine for it. cancel, limits and the callbacks of `endpoint` are set from
 * `options`. Nothing of a session is kept there: a resumed one sends its log's tokens again.
 */
int engine_remote_open(engine **ret, const remote_endpoint_options *endpoint, const engine_options *options,
    base_err *why_not, base_err *err);

/* The one by messages; takes the endpoint over. */
engine *engine_remote_chat_open(remote_endpoint *endpoint, const engine_options *options);

#endif
