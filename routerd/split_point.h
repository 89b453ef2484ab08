/* Which chunk a split means, and where to split it. On a worker; blocks (a median is asked from the chunk's shard). */
#ifndef SHERD_ROUTERD_SPLIT_POINT_H
#define SHERD_ROUTERD_SPLIT_POINT_H

#include "command/namespace.h"
#include "routerd/route.h"

struct split_request {
    struct ns ns;
    struct bdoc find;   /* the chunk that holds documents like this, at its middle; data NULL: not given */
    struct bdoc middle; /* at this point exactly */
    struct bdoc bounds; /* array of min and max of the chunk, at its middle */
};

/* *chunk is borrowed from the route's table, *point lies in the context's arena or in the request.
 * ERR_BadValue when there is no such chunk; ERR_IllegalOperation when it holds too little to be split. */
bool split_point_find(struct route *route, const struct split_request *request, const struct chunk **chunk,
                      struct bdoc *point, struct err *err) ERR_WARN_UNUSED;

#endif
