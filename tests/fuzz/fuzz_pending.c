/*
 * The list of files that a killed change leaves in the data folder, with any bytes in it: what is put back is a text that was kept,
 * in a file of the tree that holds what the list says, and nothing else is touched. Input: three bytes for what the files a, b and
 * d/c hold (the last two bits and one more for "is there"), then the list, in which @0 to @3 stand for the hashes of four kept texts
 * and @o for their folder.
 */
#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/hash.h"
#include "base/mem.h"
#include "scratch.h"
#include "tools/tree/pending.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

#define require(holds) ((holds) ? (void)0 : abort())

enum { N_TEXTS = 4, N_FILES = 3 };
static const char *const texts[N_TEXTS] = {"first\n", "second\n", "third\n", ""};
static const char *const files[N_FILES] = {"tree/a", "tree/b", "tree/d/c"};
static const char kept[] = "nobody writes here\n";
static const char *const sentinels[] = {"outside", "tree/.git/config"};
static char hashes[N_TEXTS][65];

static base_buf read_file(const char *path)
{
    base_buf text = {0}, full = {0};
    base_buf_printf(&full, "%s%s%s", *path == '/' ? "" : scratch_folder(), *path == '/' ? "" : "/", path);
    require(!base_fs_read(full.data, 1 << 20, &text, NULL));
    base_buf_free(&full);
    return text;
}

static bool holds(const base_buf *text, const char *wanted)
{
    return text->len == strlen(wanted) && !memcmp(text->data ? text->data : "", wanted, text->len);
}

/* Opened once; the texts lie where an undo journal keeps them. */
static tool_workspace *open_tree(void)
{
    static tool_workspace *w;
    if (w) return w;
    base_buf path = {0};
    base_buf_printf(&path, "%s/home", scratch_folder());
    setenv("KVIST_HOME", path.data, 1);
    for (int i = 0; i < N_TEXTS; i++) {
        base_sha256_hex(texts[i], strlen(texts[i]), hashes[i]);
        base_buf_clear(&path);
        base_buf_printf(&path, "objects/%s", hashes[i]);
        scratch_put(path.data, texts[i], strlen(texts[i]));
    }
    scratch_put("tree/a", "", 0);
    base_buf_clear(&path);
    base_buf_printf(&path, "%s/tree", scratch_folder());
    const tool_workspace_options options = {.dir = path.data};
    require(!tool_workspace_open(&w, &options, NULL));
    base_buf_free(&path);
    return w;
}

/* All that is in the tree goes, not the tree, which the workspace holds open. */
static void clear_tree(void)
{
    char path[512];
    snprintf(path, sizeof path, "%s/tree", scratch_folder());
    DIR *d = opendir(path);
    require(d);
    for (struct dirent *e; (e = readdir(d));) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        snprintf(path, sizeof path, "tree/%.255s", e->d_name);
        scratch_clear(path);
    }
    closedir(d);
}

static void put_list(const tool_workspace *w, const uint8_t *bytes, size_t n)
{
    base_buf list = {0};
    tool_pending p;
    for (size_t i = 0; i < n; i++) {
        const uint8_t next = i + 1 < n ? bytes[i + 1] : 0;
        if (bytes[i] == '@' && next >= '0' && next < '0' + N_TEXTS)
            base_buf_puts(&list, hashes[next - '0']);
        else if (bytes[i] == '@' && next == 'o')
            base_buf_printf(&list, "%s/objects", scratch_folder());
        else {
            base_buf_putc(&list, (char)bytes[i]);
            continue;
        }
        i++;
    }
    require(!tool__pending_begin(w, &p, NULL));
    require(!base_fs_write(p.path, list.data ? list.data : "", list.len, 0600, NULL));
    tool__pending_end(&p);
    base_buf_free(&list);
}

static int check_file(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    if (kind != FTW_F || !strcmp(path + at->base, "config")) return 0;
    require(S_ISREG(st->st_mode));
    base_buf text = read_file(path);
    bool is_known = false;
    for (int i = 0; i < N_TEXTS; i++) is_known |= holds(&text, texts[i]);
    require(is_known);
    base_buf_free(&text);
    return 0;
}

/* The list is gone, or the notes say why it could not be followed. */
static void check_list(tool_workspace *w)
{
    tool_pending p;
    require(!tool__pending_begin(w, &p, NULL));
    const bool is_left = base_fs_exists(p.path);
    require(!is_left || (w->notes.data && strstr(w->notes.data, "could not be put back")));
    if (is_left) remove(p.path);
    tool__pending_end(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    enum { IS_THERE = 4 };
    char path[512];
    if (n < N_FILES || n > 1 << 14) return 0;
    tool_workspace *w = open_tree();
    clear_tree();
    for (size_t i = 0; i < sizeof sentinels / sizeof *sentinels; i++)
        scratch_put(sentinels[i], kept, strlen(kept));
    for (int i = 0; i < N_FILES; i++) {
        const char *text = texts[bytes[i] % N_TEXTS];
        if (bytes[i] & IS_THERE) scratch_put(files[i], text, strlen(text));
    }
    put_list(w, bytes + N_FILES, n - N_FILES);
    base_buf_clear(&w->notes);
    tool_workspace_recover(w);
    check_list(w);
    for (size_t i = 0; i < sizeof sentinels / sizeof *sentinels; i++) {
        base_buf text = read_file(sentinels[i]);
        require(holds(&text, kept));
        base_buf_free(&text);
    }
    snprintf(path, sizeof path, "%s/tree", scratch_folder());
    nftw(path, check_file, 8, FTW_PHYS);
    return 0;
}
