/**
 * What stories of aligned groups stand on: topic t as files in a folder of the test's own, and members
 * of group g that read it minute by minute. A record's value is `partition:minute`.
 *
 * In: `useAlignWorld()` once in a file of stories. The folder goes after each test.
 */

import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach } from 'vitest';
import { type Aligner, type AlignOptions, align } from '../src/align/index.ts';
import type { Client, ClientOptions } from '../src/client/index.ts';
import { NdjsonSource } from '../src/kafka/index.ts';
import type { Zk } from './zk.ts';

/** A whole minute. */
export const base = 1_700_000_040_000;
export const minute = 60_000;

export interface Run {
  readonly client: Client;
  readonly run: Aligner;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface AlignWorld {
  readonly directory: string;
  /** Writes partitions of topic t: the minutes at which each has records. */
  partitions(...times: (readonly number[])[]): Promise<void>;
  append(partition: number, minutes: readonly number[]): Promise<void>;
  /** A member that reads so many partitions, with a client of its own. */
  start(
    zk: Zk,
    count: number,
    options?: Partial<AlignOptions> & { follow?: boolean },
    clientOptions?: ClientOptions,
  ): Promise<Run>;
}

export function useAlignWorld(): AlignWorld {
  let directory = '';

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'drover-align-'));
  });

  afterEach(() => rm(directory, { recursive: true }));

  const fileOf = (partition: number) => join(directory, `t-${partition}.ndjson`);
  return {
    get directory() {
      return directory;
    },
    async partitions(...times) {
      await Promise.all(times.map((minutes, p) => writeFile(fileOf(p), lines(p, minutes))));
    },
    append: (partition, minutes) => appendFile(fileOf(partition), lines(partition, minutes)),
    async start(zk, count, { follow = false, ...rest } = {}, clientOptions = {}) {
      const client = await zk.connect({ renew: true, ...clientOptions });
      const source = new NdjsonSource({ directory, follow, pollMs: 10 });
      const run = align(client, {
        group: 'g',
        source,
        topics: { t: count },
        mode: { period: '1m' },
        debounceMs: 10,
        ...rest,
      });
      return {
        client,
        run,
        async [Symbol.asyncDispose]() {
          await run.close();
          await source.close();
        },
      };
    },
  };
}

function lines(partition: number, minutes: readonly number[]): string {
  return minutes
    .map((at) => `{"timestamp":${base + at * minute},"value":"${partition}:${at}"}\n`)
    .join('');
}
