#include "remote/reuse.h"

#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/hash.h"

/* --- asking --------------------------------------------------------------------------------------------- */

/* Words of which none stands twice: no stretch of the probe is found by chance. */
static int put_probe(remote_endpoint *e, size_t n, model_ids *out, base_err *err)
{
    static const char text[] =
        "kvist asks once whether rows behind a cut are moved: apple bridge candle dragon engine "
        "forest guitar hammer island jungle kettle ladder magnet needle orange pencil quartz rocket "
        "silver timber urchin velvet window yellow zephyr";
    int rc = remote_vocab_encode(e->vocab, text, sizeof text - 1, false, out, err);
    if (!rc && out->n < n)
        rc = base_fail(err, BASE_E_UNSUPPORTED, "%zu tokens are too few to ask with", out->n);
    return rc;
}

/* How many of these ids it found; one token is written. */
static int ask_found(remote_endpoint *e, const model_ids *ids, uint32_t reuse, uint32_t *ret, base_err *err)
{
    base_buf body = {0}, answer = {0};
    base_json_doc *doc = NULL;
    base_buf_puts(&body, "{\"prompt\":");
    remote_wire_put_ids(ids->ids, (uint32_t)ids->n, &body);
    base_buf_printf(&body, ",\"n_predict\":1,\"cache_prompt\":true,\"n_cache_reuse\":%u}", reuse);
    int rc = remote_http_ask(e->http, e->wire->complete, body.data, NULL, &answer, err);
    if (!rc) rc = base_json_parse(answer.data ? answer.data : "", answer.len, &doc, err);
    const int64_t found =
        rc ? -1 : base_json_int(base_json_get(base_json_root(doc), "timings"), "cache_n", -1);
    if (!rc && (found < 0 || found > (int64_t)ids->n))
        rc = base_fail(err, BASE_E_UNSUPPORTED, "it does not tell what it found in its cache");
    if (!rc) *ret = (uint32_t)found;
    base_json_free(doc);
    base_buf_free(&body);
    base_buf_free(&answer);
    return rc;
}

int remote_reuse_probe(remote_endpoint *e, remote_reuse *ret, model_ids *ret_held, base_err *err)
{
    /* More than half of what the slot holds stays, so that no former prompt is looked for (remote/held.c). */
    enum { KEPT = 20, CUT = 4, BEHIND = 12, NEW = 1, LEAST = 8, ALL = KEPT + CUT + BEHIND + NEW };
    model_ids all = {0}, cut = {0};
    uint32_t found = 0;
    if (e->wire != &remote_wire_llama || (e->n_ctx && e->n_ctx < 2 * ALL))
        return base_fail(err, BASE_E_UNSUPPORTED, "only a llama-server with room for it can be asked");
    int rc = put_probe(e, ALL, &all, err);
    if (!rc) {
        for (size_t i = 0; i < ALL; i++)
            if (i < KEPT || i >= KEPT + CUT) model_ids_add(&cut, all.ids[i]);
        all.n = KEPT + CUT + BEHIND;
        rc = ask_found(e, &all, 0, &found, err);
    }
    if (!rc) rc = ask_found(e, &cut, LEAST, &found, err);
    if (!rc)
        *ret = (remote_reuse){
            .n_kept = KEPT, .n_behind = BEHIND, .found = found, .works = found >= KEPT + BEHIND / 2};
    for (size_t i = 0; i < cut.n && !rc && ret_held; i++) model_ids_add(ret_held, cut.ids[i]);
    model_ids_free(&all);
    model_ids_free(&cut);
    return rc;
}

/* --- keeping -------------------------------------------------------------------------------------------- */

static const char *const words[] = {"computed again\n", "moved\n"}; /* by `works` */

/* Heap; NULL: nothing is kept. */
static char *path_of(const remote_endpoint *e, const char *folder)
{
    base_buf text = {0};
    char hash[65];
    if (!folder) return NULL;
    base_buf_printf(
        &text, "%s\n%s\n%s", remote_http_address(e->http)->base, e->model, e->build ? e->build : "");
    base_sha256_hex(text.data, text.len, hash);
    base_buf_clear(&text);
    base_buf_printf(&text, "%s/%.24s.moves", folder, hash);
    return base_buf_take(&text);
}

bool remote_reuse_load(const remote_endpoint *e, const char *folder, bool *ret_works)
{
    enum { MOST_BYTES = 64 };
    char *path = path_of(e, folder);
    base_buf text = {0};
    bool is_known = false;
    if (path && !base_fs_read(path, MOST_BYTES, &text, NULL)) {
        for (int works = 0; works < 2; works++) {
            if (text.len != strlen(words[works]) || memcmp(text.data, words[works], text.len)) continue;
            *ret_works = works;
            is_known = true;
        }
    }
    base_buf_free(&text);
    free(path);
    return is_known;
}

void remote_reuse_save(const remote_endpoint *e, const char *folder, bool works)
{
    char *path = path_of(e, folder);
    if (path && !base_fs_mkdirs(folder, NULL))
        base_fs_write(path, words[works], strlen(words[works]), 0600, NULL);
    free(path);
}

void remote_reuse_forget(const remote_endpoint *e, const char *folder)
{
    char *path = path_of(e, folder);
    if (path) base_fs_remove(path, NULL);
    free(path);
}
