/* Replays corpus files: SHERD_CORPUS names a folder of <category>.jsonl files, SHERD_CORPUS_CATEGORIES
 * (blank-separated) those to run, SHERD_CORPUS_SHOW how many failures to print. Skipped without SHERD_CORPUS. */
#include "tests/unit/cmocka_all.h"

#include "bson/extjson.h"
#include "tests/unit/aggregate/replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LINE_MAX_BYTES = 4 * 1024 * 1024,
};

struct score {
    int passed;
    int failed;
    int skipped;
    int shown;
};

static void show(const char *title, const struct bval *val)
{
    struct buf text = BUF_INIT;
    extjson_print_value(&text, val, EXTJSON_RELAXED);
    buf_append_u8(&text, 0);
    printf("    %s %.1500s\n", title, (const char *)text.data);
    buf_deinit(&text);
}

static struct bdoc sub(struct bdoc doc, const char *name)
{
    struct bval val;
    if (bdoc_find(doc, name, &val) && (val.type == BT_DOCUMENT || val.type == BT_ARRAY))
        return bval_doc(&val);
    return (struct bdoc){0};
}

static struct replay_flags read_flags(struct bdoc command)
{
    struct bval val;
    struct replay_flags flags = {.unordered_arrays = sub(command, "unordered_arrays")};
    flags.unordered = bdoc_has(command, "unordered");
    flags.unordered_fields = bdoc_has(command, "unordered_fields");
    flags.numeric_classes = bdoc_has(command, "numeric_classes");
    if (bdoc_find(command, "tolerance", &val))
        bval_to_f64(&val, &flags.tolerance);
    return flags;
}

/* True when the reply is as expected. */
static bool check_reply(struct bdoc command, struct bdoc expect, struct bdoc reply, bool refused, const struct err *err)
{
    struct replay_flags flags = read_flags(command);
    struct biter iter;
    struct belem elem;
    struct bval val;
    if (bdoc_has(expect, "fails"))
        return refused || bdoc_has(reply, "writeErrors");
    if (bdoc_find(expect, "code", &val))
        return refused && bval_i32(&val) == err->code;
    if (refused)
        return false;
    biter_init(&iter, expect);
    while (biter_next(&iter, &elem)) {
        if (strcmp(elem.key, "batches") == 0 || strcmp(elem.key, "ok") == 0)
            continue;
        bdoc_find(reply, elem.key, &val);
        if (!replay_equal(&elem.val, &val, &flags))
            return false;
    }
    return true;
}

enum verdict {
    PASSED,
    FAILED,
    SKIPPED,
};

static enum verdict run_command(struct replay_db *db, struct bdoc entry, const char *name, struct score *score,
                                int limit)
{
    struct err err = {0};
    bson_t reply = BSON_INITIALIZER;
    struct bdoc command = sub(entry, "run");
    struct bdoc expect = sub(entry, "expect");
    enum replay_outcome outcome = replay_run(db, command, &reply, &err);
    enum verdict verdict = SKIPPED;
    if (outcome != REPLAY_UNSUPPORTED) {
        bool good = check_reply(entry, expect, bdoc_of(&reply), outcome == REPLAY_REFUSED, &err);
        verdict = good ? PASSED : FAILED;
        if (!good && score->shown++ < limit) {
            struct bval val = bval_from_doc(command);
            printf("%s\n", name);
            show("run   ", &val);
            val = bval_from_doc(expect);
            show("expect", &val);
            val = bval_from_doc(bdoc_of(&reply));
            if (outcome == REPLAY_REFUSED)
                printf("    error  %d %s\n", err.code, err.msg);
            else
                show("got   ", &val);
        }
    }
    bson_destroy(&reply);
    return verdict;
}

static void run_case(struct bdoc test, struct score *score, int limit)
{
    struct replay_db db = {0};
    struct biter iter;
    struct belem elem;
    struct bval name;
    uint32_t len;
    bdoc_find(test, "name", &name);
    enum verdict verdict = bdoc_has(test, "options") ? SKIPPED : PASSED;
    biter_init(&iter, sub(test, "documents"));
    while (biter_next(&iter, &elem))
        replay_collection_add(&db.main, bval_doc(&elem.val));
    if (bdoc_has(test, "other")) {
        biter_init(&iter, sub(sub(test, "other"), "documents"));
        while (biter_next(&iter, &elem))
            replay_collection_add(&db.other, bval_doc(&elem.val));
    }
    biter_init(&iter, sub(test, "commands"));
    while (verdict == PASSED && biter_next(&iter, &elem))
        verdict = run_command(&db, bval_doc(&elem.val), bval_str(&name, &len), score, limit);
    score->passed += verdict == PASSED ? 1 : 0;
    score->failed += verdict == FAILED ? 1 : 0;
    score->skipped += verdict == SKIPPED ? 1 : 0;
    replay_collection_clear(&db.main);
    replay_collection_clear(&db.other);
}

static void run_file(const char *folder, const char *category, int limit, struct score *score)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s.jsonl", folder, category);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char *line = malloc(LINE_MAX_BYTES);
    assert_non_null(line);
    while (fgets(line, LINE_MAX_BYTES, file) != NULL) {
        bson_t doc;
        struct err err;
        const char *only = getenv("SHERD_CORPUS_CASE");
        if (!extjson_parse(line, strlen(line), &doc, &err))
            fail_msg("%s: %s", path, err.msg);
        if (only == NULL || strstr(line, only) != NULL)
            run_case(bdoc_of(&doc), score, limit);
        bson_destroy(&doc);
    }
    free(line);
    fclose(file);
}

static void corpus_replay_matches_recorded_replies(void **state)
{
    const char *folder = getenv("SHERD_CORPUS");
    const char *wanted = getenv("SHERD_CORPUS_CATEGORIES");
    const char *limit = getenv("SHERD_CORPUS_SHOW");
    char names[512];
    int failed = 0;
    (void)state;
    if (folder == NULL)
        skip();
    snprintf(names, sizeof names, "%s",
             wanted != NULL ? wanted
                            : "filter sort projection count delete distinct update findandmodify aggregate_expr "
                              "aggregate_stages bson_order bad_input");
    char *rest = names;
    for (char *name = strtok_r(rest, " ", &rest); name != NULL; name = strtok_r(NULL, " ", &rest)) {
        struct score score = {0};
        run_file(folder, name, limit != NULL ? atoi(limit) : 3, &score);
        printf("%-18s passed %d failed %d skipped %d\n", name, score.passed, score.failed, score.skipped);
        failed += score.failed;
    }
    assert_int_equal(failed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corpus_replay_matches_recorded_replies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
