// Shows how the documents of the quickstart lie on the shards, and a query of each kind.
const packages = db.getSiblingDB("demo").packages;

print("Documents on each shard:");
const sizes = packages.aggregate([{$collStats: {storageStats: {}}}]).toArray();
const total = sizes.reduce((sum, s) => sum + Number(s.storageStats.count), 0);
for (const s of sizes.sort((a, b) => (a.shard < b.shard ? -1 : 1))) {
  const count = Number(s.storageStats.count);
  const mib = (Number(s.storageStats.size) / 1048576).toFixed(1);
  print(`  ${s.shard}: ${count} documents, ${mib} MiB (${((100 * count) / total).toFixed(1)} %)`);
}
const counted = packages.countDocuments({});
print(`  together ${total}, counted by a query over all shards: ${counted}`);
if (counted !== total) throw new Error("the two counts differ");

print("\nOne shard answers this (the shard key is given): find({name: \"bash\"})");
const bash = packages.findOne({name: "bash"}, {_id: 0, name: 1, version: 1, section: 1, size: 1, "maintainer.name": 1});
if (bash === null) throw new Error("the package bash is not there");
print(bash);

print("\nAll shards answer this, merged in order: the largest three packages of section net");
for (const p of packages.find({section: "net"}, {_id: 0, name: 1, "size.download": 1}).sort({"size.download": -1}).limit(3))
  print(`  ${p.name}: ${p.size.download} bytes`);

print("\nAll shards count this, and the router adds it up: packages by section");
const sections = packages.aggregate([
  {$group: {_id: "$section", packages: {$sum: 1}}},
  {$sort: {packages: -1}},
  {$limit: 5},
]).toArray();
for (const s of sections) print(`  ${s._id}: ${s.packages}`);
