/** As much of kafkajs 2.x as the adapter uses, so that nothing of it has to be installed to build. */

import type { KafkaJsCluster } from './kafkajs-fetches.ts';

export interface KafkaJs {
  consumer(config: {
    readonly groupId: string;
    readonly maxWaitTimeInMs: number;
    readonly partitionAssigners: KafkaJsAssigner[];
  }): KafkaJsConsumer;
  admin(): KafkaJsAdmin;
}

export interface KafkaJsPartitions {
  readonly topic: string;
  partitions: number[];
}

export interface KafkaJsConsumer {
  readonly events: {
    readonly GROUP_JOIN: 'consumer.group_join';
    readonly CRASH: 'consumer.crash';
    readonly END_BATCH_PROCESS: 'consumer.end_batch_process';
  };
  on(
    event: 'consumer.group_join',
    listener: (event: { payload: { memberAssignment: Record<string, number[]> } }) => void,
  ): unknown;
  on(
    event: 'consumer.crash',
    listener: (event: { payload: { error: Error; restart: boolean } }) => void,
  ): unknown;
  on(
    event: 'consumer.end_batch_process',
    listener: (event: { payload: KafkaJsBatchEnd }) => void,
  ): unknown;
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  subscribe(subscription: { topics: string[] }): Promise<void>;
  run(config: {
    autoCommit: boolean;
    eachBatchAutoResolve: boolean;
    partitionsConsumedConcurrently: number;
    eachBatch(payload: {
      batch: KafkaJsBatch;
      resolveOffset: (offset: string) => void;
    }): Promise<void>;
  }): Promise<void>;
  pause(partitions: KafkaJsPartitions[]): void;
  resume(partitions: KafkaJsPartitions[]): void;
  seek(at: { topic: string; partition: number; offset: string }): void;
}

export interface KafkaJsBatch {
  readonly topic: string;
  readonly partition: number;
  readonly highWatermark: string;
  readonly messages: KafkaJsMessage[];
  /** There, though its types do not say so. */
  readonly fetchedOffset?: string;
  lastOffset(): string;
}

export interface KafkaJsBatchEnd {
  readonly topic: string;
  readonly partition: number;
  readonly highWatermark: string;
  /** Messages that were for `eachBatch`: it is not called for none. */
  readonly batchSize: number;
  readonly firstOffset: string | null;
  readonly lastOffset: string;
}

export interface KafkaJsMessage {
  readonly offset: string;
  readonly timestamp: string;
  readonly key?: Buffer | null;
  readonly value?: Buffer | null;
  readonly headers?: object;
}

export interface KafkaJsAdmin {
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  fetchTopicOffsets(
    topic: string,
  ): Promise<readonly { partition: number; high: string; low: string }[]>;
  fetchTopicOffsetsByTimestamp(
    topic: string,
    timestamp?: number,
  ): Promise<readonly { partition: number; offset: string }[]>;
  describeConfigs(request: {
    includeSynonyms: boolean;
    resources: { type: number; name: string; configNames: string[] }[];
  }): Promise<{ resources: readonly { configEntries: readonly { configValue: string }[] }[] }>;
}

export interface KafkaJsMetadata extends KafkaJsCluster {
  findTopicPartitionMetadata(topic: string): readonly { readonly partitionId: number }[];
  refreshMetadata(): Promise<void>;
}

export type KafkaJsAssigner = (config: { readonly cluster: KafkaJsMetadata }) => {
  readonly name: string;
  readonly version: number;
  protocol(subscription: { readonly topics: string[] }): { name: string; metadata: Buffer };
  assign(group: {
    readonly members: readonly { readonly memberId: string }[];
    readonly topics: readonly string[];
  }): Promise<{ memberId: string; memberAssignment: Buffer }[]>;
};
