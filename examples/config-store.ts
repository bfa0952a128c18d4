/** A configuration of two keys: checked, changed together, rolled back, and kept in a local file. */

import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'drover';
import { ConfigStore } from 'drover/recipes';

interface Pool {
  readonly min: number;
  readonly max: number;
}

// Any check will do: a function as here, or a schema of zod or of another library.
function pool(value: unknown): Pool {
  const { min, max } = value as Pool;
  if (!(min >= 0 && max >= min)) throw new Error('0 <= min <= max is wanted');
  return { min, max };
}

const file = join(tmpdir(), `shop-${process.pid}.json`);
const zk = await connect(process.env.ZK_SERVERS ?? '127.0.0.1:2181', { renew: true });
const config = new ConfigStore<{ pool: Pool; greeting: string }>(zk, '/config/shop', {
  schemas: { pool, greeting: String },
  defaults: { pool: { min: 1, max: 2 }, greeting: 'hello' },
  file, // what a process starts with while ZooKeeper is down
  onProblem: ({ path, error }) => console.log('not taken:', path, error.message),
});
await config.ready;
console.log('begins with', config.snapshot.values);

const good = await config.updateAll(({ pool }) => ({
  pool: { ...pool, max: 10 },
  greeting: 'good morning',
}));
await config.update('pool', (now) => ({ min: now?.min ?? 0, max: 100 }));
await config.update('pool', () => ({ min: 5, max: 1 })).catch((e: Error) => console.log(e.message));

const back = await config.rollback(good!);
for await (const { version, values } of config) {
  console.log('version', `0x${version.toString(16)}`, values);
  if (version === back) break; // as it was at `good`
}
console.log('pool was', (await config.history('pool')).map(({ value }) => value?.max).join(', '));
await config.close();
await zk.close();
await rm(file, { force: true });
