/* From a client's request to the command that answers it. The functions are client_server's callbacks; `arg` is the
 * router. */
#ifndef SHERD_ROUTERD_DISPATCH_H
#define SHERD_ROUTERD_DISPATCH_H

struct client_conn;
struct client_request;

/* On a worker; blocks as long as the command does. */
void dispatch_request(void *arg, struct client_request *request);
/* On the net loop. */
void dispatch_opened(void *arg, struct client_conn *conn);
void dispatch_closed(void *arg, struct client_conn *conn);

#endif
