#include "document/capped.h"

#include "storage/counters.h"
#include "storage/cursor.h"
#include "storage/records.h"

bool capped_check_document(const struct collection_traits *traits, struct bdoc doc, struct err *err)
{
    return !traits->capped || doc.len <= traits->capped_bytes ||
           err_set(err, ERR_BadValue, "object to insert exceeds cappedMaxSize");
}

static bool is_over(struct store_txn *txn, const struct collection *coll, const struct collection_traits *traits)
{
    struct counter counter;
    counter_collection(txn, coll, &counter);
    return counter.bytes > traits->capped_bytes || (traits->capped_docs > 0 && counter.docs > traits->capped_docs);
}

static bool find_oldest(struct store_txn *txn, const struct collection *coll, uint64_t *record_id)
{
    struct record_cursor cursor;
    record_cursor_open(&cursor, txn, coll, false);
    bool found = record_cursor_next(&cursor, record_id, NULL);
    record_cursor_close(&cursor);
    return found;
}

bool capped_trim(struct store_txn *txn, const struct collection *coll, const struct collection_traits *traits)
{
    if (!traits->capped)
        return false;
    for (int erased = 0; is_over(txn, coll, traits); erased++) {
        uint64_t oldest;
        if (erased == CAPPED_TRIM_DOCS)
            return true;
        if (!find_oldest(txn, coll, &oldest))
            return false;
        record_erase(txn, coll, oldest, NULL);
    }
    return false;
}
