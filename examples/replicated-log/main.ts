/**
 * A replicated log, and what it is for: three processes take records while each of them is killed,
 * stopped and gone on in turn, and nothing that was acknowledged is lost.
 *
 *   npx drover serve &
 *   npx tsx examples/replicated-log/main.ts
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Client, connect } from 'drover';
import { createTopic, readController, readTopic } from 'drover/kafka';
import { ask } from './wire.ts';

const zk = await connect(process.env.ZK_SERVERS ?? '127.0.0.1:2181');
const directory = await mkdtemp(join(tmpdir(), 'replicated-log-'));
const ports = await Promise.all([1, 2, 3].map(freePort));
const topic = `log-${Date.now().toString(36)}`;
const nodes = new Map<number, ChildProcess>();

process.on('SIGTERM', () => {
  for (const node of nodes.values()) node.kill('SIGKILL'); // also one that is stopped
  process.exit(1);
});

try {
  await Promise.all([1, 2, 3].map(start));
  await createTopic(zk, topic, { assignment: [[1, 2, 3]] });
  await leader(zk);

  const acknowledged: string[] = [];
  const producing = new AbortController();
  const produced = produce(acknowledged, producing.signal);
  await progress(acknowledged, 20);

  // 1. The leader dies. Alone in sync nobody could follow it.
  await inSync(zk, 3);
  const first = await leader(zk);
  await kill(first);
  const second = await newLeader(zk, first);
  console.log(`broker ${first} was killed, broker ${second} leads`);
  await progress(acknowledged, 20);
  await start(first);
  await inSync(zk, 3);

  // 2. The leader is stopped, is replaced, and goes on as if nothing had happened.
  const zombie = nodes.get(second)!;
  zombie.kill('SIGSTOP');
  const third = await newLeader(zk, second);
  zombie.kill('SIGCONT');
  const refused = await append(second, 'from the zombie').then(
    () => null,
    (error: Error) => error.message,
  );
  if (refused === null) throw new Error('a leader of the past took a record');
  console.log(`broker ${second} was stopped, broker ${third} leads; the zombie says: ${refused}`);
  await progress(acknowledged, 20);
  await inSync(zk, 3);

  // 3. The controller dies.
  const controller = (await readController(zk)).brokerId!;
  const epoch = (await readController(zk)).epoch!;
  await kill(controller);
  await until('another controller', async () => ((await readController(zk)).epoch ?? 0) > epoch);
  await until('a leader that lives', async () => (await leader(zk)) !== controller);
  console.log(`broker ${controller} was the controller and was killed; epoch ${epoch} is over`);
  await progress(acknowledged, 20);
  await start(controller);
  await inSync(zk, 3);

  producing.abort();
  await produced;
  const kept = new Set(await readAll(zk));
  const lost = acknowledged.filter((value) => !kept.has(value));
  console.log(`${acknowledged.length} records were acknowledged, ${lost.length} of them are lost`);
  if (lost.length > 0 || kept.has('from the zombie')) process.exitCode = 1;
} finally {
  for (const node of nodes.values()) node.kill('SIGKILL');
  await zk.close();
  await rm(directory, { recursive: true, force: true });
}

/** One record after the other; one that was not acknowledged is sent again, perhaps elsewhere. */
async function produce(acknowledged: string[], signal: AbortSignal): Promise<void> {
  for (let next = 0; !signal.aborted; ) {
    try {
      await append(await leader(zk), `record ${next}`);
      acknowledged.push(`record ${next++}`);
    } catch {
      await sleep(50);
    }
  }
}

async function append(broker: number, value: string): Promise<void> {
  await ask(ports[broker - 1]!, { op: 'append', partition: `${topic}-0`, value }, 3_000);
}

async function readAll(client: Client): Promise<string[]> {
  let records: string[] = [];
  await until('the log to be read', async () => {
    const port = ports[(await leader(client)) - 1]!;
    const answer = await ask(port, { op: 'read', partition: `${topic}-0` }, 3_000);
    records = answer.records as string[];
    return true;
  });
  return records;
}

async function leader(client: Client): Promise<number> {
  let found = -1;
  await until('a leader', async () => {
    found = (await readTopic(client, topic))?.partitions[0]?.state?.leader ?? -1;
    return found > 0;
  });
  return found;
}

async function newLeader(client: Client, old: number): Promise<number> {
  await until(`a leader after broker ${old}`, async () => (await leader(client)) !== old);
  return leader(client);
}

async function inSync(client: Client, count: number): Promise<void> {
  await until(`${count} in sync`, async () => {
    const seen = await readTopic(client, topic);
    return seen?.partitions[0]?.state?.isr.length === count;
  });
}

async function progress(acknowledged: readonly string[], more: number): Promise<void> {
  const wanted = acknowledged.length + more;
  await until(`${more} more records`, async () => acknowledged.length >= wanted);
}

/** Bounded: a cluster that does not come back is an error, not a wait. */
async function until(what: string, check: () => Promise<boolean>): Promise<void> {
  let cause: unknown;
  for (const deadlineMs = Date.now() + 60_000; Date.now() < deadlineMs; await sleep(20)) {
    try {
      if (await check()) return;
    } catch (error) {
      cause = error;
    }
  }
  throw new Error(`${what}: not within a minute`, { cause });
}

async function start(id: number): Promise<void> {
  const file = join(import.meta.dirname, 'node.ts');
  const own = join(directory, String(id));
  const node = spawn(process.execPath, [...process.execArgv, file, String(id), ports.join(), own], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  nodes.set(id, node);
  await once(node.stdout, 'data');
}

async function kill(id: number): Promise<void> {
  const node = nodes.get(id)!;
  node.kill('SIGKILL');
  await once(node, 'close');
}

async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
