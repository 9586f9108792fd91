/*
 * The journal and its fold. Plans come with their exact changes, lane by lane; runs aggregated over lanes
 * ("these tokens, evicted, in 20 of 56 lanes") say why. Texts are never removed, so a rewound branch can
 * still be shown.
 */
#include "tui/state/row_journal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "kv/plan/plan.h"

typedef enum op_kind { OP_APPEND, OP_SPAN, OP_PASS, OP_PLAN, OP_RUN, OP_TRUNCATE } op_kind;

typedef struct op {
    uint8_t kind, change, word, exact;
    uint32_t turn, from, to, lanes;
    uint32_t piece, source; /* APPEND: first token piece, source record */
} op;

typedef struct piece {
    uint32_t at;
    uint16_t n;
} piece;

enum { MAX_WORDS = 255, MAX_TOKENS = 1 << 24, NOT_COUNTED = UINT16_MAX };

/* A new one for each journal and each rewriting of one; the UI thread only. */
static uint64_t last_serial;

struct tui_journal {
    uint64_t serial;
    op *ops;
    size_t n_ops, cap_ops;
    base_buf text;
    piece *pieces;
    size_t n_pieces, cap_pieces;
    base_str *plans; /* packed, owned */
    size_t n_plans, cap_plans;
    tui_source *sources;
    size_t n_sources, cap_sources;
    char *words[MAX_WORDS + 1];
    size_t n_words;
    /* [n_places] of a plan's lanes the place among those that are counted, or NOT_COUNTED; none: their own */
    uint16_t *places;
    uint32_t n_places;
};

tui_journal *tui_journal_new(void)
{
    tui_journal *j = base_xcalloc(1, sizeof *j);
    j->words[j->n_words++] = base_xstrdup("");
    j->serial = ++last_serial;
    return j;
}

void tui_journal_free(tui_journal *j)
{
    if (!j) return;
    for (size_t i = 0; i < j->n_sources; i++) {
        free(j->sources[i].origin);
        free(j->sources[i].label);
    }
    for (size_t i = 0; i < j->n_words; i++) free(j->words[i]);
    for (size_t i = 0; i < j->n_plans; i++) free((char *)(uintptr_t)j->plans[i].ptr);
    free(j->plans);
    free(j->places);
    free(j->sources);
    free(j->ops);
    free(j->pieces);
    base_buf_free(&j->text);
    free(j);
}

uint32_t tui_journal_windows(tui_journal *j, uint32_t n_lanes, const char *letters)
{
    const size_t n_layers = letters ? strlen(letters) : 0;
    free(j->places);
    j->places = NULL;
    j->n_places = 0;
    if (!n_layers || n_lanes >= NOT_COUNTED || n_lanes % n_layers || !strchr(letters, '.') ||
        !strchr(letters, 'w'))
        return n_lanes;
    uint16_t n = 0;
    j->places = base_xcalloc(n_lanes, sizeof *j->places);
    j->n_places = n_lanes;
    for (uint32_t lane = 0; lane < n_lanes; lane++)
        j->places[lane] = letters[lane / (n_lanes / n_layers)] == 'w' ? NOT_COUNTED : n++;
    return n;
}

/* Where a plan's lane is counted; NOT_COUNTED: nowhere. */
static uint32_t place_of(const tui_journal *j, uint32_t lane)
{
    if (!j->n_places) return lane;
    return lane < j->n_places ? j->places[lane] : NOT_COUNTED;
}

static uint8_t word_id(tui_journal *j, const char *word)
{
    if (!word || !*word) return 0;
    for (size_t i = 1; i < j->n_words; i++)
        if (!strcmp(j->words[i], word)) return (uint8_t)i;
    if (j->n_words > MAX_WORDS) return 0;
    base_buf clean = {0};
    base_utf8_sanitise(&clean, word, strlen(word), false);
    j->words[j->n_words] = base_buf_take(&clean);
    return (uint8_t)j->n_words++;
}

static op *add_op(tui_journal *j, op_kind kind, uint32_t turn, uint32_t from, uint32_t to)
{
    base_grow(&j->ops, &j->cap_ops, j->n_ops + 1, sizeof *j->ops);
    op *o = j->ops + j->n_ops++;
    *o = (op){.kind = (uint8_t)kind, .turn = turn, .from = from, .to = to};
    return o;
}

static char *clean_copy(const char *s)
{
    base_buf b = {0};
    if (s) base_utf8_sanitise(&b, s, strlen(s), false);
    return base_buf_take(&b);
}

/* Tokens of an answer arrive one by one and are one stretch. */
static bool joins_last(const tui_journal *j, const tui_appended *a)
{
    const tui_source *last = j->n_sources ? j->sources + j->n_sources - 1 : NULL;
    return last && last->to == a->from && last->turn == a->turn &&
           !strcmp(last->origin, a->origin ? a->origin : "") && (!a->label || !*a->label) && !*last->label &&
           a->line == 0 && last->line == 0 && j->n_ops > 0 && j->ops[j->n_ops - 1].kind == OP_APPEND;
}

void tui_journal_append(tui_journal *j, const tui_appended *a)
{
    if (a->n == 0 || a->from > MAX_TOKENS || a->n > MAX_TOKENS - a->from) return;
    if (!joins_last(j, a)) {
        base_grow(&j->sources, &j->cap_sources, j->n_sources + 1, sizeof *j->sources);
        j->sources[j->n_sources++] = (tui_source){.from = a->from,
            .turn = a->turn,
            .origin = clean_copy(a->origin ? a->origin : ""),
            .label = clean_copy(a->label),
            .line = a->line};
    }
    j->sources[j->n_sources - 1].to = a->from + a->n;
    op *o = add_op(j, OP_APPEND, a->turn, a->from, a->from + a->n);
    o->piece = (uint32_t)j->n_pieces;
    o->source = (uint32_t)(j->n_sources - 1);
    base_grow(&j->pieces, &j->cap_pieces, j->n_pieces + a->n, sizeof *j->pieces);
    size_t at = j->text.len, left = a->text.len;
    for (uint32_t i = 0; i < a->n; i++) {
        size_t take = a->lens ? a->lens[i] : i == 0 ? a->text.len : 0;
        if (take > left) take = left;
        if (take > UINT16_MAX) take = UINT16_MAX;
        j->pieces[j->n_pieces++] = (piece){.at = (uint32_t)at, .n = (uint16_t)take};
        at += take;
        left -= take;
    }
    base_buf_add(&j->text, a->text.ptr, a->text.len);
}

void tui_journal_lanes(tui_journal *j, uint32_t lanes)
{
    uint32_t n = 0;
    for (uint32_t lane = 0; lane < lanes; lane++) n += place_of(j, lane) != NOT_COUNTED;
    if (j->n_ops && j->ops[j->n_ops - 1].kind == OP_APPEND) j->ops[j->n_ops - 1].lanes = n;
}

void tui_journal_span(tui_journal *j, uint32_t turn, uint32_t from, uint32_t to, const char *reason)
{
    add_op(j, OP_SPAN, turn, from, to)->word = word_id(j, reason);
}

bool tui_journal_plan(tui_journal *j, uint32_t turn, const void *blob, size_t n)
{
    kv_plan *plan;
    if (!blob || kv_plan_unpack(blob, n, &plan, NULL)) return false;
    kv_plan_free(plan);
    op *o = add_op(j, OP_PLAN, turn, 0, 0);
    o->piece = (uint32_t)j->n_plans;
    base_grow(&j->plans, &j->cap_plans, j->n_plans + 1, sizeof *j->plans);
    j->plans[j->n_plans++] = (base_str){base_xstrndup(blob, n), n};
    return true;
}

void tui_journal_pass(tui_journal *j, uint32_t turn)
{
    add_op(j, OP_PASS, turn, 0, 0);
}

void tui_journal_run(tui_journal *j, uint32_t turn, uint32_t from, uint32_t to, const char *action,
    const char *reason, uint32_t lanes, bool exact)
{
    static const char *const names[] = {"keep", "evict", "promote", "protect", "bar", "defer"};
    for (uint8_t i = 0; action && i < sizeof names / sizeof *names; i++) {
        if (strcmp(action, names[i])) continue;
        op *o = add_op(j, OP_RUN, turn, from, to);
        o->change = i;
        o->word = word_id(j, reason);
        o->lanes = lanes;
        o->exact = exact;
        return;
    }
}

void tui_journal_truncate(tui_journal *j, uint32_t turn, uint32_t n)
{
    add_op(j, OP_TRUNCATE, turn, n, n);
}

void tui_journal_rewind(tui_journal *j, uint32_t turn, uint32_t n)
{
    for (size_t i = 0; i < j->n_ops; i++)
        if (j->ops[i].turn > turn) j->ops[i].turn = turn;
    tui_journal_truncate(j, turn, n);
    j->serial = ++last_serial;
}

void tui_journal_touches(const tui_journal *j, uint32_t index, uint32_t turn, tui_touch_fn *fn, void *user)
{
    size_t first = 0; /* changes from before the index was last written belong to a branch that was rewound */
    for (size_t i = 0; i < j->n_ops && j->ops[i].turn <= turn; i++)
        if (j->ops[i].kind == OP_APPEND && index >= j->ops[i].from && index < j->ops[i].to) first = i;
    for (size_t i = first; i < j->n_ops && j->ops[i].turn <= turn; i++) {
        const op *o = j->ops + i;
        if ((o->kind != OP_APPEND && o->kind != OP_SPAN && o->kind != OP_RUN) || index < o->from ||
            index >= o->to)
            continue;
        fn(user, o->turn, o->kind == OP_SPAN ? TUI_PROTECTED_ROW : (tui_change)o->change, j->words[o->word],
            o->lanes);
    }
}

/* --- lanes ---------------------------------------------------------------------------------------------- */

static size_t lane_words(const tui_rows *r)
{
    return (r->n_lanes + 63) / 64;
}

bool tui_row_in_lane(const tui_rows *r, uint32_t index, uint32_t lane)
{
    return r->bits[index * lane_words(r) + lane / 64] >> (lane % 64) & 1;
}

/* Rows of this lane that are computed only now are new; they did not come back. */
static void add_lane(tui_rows *r, uint32_t index, uint32_t lane)
{
    if (tui_row_in_lane(r, index, lane)) return;
    r->bits[index * lane_words(r) + lane / 64] |= UINT64_C(1) << (lane % 64);
    r->row[index].lanes++;
    r->lanes_sum++;
}

/* Changes the row in the lanes of a mask, none of which is so yet; its counts and the sum follow. */
static void set_lanes(tui_rows *r, uint32_t turn, uint32_t index, uint32_t word, uint64_t mask, bool active)
{
    if (!mask) return;
    tui_row *row = r->row + index;
    uint64_t *back = r->back_bits + index * lane_words(r);
    const int n = __builtin_popcountll(mask);
    r->bits[index * lane_words(r) + word] ^= mask;
    row->lanes = (uint16_t)(row->lanes + (active ? n : -n));
    r->lanes_sum += active ? (uint64_t)n : -(uint64_t)n;
    if (active && row->promoted != turn) {
        memset(back, 0, lane_words(r) * sizeof *back);
        row->promoted = turn;
        row->back = 0;
    }
    const uint64_t changed = mask & (active ? ~back[word] : back[word]);
    const int n_back = __builtin_popcountll(changed);
    back[word] ^= changed;
    row->back = (uint16_t)(row->back + (active ? n_back : -n_back));
}

static void set_lane(tui_rows *r, uint32_t turn, uint32_t index, uint32_t lane, bool active)
{
    if (tui_row_in_lane(r, index, lane) != active)
        set_lanes(r, turn, index, lane / 64, UINT64_C(1) << (lane % 64), active);
}

/*
 * Changes the number of active lanes when the event does not say which lanes: the first ones that can change
 * do.
 */
static void set_some_lanes(tui_rows *r, uint32_t turn, uint32_t index, uint32_t lanes, bool active)
{
    for (uint32_t word = 0; word < lane_words(r) && lanes > 0; word++) {
        const uint32_t left = r->n_lanes - word * 64;
        const uint64_t valid = left >= 64 ? UINT64_MAX : (UINT64_C(1) << left) - 1,
                       now = r->bits[index * lane_words(r) + word];
        uint64_t can = active ? ~now & valid : now & valid, surplus = can;
        for (uint32_t taken = 0; surplus && taken < lanes; taken++) surplus &= surplus - 1; /* the lowest */
        lanes -= (uint32_t)__builtin_popcountll(can & ~surplus);
        set_lanes(r, turn, index, word, can & ~surplus, active);
    }
}

/* --- the fold ------------------------------------------------------------------------------------------- */

static void fold_append(tui_rows *r, const tui_journal *j, const op *o)
{
    if (o->from > r->n) return; /* a gap: events of another session */
    base_grow(&r->row, &r->cap, o->to, sizeof *r->row);
    base_grow(&r->bits, &r->cap_bits, o->to, lane_words(r) * sizeof *r->bits);
    base_grow(&r->back_bits, &r->cap_back_bits, o->to, lane_words(r) * sizeof *r->back_bits);
    const tui_source *s = j->sources + o->source;
    uint8_t flags = 0, word = 0;
    if (!strcmp(s->origin, "system") || !strcmp(s->origin, "instructions")) flags = TUI_ROW_FIXED;
    if (!strcmp(s->origin, "user")) flags = TUI_ROW_REQUEST;
    for (uint32_t i = o->from; i < o->to; i++) {
        const piece *p = j->pieces + o->piece + (i - o->from);
        if (i < r->n) r->lanes_sum -= r->row[i].lanes;
        memset(r->back_bits + i * lane_words(r), 0, lane_words(r) * sizeof *r->back_bits);
        r->lanes_sum += r->n_lanes;
        for (uint32_t lane = 0; lane < r->n_lanes; lane += 64) {
            uint32_t left = r->n_lanes - lane;
            r->bits[i * lane_words(r) + lane / 64] = left >= 64 ? UINT64_MAX : (UINT64_C(1) << left) - 1;
        }
        const uint32_t computed = o->lanes && o->lanes < r->n_lanes ? o->lanes : r->n_lanes;
        for (uint32_t lane = computed; lane < r->n_lanes; lane++)
            r->bits[i * lane_words(r) + lane / 64] &= ~(UINT64_C(1) << (lane % 64));
        r->lanes_sum -= r->n_lanes - computed;
        r->row[i] = (tui_row){.text_at = p->at,
            .text_n = p->n,
            .lanes = (uint16_t)computed,
            .deferred = (uint16_t)(r->n_lanes - computed),
            .flags = flags,
            .reason = word,
            .born = o->turn};
    }
    if (o->to > r->n) r->n = o->to;
    /* The table's sources are the journal's, up to where the sequence was truncated. */
    tui_source *last = r->n_sources ? r->sources + r->n_sources - 1 : NULL;
    if (last && last->origin == s->origin && last->to == o->from) {
        last->to = o->to;
    } else {
        base_grow(&r->sources, &r->cap_sources, r->n_sources + 1, sizeof *r->sources);
        tui_source copy = *s;
        copy.from = o->from;
        copy.to = o->to;
        r->sources[r->n_sources++] = copy;
    }
    for (uint32_t i = o->from; i < o->to; i++) r->row[i].source = (uint16_t)(r->n_sources - 1);
}

/* Which rows flip in which lane, as the plan has it. */
static void fold_plan(tui_rows *r, const tui_journal *j, const op *o)
{
    kv_plan *p;
    if (kv_plan_unpack(j->plans[o->piece].ptr, j->plans[o->piece].len, &p, NULL)) return;
    const uint32_t n_words = kv_plan_words(p);
    for (uint32_t of_plan = 0; of_plan < p->n_lanes; of_plan++) {
        const uint32_t lane = place_of(j, of_plan);
        for (uint32_t w = 0; w < n_words && lane < r->n_lanes; w++)
            for (uint64_t left = p->flips[(size_t)of_plan * n_words + w]; left; left &= left - 1) {
                uint32_t index = w * 64 + (uint32_t)__builtin_ctzll(left);
                if (index >= r->n) break;
                const bool active = tui_row_in_lane(r, index, lane);
                if (p->cause == KV_CAUSE_PRUNE && !active)
                    add_lane(r, index, lane);
                else
                    set_lane(r, o->turn, index, lane, !active);
                /* What becomes active there is computed, in all its lanes. */
                if (!active && lane + r->row[index].deferred >= r->n_lanes) r->row[index].deferred = 0;
            }
    }
    kv_plan_free(p);
}

static void fold_run(tui_rows *r, const tui_journal *j, const op *o)
{
    uint32_t to = o->to < r->n ? o->to : (uint32_t)r->n;
    const char *word = j->words[o->word];
    bool pin = !strcmp(word, "pin");
    for (uint32_t i = o->from; i < to; i++) {
        tui_row *row = r->row + i;
        row->reason = o->word;
        row->change = o->change;
        row->changed = o->turn;
        switch ((tui_change)o->change) {
        case TUI_KEPT:
            if (!o->exact && !strcmp(word, "centrality")) {
                row->deferred = 0;
                for (uint32_t lane = 0; lane < r->n_lanes; lane++) add_lane(r, i, lane);
            }
            if (!strcmp(word, "manual")) row->flags &= (uint8_t) ~(TUI_ROW_PINNED | TUI_ROW_BARRED);
            break;
        case TUI_EVICTED_ROW:
            if (!o->exact) set_some_lanes(r, o->turn, i, o->lanes, false);
            break;
        case TUI_PROMOTED_ROW:
            if (!o->exact) {
                set_some_lanes(r, o->turn, i, o->lanes, true);
                if (row->lanes + (uint32_t)row->deferred > r->n_lanes) row->deferred = 0;
            }
            row->flags &= (uint8_t)~TUI_ROW_BARRED;
            break;
        case TUI_PROTECTED_ROW:
            row->flags |= TUI_ROW_PASSED;
            row->protected_by = o->word;
            if (!o->exact && row->deferred &&
                o->lanes == row->deferred) { /* no bulk: it goes above the cut */
                row->deferred = 0;
                for (uint32_t lane = 0; lane < r->n_lanes; lane++) add_lane(r, i, lane);
            }
            if (!pin) break;
            row->flags = (uint8_t)((row->flags | TUI_ROW_PINNED) & ~TUI_ROW_BARRED);
            /* A pin brings back what it holds. */
            if (!o->exact) set_some_lanes(r, o->turn, i, r->n_lanes, true);
            break;
        case TUI_DEFERRED_ROW: break;
        case TUI_BARRED_ROW:
            row->flags |= TUI_ROW_BARRED;
            if (!o->exact) set_some_lanes(r, o->turn, i, r->n_lanes, false);
            break;
        }
    }
}

static void fold_span(tui_rows *r, const op *o)
{
    uint32_t to = o->to < r->n ? o->to : (uint32_t)r->n;
    for (uint32_t i = o->from; i < to; i++) {
        r->row[i].flags |= TUI_ROW_SPAN;
        r->row[i].protected_by = o->word;
        if (r->row[i].changed) continue;
        r->row[i].reason = o->word;
        r->row[i].change = TUI_PROTECTED_ROW;
    }
}

static void fold_pass(tui_rows *r)
{
    for (size_t i = 0; i < r->n; i++) r->row[i].flags &= (uint8_t) ~(TUI_ROW_PASSED | TUI_ROW_SPAN);
}

static void fold_truncate(tui_rows *r, uint32_t n)
{
    for (size_t i = n; i < r->n; i++) r->lanes_sum -= r->row[i].lanes;
    if (n < r->n) r->n = n;
    while (r->n_sources > 0 && r->sources[r->n_sources - 1].from >= n) r->n_sources--;
    if (r->n_sources > 0 && r->sources[r->n_sources - 1].to > n) r->sources[r->n_sources - 1].to = n;
}

/* One sample a plan and direction, and one for an answer's tokens, which arrive one by one. */
static void add_sample(tui_rows *r, const op *o)
{
    bool moves = o->kind == OP_RUN && (o->change == TUI_EVICTED_ROW || o->change == TUI_PROMOTED_ROW ||
                                          o->change == TUI_BARRED_ROW);
    if (!moves && o->kind != OP_APPEND && o->kind != OP_TRUNCATE) return;
    tui_sample now = {.turn = r->turn,
        .n = (uint32_t)r->n,
        .active = (uint32_t)((r->lanes_sum + r->n_lanes / 2) / r->n_lanes),
        .change = o->kind == OP_RUN ? o->change : TUI_KEPT};
    tui_sample *last = r->n_samples ? r->samples + r->n_samples - 1 : NULL;
    bool same_run = last && last->turn == now.turn && last->change == now.change &&
                    (o->kind == OP_RUN || (o->kind == OP_APPEND && o->to - o->from == 1));
    if (same_run) {
        *last = now;
        return;
    }
    base_grow(&r->samples, &r->cap_samples, r->n_samples + 1, sizeof *r->samples);
    r->samples[r->n_samples++] = now;
}

/* The sums behind row `from` anew; those before it still hold. */
static void add_sums(tui_rows *r, size_t from)
{
    base_grow(&r->sums, &r->cap_sums, r->n + 1, sizeof *r->sums);
    if (from == 0) r->sums[0] = (tui_sum){0};
    for (size_t i = from; i < r->n; i++) {
        const tui_row *row = r->row + i;
        tui_sum s = r->sums[i];
        s.lanes += row->lanes;
        s.host += row->lanes == 0;
        s.barred += (row->flags & TUI_ROW_BARRED) != 0;
        s.deferred += row->deferred > 0;
        s.deferred_lanes += row->deferred;
        if (row->lanes > 0 && !row->deferred && tui_row_protected(r, row)) {
            s.protected_++;
            s.protected_lanes += row->lanes;
        }
        if (row->promoted && row->promoted == r->turn && row->back > 0) {
            s.promoted++;
            s.promoted_lanes += row->back;
        }
        r->sums[i + 1] = s;
    }
}

void tui_rows_update(tui_rows *r, const tui_journal *j, uint32_t n_lanes, uint32_t turn)
{
    if (n_lanes < 1) n_lanes = 1;
    if (n_lanes > UINT16_MAX) n_lanes = UINT16_MAX;
    if (r->journal != j || r->serial != j->serial || r->n_lanes != n_lanes ||
        (r->done > 0 && r->turn > turn)) {
        r->done = r->n = r->n_sources = r->n_samples = 0;
        r->lanes_sum = 0;
        r->turn = 0;
        r->journal = j;
        r->serial = j->serial;
        r->n_lanes = n_lanes;
    }
    size_t changed = r->done == 0 ? 0 : SIZE_MAX; /* the first row whose sums no longer hold */
    for (; r->done < j->n_ops && j->ops[r->done].turn <= turn; r->done++) {
        const op *o = j->ops + r->done;
        /*
         * A new turn changes which requests are protected and which rows count as just promoted, so all rows
         * are looked at again.
         */
        const bool all = o->turn > r->turn || o->kind == OP_PASS || o->kind == OP_PLAN;
        if (all)
            changed = 0;
        else if (o->from < changed)
            changed = o->from;
        switch ((op_kind)o->kind) {
        case OP_APPEND: fold_append(r, j, o); break;
        case OP_SPAN: fold_span(r, o); break;
        case OP_PASS: fold_pass(r); break;
        case OP_PLAN: fold_plan(r, j, o); break;
        case OP_RUN: fold_run(r, j, o); break;
        case OP_TRUNCATE: fold_truncate(r, o->from); break;
        }
        if (o->turn > r->turn) r->turn = o->turn;
        add_sample(r, o);
    }
    if (changed != SIZE_MAX) add_sums(r, changed < r->n ? changed : r->n);
}

void tui_rows_free(tui_rows *r)
{
    free(r->row);
    free(r->bits);
    free(r->back_bits);
    free(r->sums);
    free(r->sources);
    free(r->samples);
    *r = (tui_rows){0};
}

const char *tui_rows_word(const tui_rows *r, const tui_row *row)
{
    return r->journal->words[row->reason];
}

const char *tui_rows_protected_by(const tui_rows *r, const tui_row *row)
{
    return r->journal->words[row->protected_by];
}

void tui_rows_text(const tui_rows *r, uint32_t from, uint32_t to, base_buf *out)
{
    base_buf raw = {0};
    if (to > r->n) to = (uint32_t)r->n;
    for (uint32_t i = from; i < to; i++)
        base_buf_add(&raw, r->journal->text.data + r->row[i].text_at, r->row[i].text_n);
    if (raw.len) base_utf8_sanitise(out, raw.data, raw.len, true);
    base_buf_free(&raw);
}

bool tui_row_protected(const tui_rows *r, const tui_row *row)
{
    if (row->flags & TUI_ROW_BARRED) return false;
    if (row->flags & (TUI_ROW_FIXED | TUI_ROW_PINNED | TUI_ROW_SPAN | TUI_ROW_PASSED)) return true;
    return (row->flags & TUI_ROW_REQUEST) && row->born == r->turn;
}

tui_count tui_rows_count(const tui_rows *r, uint32_t from, uint32_t to)
{
    if (to > r->n) to = (uint32_t)r->n;
    if (from >= to) return (tui_count){0};
    const tui_sum *a = r->sums + from, *b = r->sums + to;
    const double n_lanes = r->n_lanes;
    tui_count c = {.n = to - from,
        .host = b->host - a->host,
        .protected_ = b->protected_ - a->protected_,
        .promoted = b->promoted - a->promoted,
        .barred = b->barred - a->barred,
        .deferred = b->deferred - a->deferred,
        .deferred_rows = (double)(b->deferred_lanes - a->deferred_lanes) / n_lanes,
        .active = (double)(b->lanes - a->lanes) / n_lanes,
        .protected_rows = (double)(b->protected_lanes - a->protected_lanes) / n_lanes,
        .promoted_rows = (double)(b->promoted_lanes - a->promoted_lanes) / n_lanes};
    c.share = c.active / c.n;
    return c;
}

void tui_rows_lanes(const tui_rows *r, uint32_t from, uint32_t to, uint32_t *min, uint32_t *max)
{
    if (to > r->n) to = (uint32_t)r->n;
    *min = *max = from < to ? r->row[from].lanes : 0;
    for (uint32_t i = from; i < to; i++) {
        if (r->row[i].lanes < *min) *min = r->row[i].lanes;
        if (r->row[i].lanes > *max) *max = r->row[i].lanes;
    }
}

void tui_lanes_in_words(uint32_t fewest, uint32_t most, uint32_t n_lanes, char out[static 64])
{
    if (fewest == n_lanes)
        snprintf(out, 64, "in all %u lanes", n_lanes);
    else if (fewest == most)
        snprintf(out, 64, "in %u of %u lanes", fewest, n_lanes);
    else
        snprintf(out, 64, "in %u to %u of %u lanes", fewest, most, n_lanes);
}

tui_look tui_count_look(const tui_count *c)
{
    if (c->n == 0) return TUI_LOOK_NONE;
    if (c->promoted > 0) return TUI_LOOK_PROMOTED; /* few among many: a majority rule would never show them */
    if (c->barred * 2 >= c->n) return TUI_LOOK_BARRED;
    if (c->protected_ * 2 >= c->n) return TUI_LOOK_PROTECTED;
    if (c->deferred * 2 >= c->n) return TUI_LOOK_DEFERRED;
    if (c->share >= 0.75) return TUI_LOOK_KEPT;
    if (c->share >= 0.02) return TUI_LOOK_PARTLY;
    return TUI_LOOK_HOST;
}
