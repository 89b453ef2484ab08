#!/usr/bin/python3
"""Cursors over two shards: batches, limits, order, getMore, killCursors, and options that go along."""
import threading
import time

from check import check, client, clients, code, db, fill, finish, name

client.drop_database(name)
COUNT = 500
fill("spread", [{"_id": i, "n": (i * 7919) % COUNT, "g": i % 4, "pad": "x" * 100} for i in range(COUNT)], True)


def read(command, batch=None):
    """All documents of a command's cursor, and the sizes of its batches."""
    cursor = db.command(command)["cursor"]
    documents, sizes = cursor["firstBatch"], [len(cursor["firstBatch"])]
    while cursor["id"]:
        more = {"getMore": cursor["id"], "collection": "spread"}
        if batch:
            more["batchSize"] = batch
        cursor = db.command(more)["cursor"]
        documents += cursor["nextBatch"]
        sizes.append(len(cursor["nextBatch"]))
    return documents, sizes


got, sizes = read({"find": "spread", "sort": {"n": 1}, "batchSize": 40}, 40)
check("sorted", [d["n"] for d in got], sorted(d["n"] for d in got))
check("batches", sizes[:12], [40] * 12)
got, sizes = read({"find": "spread", "sort": {"n": -1}, "skip": 10, "limit": 25, "batchSize": 10}, 10)
check("skip and limit", [d["n"] for d in got], list(range(489, 464, -1)))
check("batches of a limit", sizes, [10, 10, 5])
got, sizes = read({"find": "spread", "batchSize": 0})
check("batchSize 0", (len(got), sizes[0]), (COUNT, 0))
got, sizes = read({"find": "spread", "limit": 7, "singleBatch": True})
check("singleBatch", sizes, [7])
got, sizes = read({"aggregate": "spread", "pipeline": [{"$sort": {"n": 1}}, {"$limit": 30}], "cursor": {"batchSize": 12}}, 12)
check("aggregate's limit", ([d["n"] for d in got], sizes[:2]), (list(range(30)), [12, 12]))
got, sizes = read({"aggregate": "spread", "pipeline": [{"$group": {"_id": "$g", "n": {"$sum": 1}}}], "cursor": {"batchSize": 0}})
check("aggregate, batchSize 0", (sorted((d["_id"], d["n"]) for d in got), sizes[0]), ([(g, COUNT // 4) for g in range(4)], 0))

cursor_id = db.command({"find": "spread", "batchSize": 2})["cursor"]["id"]
check("another router doesn't know it",
      code(lambda: clients[1][name].command({"getMore": cursor_id, "collection": "spread"})), 43)
check("another collection", code(lambda: db.command({"getMore": cursor_id, "collection": "other"})), 13)
check("killed", db.command("killCursors", "spread", cursors=[cursor_id])["cursorsKilled"], [cursor_id])
check("gone", code(lambda: db.command({"getMore": cursor_id, "collection": "spread"})), 43)
check("killed twice", db.command("killCursors", "spread", cursors=[cursor_id])["cursorsNotFound"], [cursor_id])

# A getMore that waits ends with its cursor.
db.create_collection("tail", capped=True, size=100000)
db.tail.insert_one({"_id": 1})
cursor_id = db.command({"find": "tail", "tailable": True, "awaitData": True})["cursor"]["id"]
ended = []
waiting = threading.Thread(target=lambda: ended.append(
    code(lambda: db.command({"getMore": cursor_id, "collection": "tail", "maxTimeMS": 60000}))))
waiting.start()
time.sleep(0.5)
db.command("killCursors", "tail", cursors=[cursor_id])
waiting.join(5)
check("killed while it waits", ended, [237])

check("let", len(db.command({"find": "spread", "filter": {"$expr": {"$lt": ["$n", "$$m"]}}, "let": {"m": 9}})
                 ["cursor"]["firstBatch"]), 9)
check("hint", code(lambda: list(db.spread.find({}).hint([("nope", 1)]))), 2)
check("comment", code(lambda: db.command({"find": "spread", "comment": {"a": 1}})), 0)
check("maxTimeMS", code(lambda: db.command(
    {"find": "spread", "filter": {"$expr": {"$gt": ["$n", -1]}}, "maxTimeMS": 20000})), 0)
check("readConcern", code(lambda: db.command({"find": "spread", "readConcern": {"level": "majority"}})), 0)
check("count", db.command({"count": "spread", "query": {"g": 1}, "skip": 5, "limit": 1000})["n"], COUNT // 4 - 5)
check("count, limit", db.command({"count": "spread", "limit": 3})["n"], 3)
check("distinct", sorted(db.spread.distinct("g")), [0, 1, 2, 3])
fill("wide", [{"_id": i, "v": str(i) + "x" * 1000000} for i in range(20)], True)
check("distinct of too much", code(lambda: db.wide.distinct("v")), 17217)
check("$collStats", sorted(len(d["storageStats"]) > 0 for d in db.spread.aggregate([{"$collStats": {"storageStats": {}}}])),
      [True, True])
check("$indexStats", sorted({d["name"] for d in db.spread.aggregate([{"$indexStats": {}}])}), ["_id_", "_id_hashed"])
check("$currentOp", code(lambda: list(client.admin.aggregate([{"$currentOp": {}}]))), 0)
client.drop_database(name)
finish()
