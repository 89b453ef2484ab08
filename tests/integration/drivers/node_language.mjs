// The document language through the npm driver: what applications use beyond plain create, read, update and delete, on an
// unsharded and on a sharded collection.
import { check, checkFails, run } from './check.mjs';

const cities = [
  { _id: 1, name: 'Zürich', country: 'ch', people: 421, tags: ['lake', 'rail'], at: { x: 8.5, y: 47.4 } },
  { _id: 2, name: 'zurich', country: 'xx', people: 1, tags: [], at: { x: 0, y: 0 } },
  { _id: 3, name: 'Malmö', country: 'se', people: 357, tags: ['sea', 'bridge'], at: { x: 13, y: 55.6 } },
  { _id: 4, name: 'Uppsala', country: 'se', people: 177, tags: ['river'], at: { x: 17.6, y: 59.9 } },
  { _id: 5, name: 'Köln', country: 'de', people: 1087, tags: ['river', 'rail', 'bridge'], at: { x: 7, y: 50.9 } },
  { _id: 6, name: 'Bonn', country: 'de', people: 336, tags: ['river'], at: { x: 7.1, y: 50.7 } },
];
const ids = async (cursor) => (await cursor.toArray()).map((doc) => doc._id);

async function filters(coll) {
  check('elemMatch', await ids(coll.find({ tags: { $elemMatch: { $gte: 'ra', $lt: 'ri' } } }).sort({ _id: 1 })), [1, 5]);
  check('all and size', await ids(coll.find({ tags: { $all: ['river'], $size: 1 } }).sort({ _id: 1 })), [4, 6]);
  check('regex', await ids(coll.find({ name: /^z/i }).sort({ _id: 1 })), [1, 2]);
  check('expr', await ids(coll.find({ $expr: { $gt: ['$at.y', { $multiply: ['$at.x', 5] }] } }).sort({ _id: 1 })), [1, 5, 6]);
  check('or', await ids(coll.find({ $or: [{ country: 'de' }, { people: { $lt: 2 } }] }).sort({ people: -1 })), [5, 6, 2]);
  check('jsonSchema', await ids(coll.find({ $jsonSchema: { properties: { people: { minimum: 400 } } } }).sort({ _id: 1 })), [1, 5]);
  const en = { locale: 'en', strength: 1 };
  check('collation', await ids(coll.find({ name: 'ZURICH' }, { collation: en }).sort({ _id: 1 })), [1, 2]);
  check('sorted by collation', await ids(coll.find({}).collation({ locale: 'de' }).sort({ name: 1, _id: 1 })), [6, 5, 3, 4, 2, 1]);
  check('distinct', (await coll.distinct('tags', { country: 'de' })).sort(), ['bridge', 'rail', 'river']);
  check('projected', await coll.findOne({ _id: 5 }, { projection: { tags: { $slice: 1 }, double: { $multiply: ['$people', 2] } } }),
    { _id: 5, tags: ['river'], double: 2174 });
  await checkFails('unknown operator', 2, () => coll.findOne({ a: { $near_: 1 } }));
}

async function updates(coll) {
  const by = { arrayFilters: [{ t: 'river' }] };
  check('arrayFilters', (await coll.updateMany({ country: 'de' }, { $set: { 'tags.$[t]': 'rhine' } }, by)).modifiedCount, 2);
  check('positional', (await coll.updateOne({ _id: 5, tags: 'rail' }, { $set: { 'tags.$': 'train' } })).modifiedCount, 1);
  check('after both', (await coll.findOne({ _id: 5 })).tags, ['rhine', 'train', 'bridge']);
  await coll.updateOne({ _id: 3 }, { $push: { tags: { $each: ['a', 'z'], $sort: 1, $slice: 3 } } });
  check('push', (await coll.findOne({ _id: 3 })).tags, ['a', 'bridge', 'sea']);
  await coll.updateOne({ _id: 4 }, [{ $set: { dense: { $gt: ['$people', 100] }, name: { $toUpper: '$name' } } }]);
  check('pipeline', await coll.findOne({ _id: 4 }, { projection: { dense: 1, name: 1 } }), { _id: 4, name: 'UPPSALA', dense: true });
  check('without the key', (await coll.findOneAndUpdate({ country: 'de' }, { $inc: { people: 1 } },
    { sort: { people: -1 }, returnDocument: 'after' })).people, 1088);
  check('deleteOne', (await coll.deleteOne({ name: 'zurich' })).deletedCount, 1);
  check('findOneAndDelete', (await coll.findOneAndDelete({ people: { $gt: 100 } }, { sort: { people: 1 } }))._id, 4);
  check('upsert', (await coll.updateOne({ _id: 70, 'at.x': 3 }, { $set: { name: 'new' }, $setOnInsert: { people: 0 } },
    { upsert: true })).upsertedId, 70);
  check('upserted', await coll.findOne({ _id: 70 }), { _id: 70, at: { x: 3 }, name: 'new', people: 0 });
  await checkFails('immutable _id', 66, () => coll.updateOne({ _id: 1 }, { $set: { _id: 9 } }));
  await checkFails('conflict', 40, () => coll.updateOne({ _id: 1 }, { $set: { a: 1 }, $inc: { a: 1 } }));
}

async function indexes(coll) {
  await coll.createIndexes([{ key: { country: 1, people: -1 } }, { key: { name: 1 }, collation: { locale: 'en', strength: 2 }, name: 'ci' },
    { key: { 'at.$**': 1 }, name: 'wild' }, { key: { people: 1 }, partialFilterExpression: { people: { $gt: 300 } }, name: 'large' }]);
  const plan = await coll.find({ country: 'de', people: { $gt: 10 } }).sort({ people: -1 }).explain('executionStats');
  check('explain returned', plan.executionStats.nReturned, 2);
  check('explain uses the index', JSON.stringify(plan.queryPlanner).includes('country_1_people_-1'), true);
  check('explain examined', plan.executionStats.totalDocsExamined, 2);
  check('hidden', (await coll.db.command({ collMod: coll.collectionName, index: { name: 'ci', hidden: true } })).ok, 1);
  check('indexes', (await coll.indexes()).find((index) => index.name === 'ci').hidden, true);
  check('indexStats', (await coll.aggregate([{ $indexStats: {} }, { $group: { _id: '$name' } }]).toArray()).length >= 5, true);
  await checkFails('conflict', 86, () => coll.createIndex({ country: -1 }, { name: 'ci' }));
  await checkFails('no index', 27, () => coll.dropIndex('nothing'));
}

async function collections(db) {
  await db.createCollection('checked', { validator: { $jsonSchema: { required: ['name'], properties: { name: { bsonType: 'string' } } } } });
  await db.collection('checked').insertOne({ name: 'a' });
  await checkFails('validator', 121, () => db.collection('checked').insertOne({ name: 1 }));
  check('bypass', (await db.collection('checked').insertOne({ x: 1 }, { bypassDocumentValidation: true })).acknowledged, true);

  await db.createCollection('ring', { capped: true, size: 4096, max: 3 });
  for (let i = 0; i < 5; i++) await db.collection('ring').insertOne({ _id: i });
  check('capped', await ids(db.collection('ring').find()), [2, 3, 4]);
  const tail = db.collection('ring').find({}, { tailable: true, awaitData: true, maxAwaitTimeMS: 5000 });
  for (let i = 2; i < 5; i++) check('tail', (await tail.next())._id, i);
  const next = tail.next();
  await db.collection('ring').insertOne({ _id: 5 });
  check('tail waits', (await next)._id, 5);
  await tail.close();

  await db.createCollection('big', { viewOn: 'sharded', pipeline: [{ $match: { people: { $gt: 300 } } }, { $project: { people: 1 } }] });
  check('view', (await db.collection('big').find({}).sort({ people: 1 }).toArray()).map((doc) => doc.people), [336, 357, 421, 1088]);
  check('view count', await db.collection('big').countDocuments({ people: { $lt: 400 } }), 2);
  await checkFails('view is read only', 166, () => db.collection('big').insertOne({}));
  await db.collection('checked').rename('renamed');
  check('renamed', (await db.listCollections({ name: 'renamed' }).toArray()).length, 1);
}

await run(process.argv[2], async (client) => {
  const db = client.db('drivers_language');
  await db.dropDatabase();
  await client.db('admin').command({ shardCollection: 'drivers_language.sharded', key: { _id: 'hashed' } });
  for (const name of ['plain', 'sharded']) {
    const coll = db.collection(name);
    await coll.insertMany(cities, { ordered: false });
    await filters(coll);
    await updates(coll);
    await indexes(coll);
  }
  await collections(db);
  const results = await client.bulkWrite([
    { namespace: 'drivers_language.plain', name: 'insertOne', document: { _id: 100 } },
    { namespace: 'drivers_language.sharded', name: 'updateOne', filter: { _id: 1 }, update: { $set: { seen: true } } },
    { namespace: 'drivers_language.sharded', name: 'deleteMany', filter: { people: 0 } }]);
  await client.withSession((session) => checkFails('transaction', 263, () =>
    session.withTransaction(() => db.collection('plain').insertOne({ _id: 'x' }, { session }))));
  for (const name of ['drivers_language', 'drivers_nowhere']) {
    const watch = { aggregate: 'plain', pipeline: [{ $changeStream: {} }], cursor: {} };
    await checkFails(`change stream in ${name}`, 238, () => client.db(name).command(watch));
  }
  check('bulkWrite', [results.insertedCount, results.modifiedCount, results.deletedCount], [1, 1, 1]);
  await db.dropDatabase();
});
