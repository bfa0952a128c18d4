/**
 * How a process is doing: the delay of its event loop, its collections of garbage and its memory. A process
 * measures itself, so the server measures for a console that runs in another.
 */

import { monitorEventLoopDelay, PerformanceObserver } from 'node:perf_hooks';

/** How often the event loop is looked at: that much of each interval is no delay. */
const loopEveryMs = 10;

export class ProcessReadings {
  readonly #loop = monitorEventLoopDelay({ resolution: loopEveryMs });
  readonly #collections = new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) this.#gcMs = Math.max(this.#gcMs, duration);
  });
  /** The longest collection of garbage since the last look. */
  #gcMs = 0;

  constructor() {
    this.#loop.enable();
    this.#collections.observe({ entryTypes: ['gc'] });
  }

  /** Since the last call. */
  take(): Readonly<Record<'loopP99' | 'loopMax' | 'gcMax' | 'rss', number>> {
    const values = {
      loopP99: Math.max(0, this.#loop.percentile(99) / 1e6 - loopEveryMs),
      loopMax: Math.max(0, this.#loop.max / 1e6 - loopEveryMs),
      gcMax: this.#gcMs,
      rss: process.memoryUsage.rss(),
    };
    this.#loop.reset();
    this.#gcMs = 0;
    return values;
  }

  close(): void {
    this.#loop.disable();
    this.#collections.disconnect();
  }
}
