#include "cmd/what_if_table.h"

#include <stdio.h>
#include <string.h>

#include "base/show.h"
#include "base/utf8.h"

static void print_clean(const char *text)
{
    base_buf clean = {0};
    base_utf8_sanitise(&clean, text, strlen(text), false);
    if (clean.len) fwrite(clean.data, 1, clean.len, stdout);
    base_buf_free(&clean);
}

static void print_shown(const char *text)
{
    base_buf shown = {0};
    base_show(&shown, text, strlen(text), BASE_SHOW_UTF8);
    printf("\"%s\"", shown.data ? shown.data : "");
    base_buf_free(&shown);
}

static void print_side(const agent_side_row *s, bool is_apart)
{
    printf("      %-8s  evicted %lld, promoted %lld, active %lld, beside %.0f", s->side,
        (long long)s->evicted, (long long)s->promoted, (long long)s->active, s->visited);
    if (s->structure > 0) printf(", structure %.3f", s->structure);
    if (is_apart) printf(", %.4f nats a byte", s->nll);
    printf(", %.1f s", s->ms / 1e3);
    if (s->why) printf("; %s", s->why);
    putchar('\n');
}

static void print_turn(const agent_event *e)
{
    const bool is_apart = e->what_if_turn.bytes > 0;
    if (is_apart)
        printf("turn %lld  %lld bytes of answers, %lld of %lld of "
               "the reader's tokens are what it would have said\n",
            (long long)e->what_if_turn.turn, (long long)e->what_if_turn.bytes,
            (long long)e->what_if_turn.said, (long long)e->what_if_turn.tokens);
    else
        printf("turn %lld  %lld tokens, KL %.4f, at most %.3f; %lld would have been another one\n",
            (long long)e->what_if_turn.turn, (long long)e->what_if_turn.tokens, e->what_if_turn.kl,
            e->what_if_turn.most, (long long)e->what_if_turn.differ);
    for (size_t i = 0; i < e->what_if_turn.sides.n; i++) print_side(&e->what_if_turn.sides.rows[i], is_apart);
    if (e->what_if_turn.differ > 0) {
        printf("      first at token %lld: ", (long long)e->what_if_turn.index);
        print_shown(e->what_if_turn.was ? e->what_if_turn.was : "");
        printf(" would have been ");
        print_shown(e->what_if_turn.instead ? e->what_if_turn.instead : "");
        printf(", by %.3f nats\n", e->what_if_turn.nats);
    }
    if (e->what_if_turn.check) {
        printf("      note: ");
        print_clean(e->what_if_turn.check);
        putchar('\n');
    }
}

static void print_lines(const char *text)
{
    base_buf clean = {0};
    base_utf8_sanitise(&clean, text, strlen(text), true);
    for (const char *line = clean.data; line && *line;) {
        const char *end = strchr(line, '\n');
        const int n = (int)(end ? end - line : (ptrdiff_t)strlen(line));
        printf("        %.*s\n", n, line);
        line = end ? end + 1 : NULL;
    }
    base_buf_free(&clean);
}

static void print_answer(const agent_event *e)
{
    const bool has_text = *e->what_if_answer.was || *e->what_if_answer.instead;
    if (e->what_if_answer.diff) {
        printf("      would have answered otherwise:\n");
        print_lines(e->what_if_answer.diff);
    } else if (has_text) {
        printf("      would have answered as recorded\n");
    }
    for (size_t i = 0; i < e->what_if_answer.calls.n; i++) {
        printf("      call ");
        print_clean(e->what_if_answer.calls.rows[i].call);
        printf(": %s\n", e->what_if_answer.calls.rows[i].source);
    }
    if (!e->what_if_answer.stopped) return;
    printf("      stopped: ");
    print_clean(e->what_if_answer.stopped);
    putchar('\n');
}

void what_if_print(const agent_event *e)
{
    switch (e->type) {
    case AGENT_EVENT_what_if:
        printf("session %s  what if %s\noriginal: %s\nchanged:  %s\n", e->what_if.parent, e->what_if.session,
            e->what_if.original, e->what_if.changed);
        if (e->what_if.missing) printf("note: %s\n", e->what_if.missing);
        break;
    case AGENT_EVENT_what_if_turn: print_turn(e); break;
    case AGENT_EVENT_what_if_answer: print_answer(e); break;
    case AGENT_EVENT_what_if_end: printf("%s\n", e->what_if_end.text); break;
    default: break;
    }
    fflush(stdout);
}
