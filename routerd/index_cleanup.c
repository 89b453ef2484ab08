#include "routerd/index_cleanup.h"

#include "base/log.h"
#include "routerd/ddl.h"
#include "routerd/request.h"

bool index_cleanup_look(struct route *route, const struct ns *ns, struct bdoc *before, struct err *err)
{
    struct scatter scatter;
    struct cursor_reply reply;
    bool sharded;
    bson_t body = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&body, "listIndexes", ns->coll);
    BSON_APPEND_UTF8(&body, "$db", ns->db);
    bool ok = ddl_owners(route, &body, ERR_NamespaceNotFound, &sharded, &scatter, err) == SCATTER_DONE;
    *before = bdoc_empty();
    for (size_t i = 0; ok && i < scatter.count; i++) {
        if (!scatter.requests[i].ok)
            continue;
        ok = cursor_reply_parse(scatter.requests[i].reply, &reply, err);
        if (ok)
            *before = (struct bdoc){arena_copy(&route->ctx->arena, reply.batch.data, reply.batch.len), reply.batch.len};
        break;
    }
    scatter_deinit(&scatter);
    bson_destroy(&body);
    return ok || err->code == ERR_NamespaceNotFound;
}

static bool has_name(struct bdoc indexes, const char *wanted)
{
    struct biter iter;
    struct belem elem;
    biter_init(&iter, indexes);
    while (biter_next(&iter, &elem)) {
        struct bval name;
        if (elem.val.type == BT_DOCUMENT && bdoc_find(bval_doc(&elem.val), "name", &name) && bval_is_str(&name, wanted))
            return true;
    }
    return false;
}

static void drop_index(struct route *route, const struct ns *ns, const char *name)
{
    struct scatter scatter;
    struct err err;
    bool sharded;
    bson_t body = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&body, "dropIndexes", ns->coll);
    BSON_APPEND_UTF8(&body, "index", name);
    BSON_APPEND_UTF8(&body, "$db", ns->db);
    if (ddl_owners(route, &body, ERR_IndexNotFound, &sharded, &scatter, &err) != SCATTER_DONE &&
        err.code != ERR_IndexNotFound)
        log_warn("INDEX", 8060, "An index that could not be built on every shard is left on some",
                 LOG_STR("ns", ns->full), LOG_STR("index", name), LOG_STR("error", err.msg));
    scatter_deinit(&scatter);
    bson_destroy(&body);
}

/* A shard that may still be at it, or that would do it the next time. */
static bool is_undecided(const struct scatter *tried)
{
    for (size_t i = 0; i < tried->count; i++) {
        const struct remote_request *request = &tried->requests[i];
        if (!request->ok && (request->unknown || err_categories(request->err.code) != ERR_CAT_NONE))
            return true;
    }
    return false;
}

void index_cleanup_run(struct route *route, const struct ns *ns, struct bdoc specs, struct bdoc before,
                       const struct scatter *tried)
{
    struct biter iter;
    struct belem elem;
    if (is_undecided(tried) || !scatter_any_ok(tried))
        return;
    biter_init(&iter, specs);
    while (biter_next(&iter, &elem)) {
        struct bval name;
        uint32_t len;
        if (elem.val.type == BT_DOCUMENT && bdoc_find(bval_doc(&elem.val), "name", &name) && name.type == BT_STRING &&
            !has_name(before, bval_str(&name, &len)))
            drop_index(route, ns, bval_str(&name, &len));
    }
}
