#!/usr/bin/python3
"""$lookup, $unionWith, $graphLookup, $facet with them and $sample, from and to sharded and unsharded collections."""
from check import check, client, code, db, fill, finish, name

client.drop_database(name)
LEFT = [{"_id": i, "k": i % 7, "ks": [i % 5, 100 + i % 3]} for i in range(300)]
LEFT += [{"_id": 300, "k": None}, {"_id": 301}, {"_id": 302, "k": "Ab"}, {"_id": 303, "k": 3.0}]
RIGHT = [{"_id": i, "f": i % 9, "t": "t%d" % i} for i in range(40)]
RIGHT += [{"_id": 40, "f": None}, {"_id": 41}, {"_id": 42, "f": [1, 2]}, {"_id": 43, "f": "aB"}]


def values_of(document):
    value = document.get("k")
    return value if isinstance(value, list) else [value]


def matches(right, value):
    have = right.get("f")
    return value == have or (isinstance(have, list) and value in have)


def joined(document, key="k"):
    values = document.get(key)
    values = values if isinstance(values, list) else [values]
    return [r["_id"] for r in RIGHT if any(matches(r, value) for value in values)]


def ids(documents):
    return {d["_id"]: sorted(j["_id"] for j in d["j"]) for d in documents}


def join_checks(left, right):
    what = f"{left} to {right}: "
    lookup = {"$lookup": {"from": right, "localField": "k", "foreignField": "f", "as": "j"}}
    check(what + "equality", ids(db[left].aggregate([lookup])), {d["_id"]: joined(d) for d in LEFT})
    many = {"$lookup": {"from": right, "localField": "ks", "foreignField": "f", "as": "j"}}
    check(what + "arrays", ids(db[left].aggregate([{"$match": {"_id": {"$lt": 300}}}, many])),
          {d["_id"]: joined(d, "ks") for d in LEFT[:300]})
    first = list(db[left].aggregate([{"$sort": {"_id": 1}}, lookup, {"$limit": 3}]))
    check(what + "order stays", [d["_id"] for d in first], [0, 1, 2])
    pipeline = {"$lookup": {"from": right, "let": {"k": "$k"}, "as": "j", "pipeline": [
        {"$match": {"$expr": {"$eq": ["$f", "$$k"]}}}, {"$sort": {"_id": -1}}, {"$limit": 2}]}}
    got = list(db[left].aggregate([{"$match": {"_id": {"$in": [3, 4]}}}, pipeline, {"$sort": {"_id": 1}}]))
    check(what + "pipeline", [[j["_id"] for j in d["j"]] for d in got], [[39, 30], [31, 22]])
    both = {"$lookup": {"from": right, "localField": "k", "foreignField": "f", "as": "j",
                        "pipeline": [{"$match": {"_id": {"$gte": 20}}}, {"$project": {"_id": 1}}]}}
    check(what + "both", ids(db[left].aggregate([{"$match": {"_id": {"$lt": 50}}}, both])),
          {d["_id"]: [i for i in joined(d) if i >= 20] for d in LEFT[:50]})
    same = {"$lookup": {"from": right, "as": "j", "pipeline": [{"$match": {"f": 4}}]}}
    check(what + "not correlated", {len(d["j"]) for d in db[left].aggregate([same])}, {4})
    folded = list(db[left].aggregate([{"$match": {"_id": 302}}, lookup], collation={"locale": "en", "strength": 2}))
    check(what + "collation", [j["_id"] for j in folded[0]["j"]], [43])
    union = list(db[left].aggregate([{"$match": {"_id": {"$lt": 3}}},
                                     {"$unionWith": {"coll": right, "pipeline": [{"$match": {"f": 2}}]}},
                                     {"$group": {"_id": None, "n": {"$sum": 1}}}]))
    check(what + "union", union[0]["n"], 3 + 6)
    check(what + "union over batches",
          len(list(db[left].aggregate([{"$unionWith": right}], batchSize=7))), len(LEFT) + len(RIGHT))
    graph = list(db[left].aggregate([{"$match": {"_id": 20}}, {"$graphLookup": {
        "from": right, "startWith": "$_id", "connectFromField": "f", "connectToField": "_id", "as": "g", "depthField": "h"}}]))
    check(what + "graph", sorted((g["_id"], g["h"]) for g in graph[0]["g"]), [(2, 1), (20, 0)])
    facet = list(db[left].aggregate([{"$facet": {"a": [lookup, {"$count": "n"}], "b": [{"$count": "n"}]}}]))
    check(what + "facet", facet, [{"a": [{"n": len(LEFT)}], "b": [{"n": len(LEFT)}]}])
    nested = list(db[left].aggregate([{"$match": {"_id": 1}}, {"$lookup": {
        "from": right, "as": "j", "let": {"i": "$_id"}, "pipeline": [
            {"$match": {"$expr": {"$eq": ["$_id", "$$i"]}}},
            {"$lookup": {"from": left, "localField": "f", "foreignField": "_id", "as": "back"}}]}}]))
    check(what + "nested", nested[0]["j"][0]["back"][0]["_id"], 1)


def sample_checks(coll):
    got = [d["_id"] for d in db[coll].aggregate([{"$sample": {"size": 25}}])]
    check(coll + " sample", (len(got), len(set(got))), (25, 25))
    check(coll + " sample of all", len(list(db[coll].aggregate([{"$sample": {"size": 5000}}]))), len(LEFT))
    seen = {d["_id"] for _ in range(40) for d in db[coll].aggregate([{"$sample": {"size": 25}}])}
    check(coll + " sample reaches most", len(seen) > 250, True)
    check(coll + " sample leaves no trace", set(db[coll].aggregate([{"$sample": {"size": 1}}]).next()) <= {"_id", "k", "ks"}, True)
    check(coll + " sample of none", code(lambda: db[coll].aggregate([{"$sample": {"size": 0}}])), 28747)


for right_sharded in (False, True):
    fill("right_spread" if right_sharded else "right", RIGHT, right_sharded)
for left_sharded in (False, True):
    fill("left_spread" if left_sharded else "left", LEFT, left_sharded)
for left_name in ("left", "left_spread"):
    for right_name in ("right", "right_spread"):
        join_checks(left_name, right_name)
    sample_checks(left_name)
made = list(db.aggregate([{"$documents": [{"a": 1}, {"a": 2}]},
                          {"$lookup": {"from": "right_spread", "localField": "a", "foreignField": "_id", "as": "j"}}]))
check("$documents", [d["j"][0]["_id"] for d in made], [1, 2])
made = list(db.left.aggregate([{"$match": {"_id": 1}}, {"$lookup": {
    "localField": "k", "foreignField": "x", "as": "j", "from": "missing"}}]))
check("a collection that isn't there", made[0]["j"], [])
made = list(db.left.aggregate([{"$match": {"_id": 1}}, {"$lookup": {
    "as": "j", "pipeline": [{"$documents": [{"x": 1}]}]}}]))
check("$lookup of $documents", made[0]["j"], [{"x": 1}])
made = list(db.left_spread.aggregate([{"$match": {"_id": 1}}, {"$unionWith": {"pipeline": [{"$documents": [{"x": 1}]}]}}]))
check("$unionWith of $documents", len(made), 2)
check("unknown option", code(lambda: db.left.aggregate([{"$lookup": {"from": "right", "as": "j", "nope": 1}}])), 9)
deep = [{"$match": {}}]
for _ in range(25):
    deep = [{"$lookup": {"from": "right", "as": "j", "pipeline": deep}}]
check("too deep", code(lambda: list(db.left.aggregate(deep))) != 0, True)
client.drop_database(name)
finish()
