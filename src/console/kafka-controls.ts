/**
 * Leaders of partitions, asked for by hand: the preferred replica of each, where it is alive and in sync.
 *
 * Shown first, asked only once a name was typed, and written down with who led before. It is asked of the
 * cluster's controller, in the node in which it looks for that: done means asked. There is no way back:
 * who led before is not preferred, and no such request is known to Kafka.
 */

import type { Client } from '../client/index.ts';
import {
  checkRequestsAreRead,
  electPreferred,
  layout08,
  noLeader,
  readBrokers,
  readController,
  readTopic,
} from '../kafka/index.ts';
import type { AuditLog } from './audit.ts';
import type { By } from './changes.ts';
import { ConsoleError } from './console-error.ts';
import type { ElectView } from './views.ts';

type Candidate = ElectView['candidates'][number];

export class KafkaControls {
  readonly #client: Client;
  readonly #audit: AuditLog;

  constructor(client: Client, audit: AuditLog) {
    this.#client = client;
    this.#audit = audit;
  }

  async elect(
    input: {
      readonly topic: string;
      readonly partitions?: readonly number[] | undefined;
      readonly dryRun: boolean;
      readonly confirm?: string | undefined;
    },
    { who }: By,
  ): Promise<ElectView> {
    const { topic, partitions, dryRun, confirm } = input;
    const candidates = await this.#candidates(topic, partitions);
    const able = candidates.filter(({ whyNot }) => whyNot === null);
    if (dryRun) return { candidates, confirm: topic, done: false };
    if (confirm !== topic) {
      throw new ConsoleError('CONFLICT', `type ${topic} to have its leaders elected`);
    }
    if (able.length === 0) {
      throw new ConsoleError('CONFLICT', 'no partition is led by another that could be changed');
    }
    const path = layout08.preferredElection.at();
    const text = (pick: (one: Candidate) => number | null) => {
      const lines = able.map((one) => `${topic}/${one.partition} ${pick(one) ?? 'nobody'}`);
      return Buffer.from(lines.join('\n')).subarray(0, 16_384).toString('base64');
    };
    const entry = { action: 'elect', path, who, note: topic, undo: 'no' } as const;
    try {
      await electPreferred(
        this.#client,
        able.map(({ partition }) => ({ topic, partition })),
      );
    } catch (error) {
      const note = `${topic}: ${error instanceof Error ? error.message : String(error)}`;
      this.#audit.add({ ...entry, ok: false, note, count: 0, before: null, after: null });
      throw error;
    }
    this.#audit.add({
      ...{ ...entry, ok: true, count: able.length },
      before: { data: text(({ leader }) => leader), version: null },
      after: { data: text(({ preferred }) => preferred), version: null },
    });
    return { candidates, confirm: topic, done: true };
  }

  async #candidates(
    topic: string,
    partitions: readonly number[] | undefined,
  ): Promise<Candidate[]> {
    if (topic.includes('/')) throw new ConsoleError('BAD_INPUT', 'topic: a topic is wanted');
    const [seen, brokers, controller] = await Promise.all([
      readTopic(this.#client, topic),
      readBrokers(this.#client),
      readController(this.#client),
      checkRequestsAreRead(this.#client),
    ]);
    if (seen === null) throw new ConsoleError('NOT_FOUND', 'there is no such topic');
    if (controller.brokerId === null) {
      throw new ConsoleError('CONFLICT', 'the cluster has no controller now: nobody would elect');
    }
    const live = new Set(brokers.map(({ id }) => id));
    return seen.partitions
      .filter(({ partition }) => partitions === undefined || partitions.includes(partition))
      .filter(({ state, replicas }) => state !== null && state.leader !== replicas[0])
      .map(({ partition, state, replicas }) => {
        const preferred = replicas[0]!;
        const isInSync = state!.isr.includes(preferred);
        return {
          partition,
          leader: state!.leader === noLeader ? null : state!.leader,
          preferred,
          whyNot: !live.has(preferred)
            ? `broker ${preferred} does not live`
            : isInSync
              ? null
              : `broker ${preferred} is not in sync`,
        };
      });
  }
}
