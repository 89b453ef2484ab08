// The collection helpers, against an unsharded collection.
const c = db.getSiblingDB('shell_crud').getCollection('c');
c.drop();

assert.eq(c.insertOne({ _id: 1, a: 1 }), { acknowledged: true, insertedId: 1 });
assert.eq(c.insertMany([{ _id: 2, a: 2 }, { _id: 3, a: 3 }]), { acknowledged: true, insertedIds: { 0: 2, 1: 3 } });
assert(c.insertOne({ a: 0 }).insertedId instanceof ObjectId);
assert.eq(c.deleteOne({ a: 0 }).deletedCount, 1);

const duplicate = assert.throwsWithCode(() => c.insertOne({ _id: 1 }), 11000);
assert.eq(duplicate.name, 'MongoServerError');
assert.eq(duplicate.keyValue, { _id: 1 });
const bulk = assert.throwsWithCode(() => c.insertMany([{ _id: 4 }, { _id: 1 }, { _id: 5 }]), 11000);
assert.eq(bulk.result.insertedCount, 1);
assert.isnull(c.findOne({ _id: 5 }));
assert.throws(() => c.insertMany([{ _id: 5 }, { _id: 1 }, { _id: 6 }], { ordered: false }));
assert.eq(c.deleteMany({ _id: { $in: [5, 6] } }).deletedCount, 2);

assert.eq(c.updateOne({ _id: 1 }, { $set: { b: 1 } }),
    { acknowledged: true, insertedId: null, matchedCount: 1, modifiedCount: 1, upsertedCount: 0 });
assert.eq(c.updateOne({ _id: 9 }, { $set: { b: 1 } }, { upsert: true }).insertedId, 9);
assert.eq(c.updateMany({}, { $inc: { z: 1 } }).matchedCount, 5);
assert.eq(c.replaceOne({ _id: 1 }, { q: 1 }).modifiedCount, 1);
assert.eq(c.findOne({ _id: 1 }), { _id: 1, q: 1 });
assert.throws(() => c.updateOne({ _id: 1 }, { q: 1 }));
assert.throws(() => c.replaceOne({ _id: 1 }, { $set: { q: 1 } }));

assert.eq(c.findOneAndUpdate({ _id: 1 }, { $set: { q: 2 } }), { _id: 1, q: 1 });
assert.eq(c.findOneAndUpdate({ _id: 1 }, { $set: { q: 3 } }, { returnNewDocument: true }), { _id: 1, q: 3 });
assert.eq(c.findOneAndReplace({ _id: 1 }, { w: 1 }, { returnDocument: 'after' }), { _id: 1, w: 1 });
assert.eq(c.findOneAndDelete({ _id: 1 }), { _id: 1, w: 1 });
assert.isnull(c.findOneAndDelete({ _id: 1 }));

assert.eq(c.countDocuments(), 4);
assert.eq(c.estimatedDocumentCount(), 4);
assert.eq(c.count({ _id: { $gt: 2 } }), 3);
assert.eq(c.distinct('z'), [1]);
assert.eq(c.aggregate([{ $match: { a: { $gt: 1 } } }, { $project: { a: 1 } }, { $sort: { _id: 1 } }]).toArray(),
    [{ _id: 2, a: 2 }, { _id: 3, a: 3 }]);
assert.eq(c.find({}, { _id: 1 }).sort({ _id: -1 }).skip(1).limit(2).map(d => d._id).toArray(), [4, 3]);
assert.eq(c.find().count(), 4);
assert.throws(() => { const cursor = c.find(); cursor.next(); cursor.sort({ _id: 1 }); });

assert.eq(c.bulkWrite([
    { insertOne: { document: { _id: 20 } } },
    { updateOne: { filter: { _id: 20 }, update: { $set: { x: 1 } } } },
    { deleteOne: { filter: { _id: 2 } } },
    { updateOne: { filter: { _id: 30 }, update: { $set: { x: 1 } }, upsert: true } },
]), {
    acknowledged: true, insertedCount: 1, insertedIds: { 0: 20 }, matchedCount: 1, modifiedCount: 1, deletedCount: 1,
    upsertedCount: 1, upsertedIds: { 3: 30 },
});

assert.eq(c.createIndex({ a: 1 }), 'a_1');
assert.eq(c.createIndexes([{ b: 1 }, { c: -1 }]), ['b_1', 'c_-1']);
assert.eq(c.getIndexes().map(index => index.name), ['_id_', 'a_1', 'b_1', 'c_-1']);
const hidden = () => c.getIndexes().filter(index => index.hidden).map(index => index.name);
c.hideIndex('a_1');
c.hideIndex({ b: 1 });
assert.eq(hidden(), ['a_1', 'b_1']);
c.unhideIndex('a_1');
assert.eq(hidden(), ['b_1']);
c.dropIndex('a_1');
c.dropIndexes();
assert.eq(c.getIndexes().length, 1);

// Batches: the driver's limit of 1000 documents a command, and a small one of the cursor.
c.deleteMany({});
c.insertMany(Array.from({ length: 2500 }, (item, i) => ({ _id: i })));
assert.eq(c.countDocuments(), 2500);
let seen = 0;
for (const document of c.find().batchSize(70))
    seen += document._id >= 0 ? 1 : 0;
assert.eq(seen, 2500);
assert.eq(c.find().itcount(), 2500);

// Every type comes back as it went.
const types = {
    _id: 'types', int: 1, double: 1.5, large: 3e9, long: NumberLong('9007199254740993'), decimal: NumberDecimal('1.10'), text: 'é😀\0x',
    yes: true, none: null, date: new Date(5), regex: /a\/b+/im, id: ObjectId('65f0a1b2c3d4e5f601234567'), bytes: BinData(0, 'AAEC'),
    uuid: UUID('65f0a1b2c3d4e5f60123456765f0a1b2'), timestamp: Timestamp(5, 6), min: MinKey, max: MaxKey(), code: Code('x'),
    array: [1, [2, { a: 3 }]], nested: { p: { q: {} } },
};
c.insertOne(types);
assert.eq(EJSON.stringify(c.findOne({ _id: 'types' }), { relaxed: false }), EJSON.stringify(types, { relaxed: false }));

// A tailable cursor: tryNext and the prompt's page come back without a document.
const ring = c.getDB().ring;
ring.drop();
ring.getDB().createCollection('ring', { capped: true, size: 4096 });
ring.insertMany([{ _id: 1 }, { _id: 2 }]);
const tail = ring.find().tailable({ awaitData: true });
assert.eq([tail.tryNext(), tail.tryNext(), tail.tryNext()], [{ _id: 1 }, { _id: 2 }, null]);
ring.insertOne({ _id: 3 });
assert.eq(tail.next(), { _id: 3 });
assert(!tail.isExhausted());
tail.close();
assert(ring.find().tailable()._page().includes('Type "it" for more'));
assert(ring.drop());

assert.eq(db['a.b'].getFullName(), 'test.a.b');
assert.eq(db.a.b.c.getName(), 'a.b.c');
assert.contains('c', c.getDB().getCollectionNames());
assert(c.drop());
