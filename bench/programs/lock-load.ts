/**
 * A lock under load: so many contenders take it, let go and ask again, each with a link of its own.
 *
 *   node lock-load.js <contender> <address> <module> …
 *   in    {"contenders":50,"warmSeconds":1,"seconds":1}           each line a task
 *   out   {"ops":…,"seconds":…,"cpuUs":…,"waitsUs":[p50,p99,max],"grants":[…],"failed":…}
 *
 * LockLoad.java reads and says the same. A wait counts from asking to having. It ends when its input does.
 */

import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';

/** Takes the lock, and gives back what lets go of it. */
type Acquire = () => Promise<() => Promise<unknown>>;

interface Side {
  /** One more contender. */
  open(): Promise<Acquire>;
  /** Tries that another was quicker in, where the library leaves trying again to its user. */
  failed: number;
}

type Start = (address: string, modules: readonly string[]) => Promise<Side>;

const sides: Readonly<Record<string, Start>> = {
  async drover(address, [client = '', recipes = '']) {
    const { connect } = await import(client);
    const { Lock } = await import(recipes);
    return {
      failed: 0,
      async open() {
        const lock = new Lock(await connect(address, { sessionTimeoutMs: 30_000 }), '/bench/lock');
        return async () => {
          const grant = await lock.acquire();
          return () => grant.release();
        };
      },
    };
  },

  async redlock(address, [redlock = '', ioredis = '']) {
    const { default: Redlock } = await import(redlock);
    const { default: Redis } = await import(ioredis);
    const [host, port] = address.split(':');
    return {
      failed: 0,
      async open() {
        const redis = new Redis({ host, port: Number(port), lazyConnect: true });
        await redis.connect();
        // As it comes, but for the ten tries after which it would give up.
        const one = new (Redlock.default ?? Redlock)([redis], { retryCount: -1 });
        return async () => {
          const lock = await one.acquire(['bench-lock'], 10_000);
          return () => lock.release();
        };
      },
    };
  },

  async etcd3(address, [etcd3 = '']) {
    const { Etcd3, EtcdLockFailedError } = await import(etcd3);
    const side: Side = {
      failed: 0,
      async open() {
        const client = new Etcd3({ hosts: `http://${address}` });
        await client.get('bench');
        return async () => {
          for (;;) {
            try {
              const lock = await client.lock('bench-lock').ttl(10).acquire();
              return () => lock.release();
            } catch (error) {
              if (!(error instanceof EtcdLockFailedError)) throw error;
              side.failed += 1;
              await delay(Math.random() * 20); // it does not wait by itself
            }
          }
        };
      },
    };
    return side;
  },
};

interface Task {
  readonly contenders: number;
  readonly warmSeconds: number;
  readonly seconds: number;
}

async function run(side: Side, open: Acquire[], task: Task) {
  while (open.length < task.contenders) open.push(await side.open());
  const contenders = open.slice(0, task.contenders);
  const waits = contenders.map(() => [] as number[]);
  let isMeasured = false;
  let isOver = false;
  const contend = async (acquire: Acquire, own: number[]) => {
    while (!isOver) {
      const askedMs = performance.now();
      const release = await acquire();
      if (isMeasured) own.push((performance.now() - askedMs) * 1e3);
      await release();
    }
  };
  const all = Promise.all(contenders.map((acquire, i) => contend(acquire, waits[i]!)));
  const measured = async () => {
    await delay(task.warmSeconds * 1e3);
    const [startMs, cpu, failed] = [performance.now(), process.cpuUsage(), side.failed];
    isMeasured = true;
    await delay(task.seconds * 1e3);
    isMeasured = false;
    const { user, system } = process.cpuUsage(cpu);
    const seconds = (performance.now() - startMs) / 1e3;
    isOver = true;
    return { seconds, cpuUs: user + system, failed: side.failed - failed };
  };
  const [figures] = await Promise.all([measured(), all]);
  const sorted = waits.flat().sort((a, b) => a - b);
  const at = (share: number) =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  return {
    ...figures,
    ops: sorted.length,
    waitsUs: [at(0.5), at(0.99), at(1)],
    grants: waits.map(({ length }) => length),
  };
}

const [name = '', address = '', ...modules] = process.argv.slice(2);
const side = await sides[name]!(address, modules);
const open: Acquire[] = [];
for await (const line of createInterface(process.stdin)) {
  process.stdout.write(`${JSON.stringify(await run(side, open, JSON.parse(line)))}\n`);
}
process.exit(0);
