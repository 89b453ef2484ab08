/* Rules for names: https://www.mongodb.com/docs/manual/reference/limits/#naming-restrictions */
#include "storage/catalog.h"

static bool refuse(struct err *err, const char *why, const char *name, size_t len)
{
    return err_set(err, ERR_InvalidNamespace, "Invalid namespace specified '%.*s': %s", (int)(len > 200 ? 200 : len),
                   name, why);
}

bool catalog_check_db(const char *db, size_t db_len, struct err *err)
{
    if (db_len == 0)
        return refuse(err, "the database name is empty", db, db_len);
    if (db_len > CATALOG_DB_MAX)
        return refuse(err, "the database name is longer than 63 bytes", db, db_len);
    for (size_t i = 0; i < db_len; i++)
        if (db[i] == 0 || strchr("/\\. \"$*<>:|?", db[i]) != NULL)
            return refuse(err, "the database name holds a character that is not allowed", db, db_len);
    return true;
}

bool catalog_check_ns(const char *ns, size_t ns_len, struct err *err)
{
    const char *dot = memchr(ns, '.', ns_len);
    if (dot == NULL)
        return refuse(err, "there is no collection name", ns, ns_len);
    if (!catalog_check_db(ns, (size_t)(dot - ns), err))
        return false;
    const char *name = dot + 1;
    size_t len = ns_len - (size_t)(name - ns);
    if (ns_len > CATALOG_NS_MAX)
        return refuse(err, "it is longer than 255 bytes", ns, ns_len);
    if (len == 0)
        return refuse(err, "the collection name is empty", ns, ns_len);
    if (name[0] == '.' || name[len - 1] == '.')
        return refuse(err, "the collection name begins or ends with a dot", ns, ns_len);
    if (memchr(name, 0, len) != NULL)
        return refuse(err, "the collection name holds a NUL", ns, ns_len);
    if (memchr(name, '$', len) != NULL)
        return refuse(err, "the collection name holds a '$'", ns, ns_len);
    return true;
}
