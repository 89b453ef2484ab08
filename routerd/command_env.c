#include "routerd/command_env.h"

#include "base/clock.h"
#include "base/random.h"
#include "collation/collation.h"
#include "command/fields.h"

bool command_env_collation(struct bdoc body, const struct routing *routing, struct bdoc *out, struct err *err)
{
    *out = (struct bdoc){0};
    if (!field_get_doc(body, "collation", out, err))
        return false;
    if (!out->data && routing && routing->table)
        *out = collection_entry_collation(routing_table_collection(routing->table));
    return true;
}

bool command_env_init(struct arena *arena, struct bdoc body, const struct routing *routing, struct expr_env *out,
                      struct err *err)
{
    struct bdoc spec;
    struct collation *collation;
    *out = (struct expr_env){.now_ms = clock_wall_ms(), .random = random_u64()};
    if (!field_get_doc(body, "let", &out->let, err) || !command_env_collation(body, routing, &spec, err))
        return false;
    if (!spec.data || bdoc_is_empty(spec))
        return true;
    if (!collation_open(spec, &collation, err))
        return false;
    collation_keep(collation, arena);
    out->order = collation_order(collation);
    collation_unref(collation);
    return true;
}

static bool open_given(struct bdoc spec, struct collation **out, struct err *err)
{
    *out = NULL;
    return !spec.data || bdoc_is_empty(spec) || collation_open(spec, out, err);
}

bool command_env_same_collation(struct bdoc a, struct bdoc b, bool *same, struct err *err)
{
    struct collation *left = NULL;
    struct collation *right = NULL;
    bool ok = open_given(a, &left, err) && open_given(b, &right, err);
    *same = ok && bval_order_same(collation_order(left), collation_order(right));
    collation_unref(left);
    collation_unref(right);
    return ok;
}
