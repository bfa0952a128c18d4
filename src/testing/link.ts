/**
 * A TCP link that can be cut: a proxy on loopback that stands between a client and a server and does
 * to their bytes what a bad network does.
 *
 *   client  <->  Link (its own port, which stays)  <->  target
 *
 * In: faults, set and taken back at any moment. Out: bytes, each way, as far as these let them (see
 * link-connection.ts). Nothing is lost or reordered unless a fault says so. A peer's end or reset waits
 * behind its bytes, so that a black hole swallows these as well.
 *
 * After `close` no socket, timer or port is left.
 */

import { createServer, type Server, type Socket, connect as tcpConnect } from 'node:net';
import { type Clock, systemClock } from '../support/index.ts';
import { Connection } from './link-connection.ts';
import { type Direction, directions, type FrameHook } from './link-rules.ts';

export interface Target {
  readonly host: string;
  readonly port: number;
}

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
  /** Accepted in a black hole, or while new ones are held: dialled when that is over. */
  readonly #undialled = new Map<Socket, number>();
  readonly #blocked = new Set<Direction>();
  readonly #fuses = new Map<Direction, number>();
  readonly #waiters = new Set<() => void>();
  #blackhole = false;
  #holdsNew = false;
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
    const server = await listen(this.port);
    if (this.#closed) {
      server.close();
      throw new Error('the link is closed');
    }
    this.#adopt(server);
  }

  /** New connections are taken and go no further, until `admit`. Those that are, go on. */
  hold(): void {
    this.#holdsNew = true;
  }

  /** Undoes `hold`: who was held goes on now. */
  admit(): void {
    this.#holdsNew = false;
    if (!this.#blackhole) this.#dialHeld();
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
    this.#holdsNew = false;
    this.#blocked.clear();
    this.#fuses.clear();
    this.#delayMs = 0;
    this.#chunkBytes = Number.POSITIVE_INFINITY;
    this.#dialHeld();
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
      if (this.#blackhole || this.#holdsNew) this.#holdBack(socket, number);
      else this.#dial(socket, number);
      this.#changed();
    });
  }

  #holdBack(socket: Socket, number: number): void {
    this.#undialled.set(socket, number);
    socket.on('close', () => {
      this.#undialled.delete(socket);
      this.#changed();
    });
  }

  #dialHeld(): void {
    for (const [socket, number] of this.#undialled) this.#dial(socket, number);
    this.#undialled.clear();
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
