import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ManualClock } from '../support/index.ts';
import { RawClient } from '../testing/index.ts';
import { firstSessionId, Sessions } from './sessions.ts';
import { startServer } from './start-server.ts';

const tickMs = 1_000;
const wallMs = 1_700_000_000_000;

test('ids count up from the first, and pass over those that are taken', () => {
  const first = firstSessionId(1, wallMs);
  const sessions = new Sessions(tickMs, first);
  for (const taken of [1n, 2n, 5n]) sessions.add(first + taken, 5_000, 0);

  const ids = [0, 1, 2, 3].map(() => sessions.create(5_000, 0).id - first);

  expect(ids).toEqual([0n, 3n, 4n, 6n]);
});

test('the id of a session that has ended is not given out again', () => {
  const sessions = new Sessions(tickMs, firstSessionId(1, wallMs));
  const ended = sessions.create(5_000, 0);
  sessions.remove(ended);

  expect(sessions.create(5_000, 0).id).not.toBe(ended.id);
});

test.each([0, 1, 255])('an id of server %i has its number in the first byte', (serverId) => {
  const id = firstSessionId(serverId, wallMs);

  expect(BigInt.asUintN(64, id) >> 56n).toBe(BigInt(serverId));
  expect(BigInt.asIntN(64, id)).toBe(id);
});

test.each([0, -1, -3_600_000])(
  'a session that a restart found alive keeps its id to itself, the clock %i ms ahead',
  async (aheadMs) => {
    const dataDir = mkdtempSync(join(tmpdir(), 'drover-sessions-'));
    const start = (clock: ManualClock) =>
      startServer({ port: 0, dataDir, clock, unsafeNoFsync: true });
    const first = await start(new ManualClock(0, wallMs));
    const before = [];
    for (let i = 0; i < 3; i++) before.push(await RawClient.connect(first.port));
    await first.close();

    const second = await start(new ManualClock(0, wallMs + aheadMs));
    const after = [];
    for (let i = 0; i < 3; i++) after.push(await RawClient.connect(second.port));

    const idOf = ({ sessionId }: RawClient) => sessionId;
    expect(new Set([...before, ...after].map(idOf)).size).toBe(6);
    // Each of those from before is still its own, and takes nobody else's place.
    for (const { sessionId, passwd } of before) {
      const back = await RawClient.connect(second.port, { sessionId, passwd });
      expect(back.sessionId).toBe(sessionId);
    }
    for (const client of after) expect((await client.ping()).err).toBe(0);
    await second.close();
    rmSync(dataDir, { recursive: true, force: true });
  },
);
