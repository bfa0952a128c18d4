/** Every program in examples/ runs to its end, as a reader would run it, on a server of its own. */

import { spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { startTestServer } from '../src/testing/index.ts';

const root = resolve(import.meta.dirname, '..');
const programs = readdirSync(join(root, 'examples')).filter((file) => file.endsWith('.ts'));

test.for(programs)('examples/%s runs to its end', async (program, { signal }) => {
  await using server = await startTestServer();

  const { code, output } = await run(join(root, 'examples', program), server.port, signal);

  expect({ code, output }).toMatchObject({ code: 0, output: expect.stringMatching(/\S/) });
});

/** Ends with the test: a program that hangs is not left behind. */
function run(
  file: string,
  port: number,
  signal: AbortSignal,
): Promise<{ code: number | null; output: string }> {
  return new Promise((done, failed) => {
    const child = spawn(process.execPath, ['--import', 'tsx', file], {
      cwd: root,
      env: { ...process.env, ZK_SERVERS: `127.0.0.1:${port}` },
      stdio: ['ignore', 'pipe', 'pipe'],
      signal,
      killSignal: 'SIGKILL',
    });
    let output = '';
    child.stdout.on('data', (text) => {
      output += text;
    });
    child.stderr.on('data', (text) => {
      output += text;
    });
    child.on('error', failed);
    child.on('close', (code) => done({ code, output }));
  });
}
