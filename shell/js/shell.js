// The prompt's own commands, printing, timers, and what the host (engine.c) calls: everything in __shell.
'use strict';
(() => {
    const native = globalThis.__native;
    const { inspect } = globalThis.__inspect;
    const fail = globalThis.__fail;
    let json; // undefined, 'canonical' or 'relaxed': how results are printed

    const show = value => typeof value === 'string' ? value : inspect(value);

    // --- printing and files ---

    globalThis.print = (...values) => native.print(values.map(show).join(' '));
    globalThis.printjson = value => native.print(inspect(value));
    globalThis.printjsononeline = value => native.print(globalThis.EJSON.stringify(value));
    globalThis.tojson = value => inspect(value);
    globalThis.tojsononeline = value => inspect(value).replace(/\n\s*/g, ' ');
    globalThis.console = {
        log: globalThis.print,
        info: globalThis.print,
        debug: globalThis.print,
        warn: (...values) => native.printError(values.map(show).join(' ')),
        error: (...values) => native.printError(values.map(show).join(' ')),
        table: globalThis.print,
        clear: () => native.print('\x1b[H\x1b[2J'),
    };
    globalThis.sleep = ms => native.sleep(ms);
    globalThis.quit = (code = 0) => native.quit(code);
    globalThis.exit = globalThis.quit;
    // mongosh's settings, as far as they have a meaning here.
    globalThis.config = {
        get: name => name === 'displayBatchSize' ? globalThis.DBQuery.shellBatchSize : undefined,
        set: (name, value) => name === 'displayBatchSize' ? void (globalThis.DBQuery.shellBatchSize = value) :
            fail(`config knows: displayBatchSize`),
    };
    globalThis.pwd = () => native.cwd();
    globalThis.cat = path => native.readFile(path);
    globalThis.version = () => globalThis.__shell.version;
    globalThis.isInteractive = () => globalThis.__shell.interactive === true;
    globalThis.passwordPrompt = () => fail('the shell has no authentication yet');
    globalThis.fs = {
        readFileSync: path => native.readFile(path),
        writeFileSync: (path, text) => native.writeFile(path, String(text), false),
        appendFileSync: (path, text) => native.writeFile(path, String(text), true),
    };
    globalThis.process = {
        argv: ['sherd'],
        env: new Proxy({}, { get: (object, name) => typeof name === 'string' ? native.environment(name) : undefined }),
        cwd: () => native.cwd(),
        exit: globalThis.quit,
        platform: 'linux',
    };

    // Directory of the script that is being loaded, for relative paths.
    globalThis.__filename = undefined;
    globalThis.load = path => {
        const text = native.readFile(path);
        (0, eval)(`${text}\n//# sourceURL=${path}`);
        return true;
    };

    // --- the connection ---

    globalThis.connect = uri => {
        const match = /^(?:mongodb:\/\/)?([^/]*)(?:\/([^?]*))?/.exec(uri);
        if (match[1] !== '' && match[1] !== native.address())
            fail(`connect(): a shell has one connection, to ${native.address()}`);
        return globalThis.__mongo.getDB(match[2] || 'test');
    };

    function use(name) {
        if (name === undefined)
            fail('use needs the name of a database');
        globalThis.db = globalThis.__mongo.getDB(name);
        return `switched to db ${name}`;
    }

    function pad(rows) {
        const width = Math.max(0, ...rows.map(([name]) => name.length));
        const widthOfSize = Math.max(0, ...rows.map(([, text]) => text.length));
        return rows.map(([name, text]) => `${name.padEnd(width)}  ${text.padStart(widthOfSize)}`).join('\n');
    }

    function sizeText(bytes) {
        const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
        let unit = 0;
        for (; bytes >= 1024 && unit < units.length - 1; unit++)
            bytes /= 1024;
        return `${unit === 0 ? bytes : bytes.toFixed(2)} ${units[unit]}`;
    }

    const shows = {
        dbs: () => pad(globalThis.__mongo.getDBs().databases.map(item => [item.name, sizeText(Number(item.sizeOnDisk ?? 0))])),
        collections: () => globalThis.db.getCollectionInfos({}, { nameOnly: true }).map(info =>
            info.name + (info.type === 'view' ? '  [view]' : info.type === 'timeseries' ? '  [time-series]' : '')).sort().join('\n'),
        shards: () => inspect(globalThis.sh.listShards()),
        users: () => inspect(globalThis.db.getUsers()),
        roles: () => inspect(globalThis.db.runCommand({ rolesInfo: 1, showBuiltinRoles: true }).roles),
        profile: () => inspect(globalThis.db.getCollection('system.profile').find().sort({ ts: -1 }).limit(5).toArray()),
        logs: () => inspect(globalThis.db.adminCommand({ getLog: '*' }).names),
        log: (name = 'global') => globalThis.db.adminCommand({ getLog: name }).log.join('\n'),
    };
    shows.databases = shows.dbs;
    shows.tables = shows.collections;
    globalThis.show = (what, argument) => shows[what]?.(argument) ?? fail(`show knows: ${Object.keys(shows).join(', ')}`);

    const helpTexts = {
        shell: [
            ['show dbs | collections | shards', 'what is there'],
            ['use NAME', 'makes db another database'],
            ['db.COLLECTION.find({...})', 'documents; `it` shows more'],
            ['db.COLLECTION.insertOne({...})', 'and insertMany, updateOne, deleteOne, aggregate, createIndex, ...'],
            ['db.runCommand({...})', 'any command; db.adminCommand for those of admin'],
            ['sh.status()', 'the cluster; sh.help() lists what administers it'],
            ['load("FILE")', 'runs a script'],
            ['exit', 'leaves'],
        ],
        sh: [
            ['sh.addShard("SET/HOST:PORT,...")', 'adds a replica set as a shard'],
            ['sh.enableSharding(DB)', 'makes a database entry'],
            ['sh.shardCollection(NS, KEY, UNIQUE)', 'KEY: {a: 1} or {a: "hashed"}'],
            ['sh.splitAt(NS, KEY), sh.splitFind(NS, KEY)', 'splits the chunk'],
            ['sh.status(VERBOSE)', 'prints everything'],
            ['sh.getBalancerState(), sh.stopBalancer()', 'the balancer, which is always off yet'],
            ['sh.moveChunk(...), sh.startBalancer()', 'and zones answer an error: chunks do not move between shards yet'],
        ],
        rs: [['rs.status(), rs.conf(), rs.hello()', 'of the member that the shell is connected to']],
    };

    // The names in columns, read downwards.
    function columns(names, lineWidth = 96) {
        const width = Math.max(...names.map(name => name.length)) + 2;
        const count = Math.max(1, Math.floor(lineWidth / width));
        const lines = Math.ceil(names.length / count);
        return Array.from({ length: lines }, (_, line) =>
            names.filter((_, i) => i % lines === line).map(name => name.padEnd(width)).join('').trimEnd()).join('\n');
    }

    function help(topic = 'shell') {
        const rows = helpTexts[topic];
        if (rows !== undefined) {
            const width = Math.max(...rows.map(([name]) => name.length));
            return rows.map(([name, text]) => `${name.padEnd(width)}  ${text}`).join('\n');
        }
        const sample = topic === 'database' ? globalThis.__mongo.getDB('test') : globalThis.__mongo.getDB('test').getCollection('c');
        return columns(methodNames(sample));
    }

    function command(line) {
        const [word, ...rest] = line.trim().replace(/;$/, '').split(/\s+/);
        switch (word) {
        case 'use':
            return use(rest[0]);
        case 'show':
            return globalThis.show(...rest);
        case 'it':
            return globalThis.__shell.lastCursor === undefined ? 'no cursor' : globalThis.__shell.lastCursor;
        case 'help':
            return help();
        case 'cls':
            return globalThis.console.clear();
        default:
            return globalThis.quit(0);
        }
    }

    const commandLine = /^\s*(?:use(?:\s+[^\s;()=]+)?|show\s+\w+(?:\s+\w+)?|it|exit|quit|help|cls)\s*;?\s*$/;

    // --- source text ---

    const AsyncFunction = (async () => {}).constructor;

    function compiles(text, type = Function) {
        try {
            type(text);
            return true;
        } catch (error) {
            return false;
        }
    }

    // An async function around a script with top-level await: its last expression is the value, its first declaration becomes global.
    function wrapAwait(text) {
        const body = text.replace(/[\s;]+$/, '');
        if (compiles(`return (${body}\n)`, AsyncFunction))
            return `(async () => (${body}\n))()`;
        const global = body.replace(/^(\s*)(?:const|let|var)\s+([A-Za-z_$][\w$]*)\s*=/gm, '$1$2 =');
        for (let at = global.length; (at = Math.max(global.lastIndexOf(';', at - 1), global.lastIndexOf('\n', at - 1))) > 0;) {
            const last = `${global.slice(0, at + 1)}\nreturn (${global.slice(at + 1)}\n)`;
            if (global.slice(at + 1).trim() !== '' && compiles(last, AsyncFunction))
                return `(async () => {${last}})()`;
        }
        return `(async () => {${global}\n})()`;
    }

    function rewrite(text, mode) {
        text = text.replace(/^#!.*/, '');
        if (mode !== 'script') {
            if (commandLine.test(text))
                return `__shell.command(${JSON.stringify(text)})`;
            if (/^\s*\{[^]*\}\s*;?\s*$/.test(text) && compiles(`return (${text.replace(/;\s*$/, '')}\n)`))
                return `(${text.replace(/;\s*$/, '')})`;
        }
        if (/\bawait\b/.test(text) && !compiles(text) && compiles(text, AsyncFunction))
            return wrapAwait(text);
        // A name may be declared again at the prompt.
        return mode === 'interactive' ? text.replace(/^(\s*)(?:let|const)\s/, '$1var ') : text;
    }

    // --- promises and timers ---

    function settle(value) {
        const box = { value, failed: false };
        if (value instanceof Promise) {
            box.value = undefined;
            value.then(result => { box.value = result; }, error => { Object.assign(box, { failed: true, error }); });
        }
        return box;
    }

    const timers = new Map();
    let nextTimer = 1;
    const addTimer = (fn, ms, args, every) => {
        timers.set(nextTimer, { at: Date.now() + (Number(ms) || 0), fn, args, every });
        return nextTimer++;
    };
    globalThis.setTimeout = (fn, ms = 0, ...args) => addTimer(fn, ms, args);
    globalThis.setImmediate = (fn, ...args) => addTimer(fn, 0, args);
    globalThis.setInterval = (fn, ms = 1, ...args) => addTimer(fn, ms, args, Math.max(1, ms));
    globalThis.clearTimeout = id => { timers.delete(id); };
    globalThis.clearInterval = globalThis.clearTimeout;
    globalThis.clearImmediate = globalThis.clearTimeout;

    // Runs what is due; milliseconds until the next one, -1 when none is left.
    function runTimers() {
        const due = [...timers].filter(([, timer]) => timer.at <= Date.now()).sort(([, a], [, b]) => a.at - b.at);
        for (const [id, timer] of due) {
            if (timer.every === undefined)
                timers.delete(id);
            else
                timer.at = Date.now() + timer.every;
            timer.fn(...timer.args);
        }
        return timers.size === 0 ? -1 : Math.max(0, Math.min(...[...timers.values()].map(timer => timer.at)) - Date.now());
    }

    // --- results ---

    function plain(value) {
        return value instanceof globalThis.__Cursor ? value._documents() : value;
    }

    function format(value) {
        if (value === undefined)
            return '';
        if (json !== undefined)
            return globalThis.EJSON.stringify(plain(value), { relaxed: json === 'relaxed' });
        return show(value);
    }

    function place(error) {
        if (error.sourceURL === '--eval' || error.sourceURL === '(shell)')
            return '';
        const own = /^(?:bson|inspect|errors|cursor|collection|database|sharding|shell|assert)\.js$/;
        if (error.sourceURL !== undefined && !own.test(error.sourceURL) && error.line !== undefined)
            return `\n    at ${error.sourceURL}:${error.line}${error.column === undefined ? '' : `:${error.column}`}`;
        const frames = String(error.stack ?? '').split('\n').map(line => /^(?:(.*)@)?(.*?):(\d+):(\d+)$/.exec(line))
            .filter(match => match !== null && !own.test(match[2]));
        return frames.length === 0 || frames[0][2] === '--eval' || frames[0][2] === '(shell)' ? '' : `\n    at ${frames[0][2]}:${frames[0][3]}:${frames[0][4]}`;
    }

    function formatError(error) {
        if (!(error instanceof Error))
            return `Error: ${show(error)}`;
        if (json !== undefined)
            return globalThis.EJSON.stringify({ $error: { name: error.name, message: error.message, ...error } },
                { relaxed: json === 'relaxed' });
        const name = error.name === 'MongoServerError' && error.codeName ? `${error.name}[${error.codeName}]` : error.name;
        const details = error.result === undefined ? '' : `\nResult: ${inspect(error.result)}`;
        const all = error.writeErrors === undefined ? '' : `\nWrite Errors: ${inspect(error.writeErrors)}`;
        return `${name}: ${error.message}${details}${all}${place(error)}`;
    }

    // --- completion ---

    function methodNames(object) {
        const names = new Set();
        for (let at = object; at !== null && at !== Object.prototype && at !== Function.prototype; at = Object.getPrototypeOf(at))
            for (const name of Object.getOwnPropertyNames(at))
                if (!name.startsWith('_') && name !== 'constructor')
                    names.add(name);
        return [...names].sort();
    }

    function collectionNames(database) {
        try {
            return database.getCollectionNames();
        } catch (error) {
            return [];
        }
    }

    // What may stand in place of the last word of `line`, one a line.
    function complete(line) {
        const shown = /^\s*(show|use)\s+(\S*)$/.exec(line);
        if (shown !== null) {
            const names = shown[1] === 'show' ? Object.keys(shows) : globalThis.__mongo.getDBNames();
            return names.filter(name => name.startsWith(shown[2])).join('\n');
        }
        const [, path, prefix] = /((?:[A-Za-z_$][\w$]*\.)*)([\w$]*)$/.exec(line);
        if (path === '') {
            const words = ['show', 'use', 'exit', 'it', 'help', ...Object.getOwnPropertyNames(globalThis)];
            return words.filter(name => prefix !== '' && name.startsWith(prefix) && !name.startsWith('__')).sort().join('\n');
        }
        let object = globalThis;
        for (const name of path.slice(0, -1).split('.')) {
            object = object[name];
            if (object === undefined || object === null)
                return '';
        }
        const names = methodNames(Object(object));
        if (object === globalThis.db)
            names.push(...collectionNames(globalThis.db).filter(name => /^[\w$.]+$/.test(name)));
        return names.filter(name => name.startsWith(prefix)).map(name => path + name).join('\n');
    }

    globalThis.__shell = {
        command, complete, format, formatError, help, rewrite, runTimers, settle,
        lastCursor: undefined,
        version: native.version,
        prompt: () => `${globalThis.db.getName()}> `,
        setJson: mode => { json = mode; },
        setArguments: text => { globalThis.process.argv = ['sherd', ...JSON.parse(text)]; },
        setInteractive: () => { globalThis.__shell.interactive = true; },
    };
})();
