/* How the source of a move gives its definitions to other files (contract: move_script.h). */
#include "tools/refactor/move_script.h"

#include <string.h>

#include "tools/file/text.h"

static const char *text_of(const mover *m, const refactor *part)
{
    return m->from->file.text.data + part->target.definition->from;
}

static bool begins(const char *text, const char *word)
{
    return !strncmp(text, word, strlen(word));
}

bool script__is_giving(const mover *m, const refactor *part, const code_use *u, uint32_t *from, uint32_t *to)
{
    const char *s = m->from->file.text.data;
    const size_t n = strlen(part->name);
    if (!u->is_exported || u->definition != UINT32_MAX || u->import != UINT32_MAX ||
        mover__is_cut(m, u->from))
        return false;
    *from = u->from;
    *to = u->from + (uint32_t)n;
    if (u->role == CODE_USE_MEMBER) {
        const size_t line = tool__line_begin(s, u->from);
        const char *p = s + *to;
        p += strspn(p, " ");
        if (*p != '=' || p[1] == '=' ||
            !(begins(s + line, "exports.") || begins(s + line, "module.exports.")))
            return false;
        p += 1 + strspn(p + 1, " ");
        if (strncmp(p, part->name, n) != 0 || code_is_name_byte(p[n]) || strchr(".([", *(p + n) ? p[n] : ' '))
            return false;
        *from = (uint32_t)line;
        *to = (uint32_t)(p - s + n);
        return true;
    }
    if (u->role == CODE_USE_KEY) { /* f: f */
        const char *p = s + *to + strspn(s + *to, " ");
        if (*p != ':') return false;
        p += 1 + strspn(p + 1, " ");
        if (strncmp(p, part->name, n) != 0) return false;
        *to = (uint32_t)(p - s + n);
    }
    const char *behind = s + *to + strspn(s + *to, " \t\r\n");
    size_t before = *from;
    while (before > 0 && tool__is_space(s[before - 1])) before--;
    return (*behind == ',' || *behind == '}') && before > 0 && strchr("{,", s[before - 1]);
}

script_form script__form(const mover *m, const refactor *part)
{
    const char *text = text_of(m, part);
    uint32_t from, to;
    if (begins(text, "export default ")) return SCRIPT_DEFAULT;
    if (begins(text, "export ")) return SCRIPT_WORD;
    if (begins(text, "exports.") || begins(text, "module.exports.")) return SCRIPT_ASSIGNED;
    for (size_t i = 0; i < part->n_places; i++)
        if (&part->files[part->places[i].file] == part->target.in &&
            script__is_giving(m, part, part->places[i].use, &from, &to))
            return SCRIPT_LISTED;
    return SCRIPT_HIDDEN;
}

bool mover__script_is_given(const mover *m, const refactor *part)
{
    return script__form(m, part) != SCRIPT_HIDDEN;
}

bool script__is_type(const refactor *part)
{
    return !strcmp(part->target.what, "interface") || !strcmp(part->target.what, "type");
}

const char *script__new_name(const mover *m, const refactor *part)
{
    return script__form(m, part) == SCRIPT_DEFAULT && m->is_new ? "default" : part->name;
}

const refactor *script__given(const mover *m, const char *name)
{
    for (size_t i = 0; i < m->n_parts; i++) {
        const script_form form = script__form(m, m->parts[i]);
        if (form == SCRIPT_HIDDEN) continue;
        if (!strcmp(name, form == SCRIPT_DEFAULT ? "default" : m->parts[i]->name)) return m->parts[i];
    }
    return NULL;
}
