// Collections: the CRUD helpers and what else goes by collection.
'use strict';
(() => {
    const native = globalThis.__native;
    const fail = globalThis.__fail;
    const defined = globalThis.__defined;

    function isOperators(update) {
        return Array.isArray(update) || Object.keys(update)[0]?.startsWith('$') === true;
    }

    function checkUpdate(update, name) {
        if (update === null || typeof update !== 'object')
            fail(`${name}() needs an update document`);
        if (!isOperators(update))
            fail('the update operation document must contain atomic operators');
    }

    function checkReplacement(replacement, name) {
        if (replacement === null || typeof replacement !== 'object')
            fail(`${name}() needs a replacement document`);
        if (isOperators(replacement))
            fail('the replacement document must not contain atomic operators');
    }

    function withId(document) {
        if (document === null || typeof document !== 'object' || Array.isArray(document))
            fail('a document is expected');
        if (document._id !== undefined)
            return document;
        // The caller's object gets the id as well, as drivers do it.
        document._id = new globalThis.ObjectId();
        return { _id: document._id, ...document };
    }

    const number = value => Number(value ?? 0);

    // Sums up the replies to one kind of write.
    class Tally {
        n = 0;
        nModified = 0;
        upserted = [];
        writeErrors = [];
        writeConcernError;
        add(reply, offset) {
            this.n += number(reply.n);
            this.nModified += number(reply.nModified);
            for (const item of reply.upserted ?? [])
                this.upserted.push({ ...item, index: number(item.index) + offset });
            for (const item of reply.writeErrors ?? [])
                this.writeErrors.push({ ...item, index: number(item.index) + offset });
            this.writeConcernError ??= reply.writeConcernError;
        }
    }

    const Collection = class Collection {
        #db;
        #name;
        constructor(db, name) {
            this.#db = db;
            this.#name = name;
        }

        getName() { return this.#name; }
        getDB() { return this.#db; }
        getMongo() { return this.#db.getMongo(); }
        getFullName() { return `${this.#db.getName()}.${this.#name}`; }
        getCollection(name) { return this.#db.getCollection(`${this.#name}.${name}`); }
        toString() { return this.getFullName(); }
        [globalThis.__inspect.custom]() { return this.getFullName(); }
        help() { return globalThis.__shell.help('collection'); }

        runCommand(command, options = {}) {
            return this.#db.runCommand(typeof command === 'string' ? { [command]: this.#name, ...options } : command);
        }
        #run(command) { return this.#db.runCommand(defined(command)); }

        // Sends statements in batches; ordered ones stop at the first error.
        #write(kind, sequence, statements, { ordered = true, writeConcern, bypassDocumentValidation, comment, let: variables } = {}) {
            const command = defined({ [kind]: this.#name, ordered, writeConcern, bypassDocumentValidation, comment, let: variables });
            const tally = new Tally();
            for (let start = 0; start < statements.length;) {
                const { reply, count } = native.runBatch(this.#db.getName(), command, sequence, statements, start);
                if (number(reply.ok) !== 1)
                    throw new globalThis.MongoServerError(reply);
                tally.add(reply, start);
                if (ordered && tally.writeErrors.length > 0)
                    break;
                start += count;
            }
            return tally;
        }

        // The same for one statement: its error is thrown.
        #writeOne(kind, sequence, statement, options) {
            const tally = this.#write(kind, sequence, [statement], options);
            if (tally.writeErrors.length > 0)
                throw new globalThis.MongoServerError(tally.writeErrors[0]);
            if (tally.writeConcernError !== undefined)
                throw new globalThis.MongoWriteConcernError(tally.writeConcernError, tally);
            return tally;
        }

        // --- insert ---

        insertOne(document, options) {
            const stored = withId(document);
            this.#writeOne('insert', 'documents', stored, options);
            return { acknowledged: true, insertedId: stored._id };
        }
        insertMany(documents, options) {
            if (!Array.isArray(documents) || documents.length === 0)
                fail('insertMany() needs an array of documents');
            const stored = documents.map(withId);
            const tally = this.#write('insert', 'documents', stored, options);
            const failed = new Set(tally.writeErrors.map(item => item.index));
            const first = options?.ordered !== false && tally.writeErrors.length > 0 ? tally.writeErrors[0].index : stored.length;
            const insertedIds = {};
            stored.forEach((document, i) => {
                if (i < first && !failed.has(i))
                    insertedIds[i] = document._id;
            });
            if (tally.writeErrors.length > 0)
                throw new globalThis.MongoBulkWriteError(tally.writeErrors, { insertedCount: tally.n, insertedIds });
            if (tally.writeConcernError !== undefined)
                throw new globalThis.MongoWriteConcernError(tally.writeConcernError, { insertedIds });
            return { acknowledged: true, insertedIds };
        }
        insert(documents, options) {
            return this.insertMany(Array.isArray(documents) ? documents : [documents], options);
        }
        save(document) {
            return document._id === undefined ? this.insertOne(document) :
                this.replaceOne({ _id: document._id }, document, { upsert: true });
        }

        // --- update ---

        #update(q, u, multi, options = {}) {
            const { upsert, arrayFilters, collation, hint, sort, ...rest } = options;
            const tally = this.#writeOne('update', 'updates', defined({ q, u, multi, upsert, arrayFilters, collation, hint, sort }),
                rest);
            const upsertedCount = tally.upserted.length;
            return {
                acknowledged: true,
                insertedId: upsertedCount > 0 ? tally.upserted[0]._id : null,
                matchedCount: tally.n - upsertedCount,
                modifiedCount: tally.nModified,
                upsertedCount,
            };
        }
        updateOne(filter, update, options) {
            checkUpdate(update, 'updateOne');
            return this.#update(filter, update, false, options);
        }
        updateMany(filter, update, options) {
            checkUpdate(update, 'updateMany');
            return this.#update(filter, update, true, options);
        }
        replaceOne(filter, replacement, options) {
            checkReplacement(replacement, 'replaceOne');
            return this.#update(filter, replacement, false, options);
        }
        update(filter, update, { multi = false, ...options } = {}) {
            return this.#update(filter, update, multi, options);
        }

        // --- delete ---

        #delete(q, limit, options = {}) {
            const { collation, hint, ...rest } = options;
            const tally = this.#writeOne('delete', 'deletes', defined({ q, limit, collation, hint }), rest);
            return { acknowledged: true, deletedCount: tally.n };
        }
        deleteOne(filter, options) { return this.#delete(filter ?? fail('deleteOne() needs a filter'), 1, options); }
        deleteMany(filter, options) { return this.#delete(filter ?? fail('deleteMany() needs a filter'), 0, options); }
        remove(filter, options) {
            const justOne = options === true || options?.justOne === true;
            return this.#delete(filter ?? fail('remove() needs a filter'), justOne ? 1 : 0, {});
        }

        // --- bulk ---

        static #statement(operation) {
            const [[kind, spec]] = Object.entries(operation);
            const { filter: q, update, replacement, upsert, arrayFilters, collation, hint } = spec;
            const common = defined({ upsert, arrayFilters, collation, hint });
            switch (kind) {
            case 'insertOne':
                return ['insert', 'documents', withId(spec.document ?? spec)];
            case 'updateOne':
                checkUpdate(update, kind);
                return ['update', 'updates', { q, u: update, multi: false, ...common }];
            case 'updateMany':
                checkUpdate(update, kind);
                return ['update', 'updates', { q, u: update, multi: true, ...common }];
            case 'replaceOne':
                checkReplacement(replacement, kind);
                return ['update', 'updates', { q, u: replacement, multi: false, ...common }];
            case 'deleteOne':
                return ['delete', 'deletes', defined({ q, limit: 1, collation, hint })];
            case 'deleteMany':
                return ['delete', 'deletes', defined({ q, limit: 0, collation, hint })];
            default:
                return fail(`bulkWrite() knows no operation '${kind}'`);
            }
        }

        // Neighbours of one kind go together when ordered, all of one kind otherwise.
        static #groups(operations, ordered) {
            const groups = [];
            operations.forEach((operation, index) => {
                const [kind, sequence, statement] = Collection.#statement(operation);
                let group = ordered ? groups.at(-1) : groups.find(item => item.kind === kind);
                if (group?.kind !== kind) {
                    group = { kind, sequence, statements: [], indexes: [] };
                    groups.push(group);
                }
                group.statements.push(statement);
                group.indexes.push(index);
            });
            return groups;
        }

        bulkWrite(operations, options = {}) {
            if (!Array.isArray(operations) || operations.length === 0)
                fail('bulkWrite() needs an array of operations');
            const ordered = options.ordered !== false;
            const result = {
                acknowledged: true, insertedCount: 0, insertedIds: {}, matchedCount: 0, modifiedCount: 0, deletedCount: 0,
                upsertedCount: 0, upsertedIds: {},
            };
            const writeErrors = [];
            for (const { kind, sequence, statements, indexes } of Collection.#groups(operations, ordered)) {
                const tally = this.#write(kind, sequence, statements, options);
                Collection.#count(result, kind, tally, statements, indexes);
                writeErrors.push(...tally.writeErrors.map(item => ({ ...item, index: indexes[item.index] })));
                if (ordered && writeErrors.length > 0)
                    break;
            }
            if (writeErrors.length > 0)
                throw new globalThis.MongoBulkWriteError(writeErrors, result);
            return result;
        }

        static #count(result, kind, tally, statements, indexes) {
            if (kind === 'insert') {
                result.insertedCount += tally.n;
                const failed = new Set(tally.writeErrors.map(item => item.index));
                statements.forEach((document, i) => {
                    if (!failed.has(i))
                        result.insertedIds[indexes[i]] = document._id;
                });
            } else if (kind === 'update') {
                result.matchedCount += tally.n - tally.upserted.length;
                result.modifiedCount += tally.nModified;
                result.upsertedCount += tally.upserted.length;
                for (const item of tally.upserted)
                    result.upsertedIds[indexes[item.index]] = item._id;
            } else {
                result.deletedCount += tally.n;
            }
        }

        // --- find ---

        find(filter, projection, options) { return new globalThis.FindCursor(this, filter, projection, options); }
        findOne(filter, projection, options) {
            return new globalThis.FindCursor(this, filter, projection, { ...options, limit: 1, singleBatch: true }).next();
        }
        findAndModify(spec) {
            const { query, sort, remove, update, new: returnNew, fields, upsert, arrayFilters, collation, hint, maxTimeMS,
                writeConcern, bypassDocumentValidation, comment, let: variables } = spec;
            return this.#run({ findAndModify: this.#name, query, sort, remove, update, new: returnNew, fields, upsert, arrayFilters,
                collation, hint, maxTimeMS, writeConcern, bypassDocumentValidation, comment, let: variables }).value;
        }
        #findOneAnd(query, change, options = {}) {
            const { projection, returnNewDocument, returnDocument, ...rest } = options;
            const wantsNew = returnNewDocument === true || returnDocument === 'after';
            return this.findAndModify({ query, ...change, fields: projection, new: change.remove ? undefined : wantsNew, ...rest });
        }
        findOneAndUpdate(filter, update, options) {
            checkUpdate(update, 'findOneAndUpdate');
            return this.#findOneAnd(filter, { update }, options);
        }
        findOneAndReplace(filter, replacement, options) {
            checkReplacement(replacement, 'findOneAndReplace');
            return this.#findOneAnd(filter, { update: replacement }, options);
        }
        findOneAndDelete(filter, options) { return this.#findOneAnd(filter, { remove: true }, options); }

        countDocuments(filter = {}, { skip, limit, hint, collation, maxTimeMS } = {}) {
            const pipeline = [{ $match: filter }];
            if (skip !== undefined)
                pipeline.push({ $skip: skip });
            if (limit !== undefined)
                pipeline.push({ $limit: limit });
            pipeline.push({ $group: { _id: 1, n: { $sum: 1 } } });
            return number(this.aggregate(pipeline, defined({ hint, collation, maxTimeMS })).next()?.n);
        }
        estimatedDocumentCount({ maxTimeMS } = {}) { return number(this.#run({ count: this.#name, maxTimeMS }).n); }
        count(query = {}, options = {}) { return number(this.#run({ count: this.#name, query, ...options }).n); }
        distinct(key, query = {}, options = {}) { return this.#run({ distinct: this.#name, key, query, ...options }).values; }
        aggregate(pipeline, ...rest) {
            const stages = Array.isArray(pipeline) ? pipeline : [pipeline, ...rest];
            const options = Array.isArray(pipeline) ? rest[0] ?? {} : {};
            const { batchSize, explain, cursor = batchSize === undefined ? {} : { batchSize }, ...others } = options;
            const command = { aggregate: this.#name, pipeline: stages, cursor, ...others };
            if (explain)
                return this.#db.runCommand({ explain: command, verbosity: explain === true ? 'queryPlanner' : explain });
            const out = new globalThis.CommandCursor(this.#db, this.#name, command);
            const last = Object.keys(stages.at(-1) ?? {})[0];
            if (last === '$out' || last === '$merge')
                out.hasNext(); // they take effect without anybody reading
            return out;
        }
        explain(verbosity = 'queryPlanner') {
            const run = command => this.#run({ explain: defined(command), verbosity });
            const name = this.#name;
            return {
                find: (filter, projection) => new globalThis.FindCursor(this, filter, projection)._explained(verbosity),
                aggregate: (pipeline, options) => run({ aggregate: name, pipeline, cursor: {}, ...options }),
                count: (query, options) => run({ count: name, query, ...options }),
                distinct: (key, query) => run({ distinct: name, key, query }),
                update: (q, u, options) => run({ update: name, updates: [{ q, u, ...options }] }),
                remove: (q, options) => run({ delete: name, deletes: [{ q, limit: options?.justOne ? 1 : 0 }] }),
                findAndModify: spec => run({ findAndModify: name, ...spec }),
            };
        }

        // --- indexes ---

        static indexName(keys) { return Object.entries(keys).map(([field, kind]) => `${field}_${kind}`).join('_'); }
        createIndexes(list, options = {}) {
            const { commitQuorum, ...rest } = options;
            const indexes = list.map(item => 'key' in item && typeof item.key === 'object' ? item :
                { key: item, name: Collection.indexName(item), ...rest });
            this.#run({ createIndexes: this.#name, indexes, commitQuorum });
            return indexes.map(item => item.name);
        }
        createIndex(keys, options = {}) {
            const { commitQuorum, ...rest } = options;
            const spec = typeof keys === 'string' ? { [keys]: 1 } : keys;
            return this.createIndexes([{ key: spec, name: Collection.indexName(spec), ...rest }], { commitQuorum })[0];
        }
        ensureIndex(keys, options) { return this.createIndex(keys, options); }
        dropIndex(index) {
            if (index === '*')
                fail("to drop all indexes use dropIndexes()");
            return this.#run({ dropIndexes: this.#name, index });
        }
        dropIndexes(index = '*') { return this.#run({ dropIndexes: this.#name, index }); }
        #hidden(index, hidden) {
            const named = typeof index === 'string' ? { name: index } : { keyPattern: index };
            return this.#run({ collMod: this.#name, index: { ...named, hidden } });
        }
        hideIndex(index) { return this.#hidden(index, true); }
        unhideIndex(index) { return this.#hidden(index, false); }
        getIndexes() {
            return new globalThis.CommandCursor(this.#db, this.#name, { listIndexes: this.#name, cursor: {} }).toArray();
        }
        getIndices() { return this.getIndexes(); }
        getIndexKeys() { return this.getIndexes().map(index => index.key); }
        getIndexSpecs() { return this.getIndexes(); }

        // --- the collection itself ---

        drop(options = {}) {
            try {
                this.#run({ drop: this.#name, ...options });
                return true;
            } catch (error) {
                if (error.codeName === 'NamespaceNotFound')
                    return false;
                throw error;
            }
        }
        renameCollection(to, dropTarget = false) {
            return this.#db.adminCommand({ renameCollection: this.getFullName(), to: `${this.#db.getName()}.${to}`, dropTarget });
        }
        exists() { return this.#db.getCollectionInfos({ name: this.#name })[0] ?? null; }
        isCapped() { return this.exists()?.options?.capped === true; }
        validate(options = {}) { return this.#run({ validate: this.#name, ...options }); }
        convertToCapped(size) { return this.#run({ convertToCapped: this.#name, size }); }
        watch() { return fail('change streams are not supported'); }

        // $collStats of every shard.
        _storageStats(scale = 1) {
            return this.aggregate([{ $collStats: { storageStats: { scale } } }]).toArray();
        }
        stats(options = {}) {
            const scale = typeof options === 'number' ? options : options.scale ?? 1;
            const entry = this.#db.getSiblingDB('config').getCollection('collections').findOne({ _id: this.getFullName() });
            const out = { sharded: entry !== null && entry.unsplittable !== true, ns: this.getFullName(), count: 0, size: 0, storageSize: 0,
                totalIndexSize: 0, totalSize: 0, indexSizes: {}, avgObjSize: 0, nindexes: 0, nchunks: 0, shards: {}, scaleFactor: scale,
                ok: 1 };
            for (const { shard, storageStats: stats } of this._storageStats(scale)) {
                for (const field of ['count', 'size', 'storageSize', 'totalIndexSize', 'totalSize'])
                    out[field] += number(stats[field]);
                for (const [name, size] of Object.entries(stats.indexSizes ?? {}))
                    out.indexSizes[name] = number(out.indexSizes[name]) + number(size);
                out.nindexes = Math.max(out.nindexes, number(stats.nindexes));
                if (shard !== undefined)
                    out.shards[shard] = stats;
            }
            out.avgObjSize = out.count > 0 ? out.size * scale / out.count : 0;
            if (entry !== null)
                out.nchunks = this.#db.getSiblingDB('config').getCollection('chunks').countDocuments({ uuid: entry.uuid });
            return out;
        }
        dataSize() { return this.stats().size; }
        storageSize() { return this.stats().storageSize; }
        totalIndexSize() { return this.stats().totalIndexSize; }
        totalSize() { return this.stats().totalSize; }

        getShardVersion() { return this.#db.adminCommand({ getShardVersion: this.getFullName() }); }
        getShardDistribution() { return globalThis.__sharding.distribution(this); }

        initializeOrderedBulkOp() { return new globalThis.__Bulk(this, true); }
        initializeUnorderedBulkOp() { return new globalThis.__Bulk(this, false); }
    };

    // The old builder for bulkWrite.
    globalThis.__Bulk = class Bulk {
        #collection;
        #ordered;
        #operations = [];
        constructor(collection, ordered) {
            this.#collection = collection;
            this.#ordered = ordered;
        }
        #push(operation) {
            this.#operations.push(operation);
            return this;
        }
        insert(document) { return this.#push({ insertOne: { document } }); }
        find(filter, options = {}) {
            return {
                upsert: () => this.find(filter, { ...options, upsert: true }),
                collation: collation => this.find(filter, { ...options, collation }),
                arrayFilters: arrayFilters => this.find(filter, { ...options, arrayFilters }),
                hint: hint => this.find(filter, { ...options, hint }),
                updateOne: update => this.#push({ updateOne: { filter, update, ...options } }),
                update: update => this.#push({ updateMany: { filter, update, ...options } }),
                replaceOne: replacement => this.#push({ replaceOne: { filter, replacement, ...options } }),
                deleteOne: () => this.#push({ deleteOne: { filter, ...options } }),
                delete: () => this.#push({ deleteMany: { filter, ...options } }),
                removeOne: () => this.#push({ deleteOne: { filter, ...options } }),
                remove: () => this.#push({ deleteMany: { filter, ...options } }),
            };
        }
        execute(writeConcern) {
            return this.#collection.bulkWrite(this.#operations, { ordered: this.#ordered, writeConcern });
        }
    };

    // Names that the engine or the prompt asks every object for; they are no collections.
    const reserved = new Set(['then', 'toJSON', 'constructor', 'prototype', 'valueOf', '_bsontype', '__proto__', 'nodeType', '$$typeof']);

    globalThis.__byName = (target, make) => new Proxy(target, {
        get(object, key) {
            if (typeof key === 'symbol' || key in object || reserved.has(key)) {
                const value = object[key];
                return typeof value === 'function' ? value.bind(object) : value;
            }
            return make(key);
        },
    });

    globalThis.__makeCollection = (db, name) => {
        if (typeof name !== 'string' || name === '')
            fail('a collection needs a name');
        const collection = new Collection(db, name);
        return globalThis.__byName(collection, key => db.getCollection(`${name}.${key}`));
    };
})();
