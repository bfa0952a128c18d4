/**
 * What a configuration was before: for every write a node with the same data, made in the same
 * transaction.
 *
 *   <base>/_history/<key>/<mark>-<number>     the number counts up, the mark is the writer's own
 *
 * So the czxid of an entry is the mzxid of the write, and that zxid is the version of the value. By
 * its mark a writer whose reply was lost finds out whether its write took place. The oldest entries
 * go with the write that makes them too many.
 */

import { type CallOptions, type Client, isZkError, type MultiOp } from '../client/index.ts';
import { childOf } from '../protocol/index.ts';

export const historyName = '_history';

export interface HistoryEntry {
  /** The transaction that wrote it. */
  readonly version: bigint;
  /** By the server's clock, in milliseconds since 1970. */
  readonly writtenMs: number;
  /** As it stood in the node. */
  readonly data: Buffer | null;
}

export class ConfigHistory {
  readonly #client: Client;
  readonly #path: string;
  readonly #entriesMax: number;

  constructor(client: Client, base: string, entriesMax: number) {
    this.#client = client;
    this.#path = childOf(base, historyName);
    this.#entriesMax = entriesMax;
  }

  pathOf(key: string): string {
    return childOf(this.#path, key);
  }

  get isKept(): boolean {
    return this.#entriesMax > 0;
  }

  /** Newest first. */
  async list(key: string, options: CallOptions): Promise<HistoryEntry[]> {
    const names = (await this.#names(key, options)).reverse();
    const entries = await Promise.all(
      names.map(async (name) => {
        try {
          const { data, stat } = await this.#client.get(childOf(this.pathOf(key), name), options);
          return { version: stat.czxid, writtenMs: Number(stat.ctime), data };
        } catch (error) {
          if (isZkError(error, 'NO_NODE')) return null; // too old, as of just now
          throw error;
        }
      }),
    );
    return entries.filter((entry) => entry !== null);
  }

  /** What a write of `data` does to the history, in the same transaction. */
  async record(key: string, data: string, mark: string, options: CallOptions): Promise<MultiOp[]> {
    if (!this.isKept) return [];
    const path = this.pathOf(key);
    await this.#ensure(path, options);
    const names = await this.#names(key, options);
    const tooMany = names.slice(0, Math.max(0, names.length + 1 - this.#entriesMax));
    return [
      { op: 'create', path: childOf(path, `${mark}-`), data, mode: 'persistentSequential' },
      ...tooMany.map((name) => ({ op: 'delete', path: childOf(path, name) }) as const),
    ];
  }

  /** The version that the write with this mark has made; null when it has left no trace. */
  async find(key: string, mark: string, options: CallOptions): Promise<bigint | null> {
    const name = (await this.#names(key, options)).find((one) => one.startsWith(`${mark}-`));
    if (name === undefined) return null;
    const stat = await this.#client.exists(childOf(this.pathOf(key), name), options);
    return stat?.czxid ?? null;
  }

  /** Whether no entry behind this version can have been taken away for being too old. */
  async hasAllSince(key: string, version: bigint | null, options: CallOptions): Promise<boolean> {
    const names = await this.#names(key, options);
    if (names.length < this.#entriesMax) return this.isKept;
    const oldest = await this.#client.exists(childOf(this.pathOf(key), names[0]!), options);
    return oldest !== null && version !== null && oldest.czxid <= version;
  }

  /** Oldest first. */
  async #names(key: string, options: CallOptions): Promise<string[]> {
    try {
      const names = await this.#client.children(this.pathOf(key), options);
      // Around 2^31 the number that is shortly ahead, modulo 2^32, is the later one.
      return names.sort((a, b) => (numberOf(a) - numberOf(b)) | 0);
    } catch (error) {
      if (isZkError(error, 'NO_NODE')) return [];
      throw error;
    }
  }

  async #ensure(path: string, options: CallOptions): Promise<void> {
    if ((await this.#client.exists(path, options)) !== null) return;
    try {
      await this.#client.create(path, '', { parents: true, ...options });
    } catch (error) {
      if (!isZkError(error, 'NODE_EXISTS')) throw error;
    }
  }
}

/** Past 2^31-1 the server's counter goes on below zero, and its sign stands behind the mark's own dash. */
function numberOf(name: string): number {
  return Number(/-(-?\d+)$/.exec(name)?.[1]);
}
