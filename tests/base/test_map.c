/* A mapped file that is cut or written to while it is read: zeros and a sentence, never SIGBUS. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/map.h"

enum { SIZE = 64 * 1024 };

typedef struct file {
    char path[64];
    int fd;
} file;

static file make_file(void)
{
    file f = {"/tmp/kvist-test-map-XXXXXX", -1};
    char bytes[SIZE];
    memset(bytes, 7, sizeof bytes);
    f.fd = mkstemp(f.path);
    assert_true(f.fd >= 0);
    assert_int_equal(write(f.fd, bytes, sizeof bytes), SIZE);
    return f;
}

static void drop_file(file *f)
{
    close(f->fd);
    unlink(f->path);
}

static base_map *map_file(const file *f)
{
    base_map *m;
    base_err err = {0};
    if (base_map_new(&m, f->fd, SIZE, &err)) fail_msg("%s", err.msg);
    assert_int_equal(base_map_check(m, f->path, NULL), 0);
    return m;
}

static uint64_t sum(const base_map *m)
{
    uint64_t total = 0;
    for (size_t i = 0; i < SIZE; i++) total += base_map_bytes(m)[i];
    return total;
}

static void test_map__reads_zeros_behind_a_cut(void **state)
{
    file f = make_file(), other = make_file();
    base_map *m = map_file(&f), *whole = map_file(&other);
    base_err err = {0};
    assert_int_equal(ftruncate(f.fd, SIZE / 4), 0);
    assert_int_equal(sum(m), 7 * SIZE / 4);
    assert_int_equal(base_map_check(m, f.path, &err), BASE_E_STATE);
    assert_non_null(strstr(err.msg, f.path));
    assert_non_null(strstr(err.msg, "shorter"));
    assert_int_equal(sum(whole), 7 * SIZE); /* another mapping is nobody's business */
    assert_int_equal(base_map_check(whole, other.path, NULL), 0);
    base_map_free(m);
    base_map_free(whole);
    drop_file(&f);
    drop_file(&other);
}

static void test_map__sees_a_change_without_reading(void **state)
{
    file f = make_file();
    base_map *m = map_file(&f);
    base_err err = {0};
    assert_int_equal(unlink(f.path), 0); /* another name for it, or none, changes nothing */
    assert_int_equal(base_map_check(m, f.path, NULL), 0);
    assert_int_equal(ftruncate(f.fd, SIZE + 1), 0);
    assert_int_equal(base_map_check(m, f.path, &err), BASE_E_STATE);
    assert_non_null(strstr(err.msg, "changed"));
    base_map_free(m);
    close(f.fd);
}

/* More mappings than are guarded at once, and again: places in the table are given back. */
static void test_map__guards_again_and_again(void **state)
{
    for (int round = 0; round < 40; round++) {
        file f = make_file();
        base_map *m = map_file(&f);
        assert_int_equal(ftruncate(f.fd, 0), 0);
        assert_int_equal(sum(m), 0);
        assert_int_equal(base_map_check(m, f.path, NULL), BASE_E_STATE);
        base_map_free(m);
        drop_file(&f);
    }
}

static void test_map__leaves_other_faults_alone(void **state)
{
    file f = make_file(), other = make_file();
    base_map *m = map_file(&f);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        volatile char *bare = mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE, other.fd, 0);
        signal(SIGSEGV, SIG_DFL);
        if (ftruncate(other.fd, 0) != 0) _exit(1);
        _exit(bare[SIZE - 1] == 0 ? 2 : 3);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGBUS);
    base_map_free(m);
    drop_file(&f);
    drop_file(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_map__reads_zeros_behind_a_cut),
        cmocka_unit_test(test_map__sees_a_change_without_reading),
        cmocka_unit_test(test_map__guards_again_and_again),
        cmocka_unit_test(test_map__leaves_other_faults_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
