"""Damages a member's folder: damage.py FOLDER WHAT [ARGUMENT ...]"""
import glob
import json
import os
import random
import shutil
import struct
import sys

folder, what, *arguments = sys.argv[1:]
source = random.Random(1)


def path(name):
    return os.path.join(folder, name)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def noise(name):
    with open(name, "r+b") as file:
        file.write(source.randbytes(os.path.getsize(name)))


def segments():
    found = [name for name in glob.glob(path("raft/*")) if not os.path.basename(name).startswith(("metadata", "snapshot"))]
    assert found, os.listdir(path("raft"))
    return found


def change_json(field, value):
    with open(path("node.json")) as file:
        node = json.load(file)
    node[field] = json.loads(value)
    if node[field] is None:
        del node[field]
    with open(path("node.json"), "w") as file:
        json.dump(node, file)


def flip(name, offset):
    with open(path(name), "r+b") as file:
        file.seek(int(offset))
        byte = file.read(1)[0]
        file.seek(int(offset))
        file.write(bytes([byte ^ 4]))


def checkpoint_version():
    with open(path("checkpoint"), "rb") as file:
        data = bytearray(file.read()[:-4])
    struct.pack_into("<I", data, 8, 999)
    with open(path("checkpoint"), "wb") as file:
        file.write(data + struct.pack("<I", crc32c(data)))


def write(port):
    """Documents into the running shard, as a router would write them."""
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "badinput"))
    from wire import Client

    client = Client(int(port))
    assert client.run({"$sherdHello": 1, "version": 1, "name": "startup"})["ok"] == 1
    for i in range(50):
        reply = client.run({"insert": "c", "documents": [{"_id": i, "text": "x" * 5000}]})
        assert reply["ok"] == 1, reply


def remove(name):
    shutil.rmtree(path(name)) if os.path.isdir(path(name)) else os.remove(path(name))


def replace_raft_by_file():
    remove("raft")
    open(path("raft"), "w").close()


def cut(name):
    os.truncate(name, os.path.getsize(name) // 3)


actions = {
    "json": change_json,
    "truncate": lambda name, size: os.truncate(path(name), int(size)),
    "noise": lambda name: noise(path(name)),
    "grow": lambda name: os.truncate(path(name), 100 << 20),
    "remove": remove,
    "flip": flip,
    "checkpoint_version": checkpoint_version,
    "write": write,
    "remove_segments": lambda: [os.remove(name) for name in segments()],
    "noise_segments": lambda: [noise(name) for name in segments()],
    "cut_segments": lambda: [cut(name) for name in segments()],
    "noise_metadata": lambda: [noise(name) for name in glob.glob(path("raft/metadata*"))],
    "replace_raft_by_file": replace_raft_by_file,
}
actions[what](*arguments)
