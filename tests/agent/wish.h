/* A request for a new test, on a stage of one module of Python and its tests. */
#ifndef KVIST_TESTS_AGENT_WISH_H
#define KVIST_TESTS_AGENT_WISH_H

#include "stage.h"

/* False, with a line that says so, where there is no pytest. */
bool has_pytest(void);

#define ANSWER(text) "answer <<X\n" text "\n```\nX\n"
#define ADDED        "answer Added.\n"

/* A tree of MODULE.py and its tests, test_MODULE.py, a request, and what the model writes. */
typedef struct wish {
    const char *module, *code, *tests, *request, *script;
    int tries; /* candidates in copies of the tree */
} wish;

/* *ret_tests (free it): the tests afterwards. free_host. */
host ask(const wish *w, char **ret_tests);
/* Asks, and the tests hold `has` afterwards. free_host. */
host ask_for(const wish *w, const char *has);

#define EVEN                                                                                                 \
    (wish)                                                                                                   \
    {                                                                                                        \
        .module = "even",                                                                                    \
        .code = "def is_even(n):\n    return n % 2 == 0\n\n\ndef is_odd(n):\n    return n % 2 == 1\n",       \
        .tests = "from even import is_even\n\n\ndef test_is_even():\n    assert is_even(4)\n",               \
        .request = "Add a test for is_odd", .tries = 6                                                       \
    }

#define STACK                                                                                                \
    (wish)                                                                                                   \
    {                                                                                                        \
        .module = "stack",                                                                                   \
        .code =                                                                                              \
            "class Stack:\n    def __init__(self):\n        self.items = []\n\n    def push(self, item):\n"  \
            "        self.items.append(item)\n\n    def size(self):\n        return len(self.items)\n\n"     \
            "    def is_empty(self):\n        return self.size() == 0\n",                                    \
        .request = "Add a test for is_empty"                                                                 \
    }

#endif
