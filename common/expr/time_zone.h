/* Time zones: offsets ("+05:30") and places of the Olson database ("Europe/Berlin") out of ICU. A place is read once
 * into a table of its changes, which is kept for the life of the process and never written again, so any thread may use
 * it. What the table says depends on ICU's data: nothing inside apply may ask. */
#ifndef SHERD_EXPR_TIME_ZONE_H
#define SHERD_EXPR_TIME_ZONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TIME_ZONE_MAX_NAME_BYTES = 64,
    TIME_ZONE_MAX_PLACES = 1024, /* kept tables; the database has about 600 names */
};

struct time_zone_place;

struct time_zone {
    int64_t offset_ms;                   /* to add to UTC; of a fixed zone */
    const struct time_zone_place *place; /* NULL: fixed */
};

/* False when the name is neither an offset nor a known place. "" is none either. */
bool time_zone_find(const char *name, size_t len, struct time_zone *out);
/* What is added to UTC at the moment `utc_ms`. */
int64_t time_zone_offset_ms(const struct time_zone *zone, int64_t utc_ms);
/* Local time to UTC. A time that a change leaves out is moved on by the change's length; of one that comes twice the
 * first is meant. */
int64_t time_zone_to_utc(const struct time_zone *zone, int64_t local_ms);

#endif
