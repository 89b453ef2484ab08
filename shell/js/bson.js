// Classes for the BSON types that JavaScript lacks. The host (convert.c) tells them apart by _bsontype and builds them through
// __make; their data are plain properties so that it can read them.
'use strict';
(() => {
    const native = globalThis.__native;

    // Usable with and without `new`, as shells have it.
    function callable(type) {
        return new Proxy(type, { apply: (target, self, args) => new target(...args) });
    }

    function define(type, bsonType) {
        Object.defineProperty(type.prototype, '_bsontype', { value: bsonType });
        const wrapped = callable(type);
        globalThis[type.name] = wrapped;
        return wrapped;
    }

    // --- bytes as base64 and hex ---

    const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

    function bytesToBase64(bytes) {
        let out = '';
        for (let i = 0; i < bytes.length; i += 3) {
            const bits = bytes[i] << 16 | (bytes[i + 1] ?? 0) << 8 | (bytes[i + 2] ?? 0);
            out += digits[bits >> 18] + digits[bits >> 12 & 63];
            out += i + 1 < bytes.length ? digits[bits >> 6 & 63] : '=';
            out += i + 2 < bytes.length ? digits[bits & 63] : '=';
        }
        return out;
    }

    function base64ToBytes(text) {
        const clean = text.replace(/=+$/, '');
        const out = [];
        let bits = 0;
        let count = 0;
        for (const char of clean) {
            const digit = digits.indexOf(char);
            if (digit < 0)
                throw new TypeError(`malformed base64: '${text}'`);
            bits = bits << 6 | digit;
            count += 6;
            if (count >= 8) {
                count -= 8;
                out.push(bits >> count & 255);
            }
        }
        return out;
    }

    function hexToBytes(hex) {
        if (hex.length % 2 !== 0 || !/^[0-9a-fA-F]*$/.test(hex))
            throw new TypeError(`malformed hex: '${hex}'`);
        return (hex.match(/../g) ?? []).map(pair => parseInt(pair, 16));
    }

    function bytesToHex(bytes) {
        return Array.from(bytes, byte => byte.toString(16).padStart(2, '0')).join('');
    }

    // --- the classes ---

    const oidProxy = define(class ObjectId {
        constructor(id) {
            if (id === undefined || id === null)
                this.value = native.newObjectId();
            else if (typeof id === 'number')
                this.value = (id >>> 0).toString(16).padStart(8, '0') + native.newObjectId().slice(8);
            else if (id instanceof oidProxy)
                this.value = id.value;
            else if (typeof id === 'string' && /^[0-9a-fA-F]{24}$/.test(id))
                this.value = id.toLowerCase();
            else
                throw new TypeError('an ObjectId takes a string of 24 hex characters');
        }
        static createFromTime(seconds) { return new oidProxy(Math.floor(seconds).toString(16).padStart(8, '0') + '0'.repeat(16)); }
        static createFromHexString(hex) { return new oidProxy(hex); }
        static isValid(id) { return id instanceof oidProxy || (typeof id === 'string' && /^[0-9a-fA-F]{24}$/.test(id)); }
        get str() { return this.value; }
        toString() { return this.value; }
        toHexString() { return this.value; }
        toJSON() { return this.value; }
        valueOf() { return this.value; }
        getTimestamp() { return new Date(parseInt(this.value.slice(0, 8), 16) * 1000); }
        equals(other) { return String(other) === this.value; }
    }, 'ObjectId');

    function toBigInt(number) {
        if (typeof number === 'bigint')
            return number;
        if (number instanceof longProxy || number instanceof Int32 || number instanceof Double)
            return BigInt(number.value);
        if (typeof number === 'number')
            return BigInt(Math.trunc(number));
        return BigInt(number);
    }

    const longProxy = define(class Long {
        constructor(number = 0) { this.value = BigInt.asIntN(64, toBigInt(number)); }
        static fromNumber(number) { return new longProxy(number); }
        static fromString(text) { return new longProxy(text); }
        static fromBigInt(number) { return new longProxy(number); }
        static fromBits(low, high) { return new longProxy(BigInt(high) << 32n | BigInt(low >>> 0)); }
        get low() { return Number(BigInt.asIntN(32, this.value)); }
        get high() { return Number(this.value >> 32n); }
        toNumber() { return Number(this.value); }
        toInt() { return Number(BigInt.asIntN(32, this.value)); }
        toBigInt() { return this.value; }
        toString(radix) { return this.value.toString(radix); }
        valueOf() { return Number(this.value); }
        toJSON() { return Number(this.value); }
        add(other) { return new longProxy(this.value + toBigInt(other)); }
        subtract(other) { return new longProxy(this.value - toBigInt(other)); }
        multiply(other) { return new longProxy(this.value * toBigInt(other)); }
        divide(other) { return new longProxy(this.value / toBigInt(other)); }
        modulo(other) { return new longProxy(this.value % toBigInt(other)); }
        negate() { return new longProxy(-this.value); }
        isZero() { return this.value === 0n; }
        compare(other) { const b = toBigInt(other); return this.value < b ? -1 : this.value > b ? 1 : 0; }
        equals(other) { return this.compare(other) === 0; }
        lessThan(other) { return this.compare(other) < 0; }
        greaterThan(other) { return this.compare(other) > 0; }
    }, 'Long');
    longProxy.MAX_VALUE = new longProxy(9223372036854775807n);
    longProxy.MIN_VALUE = new longProxy(-9223372036854775808n);

    function toNumber(value, what) {
        const number = Number(value);
        if (typeof value === 'string' && (value.trim() === '' || Number.isNaN(number)))
            throw new TypeError(`not ${what}: '${value}'`);
        return number;
    }

    define(class Int32 {
        constructor(number = 0) { this.value = toNumber(number, 'an integer') | 0; }
        toString(radix) { return this.value.toString(radix); }
        valueOf() { return this.value; }
        toJSON() { return this.value; }
    }, 'Int32');

    define(class Double {
        constructor(number = 0) { this.value = toNumber(number, 'a number'); }
        toString(radix) { return this.value.toString(radix); }
        valueOf() { return this.value; }
        toJSON() { return this.value; }
    }, 'Double');

    define(class Decimal128 {
        constructor(number = '0') {
            this.value = native.decimal(String(number instanceof Decimal128 ? number.value : number));
            if (this.value === null)
                throw new TypeError(`not a decimal number: '${number}'`);
        }
        static fromString(text) { return new globalThis.Decimal128(text); }
        toString() { return this.value; }
        toJSON() { return { $numberDecimal: this.value }; }
    }, 'Decimal128');

    const binaryProxy = define(class Binary {
        constructor(data = '', subType = 0) {
            this.base64 = typeof data === 'string' ? bytesToBase64(Array.from(data, char => char.charCodeAt(0) & 255)) :
                bytesToBase64(data);
            this.sub_type = Number(subType);
        }
        static createFromBase64(base64, subType = 0) {
            const out = Object.create(Binary.prototype);
            out.base64 = bytesToBase64(base64ToBytes(base64));
            out.sub_type = Number(subType);
            return out;
        }
        static createFromHexString(hex, subType = 0) { return new binaryProxy(hexToBytes(hex), subType); }
        bytes() { return base64ToBytes(this.base64); }
        length() { return this.bytes().length; }
        hex() { return bytesToHex(this.bytes()); }
        subtype() { return this.sub_type; }
        toHexString() {
            const hex = this.hex();
            return this.sub_type === 4 && hex.length === 32 ?
                hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5') : hex;
        }
        toString() { return this.sub_type === 4 ? this.toHexString() : this.base64; }
        toJSON() { return this.base64; }
        equals(other) { return other?._bsontype === 'Binary' && other.base64 === this.base64 && other.sub_type === this.sub_type; }
    }, 'Binary');

    globalThis.UUID = callable(function UUID(text) {
        text = text ?? native.newUuid();
        if (!/^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i.test(text))
            throw new TypeError(`a UUID takes 32 hex characters: '${text}'`);
        return binaryProxy.createFromHexString(text.replace(/-/g, ''), 4);
    });

    define(class Timestamp {
        constructor(t = 0, i = 0) {
            if (t !== null && typeof t === 'object' && 't' in t)
                ({ t, i } = t);
            this.t = Number(t);
            this.i = Number(i);
        }
        getTime() { return this.t; }
        getInc() { return this.i; }
        toString() { return (BigInt(this.t) << 32n | BigInt(this.i)).toString(); }
        toJSON() { return { $timestamp: { t: this.t, i: this.i } }; }
    }, 'Timestamp');

    define(class BSONRegExp {
        constructor(pattern, options = '') {
            this.pattern = pattern;
            this.options = [...options].sort().join('');
        }
        toString() { return `/${this.pattern}/${this.options}`; }
    }, 'BSONRegExp');

    define(class Code {
        constructor(code, scope) {
            this.code = String(code);
            if (scope !== undefined && scope !== null)
                this.scope = scope;
        }
        toString() { return this.code; }
    }, 'Code');

    define(class BSONSymbol {
        constructor(value) { this.value = String(value); }
        toString() { return this.value; }
        valueOf() { return this.value; }
        toJSON() { return this.value; }
    }, 'BSONSymbol');

    define(class DBPointer {
        constructor(ref, id) {
            this.ref = ref;
            this.id = oidProxy(id);
        }
    }, 'DBPointer');

    // `MinKey` without parentheses is a value too.
    Object.defineProperty(define(class MinKey { toJSON() { return { $minKey: 1 }; } }, 'MinKey'), '_bsontype', { value: 'MinKey' });
    Object.defineProperty(define(class MaxKey { toJSON() { return { $maxKey: 1 }; } }, 'MaxKey'), '_bsontype', { value: 'MaxKey' });

    // A document like any other; only its print is special.
    globalThis.DBRef = callable(class DBRef {
        constructor(ref, id, db) {
            this.$ref = ref;
            this.$id = id;
            if (db !== undefined)
                this.$db = db;
        }
    });

    // --- the shells' names ---

    globalThis.ObjectID = globalThis.ObjectId;
    globalThis.NumberLong = globalThis.Long;
    globalThis.NumberInt = globalThis.Int32;
    globalThis.NumberDecimal = globalThis.Decimal128;
    globalThis.BinData = (subType, base64) => binaryProxy.createFromBase64(base64, subType);
    globalThis.HexData = (subType, hex) => binaryProxy.createFromHexString(hex, subType);

    globalThis.ISODate = callable(function ISODate(text) {
        if (text === undefined)
            return new Date();
        if (typeof text !== 'string')
            return new Date(text);
        const match = /^(\d{4})-?(\d\d)-?(\d\d)(?:[T ](\d\d):?(\d\d)(?::?(\d\d)(?:\.(\d+))?)?(Z|[+-]\d\d:?\d\d)?)?$/.exec(text.trim());
        if (match === null)
            throw new TypeError(`not an ISO date: '${text}'`);
        const [, year, month, day, hours = '00', minutes = '00', seconds = '00', fraction = '', zone = 'Z'] = match;
        const offset = zone === 'Z' ? 'Z' : zone.slice(0, 3) + ':' + zone.slice(-2);
        const date = new Date(`${year}-${month}-${day}T${hours}:${minutes}:${seconds}.${(fraction + '000').slice(0, 3)}${offset}`);
        if (Number.isNaN(date.getTime()))
            throw new TypeError(`not an ISO date: '${text}'`);
        return date;
    });

    // --- for the host ---

    const make = globalThis.__make;
    make.ObjectId = hex => new oidProxy(hex);
    make.Long = number => new longProxy(number);
    make.Decimal128 = text => new globalThis.Decimal128(text);
    make.Binary = (base64, subType) => binaryProxy.createFromBase64(base64, subType);
    make.Timestamp = (t, i) => new globalThis.Timestamp(t, i);
    make.Code = (code, scope) => new globalThis.Code(code, scope);
    make.BSONSymbol = text => new globalThis.BSONSymbol(text);
    make.DBPointer = (ref, id) => new globalThis.DBPointer(ref, id);
    make.MinKey = () => new globalThis.MinKey();
    make.MaxKey = () => new globalThis.MaxKey();
    make.field = (object, key, value) =>
        Object.defineProperty(object, key, { value, configurable: true, enumerable: true, writable: true });
    // The server's expressions are PCRE: what JavaScript can't say stays a BSONRegExp.
    make.RegExp = (pattern, options) => {
        try {
            if (/^[ims]*$/.test(options)) {
                const regexp = new RegExp(pattern, options);
                // JavaScript escapes a slash, for one: the host stores the pattern as it came.
                if (regexp.source !== pattern)
                    Object.defineProperty(regexp, '_pattern', { value: pattern });
                return regexp;
            }
        } catch (error) {
            // Falls through to the class that keeps it as text.
        }
        return new globalThis.BSONRegExp(pattern, options);
    };

    // --- Extended JSON ---

    // JSON text with line breaks and indentation put in.
    function indentJson(text, unit) {
        let out = '';
        let depth = 0;
        for (let i = 0; i < text.length; i++) {
            const char = text[i];
            if (char === '"') {
                const end = /"(?:[^"\\]|\\.)*"/y;
                end.lastIndex = i;
                const string = end.exec(text)[0];
                out += string;
                i += string.length - 1;
            } else if ((char === '{' || char === '[') && text[i + 1] !== '}' && text[i + 1] !== ']') {
                out += char + '\n' + unit.repeat(++depth);
            } else if ((char === '}' || char === ']') && text[i - 1] !== '{' && text[i - 1] !== '[') {
                out += '\n' + unit.repeat(--depth) + char;
            } else if (char === ',') {
                out += ',\n' + unit.repeat(depth);
            } else {
                out += char === ':' ? ': ' : char;
            }
        }
        return out;
    }

    globalThis.EJSON = {
        stringify(value, ...rest) {
            const options = rest.find(item => item !== null && typeof item === 'object' && !Array.isArray(item)) ?? {};
            const space = rest.find(item => typeof item === 'number' || typeof item === 'string') ?? '';
            const text = native.toJson({ v: value }, options.relaxed ?? true).slice('{"v":'.length, -1);
            const unit = typeof space === 'number' ? ' '.repeat(space) : space;
            return unit === '' ? text : indentJson(text, unit);
        },
        parse(text) { return native.fromJson(`{"v":${text}}`).v; },
        serialize(value, options) { return JSON.parse(globalThis.EJSON.stringify(value, { relaxed: false, ...options })); },
        deserialize(value) { return globalThis.EJSON.parse(JSON.stringify(value)); },
    };
    globalThis.bsonsize = document => native.bsonSize(document);

    globalThis.__bytes = { base64ToBytes, bytesToBase64, bytesToHex, hexToBytes };
})();
