#include "document/write_op.h"

#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/random.h"
#include "document/write_target.h"
#include "storage/store.h"

#include <stdalign.h>
#include <string.h>

static void step(void *arg);

static void submit_step(void *arg)
{
    struct write_op *op = arg;
    const struct document_log *log = document_engine_log(op->engine);
    log->submit(log->arg, step, op);
}

static void current_end(struct write_op *op)
{
    document_claims_release(document_engine_claims(op->engine), &op->claims);
    if (op->has_current)
        write_current_deinit(&op->current);
    op->has_current = false;
}

static void append_modified(struct write_op *op)
{
    const struct statement_result *modified = &op->modified;
    bson_t *reply = &op->ctx->reply;
    bson_t last;
    BSON_APPEND_DOCUMENT_BEGIN(reply, "lastErrorObject", &last);
    BSON_APPEND_INT32(&last, "n", (int32_t)modified->n);
    if (!op->is_delete)
        BSON_APPEND_BOOL(&last, "updatedExisting", modified->n > 0 && modified->upserted.data == NULL);
    struct bval id;
    if (modified->upserted.data != NULL && bdoc_find(modified->upserted, "_id", &id))
        bval_append(&last, "upserted", -1, &id);
    bson_append_document_end(reply, &last);
    struct bval value = modified->value.data != NULL ? bval_from_doc(modified->value) : BVAL_NULL;
    bval_append(reply, "value", -1, &value);
}

static void finish(struct write_op *op, const struct err *err)
{
    struct command_ctx *ctx = op->ctx;
    current_end(op);
    if (err == NULL && op->is_modify)
        append_modified(op);
    else if (err == NULL)
        write_result_append(&op->result, &ctx->reply);
    write_result_deinit(&op->result);
    write_op_free(op);
    command_finish(ctx, err);
}

/* False when the operation has ended with it. */
static bool add_error(struct write_op *op, uint32_t index, const struct err *err)
{
    if (op->is_modify) {
        finish(op, err);
        return false;
    }
    write_result_add_error(&op->result, (int32_t)index, err);
    op->stopped |= op->ordered;
    return true;
}

/* The current statement has changed documents in an entry before this one. */
static bool is_partly_done(const struct write_op *op)
{
    return op->has_current && op->current.matched;
}

/* The entry was not executed, or nobody knows. When statements before it were, only it and later ones fail. A statement
 * that is done in part must not get a code that says "not executed": the router would send it again. */
static void end_unexecuted(struct write_op *op, const struct err *err)
{
    struct err partly;
    bool is_partly = is_partly_done(op);
    if (!is_partly && (op->entry_first == 0 || op->is_modify)) {
        finish(op, err);
        return;
    }
    err_set(&partly, ERR_InterruptedDueToReplStateChange,
            "the statement was interrupted after it had changed part of its documents: %s", err->msg);
    uint32_t end = op->ordered ? op->entry_first + 1 : op->batch.count;
    for (uint32_t i = op->entry_first; i < end; i++)
        write_result_add_error(&op->result, (int32_t)i, is_partly && i == op->entry_first ? &partly : err);
    finish(op, NULL);
}

static struct bdoc keep(struct write_op *op, struct bdoc doc)
{
    if (doc.data == NULL)
        return doc;
    return (struct bdoc){.data = arena_copy(&op->ctx->arena, doc.data, doc.len), .len = doc.len};
}

/* The document as the client wants to see it. One that can't be projected is given whole: the write has happened. */
static struct bdoc project(struct write_op *op, struct bdoc doc)
{
    struct buf projected = BUF_INIT;
    struct filter_match match = {.array_index = -1};
    bool matched;
    struct err ignored;
    if (op->modify_projection == NULL || doc.data == NULL)
        return keep(op, doc);
    bool ok = filter_eval(op->current.filter, doc, &match, &matched, &ignored) &&
              projection_apply(op->modify_projection, doc, &match, &projected, &ignored);
    struct bdoc kept = keep(op, ok ? (struct bdoc){.data = projected.data, .len = (uint32_t)projected.len} : doc);
    buf_deinit(&projected);
    return kept;
}

static void count_done(struct write_op *op, const struct statement_result *one)
{
    struct bval id;
    /* As MongoDB answers: what a failed multi-update did before its error is not counted. */
    if (one->status != STATEMENT_ERROR) {
        op->result.n += one->n;
        op->result.n_modified += one->n_modified;
    }
    if (one->upserted.data != NULL && bdoc_find(one->upserted, "_id", &id))
        write_result_add_upserted(&op->result, (int32_t)one->index, &id);
    if (op->is_modify) {
        op->modified = *one;
        op->modified.upserted = keep(op, one->upserted);
        op->modified.value = project(op, one->value);
    }
}

/* An upsert that found its unique key taken by a document that its own equalities name: that document is there to be
 * updated now. */
static bool is_upsert_race(const struct write_op *op, const struct statement_result *one)
{
    if (!op->has_current || one->err.code != ERR_DuplicateKey || !(op->current.statement.flags & STATEMENT_UPSERT))
        return false;
    struct bval pattern;
    struct bdoc details = {.data = one->err.details, .len = one->err.details_len};
    if (one->err.details_len == 0 || !bdoc_find(details, "keyPattern", &pattern) || pattern.type != BT_DOCUMENT)
        return false;
    struct biter iter;
    struct belem elem;
    biter_init(&iter, bval_doc(&pattern));
    while (biter_next(&iter, &elem)) {
        struct bval fixed;
        if (!filter_equality(op->current.filter, elem.key, &fixed))
            return false;
    }
    return true;
}

/* A multi-write has records beyond the chunk at hand. */
static bool has_more_records(const struct write_current *current)
{
    return (current->statement.flags & STATEMENT_MULTI) != 0 &&
           (current->record_at < current->record_count || current->resume_after != 0);
}

/* True when the current statement has to be prepared again. */
static bool must_redo(struct write_op *op, const struct statement_result *one)
{
    if (!op->has_current)
        return false;
    struct write_current *current = &op->current;
    current->matched |= one->n > 0;
    bool lost_all = one->status == STATEMENT_DONE && !current->matched && !has_more_records(current) &&
                    (current->statement.flags & STATEMENT_UPSERT) && (current->statement.flags & STATEMENT_MULTI);
    bool raced = one->status == STATEMENT_ERROR && is_upsert_race(op, one);
    bool redo = lost_all || one->status == STATEMENT_REDO || raced;
    if (raced && ++current->race_count > WRITE_UPSERT_RACES_MAX)
        return false;
    current->collected &= !redo;
    return redo && ++op->current.redo_count <= DOCUMENT_REDO_MAX;
}

/* Queues what a multi-write missed because it had changed meanwhile. False: it changes all the time. */
static bool keep_missed(struct write_op *op, const struct statement_result *one)
{
    if (!op->has_current || one->missed_count == 0)
        return true;
    if (++op->current.redo_count > DOCUMENT_REDO_MAX)
        return false;
    for (uint32_t i = 0; i < one->missed_count; i++)
        write_current_keep_record(&op->current, load_le64(one->missed + i * sizeof(uint64_t)));
    return true;
}

/* False when the operation has ended. */
static bool read_result(struct write_op *op, const struct statement_result *one)
{
    struct err err;
    if (must_redo(op, one)) {
        document_claims_release(document_engine_claims(op->engine), &op->claims);
        return true;
    }
    count_done(op, one);
    bool too_often = one->status == STATEMENT_REDO || (one->status == STATEMENT_DONE && !keep_missed(op, one));
    if (too_often) {
        err_set(&err, ERR_WriteConflict, "the document changed too often while it was being written; please retry");
        if (!add_error(op, one->index, &err))
            return false;
    } else if (one->status == STATEMENT_ERROR && !add_error(op, one->index, &one->err)) {
        return false;
    }
    bool more = op->has_current && one->status == STATEMENT_DONE && !too_often && has_more_records(&op->current);
    if (!more)
        current_end(op);
    return true;
}

/* The entry met another validator than the one that it was tested with; nothing was executed: back to where it began.
 */
static bool must_test_again(struct write_op *op, const struct document_result *result)
{
    if (result->outcome != DOCUMENT_APPLIED || result->ok || result->err.code != ERR_WriteConflict ||
        ++op->redo_count > DOCUMENT_REDO_MAX)
        return false;
    document_claims_release(document_engine_claims(op->engine), &op->claims);
    if (op->has_current) {
        const struct statement *statement = &op->current.statement;
        /* A multi-write has only this chunk to do again: chunks before it must not be met twice. */
        for (uint32_t i = 0; (statement->flags & STATEMENT_MULTI) && i < statement->candidate_count; i++)
            write_current_keep_record(&op->current, statement->candidates[i].record_id);
    } else {
        op->iter = op->entry_iter;
        op->held = op->entry_held;
        op->next = op->entry_first;
    }
    return true;
}

static void propose_again(void *arg);

static void proposed(void *arg, const struct document_result *result)
{
    struct write_op *op = arg;
    struct codec_reader reader;
    if (result->outcome == DOCUMENT_BUSY && is_partly_done(op)) {
        const struct document_log *log = document_engine_log(op->engine);
        log->submit_after(log->arg, WRITE_BUSY_PAUSE_MS, propose_again, op);
        return;
    }
    if (must_test_again(op, result)) {
        submit_step(op);
        return;
    }
    if (result->outcome != DOCUMENT_APPLIED || !result->ok) {
        end_unexecuted(op, &result->err);
        return;
    }
    codec_reader_init(&reader, result->data, result->len);
    uint32_t count = codec_read_u32(&reader);
    for (uint32_t i = 0; i < count && !reader.failed; i++) {
        struct statement_result one;
        statement_result_decode(&reader, &one);
        if (!read_result(op, &one))
            return;
    }
    bool more = op->has_current || op->held.data != NULL || op->next < op->batch.count;
    if (more && !op->stopped)
        submit_step(op);
    else
        finish(op, NULL);
}

static void begin_command(struct write_op *op, uint32_t count, struct buf *command)
{
    struct statement_batch batch = {
        .ns = op->ns.full,
        .create_uuid = op->uuid,
        .version = op->version,
        .let = op->let,
        .now_ms = op->env.now_ms,
        .ordered = op->ordered,
        .tested = op->validation.tested,
        .count = count,
    };
    buf_append_u8(command, DOCUMENT_KIND_UPDATE);
    statement_batch_encode(command, &batch);
}

static void propose(struct write_op *op, struct buf *command)
{
    const struct document_log *log = document_engine_log(op->engine);
    size_t len;
    uint8_t *bytes = buf_take(command, &len);
    log->propose(log->arg, bytes, len, proposed, op);
}

static void propose_current(struct write_op *op)
{
    struct buf command = BUF_INIT;
    op->entry_first = op->current.statement.index;
    begin_command(op, 1, &command);
    statement_encode(&command, &op->current.statement);
    propose(op, &command);
}

/* The next chunk of a multi-write, when the log had no room for it. */
static void propose_again(void *arg)
{
    struct write_op *op = arg;
    struct err err;
    if (command_ctx_check_deadline(op->ctx, &err))
        propose_current(op);
    else
        end_unexecuted(op, &err);
}

static void barrier_done(void *arg, bool ok)
{
    struct write_op *op = arg;
    struct err err;
    if (!ok) {
        const struct document_log *log = document_engine_log(op->engine);
        if (log->check_leader(log->arg, &err))
            err_set(&err, ERR_NotWritablePrimary, "not the leader");
        end_unexecuted(op, &err);
        return;
    }
    struct statement_result none = {.status = STATEMENT_DONE, .index = op->entry_first};
    count_done(op, &none);
    current_end(op);
    submit_step(op);
}

/* Nothing matched: true for a reader of the whole group only after a round. */
static void answer_nothing(struct write_op *op, uint32_t index)
{
    const struct document_log *log = document_engine_log(op->engine);
    op->entry_first = index;
    log->barrier(log->arg, barrier_done, op);
}

/* The upsert's claim on what it would insert; false: it waits for another one. */
static bool claim_upsert(struct write_op *op)
{
    struct document_claims *claims = document_engine_claims(op->engine);
    struct bdoc filter = op->current.statement.filter;
    struct document_claim_key key = {
        .space = DOCUMENT_CLAIM_UPSERT | (hash_bytes(op->ns.full, strlen(op->ns.full)) >> 1),
        .id = hash_bytes(filter.data, filter.len),
    };
    while (!document_claims_try(claims, key, &op->claims)) {
        if (document_claims_wait(claims, key, &op->waiter))
            return false;
    }
    return true;
}

/* The document that an upsert inserts, as the client has supplied it. */
static bool supplied_upsert(const struct write_current *current, struct buf *image, struct err *err)
{
    struct bval supplied = BVAL_MISSING;
    bdoc_find(current->fields.constants, "new", &supplied);
    return update_prepare_insert(bval_doc(&supplied), &current->statement.upsert_id, image, err);
}

static bool build_upsert_image(struct write_op *op, struct err *err)
{
    struct write_current *current = &op->current;
    if (!current->image)
        return true;
    struct buf image = BUF_INIT;
    bool ok = current->fields.upsert_supplied
                  ? supplied_upsert(current, &image, err)
                  : update_build_upsert(current->update, current->filter, &current->statement.upsert_id, &image, err);
    struct bdoc after = {.data = image.data, .len = (uint32_t)image.len};
    ok = ok && validation_check(&op->validation, (struct bdoc){0}, after, err);
    if (ok)
        current->statement.upsert_image =
            (struct bdoc){.data = arena_copy(&current->arena, image.data, image.len), .len = (uint32_t)image.len};
    buf_deinit(&image);
    return ok;
}

/* Proposes the upsert of the current statement. True: on its way (or waiting). */
static bool step_upsert(struct write_op *op, struct err *err)
{
    bool claimed_before = op->claims.first != NULL;
    if (!claim_upsert(op))
        return true;
    /* The claim may have been another upsert's a moment ago: look again whether its document matches now. */
    if (!claimed_before) {
        enum write_choice choice = write_choose(op, err);
        if (choice == WRITE_FAILED)
            return false;
        if (choice == WRITE_WAITING)
            return true;
    }
    if (op->current.statement.candidate_count == 0 && !build_upsert_image(op, err))
        return false;
    propose_current(op);
    return true;
}

/* Before each log command: what it was tested with has to be in force when it is applied. */
static bool look_at_validation(struct write_op *op, struct err *err)
{
    return validation_look(&op->validation, op->engine, op->ns.full, op->env.now_ms, &op->validation_arena, err);
}

/* One move of the current statement. True: the operation goes on by itself (or is over). False: the statement failed
 * with *err. */
static bool step_current(struct write_op *op, struct err *err)
{
    struct statement *statement = &op->current.statement;
    if (!command_ctx_check_deadline(op->ctx, err))
        return false;
    /* Again for each chunk: a large multi-write may use up what was left when it began. */
    if (!op->is_delete && !store_check_space(document_engine_store(op->engine), err))
        return false;
    if (!look_at_validation(op, err))
        return false;
    write_current_decide(op);
    if (statement->flags & STATEMENT_BY_ID) {
        propose_current(op);
        return true;
    }
    switch (write_choose(op, err)) {
    case WRITE_CHOSEN:
        propose_current(op);
        return true;
    case WRITE_WAITING:
        return true;
    case WRITE_NOTHING:
        if (has_more_records(&op->current))
            break;
        if ((statement->flags & STATEMENT_UPSERT) && !op->current.matched)
            return step_upsert(op, err);
        answer_nothing(op, statement->index);
        return true;
    case WRITE_FAILED:
        return false;
    }
    submit_step(op);
    return true;
}

static bool parse_next(struct write_op *op, struct statement *statement, struct write_fields *fields, struct err *err)
{
    bool ok = op->is_delete ? write_parse_delete(op->held, statement, fields, err)
                            : write_parse_update(op->held, statement, fields, err);
    statement->index = op->next;
    bson_oid_init(&statement->upsert_id, NULL);
    return ok;
}

static bool make_current(struct write_op *op, const struct statement *statement, const struct write_fields *fields,
                         struct err *err)
{
    op->current = (struct write_current){.statement = *statement, .fields = *fields};
    arena_init(&op->current.arena);
    arena_init(&op->current.chunk);
    op->has_current = true;
    return write_current_compile(op, err);
}

/* Puts the following statements that need nothing but their _id into one entry. Ends before another kind of statement.
 * *refused: the statement at op->next is malformed. */
static uint32_t gather_by_id(struct write_op *op, struct buf *command, bool *refused, struct err *err)
{
    uint32_t count = 0;
    size_t count_at = 0;
    *refused = false;
    while (op->held.data != NULL || batch_next(&op->iter, &op->held)) {
        struct statement statement;
        struct write_fields fields;
        *refused = !parse_next(op, &statement, &fields, err);
        if (*refused || !write_is_plain_by_id(op, &statement, &fields))
            break;
        if (count == 0) {
            op->entry_first = op->next;
            op->entry_iter = op->iter;
            op->entry_held = op->held;
            begin_command(op, 0, command);
            count_at = command->len - sizeof(uint32_t);
        }
        statement.flags |= STATEMENT_BY_ID;
        statement_encode(command, &statement);
        store_le32(command->data + count_at, ++count);
        op->held = (struct bdoc){0};
        op->next++;
        if (command->len >= WRITE_GROUP_MAX_BYTES)
            break;
    }
    return count;
}

/* A single statement by _id on a document that isn't there takes no log entry. True: it was answered so. */
static bool answer_missing_id(struct write_op *op, bool *answered, struct err *err)
{
    struct statement statement;
    struct write_fields fields;
    bool exists;
    *answered = false;
    if (op->batch.count != 1 || op->next != 0)
        return true;
    if (op->held.data == NULL && !batch_next(&op->iter, &op->held))
        return true;
    struct err ignored;
    if (!parse_next(op, &statement, &fields, &ignored) || !write_is_plain_by_id(op, &statement, &fields) ||
        (statement.flags & STATEMENT_UPSERT))
        return true;
    if (!write_by_id_exists(op, &statement, &exists, err))
        return false;
    if (!exists) {
        *answered = true;
        op->held = (struct bdoc){0};
        op->next++;
        answer_nothing(op, 0);
    }
    return true;
}

/* Starts the next statement or group of statements. Returns true when something is on its way; false when *err belongs
 * to statement op->next, or all statements are through (err->code 0). */
static bool step_next(struct write_op *op, struct err *err)
{
    struct buf command = BUF_INIT;
    bool refused;
    bool answered;
    err->code = ERR_OK;
    if (op->iter.batch == NULL) /* findAndModify: its one statement was given to write_op_start_one */
        return false;
    op->entry_first = op->next;
    if (!look_at_validation(op, err) || !answer_missing_id(op, &answered, err))
        return false;
    if (answered)
        return true;
    uint32_t count = gather_by_id(op, &command, &refused, err);
    if (count > 0) {
        propose(op, &command);
        return true;
    }
    buf_deinit(&command);
    if (refused)
        return false;
    err->code = ERR_OK;
    if (op->held.data == NULL)
        return false;
    struct statement statement;
    struct write_fields fields;
    if (!parse_next(op, &statement, &fields, err))
        return false;
    op->held = (struct bdoc){0};
    op->next++;
    return make_current(op, &statement, &fields, err) && step_current(op, err);
}

/* An error of the statement at hand: noted, and the statement is over. False when the operation has ended. */
static bool fail_statement(struct write_op *op, const struct err *err)
{
    uint32_t index = op->has_current ? op->current.statement.index : op->next;
    if (!op->has_current) {
        op->held = (struct bdoc){0};
        op->next++;
    }
    current_end(op);
    return add_error(op, index, err);
}

/* False: the operation is over, or goes on elsewhere. */
static bool step_once(struct write_op *op)
{
    struct err err;
    if (op->stopped) {
        finish(op, NULL);
        return false;
    }
    if (op->has_current ? step_current(op, &err) : step_next(op, &err))
        return false;
    if (err.code == ERR_OK) {
        finish(op, NULL);
        return false;
    }
    return fail_statement(op, &err);
}

static void step(void *arg)
{
    struct write_op *op = arg;
    struct interrupt *before = command_ctx_enter(op->ctx);
    while (step_once(op))
        continue;
    command_ctx_leave(before);
}

struct write_op *write_op_new(struct command_ctx *ctx)
{
    struct write_op *op = mem_alloc_aligned(1, sizeof *op, alignof(struct write_op));
    op->ctx = ctx;
    op->engine = document_engine_of(ctx);
    op->ordered = true;
    arena_init(&op->validation_arena);
    return op;
}

void write_op_free(struct write_op *op)
{
    arena_deinit(&op->validation_arena);
    mem_free(op);
}

static void init(struct write_op *op)
{
    op->waiter = (struct document_claim_waiter){.wake = submit_step, .arg = op};
    op->env = (struct expr_env){.now_ms = clock_wall_ms(), .let = op->let};
    op->validation.bypass = op->bypass_validation;
    random_uuid(op->uuid);
    write_result_init(&op->result, !op->is_delete);
}

static bool look_at_target(struct write_op *op, struct err *err)
{
    return write_target_look(op->engine, &op->ns, op->expected_uuid, &op->ctx->arena, &op->default_order, err) &&
           look_at_validation(op, err);
}

void write_op_start(struct write_op *op)
{
    struct err err;
    init(op);
    if (!look_at_target(op, &err)) {
        finish(op, &err);
        return;
    }
    batch_iter_init(&op->iter, &op->batch);
    step(op);
}

/* The projection is known to be right before anything is written. */
static bool compile_projection(struct write_op *op, struct err *err)
{
    if (op->modify_fields.data == NULL || bdoc_is_empty(op->modify_fields))
        return true;
    struct write_current *current = &op->current;
    struct projection_options options = {.kind = PROJECTION_FIND, .filter = current->filter, .env = &current->env};
    if (!projection_compile(&op->ctx->arena, op->modify_fields, &options, &op->modify_projection, err))
        return false;
    bool wants_new = (current->statement.flags & STATEMENT_WANT_AFTER) != 0;
    return !wants_new || !projection_needs_match(op->modify_projection) ||
           err_set(err, ERR_BadValue, "cannot use a positional projection and return the new document");
}

void write_op_start_one(struct write_op *op, const struct statement *statement, const struct write_fields *fields)
{
    struct err err;
    init(op);
    op->batch.count = 1;
    op->next = 1;
    bson_oid_t id;
    bson_oid_init(&id, NULL);
    struct statement with_id = *statement;
    with_id.upsert_id = id;
    if (look_at_target(op, &err) && make_current(op, &with_id, fields, &err) && compile_projection(op, &err))
        step(op);
    else
        finish(op, &err);
}
