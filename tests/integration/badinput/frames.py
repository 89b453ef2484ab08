"""Malformed messages at every port: each ends in an error or a closed connection, and the daemon serves on."""
import os
import random
import socket
import struct
import sys
import time
import zlib

from wire import (CLOSED, OP_MSG, OP_QUERY, Client, doc, element, frame, header, op_compressed, op_compressed_zlib,
                  op_msg, op_query, raw_doc, sequence)

PING = {"ping": 1, "$db": "admin"}
SEED = 7
RANDOM_MESSAGES = 150
MANY_CONNECTIONS = 1000
failures = []


def check(good, what):
    if not good:
        failures.append(what)
        print("FAILED:", what)


def nested(depth):
    """{a: {a: ...}} without copying each level into the next; a level adds 8 bytes."""
    heads = b"".join(struct.pack("<i", 5 + 8 * level) + b"\x03a\0" for level in range(depth, 0, -1))
    return heads + raw_doc() + bytes(depth)


def bad_documents():
    """Documents that are not BSON."""
    yield "length too small", struct.pack("<i", 4) + b"\0"
    yield "length negative", struct.pack("<i", -1) + b"\0"
    yield "length beyond the message", struct.pack("<i", 1 << 20) + b"\0"
    yield "length beyond 2 GiB", struct.pack("<I", 0xFFFFFFF0) + b"\0"
    yield "no NUL at the end", struct.pack("<i", 6) + b"\x08\x08"
    yield "key without end", struct.pack("<i", 8) + b"\x10aaa"
    yield "int32 cut off", raw_doc(b"\x10a\0\1\2")
    yield "unknown type", raw_doc(element(0x20, "a", b""))
    yield "type 0 inside", raw_doc(b"\0", element(16, "a", b"\1\0\0\0"))
    yield "string length 0", raw_doc(element(2, "a", struct.pack("<i", 0)))
    yield "string length negative", raw_doc(element(2, "a", struct.pack("<i", -5) + b"abc\0"))
    yield "string beyond the document", raw_doc(element(2, "a", struct.pack("<i", 1000) + b"abc\0"))
    yield "string not ended", raw_doc(element(2, "a", struct.pack("<i", 3) + b"abc"))
    yield "bool of 2", raw_doc(element(8, "a", b"\2"))
    yield "binary length negative", raw_doc(element(5, "a", struct.pack("<i", -1) + b"\0"))
    yield "binary beyond the document", raw_doc(element(5, "a", struct.pack("<i", 1 << 30) + b"\0abc"))
    yield "old binary with bad inner length", raw_doc(element(5, "a", struct.pack("<ibi", 6, 2, 999) + b"ab"))
    yield "inner document too long", raw_doc(element(3, "a", struct.pack("<i", 500) + b"\0"))
    yield "inner document too short", raw_doc(element(3, "a", struct.pack("<i", 3) + b"\0"))
    yield "regex without end", raw_doc(element(11, "a", b"abc"))
    yield "objectid cut off", raw_doc(element(7, "a", b"abc"))
    yield "codewscope with bad lengths", raw_doc(element(15, "a", struct.pack("<ii", 9, 900) + b"a\0"))
    yield "decimal cut off", raw_doc(element(19, "a", b"abc"))
    yield "nested too deeply", nested(250)
    yield "nested beyond any stack", nested(100000)


def bad_messages():
    body = doc(PING)
    zeros = struct.pack("<I", 0)
    for length in (0, 1, 15, -1, 48000001, 0x7FFFFFFF, -0x80000000):
        yield f"length {length}", frame(OP_MSG, zeros + b"\0" + body, length)
    for opcode in (0, 1, 2001, 2002, 2005, 2006, 2007, 2011, 2014, 0x7FFFFFFF, -1):
        yield f"opcode {opcode}", frame(opcode, zeros + b"\0" + body)
    yield "empty OP_MSG", frame(OP_MSG, b"")
    yield "flags cut off", frame(OP_MSG, b"\0\0")
    yield "flags without a section", frame(OP_MSG, zeros)
    yield "kind without a document", frame(OP_MSG, zeros + b"\0")
    yield "unknown kind", frame(OP_MSG, zeros + b"\2" + body)
    yield "unknown required flag", op_msg(PING, flags=0x4)
    yield "two bodies", op_msg(PING, b"\0" + body)
    yield "sequence only", frame(OP_MSG, zeros + sequence("documents", [{}]))
    yield "bytes behind the body", op_msg(PING, b"\0\0\0")
    for size in (0, 3, 4, 0x7FFFFFFF, 0xFFFFFFFF):
        yield f"sequence of {size} bytes", op_msg(PING, b"\1" + struct.pack("<I", size) + b"documents\0")
    yield "sequence without the end of its name", op_msg(PING, b"\1" + struct.pack("<I", 8) + b"abcd")
    yield "sequence with half a document", op_msg(PING, sequence("documents", [doc({"a": 1})[:-3]]))
    yield "sequence twice", op_msg({"insert": "c", "$db": "test"}, 2 * sequence("documents", [{"a": 1}]))
    yield "sequence beside the same field", op_msg({"insert": "c", "documents": [{}], "$db": "test"},
                                                   sequence("documents", [{"a": 1}]))
    yield "100 sequences", op_msg(PING, b"".join(sequence(f"s{i}", []) for i in range(100)))
    yield "wrong checksum", op_msg(PING, b"\1\2\3\4", flags=1)
    yield "checksum without room", frame(OP_MSG, struct.pack("<I", 1) + b"\0")
    yield "exhaust and checksum missing", op_msg(PING, flags=0x10001)
    yield "OP_QUERY on a collection", op_query("test.c", {})
    yield "OP_QUERY on no namespace", op_query("", {})
    yield "OP_QUERY on $cmd", op_query(".$cmd", {"ping": 1})
    yield "OP_QUERY on a long name", op_query("a" * 100000 + ".$cmd", {"ping": 1})
    yield "OP_QUERY cut off", frame(OP_QUERY, struct.pack("<I", 0) + b"admin.$cmd\0\0\0")
    yield "OP_QUERY without the end of its name", frame(OP_QUERY, struct.pack("<I", 0) + b"admin")
    yield "OP_QUERY with a $query loop", op_query("admin.$cmd", {"$query": {"$query": {"$query": 1}}})
    for name, bad in bad_documents():
        yield "body: " + name, op_msg(bad)
        yield "sequence: " + name, op_msg({"insert": "c", "$db": "test"}, sequence("documents", [bad]))
        yield "OP_QUERY: " + name, op_query("admin.$cmd", bad)
        yield "zlib: " + name, op_compressed_zlib(op_msg(bad))
    yield from bad_compressed(op_msg(PING)[16:])


def bad_compressed(payload):
    packed = zlib.compress(payload)
    for compressor in (0, 1, 2, 3, 4, 77, -1):
        yield f"compressor {compressor} with nothing", op_compressed(OP_MSG, b"", 0, compressor)
        yield f"compressor {compressor} with noise", op_compressed(OP_MSG, b"\xff\x13" * 50, 100, compressor)
        yield f"compressor {compressor}, huge size", op_compressed(OP_MSG, packed, 0x7FFFFFFF, compressor)
        yield f"compressor {compressor}, negative size", op_compressed(OP_MSG, packed, -1, compressor)
    yield "compressed size too small", op_compressed(OP_MSG, packed, len(payload) - 1, 2)
    yield "compressed size too big", op_compressed(OP_MSG, packed, len(payload) + 1, 2)
    yield "compressed cut off", op_compressed(OP_MSG, packed[:-4], len(payload), 2)
    yield "compressed header cut off", frame(2012, b"\0\0")
    yield "compressed in compressed", op_compressed(2012, zlib.compress(packed), len(packed), 2)
    bomb = zlib.compress(bytes(47 << 20), 9)
    yield "bomb that is announced", op_compressed(OP_MSG, bomb, 47 << 20, 2)
    yield "bomb that is not announced", op_compressed(OP_MSG, bomb, 100, 2)
    yield "bomb beyond the limit", op_compressed(OP_MSG, zlib.compress(bytes(200 << 20), 1), 200 << 20, 2)


def is_refusal(reply):
    return reply == CLOSED or (reply.get("ok") == 0 and "code" in reply)


def attack_messages(client):
    for name, message in bad_messages():
        try:
            client.connect()
            try:
                client.send(message)
            except ConnectionError:
                pass
            client.sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        try:
            reply = client.receive()
        except TimeoutError:
            check(False, f"{name}: no answer")
            continue
        check(is_refusal(reply), f"{name}: {reply}")
    # More to come: no answer, and the connection goes on.
    client.connect()
    client.send(op_msg(PING, flags=2))
    check(client.run(PING).get("ok") == 1, "moreToCome: the next command")


def good_message(source):
    """A message to damage."""
    return source.choice([
        op_msg({"insert": "c", "ordered": True, "$db": "test"}, sequence("documents", [{"_id": 1, "a": "text"}])),
        op_msg({"find": "c", "filter": {"a": {"$in": [1, "x", None]}}, "sort": {"a": 1}, "$db": "test"}),
        op_msg({"aggregate": "c", "pipeline": [{"$group": {"_id": "$a"}}], "cursor": {}, "$db": "test"}),
        op_query("admin.$cmd", {"isMaster": 1, "client": {"application": {"name": "x"}}}),
        op_compressed_zlib(op_msg(PING)),
    ])


def attack_randomly(port):
    source = random.Random(SEED)
    for _ in range(RANDOM_MESSAGES):
        message = bytearray(good_message(source))
        for _ in range(source.randint(1, 6)):
            message[source.randrange(len(message))] = source.randrange(256)
        poke(port, bytes(message[: source.randint(1, len(message))]) if source.random() < 0.2 else bytes(message))


def poke(port, data, wait_s=0.0):
    """Sends bytes, ends the stream, reads what comes."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as sock:
        try:
            sock.sendall(data)
            time.sleep(wait_s)
            sock.shutdown(socket.SHUT_WR)
            while sock.recv(1 << 16):
                pass
        except TimeoutError:
            check(False, f"port {port}: a connection whose sender is done stays open")
        except OSError:
            pass  # closed, which is what it deserves


def attack_connections(port):
    """Half a message on each of many connections; a further client is served all the same."""
    half = op_msg({"ping": "x" * 200, "$db": "admin"})
    sockets = []
    for i in range(MANY_CONNECTIONS):
        sock = socket.create_connection(("127.0.0.1", port), timeout=10)
        sock.sendall(half[: i % len(half)])
        sockets.append(sock)
    # Headers that announce the biggest message cost nothing until it comes.
    for sock in sockets[:: 10]:
        sock.sendall(header(48000000, OP_MSG))
    client = Client(port)
    check(client.run(PING).get("ok") == 1, "a client beside many half messages")
    for sock in sockets:
        sock.close()
    client.close()


def noise(source):
    yield b""
    yield b"\0" * 4
    yield b"\xff" * 64
    yield b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    yield op_msg({"hello": 1, "$db": "admin"})
    yield op_msg({"insert": "c", "documents": [{"_id": 1}], "$db": "test"})
    yield op_msg({"hello": 1, "sherdProtocol": 999, "$db": "admin"})
    yield op_msg({"hello": "x", "$sherdProtocol": -1, "$db": "admin"})
    yield header(0x7FFFFFFF, OP_MSG)
    yield header(16, OP_MSG)
    yield header(-5, OP_MSG)
    for length in (0, 1, 7, 8, 1 << 31, (1 << 32) - 1, 1 << 40, (1 << 64) - 1):
        yield struct.pack(">Q", length) + b"x" * 20
        yield struct.pack("<Q", length) + b"x" * 20
    for _ in range(40):
        yield source.randbytes(source.randint(1, 400))


def attack_internal(port):
    """Ports between daemons: what does not start as another daemon would, is closed."""
    for data in noise(random.Random(SEED + port)):
        poke(port, data)


def main():
    router, *internal = (int(text) for text in sys.argv[1:])
    client = Client(router)
    attack_messages(client)
    attack_randomly(router)
    attack_connections(router)
    for port in internal:
        attack_internal(port)
    check(client.run(PING).get("ok") == 1, "a ping at the end")
    print("frames:", "FAILED" if failures else "passed")
    sys.stdout.flush()
    os._exit(1 if failures else 0)


if __name__ == "__main__":
    main()
