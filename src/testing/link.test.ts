import { once } from 'node:events';
import { createServer, type Socket, connect as tcpConnect } from 'node:net';
import { expect, test } from 'vitest';
import { deferred, ManualClock } from '../support/index.ts';
import { Link } from './link.ts';
import type { LinkFrame } from './link-rules.ts';

/** One end of a connection, which keeps what it hears and can be waited on. */
class End {
  readonly socket: Socket;
  readonly chunks: Buffer[] = [];
  ended = false;
  closed = false;
  resetSeen = false;
  readonly #looks = new Set<() => void>();

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (chunk) => this.#heard(() => this.chunks.push(chunk)));
    socket.on('end', () => this.#heard(() => (this.ended = true)));
    socket.on('close', () => this.#heard(() => (this.closed = true)));
    socket.on('error', (error: NodeJS.ErrnoException) =>
      this.#heard(() => (this.resetSeen ||= error.code === 'ECONNRESET')),
    );
  }

  get text(): string {
    return Buffer.concat(this.chunks).toString('latin1');
  }

  until(wanted: (end: End) => boolean): Promise<void> {
    const { promise, resolve } = deferred();
    const look = () => {
      if (wanted(this)) resolve();
    };
    this.#looks.add(look);
    look();
    return promise;
  }

  #heard(note: () => void): void {
    note();
    for (const look of this.#looks) look();
  }
}

async function startPeer() {
  const ends: End[] = [];
  let arrived = deferred();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    ends.push(new End(socket));
    arrived.resolve();
    arrived = deferred();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    host: '127.0.0.1',
    port: (server.address() as { port: number }).port,
    ends,
    async end(index: number): Promise<End> {
      while (ends.length <= index) await arrived.promise;
      return ends[index]!;
    },
    async [Symbol.asyncDispose]() {
      for (const { socket } of ends) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

async function dial(link: { host: string; port: number }): Promise<End> {
  const socket = tcpConnect({ host: link.host, port: link.port, noDelay: true });
  await once(socket, 'connect');
  return new End(socket);
}

/** A peer, a link to it, and a connection through it with both its ends. */
async function connected(clock?: ManualClock) {
  const peer = await startPeer();
  const link = await Link.to(peer, clock ? { clock } : {});
  const client = await dial(link);
  const server = await peer.end(0);
  return {
    peer,
    link,
    client,
    server,
    async [Symbol.asyncDispose]() {
      client.socket.destroy();
      await link.close();
      await peer[Symbol.asyncDispose]();
    },
  };
}

const frame = (text: string) => {
  const bytes = Buffer.alloc(4 + text.length);
  bytes.writeInt32BE(text.length);
  bytes.write(text, 4, 'latin1');
  return bytes;
};

/** Long enough for loopback to deliver whatever it would: each turn of the event loop reads once. */
async function settle(): Promise<void> {
  for (let i = 0; i < 50; i++) await new Promise(setImmediate);
}

test('bytes pass both ways, and are counted', async () => {
  await using story = await connected();
  const { link, client, server } = story;

  client.socket.write('hello');
  await server.until(({ text }) => text === 'hello');
  server.socket.write('you too');
  await client.until(({ text }) => text === 'you too');

  expect(link.stats).toMatchObject({ connections: 1, open: 1, cuts: 0 });
  expect(link.stats.bytes).toEqual({ toServer: 5, toClient: 7 });
  expect(link.address).toBe(`127.0.0.1:${link.port}`);
});

test('five megabytes pass unharmed to a reader that is slow to begin', async () => {
  await using story = await connected();
  const { client, server } = story;
  const sent = Buffer.alloc(5_000_000, 'drover');
  server.socket.pause();

  client.socket.write(sent);
  await settle();
  server.socket.resume();
  await server.until(({ chunks }) => chunks.reduce((sum, { length }) => sum + length, 0) >= 5e6);

  expect(Buffer.concat(server.chunks).equals(sent)).toBe(true);
});

test('one side may end while the other goes on', async () => {
  await using story = await connected();
  const { client, server } = story;

  client.socket.end('last words');
  await server.until(({ ended }) => ended);
  server.socket.end('heard');
  await client.until(({ closed }) => closed);

  expect(server.text).toBe('last words');
  expect(client.text).toBe('heard');
});

test('cut ends every connection at both ends, and a new one passes', async () => {
  await using story = await connected();
  const { peer, link, client, server } = story;
  const other = await dial(link);
  await peer.end(1);

  link.cut();
  await Promise.all([client, other, server].map((end) => end.until((it) => it.ended || it.closed)));
  const again = await dial(link);
  again.socket.write('back');
  await (await peer.end(2)).until(({ text }) => text === 'back');

  expect(link.stats).toMatchObject({ connections: 3, cuts: 2, open: 1 });
  again.socket.destroy();
});

test('cut with a reset is seen as a reset', async () => {
  await using story = await connected();
  const { link, client, server } = story;

  link.cut({ reset: true });
  await Promise.all([client.until(({ closed }) => closed), server.until(({ closed }) => closed)]);

  expect([client.resetSeen, server.resetSeen]).toEqual([true, true]);
});

test('while refusing, dialling fails as on a dead port and what is connected stays', async () => {
  await using story = await connected();
  const { peer, link, client, server } = story;

  link.refuse();
  await expect(dial(link)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  client.socket.write('still here');
  await server.until(({ text }) => text === 'still here');
  const { port } = link;
  await link.accept();
  await link.accept();
  const next = await dial(link);
  await peer.end(1);

  expect(link.port).toBe(port);
  next.socket.destroy();
});

test('new connections that are held go on once they are admitted, and what is connected stays', async () => {
  await using story = await connected();
  const { peer, link, client, server } = story;

  link.hold();
  const late = await dial(link);
  late.socket.write('late');
  client.socket.write('still here');
  await server.until(({ text }) => text === 'still here');
  await settle();
  expect(peer.ends.length).toBe(1);

  link.blackhole();
  link.admit();
  await settle();
  expect(peer.ends.length).toBe(1);

  link.heal();
  await (await peer.end(1)).until(({ text }) => text === 'late');
  late.socket.destroy();
});

test('a black hole takes bytes, ends and new connections and gives nothing; healing gives all', async () => {
  await using story = await connected();
  const { peer, link, client, server } = story;

  link.blackhole();
  client.socket.end('into the dark');
  server.socket.write('and from it');
  const late = await dial(link);
  late.socket.write('late');
  await settle();
  expect([server.text, server.ended, client.text, peer.ends.length]).toEqual(['', false, '', 1]);
  expect(link.stats.open).toBe(2);

  link.heal();
  await server.until(({ ended }) => ended);
  await client.until(({ text }) => text === 'and from it');
  await (await peer.end(1)).until(({ text }) => text === 'late');

  expect(server.text).toBe('into the dark');
  late.socket.destroy();
});

test('a black hole hides that a peer is gone', async () => {
  await using story = await connected();
  const { link, client, server } = story;

  link.blackhole();
  server.socket.resetAndDestroy();
  await settle();
  expect(client.closed || client.ended).toBe(false);

  link.heal();
  await client.until(({ closed, ended }) => closed || ended);
});

test('one direction is held while the other passes', async () => {
  await using story = await connected();
  const { link, client, server } = story;

  link.pause('toClient');
  server.socket.write('held');
  client.socket.write('passes');
  await server.until(({ text }) => text === 'passes');
  await settle();
  expect(client.text).toBe('');

  link.resume('toClient');
  await client.until(({ text }) => text === 'held');
});

test('a delay holds each chunk for its own time, by the clock given', async () => {
  const clock = new ManualClock();
  await using story = await connected(clock);
  const { link, client, server } = story;
  link.delay(100);

  client.socket.write('a');
  await until(() => clock.pending === 1);
  clock.advance(60);
  client.socket.write('b');
  await settle();
  clock.advance(39);
  await settle();
  expect(server.text).toBe('');

  clock.advance(1);
  await server.until(({ text }) => text === 'a');
  clock.advance(59);
  await settle();
  expect(server.text).toBe('a');

  clock.advance(1);
  await server.until(({ text }) => text === 'ab');
  expect(clock.pending).toBe(0);
});

test('dribbled bytes arrive one by one', async () => {
  await using story = await connected();
  const { link, client, server } = story;
  link.dribble();

  client.socket.write('drip');
  client.socket.write('drop');
  await server.until(({ text }) => text === 'dripdrop');

  expect(server.chunks.map(({ length }) => length)).toEqual([1, 1, 1, 1, 1, 1, 1, 1]);
});

test.each([0, 1, 4, 9, 10])(
  'cut after %i bytes to the server: just those arrive',
  async (bytes) => {
    await using story = await connected();
    const { link, client, server } = story;
    client.socket.write('before');
    await server.until(({ text }) => text === 'before');

    link.cutAfter({ toServer: bytes });
    client.socket.write('0123456789');
    await server.until(({ closed, ended }) => closed || ended);
    await client.until(({ closed, ended }) => closed || ended);

    expect(server.text).toBe(`before${'0123456789'.slice(0, bytes)}`);
    expect(link.stats.cuts).toBe(1);
  },
);

test('cut after bytes to the client: just those arrive, and the next connection is whole', async () => {
  await using story = await connected();
  const { peer, link, client, server } = story;

  link.cutAfter({ toClient: 3 });
  server.socket.write('ab');
  await client.until(({ text }) => text === 'ab');
  server.socket.write('cdef');
  await client.until(({ closed, ended }) => closed || ended);
  const next = await dial(link);
  (await peer.end(1)).socket.write('whole again');
  await next.until(({ text }) => text === 'whole again');

  expect(client.text).toBe('abc');
  next.socket.destroy();
});

test('what passed before a cut arrives even at a reader that is slow to begin', async () => {
  await using story = await connected();
  const { link, client, server } = story;
  server.socket.pause();
  link.onFrame = () => 'passThenCut';

  client.socket.write(frame('x'.repeat(9_000_000)));
  await link.until(({ cuts }) => cuts === 1);
  server.socket.resume();
  await server.until(({ closed, ended }) => closed || ended);

  expect(server.text.length).toBe(9_000_004);
});

test('of two fuses the first to blow takes the other with it', async () => {
  await using story = await connected();
  const { peer, link, client, server } = story;

  link.cutAfter({ toServer: 2, toClient: 5 });
  client.socket.write('xyz');
  await server.until(({ closed, ended }) => closed || ended);
  const next = await dial(link);
  (await peer.end(1)).socket.write('more than five');
  await next.until(({ text }) => text === 'more than five');

  expect(link.stats.cuts).toBe(1);
  next.socket.destroy();
});

test('frames are shown whole however they come, and each may be passed, dropped or replaced', async () => {
  await using story = await connected();
  const { link, client, server } = story;
  const seen: LinkFrame[] = [];
  link.onFrame = (it) => {
    seen.push(it);
    const text = it.bytes.toString();
    if (text === 'drop me') return 'drop';
    if (text === 'change me') return { replace: Buffer.from('changed') };
    return undefined;
  };

  const bytes = Buffer.concat(['hi', 'drop me', '', 'change me', 'bye'].map(frame));
  for (const byte of bytes) {
    client.socket.write(Buffer.of(byte));
    await new Promise(setImmediate);
  }
  await server.until(({ text }) => text.endsWith('bye'));

  expect(server.text).toBe(
    Buffer.concat(['hi', '', 'changed', 'bye'].map(frame)).toString('latin1'),
  );
  expect(seen.map(({ bytes }) => bytes.toString())).toEqual([
    'hi',
    'drop me',
    '',
    'change me',
    'bye',
  ]);
  expect(seen.map(({ index }) => index)).toEqual([0, 1, 2, 3, 4]);
  expect(seen.every((it) => it.connection === 1 && it.direction === 'toServer')).toBe(true);
  expect(link.stats.frames.toServer).toBe(5);
});

test('a reply can be cut off after its request was passed', async () => {
  await using story = await connected();
  const { link, client, server } = story;
  link.onFrame = ({ direction }) => (direction === 'toClient' ? 'cut' : 'pass');

  client.socket.write(frame('request'));
  await server.until(({ text }) => text.endsWith('request'));
  server.socket.write(frame('reply'));
  await client.until(({ closed, ended }) => closed || ended);

  expect(client.text).toBe('');
});

test('a frame can be the last that passes', async () => {
  await using story = await connected();
  const { link, client, server } = story;
  link.onFrame = ({ index }) => (index === 1 ? 'passThenCut' : 'pass');

  client.socket.write(Buffer.concat([frame('one'), frame('two'), frame('three')]));
  await server.until(({ closed, ended }) => closed || ended);

  expect(server.text).toBe(Buffer.concat([frame('one'), frame('two')]).toString('latin1'));
});

test('a hook set or removed within a frame takes effect with the next', async () => {
  await using story = await connected();
  const { link, client, server } = story;
  const bytes = Buffer.concat([frame('first'), frame('second'), frame('third')]);

  client.socket.write(bytes.subarray(0, 6));
  await server.until(({ text }) => text.length === 6);
  link.onFrame = () => 'drop';
  client.socket.write(bytes.subarray(6, 21));
  await server.until(({ text }) => text.length === 9);
  await until(() => link.stats.frames.toServer === 2);
  link.onFrame = undefined;
  client.socket.write(bytes.subarray(21));
  await server.until(({ text }) => text.endsWith('third'));

  expect(server.text).toBe(Buffer.concat([frame('first'), frame('third')]).toString('latin1'));
});

test('a stream that is none of frames passes without a hook and is cut with one', async () => {
  await using story = await connected();
  const { peer, link, client, server } = story;

  client.socket.write('ruok');
  await server.until(({ text }) => text === 'ruok');
  server.socket.write('imok');
  await client.until(({ text }) => text === 'imok');
  link.onFrame = () => 'pass';
  const next = await dial(link);
  next.socket.write('ruok');
  await next.until(({ closed, ended }) => closed || ended);

  expect((await peer.end(1)).text).toBe('');
});

test('a new target is for new connections', async () => {
  await using story = await connected();
  await using elsewhere = await startPeer();
  const { link, client, server } = story;

  link.retarget(elsewhere);
  const next = await dial(link);
  next.socket.write('there');
  await (await elsewhere.end(0)).until(({ text }) => text === 'there');
  client.socket.write('here');
  await server.until(({ text }) => text === 'here');

  next.socket.destroy();
});

test('with nothing behind the link, a connection is ended', async () => {
  await using peer = await startPeer();
  await using link = await Link.to(peer);
  await peer[Symbol.asyncDispose]();
  peer[Symbol.asyncDispose] = async () => {};

  const client = await dial(link);

  await client.until(({ closed, ended }) => closed || ended);
});

test('closing leaves nothing: no socket, no port, no timer, and may be done twice', async () => {
  const clock = new ManualClock();
  const story = await connected(clock);
  const { peer, link, client } = story;
  link.delay(1_000_000);
  client.socket.write('never');
  await until(() => clock.pending === 1);
  link.blackhole();
  const held = await dial(link);

  await Promise.all([link.close(), link.close()]);
  await link.close();

  expect(link.stats.open).toBe(0);
  expect(clock.pending).toBe(0);
  await Promise.all([client, held].map((end) => end.until((it) => it.closed || it.ended)));
  await expect(dial(link)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  await expect(link.accept()).rejects.toThrow('closed');
  await peer[Symbol.asyncDispose]();
});

async function until(wanted: () => boolean): Promise<void> {
  while (!wanted()) await new Promise(setImmediate);
}

test('a link that is closed while it begins to accept again leaves no port behind', async () => {
  const link = await Link.to({ host: '127.0.0.1', port: 1 });
  link.refuse();
  const accepted = link.accept();

  await link.close();

  await expect(accepted).rejects.toThrow('the link is closed');
  const dialled = once(tcpConnect(link.port, '127.0.0.1'), 'connect');
  await expect(dialled).rejects.toMatchObject({ code: 'ECONNREFUSED' });
});
