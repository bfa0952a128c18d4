/**
 * The console of a server, inside its own process: a session of its own to the server, as every client has
 * one, and questions to the server's process for what no client can ask. It ends with the server.
 */

import type { ConsoleOptions, OwnServer } from '../console/index.ts';
import { commands } from './commands.ts';
import { openConsole } from './console.ts';
import { historyOf } from './console-history.ts';
import type { ConsoleStart, FromChild, ToChild } from './console-process.ts';
import type { Answers } from './console-server.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { lineHistory } from './line-history.ts';
import { targetOf } from './target.ts';

type Asked<K extends keyof Answers> = Promise<Awaited<ReturnType<Answers[K]>>>;

/** Questions that wait for their answers. */
class Questions {
  readonly #post: (message: FromChild) => void;
  readonly #open = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  #id = 0;

  constructor(post: (message: FromChild) => void) {
    this.#post = post;
  }

  ask<K extends keyof Answers>(what: K, ...given: Parameters<Answers[K]>): Asked<K> {
    const id = ++this.#id;
    const answer = new Promise((resolve, reject) => this.#open.set(id, { resolve, reject }));
    this.#post({ kind: 'ask', id, what, given });
    return answer as Asked<K>;
  }

  answered(message: Extract<ToChild, { id: number }>): void {
    const asked = this.#open.get(message.id);
    this.#open.delete(message.id);
    if (message.kind === 'answer') asked?.resolve(message.value);
    else asked?.reject(new Error(message.message));
  }
}

export function consoleChild(): void {
  const post = (message: FromChild) => {
    if (process.connected) process.send?.(message);
  };
  const say = (sentence: string) => post({ kind: 'say', sentence });
  const questions = new Questions(post);
  let close = async (): Promise<void> => {};
  process.on('message', (message: ToChild) => {
    if (message.kind === 'start') {
      void begin(message.start, questions, say, post).then((closeIt) => {
        close = closeIt;
      });
    } else if (message.kind === 'close') void close().finally(() => process.exit(0));
    else questions.answered(message);
  });
  process.on('disconnect', () => process.exit(0)); // the server is gone
  // A signal to the whole group, as of Ctrl-C, is for the server, which closes the console.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
}

/** Gives what closes it. */
async function begin(
  start: ConsoleStart,
  questions: Questions,
  say: (sentence: string) => void,
  post: (message: FromChild) => void,
): Promise<() => Promise<void>> {
  try {
    const { facts, close } = await opened(start, questions, say);
    post({ kind: 'ready', facts });
    return close;
  } catch (error) {
    const exitCode = error instanceof CommandError ? error.exitCode : exitCodes.bug;
    post({ kind: 'failed', exitCode, message: (error as Error).message });
    process.disconnect();
    return async () => {};
  }
}

async function opened(start: ConsoleStart, questions: Questions, say: (sentence: string) => void) {
  const { write, pageFolder, metricsUrl, folders, environment, contexts, brokers, startedMs } =
    start;
  // Who we are, from DROVER_AUTH and its like; where to, is known.
  const { DROVER_AUTH, DROVER_CONSOLE_TOKEN: token } = environment;
  const target = await targetOf({ server: start.server }, { DROVER_AUTH });
  const demo = write ? await demoOf(start.server, say) : undefined;
  const ownServer: OwnServer = {
    values: () => questions.ask('values'),
    opTimes: () => questions.ask('opTimes'),
    process: () => questions.ask('process'),
    expiries: () => questions.ask('expiries'),
    watchKinds: () => questions.ask('watchKinds'),
    expire: (sessionId) => questions.ask('expire', sessionId),
    metricsUrl,
  };
  const options: Partial<ConsoleOptions> = {
    port: start.port,
    write,
    origin: 'drover serve',
    ...(pageFolder !== undefined && { pageFolder }),
    ...(token && { token }),
    lookAtServers: () => questions.ask('look'),
    ask: (word) => questions.ask('ask', word),
    ownServer,
    ...(folders !== undefined && {
      history: historyOf(folders),
      lineHistory: (line, onChange) =>
        lineHistory(folders.dataDir, folders.dataLogDir, line, onChange),
    }),
    ...(demo !== undefined && { demo: () => demo.begin() }),
  };
  const running = await openConsole({
    ...{ target, commands, environment, say, contexts, brokers },
    ...(folders === undefined && { journalSinceMs: startedMs }),
    ...(demo !== undefined && { demoEnds: () => demo.ends }),
    portFlag: '--console-port',
    options,
  });
  const { url, host, port, isPageBuilt } = running;
  return {
    facts: { url, host, port, isPageBuilt },
    async close() {
      await demo?.close();
      await running.close();
    },
  };
}

async function demoOf(address: string, say: (sentence: string) => void) {
  const { ConsoleDemo } = await import('./console-demo.ts');
  return new ConsoleDemo(address, say);
}
