"""Kinds of collections through a router: options, caps, views, validators, collMod, renaming, expiry.

usage: LISTED=FILE kinds.py PORT (check | restarted)
check writes to FILE what is listed at its end; restarted compares it, after the daemons were stopped and started.
"""
import datetime
import os
import sys
import time

from bson import SON
from pymongo import MongoClient
from pymongo.errors import BulkWriteError, OperationFailure

failures = 0
NOW = datetime.datetime.utcnow().replace(microsecond=0)
OLD = NOW - datetime.timedelta(seconds=100)
COMING = NOW + datetime.timedelta(days=1)


def fail(what, got, expected):
    global failures
    failures += 1
    print(f"FAILED {what}: got {got}, expected {expected}")


def same(what, got, expected):
    if got != expected:
        fail(what, got, expected)


class Database:
    """Runs commands and compares codes."""

    def __init__(self, client, name):
        self.client = client
        self.db = client[name]

    def run(self, code, *command, admin=False):
        where = self.client.admin if admin else self.db
        try:
            reply = where.command(SON(command))
        except OperationFailure as error:
            reply = error.details
        got = reply.get("code") if not reply["ok"] else None
        if got != code:
            fail(command, (got, reply.get("errmsg")), code)
        return reply

    def listed(self, name):
        return next(iter(self.db.list_collections(filter={"name": name})), None)

    def options(self, name):
        return self.listed(name)["options"]

    def error(self, write):
        try:
            write()
        except (OperationFailure, BulkWriteError) as error:
            return error.details
        return {}


def check_options(d):
    d.run(40415, ("create", "a"), ("nonsense", 1))
    d.run(72, ("create", "a"), ("capped", True))
    d.run(51024, ("create", "a"), ("capped", True), ("size", -1))
    d.run(14, ("create", "a"), ("validator", 1))
    d.run(73, ("create", "system.a"))
    options = [("changeStreamPreAndPostImages", {"enabled": True}), ("storageEngine", {"wiredTiger": {}}),
               ("validator", {"x": {"$gte": 1}}), ("validationLevel", "moderate"), ("validationAction", "warn")]
    d.run(None, ("create", "a"), *reversed(options), ("comment", "c"))
    d.run(None, ("create", "a"), *options)
    d.run(48, ("create", "a"))
    same("stored options", list(d.options("a").items()), options)
    d.run(None, ("create", "coll"), ("collation", {"locale": "de", "strength": 1}))
    same("collation in full", d.options("coll")["collation"]["caseLevel"], False)


def check_capped(d):
    d.run(None, ("create", "cap"), ("capped", True), ("size", 1000), ("max", 3))
    same("capped options", d.options("cap"), {"capped": True, "size": 1024, "max": 3})
    for i in range(10):
        d.db.cap.insert_one({"_id": i})
    same("capped order", [x["_id"] for x in d.db.cap.find()], [7, 8, 9])
    same("capped backwards", [x["_id"] for x in d.db.cap.find().sort("$natural", -1)], [9, 8, 7])
    same("too large", d.error(lambda: d.db.cap.insert_one({"s": "x" * 2000})).get("code"), 2)
    d.run(None, ("collMod", "cap"), ("cappedMax", 2), ("cappedSize", 4096))
    same("lowered", [x["_id"] for x in d.db.cap.find()], [8, 9])
    d.run(72, ("shardCollection", "collections.cap"), ("key", {"_id": 1}), admin=True)
    d.db.conv.insert_many([{"_id": i, "p": "x" * 100} for i in range(100)])
    d.db.conv.create_index("p")
    d.run(None, ("convertToCapped", "conv"), ("size", 1024))
    same("converted", [x["_id"] for x in d.db.conv.find()], list(range(92, 100)))
    d.run(None, ("cloneCollectionAsCapped", "conv"), ("toCollection", "conv2"), ("size", 512))
    same("cloned", [x["_id"] for x in d.db.conv2.find()], [96, 97, 98, 99])
    d.run(26, ("convertToCapped", "nothing"), ("size", 1024))


def check_views(d):
    d.db.base.insert_many([{"_id": i, "x": i, "g": i % 3} for i in range(10)])
    d.run(None, ("create", "v"), ("viewOn", "base"), ("pipeline", [{"$match": {"x": {"$gte": 5}}}]))
    d.run(None, ("create", "v2"), ("viewOn", "v"), ("pipeline", [{"$project": {"x": 1}}]))
    same("view", [x["x"] for x in d.db.v2.find().sort("x", 1)], [5, 6, 7, 8, 9])
    same("count", d.db.v2.count_documents({"x": {"$gt": 6}}), 3)
    same("estimated", d.db.v.estimated_document_count(), 5)
    same("distinct", sorted(d.db.v.distinct("g")), [0, 1, 2])
    same("listed", d.listed("v")["info"], {"readOnly": True})
    d.run(5, ("create", "base2"), ("viewOn", "base2"))
    d.run(167, ("create", "w"), ("viewOn", "base"), ("pipeline", [{"$out": "x"}]))
    d.run(72, ("create", "w"), ("viewOn", "base"), ("capped", True), ("size", 3))
    for command in [[("insert", "v"), ("documents", [{"a": 1}])],
                    [("update", "v"), ("updates", [{"q": {}, "u": {"$set": {"a": 1}}}])],
                    [("delete", "v"), ("deletes", [{"q": {}, "limit": 0}])],
                    [("findAndModify", "v"), ("query", {}), ("remove", True)],
                    [("createIndexes", "v"), ("indexes", [{"key": {"a": 1}, "name": "a"}])],
                    [("dropIndexes", "v"), ("index", "*")], [("listIndexes", "v")], [("collStats", "v")]]:
        d.run(166, *command)
    d.run(166, ("shardCollection", "collections.v"), ("key", {"_id": 1}), admin=True)
    d.run(None, ("collMod", "v"), ("viewOn", "base"), ("pipeline", [{"$match": {"x": {"$lt": 3}}}]))
    same("changed", d.db.v2.count_documents({}), 3)
    big = [{"$addFields": {f"f{i}": "x" * 100}} for i in range(100)]
    d.run(None, ("create", "long"), ("viewOn", "base"), ("pipeline", big))
    same("long definition", len(d.db.long.find_one({"_id": 1})), 103)
    same("system.views", d.db["system.views"].find_one({"_id": "collections.v"})["viewOn"], "base")
    d.run(73, ("insert", "system.views"), ("documents", [{"_id": "collections.x"}]))


def check_validators(d):
    v = d.db.val
    d.run(None, ("create", "val"), ("validator", {"$jsonSchema": {"required": ["x"], "properties": {
        "x": {"bsonType": "int", "minimum": 1, "description": "x is positive"}}}}))
    error = d.error(lambda: v.insert_one({"_id": 1, "x": 0}))
    same("121", (error.get("code"), error["errInfo"]["failingDocumentId"]), (121, 1))
    same("schema", error["errInfo"]["details"]["operatorName"], "$jsonSchema")
    same("rules", error["errInfo"]["details"]["schemaRulesNotSatisfied"][0]["propertiesNotSatisfied"][0]["description"],
         "x is positive")
    v.insert_one({"_id": 1, "x": 5})
    for write in [lambda: v.update_one({"_id": 1}, {"$set": {"x": 0}}), lambda: v.update_many({}, {"$set": {"x": 0}}),
                  lambda: v.update_one({"_id": 2}, {"$set": {"y": 0}}, upsert=True),
                  lambda: v.find_one_and_update({"_id": 1}, {"$set": {"x": -1}})]:
        same("held", d.error(write).get("code"), 121)
    v.insert_one({"_id": 9, "x": -9}, bypass_document_validation=True)
    same("strict", d.error(lambda: v.update_one({"_id": 9}, {"$set": {"z": 1}})).get("code"), 121)
    d.run(None, ("collMod", "val"), ("validationLevel", "moderate"))
    same("moderate", d.error(lambda: v.update_one({"_id": 9}, {"$set": {"z": 1}})), {})
    for validator in [{"$expr": {"$gt": ["$x", {"$add": ["$y", 1]}]}}, {"n": {"$regex": "^a"}}]:
        d.run(None, ("collMod", "val"), ("validator", validator), ("validationLevel", "strict"))
        many = [{"x": 9, "y": 1, "n": "ab"}, {"x": 1, "y": 9, "n": "xb"}, {"x": 8, "y": 1, "n": "ac"}]
        error = d.error(lambda: v.insert_many(many, ordered=False))
        same("only the second", [x["index"] for x in error["writeErrors"]], [1])
    d.run(None, ("collMod", "val"), ("validationAction", "warn"))
    same("warned", d.error(lambda: v.insert_one({"n": "z"})), {})


def check_kinds(d):
    d.run(None, ("create", "clu"), ("clusteredIndex", {"key": {"_id": 1}, "unique": True, "name": "ci"}))
    d.db.clu.insert_many([{"_id": i} for i in [5, 1, 3]])
    same("clustered order", [x["_id"] for x in d.db.clu.find()], [1, 3, 5])
    same("clustered index", [i["name"] for i in d.db.clu.list_indexes()], ["ci"])
    d.run(None, ("create", "ts"), ("timeseries", {"timeField": "t", "metaField": "m"}))
    same("time series", (d.listed("ts")["type"], d.options("ts")["timeseries"]["granularity"]),
         ("timeseries", "seconds"))
    same("no date", d.error(lambda: d.db.ts.insert_one({"x": 1})).get("code"), 2)
    d.db.ts.insert_many([{"_id": 1, "t": NOW, "m": 1}, {"_id": 1, "t": NOW, "m": 2}])
    same("twice", d.db.ts.count_documents({"_id": 1}), 2)
    same("restricted", d.error(lambda: d.db.ts.update_one({"m": 1}, {"$set": {"m": 3}})).get("code"), 72)
    d.db.ts.update_many({"m": 1}, {"$set": {"m": 3}})
    same("meta", sorted(x["m"] for x in d.db.ts.find()), [2, 3])
    same("deleted", d.db.ts.delete_many({"_id": 1}).deleted_count, 2)


def check_rename(d):
    d.db.r1.insert_one({"_id": 1})
    d.db.r1.create_index("a")
    uuid = d.listed("r1")["info"]["uuid"]
    d.run(26, ("renameCollection", "collections.nothing"), ("to", "collections.r2"), admin=True)
    d.run(13, ("renameCollection", "collections.r1"), ("to", "collections.r2"))
    d.run(None, ("renameCollection", "collections.r1"), ("to", "collections.r2"), admin=True)
    same("uuid", d.listed("r2")["info"]["uuid"], uuid)
    d.db.r3.insert_one({"_id": 7})
    d.run(48, ("renameCollection", "collections.r2"), ("to", "collections.r3"), admin=True)
    d.run(None, ("renameCollection", "collections.r2"), ("to", "collections.r3"), ("dropTarget", True), admin=True)
    same("renamed", list(d.db.r3.find()), [{"_id": 1}])
    d.run(None, ("renameCollection", "collections.r3"), ("to", "collections2.r"), admin=True)
    same("in another database", list(d.client.collections2.r.find()), [{"_id": 1}])


def check_sharded(d):
    d.run(None, ("shardCollection", "collections.sh"), ("key", {"_id": "hashed"}), admin=True)
    d.run(20, ("renameCollection", "collections.sh"), ("to", "collections.sh2"), admin=True)
    d.run(20, ("convertToCapped", "sh"), ("size", 2000))
    d.run(None, ("collMod", "sh"), ("validator", {"x": {"$type": "int"}}))
    many = [{"_id": i, "x": i if i % 10 else "s"} for i in range(50)]
    error = d.error(lambda: d.db.sh.insert_many(many, ordered=False))
    same("on every shard", len(error["writeErrors"]), 5)
    d.run(None, ("create", "shv"), ("viewOn", "sh"), ("pipeline", [{"$match": {"x": {"$lt": 5}}}]))
    same("view of a sharded one", d.db.shv.count_documents({}), 4)
    d.run(None, ("create", "cs"), ("clusteredIndex", {"key": {"_id": 1}, "unique": True}))
    d.run(None, ("shardCollection", "collections.cs"), ("key", {"_id": "hashed"}), admin=True)
    d.db.cs.insert_many([{"_id": i} for i in range(20)])
    same("clustered and sharded", d.db.cs.count_documents({}), 20)


def check_expiry(d):
    d.run(72, ("setParameter", 1), ("nonsense", 1), admin=True)
    d.run(2, ("setParameter", 1), ("ttlMonitorSleepSecs", 0), admin=True)
    d.run(None, ("setParameter", 1), ("ttlMonitorSleepSecs", 1), admin=True)
    d.run(None, ("shardCollection", "collections.tsh"), ("key", {"_id": "hashed"}), admin=True)
    d.db.tsh.create_index("d", expireAfterSeconds=10)
    d.db.tsh.insert_many([{"_id": i, "d": OLD if i % 2 else COMING} for i in range(2000)])
    d.db.ttl.create_index("d", expireAfterSeconds=1000)
    reply = d.run(None, ("collMod", "ttl"), ("index", {"keyPattern": {"d": 1}, "expireAfterSeconds": 1}))
    same("collMod", (reply["expireAfterSeconds_old"], reply["expireAfterSeconds_new"]), (1000, 1))
    d.db.ttl.insert_many([{"_id": 1, "d": OLD}, {"_id": 2, "d": [COMING, OLD]}, {"_id": 3, "d": "x"}, {"_id": 4},
                          {"_id": 5, "d": COMING}, {"_id": 6, "d": float("nan")}])
    d.db.part.create_index("d", expireAfterSeconds=1, partialFilterExpression={"p": True}, name="p")
    d.db.part.insert_many([{"_id": 1, "d": OLD, "p": True}, {"_id": 2, "d": OLD, "p": False}])
    d.run(None, ("create", "clu2"), ("clusteredIndex", {"key": {"_id": 1}, "unique": True}), ("expireAfterSeconds", 10))
    d.db.clu2.insert_many([{"_id": OLD}, {"_id": COMING}, {"_id": 3}])
    d.run(None, ("create", "ts2"), ("timeseries", {"timeField": "t"}), ("expireAfterSeconds", 10))
    d.db.ts2.insert_many([{"t": OLD}, {"t": COMING}])
    limit = time.time() + 20
    while time.time() < limit and (d.db.tsh.count_documents({}) > 1000 or d.db.ts2.count_documents({}) > 1):
        time.sleep(0.2)
    time.sleep(1.5)
    same("sharded", d.db.tsh.count_documents({}), 1000)
    same("values", sorted(x["_id"] for x in d.db.ttl.find()), [3, 4, 5, 6])
    same("partial", [x["_id"] for x in d.db.part.find()], [2])
    same("clustered", d.db.clu2.count_documents({}), 2)
    same("time series", d.db.ts2.count_documents({}), 1)
    metrics = d.client.admin.command("serverStatus")["metrics"]["ttl"]
    same("metrics", metrics["deletedDocuments"] >= 1005 and metrics["passes"] > 0, True)
    d.run(None, ("setParameter", 1), ("ttlMonitorEnabled", False), admin=True)
    d.db.ttl.insert_one({"_id": 70, "d": OLD})
    time.sleep(2.5)
    same("disabled", d.db.ttl.count_documents({"_id": 70}), 1)
    d.run(None, ("setParameter", 1), ("ttlMonitorEnabled", True), admin=True)
    time.sleep(2.5)
    same("enabled", d.db.ttl.count_documents({"_id": 70}), 0)
    d.run(None, ("setParameter", 1), ("ttlMonitorSleepSecs", 77), admin=True)


def listing(client):
    entries = sorted(client.collections.list_collections(), key=lambda entry: entry["name"])
    parameter = client.admin.command("getParameter", 1, ttlMonitorSleepSecs=1)["ttlMonitorSleepSecs"]
    return repr([(e["name"], e["type"], e["options"], e["info"]) for e in entries]) + repr(parameter)


def main():
    client = MongoClient(f"mongodb://127.0.0.1:{sys.argv[1]}")
    listed = os.environ["LISTED"]
    if sys.argv[2] == "restarted":
        with open(listed, encoding="utf-8") as file:
            same("after a restart", listing(client), file.read())
        return
    client.drop_database("collections")
    client.drop_database("collections2")
    for check in [check_options, check_capped, check_views, check_validators, check_kinds, check_rename, check_sharded,
                  check_expiry]:
        check(Database(client, "collections"))
    with open(listed, "w", encoding="utf-8") as file:
        file.write(listing(client))


main()
print("collections:", f"{failures} FAILED" if failures else "passed")
sys.exit(1 if failures else 0)
