/**
 * Handovers: how far whoever let go of a partition was, for whoever has it next.
 *
 *   /align/[group]/handovers/[topic]/[partition]
 *
 * In: owned partitions that are let go of, each with how far it is done. Out: their nodes, written only
 * while the partition is still ours: the server looks, in the same transaction. A member that leaves lets
 * go of thousands at once: what waits is written together, one transaction after the other, each of a
 * bounded size. Where one of them fails, all of its partitions are written by themselves, so that each
 * fails for its own reason alone.
 */

import { isZkError, type MultiOp } from '../client/index.ts';
import { ensurePath, keyOf, type OwnedPartition, type PartitionId } from '../kafka/index.ts';
import { type Deferred, deferred } from '../support/index.ts';
import { type AlignPaths, formatHandover, type Handover, parseHandover } from './layout.ts';
import type { AlignClient } from './session.ts';

interface Waiting {
  readonly owned: OwnedPartition;
  readonly path: string;
  readonly data: string;
  readonly result: Deferred<void>;
}

/** A server takes a megabyte at a time unless it is told otherwise; one of them is a few kilobytes at most. */
const batchMax = 128;
const batchBytesMax = 256 * 1024;
/** How often the node may come and go between a look and a write. */
const triesMax = 3;

export class Handovers {
  readonly #client: AlignClient;
  readonly #paths: AlignPaths;
  /** Partitions whose node is there, as far as we know. */
  readonly #made = new Set<string>();
  readonly #waiting: Waiting[] = [];
  #isWriting = false;

  constructor(client: AlignClient, paths: AlignPaths) {
    this.#client = client;
    this.#paths = paths;
  }

  async read(partition: PartitionId): Promise<Handover | null> {
    const path = this.#paths.handover(partition);
    try {
      const { data } = await this.#client.get(path);
      this.#made.add(keyOf(partition));
      return parseHandover(data, path);
    } catch (error) {
      if (isZkError(error, 'NO_NODE')) return null;
      throw error;
    }
  }

  /** Rejects when the partition is not ours any more. */
  write(owned: OwnedPartition, handover: Handover): Promise<void> {
    const path = this.#paths.handover(owned);
    const one = { owned, path, data: formatHandover(handover), result: deferred() };
    this.#waiting.push(one);
    if (!this.#isWriting) {
      this.#isWriting = true;
      queueMicrotask(() => void this.#writeAll());
    }
    return one.result.promise;
  }

  /** Never rejects: each tells its own. */
  async #writeAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#take();
      if (await this.#writeBatch(batch)) {
        for (const { result } of batch) result.resolve();
      } else {
        const each = batch.map((one) =>
          this.#writeOne(one).then(one.result.resolve, one.result.reject),
        );
        await Promise.all(each);
      }
    }
    this.#isWriting = false;
  }

  #take(): Waiting[] {
    let [count, bytes] = [0, 0];
    for (const { path, data } of this.#waiting.slice(0, batchMax)) {
      bytes += 2 * path.length + data.length;
      if (count > 0 && bytes > batchBytesMax) break;
      count += 1;
    }
    return this.#waiting.splice(0, count);
  }

  /** False: it did not come about, or that is not known. Written again they are the same. */
  async #writeBatch(batch: readonly Waiting[]): Promise<boolean> {
    if (batch.length < 2 || batch.some(({ owned }) => owned.signal.aborted)) return false;
    const ops = batch.flatMap(({ owned, path, data }): MultiOp[] => [
      checkOf(owned),
      { op: this.#made.has(keyOf(owned)) ? 'set' : 'create', path, data },
    ]);
    try {
      const folders = new Set(batch.map(({ owned }) => this.#folderOf(owned)));
      for (const folder of folders) await ensurePath(this.#client, folder);
      await this.#client.multi(ops);
    } catch {
      return false; // what it was is told to each of them, when it is tried by itself
    }
    for (const { owned } of batch) this.#made.add(keyOf(owned));
    return true;
  }

  #folderOf({ topic }: PartitionId): string {
    return `${this.#paths.handovers}/${topic}`;
  }

  async #writeOne({ owned, path, data }: Waiting): Promise<void> {
    const check = checkOf(owned);
    for (let tries = 1; ; tries++) {
      owned.signal.throwIfAborted();
      try {
        await this.#client.multi([check, { op: 'set', path, data }]);
        return;
      } catch (error) {
        if (!isZkError(error, 'NO_NODE') || tries === triesMax) throw error;
      }
      // There is none yet; or the ownership is gone, and then this is refused as well.
      await ensurePath(this.#client, this.#folderOf(owned));
      try {
        await this.#client.multi([check, { op: 'create', path, data }]);
        return;
      } catch (error) {
        if (!isZkError(error, 'NODE_EXISTS')) throw error;
      }
    }
  }
}

/** Only while the partition is still ours. */
function checkOf({ path, version }: OwnedPartition): MultiOp {
  return { op: 'check', path, version };
}
