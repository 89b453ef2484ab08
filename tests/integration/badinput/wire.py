"""A raw MongoDB wire protocol client that sends whatever it is told to, right or wrong."""
import socket
import struct
import zlib

import bson
from bson.codec_options import CodecOptions

OP_REPLY, OP_QUERY, OP_COMPRESSED, OP_MSG = 1, 2004, 2012, 2013
HEADER = struct.Struct("<iiii")
# Dates that BSON can hold and Python cannot.
BEYOND_PYTHON = ("too large to convert", "must have magnitude", "date value out of range")
CLOSED = "closed"  # what the peer did instead of answering


def header(length, opcode, request_id=1, response_to=0):
    return HEADER.pack(length, request_id, response_to, opcode)


def frame(opcode, payload, length=None):
    return header(HEADER.size + len(payload) if length is None else length, opcode) + payload


def doc(value):
    """The bytes of a document; bytes are taken as they are."""
    return value if isinstance(value, bytes) else bson.encode(value)


def sequence(name, docs):
    data = name.encode() + b"\0" + b"".join(doc(one) for one in docs)
    return b"\x01" + struct.pack("<I", len(data) + 4) + data


def op_msg(body, sequences=b"", flags=0):
    return frame(OP_MSG, struct.pack("<I", flags) + b"\0" + doc(body) + sequences)


def op_query(ns, body, flags=0):
    return frame(OP_QUERY, struct.pack("<I", flags) + ns.encode() + b"\0" + struct.pack("<ii", 0, -1) + doc(body))


def op_compressed(original, payload, uncompressed_size, compressor):
    return frame(OP_COMPRESSED, struct.pack("<iib", original, uncompressed_size, compressor) + payload)


def op_compressed_zlib(message):
    payload = message[HEADER.size :]
    return op_compressed(OP_MSG, zlib.compress(payload), len(payload), 2)


def element(code, key, data):
    """One element with raw bytes for its value."""
    return bytes([code]) + (key if isinstance(key, bytes) else key.encode()) + b"\0" + data


def raw_doc(*elements):
    body = b"".join(elements)
    return struct.pack("<i", len(body) + 5) + body + b"\0"


class Client:
    def __init__(self, port, timeout=20):
        self.port = port
        self.timeout = timeout
        self.sock = None
        self.connect()

    def connect(self):
        self.close()
        self.sock = socket.create_connection(("127.0.0.1", self.port), timeout=self.timeout)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self):
        if self.sock is not None:
            self.sock.close()
            self.sock = None

    def send(self, data):
        self.sock.sendall(data)

    def _read(self, count):
        parts = []
        while count > 0:
            part = self.sock.recv(min(count, 1 << 20))
            if not part:
                return None
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def receive(self):
        """The reply's body, or CLOSED. A peer that does neither within the timeout raises."""
        try:
            head = self._read(HEADER.size)
            if head is None:
                return CLOSED
            length, _, _, opcode = HEADER.unpack(head)
            payload = self._read(length - HEADER.size)
        except ConnectionError:
            return CLOSED
        if payload is None:
            return CLOSED
        if opcode == OP_COMPRESSED:
            opcode, _, compressor = struct.unpack_from("<iib", payload)
            assert compressor == 2, f"a reply with compressor {compressor}"
            payload = zlib.decompress(payload[9:])
        body = payload[20:] if opcode == OP_REPLY else payload[5:]
        try:
            return bson.decode(body, CodecOptions(unicode_decode_error_handler="replace"))
        except bson.errors.InvalidBSON as error:
            if any(text in str(error) for text in BEYOND_PYTHON):
                return {"ok": 1}
            raise

    def exchange(self, data):
        """Sends a message on a connection of its own and returns the answer."""
        self.connect()
        try:
            self.send(data)
        except ConnectionError:
            return CLOSED
        return self.receive()

    def run(self, body, db="test", sequences=b"", flags=0):
        """A command: a dict (gets $db unless it has one) or raw bytes. Connects again when the peer closed before."""
        if isinstance(body, dict) and "$db" not in body:
            body = {**body, "$db": db}
        data = op_msg(body, sequences, flags)
        try:
            self.send(data)
        except ConnectionError:
            return CLOSED
        reply = self.receive()
        if reply == CLOSED:
            self.connect()
        return reply

