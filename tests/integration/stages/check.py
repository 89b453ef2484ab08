"""What the cases share: two routers, a database of its own for each file, sharded and unsharded collections."""
import sys
from pathlib import Path

from pymongo import MongoClient
from pymongo.errors import OperationFailure, PyMongoError

clients = [MongoClient(uri) for uri in sys.argv[1:3]]
client = clients[0]
name = "stages_" + Path(sys.argv[0]).stem
db = client[name]
failed = 0
passed = 0


def check(what, got, want):
    global failed, passed
    if got == want:
        passed += 1
    else:
        failed += 1
        print(f"FAILED {what}: got {got!r}, want {want!r}")


def code(call):
    """The code of the error that the call ends with (of its first statement's, where a write has one); 0: none."""
    try:
        reply = call()
        if isinstance(reply, dict) and reply.get("writeErrors"):
            return reply["writeErrors"][0]["code"]
    except OperationFailure as error:
        details = error.details or {}
        errors = details.get("writeErrors")
        return errors[0]["code"] if errors else error.code
    except PyMongoError as error:
        return type(error).__name__
    return 0


def shard(collection, key, **options):
    client.admin.command("shardCollection", f"{name}.{collection}", key=key, **options)


def fill(collection, documents, sharded):
    db.drop_collection(collection)
    if sharded:
        shard(collection, {"_id": "hashed"})
    db[collection].insert_many(documents)


def finish():
    print(f"{Path(sys.argv[0]).stem}: {passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)
