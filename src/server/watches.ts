/**
 * Who waits for which change, and telling them.
 *
 * Two tables, as in Apache: `data` (getData, exists, and everything persistent) and `child`
 * (getChildren, and the persistent ones that are not recursive). A link has at most one entry of each
 * kind per path, and each can be removed alone.
 *
 * In: watches as they are set, and the tree's events. Out: one frame for each event, the same bytes
 * for every link that may read the node. What always holds: a one-shot watch is gone once its event
 * came up, whether its link was allowed to hear of it or not.
 */

import { Writer } from '../jute/index.ts';
import { eventTypes, keeperStates, specialXids } from '../protocol/index.ts';
import type { TreeEvent } from '../tree/index.ts';
import { Tally } from './stats.ts';
import { type Watcher, WatchTable, watchKinds } from './watch-table.ts';

const builder = new Writer(256);

/** A notification. `zxid` is the txn's, or -1 for an event that a setWatches brought to light. */
export function eventFrame(type: TreeEvent['type'], path: string, zxid: number): Buffer {
  builder.truncate(0);
  const start = builder.beginFrame();
  builder.int(specialXids.notification);
  builder.longHalves(Math.floor(zxid / 0x1_0000_0000), zxid >>> 0);
  builder.int(0);
  builder.int(eventTypes[type]);
  builder.int(keeperStates.syncConnected);
  builder.ustring(path);
  builder.endFrame(start);
  return Buffer.from(builder.written());
}

export class Watches {
  readonly data = new WatchTable();
  readonly child = new WatchTable();
  /** How many waited for each event that somebody waited for. */
  readonly told: { readonly [T in TreeEvent['type']]: Tally } = {
    created: new Tally(),
    deleted: new Tally(),
    dataChanged: new Tally(),
    childrenChanged: new Tally(),
  };

  /** As Apache counts: a persistent watch stands in both tables. */
  get count(): number {
    return this.data.count + this.child.count;
  }

  get isEmpty(): boolean {
    return this.data.count === 0 && this.child.count === 0;
  }

  countOf(watcher: Watcher): number {
    return this.data.countOf(watcher) + this.child.countOf(watcher);
  }

  /** Of paths that are kept, in both tables. */
  get bytes(): number {
    return this.data.bytes + this.child.bytes;
  }

  bytesOf(watcher: Watcher): number {
    return this.data.bytesOf(watcher) + this.child.bytesOf(watcher);
  }

  forgetSpent(watcher: Watcher): void {
    this.data.forgetSpent(watcher);
    this.child.forgetSpent(watcher);
  }

  addPersistent(path: string, watcher: Watcher, recursive: boolean): void {
    if (recursive) {
      this.data.add(path, watcher, watchKinds.recursive);
      return;
    }
    this.data.add(path, watcher, watchKinds.persistent);
    this.child.add(path, watcher, watchKinds.persistent);
  }

  removeAll(watcher: Watcher): void {
    this.data.removeAll(watcher);
    this.child.removeAll(watcher);
  }

  notify(events: readonly TreeEvent[], zxid: number): void {
    for (const event of events) {
      if (event.type === 'childrenChanged') {
        this.#tell(event, zxid, this.child.trigger(event.path));
        continue;
      }
      const told = this.data.trigger(event.path);
      this.#tell(event, zxid, told);
      if (event.type !== 'deleted') continue;
      // A child watch on the node itself ends too; who had both hears of it once.
      const childTold = this.child.trigger(event.path);
      if (childTold.length > 0) {
        const already = new Set(told);
        this.#tell(
          event,
          zxid,
          childTold.filter((watcher) => !already.has(watcher)),
        );
      }
    }
  }

  #tell(event: TreeEvent, zxid: number, watchers: readonly Watcher[]): void {
    if (watchers.length === 0) return;
    this.told[event.type].add(watchers.length);
    const frame = eventFrame(event.type, event.path, zxid);
    for (const watcher of watchers) {
      if (watcher.mayRead(event.acl)) watcher.deliver(frame);
    }
  }
}
