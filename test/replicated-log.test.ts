/** The replicated log of examples/ loses nothing, whoever of its three processes is killed or stopped. */

import { spawn } from 'node:child_process';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { startTestServer } from '../src/testing/index.ts';

const root = resolve(import.meta.dirname, '..');

test('nothing that was acknowledged is lost, and the zombie is fenced', {
  timeout: 120_000,
}, async ({ signal }) => {
  await using server = await startTestServer({ tickTimeMs: 500 });

  const { code, output } = await run(server.port, signal);

  expect({ code, output }).toMatchObject({
    code: 0,
    output: expect.stringMatching(
      /the zombie says: .*\n[\s\S]*records were acknowledged, 0 of them are lost/,
    ),
  });
});

function run(port: number, signal: AbortSignal): Promise<{ code: number | null; output: string }> {
  return new Promise((done, failed) => {
    const file = join(root, 'examples/replicated-log/main.ts');
    const child = spawn(process.execPath, ['--import', 'tsx', file], {
      cwd: root,
      env: { ...process.env, ZK_SERVERS: `127.0.0.1:${port}`, SESSION_TIMEOUT_MS: '1500' },
      stdio: ['ignore', 'pipe', 'pipe'],
      signal,
      killSignal: 'SIGTERM',
    });
    let output = '';
    const hear = (text: Buffer) => {
      output += text;
    };
    child.stdout.on('data', hear);
    child.stderr.on('data', hear);
    child.on('error', failed);
    child.on('close', (code) => done({ code, output }));
  });
}
