/* What a collection's options mean, read once per version of the catalog and shared by everyone who looks at that
 * version: kind, caps, time-to-live, the compiled validator. The store keeps them with the collection (storage/store.h,
 * store_collection_hooks); any thread may read them while it holds the collection. */
#ifndef SHERD_DOCUMENT_TRAITS_H
#define SHERD_DOCUMENT_TRAITS_H

#include "document/validator.h"
#include "storage/catalog.h"

enum collection_kind {
    COLLECTION_PLAIN,
    COLLECTION_VIEW,       /* a definition without records */
    COLLECTION_TIMESERIES, /* plain records, restricted writes */
};

struct collection_traits {
    enum collection_kind kind;
    bool capped;
    int64_t capped_bytes; /* with capped: more than 0 */
    int64_t capped_docs;  /* 0: no limit */
    bool clustered;       /* the natural order is the order of _id */
    int64_t expire_after; /* seconds after the date in _id (clustered) or in time_field; -1: never */
    const char *view_on;  /* views: the name inside the database */
    struct bdoc pipeline; /* views: array; may be empty */
    const char *time_field;
    const char *meta_field;     /* NULL: none */
    struct bdoc collation;      /* the default collation as it was given; data NULL: simple */
    struct validator validator; /* validator.filter data NULL: none */
};

/* Never NULL. */
const struct collection_traits *collection_traits(const struct collection *coll);
/* What the store needs to make them. */
struct store_collection_hooks traits_store_hooks(void);

#endif
