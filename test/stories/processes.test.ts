/** What only a process of its own can show: that it ends by itself, and what it knows after a pause. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { expect, test } from 'vitest';
import { startZk } from '../zk.ts';

const library = new URL('../../src/client/index.ts', import.meta.url).href;

interface Child {
  readonly process: ChildProcess;
  readonly lines: string[];
  line(wanted: (line: string) => boolean): Promise<string>;
  ended(): Promise<number | null>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Runs the program, to which `address` is the server and `library` is all of the client. */
function run(address: string, program: string): Child {
  const source = `
    import * as library from ${JSON.stringify(library)};
    const address = ${JSON.stringify(address)};
    const { connect, Client } = library;
    ${program}`;
  const args = ['--import', 'tsx', '--input-type=module', '--eval', source];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const lines: string[] = [];
  const reader = createInterface(child.stdout);
  reader.on('line', (line) => lines.push(line));
  let errors = '';
  child.stderr.on('data', (text) => {
    errors += text;
  });
  const exit = once(child, 'close');
  return {
    process: child,
    lines,
    line: (wanted) =>
      new Promise((resolve, reject) => {
        const look = () => {
          const found = lines.find(wanted);
          if (found === undefined) return;
          reader.off('line', look);
          resolve(found);
        };
        reader.on('line', look);
        void exit.then(() => reject(new Error(`it ended: ${lines.join('\n')}\n${errors}`)));
        look();
      }),
    async ended() {
      const [code] = await exit;
      if (errors !== '') lines.push(errors);
      return code;
    },
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null) child.kill('SIGKILL');
      await exit;
    },
  };
}

test('after close a process ends by itself: no socket, timer or listener keeps it', async () => {
  await using zk = await startZk();
  await using child = run(
    zk.directAddress,
    `
    const client = await connect(address);
    await client.create('/a', '', { mode: 'ephemeral' });
    await client.addWatch('/a', 'persistent', () => {});
    const stream = client.watch('/', { recursive: true });
    await stream.ready;
    await client.get('/a', { timeoutMs: 60_000, signal: new AbortController().signal });
    await client.close();
    console.log('closed', process.getActiveResourcesInfo().filter((one) => /Timeout|GETADDR/.test(one)).join());
    `,
  );

  expect([await child.ended(), child.lines]).toEqual([0, ['closed ']]);
});

test('a client that found no server leaves nothing behind either', async () => {
  await using zk = await startZk();
  zk.link.refuse();
  await using child = run(
    zk.address,
    `
    await connect(address, { connectTimeoutMs: 200 }).catch((error) => console.log(error.code));
    const client = new Client(address);
    client.get('/').catch((error) => console.log(error.code));
    await client.close();
    console.log('done');
    `,
  );

  expect([await child.ended(), child.lines]).toEqual([
    0,
    ['CONNECT_FAILED', 'SESSION_EXPIRED', 'done'],
  ]);
});

/** Tells of all that it hears, and whether it knew by then that its session may be over. */
const holder = `
  const client = await connect(address, { sessionTimeoutMs: 1_000 });
  const held = client.sessionSignal;
  const say = (what) => console.log(what, 'aborted:', held.aborted, 'state:', client.state.name);
  client.on('state', ({ name }) => say('state ' + name));
  await client.addWatch('/', 'persistent', ({ type }) => say('event ' + type));
  await client.create('/holder', '', { mode: 'ephemeral' });
  await client.exists('/'); // whatever that create has told is told by now
  // In a timer: what has come meanwhile is then read before the next timer fires.
  const idle = (work) => new Promise((resolve) => setTimeout(() => resolve(work())));
`;

const ending = `
  if (!held.aborted) await new Promise((resolve) => held.addEventListener('abort', resolve));
  await client.get('/').catch((error) => say('get ' + error.code));
  await client.close();
`;

/** To a pipe: it has left before the next line runs. */
const ready = `console.log('ready');`;
const busy = 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3_000);';

test.each([
  ['was stopped', ready + ending],
  ['was busy with itself', `await idle(() => { ${ready} ${busy} }); ${ending}`],
])(
  'a process that %s for longer than its session knows that it is over before anything else',
  async (how, rest) => {
    await using zk = await startZk();
    const witness = await zk.witness();
    await using child = run(zk.directAddress, holder + rest);
    await child.line((line) => line === 'ready');
    const before = child.lines.indexOf('ready') + 1;
    const gone = new Promise((resolve) => void witness.exists('/holder', { watch: resolve }));

    if (how === 'was stopped') child.process.kill('SIGSTOP');
    await witness.set('/', 'told to a process that does not run');
    await gone;
    if (how === 'was stopped') child.process.kill('SIGCONT');
    const code = await child.ended();

    const after = child.lines.slice(before);
    expect(after.length).toBeGreaterThanOrEqual(2);
    expect(after.filter((line) => !line.includes('aborted: true state: expired'))).toEqual([]);
    expect(after).toContain('get SESSION_EXPIRED aborted: true state: expired');
    expect(code).toBe(0);
  },
);
