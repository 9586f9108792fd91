/* The small things every layer rests on: buffers, hashes, files, UTF-8, queues. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <poll.h>
#include <pthread.h>
#include <pwd.h>

#include "base/buf.h"
#include "base/edits.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/queue.h"
#include "base/utf8.h"

static void test_err__prefix_keeps_the_sentence(void **state)
{
    base_err err = {0};
    assert_int_equal(base_fail(&err, BASE_E_LIMIT, "%d is too many", 7), BASE_E_LIMIT);
    assert_int_equal(base_err_prefix(&err, "load %s", "x"), BASE_E_LIMIT);
    assert_string_equal(err.msg, "load x: 7 is too many");
    for (int i = 0; i < 200; i++) base_err_prefix(&err, "again and again"); /* never past its end */
    assert_true(strlen(err.msg) < sizeof err.msg);
    assert_int_equal(base_fail(NULL, BASE_E_IO, "nobody listens"), BASE_E_IO);
}

/* Each typed word against all names: what is meant, or that nothing is near. */
static void test_guess__is_the_nearest_word_or_none(void **state)
{
    static const char *const known[] = {"mode", "model", "list", "show", "get", "snapkv", "streaming-llm",
        "qwen2.5-coder-1.5b", "kv-budget", "kv-policy", NULL};
    static const char *const cases[][2] = {{"modl", "model"}, {"modle", "model"}, {"moed", "mode"},
        {"lst", "list"}, {"gte", "get"}, {"SHOW", "show"}, {"snapk", "snapkv"},
        {"streaming", "streaming-llm"}, {"qwen", "qwen2.5-coder-1.5b"}, {"kv-bugdte", "kv-budget"},
        {"kv_policy", "kv-policy"}, {"ls", NULL}, {"", NULL}, {"x", NULL}, {"something else", NULL},
        {"frobnicate", NULL}, {"model-of-a-much-longer-name", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        base_guess g = base_guess_begin(cases[i][0]);
        for (size_t k = 0; known[k]; k++) base_guess_offer(&g, known[k]);
        char said[80] = "; nothing";
        if (cases[i][1]) snprintf(said, sizeof said, "; did you mean %s?", cases[i][1]);
        assert_string_equal(base_guess_tell(&g, "; nothing"), said);
    }
    assert_int_equal(base_edits("get", "gte", 3), 1); /* neighbours that changed places */
    assert_int_equal(base_edits("abcd", "badc", 3), 2);
    assert_int_equal(base_edits("kitten", "sitting", 5), 3);
    assert_int_equal(base_edits("kitten", "sitting", 2), 3); /* most + 1 */
    char longer[70] = {0};
    memset(longer, 'a', sizeof longer - 1);
    assert_int_equal(base_edits(longer, longer, 2), 3);
    base_guess g = base_guess_begin(longer);
    base_guess_offer(&g, "aaa");
    assert_null(g.meant);
}

static void test_buf__grows_and_is_taken(void **state)
{
    base_buf b = {0};
    for (int i = 0; i < 1000; i++) base_buf_printf(&b, "%d,", i);
    assert_int_equal(b.len, strlen(b.data));
    char *s = base_buf_take(&b);
    assert_memory_equal(s, "0,1,2,", 6);
    assert_null(b.data);
    free(s);
    s = base_buf_take(&b);
    assert_string_equal(s, "");
    free(s);
}

static void test_sha256__gives_the_published_digests(void **state)
{
    char hex[65];
    base_sha256_hex("abc", 3, hex);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    base_sha256_hex("", 0, hex);
    assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    char *million = malloc(1000000);
    memset(million, 'a', 1000000);
    base_sha256_hex(million, 1000000, hex);
    assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    base_sha256 s; /* the same in uneven steps */
    uint8_t digest[32];
    base_sha256_init(&s);
    for (size_t at = 0, step = 1; at < 1000000; at += step, step = step % 131 + 1)
        base_sha256_add(&s, million + at, at + step > 1000000 ? 1000000 - at : step);
    base_sha256_end(&s, digest);
    char again[65];
    base_hex(digest, 32, again);
    assert_string_equal(again, hex);
    free(million);
}

/* What it gives stands in files; side by side it is the same, whatever is left over. */
static void test_siphash__gives_what_others_compute(void **state)
{
    const uint64_t none[2] = {0, 0}; /* Python's hash(b"...") with PYTHONHASHSEED=0 */
    assert_true(base_siphash("a", 1, none) == 0x407448d2b89b1813);
    assert_true(base_siphash("abcdefg", 7, none) == 0x6db12aae9070f506);
    assert_true(base_siphash("abcdefgh", 8, none) == 0x3f7b849c0b8e35ea);
    assert_true(base_siphash("the quick brown fox", 19, none) == 0x5a17575ad3449cba);
    /* Texts that base_hash64 cannot tell apart; with a key of the process's own nobody knows which those are. */
    const char one[] = "nujzcfzopPaDVPFp", other[] = "qqdjsteo29O99495";
    assert_true(base_hash64(one, sizeof one - 1, 0) == base_hash64(other, sizeof other - 1, 0));
    assert_true(base_hash_keyed(one, sizeof one - 1) != base_hash_keyed(other, sizeof other - 1));
    assert_true(base_hash_keyed(one, sizeof one - 1) == base_hash_keyed(one, sizeof one - 1));
}

/* Names chosen to fall into one place of every table: as many as one likes, where the hash is the same for everybody. */
static void test_siphash__spreads_names_that_were_chosen_to_collide(void **state)
{
    enum { N = 4096, PLACES = 2 * N, MOST = 12 };
    static uint32_t chains[PLACES], plain[PLACES];
    uint32_t longest = 0, longest_plain = 0;
    for (uint64_t i = 0; i < N; i++) {
        /* After the first eight bytes base_hash64 is at a state that is known; the next eight take it to one and the same. */
        uint64_t words[2] = {i * 0x9e3779b97f4a7c15u};
        uint64_t h = (0xcbf29ce484222325u ^ 16 * 0x9e3779b97f4a7c15u ^ words[0]) * 0x100000001b3u;
        words[1] = (h ^ h >> 32) ^ 0x123456789abcdefu;
        const uint32_t in_chain = ++chains[base_hash_keyed(words, sizeof words) & (PLACES - 1)],
                       in_plain = ++plain[base_hash64(words, sizeof words, 0) & (PLACES - 1)];
        if (in_chain > longest) longest = in_chain;
        if (in_plain > longest_plain) longest_plain = in_plain;
    }
    assert_int_equal(longest_plain, N); /* the control */
    assert_true(longest <= MOST);       /* by chance: less than 1 in 10^12 */
}

static void test_hash64__is_what_it_was_and_the_same_side_by_side(void **state)
{
    uint8_t bytes[11 * 37];
    uint64_t hashes[37];
    assert_true(base_hash64("rows on disk name it", 20, 5) == 0x9d6b321da5c5c5fc);
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(i * i + i / 7);
    for (size_t n = 1; n <= 37; n++)
        for (size_t count = 0; count <= sizeof bytes / n && count <= 37; count++) {
            base_hash64_each(bytes, n, count, hashes);
            for (size_t i = 0; i < count; i++) assert_true(hashes[i] == base_hash64(bytes + i * n, n, 0));
            const void *pieces[37]; /* and from anywhere */
            for (size_t i = 0; i < count; i++) pieces[i] = bytes + (count - 1 - i) * n;
            base_hash64_some(pieces, NULL, n, count, hashes);
            for (size_t i = 0; i < count; i++) assert_true(hashes[i] == base_hash64(pieces[i], n, 0));
            uint64_t seeds[37];
            for (size_t i = 0; i < count; i++) seeds[i] = i * i + 1;
            base_hash64_some(pieces, seeds, n, count, hashes);
            for (size_t i = 0; i < count; i++) assert_true(hashes[i] == base_hash64(pieces[i], n, seeds[i]));
        }
}

static void test_fs__writes_whole_files_and_bounds_reads(void **state)
{
    char folder[] = "/tmp/kvist-test-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a/b", folder);
    assert_int_equal(base_fs_mkdirs(path, NULL), 0);
    snprintf(path, sizeof path, "%s/a/b/f", folder);
    assert_int_equal(base_fs_write(path, "hello", 5, 0600, NULL), 0);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    base_buf b = {0};
    base_err err;
    assert_int_equal(base_fs_read(path, 5, &b, &err), 0);
    assert_string_equal(b.data, "hello");
    assert_int_equal(base_fs_read(path, 4, &b, &err), BASE_E_LIMIT);
    assert_int_equal(b.len, 5); /* what was there is left alone */
    assert_int_equal(base_fs_read("/nonexistent/x", 4, &b, &err), BASE_E_NOT_FOUND);
    assert_int_equal(base_fs_read("/usr", 4, &b, &err), BASE_E_IO);
    assert_string_equal(err.msg, "/usr is a folder, not a file");
    snprintf(path, sizeof path, "%s/a/link", folder);
    assert_int_equal(symlink("/etc", path), 0);
    assert_int_equal(base_fs_remove(folder, &err), 0);
    assert_false(base_fs_exists(folder));
    assert_true(base_fs_exists("/etc/passwd")); /* the link went, not what it named */
    base_buf_free(&b);
}

static void expect_owner(const char *path, const char *part)
{
    base_err err = {0};
    int code = base_fs_check_owner(path, &err);
    assert_int_equal(code, part ? BASE_E_STATE : 0);
    if (part && !strstr(err.msg, part)) fail_msg("\"%s\" does not say \"%s\"", err.msg, part);
}

static void test_fs__what_others_own_or_write_is_not_believed(void **state)
{
    char folder[] = "/tmp/kvist-test-XXXXXX", path[64], other[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/f", folder);
    snprintf(other, sizeof other, "%s/link", folder);
    expect_owner(path, NULL); /* nothing there */
    assert_int_equal(base_fs_write(path, "x", 1, 0600, NULL), 0);
    assert_int_equal(symlink("f", other), 0);
    expect_owner(path, NULL);
    expect_owner("/etc/passwd", NULL); /* root's */
    for (int i = 0; i < 2; i++) {
        const char *name = i ? other : path; /* a link is its target */
        assert_int_equal(chmod(path, 0666), 0);
        expect_owner(name, "can be written by other users");
        assert_int_equal(chmod(path, 0644), 0);
        expect_owner(name, NULL);
    }
    if (!geteuid()) {
        assert_int_equal(chown(path, 0, 1), 0);
        assert_int_equal(chmod(path, 0664), 0);
        expect_owner(path, "can be written by other users"); /* by a group that is not ours alone */
        assert_int_equal(chown(path, 0, 0), 0);
        assert_int_equal(chmod(path, 0644), 0);
        assert_int_equal(chown(path, 65534, 65534), 0);
        expect_owner(path, "belongs to another user");
        expect_owner(other, "belongs to another user");
    }
    base_fs_remove(folder, NULL);
}

static void test_fs__home_is_the_password_databases_where_the_variable_is_unset(void **state)
{
    const char *names[] = {"KVIST_HOME", "XDG_DATA_HOME", "HOME"};
    char *held[3];
    for (int i = 0; i < 3; i++) held[i] = base_xstrdup(getenv(names[i]));
    for (int i = 0; i < 3; i++) unsetenv(names[i]);
    const struct passwd *user = getpwuid(geteuid());
    base_buf wanted = {0};
    base_buf_printf(&wanted, "%s/.local/share/kvist/x", user ? user->pw_dir : "/nonexistent");
    for (int i = 0; i < 3; i++) { /* unset, empty, below whatever folder this is */
        static const char *const values[] = {NULL, "", "."};
        if (values[i]) setenv("HOME", values[i], 1);
        char *path = base_fs_home(BASE_HOME_DATA, "x");
        assert_string_equal(path, wanted.data);
        free(path);
    }
    base_buf_free(&wanted);
    for (int i = 0; i < 3; i++) {
        unsetenv(names[i]);
        if (held[i]) setenv(names[i], held[i], 1);
        free(held[i]);
    }
}

static void test_utf8__decodes_only_what_is_valid(void **state)
{
    static const char *const bad[] = {
        "\x80", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\xff"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint32_t cp;
        assert_int_equal(base_utf8_decode(bad[i], strlen(bad[i]), &cp), 1);
        assert_int_equal(cp, 0xfffd);
        assert_false(base_utf8_valid(bad[i], strlen(bad[i])));
    }
    for (uint32_t cp = 0; cp < 0x110000; cp += cp < 0x1000 ? 1 : 97) {
        if (cp >= 0xd800 && cp < 0xe000) continue;
        char out[4];
        uint32_t again;
        size_t n = base_utf8_encode(cp, out);
        assert_int_equal(base_utf8_decode(out, n, &again), n);
        assert_int_equal(again, cp);
        for (size_t part = 1; part < n; part++) assert_int_equal(base_utf8_whole(out, part), 0);
        assert_int_equal(base_utf8_whole(out, n), n);
    }
}

static void test_utf8__sanitises_what_a_terminal_would_obey(void **state)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"a\x1b]52;c;x\x07", "a^[]52;c;x^G"},
        {"\xc2\x9b"
         "31m",
            "<U+009B>31m"},
        {"x\xe2\x80\xaey", "x<U+202E>y"},
        {"\xff", "\xef\xbf\xbd"},
        {"line\r\n", "line^M\n"},
        {"h\xc3\xa9 \xe6\x97\xa5", "h\xc3\xa9 \xe6\x97\xa5"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        base_buf b = {0};
        base_utf8_sanitise(&b, cases[i].in, strlen(cases[i].in), true);
        assert_string_equal(b.data, cases[i].out);
        base_buf_free(&b);
    }
    assert_int_equal(base_utf8_width(0x65e5), 2);
    assert_int_equal(base_utf8_width('a'), 1);
    assert_int_equal(base_utf8_width(0x301), 0);
}

static void *put_numbers(void *arg)
{
    for (intptr_t i = 1; i <= 1000; i++) base_queue_put(arg, (void *)i);
    base_queue_close(arg);
    return NULL;
}

/* As every reader does: the descriptor says that there is something, or that the queue was closed. */
static void *wait_and_take(base_queue *q)
{
    struct pollfd fd = {.fd = base_queue_fd(q), .events = POLLIN};
    assert_int_equal(poll(&fd, 1, 10000), 1);
    return base_queue_try_take(q);
}

static void test_queue__keeps_order_and_ends(void **state)
{
    base_queue *q;
    pthread_t thread;
    assert_int_equal(base_queue_new(&q, 7, NULL), 0);
    pthread_create(&thread, NULL, put_numbers, q);
    for (intptr_t i = 1; i <= 1000; i++) assert_int_equal((intptr_t)wait_and_take(q), i);
    assert_null(wait_and_take(q));
    pthread_join(thread, NULL);
    assert_false(base_queue_put(q, q));
    base_queue_free(q, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_err__prefix_keeps_the_sentence),
        cmocka_unit_test(test_guess__is_the_nearest_word_or_none),
        cmocka_unit_test(test_buf__grows_and_is_taken),
        cmocka_unit_test(test_sha256__gives_the_published_digests),
        cmocka_unit_test(test_siphash__gives_what_others_compute),
        cmocka_unit_test(test_siphash__spreads_names_that_were_chosen_to_collide),
        cmocka_unit_test(test_hash64__is_what_it_was_and_the_same_side_by_side),
        cmocka_unit_test(test_fs__writes_whole_files_and_bounds_reads),
        cmocka_unit_test(test_fs__what_others_own_or_write_is_not_believed),
        cmocka_unit_test(test_fs__home_is_the_password_databases_where_the_variable_is_unset),
        cmocka_unit_test(test_utf8__decodes_only_what_is_valid),
        cmocka_unit_test(test_utf8__sanitises_what_a_terminal_would_obey),
        cmocka_unit_test(test_queue__keeps_order_and_ends),
    };
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
