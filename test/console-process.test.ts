/** The console of a server runs in a process of its own: what goes wrong in it is not the server's. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect as dial } from 'node:net';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import type { Context } from '../src/cli/command.ts';
import type { ProcessOptions } from '../src/cli/console-process.ts';
import { openServerConsole } from '../src/cli/console-server.ts';
import { connect } from '../src/client/index.ts';
import { startServer } from '../src/server/index.ts';
import { ManualClock } from '../src/support/index.ts';

/** Each start of a console from its source takes a second or two of one core. */
const slow = { timeout: 90_000 };
const entry = new URL('./console-faulty-child.ts', import.meta.url);

async function startBoth(child: Partial<ProcessOptions> = {}) {
  const server = await startServer({ port: 0, inMemory: true, fourLetterWords: 'ruok' });
  const said: string[] = [];
  const pids: number[] = [];
  const context = { environment: {} } as unknown as Context;
  const console = await openServerConsole(context, server, {
    port: 0,
    write: true,
    say: (sentence) => said.push(sentence),
    child: { entry, onStart: (pid) => pids.push(pid), ...child },
  });
  const client = await connect(server.address);
  const origin = `http://127.0.0.1:${console.port}`;
  return {
    ...{ server, console, client, said, origin },
    /** To the console's process. */
    signal: (signal: NodeJS.Signals) => process.kill(pids.at(-1)!, signal),
    async [Symbol.asyncDispose]() {
      await console.close();
      await client.close();
      await server.close();
    },
  };
}

const eventually = (look: () => Promise<void>) =>
  vi.waitFor(look, { timeout: 20_000, interval: 50 });

async function ruok(port: number): Promise<string> {
  const socket = dial(port, '127.0.0.1');
  socket.end('ruok');
  const [answer] = await once(socket, 'data');
  return String(answer);
}

test('while a page or a shell line keeps the console busy, the server answers its clients', async () => {
  await using zk = await startBoth();
  const { origin, server, client } = zk;
  await client.create('/a', 'one');
  const { csrf } = (await (await fetch(`${origin}/api/session`)).json()) as { csrf: string };
  const order: string[] = [];

  zk.signal('SIGSTOP');
  const page = fetch(`${origin}/api/node?path=/a`).then((answer) => {
    order.push('page');
    return answer.status;
  });
  const line = fetch(`${origin}/api/shell`, {
    method: 'POST',
    body: JSON.stringify({ line: 'find / a' }),
    headers: { 'content-type': 'application/json', 'x-drover-token': csrf, origin },
  }).then((answer) => {
    order.push('line');
    return answer.status;
  });
  for (let i = 0; i < 100; i++) {
    expect(await ruok(server.port)).toBe('imok');
    expect(String((await client.get('/a')).data)).toBe('one');
  }
  order.push('clients');
  zk.signal('SIGCONT');

  expect(await Promise.all([page, line])).toEqual([200, 200]);
  expect(order[0]).toBe('clients');
});

test(
  'a console that uses up its memory is started again, and the server never stops',
  slow,
  async () => {
    await using zk = await startBoth({ heapMb: 64 });
    await zk.client.create('/kept', 'kept');

    zk.signal('SIGWINCH');
    await eventually(async () => {
      const ended = /ended by itself: .*memory.*starting it again/;
      expect(zk.said).toEqual([expect.stringMatching(ended)]);
      expect((await fetch(`${zk.origin}/api/session`)).status).toBe(200);
    });

    expect(String((await zk.client.get('/kept')).data)).toBe('kept');
    expect(zk.client.state.name).toBe('connected');
  },
);

test('a console that keeps ending stays off, and says so', slow, async () => {
  await using zk = await startBoth();

  for (let times = 1; times <= 4; times++) {
    await eventually(async () =>
      expect((await fetch(`${zk.origin}/api/session`)).status).toBe(200),
    );
    zk.signal('SIGUSR2');
    await eventually(async () => expect(zk.said).toHaveLength(times));
  }

  expect(zk.said[0]).toContain('a bug in a page; starting it again');
  expect(zk.said[3]).toContain('too often');
  await expect(fetch(`${zk.origin}/api/session`)).rejects.toThrow();
  expect(await ruok(zk.server.port)).toBe('imok');
});

test('a server that closes does not wait for a console that is busy', async () => {
  const clock = new ManualClock();
  await using zk = await startBoth({ clock });

  zk.signal('SIGSTOP');
  const closed = zk.console.close();
  clock.advance(3_000);

  await closed;
  expect(await ruok(zk.server.port)).toBe('imok');
});

test('the console ends with its server, also when that is killed', slow, async () => {
  const main = join(import.meta.dirname, '../src/cli/main.ts');
  const args = ['--import', import.meta.resolve('tsx'), main, 'serve', '--in-memory', '--json'];
  const server = spawn(process.execPath, [...args, '--port', '0', '--console-port', '0'], {
    env: { PATH: process.env.PATH! },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [line] = await once(server.stdout!, 'data');
  const { consolePort } = JSON.parse(String(line)) as { consolePort: number };
  const look = () => fetch(`http://127.0.0.1:${consolePort}/api/session`);
  expect((await look()).status).toBe(200);

  server.kill('SIGKILL');

  await eventually(async () => expect(look()).rejects.toThrow());
});
