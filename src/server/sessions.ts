/**
 * The sessions, and when each of them is over.
 *
 * A session lives as long as something is heard of it. Deadlines are rounded up to a tick, so that
 * sessions expire in buckets and hearing of one mostly changes nothing (ExpiryQueue): a session ends
 * between its timeout and one tick more after it was last heard of.
 */

import { SessionPasswords } from './passwords.ts';

/** What a session knows of the link that it lives on. */
export interface SessionLink {
  close(): void;
}

export class ServerSession<L extends SessionLink = SessionLink> {
  readonly id: bigint;
  /** As negotiated last. What a restart begins with is the first, which the tree keeps. */
  timeoutMs: number;
  connection: L | undefined = undefined;
  /** Its last txn is under way: whatever else it asks comes too late. */
  closing = false;
  /** Of its last write, applied or not. */
  lastZxid = 0;
  bucketMs = 0;

  constructor(id: bigint, timeoutMs: number) {
    this.id = id;
    this.timeoutMs = timeoutMs;
  }
}

const longMin = -(1n << 63n);

/** Server id in the top byte, five bytes of time, two zero bytes to count up in. */
export function firstSessionId(serverId: number, wallMs: number): bigint {
  const time = (BigInt(Math.floor(wallMs)) & 0xff_ffff_ffffn) << 16n;
  const id = BigInt.asIntN(64, (BigInt(serverId) << 56n) | time);
  return id === longMin ? id + 1n : id; // Long.MIN_VALUE marks containers
}

export class Sessions<L extends SessionLink> {
  readonly passwords: SessionPasswords;
  readonly #tickMs: number;
  readonly #byId = new Map<bigint, ServerSession<L>>();
  readonly #buckets = new Map<number, Set<ServerSession<L>>>();
  #nextId: bigint;

  constructor(tickMs: number, firstId: bigint, passwords = new SessionPasswords('secret')) {
    this.passwords = passwords;
    this.#tickMs = tickMs;
    this.#nextId = firstId;
  }

  get size(): number {
    return this.#byId.size;
  }

  get(id: bigint): ServerSession<L> | undefined {
    return this.#byId.get(id);
  }

  values(): IterableIterator<ServerSession<L>> {
    return this.#byId.values();
  }

  /** By the moment at which they end if nothing is heard of them. */
  get buckets(): ReadonlyMap<number, ReadonlySet<ServerSession<L>>> {
    return this.#buckets;
  }

  create(timeoutMs: number, nowMs: number): ServerSession<L> {
    while (this.#byId.has(this.#nextId)) this.#nextId += 1n;
    const id = this.#nextId;
    this.#nextId = BigInt.asIntN(64, id + 1n);
    return this.add(id, timeoutMs, nowMs);
  }

  add(id: bigint, timeoutMs: number, nowMs: number): ServerSession<L> {
    const session = new ServerSession<L>(id, timeoutMs);
    this.#byId.set(id, session);
    this.touch(session, nowMs);
    return session;
  }

  touch(session: ServerSession<L>, nowMs: number): void {
    const bucketMs = this.roundUp(nowMs + session.timeoutMs);
    if (bucketMs === session.bucketMs) return;
    this.#leaveBucket(session);
    session.bucketMs = bucketMs;
    const bucket = this.#buckets.get(bucketMs);
    if (bucket === undefined) this.#buckets.set(bucketMs, new Set([session]));
    else bucket.add(session);
  }

  remove(session: ServerSession<L>): void {
    this.#leaveBucket(session);
    this.#byId.delete(session.id);
  }

  /** The next moment at which a bucket can be due. */
  roundUp(ms: number): number {
    return (Math.floor(ms / this.#tickMs) + 1) * this.#tickMs;
  }

  due(nowMs: number): ServerSession<L>[] {
    const due: ServerSession<L>[] = [];
    for (const [bucketMs, sessions] of this.#buckets) {
      if (bucketMs <= nowMs) for (const session of sessions) due.push(session);
    }
    return due;
  }

  #leaveBucket(session: ServerSession<L>): void {
    const bucket = this.#buckets.get(session.bucketMs);
    bucket?.delete(session);
    if (bucket?.size === 0) this.#buckets.delete(session.bucketMs);
  }
}
