/*
 * Slash commands: a table of name, arguments, help and function. Everything they do is told as events, and
 * what they do to rows goes through plans like any other change.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/act/act.h"
#include "agent/approve/approvals.h"
#include "agent/approve/approve.h"
#include "agent/command/command.h"
#include "agent/command/commands.h"
#include "agent/command/skills.h"
#include "agent/lifetime/lifetime.h"
#include "agent/log/log.h"
#include "agent/sequence/sequence.h"
#include "agent/session/tell.h"
#include "agent/turn/turn.h"
#include "base/edits.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/numbers.h"
#include "base/show.h"
#include "base/utf8.h"
#include "code/map.h"

/* --- commands ------------------------------------------------------------------------------------------- */

static int run_help(agent *a, const char *arguments, base_err *err)
{
    uint32_t n;
    const agent_command *table = agent_commands(&n);
    base_buf out = {0};
    for (uint32_t i = 0; i < n; i++)
        base_buf_printf(
            &out, "%s/%s %s\t%s", i ? "\n" : "", table[i].name, table[i].arguments, table[i].about);
    agent__list_skills(a, &out);
    base_buf_puts(&out, "\n!COMMAND\truns a shell command in the sandbox; the next request sees its output");
    agent__notice(a, "%s", out.data);
    base_buf_free(&out);
    return 0;
}

static int run_mode(agent *a, const char *arguments, base_err *err)
{
    agent_mode mode;
    if (*arguments && !agent_mode_parse(arguments, &mode))
        return base_fail(err, BASE_E_USAGE, "no mode is called \"%s\": plan, ask, edits or all", arguments);
    if (*arguments && !a->host.approve && mode > a->settings.mode)
        return agent__deny_unasked(a,
            "a request cannot loosen the mode where nobody can be asked: --mode does, before the run", err);
    int rc = *arguments ? agent_set_mode(a, mode, err) : 0;
    if (!rc) agent__notice(a, "mode %s", agent_mode_word(a->settings.mode));
    return rc;
}

static int run_tries(agent *a, const char *arguments, base_err *err)
{
    char *end;
    unsigned long n = strtoul(arguments, &end, 10);
    if (*arguments && (*end || end == arguments || n > AGENT_MOST_TRIES || *arguments == '-'))
        return base_fail(err, BASE_E_USAGE, "/tries takes 0 to %d, not \"%s\"", AGENT_MOST_TRIES, arguments);
    if (*arguments) a->settings.tries = (uint32_t)n;
    if (agent__tries(a) > 1)
        agent__notice(a, "up to %u candidates where a test fails", agent__tries(a));
    else
        agent__notice(a, "no candidates: one attempt after the other");
    return 0;
}

/* What the session began with and where that comes from, and what has been changed in it since. */
static int run_settings(agent *a, const char *arguments, base_err *err)
{
    kv_stats s;
    a->engine->ops->stats(a->engine, &s);
    if (a->settings.told) agent__notice(a, "%s", a->settings.told);
    base_buf now = {0};
    base_buf_printf(
        &now, "in force now: mode %s, tries %u", agent_mode_word(a->settings.mode), agent__tries(a));
    if (s.budget)
        base_buf_printf(&now, ", budget %s %s", BASE_THOUSANDS(s.budget),
            agent__is_priced(a) ? "tokens of a request" : "rows a lane");
    else
        base_buf_puts(&now, ", no budget");
    if (s.budget && s.until)
        base_buf_printf(&now, " (nothing leaves before there are %s)", BASE_THOUSANDS(s.until));
    if (s.state_bytes)
        base_buf_printf(&now,
            "; %u states kept of at most %u, %.1f MiB each (--kv-set states=MiB in memory, states_disk=MiB "
            "on disk), %.1f MiB with those at work",
            s.states, s.states_most, (double)s.state_bytes / (1 << 20), (double)s.states_bytes / (1 << 20));
    agent__describe_configured(a, &now);
    agent__notice(a, "%s", now.data);
    base_buf_free(&now);
    return 0;
}

/* What was allowed for good in this tree; "remove N" and "remove all" take it back. */
static int run_approvals(agent *a, const char *arguments, base_err *err)
{
    agent_approvals all;
    int rc = agent_approvals_read(tool_workspace_root(a->workspace), &all, err);
    if (rc) return rc;
    char *end;
    const char *which = !strncmp(arguments, "remove ", 7) ? arguments + 7 : NULL;
    const bool is_all = which && !strcmp(which, "all");
    const unsigned long number = which && *which >= '0' && *which <= '9' ? strtoul(which, &end, 10) : 0;
    if (*arguments && !is_all && (!number || *end || number > all.n))
        rc = base_fail(
            err, BASE_E_USAGE, "/approvals alone lists them; /approvals remove N (1 to %zu) or all", all.n);
    base_buf out = {0};
    for (size_t i = 0; i < all.n && !rc; i++) {
        const bool goes = is_all || i + 1 == number;
        if (goes) rc = agent_approvals_remove(&all.rows[i], err);
        if (*arguments && !goes) continue;
        base_buf_printf(&out, "%s%s%zu\t%s\t", out.len ? "\n" : "", goes ? "taken back: " : "", i + 1,
            agent_approval_word(all.rows[i].kind));
        base_show(&out, all.rows[i].what, strlen(all.rows[i].what), BASE_SHOW_UTF8);
    }
    if (!rc) agent__notice(a, "%s", out.len ? out.data : "nothing is allowed for good in this tree");
    base_buf_free(&out);
    agent_approvals_free(&all);
    return rc;
}

/* The tree's own command, as a person would type it behind "!". */
static int run_configured(agent *a, agent_configured which, base_err *err)
{
    const char *word = agent__configured_word(which);
    if (!a->settings.configured[which].command)
        return base_fail(err, BASE_E_USAGE,
            "no %s is configured: a line \"%s = COMMAND\" in "
            ".kvist/config or your own configuration names one",
            word, word);
    if (a->settings.mode == AGENT_MODE_PLAN)
        return base_fail(err, BASE_E_STATE, "in mode plan nothing is run: choose another mode (/mode)");
    const char *command = agent__configured(a, which);
    return command ? agent__shell_line(a, command, false, err) : 0;
}

static int run_test(agent *a, const char *arguments, base_err *err)
{
    return run_configured(a, AGENT_CONFIGURED_TEST, err);
}

static int run_lint(agent *a, const char *arguments, base_err *err)
{
    return run_configured(a, AGENT_CONFIGURED_LINT, err);
}

/* The map is shown, and stands in front of the next request. */
static int run_map(agent *a, const char *arguments, base_err *err)
{
    enum { BYTES_PER_TOKEN = 4, MAP_TOKENS = 1000 };
    const char **paths = base_xcalloc(a->transcript.n_segments + 1, sizeof *paths);
    size_t n = 0;
    for (size_t i = 0; i < a->transcript.n_segments; i++)
        if (a->transcript.segments[i].path && !a->transcript.segments[i].stale)
            paths[n++] = a->transcript.segments[i].path;
    uint32_t tokens = a->settings.context_tokens && a->settings.context_tokens != UINT32_MAX
                          ? a->settings.context_tokens
                          : MAP_TOKENS;
    base_buf map = {0};
    const code_map_options options = {
        .words = arguments, .paths = paths, .budget_bytes = (size_t)tokens * BYTES_PER_TOKEN};
    uint32_t shown = code_index_map(tool_workspace_index(a->workspace), &options, &map);
    if (shown) {
        base_buf_clear(&a->notes.map);
        base_buf_printf(
            &a->notes.map, "The definitions of this tree that the others lean on:\n%s\n", map.data);
        agent__notice(a, "%s", map.data);
        agent__notice(a, "%s definitions, about %s tokens; they stand in front of the next request",
            BASE_THOUSANDS(shown), BASE_THOUSANDS(map.len / BYTES_PER_TOKEN));
    } else {
        agent__notice(a, "this tree has no definitions that the program can read");
    }
    base_buf_free(&map);
    free(paths);
    return 0;
}

static int run_rewind(agent *a, const char *arguments, base_err *err)
{
    char *end;
    unsigned long turn = strtoul(arguments, &end, 10);
    if (!*arguments) turn = a->turn;
    if (!a->turn) return base_fail(err, BASE_E_USAGE, "there is no turn yet: nothing to rewind");
    if (*end || turn < 1 || turn > a->turn)
        return base_fail(err, BASE_E_USAGE, "rewind to before which turn? The session has %u turn%s", a->turn,
            a->turn == 1 ? "" : "s");
    return agent__rewind(a, (uint32_t)turn, err);
}

static int run_new(agent *a, const char *arguments, base_err *err)
{
    return agent__restart(a, NULL, err);
}

/* The texts that are still (mostly) active, oldest first, for the child session: at most half its context. */
static void put_active(agent *a, base_buf *out)
{
    kv_stats s;
    uint32_t n;
    a->engine->ops->stats(a->engine, &s);
    const int32_t *ids = a->engine->ops->ids(a->engine, &n);
    uint32_t *lanes = base_xcalloc(n + 1, sizeof *lanes);
    agent__active_lanes(a, lanes);
    uint32_t most = (s.budget && s.budget < s.n_ctx ? s.budget : s.n_ctx) / 2, used = 0,
             start = a->transcript.turn_starts && a->turn ? a->transcript.turn_starts[1] : n;
    uint32_t first = n; /* as far back as fits */
    while (first > start && used < most) used += lanes[--first] * 2 >= s.n_lanes;
    for (uint32_t i = first; i < n; i++) {
        size_t len = 0;
        bool active = lanes[i] * 2 >= s.n_lanes;
        const char *piece = agent__piece(a, ids[i], &len);
        if (piece && active) base_buf_add(out, piece, len);
        if (!active && i > first && lanes[i - 1] * 2 >= s.n_lanes) base_buf_puts(out, " ... ");
    }
    free(lanes);
}

/* A second session as this one is now; this one goes on. */
static int run_fork(agent *a, const char *arguments, base_err *err)
{
    char id[32];
    if (!a->log) return base_fail(err, BASE_E_STATE, "this session is not logged: there is nothing to fork");
    if (!a->turn) return base_fail(err, BASE_E_USAGE, "there is no turn yet: nothing to fork");
    agent_settle(a);
    agent__commit(a);
    agent_log_new_id(id);
    int rc = agent_log_fork(a->log, a->telling.id, id, err);
    if (!rc)
        agent__notice(a,
            "session %s is this one as it is now; this one goes on. kvist --resume %s goes on there", id, id);
    return rc;
}

static int run_title(agent *a, const char *arguments, base_err *err)
{
    enum { MOST_TITLE = 200 };
    base_buf clean = {0};
    base_utf8_sanitise(&clean, arguments, strlen(arguments), false);
    int rc = 0;
    if (!*arguments || clean.len > MOST_TITLE)
        rc = base_fail(
            err, BASE_E_USAGE, "/title takes the session's name for lists, up to %d bytes", MOST_TITLE);
    if (!rc) {
        agent__emit(a, &(agent_event){.type = AGENT_EVENT_title, .title = {clean.data}});
        agent__notice(a, "this session is called \"%s\"", clean.data);
    }
    base_buf_free(&clean);
    return rc;
}

static int run_compact(agent *a, const char *arguments, base_err *err)
{
    if (!a->turn) return base_fail(err, BASE_E_USAGE, "there is no turn yet: nothing to compact");
    base_buf text = {0};
    base_buf_puts(&text, "From the session before this one:\n");
    put_active(a, &text);
    uint32_t n = agent__count(a, text.data, text.len);
    char *parent = base_xstrdup(a->telling.id);
    agent__notice(a, "compacting: %s of %s tokens go on in a new session and are computed again there",
        BASE_THOUSANDS(n), BASE_THOUSANDS(agent__n_tokens(a)));
    int rc = agent__restart(a, parent, err);
    if (!rc) rc = agent__open_message(a, MODEL_ROLE_USER, err);
    agent_text t = {
        .origin = KV_ORIGIN_CONTEXT, .text = text.data, .n = text.len, .label = "from the parent session"};
    if (!rc) rc = agent__append(a, &t, NULL, err);
    if (!rc) rc = agent__open_message(a, -1, err);
    if (!rc) agent__notice(a, "session %s goes on from %s", a->telling.id, parent);
    free(parent);
    base_buf_free(&text);
    return rc;
}

static void put_session(void *user, const agent_log_row *r)
{
    base_buf *out = user;
    size_t n = strcspn(r->title, "\n");
    if (r->is_what_if) return; /* nobody can go on with it */
    base_buf_printf(out, "%s%s\t%u turn%s\t%s\t%.*s", out->len ? "\n" : "", r->id, r->turns,
        r->turns == 1 ? "" : "s", r->status, (int)(n < 60 ? n : 60), r->title);
}

static int run_sessions(agent *a, const char *arguments, base_err *err)
{
    base_buf out = {0};
    int rc = a->log ? agent_log_list(a->log, tool_workspace_root(a->workspace), put_session, &out, err) : 0;
    if (!rc) agent__notice(a, "%s", out.len ? out.data : "no sessions are logged; --resume ID reopens one");
    base_buf_free(&out);
    return rc;
}

static bool ends_with(const char *s, const char *end)
{
    const size_t n = strlen(s), m = strlen(end);
    return n > m && !strcmp(s + n - m, end);
}

/* "FILE --markdown" or "--markdown FILE": takes the flag out. */
static bool take_flag(base_buf *words, const char *flag)
{
    const size_t n = strlen(flag);
    const bool leads = words->len >= n && !strncmp(words->data, flag, n) && strchr(" \t", words->data[n]);
    const bool ends = words->len > n + 1 && ends_with(words->data, flag) &&
                      (words->data[words->len - n - 1] == ' ' || words->data[words->len - n - 1] == '\t');
    if (!leads && !ends) return false;
    char *rest = base_xstrdup(words->data + (leads ? n + strspn(words->data + n, " \t") : 0));
    size_t left = strlen(rest) - (leads ? 0 : n);
    while (left && strchr(" \t", rest[left - 1])) left--;
    base_buf_clear(words);
    base_buf_add(words, rest, left);
    free(rest);
    return true;
}

static bool put_event(
    void *user, uint64_t seq, uint32_t turn, const char *json, size_t n, const void *blob, size_t blob_n)
{
    base_buf_add(user, json, n);
    base_buf_putc(user, '\n');
    return true;
}

static int run_export(agent *a, const char *arguments, base_err *err)
{
    if (!a->log) return base_fail(err, BASE_E_STATE, "this session is not logged");
    base_buf out = {0}, path = {0};
    base_buf_puts(&path, arguments);
    const bool is_asked = take_flag(&path, "--markdown");
    if (!path.len) base_buf_printf(&path, "kvist-%s.%s", a->telling.id, is_asked ? "md" : "jsonl");
    const bool is_page = is_asked || ends_with(path.data, ".md");
    agent__commit(a);
    int rc = is_page ? agent_log_markdown(a->log, a->telling.id, &out, err)
                     : agent_log_events(a->log, a->telling.id, put_event, &out, err);
    if (!rc) rc = base_fs_write_new(path.data, out.data ? out.data : "", out.len, 0600, err);
    if (!rc) agent__notice(a, "wrote %zu bytes to %s", out.len, path.data);
    base_buf_free(&out);
    base_buf_free(&path);
    return rc;
}

static int run_mcp(agent *a, const char *arguments, base_err *err)
{
    return agent__describe_outside(a, arguments, err);
}

/* --- the table ------------------------------------------------------------------------------------------ */

static command_fn *const functions[] = {
#define COMMAND(name, function, who, instead, arguments, about) function,
#include "agent/command/commands.def"
#undef COMMAND
};

typedef enum permission { BY_ANYBODY, BY_PERSON, CHANGES_BY_PERSON } permission;

static const struct {
    permission who;
    const char *instead;
} permissions[] = {
#define COMMAND(name, function, who, instead, arguments, about) {who, instead},
#include "agent/command/commands.def"
#undef COMMAND
};

static int run_command(agent *a, uint32_t i, const char *name, const char *arguments, base_err *err)
{
    const permission who = permissions[i].who;
    const char *instead = permissions[i].instead;
    base_buf sentence = {0};
    if (a->host.approve || who == BY_ANYBODY || (who == CHANGES_BY_PERSON && !*arguments))
        return functions[i](a, arguments, err);
    base_buf_printf(&sentence,
        "/%s%s is for a person at the screen, and nobody can be asked in this run%s%s%s", name,
        who == BY_PERSON ? "" : " with words behind it", instead ? " (" : "", instead ? instead : "",
        instead ? ")" : "");
    const int rc = agent__deny_unasked(a, sentence.data, err);
    base_buf_free(&sentence);
    return rc;
}

static int unknown_command(agent *a, const char *word, size_t n, base_err *err)
{
    uint32_t n_commands;
    const agent_command *about = agent_commands(&n_commands);
    agent_skills skills;
    agent_skills_find(a->workspace, &skills);
    char *typed = base_xstrndup(word, n), shown[80];
    base_guess guess = base_guess_begin(typed);
    for (uint32_t i = 0; i < n_commands; i++) base_guess_offer(&guess, about[i].name);
    for (size_t i = 0; i < skills.n; i++) base_guess_offer(&guess, skills.all[i].name);
    if (guess.meant) snprintf(shown, sizeof shown, "; did you mean /%.60s?", guess.meant);
    const int rc = base_fail(
        err, BASE_E_USAGE, "there is no command /%.40s%s", typed, guess.meant ? shown : ": /help lists them");
    free(typed);
    agent_skills_free(&skills);
    return rc;
}

int agent__command(agent *a, const char *line, base_err *err)
{
    size_t n = strcspn(line + 1, " \t\n");
    const char *arguments = line + 1 + n;
    while (*arguments == ' ' || *arguments == '\t') arguments++;
    char *trimmed = base_xstrdup(arguments);
    for (size_t len = strlen(trimmed); len && strchr(" \t\n", trimmed[len - 1]); len--) trimmed[len - 1] = 0;
    base_err mine = {0};
    uint32_t i = 0, n_commands;
    const agent_command *about = agent_commands(&n_commands);
    while (i < n_commands && (strlen(about[i].name) != n || strncmp(about[i].name, line + 1, n))) i++;
    bool is_told = false;
    int rc = i == n_commands ? agent__use_skill(a, line + 1, n, trimmed, &mine)
             : functions[i]  ? run_command(a, i, about[i].name, trimmed, &mine)
                             : 0;
    if (i == n_commands && rc == BASE_E_NOT_FOUND)
        rc = unknown_command(a, line + 1, n, &mine);
    else
        is_told = i == n_commands;
    free(trimmed);
    if (rc && !is_told) agent__error(a, &mine);
    if (rc && err) *err = mine;
    return rc;
}
