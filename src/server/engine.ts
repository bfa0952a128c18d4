/**
 * The server without its sockets: requests in, replies and events out, over connections that somebody
 * else reads and writes.
 *
 * A read is answered at once from the tree, unless writes of the same session are under way. A write
 * is checked against the tree as it will be, takes the next zxid whether it succeeds or not, and goes
 * through the pipeline. Sessions are made, closed and expired by txns like any other change.
 */

import { setImmediate } from 'node:timers';
import { ProtocolError, Reader, readInt } from '../jute/index.ts';
import {
  type Id,
  MultiRequest,
  type OpName,
  ops,
  printable,
  type TxnBody,
  wireOf,
} from '../protocol/index.ts';
import { type Clock, type Logger, silentLogger, type Timer } from '../support/index.ts';
import { type Applied, ownerKind, Tree } from '../tree/index.ts';
import { isLoopback } from './addresses.ts';
import { askableOf } from './askable.ts';
import { Auth } from './auth.ts';
import { AuthAttempts } from './auth-attempts.ts';
import type { Asked, Call } from './call.ts';
import { Connection, type Service, type Wire } from './connection.ts';
import { Expiry } from './expiry.ts';
import { Gathering } from './gathering.ts';
import { Handshake } from './handshake.ts';
import { type Limits, limitsOf } from './limits.ts';
import { rateLimited } from './log-lines.ts';
import { Moment } from './moment.ts';
import { NowAndThen } from './now-and-then.ts';
import type { EngineOptions } from './options.ts';
import { Outbox } from './outbox.ts';
import { Outlook } from './outlook.ts';
import { largeReplyBytes, lookEveryMs, OutputTotal, stalledMs } from './output-total.ts';
import { OwnWrites } from './own-writes.ts';
import { Pipeline } from './pipeline.ts';
import { Prepare } from './prepare.ts';
import { Proofs } from './proofs.ts';
import { namespaceOf } from './quota-sums.ts';
import { ReadCall } from './read-call.ts';
import { Reads } from './reads.ts';
import { headerReply, headerReplyBytes, lengthBytes, writeReply } from './replies.ts';
import { firstSessionId, type ServerSession, Sessions } from './sessions.ts';
import { ServerStats } from './stats.ts';
import { type Frame, readWorkMax } from './turns.ts';
import { memoryLog } from './txn-log.ts';
import { Watches } from './watches.ts';
import { WriteLine } from './write-line.ts';
import { decodeAndPrepare } from './writes.ts';

type Session = ServerSession<Connection>;

const marshallingErr = wireOf('MARSHALLING_ERROR');
const quotaErr = wireOf('QUOTA_EXCEEDED');

/** Whether a multi deletes, and does nothing else but check. */
function isOfDeletes(reader: Reader): boolean {
  try {
    const parts = MultiRequest.read(reader);
    const deletes = parts.filter(({ op }) => op === 'delete').length;
    const checks = parts.filter(({ op }) => op === 'check').length;
    return deletes > 0 && deletes + checks === parts.length;
  } catch (error) {
    if (error instanceof ProtocolError) return false;
    throw error;
  }
}

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
  readonly #gathering: Gathering;
  readonly #barriers = new Set<Connection>();
  /** Links whose reads go on in the next turn of the event loop, in the order in which they stopped. */
  readonly #later = new Set<Connection>();
  readonly #output: OutputTotal;
  /** Links with a large read that waits until others have taken theirs. */
  readonly #heldBack = new Set<Connection>();
  #outputLook: Timer | undefined;
  #isGoingOn = false;
  readonly #moment: Moment;
  readonly #nowAndThen: NowAndThen;
  readonly #line: WriteLine;
  readonly #own: OwnWrites;
  /** Of events so far, with their lengths. */
  #toldBytes = 0;
  /** Reads of the chunk at hand that were answered at once. */
  #answered = 0;
  #stopped = false;
  /** The disk is nearly full. Sessions come and go all the same: whoever reads needs one. */
  refusesWrites = false;
  /** Whether it has room for deletes all the same. */
  takesDeletes: () => boolean = () => false;
  #onFailed: (error: Error) => void = () => {};

  constructor(options: EngineOptions) {
    const { clock, tickTimeMs } = options;
    this.#options = options;
    this.#clock = clock;
    this.#logger = rateLimited(options.logger ?? silentLogger, clock);
    this.#moment = new Moment(clock);
    this.#nowAndThen = new NowAndThen(this.#logger, this.#moment);
    this.#outbox = new Outbox({
      flushed: (connection) => this.#drain(connection),
      failed: (error) => this.fail(error),
    });
    this.limits = limitsOf(options.limits);
    this.#output = new OutputTotal(this.limits.outputBytesTotalMax);
    this.tree =
      options.tree ??
      new Tree({
        extendedTypes: options.extendedTypesEnabled ?? false,
        digest: options.digestEnabled ?? false,
      });
    this.auth = new Auth(options);
    this.authAttempts = new AuthAttempts(this.limits);
    this.stats = new ServerStats(clock.wallMs(), options.slowAppendMs);
    this.#outlook = new Outlook(this.tree);
    this.#prepare = new Prepare(this.tree, this.#outlook, this.auth, {
      enforceQuota: options.enforceQuota ?? false,
      overQuota: (over) => {
        if (over.isHard) this.stats.quotaExceeded(namespaceOf(over.path));
        this.#nowAndThen.overQuota(over);
      },
      reconfigEnabled: options.reconfigEnabled ?? false,
      limits: this.limits,
    });
    this.#reads = new Reads(this.tree, this.watches, this.auth, this.limits);
    const firstId = firstSessionId(options.serverId ?? 1, clock.wallMs());
    this.sessions = new Sessions(tickTimeMs, firstId, options.passwords);
    // A restart gives every session a full timeout again: its client may have been waiting for us.
    const { nowMs } = this.#moment;
    for (const [id, timeoutMs] of this.tree.sessions) this.sessions.add(id, timeoutMs, nowMs);
    this.#adoptOwners(options.maxSessionTimeoutMs);
    this.#handshake = new Handshake(
      this.tree,
      this.sessions,
      this.stats,
      { ...options, limits: this.limits },
      {
        create: (connection, session) => this.#createSession(connection, session),
        openAfter: (connection, zxid) => {
          connection.hold();
          this.#waitFor(connection, zxid);
          connection.wait({ kind: 'answer', run: () => connection.open() });
        },
      },
    );
    this.#proofs = new Proofs(this.auth, this.authAttempts, this.stats, this.#logger, {
      sasl: options.sasl,
      requiredSchemes: options.requiredSchemes,
      authIdsMax: this.limits.authIdsMax,
      idCharsMax: this.limits.frameBytesMax,
    });
    const log = options.log ?? memoryLog;
    this.#gathering = new Gathering({ waitsForLooks: log.isInstant ?? false });
    this.#pipeline = new Pipeline(log, clock, this.stats, {
      batchBegun: (nowMs) => {
        this.#moment.begin(nowMs);
        this.#reads.work = 0;
        this.tree.batchBegun();
      },
      committed: (call) => this.#committed(call),
      batchDone: () => this.#batchDone(),
      isGathering: (nowMs) => this.#gathering.isOn(nowMs),
      slow: (tookMs, txns) => this.#nowAndThen.slowLog(tookMs, txns, this.stats.slowAppends),
      failed: (error) => this.fail(error),
    });
    const { tree, watches, sessions, stats, limits } = this;
    const outlook = this.#outlook;
    const parts = { tree, outlook, stats };
    this.#line = new WriteLine({
      ...parts,
      ...{ watches, sessions, moment: this.#moment, pipeline: this.#pipeline },
    });
    this.#own = new OwnWrites({
      ...parts,
      ...{ line: this.#line, prepare: this.#prepare, limits, logger: this.#logger },
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
      this.sessions.add(id, timeoutMs, this.#moment.nowMs);
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

  /** TLS was not agreed on. */
  tlsFailed(address: string, reason: string): void {
    this.stats.tlsFailures += 1;
    this.#logger.warn({ address, reason: printable(reason) }, 'a TLS handshake failed');
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
    this.#later.delete(connection);
    this.#heldBack.delete(connection);
    this.queued(connection, 0);
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

  get hasReadEnough(): boolean {
    return this.#reads.work > readWorkMax;
  }

  goOnLater(connection: Connection): void {
    this.#later.add(connection);
    if (this.#isGoingOn) return;
    this.#isGoingOn = true;
    setImmediate(this.#goOn);
  }

  /** Every link that waits gets its turn before one gets its next, as far as a turn of the event loop goes. */
  readonly #goOn = (): void => {
    if (this.#stopped) return;
    try {
      this.#moment.begin(this.#clock.nowMs());
      this.#reads.work = 0;
      for (const connection of this.#later) {
        if (this.hasReadEnough) break;
        this.#later.delete(connection);
        this.#drain(connection);
      }
      this.#isGoingOn = this.#later.size > 0;
      if (this.#isGoingOn) setImmediate(this.#goOn);
      this.#outbox.flush();
    } catch (error) {
      this.fail(error instanceof Error ? error : new Error(String(error)));
    }
  };

  get isOutputTight(): boolean {
    return this.#output.isTight;
  }

  queued(connection: Connection, bytes: number): void {
    if (connection.state === 'closed' && bytes > 0) return;
    const output = this.#output;
    const wasTight = output.isTight;
    output.note(connection, bytes, this.#moment.nowMs);
    if (output.isOver) {
      output.look(this.#moment.nowMs);
      while (output.isOver) this.#closeLargest(output.largest()!);
    }
    if (wasTight && !output.isTight) this.#letGo();
  }

  waitForOutput(connection: Connection): void {
    this.#heldBack.add(connection);
    this.#outputLook ??= this.#clock.after(lookEveryMs, () => this.#lookAtOutput(), true);
  }

  #lookAtOutput(): void {
    this.#outputLook = undefined;
    if (this.#stopped) return;
    const output = this.#output;
    const nowMs = this.#clock.nowMs();
    output.look(nowMs);
    while (output.isTight) {
      const stalled = output.largest(nowMs - stalledMs);
      if (stalled === undefined) break;
      this.#closeLargest(stalled);
    }
    if (!output.isTight) this.#letGo();
    else if (this.#heldBack.size > 0) {
      this.#outputLook = this.#clock.after(lookEveryMs, () => this.#lookAtOutput(), true);
    }
  }

  #closeLargest(connection: Connection): void {
    const { queuedBytes } = connection.wire;
    this.#logger.warn(
      { address: connection.wire.address, queuedBytes, totalBytes: this.#output.bytes },
      'closed the connection whose client takes its replies most slowly: too many wait to be sent',
    );
    connection.close();
  }

  /** Large reads go on, as far as there is room. */
  #letGo(): void {
    for (const connection of this.#heldBack) this.goOnLater(connection);
    this.#heldBack.clear();
  }

  chunkBegun(bytes: number): void {
    this.#moment.begin(this.#clock.nowMs());
    this.#answered = 0;
    this.#reads.work = 0;
    this.stats.bytesReceived += bytes;
    this.#outbox.chunkBegun(this.#moment.nowMs);
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
      if (session !== undefined && !session.closing)
        this.sessions.touch(session, this.#moment.nowMs);
      this.stats.packetsReceived += requests;
      this.#gathering.heard(connection);
    }
    this.#outbox.chunkDone(this.#moment.nowMs);
    if (this.#answered > 0) {
      const tookMs = this.#clock.nowMs() - this.#moment.nowMs;
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
    if (!this.#stopped) this.#handshake.connect(connection, frame, this.#moment.nowMs);
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
    const asks = askableOf(code);
    if (this.#proofs.isUnproven(code, ids)) {
      this.#proofs.refuse(connection, xid);
      return;
    }
    if (asks === undefined) {
      this.#reader.reset(bytes, start + 8, end, true);
      this.#proofs.take(connection, code, xid, this.#reader, this.#moment.nowMs);
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
    this.#gathering.looked(connection);
    if (op === 'sync' && this.#line.zxid > this.tree.lastZxid)
      this.#waitFor(connection, this.#line.zxid);
    if (forced !== undefined) {
      this.#inTurn(connection, code, xid, forced);
    } else if (connection.inFlight > 0 || connection.isClogged) {
      this.#waitWith(connection, bytes, start, end, borrowed, ids, false);
    } else if (this.hasReadEnough) {
      this.#waitWith(connection, bytes, start, end, borrowed, ids, false);
      this.goOnLater(connection);
    } else if (this.#output.isTight && this.#isLarge(connection, bytes, start, end)) {
      this.#waitWith(connection, bytes, start, end, borrowed, ids, false);
      this.waitForOutput(connection);
    } else {
      this.#read(connection, bytes, start, end, borrowed, ids);
      this.#answered += 1;
      this.stats.byOp.answered(code);
    }
  }

  #isLarge(connection: Connection, bytes: Buffer, start: number, end: number): boolean {
    const { id } = connection.session!;
    return this.#reads.replyBytes(bytes.subarray(start, end), id) > largeReplyBytes;
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
    const { id } = connection.session!;
    const replyBytes = writes ? 0 : this.#reads.replyBytes(own, id);
    connection.wait({
      kind: 'frame',
      bytes: own,
      ids,
      startMs: this.#moment.nowMs,
      replyBytes,
      work: writes ? 0 : this.#reads.workOf(own, id, replyBytes),
      writes,
    });
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
    connection.lastReplyMs = this.#moment.nowMs;
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
    if (this.refusesWrites && !this.#isTakenAnyway(op)) {
      this.stats.writesRefused += 1;
      if (asked !== undefined) this.#options.onRefused?.({ op, session, connection, asked });
      this.#inTurn(connection, 0, xid, quotaErr); // not even the refusal is logged
      return;
    }
    if (op === 'closeSession' && forced === undefined) this.#own.deleteAhead(session);
    const call = this.#line.begin(op, xid, session, connection, ids, bytes);
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
    this.#line.submit(call, prepared);
  }

  /** Sessions end, and what frees room is done as long as the log has some. */
  #isTakenAnyway(op: OpName): boolean {
    if (op === 'closeSession') return true;
    if (!this.takesDeletes()) return false;
    if (op === 'delete' || op === 'deleteContainer') return true;
    return op === 'multi' && isOfDeletes(this.#reader.rest());
  }

  #createSession(connection: Connection, session: Session): void {
    const call = this.#line.begin('createSession', 0, session, connection, connection.ids, 0);
    this.#line.submit(call, { type: 'createSession', txn: { timeOut: session.timeoutMs } });
  }

  #committed(call: Call): void {
    const { connection, session, op } = call;
    // What was asked before it on the link, and waits for others' writes or for the peer to listen.
    if (connection?.isLive && !connection.isNext(call)) {
      connection.drain(this.tree.lastZxid, this.#runWaiting, true);
    }
    const applied = this.#line.apply(call);
    this.#options.onCommitted?.(call, applied);
    if (connection?.isLive) this.#reply(call, connection, applied);
    else if (op === 'closeSession') session?.connection?.close();
  }

  #reply(call: Call, connection: Connection, applied: Applied): void {
    const { op, xid } = call;
    connection.shift();
    const { code } = ops[op];
    const tookMs = this.#moment.nowMs - call.startMs;
    connection.latency.record(tookMs);
    this.stats.wrote(code, tookMs);
    if (op === 'createSession') {
      this.#noteOp(connection, code, xid);
      this.sessions.touch(call.session!, this.#moment.nowMs); // it could not speak before it was welcome
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
    const tookMs = this.#moment.nowMs - startMs;
    connection.latency.record(tookMs);
    this.stats.reads.record(tookMs);
    this.stats.byOp.record(readInt(bytes, 4), tookMs);
  };

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
    if (!session.closing && !this.#stopped) this.#own.expire(session);
  }

  /** Has a container or TTL node go, unless it changes. False where nothing is taken away for now. */
  reap(path: string): boolean {
    if (this.#stopped || (this.refusesWrites && !this.takesDeletes())) return false;
    this.#own.reap(path);
    return true;
  }

  /** Makes the node, or sets its data, as the super user would. For fixtures. */
  seed(path: string, data: Buffer | null, { onlyMissing = false } = {}): Promise<void> {
    if (this.#stopped) return Promise.reject(new Error('the server is closed'));
    return this.#own.seed(path, data, onlyMissing);
  }

  // ── the end ───────────────────────────────────────────────────────────────────────────────────

  onFailed(listener: (error: Error) => void): void {
    this.#onFailed = listener;
  }

  /** Nothing more is acknowledged: the log is broken, or we are. */
  fail(error: Error): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#outputLook?.cancel();
    this.#logger.error({ err: error, zxid: this.lastZxid }, 'stopped: going on could lose writes');
    this.#expiry.stop();
    for (const connection of [...this.connections]) connection.close();
    this.#own.fail(error);
    this.#onFailed(error);
  }

  /** Takes no more requests, lets what is under way land, then closes every link. */
  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#outputLook?.cancel();
    this.#expiry.stop();
    await this.#pipeline.idle();
    for (const connection of [...this.connections]) connection.finish();
  }
}
