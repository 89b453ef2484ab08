/* Inside storage only: wildcard indexes. What the keys are is in index_keys.h. */
#ifndef SHERD_STORAGE_INDEX_WILDCARD_H
#define SHERD_STORAGE_INDEX_WILDCARD_H

#include "base/arena.h"
#include "bson/value.h"

enum { WILDCARD_PATHS_MAX = 256 }; /* of a wildcardProjection; more: 67 */

struct wildcard_path {
    const char *text;
    uint32_t len;
};

/* Which paths a wildcard index has. Texts lie in the arena, or in the specification. */
struct wildcard {
    struct wildcard_path *paths; /* those that are in (with everything below), or those that are not */
    uint32_t count;
    bool inclusive;
    bool with_id; /* of an exclusive one: _id is in, too */
};

/* True for "$**" and for a path that ends in ".$**". */
bool wildcard_is_field(const char *path, uint32_t len);
/* Reads the key pattern's wildcard field and the projection (data NULL: none); the specification was checked. */
void wildcard_parse(struct arena *arena, const char *field, uint32_t field_len, struct bdoc projection,
                    struct wildcard *out);

enum wildcard_state {
    WILDCARD_OUT,    /* the path and everything below are not in the index */
    WILDCARD_INSIDE, /* they are */
    WILDCARD_ON_WAY, /* only something below is */
    WILDCARD_PARTLY, /* the path is, but not everything below */
};
enum wildcard_state wildcard_state_of(const struct wildcard *wildcard, const char *path, uint32_t len);

/* The checks of a specification: the wildcard field against the other ones, and wildcardProjection. Codes as MongoDB's
 * (7246200 ...). */
bool wildcard_check_key(struct bdoc key, struct err *err) ERR_WARN_UNUSED;
bool wildcard_check_projection(struct bdoc key, const struct bval *projection, struct err *err) ERR_WARN_UNUSED;

#endif
