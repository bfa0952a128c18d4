/** A data directory whose nodes have the first and last numbers that a Stat can hold. No client gets there. */

import { openAcl, type TxnBody } from '../../src/protocol/index.ts';
import { openPersistence } from '../../src/server/index.ts';

export const intMax = 0x7fff_ffff;
export const intMin = -0x8000_0000;

/** Versions, by the names of the nodes that have them. */
export const edgeVersions: Readonly<Record<string, number>> = {
  zero: 0,
  'last but one': intMax - 1,
  last: intMax,
  first: intMin,
  'minus three': -3,
  'minus two': -2,
  'minus one': -1,
};

/** What the counter of created children comes to. */
export const edgeCounters: Readonly<Record<string, number>> = {
  half: 2 ** 30,
  'last but one': intMax - 1,
  last: intMax,
};

/** Times of txns, in ms. */
const edgeTimes = { epoch: 0, 'one after': 1, 'far off': 2 ** 52 };

const session = 0x1234_0000_0000_0000n;

export async function writeEdges(dataDir: string): Promise<void> {
  const disk = await openPersistence({ dataDir, unsafeNoFsync: true, snapCount: 1e9 });
  let zxid = disk.tree.lastZxid;
  const write = async (body: TxnBody, timeMs = 1_000) => {
    zxid += 1;
    const head = { clientId: session, cxid: zxid, zxid, timeMs };
    await disk.log.append([{ head, body }]);
    disk.tree.apply(head, body);
  };
  const acl = [...openAcl];
  const create = (path: string, parentCVersion: number, timeMs?: number) =>
    write(
      {
        type: 'create',
        txn: { path, data: Buffer.from('x'), acl, ephemeral: false, parentCVersion },
      },
      timeMs,
    );
  for (const [at, above] of ['/version', '/aversion', '/counter', '/time'].entries()) {
    await create(above, at + 1);
  }
  for (const [at, [name, version]] of Object.entries(edgeVersions).entries()) {
    const data = Buffer.from(name);
    await create(`/version/${name}`, at + 1);
    await write({ type: 'setData', txn: { path: `/version/${name}`, data, version } });
    await create(`/aversion/${name}`, at + 1);
    await write({ type: 'setACL', txn: { path: `/aversion/${name}`, acl, version } });
  }
  for (const [at, [name, counter]] of Object.entries(edgeCounters).entries()) {
    await create(`/counter/${name}`, at + 1);
    await create(`/counter/${name}/child`, counter);
  }
  for (const [at, [name, timeMs]] of Object.entries(edgeTimes).entries()) {
    await create(`/time/${name}`, at + 1, timeMs);
  }
  // Apache takes no log for a tree without a snapshot that it goes on from.
  await disk.snapshot();
  await disk.log.close();
}
