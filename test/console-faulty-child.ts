/** A console that fails by signal, as a bug in a page might make it: SIGUSR2 throws, SIGWINCH eats memory. */

import { consoleChild } from '../src/cli/console-child.ts';

process.on('SIGUSR2', () => {
  throw new Error('a bug in a page');
});
process.on('SIGWINCH', () => {
  const eaten: number[] = [];
  for (;;) eaten.push(1.5); // one large allocation after the other: a worker thread would end us all
});

consoleChild();
