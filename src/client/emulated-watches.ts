/**
 * The persistent watches that are kept up by one-shot watches, since the server has no other.
 *
 * In: a listener, with its kind and path, as `addWatch` names them. Out: what an `EmulatedWatch` finds,
 * told to that listener until it is removed. The listener stands in `Watches`, under a kind that no event
 * is for, so it is found and removed there as any other.
 */

import { ZkError } from '../protocol/index.ts';
import { unlessAborted } from '../support/index.ts';
import type { CallOptions, Core } from './core.ts';
import { EmulatedWatch, type EmulatedWatchOptions } from './emulated-watch.ts';
import { type Listener, type WatchKind, watchedNodesMax } from './watches.ts';

export interface EmulateOptions
  extends Pick<EmulatedWatchOptions, 'path' | 'recursive' | 'known'>,
    Partial<Pick<EmulatedWatchOptions, 'nodesMax' | 'onChange' | 'onFailed'>> {
  readonly listener: Listener;
}

export class EmulatedWatches {
  readonly #core: Core;
  /** By kind and path, then by listener. */
  readonly #watches = new Map<string, Map<Listener, EmulatedWatch>>();

  constructor(core: Core) {
    this.#core = core;
  }

  start({ listener, path, recursive, known, ...more }: EmulateOptions): EmulatedWatch {
    const core = this.#core;
    const kind = kindOf(recursive);
    const full = core.toServer(path);
    core.watches.add(kind, full, listener);
    const there = this.#watches.get(placeOf(kind, full)) ?? new Map<Listener, EmulatedWatch>();
    this.#watches.set(placeOf(kind, full), there);
    const before = there.get(listener);
    if (before !== undefined) {
      before.startAnew(); // its session may be another
      return before;
    }
    const watch = new EmulatedWatch({
      core,
      path,
      recursive,
      known,
      nodesMax: watchedNodesMax,
      // A server tells of a deletion before any answer shows the node that came after it; here only the
      // zxid says which of the two is newer.
      onChange: ({ type, path }, zxid) => core.tell([listener], { type, path, zxid }),
      onFailed: () => {
        core.watches.remove(kind, full, listener);
        core.tell([listener], { type: 'persistentWatchRemoved', path, zxid: null });
      },
      ...more,
    });
    there.set(listener, watch);
    return watch;
  }

  /** As `start`, and waits until every node is watched. Called off, it leaves no watch behind. */
  async started(options: EmulateOptions, { signal, timeoutMs }: CallOptions): Promise<void> {
    const core = this.#core;
    const { path, listener } = options;
    const limitMs = timeoutMs ?? core.settings.requestTimeoutMs ?? Number.POSITIVE_INFINITY;
    const late = new AbortController();
    const timeIsOver = () => {
      const detail = `${limitMs} ms are over`;
      late.abort(new ZkError('OPERATION_TIMEOUT', { op: 'addWatch', path, detail }));
    };
    const timer = Number.isFinite(limitMs) ? core.clock.after(limitMs, timeIsOver) : undefined;
    try {
      const { ready } = this.start(options);
      await unlessAborted(ready, ...(signal ? [late.signal, signal] : [late.signal]));
    } catch (error) {
      core.watches.remove(kindOf(options.recursive), core.toServer(path), listener);
      throw error;
    } finally {
      timer?.cancel();
    }
  }

  /** The connection has moved to a server that cannot keep up the persistent watches set before. */
  takeOver(): void {
    for (const [kind, full, listener] of this.#core.watches.persistent()) {
      if (this.#core.isDirect(listener)) continue; // a stream, which knows what it has missed
      this.#core.watches.remove(kind, full, listener);
      const path = this.#core.toClient(full);
      this.start({ path, recursive: kind === 'recursive', listener });
    }
  }

  stop(kind: WatchKind, full: string, listener: Listener): void {
    const place = placeOf(kind, full);
    const there = this.#watches.get(place);
    const watch = there?.get(listener);
    if (there === undefined || watch === undefined) return;
    there.delete(listener);
    if (there.size === 0) this.#watches.delete(place);
    watch.stop();
  }

  /** Watches end with their session, but for those of streams, which begin anew in the next one. */
  sessionEnded(): void {
    for (const [place, there] of this.#watches) {
      for (const [listener, watch] of there) {
        if (this.#core.isDirect(listener)) continue;
        there.delete(listener);
        watch.stop();
      }
      if (there.size === 0) this.#watches.delete(place);
    }
  }
}

export function kindOf(recursive: boolean): WatchKind {
  return recursive ? 'emulatedRecursive' : 'emulatedPersistent';
}

function placeOf(kind: WatchKind, full: string): string {
  return `${kind} ${full}`;
}
