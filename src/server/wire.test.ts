import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import type { Connection, Wire } from './connection.ts';
import { servePlain } from './wire.ts';

interface Seen {
  readonly text: string;
  readonly memory: ArrayBufferLike;
}

/** A server that sends back what it is told, and notes in which memory it got it. */
async function echo(prepare: 'listening' | 'before', host = '127.0.0.1') {
  const seen: Seen[] = [];
  const wires: Wire[] = [];
  const faults: unknown[] = [];
  const closed: Wire[] = [];
  const drained: Wire[] = [];
  const accept = (wire: Wire) => {
    wires.push(wire);
    const connection = {
      receive(memory: Buffer, end: number = memory.length) {
        const chunk = memory.subarray(0, end);
        seen.push({ text: String(chunk), memory: chunk.buffer });
        if (String(chunk) === 'fault') throw new Error('a bug');
        if (String(chunk) === 'later') return;
        wire.write(Buffer.from(chunk), chunk.length);
      },
      drained: () => drained.push(wire),
      flush() {
        if (seen.at(-1)?.text === 'later') wire.write(Buffer.from('now'), 3);
      },
      wireClosed: () => closed.push(wire),
    };
    return connection as unknown as Connection;
  };
  const server = createServer({ noDelay: true });
  const serve = () => servePlain(server, accept, (error) => faults.push(error));
  if (prepare === 'before') serve();
  server.listen(0, host);
  await once(server, 'listening');
  if (prepare === 'listening') serve();
  return { server, seen, wires, faults, closed, drained };
}

async function say(server: Server, text: string): Promise<ReturnType<typeof connect>> {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.write(text);
  const [answer] = await once(socket, 'data');
  expect(String(answer)).toBe(text);
  return socket;
}

afterEach(() => {
  vi.restoreAllMocks();
});

test('links of a server that listens are read into one memory', async () => {
  const { server, seen, wires } = await echo('listening');
  const sockets = [await say(server, 'one'), await say(server, 'two')];

  expect(seen.map(({ text }) => text)).toEqual(['one', 'two']);
  expect(seen[0]!.memory).toBe(seen[1]!.memory);
  expect(wires.map(({ address, port }) => [address, port])).toEqual(
    sockets.map(({ localPort }) => ['127.0.0.1', localPort]),
  );
  for (const socket of sockets) socket.destroy();
  server.close();
});

test('where sockets can’t be made around what was accepted, they are read as usual', async () => {
  const { server, seen } = await echo('before'); // there is no handle yet
  const sockets = [await say(server, 'one'), await say(server, 'two')];

  expect(seen.map(({ text }) => text)).toEqual(['one', 'two']);
  expect(seen[0]!.memory).not.toBe(seen[1]!.memory);
  for (const socket of sockets) socket.destroy();
  server.close();
});

test('so they are where Node does not say how much it has read', async () => {
  vi.spyOn(process as unknown as { binding(): unknown }, 'binding').mockImplementation(() => {
    throw new Error('No such module: stream_wrap');
  });
  const { server, seen } = await echo('listening');
  const sockets = [await say(server, 'one'), await say(server, 'two')];

  expect(seen.map(({ text }) => text)).toEqual(['one', 'two']);
  expect(seen[0]!.memory).not.toBe(seen[1]!.memory);
  for (const socket of sockets) socket.destroy();
  server.close();
});

test('a client of IPv4 is one, also where the server listens on both', async () => {
  const { server, wires } = await echo('listening', '::');
  const socket = await say(server, 'one');

  expect(wires[0]!.address).toBe('127.0.0.1');
  socket.destroy();
  server.close();
});

test('a link that is closed before it was served is read by nobody', async () => {
  const server = createServer({ noDelay: true });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const receive = vi.fn();
  const accept = (wire: Wire) => {
    wire.destroy();
    return { receive, wireClosed() {} } as unknown as Connection;
  };
  const failed = vi.fn();
  servePlain(server, accept, failed);
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.on('error', () => {}); // what it says may come too late

  socket.write('one');
  await once(socket, 'close');
  await new Promise((resolve) => server.close(resolve));

  expect(receive).not.toHaveBeenCalled();
  expect(failed).not.toHaveBeenCalled();
});

test.each(['listening', 'before'] as const)(
  'what is said before the end comes before the end (%s)',
  async (prepare) => {
    const { server, wires, closed } = await echo(prepare);
    const socket = await say(server, 'one');
    const said: string[] = [];
    socket.on('data', (chunk) => said.push(String(chunk)));

    wires[0]!.write(Buffer.from('farewell'), 8);
    wires[0]!.end();
    wires[0]!.end();
    await once(socket, 'close');

    expect(said.join('')).toBe('farewell');
    await expect.poll(() => closed).toEqual([wires[0]]);
    server.close();
  },
);

test('who has nothing more to say hears what it is still owed, and the link ends', async () => {
  const { server, closed } = await echo('listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const said: string[] = [];
  socket.on('data', (chunk) => said.push(String(chunk)));

  socket.end('later');
  await once(socket, 'close');

  expect(said).toEqual(['now']);
  expect(closed).toHaveLength(1);
  server.close();
});

test.each(['bare', 'streamed'])(
  'a link that is paused is read when it is resumed (%s)',
  async (how) => {
    const { server, wires, seen } = await echo('listening');
    const socket = await say(server, 'one');
    const other = await say(server, 'two');
    const [wire] = wires as [Wire];
    let bytes = 0;
    socket.on('data', (chunk) => {
      bytes += chunk.length;
    });

    wire.pause();
    socket.write('three');
    let owed = 'three'.length;
    if (how === 'streamed') {
      const piece = Buffer.alloc(1_000_000);
      do owed += piece.length;
      while (wire.write(piece, piece.length)); // until the kernel is full
    }
    other.write('four');
    await once(other, 'data');
    const before = seen.map(({ text }) => text);
    wire.resume();

    expect(before).toEqual(['one', 'two', 'four']);
    await expect.poll(() => bytes).toBe(owed);
    expect(seen.map(({ text }) => text)).toEqual(['one', 'two', 'four', 'three']);
    for (const one of [socket, other]) one.destroy();
    server.close();
  },
);

test.each(['listening', 'before'] as const)(
  'a server closes after its links, and not before (%s)',
  async (prepare) => {
    const { server, closed } = await echo(prepare);
    const sockets = [await say(server, 'one'), await say(server, 'two')];
    let isClosed = false;
    const closing = new Promise<void>((resolve) => {
      server.close(() => {
        isClosed = true;
        resolve();
      });
    });

    sockets[0]!.destroy();
    await expect.poll(() => closed.length).toBe(1);
    const afterOne = isClosed;
    sockets[1]!.destroy();
    await closing;

    expect(afterOne).toBe(false);
    await expect.poll(() => closed.length).toBe(2);
  },
);

test('what goes wrong while a link is served is told, and the link stays', async () => {
  const { server, faults } = await echo('listening');
  const socket = await say(server, 'one');

  socket.write('fault');
  await expect.poll(() => faults.length).toBe(1);
  socket.write('two');

  expect(String((await once(socket, 'data'))[0])).toBe('two');
  socket.destroy();
  server.close();
});

test.each(['listening', 'before'] as const)(
  'a peer that does not read gets all of it in order when it does (%s)',
  async (prepare) => {
    const { server, wires } = await echo(prepare);
    const socket = await say(server, 'one');
    socket.pause();
    const [wire] = wires as [Wire];
    const pieces = Array.from({ length: 300 }, (_, i) => Buffer.alloc(40_000 + i, i));

    const taken = pieces.map((piece) => wire.write(piece, piece.length));
    const queued = wire.queuedBytes;
    const all = Buffer.concat(pieces);
    const got: Buffer[] = [];
    let bytes = 0;
    await new Promise<void>((resolve) => {
      socket.on('data', (chunk) => {
        got.push(chunk);
        bytes += chunk.length;
        if (bytes >= all.length) resolve();
      });
      socket.resume();
    });

    expect(taken[0]).toBe(true);
    expect(taken.at(-1)).toBe(false); // more than a kernel holds
    expect(queued).toBeGreaterThan(0);
    expect(Buffer.concat(got).equals(all)).toBe(true);
    await expect.poll(() => wire.queuedBytes).toBe(0);
    expect(wire.write(Buffer.from('behind it and more'), 9)).toBe(true);
    expect(String((await once(socket, 'data'))[0])).toBe('behind it');
    socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  },
);

test('many small writes that wait count for the memory that they take', async () => {
  const { server, wires } = await echo('listening');
  const socket = await say(server, 'one');
  socket.pause();
  const [wire] = wires as [Wire];
  const large = Buffer.alloc(1_000_000);
  while (wire.write(large, large.length)); // until the kernel is full
  const before = wire.queuedBytes;

  for (let i = 0; i < 1_000; i++) wire.write(Buffer.from('an event'), 8);

  expect(wire.queuedBytes - before).toBeGreaterThan(150_000);
  socket.destroy();
  server.close();
});

test('it is told when a peer has taken all that was queued, however little that was', async () => {
  const { server, wires, drained } = await echo('listening');
  const socket = await say(server, 'one');
  socket.pause();
  const [wire] = wires as [Wire];
  const piece = Buffer.alloc(1_000);
  while (wire.write(piece, piece.length)); // until the kernel is full: far less is queued than a stream likes
  const before = drained.length;

  socket.resume();

  await expect.poll(() => drained.length).toBeGreaterThan(before);
  expect(wire.queuedBytes).toBe(0);
  socket.destroy();
  server.close();
});

test('what is said to a link that is gone reaches nobody else', async () => {
  const { server, wires, closed } = await echo('listening');
  const first = await say(server, 'one');
  wires[0]!.destroy();
  await once(first, 'close');
  await expect.poll(() => closed.length).toBe(1);
  // One of these ends has its descriptor now: the lowest that is free is given out first.
  const others = [];
  for (let i = 0; i < 10; i++) others.push(await say(server, `${i}`));
  const heard = others.map((socket) => {
    const chunks: string[] = [];
    socket.on('data', (chunk) => chunks.push(String(chunk)));
    return chunks;
  });

  expect(wires[0]!.write(Buffer.from('to the first'), 12)).toBe(true);
  for (const wire of wires.slice(1)) expect(wire.write(Buffer.from('to you'), 6)).toBe(true);

  const all = others.map(() => 'to you');
  await expect.poll(() => heard.map((chunks) => chunks.join(''))).toEqual(all);
  for (const socket of others) socket.destroy();
  server.close();
});

test('a peer that has reset the link ends it, and nothing else', async () => {
  const { server, wires, closed, faults } = await echo('listening');
  const socket = await say(server, 'one');

  socket.resetAndDestroy();
  await expect
    .poll(() => {
      wires[0]!.write(Buffer.from('into the void and more'), 13);
      return closed.length;
    })
    .toBe(1);

  expect(faults).toEqual([]);
  server.close();
});
