/*
 * Events of the agent as the notifications of the Agent Client Protocol, version 1
 * (https://agentclientprotocol.com/protocol/v1/schema): answers as chunks, tools with diffs and places, the
 * context's size, and evictions as compaction updates for clients that know those.
 */
#ifndef KVIST_ACP_UPDATE_H
#define KVIST_ACP_UPDATE_H

#include "agent/log/event.h"
#include "agent/call/stream.h"

typedef struct acp_teller {
    char *session, *root; /* the protocol's id of the session; the tree's absolute path */
    agent_stream stream;
    char call[32];         /* id of the tool call that runs */
    unsigned long n_calls; /* of this process, so that ids are never given twice */
    bool in_call;          /* it was told and has no result yet */
    bool knows_compaction; /* the client declared it */
    bool is_replay;        /* what the person said is told too: the client does not have it */
    bool was_interrupted;  /* the turn was, for its answer */
} acp_teller;

/* Sends what the protocol has for this event, one update or several; most events are none of the client's business. */
void acp_tell(acp_teller *t, const agent_event *e);
/* Foreign text in a block of code, behind a fence that it does not hold; kind: a language, or "". */
void acp_put_code(base_buf *out, const char *kind, const char *text);
/* One notification "session/update"; fields: members of the update behind its name, may be "". */
void acp_send_update(const acp_teller *t, const char *kind, const char *fields);
/* The params of session/request_permission. The tool call is told as it is in updates. */
void acp_put_permission(acp_teller *t, const agent_event *request, base_buf *out);
void acp_teller_free(acp_teller *t); /* frees the contents */

#endif
