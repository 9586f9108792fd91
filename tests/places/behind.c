/*
 * Asks a model two things, a JSON line in and a line out: what it writes behind a message and the beginning of an answer, and how likely
 * it finds an answer behind a message. Greedy; a line's beginning that the one before had too is not computed again. Used by scripts/bench-behind; no test depends on its numbers.
 *
 *   behind MODEL
 *   {"message": ..., "opening": ..., "most": N}  -> {"text": up to the line that closes the fence, "end": it came, "log_p": 0, "s": ...}
 *   {"message": ..., "answer": ...}              -> {"log_p": in nats, "tokens": ..., "s": ...}
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/engine/engine.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"

static const kv_segment segment = {.origin = KV_ORIGIN_USER, .turn = 1};

/* What the sequence has of them already stays; the last token is computed anew. */
static int append_new(engine *e, const model_ids *ids, base_err *err)
{
    uint32_t n, same = 0;
    const int32_t *have = e->ops->ids(e, &n);
    while (same < n && same + 1 < ids->n && have[same] == ids->ids[same]) same++;
    const int rc = e->ops->truncate(e, same, err);
    return rc ? rc : e->ops->append(e, &segment, ids->ids + same, (uint32_t)ids->n - same, err);
}

static int append_message(engine *e, const char *message, const char *opening, base_err *err)
{
    const engine_ops *o = e->ops;
    model_ids ids = {0};
    int rc = o->scaffold(e, ENGINE_START, MODEL_ROLE_USER, &ids, err);
    if (!rc) rc = o->scaffold(e, ENGINE_BEGIN, MODEL_ROLE_USER, &ids, err);
    if (!rc) rc = o->encode(e, message, strlen(message), &ids, err);
    if (!rc) rc = o->scaffold(e, ENGINE_END, MODEL_ROLE_USER, &ids, err);
    if (!rc) rc = o->scaffold(e, ENGINE_BEGIN, MODEL_ROLE_ASSISTANT, &ids, err);
    if (!rc && *opening) rc = o->encode(e, opening, strlen(opening), &ids, err);
    if (!rc) rc = append_new(e, &ids, err);
    model_ids_free(&ids);
    return rc;
}

static int write_text(engine *e, int64_t most, base_buf *out, base_err *err)
{
    const engine_ops *o = e->ops;
    base_buf text = {0};
    bool end = false;
    int rc = 0;
    base_buf_putc(&text, '\n');
    o->answer_begins(e);
    for (int64_t n = 0; !rc && !end && n < most; n++) {
        int32_t id;
        size_t len = 0;
        rc = o->next(e, KV_ORIGIN_ANSWER, 1, &id, &end, NULL, err);
        const char *piece = rc || end ? NULL : o->piece(e, id, &len);
        if (piece) base_buf_add(&text, piece, len);
        char *fence = text.len ? strstr(text.data, "\n```") : NULL;
        if (fence) text.len = (size_t)(fence - text.data);
        end |= fence != NULL;
    }
    base_buf_puts(out, "\"text\":");
    base_json_put_str(out, text.len ? text.data + 1 : "", text.len ? text.len - 1 : 0);
    base_buf_printf(out, ",\"end\":%s", end ? "true" : "false");
    base_buf_free(&text);
    return rc;
}

static int weigh(engine *e, const char *answer, base_buf *out, base_err *err)
{
    model_ids ids = {0};
    double log_p = 0;
    int rc = e->ops->encode(e, answer, strlen(answer), &ids, err);
    if (!rc) rc = e->ops->weigh(e, ids.ids, (uint32_t)ids.n, &log_p, err);
    base_buf_printf(out, "\"log_p\":%.3f,\"tokens\":%zu", log_p, (size_t)ids.n);
    model_ids_free(&ids);
    return rc;
}

static int answer(engine *e, const base_json *asked, base_err *err)
{
    const char *text = base_json_str(asked, "answer", NULL);
    base_buf out = {0};
    const uint64_t from = base_clock_ns();
    int rc = append_message(e, base_json_str(asked, "message", ""), base_json_str(asked, "opening", ""), err);
    base_buf_putc(&out, '{');
    if (!rc && text) rc = weigh(e, text, &out, err);
    if (!rc && !text) rc = write_text(e, (int64_t)base_json_num(asked, "most", 500), &out, err);
    base_buf_printf(&out, ",\"s\":%.2f}", (double)(base_clock_ns() - from) / 1e9);
    if (!rc) puts(out.data);
    fflush(stdout);
    base_buf_free(&out);
    return rc;
}

int main(int argc, char **argv)
{
    if (argc < 2) return 2;
    model_sampling sampling = MODEL_SAMPLING_DEFAULTS;
    sampling.temperature = 0;
    const engine_options options = {
        .model = {.n_threads = 1}, .kv = {.n_ctx = 4096}, .sampling = sampling, .lookup = true};
    engine *e = NULL;
    base_err err = {0};
    char *line = NULL;
    size_t cap = 0;
    int rc = engine_local_open(&e, argv[1], &options, NULL, NULL, &err);
    for (ssize_t n; !rc && (n = getline(&line, &cap, stdin)) > 0;) {
        base_json_doc *doc;
        rc = base_json_parse(line, (size_t)n, &doc, &err);
        if (!rc) {
            rc = answer(e, base_json_root(doc), &err);
            base_json_free(doc);
        }
    }
    if (rc) fprintf(stderr, "%s\n", err.msg);
    if (e) e->ops->close(e);
    free(line);
    return rc != 0;
}
