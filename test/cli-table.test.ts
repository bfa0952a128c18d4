/** The table of commands, gone through as a whole: what holds for one has to hold for all. */

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { commandsPage } from '../scripts/commands-page.ts';
import { groups } from '../src/cli/command.ts';
import { commands } from '../src/cli/commands.ts';
import { exitCodes } from '../src/cli/exit-codes.ts';
import { longOf, nameOf, optionsOf } from '../src/cli/parse.ts';
import { connect } from '../src/client/index.ts';
import { startTestServer, type TestServer } from '../src/testing/index.ts';
import { runInProcess, shellInProcess } from './cli-run.ts';

const names = Object.keys(commands);
const root = resolve(import.meta.dirname, '..');

test.each(names)('%s is fit to be read by help, argv and completion', (name) => {
  const command = commands[name]!;
  const { own, shared } = optionsOf(command);
  const flags = [...own, ...shared].flatMap(({ flags }) =>
    flags.replace(/[<[].*/, '').split(/[ ,]+/),
  );

  expect(nameOf(command)).toBe(name);
  expect(command.about).not.toMatch(/^[A-Z]|\.$/);
  expect(Object.keys(groups)).toContain(command.group);
  expect(flags.filter((flag, i) => flag !== '' && flags.indexOf(flag) !== i)).toEqual([]);
  expect(own.some(({ flags }) => longOf(flags) === '--json')).toBe(true);
});

test('no name stands for two commands', () => {
  const all = names.flatMap((name) => [name, ...(commands[name]!.aliases ?? [])]);

  expect(all.filter((name, i) => all.indexOf(name) !== i)).toEqual([]);
});

test('every command of zkCli is here, of 3.9 and of 3.4', () => {
  const zkCli = [
    ...['addWatch', 'addauth', 'close', 'config', 'connect', 'create', 'delete', 'deleteall'],
    ...['delquota', 'get', 'getAcl', 'getAllChildrenNumber', 'getEphemerals', 'history'],
    ...['listquota', 'ls', 'printwatches', 'quit', 'reconfig', 'redo', 'removewatches', 'set'],
    ...['setAcl', 'setquota', 'stat', 'sync', 'version', 'whoami', 'ls2', 'rmr'],
  ];
  const all = names.flatMap((name) => [name, ...(commands[name]!.aliases ?? [])]);

  expect(zkCli.filter((name) => !all.includes(name))).toEqual([]);
});

test('docs/commands.md says what the table says', async () => {
  await expect(commandsPage(commands)).toMatchFileSnapshot('../docs/commands.md');
});

const writing = names.filter((name) => commands[name]!.writes);
test.each(writing)(
  '%s is refused where the target is read-only, before anything is sent',
  async (name) => {
    const wanted = commands[name]!.usage.split(' ')
      .slice(1)
      .filter((word) => word.startsWith('<'));
    const words = wanted.map(() => '/a');

    // Nothing listens there: whoever tried would say so.
    const said = await runInProcess('127.0.0.1:1', [name, ...words, '--read-only']);

    expect(said).toMatchObject({ code: exitCodes.refused, out: '' });
    expect(said.err).toBe(`drover: ${name} writes, and DROVER_SERVER is read-only\n`);
  },
);

describe('--json', () => {
  let server: TestServer;
  let folder: string;
  let address: string;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'drover-table-'));
    server = await startTestServer({ fourLetterWords: '*' });
    address = `127.0.0.1:${server.port}`;
    const client = await connect(address);
    for (const path of ['/a', '/a/b', '/gone', '/del', '/mirrored']) {
      await client.create(path, '{"k": 1}');
    }
    await client.close();
  });

  afterAll(async () => {
    await server.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Words to run each command with. In a shell where it means something there alone. */
  const examples: Readonly<Record<string, readonly string[] | string>> = {
    ls: ['/a'],
    ls2: ['/a'],
    get: ['/a'],
    stat: ['/a'],
    create: ['/made', 'x'],
    set: ['/a', '{"k": 2}'],
    delete: ['/gone'],
    txn: ['create /t x', 'delete /t'],
    sync: ['/'],
    getEphemerals: ['/'],
    getAllChildrenNumber: ['/'],
    tree: ['/'],
    find: ['/'],
    grep: ['k', '/a'],
    du: ['/'],
    diff: ['/a', '/a/b'],
    deleteall: ['/del', '--yes'],
    addauth: ['digest', 'a:b'],
    getAcl: ['/a'],
    setAcl: ['/a', 'world:anyone:cdrwa'],
    whoami: [],
    whois: ['0x1'],
    setquota: ['-n', '10', '/a'],
    listquota: ['/a'],
    delquota: ['/a'],
    config: [],
    version: [],
    help: [],
    completion: ['bash'],
    complete: ['ls /'],
    pwd: [],
    cp: ['/a', '/copied'],
    mirror: ['/a', '/mirrored', '--yes'],
    status: [],
    doctor: [],
    top: ['--count', '1'],
    latency: ['--count', '2', '--interval', '1'],
    '4lw': ['ruok'],
    kafka: ['controller'],
    context: ['list'],
    addWatch: 'addWatch /a',
    removewatches: 'removewatches /a -a',
    cd: 'cd /a',
    history: 'history',
    redo: 'redo 0',
    printwatches: 'printwatches',
    connect: 'connect',
    close: 'close',
    quit: 'quit',
  };

  /** Those that this test can't run in passing, and where they are run. */
  const elsewhere: Readonly<Record<string, string>> = {
    watch: 'test/stories/cli-trees.test.ts',
    edit: 'test/stories/cli-edit.test.ts',
    reconfig: 'test/stories/cli-access.test.ts',
    serve: 'test/cli.test.ts',
    console: 'test/console.test.ts',
    'test-server': 'test/cli.test.ts',
    shell: 'test/cli-shell.test.ts',
    log: 'test/cli-files.test.ts',
    snapshot: 'test/cli-files.test.ts',
    ensemble: 'test/peers/ensemble-move.test.ts',
    backup: 'test/stories/cli-copy.test.ts',
    restore: 'test/stories/cli-copy.test.ts',
    bench: 'test/stories/cli-operators.test.ts',
    lock: 'test/stories/cli-recipes.test.ts',
    elect: 'test/stories/cli-recipes.test.ts',
    semaphore: 'test/stories/cli-recipes.test.ts',
    barrier: 'test/stories/cli-recipes.test.ts',
    queue: 'test/stories/cli-recipes.test.ts',
    register: 'test/stories/cli-recipes.test.ts',
    demo: 'test/cli-demo-kafka.test.ts',
    align: 'test/stories/cli-align.test.ts',
  };

  test('every command is tried here, or named with where it is', () => {
    const known = [...Object.keys(examples), ...Object.keys(elsewhere)];

    expect(names.filter((name) => !known.includes(name))).toEqual([]);
    const isThere = ([name, file]: [string, string]) =>
      existsSync(join(root, file)) && readFileSync(join(root, file), 'utf8').includes(name);
    const gone = Object.entries(elsewhere).filter((entry) => names.includes(entry[0]));
    expect(gone.filter((entry) => !isThere(entry))).toEqual([]);
  });

  const byThemselves = Object.entries(examples).filter(([, how]) => typeof how !== 'string');
  test.each(byThemselves)('%s prints objects and nothing else', async (name, words) => {
    const said = await runInProcess(address, [name, ...(words as readonly string[]), '--json'], {
      environment: { HOME: folder, XDG_CONFIG_HOME: folder },
    });

    const strange = said.lines.filter((line) => !/^\{.*\}$/.test(line));
    expect(strange).toEqual([]);
    expect(() => said.records).not.toThrow();
    if (name !== 'context') expect(said.lines.length).toBeGreaterThan(0);
    expect(Object.values(exitCodes)).toContain(said.code);
    expect([exitCodes.usage, exitCodes.unreachable]).not.toContain(said.code);
  });

  test('lines of a shell print objects and nothing else', async () => {
    await using shell = shellInProcess(address, { json: true });
    const lines = Object.values(examples).filter((how) => typeof how === 'string');

    for (const line of ['ls /', ...lines]) {
      const said = await shell.run(line);
      expect(said.lines.length, line).toBeGreaterThan(0);
      expect(said.lines.filter((each) => !/^\{.*\}$/.test(each))).toEqual([]);
      expect([line, said.code]).toEqual([line, 0]);
    }
  });

  test('errors are objects too', async () => {
    const said = await runInProcess(address, ['get', '/none', '--json']);

    expect(said).toMatchObject({ code: 6, out: '' });
    expect(JSON.parse(said.err)).toMatchObject({ error: { code: 'NO_NODE', path: '/none' } });
  });
});
