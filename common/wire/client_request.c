/* From a message's bytes to a request, and from a reply to bytes. */
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "wire/client_server_impl.h"
#include "wire/compress.h"

enum { BODY_AT = WIRE_HEADER_BYTES + 5 }; /* of an OP_MSG with the body first */

static void append_label(bson_t *doc, const char *label)
{
    bson_t array;
    BSON_APPEND_ARRAY_BEGIN(doc, "errorLabels", &array);
    BSON_APPEND_UTF8(&array, "0", label);
    bson_append_array_end(doc, &array);
}

/* {ok: 0, errmsg, code, codeName}, for what goes wrong below the commands. */
static struct wire_frame *error_reply(const struct err *err, const char *label)
{
    char name[ERR_NAME_MAX];
    bson_t doc;
    bson_init(&doc);
    BSON_APPEND_DOUBLE(&doc, "ok", 0.0);
    BSON_APPEND_UTF8(&doc, "errmsg", err->msg);
    BSON_APPEND_INT32(&doc, "code", err->code);
    BSON_APPEND_UTF8(&doc, "codeName", err_name(err->code, name));
    if (label != NULL)
        append_label(&doc, label);
    struct wire_frame *frame = wire_frame_of_doc(bdoc_of(&doc));
    bson_destroy(&doc);
    return frame;
}

/* The OP_REPLY with the body of an OP_MSG; takes the OP_MSG. */
static struct wire_frame *as_op_reply(struct wire_frame *reply, uint32_t response_to)
{
    struct wire_msg msg;
    struct buf out = BUF_INIT;
    CHECK(wire_msg_parse(reply->data, reply->len, WIRE_PARSE_TRUSTED, &msg, NULL));
    wire_reply_append(&out, response_to, msg.body);
    wire_frame_unref(reply);
    return wire_frame_take(&out);
}

/* False for an OP_MSG that, as far as it can be told, wants no reply. For a message that was not parsed. */
static bool raw_wants_reply(const struct client_request *request)
{
    const struct wire_frame *frame = request->frame;
    return request->msg.header.opcode != WIRE_OP_MSG || frame->len < BODY_AT ||
           (load_le32(frame->data + WIRE_HEADER_BYTES) & WIRE_MORE_TO_COME) == 0;
}

static void request_end(struct client_request *request, struct wire_frame *reply, bool close_after)
{
    struct client_conn *conn = request->conn;
    wire_frame_unref(request->frame);
    mem_free(request);
    client_conn_end_request(conn, reply, close_after);
}

/* Gives the reply the form that the request asks for. Takes it; NULL when none is wanted. */
static struct wire_frame *dress_reply(const struct client_request *request, struct wire_frame *reply)
{
    if (!request->wants_reply) {
        wire_frame_unref(reply);
        return NULL;
    }
    uint32_t response_to = request->msg.header.request_id;
    wire_set_ids(reply->data, 0, response_to);
    if (request->msg.header.opcode == WIRE_OP_QUERY)
        reply = as_op_reply(reply, response_to);
    if (request->compressor == WIRE_COMPRESSOR_NOOP)
        return reply;
    struct wire_frame *compressed = wire_compress(reply, (enum wire_compressor)request->compressor);
    if (compressed == NULL)
        return reply;
    wire_frame_unref(reply);
    return compressed;
}

void client_request_reply(struct client_request *request, struct wire_frame *reply)
{
    CHECK(wire_frame_is_sole(reply) && reply->len >= BODY_AT);
    request_end(request, dress_reply(request, reply), false);
}

void client_request_reply_doc(struct client_request *request, struct bdoc body)
{
    client_request_reply(request, wire_frame_of_doc(body));
}

void client_request_drop(struct client_request *request)
{
    request_end(request, NULL, true);
}

/* Undoes the compression if there is any. */
static bool unwrap(struct client_request *request, struct err *err)
{
    if (request->msg.header.opcode != WIRE_OP_COMPRESSED)
        return true;
    enum wire_compressor compressor;
    struct wire_frame *plain = wire_decompress(request->frame->data, request->frame->len, &compressor, err);
    if (plain == NULL)
        return false;
    wire_frame_unref(request->frame);
    request->frame = plain;
    request->compressor = (int)compressor;
    return true;
}

/* An answer to what could not be parsed. Only a broken document leaves the framing trustworthy: anything else ends the
 * connection. */
static void answer_broken(struct client_request *request, const struct err *err)
{
    uint32_t opcode = request->msg.header.opcode;
    bool answerable =
        opcode == WIRE_OP_MSG || opcode == WIRE_OP_COMPRESSED || opcode == WIRE_OP_QUERY || opcode == WIRE_OP_GET_MORE;
    bool keep = err->code == ERR_InvalidBSON && opcode == WIRE_OP_MSG;
    log_info("NETWORK", 4004, "Bad message from client", LOG_STR("peer", request->conn->peer),
             LOG_STR("error", err->msg));
    struct wire_frame *reply = NULL;
    if (answerable) {
        reply = error_reply(err, NULL);
        wire_set_ids(reply->data, 0, request->msg.header.request_id);
        if (opcode == WIRE_OP_QUERY || opcode == WIRE_OP_GET_MORE)
            reply = as_op_reply(reply, request->msg.header.request_id);
    }
    request_end(request, reply, !keep);
}

/* On a worker. */
static void run_request(struct pool_job *job)
{
    struct client_request *request = (struct client_request *)((char *)job - offsetof(struct client_request, job));
    struct err err;
    bool good = unwrap(request, &err) &&
                wire_msg_parse(request->frame->data, request->frame->len, WIRE_PARSE_CHECKED, &request->msg, &err);
    if (good && request->msg.header.opcode == WIRE_OP_REPLY)
        good = err_set(&err, ERR_ProtocolError, "a client sends no OP_REPLY");
    if (!good) {
        answer_broken(request, &err);
        return;
    }
    request->wants_reply = request->msg.header.opcode == WIRE_OP_QUERY || (request->msg.flags & WIRE_MORE_TO_COME) == 0;
    const struct client_server_options *options = &request->conn->server->options;
    options->handle(options->arg, request);
}

/* Answers on the loop, without a worker. */
static void refuse(struct client_request *request, struct err *err, const char *label, bool close_after)
{
    struct wire_frame *reply = raw_wants_reply(request) ? error_reply(err, label) : NULL;
    if (reply != NULL)
        wire_set_ids(reply->data, 0, request->msg.header.request_id);
    if (reply != NULL && request->msg.header.opcode == WIRE_OP_QUERY)
        reply = as_op_reply(reply, request->msg.header.request_id);
    request_end(request, reply, close_after);
}

void client_request_submit(struct client_conn *conn, struct wire_frame *frame)
{
    struct client_request *request = mem_alloc(sizeof *request);
    struct err err;
    request->conn = conn;
    request->frame = frame;
    request->received_ms = clock_now_ms();
    request->job.run = run_request;
    CHECK(wire_header_parse(frame->data, &request->msg.header, NULL));
    if (conn->refusing) {
        err_set(&err, ERR_TooManyFilesOpen, "too many connections: the limit is %u", conn->server->options.max_conns);
        refuse(request, &err, NULL, true);
    } else if (!pool_submit(conn->server->options.pool, &request->job)) {
        err_set(&err, ERR_ExceededTimeLimit, "too many requests are waiting");
        refuse(request, &err, "RetryableWriteError", false);
    }
}
