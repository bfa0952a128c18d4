/**
 * A TCP link that can be cut: a proxy on loopback that stands between a client and a server and does
 * to their bytes what a bad network does.
 *
 *   client  <->  Link (its own port, which stays)  <->  target
 *
 * Each direction of each connection is a queue of chunks that is emptied from the front, as far as
 * the faults set at that moment let it. Nothing is lost or reordered unless a fault says so. A peer's
 * end or reset stands in the same queue, so that a black hole swallows these as well.
 *
 * After `close` no socket, timer or port is left.
 */

import { createServer, type Server, type Socket, connect as tcpConnect } from 'node:net';
import { FrameSplitter } from '../jute/index.ts';
import { type Clock, systemClock, type Timer } from '../support/index.ts';

export interface Target {
  readonly host: string;
  readonly port: number;
}

const directions = ['toServer', 'toClient'] as const;
export type Direction = (typeof directions)[number];

export interface LinkFrame {
  readonly direction: Direction;
  /** Counts the link's connections, from 1. */
  readonly connection: number;
  /** Counts this connection's frames in this direction, from 0, which is the handshake. */
  readonly index: number;
  /** Without the length prefix, and the receiver's to keep. */
  readonly bytes: Buffer;
}

/**
 * `cut`: the frame is not delivered and the connection goes. `passThenCut`: it is, and then the
 * connection goes. `replace`: this body, under a length of its own, goes instead.
 */
export type Verdict = 'pass' | 'drop' | 'cut' | 'passThenCut' | { readonly replace: Uint8Array };

export type FrameHook = (frame: LinkFrame) => Verdict | undefined;

/** All of it counts from the start of the link, but `open`. */
export interface LinkStats {
  readonly connections: number;
  readonly open: number;
  /** Connections that the link cut, by whatever means. */
  readonly cuts: number;
  /** Bytes that were passed on, not those that came in. */
  readonly bytes: Readonly<Record<Direction, number>>;
  /** Frames whose last byte came in, while the stream was one of frames. */
  readonly frames: Readonly<Record<Direction, number>>;
}

export interface LinkOptions {
  /** What `delay` counts by. */
  readonly clock?: Clock;
}

/** Far above what a peer takes. Longer, and the stream is not one of frames: TLS, a four-letter word. */
const frameBytesMax = 16 * 1024 * 1024;
/** Above this, a flow that may not pass on stops taking in. */
const queueBytesMax = 256 * 1024;

const host = '127.0.0.1';

export class Link {
  /** Loopback's: the same as long as the link lives. */
  readonly host = host;
  readonly port: number;
  readonly clock: Clock;
  /**
   * Asked about each frame, in either direction, once it is whole and before any of it is passed; set
   * in the middle of a frame, from the next one on. A stream that is none of frames is cut.
   */
  onFrame: FrameHook | undefined;

  #target: Target;
  #server: Server | undefined;
  readonly #connections = new Set<Connection>();
  /** Accepted in a black hole: dialled when it heals. */
  readonly #undialled = new Map<Socket, number>();
  readonly #blocked = new Set<Direction>();
  readonly #fuses = new Map<Direction, number>();
  readonly #waiters = new Set<() => void>();
  #blackhole = false;
  #delayMs = 0;
  #chunkBytes = Number.POSITIVE_INFINITY;
  #closed = false;
  readonly #counts = {
    connections: 0,
    cuts: 0,
    bytes: { toServer: 0, toClient: 0 },
    frames: { toServer: 0, toClient: 0 },
  };

  private constructor(target: Target, server: Server, clock: Clock) {
    this.#target = target;
    this.port = portOf(server);
    this.clock = clock;
    this.#adopt(server);
  }

  static async to(target: Target, { clock = systemClock }: LinkOptions = {}): Promise<Link> {
    return new Link(target, await listen(0), clock);
  }

  /** As it stands in a connection string. */
  get address(): string {
    return `${host}:${this.port}`;
  }

  get stats(): LinkStats {
    const { connections, cuts, bytes, frames } = this.#counts;
    const open = this.#connections.size + this.#undialled.size;
    return { connections, open, cuts, bytes: { ...bytes }, frames: { ...frames } };
  }

  /** Resolves once the counts are as wanted: at once, or after the change that makes them so. */
  until(wanted: (stats: LinkStats) => boolean): Promise<void> {
    return new Promise((resolve) => {
      const look = () => {
        if (!wanted(this.stats)) return;
        this.#waiters.delete(look);
        resolve();
      };
      this.#waiters.add(look);
      look();
    });
  }

  /** Connections from now on go there. Those that are, stay: `cut` moves them. */
  retarget(target: Target): void {
    this.#target = target;
  }

  /** Ends every connection there is, by a FIN or, with `reset`, a RST. New ones are taken as before. */
  cut({ reset = false } = {}): void {
    for (const socket of this.#undialled.keys()) socket.destroy();
    for (const connection of this.#connections) connection.cut({ reset });
  }

  /** New connections are refused, as by a machine on which nothing listens. Those that are, stay. */
  refuse(): void {
    this.#server?.close();
    this.#server = undefined;
  }

  /** Undoes `refuse`, on the same port. */
  async accept(): Promise<void> {
    if (this.#closed) throw new Error('the link is closed');
    if (this.#server !== undefined) return;
    this.#adopt(await listen(this.port));
  }

  /** Nothing passes, ends and resets included; connecting works, and that is all that does. */
  blackhole(): void {
    this.#blackhole = true;
  }

  pause(direction: Direction): void {
    this.#blocked.add(direction);
  }

  resume(direction: Direction): void {
    this.#blocked.delete(direction);
    this.#go();
  }

  /** What comes in is passed on this much later, what is on its way included. 0 is no delay. */
  delay(ms: number): void {
    this.#delayMs = ms;
    this.#go();
  }

  /** Passes at most so many bytes at a time, each time in a turn of the event loop of its own. */
  dribble(chunkBytes = 1): void {
    this.#chunkBytes = chunkBytes;
  }

  /**
   * Cuts once, counted from now: when exactly so many bytes have been passed that way, on whichever
   * connection passed the last of them. Those bytes arrive. With 0, when the next byte wants to pass.
   * Named both ways, the first to be reached cuts and the other is off.
   */
  cutAfter(fuses: { readonly [D in Direction]?: number }): void {
    this.#fuses.clear();
    for (const direction of directions) {
      const bytes = fuses[direction];
      if (bytes !== undefined) this.#fuses.set(direction, bytes);
    }
  }

  /** Takes back every fault but `refuse` and `onFrame`: what was held passes now, in order. */
  heal(): void {
    this.#blackhole = false;
    this.#blocked.clear();
    this.#fuses.clear();
    this.#delayMs = 0;
    this.#chunkBytes = Number.POSITIVE_INFINITY;
    for (const [socket, number] of this.#undialled) this.#dial(socket, number);
    this.#undialled.clear();
    this.#go();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.refuse();
    this.cut();
    await this.until(({ open }) => open === 0);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #adopt(server: Server): void {
    this.#server = server;
    server.on('connection', (socket) => {
      const number = ++this.#counts.connections;
      // A peer's reset is for its flow to tell; without a listener it would end the process.
      socket.on('error', () => {});
      if (this.#blackhole) this.#hold(socket, number);
      else this.#dial(socket, number);
      this.#changed();
    });
  }

  #hold(socket: Socket, number: number): void {
    this.#undialled.set(socket, number);
    socket.on('close', () => {
      this.#undialled.delete(socket);
      this.#changed();
    });
  }

  #dial(client: Socket, number: number): void {
    const server = tcpConnect({ ...this.#target, allowHalfOpen: true, noDelay: true });
    server.on('error', () => {});
    const connection = new Connection(number, client, server, {
      isBlocked: (direction) => this.#blackhole || this.#blocked.has(direction),
      delayMs: () => this.#delayMs,
      chunkBytes: () => this.#chunkBytes,
      hook: () => this.onFrame,
      clock: this.clock,
      allow: (direction, bytes) => this.#allow(direction, bytes),
      framed: (direction) => {
        this.#counts.frames[direction] += 1;
        this.#changed();
      },
      wasCut: () => {
        this.#counts.cuts += 1;
        this.#fuses.clear();
        this.#changed();
      },
      gone: () => {
        this.#connections.delete(connection);
        this.#changed();
      },
    });
    this.#connections.add(connection);
  }

  /** How many of `bytes` may pass before the fuse blows, and whether it then does. */
  #allow(direction: Direction, bytes: number): { bytes: number; cut: boolean } {
    const fuse = this.#fuses.get(direction);
    const cut = fuse !== undefined && bytes >= fuse;
    const allowed = cut ? fuse : bytes;
    if (fuse !== undefined) this.#fuses.set(direction, fuse - allowed);
    this.#counts.bytes[direction] += allowed;
    this.#changed();
    return { bytes: allowed, cut };
  }

  #go(): void {
    for (const connection of this.#connections) connection.go();
  }

  #changed(): void {
    for (const look of this.#waiters) look();
  }
}

/** What a connection has to know of its link. */
interface Rules {
  readonly clock: Clock;
  isBlocked(direction: Direction): boolean;
  delayMs(): number;
  chunkBytes(): number;
  hook(): FrameHook | undefined;
  allow(direction: Direction, bytes: number): { bytes: number; cut: boolean };
  framed(direction: Direction): void;
  wasCut(): void;
  gone(): void;
}

class Connection {
  readonly number: number;
  readonly rules: Rules;
  readonly #sockets: Readonly<Record<Direction, Socket>>;
  readonly #flows: readonly Flow[];
  #isCut = false;

  constructor(number: number, client: Socket, server: Socket, rules: Rules) {
    this.number = number;
    this.rules = rules;
    this.#sockets = { toServer: server, toClient: client };
    this.#flows = [
      new Flow(this, 'toServer', client, server),
      new Flow(this, 'toClient', server, client),
    ];
    let open = 2;
    for (const socket of [client, server]) {
      socket.on('close', () => {
        open -= 1;
        if (open === 0) rules.gone();
      });
    }
  }

  get isCut(): boolean {
    return this.#isCut;
  }

  go(): void {
    for (const flow of this.#flows) flow.go();
  }

  /** `after`: the way in which what has been passed already must still arrive. */
  cut({ reset = false, after }: { reset?: boolean; after?: Direction } = {}): void {
    if (this.#isCut) return;
    this.#isCut = true;
    for (const flow of this.#flows) flow.stop();
    for (const direction of directions) {
      const socket = this.#sockets[direction];
      if (direction === after) socket.write('', () => socket.destroy());
      else if (reset) socket.resetAndDestroy();
      else socket.destroy();
    }
    this.rules.wasCut();
  }
}

interface Item {
  readonly what: Buffer | 'end' | 'gone';
  readonly cameMs: number;
}

/** One direction of one connection. */
class Flow {
  readonly #connection: Connection;
  readonly #direction: Direction;
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #queue: Item[] = [];
  #queuedBytes = 0;
  #timer: Timer | undefined;
  #immediate: NodeJS.Immediate | undefined;
  /** Undefined when the stream has turned out to be none of frames. */
  #splitter: FrameSplitter | undefined;
  /** Whole frames of the chunk at hand, prefix included. */
  #frames: Buffer[] = [];
  #frameIndex = 0;
  /** How much of the frame begun has been passed. What has not waits in the splitter for the rest. */
  #passedOfFrame = 0;

  constructor(connection: Connection, direction: Direction, from: Socket, to: Socket) {
    this.#connection = connection;
    this.#direction = direction;
    this.#from = from;
    this.#to = to;
    this.#splitter = new FrameSplitter(frameBytesMax, (bytes, start, end) => {
      this.#frames.push(framed(bytes.subarray(start, end)));
    });
    from.on('data', (bytes: Buffer) => this.#enqueue(bytes));
    from.on('end', () => this.#enqueue('end'));
    from.on('close', () => this.#enqueue('gone'));
    to.on('drain', () => this.go());
  }

  stop(): void {
    this.#queue.length = 0;
    this.#timer?.cancel();
    if (this.#immediate !== undefined) clearImmediate(this.#immediate);
  }

  /** Passes what may pass now, and sees to it that it is called again when more may. */
  go(): void {
    const { rules } = this.#connection;
    this.#timer?.cancel();
    while (this.#queue.length > 0 && this.#immediate === undefined) {
      const head = this.#queue[0]!;
      if (rules.isBlocked(this.#direction) || this.#to.writableNeedDrain) return;
      const waitMs = head.cameMs + rules.delayMs() - rules.clock.nowMs();
      if (waitMs > 0) {
        this.#timer = rules.clock.after(waitMs, () => this.go());
        return;
      }
      this.#queue.shift();
      this.#take(head);
    }
  }

  #enqueue(what: Item['what']): void {
    if (this.#connection.isCut) return;
    this.#queue.push({ what, cameMs: this.#connection.rules.clock.nowMs() });
    if (typeof what === 'object') this.#queuedBytes += what.length;
    if (this.#queuedBytes > queueBytesMax) this.#from.pause();
    this.go();
  }

  #take({ what, cameMs }: Item): void {
    if (what === 'end') this.#to.end();
    else if (what === 'gone') this.#to.destroySoon();
    else {
      const chunkBytes = this.#connection.rules.chunkBytes();
      if (what.length > chunkBytes) {
        this.#queue.unshift({ what: what.subarray(chunkBytes), cameMs });
      }
      if (Number.isFinite(chunkBytes)) this.#goNextTurn();
      const chunk = what.subarray(0, chunkBytes);
      this.#queuedBytes -= chunk.length;
      if (this.#queuedBytes <= queueBytesMax) this.#from.resume();
      this.#feed(chunk);
    }
  }

  /**
   * Once the kernel has had the last chunk and a reader in this process could have had it: sockets are
   * read between two turns of immediates, and the first of them is that of the turn we are in.
   */
  #goNextTurn(turns = 2): void {
    this.#immediate = setImmediate(() => {
      const isOnItsWay = this.#to.writableLength > 0 && !this.#to.destroyed;
      if (turns > 1 || isOnItsWay) return this.#goNextTurn(turns - 1);
      this.#immediate = undefined;
      this.go();
    });
  }

  #feed(chunk: Buffer): void {
    const { rules } = this.#connection;
    if (this.#splitter === undefined) {
      this.#pass(chunk);
      return;
    }
    const splitter = this.#splitter;
    const hook = rules.hook();
    const isHeld = this.#passedOfFrame < splitter.pendingBytes;
    this.#frames = [];
    try {
      splitter.push(chunk);
    } catch {
      this.#splitter = undefined;
      if (hook !== undefined || isHeld) this.#connection.cut();
      else this.#pass(chunk);
      return;
    }
    for (let i = 0; i < this.#frames.length; i++) rules.framed(this.#direction);
    if (hook === undefined && !isHeld) {
      this.#frameIndex += this.#frames.length;
      this.#passedOfFrame = splitter.pendingBytes;
      this.#pass(chunk);
      return;
    }
    for (const frame of this.#frames) {
      const begun = this.#passedOfFrame;
      this.#passedOfFrame = 0;
      this.#judge(frame, begun, hook);
    }
  }

  /** A frame of which a part has gone already can only be completed. */
  #judge(frame: Buffer, passed: number, hook: FrameHook | undefined): void {
    const index = this.#frameIndex++;
    if (this.#connection.isCut) return;
    if (hook === undefined || passed > 0) {
      this.#pass(frame.subarray(passed));
      return;
    }
    const verdict = hook({
      direction: this.#direction,
      connection: this.#connection.number,
      index,
      bytes: frame.subarray(4),
    });
    if (verdict === 'drop') return;
    if (verdict === 'cut') this.#connection.cut();
    else if (typeof verdict === 'object') this.#pass(framed(verdict.replace));
    else {
      this.#pass(frame);
      if (verdict === 'passThenCut') this.#connection.cut({ after: this.#direction });
    }
  }

  #pass(bytes: Buffer): void {
    if (this.#to.destroyed || this.#to.writableEnded) return;
    const allowed = this.#connection.rules.allow(this.#direction, bytes.length);
    if (allowed.bytes > 0) this.#to.write(bytes.subarray(0, allowed.bytes));
    if (allowed.cut) this.#connection.cut({ after: this.#direction });
  }
}

function framed(body: Uint8Array): Buffer {
  const frame = Buffer.alloc(4 + body.length);
  frame.writeInt32BE(body.length);
  frame.set(body, 4);
  return frame;
}

/** Peers may end one side and go on with the other: the link must not end it for them. */
function listen(port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer({ allowHalfOpen: true, noDelay: true });
    server.once('error', reject);
    server.listen(port, host, () => resolve(server));
  });
}

function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the link has no port');
  return address.port;
}
