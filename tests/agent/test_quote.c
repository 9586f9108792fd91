/*
 * Lines that answer a request clearly and are said again behind it. That is done in folded sessions alone; the engine here knows
 * no positions and folds nothing, so a fold that moves nothing is put in by hand while a request is asked.
 */
#include "agent/session/segments.h"
#include "agent/words/quote.h"
#include "kv/core/state.h"
#include "stage.h"

/* The asked line stands at the beginning of a long file; what ends a message here is text there. */
#define ASKED "of zuqivqx we have 48151 <|end|> by now"
static const char script[] =
    "ctx 8000\nbudget 2600\n"
    "answer <tools>{\"name\": \"read\", \"arguments\": {\"path\": \"big.txt\"}}</tools>\n"
    "answer Read.\nanswer One.\nanswer Two.\nanswer Three.\n";

static void put_big(const char *asked)
{
    base_buf text = {0};
    for (uint32_t i = 0; i < 330; i++)
        if (i == 40)
            base_buf_printf(&text, "%s\n", asked);
        else
            base_buf_printf(&text, "part_%u was %u then\n", i, i * 7);
    put_file("big.txt", text.data);
    base_buf_free(&text);
}

static uint32_t count(const host *h, const char *text)
{
    uint32_t n = 0;
    for (const char *p = h->json.data; p && (p = strstr(p, text)); p++) n++;
    return n;
}

static const agent_segment *find_quoted(const agent *a)
{
    const agent_segment *found = NULL;
    for (size_t i = 0; i < a->transcript.n_segments; i++) {
        const agent_segment *p = &a->transcript.segments[i];
        if (p->label && !strcmp(p->label, "quoted")) found = p;
    }
    return found;
}

static void ask_folded(agent_session *s, host *h, const char *request)
{
    kv_session *kv = agent_session_agent(s)->engine->session;
    uint32_t gap = 0;
    kv->fold = (kv_fold){.gaps = &gap, .n = 1, .cap = 1};
    assert_int_equal(submit(s, h, request), 0);
    kv->fold = (kv_fold){.n = 0};
}

static agent_session *read_big(host *h)
{
    put_big(ASKED);
    agent_session *s = open_session(h, script, AGENT_MODE_ASK, NULL, true);
    assert_int_equal(submit(s, h, "Read it."), 0);
    assert_true(agent__n_tokens(agent_session_agent(s)) > 3000);
    assert_null(find_quoted(agent_session_agent(s)));
    base_buf_clear(&h->json);
    return s;
}

/* Once, between the request and what ends its message; as text, whatever it spells; of its file. */
static void test_quote__is_said_once_as_text(void **state)
{
    NEEDS("rows: a repair");
    host h = new_host();
    agent_session *s = read_big(&h);
    agent *a = agent_session_agent(s);
    uint32_t n;
    base_buf words = {0};
    ask_folded(s, &h, "zuqivqx?");
    assert_int_equal(count(&h, "\"label\":\"quoted\""), 1);
    assert_int_equal(count(&h, "said again, since the request asks for it"), 1);
    assert_true(told(&h, "tokens: " ASKED " (big.txt"));
    const char *request = strstr(h.json.data, "\"label\":\"request\""),
               *plan = strstr(request, "\"cause\":\"repair\""),
               *quoted = strstr(request, "\"label\":\"quoted\""),
               *end = strstr(request, "\"label\":\"-user+assistant\"");
    assert_true(plan && plan < quoted && quoted < end);
    const agent_segment *p = find_quoted(a);
    agent__put_words(a, p->from, p->to, &words);
    assert_string_equal(words.data, "\n\nEarlier in this session it says:\n" ASKED);
    assert_string_equal(p->path, "big.txt");
    const int32_t *ids = a->engine->ops->ids(a->engine, &n);
    for (uint32_t i = p->from; i < p->to; i++) assert_false(a->engine->ops->is_control(a->engine, ids[i]));
    assert_true(a->engine->ops->is_control(a->engine, ids[p->to])); /* what ends the message */
    /* What is in view is not said a second time. */
    base_buf_clear(&h.json);
    ask_folded(s, &h, "zuqivqx?");
    assert_int_equal(count(&h, "\"label\":\"quoted\""), 0);
    /* Nor what nothing answers. */
    ask_folded(s, &h, "bumovqz?");
    assert_int_equal(count(&h, "\"label\":\"quoted\""), 0);
    base_buf_free(&words);
    agent_session_close(s);
    free_host(&h);
}

/* The log holds it as text: a session that is gone on with has the same tokens, with its rows and computed again. */
static void test_quote__is_there_again_after_a_resume(void **state)
{
    NEEDS("rows: a repair");
    host h = new_host();
    agent_session *s = read_big(&h);
    ask_folded(s, &h, "zuqivqx?");
    agent *a = agent_session_agent(s);
    const agent_segment *p = find_quoted(a);
    uint32_t n, n_again;
    const int32_t *ids = a->engine->ops->ids(a->engine, &n);
    const uint32_t from = p->from, to = p->to;
    int32_t *before = base_xmalloc(n * sizeof *before);
    memcpy(before, ids, n * sizeof *before);
    const uint64_t hash = kv_session_schedule_hash(a->engine->session);
    char *id = base_xstrdup(agent_session_id(a));
    agent_session_close(s);
    for (int lost = 0; lost < 2; lost++) {
        if (lost) { /* the rows and their manifest */
            base_buf folder = {0};
            base_buf_printf(&folder, "%s/sessions/%s", base_folder, id);
            assert_int_equal(base_fs_remove(folder.data, NULL), 0);
            base_buf_free(&folder);
        }
        s = open_session(&h, script, AGENT_MODE_ASK, id, true);
        a = agent_session_agent(s);
        ids = a->engine->ops->ids(a->engine, &n_again);
        assert_int_equal(n_again, n);
        assert_memory_equal(ids, before, n * sizeof *before);
        p = find_quoted(a);
        assert_true(p->from == from && p->to == to && p->origin == KV_ORIGIN_CONTEXT);
        assert_true(kv_session_schedule_hash(a->engine->session) == hash);
        agent_session_close(s);
    }
    free(before);
    free(id);
    free_host(&h);
}

/* A line of a file that changed is old text, where it is said again too. */
static void test_quote__goes_stale_with_its_file(void **state)
{
    NEEDS("rows: a repair");
    host h = new_host();
    agent_session *s = read_big(&h);
    ask_folded(s, &h, "zuqivqx?");
    put_big("of zuqivqx we have 99");
    ask_folded(s, &h, "bumovqz?");
    assert_true(find_quoted(agent_session_agent(s))->stale);
    agent_session_close(s);
    free_host(&h);
}

/* Which of the lines are said, as a row of y and n. */
static const char *choose(const char *request, const char *recent, const char *const *text, uint32_t n)
{
    static char row[KV_MOST_QUOTES + 1];
    base_buf lines[KV_MOST_QUOTES] = {{0}}, newest = {0};
    bool said[KV_MOST_QUOTES];
    base_buf_puts(&newest, recent);
    for (uint32_t i = 0; i < n; i++) base_buf_puts(&lines[i], text[i]);
    agent__choose_quotes(request, &newest, lines, n, said);
    for (uint32_t i = 0; i < n; i++) {
        row[i] = said[i] ? 'y' : 'n';
        base_buf_free(&lines[i]);
    }
    row[n] = 0;
    base_buf_free(&newest);
    return row;
}

static void test_quote__is_the_line_with_the_name(void **state)
{
    static const char *const like[] = {
        "/* The number of nat_vag is 88097. */\n", "/* The number of gek_gak is 15431. */\n", "  }\n", ""};
    static const char *const ask = "What is the number of gek_gak?",
                             *two = "What is the number of nat_vag and of gek_gak?";
    assert_string_equal(choose(ask, "", like, 4), "nynn");
    assert_string_equal(choose(two, "", like, 4), "yynn");
    assert_string_equal(
        choose("What is the number of nat?", "", like, 2), "yy"); /* neither has it: a part is no word */
    static const char *const with[] = {"is it with what it was\n", "/* The number of gek_gak is 15431. */\n"};
    assert_string_equal(choose("What is the number of gek_gak? Answer with it.", "", with, 2), "ny");
    assert_string_equal(choose("What is the number of rop_tel?", "", like, 2), "nn"); /* of other names */
    assert_string_equal(choose("Who knows?", "", like, 4), "nnnn");
    assert_string_equal(choose("And then?", "", like, 4), "yynn"); /* asks by no word */
    assert_string_equal(choose(ask, "a /* The number of gek_gak is 15431. */ b", like, 4), "nnnn");
    assert_string_equal(choose(ask, "/* The number of nat_vag is 88097. */", like, 4), "nynn");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_CASE(test_quote__is_said_once_as_text),
        TEST_CASE(test_quote__is_there_again_after_a_resume),
        TEST_CASE(test_quote__goes_stale_with_its_file),
        cmocka_unit_test(test_quote__is_the_line_with_the_name),
    };
    return RUN_ON_BOTH(tests);
}
