/*
 * A session whose rows were lost, on the real small model: executing the logged schedule again gives the same
 * live rows in every lane, the same next logits, bit by bit, and the same decisions in the next turn. Nothing
 * here rests on what the model says.
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

#include "agent/session/session_state.h"
#include "agent/start.h"
#include "base/fs.h"
#include "base/mem.h"
#include "tiny_gguf.h"

/* Rows a lane: the prompt and a request fit, three requests do not. */
enum { BUDGET = 1950, N_TURNS = 4, DEFINITIONS = 8 };

static char folder[64], tree[96];
static char *model_path;

static int make_folders(void **state)
{
    model_path = tiny_gguf_small_model(); /* the person's: asked for before the home is another */
    strcpy(folder, "/tmp/kvist-resume-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    snprintf(tree, sizeof tree, "%s/tree", folder);
    setenv("KVIST_HOME", folder, 1);
    return mkdir(tree, 0700);
}

static int drop_folders(void **state)
{
    free(model_path);
    return base_fs_remove(folder, NULL);
}

/* A request with some 300 tokens of source in it, another one each turn. */
static void ask(agent_session *s, int turn)
{
    base_buf text = {0};
    base_buf_puts(&text, "What does this compute?\n");
    for (int i = turn * DEFINITIONS; i < (turn + 1) * DEFINITIONS; i++)
        base_buf_printf(&text,
            "def step_%d(left, right):\n"
            "    total = left * %d + right\n"
            "    return total if total > %d else left\n\n",
            i, i * 7 + 3, i * 31);
    assert_int_equal(agent_submit(agent_session_agent(s), text.data, NULL), 0);
    base_buf_free(&text);
}

typedef struct seen {
    uint32_t n_evictions;
    base_buf notices;
    atomic_bool cancel;
} seen;

static void on_event(void *user, const agent_event *e)
{
    seen *s = user;
    s->n_evictions += e->type == AGENT_EVENT_plan && e->plan.evicted > 0;
    if (e->type == AGENT_EVENT_notice) base_buf_printf(&s->notices, "%s\n", e->notice.text);
}

static agent_session *open_session(seen *h, const char *const *set, const char *resume)
{
    agent_session *s = NULL;
    base_err err = {0};
    agent_session_options options = {.dir = tree,
        .model_path = model_path,
        .mode = AGENT_MODE_PLAN,
        .resume = resume,
        .model = {.backend = "cpu"},
        .kv = {.budget = BUDGET, .repair = -1, .set = set},
        .context_tokens = UINT32_MAX,
        .max_tokens = 6};
    if (agent_session_open(&s, &options, &(agent_host){.user = h, .event = on_event}, &h->cancel, &err))
        fail_msg("%s", err.msg);
    return s;
}

/* All that the next token depends on. */
typedef struct memory {
    uint32_t n_tokens, n_lanes, words;
    int32_t *ids;
    uint64_t *bits; /* [n_lanes][words] */
    float *logits;
    uint32_t n_vocab;
} memory;

static memory look(agent_session *s)
{
    agent *a = agent_session_agent(s);
    const engine_ops *ops = a->engine->ops;
    memory m = {.n_lanes = a->info.n_lanes, .n_vocab = a->info.n_vocab};
    const int32_t *ids = ops->ids(a->engine, &m.n_tokens);
    m.words = (m.n_tokens + 63) / 64;
    m.ids = base_xcalloc(m.n_tokens, sizeof *m.ids);
    memcpy(m.ids, ids, m.n_tokens * sizeof *m.ids);
    m.bits = base_xcalloc((size_t)m.n_lanes * m.words, sizeof *m.bits);
    for (uint32_t lane = 0; lane < m.n_lanes; lane++)
        kv_session_lane_bits(a->engine->session, lane, m.bits + (size_t)lane * m.words);
    m.logits = base_xcalloc(m.n_vocab, sizeof *m.logits);
    base_err err = {0};
    if (kv_session_logits(a->engine->session, m.logits, NULL, &err)) fail_msg("%s", err.msg);
    return m;
}

static void memory_free(memory *m)
{
    free(m->ids);
    free(m->bits);
    free(m->logits);
}

static uint64_t count_active(const memory *m)
{
    uint64_t n = 0;
    for (size_t i = 0; i < (size_t)m->n_lanes * m->words; i++)
        n += (uint64_t)__builtin_popcountll(m->bits[i]);
    return n;
}

static void assert_same(const memory *a, const memory *b)
{
    assert_int_equal(a->n_tokens, b->n_tokens);
    assert_memory_equal(a->ids, b->ids, b->n_tokens * sizeof *b->ids);
    for (uint32_t lane = 0; lane < b->n_lanes; lane++)
        assert_memory_equal(
            a->bits + (size_t)lane * a->words, b->bits + (size_t)lane * b->words, b->words * sizeof *b->bits);
    assert_memory_equal(a->logits, b->logits, b->n_vocab * sizeof *b->logits);
}

static void copy_home(const char *to)
{
    base_buf command = {0};
    base_buf_printf(&command, "cp -r %s %s", folder, to);
    assert_int_equal(system(command.data), 0);
    base_buf_free(&command);
}

/*
 * Of two copies of a session one loses its rows, and what its log gives is the same memory; with everything
 * that it decides by: the next turn evicts and repairs the same in both.
 */
static void lose_rows(const char *const *set)
{
    seen first = {0}, kept = {0}, lost = {0};
    agent_session *s = open_session(&first, set, NULL);
    char *id = base_xstrdup(agent_session_id(agent_session_agent(s)));
    for (int turn = 1; turn < N_TURNS; turn++) ask(s, turn);
    memory before = look(s);
    agent_session_close(s);
    assert_true(first.n_evictions > 0);
    assert_true(count_active(&before) < (uint64_t)before.n_lanes * before.n_tokens);

    char other[96];
    snprintf(other, sizeof other, "%s-lost", folder);
    copy_home(other);
    s = open_session(&kept, set, id);
    assert_non_null(strstr(kept.notices.data, "none computed again"));
    ask(s, N_TURNS);
    memory next = look(s);
    agent_session_close(s);
    assert_true(kept.n_evictions > 0);

    base_buf rows = {0};
    base_buf_printf(&rows, "%s/data/sessions/%s/rows", other, id);
    assert_int_equal(base_fs_remove(rows.data, NULL), 0);
    setenv("KVIST_HOME", other, 1);
    s = open_session(&lost, set, id);
    assert_non_null(strstr(lost.notices.data, "tokens computed again from the log (there is no row file"));
    assert_null(strstr(lost.notices.data, "does not fit"));
    assert_null(strstr(lost.notices.data, "was interrupted"));
    memory after = look(s);
    assert_same(&after, &before);
    ask(s, N_TURNS);
    memory after_next = look(s);
    assert_int_equal(lost.n_evictions, kept.n_evictions);
    assert_same(&after_next, &next);
    agent_session_close(s);
    setenv("KVIST_HOME", folder, 1);
    assert_int_equal(base_fs_remove(other, NULL), 0);

    memory_free(&before);
    memory_free(&next);
    memory_free(&after);
    memory_free(&after_next);
    base_buf_free(&rows);
    base_buf_free(&first.notices);
    base_buf_free(&kept.notices);
    base_buf_free(&lost.notices);
    free(id);
}

static void test_resume__lost_rows_are_rebuilt_bit_by_bit(void **state)
{
    static const char *const at_each_token[] = {"low=1", NULL}; /* evicts while an answer is written, too */
    (void)state;
    if (!base_fs_exists(model_path)) {
        print_message("%s is not there; kvist model get fetches it\n", model_path);
        skip();
    }
    lose_rows(NULL);
    if (getenv("KVIST_TEST_LONG")) lose_rows(at_each_token);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_resume__lost_rows_are_rebuilt_bit_by_bit, make_folders, drop_folders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
