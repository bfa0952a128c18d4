/**
 * A write that takes place once, though its reply may be lost.
 *
 * Beside what is written stands an ephemeral node of this writer's own, the receipt. Every multi also
 * sets it to a token that was never used before; when the reply is lost, the receipt says whether the
 * multi took place: it holds the token, or it does not. After a link of the same session is there again
 * no older request of it can still arrive, so the answer is final.
 *
 *   <parent>/receipt-<uuid>    ephemeral; data: the token of the last multi
 *
 * The receipt goes with its session. When the session ended before the question could be asked, the
 * answer is gone too: then `run` rejects with the first error, whose `outcomeUnknown` is true.
 * One multi at a time: a second waits for the first.
 */

import { randomUUID } from 'node:crypto';
import { type Acl, type Client, isZkError, MultiError, type MultiOp } from '../client/index.ts';
import { childOf } from '../protocol/index.ts';
import { withParents } from './parents.ts';
import { whileLinked } from './while-linked.ts';

/** How often a multi of which it is certain that it did not take place is sent again. */
const triesMax = 10;

export class Receipt {
  readonly #client: Client;
  readonly #parent: string;
  readonly #acl: readonly Acl[] | undefined;
  readonly #ownsParent: boolean;
  #path: string | undefined;
  #sessionId: bigint | undefined;
  #tail: Promise<unknown> = Promise.resolve();

  /** Without `ownsParent` a missing parent is NO_NODE: only its owner knows what it has to hold. */
  constructor(client: Client, parent: string, acl?: readonly Acl[], ownsParent = true) {
    this.#ownsParent = ownsParent;
    this.#client = client;
    this.#parent = parent;
    this.#acl = acl;
  }

  /** True of names that are receipts and nothing else. */
  static is(name: string): boolean {
    return name.startsWith('receipt-');
  }

  /** Makes the receipt, so that it counts among its parent's children before anything is written. */
  async ready(): Promise<void> {
    await this.#ensure();
  }

  /** The results of the ops, or null when they took place and the reply was lost. */
  run(ops: readonly MultiOp[]): Promise<readonly unknown[] | null> {
    const done = this.#tail.then(() => this.#run(ops));
    this.#tail = done.catch(() => {});
    return done;
  }

  /** Takes the receipt away; without a link as soon as there is one. A later `run` makes another. */
  async close(): Promise<void> {
    await this.#tail;
    const path = this.#path;
    this.#path = undefined;
    if (path === undefined || this.#sessionId !== this.#client.sessionId) return;
    const gone = this.#client.discard(path).catch((error: unknown) => {
      if (!isZkError(error, 'SESSION_EXPIRED', 'AUTH_FAILED')) throw error; // else it goes with the session
    });
    await whileLinked(this.#client, gone);
  }

  async #run(ops: readonly MultiOp[]): Promise<readonly unknown[] | null> {
    for (let tries = 1; ; tries++) {
      const receipt = await this.#ensure();
      const token = randomUUID();
      try {
        const results = await this.#client.multi([
          ...ops,
          { op: 'set', path: receipt, data: token },
        ]);
        return results.slice(0, ops.length);
      } catch (error) {
        if (isMissing(error, ops.length)) {
          this.#path = undefined;
          if (tries === triesMax) throw error;
          continue;
        }
        if (!isZkError(error) || !error.outcomeUnknown) throw error;
        const holds = await this.#holds(receipt, token, error);
        if (holds) return null;
        if (tries === triesMax) throw error;
      }
    }
  }

  async #ensure(): Promise<string> {
    const client = this.#client;
    for (let tries = 1; ; tries++) {
      const { sessionId } = client;
      if (this.#path !== undefined && this.#sessionId === sessionId) return this.#path;
      const path = childOf(this.#parent, `receipt-${randomUUID()}`);
      const acl = this.#acl ? { acl: this.#acl } : {};
      try {
        const create = () => client.create(path, '', { mode: 'ephemeral', ...acl });
        const { stat } = this.#ownsParent
          ? await withParents(client, path, this.#acl, create)
          : await create();
        this.#path = path;
        this.#sessionId = stat.ephemeralOwner;
        return path;
      } catch (error) {
        // One of which nobody knows whether it was made goes with its session.
        if (!isZkError(error) || !error.outcomeUnknown || tries === triesMax) throw error;
      }
    }
  }

  /** Asks until it is answered. Where there is no answer, the unknown outcome stays one. */
  async #holds(receipt: string, token: string, unknown: Error): Promise<boolean> {
    for (let tries = 1; ; tries++) {
      try {
        await this.#client.barrier();
        const { data } = await this.#client.get(receipt);
        if (String(data) === token) return true;
        // In another session this proves nothing: the one of before may still be at work on the server.
        if (this.#client.sessionId !== this.#sessionId) throw unknown;
        return false;
      } catch (error) {
        if (error === unknown) throw error;
        const isLinkLost = isZkError(error, 'CONNECTION_LOSS', 'OPERATION_TIMEOUT');
        if (!isLinkLost || tries === triesMax) throw unknown;
      }
    }
  }
}

/** The receipt itself was not there, so that nothing took place. */
function isMissing(error: unknown, index: number): boolean {
  return error instanceof MultiError && error.code === 'NO_NODE' && error.index === index;
}
