#!/usr/bin/python3
"""One of two shards is away: what needs it says so in time, what doesn't goes on, nothing is reported done that isn't.

usage: away.py URI URI prepare | away | back
"""
import sys
import time

from check import check, client, code, db, finish, name, shard

AWAY = {6, 50, 89, 112, 133}


def prepare():
    client.drop_database(name)
    shard("spread", {"_id": "hashed"})
    db.spread.insert_many([{"_id": i, "s": 0} for i in range(100)])


def in_time(what, call):
    begun = time.monotonic()
    got = code(call)
    check(what, (got in AWAY, time.monotonic() - begun < 30), (True, True))
    if got not in AWAY:
        print("  got", got)


def away():
    in_time("find", lambda: db.command("find", "spread", maxTimeMS=2000))
    in_time("count", lambda: db.command("count", "spread", query={"s": 0}, maxTimeMS=2000))
    in_time("aggregate", lambda: db.command({"aggregate": "spread", "pipeline": [{"$group": {"_id": None}}], "cursor": {},
                                             "maxTimeMS": 2000}))
    in_time("$lookup", lambda: db.command({"aggregate": 1, "pipeline": [
        {"$documents": [{"a": 1}]}, {"$lookup": {"from": "spread", "localField": "b", "foreignField": "s", "as": "j"}}],
        "cursor": {}, "maxTimeMS": 2000}))
    in_time("updateOne without the key", lambda: db.command(
        {"update": "spread", "updates": [{"q": {"s": 0}, "u": {"$set": {"s": 1}}}], "maxTimeMS": 2000}))
    in_time("deleteOne without the key", lambda: db.command(
        {"delete": "spread", "deletes": [{"q": {"s": 0}, "limit": 1}], "maxTimeMS": 2000}))
    in_time("findAndModify without the key", lambda: db.command(
        {"findAndModify": "spread", "query": {"s": 0}, "update": {"$set": {"s": 1}}, "maxTimeMS": 2000}))
    in_time("upsert without the key", lambda: db.command(
        {"update": "spread", "updates": [{"q": {"s": 7}, "u": {"$set": {"t": 1}}, "upsert": True}], "maxTimeMS": 2000}))
    codes = [code(lambda n=i: db.command("find", "spread", filter={"_id": n}, maxTimeMS=1000)) for i in range(8)]
    check("documents of the other shard are there", 0 in codes, True)
    check("and some are not", any(c in AWAY for c in codes), True)


def back():
    deadline = time.monotonic() + 30
    while code(lambda: db.spread.count_documents({})) != 0 and time.monotonic() < deadline:
        time.sleep(0.2)
    check("nothing was written", (db.spread.count_documents({}), db.spread.count_documents({"s": 0})), (100, 100))
    check("and writes go on", db.spread.update_one({"s": 0}, {"$set": {"s": 1}}).modified_count, 1)
    client.drop_database(name)


{"prepare": prepare, "away": away, "back": back}[sys.argv[3]]()
finish()
