// Cursors: `find` and `aggregate` are sent when the first document is asked for.
'use strict';
(() => {
    const { custom, inspect } = globalThis.__inspect;

    class Cursor {
        #db;
        #batch = [];        // the documents that came last
        #at = 0;            // how many of them were handed out
        #id;                // the server's cursor; undefined before the command is sent, 0n when it is exhausted
        #collection;        // where getMore goes
        #batchSize;
        #transform;
        #closed = false;

        constructor(db, collection) {
            this.#db = db;
            this.#collection = collection;
        }

        // The command that opens the cursor.
        _command() { throw new Error('not implemented'); }
        get _db() { return this.#db; }
        _checkUnsent(what) {
            if (this.#id !== undefined)
                globalThis.__fail(`${what}() must come before the cursor is read`);
        }

        #take(cursor, batch) {
            this.#id = BigInt(cursor.id?.value ?? cursor.id ?? 0);
            if (typeof cursor.ns === 'string')
                this.#collection = cursor.ns.slice(cursor.ns.indexOf('.') + 1);
            this.#batch = batch;
            this.#at = 0;
        }

        // True for a cursor that stays open at the end of its documents.
        get _tails() { return false; }

        // True when there is a document in the batch. `once`: the server is asked for more one time only.
        #fill(once = false) {
            if (this.#closed)
                return false;
            if (this.#id === undefined) {
                const { cursor } = this.#db.runCommand(this._command());
                this.#take(cursor, cursor.firstBatch);
            }
            while (this.#at === this.#batch.length && this.#id !== 0n) {
                const command = { getMore: new globalThis.Long(this.#id), collection: this.#collection };
                if (this.#batchSize > 0)
                    command.batchSize = this.#batchSize;
                const { cursor } = this.#db.runCommand(command);
                this.#take(cursor, cursor.nextBatch);
                if (once)
                    break;
            }
            return this.#at < this.#batch.length;
        }

        batchSize(count) {
            this.#batchSize = count;
            return this;
        }
        get _batchSize() { return this.#batchSize; }

        hasNext() { return this.#fill(); }
        tryNext() { return this.#fill(this._tails) ? this.next() : null; }
        next() {
            if (!this.#fill())
                return null;
            const document = this.#batch[this.#at++];
            return this.#transform === undefined ? document : this.#transform(document);
        }
        map(fn) {
            const before = this.#transform;
            this.#transform = before === undefined ? fn : document => fn(before(document));
            return this;
        }
        forEach(fn) {
            while (this.#fill())
                if (fn(this.next()) === false)
                    break;
        }
        toArray() {
            const out = [];
            while (this.#fill())
                out.push(this.next());
            return out;
        }
        *[globalThis.Symbol.iterator]() {
            while (this.#fill())
                yield this.next();
        }
        itcount() {
            let count = 0;
            for (; this.#fill(); count++)
                this.next();
            return count;
        }
        objsLeftInBatch() { return this.#batch.length - this.#at; }
        bufferedCount() { return this.objsLeftInBatch(); }
        isExhausted() { return this.objsLeftInBatch() === 0 && this.#id === 0n; }
        isClosed() { return this.#closed; }
        pretty() { return this; }
        close() {
            if (this.#id !== undefined && this.#id !== 0n)
                this.#db.runCommand({ killCursors: this.#collection, cursors: [new globalThis.Long(this.#id)] });
            this.#closed = true;
            this.#batch = [];
            this.#at = 0;
        }

        // The next page for the prompt; `it` shows the one after.
        _page() {
            const page = [];
            while (page.length < globalThis.DBQuery.shellBatchSize && this.#fill(this._tails))
                page.push(this.next());
            globalThis.__shell.lastCursor = (this._tails ? this.#id !== 0n : this.#fill()) ? this : undefined;
            if (page.length === 0)
                return '';
            return inspect(page) + (globalThis.__shell.lastCursor === undefined ? '' : '\nType "it" for more');
        }
        _documents() { return this.toArray(); }
        [custom]() { return this._page(); }
    }

    // One option of the find command.
    function option(name) {
        return function (value = true) {
            this._checkUnsent(name);
            this._find[name] = value;
            return this;
        };
    }

    globalThis.FindCursor = class FindCursor extends Cursor {
        constructor(collection, filter = {}, projection, options = {}) {
            super(collection.getDB(), collection.getName());
            const { sort, limit, skip, hint, collation, comment, maxTimeMS, batchSize, projection: projected, ...rest } = options;
            Object.defineProperty(this, '_find', { value: { find: collection.getName(), filter } });
            const chosen = projection ?? projected;
            if (chosen !== undefined)
                this._find.projection = chosen;
            for (const [name, value] of Object.entries({ sort, limit, skip, hint, collation, comment, maxTimeMS, ...rest }))
                if (value !== undefined)
                    this._find[name] = value;
            if (batchSize !== undefined)
                this.batchSize(batchSize);
        }
        _command() {
            const command = { ...this._find };
            if (command.limit < 0) {
                command.limit = -command.limit;
                command.singleBatch = true;
            }
            if (this._batchSize !== undefined)
                command.batchSize = this._batchSize;
            return command;
        }
        limit(count) { return this._option('limit', count); }
        _option(name, value) {
            this._checkUnsent(name);
            this._find[name] = value;
            return this;
        }
        count() {
            const { find, filter, hint, collation, maxTimeMS } = this._find;
            return Number(this._db.runCommand(globalThis.__defined({ count: find, query: filter, hint, collation, maxTimeMS })).n);
        }
        size() {
            const { find, filter, limit, skip, hint, collation } = this._find;
            return Number(this._db.runCommand(globalThis.__defined({ count: find, query: filter, limit, skip, hint, collation })).n);
        }
        explain(verbosity = 'queryPlanner') { return this._db.runCommand({ explain: this._command(), verbosity }); }
        // A cursor that shows its plan in place of its documents, after whatever more is chained to it.
        _explained(verbosity) {
            const finish = () => this.explain(verbosity);
            Object.defineProperties(this, { finish: { value: finish }, next: { value: finish }, _documents: { value: finish },
                [custom]: { value: () => inspect(finish()) } });
            return this;
        }
        get _tails() { return Boolean(this._find.tailable); }
        tailable({ awaitData } = {}) {
            this._option('tailable', true);
            return awaitData ? this._option('awaitData', true) : this;
        }
        readPref() { return this; }
        addOption() { return this; }
        noCursorTimeout() { return this._option('noCursorTimeout', true); }
        allowPartialResults() { return this._option('allowPartialResults', true); }
        readConcern(level) { return this._option('readConcern', { level }); }
    };
    for (const name of ['sort', 'skip', 'hint', 'collation', 'comment', 'maxTimeMS', 'min', 'max', 'returnKey', 'showRecordId',
        'allowDiskUse', 'projection'])
        globalThis.FindCursor.prototype[name] = option(name);
    globalThis.FindCursor.prototype.project = globalThis.FindCursor.prototype.projection;

    // A cursor from a command that is ready made: aggregate, listCollections, listIndexes.
    globalThis.CommandCursor = class CommandCursor extends Cursor {
        #command;
        constructor(db, collection, command) {
            super(db, collection);
            this.#command = command;
        }
        _command() {
            const size = this._batchSize;
            return size === undefined ? this.#command : { ...this.#command, cursor: { ...this.#command.cursor, batchSize: size } };
        }
        explain(verbosity = 'queryPlanner') { return this._db.runCommand({ explain: this.#command, verbosity }); }
    };

    globalThis.__Cursor = Cursor;
    globalThis.DBQuery = { shellBatchSize: 20 };
    // The object without its undefined fields.
    globalThis.__defined = object => Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined));
})();
