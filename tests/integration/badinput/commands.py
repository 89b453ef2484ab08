"""Every command of the router with every field replaced by values that it does not expect: an answer with MongoDB's
envelope each time, and never an internal error."""
import copy
import datetime
import sys
import time

import bson
from bson import Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from bson.binary import Binary
from bson.code import Code
from bson.decimal128 import Decimal128

from wire import CLOSED, Client

FAILURES_MAX = 10
SLOW_S = 8
LOST = 9001  # a shard went away: no input may do that

HOSTILE = {
    "minus one": -1, "int32 min": -(1 << 31), "int64 min": Int64(-(1 << 63)), "int64 max": Int64((1 << 63) - 1),
    "half": 0.5, "nan": float("nan"), "infinity": float("inf"), "minus infinity": float("-inf"), "1e300": 1e300,
    "decimal nan": Decimal128("NaN"), "decimal": Decimal128("1E+6000"), "true": True, "null": None, "zero": 0,
    "empty string": "", "text": "x", "dollar": "$x", "nul": "a\0b", "dots": "..", "long": "n" * 70000,
    "document": {"x": 1}, "empty document": {}, "operator": {"$x": 1}, "array": [1, "x", None], "empty array": [],
    "array of documents": [{}, {"x": 1}], "nested array": [[[]]], "objectid": ObjectId(b"\1" * 12),
    "date": datetime.datetime(2020, 1, 1), "regex": Regex("(", "i"), "binary": Binary(b"\0" * 16, 4),
    "min key": MinKey(), "max key": MaxKey(), "timestamp": Timestamp(1, 1), "code": Code("x"),
    "code with scope": Code("x", {"a": 1}),
}

# A good command of each kind: each field is replaced in turn, then left out.
COMMANDS = [
    {"insert": "c", "documents": [{"_id": 900}], "ordered": True, "bypassDocumentValidation": False},
    {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"a": 1}}, "multi": False, "upsert": False,
                                 "hint": {"_id": 1}, "arrayFilters": [], "collation": {"locale": "simple"}, "c": {}}],
     "ordered": True, "let": {"v": 1}},
    {"delete": "c", "deletes": [{"q": {"_id": 1}, "limit": 1, "hint": {"_id": 1}}], "ordered": True, "let": {"v": 1}},
    {"bulkWrite": 1, "ops": [{"insert": 0, "document": {"_id": 901}},
                             {"update": 0, "filter": {"_id": 1}, "updateMods": {"$set": {"a": 2}}, "multi": False}],
     "nsInfo": [{"ns": "test.c"}], "ordered": True, "errorsOnly": False, "cursor": {"batchSize": 1}, "$db": "admin"},
    {"find": "c", "filter": {"a": {"$gt": 0}}, "projection": {"a": 1}, "sort": {"a": 1}, "skip": 0, "limit": 2,
     "batchSize": 1, "singleBatch": True, "hint": {"_id": 1}, "let": {"v": 1}, "collation": {"locale": "simple"},
     "min": {"_id": 0}, "max": {"_id": 9}, "returnKey": False, "showRecordId": False, "tailable": False,
     "awaitData": False, "noCursorTimeout": False, "allowPartialResults": False, "allowDiskUse": False,
     "maxTimeMS": 10000, "comment": "x", "readConcern": {"level": "local"}, "$readPreference": {"mode": "primary"}},
    {"find": "s", "filter": {"k": 5}, "sort": {"a": 1}, "skip": 1, "limit": 3},
    {"getMore": Int64(77), "collection": "c", "batchSize": 1, "maxTimeMS": 100},
    {"killCursors": "c", "cursors": [Int64(77)]},
    {"count": "c", "query": {"a": 1}, "limit": 1, "skip": 0, "hint": {"_id": 1}, "collation": {"locale": "simple"}},
    {"distinct": "c", "key": "a", "query": {"a": 1}, "collation": {"locale": "simple"}},
    {"aggregate": "c", "pipeline": [{"$match": {"a": 1}}, {"$sort": {"a": 1}}, {"$group": {"_id": "$a"}}],
     "cursor": {"batchSize": 1}, "allowDiskUse": True, "hint": {"_id": 1}, "let": {"v": 1}, "explain": False,
     "bypassDocumentValidation": False, "collation": {"locale": "simple"}},
    {"aggregate": "s", "pipeline": [{"$match": {"a": 1}}, {"$limit": 2}, {"$skip": 1}, {"$unwind": "$a"},
                                    {"$project": {"a": 1}}, {"$count": "n"}], "cursor": {}},
    {"aggregate": 1, "pipeline": [{"$currentOp": {}}, {"$match": {}}], "cursor": {}, "$db": "admin"},
    {"findAndModify": "c", "query": {"_id": 1}, "sort": {"a": 1}, "update": {"$set": {"a": 1}}, "new": True,
     "upsert": False, "fields": {"a": 1}, "arrayFilters": [], "hint": {"_id": 1}, "let": {"v": 1}, "remove": False,
     "bypassDocumentValidation": False, "collation": {"locale": "simple"}},
    {"findAndModify": "s", "query": {"k": 1}, "remove": True, "sort": {"k": 1}},
    {"create": "made", "capped": False, "size": 1, "max": 1, "validator": {}, "viewOn": "c", "pipeline": [],
     "collation": {"locale": "simple"}, "timeseries": {"timeField": "t"}, "expireAfterSeconds": 1,
     "clusteredIndex": {"key": {"_id": 1}, "unique": True}, "changeStreamPreAndPostImages": {"enabled": False}},
    {"drop": "made"},
    {"dropDatabase": 1, "$db": "dropped"},
    {"collMod": "c", "index": {"keyPattern": {"a": 1}, "expireAfterSeconds": 1, "hidden": True}, "validator": {}},
    {"renameCollection": "test.c", "to": "test.d", "dropTarget": False, "$db": "admin"},
    {"convertToCapped": "c", "size": 1},
    {"cloneCollectionAsCapped": "c", "toCollection": "d", "size": 1},
    {"explain": {"find": "c", "filter": {}}, "verbosity": "queryPlanner"},
    {"mapReduce": "c", "map": Code("x"), "reduce": Code("x"), "out": {"inline": 1}},
    {"createIndexes": "made", "indexes": [{"key": {"a": 1, "b": -1}, "name": "i", "unique": False, "sparse": False,
                                           "partialFilterExpression": {"a": {"$gt": 1}}, "expireAfterSeconds": 5,
                                           "hidden": False, "v": 2, "collation": {"locale": "simple"},
                                           "background": True, "wildcardProjection": {"a": 1}, "weights": {"a": 1}}],
     "commitQuorum": "majority"},
    {"dropIndexes": "made", "index": "i"},
    {"listIndexes": "c", "cursor": {"batchSize": 1}},
    {"createSearchIndexes": "c", "indexes": []},
    {"listCollections": 1, "filter": {"name": "c"}, "nameOnly": True, "authorizedCollections": True,
     "cursor": {"batchSize": 1}},
    {"listDatabases": 1, "filter": {"name": "test"}, "nameOnly": True, "authorizedDatabases": True, "$db": "admin"},
    {"collStats": "c", "scale": 1},
    {"dbStats": 1, "scale": 1, "freeStorage": 0},
    {"validate": "c", "full": False, "repair": False, "metadata": False},
    {"enableSharding": "other", "primaryShard": "shard0", "$db": "admin"},
    {"shardCollection": "test.t", "key": {"k": 1}, "unique": False, "numInitialChunks": 2,
     "presplitHashedZones": False, "collation": {"locale": "simple"}, "timeseries": {"timeField": "t"}, "$db": "admin"},
    {"split": "test.s", "middle": {"k": 5}, "$db": "admin"},
    {"split": "test.s", "find": {"k": 5}, "$db": "admin"},
    {"split": "test.s", "bounds": [{"k": MinKey()}, {"k": MaxKey()}], "$db": "admin"},
    {"getShardVersion": "test.s", "$db": "admin"},
    {"hello": 1, "helloOk": True, "client": {"application": {"name": "x"}, "driver": {"name": "d", "version": "1"}},
     "compression": ["zlib"], "saslSupportedMechs": "admin.x", "speculativeAuthenticate": {"x": 1},
     "topologyVersion": {"processId": ObjectId(), "counter": Int64(1)}, "maxAwaitTimeMS": 10, "loadBalanced": False},
    {"getParameter": 1, "featureCompatibilityVersion": 1, "$db": "admin"},
    {"getLog": "global", "$db": "admin"},
    {"serverStatus": 1, "repl": 0},
    {"connectionStatus": 1, "showPrivileges": True},
    {"endSessions": [{"id": Binary(b"\1" * 16, 4)}]},
    {"refreshSessions": [{"id": Binary(b"\1" * 16, 4)}]},
    {"killSessions": [{"id": Binary(b"\1" * 16, 4)}]},
    {"ping": 1, "lsid": {"id": Binary(b"\1" * 16, 4)}, "txnNumber": Int64(1), "autocommit": False, "stmtId": 1,
     "startTransaction": True, "writeConcern": {"w": 1, "j": True, "wtimeout": 1}, "apiVersion": "1",
     "apiStrict": False, "apiDeprecationErrors": False, "$clusterTime": {"clusterTime": Timestamp(1, 1)}},
    {"insert": "c", "documents": [{"_id": 902}], "lsid": {"id": Binary(b"\1" * 16, 4)}, "txnNumber": Int64(1),
     "writeConcern": {"w": "majority", "j": True, "wtimeout": 1}, "stmtIds": [1]},
    {"commitTransaction": 1, "lsid": {"id": Binary(b"\1" * 16, 4)}, "txnNumber": Int64(1), "autocommit": False,
     "$db": "admin"},
    {"update": "c", "updates": [{"q": {}, "u": [{"$set": {"a": 1}}, {"$unset": "b"}, {"$replaceWith": {"a": 1}}],
                                 "multi": True}]},
    {"update": "c", "updates": [{"q": {"_id": 2}, "upsert": True, "arrayFilters": [{"x.y": 1}],
                                 "u": {"$inc": {"n": 1}, "$push": {"p": {"$each": [1], "$slice": 1, "$sort": 1,
                                                                         "$position": 0}},
                                       "$pull": {"q": 1}, "$bit": {"b": {"or": 1}}, "$rename": {"r": "t"},
                                       "$currentDate": {"d": {"$type": "date"}}, "$addToSet": {"e": {"$each": [1]}},
                                       "$min": {"m": 1}, "$mul": {"o": 2}, "$pop": {"z": 1}, "$pullAll": {"y": [1]},
                                       "$setOnInsert": {"w": 1}, "$set": {"v.$[x].k": 1}, "$unset": {"u": 1}}}]},
    {"find": "c", "filter": {"$and": [{"a": {"$in": [1]}}], "$or": [{"a": 1}], "$nor": [{"a": 9}],
                             "b": {"$regex": "x", "$options": "i"}, "c": {"$mod": [2, 1]}, "d": {"$size": 1},
                             "e": {"$type": "int"}, "f": {"$exists": True}, "g": {"$all": [1]},
                             "h": {"$elemMatch": {"a": 1}}, "i": {"$not": {"$gt": 1}}, "j": {"$bitsAllSet": 1},
                             "$expr": {"$eq": ["$a", 1]}, "$comment": "x", "k": {"$nin": [1]}, "l": {"$ne": 1},
                             "m": {"$jsonSchema": {}}, "n": {"$geoWithin": {}}, "$where": "1", "$text": {"$search": "x"},
                             "o": {"$lte": 1}}},
    {"find": "c", "projection": {"a": {"$slice": [1, 1]}, "b": {"$elemMatch": {"x": 1}}, "c": {"$add": [1, "$x"]},
                                 "d": "$a", "e.f": 1, "g": {"$meta": "textScore"}}},
    {"aggregate": "s", "cursor": {}, "pipeline": [
        {"$match": {"k": {"$gt": 1}}}, {"$addFields": {"x": {"$add": ["$k", 1]}}}, {"$set": {"y": 1}},
        {"$group": {"_id": {"a": "$k"}, "n": {"$sum": 1}, "f": {"$first": "$k"}, "p": {"$push": "$k"}}},
        {"$bucket": {"groupBy": "$n", "boundaries": [0, 5], "default": "x", "output": {"n": {"$sum": 1}}}},
        {"$bucketAuto": {"groupBy": "$n", "buckets": 2, "granularity": "R5"}}, {"$sortByCount": "$n"},
        {"$facet": {"a": [{"$count": "n"}]}}, {"$replaceRoot": {"newRoot": {"a": 1}}}, {"$sample": {"size": 1}},
        {"$redact": "$$KEEP"}, {"$unwind": {"path": "$a", "includeArrayIndex": "i",
                                            "preserveNullAndEmptyArrays": True}}]},
    {"aggregate": "c", "cursor": {}, "pipeline": [{"$lookup": {"from": "s", "localField": "a", "foreignField": "b",
                                                               "as": "x"}}]},
    {"aggregate": "c", "cursor": {}, "pipeline": [{"$out": "o"}]},
    {"aggregate": "c", "cursor": {}, "pipeline": [{"$merge": {"into": "o"}}]},
    {"aggregate": "c", "cursor": {}, "pipeline": [{"$collStats": {"storageStats": {"scale": 1}, "count": {}}}]},
    {"aggregate": 1, "cursor": {}, "pipeline": [{"$shardedDataDistribution": {}}], "$db": "admin"},
    {"addShard": "shardx/127.0.0.1:1", "name": "shardx", "maxSize": 1, "maxTimeMS": 50, "$db": "admin"},
]
# Expressions, each argument replaced in turn.
EXPRESSIONS = {
    "$add": [1, 2], "$subtract": [3, 2], "$multiply": [2, 3], "$divide": [1, 2], "$mod": [5, 2], "$pow": [2, 3],
    "$log": [8, 2], "$round": [1.5, 1], "$trunc": [1.5, 1], "$abs": 1, "$ceil": 1, "$floor": 1, "$sqrt": 4, "$exp": 1,
    "$ln": 1, "$log10": 1, "$range": [0, 5, 1], "$slice": [[1, 2, 3], 1, 1], "$arrayElemAt": [[1, 2], 0],
    "$concatArrays": [[1], [2]], "$indexOfArray": [[1, 2], 1, 0, 2], "$in": [1, [1]], "$size": [[1]],
    "$reverseArray": [[1]], "$zip": {"inputs": [[1], [2]], "useLongestLength": True, "defaults": [0, 0]},
    "$map": {"input": [1], "as": "x", "in": "$$x"}, "$filter": {"input": [1], "as": "x", "cond": True, "limit": 1},
    "$reduce": {"input": [1], "initialValue": 0, "in": {"$add": ["$$value", "$$this"]}},
    "$sortArray": {"input": [1], "sortBy": 1}, "$firstN": {"n": 1, "input": [1]}, "$maxN": {"n": 1, "input": [1]},
    "$substrBytes": ["abc", 0, 1], "$substrCP": ["abc", 0, 1], "$split": ["a-b", "-"], "$concat": ["a", "b"],
    "$indexOfBytes": ["abc", "b", 0, 3], "$indexOfCP": ["abc", "b", 0, 3], "$toUpper": "a", "$strLenCP": "a",
    "$trim": {"input": " a ", "chars": " "}, "$replaceAll": {"input": "a", "find": "a", "replacement": "b"},
    "$regexMatch": {"input": "a", "regex": "a", "options": "i"}, "$regexFindAll": {"input": "a", "regex": "a"},
    "$strcasecmp": ["a", "b"], "$dateToString": {"date": datetime.datetime(2020, 1, 1), "format": "%Y", "timezone": "UTC",
                                                 "onNull": "x"},
    "$dateFromString": {"dateString": "2020-01-01", "format": "%Y-%m-%d", "timezone": "UTC"},
    "$dateAdd": {"startDate": datetime.datetime(2020, 1, 1), "unit": "day", "amount": 1, "timezone": "UTC"},
    "$dateDiff": {"startDate": datetime.datetime(2020, 1, 1), "endDate": datetime.datetime(2021, 1, 1), "unit": "day"},
    "$dateTrunc": {"date": datetime.datetime(2020, 1, 1), "unit": "day", "binSize": 1, "startOfWeek": "mon"},
    "$dateFromParts": {"year": 2020, "month": 1, "day": 1, "hour": 1, "minute": 1, "second": 1, "millisecond": 1},
    "$dateToParts": {"date": datetime.datetime(2020, 1, 1), "iso8601": True}, "$year": datetime.datetime(2020, 1, 1),
    "$convert": {"input": "1", "to": "int", "onError": 0, "onNull": 0}, "$toInt": "1", "$toDate": 1, "$toObjectId": "x",
    "$toDecimal": "1", "$toString": 1, "$toBool": 1, "$toLong": 1.5, "$toDouble": "1", "$type": 1, "$isNumber": 1,
    "$cond": {"if": True, "then": 1, "else": 2}, "$switch": {"branches": [{"case": True, "then": 1}], "default": 2},
    "$ifNull": [None, 1], "$let": {"vars": {"x": 1}, "in": "$$x"}, "$mergeObjects": [{"a": 1}],
    "$objectToArray": {"a": 1}, "$arrayToObject": [[["a", 1]]], "$setField": {"field": "a", "input": {}, "value": 1},
    "$getField": {"field": "a", "input": {}}, "$setUnion": [[1], [2]], "$setIsSubset": [[1], [2]],
    "$cmp": [1, 2], "$eq": [1, 2], "$and": [True], "$not": [True], "$literal": 1, "$rand": {}, "$bitAnd": [1, 2],
    "$binarySize": "a", "$bsonSize": {}, "$max": [1, 2], "$avg": [1, 2], "$sum": [1, 2], "$stdDevPop": [1, 2],
    "$anyElementTrue": [[1]], "$allElementsTrue": [[1]], "$tsSecond": Timestamp(1, 1), "$sin": 1, "$atan2": [1, 1],
}

failures = []


def paths(value, prefix=()):
    """Every place in a command, outermost first."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        if key == "$db" or (key == "maxTimeMS" and "addShard" in value):  # it would wait its own time
            continue
        yield prefix + (key,)
        yield from paths(inner, prefix + (key,))


def replaced(command, path, value, remove=False):
    copied = copy.deepcopy(command)
    at = copied
    for key in path[:-1]:
        at = at[key]
    if remove:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return copied


def describe(command, path, name):
    return f"{next(iter(command))}: {'.'.join(map(str, path))} = {name}"


def fail(what, problem):
    failures.append(what)
    print("FAILED:", what, problem)
    if len(failures) == FAILURES_MAX:
        print("commands: FAILED too often")
        sys.exit(1)


def check_reply(what, reply, duration_s):
    problem = None
    if reply == CLOSED:
        problem = "closed the connection"
    elif "ok" not in reply or reply["ok"] not in (0, 1):
        problem = f"no ok: {str(reply)[:200]}"
    elif reply["ok"] == 0 and not all(field in reply for field in ("code", "codeName", "errmsg")):
        problem = f"half an error: {str(reply)[:200]}"
    elif ({reply.get("code")} | {error.get("code") for error in reply.get("writeErrors", [])}) & {1, 8, LOST}:
        problem = f"internal error: {str(reply)[:300]}"
    elif duration_s > SLOW_S:
        problem = f"took {duration_s:.1f} s"
    if problem:
        fail(what, problem)


def send(client, what, command, db="test"):
    try:
        began = time.monotonic()
        reply = client.run(command, db)
        check_reply(what, reply, time.monotonic() - began)
        return reply
    except TimeoutError:
        fail(what, "no answer")
    except bson.errors.InvalidBSON as error:
        fail(what, f"the reply is not BSON: {error}")
    client.connect()
    return None


def log(what, reply, verbose):
    if not verbose or not isinstance(reply, dict):
        return
    errors = reply.get("writeErrors")
    outcome = "ok"
    if reply["ok"] == 0:
        outcome = f"{reply.get('code')} {reply.get('errmsg', '')[:90]}"
    elif reply["ok"] == 1 and "cursor" not in reply and "value" not in reply:
        outcome += " " + str({k: v for k, v in reply.items() if k != "ok"})[:60]
    if errors:
        outcome = f"write error {errors[0].get('code')} {errors[0].get('errmsg', '')[:90]}"
    print(f"{what:70s} {outcome}")


def set_up(client):
    for command in ({"shardCollection": "test.s", "key": {"k": 1}, "$db": "admin"}, {"split": "test.s", "middle": {"k": 10}, "$db": "admin"},
                    {"insert": "c", "documents": [{"_id": i, "a": i, "b": "x" * i} for i in range(5)]},
                    {"insert": "s", "documents": [{"_id": i, "k": i, "a": [i]} for i in range(20)]}):
        client.run(command)


def attack_fields(client, verbose, only):
    for command in COMMANDS:
        if only and next(iter(command)) not in only:
            continue
        log(describe(command, (), "good"), send(client, describe(command, (), "good"), command), verbose)
        for path in paths(command):
            for name, value in HOSTILE.items():
                what = describe(command, path, name)
                log(what, send(client, what, replaced(command, path, value)), verbose)
            if len(path) > 1 or path[0] != next(iter(command)):
                what = describe(command, path, "missing")
                log(what, send(client, what, replaced(command, path, None, remove=True)), verbose)
        for extra in ("unknownField", "$unknownField", "$sherdVersion", "$sherdDeadlineMs", "$sherdHello", "$sherdPing",
                      "$sherdSortKeys"):
            reply = send(client, describe(command, (extra,), 1), {**command, extra: 1})
            log(describe(command, (extra,), 1), reply, verbose)
            if extra.startswith("$sherd") and reply and reply.get("code") != 40415:
                fail(describe(command, (extra,), 1), f"was not refused: {str(reply)[:200]}")


def attack_expressions(client, verbose, only):
    for operator, good in EXPRESSIONS.items():
        if only and operator not in only:
            continue
        whole = {operator: good}
        variants = [("good", whole)]
        for path in paths(whole):
            variants += [(f"{path} {name}", replaced(whole, path, {"$literal": value} if name in ("dollar", "operator") else value))
                         for name, value in HOSTILE.items()]
            if len(path) > 1:
                variants.append((f"{path} missing", replaced(whole, path, None, remove=True)))
        for name, expression in variants:
            command = {"aggregate": "c", "pipeline": [{"$limit": 1}, {"$project": {"x": expression}}], "cursor": {}}
            log(f"{operator} {name}", send(client, f"{operator} {name}", command), verbose)


def main():
    port = int(sys.argv[1])
    verbose = "-v" in sys.argv
    only = [word for word in sys.argv[2:] if not word.startswith("-")]
    client = Client(port, timeout=SLOW_S)
    set_up(client)
    began = time.monotonic()
    attack_fields(client, verbose, only)
    attack_expressions(client, verbose, only)
    print(f"commands: {'FAILED' if failures else 'passed'} ({time.monotonic() - began:.0f} s)")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
