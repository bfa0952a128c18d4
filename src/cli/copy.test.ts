import { expect, test } from 'vitest';
import { type Acl, connect } from '../client/index.ts';
import { frameBytesMax } from '../protocol/index.ts';
import { startTestServer } from '../testing/index.ts';
import { Copy } from './copy.ts';
import { readTree, ZkTarget } from './tree-zk.ts';

const { signal } = new AbortController();

/** Copies a node with data onto another that has these. */
async function copiedOnto(data: string | null) {
  await using server = await startTestServer();
  await using client = await connect(server.address);
  await client.create('/from', 'top');
  await client.create('/to', data);
  const source = { name: '/from', root: '/from', nodes: () => readTree(client, '/from') };
  const copy = new Copy(source, new ZkTarget(client, '/to'), {
    signal,
    onConflict: 'fail',
    withoutAcl: false,
    mirrors: false,
    requestBytesMax: 1_000,
  });
  await copy.perform();
  return String((await client.get('/to')).data);
}

test.for([
  ['no data', null],
  ['data of no length', ''],
] as const)('a top with %s is no conflict', async ([, data]) => {
  expect(await copiedOnto(data)).toBe('top');
});

test('a top with other data is a conflict', async () => {
  await expect(copiedOnto('x')).rejects.toThrow('/to is there and differs');
});

const acl = (count: number): Acl[] =>
  Array.from({ length: count }, (_, i) => ({
    perms: 31,
    id: { scheme: i === 0 ? 'world' : 'ip', id: i === 0 ? 'anyone' : `10.0.0.${i}` },
  }));

interface Large {
  readonly bytes: number;
  readonly to: string;
  readonly acl?: Acl[];
  readonly there?: boolean;
}

/** Copies a small node and a large one, and says what stands there then, or why it was refused. */
async function copiedLarge({ bytes, to, acl: own, there }: Large) {
  await using server = await startTestServer();
  await using client = await connect(server.address);
  await server.load({ '/from/1': 'small', '/from/z': Buffer.alloc(bytes), [to]: null });
  if (own !== undefined) await client.setAcl('/from/z', own);
  if (there) await server.load({ [`${to}/z`]: '' });
  const source = { name: '/from', root: '/from', nodes: () => readTree(client, '/from') };
  const options = { signal, onConflict: 'overwrite', withoutAcl: false, mirrors: false } as const;
  const requestBytesMax = frameBytesMax;
  const copy = new Copy(source, new ZkTarget(client, to), { ...options, requestBytesMax });
  const made = () =>
    Object.keys(server.tree()).filter((path) => path === `${to}/1` || path === `${to}/z`);
  const before = made();
  try {
    await copy.look();
    await copy.perform();
  } catch (error) {
    expect(made()).toEqual(before);
    return (error as Error).message;
  }
  return made().length;
}

/** What a create and a set have around data and path; a create has an ACL too. */
const aroundCreate = (entries = 1) =>
  acl(entries).reduce((sum, { id }) => sum + 12 + id.scheme.length + id.id.length, 24);
const aroundSet = 20;
const long = `/${'p'.repeat(1_100)}`;

test.for<[string, Omit<Large, 'bytes'>, number]>([
  ['a short path', { to: '/to' }, aroundCreate() + '/to/z'.length],
  ['a long path', { to: long }, aroundCreate() + long.length + '/z'.length],
  ['many ACL entries', { to: '/to', acl: acl(40) }, aroundCreate(40) + '/to/z'.length],
  ['data to be replaced', { to: long, there: true }, aroundSet + long.length + '/z'.length],
])(
  'a copy with %s takes data up to what a request holds, and else refuses before it writes',
  async ([, how, around]) => {
    const bytes = frameBytesMax - around;

    expect(await copiedLarge({ ...how, bytes })).toBe(2);
    expect(await copiedLarge({ ...how, bytes: bytes + 1 })).toContain(
      `take a request of ${frameBytesMax + 1} bytes, and the servers take ${frameBytesMax}`,
    );
  },
);
