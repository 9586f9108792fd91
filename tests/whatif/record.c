/* (contract: record.h) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "agent/words/token_map.h"
#include "base/fs.h"
#include "base/mem.h"
#include "record.h"

char record_folder[64];
uint32_t record_instructions;
bool record_has_calls;
bool record_says_again;
static char log_path[96];

int record_make_folder(void **state)
{
    strcpy(record_folder, "/tmp/kvist-what-if-XXXXXX");
    if (!mkdtemp(record_folder)) return -1;
    snprintf(log_path, sizeof log_path, "%s/log.db", record_folder);
    return 0;
}

int record_drop_folder(void **state)
{
    return base_fs_remove(record_folder, NULL);
}

agent_log *record_open_log(void)
{
    agent_log *l = NULL;
    base_err err = {0};
    if (agent_log_open(&l, log_path, false, &err)) fail_msg("%s", err.msg);
    return l;
}

/* --- the fake model as an engine ------------------------------------------------------------------------ */

static int open_on_fake(void *user, const kv_options *kv, bool resume, const kv_observer *observer,
    kv_session **ret, base_err *err)
{
    const kv_compute compute = fake_compute(user, KIT_CTX);
    return (resume ? kv_session_resume_over : kv_session_new_over)(ret, &compute, kv, observer, err);
}

/* Each id is a word of its own. */
static const char *piece_of_fake(const void *user, int32_t id, size_t *ret_n)
{
    static char words[FAKE_VOCAB][8], calls[FAKE_VOCAB][64];
    if (id < 0 || id >= FAKE_VOCAB) return NULL;
    if (record_has_calls && id % 16 < 4) {
        char *call = calls[id];
        *ret_n = (size_t)snprintf(call, sizeof calls[0],
            "\n{\"name\": \"read\", \"arguments\": {\"path\": \"f%d.c\"}}\n", id / 16 % 10);
        return call;
    }
    *ret_n = (size_t)snprintf(words[id], sizeof words[id], "w%04d ", id);
    return words[id];
}

static bool is_end_of_fake(const void *user, int32_t id)
{
    return id % 31 == 7;
}

static void encode_by_fake(const void *user, const char *text, size_t n, model_ids *out)
{
    for (size_t i = 0; i < n; i += 6) model_ids_add(out, (int32_t)((unsigned char)text[i] * 3));
}

static void scaffold_of_fake(const void *user, int end, int begin, model_ids *out)
{
    if (end >= 0) model_ids_add(out, 5);
    if (begin >= 0) model_ids_add(out, 100 + begin);
}

whatif_engine fake_engine(fake_model *m)
{
    return (whatif_engine){.user = m,
        .open = open_on_fake,
        .piece = piece_of_fake,
        .n_vocab = FAKE_VOCAB,
        .is_end = is_end_of_fake,
        .encode = encode_by_fake,
        .scaffold = scaffold_of_fake};
}

/* --- recording ------------------------------------------------------------------------------------------ */

void record_event(recorder *r, agent_event *e)
{
    base_err err = {0};
    e->seq = ++r->seq;
    if (agent_log_add(r->log, r->id, e, &err)) fail_msg("%s", err.msg);
}

static void hold(void *user, agent_event *e)
{
    recorder *r = user;
    assert_true(r->n_held < 64);
    r->held[r->n_held++] = agent_event_copy(e);
}

static void on_plan(void *user, const kv_plan *p)
{
    recorder *r = user;
    r->n_plans++;
    agent_logged_tell_plan(p, r->turn, hold, r);
}

void record_release(recorder *r)
{
    for (uint32_t i = 0; i < r->n_held; i++) {
        record_event(r, r->held[i]);
        agent_event_free(r->held[i]);
    }
    r->n_held = 0;
}

/* Ends of the words that ask, as tokens. */
static uint32_t find_queries(const int32_t *ids, uint32_t n, uint32_t queries[AGENT_MAX_QUERIES])
{
    base_buf text = {0};
    uint32_t ends[AGENT_MAX_QUERIES], n_queries = 0;
    for (uint32_t i = 0; i < n; i++) {
        size_t len = 0;
        const char *piece = piece_of_fake(NULL, ids[i], &len);
        base_buf_add(&text, piece, len);
    }
    const uint32_t n_ends = agent__pick_queries(text.data, text.len, ends);
    for (uint32_t i = 0; i < n_ends; i++) {
        uint32_t token = 0;
        size_t end = 0;
        for (; token < n; token++) {
            size_t len = 0;
            piece_of_fake(NULL, ids[token], &len);
            end += len;
            if (end > ends[i] - 1) break;
        }
        if (!n_queries || queries[n_queries - 1] < token) queries[n_queries++] = token;
    }
    base_buf_free(&text);
    return n_queries;
}

/* A text as the agent appends it; returns where it begins. */
uint32_t record_text(recorder *r, kv_origin origin, const char *label, uint32_t n, float *logits)
{
    int32_t ids[CONTEXT];
    uint32_t queries[AGENT_MAX_QUERIES], ends[CONTEXT], n_queries = 0, from, n_lines;
    agent_id_row rows[CONTEXT];
    agent_length_row lens[CONTEXT];
    base_buf segment = {0};
    base_err err = {0};
    const bool asks = origin == KV_ORIGIN_USER || origin == KV_ORIGIN_TOOL || origin == KV_ORIGIN_CONTEXT;
    kit_make_ids(ids, n, FAKE_VOCAB, ++r->ids);
    base_buf text = {0};
    for (uint32_t i = 0; i < n; i++) {
        size_t len = 0;
        const char *piece = piece_of_fake(NULL, ids[i], &len);
        rows[i].id = ids[i];
        lens[i].n = (int64_t)len;
        base_buf_add(&text, piece, len);
        ends[i] = (uint32_t)text.len;
    }
    uint32_t *lines = agent__line_starts(&(agent_token_map){ends, n}, text.data, text.len, &n_lines);
    if (asks) n_queries = find_queries(ids, n, queries);
    if (n_queries) {
        base_buf_puts(&segment, "{\"queries\":[");
        for (uint32_t i = 0; i < n_queries; i++) base_buf_printf(&segment, "%s%u", i ? "," : "", queries[i]);
        base_buf_puts(&segment, "]}");
    }
    kv_session_ids(r->s, &from);
    const kv_span span = {.from = 3, .to = 9, .reason = KV_REASON_CALL, .marks = KV_MARK_CALL};
    const bool is_code = origin == KV_ORIGIN_CONTEXT;
    const kv_segment g = {.origin = origin,
        .turn = r->turn,
        .queries = n_queries ? queries : NULL,
        .n_queries = n_queries,
        .spans = is_code ? &span : NULL,
        .n_spans = is_code,
        .lines = origin == KV_ORIGIN_SCAFFOLD ? NULL : lines,
        .n_lines = origin == KV_ORIGIN_SCAFFOLD ? 0 : n_lines};
    if (kv_session_append(r->s, &g, ids, n, logits, NULL, &err)) fail_msg("%s", err.msg);
    record_event(r, &(agent_event){.type = AGENT_EVENT_append,
                        .append = {.turn = r->turn,
                            .from = from,
                            .n = n,
                            .origin = kv_origin_word(origin),
                            .label = label,
                            .text = text.data,
                            .ids = {rows, n},
                            .lens = {lens, n},
                            .segment = segment.data}});
    if (is_code)
        record_event(
            r, &(agent_event){.type = AGENT_EVENT_span,
                   .span = {.from = from + 3, .to = from + 9, .reason = "call", .marks = KV_MARK_CALL}});
    record_release(r);
    base_buf_free(&segment);
    base_buf_free(&text);
    free(lines);
    return from;
}

static int32_t best_of(const float *x)
{
    int32_t best = 0;
    for (int32_t i = 1; i < FAKE_VOCAB; i++)
        if (x[i] > x[best]) best = i;
    return best;
}

/* True: it ends with a call. */
static bool answer(recorder *r, float *logits)
{
    base_err err = {0};
    for (uint32_t i = 0; i < ANSWER; i++) {
        const int32_t id = best_of(logits);
        uint32_t at;
        kv_session_ids(r->s, &at);
        const kv_segment g = {.origin = KV_ORIGIN_ANSWER, .turn = r->turn};
        if (kv_session_append(r->s, &g, &id, 1, logits, NULL, &err)) fail_msg("%s", err.msg);
        size_t len = 0;
        const char *told = is_end_of_fake(NULL, id) ? "" : piece_of_fake(NULL, id, &len);
        record_event(
            r, &(agent_event){.type = AGENT_EVENT_token, .token = {.id = id, .index = at, .text = told}});
        record_release(r);
        if (record_has_calls && (id % 16 < 4 || is_end_of_fake(NULL, id))) return id % 16 < 4;
    }
    return false;
}

/* A result, as the agent appends it, up to the opening of the next answer. */
static void tell_result(recorder *r, float *logits)
{
    uint32_t n;
    record_text(r, KV_ORIGIN_SCAFFOLD, "-assistant+tool", 2, NULL);
    const uint32_t from = record_text(r, KV_ORIGIN_TOOL, "read f.c", REQUEST, NULL);
    const int32_t *ids = kv_session_ids(r->s, &n);
    uint32_t queries[AGENT_MAX_QUERIES];
    const uint32_t n_queries = find_queries(ids + from, REQUEST, queries);
    for (uint32_t i = 0; i < n_queries; i++) queries[i] += from;
    assert_int_equal(
        kv_session_repair(r->s, &(kv_ask){from, from + REQUEST, queries, n_queries}, NULL, NULL), 0);
    record_release(r);
    record_text(r, KV_ORIGIN_SCAFFOLD, "-tool+assistant", 2, logits);
}

void record_begin_turn(recorder *r, const char *text)
{
    r->turn++;
    record_event(r, &(agent_event){.type = AGENT_EVENT_user, .user = {.turn = r->turn, .text = text}});
    kv_session_set_turn(r->s, r->turn);
}

void record_end_turn(recorder *r)
{
    kv_stats s;
    record_text(r, KV_ORIGIN_SCAFFOLD, "-assistant", 1, NULL);
    kv_session_get_stats(r->s, &s);
    record_event(r, &(agent_event){.type = AGENT_EVENT_ledger,
                        .ledger = {.turn = r->turn, .budget = s.budget, .until = s.until, .n = s.n_tokens}});
    record_event(
        r, &(agent_event){.type = AGENT_EVENT_turn_end, .turn_end = {.turn = r->turn, .status = "closed"}});
    assert_int_equal(agent_log_commit(r->log, NULL), 0);
}

void record_ask(recorder *r)
{
    static float logits[FAKE_VOCAB];
    uint32_t queries[AGENT_MAX_QUERIES], n;
    record_text(r, KV_ORIGIN_SCAFFOLD, "+user", 2, NULL);
    record_text(r, KV_ORIGIN_CONTEXT, "context", CONTEXT, NULL);
    const uint32_t from = record_text(r, KV_ORIGIN_USER, "request", REQUEST, NULL);
    const int32_t *ids = kv_session_ids(r->s, &n);
    const uint32_t n_queries = find_queries(ids + from, REQUEST, queries);
    for (uint32_t i = 0; i < n_queries; i++) queries[i] += from;
    assert_int_equal(
        kv_session_repair(r->s, &(kv_ask){from, from + REQUEST, queries, n_queries}, NULL, NULL), 0);
    record_release(r);
    for (int i = 0; i < 2 && record_says_again; i++) record_text(r, KV_ORIGIN_CONTEXT, "quoted", 12, NULL);
    record_text(r, KV_ORIGIN_SCAFFOLD, "-user+assistant", 2, logits);
    for (int i = 0; answer(r, logits) && i < 3; i++) tell_result(r, logits);
}

recorder record_begin(agent_log *l, const char *id, fake_model *m)
{
    recorder r = {.log = l, .id = id};
    base_err err = {0};
    assert_int_equal(agent_log_create(l, id, NULL, "/tree", "fake", &err), 0);
    record_event(&r, &(agent_event){.type = AGENT_EVENT_session,
                         .session = {.schema = 1,
                             .id = id,
                             .model = "fake",
                             .model_hash = "f",
                             .policy = "kvist",
                             .budget = BUDGET,
                             .row_bytes = 64,
                             .root = "/tree",
                             .settings = "{\"backend\":\"fake\",\"repair\":-1,\"kv_set\":[]}"}});
    return r;
}

/* TURNS turns; *r stays, so that a test can go on. The observer needs its place. */
void record_turns(recorder *r, fake_model *m)
{
    const kv_compute compute = fake_compute(m, KIT_CTX);
    const kv_options kv = {.policy = "kvist", .budget = BUDGET, .repair = -1};
    const kv_observer observer = {.user = r, .plan = on_plan};
    assert_int_equal(kv_session_new_over(&r->s, &compute, &kv, &observer, NULL), 0);
    kv_session_set_turn(r->s, 0);
    record_text(r, KV_ORIGIN_SYSTEM, "prompt", SYSTEM, NULL);
    if (record_instructions) record_text(r, KV_ORIGIN_INSTRUCTIONS, "AGENTS.md", record_instructions, NULL);
    for (int turn = 0; turn < TURNS; turn++) {
        record_begin_turn(r, "what is it?");
        record_ask(r);
        record_end_turn(r);
    }
    assert_true(r->n_plans > 2);
}

/* --- comparing ------------------------------------------------------------------------------------------ */

void record_see(void *user, const agent_event *e)
{
    seen *s = user;
    s->n_plans += e->type == AGENT_EVENT_plan;
    if (e->type == AGENT_EVENT_what_if_end) base_buf_puts(&s->end, e->what_if_end.text);
    if (e->type == AGENT_EVENT_append) {
        if (s->n_own >= 0) assert_int_equal(e->append.from, s->n_own);
        s->n_own = e->append.from + e->append.n;
        assert_int_equal(e->append.ids.n, e->append.n);
    }
    if (e->type == AGENT_EVENT_ledger) {
        assert_int_equal(e->ledger.new + e->ledger.reused, e->ledger.n);
        assert_true(e->ledger.new > e->ledger.generated);
        s->n_generated += (uint32_t)e->ledger.generated;
    }
    if (e->type == AGENT_EVENT_token) assert_int_equal(e->token.index, s->n_own++);
    if (e->type == AGENT_EVENT_what_if_answer) {
        base_buf_printf(
            &s->answers, "%d %s", (int)e->what_if_answer.turn, e->what_if_answer.diff ? "other" : "same");
        assert_int_equal(!e->what_if_answer.diff, !strcmp(e->what_if_answer.was, e->what_if_answer.instead));
        for (size_t i = 0; i < e->what_if_answer.calls.n; i++)
            base_buf_printf(&s->answers, ", %s: %s", e->what_if_answer.calls.rows[i].call,
                e->what_if_answer.calls.rows[i].source);
        if (e->what_if_answer.stopped) base_buf_printf(&s->answers, "; %s", e->what_if_answer.stopped);
        base_buf_putc(&s->answers, '\n');
    }
    if (e->type != AGENT_EVENT_what_if_turn) return;
    s->n_turns++;
    s->kl += e->what_if_turn.kl;
    s->n_differ += (uint32_t)e->what_if_turn.differ;
    s->n_said += (uint32_t)e->what_if_turn.said;
    s->n_tokens += (uint32_t)e->what_if_turn.tokens;
    if (e->what_if_turn.check) base_buf_printf(&s->checks, "%s\n", e->what_if_turn.check);
    base_buf_printf(&s->turns, "%d %a %a %d %d %s %s %a", (int)e->what_if_turn.turn, e->what_if_turn.kl,
        e->what_if_turn.most, (int)e->what_if_turn.differ, (int)e->what_if_turn.index,
        e->what_if_turn.was ? e->what_if_turn.was : "-",
        e->what_if_turn.instead ? e->what_if_turn.instead : "-", e->what_if_turn.nats);
    assert_int_equal(e->what_if_turn.sides.n, 2);
    for (int side = 0; side < 2; side++) {
        const agent_side_row *row = &e->what_if_turn.sides.rows[side];
        s->evicted[side] += row->evicted;
        base_buf_printf(&s->turns, " [%d %d %a %d %a %s]", (int)row->evicted, (int)row->promoted,
            row->visited, (int)row->active, row->structure, row->why ? row->why : "-");
    }
    base_buf_putc(&s->turns, '\n');
    if (s->cancel_behind && s->n_turns == s->cancel_behind) atomic_store(&s->cancel, true);
}

void seen_free(seen *s)
{
    base_buf_free(&s->turns);
    base_buf_free(&s->end);
    base_buf_free(&s->checks);
    base_buf_free(&s->answers);
}

static void see_progress(void *user, uint32_t turn, uint32_t done, uint32_t total)
{
    seen *s = user;
    if (!s->total) s->first_done = done;
    s->went_back |= done < s->done;
    s->done = done;
    s->total = total;
}

int record_try(agent_log *l, const char *id, uint32_t budget, seen *s, bool *was_known, base_err *err)
{
    fake_model m = {.fail_after = -1};
    whatif_schedule *schedule = NULL;
    char settings[64];
    if (whatif_schedule_read(&schedule, l, id, err)) fail_msg("%s", err->msg);
    const kv_options original = {.policy = schedule->policy,
        .budget = schedule->limit.rows,
        .until = schedule->limit.until,
        .repair = schedule->repair,
        .set = schedule->set};
    kv_options changed = original;
    snprintf(
        settings, sizeof settings, "{\"budget\":%u,\"ctx\":%u,\"from\":%u}", budget, s->n_ctx, s->free_from);
    if (budget) changed.budget = budget;
    if (s->n_ctx) changed.n_ctx = s->n_ctx;
    s->n_own = -1;
    const whatif_options o = {.original = {fake_engine(&m), original, false, "original"},
        .changed = {fake_engine(&m), changed, budget != 0, "changed"},
        .settings = settings,
        .phrase = "with other rows",
        .free_from = s->free_from,
        .cancel = &s->cancel,
        .user = s,
        .event = record_see,
        .progress = see_progress};
    const int rc = whatif_run(l, schedule, &o, was_known, err);
    whatif_schedule_free(schedule);
    return rc;
}

int record_compare(agent_log *l, const char *id, uint32_t budget, seen *s, bool *was_known)
{
    base_err err = {0};
    const int rc = record_try(l, id, budget, s, was_known, &err);
    if (rc && rc != BASE_E_CANCELLED) fail_msg("%s", err.msg);
    return rc;
}
