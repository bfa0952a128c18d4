/**
 * What kafkajs fetches, put right before it is looked at. By itself kafkajs (up to 2.2.4)
 *
 *   - hands out records of aborted transactions: where two of these overlap, where reading begins inside
 *     of several, and behind a record of theirs whose key is four zero bytes, which it takes for a mark;
 *   - does not say where it went on from when the first offsets that it asked for hold no record any more;
 *   - asks for the same offset for ever where compaction has left nothing but batches without a record;
 *   - goes to the end, and waits there, where the offset that it asks for was deleted meanwhile.
 *
 * In: the cluster that kafkajs hands to its assigners, whose brokers it fetches from. Out: answers in which
 * every aborted record, and an offset that holds none, is a mark of a transaction: these kafkajs passes
 * over, and it tells from where to where. And word of offsets that are out of range.
 */

export interface KafkaJsCluster {
  findBroker(node: { readonly nodeId: string }): Promise<KafkaJsBroker>;
}

export interface KafkaJsBroker {
  fetch(request: FetchRequest): Promise<FetchAnswer>;
}

export interface FetchRequest {
  readonly topics: readonly {
    readonly topic: string;
    readonly partitions: readonly { readonly partition: number; readonly fetchOffset: string }[];
  }[];
}

export interface FetchAnswer {
  readonly responses: readonly {
    readonly topicName: string;
    readonly partitions: FetchedPartition[];
  }[];
}

export interface FetchedPartition {
  readonly partition: number;
  readonly highWatermark: string;
  readonly lastStableOffset?: string;
  readonly preferredReadReplica?: number;
  readonly abortedTransactions?: readonly AbortedTransaction[] | null;
  readonly messages: FetchedMessage[];
}

interface AbortedTransaction {
  readonly producerId: string;
  readonly firstOffset: string;
}

export interface FetchedMessage {
  readonly offset: string;
  readonly key?: Buffer | null;
  /** A mark of a transaction; what marks, and what is passed over. */
  readonly isControlRecord?: boolean;
  /** There from Kafka 0.11 on. */
  readonly batchContext?: {
    readonly firstOffset: string;
    readonly lastOffsetDelta: number;
    readonly producerId: string;
    readonly inTransaction: boolean;
  };
}

export interface FetchHooks {
  /** Where a broker brings nothing, there is nothing: else it may have a reason of its own. */
  readonly isCompacted: (topic: string) => Promise<boolean>;
  readonly onOutOfRange: (topic: string, partition: number, offset: bigint) => void;
}

export function repairFetches(cluster: KafkaJsCluster, hooks: FetchHooks): void {
  const findBroker = cluster.findBroker.bind(cluster);
  const repaired = new WeakSet<KafkaJsBroker>();
  cluster.findBroker = async (node) => {
    const broker = await findBroker(node);
    if (broker && !repaired.has(broker)) {
      repaired.add(broker);
      repair(broker, hooks);
    }
    return broker;
  };
}

function repair(broker: KafkaJsBroker, { isCompacted, onOutOfRange }: FetchHooks): void {
  const fetch = broker.fetch.bind(broker);
  /** A broker that has brought enough for other partitions brings nothing for this one: asked alone it does. */
  const alone = async (
    request: FetchRequest,
    topic: string,
    part: FetchedPartition,
    from: bigint,
  ) => {
    const asked = request.topics.find((one) => one.topic === topic)!.partitions;
    const partitions = asked.filter(({ partition }) => partition === part.partition);
    const { responses } = await fetch({ ...request, topics: [{ topic, partitions }] });
    const answer = responses[0]?.partitions[0] ?? part;
    if (!isSilent(answer, from) || !(await isCompacted(topic))) return answer;
    return { ...answer, messages: [markAt(from)] };
  };
  broker.fetch = async (request) => {
    const answer = await fetch(request).catch((error: FetchError) => {
      const { name, topic = '', partition = -1 } = error;
      const from = askedAt(request, topic, partition);
      const isOut = name === 'KafkaJSOffsetOutOfRange' && from !== undefined;
      if (isOut) onOutOfRange(topic, partition, from);
      throw error;
    });
    for (const { topicName, partitions } of answer.responses) {
      for (const [i, part] of partitions.entries()) {
        const from = askedAt(request, topicName, part.partition);
        if (from === undefined) continue;
        const whole = isSilent(part, from) ? await alone(request, topicName, part, from) : part;
        partitions[i] = putRight(whole, from);
      }
    }
    return answer;
  };
}

function askedAt(request: FetchRequest, topic: string, partition: number): bigint | undefined {
  const of = request.topics.find((one) => one.topic === topic)?.partitions;
  const offset = of?.find((one) => one.partition === partition)?.fetchOffset;
  return offset === undefined ? undefined : BigInt(offset);
}

/** Nothing came, though what was asked for is not the end, and nobody else is to be asked for it. */
function isSilent(part: FetchedPartition, from: bigint): boolean {
  if (part.messages.length > 0 || (part.preferredReadReplica ?? -1) !== -1) return false;
  const stable = BigInt(part.lastStableOffset ?? -1);
  return from < (stable >= 0n ? stable : BigInt(part.highWatermark));
}

function putRight(part: FetchedPartition, from: bigint): FetchedPartition {
  const messages = withoutAborted(part);
  const last = messages.at(-1);
  if (last === undefined) return part;
  const end = endOf(last);
  const first = messages.find(({ offset }) => BigInt(offset) >= from);
  if (end >= from && (first === undefined || BigInt(first.offset) > from)) {
    messages.unshift(markAt(from));
  }
  if (end > BigInt(last.offset)) messages.push(markAt(end));
  return { ...part, abortedTransactions: [], messages };
}

/** All of them; those of aborted transactions as marks. */
function withoutAborted({ abortedTransactions, messages }: FetchedPartition): FetchedMessage[] {
  if (!abortedTransactions?.length) return [...messages];
  // Brokers list them by their end.
  const ahead = abortedTransactions
    .map(({ producerId, firstOffset }) => ({ producerId, firstOffset: BigInt(firstOffset) }))
    .sort((a, b) => (a.firstOffset < b.firstOffset ? -1 : a.firstOffset > b.firstOffset ? 1 : 0));
  const aborted = new Set<string>();
  return messages.map((message) => {
    const offset = BigInt(message.offset);
    while (ahead.length > 0 && ahead[0]!.firstOffset <= offset) {
      aborted.add(ahead.shift()!.producerId);
    }
    const batch = message.batchContext;
    if (batch === undefined || !aborted.has(batch.producerId)) return message;
    if (message.isControlRecord) {
      if (isAbort(message)) aborted.delete(batch.producerId);
      return message;
    }
    return batch.inTransaction ? { ...message, isControlRecord: true } : message;
  });
}

/** Of several partitions that fail the first is named. */
type FetchError = Error & { readonly topic?: string; readonly partition?: number };

/** A mark's key is a version and a kind, two bytes each; kind 0 is an abort, 1 a commit. */
function isAbort({ key }: FetchedMessage): boolean {
  return key != null && key.length >= 4 && key.readInt16BE(2) === 0;
}

/** The last offset of a message's batch: where compaction took its last records, beyond the last of these. */
function endOf({ offset, batchContext }: FetchedMessage): bigint {
  if (batchContext === undefined) return BigInt(offset);
  return BigInt(batchContext.firstOffset) + BigInt(batchContext.lastOffsetDelta);
}

function markAt(offset: bigint): FetchedMessage {
  return { offset: String(offset), key: null, isControlRecord: true };
}
