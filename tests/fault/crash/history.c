#include "history.h"

#include "base/map.h"
#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { EXPLAIN_MAX = 100 };

enum item_kind {
    ITEM_DOCUMENT,
    ITEM_COUNTER,
    ITEM_COLLECTION,
};

/* Everything known of one _id or collection. */
struct item {
    enum item_kind kind;
    bool known; /* some journal speaks of it: not only seen */
    bool may_exist;
    bool must_exist;
    bool was_deleted;  /* by an acknowledged delete */
    bool went_missing; /* the load looked for it in vain */
    int64_t values[2]; /* a document's possible values */
    size_t value_count;
    int64_t low; /* a counter's bounds */
    int64_t high;
    size_t seen; /* times read back */
    int64_t seen_value;
    bool pad_fits;
};

struct history {
    struct map items;
    int64_t acked;
    int64_t unknown;
};

struct history *history_new(void)
{
    return mem_alloc(sizeof(struct history));
}

void history_free(struct history *history)
{
    if (history == NULL) {
        return;
    }
    for (struct map_entry *entry = map_next(&history->items, NULL); entry != NULL;
         entry = map_next(&history->items, entry)) {
        mem_free(entry->value);
    }
    map_deinit(&history->items);
    mem_free(history);
}

static struct item *item_of(struct history *history, const char *id)
{
    struct item *item = map_get(&history->items, id, strlen(id));
    if (item == NULL) {
        item = mem_alloc(sizeof *item);
        map_put(&history->items, id, strlen(id), item);
    }
    return item;
}

static void add_insert(struct item *item, const struct journal_entry *entry)
{
    item->may_exist = true;
    item->must_exist = entry->outcome == OUTCOME_OK;
    item->values[0] = entry->value;
    item->value_count = 1;
}

static void add_set(struct item *item, const struct journal_entry *entry)
{
    if (entry->outcome == OUTCOME_OK || item->value_count == 0) {
        item->values[0] = entry->value;
        item->value_count = 1;
    } else {
        item->values[1] = entry->value;
        item->value_count = 2;
    }
}

static void add_delete(struct item *item, const struct journal_entry *entry)
{
    item->must_exist = false;
    if (entry->outcome == OUTCOME_OK) {
        item->may_exist = false;
        item->was_deleted = true;
    }
}

static void add_counter(struct item *item, const struct journal_entry *entry)
{
    item->kind = ITEM_COUNTER;
    item->may_exist = true;
    item->must_exist |= entry->outcome == OUTCOME_OK;
}

static void add_shard(struct item *item, const struct journal_entry *entry)
{
    item->kind = ITEM_COLLECTION;
    add_insert(item, entry);
}

static void add_inc(struct item *item, const struct journal_entry *entry)
{
    item->kind = ITEM_COUNTER;
    item->high += entry->value;
    item->low += entry->outcome == OUTCOME_OK ? entry->value : 0;
}

void history_add(void *arg, const struct journal_entry *entry)
{
    struct history *history = arg;
    struct item *item = item_of(history, entry->id);
    item->known = true;
    history->acked += entry->outcome == OUTCOME_OK;
    history->unknown += entry->outcome == OUTCOME_UNKNOWN;
    if (entry->outcome == OUTCOME_MISSING) {
        item->went_missing = true;
    }
    if (entry->outcome == OUTCOME_NONE || entry->outcome == OUTCOME_MISSING) {
        return;
    }
    switch (entry->kind) {
    case OP_INSERT:
        add_insert(item, entry);
        break;
    case OP_SET:
        add_set(item, entry);
        break;
    case OP_SHARD:
        add_shard(item, entry);
        break;
    case OP_DROP:
    case OP_DELETE:
        add_delete(item, entry);
        break;
    case OP_COUNTER:
        add_counter(item, entry);
        break;
    case OP_INC:
        add_inc(item, entry);
        break;
    }
}

void history_observe(struct history *history, const char *id, int64_t value, const char *pad)
{
    struct item *item = item_of(history, id);
    char expected[PAD_BYTES + 1];
    journal_pad(id, expected);
    item->seen++;
    item->seen_value = value;
    item->pad_fits = pad != NULL && strcmp(pad, expected) == 0;
}

void history_observe_collection(struct history *history, const char *id)
{
    struct item *item = item_of(history, id);
    item->kind = ITEM_COLLECTION;
    item->seen++;
    item->seen_value = item->value_count > 0 ? item->values[0] : 0;
}

struct finisher {
    struct history_report *report;
    void (*explain)(void *arg, enum violation what, const char *text);
    void *arg;
    size_t explained;
};

__attribute__((format(printf, 3, 4))) static void violate(struct finisher *finisher, enum violation what,
                                                          const char *format, ...)
{
    finisher->report->violations[what]++;
    if (finisher->explain == NULL || finisher->explained++ >= EXPLAIN_MAX) {
        return;
    }
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    finisher->explain(finisher->arg, what, text);
}

/* What is known of a document with what is known of its collection: it goes with it. */
static struct item resolve(const struct history *history, const char *id, const struct item *item)
{
    struct item resolved = *item;
    const char *slash = strchr(id, '/');
    const struct item *parent = slash == NULL ? NULL : map_get(&history->items, id, (size_t)(slash - id));
    if (parent == NULL || parent->kind != ITEM_COLLECTION) {
        return resolved;
    }
    if (!parent->must_exist) {
        resolved.must_exist = false;
    }
    if (!parent->may_exist) {
        resolved.may_exist = false;
        resolved.was_deleted |= parent->was_deleted;
    }
    return resolved;
}

static bool value_fits(const struct item *item, int64_t value)
{
    if (item->kind == ITEM_COUNTER) {
        return value >= item->low && value <= item->high;
    }
    return (item->value_count > 0 && item->values[0] == value) || (item->value_count > 1 && item->values[1] == value);
}

static void check_seen(struct finisher *finisher, const char *id, const struct item *item)
{
    if (!item->known) {
        violate(finisher, VIOLATION_INVENTED, "%s is there, nobody wrote it", id);
    } else if (!item->may_exist && item->was_deleted) {
        violate(finisher, VIOLATION_RESURRECTED, "%s is there, its delete was acknowledged", id);
    } else if (!item->may_exist) {
        violate(finisher, VIOLATION_INVENTED, "%s is there, its insert was never sent", id);
    } else if (item->kind == ITEM_COUNTER && !value_fits(item, item->seen_value)) {
        violate(finisher, VIOLATION_COUNTER, "counter %s is %lld, must be %lld to %lld", id,
                (long long)item->seen_value, (long long)item->low, (long long)item->high);
    } else if (!value_fits(item, item->seen_value)) {
        violate(finisher, VIOLATION_LOST, "%s has the value %lld, must have %lld%s", id, (long long)item->seen_value,
                (long long)item->values[0], item->value_count > 1 ? " or one of unknown outcome" : "");
    }
    if (item->seen > 1) {
        violate(finisher, VIOLATION_DUPLICATE, "%s was read %zu times", id, item->seen);
    }
    if (item->known && item->kind == ITEM_DOCUMENT && !item->pad_fits) {
        violate(finisher, VIOLATION_DAMAGED, "the text of %s is not what was written", id);
    }
}

static void check_item(struct finisher *finisher, const char *id, const struct item *item)
{
    struct history_report *report = finisher->report;
    bool document = item->kind == ITEM_DOCUMENT;
    report->expected += item->must_exist && document;
    report->uncertain += item->may_exist && !item->must_exist && document;
    report->observed += item->seen > 0 && document;
    report->counters += item->seen > 0 && item->kind == ITEM_COUNTER;
    report->collections += item->seen > 0 && item->kind == ITEM_COLLECTION;
    report->slack += item->kind == ITEM_COUNTER ? item->high - item->low : 0;
    if (item->went_missing) {
        violate(finisher, VIOLATION_DURING, "%s was acknowledged and then not found by the load", id);
    }
    if (item->seen > 0) {
        check_seen(finisher, id, item);
    } else if (item->must_exist) {
        violate(finisher, VIOLATION_LOST, "%s is not there, its insert was acknowledged", id);
    }
}

void history_finish(struct history *history, void (*explain)(void *arg, enum violation what, const char *text),
                    void *arg, struct history_report *report)
{
    *report = (struct history_report){.acked = history->acked, .unknown = history->unknown};
    struct finisher finisher = {.report = report, .explain = explain, .arg = arg};
    for (struct map_entry *entry = map_next(&history->items, NULL); entry != NULL;
         entry = map_next(&history->items, entry)) {
        struct item item = resolve(history, entry->key, entry->value);
        check_item(&finisher, entry->key, &item);
    }
}

bool history_report_clean(const struct history_report *report)
{
    for (size_t i = 0; i < VIOLATION_COUNT; i++) {
        if (report->violations[i] > 0) {
            return false;
        }
    }
    return true;
}

const char *violation_name(enum violation what)
{
    static const char *const names[VIOLATION_COUNT] = {
        [VIOLATION_LOST] = "lost",           [VIOLATION_INVENTED] = "invented", [VIOLATION_RESURRECTED] = "resurrected",
        [VIOLATION_DUPLICATE] = "duplicate", [VIOLATION_COUNTER] = "counter",   [VIOLATION_DAMAGED] = "damaged",
        [VIOLATION_DURING] = "missing",
    };
    return names[what];
}

bool history_allows(const struct history *history, const char *id, bool found, int64_t value)
{
    const struct item *known = map_get(&history->items, id, strlen(id));
    if (known == NULL) {
        return !found;
    }
    struct item item = resolve(history, id, known);
    if (!item.may_exist) {
        return !found;
    }
    return found ? value_fits(&item, value) : !item.must_exist;
}

const char *history_next_expected(const struct history *history, const void **position)
{
    for (const struct map_entry *entry = map_next(&history->items, *position); entry != NULL;
         entry = map_next(&history->items, entry)) {
        struct item item = resolve(history, entry->key, entry->value);
        *position = entry;
        if (item.must_exist && item.kind == ITEM_DOCUMENT && strchr(entry->key, '/') == NULL) {
            return entry->key;
        }
    }
    return NULL;
}
