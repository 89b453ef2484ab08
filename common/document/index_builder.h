/* Drives what goes on in the background through the log: index builds on large collections and erasing what was
 * dropped. No thread of its own: each applied step proposes the next. Only the leader drives; a new leader finds
 * unfinished builds in the catalog. */
#ifndef SHERD_DOCUMENT_INDEX_BUILDER_H
#define SHERD_DOCUMENT_INDEX_BUILDER_H

#include "bson/value.h"
#include "command/context.h"

struct document_engine;
struct index_builder;

struct index_builder *index_builder_new(struct document_engine *engine);
/* No step may be under way. */
void index_builder_free(struct index_builder *builder);

/* Builds the indexes (ids, all BUILDING in `ns`) one after the other, makes all of them ready in one step and ends
 * `ctx` with its reply. When a document or a drop stands against one of them, none is left. Without space, or without
 * leadership, they stay under construction and are taken up again. Any thread. */
void index_builder_start(struct index_builder *builder, struct command_ctx *ctx, const char *ns, const uint32_t *ids,
                         uint32_t count);
/* The builds under way on this member, each as {ns, msg: "Index Build: scanning collection: 5000/10000 50%", progress:
 * {done, total}}, for $currentOp. Any thread; `fn` must not call the builder. */
void index_builder_each(struct index_builder *builder, void (*fn)(void *arg, struct bdoc build), void *arg);
/* Something was dropped: erase it soon. Any thread. */
void index_builder_nudge(struct index_builder *builder);
/* Takes up what is left unfinished, when this member leads. A worker or the housekeeping thread; reads the catalog. */
void index_builder_tick(struct index_builder *builder);

#endif
