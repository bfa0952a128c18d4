/** Our server beside recorded answers of Apache's 3.9.5, where there is no Java: test/differential/record.ts made them. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { compareLines } from './differential/compare.ts';
import { normalise } from './differential/normalise.ts';
import { Player } from './differential/play.ts';
import { startOurs } from './differential/profiles.ts';
import { readRecorded, recordedFiles } from './differential/recorded.ts';
import { printCommand } from './differential/script.ts';

let dataDir: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'drover-recorded-'));
});
afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

/** In no recorded script does Apache stay silent, or leave a connection open that it should close. */
const patienceMs = 15_000;

test.each(recordedFiles())(
  'every answer is the one that Apache gave: $file',
  {
    timeout: 120_000,
  },
  async ({ file, profile }) => {
    await using zk = await startOurs(profile, dataDir);
    const player = new Player(zk.port, patienceMs);
    const differences: string[] = [];

    for (const { name, script, apache } of readRecorded(file)) {
      const { difference } = compareLines(script, apache, normalise(await player.play(script)));
      if (difference === undefined) continue;
      const command = script.commands[difference.command];
      differences.push(
        `${name}, at ${command === undefined ? 'the end' : printCommand(command)}\n` +
          `  Apache: ${difference.apache}\n  ours:   ${difference.ours}`,
      );
    }

    expect(differences.join('\n')).toBe('');
    player.close();
  },
);
