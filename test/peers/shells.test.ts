/** Completion in a real zsh and a real fish: a node's name must never run as a command. */

import { expect, test } from 'vitest';
import { checkCompletion, hasShell } from '../shell-completion.ts';

test.skipIf(!hasShell('zsh'))(
  'zsh completes plain names of nodes and never runs a hostile one',
  async () => {
    expect.hasAssertions();
    await checkCompletion('zsh');
  },
  180_000,
);

test.skipIf(!hasShell('fish'))(
  'fish completes plain names of nodes and never runs a hostile one',
  async () => {
    expect.hasAssertions();
    await checkCompletion('fish');
  },
  180_000,
);
