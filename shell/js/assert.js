// Checks for test scripts, under the names of the old shell.
'use strict';
(() => {
    const { inspect } = globalThis.__inspect;

    class AssertionError extends Error {
        constructor(message) {
            super(message);
            Object.defineProperty(this, 'name', { value: 'AssertionError' });
        }
    }

    function check(ok, what, message) {
        if (!ok)
            throw new AssertionError(message === undefined ? what : `${what}: ${typeof message === 'function' ? message() : message}`);
    }

    const same = (a, b) => globalThis.EJSON.stringify(a, { relaxed: true }) === globalThis.EJSON.stringify(b, { relaxed: true });

    // Fields in any order.
    function sorted(value) {
        if (Array.isArray(value))
            return value.map(sorted);
        if (value === null || typeof value !== 'object' || value._bsontype !== undefined || value instanceof Date)
            return value;
        return Object.fromEntries(Object.keys(value).sort().map(key => [key, sorted(value[key])]));
    }

    const assert = (condition, message) => check(condition, 'assert failed', message);
    Object.assign(assert, {
        eq: (a, b, message) => check(same(a, b), `${inspect(a)} is not equal to ${inspect(b)}`, message),
        neq: (a, b, message) => check(!same(a, b), `${inspect(a)} is equal to ${inspect(b)}`, message),
        docEq: (a, b, message) => check(same(sorted(a), sorted(b)), `${inspect(a)} is not equal to ${inspect(b)}`, message),
        lt: (a, b, message) => check(a < b, `${inspect(a)} is not less than ${inspect(b)}`, message),
        lte: (a, b, message) => check(a <= b, `${inspect(a)} is not less than or equal to ${inspect(b)}`, message),
        gt: (a, b, message) => check(a > b, `${inspect(a)} is not greater than ${inspect(b)}`, message),
        gte: (a, b, message) => check(a >= b, `${inspect(a)} is not greater than or equal to ${inspect(b)}`, message),
        close: (a, b, message, digits = 4) => check(Math.abs(a - b) < 10 ** -digits, `${a} is not close to ${b}`, message),
        isnull: (value, message) => check(value === null || value === undefined, `${inspect(value)} is not null`, message),
        contains: (item, list, message) =>
            check(list.some(other => same(item, other)), `${inspect(item)} is not in ${inspect(list)}`, message),
        throws(fn, args = [], message) {
            try {
                fn(...args);
            } catch (error) {
                return error;
            }
            throw new AssertionError(message ?? 'the function did not throw');
        },
        doesNotThrow(fn, args = [], message) {
            try {
                return fn(...args);
            } catch (error) {
                throw new AssertionError(`${message ?? 'the function threw'}: ${error}`);
            }
        },
        throwsWithCode(fn, codes, args = [], message) {
            const error = assert.throws(fn, args, message);
            check([].concat(codes).includes(Number(error.code)), `code ${error.code} is not among ${inspect([].concat(codes))}`, message);
            return error;
        },
        commandWorked: (reply, message) => {
            check(Number(reply.ok) === 1, `the command failed: ${inspect(reply)}`, message);
            return reply;
        },
        // Commands throw here: the function that sends one is given in place of its reply.
        commandFailed: (fn, message) => typeof fn === 'function' ? assert.throws(fn, [], message) :
            check(Number(fn.ok) !== 1, `the command worked: ${inspect(fn)}`, message),
        commandFailedWithCode: (fn, codes, message) => assert.throwsWithCode(fn, codes, [], message),
        writeOK: (result, message) => {
            check(result.acknowledged === true, `the write failed: ${inspect(result)}`, message);
            return result;
        },
        soon(fn, message, timeoutMs = 30000, intervalMs = 200) {
            for (const end = Date.now() + timeoutMs; !fn();) {
                check(Date.now() < end, `not true within ${timeoutMs} ms`, message);
                globalThis.sleep(intervalMs);
            }
        },
    });
    globalThis.assert = assert;
    globalThis.doassert = message => { throw new AssertionError(message); };
})();
