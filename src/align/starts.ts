/**
 * Where a partition is opened: at the later of the last cut and the last handover, or where the caller
 * said, when it was never read. What the source does not have any more is told, and begun anew.
 */

import { isZkError } from '../client/index.ts';
import {
  isReaderError,
  keyOf,
  type OwnedPartition,
  type PartitionReader,
  type StartOffset,
} from '../kafka/index.ts';
import type { AlignOptions, AlignSettings } from './align-options.ts';
import { readCut, startPoint } from './cuts.ts';
import type { Handovers } from './handovers.ts';
import type { Opened } from './lane-options.ts';
import { type AlignPaths, parseLimit, type StoredCut } from './layout.ts';
import type { AlignClient } from './session.ts';

export class Starts {
  readonly #client: AlignClient;
  readonly #paths: AlignPaths;
  readonly #handovers: Handovers;
  readonly #options: AlignOptions;
  readonly #settings: AlignSettings;
  readonly #onProblem: (where: string, error: unknown) => void;
  /** The last cut that was read: all partitions that are opened at once need the same. */
  #cut: { readonly node: string; readonly found: Promise<StoredCut | null> } | undefined;

  constructor(
    client: AlignClient,
    paths: AlignPaths,
    handovers: Handovers,
    options: AlignOptions,
    settings: AlignSettings,
    onProblem: (where: string, error: unknown) => void,
  ) {
    this.#client = client;
    this.#paths = paths;
    this.#handovers = handovers;
    this.#options = options;
    this.#settings = settings;
    this.#onProblem = onProblem;
  }

  async open(owned: OwnedPartition, signal: AbortSignal, at?: bigint): Promise<Opened> {
    if (at !== undefined) return { reader: await this.#openAt(owned, at, signal), from: null };
    const [cut, handover] = await Promise.all([this.#lastCut(), this.#handovers.read(owned)]);
    const from = startPoint(owned, { cut, handover, allowanceMs: this.#settings.allowanceMs });
    const offset = from?.offset ?? (await this.#first(owned));
    const reader = await this.#openAt(owned, offset, signal);
    // What was stored is gone from the source: what was known of it does not count either.
    if (from !== null && reader.position !== from.offset) {
      return { reader, from: { offset: reader.position, passes: [] } };
    }
    return { reader, from };
  }

  async #first(owned: OwnedPartition): Promise<StartOffset> {
    const { source, startFrom = 'earliest' } = this.#options;
    const { fromMs, allowanceMs } = this.#settings;
    // By the record's own timestamp, which a field of the value need not follow.
    if (fromMs === null || (this.#options.eventTime ?? 'timestamp') !== 'timestamp')
      return startFrom;
    return source.offsetForTime(owned, Math.max(0, fromMs - allowanceMs));
  }

  async #openAt(
    owned: OwnedPartition,
    at: StartOffset,
    signal: AbortSignal,
  ): Promise<PartitionReader> {
    const { source, startFrom = 'earliest' } = this.#options;
    try {
      return await source.open(owned, at, { signal });
    } catch (error) {
      if (!isReaderError(error, 'OFFSET_OUT_OF_RANGE') || typeof at !== 'bigint') throw error;
      this.#onProblem(keyOf(owned), error);
      return source.open(owned, startFrom, { signal });
    }
  }

  async #lastCut(): Promise<StoredCut | null> {
    try {
      const { data } = await this.#client.get(this.#paths.limit);
      const pointer = data === null ? null : parseLimit(data, this.#paths.limit).cut;
      if (pointer === null) return null;
      if (this.#cut?.node !== pointer.node) {
        const found = readCut(this.#client, this.#paths, pointer);
        const cut = { node: pointer.node, found };
        this.#cut = cut;
        found.catch(() => {
          if (this.#cut === cut) this.#cut = undefined; // told to who waits; the next reads anew
        });
      }
      return await this.#cut!.found;
    } catch (error) {
      if (isZkError(error, 'NO_NODE')) return null;
      throw error;
    }
  }
}
