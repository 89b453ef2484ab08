// Documents lie on the shards that config.chunks says. The hash is computed here, not asked from the cluster.
import { createHash } from 'node:crypto';
import { check, run } from './check.mjs';

// Hash of an int32 as a hashed index takes it: MD5 of seed 0, the type class of numbers (10) and the value as int64.
function hashOf(number) {
  const bytes = Buffer.alloc(16);
  bytes.writeInt32LE(0, 0);
  bytes.writeInt32LE(10, 4);
  bytes.writeBigInt64LE(BigInt(number), 8);
  return createHash('md5').update(bytes).digest().readBigInt64LE(0);
}

const boundOf = (bound) => (typeof bound === 'bigint' ? bound : bound._bsontype === 'Long' ? bound.toBigInt() : bound._bsontype);
const inChunk = (chunk, hash) => {
  const min = boundOf(chunk.min._id), max = boundOf(chunk.max._id);
  return (min === 'MinKey' || min <= hash) && (max === 'MaxKey' || hash < max);
};

await run(process.argv[2], async (client) => {
  const db = client.db('drivers_placement');
  await db.dropDatabase();
  await client.db('admin').command({ shardCollection: 'drivers_placement.h', key: { _id: 'hashed' } });
  const h = db.collection('h');
  const count = 2000;
  await h.insertMany(Array.from({ length: count }, (_, i) => ({ _id: i })), { ordered: false });
  const config = client.db('config');
  const entry = await config.collection('collections').findOne({ _id: 'drivers_placement.h' });
  const chunks = await config.collection('chunks').find({ uuid: entry.uuid }, { promoteLongs: false }).toArray();
  const expected = {};
  for (let i = 0; i < count; i++) {
    const owners = chunks.filter((chunk) => inChunk(chunk, hashOf(i)));
    check(`one chunk holds ${i}`, owners.length, 1);
    expected[owners[0].shard] = (expected[owners[0].shard] ?? 0) + 1;
  }
  const stats = await h.aggregate([{ $collStats: { storageStats: {} } }]).toArray();
  const found = Object.fromEntries(stats.map((s) => [s.shard, Number(s.storageStats.count)]));
  check('documents by shard', found, Object.fromEntries(stats.map((s) => [s.shard, expected[s.shard] ?? 0])));
  check('shards with documents', Object.keys(expected).length, (await config.collection('shards').countDocuments({})));
  console.log(found);
  await db.dropDatabase();
});
