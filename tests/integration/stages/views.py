#!/usr/bin/python3
"""Views on sharded and unsharded collections, and views on views."""
from check import check, client, clients, code, db, fill, finish, name

client.drop_database(name)
DOCUMENTS = [{"_id": i, "k": i % 3, "v": i, "a": [i, i + 1], "n": {"x": i % 2}} for i in range(30)]


def view_checks(base, view):
    low = [d for d in DOCUMENTS if d["v"] < 20]
    db.command("create", view, viewOn=base, pipeline=[{"$match": {"v": {"$lt": 20}}}, {"$set": {"d": {"$add": ["$v", 1]}}}])
    db.command("create", view + "2", viewOn=view, pipeline=[{"$match": {"v": {"$gte": 5}}}])
    of = [d for d in low if d["k"] == 1]
    for router in clients:
        coll = router[name][view]
        want = [{"_id": d["_id"], "d": d["v"] + 1} for d in sorted(of, key=lambda d: -d["v"])[1:4]]
        check(f"{view} find", list(coll.find({"k": 1}, {"d": 1}).sort("v", -1).skip(1).limit(3)), want)
        check(f"{view} find all", sorted(d["_id"] for d in coll.find({}, batch_size=3)), [d["_id"] for d in low])
        check(f"{view} count", coll.count_documents({"k": 1}), len(of))
        check(f"{view} count command", router[name].command("count", view, query={"k": 1}, skip=1, limit=3)["n"], 3)
        check(f"{view} estimated count", coll.estimated_document_count(), len(low))
        check(f"{view} distinct", sorted(coll.distinct("a", {"k": 1})), sorted({x for d in of for x in d["a"]}))
        check(f"{view} distinct path", sorted(coll.distinct("n.x")), [0, 1])
        got = list(coll.aggregate([{"$group": {"_id": "$k", "s": {"$sum": "$d"}}}, {"$sort": {"_id": 1}}]))
        want = [{"_id": k, "s": sum(d["v"] + 1 for d in low if d["k"] == k)} for k in range(3)]
        check(f"{view} aggregate", got, want)
        check(f"{view}2 find", sorted(d["_id"] for d in router[name][view + "2"].find()), list(range(5, 20)))
        check(f"{view}2 let", db.command("find", view + "2", filter={"$expr": {"$eq": ["$v", "$$w"]}}, let={"w": 7})
              ["cursor"]["firstBatch"][0]["_id"], 7)
    first = db.command("find", view, batchSize=2)["cursor"]
    check(f"{view} cursor's ns", (first["ns"], len(first["firstBatch"])), (f"{name}.{view}", 2))
    more = db.command("getMore", first["id"], collection=view, batchSize=3)["cursor"]
    check(f"{view} getMore", (more["ns"], len(more["nextBatch"])), (f"{name}.{view}", 3))
    check(f"{view} killCursors", db.command("killCursors", view, cursors=[first["id"]])["cursorsKilled"], [first["id"]])
    check(f"{view} batchSize 0", db.command("find", view, batchSize=0)["cursor"]["firstBatch"], [])
    check(f"{view} singleBatch", db.command("find", view, limit=1, singleBatch=True)["cursor"]["id"], 0)


def refusals(view):
    coll = db[view]
    check("insert", code(lambda: coll.insert_one({})), 166)
    check("update", code(lambda: coll.update_one({}, {"$set": {"a": 1}})), 166)
    check("delete", code(lambda: coll.delete_many({})), 166)
    check("findAndModify", code(lambda: coll.find_one_and_delete({})), 166)
    check("createIndexes", code(lambda: coll.create_index("x")), 166)
    check("listIndexes", code(lambda: db.command("listIndexes", view)), 166)
    check("collation", code(lambda: list(coll.find({}, collation={"locale": "de"}))), 167)
    check("$natural", code(lambda: list(coll.find({}).sort("$natural", 1))), 168)
    check("returnKey", code(lambda: db.command("find", view, returnKey=True)), 168)
    check("$out to a view", code(lambda: db.plain.aggregate([{"$out": view}])), 166)


fill("plain", DOCUMENTS, False)
fill("spread", DOCUMENTS, True)
view_checks("plain", "on_plain")
view_checks("spread", "on_spread")
refusals("on_spread")
db.command("create", "german", viewOn="spread", pipeline=[], collation={"locale": "de", "strength": 2})
check("a view's own collation", code(lambda: list(db.german.find({}, collation={"locale": "de", "strength": 2}))), 0)
check("another collation", code(lambda: list(db.german.find({}, collation={"locale": "en"}))), 167)
# A definition that no error reply has room for.
db.command("create", "long", viewOn="spread", pipeline=[{"$match": {"_id": {"$nin": list(range(1000, 1400))}}}])
check("a long definition", db.long.count_documents({}), 30)
client.drop_database(name)
finish()
