/*
 * What a decoded token reads (kv/read/reading.h): the splitter, the choice against a plain one, and over
 * little models, where equal bits are equal bits: everything chosen is `full`, batches, threads, resumes and
 * forks do not show, profiles that grew are profiles made anew. KVIST_SEED repeats a failed run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/hash.h"
#include "kit.h"
#include "kv/core/state.h"
#include "kv/flow/flow.h"
#include "kv/lab/lab.h"
#include "kv/policy/policy.h"
#include "kv/read/reading.h"
#include "kv/read/split.h"

/* --- the splitter --------------------------------------------------------------------------------------- */

static void test_split__knows_what_ends_a_sentence(void **state)
{
    static const struct {
        const char *text;
        kv_ending ending;
    } cases[] = {{"", KV_ENDING_NONE}, {" the", KV_ENDING_NONE}, {".", KV_ENDING_SENTENCE},
        {"?\n\n", KV_ENDING_SENTENCE}, {" wait! ", KV_ENDING_SENTENCE}, {"\xe3\x80\x82", KV_ENDING_SENTENCE},
        {"\xef\xbc\x9f", KV_ENDING_SENTENCE}, {"\n", KV_ENDING_LINE}, {");\n", KV_ENDING_LINE},
        {"\r\n    ", KV_ENDING_LINE}, {";", KV_ENDING_BLOCK}, {" }", KV_ENDING_BLOCK},
        {"));", KV_ENDING_BLOCK}, {",", KV_ENDING_OTHER}, {"):", KV_ENDING_OTHER}, {" (", KV_ENDING_NONE},
        {"   ", KV_ENDING_NONE}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(kv_ending_of_text(cases[i].text, strlen(cases[i].text)), cases[i].ending);
    assert_int_equal(kv_ending_of_text("a\0", 2), KV_ENDING_NONE);
}

static void test_split__takes_the_best_end_near_the_ideal_one(void **state)
{
    uint8_t e[40] = {0};
    assert_int_equal(kv_sentence_end(e, 21, 0, 14, 8), 0); /* it may still come */
    assert_int_equal(kv_sentence_end(e, 22, 0, 14, 8), 14);
    e[16] = KV_ENDING_OTHER;
    assert_int_equal(kv_sentence_end(e, 40, 0, 14, 8), 17);
    e[10] = KV_ENDING_OTHER; /* as far on the other side: the earlier */
    assert_int_equal(kv_sentence_end(e, 40, 0, 14, 8), 11);
    e[12] = KV_ENDING_OTHER; /* nearer */
    assert_int_equal(kv_sentence_end(e, 40, 0, 14, 8), 13);
    e[21] = KV_ENDING_SENTENCE; /* .7 against .28 + .2625 */
    assert_int_equal(kv_sentence_end(e, 40, 0, 14, 8), 22);
    e[22] = KV_ENDING_SENTENCE; /* out of reach */
    assert_int_equal(kv_sentence_end(e, 40, 0, 14, 8), 22);
    e[4] = KV_ENDING_SENTENCE; /* before the window */
    assert_int_equal(kv_sentence_end(e, 40, 0, 14, 8), 22);
    e[13] = KV_ENDING_BLOCK; /* .49 + .3 */
    assert_int_equal(kv_sentence_end(e, 40, 0, 14, 8), 14);
    /* No reach: that long exactly. */
    assert_int_equal(kv_sentence_end(e, 40, 3, 14, 0), 17);
    /* A window that begins before the sentence does. */
    memset(e, KV_ENDING_OTHER, sizeof e);
    assert_int_equal(kv_sentence_end(e, 40, 5, 2, 8), 7);
    memset(e, 0, sizeof e);
    e[5] = KV_ENDING_SENTENCE;
    assert_int_equal(kv_sentence_end(e, 40, 5, 2, 8), 6);
}

static void test_split__does_not_change_its_mind(void **state)
{
    uint64_t seed = test_seed("split", 5);
    uint8_t e[400];
    for (int round = 0; round < 300; round++) {
        const uint32_t length = 1 + test_below(&seed, 30), reach = test_below(&seed, 20);
        for (size_t i = 0; i < sizeof e; i++)
            e[i] = test_below(&seed, 4) ? KV_ENDING_NONE : (uint8_t)test_below(&seed, KV_N_ENDINGS);
        for (uint32_t from = 0, to; (to = kv_sentence_end(e, sizeof e, from, length, reach)); from = to) {
            assert_true(to > from && to <= from + length + reach);
            assert_true(to + reach >= from + length || to == from + length);
            for (uint32_t n = from + length + reach; n < sizeof e; n += 1 + test_below(&seed, 60))
                assert_int_equal(kv_sentence_end(e, n, from, length, reach), to);
        }
    }
}

/* --- the choice ----------------------------------------------------------------------------------------- */

enum { CTX = 2000 };

static uint8_t fake_ending(void *user, int32_t id)
{
    (void)user;
    return id % 7 ? KV_ENDING_NONE : (uint8_t)(id / 7 % KV_N_ENDINGS);
}

/*
 * A session over the model without weights: its forward passes read everything, the reader is asked by hand.
 */
static kv_session *open_fake(fake_model *m, const char *const *set)
{
    kv_compute c = fake_compute(m, CTX);
    c.ending = fake_ending;
    kv_session *s = NULL;
    base_err err = {0};
    if (kv_session_new_over(&s, &c, &(kv_options){.policy = "sentkv", .set = set}, NULL, &err))
        fail_msg("%s", err.msg);
    return s;
}

static bool is_listed(const model_lane_list *list, uint32_t index)
{
    for (uint32_t i = 0; i < list->n_runs; i++)
        if (index >= list->runs[i].index && index < list->runs[i].index + list->runs[i].n) {
            assert_int_equal(list->runs[i].slot, list->runs[i].index);
            return true;
        }
    return false;
}

typedef struct wanted {
    uint32_t section;
    float bound;
} wanted;

static int by_bound(const void *a, const void *b)
{
    const wanted *x = a, *y = b;
    if (x->bound != y->bound) return x->bound > y->bound ? -1 : 1;
    return x->section < y->section ? -1 : 1;
}

/* What the lane's list must be, row by row, from the definition. */
static void check_choice(const kv_session *s, const model_rows_view *rows, const model_lane_list *chosen,
    uint32_t lane, const float *bound, uint32_t n_sections, uint32_t own)
{
    static kv_section sections[CTX];
    static wanted wants[CTX];
    static bool must[CTX + 1];
    const model_lane_list *list = &rows->lanes[lane];
    uint32_t n = 0, n_live = 0, taken = 0;
    assert_true(kv_session_sections(s, sections, CTX) >= n_sections);
    memset(must, 0, sizeof must);
    for (uint32_t t = 0; t <= own; t++) n_live += is_listed(list, t);
    const uint32_t budget = kv_reading_rows(&s->parameters, n_live),
                   end = n_sections ? sections[n_sections - 1].to : 0;
    for (uint32_t t = end; t <= own; t++) taken += must[t] = is_listed(list, t);
    for (uint32_t k = 0; k < n_sections; k++) {
        bool forced = sections[k].from < s->parameters.sinks;
        for (uint32_t t = sections[k].from; t < sections[k].to; t++)
            forced = forced || kv_bits_get(s->pinned, t);
        if (!forced) {
            wants[n++] = (wanted){k, bound[k]};
            continue;
        }
        for (uint32_t t = sections[k].from; t < sections[k].to; t++) taken += must[t] = is_listed(list, t);
    }
    qsort(wants, n, sizeof *wants, by_bound);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t t = sections[wants[i].section].from;
             t < sections[wants[i].section].to && taken < budget; t++)
            taken += must[t] = is_listed(list, t);
    for (uint32_t t = 0; t <= own; t++) assert_int_equal(is_listed(chosen, t), must[t]);
    assert_int_equal(chosen->n_rows, taken);
    const model_run *last = &chosen->runs[chosen->n_runs - 1];
    assert_int_equal(last->index + last->n - 1, own);
    for (uint32_t i = 0; i < chosen->n_runs; i++) {
        const model_run *run = &chosen->runs[i];
        assert_true(
            run->n > 0 && run->slot / MODEL_ROWS_BLOCK == (run->slot + run->n - 1) / MODEL_ROWS_BLOCK);
        assert_true(i == 0 || run->index >= run[-1].index + run[-1].n);
    }
}

static void test_reading__chooses_the_highest_bounds_until_the_share_is_full(void **state)
{
    static const char *const sets[][6] = {{"usage=.1", "least_read=0"},
        {"usage=.35", "least_read=40", "sinks=4"}, {"decode=page", "usage=.05", "least_read=0"},
        {"decode=page", "page=1", "least_read=90"}, {"usage=1", "least_read=0"},
        {"usage=.02", "least_read=0", "length=3", "reach=1", "dense=1"}};
    uint64_t seed = test_seed("reading", 3);
    for (int round = 0; round < 60; round++) {
        fake_model m = {.fail_after = -1};
        const char *const *set = sets[round % 6];
        kv_session *s = open_fake(&m, set);
        const uint32_t n = 1 + test_below(&seed, 900), batch = 1 + test_below(&seed, KV_DRAFT_MAX);
        int32_t ids[1000];
        base_err err = {0};
        kit_make_ids(ids, 1000, FAKE_VOCAB, seed);
        kit_append(s, KV_ORIGIN_TOOL, 1, ids, n, NULL);
        for (int k = 0; k < 3 && n > 50; k++) { /* holes, some of them only for a while, and pins */
            const uint32_t from = test_below(&seed, n - 40), to = from + 1 + test_below(&seed, 39);
            assert_int_equal(
                kv_session_manual(s, k == 2 ? KV_MANUAL_PIN : KV_MANUAL_EVICT, from, to, &err), 0);
        }
        /* As a draft stages it. */
        if (kv_table_make_writable(&s->table, s->n, s->n + batch, &err)) fail_msg("%s", err.msg);
        if (kv_lists_append(&s->lists, batch, &err)) fail_msg("%s", err.msg);
        const model_rows_view rows = kv__view(s), *chosen;
        const model_reader *reader;
        if (kv__reading_begin(s, &rows, ids + n, n, batch, &reader, &err)) fail_msg("%s", err.msg);
        assert_non_null(reader);
        for (uint32_t layer = 0; layer < FAKE_LAYERS; layer++) {
            model_sections sections;
            assert_int_equal(reader->sections(reader->user, layer, &sections, &err), 0);
            if (layer < s->parameters.dense || s->parameters.usage >= 1)
                assert_int_equal(sections.n_sections, 0);
            if (!sections.n_sections) continue;
            const size_t n_bound = (size_t)FAKE_HEADS_KV * batch * sections.n_sections;
            for (size_t i = 0; i < n_bound; i++)
                sections.bound[i] = (float)test_below(&seed, 40) / 4 - 5; /* many are equal */
            for (uint32_t t = 0; t < batch; t++) {
                assert_int_equal(reader->choose(reader->user, layer, t, &chosen, &err), 0);
                static kv_section all[CTX];
                uint32_t visible = kv_session_sections(s, all, CTX);
                /* A sentence is one when its window is over, a page when it is. */
                for (; visible; visible--) {
                    const kv_section *last = &all[visible - 1];
                    const uint32_t known =
                        s->parameters.decode == KV_DECODE_PAGE
                            ? last->to
                            : last->from + (uint32_t)(s->parameters.length + s->parameters.reach);
                    if (known <= n + t) break;
                }
                for (uint32_t head = 0; head < FAKE_HEADS_KV; head++) {
                    const uint32_t lane = layer * FAKE_HEADS_KV + head;
                    check_choice(s, &rows, &chosen->lanes[lane], lane,
                        sections.bound + ((size_t)head * batch + t) * sections.n_sections, visible, n + t);
                }
            }
        }
        kv__withdraw(s);
        kv_session_free(s);
    }
}

/* Sections end where statements do: a call inside an assignment ends none, nor does a full stop in code. */
static void test_reading__ends_sentences_where_statements_end(void **state)
{
    fake_model m = {.fail_after = -1};
    kv_session *s = open_fake(&m, (const char *const[]){"least_read=0", NULL});
    int32_t ids[80];
    for (int i = 0; i < 80; i++) ids[i] = 1;
    ids[9] = 7 * KV_ENDING_SENTENCE; /* x.y */
    ids[17] = 7 * KV_ENDING_BLOCK;   /* behind the statement */
    const kv_span spans[] = {
        {.from = 0, .to = 80, .reason = KV_REASON_SYMBOL, .marks = KV_MARK_SYMBOL},
        {.from = 2, .to = 4, .reason = KV_REASON_ASSIGN, .marks = KV_MARK_ASSIGN | KV_MARK_CORE},
        {.from = 2, .to = 17, .reason = KV_REASON_ASSIGN, .marks = KV_MARK_ASSIGN | KV_MARK_CALL},
        {.from = 5, .to = 7, .reason = KV_REASON_CALL, .marks = KV_MARK_CALL | KV_MARK_CORE},
        {.from = 5, .to = 13, .reason = KV_REASON_CALL, .marks = KV_MARK_CALL},
        {.from = 20, .to = 33, .reason = KV_REASON_RETURN, .marks = KV_MARK_RETURN | KV_MARK_CORE},
    };
    const kv_segment g = {.origin = KV_ORIGIN_TOOL, .turn = 1, .spans = spans, .n_spans = 6};
    base_err err = {0};
    if (kv_session_append(s, &g, ids, 80, NULL, NULL, &err)) fail_msg("%s", err.msg);
    kit_append(s, KV_ORIGIN_ANSWER, 1, ids, 1, NULL);
    kv_section sections[8];
    assert_true(kv_session_sections(s, sections, 8) >= 3);
    assert_int_equal(sections[0].to, 18); /* with the semicolon */
    assert_int_equal(sections[1].to, 33);
    assert_int_equal(sections[2].to, 47); /* nothing there: the ideal end */
    /* Without syntax the full stop is one. */
    assert_int_equal(
        kv_session_set_policy(
            s, &(kv_options){.policy = "sentkv", .set = (const char *const[]){"syntax=0", NULL}}, &err),
        0);
    kit_append(s, KV_ORIGIN_ANSWER, 1, ids, 1, NULL);
    assert_true(kv_session_sections(s, sections, 8) >= 1);
    assert_int_equal(sections[0].to, 10);
    kv_session_free(s);
}

/* --- over little models --------------------------------------------------------------------------------- */

/* Who reads less than everything, and whose tokens do. */
typedef struct reads {
    const char *policy, *set[7];
    uint32_t budget;
    kv_origin written;
} reads;

static const reads tenth = {"sentkv", {"usage=.1", "least_read=0"}, 0, KV_ORIGIN_ANSWER};
static const reads visits = {"kvist", {"visit=.1"}, 600, KV_ORIGIN_CALL};

static kv_options options_of(const reads *r, const char *row_file)
{
    return (kv_options){.policy = r->policy,
        .set = r->set,
        .budget = r->budget,
        .repair = -1,
        .n_ctx = CTX,
        .row_file = row_file};
}

static kv_session *open_session(model *m, const reads *r, const char *row_file)
{
    kv_session *s = NULL;
    base_err err = {0};
    const kv_options o = options_of(r, row_file);
    if (kv_session_new(&s, m, &o, NULL, &err)) fail_msg("%s", err.msg);
    return s;
}

/* Prompt, answer, prompt, answer: a hash of all logits behind the answers' tokens. With a row file: what was read. */
static uint64_t run_answers_with(model *m, const reads *r, const char *row_file, kv_reads *ret)
{
    kv_session *s = open_session(m, r, row_file);
    float logits[TINY_GGUF_VOCAB];
    int32_t ids[900];
    uint64_t hash = 0;
    kit_make_ids(ids, 900, TINY_GGUF_VOCAB, 21);
    kit_append(s, KV_ORIGIN_USER, 1, ids, 400, NULL);
    for (uint32_t i = 400; i < 900; i++) {
        const bool prompt = i >= 460 && i < 840;
        kit_append(s, prompt ? KV_ORIGIN_TOOL : r->written, 1, ids + i, prompt ? 380 : 1, logits);
        if (prompt && r->budget && kv_session_manual(s, KV_MANUAL_EVICT, 100, 300, NULL))
            fail_msg("nothing was evicted");
        if (prompt) i = 839;
        hash = base_hash64(logits, sizeof logits, hash);
    }
    kv_stats stats;
    kv_session_get_stats(s, &stats);
    if (ret) *ret = stats.reads;
    kv_session_free(s);
    return hash;
}

static uint64_t run_answers(model *m, const reads *r)
{
    return run_answers_with(m, r, NULL, NULL);
}

static void test_reading__everything_chosen_is_full(void **state)
{
    static const reads all[] = {{"sentkv", {"usage=1", "least_read=0"}, 0, KV_ORIGIN_ANSWER},
        {"sentkv", {"usage=.01", "least_read=5000"}, 0, KV_ORIGIN_ANSWER},
        {"sentkv", {"usage=.1", "least_read=0", "dense=99"}, 0, KV_ORIGIN_ANSWER},
        {"sentkv", {"decode=page", "usage=1"}, 0, KV_ORIGIN_ANSWER},
        {"sentkv", {"decode=all"}, 0, KV_ORIGIN_ANSWER}, {"kvist", {"visit=.3"}, 1200, KV_ORIGIN_CALL}};
    static const reads full = {"full", {NULL}, 0, KV_ORIGIN_ANSWER};
    const tiny_gguf specs[] = {TINY_GGUF_QWEN2, TINY_GGUF_LLAMA, TINY_GGUF_GEMMA3};
    for (size_t k = 0; k < 3; k++) {
        model *m = kit_open_tiny(&specs[k], 2);
        const uint64_t hash = run_answers(m, &full);
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            if (specs[k].window && all[i].budget)
                continue; /* layers with a window read their lists */
            else
                assert_true(run_answers(m, &all[i]) == hash);
        assert_true(run_answers(m, &tenth) != hash);
        assert_true(run_answers(m, &visits) != hash);
        model_close(m);
    }
}

static void test_reading__does_not_depend_on_threads(void **state)
{
    const tiny_gguf specs[] = {TINY_GGUF_QWEN2, TINY_GGUF_LLAMA, TINY_GGUF_GEMMA3};
    for (size_t k = 0; k < 3; k++) {
        model *one = kit_open_tiny(&specs[k], 1), *three = kit_open_tiny(&specs[k], 3);
        static const reads quest = {"quest", {"usage=.1", "least_read=0"}, 0, KV_ORIGIN_ANSWER};
        assert_true(run_answers(one, &tenth) == run_answers(three, &tenth));
        assert_true(run_answers(one, &quest) == run_answers(three, &quest));
        assert_true(run_answers(one, &visits) == run_answers(three, &visits));
        model_close(one);
        model_close(three);
    }
}

/* Rows that lie on disk are read as those in memory are, whatever is kept of them and read ahead. */
static void test_reading__where_rows_lie_does_not_show(void **state)
{
    static const reads all[][2] = {
        {{"sentkv", {"usage=.1", "least_read=0", "host=.01", "kept=1", "ahead=0"}, 0, KV_ORIGIN_ANSWER},
            {"sentkv", {"usage=.1", "least_read=0", "host=.01", "kept=4", "ahead=.5"}, 0, KV_ORIGIN_ANSWER}},
        {{"quest", {"usage=.1", "least_read=0", "dense=0", "host=.01", "kept=1", "ahead=0"}, 0,
             KV_ORIGIN_ANSWER},
            {"quest", {"usage=.1", "least_read=0", "dense=0", "host=.01", "kept=4", "ahead=1"}, 0,
                KV_ORIGIN_ANSWER}}};
    const tiny_gguf specs[] = {TINY_GGUF_QWEN2, TINY_GGUF_LLAMA, TINY_GGUF_GEMMA3};
    for (size_t k = 0; k < 6; k++) {
        model *m = kit_open_tiny(&specs[k % 3], 2);
        const reads near = {
            all[k / 3][0].policy, {"usage=.1", "least_read=0", "dense=0"}, 0, KV_ORIGIN_ANSWER};
        const uint64_t hash = run_answers(m, &near);
        kv_reads few, many;
        char folder[] = "/tmp/kvist-test-XXXXXX", path[64];
        assert_non_null(mkdtemp(folder));
        snprintf(path, sizeof path, "%s/rows", folder);
        assert_true(run_answers_with(m, &all[k / 3][0], path, &few) == hash);
        assert_true(run_answers_with(m, &all[k / 3][1], path, &many) == hash);
        assert_true(few.fetched > 0 && few.found > 0 && few.ahead == 0 && few.copies_bytes > 0);
        /* What was read ahead and did not come in time is read again, so how much that spares is not said here. */
        assert_true(many.fetched > 0 && many.ahead > 0);
        assert_int_equal(many.fetched + many.found, few.fetched + few.found);
        model_close(m);
        assert_int_equal(base_fs_remove(folder, NULL), 0);
    }
}

/* How the session got there does not show: it goes on as one whose sections and profiles are made anew. */
static void test_reading__generated_sequences_leave_no_trace(void **state)
{
    enum { KINDS = 9 };
    const int n_steps = (int)test_length(100, 400);
    uint64_t seed = test_seed("reading sequences", 17);
    static const reads all[] = {{"sentkv", {"usage=.1", "least_read=0"}, 0, KV_ORIGIN_ANSWER},
        {"sentkv", {"usage=.3", "least_read=20", "sinks=4"}, 0, KV_ORIGIN_ANSWER},
        {"sentkv", {"decode=page", "usage=.1", "page=8", "slack=.5"}, 0, KV_ORIGIN_ANSWER},
        {"sentkv", {"usage=.1", "least_read=0", "host=.01", "ahead=.5"}, 0, KV_ORIGIN_ANSWER},
        {"kvist", {"visit=.1"}, 600, KV_ORIGIN_CALL}};
    const tiny_gguf specs[] = {TINY_GGUF_QWEN2, TINY_GGUF_GEMMA3};
    for (size_t k = 0; k < 10; k++) {
        const reads *r = &all[k / 2];
        model *m = kit_open_tiny(&specs[k % 2], 1);
        char folder[] = "/tmp/kvist-test-XXXXXX", path[64];
        assert_non_null(mkdtemp(folder));
        snprintf(path, sizeof path, "%s/rows", folder);
        kv_session *s = open_session(m, r, path), *other = NULL;
        int32_t ids[128];
        static float logits[KV_DRAFT_MAX][TINY_GGUF_VOCAB], again[TINY_GGUF_VOCAB];
        base_err err = {0};
        for (int step = 0; step < n_steps; step++) {
            uint32_t n = 0, room = kv_session_room(s);
            kv_session_ids(s, &n);
            const uint32_t count = 1 + test_below(&seed, 100), at = n ? test_below(&seed, n) : 0;
            const kv_segment answer = {.origin = r->written, .turn = 1};
            kit_make_ids(ids, 128, TINY_GGUF_VOCAB, seed);
            if (room < 200) {
                assert_int_equal(kv_session_truncate(s, 300, &err), 0);
                continue;
            }
            switch (test_below(&seed, KINDS)) {
            case 0: kit_append(s, KV_ORIGIN_TOOL, 1, ids, count, NULL); break;
            case 1:
                for (uint32_t i = 0; i < count % 20; i++) kit_append(s, r->written, 1, ids + i, 1, logits[0]);
                break;
            case 2: kit_append(s, r->written, 1, ids, count, NULL); break;
            case 3: { /* a draft of which some is accepted */
                const uint32_t n_draft = 1 + count % KV_DRAFT_MAX, n_accept = test_below(&seed, n_draft + 1);
                if (kv_session_draft(s, &answer, ids, n_draft, 0, logits[0], NULL, &err))
                    fail_msg("%s", err.msg);
                for (uint32_t i = 0; i < n_accept && kv_session_drafted(s, NULL); i++)
                    if (kv_session_accept(s, &answer, logits[i], NULL, &err)) fail_msg("%s", err.msg);
                break;
            }
            case 4:
                if (at) assert_int_equal(kv_session_truncate(s, n - (at < 60 ? at : 60), &err), 0);
                break;
            case 5:
            case 6:
            case 7: {
                static const kv_manual hands[] = {
                    KV_MANUAL_EVICT, KV_MANUAL_PROMOTE, KV_MANUAL_PIN, KV_MANUAL_UNPIN};
                if (n > 130)
                    kv_session_manual(
                        s, hands[test_below(&seed, 4)], at % (n - 120), at % (n - 120) + count, &err);
                break;
            }
            default: /* saved, and opened again */
                if (!n) break;
                if (kv_session_save(s, &err)) fail_msg("%s", err.msg);
                const kv_options o = options_of(r, path);
                kv_session_free(s);
                if (kv_session_resume(&s, m, &o, NULL, &err)) fail_msg("%s", err.msg);
            }
            kv_session_ids(s, &n);
            if (n < 2) continue;
            if (kv_session_fork(s, &other, NULL, &err)) fail_msg("%s", err.msg);
            kit_append(other, r->written, 1, ids, 1, again);
            if (kv_session_draft(s, &answer, ids, 1, 0, logits[0], NULL, &err)) fail_msg("%s", err.msg);
            if (memcmp(logits[0], again, sizeof again))
                fail_msg("other logits behind step %d, %u tokens", step, n);
            kv_session_free(other);
        }
        kv_stats stats;
        kv_session_get_stats(s, &stats);
        assert_true(r->budget || stats.reads.read < stats.reads.live);
        assert_true(stats.reads.kept <= stats.reads.chosen && stats.reads.chosen <= stats.reads.read);
        kv_session_free(s);
        model_close(m);
        assert_int_equal(base_fs_remove(folder, NULL), 0);
    }
}

/* Looking at the last token again changes nothing (the caller goes on comparing). Returns whether it had a choice. */
static bool check_found(kv_session *s)
{
    kv_found found;
    base_err err;
    const int rc = kv_session_found(s, &found, &err);
    if (rc == BASE_E_STATE) return false;
    if (rc) fail_msg("%s", err.msg);
    assert_true(found.n_lanes && found.rows > .5 && found.rows <= 1);
    assert_true(found.worst > .5 && found.worst <= found.mass && found.mass <= 1.0001);
    return true;
}

/* Drafts, right and wrong, against token by token; logits of the last token again are its logits. */
static void test_reading__drafts_read_what_single_tokens_read(void **state)
{
    enum { TOKENS = 300 };
    const tiny_gguf specs[] = {TINY_GGUF_QWEN2, TINY_GGUF_GEMMA3};
    uint64_t seed = test_seed("reading drafts", 29);
    for (size_t k = 0; k < 4; k++) {
        const reads *r = k < 2 ? &tenth : &visits;
        model *m = kit_open_tiny(&specs[k % 2], 2);
        kv_session *plain = open_session(m, r, NULL), *ahead = open_session(m, r, NULL);
        const kv_segment g = {.origin = r->written, .turn = 1};
        int32_t ids[500 + TOKENS], draft[KV_DRAFT_MAX];
        static float logits[KV_DRAFT_MAX][TINY_GGUF_VOCAB], want[TINY_GGUF_VOCAB], got[TINY_GGUF_VOCAB];
        base_err err = {0};
        kit_make_ids(ids, 500 + TOKENS, TINY_GGUF_VOCAB, 4);
        kit_append(plain, KV_ORIGIN_USER, 1, ids, 500, NULL);
        kit_append(ahead, KV_ORIGIN_USER, 1, ids, 500, NULL);
        uint32_t n_found = 0;
        for (uint32_t i = 500, row = 0; i < 500 + TOKENS; i++, row++) {
            kit_append(plain, r->written, 1, ids + i, 1, want);
            const int32_t *next;
            if (!kv_session_drafted(ahead, &next) || next[0] != ids[i]) {
                uint32_t n = 1 + test_below(&seed, KV_DRAFT_MAX), wrong = test_below(&seed, 2 * KV_DRAFT_MAX);
                if (n > 500 + TOKENS - i) n = 500 + TOKENS - i;
                for (uint32_t j = 0; j < n; j++)
                    draft[j] = j && j == wrong ? (ids[i + j] + 1) % TINY_GGUF_VOCAB : ids[i + j];
                if (kv_session_draft(ahead, &g, draft, n, 0, logits[0], NULL, &err)) fail_msg("%s", err.msg);
                row = 0;
            }
            assert_memory_equal(logits[row], want, sizeof want);
            if (kv_session_accept(ahead, &g, NULL, NULL, &err)) fail_msg("%s", err.msg);
            assert_true(kv_session_schedule_hash(plain) == kv_session_schedule_hash(ahead));
            if (!(i % 50) && r->budget) n_found += check_found(plain);
            if (i % 50 || r->budget) continue; /* a pass behind the token changes what it would read again */
            assert_int_equal(
                kv_session_logits(ahead, got, NULL, &err), 0); /* computed again, forgets the draft or not */
            assert_memory_equal(got, want, sizeof want);
            double recovered = 0;
            if (kv_session_recovered(plain, &recovered, &err)) fail_msg("%s", err.msg);
            assert_true(recovered > 0 && recovered <= 1.0001);
            for (int side = 0; side < 2; side++) { /* once more */
                assert_int_equal(kv_session_truncate(side ? ahead : plain, i, &err), 0);
                kit_append(side ? ahead : plain, r->written, 1, ids + i, 1, got);
                assert_memory_equal(got, want, sizeof want);
            }
        }
        assert_true(!r->budget || n_found);
        kv_session_free(plain);
        kv_session_free(ahead);
        model_close(m);
    }
}

/* What is written is visited: token by token it has the bits of a batch, and what follows needs nothing more. */
static void test_reading__an_answer_is_visited_while_it_is_written(void **state)
{
    enum { REQUEST = 400, SAID = 60, RESULT = 40 };
    const tiny_gguf specs[] = {TINY_GGUF_QWEN2, TINY_GGUF_LLAMA};
    for (size_t k = 0; k < 2; k++) {
        model *m = kit_open_tiny(&specs[k], 2);
        static float said[2][TINY_GGUF_VOCAB], after[3][TINY_GGUF_VOCAB];
        int32_t ids[REQUEST + SAID + RESULT];
        kit_make_ids(ids, REQUEST + SAID + RESULT, TINY_GGUF_VOCAB, 12);
        for (int way = 0; way < 3; way++) { /* by tokens, as a batch, by tokens that read their lists alone */
            const reads r = {"kvist", {way < 2 ? "visit=.1" : "visit=0"}, 600, KV_ORIGIN_ANSWER};
            kv_session *s = open_session(m, &r, NULL);
            kit_append(s, KV_ORIGIN_USER, 1, ids, REQUEST, NULL);
            assert_int_equal(kv_session_manual(s, KV_MANUAL_EVICT, 100, 300, NULL), 0);
            const uint32_t step = way == 1 ? SAID : 1;
            for (uint32_t i = 0; i < SAID; i += step)
                kit_append(s, KV_ORIGIN_ANSWER, 1, ids + REQUEST + i, step, way < 2 ? said[way] : NULL);
            kv_stats before, now;
            kv_session_get_stats(s, &before);
            kit_append(s, KV_ORIGIN_TOOL, 1, ids + REQUEST + SAID, RESULT, after[way]);
            kv_session_get_stats(s, &now);
            assert_int_equal(now.computed - before.computed, RESULT);
            kv_session_free(s);
        }
        assert_memory_equal(said[0], said[1], sizeof said[0]);
        assert_memory_equal(after[0], after[1], sizeof after[0]);
        assert_memory_not_equal(after[0], after[2], sizeof after[0]);
        model_close(m);
    }
}

/* Without what a repair outshone: token by token as in a batch and in a fork. */
static void test_reading__what_is_outshone_leaves_no_trace(void **state)
{
    enum { TEXT = 400, ASKS = 20, SAID = 60 };
    model *m = kit_open_tiny(&TINY_GGUF_QWEN2, 2);
    static float said[4][TINY_GGUF_VOCAB];
    int32_t ids[TEXT + ASKS + SAID];
    kit_make_ids(ids, TEXT + ASKS + SAID, TINY_GGUF_VOCAB, 12);
    for (int way = 0; way < 4; way++) { /* by tokens, as a batch, in a fork, with all that may visit */
        const reads r = {"kvist", {"visit=.1", way < 3 ? "focus=1" : "focus=0"}, 600, KV_ORIGIN_ANSWER};
        kv_session *s = open_session(m, &r, NULL), *f = NULL;
        base_err err = {0};
        kit_append(s, KV_ORIGIN_TOOL, 1, ids, TEXT, NULL);
        assert_int_equal(kv_session_manual(s, KV_MANUAL_EVICT, 20, 380, NULL), 0);
        kit_fold(s);
        kit_append(s, KV_ORIGIN_USER, 2, ids + TEXT, ASKS, NULL);
        assert_int_equal(kv_session_repair(s, &(kv_ask){TEXT, TEXT + ASKS}, NULL, &err), 0);
        assert_true((kv_bits_count(s->outshone, kv_bits_words(s->n)) > 0) == (way < 3));
        if (way == 2) {
            assert_int_equal(kv_session_fork(s, &f, NULL, &err), 0);
            kv_session_free(s);
            s = f;
        }
        const uint32_t step = way == 1 ? SAID : 1;
        for (uint32_t i = 0; i < SAID; i += step)
            kit_append(s, KV_ORIGIN_ANSWER, 2, ids + TEXT + ASKS + i, step, said[way]);
        kv_session_free(s);
        if (way < 3) assert_memory_equal(said[way], said[0], sizeof said[0]);
    }
    assert_memory_not_equal(said[3], said[0], sizeof said[0]);
    model_close(m);
}

/* A text of one token, a budget below a sentence, a session that just began. */
static void test_reading__odd_texts(void **state)
{
    static const reads little = {"sentkv", {"usage=.001", "least_read=0"}, 0, KV_ORIGIN_ANSWER};
    model *m = kit_open_tiny(&TINY_GGUF_QWEN2, 2);
    int32_t ids[1200];
    float logits[TINY_GGUF_VOCAB];
    for (int i = 0; i < 1200; i++) ids[i] = 7;
    for (uint32_t n = 1; n <= 1200; n = n * 3 + 1) {
        kv_session *s = open_session(m, &little, NULL);
        kit_append(s, KV_ORIGIN_TOOL, 1, ids, n, NULL);
        for (int i = 0; i < 60; i++) kit_append(s, KV_ORIGIN_ANSWER, 1, ids, 1, logits);
        for (uint32_t v = 0; v < TINY_GGUF_VOCAB; v++) assert_true(logits[v] == logits[v]);
        kv_stats stats;
        kv_session_get_stats(s, &stats);
        assert_int_equal(stats.reads.steps, 60);
        /* What is being written is always read, and that is less than two sentences long. */
        if (n > 300) assert_true(stats.reads.read <= stats.reads.steps * stats.n_lanes * 24);
        kv_session_free(s);
    }
    kv_session *s = open_session(m, &little, NULL);
    kit_append(s, KV_ORIGIN_ANSWER, 1, ids, 1, logits); /* the very first token */
    assert_int_equal(kv_session_sections(s, NULL, 0), 0);
    kv_session_free(s);
    model_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_split__knows_what_ends_a_sentence),
        cmocka_unit_test(test_split__takes_the_best_end_near_the_ideal_one),
        cmocka_unit_test(test_split__does_not_change_its_mind),
        cmocka_unit_test(test_reading__chooses_the_highest_bounds_until_the_share_is_full),
        cmocka_unit_test(test_reading__ends_sentences_where_statements_end),
        cmocka_unit_test(test_reading__everything_chosen_is_full),
        cmocka_unit_test(test_reading__where_rows_lie_does_not_show),
        cmocka_unit_test(test_reading__does_not_depend_on_threads),
        cmocka_unit_test(test_reading__generated_sequences_leave_no_trace),
        cmocka_unit_test(test_reading__drafts_read_what_single_tokens_read),
        cmocka_unit_test(test_reading__an_answer_is_visited_while_it_is_written),
        cmocka_unit_test(test_reading__what_is_outshone_leaves_no_trace),
        cmocka_unit_test(test_reading__odd_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
