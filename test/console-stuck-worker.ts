/** The worker of a console that does on command what a bug in a page might: stand still, throw, eat memory. */

import { consoleWorker } from '../src/cli/console-worker.ts';

export const channelName = 'console in a test';
export type Fault =
  | { kind: 'stand'; until: SharedArrayBuffer }
  | { kind: 'throw' }
  | { kind: 'eat' };

const channel = new BroadcastChannel(channelName);
channel.onmessage = ({ data }: { data: Fault | 'standing' }) => {
  if (data === 'standing') return;
  if (data.kind === 'stand') {
    channel.postMessage('standing');
    Atomics.wait(new Int32Array(data.until), 0, 0);
  } else if (data.kind === 'eat') {
    const eaten: string[][] = [];
    for (;;) eaten.push(Array.from({ length: 1_000 }, () => String(Math.random())));
  } else {
    setImmediate(() => {
      throw new Error('a bug in a page');
    });
  }
};

await consoleWorker();
