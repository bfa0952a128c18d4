/**
 * Changes of a configuration: read, work out, write if nobody else has written meanwhile.
 *
 * In: which keys to look at, and a function that works out new values from the old. Out: the version
 * of the write. All that is written is written in one transaction, with its history, and only if every
 * key that was looked at is still as it was; else it begins again, a bounded number of times. A lost
 * reply is resolved by looking for the mark of the write in the history.
 */

import { randomUUID } from 'node:crypto';
import {
  ArgumentError,
  type CallOptions,
  type Client,
  isZkError,
  type MultiOp,
  ZkError,
} from '../client/index.ts';
import { childOf, frameBytesMax } from '../protocol/index.ts';
import { type Clock, systemClock } from '../support/index.ts';
import { ConfigError } from './config-error.ts';
import type { ConfigHistory } from './config-history.ts';
import { pause } from './pause.ts';

export interface NodeNow {
  readonly key: string;
  readonly data: Buffer | null;
  /** The node's data version; null when there is none. */
  readonly version: number | null;
  /** The transaction that wrote it. */
  readonly mzxid: bigint | null;
}

/** New JSON by key. Empty: there is nothing to write. */
export type Plan = (
  nodes: ReadonlyMap<string, NodeNow>,
) => ReadonlyMap<string, string> | Promise<ReadonlyMap<string, string>>;

/** Every value goes twice, as itself and as history; and servers refuse what is longer. */
const planBytesMax = Math.floor((frameBytesMax * 0.9) / 2);
const retryFirstMs = 5;
const retryMaxMs = 200;

export class ConfigWriter {
  readonly #client: Client;
  readonly #base: string;
  readonly #history: ConfigHistory;
  readonly #clock: Clock;

  constructor(client: Client, base: string, history: ConfigHistory, clock: Clock = systemClock) {
    this.#client = client;
    this.#base = base;
    this.#history = history;
    this.#clock = clock;
  }

  /** The version of what was written; null when the plan was empty. */
  async write(
    keys: readonly string[],
    plan: Plan,
    { triesMax = 10, ...options }: CallOptions & { readonly triesMax?: number },
  ): Promise<bigint | null> {
    let last: unknown;
    for (let tries = 0; tries < triesMax; tries++) {
      if (tries > 0) await this.#rest(tries, options.signal);
      const nodes = await this.read(keys, options);
      const texts = await plan(nodes);
      if (texts.size === 0) return null;
      checkSize(texts);
      const mark = randomUUID();
      try {
        return await this.#commit(nodes, texts, mark, options);
      } catch (error) {
        if (!isZkError(error)) throw error;
        last = error;
        if (error.outcomeUnknown) {
          const resolving = this.#resolve(nodes, texts, mark, options, error);
          const version = await resolving.catch(() => {
            options.signal?.throwIfAborted();
            throw error; // who cannot ask what became of it still does not know: that is what to tell
          });
          if (version !== null) return version;
        } else if (!isZkError(error, 'BAD_VERSION', 'NODE_EXISTS', 'NO_NODE')) throw error;
      }
    }
    const why = `${this.#base}: others changed it ${triesMax} times meanwhile; try again later, or set triesMax`;
    throw new ConfigError('CONFIG_CONFLICT', why, { cause: last });
  }

  async read(keys: readonly string[], options: CallOptions): Promise<Map<string, NodeNow>> {
    const nodes = await Promise.all(keys.map((key) => this.#readOne(key, options)));
    return new Map(nodes.map((node) => [node.key, node]));
  }

  async #readOne(key: string, options: CallOptions): Promise<NodeNow> {
    try {
      const { data, stat } = await this.#client.get(childOf(this.#base, key), options);
      return { key, data, version: stat.version, mzxid: stat.mzxid };
    } catch (error) {
      if (isZkError(error, 'NO_NODE')) return { key, data: null, version: null, mzxid: null };
      throw error;
    }
  }

  async #commit(
    nodes: ReadonlyMap<string, NodeNow>,
    texts: ReadonlyMap<string, string>,
    mark: string,
    options: CallOptions,
  ): Promise<bigint> {
    const ops: MultiOp[] = [];
    for (const { key, version } of nodes.values()) {
      const path = childOf(this.#base, key);
      const data = texts.get(key);
      if (data === undefined) {
        // One that was looked at and is missing cannot be checked for; what is written does not need it.
        if (version !== null) ops.push({ op: 'check', path, version });
      } else if (version === null) {
        await this.#ensureBase(options);
        ops.push({ op: 'create', path, data });
      } else ops.push({ op: 'set', path, data, version });
      if (data !== undefined) ops.push(...(await this.#history.record(key, data, mark, options)));
    }
    const results = await this.#client.multi(ops, options);
    for (const result of results as readonly unknown[]) {
      const version = zxidOf(result);
      if (version !== null) return version;
    }
    // A create in a multi comes back without a Stat: ask for it.
    const [key] = [...texts.keys()] as [string];
    return this.#versionOf(key, mark, options).catch((cause: unknown) => {
      if (!isZkError(cause)) throw cause;
      const path = childOf(this.#base, key);
      throw new ZkError(cause.code, { op: 'multi', path, outcomeUnknown: true, cause });
    });
  }

  async #versionOf(key: string, mark: string, options: CallOptions): Promise<bigint> {
    const found = await this.#history.find(key, mark, options);
    const { mzxid } = await this.#readOne(key, options);
    return found ?? mzxid ?? 0n;
  }

  /** After a lost reply: the version, if the write took place; null if it can be tried again. */
  async #resolve(
    nodes: ReadonlyMap<string, NodeNow>,
    texts: ReadonlyMap<string, string>,
    mark: string,
    options: CallOptions,
    cause: Error,
  ): Promise<bigint | null> {
    // Another server may have us now, and be behind.
    await this.#client.barrier(options);
    const [key] = [...texts.keys()] as [string];
    const found = this.#history.isKept ? await this.#history.find(key, mark, options) : null;
    if (found !== null) return found;
    const { mzxid } = await this.#readOne(key, options);
    const before = nodes.get(key)!.mzxid;
    if (mzxid === before || (await this.#history.hasAllSince(key, before, options))) return null;
    throw cause; // somebody has written, perhaps we have: without the history nobody can tell
  }

  async #ensureBase(options: CallOptions): Promise<void> {
    if ((await this.#client.exists(this.#base, options)) !== null) return;
    try {
      await this.#client.create(this.#base, '', { parents: true, ...options });
    } catch (error) {
      if (!isZkError(error, 'NODE_EXISTS')) throw error;
    }
  }

  /** So that two who are in each other's way do not stay there. */
  async #rest(tries: number, signal: AbortSignal | undefined): Promise<void> {
    const mostMs = Math.min(retryMaxMs, retryFirstMs * 2 ** tries);
    await pause(this.#clock, Math.random() * mostMs, signal ?? new AbortController().signal);
    signal?.throwIfAborted();
  }
}

function checkSize(texts: ReadonlyMap<string, string>): void {
  let bytes = 0;
  for (const text of texts.values()) bytes += Buffer.byteLength(text);
  if (bytes <= planBytesMax) return;
  const why = `${bytes} bytes of JSON in one write, and ${planBytesMax} fit; keep it in several keys, or elsewhere`;
  throw new ArgumentError('value', why);
}

/** A set tells its zxid by the Stat that it comes back with. */
function zxidOf(result: unknown): bigint | null {
  const { mzxid } = (result ?? {}) as { mzxid?: bigint };
  if (typeof mzxid === 'bigint') return mzxid;
  const { stat } = (result ?? {}) as { stat?: { czxid: bigint } | null };
  return stat?.czxid ?? null;
}
