#include "tests/unit/aggregate/replay.h"

#include "aggregate/pipeline.h"
#include "base/mem.h"
#include "bson/compare.h"
#include "bson/path.h"
#include "query/projection.h"
#include "update/update.h"

#include <string.h>

void replay_collection_clear(struct replay_collection *coll)
{
    for (size_t i = 0; i < coll->count; i++)
        buf_deinit(&coll->docs[i]);
    mem_free(coll->docs);
    *coll = (struct replay_collection){0};
}

void replay_collection_add(struct replay_collection *coll, struct bdoc doc)
{
    coll->docs = mem_realloc(coll->docs, (coll->count + 1) * sizeof *coll->docs);
    coll->docs[coll->count] = BUF_INIT;
    buf_append(&coll->docs[coll->count++], doc.data, doc.len);
}

static struct bdoc doc_at(const struct replay_collection *coll, size_t i)
{
    return (struct bdoc){coll->docs[i].data, (uint32_t)coll->docs[i].len};
}

static void remove_at(struct replay_collection *coll, size_t i)
{
    buf_deinit(&coll->docs[i]);
    memmove(coll->docs + i, coll->docs + i + 1, (coll->count - i - 1) * sizeof *coll->docs);
    coll->count--;
}

static struct bdoc field_doc(struct bdoc doc, const char *name)
{
    struct bval val;
    if (bdoc_find(doc, name, &val) && (val.type == BT_DOCUMENT || val.type == BT_ARRAY))
        return bval_doc(&val);
    return (struct bdoc){0};
}

static int64_t field_i64(struct bdoc doc, const char *name)
{
    struct bval val;
    int64_t number = 0;
    if (bdoc_find(doc, name, &val) && bval_is_number(&val))
        bval_to_i64(&val, &number);
    return number;
}

static bool field_true(struct bdoc doc, const char *name)
{
    struct bval val;
    return bdoc_find(doc, name, &val) && bval_truthy(&val);
}

/* One command while it runs. */
struct run {
    struct replay_db *db;
    struct replay_collection *coll;
    struct bdoc command;
    struct arena arena;
    bson_t *reply;
    struct err *err;
};

static bool compile_filter(struct run *run, struct bdoc query, struct filter **out)
{
    return filter_compile(&run->arena, query.data != NULL ? query : bdoc_empty(), NULL, out, run->err);
}

/* Places of the matching documents in sort order. */
static bool select_docs(struct run *run, const struct filter *filter, struct bdoc sort, struct sorter *sorter)
{
    struct sort_spec *spec = NULL;
    struct buf key = BUF_INIT;
    bool ok = true;
    if (sort.data != NULL && sort_spec_natural(sort) == 0 && !sort_spec_compile(&run->arena, sort, NULL, &spec, run->err))
        return false;
    for (size_t i = 0; ok && i < run->coll->count; i++) {
        bool matched;
        buf_clear(&key);
        ok = filter_eval(filter, doc_at(run->coll, i), NULL, &matched, run->err);
        if (!ok || !matched)
            continue;
        if (spec != NULL)
            ok = sort_key_append(spec, doc_at(run->coll, i), &key, run->err);
        else if (sort.data != NULL && sort_spec_natural(sort) < 0)
            buf_append_be64(&key, UINT64_MAX - i);
        ok = ok && sorter_add(sorter, key.data, key.len, (struct bdoc){0}, i, run->err);
    }
    buf_deinit(&key);
    return ok && sorter_finish(sorter, run->err);
}

static bool project_into(struct run *run, const struct projection *projection, const struct filter *filter,
                         struct bdoc doc, bson_t *array, const char *key)
{
    struct filter_match match = {.array_index = -1};
    struct buf out = BUF_INIT;
    bool matched;
    bool ok = filter_eval(filter, doc, &match, &matched, run->err) &&
              projection_apply(projection, doc, &match, &out, run->err);
    if (ok) {
        struct bval val = bval_from_doc((struct bdoc){out.data, (uint32_t)out.len});
        bval_append(array, key, -1, &val);
    }
    buf_deinit(&out);
    return ok;
}

static bool next_item(struct run *run, struct sorter *sorter, struct sort_item *item)
{
    bool found;
    return sorter_next(sorter, item, &found, run->err) && found;
}

static bool find_into(struct run *run, const struct filter *filter, const struct projection *projection,
                      struct sorter *sorter)
{
    bson_t array;
    char key[16];
    bool ok = true;
    struct sort_item item;
    int64_t skip = field_i64(run->command, "skip");
    int64_t limit = field_i64(run->command, "limit");
    int64_t count = 0;
    BSON_APPEND_ARRAY_BEGIN(run->reply, "documents", &array);
    limit = limit < 0 ? -limit : limit;
    while (ok && next_item(run, sorter, &item) && (limit == 0 || count < limit)) {
        if (skip-- > 0)
            continue;
        snprintf(key, sizeof key, "%d", (int)count++);
        ok = project_into(run, projection, filter, doc_at(run->coll, item.tag), &array, key);
    }
    bson_append_array_end(run->reply, &array);
    return ok;
}

static bool run_find(struct run *run)
{
    struct filter *filter;
    struct projection *projection;
    struct bdoc spec = field_doc(run->command, "projection");
    if (!compile_filter(run, field_doc(run->command, "filter"), &filter) ||
        !projection_compile(&run->arena, spec.data != NULL ? spec : bdoc_empty(),
                            &(struct projection_options){.kind = PROJECTION_FIND, .filter = filter}, &projection,
                            run->err))
        return false;
    struct sorter *sorter = sorter_new(&(struct sorter_options){.memory_limit_bytes = SORT_MEMORY_LIMIT_BYTES});
    bool ok =
        select_docs(run, filter, field_doc(run->command, "sort"), sorter) && find_into(run, filter, projection, sorter);
    sorter_free(sorter);
    return ok;
}

static bool run_count(struct run *run)
{
    struct filter *filter;
    if (!compile_filter(run, field_doc(run->command, "query"), &filter))
        return false;
    int64_t n = -field_i64(run->command, "skip");
    int64_t limit = field_i64(run->command, "limit");
    for (size_t i = 0; i < run->coll->count; i++)
        n += filter_matches(filter, doc_at(run->coll, i)) ? 1 : 0;
    limit = limit < 0 ? -limit : limit;
    n = n < 0 ? 0 : limit > 0 && n > limit ? limit : n;
    BSON_APPEND_INT32(run->reply, "n", (int32_t)n);
    return true;
}

struct values {
    bson_t array;
    uint32_t count;
};

static bool add_value(void *arg, const struct path_hit *hit)
{
    struct values *values = arg;
    struct biter iter;
    struct belem elem;
    char key[16];
    if (hit->val.type == BT_EOO)
        return true;
    biter_init(&iter, bdoc_of(&values->array));
    while (biter_next(&iter, &elem))
        if (bval_equal(&elem.val, &hit->val))
            return true;
    snprintf(key, sizeof key, "%u", values->count++);
    bval_append(&values->array, key, -1, &hit->val);
    return true;
}

static bool run_distinct(struct run *run)
{
    struct filter *filter;
    struct bval key;
    struct path path;
    uint32_t len;
    if (!bdoc_find(run->command, "key", &key) || key.type != BT_STRING)
        return err_set(run->err, ERR_TypeMismatch, "key must be a string");
    if (!compile_filter(run, field_doc(run->command, "query"), &filter))
        return false;
    const char *text = bval_str(&key, &len);
    if (!path_init(&path, text, len, run->err))
        return false;
    struct values values = {.array = BSON_INITIALIZER};
    for (size_t i = 0; i < run->coll->count; i++)
        if (filter_matches(filter, doc_at(run->coll, i)))
            path_each(&path, doc_at(run->coll, i), PATH_LEAF_ELEMENTS, add_value, &values);
    BSON_APPEND_ARRAY(run->reply, "values", &values.array);
    bson_destroy(&values.array);
    path_deinit(&path);
    return true;
}

static void make_oid(struct replay_collection *coll, bson_oid_t *oid)
{
    memset(oid, 0, sizeof *oid);
    store_be32(oid->bytes + 8, ++coll->next_id);
}

static bool id_is_free(const struct replay_collection *coll, struct bdoc doc, struct err *err)
{
    struct bval id;
    struct bval other;
    bdoc_find(doc, "_id", &id);
    for (size_t i = 0; i < coll->count; i++)
        if (bdoc_find(doc_at(coll, i), "_id", &other) && bval_equal(&id, &other))
            return err_set(err, ERR_DuplicateKey, "duplicate _id");
    return true;
}

/* One update statement. */
struct change {
    struct bdoc q;
    struct bval u;
    struct bdoc sort;
    struct bdoc array_filters;
    bool multi;
    bool upsert;
    int64_t n;
    int64_t modified;
    size_t place;      /* of the last document changed */
    struct buf before; /* its bytes before the change */
    bool inserted;
};

static bool change_one(struct run *run, struct change *change, const struct update *update, const struct filter *filter,
                       size_t place)
{
    struct filter_match match;
    struct update_result result;
    struct buf out = BUF_INIT;
    bool matched;
    bool ok = filter_eval(filter, doc_at(run->coll, place), &match, &matched, run->err) &&
              update_apply(update, doc_at(run->coll, place), &match, &out, &result, run->err);
    if (!ok) {
        buf_deinit(&out);
        return false;
    }
    buf_deinit(&change->before);
    change->before = run->coll->docs[place];
    run->coll->docs[place] = out;
    change->place = place;
    change->n++;
    change->modified += result.modified ? 1 : 0;
    return true;
}

static bool insert_upsert(struct run *run, struct change *change, const struct update *update,
                          const struct filter *filter)
{
    bson_oid_t oid;
    struct buf out = BUF_INIT;
    make_oid(run->coll, &oid);
    bool ok = update_build_upsert(update, filter, &oid, &out, run->err) &&
              id_is_free(run->coll, (struct bdoc){out.data, (uint32_t)out.len}, run->err);
    if (ok) {
        replay_collection_add(run->coll, (struct bdoc){out.data, (uint32_t)out.len});
        change->inserted = true;
        change->place = run->coll->count - 1;
        change->n = 1;
    }
    buf_deinit(&out);
    return ok;
}

static bool apply_change(struct run *run, struct change *change)
{
    struct filter *filter;
    struct update *update;
    struct update_options options = {
        .multi = change->multi, .upsert = change->upsert, .array_filters = change->array_filters};
    if (!update_compile(&run->arena, &change->u, &options, &update, run->err) ||
        !compile_filter(run, change->q, &filter))
        return false;
    struct sorter *sorter = sorter_new(&(struct sorter_options){.memory_limit_bytes = SORT_MEMORY_LIMIT_BYTES});
    struct sort_item item;
    bool ok = select_docs(run, filter, change->sort, sorter);
    while (ok && next_item(run, sorter, &item)) {
        ok = change_one(run, change, update, filter, item.tag);
        if (!change->multi)
            break;
    }
    sorter_free(sorter);
    if (ok && change->n == 0 && change->upsert)
        ok = insert_upsert(run, change, update, filter);
    return ok;
}

static void append_write_error(bson_t *errors, int *count, int index, const struct err *err)
{
    bson_t item;
    char key[16];
    snprintf(key, sizeof key, "%d", (*count)++);
    bson_append_document_begin(errors, key, -1, &item);
    BSON_APPEND_INT32(&item, "index", index);
    BSON_APPEND_INT32(&item, "code", err->code);
    bson_append_document_end(errors, &item);
}

/* What the statements of a write command add up to. */
struct totals {
    int64_t n;
    int64_t modified;
    bson_t upserted;
    bson_t errors;
    int upserted_count;
    int error_count;
};

static bool run_statement(struct run *run, struct bdoc statement, int index, struct totals *totals)
{
    struct change change = {.q = field_doc(statement, "q"),
                            .array_filters = field_doc(statement, "arrayFilters"),
                            .multi = field_true(statement, "multi"),
                            .upsert = field_true(statement, "upsert")};
    bdoc_find(statement, "u", &change.u);
    bool ok = apply_change(run, &change);
    if (ok) {
        totals->n += change.n;
        totals->modified += change.modified;
    }
    if (!ok)
        append_write_error(&totals->errors, &totals->error_count, index, run->err);
    if (ok && change.inserted) {
        bson_t item;
        char key[16];
        struct bval id;
        snprintf(key, sizeof key, "%d", totals->upserted_count++);
        bson_append_document_begin(&totals->upserted, key, -1, &item);
        BSON_APPEND_INT32(&item, "index", index);
        bdoc_find(doc_at(run->coll, change.place), "_id", &id);
        bval_append(&item, "_id", -1, &id);
        bson_append_document_end(&totals->upserted, &item);
    }
    buf_deinit(&change.before);
    return ok;
}

static bool run_delete_statement(struct run *run, struct bdoc statement, int index, struct totals *totals)
{
    struct filter *filter;
    bool one = field_i64(statement, "limit") == 1;
    if (!compile_filter(run, field_doc(statement, "q"), &filter)) {
        append_write_error(&totals->errors, &totals->error_count, index, run->err);
        return false;
    }
    for (size_t i = 0; i < run->coll->count;) {
        if (!filter_matches(filter, doc_at(run->coll, i))) {
            i++;
            continue;
        }
        remove_at(run->coll, i);
        totals->n++;
        if (one)
            break;
    }
    return true;
}

static bool run_insert_statement(struct run *run, struct bdoc doc, int index, struct totals *totals)
{
    bson_oid_t oid;
    struct buf out = BUF_INIT;
    make_oid(run->coll, &oid);
    bool ok = update_prepare_insert(doc, &oid, &out, run->err) &&
              id_is_free(run->coll, (struct bdoc){out.data, (uint32_t)out.len}, run->err);
    if (ok) {
        replay_collection_add(run->coll, (struct bdoc){out.data, (uint32_t)out.len});
        totals->n++;
    } else {
        append_write_error(&totals->errors, &totals->error_count, index, run->err);
    }
    buf_deinit(&out);
    return ok;
}

static bool run_write(struct run *run, const char *list, bool (*each)(struct run *, struct bdoc, int, struct totals *))
{
    struct totals totals = {.upserted = BSON_INITIALIZER, .errors = BSON_INITIALIZER};
    struct bval ordered;
    struct biter iter;
    struct belem item;
    bool stop = !bdoc_find(run->command, "ordered", &ordered) || bval_truthy(&ordered);
    struct bdoc statements = field_doc(run->command, list);
    if (statements.data == NULL || bdoc_is_empty(statements))
        return err_set(run->err, ERR_InvalidLength, "no statements");
    biter_init(&iter, statements);
    for (int i = 0; biter_next(&iter, &item); i++) {
        if (item.val.type != BT_DOCUMENT)
            return err_set(run->err, ERR_TypeMismatch, "a statement is no document");
        if (!each(run, bval_doc(&item.val), i, &totals) && stop)
            break;
    }
    BSON_APPEND_INT32(run->reply, "n", (int32_t)totals.n);
    if (strcmp(list, "updates") == 0)
        BSON_APPEND_INT32(run->reply, "nModified", (int32_t)totals.modified);
    if (totals.upserted_count > 0)
        BSON_APPEND_ARRAY(run->reply, "upserted", &totals.upserted);
    if (totals.error_count > 0)
        BSON_APPEND_ARRAY(run->reply, "writeErrors", &totals.errors);
    bson_destroy(&totals.upserted);
    bson_destroy(&totals.errors);
    return true;
}

static bool append_value(struct run *run, struct bdoc doc, const struct filter *filter)
{
    struct projection *projection;
    struct bdoc fields = field_doc(run->command, "fields");
    if (!projection_compile(&run->arena, fields.data != NULL ? fields : bdoc_empty(),
                            &(struct projection_options){.kind = PROJECTION_FIND, .filter = filter}, &projection,
                            run->err))
        return false;
    if (doc.data != NULL)
        return project_into(run, projection, filter, doc, run->reply, "value");
    bson_append_null(run->reply, "value", -1);
    return true;
}

static bool remove_and_return(struct run *run, const struct change *change, const struct filter *filter)
{
    struct sorter *sorter = sorter_new(&(struct sorter_options){.memory_limit_bytes = SORT_MEMORY_LIMIT_BYTES});
    struct sort_item item;
    bool ok = select_docs(run, filter, change->sort, sorter);
    bool found = ok && next_item(run, sorter, &item);
    if (ok)
        ok = append_value(run, found ? doc_at(run->coll, item.tag) : (struct bdoc){0}, filter);
    if (ok && found)
        remove_at(run->coll, item.tag);
    sorter_free(sorter);
    BSON_APPEND_INT32(run->reply, "n", found ? 1 : 0);
    return ok;
}

static bool run_find_and_modify(struct run *run)
{
    struct filter *filter;
    struct bval id;
    struct change change = {.q = field_doc(run->command, "query"),
                            .sort = field_doc(run->command, "sort"),
                            .array_filters = field_doc(run->command, "arrayFilters"),
                            .upsert = field_true(run->command, "upsert")};
    bool has_update = bdoc_find(run->command, "update", &change.u);
    if (!compile_filter(run, change.q, &filter))
        return false;
    if (field_true(run->command, "remove")) {
        if (has_update || field_true(run->command, "new") || change.upsert)
            return err_set(run->err, ERR_FailedToParse, "Cannot specify both an update and remove=true");
        return remove_and_return(run, &change, filter);
    }
    if (!has_update)
        return err_set(run->err, ERR_FailedToParse, "Either an update or remove=true must be specified");
    if (change.u.type != BT_DOCUMENT && change.u.type != BT_ARRAY)
        return err_set(run->err, ERR_FailedToParse, "bad update");
    struct projection *checked;
    struct bdoc fields = field_doc(run->command, "fields");
    bool ok = (fields.data == NULL ||
               projection_compile(&run->arena, fields,
                                  &(struct projection_options){.kind = PROJECTION_FIND, .filter = filter}, &checked,
                                  run->err)) &&
              apply_change(run, &change);
    if (ok) {
        bool after = field_true(run->command, "new");
        struct bdoc value = {0};
        if (change.n > 0 && after)
            value = doc_at(run->coll, change.place);
        else if (change.n > 0 && !change.inserted)
            value = (struct bdoc){change.before.data, (uint32_t)change.before.len};
        ok = append_value(run, value, filter);
    }
    if (ok) {
        BSON_APPEND_INT32(run->reply, "n", (int32_t)change.n);
        BSON_APPEND_BOOL(run->reply, "updatedExisting", change.n > 0 && !change.inserted);
        if (change.inserted && bdoc_find(doc_at(run->coll, change.place), "_id", &id))
            bval_append(run->reply, "upserted", -1, &id);
    }
    buf_deinit(&change.before);
    return ok;
}

struct cursor {
    struct replay_collection *coll;
    struct filter *filter; /* NULL: every document */
    struct arena arena;    /* of the filter */
    size_t at;
};

static bool next_document(void *arg, struct bdoc *out, struct err *err)
{
    struct cursor *cursor = arg;
    (void)err;
    while (cursor->at < cursor->coll->count) {
        *out = doc_at(cursor->coll, cursor->at++);
        if (cursor->filter == NULL || filter_matches(cursor->filter, *out))
            return true;
    }
    *out = (struct bdoc){0};
    return true;
}

static bool open_foreign(void *arg, const struct pipeline_foreign_query *query, struct doc_source *out,
                         struct err *err)
{
    struct run *run = arg;
    struct cursor *cursor = mem_alloc(sizeof *cursor);
    arena_init(&cursor->arena);
    cursor->coll = strcmp(query->coll, "{{d}}") == 0 ? &run->db->other : run->coll;
    *out = (struct doc_source){.next = next_document, .arg = cursor};
    if (filter_compile(&cursor->arena, query->filter, NULL, &cursor->filter, err))
        return true;
    arena_deinit(&cursor->arena);
    mem_free(cursor);
    return false;
}

static void close_foreign(void *arg, struct doc_source *source)
{
    struct cursor *cursor = source->arg;
    (void)arg;
    arena_deinit(&cursor->arena);
    mem_free(cursor);
}

static bool run_aggregate(struct run *run)
{
    struct pipeline *pipeline;
    struct cursor cursor = {.coll = run->coll};
    struct doc_source source = {.next = next_document, .arg = &cursor};
    struct bdoc doc = {0};
    bson_t array;
    char key[16];
    struct bdoc stages = field_doc(run->command, "pipeline");
    if (stages.data == NULL)
        return err_set(run->err, ERR_TypeMismatch, "pipeline must be an array");
    if (!pipeline_compile(&run->arena, stages, NULL, &pipeline, run->err))
        return false;
    struct pipeline_run *running = pipeline_run_new(pipeline, 0, source, PIPELINE_MEMORY_LIMIT_BYTES);
    bool ok = true;
    struct pipeline_foreign foreign = {.open = open_foreign, .close = close_foreign, .arg = run};
    pipeline_run_set_foreign(running, &foreign);
    BSON_APPEND_ARRAY_BEGIN(run->reply, "documents", &array);
    for (int i = 0; ok; i++) {
        ok = pipeline_run_next(running, &doc, run->err);
        if (!ok || doc.data == NULL)
            break;
        struct bval val = bval_from_doc(doc);
        snprintf(key, sizeof key, "%d", i);
        bval_append(&array, key, -1, &val);
    }
    bson_append_array_end(run->reply, &array);
    pipeline_run_free(running);
    return ok;
}

static bool run_updates(struct run *run)
{
    return run_write(run, "updates", run_statement);
}

static bool run_deletes(struct run *run)
{
    return run_write(run, "deletes", run_delete_statement);
}

static bool run_inserts(struct run *run)
{
    return run_write(run, "documents", run_insert_statement);
}

enum replay_outcome replay_run(struct replay_db *db, struct bdoc command, bson_t *reply, struct err *err)
{
    static const struct {
        const char *name;
        bool (*run)(struct run *run);
    } table[] = {
        {"find", run_find},           {"count", run_count},
        {"distinct", run_distinct},   {"update", run_updates},
        {"delete", run_deletes},      {"insert", run_inserts},
        {"aggregate", run_aggregate}, {"findAndModify", run_find_and_modify},
    };
    struct biter iter;
    struct belem first;
    struct bval unwanted;
    biter_init(&iter, command);
    if (!biter_next(&iter, &first) || bdoc_has(command, "collation") || bdoc_has(command, "min") ||
        bdoc_has(command, "max") || (bdoc_find(command, "hint", &unwanted) && unwanted.type == BT_STRING))
        return REPLAY_UNSUPPORTED;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (strcmp(table[i].name, first.key) != 0)
            continue;
        struct run run = {.db = db, .coll = &db->main, .command = command, .reply = reply, .err = err};
        arena_init(&run.arena);
        bool ok = table[i].run(&run);
        arena_deinit(&run.arena);
        return ok ? REPLAY_ANSWERED : REPLAY_REFUSED;
    }
    return REPLAY_UNSUPPORTED;
}
