/*
 * An automaton over bytes: free text until a trigger stands at the start of a line, then one tool call, then
 * free text again.
 *
 * A call is a short script of literals with three holes (white space, the tool's name, its arguments). Every
 * phase is a function that takes one byte; the state is a few numbers, so trying a token is a copy and a walk
 * over its bytes, and a mask is the same walk over the vocabulary's trie. White space, numbers and strings
 * are bounded, so a call always ends.
 *
 * What a call means (and calls in other spellings) is the agent's lenient parser. One thread at a time.
 */
#include "model/text/grammar.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/text/grammar_state.h"
#include "model/text/json_character.h"

/* ---- what may be written ---- */

/* Holes of a script; no literal contains them. */
#define SPACE      "\1"
#define NAME       "\2"
#define ARGUMENTS  "\3"
#define PARAMETERS "\4" /* up to the "</" that ends them: grammar_xml.c */
#define REST       "\5" /* of a head, behind the name: grammar_harmony.c */
#define LETTER     "\6" /* or a digit */
#define CALL_ID    LETTER LETTER LETTER LETTER LETTER LETTER LETTER LETTER LETTER
#define MEMBERS                                                                                              \
    SPACE ":" SPACE "\"" NAME "\"" SPACE "," SPACE "\"arguments\"" SPACE ":" SPACE "{" ARGUMENTS "}" SPACE
#define BODY    MEMBERS "}"
#define NAMED   SPACE "{" SPACE "\"name\""
#define OBJECT  NAMED BODY
#define WITH_ID NAMED MEMBERS "," SPACE "\"id\"" SPACE ":" SPACE "\"" CALL_ID "\"" SPACE "}"

/* clang-format off */
static const struct {
    const char *trigger, *script;
} styles[] = {
    [MODEL_TOOLS_TAG_TOOLS] = {"<tools>",     OBJECT SPACE "</tools>"},
    [MODEL_TOOLS_HERMES]    = {"<tool_call>", OBJECT SPACE "</tool_call>"},
    [MODEL_TOOLS_XML]       = {"<tool_call>", SPACE "<function=" NAME ">" PARAMETERS "function>" SPACE "</tool_call>"},
    [MODEL_TOOLS_SEED]      = {"<seed:tool_call>", SPACE "<function=" NAME ">" PARAMETERS "function>" SPACE "</seed:tool_call>"},
    [MODEL_TOOLS_HARMONY]   = {"",            NAME REST SPACE "{" ARGUMENTS "}" SPACE HARMONY_CALL},
    [MODEL_TOOLS_MISTRAL]   = {"",            NAME MISTRAL_ARGS SPACE "{" ARGUMENTS "}" SPACE MISTRAL_END},
    [MODEL_TOOLS_MISTRAL_IDS] = {"",          NAME MISTRAL_ID CALL_ID MISTRAL_ARGS SPACE "{" ARGUMENTS "}" SPACE MISTRAL_END},
    [MODEL_TOOLS_GEMMA]     = {"",            "call:" NAME "{" ARGUMENTS "}" GEMMA_END},
    [MODEL_TOOLS_GRANITE]   = {"",            SPACE "[" OBJECT SPACE "]" SPACE LIST_END},
    [MODEL_TOOLS_NEMO]      = {"",            SPACE "[" WITH_ID SPACE "]" SPACE LIST_END},
    [MODEL_TOOLS_JSON]      = {"{\"name\"",   BODY},
};
/* clang-format on */

static verdict step_idle(const model_grammar *g, state *s, uint8_t byte)
{
    (void)g;
    if (byte == '\n') s->at = 0, s->phase = LINE;
    return TAKEN;
}

/*
 * What stands in a fenced block behind a call is its payload, and JSON in any fenced block may be just that;
 * the lenient parser looks into fences.
 */
static bool is_blocked(const model_grammar *g, const state *s)
{
    return g->names.n == 0 || (s->fence && (s->called || g->trigger[0] == '{'));
}

static verdict step_line(const model_grammar *g, state *s, uint8_t byte)
{
    if (s->at == 0 && (byte == ' ' || byte == '\t')) return go(s, INDENT, TAKEN);
    if (s->at == 0 && (byte == '`' || byte == '~')) return go(s, INDENT, AGAIN);
    if (byte != (uint8_t)g->trigger[s->at] || is_blocked(g, s)) return go(s, IDLE, AGAIN);
    if (g->trigger[++s->at]) return TAKEN;
    s->at = 0;
    return go(s, SCRIPT, TAKEN);
}

static verdict step_indent(const model_grammar *g, state *s, uint8_t byte)
{
    (void)g;
    if (byte == ' ' || byte == '\t') return TAKEN;
    if (byte != '`' && byte != '~') return go(s, IDLE, AGAIN);
    s->character = byte;
    s->marks = 0;
    return go(s, MARKS, AGAIN);
}

/* Three marks or more open a fence; as many as opened it close it. */
static verdict step_marks(const model_grammar *g, state *s, uint8_t byte)
{
    (void)g;
    if (byte == s->character) {
        if (s->marks < UINT8_MAX) s->marks++;
        return TAKEN;
    }
    if (s->fence) return go(s, s->marks >= s->fence ? CLOSING : IDLE, AGAIN);
    if (s->marks >= 3) s->fence = s->marks;
    return go(s, IDLE, AGAIN);
}

static verdict step_closing(const model_grammar *g, state *s, uint8_t byte)
{
    (void)g;
    if (byte && strchr(" \t\r`~", byte)) return TAKEN;
    if (byte == '\n') s->fence = 0;
    return go(s, IDLE, AGAIN);
}

/* Where free text goes on: of marked forms in phases of their own, else in `plain`. */
static phase free_phase(const model_grammar *g, phase plain)
{
    return g->is_harmony ? HARMONY_BODY : g->n_marks ? MARKED_TEXT : plain;
}

/* Of a call's id: ASCII, whatever the locale. */
static bool is_letter(uint8_t byte)
{
    return (byte >= '0' && byte <= '9') || ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z');
}

static verdict step_script(const model_grammar *g, state *s, uint8_t byte)
{
    char op = g->script[s->at];
    if (op == SPACE[0]) {
        if (take_space(s, byte)) return TAKEN;
        s->at++;
        return go(s, SCRIPT, AGAIN);
    }
    if (op == NAME[0]) {
        s->at++;
        s->range = grammar_list_all(&g->names);
        return go(s, TOOL_NAME, AGAIN);
    }
    if (op == ARGUMENTS[0]) {
        s->at++;
        s->argument = 0;
        s->used = 0;
        return go(s, FIRST_ARGUMENT, AGAIN);
    }
    if (op == PARAMETERS[0]) {
        s->at++;
        s->argument = 0;
        return go(s, XML_BETWEEN, AGAIN);
    }
    if (op == REST[0]) {
        s->at++;
        s->range = grammar_list_all(&g->heads);
        return go(s, HARMONY_REST, AGAIN);
    }
    if (op == LETTER[0] ? !is_letter(byte) : byte != (uint8_t)op) return REFUSED;
    s->at++;
    if (g->script[s->at]) return TAKEN;
    s->called = true;
    s->at = 0;
    return go(s, free_phase(g, IDLE), TAKEN);
}

/* It ends with what the script has behind it. */
static verdict step_tool_name(const model_grammar *g, state *s, uint8_t byte)
{
    /* A head goes on with a space or with a mark, which no name holds. */
    const bool ends =
        g->is_harmony ? byte == ' ' || grammar_marks_has(g, byte) : byte == (uint8_t)g->script[s->at];
    if (ends && grammar_list_is_whole(&g->names, &s->range)) {
        s->tool = (uint16_t)s->range.from;
        return go(s, SCRIPT, AGAIN);
    }
    return grammar_list_narrow(&g->names, &s->range, byte) ? TAKEN : REFUSED;
}

/* Where blanks may stand: around a call's arguments, unless the form has none. */
static bool take_blank(const model_grammar *g, state *s, uint8_t byte)
{
    return !g->is_bare && take_space(s, byte);
}

static verdict begin_key(const model_grammar *g, state *s, verdict v)
{
    s->keys = next_keys(g, s);
    s->at_key = 0;
    return s->keys ? go(s, KEY, v) : REFUSED;
}

static verdict step_first_argument(const model_grammar *g, state *s, uint8_t byte)
{
    if (take_blank(g, s, byte)) return TAKEN;
    if (byte == '}') return may_close(g, s) ? go(s, SCRIPT, AGAIN) : REFUSED;
    if (g->is_bare) return begin_key(g, s, AGAIN);
    return byte == '"' ? begin_key(g, s, TAKEN) : REFUSED;
}

static verdict step_next_argument(const model_grammar *g, state *s, uint8_t byte)
{
    if (take_blank(g, s, byte)) return TAKEN;
    if (byte == ',' && g->is_bare) return begin_key(g, s, TAKEN);
    if (byte == ',') return next_keys(g, s) ? go(s, OPEN_KEY, TAKEN) : REFUSED;
    return byte == '}' && may_close(g, s) ? go(s, SCRIPT, AGAIN) : REFUSED;
}

static verdict step_open_key(const model_grammar *g, state *s, uint8_t byte)
{
    if (take_space(s, byte)) return TAKEN;
    return byte == '"' ? begin_key(g, s, TAKEN) : REFUSED;
}

static verdict step_key(const model_grammar *g, state *s, uint8_t byte)
{
    const tool *t = &g->tools[s->tool];
    uint32_t keys = 0;
    for (uint32_t i = 0; i < t->n_arguments; i++) {
        if (!(s->keys >> i & 1)) continue;
        const argument *a = &t->arguments[i];
        if (a->n_name == s->at_key && byte == (g->is_bare ? ':' : '"')) {
            s->argument = (uint16_t)i;
            return go(s, g->is_bare ? VALUE : COLON, TAKEN);
        }
        if (a->n_name > s->at_key && (uint8_t)a->name[s->at_key] == byte) keys |= 1u << i;
    }
    s->keys = keys;
    s->at_key++;
    return keys ? TAKEN : REFUSED;
}

static verdict step_colon(const model_grammar *g, state *s, uint8_t byte)
{
    (void)g;
    if (take_space(s, byte)) return TAKEN;
    return byte == ':' ? go(s, VALUE, TAKEN) : REFUSED;
}

static verdict end_value(state *s, verdict v)
{
    s->used |= 1u << s->argument;
    s->argument++;
    return go(s, NEXT_ARGUMENT, v);
}

static verdict step_value(const model_grammar *g, state *s, uint8_t byte)
{
    if (take_blank(g, s, byte)) return TAKEN;
    const argument *a = current(g, s);
    s->n = 0;
    s->character = PLAIN;
    if (a->type == MODEL_ARGUMENT_INTEGER) return go(s, INTEGER, AGAIN);
    if (a->type == MODEL_ARGUMENT_BOOLEAN) {
        s->range = grammar_list_all(&g->words);
        return go(s, WORD, AGAIN);
    }
    if (byte != g->quote) return REFUSED;
    const grammar_list *list = listed(g, a);
    if (!list) return go(s, STRING, TAKEN);
    s->range = grammar_list_all(list);
    return go(s, LISTED, TAKEN);
}

static verdict step_word(const model_grammar *g, state *s, uint8_t byte)
{
    if (!grammar_list_narrow(&g->words, &s->range, byte)) return REFUSED;
    return grammar_list_is_whole(&g->words, &s->range) ? end_value(s, TAKEN) : TAKEN;
}

static verdict step_listed(const model_grammar *g, state *s, uint8_t byte)
{
    const grammar_list *list = listed(g, current(g, s));
    if (byte == g->quote && grammar_list_is_whole(list, &s->range)) return end_value(s, TAKEN);
    return grammar_list_narrow(list, &s->range, byte) ? TAKEN : REFUSED;
}

/* -?(0|[1-9][0-9]*), bounded. state.character says what came, in this function's own words. */
static verdict step_integer(const model_grammar *g, state *s, uint8_t byte)
{
    enum { NOTHING, SIGN, ZERO, DIGITS };
    (void)g;
    bool digit = byte >= '0' && byte <= '9';
    if (s->character == NOTHING && byte == '-') return s->character = SIGN, TAKEN;
    if (s->character <= SIGN) {
        if (!digit) return REFUSED;
        s->character = byte == '0' ? ZERO : DIGITS;
        s->n = 1;
        return TAKEN;
    }
    if (!digit) return end_value(s, AGAIN);
    if (s->character == ZERO || s->n >= MAX_DIGITS) return REFUSED;
    s->n++;
    return TAKEN;
}

/* Where new text is an argument it may be a whole file. */
static uint32_t most_string(const model_grammar *g)
{
    return g->n_marks ? MAX_TEXT : MAX_STRING;
}

static bool is_text(uint8_t byte)
{
    return byte >= 0x20 || (byte && strchr("\t\n\r", byte));
}

static verdict step_string(const model_grammar *g, state *s, uint8_t byte)
{
    s->n++;
    if (s->character != PLAIN) return json_character_step(byte, &s->character) ? TAKEN : REFUSED;
    if (byte == g->quote) return end_value(s, TAKEN);
    if (g->is_bare) return s->n <= most_string(g) && is_text(byte) ? TAKEN : REFUSED;
    return s->n <= most_string(g) && json_character_begin(byte, &s->character) ? TAKEN : REFUSED;
}

static step_fn *const steps[N_PHASES] = {[IDLE] = step_idle,
    [LINE] = step_line,
    [INDENT] = step_indent,
    [MARKS] = step_marks,
    [CLOSING] = step_closing,
    [SCRIPT] = step_script,
    [TOOL_NAME] = step_tool_name,
    [FIRST_ARGUMENT] = step_first_argument,
    [NEXT_ARGUMENT] = step_next_argument,
    [OPEN_KEY] = step_open_key,
    [KEY] = step_key,
    [COLON] = step_colon,
    [VALUE] = step_value,
    [STRING] = step_string,
    [INTEGER] = step_integer,
    [WORD] = step_word,
    [LISTED] = step_listed,
    [HARMONY_HEAD] = grammar_harmony_head,
    [HARMONY_BODY] = grammar_harmony_body,
    [HARMONY_REST] = grammar_harmony_rest,
    [MARKED_TEXT] = grammar_marks_text,
#define XML_STEP(phase, step) [phase] = grammar_xml_##step,
    GRAMMAR_XML_STEPS(XML_STEP)
#undef XML_STEP
};

static bool take_byte(const model_grammar *g, state *s, uint8_t byte)
{
    verdict v;
    do v = steps[s->phase](g, s, byte);
    while (v == AGAIN); /* every AGAIN moves on in the call, so this ends */
    return v == TAKEN;
}

/* ---- making one ---- */

static bool is_plain_name(const char *s)
{
    size_t n = strlen(s);
    for (size_t i = 0; i < n; i++)
        if ((uint8_t)s[i] <= 0x20 || (uint8_t)s[i] >= 0x7F || s[i] == '"' || s[i] == '\\') return false;
    return n > 0 && n < 128;
}

/* What may stand as a value: in JSON escaped, in XML and Gemma's form as it is. */
static void fill_list(const model_grammar *g, grammar_list *l, const char *const *texts)
{
    if (g->is_xml || g->is_bare)
        grammar_list_fill_lines(l, texts);
    else
        grammar_list_fill(l, texts);
}

static int add_arguments(const model_grammar *g, tool *t, const model_grammar_tool *from, base_err *err)
{
    t->arguments = base_xcalloc(from->n_arguments ? from->n_arguments : 1, sizeof *t->arguments);
    for (uint32_t i = 0; i < from->n_arguments; i++) {
        const model_grammar_argument *a = &from->arguments[i];
        argument *to = &t->arguments[t->n_arguments++];
        *to = (argument){base_xstrdup(a->name), strlen(a->name), a->type, a->required, {0}};
        if (!is_plain_name(a->name))
            return base_fail(
                err, BASE_E_USAGE, "\"%s\" of tool %s is no name for an argument", a->name, from->name);
        if (a->type != MODEL_ARGUMENT_CHOICE) continue;
        fill_list(g, &to->choices, a->choices);
        if (!to->choices.n)
            return base_fail(err, BASE_E_USAGE, "argument %s of tool %s has no choices", a->name, from->name);
    }
    return 0;
}

static int add_tools(model_grammar *g, const model_grammar_tool *tools, uint32_t n, base_err *err)
{
    if (n > MAX_TOOLS) return base_fail(err, BASE_E_LIMIT, "%u tools are more than %d", n, MAX_TOOLS);
    const char *names[MAX_TOOLS + 1] = {0};
    for (uint32_t i = 0; i < n; i++) {
        names[i] = tools[i].name;
        if (!is_plain_name(names[i]))
            return base_fail(err, BASE_E_USAGE, "\"%s\" is no name for a tool", names[i]);
        if (tools[i].n_arguments > MAX_ARGUMENTS)
            return base_fail(
                err, BASE_E_LIMIT, "tool %s has more than %d arguments", names[i], MAX_ARGUMENTS);
    }
    grammar_list_fill(&g->names, names);
    if (g->names.n != n) return base_fail(err, BASE_E_USAGE, "two tools have the same name");
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < n; k++) {
            if (strcmp(tools[k].name, g->names.items[i]) != 0) continue;
            int r = add_arguments(g, &g->tools[i], &tools[k], err);
            if (r < 0) return r;
        }
    }
    return 0;
}

int model_grammar_new(model_grammar **ret, const model_tokenizer *t, model_tool_style style,
    const model_grammar_tool *tools, uint32_t n_tools, const char *const *paths, base_err *err)
{
    static const char *const words[] = {"false", "true", NULL};
    model_grammar *g = base_xcalloc(1, sizeof *g);
    g->tokenizer = t;
    g->trigger = styles[style].trigger;
    g->script = styles[style].script;
    grammar_list_fill(&g->words, words);
    g->is_xml = model_tools_are_xml(style);
    g->is_inline = style == MODEL_TOOLS_SEED;
    g->is_harmony = style == MODEL_TOOLS_HARMONY;
    g->is_bare = style == MODEL_TOOLS_GEMMA;
    g->quote = g->is_bare ? (uint8_t)GEMMA_QUOTE[0] : '"';
    grammar_marks_find(g, style);
    g->think[0] = g->n_marks ? -1 : model_tokenizer_find(t, g->is_inline ? "<seed:think>" : "<think>");
    g->think[1] = g->n_marks ? -1 : model_tokenizer_find(t, g->is_inline ? "</seed:think>" : "</think>");
    if (g->is_harmony) grammar_harmony_fill_heads(g);
    fill_list(g, &g->paths, paths);
    g->any_path = g->paths.n == 0;
    int r = add_tools(g, tools, n_tools, err);
    if (r < 0) {
        model_grammar_free(g);
        return r;
    }
    model_grammar_reset(g);
    *ret = g;
    return 0;
}

void model_grammar_free(model_grammar *g)
{
    if (!g) return;
    for (uint32_t i = 0; i < MAX_TOOLS; i++) {
        for (uint32_t k = 0; k < g->tools[i].n_arguments; k++) {
            free(g->tools[i].arguments[k].name);
            grammar_list_free(&g->tools[i].arguments[k].choices);
        }
        free(g->tools[i].arguments);
    }
    grammar_list_free(&g->names);
    grammar_list_free(&g->paths);
    grammar_list_free(&g->words);
    grammar_list_free(&g->heads);
    for (int i = 0; i < N_KEPT; i++) free(g->kept[i].bits);
    free(g->stack);
    free(g);
}

void model_grammar_reset(model_grammar *g)
{
    g->now = (state){.phase = g->is_harmony ? HARMONY_HEAD : free_phase(g, LINE)};
    g->in_thought = g->is_begun = false;
}

bool model_grammar_is_active(const model_grammar *g)
{
    return g->now.phase >= SCRIPT;
}

/* ---- tokens ---- */

/*
 * Walks the token's bytes; false at the first that is refused. Control tokens are no text: they fit wherever
 * text is free.
 */
static bool take_token(const model_grammar *g, state *s, int32_t id)
{
    size_t n = 0;
    const char *piece = model_tokenizer_piece(g->tokenizer, id, &n);
    if (!piece) return false;
    const uint8_t mark = grammar_marks_byte(g, id);
    if (mark) return take_byte(g, s, mark);
    if (n == 0 || model_tokenizer_is_control(g->tokenizer, id) || model_tokenizer_is_end(g->tokenizer, id))
        return s->phase < SCRIPT;
    for (size_t i = 0; i < n; i++)
        if (grammar_marks_has(g, (uint8_t)piece[i]) ? s->phase >= SCRIPT
                                                    : !take_byte(g, s, (uint8_t)piece[i]))
            return false;
    return true;
}

bool model_grammar_accepts(const model_grammar *g, int32_t id)
{
    if (g->in_thought) return true;
    state s = g->now;
    return take_token(g, &s, id);
}

bool model_grammar_begins_call(const model_grammar *g, int32_t id)
{
    state s = g->now;
    if (g->in_thought) return false;
    if (model_tokenizer_is_control(g->tokenizer, id) || model_tokenizer_is_end(g->tokenizer, id))
        return false;
    return take_token(g, &s, id) && (s.phase >= SCRIPT || s.called || (s.phase == LINE && s.at > 0));
}

/* A thought begins in front of words only, and has to have an end (agent/call/channels.h); true: the token is of one. */
static bool advance_thought(model_grammar *g, int32_t id)
{
    if (!g->is_begun && g->think[1] >= 0 && id == g->think[0]) {
        g->in_thought = g->is_begun = true;
        return true;
    }
    if (!g->in_thought) {
        size_t n = 0;
        const char *piece = model_tokenizer_piece(g->tokenizer, id, &n);
        for (size_t i = 0; i < n && !g->is_begun; i++) g->is_begun = !strchr(" \t\r\n", piece[i]);
        return false;
    }
    if (id == g->think[1]) {
        g->in_thought = false;
        g->now = (state){.phase = free_phase(g, LINE)};
    }
    return true;
}

void model_grammar_advance(model_grammar *g, int32_t id)
{
    if (advance_thought(g, id)) return;
    state s = g->now;
    if (take_token(g, &s, id)) {
        g->now = s;
        return;
    }
    size_t n = 0;
    const char *piece = model_tokenizer_piece(g->tokenizer, id, &n);
    g->now = (state){.phase = free_phase(g, piece && n && piece[n - 1] == '\n' ? LINE : IDLE)};
}

/*
 * The only byte that may come, -1: several, or none. Strings and white space are seen at the second byte that
 * fits.
 */
static int only_byte(const model_grammar *g, const state *now)
{
    int only = -1;
    for (int byte = 0; byte < 256; byte++) {
        state s = *now;
        if (!take_byte(g, &s, (uint8_t)byte)) continue;
        if (only >= 0) return -1;
        only = byte;
    }
    return only;
}

uint32_t model_grammar_forced(const model_grammar *g, int32_t *ret, uint32_t max)
{
    char bytes[256];
    size_t n = 0;
    state s = g->now;
    for (int byte; !g->in_thought && n < sizeof bytes && s.phase >= SCRIPT && (byte = only_byte(g, &s)) >= 0;
         n++) {
        if (grammar_marks_has(g, (uint8_t)byte)) break; /* no text spells it */
        bytes[n] = (char)byte;
        take_byte(g, &s, (uint8_t)byte);
    }
    if (!n) return 0;
    model_ids ids = {0};
    model_tokenizer_encode(g->tokenizer, bytes, n, false, &ids);
    uint32_t count = 0;
    while (count < max && count + 1 < ids.n && ids.ids[count] >= 0) ret[count] = ids.ids[count], count++;
    model_ids_free(&ids);
    return count;
}

static bool prepare_trie(model_grammar *g)
{
    if (!g->trie) g->trie = model_tokenizer_trie(g->tokenizer);
    if (g->trie && !g->stack) g->stack = malloc(((size_t)g->trie->max_depth + 1) * sizeof *g->stack);
    return g->trie && g->stack;
}

/* Everything that decides a mask. How long a string is does not, while no token can reach its bound. */
static void state_key(const model_grammar *g, uint32_t key[N_KEY])
{
    const state *s = &g->now;
    bool listed = s->phase == HARMONY_REST || s->phase == TOOL_NAME || s->phase == LISTED ||
                  s->phase == WORD || s->phase == XML_LISTED;
    bool counts = s->phase == INTEGER || s->phase == XML_INTEGER ||
                  (s->phase == STRING && s->n + g->trie->max_depth >= most_string(g)) ||
                  (s->phase == XML_TEXT && s->n + g->trie->max_depth >= MAX_TEXT);
    const uint32_t all[N_KEY] = {s->phase, s->character, s->fence, s->marks, s->called, s->n_space, s->at_key,
        s->at, s->tool, s->argument, s->keys, s->used, counts ? s->n : 0, listed ? s->range.from : 0,
        listed ? s->range.to : 0, listed ? s->range.depth : 0};
    memcpy(key, all, sizeof all);
}

/*
 * The kept mask of this state, or the one unused longest, emptied (*ret_known false). NULL when memory is
 * gone.
 */
static kept_mask *find_kept(model_grammar *g, bool *ret_known)
{
    uint32_t key[N_KEY];
    kept_mask *oldest = &g->kept[0];
    size_t words = ((size_t)model_tokenizer_size(g->tokenizer) + 63) / 64;
    state_key(g, key);
    g->n_asked++;
    for (kept_mask *k = g->kept; k < g->kept + N_KEPT; k++) {
        if (k->used && !memcmp(k->key, key, sizeof key)) {
            k->used = g->n_asked;
            *ret_known = true;
            return k;
        }
        if (k->used < oldest->used) oldest = k;
    }
    *ret_known = false;
    oldest->used = 0;
    if (!oldest->bits) oldest->bits = malloc(words * sizeof *oldest->bits);
    if (!oldest->bits) return NULL;
    memset(oldest->bits, 0, words * sizeof *oldest->bits);
    memcpy(oldest->key, key, sizeof key);
    oldest->used = g->n_asked;
    return oldest;
}

static void allow(model_grammar *g, int32_t id)
{
    g->mask[id / 64] |= (uint64_t)1 << (id % 64);
}

/*
 * At the start of a line nearly everything goes; only tokens that hold the trigger and something wrong behind
 * it do not.
 */
static bool mask_free_text(model_grammar *g)
{
    bool any = false;
    for (uint32_t id = 0; id < model_tokenizer_size(g->tokenizer); id++)
        if (model_grammar_accepts(g, (int32_t)id)) allow(g, (int32_t)id), any = true;
    return any;
}

static bool mask_call(model_grammar *g)
{
    bool any = false;
    const token_trie *trie = g->trie;
    g->stack[0] = g->now;
    for (uint32_t i = 0; i < trie->n_nodes;) {
        const token_trie_node *node = &trie->nodes[i];
        state *s = &g->stack[node->depth];
        *s = g->stack[node->depth - 1];
        if (grammar_marks_has(g, node->byte) || !take_byte(g, s, node->byte)) {
            i += node->n_nodes;
            continue;
        }
        for (int32_t id = node->id; id >= 0; id = trie->same[id]) allow(g, id), any = true;
        i++;
    }
    for (uint8_t i = 0; i < g->n_marks; i++) {
        state s = g->now;
        if (g->marks[i] >= 0 && take_token(g, &s, g->marks[i])) allow(g, g->marks[i]), any = true;
    }
    return any;
}

const uint64_t *model_grammar_mask(model_grammar *g)
{
    bool free_text = g->now.phase < SCRIPT;
    bool known;
    if (g->in_thought || (free_text && g->now.phase != LINE && g->now.phase != HARMONY_HEAD) ||
        !prepare_trie(g))
        return NULL;
    kept_mask *k = find_kept(g, &known);
    if (!k) return NULL;
    g->mask = k->bits;
    if (!known) k->any = free_text ? mask_free_text(g) : mask_call(g);
    return k->any ? k->bits : NULL;
}

const uint64_t *model_grammar_few(model_grammar *g, const int32_t *ids, uint32_t n)
{
    const state here = g->now;
    const uint64_t *allowed = NULL;
    bool fits = true;
    for (uint32_t i = 0; i < n && fits; i++) fits = !g->in_thought && take_token(g, &g->now, ids[i]);
    if (fits && g->now.phase >= SCRIPT && g->now.phase != STRING && g->now.phase != XML_TEXT)
        allowed = model_grammar_mask(g);
    g->now = here;
    return allowed;
}
