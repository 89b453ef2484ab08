/* Nanoseconds per document of filters, updates and sorts, each beside what it is measured against: a comparison written
 * by hand over the raw BSON, a memcpy of the document, qsort of keys that are already there. One argument: the number
 * of documents. */
#include "base/random.h"
#include "query/filter.h"
#include "query/sort.h"
#include "query/sorter.h"
#include "update/update.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    DEFAULT_DOCS = 200000,
    ROUNDS = 5,
};

struct set {
    struct bdoc *docs;
    size_t count;
};

static const char *const states[] = {"active", "waiting", "closed", "unknown"};

static struct set make_docs(struct arena *arena, size_t count)
{
    struct prng prng = {1};
    struct set set = {.docs = arena_alloc(arena, count * sizeof(struct bdoc)), .count = count};
    for (size_t i = 0; i < count; i++) {
        bson_t *doc = BCON_NEW("_id", BCON_INT64((int64_t)i), "name", "a name of twenty bytes", "email",
                               "somebody@somewhere.example", "status", BCON_UTF8(states[prng_below(&prng, 4)]), "age",
                               BCON_INT32((int32_t)prng_below(&prng, 90)), "score",
                               BCON_DOUBLE((double)prng_below(&prng, 1000) / 10), "tags", "[", "red", "green", "]",
                               "address", "{", "city", "Springfield", "zip", BCON_INT32(12345), "}", "created",
                               BCON_DATE_TIME(1700000000000 + (int64_t)i), "visits", BCON_INT32(7));
        set.docs[i] = bdoc_of(doc);
        set.docs[i].data = arena_copy(arena, set.docs[i].data, set.docs[i].len);
        bson_destroy(doc);
    }
    return set;
}

static struct bdoc parse(struct arena *arena, const char *json)
{
    bson_error_t error;
    bson_t *bson = bson_new_from_json((const uint8_t *)json, -1, &error);
    if (bson == NULL) {
        fprintf(stderr, "%s: %s\n", json, error.message);
        exit(1);
    }
    struct bdoc doc = bdoc_of(bson);
    doc.data = arena_copy(arena, doc.data, doc.len);
    bson_destroy(bson);
    return doc;
}

static void check(bool ok, const struct err *err)
{
    if (ok)
        return;
    fprintf(stderr, "%d %s\n", err->code, err->msg);
    exit(1);
}

/* Time of this thread on a processor: other processes don't count. */
static int64_t cpu_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Best of some rounds. */
static double best_ns(void (*run)(void *arg), void *arg, size_t count)
{
    double best = 1e18;
    for (int i = 0; i < ROUNDS; i++) {
        int64_t start = cpu_now_ns();
        run(arg);
        double ns = (double)(cpu_now_ns() - start) / (double)count;
        best = ns < best ? ns : best;
    }
    return best;
}

struct filter_bench {
    struct set set;
    struct filter *filter;
    size_t matched;
};

static void run_filter(void *arg)
{
    struct filter_bench *b = arg;
    b->matched = 0;
    for (size_t i = 0; i < b->set.count; i++)
        b->matched += filter_matches(b->filter, b->set.docs[i]) ? 1 : 0;
}

/* Length of a value by hand. */
static uint32_t skip_value(uint8_t type, const uint8_t *data)
{
    switch (type) {
    case BT_INT32:
        return 4;
    case BT_BOOL:
        return 1;
    case BT_STRING:
        return 4 + load_le32(data);
    case BT_DOCUMENT:
    case BT_ARRAY:
        return load_le32(data);
    default:
        return 8;
    }
}

/* {status: "active", age: {$gte: 21}, score: {$lt: 50}} as one would write it for just this. */
static bool by_hand(struct bdoc doc)
{
    const uint8_t *at = doc.data + 4;
    int good = 0;
    while (*at != 0) {
        uint8_t type = *at++;
        const char *name = (const char *)at;
        at += strlen(name) + 1;
        if (strcmp(name, "status") == 0) {
            if (type != BT_STRING || load_le32(at) != 7 || memcmp(at + 4, "active", 6) != 0)
                return false;
            good++;
        } else if (strcmp(name, "age") == 0) {
            if (type != BT_INT32 || (int32_t)load_le32(at) < 21)
                return false;
            good++;
        } else if (strcmp(name, "score") == 0) {
            double score;
            memcpy(&score, at, sizeof score);
            if (type != BT_DOUBLE || !(score < 50))
                return false;
            good++;
        }
        at += skip_value(type, at);
    }
    return good == 3;
}

static void run_by_hand(void *arg)
{
    struct filter_bench *b = arg;
    b->matched = 0;
    for (size_t i = 0; i < b->set.count; i++)
        b->matched += by_hand(b->set.docs[i]) ? 1 : 0;
}

static void bench_filter(struct arena *arena, struct set set, const char *name, const char *json)
{
    struct err err;
    struct filter_bench b = {.set = set};
    check(filter_compile(arena, parse(arena, json), NULL, &b.filter, &err), &err);
    double ns = best_ns(run_filter, &b, set.count);
    printf("%-34s %8.1f ns  (%zu of %zu match)\n", name, ns, b.matched, set.count);
}

static void bench_filters(struct arena *arena, struct set set)
{
    static const char three[] = "{\"status\": \"active\", \"age\": {\"$gte\": 21}, \"score\": {\"$lt\": 50}}";
    struct filter_bench b = {.set = set};
    double hand = best_ns(run_by_hand, &b, set.count);
    printf("%-34s %8.1f ns  (%zu match)\n", "filter: three fields by hand", hand, b.matched);
    bench_filter(arena, set, "filter: three fields", three);
    bench_filter(arena, set, "filter: _id", "{\"_id\": 77}");
    bench_filter(arena, set, "filter: dotted", "{\"address.zip\": 12345}");
    bench_filter(arena, set, "filter: array element", "{\"tags\": \"green\"}");
    bench_filter(arena, set, "filter: $in of ten", "{\"age\": {\"$in\": [1, 5, 9, 13, 17, 21, 25, 29, 33, 37]}}");
    bench_filter(arena, set, "filter: $expr", "{\"$expr\": {\"$gt\": [\"$age\", 21]}}");
    bench_filter(
        arena, set, "filter: $jsonSchema",
        "{\"$jsonSchema\": {\"required\": [\"status\", \"age\"], \"properties\": {\"age\": {\"bsonType\": \"int\", "
        "\"minimum\": 21}, \"status\": {\"enum\": [\"active\"]}}}}");
    bench_filter(arena, set, "filter: $regex", "{\"email\": {\"$regex\": \"^some.*example$\"}}");
    bench_filter(arena, set, "filter: $or of two", "{\"$or\": [{\"status\": \"closed\"}, {\"age\": {\"$lt\": 10}}]}");
}

struct update_bench {
    struct set set;
    struct update *update;
    struct buf out;
};

static void run_update(void *arg)
{
    struct update_bench *b = arg;
    struct update_result result;
    struct err err;
    for (size_t i = 0; i < b->set.count; i++) {
        buf_clear(&b->out);
        check(update_apply(b->update, b->set.docs[i], NULL, &b->out, &result, &err), &err);
    }
}

static void run_copy(void *arg)
{
    struct update_bench *b = arg;
    for (size_t i = 0; i < b->set.count; i++) {
        buf_clear(&b->out);
        buf_append(&b->out, b->set.docs[i].data, b->set.docs[i].len);
    }
}

static void bench_update(struct arena *arena, struct set set, const char *name, const char *json)
{
    struct err err;
    struct update_bench b = {.set = set};
    struct update_options options = {.env = NULL};
    struct bval source = bval_from_doc(parse(arena, json));
    check(update_compile(arena, &source, &options, &b.update, &err), &err);
    printf("%-34s %8.1f ns\n", name, best_ns(run_update, &b, set.count));
    buf_deinit(&b.out);
}

static void bench_updates(struct arena *arena, struct set set)
{
    struct update_bench copy = {.set = set};
    printf("%-34s %8.1f ns\n", "update: memcpy of the document", best_ns(run_copy, &copy, set.count));
    buf_deinit(&copy.out);
    bench_update(arena, set, "update: $set of one field", "{\"$set\": {\"age\": 5}}");
    bench_update(arena, set, "update: $inc of one field", "{\"$inc\": {\"visits\": 1}}");
    bench_update(arena, set, "update: $set dotted and $push",
                 "{\"$set\": {\"address.zip\": 1}, \"$push\": {\"tags\": \"blue\"}}");
}

struct key {
    const uint8_t *bytes;
    uint32_t len;
};

struct sort_bench {
    struct set set;
    struct sort_spec *spec;
    uint64_t limit;
    struct key *keys;
    struct key *work;
};

static void run_sort(void *arg)
{
    struct sort_bench *b = arg;
    struct buf key = BUF_INIT;
    struct err err;
    struct sorter *sorter =
        sorter_new(&(struct sorter_options){.limit = b->limit, .memory_limit_bytes = (size_t)4 << 30});
    for (size_t i = 0; i < b->set.count; i++) {
        buf_clear(&key);
        check(sort_key_append(b->spec, b->set.docs[i], &key, &err), &err);
        check(sorter_add(sorter, key.data, key.len, b->set.docs[i], i, &err), &err);
    }
    check(sorter_finish(sorter, &err), &err);
    sorter_free(sorter);
    buf_deinit(&key);
}

static int compare_keys(const void *a, const void *b)
{
    const struct key *x = a;
    const struct key *y = b;
    uint32_t common = x->len < y->len ? x->len : y->len;
    int order = memcmp(x->bytes, y->bytes, common);
    return order != 0 ? order : (x->len > y->len) - (x->len < y->len);
}

static void run_qsort(void *arg)
{
    struct sort_bench *b = arg;
    memcpy(b->work, b->keys, b->set.count * sizeof *b->keys);
    qsort(b->work, b->set.count, sizeof *b->work, compare_keys);
}

static void bench_sorts(struct arena *arena, struct set set)
{
    struct err err;
    struct sort_bench b = {.set = set};
    struct buf key = BUF_INIT;
    check(sort_spec_compile(arena, parse(arena, "{\"score\": -1, \"age\": 1}"), NULL, &b.spec, &err), &err);
    b.keys = arena_alloc(arena, set.count * sizeof *b.keys);
    b.work = arena_alloc(arena, set.count * sizeof *b.work);
    for (size_t i = 0; i < set.count; i++) {
        buf_clear(&key);
        check(sort_key_append(b.spec, set.docs[i], &key, &err), &err);
        b.keys[i] = (struct key){.bytes = arena_copy(arena, key.data, key.len), .len = (uint32_t)key.len};
    }
    buf_deinit(&key);
    printf("%-34s %8.1f ns\n", "sort: qsort of ready keys", best_ns(run_qsort, &b, set.count));
    printf("%-34s %8.1f ns\n", "sort: keys, copies and sorter", best_ns(run_sort, &b, set.count));
    b.limit = 100;
    printf("%-34s %8.1f ns\n", "sort: the first 100", best_ns(run_sort, &b, set.count));
}

int main(int argc, char **argv)
{
    long docs = argc > 1 ? atol(argv[1]) : DEFAULT_DOCS;
    struct arena arena;
    arena_init(&arena);
    struct set set = make_docs(&arena, docs > 0 ? (size_t)docs : DEFAULT_DOCS);
    printf("%zu documents of %u bytes; per document:\n", set.count, set.docs[0].len);
    bench_filters(&arena, set);
    bench_updates(&arena, set);
    bench_sorts(&arena, set);
    arena_deinit(&arena);
    return 0;
}
