/**
 * The console of `drover serve`: as `drover console`, and with what only the server's own process can say:
 * every four-letter word whatever the whitelist, its counters, a node's history out of its logs, and an end
 * for a session.
 *
 * It runs in a process of its own (console-process.ts, console-child.ts), so that no page and no shell line
 * delays a request to the server or ends it. This file has the answers that the server gives it: each is
 * short, and what may be long is given in turns with requests.
 */

import {
  type OpTimes,
  ProcessReadings,
  type RunningConsole,
  type ServersSeen,
  type WordAnswer,
} from '../console/index.ts';
import { ops } from '../protocol/index.ts';
import {
  answerWord,
  fourLetterWords,
  type Latency,
  latencyBoundsMs,
  monitorValues,
  type RunningServer,
  readWhitelist,
  watchKinds,
} from '../server/index.ts';
import { Pace } from '../support/index.ts';
import type { Context } from './command.ts';
import type { AskedBrokers } from './console-brokers.ts';
import type { Offered } from './console-contexts.ts';
import { type ProcessOptions, startConsoleProcess } from './console-process.ts';
import { serverView } from './console-sources.ts';
import { findingsOf } from './doctor.ts';
import { rowFrom } from './server-facts.ts';
import { quorumOf } from './status.ts';

export interface ServerConsoleOptions {
  readonly port: number;
  readonly write: boolean;
  /** Saved contexts that the page may switch to; undefined: none. */
  readonly contexts?: Offered | undefined;
  /** Brokers that are asked for the ends of partitions. @default none */
  readonly brokers?: AskedBrokers;
  /** Where the built page is, if not where it is built. */
  readonly pageFolder?: string;
  /** Where its metrics are to be had, if anywhere. */
  readonly metricsUrl?: string | undefined;
  readonly say: (sentence: string) => void;
  /** For tests. */
  readonly child?: Partial<ProcessOptions>;
}

export async function openServerConsole(
  context: Context,
  server: RunningServer,
  { port, write, contexts, brokers, pageFolder, metricsUrl, say, child }: ServerConsoleOptions,
): Promise<RunningConsole> {
  const readings = new ProcessReadings();
  const { storage } = server.facts;
  try {
    const running = await startConsoleProcess({
      start: {
        ...{ port, write, contexts, brokers, pageFolder, metricsUrl },
        server: server.address,
        environment: { ...context.environment },
        folders: storage && { dataDir: storage.dataDir, dataLogDir: storage.dataLogDir },
        startedMs: Date.now(),
      },
      answers: answersOf(server, readings),
      say,
      ...child,
    });
    const close = async () => {
      await running.close();
      readings.close();
    };
    return { ...running, close, [Symbol.asyncDispose]: close };
  } catch (error) {
    readings.close();
    throw error;
  }
}

/** What the console may ask of the server. */
function answersOf(server: RunningServer, readings: ProcessReadings) {
  const { engine, facts } = server;
  return {
    look(): ServersSeen {
      const rows = [rowOf(server)];
      const snapshotMs = facts.storage?.lastSnapshot()?.wallMs;
      const servers = rows.map((row) => serverView(row, snapshotMs));
      return { servers, findings: findingsOf(rows), quorum: quorumOf(rows) };
    },
    ask: (word: string): WordAnswer[] => [answerOf(server, word)],
    values: (): Record<string, number> =>
      Object.fromEntries(
        monitorValues(facts).map(([name, value]) => [name, Number(value.toString())] as const),
      ),
    opTimes() {
      const { byOp, appends } = engine.stats;
      const seen = [...byOp.entries()].map(([code, latency]) =>
        timesOf(opNames.get(code) ?? `op ${code}`, latency),
      );
      return { boundsMs: [...latencyBoundsMs], ops: [...seen, timesOf('fsync', appends)] };
    },
    process: () => readings.take(),
    expiries() {
      const nowMs = facts.clock.nowMs();
      return new Map(
        [...engine.sessions.values()].map(({ id, bucketMs }) => [id, bucketMs - nowMs]),
      );
    },
    watchKinds: () => watchKindsOf(server),
    expire(sessionId: bigint): boolean {
      const session = engine.sessions.get(sessionId);
      if (session === undefined || session.closing) return false;
      engine.expire(session);
      return true;
    },
  };
}
export type Answers = ReturnType<typeof answersOf>;

const everyWord = readWhitelist('*');

function answerOf({ facts, address }: RunningServer, word: string): WordAnswer {
  const text = Object.hasOwn(fourLetterWords, word)
    ? answerWord(facts, everyWord, word)
    : undefined;
  return text === undefined
    ? { server: address, error: `${word} is no word` }
    : { server: address, text };
}

function rowOf({ facts, host, port, address }: RunningServer) {
  const say = (word: string) => answerWord(facts, everyWord, word) ?? '';
  const row = rowFrom({ host, port, name: address }, say('srvr'), say('mntr'), 0);
  // mntr has whole milliseconds, as Apache does, and most of ours take less.
  const { reads, appends } = facts.engine.stats;
  return {
    ...row,
    behind: 0,
    p50Ms: reads.quantileMs(0.5),
    p99Ms: reads.quantileMs(0.99),
    fsyncP99Ms: appends.quantileMs(0.99),
  };
}

/** Paths that are looked at: as many as the page has any use for. */
const watchedMax = 100_000;

/** In turns with requests: there may be many. */
async function watchKindsOf({ engine }: RunningServer) {
  const pace = new Pace();
  const found = new Map<string, Set<string>>();
  for (const [name, table] of Object.entries({
    data: engine.watches.data,
    children: engine.watches.child,
  })) {
    for (const [path, watchers] of table.paths()) {
      if (found.size >= watchedMax) break;
      await pace.keep();
      const kinds = found.get(path) ?? new Set();
      for (const watcher of watchers) {
        if (table.has(path, watcher, watchKinds.oneShot)) kinds.add(name);
        if (table.has(path, watcher, watchKinds.persistent)) kinds.add('persistent');
        if (table.has(path, watcher, watchKinds.recursive)) kinds.add('recursive');
      }
      found.set(path, kinds);
    }
  }
  const kinds = new Map<string, readonly string[]>();
  for (const [path, each] of found) {
    await pace.keep();
    kinds.set(path, [...each]);
  }
  return kinds;
}

const opNames: ReadonlyMap<number, string> = new Map(
  Object.entries(ops).map(([name, { code }]) => [code, name]),
);

function timesOf(op: string, { maxMs, buckets }: Latency): OpTimes {
  return { op, maxMs, buckets: [...buckets] };
}
