// What commands throw, and how an uncaught error is shown.
'use strict';
(() => {
    function property(error, name, value) {
        Object.defineProperty(error, name, { value, enumerable: false, configurable: true, writable: true });
    }

    // A reply with ok: 0.
    globalThis.MongoServerError = class MongoServerError extends Error {
        constructor(reply) {
            super(reply.errmsg ?? 'unknown error');
            property(this, 'name', 'MongoServerError');
            this.code = reply.code === undefined ? undefined : Number(reply.code);
            this.codeName = reply.codeName;
            this.errorLabels = reply.errorLabels;
            property(this, 'errorResponse', reply);
            for (const [key, value] of Object.entries(reply))
                if (!['ok', 'errmsg', 'code', 'codeName', 'errorLabels'].includes(key) && !(key in this))
                    this[key] = value;
        }
    };

    // A batch of which some writes failed; `result` counts those that succeeded.
    globalThis.MongoBulkWriteError = class MongoBulkWriteError extends Error {
        constructor(writeErrors, result) {
            super(writeErrors[0].errmsg);
            property(this, 'name', 'MongoBulkWriteError');
            this.code = Number(writeErrors[0].code);
            this.writeErrors = writeErrors;
            this.result = result;
        }
    };

    globalThis.MongoWriteConcernError = class MongoWriteConcernError extends Error {
        constructor(error, result) {
            super(error.errmsg);
            property(this, 'name', 'MongoWriteConcernError');
            this.code = Number(error.code);
            this.result = result;
        }
    };

    // Wrong use of the shell's own functions.
    globalThis.InvalidInputError = class InvalidInputError extends Error {
        constructor(message) {
            super(message);
            property(this, 'name', 'InvalidInputError');
        }
    };

    globalThis.__fail = message => { throw new globalThis.InvalidInputError(message); };
})();
