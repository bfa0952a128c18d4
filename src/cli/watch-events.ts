/** Watch events: how they are printed, and how a command that ends with its process waits for one. */

import type { Listener, WatchEvent } from '../client/index.ts';
import type { Context } from './command.ts';
import { exitCodes } from './exit-codes.ts';
import { escaped, type Output } from './output.ts';

// biome-ignore format: a table is read down its columns
const javaNames: Readonly<Record<string, string>> = {
  created:                'NodeCreated',
  deleted:                'NodeDeleted',
  dataChanged:            'NodeDataChanged',
  childrenChanged:        'NodeChildrenChanged',
  dataWatchRemoved:       'DataWatchRemoved',
  childWatchRemoved:      'ChildWatchRemoved',
  persistentWatchRemoved: 'PersistentWatchRemoved',
};

/** False where a watch is only told that its session is over, which others say. */
export function isChange({ type }: WatchEvent): boolean {
  return type !== 'none';
}

/** As zkCli prints it. */
export function printEvent(output: Output, { type, path, zxid }: WatchEvent): void {
  if (output.isJson) {
    output.record({ event: type, path, zxid });
    return;
  }
  const name = javaNames[type] ?? type;
  output.line('\nWATCHER::');
  output.line(
    `\nWatchedEvent state:SyncConnected type:${name} path:${escaped(path)} zxid: ${zxid ?? -1n}`,
  );
}

/**
 * A listener for `-w`. In a shell its event is printed between prompts; a command of its own waits for
 * it, since a watch ends with its session.
 */
export function eventWaiter(context: Context): { listener: Listener; wait(): Promise<number> } {
  if (context.surface !== 'argv') {
    return { listener: (event) => context.event(event), wait: async () => exitCodes.ok };
  }
  const { output, signal } = context;
  let heard: (event: WatchEvent) => void;
  const event = new Promise<WatchEvent>((resolve) => {
    heard = resolve;
  });
  return {
    listener: (each) => {
      if (isChange(each)) heard(each);
    },
    async wait() {
      await output.drained();
      let stop: (() => void) | undefined;
      const aborted = new Promise<never>((_, reject) => {
        const fail = () => reject(signal.reason);
        signal.addEventListener('abort', fail, { once: true });
        stop = () => signal.removeEventListener('abort', fail);
        if (signal.aborted) fail();
      });
      try {
        const client = await context.client();
        printEvent(output, await Promise.race([event, aborted, ended(client)]));
        return exitCodes.ok;
      } finally {
        stop?.();
      }
    },
  };
}

type AnyClient = Awaited<ReturnType<Context['client']>>;

/** A session that ends takes its watches along: whoever waits has to hear of it. */
function ended(client: AnyClient): Promise<never> {
  return new Promise((_, reject) => {
    const ask = () => void client.exists('/').then(() => {}, reject);
    if (client.sessionSignal.aborted) ask();
    else client.sessionSignal.addEventListener('abort', ask, { once: true });
  });
}
