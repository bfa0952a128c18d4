/**
 * A server under load: connections from one process, each with so many requests in flight, written
 * and read past our own client, so that the server is what is measured.
 *
 *   node server-load.js <port>
 */

import { setTimeout as delay } from 'node:timers/promises';
import type { Writer } from '../../src/jute/index.ts';
import { openAcl } from '../../src/protocol/index.ts';
import { BareSession } from './bare-session.ts';
import {
  fail,
  type Load,
  pathCount,
  pathOf,
  type Result,
  say,
  serveTasks,
  type Task,
} from './messages.ts';
import { RawConnection } from './raw-connection.ts';
import { append, type Made, madePath, requestsOf } from './requests.ts';
import { Stopwatch } from './stopwatch.ts';

const port = Number(process.argv[2]);
/** As many as a server takes in at a time without dropping any. */
const opensAtOnce = 50;
/** A list of children is one reply, and may not be too long. */
const childrenMax = 1000;
const clearsAtOnce = 1000;

/** What the last load has made, and nobody has cleared away. */
let made: Made = { stem: '', count: 0 };

async function load(task: Load): Promise<Result> {
  const connections = await openAll(task.connections);
  const watch = new Stopwatch(task.connections * task.depth);
  const requests = requestsOf(task);
  const failed = new Promise<never>((_, reject) => {
    for (const connection of connections) {
      connection.start({
        depth: task.depth,
        requests: requests.next,
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
  made = requests.made(); // whatever was asked for is answered now
  return result;
}

/** So that each load begins with as large a tree as the one before, however fast the server is. */
async function clear(): Promise<void> {
  const { stem, count } = made;
  made = { stem, count: 0 };
  const connection = await RawConnection.open(port);
  let next = 0;
  let answers = 0;
  await new Promise<void>((resolve, reject) => {
    if (count === 0) resolve();
    connection.start({
      depth: Math.min(clearsAtOnce, count),
      requests: (writer: Writer, xid: number) => {
        next += 1;
        // Those in flight when all are gone have to be something.
        if (next > count) append(writer, xid, 'exists', { path: '/', watch: false });
        else append(writer, xid, 'delete', { path: madePath(stem, next), version: -1 });
      },
      onAnswer: () => {
        answers += 1;
        if (answers === count) resolve();
      },
      onFailed: reject,
    });
  });
  await connection.close();
}

async function openAll(count: number): Promise<RawConnection[]> {
  const open: RawConnection[] = [];
  while (open.length < count) {
    const some = Math.min(opensAtOnce, count - open.length);
    const opening = Array.from({ length: some }, () => RawConnection.open(port));
    open.push(...(await Promise.all(opening)));
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

/** All nodes below `root`: the parents first, one by one, the rest as fast as the shape allows. */
async function fill(task: Extract<Task, { name: 'fill' }>): Promise<Result> {
  const { root, count, bytes, depth } = task;
  const data = Buffer.alloc(bytes, 0x78);
  const acl = [...openAcl];
  const connections = await openAll(task.connections);
  const create = (writer: Writer, xid: number, path: string) =>
    append(writer, xid, 'create', { path, data, acl, flags: 0 });
  const parents = Math.ceil(count / childrenMax);
  const paths = [root, ...Array.from({ length: parents }, (_, i) => `${root}/p${i}`)];
  for (const path of paths) await connections[0]!.ask((writer, xid) => create(writer, xid, path));
  const watch = new Stopwatch(task.connections * depth);
  let made = 0;
  let answers = 0;
  watch.start();
  await new Promise<void>((resolve, reject) => {
    const pace = {
      depth,
      requests: (writer: Writer, xid: number) => {
        const at = made++;
        // Those in flight when all are made have to be something.
        if (at >= count) append(writer, xid, 'exists', { path: root, watch: false });
        else create(writer, xid, `${root}/p${Math.floor(at / childrenMax)}/n${at}`);
      },
      onAnswer: (sentMs: number, nowMs: number) => {
        watch.count(sentMs, nowMs);
        answers += 1;
        if (answers === count) resolve();
      },
      onFailed: reject,
    };
    for (const connection of connections) connection.start(pace);
  });
  const result = watch.stop();
  await Promise.all(connections.map((connection) => connection.close()));
  return result;
}

async function sessions({ count, atOnce }: Extract<Task, { name: 'sessions' }>): Promise<Result> {
  const watch = new Stopwatch(1);
  const all: BareSession[] = [];
  let opened = 0;
  let left = () => {};
  watch.start();
  await new Promise<void>((resolve, reject) => {
    const one = () => {
      if (all.length === count) return;
      const begunMs = watch.begin();
      const ends = {
        opened: () => {
          watch.end(begunMs);
          opened += 1;
          if (opened === count) resolve();
          else one();
        },
        closed: () => left(),
        failed: reject,
      };
      all.push(new BareSession(port, ends));
    };
    for (let i = 0; i < atOnce; i++) one();
  });
  const result = watch.stop();
  await new Promise<void>((resolve) => {
    let open = count;
    left = () => {
      open -= 1;
      if (open === 0) resolve();
    };
    for (const session of all) session.close();
  });
  return result;
}

/** Its seconds are those from each change to its last event: setting the watches again is not counted. */
async function fanOut(task: Extract<Task, { name: 'fanOut' }>): Promise<Result> {
  const { path, watchers, rounds } = task;
  const data = Buffer.alloc(100, 0x78);
  const connections = await openAll(watchers + 1);
  const changer = connections.pop()!;
  const watch = new Stopwatch(1);
  let told = 0;
  let changedMs = 0;
  let allTold = () => {};
  for (const connection of connections) {
    connection.onEvent = () => {
      watch.count(changedMs, performance.now());
      told += 1;
      if (told % watchers === 0) allTold();
    };
  }
  const arm = (connection: RawConnection) =>
    connection.ask((writer, xid) => append(writer, xid, 'getData', { path, watch: true }));
  const change = (writer: Writer, xid: number) =>
    append(writer, xid, 'setData', { path, data, version: -1 });
  let deliveringMs = 0;
  watch.start();
  for (let round = 0; round < rounds; round++) {
    await Promise.all(connections.map(arm));
    const all = new Promise<void>((resolve) => {
      allTold = resolve;
    });
    changedMs = performance.now();
    await Promise.all([changer.ask(change), all]);
    deliveringMs += performance.now() - changedMs;
  }
  const result = { ...watch.stop(), seconds: deliveringMs / 1e3 };
  await Promise.all([changer, ...connections].map((connection) => connection.close()));
  return result;
}

try {
  // A server may have just been started: whoever asks for it waits.
  const connection = await RawConnection.open(port);
  await connection.close();
  serveTasks(async (task) => {
    if (task.name === 'load') return load(task);
    if (task.name === 'fill') return fill(task);
    if (task.name === 'sessions') return sessions(task);
    if (task.name === 'fanOut') return fanOut(task);
    if (task.name === 'clear') await clear();
    if (task.name === 'prepare') await prepare(task.root, task.bytes);
    return null;
  });
  say({ ready: { pid: process.pid } });
} catch (error) {
  fail(error);
  process.exit(1);
}
