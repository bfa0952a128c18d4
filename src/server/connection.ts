/**
 * One client's link: bytes to frames on one side, replies and events to bytes on the other.
 *
 *   greeting   nothing asked yet: the first frame is a connect request, or four letters
 *   held       its session is being made, or its last link's writes are under way; frames wait
 *   open       frames are requests
 *   closing    what was said still goes out, nothing more is taken
 *   closed
 *
 * Replies leave in the order of the requests. A write waits for the log; what came after it on the
 * same link waits behind it in `Turns`, except that writes are handed on at once, so that they can
 * share a sync. Not where the replies to what waits before them are more than may wait for the peer: such
 * writes take their turn, since reads must not see a later write of their link, and a write that the log has
 * waits for nobody. Everything said while one chunk is read or one batch is committed leaves in one write.
 */

import { FrameSplitter, ProtocolError, Writer } from '../jute/index.ts';
import type { Acl, Id } from '../protocol/index.ts';
import type { Timer } from '../support/index.ts';
import type { Auth } from './auth.ts';
import type { Call } from './call.ts';
import type { Limits } from './limits.ts';
import { largeReplyBytes } from './output-total.ts';
import { lengthBytes } from './replies.ts';
import type { ServerSession } from './sessions.ts';
import type { ConnectionStats } from './stats.ts';
import { Timing } from './stats.ts';
import { type Frame, readWorkMax, type Turn, Turns } from './turns.ts';
import type { Watcher } from './watch-table.ts';
import { keepWriter, takeWriter } from './writers.ts';

/** A socket, as far as a connection needs it. */
export interface Wire {
  readonly address: string;
  readonly port: number;
  readonly secure: boolean;
  /** Bytes that the peer has not taken yet. */
  readonly queuedBytes: number;
  /** Sends the first `length` bytes. True when they are gone and the memory is the caller's again. */
  write(bytes: Buffer, length: number): boolean;
  /** Sends what is queued, then closes. */
  end(): void;
  destroy(): void;
  pause(): void;
  resume(): void;
}

/** What a connection asks of the server behind it. */
export interface Service {
  readonly limits: Limits;
  readonly auth: Auth;
  /** `rest` is what came along behind the word. */
  fourLetterWord(word: string, rest: Buffer): string | undefined;
  connect(connection: Connection, frame: Buffer): void;
  request(
    connection: Connection,
    bytes: Buffer,
    start: number,
    end: number,
    borrowed: boolean,
    ids: readonly Id[],
  ): void;
  /** It has something to send; `flush` is called for it before the event loop waits again. */
  dirty(connection: Connection): void;
  /** So much was read for links just now that it is the others' turn. */
  readonly hasReadEnough: boolean;
  /** It has reads waiting for a later turn of the event loop. */
  goOnLater(connection: Connection): void;
  /** So much waits to be sent, over all links, that large replies wait. */
  readonly isOutputTight: boolean;
  /** It has a large read that waits for that. */
  waitForOutput(connection: Connection): void;
  /** So much of what it was told its peer has not taken. */
  queued(connection: Connection, bytes: number): void;
  /** It can say more again, and has requests waiting for that. */
  unclogged(connection: Connection): void;
  closed(connection: Connection): void;
  chunkBegun(bytes: number): void;
  /** One event more, so long. */
  told(bytes: number): void;
  /** The peer ended it. */
  dropped(): void;
  /** The chunk held so many whole frames. Whatever is dirty leaves, at the latest with its turn of the event loop. */
  chunkDone(connection: Connection, requests: number): void;
  later(delayMs: number, run: () => void): Timer;
  wallMs(): number;
}

type State = 'greeting' | 'held' | 'open' | 'closing' | 'closed';

const pauses = { inFlight: 1, output: 2, test: 4 } as const;

/** What was said before the end, and the peer has not taken by then, is given up: no session is left to time out. */
const lingerMs = 30_000;

export class Connection implements Watcher {
  readonly wire: Wire;
  readonly #service: Service;
  readonly #splitter: FrameSplitter;
  #state: State = 'greeting';
  #greeting: Buffer | undefined;
  #isGreeted = false;
  /** By us. */
  #isEnded = false;
  #held: Buffer[] = [];
  #heldBytes = 0;
  readonly #turns = new Turns();
  #out: Writer | undefined;
  /** An event's frame that is all there is to send so far: many links send the same bytes. */
  #shared: Buffer | undefined;
  #isDirty = false;
  #paused = 0;
  #delayMs = 0;
  #lingering: Timer | undefined;
  /** What leaves later, the first first: see `delay`. */
  #late: Buffer[] = [];
  /** How many of these were due while the link was stalled. */
  #lateDue = 0;
  /** It is to end, and is stalled. */
  #isEnding = false;
  session: ServerSession<Connection> | undefined = undefined;
  ids: readonly Id[];
  /** Its connect request had the byte that says whether read-only will do; then the answer has it. */
  speaksReadOnly = true;
  /** Its next request is waited for: see gathering.ts. */
  awaitedRound = 0;
  /** The same for its next read, since a watch of its was spent. */
  lookRound = 0;
  hasSpentWatch = false;
  /** For whoever counts links. */
  onClosed: () => void = () => {};
  /** The first frame is here. */
  onGreeted: () => void = () => {};

  readonly establishedWallMs: number;
  packetsReceived = 0;
  packetsSent = 0;
  /** Of the last op answered; 0 where a write failed and after a reset, undefined before the first. */
  lastCode: number | undefined = undefined;
  /** Of the last that was a number of the client's own: no ping's. 0 before the first, -1 after a reset. */
  lastXid = 0;
  lastZxid = 0;
  lastReplyMs = 0;
  readonly latency = new Timing();

  constructor(wire: Wire, service: Service, ids: readonly Id[]) {
    this.wire = wire;
    this.#service = service;
    this.ids = ids;
    this.establishedWallMs = service.wallMs();
    this.#splitter = new FrameSplitter(
      service.limits.frameBytesMax,
      (bytes, start, end, borrowed) => this.#frame(bytes, start, end, borrowed),
    );
  }

  get state(): State {
    return this.#state;
  }

  /** Whether there is still somebody to answer. */
  get isLive(): boolean {
    return this.#state !== 'closing' && this.#state !== 'closed';
  }

  /**
   * What it says is not listened to until the log has caught up: it is held, or too much of it is under
   * way. A peer that does not take its replies is another matter.
   */
  get isUnheard(): boolean {
    return this.#state === 'held' || this.#paused === pauses.inFlight;
  }

  get watcherId(): bigint {
    return this.session?.id ?? 0n;
  }

  get inFlight(): number {
    return this.#turns.length;
  }

  // ── in ────────────────────────────────────────────────────────────────────────────────────────

  /** What has come in: a chunk, up to `end`. */
  receive(chunk: Buffer, end: number = chunk.length): void {
    const before = this.packetsReceived;
    this.#service.chunkBegun(end);
    try {
      if (!this.#isGreeted) this.#greet(chunk.subarray(0, end));
      else if (this.isLive) this.#splitter.push(chunk, end);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.close(); // a length that can't be: there is no reply to it
    }
    this.#service.chunkDone(this, this.packetsReceived - before);
    this.#pauseFor(pauses.inFlight, this.#isFull());
  }

  /** The first four bytes may be a word. They may also come one by one. */
  #greet(chunk: Buffer): void {
    const bytes = this.#greeting === undefined ? chunk : Buffer.concat([this.#greeting, chunk]);
    if (bytes.length < 4) {
      this.#greeting = Buffer.from(bytes);
      return;
    }
    this.#greeting = undefined;
    this.#isGreeted = true;
    const word = bytes.toString('latin1', 0, 4);
    this.packetsReceived += 1;
    const text = /^[a-z]{4}$/.test(word)
      ? this.#service.fourLetterWord(word, bytes.subarray(4))
      : undefined;
    if (text === undefined) {
      this.packetsReceived -= 1;
      this.#splitter.push(bytes);
      return;
    }
    this.#state = 'closing';
    const answer = Buffer.from(text);
    this.wire.write(answer, answer.length);
    this.#end();
  }

  #frame(bytes: Buffer, start: number, end: number, borrowed: boolean): void {
    this.packetsReceived += 1;
    switch (this.#state) {
      case 'open':
        this.#service.request(this, bytes, start, end, borrowed, this.ids);
        break;
      case 'greeting':
        this.onGreeted();
        this.#service.connect(this, Buffer.from(bytes.subarray(start, end)));
        break;
      case 'held':
        this.#held.push(Buffer.from(bytes.subarray(start, end)));
        this.#heldBytes += end - start;
        break;
    }
  }

  #isFull(): boolean {
    const { requestsInFlightMax, requestBytesInFlightMax } = this.#service.limits;
    return (
      this.inFlight + this.#held.length > requestsInFlightMax ||
      this.#turns.bytes + this.#heldBytes > requestBytesInFlightMax
    );
  }

  // ── states ────────────────────────────────────────────────────────────────────────────────────

  hold(): void {
    this.#state = 'held';
  }

  /** The session is there. What came meanwhile is taken as if it came now. */
  open(): void {
    if (!this.isLive) return;
    this.#state = 'open';
    const held = this.#held;
    this.#held = [];
    this.#heldBytes = 0;
    for (const frame of held) {
      if (!this.isLive) return;
      this.#service.request(this, frame, 0, frame.length, false, this.ids);
    }
  }

  /** Says what is left to say, then closes. */
  finish(): void {
    if (!this.isLive) return;
    this.#state = 'closing';
    this.#forgetWaiting();
    this.flush();
    if (this.#delayMs > 0) this.#service.later(this.#delayMs, () => this.#end());
    else this.#end();
  }

  #end(): void {
    this.#sendLate();
    this.#isEnding = (this.#paused & pauses.test) !== 0;
    if (this.#isEnding) return; // when it is heard again
    this.wire.end();
    if (this.#state === 'closed') return;
    this.#lingering = this.#service.later(lingerMs, () => this.close());
  }

  close(): void {
    if (this.#state === 'closed') return;
    this.#isEnded = true;
    this.wire.destroy();
    this.wireClosed();
  }

  /** The socket is gone, whoever closed it. */
  wireClosed(): void {
    if (this.#state === 'closed') return;
    if (this.isLive && !this.#isEnded) this.#service.dropped();
    this.#state = 'closed';
    this.#lingering?.cancel();
    this.#forgetWaiting();
    this.#shared = undefined;
    this.#release();
    this.#service.closed(this);
    this.onClosed();
  }

  #forgetWaiting(): void {
    this.#turns.clear();
    this.#held = [];
    this.#heldBytes = 0;
  }

  // ── what waits ────────────────────────────────────────────────────────────────────────────────

  wait(turn: Turn): void {
    if (this.isLive) this.#turns.add(turn);
  }

  /** The call at the head has its reply. */
  shift(): void {
    this.#turns.shift();
  }

  /**
   * Whether a write that comes now has to take its turn: more is to be said before it than may be left lying, or
   * to be read than is done in one go.
   */
  get holdsWrites(): boolean {
    const turns = this.#turns;
    if (turns.isHanding) return false;
    if (turns.holdsWrites) return true;
    if (turns.owedBytes === 0) return false;
    if (turns.owedWork > readWorkMax) return true;
    const saidBytes = this.wire.queuedBytes + (this.#out?.length ?? 0);
    return turns.owedBytes + saidBytes > this.#service.limits.outputBytesMax / 2;
  }

  /** So much is to be said already that nothing more is answered until some of it has gone. */
  get isClogged(): boolean {
    if ((this.#paused & pauses.output) !== 0) return true;
    return this.#out !== undefined && this.#out.length > this.#service.limits.outputBytesSoftMax;
  }

  /** Whether a reply of about this length waits until clients have taken others. */
  isHeldBack(replyBytes: number): boolean {
    return replyBytes > largeReplyBytes && this.#service.isOutputTight;
  }

  /** Whether all that was asked before it on the link has its reply. */
  isNext(call: Call): boolean {
    return this.#turns.head === call;
  }

  /**
   * Runs what may run now: reads, and writes that were held back, up to the next write or barrier. `isDue`
   * when that write is about to be applied: the reads before it must not see it, so they no longer wait for
   * the peer to listen.
   */
  drain(
    appliedZxid: number,
    run: (connection: Connection, frame: Frame) => void,
    isDue = false,
  ): void {
    for (;;) {
      const { head } = this.#turns;
      if (head === undefined || head.kind === 'call') break;
      if (this.isClogged) {
        if (!isDue) break;
        this.flush(); // closes the link where there is too much to say
        if (!this.isLive) break;
      }
      if (head.kind === 'barrier' && head.zxid > appliedZxid) break;
      if (head.kind === 'frame' && head.writes) {
        this.#turns.handOn((frame) => {
          run(this, frame);
          return this.isLive;
        });
        continue;
      }
      if (head.kind === 'frame' && !isDue && this.#service.hasReadEnough) {
        this.#service.goOnLater(this);
        break;
      }
      if (head.kind === 'frame' && !isDue && this.isHeldBack(head.replyBytes)) {
        this.#service.waitForOutput(this);
        break;
      }
      this.#turns.shift();
      if (head.kind === 'frame') run(this, head);
      else if (head.kind === 'answer') head.run();
    }
    if (this.#paused & pauses.inFlight && !this.#isFull()) this.#pauseFor(pauses.inFlight, false);
  }

  // ── out ───────────────────────────────────────────────────────────────────────────────────────

  /** Where replies are written. */
  get out(): Writer {
    if (this.#out !== undefined && this.#shared === undefined) return this.#out;
    this.#mark();
    this.#out ??= takeWriter();
    if (this.#shared !== undefined) {
      this.#out.raw(this.#shared);
      this.#shared = undefined;
    }
    return this.#out;
  }

  mayRead(acl: readonly Acl[]): boolean {
    return this.#service.auth.permits(acl, 1, this.ids);
  }

  deliver(frame: Buffer): void {
    if (!this.isLive) return;
    this.packetsSent += 1;
    this.#service.told(frame.length - lengthBytes);
    if (this.#out === undefined && this.#shared === undefined) {
      this.#shared = frame;
      this.#mark();
    } else {
      this.out.raw(frame);
    }
  }

  flush(): void {
    this.#isDirty = false;
    if (this.#state === 'closed' || (this.#paused & pauses.test) !== 0) return;
    const from = this.#shared ?? this.#out;
    if (from === undefined || from.length === 0) return;
    const { length } = from;
    const bytes = from instanceof Writer ? from.memory : from;
    if (this.#delayMs > 0) {
      const copy = Buffer.from(bytes.subarray(0, length));
      this.#shared = undefined;
      this.#release();
      this.#late.push(copy);
      this.#service.later(this.#delayMs, () => this.#sendLate(copy));
      return;
    }
    const sent = this.#send(bytes, length);
    if (this.#shared !== undefined) this.#shared = undefined;
    else if (sent) this.#release();
    else this.#out = undefined; // the memory is the socket's until it is gone
  }

  #send(bytes: Buffer, length: number): boolean {
    if (this.#state === 'closed') return true;
    if (this.wire.write(bytes, length)) return true;
    const { queuedBytes } = this.wire;
    const { outputBytesSoftMax, outputBytesMax } = this.#service.limits;
    if (queuedBytes > outputBytesMax) this.close();
    else if (queuedBytes > outputBytesSoftMax) this.#pauseFor(pauses.output, true);
    this.#service.queued(this, queuedBytes);
    return false;
  }

  /** The peer has taken what was queued. */
  drained(): void {
    this.#service.queued(this, 0);
    if ((this.#paused & pauses.output) === 0) return;
    this.#pauseFor(pauses.output, false);
    this.#service.unclogged(this);
  }

  #mark(): void {
    if (this.#isDirty) return;
    this.#isDirty = true;
    this.#service.dirty(this);
  }

  #release(): void {
    const writer = this.#out;
    this.#out = undefined;
    if (writer !== undefined) keepWriter(writer);
  }

  #pauseFor(reason: number, wanted: boolean): void {
    const before = this.#paused;
    this.#paused = wanted ? before | reason : before & ~reason;
    if (this.#state === 'closed' || (before === 0) === (this.#paused === 0)) return;
    if (this.#paused === 0) this.wire.resume();
    else this.wire.pause();
  }

  // ── for tests: a link that stalls or is slow ──────────────────────────────────────────────────

  stall(): void {
    this.#pauseFor(pauses.test, true);
  }

  unstall(): void {
    this.#pauseFor(pauses.test, false);
    if (this.#lateDue > 0) this.#sendLate(this.#late[this.#lateDue - 1]);
    this.#lateDue = 0;
    this.flush();
    if (this.#isEnding) this.#end();
  }

  delay(ms: number): void {
    this.#delayMs = ms;
    if (ms === 0) this.#sendLate();
  }

  /** Up to this one, or all there is: nothing overtakes what was said before it. */
  #sendLate(last = this.#late.at(-1)): void {
    const count = last === undefined ? 0 : this.#late.indexOf(last) + 1;
    if ((this.#paused & pauses.test) !== 0) {
      this.#lateDue = Math.max(this.#lateDue, count);
      return;
    }
    for (const bytes of this.#late.splice(0, count)) this.#send(bytes, bytes.length);
  }

  /** What `crst` does. */
  resetStats(): void {
    this.packetsReceived = 0;
    this.packetsSent = 0;
    this.lastCode = 0;
    this.lastXid = -1;
    this.lastZxid = -1;
    this.lastReplyMs = 0;
    this.latency.reset();
  }

  stats(watches: number): ConnectionStats {
    const { latency } = this;
    return {
      address: this.wire.address,
      port: this.wire.port,
      secure: this.wire.secure,
      sessionId: this.session?.id ?? 0n,
      sessionTimeoutMs: this.session?.timeoutMs ?? 0,
      establishedWallMs: this.establishedWallMs,
      packetsReceived: this.packetsReceived,
      packetsSent: this.packetsSent,
      inFlight: this.inFlight,
      queuedBytes: this.wire.queuedBytes,
      watches,
      lastCode: this.lastCode,
      lastXid: this.lastXid,
      lastZxid: this.lastZxid,
      lastReplyMs: this.lastReplyMs,
      latency: {
        lastMs: latency.lastMs,
        minMs: latency.count === 0 ? 0 : latency.minMs,
        averageMs: latency.averageMs,
        maxMs: latency.maxMs,
      },
    };
  }
}
