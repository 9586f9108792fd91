/*
 * How the sizes were chosen: words of a Zipf-like vocabulary pack about as well as source text does; a plan
 * evicts what is over the budget of 4,096 rows in each lane, in runs of a few rows as the policy of logged
 * sessions does (10 to 16 KB a plan); a turn is one request, one or two excerpts, up to two calls and an
 * answer.
 */
#include "bench/cost/made_session.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/log/logged.h"
#include "base/clock.h"
#include "base/mem.h"

enum { N_WORDS = 4096, N_IDS = 150000, TOKENS_A_TURN = 5632, MAX_SCORES = 512, CHUNK = 64 };

typedef struct maker {
    agent_event_fn *emit;
    void *user;
    uint64_t random, seq, epoch;
    uint32_t turn, n, cap, words; /* tokens, tokens there is room for, 64-bit words of a lane */
    uint64_t *live;               /* [BENCH_LANES][words] */
    uint32_t n_live[BENCH_LANES];
} maker;

static double next_random(maker *m)
{
    m->random = m->random * 6364136223846793005u + 1442695040888963407u;
    return (double)(m->random >> 11) * 0x1p-53;
}

static uint32_t between(maker *m, uint32_t least, uint32_t most)
{
    return least + (uint32_t)(next_random(m) * (most - least + 1));
}

static void number_and_emit(void *user, agent_event *e)
{
    maker *m = user;
    e->seq = ++m->seq;
    m->emit(m->user, e);
}

static void emit(maker *m, agent_event e)
{
    number_and_emit(m, &e);
}

/* --- text ----------------------------------------------------------------------------------------------- */

static uint32_t any_word(maker *m)
{
    return (uint32_t)exp(next_random(m) * log(N_WORDS)) - 1;
}

static void put_word(base_buf *out, uint32_t word)
{
    static const char *const common[] = {"(", ")", ";\n    ", " = ", ", ", "->", " {\n        ", "\n    }\n",
        "return ", "if (", ".", " ", "\"", "0", "static ", "int ", " *", "for (", "const ", "1", "[", "]",
        "self.", "char ", " == ", " + ", "NULL", "def ", ":\n", "size", "_", "\n\n"};
    static const char *const syllables[] = {
        "re", "ad", "bu", "f", "en", "co", "de", "lo", "ok", "up", "pa", "th", "in", "se", "rt", "ke"};
    if (word < sizeof common / sizeof *common) {
        base_buf_puts(out, common[word]);
        return;
    }
    for (uint32_t rest = word; rest; rest /= 16) base_buf_puts(out, syllables[rest % 16]);
}

static uint32_t id_of(uint32_t word)
{
    return (uint32_t)(word * 2654435761u) % N_IDS;
}

/* --- plans ---------------------------------------------------------------------------------------------- */

static bool is_live(const maker *m, uint32_t lane, uint32_t token)
{
    return m->live[(size_t)lane * m->words + token / 64] >> (token & 63) & 1;
}

static void flip(maker *m, kv_plan *p, uint32_t lane, uint32_t token)
{
    uint64_t *word = m->live + (size_t)lane * m->words + token / 64, bit = (uint64_t)1 << (token & 63);
    *word ^= bit;
    m->n_live[lane] += *word & bit ? 1 : -1u;
    p->flips[(size_t)lane * kv_plan_words(p) + token / 64] ^= bit;
}

/*
 * Brings a lane to the budget: runs of four rows in the mean, everywhere among what is live. Returns the
 * rows.
 */
static uint32_t evict(maker *m, kv_plan *p, uint32_t lane)
{
    if (m->n_live[lane] <= BENCH_BUDGET) return 0;
    const uint32_t wanted = m->n_live[lane] - BENCH_BUDGET;
    double share = (double)wanted / m->n_live[lane], begin = share / (1 - share) / 4;
    uint32_t done = 0;
    bool on = false;
    for (uint32_t t = 420; t < m->n && done < wanted; t++) { /* the fixed prompt stays */
        if (!is_live(m, lane, t)) continue;
        on = next_random(m) < (on ? 0.75 : begin);
        if (!on) continue;
        flip(m, p, lane, t);
        done++;
    }
    return done;
}

/* Anchors of a few rows in most lanes come back. Returns the rows of all lanes. */
static uint32_t promote(maker *m, kv_plan *p)
{
    uint32_t done = 0;
    for (uint32_t anchor = 0; anchor < 8; anchor++) {
        uint32_t from = between(m, 0, m->n - 1), n = between(m, 10, 30);
        for (uint32_t lane = 0; lane < p->n_lanes; lane++) {
            if (next_random(m) < 0.2) continue;
            for (uint32_t t = from; t < from + n && t < m->n; t++) {
                if (is_live(m, lane, t)) continue;
                flip(m, p, lane, t);
                done++;
            }
        }
    }
    return done;
}

/* What a plan says to people: tokens with the number of lanes that they flip in. */
static void add_runs(const maker *m, kv_plan *p)
{
    uint32_t *evicted = base_xcalloc(m->n, sizeof *evicted), *promoted = base_xcalloc(m->n, sizeof *promoted);
    for (uint32_t lane = 0; lane < p->n_lanes; lane++) {
        const uint64_t *bits = p->flips + (size_t)lane * kv_plan_words(p);
        for (uint32_t w = 0; w < kv_plan_words(p); w++)
            for (uint64_t rest = bits[w]; rest; rest &= rest - 1) {
                uint32_t t = w * 64 + (uint32_t)__builtin_ctzll(rest);
                (is_live(m, lane, t) ? promoted : evicted)[t]++;
            }
    }
    kv_plan_add_run(p, 0, 4, KV_PROTECT, KV_REASON_SINK, p->n_lanes);
    for (uint32_t t = 0; t < m->n; t++)
        if (promoted[t])
            kv_plan_add_run(p, t, t + 1, KV_PROMOTE, KV_REASON_REPAIR_ANCHOR, promoted[t]);
        else if (evicted[t])
            kv_plan_add_run(p, t, t + 1, KV_EVICT, KV_REASON_BUDGET, evicted[t]);
    free(evicted);
    free(promoted);
}

static void emit_plan(maker *m, kv_cause cause)
{
    kv_plan *p = kv_plan_new(m->epoch++, cause, m->n, BENCH_LANES);
    if (!p) return;
    uint32_t promoted = cause == KV_CAUSE_REPAIR ? promote(m, p) : 0, evicted = 0;
    for (uint32_t lane = 0; lane < BENCH_LANES; lane++) evicted += evict(m, p, lane);
    p->evicted = (evicted + BENCH_LANES / 2) / BENCH_LANES;
    p->promoted = (promoted + BENCH_LANES / 2) / BENCH_LANES;
    if (!kv_plan_is_empty(p)) {
        add_runs(m, p);
        p->score_ms = 150 + 100 * next_random(m);
        p->plan_ms = 5 + 10 * next_random(m);
        agent_logged_tell_plan(p, m->turn, number_and_emit, m);
    }
    kv_plan_free(p);
}

/* --- pieces of a turn ----------------------------------------------------------------------------------- */

static void add_live(maker *m, uint32_t n)
{
    for (uint32_t lane = 0; lane < BENCH_LANES; lane++) {
        for (uint32_t t = m->n; t < m->n + n; t++)
            m->live[(size_t)lane * m->words + t / 64] |= (uint64_t)1 << (t & 63);
        m->n_live[lane] += n;
    }
    m->n += n;
}

/*
 * n tokens of `text_out`'s words as prefill, append and (of source) span events. text_out (may be NULL) gets
 * the text.
 */
static void append(
    maker *m, uint32_t n, const char *origin, const char *label, const char *path, base_buf *text_out)
{
    static const char *const reasons[] = {"signature", "call", "control", "return", "assign", "symbol"};
    base_buf text = {0};
    agent_id_row *ids = base_xcalloc(n + 1, sizeof *ids);
    agent_length_row *lens = base_xcalloc(n + 1, sizeof *lens);
    const uint32_t from = m->n, line = between(m, 1, 900);
    for (uint32_t i = 0; i < n; i++) {
        size_t before = text.len;
        uint32_t word = any_word(m);
        put_word(&text, word);
        ids[i].id = id_of(word);
        lens[i].n = (int64_t)(text.len - before);
    }
    for (uint32_t done = CHUNK < n ? CHUNK : n;; done = done + CHUNK < n ? done + CHUNK : n) {
        emit(m, (agent_event){
                    .type = AGENT_EVENT_prefill, .prefill = {.turn = m->turn, .done = done, .total = n}});
        if (done == n) break;
    }
    add_live(m, n);
    emit(m,
        (agent_event){.type = AGENT_EVENT_append,
            .append = {.turn = m->turn,
                .from = from,
                .n = n,
                .origin = origin,
                .label = label,
                .path = path,
                .line = path ? line : 0,
                .line_end = path ? line + n / 10 : 0,
                .version = path ? "78c5dc06dd53414a1deabfcef5528ea2b339e02fc66763e61e60e599daecb844" : NULL,
                .text = text.data,
                .ids = {ids, n},
                .lens = {lens, n}}});
    for (uint32_t t = from; path && t + 30 < from + n; t += between(m, 10, 25))
        emit(
            m, (agent_event){.type = AGENT_EVENT_span,
                   .span = {.from = t, .to = t + between(m, 1, 6), .reason = reasons[t % 6], .weight = 0.9}});
    if (text_out) base_buf_add(text_out, text.data, text.len);
    base_buf_free(&text);
    free(ids);
    free(lens);
}

static void append_scaffold(maker *m)
{
    append(m, 3, "scaffold", "role", NULL, NULL);
}

static void decode(maker *m, uint32_t n, base_buf *answer)
{
    for (uint32_t i = 0; i < n; i++) {
        base_buf text = {0};
        uint32_t word = any_word(m);
        put_word(&text, word);
        emit(m, (agent_event){.type = AGENT_EVENT_token,
                    .token = {.id = id_of(word), .index = m->n, .text = text.data}});
        base_buf_puts(answer, text.data);
        base_buf_free(&text);
        add_live(m, 1);
    }
}

static void call_tool(maker *m, const char *path)
{
    base_buf said = {0}, result = {0}, headline = {0};
    decode(m, between(m, 30, 60), &said);
    base_buf_printf(&headline, "read %s", path);
    emit(m, (agent_event){.type = AGENT_EVENT_tool_call,
                .tool_call = {.turn = m->turn,
                    .name = "read",
                    .arguments = "{\"path\":\"src/reader.c\",\"line\":120}",
                    .headline = headline.data}});
    append_scaffold(m);
    uint32_t n = between(m, 200, 1000);
    append(m, m->turn % 10 ? n : 2000, "tool", "read", path, &result);
    emit(m, (agent_event){.type = AGENT_EVENT_tool_result,
                .tool_result = {.turn = m->turn,
                    .name = "read",
                    .status = "ok",
                    .bytes = (int64_t)result.len,
                    .text = result.data,
                    .summary = headline.data,
                    .ms = 4}});
    emit_plan(m, KV_CAUSE_EVICT);
    base_buf_free(&said);
    base_buf_free(&result);
    base_buf_free(&headline);
}

static void emit_scores(maker *m)
{
    uint32_t n = 20 + m->turn * 6 < MAX_SCORES ? 20 + m->turn * 6 : MAX_SCORES, step = m->n / n;
    agent_score_row *rows = base_xcalloc(n, sizeof *rows);
    for (uint32_t i = 0; i < n; i++) {
        double x[5];
        for (int v = 0; v < 5; v++) x[v] = (double)(float)next_random(m);
        rows[i] = (agent_score_row){i * step, (i + 1) * step, "tool", "call", x[0], x[1], x[2], x[3], x[4]};
    }
    emit(m, (agent_event){.type = AGENT_EVENT_scores, .scores = {.turn = m->turn, .spans = {rows, n}}});
    free(rows);
}

static void one_turn(maker *m)
{
    base_buf request = {0}, answer = {0}, path = {0};
    const uint32_t n_before = m->n;
    base_buf_printf(&path, "src/part%u/reader%u.c", m->turn % 7, m->turn % 31);
    for (int i = 0; i < 16; i++) put_word(&request, any_word(m));
    emit(m, (agent_event){.type = AGENT_EVENT_user,
                .user = {.turn = m->turn, .text = request.data, .time_ms = base_clock_wall_ms()}});
    append_scaffold(m);
    emit(m, (agent_event){.type = AGENT_EVENT_context,
                .context = {.turn = m->turn,
                    .items = {&(agent_excerpt_row){
                                  "src/reader.c", 820, 862, "reader_get", "reader get reply (3.1)", 399},
                        1}}});
    for (uint32_t i = between(m, 1, 2); i > 0; i--)
        append(m, between(m, 150, 400), "context", "reader_get", path.data, NULL);
    append(m, 20, "user", "request", NULL, NULL);
    emit_plan(m, KV_CAUSE_EVICT);
    emit_plan(m, KV_CAUSE_REPAIR);
    append_scaffold(m);
    for (uint32_t i = between(m, 0, 2); i > 0; i--) call_tool(m, path.data);
    decode(m, between(m, 60, 180), &answer);
    emit(m, (agent_event){.type = AGENT_EVENT_answer, .answer = {.turn = m->turn, .text = answer.data}});
    emit(m, (agent_event){.type = AGENT_EVENT_places,
                .places = {.turn = m->turn,
                    .items = {&(agent_place_row){"reader_get", "defined", "src/reader.c", 820, 862,
                                  "reader_get: src/reader.c:820 (function)"},
                        1}}});
    emit_plan(m, KV_CAUSE_EVICT);
    emit_scores(m);
    emit(m, (agent_event){.type = AGENT_EVENT_ledger,
                .ledger = {.turn = m->turn,
                    .new = m->n - n_before,
                    .reused = n_before,
                    .generated = 120,
                    .active = m->n_live[0],
                    .host = m->n - m->n_live[0],
                    .budget = BENCH_BUDGET,
                    .n = m->n,
                    .ctx = m->cap,
                    .prefill_s = 5.2,
                    .decode_tps = 17.3,
                    .why = "evicted 1012 budget; promoted 156 repair-anchor"}});
    emit(m, (agent_event){.type = AGENT_EVENT_snapshot,
                .snapshot = {.turn = m->turn, .n = m->n, .bytes = (int64_t)m->n * 28672}});
    emit(m, (agent_event){.type = AGENT_EVENT_turn_end,
                .turn_end = {.turn = m->turn, .status = "closed", .time_ms = base_clock_wall_ms()}});
    base_buf_free(&request);
    base_buf_free(&answer);
    base_buf_free(&path);
}

void bench_session_make(uint32_t turns, const char *id, const char *root, agent_event_fn *emit_fn, void *user)
{
    maker m = {.emit = emit_fn, .user = user, .random = 1, .cap = (turns + 1) * TOKENS_A_TURN};
    m.words = m.cap / 64;
    m.live = base_xcalloc((size_t)BENCH_LANES * m.words, sizeof *m.live);
    emit(&m, (agent_event){.type = AGENT_EVENT_session,
                 .session = {.schema = 1,
                     .id = id,
                     .model = "a made-up session",
                     .model_hash = "5c352782b734975b361d6c0e12747cf3ba0da13b07ccdae024c11131ecbb27fb",
                     .policy = "kvist",
                     .budget = BENCH_BUDGET,
                     .n_ctx = m.cap,
                     .n_lanes = BENCH_LANES,
                     .row_bytes = 28672,
                     .mode = "ask",
                     .root = root,
                     .branch = "main",
                     .time_ms = base_clock_wall_ms(),
                     .version = KVIST_VERSION}});
    append(&m, 420, "system", "prompt", NULL, NULL);
    for (m.turn = 1; m.turn <= turns; m.turn++) one_turn(&m);
    free(m.live);
}
