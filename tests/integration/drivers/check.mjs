// What the scripts share: a client, named checks, an exit status.
import { MongoClient } from 'mongodb';
import { isDeepStrictEqual, inspect } from 'node:util';

let failed = 0;

export function check(name, got, want) {
  if (isDeepStrictEqual(got, want)) return;
  failed++;
  console.log(`FAILED ${name}: got ${inspect(got)}, want ${inspect(want)}`);
}

export async function checkFails(name, code, action) {
  try {
    await action();
    check(name, 'no error', code);
  } catch (error) {
    check(name, error.code ?? error.message, code);
  }
}

// Runs `body(client)`; an exception is a failure. The exit status says whether all checks held.
export async function run(uri, body) {
  const client = new MongoClient(uri, { serverSelectionTimeoutMS: 10000 });
  try {
    await client.connect();
    await body(client);
  } catch (error) {
    failed++;
    console.log(error);
  } finally {
    await client.close();
  }
  console.log(failed ? `${failed} failed` : 'all passed');
  process.exit(failed ? 1 : 0);
}
