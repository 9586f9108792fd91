/* See score.h. */
#include "remote/score.h"

#include <stdlib.h>

#include "base/mem.h"

uint32_t remote_score_prompt(
    const remote_wire *wire, uint32_t n_read, uint32_t n_ids, uint32_t *ret_most_found)
{
    *ret_most_found = wire->scoring == REMOTE_SCORES_READ_ANEW || !n_read ? 0 : n_read - 1;
    return wire->scoring == REMOTE_SCORES_WRITTEN ? n_read : n_ids;
}

/* Is the request itself what it cannot do? */
static bool is_refusal(long status)
{
    return status == 400 || status == 404 || status == 405 || status == 422 || status == 501;
}

int remote_score_ask(remote_endpoint *e, const remote_request *r, uint32_t n_read, remote_score *ret,
    remote_scored *ret_cost, base_err *err)
{
    base_buf body = {0}, answer = {0};
    base_json_doc *doc = NULL;
    remote_piece *piece = base_xcalloc(1, sizeof *piece);
    long status = 0;
    e->wire->put_score(r, n_read, &body);
    int rc = remote_http_ask(e->http, e->wire->complete, body.data, &status, &answer, err);
    if (rc && rc != BASE_E_CANCELLED && is_refusal(status)) {
        rc = BASE_E_UNSUPPORTED;
        if (err) err->code = rc;
    }
    if (!rc) rc = base_json_parse(answer.data ? answer.data : "", answer.len, &doc, err);
    const base_json *root = rc ? NULL : base_json_root(doc);
    if (!rc) rc = e->wire->read(root, piece, err); /* an error in it, and the numbers of its cache */
    if (!rc) rc = e->wire->read_score(root, r->ids + n_read, r->n_ids - n_read, ret, err);
    *ret_cost = rc ? (remote_scored){-1, -1} : (remote_scored){piece->cached, piece->computed};
    base_json_free(doc);
    free(piece);
    base_buf_free(&body);
    base_buf_free(&answer);
    return rc;
}
