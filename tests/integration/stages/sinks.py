#!/usr/bin/python3
"""$out and $merge: every mode, into sharded and unsharded collections, and what they refuse."""
from check import check, client, code, db, fill, finish, name, shard

OTHER = name + "_other"
client.drop_database(name)
client.drop_database(OTHER)
SOURCE = [{"_id": i, "k": i % 10, "v": i} for i in range(50)]


def documents(coll, database=None):
    return sorted(((d["_id"], {k: x for k, x in d.items() if k != "_id"}) for d in (database or db)[coll].find()), key=str)


def out_checks(source):
    db.drop_collection("target")
    db.target.insert_one({"_id": "old"})
    db.target.create_index("v", unique=True)
    check(source + " $out", list(db[source].aggregate([{"$match": {"v": {"$lt": 20}}}, {"$out": "target"}])), [])
    check(source + " $out replaces", sorted(d["_id"] for d in db.target.find()), list(range(20)))
    check(source + " $out keeps indexes", sorted(i["name"] for i in db.target.list_indexes()), ["_id_", "v_1"])
    check(source + " $out with a duplicate",
          code(lambda: db[source].aggregate([{"$set": {"v": 1}}, {"$out": "target"}])), 11000)
    check(source + " $out that failed changes nothing", db.target.count_documents({}), 20)
    db[source].aggregate([{"$out": {"db": OTHER, "coll": "there"}}])
    check(source + " $out to another database", client[OTHER].there.count_documents({}), 50)
    db[source].aggregate([{"$match": {"v": -1}}, {"$out": "target"}])
    check(source + " $out of nothing", db.target.count_documents({}), 0)
    left = [c for c in db.list_collection_names() if c.startswith("tmp.")]
    check(source + " $out leaves nothing behind", left, [])


def merge_into(source, sharded):
    target = "merged_spread" if sharded else "merged"
    what = f"{source} $merge into {target}: "
    db.drop_collection(target)
    if sharded:
        shard(target, {"_id": "hashed"})

    def merge(stages, **options):
        return db[source].aggregate(stages + [{"$merge": {"into": target, **options}}])

    merge([])
    check(what + "insert", documents(target), documents(source))
    merge([{"$project": {"w": {"$add": ["$v", 1]}}}])
    check(what + "merge", db[target].find_one({"_id": 7}), {"_id": 7, "k": 7, "v": 7, "w": 8})
    merge([{"$project": {"x": 1}}, {"$match": {"_id": {"$lt": 5}}}], whenMatched="replace")
    check(what + "replace", db[target].find_one({"_id": 3}), {"_id": 3})
    merge([{"$project": {"y": "$v"}}], whenMatched="keepExisting")
    check(what + "keepExisting", db[target].count_documents({"y": {"$exists": True}}), 0)
    check(what + "fail", code(lambda: merge([], whenMatched="fail")), 11000)
    merge([{"$match": {"_id": 4}}], whenMatched=[{"$set": {"p": {"$add": ["$$new.v", "$$extra"]}}}], let={"extra": "$k"})
    check(what + "pipeline with let", db[target].find_one({"_id": 4}), {"_id": 4, "p": 8})
    merge([{"$match": {"_id": 4}}, {"$set": {"_id": 400}}], whenMatched=[{"$set": {"p": 1}}])
    check(what + "pipeline inserts the new document", db[target].find_one({"_id": 400}), {"_id": 400, "k": 4, "v": 4})
    merge([{"$match": {"_id": 5}}, {"$set": {"_id": 500}}], whenNotMatched="discard")
    check(what + "discard", db[target].find_one({"_id": 500}), None)
    check(what + "not matched, fail",
          code(lambda: merge([{"$match": {"_id": 5}}, {"$set": {"_id": 500}}], whenNotMatched="fail")), 13113)
    check(what + "on without an index", code(lambda: merge([], on="k")), 51183)


def merge_on(source):
    db.drop_collection("by_two")
    db.by_two.create_index([("k", 1), ("v", 1)], unique=True)
    stage = {"$merge": {"into": "by_two", "on": ["v", "k"]}}
    db[source].aggregate([stage])
    db[source].aggregate([{"$match": {"_id": 9}}, {"$project": {"_id": 0, "k": 1, "v": 1, "z": "on"}}, stage])
    check(source + " $merge on two fields", (db.by_two.find_one({"_id": 9})["z"], db.by_two.count_documents({})), ("on", 50))
    check(source + " $merge on a missing field", code(lambda: db[source].aggregate([{"$project": {"k": 1}}, stage])), 51132)
    check(source + " $merge with another _id",
          code(lambda: db[source].aggregate([{"$match": {"_id": 9}}, {"$set": {"_id": 99}}, stage])), 66)


def by_other_key(source):
    db.drop_collection("by_k")
    shard("by_k", {"k": 1})
    db[source].aggregate([{"$merge": "by_k"}])
    db[source].aggregate([{"$set": {"w": 1}}, {"$merge": {"into": "by_k", "whenNotMatched": "fail"}}])
    check(source + " $merge by the shard key", db.by_k.count_documents({"w": 1}), 50)
    db[source].aggregate([{"$merge": {"into": {"db": OTHER, "coll": "new"}}}])
    check(source + " $merge into another database", client[OTHER].new.count_documents({}), 50)
    check(source + " $merge without the key", code(lambda: db[source].aggregate(
        [{"$project": {"v": 1}}, {"$merge": "by_k"}])), 51132)


def refusals():
    def last(stage):
        return code(lambda: db.plain.aggregate([stage]))
    check("$out into a sharded collection", last({"$out": "spread"}), 28769)
    check("$out into config", last({"$out": {"db": "config", "coll": "x"}}), 31321)
    check("$out into system", last({"$out": "system.x"}), 17385)
    check("$out of a number", last({"$out": 1}), 16990)
    check("$out in the middle", code(lambda: db.plain.aggregate([{"$out": "x"}, {"$match": {}}])), 40601)
    check("$merge into admin", last({"$merge": {"into": {"db": "admin", "coll": "x"}}}), 31320)
    check("$merge of a number", last({"$merge": 1}), 14)
    check("$merge into a number", last({"$merge": {"into": 1}}), 51178)
    check("$merge on a number", last({"$merge": {"into": "x", "on": 1}}), 51186)
    check("$merge on nothing", last({"$merge": {"into": "x", "on": []}}), 51187)
    check("$merge on a field twice", last({"$merge": {"into": "x", "on": ["a", "a"]}}), 31465)
    check("$merge, modes", last({"$merge": {"into": "x", "whenMatched": "fail", "whenNotMatched": "fail"}}), 51181)
    check("$merge, unknown mode", last({"$merge": {"into": "x", "whenMatched": "nope"}}), 2)
    check("$merge, let alone", last({"$merge": {"into": "x", "let": {"a": 1}}}), 51199)
    check("$merge, let new", last({"$merge": {"into": "x", "whenMatched": [], "let": {"new": 1}}}), 51273)
    check("$merge, unknown field", last({"$merge": {"into": "x", "nope": 1}}), 40415)
    check("in a facet", last({"$facet": {"a": [{"$out": "x"}]}}), 40600)
    check("linearizable", code(lambda: db.command({"aggregate": "plain", "pipeline": [{"$out": "x"}], "cursor": {},
                                                   "readConcern": {"level": "linearizable"}})), 72)


fill("plain", SOURCE, False)
fill("spread", SOURCE, True)
for coll_name in ("plain", "spread"):
    out_checks(coll_name)
    merge_into(coll_name, False)
    merge_into(coll_name, True)
    merge_on(coll_name)
    by_other_key(coll_name)
refusals()
client.drop_database(name)
client.drop_database(OTHER)
finish()
