// Printing of values: the layout is that of Node.js' util.inspect (line width 80, up to three inner levels on one line), which
// mongosh uses, with the BSON types written as the calls that make them.
'use strict';
(() => {
    const breakLength = 80;
    const compact = 3;
    const identifier = /^[a-zA-Z_][a-zA-Z_0-9]*$/;
    // Classes with a print of their own put a method under this symbol.
    const custom = globalThis.Symbol('sherd.inspect');

    function quote(text) {
        let mark = "'";
        if (text.includes("'"))
            mark = !text.includes('"') ? '"' : !text.includes('`') && !text.includes('${') ? '`' : "'";
        const escapes = { '\b': '\\b', '\t': '\\t', '\n': '\\n', '\f': '\\f', '\r': '\\r', '\\': '\\\\', [mark]: '\\' + mark };
        const escaped = text.replace(/[\x00-\x1f\x7f-\x9f'"`\\]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g,
            char => {
                if (char in escapes)
                    return escapes[char];
                if (char === "'" || char === '"' || char === '`')
                    return char;
                const code = char.charCodeAt(0);
                return code < 256 ? '\\x' + code.toString(16).toUpperCase().padStart(2, '0') :
                    '\\u' + code.toString(16).toUpperCase().padStart(4, '0');
            });
        return mark + escaped + mark;
    }

    // A long string with line breaks inside a document is written as a sum of its lines.
    function formatString(text, state) {
        if (state.depth > 0 && text.length > 16 && text.length > breakLength - state.indent - 4 && /\n./.test(text)) {
            const lines = text.split(/(?<=\n)/);
            return lines.map(quote).join(` +\n${' '.repeat(state.indent + 2)}`);
        }
        return quote(text);
    }

    function formatNumber(number) {
        return Object.is(number, -0) ? '-0' : String(number);
    }

    function formatDate(date) {
        return Number.isNaN(date.getTime()) ? 'Invalid Date' : `ISODate('${date.toISOString()}')`;
    }

    function formatBinary(binary) {
        if (binary.sub_type === 4 && binary.length() === 16)
            return `UUID('${binary.toHexString()}')`;
        return `Binary.createFromBase64('${binary.base64}', ${binary.sub_type})`;
    }

    const typed = {
        ObjectId: value => `ObjectId('${value.value}')`,
        Long: value => `Long('${value.value}')`,
        Int32: value => `Int32(${value.value})`,
        Double: value => `Double(${formatNumber(value.value)})`,
        Decimal128: value => `Decimal128('${value.value}')`,
        Binary: formatBinary,
        Timestamp: value => `Timestamp({ t: ${value.t}, i: ${value.i} })`,
        BSONRegExp: value => `BSONRegExp(${quote(value.pattern)}, ${quote(value.options)})`,
        BSONSymbol: value => `BSONSymbol(${quote(value.value)})`,
        MinKey: () => 'MinKey()',
        MaxKey: () => 'MaxKey()',
        DBPointer: value => `DBPointer(${quote(value.ref)}, ObjectId('${value.id.value}'))`,
        Code: (value, state) => value.scope === undefined ? `Code(${quote(value.code)})` :
            `Code(${quote(value.code)}, ${format(value.scope, state)})`,
    };

    function isBelowBreakLength(output, start) {
        let total = output.length + start;
        if (total + output.length > breakLength)
            return false;
        for (const entry of output) {
            total += entry.length;
            if (total > breakLength)
                return false;
        }
        return true;
    }

    // Puts the entries of a long array into columns.
    function groupElements(output, indent, value) {
        const separator = 2;
        const lengths = output.map(entry => entry.length);
        const longest = Math.max(...lengths);
        const total = lengths.reduce((sum, length) => sum + length + separator, 0);
        const width = longest + separator;
        if (width * 3 + indent >= breakLength || !(total / width > 5 || longest <= 6))
            return output;
        const bias = Math.max(width - 3 - Math.sqrt(width - total / output.length), 1);
        const columns = Math.min(Math.round(Math.sqrt(2.5 * bias * output.length) / bias), Math.floor((breakLength - indent) / width),
            compact * 4, 15);
        if (columns <= 1)
            return output;
        const widths = [];
        for (let column = 0; column < columns; column++) {
            let widest = 0;
            for (let i = column; i < output.length; i += columns)
                widest = Math.max(widest, lengths[i]);
            widths.push(widest + separator);
        }
        const padLeft = value.every(item => typeof item === 'number' || typeof item === 'bigint');
        const rows = [];
        for (let i = 0; i < output.length; i += columns) {
            const last = Math.min(i + columns, output.length) - 1;
            let row = '';
            for (let j = i; j < last; j++) {
                const cell = `${output[j]}, `;
                row += padLeft ? cell.padStart(widths[j - i]) : cell.padEnd(widths[j - i]);
            }
            row += padLeft ? output[last].padStart(widths[last - i] - separator) : output[last];
            rows.push(row);
        }
        return rows;
    }

    function join(output, open, close, prefix, state, level, value) {
        const count = output.length;
        if (Array.isArray(value) && count > 6)
            output = groupElements(output, state.indent, value);
        if (state.currentDepth - level < compact && count === output.length) {
            const start = output.length + state.indent + open.length + prefix.length + 10;
            if (isBelowBreakLength(output, start)) {
                const line = output.join(', ');
                if (!line.includes('\n'))
                    return `${prefix}${open} ${line} ${close}`;
            }
        }
        const indentation = `\n${' '.repeat(state.indent)}`;
        return `${prefix}${open}${indentation}  ${output.join(`,${indentation}  `)}${indentation}${close}`;
    }

    function formatNested(value, prefix, state) {
        const isArray = Array.isArray(value);
        const keys = isArray ? value : Object.keys(value);
        const [open, close] = isArray ? ['[', ']'] : ['{', '}'];
        if (keys.length === 0)
            return `${prefix}${open}${close}`;
        if (state.seen.includes(value))
            return '[Circular *1]';
        if (state.depth > state.maxDepth)
            return isArray ? '[Array]' : '[Object]';
        const level = state.depth;
        state.currentDepth = level;
        state.seen.push(value);
        const entry = (item, extra) => {
            state.depth++;
            state.indent += extra;
            const text = format(item, state);
            state.indent -= extra;
            state.depth--;
            return text;
        };
        const output = isArray ? value.map(item => entry(item, 2)) :
            keys.map(key => `${identifier.test(key) ? key : quote(key)}: ${entry(value[key], 2)}`);
        state.seen.pop();
        return join(output, open, close, prefix, state, level, value);
    }

    function formatError(error) {
        return `${error.name}: ${error.message}`;
    }

    // Maps and sets are small and rare at a prompt: always on one line.
    function formatMap(map, state) {
        const entries = [...map].map(([key, item]) => `${format(key, state)} => ${format(item, state)}`);
        return entries.length === 0 ? 'Map(0) {}' : `Map(${map.size}) { ${entries.join(', ')} }`;
    }

    function formatSet(set, state) {
        const entries = [...set].map(item => format(item, state));
        return entries.length === 0 ? 'Set(0) {}' : `Set(${set.size}) { ${entries.join(', ')} }`;
    }

    function classPrefix(value) {
        const name = Object.getPrototypeOf(value)?.constructor?.name;
        return name === undefined || name === 'Object' || name === 'Array' ? '' : `${name} `;
    }

    function formatObject(value, state) {
        if (value instanceof Date)
            return formatDate(value);
        if (value instanceof RegExp)
            return String(value);
        if (value instanceof Error)
            return formatError(value);
        if (value instanceof Map)
            return formatMap(value, state);
        if (value instanceof Set)
            return formatSet(value, state);
        if (value instanceof Promise)
            return 'Promise { }';
        const keys = Object.keys(value);
        if (keys[0] === '$ref' && keys[1] === '$id')
            return `DBRef(${keys.slice(0, 3).map(key => format(value[key], state)).join(', ')})`;
        return formatNested(value, classPrefix(value), state);
    }

    function format(value, state) {
        switch (typeof value) {
        case 'string':
            return formatString(value, state);
        case 'number':
            return formatNumber(value);
        case 'bigint':
            return `${value}n`;
        case 'symbol':
            return value.toString();
        case 'function':
            if (value._bsontype in typed)
                return typed[value._bsontype](value, state);
            return value.name ? `[Function: ${value.name.replace(/^bound /, '')}]` : '[Function (anonymous)]';
        case 'object':
            break;
        default:
            return String(value);
        }
        if (value === null)
            return 'null';
        if (typeof value[custom] === 'function')
            return value[custom]();
        const type = typed[value._bsontype];
        return type !== undefined ? type(value, state) : formatObject(value, state);
    }

    globalThis.__inspect = {
        custom,
        // A value as the prompt shows it; `maxDepth` levels are opened, all of them by default.
        inspect(value, { maxDepth = Infinity } = {}) {
            return format(value, { depth: 0, indent: 0, currentDepth: 0, maxDepth, seen: [] });
        },
    };
})();
