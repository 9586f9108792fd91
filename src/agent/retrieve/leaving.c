/*
 * What is not put in front of a request unasked when the engine is on another machine: what git ignores, and
 * files that are called as keys and passwords are. The model may still read them by a tool, which is shown.
 */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "agent/retrieve/retrieve.h"
#include "base/path.h"

static bool looks_secret(const char *path)
{
    static const char *const plain[] = {".env.example", ".env.sample", ".env.template", ".env.dist"};
    static const char *const secret[] = {".env", ".env.*", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks",
        "*.keystore", "*.kdbx", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", ".netrc", ".npmrc",
        ".pypirc", ".git-credentials", ".htpasswd", "credentials", "credentials.*", "secrets.*"};
    const char *name = base_path_name(path);
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (!strcmp(name, plain[i])) return false;
    for (size_t i = 0; i < sizeof secret / sizeof *secret; i++)
        if (!fnmatch(secret[i], name, FNM_CASEFOLD)) return true;
    return false;
}

static bool is_listed(const agent *a, const char *path)
{
    const char **files = NULL;
    size_t n = 0;
    bool found = false;
    if (tool_workspace_files(a->workspace, &files, &n)) n = 0;
    for (size_t i = 0; i < n && !found; i++) found = !strcmp(files[i], path);
    free(files);
    return found;
}

const char *agent__why_stays(const agent *a, const char *path)
{
    if (!a->info.is_elsewhere) return NULL;
    if (looks_secret(path)) return "it is called as keys and passwords are";
    return is_listed(a, path) ? NULL : "git ignores it";
}
