/**
 * The server without its sockets: requests in, replies and events out, over connections that somebody
 * else reads and writes.
 *
 * A read is answered at once from the tree, unless writes of the same session are under way. A write
 * is checked against the tree as it will be, takes the next zxid whether it succeeds or not, and goes
 * through the pipeline. Sessions are made, closed and expired by txns like any other change.
 */

import { ProtocolError, Reader, readInt } from '../jute/index.ts';
import {
  anyVersion,
  type DigestHalves,
  digestText,
  errorCodeOf,
  type Id,
  type MultiPart,
  type OpName,
  openAcl,
  ops,
  printable,
  type TxnBody,
  wireOf,
  ZkError,
} from '../protocol/index.ts';
import { type Clock, type Logger, silentLogger, type Timer } from '../support/index.ts';
import { type Applied, ownerKind, Tree } from '../tree/index.ts';
import { isLoopback } from './addresses.ts';
import { Auth, superId } from './auth.ts';
import { AuthAttempts } from './auth-attempts.ts';
import { type Asked, Call } from './call.ts';
import { Connection, type Service, type Wire } from './connection.ts';
import { Expiry } from './expiry.ts';
import { Gathering } from './gathering.ts';
import { Handshake } from './handshake.ts';
import { type Limits, limitsOf } from './limits.ts';
import { hexId, rateLimited } from './log-lines.ts';
import { prepareMulti } from './multi.ts';
import type { EngineOptions } from './options.ts';
import { Outbox } from './outbox.ts';
import { Outlook } from './outlook.ts';
import { Pipeline } from './pipeline.ts';
import { type OverQuota, Prepare } from './prepare.ts';
import { Proofs } from './proofs.ts';
import { namespaceOf } from './quota-sums.ts';
import { ReadCall } from './read-call.ts';
import { Reads } from './reads.ts';
import { headerReply, headerReplyBytes, lengthBytes, writeReply } from './replies.ts';
import { firstSessionId, type ServerSession, Sessions } from './sessions.ts';
import { ServerStats } from './stats.ts';
import type { Frame } from './turns.ts';
import { memoryLog } from './txn-log.ts';
import { Watches } from './watches.ts';
import { decodeAndPrepare } from './writes.ts';

type Session = ServerSession<Connection>;

const marshallingErr = wireOf('MARSHALLING_ERROR');
const quotaErr = wireOf('QUOTA_EXCEEDED');

const unknownMs = -1;

/** In one multi, when a session's nodes are more than its end can name. */
const deletedAheadMax = 1_000;
/** What stands around a path in a txn, at most: its length, and as part of a multi type and length. */
const pathHeadBytes = 12;
const pathBytes = (path: string) => Buffer.byteLength(path) + pathHeadBytes;

/** How often a slow disk is told of, and a quota that is exceeded. */
const saidEveryMs = 10_000;

/** An op that a link may ask for, found by its number. */
interface Askable {
  readonly name: OpName;
  readonly writes: boolean;
}

/** The numbers of ops, from closeSession's -11 on, are places in a list from here. */
const firstCode = -16;

/** Ops that a link may ask for. `check` alone is none: it lives in a multi (Request.isValid). */
const askable: (Askable | undefined)[] = [];
for (const name of Object.keys(ops) as OpName[]) {
  if (['check', 'createSession', 'auth', 'sasl'].includes(name)) continue;
  const { code, writes } = ops[name];
  while (askable.length <= code - firstCode) askable.push(undefined);
  askable[code - firstCode] = { name, writes };
}

/** The same, by their names. */
export const requestOps: readonly OpName[] = askable.flatMap((op) => op?.name ?? []);

export class Engine implements Service {
  readonly tree: Tree;
  readonly watches = new Watches();
  readonly auth: Auth;
  readonly authAttempts: AuthAttempts;
  readonly limits: Limits;
  readonly sessions: Sessions<Connection>;
  readonly stats: ServerStats;
  readonly connections = new Set<Connection>();
  readonly #options: EngineOptions;
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #outlook: Outlook;
  readonly #prepare: Prepare;
  readonly #reads: Reads;
  readonly #handshake: Handshake;
  readonly #proofs: Proofs;
  readonly #pipeline: Pipeline;
  readonly #expiry: Expiry<Connection>;
  readonly #reader = new Reader();
  readonly #readCall = new ReadCall();
  readonly #outbox: Outbox;
  readonly #gathering = new Gathering();
  readonly #barriers = new Set<Connection>();
  /** Whoever waits for a fixture. */
  readonly #seeding = new Set<(error: Error) => void>();
  #zxid: number;
  /** When the chunk at hand came in, or the batch at hand was durable. */
  #nowMs: number;
  /** The same moment by the calendar: what a txn says of when it was. Below 0 until the first one asks. */
  #wallMs = unknownMs;
  /** Of events so far, with their lengths. */
  #toldBytes = 0;
  /** Reads of the chunk at hand that were answered at once. */
  #answered = 0;
  #stopped = false;
  #slowSaidMs = -Infinity;
  #quotaSaidMs = -Infinity;
  /** The disk is nearly full. Sessions come and go all the same: whoever reads needs one. */
  refusesWrites = false;
  #onFailed: (error: Error) => void = () => {};

  constructor(options: EngineOptions) {
    const { clock, tickTimeMs } = options;
    this.#options = options;
    this.#clock = clock;
    this.#logger = rateLimited(options.logger ?? silentLogger, clock);
    this.#nowMs = clock.nowMs();
    this.#outbox = new Outbox({
      flushed: (connection) => this.#drain(connection),
      failed: (error) => this.fail(error),
    });
    this.limits = limitsOf(options.limits);
    this.tree =
      options.tree ??
      new Tree({
        extendedTypes: options.extendedTypesEnabled ?? false,
        digest: options.digestEnabled ?? false,
      });
    this.#zxid = this.tree.lastZxid;
    this.auth = new Auth(options);
    this.authAttempts = new AuthAttempts(this.limits);
    this.stats = new ServerStats(clock.wallMs(), options.slowAppendMs);
    this.#outlook = new Outlook(this.tree);
    this.#prepare = new Prepare(this.tree, this.#outlook, this.auth, {
      enforceQuota: options.enforceQuota ?? false,
      overQuota: (over) => this.#overQuota(over),
      reconfigEnabled: options.reconfigEnabled ?? false,
      limits: this.limits,
    });
    this.#reads = new Reads(this.tree, this.watches, this.auth, this.limits);
    this.sessions = new Sessions(tickTimeMs, firstSessionId(options.serverId ?? 1, clock.wallMs()));
    // A restart gives every session a full timeout again: its client may have been waiting for us.
    for (const [id, timeoutMs] of this.tree.sessions) this.sessions.add(id, timeoutMs, this.#nowMs);
    this.#adoptOwners(options.maxSessionTimeoutMs);
    this.#handshake = new Handshake(
      this.tree,
      this.sessions,
      this.stats,
      { ...options, limits: this.limits },
      {
        create: (connection, session) => this.#createSession(connection, session),
        waitFor: (connection, zxid) => this.#waitFor(connection, zxid),
      },
    );
    this.#proofs = new Proofs(this.auth, this.authAttempts, this.stats, this.#logger, {
      sasl: options.sasl,
      requiredSchemes: options.requiredSchemes,
      authIdsMax: this.limits.authIdsMax,
      idCharsMax: this.limits.frameBytesMax,
    });
    this.#pipeline = new Pipeline(options.log ?? memoryLog, clock, this.stats, {
      batchBegun: (nowMs) => {
        this.#nowMs = nowMs;
        this.#wallMs = unknownMs;
        this.tree.batchBegun();
      },
      committed: (call) => this.#committed(call),
      batchDone: () => this.#batchDone(),
      isGathering: (nowMs) => this.#gathering.isOn(nowMs),
      slow: (tookMs, txns) => this.#slowLog(tookMs, txns),
      failed: (error) => this.fail(error),
    });
    this.#expiry = new Expiry(
      this.sessions,
      clock,
      tickTimeMs,
      (session) => this.#timedOut(session),
      () => this.stats.connectionsAccepted + this.stats.connectRequests,
    );
    this.#expiry.start();
  }

  /**
   * Owners of ephemeral nodes of whom no file tells a session: they end as any other, or their nodes would
   * stay for ever. Apache ends them at its start. Not nodes with a time to live, where that is switched off.
   */
  #adoptOwners(timeoutMs: number): void {
    for (const id of this.tree.owners.keys()) {
      if (this.tree.sessions.has(id) || ownerKind(id, true) === 'ttl') continue;
      this.sessions.add(id, timeoutMs, this.#nowMs);
    }
  }

  get lastZxid(): number {
    return this.tree.lastZxid;
  }

  /** False once it was told to stop, or had to. */
  get isServing(): boolean {
    return !this.#stopped;
  }

  /** Requests that have no reply yet. */
  get outstanding(): number {
    let sum = 0;
    for (const connection of this.connections) sum += connection.inFlight;
    return sum;
  }

  // ── links ─────────────────────────────────────────────────────────────────────────────────────

  /** A new link. It is closed if it does not ask for a session soon. */
  accept(wire: Wire, extraIds: readonly Id[] = []): Connection {
    const connection = new Connection(wire, this, [
      { scheme: 'ip', id: wire.address },
      ...this.auth.withSuper(extraIds),
    ]);
    this.connections.add(connection);
    this.stats.connectionsAccepted += 1;
    this.#gathering.came();
    if (this.limits.handshakeTimeoutMs !== Infinity) {
      const deadline = this.#clock.after(
        this.limits.handshakeTimeoutMs,
        () => {
          if (connection.state !== 'greeting') return;
          this.stats.greetingsTimedOut += 1;
          this.#logger.info({ address: wire.address }, 'a link asked for nothing in time');
          connection.close();
        },
        true,
      );
      connection.onGreeted = () => deadline.cancel();
    }
    return connection;
  }

  /** A link that speaks without TLS. */
  acceptedPlain(address: string): void {
    if (isLoopback(address)) this.stats.plainLocal += 1;
    else this.stats.plainRemote += 1;
  }

  /** A link that was one too many. */
  turnedAway(address: string): void {
    this.stats.connectionsRefused += 1;
    this.#logger.warn({ address }, 'a link too many');
  }

  closed(connection: Connection): void {
    connection.onGreeted(); // a flood of links must not be remembered until they would have been too late
    this.connections.delete(connection);
    this.#barriers.delete(connection);
    this.watches.removeAll(connection);
    const { session } = connection;
    if (session?.connection === connection) session.connection = undefined;
  }

  dirty(connection: Connection): void {
    this.#outbox.add(connection);
  }

  unclogged(connection: Connection): void {
    this.#drain(connection);
    this.#outbox.flush();
  }

  chunkBegun(bytes: number): void {
    this.#nowMs = this.#clock.nowMs();
    this.#wallMs = unknownMs;
    this.#answered = 0;
    this.stats.bytesReceived += bytes;
    this.#outbox.chunkBegun(this.#nowMs);
  }

  told(bytes: number): void {
    this.stats.said(bytes);
    this.stats.eventBytes += bytes;
    this.#toldBytes += bytes + lengthBytes;
  }

  dropped(): void {
    this.stats.connectionsDropped += 1;
  }

  chunkDone(connection: Connection, requests: number): void {
    if (requests > 0) {
      const { session } = connection;
      if (session !== undefined && !session.closing) this.sessions.touch(session, this.#nowMs);
      this.stats.packetsReceived += requests;
      this.#gathering.heard(connection);
    }
    this.#outbox.chunkDone(this.#nowMs);
    if (this.#answered > 0) {
      const tookMs = this.#clock.nowMs() - this.#nowMs;
      connection.latency.record(tookMs, this.#answered);
      this.stats.reads.record(tookMs, this.#answered);
      this.stats.byOp.took(tookMs);
    }
  }

  later(delayMs: number, run: () => void): Timer {
    return this.#clock.after(delayMs, run, true);
  }

  wallMs(): number {
    return this.#clock.wallMs();
  }

  fourLetterWord(word: string, rest: Buffer): string | undefined {
    const { stats } = this;
    stats.packetsReceived += 1; // it counts itself in what it tells, and again with its chunk
    const answer =
      this.#options.fourLetterWord?.(word, rest) ?? (word === 'ruok' ? 'imok' : undefined);
    stats.packetsReceived -= 1;
    if (answer !== undefined && answer !== '') stats.packetsSent += 1;
    return answer;
  }

  // ── requests ──────────────────────────────────────────────────────────────────────────────────

  connect(connection: Connection, frame: Buffer): void {
    if (!this.#stopped) this.#handshake.connect(connection, frame, this.#nowMs);
  }

  request(
    connection: Connection,
    bytes: Buffer,
    start: number,
    end: number,
    borrowed: boolean,
    ids: readonly Id[],
  ): void {
    const session = connection.session!;
    // Apache drops what comes after a session's end without a word; the link is about to close.
    if (this.#stopped || session.closing) return;
    if (end - start < 8) {
      connection.close();
      return;
    }
    const xid = readInt(bytes, start);
    const code = readInt(bytes, start + 4);
    const asks = askable[code - firstCode];
    if (this.#proofs.isUnproven(code, ids)) {
      this.#proofs.refuse(connection, xid);
      return;
    }
    if (asks === undefined) {
      this.#reader.reset(bytes, start + 8, end, true);
      this.#proofs.take(connection, code, xid, this.#reader, this.#nowMs);
      return;
    }
    if (asks.writes && connection.holdsWrites) {
      this.#waitWith(connection, bytes, start, end, borrowed, ids, true);
      return;
    }
    const op = asks.name;
    const forced = this.#options.onRequest?.({ sessionId: session.id, op, xid });
    if (asks.writes) {
      this.#reader.reset(bytes, start + 8, end, borrowed);
      const asked =
        this.#options.onCommitted === undefined
          ? undefined
          : { ids, request: Buffer.from(bytes.subarray(start + 8, end)) };
      this.#write(connection, session, op, xid, ids, end - start, forced, asked);
      return;
    }
    if (op === 'sync' && this.#zxid > this.tree.lastZxid) this.#waitFor(connection, this.#zxid);
    if (forced !== undefined) {
      this.#inTurn(connection, code, xid, forced);
    } else if (connection.inFlight > 0 || connection.isClogged) {
      this.#waitWith(connection, bytes, start, end, borrowed, ids, false);
    } else {
      this.#read(connection, bytes, start, end, borrowed, ids);
      this.#answered += 1;
      this.stats.byOp.answered(code);
    }
  }

  #waitWith(
    connection: Connection,
    bytes: Buffer,
    start: number,
    end: number,
    borrowed: boolean,
    ids: readonly Id[],
    writes: boolean,
  ): void {
    const own = borrowed ? Buffer.from(bytes.subarray(start, end)) : bytes.subarray(start, end);
    const replyBytes = writes ? 0 : this.#reads.replyBytes(own, connection.session!.id);
    connection.wait({ kind: 'frame', bytes: own, ids, startMs: this.#nowMs, replyBytes, writes });
  }

  #waitFor(connection: Connection, zxid: number): void {
    connection.wait({ kind: 'barrier', zxid });
    this.#barriers.add(connection);
  }

  #read(
    connection: Connection,
    bytes: Buffer,
    start: number,
    end: number,
    borrowed: boolean,
    ids: readonly Id[],
  ): void {
    const call = this.#readCall;
    const code = readInt(bytes, start + 4);
    call.connection = connection;
    call.bytes = bytes;
    call.at = start + 8;
    call.end = end;
    call.borrowed = borrowed;
    call.xid = readInt(bytes, start);
    call.ids = ids;
    const before = connection.out.length - this.#toldBytes;
    try {
      this.#reads.run(code, call);
      // What a setWatches brought to light stands before the reply.
      const bytes = connection.out.length - this.#toldBytes - before;
      this.#replied(connection, code, call.xid, bytes);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#answer(connection, code, call.xid, marshallingErr);
    }
  }

  /** An error that needs no txn, when those before it on the link have their replies. */
  #inTurn(connection: Connection, code: number, xid: number, err: number): void {
    if (connection.inFlight === 0) this.#answer(connection, code, xid, err);
    else connection.wait({ kind: 'answer', run: () => this.#answer(connection, code, xid, err) });
  }

  #answer(connection: Connection, code: number, xid: number, err: number): void {
    headerReply(connection.out, xid, this.tree.lastZxid, err);
    this.#replied(connection, code, xid, headerReplyBytes);
  }

  /** `bytes` long is the frame. */
  #replied(connection: Connection, code: number, xid: number, bytes: number): void {
    connection.packetsSent += 1;
    this.#noteOp(connection, code, xid);
    this.stats.said(bytes - lengthBytes);
    if (code !== ops.ping.code) this.stats.responseBytes += bytes - lengthBytes;
  }

  #noteOp(connection: Connection, code: number, xid: number): void {
    connection.lastCode = code;
    if (xid >= 0) connection.lastXid = xid;
    connection.lastZxid = this.tree.lastZxid;
    connection.lastReplyMs = this.#nowMs;
  }

  // ── writes ────────────────────────────────────────────────────────────────────────────────────

  #write(
    connection: Connection,
    session: Session,
    op: OpName,
    xid: number,
    ids: readonly Id[],
    bytes: number,
    forced: number | undefined,
    asked: Asked | undefined,
  ): void {
    if (this.refusesWrites && op !== 'closeSession') {
      this.stats.writesRefused += 1;
      if (asked !== undefined) this.#options.onRefused?.({ op, session, connection, asked });
      this.#inTurn(connection, 0, xid, quotaErr); // not even the refusal is logged
      return;
    }
    if (op === 'closeSession' && forced === undefined) this.#deleteAhead(session);
    const call = this.#newCall(op, xid, session, connection, ids, bytes);
    call.asked = asked;
    let prepared: TxnBody | number;
    try {
      prepared =
        forced ?? decodeAndPrepare(op, this.#reader, this.#prepare, this.#outlook, call, call);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      // Apache logs these under the last zxid once more. Nobody can tell, and our log only rises.
      if (op !== 'multi') {
        if (asked !== undefined) this.#options.onRefused?.({ op, session, connection, asked });
        this.#inTurn(connection, 0, xid, marshallingErr);
        return;
      }
      prepared = marshallingErr;
    }
    if (op === 'closeSession' && forced === undefined) session.closing = true;
    this.#submit(call, prepared);
  }

  #createSession(connection: Connection, session: Session): void {
    const call = this.#newCall('createSession', 0, session, connection, connection.ids, 0);
    this.#submit(call, { type: 'createSession', txn: { timeOut: session.timeoutMs } });
  }

  /** Before anything is prepared for it. It counts once it is submitted. */
  #newCall(
    op: OpName,
    xid: number,
    session: Session | undefined,
    connection: Connection | undefined,
    ids: readonly Id[],
    bytes: number,
  ): Call {
    if (this.#wallMs < 0) this.#wallMs = this.#clock.wallMs();
    const call = new Call({
      op,
      xid,
      session,
      connection,
      ids,
      zxid: this.#zxid + 1,
      timeMs: this.#wallMs,
      bytes,
      startMs: this.#nowMs,
    });
    this.#outlook.begin(call);
    return call;
  }

  /** One that no link asked for, and so no chunk began with. */
  #ownCall(op: OpName, session: Session | undefined): Call {
    this.#wallMs = unknownMs;
    return this.#newCall(op, 0, session, undefined, [superId], 0);
  }

  #submit(call: Call, prepared: TxnBody | number): void {
    const { session, connection, zxid } = call;
    this.#zxid = zxid;
    if (session !== undefined) session.lastZxid = zxid;
    if (typeof prepared === 'number') {
      call.body = { type: 'error', txn: { err: prepared } }; // Apache's errors carry no digest either
    } else {
      call.body = prepared;
      call.digest = this.#outlook.digest;
    }
    if (connection !== undefined) connection.wait(call);
    this.#pipeline.submit(call);
  }

  #committed(call: Call): void {
    const { connection, session, op } = call;
    // What was asked before it on the link, and waits for others' writes or for the peer to listen.
    if (connection?.isLive && !connection.isNext(call)) {
      connection.drain(this.tree.lastZxid, this.#runWaiting, true);
    }
    const { zxid } = call;
    const { tree, watches } = this;
    tree.tellsEvents = !watches.isEmpty;
    const applied = tree.apply(call, call.body, call.first);
    if (call.digest !== undefined) this.#checkDigest(zxid, call.digest);
    this.#outlook.settle(call);
    if (tree.tellsEvents) watches.notify(tree.events, zxid);
    if (call.body.type === 'closeSession' && session !== undefined) this.sessions.remove(session);
    if (call.done !== undefined) call.done(applied);
    this.#options.onCommitted?.(call, applied);
    if (connection?.isLive) this.#reply(call, connection, applied);
    else if (op === 'closeSession') session?.connection?.close();
  }

  /**
   * The tree must have become what was foretold when the txn was prepared. Apache counts a mismatch,
   * says so in its log and goes on: one server of several, it may. Here nobody else has the data, and
   * which of the two is wrong can't be told: the tree, its memory, or what the log now holds. So it
   * stops before anybody hears of the txn. Memory that went bad is made anew from disk by a restart;
   * a txn that does not do what its digest says is named by it.
   */
  #checkDigest(zxid: number, expected: DigestHalves): void {
    const digest = this.tree.digest!;
    if (digest.equals(expected)) return;
    this.stats.digestMismatches += 1;
    throw new Error(
      `txn 0x${zxid.toString(16)} made another tree than was foretold: its digest is ${digestText(digest)}, not ${digestText(expected)}`,
    );
  }

  #reply(call: Call, connection: Connection, applied: Applied): void {
    const { op, xid } = call;
    connection.shift();
    const { code } = ops[op];
    const tookMs = this.#nowMs - call.startMs;
    connection.latency.record(tookMs);
    this.stats.wrote(code, tookMs);
    if (op === 'createSession') {
      this.#noteOp(connection, code, xid);
      this.sessions.touch(call.session!, this.#nowMs); // it could not speak before it was welcome
      this.#handshake.welcome(connection);
    } else {
      const { out } = connection;
      const before = out.length;
      writeReply(out, this.tree, op, xid, applied);
      const hasFailed = applied.err !== 0 && applied.type !== 'multi'; // Apache has no name for it then
      this.#replied(connection, hasFailed ? 0 : code, xid, out.length - before);
    }
    if (call.body.type === 'closeSession') connection.finish();
    else this.#drain(connection);
  }

  #drain(connection: Connection): void {
    connection.drain(this.tree.lastZxid, this.#runWaiting);
  }

  readonly #runWaiting = (connection: Connection, frame: Frame): void => {
    const { bytes, ids, startMs } = frame;
    if (frame.writes) {
      this.request(connection, bytes, 0, bytes.length, false, ids);
      return;
    }
    this.#read(connection, bytes, 0, bytes.length, false, ids);
    const tookMs = this.#nowMs - startMs;
    connection.latency.record(tookMs);
    this.stats.reads.record(tookMs);
    this.stats.byOp.record(readInt(bytes, 4), tookMs);
  };

  /** Every write waits for it. Told now and then, with how often it was so far. */
  #slowLog(tookMs: number, txns: number): void {
    const nowMs = this.#nowMs;
    if (nowMs - this.#slowSaidMs < saidEveryMs) return;
    this.#slowSaidMs = nowMs;
    const fields = { tookMs: Math.round(tookMs), txns, slowSoFar: this.stats.slowAppends };
    this.#logger.warn(fields, 'the disk was slow to take the log, and every write waits for it');
  }

  /** All that a soft limit does; those of hard ones are counted, too. */
  #overQuota({ path, what, sum, limit, isHard }: OverQuota): void {
    if (isHard) this.stats.quotaExceeded(namespaceOf(path));
    if (this.#nowMs - this.#quotaSaidMs < saidEveryMs) return;
    this.#quotaSaidMs = this.#nowMs;
    const fields = { path: printable(path), [what]: `${sum}`, limit: `${limit}`, hard: isHard };
    this.#logger.warn(fields, 'a quota is exceeded');
  }

  #batchDone(): void {
    this.stats.noteWrites();
    for (const connection of this.#barriers) {
      this.#drain(connection);
      if (connection.inFlight === 0) this.#barriers.delete(connection);
    }
    const { links } = this.#outbox;
    this.#outbox.flush();
    this.#gathering.answered(links, this.#clock.nowMs());
  }

  // ── what the server asks itself ───────────────────────────────────────────────────────────────

  /** Nothing was heard of it. That is no fault of its own where it is we who do not listen. */
  #timedOut(session: Session): void {
    if (session.connection?.isUnheard) this.sessions.touch(session, this.#clock.nowMs());
    else this.expire(session);
  }

  /** Ends a session as its timeout would. */
  expire(session: Session): void {
    if (session.closing || this.#stopped) return;
    session.closing = true;
    this.stats.sessionsExpired += 1;
    this.#logger.info({ session: hexOf(session.id) }, 'session expired');
    this.#deleteAhead(session);
    const call = this.#ownCall('closeSession', session);
    this.#submit(call, this.#prepare.closeSession(session.id, call));
  }

  /**
   * Of a session that came with a directory of Apache's, which has no such limit: ephemeral nodes that the
   * txn of its end has no room for go before it.
   */
  #deleteAhead({ id }: Session): void {
    const { ephemeralPathBytesMax } = this.limits;
    const { size } = this.tree.ephemeralsOf(id);
    if (this.tree.ephemeralBytesOf(id) + 4 * size <= ephemeralPathBytesMax) return;
    const paths = this.#outlook.ephemeralsOf(id);
    let left = paths.reduce((sum, path) => sum + pathBytes(path), 0);
    while (left > ephemeralPathBytesMax) {
      const parts: MultiPart[] = [];
      const partsMax = Math.min(deletedAheadMax, this.limits.multiOpsMax);
      for (let bytes = 0; paths.length > 0 && parts.length < partsMax; ) {
        const path = paths.at(-1)!;
        bytes += pathBytes(path);
        if (bytes > ephemeralPathBytesMax && parts.length > 0) break;
        paths.pop();
        left -= pathBytes(path);
        parts.push({ op: 'delete', request: { path, version: anyVersion } });
      }
      const call = this.#ownCall('multi', undefined);
      call.aheadOf = id;
      this.#submit(call, prepareMulti(this.#prepare, this.#outlook, parts, call, call));
    }
  }

  /**
   * Asks for one container or TTL node to go. Not while a change of it is under way, which may renew it or
   * put another in its place: the next look tells. Apache takes it away then, whatever it has become.
   * False where nothing is taken away for now.
   */
  reap(path: string): boolean {
    if (this.#stopped || this.refusesWrites) return false;
    const node = this.#outlook.get(path);
    if (node === undefined || node.isUnderWay) return true; // the tree is about to change
    const call = this.#ownCall('deleteContainer', undefined);
    this.#submit(call, this.#prepare.deleteContainer(path, call));
    return true;
  }

  /** Makes the node, or sets its data, as the super user would. For fixtures. */
  seed(path: string, data: Buffer | null, { onlyMissing = false } = {}): Promise<void> {
    if (this.#stopped) return Promise.reject(new Error('the server is closed'));
    if (onlyMissing && this.#outlook.get(path) !== undefined) return Promise.resolve();
    const call = this.#ownCall('create', undefined);
    const made = { path, data, acl: [...openAcl], flags: 0 };
    const prepared =
      this.#outlook.get(path) === undefined
        ? this.#prepare.create('create', made, call, call)
        : this.#prepare.setData({ path, data, version: anyVersion }, call, call);
    if (typeof prepared === 'number') {
      return Promise.reject(new ZkError(errorCodeOf(prepared), { path }));
    }
    return new Promise((resolve, reject) => {
      this.#seeding.add(reject);
      call.done = () => {
        this.#seeding.delete(reject);
        resolve();
      };
      this.#submit(call, prepared);
    });
  }

  // ── the end ───────────────────────────────────────────────────────────────────────────────────

  onFailed(listener: (error: Error) => void): void {
    this.#onFailed = listener;
  }

  /** Nothing more is acknowledged: the log is broken, or we are. */
  fail(error: Error): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#logger.error({ err: error, zxid: this.lastZxid }, 'stopped: going on could lose writes');
    this.#expiry.stop();
    for (const connection of [...this.connections]) connection.close();
    for (const reject of this.#seeding) reject(error);
    this.#onFailed(error);
  }

  /** Takes no more requests, lets what is under way land, then closes every link. */
  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#expiry.stop();
    await this.#pipeline.idle();
    for (const connection of [...this.connections]) connection.finish();
  }
}

const hexOf = (id: bigint | undefined) => (id === undefined ? undefined : hexId(id));
