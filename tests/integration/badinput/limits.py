"""Values beyond the limits, and commands that are well formed and wrong: MongoDB's error code for each."""
import sys
import time

import bson
import bson.raw_bson
from bson import Int64, MaxKey, MinKey, Regex

from wire import CLOSED, Client, element, raw_doc, sequence

MIB = 1 << 20
SLOW_S = 10
failures = []


def outcome(reply):
    """0 for success, else the code of the command's or the first write's error."""
    if reply == CLOSED:
        return CLOSED
    errors = reply.get("writeErrors") or reply.get("cursor", {}).get("firstBatch", [])
    if reply["ok"] == 1 and errors and errors[0].get("code"):
        return errors[0]["code"]
    return 0 if reply["ok"] == 1 else reply["code"]


def expect(client, what, codes, command, db="test", sequences=b""):
    codes = codes if isinstance(codes, tuple) else (codes,)
    began = time.monotonic()
    try:
        reply = client.run(command, db, sequences)
    except (TimeoutError, bson.errors.InvalidBSON) as error:
        reply, got = None, repr(error)
        client.connect()
    else:
        got = outcome(reply)
    duration_s = time.monotonic() - began
    if got not in codes or duration_s > SLOW_S:
        failures.append(what)
        print(f"FAILED: {what}: {got} instead of {codes} after {duration_s:.1f} s: {str(reply)[:220]}")
    return reply


def nested(depth, leaf=1, key="a"):
    value = leaf
    for _ in range(depth):
        value = {key: value}
    return value


def insert(*docs, coll="l"):
    return {"insert": coll, "documents": list(docs)}


def update(u, q=None, coll="q", **more):
    return {"update": coll, "updates": [{"q": q or {"_id": 1}, "u": u, **more}]}


def find(filter=None, coll="q", **more):
    return {"find": coll, "filter": filter or {}, **more}


def aggregate(*stages, coll="q", **more):
    return {"aggregate": coll, "pipeline": list(stages), "cursor": {}, **more}


def attack_names(client):
    for coll in ("", "$a", "a$b", ".a", "a..b", "..", "x" * 256, "system.x", "a\0b"):
        codes = (73, 0) if coll in ("a..b", "a.") else 73
        expect(client, f"insert into {coll[:20]!r}", codes, insert({"_id": 1}, coll=coll))
        expect(client, f"create {coll[:20]!r}", codes, {"create": coll})
        if coll != "system.x":
            expect(client, f"find in {coll[:20]!r}", codes, find(coll=coll))
    for db in ("", "a b", "a.b", "a$b", "a/b", "a\\b", 'a"b', "x" * 64, "a\0b"):
        expect(client, f"find in database {db[:20]!r}", (73, 2), find(), db=db)
        expect(client, f"insert into database {db[:20]!r}", (73, 2), insert({"_id": 1}), db=db)
    for ns in ("", "x", "x.", ".x", "a\0.b", "a." + "b" * 300, "a.$b", "config.chunks", "admin.x", "local.x", "a.system.x"):
        reply = expect(client, f"shardCollection {ns[:20]!r}", (2, 20, 73, 72), {"shardCollection": ns, "key": {"a": 1}}, db="admin")
        if reply and reply.get("ok") == 1:
            print("   ", reply)
    expect(client, "command without a name", (59, 40571), {}, db="admin")
    expect(client, "unknown command", 59, {"noSuchCommand": 1})
    expect(client, "command with an odd name", 59, {"find\u00e9": 1})
    expect(client, "command named by 60000 letters", 59, {"x" * 60000: 1})
    expect(client, "$db of a wrong type", 14, {"ping": 1, "$db": 5})
    expect(client, "no $db", 40571, bson.encode({"ping": 1}))
    expect(client, "admin command elsewhere", 13, {"listDatabases": 1})
    expect(client, "internal command", 59, {"_shardsvrRefresh": "test.l"}, db="admin")
    expect(client, "internal command", 59, {"_configsvrGetRouting": "test.l"}, db="admin")
    expect(client, "internal command", 59, {"_sherdHash": 1}, db="admin")


def attack_documents(client):
    expect(client, "_id array", (2, 53), insert({"_id": [1]}))
    expect(client, "_id regex", (2, 53), insert({"_id": Regex("a")}))
    expect(client, "_id undefined", (2, 53), insert(raw_document(6, b"")))
    expect(client, "_id with a $ name", 52, insert({"_id": {"$a": 1}}))
    expect(client, "_id twice", (2, 53, 0), {"insert": "l", "$db": "test"}, sequences=sequence("documents", [
        raw_doc(element(16, "_id", b"\1\0\0\0"), element(16, "_id", b"\2\0\0\0"))]))
    expect(client, "depth 90", 0, insert({"_id": "d", **nested(90)}))
    expect(client, "depth 199", (0, 15, 22), insert({"_id": "e", **nested(198)}))
    for depth in (201, 250, 1000, 20000):
        expect(client, f"depth {depth}", (15, 22, CLOSED), bson_insert(depth))
    expect(client, "document of nearly 16 MiB", 0, insert({"_id": "big", "x": "x" * (16 * MIB - 100)}))
    expect(client, "update beyond 16 MiB", (17419, 10334, 17420), update({"$set": {"y": "y" * 200}}, {"_id": "big"}, coll="l"))
    expect(client, "push beyond 16 MiB", (17419, 10334, 17420), update({"$push": {"p": "y" * 200}}, {"_id": "big"}, coll="l"))
    expect(client, "document beyond 16 MiB", (2, 10334), insert({"_id": "huge", "x": "x" * (16 * MIB + 100)}))
    expect(client, "find the big one", 0, find({"_id": "big"}, coll="l"))
    expect(client, "aggregation beyond 16 MiB", (10334, 17419, 17260, 146, 0), aggregate({"$project": {"a": {"$concat": ["$x", "$x"]}}}, coll="l"))
    expect(client, "$push of all beyond 16 MiB", (10334, 146, 0), aggregate({"$group": {"_id": 1, "a": {"$push": "$$ROOT"}, "b": {"$push": "$$ROOT"}}}, coll="l"))
    expect(client, "drop the big one", 0, {"delete": "l", "deletes": [{"q": {"_id": "big"}, "limit": 1}]})
    expect(client, "empty batch", (16, 9, 2), insert())
    expect(client, "empty sequence", (16, 9, 2), {"insert": "l"}, sequences=sequence("documents", []))
    tiny = bson.encode({})
    expect(client, "batch of 100001", (16, 9, 2), {"insert": "l"}, sequences=sequence("documents", [tiny * 100001]))
    expect(client, "batch of 20000 with wrong _id", (2, 53), {"insert": "l", "ordered": False},
           sequences=sequence("documents", [bson.encode({"_id": [1]}) * 20000]))
    expect(client, "both a field and a sequence", (14, 40413, 40415, 9), insert({}), sequences=sequence("documents", [{}]))
    expect(client, "an unknown sequence", 40415, insert({}), sequences=sequence("nonsense", [{}]))


def raw_document(code, data):
    """A document whose _id has the given type, as raw BSON."""
    return bson.raw_bson.RawBSONDocument(raw_doc(element(code, "_id", data)))


def bson_insert(depth):
    heads = b"".join((5 + 8 * level).to_bytes(4, "little") + b"\x03a\0" for level in range(depth, 0, -1))
    document = heads + raw_doc() + bytes(depth)
    return raw_doc(element(2, "insert", b"\2\0\0\0l\0"), element(4, "documents", raw_doc(element(3, "0", document))),
                   element(2, "$db", b"\5\0\0\0test\0"))


def attack_queries(client):
    expect(client, "documents", 0, insert(*({"_id": i, "a": i, "t": "a" * 30 + "!"} for i in range(30)), coll="q"))
    for field in ("batchSize", "limit", "skip"):
        expect(client, f"{field} -1", 51024, find(**{field: -1}))
        expect(client, f"{field} text", 14, find(**{field: "x"}))
        expect(client, f"{field} NaN", (9, 2, 0), find(**{field: float("nan")}))
        expect(client, f"{field} 1e300", (9, 2, 0), find(**{field: 1e300}))
        expect(client, f"{field} of the most", 0, find(**{field: Int64((1 << 63) - 1)}))
    expect(client, "skip and limit of the most", 0, find(skip=Int64((1 << 63) - 1), limit=Int64((1 << 63) - 1)))
    expect(client, "sorted skip and limit of the most", 0, find(sort={"a": 1}, skip=Int64((1 << 63) - 1), limit=Int64((1 << 63) - 1)))
    expect(client, "$limit 0", 15958, aggregate({"$limit": 0}))
    expect(client, "$limit -1", (15958, 5107201), aggregate({"$limit": -1}))
    expect(client, "$skip -1", (15956, 5107200), aggregate({"$skip": -1}))
    expect(client, "$skip and $limit of the most", 0, aggregate({"$skip": Int64((1 << 63) - 1)}, {"$limit": Int64((1 << 63) - 1)}))
    expect(client, "$skip twice of the most", (0, 15956), aggregate({"$skip": Int64((1 << 63) - 1)}, {"$skip": Int64((1 << 63) - 1)}))
    expect(client, "hint of no index", 2, find(hint={"nothing": 1}))
    expect(client, "hint by a name of no index", 2, find(hint="nothing_1"))
    expect(client, "hint of a number", (2, 9, 14), find(hint=5))
    expect(client, "update, hint of no index", 2, update({"$set": {"x": 1}}, hint={"nothing": 1}))
    expect(client, "sort of 40 fields", (0, 13103, 2), find(sort={f"f{i}": 1 for i in range(40)}))
    expect(client, "sort of a path that ends nowhere", (2, 40352, 40353, 15998, 5, 56), find(sort={"a.": 1}))
    for bad in (0, 2, "x", None, {"$meta": "x"}, [], float("nan")):
        expect(client, f"sort of {bad!r}", (2, 17, 15974, 15975, 17312, 31138, 9, 14), find(sort={"a": bad}))
    expect(client, "$in of 100000", 0, find({"a": {"$in": list(range(100000))}}))
    expect(client, "$in with an operator", 2, find({"a": {"$in": [{"$gt": 1}]}}))
    expect(client, "regex bomb", (0, 51091, 51156, 50, 2, 51108), find({"t": {"$regex": "(a+)+(a+)+(a+)+$"}}, maxTimeMS=3000))
    expect(client, "regex beyond the limit", (51091, 2, 51108), find({"t": {"$regex": "a" * 40000}}))
    expect(client, "regex that is none", 51091, find({"t": {"$regex": "("}}))
    expect(client, "regex with unknown options", (51108, 2), find({"t": {"$regex": "a", "$options": "q"}}))
    expect(client, "regex of many groups", (0, 51091), find({"t": {"$regex": "(" * 200 + ")" * 200}}))
    expect(client, "$and 90 deep", (0, 2), find(nested_and(45)))
    expect(client, "$and 95 deep", (0, 2, 15), find(nested_and(95)))
    expect(client, "$and of 20000", 0, find({"$and": [{"a": i} for i in range(20000)]}))
    expect(client, "$or of 5000 with an index", 0, find({"$or": [{"_id": i, "a": i} for i in range(5000)]}))
    expect(client, "$expr 140 deep", (0, 2, 15, 146, 9), find({"$expr": nested(90, 1, "$abs")}))
    expect(client, "empty $and", 2, find({"$and": []}))
    expect(client, "$and of no documents", 2, find({"$and": [1]}))
    expect(client, "unknown operator", 2, find({"a": {"$nonsense": 1}}))
    expect(client, "unknown top-level operator", 2, find({"$nonsense": 1}))
    expect(client, "path of 1000 components", (0, 2, 15), find({".".join("a" * 1000): 1}))
    expect(client, "projection path collision", 31249, find(projection={"a": 1, "a.b": 1}))
    expect(client, "projection of both kinds", (31254, 31253), find(projection={"a": 1, "b": 0}))
    expect(client, "projection of 5000 fields", 0, find(projection={f"f{i}": 1 for i in range(5000)}))
    expect(client, "projection 150 deep", (0, 15, 16, 31250, 9, 2), find(projection={".".join("a" * 150): 1}))
    expect(client, "pipeline of 1001 stages", 7749501, aggregate(*({"$skip": 1} for _ in range(1001))))
    expect(client, "unknown stage", 40324, aggregate({"$nonsense": 1}))
    expect(client, "stage of two fields", 40323, aggregate({"$skip": 1, "$limit": 1}))
    expect(client, "stage that is no document", 14, aggregate(1))
    expect(client, "$facet in $facet", (40600, 40324), aggregate({"$facet": {"a": [{"$facet": {"b": []}}]}}))
    expect(client, "$range of 2^31", (0, 146, 10334, 51, 31341, 34443, 34446, 292), aggregate({"$limit": 1}, {"$project": {"a": {"$range": [0, 2147483647]}}}))
    expect(client, "$reduce that doubles", (0, 146, 10334, 17419, 16493, 4031700, 17260), aggregate({"$limit": 1}, {"$project": {"a": {
        "$reduce": {"input": {"$range": [0, 40]}, "initialValue": "x" * 1000, "in": {"$concat": ["$$value", "$$value"]}}}}}))
    expect(client, "$reduce of arrays that doubles", (0, 146, 10334, 17419, 4031700, 17260), aggregate({"$limit": 1}, {"$project": {"a": {
        "$reduce": {"input": {"$range": [0, 40]}, "initialValue": [1], "in": {"$concatArrays": ["$$value", "$$value"]}}}}}))
    for depth in (300, 3000):
        deep = {"$reduce": {"input": {"$range": [0, depth]}, "initialValue": {}, "in": {"a": "$$value"}}}
        expect(client, f"document {depth} deep", (0, 15, 22, 146), aggregate({"$limit": 1}, {"$project": {"a": deep}}))
        expect(client, f"group by a document {depth} deep", (0, 15, 22, 146), aggregate({"$group": {"_id": deep}}, {"$sort": {"_id": 1}}))
        expect(client, f"update to a document {depth} deep", (15, 22, 146), update([{"$set": {"deep": deep}}]))
        expect(client, f"upsert of a document {depth} deep", (15, 22, 146), update([{"$set": {"deep": deep}}], {"_id": depth}, upsert=True))
    expect(client, "still readable", 0, find())
    expect(client, "memory by many arrays", (0, 146, 10334, 17419, 4031700, 17260), aggregate({"$limit": 1}, {"$project": {"a": {
        "$reduce": {"input": {"$range": [0, 20000]}, "initialValue": [], "in": {"$concatArrays": ["$$value", [1]]}}}}}))
    expect(client, "division by zero", (2, 16608), aggregate({"$project": {"a": {"$divide": [1, 0]}}}))


def nested_and(depth):
    value = {"a": 1}
    for _ in range(depth):
        value = {"$and": [value]}
    return value


def attack_updates(client):
    long_path = ".".join("a" * 1000)
    for operator in ("$set", "$unset", "$inc", "$push", "$min", "$rename", "$pull", "$currentDate", "$addToSet"):
        value = "x" if operator == "$rename" else True if operator == "$currentDate" else 1
        codes = (15, 0) if operator in ("$unset", "$rename", "$pull") else 15
        expect(client, f"{operator} at 1000 components", codes, update({operator: {long_path: value}}))
    expect(client, "upsert at 1000 components", (15, 2), update({"$set": {"b": 1}}, {"_id": "n", long_path: 1}, upsert=True))
    expect(client, "still readable", 0, find({"_id": 1}))
    for path, codes in (("", 56), ("a.", 56), (".a", 56), ("a..b", 56), ("$a", (52, 0)), ("a.$", 2), ("a.$[]", 2), ("a.$[x]", 2), ("$[]", 2), ("$", (2, 52))):
        expect(client, f"$set of {path!r}", codes, update({"$set": {path: 1}}))
    expect(client, "$set of _id", 66, update({"$set": {"_id": 5}}))
    expect(client, "replacement of _id", 66, update({"_id": 5}))
    expect(client, "two conflicting paths", 40, update({"$set": {"a": 1}, "$inc": {"a.b": 1}}))
    expect(client, "operators and fields", (9, 52), update({"$set": {"a": 1}, "b": 1}))
    expect(client, "unknown operator", 9, update({"$nonsense": {"a": 1}}))
    expect(client, "empty operator", (0, 9), update({"$set": {}}))
    expect(client, "$inc of a text", 14, update({"$inc": {"t": 1}}))
    expect(client, "$inc by a text", 14, update({"$inc": {"a": "x"}}))
    expect(client, "$inc beyond 64 bits", (0, 2), update({"$set": {"i": Int64((1 << 63) - 1)}}))
    expect(client, "$inc beyond 64 bits", 2, update({"$inc": {"i": 1}}))
    expect(client, "$mul beyond 64 bits", 2, update({"$mul": {"i": Int64(4)}}))
    expect(client, "a field named 2000000000", 0, update({"$set": {"list.2000000000": 1, "list.0": 1}}, {"_id": "list"}, upsert=True))
    expect(client, "an array", 0, update({"$set": {"list": [1]}}))
    expect(client, "far beyond an array's end", 2, update({"$set": {"list.2000000": 1}}))
    expect(client, "$push that is no array", 2, update({"$push": {"t": 1}}))
    expect(client, "$slice of a text", 2, update({"$push": {"list": {"$each": [1], "$slice": "x"}}}))
    expect(client, "$each of a number", 2, update({"$push": {"list": {"$each": 1}}}))
    expect(client, "array filters unused", 9, update({"$set": {"b": 1}}, arrayFilters=[{"x": 1}]))
    expect(client, "multi with a replacement", 9, update({"b": 1}, multi=True))
    expect(client, "pipeline with $match", (72, 9), update([{"$match": {}}]))
    expect(client, "delete with limit 2", 9, {"delete": "l", "deletes": [{"q": {}, "limit": 2}]})
    expect(client, "delete with limit null", (40414, 9, 14), {"delete": "l", "deletes": [{"q": {}, "limit": None}]})
    expect(client, "delete without q", (40414, 14), {"delete": "l", "deletes": [{"q": None, "limit": 1}]})


def attack_cursors(client):
    other = Client(client.port)
    reply = expect(client, "a cursor", 0, find(batchSize=2))
    cursor_id = reply["cursor"]["id"]
    expect(client, "getMore of an unknown cursor", 43, {"getMore": Int64(987654321), "collection": "q"})
    expect(client, "getMore of cursor 0", 43, {"getMore": Int64(0), "collection": "q"})
    expect(client, "getMore on another collection", 13, {"getMore": cursor_id, "collection": "other"})
    expect(client, "getMore on another database", (13, 43), {"getMore": cursor_id, "collection": "q"}, db="other")
    expect(client, "getMore without a collection", 40414, {"getMore": cursor_id})
    expect(client, "getMore with batchSize -1", 51024, {"getMore": cursor_id, "collection": "q", "batchSize": -1})
    expect(other, "getMore on another connection", 0, {"getMore": cursor_id, "collection": "q", "batchSize": 1})
    reply = expect(other, "killCursors of unknown ones", 0, {"killCursors": "q", "cursors": [Int64(5), Int64(-1)]})
    assert reply["cursorsKilled"] == [] and len(reply["cursorsNotFound"]) == 2, reply
    reply = expect(other, "killCursors on another collection", (0, 13), {"killCursors": "other", "cursors": [cursor_id]})
    expect(client, "killCursors of a text", 14, {"killCursors": "q", "cursors": ["x"]})
    expect(client, "the cursor lives", 0, {"getMore": cursor_id, "collection": "q", "batchSize": 1})
    expect(client, "killCursors", 0, {"killCursors": "q", "cursors": [cursor_id]})
    expect(client, "getMore after killCursors", 43, {"getMore": cursor_id, "collection": "q"})
    other.close()


def index(key, name="i", **more):
    return {"createIndexes": "x", "indexes": [{"key": key, "name": name, **more}]}


def attack_indexes(client):
    bad = 67
    for what, codes, command in (
        ("no key", (9, 40414, 67), {"createIndexes": "x", "indexes": [{"name": "i"}]}),
        ("no name", (9, 40414, 67, 0), {"createIndexes": "x", "indexes": [{"key": {"a": 1}}]}),
        ("no indexes", (2, 40414), {"createIndexes": "x", "indexes": []}),
        ("empty key", bad, index({})), ("key 0", bad, index({"a": 0})), ("key text", bad, index({"a": "nonsense"})),
        ("key NaN", bad, index({"a": float("nan")})), ("key true", bad, index({"a": True})), ("key null", bad, index({"a": None})),
        ("key document", bad, index({"a": {"b": 1}})), ("key infinity", (bad, 0), index({"a": float("inf")}, "inf")),
        ("empty path", bad, index({"": 1})), ("path with an empty part", bad, index({"a..b": 1})),
        ("path with $", bad, index({"a.$b": 1})), ("33 fields", (13103, bad), index({f"f{i}": 1 for i in range(33)})),
        ("field twice", (2, bad), raw_index(raw_doc(element(16, "a", b"\1\0\0\0"), element(16, "a", b"\1\0\0\0")))),
        ("two hashed", (31303, bad), index({"a": "hashed", "b": "hashed"})), ("unique hashed", (16764, bad), index({"a": "hashed"}, unique=True)),
        ("unknown option", 197, index({"a": 1}, nonsense=1)), ("unique text", 14, index({"a": 1}, unique="x")),
        ("sparse text", 14, index({"a": 1}, sparse="x")), ("version 3", (2, bad), index({"a": 1}, v=3)),
        ("expireAfterSeconds -1", bad, index({"a": 1}, expireAfterSeconds=-1)), ("expireAfterSeconds 1e300", bad, index({"a": 1}, expireAfterSeconds=1e300)),
        ("expireAfterSeconds NaN", (bad, 0), index({"a": 1}, "nan", expireAfterSeconds=float("nan"))), ("expireAfterSeconds text", (14, bad), index({"a": 1}, expireAfterSeconds="x")),
        ("expireAfterSeconds of two", bad, index({"a": 1, "b": 1}, expireAfterSeconds=1)), ("partial with a text", 14, index({"a": 1}, partialFilterExpression="x")),
        ("partial with an unknown operator", (bad, 2), index({"a": 1}, partialFilterExpression={"$nonsense": 1})),
        ("partial and sparse", bad, index({"a": 1}, partialFilterExpression={"a": 1}, sparse=True)),
        ("partial $where", (bad, 2, 224), index({"a": 1}, partialFilterExpression={"$where": "1"})),
        ("empty name", bad, index({"a": 1}, "")), ("name *", (2, bad), index({"a": 1}, "*")), ("name of a number", 14, index({"a": 1}, 5)),
        ("name with NUL", (2, bad, 14), index({"a": 1}, "a\0b")), ("name of 5000", (bad, 0), index({"lng": 1}, "n" * 5000)),
        ("_id descending", (2, bad), index({"_id": -1}, "_id_")), ("_id sparse", 197, index({"_id": 1}, "_id_", sparse=True)),
        ("_id partial", (197, bad, 2), index({"_id": 1}, "_id_", partialFilterExpression={"a": 1})), ("_id hashed unique", (16764, bad), index({"_id": "hashed"}, unique=True)),
        ("text", (bad, 238, 115, 9, 59), index({"a": "text"})), ("2dsphere", (bad, 238, 115, 9), index({"a": "2dsphere"})),
        ("wildcard", 0, index({"$**": 1}, "wild")), ("wildcard descending with an option", bad, index({"$**": -1}, "w2", unique=True)),
        ("wildcard in the middle", bad, index({"a.$**.b": 1}, "w3")), ("projection without a wildcard", (2, bad), index({"a": 1}, "w4", wildcardProjection={"a": 1})),
        ("collation", 0, index({"a": 1}, "de", collation={"locale": "de"})),
        ("locale nonsense", (2, 238), index({"a": 1}, collation={"locale": "nonsense"})),
        ("65 indexes", bad, {"createIndexes": "x", "indexes": [{"key": {f"k{i}": 1}, "name": f"k{i}"} for i in range(70)]}),
        ("drop _id", 72, {"dropIndexes": "l", "index": "_id_"}), ("drop no index", 27, {"dropIndexes": "l", "index": "nothing"}),
        ("drop by a number", (14, 27), {"dropIndexes": "l", "index": 5}), ("list of no collection", 26, {"listIndexes": "nothing"}),
    ):
        expect(client, f"index: {what}", codes, command)
    expect(client, "index", 0, index({"q": 1}, "q"))
    expect(client, "index: other options under a name", (85, 86), index({"q": 1}, "q", unique=True))
    expect(client, "index: other key under a name", 86, index({"r": 1}, "q"))
    expect(client, "index: parallel arrays", 0, index({"p": 1, "r": 1}, "pr"))
    expect(client, "insert of parallel arrays", 171, insert({"p": [1, 2], "r": [1, 2]}, coll="x"))
    expect(client, "insert of 200000 keys", (201, 0), insert({"q": list(range(200000))}, coll="x"))
    expect(client, "insert of a key of 1 MiB", (0, 17280), insert({"q": "k" * MIB}, coll="x"))
    expect(client, "find it", 0, find({"q": "k" * MIB}, coll="x"))


def raw_index(key):
    return raw_doc(element(2, "createIndexes", b"\2\0\0\0x\0"),
                   element(4, "indexes", raw_doc(element(3, "0", raw_doc(element(3, "key", key), element(2, "name", b"\2\0\0\0d\0"))))),
                   element(2, "$db", b"\5\0\0\0test\0"))


def attack_sharding(client):
    def admin(what, codes, command):
        return expect(client, f"sharding: {what}", codes, command, db="admin")

    refused = (2, 9, 14, 20, 67, 72, 16764)
    for key in ({}, {"a": 0}, {"a": 2}, {"a": -1}, {"a": "x"}, {"a": "hashed", "b": "hashed"}, {"": 1}, {"a.": 1}, {"$a": 1},
                {"a.$": 1}, {"a": 1, "a.b": 1}, {"a": None}, {"a": float("nan")}, {"a": [1]}, {f"k{i}": 1 for i in range(40)}):
        admin(f"key {str(key)[:40]}", refused, {"shardCollection": "test.k", "key": key})
    for count in (-1, 1e300, float("nan"), 10**6, "x"):
        admin(f"{count} initial chunks", refused + (51024,), {"shardCollection": "test.k", "key": {"a": "hashed"}, "numInitialChunks": count})
    admin("unique hashed", refused, {"shardCollection": "test.k", "key": {"a": "hashed"}, "unique": True})
    admin("a ranged key", 0, {"shardCollection": "test.k", "key": {"a": 1, "b": 1}})
    admin("another key", (20, 23), {"shardCollection": "test.k", "key": {"c": 1}})
    for what, more in (("nothing", {}), ("two", {"middle": {"a": 1, "b": 1}, "find": {"a": 1, "b": 1}}), ("half a key", {"middle": {"a": 1}}),
                       ("another key", {"middle": {"x": 1}}), ("a number", {"middle": 1}), ("an array", {"middle": {"a": [1], "b": 1}}),
                       ("the lowest", {"middle": {"a": MinKey(), "b": MinKey()}}), ("the highest", {"middle": {"a": MaxKey(), "b": MaxKey()}}),
                       ("no bounds", {"bounds": []}), ("one bound", {"bounds": [{"a": 1, "b": 1}]}), ("bounds of numbers", {"bounds": [1, 2]}),
                       ("bounds of no chunk", {"bounds": [{"a": 1, "b": 1}, {"a": 2, "b": 2}]}), 
                       ("text", {"middle": "x"})):
        admin(f"split at {what}", refused + (8, 61, 62, 119), {"split": "test.k", **more})
    admin("split", 0, {"split": "test.k", "middle": {"a": 5, "b": 5}})
    admin("split again", refused + (8, 119), {"split": "test.k", "middle": {"a": 5, "b": 5}})
    admin("split of no collection", (118, 26, 2, 73), {"split": "test.nothing", "middle": {"a": 1}})
    for host in ("", "x", "x/", "/x:1", "s/127.0.0.1:99999", "s/127.0.0.1:0", "s/" + ",".join(f"h{i}:1" for i in range(200)), "s/a:1,a:1", "s/h:1/x"):
        admin(f"addShard {host[:30]!r}", refused + (6, 7, 9, 96, 133, 89, 50, 70, 107), {"addShard": host, "maxTimeMS": 1000})
    admin("addShard of a router", (6, 7, 9, 20, 96, 133, 89, 50, 70, 2), {"addShard": f"s/127.0.0.1:{client.port}", "maxTimeMS": 1000})
    expect(client, "key too long to split", 0, insert({"a": 1, "b": 1}, coll="k"))
    expect(client, "document without the key", (0, 61), insert({"c": 1}, coll="k"))
    expect(client, "array in the key", (61, 2, 31, 171), insert({"a": [1], "b": 2}, coll="k"))
    expect(client, "upsert without the key", (0, 61, 41), update({"$set": {"z": 1}}, {"z": 5}, coll="k", upsert=True))
    expect(client, "unique index without the key", (67, 13331), {"createIndexes": "k", "indexes": [{"key": {"z": 1}, "name": "z", "unique": True}]})
    for coll in ("chunks", "shards", "collections", "databases", "version", "operations"):
        expect(client, f"write to config.{coll}", (13, 20, 2, 73), {"insert": coll, "documents": [{"_id": "x"}]}, db="config")
        expect(client, f"delete from config.{coll}", (13, 20, 2, 73), {"delete": coll, "deletes": [{"q": {}, "limit": 0}]}, db="config")
        expect(client, f"drop of config.{coll}", (13, 20, 2, 73), {"drop": coll}, db="config")
    expect(client, "config settings of nonsense", (2, 9, 14, 20, 13, 72), {"update": "settings", "updates": [{"q": {"_id": "balancer"}, "u": {"$set": {"mode": 5}}, "upsert": True}]}, db="config")
    for db in ("config", "admin", "local"):
        expect(client, f"dropDatabase {db}", (13, 20, 2, 73), {"dropDatabase": 1}, db=db)


def main():
    client = Client(int(sys.argv[1]))
    only = sys.argv[2:]
    for attack in (attack_names, attack_documents, attack_queries, attack_updates, attack_cursors, attack_indexes, attack_sharding):
        if not only or attack.__name__[7:] in only:
            began = time.monotonic()
            attack(client)
            print(f"limits: {attack.__name__[7:]} ({time.monotonic() - began:.1f} s)")
    print("limits:", f"{len(failures)} FAILED" if failures else "passed")
    sys.exit(1 if failures else 0)


main()
