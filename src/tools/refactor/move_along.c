/*
 * What goes along with a move by itself (contract: mover.h): a constant or a helper that nothing else uses would be left behind for
 * nothing, or keep the move from being done at all, as a static function of C does.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "tools/refactor/mover.h"

enum { MOST_PARTS = 12 };

/* "MAX_SIZE", "_ESCAPE_RE" */
static bool is_constant_name(const char *name)
{
    bool has_letter = false;
    for (const char *p = name; *p; p++) {
        if (islower((unsigned char)*p)) return false;
        has_letter |= isupper((unsigned char)*p) != 0;
    }
    return has_letter;
}

static uint32_t count_named(const code_file *file, const char *name)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < file->n_definitions; i++) n += !strcmp(file->definitions[i].name, name);
    return n;
}

/* C: does it stand between #if and #endif, but for those around a whole header? */
static bool is_conditional(const refactor_file *f, uint32_t at)
{
    const base_buf *text = &f->file.text;
    int depth = base_ends_with(f->path, ".h") ? -1 : 0;
    for (const char *p = text->data, *end = text->data + at; (p = memchr(p, '#', (size_t)(end - p))); p++) {
        const char *word = p + 1;
        while (word < end && *word == ' ') word++;
        if (end - word > 2 && !strncmp(word, "if", 2)) depth++;
        if (end - word > 5 && !strncmp(word, "endif", 5)) depth--;
    }
    return depth > 0;
}

/* May it leave the file? C: what only its file sees. */
static bool may_go(const mover *m, const code_definition *d)
{
    const code_file *file = m->from->uses->file;
    if (*d->parent || !strcmp(d->what, "field") || mover__is_cut(m, d->from) || mover__is_named(m, d->name) ||
        count_named(file, d->name) != 1 ||
        (m->to_file.text.len && code_has_identifier(m->to_file.text.data, m->to_file.text.len, d->name)))
        return false;
    if (m->from->language->family == REFACTOR_JS) return d->from != d->name_from;
    return m->from->language->family == REFACTOR_PYTHON ||
           ((refactor__is_static(m->from, d) || !strcmp(d->what, "macro")) &&
               !is_conditional(m->from, d->from));
}

/* Is it given another value somewhere? Then the new place's and the old one's would part. */
static bool is_set_again(const mover *m, const char *name)
{
    const base_buf *text = &m->from->file.text;
    base_buf word = {0};
    if (m->from->language->family == REFACTOR_JS) return mover__script_is_set(m, name);
    base_buf_printf(&word, "global %s", name);
    const bool is = memmem(text->data, text->len, word.data, word.len) != NULL;
    base_buf_free(&word);
    return is;
}

/* Does anything use it but what goes? Its own text goes with it. */
static bool is_used_elsewhere(const mover *m, const refactor *part)
{
    const code_definition *d = part->target.definition;
    bool is = false;
    for (size_t i = 0; i < part->n_places && !is; i++) {
        const refactor_place *p = &part->places[i];
        if (p->verdict == REFACTOR_OTHER || p->use->role == CODE_USE_COMMENT) continue;
        const bool is_own =
            &part->files[p->file] == part->target.in &&
            (mover__is_cut(m, p->use->from) || (p->use->from >= d->from && p->use->from < d->to));
        is = !is_own;
    }
    return is;
}

/* What stays uses what goes, or hands it on: the two modules of Python would import each other. */
static bool is_cycle(const mover *m)
{
    bool is = m->is_kept;
    if (m->from->language->family == REFACTOR_JS) return mover__script_goes_back(m);
    for (size_t i = 0; i < m->n_parts && !is; i++) is = mover__used_behind(m, m->parts[i], true) != NULL;
    return is;
}

/*
 * Python: what is private or a constant goes where nothing else uses it. Where the modules would import each other, everything
 * that nothing else uses goes, and constants go that are used elsewhere: the old place imports them back.
 */
static bool should_go(const mover *m, const refactor *part)
{
    const bool is_else = is_used_elsewhere(m, part), is_constant = is_constant_name(part->name);
    if (m->from->language->family == REFACTOR_JS)
        return !mover__script_is_given(m, part) &&
               (!is_else || (is_cycle(m) && !is_set_again(m, part->name)));
    if (m->from->language->family != REFACTOR_PYTHON) return !is_else;
    if (is_cycle(m)) return !is_else || (is_constant && !is_set_again(m, part->name));
    return !is_else && (is_constant || *part->name == '_');
}

static refactor *find_part(const mover *m, const char *name)
{
    tool_result said = {.exit_code = -1};
    refactor *part = base_xcalloc(1, sizeof *part);
    *part = (refactor){.w = m->x->w, .limits = m->x->limits, .result = &said};
    const bool is_good = refactor__find_target(part, name, m->from->path) && part->target.definition &&
                         !part->target.is_member && part->target.binding == UINT32_MAX &&
                         !strcmp(part->target.in->path, m->from->path) && refactor__resolve(part) &&
                         should_go(m, part);
    part->result = m->x->result;
    tool_result_free(&said);
    if (is_good) return part;
    refactor__free(part);
    free(part);
    return NULL;
}

bool mover__take_along(mover *m)
{
    const code_file *file = m->from->uses->file;
    const refactor_family family = m->from->language->family;
    refactor *part = NULL;
    if (family == REFACTOR_GO || m->n_parts >= MOST_PARTS) return false; /* a package of Go sees it all */
    for (uint32_t i = 0; i < file->n_definitions && !part; i++) {
        const code_definition *d = &file->definitions[i];
        const bool is_used = may_go(m, d) && code_has_identifier(m->moved.data, m->moved.len, d->name);
        if (is_used && (family != REFACTOR_JS || mover__script_uses(m, d->name)))
            part = find_part(m, d->name);
    }
    if (!part) return false;
    m->parts = base_xrealloc(m->parts, (m->n_parts + 1) * sizeof *m->parts);
    m->parts[m->n_parts++] = part;
    return true;
}
