// The leader of a shard is killed under load: the client sees no state-change code, every acknowledged write stays.
import { execFileSync } from 'node:child_process';
import { check, run } from './check.mjs';

const [, , uri, cluster, dir] = process.argv;
const hidden = new Set([91, 189, 11600, 11602, 10107, 13435, 13436, 10058, 13388]);

await run(uri, async (client) => {
  const db = client.db('drivers_failover');
  await db.dropDatabase();
  await client.db('admin').command({ shardCollection: 'drivers_failover.c', key: { _id: 'hashed' } });
  const coll = db.collection('c');
  const acknowledged = [];
  const codes = new Set();
  let stop = false;
  const writers = Array.from({ length: 8 }, async (_, w) => {
    for (let i = 0; !stop; i++) {
      const _id = w * 1000000 + i;
      try {
        await coll.insertOne({ _id });
        acknowledged.push(_id);
      } catch (error) {
        if (error.code !== undefined) codes.add(error.code);
      }
    }
  });
  await new Promise((resolve) => setTimeout(resolve, 1000));
  const before = acknowledged.length;
  for (const set of ['shard0', 'shard1']) execFileSync(cluster, ['kill', '--dir', dir, '--leader', set]);
  await new Promise((resolve) => setTimeout(resolve, 5000));
  stop = true;
  await Promise.all(writers);
  check('writes went on', acknowledged.length > before, true);
  check('codes of state changes', [...codes].filter((code) => hidden.has(code)), []);
  const there = new Set((await coll.find({}, { projection: { _id: 1 } }).toArray()).map((d) => d._id));
  check('acknowledged writes lost', acknowledged.filter((id) => !there.has(id)), []);
  console.log(`${acknowledged.length} acknowledged, ${before} before the kills; error codes seen: ${[...codes]}`);
  execFileSync(cluster, ['start', '--dir', dir]);
  await db.dropDatabase();
});
