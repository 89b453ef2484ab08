/* Data: pairs of bytes, each an option and one of its values. The first half makes the create, the second the collMod.
 */
#include "tests/fuzz/document/fuzz_options.h"

#include "base/check.h"
#include "document/coll_mod.h"
#include "document/create_options.h"
#include "document/traits.h"

#include <string.h>

enum {
    VALUES = 6, /* of each option */
};

struct option {
    const char *name;
    const char *values[VALUES]; /* as members of a JSON document; NULL: the first again */
};

static const struct option create_options[] = {
    {"capped", {"true", "false", "1", "\"x\"", "null"}},
    {"size", {"1000", "4096", "{\"$numberLong\": \"1125899906842624\"}", "0", "1.5", "{\"$numberDouble\": \"NaN\"}"}},
    {"max", {"5", "0", "-1", "{\"$numberLong\": \"2147483648\"}", "\"x\""}},
    {"validator",
     {"{\"a\": {\"$gte\": 1}}", "{}", "{\"$jsonSchema\": {\"required\": [\"a\"]}}",
      "{\"$expr\": {\"$eq\": [\"$a\", 1]}}", "{\"a\": {\"$regex\": \"^x\"}}", "{\"$nonsense\": 1}"}},
    {"validationLevel", {"\"strict\"", "\"moderate\"", "\"off\"", "\"x\"", "1"}},
    {"validationAction", {"\"error\"", "\"warn\"", "\"errorAndLog\"", "\"x\""}},
    {"viewOn", {"\"other\"", "\"\"", "\"$x\"", "1"}},
    {"pipeline",
     {"[]", "[{\"$match\": {\"a\": 1}}]", "[{\"$out\": \"x\"}]", "[{\"$nonsense\": 1}]", "[1]",
      "[{\"$lookup\": {\"from\": \"c\", \"localField\": \"a\", \"foreignField\": \"b\", \"as\": \"c\"}}]"}},
    {"collation",
     {"{\"locale\": \"de\"}", "{\"locale\": \"simple\"}", "{}", "{\"locale\": \"en\", \"strength\": 2}",
      "{\"locale\": \"nowhere\"}", "{\"strength\": 1}"}},
    {"changeStreamPreAndPostImages",
     {"{\"enabled\": true}", "{\"enabled\": false}", "{}", "{\"enabled\": 1, \"x\": 1}"}},
    {"timeseries",
     {"{\"timeField\": \"t\"}", "{\"timeField\": \"t\", \"metaField\": \"m\", \"granularity\": \"hours\"}",
      "{\"timeField\": \"t\", \"bucketMaxSpanSeconds\": 60, \"bucketRoundingSeconds\": 60}", "{\"timeField\": \"a.b\"}",
      "{\"timeField\": \"t\", \"granularity\": \"x\"}", "{}"}},
    {"expireAfterSeconds", {"60", "0", "-1", "{\"$numberLong\": \"99999999999\"}", "\"off\""}},
    {"clusteredIndex",
     {"{\"key\": {\"_id\": 1}, \"unique\": true}",
      "{\"key\": {\"_id\": 1}, \"unique\": true, \"name\": \"n\", \"v\": 2}", "{\"key\": {\"a\": 1}, \"unique\": true}",
      "true", "1", "{}"}},
    {"storageEngine", {"{\"wiredTiger\": {}}", "{}", "{\"x\": {}}", "{\"wiredTiger\": 1}"}},
    {"indexOptionDefaults", {"{}", "{\"storageEngine\": {\"wiredTiger\": {}}}", "{\"x\": 1}"}},
    {"idIndex", {"{\"key\": {\"_id\": 1}, \"name\": \"_id_\"}", "{}", "{\"key\": {\"a\": 1}}"}},
    {"comment", {"1", "\"x\""}},
    {"nonsense", {"1"}},
};

static const struct option change_options[] = {
    {"validator", {"{\"b\": 1}", "{}", "{\"a\": {\"$regex\": \"^x\"}}", "{\"$nonsense\": 1}", "1"}},
    {"validationLevel", {"\"strict\"", "\"off\"", "\"x\""}},
    {"validationAction", {"\"warn\"", "\"error\"", "1"}},
    {"viewOn", {"\"another\"", "\"\"", "\"$x\""}},
    {"pipeline", {"[]", "[{\"$limit\": 1}]", "[{\"$merge\": {\"into\": \"x\"}}]"}},
    {"changeStreamPreAndPostImages", {"{\"enabled\": true}", "{\"enabled\": false}", "{}"}},
    {"expireAfterSeconds", {"\"off\"", "5", "\"on\"", "{\"$numberDouble\": \"NaN\"}", "[]"}},
    {"timeseries",
     {"{\"granularity\": \"hours\"}", "{\"bucketMaxSpanSeconds\": 90, \"bucketRoundingSeconds\": 90}",
      "{\"granularity\": \"x\"}", "{}"}},
    {"cappedSize", {"8192", "1", "0", "\"x\""}},
    {"cappedMax", {"7", "0", "-5", "{\"$numberLong\": \"2147483648\"}"}},
    {"dryRun", {"true"}},
    {"nonsense", {"1"}},
};

static bool has_name(const bson_t *doc, const char *name)
{
    bson_iter_t iter;
    return bson_iter_init_find(&iter, doc, name);
}

static void add(bson_t *to, const struct option *option, unsigned choice)
{
    bson_error_t error;
    const char *value = option->values[choice % VALUES];
    char *json = bson_strdup_printf("{\"%s\": %s}", option->name, value == NULL ? option->values[0] : value);
    bson_t *one = bson_new_from_json((const uint8_t *)json, -1, &error);
    CHECK(one != NULL);
    if (!has_name(to, option->name))
        bson_concat(to, one);
    bson_destroy(one);
    bson_free(json);
}

static void fill(bson_t *to, const struct option *options, size_t count, const uint8_t *data, size_t size)
{
    for (size_t i = 0; i + 1 < size; i += 2)
        add(to, &options[data[i] % count], data[i + 1]);
}

/* Makes the options' normal form. */
static bool create(struct arena *arena, const struct ns *ns, const bson_t *body, struct create_request *out)
{
    struct err err;
    return create_request_parse(arena, ns, bdoc_of(body), out, &err);
}

static void check_create(struct arena *arena, const struct ns *ns, struct bdoc options)
{
    struct create_request again;
    bson_t body = BSON_INITIALIZER;
    bson_t view;
    BSON_APPEND_UTF8(&body, "create", "c");
    bdoc_to_bson(options, &view);
    bson_concat(&body, &view);
    CHECK(create(arena, ns, &body, &again));
    CHECK(bdoc_same(again.options, options));
    bson_destroy(&body);
}

static void check_change(struct bdoc options, struct bdoc changes)
{
    struct store_collection_hooks hooks = traits_store_hooks();
    struct collection coll = {.ns = "d.c", .name = "c", .options = options};
    struct err err;
    bool same;
    coll.traits = hooks.make(options);
    coll.is_view = collection_traits(&coll)->kind == COLLECTION_VIEW;
    if (coll_mod_check(&coll, changes, &err)) {
        bson_t once = BSON_INITIALIZER;
        bson_t twice = BSON_INITIALIZER;
        CHECK(coll_mod_options(&coll, changes, &once, &same, &err));
        struct collection changed = coll;
        changed.options = bdoc_of(&once);
        CHECK(coll_mod_options(&changed, changes, &twice, &same, &err));
        CHECK(same);
        bson_destroy(&once);
        bson_destroy(&twice);
    }
    hooks.free(coll.traits);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena;
    struct ns ns;
    struct err err;
    struct create_request request;
    struct bdoc changes;
    size_t half = size / 4 * 2;
    bson_t body = BSON_INITIALIZER;
    bson_t change = BSON_INITIALIZER;
    arena_init(&arena);
    CHECK(ns_make(&ns, "d", "c", &err));
    BSON_APPEND_UTF8(&body, "create", "c");
    BSON_APPEND_UTF8(&change, "collMod", "c");
    fill(&body, create_options, sizeof create_options / sizeof create_options[0], data, half);
    fill(&change, change_options, sizeof change_options / sizeof change_options[0], data + half, size - half);
    bool made = create(&arena, &ns, &body, &request);
    bool read = coll_mod_parse(&arena, &ns, bdoc_of(&change), &changes, &err);
    if (made)
        check_create(&arena, &ns, request.options);
    if (made && read)
        check_change(request.options, changes);
    bson_destroy(&body);
    bson_destroy(&change);
    arena_deinit(&arena);
    return 0;
}
