/* The tables of a file of `kvist-bench long`; see long_result.h. */
#include "bench/long/long_result.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "bench/common/result_file.h"
#include "bench/common/statistics.h"
#include "bench/long/long_turn.h"

enum { ARMS_MOST = 16, NAME_MOST = 96, LONG_SEED = 22 };

typedef struct sum {
    char kind[16], session[NAME_MOST], arm[NAME_MOST];
    uint32_t n, of, asked, right;
    uint32_t asked_behind, right_behind; /* with rows out of the lists */
    double part[LONG_N_PARTS], added, generated, computed, rows, peak;
} sum;

typedef struct sums {
    sum *all;
    size_t n, cap;
    char arms[ARMS_MOST][NAME_MOST];
    uint32_t n_arms;
} sums;

static sum *find(sums *s, const char *kind, const char *session, const char *arm)
{
    for (size_t i = 0; i < s->n; i++)
        if (!strcmp(s->all[i].session, session) && !strcmp(s->all[i].arm, arm)) return &s->all[i];
    uint32_t a = 0;
    while (a < s->n_arms && strcmp(s->arms[a], arm)) a++;
    if (a == ARMS_MOST) return NULL;
    if (a == s->n_arms) snprintf(s->arms[s->n_arms++], NAME_MOST, "%s", arm);
    base_grow(&s->all, &s->cap, s->n + 1, sizeof *s->all);
    sum *one = &s->all[s->n++];
    *one = (sum){.n = 0};
    snprintf(one->kind, sizeof one->kind, "%s", kind);
    snprintf(one->session, sizeof one->session, "%s", session);
    snprintf(one->arm, sizeof one->arm, "%s", arm);
    return one;
}

static void add_line(void *user, const base_json *o)
{
    sum *s = strcmp(base_json_str(o, "bench", ""), "long")
                 ? NULL
                 : find(user, base_json_str(o, "kind", ""), base_json_str(o, "session", ""),
                       base_json_str(o, "arm", ""));
    if (s) {
        const bool asked = base_json_bool(o, "asked", false), right = base_json_bool(o, "right", false),
                   behind = base_json_int(o, "host", 0) > 0;
        s->n++;
        s->of = (uint32_t)base_json_int(o, "of", 0);
        s->asked += asked;
        s->right += asked && right;
        s->asked_behind += asked && behind;
        s->right_behind += asked && right && behind;
        const base_json *seconds = base_json_get(o, "seconds");
        for (int p = 0; p < LONG_N_PARTS; p++) s->part[p] += base_json_num(seconds, long_part_words[p], 0);
        s->added += base_json_num(o, "new", 0);
        s->generated += base_json_num(o, "generated", 0);
        s->computed += base_json_num(o, "computed", 0);
        s->rows += base_json_num(o, "rows", 0);
        const double peak = base_json_num(o, "peak_mb", 0);
        if (peak > s->peak) s->peak = peak;
    }
}

static const sum *of_arm(const sums *s, const char *session, const char *arm)
{
    for (size_t i = 0; i < s->n; i++)
        if (!strcmp(s->all[i].session, session) && !strcmp(s->all[i].arm, arm) && s->all[i].n == s->all[i].of)
            return &s->all[i];
    return NULL;
}

/* Finished under every arm. */
static bool is_whole(const sums *s, const char *session)
{
    for (uint32_t a = 0; a < s->n_arms; a++)
        if (!of_arm(s, session, s->arms[a])) return false;
    return true;
}

static void print_arm(const sums *s, const char *kind, const char *arm, FILE *to)
{
    sum t = {.n = 0};
    uint32_t n = 0, n_different = 0;
    double *differences = base_xcalloc(s->n + 1, sizeof *differences), low, high, mean;
    for (size_t i = 0; i < s->n; i++) {
        const sum *one = &s->all[i], *full = of_arm(s, one->session, "full");
        if (strcmp(one->kind, kind) || strcmp(one->arm, arm) || !is_whole(s, one->session)) continue;
        n++;
        t.n += one->n;
        t.asked += one->asked;
        t.right += one->right;
        t.asked_behind += one->asked_behind;
        t.right_behind += one->right_behind;
        for (int p = 0; p < LONG_N_PARTS; p++) t.part[p] += one->part[p];
        t.added += one->added;
        t.generated += one->generated;
        t.computed += one->computed;
        t.rows += one->rows;
        if (one->peak > t.peak) t.peak = one->peak;
        if (full && full != one && one->asked)
            differences[n_different++] = 100. * ((double)one->right - full->right) / one->asked;
    }
    if (!n) {
        free(differences);
        return;
    }
    double waited = 0;
    for (int p = 0; p < LONG_N_PARTS; p++) waited += p == LONG_IDLE ? 0 : t.part[p];
    fprintf(to,
        "%-8s %-28s sessions %2u turns %3u  right %3u of %3u (rows out: %u of %u)  waited %.0f s:", kind, arm,
        n, t.n, t.right, t.asked, t.right_behind, t.asked_behind, waited);
    for (int p = 0; p < LONG_N_PARTS; p++) fprintf(to, " %s %.1f", long_part_words[p], t.part[p]);
    fprintf(to, "  tokens new %.0f generated %.0f computed %.0f  rows %.3g M  peak %.0f MB", t.added,
        t.generated, t.computed, t.rows / 1e6, t.peak);
    if (n_different) {
        bench_bootstrap(differences, n_different, LONG_SEED, &mean, &low, &high);
        fprintf(to, "  against full %+.1f points [%.1f, %.1f]", mean, low, high);
    }
    fputc('\n', to);
    free(differences);
}

void long_summarise(const base_buf *lines, FILE *to)
{
    sums s = {.n = 0};
    bench_each_result(lines, add_line, &s);
    for (size_t i = 0; i < s.n; i++) {
        bool is_first = true;
        for (size_t k = 0; k < i; k++) is_first = is_first && strcmp(s.all[k].kind, s.all[i].kind);
        for (uint32_t a = 0; is_first && a < s.n_arms; a++) print_arm(&s, s.all[i].kind, s.arms[a], to);
    }
    uint32_t n_open = 0;
    for (size_t i = 0; i < s.n; i++) n_open += !is_whole(&s, s.all[i].session);
    if (n_open) fprintf(to, "%u runs belong to sessions that not every arm has finished: left out\n", n_open);
    free(s.all);
}

typedef struct search {
    const char *model, *session, *arm;
    uint32_t next;
    char *id;
} search;

static void look(void *user, const base_json *o)
{
    search *s = user;
    if (!strcmp(base_json_str(o, "bench", ""), "long") && !strcmp(base_json_str(o, "model", ""), s->model) &&
        !strcmp(base_json_str(o, "session", ""), s->session) &&
        !strcmp(base_json_str(o, "arm", ""), s->arm)) {
        s->next = (uint32_t)base_json_int(o, "step", 0) + 1;
        free(s->id);
        s->id = base_xstrdup(base_json_str(o, "id", ""));
    }
}

uint32_t long_result_next(
    const base_buf *lines, const char *model, const char *session, const char *arm, char **ret_id)
{
    search s = {.model = model, .session = session, .arm = arm};
    bench_each_result(lines, look, &s);
    *ret_id = s.id;
    return s.next;
}
