/* One request on a stage (contract: wish.h). */
#include "wish.h"

bool has_pytest(void)
{
    static enum { UNKNOWN, IS_MISSING, IS_THERE } has;
    if (!has) has = system("python3 -c 'import pytest' >/dev/null 2>&1") == 0 ? IS_THERE : IS_MISSING;
    if (has == IS_MISSING) print_message("not without pytest\n");
    return has == IS_THERE;
}

host ask(const wish *w, char **ret_tests)
{
    host h = new_host();
    base_buf code = {0}, tests = {0};
    base_buf_printf(&code, "%s.py", w->module);
    base_buf_printf(&tests, "test_%s.py", w->module);
    put_file(code.data, w->code);
    put_file(tests.data, w->tests);
    agent_session *s = open_session(&h, w->script, AGENT_MODE_ALL, NULL, false);
    agent_session_agent(s)->settings.tries = w->tries;
    submit(s, &h, w->request);
    *ret_tests = get_file(tests.data);
    agent_session_close(s);
    base_buf_free(&code);
    base_buf_free(&tests);
    return h;
}

host ask_for(const wish *w, const char *has)
{
    char *tests;
    host h = ask(w, &tests);
    if (!strstr(tests, has)) fail_msg("%s\n%s", tests, h.json.data);
    free(tests);
    return h;
}
