"""What a daemon must refuse from another daemon of a wrong version or with a bug: every internal command with every field
replaced by values that it does not expect, after a right hello; and damaged frames behind it."""
import random
import struct
import sys

from bson import Int64, MaxKey, MinKey, ObjectId
from bson.binary import Binary

import commands
from frames import poke
from wire import CLOSED, Client, header, op_msg

UUID = Binary(b"\5" * 16, 4)
HELLO = {"$sherdHello": 1, "version": 1, "name": "badinput", "$db": "admin"}
VERSION = {"uuid": UUID, "epoch": ObjectId(b"\1" * 12), "major": Int64(1), "minor": Int64(0),
           "ranges": [[Binary(b"\x08"), Binary(b"\xf8")]]}

SHARD = [
    {"_shardsvrSetIdentity": 1, "shardName": "other", "clusterId": ObjectId(b"\2" * 12), "configdb": "config/127.0.0.1:1"},
    {"_shardsvrPrepare": "test.prepared", "uuid": UUID, "op": UUID},
    {"_shardsvrCreateCollection": "test.made", "uuid": UUID, "options": {"x": 1},
     "indexes": [{"v": 2, "key": {"a": 1}, "name": "a_1"}]},
    {"_shardsvrRefresh": "test.c"}, {"_shardsvrDropCollection": "test.none", "uuid": UUID},
    {"_shardsvrRangeSizes": "test.s"},
    {"_shardsvrSplitPoints": "test.s", "min": Binary(b"\x08"), "max": Binary(b"\xf8"), "pieces": 2},
    {"find": "s", "filter": {}, "sort": {"k": 1}, "$sherdSortKeys": True, "$sherdVersion": VERSION,
     "$sherdDeadlineMs": Int64(500), "$db": "test"},
    {"insert": "s", "documents": [{"_id": 5000, "k": 1}], "$sherdVersion": VERSION, "$db": "test"},
    {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"a": 1}}}], "$sherdVersion": {"db": UUID}, "$db": "test"},
    {"_sherdStatus": 1}, {"_sherdHash": 1}, {"_sherdCheckpoint": 1}, {"_sherdFaults": "x:1:kill"},
]
CONFIG = [
    {"_configsvrGetRouting": "test.s", "epoch": ObjectId(b"\1" * 12), "major": Int64(1), "minor": Int64(0)},
    {"_configsvrCommitAddShard": "shardx", "name": "shardx", "host": "shardx/127.0.0.1:1"},
    {"_configsvrCreateDatabase": "made", "primaryShard": "shard0"}, {"_configsvrDropDatabase": "madeup"},
    {"_configsvrDropCollection": "test.none", "uuid": UUID},
    {"_configsvrShardCollectionBegin": "test.begun", "op": UUID, "uuid": UUID, "key": {"a": 1}, "unique": False,
     "numInitialChunks": 2, "empty": True},
    {"_configsvrShardCollectionCommit": 1, "op": UUID}, {"_configsvrShardCollectionAbort": 1, "op": UUID},
    {"_configsvrShardCollectionStatus": 1, "op": UUID, "abort": True},
    {"_configsvrSplit": "test.s", "epoch": ObjectId(b"\1" * 12), "min": {"k": MinKey()}, "max": {"k": MaxKey()},
     "points": [{"k": 3}]},
    {"_configsvrPing": {"name": "x", "port": 1}, "router": {"_id": "x"}},
    {"update": "settings", "updates": [{"q": {"_id": "balancer"}, "u": {"$set": {"stopped": True}}, "upsert": True}],
     "$db": "config"},
    {"find": "chunks", "filter": {}, "$db": "config"},
]


class Peer(Client):
    """A client that says what daemons say first."""

    def connect(self):
        super().connect()
        self.send(op_msg(HELLO))
        answer = self.receive()
        assert answer != CLOSED and answer["ok"] == 1, answer


def attack_commands(port, templates):
    peer = Peer(port, timeout=commands.SLOW_S)
    for command in templates:
        for path in commands.paths(command):
            for name, value in commands.HOSTILE.items():
                commands.send(peer, commands.describe(command, path, name), commands.replaced(command, path, value), "admin")
            if path[0] != next(iter(command)):
                what = commands.describe(command, path, "missing")
                commands.send(peer, what, commands.replaced(command, path, None, remove=True), "admin")
        commands.send(peer, commands.describe(command, (), "good"), command, "admin")


def attack_frames(port):
    source = random.Random(port)
    hello = op_msg(HELLO)
    good = op_msg({"find": "c", "filter": {"a": 1}, "$db": "test"})
    for _ in range(150):
        message = bytearray(good)
        for _ in range(source.randint(1, 5)):
            message[source.randrange(len(message))] = source.randrange(256)
        poke(port, hello + bytes(message))
    for length in (0, 15, 16, 48000001, 1 << 31, 1 << 40, (1 << 64) - 1):
        poke(port, hello + struct.pack(">Q", length) + good)
    poke(port, hello + hello)
    poke(port, hello + good * 200 + header(48000000, 2013))


def raft_hello(set_name=b"shard0", address=b"127.0.0.1:1:2", version=1, purpose=1, sender=2, wanted=1, lengths=None):
    lengths = lengths or (len(set_name), len(address))
    return struct.pack("<IBBHQQH6x", 0x52485331, version, purpose, lengths[0], sender, wanted, lengths[1]) + set_name + address


def attack_raft(port):
    """The handshake between members with each part wrong, and noise on a connection for questions. What follows a right
    handshake for Raft itself is the library's to read, and it trusts members."""
    source = random.Random(port)
    good = raft_hello()
    for data in (good[:31], good[:40], good, good + bytes(5), raft_hello(version=9), raft_hello(purpose=0), raft_hello(purpose=200),
                 raft_hello(set_name=b""), raft_hello(set_name=b"x" * 60000), raft_hello(address=b""), raft_hello(address=b"\0\xff"),
                 raft_hello(address=b"a" * 60000), raft_hello(sender=0), raft_hello(sender=(1 << 64) - 1), raft_hello(wanted=99),
                 raft_hello(lengths=(65535, 65535)), raft_hello(lengths=(0, 0)), raft_hello(lengths=(6, 65535))):
        poke(port, data)
    for _ in range(60):
        damaged = bytearray(good)
        for _ in range(source.randint(1, 4)):
            damaged[source.randrange(len(damaged))] = source.randrange(256)
        poke(port, bytes(damaged))
    for size in (0, 1, 15, 16, 17, 1000, 1 << 20):
        poke(port, raft_hello(purpose=2) + source.randbytes(size))


def main():
    config, shard = int(sys.argv[1]), int(sys.argv[2])
    attack_frames(shard)
    attack_frames(config)
    attack_raft(shard + 1000)
    attack_commands(config, CONFIG)
    attack_commands(shard, SHARD)
    Peer(shard).close()
    Peer(config).close()
    print("internal:", "FAILED" if commands.failures else "passed")
    sys.exit(1 if commands.failures else 0)


main()
