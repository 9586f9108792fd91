/*
 * The table of orders (contract: orders.h). On it stands what a program obeys although nobody ran anything of the tree: a prompt's hook
 * in a folder, an editor that opens it, git at a commit, the machine that builds what is pushed. What runs when somebody builds, tests
 * or installs (a Makefile, conftest.py, build.rs, the scripts of package.json) is the tree's code and not on it.
 */
#include "tools/guard/orders.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define KVIST    "the next session"
#define AGENT    "another agent"
#define EDITOR   "an editor that opens this folder"
#define SHELL    "a shell"
#define BUILDER  "the machine that builds what is pushed"
#define HOOKS    "git's hooks"
#define DEBUGGER "a debugger"
#define PACKAGES "a package manager"
#define CONSOLE  "a language's console"
#define LOGIN    "your login"

/* clang-format off: a row a line */
const tool_order tool__orders[] = {
    {"AGENTS.md", KVIST},
    {".kvist/", KVIST},
    {".agents/", KVIST},
    {"AGENTS.override.md", AGENT},
    {"AGENT.md", AGENT},
    {"CLAUDE.md", AGENT},
    {"CLAUDE.local.md", AGENT},
    {"GEMINI.md", AGENT},
    {"QWEN.md", AGENT},
    {".claude/", AGENT},
    {".codex/", AGENT},
    {".gemini/", AGENT},
    {".qwen/", AGENT},
    {".cursor/", AGENT},
    {".cursorrules", AGENT},
    {".windsurf/", AGENT},
    {".windsurfrules", AGENT},
    {".clinerules/", AGENT},
    {".roo/", AGENT},
    {".roorules", AGENT},
    {".continue/", AGENT},
    {".junie/", AGENT},
    {".kiro/", AGENT},
    {".amazonq/", AGENT},
    {".goosehints", AGENT},
    {".opencode/", AGENT},
    {"opencode.json", AGENT},
    {"opencode.jsonc", AGENT},
    {".aider.conf.yml", AGENT},
    {".augment/", AGENT},
    {".factory/", AGENT},
    {".trae/", AGENT},
    {"CRUSH.md", AGENT},
    {".crush.json", AGENT},
    {"crush.json", AGENT},
    {"WARP.md", AGENT},
    {".rules", AGENT},
    {".mcp.json", AGENT},
    {".github/copilot-instructions.md", AGENT},
    {".github/instructions/", AGENT},
    {".github/agents/", AGENT},
    {".vscode/", EDITOR},
    {".idea/", EDITOR},
    {".zed/", EDITOR},
    {".fleet/", EDITOR},
    {".helix/", EDITOR},
    {".devcontainer/", EDITOR},
    {".devcontainer.json", EDITOR},
    {".exrc", EDITOR},
    {".vimrc", EDITOR},
    {".nvimrc", EDITOR},
    {".nvim.lua", EDITOR},
    {".lazy.lua", EDITOR},
    {".lvimrc", EDITOR},
    {".vim/", EDITOR},
    {".dir-locals.el", EDITOR},
    {".dir-locals-2.el", EDITOR},
    {".envrc", "direnv"},
    {".rvmrc", SHELL},
    {".autoenv", SHELL},
    {".autoenv.zsh", SHELL},
    {".mise.toml", "mise"},
    {"mise.toml", "mise"},
    {".mise/", "mise"},
    {".config/mise.toml", "mise"},
    {".config/mise/", "mise"},
    {".mise.local.toml", "mise"},
    {"mise.local.toml", "mise"},
    {".pre-commit-config.yaml", HOOKS},
    {".husky/", HOOKS},
    {".huskyrc", HOOKS},
    {".githooks/", HOOKS},
    {"lefthook.yml", HOOKS},
    {"lefthook.yaml", HOOKS},
    {".lefthook.yml", HOOKS},
    {".lefthook.yaml", HOOKS},
    {"lefthook-local.yml", HOOKS},
    {".lefthook/", HOOKS},
    {".overcommit.yml", HOOKS},
    {".github/workflows/", BUILDER},
    {".github/actions/", BUILDER},
    {".gitea/workflows/", BUILDER},
    {".forgejo/workflows/", BUILDER},
    {".gitlab-ci.yml", BUILDER},
    {".gitlab/ci/", BUILDER},
    {".circleci/", BUILDER},
    {".travis.yml", BUILDER},
    {"Jenkinsfile", BUILDER},
    {"azure-pipelines.yml", BUILDER},
    {"bitbucket-pipelines.yml", BUILDER},
    {".drone.yml", BUILDER},
    {".woodpecker/", BUILDER},
    {".woodpecker.yml", BUILDER},
    {".woodpecker.yaml", BUILDER},
    {"appveyor.yml", BUILDER},
    {".appveyor.yml", BUILDER},
    {".cirrus.yml", BUILDER},
    {".buildkite/", BUILDER},
    {".build.yml", BUILDER},
    {".builds/", BUILDER},
    {".semaphore/", BUILDER},
    {".gitpod.yml", BUILDER},
    {"netlify.toml", BUILDER},
    {"vercel.json", BUILDER},
    {".readthedocs.yml", BUILDER},
    {".readthedocs.yaml", BUILDER},
    {".taskcluster.yml", BUILDER},
    {".zuul.yaml", BUILDER},
    {".tekton/", BUILDER},
    {".teamcity/", BUILDER},
    {"buildspec.yml", BUILDER},
    {"cloudbuild.yaml", BUILDER},
    {".gdbinit", DEBUGGER},
    {".lldbinit", DEBUGGER},
    {".pdbrc", DEBUGGER},
    {".Rprofile", CONSOLE},
    {".irbrc", CONSOLE},
    {".pryrc", CONSOLE},
    {".ghci", CONSOLE},
    {".cargo/config", PACKAGES},
    {".cargo/config.toml", PACKAGES},
    {"rust-toolchain", PACKAGES},
    {"rust-toolchain.toml", PACKAGES},
    {".npmrc", PACKAGES},
    {".yarnrc", PACKAGES},
    {".yarnrc.yml", PACKAGES},
    {".pnpmfile.cjs", PACKAGES},
    {".bundle/config", PACKAGES},
    {".bashrc", LOGIN},
    {".bash_profile", LOGIN},
    {".bash_login", LOGIN},
    {".bash_logout", LOGIN},
    {".bash_aliases", LOGIN},
    {".profile", LOGIN},
    {".zshrc", LOGIN},
    {".zshenv", LOGIN},
    {".zprofile", LOGIN},
    {".zlogin", LOGIN},
    {".zlogout", LOGIN},
    {".kshrc", LOGIN},
    {".cshrc", LOGIN},
    {".tcshrc", LOGIN},
    {".login", LOGIN},
    {".xprofile", LOGIN},
    {".xinitrc", LOGIN},
    {".xsession", LOGIN},
    {".xsessionrc", LOGIN},
    {".pam_environment", LOGIN},
    {".config/fish/", LOGIN},
    {".config/autostart/", LOGIN},
    {".config/systemd/", LOGIN},
    {".config/environment.d/", LOGIN},
    {".ssh/config", "ssh"},
    {".ssh/rc", "ssh"},
    {".ssh/environment", "ssh"},
    {".ssh/authorized_keys", "ssh"},
    {".gitconfig", "git"},
    {".config/git/", "git"},
    {".lfsconfig", "git"},
    {".gitmodules", "git"},
    {".hg/hgrc", "Mercurial"},
    {".hg/sharedpath", "Mercurial"},
    {".jj/repo/config.toml", "Jujutsu"},
    {"_darcs/prefs/defaults", "darcs"},
};
/* clang-format on */
const size_t tool__n_orders = sizeof tool__orders / sizeof *tool__orders;

/* who NULL: all of them. */
static void keep(const tool_root *root, const char *who, const tool_kept_list *earlier, tool_kept_list *ret)
{
    for (size_t i = 0; i < tool__n_orders; i++) {
        if (who && strcmp(tool__orders[i].who, who) != 0) continue;
        char *path = base_xstrndup(tool__orders[i].path, tool__order_length(tool__orders[i].path));
        tool__kept_add(root, path, NULL, earlier, ret);
        free(path);
    }
}

void tool__orders_keep(const tool_root *root, const tool_kept_list *earlier, tool_kept_list *ret)
{
    keep(root, NULL, earlier, ret);
    tool__kept_sort(ret);
}

void tool__orders_keep_of_hooks(const tool_root *root, tool_kept_list *ret)
{
    keep(root, HOOKS, NULL, ret);
}

bool tool__order_is_for_kvist(const char *path)
{
    for (size_t i = 0; i < tool__n_orders; i++) {
        const char *own = tool__orders[i].path;
        const size_t n = tool__order_length(own);
        if (!strcmp(tool__orders[i].who, KVIST) && !strncmp(path, own, n) &&
            (!path[n] || (own[n] && path[n] == '/')))
            return true;
    }
    return false;
}
