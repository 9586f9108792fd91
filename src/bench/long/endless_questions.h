/*
 * Questions about the code that a session of kvist-bench endless has read, each asked in a fork of it: what a function
 * returns, who calls it, which of two does something. Their answers need several lines at once, where a fact needs one.
 * A line of the file: {"id", "kind", "ask", "lead", "answer", "words": [...], "not": [...]}. The lead opens the answer;
 * a written answer is right where it has all of the words and, on its first line, none of `not`.
 */
#ifndef KVIST_BENCH_ENDLESS_QUESTIONS_H
#define KVIST_BENCH_ENDLESS_QUESTIONS_H

#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "kv/session.h"

typedef struct endless_questions {
    model *model;
    const char *path;
    int64_t seed;
    uint32_t length;      /* of the session, as it is asked for */
    const base_buf *done; /* lines of an earlier run: what they name is not asked again */
    FILE *out;
} endless_questions;

int endless_ask_questions(const endless_questions *q, const kv_session *whole, base_err *err);

#endif
