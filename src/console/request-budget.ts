/**
 * What one request of a page may cost: nodes that are read, bytes of data and names, and time.
 *
 * Many pages read whole subtrees, and clients of ZooKeeper choose how large these are. The budget follows
 * the request through everything that it awaits, so that no reader has to be handed it; what is read
 * outside of a request, as by the live tree, is not counted.
 */

import { AsyncLocalStorage } from 'node:async_hooks';
import type { Client } from '../client/index.ts';
import type { Clock } from '../support/index.ts';
import { ConsoleError } from './console-error.ts';

export interface RequestLimits {
  readonly nodesMax: number;
  readonly bytesMax: number;
  readonly timeMs: number;
}

export const requestLimits: RequestLimits = {
  nodesMax: 400_000,
  bytesMax: 256 * 1024 * 1024,
  timeMs: 30_000,
};

export class RequestBudget {
  readonly #limits: RequestLimits;
  readonly #clock: Clock;
  readonly #endsMs: number;
  #nodes = 0;
  #bytes = 0;
  #isOver = false;

  constructor(limits: RequestLimits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
    this.#endsMs = clock.nowMs() + limits.timeMs;
  }

  /** Throws once the request has read or taken too much. */
  spend(nodes: number, bytes: number): void {
    if (this.#isOver) return;
    this.#nodes += nodes;
    this.#bytes += bytes;
    const { nodesMax, bytesMax, timeMs } = this.#limits;
    if (this.#nodes > nodesMax) throw usedUp(`read ${nodesMax} nodes`);
    if (this.#bytes > bytesMax) throw usedUp(`read ${bytesMax} bytes`);
    if (this.#clock.nowMs() >= this.#endsMs) throw usedUp(`take ${timeMs / 1_000} s`);
  }

  /** The request is answered. What it has started, such as a timer, costs it nothing any more. */
  end(): void {
    this.#isOver = true;
  }
}

function usedUp(limit: string): ConsoleError {
  const why = `stopped: a request here may ${limit}`;
  return new ConsoleError(
    'TOO_LARGE',
    `${why}; ask for a smaller part, or use drover in a terminal`,
  );
}

const current = new AsyncLocalStorage<RequestBudget>();

/** Runs a request on its budget. */
export function onBudget<T>(budget: RequestBudget, work: () => Promise<T>): Promise<T> {
  return current.run(budget, work);
}

const nodeBytes = (found: { readonly data: Buffer | null }) => found.data?.length ?? 0;
const nameBytes = (names: readonly string[]) => names.reduce((sum, name) => sum + name.length, 0);

/** The same client, whose reads are charged to the request that makes them. */
export function charged(client: Client): Client {
  const own = {
    exists: counted(client.exists, () => 0),
    getAcl: counted(client.getAcl, () => 0),
    get: counted(client.get, nodeBytes),
    children: counted(client.children, nameBytes),
    childrenAndStat: counted(client.childrenAndStat, ({ children }) => nameBytes(children)),
    async *walk(...given: Parameters<Client['walk']>) {
      for await (const node of client.walk(...given)) {
        current.getStore()?.spend(1, node.path.length);
        yield node;
      }
    },
  };
  function counted<A extends unknown[], R>(
    read: (...given: A) => Promise<R>,
    bytesOf: (found: R) => number,
  ): (...given: A) => Promise<R> {
    return async (...given) => {
      current.getStore()?.spend(1, 0);
      const found = await read.apply(client, given);
      current.getStore()?.spend(0, bytesOf(found));
      return found;
    };
  }
  return new Proxy(client, {
    get(target, key) {
      if (Object.hasOwn(own, key)) return own[key as keyof typeof own];
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
