/**
 * Clients under load whose every op is recorded, and who come back to the same session when the server
 * does. They write over each other's nodes on purpose: the order of zxids says who was right.
 */

import { Reader } from '../../src/jute/index.ts';
import {
  type MultiPart,
  MultiResponse,
  type OpName,
  openAcl,
  ops,
  type StatView,
} from '../../src/protocol/index.ts';
import { RawClient, type RawReply } from '../../src/testing/index.ts';
import type { Random } from '../differential/random.ts';
import {
  type Answer,
  type Asked,
  type Mode,
  modeFlags,
  type Op,
  type Recorder,
  type SeenStat,
} from './history.ts';
import { parentOf } from './model.ts';

export const base = '/chaos';
const folders = ['a', 'b', 'c'].map((name) => `${base}/${name}`);
const queue = `${base}/queue`;
const members = `${base}/members`;
const names = ['n0', 'n1', 'n2', 'n3', 'n4', 'n5'];
const queueMax = 30;

export class SessionLost extends Error {}

/** One session, over as many links as it takes. */
export class Recorded {
  readonly #recorder: Recorder;
  readonly #timeoutMs: number;
  #raw: RawClient | undefined;
  #link = 0;
  #xid = 0;
  #sessionId = 0n;
  #passwd: Buffer | null = Buffer.alloc(16);
  #lastZxid = 0n;

  constructor(recorder: Recorder, timeoutMs: number) {
    this.#recorder = recorder;
    this.#timeoutMs = timeoutMs;
  }

  get session(): string {
    return `${this.#sessionId}`;
  }

  get isLinked(): boolean {
    return this.#raw !== undefined && !this.#raw.isClosed;
  }

  get raw(): RawClient {
    return this.#raw!;
  }

  /** False when the server went away meanwhile. A session that is refused is thrown: it was promised. */
  async connect(port: number): Promise<boolean> {
    let raw: RawClient;
    try {
      raw = await RawClient.dial(port);
    } catch {
      return false;
    }
    const request = {
      sessionId: this.#sessionId,
      passwd: this.#passwd,
      timeOut: this.#timeoutMs,
      lastZxidSeen: this.#lastZxid,
    };
    const answered = await raw.shakeHands(request);
    if (answered === 0) {
      raw.close();
      return false;
    }
    if (raw.sessionId === 0n) {
      raw.close();
      throw new SessionLost(`session 0x${this.#sessionId.toString(16)} is gone`);
    }
    this.#sessionId = raw.sessionId;
    this.#passwd = raw.passwd;
    this.#raw = raw;
    this.#link += 1;
    return true;
  }

  /** The answer, or undefined where none came. */
  async ask(asked: Asked): Promise<Answer | undefined> {
    const raw = this.#raw!;
    const xid = ++this.#xid;
    const op: Op = this.#recorder.asked(this.session, this.#link, xid, asked);
    send(raw, asked, xid);
    let reply: RawReply;
    try {
      reply = await raw.reply(xid);
    } catch {
      return undefined;
    }
    const answer = answerOf(asked, reply);
    if (reply.zxid > this.#lastZxid) this.#lastZxid = reply.zxid;
    this.#recorder.heard(op, Number(reply.zxid), answer);
    return answer;
  }

  /** Cuts the link. The session goes on. */
  cut(): void {
    this.#raw?.close();
  }
}

function send(raw: RawClient, asked: Asked, xid: number): void {
  switch (asked.kind) {
    case 'multi':
      raw.send('multi', asked.parts.map(partOf), xid);
      return;
    case 'closeSession':
      raw.send('closeSession', {}, xid);
      return;
    case 'getData':
    case 'exists':
    case 'getChildren2':
      raw.send(asked.kind, { path: asked.path, watch: false }, xid);
      return;
    default: {
      const { op, request } = partOf(asked);
      raw.send(op as 'create', request as never, xid);
    }
  }
}

function partOf(asked: Asked): MultiPart {
  switch (asked.kind) {
    case 'create':
    case 'create2': {
      const { path, data, mode } = asked;
      const request = { path, data: Buffer.from(data), acl: [...openAcl], flags: modeFlags[mode] };
      return { op: asked.kind, request };
    }
    case 'setData': {
      const { path, data, version } = asked;
      return { op: 'setData', request: { path, data: Buffer.from(data), version } };
    }
    case 'delete':
    case 'check':
      return { op: asked.kind, request: { path: asked.path, version: asked.version } };
    default:
      throw new Error(`${asked.kind} has no place in a multi`);
  }
}

function answerOf(asked: Asked, { err, body }: RawReply): Answer {
  if (err !== 0) return { err };
  if (asked.kind === 'multi') {
    const parts = MultiResponse.read(new Reader(body)).map((part): Answer => {
      return part.op === 'error' ? { err: part.err } : { err: 0, ...fieldsOf(part.response) };
    });
    return { err, parts };
  }
  const { response } = ops[asked.kind as OpName];
  return { err, ...fieldsOf(response.read(new Reader(body))) };
}

function fieldsOf(response: unknown): Partial<Answer> {
  const { path, data, children, stat } = response as {
    path?: string;
    data?: Buffer | null;
    children?: string[];
    stat?: StatView;
  };
  return {
    ...(path === undefined ? {} : { path }),
    ...(data === undefined ? {} : { data: data?.toString() ?? 'null' }),
    ...(children === undefined ? {} : { children }),
    ...(stat === undefined ? {} : { stat: seen(stat) }),
  };
}

function seen(stat: StatView): SeenStat {
  return {
    czxid: Number(stat.czxid),
    mzxid: Number(stat.mzxid),
    pzxid: Number(stat.pzxid),
    version: stat.version,
    cversion: stat.cversion,
    aversion: stat.aversion,
    ephemeralOwner: `${stat.ephemeralOwner}`,
    dataLength: stat.dataLength,
    numChildren: stat.numChildren,
    ctime: Number(stat.ctime),
    mtime: Number(stat.mtime),
  };
}

/** Makes what the load needs below it; what is there already says so. */
export async function prepare(client: Recorded): Promise<void> {
  for (const path of [base, ...folders, queue, members]) {
    await client.ask({ kind: 'create', path, data: '', mode: 'persistent' });
  }
}

/** Reads every node below `base`: its value, its children, its Stat. */
export async function readAll(client: Recorded, from = base): Promise<number> {
  let count = 0;
  let level = [from];
  while (level.length > 0) {
    const next: string[] = [];
    // Not more at once than a link takes, and each level before the one below it.
    for (let at = 0; at < level.length; at += 50) {
      await Promise.all(
        level.slice(at, at + 50).map(async (path) => {
          const [, list] = await Promise.all([
            client.ask({ kind: 'getData', path }),
            client.ask({ kind: 'getChildren2', path }),
          ]);
          count += 1;
          for (const name of list?.children ?? []) next.push(`${path}/${name}`);
        }),
      );
    }
    level = next;
  }
  return count;
}

/** Asks one random thing after the other until it is told to stop or the link ends. */
export class Load {
  readonly #client: Recorded;
  readonly #random: Random;
  readonly #known: string[] = [];
  #count = 0;
  isStopped = false;
  #name: string;

  constructor(client: Recorded, random: Random, name: string) {
    this.#client = client;
    this.#random = random;
    this.#name = name;
  }

  /** `depth` requests are under way at any time. */
  async run(depth: number): Promise<void> {
    await Promise.all(Array.from({ length: depth }, () => this.#lane()));
  }

  async #lane(): Promise<void> {
    while (!this.isStopped && this.#client.isLinked) {
      const asked = this.#next();
      const answer = await this.#client.ask(asked);
      if (answer === undefined) return;
      this.#learn(asked, answer);
    }
  }

  #learn(asked: Asked, answer: Answer): void {
    if (asked.kind === 'multi') {
      asked.parts.forEach((part, i) => {
        this.#learn(part, answer.parts?.[i] ?? { err: -1 });
      });
    } else if (answer.path?.startsWith(queue)) {
      this.#known.push(answer.path);
    }
  }

  #next(): Asked {
    const random = this.#random;
    if (this.#known.length > queueMax) return this.#take();
    return random.weighted<() => Asked>([
      [20, () => this.#write()],
      [6, () => this.#sequential()],
      [4, () => this.#take()],
      [4, () => this.#member()],
      [8, () => this.#multi()],
      [6, () => this.#read()],
    ])();
  }

  #path(): string {
    const path = `${this.#random.pick(folders)}/${this.#random.pick(names)}`;
    return this.#random.chance(0.2) ? `${path}/${this.#random.pick(names)}` : path;
  }

  /** Unlike any other value, mostly short, sometimes longer than a few sectors. */
  #value(): string {
    const text = `${this.#name}.${++this.#count}`;
    if (this.#random.chance(0.9)) return text;
    return text.padEnd(this.#random.below(6_000), '.');
  }

  #version(): number {
    return this.#random.chance(0.7) ? -1 : this.#random.below(4);
  }

  #write(): Asked {
    const path = this.#path();
    const data = this.#value();
    const kind = this.#random.weighted([
      [3, 'create'],
      [2, 'create2'],
      [5, 'setData'],
      [3, 'delete'],
    ] as const);
    if (kind === 'setData') return { kind, path, data, version: this.#version() };
    if (kind === 'delete') return { kind, path, version: this.#version() };
    return { kind, path, data, mode: 'persistent' };
  }

  #sequential(): Asked {
    const mode: Mode = this.#random.chance(0.8) ? 'persistentSequential' : 'ephemeralSequential';
    return { kind: 'create2', path: `${queue}/q-`, data: this.#value(), mode };
  }

  #take(): Asked {
    const path = this.#known.shift() ?? `${queue}/none`;
    return { kind: 'delete', path, version: -1 };
  }

  #member(): Asked {
    const path = `${members}/${this.#name}-${this.#random.below(3)}`;
    if (this.#random.chance(0.4)) return { kind: 'delete', path, version: -1 };
    if (this.#random.chance(0.1)) {
      return { kind: 'create', path: `${path}/child`, data: '', mode: 'persistent' };
    }
    return { kind: 'create', path, data: this.#value(), mode: 'ephemeral' };
  }

  #multi(): Asked {
    const random = this.#random;
    const parts = random.times(1 + random.below(5), (): Asked => {
      const kind = random.below(10);
      if (kind < 6) return this.#write();
      if (kind < 8) return this.#sequential();
      if (kind < 9) return this.#member();
      return { kind: 'check', path: this.#path(), version: this.#version() };
    });
    return { kind: 'multi', parts };
  }

  #read(): Asked {
    const random = this.#random;
    const path = random.chance(0.2) ? random.pick([...folders, queue, members]) : this.#path();
    const kind = random.pick(['getData', 'exists', 'getChildren2'] as const);
    return { kind, path: random.chance(0.05) ? parentOf(path) : path };
  }
}
