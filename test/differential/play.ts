/**
 * Plays a script on one server and writes down what it said.
 *
 * In: a script. Out: for each link, in order, every frame that came, each with the command it answers
 * if it answers one, and the end of the link if the server ended it. Who waits for whom is decided here
 * alone, from what has come back, and so is the same on every server.
 *
 * Around each script: the whole tree is read as the super user sees it, then everything is taken away
 * again, so that the next script starts from the same state.
 */

import { Reader, Writer } from '../../src/jute/index.ts';
import {
  type Acl,
  ConnectRequest,
  ConnectResponse,
  GetACLResponse,
  GetChildrenResponse,
  GetDataResponse,
  ops,
  specialXids,
} from '../../src/protocol/index.ts';
import { decodeBody } from './decode.ts';
import { RawLink } from './raw-link.ts';
import { type Call, type Command, goesWith, type Script, standsAlone } from './script.ts';

/** Nothing takes a server that long. One that did not answer by then never will. */
const silenceMs = 5_000;
/** How long a link may stay that should be closed. */
const closesMs = 500;

export type Said =
  | { readonly kind: 'welcome'; readonly frame: Buffer; readonly command: number }
  | { readonly kind: 'event'; readonly frame: Buffer; readonly command: number }
  | { readonly kind: 'reply'; readonly frame: Buffer; readonly command: number; readonly to: Call }
  | { readonly kind: 'closed' | 'silence' | 'open'; readonly command: number };

export interface Transcript {
  /** By link, in the order in which links were made. The last one is the walk through the tree. */
  readonly links: readonly (readonly Said[])[];
  /** The last zxid before the script. */
  readonly base: bigint;
  /** Sessions in the order in which they were made. */
  readonly sessions: readonly Session[];
}

export interface Session {
  readonly id: bigint;
  readonly passwd: Buffer;
  isOver: boolean;
}

interface Asked {
  readonly to: Call;
  readonly command: number;
}

/** A link with the record of what was said on it. */
class Line {
  readonly raw: RawLink;
  readonly said: Said[] = [];
  readonly #asked: Asked[] = [];
  #read = 0;
  #counted = 0;
  #replies = 0;
  #expected = 0;
  #isWelcomed = false;
  #hasEnded = false;
  xid = 0;
  lastZxid = 0n;
  session: Session | undefined;
  lastCommand = -1;

  constructor(raw: RawLink) {
    this.raw = raw;
  }

  get isUsable(): boolean {
    return !this.raw.isClosed && !this.#hasEnded;
  }

  ask(asked: Asked): void {
    this.#asked.push(asked);
    this.#expected += 1;
    this.lastCommand = asked.command;
  }

  expectWelcome(command: number): void {
    this.#expected += 1;
    this.lastCommand = command;
  }

  /** Until as many replies are there as were asked for, or the link is closed. */
  async settled(timeoutMs = silenceMs): Promise<void> {
    const isThere = await this.raw.until(() => this.#count() >= this.#expected, timeoutMs);
    this.take();
    if (!isThere) {
      this.said.push({ kind: 'silence', command: this.lastCommand });
      this.raw.destroy();
      this.#hasEnded = true;
    }
  }

  /** Whether the server has closed it: a ping is answered, or it is closed. */
  async probe(command: number): Promise<void> {
    const writer = new Writer();
    writeFrame(writer, (w) => {
      w.int(specialXids.ping);
      w.int(ops.ping.code);
    });
    this.ask({ to: { kind: 'call', slot: -1, op: 'ping', request: null }, command });
    this.raw.write(writer.detach());
    await this.settled();
  }

  #count(): number {
    const { frames } = this.raw;
    for (; this.#counted < frames.length; this.#counted++) {
      if (this.#counted === 0 || frames[this.#counted]!.readInt32BE(0) !== -1) this.#replies += 1;
    }
    return this.#replies;
  }

  take(): void {
    const { frames } = this.raw;
    for (; this.#read < frames.length; this.#read++) {
      const frame = frames[this.#read]!;
      const command = this.lastCommand;
      if (!this.#isWelcomed) {
        this.#isWelcomed = true;
        this.said.push({ kind: 'welcome', frame, command });
      } else if (frame.readInt32BE(0) === specialXids.notification) {
        this.said.push({ kind: 'event', frame, command });
      } else {
        const asked = this.#asked.shift();
        const zxid = frame.readBigInt64BE(4);
        if (zxid > this.lastZxid) this.lastZxid = zxid;
        if (asked === undefined) this.said.push({ kind: 'event', frame, command });
        else this.said.push({ kind: 'reply', frame, ...asked });
      }
    }
    if (this.raw.isClosed && !this.#hasEnded) {
      this.#hasEnded = true;
      this.said.push({ kind: 'closed', command: this.lastCommand });
    }
  }

  drop(): void {
    this.take();
    this.#hasEnded = true;
    this.raw.destroy();
  }
}

function writeFrame(writer: Writer, write: (writer: Writer) => void): void {
  const start = writer.beginFrame();
  write(writer);
  writer.endFrame(start);
}

const systemPaths = ['/', '/zookeeper', '/zookeeper/quota', '/zookeeper/config'];

interface NodeSeen {
  readonly path: string;
  readonly data: Buffer | null;
  readonly acl: readonly Acl[];
}

const superCredentials = Buffer.from('super:test');

export class Player {
  readonly #port: number;
  #control: Line | undefined;
  #initial: Map<string, NodeSeen> | undefined;

  constructor(port: number) {
    this.#port = port;
  }

  async play(script: Script): Promise<Transcript> {
    const control = await this.#controlLine();
    control.said.length = 0;
    await control.probe(-1);
    const base = control.lastZxid;
    control.said.length = 0;
    const scene = new Scene(this.#port, base);
    try {
      await scene.run(script);
      await scene.end();
      const nodes = await this.#walk(control);
      await this.#reset(control, nodes);
    } finally {
      scene.leave();
    }
    return {
      links: [...scene.lines, control].map(({ said }) => [...said]),
      base,
      sessions: scene.sessions,
    };
  }

  close(): void {
    this.#control?.raw.destroy();
  }

  async #controlLine(): Promise<Line> {
    if (this.#control?.isUsable) return this.#control;
    const line = new Line(await RawLink.open(this.#port));
    greet(
      line,
      { lastZxidSeen: 0n, timeOut: 1_000_000, sessionId: 0n, passwd: Buffer.alloc(16) },
      -1,
    );
    await line.settled();
    const auth = { type: 0, scheme: 'digest', auth: superCredentials };
    send(line, [[{ kind: 'call', slot: -1, op: 'auth', request: auth, xid: -4 }, -1]]);
    await line.settled();
    this.#control = line;
    this.#initial ??= new Map((await this.#walk(line)).map((node) => [node.path, node]));
    return line;
  }

  /** Reads all there is, level by level. */
  async #walk(line: Line): Promise<NodeSeen[]> {
    const nodes: NodeSeen[] = [];
    for (let level = ['/']; level.length > 0; ) {
      const at = line.said.length;
      const calls = level.flatMap((path) => [
        controlCall('getData', { path, watch: false }),
        controlCall('getACL', { path }),
        controlCall('getChildren', { path, watch: false }),
      ]);
      await ask(line, calls);
      const replies = line.said.slice(at).filter((said) => said.kind === 'reply');
      const below: string[] = [];
      for (const [i, path] of level.entries()) {
        const [data, acl, children] = replies.slice(3 * i, 3 * i + 3).map(({ frame }) => frame);
        if (children === undefined) throw new Error(`the walk stopped at ${path}`);
        nodes.push({
          path,
          data: decodeBody(GetDataResponse, data!)!.data,
          acl: decodeBody(GetACLResponse, acl!)!.acl,
        });
        for (const name of decodeBody(GetChildrenResponse, children)!.children.sort()) {
          below.push(path === '/' ? `/${name}` : `${path}/${name}`);
        }
      }
      level = below;
    }
    return nodes;
  }

  /** Takes everything away that was not there at first. */
  async #reset(line: Line, nodes: readonly NodeSeen[]): Promise<void> {
    const calls: Call[] = [];
    for (const { path, data, acl } of [...nodes].reverse()) {
      if (!systemPaths.includes(path)) {
        calls.push(controlCall('delete', { path, version: -1 }));
        continue;
      }
      const first = this.#initial?.get(path);
      if (first === undefined) continue;
      if (JSON.stringify(first.acl) !== JSON.stringify(acl)) {
        calls.push(controlCall('setACL', { path, acl: first.acl, version: -1 }));
      }
      if (String(first.data) !== String(data)) {
        calls.push(controlCall('setData', { path, data: first.data, version: -1 }));
      }
    }
    if (calls.length > 0) await ask(line, calls);
  }
}

const controlCall = (op: keyof typeof ops, request: Record<string, unknown>): Call => ({
  kind: 'call',
  slot: -1,
  op,
  request,
});

/** Not more at once than a server takes without stopping to read. */
const burst = 200;

async function ask(line: Line, calls: readonly Call[]): Promise<void> {
  for (let at = 0; at < calls.length; at += burst) {
    send(
      line,
      calls.slice(at, at + burst).map((call) => [call, -1]),
    );
    await line.settled();
  }
}

function greet(
  line: Line,
  request: Omit<ConnectRequest, 'protocolVersion' | 'readOnly'> & { old?: boolean },
  command: number,
): void {
  const writer = new Writer();
  const { old, ...fields } = request;
  writeFrame(writer, (w) =>
    ConnectRequest.write(w, {
      protocolVersion: 0,
      ...fields,
      readOnly: old ? undefined : false,
    }),
  );
  line.expectWelcome(command);
  line.raw.write(writer.detach());
}

function send(line: Line, calls: readonly (readonly [call: Call, command: number])[]): void {
  const writer = new Writer(4096);
  for (const [call, command] of calls) {
    const xid = call.xid ?? ++line.xid;
    writeFrame(writer, (w) => {
      w.int(xid);
      w.int(typeof call.op === 'number' ? call.op : ops[call.op].code);
      const start = w.length;
      if (call.hex !== undefined) w.raw(Buffer.from(call.hex, 'hex'));
      else if (call.request !== null && typeof call.op !== 'number') {
        (ops[call.op].request.write as (w: Writer, value: unknown) => void)(w, call.request);
      }
      if (call.cut === undefined) return;
      if (call.cut >= 0) w.truncate(Math.max(start, w.length - call.cut));
      else w.raw(Buffer.alloc(-call.cut, 7));
    });
    line.ask({ to: call, command });
  }
  line.raw.write(writer.detach());
}

interface Slot {
  line: Line | undefined;
  session: Session | undefined;
}

/** The slots and sessions of one script. */
class Scene {
  readonly lines: Line[] = [];
  readonly sessions: Session[] = [];
  readonly #port: number;
  readonly #slots: Slot[] = [];
  /** What a zxid that a script names is counted from. */
  readonly #base: bigint;

  constructor(port: number, base: bigint) {
    this.#port = port;
    this.#base = base;
  }

  async run(script: Script): Promise<void> {
    const { commands, pipelined } = script;
    for (let at = 0; at < commands.length; ) {
      const command = commands[at]!;
      let end = at + 1;
      if (pipelined && !standsAlone(command)) {
        while (end < commands.length && goesWith(commands[end - 1]!, commands[end]!)) end += 1;
      }
      if (command.kind === 'call') await this.#calls(commands.slice(at, end) as Call[], at);
      else await this.#other(command, at);
      at = end;
    }
  }

  async #calls(calls: readonly Call[], at: number): Promise<void> {
    const { line } = this.#slot(calls[0]!.slot);
    if (line === undefined || !line.isUsable) return;
    send(
      line,
      calls.map((call, i) => [this.#placed(call), at + i]),
    );
    await line.settled();
    if (!line.isUsable) return;
    const { op } = calls.at(-1)!;
    const lastErr = lastReplyErr(line);
    if (op === 'closeSession' && lastErr === 0 && line.session !== undefined) {
      line.session.isOver = true;
    }
    const endsLink = op === 'closeSession' || (lastErr !== 0 && mayEndLink(op));
    if (endsLink) await this.#closes(line, at);
  }

  #placed(call: Call): Call {
    const { op, request } = call;
    if ((op !== 'setWatches' && op !== 'setWatches2') || request === null) return call;
    const { relativeZxid } = request as { relativeZxid: bigint };
    if (relativeZxid <= 0n || relativeZxid > 1_000_000n) return call;
    return { ...call, request: { ...request, relativeZxid: this.#base + relativeZxid } };
  }

  /** What ends a link does so after its answer. */
  async #closes(line: Line, at: number): Promise<void> {
    await line.raw.until(() => false, closesMs);
    line.take();
    if (line.isUsable) line.said.push({ kind: 'open', command: at });
  }

  async #other(command: Exclude<Command, Call>, at: number): Promise<void> {
    const slot = this.#slot(command.slot);
    switch (command.kind) {
      case 'connect': {
        await heardOut(slot.line, at);
        slot.line?.drop();
        const ahead = command.ahead ? 1n << 40n : 0n;
        await this.#open(slot, command, { id: 0n, passwd: Buffer.alloc(16) }, ahead, at);
        return;
      }
      case 'reconnect': {
        const { session, line } = this.#slot(command.of);
        if (session === undefined) return;
        const passwd = passwordFor(command.password, session.passwd);
        const seen = command.ahead ? 1n << 40n : (line?.lastZxid ?? 0n);
        const old = this.lines.filter((other) => other.session === session && other.isUsable);
        for (const other of old) await heardOut(other, at);
        slot.line = undefined;
        await this.#open(slot, command, { id: session.id, passwd }, seen, at);
        for (const other of old) if (other.isUsable) await other.probe(at);
        return;
      }
      case 'greet': {
        await heardOut(slot.line, at);
        slot.line?.drop();
        const line = new Line(await RawLink.open(this.#port));
        this.lines.push(line);
        slot.line = line;
        line.expectWelcome(at);
        line.raw.write(Buffer.from(command.hex, 'hex'));
        await line.settled(closesMs);
        this.#welcomed(slot, line);
        return;
      }
      case 'drop':
        await heardOut(slot.line, at);
        slot.line?.drop();
        return;
      case 'bytes': {
        const { line } = slot;
        await heardOut(line, at);
        if (line === undefined || !line.isUsable) return;
        line.lastCommand = at;
        line.raw.write(Buffer.from(command.hex, 'hex'));
        await this.#closes(line, at);
        line.drop();
      }
    }
  }

  async #open(
    slot: Slot,
    { timeOut, old, eager }: { timeOut: number; old: boolean; eager?: readonly Call[] },
    { id, passwd }: { id: bigint; passwd: Buffer | null },
    lastZxidSeen: bigint,
    at: number,
  ): Promise<void> {
    const line = new Line(await RawLink.open(this.#port));
    this.lines.push(line);
    slot.line = line;
    greet(line, { lastZxidSeen, timeOut, sessionId: id, passwd, old }, at);
    if (eager !== undefined) {
      send(
        line,
        eager.map((call) => [this.#placed(call), at]),
      );
    }
    await line.settled();
    // A refusal is followed by the end of the link.
    if (!this.#welcomed(slot, line) && line.isUsable) await this.#closes(line, at);
  }

  /** Whether the link has a session now. */
  #welcomed(slot: Slot, line: Line): boolean {
    const welcome = line.said.find(({ kind }) => kind === 'welcome');
    if (welcome?.kind !== 'welcome') return false;
    const { sessionId, passwd } = decodeWelcome(welcome.frame);
    if (sessionId === 0n) return false;
    let session = this.sessions.find((known) => known.id === sessionId);
    if (session === undefined) {
      session = { id: sessionId, passwd: passwd!, isOver: false };
      this.sessions.push(session);
    }
    line.session = session;
    slot.session = session;
    return true;
  }

  /** Hears out every link, then ends every session. */
  async end(): Promise<void> {
    for (const line of this.lines) if (line.isUsable && line.session) await line.probe(-1);
    for (const session of this.sessions) {
      if (session.isOver) continue;
      const line = this.lines.find((other) => other.session === session && other.isUsable);
      if (line !== undefined) await this.#end(line);
      else await this.#endOver(session);
    }
    for (const line of this.lines) line.take();
  }

  async #endOver({ id, passwd }: Session): Promise<void> {
    const line = new Line(await RawLink.open(this.#port));
    this.lines.push(line);
    greet(line, { lastZxidSeen: 0n, timeOut: 30_000, sessionId: id, passwd }, -1);
    await line.settled();
    await this.#end(line);
  }

  async #end(line: Line): Promise<void> {
    send(line, [[{ kind: 'call', slot: -1, op: 'closeSession', request: {} }, -1]]);
    await line.settled();
    await line.raw.until(() => false, silenceMs);
    line.take();
  }

  leave(): void {
    for (const line of this.lines) line.raw.destroy();
  }

  #slot(index: number): Slot {
    this.#slots[index] ??= { line: undefined, session: undefined };
    return this.#slots[index];
  }
}

/** When it fails: who can't prove who they are, or asks for what nobody knows, is sent away. */
function mayEndLink(op: Call['op']): boolean {
  return typeof op === 'number' || ['auth', 'sasl', 'check'].includes(op);
}

/** Events that others caused are still on their way, and would be lost with the link. */
async function heardOut(line: Line | undefined, command: number): Promise<void> {
  if (line?.isUsable && line.session !== undefined) await line.probe(command);
}

function passwordFor(kind: string, right: Buffer): Buffer | null {
  switch (kind) {
    case 'right':
      return right;
    case 'wrong':
      return Buffer.from(right.map((byte) => byte ^ 1));
    case 'short':
      return right.subarray(0, 8);
    default:
      return null;
  }
}

function lastReplyErr(line: Line): number | undefined {
  const last = line.said.findLast(({ kind }) => kind === 'reply');
  return last?.kind === 'reply' ? last.frame.readInt32BE(12) : undefined;
}

export function decodeWelcome(frame: Buffer): ConnectResponse {
  return ConnectResponse.read(new Reader(frame));
}
