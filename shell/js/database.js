// Databases and the connection.
'use strict';
(() => {
    const native = globalThis.__native;
    const fail = globalThis.__fail;
    const defined = globalThis.__defined;
    const databases = new Map();

    class Mongo {
        getDB(name) {
            if (typeof name !== 'string' || name === '' || /[/\\. "$\0]/.test(name))
                fail(`not a database name: '${name}'`);
            if (!databases.has(name))
                databases.set(name, makeDatabase(name));
            return databases.get(name);
        }
        getDBs(options = {}) { return this.getDB('admin').adminCommand({ listDatabases: 1, ...options }); }
        getDBNames() { return this.getDBs({ nameOnly: true }).databases.map(database => database.name); }
        adminCommand(command) { return this.getDB('admin').runCommand(command); }
        setReadPref() { return undefined; }
        toString() { return `mongodb://${native.address()}/`; }
        [globalThis.__inspect.custom]() { return this.toString(); }
    }
    const mongo = new Mongo();

    class Database {
        #name;
        constructor(name) { this.#name = name; }

        getName() { return this.#name; }
        getMongo() { return mongo; }
        getSiblingDB(name) { return mongo.getDB(name); }
        getSisterDB(name) { return mongo.getDB(name); }
        getCollection(name) { return globalThis.__makeCollection(mongo.getDB(this.#name), name); }
        toString() { return this.#name; }
        [globalThis.__inspect.custom]() { return this.#name; }
        help() { return globalThis.__shell.help('database'); }

        runCommand(command, options = {}) {
            const document = typeof command === 'string' ? { [command]: 1, ...options } : command;
            const reply = native.runCommand(this.#name, document);
            if (Number(reply.ok) !== 1)
                throw new globalThis.MongoServerError(reply);
            return reply;
        }
        adminCommand(command, options) { return mongo.getDB('admin').runCommand(command, options); }
        aggregate(pipeline, options = {}) {
            return new globalThis.CommandCursor(mongo.getDB(this.#name), '$cmd.aggregate', { aggregate: 1, pipeline, cursor: {}, ...options });
        }

        // --- collections ---

        getCollectionInfos(filter = {}, options = {}) {
            const command = { listCollections: 1, filter, cursor: {}, ...options };
            return new globalThis.CommandCursor(mongo.getDB(this.#name), '$cmd.listCollections', command).toArray();
        }
        getCollectionNames() { return this.getCollectionInfos({}, { nameOnly: true }).map(info => info.name).sort(); }
        createCollection(name, options = {}) { return this.runCommand({ create: name, ...options }); }
        createView(name, viewOn, pipeline, options = {}) { return this.runCommand({ create: name, viewOn, pipeline, ...options }); }
        dropDatabase(options = {}) { return this.runCommand({ dropDatabase: 1, ...options }); }
        stats(options = {}) {
            return this.runCommand({ dbStats: 1, ...(typeof options === 'number' ? { scale: options } : options) });
        }

        // --- the server ---

        version() { return this.serverBuildInfo().version; }
        hello() { return this.runCommand({ hello: 1 }); }
        isMaster() { return this.runCommand({ isMaster: 1 }); }
        ping() { return this.runCommand({ ping: 1 }); }
        serverStatus(options = {}) { return this.adminCommand({ serverStatus: 1, ...options }); }
        serverBuildInfo() { return this.adminCommand({ buildInfo: 1 }); }
        hostInfo() { return this.adminCommand({ hostInfo: 1 }); }
        serverCmdLineOpts() { return this.adminCommand({ getCmdLineOpts: 1 }); }
        listCommands() { return this.runCommand({ listCommands: 1 }).commands; }
        currentOp(filter = {}) {
            const all = typeof filter === 'boolean' ? { allUsers: true, idleConnections: filter } : { allUsers: true };
            const pipeline = [{ $currentOp: all }];
            if (typeof filter === 'object' && Object.keys(filter).length > 0)
                pipeline.push({ $match: filter });
            return { inprog: mongo.getDB('admin').aggregate(pipeline).toArray(), ok: 1 };
        }
        killOp(op) { return this.adminCommand({ killOp: 1, op }); }
        shutdownServer(options = {}) { return this.adminCommand({ shutdown: 1, ...options }); }
        printCollectionStats() {
            for (const name of this.getCollectionNames())
                globalThis.print(name, this.getCollection(name).stats());
        }
        printShardingStatus(verbose) { return globalThis.sh.status(verbose); }
        getUsers() { return this.runCommand({ usersInfo: 1 }).users; }
        createUser(user) {
            const { user: createUser, ...rest } = user;
            return this.runCommand(defined({ createUser, ...rest }));
        }
        dropUser(name) { return this.runCommand({ dropUser: name }); }
    }

    function makeDatabase(name) {
        const database = new Database(name);
        return globalThis.__byName(database, key => database.getCollection(key));
    }

    globalThis.__mongo = mongo;
    globalThis.Mongo = Mongo;
    globalThis.db = mongo.getDB(globalThis.__database);
})();
