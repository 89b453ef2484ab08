#include "generate.h"

#include <stdio.h>
#include <stdlib.h>

/* Each update, written as JSON with a number or two put in, changes no field into what the comment in generate.h
 * excludes, and succeeds on every document that its own filter lets through. */
struct update_form {
    const char *filter;
    const char *update;
    const char *array_filters; /* NULL: none */
};

static const struct update_form forms[] = {
    {"{}", "{\"$set\": {\"b\": %d}}", NULL},
    {"{}", "{\"$set\": {\"s\": \"S%d\", \"d\": {\"$date\": {\"$numberLong\": \"%d000\"}}}}", NULL},
    {"{}", "{\"$inc\": {\"n\": %d}}", NULL},
    {"{}", "{\"$inc\": {\"n\": {\"$numberDouble\": \"0.5\"}}, \"$set\": {\"b\": {\"x\": %d}}}", NULL},
    {"{}", "{\"$min\": {\"n\": %d}}", NULL},
    {"{}", "{\"$max\": {\"n\": %d, \"b\": \"m\"}}", NULL},
    {"{}", "{\"$mul\": {\"n\": -1}}", NULL},
    {"{}", "{\"$unset\": {\"b\": 1, \"d\": 1}}", NULL},
    {"{}", "{\"$unset\": {\"a\": 1}}", NULL},
    {"{}", "{\"$set\": {\"a\": [%d, {\"x\": %d}, [\"b\"]]}}", NULL},
    {"{}", "{\"$set\": {\"c\": [{\"x\": %d, \"y\": \"b\", \"z\": [%d]}, {\"x\": null}]}}", NULL},
    {"{\"a\": {\"$elemMatch\": {\"$exists\": true}}}", "{\"$push\": {\"a\": %d}}", NULL},
    {"{\"a\": {\"$elemMatch\": {\"$exists\": true}}}", "{\"$push\": {\"a\": {\"$each\": [%d, \"q\"], \"$slice\": -4}}}",
     NULL},
    {"{\"a\": {\"$elemMatch\": {\"$exists\": true}}}",
     "{\"$push\": {\"a\": {\"$each\": [%d], \"$position\": 0, \"$sort\": 1, \"$slice\": 5}}}", NULL},
    {"{\"a\": {\"$elemMatch\": {\"$exists\": true}}}", "{\"$addToSet\": {\"a\": {\"$each\": [%d, {\"x\": %d}]}}}",
     NULL},
    {"{\"a\": {\"$elemMatch\": {\"$exists\": true}}}", "{\"$pull\": {\"a\": {\"$gte\": %d}}}", NULL},
    {"{\"a\": {\"$elemMatch\": {\"$exists\": true}}}", "{\"$pull\": {\"a\": {\"x\": %d}}}", NULL},
    {"{\"a\": {\"$elemMatch\": {\"$exists\": true}}}", "{\"$pullAll\": {\"a\": [%d, \"a\", null]}}", NULL},
    {"{\"a\": {\"$elemMatch\": {\"$exists\": true}}}", "{\"$pop\": {\"a\": -1}}", NULL},
    {"{\"a\": {\"$elemMatch\": {\"$exists\": true}}}", "{\"$set\": {\"a.$[]\": %d}}", NULL},
    {"{\"a\": {\"$elemMatch\": {\"$exists\": true}}}", "{\"$set\": {\"a.$[e]\": %d}}",
     "{\"0\": {\"e\": {\"$lt\": %d}}}"},
    {"{\"a\": {\"$elemMatch\": {\"$exists\": true}}}", "{\"$set\": {\"a.1\": %d}}", NULL},
    {"{\"c.0\": {\"$exists\": true}}", "{\"$set\": {\"c.$[e].x\": %d}}",
     "{\"0\": {\"e.y\": {\"$exists\": true}, \"e.x\": {\"$ne\": %d}}}"},
    {"{\"c.x\": {\"$exists\": true}, \"c.0\": {\"$exists\": false}}", "{\"$unset\": {\"c.x\": 1}}", NULL},
    {"{}", "{\"0\": {\"$set\": {\"b\": {\"$add\": [\"$n\", %d]}}}}", NULL},
    {"{}", "{\"0\": {\"$set\": {\"s\": {\"$concat\": [\"$s\", \"%d\"]}}}, \"1\": {\"$unset\": \"d\"}}", NULL},
    {"{}", "{\"0\": {\"$set\": {\"b\": {\"$cond\": [{\"$gt\": [\"$n\", %d]}, \"big\", {\"x\": \"$k\"}]}}}}", NULL},
};

static void fill(struct rng *rng, const char *json, bson_t *out)
{
    char text[400];
    bson_error_t error;
    int first = (int)rng_below(rng, 12) - 2, second = (int)rng_below(rng, 6);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(text, sizeof text, json, first, second);
#pragma GCC diagnostic pop
    if (!bson_init_from_json(out, text, -1, &error)) {
        fprintf(stderr, "differential: %s: %s\n", text, error.message);
        abort();
    }
}

void generate_update(struct rng *rng, struct generated_update *out)
{
    const struct update_form *form = &forms[rng_below(rng, sizeof forms / sizeof forms[0])];
    fill(rng, form->filter, &out->filter);
    fill(rng, form->update, &out->update);
    fill(rng, form->array_filters == NULL ? "{}" : form->array_filters, &out->array_filters);
    out->pipeline = form->update[2] == '0';
}

void generated_update_deinit(struct generated_update *update)
{
    bson_destroy(&update->filter);
    bson_destroy(&update->update);
    bson_destroy(&update->array_filters);
}

static const struct {
    const char *spec;
    const char *needs; /* a filter (JSON) of documents that it holds; {}: it holds all; NULL: not to be hinted */
} indexes[] = {
    {"{\"key\": {\"a\": 1}, \"name\": \"a\"}", "{}"},
    {"{\"key\": {\"a\": -1, \"n\": 1}, \"name\": \"a_n\"}", "{}"},
    {"{\"key\": {\"b\": 1}, \"name\": \"b\"}", "{}"},
    {"{\"key\": {\"b\": 1, \"n\": -1}, \"name\": \"b_n\"}", "{}"},
    {"{\"key\": {\"n\": 1, \"b\": 1}, \"name\": \"n_b\"}", "{}"},
    {"{\"key\": {\"n\": 1}, \"name\": \"n\"}", "{}"},
    {"{\"key\": {\"c.x\": 1}, \"name\": \"cx\"}", "{}"},
    {"{\"key\": {\"c.x\": 1, \"c.y\": -1, \"b\": 1}, \"name\": \"cx_cy_b\"}", "{}"},
    {"{\"key\": {\"c\": 1}, \"name\": \"c\"}", "{}"},
    {"{\"key\": {\"b\": 1, \"c.z\": 1}, \"name\": \"b_cz\"}", "{}"},
    {"{\"key\": {\"a.0\": 1}, \"name\": \"a0\"}", "{}"},
    {"{\"key\": {\"a.x\": 1, \"s\": 1}, \"name\": \"ax_s\"}", "{}"},
    {"{\"key\": {\"s\": 1, \"n\": -1}, \"name\": \"s_n\"}", "{}"},
    {"{\"key\": {\"s\": 1}, \"name\": \"s_en\", \"collation\": {\"locale\": \"en\", \"strength\": 2}}", "{}"},
    {"{\"key\": {\"a\": 1, \"s\": 1}, \"name\": \"a_s_en\", \"collation\": {\"locale\": \"en\", \"strength\": 2}}",
     "{}"},
    {"{\"key\": {\"d\": 1, \"k\": 1}, \"name\": \"d_k\"}", "{}"},
    {"{\"key\": {\"k\": 1, \"a\": 1}, \"name\": \"k_a\"}", "{}"},
    {"{\"key\": {\"n\": \"hashed\"}, \"name\": \"n_hashed\"}", "{}"},
    {"{\"key\": {\"s\": \"hashed\"}, \"name\": \"s_hashed\"}", "{}"},
    {"{\"key\": {\"s\": 1, \"b\": \"hashed\"}, \"name\": \"s_b_hashed\"}", "{}"},
    {"{\"key\": {\"b\": 1}, \"name\": \"b_sparse\", \"sparse\": true}", "{\"b\": {\"$exists\": true}}"},
    {"{\"key\": {\"b\": 1, \"d\": -1}, \"name\": \"b_d_sparse\", \"sparse\": true}", "{\"b\": {\"$exists\": true}}"},
    {"{\"key\": {\"n\": 1}, \"name\": \"n_partial\", \"partialFilterExpression\": {\"n\": {\"$gt\": 3}}}",
     "{\"n\": {\"$gt\": 3}}"},
    {"{\"key\": {\"a\": 1}, \"name\": \"a_partial\", \"partialFilterExpression\": {\"b\": {\"$exists\": true}}}",
     "{\"b\": {\"$exists\": true}}"},
    {"{\"key\": {\"s\": 1}, \"name\": \"s_partial\", \"partialFilterExpression\": {\"n\": {\"$lte\": 4}, \"s\": "
     "{\"$gte\": \"a\"}}}",
     "{\"n\": {\"$lte\": 4}, \"s\": {\"$gte\": \"a\"}}"},
    {"{\"key\": {\"s\": -1}, \"name\": \"s_hidden\", \"hidden\": true}", NULL},
    {"{\"key\": {\"$**\": 1}, \"name\": \"wild\"}", "{\"n\": {\"$gte\": -100}}"},
    {"{\"key\": {\"c.$**\": 1}, \"name\": \"wild_c\"}", NULL},
    {"{\"key\": {\"$**\": 1}, \"name\": \"wild_an\", \"wildcardProjection\": {\"a\": 1, \"n\": 1}}",
     "{\"n\": {\"$gte\": -100}}"},
};

uint32_t generate_index_count(void)
{
    return sizeof indexes / sizeof indexes[0];
}

const char *generate_index(uint32_t which)
{
    return indexes[which].spec;
}

const char *generate_index_needs(uint32_t which)
{
    return indexes[which].needs;
}
