#!/usr/bin/python3
"""pymongo (Debian's 3.11): create, read, update, delete, count, index and list; both kinds of collection."""
import sys

import pymongo
from pymongo import MongoClient, UpdateOne, DeleteOne, InsertOne
from pymongo.errors import BulkWriteError, DuplicateKeyError, OperationFailure

failed = 0


def check(name, got, want):
    global failed
    if got != want:
        failed += 1
        print(f"FAILED {name}: got {got!r}, want {want!r}")


def tour(client, coll):
    check("insert_one", coll.insert_one({"_id": 1, "a": 1}).inserted_id, 1)
    check("insert_many", len(coll.insert_many([{"_id": i, "a": i} for i in range(2, 302)]).inserted_ids), 300)
    try:
        coll.insert_one({"_id": 1})
        check("duplicate", "accepted", "refused")
    except DuplicateKeyError as error:
        check("duplicate", error.code, 11000)
    check("find_one", coll.find_one({"_id": 2}), {"_id": 2, "a": 2})
    check("find", [d["_id"] for d in coll.find({"a": {"$gt": 5}}).sort("a", -1).limit(3)], [301, 300, 299])
    check("batches", len(list(coll.find(batch_size=17))), 301)
    check("update_one", coll.update_one({"_id": 2}, {"$set": {"b": 1}}).modified_count, 1)
    check("update_many", coll.update_many({"a": {"$lte": 10}}, {"$inc": {"c": 1}}).modified_count, 10)
    check("upsert", coll.update_one({"_id": 999}, {"$set": {"a": 1}}, upsert=True).upserted_id, 999)
    check("find_one_and_update", coll.find_one_and_update({"_id": 999}, {"$inc": {"a": 1}}, return_document=True)["a"], 2)
    check("count", coll.count_documents({}), 302)
    check("estimated", coll.estimated_document_count(), 302)
    check("distinct", sorted(coll.distinct("c")), [1])
    check("aggregate", list(coll.aggregate([{"$group": {"_id": None, "n": {"$sum": 1}}}])), [{"_id": None, "n": 302}])
    result = coll.bulk_write([InsertOne({"_id": 1000}), UpdateOne({"_id": 3}, {"$set": {"z": 1}}), DeleteOne({"_id": 4})],
                             ordered=False)
    check("bulk", (result.inserted_count, result.modified_count, result.deleted_count), (1, 1, 1))
    try:
        coll.insert_many([{"_id": 2000}, {"_id": 1}, {"_id": 2001}], ordered=False)
        check("bulk error", "accepted", "refused")
    except BulkWriteError as error:
        check("bulk error", ([e["index"] for e in error.details["writeErrors"]], error.details["nInserted"]), ([1], 2))
    check("create_index", coll.create_index([("a", pymongo.ASCENDING)]), "a_1")
    check("index_information", "a_1" in coll.index_information(), True)
    check("delete_one", coll.delete_one({"_id": 1}).deleted_count, 1)
    check("delete_many", coll.delete_many({}).deleted_count, 303)
    check("unacknowledged", coll.with_options(write_concern=pymongo.WriteConcern(w=0)).insert_one({"_id": 5}).acknowledged, False)
    coll.database.command("ping")
    check("sees it", coll.count_documents({"_id": 5}) in (0, 1), True)


def main(uri):
    client = MongoClient(uri, serverSelectionTimeoutMS=10000)
    check("is_mongos", client.is_mongos, True)
    db = client["drivers_pymongo"]
    client.drop_database(db.name)
    tour(client, db["plain"])
    client.admin.command("shardCollection", "drivers_pymongo.sharded", key={"_id": "hashed"})
    tour(client, db["sharded"])
    check("list_collection_names", sorted(db.list_collection_names()), ["plain", "sharded"])
    check("list_database_names", db.name in client.list_database_names(), True)
    with client.start_session() as session:
        check("session", db["plain"].count_documents({}, session=session) in (0, 1), True)
    try:
        db.command("noSuchCommand")
        check("no such command", "accepted", "refused")
    except OperationFailure as error:
        check("no such command", error.code, 59)
    client.drop_database(db.name)
    print(f"{failed} failed" if failed else "all passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
