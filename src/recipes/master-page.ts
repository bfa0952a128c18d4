/**
 * Who is master, over HTTP: for those who cannot reach ZooKeeper, or do not want to speak it.
 *
 * In: an observer, and an operator's word for when ZooKeeper is away. Out: one JSON object, always with
 * where it comes from and how old it is; nothing is shown as fresh that is not.
 *
 *   GET  200  { "master": "host-a", "epoch": "0x1a", "source": "zookeeper", "stale": false, "ageMs": 0 }
 *        200  { "master": "host-a", "epoch": "0x1a", "source": "lastKnown", "stale": true, "ageMs": 93000 }
 *        200  { "master": "host-b", "epoch": null, "source": "operator", "stale": true, "ageMs": 1200 }
 *        503  { "master": null, …, "source": "none" }   nothing was ever known, or nobody leads
 *
 * While ZooKeeper can be reached, its answer is the answer. When it cannot, an operator's word, given
 * since, goes before the last known one. Not promised: that a stale answer is right; a master that is
 * asked should know its own epoch and refuse those who hold an older one.
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { ArgumentError } from '../client/index.ts';
import { checkOptions } from '../support/index.ts';
import type { ElectionObserver } from './election-observer.ts';
import { askTable } from './option-tables.ts';

export interface MasterAnswer {
  readonly master: string | null;
  /** The leader's epoch, where ZooKeeper said it. */
  readonly epoch: bigint | null;
  readonly source: 'zookeeper' | 'lastKnown' | 'operator' | 'none';
  /** True for whatever ZooKeeper does not confirm at this moment. */
  readonly stale: boolean;
  /** How long ago it was certain. Null when it never was. */
  readonly ageMs: number | null;
}

export class MasterPage {
  readonly #observer: ElectionObserver;
  #byOperator: { readonly id: string; readonly atMs: number } | undefined;

  constructor(observer: ElectionObserver) {
    this.#observer = observer;
  }

  /** An operator's word, for as long as ZooKeeper cannot be reached. Null takes it back. */
  name(id: string | null): void {
    if (id !== null && (typeof id !== 'string' || id === '')) {
      throw new ArgumentError('id', 'the id of a master, or null, is wanted');
    }
    this.#byOperator = id === null ? undefined : { id, atMs: this.#observer.clock.nowMs() };
  }

  answer(): MasterAnswer {
    const { leader, isCurrent, ageMs = null, clock } = this.#observer;
    const known = { master: leader?.id ?? null, epoch: leader?.epoch ?? null };
    if (isCurrent) return { ...known, source: 'zookeeper', stale: false, ageMs: 0 };
    if (this.#byOperator !== undefined) {
      const { id, atMs } = this.#byOperator;
      const ageMs = clock.nowMs() - atMs;
      return { master: id, epoch: null, source: 'operator', stale: true, ageMs };
    }
    const source = leader ? 'lastKnown' : 'none';
    return { ...known, source, stale: true, ageMs };
  }

  /** For `http.createServer(page.handle)`, or as the handler of a path in any framework. */
  readonly handle = (request: IncomingMessage, response: ServerResponse): void => {
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.writeHead(405, { allow: 'GET, HEAD' }).end();
      return;
    }
    const answer = this.answer();
    const body = JSON.stringify({ ...answer, epoch: answer.epoch && hex(answer.epoch) });
    response.writeHead(answer.master === null ? 503 : 200, {
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(body),
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      ...(answer.ageMs !== null && { age: String(Math.floor(answer.ageMs / 1000)) }),
    });
    response.end(request.method === 'HEAD' ? undefined : body);
  };
}

/** No page knew who is master. Says what each of them said. */
export class MasterUnknownError extends Error {
  override readonly name = 'MasterUnknownError';
  readonly code = 'MASTER_UNKNOWN';

  constructor(failures: readonly string[]) {
    super(`no page says who is master: ${failures.join('; ')}`);
  }
}

export interface AskOptions {
  readonly signal?: AbortSignal;
  /** For each page. 2 s. */
  readonly timeoutMs?: number;
}

/** Far above what a page says. More, and it is not one of ours. */
const bodyBytesMax = 64 * 1024;

/**
 * Asks these pages, all at once, who is master. An answer that ZooKeeper confirms goes before any
 * other, then an operator's, then the youngest; of confirmed ones the highest epoch wins.
 */
export async function askMaster(
  urls: string | readonly string[],
  options: AskOptions = {},
): Promise<MasterAnswer & { readonly url: string }> {
  checkOptions('askMaster', options, askTable);
  const { signal, timeoutMs = 2_000 } = options;
  const list = typeof urls === 'string' ? [urls] : urls;
  if (list.length === 0) throw new ArgumentError('urls', 'at least one page to ask is wanted');
  const asked = await Promise.allSettled(list.map((url) => ask(url, timeoutMs, signal)));
  signal?.throwIfAborted();
  const answers = asked.flatMap((one, i) =>
    one.status === 'fulfilled' && one.value.master !== null ? { ...one.value, url: list[i]! } : [],
  );
  const [best] = answers.sort(byTrust);
  if (best !== undefined) return best;
  throw new MasterUnknownError(
    asked.map((one, i) => {
      if (one.status === 'fulfilled') return `${list[i]} knows none`;
      return `${list[i]} ${one.reason instanceof Error ? reasonOf(one.reason) : one.reason}`;
    }),
  );
}

const trust = { zookeeper: 0, operator: 1, lastKnown: 2, none: 3 } as const;

export function byTrust(a: MasterAnswer, b: MasterAnswer): number {
  if (a.source !== b.source) return trust[a.source] - trust[b.source];
  if (a.source === 'zookeeper' && a.epoch !== b.epoch) {
    return (a.epoch ?? 0n) > (b.epoch ?? 0n) ? -1 : 1;
  }
  return (a.ageMs ?? Number.POSITIVE_INFINITY) - (b.ageMs ?? Number.POSITIVE_INFINITY);
}

async function ask(
  url: string,
  timeoutMs: number,
  signal: AbortSignal | undefined,
): Promise<MasterAnswer> {
  const late = AbortSignal.timeout(timeoutMs);
  const response = await fetch(url, { signal: signal ? AbortSignal.any([late, signal]) : late });
  if (response.status !== 200 && response.status !== 503) {
    await response.body?.cancel();
    throw new Error(`answered ${response.status}`);
  }
  return parseAnswer(await textOf(response));
}

async function textOf(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > bodyBytesMax) throw new Error(`answered more than ${bodyBytesMax} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

export function parseAnswer(text: string): MasterAnswer {
  const { master, epoch, source, stale, ageMs } = JSON.parse(text) as Record<string, unknown>;
  const isMaster = master === null || typeof master === 'string';
  const isEpoch = epoch === null || (typeof epoch === 'string' && /^0x[0-9a-f]{1,16}$/.test(epoch));
  const isSource = typeof source === 'string' && Object.hasOwn(trust, source);
  const isAge = ageMs === null || (typeof ageMs === 'number' && ageMs >= 0);
  if (!isMaster || !isEpoch || !isSource || !isAge || typeof stale !== 'boolean') {
    throw new Error('answered something that is no master page');
  }
  return {
    master,
    epoch: epoch === null ? null : BigInt(epoch),
    source: source as MasterAnswer['source'],
    stale,
    ageMs,
  };
}

function reasonOf(error: Error): string {
  return error.cause instanceof Error ? error.cause.message : error.message;
}

function hex(value: bigint): string {
  return `0x${value.toString(16)}`;
}
