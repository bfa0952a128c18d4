/** No command line ends in a stack trace: an error that nobody foresaw is one sentence and an exit code. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Command, CommandTable } from '../src/cli/command.ts';
import { commands } from '../src/cli/commands.ts';
import { connect } from '../src/client/index.ts';
import { startTestServer } from '../src/testing/index.ts';
import { runInProcess, shellInProcess } from './cli-run.ts';

const root = resolve(import.meta.dirname, '..');
const tsx = import.meta.resolve('tsx');
const trace = /\n\s+at .*[:(]/;

function failing(error: unknown): CommandTable {
  const command: Command = {
    ...{ usage: 'ls [path]', about: 'fails', group: 'nodes', options: [], isLocal: true },
    run: async () => {
      throw error;
    },
  };
  return { ls: command };
}

test.each([
  [
    new TypeError('undefined is not a function\n    at evil (x.ts:1)'),
    /TypeError: undefined is not/,
  ],
  [Object.assign(new Error('bad'), { code: 'ERR_INVALID_ARG_TYPE' }), /Error: bad/],
  ['a string', /a string/],
  [undefined, /undefined/],
  [null, /null/],
])('what a command throws, %s, is one sentence with exit code 1', async (error, what) => {
  const table = failing(error);

  const said = await runInProcess('127.0.0.1:1', ['ls'], { table });
  const json = await runInProcess('127.0.0.1:1', ['ls', '--json'], { table });

  expect(said.code).toBe(1);
  expect(said.err).toMatch(what);
  expect(said.err).toMatch(/^drover: internal error .*--debug shows where\n$/);
  expect(JSON.parse(json.err)).toMatchObject({ error: { code: 'BUG' } });
  expect(json.err).not.toContain('trace');
});

test('--debug shows where an internal error comes from', async () => {
  const table = failing(new TypeError('canary'));

  const said = await runInProcess('127.0.0.1:1', ['ls', '--debug'], { table });
  const json = await runInProcess('127.0.0.1:1', ['ls', '--debug', '--json'], { table });

  expect(said.code).toBe(1);
  expect(said.err).toMatch(trace);
  expect(JSON.parse(json.err).error.trace).toContain('cli-last-resort');
});

test.each([
  [[], false],
  [['--debug'], true],
])(
  'an error outside of any command, with %j, is one sentence and exit code 1',
  async (more, hasTrace) => {
    const fail = `process.once('SIGUSR2', () => { throw new TypeError('canary'); });
    process.once('SIGUSR1', () => { Promise.reject(new TypeError('canary')); });`;
    for (const signal of ['SIGUSR2', 'SIGUSR1'] as const) {
      const child = spawn(
        process.execPath,
        [
          ...['--import', tsx, '--import', `data:text/javascript,${encodeURIComponent(fail)}`],
          ...[resolve(root, 'src/cli/main.ts'), 'shell', ...more],
        ],
        { env: { ...process.env, DROVER_JOURNAL: '' }, stdio: ['pipe', 'pipe', 'pipe'] },
      );
      let err = '';
      child.stderr.setEncoding('utf8').on('data', (chunk) => {
        err += chunk;
      });
      const ended = once(child, 'close');
      child.stdin.write('version\n');
      await once(child.stdout, 'data');
      child.kill(signal);
      const [code] = await ended;

      expect(code).toBe(1);
      expect(err).toMatch(/^drover: internal error \(TypeError: canary\); .*--debug shows where\n/);
      expect(trace.test(err)).toBe(hasTrace);
    }
  },
);

/** Commands that end by themselves and touch nothing but a server. */
const harmless = [
  ...['ls', 'ls2', 'get', 'stat', 'sync', 'getEphemerals', 'getAllChildrenNumber', 'tree', 'find'],
  ...['grep', 'du', 'getAcl', 'listquota', 'whoami', 'whois', 'create', 'set', 'delete', 'txn'],
  ...['setAcl', 'setquota', 'delquota', 'status', 'doctor', '4lw', 'help', 'version', 'kafka'],
];
const words = fc.constantFrom(
  ...[
    '/',
    '/api',
    '/a b',
    'api-',
    'api\\-',
    '-',
    '--',
    '---',
    '(',
    '[',
    '*-?',
    '\\',
    '"',
    "'",
    '/..',
  ],
  ...['', ' ', '\u0000', '/\u0000', '\u202e', '\ud800', '0', '-1', '1e999', '99999999999999999999'],
  ...['-E', '-i', '-F', '-s', '-R', '-v', '--depth', '--newer', '--owner', '--json', '--acl'],
  ...['world:anyone:cdrwa', 'digest:a:b', 'x:y:z', 'topics', 'brokers', 'group', 'offsets', 'lag'],
  ...['create /x', 'check / 0', 'constructor', '__proto__', '--__proto__', '--constructor=1'],
);

test('no words of any kind make a command show a stack trace', async () => {
  await using server = await startTestServer();
  const client = await connect(server.address);
  await client.create('/api', 'a');
  await client.close();
  await using shell = shellInProcess(server.address);

  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...harmless),
      fc.array(words, { maxLength: 4 }),
      async (name, args) => {
        // As a script: alone, what sets a watch waits for its event.
        const ran = await runInProcess(server.address, [name, ...args], { kind: 'script' });
        const line = await shell.run([name, ...args].join(' '));

        for (const { code, err } of [ran, line]) {
          expect(err, `${name} ${args.join(' ')}`).not.toMatch(trace);
          expect(err, `${name} ${args.join(' ')}`).not.toContain('internal error');
          expect(code).toBeTypeOf('number');
        }
      },
    ),
    { numRuns: 150, examples: [['find', ['/', 'api-']]] },
  );
}, 120_000);

test('every command of the table that is called harmless exists', () => {
  expect(harmless.filter((name) => !Object.hasOwn(commands, name))).toEqual([]);
});
