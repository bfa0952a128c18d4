/** Commands that wait for an event, when their session ends instead: nothing has changed, and nobody says so. */

import { expect, test } from 'vitest';
import { startTestServer } from '../src/testing/index.ts';
import { runInProcess, shellInProcess } from './cli-run.ts';

test.each([
  ['get -w /a', 'getData'],
  ['stat -w /a', 'exists'],
  ['ls -w /a', 'getChildren2'],
  ['addWatch /a', 'addWatch'],
] as const)('%s whose session ends has heard of no change', async (line, op) => {
  await using server = await startTestServer();
  await server.load({ '/a': 'x' });

  const ended = runInProcess(server.address, [...line.split(' '), '--json']);
  await expect.poll(() => server.log.some((request) => request.op === op)).toBe(true);
  await server.expire(server.log.find((request) => request.op === op)!.sessionId);
  const said = await ended;

  expect(said.code).toBe(7);
  expect(said.out).not.toContain('"event"');
  expect(said.err).toContain('SESSION_EXPIRED');
});

test('a shell that closes its session prints no event of that', async () => {
  await using server = await startTestServer();
  await server.load({ '/a': 'x' });
  await using shell = shellInProcess(server.address);
  await shell.run('addWatch /a');
  await shell.run('get -w /a');

  const { out } = await shell.run('close');

  expect(out + shell.printed()).toBe('');
});
