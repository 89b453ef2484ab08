#include "document/explain_write.h"

#include "base/clock.h"
#include "base/interrupt.h"
#include "command/fields.h"
#include "command/modify_fields.h"
#include "document/explain_print.h"
#include "document/read_plan.h"
#include "document/request_order.h"
#include "document/views.h"
#include "document/write_op.h"

/* A write that is looked at instead of done. */
struct explained_write {
    struct command_ctx *ctx;
    struct write_op *op;
    struct read_txn read;
    struct explain_info info;
    bool returns; /* findAndModify: its document is the result */
};

/* The only statement of a batch. */
static bool one_statement(struct explained_write *write, const char *list_name, struct err *err)
{
    struct command_ctx *ctx = write->ctx;
    struct write_current *current = &write->op->current;
    struct bdoc list = {0};
    struct bval first;
    if (!field_require(ctx->body, list_name, err) || !field_get_array(ctx->body, list_name, &list, err) ||
        !field_get_doc(ctx->body, "let", &write->op->let, err))
        return false;
    if (bdoc_count(list) != 1 || !bdoc_find(list, "0", &first) || first.type != BT_DOCUMENT)
        return err_set(err, ERR_InvalidLength, "explained write batches must be of size 1");
    return write->op->is_delete ? write_parse_delete(bval_doc(&first), &current->statement, &current->fields, err)
                                : write_parse_update(bval_doc(&first), &current->statement, &current->fields, err);
}

static bool modify_statement(struct explained_write *write, struct err *err)
{
    struct modify_fields fields;
    struct write_current *current = &write->op->current;
    if (!modify_fields_read(write->ctx->body, &fields, err))
        return false;
    current->fields = modify_fields_statement(&fields);
    write->op->is_delete = fields.remove;
    write->op->let = fields.let;
    write->returns = true;
    write_statement_from_fields(&current->fields, &current->statement);
    return true;
}

static bool open_write(struct explained_write *write, struct err *err)
{
    struct write_op *op = write->op;
    if (!request_version(write->ctx, &op->version, err) ||
        !read_txn_open_any(&write->read, op->engine, op->ns.full, op->version, err))
        return false;
    if (write->read.coll != NULL && write->read.coll->is_view)
        return views_refuse_write(write->read.coll, err);
    if (!request_order_of((struct bdoc){0}, write->read.coll, &write->ctx->arena, &op->default_order, err))
        return false;
    op->env = (struct expr_env){.now_ms = clock_wall_ms(), .let = op->let};
    return write_current_compile(op, err);
}

/* {stage: UPDATE or DELETE} over the plan's own stages. */
static struct plan_node *tree_of(struct explained_write *write, const struct plan *plan)
{
    struct arena *arena = &write->ctx->arena;
    struct plan_shape shape = {.sharding_filter = write->read.check_visible, .sort = NULL};
    if (write->op->current.sort != NULL && !plan->sorted)
        shape.sort = write->op->current.sort;
    struct plan_node *top = arena_alloc(arena, sizeof *top);
    top->stage = write->op->is_delete ? STAGE_DELETE : STAGE_UPDATE;
    top->children = arena_alloc(arena, sizeof *top->children);
    top->children[0] = plan_tree_new(arena, plan, &shape);
    top->child_count = 1;
    return top;
}

static bool make_plan(struct explained_write *write, struct err *err)
{
    struct write_current *current = &write->op->current;
    bool multi = (current->statement.flags & STATEMENT_MULTI) != 0;
    struct plan_request request = {
        .filter = current->filter,
        .sort = current->sort,
        .hint = current->fields.hint,
        .limited = !multi,
        .explain = true,
    };
    struct plan *plan;
    write->info.ns = write->op->ns.full;
    write->info.filter = current->filter;
    if (write->read.coll == NULL)
        return true;
    if (!read_plan_make(&write->ctx->arena, &write->read, &request, &plan, err))
        return false;
    write->info.plan = plan;
    write->info.shape = (struct plan_shape){.sharding_filter = write->read.check_visible, .sort = current->sort};
    write->info.tree = tree_of(write, plan);
    return true;
}

/* Whether the update would change the document. */
static bool look_at(struct explained_write *write, struct bdoc doc, struct err *err)
{
    struct write_current *current = &write->op->current;
    struct explain_counts *counts = &write->info.counts;
    struct filter_match match = {.array_index = -1};
    struct update_result result;
    struct buf after = BUF_INIT;
    bool matched;
    counts->matched++;
    if (current->update == NULL)
        return true;
    bool ok = filter_eval(current->filter, doc, &match, &matched, err) &&
              update_apply(current->update, doc, &match, &after, &result, err);
    buf_deinit(&after);
    counts->would_modify += ok && result.modified;
    return ok;
}

/* The document that a sorted operation would take is the least one: the scan has to see all. */
static bool look_at_all(struct explained_write *write, struct scan *scan, struct err *err)
{
    struct write_current *current = &write->op->current;
    bool one = (current->statement.flags & STATEMENT_MULTI) == 0;
    bool in_order = current->sort == NULL || write->info.plan->sorted;
    uint64_t seen = 0;
    bool found = true;
    for (;;) {
        if (!interrupt_step(err) || !scan_next(scan, &found, err))
            return false;
        if (!found)
            return true;
        if ((!one || seen == 0) && !look_at(write, scan->doc, err))
            return false;
        seen++;
        if (one && in_order)
            return true;
    }
}

static bool run_write(struct explained_write *write, struct err *err)
{
    struct explain_counts *counts = &write->info.counts;
    struct scan scan = {0};
    int64_t begun_ms = clock_now_ms();
    struct scan_options options = read_plan_scan(&write->read, write->info.plan, read_txn_filter_view(&write->read));
    bool ok = scan_open(&scan, &options, err) && look_at_all(write, &scan, err);
    if (!ok)
        counts->failure = *err;
    counts->keys_examined = scan.keys_examined;
    counts->docs_examined = scan.docs_examined;
    plan_tree_count(write->info.tree->children[0], &scan);
    write->info.tree->counters.works = scan.works;
    write->info.tree->counters.eof = true;
    scan_close(&scan);
    counts->millis = clock_now_ms() - begun_ms;
    if (write->returns)
        counts->returned = counts->matched;
    write->info.tree->counters.advanced = counts->returned;
    return ok || interrupt_check(err);
}

static bool explain_statement(struct explained_write *write, struct err *err)
{
    if (!open_write(write, err) || !make_plan(write, err))
        return false;
    bool executed = write->info.verbosity != EXPLAIN_QUERY_PLANNER;
    if (executed && write->info.plan != NULL && !run_write(write, err))
        return false;
    write->info.counts.would_upsert =
        write->info.counts.matched == 0 && (write->op->current.statement.flags & STATEMENT_UPSERT) != 0;
    explain_append_plan(&write->info, &write->ctx->reply);
    return true;
}

static void begin_write(struct explained_write *write, struct command_ctx *ctx, enum explain_verbosity verbosity)
{
    *write = (struct explained_write){.ctx = ctx, .op = write_op_new(ctx), .info = {.verbosity = verbosity}};
    arena_init(&write->op->current.arena);
    arena_init(&write->op->current.chunk);
}

static void end_write(struct explained_write *write)
{
    write_current_deinit(&write->op->current);
    read_txn_close(&write->read);
    write_op_free(write->op);
}

bool explain_update(struct command_ctx *ctx, enum explain_verbosity verbosity, struct err *err)
{
    struct explained_write write;
    begin_write(&write, ctx, verbosity);
    bool ok =
        command_ns(ctx, &write.op->ns, err) && one_statement(&write, "updates", err) && explain_statement(&write, err);
    end_write(&write);
    return ok;
}

bool explain_delete(struct command_ctx *ctx, enum explain_verbosity verbosity, struct err *err)
{
    struct explained_write write;
    begin_write(&write, ctx, verbosity);
    write.op->is_delete = true;
    bool ok =
        command_ns(ctx, &write.op->ns, err) && one_statement(&write, "deletes", err) && explain_statement(&write, err);
    end_write(&write);
    return ok;
}

bool explain_find_and_modify(struct command_ctx *ctx, enum explain_verbosity verbosity, struct err *err)
{
    struct explained_write write;
    begin_write(&write, ctx, verbosity);
    bool ok = command_ns(ctx, &write.op->ns, err) && modify_statement(&write, err) && explain_statement(&write, err);
    end_write(&write);
    return ok;
}
