// sh.* and rs.*: what administers the cluster.
'use strict';
(() => {
    const fail = globalThis.__fail;
    const defined = globalThis.__defined;
    const print = (...values) => globalThis.print(...values);
    const admin = command => globalThis.__mongo.adminCommand(defined(command));
    const config = name => globalThis.__mongo.getDB('config').getCollection(name);
    const day = 24 * 3600 * 1000;

    function namespace(ns) {
        if (typeof ns !== 'string' || !/^[^.]+\../.test(ns))
            fail(`a namespace "database.collection" is expected, not '${ns}'`);
        return ns;
    }

    function updateCollectionEntry(ns, noBalance) {
        return config('collections').updateOne({ _id: namespace(ns) }, { $set: { noBalance } });
    }

    function setZone(ns, min, max, zone) {
        return admin({ updateZoneKeyRange: namespace(ns), min, max, zone });
    }

    const methods = {
        addShard: shard => admin({ addShard: shard }),
        removeShard: shard => admin({ removeShard: shard }),
        listShards: () => admin({ listShards: 1 }).shards,
        enableSharding: (database, primaryShard) => admin({ enableSharding: database, primaryShard }),
        shardCollection(ns, key, third, options = {}) {
            const unique = typeof third === 'boolean' ? third : undefined;
            const rest = typeof third === 'object' && third !== null ? third : options;
            return admin({ shardCollection: namespace(ns), key, unique, ...rest });
        },
        reshardCollection: (ns, key, unique, options = {}) => admin({ reshardCollection: namespace(ns), key, unique, ...options }),
        refineCollectionShardKey: (ns, key) => admin({ refineCollectionShardKey: namespace(ns), key }),
        movePrimary: (database, to) => admin({ movePrimary: database, to }),

        splitAt: (ns, middle) => admin({ split: namespace(ns), middle }),
        splitFind: (ns, find) => admin({ split: namespace(ns), find }),
        moveChunk: (ns, find, to) => admin({ moveChunk: namespace(ns), find, to }),
        moveRange: (ns, toShard, min, max) => admin({ moveRange: namespace(ns), toShard, min, max }),
        mergeChunks: (ns, bounds) => admin({ mergeChunks: namespace(ns), bounds }),

        addShardToZone: (shard, zone) => admin({ addShardToZone: shard, zone }),
        addShardTag: (shard, zone) => admin({ addShardToZone: shard, zone }),
        removeShardFromZone: (shard, zone) => admin({ removeShardFromZone: shard, zone }),
        removeShardTag: (shard, zone) => admin({ removeShardFromZone: shard, zone }),
        updateZoneKeyRange: setZone,
        addTagRange: setZone,
        removeRangeFromZone: (ns, min, max) => setZone(ns, min, max, null),
        removeTagRange: (ns, min, max) => setZone(ns, min, max, null),

        startBalancer: (timeout = 60000) => admin({ balancerStart: 1, maxTimeMS: timeout }),
        stopBalancer: (timeout = 60000) => admin({ balancerStop: 1, maxTimeMS: timeout }),
        setBalancerState: on => on ? methods.startBalancer() : methods.stopBalancer(),
        getBalancerState: () => config('settings').findOne({ _id: 'balancer' })?.stopped !== true,
        isBalancerRunning: () => admin({ balancerStatus: 1 }),
        enableBalancing: ns => updateCollectionEntry(ns, false),
        disableBalancing: ns => updateCollectionEntry(ns, true),
        balancerCollectionStatus: ns => admin({ balancerCollectionStatus: namespace(ns) }),
        getShardedDataDistribution: () =>
            globalThis.__mongo.getDB('admin').aggregate([{ $shardedDataDistribution: {} }]),
        status: verbose => printStatus(verbose === true),
        help: () => globalThis.__shell.help('sh'),
    };

    // --- sh.status() ---

    function section(title, content) {
        print(title);
        print(content);
        print('---');
    }

    // What a part of the status that the server may lack shows in its place.
    function attempt(fn, fallback) {
        try {
            return fn();
        } catch (error) {
            return fallback;
        }
    }

    const yesNo = value => value === undefined ? 'unknown' : value ? 'yes' : 'no';

    function mongoses(verbose) {
        const newest = config('mongos').find().sort({ ping: -1 }).limit(1).next()?.ping ?? new Date(0);
        const active = { ping: { $gt: new Date(newest.getTime() - 60000) } };
        if (verbose)
            return config('mongos').find(active).sort({ ping: -1 }).toArray();
        return config('mongos').aggregate([{ $match: active }, { $group: { _id: '$mongoVersion', num: { $sum: 1 } } },
            { $sort: { num: -1 } }]).toArray().map(({ _id, num }) => ({ [_id]: Number(num) }));
    }

    function balancer() {
        const rounds = attempt(() => config('actionlog').find({ what: 'balancer.round' }).sort({ time: -1 }).limit(5).toArray(), []);
        const moves = attempt(() => config('changelog').countDocuments({ what: 'moveChunk.commit', time: { $gt: new Date(Date.now() - day) } }), 0);
        return {
            'Currently enabled': yesNo(methods.getBalancerState()),
            'Currently running': yesNo(attempt(() => methods.isBalancerRunning().inBalancerRound, undefined)),
            'Failed balancer rounds in last 5 attempts': rounds.filter(round => round.details?.errorOccured).length,
            'Migration Results for the last 24 hours': moves === 0 ? 'No recent migrations' : { [moves]: 'Success' },
        };
    }

    function describeCollection(entry, verbose) {
        const match = entry.timestamp !== undefined ? { uuid: entry.uuid } : { ns: entry._id };
        const chunkMetadata = config('chunks').aggregate([{ $match: match }, { $group: { _id: '$shard', cnt: { $sum: 1 } } },
            { $sort: { _id: 1 } }]).toArray().map(({ _id, cnt }) => ({ shard: _id, nChunks: Number(cnt) }));
        const total = chunkMetadata.reduce((sum, { nChunks }) => sum + nChunks, 0);
        const chunks = total > 20 && !verbose ? ['too many chunks to print, use verbose if you want to force print'] :
            config('chunks').find(match).sort({ min: 1 }).toArray().map(chunk => ({ min: chunk.min, max: chunk.max,
                'on shard': chunk.shard, 'last modified': chunk.lastmod }));
        const tags = config('tags').find({ ns: entry._id }).sort({ min: 1 }).toArray().map(({ tag, min, max }) => ({ tag, min, max }));
        return { shardKey: entry.key, unique: entry.unique === true, balancing: entry.noBalance !== true, chunkMetadata, chunks, tags };
    }

    function describeDatabases(verbose) {
        const databases = config('databases').find().sort({ _id: 1 }).toArray();
        if (!databases.some(database => database._id === 'config'))
            databases.unshift({ _id: 'config', primary: 'config', partitioned: true });
        const entries = config('collections').find({ dropped: { $ne: true }, unsplittable: { $ne: true } }).sort({ _id: 1 }).toArray();
        return databases.map(database => ({
            database,
            collections: Object.fromEntries(entries.filter(entry => entry._id.startsWith(`${database._id}.`))
                .map(entry => [entry._id, describeCollection(entry, verbose)])),
        }));
    }

    function printStatus(verbose) {
        const version = config('version').findOne();
        if (version === null)
            fail('this database does not have sharding enabled: connect to a router');
        const { minCompatibleVersion, currentVersion, excluding, ...shardingVersion } = version;
        section('shardingVersion', shardingVersion);
        section('shards', config('shards').find().sort({ _id: 1 }).toArray());
        section(verbose ? 'active mongoses' : 'active mongoses', mongoses(verbose));
        section('autosplit', { 'Currently enabled': yesNo(config('settings').findOne({ _id: 'autosplit' })?.enabled !== false) });
        section('balancer', balancer());
        const distribution = attempt(() => methods.getShardedDataDistribution().toArray(), undefined);
        if (distribution !== undefined)
            section('shardedDataDistribution', distribution);
        print('databases');
        print(describeDatabases(verbose));
    }

    // --- getShardDistribution() ---

    // As mongosh has it: whole KiB, then two digits, rounded down.
    function size(bytes) {
        if (bytes < 1024)
            return `${Math.floor(bytes)}B`;
        const kib = Math.floor(bytes / 1024);
        if (kib < 1024)
            return `${kib}KiB`;
        const mib = kib / 1024;
        return mib < 1024 ? `${Math.floor(mib * 100) / 100}MiB` : `${Math.floor(mib / 1024 * 100) / 100}GiB`;
    }

    function distribution(collection) {
        const entry = config('collections').findOne({ _id: collection.getFullName() });
        if (entry === null || entry.unsplittable === true)
            fail(`collection ${collection.getName()} is not sharded`);
        const shards = collection._storageStats().map(({ shard, storageStats }) => ({
            shard,
            data: Number(storageStats.size ?? 0),
            docs: Number(storageStats.count ?? 0),
            average: Number(storageStats.avgObjSize ?? 0),
            chunks: config('chunks').countDocuments({ uuid: entry.uuid, shard }),
            host: config('shards').findOne({ _id: shard })?.host,
        }));
        const sum = name => shards.reduce((total, item) => total + item[name], 0);
        const totals = { data: sum('data'), docs: sum('docs'), chunks: sum('chunks') };
        const percent = (part, whole) => whole > 0 ? `${Math.round(part / whole * 10000) / 100} %` : '0 %';
        for (const { shard, host, data, docs, chunks } of shards) {
            print(`Shard ${shard} at ${host}`);
            print({ data: size(data), docs, chunks, 'estimated data per chunk': size(chunks > 0 ? data / chunks : 0),
                'estimated docs per chunk': chunks > 0 ? Math.floor(docs / chunks) : 0 });
            print('---');
        }
        print('Totals');
        const out = { data: size(totals.data), docs: totals.docs, chunks: totals.chunks };
        for (const { shard, data, docs, average } of shards)
            out[`Shard ${shard}`] = [`${percent(data, totals.data)} data`, `${percent(docs, totals.docs)} docs in cluster`,
                `${size(average)} avg obj size on shard`];
        print(out);
    }

    globalThis.sh = methods;
    globalThis.__sharding = { distribution, size };
    globalThis.printShardingStatus = verbose => printStatus(verbose === true);

    globalThis.rs = {
        status: () => admin({ replSetGetStatus: 1 }),
        conf: () => admin({ replSetGetConfig: 1 }).config,
        config: () => admin({ replSetGetConfig: 1 }).config,
        hello: () => admin({ hello: 1 }),
        isMaster: () => admin({ isMaster: 1 }),
        add: (host, arbiterOnly) => admin({ replSetAdd: host, arbiterOnly }),
        remove: host => admin({ replSetRemove: host }),
        stepDown: (seconds = 60) => admin({ replSetStepDown: seconds }),
        help: () => globalThis.__shell.help('rs'),
    };
})();
