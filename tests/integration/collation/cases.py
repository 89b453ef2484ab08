#!/usr/bin/python3
"""Collations through a router: every command that takes one, defaults of collections and indexes, sharded and not.

usage: cases.py URI
"""
import sys

from bson import Regex, SON
from pymongo import MongoClient
from pymongo.errors import OperationFailure

CI = {"locale": "en", "strength": 2}
BASE = {"locale": "en", "strength": 1}
SIMPLE = {"locale": "simple"}
NUMERIC = {"locale": "en", "numericOrdering": True}

client = MongoClient(sys.argv[1])
db = client["collation_cases"]
failed = 0
passed = 0


def check(name, got, want):
    global failed, passed
    if got == want:
        passed += 1
    else:
        failed += 1
        print(f"FAILED {name}: got {got!r}, want {want!r}")


def run(command, database=None):
    """The reply, or the code of the error (of the first statement's, where a write has one)."""
    try:
        reply = (database if database is not None else db).command(command)
    except OperationFailure as error:
        return error.code
    if reply.get("writeErrors"):
        return reply["writeErrors"][0]["code"]
    return reply


def docs(command):
    """All documents of a cursor, with batches of two, so that a cursor keeps its collation."""
    command = SON(command)
    if "find" in command:
        command["batchSize"] = 2
    else:
        command["cursor"] = {"batchSize": 2}
    reply = run(command)
    if isinstance(reply, int):
        return reply
    found = list(reply["cursor"]["firstBatch"])
    cursor = reply["cursor"]["id"]
    while cursor:
        reply = db.command(SON([("getMore", cursor), ("collection", command.get("find", command.get("aggregate"))), ("batchSize", 2)]))
        found += reply["cursor"]["nextBatch"]
        cursor = reply["cursor"]["id"]
    return found


def without(value, names):
    if isinstance(value, dict):
        return {name: without(inner, names) for name, inner in value.items() if name not in names}
    return [without(item, names) for item in value] if isinstance(value, list) else value


class Cases:
    """One collection, unsharded or sharded by a hash of _id."""

    def __init__(self, kind):
        self.kind = kind
        self.name = "c"

    def fresh(self, documents, collation=None, indexes=()):
        db.drop_collection(self.name)
        if collation:
            run(SON([("create", self.name), ("collation", collation)]))
        if self.kind == "sharded":
            shard = SON([("shardCollection", f"{db.name}.{self.name}"), ("key", {"_id": "hashed"}), ("collation", SIMPLE)])
            check("shardCollection", isinstance(run(shard, client.admin), dict), True)
        for index in indexes:
            run(SON([("createIndexes", self.name), ("indexes", [index])]))
        if documents:
            db[self.name].insert_many(documents)

    def check(self, name, got, want):
        check(f"{self.kind} {name}", got, want)

    def ids(self, query, collation=None, **options):
        command = SON([("find", self.name), ("filter", query), ("sort", {"_id": 1})])
        command.update(options)
        if collation:
            command["collation"] = collation
        found = docs(command)
        return found if isinstance(found, int) else [doc["_id"] for doc in found]

    def values(self, field="a"):
        return [doc.get(field) for doc in docs(SON([("find", self.name), ("sort", {"_id": 1})]))]

    def aggregate(self, pipeline, collation=None):
        command = SON([("aggregate", self.name), ("pipeline", pipeline)])
        if collation:
            command["collation"] = collation
        return docs(command)

    def update(self, query, change, collation, **options):
        statement = {"q": query, "u": change, "collation": collation, **options}
        return run(SON([("update", self.name), ("updates", [statement])]))

    def plan(self, query, collation=None, **options):
        """The winning plan's stages and indexes as text."""
        find = SON([("find", self.name), ("filter", query), *options.items()])
        if collation:
            find["collation"] = collation
        explained = db.command(SON([("explain", find), ("verbosity", "queryPlanner")]))
        return str(without(explained["queryPlanner"]["winningPlan"], ("rejectedPlans", "parsedQuery", "serverInfo")))

    # --- filters ---

    def filters(self):
        self.fresh([{"_id": 1, "a": "resume"}, {"_id": 2, "a": "RESUME"}, {"_id": 3, "a": "résumé"}, {"_id": 4, "a": "sum"},
                    {"_id": 5, "a": ["x", "Resume"]}, {"_id": 6, "a": {"x": "resume"}}, {"_id": 7, "a": {"X": "resume"}},
                    {"_id": 8, "a": 5}, {"_id": 9, "a": None}, {"_id": 10}])
        for query, base, ci in (
                ({"a": "resume"}, [1, 2, 3, 5], [1, 2, 5]),
                ({"a": {"$ne": "resume"}}, [4, 6, 7, 8, 9, 10], [3, 4, 6, 7, 8, 9, 10]),
                ({"a": {"$gt": "RESUME"}}, [4, 5], [3, 4, 5]),
                ({"a": {"$gte": "RESUME", "$lt": "s"}}, [1, 2, 3, 5], [1, 2, 3, 5]),
                ({"a": {"$lte": "résumé"}}, [1, 2, 3, 5], [1, 2, 3, 5]),
                ({"a": {"$in": ["RÉSUMÉ", "resume", 5]}}, [1, 2, 3, 5, 8], [1, 2, 3, 5, 8]),
                ({"a": {"$in": ["Sum", None]}}, [4, 9, 10], [4, 9, 10]),
                ({"a": {"$nin": ["Resume", 5]}}, [4, 6, 7, 9, 10], [3, 4, 6, 7, 9, 10]),
                ({"a": {"$all": ["X", "resume"]}}, [5], [5]),
                ({"a": {"$elemMatch": {"$eq": "RESUME"}}}, [5], [5]),
                ({"a": ["X", "RESUME"]}, [5], [5]),
                ({"a": {"x": "RESUME"}}, [6], [6]),  # names of fields compare by bytes
                ({"a.x": "RESUME"}, [6], [6]),
                ({"a": {"$not": {"$gt": "a"}}}, [6, 7, 8, 9, 10], [6, 7, 8, 9, 10]),
                ({"$or": [{"a": "SUM"}, {"a.X": "Resume"}]}, [4, 7], [4, 7]),
                ({"$expr": {"$eq": ["$a", "RESUME"]}}, [1, 2, 3], [1, 2]),
                ({"$expr": {"$in": ["$a", ["RESUME"]]}}, [1, 2, 3], [1, 2]),
                ({"a": {"$regex": "^RES"}}, [2], [2]),  # a regular expression has its own rules
                ({"a": {"$in": [Regex("^r")]}}, [1, 3], [1, 3])):
            self.check(f"{query} strength 1", self.ids(query, BASE), base)
            self.check(f"{query} strength 2", self.ids(query, CI), ci)
            for collation, want in ((BASE, base), (CI, ci)):
                reply = run(SON([("count", self.name), ("query", query), ("collation", collation)]))
                self.check(f"count {query}", reply if isinstance(reply, int) else reply["n"], len(want))
        self.check("simple", self.ids({"a": "resume"}, SIMPLE), [1])
        self.check("none", self.ids({"a": "resume"}), [1])
        self.check("empty", self.ids({"a": "resume"}, SON()), [1])

    # --- order ---

    def order(self):
        words = ["ångström", "zebra", "Äpfel", "apfel", "öl", "chico", "cubo", "llama", "lz", "ñu", "nz", "10", "9", "a-b", "ab", "a c"]
        self.fresh([{"_id": i, "a": word} for i, word in enumerate(words)])

        def sorted_by(collation, among, direction=1):
            found = docs(SON([("find", self.name), ("filter", {"a": {"$in": among}}), ("sort", SON([("a", direction), ("_id", 1)])),
                              ("collation", collation)]))
            by_find = [doc["a"] for doc in found]
            piped = self.aggregate([{"$match": {"a": {"$in": among}}}, {"$sort": SON([("a", direction), ("_id", 1)])}], collation)
            self.check(f"$sort {collation}", [doc["a"] for doc in piped], by_find)
            return by_find

        self.check("de", sorted_by({"locale": "de"}, ["zebra", "Äpfel", "apfel", "öl"]), ["apfel", "Äpfel", "öl", "zebra"])
        self.check("de down", sorted_by({"locale": "de"}, ["zebra", "Äpfel", "öl"], -1), ["zebra", "öl", "Äpfel"])
        self.check("sv", sorted_by({"locale": "sv"}, ["zebra", "Äpfel", "öl", "ångström"]), ["zebra", "ångström", "Äpfel", "öl"])
        self.check("es", sorted_by({"locale": "es"}, ["chico", "cubo", "llama", "lz", "ñu", "nz"]), ["chico", "cubo", "llama", "lz", "nz", "ñu"])
        self.check("es traditional", sorted_by({"locale": "es@collation=traditional"}, ["chico", "cubo", "llama", "lz", "ñu", "nz"]),
                   ["cubo", "chico", "lz", "llama", "nz", "ñu"])
        self.check("numbers as text", sorted_by({"locale": "en"}, ["10", "9"]), ["10", "9"])
        self.check("numbers", sorted_by(NUMERIC, ["10", "9"]), ["9", "10"])
        self.check("punctuation", sorted_by({"locale": "en"}, ["a-b", "ab", "a c"]), ["a c", "a-b", "ab"])
        self.check("shifted", sorted_by({"locale": "en", "alternate": "shifted"}, ["a-b", "a c"]), ["a-b", "ab", "a c"])
        shifted = {"locale": "en", "alternate": "shifted"}
        self.check("shifted equality", self.ids({"a": "ab"}, shifted), [13, 14])
        self.check("shifted spaces only", self.ids({"a": "ab"}, {**shifted, "maxVariable": "space"}), [14])
        self.fresh([{"_id": 1, "a": "i"}, {"_id": 2, "a": "I"}, {"_id": 3, "a": "ı"}, {"_id": 4, "a": "İ"}])
        turkish = {"locale": "tr", "strength": 1}
        self.check("tr i", self.ids({"a": "i"}, turkish), [1, 4])
        self.check("tr I", self.ids({"a": "I"}, turkish), [2, 3])
        self.fresh([{"_id": 1, "a": "Straße"}, {"_id": 2, "a": "STRASSE"}, {"_id": 3, "a": "Mueller"}, {"_id": 4, "a": "Müller"}])
        self.check("de ß", self.ids({"a": "strasse"}, {"locale": "de", "strength": 1}), [1, 2])
        self.check("de phonebook", self.ids({"a": "mueller"}, {"locale": "de@collation=phonebook", "strength": 1}), [3, 4])
        self.fresh([{"_id": i, "a": word} for i, word in enumerate(["coté", "côte", "cote", "côté"])])
        self.check("fr", [doc["a"] for doc in self.aggregate([{"$sort": {"a": 1}}], {"locale": "fr"})], ["cote", "coté", "côte", "côté"])
        self.check("fr_CA", [doc["a"] for doc in self.aggregate([{"$sort": {"a": 1}}], {"locale": "fr_CA"})], ["cote", "côte", "coté", "côté"])
        # Arrays sort by their least and greatest element in the collation.
        self.fresh([{"_id": 1, "a": ["b", "Z"]}, {"_id": 2, "a": ["C", "d"]}, {"_id": 3, "a": "a"}])
        for collation, up, down in ((CI, [3, 1, 2], [1, 2, 3]), (SIMPLE, [2, 1, 3], [2, 1, 3])):
            for direction, want in ((1, up), (-1, down)):
                found = docs(SON([("find", self.name), ("sort", {"a": direction}), ("collation", collation)]))
                self.check(f"arrays {collation} {direction}", [doc["_id"] for doc in found], want)
        found = docs(SON([("find", self.name), ("sort", {"a": 1}), ("limit", 1), ("skip", 1), ("collation", CI)]))
        self.check("skip and limit", [doc["_id"] for doc in found], [1])

    # --- groups ---

    def groups(self):
        self.fresh([{"_id": i, "a": a, "n": i} for i, a in enumerate(["x", "X", "y", "Y", "y", {"k": "Q"}, {"k": "q"}])])

        def sizes(stage):
            return sorted(doc["n"] for doc in self.aggregate([stage, {"$project": {"_id": 0, "n": "$n"}}], CI))

        self.check("$group", sizes({"$group": {"_id": "$a", "n": {"$sum": 1}}}), [2, 2, 3])
        self.check("$group by a document", sizes({"$group": {"_id": {"v": "$a"}, "n": {"$sum": 1}}}), [2, 2, 3])
        self.check("$sortByCount", sorted(doc["count"] for doc in self.aggregate([{"$sortByCount": "$a"}], CI)), [2, 2, 3])
        reply = run(SON([("distinct", self.name), ("key", "a"), ("collation", CI)]))
        self.check("distinct", len(reply["values"]) if isinstance(reply, dict) else reply, 3)
        reply = run(SON([("distinct", self.name), ("key", "a"), ("query", {"a": "Y"}), ("collation", CI)]))
        self.check("distinct with a query", [value.lower() for value in reply["values"]], ["y"])
        reply = run(SON([("distinct", self.name), ("key", "a")]))
        self.check("distinct, simple", len(reply["values"]), 6)
        one = self.aggregate([{"$match": {"n": {"$lt": 5}}}, {"$sort": {"_id": 1}},
                              {"$group": {"_id": None, "set": {"$addToSet": "$a"}, "lo": {"$min": "$a"}, "hi": {"$max": "$a"}}}], CI)[0]
        self.check("$addToSet", sorted(value.lower() for value in one["set"]), ["x", "y"])
        self.check("$min and $max", (one["lo"].lower(), one["hi"].lower()), ("x", "y"))
        buckets = self.aggregate([{"$match": {"n": {"$lt": 5}}}, {"$bucket": {"groupBy": "$a", "boundaries": ["X", "y", "z"]}}], CI)
        self.check("$bucket", [(doc["_id"], doc["count"]) for doc in buckets], [("X", 2), ("y", 3)])
        buckets = self.aggregate([{"$match": {"n": {"$lt": 5}}}, {"$bucketAuto": {"groupBy": "$a", "buckets": 2}}], CI)
        self.check("$bucketAuto", [doc["count"] for doc in buckets], [5] if len(buckets) == 1 else [2, 3])

    def expressions(self):
        self.fresh([{"_id": 1, "a": "B", "l": ["a", "B", "c"]}])
        for name, expression, want in (
                ("$eq", {"$eq": ["$a", "b"]}, True), ("$ne", {"$ne": ["$a", "b"]}, False), ("$gt", {"$gt": ["$a", "a"]}, True),
                ("$cmp", {"$cmp": ["$a", "b"]}, 0), ("$in", {"$in": ["b", "$l"]}, True), ("$indexOfArray", {"$indexOfArray": ["$l", "b"]}, 1),
                ("$setEquals", {"$setEquals": ["$l", ["A", "b", "C"]]}, True), ("$setIsSubset", {"$setIsSubset": [["b"], "$l"]}, True),
                ("$setUnion", {"$size": {"$setUnion": ["$l", ["A", "d"]]}}, 4), ("$setDifference", {"$setDifference": ["$l", ["b"]]}, ["a", "c"]),
                ("$setIntersection", {"$size": {"$setIntersection": ["$l", ["b", "z"]]}}, 1),
                ("$max", {"$max": ["$a", "a"]}, "B"), ("$min", {"$min": ["$a", "c"]}, "B"),
                ("$switch", {"$switch": {"branches": [{"case": {"$eq": ["$a", "b"]}, "then": 1}], "default": 2}}, 1),
                ("$cond", {"$cond": [{"$lt": ["$a", "c"]}, 1, 2]}, 1), ("$filter", {"$filter": {"input": "$l", "cond": {"$eq": ["$$this", "b"]}}}, ["B"]),
                ("$sortArray", {"$sortArray": {"input": ["b", "C", "a"], "sortBy": 1}}, ["a", "b", "C"]),
                ("a document", {"$eq": [{"x": ["$a"]}, {"x": ["b"]}]}, True), ("constants", {"$eq": ["x", "X"]}, True),
                ("$strcasecmp", {"$strcasecmp": ["é", "e"]}, 1), ("$indexOfBytes", {"$indexOfBytes": ["abc", "B"]}, -1)):
            found = self.aggregate([{"$project": {"_id": 0, "v": expression}}], CI)
            self.check(f"expression {name}", found if isinstance(found, int) else found[0]["v"], want)

    # --- writes ---

    def writes(self):
        self.fresh([{"_id": 1, "a": "x"}, {"_id": 2, "a": "X"}, {"_id": 3, "a": "y"}])
        reply = self.update({"a": "X"}, {"$set": {"b": 1}}, CI, multi=True)
        self.check("update", (reply["n"], reply["nModified"]), (2, 2))
        reply = run(SON([("delete", self.name), ("deletes", [{"q": {"a": "Y"}, "limit": 0, "collation": CI}])]))
        self.check("delete", reply["n"], 1)
        self.check("left", self.ids({}), [1, 2])
        self.fresh([{"_id": 1, "a": "x", "n": 1}])
        reply = self.update({"_id": 1, "a": "X"}, {"$inc": {"n": 1}}, CI, upsert=True)
        self.check("upsert that matches", (reply["n"], "upserted" in reply), (1, False))
        reply = self.update({"_id": 2, "a": "Q"}, {"$inc": {"n": 5}}, CI, upsert=True)
        self.check("upsert that inserts", (reply["n"], len(reply["upserted"])), (1, 1))
        self.check("upserted", self.values(), ["x", "Q"])
        for name, start, change, options, want in (
                ("positional", ["a", "b", "c"], {"$set": {"a.$": "hit"}}, {"q": {"a": "B"}}, ["a", "hit", "c"]),
                ("positional $elemMatch", [{"k": "a"}, {"k": "b"}], {"$set": {"a.$.k": "hit"}}, {"q": {"a": {"$elemMatch": {"k": "B"}}}},
                 [{"k": "a"}, {"k": "hit"}]),
                ("arrayFilters", ["a", "B", "b"], {"$set": {"a.$[e]": "hit"}}, {"arrayFilters": [{"e": "b"}]}, ["a", "hit", "hit"]),
                ("$addToSet there", ["a"], {"$addToSet": {"a": "A"}}, {}, ["a"]),
                ("$addToSet new", ["a"], {"$addToSet": {"a": {"$each": ["B", "b"]}}}, {}, ["a", "B"]),
                ("$pull", ["a", "A", "b"], {"$pull": {"a": "a"}}, {}, ["b"]),
                ("$pull condition", ["a", "B", "c"], {"$pull": {"a": {"$gte": "b"}}}, {}, ["a"]),
                ("$pull documents", [{"k": "A"}, {"k": "b"}], {"$pull": {"a": {"k": "a"}}}, {}, [{"k": "b"}]),
                ("$pullAll", ["a", "A", "b"], {"$pullAll": {"a": ["B", "a"]}}, {}, []),
                ("$min less", "B", {"$min": {"a": "a"}}, {}, "a"),
                ("$min equal", "a", {"$min": {"a": "A"}}, {}, "a"),
                ("$max greater", "a", {"$max": {"a": "B"}}, {}, "B"),
                ("$max equal", "a", {"$max": {"a": "A"}}, {}, "a"),
                ("$push sorted", ["b"], {"$push": {"a": {"$each": ["C", "a"], "$sort": 1}}}, {}, ["a", "b", "C"]),
                ("$push sorted documents", [{"k": "b"}], {"$push": {"a": {"$each": [{"k": "C"}], "$sort": {"k": -1}}}}, {}, [{"k": "C"}, {"k": "b"}]),
                ("pipeline", "B", [{"$set": {"a": {"$cond": [{"$eq": ["$a", "b"]}, "hit", "miss"]}}}], {}, "hit")):
            self.fresh([{"_id": 1, "a": start}])
            query = {"_id": 1, **options.pop("q", {})}
            reply = self.update(query, change, CI, **options)
            self.check(f"update {name}", reply if isinstance(reply, int) else self.values()[0], want)
        self.fresh([{"_id": 1, "a": "b"}, {"_id": 2, "a": "C"}, {"_id": 3, "a": "a"}])
        self.check("findAndModify sort", run(SON([("findAndModify", self.name), ("query", {}), ("sort", {"a": -1}), ("remove", True),
                                                  ("collation", CI)]))["value"]["_id"], 2)
        reply = run(SON([("findAndModify", self.name), ("query", {"_id": 1, "a": "B"}), ("update", {"$set": {"a": "done"}}), ("new", True),
                         ("collation", CI)]))
        self.check("findAndModify", reply if isinstance(reply, int) else reply["value"], {"_id": 1, "a": "done"})
        reply = run(SON([("findAndModify", self.name), ("query", {"_id": 3, "a": "A"}), ("remove", True), ("collation", CI)]))
        self.check("findAndModify remove", reply if isinstance(reply, int) else reply["value"], {"_id": 3, "a": "a"})
        self.fresh([{"_id": 1, "a": "x"}, {"_id": 2, "a": "X"}, {"_id": 3, "a": "y"}])
        reply = run(SON([("bulkWrite", 1), ("ops", [
            {"update": 0, "filter": {"a": "X"}, "updateMods": {"$set": {"b": 1}}, "multi": True, "collation": CI},
            {"delete": 0, "filter": {"a": "Y"}, "multi": True, "collation": CI},
            {"update": 0, "filter": {"a": "X"}, "updateMods": {"$set": {"b": 2}}, "multi": True}]),
            ("nsInfo", [{"ns": f"{db.name}.{self.name}"}])]), client.admin)
        self.check("bulkWrite", reply if isinstance(reply, int) else (reply["nMatched"], reply["nDeleted"]), (3, 1))
        self.check("bulkWrite's documents", self.values("b"), [1, 2])

    # --- defaults ---

    def defaults(self):
        self.fresh([{"_id": 1, "a": "x"}, {"_id": 2, "a": "X"}, {"_id": 3, "a": "y"}], CI)
        listed = db.command("listCollections", filter={"name": self.name})["cursor"]["firstBatch"][0]["options"].get("collation", {})
        self.check("listCollections", list(listed), ["locale", "caseLevel", "caseFirst", "strength", "numericOrdering", "alternate",
                                                     "maxVariable", "normalization", "backwards", "version"])
        self.check("its values", (listed.get("locale"), listed.get("strength"), listed.get("caseFirst")), ("en", 2, "off"))
        self.check("find", self.ids({"a": "X"}), [1, 2])
        self.check("find, simple", self.ids({"a": "X"}, SIMPLE), [2])
        self.check("find, another", self.ids({"a": "X"}, {"locale": "en"}), [2])
        self.check("count", run(SON([("count", self.name), ("query", {"a": "X"})]))["n"], 2)
        self.check("distinct", len(run(SON([("distinct", self.name), ("key", "a")]))["values"]), 2)
        self.check("aggregate", [doc["n"] for doc in self.aggregate([{"$group": {"_id": "$a", "n": {"$sum": 1}}}, {"$sort": {"n": 1}}])], [1, 2])
        self.check("aggregate, simple", len(self.aggregate([{"$group": {"_id": "$a"}}], SIMPLE)), 3)
        self.check("update", run(SON([("update", self.name), ("updates", [{"q": {"a": "X"}, "u": {"$set": {"b": 1}}, "multi": True}])]))["n"], 2)
        self.check("update, simple", self.update({"a": "X"}, {"$set": {"b": 2}}, SIMPLE, multi=True)["n"], 1)
        self.check("createIndexes", isinstance(run(SON([("createIndexes", self.name), ("indexes", [
            {"key": {"a": 1}, "name": "inherits"}, {"key": {"a": 1, "b": 1}, "name": "simple", "collation": SIMPLE},
            {"key": {"b": 1}, "name": "own", "collation": {"locale": "fr_CA"}}])])), dict), True)
        indexes = {index["name"]: index.get("collation") for index in db[self.name].list_indexes()}
        self.check("index inherits", indexes["inherits"], listed)
        self.check("index, simple", indexes["simple"], None)
        self.check("index, own", (indexes["own"]["locale"], indexes["own"]["backwards"]), ("fr_CA", True))
        self.check("_id index inherits", indexes["_id_"], listed)
        self.check("plan", "inherits" in self.plan({"a": "X"}), True)
        self.check("plan, simple", "inherits" in self.plan({"a": "X"}, SIMPLE), False)
        self.check("by index", self.ids({"a": "X"}, hint="inherits"), [1, 2])
        self.check("by another index", self.ids({"a": "X"}, hint="simple"), [1, 2])
        reply = run(SON([("delete", self.name), ("deletes", [{"q": {"a": "Y"}, "limit": 0}])]))
        self.check("delete", reply["n"], 1)
        if self.kind == "unsharded":
            self.fresh([{"_id": "k"}], CI)
            self.check("_id in the collation", run(SON([("insert", self.name), ("documents", [{"_id": "K"}])])), 11000)
            self.check("find by _id", self.ids({"_id": "K"}), ["k"])
            self.check("find by _id, simple", self.ids({"_id": "K"}, SIMPLE), [])

    # --- indexes ---

    def indexes(self):
        documents = [{"_id": i, "a": word, "n": i} for i, word in enumerate(["b", "B", "É", "e", "z", "Z", "10", "9", ["q", "Q"], {"k": "V"}, 3])]
        self.fresh(documents, indexes=[{"key": {"a": 1}, "name": "ci", "collation": CI}, {"key": {"n": 1, "a": 1}, "name": "n_ci", "collation": CI}])
        for query, used in (({"a": "B"}, True), ({"a": {"$gt": "B"}}, True), ({"a": {"$in": ["B", "Q"]}}, True)):
            self.check(f"index for {query}", "'ci'" in self.plan(query, CI), used)
            self.check(f"no index for {query}", "IXSCAN" in self.plan(query), False)
            self.check(f"no index for {query} in another", "IXSCAN" in self.plan(query, BASE), False)
        self.check("a number needs no collation", "'ci'" in self.plan({"a": 3}), True)
        self.check("sort in another collation", "'SORT'" in self.plan({}, BASE, sort={"a": 1}), True)
        self.check("sort with no collation", "'SORT'" in self.plan({}, sort={"a": 1}), True)
        for query in ({"a": "B"}, {"a": {"$gt": "e"}}, {"a": {"$gte": "É"}}, {"a": {"$lt": "e"}}, {"a": {"$in": ["E", "Q", "z"]}}, {"a": {"k": "v"}},
                      {"a": ["Q", "q"]}, {"a": {"$ne": "b"}}, {"a": {"$gt": "9", "$lt": "b"}}, {"n": {"$lt": 5}, "a": "Z"}, {"n": 5, "a": "z"},
                      {"a": 3}, {"a": {"$type": "string"}}, {"a": {"$exists": True}}, {"a": {"$regex": "^B"}}, {"n": 4, "a": {"$ne": "Z"}},
                      {"$or": [{"a": "B"}, {"n": 7}]}, {"a": {"$elemMatch": {"$eq": "Q"}}}, {"a": {"$not": {"$gt": "e"}}}):
            for collation in (None, CI, BASE, {"locale": "sv"}):
                want = self.ids(query, collation, hint={"$natural": 1})
                for hint in (None, "ci", "n_ci"):
                    options = {"hint": hint} if hint else {}
                    self.check(f"{query} {collation} by {hint}", self.ids(query, collation, **options), want)
        for collation in (None, CI, BASE):
            for direction in (1, -1):
                options = {"sort": SON([("a", direction), ("_id", 1)])}
                want = self.ids({}, collation, hint={"$natural": 1}, **options)
                self.check(f"sort {direction} {collation}", self.ids({}, collation, hint="ci", **options), want)
        # A covered query can't take strings out of sort keys.
        found = docs(SON([("find", self.name), ("filter", {"a": "B"}), ("projection", {"_id": 0, "a": 1}), ("collation", CI), ("hint", "ci")]))
        self.check("covered", sorted(doc["a"] for doc in found), ["B", "b"])
        reply = run(SON([("createIndexes", self.name), ("indexes", [
            {"key": {"a": 1}, "name": "simple"}, {"key": {"a": 1}, "name": "sv", "collation": {"locale": "sv"}}])]))
        self.check("same key, other collation", reply if isinstance(reply, int) else reply["numIndexesAfter"] - reply["numIndexesBefore"], 2)
        self.check("same name, other collation", run(SON([("createIndexes", self.name), ("indexes", [
            {"key": {"a": 1}, "name": "ci", "collation": BASE}])])), 86)
        reply = run(SON([("createIndexes", self.name), ("indexes", [
            {"key": {"a": 1}, "name": "ci", "collation": {"locale": "en", "strength": 2, "caseLevel": False}}])]))
        self.check("the same again", reply if isinstance(reply, int) else reply["numIndexesAfter"] - reply["numIndexesBefore"], 0)
        self.check("the same under another name", run(SON([("createIndexes", self.name), ("indexes", [
            {"key": {"a": 1}, "name": "ci2", "collation": CI}])])), 85)
        for spec in ({}, {"strength": 2}, {"locale": "nowhere"}, {"locale": "en", "strength": 9}, "en", {"locale": "en", "x": 1}):
            reply = run(SON([("createIndexes", self.name), ("indexes", [{"key": {"z": 1}, "name": "z", "collation": spec}])]))
            self.check(f"index with {spec}", isinstance(reply, int) and reply not in (1, 8, 59, 238), True)
        self.fresh([{"_id": i, "a": word} for i, word in enumerate(["b", "B", "c"])], indexes=[{"key": {"a": 1}, "name": "ci", "collation": CI}])
        self.check("sort by index", "'SORT'" in self.plan({}, CI, sort={"a": -1}), False)
        self.check("min and max", self.ids({}, CI, hint="ci", min={"a": "B"}, max={"a": "C"}), [0, 1])
        self.check("min of another collation", self.ids({}, hint="ci", min={"a": "B"}), 51174)
        self.check("min of no string", self.ids({}, hint="ci", min={"a": 5}), [0, 1, 2])
        self.check("equality and sort by index", "'SORT'" in self.plan({"a": {"$gte": "B"}}, CI, sort={"a": 1}), False)
        self.check("no sort by an index of another", "'SORT'" in self.plan({"a": {"$gte": "B"}}, BASE, sort={"a": 1}), True)
        self.fresh([{"_id": 1, "a": "x"}, {"_id": 2, "a": "X"}, {"_id": 3, "a": 7}], indexes=[{"key": {"a": "hashed"}, "name": "h", "collation": CI}])
        self.check("hashed", self.ids({"a": "X"}, CI, hint="h"), [1, 2])
        self.check("hashed, simple", self.ids({"a": "X"}, hint="h"), [2])
        self.check("hashed number", self.ids({"a": 7}, hint="h"), [3])

    def unique(self):
        if self.kind == "sharded":
            return
        self.fresh([{"_id": 1, "a": "x"}, {"_id": 2, "a": "y"}], indexes=[{"key": {"a": 1}, "name": "u", "unique": True, "collation": CI}])
        self.check("insert", run(SON([("insert", self.name), ("documents", [{"_id": 3, "a": "X"}])])), 11000)
        self.check("insert another", isinstance(run(SON([("insert", self.name), ("documents", [{"_id": 4, "a": "é"}])])), dict), True)
        self.check("update", self.update({"_id": 2}, {"$set": {"a": "X"}}, SIMPLE), 11000)
        self.check("update of itself", self.update({"_id": 1}, {"$set": {"a": "X"}}, SIMPLE)["nModified"], 1)
        self.check("upsert", self.update({"a": "Y"}, {"$set": {"b": 1}}, CI, upsert=True)["nModified"], 1)
        self.check("upsert, simple", self.update({"a": "Y"}, {"$set": {"b": 1}}, SIMPLE, upsert=True), 11000)
        self.check("nested", run(SON([("insert", self.name), ("documents", [{"_id": 5, "a": {"k": ["v"]}}, {"_id": 6, "a": {"k": ["V"]}}])])), 11000)
        self.fresh([{"_id": 1, "a": "x"}, {"_id": 2, "a": "X"}])
        self.check("build", run(SON([("createIndexes", self.name), ("indexes", [{"key": {"a": 1}, "name": "u", "unique": True, "collation": CI}])])), 11000)
        self.check("build, simple", isinstance(run(SON([("createIndexes", self.name), ("indexes", [{"key": {"a": 1}, "name": "u", "unique": True}])])),
                                               dict), True)
        self.fresh([], indexes=[{"key": {"a": 1}, "name": "p", "unique": True, "collation": CI, "partialFilterExpression": {"k": "on"}}])
        reply = run(SON([("insert", self.name), ("ordered", False), ("documents", [{"_id": 1, "a": "x", "k": "on"}, {"_id": 2, "a": "X", "k": "off"},
                                                                                    {"_id": 3, "a": "X", "k": "ON"}])]))
        self.check("partial, filtered in the collation", reply, 11000)
        self.check("partial, what is in", self.ids({}), [1, 2])

    # --- other collections, views, errors ---

    def joins(self):
        self.fresh([{"_id": 1, "a": "x"}, {"_id": 2, "a": "Y"}])
        db.drop_collection("d")
        run(SON([("create", "d"), ("collation", {"locale": "en", "strength": 3})]))
        db["d"].insert_many([{"_id": 1, "b": "X"}, {"_id": 2, "b": "y"}, {"_id": 3, "b": "z"}])
        lookup = [{"$lookup": {"from": "d", "localField": "a", "foreignField": "b", "as": "m"}}, {"$sort": {"_id": 1}}]
        self.check("$lookup", [[m["_id"] for m in doc["m"]] for doc in self.aggregate(lookup, CI)], [[1], [2]])
        self.check("$lookup, none", [[m["_id"] for m in doc["m"]] for doc in self.aggregate(lookup)], [[], []])
        piped = [{"$lookup": {"from": "d", "let": {"v": "$a"}, "pipeline": [{"$match": {"$expr": {"$eq": ["$b", "$$v"]}}}], "as": "m"}},
                 {"$sort": {"_id": 1}}]
        self.check("$lookup pipeline", [[m["_id"] for m in doc["m"]] for doc in self.aggregate(piped, CI)], [[1], [2]])
        union = [{"$unionWith": {"coll": "d", "pipeline": [{"$match": {"b": "X"}}]}}, {"$match": {"$or": [{"a": "X"}, {"b": "x"}]}}]
        self.check("$unionWith", len(self.aggregate(union, CI)), 2)
        db.drop_collection("d")
        db["d"].insert_many([{"_id": 1, "from": "A", "to": "b"}, {"_id": 2, "from": "B", "to": "c"}])
        self.fresh([{"_id": 1, "a": "a"}])
        graph = [{"$graphLookup": {"from": "d", "startWith": "$a", "connectFromField": "to", "connectToField": "from", "as": "m"}}]
        self.check("$graphLookup", sorted(m["_id"] for m in self.aggregate(graph, CI)[0]["m"]), [1, 2])

    def views(self):
        self.fresh([{"_id": 1, "a": "x"}, {"_id": 2, "a": "X"}])
        db.drop_collection("v")
        run(SON([("create", "v"), ("viewOn", self.name), ("pipeline", []), ("collation", CI)]))
        found = docs(SON([("find", "v"), ("filter", {"a": "X"}), ("sort", {"_id": 1})]))
        self.check("view", found if isinstance(found, int) else [doc["_id"] for doc in found], [1, 2])
        self.check("view, the same", len(docs(SON([("find", "v"), ("filter", {"a": "X"}), ("collation", CI)]))), 2)
        self.check("view, another", docs(SON([("find", "v"), ("filter", {"a": "X"}), ("collation", {"locale": "fr"})])), 167)
        self.check("view count", run(SON([("count", "v"), ("query", {"a": "X"})]))["n"], 2)
        self.check("view distinct", len(run(SON([("distinct", "v"), ("key", "a")]))["values"]), 1)
        self.check("view on a view, another", run(SON([("create", "v2"), ("viewOn", "v"), ("pipeline", []), ("collation", {"locale": "fr"})])), 167)
        self.check("view on a view, none", run(SON([("create", "v2"), ("viewOn", "v"), ("pipeline", [])])), 167)
        joined = [{"$lookup": {"from": "v", "localField": "a", "foreignField": "a", "as": "m"}}]
        self.check("view that joins a view", run(SON([("create", "v2"), ("viewOn", self.name), ("pipeline", joined)])), 167)
        self.check("view on a view", isinstance(run(SON([("create", "v2"), ("viewOn", "v"), ("pipeline", []), ("collation", CI)])), dict), True)
        found = docs(SON([("find", "v2"), ("filter", {"a": "X"})]))
        self.check("find in a view on a view", found if isinstance(found, int) else len(found), 2)
        self.check("join with a view, another", self.aggregate(joined), 167)
        found = self.aggregate(joined + [{"$sort": {"_id": 1}}], CI)
        self.check("join with a view", found if isinstance(found, int) else [len(doc["m"]) for doc in found], [2, 2])
        db.drop_collection("v2")
        db.drop_collection("v")

    def errors(self):
        self.fresh([{"_id": 1, "a": "x"}])
        specs = (({"locale": 1}, 14), ({"strength": 1}, 40414), ({"locale": "nowhere"}, 2), ({"locale": ""}, 2), ({"locale": "en", "strength": 9}, 51024),
                 ({"locale": "en", "strength": "1"}, 14), ({"locale": "en", "nope": 1}, 40415), ({"locale": "en", "alternate": "x"}, 2),
                 ({"locale": "en", "caseFirst": "x"}, 2), ({"locale": "en", "strength": 1, "backwards": True}, 2),
                 ({"locale": "en", "version": "1"}, 161), ({"locale": "simple", "strength": 1}, 9), ("en", 14))
        for spec, code in specs:
            for command in (
                    [("find", self.name)], [("count", self.name)], [("distinct", self.name), ("key", "a")],
                    [("aggregate", self.name), ("pipeline", []), ("cursor", {})], [("findAndModify", self.name), ("query", {}), ("remove", True)],
                    [("find", "missing")], [("aggregate", "missing"), ("pipeline", []), ("cursor", {})],
                    [("create", "bad")], [("update", self.name), ("updates", [{"q": {"_id": 1}, "u": {"$set": {"a": 1}}, "collation": spec}])],
                    [("delete", self.name), ("deletes", [{"q": {"_id": 1}, "limit": 1, "collation": spec}])]):
                statement = command[0][0] in ("update", "delete")
                reply = run(SON(command + ([] if statement else [("collation", spec)])))
                self.check(f"{command[0]} with {spec}", reply, code)
        self.check("create with {}", run(SON([("create", "bad"), ("collation", {})])), 40414)
        self.check("nothing was changed", self.values(), ["x"])

    def all(self):
        for part in (self.filters, self.order, self.groups, self.expressions, self.writes, self.defaults, self.indexes, self.unique, self.joins,
                     self.views, self.errors):
            try:
                part()
            except Exception as error:  # one part that breaks doesn't hide the others
                self.check(part.__name__, repr(error), "to end")


def sharding():
    """What shardCollection asks of a collection with a default collation, and a sort merged over shards."""
    db.drop_collection("s")
    run(SON([("create", "s"), ("collation", CI)]))
    ns = f"{db.name}.s"
    check("shard without collation", run(SON([("shardCollection", ns), ("key", {"k": 1})]), client.admin), 2)
    check("shard with another", run(SON([("shardCollection", ns), ("key", {"k": 1}), ("collation", CI)]), client.admin), 2)
    reply = run(SON([("shardCollection", ns), ("key", {"k": 1}), ("collation", SIMPLE)]), client.admin)
    check("shard with simple", reply if isinstance(reply, int) else "sharded", "sharded")
    entry = client["config"]["collections"].find_one({"_id": ns})
    check("config.collections", (entry.get("defaultCollation") or {}).get("strength"), 2)
    run(SON([("split", ns), ("middle", {"k": "a"})]), client.admin)
    db["s"].insert_many([{"_id": i, "k": word} for i, word in enumerate(["a", "B", "c", "D", "é", "F", "z"])])
    check("sorted over shards", [doc["k"] for doc in docs(SON([("find", "s"), ("sort", {"k": 1})]))], ["a", "B", "c", "D", "é", "F", "z"])
    # A string is no point of the shard key in a collation: every shard is asked.
    check("shard key in a collation", [doc["k"] for doc in docs(SON([("find", "s"), ("filter", {"k": "b"})]))], ["B"])
    check("range in a collation", [doc["k"] for doc in docs(SON([("find", "s"), ("filter", {"k": {"$gt": "d"}}), ("sort", {"k": 1})]))],
          ["é", "F", "z"])
    update = [("update", "s"), ("updates", [{"q": {"k": "D"}, "u": {"$set": {"n": 9}}, "collation": SIMPLE}])]
    check("update by the shard key", run(SON(update))["n"], 1)
    check("update in a collation", run(SON([("update", "s"), ("updates", [{"q": {"k": "d"}, "u": {"$set": {"n": 10}}}])]))["n"], 1)
    check("delete in a collation", run(SON([("delete", "s"), ("deletes", [{"q": {"k": "f"}, "limit": 1}])]))["n"], 1)
    reply = run(SON([("findAndModify", "s"), ("query", {"k": "Z"}), ("remove", True)]))
    check("findAndModify in a collation", reply if isinstance(reply, int) else reply["value"], {"_id": 6, "k": "z"})
    db["s"].insert_many([{"_id": 10 + i, "k": word} for i, word in enumerate(["A", "b", "C"])])
    grouped = docs(SON([("aggregate", "s"), ("pipeline", [{"$group": {"_id": "$k", "n": {"$sum": 1}}}])]))
    check("groups over shards", sorted(doc["n"] for doc in grouped), [1, 1, 2, 2, 2])
    check("distinct over shards", len(run(SON([("distinct", "s"), ("key", "k")]))["values"]), 5)
    sets = docs(SON([("aggregate", "s"), ("pipeline", [{"$group": {"_id": None, "s": {"$addToSet": "$k"}, "hi": {"$max": "$k"}}}])]))[0]
    check("$addToSet over shards", (len(sets["s"]), sets["hi"]), (5, "é"))
    # The _id index has the collection's collation, which no shard key can have.
    check("_id as the shard key", isinstance(run(SON([("create", "s2"), ("collation", CI)])), dict), True)
    check("_id in a collation as the shard key", run(SON([("shardCollection", f"{db.name}.s2"), ("key", {"_id": 1}), ("collation", SIMPLE)]),
                                                     client.admin), 2)


for kind in ("unsharded", "sharded"):
    Cases(kind).all()
try:
    sharding()
except Exception as error:
    check("sharding", repr(error), "to end")
client.drop_database(db.name)
print(f"collation: {passed} passed, {failed} failed")
sys.exit(1 if failed else 0)
