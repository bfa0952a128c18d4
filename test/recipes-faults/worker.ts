/**
 * A process that uses every recipe at once, over one session, while a campaign cuts its link, stops it,
 * and kills its server.
 *
 *   node --import tsx worker.ts <name> <address> <sessionTimeoutMs> <recipe,recipe…>
 *
 * It does rounds until it is told to freeze, finishes when all have, closes and ends.
 */

import { setMaxListeners } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { type Client, connect, isZkError } from '../../src/client/index.ts';
import {
  BarrierError,
  ConfigError,
  CounterError,
  HandOverError,
  LockTimeoutError,
  NotHeldError,
  PersistentNode,
  QueueError,
  SteppedDownError,
} from '../../src/recipes/index.ts';
import type { FromWorker, ToWorker } from './messages.ts';
import type { Hand, Running } from './workload.ts';
import { workloads } from './workloads.ts';

const [name = '', address = '', timeout = '', wanted = ''] = process.argv.slice(2);
const say = (message: FromWorker) => void process.send?.(message);
const stop = new AbortController();
setMaxListeners(0, stop.signal);
const answers = new Map<number, (value: unknown) => void>();
let asked = 0;

function handOf(recipe: string, client: Client): Hand {
  const message = (type: 'ask' | 'tell', what: string, args: unknown[]) => {
    asked += 1;
    say({ type, id: asked, recipe, what, args });
    return asked;
  };
  return {
    name,
    client,
    stopped: stop.signal,
    ask: (what, ...args) =>
      new Promise((resolve) => answers.set(message('ask', what, args), resolve)),
    tell: (what, ...args) => void message('tell', what, args),
  };
}

const gameErrors = [
  BarrierError,
  ConfigError,
  ConfigError,
  CounterError,
  HandOverError,
  LockTimeoutError,
  NotHeldError,
  QueueError,
  SteppedDownError,
];

function isPartOfTheGame(error: unknown): boolean {
  if (isZkError(error) || gameErrors.some((kind) => error instanceof kind)) return true;
  return stop.signal.aborted && (error as Error)?.name === 'AbortError';
}

function linked(client: Client): Promise<void> {
  return new Promise((resolve) => {
    const look = () => {
      if (client.state.name !== 'connected' && !stop.signal.aborted) return;
      client.off('state', look);
      resolve();
    };
    client.on('state', look);
    stop.signal.addEventListener('abort', look, { once: true });
    look();
  });
}

async function live(recipe: string, running: Running, client: Client): Promise<void> {
  while (!stop.signal.aborted) {
    try {
      await running.round();
      say({ type: 'round', recipe });
    } catch (error) {
      const text = String((error as Error)?.stack ?? error);
      const type = isPartOfTheGame(error) ? 'failed' : 'bug';
      say({ type, recipe, error: type === 'bug' ? text : text.split('\n')[0]! });
      await linked(client);
    }
    await setImmediate();
  }
}

const frozen = new Promise<void>((resolve) => {
  stop.signal.addEventListener('abort', () => resolve(), { once: true });
});
let finish = () => {};
const finishing = new Promise<void>((resolve) => {
  finish = resolve;
});
process.on('message', (message: ToWorker) => {
  if (message.type === 'freeze') stop.abort();
  else if (message.type === 'finish') finish();
  else {
    answers.get(message.id)?.(message.value);
    answers.delete(message.id);
  }
});
process.on('disconnect', () => process.exit(1)); // the campaign is gone

const client = await connect(address, {
  renew: true,
  sessionTimeoutMs: Number(timeout),
  backoff: { firstMs: 1, maxMs: 50 },
});
const tellSession = () => {
  if (client.identity !== undefined) {
    const { sessionId, password } = client.identity;
    say({ type: 'session', sessionId, password });
  }
};
client.on('state', tellSession);
tellSession();
// By this the campaign sees whether our session is there.
const alive = new PersistentNode(client, `/alive/${name}`);
await alive.ready;
const lives = wanted.split(',').map(async (recipe) => {
  const running = await workloads[recipe]!.begin(handOf(recipe, client));
  return { recipe, running };
});
const running = await Promise.all(lives);
say({ type: 'begun' });
const working = Promise.all(running.map((one) => live(one.recipe, one.running, client)));
await frozen;
await working;
say({ type: 'frozen' });
await finishing;
for (const one of running) await one.running.finish?.();
for (const one of running) await one.running.close?.();
await alive.close();
await client.close();
process.send?.({ type: 'finished' } satisfies FromWorker, () => process.disconnect());
