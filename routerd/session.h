/* What the router remembers about a client's connection: made when it opens, freed with it. Used by the connection's
 * one request at a time. */
#ifndef SHERD_ROUTERD_SESSION_H
#define SHERD_ROUTERD_SESSION_H

#include "routerd/failpoint.h"

enum { SESSION_APP_NAME_MAX = 128 };

struct session {
    char app_name[SESSION_APP_NAME_MAX + 1]; /* client.application.name of the handshake; "" when not given */
    struct failpoint_outcome failpoint;      /* of the request at work; views into its arena */
};

#endif
