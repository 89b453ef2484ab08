#include "base/file.h"

#include "base/mem.h"
#include "tests/unit/cmocka_all.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char dir[] = "/tmp/sherd-file-XXXXXX";

static char *path_of(const char *name)
{
    return mem_printf("%s/%s", dir, name);
}

static void file_replace_then_read_gives_the_new_content(void **state)
{
    (void)state;
    struct err err;
    struct buf content = BUF_INIT;
    char *path = path_of("a");
    assert_true(file_replace(path, "first", 5, &err));
    assert_true(file_replace(path, "second one", 10, &err));
    assert_true(file_read(path, 100, &content, &err));
    assert_int_equal(content.len, 10);
    assert_memory_equal(content.data, "second one", 10);
    buf_deinit(&content);
    unlink(path);
    mem_free(path);
}

static void file_read_tells_missing_from_too_large(void **state)
{
    (void)state;
    struct err err;
    struct buf content = BUF_INIT;
    char *path = path_of("b");
    assert_false(file_read(path, 100, &content, &err));
    assert_int_equal(err.code, ERR_NonExistentPath);
    assert_true(file_replace(path, "123456", 6, &err));
    assert_false(file_read(path, 5, &content, &err));
    assert_int_equal(err.code, ERR_InvalidLength);
    buf_deinit(&content);
    unlink(path);
    mem_free(path);
}

static void file_replace_in_a_missing_folder_names_the_path(void **state)
{
    (void)state;
    struct err err;
    assert_false(file_replace("/nonexistent/x", "a", 1, &err));
    assert_non_null(strstr(err.msg, "/nonexistent/x"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(file_replace_then_read_gives_the_new_content),
        cmocka_unit_test(file_read_tells_missing_from_too_large),
        cmocka_unit_test(file_replace_in_a_missing_folder_names_the_path),
    };
    if (mkdtemp(dir) == NULL)
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(dir);
    return failed;
}
