#!/usr/bin/python3
"""Indexes through a router: kinds, definitions and their codes, builds beside writes, collMod, $indexStats; each part
unsharded and sharded. Answers by an index must be those of a scan.

usage: cases.py URI
"""
import random
import sys
import threading
import time

from bson import Int64, SON
from pymongo import MongoClient
from pymongo.errors import DuplicateKeyError, OperationFailure

client = MongoClient(sys.argv[1])
failed = 0
passed = 0


def check(name, got, want):
    global failed, passed
    if got == want:
        passed += 1
    else:
        failed += 1
        print(f"FAILED {name}: got {got!r}, want {want!r}")


def run(db, command):
    """The reply, or that of an error with its code."""
    try:
        return db.command(command)
    except OperationFailure as error:
        return dict(error.details or {}, code=error.code)


def create(db, coll, *specs, **options):
    return run(db, SON([("createIndexes", coll), ("indexes", list(specs))] + list(options.items())))


def spec(name, *key, **options):
    return SON([("key", SON(key)), ("name", name)] + list(options.items()))


def drop(db, coll, index):
    return run(db, SON([("dropIndexes", coll), ("index", index)]))


def names(coll):
    return sorted(coll.index_information())


def shard(db, coll, key, **options):
    reply = run(client.admin, SON([("shardCollection", f"{db.name}.{coll}"), ("key", key)] + list(options.items())))
    check(f"shard {coll}", reply.get("ok"), 1.0)


def definitions(db, sharded):
    coll = db.t
    if sharded:
        shard(db, "t", {"_id": "hashed"})
    coll.insert_many([{"_id": i, "a": i, "b": {"c": i % 5, "d": f"x{i}"}, "t": i % 3} for i in range(100)])
    before = 2 if sharded else 1
    reply = create(db, "t", spec("w", ("$**", 1)))
    check("counts", [reply.get(k) for k in ("numIndexesBefore", "numIndexesAfter", "createdCollectionAutomatically")],
          [before, before + 1, False])
    check("note", create(db, "t", spec("w", ("$**", 1))).get("note"), "all indexes already exist")
    check("compound wildcard", create(db, "t", spec("cw", ("t", 1), ("b.$**", 1))).get("ok"), 1.0)
    check("by wildcard", sorted(d["_id"] for d in coll.find({"b.c": 3}, hint="w")), list(range(3, 100, 5)))
    check("with collation",
          create(db, "t", spec("coll", ("b.d", 1), collation={"locale": "en", "strength": 2})).get("ok"), 1.0)
    listed = {i["name"]: i for i in coll.list_indexes()}
    check("collation in full", [listed["coll"]["collation"][k] for k in ("locale", "strength", "caseLevel")],
          ["en", 2, False])
    for what, index, code in [
        ("no name", SON([("key", {"z": 1})]), 9),
        ("text", spec("z", ("z", "text")), 67),
        ("same name", spec("w", ("z", 1)), 86),
        ("same key", spec("w2", ("$**", 1)), 85),
        ("unknown option", spec("z", ("z", 1), nonsense=1), 197),
        ("partial $ne", spec("p", ("a", 1), partialFilterExpression={"a": {"$ne": 5}}), 67),
        ("partial $exists", spec("p", ("a", 1), partialFilterExpression={"a": {"$exists": False}}), 67),
        ("TTL range", spec("ttl", ("a", 1), expireAfterSeconds=-1), 67),
        ("unique", spec("u", ("t", 1), unique=True), 67 if sharded else 11000),
    ]:
        check(what, create(db, "t", index).get("code"), code)
    check("no index was left", names(coll), names(coll))
    check("two collations", create(db, "t", spec("simple", ("b.d", 1))).get("ok"), 1.0)
    check("ambiguous", drop(db, "t", SON([("b.d", 1)])).get("code"), 181)
    check("drop list", drop(db, "t", ["simple", "coll"]).get("ok"), 1.0)
    for what, index, code in [("name", "nope", 27), ("key", {"nope": 1}, 27), ("_id", "_id_", 72), ("list", ["w", "no"], 27)]:
        check(f"drop {what}", drop(db, "t", index).get("code"), code)
    check("drop on nothing", drop(db, "missing", "a").get("code"), 26)
    check("list on nothing", run(db, SON([("listIndexes", "missing")])).get("code"), 26)
    change(db, coll, sharded)
    check("drop all", drop(db, "t", "*").get("ok"), 1.0)
    check("what stays", names(coll), ["_id_", "_id_hashed"] if sharded else ["_id_"])
    if sharded:
        check("the shard key's index stays", drop(db, "t", "_id_hashed").get("code"), 303)
        coll.insert_one({"_id": "parallel", "m": [1], "n": [2]})
        check("one shard refuses", create(db, "t", spec("mn", ("m", 1), ("n", 1))).get("code"), 171)
        check("no shard keeps it", [s["name"] for s in coll.aggregate([{"$indexStats": {}}]) if s["name"] == "mn"], [])


def change(db, coll, sharded):
    create(db, "t", spec("q", ("q", 1)))
    reply = run(db, SON([("collMod", "t"), ("index", {"name": "q", "hidden": True})]))
    check("hide", [reply.get("hidden_old"), reply.get("hidden_new")], [False, True])
    check("hidden is listed", [i.get("hidden") for i in coll.list_indexes() if i["name"] == "q"], [True])
    try:
        list(coll.find({"q": 1}, hint="q"))
        check("hint of a hidden index", None, 2)
    except OperationFailure as error:
        check("hint of a hidden index", error.code, 2)
    run(db, SON([("collMod", "t"), ("index", {"name": "q", "hidden": False})]))
    reply = run(db, SON([("collMod", "t"), ("index", {"keyPattern": {"q": 1}, "expireAfterSeconds": Int64(100)})]))
    check("TTL made", [reply.get("expireAfterSeconds_old"), reply.get("expireAfterSeconds_new")], [None, 100])
    reply = run(db, SON([("collMod", "t"), ("index", {"keyPattern": {"q": 1}, "expireAfterSeconds": 50})]))
    check("TTL changed", [reply.get("expireAfterSeconds_old"), reply.get("expireAfterSeconds_new")], [100, 50])
    list(coll.find({"q": 7}, hint="q"))
    stats = [s for s in coll.aggregate([{"$indexStats": {}}]) if s["name"] == "q"]
    check("a document for each shard", len({s.get("shard") for s in stats}), 2 if sharded else 1)
    check("accesses", [s["accesses"]["ops"] for s in stats], [1] * len(stats))
    check("valid", run(db, SON([("validate", "t")])).get("valid"), True)


def builds(db, sharded):
    coll = db.big
    if sharded:
        shard(db, "big", {"_id": "hashed"})
    for start in range(0, 20000, 5000):
        coll.insert_many([{"_id": i, "x": i, "arr": [i, i + 1]} for i in range(start, start + 5000)], ordered=False)
    stop = threading.Event()

    def write():
        i = 0
        while not stop.is_set():
            coll.update_one({"_id": i % 20000}, {"$inc": {"x": 100000}})
            i += 7

    writer = threading.Thread(target=write)
    writer.start()
    reply = create(db, "big", spec("x", ("x", 1)), spec("arr", ("arr", 1)), spec("w", ("$**", 1)))
    stop.set()
    writer.join()
    check("build beside writes", reply.get("ok"), 1.0)
    check("valid", run(db, SON([("validate", "big")])).get("valid"), True)
    for i in range(0, 20000, 997):
        doc = coll.find_one({"_id": i})
        check("found by x", [d["_id"] for d in coll.find({"x": doc["x"]}, hint="x")], [i])
    if not sharded:
        coll.insert_one({"_id": "twin", "x": coll.find_one({"_id": 5})["x"]})
        reply = create(db, "big", spec("fine", ("fine", 1)), spec("u", ("x", -1), unique=True))
        check("duplicate", [reply.get("code"), reply.get("keyPattern")], [11000, {"x": -1}])
        check("neither is left", set(names(coll)) & {"fine", "u"}, set())
    result = []
    builder = threading.Thread(target=lambda: result.append(create(db, "big", spec("d1", ("x", -1)), spec("d2", ("y", 1)))))
    builder.start()
    dropped = None
    while dropped is None and builder.is_alive():
        if drop(db, "big", "d2").get("ok") == 1.0:
            dropped = True
        time.sleep(0.005)
    builder.join()
    if result[0].get("ok") != 1.0:
        check("a drop ends a build", result[0].get("code"), 276)
        check("all of it", set(names(coll)) & {"d1", "d2"}, set())


def collated(db, sharded):
    run(db, SON([("create", "cc"), ("collation", {"locale": "en", "strength": 1})]))
    coll = db.cc
    if sharded:
        shard(db, "cc", {"s": 1}, collation={"locale": "simple"})
    create(db, "cc", spec("x", ("x", 1)), spec("xs", ("x", 1), collation={"locale": "simple"}))
    listed = {i["name"]: i.get("collation", {}).get("strength") for i in coll.list_indexes()}
    check("inherited", [listed["_id_"], listed["x"], listed["xs"]], [1, 1, None])
    check("another one on _id", create(db, "cc", spec("_id_", ("_id", 1), collation={"locale": "fr"})).get("code"), 2)
    if sharded:
        return
    coll.insert_one({"_id": "A", "x": "a"})
    try:
        coll.insert_one({"_id": "a"})
        check("_id is unique in the collation", None, 11000)
    except DuplicateKeyError:
        pass
    check("found in the collation", coll.find_one({"_id": "a"}), {"_id": "A", "x": "a"})


def prepared(db, sharded):
    coll = db.prepared
    if sharded:
        shard(db, "prepared", {"x": 1})
    coll.insert_many([{"_id": 1, "x": 1}, {"_id": 2, "x": 1}, {"_id": 3, "x": 2}])
    coll.create_index("x")
    mod = lambda **what: run(db, SON([("collMod", "prepared"), ("index", dict(name="x_1", **what))]))
    check("prepareUnique", mod(prepareUnique=True).get("ok"), 1.0)
    try:
        coll.insert_one({"x": 2})
        check("new duplicates are refused", None, 11000)
    except DuplicateKeyError:
        pass
    check("old ones may change", coll.update_one({"_id": 1}, {"$set": {"y": 1}}).modified_count, 1)
    reply = mod(unique=True)
    check("violations", [reply.get("code"), reply.get("violations")], [359, [{"ids": [1, 2]}]])
    coll.delete_one({"_id": 2})
    check("unique", mod(unique=True).get("ok"), 1.0)
    check("listed", [(i.get("unique"), i.get("prepareUnique")) for i in coll.list_indexes() if i["name"] == "x_1"],
          [(True, None)])


def random_value(rng, depth):
    kind = rng.randrange(9 if depth > 0 else 6)
    if kind < 3:
        return rng.randrange(4)
    if kind == 3:
        return rng.choice(["x", "y", None])
    if kind == 4:
        return rng.randrange(4) + 0.5
    if kind == 5:
        return rng.choice([[], {}])
    if kind == 6:
        return [random_value(rng, depth - 1) for _ in range(rng.randrange(3))]
    return {k: random_value(rng, depth - 1) for k in "abc" if rng.random() < 0.6}


def random_filter(rng):
    path = rng.choice(["a", "b", "a.b", "a.c", "b.a", "a.b.c", "c"])
    test = rng.choice([
        lambda: rng.randrange(4), lambda: {"$gt": rng.randrange(4)}, lambda: {"$lte": rng.randrange(4) + 0.5},
        lambda: {"$in": [rng.randrange(4), "x"]}, lambda: None, lambda: {"$exists": rng.random() < 0.5},
        lambda: {"$ne": rng.randrange(4)}, lambda: {"$gte": "x"}, lambda: [], lambda: {}, lambda: [1],
        lambda: {"$elemMatch": {"$gt": 1}}, lambda: {"$type": "number"}, lambda: {"$size": 1},
    ])
    return {path: test()}


def same_answers(db, sharded):
    """Two collections with the same documents, one of them full of indexes."""
    rng = random.Random(20261130)
    docs = [dict(_id=i, **{k: random_value(rng, 2) for k in "abc" if rng.random() < 0.8}) for i in range(400)]
    plain, indexed = db.plain, db.indexed
    if sharded:
        shard(db, "plain", {"_id": "hashed"})
        shard(db, "indexed", {"_id": "hashed"})
    plain.insert_many(docs)
    create(db, "indexed", spec("w", ("$**", 1)), spec("aw", ("a.$**", 1)), spec("ab", ("a.b", 1)),
           spec("c", ("c", -1)), spec("p", ("b", 1), partialFilterExpression={"b": {"$gt": 1}}),
           spec("out", ("$**", -1), wildcardProjection={"a.c": 0}))
    indexed.insert_many(docs)
    for n in range(600):
        query = random_filter(rng)
        if rng.random() < 0.3:
            query = {"$and": [query, random_filter(rng)]}
        elif rng.random() < 0.2:
            query = {"$or": [query, random_filter(rng)]}
        want = sorted(d["_id"] for d in plain.find(query))
        got = sorted(d["_id"] for d in indexed.find(query))
        check(f"{query}", got, want)
    check("valid", run(db, SON([("validate", "indexed")])).get("valid"), True)


for sharded in (False, True):
    db = client[f"index_cases_{int(sharded)}"]
    client.drop_database(db.name)
    if sharded:
        run(client.admin, SON([("enableSharding", db.name)]))
    for part in (definitions, builds, collated, prepared, same_answers):
        part(db, sharded)
    client.drop_database(db.name)
print(f"{passed} passed, {failed} failed")
sys.exit(1 if failed else 0)
