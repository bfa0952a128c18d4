/** What would be said with every request once it is so, and is told now and then. */

import { printable } from '../protocol/index.ts';
import type { Logger } from '../support/index.ts';
import type { Moment } from './moment.ts';
import type { OverQuota } from './prepare.ts';

const saidEveryMs = 10_000;

export class NowAndThen {
  readonly #logger: Logger;
  readonly #moment: Moment;
  #slowSaidMs = -Infinity;
  #quotaSaidMs = -Infinity;

  constructor(logger: Logger, moment: Moment) {
    this.#logger = logger;
    this.#moment = moment;
  }

  /** A slow disk: every write waits for it. `slowSoFar` is how often it was. */
  slowLog(tookMs: number, txns: number, slowSoFar: number): void {
    const { nowMs } = this.#moment;
    if (nowMs - this.#slowSaidMs < saidEveryMs) return;
    this.#slowSaidMs = nowMs;
    const fields = { tookMs: Math.round(tookMs), txns, slowSoFar };
    this.#logger.warn(fields, 'the disk was slow to take the log, and every write waits for it');
  }

  /** All that a soft limit does. */
  overQuota({ path, what, sum, limit, isHard }: OverQuota): void {
    const { nowMs } = this.#moment;
    if (nowMs - this.#quotaSaidMs < saidEveryMs) return;
    this.#quotaSaidMs = nowMs;
    const fields = { path: printable(path), [what]: `${sum}`, limit: `${limit}`, hard: isHard };
    this.#logger.warn(fields, 'a quota is exceeded');
  }
}
