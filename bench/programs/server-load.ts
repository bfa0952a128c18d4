/**
 * A server under load: connections from one process, each with so many requests in flight, written
 * and read past our own client, so that the server is what is measured.
 *
 *   node server-load.js <port>
 */

import { setTimeout as delay } from 'node:timers/promises';
import type { Writer } from '../../src/jute/index.ts';
import { openAcl } from '../../src/protocol/index.ts';
import { fail, type Load, pathCount, pathOf, type Result, say, serveTasks } from './messages.ts';
import { RawConnection } from './raw-connection.ts';
import { append, requestsOf } from './requests.ts';
import { Stopwatch } from './stopwatch.ts';

const port = Number(process.argv[2]);
/** As many as a server takes in at a time without dropping any. */
const opensAtOnce = 50;

async function load(task: Load): Promise<Result> {
  const connections = await openAll(task.connections);
  const watch = new Stopwatch(task.connections * task.depth);
  const requests = requestsOf(task);
  const failed = new Promise<never>((_, reject) => {
    for (const connection of connections) {
      connection.start({
        depth: task.depth,
        requests,
        onAnswer: (sentMs, nowMs) => watch.count(sentMs, nowMs),
        onFailed: reject,
      });
    }
  });
  await Promise.race([failed, delay(task.warmSeconds * 1e3)]);
  watch.start();
  await Promise.race([failed, delay(task.seconds * 1e3)]);
  const result = watch.stop();
  failed.catch(() => {}); // closing, which is what now follows, is no failure
  await Promise.all(connections.map((connection) => connection.close()));
  return result;
}

async function openAll(count: number): Promise<RawConnection[]> {
  const open: RawConnection[] = [];
  while (open.length < count) {
    const some = Math.min(opensAtOnce, count - open.length);
    open.push(...(await Promise.all(Array.from({ length: some }, () => RawConnection.open(port)))));
  }
  return open;
}

async function prepare(root: string, bytes: number): Promise<void> {
  const connection = await RawConnection.open(port);
  const data = Buffer.alloc(bytes, 0x78);
  const acl = [...openAcl];
  const paths = [root, ...Array.from({ length: pathCount }, (_, i) => pathOf(root, i))];
  let next = 0;
  let answers = 0;
  await new Promise<void>((resolve, reject) => {
    connection.start({
      depth: 1,
      requests: (writer: Writer, xid: number) => {
        // The one in flight when all are made has to be something.
        const path = paths[next++];
        if (path === undefined) append(writer, xid, 'exists', { path: root, watch: false });
        else append(writer, xid, 'create', { path, data, acl, flags: 0 });
      },
      onAnswer: () => {
        answers += 1;
        if (answers === paths.length) resolve();
      },
      onFailed: reject,
    });
  });
  await connection.close();
}

try {
  // A server may have just been started: whoever asks for it waits.
  const connection = await RawConnection.open(port);
  await connection.close();
  serveTasks(async (task) => {
    if (task.name === 'load') return load(task);
    if (task.name === 'prepare') await prepare(task.root, task.bytes);
    return null;
  });
  say({ ready: { pid: process.pid } });
} catch (error) {
  fail(error);
  process.exit(1);
}
