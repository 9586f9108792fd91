/*
 * /commit: a message for what is staged, drafted by the model from the diff and from how the last messages read, shown
 * whole, and given to the person's own git after a yes, which is asked for in every mode. What is committed is
 * what was drafted for: an index that changed meanwhile is refused. The diff comes in parts where it is long: a
 * sentence or two of each stand in its place then.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/approve/approve.h"
#include "agent/command/command.h"
#include "agent/retrieve/retrieve.h"
#include "agent/sequence/sequence.h"
#include "agent/session/tell.h"
#include "agent/turn/turn.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/show.h"
#include "base/utf8.h"
#include "tools/commit.h"

enum { MOST_PARTS = 8, MOST_NOTE = 500, MOST_NAMES = 4000 };

static const char ask_message[] = "\nWrite the commit message for these staged changes, in the "
                                  "style of the last messages: a subject on one line that says "
                                  "what the change does, and behind an empty line a body that "
                                  "says why, where theirs have one. Write only the message itself.";
static const char ask_part[] = "\nSay in one or two short sentences what this part of "
                               "the staged changes does. Write only these sentences.";

/* --- the draft ------------------------------------------------------------------------------------------ */

static bool is_fence(const char *line, size_t n)
{
    return n >= 3 && (!strncmp(line, "```", 3) || !strncmp(line, "~~~", 3));
}

/* "Commit message:", "Subject: x": what stands in front of the message; its length. */
static size_t label_of(const char *line, size_t n)
{
    static const char *const labels[] = {"commit message:", "message:", "subject:", "**commit message:**"};
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        const size_t len = strlen(labels[i]);
        if (n >= len && !strncasecmp(line, labels[i], len)) return len + strspn(line + len, " \t");
    }
    return 0;
}

void agent_commit_clean(const char *answer, base_buf *ret)
{
    base_buf text = {0};
    base_utf8_sanitise(&text, answer, strlen(answer), true);
    const char *fence = NULL;
    for (const char *line = text.data; line && *line && !fence;) {
        const size_t n = strcspn(line, "\n");
        if (is_fence(line, n)) fence = line;
        line += n + (line[n] == '\n');
    }
    bool is_inside = false, is_over = false;
    const size_t start = ret->len;
    for (const char *line = text.data; line && *line && !is_over;) {
        size_t n = strcspn(line, "\n");
        const char *next = line + n + (line[n] == '\n');
        if (is_fence(line, n)) {
            is_over = is_inside;
            is_inside = true;
        } else if (is_inside || !fence) {
            if (ret->len == start) {
                const size_t marks =
                    strspn(line, "#"); /* a heading; git may take such a line for a comment */
                const size_t label =
                    marks && line[marks] == ' ' ? marks + strspn(line + marks, " ") : label_of(line, n);
                line += label;
                n = label > n ? 0 : n - label;
            }
            while (n && strchr(" \t\r", line[n - 1])) n--;
            if (ret->len == start && n > 2 && (*line == '"' || *line == '`') && line[n - 1] == *line)
                line++, n -= 2;
            if (n || ret->len > start) {
                base_buf_add(ret, line, n);
                base_buf_putc(ret, '\n');
            }
        }
        line = next;
    }
    while (ret->len > start + 1 && ret->data[ret->len - 1] == '\n' && ret->data[ret->len - 2] == '\n')
        ret->data[--ret->len] = '\0';
    base_buf_free(&text);
}

/* What the model may see of it: a file that stays on this machine is named, and nothing more. */
static void put_diff(agent *a, const tool_staged *s, base_buf *diff, base_buf *names)
{
    const tool_patches *all = &s->patches;
    for (uint32_t i = 0; i < all->n; i++) {
        const tool_patch *f = &all->items[i];
        const size_t to = i + 1 < all->n ? all->items[i + 1].from : all->text.len;
        const char *stays = agent__why_stays(a, f->path);
        base_buf shown = {
            0}; /* a name may hold a line's end, and lines that look like kvist's own behind it */
        base_show(&shown, f->path, strlen(f->path), BASE_SHOW_UTF8);
        if (stays)
            agent__notice(a, "what is staged of %s stays on this machine (%s)", shown.data, stays);
        else if (to > f->from)
            base_buf_add(diff, all->text.data + f->from, to - f->from);
        if (names->len < MOST_NAMES) base_buf_printf(names, "%c %s\n", f->how, shown.data);
        base_buf_free(&shown);
    }
    if (names->len >= MOST_NAMES) base_buf_printf(names, "... %u files together\n", all->n);
}

/* A part's end: in front of a file, of a hunk, of a line, as far back as half of the room. */
static size_t part_end(const char *text, size_t n, size_t room)
{
    static const char *const before[] = {"\ndiff --git ", "\n ", "\n"};
    if (n <= room) return n;
    for (size_t i = 0; i < sizeof before / sizeof *before; i++)
        for (size_t at = room; at > room / 2; at--)
            if (text[at - 1] == '\n' && !strncmp(text + at - 1, before[i], strlen(before[i]))) return at;
    while (room > 1 && ((unsigned char)text[room] & 0xc0) == 0x80) room--;
    return room;
}

/* A long diff as a sentence or two of each of its parts. */
static int sum_up(agent *a, const base_buf *diff, base_buf *notes, base_err *err)
{
    int rc = 0;
    size_t at = 0;
    for (uint32_t part = 1; at < diff->len && part <= MOST_PARTS && !rc; part++) {
        const size_t n = part_end(diff->data + at, diff->len - at, agent__room_bytes(a));
        base_buf material = {0}, request = {0}, said = {0};
        base_buf_printf(&request, "/commit (part %u of what is staged)", part);
        base_buf_printf(&material, "Part %u of the staged changes:\n", part);
        base_buf_add(&material, diff->data + at, n);
        rc = agent__draft(
            a, &(agent_draft){request.data, "git diff --cached", material.data, ask_part}, &said, err);
        if (!rc && said.len)
            base_buf_printf(notes, "- %.*s\n",
                (int)base_utf8_whole(said.data, said.len < MOST_NOTE ? said.len : MOST_NOTE), said.data);
        at += n;
        base_buf_free(&material);
        base_buf_free(&request);
        base_buf_free(&said);
    }
    if (!rc && at < diff->len)
        agent__notice(a,
            "the staged changes are long: the draft knows the "
            "first %zu KiB of them and the rest by its files' names",
            at >> 10);
    return rc;
}

/* A line without what lists and forges add to it: "* fix it (#12)" is "fix it". */
static base_str plain_line(const char *line, size_t n)
{
    while (n && strchr(" *-", *line)) line++, n--;
    const char *number = n && line[n - 1] == ')' ? memrchr(line, '(', n) : NULL;
    if (number && number > line + 1 && number[1] == '#') n = (size_t)(number - line);
    while (n && strchr(" .\r", line[n - 1])) n--;
    return (base_str){line, n};
}

static bool has_line(const base_buf *text, const char *wanted, size_t n)
{
    const base_str one = plain_line(wanted, n);
    for (const char *line = text->data; line && *line; line += strspn(line, "\n")) {
        const size_t len = strcspn(line, "\n");
        const base_str other = plain_line(line, len);
        if (one.len && one.len == other.len && !strncasecmp(one.ptr, other.ptr, one.len)) return true;
        line += len;
    }
    return false;
}

/* Is its subject, or a sentence of its body, that of one of the last messages? A small model copies what it is shown for its style. */
static bool is_copied(const tool_staged *s, const base_buf *message)
{
    enum { LEAST_OF_BODY = 20 };
    bool is_so = false;
    for (const char *line = message->data; line && *line && !is_so; line += strspn(line, "\n")) {
        const size_t n = strcspn(line, "\n"), least = line == message->data ? 1 : LEAST_OF_BODY;
        is_so = n >= least && has_line(&s->style, line, n);
        line += n;
    }
    return is_so;
}

/* One draft of it, in the style of the last messages or without having seen them. */
static int draft_once(
    agent *a, const base_buf *style, const base_buf *staged, base_buf *message, base_err *err)
{
    base_buf material = {0}, said = {0};
    if (style->len)
        base_buf_printf(
            &material, "The last commit messages of this repository, newest first:\n%s\n", style->data);
    base_buf_add(&material, staged->data, staged->len);
    const agent_draft what = {"/commit", "git diff --cached", material.data, ask_message};
    const int rc = agent__draft(a, &what, &said, err);
    base_buf_clear(message);
    if (!rc) agent_commit_clean(said.data ? said.data : "", message);
    base_buf_free(&material);
    base_buf_free(&said);
    return rc;
}

static int draft(agent *a, const tool_staged *s, base_buf *message, base_err *err)
{
    base_buf diff = {0}, names = {0}, notes = {0}, staged = {0};
    put_diff(a, s, &diff, &names);
    const size_t room = agent__room_bytes(a), taken = s->style.len + names.len;
    const bool is_long = diff.len + taken > room;
    int rc = is_long ? sum_up(a, &diff, &notes, err) : 0;
    if (s->patches.is_cut && !is_long)
        agent__notice(a, "the staged changes are longer than 1 MiB: the rest is named only");
    base_buf_printf(&staged, "Staged files:\n%s\n", names.data);
    if (is_long)
        base_buf_printf(
            &staged, "What the staged changes do, part by part:\n%s", notes.data ? notes.data : "");
    else
        base_buf_printf(&staged, "Staged changes:\n%s", diff.data ? diff.data : "");
    if (!rc) rc = draft_once(a, &s->style, &staged, message, err);
    if (!rc && is_copied(s, message)) { /* what it says again without having seen them is its own */
        const base_buf no_style = {0};
        base_err put = {0};
        agent__notice(a, "the draft was one of the last messages: it is drafted anew without them");
        if (agent__put_failed(a, a->transcript.turn_starts[a->turn], agent__n_tokens(a), &put))
            agent__notice(a, "the first draft could not be put aside: %s", put.msg);
        rc = draft_once(a, &no_style, &staged, message, err);
    }
    if (!rc && message->len < 2)
        rc = base_fail(err, BASE_E_STATE, "the model wrote no message: nothing is committed");
    base_buf_free(&diff);
    base_buf_free(&names);
    base_buf_free(&notes);
    base_buf_free(&staged);
    return rc;
}

/* --- the question --------------------------------------------------------------------------------------- */

static int check_same(agent *a, const tool_staged *s, base_err *err)
{
    char now[65];
    int rc = tool_commit_id(a->workspace, now, err);
    if (!rc && strcmp(now, s->id) != 0)
        rc = base_fail(err, BASE_E_STATE,
            "what is staged changed since the message was "
            "drafted: nothing was committed; /commit drafts anew");
    return rc;
}

static void put_with_commas(base_buf *out, const base_buf *lines)
{
    for (const char *line = lines->data; *line;) {
        const size_t n = strcspn(line, "\n");
        base_buf_printf(out, "%s%.*s", line == lines->data ? "" : ", ", (int)n, line);
        line += n + (line[n] == '\n');
    }
}

/* The yes was given for the hooks and the configuration that the question told of. */
static int check_told(agent *a, const tool_staged *s, base_err *err)
{
    base_buf changed = {0}, listed = {0};
    int rc = 0;
    tool_commit_list_since_told(a->workspace, s, &changed);
    if (changed.len) {
        put_with_commas(&listed, &changed);
        rc = base_fail(err, BASE_E_STATE,
            "what git runs or obeys changed while the question waited (%s): nothing was committed; look at "
            "it, then /commit asks anew",
            listed.data);
    }
    base_buf_free(&changed);
    base_buf_free(&listed);
    return rc;
}

/* The person's yes; their own words in place of the draft. False: no. */
static bool ask_person(agent *a, tool_staged *s, base_buf *message)
{
    base_buf headline = {0}, changed = {0};
    tool_commit_list_changed(a->workspace, s, &changed);
    if (changed.len) {
        base_buf_puts(&headline, "git runs or obeys what changed in this session: ");
        put_with_commas(&headline, &changed);
        base_buf_puts(&headline, ". ");
    }
    base_buf_printf(&headline,
        "git commit, outside the sandbox, of %u staged file%s with this message:", s->patches.n,
        s->patches.n == 1 ? "" : "s");
    const agent_event request = {.type = AGENT_EVENT_approval_request,
        .approval_request = {.turn = a->turn,
            .name = "commit",
            .headline = headline.data,
            .detail = message->data,
            .power = "writes"}};
    const agent_decision d = agent__ask_person(a, &request);
    if (d.answer == AGENT_EDIT && d.text) {
        base_buf_clear(message);
        base_buf_puts(message, d.text);
        if (message->len && message->data[message->len - 1] != '\n') base_buf_putc(message, '\n');
    }
    free(d.text);
    base_buf_free(&headline);
    base_buf_free(&changed);
    return d.answer != AGENT_NO;
}

static void tell_draft(agent *a, const base_buf *message)
{
    agent__emit(a, &(agent_event){.type = AGENT_EVENT_tool_call,
                       .tool_call = {.turn = a->turn,
                           .name = "commit",
                           .arguments = "{}",
                           .payload = message->data,
                           .headline = "git commit"}});
}

static void tell_result(agent *a, const char *status, const char *summary, int exit_code)
{
    agent__emit(a, &(agent_event){.type = AGENT_EVENT_tool_result,
                       .tool_result = {.turn = a->turn,
                           .name = "commit",
                           .status = status,
                           .text = "",
                           .summary = summary,
                           .exit_code = exit_code}});
    agent__commit(a);
}

/* --- git ------------------------------------------------------------------------------------------------ */

/* Where the message lies while git works, and behind it where git did not take it. The caller frees. */
static int keep_message(agent *a, const base_buf *message, char **ret, base_err *err)
{
    char *folder = base_fs_home(BASE_HOME_STATE, NULL);
    base_buf path = {0};
    int rc = base_fs_mkdirs(folder, err);
    for (unsigned n = 1; !rc && (n == 1 || base_fs_exists(path.data)); n++) {
        base_buf_clear(&path);
        base_buf_printf(&path, "%s/commit-%s-%u.txt", folder, a->telling.id, n);
    }
    if (!rc) rc = base_fs_write(path.data, message->data, message->len, 0600, err);
    free(folder);
    *ret = base_buf_take(&path);
    return rc;
}

static int commit(agent *a, const tool_staged *s, const base_buf *message, base_err *err)
{
    char *path = NULL;
    base_buf output = {0};
    int status = -1, rc = keep_message(a, message, &path, err);
    const bool is_kept = !rc;
    if (!rc) rc = check_same(a, s, err);
    if (!rc) rc = check_told(a, s, err);
    if (!rc) agent__commit(a);
    if (!rc) rc = tool_commit_run(a->workspace, path, a->cancel, &output, &status, err);
    if (output.len) agent__notice(a, "%s", output.data);
    tell_result(a,
        rc == BASE_E_CANCELLED ? "cancelled"
        : rc                   ? "refused"
        : status               ? "failed"
                               : "ok",
        rc || status ? "nothing was committed" : "committed", status);
    if (!rc && status) rc = base_fail(err, BASE_E_STATE, "git did not commit (its words stand above)");
    if (!rc) {
        base_fs_remove(path, NULL);
        base_buf_printf(&a->notes.shell, "The person committed what was staged: %.*s\n",
            (int)strcspn(message->data, "\n"), message->data);
    } else if (is_kept) {
        agent__notice(a, "the message is kept in %s: git commit -F %s takes it", path, path);
    }
    base_buf told = {0};
    if (status >= 0) agent__notice_changes(a, &told); /* a hook may have written files */
    base_buf_free(&told);
    base_buf_free(&output);
    free(path);
    return rc;
}

int agent__git_commit(agent *a, base_err *err)
{
    tool_staged staged;
    base_buf message = {0};
    if (a->info.is_elsewhere) /* what may be sent there is asked of the list of files */
        tool_workspace_refresh(a->workspace, NULL, a->cancel, NULL);
    int rc = tool_commit_look(a->workspace, agent__room_bytes(a) / 4, &staged, err);
    if (rc) return rc;
    if (staged.prepared) {
        agent__notice(a, "git has worded this commit itself: that is the draft");
        base_buf_puts(&message, staged.prepared);
    } else {
        rc = draft(a, &staged, &message, err);
    }
    if (!rc) tell_draft(a, &message);
    if (!rc && !a->host.approve) {
        tell_result(
            a, "denied", "nothing was committed: that needs a yes, and nobody can be asked in this run", -1);
    } else if (!rc) {
        rc = check_same(a, &staged, err);
        if (!rc && !ask_person(a, &staged, &message))
            tell_result(a, "denied", "nothing was committed", -1);
        else if (!rc)
            rc = commit(a, &staged, &message, err);
    }
    base_buf_free(&message);
    tool_staged_free(&staged);
    return rc;
}
