#include "base/temp_space.h"

#include "tests/unit/cmocka_all.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned count_files(const char *dir)
{
    unsigned count = 0;
    DIR *list = opendir(dir);
    assert_non_null(list);
    for (struct dirent *entry = readdir(list); entry != NULL; entry = readdir(list))
        count += entry->d_name[0] != '.';
    closedir(list);
    return count;
}

static void temp_file_gives_back_what_was_appended(void **state)
{
    char dir[] = "/tmp/sherd-temp-XXXXXX";
    struct temp_space *space;
    struct temp_file *file;
    struct err err;
    uint32_t number;
    (void)state;
    assert_non_null(mkdtemp(dir));
    assert_true(temp_space_open(dir, TEMP_SPACE_DEFAULT_BYTES, &space, &err));
    assert_true(temp_file_open(space, &file, &err));
    assert_int_equal(count_files(dir), 0); /* no name: nothing can be left behind */
    for (uint32_t i = 0; i < 200000; i++)
        assert_true(temp_file_append(file, &i, sizeof i, &err));
    assert_true(temp_file_flush(file, &err));
    assert_int_equal(temp_file_size_bytes(file), 800000);
    assert_int_equal(temp_space_used_bytes(space), 800000);
    for (uint32_t i = 0; i < 200000; i += 777) {
        assert_true(temp_file_read(file, (int64_t)i * 4, &number, sizeof number, &err));
        assert_int_equal(number, i);
    }
    assert_false(temp_file_read(file, 799999, &number, sizeof number, &err));
    temp_file_close(file);
    assert_int_equal(temp_space_used_bytes(space), 0);
    temp_space_close(space);
    rmdir(dir);
}

static void temp_space_beyond_its_limit_fails_with_14031(void **state)
{
    char dir[] = "/tmp/sherd-temp-XXXXXX";
    char bytes[1000] = {0};
    struct temp_space *space;
    struct temp_file *file;
    struct err err;
    (void)state;
    assert_non_null(mkdtemp(dir));
    assert_true(temp_space_open(dir, 2500, &space, &err));
    assert_true(temp_file_open(space, &file, &err));
    assert_true(temp_file_append(file, bytes, sizeof bytes, &err));
    assert_true(temp_file_append(file, bytes, sizeof bytes, &err));
    assert_false(temp_file_append(file, bytes, sizeof bytes, &err));
    assert_int_equal(err.code, 14031);
    assert_int_equal(temp_space_used_bytes(space), 2000);
    temp_file_close(file);
    temp_space_close(space);
    rmdir(dir);
}

static void temp_space_removes_leftovers_and_nothing_else(void **state)
{
    char dir[] = "/tmp/sherd-temp-XXXXXX";
    char path[64];
    struct temp_space *space;
    struct err err;
    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/sort-left", dir);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    snprintf(path, sizeof path, "%s/other", dir);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    assert_true(temp_space_open(dir, 1000, &space, &err));
    assert_int_equal(count_files(dir), 1);
    temp_space_close(space);
    unlink(path);
    rmdir(dir);
}

static void temp_space_in_a_place_that_is_none_fails(void **state)
{
    struct temp_space *space;
    struct err err;
    (void)state;
    assert_false(temp_space_open("/proc/none/here", 1000, &space, &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(temp_file_gives_back_what_was_appended),
        cmocka_unit_test(temp_space_beyond_its_limit_fails_with_14031),
        cmocka_unit_test(temp_space_removes_leftovers_and_nothing_else),
        cmocka_unit_test(temp_space_in_a_place_that_is_none_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
