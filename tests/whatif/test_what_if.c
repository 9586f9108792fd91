/*
 * A session computed again beside itself. Recorded over the fake model, whose logits are a hash of all that a token
 * could read: whatever is read otherwise shows in every number. Once over the real small model, recorded by the
 * agent itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "agent/start.h"
#include "agent/words/token_map.h"
#include "base/fs.h"
#include "base/mem.h"
#include "kv/repair/heads.h"
#include "record.h"
#include "tui/record.h"
#include "tui/tui.h"
#include "tui/what_if_log.h"
#include "whatif/distance.h"
#include "whatif/summary.h"
#include "whatif/whatif.h"

/* --- tests ---------------------------------------------------------------------------------------------- */

static bool collect(
    void *user, uint64_t seq, uint32_t turn, const char *json, size_t n, const void *blob, size_t blob_n)
{
    base_buf *out = user;
    base_buf_add(out, json, n);
    base_buf_putc(out, '\n');
    return true;
}

/* The last turn's screen of a what-if. The caller frees. */
static char *screen_of(agent_log *l, const char *id)
{
    base_buf text = {0};
    base_err err = {0};
    if (tui_replay_text(l, id, 0, 120, 40, &text, &err)) fail_msg("%s", err.msg);
    return base_buf_take(&text);
}

static char *find_child(agent_log *l)
{
    char *id = NULL;
    assert_int_equal(agent_log_find(l, "2", NULL, &id, NULL), 0); /* ids begin with the year */
    return id;
}

static void test_what_if__equal_settings_differ_nowhere(void **state)
{
    fake_model m = {.fail_after = -1};
    agent_log *l = record_open_log();
    base_buf before = {0}, after = {0};
    recorder r = record_begin(l, "one", &m);
    seen s = {0};
    record_turns(&r, &m);
    assert_int_equal(agent_log_events(l, "one", collect, &before, NULL), 0);
    assert_int_equal(record_compare(l, "one", 0, &s, NULL), 0);
    assert_int_equal(s.n_turns, TURNS);
    assert_int_equal(s.n_tokens, TURNS * ANSWER);
    assert_int_equal(s.n_said, s.n_tokens); /* what was recorded is what the original says now */
    assert_int_equal(s.n_plans, r.n_plans);
    assert_int_equal(s.n_differ, 0);
    assert_true(s.kl == 0);
    assert_int_equal(s.checks.len, 0);
    assert_true(s.evicted[0] > 0);
    assert_int_equal(s.evicted[0], s.evicted[1]);
    assert_int_equal(s.n_generated, TURNS * ANSWER);
    assert_int_equal(s.first_done, SYSTEM / 2); /* one of two sides has read the first text */
    assert_false(s.went_back);
    assert_int_equal(s.done, s.total);
    assert_non_null(strstr(s.end.data, "no token would have been another one, of 96; mean KL 0.0000"));
    char *child = find_child(l), *screen = screen_of(l, child);
    assert_non_null(strstr(screen, "as recorded"));
    assert_null(strstr(screen, "^^")); /* equal rows at each turn's end */
    free(screen);
    free(child);
    assert_int_equal(agent_log_events(l, "one", collect, &after, NULL), 0);
    assert_string_equal(before.data, after.data);
    base_buf_free(&before);
    base_buf_free(&after);
    seen_free(&s);
    kv_session_free(r.s);
    agent_log_close(l);
}

/* What a repair found and was said again stands behind it: the repair asks over the same tokens as it did. */
static void test_what_if__a_repair_asks_before_what_it_found_is_said_again(void **state)
{
    fake_model m = {.fail_after = -1};
    agent_log *l = record_open_log();
    recorder r = record_begin(l, "one", &m);
    seen s = {0};
    whatif_schedule *schedule = NULL;
    record_says_again = true;
    record_turns(&r, &m);
    record_says_again = false;
    assert_int_equal(whatif_schedule_read(&schedule, l, "one", NULL), 0);
    uint32_t n_repairs = 0;
    for (size_t i = 0; i < schedule->n_steps; i++) {
        const whatif_step *t = &schedule->steps[i];
        if (t->kind != WHATIF_REPAIR) continue;
        n_repairs++;
        assert_string_equal(t[-1].label, "request");
        assert_string_equal(t[1].label, "quoted");
        assert_string_equal(t[2].label, "quoted");
        assert_string_equal(t[3].label, "-user+assistant");
    }
    assert_int_equal(n_repairs, TURNS);
    whatif_schedule_free(schedule);
    assert_int_equal(record_compare(l, "one", 0, &s, NULL), 0);
    assert_int_equal(s.n_said, s.n_tokens);
    assert_int_equal(s.n_differ, 0);
    assert_int_equal(s.checks.len, 0);
    seen_free(&s);
    kv_session_free(r.s);
    agent_log_close(l);
}

static void on_row(void *user, const agent_log_row *row)
{
    base_buf_printf(user, "%s of %s%s, %s: %s\n", row->is_what_if ? "what-if" : "session",
        *row->parent ? row->parent : "none", row->turns ? "" : ", no turns", row->status, row->title);
}

static void test_what_if__a_smaller_budget_evicts_and_is_a_child_of_its_own(void **state)
{
    fake_model m = {.fail_after = -1};
    agent_log *l = record_open_log();
    base_buf list = {0};
    base_err err = {0};
    recorder r = record_begin(l, "one", &m);
    seen s = {0}, again = {0}, third = {0};
    bool was_known = true;
    char *id = NULL;
    whatif_schedule *none = NULL;
    record_turns(&r, &m);
    assert_int_equal(record_compare(l, "one", 700, &s, &was_known), 0);
    assert_false(was_known);
    assert_true(s.evicted[1] > s.evicted[0]);
    assert_true(s.n_differ > 0 && s.kl > 0);
    assert_int_equal(s.n_said, s.n_tokens);
    assert_int_equal(s.checks.len, 0);
    assert_non_null(strstr(s.end.data, "with other rows some token of turn"));
    /* The same question is answered from what is kept, and nothing is left of the rows. */
    assert_int_equal(record_compare(l, "one", 700, &again, &was_known), 0);
    assert_true(was_known);
    assert_string_equal(again.turns.data, s.turns.data);
    assert_string_equal(again.end.data, s.end.data);
    char *child = find_child(l), *dir = agent_log_session_dir(l, child);
    base_buf rows = {0};
    base_buf_printf(&rows, "%s/changed", dir);
    assert_false(base_fs_exists(rows.data));
    /* On the screen: both strips, and marks where they differ. */
    char *screen = screen_of(l, child);
    assert_non_null(strstr(screen, "as recorded: original"));
    assert_non_null(strstr(screen, "^ differs, with changed"));
    assert_non_null(strstr(screen, "what if, all turns: with other rows"));
    assert_non_null(strstr(screen, "^^"));
    assert_non_null(strstr(screen, "what if: KL"));
    free(screen);
    /* The session goes on: what is compared ends where it did. */
    record_begin_turn(&r, "asked since");
    screen = screen_of(l, child);
    assert_null(strstr(screen, "asked since"));
    assert_non_null(strstr(screen, "turn 4 of 4"));
    free(screen);
    assert_int_equal(agent_log_list(l, NULL, on_row, &list, NULL), 0);
    assert_string_equal(list.data,
        "what-if of one, no turns, closed: what if: changed\nsession of none, closed: what is it?\n");
    /* Whoever wants the latest session means none of these. */
    assert_int_equal(agent_log_find(l, "", "/tree", &id, NULL), 0);
    assert_string_equal(id, "one");
    assert_int_equal(whatif_schedule_read(&none, l, child, &err), BASE_E_USAGE);
    assert_non_null(strstr(err.msg, "is a what-if itself, of session one"));
    assert_int_equal(agent_log_delete(l, child, &err), 0);
    assert_int_equal(record_compare(l, "one", 690, &third, NULL), 0);
    char *orphan = find_child(l);
    assert_int_equal(agent_log_delete(l, "one", &err), 0);
    assert_int_equal(tui_replay_text(l, orphan, 0, 80, 24, &list, &err), BASE_E_NOT_FOUND);
    assert_non_null(strstr(err.msg, "is not here any more"));
    base_buf_clear(&list);
    assert_int_equal(agent_log_list(l, NULL, on_row, &list, NULL), 0);
    assert_string_equal(list.data, "what-if of none, no turns, closed: what if: changed\n");
    free(orphan);
    seen_free(&third);
    free(id);
    free(child);
    free(dir);
    base_buf_free(&rows);
    base_buf_free(&list);
    seen_free(&s);
    seen_free(&again);
    kv_session_free(r.s);
    agent_log_close(l);
}

/* What `d` does in its replay: where the second strip parts from the first, and on from there. */
static void test_what_if__differing_turns_are_found_one_after_the_other(void **state)
{
    for (uint32_t budget = 0; budget <= 700; budget += 700) {
        fake_model m = {.fail_after = -1};
        assert_int_equal(budget ? record_make_folder(NULL) : 0, 0);
        agent_log *l = record_open_log();
        recorder r = record_begin(l, "one", &m);
        seen s = {0};
        base_err err = {0};
        tui_record recorded = {0}, changed = {0};
        size_t *behind = NULL, shown = 0;
        bool is_what_if;
        record_turns(&r, &m);
        assert_int_equal(record_compare(l, "one", budget, &s, NULL), 0);
        char *child = find_child(l);
        if (tui_what_if_load(l, child, &recorded, &changed, &behind, &err)) fail_msg("%s", err.msg);
        uint32_t turn = tui_record_next_difference(&changed, 0, &is_what_if);
        assert_true(is_what_if);
        assert_int_equal(turn, budget ? 2 : 0); /* in the first one nothing is evicted */
        for (uint32_t expected = 3; budget && expected <= TURNS + 1; expected++) {
            shown = tui_record_end(&changed, turn);
            turn = tui_record_next_difference(&changed, shown, &is_what_if);
            assert_int_equal(turn, expected <= TURNS ? expected : 2); /* behind the last one the first */
        }
        tui_record_next_difference(&recorded, 0, &is_what_if);
        assert_false(is_what_if);
        tui_record_free(&recorded);
        tui_record_free(&changed);
        free(behind);
        free(child);
        seen_free(&s);
        kv_session_free(r.s);
        agent_log_close(l);
        if (!budget) record_drop_folder(NULL);
    }
}

/* Interrupted behind a turn, gone on with; with and without the rows that were kept for that. */
static void test_what_if__goes_on_behind_the_turns_that_are_kept(void **state)
{
    for (int loses_rows = 0; loses_rows < 2; loses_rows++) {
        fake_model m = {.fail_after = -1};
        assert_int_equal(loses_rows ? record_make_folder(NULL) : 0, 0);
        agent_log *l = record_open_log();
        recorder r = record_begin(l, "one", &m);
        seen whole = {0}, half = {.cancel_behind = 2}, rest = {0};
        bool was_known;
        record_turns(&r, &m);
        assert_int_equal(record_compare(l, "one", 700, &half, NULL), BASE_E_CANCELLED);
        assert_int_equal(half.n_turns, 2);
        char *child = find_child(l), *dir = agent_log_session_dir(l, child);
        base_buf rows = {0};
        base_buf_printf(&rows, "%s/changed.manifest", dir);
        assert_true(base_fs_exists(rows.data));
        if (loses_rows) assert_int_equal(base_fs_remove(rows.data, NULL), 0);
        char *screen = screen_of(l, child);
        assert_non_null(strstr(screen, "interrupted behind turn 2"));
        free(screen);
        base_buf list = {0};
        agent_log_close(l); /* whoever computed it is gone, and its lock with it */
        l = record_open_log();
        assert_int_equal(agent_log_list(l, NULL, on_row, &list, NULL), 0);
        assert_non_null(strstr(list.data, "what-if of one, no turns, interrupted: what if: changed\n"));
        base_buf_free(&list);
        assert_int_equal(record_compare(l, "one", 700, &rest, &was_known), 0);
        assert_false(was_known);
        assert_int_equal(agent_log_delete(l, child, NULL), 0);
        assert_int_equal(record_compare(l, "one", 700, &whole, NULL), 0);
        assert_string_equal(rest.turns.data, whole.turns.data);
        assert_int_equal(rest.n_plans, whole.n_plans);
        base_buf_free(&rows);
        free(child);
        free(dir);
        seen_free(&half);
        seen_free(&rest);
        seen_free(&whole);
        kv_session_free(r.s);
        agent_log_close(l);
        if (!loses_rows) record_drop_folder(NULL);
    }
}

/* A person's hand, a changed file, another budget, an undone plan and a rewind: all are done again. */
static void test_what_if__orders_and_rewinds_are_done_again(void **state)
{
    fake_model m = {.fail_after = -1};
    agent_log *l = record_open_log();
    recorder r = record_begin(l, "one", &m);
    seen s = {0}, smaller = {0};
    uint32_t n;
    record_turns(&r, &m);
    kv_session_ids(r.s, &n);
    const uint32_t behind_three = n;
    assert_int_equal(kv_session_manual(r.s, KV_MANUAL_PIN, 80, 90, NULL), 0);
    assert_int_equal(kv_session_manual(r.s, KV_MANUAL_DROP, 100, 120, NULL), 0);
    assert_int_equal(kv_session_mark_stale(r.s, 200, 240, NULL), 0);
    assert_int_equal(kv_session_mark_failed(r.s, 300, 310, NULL), 0);
    assert_int_equal(kv_session_manual(r.s, KV_MANUAL_PROMOTE, 400, 420, NULL), 0);
    record_release(&r);
    assert_int_equal(kv_session_undo_plan(r.s, NULL), 0);
    record_release(&r);
    record_event(&r, &(agent_event){.type = AGENT_EVENT_notice,
                         .notice = {.turn = r.turn, .text = "the last change of the rows is taken back"}});
    assert_int_equal(kv_session_set_budget(r.s, (kv_limit){900, 0}, NULL), 0);
    record_release(&r);
    record_begin_turn(&r, "and this?");
    record_ask(&r);
    record_end_turn(&r);
    assert_int_equal(kv_session_truncate(r.s, behind_three, NULL), 0);
    r.turn--;
    record_event(
        &r, &(agent_event){.type = AGENT_EVENT_rewind, .rewind = {.turn = r.turn + 1, .n = behind_three}});
    record_begin_turn(&r, "or this?");
    record_ask(&r);
    record_end_turn(&r);
    assert_int_equal(record_compare(l, "one", 0, &s, NULL), 0);
    assert_int_equal(s.n_turns, TURNS + 2);
    assert_true(s.kl == 0);
    assert_int_equal(s.n_said, s.n_tokens);
    if (s.checks.len) fail_msg("%s", s.checks.data);
    assert_int_equal(record_compare(l, "one", 720, &smaller, NULL), 0);
    assert_true(smaller.kl > 0);
    seen_free(&s);
    seen_free(&smaller);
    kv_session_free(r.s);
    agent_log_close(l);
}

/* The prompt is of several parts: the budget that a refusal names has room for all of them. */
static void test_what_if__a_budget_that_is_too_small_names_one_that_is_not(void **state)
{
    enum { MORE = 100, LEAST = SYSTEM + MORE + 512 };
    record_instructions = MORE;
    fake_model m = {.fail_after = -1};
    agent_log *l = record_open_log();
    recorder r = record_begin(l, "one", &m);
    seen s = {0};
    record_turns(&r, &m);
    record_instructions = 0;
    base_err err = {0};
    assert_int_equal(record_try(l, "one", LEAST - 1, &s, NULL, &err), BASE_E_LIMIT);
    assert_non_null(strstr(err.msg, "take 164 rows"));
    assert_non_null(strstr(err.msg, "give at least 676"));
    assert_int_equal(record_try(l, "one", LEAST, &s, NULL, &err), 0);
    seen_free(&s);
    kv_session_free(r.s);
    agent_log_close(l);
}

static void test_what_if__another_record_is_told(void **state)
{
    fake_model m = {.fail_after = -1, .lanes_differ = true}; /* what recorded is not what computes */
    agent_log *l = record_open_log();
    recorder r = record_begin(l, "one", &m);
    seen s = {0};
    record_turns(&r, &m);
    assert_int_equal(record_compare(l, "one", 700, &s, NULL), 0);
    assert_non_null(strstr(s.checks.data, "of what the original decides is not as it was recorded"));
    assert_non_null(strstr(s.end.data, "not computed as recorded"));
    seen_free(&s);
    kv_session_free(r.s);
    agent_log_close(l);
}

static void test_schedule__says_what_a_log_lacks(void **state)
{
    fake_model m = {.fail_after = -1};
    agent_log *l = record_open_log();
    whatif_schedule *s = NULL;
    base_err err = {0};
    recorder r = record_begin(l, "one", &m), empty = record_begin(l, "empty", &m),
             holed = record_begin(l, "holed", &m);
    assert_int_equal(agent_log_commit(l, NULL), 0);
    assert_int_equal(whatif_schedule_read(&s, l, "empty", &err), BASE_E_STATE);
    assert_non_null(strstr(err.msg, "no turn that came to an end"));
    record_event(
        &holed, &(agent_event){.type = AGENT_EVENT_append,
                    .append = {.from = 5, .n = 1, .origin = "user", .ids = {&(agent_id_row){1}, 1}}});
    assert_int_equal(agent_log_commit(l, NULL), 0);
    assert_int_equal(whatif_schedule_read(&s, l, "holed", &err), BASE_E_FORMAT);
    assert_non_null(strstr(err.msg, "lacks tokens in front of 5"));
    record_turns(&r, &m);
    record_begin_turn(&r, "the last words");
    record_text(&r, KV_ORIGIN_SCAFFOLD, "+user", 2, NULL);
    assert_int_equal(agent_log_commit(l, NULL), 0);
    assert_int_equal(whatif_schedule_read(&s, l, "one", &err), 0);
    assert_true(s->is_cut && s->says_settings && !s->is_elsewhere);
    assert_int_equal(s->n_turns, TURNS);
    assert_int_equal(s->steps[s->n_steps - 1].kind, WHATIF_END);
    uint32_t n_repairs = 0;
    for (size_t i = 0; i < s->n_steps; i++) n_repairs += s->steps[i].kind == WHATIF_REPAIR;
    assert_int_equal(n_repairs, TURNS);
    whatif_schedule_free(s);
    kv_session_free(r.s);
    (void)empty;
    agent_log_close(l);
}

static void test_distance__of_two_expectations(void **state)
{
    const float a[] = {2, 1, 0}, b[] = {0, 1, 2}, c[] = {12, 11, 10};
    whatif_distance d = whatif_measure(a, a, 3, 1);
    assert_true(d.kl == 0 && d.nats == 0);
    assert_int_equal(d.best[0], 0);
    d = whatif_measure(a, c, 3, 1); /* one distribution */
    assert_true(d.kl < 1e-12);
    d = whatif_measure(a, b, 3, 1);
    assert_int_equal(d.best[0], 0);
    assert_int_equal(d.best[1], 2);
    assert_true(d.nats == 2);
    assert_float_equal(d.kl, 2 * (.66524096 - .09003057), 1e-6); /* sum of p (a - b) */
    assert_float_equal(d.nll[0], 1.40760596, 1e-6);
    assert_float_equal(d.nll[1], 1.40760596, 1e-6);
}

static void add_to_summary(whatif_summary *s, int turn, int differ, double nats, const char *check)
{
    agent_side_row sides[] = {{.ms = 100}, {.ms = 69}};
    whatif_summary_take(s, &(agent_event){.type = AGENT_EVENT_what_if_turn,
                               .what_if_turn = {.turn = turn,
                                   .sides = {sides, 2},
                                   .tokens = 10,
                                   .kl = .01,
                                   .differ = differ,
                                   .nats = nats,
                                   .check = check}});
}

static void test_summary__is_a_sentence(void **state)
{
    whatif_summary s = {0};
    base_buf out = {0};
    add_to_summary(&s, 1, 0, 0, NULL);
    add_to_summary(&s, 3, 1, .02, NULL);
    add_to_summary(&s, 7, 2, .3, "something");
    whatif_summary_put(&s, "with 2,560 rows instead of 4,096", &out);
    assert_string_equal(out.data, "with 2,560 rows instead of 4,096 some token of turns 3 and 7 would "
                                  "have been another one (the first of turn 7 by more than .1 nats); "
                                  "mean KL 0.0100 nats; 31% less time; turn 7 not computed as recorded");
    base_buf_free(&out);
    whatif_summary_free(&s);
}

/* --- the real small model ------------------------------------------------------------------------------- */

static void count_told(void *user, const agent_event *e)
{
    *(uint32_t *)user += e->type == AGENT_EVENT_plan;
}

/* Three requests with definitions in them, answered with a few tokens. The caller frees the id. */
static char *record_on_model(const char *model_path, const char *tree, uint32_t *ret_plans)
{
    agent_session *session = NULL;
    atomic_bool cancel = false;
    base_err err = {0};
    const agent_session_options options = {.dir = tree,
        .model_path = model_path,
        .mode = AGENT_MODE_PLAN,
        .model = {.backend = "cpu"},
        .kv = {.budget = 1750, .repair = -1},
        .context_tokens = UINT32_MAX,
        .max_tokens = 6};
    const agent_host host = {.user = ret_plans, .event = count_told};
    if (agent_session_open(&session, &options, &host, &cancel, &err)) fail_msg("%s", err.msg);
    for (int turn = 0; turn < 3; turn++) {
        base_buf text = {0};
        base_buf_puts(&text, "What does this compute?\n");
        for (int i = turn * 9; i < (turn + 1) * 9; i++)
            base_buf_printf(&text,
                "def step_%d(left, right):\n    total = left * %d + right\n    return total\n\n", i,
                i * 7 + 3);
        assert_int_equal(agent_submit(agent_session_agent(session), text.data, NULL), 0);
        base_buf_free(&text);
    }
    char *id = base_xstrdup(agent_session_id(agent_session_agent(session)));
    agent_session_close(session);
    return id;
}

static void test_what_if__of_the_small_model_repeats_the_record(void **state)
{
    char *path = tiny_gguf_small_model(), tree[96];
    if (!base_fs_exists(path)) {
        print_message("%s is not there; kvist model get fetches it\n", path);
        free(path);
        skip();
    }
    uint32_t n_plans = 0;
    seen s = {0};
    base_err err = {0};
    agent_log *l = NULL;
    model *m = NULL;
    whatif_schedule *schedule = NULL;
    snprintf(tree, sizeof tree, "%s/tree", record_folder);
    setenv("KVIST_HOME", record_folder, 1);
    assert_int_equal(mkdir(tree, 0700), 0);
    char *id = record_on_model(path, tree, &n_plans);
    assert_true(n_plans > 0);
    if (model_open(&m, path, &(model_options){.backend = "cpu"}, &err)) fail_msg("%s", err.msg);
    assert_int_equal(agent_log_open(&l, NULL, false, &err), 0);
    if (whatif_schedule_read(&schedule, l, id, &err)) fail_msg("%s", err.msg);
    assert_true(schedule->says_settings);
    assert_string_equal(schedule->isa, model_get_info(m)->isa);
    char *heads =
        kv_heads_path(model_get_info(m)->hash); /* that the session found before its first eviction */
    const kv_options original = {.policy = schedule->policy,
        .budget = schedule->limit.rows,
        .repair = schedule->repair,
        .set = schedule->set,
        .heads_file = heads,
        .n_ctx = schedule->n_ctx};
    kv_options changed = original;
    changed.budget = 1650;
    const whatif_options o = {.original = {whatif_model_engine(m), original, false, "original"},
        .changed = {whatif_model_engine(m), changed, true, "changed"},
        .settings = "{}",
        .phrase = "with fewer rows",
        .user = &s,
        .event = record_see};
    if (whatif_run(l, schedule, &o, NULL, &err)) fail_msg("%s", err.msg);
    if (s.checks.len) fail_msg("%s", s.checks.data); /* every plan of the record was made again */
    assert_int_equal(s.n_said, s.n_tokens);          /* at temperature 0 and without a call */
    assert_true(s.evicted[0] > 0 && s.kl > 0);
    seen_free(&s);
    /* By itself, with the settings of the record and the grammar of calls, it says what was recorded. */
    seen same = {.n_own = -1};
    whatif_options free_options = o;
    free_options.changed = o.original;
    free_options.changed.engine.grammar = whatif_model_grammar(m);
    assert_non_null(free_options.changed.engine.grammar);
    free_options.settings = "{\"from\":2}";
    free_options.free_from = 2;
    free_options.user = &same;
    if (whatif_run(l, schedule, &free_options, NULL, &err)) fail_msg("%s", err.msg);
    assert_string_equal(same.answers.data, "2 same\n3 same\n");
    assert_true(same.kl == 0);
    model_grammar_free(free_options.changed.engine.grammar);
    seen_free(&same);
    whatif_schedule_free(schedule);
    model_close(m);
    agent_log_close(l);
    free(heads);
    free(id);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_what_if__equal_settings_differ_nowhere, record_make_folder, record_drop_folder),
        cmocka_unit_test_setup_teardown(test_what_if__a_repair_asks_before_what_it_found_is_said_again,
            record_make_folder, record_drop_folder),
        cmocka_unit_test_setup_teardown(test_what_if__a_smaller_budget_evicts_and_is_a_child_of_its_own,
            record_make_folder, record_drop_folder),
        cmocka_unit_test_setup_teardown(test_what_if__differing_turns_are_found_one_after_the_other,
            record_make_folder, record_drop_folder),
        cmocka_unit_test_setup_teardown(
            test_what_if__goes_on_behind_the_turns_that_are_kept, record_make_folder, record_drop_folder),
        cmocka_unit_test_setup_teardown(
            test_what_if__orders_and_rewinds_are_done_again, record_make_folder, record_drop_folder),
        cmocka_unit_test_setup_teardown(test_what_if__a_budget_that_is_too_small_names_one_that_is_not,
            record_make_folder, record_drop_folder),
        cmocka_unit_test_setup_teardown(
            test_what_if__another_record_is_told, record_make_folder, record_drop_folder),
        cmocka_unit_test_setup_teardown(
            test_schedule__says_what_a_log_lacks, record_make_folder, record_drop_folder),
        cmocka_unit_test(test_distance__of_two_expectations),
        cmocka_unit_test(test_summary__is_a_sentence),
        cmocka_unit_test_setup_teardown(
            test_what_if__of_the_small_model_repeats_the_record, record_make_folder, record_drop_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
