#!/usr/bin/python3
"""Writes of one document that don't name its shard: exactly one is written, also by eight clients on two routers."""
import threading
from collections import Counter

from pymongo import ReturnDocument

from check import check, client, clients, code, db, finish, name, shard

client.drop_database(name)


def in_parallel(count, work):
    threads = [threading.Thread(target=work, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def pop_queue(sort):
    db.drop_collection("queue")
    shard("queue", {"_id": "hashed"})
    db.queue.insert_many([{"_id": i, "state": "new", "pri": i % 7} for i in range(200)])
    popped, errors, lock = Counter(), [], threading.Lock()

    def work(n):
        queue = clients[n % 2][name].queue
        while True:
            try:
                job = queue.find_one_and_update({"state": "new"}, {"$set": {"state": "done"}}, sort=sort)
            except Exception as error:  # pylint: disable=broad-except
                with lock:
                    errors.append(str(error))
                return
            if job is None:
                return
            with lock:
                popped[job["_id"]] += 1

    in_parallel(8, work)
    check(f"a queue, sort {sort}", (len(popped), max(popped.values()), errors), (200, 1, []))


def counted_updates():
    db.drop_collection("counted")
    shard("counted", {"_id": "hashed"})
    db.counted.insert_many([{"_id": i, "s": 0} for i in range(120)])

    def update(n):
        for _ in range(10):
            clients[n % 2][name].counted.update_one({"s": 0}, {"$inc": {"s": 1}})

    def remove(n):
        for _ in range(10):
            clients[n % 2][name].counted.delete_one({"s": 1})

    in_parallel(8, update)
    check("updates of one each", Counter(d["s"] for d in db.counted.find()), Counter({0: 40, 1: 80}))
    in_parallel(8, remove)
    check("removals of one each", db.counted.count_documents({}), 40)


def best_of_all():
    db.drop_collection("best")
    shard("best", {"_id": "hashed"})
    db.best.insert_many([{"_id": i, "n": (i * 37) % 100} for i in range(100)])
    got = db.best.find_one_and_update({}, {"$set": {"hit": 1}}, sort=[("n", -1)], return_document=ReturnDocument.AFTER)
    check("the best of all shards", (got["n"], got["hit"]), (99, 1))
    db.command({"update": "best", "updates": [{"q": {"n": {"$lt": 50}}, "u": {"$set": {"low": 1}}, "sort": {"n": -1}}]})
    check("an update with sort", db.best.find_one({"low": 1})["n"], 49)
    check("removed", db.best.find_one_and_delete({}, sort=[("n", 1)])["n"], 0)
    db.best.replace_one({"n": 10}, {"n": 10, "r": 1})
    check("replaced", db.best.find_one({"n": 10})["r"], 1)


def upserts():
    db.drop_collection("up")
    shard("up", {"k": "hashed"})
    for i in range(20):
        result = db.up.update_one({"w": i}, {"$set": {"k": i}, "$setOnInsert": {"new": 1}}, upsert=True)
        check(f"upsert {i}", (result.matched_count, result.upserted_id is not None), (0, True))
    check("each where its key belongs", [db.up.count_documents({"k": i}) for i in range(20)], [1] * 20)
    result = db.up.update_one({"w": 3}, {"$set": {"z": 1}}, upsert=True)
    check("an upsert that matches", (result.matched_count, result.upserted_id), (1, None))
    db.up.update_one({"w": 100}, {"$set": {"z": 1}}, upsert=True)
    check("a key that is missing is null", [d["w"] for d in db.up.find({"k": None})], [100])
    db.up.replace_one({"w": 101}, {"w": 101, "k": 9}, upsert=True)
    check("by replacement", db.up.find_one({"k": 9, "w": 101})["w"], 101)
    for i in range(3000, 3040, 2):
        db.up.update_one({"k": i}, {"$set": {"k": i + 1, "moved": i}}, upsert=True)
    check("a key that the update sets", [db.up.count_documents({"k": i + 1, "moved": i}) for i in range(3000, 3040, 2)],
          [1] * 20)
    got = db.up.find_one_and_update({"w": 102}, {"$set": {"k": 5}}, upsert=True, projection={"_id": 0},
                                    return_document=ReturnDocument.AFTER)
    check("findAndModify", got, {"w": 102, "k": 5})
    got = db.up.find_one_and_replace({"w": 103}, {"w": 103, "k": 6}, upsert=True)
    check("findAndModify, the one before", (got, db.up.count_documents({"w": 103})), (None, 1))
    db.up.update_one({"w": 104}, [{"$set": {"k": {"$add": ["$w", 1]}}}], upsert=True)
    check("by pipeline", db.up.count_documents({"w": 104, "k": 105}), 1)
    check("many", code(lambda: db.up.update_many({"w": 105}, {"$set": {"k": 1}}, upsert=True)), 61)
    check("an array in the key", code(lambda: db.up.update_one({"w": 106}, {"$set": {"k": [1]}}, upsert=True)), 61)


def key_changes():
    db.drop_collection("keys")
    shard("keys", {"k": 1})
    db.keys.insert_many([{"_id": i, "k": i} for i in range(10)])
    check("update", db.keys.update_one({"k": 1}, {"$set": {"k": 101}}).modified_count, 1)
    check("update by another field", db.keys.update_one({"_id": 2}, {"$inc": {"k": 100}}).modified_count, 1)
    check("replacement", db.keys.replace_one({"k": 3}, {"k": 103}).modified_count, 1)
    check("pipeline", db.keys.update_one({"k": 4}, [{"$set": {"k": 104}}]).modified_count, 1)
    check("findAndModify", db.keys.find_one_and_update({"k": 5}, {"$set": {"k": 105}}, return_document=True)["k"], 105)
    check("many", db.keys.update_many({"k": 6}, {"$set": {"k": 106}}).modified_count, 1)
    check("all of them", sorted(d["k"] for d in db.keys.find()), [0, 7, 8, 9, 101, 102, 103, 104, 105, 106])
    db.drop_collection("leaving")
    shard("leaving", {"k": "hashed"})
    db.leaving.insert_many([{"_id": i, "k": i} for i in range(40)])
    codes = {code(lambda n=i: db.leaving.update_one({"k": n}, {"$set": {"k": n + 1000}})) for i in range(40)}
    check("a change that may leave the shard", codes, {0, 283})
    check("nothing is lost", db.leaving.count_documents({}), 40)


def under_a_collation():
    folded = {"locale": "en", "strength": 2}
    db.drop_collection("words")
    shard("words", {"w": 1})
    db.words.insert_many([{"_id": i, "w": w} for i, w in enumerate(["apple", "APPLE", "pear", "Pear"])])
    check("find", db.words.count_documents({"w": "Apple"}, collation=folded), 2)
    check("update", db.words.update_one({"w": "PEAR"}, {"$set": {"x": 1}}, collation=folded).modified_count, 1)
    check("one only", db.words.count_documents({"x": 1}), 1)
    check("many", db.words.update_many({"w": "PEAR"}, {"$set": {"y": 1}}, collation=folded).modified_count, 2)
    got = db.words.find_one_and_delete({"w": "aPPle"}, collation=folded, sort=[("_id", -1)])
    check("findAndModify", got["_id"], 1)
    client[name].create_collection("german", collation={"locale": "de", "strength": 1})
    db.german.create_index([("w", 1)], collation={"locale": "simple"})
    check("a default collation must be overridden",
          code(lambda: client.admin.command("shardCollection", name + ".german", key={"w": 1})), 2)
    shard("german", {"w": "hashed"}, collation={"locale": "simple"})
    db.german.insert_many([{"_id": i, "w": w} for i, w in enumerate(["a", "A", "ä", "b", "B", "c"])])
    check("the default counts", db.german.count_documents({"w": "A"}), 3)
    check("distinct", len(db.german.distinct("w")), 3)
    check("grouped", len(list(db.german.aggregate([{"$group": {"_id": "$w"}}]))), 3)
    check("sorted", [d["w"].lower() for d in db.german.find().sort([("w", 1), ("_id", 1)])][3:5], ["b", "b"])
    check("updated", db.german.update_many({"w": "a"}, {"$set": {"z": 1}}).modified_count, 3)


pop_queue(None)
pop_queue([("pri", 1)])
counted_updates()
best_of_all()
upserts()
key_changes()
under_a_collation()
client.drop_database(name)
finish()
