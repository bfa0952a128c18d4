/** Completion in a real bash: a node's name must never run as a command. */

import { expect, test } from 'vitest';
import { checkCompletion, hasShell } from './shell-completion.ts';

test.skipIf(!hasShell('bash'))(
  'bash completes plain names of nodes and never runs a hostile one',
  async () => {
    expect.hasAssertions();
    await checkCompletion('bash');
  },
  180_000,
);
