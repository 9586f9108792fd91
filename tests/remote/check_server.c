/*
 * Random scripts of append, evict and promote against a server that runs: is what it finds in its cache what was
 * predicted, and is the price of each cut, as it was known before, what is paid? By hand: check_server URL [SCRIPTS
 * [SEED]]; a llama-server with --parallel 1 that nobody else uses.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/engine/engine_remote.h"
#include "base/mem.h"

enum { MOST_SEGMENTS = 40, STEPS = 8, ANSWER = 3 };

typedef struct segment {
    model_ids ids;
    uint32_t from; /* its first token in the sequence */
    bool is_out;   /* evicted: it may come back at the end */
} segment;

/* What a cut was said to cost, until the next request pays for it. */
typedef struct price {
    bool is_open, at_most;
    uint32_t shown, before, n_sent;
} price;

typedef struct script {
    engine *e;
    segment segments[MOST_SEGMENTS];
    uint32_t n;
    uint64_t seed;
    uint32_t n_requests, n_as_predicted, n_told;
    price price;
    uint32_t n_cuts, n_as_shown, n_at_most;
    uint64_t shown, paid, apart, sent; /* sums over cuts whose price was known */
    double worst;                      /* |shown - paid| as a share of what was sent */
} script;

static uint32_t draw(script *s, uint32_t below)
{
    s->seed = s->seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(s->seed >> 33) % below;
}

static int append(script *s, segment *g, base_err *err)
{
    s->e->ops->ids(s->e, &g->from);
    return s->e->ops->append(
        s->e, &(kv_segment){.origin = KV_ORIGIN_USER}, g->ids.ids, (uint32_t)g->ids.n, err);
}

static int add_words(script *s, uint32_t n_words, base_err *err)
{
    static const char *const words[] = {"def ", "value", " = ", "return ", "(x)", "\n    ", "list", " in ",
        "while ", "count", "\xc3\xa4", "_of_", "0", ", "};
    base_buf text = {0};
    segment *g = &s->segments[s->n];
    for (uint32_t i = 0; i < n_words; i++) base_buf_puts(&text, words[draw(s, sizeof words / sizeof *words)]);
    int rc = s->e->ops->encode(s->e, text.data, text.len, &g->ids, err);
    if (!rc) rc = append(s, g, err);
    s->n++;
    base_buf_free(&text);
    return rc;
}

static uint32_t n_active(const script *s)
{
    kv_stats now;
    s->e->ops->stats(s->e, &now);
    return now.active;
}

/* The segment leaves; first its price is asked for. */
static int evict(script *s, segment *g, base_err *err)
{
    uint32_t n;
    bool at_most;
    s->e->ops->ids(s->e, &n);
    bool *out = base_xcalloc(n + 1, sizeof *out);
    for (uint32_t i = 0; i < g->ids.n; i++) out[g->from + i] = true;
    const uint32_t before = s->e->ops->to_compute(s->e, NULL, &at_most),
                   then = s->e->ops->to_compute(s->e, out, &at_most);
    free(out);
    const int rc = s->e->ops->set_active(s->e, g->from, g->from + (uint32_t)g->ids.n, false, err);
    s->price = (price){.is_open = true,
        .at_most = at_most,
        .shown = then > before ? then - before : 0,
        .before = before,
        .n_sent = n_active(s)};
    g->is_out = true;
    return rc;
}

static void pay(script *s, const engine_request *r)
{
    const price p = s->price;
    const int64_t fresh = (int64_t)p.before + r->sent - p.n_sent;
    const uint64_t paid = r->computed > fresh ? (uint64_t)(r->computed - fresh) : 0;
    s->price.is_open = false;
    if (!p.is_open || r->computed < 0) return;
    s->n_cuts++;
    s->n_at_most += p.at_most;
    s->n_as_shown += p.at_most ? paid <= p.shown : paid == p.shown;
    if (p.at_most) {
        printf("at most %u shown, %llu paid\n", p.shown, (unsigned long long)paid);
        return;
    }
    const uint64_t apart = paid > p.shown ? paid - p.shown : p.shown - paid;
    s->shown += p.shown;
    s->paid += paid;
    s->apart += apart;
    s->sent += r->sent;
    const double share = (double)apart / r->sent;
    if (share > s->worst) s->worst = share;
    if (apart) printf("%u shown, %llu paid of %u sent\n", p.shown, (unsigned long long)paid, r->sent);
}

static int answer(script *s, base_err *err)
{
    segment *g = &s->segments[s->n];
    bool end = false;
    engine_request r;
    s->e->ops->ids(s->e, &g->from);
    s->e->ops->answer_begins(s->e);
    for (int i = 0; i < ANSWER && !end; i++) {
        int32_t id;
        int rc = s->e->ops->next(s->e, KV_ORIGIN_ANSWER, 1, &id, &end, NULL, err);
        if (rc) return rc;
        model_ids_add(&g->ids, id);
    }
    s->n++;
    s->e->ops->answer_over(s->e);
    while (s->e->ops->take_request(s->e, &r)) {
        pay(s, &r);
        s->n_requests++;
        s->n_told += r.cached >= 0;
        s->n_as_predicted += r.cached == r.predicted && r.computed == r.sent - r.predicted;
        if (r.cached != r.predicted)
            printf("sent %u, predicted %u, found %lld\n", r.sent, r.predicted, (long long)r.cached);
    }
    return 0;
}

static int run(script *s, base_err *err)
{
    int rc = s->e->ops->restart(s->e, NULL, err);
    for (int step = 0; step < STEPS && !rc && s->n + 2 < MOST_SEGMENTS; step++) {
        const uint32_t what = s->n < 3 ? 0 : draw(s, 4);
        if (what < 2) {
            rc = add_words(s, 5 + draw(s, 40), err);
        } else {
            segment *g = &s->segments[draw(s, s->n)];
            if (!g->is_out && g->ids.n) {
                rc = evict(s, g, err);
            } else { /* back, at the end */
                segment *copy = &s->segments[s->n++];
                for (size_t i = 0; i < g->ids.n; i++) model_ids_add(&copy->ids, g->ids.ids[i]);
                rc = append(s, copy, err);
            }
        }
        if (!rc && n_active(s)) rc = answer(s, err);
    }
    for (uint32_t i = 0; i < s->n; i++) {
        model_ids_free(&s->segments[i].ids);
        s->segments[i] = (segment){.is_out = false};
    }
    s->n = 0;
    s->price.is_open = false;
    return rc;
}

int main(int argc, char **argv)
{
    base_err err = {0};
    if (argc < 2) {
        printf("usage: check_server URL [SCRIPTS [SEED]]\n");
        return 2;
    }
    const int n_scripts = argc > 2 ? atoi(argv[2]) : 100;
    script s = {.seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 1};
    int rc = engine_remote_open(&s.e,
        &(remote_endpoint_options){.http = {.url = argv[1], .limits = REMOTE_LIMITS_DEFAULTS}},
        &(engine_options){.sampling = MODEL_SAMPLING_DEFAULTS, .max_answer = ANSWER}, NULL, &err);
    int good = 0, done = 0;
    for (; done < n_scripts && !rc; done++) {
        const uint32_t before = s.n_requests - s.n_as_predicted;
        rc = run(&s, &err);
        good += !rc && s.n_requests - s.n_as_predicted == before;
        printf("script %d: %u requests so far, %u as predicted\n", done + 1, s.n_requests, s.n_as_predicted);
        fflush(stdout);
    }
    if (rc) printf("%s\n", err.msg);
    printf("%d of %d scripts as predicted; %u of %u requests, %u with numbers\n", good, done,
        s.n_as_predicted, s.n_requests, s.n_told);
    printf("%u of %u cuts cost what was shown (%u of them at most that); of the others %llu "
           "tokens shown, %llu paid, apart by %.3f%% of what was sent, %.3f%% at most\n",
        s.n_as_shown, s.n_cuts, s.n_at_most, (unsigned long long)s.shown, (unsigned long long)s.paid,
        s.sent ? 100.0 * (double)s.apart / (double)s.sent : 0, 100 * s.worst);
    if (s.e) s.e->ops->close(s.e);
    return rc || good < done;
}
