/* Namespaces of the config service's collections. */
#ifndef SHERD_CONFIGD_NAMES_H
#define SHERD_CONFIGD_NAMES_H

#define NS_SHARDS      "config.shards"
#define NS_DATABASES   "config.databases"
#define NS_COLLECTIONS "config.collections"
#define NS_CHUNKS      "config.chunks"
#define NS_TAGS        "config.tags"
#define NS_SETTINGS    "config.settings"
#define NS_LOCKS       "config.locks"
#define NS_MONGOS      "config.mongos"
#define NS_CHANGELOG   "config.changelog"
#define NS_ACTIONLOG   "config.actionlog"
#define NS_VERSION     "config.version"
#define NS_MIGRATIONS  "config.migrations"
#define NS_OPERATIONS  "config.operations"

/* Indexes that the config service itself reads by. */
#define INDEX_CHUNKS_LASTMOD   "uuid_1_lastmod_1"
#define INDEX_CHUNKS_MIN       "uuid_1_min_1"
#define INDEX_COLLECTIONS_UUID "uuid_1"

#endif
