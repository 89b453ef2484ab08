// The same on sharded collections, where the answers come from several shards.
import { check, checkFails, run } from './check.mjs';

const numbers = (n) => Array.from({ length: n }, (_, i) => i);

await run(process.argv[2], async (client) => {
  const admin = client.db('admin');
  const db = client.db('drivers_sharded');
  await db.dropDatabase();
  check('shardCollection', (await admin.command({ shardCollection: 'drivers_sharded.h', key: { _id: 'hashed' } })).collectionsharded,
    'drivers_sharded.h');
  check('again', (await admin.command({ shardCollection: 'drivers_sharded.h', key: { _id: 'hashed' } })).ok, 1);
  await checkFails('another key', 23, () => admin.command({ shardCollection: 'drivers_sharded.h', key: { a: 1 } }));
  const h = db.collection('h');
  const docs = numbers(3000).map((i) => ({ _id: i, x: i % 10, y: `v${i}` }));
  check('unordered', (await h.insertMany(docs, { ordered: false })).insertedCount, 3000);
  check('count', await h.countDocuments({}), 3000);
  check('estimated', await h.estimatedDocumentCount(), 3000);
  check('one', await h.findOne({ _id: 77 }), { _id: 77, x: 7, y: 'v77' });
  check('in', (await h.find({ _id: { $in: [1, 2, 3, 4, 5] } }).toArray()).length, 5);
  check('sorted', (await h.find().sort({ _id: 1 }).batchSize(37).toArray()).map((d) => d._id), numbers(3000));
  check('descending', (await h.find().sort({ x: -1, _id: 1 }).skip(2).limit(3).toArray()).map((d) => d._id), [29, 39, 49]);
  check('projected sort', (await h.find({}, { projection: { _id: 0, y: 1 } }).sort({ _id: 1 }).skip(10).limit(2).toArray()), [{ y: 'v10' }, { y: 'v11' }]);
  check('distinct', (await h.distinct('x')).sort(), numbers(10));
  check('group', (await h.aggregate([{ $group: { _id: '$x', n: { $sum: 1 } } }, { $sort: { _id: 1 } }]).toArray()), numbers(10).map((x) => ({ _id: x, n: 300 })));
  check('$count', await h.aggregate([{ $match: { x: 3 } }, { $count: 'n' }]).toArray(), [{ n: 300 }]);
  check('$sort $limit', (await h.aggregate([{ $match: { x: 5 } }, { $sort: { _id: -1 } }, { $skip: 1 }, { $limit: 2 }, { $project: { _id: 1 } }]).toArray()), [{ _id: 2985 }, { _id: 2975 }]);
  check('updateMany', (await h.updateMany({ x: 3 }, { $set: { z: 1 } })).modifiedCount, 300);
  check('updateOne by key', (await h.updateOne({ _id: 5 }, { $inc: { n: 1 } })).modifiedCount, 1);
  check('updateOne anywhere', (await h.updateOne({ y: 'v500' }, { $inc: { n: 1 } })).modifiedCount, 1);
  check('was that one', (await h.findOne({ _id: 500 })).n, 1);
  check('upsert', (await h.updateOne({ _id: 9000 }, { $set: { n: 1 } }, { upsert: true })).upsertedId, 9000);
  check('upsert without key', (await h.updateOne({ q: 1 }, { $set: { n: 1 } }, { upsert: true })).upsertedCount, 1);
  check('upsert without key again', (await h.updateOne({ q: 1 }, { $inc: { n: 1 } }, { upsert: true })).modifiedCount, 1);
  check('upserted once', (await h.find({ q: 1 }).toArray()).map((doc) => doc.n), [2]);
  check('and gone', (await h.deleteMany({ q: 1 })).deletedCount, 1);
  await checkFails('multi upsert without key', 61, () => h.updateMany({ q: 1 }, { $set: { n: 1 } }, { upsert: true }));
  check('deleteOne anywhere', (await h.deleteOne({ y: 'v501' })).deletedCount, 1);
  check('findOneAndUpdate', (await h.findOneAndUpdate({ x: 6 }, { $set: { t: 1 } }, { sort: { _id: -1 }, returnDocument: 'after' }))._id, 2996);
  check('findOneAndDelete', (await h.findOneAndDelete({ _id: 7 }))._id, 7);
  check('deleteMany', (await h.deleteMany({ x: 4 })).deletedCount, 300);
  await h.insertMany([{ _id: 9001 }, { _id: 1 }, { _id: 9002 }, { _id: 2 }], { ordered: false }).then(() => check('duplicates', 'none', 'two'),
    (error) => check('duplicates', [error.writeErrors.map((w) => w.index), error.insertedCount], [[1, 3], 2]));
  await h.insertMany([{ _id: 9003 }, { _id: 9004 }, { _id: 1 }, { _id: 9005 }]).then(() => check('ordered', 'none', 'one'),
    (error) => check('ordered', [error.writeErrors.map((w) => w.index), error.insertedCount], [[2], 2]));
  check('none after the error', await h.countDocuments({ _id: 9005 }), 0);
  check('index', await h.createIndex({ x: 1 }), 'x_1');
  check('indexes', (await h.indexes()).map((i) => i.name), ['_id_', '_id_hashed', 'x_1']);
  await checkFails('unique index', 67, () => h.createIndex({ y: 1 }, { unique: true }));
  check('validate', (await db.command({ validate: 'h' })).valid, true);

  const r = db.collection('r');
  await r.insertMany(numbers(100).map((k) => ({ k })));
  await checkFails('no index', 72, () => admin.command({ shardCollection: 'drivers_sharded.r', key: { k: 1 } }));
  await r.createIndex({ k: 1 });
  check('shard what is filled', (await admin.command({ shardCollection: 'drivers_sharded.r', key: { k: 1 } })).ok, 1);
  check('split middle', (await admin.command({ split: 'drivers_sharded.r', middle: { k: 50 } })).ok, 1);
  check('split find', (await admin.command({ split: 'drivers_sharded.r', find: { k: 10 } })).ok, 1);
  check('count by range', await r.countDocuments({ k: { $gte: 50 } }), 50);

  await admin.command({ shardCollection: 'drivers_sharded.c', key: { u: 1, _id: 'hashed' } });
  const c = db.collection('c');
  await c.insertMany([{ u: 1 }, { u: 2 }, { u: 1 }]);
  check('prefix of the key', await c.countDocuments({ u: 1 }), 2);
  check('collections', (await db.listCollections().toArray()).map((x) => x.name).sort(), ['c', 'h', 'r']);

  check('drop', await h.drop(), true);
  check('gone', await h.countDocuments({}), 0);
  await h.insertOne({ _id: 1 });
  check('unsharded again', await client.db('config').collection('collections').findOne({ _id: 'drivers_sharded.h' }), null);
  await h.drop();
  check('sharded again', (await admin.command({ shardCollection: 'drivers_sharded.h', key: { _id: 'hashed' }, numInitialChunks: 12 })).ok, 1);
  await h.insertMany(numbers(100).map((i) => ({ _id: i })), { ordered: false });
  check('counted again', await h.countDocuments({}), 100);
  await db.dropDatabase();
  check('all gone', await client.db('config').collection('collections').countDocuments({ _id: /^drivers_sharded\./ }), 0);
});
