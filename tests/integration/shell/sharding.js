// What administers the cluster, and how it is shown.
const database = db.getSiblingDB('shell_sharding');
database.dropDatabase();
assert.eq(sh.listShards().length, 2);
assert.commandWorked(sh.enableSharding('shell_sharding'));

assert.commandWorked(sh.shardCollection('shell_sharding.hashed', { _id: 'hashed' }));
database.hashed.insertMany(Array.from({ length: 1000 }, (item, i) => ({ _id: i })));
assert.eq(database.hashed.countDocuments(), 1000);
const stats = database.hashed.stats();
assert(stats.sharded);
assert.eq(stats.count, 1000);
assert.eq(Object.keys(stats.shards).length, 2);
database.hashed.getShardDistribution();

assert.commandWorked(sh.shardCollection('shell_sharding.ranged', { a: 1 }));
assert.commandWorked(sh.splitAt('shell_sharding.ranged', { a: 100 }));
database.ranged.insertMany([{ a: 1 }, { a: 50 }, { a: 150 }]);
assert.commandWorked(sh.splitFind('shell_sharding.ranged', { a: 1 }));
const entry = db.getSiblingDB('config').collections.findOne({ _id: 'shell_sharding.ranged' });
const bounds = db.getSiblingDB('config').chunks.find({ uuid: entry.uuid }).sort({ min: 1 }).map(chunk => chunk.min.a).toArray();
assert.eq(bounds[0], MinKey());
assert.contains(100, bounds);
assert.throws(() => sh.shardCollection('nodot', { a: 1 }));
assert.throws(() => sh.splitAt('shell_sharding.none', { a: 1 }));

sh.status();
sh.status(true);
database.dropDatabase();
