// Create, read, update, delete, count, index and list on an unsharded collection.
import { check, checkFails, run } from './check.mjs';

await run(process.argv[2], async (client) => {
  const db = client.db('drivers_node');
  await db.dropDatabase();
  const coll = db.collection('c');
  check('insertOne', (await coll.insertOne({ _id: 1, a: 1 })).insertedId, 1);
  check('insertMany', (await coll.insertMany([{ _id: 2, a: 2 }, { _id: 3, a: 3 }, { _id: 4, a: 4 }])).insertedCount, 3);
  await checkFails('duplicate', 11000, () => coll.insertOne({ _id: 1 }));
  check('findOne', await coll.findOne({ _id: 2 }), { _id: 2, a: 2 });
  check('find', (await coll.find({ a: { $gte: 2 } }).sort({ a: -1 }).limit(2).toArray()).map((d) => d._id), [4, 3]);
  check('projection', await coll.findOne({ _id: 2 }, { projection: { _id: 0, a: 1 } }), { a: 2 });
  check('updateOne', (await coll.updateOne({ _id: 2 }, { $inc: { a: 10 } })).modifiedCount, 1);
  check('updateMany', (await coll.updateMany({ a: { $lt: 5 } }, { $set: { small: true } })).matchedCount, 3);
  check('replaceOne', (await coll.replaceOne({ _id: 3 }, { b: 1 })).modifiedCount, 1);
  check('upsert', (await coll.updateOne({ _id: 9 }, { $set: { a: 9 } }, { upsert: true })).upsertedId, 9);
  check('findOneAndUpdate', (await coll.findOneAndUpdate({ _id: 9 }, { $inc: { a: 1 } }, { returnDocument: 'after' })).a, 10);
  check('bulkWrite', (await coll.bulkWrite([{ insertOne: { document: { _id: 20 } } }, { deleteOne: { filter: { _id: 1 } } },
    { updateOne: { filter: { _id: 4 }, update: { $set: { a: 44 } } } }])).modifiedCount, 1);
  check('countDocuments', await coll.countDocuments({}), 5);
  check('estimatedDocumentCount', await coll.estimatedDocumentCount(), 5);
  check('distinct', (await coll.distinct('a')).sort((x, y) => x - y), [10, 12, 44]);
  check('aggregate', await coll.aggregate([{ $match: { a: { $gt: 0 } } }, { $group: { _id: null, n: { $sum: '$a' } } }]).toArray(),
    [{ _id: null, n: 66 }]);
  check('createIndex', await coll.createIndex({ a: 1 }, { unique: true, sparse: true }), 'a_1');
  await checkFails('unique', 11000, () => coll.insertOne({ a: 44 }));
  check('indexes', (await coll.indexes()).map((i) => i.name), ['_id_', 'a_1']);
  await coll.dropIndex('a_1');
  check('dropIndex', (await coll.indexes()).length, 1);
  await coll.insertMany(Array.from({ length: 1000 }, (_, i) => ({ _id: 1000 + i })));
  check('getMore', (await coll.find({ _id: { $gte: 1000 } }).batchSize(99).toArray()).length, 1000);
  check('deleteMany', (await coll.deleteMany({ _id: { $gte: 1000 } })).deletedCount, 1000);
  check('listCollections', (await db.listCollections().toArray()).map((c) => c.name), ['c']);
  check('listDatabases', (await client.db('admin').admin().listDatabases()).databases.some((d) => d.name === 'drivers_node'), true);
  await checkFails('no such command', 59, () => db.command({ noSuchCommand: 1 }));
  check('drop', await coll.drop(), true);
  check('empty', await coll.countDocuments({}), 0);
  await db.dropDatabase();
});
