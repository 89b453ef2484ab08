// What one router changes the other sees at once: databases, sharding, drops.
import { MongoClient } from 'mongodb';
import { check, run } from './check.mjs';

await run(process.argv[2], async (first) => {
  const second = new MongoClient(process.argv[3], { serverSelectionTimeoutMS: 10000 });
  await second.connect();
  try {
    const a = first.db('drivers_two').collection('c');
    const b = second.db('drivers_two').collection('c');
    await first.db('drivers_two').dropDatabase();
    check('nothing', await b.countDocuments({}), 0);
    await a.insertOne({ _id: 1 });
    check('created', await b.countDocuments({}), 1);
    await a.drop();
    await first.db('admin').command({ shardCollection: 'drivers_two.c', key: { _id: 'hashed' } });
    await b.insertMany(Array.from({ length: 200 }, (_, i) => ({ _id: i })), { ordered: false });
    check('sharded behind its back', await a.countDocuments({}), 200);
    check('sorted', (await b.find().sort({ _id: 1 }).limit(3).toArray()).map((d) => d._id), [0, 1, 2]);
    await second.db('drivers_two').dropDatabase();
    check('dropped behind its back', await a.countDocuments({}), 0);
    await a.insertOne({ _id: 'new' });
    check('a new one of that name', await b.findOne({ _id: 'new' }), { _id: 'new' });
    await first.db('drivers_two').dropDatabase();

    // Sharded while the other writes: nothing acknowledged is lost.
    await a.insertOne({ _id: -1 });
    await a.deleteMany({});
    let acknowledged = 0;
    let stop = false;
    const writer = (async () => {
      for (let i = 0; !stop; i++) {
        await b.insertOne({ _id: i });
        acknowledged++;
      }
    })();
    await new Promise((resolve) => setTimeout(resolve, 100));
    await a.createIndex({ _id: 'hashed' });
    await first.db('admin').command({ shardCollection: 'drivers_two.c', key: { _id: 'hashed' } });
    await new Promise((resolve) => setTimeout(resolve, 300));
    stop = true;
    await writer;
    check('acknowledged while it was sharded', await a.countDocuments({}), acknowledged);
    await first.db('drivers_two').dropDatabase();
  } finally {
    await second.close();
  }
});
