/* Inside storage only: which filters a partial index may have. */
#ifndef SHERD_STORAGE_INDEX_PARTIAL_H
#define SHERD_STORAGE_INDEX_PARTIAL_H

#include "bson/value.h"

/* `filter` is one that compiles. $eq (also written as a value), $gt, $gte, $lt, $lte, $in without regular expressions,
 * $exists: true, $type, $and and $or: https://www.mongodb.com/docs/manual/core/index-partial/ . Else
 * ERR_CannotCreateIndex. */
bool partial_check(struct bdoc filter, struct err *err) ERR_WARN_UNUSED;

#endif
