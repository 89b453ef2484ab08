#include "configd/names.h"
#include "configd/plans.h"

#include "cluster/fields.h"

#include <string.h>

enum { ROUTER_NAME_MAX = 255, ROUTER_VERSION_MAX = 63 };

bool plan_ping(struct change *change, struct bdoc request, struct err *err)
{
    char router[ROUTER_NAME_MAX + 1];
    char version[ROUTER_VERSION_MAX + 1] = "8.0.0";
    int64_t up = 0;
    int64_t created = change->now_ms;
    struct bdoc before;
    if (!field_str(request, "_configsvrPing", router, sizeof router, err) ||
        (bdoc_has(request, "up") && !field_i64(request, "up", &up, err)) ||
        (bdoc_has(request, "version") && !field_str(request, "version", version, sizeof version, err))) {
        return false;
    }
    if (view_get_str(change->view, NS_MONGOS, router, &before) && !field_date(before, "created", &created, NULL)) {
        created = change->now_ms;
    }
    bson_t doc = BSON_INITIALIZER;
    bson_append_utf8(&doc, "_id", -1, router, -1);
    append_array(&doc, "advisoryHostFQDNs", bdoc_empty());
    bson_append_date_time(&doc, "created", -1, created);
    bson_append_utf8(&doc, "mongoVersion", -1, version, -1);
    bson_append_date_time(&doc, "ping", -1, change->now_ms);
    bson_append_int64(&doc, "up", -1, up);
    bson_append_bool(&doc, "waiting", -1, true);
    change_put(change, NS_MONGOS, &doc);
    bson_destroy(&doc);
    return true;
}

struct pruner {
    struct change *change;
    const char *ns;
    const char *date_field;
    int64_t before_ms;
};

static bool prune_one(void *arg, struct bdoc doc)
{
    struct pruner *pruner = arg;
    struct bval val;
    int64_t at_ms;
    if (field_date(doc, pruner->date_field, &at_ms, NULL) && at_ms < pruner->before_ms && bdoc_find(doc, "_id", &val)) {
        change_erase(pruner->change, pruner->ns, &val);
    }
    return pruner->change->write_count < PRUNE_MAX_WRITES;
}

bool plan_prune(struct change *change, struct bdoc request, struct err *err)
{
    (void)request;
    struct pruner operations = {
        .change = change, .ns = NS_OPERATIONS, .date_field = "at", .before_ms = change->now_ms - OPERATION_KEEP_MS};
    struct pruner changelog = {.change = change,
                               .ns = NS_CHANGELOG,
                               .date_field = "time",
                               .before_ms = change->now_ms - CHANGELOG_KEEP_DAYS * 24 * 3600 * INT64_C(1000)};
    return view_each(change->view, NS_OPERATIONS, (struct bdoc){0}, prune_one, &operations, err) &&
           view_each(change->view, NS_CHANGELOG, (struct bdoc){0}, prune_one, &changelog, err);
}
