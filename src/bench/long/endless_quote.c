/* See bench/long/endless_quote.h. */
#include "bench/long/endless_quote.h"

#include "agent/words/quote.h"
#include "base/buf.h"
#include "model/text/tokenizer.h"

static void put_words(const model *m, const kv_session *s, uint32_t from, uint32_t to, base_buf *out)
{
    const model_tokenizer *tokenizer = model_get_tokenizer(m);
    uint32_t n;
    const int32_t *ids = kv_session_ids(s, &n);
    for (uint32_t t = from; t < to; t++) {
        size_t len = 0;
        const char *piece = model_tokenizer_is_control(tokenizer, ids[t])
                                ? NULL
                                : model_tokenizer_piece(tokenizer, ids[t], &len);
        if (piece) base_buf_add(out, piece, len);
    }
}

static int say_again(const model *m, kv_session *s, const kv_segment *segment, const base_buf *line,
    endless_said *ret, base_err *err)
{
    base_buf text = {0};
    model_ids ids = {0};
    agent__put_quote(line, !ret->n_lines, &text);
    model_tokenizer_encode(model_get_tokenizer(m), text.data, text.len, false, &ids);
    const int r = kv_session_append(s, segment, ids.ids, (uint32_t)ids.n, NULL, NULL, err);
    ret->n_tokens += (uint32_t)ids.n;
    base_buf_free(&text);
    model_ids_free(&ids);
    return r;
}

int endless_repair(const model *m, kv_session *s, uint32_t turn, kv_ask ask, endless_said *ret, base_err *err)
{
    const kv_segment segment = {.origin = KV_ORIGIN_CONTEXT, .turn = turn};
    kv_quotes quotes = {.n = 0};
    base_buf request = {0}, recent = {0}, lines[KV_MOST_QUOTES] = {{0}};
    bool said[KV_MOST_QUOTES];
    *ret = (endless_said){.n_lines = 0};
    ask.quotes = &quotes;
    int r = kv_session_repair(s, &ask, NULL, err);
    put_words(m, s, ask.from, ask.to, &request);
    put_words(m, s, ask.to > KV_QUOTE_NEAR ? ask.to - KV_QUOTE_NEAR : 0, ask.to, &recent);
    for (uint32_t i = 0; i < quotes.n; i++)
        put_words(m, s, quotes.lines[i].from, quotes.lines[i].to, &lines[i]);
    agent__choose_quotes(request.data ? request.data : "", &recent, lines, quotes.n, said);
    for (uint32_t i = 0; i < quotes.n && !r; i++) {
        if (!said[i]) continue;
        r = say_again(m, s, &segment, &lines[i], ret, err);
        ret->from[ret->n_lines++] = quotes.lines[i].from;
    }
    for (uint32_t i = 0; i < quotes.n; i++) base_buf_free(&lines[i]);
    base_buf_free(&request);
    base_buf_free(&recent);
    return r;
}
