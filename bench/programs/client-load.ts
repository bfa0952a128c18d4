/**
 * One client under load, in a process of its own, so that what the process spends is what the client
 * spends.
 *
 *   node client-load.js <contender> <module> <address>
 *
 * `depth` loops run side by side; each asks, waits for the answer and asks again.
 */

import { setTimeout as delay } from 'node:timers/promises';
import { type Contender, contenders } from './contenders.ts';
import { fail, type Load, pathCount, pathOf, type Result, say, serveTasks } from './messages.ts';
import { Stopwatch } from './stopwatch.ts';

const [name = '', module = '', address = ''] = process.argv.slice(2);
const connectTimeoutMs = 15_000;
let creates = 0;

async function load(client: Contender, task: Load): Promise<Result> {
  const { root, depth } = task;
  const data = Buffer.alloc(task.bytes, 0x78);
  const paths = Array.from({ length: pathCount }, (_, i) => pathOf(root, i));
  const below = `${root}/c${process.pid}-${creates++}`;
  if (task.op === 'create') await client.create(below, Buffer.alloc(0));
  let turn = 0;
  const next = () => {
    turn += 1;
    return paths[turn % pathCount]!;
  };
  const works = {
    get: async () => {
      const length = await client.get(next());
      if (length !== task.bytes) throw new Error(`${length} bytes came, not ${task.bytes}`);
    },
    set: () => client.set(next(), data),
    create: () => client.create(`${below}/n${turn++}`, data),
    mixed: () => (turn % 10 === 0 ? client.set(next(), data) : client.get(next())),
  };
  const work: () => Promise<unknown> = works[task.op];
  const watch = new Stopwatch(depth);
  let isOver = false;
  const lane = async () => {
    while (!isOver) {
      const begunMs = watch.begin();
      await work();
      watch.end(begunMs);
    }
  };
  const lanes = Promise.all(Array.from({ length: depth }, lane));
  const measured = async () => {
    await delay(task.warmSeconds * 1e3);
    watch.start();
    await delay(task.seconds * 1e3);
    isOver = true;
    return watch.stop();
  };
  const [result] = await Promise.all([measured(), lanes]);
  return result;
}

async function prepare(client: Contender, root: string, bytes: number): Promise<void> {
  const data = Buffer.alloc(bytes, 0x78);
  await client.create(root, Buffer.alloc(0));
  for (let i = 0; i < pathCount; i++) await client.create(pathOf(root, i), data);
}

const late = setTimeout(() => {
  fail(`${address} was not reached in ${connectTimeoutMs} ms`);
  process.exit(1);
}, connectTimeoutMs);

try {
  const open = contenders[name];
  if (open === undefined) throw new Error(`no contender is called ${name}`);
  const client = await open(module, address);
  clearTimeout(late);
  serveTasks(async (task) => {
    if (task.name === 'load') return load(client, task);
    if (task.name === 'prepare') await prepare(client, task.root, task.bytes);
    if (task.name === 'clear') await client.deleteBelow?.(task.root);
    return null;
  });
  say({ ready: { pid: process.pid } });
} catch (error) {
  fail(error);
  process.exit(1);
}
