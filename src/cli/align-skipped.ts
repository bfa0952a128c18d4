/**
 * The records that a run leaves out because their time cannot be believed: told of, counted, and the end
 * of the run where they are all that a partition has.
 *
 * In: each of them. Out: a line for the first ten, a summary at the end, and the records themselves for
 * whoever keeps them. Where the first thousand of a partition have no time the field is wrong, and the run
 * is over: until that is known they are held here, so that nothing of them is kept beside the output.
 */

import type { QuarantineReason } from '../align/index.ts';
import { type KafkaRecord, keyOf, type PartitionId } from '../kafka/index.ts';
import { reasonTexts } from './align-words.ts';
import { CommandError } from './exit-codes.ts';
import { escaped } from './output.ts';
import { thousands } from './status.ts';

export interface SkippedOptions {
  /** The event time, as people named it. */
  readonly field: string;
  /** Records are left out, and not handed out in another way. */
  readonly isSkipping: boolean;
  readonly tell: (line: string) => void;
  /** Where the reading of a partition began. */
  readonly startOf: (id: PartitionId) => bigint | null;
  readonly keep: (id: PartitionId, record: KafkaRecord) => void;
  readonly onHopeless: (error: CommandError) => void;
}

/** As long as nothing else came: the records without a time that a partition began with. */
interface Beginning {
  readonly id: PartitionId;
  next: bigint;
  readonly held: KafkaRecord[];
}

const toldMax = 10;
const hopelessCount = 1_000;
const textMax = 200;

export class SkippedRecords {
  readonly #options: SkippedOptions;
  readonly #counts = new Map<QuarantineReason, number>();
  /** Null: something else came. */
  readonly #beginnings = new Map<string, Beginning | null>();
  #count = 0;

  constructor(options: SkippedOptions) {
    this.#options = options;
  }

  /** How many were left out. */
  get count(): number {
    return this.#options.isSkipping ? this.#count : 0;
  }

  add(id: PartitionId, record: KafkaRecord, reason: QuarantineReason): void {
    this.#count += 1;
    this.#counts.set(reason, (this.#counts.get(reason) ?? 0) + 1);
    this.#tell(id, record, reason);
    if (!this.#options.isSkipping) return;
    const beginning = reason === 'missing' ? this.#beginningOf(id, record) : null;
    if (beginning === null) {
      this.release(id);
      this.#options.keep(id, record);
      return;
    }
    beginning.held.push(record);
    beginning.next = record.offset + 1n;
    if (beginning.held.length === hopelessCount) {
      this.#options.onHopeless(this.#hopeless(id, beginning.held[0]!));
    }
  }

  #tell(id: PartitionId, { offset }: KafkaRecord, reason: QuarantineReason): void {
    const { tell, field, isSkipping } = this.#options;
    if (this.#count > toldMax) return;
    const where = `${keyOf(id)} offset ${offset}`;
    tell(`${where}: ${escaped(field)} has ${reasonTexts[reason]}${isSkipping ? '; left out' : ''}`);
    if (this.#count === toldMax)
      tell('further records like these are counted, and not told one by one');
  }

  #beginningOf(id: PartitionId, { offset }: KafkaRecord): Beginning | null {
    const key = keyOf(id);
    const known = this.#beginnings.get(key);
    if (known !== undefined) return known?.next === offset ? known : null;
    const isFirst = this.#options.startOf(id) === offset;
    const beginning = isFirst ? { id, next: offset, held: [] } : null;
    this.#beginnings.set(key, beginning);
    return beginning;
  }

  /** The partition has other records too. */
  release(id: PartitionId): void {
    const key = keyOf(id);
    const beginning = this.#beginnings.get(key);
    this.#beginnings.set(key, null);
    for (const record of beginning?.held ?? []) this.#options.keep(id, record);
  }

  releaseAll(): void {
    for (const beginning of this.#beginnings.values()) {
      if (beginning !== null) this.release(beginning.id);
    }
  }

  #hopeless(id: PartitionId, first: KafkaRecord): CommandError {
    const text = escaped((first.value?.toString('utf8') ?? 'null').slice(0, textMax));
    const what = `the first ${thousands(hopelessCount)} records of ${keyOf(id)} have no time in ${escaped(this.#options.field)}`;
    return new CommandError(
      'usage',
      `${what}; give the right field with --event-time. The first of them: ${text}`,
    );
  }

  /** Null where none was. */
  get summary(): string | null {
    if (this.count === 0) return null;
    const reasons = [...this.#counts].map(
      ([reason, n]) => `${thousands(n)} with ${reasonTexts[reason]}`,
    );
    const what = this.count === 1 ? 'a record was' : `${thousands(this.count)} records were`;
    return `${what} left out: ${reasons.join(', ')}, in ${escaped(this.#options.field)}`;
  }
}
