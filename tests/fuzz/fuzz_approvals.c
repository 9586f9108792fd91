/* A file of approvals: what is read of it has both parts and, written again, is read as the same. */
#include "agent/approve/approvals.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/show.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    agent_approvals all = {0};
    agent_approvals_parse(AGENT_APPROVAL_COMMAND, (const char *)bytes, n, NULL, &all);
    for (size_t i = 0; i < all.n; i++) {
        const agent_approval *row = &all.rows[i];
        base_buf line = {0};
        agent_approvals again = {0};
        base_show(&line, row->tree, strlen(row->tree), BASE_SHOW_UTF8);
        base_buf_putc(&line, '\t');
        base_show(&line, row->what, strlen(row->what), BASE_SHOW_UTF8);
        base_buf_putc(&line, '\n');
        agent_approvals_parse(row->kind, line.data, line.len, row->tree, &again);
        if (*row->tree && (again.n != 1 || strcmp(again.rows[0].what, row->what))) abort();
        agent_approvals_free(&again);
        base_buf_free(&line);
    }
    agent_approvals_free(&all);
    return 0;
}
