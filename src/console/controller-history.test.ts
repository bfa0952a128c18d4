import { expect, test } from 'vitest';
import { ControllerHistory } from './controller-history.ts';
import type { HistoryEntry } from './views.ts';

const entry = (zxid: number, kind: string, after: string | null): HistoryEntry => ({
  zxid: `0x${zxid.toString(16)}`,
  atMs: zxid * 1_000,
  session: '0x1',
  kind,
  version: 0,
  before: null,
  after: after === null ? null : Buffer.from(after).toString('base64'),
});
const holder = (id: number) => `{"version":1,"brokerid":${id},"timestamp":"1"}`;

test('what the logs tell stands before what was seen, each with its epoch', async () => {
  const logs: Record<string, HistoryEntry[]> = {
    // Newest first, as histories are.
    '/controller': [
      entry(30, 'created', holder(2)),
      entry(20, 'deletedWithSession', null),
      entry(10, 'created', holder(1)),
    ],
    '/controller_epoch': [entry(30, 'dataSet', '8'), entry(10, 'dataSet', '7')],
  };
  let isMore = false;
  const history = new ControllerHistory({
    history: async (path) => ({ entries: logs[path]!, isCut: false }),
    onStale: () => {
      isMore = true;
    },
  });

  history.seen({ brokerId: 2, epoch: 8, sinceMs: null });
  await expect.poll(() => isMore).toBe(true);

  expect(history.newestFirst).toEqual([
    { brokerId: 2, epoch: 8, atMs: 30_000 },
    { brokerId: null, epoch: 7, atMs: 20_000 },
    { brokerId: 1, epoch: 7, atMs: 10_000 },
  ]);
});

test('without logs, or with broken ones, there is what was seen', async () => {
  const broken = new ControllerHistory({
    history: async () => {
      throw new Error('damaged');
    },
  });
  for (const history of [new ControllerHistory({}), broken]) {
    history.seen({ brokerId: null, epoch: null, sinceMs: null });
    history.seen({ brokerId: 1, epoch: 3, sinceMs: 5 });
    history.seen({ brokerId: 1, epoch: 3, sinceMs: 5 });

    expect(history.newestFirst).toMatchObject([{ brokerId: 1, epoch: 3 }]);
  }
});
