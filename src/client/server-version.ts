/**
 * What the server of one connection can be asked, learned without losing a request.
 *
 * No request tells a server's version. A server that gets an op it does not know answers UNIMPLEMENTED
 * out of turn and closes the connection, and every request that is not answered by then is lost. So
 * nothing that the server may not know leaves beside other requests:
 *
 *   create2, also in a multi   A read goes first, once per connection: servers of 3.5 and later have
 *                              the node /zookeeper/config. Without it the older `create` is sent.
 *   other ops of 3.5           Where that node is missing, `checkWatches` goes alone. A standalone
 *                              server that was upgraded from 3.4 lacks the node, and knows this op.
 *   ops of 3.6 and later       The first of them goes alone.
 *
 * To go alone is to wait until every request before it was answered, and to hold back those behind it
 * until it is answered. What a server did not know is remembered by its address, so that it costs one
 * connection and no more. This class decides; `Calls` sends, and the callers of a refused op fall back.
 */

import {
  errorCodeOf,
  type MultiPart,
  type OpName,
  ops,
  wireOf,
  ZkError,
  type ZkErrorCode,
} from '../protocol/index.ts';
import type { Call } from './calls.ts';

/** By address: the release from which on ops are not known there, as 6 for a server of 3.5. */
export class OldServers {
  readonly #olderThan = new Map<string, number>();

  of(address: string): number {
    return this.#olderThan.get(address) ?? Number.POSITIVE_INFINITY;
  }

  remember(address: string, olderThan: number): void {
    const [first] = this.#olderThan.keys();
    if (first !== undefined && this.#olderThan.size >= addressesMax) this.#olderThan.delete(first);
    this.#olderThan.set(address, olderThan);
  }

  forget(address: string): void {
    this.#olderThan.delete(address);
  }
}

const addressesMax = 256;

/**
 * What to do with the call at the head of the queue: send it, send it in the words of 3.4, fail it, wait
 * for an answer that is on its way, or ask the server something first.
 */
export type Step = 'send' | 'sendOlder' | 'refuse' | 'wait' | Call;

const unimplemented = wireOf('UNIMPLEMENTED');
const noNode = wireOf('NO_NODE');
const noAuth = wireOf('NO_AUTH');

export class ServerVersion {
  readonly #address: string;
  readonly #old: OldServers;
  readonly #onUnknownOp: (op: OpName) => void;
  /** It is 3.`#atLeast` or newer for certain, and older than 3.`#olderThan`. */
  #atLeast = 4;
  #olderThan: number;
  #configNode: 'unasked' | 'asked' | 'missing' = 'unasked';
  /** The server refused the question about that node, so it would have refused the call that waits for it. */
  #fault: ZkErrorCode | undefined;
  /** The call that went alone and is not answered yet. */
  #alone: Call | undefined;
  #isSettingWatches = false;

  /** `onUnknownOp`: the server did not know an op, and is about to close the connection. */
  constructor(address: string, old: OldServers, onUnknownOp: (op: OpName) => void) {
    this.#address = address;
    this.#old = old;
    this.#onUnknownOp = onUnknownOp;
    this.#olderThan = old.of(address);
  }

  step(call: Call, inFlight: number): Step {
    if (this.#alone !== undefined || this.#isSettingWatches) return 'wait';
    const { op } = newestOf(call, this.#atLeast);
    const { since } = ops[op];
    if (since <= this.#atLeast) return 'send';
    if (since === 5) return this.#stepOf35(call, inFlight);
    if (since >= this.#olderThan) return 'refuse';
    if (inFlight > 0) return 'wait';
    this.#alone = call;
    return 'send';
  }

  #stepOf35(call: Call, inFlight: number): Step {
    if (this.#configNode === 'asked') return 'wait';
    if (this.#fault !== undefined) return 'refuse';
    if (this.#configNode === 'unasked') {
      this.#configNode = 'asked';
      return question('exists', { path: '/zookeeper/config', watch: false }, (err) =>
        this.#configNodeAnswered(err),
      );
    }
    if (hasOlderWords(call)) return 'sendOlder';
    // Worth no connection: the watches are forgotten here, and what the server still tells is ignored.
    if (this.#olderThan <= 5 || call.op === 'removeWatches') return 'refuse';
    if (inFlight > 0) return 'wait';
    const any = 3;
    this.#alone = question('checkWatches', { path: '/', type: any });
    return this.#alone;
  }

  #configNodeAnswered(err: number): void {
    const isThere = err === 0 || err === noAuth;
    if (isThere) this.#isAtLeast(5);
    else if (err !== noNode) this.#fault = errorCodeOf(err);
    this.#configNode = isThere || err === noNode ? 'missing' : 'unasked';
  }

  /** It could not be encoded. */
  notSent(call: Call): void {
    if (call === this.#alone) this.#alone = undefined;
  }

  /** A reply has come, and most tell nothing about the version. Returns whether it says that the op is unknown. */
  answered(call: Call, err: number): boolean {
    if (call !== this.#alone) return false;
    this.#alone = undefined;
    this.#learn(call.op, err);
    return err === unimplemented;
  }

  /** Watches are set again with `setWatches2`: nothing else leaves before it is answered. */
  settingWatches(): void {
    this.#isSettingWatches = this.#atLeast < ops.setWatches2.since;
  }

  watchesSet(err: number): void {
    if (!this.#isSettingWatches) return;
    this.#isSettingWatches = false;
    this.#learn('setWatches2', err);
  }

  /** Whether the server is known to have no persistent watches. */
  get lacksPersistentWatches(): boolean {
    return this.#olderThan <= ops.setWatches2.since;
  }

  /** What a refused call fails with. */
  refusal(call: Call): ZkError {
    const { op, path } = call;
    if (this.#fault !== undefined) {
      const code = this.#fault;
      this.#fault = undefined;
      return new ZkError(code, { op, path });
    }
    const newest = newestOf(call, this.#atLeast).op;
    const detail = `${newest} needs ZooKeeper 3.${ops[newest].since} or newer, and ${this.#address} is older`;
    return new ZkError('UNIMPLEMENTED', { op, path, detail });
  }

  #learn(op: OpName, err: number): void {
    const { since } = ops[op];
    if (err !== unimplemented) {
      this.#isAtLeast(since);
      return;
    }
    this.#olderThan = Math.min(this.#olderThan, since);
    this.#old.remember(this.#address, this.#olderThan);
    this.#onUnknownOp(op);
  }

  #isAtLeast(since: number): void {
    this.#atLeast = Math.max(this.#atLeast, since);
    if (this.#olderThan > since) return;
    this.#olderThan = Number.POSITIVE_INFINITY; // it was upgraded
    this.#old.forget(this.#address);
  }
}

interface Named {
  readonly op: OpName;
}

/** The op itself, or the newest among the ops of a multi. */
function newestOf(call: Call, atLeast: number): Named {
  if (call.op !== 'multi' || atLeast >= 5) return call;
  let newest: Named = call;
  for (const part of call.request as readonly MultiPart[]) {
    if (ops[part.op].since > ops[newest.op].since) newest = part;
    if (part.op !== 'create2' && ops[part.op].since > 4) return part;
  }
  return newest;
}

/** Whether servers of 3.4 can be asked the same: a create of a plain node. */
function hasOlderWords({ op, request }: Call): boolean {
  if (op !== 'multi') return op === 'create2';
  const parts = request as readonly MultiPart[];
  return parts.every((part) => part.op === 'create2' || ops[part.op].since === 4);
}

/** The same in the words of 3.4. Its answer has no Stat. */
export function olderWords({ op, request }: Call): Pick<Call, 'op' | 'request'> {
  if (op === 'create2') return { op: 'create', request };
  const parts = request as readonly MultiPart[];
  return {
    op,
    request: parts.map((part) =>
      part.op === 'create2' ? { op: 'create', request: part.request } : part,
    ),
  };
}

/** A request of our own, of which no caller hears. */
function question<N extends OpName>(
  op: N,
  request: Call<N>['request'],
  onReply?: (err: number) => void,
): Call {
  const call: Call<N> = {
    op,
    request,
    path: undefined,
    resolve: () => {},
    reject: () => {},
    onReply,
    retriesLeft: 0,
    xid: 0,
    sentMs: 0,
    settled: false,
  };
  return call as unknown as Call;
}
