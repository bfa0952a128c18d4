/**
 * The console of `drover serve`: as `drover console`, and with what only the server's own process can say:
 * every four-letter word whatever the whitelist, its counters, a node's history out of its logs, and an end
 * for a session.
 */

import type {
  ConsoleOptions,
  HistoryEntry,
  OpTimes,
  OwnServer,
  RunningConsole,
  WordAnswer,
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
import { type NodeState, type PathChange, pathHistory } from '../storage/index.ts';
import type { Context } from './command.ts';
import { openConsole } from './console.ts';
import type { Offered } from './console-contexts.ts';
import { serverView } from './console-sources.ts';
import { findingsOf } from './doctor.ts';
import { lineHistory } from './line-history.ts';
import { rowFrom } from './server-facts.ts';
import { quorumOf } from './status.ts';
import { targetOf } from './target.ts';
import { hex } from './words.ts';

export interface ServerConsoleOptions {
  readonly port: number;
  readonly write: boolean;
  /** Saved contexts that the page may switch to; undefined: none. */
  readonly contexts?: Offered | undefined;
  /** Where the built page is, if not where it is built. */
  readonly pageFolder?: string;
  /** Where its metrics are to be had, if anywhere. */
  readonly metricsUrl?: string | undefined;
  readonly say: (sentence: string) => void;
}

export async function openServerConsole(
  context: Context,
  server: RunningServer,
  { port, write, contexts, pageFolder, metricsUrl, say }: ServerConsoleOptions,
): Promise<RunningConsole> {
  // Who we are, from DROVER_AUTH and its like; where to, is known.
  const { DROVER_AUTH, DROVER_CONSOLE_TOKEN: token } = context.environment;
  const target = await targetOf({ server: server.address }, { DROVER_AUTH });
  const history = historyOf(server);
  const { storage } = server.facts;
  const demo = write ? await demoOf(server, say) : undefined;
  const options: Partial<ConsoleOptions> = {
    port,
    write,
    origin: 'drover serve',
    ...(pageFolder !== undefined && { pageFolder }),
    ...(token && { token }),
    lookAtServers: async () => {
      const rows = [rowOf(server)];
      const snapshotMs = server.facts.storage?.lastSnapshot()?.wallMs;
      const servers = rows.map((row) => serverView(row, snapshotMs));
      return { servers, findings: findingsOf(rows), quorum: quorumOf(rows) };
    },
    ask: async (word) => [answerOf(server, word)],
    ownServer: { ...ownServerOf(server), metricsUrl },
    ...(history !== undefined && { history }),
    ...(storage !== undefined && {
      lineHistory: (line, onChange) =>
        lineHistory(storage.dataDir, storage.dataLogDir, line, onChange),
    }),
    ...(demo !== undefined && { demo: () => demo.begin() }),
  };
  const running = await openConsole({
    target,
    commands: context.commands,
    environment: context.environment,
    say,
    contexts,
    ...(storage === undefined && { journalSinceMs: Date.now() }),
    ...(demo !== undefined && { demoEnds: () => demo.ends }),
    portFlag: '--console-port',
    options,
  });
  const close = async () => {
    await demo?.close();
    await running.close();
  };
  return { ...running, close, [Symbol.asyncDispose]: close };
}

async function demoOf(server: RunningServer, say: (sentence: string) => void) {
  const { ConsoleDemo } = await import('./console-demo.ts');
  return new ConsoleDemo(server.address, say);
}

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

function ownServerOf(server: RunningServer): OwnServer {
  const { engine, facts } = server;
  return {
    values: () =>
      Object.fromEntries(
        monitorValues(facts).map(([name, value]) => [name, Number(value.toString())] as const),
      ),
    opTimes() {
      const { byOp, appends } = engine.stats;
      const seen = [...byOp.entries()].map(([code, latency]) =>
        timesOf(opNames.get(code) ?? `op ${code}`, latency),
      );
      return { boundsMs: latencyBoundsMs, ops: [...seen, timesOf('fsync', appends)] };
    },
    expiries() {
      const nowMs = facts.clock.nowMs();
      return new Map(
        [...engine.sessions.values()].map(({ id, bucketMs }) => [id, bucketMs - nowMs]),
      );
    },
    watchKinds: () => watchKindsOf(server),
    expire(sessionId) {
      const session = engine.sessions.get(sessionId);
      if (session === undefined || session.closing) return false;
      engine.expire(session);
      return true;
    },
  };
}

/** Paths that are looked at: as many as the page has any use for. */
const watchedMax = 100_000;

function watchKindsOf({ engine }: RunningServer): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, Set<string>>();
  for (const [name, table] of Object.entries({
    data: engine.watches.data,
    children: engine.watches.child,
  })) {
    for (const [path, watchers] of table.paths()) {
      if (found.size >= watchedMax) break;
      const kinds = found.get(path) ?? new Set();
      for (const watcher of watchers) {
        if (table.has(path, watcher, watchKinds.oneShot)) kinds.add(name);
        if (table.has(path, watcher, watchKinds.persistent)) kinds.add('persistent');
        if (table.has(path, watcher, watchKinds.recursive)) kinds.add('recursive');
      }
      found.set(path, kinds);
    }
  }
  return new Map([...found].map(([path, kinds]) => [path, [...kinds]]));
}

const opNames: ReadonlyMap<number, string> = new Map(
  Object.entries(ops).map(([name, { code }]) => [code, name]),
);

function timesOf(op: string, { maxMs, buckets }: Latency): OpTimes {
  return { op, maxMs, buckets: [...buckets] };
}

/** One look through the logs at a time: they may be long. */
function historyOf({ facts }: RunningServer): ConsoleOptions['history'] | undefined {
  const { storage } = facts;
  if (storage === undefined) return undefined;
  let before: Promise<unknown> = Promise.resolve();
  const read = async (path: string, limit: number) => {
    const newest: HistoryEntry[] = [];
    let count = 0;
    await pathHistory(storage.dataDir, storage.dataLogDir, path, (change) => {
      count += 1;
      newest.push(entryOf(change));
      if (newest.length > limit) newest.shift();
    });
    return { entries: newest.reverse(), isCut: count > limit };
  };
  return (path, limit) => {
    const turn = before.then(() => read(path, limit));
    before = turn.catch(() => {});
    return turn;
  };
}

function entryOf({ zxid, timeMs, sessionId, kind, before, after }: PathChange): HistoryEntry {
  return {
    zxid: hex(zxid),
    atMs: timeMs,
    session: hex(sessionId),
    kind,
    version: after?.version ?? null,
    before: dataOf(before),
    after: dataOf(after),
  };
}

const historyBytesMax = 64 * 1024;

/** The logs hold what the ACL keeps from most: only what everybody may read is shown. */
function dataOf(state: NodeState | null | undefined): string | null {
  if (state == null || state.data === null) return null;
  const isOpen =
    state.acl === null ||
    state.acl.some(({ perms, id }) => id.scheme === 'world' && (perms & 1) === 1);
  return isOpen ? state.data.subarray(0, historyBytesMax).toString('base64') : null;
}
