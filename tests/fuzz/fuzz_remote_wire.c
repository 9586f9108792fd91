/* Any stream, read as each kind of engine's, pieces and scores: numbers and texts stay inside of what came. */
#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "remote/sse.h"
#include "remote/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* A text of three ids, which seeds score. */
static void read_score(const remote_wire *wire, const base_json *root)
{
    static const int32_t ids[] = {10, 11, 12};
    enum { N = sizeof ids / sizeof *ids };
    for (uint32_t n = 0; n <= N; n++) {
        remote_score *ret = base_xcalloc(n + 1, sizeof *ret); /* exactly as many, so that one more is seen */
        const int rc = wire->read_score(root, ids + N - n, n, ret + 1, &(base_err){0});
        for (uint32_t i = 1; !rc && i <= n; i++)
            if (ret[i].instead < 0 || ret[i].instead == ids[N - n + i - 1]) abort();
        free(ret);
    }
}

static int read_event(void *user, const char *data, size_t n, base_err *err)
{
    static const remote_wire *const wires[] = {
        &remote_wire_llama, &remote_wire_vllm, &remote_wire_sglang, &remote_wire_chat};
    base_json_doc *doc = NULL;
    if (base_json_parse(data, n, &doc, NULL)) return 0;
    remote_piece *p = base_xcalloc(1, sizeof *p);
    base_buf all = {0};
    for (size_t i = 0; i < sizeof wires / sizeof *wires; i++) {
        if (wires[i]->scoring) read_score(wires[i], base_json_root(doc));
        if (wires[i]->read(base_json_root(doc), p, &(base_err){0})) continue;
        if (p->n_ids > REMOTE_MOST_IDS) abort();
        if (p->is_whole && p->so_far < p->n_ids) abort();
        for (uint32_t k = 0; k < p->n_ids; k++)
            if (p->ids[k] < 0) abort();
        base_buf_add(&all, p->text.ptr, p->text.len);
        if (p->thought.len) base_buf_add(&all, p->thought.ptr, p->thought.len);
        for (uint32_t k = 0; k < p->n_calls; k++) {
            base_buf_add(&all, p->calls[k].name.ptr, p->calls[k].name.len);
            base_buf_add(&all, p->calls[k].text.ptr, p->calls[k].text.len);
        }
        if (p->model) base_buf_puts(&all, p->model);
    }
    base_buf_free(&all);
    free(p);
    base_json_free(doc);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    remote_sse s = {0};
    if (!remote_sse_feed(&s, (const char *)bytes, n, read_event, NULL, NULL))
        remote_sse_end(&s, read_event, NULL, NULL);
    remote_sse_free(&s);
    return 0;
}
