/*
 * Is a shared object whole? The system's loader maps what the headers promise and reads it: a file that was
 * cut short, a download that was broken off, ends the program with SIGBUS. So its headers are compared with
 * its length first.
 */
#ifndef KVIST_CODE_SHARED_OBJECT_H
#define KVIST_CODE_SHARED_OBJECT_H

#include "base/err.h"

/*
 * 0, or BASE_E_FORMAT with a sentence; BASE_E_STATE where the file or its folder is another user's, or can be
 * written by one: what is loaded runs as us. Other errors as base_fail_sys has them.
 */
int code_shared_object_check(const char *path, base_err *err);

#endif
