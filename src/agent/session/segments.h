/* Text that becomes part of the sequence, and the segments: which stretch of the sequence came from where. */
#ifndef KVIST_AGENT_SEGMENTS_H
#define KVIST_AGENT_SEGMENTS_H

#include "agent/session/session_state.h"

/* Text that is to become part of the sequence, and where it comes from. */
typedef struct agent_text {
    kv_origin origin;
    const char *text;
    size_t n;
    const char *label, *path, *version; /* NULL: none */
    uint32_t line, line_end;
    uint32_t bulk;      /* tokens of all the excerpts that it comes with; 0: it comes alone */
    bool has_marks;     /* text of the harness with control tokens in it: AGENT_PROMPT_MARK */
    bool whole;         /* the request is about changing it: computed in full (kv_segment.whole) */
    bool structure;     /* parse it as source text of `path` and protect signatures, calls, ... */
    size_t source_from; /* with structure: where in text the source begins (a header stands before it) */
    const char *words;  /* with structure: the request, whose symbols protect too */
    /* bytes of text that are bytes of files: their structure is the whole file's */
    const tool_source *sources;
    uint32_t n_sources;
} agent_text;
uint32_t agent__n_tokens(const agent *a);
uint32_t agent__count(const agent *a, const char *text, size_t n); /* tokens */
/* Remembers tokens [from, to) as a segment; returns its index. */
size_t agent__add_segment(agent *a, const agent_text *t, uint32_t from, uint32_t to);
/*
 * The role of the message that is open at the end of the segments, by their scaffold's labels (a resume, a
 * rewind); -1: none.
 */
int agent__find_open(const agent *a);
void agent__put_segment_name(const agent_segment *p, base_buf *out); /* "src/a.c:1-20", "test of turn 3" */
/* Forgets the segments from token n on, and so which message is open. */
void agent__truncate_segments(agent *a, uint32_t n);
/*
 * "system", "user", ...: a scaffold's label says which message it leaves open: "+role" begins, "-role" ends,
 * "-role+role" both.
 */
extern const char *const agent__role_words[];

/* Its bytes; NULL for a control token. */
const char *agent__piece(const agent *a, int32_t id, size_t *ret_n);
/* The text of tokens [from, to), control tokens apart. */
void agent__put_words(const agent *a, uint32_t from, uint32_t to, base_buf *out);

#endif
