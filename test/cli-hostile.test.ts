/**
 * Names and data out of strangers' hands, shown by every command that shows any: nothing of them reaches a
 * terminal as it is. And many children of one node, which must not cost memory without bound.
 */

import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type Client, connect } from '../src/client/index.ts';
import { pathFault } from '../src/protocol/index.ts';
import { startTestServer, type TestServer } from '../src/testing/index.ts';
import { runInProcess, shellInProcess } from './cli-run.ts';

vi.setConfig({ testTimeout: 120_000 });

let server: TestServer;
let client: Client;
let address: string;

beforeAll(async () => {
  server = await startTestServer({ fourLetterWords: '*' });
  address = `127.0.0.1:${server.port}`;
  client = await connect(address);
});

afterAll(async () => {
  await client.close();
  await server.close();
});

/** Colours are ours, and would only be in the way here. */
const environment = { NO_COLOR: '1' };

/** All that moves a cursor, hides, turns around or breaks a line; a line's own end is allowed. */
const harmful = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u;
const isHarmless = (text: string) => !harmful.test(text.replaceAll('\n', '').replaceAll('\t', ''));

const nasty = fc.constantFrom(
  ...[
    '\x1b[2J',
    '\x1b]0;x\x07',
    '\r',
    '\n',
    '\u202e',
    '\u2066',
    '\u200b',
    '\u2028',
    '\ufeff',
    '\u00ad',
  ],
  ...['\x00', '\x9b31m', '<script>', '"', "'", '\\', '{', '}', ',', ' ', '%s', 'a', '名'],
);
const text = fc.array(nasty, { minLength: 1, maxLength: 12 }).map((parts) => parts.join(''));

describe('whatever names and data hold', () => {
  const shows = (path: string): string[][] => [
    ['ls', '/evil'],
    ['ls', '-R', '/evil'],
    ['tree', '/evil', '--stat'],
    ['find', '/evil'],
    ['du', '/evil'],
    ['get', path],
    ['get', '-x', path],
    ['get', '-s', path],
    ['grep', '.', '/evil'],
    ['getAcl', path],
    ['stat', path],
    ['diff', '/evil', '/none-of-it'],
    ['get', `${path}-none`],
    ['set', `${path}-none`, 'x'],
    ['whois', path],
    ['deleteall', '/evil', '--dry-run'],
  ];

  test('a terminal gets nothing that could harm it, as text and as JSON', async () => {
    await fc.assert(
      fc.asyncProperty(text, text, async (name, data) => {
        await client.create('/evil');
        await client.create('/none-of-it');
        const path = `/evil/${name.replaceAll('/', '')}`;
        const isLegal = pathFault(path) === null;
        if (isLegal)
          await client.create(path, data, {
            acl: [{ perms: 31, id: { scheme: 'world', id: 'anyone' } }],
          });
        else await client.create('/evil/plain', data);
        try {
          for (const argv of shows(path)) {
            const said = await runInProcess(address, argv, { isTty: true, environment });
            expect(isHarmless(said.out), JSON.stringify([argv, said.out])).toBe(true);
            expect(isHarmless(said.err), JSON.stringify([argv, said.err])).toBe(true);
          }
          const json = await runInProcess(address, ['tree', '/evil', '--json'], {
            isTty: true,
            environment,
          });
          expect(isHarmless(json.out)).toBe(true);
          if (isLegal) expect(json.records.map((record) => record.path)).toContain(path);
        } finally {
          await client.deleteRecursive('/evil');
          await client.delete('/none-of-it');
        }
      }),
      { numRuns: 25 },
    );
  });

  test('words of a line do not either, in errors and in history', async () => {
    await using shell = shellInProcess(address, { isTty: true, environment });

    await fc.assert(
      fc.asyncProperty(text, async (word) => {
        for (const line of [word, `ls ${word}`, `ls --${word}`, `redo ${word}`, `txn "${word}"`]) {
          const said = await shell.run(line.replaceAll('\n', ' '));
          expect(isHarmless(said.out), JSON.stringify([line, said.out])).toBe(true);
          expect(isHarmless(said.err), JSON.stringify([line, said.err])).toBe(true);
        }
        expect(isHarmless((await shell.run('history')).out)).toBe(true);
      }),
      { numRuns: 100 },
    );
  });

  test('a mebibyte of data is shown, or cut, but never lost to a pipe', async () => {
    const data = Buffer.alloc(1_000_000, '\x1b[31m');
    await client.create('/large', data);

    const pipe = await runInProcess(address, ['get', '/large']);
    const screen = await runInProcess(address, ['get', '/large'], { isTty: true, environment });
    const found = await runInProcess(address, ['grep', '31m', '/large'], {
      isTty: true,
      environment,
    });
    await client.delete('/large');

    expect(pipe.bytes.equals(data)).toBe(true);
    expect(isHarmless(screen.out)).toBe(true);
    expect(found.out.length).toBeLessThan(1_000);
  });
});

test('10,000 children are listed, found, counted and deleted', async () => {
  await client.create('/many');
  const count = 10_000;
  for (let at = 0; at < count; at += 1_000) {
    const ops = Array.from({ length: 1_000 }, (_, i) => {
      return { op: 'create', path: `/many/child-${String(at + i).padStart(8, '0')}` } as const;
    });
    await client.multi(ops);
  }
  const heapBefore = process.memoryUsage().heapUsed;

  const listed = await runInProcess(address, ['ls', '/many']);
  const all = await runInProcess(address, ['ls', '-R', '/many']);
  const found = await runInProcess(address, ['find', '/many', '*777']);
  const sizes = await runInProcess(address, ['du', '/', '--json', '--top', '1']);
  const deleted = await runInProcess(address, ['deleteall', '/many']);

  expect(listed.lines).toHaveLength(count);
  expect(all.lines).toHaveLength(count + 1);
  expect(found.lines).toHaveLength(10);
  expect(sizes.records[0]).toMatchObject({ path: '/many', nodes: count + 1 });
  expect(deleted.err).toBe(`drover: ${count + 1} nodes were deleted\n`);
  // A node costs a name here and there, and no more than that.
  expect(process.memoryUsage().heapUsed - heapBefore).toBeLessThan(count * 10_000);
});
