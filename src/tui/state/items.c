/* The transcript's items (contract: items.h). */
#include "tui/state/items.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/show.h"
#include "base/utf8.h"

enum { MAX_BODY = 4 << 20 }; /* bytes kept of one item: a model or a tool may never stop */

void tui_item_free(tui_item *i)
{
    base_buf_free(&i->head);
    base_buf_free(&i->body);
    base_buf_free(&i->diff);
    free(i->status);
    free(i->name);
    free(i->summary);
    tui_text_free(&i->lines);
}

void tui_add_clean(base_buf *b, const char *s, bool keep_newlines)
{
    if (!s || b->len > MAX_BODY) return;
    size_t n = strlen(s);
    if (n > MAX_BODY) n = MAX_BODY;
    base_utf8_sanitise(b, s, n, keep_newlines);
}

char *tui_clean(const char *s)
{
    if (!s) return NULL;
    base_buf b = {0};
    tui_add_clean(&b, s, false);
    return base_buf_take(&b);
}

void tui_add_shown(base_buf *b, const char *s)
{
    size_t n = s ? strlen(s) : 0;
    base_show(b, s, n < MAX_BODY ? n : MAX_BODY, BASE_SHOW_UTF8);
}

void tui_set_clean(char **field, const char *s)
{
    if (!s) return;
    free(*field);
    *field = tui_clean(s);
}

tui_item *tui_items_last(tui_state *s)
{
    return s->n_items ? s->items + s->n_items - 1 : NULL;
}

tui_item *tui_items_add(tui_state *s, tui_item_kind kind)
{
    tui_item *before = tui_items_last(s);
    if (before && before->streaming && !before->unsettled) {
        before->streaming = false;
        before->version++;
    }
    base_grow(&s->items, &s->cap_items, s->n_items + 1, sizeof *s->items);
    tui_item *i = s->items + s->n_items++;
    *i = (tui_item){.kind = kind, .turn = s->turn, .exit_code = -1, .version = 1};
    return i;
}

void tui_items_drop_last(tui_state *s)
{
    tui_item_free(s->items + --s->n_items);
}

void tui_state_note(tui_state *s, tui_item_kind kind, const char *text)
{
    tui_add_clean(&tui_items_add(s, kind)->body, text, true);
}

const tui_item *tui_state_last_answer(const tui_state *s)
{
    for (size_t i = s->n_items; i > 0; i--)
        if (s->items[i - 1].kind == TUI_ITEM_ANSWER && s->items[i - 1].body.len) return s->items + i - 1;
    return NULL;
}

tui_item *tui_items_running_tool(tui_state *s)
{
    for (size_t i = s->n_items; i > 0 && s->n_items - i < 16; i--) {
        tui_item *t = s->items + i - 1;
        if (t->kind == TUI_ITEM_TOOL && !t->status) return t;
    }
    return NULL;
}

void tui_items_remove(tui_state *s, tui_item *item)
{
    size_t at = (size_t)(item - s->items);
    tui_item_free(item);
    memmove(item, item + 1, (--s->n_items - at) * sizeof *item);
    if (at < s->n_items) item->version++; /* what stands above it changed */
}
