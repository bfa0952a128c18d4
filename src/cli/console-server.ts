/**
 * The console of `drover serve`: as `drover console`, and with what only the server's own process can say:
 * every four-letter word whatever the whitelist, its counters, a node's history out of its logs, and an end
 * for a session.
 */

import type {
  ConsoleOptions,
  HistoryEntry,
  OwnServer,
  RunningConsole,
  WordAnswer,
} from '../console/index.ts';
import {
  answerWord,
  fourLetterWords,
  type Latency,
  monitorValues,
  type RunningServer,
  readWhitelist,
} from '../server/index.ts';
import { type NodeState, type PathChange, pathHistory } from '../storage/index.ts';
import type { Context } from './command.ts';
import { openConsole } from './console.ts';
import { serverView } from './console-sources.ts';
import { findingsOf } from './doctor.ts';
import { rowFrom } from './server-facts.ts';
import { quorumOf } from './status.ts';
import { targetOf } from './target.ts';
import { hex } from './words.ts';

export interface ServerConsoleOptions {
  readonly port: number;
  readonly write: boolean;
  readonly say: (sentence: string) => void;
}

export async function openServerConsole(
  context: Context,
  server: RunningServer,
  { port, write, say }: ServerConsoleOptions,
): Promise<RunningConsole> {
  // Who we are, from DROVER_AUTH and its like; where to, is known.
  const { DROVER_AUTH, DROVER_CONSOLE_TOKEN: token } = context.environment;
  const target = await targetOf({ server: server.address }, { DROVER_AUTH });
  const history = historyOf(server);
  const demo = write ? await demoOf(server, say) : undefined;
  const options: Partial<ConsoleOptions> = {
    port,
    write,
    origin: 'drover serve',
    ...(token && { token }),
    lookAtServers: async () => {
      const rows = [rowOf(server)];
      return { servers: rows.map(serverView), findings: findingsOf(rows), quorum: quorumOf(rows) };
    },
    ask: async (word) => [answerOf(server, word)],
    ownServer: ownServerOf(server),
    ...(history !== undefined && { history }),
    ...(demo !== undefined && { demo: () => demo.begin(), offsets: () => demo.ends }),
  };
  const running = await openConsole({
    target,
    commands: context.commands,
    environment: context.environment,
    say,
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
  return { ...rowFrom({ host, port, name: address }, say('srvr'), say('mntr'), 0), behind: 0 };
}

function ownServerOf(server: RunningServer): OwnServer {
  const { engine, facts } = server;
  return {
    values: () =>
      Object.fromEntries(
        monitorValues(facts).map(([name, value]) => [name, Number(value.toString())] as const),
      ),
    ops() {
      const { reads, writes, appends } = engine.stats;
      return [opOf('reads', reads), opOf('writes', writes), opOf('log batches', appends)];
    },
    expire(sessionId) {
      const session = engine.sessions.get(sessionId);
      if (session === undefined || session.closing) return false;
      engine.expire(session);
      return true;
    },
  };
}

function opOf(op: string, latency: Latency) {
  const { count, maxMs } = latency;
  return { op, count, p50Ms: latency.quantileMs(0.5), p99Ms: latency.quantileMs(0.99), maxMs };
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
