/*
 * "Can I delete wrap?": a small model says yes, whoever calls it. What the tree knows of the uses stands in front of it, and below
 * an answer that says otherwise.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/retrieve/retrieve.h"
#include "agent/words/use_question.h"
#include "base/mem.h"
#include "tools/refactor/used.h"

enum { MOST_LISTED = 24, MOST_IN_ROW = 6 };

uint32_t agent__find_asked_uses(const agent *a, const char *request, char *ret[AGENT_MAX_ASKED_USES])
{
    const code_index *index = tool_workspace_index(a->workspace);
    agent_word w;
    uint32_t n = 0;
    if (!agent_asks_for_uses(request)) return 0;
    for (size_t at = 0; n < AGENT_MAX_ASKED_USES && agent_next_asked_use(request, &at, &w);) {
        char *name = agent__copy_word(request, w);
        bool is_new = code_index_is_defined(index, name);
        for (uint32_t i = 0; i < n; i++) is_new = is_new && strcmp(ret[i], name) != 0;
        if (is_new)
            ret[n++] = name;
        else
            free(name);
    }
    return n;
}

void agent__asked_uses_free(char **names, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) free(names[i]);
}

static const char *verb_of(tool_use_kind k)
{
    static const char *const verbs[] = {[TOOL_USE_CALL] = "called",
        [TOOL_USE_NAME] = "named",
        [TOOL_USE_IMPORT] = "imported",
        [TOOL_USE_EXPORT] = "exported",
        [TOOL_USE_MAYBE] = "perhaps used"};
    return verbs[k];
}

/* What else is to be known before something goes. */
static void put_caution(const tool_used *u, base_buf *out)
{
    if (u->is_decorated) base_buf_puts(out, " It has a decorator, by which it may be called.");
    if (u->n_text) base_buf_printf(out, " Comments or strings name it in %u places.", u->n_text);
    if (u->n_unread) base_buf_printf(out, " %u files were not read.", u->n_unread);
}

/* "3 places", "1 place, a test", "4 places, 2 of them in tests" */
static void put_number(const tool_used *u, base_buf *out)
{
    base_buf_printf(out, "%u place%s", u->n, u->n == 1 ? "" : "s");
    if (u->n_tests && u->n_tests == u->n) base_buf_puts(out, ", in tests alone");
    if (u->n_tests && u->n_tests < u->n) base_buf_printf(out, ", %u of them in tests", u->n_tests);
}

bool agent__put_uses(const agent *a, const char *name, base_buf *out)
{
    tool_used u;
    const bool is_known = tool__find_used(a->workspace, name, a->cancel, &u);
    if (is_known && u.n) {
        base_buf_printf(out, "Uses of `%s` (%s, %s:%u): ", name, u.what, u.path, u.line);
        put_number(&u, out);
        base_buf_puts(out, " of the tree.\n");
        for (uint32_t i = 0; i < u.n && i < MOST_LISTED; i++) {
            const tool_use_place *p = &u.places[i];
            base_buf_printf(out, "- %s ", verb_of(p->kind));
            if (*p->inside) base_buf_printf(out, "in `%s`, ", p->inside);
            base_buf_printf(out, "%s:%u%s\n", p->path, p->line, p->is_test ? " (a test)" : "");
        }
        if (u.n > MOST_LISTED) base_buf_printf(out, "- and %u more\n", u.n - MOST_LISTED);
        base_buf_puts(
            out, u.n > u.n_tests ? "So these would break without it." : "So no code would break without it.");
    } else if (is_known) {
        base_buf_printf(out,
            "Uses of `%s` (%s, %s:%u): none. No code of the tree calls, imports or names it.", name, u.what,
            u.path, u.line);
    }
    if (is_known) put_caution(&u, out);
    if (is_known) base_buf_putc(out, '\n');
    tool__used_free(&u);
    return is_known;
}

bool agent__tell_uses(const agent *a, const char *name, const char *answer, base_buf *out)
{
    tool_used u;
    const bool is_known = tool__find_used(a->workspace, name, a->cancel, &u);
    const agent_said_use said = agent_read_said_use(a->request, answer);
    const bool has_code = u.n > u.n_tests;
    const bool is_false = (said == AGENT_SAYS_UNUSED && has_code) || (said == AGENT_SAYS_USED && !u.n);
    if (is_known && !u.n) base_buf_printf(out, "%s: no use of it stands in the tree", name);
    if (is_known && u.n) {
        base_buf_printf(out, "%s is used in ", name);
        put_number(&u, out);
    }
    if (is_known && is_false) base_buf_puts(out, ", whatever the answer says");
    for (uint32_t i = 0; is_known && i < u.n && i < MOST_IN_ROW; i++) {
        const tool_use_place *p = &u.places[i];
        base_buf_puts(out, i ? ", " : ": ");
        if (*p->inside) base_buf_printf(out, "%s (", p->inside);
        base_buf_printf(out, "%s:%u", p->path, p->line);
        if (*p->inside) base_buf_putc(out, ')');
    }
    if (is_known && u.n > MOST_IN_ROW) base_buf_printf(out, " and %u more", u.n - MOST_IN_ROW);
    if (is_known && !has_code) {
        base_buf_puts(out, ".");
        put_caution(&u, out);
    }
    tool__used_free(&u);
    return is_known;
}
