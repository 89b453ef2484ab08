/* What accumulator.c and accumulator_partial.c share. */
#ifndef SHERD_AGGREGATE_ACCUMULATOR_IMPL_H
#define SHERD_AGGREGATE_ACCUMULATOR_IMPL_H

#include "aggregate/accumulator.h"

/* Takes one value, as it came out of an expression or out of another process' list. */
bool accumulator_add_value(struct accumulator *acc, const struct accumulator_field *field, const struct bval *val,
                           struct err *err) ERR_WARN_UNUSED;
/* `key` is ignored by lists that are not sorted by one of their own (NULL is fine). */
void accumulator_add_to_list(struct accumulator *acc, const struct accumulator_field *field, const struct buf *key,
                             const struct bval *val);
bool accumulator_merge_object(struct accumulator *acc, const struct bval *val, struct err *err) ERR_WARN_UNUSED;
/* The kept value as a field, or `otherwise`. */
void accumulator_write_kept(const struct accumulator *acc, const char *name, const struct bval *otherwise,
                            struct buf *out);

#endif
