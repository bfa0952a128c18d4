/**
 * Warns of records that are left out because their time cannot be believed, where the program does not
 * listen for them itself: nobody should lose records in silence.
 *
 * In: each such record. Out: a warning at once, and from then on at most one every ten seconds, with how
 * many there were since; the last when the run ends.
 */

import { type KafkaRecord, keyOf, type PartitionId } from '../kafka/index.ts';
import type { Clock, Timer } from '../support/index.ts';
import type { QuarantineReason } from './event-time.ts';

export interface LeftOutOptions {
  readonly group: string;
  readonly clock: Clock;
  /** @default process.emitWarning */
  readonly warn?: (message: string) => void;
}

const everyMs = 10_000;

export class LeftOut {
  readonly #options: LeftOutOptions;
  #untold = 0;
  #last = '';
  #timer: Timer | undefined;
  #isClosed = false;

  constructor(options: LeftOutOptions) {
    this.#options = options;
  }

  add(partition: PartitionId, record: KafkaRecord, reason: QuarantineReason): void {
    this.#untold += 1;
    this.#last = `${keyOf(partition)} offset ${record.offset} (${reason})`;
    if (this.#timer === undefined) this.#tell();
  }

  #tell(): void {
    this.#timer = undefined;
    if (this.#untold === 0) return;
    const { group, clock, warn = warnProcess } = this.#options;
    const what =
      this.#untold === 1
        ? `a record was left out, as its event time cannot be believed: ${this.#last}`
        : `${this.#untold} records were left out, as their event times cannot be believed; the last: ${this.#last}`;
    const how =
      'listen to "quarantined" or pass onQuarantine to handle them, or set quarantine to stop, clamp or deliver';
    this.#untold = 0;
    warn(`align ${group}: ${what}; ${how}`);
    if (!this.#isClosed) this.#timer = clock.after(everyMs, () => this.#tell(), true);
  }

  /** The run is over. */
  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#tell();
  }
}

function warnProcess(message: string): void {
  process.emitWarning(message, { type: 'DroverWarning', code: 'DROVER_RECORDS_LEFT_OUT' });
}
