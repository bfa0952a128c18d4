/** The link is cut at every byte of every request and of every reply, one after the other. */

import { expect, test } from 'vitest';
import { type Client, connect, isZkError, openAcl } from '../../src/client/index.ts';
import type { Direction } from '../../src/testing/index.ts';
import { type Needs, startZk, type Zk } from '../zk.ts';

interface Case {
  readonly op: string;
  readonly needs?: Needs;
  /** Whether there is an outcome to be unknown. */
  readonly writes?: boolean;
  readonly arrange?: (witness: Client, path: string) => Promise<unknown>;
  readonly act: (client: Client, path: string) => Promise<unknown>;
  /** Whether the write took place. */
  readonly happened?: (witness: Client, path: string) => Promise<boolean>;
}

const make = (witness: Client, path: string) => witness.create(path);
const isThere = async (witness: Client, path: string) => (await witness.exists(path)) !== null;

const cases: Case[] = [
  {
    op: 'create',
    needs: { since: '3.5', what: 'creates that answer with a Stat' },
    writes: true,
    act: (c, p) => c.create(p, 'x'),
    happened: isThere,
  },
  {
    op: 'createTTL',
    needs: { since: '3.5', what: 'TTLs' },
    writes: true,
    act: (c, p) => c.create(p, '', { mode: 'persistentTtl', ttlMs: 60_000 }),
    happened: isThere,
  },
  {
    op: 'createContainer',
    needs: { since: '3.5', what: 'containers' },
    writes: true,
    act: (c, p) => c.create(p, '', { mode: 'container' }),
    happened: isThere,
  },
  {
    op: 'delete',
    writes: true,
    arrange: make,
    act: (c, p) => c.delete(p),
    happened: async (w, p) => !(await isThere(w, p)),
  },
  {
    op: 'set',
    writes: true,
    arrange: make,
    act: (c, p) => c.set(p, 'x'),
    happened: async (w, p) => (await w.get(p)).stat.version === 1,
  },
  {
    op: 'setAcl',
    writes: true,
    arrange: make,
    act: (c, p) => c.setAcl(p, openAcl),
    happened: async (w, p) => (await w.get(p)).stat.aversion === 1,
  },
  {
    op: 'multi',
    writes: true,
    act: (c, p) =>
      c.multi([
        { op: 'create', path: p },
        { op: 'check', path: p },
      ]),
    happened: isThere,
  },
  { op: 'exists', act: (c) => c.exists('/') },
  { op: 'get', act: (c) => c.get('/') },
  { op: 'children', act: (c) => c.children('/read') },
  { op: 'childrenAndStat', act: (c) => c.childrenAndStat('/read') },
  { op: 'getAcl', act: (c) => c.getAcl('/read') },
  { op: 'sync', act: (c) => c.sync('/read') },
  {
    op: 'multiRead',
    needs: { since: '3.6', what: 'multiRead' },
    act: (c) =>
      c.multiRead([
        { op: 'get', path: '/read' },
        { op: 'children', path: '/none' },
      ]),
  },
  {
    op: 'getEphemerals',
    needs: { since: '3.6', what: 'getEphemerals' },
    act: (c) => c.getEphemerals(),
  },
  { op: 'countDescendants', act: (c) => c.countDescendants('/read') },
  { op: 'whoAmI', needs: { since: '3.7', what: 'whoAmI' }, act: (c) => c.whoAmI() },
  {
    op: 'getConfig',
    needs: { since: '3.5', what: '/zookeeper/config' },
    act: (c) => c.getConfig(),
  },
  {
    op: 'an error',
    act: (c) =>
      c.get('/none').catch((error) => {
        if (!isZkError(error, 'NO_NODE')) throw error;
      }),
  },
  { op: 'addWatch', act: (c) => c.addWatch('/read', 'persistent', () => {}) },
];

/** On our server, at every byte. A real one is shared and slower: there, at so many of them. */
const stride = (zk: Zk) => (zk.isOurs ? 1 : 11);

async function bytesOf(zk: Zk, work: () => Promise<unknown>): Promise<Record<Direction, number>> {
  const before = zk.link.stats.bytes;
  await work();
  const after = zk.link.stats.bytes;
  return {
    toServer: after.toServer - before.toServer,
    toClient: after.toClient - before.toClient,
  };
}

/** So that a create is all that its connection carries: the first one asks first what the server knows. */
async function learn(client: Client): Promise<void> {
  const error = await client.create('/read').catch((reason: unknown) => reason);
  expect(isZkError(error, 'NODE_EXISTS')).toBe(true);
}

test.each(cases)(
  '$op, cut anywhere, is settled once and truly',
  { timeout: 120_000 },
  async ({ act, arrange, writes = false, happened, needs }) => {
    await using zk = await startZk(needs);
    const witness = await zk.witness();
    await witness.create('/read');
    const client = await zk.connect({
      sessionTimeoutMs: 30_000,
      backoff: { firstMs: 1, maxMs: 1 },
    });
    const { sessionId } = client;
    let runs = 0;
    const run = async () => {
      // Of one length always, so that the offsets mean the same.
      const path = `/n-${String(1_000 + runs++)}`;
      await arrange?.(witness, path);
      return path;
    };
    await act(client, await run());
    await learn(client);
    const first = await run();
    const length = await bytesOf(zk, () => act(client, first));

    for (const direction of ['toServer', 'toClient'] as const) {
      for (let offset = 0; offset < length[direction]; offset += stride(zk)) {
        const path = await run();
        await learn(client);
        const { cuts } = zk.link.stats;
        zk.link.cutAfter({ [direction]: offset });
        let settled = 0;

        const error = await act(client, path)
          .then(
            () => undefined,
            (reason: unknown) => reason,
          )
          .finally(() => {
            settled += 1;
          });
        await client.exists('/');

        const where = `${direction} at ${offset} of ${length[direction]}`;
        expect(zk.link.stats.cuts, where).toBe(cuts + 1);
        expect(settled, where).toBe(1);
        expect(client.sessionId, where).toBe(sessionId);
        if (writes)
          expect(error, where).toMatchObject({ code: 'CONNECTION_LOSS', outcomeUnknown: true });
        else expect(error, where).toBeUndefined();
        if (happened) expect(await happened(witness, path), where).toBe(direction === 'toClient');
      }
    }
  },
);

test('the first create of a connection, cut anywhere, is settled once and truly', {
  timeout: 60_000,
}, async () => {
  await using zk = await startZk();
  const witness = await zk.witness();
  const open = () => zk.connect({ backoff: { firstMs: 1, maxMs: 1 } });
  const first = await open();
  const length = await bytesOf(zk, () => first.create('/n-1000'));

  let runs = 1_000;
  for (const direction of ['toServer', 'toClient'] as const) {
    for (let offset = 0; offset < length[direction]; offset += stride(zk)) {
      const client = await open();
      const path = `/n-${++runs}`;
      zk.link.cutAfter({ [direction]: offset });

      const error = await client.create(path).catch((reason: unknown) => reason);
      await client.close();

      const where = `${direction} at ${offset} of ${length[direction]}`;
      if (isZkError(error)) expect(error, where).toMatchObject({ outcomeUnknown: true });
      else expect(await isThere(witness, path), where).toBe(true);
    }
  }
});

test('the handshake, cut anywhere, is begun anew', { timeout: 60_000 }, async () => {
  await using zk = await startZk();
  const options = { backoff: { firstMs: 1, maxMs: 1 } };
  const length = await bytesOf(zk, async () => {
    await using client = await connect(zk.address, options);
    await client.connected();
  });

  for (const direction of ['toServer', 'toClient'] as const) {
    // What follows the handshake is the end of the session, which is cut here as well.
    for (let offset = 0; offset < length[direction]; offset += stride(zk)) {
      zk.link.cutAfter({ [direction]: offset });
      const client = await connect(zk.address, options);
      await client.close();
      expect(client.state.name).toBe('closed');
    }
  }
});
