/**
 * Calls on their way: first waiting to be sent, then in flight until their reply comes.
 *
 * A ZooKeeper server answers each link strictly in the order asked, so the calls in flight are a
 * queue: the reply must be the head's. Both queues are bounded. Each call is settled exactly once.
 */

import { ProtocolError, type Reader, type Writer } from '../jute/index.ts';
import {
  errorCodeOf,
  type Op,
  type OpName,
  ops,
  type RequestOf,
  type ResponseOf,
  xidMax,
  ZkError,
} from '../protocol/index.ts';
import { olderWords, type ServerVersion } from './server-version.ts';
import { resetBytes } from './watches.ts';

export interface Call<N extends OpName = OpName> {
  readonly op: N;
  readonly request: RequestOf<N>;
  /** As the caller named it, for messages. */
  readonly path: string | undefined;
  readonly resolve: (response: ResponseOf<N> | Promise<never>) => void;
  readonly reject: (error: unknown) => void;
  /** `resolve` is a promise's own, and may be given another promise to follow. */
  readonly adopts?: boolean;
  /**
   * Runs as the reply is taken off the link, before anything behind it is looked at: where a watch
   * is registered, so that its event cannot overtake it. `err` is 0 or an error's number.
   */
  readonly onReply?: ((err: number, response: ResponseOf<N> | undefined) => void) | undefined;
  /** How often a read may be sent again after its link broke. */
  retriesLeft: number;
  xid: number;
  sentMs: number;
  settled: boolean;
  /** The op that was sent in place of `op`, where the server does not know that one. */
  said?: OpName;
}

export class Calls {
  readonly #inFlightMax: number;
  readonly #waitingMax: number;
  #waiting: Call[] = [];
  /** How many of those that wait were given up meanwhile. They are swept out, half at a time. */
  #givenUp = 0;
  #inFlight: Call[] = [];
  /** Where the queue of those in flight begins: shifting an array would move it all, every time. */
  #head = 0;
  #xid: number;

  constructor(options: { inFlightMax: number; waitingMax: number; firstXid?: number | undefined }) {
    this.#inFlightMax = options.inFlightMax;
    this.#waitingMax = options.waitingMax;
    this.#xid = (options.firstXid ?? 1) - 1;
  }

  get inFlight(): number {
    return this.#inFlight.length - this.#head;
  }

  get waiting(): number {
    return this.#waiting.length - this.#givenUp;
  }

  add(call: Call): void {
    if (this.waiting >= this.#waitingMax) {
      throw new ZkError('THROTTLED_OP', {
        op: call.op,
        path: call.path,
        detail: `${this.#waitingMax} calls wait in this process already; it was not sent`,
      });
    }
    this.#waiting.push(call);
  }

  /** Encodes what may go now, as far as this server can be asked it. Returns whether anything did. */
  send(writer: Writer, nowMs: number, requestBytesMax: number, version: ServerVersion): boolean {
    const waiting = this.#waiting;
    let sent = false;
    let taken = 0;
    while (taken < waiting.length && this.inFlight < this.#inFlightMax) {
      let call = waiting[taken]!;
      if (call.settled) {
        taken += 1;
        this.#givenUp -= 1;
        continue;
      }
      const step = version.step(call, this.inFlight);
      if (step === 'wait') break;
      if (step === 'send' || step === 'sendOlder' || step === 'refuse') taken += 1;
      else call = step; // a question that goes first
      if (step === 'refuse') {
        settle(call, version.refusal(call));
      } else if (this.#encode(call, writer, requestBytesMax, step === 'sendOlder')) {
        call.sentMs = nowMs;
        this.#inFlight.push(call);
        sent = true;
      } else {
        version.notSent(call);
      }
    }
    if (taken > 0) this.#waiting = taken === waiting.length ? [] : waiting.slice(taken);
    return sent;
  }

  #encode(call: Call, writer: Writer, requestBytesMax: number, inOlderWords: boolean): boolean {
    const words = inOlderWords ? olderWords(call) : call;
    if (inOlderWords) call.said = words.op;
    const { code, request }: Op = ops[words.op];
    const start = writer.beginFrame();
    call.xid = this.#nextXid();
    writer.int(call.xid);
    writer.int(code);
    try {
      request.write(writer, words.request);
    } catch (error) {
      writer.truncate(start);
      settle(call, error); // its own fault alone: those behind it must still go
      return false;
    }
    const length = writer.endFrame(start);
    const needed = length + resetRoom <= requestBytesMax ? length : neededBytes(call, length);
    if (needed <= requestBytesMax) return true;
    writer.truncate(start);
    const what =
      length > requestBytesMax ? 'the request' : 'to set the watch again on another link';
    settle(
      call,
      new ZkError('BAD_ARGUMENTS', {
        op: call.op,
        path: call.path,
        detail: `${what} takes ${needed} bytes, and servers take ${requestBytesMax} at most (jute.maxbuffer); it was not sent`,
      }),
    );
    return false;
  }

  /** Takes a reply for the call at the head. Returns when that call was sent. */
  reply(xid: number, err: number, reader: Reader, version: ServerVersion): number {
    const call = this.#inFlight[this.#head];
    if (call === undefined)
      throw new ProtocolError(`a reply with xid ${xid}, and nothing was asked`);
    if (call.xid !== xid) {
      throw new ProtocolError(
        `a reply with xid ${xid}, out of turn: ${call.xid} (${call.op}) is next`,
      );
    }
    const { response: type }: Op = ops[call.said ?? call.op];
    let response: ResponseOf<OpName> | undefined;
    if (err === 0) {
      response = type.read(reader) as ResponseOf<OpName>;
      reader.finish();
    } // else: a failed multiRead, for one, brings an empty list along, which nobody needs
    this.#dropHead();
    const isUnknownOp = version.answered(call, err);
    call.onReply?.(err, response);
    if (!call.settled) {
      call.settled = true;
      if (err === 0) call.resolve(response as ResponseOf<OpName>);
      else if (isUnknownOp) fail(call, version.refusal(call));
      else fail(call, new ZkError(errorCodeOf(err), describe(call, err)));
    }
    return call.sentMs;
  }

  /** All that a reply may still come for: those in flight, given up or not, and those that wait. */
  *asked(): Generator<Call> {
    for (let i = this.#head; i < this.#inFlight.length; i++) yield this.#inFlight[i]!;
    for (const call of this.#waiting) if (!call.settled) yield call;
  }

  /** The link broke: what was in flight fails, or, where it is a read with tries left, waits again. */
  linkLost(cause: unknown): void {
    const cut = this.#inFlight.slice(this.#head);
    this.#inFlight = [];
    this.#head = 0;
    const again: Call[] = [];
    for (const call of cut) {
      if (call.settled) continue;
      if (!mayChange(call) && call.retriesLeft > 0) {
        call.retriesLeft -= 1;
        call.xid = 0;
        again.push(call);
      } else {
        this.#fail(call, 'CONNECTION_LOSS', cause, mayChange(call));
      }
    }
    this.#waiting = again.concat(this.#waiting);
  }

  /** The session is over: everything fails, and what had been sent has an unknown outcome. */
  sessionEnded(code: 'SESSION_EXPIRED' | 'AUTH_FAILED', cause: unknown, detail?: string): void {
    const cut = this.#inFlight.slice(this.#head);
    const waiting = this.#waiting;
    this.#inFlight = [];
    this.#head = 0;
    this.#waiting = [];
    this.#givenUp = 0;
    for (const call of cut) this.#fail(call, code, cause, mayChange(call), detail);
    for (const call of waiting) this.#fail(call, code, cause, false, detail);
  }

  /** The caller no longer wants it. True when it was not sent, so that it never will be. */
  abandon(call: Call, error: unknown): boolean {
    const unsent = call.xid === 0;
    if (unsent && !call.settled) {
      this.#givenUp += 1;
      settle(call, error);
      if (this.#givenUp * 2 > this.#waiting.length) this.#sweep();
    }
    settle(call, error);
    return unsent;
  }

  #sweep(): void {
    this.#waiting = this.#waiting.filter((call) => !call.settled);
    this.#givenUp = 0;
  }

  #fail(
    call: Call,
    code: 'CONNECTION_LOSS' | 'SESSION_EXPIRED' | 'AUTH_FAILED',
    cause: unknown,
    outcomeUnknown: boolean,
    detail?: string,
  ): void {
    const options = { op: call.op, path: call.path, outcomeUnknown, detail };
    settle(call, new ZkError(code, cause === undefined ? options : { ...options, cause }));
  }

  #dropHead(): void {
    (this.#inFlight as (Call | undefined)[])[this.#head] = undefined; // let go of it at once
    this.#head += 1;
    if (this.#head === this.#inFlight.length) {
      this.#inFlight = [];
      this.#head = 0;
    } else if (this.#head > 1024 && this.#head * 2 > this.#inFlight.length) {
      this.#inFlight = this.#inFlight.slice(this.#head);
      this.#head = 0;
    }
  }

  /** Never 0 and never negative: those are taken (ZOOKEEPER-3253), and 0 is never counted as answered. */
  #nextXid(): number {
    this.#xid = this.#xid >= xidMax ? 1 : this.#xid + 1;
    return this.#xid;
  }
}

/** Further below the limit than this, what a request sets can be set again, and nobody need look. */
const resetRoom = 64;

/** A watch is set again by a request that has more around its path: on every new link, so it must fit. */
function neededBytes({ op, request }: Call, length: number): number {
  const { path, watch } = request as { path?: string; watch?: boolean };
  const isWatch = watch === true || op === 'addWatch';
  return isWatch ? Math.max(length, resetBytes(path!)) : length;
}

/** Whether the outcome is worth asking for when the reply is lost. A multi of checks alone changes nothing. */
export function mayChange({ op, request }: Call): boolean {
  if (op === 'multi') return (request as RequestOf<'multi'>).some((part) => part.op !== 'check');
  return ops[op].writes;
}

function settle(call: Call, error: unknown): void {
  if (call.settled) return;
  call.settled = true;
  fail(call, error);
}

function fail(call: Call, error: unknown): void {
  if (call.adopts && error instanceof ZkError) call.resolve(askersFault(error));
  else call.reject(error);
}

/**
 * Rejects with an error that is made where the reply was read, and so knows nothing of who asked. Once
 * the call's promise hangs on this one, which takes two turns, the asynchronous stack does.
 */
async function askersFault(error: ZkError): Promise<never> {
  await undefined;
  await undefined;
  Error.captureStackTrace(error, askersFault);
  throw error;
}

function describe(call: Call, err: number) {
  const known = errorCodeOf(err) !== 'API_ERROR' || err === -100;
  return { op: call.op, path: call.path, detail: known ? undefined : `error ${err}` };
}
