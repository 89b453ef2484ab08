#include "command/namespace.h"

#include <stdio.h>
#include <string.h>

bool ns_check_db(const char *db, struct err *err)
{
    size_t len = strlen(db);
    if (len == 0 || len > COMMAND_DB_MAX || db[strcspn(db, "/\\. \"$")] != '\0')
        return err_set(err, ERR_InvalidNamespace, "Invalid database name: '%.100s'", db);
    return true;
}

bool ns_check_coll(const char *db, const char *coll, struct err *err)
{
    if (coll[0] == '\0')
        return err_set(err, ERR_InvalidNamespace, "Invalid namespace specified '%s.'", db);
    if (coll[0] == '.' || strchr(coll, '$') != NULL)
        return err_set(err, ERR_InvalidNamespace, "Invalid collection name: %.200s", coll);
    if (strlen(db) + 1 + strlen(coll) > COMMAND_NS_MAX)
        return err_set(err, ERR_InvalidNamespace, "Fully qualified namespace is too long: more than %d bytes",
                       COMMAND_NS_MAX);
    return true;
}

bool ns_make(struct ns *out, const char *db, const char *coll, struct err *err)
{
    if (!ns_check_db(db, err) || !ns_check_coll(db, coll, err))
        return false;
    snprintf(out->db, sizeof out->db, "%s", db);
    snprintf(out->full, sizeof out->full, "%s.%s", db, coll);
    out->coll = out->full + strlen(db) + 1;
    return true;
}

bool ns_parse(struct ns *out, const char *full, struct err *err)
{
    const char *dot = strchr(full, '.');
    size_t db_len = dot != NULL ? (size_t)(dot - full) : 0;
    if (db_len == 0 || db_len > COMMAND_DB_MAX)
        return err_set(err, ERR_InvalidNamespace, "Invalid namespace specified '%.255s'", full);
    char db[COMMAND_DB_MAX + 1] = {0};
    memcpy(db, full, db_len);
    return ns_make(out, db, dot + 1, err);
}

bool command_ns(const struct command_ctx *ctx, struct ns *out, struct err *err)
{
    if (ctx->value.type != BT_STRING)
        return err_set(err, ERR_InvalidNamespace, "collection name has invalid type %s",
                       bval_type_name(ctx->value.type));
    uint32_t len;
    const char *coll = bval_str(&ctx->value, &len);
    if (strlen(coll) != len)
        return err_set(err, ERR_InvalidNamespace, "namespaces cannot have embedded null characters");
    return ns_make(out, ctx->db, coll, err);
}

bool command_ns_or_db(const struct command_ctx *ctx, struct ns *out, struct err *err)
{
    int64_t number;
    if (!bval_is_number(&ctx->value))
        return command_ns(ctx, out, err);
    if (!bval_to_i64(&ctx->value, &number) || number != 1)
        return err_set(err, ERR_FailedToParse,
                       "Invalid command format: the '%s' field must specify a collection "
                       "name or 1",
                       ctx->name);
    if (!ns_check_db(ctx->db, err))
        return false;
    snprintf(out->db, sizeof out->db, "%s", ctx->db);
    snprintf(out->full, sizeof out->full, "%s", ctx->db);
    out->coll = out->full + strlen(out->full);
    return true;
}

bool ns_check_write(const struct ns *ns, struct err *err)
{
    bool allowed = ns_is_reserved_db(ns->db) || !ns_is_system(ns) || strcmp(ns->coll, "system.js") == 0;
    return allowed || err_set(err, ERR_InvalidNamespace, "Invalid system namespace: %s", ns->full);
}

bool ns_is_reserved_db(const char *db)
{
    return strcmp(db, "admin") == 0 || strcmp(db, "config") == 0 || strcmp(db, "local") == 0;
}

bool ns_is_system(const struct ns *ns)
{
    return ns_is_reserved_db(ns->db) || strncmp(ns->coll, "system.", strlen("system.")) == 0;
}
