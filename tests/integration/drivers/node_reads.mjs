// Reads that last, are watched and are ended: explain, tailable cursors, sorts on disk, currentOp, killOp, maxTimeMS.
import { MongoClient } from 'mongodb';
import { check, checkFails, run } from './check.mjs';

const uri = process.argv[2];
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const sum = { $reduce: { input: { $range: [0, 20000] }, initialValue: 0, in: { $add: ['$$value', '$$this'] } } };
const slow = { $expr: { $eq: [sum, 1] } };

async function fill(coll) {
  await coll.insertMany(Array.from({ length: 3000 }, (_, i) => ({ _id: i, k: i % 100, x: i % 10, y: i % 3 })), { ordered: false });
  await coll.createIndex({ x: 1 });
}

async function explains(db) {
  const stats = (cursor) => cursor.explain('executionStats');
  const one = await stats(db.collection('plain').find({ x: 3 }));
  check('explain, unsharded', one.queryPlanner.winningPlan.stage, 'SINGLE_SHARD');
  check('explain, index', one.queryPlanner.winningPlan.shards[0].winningPlan.inputStage.indexName, 'x_1');
  check('explain, examined', one.executionStats.totalDocsExamined, 300);
  check('explain, routing', one.targeting.kind, 'unsharded');
  const all = await stats(db.collection('sharded').find({ x: 3 }).sort({ y: 1 }));
  check('explain, merged', all.queryPlanner.winningPlan.stage, 'SHARD_MERGE_SORT');
  check('explain, broadcast', [all.targeting.kind, all.targeting.shards], ['broadcast', all.targeting.of]);
  check('explain, keys of all shards', all.executionStats.totalKeysExamined, 300);
  check('explain, shards', all.executionStats.executionStages.shards.reduce((n, s) => n + s.nReturned, 0), 300);
  const point = await stats(db.collection('sharded').find({ k: 3 }));
  check('explain, targeted', [point.targeting.kind, point.targeting.reason, point.targeting.shards], ['targeted', 'equality on k', 1]);
  const write = await db.command({ explain: { delete: 'sharded', deletes: [{ q: { x: 1 }, limit: 0 }] }, verbosity: 'executionStats' });
  check('explain, delete', write.queryPlanner.winningPlan.stage, 'SHARD_WRITE');
  check('explain deletes nothing', await db.collection('sharded').countDocuments({}), 3000);
  const group = await db.collection('sharded').aggregate([{ $group: { _id: '$x' } }]).explain();
  check('explain, pipeline', [group.mergeType, Object.keys(group.shards).length], ['mongos', all.targeting.of]);
  await checkFails('explain, verbosity', 2, () => db.command({ explain: { find: 'plain' }, verbosity: 'much' }));
  await checkFails('explain of explain', 20, () => db.command({ explain: { explain: { find: 'plain' } } }));
}

async function options(coll) {
  check('returnKey', await coll.find({ x: 3 }).returnKey(true).limit(1).toArray(), [{ x: 3 }]);
  check('showRecordId', (await coll.find({ _id: 7 }).showRecordId(true).toArray())[0].$recordId > 0, true);
  check('min and max', (await coll.find({}).min({ x: 3 }).max({ x: 5 }).hint({ x: 1 }).toArray()).length, 600);
  await checkFails('min without a hint', 51173, () => coll.find({}).min({ x: 3 }).toArray());
}

async function tails(db) {
  const capped = await db.createCollection('capped', { capped: true, size: 100000, max: 10 });
  await capped.insertMany([{ _id: 1 }, { _id: 2 }]);
  const cursor = capped.find({}, { tailable: true, awaitData: true, maxAwaitTimeMS: 500 });
  check('tail', [await cursor.next(), await cursor.next()], [{ _id: 1 }, { _id: 2 }]);
  const begun = Date.now();
  check('tail, nothing new', await cursor.tryNext(), null);
  check('tail, waited', Date.now() - begun >= 450, true);
  setTimeout(() => capped.insertOne({ _id: 3 }), 100);
  check('tail, woken', await cursor.next(), { _id: 3 });
  await capped.insertMany(Array.from({ length: 30 }, (_, i) => ({ _id: 100 + i })));
  await checkFails('tail, place lost', 136, () => cursor.next());
  await checkFails('tail, not capped', 2, () => db.collection('plain').find({}, { tailable: true }).toArray());
}

async function ends(client, db, name) {
  const admin = client.db('admin');
  const coll = db.collection(name);
  await checkFails(`${name}: maxTimeMS`, 50, () => coll.find(slow).maxTimeMS(150).toArray());
  await checkFails(`${name}: maxTimeMS of a group`, 50, () => coll.aggregate([{ $match: slow }, { $group: { _id: '$x' } }], { maxTimeMS: 150 }).toArray());
  for (const localOps of [true, false]) {
    const comment = `${name} ${localOps}`;
    const reading = coll.find(slow, { comment }).toArray().then(() => 'finished', (error) => error.code);
    let shown = [];
    for (let i = 0; i < 100 && shown.length === 0; i++) {
      await pause(20);
      shown = await admin.aggregate([{ $currentOp: { localOps } }, { $match: { 'command.comment': comment } }]).toArray();
    }
    check(`${comment}: shown`, shown.length > 0 && shown.every((op) => op.op === 'query' && op.ns === `${db.databaseName}.${name}`), true);
    for (const op of shown) await admin.command({ killOp: 1, op: op.opid });
    check(`${comment}: killed`, await reading, 11601);
  }
  const other = new MongoClient(uri);
  await other.connect();
  other.db(db.databaseName).collection(name).find(slow, { comment: 'left' }).toArray().catch(() => {});
  await pause(200);
  await other.close(true);
  await pause(1000);
  const left = await admin.aggregate([{ $currentOp: {} }, { $match: { 'command.comment': 'left' } }]).toArray();
  check(`${name}: ends with its client`, left.length, 0);
}

async function sorts(db) {
  const coll = db.collection('large');
  const pad = 'p'.repeat(10000);
  for (let k = 0; k < 15; k++) {
    await coll.insertMany(Array.from({ length: 800 }, (_, i) => ({ _id: k * 800 + i, r: ((k * 800 + i) * 7919) % 12000, pad })), { ordered: false });
  }
  let last = -1;
  let sorted = 0;
  for await (const doc of coll.find({}).sort({ r: 1 }).project({ pad: 1, r: 1 })) {
    sorted += doc.r > last;
    last = doc.r;
  }
  check('sort on disk', sorted, 12000);
  await checkFails('sort without the disk', 292, () => coll.find({}).sort({ r: 1 }).allowDiskUse(false).toArray());
  const groups = await coll.aggregate([{ $group: { _id: '$r', pads: { $push: '$pad' } } }, { $project: { n: { $size: '$pads' } } }]).toArray();
  check('group on disk', [groups.length, groups.every((g) => g.n === 1)], [12000, true]);
}

await run(uri, async (client) => {
  const db = client.db('drivers_reads');
  await db.dropDatabase();
  await client.db('admin').command({ shardCollection: 'drivers_reads.sharded', key: { k: 'hashed' } });
  await fill(db.collection('plain'));
  await fill(db.collection('sharded'));
  await explains(db);
  await options(db.collection('plain'));
  await tails(db);
  await ends(client, db, 'plain');
  await ends(client, db, 'sharded');
  await sorts(db);
  await db.dropDatabase();
});
