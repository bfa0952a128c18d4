/** What one line of the console's shell may cost: nodes, bytes, matching and time. */

import { expect, test } from 'vitest';
import { commands } from '../src/cli/commands.ts';
import { ConsoleShell } from '../src/cli/console-shell.ts';
import { consoleLineLimits, type LineLimits } from '../src/cli/line-budget.ts';
import { connect } from '../src/client/index.ts';
import { startTestServer } from '../src/testing/index.ts';

async function startShell(limits: Partial<LineLimits> = {}) {
  const server = await startTestServer();
  const client = await connect(server.address);
  const target = {
    servers: server.address,
    origin: 'a test',
    readOnly: false,
    client: {},
    dataBytesMax: 1_000_000,
  };
  const shell = new ConsoleShell(commands, target, {}, { ...consoleLineLimits, ...limits });
  const { signal } = new AbortController();
  const asked = { json: false, cwd: '/', readOnly: false, outputBytesMax: 100_000, signal };
  return {
    client,
    run: (line: string) => shell.run({ ...asked, line }),
    async [Symbol.asyncDispose]() {
      await shell.close();
      await client.close();
      await server.close();
    },
  };
}

test('a walk from the console ends at its number of nodes, and says so', async () => {
  await using shell = await startShell({ nodesMax: 20 });
  for (let i = 0; i < 30; i++) await shell.client.create(`/many-${i}`);

  for (const line of ['find / x', 'tree /', 'du /', 'grep x /']) {
    const said = await shell.run(line);
    expect([line, said.code]).toEqual([line, 6]);
    expect(said.err).toContain('stopped: a line here may take 20 nodes');
  }
  expect((await shell.run('find /many-1 x')).code).toBe(0);
});

test('a walk from the console ends at its number of bytes, and says so', async () => {
  await using shell = await startShell({ bytesMax: 50_000 });
  for (let i = 0; i < 8; i++) await shell.client.create(`/large-${i}`, Buffer.alloc(10_000));

  expect((await shell.run('grep x /')).err).toContain('may take 50000 bytes');
  expect((await shell.run('find / x')).code).toBe(0); // which reads no data
});

test('a pattern from the console ends at its amount of work, and says so', async () => {
  await using shell = await startShell({ patternStepsMax: 10_000 });
  const letters = Array.from({ length: 5_000 }, (_, i) => ((i * i) % 11 < 5 ? 'a' : 'b')).join('');
  await shell.client.create('/data', letters);

  expect((await shell.run("grep 'a[ab]{500}c' /data")).err).toContain('too much work');
  expect((await shell.run('grep -l abb /data')).out).toBe('/data\n');
});

test('a line from the console ends with its time, and says so', async () => {
  await using shell = await startShell({ timeMs: 0 });

  const said = await shell.run('tree /');

  expect(said.code).toBe(6);
  expect(said.err).toContain('stopped: a line here may take 0 s');
});
