#!/usr/bin/python3
"""pymongo: collation, explain, index kinds, validation, views, capped collections, find-and-modify, bulk writes."""
import datetime
import sys

from bson import Decimal128, Int64, Regex, SON
from pymongo import MongoClient, ReplaceOne, UpdateMany, UpdateOne
from pymongo.collation import Collation
from pymongo.cursor import CursorType
from pymongo.errors import ExecutionTimeout, OperationFailure, WriteError

failed = 0


def check(name, got, want):
    global failed
    if got != want:
        failed += 1
        print(f"FAILED {name}: got {got!r}, want {want!r}")


def check_fails(name, code, action):
    try:
        check(name, action(), f"error {code}")
    except OperationFailure as error:
        check(name, error.code, code)


def ids(cursor):
    return [doc["_id"] for doc in cursor]


def language(coll):
    day = datetime.datetime(2024, 2, 29, 13, 5)
    coll.insert_many([{"_id": i, "n": i % 5, "s": "aBcAb"[i % 5], "at": day + datetime.timedelta(hours=i), "list": list(range(i % 4)),
                       "price": Decimal128(f"{i}.50"), "long": Int64(i)} for i in range(40)], ordered=False)
    check("collation", coll.count_documents({"s": "b"}, collation=Collation("en", strength=2)), 16)
    check("regex", coll.count_documents({"s": Regex("^A", "i")}), 16)
    check("decimal", ids(coll.find({"price": {"$gt": 38, "$lt": Decimal128("39.6")}}).sort("_id", 1)), [38, 39])
    wanted = [i for i in range(40) if i % 4 == 3 and i % 5 % 2 == 0 and i & 2]
    check("several operators", ids(coll.find({"list": {"$all": [2]}, "n": {"$mod": [2, 0]}, "long": {"$bitsAllSet": 2},
                                              "at": {"$type": "date"}}).sort("_id", 1)), wanted)
    dates = list(coll.aggregate([{"$match": {"_id": 20}}, {"$project": {
        "_id": 0, "text": {"$dateToString": {"date": "$at", "format": "%Y-%m-%d %H", "timezone": "Europe/Berlin"}},
        "next": {"$dayOfMonth": {"$dateAdd": {"startDate": "$at", "unit": "month", "amount": 1}}},
        "found": {"$regexFind": {"input": "$s", "regex": "[a-z]"}}}}]))
    check("dates", dates, [{"text": "2024-03-01 10", "next": 1, "found": {"match": "a", "idx": 0, "captures": []}}])
    coll.create_index([("n", 1), ("at", -1)])
    coll.create_index("s", collation=Collation("en", strength=2), name="s_ci")
    coll.create_index("at", expireAfterSeconds=10 ** 8, name="ttl")
    coll.create_index("price", partialFilterExpression={"price": {"$gt": 10}})
    plan = coll.find({"n": 2}).sort("at", -1).explain()
    check("explain", "n_1_at_-1" in str(plan["queryPlanner"]), True)
    check("hint", ids(coll.find({"n": 2}).sort("at", -1).hint("n_1_at_-1").limit(2)), [37, 32])
    check_fails("bad hint", 2, lambda: list(coll.find({}).hint("nothing")))
    check("covered", list(coll.find({"n": 2}, {"_id": 0, "n": 1}).limit(1)), [{"n": 2}])
    plan = coll.find({"s": "B"}).collation(Collation("en", strength=2)).explain()
    check("explain with a collation", "s_ci" in str(plan["queryPlanner"]), True)
    check("find_one_and_update", coll.find_one_and_update({"n": 2}, [{"$set": {"n": {"$add": ["$n", 10]}}}], sort=[("at", -1)],
                                                          return_document=True)["n"], 12)
    check("find_one_and_replace", coll.find_one_and_replace({"_id": 3}, {"x": 1}, projection={"n": 1}), {"_id": 3, "n": 3})
    check("find_one_and_delete", coll.find_one_and_delete({"n": 4}, sort=[("_id", -1)])["_id"], 39)
    check("array filters", coll.update_many({"list": 2}, {"$inc": {"list.$[e]": 100}}, array_filters=[{"e": 2}]).modified_count, 8)
    check("bulk", coll.bulk_write([UpdateOne({"_id": 5}, {"$max": {"n": 50}}), UpdateMany({"n": 1}, {"$unset": {"s": 1}}),
                                   ReplaceOne({"_id": 500}, {"n": 1}, upsert=True)]).bulk_api_result["nModified"], 9)
    check_fails("unknown update", 9, lambda: coll.update_one({"_id": 1}, {"$nothing": {"a": 1}}))
    check_fails("push to a number", 2, lambda: coll.update_one({"_id": 1}, {"$push": {"n": 1}}))


def collections(db):
    db.create_collection("checked", validator={"a": {"$gte": 0}}, validationAction="error")
    db.checked.insert_one({"a": 1})
    try:
        db.checked.insert_one({"a": -1})
        check("validator", "accepted", "refused")
    except WriteError as error:
        check("validator", (error.code, "errInfo" in error.details), (121, True))
    check("collMod", db.command("collMod", "checked", validator={})["ok"], 1)
    db.checked.insert_one({"a": -1})
    db.create_collection("ring", capped=True, size=100000, max=10)
    db.ring.insert_many([{"_id": i} for i in range(25)])
    check("capped", ids(db.ring.find()), list(range(15, 25)))
    check("tailable", ids(db.ring.find(cursor_type=CursorType.TAILABLE)), list(range(15, 25)))
    db.command(SON([("create", "v"), ("viewOn", "plain"), ("pipeline", [{"$match": {"n": 0}}, {"$project": {"n": 1}}])]))
    check("view", db.v.count_documents({}), db.plain.count_documents({"n": 0}))
    check("listed", sorted((c["name"], c["type"]) for c in db.list_collections() if not c["name"].startswith("system.")),
          [("checked", "collection"), ("plain", "collection"), ("ring", "collection"), ("sharded", "collection"), ("v", "view")])
    try:
        list(db.plain.find({"$expr": {"$gt": [{"$size": {"$filter": {"input": {"$range": [0, 900000]}, "cond": {
            "$gt": ["$$this", -1]}}}}, 0]}}).max_time_ms(30))
        check("max_time_ms", "finished", "stopped")
    except ExecutionTimeout as error:
        check("max_time_ms", error.code, 50)


def main(uri):
    client = MongoClient(uri, serverSelectionTimeoutMS=10000)
    db = client["drivers_pymongo_language"]
    client.drop_database(db.name)
    client.admin.command("shardCollection", f"{db.name}.sharded", key={"_id": "hashed"})
    language(db["plain"])
    language(db["sharded"])
    collections(db)
    client.drop_database(db.name)
    print(f"{failed} failed" if failed else "all passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
