import { expect, test } from 'vitest';
import { openAcl } from '../protocol/index.ts';
import { pathHash, Tree } from '../tree/index.ts';
import { noChanges, Outlook } from './outlook.ts';

test('as many ephemeral nodes as one multi holds are counted as they come, and forgotten with it', () => {
  const session = 1n;
  const outlook = new Outlook(new Tree());
  const changes = noChanges();
  outlook.begin({ clientId: session, cxid: 1, zxid: 1, timeMs: 0 });
  for (let i = 0; i < 50_000; i++) {
    const path = `/é${String(i).padStart(5, '0')}`;
    const parent = outlook.get('/')!;
    outlook.create(changes, parent, path, pathHash(path), null, openAcl, session, session);
    if (i < 100) outlook.setData(changes, outlook.get(path)!, null, 1);
    const { count, pathBytes } = outlook.ephemeralUse(session);
    if (count !== i + 1 || pathBytes !== 8 * count) expect.fail(`${count}, ${pathBytes} at ${i}`);
  }

  outlook.undo(changes);

  expect(outlook.ephemeralUse(session)).toEqual({ count: 0, pathBytes: 0 });
});
