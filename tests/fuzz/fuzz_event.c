/* Event JSON (from logs that somebody else wrote): any bytes are safe, and what reads is written stably. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/log/event.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    agent_event e, again;
    agent_event_doc *doc, *doc2;
    if (agent_event_read((const char *)data, n, &e, &doc, NULL)) return 0;
    base_buf once = {0}, twice = {0};
    agent_event_write(&e, &once);
    if (agent_event_read(once.data, once.len, &again, &doc2, NULL)) abort();
    agent_event_write(&again, &twice);
    if (strcmp(once.data, twice.data)) abort();
    agent_event_free(agent_event_copy(&again));
    agent_event_doc_free(doc);
    agent_event_doc_free(doc2);
    base_buf_free(&once);
    base_buf_free(&twice);
    return 0;
}
