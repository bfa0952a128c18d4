/**
 * Counts what was done between two moments, how long each took, and what this process spent on it.
 *
 * With many in flight the samples are one in eight: taking the time of each would cost a fast client
 * a good part of what it spends itself.
 */

import { createHistogram, performance } from 'node:perf_hooks';
import type { Result } from './messages.ts';

const sampleEvery = 8;

export class Stopwatch {
  readonly #mask: number;
  #histogram = createHistogram();
  #startedMs = 0;
  #cpu: NodeJS.CpuUsage | undefined;
  #ops = 0;
  #opsBefore = 0;
  #begun = 0;
  #maxMs = 0;

  constructor(inFlight: number) {
    this.#mask = inFlight > 1 ? sampleEvery - 1 : 0;
  }

  /** Forgets what was before: warming up. */
  start(): void {
    this.#histogram = createHistogram();
    this.#opsBefore += this.#ops;
    this.#ops = 0;
    this.#maxMs = 0;
    this.#startedMs = performance.now();
    this.#cpu = process.cpuUsage();
  }

  /** The time at which an op begins, or 0 for one that is not sampled. */
  begin(): number {
    this.#begun += 1;
    return (this.#begun & this.#mask) === 0 ? performance.now() : 0;
  }

  end(begunMs: number): void {
    this.#ops += 1;
    if (begunMs === 0) return;
    this.#record(performance.now() - begunMs);
  }

  /** For who knows both times anyway, and they are the same for many ops. */
  count(begunMs: number, endedMs: number): void {
    this.#ops += 1;
    const tookMs = endedMs - begunMs;
    if (tookMs > this.#maxMs) this.#maxMs = tookMs;
    if ((this.#ops & this.#mask) === 0) this.#record(tookMs);
  }

  #record(tookMs: number): void {
    if (tookMs > this.#maxMs) this.#maxMs = tookMs;
    this.#histogram.record(Math.max(1, Math.round(tookMs * 1e6)));
  }

  stop(): Result {
    const cpu = process.cpuUsage(this.#cpu);
    return {
      ops: this.#ops,
      opsInAll: this.#opsBefore + this.#ops,
      seconds: (performance.now() - this.#startedMs) / 1e3,
      p50Us: this.#histogram.percentile(50) / 1e3,
      p99Us: this.#histogram.percentile(99) / 1e3,
      p999Us: this.#histogram.percentile(99.9) / 1e3,
      maxUs: this.#maxMs * 1e3,
      cpuUs: cpu.user + cpu.system,
    };
  }
}
