/**
 * A short load on the server, asked for by hand: how many requests a second it answers, and how fast.
 *
 * In: what to ask for and how much at once. Out: rate and percentiles, seen from the console, so with the way
 * there and back. One at a time, for a few seconds, over the console's own session. Writes go to an
 * ephemeral node that is made for it and taken away again.
 */

import { createHistogram } from 'node:perf_hooks';
import type { CallOptions, Client } from '../client/index.ts';
import type { AuditLog } from './audit.ts';
import type { By } from './changes.ts';
import { ConsoleError } from './console-error.ts';
import type { BenchView } from './views.ts';

const lastsMs = 3_000;
const dataBytes = 100;
/** Microseconds, up to a minute. */
const histogramMax = 60_000_000;

export class Bench {
  readonly #client: Client;
  readonly #audit: AuditLog;
  #isBusy = false;

  constructor(client: Client, audit: AuditLog) {
    this.#client = client;
    this.#audit = audit;
  }

  async run(
    { what, inFlight }: { what: BenchView['what']; inFlight: number },
    { who, call }: By,
  ): Promise<BenchView> {
    if (this.#isBusy) throw new ConsoleError('CONFLICT', 'one bench at a time');
    this.#isBusy = true;
    try {
      const view = await this.#measure(what, inFlight, call);
      const nothing = { before: null, after: null, undo: 'no' } as const;
      const note = `${what}, ${inFlight} at once: ${view.count} requests`;
      this.#audit.add({ action: 'bench', path: '/', who, ok: true, note, count: 1, ...nothing });
      return view;
    } finally {
      this.#isBusy = false;
    }
  }

  async #measure(what: BenchView['what'], inFlight: number, call: CallOptions): Promise<BenchView> {
    const client = this.#client;
    if (what === 'reads') return this.#load(what, inFlight, () => client.get('/', call));
    const data = Buffer.alloc(dataBytes, 'x');
    const { path } = await client.create('/drover-bench-', data, {
      ...call,
      mode: 'ephemeralSequential',
    });
    try {
      return await this.#load(what, inFlight, () => client.set(path, data, call));
    } finally {
      await client.delete(path);
    }
  }

  async #load(
    what: BenchView['what'],
    inFlight: number,
    ask: () => Promise<unknown>,
  ): Promise<BenchView> {
    const histogram = createHistogram({ highest: histogramMax });
    const startMs = performance.now();
    const lane = async () => {
      while (performance.now() - startMs < lastsMs) {
        const askedMs = performance.now();
        await ask();
        histogram.record(Math.max(1, Math.round((performance.now() - askedMs) * 1_000)));
      }
    };
    await Promise.all(Array.from({ length: inFlight }, lane));
    const overMs = performance.now() - startMs;
    const { count } = histogram;
    return {
      what,
      inFlight,
      count,
      atMs: Date.now(),
      ratePerS: (count * 1_000) / overMs,
      p50Ms: histogram.percentile(50) / 1_000,
      p99Ms: histogram.percentile(99) / 1_000,
      maxMs: histogram.max / 1_000,
    };
  }
}
