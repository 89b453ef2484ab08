#include "routerd/foreign.h"

#include "base/mem.h"
#include "routerd/aggregate_open.h"
#include "routerd/cluster_stages.h"
#include "routerd/cursor_batch.h"
#include "routerd/request.h"
#include "routerd/sub_command.h"

#include <string.h>

enum { FOREIGN_DEPTH_MAX = 20 };

struct foreign {
    struct pipeline_foreign hooks;
    struct router_cursor *owner; /* names the command at work */
    char db[COMMAND_DB_MAX + 1];
    struct bdoc collation; /* data NULL: simple */
    unsigned depth;
};

/* One read under way. */
struct stream {
    struct router_cursor *owner;
    struct router_cursor *cursor;
};

static void append_stages(const struct pipeline_foreign_query *query, bson_t *body)
{
    bson_t stages, stage;
    struct biter iter;
    struct belem elem;
    uint32_t count = 0;
    BSON_APPEND_ARRAY_BEGIN(body, "pipeline", &stages);
    if (query->coll && query->filter.data && !bdoc_is_empty(query->filter)) {
        struct bval filter = bval_from_doc(query->filter);
        BSON_APPEND_DOCUMENT_BEGIN(&stages, "0", &stage);
        bval_append(&stage, "$match", -1, &filter);
        bson_append_document_end(&stages, &stage);
        count++;
    }
    if (query->stages.data)
        for (biter_init(&iter, query->stages); biter_next(&iter, &elem);)
            request_append_at(&stages, count++, &elem.val);
    bson_append_array_end(body, &stages);
}

/* The aggregate that answers the query. */
static void make_body(const struct foreign *foreign, const struct pipeline_foreign_query *query, bson_t *body)
{
    bson_t cursor;
    if (query->coll)
        BSON_APPEND_UTF8(body, "aggregate", query->coll);
    else
        BSON_APPEND_INT32(body, "aggregate", 1);
    append_stages(query, body);
    BSON_APPEND_DOCUMENT_BEGIN(body, "cursor", &cursor);
    bson_append_document_end(body, &cursor);
    if (query->let.data && !bdoc_is_empty(query->let)) {
        struct bval let = bval_from_doc(query->let);
        bval_append(body, "let", -1, &let);
    }
    if (foreign->collation.data) {
        struct bval collation = bval_from_doc(foreign->collation);
        bval_append(body, "collation", -1, &collation);
    } else {
        BCON_APPEND(body, "collation", "{", "locale", BCON_UTF8("simple"), "}");
    }
}

static bool stream_next(void *arg, struct bdoc *out, struct err *err)
{
    struct stream *stream = arg;
    router_cursor_use(stream->cursor, stream->owner->ctx);
    return router_cursor_next(stream->cursor, out, err);
}

static bool open_cursor(struct command_ctx *ctx, unsigned depth, struct router_cursor **out, struct err *err)
{
    struct ns ns;
    struct aggregate_request request;
    if (!command_ns_or_db(ctx, &ns, err) || !aggregate_request_parse(ctx->body, &ns, &request, err))
        return false;
    request.depth = depth;
    return aggregate_open(ctx, &request, out, NULL, err);
}

static bool foreign_open(void *arg, const struct pipeline_foreign_query *query, struct doc_source *out, struct err *err)
{
    struct foreign *foreign = arg;
    struct command_ctx *ctx;
    struct router_cursor *cursor;
    if (foreign->depth >= FOREIGN_DEPTH_MAX)
        return err_set(err, ERR_MaxSubPipelineDepthExceeded,
                       "Maximum number of nested sub-pipelines exceeded. Limit is %d", FOREIGN_DEPTH_MAX);
    bson_t body = BSON_INITIALIZER;
    make_body(foreign, query, &body);
    bool ok = sub_command_new(foreign->owner->ctx, foreign->db, bdoc_of(&body), &ctx, err);
    bson_destroy(&body);
    if (!ok)
        return false;
    ok = open_cursor(ctx, foreign->depth + 1, &cursor, err);
    sub_command_free(ctx);
    if (!ok)
        return false;
    struct stream *stream = mem_alloc(sizeof *stream);
    *stream = (struct stream){.owner = foreign->owner, .cursor = cursor};
    *out = (struct doc_source){.next = stream_next, .arg = stream};
    return true;
}

static void foreign_close(void *arg, struct doc_source *source)
{
    struct foreign *foreign = arg;
    struct stream *stream = source->arg;
    if (foreign->owner->abandoned)
        router_cursor_abandon(stream->cursor);
    else
        router_cursor_close(foreign->owner->router, stream->cursor);
    mem_free(stream);
}

struct pipeline_foreign *foreign_new(struct router_cursor *cursor, const char *db, struct bdoc collation,
                                     unsigned depth)
{
    struct foreign *foreign = arena_alloc(&cursor->arena, sizeof *foreign);
    *foreign = (struct foreign){.owner = cursor, .depth = depth};
    foreign->hooks =
        (struct pipeline_foreign){.open = foreign_open, .close = foreign_close, .arg = foreign, .runs_stages = true};
    snprintf(foreign->db, sizeof foreign->db, "%s", db);
    if (collation.data)
        foreign->collation = (struct bdoc){arena_copy(&cursor->arena, collation.data, collation.len), collation.len};
    return &foreign->hooks;
}
