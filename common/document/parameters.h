/* Settings of a whole group that clients may change while it runs: ttlMonitorEnabled and ttlMonitorSleepSecs. They are
 * part of the replicated state, so a new leader and a restarted member have them, too. */
#ifndef SHERD_DOCUMENT_PARAMETERS_H
#define SHERD_DOCUMENT_PARAMETERS_H

#include "document/engine.h"

/* At start, before commands run: puts what is stored into force. */
bool document_parameters_load(struct document_engine *engine, struct err *err) ERR_WARN_UNUSED;

#endif
